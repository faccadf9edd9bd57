"""Pooled rates: what each individual got over an episode, summed over all individuals and episodes of a group.

A pooled rate is the sum of the benefits divided by the sum of the demands. The mean over episodes of an absolute gap is
not used: it is above 0 even for a coin flip, because every episode has a random gap. What randomness alone would give
is measured too: the *noise floor* is the same gap after the group memberships have been shuffled among the individuals
who count in the rate, such as the qualified.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics.intervals import Estimate
from fair_envs.metrics.rates import quotients
from fair_envs.support.aliases import Flags, Floats, Ints

Statistic = Callable[[Floats], Floats]
"""A number of pooled benefits and demands: shape (..., groups, rates, 2) to (...)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """The n individuals of some episodes, in the order of the episodes.

    Attributes:
        episode: The number of the individual's episode, shape (n,).
        group: The index of the compared group; -1: none, shape (n,).
        group_code: The value of ``fair_group``, shape (n,).
        sensitive: The codes of the sensitive attributes, shape (n, attributes).
        legitimate: The codes of the legitimate factors, shape (n, factors).
        sums: Benefits (``[..., 0]``) and demands (``[..., 1]``) in each rate over the episode, shape (n, rates, 2).
    """

    episode: Ints
    group: Ints
    group_code: Ints
    sensitive: Ints
    legitimate: Ints
    sums: Floats

    @classmethod
    def joined(cls, parts: Sequence["People"]) -> "People":
        """Return the individuals of all parts, whose episodes follow each other."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__annotations__})


def totals_by(index: NDArray[np.integer[Any]], sums: Floats, *, count: int) -> Floats:
    """Return the sums of each group, shape (groups, ...).

    Args:
        index: The group of each individual; -1: none, shape (n,).
        sums: What is summed, shape (n, ...).
        count: The number of groups.
    """
    members = (index == np.arange(count)[:, np.newaxis]).astype(np.float64)
    found: Floats = (members @ sums.reshape(len(sums), -1)).reshape(count, *sums.shape[1:])
    return found


def totals_of_episodes(people: People, index: Ints, sums: Floats, *, count: int, episodes: int) -> Floats:
    """Return the sums of each group in each episode, shape (episodes, groups, ...)."""
    ends = np.searchsorted(people.episode, np.arange(episodes + 1))
    parts = [slice(low, high) for low, high in pairwise(ends)]
    return np.stack([totals_by(index[part], sums[part], count=count) for part in parts])


# Shuffled labels ------------------------------------------------------------------------------------------------------


def shuffled(cell: Ints, *, count: int, seed: int) -> Iterator[Ints]:
    """Yield random orders, each of shape (n,), in which each place has an individual of the same cell.

    Args:
        cell: The cell of each individual, shape (n,).
        count: The number of orders.
        seed: The seed.
    """
    rng, own = np.random.default_rng(seed), np.argsort(cell, kind="stable")
    for _ in range(count):
        order = np.empty_like(own)
        order[own] = np.argsort(cell + rng.random(len(cell)))
        yield order


def cells_of(episode: Ints, stratum: Ints) -> Ints:
    """Return the cells in which labels are shuffled, shape (n,): one for each stratum of each episode.

    If no stratum of an episode has two individuals, there is one cell for each stratum of all episodes.

    Args:
        episode: The episode of each individual, shape (n,).
        stratum: The stratum of each individual, at least 0, shape (n,).
    """
    cell = episode * (stratum.max(initial=0) + 1) + stratum
    return stratum if len(np.unique(cell)) == len(cell) else cell


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """The k individuals of compared groups who count in some rates: those of all n with a demand.

    Attributes:
        rates: The indices of the rates.
        mask: Who they are, shape (n,).
        alone: Whether no episode has two of them; labels are then shuffled among all episodes.
        index: The group of all individuals; -1: none, shape (n,).
        sums: Their benefits and demands, shape (k, rates, 2).
        count: The number of groups.
    """

    rates: Sequence[int]
    mask: Flags
    alone: bool
    index: NDArray[np.int16]
    sums: Floats
    count: int

    @classmethod
    def each(cls, episode: Ints, index: Ints, sums: Floats, *, count: int) -> "Iterator[Counted]":
        """Yield those who count in each rate, the rates in which the same individuals count together.

        Rates are left out if no two groups share an episode, because shuffling would not change their gaps.

        Args:
            episode: The episode of each individual, in ascending order, shape (n,).
            index: The group of each individual; -1: none, shape (n,).
            sums: Benefits and demands, shape (n, rates, 2).
            count: The number of groups.
        """
        rates_of: dict[bytes, list[int]] = {}
        for rate in range(sums.shape[1]):
            mask = (index >= 0) & (sums[:, rate, 1] > 0)
            rates_of.setdefault(mask.tobytes(), []).append(rate)
        for content, rates in rates_of.items():
            mask = np.frombuffer(content, bool)
            group, place = index[mask], episode[mask]
            alone = len(np.unique(place)) == len(place)
            near = alone | (place[1:] == place[:-1])
            if (near & (group[1:] != group[:-1])).any():
                own = np.ascontiguousarray(sums[mask][:, rates])
                yield cls(rates=rates, mask=mask, alone=alone, index=index.astype(np.int16), sums=own, count=count)

    def totals(self, order: Ints) -> Floats:
        """Return the sums of each group if they have the labels of those in ``order``, shape (groups, rates, 2)."""
        return totals_by(self.index[order], self.sums, count=self.count)


def shuffled_totals(
    episode: Ints, groupings: Sequence[tuple[Ints, Floats, int]], *, count: int, seed: int
) -> list[Floats]:
    """Return the sums of groups with shuffled labels, shape (count, groups, rates, 2) for each grouping.

    In each rate, labels are shuffled among the individuals of an episode who have a demand: as many people of each
    group count as before, and only what they get can differ. If no episode has two of them, labels are shuffled among
    all episodes. Groupings and rates have the same random numbers. Sums are NaN if no shuffle can change a gap.

    Args:
        episode: The episode of each individual, in ascending order, shape (n,).
        groupings: The group of each individual (-1: none), shape (n,), benefits and demands, shape (n, rates, 2), and
            the number of groups.
        count: The number of shuffles.
        seed: The seed.
    """
    found = [np.full((count, number, *sums.shape[1:]), np.nan) for _, sums, number in groupings]
    parts = [list(Counted.each(episode, index, sums, count=number)) for index, sums, number in groupings]
    every = [(part, totals) for own, totals in zip(parts, found, strict=True) for part in own]
    masks = {(part.mask.tobytes(), part.alone): part.mask for part, _ in every}
    for alone, cell in ((False, episode), (True, np.zeros_like(episode))):
        jobs = [(part, totals) for part, totals in every if part.alone == alone]
        own = {key: mask for key, mask in masks.items() if key[1] == alone}
        keys = [part.mask.tobytes() for part, _ in jobs]
        for copy, order in enumerate(shuffled(cell, count=count if jobs else 0, seed=seed)):
            orders = {content: order[mask[order]] for (content, _), mask in own.items()}
            for key, (part, totals) in zip(keys, jobs, strict=True):
                totals[copy][:, part.rates] = part.totals(orders[key])
    return found


# Intervals ------------------------------------------------------------------------------------------------------------


def resampled(totals: Floats, *, count: int, seed: int) -> Floats:
    """Return the sums over bootstrap samples of the episodes, shape (samples, ...), for totals (episodes, ...)."""
    weights = weights_of_samples(len(totals), count=count, seed=seed)
    found: Floats = (weights @ totals.reshape(len(totals), -1)).reshape(count, *totals.shape[1:])
    return found


@functools.lru_cache(maxsize=8)
def weights_of_samples(episodes: int, *, count: int, seed: int) -> Ints:
    """Return how often each episode is in each bootstrap sample, shape (samples, episodes); read only, drawn once."""
    found = np.random.default_rng(seed).multinomial(episodes, np.full(episodes, 1 / episodes), size=count)
    found.flags.writeable = False
    return found


def pooled_estimate(totals: Floats, samples: Floats, statistic: Statistic, *, level: float) -> Estimate:
    """Return a statistic of the pooled totals, with its interval, see `percentiles`; see also `Largest.interval`.

    Args:
        totals: Benefits and demands, shape (episodes, groups, rates, 2).
        samples: Those of bootstrap samples of the episodes, shape (samples, groups, rates, 2).
        statistic: The statistic.
        level: Coverage of the interval, which is undefined if the statistic is undefined in some sample.
    """
    value, n = float(statistic(totals.sum(axis=0))), len(totals)
    low, high, error = np.nan, np.nan, np.nan
    found = statistic(samples) if n > 1 and not np.isnan(value) else np.full(1, np.nan)
    if not np.isnan(found).any():
        if isinstance(statistic, Largest):
            low, high = statistic.interval(totals, samples, level)
        else:
            low, high = map(float, percentiles(found, level, episodes=n))
        error = float(found.std(ddof=1))
    return Estimate(value=value, low=low, high=high, n=n, level=level, standard_error=error)


def percentiles(samples: Floats, level: float, *, episodes: int) -> Floats:
    """Return the ends of the expanded percentile interval, shape (2, ...) for bootstrap samples (n, ...).

    Percentiles of few episodes are too narrow, like a normal interval with a standard error that is divided by the
    number of episodes instead of one less. The percentiles are those further out that make up for both (Hesterberg,
    "What Teachers Should Know About the Bootstrap", The American Statistician, 2015).
    """
    from scipy.special import ndtr, stdtrit

    reach = float(stdtrit(episodes - 1, (1 + level) / 2)) * np.sqrt(episodes / (episodes - 1))
    found: Floats = np.nanquantile(samples, ndtr([-reach, reach]), axis=0)
    return found


# Statistics -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RateOf:
    """The rate of a group."""

    group: int
    rate: int = 0

    def __call__(self, totals: Floats) -> Floats:
        """Return the rate; NaN without a demand."""
        return quotients(totals[..., self.group, self.rate, :])


@dataclass(frozen=True)
class Difference:
    """The rate of one group minus that of another one."""

    first: int
    second: int
    rate: int = 0

    def __call__(self, totals: Floats) -> Floats:
        """Return the signed difference; NaN if a rate is undefined."""
        first, second = (quotients(totals[..., group, self.rate, :]) for group in (self.first, self.second))
        return first - second


@dataclass(frozen=True)
class ToOthers:
    """The rate of a group minus that of all other individuals."""

    group: int
    rate: int = 0

    def __call__(self, totals: Floats) -> Floats:
        """Return the signed difference; NaN if a rate is undefined."""
        own = totals[..., self.group, self.rate, :]
        return quotients(own) - quotients(totals[..., self.rate, :].sum(axis=-2) - own)


@dataclass(frozen=True)
class Largest:
    """The largest difference between two groups, in any of some rates."""

    rates: tuple[int, ...] = (0,)

    def __call__(self, totals: Floats) -> Floats:
        """Return the difference, at least 0; NaN if no two groups have a rate, or sums are NaN."""
        found = quotients(totals[..., list(self.rates), :])  # (..., groups, rates)
        known = ~np.isnan(found)
        high = np.where(known, found, -np.inf).max(axis=-2)
        low = np.where(known, found, np.inf).min(axis=-2)
        gaps = np.full(high.shape, -np.inf)
        np.subtract(high, low, out=gaps, where=known.sum(axis=-2) > 1)
        largest = gaps.max(axis=-1)
        unknown = np.isnan(totals[..., list(self.rates), 1]).any(axis=(-2, -1))
        return np.where(np.isinf(largest) | unknown, np.nan, largest)

    def interval(self, totals: Floats, samples: Floats, level: float) -> tuple[float, float]:
        """Return an interval from a simultaneous one of all signed differences between two groups.

        Percentiles of the largest absolute difference itself would be too high, and exclude 0 for equal groups: it is
        never negative, so differences by chance do not cancel. Here, all signed differences are within the same number
        of standard errors of their true values in the given share of the samples. The lower end is the smallest largest
        difference that this allows, the upper end the largest. Undefined if a difference is undefined in some sample.

        Standard errors of few episodes are uncertain, so their number is that of Student's distribution with the same
        probability.

        Args:
            totals: Benefits and demands, shape (episodes, groups, rates, 2).
            samples: Those of bootstrap samples, shape (samples, groups, rates, 2).
            level: Coverage of the interval.
        """
        from scipy.special import ndtr, stdtrit

        every = np.concatenate([totals.sum(axis=0, keepdims=True), samples])[:, :, list(self.rates), :]
        found = quotients(every)  # (1 + samples, groups, rates)
        first, second = np.triu_indices(found.shape[1], k=1)
        signed = found[:, first] - found[:, second]
        value, resampled = signed[0], signed[1:]
        known = ~np.isnan(value)
        value, resampled = value[known], resampled[:, known]
        if np.isnan(resampled).any():
            return np.nan, np.nan
        error = resampled.std(axis=0, ddof=1) * np.sqrt(len(totals) / (len(totals) - 1))
        apart = np.zeros_like(resampled)
        np.divide(np.abs(resampled - value), error, out=apart, where=error > 0)
        errors = float(stdtrit(len(totals) - 1, ndtr(np.quantile(apart.max(axis=1), level))))
        nearest, farthest = np.abs(value) - errors * error, np.abs(value) + errors * error
        return max(0.0, float(nearest.max())), float(farthest.max())


@dataclass(frozen=True)
class Overall:
    """The rate of all individuals."""

    rate: int = 0

    def __call__(self, totals: Floats) -> Floats:
        """Return the rate; NaN without a demand."""
        return quotients(totals[..., self.rate, :].sum(axis=-2))


@dataclass(frozen=True)
class Lowest:
    """The rate of the worst-off group, among groups that have one."""

    rate: int = 0

    def __call__(self, totals: Floats) -> Floats:
        """Return the rate; NaN if no group has one."""
        found = quotients(totals[..., self.rate, :])
        lowest = np.where(np.isnan(found), np.inf, found).min(axis=-1)
        return np.where(np.isinf(lowest), np.nan, lowest)


def noise(values: Floats, *, level: float) -> tuple[float, float]:
    """Return the mean and the limit of absolute gaps with shuffled group memberships; NaN without a defined one.

    Without an effect of the groups, the gap itself is one more such gap. So the limit is the gap of the rank ``level *
    (count + 1)``, rounded up, which the gap itself exceeds with a probability of at most ``1 - level``; NaN if there
    are too few for that rank.
    """
    gaps = np.sort(np.abs(values))
    if not gaps.size or np.isnan(gaps).any():
        return float("nan"), float("nan")
    rank = math.ceil(level * (gaps.size + 1) - 1e-9)
    return float(gaps.mean()), float(gaps[rank - 1]) if rank <= gaps.size else float("nan")
