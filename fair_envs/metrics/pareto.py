"""Measures of sets of points with several objectives, all of which are maximised.

Dominance, ranks, hypervolume and inverted generational distance come from moocore (``pip install
'fair-envs[baselines]'``). Points are rows, shape (points, objectives). NaN is rejected: a point with an undefined
objective is neither better nor worse than another.
"""

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.extras import need
from fair_envs.support.parameters import UnitInterval, checked

LATTICE = 100  # largest number of weights by default


# Dominance ------------------------------------------------------------------------------------------------------------


def non_dominated(points: ArrayLike, *, keep_duplicates: bool = False, lorenz_lambda: float = 1.0) -> Flags:
    """Return which points are not dominated by another point, shape (points,).

    A point dominates another if it is at least as good in all objectives and better in one. With a ``lorenz_lambda``
    below 1, their `lorenz_vectors` are compared instead; points whose entries are equal up to their order then do not
    dominate each other.

    Args:
        points: Shape (points, objectives).
        keep_duplicates: Whether to keep all equal points, or only the first one.
        lorenz_lambda: 1: Pareto dominance; 0: Lorenz dominance; see `lorenz_vectors`.

    Example:
        >>> print(non_dominated([(1, 1), (1, 1), (2, 0), (0, 0), (0, 2)]))
        [ True False  True False  True]
        >>> print(non_dominated([(1, 1), (1, 1), (2, 0), (0, 0), (0, 2)], lorenz_lambda=0))
        [ True False False False False]
    """
    rows = as_points(points)
    if not len(rows):
        return np.zeros(0, bool)
    vectors = lorenz_vectors(rows, lorenz_lambda=lorenz_lambda)
    keep_weakly = keep_duplicates or lorenz_lambda < 1  # other points can have equal vectors
    found: Flags = library().is_nondominated(vectors, maximise=True, keep_weakly=keep_weakly)
    if keep_weakly and not keep_duplicates:
        first = np.zeros(len(rows), bool)
        first[np.unique(rows, axis=0, return_index=True)[1]] = True
        found = found & first
    return found


def lorenz_vectors(points: ArrayLike, *, lorenz_lambda: float = 0.0) -> Floats:
    r"""Return the vectors whose Pareto dominance is the lambda-Lorenz dominance of the points, of the same shape.

    $$\lambda\, \sigma(v) + (1 - \lambda)\, L(v), \quad L_k(v) = \sum_{j \le k} \sigma_j(v)$$ with the entries
    $\sigma(v)$ of a point in ascending order (Michailidis et al. 2026). 0 is Lorenz dominance: of two points with equal
    sums, the one whose entries are more equal is better. The larger lambda, the fewer points are dominated. At 1, the
    points are returned as they are, which is Pareto dominance; the published formula sorts them also at 1, which
    lambdas close to 1 do here.

    Args:
        points: Shape (points, objectives). The objectives must be comparable, for example returns of groups in one
            unit: a Lorenz vector adds them.
        lorenz_lambda: Between 0 and 1.

    Example:
        >>> lorenz_vectors([(3, 1, 2)]).tolist()
        [[1.0, 3.0, 6.0]]
        >>> lorenz_vectors([(3, 1, 2)], lorenz_lambda=0.5).tolist()
        [[1.0, 2.5, 4.5]]

    References:
        Michailidis et al., "Scalable multi-objective reinforcement learning with fairness guarantees using Lorenz
        dominance", JAIR 2026.
    """
    rows, share = as_points(points), checked("lorenz_lambda", lorenz_lambda, UnitInterval)
    if share == 1:
        return rows
    ascending = np.sort(rows, axis=1)
    return np.ascontiguousarray(share * ascending + (1 - share) * np.cumsum(ascending, axis=1))


def front(points: ArrayLike) -> Floats:
    """Return the non-dominated points, each once, sorted by the first objective."""
    rows = as_points(points)
    best = rows[non_dominated(rows)]
    return best[np.lexsort(best.T[::-1])]


def ranks(points: ArrayLike, *, lorenz_lambda: float = 1.0) -> Ints:
    """Return each point's rank: 0 is non-dominated, 1 is non-dominated after removing rank 0, and so on.

    Args:
        points: Shape (points, objectives).
        lorenz_lambda: 1: Pareto dominance; 0: Lorenz dominance; see `lorenz_vectors`.
    """
    rows = lorenz_vectors(points, lorenz_lambda=lorenz_lambda)
    if not len(rows):
        return np.zeros(0, np.int64)
    return np.asarray(library().pareto_rank(rows, maximise=True), np.int64)


def crowding_distance(points: ArrayLike, *, within_ranks: bool = False, rank: Ints | None = None) -> Floats:
    """Return how far apart each point's neighbours are, averaged over the objectives, shape (points,).

    In each objective the values are scaled to [0, 1] and sorted. A point's distance is the difference between the next
    and the previous value, and 1 for the first and the last point. A point between two equal points has 0, the smallest
    value; 1 is the largest. Equal values keep the order of the points.

    Args:
        points: Shape (points, objectives).
        within_ranks: Whether only points of the same rank (`ranks`) are neighbours; the only point of a rank gets 1.
        rank: The points' ranks, shape (points,); None: `ranks`.

    Example:
        >>> print(crowding_distance([(0, 10), (2, 8), (3, 3), (9, 1), (10, 0)]))
        [1.  0.5 0.7 0.5 1. ]

    Raises:
        ValueError: A point is infinite, and so infinitely far from any neighbour.
    """
    rows = as_points(points)
    if not np.isfinite(rows).all():
        odd = rows[~np.isfinite(rows).all(axis=1)][0]
        raise ValueError(f"points must be finite for the crowding distance, got {odd.tolist()}")
    if not within_ranks:
        return _crowding(rows)
    rank, distance = ranks(rows) if rank is None else rank, np.empty(len(rows))
    for level in np.unique(rank):
        distance[rank == level] = _crowding(rows[rank == level])
    return distance


def _crowding(rows: Floats) -> Floats:
    if len(rows) < 3:
        return np.ones(len(rows))
    span = np.ptp(rows, axis=0)
    scaled = (rows - rows.min(axis=0)) / np.where(span > 0, span, 1)
    order = np.argsort(scaled, axis=0, kind="stable")
    ascending = np.take_along_axis(scaled, order, axis=0)
    gaps = np.ones_like(ascending)
    gaps[1:-1] = ascending[2:] - ascending[:-2]
    distance = np.empty_like(gaps)
    np.put_along_axis(distance, order, gaps, axis=0)
    mean: Floats = distance.mean(axis=1)
    return mean


# Measures of a set ----------------------------------------------------------------------------------------------------


def hypervolume(points: ArrayLike, *, reference: ArrayLike) -> float:
    """Return the volume of the region between the reference and the points; larger is better.

    Args:
        points: Shape (points, objectives); points that are not better than the reference in all objectives do not
            contribute.
        reference: Shape (objectives,). Volumes for different references cannot be compared.

    Example:
        >>> hypervolume([(1, 3), (2, 2), (3, 1)], reference=(0, 0))
        6.0
    """
    rows = as_points(points)
    corner = _vector(reference, "reference", width=rows.shape[1])
    if not len(rows):
        return 0.0
    return float(library().hypervolume(rows, ref=corner, maximise=True))


def sparsity(points: ArrayLike) -> float:
    """Return the squared gaps between neighbours, summed over objectives, by the number of gaps; smaller is denser.

    Only the non-dominated points count; NaN with fewer than two. A set that misses half of a front may be denser than
    the whole front, so report it together with the hypervolume.

    Example:
        >>> sparsity([(1, 3), (2, 2), (3, 1)])
        2.0
    """
    best = front(points)
    if len(best) < 2:
        return float("nan")
    return float((np.diff(np.sort(best, axis=0), axis=0) ** 2).sum() / (len(best) - 1))


def expected_utility(points: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the utility of the best point for a linear utility, averaged over utilities; NaN without points.

    Args:
        points: Shape (points, objectives), in units that can be added.
        weights: Shape (utilities, objectives); None: equally spaced, see `equally_spaced_weights`.

    Example:
        >>> round(expected_utility([(1, 3), (2, 2), (3, 1)], weights=[(0, 1), (0.5, 0.5), (1, 0)]), 6)
        2.666667
    """
    rows = as_points(points)
    given = equally_spaced_weights(rows.shape[1]) if weights is None else as_points(weights, "weights")
    if given.shape[1] != rows.shape[1]:
        raise ValueError(f"weights must have {rows.shape[1]} columns, got {given.shape[1]}")
    return float((rows @ given.T).max(axis=0).mean()) if len(rows) else float("nan")


def equally_spaced_weights(objectives: int, *, divisions: int | None = None) -> Floats:
    """Return all weights that are multiples of 1 / divisions and sum to 1, shape (weights, objectives).

    Args:
        objectives: Number of objectives, at least 1.
        divisions: At least 1; None: the most that give at most 100 weights.

    Example:
        >>> equally_spaced_weights(2, divisions=2).tolist()
        [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    """
    for name, number in (("objectives", objectives), ("divisions", divisions)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ValueError(f"{name} must be an integer at least 1, got {number!r}")
    if divisions is None:
        fits = (d for d in range(LATTICE, 1, -1) if comb(d + objectives - 1, objectives - 1) <= LATTICE)
        divisions = next(fits, 1)
    return np.array(list(_parts(divisions, objectives)), np.float64) / divisions


def _parts(whole: int, count: int) -> Any:
    """Yield the ways to write a whole number as a sum of `count` parts, in order."""
    if count == 1:
        yield (whole,)
        return
    for first in range(whole + 1):
        for rest in _parts(whole - first, count - 1):
            yield (first, *rest)


def igd(points: ArrayLike, *, known: ArrayLike) -> float:
    """Return the mean distance from the points of a known front to the nearest point; 0: the whole front is found.

    Inverted generational distance; NaN without points.

    Example:
        >>> round(igd([(2, 2)], known=[(1, 3), (2, 2), (3, 1)]), 6)
        0.942809
    """
    rows, target = _pair(points, known, "known")
    return float(library().igd(rows, ref=target, maximise=True)) if len(rows) else float("nan")


def cardinality(points: ArrayLike) -> int:
    """Return the number of different non-dominated points."""
    return int(non_dominated(points).sum())


class Epsilon(NamedTuple):
    """Distance of a set from the desired points; 0: all of them are reached."""

    worst: float
    mean: float


def epsilon(points: ArrayLike, *, desired: ArrayLike) -> Epsilon:
    r"""Return by how much the desired points are missed: the largest miss and the mean.

    $$\epsilon_j = \min_i \max_o |d_{jo} - p_{io}|$$ with both sets scaled such that each objective of the desired
    points spans [0, 1]; an objective in which all desired points are equal keeps its unit. NaN without points. FAReL
    and the authors of PCN use this measure; the additive epsilon indicator in the literature only counts shortfalls.

    Example:
        >>> worst, mean = epsilon([(0, 9), (9, 0)], desired=[(0, 10), (10, 0)])
        >>> round(worst, 6), round(mean, 6)
        (0.1, 0.1)
    """
    rows, target = _pair(points, desired, "desired")
    if not len(rows):
        return Epsilon(float("nan"), float("nan"))
    span = np.ptp(target, axis=0)
    apart = np.abs(target[:, np.newaxis] - rows) / np.where(span > 0, span, 1)
    missed = apart.max(axis=2).min(axis=1)
    return Epsilon(float(missed.max()), float(missed.mean()))


# Arguments ------------------------------------------------------------------------------------------------------------


def as_points(values: ArrayLike, name: str = "points") -> Floats:
    """Return points as an array.

    Raises:
        ValueError: The points do not have shape (points, objectives), or an entry is NaN.
    """
    rows = np.asarray(values, np.float64)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"{name} must have shape ({name}, objectives), got {rows.shape}")
    if np.isnan(rows).any():
        raise ValueError(
            f"{name} must be defined in all objectives, got NaN in row {np.isnan(rows).any(axis=1).argmax()}"
        )
    return np.ascontiguousarray(rows)


def _pair(points: ArrayLike, others: ArrayLike, name: str) -> tuple[Floats, Floats]:
    rows, target = as_points(points), as_points(others, name)
    if rows.shape[1] != target.shape[1] or not len(target):
        raise ValueError(f"{name} must have shape (1 or more, {rows.shape[1]}), got {target.shape}")
    return rows, target


def _vector(values: ArrayLike, name: str, *, width: int) -> Floats:
    row = np.asarray(values, np.float64)
    if row.shape != (width,):
        raise ValueError(f"{name} must have shape ({width},), got {row.shape}")
    if np.isnan(row).any():
        raise ValueError(f"{name} must be defined in all objectives, got {row.tolist()}")
    return row


def library() -> Any:
    """Return moocore.

    Raises:
        ImportError: moocore is not installed.
    """
    need("this", "moocore", extra="baselines")
    import moocore

    return moocore
