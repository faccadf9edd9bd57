"""Welfare of a society: how much its agents get, and how equally.

Every function takes values of shape (..., agents), works on the last axis and returns shape (...). The measures of
inequality compare shares of a total. They are undefined (NaN) if an agent has a negative value or if there is nothing
to share. Without agents every measure is undefined.
"""

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Floats


def utilitarian(values: ArrayLike) -> Floats:
    """Return the mean over agents: ranks outcomes as the sum does, on the scale of one agent."""
    return np.asarray(_agents(values).mean(axis=-1))


def maximin(values: ArrayLike) -> Floats:
    """Return the value of the worst-off agent (Rawls, 1971); it ignores all other agents."""
    return np.asarray(_agents(values).min(axis=-1))


def nash_welfare(values: ArrayLike) -> Floats:
    """Return the geometric mean (Nash, 1950): the mean at equality, 0 if one agent has nothing, NaN if one is negative.

    It lies between `maximin` and `utilitarian`. The product, which the literature also uses, is its n-th power.
    """
    return np.asarray(np.exp(log_nash_welfare(values)))


def log_nash_welfare(values: ArrayLike) -> Floats:
    """Return the mean logarithm, which is the logarithm of `nash_welfare`: -inf if one agent has nothing."""
    agents = _agents(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(agents).mean(axis=-1))


def gini(values: ArrayLike) -> Floats:
    r"""Return the Gini coefficient: 0 is equality, (n - 1) / n is one agent with everything.

    $G = \sum_i \sum_j |x_i - x_j| / (2 n \sum_i x_i)$, computed from the sorted values. NaN if a value is negative or
    all are 0.

    Example:
        >>> print(gini([0, 0, 0, 8]))
        0.75
    """
    share = np.sort(_shares(values), axis=-1)
    n = share.shape[-1]
    rank = np.arange(1 - n, n, 2)  # agent i is above i - 1 others and below n - i
    return np.asarray(np.maximum(0, (rank * share).sum(axis=-1) / (n * share.sum(axis=-1))))


def jain(values: ArrayLike) -> Floats:
    r"""Return Jain's index (Jain, Chiu and Hawe, 1984): 1 is equality, 1 / n is one agent with everything.

    $J = (\sum_i x_i)^2 / (n \sum_i x_i^2)$. NaN if a value is negative or all are 0.
    """
    share = _shares(values)
    return np.asarray(share.sum(axis=-1) ** 2 / (share.shape[-1] * (share**2).sum(axis=-1)))


def atkinson(values: ArrayLike, *, epsilon: float = 1.0) -> Floats:
    r"""Return Atkinson's index (1970): share of the total that equality could give up at no loss of welfare.

    $A = 1 - (\frac{1}{n} \sum_i x_i^{1 - \epsilon})^{1 / (1 - \epsilon)} / \bar x$, with the geometric mean in the
    numerator at $\epsilon = 1$. 0 is equality; 1 is the greatest inequality, reached for `epsilon` of at least 1 as
    soon as one agent has nothing. NaN if a value is negative or all are 0.

    Args:
        values: Shape (..., agents).
        epsilon: Aversion to inequality, at least 0: 0 is indifference (A = 0); a large value only considers the
            worst-off agent.
    """
    if not (np.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be a finite number of at least 0, got {epsilon}")
    share = _shares(values)
    return np.asarray(np.clip(1 - _power_mean(share, 1 - epsilon) / share.mean(axis=-1), 0, 1))


def theil(values: ArrayLike) -> Floats:
    r"""Return Theil's index T (1967): 0 is equality, log n is one agent with everything.

    $T = \frac{1}{n} \sum_i \frac{x_i}{\bar x} \log \frac{x_i}{\bar x}$. It is the sum of the inequality between groups
    and the inequality within them, each group weighted by its share of the total. NaN if a value is negative or all are
    0.
    """
    share = _shares(values)
    relative = share / share.mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        log = np.where(relative == 0, 0.0, np.log(relative))  # 0 log 0 is 0
    return np.asarray(np.maximum(0, (relative * log).mean(axis=-1)))


def lorenz(values: ArrayLike) -> Floats:
    """Return the Lorenz curve (1905): the share of the total of the poorest 0, 1, ... n agents, shape (..., n + 1).

    The diagonal is equality; `gini` is twice the area between them. NaN if a value is negative or all are 0.

    Example:
        >>> print(lorenz([0, 3, 1]))
        [0.   0.   0.25 1.  ]
    """
    share = np.sort(_shares(values), axis=-1)
    held = np.cumsum(share, axis=-1) / share.sum(axis=-1, keepdims=True)
    return np.concatenate([np.where(np.isnan(held[..., :1]), np.nan, 0.0), held], axis=-1)


def _power_mean(share: Floats, power: float) -> Floats:
    """Return (mean of share ** power) ** (1 / power), from logarithms so that no power overflows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(share)
        if power == 0:
            return np.asarray(np.exp(log.mean(axis=-1)))
        exponent = power * log
        top = exponent.max(axis=-1, keepdims=True)
        # With a negative power an agent with nothing has exponent +inf, and the mean is 0.
        scaled = np.log(np.exp(exponent - top).mean(axis=-1)) + top[..., 0]
        return np.asarray(np.where(np.isposinf(top[..., 0]), 0.0, np.exp(scaled / power)))


def _shares(values: ArrayLike) -> Floats:
    """Return the values divided by the largest, all NaN if one is negative or none is positive."""
    agents = _agents(values)
    largest = agents.max(axis=-1, keepdims=True)
    sharable = (agents.min(axis=-1, keepdims=True) >= 0) & (largest > 0)
    share: Floats = np.full(agents.shape, np.nan)
    np.divide(agents, largest, out=share, where=sharable)
    return share


def _agents(values: ArrayLike) -> Floats:
    """Return the values as floats; an empty last axis becomes one undefined agent."""
    agents = np.asarray(values, dtype=np.float64)
    if agents.ndim == 0:
        raise ValueError("values must have an axis of agents, got a single number")
    return agents if agents.shape[-1] else np.full((*agents.shape[:-1], 1), np.nan)
