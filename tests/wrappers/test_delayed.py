"""Feedback that is held back: as an environment with late feedback tells it, and for several people a step."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from fair_envs.core import Lanes
from fair_envs.core.interactions import FairSpec, blank_facts
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.metrics.history import Full, History
from fair_envs.wrappers import (
    Batch,
    DelayedFeedback,
    FairnessObjectives,
    FairnessPenalty,
    LateFeedback,
    ReportActionProbs,
    Setting,
    Transform,
)
from tests import toys
from tests.ferry import BOARD, REFUSE, Env, Ferry, Parallel, Vector
from tests.helpers import assert_same

SIZE: dict[str, Any] = {"seats": 5, "horizon": 9}
LANES, SEED = 3, 7
ACTIONS = np.random.default_rng(2).integers(0, 2, (40, LANES))


@pytest.mark.parametrize("delay", [1, 3])
def test_it_tells_what_an_environment_with_late_feedback_tells(delay: int) -> None:
    late: Any = Env(feedback="delayed", delay=delay, **SIZE)
    held: Any = DelayedFeedback(Env(**SIZE), delay=delay)
    assert held.fair_spec == held.unwrapped.fair_spec == late.fair_spec
    assert_same(held.reset(seed=SEED), late.reset(seed=SEED))
    for action in ACTIONS[:, 0]:
        one, other = held.step(action), late.step(action)
        assert_same(one, other)
        if one[2] or one[3]:
            assert_same(held.reset(), late.reset())


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_batch_equals_a_batch_of_single_environments(mode: AutoresetMode) -> None:
    native: Any = DelayedFeedback(Vector(LANES, autoreset_mode=mode, **SIZE), delay=2, only="accepted")
    sync = SyncVectorEnv([lambda: DelayedFeedback(Env(**SIZE), delay=2, only="accepted")] * LANES, autoreset_mode=mode)
    assert_same(native.reset(seed=SEED)[1], sync.reset(seed=SEED)[1])
    told = 0
    for actions in ACTIONS:
        one, other = native.step(actions), sync.step(actions)
        assert_same(one[4], other[4])
        told += one[4]["fair_late_count"].sum()
        over = one[2] | one[3]
        if mode is AutoresetMode.DISABLED and over.any():
            infos = [env.reset(options={"reset_mask": over.copy()})[1] for env in (native, sync)]
            assert_same(infos[0], infos[1])
    assert told > 10


def test_stable_baselines3s_and_pettingzoos_faces_tell_it_too() -> None:
    rows: Any = DelayedFeedback(LanesVecEnv(Ferry(**SIZE), LANES), delay=2)
    batch: Any = DelayedFeedback(Vector(LANES, autoreset_mode="SameStep", **SIZE), delay=2)
    agents: Any = DelayedFeedback(Parallel(**SIZE), delay=2)
    rows.seed(SEED)
    rows.reset(), batch.reset(seed=SEED), agents.reset(seed=SEED)
    history = History(Full(), rows.fair_spec, lanes=LANES)
    for actions in ACTIONS[:4]:
        rows.step(actions)
        history.add_facts(rows.interactions)
        info = batch.step(actions)[4]
        own = agents.step({"agent_0": actions[0]})[4]["agent_0"]
        for name in ("late_individual", "late_feedback", "late_count", "individual", "action", "outcome"):
            assert np.array_equal(rows.interactions[name].reshape(info[f"fair_{name}"].shape), info[f"fair_{name}"])
            assert np.array_equal(own[f"fair_{name}"], info[f"fair_{name}"][0])
        assert (rows.interactions["feedback"] == -1).all()
        assert own["fair_feedback"] == -1 and own["fair_feedback"].dtype == np.int64
    assert rows.fair_spec.feedback == "delayed"
    assert (history.columns()["feedback"] >= 0).tolist() == [True, True, False, False]


def test_nothing_is_ever_learnt_of_the_refused() -> None:
    env: Any = DelayedFeedback(Env(seats=100), delay=2, only="accepted")
    env.reset(seed=SEED)
    actions = [BOARD, REFUSE, BOARD, BOARD, REFUSE, REFUSE]
    infos = [env.step(action)[4] for action in actions]
    assert [int(info["fair_late_individual"][0]) for info in infos] == [-1, -1, 0, -1, 2, 3]
    assert [int(info["fair_late_count"]) for info in infos] == [0, 0, 1, 0, 1, 1]
    for name in ("CUAE", "EO", "PE", "EqOdds", "TE"):
        with pytest.raises(ValueError, match=r"needs feedback on all decisions; .* reveals it only on decision 1"):
            FairnessObjectives(env, [name], Full())
    FairnessObjectives(env, ["PP", "OAE"], Full())


def test_notions_above_it_learn_late() -> None:
    at_once: Any = FairnessObjectives(Env(seats=100), ["OAE"], Full())
    late: Any = FairnessObjectives(DelayedFeedback(Env(seats=100), delay=4), ["OAE"], Full())
    gaps = []
    for env in (at_once, late):
        env.reset(seed=SEED)
        gaps.append([float(env.step(action)[4]["fair_gaps"][0]) for action in ACTIONS[:20, 0]])
    assert gaps[0][:16] == gaps[1][4:]
    assert any(gaps[0])


def test_with_the_same_people_in_each_step_labels_reach_the_decisions_that_they_are_about() -> None:
    delay, horizon = 3, 10
    at_once: Any = gym.make("FairEpidemic-v0", horizon=horizon)
    late: Any = DelayedFeedback(gym.make("FairEpidemic-v0", horizon=horizon), delay=delay)
    known, learnt = (History(Full(), env.unwrapped.fair_spec) for env in (at_once, late))
    for env, history in ((at_once, known), (late, learnt)):
        env.action_space.seed(0)
        history.add(env.reset(seed=1)[1])
        for _ in range(horizon):
            history.add(env.step(env.action_space.sample())[4])
    people = at_once.unwrapped.fair_spec.individuals
    one, other = (history.columns()["feedback"].reshape(horizon, people) for history in (known, learnt))
    assert (one != one[0]).any()
    assert np.array_equal(other[:-delay], one[:-delay]) and (other[-delay:] == -1).all()
    assert learnt.late_expired.tolist() == [0]
    decisions = learnt.counts().reshape(-1, 3).sum(0)
    assert decisions.tolist() == [(one[:-delay] != 1).sum(), (one[:-delay] == 1).sum(), delay * people]


# ----------------------------------------------------------------------------------------- several people a step


def crowd(transform: Transform, *, people: int = 3) -> Transform:
    """Return the transform bound to a ferry that is said to decide on several people at once."""
    rules = Ferry()
    lanes = Lanes(rules, 1)
    transform.bind(
        Setting(lanes=lanes, observation_space=rules.observation_space(rules.params), reported=crowded(people))
    )
    return transform


def crowded(people: int) -> FairSpec:
    return FairSpec(
        individuals=people, actions=2, features=(), sensitive={"s": ("a", "b")}, groups=("a", "b"), feedback="full"
    )


def decided(who: list[int], action: list[int], feedback: list[int]) -> Batch:
    facts = blank_facts(crowded(len(who)))
    facts["individual"], facts["action"], facts["feedback"] = who, action, feedback
    yes, no = np.array([True]), np.array([False])
    return Batch(np.zeros((1, 1, 3)), np.zeros((1, 1)), facts, decided=yes, first=no, done=no)


def test_overflow_is_counted() -> None:
    held = crowd(LateFeedback(delay=1, rows=2))
    held(decided([5, 6, 7], [1, 1, 1], [1, -1, 0]))
    told = held(decided([8, 9, 10], [1, 0, 1], [1, 0, 1])).added
    assert told["fair_late_individual"].tolist() == [[5, 7]]
    assert told["fair_late_feedback"].tolist() == [[1, 0]]
    assert (told["fair_late_count"][0], told["fair_late_dropped"][0]) == (2, 0)
    assert told["fair_feedback"].tolist() == [[-1, -1, -1]]
    told = held(decided([11, 12, 13], [1, 1, 1], [1, 1, 1])).added
    assert told["fair_late_individual"].tolist() == [[8, 9]]
    assert (told["fair_late_count"][0], told["fair_late_dropped"][0]) == (2, 1)


def test_everybody_who_finds_no_place_is_counted() -> None:
    held = crowd(LateFeedback(delay=1, rows=1))
    held(decided([5, 6, 7], [1, 1, 1], [1, 0, 1]))
    told = held(decided([8, 9, 10], [1, 1, 1], [1, 1, 1])).added
    assert told["fair_late_individual"].tolist() == [[5]]
    assert (told["fair_late_count"][0], told["fair_late_dropped"][0]) == (1, 2)


def test_a_new_episode_hears_nothing_of_the_last() -> None:
    held = crowd(LateFeedback(delay=2, rows=5))
    for k in range(3):
        told = held(decided([k, k, k], [1, 1, 1], [1, 1, 1])).added
    assert told["fair_late_individual"].tolist() == [[0, 0, 0, -1, -1]]
    held(decided([0] * 3, [0] * 3, [0] * 3)._replace(decided=np.array([False]), first=np.array([True])))
    for k in range(2):
        assert held(decided([k, k, k], [1, 1, 1], [1, 1, 1])).added["fair_late_count"].tolist() == [0]
    assert held(decided([9, 9, 9], [1, 1, 1], [1, 1, 1])).added["fair_late_count"].tolist() == [3]


def test_somebody_about_whom_nothing_was_decided_is_not_spoken_of() -> None:
    held = crowd(LateFeedback(delay=1))
    held(decided([5, 6, 7], [1, -1, 0], [1, 1, 0]))
    assert held(decided([5, 6, 7], [1, 1, 1], [1, 1, 1])).added["fair_late_individual"].tolist() == [[5, 7, -1]]


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delay": 0}, "delay must be at least 1, got 0"),
        ({"delay": 1.5}, "delay must be an integer at least 1, got 1.5"),
        ({"delay": 1, "only": "refused"}, "only must be one of 'all', 'accepted', got 'refused'"),
        ({"delay": 1, "rows": 0}, "rows must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DelayedFeedback(Env(), **settings)


def test_an_environment_without_feedback_at_once_is_refused() -> None:
    for env in (Env(feedback="none"), Env(feedback="delayed"), DelayedFeedback(Env(), delay=2)):
        with pytest.raises(ValueError, match=r"env must reveal feedback at once \('full' or 'accepted'\), ferry has"):
            DelayedFeedback(env, delay=1)
    with pytest.raises(ValueError, match="env must have one decision-maker, countdown has several agents"):
        DelayedFeedback(toys.Parallel(), delay=1)


def test_it_is_refused_above_what_has_been_told_at_once() -> None:
    penalised = FairnessPenalty(Env(), notions="SP", history=Full())
    for env in (FairnessObjectives(Env(), ["EO"], Full()), penalised, ReportActionProbs(penalised, "uniform")):
        with pytest.raises(ValueError, match="env must keep no history of decisions below LateFeedback, which changes"):
            DelayedFeedback(env, delay=1)
    assert FairnessObjectives(Env(), ["EO"], Full()).unwrapped.reported_spec is None


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasiums_check_passes() -> None:
    check_env(DelayedFeedback(Env(**SIZE), delay=2), skip_render_check=True)
