"""Reward biases in favour of some applicants: any function of their features, as a table for compiled rules."""

import inspect
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fair_envs.envs.hiring.population import (
    AGE,
    BELGIAN,
    EXPERIENCE,
    FEATURES,
    MAN,
    OLDEST,
    YEARS,
    YOUNGEST,
    most_experience,
)
from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.imports import imported
from fair_envs.support.parameters import shown

Bias = Callable[..., float]
"""A function of any features, by name, that returns the share of ``reward_bias_size`` added to the reward of hiring.

Ages and experience are in years; all other features are codes 0 or 1.
"""


def none() -> float:
    """Favour no applicant."""
    return 0.0


def men(gender: int) -> float:
    """Favour men; bias 1 of the paper."""
    return float(gender == MAN)


def belgian_men(gender: int, nationality: int) -> float:
    """Favour Belgian men; bias 2 of the paper."""
    return float(gender == MAN and nationality == BELGIAN)


BIASES: Mapping[str, Bias] = {"none": none, "men": men, "belgian_men": belgian_men}
EXPECTED = f"reward_bias must be one of {', '.join(map(repr, BIASES))}, a function or 'module:function'"


class Table(NamedTuple):
    """A function of features: its value is ``values[first + (steps * features).sum()]``.

    Attributes:
        values: One value for each combination of the function's features.
        steps: Distance in `values` between adjacent values of a feature; 0 if the function does not take the feature.
        first: Offset that places the lowest values at index 0.
    """

    values: Floats
    steps: Ints
    first: int


def tabulated(bias: Bias) -> Table:
    """Return the function's values for all combinations of its features; 0 for combinations that cannot exist.

    Raises:
        ValueError: A parameter is not a feature, or a returned value is not a finite number.
    """
    taken = _features_of(bias)
    ranges = [_values_of(feature) for feature in taken]
    steps, size, first = np.zeros(len(FEATURES), np.int64), 1, 0
    for feature, values in reversed(list(zip(taken, ranges, strict=True))):
        steps[feature] = size
        first -= size * values[0]
        size *= len(values)
    names = [FEATURES[feature] for feature in taken]
    people = (dict(zip(names, values, strict=True)) for values in product(*ranges))
    return Table(np.array([_value(bias, person) if can_exist(person) else 0.0 for person in people]), steps, first)


def can_exist(person: Mapping[str, int]) -> bool:
    """Return whether these features can belong to one person: enough years for studies and work, one degree first."""
    degree, extra = person.get("degree", person.get("extra_degree", 0)), person.get("extra_degree", 0)
    return extra <= degree and person.get("experience", 0) <= most_experience(person.get("age", OLDEST), degree, extra)


def _features_of(bias: Bias) -> list[int]:
    """Return the features that the function takes; parameters with defaults that are not features keep them."""
    try:
        parameters = inspect.signature(bias).parameters.values()
    except (TypeError, ValueError):
        raise ValueError(f"reward_bias must be a function whose arguments can be read, got {bias!r}") from None
    needed = [one for one in parameters if one.name in FEATURES or one.default is one.empty]
    for one in needed:
        if one.name not in FEATURES or one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise ValueError(
                f"reward_bias must take features by name ({', '.join(FEATURES)}), "
                f"got {one.name!r} ({one.kind.description})"
            )
    return [FEATURES.index(one.name) for one in needed]


def _values_of(feature: int) -> range:
    if feature == AGE:
        return range(YOUNGEST, OLDEST + 1)
    return range(YEARS + 1 if feature == EXPERIENCE else 2)


def _value(bias: Bias, features: Mapping[str, int]) -> float:
    value = bias(**features)
    try:
        number = float("nan") if isinstance(value, (str, bytes)) else float(value)  # "0.5" is a mistake
    except (OverflowError, TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise ValueError(f"reward_bias must return a finite number, got {value!r} for {dict(features)}")
    return number


def find_bias(given: Any) -> Bias:
    """Return the given function, or the function at the given import path ``"module:function"``.

    Raises:
        ValueError: The argument is neither.
    """
    if callable(given):
        return given
    try:
        found = imported(given)
    except (AttributeError, ImportError, ValueError) as error:
        why = f": {error}" if isinstance(given, str) and ":" in given else ""
        raise ValueError(f"{EXPECTED}, got {shown(given)}{why}") from error
    if not callable(found):
        raise ValueError(f"{EXPECTED}, got {given!r}, which is {found!r}")
    return found
