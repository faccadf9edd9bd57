"""What is compared: methods and policies, their numbers, and how much these differ."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fair_envs.assessment import Evaluation
from fair_envs.assessment.bounds import DIFFERENCE, SHARE, SHARES, Bounds, within
from fair_envs.assessment.evaluation import LIMIT, RESAMPLES, SHUFFLED, SUCCESS
from fair_envs.assessment.policies import Kind
from fair_envs.assessment.pooling import Largest, RateOf, Statistic, noise, resampled
from fair_envs.assessment.result import Row
from fair_envs.metrics import Estimate, mean_interval, share_interval
from fair_envs.metrics.intervals import difference_interval, standard_error_of, summed_interval
from fair_envs.metrics.rates import quotients
from fair_envs.support.aliases import Floats

FEWEST_SEEDS = 3
"""With fewer training seeds, a difference says little about the methods."""

SHARE_NAMES = {rate.name for rate in SHARES}
"""Names of the rates that are between 0 and 1."""

COMPARED: Mapping[str, str] = {"short-term": "mean over steps", "long-term": "last value"}
"""Which number of a measure is compared, unless the measure continues across episodes."""


class Contender(NamedTuple):
    """A method or policy that is compared.

    Attributes:
        name: Its name.
        kind: Whether it was trained.
        evaluations: One for each training seed; one if it was not trained.
    """

    name: str
    kind: Kind
    evaluations: Sequence[Evaluation]

    def row(self, section: str, name: str | None = None, of: str | None = None) -> Row | None:
        """Return a number with its noise floor: over training seeds if there are several, otherwise over episodes.

        Over seeds, the interval is Student's, without the values that the number cannot have. The noise floor is the
        mean; the limit of the largest gap is the quantile of the mean gap over seeds with shuffled group memberships,
        in the same orders for all seeds. None: an evaluation does not have the number.
        """
        try:
            rows = [one.row(section, name, of) for one in self.evaluations]
        except KeyError:
            return None
        if len(rows) == 1:
            return rows[0]
        values = [row.estimate.value for row in rows]
        found = mean_interval(values, level=rows[0].estimate.level)
        if found.standard_error == 0 and rows[0].name == SUCCESS and set(values) <= {0.0, 1.0}:
            found = _of_all_or_none(rows)
        found = within(found, _possible(rows[0], values))
        floor, limit = (float(np.mean([getattr(row, name) for row in rows])) for name in ("noise", "limit"))
        shuffled = [one.of_episodes.get(SHUFFLED) for one in self.evaluations]
        if rows[0].section == "gap" and rows[0].of == "largest" and all(gaps is not None for gaps in shuffled):
            floor, limit = noise(np.mean(np.array(shuffled), axis=0), level=LIMIT)
        return rows[0]._replace(estimate=found, noise=floor, limit=limit)

    def in_samples(self, section: str, of: str | None = None) -> Floats | None:
        """Return a number in bootstrap samples of the test episodes, its mean over seeds, shape (samples,).

        Contenders with the same number of episodes have the same samples. None: an evaluation was stored without its
        episodes.
        """
        found = [_in_samples(one, section, of) for one in self.evaluations]
        known = [one for one in found if one is not None]
        return np.mean(known, axis=0) if len(known) == len(found) else None

    def number(self, section: str, name: str | None = None, of: str | None = None) -> Estimate:
        """Return a number of `row`; NaN if it is missing."""
        found = self.row(section, name, of)
        return Estimate(value=np.nan, low=np.nan, high=np.nan, n=0) if found is None else found.estimate

    @property
    def performance(self) -> Estimate:
        """The task's performance."""
        return self.number("performance")

    @property
    def performance_name(self) -> str:
        """What the performance is."""
        return self.evaluations[0].row("performance").name

    @property
    def groups(self) -> tuple[str, ...]:
        """The compared groups."""
        return self.evaluations[0].groups

    @property
    def gap(self) -> Estimate:
        """The largest difference between the rates of two groups, of each training: opposite gaps do not cancel."""
        return self.number("gap", of="largest")

    @property
    def signed_gap(self) -> Row | None:
        """The mean of the signed differences of two groups; None for more groups."""
        names = self.groups
        return self.row("gap", of=f"{names[0]} - {names[1]}") if len(names) == 2 else None

    @property
    def within_noise(self) -> bool:
        """Whether the gap is not larger than noise would give; false if the noise floor is unknown."""
        found = self.row("gap", of="largest")
        return found is not None and bool(found.estimate.value <= found.limit)

    @property
    def beyond_noise(self) -> int:
        """The number of trainings with a gap that is larger than noise would give."""
        return sum(one.gap.beyond_noise for one in self.evaluations)

    @property
    def disagree(self) -> bool:
        """Whether trainings differ in which of two groups is worse off, in each case by more than noise."""
        signed = self.signed_gap
        if signed is None:
            return False
        rows = [one.row(*signed.key) for one in self.evaluations]
        return len({row.estimate.value > 0 for row in rows if row.beyond_noise}) > 1

    @property
    def rates(self) -> dict[str, Estimate]:
        """The pooled rate of each group."""
        return {name: self.number("rate", of=name) for name in self.groups}

    @property
    def seeds(self) -> int:
        """The number of trainings."""
        return len(self.evaluations)

    @property
    def uses_truth(self) -> bool:
        """Whether it is a scripted policy that reads what methods do not observe, so that it is a bound."""
        return any(one.about.get("uses_truth", False) for one in self.evaluations)

    def rows(self) -> dict[str, Row | None]:
        """Return the numbers of the table, by their names."""
        last = self.row("long-term", of=COMPARED["long-term"]) or self.row("long-term", of="at the end")
        signed = {"signed gap": self.signed_gap} if len(self.groups) == 2 else {}
        return {
            "performance": self.row("performance"),
            "gap": self.row("gap", of="largest"),
            **signed,
            "worst-off group": self.row("welfare", of="worst-off group"),  # whichever it is in each evaluation
            "short-term": self.row("short-term", of=COMPARED["short-term"]),
            "long-term": last,
            **{f"rate of {name}": self.row("rate", of=name) for name in self.groups},
        }


def _of_all_or_none(rows: Sequence[Row]) -> Estimate:
    """Return the share of successes if all or no episodes of all seeds succeeded, with Wilson's interval.

    That seeds agree does not show that all episodes would succeed.
    """
    value, episodes = rows[0].estimate.value, sum(row.estimate.n for row in rows)
    found = share_interval(np.full(episodes, value), level=rows[0].estimate.level)
    return replace(found, n=len(rows), standard_error=standard_error_of(found))


def _possible(row: Row, values: Sequence[float]) -> Bounds:
    """Return the bounds of a number; measures of own environments may be negative, so their values are looked at."""
    share = row.name in SHARE_NAMES or row.name == SUCCESS
    if row.section == "gap" and row.of != "largest":
        return DIFFERENCE if share else (-np.inf, np.inf)
    if share:
        return SHARE
    absolute = row.section in ("gap", "short-term", "long-term") and min(values) >= 0
    return (0.0 if absolute else -np.inf), np.inf


# Differences ----------------------------------------------------------------------------------------------------------


def difference(one: Contender, base: Contender, section: str, of: str | None = None) -> Estimate:
    """Return how much larger a number of one contender is than that of another, with its interval.

    The number may differ for other test episodes, which are the same for both, and for other trainings, which are
    independent. The interval is Welch's for the sum: the variance of the difference over bootstrap samples of the
    episodes, and for each method the variance of its mean over seeds. A single training is taken to vary over seeds
    like the other method. If both are single trainings, the difference is about these two only. Evaluations that were
    stored without their episodes are compared as independent ones.

    Args:
        one: A contender.
        base: The other one.
        section: See `Row`.
        of: See `Row`.
    """
    first, second = one.number(section, of=of), base.number(section, of=of)
    pair = one.in_samples(section, of), base.in_samples(section, of)
    if pair[0] is None or pair[1] is None or pair[0].shape != pair[1].shape:
        return difference_interval(first, second)
    episodes = min(_episodes(own) for contender in (one, base) for own in contender.evaluations)
    parts = [(np.nan, 0.0)]
    if episodes > 1:
        parts = [(float((pair[0] - pair[1]).var(ddof=1)) * episodes / (episodes - 1), episodes - 1.0)]
        if parts[0][0] == 0 and section == "performance" and one.performance_name == SUCCESS:
            return difference_interval(first, second)  # all or no episodes succeeded: few of them do not prove it
    parts += [*_of_seeds(one, first, base, second), *_of_seeds(base, second, one, first)]
    return summed_interval(first.value - second.value, parts, n=min(first.n, second.n), level=first.level)


def _of_seeds(
    contender: Contender, number: Estimate, other: Contender, its_number: Estimate
) -> list[tuple[float, float]]:
    """Return the variance of a contender's number over seeds and its degrees of freedom; none if it is not known."""
    if contender.seeds > 1:
        return [(number.standard_error**2, contender.seeds - 1.0)]
    if contender.kind == other.kind == "trained" and other.seeds > 1:
        return [(its_number.standard_error**2 * other.seeds, other.seeds - 1.0)]
    return []


def _episodes(one: Evaluation) -> int:
    return len(one.of_episodes["totals"])


def _in_samples(one: Evaluation, section: str, of: str | None) -> Floats | None:
    """Return a number of an evaluation in bootstrap samples of its episodes, shape (samples,)."""
    kept = one.of_episodes
    if "totals" not in kept:
        return None
    if section == "rate" or (section, of) == ("gap", "largest"):
        statistic: Statistic = Largest() if section == "gap" else RateOf(one.groups.index(str(of)))
        return statistic(resampled(kept["totals"][:, :, np.newaxis], count=RESAMPLES, seed=0))
    values = kept.get(section if section == "performance" else f"{section}: {of}")
    if values is None:
        return None
    sums = np.stack([np.nan_to_num(values), ~np.isnan(values)], axis=-1)
    return quotients(resampled(sums, count=RESAMPLES, seed=0))
