"""Wrappers on a Gymnasium environment of one's own that tells the record: the same numbers as on the rules."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from numpy.typing import NDArray

from fair_envs.core.interactions import FairSpec, record
from fair_envs.metrics import GroupNotion, IndividualFairness
from fair_envs.metrics.history import Discounted, Full, SlidingWindow
from fair_envs.wrappers import (
    DelayedFeedback,
    FairnessObjectives,
    FairnessPenalty,
    HideSensitive,
    ReportActionProbs,
    Scalarise,
    SocialReward,
    SwapSensitive,
    Twins,
    VectorReward,
    counterfactual_observation,
    decision_gap,
)
from tests.ferry import BOARD, REFUSE, Env, Vector

SIZE: dict[str, Any] = {"seats": 4, "horizon": 12}
NOTIONS: Any = ["SP", "EO", GroupNotion(name="PP", undefined="unfair")]


class Own(gym.Env[Any, Any]):
    """The ferry as somebody else's environment: nothing but Gymnasium's interface, and the record."""

    def __init__(self, **size: Any) -> None:
        self._ferry = Env(**size)
        self.observation_space, self.action_space = self._ferry.observation_space, self._ferry.action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._ferry.reset(seed=seed)

    def step(self, action: Any) -> Any:
        return self._ferry.step(action)


class WithSpec(gym.Wrapper[Any, Any, Any, Any]):
    """Says what the record is about."""

    fair_spec = Env(**SIZE).fair_spec


def own() -> Any:
    return RecordEpisodeStatistics(WithSpec(TimeLimit(Own(**SIZE), 100)))


def likely(observation: NDArray[Any]) -> NDArray[Any]:
    board = 1 / (1 + np.exp(-observation @ np.array([1.0, -2.0, 1.5])))
    return np.stack([1 - board, board], axis=-1)


STACKS: dict[str, Callable[[Any], Any]] = {
    "objectives": lambda env: FairnessObjectives(env, NOTIONS, SlidingWindow(9)),
    "penalty": lambda env: FairnessPenalty(env, notions=["SP", "EO"], history=Discounted(0.9), alpha=[1, 2]),
    "two": lambda env: FairnessObjectives(
        FairnessPenalty(env, notions="SP", history=Full(), keep=False), NOTIONS, Full(), undefined="unfair"
    ),
    "one number": lambda env: Scalarise(FairnessObjectives(env, NOTIONS, SlidingWindow(9)), "gini"),
    "late": lambda env: FairnessObjectives(DelayedFeedback(env, delay=3, rows=1), NOTIONS, SlidingWindow(9)),
    "late, accepted": lambda env: FairnessObjectives(
        DelayedFeedback(env, delay=2, only="accepted"), ["SP", "PP", "OAE"], Full()
    ),
    "uniform": lambda env: FairnessObjectives(ReportActionProbs(env, "uniform"), [IndividualFairness()], Full()),
    "told below": lambda env: FairnessObjectives(ReportActionProbs(env, likely), ["IF", "SP"], SlidingWindow(9)),
    "told above": lambda env: ReportActionProbs(FairnessObjectives(env, ["IF", "SP"], SlidingWindow(9)), likely),
    "through others": lambda env: ReportActionProbs(
        TimeLimit(FairnessObjectives(TimeLimit(env, 50), ["IF"], SlidingWindow(9)), 50), likely
    ),
}


@pytest.mark.parametrize("wrap", STACKS.values(), ids=STACKS.keys())
def test_the_numbers_are_those_of_the_same_environment_made_of_rules(wrap: Callable[[Any], Any]) -> None:
    ours, theirs = wrap(Env(**SIZE)), wrap(own())
    assert theirs.fair_spec == ours.fair_spec
    luck = np.random.default_rng(1)
    for seed in range(4):
        (seen, told), (also, info) = ours.reset(seed=seed), theirs.reset(seed=seed)
        over = False
        while not over:
            assert np.array_equal(seen, also) and set(told) <= set(info)
            assert all(np.array_equal(info[name], column) for name, column in told.items())
            action = luck.integers(0, 2)
            seen, reward, terminated, truncated, told = ours.step(action)
            also, same, *ends, info = theirs.step(action)
            assert np.array_equal(reward, same) and ends == [terminated, truncated]
            over = terminated or truncated
    ours, theirs = ours.unwrapped.histories, theirs.get_wrapper_attr("histories")
    assert [len(one) for one in ours] == [len(one) for one in theirs] != []


def test_a_vector_has_its_space() -> None:
    env: Any = FairnessObjectives(own(), NOTIONS, Full())
    env.reset(seed=1)
    assert env.step(BOARD)[1] in env.reward_space
    assert env.reward_space.shape == (4,) and env.unwrapped.reward_dim == 4


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_leaves_the_history_alone(duplicate: Any) -> None:
    env: Any = FairnessObjectives(ReportActionProbs(own(), likely), ["IF", "SP"], SlidingWindow(9))
    env.reset(seed=2)
    env.step(BOARD)
    twin = duplicate(env)
    ahead = [twin.step(action)[1] for action in (REFUSE, REFUSE, BOARD)]
    assert [len(one.histories[0]) for one in (env, twin)] == [1, 4]
    assert np.array_equal([env.step(action)[1] for action in (REFUSE, REFUSE, BOARD)], ahead)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*The reward returned by `step")  # it is a vector
@pytest.mark.filterwarnings("ignore:.*not having a spec")
def test_gymnasiums_check_passes() -> None:
    check_env(FairnessObjectives(DelayedFeedback(own(), delay=2), ["SP"], Full()), skip_render_check=True)


# ------------------------------------------------------------------------------------------------ what others return

GROUPS = ("a", "b")
SPEC = FairSpec(individuals=2, actions=2, features=(), sensitive={"s": GROUPS}, groups=GROUPS)


class Desk(gym.Env[Any, Any]):
    """Decides on two people at once; says what it is told to say."""

    fair_spec = SPEC
    action_space = gym.spaces.MultiBinary(2)

    def __init__(self, *, start: Any = None, told: Any = None, reward: Any = 1.0, dict_space: bool = False) -> None:
        self.start = record(SPEC) if start is None else start
        two = {"individual": [0, 1], "sensitive": [[0], [1]], "group": [0, 1]}
        self.told = record(SPEC, **two, action=[1, 0]) if told is None else told
        self.reward = reward
        box = gym.spaces.Discrete(3)
        self.observation_space: Any = gym.spaces.Dict({"queue": box}) if dict_space else box
        self.seen: Any = {"queue": 2} if dict_space else 2

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.seen, self.start

    def step(self, action: Any) -> Any:
        return self.seen, self.reward, False, False, self.told


def test_several_people_a_step_and_observations_that_are_no_arrays_are_met() -> None:
    for env in (Desk(), Desk(dict_space=True)):
        wrapped: Any = FairnessObjectives(ReportActionProbs(env, "uniform"), ["SP"], Full())
        assert wrapped.reset()[0] is env.seen
        seen, vector, *_, info = wrapped.step([1, 0])
        assert seen is env.seen and vector.tolist() == [1.0, -1.0]
        assert info["fair_action_probs"].tolist() == [[0.5, 0.5]] * 2
        assert not env.told["fair_action_probs"].any()
    with pytest.raises(ValueError, match="policy must be 'uniform' if observations are not arrays, got"):
        ReportActionProbs(Desk(dict_space=True), likely)


def test_probabilities_in_the_record_are_kept() -> None:
    told = record(SPEC, individual=[0, 1], sensitive=[[0], [1]], action=[1, 0], action_probs=[[0.25, 0.75], [1, 0]])
    env: Any = FairnessObjectives(Desk(told=told), ["SP"], Full())
    env.reset()
    assert env.step([1, 0])[4]["fair_action_probs"].tolist() == [[0.25, 0.75], [1, 0]]


@pytest.mark.parametrize(
    ("desk", "message"),
    [
        ({"start": {}}, r"info must contain fair_envs.core.interactions.record: fair_\w+, shape \(2,\), got None"),
        (
            {"start": record(SPEC, action=[1, 0])},
            "fair_decided must be 0 after a reset, which makes no decision, got 1",
        ),
        ({"told": record(SPEC)}, "fair_decided must be 1 after a step, which makes a decision, got 0"),
        ({"told": record(SPEC, action=[1, 0]) | {"fair_action": 1}}, r"record: fair_action, shape \(2,\), got \(\)"),
        ({"reward": np.zeros(2)}, r"reward must have one number for each lane and agent, got shape \(2,\)"),
    ],
)
def test_what_is_not_told_is_named(desk: Any, message: str) -> None:
    env: Any = FairnessObjectives(Desk(**desk), ["SP"], Full())
    with pytest.raises(ValueError, match=message):
        env.reset(), env.step([1, 0])


def test_an_environment_that_is_played_inside_is_no_layer() -> None:
    class Inside(Own):
        fair_spec = Env(**SIZE).fair_spec

        def __init__(self) -> None:
            super().__init__(**SIZE)
            self._ferry = self.env = FairnessPenalty(Env(**SIZE), notions="SP", history=Full())

    env: Any = FairnessObjectives(Inside(), ["SP"], SlidingWindow(9))
    env.reset(seed=1)
    env.step(BOARD)
    assert [len(history) for history in env.histories] == [1]
    assert len(env.unwrapped.env.unwrapped.histories) == 1


def test_an_environment_without_static_facts_is_no_environment_to_wrap() -> None:
    with pytest.raises(TypeError, match="with its FairSpec as fair_spec, which the wrapper Annotate adds, got <"):
        FairnessObjectives(Own(), ["SP"], Full())


@pytest.mark.parametrize("wrap", [HideSensitive, SwapSensitive, SocialReward, VectorReward, FairnessPenalty])
def test_what_needs_the_rules_or_the_same_agents_refuses(wrap: Any) -> None:
    with pytest.raises(
        ValueError, match=r"(must be an environment of fair_envs for \w+, got Own|needs agents that earn rewards)"
    ):
        wrap(own())


@pytest.mark.parametrize("ask", [counterfactual_observation, lambda env: decision_gap(env, likely), Twins])
def test_what_plays_other_worlds_refuses(ask: Any) -> None:
    with pytest.raises(TypeError, match="env must be an environment of fair_envs"):
        ask(FairnessObjectives(own(), ["SP"], Full()))


# ------------------------------------------------------------------------------------------------- several side by side


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("name", ["objectives", "penalty", "two", "one number", "late", "late, accepted", "told below"])
def test_a_vector_environment_has_the_numbers_of_the_same_one_made_of_rules(mode: AutoresetMode, name: str) -> None:
    ours = STACKS[name](Vector(3, autoreset_mode=mode, **SIZE))
    theirs = STACKS[name](gym.vector.SyncVectorEnv([own] * 3, autoreset_mode=mode))
    assert theirs.fair_spec == ours.fair_spec
    luck = np.random.default_rng(1)
    check_reports(ours.reset(seed=1), theirs.reset(seed=1))
    for _ in range(30):
        actions = luck.integers(0, 2, 3)
        step, same = ours.step(actions), theirs.step(actions)
        check_reports((step[0], step[-1]), (same[0], same[-1]))
        assert all(np.array_equal(one, other) for one, other in zip(step[1:4], same[1:4], strict=True))
        if mode is AutoresetMode.DISABLED and (done := step[2] | step[3]).any():
            options = ({"reset_mask": done.copy()} for _ in range(2))
            check_reports(ours.reset(options=next(options)), theirs.reset(options=next(options)))
    assert [len(one) for one in ours.unwrapped.histories] == [len(one) for one in theirs.histories] != []


def check_reports(ours: Any, theirs: Any) -> Any:
    """Fail unless two vector environments show and report the same; return what the first reports."""
    (seen, told), (also, info) = ours, theirs
    assert np.array_equal(seen, also) and set(told) <= set(info)
    for name, column in told.items():
        if name == "final_info":
            assert all(np.array_equal(column[key], info[name][key]) for key in column)
        elif name == "final_obs":
            pairs = zip(column, info[name], strict=True)
            assert all(np.array_equal(one, other) for one, other in pairs if one is not None)
        else:
            assert np.array_equal(column, info[name]), name
    return told


def test_lanes_that_are_held_make_no_decision() -> None:
    env: Any = FairnessObjectives(gym.vector.SyncVectorEnv([own] * 2), ["SP"], SlidingWindow(9), keep=True)
    env.reset(seed=1)
    env.hold(np.array([True, False]))
    assert env.step(np.array([BOARD, BOARD]))[-1]["fair_decided"].tolist() == [0, 1]
    assert env.step(np.array([BOARD, BOARD]))[-1]["fair_decided"].tolist() == [1, 1]
    assert [env.histories[0].columns(lane)["action"].shape[0] for lane in (0, 1)] == [1, 2]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_pareto_conditioned_networks_learn_the_same_on_it(mode: AutoresetMode) -> None:
    pytest.importorskip("moocore")
    baselines: Any = pytest.importorskip("fair_envs.baselines")
    settings = baselines.PCNSettings(first_episodes=7, episodes=4, updates=2, batch_size=16)

    def learned(envs: Any) -> Any:
        env = FairnessObjectives(envs, ["SP", "EO"], SlidingWindow(50))
        return baselines.PCN(env, settings=settings, seed=3).learn(150)

    ours = learned(Vector(3, autoreset_mode=mode, **SIZE))
    theirs = learned(gym.vector.SyncVectorEnv([own] * 3, autoreset_mode=mode))
    assert [len(history) for history in ours.env.histories] == [len(history) for history in theirs.env.histories]
    for one, other in zip(ours.network.parameters(), theirs.network.parameters(), strict=True):
        assert np.array_equal(one.detach(), other.detach())
    assert len(theirs.blank_env.histories[0]) == 0 < len(theirs.env.histories[0])


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_observations_of_a_vector_environment_need_not_be_arrays(mode: AutoresetMode) -> None:
    envs: Any = gym.vector.SyncVectorEnv([lambda: TimeLimit(Desk(dict_space=True), 1)] * 2, autoreset_mode=mode)
    env: Any = FairnessObjectives(envs, ["SP"], Full())
    assert env.reset()[0]["queue"].tolist() == [2, 2]
    seen, vector, *_ = env.step(np.array([[1, 0], [1, 0]]))
    assert seen["queue"].tolist() == [2, 2] and vector.tolist() == [[1, -1]] * 2


def test_environments_in_processes_are_met() -> None:
    env: Any = FairnessObjectives(gym.vector.AsyncVectorEnv([own] * 2), ["SP"], Full())
    env.reset(seed=1)
    assert env.step(np.array([BOARD, REFUSE]))[1].shape == (2, 2)
    env.close()


def test_vector_environments_without_a_record_are_refused() -> None:
    with pytest.raises(TypeError, match="with its FairSpec as fair_spec, which the wrapper Annotate adds, got"):
        FairnessObjectives(gym.vector.SyncVectorEnv([lambda: Own(**SIZE)]), ["SP"], Full())
    with pytest.raises(ValueError, match="env must have the same FairSpec in all its environments"):
        FairnessObjectives(gym.vector.SyncVectorEnv([own, lambda: DelayedFeedback(own(), delay=2)]), ["SP"], Full())
    env: Any = FairnessObjectives(gym.vector.SyncVectorEnv([lambda: Desk(start={})]), ["SP"], Full())
    with pytest.raises(ValueError, match=r"info must contain .*record, fair_individual is missing"):
        env.reset()


def test_several_are_several_wrapped_ones() -> None:
    mo: Any = pytest.importorskip("mo_gymnasium.wrappers.vector")
    vectors: Any = mo.MOSyncVectorEnv([lambda: FairnessObjectives(own(), NOTIONS, SlidingWindow(9))] * 2)
    numbers: Any = gym.vector.SyncVectorEnv([lambda: FairnessPenalty(own(), notions="SP", history=Full())] * 2)
    vectors.reset(seed=1), numbers.reset(seed=1)
    for _ in range(3):
        vector, info = vectors.step(np.array([BOARD, REFUSE]))[1::3]
        number = numbers.step(np.array([BOARD, REFUSE]))[1]
        assert vector.shape == (2, 4) and info["fair_gaps"].shape == (2, 3)
        assert np.allclose(number, vector[:, 0] + vector[:, 1])
