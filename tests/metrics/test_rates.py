"""Rate measures: benefits and demands by hand, windows, groups, and what the record must contain."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.rates import (
    ACCURACY,
    OUTCOME,
    RATES,
    RETURN,
    SELECTION,
    TRUE_NEGATIVE,
    TRUE_POSITIVE,
    Rate,
    RateMeasure,
    Step,
    quotients,
    rate_named,
)

nojit = pytest.mark.nojit
NAN = float("nan")

WHO = ("man", "woman")
SPEC = FairSpec(individuals=1, actions=2, features=("skill",), sensitive={"gender": WHO}, groups=WHO, feedback="full")
FOUR = FairSpec(
    individuals=1,
    actions=2,
    features=(),
    sensitive={"gender": WHO, "origin": ("here", "there")},
    groups=("man here", "man there", "woman here", "woman there"),
    feedback="full",
)
AGENTS = FairSpec(individuals=3, actions=2, features=(), sensitive={"half": ("no", "yes")}, groups=("no", "yes"))
NEEDS = FairSpec(
    individuals=3, actions=5, features=(), sensitive={"place": ("a", "b")}, groups=("a", "b"), amounts=True,
    feedback="full",
)  # fmt: skip


def step(group: Any, action: Any, label: Any = -1, **columns: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a step; each is a list over lanes."""
    group = np.asarray(group)
    info = {"fair_group": group, "fair_action": np.broadcast_to(action, group.shape)}
    info["fair_feedback"] = np.broadcast_to(label, group.shape)
    return {**info, **{f"fair_{name}": np.asarray(value) for name, value in columns.items()}}


def played(measure: RateMeasure, steps: Sequence[Sequence[int]]) -> list[float]:
    """Return the values after steps of one lane, each with group, decision and label."""
    return [float(measure.update(step([group], [action], [label]))[0]) for group, action, label in steps]


# Rates by hand -------------------------------------------------------------------------------------------------------

PEOPLE = ((0, 1, 1), (0, 1, 0), (0, 0, 1), (0, 0, 0), (1, 1, 1), (1, 0, 0), (1, 0, 0), (1, 1, 1), (1, 0, 1))
"""Group, decision and label: of the men 2 of 4 are selected, of the women 2 of 5."""

BY_HAND = {
    "demographic_parity": (2 / 4, 2 / 5),
    "equal_opportunity": (1 / 2, 2 / 3),
    "predictive_equality": (1 / 2, 0 / 2),
    "overall_accuracy_equality": (2 / 4, 4 / 5),
    "predictive_parity": (1 / 2, 2 / 2),
}


@nojit
@pytest.mark.parametrize(("notion", "rates"), BY_HAND.items())
def test_each_rate_of_decisions_by_hand(notion: str, rates: tuple[float, float]) -> None:
    measure = RateMeasure(1, RATES[notion], spec=SPEC)
    values = played(measure, PEOPLE)
    assert measure.rates[0].tolist() == pytest.approx(rates)
    assert values[-1] == pytest.approx(abs(rates[0] - rates[1]))


def test_true_negatives_are_the_others_among_the_unqualified() -> None:
    measure = RateMeasure(1, TRUE_NEGATIVE, spec=SPEC)
    played(measure, PEOPLE)
    assert measure.totals[0].tolist() == [[1, 2], [2, 2]]


@nojit
def test_a_gap_is_undefined_until_two_groups_have_a_rate() -> None:
    values = played(RateMeasure(1, TRUE_POSITIVE, spec=SPEC), [(0, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1)])
    assert values == pytest.approx([NAN, NAN, NAN, 0.5, 0.0], nan_ok=True)


def test_outcomes_are_compared_per_person_affected() -> None:
    measure = RateMeasure(2, OUTCOME, spec=SPEC)
    measure.update(step([0, 0], [1, 1], outcome=[2.0, -1.0]))
    measure.update(step([0, 1], [0, 1], outcome=[1.0, 3.0]))
    assert measure.update(step([1, -1], [1, -1], outcome=[0.5, 9.0])).tolist() == [1.0, 4.0]
    assert measure.rates.tolist() == [[1.5, 0.5], [-1.0, 3.0]]


def test_the_share_of_needs_that_are_met_has_at_most_the_need_as_benefit() -> None:
    measure = RateMeasure(1, RATES["needs_met"], spec=NEEDS)
    value = measure.update(step([[0, 1, 1]], [[4, 1, 2]], [[2, 3, 1]]))
    assert measure.totals[0].tolist() == [[2, 2], [2, 4]] and value.tolist() == [0.5]


@nojit
def test_returns_are_compared_per_agent_and_step() -> None:
    measure = RateMeasure(1, RETURN, spec=AGENTS)
    group = np.array([[0, 1, 1]])
    assert measure.update({"fair_group": group}, [[3.0, 1.0, 0.0]]).tolist() == [2.5]
    assert measure.update({"fair_group": group}, [[1.0, 2.0, 3.0]]).tolist() == [0.5]  # 4 / 2 and 6 / 4


def test_the_largest_difference_of_several_groups_counts() -> None:
    measure = RateMeasure(1, SELECTION, spec=FOUR)
    assert played(measure, [(0, 1, 1), (1, 0, 1), (1, 1, 1), (3, 0, 1)]) == pytest.approx(
        [NAN, 1.0, 0.5, 1.0], nan_ok=True
    )


def test_codes_that_no_group_has_are_refused() -> None:
    measure = RateMeasure(1, SELECTION, spec=SPEC, groups=tuple(SPEC.sensitive))
    info = {**step([0], [1], [1]), "fair_sensitive": np.full((1, len(SPEC.sensitive)), 7)}
    with pytest.raises(ValueError, match="fair_sensitive must have codes below"):
        measure.update(info)


# Spans ---------------------------------------------------------------------------------------------------------------


@nojit
def test_a_window_forgets_the_steps_before_it() -> None:
    steps = [(0, 1, 1), (1, 1, 1), (0, 0, 1), (1, 0, 1), (1, 1, 1)]
    values = played(RateMeasure(1, SELECTION, spec=SPEC, window=3), steps)
    # after step 3: men 1 of 2 and women 1 of 1; then 0 of 1 and 1 of 2; then 0 of 1 and 1 of 2
    assert values == pytest.approx([NAN, 0.0, 0.5, 0.5, 0.5], nan_ok=True)
    assert played(RateMeasure(1, SELECTION, spec=SPEC, window=2), steps)[-1:] == pytest.approx([NAN], nan_ok=True)


def test_a_window_equals_the_last_steps_counted_anew() -> None:
    chance = np.random.default_rng(0)
    steps = [(chance.integers(-1, 2, 4), chance.integers(0, 2, 4), chance.integers(0, 2, 4)) for _ in range(30)]
    measure = RateMeasure(4, TRUE_POSITIVE, spec=SPEC, window=7)
    for k, reported in enumerate(steps):
        anew = RateMeasure(4, TRUE_POSITIVE, spec=SPEC)
        for earlier in steps[max(0, k - 6) : k]:
            anew.update(step(*earlier))
        assert np.array_equal(measure.update(step(*reported)), anew.update(step(*reported)), equal_nan=True)


@nojit
def test_a_group_without_demands_in_the_window_has_no_rate_whatever_the_rounding() -> None:
    part = Rate(name="part", benefit="", demand="", parts=lambda step: (0.0, np.where(step.group == 1, 0.1, 0.3)))
    measure = RateMeasure(1, part, spec=SPEC, window=3)
    values = played(measure, [(1, 1, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1), (0, 1, 1), (0, 1, 1), (0, 1, 1)])
    assert values == pytest.approx([NAN, NAN, 0, 0, 0, 0, NAN], nan_ok=True)
    assert measure.totals[0, 1].tolist() == [0, 0]


def test_a_rate_is_undefined_below_the_smallest_demand() -> None:
    measure = RateMeasure(1, SELECTION, spec=SPEC, minimum=2)
    assert played(measure, [(0, 1, 1), (1, 0, 1), (0, 1, 1), (1, 0, 1)]) == pytest.approx([NAN] * 3 + [1], nan_ok=True)
    assert quotients(np.array([[1.0, 2.0], [1.0, 0.0], [0.0, 3.0]]), minimum=3).tolist() == pytest.approx(
        [NAN, NAN, 0.0], nan_ok=True
    )


@pytest.mark.parametrize(("keeps", "value"), [(False, NAN), (True, 0.5)])
def test_steps_of_earlier_episodes_count_if_they_are_kept(keeps: bool, value: float) -> None:
    measure = RateMeasure(2, SELECTION, spec=SPEC, keeps=keeps)
    measure.update(step([0, 0], [1, 1]))
    measure.update(step([1, 1], [1, 0]))
    measure.restart(np.array([True, False]))
    found = measure.update(step([1, 1], [0, 0]))
    assert found.tolist() == pytest.approx([value, 1.0], nan_ok=True)
    assert measure.value.tolist() == pytest.approx(found.tolist(), nan_ok=True)


@nojit
@pytest.mark.parametrize("rate", [SELECTION, RETURN], ids=["selection", "return"])
def test_lanes_without_a_decision_stay_as_they_are(rate: Rate) -> None:
    """A lane that pauses has the values of one that never does, also in a window."""
    spec = SPEC if rate is SELECTION else AGENTS
    chance = np.random.default_rng(1)
    both, alone = RateMeasure(2, rate, spec=spec, window=4), RateMeasure(1, rate, spec=spec, window=4)
    for k in range(20):
        group, action = chance.integers(0, 2, (2, spec.individuals)), chance.integers(0, 2, (2, spec.individuals))
        reward, decided = chance.normal(size=(2, spec.individuals)), np.array([1, k % 3 == 0], np.int8)
        before, state = both.value[1], both.totals[1].copy()
        value = both.update(step(group, action, decided=decided), reward)
        if decided[1]:
            expected = alone.update(step(group[1:], action[1:]), reward[1:])
            assert value[1:].tolist() == pytest.approx(expected.tolist(), nan_ok=True)
        else:
            assert value[1] == pytest.approx(before, nan_ok=True) and both.before[1] == pytest.approx(
                before, nan_ok=True
            )
            assert both.totals[1].tolist() == state.tolist() and not both.latest[1].any()


# Groups --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_groups_can_be_those_of_one_attribute(lanes: int) -> None:
    measure = RateMeasure(lanes, SELECTION, spec=FOUR, groups="origin")
    people = [((0, 0), 1), ((1, 0), 0), ((1, 1), 1), ((0, 1), 1)]  # gender and origin, decision
    for codes, action in people:
        group = 2 * codes[0] + codes[1]
        info = step([group] * lanes, [action] * lanes, sensitive=[codes] * lanes)
        value = measure.update(info)
    assert measure.group_names == ("here", "there")
    assert measure.rates.tolist() == [[0.5, 1.0]] * lanes and value.tolist() == [0.5] * lanes


def test_people_in_no_group_count_nowhere() -> None:
    groups = {"foreign women": {"gender": "woman", "origin": "there"}, "men": {"gender": "man"}}
    measure = RateMeasure(1, SELECTION, spec=FOUR, groups=groups)
    for group, codes, action in ((3, (1, 1), 1), (2, (1, 0), 1), (0, (0, 0), 0), (1, (0, 1), 1), (-1, (-1, -1), 1)):
        measure.update(step([group], [action], sensitive=[codes]))
    assert measure.totals[0].tolist() == [[1, 1], [1, 2]]


def test_the_record_of_a_single_environment_has_no_axis_of_lanes() -> None:
    by_group, by_gender = (RateMeasure(1, SELECTION, spec=FOUR, groups=groups) for groups in (None, "gender"))
    for group, action in ((0, 1), (3, 0)):
        info = step(group, action, sensitive=[group // 2, group % 2], decided=np.int8(1))
        assert by_group.update(info).tolist() == pytest.approx(by_gender.update(info).tolist(), nan_ok=True)
    assert by_group.value.tolist() == [1.0]


# Errors --------------------------------------------------------------------------------------------------------------


def test_an_unknown_group_changes_nothing() -> None:
    measure = RateMeasure(2, SELECTION, spec=SPEC, window=3)
    measure.update(step([0, 1], [1, 1]))
    before = measure.snapshot()
    with pytest.raises(ValueError, match=r"fair_group must be between -1 and 1, got \[2\] in lane 1"):
        measure.update(step([0, 2], [1, 1]))
    assert all(np.array_equal(own, old, equal_nan=True) for own, old in zip(measure.snapshot(), before, strict=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"minimum": -1.0}, "minimum must be at least 0, got -1.0"),
        ({"groups": {"men": {"gender": "man"}, "here": {"origin": "here"}}}, "groups must not have people in common"),
        ({"groups": "age"}, "age"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RateMeasure(1, SELECTION, spec=FOUR, **settings)


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"fair_group": np.array([0, 1])}, "info must have the key 'fair_action', got"),
        (step([0, 1, 0], [0, 1, 0]), "fair_group must have 2 lanes"),
        (step([0, 1], [1, 1], decided=[1, 1, 1]), "fair_decided must have 2 lanes, got shape"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(info: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RateMeasure(2, SELECTION, spec=SPEC).update(info)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": 3}, "parts must be a function from a Step to benefit and demand, got 3"),
        ({"columns": "action"}, "columns must be a list of names, got 'action'"),
        ({"columns": ("label",)}, "columns must be among action, feedback, .*, got 'label'"),
    ],
)
def test_a_bad_field_of_a_rate_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rate(**{"name": "x", "benefit": "x", "demand": "x", "parts": lambda step: (1, 1), **settings})


def test_the_name_of_a_notion_is_not_yet_a_rate() -> None:
    with pytest.raises(ValueError, match="rate must be a Rate, got 'SP'; measure_named takes the names of notions"):
        RateMeasure(1, "SP", spec=SPEC)  # type: ignore[arg-type]


def test_rewards_must_be_given_to_rates_of_returns() -> None:
    with pytest.raises(ValueError, match="reward must be given to a measure of returns, got none"):
        RateMeasure(1, RETURN, spec=AGENTS).update({"fair_group": np.array([[0, 1, 1]])})


@pytest.mark.parametrize(
    ("rate", "changed", "of_agents", "message"),
    [
        (
            RETURN,
            {},
            False,
            "return_parity .the return per step. needs agents who earn rewards; .* such as demographic_parity",
        ),
        (
            SELECTION,
            {"actions": 3},
            False,
            "demographic_parity .* needs two kinds of decisions, .* has 3 kinds",
        ),
        (
            SELECTION,
            {"amounts": True},
            False,
            "needs two kinds of decisions, 0 and 1; this environment has amounts",
        ),
        (
            ACCURACY,
            {"feedback": "none"},
            False,
            "accuracy.* needs labels .*; this environment reports none",
        ),
        (
            ACCURACY,
            {"feedback": "accepted"},
            False,
            "labels of all people; .* set feedback='full'",
        ),
        (
            ACCURACY,
            {"feedback": "delayed", "delay": 5},
            False,
            "labels arrive later: use a notion on a history",
        ),
    ],
)
def test_what_a_record_lacks_for_a_rate_is_named(
    rate: Rate, changed: dict[str, Any], of_agents: bool, message: str
) -> None:
    known = {"individuals": 1, "actions": 2, "features": (), "sensitive": {"gender": WHO}, "groups": WHO}
    spec = FairSpec(**{**known, "feedback": "full", **changed})
    with pytest.raises(ValueError, match=message):
        rate.check(spec, of_agents=of_agents)


def test_demographic_parity_of_agents_is_that_of_returns() -> None:
    assert rate_named("SP", of_agents=False) is SELECTION
    assert rate_named("statistical parity", of_agents=True) is RETURN
    assert rate_named("EO", of_agents=True) is TRUE_POSITIVE
    with pytest.raises(ValueError, match="rate must be one of"):
        rate_named("treatment_equality", of_agents=False)


def test_a_column_that_a_rate_does_not_list_is_named() -> None:
    step = Step({"action": np.zeros((1, 1), int), "group": np.zeros((1, 1), int)}, None, None)
    with pytest.raises(AttributeError, match="no column 'outcome', only action, group; list it"):
        assert step.outcome
