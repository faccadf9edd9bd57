"""Verdicts follow from estimates with intervals, corrected for the number of comparisons."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fair_envs.experiments.tables import show
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.reproduction.claims import (
    NOT_RUN,
    Claim,
    Measured,
    Outcome,
    both,
    comparisons,
    everywhere_above,
    everywhere_below,
    everywhere_within,
    more_seeds,
    on_a_part,
    somewhere_above,
    verdict,
)

T = 2.262157162740992  # Student's quantile for 9 degrees of freedom


def of(low: float, high: float) -> Estimate:
    """Return an estimate of 10 seeds with this interval."""
    error = (high - low) / 2 / T
    return Estimate(value=(low + high) / 2, low=low, high=high, n=10, standard_error=error, freedom=9)


def holds(*outcomes: Outcome) -> list[bool | None]:
    return [outcome.holds for outcome in outcomes]


def test_a_claim_holds_only_if_the_whole_interval_says_so() -> None:
    intervals = ((51, 60), (30, 49), (40, 60))
    assert holds(*(everywhere_above({"a": of(*i)}, 50) for i in intervals)) == [True, False, None]
    assert holds(*(somewhere_above({"a": of(*i)}, 50) for i in intervals)) == [True, False, None]
    assert holds(*(everywhere_below({"a": of(*i)}, 50) for i in intervals)) == [False, True, None]
    inside = ((-9, 9), (11, 20), (-30, -11), (5, 15))
    assert holds(*(everywhere_within({"a": of(*i)}, 10) for i in inside)) == [True, False, False, None]


def test_one_failure_must_survive_the_correction_but_success_everywhere_needs_none() -> None:
    barely = {name: of(0.01, 2) for name in "abcd"}
    assert everywhere_above(barely, 0).holds is True
    assert somewhere_above(barely, 0).holds is None
    assert everywhere_below(barely, 0).holds is None  # 4 tests: none is rejected after the correction
    assert everywhere_below({**barely, "e": of(5, 6)}, 0).holds is False


def test_an_undecided_claim_says_how_many_seeds_would_decide() -> None:
    close, far = of(-0.5, 2.5), of(-0.7, 1.1)
    outcome = everywhere_above({"close": close, "far": far}, 0)
    assert outcome.holds is None
    needed = outcome.needed
    assert needed is not None and needed > everywhere_above({"close": close}, 0).needed > 10  # type: ignore[operator]
    assert str(outcome) == f"undecided ({outcome.detail})" and str(Outcome(None, 40)) == "undecided (about 40 seeds)"
    alone = everywhere_above({"close": close}, 0).needed
    one_of_two = somewhere_above({"close": close, "far": far}, 0).needed
    assert alone is not None and one_of_two is not None and one_of_two > alone  # it is corrected for two tests
    against = everywhere_above({"for": of(-0.5, 2.5), "against": of(-2.5, 0.5)}, 0).needed
    assert against == one_of_two


def test_a_reason_why_more_seeds_do_not_decide_stands_in_place_of_their_number() -> None:
    open_one, none = Outcome(None, 40), Outcome(None, why="no seed learned")
    assert str(none) == "undecided (no seed learned)"
    together = both([open_one, none])
    assert (together.holds, together.needed, together.why) == (None, None, "no seed learned")
    assert both([open_one, Outcome(None, 50)]) == Outcome(None, 50) and both([none, Outcome(False)]) == Outcome(False)


def test_the_bounds_of_panels_are_said_and_only_panels_with_numbers_are_drawn() -> None:
    undefined = mean_interval([])
    found = Measured(
        label="loss",
        bounds={"a": (-0.1,), "b": (0.0, 1.0)},
        numbers={"as printed": {"a": {"x": of(0, 1)}, "b": {"x": undefined}}},
    )
    assert found.against == "-0.1 (a), 0 and 1 (b)" and list(found.panels()) == ["a"]
    assert replace(found, bounds=(0.0,)).against == "0" and "undefined" in found.table()


def test_what_the_correction_leaves_undecided_needs_more_seeds_than_were_run() -> None:
    estimates = {str(k): of(-1, 1.2) for k in range(5)} | {"barely": of(0.1, 2)}
    outcome = somewhere_above(estimates, 0)
    assert outcome.holds is None
    assert outcome.needed is not None and outcome.needed > 10


def test_an_effect_of_zero_can_never_be_decided() -> None:
    assert everywhere_above({"a": of(-1, 1)}, 0) == Outcome(None)
    assert str(Outcome(None)) == "undecided"


def test_undefined_numbers_and_single_seeds_decide_nothing() -> None:
    for estimate in (mean_interval([]), mean_interval([1.0]), mean_interval([np.nan, 1.0, 2.0])):
        assert everywhere_above({"a": estimate}, 0) == Outcome(None)
        assert everywhere_within({"a": estimate}, 9) == Outcome(None)


def test_what_was_not_run_is_not_undecided() -> None:
    for test in (everywhere_above, everywhere_below, somewhere_above, everywhere_within):
        assert test({}, 0) == NOT_RUN
    assert str(NOT_RUN) == "not run"
    assert both([NOT_RUN, NOT_RUN]) == both([]) == NOT_RUN


def test_a_conjunction_fails_with_one_part_and_holds_with_all() -> None:
    yes, no, open_ = Outcome(True), Outcome(False), Outcome(None, 30)
    assert holds(both([yes, yes]), both([yes, no]), both([open_, no]), both([yes, open_])) == [True, False, False, None]
    assert both([yes, open_, Outcome(None, 50)]).needed == 50
    assert both([yes, open_, Outcome(None)]).needed is None
    assert both([NOT_RUN, NOT_RUN]) == NOT_RUN and both([no, NOT_RUN]).holds is False
    assert both([yes, NOT_RUN]) == both([yes, on_a_part(yes, every=True)]) == on_a_part(yes, every=True)
    assert both([open_, NOT_RUN]) == open_


def flags(k: int, n: int) -> Any:
    return np.arange(n) < k


def test_without_a_margin_only_fewer_seeds_refute_that_it_is_true_for_more() -> None:
    def found(*pairs: tuple[tuple[int, int], tuple[int, int]], margin: float = 0.0) -> list[Outcome]:
        named = {str(place): (flags(*one), flags(*other)) for place, (one, other) in enumerate(pairs)}
        return list(more_seeds(named, why_not="none learns", margin=margin).values())

    assert found(((5, 5), (0, 5))) == [Outcome(True)] and found(((0, 5), (5, 5))) == [Outcome(False)]
    same = ((20, 20), (20, 20))
    assert found(same) == [Outcome(None)] and found(same, margin=0.25) == [Outcome(False)]
    assert found(((0, 5), (0, 5))) == [Outcome(None, why="none learns")]
    barely = ((4, 5), (0, 5))  # p = 0.048
    assert found(barely) == [Outcome(True)] and [one.holds for one in found(barely, barely)] == [None, None]


def test_p_values_are_told_by_method_and_bounds_only_with_a_margin() -> None:
    pairs = {"a": (flags(4, 5), flags(0, 5))}
    assert comparisons({"printed": pairs}) == "Fisher's p-values: a p = 0.048."
    told = "Fisher's p-values: printed: a p = 0.048. repaired: a p = 0.095; b p = 1.000 (with Holm's correction)."
    several = {"a": (flags(5, 5), flags(1, 5)), "b": (flags(1, 5), flags(1, 5))}
    assert comparisons({"printed": pairs, "repaired": several}) == told
    assert "a p = 0.048, at most 0.99" in comparisons({"printed": pairs}, margin=0.25)
    assert comparisons({"printed": {}}) == ""


def test_points_that_were_not_run_leave_a_claim_open_that_they_could_change() -> None:
    yes, no, open_ = Outcome(True), Outcome(False), Outcome(None, 30)
    about_all = [str(on_a_part(one, every=True)) for one in (yes, no, open_)]
    assert about_all == ["not refuted where it was run", "does not hold", "undecided (about 30 seeds)"]
    about_some = [str(on_a_part(one, every=False)) for one in (yes, no, open_)]
    assert about_some == ["holds", "does not hold where it was run", "undecided (about 30 seeds)"]


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ({"ratio": Outcome(True), "difference": Outcome(True)}, "Holds"),
        ({"ratio": Outcome(True), "difference": Outcome(False)}, "Holds (ratio); does not hold (difference)"),
        ({"ten": NOT_RUN}, "Not run"),
        ({"a": Outcome(None, 20), "b": Outcome(None, 30)}, "Undecided (a: about 20 seeds; b: about 30 seeds)"),
        ({"a": Outcome(None, 20), "b": Outcome(None)}, "Undecided (a: about 20 seeds; b)"),
        ({"": Outcome(None, 20)}, "Undecided (about 20 seeds)"),
        ({"": Outcome(None, 300)}, "Undecided (more than 100 seeds)"),
        ({"": on_a_part(Outcome(True), every=True)}, "Not refuted where it was run"),
        ({"a": Outcome(None, 20), "b": Outcome(True)}, "Undecided (a: about 20 seeds); holds (b)"),
        ({}, "Not run"),
    ],
)
def test_a_verdict_names_the_tests_that_differ(outcomes: dict[str, Outcome], words: str) -> None:
    assert verdict(outcomes) == words
    claim = Claim(text="", outcomes={"as printed": outcomes}, evidence="", refuted="")
    assert claim.verdict("as printed") == words
    assert claim.verdict("repaired") == "Not run"
    assert claim.as_dict()["outcomes"] == {"as printed": words}


def test_of_many_numbers_the_table_has_the_lowest_and_the_highest() -> None:
    rows = {"3": of(3, 4), "none": of(np.nan, np.nan), **{str(k): of(k, k + 1) for k in (1, 2, 7, 5, 6, 4)}}
    text = Measured(label="", bounds=(0,), numbers={"repaired": {"ten": rows}}, digits=1).table()
    assert text.splitlines()[2:] == [
        "| repaired | ten | lowest: 1 | 1.5 [1.0, 2.0] |",
        "| repaired | ten | highest: 7 | 7.5 [7.0, 8.0] |",
    ]


def test_tested_numbers_are_judged_by_method_and_panel() -> None:
    found = Measured(
        label="reduction, in percent",
        bounds=(50,),
        numbers={
            "as printed": {"ten": {"b": of(10, 20)}, "extended": {}},
            "repaired": {"ten": {"a": of(60, 70), "b": of(0, 9)}, "extended": {"a": of(1, 2)}},
        },
        digits=0,
    )
    panels = found.panels()
    assert list(panels["ten"]) == ["a", "b"]  # the order of the method with most rows
    assert list(panels["ten"]["b"]) == ["as printed", "repaired"] and list(panels["extended"]["a"]) == ["repaired"]
    judged = found.outcomes(lambda rows: somewhere_above(rows, 50))
    assert {method: {panel: one.holds for panel, one in of.items()} for method, of in judged.items()} == {
        "as printed": {"ten": False},
        "repaired": {"ten": True, "extended": False},
    }
    assert "| repaired | ten | a | 65 [60, 70] |" in found.table()
    assert "| repaired | ten | b | 4 [0, 9] |" in found.table()
    assert found.as_dict()["numbers"]["repaired"]["extended"]["a"]["low"] == 1


def test_a_number_that_rounds_to_zero_has_no_sign() -> None:
    assert show(Estimate(value=-0.0001, low=-0.02, high=0.0004, n=3), digits=2) == "0.00 [-0.02, 0.00]"
