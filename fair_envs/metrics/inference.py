"""Tests of hypotheses, and comparisons of methods over several tasks.

A claim is tested with p-values of one-sided hypotheses about estimates. Where one success establishes a claim with
several comparisons, the p-values are corrected (`holm`); where all comparisons must succeed, each is tested without
correction (an intersection-union test: Berger, "Multiparameter hypothesis testing and acceptance sampling",
Technometrics, 1982). Scores over tasks follow Agarwal et al., "Deep reinforcement learning at the edge of the
statistical precipice" (NeurIPS, 2021).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.metrics.intervals import (
    Estimate,
    check_choice,
    check_level,
    difference_interval,
    mean_interval,
    t_interval,
    vector,
)
from fair_envs.support.aliases import Flags, Floats

Alternative = Literal["greater", "less"]
NameT = TypeVar("NameT")
MOST_SEEDS = 1000
"""The largest number of units that `units_needed` returns; with more, an effect is too small to matter."""
ROUNDING = 1e-12  # relative: the mean of equal values can miss them by a few units in the last place
_EXACT_UNITS = 100  # up to which `fisher_units_needed` computes the power

# Hypotheses about one estimate ----------------------------------------------------------------------------------------


def welch(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Return the mean of a sample minus that of an independent one, with Welch's interval.

    Args:
        first: One number per unit (training seed), shape (n,).
        second: The same of the other method, shape (m,); the units are not paired.
        level: Confidence level of the interval, in (0, 1).

    Example:
        >>> print(welch([3, 4, 5], [1, 2, 3]))
        2 [-0.267, 4.267] (95 %, n = 3)
    """
    return difference_interval(*(_mean_of(sample, level=level) for sample in (first, second)))


def _mean_of(sample: ArrayLike, *, level: float) -> Estimate:
    """Return `mean_interval`; equal values are their own mean, which rounding can miss in sums of them."""
    found, values = mean_interval(sample, level=level), np.asarray(sample, np.float64)
    if found.n < 2 or np.ptp(values) != 0:
        return found
    return t_interval(float(values[0]), standard_error=0.0, freedom=found.n - 1, n=found.n, level=level)


def p_value(estimate: Estimate, bound: float, alternative: Alternative) -> float:
    """Return the p-value of the test that shows a number to be beyond a bound.

    Args:
        estimate: The number, from `mean_interval`, `welch` or another Student's interval.
        bound: The bound.
        alternative: ``"greater"``: that the number is above the bound; ``"less"``: that it is below.

    Returns:
        The probability of such an estimate, or one further in that direction, if the number were the bound. NaN if the
        standard error is unknown. If all units are equal, 0 or 1.
    """
    from scipy.special import stdtr

    check_choice(alternative, "alternative", get_args(Alternative))
    distance = estimate.value - bound if alternative == "greater" else bound - estimate.value
    if np.isnan(distance) or np.isnan(estimate.standard_error) or estimate.freedom <= 0:
        return float("nan")
    rounding = ROUNDING * max(abs(estimate.value), abs(bound))
    if estimate.standard_error <= rounding:
        return 0.0 if distance > rounding else 1.0
    return float(stdtr(estimate.freedom, -distance / estimate.standard_error))


def units_needed(estimate: Estimate, bound: float, *, tests: int = 1, power: float = 0.8) -> int | None:
    """Return how many units would show on which side of a bound a number is, if the estimate and its spread were exact.

    Args:
        estimate: The number, from a Student's interval.
        bound: The bound.
        tests: Number of tests for which the p-value is corrected, in the worst case (Bonferroni).
        power: Probability with which so many units show it.

    Returns:
        The number of units, above those of the estimate; None if it is above `MOST_SEEDS` or unknown.
    """
    from scipy.special import stdtrit

    distance, error = abs(estimate.value - bound), estimate.standard_error
    if not (distance > 0 and np.isfinite(error)) or estimate.n < 2:
        return None
    units = np.arange(estimate.n + 1, MOST_SEEDS + 1)
    freedom = np.maximum(estimate.freedom * (units - 1) / (estimate.n - 1), 1)
    quantiles = stdtrit(freedom, 1 - (1 - estimate.level) / 2 / tests) + stdtrit(freedom, power)
    enough = np.flatnonzero(quantiles * error * np.sqrt(estimate.n / units) < distance)
    return int(units[enough[0]]) if len(enough) else None


# Several hypotheses ---------------------------------------------------------------------------------------------------


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values corrected for their number by Holm's method, in the given order.

    If all hypotheses whose corrected p-value is at most 0.05 are rejected, the probability of rejecting any true one is
    at most 0.05, whatever their dependence. An undefined p-value counts in the number and stays undefined.

    Args:
        p_values: Shape (hypotheses,).

    References:
        S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics, 1979.

    Example:
        >>> print(holm([0.01, 0.04, 0.03]))
        [0.03 0.06 0.06]
    """
    given = vector(p_values, "p_values")
    if ((given < 0) | (given > 1)).any():
        raise ValueError(f"p_values must be between 0 and 1, got {given}")
    order = np.argsort(given)  # undefined ones last
    factors = np.arange(len(given), 0, -1)
    found = np.empty_like(given)
    found[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1)
    return found


def all_show(estimates: Mapping[NameT, Estimate], bound: float, alternative: Alternative) -> bool:
    """Return whether every number is shown to be beyond a bound: an intersection-union test, without correction.

    Each is tested one-sided at (1 - level) / 2, so that its interval excludes the bound. False without estimates.
    """
    return bool(estimates) and all(p_value(e, bound, alternative) <= _size(e) for e in estimates.values())


def shown(estimates: Mapping[NameT, Estimate], bound: float, alternative: Alternative) -> list[NameT]:
    """Return the names of the numbers that are shown to be beyond a bound, with Holm's correction."""
    return _rejected(estimates, [p_value(e, bound, alternative) for e in estimates.values()])


def shown_outside(estimates: Mapping[NameT, Estimate], margin: float) -> list[NameT]:
    """Return the names of the numbers that are shown to be further than a margin from 0, with Holm's correction."""
    return _rejected(
        estimates, [min(p_value(e, margin, "greater"), p_value(e, -margin, "less")) for e in estimates.values()]
    )


def all_within(estimates: Mapping[NameT, Estimate], margin: float) -> bool:
    """Return whether every number is shown to be within a margin of 0: two one-sided tests each, without correction."""
    return all_show(estimates, margin, "less") and all_show(estimates, -margin, "greater")


def _rejected(estimates: Mapping[NameT, Estimate], p_values: Sequence[float]) -> list[NameT]:
    """Return the names of the estimates whose corrected p-values are small enough."""
    return [name for (name, e), p in zip(estimates.items(), holm(p_values), strict=True) if p <= _size(e)]


def _size(estimate: Estimate) -> float:
    """Return the size of a one-sided test that agrees with the two-sided interval."""
    return (1 - estimate.level) / 2 + 1e-12


# Outcomes that are reached or not -------------------------------------------------------------------------------------


def fisher(first: ArrayLike, second: ArrayLike) -> float:
    """Return Fisher's exact two-sided p-value that two shares are equal, such as those of seeds that learned a task.

    Args:
        first: True or 1, False or 0; shape (n,).
        second: The same of another method, shape (m,).

    Example:
        >>> print(round(fisher([1, 1, 1, 0], [0, 0, 0, 1]), 4))
        0.4857
    """
    from scipy.stats import fisher_exact

    flags = [vector(one, name) for one, name in ((first, "first"), (second, "second"))]
    if not all(np.isin(one, (0, 1)).all() for one in flags):
        raise ValueError("first and second must have 0 or 1 for each unit, not their counts")
    table = np.array([[one.sum(), one.size - one.sum()] for one in flags], np.int64)
    return float(fisher_exact(table).pvalue)


def fisher_units_needed(
    first: float, second: float, *, above: int = 0, tests: int = 1, power: float = 0.8
) -> int | None:
    """Return how many units of each of two groups would show by `fisher` (5 %) that the first share is larger.

    Args:
        first: Share of the units for which something is true, in [0, 1], taken as exact.
        second: The same of the other group.
        above: Numbers of units up to this one are not tried.
        tests: Number of tests for which the p-value is corrected, in the worst case (Bonferroni).
        power: Probability with which so many units show it.

    Returns:
        The smallest such number, from the exact power up to 100 units; above that, the number that the normal
        approximation gives, which is a little too low. None if it is above `MOST_SEEDS`, or if the first share is not
        larger.

    Raises:
        ValueError: A share is not in [0, 1].
    """
    from scipy.special import ndtri

    if not (0 <= first <= 1 and 0 <= second <= 1):
        raise ValueError(f"first and second must be shares in [0, 1], got {first} and {second}")
    if not first > second:
        return None
    level = 0.05 / tests
    quantiles = ndtri(1 - level / 2) + ndtri(power)
    roughly = (quantiles / (first - second)) ** 2 * (first * (1 - first) + second * (1 - second))
    for n in range(max(above + 1, int(roughly), 1), _EXACT_UNITS + 1):
        if _fisher_power(first, second, n, level) >= power:
            return n
    needed = max(above, int(roughly), _EXACT_UNITS) + 1
    return needed if needed <= MOST_SEEDS else None


def majority_units_needed(share: float, *, above: int = 0, tests: int = 1, power: float = 0.8) -> int | None:
    """Return how many units would show by an exact interval (95 %) that a share is not one half.

    Args:
        share: Share of the units for which something is true, in [0, 1], taken as exact.
        above: Numbers of units up to this one are not tried.
        tests: Number of intervals for which the level is corrected (Bonferroni).
        power: Probability with which so many units show it.

    Returns:
        The smallest such number. A few more units can have a little less power, because counts are whole numbers. None
        if it is above `MOST_SEEDS`, as for a share of one half.

    Raises:
        ValueError: The share is not in [0, 1].
    """
    from scipy.stats import binom

    if not 0 <= share <= 1:
        raise ValueError(f"share must be in [0, 1], got {share}")
    units = np.arange(above + 1, MOST_SEEDS + 1)
    most = binom.isf(0.05 / 2 / tests, units, 0.5)  # a larger count is shown to be above one half
    enough = np.flatnonzero(binom.sf(most, units, max(share, 1 - share)) >= power)
    return int(units[enough[0]]) if len(enough) else None


def _fisher_power(first: float, second: float, n: int, level: float) -> float:
    """Return how probably Fisher's two-sided test of n units in each group shows that the first share is larger."""
    from scipy.stats import binom, hypergeom

    units = np.arange(n + 1)
    shown_larger = np.zeros((n + 1, n + 1), bool)
    for total in range(1, 2 * n):
        one = np.arange(max(0, total - n), min(n, total) + 1)
        chance = hypergeom.pmf(one, 2 * n, n, total)
        p_values = np.where(chance <= chance[:, np.newaxis] * (1 + 1e-7), chance, 0).sum(axis=1)
        shown_larger[one, total - one] = (p_values <= level) & (2 * one > total)
    return float(binom.pmf(units, n, first) @ shown_larger @ binom.pmf(units, n, second))


# Scores over tasks ----------------------------------------------------------------------------------------------------


def interquartile_mean(scores: Sequence[ArrayLike]) -> Any:
    """Return the mean of the middle half of all scores: less sensitive to outliers than the mean, more than the median.

    Args:
        scores: The scores of the runs on each task, shapes (..., runs).

    Returns:
        A number, or an array of the leading shape; NaN if a score is.

    Raises:
        ValueError: A task has no runs, or there are no tasks.

    Example:
        >>> print(interquartile_mean([[0, 1, 2, 3], [4, 5, 6, 100]]))
        3.5
    """
    from scipy.stats import trim_mean

    found = _checked_scores(scores, "scores")
    return trim_mean(np.concatenate(found, axis=-1), 0.25, axis=-1)


def probability_of_improvement(first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> Any:
    """Return how probable it is that a run of the first method beats one of the second, averaged over tasks.

    Ties count half: 0.5 says that neither is better.

    Args:
        first: The scores of the runs on each task, shapes (..., runs).
        second: Those of the other method, for the same tasks.

    Returns:
        A number, or an array of the leading shape; NaN if a score is.

    Raises:
        ValueError: A task has no runs, or the methods have different numbers of tasks, or none.

    Example:
        >>> print(probability_of_improvement([[1, 2], [3, 3]], [[0, 1], [3, 3]]))
        0.6875
    """
    one, two = _checked_scores(first, "first"), _checked_scores(second, "second")
    if len(one) != len(two):
        raise ValueError(f"second must have the scores of the same {len(one)} tasks as first, got {len(two)}")
    pairs = [(own[..., np.newaxis], other[..., np.newaxis, :]) for own, other in zip(one, two, strict=True)]
    better = [
        np.where(np.isnan(own) | np.isnan(other), np.nan, (own > other) + (own == other) / 2) for own, other in pairs
    ]
    return np.mean([np.mean(one, axis=(-2, -1)) for one in better], axis=0)


def _tasks(method: Sequence[ArrayLike]) -> list[Floats]:
    """Return a method's scores on each task as arrays."""
    found = [np.asarray(runs, np.float64) for runs in (method if np.iterable(method) else ())]
    if not all(runs.ndim for runs in found):
        raise ValueError("samples must hold the tasks of each method, and for each task its runs: [[[0.1, 0.2]]]")
    return found


def _checked_scores(scores: Sequence[ArrayLike], name: str) -> list[Floats]:
    """Return the scores of the runs on each task as arrays."""
    found = [np.asarray(own, np.float64) for own in scores]
    if not found or any(own.ndim < 1 or own.shape[-1] < 1 for own in found):
        shapes = [own.shape for own in found]
        raise ValueError(f"{name} must have the scores of at least one run on each task, got shapes {shapes}")
    return found


def stratified_bootstrap(
    samples: Sequence[Sequence[ArrayLike]],
    statistic: Callable[..., ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Return a statistic over tasks with its bootstrap interval, which resamples the runs of each task separately.

    With few runs such intervals are somewhat too narrow: 95 % intervals of an interquartile mean over 9 tasks covered
    it in 0.91 of 2000 simulations with 5 runs, and in 0.95 with 10.

    Args:
        samples: The scores of each method: for each task those of its runs, shapes (runs,), or (runs, ...) for several
            numbers of a run, which stay together.
        statistic: Called as ``statistic(*samples)`` with all resamples at once, each task's runs in the shape
            (resamples, runs, ...); returns a number for each resample.
        level: Confidence level of the interval, in (0, 1).
        resamples: Number of resamples.
        seed: Seed of the resampling; equal seeds give equal intervals.

    Returns:
        The estimate with a percentile interval; `n` is the smallest number of runs of a task. The interval is undefined
        with fewer than two runs, or if the statistic is undefined.
    """
    check_level(level)
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")
    given = [_tasks(method) for method in samples]
    if not given or not all(given):
        raise ValueError("samples must contain the scores of at least one method on at least one task, got none")
    n = min(len(runs) for method in given for runs in method)
    every = [[runs[np.newaxis] for runs in method] for method in given]
    value = float(np.asarray(statistic(*every)).item()) if n else float("nan")
    rng = np.random.default_rng(seed)
    if n < 2 or np.isnan(value):
        return Estimate(value=value, low=float("nan"), high=float("nan"), n=n, level=level)
    resampled = [[runs[rng.integers(len(runs), size=(resamples, len(runs)))] for runs in method] for method in given]
    drawn = np.asarray(statistic(*resampled), np.float64)
    if drawn.shape != (resamples,):
        raise ValueError(
            f"statistic must return a number for each resample, shape ({resamples},), got shape {drawn.shape}; for "
            "example, lambda scores: np.mean([own.mean(axis=-1) for own in scores], axis=0)"
        )
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        value=value, low=float(low), high=float(high), n=n, level=level, standard_error=float(drawn.std(ddof=1))
    )


# Noise floors ---------------------------------------------------------------------------------------------------------


def noise_floor(gap: Callable[[Flags], Floats], members: Flags, *, deals: int = 20, seed: int = 0) -> float:
    """Return the mean absolute gap if the membership in a group is dealt at random among the individuals of each row.

    A mean absolute gap is above 0 even if both groups are treated alike; this is how far.

    Args:
        gap: Returns the gap of each row (episode) for memberships like ``members``, shape (rows,).
        members: Who is in the group, shape (rows, individuals).
        deals: How often the memberships are dealt.
        seed: Seed of the dealing.

    Raises:
        ValueError: Memberships are not True or False, 1 or 0, or ``deals`` is below 1.
    """
    given = np.asarray(members)
    if given.ndim != 2 or not np.isin(given, (0, 1)).all():
        raise ValueError(f"members must be True or False, of shape (rows, individuals), got shape {given.shape}")
    if deals < 1:
        raise ValueError(f"deals must be at least 1, got {deals}")
    rng, flags = np.random.default_rng(seed), given.astype(bool)
    return float(np.mean([np.abs(gap(rng.permuted(flags, axis=1))).mean() for _ in range(deals)]))
