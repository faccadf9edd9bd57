"""The fuzzer's minute: every environment, in its default layout, with random parameters on every interface."""

import pytest

from fair_envs import TABLE
from fair_envs.testing import fuzz_environment
from fair_envs.testing.players import interfaces


@pytest.mark.long
@pytest.mark.parametrize("env_id", TABLE)
def test_random_parameters_and_actions_meet_no_problem(env_id: str) -> None:
    result = fuzz_environment(env_id, steps=3000, layouts=1, seed=0)
    result.check()
    assert set(result.interfaces) == set(interfaces(ruled=True)) and result.steps >= 3000
