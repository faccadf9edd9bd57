"""Histories of decisions: what they remember, how much it counts, and what they are fed with."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import gymnasium as gym
import hypothesis.strategies as st
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given

import fair_envs
import fair_envs.envs.harvest as harvest
from fair_envs.core.interactions import FairSpec, blank_facts, columns
from fair_envs.metrics.history import NEGATIVE, POSITIVE, UNKNOWN, Discounted, Full, History, Memory, SlidingWindow
from tests.ferry import Env, Ferry, Parallel, Vector
from tests.helpers import assert_same, uncompiled

GENDER = {"gender": ("man", "woman")}
SPEC = FairSpec(
    individuals=1,
    actions=2,
    features=("age",),
    sensitive=GENDER,
    legitimate={"degree": ("none", "some", "high")},
    groups=GENDER["gender"],
    feedback="full",
)

Row = tuple[int, int, int, int]  # gender, degree, decision, correct decision (-1: unknown)


def told(memory: Memory, rows: list[Row], **settings: Any) -> History:
    """Return a history that was told these rows."""
    history = History(memory, SPEC, **settings)
    add(history, rows)
    return history


def add(history: History, rows: list[Row]) -> None:
    if rows:
        gender, degree, action, feedback = np.array(rows).T
        history.add_rows(
            sensitive=gender[:, None],
            legitimate=degree[:, None],
            features=np.zeros((len(rows), 1)),
            action=action,
            feedback=feedback,
        )


def counted(rows: list[Row], weights: list[float]) -> Any:
    """Return the counts of rows, one by one."""
    counts = np.zeros((2, 3, 2, 3))
    for (gender, degree, action, feedback), weight in zip(rows, weights, strict=True):
        counts[gender, degree, action, {-1: UNKNOWN, 0: NEGATIVE, 1: POSITIVE}[feedback]] += weight
    return counts


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1), st.integers(-1, 1)), min_size=0, max_size=40
)


# ---------------------------------------------------------------------------------------------------- what counts


@given(rows=ROWS, size=st.integers(1, 12))
def test_a_window_counts_the_last_decisions(rows: list[Row], size: int) -> None:
    history = told(SlidingWindow(size), rows)
    assert np.array_equal(history.counts()[0], counted(rows[-size:], [1.0] * len(rows[-size:])))
    assert len(history) == min(size, len(rows))


@given(rows=ROWS)
def test_a_full_history_counts_everything_however_long(rows: list[Row]) -> None:
    history = told(Full(), rows * 4)
    assert np.array_equal(history.counts()[0], 4 * counted(rows, [1.0] * len(rows)))


@pytest.mark.parametrize("before", [0, 40])
def test_a_history_that_grows_keeps_every_decision_in_its_order(before: int) -> None:
    history = told(Full(), [(0, 0, 1, 1)] * before, keep=False)
    history.begin()  # the places of what is forgotten are used again
    number = np.arange(300)
    history.add_rows(
        sensitive=number[:, None] % 2, legitimate=number[:, None] % 3, features=number[:, None], action=number % 2
    )
    told_again = copy.deepcopy(history)
    told_again.begin()
    told_again.restore(history.snapshot())
    for kept in (history.columns(), told_again.columns()):
        assert kept["individual"].tolist() == (before + number).tolist()
        assert kept["features"][:, 0].tolist() == number.tolist()
        assert kept["sensitive"][:, 0].tolist() == kept["action"].tolist() == (number % 2).tolist()
        assert kept["legitimate"][:, 0].tolist() == (number % 3).tolist()


@pytest.mark.parametrize(
    "memory",
    [
        SlidingWindow(4),
        Full(),
        Discounted(0.5, threshold=0.05, minimum=1),
        Discounted(0.5, threshold=0.05, minimum=6),
        Discounted(1.0, threshold=0.2, minimum=1),  # the share of the last that is kept is exactly the threshold
        Discounted(0.5, threshold=0, minimum=1),
    ],
)
def test_a_memory_tells_how_long_a_decision_is_kept(memory: Memory) -> None:
    kept = [0 in told(memory, [(0, 0, 1, 1)] * (age + 1)).columns()["individual"] for age in range(12)]
    assert kept == [memory.holds(age, individuals=1) for age in range(12)]
    held = SlidingWindow(4)
    assert [held.holds(age, individuals=2) for age in range(4)] == [True, True, False, False]
    light = Discounted(0.5, threshold=0.1, minimum=1)  # after two steps of two people: 1/4 of 1/4 + 2 + 1
    assert [light.holds(age, individuals=2) for age in range(4)] == [True, True, False, False]


def test_a_memory_tells_how_many_decisions_of_a_step_are_surely_kept() -> None:
    assert SlidingWindow(4).surely_held == 4
    assert Full().surely_held == Discounted(threshold=0).surely_held == np.inf
    assert Discounted(threshold=0.25, minimum=2).surely_held == 4
    assert Discounted(threshold=0.25, minimum=9).surely_held == 9


def test_a_discounted_memory_has_the_published_numbers_by_default() -> None:
    assert Discounted() == Discounted(factor=0.95, threshold=1e-4, delay=5, minimum=100, algorithm="weights")


@given(rows=ROWS, factor=st.sampled_from([0.3, 0.9, 1.0]))
def test_a_discounted_history_weighs_by_age(rows: list[Row], factor: float) -> None:
    history = told(Discounted(factor, threshold=0), rows)
    weights = [factor**age for age in reversed(range(len(rows)))]
    assert history.counts()[0] == pytest.approx(counted(rows, weights), abs=1e-9)
    assert history.columns()["weight"] == pytest.approx(np.array(weights))


@pytest.mark.nojit
def test_a_discounted_history_forgets_what_has_hardly_any_weight() -> None:
    rows: list[Row] = [(1, 0, 1, 1)] + [(0, 0, 1, 1)] * 9
    history = told(Discounted(0.5, threshold=0.01, minimum=1), rows)
    weights = 0.5 ** np.arange(10)[::-1]
    kept = weights[-len(history) :]
    assert kept[0] >= 0.01 * kept.sum()
    assert weights[-len(history) - 1] < 0.01 * (kept.sum() + weights[-len(history) - 1])
    assert history.counts()[0, 1].sum() == 0  # exactly: the woman is forgotten
    assert len(told(Discounted(0.5, threshold=0.01, minimum=8), rows)) == 8


def test_the_current_step_is_counted_for_itself() -> None:
    history = told(SlidingWindow(10), [(1, 0, 1, 1), (0, 2, 0, 1)])
    assert np.array_equal(history.counts(current_step=True)[0], counted([(0, 2, 0, 1)], [1.0]))
    history.begin()
    assert not history.counts(current_step=True).any()


def test_a_decision_that_was_not_taken_is_not_remembered() -> None:
    history = told(SlidingWindow(10), [(1, 0, -1, -1), (0, 0, 1, 1)])
    assert len(history) == 1
    assert history.columns()["individual"].tolist() == [1]


# ------------------------------------------------------------------------------------------------- late feedback


@given(rows=ROWS, late=st.data())
def test_late_feedback_counts_as_if_it_had_come_at_once(rows: list[Row], late: Any) -> None:
    history = told(Discounted(0.9, threshold=0), rows)
    after = list(rows)
    for who in range(len(rows)):
        if late.draw(st.booleans()):
            what = late.draw(st.integers(0, 1))
            history.add_feedback([who], [what])
            after[who] = (*rows[who][:3], what)
    weights = [0.9**age for age in reversed(range(len(rows)))]
    assert history.counts()[0] == pytest.approx(counted(after, weights), abs=1e-9)


def test_late_feedback_for_nobody_is_refused_and_changes_nothing() -> None:
    history = told(SlidingWindow(5), [(1, 0, 1, -1), (0, 0, 1, -1)])
    before = history.counts()
    with pytest.raises(ValueError, match="late feedback must be for a person with a decision in this episode, got 7"):
        history.add_feedback([0, 7], [1, 1])
    with pytest.raises(ValueError, match="feedback must be between 0 and 1, got 2"):
        history.add_feedback([0], [2])
    with pytest.raises(ValueError, match="feedback must be between 0 and 1, got -1"):
        history.add_feedback([0], [-1])
    with pytest.raises(ValueError, match=r"feedback must have the shape of individual, \(1,\), got \(2,\)"):
        history.add_feedback([0], [1, 1])
    with pytest.raises(ValueError, match="individual must hold integers, got float64 values"):
        history.add_feedback([0.9], [1])
    with pytest.raises(ValueError, match="feedback must hold integers, got float64 values"):
        history.add_feedback([0], [1.7])
    assert np.array_equal(history.counts(), before)
    history.begin()
    with pytest.raises(ValueError, match="in this episode, got 0"):
        history.add_feedback([0], [1])


@pytest.mark.nojit
@uncompiled
def test_where_decisions_are_amounts_feedback_can_be_more_than_any_decision() -> None:
    spec = replace(SPEC, actions=7, amounts=True, feedback="delayed", delay=1)
    history = History(Full(), spec)
    row: dict[str, Any] = {"sensitive": [[0]], "legitimate": [[0]], "features": [[0]]}
    history.add_rows(action=[6], feedback=[13], **row)
    history.add_rows(action=[0], individual=[5], **row)
    history.add_feedback([5], [40])
    assert history.columns()["feedback"].tolist() == [13, 40]
    with pytest.raises(ValueError, match="feedback must be at least -1, got -2"):
        history.add_rows(action=[6], feedback=[-2], **row)
    with pytest.raises(ValueError, match="feedback must be at least 0, got -1"):
        history.add_feedback([5], [-1])
    with pytest.raises(ValueError, match="action must be between -1 and 6, got 7"):
        history.add_rows(action=[7], **row)


def test_late_feedback_for_somebody_forgotten_is_told() -> None:
    history = told(SlidingWindow(1), [(1, 0, 1, -1), (0, 0, 1, -1)])
    history.add_feedback([0], [1])
    assert history.late_expired.tolist() == [1]
    assert history.counts()[0, 0, 0, 1].tolist() == [0, 0, 1]


@pytest.mark.parametrize("nobody", [3, 0, 12])
def test_late_feedback_for_nobody_is_refused_though_others_are_forgotten(nobody: int) -> None:
    history = told(SlidingWindow(2), [])
    history.add_rows(
        sensitive=[[0]] * 4,
        legitimate=[[0]] * 4,
        features=[[0]] * 4,
        action=[1] * 4,
        feedback=[-1] * 4,
        individual=[7, 4, 9, 11],
    )
    with pytest.raises(ValueError, match=f"in this episode, got {nobody}"):
        history.add_feedback([nobody], [1])
    history.add_feedback([4, 5], [1, 1])  # of 5 it cannot be known: numbers may be skipped
    assert history.late_expired.tolist() == [2]


def test_late_feedback_leaves_light_decisions_their_digits() -> None:
    history = told(Discounted(1e-4, threshold=0), [(0, 0, 1, -1)] * 4)
    history.add_feedback([3], [1])
    assert history.counts()[0, 0, 0, 1].tolist() == pytest.approx([0, 1, 1e-4 + 1e-8 + 1e-12], rel=1e-14, abs=0)


def test_probabilities_that_are_no_distribution_are_refused_and_change_nothing() -> None:
    history = told(SlidingWindow(5), [(0, 0, 1, 1)])
    row: dict[str, Any] = {"action": [1], "sensitive": [[0]], "legitimate": [[0]], "features": [[0]], "feedback": [1]}
    for odd in ([0.5, 0.6], [-0.5, 1.5], [np.nan, 1], [np.inf, 0], [-0.1, 0.1]):
        with pytest.raises(ValueError, match="action_probs must be distributions: at least 0 and summing to 1, got"):
            history.add_rows(**row, action_probs=[odd])
    assert len(history) == 1
    told(SlidingWindow(5), [], scores=True).add_rows(**row, action_probs=[[-0.1, -2.3]])


# ----------------------------------------------------------------------------------------------- fed from the faces


def play(env: Any, history: History, *, steps: int) -> Any:
    """Play the single face on with actions that alternate, and feed a history with it."""
    history.add(env.reset(seed=0)[1])
    for time in range(steps):
        *_, terminated, truncated, info = env.step(time % 2)
        history.add(info)
        if terminated or truncated:
            history.add(env.reset()[1])
    return history.columns()


def test_decisions_are_paired_with_who_was_decided_on() -> None:
    env = Env(horizon=5)
    rows = play(env, History(Full(), env.fair_spec), steps=5)
    assert rows["individual"].tolist() == [0, 1, 2, 3, 4]
    assert rows["sensitive"][:, 0].tolist() == rows["features"][:, 1].astype(int).tolist()
    assert rows["feedback"].tolist() == rows["features"][:, 2].astype(int).tolist()  # a ticket is right to board with


def test_every_face_feeds_the_same_history() -> None:
    env, many = Env(horizon=6), Parallel(horizon=6)
    single = History(SlidingWindow(8), env.fair_spec)
    expected = play(env, single, steps=20)
    parallel = History(SlidingWindow(8), many.fair_spec)
    parallel.add(many.reset(seed=0)[1])
    for time in range(20):
        parallel.add(many.step({"agent_0": time % 2})[4])
        if not many.agents:
            parallel.add(many.reset()[1])
    assert_same(parallel.columns(), expected)


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_the_vector_face_feeds_it_in_every_mode(mode: AutoresetMode) -> None:
    env = Vector(num_envs=3, horizon=5, autoreset_mode=mode)
    history = History(Full(), env.fair_spec, lanes=3)
    alone = [History(Full(), env.fair_spec) for _ in range(3)]
    singles = [Env(horizon=5) for _ in range(3)]
    history.add(env.reset(seed=4)[1])
    for lane, one in enumerate(singles):
        alone[lane].add(one.reset(seed=4 + lane)[1])
    over = np.zeros(3, bool)
    for time in range(17):
        if mode is AutoresetMode.DISABLED and over.any():
            history.add(env.reset(options={"reset_mask": over})[1])
            over = np.zeros(3, bool)
        idle = over if mode is AutoresetMode.NEXT_STEP else np.zeros(3, bool)
        _, _, terminated, truncated, info = env.step(np.full(3, time % 2))
        history.add(info)
        over = terminated | truncated
        for lane, one in enumerate(singles):
            if idle[lane]:
                continue
            *_, ended, cut, info = one.step(time % 2)
            alone[lane].add(info)
            if ended or cut:
                alone[lane].add(one.reset()[1])
    for lane in range(3):
        assert_same(
            {n: c for n, c in history.columns(lane).items() if n != "episode"},
            {n: c for n, c in alone[lane].columns().items() if n != "episode"},
        )


def test_agents_that_are_affected_feed_it_together() -> None:
    env = gym.make("FairHarvest-v0", horizon=6)
    many: Any = harvest.parallel_env(horizon=6)
    spec = env.unwrapped.fair_spec  # type: ignore[attr-defined]
    one, other = History(Full(), spec), History(Full(), spec)
    one.add(env.reset(seed=1)[1])
    other.add(many.reset(seed=1)[1])
    for _ in range(6):
        action = env.action_space.sample()
        one.add(env.step(action)[4])
        other.add(many.step(dict(zip(many.possible_agents, action, strict=True)))[4])
    assert_same(one.columns(), other.columns())
    assert 0 < len(one) <= 6 * 40  # turns that were not granted are no decisions


def test_arrays_of_facts_feed_it_too() -> None:
    pytest.importorskip("stable_baselines3")
    table: Any = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, seed=3, horizon=4)
    history = History(SlidingWindow(50), table.fair_spec, lanes=2)
    table.reset()
    history.add_facts(table.interactions)
    assert len(history) == 0
    table.step(np.zeros(80, int))
    history.add_facts(table.interactions)
    assert history.sizes.tolist() == [20, 20]  # half of the forty have a turn


@pytest.mark.parametrize("keep", [True, False])
def test_arrays_of_facts_tell_where_episodes_end(keep: bool) -> None:
    sb3: Any = pytest.importorskip("fair_envs.faces.sb3")
    for face in (sb3.LanesVecEnv, sb3.AgentsVecEnv):
        table = face(Ferry(horizon=5, seats=3), 3)
        batch = Vector(3, horizon=5, seats=3, autoreset_mode="SameStep")
        one, other = (History(Full(), table.fair_spec, lanes=3, keep=keep) for _ in range(2))
        table.seed(7)
        table.reset()
        one.add_facts(table.interactions)
        other.add(batch.reset(seed=7)[1])
        ended = 0
        for time in range(17):
            actions = np.array([time % 2, 1, time % 3 == 0], int)
            done = table.step(actions)[2]
            one.add_facts(table.interactions, done=done.reshape(3, -1)[:, 0])
            other.add(batch.step(actions)[4])
            ended += done.sum()
            assert np.array_equal(one.sizes, other.sizes)
        assert ended > 6
        for lane in range(3):
            assert_same(one.columns(lane), other.columns(lane))


def test_later_steps_age_a_decision_whoever_they_decided_on() -> None:
    history = told(Discounted(0.5, threshold=0), [(1, 0, 1, 1), (1, 0, -1, -1), (0, 0, 1, 1)])
    assert history.columns()["weight"].tolist() == [0.25, 1]
    assert history.counts()[0, :, 0, 1, POSITIVE].tolist() == [1, 0.25]


# -------------------------------------------------------------------------------------------------- episodes, copies


def test_decisions_are_kept_or_cleared_when_an_episode_ends() -> None:
    env = Env(horizon=3)
    kept, cleared = (History(SlidingWindow(10), env.fair_spec, keep=keep) for keep in (True, False))
    for history in (kept, cleared):
        play(env, history, steps=4)
    assert (len(kept), len(cleared)) == (4, 1)
    assert kept.columns()["episode"].tolist() == [1, 1, 1, 2]
    assert cleared.counts().sum() == 1


def test_a_snapshot_is_of_as_many_lanes_as_the_history() -> None:
    env = Vector(3, horizon=5)
    one, three = History(Full(), env.fair_spec), History(Full(), env.fair_spec, lanes=3)
    three.add(env.reset(seed=0)[1])
    for _ in range(4):
        three.add(env.step(np.array([0, 1, 1]))[4])
    with pytest.raises(ValueError, match="snapshot must be of a history with the same memory, environment and lanes"):
        one.restore(three.snapshot())
    again = History(Full(), env.fair_spec, lanes=3)
    again.restore(three.snapshot())
    for lane in range(3):
        assert_same(again.columns(lane), three.columns(lane))
        assert len(again.columns(lane)["action"]) == 4


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_a_copy_goes_on_alone(copied: Any) -> None:
    history = told(SlidingWindow(3), [(1, 0, 1, 1)])
    other = copied(history)
    add(other, [(0, 0, 1, 1)])
    assert (len(history), len(other)) == (1, 2)
    add(history, [(0, 0, 1, 1)])
    assert_same(other.columns(), history.columns())


def test_it_is_told_as_a_table() -> None:
    pytest.importorskip("pandas")
    table = told(SlidingWindow(5), [(1, 2, 1, -1)]).frame()
    shown = table.iloc[0][["sensitive[gender]", "legitimate[degree]", "action", "feedback"]]
    assert shown.tolist() == ["woman", "high", 1, -1]
    assert {"feature[age]", "probability[0]", "probability[1]", "weight"} <= set(table.columns)


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SlidingWindow(0), "size must be at least 1, got 0"),
        (lambda: SlidingWindow(2.5), "size must be an integer at least 1, got 2.5"),  # type: ignore[arg-type]
        (lambda: Discounted(0.0), "factor must be above 0 and threshold below 1, got 0.0"),
        (lambda: Discounted(1.5), "factor must be between 0 and 1, got 1.5"),
        (lambda: Discounted(0.9, threshold=-1), "threshold must be between 0 and 1, got -1"),
        (lambda: Discounted(0.9, minimum=0), "minimum must be at least 1, got 0"),
        (lambda: History(3, SPEC), "memory must be a SlidingWindow, Discounted or Full, got 3"),  # type: ignore[arg-type]
        (lambda: History(Memory(), SPEC), "memory must be a SlidingWindow, Discounted or Full, got <"),
        (lambda: History(Full(), SPEC, lanes=0), "lanes must be at least 1, got 0"),
        (lambda: History(Full(), SPEC).columns(1), "lane must be between 0 and 0, got 1"),
    ],
)
def test_bad_settings_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"sensitive": [[2]]}, "sensitive 'gender' must be between 0 and 1, got 2"),
        ({"sensitive": [[-1]]}, "sensitive 'gender' must be between 0 and 1, got -1"),
        ({"legitimate": [[-1]]}, "legitimate 'degree' must be between 0 and 2, got -1"),
        ({"legitimate": [[3]]}, "legitimate 'degree' must be between 0 and 2, got 3"),
        ({"action": [2]}, "action must be between -1 and 1, got 2"),
        ({"action": [-2]}, "action must be between -1 and 1, got -2"),
        ({"action": 1}, r"action must have shape \(n,\), got \(\)"),
        ({"action": [[1]]}, r"action must have shape \(n,\), got \(1, 1\)"),
        ({"action": [np.nan]}, "action must hold integers, got float64 values"),
        ({"outcome": [np.nan]}, r"outcome must hold finite numbers, got \[nan\]"),
        ({"action": [0.9]}, "action must hold integers, got float64 values"),
        ({"feedback": [2]}, "feedback must be between -1 and 1, got 2"),
        ({"feedback": [-2]}, "feedback must be between -1 and 1, got -2"),
        ({"sensitive": [0]}, r"sensitive must have shape \(1, 1\), got \(1,\)"),
        ({"features": [[np.nan]]}, r"features must be finite numbers, got \[nan\]"),
        ({"features": [[-np.inf]]}, r"features must be finite numbers, got \[-inf\]"),
        ({"features": None}, "features must be given, the spec has age; got None"),
        ({"features": [[1, 2]]}, r"features must have shape \(1, 1\), got \(1, 2\)"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_change_nothing(rows: dict[str, Any], message: str) -> None:
    history = told(SlidingWindow(5), [(0, 0, 1, 1)])
    with pytest.raises(ValueError, match=message):
        history.add_rows(
            **{"action": [1], "sensitive": [[0]], "legitimate": [[0]], "features": [[0]], "feedback": [1], **rows}
        )
    assert len(history) == 1


def test_info_without_a_key_or_of_another_size_is_refused() -> None:
    env = Env()
    _, info = env.reset(seed=0)
    with pytest.raises(ValueError, match="info must have the key 'fair_individual', got"):
        History(Full(), env.fair_spec).add({"reward": 1})
    with pytest.raises(ValueError, match=r"fair_individual must have shape \(2,\), got \(\)"):
        History(Full(), env.fair_spec, lanes=2).add(info)
    with pytest.raises(ValueError, match="add_rows needs a history of 1 lane, got one of 2"):
        History(Full(), SPEC, lanes=2).add_rows(action=[1], sensitive=[[0]])


def test_facts_of_another_size_are_refused_and_change_nothing() -> None:
    history = History(Full(), SPEC, lanes=2)
    facts = np.repeat(blank_facts(SPEC), 5)
    with pytest.raises(ValueError, match=r"facts must be 2 records of the spec's layout, got shape \(5,\)"):
        history.add_facts(facts)
    with pytest.raises(ValueError, match=r"action_probs must have shape \(2, 1, 2\), got \(2, 2\)"):
        history.add_facts(facts[:2], np.zeros((2, 2)))
    for over in ([True], [0, 1]):
        with pytest.raises(ValueError, match="done must have 2 entries, True or False, got"):
            history.add_facts(facts[:2], done=over)
    with pytest.raises(ValueError, match="lane must be between 0 and 1, got 7"):
        history.add_feedback([0], [1], lane=7)


def info_of(lanes: int, **told: Any) -> dict[str, Any]:
    """Return ``info`` of a batch in which a woman without a degree is decided for, and what is told else."""
    facts = np.repeat(blank_facts(SPEC), lanes)
    facts["decided"] = facts["action"] = 1
    facts["sensitive"] = facts["individual"] = 1
    facts["legitimate"] = 0
    info = {**columns(SPEC, facts, None), **{f"fair_{name}": np.asarray(value) for name, value in told.items()}}
    return {name: np.ascontiguousarray(value) for name, value in info.items()}


@pytest.mark.parametrize("given", ["three", [1, 2], 5])
def test_what_is_no_record_is_refused_by_its_name(given: Any) -> None:
    with pytest.raises(ValueError, match="facts must be 2 records of the spec's layout, got shape"):
        History(Full(), SPEC, lanes=2).add_facts(given)


@pytest.mark.parametrize("mask", [np.ones(3, bool), np.ones((2, 2), bool), np.array(True), np.ones((2, 1, 1), bool)])
def test_masks_of_another_shape_are_refused_before_compiled_code_reads_them(mask: Any) -> None:
    history = History(Full(), SPEC, lanes=2)
    facts, good = np.repeat(blank_facts(SPEC), 2), np.ones(2, bool)
    facts["action"] = facts["sensitive"] = facts["legitimate"] = 0
    for name, masks in (("decided", (mask, good)), ("first", (good, mask))):
        with pytest.raises(
            ValueError, match=rf"{name} must have shape \(2,\), got \({', '.join(map(str, mask.shape))}"
        ):
            history.add_batch(facts, None, decided=masks[0], first=masks[1])
    for name in ("_fair_decided", "_final_info"):
        with pytest.raises(ValueError, match=rf"{name} must have shape \(2,\), got"):
            history.add(info_of(2) | {"final_info": info_of(2), name: mask})
    assert len(history) == history.version == 0


def test_flags_may_be_integers() -> None:
    history, facts = History(Full(), SPEC, lanes=3), np.repeat(blank_facts(SPEC), 3)
    facts["action"] = facts["sensitive"] = facts["legitimate"] = 0
    history.add_batch(facts, None, decided=np.array([0, 1, 1]), first=np.zeros(3, int))
    assert history.sizes.tolist() == [0, 1, 1]


def test_a_refused_decision_does_not_enlarge_a_full_history() -> None:
    history = told(Full(), [(0, 0, 1, 1)] * 64)
    rows, facts = history.ring()[1], blank_facts(SPEC)
    facts["action"], facts["decided"] = 9, 1
    with pytest.raises(ValueError, match="action must be between -1 and 1, got 9"):
        history.add_facts(facts)
    assert history.ring()[1] is rows and history.snapshot()["rows"].nbytes == rows.nbytes


def test_people_of_arrays_are_added_one_by_one_to_a_history_of_steps_with_several() -> None:
    history = History(Full(), replace(SPEC, individuals=3))
    add(history, [(k % 2, k % 3, 1, 1) for k in range(2500)])
    assert len(history) == 2500 and history.columns()["individual"].tolist() == list(range(2500))
    with pytest.raises(ValueError, match="sensitive 'gender' must be between 0 and 1, got 2"):
        add(history, [(k // 1200, 0, 1, 1) for k in range(2500)])  # wrong in the third block
    assert len(history) == 2500


def test_an_info_of_which_one_part_does_not_fit_changes_nothing() -> None:
    history = History(Full(), SPEC, lanes=2)
    bad = info_of(2, action=[1, 9])
    bad |= {"final_info": info_of(2), "_final_info": np.array([True, False])}
    with pytest.raises(ValueError, match="action must be between -1 and 1, got 9"):
        history.add(bad)
    assert len(history) == 0
    with pytest.raises(ValueError, match="late_count must be between 0 and 1, got 3"):
        history.add(info_of(2, late_count=[0, 3]))
    with pytest.raises(ValueError, match=r"features must be finite numbers, got \[nan\]"):
        history.add(info_of(2, features=np.array([[0], [np.nan]], np.float32)))
    with pytest.raises(ValueError, match="fair_action must hold int64 values, got float64"):
        history.add(info_of(2, action=[1, 0.9]))
    late = {"late_individual": [[1], [1]], "late_feedback": [[1], [1]]}
    for count in (-1, 2):
        with pytest.raises(ValueError, match=f"late_count must be between 0 and 1, got {count}"):
            history.add(info_of(2, late_count=[0, count], **late))
    assert len(history) == 0


def test_late_feedback_comes_with_info() -> None:
    history = History(Full(), SPEC, lanes=2)
    history.add(info_of(2))
    late = {"late_count": [0, 1], "late_individual": [[-1], [1]], "late_feedback": [[-1], [1]]}
    history.add(info_of(2, individual=[2, 2], **late))
    assert history.counts()[:, 1, 0, 1].tolist() == [[0, 0, 2], [0, 1, 1]]


def test_late_feedback_changes_the_current_step_too() -> None:
    history = told(SlidingWindow(5), [(1, 0, 1, -1)])
    history.add_feedback([0], [1])
    assert np.array_equal(history.counts(current_step=True), history.counts())


def test_people_are_numbered_on_over_those_not_decided_on() -> None:
    history = told(Full(), [(1, 0, 1, -1), (1, 0, -1, -1), (1, 0, 1, -1)])
    add(history, [(0, 0, 0, -1)])
    assert history.columns()["individual"].tolist() == [0, 2, 3]


@given(episodes=st.lists(ROWS, max_size=4))
def test_cleared_histories_count_the_present_episode_alone(episodes: list[list[Row]]) -> None:
    history = History(Discounted(0.5, threshold=0.05, minimum=1), SPEC, keep=False)
    for rows in episodes:
        history.begin()
        add(history, rows)
        alone = told(Discounted(0.5, threshold=0.05, minimum=1), rows)
        assert history.counts() == pytest.approx(alone.counts(), abs=1e-12)
        assert np.array_equal(history.counts() > 0, alone.counts() > 0)
        assert len(history) == len(alone)


def test_what_was_forgotten_in_an_earlier_episode_does_not_hide_a_wrong_number() -> None:
    history = told(SlidingWindow(1), [(1, 0, 1, -1), (0, 0, 1, -1)])
    history.begin()
    with pytest.raises(ValueError, match="in this episode, got 9"):
        history.add_feedback([9], [1])


def test_arguments_of_another_kind_are_refused_by_name() -> None:
    env = gym.make("FairLending-v0")
    with pytest.raises(TypeError, match=r"spec must be a FairSpec, such as env.unwrapped.fair_spec, got \w+"):
        History(SlidingWindow(100), env)  # type: ignore[arg-type]
    history = History(SlidingWindow(100), env.unwrapped.fair_spec)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="info must be a mapping, the last item that step and reset return, got tuple"):
        history.add(env.reset(seed=0))  # type: ignore[arg-type]
