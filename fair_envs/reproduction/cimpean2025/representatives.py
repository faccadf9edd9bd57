"""Selection and colours of the policies in a figure, by the rules of Cimpean et al. (2025)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Floats, Ints

Kind = Literal["performance", "group", "individual"]

KIND_COLOURS: dict[Kind, tuple[int, int, int]] = {
    "performance": (228, 26, 28),
    "group": (77, 175, 74),
    "individual": (55, 126, 184),
}
"""The colour of a policy that is best in only one kind of objective."""

SPREAD_WEIGHT = 0.25  # weight of the spread over objectives in the score of a policy


def representative_subset(values: ArrayLike, *, size: int = 10) -> Ints:
    """Return the ascending indices of policies that represent the range of all; all of them if at most ``size``.

    First, the best policy in each objective is selected; of tied policies, the one that is best in the most objectives.
    Then the policy that differs most from the selected ones is added repeatedly. Its score is the sum of the
    differences to the selected policies, averaged over the objectives, minus a quarter of their standard deviation.
    (The published code excludes tied best policies; its paper mentions random sampling, which the code does not do.)

    Args:
        values: Shape (policies, objectives); larger is better.
        size: Largest number of policies, unless more are best in some objective.

    Raises:
        ValueError: ``values`` is not a table of finite numbers.
    """
    table = np.asarray(values, float)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(f"values must be a table of finite numbers, got shape {table.shape} or undefined ones")
    if len(table) <= size:
        return np.arange(len(table))
    best = table == table.max(axis=0)
    kept = sorted({int(np.argmax(best[:, k] * best.sum(axis=1))) for k in range(table.shape[1])})
    while len(kept) < size:
        added = np.abs(table[:, np.newaxis] - table[kept]).sum(axis=1)
        score = added.mean(axis=1) - SPREAD_WEIGHT * added.std(axis=1)
        score[kept] = -np.inf
        kept.append(int(np.argmax(score)))
    return np.array(sorted(kept))


def mixed_colours(values: ArrayLike, kinds: Sequence[Kind]) -> Floats:
    """Return a colour for each policy, shape (policies, 3), entries in 0 .. 1.

    The colours of the kinds are mixed by how good the policy is in the objectives of each kind, on a scale from the
    worst (0) to the best (1) of these policies.

    Args:
        values: Shape (policies, objectives); larger is better.
        kinds: The kind of each objective.

    Raises:
        ValueError: There is not exactly one kind for each objective.
    """
    table = np.asarray(values, float)
    if table.ndim != 2 or len(kinds) != table.shape[1]:
        raise ValueError(f"kinds must be one for each objective, got {len(kinds)} for shape {table.shape}")
    span = table.max(axis=0) - table.min(axis=0)
    scaled = np.where(span > 0, (table - table.min(axis=0)) / np.where(span > 0, span, 1), 1.0)
    present = [kind for kind in KIND_COLOURS if kind in kinds]
    weight = np.stack([scaled[:, [own == kind for own in kinds]].mean(axis=1) for kind in present], axis=1)
    total = weight.sum(axis=1, keepdims=True)
    weight = np.where(total > 0, weight / np.where(total > 0, total, 1), 1 / len(present))
    colours: Floats = weight @ np.array([KIND_COLOURS[kind] for kind in present]) / 255
    return colours
