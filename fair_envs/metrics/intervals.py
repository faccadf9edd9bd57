"""Estimates with confidence intervals (Student's t, Wilson's, bootstrap), over episodes or over training seeds.

A *unit* is what was drawn independently. Episodes of one trained policy show how that policy acts; only several
training seeds show how the training method performs. Average the episodes of each seed first (`cluster_means`) and pass
the seeds here.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Floats

Method = Literal["t", "percentile", "bca"]
METHODS = get_args(Method)
Resampling = Literal["percentile", "bca"]
Undefined = Literal["nan", "omit"]
ShareMethod = Literal["wilson", "exact"]
SHARE_METHODS = get_args(ShareMethod)

_DRAWS_AT_ONCE = 2**22  # numbers in one batch of resamples: 32 MiB


@dataclass(frozen=True, kw_only=True, repr=False)
class Estimate:
    """A number with its confidence interval.

    `low` and `high` are NaN if the data cannot give an interval (one unit); `value` is NaN if the number itself is
    undefined (no unit). `n` is the number of units. `freedom` is the number of degrees of freedom of Student's
    distribution, infinite where the interval is not Student's.
    """

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    standard_error: float = float("nan")
    freedom: float = float("inf")

    def __neg__(self) -> "Estimate":
        """Return the estimate of the negative number."""
        return replace(self, value=-self.value, low=-self.high, high=-self.low)

    def excludes(self, value: float) -> bool:
        """Return whether `value` lies outside the interval; an undefined interval excludes nothing."""
        return value < self.low or value > self.high

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the fields for JSON, which has no NaN: numbers that are not finite become None."""
        found = {name: number if np.isfinite(number) else None for name, number in asdict(self).items()}
        del found["freedom"]  # only needed for tests of hypotheses
        return found

    def __format__(self, spec: str) -> str:
        return f"{_number(self.value, spec)} {self._interval(spec)} ({100 * self.level:g} %, n = {self.n})"

    def __str__(self) -> str:
        return format(self, "")

    def __repr__(self) -> str:
        return f"Estimate({self})"

    def _interval(self, spec: str) -> str:
        if np.isnan(self.low) or np.isnan(self.high):
            return "[undefined]"
        return f"[{_number(self.low, spec)}, {_number(self.high, spec)}]"


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "t",
    undefined: Undefined = "nan",
    resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """Return the mean of independent units with its interval.

    Args:
        values: One number per unit (episode, or training seed); shape (units,).
        level: Confidence level: the share of such intervals that cover the mean, in (0, 1).
        method: `t` is Student's; `percentile` and `bca` resample the units. With fewer than about ten units,
            bootstrap intervals are too narrow: use `t`.
        undefined: How to treat NaN among the values: `nan` makes the mean NaN, `omit` drops the unit (`n` is the number
            that remains).
        resamples: Number of bootstrap resamples.
        seed: Seed of the resampling; equal seeds give equal intervals.

    Returns:
        The estimate. Without units the mean is undefined; with one unit the interval is undefined.

    Example:
        >>> print(mean_interval([0.2, 0.3, 0.4]))
        0.3 [0.05159, 0.5484] (95 %, n = 3)
    """
    sample = _defined(vector(values, "values"), undefined)
    check_choice(method, "method", METHODS)
    n = sample.size
    value = float(sample.mean()) if n else float("nan")
    error = float(sample.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    if method == "t" or n < 2 or np.isnan(value) or np.ptp(sample) == 0:
        return t_interval(value, standard_error=error, freedom=n - 1, n=n, level=level)
    return bootstrap_interval([sample], np.mean, level=level, method=method, resamples=resamples, seed=seed)


def t_interval(value: float, *, standard_error: float, freedom: float, n: int, level: float = 0.95) -> Estimate:
    """Return value -+ t * standard_error, with t the quantile of Student's distribution with `freedom` degrees."""
    from scipy.special import stdtrit  # scipy.stats also has it but takes much longer to import

    check_level(level)
    half = float(stdtrit(freedom, (1 + level) / 2)) * standard_error if freedom > 0 else float("nan")
    return Estimate(
        value=value,
        low=value - half,
        high=value + half,
        n=n,
        level=level,
        standard_error=standard_error,
        freedom=freedom,
    )


def difference_interval(first: Estimate, second: Estimate) -> Estimate:
    """Return the first estimate minus an independent second one, with Welch's interval.

    The interval is too wide if the estimates are positively correlated, as those of the same test episodes are.

    Args:
        first: An estimate with at least two units; with fewer the interval is undefined.
        second: An estimate of the same level.

    Example:
        >>> print(difference_interval(mean_interval([3, 4, 5]), mean_interval([1, 2, 3])))
        2 [-0.267, 4.267] (95 %, n = 3)
    """
    parts = [(standard_error_of(one) ** 2, float(max(one.n - 1, 1))) for one in (first, second)]
    return summed_interval(first.value - second.value, parts, n=min(first.n, second.n), level=first.level)


def summed_interval(value: float, parts: Sequence[tuple[float, float]], *, n: int, level: float = 0.95) -> Estimate:
    """Return a number with independent sources of uncertainty, with the interval of Welch and Satterthwaite.

    Args:
        value: The number.
        parts: Variance and degrees of freedom of each source; an unknown variance, NaN, gives an undefined interval.
        n: The number of units, for the estimate.
        level: Confidence level of the interval, in (0, 1).
    """
    variance, freedom = np.array(parts, np.float64).T
    total = float(variance.sum())
    divisor = float((variance**2 / np.maximum(freedom, 1)).sum())
    found = total**2 / divisor if divisor > 0 else float(n - 1)
    return t_interval(value, standard_error=float(np.sqrt(total)), freedom=found, n=n, level=level)


def standard_error_of(estimate: Estimate) -> float:
    """Return the standard error; from the width of the interval if only that is known."""
    from scipy.special import ndtri

    if not np.isnan(estimate.standard_error):
        return estimate.standard_error
    return (estimate.high - estimate.low) / (2 * float(ndtri((1 + estimate.level) / 2)))


def share_interval(flags: ArrayLike, *, level: float = 0.95, method: ShareMethod = "wilson") -> Estimate:
    """Return the share of units for which a flag is true, with its interval.

    Args:
        flags: True or 1, False or 0; shape (units,).
        level: Confidence level: the share of such intervals that cover the probability, in (0, 1).
        method: `wilson`, or `exact` (Clopper and Pearson), which covers the probability at least that often for every
            probability and number of units.

    Returns:
        The estimate. Without units it is undefined.

    Example:
        >>> print(share_interval([True, False, True, True]))
        0.75 [0.3006, 0.9544] (95 %, n = 4)
    """
    check_level(level)
    check_choice(method, "method", SHARE_METHODS)
    sample = vector(flags, "flags")
    if not np.isin(sample, (0, 1)).all():
        raise ValueError(f"flags must be 0 or 1, got {sample[~np.isin(sample, (0, 1))][0]:g}")
    if not sample.size:
        return Estimate(value=float("nan"), low=float("nan"), high=float("nan"), n=0, level=level)
    return _share_of(int(sample.sum()), sample.size, float(level), method)


@lru_cache(maxsize=4096)
def _share_of(count: int, n: int, level: float, method: ShareMethod) -> Estimate:
    """Return the share of `count` in `n` units; a report asks for the same few counts hundreds of times."""
    from scipy.stats import binomtest

    result = binomtest(count, n)
    interval = result.proportion_ci(confidence_level=level, method=method)
    return Estimate(value=float(result.statistic), low=float(interval.low), high=float(interval.high), n=n, level=level)


def bootstrap_interval(
    samples: Sequence[ArrayLike],
    statistic: Callable[..., Any],
    *,
    paired: bool = False,
    level: float = 0.95,
    method: Resampling = "percentile",
    resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of one or more samples with its bootstrap interval (`scipy.stats.bootstrap`).

    Args:
        samples: The samples, each of shape (units,).
        statistic: Called as `statistic(*samples, axis=-1)` on arrays of resamples; returns one number per resample.
        paired: Whether unit i is the same in every sample; units are then resampled together.
        level: Confidence level: the share of such intervals that cover the statistic, in (0, 1).
        method: `percentile`, or `bca` (corrected for bias and skewness).
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        The estimate; `n` is the size of the smallest sample. The interval is undefined if a sample has fewer than two
        units, or if the statistic is undefined in some resample.
    """
    check_choice(method, "method", ("percentile", "bca"))
    check_level(level)
    _check_positive(resamples, "resamples")
    arrays = [vector(sample, "samples") for sample in samples]
    _check_samples(arrays, paired=paired)
    n = min(array.size for array in arrays)
    value = float(statistic(*arrays, axis=-1)) if n else float("nan")
    if n < 2 or np.isnan(value):
        return Estimate(value=value, low=float("nan"), high=float("nan"), n=n, level=level)
    low, high, error = _resampled(arrays, statistic, paired, level, method, resamples, seed)
    return Estimate(value=value, low=low, high=high, n=n, level=level, standard_error=error)


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "t",
    resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """Return the mean of `first - second` with its interval; unit i is the same in both (for example a training seed).

    If a unit is undefined in either argument, the difference is undefined.
    """
    one, other = vector(first, "first"), vector(second, "second")
    if one.shape != other.shape:
        raise ValueError(f"second must have the shape of first, {one.shape}, got {other.shape}")
    return mean_interval(one - other, level=level, method=method, resamples=resamples, seed=seed)


def cluster_means(values: ArrayLike, *, clusters: ArrayLike) -> Floats:
    """Return the mean of each cluster, in ascending order of its label; shape (clusters,).

    Episodes of one trained policy are not independent evidence about the training method: average them and use the
    training seeds as units. Undefined (NaN) values are left out; a cluster with no other values is NaN.

    Args:
        values: Shape (episodes,).
        clusters: Label of the cluster (the training seed) of each episode; shape (episodes,).
    """
    numbers, labels = vector(values, "values"), np.asarray(clusters)
    if labels.shape != numbers.shape:
        raise ValueError(f"clusters must have shape {numbers.shape}, got {labels.shape}")
    names, index = np.unique(labels, return_inverse=True)
    defined = ~np.isnan(numbers)
    total = np.bincount(index[defined], weights=numbers[defined], minlength=names.size)
    count = np.bincount(index[defined], minlength=names.size)
    means: Floats = np.full(names.size, np.nan)
    return np.divide(total, count, out=means, where=count > 0)


def _resampled(
    samples: list[Floats],
    statistic: Callable[..., Any],
    paired: bool,
    level: float,
    method: Resampling,
    resamples: int,
    seed: int,
) -> tuple[float, float, float]:
    from scipy.stats import bootstrap

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a degenerate distribution: its interval is NaN, which the caller sees
        result = bootstrap(
            samples,
            statistic,
            paired=paired,
            vectorized=True,
            confidence_level=level,
            method="BCa" if method == "bca" else "percentile",
            n_resamples=resamples,
            batch=max(1, _DRAWS_AT_ONCE // max(sample.size for sample in samples)),
            rng=np.random.default_rng(seed),
        )
    interval = result.confidence_interval
    return float(interval.low), float(interval.high), float(result.standard_error)


def _number(value: float, spec: str) -> str:
    """Return the number as text: by default four significant digits, and never less than the integer part."""
    if np.isnan(value):
        return "undefined"
    return format(value, spec or (".4g" if abs(value) < 1000 else ".0f"))


def _defined(sample: Floats, undefined: Undefined) -> Floats:
    check_choice(undefined, "undefined", ("nan", "omit"))
    return sample[~np.isnan(sample)] if undefined == "omit" else sample


def vector(values: ArrayLike, name: str) -> Floats:
    """Return the values of the argument called `name` as an array, which must have one axis."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    return array


def _check_samples(samples: list[Floats], *, paired: bool) -> None:
    if not samples:
        raise ValueError("samples must contain at least one sample, got none")
    if paired and len({sample.size for sample in samples}) > 1:
        raise ValueError(f"paired samples must have the same length, got {[sample.size for sample in samples]}")


def check_level(level: float) -> None:
    """Raise ValueError unless the confidence level is between 0 and 1."""
    if not (isinstance(level, Real) and 0 < level < 1):
        raise ValueError(f"level must be between 0 and 1, got {level!r}")


def _check_positive(value: int, name: str) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def check_choice(value: str, name: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless the argument called `name` is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
