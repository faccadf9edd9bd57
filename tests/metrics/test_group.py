"""Group notions on histories: worked cases of the FAReL study, and agreement with Fairlearn."""

import copy
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from fair_envs.core.interactions import FairSpec, blank_facts
from fair_envs.metrics.gaps import Gaps
from fair_envs.metrics.group import DEFINITIONS, GroupNotion, group_members
from fair_envs.metrics.history import POSITIVE, Discounted, Full, History, Memory, SlidingWindow
from tests.helpers import uncompiled

SHORT = ("SP", "EO", "OAE", "PP", "PE", "EqOdds", "CUAE", "TE", "CSP")
SPEC = FairSpec(
    individuals=1,
    actions=2,
    features=(),
    sensitive={"sensitive": ("no", "yes")},
    groups=("no", "yes"),
    feedback="full",
)
PEOPLE = FairSpec(
    individuals=1,
    actions=2,
    features=(),
    sensitive={"gender": ("man", "woman"), "origin": ("north", "south", "east")},
    legitimate={"degree": ("none", "some")},
    groups=tuple(f"{g}, {o}" for g in ("man", "woman") for o in ("north", "south", "east")),
    feedback="full",
)

Case = list[tuple[int, int, int]]  # group (1: sensitive), decision, correct decision

G1: Case = [(1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0), (0, 1, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)]
G2: Case = [(1, 1, 1), (1, 0, 0)]
G3: Case = [(1, 1, 0), (1, 0, 0), (0, 1, 1), (0, 0, 1)]
G4: Case = [(1, 1, 1), (0, 0, 1), (1, 0, 0), (0, 1, 1)]
G7: Case = [(1, 0, 1), (1, 1, 0), (0, 0, 1), (0, 0, 1), (0, 1, 0)]
G8: Case = [(1, 0, 1), (1, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 0)]
G9: Case = [(1, 1, 1), (1, 1, 0), (0, 1, 1), (0, 1, 0), (0, 1, 0)]
NAN, LARGEST = float("nan"), 1.7976931348623157e308


def history(case: Case, memory: Memory | None = None) -> History:
    """Return a history of these decisions."""
    kept = History(memory or SlidingWindow(100), SPEC)
    if case:
        group, action, truth = np.array(case).T
        kept.add_rows(sensitive=group[:, None], action=action, feedback=truth)
    return kept


def gap(name: str, kept: History, **options: Any) -> float:
    return float(GroupNotion(name=name, **options).gap(kept)[0])


# ------------------------------------------------------------------------------------- cases of the published code


@pytest.mark.parametrize(
    ("case", "memory", "expected"),
    [
        (G1, None, {"SP": 0, "EO": 1 / 6, "OAE": 1 / 4, "PP": 1 / 2, "PE": 1 / 2, "EqOdds": 1 / 2, "CUAE": 1 / 2}),
        (G1, None, {"treatment_equality_raw": LARGEST, "TE": LARGEST}),
        (G2, None, dict.fromkeys([*SHORT, "treatment_equality_raw"], 0) | {"CSP": None}),
        (G3, None, {"SP": 0, "EO": 0, "OAE": 0, "PP": 1, "PE": 0, "CUAE": 1}),
        (G4, SlidingWindow(3), {"SP": 1 / 2, "OAE": 1 / 2, "EO": 0, "PP": 0, "PE": 0, "CUAE": 1}),
        (G4, Full(), {"SP": 0, "EO": 1 / 2, "OAE": 1 / 2, "PP": 0, "CUAE": 1}),
        (G7, None, {"treatment_equality_raw": 1, "TE": 1, "SP": 1 / 6, "EO": 0, "OAE": 0, "PE": 0}),
        (G8, None, {"SP": 0, "EO": 0, "PE": 0, "OAE": 1 / 6, "PP": 0, "CUAE": 1 / 6}),
        (G9, None, {"SP": 0, "EO": 0, "PE": 0, "OAE": 1 / 6, "PP": 1 / 6}),
        ([(1, 1, 1), (0, 0, 1)], None, {"EqOdds": 0, "EO": 1}),  # nobody is spared: of the two the first is undefined
        ([], None, dict.fromkeys([*SHORT, "treatment_equality_raw"], 1) | {"CSP": None}),
    ],
)
def test_the_published_codes_values(case: Case, memory: Memory | None, expected: dict[str, float | None]) -> None:
    kept = history(case, memory)
    for name, value in expected.items():
        if value is not None:
            assert gap(name, kept, undefined="paper") == pytest.approx(value), name


@pytest.mark.parametrize(
    ("case", "memory", "expected"),
    [
        (G1, None, {"TE": 1 / 2, "treatment_equality_raw": np.inf}),  # 1/2 against 1/1, and 1/1 against 1/0
        (G2, None, dict.fromkeys(["SP", "EO", "OAE", "PP", "PE", "EqOdds", "CUAE", "TE"], NAN)),
        (G3, None, {"SP": 0, "EO": NAN, "PE": NAN, "EqOdds": NAN, "PP": 1, "CUAE": 1}),
        (G4, SlidingWindow(3), {"SP": 1 / 2, "OAE": 1 / 2, "EO": NAN, "PP": NAN, "PE": NAN}),
        (G7, None, {"TE": abs(1 / 2 - 2 / 3)}),
        (G8, None, {"PP": NAN, "TE": 0}),
    ],
)
def test_what_is_undefined_is_not_called_fair(case: Case, memory: Memory | None, expected: dict[str, float]) -> None:
    kept = history(case, memory)
    for name, value in expected.items():
        assert gap(name, kept) == pytest.approx(value, nan_ok=True), name


QUALIFIED: Case = [*[(1, 0, 1)] * 5, *[(0, 1, 1)] * 5]  # five women, all rejected, and five men, all hired
NOBODY_HIRED: Case = [*[(1, 0, 1)] * 5, *[(0, 0, 0)] * 5]
ALL_HIRED: Case = [*[(1, 1, 1)] * 4, *[(0, 1, 1)] * 3, (0, 1, 0)]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ([*QUALIFIED, (0, 0, 0)], {"EO": 1, "PE": NAN, "EqOdds": 1, "PP": NAN, "CUAE": 1}),
        (NOBODY_HIRED, {"EO": NAN, "PE": NAN, "EqOdds": NAN, "PP": NAN, "CUAE": 1}),
        (ALL_HIRED, {"EO": 0, "PE": NAN, "EqOdds": 0, "PP": 1 / 4, "CUAE": 1 / 4}),
        (G8, {"EO": 0, "PE": 0, "EqOdds": 0, "PP": NAN, "CUAE": 1 / 6}),
        (G2, {"EqOdds": NAN, "CUAE": NAN}),
    ],
)
def test_of_two_parts_the_largest_that_is_defined_counts(case: Case, expected: dict[str, float]) -> None:
    kept = history(case)
    for name, value in expected.items():
        assert gap(name, kept) == pytest.approx(value, nan_ok=True), name
        for undefined, instead in (("fair", 0), ("unfair", 1)):
            chosen = gap(name, kept, undefined=undefined)
            assert chosen == pytest.approx(instead if np.isnan(value) else value), (name, undefined)
    last = GroupNotion(name="EqOdds", undefined="last").gap(kept, last=0.3)[0]
    assert last == (0.3 if np.isnan(expected["EqOdds"]) else expected["EqOdds"])


def test_several_groups_are_compared_by_the_parts_that_each_pair_has() -> None:
    kept = History(Full(), PEOPLE)
    origin, action, truth = np.array([(0, 1, 1), (1, 0, 1), (1, 1, 0), (2, 0, 0)]).T  # the south has both rates
    kept.add_rows(
        sensitive=np.stack([0 * origin, origin], 1), legitimate=0 * origin[:, None], action=action, feedback=truth
    )
    for across in ("pairs", "rest"):
        assert gap("EqOdds", kept, groups="origin", across=across) == 1


def test_a_combined_attribute_sets_its_members_against_everybody_else() -> None:
    spec = FairSpec(
        individuals=1,
        actions=2,
        features=(),
        sensitive={"x": ("0", "1"), "y": ("0", "1")},
        groups=("00", "01", "10", "11"),
        feedback="full",
    )
    kept = History(Full(), spec)
    kept.add_rows(sensitive=[[1, 1], [1, 0], [0, 1], [0, 0]], action=[1, 0, 0, 1], feedback=[1] * 4)  # G11
    assert gap("SP", kept, groups={"x": 1, "y": 1}) == pytest.approx(2 / 3)
    assert GroupNotion(name="SP", groups={"x": "1", "y": "1"}).rates(kept)["everybody else"] == pytest.approx(1 / 3)


def test_the_current_step_of_one_person_compares_nobody() -> None:  # G12
    kept = history([(1, 1, 1)])
    for name in ("SP", "EO", "OAE", "PP", "PE"):
        assert np.isnan(gap(name, kept, current_step=True))
        assert gap(name, kept, current_step=True, undefined="paper") == 0


def test_the_current_step_of_two_people() -> None:  # G12
    two = FairSpec(
        individuals=2, actions=2, features=(), sensitive={"s": ("no", "yes")}, groups=("no", "yes"), feedback="full"
    )
    kept = History(SlidingWindow(10), two)
    info = {
        "fair_decided": np.int8(1),
        "fair_individual": np.arange(2),
        "fair_sensitive": np.array([[1], [0]]),
        "fair_legitimate": np.zeros((2, 0), int),
        "fair_action": np.array([1, 0]),
        "fair_feedback": np.array([1, 1]),
        "fair_features": np.zeros((2, 0), np.float32),
        "fair_action_probs": np.zeros((2, 2), np.float32),
        "fair_outcome": np.zeros(2, np.float32),
        "fair_late_count": np.int64(0),
        "fair_late_individual": np.array([-1]),
        "fair_late_feedback": np.array([-1]),
    }
    kept.add(info)
    expected = {"SP": 1, "EO": 1, "OAE": 1, "PP": 0, "PE": 0}
    assert {n: gap(n, kept, current_step=True, undefined="paper") for n in expected} == expected


# ------------------------------------------------------------------------------------------------- more than two


def people() -> History:
    """Return a history in which 1/2 of the north, 1/4 of the south and 3/4 of the east are selected."""
    kept = History(Full(), PEOPLE)
    origin = np.repeat([0, 1, 2], 4)
    action = [1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0]
    codes = np.stack([np.tile([0, 1], 6), origin], axis=1)
    kept.add_rows(sensitive=codes, legitimate=np.tile([[0], [0], [1], [1]], (3, 1)), action=action, feedback=action)
    return kept


def test_the_largest_gap_is_between_the_two_groups_furthest_apart() -> None:
    assert gap("SP", people(), groups="origin") == pytest.approx(1 / 2)


def test_one_group_is_compared_with_all_other_people() -> None:
    assert gap("SP", people(), groups="origin", across="rest") == pytest.approx(3 / 4 - 3 / 8)
    named = {"south": {"origin": "south"}, "east": {"origin": "east"}}
    assert gap("SP", people(), groups=named, across="rest") == pytest.approx(3 / 4 - 3 / 8)  # the north is there too
    assert gap("SP", people(), groups=named) == pytest.approx(1 / 2)


def test_intersections_are_groups_of_their_own() -> None:
    assert list(group_members(PEOPLE, ["gender", "origin"])) == list(PEOPLE.groups)
    rates = GroupNotion(name="SP", groups=("gender", "origin")).rates(people())
    assert {name: rate[0, 0] for name, rate in rates.items()} == {
        "man, north": 0.5,
        "man, south": 0.5,
        "man, east": 1.0,
        "woman, north": 0.5,
        "woman, south": 0.0,
        "woman, east": 0.5,
    }


def test_an_undefined_group_leaves_the_others_compared() -> None:
    kept = History(Full(), PEOPLE)
    kept.add_rows(sensitive=[[0, 0], [0, 1]], legitimate=[[0], [0]], action=[1, 0])
    assert gap("SP", kept, groups="origin") == 1


def test_conditional_parity_is_the_largest_gap_within_a_value_of_the_factor() -> None:
    rates = GroupNotion(name="CSP", groups="origin").rates(people())  # degree none, some
    assert {name: rate[0, :, 0].tolist() for name, rate in rates.items()} == {
        "north": [1.0, 0.0],
        "south": [0.5, 0.0],
        "east": [1.0, 0.5],
    }
    assert gap("CSP", people(), groups="origin") == pytest.approx(1 / 2)


@uncompiled
def test_conditional_parity_compares_within_every_value_of_the_factor() -> None:
    degrees = replace(SPEC, legitimate={"degree": ("none", "some", "high")})
    kept = History(Full(), degrees)
    kept.add_rows(
        sensitive=[[0], [1]] * 4,
        legitimate=np.repeat([[0], [1], [2], [2]], 2, axis=0),
        action=[1, 1, 0, 0, 1, 0, 1, 1],  # the same without and with some degree; with a high one 2 of 2, and 1 of 2
    )
    rates = GroupNotion(name="CSP").rates(kept)
    assert {name: rate[0, :, 0].tolist() for name, rate in rates.items()} == {"no": [1, 0, 1], "yes": [1, 0, 0.5]}
    assert gap("CSP", kept) == 0.5


# ------------------------------------------------------------------------------------------------- what is undefined


def test_the_caller_chooses_what_an_undefined_gap_is() -> None:
    kept = history(G2)
    assert np.isnan(gap("EO", kept))
    assert gap("EO", kept, undefined="fair") == 0
    assert gap("EO", kept, undefined="unfair") == 1
    assert gap("treatment_equality_raw", kept, undefined="unfair") == np.inf
    last = GroupNotion(name="EO", undefined="last")
    assert np.isnan(last.gap(kept)[0])
    assert last.gap(kept, last=np.array([0.3])) == last.gap(kept, last=0.3) == [0.3]
    with pytest.raises(ValueError, match=r"last must have shape \(1,\), got \(2,\)"):
        last.gap(kept, last=np.array([0.3, 0.4]))
    assert last.gap(history(G1), last=np.array([0.3])) == pytest.approx([1 / 6])


# ------------------------------------------------------------------------------------- properties, other libraries

CASES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)), max_size=30)


@given(case=CASES, order=st.randoms(use_true_random=False))
def test_neither_order_nor_the_groups_names_matter(case: Case, order: Any) -> None:
    shuffled = list(case)
    order.shuffle(shuffled)
    renamed = [(1 - group, action, truth) for group, action, truth in case]
    for name in DEFINITIONS:
        if name != "conditional_parity":
            expected = gap(name, history(case))
            assert gap(name, history(shuffled)) == pytest.approx(expected, nan_ok=True)
            assert gap(name, history(renamed)) == pytest.approx(expected, nan_ok=True)
            assert np.isnan(expected) or 0 <= expected <= DEFINITIONS[name].worst


@pytest.mark.parametrize(
    ("case", "theirs", "ours"),
    [
        ([*QUALIFIED, (0, 0, 0)], 1, 1),
        ([*[(1, 1, 1)] * 5, *[(0, 1, 1)] * 5, (0, 1, 0)], 1, 0),  # no woman who should be rejected
        (NOBODY_HIRED, 0, NAN),
        ([*[(1, 1, 1)] * 5, *[(0, 1, 0)] * 3], 1, NAN),
    ],
)
def test_fairlearn_takes_a_rate_of_nobody_for_0(case: Case, theirs: float, ours: float) -> None:
    metrics: Any = pytest.importorskip("fairlearn.metrics")
    group, action, truth = np.array(case).T
    assert metrics.equalized_odds_difference(truth, action, sensitive_features=group) == theirs
    assert gap("EqOdds", history(case)) == pytest.approx(ours, nan_ok=True)


def test_gaps_are_fairlearns() -> None:
    fairlearn: Any = pytest.importorskip("fairlearn.metrics")
    scores: Any = pytest.importorskip("sklearn.metrics")
    luck = np.random.default_rng(0)
    cases = []
    for _ in range(1000):
        group, action, truth = luck.integers(0, 2, (3, int(luck.integers(8, 40))))
        group[:4], truth[:4], action[:4] = (0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)  # all rates of both groups exist
        cases.append((group, action, truth))
    rates = {
        "SP": fairlearn.selection_rate,
        "EO": fairlearn.true_positive_rate,
        "PE": fairlearn.false_positive_rate,
        "PP": scores.precision_score,
        "NPV": partial(scores.precision_score, pos_label=0),
        "OAE": lambda y_true, y_pred: float(np.mean(y_true == y_pred)),
    }
    for i, ((group, action, truth), expected) in enumerate(zip(cases, differences(cases, scores), strict=True)):
        if i < 20:  # fairlearn's frame takes a hundred times as long to say the same
            frame = fairlearn.MetricFrame(metrics=rates, y_true=truth, y_pred=action, sensitive_features=group)
            assert frame.difference().to_dict() == pytest.approx(expected, abs=1e-15)
        expected["EqOdds"] = max(expected["EO"], expected["PE"])  # fairlearn's equalized_odds_difference
        expected["CUAE"] = max(expected["PP"], expected.pop("NPV"))
        kept = history(list(zip(group, action, truth, strict=True)))
        assert {name: gap(name, kept) for name in expected} == pytest.approx(expected)


def differences(cases: list[tuple[Any, Any, Any]], scores: Any) -> list[dict[str, float]]:
    """Return how far each case's groups are apart in each rate, by scikit-learn.

    All groups of all cases are told in one call as people of their own: class 2k is of group k who should be, or are,
    rejected, class 2k + 1 accepted.
    """
    groups = [(truth[group == k], action[group == k]) for group, action, truth in cases for k in (0, 1)]
    truths, actions = (np.concatenate([2 * k + pair[kind] for k, pair in enumerate(groups)]) for kind in (0, 1))
    precision, recall, _, _ = scores.precision_recall_fscore_support(truths, actions)
    each = {
        "SP": np.array([action.mean() for _, action in groups]),
        "EO": recall[1::2],
        "PE": 1 - recall[0::2],
        "PP": precision[1::2],
        "NPV": precision[0::2],
        "OAE": np.array([(truth == action).mean() for truth, action in groups]),
    }
    return [{name: abs(float(of[2 * i] - of[2 * i + 1])) for name, of in each.items()} for i in range(len(cases))]


@pytest.mark.parametrize("favourable", [0, 1])
@given(case=CASES)
def test_of_the_accepted_alone_notions_that_say_nothing_are_refused(favourable: int, case: Case) -> None:
    known = [(group, action, truth if action == favourable else -1) for group, action, truth in case]
    partial = replace(SPEC, feedback="accepted", favourable_action=favourable)
    found = {name: gap(name, history(known)) for name in (*SHORT, "treatment_equality_raw") if name != "CSP"}
    telling = {"SP", "OAE", "PP"} if favourable == 1 else {"SP", "OAE"}
    for name, value in found.items():
        if name in telling:
            GroupNotion(name=name).check(partial)
            continue
        assert value == 0 or np.isnan(value) or name == "CUAE", name  # of which one part is known
        needed = "decision 1" if name == "PP" else "all decisions"
        with pytest.raises(ValueError, match=f"needs feedback on {needed}; .* only on decision {favourable}"):
            GroupNotion(name=name).check(partial)
    if favourable == 1:
        assert found["OAE"] == pytest.approx(found["PP"], nan_ok=True)
    assert found["CUAE"] == pytest.approx(found["OAE"], nan_ok=True)


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "XX"}, "name must be one of demographic_parity, .*, got 'XX'"),
        ({"name": "equal_odds"}, r"got 'equal_odds'; did you mean 'equalized_odds'\?"),
        ({"name": ["SP"]}, r"name must be one of demographic_parity, .*, got \['SP'\]"),
        ({"name": "SP", "current_step": "no"}, "current_step must be True or False, got 'no'"),
        ({"name": "SP", "across": "all"}, "across must be one of 'pairs', 'rest', got 'all'"),
        (
            {"name": "SP", "undefined": "zero"},
            "undefined must be one of 'nan', 'fair', .*, got 'zero'",
        ),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupNotion(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": "age"}, r"groups must use the sensitive attributes \(gender, origin\), got 'age'"),
        ({"groups": {"gender": "cat"}}, r"groups\['gender'\] must be one of 'man', 'woman', got 'cat'"),
        ({"groups": {"origin": 3}}, r"groups\['origin'\] must be one of 'north', 'south', 'east', got 3"),
        ({"groups": 5}, "groups must be a name, several names or a mapping, got 5"),
        ({"groups": ["origin", "origin"]}, r"groups must name each attribute once, got \['origin', 'origin'\]"),
        (
            {"groups": {"one": {"gender": "man"}, "other": {"gender": 0}, "rest": {"gender": 1}}},
            "groups must have different people, got",
        ),
        ({"groups": {}}, "groups must name at least one attribute, got none"),
        ({"groups": {"men": {"gender": "man"}}}, "groups must be at least two, got"),
        ({"groups": "origin", "undefined": "paper"}, "undefined='paper' needs two groups, got 3"),
    ],
)
def test_groups_that_are_not_there_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupNotion(name="SP", **options).gap(people())


LATE = replace(SPEC, feedback="delayed", delay=3)


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize(
    "memory",
    [
        *(SlidingWindow(size) for size in (2, 3, 4, 6, 7)),
        Full(),
        *(Discounted(0.5, threshold=threshold, minimum=1) for threshold in (0, 0.01, 0.03, 0.0625, 0.07)),
        *(Discounted(1.0, threshold=threshold, minimum=1) for threshold in (0.14, 0.15, 0.25, 0.26)),
        *(Discounted(0.5, threshold=0.9, minimum=minimum) for minimum in (3, 4, 6, 7)),
        Discounted(0.1, algorithm="paper"),
    ],
    ids=str,
)
def test_a_history_that_forgets_everybody_before_feedback_comes_is_refused(memory: Memory, people: int) -> None:
    spec = replace(LATE, individuals=people, late_rows=people)
    at_once = replace(spec, feedback="full", delay=0)  # the history of which nobody asks for a delay
    kept, learns = History(memory, at_once), False
    for step in range(20):
        facts = blank_facts(at_once)
        facts["decided"], facts["action"], facts["sensitive"] = 1, 1, 0
        facts["individual"] = people * step + np.arange(people)
        if step >= spec.delay:
            facts["late_count"], facts["late_feedback"] = people, 1
            facts["late_individual"] = people * (step - spec.delay) + np.arange(people)
        kept.add_facts(facts)
        learns = learns or bool(kept.counts()[..., POSITIVE].any())
    several, late = Gaps(["SP", "EO"], spec), History(memory, spec)
    asked: list[Callable[[], Any]] = [
        lambda: several.check_memory(memory),
        lambda: several(late),
        lambda: GroupNotion(name="EO").gap(late),
        lambda: GroupNotion(name="EO").rates(late),
    ]
    GroupNotion(name="SP").gap(late)
    for ask in asked:
        if learns:
            ask()
            continue
        with pytest.raises(ValueError, match=r"for more than 3 steps, until the feedback for equal_.* arrives, got"):
            ask()


def test_the_present_step_is_never_known_of_where_feedback_comes_later() -> None:
    kept = History(Full(), LATE)
    assert np.isnan(GroupNotion(name="SP", current_step=True).gap(kept)[0])
    with pytest.raises(ValueError, match="current_step must be False for equal_opportunity if feedback is delayed"):
        GroupNotion(name="EO", current_step=True).gap(kept)


def test_each_history_is_asked_for_its_memory() -> None:
    notion = GroupNotion(name="EO")
    for _ in range(2):
        assert np.isnan(notion.gap(History(SlidingWindow(4), LATE))[0])
        with pytest.raises(ValueError, match=r"got SlidingWindow\(size=3\)"):
            notion.gap(History(SlidingWindow(3), LATE))


def test_a_notion_that_needs_what_the_environment_lacks_is_refused() -> None:
    blind = FairSpec(individuals=1, actions=2, features=(), sensitive={"s": ("no", "yes")}, groups=("no", "yes"))
    with pytest.raises(ValueError, match=r"equal_opportunity needs feedback \(the correct decisions\);"):
        GroupNotion(name="EO").gap(History(Full(), blind))
    with pytest.raises(ValueError, match="conditional_parity needs a legitimate factor"):
        GroupNotion(name="CSP").gap(History(Full(), blind))
    unmarked = FairSpec(individuals=1, actions=2, features=(), sensitive={}, groups=())
    with pytest.raises(ValueError, match="groups must be given if there is no sensitive attribute"):
        GroupNotion(name="SP").gap(History(Full(), unmarked))


# ------------------------------------------------------------------------------------------------ what is compiled


def test_a_notion_is_compiled_once_for_each_history_and_holds_nothing_but_its_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notion, kept = GroupNotion(name="EO", groups={"sensitive": "yes"}), history(G1)
    found = notion.gap(kept)
    assert vars(notion).keys() == {own.name for own in fields(notion) if own.init}
    monkeypatch.setattr("fair_envs.metrics.group.GroupGaps", None)
    assert notion.gap(kept) == notion.gap(copy.deepcopy(kept)) == found
    with pytest.raises(TypeError):
        notion.gap(history(G1))


def test_actions_that_people_choose_themselves_are_no_decisions_about_them() -> None:
    sensitive = {"speed": ("full", "half")}
    spec = FairSpec(
        individuals=4, actions=8, features=(), sensitive=sensitive, groups=sensitive["speed"], same_individuals=True
    )
    with pytest.raises(ValueError, match=r"needs decisions about people.*choose one of 8 actions themselves. Compare"):
        GroupNotion(name="demographic_parity").check(spec)


def test_a_notion_that_needs_all_labels_names_the_parameter_that_reveals_them() -> None:
    group = {"group": ("a", "b")}
    spec = FairSpec(individuals=1, actions=2, features=(), sensitive=group, groups=group["group"], feedback="accepted")
    with pytest.raises(ValueError, match=r"equal_opportunity needs feedback on all decisions.*feedback='full'"):
        GroupNotion(name="equal_opportunity").check(spec)
