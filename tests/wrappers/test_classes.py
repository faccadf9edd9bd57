"""Each wrapper is one class on every interface: `isinstance`, `repr` and `inspect.signature` work."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AsyncVectorEnv, VectorWrapper
from pettingzoo.utils.wrappers import BaseParallelWrapper

from fair_envs.envs import harvest
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv, VecEnvWrapper
from fair_envs.metrics.history import Full
from fair_envs.wrappers import (
    DelayedFeedback,
    FairEfficiency,
    FairnessObjectives,
    FairnessPenalty,
    FenReward,
    GapObjectives,
    GapPenalty,
    HiddenAttribute,
    HideSensitive,
    LateFeedback,
    Objectives,
    Penalty,
    Recorder,
    RecordFairness,
    ReportActionMasks,
    ReportActionProbs,
    ReportedMasks,
    ReportedProbs,
    Scalarisation,
    Scalarise,
    SocialReward,
    SocialUtility,
    SwappedAttribute,
    SwapSensitive,
    Transform,
    VectorReward,
    Wrapper,
)
from tests import ferry
from tests.helpers import LITTLE

WRAPPERS: dict[type[Wrapper], tuple[type[Transform], dict[str, Any]]] = {
    DelayedFeedback: (LateFeedback, {"delay": 2}),
    FairnessObjectives: (GapObjectives, {"notions": ["consistency"], "history": Full()}),
    FairnessPenalty: (Penalty, {"alpha": 0.5}),
    FenReward: (FairEfficiency, {"largest": 5.0}),
    HideSensitive: (HiddenAttribute, {}),
    ReportActionMasks: (ReportedMasks, {}),
    RecordFairness: (Recorder, {}),
    ReportActionProbs: (ReportedProbs, {"policy": "uniform"}),
    Scalarise: (Scalarisation, {"form": "gini"}),
    SocialReward: (SocialUtility, {"envy": 1.0}),
    SwapSensitive: (SwappedAttribute, {}),
    VectorReward: (Objectives, {"per": "group"}),
}
EACH_WRAPPER = pytest.mark.parametrize("kind", WRAPPERS, ids=lambda kind: kind.__name__)
INTERFACES: dict[str, tuple[Callable[[Any], Any], type[Any]]] = {
    "single": (lambda module: module.Env(**size(module)), gym.Wrapper),
    "vector": (lambda module: module.Vector(2, **size(module)), VectorWrapper),
    "parallel": (lambda module: module.Parallel(**size(module)), BaseParallelWrapper),
    "rows of lanes": (lambda module: LanesVecEnv(rules(module), 2), VecEnvWrapper),
    "rows of agents": (lambda module: AgentsVecEnv(rules(module), 2), VecEnvWrapper),
}
EACH_INTERFACE = pytest.mark.parametrize("interface", INTERFACES)


def size(module: Any) -> dict[str, Any]:
    return LITTLE if module is harvest else {}


def rules(module: Any) -> Any:
    return Harvest(**LITTLE) if module is harvest else ferry.Ferry()


def made(kind: type[Wrapper], interface: str) -> Any:
    """Return a small environment in a wrapper; of a decision-maker for what only one can have."""
    env = INTERFACES[interface][0](ferry if kind is DelayedFeedback else harvest)
    return kind(VectorReward(env) if kind is Scalarise else env, **WRAPPERS[kind][1])


@EACH_WRAPPER
@EACH_INTERFACE
def test_a_wrapped_environment_is_of_the_wrappers_class_and_of_its_interface(
    kind: type[Wrapper], interface: str
) -> None:
    env = made(kind, interface)
    assert isinstance(env, kind) and isinstance(env, Wrapper) and isinstance(env, INTERFACES[interface][1])
    assert [other for other in WRAPPERS if isinstance(env, other)] == [kind]
    assert isinstance(env.bound.transform, WRAPPERS[kind][0])
    assert type(env).__name__ == kind.__name__ and type(env).__module__ == kind.__module__
    assert repr(env).startswith(f"<{kind.__name__}")
    outer: Any = HideSensitive(env)
    assert "HideSensitive" in repr(outer) and kind.__name__ in repr(outer)
    assert not isinstance(outer, kind) or kind is HideSensitive
    for twin in (copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert type(twin) is type(env)


@EACH_WRAPPER
def test_a_wrappers_signature_is_that_of_its_transform_after_the_environment(kind: type[Wrapper]) -> None:
    first, *own = inspect.signature(kind).parameters.values()
    transform = inspect.signature(WRAPPERS[kind][0]).parameters
    assert first.name == "env" and {one.name for one in own} >= {*transform}
    told = {one.name: (one.kind, one.default) for one in own if one.name in transform}
    assert told == {name: (one.kind, one.default) for name, one in transform.items()}
    documented = {line.strip().partition(":")[0] for line in (inspect.getdoc(kind) or "").splitlines()}
    assert {one.name for one in (first, *own)} <= documented


def test_the_penalty_on_decisions_has_the_defaults_of_its_transform() -> None:
    defaults = {one.name: one.default for one in inspect.signature(FairnessPenalty).parameters.values()}
    gaps = {one.name: one.default for one in inspect.signature(GapPenalty).parameters.values()}
    assert all(defaults[name] == gaps[name] for name in ("alpha", "keep", "undefined"))
    env: Any = FairnessPenalty(ferry.Env(), notions="SP", history=Full())
    assert isinstance(env, FairnessPenalty) and isinstance(env.bound.transform, GapPenalty)


class Mild(FairnessPenalty):
    """A wrapper of one's own."""

    def __init__(self, env: Any) -> None:
        super().__init__(env, alpha=0.1)


@EACH_INTERFACE
def test_a_subclass_is_a_wrapper_too(interface: str) -> None:
    env: Any = Mild(INTERFACES[interface][0](harvest))
    assert isinstance(env, Mild) and isinstance(env, FairnessPenalty) and repr(env).startswith("<Mild")
    assert env.bound.transform.alpha == 0.1
    assert type(pickle.loads(pickle.dumps(env))) is type(env)


def wrapped_ferry() -> Any:
    return FairnessPenalty(ferry.Env(), notions="SP", history=Full())


def test_wrapped_environments_play_in_processes_of_their_own() -> None:
    env = AsyncVectorEnv([wrapped_ferry] * 2)
    env.reset(seed=1)
    info = env.step(env.action_space.sample())[4]
    assert info["fair_gaps"].shape == (2, 1)
    env.close()
