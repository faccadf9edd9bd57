"""The fuzzer finds each defect that is planted, names it, and says how to see it again; sound toys have none."""

import itertools
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

import fair_envs
from fair_envs.core import Rules
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv
from fair_envs.support.parameters import Range
from fair_envs.testing import Case, Problem, fuzz_environment
from fair_envs.testing.fuzz import app
from fair_envs.testing.fuzzing import play
from fair_envs.testing.parameters import Drawer, DrawError, draw, layout, most_of
from fair_envs.testing.players import interfaces
from tests import ferry, toys
from tests.choices import Choices
from tests.ferry import Ferry
from tests.helpers import uncompiled
from tests.leavers import Leavers

DESK = "tests.testing.desk"


NUMBERS = itertools.count()


@pytest.fixture
def registered() -> Iterator[Callable[..., str]]:
    """Return what registers an environment of these faces and gives its id; it is forgotten afterwards."""
    made: dict[str, str] = {}

    def register(
        rules: type[Rules] = toys.LongCountdown, single: type[SingleEnv] = SingleEnv, batch: type[BatchEnv] = BatchEnv
    ) -> str:
        number = next(NUMBERS)  # PettingZoo's registry forgets nothing
        env_id, name = f"FairToy{number}-v0", f"fair_envs_toy_{number}"
        module: Any = ModuleType(name)
        module.Env = type("Env", (single,), {"rules": rules})
        module.Vector = type("Vector", (batch,), {"rules": rules})
        module.Parallel = type("Parallel", (AgentsEnv,), {"rules": rules})
        module.parallel_env, module.env, module.raw_env = module_of(module.Parallel)
        sys.modules[name], made[env_id] = module, name
        fair_envs.register(env_id, name)
        return env_id

    yield register
    for env_id, name in made.items():
        del sys.modules[name], fair_envs.TABLE[env_id], gym.registry[env_id]


def problem_of(env_id: str, steps: int = 6000, **settings: Any) -> Problem:
    """Return the first problem of an environment, which its case and its command replay."""
    (problem,) = fuzz_environment(env_id, steps=steps, most_problems=1, **settings).problems
    *_, name, flag, text = shlex.split(problem.case.command)
    assert (name, flag) == (env_id, "--case")
    again = play(Case.of_text(env_id, text))[1]
    assert again is not None and (again.call, again.message) == (problem.call, problem.message)
    for told in (env_id, problem.case.interface, f"step {problem.call}", problem.message, problem.case.command):
        assert told in str(problem)
    return problem


# ----------------------------------------------------------------------------------------------- planted defects


class UnpaidRules(toys.LongCountdown):
    """The countdown that pays no number in its third step."""

    @staticmethod
    def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> Any:
        ends = toys.step(lane, action, params, reward, facts)
        if lane.time == 2:
            reward[1] = np.nan
        return ends


class FarRules(toys.LongCountdown):
    """The countdown that shows a number outside of its space."""

    @staticmethod
    def observe(lane: Any, params: Any, observation: Any) -> None:
        toys.observe(lane, params, observation)
        observation[1, 1] = 10_001 if lane.time == 2 else 0


class WiseRules(toys.LongCountdown):
    """The countdown whose correct decision is not a valid decision."""

    @staticmethod
    def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> Any:
        facts.feedback[0] = 7
        return toys.step(lane, action, params, reward, facts)


class UnknownRules(toys.LongCountdown):
    """The countdown whose second agent has a value of the attribute that has no name."""

    @staticmethod
    def describe(lane: Any, params: Any, facts: Any) -> None:
        toys.describe(lane, params, facts)
        facts.sensitive[1, 0] = 2


class LateRules(Ferry):
    """The ferry that reports late feedback about a person who was never there."""

    @staticmethod
    def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> Any:
        facts.late_individual[0], facts.late_feedback[0], facts.late_count = 999, 1, 1
        return ferry.step(lane, action, params, reward, facts)


class BrokenRules(toys.LongCountdown):
    """The countdown that breaks with some numbers in their range."""

    def check(self, params: Any) -> None:
        1 // int(params.shortest < 100)


class SilentEnv(SingleEnv):
    """The single environment that leaves a key out."""

    def _info(self, step: Any) -> Any:
        return {name: value for name, value in super()._info(step).items() if name != "fair_outcome"}


class StaleEnv(SingleEnv):
    """The single environment that returns one array again and again."""

    def _see(self, step: Any) -> Any:
        seen = super()._see(step)
        if not hasattr(self, "kept"):
            self.kept = np.array(seen)
        self.kept[:] = seen
        return self.kept


class OtherBatch(BatchEnv):
    """The batch whose last lane is better off than it would be alone."""

    def _columns(self, step: Any, probs: Any) -> Any:
        info = super()._columns(step, probs)
        info["fair_outcome"][-1] += info["fair_decided"][-1]
        return info


class ForgetfulEnv(SingleEnv):
    """The single environment that counts its steps outside of its state."""

    count = 0

    def step(self, action: Any) -> Any:
        self.count += 1
        observation, reward, *rest = super().step(action)
        return (observation, reward + self.count % 3, *rest)


DEFECTS: dict[str, tuple[dict[str, Any], str]] = {
    "reward": ({"rules": UnpaidRules}, "reward must be finite, got nan"),
    "observation": ({"rules": FarRules}, "must be between 0.0 and 10000.0, its space, got 10001.0"),
    "key": ({"single": SilentEnv}, "info must have the keys fair_outcome, got agent_reward, fair_action, "),
    "memory": ({"single": StaleEnv}, "it shares memory"),
    "feedback": ({"rules": WiseRules}, "fair_feedback must be between -1 and 1, got 7"),
    "attribute": ({"rules": UnknownRules}, "fair_sensitive 'marked' must be between 0 and 1, got 2"),
    "history": ({"rules": LateRules}, "the record must be one that History takes; late feedback must be for a person"),
    "batch": (
        {"batch": OtherBatch},
        "must be what the single environment of its seed returns (the second); info['fair_outcome']: ",
    ),
    "snapshot": (
        {"single": ForgetfulEnv},
        "an environment restored from a snapshot must continue like the first; returned[1]: ",
    ),
    "parameters": ({"rules": BrokenRules}, "no exception must be raised, got ZeroDivisionError: "),
}


@uncompiled
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found_named_and_replayed(defect: str, registered: Callable[..., str]) -> None:
    faces, message = DEFECTS[defect]
    assert message in problem_of(registered(**faces)).message


@uncompiled
def test_an_environment_without_rules_is_played_and_its_defect_found() -> None:
    sound = fuzz_environment(f"{DESK}:Desk-v0", steps=2000)
    sound.check()
    assert sorted(sound.interfaces) == ["gym", "vector-disabled", "vector-next-step", "vector-same-step"]
    message = problem_of(f"{DESK}:CarelessDesk-v0", steps=2000).message
    assert message == "fair_individual must be of NumPy's types, got int"
    with pytest.raises(AssertionError, match=r"replay: python -m fair_envs\.testing\.fuzz .*CarelessDesk-v0 --case"):
        fuzz_environment(f"{DESK}:CarelessDesk-v0", steps=100).check()
    with pytest.raises(ValueError, match=r"env must have a FairSpec as fair_spec, .* got .*BareDesk-v0 with no"):
        fuzz_environment(f"{DESK}:BareDesk-v0", steps=10)


# -------------------------------------------------------------------------------------------------- sound toys


@uncompiled
@pytest.mark.parametrize("rules", [Choices, Ferry, Leavers, toys.LongCountdown])
def test_a_sound_environment_has_no_problem_in_any_interface(
    rules: type[Rules], registered: Callable[..., str]
) -> None:
    result = fuzz_environment(registered(rules), steps=600, layouts=1)
    result.check()
    assert set(result.interfaces) == set(interfaces(ruled=True)) and result.steps >= 600


@uncompiled
def test_the_same_seed_draws_the_same_cases(registered: Callable[..., str]) -> None:
    env_id = registered()
    one, other = (fuzz_environment(env_id, steps=300, seed=7) for _ in range(2))
    assert (one.cases, one.interfaces) == (other.cases, other.interfaces)


def test_what_is_no_number_of_its_kind_is_refused_by_name() -> None:
    for name, value in (("steps", 0), ("layouts", 0), ("seed", -1)):
        settings: dict[str, Any] = {name: value}
        with pytest.raises(ValueError, match=f"{name} must be .* got {value}"):
            fuzz_environment("FairHiring-v0", **settings)
    with pytest.raises(ValueError, match=r"id must be one of .*, got 'FairNothing-v0'"):
        fuzz_environment("FairNothing-v0")


# -------------------------------------------------------------------------------------------------- parameters


class DrawnParams(NamedTuple):
    """Parameters of each kind."""

    horizon: Annotated[int, Range(1, 10_000)] = 50
    shortest: Annotated[int, Range(1, 9)] = 4
    cells: Annotated[int, Range(1, 100)] = 4  # changes the layout
    share: Annotated[float, Range(0, 1)] = 0.5
    weight: Annotated[float, Range(0)] = 1.0
    choice: Literal["one", "other"] = "one"
    name: str = "C2"
    flag: bool = False


class DrawnRules(toys.LongCountdown):
    """The countdown with parameters of each kind, two of which do not go together."""

    Params: ClassVar[type] = DrawnParams

    def check(self, params: Any) -> None:
        if params.flag and params.share < 0.5:
            raise ValueError(f"share must be at least 0.5 with the flag, got {params.share}")

    def encoded(self, params: Any) -> Any:
        return super().encoded(params._replace(name=0))

    def lane(self, params: Any) -> Any:
        return [*super().lane(params), ("more", np.int8, params.cells)]


def test_drawn_parameters_are_valid_differ_and_reach_the_ends_of_their_ranges() -> None:
    rng, drawer = np.random.default_rng(0), Drawer(DrawnRules, None)
    drawn = [DrawnRules(**drawer.anew(rng)).params for _ in range(400)]
    for name in ("share", "weight", "cells", "choice", "flag", "horizon"):
        assert len({getattr(params, name) for params in drawn}) > 1
    assert {0.0, 1.0} <= {params.share for params in drawn} and {1, 100} <= {params.cells for params in drawn}
    assert max(params.weight for params in drawn) == 1e6 and {params.name for params in drawn} == {"C2"}


def test_parameters_alike_keep_the_layout_and_vary_the_rest() -> None:
    rng, drawer = np.random.default_rng(0), Drawer(DrawnRules, None)
    base = {"cells": 7}
    drawn = [DrawnRules(**drawer.alike(base, rng)) for _ in range(100)]
    assert {layout(rules) for rules in drawn} == {layout(DrawnRules(**base))}
    assert len({rules.params.share for rules in drawn}) > 10


def test_changes_are_kept_as_far_as_they_are_accepted() -> None:
    changes = {"a": 1, "b": 2, "c": 3, "d": 4}
    assert most_of({"e": 5}, changes, lambda given: "c" not in given) == {"e": 5, "a": 1, "b": 2, "d": 4}
    assert most_of({"e": 5}, changes, lambda given: False) == {"e": 5}


def test_an_error_that_names_no_parameter_is_no_refusal() -> None:
    class Unnamed(DrawnRules):
        def check(self, params: Any) -> None:
            if params.share == 0.25:
                raise ValueError("math domain error")

    with pytest.raises(DrawError, match="ValueError: math domain error"):
        Drawer(Unnamed, None).rules({"share": 0.25})


def test_a_world_that_is_too_large_is_not_drawn() -> None:
    class Large(DrawnRules):
        def lane(self, params: Any) -> Any:
            return [*super().lane(params), ("much", np.int8, 20_000 * (params.cells // 10))]

    drawer = Drawer(Large, None)
    assert drawer.rules({"cells": 20}) is not None and drawer.rules({"cells": 40}) is None


def test_a_number_without_an_end_of_its_range_is_drawn_from_around_its_default() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw(Annotated[float, Range(1e-12)], 1e20, rng) for _ in range(200)]
    assert max(drawn) == 1e21 and min(drawn) == 1e-12


# ------------------------------------------------------------------------------------------------- the command


@uncompiled
def test_the_command_reports_problems_and_replays_them_with_status_1(registered: Callable[..., str]) -> None:
    env_id = registered(rules=UnpaidRules)
    done = CliRunner().invoke(app, [env_id, "--steps", "300", "--problems", "1"])
    assert done.exit_code == 1 and f"PROBLEM {env_id}, variant None, interface " in done.output
    assert [word in done.output for word in ("cases", "layouts", "interfaces", "steps", "problems", "seconds")]
    (line,) = [line for line in done.output.splitlines() if line.startswith("  replay: ")]
    again = CliRunner().invoke(app, shlex.split(line)[4:])
    assert again.exit_code == 1 and "reward must be finite, got nan" in again.output


@uncompiled
def test_the_command_ends_with_status_0_without_a_problem(registered: Callable[..., str]) -> None:
    done = CliRunner().invoke(app, [registered(), "--steps", "300"])
    assert done.exit_code == 0 and "PROBLEM" not in done.output


@uncompiled
def test_a_case_of_ones_own_module_is_replayed_in_a_new_process(tmp_path: Path) -> None:
    (tmp_path / "own_toy.py").write_text('import fair_envs\nfair_envs.register("OwnToy-v0", "tests.toys")\n')
    command = shlex.split(Case(env_id="own_toy:OwnToy-v0", interface="aec", calls=20).command)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, *command[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and "own_toy:OwnToy-v0" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["FairNothing-v0"], "id must be one of"),
        (["no_such_module:Desk-v0"], "No module named"),
        (["FairHiring-v0", "--case", "{"], "case must be an object in JSON"),
        (["FairHiring-v0", "--case", "{}"], "case must be an object with interface"),
        (["FairHiring-v0", "--case", '{"interface": "telepathy"}'], "interface must be one of gym, "),
        (["FairHiring-v0", "--steps", "0"], "steps"),
    ],
)
def test_a_bad_argument_of_the_command_is_refused_by_name(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2 and message in done.output.replace("\n│ ", " ").replace("│ ", "")
