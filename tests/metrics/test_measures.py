"""Measures made from notions, returns and captures equal the numbers of what they are made from."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core.interactions import FairSpec
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.evaluation import LanesWorld, RandomPolicy, begun, rollout
from fair_envs.metrics.disparity import DisparityTracker
from fair_envs.metrics.followed import NotionMeasure, ReturnGap, TeamMeasure, measure_named
from fair_envs.metrics.gaps import Gaps
from fair_envs.metrics.group import GroupNotion
from fair_envs.metrics.history import Discounted, History, SlidingWindow
from fair_envs.metrics.long_term import OpportunityGap
from fair_envs.metrics.measures import FunctionMeasure, Measure
from fair_envs.metrics.rates import RETURN, TRUE_POSITIVE, RateMeasure
from fair_envs.metrics.team import team_fairness
from fair_envs.support.aliases import Columns, Floats
from fair_envs.wrappers import FairnessObjectives
from tests.ferry import Ferry, Vector
from tests.helpers import LITTLE, uncompiled

nojit = pytest.mark.nojit
NAN = float("nan")
LANES = 3

WHO = ("man", "woman")
LOANS = FairSpec(
    individuals=1,
    actions=2,
    features=("skill",),
    sensitive={"gender": WHO},
    legitimate={"education": ("none", "degree")},
    groups=WHO,
    feedback="full",
)
TEAM = FairSpec(
    individuals=4,
    actions=3,
    features=(),
    sensitive={"half_speed": ("no", "yes")},
    legitimate={"preference": ("red", "blue")},
    groups=("no", "yes"),
    same_individuals=True,
)


def loans(chance: np.random.Generator, *, decided: bool = True) -> dict[str, NDArray[Any]]:
    """Return a step of random decisions in all lanes."""
    return {
        "fair_decided": np.full(LANES, decided, np.int8),
        "fair_individual": chance.integers(0, 1000, LANES),
        "fair_features": chance.random((LANES, 1)).astype(np.float32),
        "fair_sensitive": chance.integers(0, 2, (LANES, 1)),
        "fair_legitimate": chance.integers(0, 2, (LANES, 1)),
        "fair_group": chance.integers(0, 2, LANES),
        "fair_action": chance.integers(0, 2, LANES),
        "fair_action_probs": np.full((LANES, 2), 0.5, np.float32),
        "fair_feedback": chance.integers(0, 2, LANES),
        "fair_outcome": chance.random(LANES).astype(np.float32),
        "fair_late_individual": np.full((LANES, 1), -1),
        "fair_late_feedback": np.full((LANES, 1), -1),
        "fair_late_count": np.zeros(LANES, np.int64),
        "fair_late_dropped": np.zeros(LANES, np.int64),
    }


def team(chance: np.random.Generator) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    """Return a step of four agents in all lanes, and their rewards."""
    group = np.array([[0, 1, 0, 1]] * LANES)
    info = {"fair_group": group, "fair_legitimate": np.array([[[0], [0], [1], [1]]] * LANES)}
    return {**info, "fair_action": chance.integers(0, 3, group.shape)}, chance.normal(size=group.shape)


def same(one: Any, other: Any) -> bool:
    return np.array_equal(one, other, equal_nan=True)


# Notions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [None, SlidingWindow(9), Discounted(0.9)], ids=["default", "window", "discounted"])
@pytest.mark.parametrize("notion", ["SP", "equalized_odds", "CSP", GroupNotion(name="EO", current_step=True)], ids=str)
def test_a_notion_as_a_measure_is_its_gap_on_a_history(notion: Any, memory: Any) -> None:
    chance = np.random.default_rng(2)
    measure = NotionMeasure(LANES, notion, spec=LOANS, history=memory)
    history, gaps = History(memory or SlidingWindow(500), LOANS, lanes=LANES), Gaps(notion, LOANS)
    for _ in range(40):
        info = loans(chance)
        history.add(info)
        assert same(measure.update(info), gaps(history)[:, 0])


@pytest.mark.parametrize("keeps", [False, True])
def test_decisions_of_earlier_episodes_count_if_they_are_kept(keeps: bool) -> None:
    chance, mask = np.random.default_rng(3), np.array([True, False, True])
    measure = NotionMeasure(LANES, "SP", spec=LOANS, keeps=keeps)
    for _ in range(20):
        measure.update(loans(chance))
    before = measure.value
    measure.restart(mask)
    assert same(measure.value, before if keeps else np.where(mask, NAN, before))
    assert measure.history.sizes.tolist() == ([20] * 3 if keeps else [0, 20, 0])


@uncompiled
def test_a_notion_as_a_measure_is_the_gap_in_the_reward_of_the_wrapper() -> None:
    env = FairnessObjectives(Vector(LANES, seats=3, horizon=7), ["SP", "EO"], SlidingWindow(20))
    measures = [NotionMeasure(LANES, name, spec=env.fair_spec, history=SlidingWindow(20)) for name in ("SP", "EO")]
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(40):
        info = env.step(env.action_space.sample())[-1]
        found = np.stack([measure.update(info) for measure in measures], axis=-1)
        known = info["fair_gaps_defined"] == 1
        assert same(found[known], info["fair_gaps"][known])


def test_a_measure_follows_one_notion() -> None:
    with pytest.raises(ValueError, match="notion must be one notion, got"):
        NotionMeasure(1, ["SP", "EO"], spec=LOANS)


def test_a_notion_has_its_own_bounds() -> None:
    assert (NotionMeasure(1, "SP", spec=LOANS).least, NotionMeasure(1, "SP", spec=LOANS).worst) == (0.0, 1.0)
    assert NotionMeasure(1, "IF", spec=LOANS).needs_action_probs
    assert not NotionMeasure(1, "SP", spec=LOANS).needs_action_probs


@nojit
@pytest.mark.parametrize("window", [None, 6])
def test_the_opportunity_gap_is_the_gap_of_true_positive_rates(window: int | None) -> None:
    chance = np.random.default_rng(4)
    one = OpportunityGap(LANES, window=window)
    other = RateMeasure(LANES, TRUE_POSITIVE, spec=LOANS, window=window)
    for k in range(40):
        info = loans(chance)
        assert one.update(info) == pytest.approx(other.update(info), nan_ok=True)
        if k % 7 == 6:
            one.restart(mask := np.arange(LANES) == k % LANES)
            other.restart(mask)


# Returns -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conditional", [False, True])
def test_the_gap_of_returns_is_that_of_the_tracker(conditional: bool) -> None:
    chance = np.random.default_rng(5)
    measure = ReturnGap(LANES, spec=TEAM, conditional=conditional)
    tracker = DisparityTracker(LANES, strata=1 + conditional)
    cost = np.zeros(LANES)
    for _ in range(30):
        info, reward = team(chance)
        stratum = info["fair_legitimate"][..., 0] if conditional else None
        cost += tracker.update(reward, info["fair_group"], stratum=stratum).sum(axis=1)
        assert same(measure.update(info, reward), tracker.gap().sum(axis=1))
    assert measure.value == pytest.approx(cost)  # the costs of an episode, which a penalty charges, add up to it


def test_the_gap_of_returns_leaves_lanes_without_a_decision_out() -> None:
    chance = np.random.default_rng(6)
    measure = ReturnGap(LANES, spec=TEAM)
    info, reward = team(chance)
    before = measure.update(info, reward)
    after = measure.update({**info, "fair_decided": np.array([1, 0, 1])}, reward + np.array([[5, 0, 0, 0]]))
    assert (after == before).tolist() == [False, True, False]


def test_without_legitimate_factors_returns_are_not_compared_within_them() -> None:
    spec = FairSpec(individuals=2, actions=2, features=(), sensitive={"half_speed": WHO}, groups=WHO)
    with pytest.raises(ValueError, match="conditional must be False for an environment without legitimate factors"):
        ReturnGap(1, spec=spec, conditional=True)
    with pytest.raises(ValueError, match="info must have the key 'fair_legitimate'"):
        ReturnGap(1, spec=TEAM, conditional=True).update({"fair_group": np.zeros((1, 4), int)}, np.zeros((1, 4)))


def test_the_gap_of_returns_of_a_harvest_is_that_of_its_agents_sums() -> None:
    rules = Harvest(**LITTLE)
    lanes = begun(rules, np.arange(LANES, dtype=np.uint64))
    measures = ReturnGap(LANES, spec=rules.spec), RateMeasure(LANES, RETURN, spec=rules.spec)
    total: NDArray[Any] = np.zeros((LANES, 8))
    for count, step in enumerate(rollout(LanesWorld(lanes), RandomPolicy(rules)), 1):
        total += step.reward
        slow = step.facts["group"] == 1
        means = [np.where(own, total, 0).sum(axis=1) / own.sum(axis=1) for own in (slow, ~slow)]
        gap, rate = (measure.update(step.columns, step.reward) for measure in measures)
        assert gap == pytest.approx(abs(means[0] - means[1])) and rate == pytest.approx(gap / count)


# Teams ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("episodes", [6, 100])
def test_the_measure_of_a_team_is_the_corrected_deficit_of_its_last_episodes(episodes: int) -> None:
    chance = np.random.default_rng(7)
    measure, captured = TeamMeasure(2, agents=3, episodes=episodes), []
    now = np.zeros((2, 3), bool)
    for _ in range(60):
        action, ended = chance.choice([-1, 0, 1], (2, 3), p=[0.1, 0.75, 0.15]), chance.random(2) < 0.3
        now |= action == 1
        for lane in np.flatnonzero(ended):
            captured.append(now[lane].copy())
            now[lane] = False
        value = measure.update({"fair_action": action}, ended=ended)
        if not captured:
            assert np.isnan(value).all()
            continue
        found = team_fairness(captured[-episodes:], permutations=1)
        assert value == pytest.approx([max(0.0, found.corrected)] * 2)


def test_a_team_that_is_reset_within_an_episode_starts_the_next_one_anew() -> None:
    measure = TeamMeasure(1, agents=2)
    measure.update({"fair_action": np.array([[1, 0]])}, ended=np.array([False]))
    measure.restart(np.array([True]))
    measure.update({"fair_action": np.array([[0, 0]])}, ended=np.array([True]))
    assert measure.succeeded.tolist() == [[False, False]]


def test_the_ends_of_episodes_must_be_given_to_measures_of_whole_episodes() -> None:
    with pytest.raises(ValueError, match="ended must be given to a measure of whole episodes, got none"):
        TeamMeasure(1, agents=2).update({"fair_action": np.array([[1, 0]])})


# By name -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spec", "kind", "shown"),
    [
        ("SP", LOANS, RateMeasure, "demographic_parity"),
        ("dp", TEAM, RateMeasure, "demographic_parity"),
        ("EO", LOANS, RateMeasure, "equal_opportunity"),
        ("CSP", TEAM, ReturnGap, "gap of returns"),
        ("CSP", LOANS, NotionMeasure, "conditional_parity"),
        ("treatment_equality", LOANS, NotionMeasure, "treatment_equality"),
        ("IF", LOANS, NotionMeasure, "individual_fairness"),
    ],
)
def test_a_notion_is_measured_in_the_form_that_fits(name: str, spec: FairSpec, kind: Any, shown: str) -> None:
    measure = measure_named(name, 2, spec=spec, of_agents=spec is TEAM)
    assert type(measure) is kind and measure.name == shown


def test_demographic_parity_of_agents_compares_their_returns() -> None:
    measure = measure_named("SP", 1, spec=TEAM, of_agents=True)
    assert isinstance(measure, RateMeasure) and measure.rate is RETURN


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        ("fairness", LOANS, "measure must be one of"),
        ("return_parity", LOANS, "return_parity .the return per step. needs agents who earn rewards"),
        ("EO", TEAM, "equal_opportunity .* needs two kinds of decisions, 0 and 1; this environment has 3 kinds"),
    ],
)
def test_a_name_that_does_not_fit_is_refused(name: str, spec: FairSpec, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure_named(name, 1, spec=spec, of_agents=spec is TEAM)


# Copies and snapshots ------------------------------------------------------------------------------------------------

Make = Callable[[], Measure]


class Nested(Measure):
    """Counts with numbers in a list and a dictionary, as a user may write it."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.counts: dict[str, list[int]] = {"selected": [0] * self.lanes, "decided": [0] * self.lanes}
        self.last = {"step": 0}

    def measured(self, info: Columns) -> Floats:
        """Return the share of the selected in each lane, and how many steps were taken."""
        self.last["step"] += 1
        for lane, action in enumerate(info["fair_action"]):
            self.counts["selected"][lane] += int(action == 1)
            self.counts["decided"][lane] += 1
        return np.divide(self.counts["selected"], self.counts["decided"]) + self.last["step"]

    def forget(self, mask: NDArray[np.bool_]) -> None:
        """Clear the masked lanes."""
        for lane in np.flatnonzero(mask):
            self.counts["selected"][lane] = self.counts["decided"][lane] = 0


KINDS: dict[str, Make] = {
    "rate": lambda: RateMeasure(LANES, TRUE_POSITIVE, spec=LOANS),
    "rate in a window": lambda: RateMeasure(LANES, TRUE_POSITIVE, spec=LOANS, window=5, keeps=True),
    "notion": lambda: NotionMeasure(LANES, "SP", spec=LOANS, history=SlidingWindow(5)),
    "individual notion": lambda: NotionMeasure(LANES, "consistency", spec=LOANS, history=SlidingWindow(8)),
    "team": lambda: TeamMeasure(LANES, agents=1, episodes=4),
    "opportunity": lambda: OpportunityGap(LANES, window=5),
    "nested": lambda: Nested(LANES),
    "function": lambda: FunctionMeasure(LANES, lambda info: info["fair_outcome"]),
}
EACH_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


def go_on(measure: Measure, seed: int, *, steps: int = 12) -> list[list[float]]:
    chance = np.random.default_rng(seed)
    values = []
    for _ in range(steps):
        ended = chance.random(LANES) < 0.3
        values.append(measure.update(loans(chance), chance.normal(size=(LANES, 1)), ended=ended).tolist())
        measure.restart(ended)
    return values


@EACH_KIND
def test_a_restored_measure_goes_on_to_the_bit(make: Make) -> None:
    measure, other = make(), make()
    go_on(measure, 1)
    saved = measure.snapshot()
    expected = go_on(measure, 2)
    go_on(other, 3)
    other.restore(saved)
    assert same(go_on(other, 2), expected)
    measure.restore(saved)
    assert same(go_on(measure, 2), expected)


@EACH_KIND
def test_copies_are_independent(make: Make) -> None:
    measure = make()
    go_on(measure, 1)
    one, other = copy.copy(measure), copy.deepcopy(measure)
    go_on(measure, 9)
    expected = go_on(one, 2)
    assert same(go_on(other, 2), expected)
    if not isinstance(measure, FunctionMeasure):  # its function cannot be pickled here
        assert same(go_on(pickle.loads(pickle.dumps(measure)), 4), go_on(measure, 4))


@EACH_KIND
def test_what_is_returned_is_a_new_array_and_the_last_value_is_kept(make: Make) -> None:
    measure = make()
    go_on(measure, 1)
    before = measure.value.copy()
    chance = np.random.default_rng(5)
    found = measure.update(loans(chance), chance.normal(size=(LANES, 1)), ended=np.zeros(LANES, bool))
    assert same(measure.before, before) and same(measure.value, found)
    found[:] = 7
    assert not (measure.value == 7).any()


@pytest.mark.parametrize("mask", [[0, 1], np.array([0, 1, 2]), np.array([True])], ids=str)
def test_lanes_to_restart_are_given_as_a_mask(mask: Any) -> None:
    with pytest.raises(ValueError, match=r"mask must be an array of bool of shape \(3,\), got"):
        RateMeasure(LANES, TRUE_POSITIVE, spec=LOANS).restart(mask)


def test_rules_of_the_ferry_offer_what_measures_by_name_need() -> None:
    rules = Ferry()
    assert measure_named("EO", 1, spec=rules.spec, of_agents=rules.multi_agent).name == "equal_opportunity"
