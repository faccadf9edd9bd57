"""The registry of methods: a method of one's own in a few lines, and what an environment without a method is told."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import numpy as np
import pytest

from fair_envs import TABLE, make_rules
from fair_envs.baselines import methods
from fair_envs.baselines.learning import load_learner, train_learner
from fair_envs.baselines.methods import Method, method_for, register
from fair_envs.baselines.settings import check_fields
from fair_envs.cli import UNASKED
from fair_envs.evaluation import LanesWorld, Policy, RandomPolicy, begun, rollout
from fair_envs.support.parameters import PositiveInt, checked, setting
from tests.test_cli import Said, mistake

# ------------------------------------------------------------------------------------------------ the toy method


@dataclass(frozen=True, kw_only=True)
class Settings:
    env_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str = "best-constant"
    steps: PositiveInt = setting(100, "Random steps to learn from.")
    seed: int = setting(0, "Seed of the random play.")
    threads: int = 1

    def __post_init__(self) -> None:
        check_fields(self)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class BestConstant(Policy):
    """Plays at random and learns which action was rewarded most; then takes it always."""

    num_timesteps = 0

    def __init__(self, settings: Settings) -> None:
        self.rules, self.seed = make_rules(settings.env_id, **settings.parameters), settings.seed
        self.earned = np.zeros(self.rules.action_space(self.rules.params).n)  # type: ignore[attr-defined]

    def iterate(self) -> dict[str, float]:
        world = LanesWorld(begun(self.rules, np.array([self.seed + self.num_timesteps], np.uint64)))
        for step in islice(rollout(world, RandomPolicy(self.rules)), 10):
            np.add.at(self.earned, step.action.ravel(), step.reward.ravel())
            self.num_timesteps += 1
        return {"best": float(self.earned.argmax()), "time/total_timesteps": self.num_timesteps}

    def act(self, observation: Any, uniforms: Any) -> Any:
        return np.full(uniforms.shape, self.earned.argmax())

    def snapshot(self) -> Any:
        found = {"earned": self.earned.tolist(), "steps": self.num_timesteps}
        return SimpleNamespace(state=lambda: found)

    def restore(self, state: Mapping[str, Any]) -> None:
        self.earned, self.num_timesteps = np.array(state["earned"]), state["steps"]

    def set_logger(self, logger: Any) -> None: ...


TOY = Method(
    name="best-constant",
    summary="Takes the action that random play was rewarded most for.",
    settings=Settings,
    train=lambda settings, **given: train_learner(
        settings, lambda: BestConstant(settings), BestConstant.iterate, **given
    ),
    load=lambda run: load_learner(run, Settings, BestConstant),
    policy=lambda model, settings, rules: model,
    unsupported=lambda env_id, rules, given: "" if hasattr(rules.action_space(rules.params), "n") else "needs Discrete",
)


@pytest.fixture
def toy(empty_folder: Path) -> Iterator[Method]:
    """Yield the registered method."""
    yield register(TOY)
    methods._registered.remove(TOY)


# ---------------------------------------------------------------------------------------------------- the tests


def test_a_method_of_ones_own_trains_resumes_and_evaluates(toy: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    world = ("-p", "horizon=12", "--total-timesteps", "60", "--seed", "3", "--no-progress")
    assert Said("train", "best-constant", "FairHiring-v0", *world, "--out", "whole").code == 0
    with monkeypatch.context() as patch:
        iterate, calls = BestConstant.iterate, []

        def interrupted(learner: BestConstant) -> dict[str, float]:
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return iterate(learner)

        patch.setattr(BestConstant, "iterate", interrupted)
        patch.setattr(methods, "_registered", [])
        register(
            Method(
                **{
                    **vars(TOY),
                    "train": lambda s, **given: train_learner(s, lambda: BestConstant(s), interrupted, **given),
                }
            )
        )
        said = Said("train", "best-constant", "FairHiring-v0", *world, "--out", "part")
        assert said.code == 130 and "continue with: fair-envs train --out part --resume" in said.flat
    assert Said("train", "--out", "part", "--resume", "--no-progress").code == 0
    for name in ("metrics.csv", "config.json"):
        assert Path("part", name).read_text() == Path("whole", name).read_text()
    whole, part = (TOY.load(Path(name))[0] for name in ("whole", "part"))
    assert whole.earned.tolist() == part.earned.tolist() and whole.num_timesteps == 60
    said = Said("evaluate", "part", "--episodes", "3", "--no-progress")
    assert said.code == 0, said.text
    assert "total_return" in said.text and "demographic_parity" in said.text
    report = json.loads(Path("part", "evaluation-1", "report.json").read_text())
    assert (report["episodes"], report["training"]["algorithm"]) == (3, "best-constant")
    played = Said(
        "evaluate", "FairHiring-v0", "-p", "horizon=12", "--policy", "part", "--episodes", "3", "--no-progress"
    )
    assert played.code == 0, played.text


def test_a_method_of_ones_own_is_listed_with_its_options(toy: Method) -> None:
    shown = Said("show", "methods").flat
    assert "best-constant Takes the action" in shown
    assert "best-constant: needs Discrete." in shown
    assert "Random steps to learn from. [100; an integer at least 1]" in Said("train", "best-constant", "--help").flat
    expected = "method must support FairCollege-v0, got 'best-constant', which needs Discrete; no method supports it"
    assert expected in mistake("train", "best-constant", "FairCollege-v0")
    with pytest.raises(ValueError, match="name must be new, got 'best-constant', which is already a method"):
        register(TOY)


def test_the_types_of_the_fields_define_the_allowed_values(toy: Method) -> None:
    for options, line in {
        ("--steps", "-1"): "--total-timesteps or --steps must be at least 1, got -1",
        ("--seed", "abc"): "--seed must be an integer, got 'abc'",
    }.items():
        assert mistake("train", "best-constant", "FairHiring-v0", *options) == line
    with pytest.raises(ValueError, match="steps must be at least 1, got -1"):
        Settings(env_id="FairHiring-v0", steps=-1)
    with pytest.raises(ValueError, match="parameters must contain only numbers, strings and booleans"):
        Settings(env_id="FairHiring-v0", parameters={"horizon": object()})


def test_the_default_of_every_setting_is_one_of_its_allowed_values() -> None:
    for method in methods.methods():
        kinds = get_type_hints(method.settings, include_extras=True)
        for one in method.fields():
            if one.name not in UNASKED:
                assert checked(one.name, one.default, kinds[one.name]) == one.default, (method.name, one.name)


OWN_METHOD = """
from fair_envs.baselines.methods import Method, register
from tests.baselines.test_methods import TOY
register(Method(**{**vars(TOY), "name": "best-constant"}))
"""


def test_a_method_of_ones_own_module_is_imported_by_name(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own_method.py").write_text(OWN_METHOD)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(methods, "_registered", [])
    named, small = ("--import", "own_method"), ("-p", "horizon=12", "--steps", "10", "--no-progress")
    said = Said(*named, "train", "best-constant", "FairHiring-v0", *small, "--out", "run")
    assert said.code == 0 and "measure it with: fair-envs --import own_method evaluate run" in said.flat, said.text
    assert "best-constant" in Said("show", "methods", *named).text
    methods._registered.clear()
    sys.modules.pop("own_method")
    expected = "run was trained with the method 'best-constant', which is not registered; import the module"
    for command in (("evaluate", "run"), ("train", "--resume", "--out", "run")):
        assert expected in mistake(*command)
        assert Said(*command, *named, "--no-progress").code == 0
        methods._registered.clear()
        sys.modules.pop("own_method")


def test_every_method_says_which_environments_it_supports() -> None:
    for method, reasons in methods.supported():
        assert set(reasons) == set(TABLE)
        assert not all(reasons.values()) or method.name == "none", method.name
        for env_id, why in reasons.items():
            if not why:
                assert method_for(method.name, env_id).name == method.name


def test_every_setting_of_every_method_has_a_sentence() -> None:
    for method in methods.methods():
        told = {one.name: one.metadata["help"] for one in method.fields()}
        assert all(text[0].isupper() and text.endswith(".") for text in told.values()), method.name
        assert {"steps", "seed"} <= set(told) and method.unused <= {f.name for f in fields_of(method)}


def fields_of(method: Method) -> Any:
    """Return all fields of a method's settings."""
    import dataclasses

    return dataclasses.fields(method.settings)
