"""Ranges are read from texts and tables, and refused where a parameter cannot have them."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import hypothesis.strategies as st
import pytest
from hypothesis import given as drawn

pytest.importorskip("optuna")

from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)

from fair_envs.search.ranges import Between, Options, range_of
from fair_envs.support.parameters import NonNegative, Range, UnitInterval

Period = Annotated[int, Range(2, 1000)]
Horizon = Annotated[int, Range(1, 2**31 - 2)]
Rule = Literal["signals", "right_of_way"]


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ("4:40", Period, Between(low=4, high=40, whole=True)),
        ("4:40:8", Period, Between(low=4, high=36, step=8, whole=True)),
        ("2:64:log", Period, Between(low=2, high=64, log=True, whole=True)),
        ("0:0.5", UnitInterval, Between(low=0.0, high=0.5)),
        ("0:0.5:0.25", UnitInterval, Between(low=0.0, high=0.5, step=0.25)),
        ({"low": 0.1, "high": 0.5, "log": True}, UnitInterval, Between(low=0.1, high=0.5, log=True)),
        ("4:4", Period, Between(low=4, high=4, whole=True)),
        ("4|8|16", Period, Options(options=(4, 8, 16))),
        ([4, 8], Period, Options(options=(4, 8))),
        ("signals|right_of_way", Rule, Options(options=("signals", "right_of_way"))),
        ("true|false", bool, Options(options=(True, False))),
        ("|all|A1-A2,B1-B2", Sequence[str], Options(options=((), ("all",), ("A1-A2", "B1-B2")))),
        ([[], ["all"]], Sequence[str], Options(options=((), ("all",)))),
        ("0.12345678:0.12345679", UnitInterval, Between(low=0.12345678, high=0.12345679)),
        ("1000000:2000000", Horizon, Between(low=1_000_000, high=2_000_000, whole=True)),
        ("1000000:2000000:500001", Horizon, Between(low=1_000_000, high=1_500_001, step=500_001, whole=True)),
        ("0:0.3:0.1", UnitInterval, Between(low=0.0, high=0.3, step=0.1)),
        ("0.1:0.9999999:0.30000001", UnitInterval, Between(low=0.1, high=0.70000002, step=0.30000001)),
        ([8], Period, Options(options=(8,))),
        ("8|", Period, Options(options=(8,))),
        ("0.25|", UnitInterval, Options(options=(0.25,))),
        ([[]], Sequence[str], Options(options=((),))),
        ("", Sequence[str], Options(options=((),))),
        ("all|", Sequence[str], Options(options=(("all",), ()))),
        ("true", bool, Options(options=(True,))),
        ("C2", str, Options(options=("C2",))),
    ],
)
def test_a_range_is_what_it_says(given: Any, kind: Any, expected: Any) -> None:
    found = range_of("name", given, kind)
    assert found == expected
    assert range_of("name", str(found), kind) == found  # what is kept is read again


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ("40:4", Period, "range of name must have its low end first, got 40 above 4"),
        ("1:4", Period, "name must be between 2 and 1000, got 1"),
        ("4:2000", Period, "name must be between 2 and 1000, got 2000"),
        ("4:40.5", Period, "name must be an integer between 2 and 1000, got '40.5'"),
        ("4", Period, "range of name must be LOW:HIGH"),
        ("4:8:2:1", Period, "range of name must be LOW:HIGH"),
        ("4:8:0", Period, "step of name must be above 0, got 0"),
        ("4:8:-1", Period, "step of name must be above 0, got -1"),
        ("0:1:log", UnitInterval, "must begin above 0 and have no step to be logarithmic, got low 0"),
        ("low:high", UnitInterval, "name must be a finite number between 0 and 1, got 'low'"),
        ("signals|robots", Rule, "name must be one of 'signals', 'right_of_way', got 'robots'"),
        ("signals|signals", Rule, "range of name must name each option once"),
        ({"low": 1, "high": 2}, Rule, "range of name must list options"),
        ({"low": 4}, Period, "range of name must have low and high"),
        ({"low": 4, "high": 8, "width": 2}, Period, "range of name must have low and high"),
        ([], Period, "range of name must be LOW:HIGH, options or a table"),
        (7, Period, "range of name must be LOW:HIGH, options or a table"),
        ("0.12345679:0.12345678", UnitInterval, "low end first, got 0.12345679 above 0.12345678"),
        ("|", Period, "name must be an integer between 2 and 1000, got ''"),
        ("8||", Period, "name must be an integer between 2 and 1000, got ''"),
        ("nan:1", UnitInterval, "name must be a finite number between 0 and 1, got nan"),
        ("0:inf", NonNegative, "name must be a finite number at least 0, got inf"),
        ("0:1e400", NonNegative, "name must be a finite number at least 0, got inf"),
        ({"low": math.nan, "high": 8}, Period, "name must be an integer between 2 and 1000, got nan"),
        ({"low": 4, "high": math.inf}, Period, "name must be an integer between 2 and 1000, got inf"),
        ({"low": -math.inf, "high": 1.0}, UnitInterval, "name must be a finite number between 0 and 1, got -inf"),
        ("0:1:nan", UnitInterval, "step of name must be a finite number, got nan"),
        ("0:1:inf", UnitInterval, "step of name must be a finite number, got inf"),
        ([math.nan, 0.5], UnitInterval, "name must be a finite number between 0 and 1, got nan"),
        ({"low": 4, "high": 8, "log": 1}, Period, "log of name must be True or False, got 1"),
        ({"low": 4, "high": 8, 2: 3}, Period, "must have low and high, and optionally step or log, got .*2"),
        ("0:1:0.14285714285714285", UnitInterval, "ends and a step of fewer digits, got 0:1:0.14285714285714285"),
        ("0:1:1e-30", UnitInterval, "ends and a step of fewer digits, got 0:1:1e-30"),
        ("-1e308:1e308", float, r"must have ends whose difference is finite, got -1e\+308:1e\+308"),
        ("0:9007199254740993", int, "range of name must lie between -9007199254740992 and"),
        ([1, 1.0], UnitInterval, r"range of name must name each option once, got 1\.0\|1\.0"),
        ([0.0, -0.0], float, "range of name must name each option once"),
        ([["a,b"], ["a", "b"]], Sequence[str], "range of name must name each option once"),
        (["a,b", ("a", "b")], Sequence[str], "name must be several values, got 'a,b'"),
        ([["a,b"], []], Sequence[str], "range of name must have options whose texts differ, got a,b"),
        ([[""], ["a"]], Sequence[str], "range of name must have options whose texts differ"),
        (["a|b"], str, "range of name must have options whose texts differ"),
    ],
)
def test_what_is_no_range_is_refused(given: Any, kind: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        range_of("name", given, kind)


def test_only_what_lies_in_a_range_can_be_suggested() -> None:
    steps = Between(low=4, high=36, step=8, whole=True)
    assert [steps.suggestion(value) for value in (4, 12, 13, 36, 44)] == [4, 12, None, 36, None]
    lanes = Options(options=((), ("all",)))
    assert [lanes.suggestion(value) for value in ((), ("all",), ("A1-A2",))] == ["", "all", None]
    assert lanes.value("") == () and lanes.value("all") == ("all",)


# What is kept is what was given ---------------------------------------------------------------------------------------


def ends(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the two ends of ranges, in their order."""
    return st.lists(numbers, min_size=2, max_size=2).map(lambda two: {"low": min(two), "high": max(two)})


def several(options: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Return lists of options, one or more."""
    return st.lists(options, min_size=1, max_size=4, unique=True)


WHOLE = st.integers(-(2**53), 2**53)
WIDE = st.floats(-1e300, 1e300)
TEXTS = st.text(st.characters(exclude_characters="|,", exclude_categories=["Cs"]), max_size=5)
PARTS = st.lists(TEXTS.filter(bool), max_size=3).map(tuple)
GIVEN = st.one_of(
    st.tuples(ends(WHOLE), st.just(int)),
    st.tuples(st.builds(dict, ends(WHOLE), step=st.integers(1, 2**40)), st.just(int)),
    st.tuples(st.builds(dict, ends(st.integers(1, 2**53)), log=st.just(True)), st.just(int)),
    st.tuples(ends(WIDE), st.just(float)),
    st.tuples(st.builds(dict, ends(st.floats(5e-324, 1e300)), log=st.booleans()), st.just(float)),
    st.tuples(several(WHOLE), st.just(int)),
    st.tuples(several(WIDE), st.just(float)),
    st.tuples(several(st.booleans()), st.just(bool)),
    st.tuples(several(st.sampled_from(["signals", "right_of_way"])), st.just(Rule)),
    st.tuples(several(TEXTS), st.just(str)),
    st.tuples(several(PARTS), st.just(Sequence[str])),
    st.tuples(several(st.lists(st.floats(0, 1), max_size=3).map(tuple)), st.just(Sequence[UnitInterval])),
)


@drawn(GIVEN)
def test_what_is_kept_is_read_again_as_it_was_given(case: tuple[Any, Any]) -> None:
    given, kind = case
    found = range_of("name", given, kind)
    assert range_of("name", str(found), kind) == found
    if isinstance(given, dict):
        step = {"step": None, "log": False} | given
        assert (found.low, found.step, found.log) == (given["low"], step["step"], step["log"])  # type: ignore[union-attr]
    else:
        assert found == Options(options=tuple(given))


@drawn(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 8))
def test_a_step_of_decimals_keeps_its_high_end(low: int, step: int, wide: int, places: int) -> None:
    texts = [f"{number}e-{places}" for number in (low, low + wide, step)]
    found = range_of("name", ":".join(texts), float)
    highest = float(f"{low + wide // step * step}e-{places}")
    assert found == Between(low=float(texts[0]), high=highest, step=float(texts[2]))
    assert range_of("name", str(found), float) == found
    assert found.distribution().high == highest  # a warning of Optuna's is an error here


@drawn(ends(st.floats(-1e6, 1e6)), st.floats(1e-9, 1e6))
def test_a_step_that_optuna_would_change_is_refused(two: dict[str, float], step: float) -> None:
    try:
        found = range_of("name", {**two, "step": step}, float)
    except ValueError as error:
        assert "range of name must have ends and a step of fewer digits" in str(error)
        return
    assert isinstance(found, Between) and found.low <= found.high <= two["high"]
    assert found.distribution().high == found.high


# What Optuna is given -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ("4:40", Period, IntDistribution(4, 40)),
        ("4:40:8", Period, IntDistribution(4, 36, step=8)),
        ("2:64:log", Period, IntDistribution(2, 64, log=True)),
        ("0:0.5", UnitInterval, FloatDistribution(0.0, 0.5)),
        ("0:0.3:0.1", UnitInterval, FloatDistribution(0.0, 0.3, step=0.1)),
        ("0.1:0.5:log", UnitInterval, FloatDistribution(0.1, 0.5, log=True)),
        ("8|16", Period, CategoricalDistribution(["8", "16"])),
        ("8|", Period, CategoricalDistribution(["8"])),
        ("0.25|1", UnitInterval, CategoricalDistribution(["0.25", "1.0"])),
        ("true|false", bool, CategoricalDistribution(["true", "false"])),
        ("signals|right_of_way", Rule, CategoricalDistribution(["signals", "right_of_way"])),
        ("|A1-A2,B1-B2", Sequence[str], CategoricalDistribution(["", "A1-A2,B1-B2"])),
    ],
)
def test_optuna_draws_from_the_range(given: str, kind: Any, expected: Any) -> None:
    found = range_of("name", given, kind).distribution()
    assert found == expected
    assert json_to_distribution(distribution_to_json(found)) == expected  # as in a database


def test_the_label_of_an_option_is_read_as_that_option() -> None:
    for options in ((1.0, 0.25), (True, False), ((), ("all",), ("A1-A2", "B1-B2"))):
        found = Options(options=options)
        assert tuple(found.value(own) for own in found.distribution().choices) == options
