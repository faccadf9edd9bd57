"""Pooled rates: what each individual got over an episode, summed over all individuals and episodes of a group.

A pooled rate is the sum of the benefits divided by the sum of the demands. The mean over episodes of an absolute gap is
not used: it is above 0 even for a coin flip, because every episode has a random gap. What randomness alone would give
is measured too: the *noise floor* is the same gap after the group memberships have been shuffled among individuals.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fair_envs.metrics.intervals import Estimate
from fair_envs.metrics.rates import quotients
from fair_envs.support.aliases import Floats, Ints

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


def totals_by(index: Ints, sums: Floats, *, count: int) -> Floats:
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


def shuffled(people: People, *, count: int, seed: int) -> Iterator[Ints]:
    """Yield orders of the individuals in which group memberships are shuffled, each of shape (n,).

    Group memberships are shuffled among the individuals of the same episode. If each episode has one individual, they
    are shuffled among the individuals of all episodes.
    """
    rng = np.random.default_rng(seed)
    alone = len(np.unique(people.episode)) == len(people.episode)
    place = np.zeros(len(people.episode)) if alone else people.episode
    for _ in range(count):
        yield np.argsort(place + rng.random(len(place)))


def resampled(totals: Floats, *, count: int, seed: int) -> Floats:
    """Return the sums over bootstrap samples of the episodes, shape (samples, ...), for totals (episodes, ...)."""
    episodes = len(totals)
    weights = np.random.default_rng(seed).multinomial(episodes, np.full(episodes, 1 / episodes), size=count)
    found: Floats = (weights @ totals.reshape(episodes, -1)).reshape(count, *totals.shape[1:])
    return found


def pooled_estimate(totals: Floats, samples: Floats, statistic: Statistic, *, level: float) -> Estimate:
    """Return a statistic of the pooled totals, with its percentile interval.

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
        low, high = (float(end) for end in np.quantile(found, [(1 - level) / 2, (1 + level) / 2]))
        error = float(found.std(ddof=1))
    return Estimate(value=value, low=low, high=high, n=n, level=level, standard_error=error)


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
        """Return the difference, at least 0; NaN if no two groups have a rate."""
        found = quotients(totals[..., list(self.rates), :])  # (..., groups, rates)
        known = ~np.isnan(found)
        high = np.where(known, found, -np.inf).max(axis=-2)
        low = np.where(known, found, np.inf).min(axis=-2)
        gaps = np.full(high.shape, -np.inf)
        np.subtract(high, low, out=gaps, where=known.sum(axis=-2) > 1)
        largest = gaps.max(axis=-1)
        return np.where(np.isinf(largest), np.nan, largest)


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
    """Return the mean and a quantile of absolute gaps with shuffled group memberships; NaN without a defined one."""
    gaps = np.abs(values)
    if not gaps.size or np.isnan(gaps).any():
        return float("nan"), float("nan")
    return float(gaps.mean()), float(np.quantile(gaps, level))
