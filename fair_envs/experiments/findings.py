"""What a comparison finds: who gains and who loses, beyond what randomness explains."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fair_envs.experiments.contenders import COMPARED, FEWEST_SEEDS, Contender, difference
from fair_envs.metrics import Estimate

SAME = 0.02
"""A change is about the same if its interval lies within this share of the reference's highest group rate."""

Verdict = Literal["more", "less", "same", "unclear"]

OF_GROUPS: Mapping[Verdict, str] = {"more": "gains", "less": "loses", "same": "is about the same", "unclear": "unclear"}
OF_PERFORMANCE: Mapping[Verdict, str] = {
    "more": "higher",
    "less": "lower",
    "same": "about the same",
    "unclear": "unclear",
}
OF_GAPS: Mapping[Verdict, str] = {"more": "larger", "less": "smaller", "same": "about the same", "unclear": "unclear"}

Relation = Literal["better", "as good", "worse", "gains", "gives", "unclear"]

TOLD: Mapping[Relation, str] = {
    "better": "better than",
    "as good": "as good as",
    "worse": "worse than",
    "gains": "with a higher performance and a larger gap than",
    "gives": "with a lower performance and a smaller gap than",
    "unclear": "unclear against",
}
"""How one policy can relate to another in performance and gap, in words."""


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
    performance, gap = (verdict(move, same=same) for move, same in moves(one, base))
    return performance, gap


def moves(one: Contender, base: Contender) -> tuple[tuple[Estimate, float], tuple[Estimate, float]]:
    """Return by how much performance and absolute gap differ from those of a reference, each with what is the same."""
    performance, gap = difference(one, base, "performance"), difference(one, base, "gap", "largest")
    return (performance, SAME * abs(base.performance.value)), (gap, SAME * _highest(base))


def change(one: Contender, base: Contender) -> str:
    """Return who gains and who loses with one method instead of another, in one sentence.

    A group gains or loses if the interval of the change of its rate excludes 0; likewise for performance and gap.
    """
    before = base.rates
    performance, gap = changes(one, base)
    start = (
        f"{one.name} instead of {base.name}: performance {_short(base.performance)} to {_short(one.performance)} "
        f"({OF_PERFORMANCE[performance]})"
    )
    known = {name: rate.value for name, rate in before.items() if not np.isnan(rate.value)}
    if len(known) < 2:
        return f"{start}."
    of_groups = {name: difference(one, base, "rate", name) for name in before}
    words = {name: verdict(move, same=SAME * _highest(base)) for name, move in of_groups.items()}
    told = ", ".join(f"{name} {OF_GROUPS[words[name]]} ({_signed(move)})" for name, move in of_groups.items())
    worse, better = min(known, key=lambda name: known[name]), max(known, key=lambda name: known[name])
    little = of_groups[better].value >= -SAME * _highest(base)
    ends = words[worse], "same" if words[better] == "less" and little else words[better]
    levels = _levels(*ends) if gap == "less" and not base.within_noise else ""
    sizes = f"{_short(base.gap)} to {_short(one.gap)}"
    return f"{start}, gap {sizes} ({_word_of_gap(gap, one, base)}); {told}{levels}{_measures(one, base)}."


def _measures(one: Contender, base: Contender) -> str:
    """Return how the short-term and the long-term measure change, where the change is clear and more than noise."""
    told, rows, of_base = "", one.rows(), base.rows()
    for section in COMPARED:
        row, before = rows[section], of_base[section]
        if row is not None and before is not None:
            found = verdict(difference(one, base, section, row.of), same=0.0)
            floors = not np.isnan([row.limit, before.limit]).any()
            if found in ("more", "less") and (row.beyond_noise or before.beyond_noise or not floors):
                sizes = f"{_short(before.estimate)} to {_short(row.estimate)}"
                told += f"; {section} {row.name} {sizes} ({OF_GAPS[found]})"
    return told


def _word_of_gap(gap: Verdict, one: Contender, base: Contender) -> str:
    if not base.within_noise:
        return OF_GAPS[gap]
    return _no_gap(one) if one.within_noise else f"{OF_GAPS[gap]}; {base.name}: {_no_gap(base)}"


def _no_gap(one: Contender) -> str:
    """Return that the mean gap of a contender is not above noise, and in how many trainings it is."""
    some = (
        f", but in {one.beyond_noise} of {one.seeds} trainings of {one.name}, of which chance gives one in 20"
        if one.beyond_noise and one.seeds > 1
        else ""
    )
    return f"no gap above noise{some}"


def _levels(worse: Verdict, better: Verdict) -> str:
    """Return whether a method that makes the gap smaller levels up, levels down, or takes from one group for another.

    Args:
        worse: How the rate of the group changes that was worse off.
        better: How that of the better-off group changes; "same" also for a loss of at most `SAME`.
    """
    if worse == "more":
        return ": it takes from the better off" if better == "less" else ": it levels up"
    return ": it levels down" if better == "less" else ""


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


def compared_with(contenders: Sequence[Contender], base: Contender | None) -> list[Contender]:
    """Return what is compared with a reference: the methods, or without any, all other policies."""
    methods = [one for one in contenders if one.kind == "trained"]
    return [] if base is None else [one for one in methods or contenders if one is not base]


def told_changes(contenders: Sequence[Contender], base: Contender | None) -> Iterator[str]:
    """Yield how each method differs from a reference, and whether there are too few seeds to tell."""
    every = [one for one in contenders if one.kind == "trained"]
    for one in compared_with(contenders, base):
        if base is not None and identical(one, base):
            yield f"{one.name} is identical to {base.name}: with the same seed, all numbers are the same."
        elif base is not None:
            yield change(one, base)
    split = [one.name for one in every if one.disagree]
    if split:
        yield f"Trainings disagree on who is worse off, so that signed gaps cancel: {', '.join(split)}."
    single = [one.name for one in every if one.seeds == 1]
    if single:
        yield (
            f"Methods with one seed: {', '.join(single)}. Sentences about two of them, or about one and a rule, are "
            "about these trained networks and not about the methods: with another seed, the same method can differ as "
            "much. Train at least 5 seeds."
        )
    few = [f"{one.name} ({one.seeds})" for one in every if 1 < one.seeds < FEWEST_SEEDS]
    if few:
        yield (
            f"Methods with fewer than {FEWEST_SEEDS} seeds: {', '.join(few)}. Hardly any difference can be clear: "
            "train at least 5 seeds."
        )


def told_rules(contenders: Sequence[Contender]) -> Iterator[str]:
    """Yield how each scripted policy relates to the methods, which methods none matches, and which are bounds."""
    bounds = [one.name for one in contenders if one.uses_truth]
    scripted = [one for one in contenders if one.kind == "scripted" and not one.uses_truth]
    trained = [one for one in contenders if one.kind == "trained"]
    found = {rule.name: {one.name: relation(rule, one) for one in trained} for rule in scripted}
    if scripted and trained:
        matched = [one.name for one in trained if {own[one.name] for own in found.values()} & {"better", "as good"}]
        ahead = [one.name for one in trained if {own[one.name] for own in found.values()} == {"worse"}]
        rules = ", ".join(one.name for one in scripted)
        yield f"Methods that a scripted policy here ({rules}) matches or beats: {', '.join(matched) or 'none'}."
        yield f"Methods that are better than all of these rules: {', '.join(ahead) or 'none'}."
    for rule in scripted if trained else ():
        names: dict[Relation, list[str]] = {}
        for name, own in found[rule.name].items():
            names.setdefault(own, []).append(name)
        told = "; ".join(f"{TOLD[kind]} {', '.join(names[kind])}" for kind in TOLD if kind in names)
        numbers = f"performance {_short(rule.performance)}, gap {_short(rule.gap)}{' within noise' * rule.within_noise}"
        yield f"{rule.name} ({numbers}): {told}."
    if bounds:
        yield told_bounds(bounds)


def told_bounds(names: Sequence[str]) -> str:
    """Return which policies are bounds, and why."""
    return f"Bounds, which use the ground truth that methods do not observe: {', '.join(names)}."


def relation(one: Contender, other: Contender) -> Relation:
    """Return how a policy relates to another in performance and gap.

    It gains performance or gives it up for the gap if one of the two is clearly better and the other clearly worse. It
    is better if one is clearly better and the other is not worse, and as good if neither is worse. Not worse means that
    the interval of the difference excludes a loss of more than `SAME`, so that few episodes or seeds never make a
    policy as good as another. Two gaps within noise are the same.
    """
    (more, little), (moved, narrow) = moves(one, other)
    performance, gap = verdict(more, same=little), verdict(moved, same=narrow)
    not_worse, not_larger = more.low >= -little, moved.high <= narrow
    not_lower, not_smaller = more.high <= little, moved.low >= -narrow
    if one.within_noise and other.within_noise:
        gap, not_larger, not_smaller = "same", True, True
    trades: dict[tuple[Verdict, Verdict], Relation] = {("more", "more"): "gains", ("less", "less"): "gives"}
    if (performance, gap) in trades:
        return trades[performance, gap]
    if (performance == "more" and not_larger) or (gap == "less" and not_worse):
        return "better"
    if (performance == "less" and not_smaller) or (gap == "more" and not_lower):
        return "worse"
    return "as good" if not_worse and not_larger else "unclear"


def performance_of(one: Contender) -> float:
    """Return the performance for an order, in which an undefined one is last."""
    return float(np.nan_to_num(one.performance.value, nan=-np.inf))


def _short(estimate: Estimate) -> str:
    return f"{estimate.value:.4g}"


def _signed(move: Estimate) -> str:
    interval = "" if np.isnan(move.low) else f" [{move.low:.3g}, {move.high:.3g}]"
    return f"{move.value:+.3g}{interval}"
