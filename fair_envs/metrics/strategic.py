"""Costs that people pay for a favourable decision when they respond to a published threshold.

These are functions of arrays with one entry for each person and decision, of any shape. An environment's oracle returns
who is qualified, and the scores and costs of the people in the next decision; the decision is the threshold. Groups
without people have NaN. Social burden shows what qualified people pay to be recognised, and which group pays more. It
does not cover qualified people who are rejected because they cannot pay; for them see the true positive rate.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import PositiveInt, checked


def burden(score: ArrayLike, threshold: ArrayLike, cost: ArrayLike) -> Floats:
    """Return the least that each person must pay to reach the threshold, whether or not they do; 0 if they reach it.

    Args:
        score: Score before any response.
        threshold: Threshold that applies to the person.
        cost: Cost of raising the score by 1.
    """
    return np.asarray(np.asarray(cost) * np.maximum(0.0, np.subtract(threshold, score)), np.float64)


def social_burden(
    burden: ArrayLike,
    qualified: ArrayLike,
    group: ArrayLike,
    *,
    groups: int,
    among: Literal["qualified", "everybody"] = "qualified",
) -> Floats:
    """Return the mean burden of each group's qualified people, shape (groups,); 0 if they do not need to pay.

    The difference between two groups is their social gap (Milli et al., 2019).

    Args:
        burden: What each person must pay.
        qualified: Whether they are qualified, bool or 0 and 1.
        group: Each person's group, 0 to ``groups - 1``.
        groups: Number of groups.
        among: The people whose number divides the sum. ``"everybody"`` is what the code of ml-fairness-gym does: a
            group with fewer qualified people then appears to have a smaller burden.

    Raises:
        ValueError: ``among`` is unknown, a group is invalid, or shapes differ.

    Example:
        >>> print(social_burden([0.2, 0.4, 0.9], [1, 1, 0], [0, 1, 1], groups=2))
        [0.2 0.4]
    """
    if among not in ("qualified", "everybody"):
        raise ValueError(f"among must be 'qualified' or 'everybody', got {among!r}")
    counted = np.asarray(qualified, np.float64)
    weight = counted if among == "qualified" else np.ones_like(counted)
    return _mean_by_group(np.multiply(burden, counted), weight, group, groups)


def stratified_accuracy(action: ArrayLike, correct: ArrayLike, group: ArrayLike, *, groups: int) -> Floats:
    """Return the share of correct decisions about each group, shape (groups,).

    Args:
        action: The decisions.
        correct: The labels (correct decisions), known for everyone.
        group: The groups, 0 to ``groups - 1``.
        groups: Number of groups.

    Raises:
        ValueError: A group is invalid, or shapes differ.

    Example:
        >>> print(stratified_accuracy([1, 0, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1], groups=3))
        [0.66666667 0.                nan]
    """
    right = np.equal(action, correct).astype(np.float64)
    return _mean_by_group(right, np.ones_like(right), group, groups)


def _mean_by_group(values: ArrayLike, weight: ArrayLike, group: ArrayLike, groups: int) -> Floats:
    """Return each group's sum of values divided by its sum of weights, shape (groups,)."""
    own, count = np.ravel(group), int(checked("groups", groups, PositiveInt))
    for name, part in (("values", values), ("weights", weight)):
        if np.size(part) != own.size:
            raise ValueError(f"group must have one entry for each of the {np.size(part)} {name}, got {own.size}")
    odd = own[~((own >= 0) & (own < count))]
    if odd.size:
        raise ValueError(f"group must be between 0 and {count - 1}, got {odd[0]}")
    sums, weights = (np.bincount(own, weights=np.ravel(part), minlength=count) for part in (values, weight))
    return np.asarray(np.divide(sums, weights, out=np.full(count, np.nan), where=weights > 0))


__all__ = ["burden", "social_burden", "stratified_accuracy"]
