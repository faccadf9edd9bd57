"""How groups fare over time, as functions of arrays: values, improvement and harm, confusion, prevalence.

Leading axes other than those named are kept. All entries count; for windows see `fair_envs.metrics.History.counts` and
`fair_envs.metrics.long_term`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import NonNegative, NonNegativeInt, PositiveInt, checked


class Impact(NamedTuple):
    """How a mean changed over time; each field has the shape of the argument without the axis of time.

    Attributes:
        change: Last minus first: above 0 is improvement, 0 stagnation, below 0 harm.
        rose: The share of steps in which it rose.
        stayed: The share of steps in which it did not change.
        fell: The share of steps in which it fell.
    """

    change: Floats
    rose: Floats
    stayed: Floats
    fell: Floats


def delayed_impact(means: ArrayLike, *, tolerance: float = 0.0) -> Impact:
    """Return whether a group's mean feature improved, stagnated or fell (Liu et al. 2018).

    *Active harm* is a change below 0. *Relative harm* is a change below the change under another policy, such as the
    policy that maximises the decision maker's profit; compare both. *Harm it can show:* a short-term fairness rule that
    leaves the group it was meant to protect worse off. A mean hides members who fell while others rose.

    Args:
        means: Mean feature of each group over time, shape (time, ...), such as (time, groups) or (time, B, groups).
        tolerance: A step that changes by no more than this counts as unchanged.

    Returns:
        The changes. Without a step, the shares are undefined (NaN).

    Example:
        >>> impact = delayed_impact([600, 610, 610, 590])
        >>> float(impact.change), [round(float(share), 2) for share in impact[1:]]
        (-10.0, [0.33, 0.33, 0.33])
    """
    series = np.asarray(means, np.float64)
    if not series.ndim or not len(series):
        raise ValueError(f"means must have an axis of time with at least one entry, got shape {series.shape}")
    steps, limit = np.diff(series, axis=0), checked("tolerance", tolerance, NonNegative)
    undefined = np.isnan(steps)
    shares = [_mean(kind, undefined) for kind in (steps > limit, np.abs(steps) <= limit, steps < -limit)]
    return Impact(np.asarray(series[-1] - series[0]), *shares)


def _mean(flags: Flags, undefined: Flags) -> Floats:
    """Return the share of True over time, NaN if a step is undefined or there is none."""
    if not len(flags):
        return np.full(flags.shape[1:], np.nan)
    return np.asarray(np.where(undefined.any(axis=0), np.nan, flags.mean(axis=0)))


class Tracked(NamedTuple):
    """Values over time, overall or (last axis) by stratum; without values NaN, and 0 for sum and number.

    Attributes:
        number: Number of values.
        sum: Sum of the values.
        mean: Mean of the values.
        first: The earliest value.
        final: The latest value.
    """

    number: Floats
    sum: Floats
    mean: Floats
    first: Floats
    final: Floats

    @property
    def change(self) -> Floats:
        """The latest value minus the earliest."""
        return self.final - self.first


def track(values: ArrayLike, *, strata: ArrayLike | None = None, count: int | None = None) -> Tracked:
    """Return sum, mean, change and final value of a series, overall or in each stratum.

    Args:
        values: Shape (time,); NaN is left out. For several lanes, call it for each lane.
        strata: Stratum of each value, shape (time,): codes from 0, such as the group of the affected person; -1 is left
            out.
        count: Number of strata; the largest code plus 1 by default.

    Example:
        >>> cash = track([10.0, 11.0, 10.0, 13.0], strata=[0, 1, 0, 1])
        >>> cash.mean.tolist(), cash.change.tolist()
        ([10.0, 12.0], [0.0, 2.0])
    """
    series = np.asarray(values, np.float64)
    codes = np.zeros(series.shape, np.int64) if strata is None else np.asarray(strata, np.int64)
    if series.ndim != 1 or codes.shape != series.shape:
        raise ValueError(f"values and strata must have shape (time,), got {series.shape} and {codes.shape}")
    groups = _strata(codes, 1 if strata is None else count)
    known = ~np.isnan(series) & (codes >= 0)
    series, codes = series[known], codes[known]
    numbers = np.bincount(codes, minlength=groups).astype(np.float64)
    total = np.bincount(codes, weights=series, minlength=groups).astype(np.float64)
    first, final, mean = (np.full(groups, np.nan) for _ in range(3))
    np.divide(total, numbers, out=mean, where=numbers > 0)
    first[codes[::-1]], final[codes] = series[::-1], series  # for repeated codes the last assignment counts
    tracked = Tracked(numbers, total, mean, first, final)
    return tracked if strata is not None else Tracked(*(np.asarray(column[0]) for column in tracked))


def confusion(
    action: ArrayLike, feedback: ArrayLike, *, strata: ArrayLike | None = None, count: int | None = None
) -> Ints:
    """Return how many decisions of each kind were right and wrong, shape (2, 2), or (strata, 2, 2).

    The axes are: whether the decision was 1; whether the label was 1. ``[1, 1]`` are true positives, ``[1, 0]`` false
    positives, ``[0, 1]`` false negatives and ``[0, 0]`` true negatives. Decisions -1 (none) and labels -1 (unknown) are
    left out. `fair_envs.metrics.History.counts` keeps the same counts step by step, with windows and delayed labels.

    Args:
        action: The decisions, any shape.
        feedback: The labels (correct decisions), same shape.
        strata: Codes from 0, the same shape, such as the group; -1 is left out.
        count: Number of strata; the largest code plus 1 by default.

    Example:
        >>> confusion([1, 1, 0, 0], [1, 0, 1, 1], strata=[0, 0, 0, 1]).tolist()
        [[[0, 1], [1, 1]], [[0, 1], [0, 0]]]
    """
    decided, right = np.asarray(action), np.asarray(feedback)
    codes = np.zeros(decided.shape, np.int64) if strata is None else np.asarray(strata, np.int64)
    if not decided.shape == right.shape == codes.shape:
        raise ValueError(f"action must have the shape of feedback and strata, {right.shape}, got {decided.shape}")
    groups = _strata(codes, 1 if strata is None else count)
    known = (decided >= 0) & (right >= 0) & (codes >= 0)
    cells = 4 * codes[known] + 2 * (decided[known] == 1) + (right[known] == 1)
    table = np.bincount(cells, minlength=4 * groups).astype(np.int64).reshape(groups, 2, 2)
    return table if strata is not None else table[0]


def costed_confusion(table: ArrayLike, cost: ArrayLike) -> Floats:
    """Return the mean cost of a decision, from the cost of each kind, NaN without decisions, shape (...).

    Args:
        table: Counts of decisions, shape (..., 2, 2), see `confusion`.
        cost: Cost of each kind, shape (2, 2) in the same order; a gain is negative.

    Example:
        >>> float(costed_confusion([[5, 2], [1, 2]], [[0, 1], [3, 0]]))  # 2 wrongly rejected, 1 wrongly accepted
        0.5
    """
    counts, each = np.asarray(table, np.float64), np.asarray(cost, np.float64)
    if counts.shape[-2:] != (2, 2) or each.shape != (2, 2):
        raise ValueError(f"table and cost must have shapes (..., 2, 2) and (2, 2), got {counts.shape} and {each.shape}")
    number = counts.sum(axis=(-2, -1))
    mean: Floats = np.full(number.shape, np.nan)
    np.divide((counts * each).sum(axis=(-2, -1)), number, out=mean, where=number > 0)
    return mean


def prevalence(states: ArrayLike, *, state: int = 1) -> Floats:
    """Return the share of people in a state, such as infected: states of shape (..., people) give shape (...)."""
    health = np.asarray(states)
    if not health.ndim or not health.shape[-1]:
        raise ValueError(f"states must have an axis of people, got shape {health.shape}")
    return np.asarray((health == checked("state", state, NonNegativeInt)).mean(axis=-1))


def _strata(codes: Ints, count: int | None) -> int:
    """Return the number of strata, or raise ValueError if a code is invalid."""
    groups = int(codes.max(initial=-1)) + 1 if count is None else int(checked("count", count, PositiveInt))
    if codes.size and (codes.min() < -1 or codes.max() >= groups):
        raise ValueError(f"strata must be between -1 and {groups - 1}, got {codes.min()} to {codes.max()}")
    return groups


__all__ = [
    "Impact",
    "Tracked",
    "confusion",
    "costed_confusion",
    "delayed_impact",
    "prevalence",
    "track",
]
