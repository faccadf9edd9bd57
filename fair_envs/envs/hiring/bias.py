"""Rewards that favour some applicants: any function of their features, as a table that compiled rules look up."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.envs.hiring.population import AGE, BELGIAN, EXPERIENCE, FEATURES, MAN, OLDEST, YEARS, YOUNGEST

Bias = Callable[..., float]
"""Features by name, as many as it needs, to the share of ``reward_bias_size`` that is added to the reward of hiring.

Ages and experience are in years, everything else is a code 0 or 1.
"""


def none() -> float:
    """Favour nobody."""
    return 0.0


def men(gender: int) -> float:
    """Favour men; bias 1 of the paper."""
    return float(gender == MAN)


def belgian_men(gender: int, nationality: int) -> float:
    """Favour Belgian men; bias 2 of the paper."""
    return float(gender == MAN and nationality == BELGIAN)


BIASES: Mapping[str, Bias] = {"none": none, "men": men, "belgian_men": belgian_men}


class Table(NamedTuple):
    """A function of features: its value is ``values[first + (steps * features).sum()]``.

    Attributes:
        values: One for each combination of what the function takes.
        steps: Places from one value of a feature to the next; 0 for those that the function does not take.
        first: So that the lowest values have the place 0.
    """

    values: NDArray[np.float64]
    steps: NDArray[np.int64]
    first: int


def tabulated(bias: Bias) -> Table:
    """Return the function's values for all that its features can be.

    Raises:
        ValueError: It takes something that is no feature, or returns something that is no finite number.
    """
    taken = _features_of(bias)
    ranges = [_values_of(feature) for feature in taken]
    steps, size, first = np.zeros(len(FEATURES), np.int64), 1, 0
    for feature, values in reversed(list(zip(taken, ranges, strict=True))):
        steps[feature] = size
        first -= size * values[0]
        size *= len(values)
    names = [FEATURES[feature] for feature in taken]
    found = [_value(bias, dict(zip(names, values, strict=True))) for values in product(*ranges)]
    return Table(np.array(found), steps, first)


def _features_of(bias: Bias) -> list[int]:
    """Return the features that the function takes."""
    names = list(inspect.signature(bias).parameters)
    for name in names:
        if name not in FEATURES:
            raise ValueError(f"reward_bias must take features by name ({', '.join(FEATURES)}), got {name!r}")
    return [FEATURES.index(name) for name in names]


def _values_of(feature: int) -> range:
    if feature == AGE:
        return range(YOUNGEST, OLDEST + 1)
    return range(YEARS + 1 if feature == EXPERIENCE else 2)


def _value(bias: Bias, features: Mapping[str, int]) -> float:
    value = bias(**features)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise ValueError(f"reward_bias must return a finite number, got {value!r} for {dict(features)}")
    return number


def find_bias(given: Any) -> Bias:
    """Return the function that was given, itself or by its import path ``"module:function"``.

    Raises:
        ValueError: Neither.
    """
    if callable(given):
        return given  # type: ignore[no-any-return]
    try:
        module, name = given.split(":")
        found: Bias = getattr(importlib.import_module(module), name)
    except (AttributeError, ImportError, ValueError) as error:
        options = ", ".join(map(repr, BIASES))
        raise ValueError(
            f"reward_bias must be one of {options}, a function or 'module:function', got {given!r}"
        ) from error
    return found
