"""What a comparison finds: who gains and who loses, beyond what randomness explains."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from fair_envs.assessment import Evaluation
from fair_envs.assessment.bounds import DIFFERENCE, SHARE, SHARES, Bounds, within
from fair_envs.assessment.policies import Kind
from fair_envs.assessment.result import Row
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.metrics.intervals import difference_interval

FEWEST_SEEDS = 3
"""With fewer training seeds, a difference says little about the methods."""

SAME = 0.02
"""A change is about the same if its interval lies within this share of the reference's highest group rate."""

SHARE_NAMES = {rate.name for rate in SHARES}
"""Names of the rates that are between 0 and 1."""

Verdict = Literal["more", "less", "same", "unclear"]

OF_GROUPS: Mapping[Verdict, str] = {"more": "gains", "less": "loses", "same": "is about the same", "unclear": "unclear"}
OF_PERFORMANCE: Mapping[Verdict, str] = {
    "more": "higher",
    "less": "lower",
    "same": "about the same",
    "unclear": "unclear",
}
OF_GAPS: Mapping[Verdict, str] = {"more": "larger", "less": "smaller", "same": "about the same", "unclear": "unclear"}


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

        Over seeds, the interval is Student's, without the values that the number cannot have, and the noise floor is
        the mean. None: an evaluation does not have the number.
        """
        try:
            rows = [one.row(section, name, of) for one in self.evaluations]
        except KeyError:
            return None
        if len(rows) == 1:
            return rows[0]
        values = [row.estimate.value for row in rows]
        found = mean_interval(values, level=rows[0].estimate.level)
        found = within(found, _possible(rows[0], values))
        noise, limit = (float(np.mean([getattr(row, name) for row in rows])) for name in ("noise", "limit"))
        return rows[0]._replace(estimate=found, noise=noise, limit=limit)

    def number(self, section: str, name: str | None = None, of: str | None = None) -> Estimate:
        """Return a number of `row`; NaN if it is missing."""
        found = self.row(section, name, of)
        return Estimate(value=np.nan, low=np.nan, high=np.nan, n=0) if found is None else found.estimate

    @property
    def performance(self) -> Estimate:
        """The task's performance."""
        return self.number("performance")

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
    def few_seeds(self) -> bool:
        """Whether there are too few trainings to say something about the method."""
        return self.seeds < FEWEST_SEEDS

    @property
    def uses_truth(self) -> bool:
        """Whether it is a scripted policy that reads what methods do not observe, so that it is a bound."""
        return any(one.about.get("uses_truth", False) for one in self.evaluations)

    def rows(self) -> dict[str, Row | None]:
        """Return the numbers of the table, by their names."""
        last = self.row("long-term", of="last value") or self.row("long-term", of="at the end")
        signed = {"signed gap": self.signed_gap} if len(self.groups) == 2 else {}
        return {
            "performance": self.row("performance"),
            "gap": self.row("gap", of="largest"),
            **signed,
            "worst-off group": self.row("welfare", of="worst-off group"),  # whichever it is in each evaluation
            "short-term": self.row("short-term", of="mean over steps"),
            "long-term": last,
            **{f"rate of {name}": self.row("rate", of=name) for name in self.groups},
        }


def _possible(row: Row, values: Sequence[float]) -> Bounds:
    """Return the bounds of a number; measures of own environments may be negative, so their values are looked at."""
    share = row.name in SHARE_NAMES or row.name == "successful episodes"
    if row.section == "gap" and row.of != "largest":
        return DIFFERENCE if share else (-np.inf, np.inf)
    if share:
        return SHARE
    absolute = row.section in ("gap", "short-term", "long-term") and min(values) >= 0
    return (0.0 if absolute else -np.inf), np.inf


# Changes --------------------------------------------------------------------------------------------------------------


def verdict(change: Estimate, *, same: float) -> Verdict:
    """Return whether a change is more than uncertainty explains.

    Args:
        change: The change with its interval, which must exclude 0 for ``"more"`` and ``"less"``.
        same: The change is ``"same"`` if its interval lies between ``-same`` and ``same``.
    """
    if change.excludes(0):
        return "more" if change.value > 0 else "less"
    return "same" if change.low >= -same and change.high <= same else "unclear"


def changes(one: Contender, base: Contender) -> tuple[Verdict, Verdict]:
    """Return how performance and the absolute gap differ from those of a reference."""
    performance = verdict(
        difference_interval(one.performance, base.performance), same=SAME * abs(base.performance.value)
    )
    return performance, verdict(difference_interval(one.gap, base.gap), same=SAME * _highest(base))


def change(one: Contender, base: Contender) -> str:
    """Return who gains and who loses with one method instead of another, in one sentence.

    A group gains or loses if the interval of the change of its rate excludes 0; likewise for performance and gap.
    """
    rates, before = one.rates, base.rates
    performance, gap = changes(one, base)
    start = (
        f"{one.name} instead of {base.name}: performance {_short(base.performance)} to {_short(one.performance)} "
        f"({OF_PERFORMANCE[performance]})"
    )
    known = {name: rate.value for name, rate in before.items() if not np.isnan(rate.value)}
    if len(known) < 2:
        return f"{start}."
    moves = {name: difference_interval(rates[name], before[name]) for name in before}
    words = {name: verdict(move, same=SAME * _highest(base)) for name, move in moves.items()}
    told = ", ".join(f"{name} {OF_GROUPS[words[name]]} ({_signed(move)})" for name, move in moves.items())
    worse, better = min(known, key=lambda name: known[name]), max(known, key=lambda name: known[name])
    levels = _levels(words[worse], words[better]) if gap == "less" and not base.within_noise else ""
    sizes = f"{_short(base.gap)} to {_short(one.gap)}"
    return f"{start}, gap {sizes} ({_word_of_gap(gap, one, base)}); {told}{levels}{_measures(one, base)}."


def _measures(one: Contender, base: Contender) -> str:
    """Return how the short-term and the long-term measure change, where the change is clear."""
    told, rows, of_base = "", one.rows(), base.rows()
    for section in ("short-term", "long-term"):
        row, before = rows[section], of_base[section]
        if row is not None and before is not None:
            found = verdict(difference_interval(row.estimate, before.estimate), same=0.0)
            if found in ("more", "less"):
                sizes = f"{_short(before.estimate)} to {_short(row.estimate)}"
                told += f"; {section} {row.name} {sizes} ({OF_GAPS[found]})"
    return told


def _word_of_gap(gap: Verdict, one: Contender, base: Contender) -> str:
    if not base.within_noise:
        return OF_GAPS[gap]
    return "no gap above noise" if one.within_noise else f"{OF_GAPS[gap]}; {base.name} has no gap above noise"


def _levels(worse: Verdict, better: Verdict) -> str:
    """Return whether a method that makes the gap smaller levels up or down."""
    return ": it levels up" if worse == "more" else ": it levels down" if better == "less" else ""


def _highest(base: Contender) -> float:
    """Return the highest absolute rate of a group, the scale of what is about the same."""
    return max((abs(rate.value) for rate in base.rates.values() if not np.isnan(rate.value)), default=0.0)


def identical(one: Contender, base: Contender) -> bool:
    """Return whether two methods have the same numbers with each seed that both have, and share one."""
    own, others = _by_seed(one), _by_seed(base)
    common = own.keys() & others.keys()
    return bool(common) and all(own[seed] == others[seed] for seed in common)


def _by_seed(one: Contender) -> dict[Any, list[dict[str, Any]]]:
    runs = [own for own in one.evaluations if "run" in own.about]
    return {own.about["run"].get("seed"): [row.as_dict() for row in own.rows] for own in runs}


# Sentences ------------------------------------------------------------------------------------------------------------


def told_changes(contenders: Sequence[Contender], base: Contender | None) -> Iterator[str]:
    """Yield how each method differs from a reference, and whether there are too few seeds to tell."""
    trained = [one for one in contenders if one.kind == "trained" and one is not base]
    if base is None or not trained:
        return
    for one in trained:
        if identical(one, base):
            yield f"{one.name} is identical to {base.name}: with the same seed, all numbers are the same."
        else:
            yield change(one, base)
    split = [one.name for one in (base, *trained) if one.disagree]
    if split:
        yield f"Trainings disagree on who is worse off, so that signed gaps cancel: {', '.join(split)}."
    few = [f"{one.name} ({one.seeds})" for one in (base, *trained) if one.kind == "trained" and one.few_seeds]
    if few:
        yield (
            f"These sentences are about single trainings of methods with fewer than {FEWEST_SEEDS} seeds: "
            f"{', '.join(few)}. Another training may give another result."
        )


def told_beaten(contenders: Sequence[Contender]) -> Iterator[str]:
    """Yield which scripted policies do as well as a method, which methods beat the best of them, and which are bounds.

    The best scripted policy is the one with the highest performance that uses no ground truth.
    """
    bounds = [one.name for one in contenders if one.uses_truth]
    scripted = [one for one in contenders if one.kind == "scripted" and not one.uses_truth]
    trained = [one for one in contenders if one.kind == "trained"]
    best = max(scripted, key=performance_of, default=None)
    if best is not None and trained:
        noise = " within noise" if best.within_noise else ""
        what = f"the best scripted policy, {best.name} ({_short(best.performance)} with a gap of "
        what += f"{_short(best.gap)}{noise})"
        simple = {one.name: [rule.name for rule in scripted if as_good(rule, one)] for one in trained}
        if any(simple.values()):
            told = "; ".join(f"{name} ({', '.join(rules)})" for name, rules in simple.items() if rules)
            yield f"A scripted policy is as good in performance and gap, within the uncertainty, as: {told}."
        found = [line for one in trained if (line := _beats(one, best, what))]
        yield from found or [f"No method beats {what}, in performance or gap by more than the uncertainty."]
    if bounds:
        yield told_bounds(bounds)


def told_bounds(names: Sequence[str]) -> str:
    """Return which policies are bounds, and why."""
    return f"Bounds, which use the ground truth that methods do not observe: {', '.join(names)}."


def as_good(one: Contender, other: Contender) -> bool:
    """Return whether neither the performance nor the gap of a policy is worse than another's, beyond uncertainty."""
    performance, gap = changes(one, other)
    return performance != "less" and (gap != "more" or one.within_noise)


def _beats(one: Contender, best: Contender, what: str) -> str:
    """Return in what a method beats a scripted policy, or that it trades performance for a gap; empty if neither."""
    performance, gap = changes(one, best)
    more, fairer = performance == "more", gap == "less" and not best.within_noise
    if more and fairer:
        return f"{one.name} beats {what}, in performance and gap."
    if more:
        return f"{one.name} beats {what}, in performance; gap: {_word_of_gap(gap, one, best)}."
    if fairer and performance == "less":
        return f"{one.name} has a smaller gap than {what}, at a lower performance."
    return f"{one.name} beats {what}, in gap; performance: {OF_PERFORMANCE[performance]}." if fairer else ""


def performance_of(one: Contender) -> float:
    """Return the performance for an order, in which an undefined one is last."""
    return float(np.nan_to_num(one.performance.value, nan=-np.inf))


def _short(estimate: Estimate) -> str:
    return f"{estimate.value:.4g}"


def _signed(move: Estimate) -> str:
    interval = "" if np.isnan(move.low) else f" [{move.low:.3g}, {move.high:.3g}]"
    return f"{move.value:+.3g}{interval}"
