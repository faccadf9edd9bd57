"""Measures that follow a process step by step, against the whole history computed anew; worked examples by hand."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

import fair_envs.envs.epidemic.rules as epidemic_rules
import fair_envs.envs.hiring as hiring
from fair_envs.core.interactions import FairSpec, blank_facts, columns
from fair_envs.metrics import long_term
from fair_envs.metrics.group import GroupNotion
from fair_envs.metrics.history import History, SlidingWindow
from fair_envs.metrics.long_term import (
    FunctionMeasure,
    IncidentDistance,
    Measure,
    OpportunityGap,
    ShareDeviation,
    StateDistance,
    VaccinationGap,
    WindowDistance,
    suppose_person,
    suppose_vaccine,
)
from fair_envs.metrics.populations import (
    absolute_deviation,
    cloud_distance,
    coverage_gap,
    gap_of_means,
    mean_gap,
    opportunity_gap,
    relative_deviation,
    share_deviation,
    total_variation_of_shares,
    unlabelled_distance,
    vaccination_gap,
    wasserstein,
)
from fair_envs.support.aliases import Floats

nojit = pytest.mark.nojit
NAN = float("nan")

# Hu, Lear and Zhang (2024): the scores of the two groups at first, and how many of each score repay.
ADVANTAGED = [0, 0.1, 0.1, 0.2, 0.3, 0.3, 0]
DISADVANTAGED = [0.1, 0.1, 0.2, 0.3, 0.3, 0, 0]
AFTER_ONE_LOAN = [0.1, 0.1, 0.2, 0.3, 0.29, 0.01, 0]
REPAYS = [0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7]


# ------------------------------------------------------------------------------------------------- worked examples


@nojit
def test_the_scores_of_the_two_groups_are_one_level_apart_at_first() -> None:
    assert wasserstein(ADVANTAGED, DISADVANTAGED) == pytest.approx(1.0)
    assert wasserstein(ADVANTAGED, AFTER_ONE_LOAN) == pytest.approx(0.99)


def test_the_distance_counts_the_way_between_levels() -> None:
    assert wasserstein([1, 0, 0], [0, 0, 5], levels=[0, 1, 10]) == 10
    assert wasserstein([3, 1], [6, 2]) == 0  # shares, not counts


@nojit
def test_the_published_training_distance_of_lending_is_blind_to_which_score_has_which_count() -> None:
    one, other = np.array([0, 1, 1, 2, 3, 3, 0]), np.array([1, 1, 2, 3, 3, 0, 0])
    assert unlabelled_distance(15 * one, 15 * other) == 0
    assert wasserstein(15 * one, 15 * other) == pytest.approx(1.0)
    assert unlabelled_distance(16 * one, 14 * one) == pytest.approx(2.857, abs=5e-4)  # equal shares
    assert wasserstein(16 * one, 14 * one) == 0


def test_the_published_evaluation_distance_pairs_episodes() -> None:
    assert cloud_distance([ADVANTAGED] * 10, [DISADVANTAGED] * 10) == pytest.approx(0.34641, abs=5e-6)
    assert cloud_distance([ADVANTAGED], [AFTER_ONE_LOAN]) == pytest.approx(0.33793, abs=5e-6)
    assert cloud_distance([[0, 0], [5, 0]], [[5, 1], [0, 1]]) == 1  # each with the nearer one
    assert cloud_distance(np.zeros((4, 3, 2)), np.ones((4, 3, 2))) == pytest.approx([2**0.5] * 4)


def test_a_rate_gap_is_of_the_qualified() -> None:
    assert opportunity_gap([[9, 51], [14, 36]]) == pytest.approx(0.85 - 0.72)
    assert opportunity_gap([[9, 51], [14, 0]]) == pytest.approx(0.85)  # nobody of the other group was accepted
    assert opportunity_gap([[0, 0], [14, 36]], undefined="zero") == pytest.approx(0.72)
    assert np.isnan(opportunity_gap([[0, 0], [14, 36]]))
    assert np.isnan(opportunity_gap([[9, 51], [14, 36]], minimum=51))
    assert opportunity_gap([[1, 1], [0, 0], [3, 1]]) == 0.25  # those without a rate are left out
    assert opportunity_gap(np.ones((4, 3, 2, 2))).shape == (4, 3)


@nojit
def test_shares_of_attention() -> None:
    totals = np.sum([[2, 1, 1, 1, 1], [6, 0, 0, 0, 0], [1, 2, 1, 1, 1]], axis=0)
    assert totals.tolist() == [9, 3, 2, 2, 2]
    assert share_deviation(totals) == pytest.approx(0.3)
    assert share_deviation(totals, whole=6 * 300) == pytest.approx(0.1989, abs=5e-5)  # equation 9 to the letter
    assert share_deviation([2, 1, 1, 1, 1]) == pytest.approx(0.1333, abs=5e-5)
    assert share_deviation([6, 0, 0, 0, 0]) == pytest.approx(0.8)
    assert np.isnan(share_deviation([0, 0]))


def test_coverage_of_attention_as_pocar_measures_it() -> None:
    assert coverage_gap([2, 1, 1, 1, 1], [7, 6, 3, 5, 1]) == pytest.approx(0.3571, abs=5e-5)


def test_incidents_and_rates_of_attention() -> None:
    assert relative_deviation([7, 6, 3, 5, 1]) == pytest.approx(0.4857, abs=5e-5)
    assert total_variation_of_shares([7, 6, 3, 5, 1], np.ones(5)) == pytest.approx(0.2182, abs=5e-5)
    assert absolute_deviation([8, 6, 4, 3, 1.5]) == 3.5
    assert total_variation_of_shares([8, 6, 4, 3, 1.5], np.ones(5)) == pytest.approx(0.2222, abs=5e-5)


def test_the_published_evaluation_of_attention_falls_with_all_rates_and_shares_do_not() -> None:
    rates = np.array([8, 6, 4, 3, 1.5])
    assert absolute_deviation(rates / 10) == pytest.approx(0.35)
    assert total_variation_of_shares(rates / 10, np.ones(5)) == pytest.approx(0.2222, abs=5e-5)


def test_vaccinations_for_each_of_the_newly_infected() -> None:
    assert vaccination_gap([2, 3], [6, 4]) == pytest.approx(0.3143, abs=5e-5)
    options = {"first": [4, 1], "second": [3, 2], "none": [3, 1]}
    gaps = {name: float(vaccination_gap(option, [5, 6])) for name, option in options.items()}
    assert gaps == pytest.approx({"first": 0.5238, "second": 0.2143, "none": 0.3571}, abs=5e-5)


def test_the_published_distance_of_epidemics_counts_group_sizes() -> None:
    assert cloud_distance([[7, 8, 0]], [[18, 1, 0]]) == pytest.approx(13.038, abs=5e-4)
    assert total_variation_of_shares([7, 8, 0], [18, 1, 0]) == pytest.approx(0.4807, abs=5e-5)
    assert cloud_distance([[0, 15, 0]], [[0, 19, 0]]) == 4
    assert total_variation_of_shares([0, 15, 0], [0, 19, 0]) == 0
    assert cloud_distance([[2, 11, 2]], [[2, 11, 6]]) == 4


def test_a_gap_of_means_hides_gaps_of_opposite_signs() -> None:
    rates = np.array([[0.9, 0.6], [0.6, 0.8]])
    assert gap_of_means(rates) == pytest.approx(0.05)
    assert mean_gap(rates) == pytest.approx(0.25)


@pytest.mark.parametrize("apart", [wasserstein, total_variation_of_shares])
def test_a_group_without_members_is_no_distance_away(apart: Callable[..., Any]) -> None:
    assert np.isnan(apart([0, 0], [1, 2]))
    assert np.isnan(apart([NAN, 0], [1, 2]))
    assert np.isnan(apart([[0, 0], [1, 0]], [1, 2])).tolist() == [True, False]


@pytest.mark.parametrize("deviation", [share_deviation, relative_deviation])
def test_the_extremes_of_deviations(deviation: Callable[..., Any]) -> None:
    assert (deviation([3, 3, 3, 3]), deviation([0, 7, 0, 0])) == (0, 0.75)


def test_bad_arrays_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"p must be finite numbers of at least 0 with at least one axis, got \[-1, 1\]"
    ):
        wasserstein([-1, 1], [1, 1])
    with pytest.raises(ValueError, match="q must have as many levels as p, 2, got 3"):
        wasserstein([1, 1], [1, 1, 1])
    with pytest.raises(ValueError, match=r"levels must be 2 ascending finite numbers, got \[1, 1\]"):
        wasserstein([1, 1], [1, 1], levels=[1, 1])
    with pytest.raises(ValueError, match=r"counts must have shape \(..., groups, 2\), got \(3,\)"):
        opportunity_gap([1, 1, 1])
    with pytest.raises(ValueError, match="undefined must be one of 'nan', 'zero', got 'fair'"):
        opportunity_gap([[1, 1]], undefined="fair")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"p and q must have one shape .*, got \(2, 3\) and \(1, 3\)"):
        cloud_distance(np.zeros((2, 3)), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="q must be finite numbers, got nan"):
        cloud_distance([[0, 1]], [[NAN, 1]])
    with pytest.raises(ValueError, match="p must be finite numbers, got inf"):
        cloud_distance([[np.inf, 1]], [[0, 1]])
    for gap in (mean_gap, gap_of_means):
        with pytest.raises(ValueError, match=r"rates must have shape \(episodes, ..., groups\), got \(2,\)"):
            gap([0.5, 0.3])
    with pytest.raises(ValueError, match=r"infected must have the shape of vaccinated, \(2,\), got \(3,\)"):
        vaccination_gap([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"occurred must have the shape of discovered, \(2,\), got \(3,\)"):
        coverage_gap([1, 2], [1, 2, 3])
    with pytest.raises(
        ValueError, match=r"whole must be finite numbers of at least 0 of shape \(2,\), got \[1, 2, 3\]"
    ):
        share_deviation(np.ones((2, 3)), whole=[1, 2, 3])


PLAIN = np.array([[2.0, 3.0, 1.0], [1.0, 4.0, 2.0]])  # of two entries, each of three numbers
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "wasserstein": lambda p: wasserstein(p, PLAIN[::-1]),
    "wasserstein, the other": lambda q: wasserstein(PLAIN[::-1], q),
    "total variation": lambda p: total_variation_of_shares(p, PLAIN[::-1]),
    "unlabelled": lambda p: unlabelled_distance(p, PLAIN[::-1]),
    "unlabelled, the other": lambda q: unlabelled_distance(PLAIN[::-1], q),
    "shares": share_deviation,
    "shares of a whole": lambda totals: share_deviation(totals, whole=10),
    "whole": lambda whole: share_deviation(PLAIN, whole=whole[:, 0]),
    "relative deviation": relative_deviation,
    "absolute deviation": absolute_deviation,
    "opportunity": lambda for_: opportunity_gap(np.stack([PLAIN, for_], axis=-1)),
    "opportunity, coded": lambda against: opportunity_gap(np.stack([against, PLAIN], axis=-1), undefined="zero"),
    "vaccinations": lambda given: vaccination_gap(given, PLAIN),
    "infections": lambda infected: vaccination_gap(PLAIN, infected),
    "coverage": lambda found: coverage_gap(found, PLAIN),
    "mean gap": lambda rates: mean_gap(rates[np.newaxis]),
    "gap of means": lambda rates: gap_of_means(rates[np.newaxis]),
}


@nojit
@pytest.mark.parametrize("apart", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("place", range(3))
def test_what_depends_on_a_nan_is_nan_and_nothing_else_is(apart: Callable[[Any], Any], place: int) -> None:
    odd = PLAIN.copy()
    odd[0, place] = NAN
    found, expected = apart(odd), apart(PLAIN)
    assert np.isnan(found[0]) or (apart is FUNCTIONS["whole"] and place > 0)  # which is a number for three
    assert found[1] == expected[1]


@pytest.mark.parametrize("apart", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_infinite_numbers_are_refused(apart: Callable[[Any], Any], infinite: float) -> None:
    odd = PLAIN.copy()
    odd[0, 0] = infinite
    with pytest.raises(ValueError, match=r"must be finite numbers"):
        apart(odd)


# ---------------------------------------------------------------------------------------------- against other code


def test_the_distance_is_scipys() -> None:
    chance = np.random.default_rng(0)
    p, q = chance.integers(0, 20, (2, 1000, 7)) + (np.arange(7) == 3)
    levels = np.cumsum(chance.random(7) + 0.1)
    expected = [wasserstein_distance(levels, levels, *pair) for pair in zip(p, q, strict=True)]
    assert wasserstein(p, q, levels=levels) == pytest.approx(np.array(expected), abs=1e-12)


def test_total_variation_is_its_sum() -> None:
    p, q = np.random.default_rng(1).random((2, 1000, 5))
    expected = 0.5 * abs(p / p.sum(1, keepdims=True) - q / q.sum(1, keepdims=True)).sum(1)
    assert total_variation_of_shares(p, q) == pytest.approx(expected, abs=1e-12)
    assert total_variation_of_shares(p.reshape(10, 100, 5), q.reshape(10, 100, 5)).shape == (10, 100)


# ------------------------------------------------------------------------------------------------------ step by step

GROUPS, LEVELS, PLACES, PEOPLE = 2, 3, 3, 4
WINDOW = 4


def spec(**facts: Any) -> FairSpec:
    plain: dict[str, Any] = {"individuals": 1, "actions": 2, "features": (), "feedback": "full"}
    return FairSpec(**{**plain, "sensitive": {"group": ("a", "b")}, "groups": ("a", "b"), **facts})


LOANS = spec(features=("score", "group"))
PLACED = spec(individuals=PLACES, actions=7, same_individuals=True)
HEALTH = spec(individuals=PEOPLE, features=("susceptible", "infected", "recovered", "degree"), same_individuals=True)

Info = dict[str, NDArray[Any]]


def told(spec: FairSpec, lanes: int = 1, **facts: Any) -> Info:
    """Return a step's ``info`` in which each fact is one for all lanes, or has an axis of lanes."""
    records = np.repeat(blank_facts(spec), lanes)
    records["decided"] = 1
    for name, value in facts.items():
        given = np.asarray(value)
        records[name] = given if given.shape == records[name].shape else given.reshape(records[name].shape[1:])
    return columns(spec, records, None)


def loan(group: int, *, action: int = 1, feedback: int = 1, score: int = 0) -> Info:
    features = [score / (LEVELS - 1), group]
    return told(LOANS, group=group, action=action, feedback=feedback, features=features)


def units(*allocation: int) -> Info:
    return told(PLACED, action=allocation, feedback=np.zeros(PLACES, int), group=range(PLACES))


def struck(*incidents: int) -> Info:
    return told(PLACED, action=np.zeros(PLACES, int), feedback=incidents, group=range(PLACES))


def outbreak(states: str, *, vaccinated: int = -1, infected: str = "", group: str = "0011") -> Info:
    """Return a step's info from states such as "SSIR" before it and "x" for the newly infected, "r" for recovered."""
    codes = np.array(["SIR".index(state) for state in states])
    features = np.zeros((PEOPLE, 4))
    features[np.arange(PEOPLE), codes] = 1
    outcome = np.array([{"x": -1, "r": 1}.get(letter, 0) for letter in infected.ljust(PEOPLE)])
    action = np.arange(PEOPLE) == vaccinated
    facts = {"action": action, "feedback": codes == 0, "outcome": outcome, "features": features}
    return told(HEALTH, group=[int(letter) for letter in group], **facts)


@nojit
def test_a_loan_to_each_group() -> None:
    gap = OpportunityGap(1)
    assert np.isnan(gap.update(loan(0)))
    assert gap.update(loan(1, action=0)) == 1
    assert gap.update(loan(1, action=1)) == 0.5
    assert numbers(gap.before, gap.value) == [1, 0.5]
    assert gap.update(loan(1, action=1, feedback=0)) == 0.5  # who does not repay is not among the qualified
    assert gap.update(loan(1, action=0, feedback=-1)) == 0.5  # nor is who is not known to
    assert gap.counts.tolist() == [[[0, 1], [1, 1]]]


def test_the_window_forgets_the_oldest_decision_on_anybody() -> None:
    gap, coded = OpportunityGap(1, window=2), OpportunityGap(1, window=2, one_more=True)
    steps = [loan(0), loan(1), loan(1, action=0), loan(0, feedback=0)]
    assert [float(gap.update(step)[0]) for step in steps] == pytest.approx([NAN, 0, NAN, NAN], nan_ok=True)
    assert [float(coded.update(step)[0]) for step in steps] == pytest.approx([NAN, 0, 0.5, NAN], nan_ok=True)


def test_the_published_gap_takes_an_undefined_rate_for_zero() -> None:
    gap = OpportunityGap(1, undefined="zero")
    assert gap.value == 0
    assert gap.update(loan(0)) == 1  # nobody of the other group was there
    gap.restart(np.array([True]))
    assert numbers(gap.value, gap.before) == [0, 0]


def test_a_rate_needs_the_minimum() -> None:
    gap = OpportunityGap(1, minimum=2)
    assert np.isnan([gap.update(loan(group))[0] for group in (0, 1, 0)]).all()
    assert gap.update(loan(1, action=0)) == 0.5


def test_expectations_take_the_place_of_feedback() -> None:
    by_level = OpportunityGap(1, qualified=[0.25, 0.5, 1])
    given = OpportunityGap(1, qualified=lambda info: [[0.25, 0.5, 1][round(2 * info["fair_features"][0, 0])]])
    steps = [loan(0, score=2, feedback=-1), loan(1, score=1), loan(1, score=0, action=0)]
    for gap in (by_level, given):
        assert [float(gap.update(step)[0]) for step in steps] == pytest.approx([NAN, 0, 1 / 3], nan_ok=True)
        assert gap.if_taken([1], [1], [0.75]) == pytest.approx([1 - 1.25 / 1.5])
    own = OpportunityGap(1, qualified=[[0, 0, 1], [1, 0, 0]])  # by group
    assert [float(own.update(step)[0]) for step in steps] == pytest.approx([NAN, NAN, 1], nan_ok=True)


def test_a_lending_decision_before_it_is_taken() -> None:
    gap = OpportunityGap(1)
    for group, accepted, refused in ((0, 40, 10), (1, 20, 20)):
        for action in [1] * accepted + [0] * refused:
            gap.update(loan(group, action=action))
    assert gap.if_taken([1], [0], [1]) == pytest.approx([0.3122], abs=5e-5)
    assert gap.if_taken([1], [1], [1]) == pytest.approx([0.2878], abs=5e-5)
    assert gap.if_taken([1], [1], [0]) == gap.if_taken([1], [0], [0]) == pytest.approx([0.3])  # a defaulter: no change
    assert gap.if_taken([-1], [1], [1]) == gap.value


@nojit
def test_scores_in_the_window() -> None:
    apart = WindowDistance(1, groups=2, levels=LEVELS, window=2)
    values = [float(apart.update(loan(group, score=score))[0]) for group, score in ((0, 2), (1, 0), (1, 1), (0, 1))]
    assert values == pytest.approx([NAN, 2, NAN, 0], nan_ok=True)
    assert apart.counts.tolist() == [[[0, 1, 0], [0, 1, 0]]]


def test_the_published_distance_of_windows_forgets_levels_and_counts_sizes() -> None:
    apart = WindowDistance(1, groups=2, levels=LEVELS, distance="as_coded")
    assert apart.value == 0
    assert apart.update(loan(0, score=2)) == pytest.approx([1 / 3])
    assert apart.update(loan(1, score=0)) == 0
    assert apart.update(loan(1, score=0)) == pytest.approx([1 / 3])


def test_levels_from_a_function_and_on_a_scale() -> None:
    settings: dict[str, Any] = {"groups": 2, "levels": 2, "level_of": lambda info: info["fair_feedback"]}
    apart = WindowDistance(1, positions=[0, 7], **settings)
    other = WindowDistance(1, distance="total_variation", **settings)
    for group, feedback in ((0, 0), (1, 1), (1, 0)):
        assert apart.update(loan(group, feedback=feedback)) == pytest.approx(
            7 * other.update(loan(group, feedback=feedback)), nan_ok=True
        )
    assert apart.value == 3.5


def test_units_given_to_places() -> None:
    share = ShareDeviation(1, individuals=PLACES, window=2)
    assert share.if_taken([[6, 0, 0]]) == pytest.approx([2 / 3])
    assert np.isnan(share.value)
    assert share.update(units(6, 0, 0)) == pytest.approx([2 / 3])
    assert share.update(units(0, 3, 3)) == pytest.approx([1 / 6])
    assert share.if_taken([[2, 2, 2]]) == pytest.approx([1 / 6])  # of (2, 5, 5): the first step has left
    assert share.totals.tolist() == [[6, 3, 3]]


def test_a_unit_is_moved_to_where_shares_become_most_equal() -> None:
    share = ShareDeviation(1, individuals=5)
    placed = spec(individuals=5, actions=31, same_individuals=True)
    share.update(told(placed, action=[30, 6, 6, 6, 12], group=range(5)))
    assert share.if_taken([[2, 1, 1, 1, 1]]) == pytest.approx([0.2848], abs=5e-5)
    assert share.if_taken([[1, 2, 1, 1, 1]]) == pytest.approx([0.2697], abs=5e-5)


def test_incidents_at_places() -> None:
    apart, coded = IncidentDistance(1, individuals=PLACES), IncidentDistance(1, individuals=PLACES, distance="as_coded")
    assert np.isnan(apart.update(struck(0, 0, 0)))
    assert apart.update(struck(1, 2, 3)) == pytest.approx([1 / 6])
    assert coded.update(struck(1, 2, 3)) == pytest.approx([1 / 3])
    assert apart.update(struck(-1, 2, 3)) == pytest.approx([1 / 6])  # one is not told
    assert apart.update(struck(6, 0, 0)) == pytest.approx([7 / 12 - 1 / 3])


@nojit
def test_vaccinations_by_community() -> None:
    gap, coded = VaccinationGap(1, groups=2), VaccinationGap(1, groups=2, effective=False)
    assert gap.value == gap.before == 0
    assert gap.if_taken([0]) == 1
    step = outbreak("SISS", vaccinated=0, infected="  xx")
    assert numbers(gap.update(step), coded.update(step)) == [1, 1]
    assert gap.if_taken([1]) == pytest.approx([1 - 1 / 3])
    assert gap.if_taken([-1]) == gap.value
    wasted = outbreak("RIII", vaccinated=0)  # who has recovered already
    assert numbers(gap.update(wasted), coded.update(wasted)) == [1, 2]


def test_the_worked_epidemic_options() -> None:
    gap = VaccinationGap(1, groups=2)
    gap.counts[:] = [[[3, 5], [1, 6]]]
    assert [float(gap.if_taken([group])[0]) for group in (0, 1, -1)] == pytest.approx(
        [0.5238, 0.2143, 0.3571], abs=5e-5
    )


@nojit
def test_states_after_the_step_follow_from_decisions_and_outcomes() -> None:
    apart = StateDistance(1, groups=2)
    value = apart.update(outbreak("SISI", vaccinated=0, infected="  xr"))
    assert apart.counts.tolist() == [[[0, 1, 1], [0, 1, 1]]]
    assert numbers(apart.before, value) == [0, 0]
    assert apart.update(outbreak("SSII")) == 1
    assert apart.before == 1  # of what the decision saw, whatever was before
    assert apart.update(outbreak("SSSI", vaccinated=3)) == 0.5  # a vaccination does not heal


def test_states_of_health_have_the_codes_of_the_environment() -> None:
    names = ("SUSCEPTIBLE", "INFECTED", "RECOVERED")  # written twice: neither may import the other
    assert [getattr(long_term, name) for name in names] == [getattr(epidemic_rules, name) for name in names]


def test_states_as_coded_and_in_their_order() -> None:
    counted = StateDistance(1, groups=2, distance="as_coded")
    ordered = StateDistance(1, groups=2, distance="wasserstein")
    assert counted.update(outbreak("SSSI", group="0111")) == pytest.approx([2**0.5])
    assert ordered.update(outbreak("SSRR")) == 2
    assert StateDistance(1, groups=2, distance="as_coded").update(outbreak("IIII", group="0111")) == 2


def test_a_function_is_a_measure() -> None:
    apart = FunctionMeasure(1, lambda info: abs(info["fair_action"] - 0.5))
    assert apart.update(loan(0)) == 0.5
    with pytest.raises(ValueError, match=r"function must return shape \(2,\), got \(1,\)"):
        FunctionMeasure(2, lambda info: [0.0]).update({})


# ------------------------------------------------------------------------------------- against the whole history


class Case:
    """A measure, random steps for it, and its value computed anew from all that was told."""

    def __init__(
        self,
        make: Callable[[int], Measure],
        draw: Callable[[np.random.Generator, int], Info],
        anew: Callable[[list[Info], int], float],
        if_taken: Callable[[Any, Info], Floats] | None = None,
    ) -> None:
        self.make, self.draw, self.anew, self.if_taken = make, draw, anew, if_taken


def loans(chance: np.random.Generator, lanes: int) -> Info:
    facts = {name: chance.integers(low, 2, (lanes, 1)) for name, low in (("group", 0), ("action", -1), ("feedback", 0))}
    features = np.stack([chance.integers(0, LEVELS, (lanes, 1)) / (LEVELS - 1), facts["group"]], axis=-1)
    return told(LOANS, lanes, features=features, **facts)


def attention(chance: np.random.Generator, lanes: int) -> Info:
    shape = (lanes, PLACES)
    feedback = np.where(chance.random((lanes, 1)) < 0.1, -1, chance.poisson(1.5, shape))
    return told(PLACED, lanes, action=chance.integers(0, 4, shape), feedback=feedback, group=np.zeros(shape, int))


def epidemic(chance: np.random.Generator, lanes: int) -> Info:
    shape = (lanes, PEOPLE)
    state, action = chance.integers(0, 3, shape), np.arange(PEOPLE) == chance.integers(-1, PEOPLE, (lanes, 1))
    outcome = np.where(state == 0, -chance.integers(0, 2, shape) * ~action, (state == 1) * chance.integers(0, 2, shape))
    features = np.eye(4)[state]
    group = np.tile([0, 0, 1, 1], (lanes, 1))
    return told(HEALTH, lanes, action=action, feedback=state == 0, outcome=outcome, features=features, group=group)


def people(steps: list[Info], lane: int, *, window: int | None = WINDOW) -> list[tuple[int, int, int, int]]:
    """Return group, decision, feedback and level of those in a window."""
    rows = [
        (
            int(step["fair_group"][lane]),
            int(step["fair_action"][lane]),
            int(step["fair_feedback"][lane]),
            round(2 * float(step["fair_features"][lane, 0])),
        )
        for step in steps
    ]
    decided = [row for row in rows if row[1] >= 0]
    return decided if window is None else decided[-window:]


def rate_gap(steps: list[Info], lane: int, weigh: Callable[[int, int], float], window: int | None = WINDOW) -> float:
    counts = np.zeros((GROUPS, 2))
    for group, action, feedback, level in people(steps, lane, window=window):
        counts[group, action] += weigh(feedback, level)
    return float(opportunity_gap(np.round(counts, 6)))


def score_gap(steps: list[Info], lane: int, apart: Callable[..., Any]) -> float:
    counts = np.zeros((GROUPS, LEVELS))
    for group, _, _, level in people(steps, lane):
        counts[group, level] += 1
    return float(apart(*counts))


def totals(steps: list[Info], lane: int, name: str, window: int | None) -> Floats:
    rows = [step[name][lane] for step in steps if step[name][lane].min() >= 0]
    kept = rows if window is None else rows[-window:]
    return np.asarray(np.array([np.zeros(PLACES), *kept]).sum(axis=0))


def vaccines(steps: list[Info], lane: int, *, effective: bool) -> float:
    group = np.array([0, 0, 1, 1])
    vaccinated, infected = np.zeros(GROUPS), np.zeros(GROUPS)
    for step in steps:
        took = (step["fair_action"][lane] == 1) & ((step["fair_feedback"][lane] == 1) | (not effective))
        for g in range(GROUPS):
            vaccinated[g] += took[group == g].sum()
            infected[g] += (step["fair_outcome"][lane][group == g] == -1).sum()
    return float(vaccination_gap(vaccinated, infected))


def health_gap(steps: list[Info], lane: int, apart: Callable[..., Any]) -> float:
    step = steps[-1]
    state = step["fair_features"][lane].argmax(axis=-1)
    state = np.where((step["fair_action"][lane] == 1) & (state == 0), 2, state)
    state = np.where(step["fair_outcome"][lane] == -1, 1, np.where(step["fair_outcome"][lane] == 1, 2, state))
    return float(apart(*(np.bincount(state[own], minlength=3) for own in (slice(0, 2), slice(2, 4)))))


def euclidean(p: Any, q: Any) -> float:
    return float(np.linalg.norm(p - q))


def numbers(*values: Floats) -> list[float]:
    """Return the values of measures of one lane."""
    return [float(value[0]) for value in values]


def if_decided(measure: OpportunityGap, step: Info) -> Floats:
    group = np.where(step["fair_action"] < 0, -1, step["fair_group"])
    return measure.if_taken(group, step["fair_action"], step["fair_feedback"])


def if_given(measure: ShareDeviation, step: Info) -> Floats:
    return measure.if_taken(step["fair_action"])


CHANCES = [0.1, 0.7, 0.45]
CASES: dict[str, Case] = {
    "opportunity": Case(
        lambda lanes: OpportunityGap(lanes, window=WINDOW),
        loans,
        lambda steps, lane: rate_gap(steps, lane, lambda feedback, level: feedback),
        if_decided,
    ),
    "opportunity, one more": Case(
        lambda lanes: OpportunityGap(lanes, window=WINDOW - 1, one_more=True),
        loans,
        lambda steps, lane: rate_gap(steps, lane, lambda feedback, level: feedback),
        if_decided,
    ),
    "opportunity since the start": Case(
        lambda lanes: OpportunityGap(lanes, window=None),
        loans,
        lambda steps, lane: rate_gap(steps, lane, lambda feedback, level: feedback, None),
        if_decided,
    ),
    "expected opportunity": Case(
        lambda lanes: OpportunityGap(lanes, window=WINDOW, qualified=CHANCES),
        loans,
        lambda steps, lane: rate_gap(steps, lane, lambda feedback, level: CHANCES[level]),
    ),
    "scores": Case(
        lambda lanes: WindowDistance(lanes, groups=GROUPS, levels=LEVELS, window=WINDOW),
        loans,
        lambda steps, lane: score_gap(steps, lane, wasserstein),
    ),
    "scores, total variation": Case(
        lambda lanes: WindowDistance(lanes, groups=GROUPS, levels=LEVELS, window=WINDOW, distance="total_variation"),
        loans,
        lambda steps, lane: score_gap(steps, lane, total_variation_of_shares),
    ),
    "scores as coded": Case(
        lambda lanes: WindowDistance(lanes, groups=GROUPS, levels=LEVELS, window=WINDOW, distance="as_coded"),
        loans,
        lambda steps, lane: score_gap(steps, lane, unlabelled_distance),
    ),
    "shares": Case(
        lambda lanes: ShareDeviation(lanes, individuals=PLACES, window=WINDOW),
        attention,
        lambda steps, lane: float(share_deviation(totals(steps, lane, "fair_action", WINDOW))),
        if_given,
    ),
    "shares since the start": Case(
        lambda lanes: ShareDeviation(lanes, individuals=PLACES, window=None),
        attention,
        lambda steps, lane: float(share_deviation(totals(steps, lane, "fair_action", None))),
        if_given,
    ),
    "incidents": Case(
        lambda lanes: IncidentDistance(lanes, individuals=PLACES, window=WINDOW),
        attention,
        lambda steps, lane: float(
            total_variation_of_shares(totals(steps, lane, "fair_feedback", WINDOW), np.ones(PLACES))
        ),
    ),
    "incidents as coded": Case(
        lambda lanes: IncidentDistance(lanes, individuals=PLACES, window=WINDOW, distance="as_coded"),
        attention,
        lambda steps, lane: float(relative_deviation(totals(steps, lane, "fair_feedback", WINDOW))),
    ),
    "vaccinations": Case(
        lambda lanes: VaccinationGap(lanes, groups=GROUPS),
        epidemic,
        lambda steps, lane: vaccines(steps, lane, effective=True),
    ),
    "vaccinations as coded": Case(
        lambda lanes: VaccinationGap(lanes, groups=GROUPS, effective=False),
        epidemic,
        lambda steps, lane: vaccines(steps, lane, effective=False),
    ),
    "states": Case(
        lambda lanes: StateDistance(lanes, groups=GROUPS),
        epidemic,
        lambda steps, lane: health_gap(steps, lane, total_variation_of_shares),
    ),
    "states in order": Case(
        lambda lanes: StateDistance(lanes, groups=GROUPS, distance="wasserstein"),
        epidemic,
        lambda steps, lane: health_gap(steps, lane, wasserstein),
    ),
    "states as coded": Case(
        lambda lanes: StateDistance(lanes, groups=GROUPS, distance="as_coded"),
        epidemic,
        lambda steps, lane: health_gap(steps, lane, euclidean),
    ),
}

lasting = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@lasting
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), ends=st.lists(st.integers(0, 11), max_size=3))
def test_step_by_step_equals_the_whole_history_in_each_lane(case: Case, seed: int, ends: list[int]) -> None:
    lanes, chance = 3, np.random.default_rng(seed)
    measure, steps, since = case.make(lanes), [], [0] * lanes
    for number in range(12):
        if number in ends:
            lane = number % lanes
            kept = measure.value.copy()
            measure.restart(np.arange(lanes) == lane)
            assert measure.value[lane] == pytest.approx(measure.blank, nan_ok=True)
            assert np.delete(measure.value, lane) == pytest.approx(np.delete(kept, lane), nan_ok=True)
            since[lane] = number
        steps.append(case.draw(chance, lanes))
        before = measure.value.copy()
        if case.if_taken is not None:
            supposed = case.if_taken(measure, steps[-1])
            assert measure.value == pytest.approx(before, nan_ok=True)
            assert supposed == pytest.approx(copy.copy(measure).update(steps[-1]), nan_ok=True)
        value = measure.update(steps[-1])
        expected = [case.anew(steps[first:], lane) for lane, first in enumerate(since)]
        assert value == pytest.approx(np.array(expected), abs=1e-6, nan_ok=True)
        assert value is not measure.value
        if not isinstance(measure, StateDistance):
            assert measure.before == pytest.approx(before, nan_ok=True)


@lasting
@pytest.mark.parametrize("undecided", [False, True])
def test_a_replay_equals_the_steps_one_by_one(case: Case, undecided: bool) -> None:
    chance, lanes = np.random.default_rng(6), 3
    for start in range(2):  # the second one continues
        steps = [case.draw(chance, lanes) for _ in range(9)]
        if undecided:
            for number, step in enumerate(steps):
                step["fair_decided"] = np.array([1, number % 3 > 0, 1], np.int8)
        first = chance.random((9, lanes)) < 0.2
        if not start:
            first[0], one, other = True, case.make(lanes), case.make(lanes)
        whole = {name: np.stack([np.asarray(step[name]) for step in steps]) for name in steps[0]}
        found = one.replay(whole, first=first, ended=np.zeros_like(first))
        for step, begins, value, before in zip(steps, first, found.value, found.before, strict=True):
            other.restart(begins)
            assert np.array_equal(other.update(step), value, equal_nan=True)
            assert np.array_equal(other.before, before, equal_nan=True)
        assert np.array_equal(one.value, other.value, equal_nan=True)
        for kept, now in zip(one.snapshot(), other.snapshot(), strict=True):
            assert np.array_equal(kept, now, equal_nan=True)


def test_a_subclass_that_measures_differently_is_replayed_step_by_step() -> None:
    class Twice(VaccinationGap):
        def measured(self, info: Any) -> Any:
            return 2 * super().measured(info)

    chance = np.random.default_rng(6)
    steps = [epidemic(chance, 2) for _ in range(5)]
    whole = {key: np.stack([np.asarray(step[key]) for step in steps]) for key in steps[0]}
    nothing = np.zeros((5, 2), bool)
    once, twice = (
        kind(2, groups=GROUPS).replay(whole, first=nothing, ended=nothing) for kind in (VaccinationGap, Twice)
    )
    assert np.array_equal(twice.value, 2 * once.value, equal_nan=True)


@pytest.mark.parametrize("name", ["vaccinations", "states"])
def test_a_replay_names_what_is_invalid(name: str) -> None:
    case, chance = CASES[name], np.random.default_rng(6)
    steps = [case.draw(chance, 2) for _ in range(4)]
    whole = {key: np.stack([np.asarray(step[key]) for step in steps]) for key in steps[0]}
    whole["fair_group"][2, 1] = GROUPS
    with pytest.raises(ValueError, match=f"fair_group must be between 0 and {GROUPS - 1}, got {GROUPS}"):
        case.make(2).replay(whole, first=np.zeros((4, 2), bool), ended=np.zeros((4, 2), bool))


@lasting
def test_copies_and_pickles_go_on_from_where_they_are_made(case: Case) -> None:
    chance = np.random.default_rng(3)
    steps = [case.draw(chance, 2) for _ in range(8)]
    measure = case.make(2)
    for step in steps[:5]:
        measure.update(step)
    others = [copy.copy(measure), copy.deepcopy(measure)]
    others += [pickle.loads(pickle.dumps(measure))]
    values = [measure.update(step) for step in steps[5:]]
    for other in others:
        assert np.array_equal([other.update(step) for step in steps[5:]], values, equal_nan=True)


@lasting
def test_resets_change_nothing(case: Case) -> None:
    chance = np.random.default_rng(4)
    measure = case.make(2)
    for _ in range(3):
        measure.update(case.draw(chance, 2))
    reset = case.draw(chance, 2)
    reset = {name: np.array(column) for name, column in reset.items()}
    for name in ("action", "feedback", "group"):
        reset[f"fair_{name}"][1] = -1
    reset["fair_features"][1] = 0
    value = measure.value[1]
    assert measure.update(reset)[1] == pytest.approx(value, nan_ok=True)


@lasting
def test_the_info_of_an_environment_without_lanes_is_taken(case: Case) -> None:
    chance = np.random.default_rng(5)
    one, other = case.make(1), case.make(1)
    for _ in range(4):
        step = case.draw(chance, 1)
        single = {name: column[0] for name, column in step.items()}
        assert one.update(step) == pytest.approx(other.update(single), nan_ok=True)


def test_the_gap_is_that_of_the_notion_over_a_history() -> None:
    env: Any = hiring.Vector(num_envs=3, feedback="full", horizon=20)
    _, info = env.reset(seed=0)
    spec = env.unwrapped.fair_spec
    history = History(SlidingWindow(10), spec, lanes=3)
    gap, notion = OpportunityGap(3, groups=4, window=10), GroupNotion(name="EO", groups=tuple(spec.sensitive))
    env.action_space.seed(0)
    history.add(info)
    for _ in range(50):
        info = env.step(env.action_space.sample())[4]
        history.add(info)
        assert gap.update(info) == pytest.approx(notion.gap(history), nan_ok=True)
    assert not np.isnan(gap.value).all()


@pytest.mark.parametrize("given", [False, True])
def test_expected_counts_leave_nothing_behind(given: bool) -> None:
    chances = np.array([0.1, 1 / 3, 0.6])  # whose sums in another order differ in their last digits
    qualified: Any = (lambda info: chances[np.rint(2 * info["fair_features"][:, 0]).astype(int)]) if given else chances
    gap = OpportunityGap(1, window=3, qualified=qualified)
    for _ in range(50):
        for score in (0, 1, 2, 2, 1):
            gap.update(loan(0, score=score))
    for _ in range(3):
        gap.update(loan(1, score=1))
    assert gap.counts[0].tolist() == [[0, 0], [0, pytest.approx(1)]]
    assert np.isnan(gap.value)


# ------------------------------------------------------------------------------------------------- what is refused


def test_what_is_no_group_or_level_is_refused_before_anything_changes() -> None:
    gap, apart = OpportunityGap(1, qualified=CHANCES), WindowDistance(1, groups=2, levels=LEVELS)
    for measure in (gap, apart):
        measure.update(loan(0, score=1))
        counts = measure.counts.copy()
        with pytest.raises(ValueError, match=r"^fair_group must be between 0 and 1, got 2 in lane 0"):
            measure.update(loan(2))
        with pytest.raises(ValueError, match=r"^the level must be between 0 and 2, got 3 in lane 0"):
            measure.update(loan(0, score=3))
        assert np.array_equal(measure.counts, counts)
    with pytest.raises(ValueError, match=r"^group must be between -1 and 1, got 2 in lane 0"):
        gap.if_taken([2], [0], [1])
    with pytest.raises(ValueError, match=r"^group must be between -1 and 1, got 2 in lane 0"):
        VaccinationGap(1, groups=2).if_taken([2])
    with pytest.raises(ValueError, match=r"^fair_group must be between 0 and 1, got 2 in lane 0"):
        VaccinationGap(1, groups=2).update(outbreak("SSSS", group="0012"))
    with pytest.raises(ValueError, match=r"^fair_group must be between 0 and 1, got 3 in lane 0"):
        StateDistance(1, groups=2).update(outbreak("SSSS", group="0013"))
    nowhere = {name: np.array(column) for name, column in outbreak("SSSS").items()}
    nowhere["fair_features"][:] = 0
    with pytest.raises(ValueError, match=r"^one of the first 3 fair_features must be 1, got \[0.0, 0.0, 0.0\]"):
        StateDistance(1, groups=2).update(nowhere)


@pytest.mark.parametrize("weight", [NAN, float("inf"), -0.1, 1.5])
def test_asking_with_what_is_no_probability_is_refused_and_changes_nothing(weight: float) -> None:
    gap = OpportunityGap(1, window=2)
    for group in (0, 1, 1):
        gap.update(loan(group))
    counts = gap.counts.copy()
    with pytest.raises(ValueError, match="qualified must be probabilities, got"):
        gap.if_taken([0], [0], [weight])
    assert np.array_equal(gap.counts, counts)
    assert gap.if_taken([-1], [0], [weight]) == pytest.approx(gap.value, nan_ok=True)  # nobody needs none


def as_python(loop: Any) -> Any:
    """Return a loop that is not compiled, which refuses to write where it must not."""
    return getattr(loop, "py_func", loop)


def test_asking_reads_counts_without_writing_them() -> None:
    gap, vaccines = OpportunityGap(1, window=2), VaccinationGap(1, groups=2)
    for group in (0, 1, 1):
        gap.update(loan(group))
    gap.counts.flags.writeable = vaccines.counts.flags.writeable = False
    value = np.empty(1)
    as_python(suppose_vaccine)(vaccines.counts, np.array([1]), value)
    assert value == 1
    as_python(suppose_person)(gap._state, np.array([0]), np.array([1]), np.array([1.0]), value)
    assert value == 0


@lasting
def test_only_one_flag_for_each_lane_says_what_is_forgotten(case: Case) -> None:
    masks: list[Any] = [np.array([1, 0]), np.array([True]), np.array([[True, False]]), [0], True]
    for mask in masks:
        with pytest.raises(ValueError, match=r"mask must be an array of bool of shape \(2,\), got"):
            case.make(2).restart(mask)


def test_groups_and_decisions_that_are_asked_about_are_integers() -> None:
    gap = OpportunityGap(1)
    with pytest.raises(ValueError, match=r"group must be integers, got \[0.9\]"):
        gap.if_taken([0.9], [1], [1])
    with pytest.raises(ValueError, match=r"action must be integers, got \[nan\]"):
        gap.if_taken([0], [NAN], [1])
    with pytest.raises(ValueError, match=r"group must be integers, got \[1.5\]"):
        VaccinationGap(1, groups=2).if_taken([1.5])


@pytest.mark.parametrize("level", [1.4, NAN])
def test_a_function_returns_whole_levels(level: float) -> None:
    apart = WindowDistance(2, groups=2, levels=LEVELS, level_of=lambda info: [0, level])
    step = told(LOANS, 2, group=np.array([[0], [1]]), action=np.array([[1], [1]]))
    with pytest.raises(ValueError, match=f"level_of must return whole numbers, got {level}"):
        apart.update(step)
    assert not apart.counts.any()
    step["fair_action"] = np.array([1, -1])  # nobody is decided on there
    apart.update(step)
    assert apart.counts.sum() == 1


def test_a_function_returns_a_number_for_each_person() -> None:
    with pytest.raises(ValueError, match=r"level_of must return shape \(1,\), got \(2,\)"):
        WindowDistance(1, groups=2, levels=2, level_of=lambda info: [0, 1]).update(loan(0))
    with pytest.raises(ValueError, match=r"qualified must return shape \(1,\), got \(2,\)"):
        OpportunityGap(1, qualified=lambda info: [0, 1]).update(loan(0))
    with pytest.raises(ValueError, match=r"^the level must be between 0 and 1, got 2 in lane 0"):
        WindowDistance(1, groups=2, levels=2, level_of=lambda info: [2]).update(loan(0))


def test_info_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="info must have the key 'fair_group', got"):
        OpportunityGap(1).update({})
    with pytest.raises(ValueError, match="fair_decided must have 2 lanes, got shape"):
        OpportunityGap(2).update(loan(0))
    with pytest.raises(ValueError, match="fair_feedback must have 1 lanes and fit fair_group"):
        OpportunityGap(1).update({**loan(0), "fair_feedback": np.zeros((1, 2), int)})
    with pytest.raises(ValueError, match="fair_features must have more than 2 columns"):
        WindowDistance(1, groups=2, levels=2, level_of=2).update(loan(0))
    with pytest.raises(ValueError, match=r"fair_action must have shape \(1, 4\), got \(1, 3\)"):
        ShareDeviation(1, individuals=4).update(units(1, 2, 3))
    with pytest.raises(ValueError, match=r"allocation must have shape \(1, 3\), got \(3,\)"):
        ShareDeviation(1, individuals=3).if_taken([1, 2, 3])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OpportunityGap(0), "lanes must be at least 1, got 0"),
        (lambda: OpportunityGap(1, groups=1), "groups must be at least 2, got 1"),
        (lambda: OpportunityGap(1, window=0), "window must be at least 1, got 0"),
        (lambda: OpportunityGap(1, qualified="late"), "qualified must be 'feedback', probabilities or a function"),
        (lambda: OpportunityGap(1, qualified=[0.5, 2]), r"qualified must be probabilities, got \[0.5, 2\]"),
        (
            lambda: OpportunityGap(1, qualified=np.ones((3, 2))),
            r"qualified must have shape \(levels,\) or \(2, levels\)",
        ),
        (lambda: WindowDistance(1, groups=2, levels=1), "levels must be at least 2, got 1"),
        (lambda: WindowDistance(1, groups=2, levels=2, distance="l2"), "distance must be one of 'wasserstein'"),  # type: ignore[arg-type]
        (lambda: WindowDistance(1, groups=2, levels=2, scale=NAN), "scale must be .*, got nan"),
        (lambda: WindowDistance(1, groups=2, levels=2, scale=0), "scale must be .*, got 0"),
        (lambda: OpportunityGap(1, qualified=[0.5, 1], scale=NAN), "scale must be .*, got nan"),
        (
            lambda: WindowDistance(1, groups=2, levels=2, positions=[0, np.inf]),
            r"positions must be 2 ascending finite numbers, got \[0, inf\]",
        ),
        (lambda: StateDistance(1, groups=2, states=2), "states must be at least 3, got 2"),
        (lambda: FunctionMeasure(1, 3), "function must be a function of info, got 3"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_named(make: Callable[[], Measure], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
