"""What the fuzzer checks: parameters, actions, seeds, interfaces, wrappers and numbers of lanes drawn at random."""

from fair_envs.testing.contract.kinds import Kind
from fair_envs.testing.fuzzing import fuzz_environment

STEPS = 20_000


def test_random_parameters_and_actions_meet_no_problem(kind: Kind) -> None:
    fuzz_environment(kind.env_id, steps=STEPS).check()
