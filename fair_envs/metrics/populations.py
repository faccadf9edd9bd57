"""How far apart groups are, from counts: functions of arrays with any leading axes, and the compiled rules behind them.

If a number that a result depends on is NaN, the result is NaN; infinite numbers are rejected.

Functions named after published code compute what the code of Hu, Lear and Zhang (2024) computes where it differs from
their text. They exist to reproduce the study's figures and should not be used to assess fairness.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core.compilation import kernel, rule
from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.parameters import NonNegative, checked

Undefined = Literal["nan", "zero"]

# How compiled code compares the counts of two groups
WASSERSTEIN, TOTAL_VARIATION, UNLABELLED, EUCLIDEAN = range(4)
# How it compares the totals of a group's members with an equal split
SHARE, VARIATION, RELATIVE = range(3)


# Rules ----------------------------------------------------------------------------------------------------------------


@rule
def counts_apart(kind: int, p: NDArray[Any], q: NDArray[Any], positions: Floats) -> float:
    """Return how far apart two groups are, from the counts of their members by level, shape (levels,).

    Args:
        kind: `WASSERSTEIN` or `TOTAL_VARIATION`, both of shares and NaN without members; `UNLABELLED` or `EUCLIDEAN`,
            both of raw counts.
        p: Counts of one group.
        q: Counts of the other.
        positions: Positions of the levels on their scale, ascending.
    """
    if kind == UNLABELLED:
        return unlabelled(p, q)
    if kind == EUCLIDEAN:
        return euclidean(p, q)
    members, others = p.sum(), q.sum()
    if not (members > 0 and others > 0):
        return np.nan
    apart, ahead = 0.0, 0.0
    for j in range(p.shape[0]):
        difference = p[j] / members - q[j] / others
        if kind == TOTAL_VARIATION:
            apart += 0.5 * abs(difference)
        elif j + 1 < p.shape[0]:
            ahead += difference  # of the cumulative shares
            apart += abs(ahead) * (positions[j + 1] - positions[j])
    return apart


@rule
def unlabelled(p: NDArray[Any], q: NDArray[Any]) -> float:
    """Return the optimal transport distance between the counts of two groups, where each count has the same weight."""
    one, other = p.copy(), q.copy()
    sort(one)
    sort(other)
    apart = 0.0
    for j in range(one.shape[0]):
        apart += abs(one[j] - other[j])
    return apart / one.shape[0]


@rule
def sort(numbers: NDArray[Any]) -> None:
    """Sort a few numbers in place."""
    for j in range(1, numbers.shape[0]):
        number, k = numbers[j], j
        while k > 0 and numbers[k - 1] > number:
            numbers[k] = numbers[k - 1]
            k -= 1
        numbers[k] = number


@rule
def euclidean(p: NDArray[Any], q: NDArray[Any]) -> float:
    """Return the Euclidean distance."""
    square = 0.0
    for j in range(p.shape[0]):
        square += (p[j] - q[j]) ** 2
    return np.sqrt(square)


@rule
def furthest(kind: int, counts: Ints, positions: Floats) -> float:
    """Return the largest distance between two groups, counts of shape (groups, levels); NaN if none is defined."""
    largest = np.nan
    for g in range(1, counts.shape[0]):
        for k in range(g):
            found = counts_apart(kind, counts[g], counts[k], positions)
            if np.isnan(largest) or found > largest:
                largest = found
    return largest


@rule
def from_equal(kind: int, totals: Floats, whole: float) -> float:
    """Return how far totals, shape (K,), are from an equal split; NaN if there is nothing to share or a total is NaN.

    Args:
        kind: `SHARE`: the largest distance of a share from 1 / K; `VARIATION`: half the sum of these distances;
            `RELATIVE`: the largest distance of a total from the mean, divided by the largest total.
        totals: The amount of each individual.
        whole: The number that a total is divided by to get a share.
    """
    largest, mean = totals.max(), totals.mean()
    scale, middle = (largest, mean) if kind == RELATIVE else (whole, whole / totals.shape[0])
    if not scale > 0 or np.isnan(mean):
        return np.nan
    furthest_off, off = 0.0, 0.0
    for k in range(totals.shape[0]):
        distance = abs(totals[k] - middle) / scale
        furthest_off, off = max(furthest_off, distance), off + distance
    return 0.5 * off if kind == VARIATION else furthest_off


@rule
def opportunity(counts: Floats, minimum: float, zero: bool) -> float:
    """Return the largest gap between the rates of two groups; NaN unless two are defined, or if a count is NaN.

    Args:
        counts: Weight of qualified people by decision, shape (groups, 2).
        minimum: A rate is defined from this weight on.
        zero: Whether an undefined rate counts as 0.
    """
    low, high, rates = np.inf, -np.inf, 0
    for g in range(counts.shape[0]):
        qualified = counts[g, 0] + counts[g, 1]
        if np.isnan(qualified):
            return np.nan
        defined = qualified > 0 and qualified >= minimum
        if defined or zero:
            rate = counts[g, 1] / qualified if defined else 0.0
            low, high, rates = min(low, rate), max(high, rate), rates + 1
    return high - low if rates > 1 else np.nan


@rule
def coverage(counts: NDArray[Any]) -> float:
    """Return the largest gap between two groups in ``counts[g, 0] / (counts[g, 1] + 1)``; NaN if a count is NaN.

    Args:
        counts: Shape (groups, 2).
    """
    low, high = np.inf, -np.inf
    for g in range(counts.shape[0]):
        rate = counts[g, 0] / (counts[g, 1] + 1.0)
        if np.isnan(rate):
            return np.nan
        low, high = min(low, rate), max(high, rate)
    return high - low


@kernel
def between(kind: int, p: Floats, q: Floats, positions: Floats, out: Floats) -> None:
    """Write the distance of each pair of distributions, shape (n,)."""
    for n in range(out.shape[0]):
        out[n] = counts_apart(kind, p[n], q[n], positions)


@kernel
def split(kind: int, totals: Floats, whole: Floats, out: Floats) -> None:
    """Write how far each row of shares is from equal shares, shape (n,)."""
    for n in range(out.shape[0]):
        out[n] = from_equal(kind, totals[n], whole[n])


@kernel
def rates_apart(counts: Floats, minimum: float, zero: bool, out: Floats) -> None:
    """Write the equal opportunity gap of each row of counts, shape (n,)."""
    for n in range(out.shape[0]):
        out[n] = opportunity(counts[n], minimum, zero)


@kernel
def covered_apart(counts: Floats, out: Floats) -> None:
    """Write the gap of vaccinations per new infection of each row of counts, shape (n,)."""
    for n in range(out.shape[0]):
        out[n] = coverage(counts[n])


# Functions ------------------------------------------------------------------------------------------------------------


def wasserstein(p: ArrayLike, q: ArrayLike, *, levels: ArrayLike | None = None) -> Any:
    r"""Return the 1-Wasserstein distance between two groups on an ordered scale: how far people would have to move.

    $W_1 = \sum_j |F_p(j) - F_q(j)| (x_{j+1} - x_j)$ with the cumulative shares F; exact. 0 if the shares are equal, at
    most the length of the scale; NaN if a group has no members.

    Args:
        p: Counts or shares of one group by level, shape (..., levels).
        q: Counts or shares of the other group.
        levels: Positions of the levels on their scale, ascending, shape (levels,); 0, 1, ... by default.

    Raises:
        ValueError: Counts are negative or infinite, shapes differ, or positions do not ascend.

    Example:
        >>> advantaged, disadvantaged = [0, 0.1, 0.1, 0.2, 0.3, 0.3, 0], [0.1, 0.1, 0.2, 0.3, 0.3, 0, 0]
        >>> round(float(wasserstein(advantaged, disadvantaged)), 9)
        1.0
    """
    return _between(WASSERSTEIN, p, q, levels)


def total_variation_of_shares(p: ArrayLike, q: ArrayLike) -> Any:
    """Return half the summed differences of two groups' shares: the share of people who would have to change level.

    0 if the shares are equal, 1 if no level has people of both groups; NaN if a group has no members. The levels need
    no order.

    Args:
        p: Counts or shares of one group, shape (..., levels).
        q: Counts or shares of the other group; ones for equal shares.

    Raises:
        ValueError: Counts are negative or infinite, or shapes differ.
    """
    return _between(TOTAL_VARIATION, p, q, None)


def unlabelled_distance(p: ArrayLike, q: ArrayLike) -> Any:
    """Return what the published code trains on in lending: the distance of two sets of counts, ignoring their levels.

    Each count is a point on the line, and the points of one group are moved onto those of the other: the mean absolute
    difference of the sorted counts. The code's number converges to it as its blur goes to 0. It is 0 if one histogram
    is a permutation of the other, however far apart they are. It grows with unequal group sizes even if the shares are
    the same.

    Args:
        p: Counts of one group, shape (..., levels).
        q: Counts of the other group.
    """
    return _between(UNLABELLED, p, q, None)


def cloud_distance(p: ArrayLike, q: ArrayLike) -> Any:
    """Return what the published code evaluates in lending and epidemics: the transport between clouds of episodes.

    Each episode is a point: the shares of scores, or the raw counts of people by health, of one group. Episodes of one
    group are paired with episodes of the other so that the mean Euclidean distance is smallest. With one episode, or
    equal ones, it is the distance between two points. With raw counts it is above 0 between groups of unequal sizes
    even if everyone has the same health. It pairs episodes with different random draws, so randomness also counts as
    distance.

    Args:
        p: Points of one group, shape (..., episodes, numbers).
        q: Points of the other group, same shape.

    Raises:
        ValueError: Shapes differ, or numbers are not finite: a point without a position cannot be paired.
    """
    from scipy.optimize import linear_sum_assignment

    one, other = np.asarray(p, np.float64), np.asarray(q, np.float64)
    if one.ndim < 2 or one.shape != other.shape or not one.shape[-2]:
        raise ValueError(f"p and q must have one shape (..., episodes, numbers), got {one.shape} and {other.shape}")
    for name, points in (("p", one), ("q", other)):
        if not np.isfinite(points).all():
            raise ValueError(f"{name} must be finite numbers, got {points[~np.isfinite(points)][0]}")
    cost = np.linalg.norm(one[..., :, np.newaxis, :] - other[..., np.newaxis, :, :], axis=-1)
    means = [table[linear_sum_assignment(table)].mean() for table in cost.reshape(-1, *cost.shape[-2:])]
    return np.array(means).reshape(cost.shape[:-2])[()]


def share_deviation(totals: ArrayLike, *, whole: ArrayLike | None = None) -> Any:
    r"""Return the largest distance of a share from an equal share, $\max_k |x_k / \sum_j x_j - 1/K|$.

    0 if all have the same, 1 - 1/K if one has everything; NaN if there is nothing to share.

    Args:
        totals: The amount of each individual, shape (..., K).
        whole: The number that a total is divided by to get a share, shape (...): the sum of the totals by default.
            Equation 9 of the study divides by units times window instead, which gives about 1/K for any allocation
            until the window is full.

    Example:
        >>> round(float(share_deviation([9, 3, 2, 2, 2])), 9)
        0.3
    """
    return _split(SHARE, totals, whole)


def relative_deviation(totals: ArrayLike) -> Any:
    r"""Return what the published code trains on in attention: $\max_k |x_k - \bar x| / \max_k x_k$.

    0 if all are equal, 1 - 1/K if one has everything; NaN if all are 0.

    Args:
        totals: Incidents of each individual, shape (..., K).
    """
    return _split(RELATIVE, totals, None)


def absolute_deviation(rates: ArrayLike) -> Any:
    r"""Return what the published code evaluates in attention, $\max_k |x_k - \bar x|$: 0 if equal, without a bound.

    It falls when all rates fall, even if they stay just as unequal.

    Args:
        rates: Rate of each individual, shape (..., K).
    """
    each = _counts("rates", rates)
    return np.abs(each - each.mean(axis=-1, keepdims=True)).max(axis=-1)


def opportunity_gap(counts: ArrayLike, *, minimum: float = 0.0, undefined: Undefined = "nan") -> Any:
    """Return the largest gap between groups in the share of qualified people who are accepted.

    0 is fair, 1 if all are accepted in one group and none in another.

    Args:
        counts: Qualified people by group and decision, shape (..., groups, 2): ``[..., 0]`` rejected, ``[..., 1]``
            accepted.
        minimum: A group's rate is undefined if it has fewer qualified people.
        undefined: How an undefined rate counts: ``"nan"``: it is left out, and the gap is NaN unless two rates remain;
            ``"zero"``: as 0, as in the published code.

    Example:
        >>> round(float(opportunity_gap([[9, 51], [14, 36]])), 9)
        0.13
    """
    zero = checked("undefined", undefined, Undefined) == "zero"
    tables = _tables(counts)
    out: Floats = np.empty(len(tables[0]))
    rates_apart(tables[0], checked("minimum", minimum, NonNegative), zero, out)
    return out.reshape(tables[1])[()]


def vaccination_gap(vaccinated: ArrayLike, infected: ArrayLike) -> Any:
    r"""Return the largest gap between groups in $v_g / (n_g + 1)$: vaccinations for each newly infected member.

    0 is fair, and there is no upper limit. The 1 keeps the quotient defined; in small groups it makes a difference.

    Args:
        vaccinated: Vaccinations of each group, shape (..., groups). Count only effective ones; otherwise useless
            vaccinations of a group would count in its favour.
        infected: Newly infected members of each group, same shape.

    Example:
        >>> round(float(vaccination_gap([2, 3], [6, 4])), 4)
        0.3143
    """
    each, fallen = _counts("vaccinated", vaccinated), _counts("infected", infected)
    if fallen.shape != each.shape:
        raise ValueError(f"infected must have the shape of vaccinated, {each.shape}, got {fallen.shape}")
    counts, shape = _tables(np.stack([each, fallen], axis=-1))
    out: Floats = np.empty(len(counts))
    covered_apart(counts, out)
    return out.reshape(shape)[()]


def coverage_gap(discovered: ArrayLike, occurred: ArrayLike) -> Any:
    r"""Return POCAR's short-term measure of attention: the largest gap in $s_k / (y_k + 1)$, like `vaccination_gap`.

    Args:
        discovered: Incidents discovered at each place since the episode's start, shape (..., K).
        occurred: Incidents that occurred there.
    """
    found, struck = _counts("discovered", discovered), _counts("occurred", occurred)
    if struck.shape != found.shape:
        raise ValueError(f"occurred must have the shape of discovered, {found.shape}, got {struck.shape}")
    return vaccination_gap(found, struck)


def mean_gap(rates: ArrayLike) -> Any:
    """Return the mean over episodes of each episode's largest gap between groups: the gap to expect in an episode.

    Args:
        rates: Shape (episodes, ..., groups).
    """
    return _spread(_episodes(rates)).mean(axis=0)


def gap_of_means(rates: ArrayLike) -> Any:
    """Return what the published code evaluates in lending: the gap between the groups' mean rates over episodes.

    Gaps of opposite signs cancel, so this is at most `mean_gap`.

    Args:
        rates: Shape (episodes, ..., groups).
    """
    return _spread(_episodes(rates).mean(axis=0))


def _episodes(rates: ArrayLike) -> Floats:
    """Return rates with an axis of episodes and one of groups, or raise ValueError."""
    each = np.asarray(rates, np.float64)
    if each.ndim < 2 or not each.shape[0] or not each.shape[-1]:
        raise ValueError(f"rates must have shape (episodes, ..., groups), got {each.shape}")
    if np.isinf(each).any():
        raise ValueError(f"rates must be finite numbers or NaN, got {each[np.isinf(each)][0]}")
    return each


def _spread(rates: Floats) -> Floats:
    return np.asarray(rates.max(axis=-1) - rates.min(axis=-1))


def _between(kind: int, p: ArrayLike, q: ArrayLike, levels: ArrayLike | None) -> Any:
    one, other = _counts("p", p), _counts("q", q)
    if one.shape[-1] != other.shape[-1]:
        raise ValueError(f"q must have as many levels as p, {one.shape[-1]}, got {other.shape[-1]}")
    one, other = np.broadcast_arrays(one, other)
    rows = [np.array(side).reshape(-1, side.shape[-1]) for side in (one, other)]
    out: Floats = np.empty(len(rows[0]))
    between(kind, *rows, ascending("levels", levels, one.shape[-1]), out)
    return out.reshape(one.shape[:-1])[()]


def _split(kind: int, totals: ArrayLike, whole: ArrayLike | None) -> Any:
    each = _counts("totals", totals)
    of = each.sum(axis=-1) if whole is None else _whole(whole, each.shape[:-1])
    out: Floats = np.empty(of.size)
    split(kind, each.reshape(-1, each.shape[-1]), of.reshape(-1), out)
    return out.reshape(of.shape)[()]


def _whole(given: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return the divisors of shares, shape (...), as a contiguous array."""
    whole = np.asarray(given, np.float64)
    if whole.shape not in ((), shape) or np.isinf(whole).any() or (whole < 0).any():
        raise ValueError(f"whole must be finite numbers of at least 0 of shape {shape}, got {given!r}")
    return np.full(shape, whole)


def _tables(counts: ArrayLike) -> tuple[Floats, tuple[int, ...]]:
    """Return tables of shape (n, groups, 2), and the leading axes that n combines."""
    tables = _counts("counts", counts)
    if tables.ndim < 2 or tables.shape[-1] != 2:
        raise ValueError(f"counts must have shape (..., groups, 2), got {tables.shape}")
    return tables.reshape(-1, *tables.shape[-2:]), tables.shape[:-2]


def _counts(name: str, given: ArrayLike) -> Floats:
    """Return numbers of at least 0 or NaN, not infinite, with at least one axis, as a contiguous array."""
    numbers = np.ascontiguousarray(given, np.float64)
    if not np.ndim(given) or not numbers.shape[-1] or (numbers < 0).any() or np.isinf(numbers).any():
        raise ValueError(f"{name} must be finite numbers of at least 0 with at least one axis, got {given!r}")
    return numbers


def ascending(name: str, given: ArrayLike | None, count: int) -> Floats:
    """Return positions on a scale, shape (count,), or raise ValueError; 0, 1, ... by default."""
    positions = np.arange(count, dtype=np.float64) if given is None else np.asarray(given, np.float64)
    if positions.shape != (count,) or not (np.isfinite(positions).all() and (np.diff(positions) > 0).all()):
        raise ValueError(f"{name} must be {count} ascending finite numbers, got {given!r}")
    return positions


__all__ = [
    "absolute_deviation",
    "cloud_distance",
    "coverage_gap",
    "gap_of_means",
    "mean_gap",
    "opportunity_gap",
    "relative_deviation",
    "share_deviation",
    "total_variation_of_shares",
    "unlabelled_distance",
    "vaccination_gap",
    "wasserstein",
]
