"""The same wrapper gives the same numbers on every face, over whole episodes and several of them."""

import copy
import functools
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from pettingzoo.test.parallel_test import parallel_api_test
from stable_baselines3.common.vec_env import VecMonitor

import fair_envs
from fair_envs.core import Lanes
from fair_envs.envs.harvest import Env, Parallel, Vector
from fair_envs.metrics.followed import ReturnGap
from fair_envs.metrics.history import SlidingWindow
from fair_envs.wrappers import (
    Batch,
    FairEfficiency,
    FairnessPenalty,
    FenReward,
    GapObjectives,
    GapPenalty,
    HiddenAttribute,
    HideSensitive,
    Objectives,
    Penalty,
    Recorder,
    RecordFairness,
    ReportActionProbs,
    Setting,
    SocialReward,
    SocialUtility,
    SwappedAttribute,
    SwapSensitive,
    Transform,
    VectorReward,
    Wrapper,
)
from tests.helpers import LITTLE

SIZE: dict[str, Any] = {**LITTLE}
LANES, AGENTS, DECISIONS, SEED = 3, 8, 30, 5
OFFSETS = (0, 5, 9)  # steps that the lanes' first episodes are shortened by, so that they end at different times
ACTIONS = np.random.default_rng(0).integers(0, 8, (DECISIONS, LANES, AGENTS))

Layer = tuple[Callable[..., Any], type[Transform], dict[str, Any]]

HIDE: Layer = (HideSensitive, HiddenAttribute, {})
PENALTY: Layer = (FairnessPenalty, Penalty, {"alpha": 0.7})
CONDITIONAL: Layer = (FairnessPenalty, Penalty, {"notions": "csp", "alpha": 1.5, "times_group_size": True})
RECORD: Layer = (RecordFairness, Recorder, {})
SOCIAL: Layer = (SocialReward, SocialUtility, {"envy": 2.0, "guilt": 0.1, "smoothing": 0.9, "angle": 30.0})
FEN: Layer = (FenReward, FairEfficiency, {"largest": 5.0, "epsilon": 0.2})
MEASURES: list[Any] = ["return_parity", functools.partial(ReturnGap, spec=Env.rules(**SIZE).spec), "outcome_parity"]
RECORD_MEASURES: Layer = (RecordFairness, Recorder, {"measures": MEASURES})
BENEFITS: Layer = (VectorReward, Objectives, {"per": "group", "rate": "outcome_parity"})
SWAP_WORLD: Layer = (SwapSensitive, SwappedAttribute, {"where": "world", "agents": [0, "agent_3"]})


def measured(kind: type[Transform], **settings: Any) -> Layer:
    """Return a layer with measures; the wrapper of the transform has other names for its arguments."""

    def wrap(env: Any, **given: Any) -> Any:
        return Wrapper(env, kind(**given))

    return wrap, kind, {"measures": MEASURES, **settings}


STACKS: dict[str, list[Layer]] = {  # from inside to outside
    "hide": [HIDE],
    "swap observation": [(SwapSensitive, SwappedAttribute, {"agents": [1, 2]})],
    "swap world": [SWAP_WORLD],
    "penalty": [PENALTY],
    "conditional penalty": [CONDITIONAL],
    "agents' rewards": [(VectorReward, Objectives, {})],
    "groups' rewards": [(VectorReward, Objectives, {"per": "group", "aggregate": "sum"})],
    "record": [RECORD],
    "record measures": [RECORD_MEASURES],
    "penalty on the change of measures": [measured(GapPenalty, charge="change", alpha=[0.5, 1.0, 2.0])],
    "penalty on the value of measures": [measured(GapPenalty)],
    "objectives of measures": [PENALTY, measured(GapObjectives)],
    "groups' benefits": [BENEFITS],
    "fair-efficient": [FEN],
    "social": [SOCIAL],
    "stack": [SWAP_WORLD, RECORD, PENALTY, HIDE, SOCIAL, (VectorReward, Objectives, {"per": "group"})],
}
EACH_STACK = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS.keys())


class Event(NamedTuple):
    """What one lane shows after a start or a decision."""

    observation: NDArray[Any]  # (agents, features)
    reward: NDArray[Any] | None = None  # (agents,); None: a start
    number: float = 0.0  # the scalar reward of all agents
    vector: NDArray[Any] | None = None
    over: bool = False
    added: dict[str, Any] | None = None  # None: the face does not tell


Log = list[list[Event]]  # of each lane


def wrapped(env: Any, stack: Sequence[Layer]) -> Any:
    for wrap, _, settings in stack:
        env = wrap(env, **settings)
    return env


def shortened(env: Any, lanes: Iterable[int] = range(LANES)) -> Any:
    """Return the environment, set to a later time of its first episodes."""
    env.unwrapped.lanes.records["time"] = [OFFSETS[lane] for lane in lanes]
    return env


def has_vector(stack: Sequence[Layer]) -> bool:
    return any(kind in (Objectives, GapObjectives) for _, kind, _ in stack)


def names_added(stack: Sequence[Layer]) -> set[str]:
    names = set()
    for _, kind, settings in stack:
        if kind is Penalty or settings.get("charge") == "change":
            names.add("fair_penalty_cost")
        if kind in (GapPenalty, GapObjectives):
            names |= {"fair_gaps", "fair_gaps_defined"}
        if kind is Recorder and "measures" in settings:
            names |= {f"fair_episode_measure_{n}{d}" for n in ("final", "mean") for d in ("", "_defined")}
        if kind is Recorder:
            names |= {f"fair_episode_{name}" for name in ("over", "length", "return")}
            names |= {f"fair_episode_{n}_{f}" for n in ("dp", "csp") for f in ("difference", "ratio", "defined")}
    return names


def of_info(info: dict[str, Any], stack: Sequence[Layer]) -> dict[str, Any]:
    return {name: info[name] for name in names_added(stack)}


def assert_equal(log: Log, expected: Log) -> None:
    assert [len(lane) for lane in log] == [len(lane) for lane in expected]
    for own, other in zip(chain.from_iterable(log), chain.from_iterable(expected), strict=True):
        assert np.array_equal(own.observation, other.observation)
        assert (own.reward is None) == (other.reward is None)
        assert own.over == other.over
        if own.reward is not None and other.reward is not None:
            assert np.array_equal(own.reward, other.reward)
            assert own.number == other.number
            assert (own.vector is None) == (other.vector is None)
            assert own.vector is None or np.array_equal(own.vector, other.vector)  # type: ignore[arg-type]
        if own.added is not None and other.added is not None:
            assert own.added.keys() == other.added.keys()
            for name, value in own.added.items():
                assert np.array_equal(value, other.added[name]), name
                assert np.asarray(value).dtype == np.asarray(other.added[name]).dtype, name


# The expected numbers: transforms called by hand, lane by lane -------------------------------------------------------


class ByHand:
    """One lane and its transforms, without any face."""

    def __init__(self, stack: Sequence[Layer], lane: int) -> None:
        rules = Env.rules(**SIZE)
        self.lanes = Lanes(rules, 1)
        self.lanes.seed(SEED + lane)
        self.transforms = [kind(**settings) for _, kind, settings in stack]
        space = rules.observation_space(rules.params)
        for transform in self.transforms:
            transform.bind(Setting(lanes=self.lanes, observation_space=space))
            space = transform.space(space)

    def event(self, step: Any, *, start: bool) -> Event:
        over = step.terminated | step.truncated
        first = np.array([start])
        batch = Batch(step.observation, step.reward, step.facts, decided=~first, first=first, done=over)
        added = {}
        for transform in self.transforms:
            batch = transform(batch)
            added.update({name: column[0] for name, column in batch.added.items()})
        if start:
            return Event(batch.observation[0], added=added)
        vector = None if batch.vector is None else batch.vector[0]
        reward = batch.reward[0]
        return Event(batch.observation[0], reward, float(reward.mean()), vector, bool(over[0]), added)


def by_hand(stack: Sequence[Layer]) -> Log:
    log: Log = []
    for lane in range(LANES):
        hand = ByHand(stack, lane)
        events = [hand.event(hand.lanes.restart(), start=True)]
        hand.lanes.records["time"] = OFFSETS[lane]
        for actions in ACTIONS[:, lane]:
            events.append(hand.event(hand.lanes.advance(actions[np.newaxis]), start=False))
            if events[-1].over:
                events.append(hand.event(hand.lanes.restart(), start=True))
        log.append(events)
    return log


# The faces -----------------------------------------------------------------------------------------------------------


def split_reward(reward: Any) -> tuple[float, NDArray[Any] | None]:
    return (0.0, reward) if np.ndim(reward) else (reward, None)


def by_single(stack: Sequence[Layer]) -> Log:
    def begin(env: Any, seed: int | None = None) -> Event:
        observation, info = env.reset(seed=seed)
        return Event(observation.reshape(AGENTS, -1), added=of_info(info, stack))

    log: Log = []
    for lane in range(LANES):
        env = wrapped(Env(**SIZE), stack)
        events = [begin(env, SEED + lane)]
        shortened(env, [lane])
        for actions in ACTIONS[:, lane]:
            observation, reward, _, over, info = env.step(actions)
            number, vector = split_reward(reward)
            number = number if vector is None else info["agent_reward"].mean()
            shown = observation.reshape(AGENTS, -1)
            events.append(Event(shown, info["agent_reward"], number, vector, over, of_info(info, stack)))
            if over:
                events.append(begin(env))
        log.append(events)
    return log


def by_agents(stack: Sequence[Layer]) -> Log:
    def gathered(values: dict[str, Any]) -> NDArray[Any]:
        return np.stack([values[f"agent_{i}"] for i in range(AGENTS)])

    def told(infos: dict[str, dict[str, Any]]) -> dict[str, Any]:
        added = {name: gathered({agent: infos[agent][name] for agent in infos}) for name in names_added(stack)}
        return {name: value if name == "fair_episode_return" else value[0] for name, value in added.items()}

    log: Log = []
    for lane in range(LANES):
        env = wrapped(Parallel(**SIZE), stack)
        observations, infos = env.reset(seed=SEED + lane)
        events = [Event(gathered(observations), added=told(infos))]
        shortened(env, [lane])
        for actions in ACTIONS[:, lane]:
            observations, rewards, _, over, infos = env.step({f"agent_{i}": a for i, a in enumerate(actions)})
            reward, vector = gathered(rewards), None
            if reward.ndim == 2:  # the vector, the same for all; the agents' own rewards are not told
                vector, reward = reward[0], np.full(AGENTS, np.nan)
            assert np.array_equal(env.state(), gathered(observations).reshape(-1))
            events.append(Event(gathered(observations), reward, reward.mean(), vector, over["agent_0"], told(infos)))
            if events[-1].over:
                observations, infos = env.reset()
                events.append(Event(gathered(observations), added=told(infos)))
        log.append(events)
    return log


def by_batch(stack: Sequence[Layer], mode: AutoresetMode) -> Log:
    env = wrapped(Vector(LANES, autoreset_mode=mode, **SIZE), stack)
    observation, info = env.reset(seed=SEED)
    shortened(env)

    def start(lane: int) -> Event:
        return Event(observation[lane].reshape(AGENTS, -1), added={n: info[n][lane] for n in names_added(stack)})

    def decision(lane: int) -> Event:
        told, seen, index = info, observation[lane], lane
        if over[lane] and mode is AutoresetMode.SAME_STEP:
            told, seen = info["final_info"], info["final_obs"][lane]
        number, vector = split_reward(reward[lane])
        own = told["agent_reward"][index]
        number = number if vector is None else own.mean()
        added = {name: told[name][index] for name in names_added(stack)}
        assert all(told["_" + name][index] for name in added)
        return Event(seen.reshape(AGENTS, -1), own, number, vector, bool(over[lane]), added)

    log: Log = [[start(lane)] for lane in range(LANES)]
    taken = np.zeros(LANES, int)
    over = np.zeros(LANES, bool)
    while (taken < DECISIONS).any():
        dead = over & (mode is AutoresetMode.NEXT_STEP)
        actions = ACTIONS[np.minimum(taken, DECISIONS - 1), np.arange(LANES)]
        observation, reward, _, over, info = env.step(actions)
        for lane in range(LANES):
            log[lane].append(start(lane) if dead[lane] else decision(lane))
            if over[lane] and mode is AutoresetMode.SAME_STEP:
                log[lane].append(start(lane))
        taken += ~dead
        if mode is AutoresetMode.DISABLED and over.any():
            observation, info = env.reset(options={"reset_mask": over.copy()})
            for ended in np.flatnonzero(over):
                log[ended].append(start(int(ended)))
            assert not any(info["_" + name][~over].any() or info[name][~over].any() for name in names_added(stack))
            over = np.zeros(LANES, bool)
    return log


def by_rows(stack: Sequence[Layer], rows: str) -> Log:
    env: Any = wrapped(fair_envs.make_sb3("FairHarvest-v0", n_envs=LANES, rows=rows, seed=SEED, **SIZE), stack)  # type: ignore[arg-type]
    first = env.reset().reshape(LANES, AGENTS, -1)
    log: Log = [
        [Event(first[lane], added={n: env.added[n][lane] for n in names_added(stack)})] for lane in range(LANES)
    ]
    shortened(env)
    each = env.num_envs // LANES
    for actions in ACTIONS:
        observation, reward, done, infos = env.step(actions.reshape(-1) if rows == "agents" else actions)
        shown = observation.reshape(LANES, AGENTS, -1)
        for lane in range(LANES):
            own, over, seen = env.agent_reward[lane], bool(done[lane * each]), shown[lane]
            added = {name: env.added[name][lane] for name in names_added(stack)}
            assert np.array_equal(
                reward[lane * each : (lane + 1) * each],
                (own if rows == "agents" else own.mean(keepdims=True)).astype(np.float32),
            )
            if over:
                ends = [infos[lane * each + row] for row in range(each)]
                seen = np.stack([end["terminal_observation"] for end in ends]).reshape(AGENTS, -1)
                assert_told_at_the_end(ends, added)
            vector = env.vector_reward[lane] if has_vector(stack) else None
            log[lane].append(Event(seen, own, own.mean(), vector, over, added))
            if over:
                log[lane].append(Event(shown[lane]))
    return log


def assert_told_at_the_end(infos: Sequence[dict[str, Any]], added: dict[str, Any]) -> None:
    for row, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is True
        for name, value in added.items():
            own = name == "fair_episode_return" and len(infos) > 1
            assert np.array_equal(info[name], value[row] if own else value)


FACES: dict[str, Callable[[Sequence[Layer]], Log]] = {
    "single": by_single,
    "batch, next step": lambda stack: by_batch(stack, AutoresetMode.NEXT_STEP),
    "batch, same step": lambda stack: by_batch(stack, AutoresetMode.SAME_STEP),
    "batch, disabled": lambda stack: by_batch(stack, AutoresetMode.DISABLED),
    "agents": by_agents,
    "rows of agents": lambda stack: by_rows(stack, "agents"),
    "rows of lanes": lambda stack: by_rows(stack, "lanes"),
}


def trimmed(log: Log, *, without_rewards: bool) -> Log:
    """Return the first events of each lane, as many decisions as were planned."""
    kept: Log = []
    for lane in log:
        decisions, events = 0, []
        for event in lane:
            decisions += event.reward is not None
            if decisions > DECISIONS:
                break
            events.append(
                event._replace(reward=np.zeros(0), number=0.0)
                if without_rewards and event.reward is not None
                else event
            )
        kept.append(events)
    return kept


@pytest.mark.parametrize("face", FACES)
@EACH_STACK
def test_the_same_wrapper_gives_the_same_numbers_on_every_face(stack: list[Layer], face: str) -> None:
    hidden = face == "agents" and has_vector(stack)
    log, expected = (trimmed(made, without_rewards=hidden) for made in (FACES[face](stack), by_hand(stack)))
    assert sum(event.over for lane in expected for event in lane) >= 2 * LANES
    assert_equal(log, expected)


# Focal control -------------------------------------------------------------------------------------------------------


def test_under_focal_control_the_focal_agents_own_reward_and_observation_are_changed() -> None:
    settings: dict[str, Any] = {"control": "focal", "focal": "agent_2", **SIZE}
    plain, env = Env(**settings), wrapped(Env(**settings), [SOCIAL, HIDE])
    social = SocialUtility(**SOCIAL[2])
    social.bind(Setting(lanes=plain.lanes, observation_space=plain.observation_space))  # type: ignore[arg-type]
    raw, _ = plain.reset(seed=1)
    shown, _ = env.reset(seed=1)
    for action in ACTIONS[:12, 0, 2]:
        assert raw[2] == 1 and shown[2] == 0
        assert np.array_equal(np.delete(raw, 2), np.delete(shown, 2))
        raw, _, _, over, info = plain.step(action)
        shown, reward, _, _, changed = env.step(action)
        yes, no = np.array([True]), np.array([False])
        utility = social(Batch(raw, info["agent_reward"][np.newaxis], {}, decided=yes, first=no, done=no)).reward[0]
        assert np.array_equal(changed["agent_reward"], utility)
        assert reward == utility[2]
    assert over


# Like Gymnasium's own batch ------------------------------------------------------------------------------------------


def assert_same_info(own: Any, other: Any) -> None:
    assert type(own) is type(other)
    if isinstance(own, dict):
        assert own.keys() == other.keys()
        for name, value in own.items():
            assert_same_info(value, other[name])
    elif own.dtype == object:
        for one, another in zip(own, other, strict=True):
            assert np.array_equal(one, another) if one is not None else another is None
    else:
        assert own.dtype == other.dtype
        assert np.array_equal(own, other)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_wrapped_batch_equals_a_batch_of_wrapped_environments(mode: AutoresetMode) -> None:
    stack = [HIDE, PENALTY, RECORD]
    native = wrapped(Vector(LANES, autoreset_mode=mode, **SIZE), stack)
    sync = SyncVectorEnv([lambda: wrapped(Env(**SIZE), stack)] * LANES, autoreset_mode=mode)
    pair = native, sync
    results: Iterator[Any] = (env.reset(seed=SEED) for env in pair)
    for (observation, info), (other, other_info) in [tuple(results)]:
        assert np.array_equal(observation, other)
        assert_same_info(info, other_info)
    native.unwrapped.lanes.records["time"] = OFFSETS
    for env, time in zip(sync.envs, OFFSETS, strict=True):
        env.unwrapped.lanes.records["time"] = time  # type: ignore[attr-defined]
    for actions in ACTIONS:
        one, two = (env.step(actions) for env in pair)
        for own, other in zip(one[:4], two[:4], strict=True):
            assert own.dtype == other.dtype and np.array_equal(own, other)
        assert_same_info(one[4], two[4])
        over = one[3]
        if mode is AutoresetMode.DISABLED and over.any():
            (seen, info), (other, other_info) = (env.reset(options={"reset_mask": over.copy()}) for env in pair)
            assert np.array_equal(seen, other)
            assert_same_info(info, other_info)


# Conformance ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*The reward returned by `step")
@EACH_STACK
def test_gymnasiums_check_passes_on_the_wrapped_environment(stack: list[Layer]) -> None:
    env = wrapped(gym.make("FairHarvest-v0", **SIZE), stack)
    check_env(env, skip_render_check=True)
    assert env.unwrapped.fair_spec is env.fair_spec


def test_the_spec_makes_the_wrapped_environment_again() -> None:
    env = wrapped(gym.make("FairHarvest-v0", **SIZE), [PENALTY, RECORD])
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert json.loads(env.spec.to_json())["additional_wrappers"][0] == {
        "name": "FairnessPenalty",
        "entry_point": "fair_envs.wrappers.penalty:FairnessPenalty",
        "kwargs": {"alpha": 0.7},
    }
    again = gym.make(spec)
    for one in (env, again):
        one.reset(seed=2)
    for actions in ACTIONS[:12, 0]:
        (_, reward, *_, info), (_, other, *_, other_info) = env.step(actions), again.step(actions)
        assert reward == other
        assert np.array_equal(info["fair_episode_return"], other_info["fair_episode_return"])


@pytest.mark.parametrize("name", [name for name, stack in STACKS.items() if not has_vector(stack)])  # numbers only
def test_pettingzoos_test_passes_on_the_wrapped_environment(name: str) -> None:
    env = wrapped(Parallel(**SIZE), STACKS[name])
    parallel_api_test(env, num_cycles=30)
    assert env.state_space.shape == env.state().shape


class StepCount(Transform):
    """Adds how many steps each lane has taken in its episode, and doubles the rewards."""

    changes_reward = True

    def bind(self, setting: Setting) -> None:
        self.steps = np.zeros(setting.lanes.count, np.int64)

    def __call__(self, batch: Batch) -> Batch:
        self.steps = np.where(batch.first, 0, self.steps + batch.decided)
        return batch._replace(reward=2 * batch.reward, added={"steps": self.steps})


def test_a_plain_transform_serves_many_environments() -> None:
    count = StepCount()
    pair = [Wrapper(gym.make("FairHarvest-v0", **SIZE), count) for _ in range(2)]
    for env in pair:
        env.reset(seed=0)
    for taken in (1, 2, 3):
        assert [env.step(ACTIONS[0, 0])[4]["steps"] for env in pair] == [taken, taken]
    assert not hasattr(count, "steps")
    assert gym.make(pair[0].spec).reset()[1]["steps"] == 0


class CountSteps(Wrapper):
    """A wrapper of one's own."""

    def __init__(self, env: Any) -> None:
        super().__init__(env, StepCount())


def test_a_wrapper_of_ones_own_needs_no_adapter() -> None:
    env: Any = CountSteps(Vector(LANES, autoreset_mode="Disabled", **SIZE))
    env.reset(seed=0)
    for taken in (1, 2, 3):
        _, reward, _, _, info = env.step(ACTIONS[0])
        assert info["steps"].tolist() == [taken] * LANES
        assert np.array_equal(reward, info["agent_reward"].mean(axis=1))
    _, info = env.reset(options={"reset_mask": np.array([False, True, False])})
    assert info["steps"].tolist() == [0, 0, 0]  # of the second lane; the others do not tell
    assert info["_steps"].tolist() == [False, True, False]
    assert env.step(ACTIONS[0])[4]["steps"].tolist() == [4, 1, 4]


# The vector reward's space -------------------------------------------------------------------------------------------


def test_the_vector_rewards_space_is_on_the_unwrapped_environment_too() -> None:
    env: Any = VectorReward(gym.make("FairHarvest-v0", **SIZE), per="group")
    env.reset(seed=0)
    reward = env.step(ACTIONS[0, 0])[1]
    assert env.reward_space is env.unwrapped.reward_space
    assert env.reward_space.shape == (2,) and reward in env.reward_space
    batch: Any = VectorReward(Vector(LANES, **SIZE))
    batch.reset(seed=0)
    assert batch.reward_space == batch.unwrapped.reward_space
    assert all(reward in batch.reward_space for reward in batch.step(ACTIONS[0])[1])
    assert batch.unwrapped.single_reward_space.shape == (AGENTS,)
    agents: Any = VectorReward(Parallel(**SIZE))
    assert agents.reward_space("agent_1").shape == (AGENTS,)
    assert agents.unwrapped.reward_spaces["agent_1"].shape == (AGENTS,)


def test_an_array_of_the_vector_reward_is_the_callers_own() -> None:
    env: Any = VectorReward(Parallel(**SIZE))
    env.reset(seed=0)
    rewards = env.step({f"agent_{i}": 0 for i in range(AGENTS)})[1]
    rewards["agent_0"][:] = 99
    assert not (rewards["agent_1"] == 99).any()


@pytest.mark.parametrize("make", [Env, Vector, Parallel])
def test_nothing_changes_rewards_above_a_vector(make: Callable[..., Any]) -> None:
    env: Any = VectorReward(make(**SIZE))
    for wrap in (FairnessPenalty, SocialReward, VectorReward):
        with pytest.raises(ValueError, match="env must have a reward that is a number"):
            wrap(env)
    assert RecordFairness(env) is not None


@pytest.mark.parametrize("make", [Env, Vector, Parallel])
def test_what_would_count_itself_twice_is_refused(make: Callable[..., Any]) -> None:
    for wrap, why in (
        (FairnessPenalty, "env must have no FairnessPenalty yet, a second FairnessPenalty would count"),
        (SocialReward, "env must have no SocialReward yet, a second SocialReward would treat utilities as rewards"),
        (RecordFairness, "env must have no RecordFairness yet, RecordFairness reports on only one set of rewards"),
    ):
        env: Any = HideSensitive(wrap(make(**SIZE)))
        with pytest.raises(ValueError, match=why):
            wrap(env)
    assert RecordFairness(SocialReward(FairnessPenalty(make(**SIZE)))) is not None


def test_gaps_are_taken_from_the_reward_once_and_one_policy_reports() -> None:
    refused = "env must have no FairnessPenalty yet, pass all notions to one FairnessPenalty"
    kinds: list[dict[str, Any]] = [{}, {"notions": "individual_fairness", "history": SlidingWindow(9)}]
    for below in kinds:
        env: Any = FairnessPenalty(Env(**SIZE), **below)
        with pytest.raises(ValueError, match=refused):
            FairnessPenalty(env, notions="consistency", history=SlidingWindow(9))
    with pytest.raises(ValueError, match="env must have no ReportActionProbs yet, only one policy's probabilities"):
        ReportActionProbs(ReportActionProbs(Env(**SIZE), "uniform"), "uniform")


@pytest.mark.parametrize("env_id", ["FairAttention-v0", "FairEpidemic-v0", "FairHiring-v0"])
def test_what_compares_earnings_says_what_compares_decisions(env_id: str) -> None:
    env: Any = gym.make(env_id)
    for wrap, instead in (
        (FairnessPenalty, "FairnessPenalty.env, history=SlidingWindow.500.."),
        (VectorReward, "Give the benefits of groups: VectorReward.env, per='group', rate='outcome_parity'.*vector"),
        (SocialReward, ""),
    ):
        what = f"needs agents that earn rewards; in {env_id[4:-3].lower()} one decision-maker .*{instead}"
        with pytest.raises(ValueError, match=what):
            wrap(env)
    groups = "gender" if env_id == "FairHiring-v0" else None
    assert FairnessPenalty(env, groups=groups, history=SlidingWindow(500)) is not None


@pytest.mark.parametrize("wrap", [HideSensitive, SwapSensitive, FairnessPenalty, RecordFairness, SocialReward])
def test_observations_that_are_not_those_of_the_agents_one_after_another_are_named(wrap: Any) -> None:
    stacked: Any = gym.wrappers.FrameStackObservation(Env(**SIZE), 3)
    with pytest.raises(
        ValueError, match=r"env must have the joined observations of 8 agents .*, got shape \(3, 80\): put "
    ):
        wrap(stacked)


def test_an_attribute_is_not_sought_among_entries_that_have_other_places() -> None:
    for env_id, shape, flat in (("FairHiring-v0", 23, 69), ("FairHarvest-v0", 10, 30)):
        stacked: Any = gym.wrappers.FlattenObservation(gym.wrappers.FrameStackObservation(gym.make(env_id), 3))
        for wrap in (HideSensitive, SwapSensitive):
            with pytest.raises(
                ValueError, match=rf"env must have the observation shape \({shape},\) .*, got \({flat},\)"
            ):
                wrap(stacked)


# Copies --------------------------------------------------------------------------------------------------------------


def advance(env: Any, step: int) -> Any:
    actions = ACTIONS[step]
    if isinstance(env, gym.Env):
        return env.step(actions[0])
    if hasattr(env, "possible_agents"):
        return env.step({f"agent_{i}": action for i, action in enumerate(actions[0])})
    return env.step(actions.reshape(LANES, -1) if isinstance(env, gym.vector.VectorEnv) else actions.reshape(-1))


def everything_in(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return [(name, everything_in(value)) for name, value in sorted(result.items())]
    if isinstance(result, (tuple, list)):
        return [everything_in(value) for value in result]
    array = np.asarray(result)
    return [everything_in(list(array))] if array.dtype == object and array.ndim else [array.tolist()]


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make("FairHarvest-v0", **SIZE),
        lambda: Vector(LANES, autoreset_mode="SameStep", **SIZE),
        lambda: Parallel(**SIZE),
        lambda: fair_envs.make_sb3("FairHarvest-v0", n_envs=LANES, seed=SEED, **SIZE),
    ],
    ids=["single", "batch", "agents", "rows"],
)
def test_a_copy_in_mid_episode_goes_on_like_its_original(
    make: Callable[[], Any], duplicate: Callable[[Any], Any]
) -> None:
    env = wrapped(make(), [SWAP_WORLD, PENALTY, HIDE, RECORD])
    env.reset()
    for step in range(7):
        advance(env, step)
    twin = duplicate(env)
    assert twin.unwrapped is not env.unwrapped
    for step in range(7, 12):
        assert everything_in(advance(env, step)) == everything_in(advance(twin, step))


# What is refused -----------------------------------------------------------------------------------------------------


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(TypeError, match="aplha"):
        FairnessPenalty(Env(**SIZE), aplha=1.0)  # type: ignore[call-arg]


def test_an_environment_of_another_package_is_refused() -> None:
    for env in (gym.make("CartPole-v1"), gym.make_vec("CartPole-v1"), 3):
        with pytest.raises(TypeError, match="env must be an environment of fair_envs, with any interface"):
            HideSensitive(env)
    with pytest.raises(ValueError, match="env must be an environment of fair_envs for HideSensitive, got Sync"):
        HideSensitive(SyncVectorEnv([lambda: Env(**SIZE)]))  # other environments could be in it, too


def test_the_turn_based_view_is_made_from_the_wrapped_parallel_one() -> None:
    from fair_envs.envs import harvest

    with pytest.raises(TypeError, match="wrap the parallel environment and convert the result"):
        HideSensitive(harvest.env(**SIZE))


def test_a_reward_that_something_below_has_changed_is_refused() -> None:
    env: Any = FairnessPenalty(gym.wrappers.TransformReward(Env(**SIZE), lambda reward: 2 * reward + 1))  # type: ignore[operator]
    env.reset(seed=0)
    with pytest.raises(ValueError, match="put FairnessPenalty below wrappers that change the reward"):
        env.step(ACTIONS[0, 0])


def test_stable_baselines3s_own_wrappers_go_above() -> None:
    env: Any = VecMonitor(wrapped(fair_envs.make_sb3("FairHarvest-v0", n_envs=2, seed=0, **SIZE), [PENALTY, RECORD]))
    env.reset()
    for _ in range(12):
        _, _, done, infos = env.step(np.zeros(16, int))
    assert done.all()
    assert env.interactions["decided"].tolist() == [1, 1]
    assert infos[3]["episode"]["l"] == infos[3]["fair_episode_length"] == 12
    assert env.added["fair_episode_over"].tolist() == [1, 1]


def test_rows_scaled_for_the_learner_stay_scaled() -> None:
    env: Any = FairnessPenalty(
        fair_envs.make_sb3("FairHarvest-v0", n_envs=2, seed=0, reward_scale=0.25, append_group=True, **SIZE), alpha=2.0
    )
    hidden: Any = HideSensitive(env)
    shown = hidden.reset()
    assert shown.shape == (16, 11)
    assert not shown[:, 2].any() and shown[:, 10].any()  # the group, by which the network is chosen, stays
    _, reward, _, _ = hidden.step(ACTIONS[0, :2].reshape(-1))
    assert np.array_equal(reward, (0.25 * env.agent_reward).astype(np.float32).reshape(-1))


def test_the_record_of_returns_has_a_default_for_attributes_of_many_values() -> None:
    with pytest.warns(UserWarning, match="groups are compared by 'identity', not by 'speed'; choose with sensitive="):
        env: Any = RecordFairness(gym.make("FairPursuit-v0", horizon=5))
    env.reset(seed=0)
    for _ in range(5):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            break
    assert info["fair_episode_over"] == 1


def test_options_that_would_have_no_effect_are_refused() -> None:
    env = gym.make("FairHarvest-v0", **SIZE)
    options: list[dict[str, Any]] = [{"undefined": "fair"}, {"keep": False}, {"groups": "half_speed"}]
    for option in options:
        with pytest.raises(ValueError, match=f"{next(iter(option))} needs a history, such as history="):
            FairnessPenalty(env, **option)
    with pytest.raises(ValueError, match="times_group_size must be left out with a history or measure, got False"):
        FairnessPenalty(env, notions="consistency", history=SlidingWindow(9), times_group_size=False)
    with pytest.raises(TypeError, match=r"transform must be an instance of a Transform.*got None"):
        Wrapper(env, None)  # type: ignore[arg-type]
    assert repr(FairnessPenalty(env, notions=["dp"])).startswith("<FairnessPenalty")
