"""User-supplied weights, validated, and the cumulative shares that compiled rules sample from."""

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Floats


def shares_of(name: str, weights: ArrayLike, *, may_be_zero: bool = False) -> Floats:
    """Return weights divided by their sum.

    Args:
        name: Name of the weights, for error messages.
        weights: Numbers.
        may_be_zero: Whether all may be 0; they then stay 0.

    Raises:
        ValueError: A weight is negative or not finite, or the sum is 0 or not finite.
    """
    given = np.array(weights, np.float64)
    wrong = given[~(np.isfinite(given) & (given >= 0))]
    if wrong.size:
        raise ValueError(f"{name} must have finite weights of at least 0, got {wrong[0]:g}")
    with np.errstate(over="ignore"):
        whole = given.sum()
    if whole == 0 and may_be_zero:
        return given
    if not 0 < whole < np.inf:
        raise ValueError(f"{name} must have weights that sum to a positive, finite number, got {whole:g}")
    return np.asarray(given / whole)


def cumulative(weights: Floats) -> Floats:
    """Return the cumulative shares along the last axis.

    They are exactly 1 from the last positive weight on, so that a number below 1 never selects an entry beyond it; 0 in
    rows without weights.
    """
    sums = np.cumsum(weights, axis=-1)
    whole = sums[..., -1:]
    return np.asarray(sums / np.where(whole > 0, whole, 1.0))
