"""Parameters are checked where they enter, by name, and reach compiled rules as plain numbers."""

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pytest

from fair_envs.support.parameters import Range, checked, encode, make_params, meant


class Params(NamedTuple):
    """One field of every kind."""

    profile: Literal["plain", "fancy"] = "plain"
    horizon: Annotated[int, Range(1, 100)] = 10
    share: Annotated[float, Range(0, 1)] = 0.5
    free: float = 2.0
    strict: bool = True
    law: Literal["linear", "cubic"] = "linear"


PRESETS: Mapping[str, Mapping[str, Any]] = {"plain": {}, "fancy": {"horizon": 20, "law": "cubic"}}


def test_without_keywords_the_defaults_hold() -> None:
    assert make_params(Params, {}) == Params()


def test_a_profile_sets_other_defaults_and_a_keyword_overrides_them() -> None:
    assert make_params(Params, {"profile": "fancy"}, presets=PRESETS) == Params("fancy", horizon=20, law="cubic")
    given = {"profile": "fancy", "law": "linear"}
    assert make_params(Params, given, presets=PRESETS) == Params("fancy", horizon=20, law="linear")


def test_what_is_given_stays_as_it_came() -> None:
    given = {"profile": "fancy"}
    make_params(Params, given, presets=PRESETS)
    assert given == {"profile": "fancy"}


def test_an_unknown_keyword_is_a_type_error_that_names_it_and_what_there_is() -> None:
    with pytest.raises(TypeError, match=r"^got an unexpected keyword argument 'horizn'.*: free, horizon, "):
        make_params(Params, {"horizn": 3})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("horizon", 0, "horizon must be between 1 and 100, got 0"),
        ("horizon", 101, "horizon must be between 1 and 100, got 101"),
        ("horizon", -1, "horizon must be between 1 and 100, got -1"),
        pytest.param(
            "horizon",
            10**400,
            "horizon must be between 1 and 100, got an integer of 1329 bits",
            id="no float is so large",
        ),
        ("horizon", 3.0, "horizon must be an integer between 1 and 100, got 3.0"),
        ("horizon", True, "horizon must be an integer between 1 and 100, got True"),
        ("horizon", "3", "horizon must be an integer between 1 and 100, got '3'"),
        ("horizon", None, "horizon must be an integer between 1 and 100, got None"),
        ("horizon", np.array([3, 4]), "horizon must be an integer between 1 and 100, got array"),
        ("share", 1.01, "share must be between 0 and 1, got 1.01"),
        ("share", -1e-9, "share must be between 0 and 1, got -1e-09"),
        ("share", math.nan, "share must be a finite number between 0 and 1, got nan"),
        ("share", "half", "share must be a finite number between 0 and 1, got 'half'"),
        pytest.param(
            "free",
            10**400,
            "free must be a finite number, got an integer of 1329 bits",
            id="no float is so large, free",
        ),
        pytest.param(
            "share",
            10**400,
            "share must be a finite number between 0 and 1, got an integer of 1329 bits",
            id="nor a share",
        ),
        pytest.param("free", np.longdouble("1e400"), "free must be a finite number, got", id="nor a longer one"),
        ("free", math.inf, "free must be a finite number, got inf"),
        ("free", 1j, "free must be a finite number, got 1j"),
        ("strict", 1, "strict must be True or False, got 1"),
        ("strict", "no", "strict must be True or False, got 'no'"),
        ("law", "quadratic", "law must be one of 'linear', 'cubic', got 'quadratic'"),
        ("law", ["linear"], "law must be one of 'linear', 'cubic', got ['linear']"),
        ("law", 0, "law must be one of 'linear', 'cubic', got 0"),
        ("profile", "bare", "profile must be one of 'plain', 'fancy', got 'bare'"),
        ("profile", None, "profile must be one of 'plain', 'fancy', got None"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        make_params(Params, {name: value}, presets=PRESETS)


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("horizon", np.int64(7), 7),
        ("horizon", np.uint8(7), 7),
        ("share", 1, 1.0),
        ("share", np.float32(0.25), 0.25),
        ("share", Fraction(1, 4), 0.25),
        ("free", -3, -3.0),
        ("strict", np.False_, False),
    ],
)
def test_a_value_becomes_its_fields_own_python_type(name: str, value: Any, kept: Any) -> None:
    found = getattr(make_params(Params, {name: value}), name)
    assert (type(found), found) == (type(kept), kept)


def test_the_ends_of_a_range_are_inside() -> None:
    assert make_params(Params, {"horizon": 1, "share": 0}).horizon == 1
    assert make_params(Params, {"horizon": 100, "share": 1}).share == 1


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (Range(), "a finite number"),
        (Range(low=1), "at least 1"),
        (Range(high=0.5), "at most 0.5"),
        (Range(-1, 1), "between -1 and 1"),
    ],
)
def test_a_range_says_itself_in_words(bounds: Range, words: str) -> None:
    assert str(bounds) == words


def test_an_open_range_lets_every_finite_number_through() -> None:
    assert checked("free", 1e300, float) == 1e300


def test_encoded_choices_are_their_places_among_the_options() -> None:
    code = encode(Params("fancy", horizon=4, law="cubic"))
    assert tuple(code) == (1, 4, 0.5, 2.0, True, 1)
    assert type(code) is Params
    assert [type(value) for value in code] == [int, int, float, float, bool, int]


def test_several_values_are_kept_as_a_tuple_of_their_kind() -> None:
    shares = Sequence[Annotated[float, Range(0, 1)]]
    for given in ([1, 0.5], (1, 0.5), np.array([1, 0.5]), np.array([1, 0.5], np.float32)):
        found = checked("shares", given, shares)
        assert found == (1.0, 0.5) and [type(value) for value in found] == [float, float]
    assert checked("shares", [], shares) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (1.0, "shares must be several values, got 1.0"),
        (np.array(1.0), "shares must be several values, got array(1.)"),
        ("1,0", "shares must be several values, got '1,0'"),
        ({0.5: 1}, "shares must be several values, got {0.5: 1}"),
        ([0.5, 2], "shares[1] must be between 0 and 1, got 2"),
        ([[0.5], [1, 1]], "shares[0] must be a finite number between 0 and 1, got [0.5]"),
    ],
)
def test_what_are_not_several_values_of_the_kind_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        checked("shares", given, Sequence[Annotated[float, Range(0, 1)]])


@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ("equal_oportunity", "; did you mean 'equal_opportunity'?"),
        ("sp", "; did you mean 'SP'?"),
        ("xyzzy", ""),
        (5, ""),
        (None, ""),
    ],
)
def test_the_option_that_was_meant_is_suggested(given: Any, suggested: str) -> None:
    assert meant(given, ["demographic_parity", "equal_opportunity", "SP"]) == suggested


def test_a_keyword_and_a_choice_that_are_almost_right_come_with_what_was_meant() -> None:
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'horizn'; did you mean 'horizon'\? The parameters are: "
    ):
        make_params(Params, {"horizn": 3})
    with pytest.raises(
        ValueError, match=r"law must be one of 'linear', 'cubic', got 'Lineer'; did you mean 'linear'\?"
    ):
        make_params(Params, {"law": "Lineer"})


class Texts(NamedTuple):
    """A text, and several."""

    hospital: str = "C2"
    streets: Sequence[str] = ()


def test_a_text_is_kept_as_it_is() -> None:
    assert make_params(Texts, {"hospital": "A1", "streets": ["A", "B1-B2"]}) == Texts("A1", ("A", "B1-B2"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hospital": 3}, "hospital must be a text, got 3"),
        ({"streets": ["A", None]}, "streets[1] must be a text, got None"),
        ({"streets": "A"}, "streets must be several values, got 'A'"),
    ],
)
def test_what_is_no_text_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as told:
        make_params(Texts, given)
    assert str(told.value) == message
