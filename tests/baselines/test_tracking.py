"""Every measure of the studies, kept and restored between two steps, and told by an environment without lanes."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs import make_sb3
from fair_envs.baselines.ppo.tracking import RecordSteps, TrackMeasures, restore, snapshot
from fair_envs.baselines.tasks import SIGNALS, task_for
from fair_envs.baselines.tasks.lending import ScoreDistance
from fair_envs.metrics import wasserstein
from fair_envs.metrics.measures import FunctionMeasure, Measure, Replay
from fair_envs.registration import TABLE, make_rules
from fair_envs.tasks import task_of
from tests.metrics.test_long_term import CASES, LOANS, Case, Info, told

LENDING = make_rules("FairLending-v0")
SCORES = LENDING.distributions.shape[1]  # type: ignore[attr-defined]


def credit(chance: np.random.Generator, lanes: int) -> Info:
    """Return a decision in each lane on somebody whose score a loan may move."""
    score = chance.integers(1, SCORES - 1, (lanes, 1))
    facts = {name: chance.integers(low, 2, (lanes, 1)) for name, low in (("group", 0), ("action", -1), ("outcome", -1))}
    features = np.stack([score / (SCORES - 1), facts["group"]], axis=-1)
    return told(LOANS, lanes, features=features, feedback=np.ones((lanes, 1), int), **facts)


def books(steps: list[Info], lane: int) -> float:
    """Return the distance of the scores after the loans of a lane, one by one."""
    shares = np.array(LENDING.distributions)  # type: ignore[attr-defined]
    for step in steps:
        if step["fair_action"][lane] == 1:
            group, score = int(step["fair_group"][lane]), round(float(step["fair_features"][lane, 0]) * (SCORES - 1))
            mass = min(LENDING.params.mass_shift, shares[group, score])
            shares[group, score] -= mass
            shares[group, score + int(step["fair_outcome"][lane])] += mass
    return float(wasserstein(*shares))


MEASURES = {**CASES, "scores in the books": Case(lambda lanes: ScoreDistance(LENDING, lanes), credit, books)}
each = pytest.mark.parametrize("case", MEASURES.values(), ids=MEASURES)


@each
def test_a_restored_measure_goes_on_to_the_bit_through_a_restart(case: Case) -> None:
    chance = np.random.default_rng(3)
    steps = [case.draw(chance, 3) for _ in range(16)]
    measure, other = case.make(3), case.make(3)
    for step in steps[:7]:
        measure.update(step)
    restore([other], snapshot([measure]))
    for number, step in enumerate(steps[7:]):
        if number == 2:
            for one in (measure, other):
                one.restart(np.array([True, False, True]))
        assert np.array_equal(measure.update(step), other.update(step), equal_nan=True)
        assert np.array_equal(measure.before, other.before, equal_nan=True)
    for kept, now in zip(snapshot([measure]), snapshot([other]), strict=True):
        assert np.array_equal(kept.numpy(), now.numpy(), equal_nan=True)
    since_restart = case.anew(steps[9:], 0)
    assert other.value[0] == pytest.approx(since_restart, abs=1e-6, nan_ok=True)


@each
def test_a_measure_shares_nothing_with_what_was_kept_of_it(case: Case) -> None:
    chance = np.random.default_rng(4)
    measure, other = case.make(2), case.make(2)
    measure.update(case.draw(chance, 2))
    kept = snapshot([measure])
    before = [part.clone() for part in kept]
    restore([other], kept)
    for one in (measure, other):
        one.update(case.draw(chance, 2))
    for part, was in zip(kept, before, strict=True):
        assert np.array_equal(part.numpy(), was.numpy(), equal_nan=True)


def test_a_banks_books_are_kept_from_the_info_of_an_environment_without_lanes() -> None:
    chance = np.random.default_rng(5)
    one, other = ScoreDistance(LENDING, 1), ScoreDistance(LENDING, 1)
    for _ in range(4):
        step = credit(chance, 1)
        assert one.update(step) == other.update({name: column[0] for name, column in step.items()})


@pytest.mark.parametrize("env_id", SIGNALS)
@pytest.mark.parametrize("signals", ["sound", "as_coded", "known"])
def test_the_measures_of_signals_follow_a_single_environment(env_id: str, signals: Any) -> None:
    if signals not in ("sound", *SIGNALS[env_id]):
        pytest.skip("there are none")
    parameters: dict[str, Any] = {"feedback": "full"} if env_id == "FairLending-v0" else {}
    task, env, rules = task_for(env_id, signals), gym.make(env_id, **parameters), make_rules(env_id, **parameters)
    measures = [task.measure(name, rules, 1) for name in ("short", "long")]
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(8):
        info = env.step(env.action_space.sample())[4]
        assert [measure.update(info).shape for measure in measures] == [(1,), (1,)]
    assert not np.isnan(measures[1].value).all()


def test_what_cannot_be_booked_is_refused_before_anything_changes() -> None:
    kept = ScoreDistance(LENDING, 2)
    step = credit(np.random.default_rng(6), 2)
    step = {name: np.array(column) for name, column in step.items()} | {"fair_action": np.array([1, 1])}
    first, high = kept.distributions.copy(), np.array([[0.5, 0], [1.0, 0]], np.float32)
    refused: list[tuple[Info, str]] = [
        ({"fair_group": np.array([0, 2])}, "fair_group must be between 0 and 1, got 2"),
        ({"fair_features": 2 * high}, f"the score must be between 0 and {SCORES - 1}, got {2 * (SCORES - 1)}"),
        ({"fair_features": high, "fair_outcome": np.ones(2)}, "the score after the loan must be between 0 and"),
        ({"fair_outcome": np.ones(3)}, "fair_outcome must have 2 lanes and fit fair_group"),
    ]
    for facts, message in refused:
        with pytest.raises(ValueError, match=message):
            kept.update({**step, **facts})
        assert np.array_equal(kept.distributions, first)
    with pytest.raises(ValueError, match="must have 3 lanes"):
        ScoreDistance(LENDING, 3).update(step)
    step.pop("fair_decided")
    with pytest.raises(ValueError, match=r"fair_group must have one applicant per lane, got shape \(1, 2\)"):
        ScoreDistance(LENDING, 1).update(step)
    with pytest.raises(ValueError, match="info must have the key 'fair_group'"):
        kept.update({})


@pytest.mark.parametrize("env_id", TABLE)
def test_a_rollout_followed_afterwards_is_one_followed_step_by_step(env_id: str) -> None:
    """In three parts, with ends of episodes in all of them."""
    task = task_of(env_id)
    parameters = task.merged({"horizon": 7})
    rules = make_rules(env_id, **parameters)
    makers = [task.factory(name, rules) for name in ("short", "long", "rate")]
    envs: Any = [make_sb3(env_id, n_envs=3, seed=5, **parameters) for _ in range(2)]
    live, recorder = TrackMeasures(envs[0], makers), RecordSteps(envs[1], makers)
    for env in (live, recorder):
        env.reset()
        env.action_space.seed(7)
    for _ in range(3):
        values = []
        for _ in range(9):
            actions = np.stack([live.action_space.sample() for _ in range(live.num_envs)])
            for env in (live, recorder):
                env.step(actions)
            values.append([np.stack([measure.value, measure.before]) for measure in live.measures])
        for k, replay in enumerate(recorder.replay()):
            wanted = np.stack([step[k] for step in values], axis=1)
            np.testing.assert_array_equal(np.stack([replay.value, replay.before]), wanted)
    for one, other in zip(snapshot(live.measures), snapshot(recorder.measures), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_probabilities_are_recorded_with_their_steps() -> None:
    env: Any = make_sb3("FairLending-v0", n_envs=2, seed=0)
    recorder = RecordSteps(env, [lambda lanes: FunctionMeasure(lanes, lambda info: info["fair_action_probs"][:, 1])])
    recorder.reset()
    for k in range(3):
        if k:
            env.report_action_probs(np.full((2, 2), 0.5))
        recorder.step(np.array([0, 1]))
    assert recorder.replay()[0].value.tolist() == [[0, 0], [0.5, 0.5], [0.5, 0.5]]


def test_no_steps_are_left_after_a_replay() -> None:
    env: Any = make_sb3("FairLending-v0", n_envs=2, seed=0)
    recorder = RecordSteps(env, [lambda lanes: FunctionMeasure(lanes, lambda info: info["fair_action"])])
    recorder.reset()
    for k in range(5):
        recorder.step(np.full(2, k % 2))
    assert recorder.replay()[0].value.shape == (5, 2)
    recorder.step(np.ones(2, int))
    assert recorder.replay()[0].value.tolist() == [[1, 1]]


def test_a_record_grows_with_the_rollout_and_keeps_the_probabilities_of_single_steps() -> None:
    env: Any = make_sb3("FairLending-v0", n_envs=2, rows="lanes", horizon=30)
    recorder: Any = RecordSteps(env, [Silent])
    for rollout in range(2):  # the memory of the first one is used again
        recorder.reset()
        said, groups = [], []
        for step in range(150):
            if step in (100 - rollout, 120):
                env.report_action_probs(np.full((2, 2), 0.5))
            recorder.step(np.ones(2, np.int64))
            said.append(env.action_probs is not None)
            groups.append(env.interactions["group"][:, 0].copy())
        recorder.replay()
        (info,) = [measure.info for measure in recorder.measures]
        assert np.flatnonzero(said).tolist() == [100 - rollout, 120]
        assert np.array_equal(info["fair_group"], groups)
        assert np.array_equal(info["fair_action_probs"].any(axis=(1, 2)), said)
        assert recorder.rewards.shape == (150, 2)


class Silent(Measure):
    """A measure that only looks at a replay."""

    def replay(self, info: Any, reward: Any = None, *, first: Any, ended: Any) -> Replay:
        """Copy the columns."""
        self.info = {name: np.array(info[name]) for name in ("fair_group", "fair_action_probs")}
        return Replay(np.zeros(first.shape), np.zeros(first.shape))
