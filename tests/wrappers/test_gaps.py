"""Notions over a history as objectives: the same numbers on every face, and what a reward does with the undefined."""

import copy
import importlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import gymnasium.wrappers.vector
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from pettingzoo.utils.wrappers import BaseParallelWrapper
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecMonitor, VecNormalize

import fair_envs.envs.harvest as harvest
from fair_envs import TABLE
from fair_envs.core import Lanes
from fair_envs.core.interactions import FairSpec, columns
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv
from fair_envs.metrics import HEOM, Consistency, GroupNotion, IndividualFairness
from fair_envs.metrics.history import Discounted, Full, History, Memory, SlidingWindow
from fair_envs.support.aliases import Floats
from fair_envs.wrappers import (
    DelayedFeedback,
    FairnessObjectives,
    FairnessPenalty,
    GapObjectives,
    HideSensitive,
    RecordFairness,
    ReportActionProbs,
    Scalarise,
    VectorReward,
)
from tests import toys
from tests.ferry import BOARD, REFUSE, Env, Ferry, Parallel, Vector
from tests.helpers import LITTLE, uncompiled

SIZE: dict[str, Any] = {"seats": 3, "horizon": 7}  # some episodes end with a full ferry, others with the time
LANES, DECISIONS, SEED = 3, 40, 11
ACTIONS = np.random.default_rng(3).integers(0, 2, (DECISIONS, LANES))
NOTIONS = ("SP", "EO", "OAE", "PP", "PE")


class Unsure:
    """A notion of one's own: how far the last decision's probabilities are from a certain one."""

    name, needs_action_probs, worst = "unsure", True, 0.5

    def check(self, spec: FairSpec) -> None:
        if not spec.actions:
            raise ValueError("unsure needs discrete actions")

    def gap(self, history: History, *, last: Any = None) -> Floats:
        probs = [history.columns(lane)["action_probs"][-1:].max(initial=0) for lane in range(history.lanes)]
        return np.array([np.nan if p == 0 else 1 - p for p in probs])


def likely(observation: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities that depend on all that is seen."""
    board = 1 / (1 + np.exp(-observation @ np.array([1.0, -2.0, 1.5])))
    return np.stack([1 - board, board], axis=-1)


# What is expected ----------------------------------------------------------------------------------------------------


class Event(NamedTuple):
    """What one lane shows after a decision."""

    vector: list[float]
    gaps: list[float]
    defined: list[int]


def by_hand(memory: Memory, *, keep: bool, notions: Sequence[Any] = NOTIONS, probs: bool = False) -> list[list[Event]]:
    """Play each lane for itself, feed a history, and ask each notion alone."""
    log = []
    for lane in range(LANES):
        lanes = Lanes(Ferry(**SIZE), 1)
        lanes.seed(SEED + lane)
        history = History(memory, lanes.rules.spec, keep=keep)
        seen, last, events = lanes.restart().observation, np.full(len(notions), np.nan), []
        for action in ACTIONS[:, lane]:
            told = likely(seen).astype(np.float32) if probs else None
            step = lanes.advance(np.array([[action]]))
            history.add(columns(lanes.rules.spec, step.facts, told))
            objects = [GroupNotion(name=n) if isinstance(n, str) else n for n in notions]
            gaps = np.array([notion.gap(history)[0] for notion in objects])
            defined = ~np.isnan(gaps)
            last = np.where(defined, gaps, last)
            counted = np.where(np.isnan(last), 0, last)
            vector = np.array([step.reward[0, 0], *(0.0 - counted)], np.float32)
            events.append(Event(vector.tolist(), counted.tolist(), defined.astype(int).tolist()))
            seen = step.observation
            if step.terminated[0] or step.truncated[0]:
                seen = lanes.restart().observation
                history.begin()
                last = last if keep else np.full_like(last, np.nan)
        log.append(events)
    return log


def event(vector: Any, info: dict[str, Any]) -> Event:
    assert info["fair_gaps"].dtype == np.float64 and info["fair_gaps_defined"].dtype == np.int8
    return Event(np.asarray(vector).tolist(), info["fair_gaps"].tolist(), info["fair_gaps_defined"].tolist())


Wrap = Callable[[Any], Any]


def by_single(wrap: Wrap) -> list[list[Event]]:
    log = []
    for lane in range(LANES):
        env, events = wrap(Env(**SIZE)), []
        _, info = env.reset(seed=SEED + lane)
        assert not info["fair_gaps"].any() and not info["fair_gaps_defined"].any()
        for action in ACTIONS[:, lane]:
            _, vector, terminated, truncated, info = env.step(action)
            assert vector.dtype == np.float32 and vector in env.reward_space
            events.append(event(vector, info))
            if terminated or truncated:
                env.reset()
        log.append(events)
    return log


def by_agents(wrap: Wrap) -> list[list[Event]]:
    log = []
    for lane in range(LANES):
        env, events = wrap(Parallel(**SIZE)), []
        env.reset(seed=SEED + lane)
        for action in ACTIONS[:, lane]:
            _, rewards, _, _, infos = env.step({"agent_0": action})
            assert rewards["agent_0"] in env.reward_space("agent_0")
            events.append(event(rewards["agent_0"], infos["agent_0"]))
            if not env.agents:
                env.reset()
        log.append(events)
    return log


def by_batch(wrap: Wrap, mode: AutoresetMode) -> list[list[Event]]:
    env = wrap(Vector(LANES, autoreset_mode=mode, **SIZE))
    env.reset(seed=SEED)
    log: list[list[Event]] = [[] for _ in range(LANES)]
    over = np.zeros(LANES, bool)
    while min(map(len, log)) < DECISIONS:
        dead = over & (mode is AutoresetMode.NEXT_STEP)
        taken = [min(len(events), DECISIONS - 1) for events in log]
        _, vector, terminated, truncated, info = env.step(ACTIONS[taken, np.arange(LANES)])
        over = terminated | truncated
        for lane in range(LANES):
            ended = over[lane] and mode is AutoresetMode.SAME_STEP
            told = info["final_info"] if ended else info
            assert not ended or not info["fair_gaps"][lane].any()
            own = {name: told[name][lane] for name in ("fair_gaps", "fair_gaps_defined")}
            if dead[lane]:
                assert not vector[lane].any() and not own["fair_gaps"].any()
            else:
                log[lane].append(event(vector[lane], own))
        if mode is AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over})
            over = np.zeros(LANES, bool)
    return [events[:DECISIONS] for events in log]


def by_rows(wrap: Wrap, face: type[LanesVecEnv]) -> list[list[Event]]:
    env = wrap(face(Ferry(**SIZE), LANES))
    env.seed(SEED)
    env.reset()
    log: list[list[Event]] = [[] for _ in range(LANES)]
    for actions in ACTIONS:
        _, reward, done, infos = env.step(actions)
        assert np.array_equal(reward, env.vector_reward[:, 0])
        for lane in range(LANES):
            log[lane].append(event(env.vector_reward[lane], {n: column[lane] for n, column in env.added.items()}))
            assert not done[lane] or np.array_equal(infos[lane]["fair_gaps"], env.added["fair_gaps"][lane])
    return log


FACES: dict[str, Callable[[Wrap], list[list[Event]]]] = {
    "single": by_single,
    "agents": by_agents,
    "batch, next step": lambda wrap: by_batch(wrap, AutoresetMode.NEXT_STEP),
    "batch, same step": lambda wrap: by_batch(wrap, AutoresetMode.SAME_STEP),
    "batch, disabled": lambda wrap: by_batch(wrap, AutoresetMode.DISABLED),
    "rows of lanes": lambda wrap: by_rows(wrap, LanesVecEnv),
    "rows of agents": lambda wrap: by_rows(wrap, AgentsVecEnv),
}
EACH_FACE = pytest.mark.parametrize("face", FACES.values(), ids=FACES.keys())


@EACH_FACE
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("memory", [SlidingWindow(9), Discounted(0.9)], ids=["window", "discounted"])
def test_every_face_gives_the_gaps_that_each_notion_gives_alone(
    face: Callable[[Wrap], list[list[Event]]], memory: Memory, keep: bool
) -> None:
    expected = by_hand(memory, keep=keep)
    assert any(0 in told.defined for told in expected[0]) and any(all(told.defined) for told in expected[0])
    assert face(lambda env: FairnessObjectives(env, NOTIONS, memory, keep=keep)) == expected


@EACH_FACE
def test_every_face_reports_the_policys_probabilities(face: Callable[[Wrap], list[list[Event]]]) -> None:
    notions: list[Any] = [GroupNotion(name="SP"), Unsure()]
    expected = by_hand(Full(), keep=True, notions=notions, probs=True)

    def wrap(env: Any) -> Any:
        return FairnessObjectives(ReportActionProbs(env, likely), notions, Full())

    assert face(wrap) == expected


class Silent(gym.Wrapper[Any, Any, Any, Any]):
    """Another library's wrapper whose info holds nothing."""

    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0], {}

    def step(self, action: Any) -> Any:
        return *super().step(action)[:4], {}


def test_the_record_reaches_wrappers_without_info() -> None:
    def vectors(env: Any) -> list[list[float]]:
        env.reset(seed=SEED)
        return [env.step(action)[1].tolist() for action in ACTIONS[:3, 0]]

    def wrap(env: Any) -> Any:
        return FairnessObjectives(env, NOTIONS, Full())

    assert vectors(wrap(Silent(Env(**SIZE)))) == vectors(wrap(Env(**SIZE)))
    late = [DelayedFeedback(env, delay=1) for env in (Env(**SIZE), Env(**SIZE))]
    assert vectors(wrap(Silent(late[0]))) == vectors(wrap(late[1]))


def test_every_face_keeps_the_record_that_its_info_tells() -> None:
    single, agents, batch = Env(**SIZE), Parallel(**SIZE), Vector(LANES, **SIZE)
    for env in (single, agents, batch):
        env.reset(seed=SEED)
    for actions in ACTIONS[:2]:
        batch.report_action_probs(np.full((LANES, 2), 0.5))
        infos = single.step(actions[0])[4], agents.step({"agent_0": actions[0]})[4]["agent_0"], batch.step(actions)[4]
        for face, info in zip((single, agents, batch), infos, strict=True):
            for name, column in columns(face.fair_spec, face.interactions, face.action_probs).items():
                assert np.array_equal(column.reshape(np.shape(info[name])), info[name]), name


# ------------------------------------------------------------------------------------------------- worked examples


def played(env: Any, actions: Sequence[int], *, seed: int = 4) -> list[tuple[list[float], list[int]]]:
    """Return the vectors and what is defined; the passengers of seed 4 are local, foreign, ..."""
    env.reset(seed=seed)
    told = []
    for action in actions:
        _, vector, _, _, info = env.step(action)
        told.append((vector.tolist(), info["fair_gaps_defined"].tolist()))
    return told


def passengers(count: int, *, seed: int = 4) -> list[tuple[int, int]]:
    """Return dialect and ticket of the first passengers."""
    env = Env(seats=100)
    env.reset(seed=seed)
    infos = [env.step(REFUSE)[4] for _ in range(count)]
    return [(int(info["fair_sensitive"][0]), int(info["fair_legitimate"][0])) for info in infos]


def test_the_vector_is_performance_and_minus_the_gap() -> None:
    met = passengers(12)
    assert {dialect for dialect, _ in met} == {0, 1}
    actions = [BOARD if dialect == 0 else REFUSE for dialect, _ in met]  # every local boards, no foreigner does
    told = played(FairnessObjectives(Env(seats=100), ["SP"], SlidingWindow(100)), actions)
    both = next(t for t in range(12) if {dialect for dialect, _ in met[: t + 1]} == {0, 1})
    for t, (vector, defined) in enumerate(told):
        reward = 0 if actions[t] == REFUSE else 1 if met[t][1] else -1
        assert vector == [reward, -1.0 if t >= both else 0.0]
        assert defined == [int(t >= both)]


def test_to_reject_everybody_is_not_called_fair_where_those_rejected_differ() -> None:
    env: Any = FairnessObjectives(Env(seats=3, horizon=30), ["CUAE", "PP"], Full())
    env.reset(seed=1)
    for _ in range(30):
        _, vector, _, _, info = env.step(REFUSE)
    rates = GroupNotion(name="CUAE").rates(env.unwrapped.histories[-1])  # of those rejected who should be; PP's
    apart = abs(rates["local"] - rates["foreign"])[0]
    assert apart[0] == 0.125 and np.isnan(apart[1])
    assert -vector[1:] == pytest.approx([apart[0], 0])
    assert info["fair_gaps_defined"].tolist() == [1, 0]


def test_the_window_forgets() -> None:
    met = passengers(30)
    actions = [BOARD if dialect == 0 else REFUSE for dialect, _ in met[:15]] + [BOARD] * 15
    told = played(FairnessObjectives(Env(seats=100), ["SP"], SlidingWindow(5)), actions)
    assert told[14][0][1] == -1
    assert told[-1][0][1] == 0


@pytest.mark.parametrize(("undefined", "counts"), [("last", 0.0), ("fair", 0.0), ("unfair", -1.0)])
def test_the_caller_chooses_what_an_undefined_gap_counts_as(undefined: Any, counts: float) -> None:
    env = FairnessObjectives(Env(seats=100), ["SP"], SlidingWindow(2), undefined=undefined)
    met = [dialect for dialect, _ in passengers(30)]
    actions = [BOARD if dialect == 0 else REFUSE for dialect in met]
    before = counts
    for t, (vector, defined) in enumerate(played(env, actions)):
        one_group = len(set(met[max(0, t - 1) : t + 1])) == 1
        assert defined == [int(not one_group)]
        before = before if one_group and undefined == "last" else counts if one_group else -1.0
        assert vector[1] == before


def test_a_notion_with_a_choice_of_its_own_decides_for_itself() -> None:
    notion = GroupNotion(name="SP", undefined="unfair")
    env = FairnessObjectives(Env(seats=100), [notion], SlidingWindow(2), undefined="fair")
    vector, defined = played(env, [BOARD])[0]
    assert (vector[1], defined) == (-1.0, [1])


def test_a_history_is_kept_or_cleared_at_the_end_of_an_episode() -> None:
    for keep, sizes in ((True, [1, 2, 3, 4, 5]), (False, [1, 2, 3, 1, 2])):
        env: Any = FairnessObjectives(Env(seats=3), ["SP"], Full(), keep=keep)
        env.reset(seed=1)
        found = []
        for _ in range(5):
            over = env.step(BOARD)[2]
            found.append(len(env.unwrapped.histories[0]))
            if over:
                env.reset()
        assert found == sizes


def test_a_notion_that_needs_probabilities_says_so_before_anything_is_remembered() -> None:
    env: Any = FairnessObjectives(Env(), ["SP", Unsure()], Full())
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"action_probs must be reported before each step for unsure .*, got none"):
        env.step(BOARD)
    assert len(env.unwrapped.histories[0]) == 0
    env.unwrapped.report_action_probs([0.25, 0.75])
    assert env.step(BOARD)[1][2] == -0.25
    with pytest.raises(ValueError, match="action_probs must be reported before each step for unsure"):
        env.step(REFUSE)


@pytest.mark.parametrize("env_id", ["FairAttention-v0", "FairEpidemic-v0", "FairTraffic-v0"])
def test_pettingzoo_reports_one_person_or_several_for_each_agent(env_id: str) -> None:
    env: Any = importlib.import_module(TABLE[env_id].module).parallel_env()
    env = ReportActionProbs(env, "uniform")
    env.reset(seed=0)
    env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    spec = env.unwrapped.fair_spec
    people = spec.individuals if not spec.one_person else 1
    assert env.unwrapped.action_probs.reshape(people, -1).sum(axis=1) == pytest.approx(np.ones(people))


def test_uniform_probabilities_are_reported_without_a_policy() -> None:
    env: Any = FairnessObjectives(ReportActionProbs(Vector(2), "uniform"), [Unsure()], Full())
    env.reset(seed=1)
    vector, info = env.step(np.array([BOARD, REFUSE]))[1::3]
    assert vector[:, 1].tolist() == [-0.5, -0.5]
    assert info["fair_action_probs"].tolist() == [[0.5, 0.5]] * 2


def test_the_policy_is_asked_about_what_is_seen_where_the_wrapper_stands() -> None:
    asked: list[NDArray[Any]] = []

    def policy(observation: NDArray[Any]) -> NDArray[Any]:
        asked.append(observation)
        return np.full((*observation.shape[:2], 2), 0.5)

    env: Any = ReportActionProbs(HideSensitive(Env()), policy)
    seen, _ = env.reset(seed=2)
    for _ in range(3):
        following = env.step(REFUSE)[0]
        assert np.array_equal(asked[-1], seen[np.newaxis, np.newaxis])
        assert asked[-1][0, 0, 1] == 0
        seen = following


class Asked:
    """A policy that remembers what it was asked about."""

    def __init__(self) -> None:
        self.about: list[NDArray[Any]] = []

    def __call__(self, observation: NDArray[Any]) -> NDArray[Any]:
        self.about.append(observation)
        return likely(observation[..., :3])


def other(observation: NDArray[Any]) -> NDArray[Any]:
    return observation * 0.5 + 7


class OtherAgents(BaseParallelWrapper[str, Any, Any]):
    """Another library's wrapper that changes what agents see."""

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        seen, infos = super().reset(seed, options)
        return {name: other(own) for name, own in seen.items()}, infos

    def step(self, actions: Any) -> Any:
        seen, *rest = super().step(actions)
        return {name: other(own) for name, own in seen.items()}, *rest


class OtherBatch(gym.vector.VectorWrapper):  # not generic in Gymnasium 1.1
    """Another library's wrapper that changes what the lanes show; Gymnasium's own know no mode SAME_STEP."""

    def reset(self, **given: Any) -> Any:
        seen, info = self.env.reset(**given)
        return other(seen), info

    def step(self, actions: Any) -> Any:
        seen, *rest = self.env.step(actions)
        return other(seen), *rest


def changed(env: Any) -> Any:
    """Return the environment in other libraries' wrappers that change what is seen."""
    if isinstance(env, VecEnv):
        return VecFrameStack(VecNormalize(VecMonitor(env), norm_reward=False), 2)
    if isinstance(env, gym.vector.VectorEnv):
        return OtherBatch(env)
    if isinstance(env, gym.Env):
        return gym.wrappers.TransformObservation(gym.wrappers.DelayObservation(env, 2), other, env.observation_space)
    return OtherAgents(env)


def test_a_policy_that_learns_is_asked_as_it_is() -> None:
    class Learning:
        board = 0.25

        def __call__(self, observation: NDArray[Any]) -> NDArray[Any]:
            return np.full((*observation.shape[:2], 2), [1 - self.board, self.board])

    policy = Learning()
    env: Any = ReportActionProbs(Env(), policy)
    for original in (env, copy.deepcopy(env)):
        original.reset(seed=1)
        for policy.board in (0.25, 0.75):
            assert original.step(REFUSE)[4]["fair_action_probs"].tolist() == [1 - policy.board, policy.board]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_policy_of_a_batch_is_asked_about_what_it_sees_through_other_libraries_wrappers(
    mode: AutoresetMode,
) -> None:
    asked = Asked()
    env: Any = ReportActionProbs(HideSensitive(changed(Vector(LANES, autoreset_mode=mode, **SIZE))), asked)
    seen, _ = env.reset(seed=SEED)
    for actions in ACTIONS:
        following, _, terminated, truncated, _ = env.step(actions)
        assert np.array_equal(asked.about[-1], seen[:, np.newaxis]) and seen.max() > 6
        if mode is AutoresetMode.DISABLED and (terminated | truncated).any():
            following, _ = env.reset(options={"reset_mask": terminated | truncated})
        seen = following.copy()
        following[:] = 0  # it is the caller's own


def test_the_policy_of_one_lane_is_asked_about_what_it_sees_through_other_libraries_wrappers() -> None:
    asked, asked_of_agents = Asked(), Asked()
    env: Any = ReportActionProbs(HideSensitive(changed(Env(**SIZE))), asked)
    agents: Any = ReportActionProbs(changed(Parallel(**SIZE)), asked_of_agents)
    for episode in range(3):
        seen, _ = env.reset(seed=SEED + episode)
        theirs, _ = agents.reset(seed=SEED + episode)
        over = False
        while not over:
            following, _, terminated, truncated, info = env.step(REFUSE)
            also = agents.step({"agent_0": REFUSE})[0]
            assert np.array_equal(asked.about[-1], seen[np.newaxis, np.newaxis]) and seen.max() > 6
            assert np.array_equal(asked_of_agents.about[-1][0, 0], theirs["agent_0"])
            assert np.allclose(info["fair_action_probs"], likely(seen))
            seen, theirs, over = following, also, terminated or truncated


@pytest.mark.parametrize("face", [LanesVecEnv, AgentsVecEnv])
def test_the_policy_of_rows_is_asked_about_what_it_sees_through_other_libraries_wrappers(
    face: type[LanesVecEnv],
) -> None:
    asked = Asked()
    env: Any = ReportActionProbs(changed(face(Ferry(**SIZE), LANES)), asked)
    seen = env.reset()
    for actions in ACTIONS:
        following = env.step(actions)[0]
        assert np.array_equal(asked.about[-1], seen[:, np.newaxis]) and seen.shape == (LANES, 6)
        seen = following


def test_the_policy_is_asked_about_the_state_that_was_set_unless_that_cannot_be_seen() -> None:
    for wrap, fails in ((lambda env: gym.wrappers.TimeLimit(env, 9), False), (changed, True)):
        asked = Asked()
        env: Any = ReportActionProbs(wrap(Env(**SIZE)), asked)
        with pytest.raises(gym.error.ResetNeeded):
            env.step(REFUSE)
        env.reset(seed=1)
        before = env.unwrapped.get_state()
        env.step(REFUSE)
        seen = env.unwrapped.set_state(before)
        if fails:
            with pytest.raises(ValueError, match="env must not be set to another state below TransformObservation, wh"):
                env.step(REFUSE)
        else:
            env.step(REFUSE)
            assert np.array_equal(asked.about[-1][0, 0], seen)


@uncompiled
def test_partners_see_through_no_other_librarys_wrapper() -> None:
    size: dict[str, Any] = {"agents": 2, "control": "focal"}
    env: Any = ReportActionProbs(changed(harvest.Env(**size)), Asked())
    env.reset(seed=1)
    with pytest.raises(ValueError, match="env must be under joint control above TransformObservation"):
        env.step(1)


def test_agents_that_are_affected_have_a_history_too() -> None:
    env: Any = FairnessObjectives(toys.Parallel(horizon=20, shortest=9), ["SP"], Full())
    env.reset(seed=2)
    env.unwrapped.lanes.records["sensitive"] = [[0, 1]]
    rewards = env.step({"agent_0": 1, "agent_1": 0})[1]
    assert rewards["agent_0"].tolist() == rewards["agent_1"].tolist() == [1.0, -1.0]
    rewards["agent_0"][:] = 9
    assert rewards["agent_1"][0] == 1
    assert env.unwrapped.histories[0].sizes.tolist() == [2]


# --------------------------------------------------------------------------------------------- what stands above it


def returns_by_face(wrap: Wrap, *, steps: int = 6) -> dict[str, Any]:
    """Return the agents' returns at the end of one harvest, told by each face."""
    size: dict[str, Any] = {"agents": 3, "horizon": steps}
    actions = np.random.default_rng(0).integers(0, 6, (steps, 3))
    single, agents, rows = wrap(harvest.Env(**size)), wrap(harvest.parallel_env(**size)), AgentsVecEnv
    batches = {mode: wrap(harvest.Vector(1, autoreset_mode=mode, **size)) for mode in AutoresetMode}
    tables = {face: wrap(face(Harvest(**size), 1)) for face in (rows, LanesVecEnv)}
    for env in (single, agents, *batches.values()):
        env.reset(seed=5)
    for table in tables.values():
        table.seed(5)
        table.reset()
    for joint in actions:
        info = single.step(joint)[4]
        infos = agents.step(dict(zip(agents.possible_agents, joint, strict=True)))[4]
        told = {mode: batch.step(joint[np.newaxis])[4] for mode, batch in batches.items()}
        tables[rows].step(joint)
        tables[LanesVecEnv].step(joint[np.newaxis])
    name = "fair_episode_return"
    found: dict[str, Any] = {"single": info[name], "agents": np.array([own[name] for own in infos.values()])}
    found |= {face.__name__: table.added[name][0] for face, table in tables.items()}
    return found | {
        mode.value: (own["final_info"] if mode is AutoresetMode.SAME_STEP else own)[name][0]
        for mode, own in told.items()
    }


@uncompiled
@pytest.mark.parametrize("wrap", [lambda env: FairnessObjectives(env, ["consistency"], SlidingWindow(9)), VectorReward])
def test_what_stands_above_the_vector_is_told_the_agents_rewards_on_every_face(wrap: Wrap) -> None:
    below = returns_by_face(RecordFairness)
    above = returns_by_face(lambda env: RecordFairness(wrap(env)))
    assert any(below["single"])
    for face, returns in above.items():
        assert returns.tolist() == below[face].tolist() == below["single"].tolist(), face


def test_the_performance_under_focal_control_is_the_focal_agents_reward() -> None:
    focal: dict[str, Any] = {**LITTLE, "horizon": 30, "control": "focal", "focal": "agent_1"}
    plain: Any = harvest.Env(**focal)
    env: Any = FairnessObjectives(harvest.Env(**focal), ["consistency"], Full())
    plain.reset(seed=2), env.reset(seed=2)
    differs = False
    for t in range(30):
        reward, info = plain.step(t % 4)[1::3]
        assert env.step(t % 4)[1][0] == np.float32(reward) == np.float32(info["agent_reward"][1])
        differs |= bool(info["agent_reward"].mean() != reward)
    assert differs


def test_a_number_that_another_library_made_of_the_vector_is_named() -> None:
    mo: Any = pytest.importorskip("mo_gymnasium.wrappers")
    below = mo.LinearReward(FairnessObjectives(Env(), ["SP"], Full()), weight=np.array([1.0, 2.0]))
    env = Scalarise(below)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"reward must be the vector of 2 objectives made below Scalarisation, got"):
        env.step(BOARD)


def test_a_vector_that_another_library_made_of_the_number_is_named() -> None:
    def double(reward: Any) -> Any:
        return np.array([reward, -reward])

    env: Any = FairnessPenalty(gym.wrappers.TransformReward(Env(), double), notions="SP", history=Full())
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"reward must have one number for each lane and agent, got shape \(2,\)"):
        env.step(BOARD)


# ---------------------------------------------------------------------------------------------------- the penalty


@pytest.mark.filterwarnings("ignore:groups are compared by")
@pytest.mark.parametrize("env_id", TABLE)
def test_a_history_alone_compares_decisions_by_a_notion_that_applies(env_id: str) -> None:
    named = "consistency" if env_id in ("FairHarvest-v0", "FairAttention-v0") else "demographic_parity"
    env: Any = FairnessPenalty(gym.make(env_id), history=SlidingWindow(100))
    other: Any = FairnessPenalty(gym.make(env_id), notions=named, history=SlidingWindow(100))
    env.reset(seed=0), other.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(3):
        action = env.action_space.sample()
        assert env.step(action)[1] == other.step(action)[1]
    assert env.bound.transform.source.names == other.bound.transform.source.names


def test_groups_without_notions_need_notions_of_groups() -> None:
    with pytest.raises(ValueError, match="groups must be left out without notions: consistency is measured here"):
        FairnessPenalty(gym.make("FairAttention-v0"), history=SlidingWindow(9), groups="location")


@pytest.mark.parametrize(
    ("notion", "alpha", "weights"),
    [("SP", np.int64(2), [2.0]), (["SP", "EO"], 0.5, [0.5, 0.5]), (["SP", GroupNotion(name="PE")], [1, 3], [1.0, 3.0])],
)
def test_the_penalty_takes_the_weighted_gaps_from_the_reward(notion: Any, alpha: Any, weights: list[float]) -> None:
    notions = notion if isinstance(notion, list) else [notion]
    plain: Any = FairnessObjectives(Vector(LANES, **SIZE), notions, SlidingWindow(9))
    env: Any = FairnessPenalty(Vector(LANES, **SIZE), notions=notion, alpha=alpha, history=SlidingWindow(9))
    plain.reset(seed=SEED), env.reset(seed=SEED)
    for actions in ACTIONS:
        vector, told = plain.step(actions)[1::3]
        reward, info = env.step(actions)[1::3]
        assert reward == pytest.approx(vector[:, 0] - told["fair_gaps"] @ weights)
        assert np.array_equal(info["fair_gaps"], told["fair_gaps"])
        assert np.array_equal(info["fair_gaps_defined"], told["fair_gaps_defined"])
    assert env.unwrapped.histories[0].sizes.tolist() == [9] * LANES


def test_the_penalty_of_single_rows_and_agents_is_the_batchs() -> None:
    settings: dict[str, Any] = {"notions": ["SP", "EO"], "history": Full(), "alpha": [1, 2], "undefined": "unfair"}
    faces: list[Any] = [Vector(1), Env(), Parallel()]
    batch, single, agents = (FairnessPenalty(env, **settings) for env in faces)
    rows: Any = FairnessPenalty(LanesVecEnv(Ferry(), 1), **settings)
    rows.seed(SEED)
    rows.reset(), batch.reset(seed=SEED), single.reset(seed=SEED), agents.reset(seed=SEED)
    for action in (BOARD, REFUSE, BOARD):
        reward = batch.step(np.array([action]))[1][0]
        assert single.step(action)[1] == reward
        assert agents.step({"agent_0": action})[1]["agent_0"] == reward
        assert rows.step(np.array([action]))[1][0] == np.float32(reward)


def test_bad_penalties_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"notions \(without a history\) must be one of demographic_parity, .*, got 'EO'"
    ):
        FairnessPenalty(Env(), notions="EO")
    with pytest.raises(ValueError, match=r"groups needs a history, such as"):
        FairnessPenalty(Env(), groups="dialect")
    with pytest.raises(ValueError, match="alpha must be one number or one for each of 1 notions, got"):
        FairnessPenalty(Env(), notions="SP", history=Full(), alpha=[1, 2])
    with pytest.raises(ValueError, match="alpha must be at least 0, got -1"):
        FairnessPenalty(Env(), notions=["SP", "EO"], history=Full(), alpha=[1, -1])
    with pytest.raises(ValueError, match="notions must name at least one notion"):
        FairnessPenalty(Env(), notions=[], history=Full())


# ------------------------------------------------------------------------------------------------- other libraries


def test_the_space_of_the_vector_is_on_the_unwrapped_environment_too() -> None:
    single: Any = FairnessObjectives(Env(), NOTIONS, Full())
    batch: Any = FairnessObjectives(Vector(LANES), NOTIONS, Full())
    rows: Any = FairnessObjectives(LanesVecEnv(Ferry(), LANES), NOTIONS, Full())
    for env in (single, batch, rows):
        assert env.unwrapped.reward_dim == 1 + len(NOTIONS)
    assert single.reward_space is single.unwrapped.reward_space
    assert batch.unwrapped.reward_space.shape == (6,)
    assert VecMonitor(rows).reward_space.shape == (6,)
    assert single.bound.transform.objectives[:2] == ("performance", "demographic_parity")


def test_the_space_has_no_bound_where_a_gap_can_be_below_0() -> None:
    def far(u: Any, v: Any) -> float:
        return float(3 * abs(u - v).sum())

    notions = [IndividualFairness(form="paper", distance=far), IndividualFairness(form="paper"), IndividualFairness()]
    notions.append(IndividualFairness(form="paper", distance=HEOM(scaling="raw")))
    env: Any = FairnessObjectives(ReportActionProbs(Env(seats=100), "uniform"), notions, SlidingWindow(9))
    assert env.reward_space.high.tolist() == [np.inf, np.inf, 0, 0, np.inf]
    env.reset(seed=1)
    vectors = [env.step(BOARD)[1] for _ in range(20)]
    assert max(vector[1] for vector in vectors) > 0
    assert all(vector in env.reward_space for vector in vectors)


def test_the_vectors_are_the_callers_own() -> None:
    env: Any = FairnessObjectives(Env(seats=100), NOTIONS, Full())
    env.reset(seed=1)
    first = env.step(BOARD)
    kept = first[1].copy(), first[4]["fair_gaps"].copy()
    first[1][:] = 9
    first[4]["fair_gaps"][:] = 9
    again: Any = FairnessObjectives(Env(seats=100), NOTIONS, Full())
    again.reset(seed=1)
    again.step(BOARD)
    assert np.array_equal(env.step(REFUSE)[1], again.step(REFUSE)[1])
    assert kept[0][0] in (-1, 1) and not kept[1].any()


def test_mo_gymnasiums_wrappers_work_on_the_vector() -> None:
    mo: Any = pytest.importorskip("mo_gymnasium.wrappers")
    env = FairnessObjectives(Env(**SIZE), NOTIONS, SlidingWindow(20))
    linear = mo.LinearReward(env, weight=np.array([1.0, 2, 0, 0, 0, 0]))
    linear.reset(seed=SEED)
    reward, info = linear.step(BOARD)[1::3]
    assert reward == info["vector_reward"] @ [1, 2, 0, 0, 0, 0]
    recorded = mo.MORecordEpisodeStatistics(FairnessObjectives(Env(**SIZE), NOTIONS, SlidingWindow(20)), gamma=0.9)
    recorded.reset(seed=SEED)
    total, over = np.zeros(6), False
    while not over:
        _, vector, terminated, truncated, info = recorded.step(BOARD)
        total += vector
        over = terminated or truncated
    assert info["episode"]["r"] == pytest.approx(total)
    assert info["episode"]["dr"].shape == (6,)


def test_mo_gymnasiums_batch_of_single_environments_is_ours() -> None:
    mo: Any = pytest.importorskip("mo_gymnasium.wrappers.vector")
    sync = mo.MOSyncVectorEnv([lambda: FairnessObjectives(Env(**SIZE), NOTIONS, SlidingWindow(9))] * LANES)
    native: Any = FairnessObjectives(Vector(LANES, **SIZE), NOTIONS, SlidingWindow(9))
    sync.reset(seed=SEED), native.reset(seed=SEED)
    for actions in ACTIONS:
        one, other = sync.step(actions), native.step(actions)
        for own, theirs in zip(one[:4], other[:4], strict=True):
            assert np.array_equal(own, theirs)
        for name in ("fair_gaps", "fair_gaps_defined", "fair_individual"):
            assert np.array_equal(one[4][name], other[4][name])


def test_mo_gymnasiums_statistics_of_a_batch_are_ours_in_the_mode_next_step() -> None:
    mo: Any = pytest.importorskip("mo_gymnasium.wrappers.vector")
    env: Any = FairnessObjectives(Vector(LANES, **SIZE), NOTIONS, SlidingWindow(9))
    assert env.autoreset_mode is AutoresetMode.NEXT_STEP
    statistics = mo.MORecordEpisodeStatistics(env)
    statistics.reset(seed=SEED)
    totals, ended = np.zeros((LANES, 6)), np.zeros(LANES, int)
    for actions in ACTIONS:
        _, vectors, terminated, truncated, info = statistics.step(actions)
        totals += vectors
        for lane in np.flatnonzero(terminated | truncated):
            assert info["episode"]["r"][lane] == pytest.approx(totals[lane], abs=1e-5)
            totals[lane], ended[lane] = 0, ended[lane] + 1
    assert ended.min() > 2


COMPARED = {"FairHiring-v0": "gender", "FairFraud-v0": "continent"}


@pytest.mark.parametrize("env_id", COMPARED)
def test_mo_gymnasiums_wrappers_take_both_environments_of_decisions(env_id: str) -> None:
    mo: Any = pytest.importorskip("mo_gymnasium.wrappers")
    batch: Any = pytest.importorskip("mo_gymnasium.wrappers.vector")

    def one() -> Any:
        return FairnessObjectives(
            gym.make(env_id, horizon=60), ["SP", "EO", "PE"], SlidingWindow(50), groups=COMPARED[env_id]
        )

    linear, plain = mo.LinearReward(one(), weight=np.array([1.0, 2.0, 0.5, 0.0])), one()
    recorded = mo.MORecordEpisodeStatistics(one(), gamma=0.9)
    rng = np.random.default_rng(0)
    for env in (linear, plain, recorded):
        env.reset(seed=SEED)
    total, over = np.zeros(4), False
    while not over:
        action = int(rng.integers(2))
        vector = plain.step(action)[1]
        assert linear.step(action)[1] == pytest.approx(vector @ [1, 2, 0.5, 0])
        _, told, terminated, truncated, info = recorded.step(action)
        assert np.array_equal(told, vector) and plain.unwrapped.reward_space.contains(vector)
        total, over = total + vector, terminated or truncated
    assert info["episode"]["r"] == pytest.approx(total, rel=1e-5)
    assert total[1:].min() < 0
    native: Any = FairnessObjectives(
        gym.make_vec(env_id, num_envs=3, horizon=60), ["SP", "EO", "PE"], SlidingWindow(50)
    )
    sync, statistics = batch.MOSyncVectorEnv([one] * 3), batch.MORecordEpisodeStatistics(native)
    sync.reset(seed=SEED), statistics.reset(seed=SEED)
    for _ in range(70):
        actions = rng.integers(0, 2, 3)
        expected, found = sync.step(actions), statistics.step(actions)
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(found[:4], expected[:4], strict=True))


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*The reward returned by `step")  # it is a vector
@pytest.mark.parametrize("env_id", COMPARED)
def test_gymnasiums_check_passes_on_both_environments_of_decisions(env_id: str) -> None:
    env = ReportActionProbs(gym.make(env_id, disable_env_checker=True), "uniform")
    notions = ["SP", "EO", "IF"]
    env = FairnessObjectives(env, notions, SlidingWindow(50), groups=COMPARED[env_id])
    check_env(env, skip_render_check=True)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*The reward returned by `step")  # it is a vector
def test_gymnasiums_check_passes_on_the_wrapped_environment() -> None:
    check_env(FairnessObjectives(ReportActionProbs(Env(**SIZE), "uniform"), NOTIONS, Full()), skip_render_check=True)


# --------------------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("make", [lambda: Env(**SIZE), lambda: Vector(1, **SIZE)], ids=["single", "batch"])
def test_a_copy_goes_on_like_its_original_and_leaves_its_history_alone(make: Any, duplicate: Any) -> None:
    env: Any = FairnessObjectives(make(), NOTIONS, SlidingWindow(9), keep=False)
    env.reset(seed=2)
    act = (lambda a: a) if isinstance(env, gym.Env) else (lambda a: np.array([a]))
    env.step(act(BOARD))
    twin = duplicate(env)
    assert twin.unwrapped.histories[0] is twin.bound.transform.histories[0]
    for action in (REFUSE, REFUSE, BOARD):
        ahead = twin.step(act(action))[1]
    assert len(env.unwrapped.histories[0]) == 1 and len(twin.unwrapped.histories[0]) == 4
    for action in (REFUSE, REFUSE, BOARD):
        followed = env.step(act(action))[1]
    assert np.array_equal(ahead, followed)


def test_a_history_is_of_one_environment_alone() -> None:
    transform = GapObjectives(["SP"], Full())
    assert not transform.histories
    pair: list[Any] = [FairnessObjectives(Env(), ["SP"], Full()) for _ in range(2)]
    for env in pair:
        env.reset(seed=1)
    pair[0].step(BOARD)
    assert [len(env.unwrapped.histories[0]) for env in pair] == [1, 0]


def test_the_spec_makes_the_wrapped_environment_again() -> None:
    gym.register("TestFerry-v0", "tests.ferry:Env")
    try:
        env: Any = FairnessObjectives(gym.make("TestFerry-v0", seats=9), ["SP"], SlidingWindow(9))
        again: Any = gym.make(env.spec)
        env.reset(seed=1), again.reset(seed=1)
        assert np.array_equal(env.step(BOARD)[1], again.step(BOARD)[1])
        assert again.unwrapped.histories[0].memory == SlidingWindow(9)
    finally:
        del gym.registry["TestFerry-v0"]


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], Full()), r"notions must name at least one notion, got \[\]"),
        ((["parity"], Full()), r"notions must be one of demographic_parity, .*, got 'parity'; did you mean"),
        (([3], Full()), "notions must be objects with check and gap or names .*, got 3"),
        ((["treatment_equality_raw"], Full()), "notions must have a finite largest gap.*; treatment_equality_raw"),
        (([GroupNotion(name="SP", groups="age")], Full()), r"groups must use the sensitive attributes \(dialect\)"),
        (([Consistency(k=9)], SlidingWindow(9)), "k must be below the window's size, 9, got 9"),
        (([IndividualFairness()], Discounted(algorithm="paper")), "form must be 'paper' and between 'hellinger' on a"),
        ((["SP"], Memory()), "history must be a SlidingWindow, Discounted or Full, got <"),
        ((["SP"], 500), "history must be a SlidingWindow, Discounted or Full, got 500"),
    ],
)
def test_what_does_not_fit_is_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairnessObjectives(Env(), *arguments)


def test_bad_options_are_named() -> None:
    with pytest.raises(ValueError, match="undefined must be one of 'last', 'fair', 'unfair', got 'nan'"):
        FairnessObjectives(Env(), ["SP"], Full(), undefined="nan")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="keep must be True or False, got 1"):
        FairnessObjectives(Env(), ["SP"], Full(), keep=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="horizon"):
        FairnessObjectives(Env(), ["SP"], Full(), horizon=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="policy must be 'uniform' or a function of observations, got 'greedy'"):
        ReportActionProbs(Env(), "greedy")
    with pytest.raises(ValueError, match=r"policy must be 'uniform' or a function of observations, got array\("):
        ReportActionProbs(Env(), np.array([0.5, 0.5]))


def test_notions_that_need_feedback_are_refused_where_none_is_revealed() -> None:
    assert FairnessObjectives(Env(feedback="none"), ["SP"], Full()) is not None
    with pytest.raises(ValueError, match=r"equal_opportunity needs feedback \(the correct decisions\);"):
        FairnessObjectives(Env(feedback="none"), ["SP", "EO"], Full())


def test_reported_probabilities_must_be_distributions_of_the_right_shape() -> None:
    for policy, message in (
        (lambda seen: np.full((1, 1, 3), 1 / 3), r"action_probs must have shape \(1, 1, 2\), got \(1, 1, 3\)"),
        (lambda seen: np.array([[[0.5, 0.6]]]), "action_probs must be distributions"),
        (lambda seen: np.array([[[-0.5, 1.5]]]), "action_probs must be distributions"),
    ):
        env = ReportActionProbs(Env(), policy)
        env.reset(seed=1)
        with pytest.raises(ValueError, match=message):
            env.step(BOARD)


CHANGED = r"reward must be the mean of the agents' rewards: put \w+ below wrappers that change the reward"


@uncompiled
@pytest.mark.parametrize("wrap", [lambda env: FairnessObjectives(env, ["consistency"], Full()), VectorReward])
def test_a_vector_is_not_made_above_what_changes_the_agents_rewards(wrap: Wrap) -> None:
    size: dict[str, Any] = {"agents": 2, "horizon": 9}
    single = gym.wrappers.TransformReward(harvest.Env(**size), lambda reward: float(reward) + 3)
    batch = gym.wrappers.vector.TransformReward(harvest.Vector(1, **size), lambda reward: reward + 3)
    for env, actions in ((single, np.zeros(2, int)), (batch, np.zeros((1, 2), int))):
        wrapped = wrap(env)
        wrapped.reset(seed=1)
        with pytest.raises(ValueError, match=CHANGED):
            wrapped.step(actions)


@pytest.mark.parametrize("face", [LanesVecEnv, AgentsVecEnv])
def test_a_vector_is_not_made_above_normalised_rewards(face: type[LanesVecEnv]) -> None:
    env = FairnessObjectives(VecNormalize(face(Ferry(), LANES)), ["SP"], Full())
    env.reset()
    with pytest.raises(ValueError, match=CHANGED):
        env.step(np.full(LANES, BOARD))


def test_a_vector_is_made_above_what_changes_observations_alone() -> None:
    env: Any = FairnessObjectives(VecNormalize(LanesVecEnv(Ferry(**SIZE), LANES), norm_reward=False), ["SP"], Full())
    env.seed(SEED)
    env.reset()
    for actions in ACTIONS:
        assert np.array_equal(env.step(actions)[1], env.vector_reward[:, 0])


def test_nothing_changes_rewards_above_the_vector() -> None:
    env = FairnessObjectives(Env(), ["SP"], Full())
    with pytest.raises(ValueError, match="env must have a reward that is a number"):
        FairnessObjectives(env, ["SP"], Full())
    with pytest.raises(ValueError, match="env must have a reward that is a number"):
        VectorReward(env)
