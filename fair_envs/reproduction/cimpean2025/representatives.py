"""Selection of policies that represent all, by the rules of Cimpean et al. (2025)."""

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Ints

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
