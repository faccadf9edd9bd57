"""A paper's claims, and their verdicts from estimates with intervals."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fair_envs.experiments.tables import markdown, show
from fair_envs.metrics import Estimate, share_interval
from fair_envs.metrics.inference import (
    all_show,
    all_within,
    fisher,
    fisher_units_needed,
    holm,
    shown,
    shown_outside,
    units_needed,
)
from fair_envs.support.aliases import Flags

Estimates = Mapping[Any, Estimate]
Bounds = tuple[float, ...] | Mapping[str, tuple[float, ...]]
ByRow = Mapping[str, Mapping[str, Estimate]]
"""Numbers by row of a figure and method."""
Pairs = Mapping[str, tuple[Flags, Flags]]
"""Whether something is true for each seed of two methods, by the name of the pair."""

LEVEL = 0.05
HARDLY = 0.1  # if it is true for at most this share of the seeds of both methods, they are not compared


@dataclass(frozen=True)
class Outcome:
    """Whether something was shown.

    Attributes:
        holds: True or False if one of them was shown; None if neither was.
        needed: About how many seeds would decide with a probability of 0.8, if the observed effects were exact; None if
            it is decided, or if it is more than `fair_envs.metrics.inference.MOST_SEEDS`.
        why: Why it is undecided, if the number of seeds that would decide says nothing about it; "": there is no such
            reason.
        run: Whether anything was run for it.
        partial: Whether the points that were not run could change it: a claim about all points that is not refuted by
            those that were run, or one about some point that none of them supports.
    """

    holds: bool | None
    needed: int | None = None
    why: str = ""
    run: bool = True
    partial: bool = False

    @property
    def word(self) -> str:
        """The verdict without the number of seeds."""
        if not self.run:
            return "not run"
        if self.holds is None:
            return "undecided"
        if self.partial:
            return "not refuted where it was run" if self.holds else "does not hold where it was run"
        return "holds" if self.holds else "does not hold"

    @property
    def detail(self) -> str:
        """Why it is undecided, or the number of seeds that would decide, in words; "" if it is decided, or unknown."""
        if not self.needed:
            return self.why
        return f"about {self.needed} seeds" if self.needed <= MANY else f"more than {MANY} seeds"

    def __str__(self) -> str:
        """Return the verdict in words."""
        return self.word + (f" ({self.detail})" if self.detail else "")


FEW = 6  # rows of a panel that are all in the table
MANY = 100  # a larger number of seeds is not named
NOT_RUN = Outcome(None, run=False)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The numbers that a claim is tested with, as they are drawn.

    Attributes:
        label: What they are, with their unit.
        bounds: The bounds that their intervals must exclude, or those of each panel.
        numbers: The numbers by method, panel of the figure, and row.
        digits: Number of decimal places in words.
        one_unit: Whether the panels have the same unit, so that they are drawn on one axis.
    """

    label: str
    bounds: Bounds
    numbers: Mapping[str, Mapping[str, Estimates]]
    digits: int = 3
    one_unit: bool = True

    @property
    def against(self) -> str:
        """The bounds in words."""
        if not isinstance(self.bounds, Mapping):
            return " and ".join(f"{bound:g}" for bound in self.bounds)
        return ", ".join(
            f"{' and '.join(f'{bound:g}' for bound in bounds)} ({panel})" for panel, bounds in self.bounds.items()
        )

    def outcomes(self, test: Callable[[Estimates], Outcome]) -> dict[str, dict[str, Outcome]]:
        """Return the outcomes of a test by method and panel, where there are numbers."""
        return {
            method: {panel: test(rows) for panel, rows in panels.items() if rows}
            for method, panels in self.numbers.items()
        }

    def panels(self) -> dict[str, ByRow]:
        """Return the numbers by panel, row and method, as a figure draws them; only panels with defined numbers."""
        found = {panel: by_row(methods) for panel, methods in turned(self.numbers).items()}
        return {
            panel: rows
            for panel, rows in found.items()
            if any(not math.isnan(e.value) for of in rows.values() for e in of.values())
        }

    def table(self) -> str:
        """Return a table with the numbers of each method and panel; of many, only the lowest and the highest."""
        return markdown(
            ["method", "", "", "number"],
            [
                [method, panel, row, show(e, digits=self.digits)]
                for method, panels in self.numbers.items()
                for panel, rows in panels.items()
                for row, e in _few(rows).items()
            ],
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        plain = {
            method: {panel: {row: e.as_dict() for row, e in rows.items()} for panel, rows in panels.items()}
            for method, panels in self.numbers.items()
        }
        return {"label": self.label, "bounds": self.bounds, "numbers": plain}


def _few(rows: Estimates) -> dict[str, Estimate]:
    """Return all numbers by row, or, of more than `FEW`, only the lowest and the highest."""
    if len(rows) <= FEW:
        return dict(rows)
    defined = {row: e for row, e in rows.items() if not np.isnan(e.value)}
    ordered = sorted((defined or rows).items(), key=lambda item: item[1].value)
    return {f"{end}: {row}": e for end, (row, e) in (("lowest", ordered[0]), ("highest", ordered[-1]))}


def turned(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return values by two names with the second name first."""
    seconds = dict.fromkeys(second for each in found.values() for second in each)
    return {second: {first: each[second] for first, each in found.items() if second in each} for second in seconds}


def by_row(found: Mapping[str, Estimates]) -> ByRow:
    """Return numbers by method and row as numbers by row and method, in the order of the method with most rows."""
    ordered = sorted(found.items(), key=lambda item: len(item[1]), reverse=True)
    rows = turned(dict(ordered))
    return {row: {method: of[method] for method in found if method in of} for row, of in rows.items()}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper, with the verdicts of our runs.

    Attributes:
        text: The claim.
        outcomes: The outcomes of its tests, by method (``"as printed"``, ``"repaired"``) and then by test.
        evidence: The numbers behind them in words.
        refuted: What would refute it.
        conjunction: Whether it holds only if all of its tests do; otherwise each test has a verdict of its own.
        earlier: The verdict in the previous version of the page; "" if there was none.
        reason: Why the verdict changed, or why there was none.
        measured: The numbers behind it for a figure; None: it has none.
        remarks: What must be known to read the verdict on a method, by method.
    """

    text: str
    outcomes: Mapping[str, Mapping[str, Outcome]]
    refuted: str
    conjunction: bool = False
    evidence: str = ""
    earlier: str = ""
    reason: str = ""
    measured: Measured | None = None
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def was_run(self) -> bool:
        """Whether anything was run for it."""
        return any(outcome.run for outcomes in self.outcomes.values() for outcome in outcomes.values())

    @classmethod
    def tested(cls, measured: Measured, test: Callable[[Estimates], Outcome], **fields: Any) -> "Claim":
        """Return a claim whose test is made for each method and panel of its numbers."""
        return cls(outcomes=measured.outcomes(test), measured=measured, **fields)

    def verdict(self, method: str) -> str:
        """Return the verdict on a method in words, with its remark."""
        outcomes = self.outcomes.get(method, {})
        words = verdict(outcomes)
        if self.conjunction and len({outcome.word for outcome in outcomes.values()}) > 1:
            whole = both(outcomes.values()).word
            words = f"{whole[0].upper()}{whole[1:]}. Its parts: {words[0].lower()}{words[1:]}"
        return ". ".join(filter(None, [words, self.remarks.get(method, "")]))

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        verdicts = {method: self.verdict(method) for method in self.outcomes}
        measured = None if self.measured is None else self.measured.as_dict()
        return {**vars(self), "outcomes": verdicts, "measured": measured}


def verdict(outcomes: Mapping[str, Outcome]) -> str:
    """Return the outcomes of several tests in words, equal ones together."""
    together: dict[str, dict[str, Outcome]] = {}
    for test, outcome in outcomes.items():
        together.setdefault(outcome.word, {})[test] = outcome
    parts = []
    for word, tests in together.items():
        named = tests if len(together) > 1 or any(one.detail for one in tests.values()) else {}
        details = [": ".join(filter(None, (test, outcome.detail))) for test, outcome in named.items()]
        parts.append(word + (f" ({'; '.join(filter(None, details))})" if any(details) else ""))
    words = "; ".join(parts) or "not run"
    return words[0].upper() + words[1:]


def everywhere_above(estimates: Estimates, bound: float) -> Outcome:
    """Return whether all numbers are above a bound; one that is below it, with Holm's correction, refutes that."""
    if not estimates:
        return NOT_RUN
    if all_show(estimates, bound, "greater"):
        return Outcome(True)
    if shown(estimates, bound, "less"):
        return Outcome(False)
    return Outcome(None, _needed(estimates, [e.value > bound for e in estimates.values()], [bound], every=True))


def everywhere_below(estimates: Estimates, bound: float) -> Outcome:
    """Return whether all numbers are below a bound; one that is above it, with Holm's correction, refutes that."""
    return everywhere_above({name: -e for name, e in estimates.items()}, -bound)


def somewhere_above(estimates: Estimates, bound: float) -> Outcome:
    """Return whether some number is above a bound, with Holm's correction; all of them below it refute that."""
    if not estimates:
        return NOT_RUN
    if shown(estimates, bound, "greater"):
        return Outcome(True)
    if all_show(estimates, bound, "less"):
        return Outcome(False)
    return Outcome(None, _needed(estimates, [e.value > bound for e in estimates.values()], [bound], every=False))


def everywhere_within(estimates: Estimates, margin: float) -> Outcome:
    """Return whether all numbers are within a margin of 0; one outside, with Holm's correction, refutes that."""
    if not estimates:
        return NOT_RUN
    if all_within(estimates, margin):
        return Outcome(True)
    if shown_outside(estimates, margin):
        return Outcome(False)
    inside = [abs(e.value) < margin for e in estimates.values()]
    return Outcome(None, _needed(estimates, inside, [-margin, margin], every=True))


def both(outcomes: Iterable[Outcome]) -> Outcome:
    """Return whether all parts of a conjunction hold; one that does not refutes it, and one not run leaves it open."""
    found = list(outcomes)
    ran = [one for one in found if one.run]
    if not ran:
        return NOT_RUN
    if any(one.holds is False for one in ran):
        return Outcome(False)
    if all(one.holds for one in ran):
        return Outcome(True, partial=len(ran) < len(found) or any(one.partial for one in ran))
    undecided = [one for one in ran if one.holds is None]
    needed = [one.needed for one in undecided if one.needed]
    return Outcome(
        None,
        max(needed) if len(needed) == len(undecided) else None,
        why=next((one.why for one in undecided if one.why), ""),
    )


def on_a_part(outcome: Outcome, *, every: bool) -> Outcome:
    """Return the outcome of a claim about all points (``every``), or about some point, if some were not run."""
    return replace(outcome, partial=outcome.holds is every)


class Shares(NamedTuple):
    """The corrected p-value that two shares of seeds are equal (Fisher's exact test), and both with exact intervals."""

    p_value: float
    first: Estimate
    second: Estimate

    @property
    def most(self) -> float:
        """The largest difference of the shares that the intervals allow."""
        return self.first.high - self.second.low


def compared_shares(pairs: Pairs) -> dict[str, Shares]:
    """Return the tests of each pair, with Holm's correction, and with Bonferroni's of the intervals."""
    p_values = holm([fisher(*pair) for pair in pairs.values()])
    level = 1 - LEVEL / max(1, len(pairs))
    return {
        name: Shares(float(p), *(share_interval(flags, level=level, method="exact") for flags in pair))
        for (name, pair), p in zip(pairs.items(), p_values, strict=True)
    }


def more_seeds(pairs: Pairs, *, why_not: str, margin: float = 0.0) -> dict[str, Outcome]:
    """Return whether something is true for more seeds of the first than of the second method of each pair.

    Refuted if it is true for fewer, or if the difference of the shares is shown to be below a margin, unless it is true
    for hardly any seed of both methods (`HARDLY`).

    Args:
        pairs: Whether it is true, for each seed of two methods, by the name of the pair.
        why_not: The reason that is given for such a pair, such as ``"hardly any seed captures"``.
        margin: The margin, in [0, 1].
    """
    found = {}
    for name, shares in compared_shares(pairs).items():
        p, first, second = shares
        if p <= LEVEL:
            found[name] = Outcome(first.value > second.value)
        elif max(first.value, second.value) <= HARDLY:
            found[name] = Outcome(None, why=why_not)
        elif shares.most < margin:
            found[name] = Outcome(False)
        else:
            least = min(first.n, second.n)
            found[name] = Outcome(None, fisher_units_needed(first.value, second.value, above=least, tests=len(pairs)))
    return found


def comparisons(methods: Mapping[str, Pairs], *, margin: float = 0.0) -> str:
    """Return the p-values of `more_seeds` in words, by method, with a margin also the bounds; "" without pairs."""
    told = []
    for method, pairs in methods.items():
        of_pairs = [
            f"{name} p {show_p(found.p_value)}{f', at most {found.most:.2f}' if margin else ''}"
            for name, found in compared_shares(pairs).items()
        ]
        if of_pairs:
            named = f"{method}: " if len(methods) > 1 else ""
            told.append(named + "; ".join(of_pairs) + (" (with Holm's correction)" if len(of_pairs) > 1 else ""))
    bounds = ", and upper bounds of the differences of the shares" if margin else ""
    return f"Fisher's p-values{bounds}: {'. '.join(told)}." if told else ""


def show_p(p_value: float) -> str:
    """Return a p-value with its sign of equality."""
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def _needed(estimates: Estimates, supports: list[bool], bounds: list[float], *, every: bool) -> int | None:
    """Return about how many seeds would decide.

    Args:
        estimates: The numbers.
        supports: Whether each number supports the claim.
        bounds: The bounds that intervals must exclude.
        every: Whether all numbers must support the claim; otherwise one is enough.
    """

    def seeds(supporting: bool) -> list[float]:
        """Return how many seeds the numbers on one side need; a single one that decides is corrected for all."""
        tests = 1 if supporting == every else len(estimates)
        chosen = [e for e, support in zip(estimates.values(), supports, strict=True) if support == supporting]
        return [max(units_needed(e, bound, tests=tests) or math.inf for bound in bounds) for e in chosen]

    for_it, against = seeds(True), seeds(False)
    if every:
        found = min(against) if against else max(for_it, default=math.inf)
    else:
        found = min(for_it) if for_it else max(against, default=math.inf)
    return None if math.isinf(found) else int(found)
