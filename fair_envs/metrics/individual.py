"""Individual notions on histories of decisions: are people who are alike treated alike?

A notion compares pairs of people by a distance between their features. What it needs of the pairs is kept beside the
history and brought up to date when the notion is asked: each newcomer is compared with everybody once, so that a step
costs time in proportion to the window, and the result is that of comparing all pairs anew. Notions with the same
distance share the comparison.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.compilation import Kernel, compile_kernels, readable, rule
from fair_envs.history import TOLERANCE, Discounted, History, reported_well
from fair_envs.interactions import FairSpec
from fair_envs.parameters import Count, Positive, Range, Weight, checked

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Undefined = Literal["nan", "fair", "unfair", "last", "paper"]
Scaling = Literal["distance", "similarity", "raw"]

# What compiled code calls the options
POWERS, BRAY_CURTIS, GIVEN = range(3)  # how people are compared
DISTANCE, SIMILARITY, RAW = range(3)  # what their distance is made into
VIOLATION, PAPER = range(2)  # what counts of a pair
HELLINGER, TOTAL_VARIATION = range(2)  # how treatments are compared
UNDEFINED = ("nan", "fair", "unfair", "last", "paper")


# Distances between people ---------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """A distance between people as compiled code reads it."""

    kind: int
    power: float = 1.0  # of the differences, whose sum is taken
    root: float = 1.0  # of that sum
    zero: float = 0.0  # Bray-Curtis of two people without anything
    scaling: int = RAW
    rate: float = 0.0


class Distance:
    """How far apart two people are: 0 for two of the same features.

    ``distance(rows, row)`` compares people directly, to try it out; notions do it in compiled code.
    """

    overlap: ClassVar[bool] = False  # whether nominal features are equal (0) or differ (1)

    @property
    def measure(self) -> Measure:
        """The distance as compiled code reads it."""
        raise NotImplementedError

    def __call__(self, rows: ArrayLike, row: ArrayLike, *, nominal: Sequence[int] = ()) -> Any:
        """Return the distance of each row, shape (..., features), to one, shape (features,): shape (...).

        Args:
            rows: People.
            row: Another one.
            nominal: Which columns are codes without an order.
        """
        given, one = np.asarray(rows, np.float64), np.asarray(row, np.float64)
        if one.ndim != 1 or given.shape[-1:] != one.shape:
            raise ValueError(f"rows must have as many columns as row, {one.shape}, got {given.shape}")
        people = np.concatenate([given.reshape(-1, one.size), one[np.newaxis]]).T.copy()
        flags = np.zeros(one.size, bool)
        flags[list(nominal)] = self.overlap
        out = np.zeros((2, people.shape[1]))
        kernels()["measured"](self.measure, people, flags, out)
        return out[0, :-1].reshape(given.shape[:-1])[()]


@dataclass(frozen=True, kw_only=True)
class BrayCurtis(Distance):
    """Bray-Curtis dissimilarity, sum of ``|u - v|`` over sum of ``|u + v|``: in [0, 1] for features of at least 0.

    Args:
        variant: What two people have whose features are all 0: ``"sound"``: 0; ``"code"``: NaN, as in the published
            code.
    """

    variant: Literal["sound", "code"] = "sound"

    def __post_init__(self) -> None:
        """Check the options."""
        checked("variant", self.variant, Literal["sound", "code"])

    @property
    def measure(self) -> Measure:
        """The distance as compiled code reads it."""
        return Measure(BRAY_CURTIS, zero=math.nan if self.variant == "code" else 0.0)


@dataclass(frozen=True, kw_only=True)
class Scaled(Distance):
    """A distance without a bound, and what it is made into.

    Args:
        scaling: ``"distance"``: ``1 - exp(-rate * d)``, in [0, 1]; ``"raw"``: d itself; ``"similarity"``:
            ``exp(-rate * d)``, which the published code of FAReL takes for a distance. Of those who are most alike by a
            similarity, the features differ most.
        rate: How fast the scaled distance grows.
    """

    scaling: Scaling = "distance"
    rate: float = 0.1

    def __post_init__(self) -> None:
        """Check the options."""
        checked("scaling", self.scaling, Scaling)
        object.__setattr__(self, "rate", checked("rate", self.rate, Positive))

    def _measure(self, power: float, root: float) -> Measure:
        scaling = ("distance", "similarity", "raw").index(self.scaling)
        return Measure(POWERS, power, root, scaling=scaling, rate=self.rate)


@dataclass(frozen=True, kw_only=True)
class HEOM(Scaled):
    """Heterogeneous Euclidean-overlap metric (Wilson and Martinez 1997) on features that are normalised already.

    Numerical features count their difference, nominal ones 1 if they differ.

    Args:
        variant: ``"sound"``: the root of the sum of squares; ``"paper"``: the sum of differences, as the paper of FAReL
            prints it; ``"code"``: the sum of squares without a root, as in its code.
    """

    variant: Literal["sound", "paper", "code"] = "sound"
    overlap: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        checked("variant", self.variant, Literal["sound", "paper", "code"])

    @property
    def measure(self) -> Measure:
        """The distance as compiled code reads it."""
        power, root = {"sound": (2.0, 2.0), "paper": (1.0, 1.0), "code": (2.0, 1.0)}[self.variant]
        return self._measure(power, root)


@dataclass(frozen=True, kw_only=True)
class HMOM(Scaled):
    """Heterogeneous Manhattan-overlap metric: the sum of differences, 1 for each nominal feature that differs.

    The paper of FAReL, its code and the literature agree on it.
    """

    overlap: ClassVar[bool] = True

    @property
    def measure(self) -> Measure:
        """The distance as compiled code reads it."""
        return self._measure(1.0, 1.0)


@dataclass(frozen=True)
class Minkowski(Scaled):
    """Minkowski's distance, all features taken as numbers.

    Args:
        p: At least 1; 1 is Manhattan, 2 Euclidean.
    """

    p: float = field(default=2.0, kw_only=False)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "p", checked("p", self.p, Annotated[float, Range(1)]))

    @property
    def measure(self) -> Measure:
        """The distance as compiled code reads it."""
        return self._measure(self.p, self.p)


@dataclass(frozen=True)
class Given(Distance):
    """A distance of one's own. It is called from Python, and what it said of each two people is kept.

    Args:
        function: ``(u, v) -> number``, or ``(rows, row) -> numbers`` if vectorised; the numbers are at least 0.
        vectorised: Whether it takes people together, shape (n, features).
    """

    function: Callable[..., Any]
    vectorised: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        if not callable(self.function):
            raise ValueError(f"distance must be a Distance or a function of two people, got {self.function!r}")

    @property
    def measure(self) -> Measure:
        """The distance as compiled code reads it."""
        return Measure(GIVEN)

    def __call__(self, rows: ArrayLike, row: ArrayLike, *, nominal: Sequence[int] = ()) -> Any:
        """Return what the function says of each row, shape (n, features), and one, shape (features,): shape (n,)."""
        people, one = np.asarray(rows, np.float64), np.asarray(row, np.float64)
        told = self.function(people, one) if self.vectorised else [self.function(person, one) for person in people]
        told = np.asarray(told, np.float64)
        if told.shape != people.shape[:1] or not (told >= 0).all():
            raise ValueError(f"distance must return numbers of at least 0, one for each person, got {told!r}")
        return told


def _distance(given: Any) -> Distance:
    """Return the distance, or a function as one."""
    distance = given if isinstance(given, Distance) else Given(given)
    try:
        hash(distance)
    except TypeError:
        raise ValueError(f"distance must be hashable, got {given!r}") from None
    return distance


@rule
def spread(measure, features, nominal, place, start, stop, out):  # type: ignore[no-untyped-def]
    """Write how far the person at one place is from those at other places, before root and scaling.

    Args:
        measure: `Measure`.
        features: Shape (features, places).
        nominal: Which features are equal or differ, shape (features,).
        place: Of the person.
        start: First place of the others.
        stop: Place after the last.
        out: Shape (2, places): the result, and room.
    """
    near, whole = out[0, start:stop], out[1, start:stop]
    near[:] = 0.0
    whole[:] = 0.0
    for f in range(features.shape[0]):
        own, column = np.float64(features[f, place]), features[f, start:stop]
        if measure.kind == BRAY_CURTIS:
            for j in range(column.shape[0]):
                near[j] += abs(column[j] - own)
                whole[j] += abs(column[j] + own)
        elif nominal[f]:
            for j in range(column.shape[0]):
                near[j] += 1.0 if column[j] != own else 0.0
        elif measure.power == 1.0:
            for j in range(column.shape[0]):
                near[j] += abs(column[j] - own)
        elif measure.power == 2.0:
            for j in range(column.shape[0]):
                near[j] += (column[j] - own) * (column[j] - own)
        else:
            for j in range(column.shape[0]):
                near[j] += abs(column[j] - own) ** measure.power
    if measure.kind == BRAY_CURTIS:
        for j in range(near.shape[0]):
            near[j] = near[j] / whole[j] if whole[j] > 0.0 else measure.zero


@rule
def scale(measure, raw, out):  # type: ignore[no-untyped-def]
    """Write the distances that `spread` began, shape (n,)."""
    if measure.root == 1.0:
        out[:] = raw
    elif measure.root == 2.0:
        for j in range(raw.shape[0]):
            out[j] = np.sqrt(raw[j])
    else:
        for j in range(raw.shape[0]):
            out[j] = raw[j] ** (1.0 / measure.root)
    if measure.scaling == DISTANCE:
        for j in range(raw.shape[0]):
            out[j] = 1.0 - np.exp(-measure.rate * out[j])
    elif measure.scaling == SIMILARITY:
        for j in range(raw.shape[0]):
            out[j] = np.exp(-measure.rate * out[j])


# Distances between treatments -----------------------------------------------------------------------------------------


def hellinger(p: ArrayLike, q: ArrayLike) -> Any:
    """Return Hellinger's distance between action distributions: 0 if equal, 1 if they never act alike.

    Args:
        p: Probabilities, shape (..., A).
        q: Probabilities, shape (..., A).

    Raises:
        ValueError: Not distributions: a number below 0, NaN, or a sum other than 1.
    """
    return _treatments(HELLINGER, p, q)


def total_variation(p: ArrayLike, q: ArrayLike) -> Any:
    """Return the total variation between action distributions: 0 if equal, 1 if they never act alike.

    Args:
        p: Probabilities, shape (..., A).
        q: Probabilities, shape (..., A).

    Raises:
        ValueError: Not distributions: a number below 0, NaN, or a sum other than 1.
    """
    return _treatments(TOTAL_VARIATION, p, q)


def _treatments(between: int, p: ArrayLike, q: ArrayLike) -> Any:
    one, other = np.broadcast_arrays(_distributions("p", p), _distributions("q", q))
    columns = [side.reshape(-1, side.shape[-1]).T.copy() for side in (one, other)]
    if between == HELLINGER:
        columns = [np.sqrt(side) for side in columns]
    out = np.zeros(columns[0].shape[1])
    kernels()["treated"](between, *columns, out)
    return out.reshape(one.shape[:-1])[()]


def _distributions(name: str, given: ArrayLike) -> FloatArray:
    probs = np.asarray(given, np.float64)
    if probs.ndim < 1 or not ((probs >= 0).all() and (abs(probs.sum(-1) - 1) <= TOLERANCE).all()):
        raise ValueError(f"{name} must be distributions: at least 0 and summing to 1, got {given!r}")
    return probs


@rule
def treated_apart(between, columns, own, start, stop, out):  # type: ignore[no-untyped-def]
    """Write how differently people at some places and one person were treated.

    Args:
        between: `HELLINGER` or `TOTAL_VARIATION`.
        columns: Roots of the probabilities, or the probabilities, shape (A, places).
        own: The person's, shape (A,).
        start: First place.
        stop: Place after the last.
        out: Shape (places,).
    """
    apart = out[start:stop]
    apart[:] = 0.0
    for a in range(columns.shape[0]):
        mine, column = own[a], columns[a, start:stop]
        if between == HELLINGER:
            for j in range(column.shape[0]):
                apart[j] += (column[j] - mine) * (column[j] - mine)
        else:
            for j in range(column.shape[0]):
                apart[j] += abs(column[j] - mine)
    if between == HELLINGER:
        for j in range(apart.shape[0]):
            apart[j] = np.sqrt(0.5 * apart[j])
    else:
        for j in range(apart.shape[0]):
            apart[j] *= 0.5


# The people in the window ---------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """What is kept of the people in the window, by place in a ring; in compiled code also one lane's, without B."""

    features: NDArray[np.float32]  # (B, features, places)
    probs: FloatArray  # (B, A, places)
    roots: FloatArray  # (B, A, places), of probs
    known: FloatArray  # (B, places), 1: the probabilities were reported
    action: IntArray  # (B, places)
    step: IntArray  # (B, places)
    late: FloatArray  # (B, fairness notions, places), what counts of the pairs with all who came later
    cut: FloatArray  # (B, places), how far the nearest neighbours of each are listed
    heads: NDArray[np.void]  # (B, places), of their lists
    lists: NDArray[np.void]  # (B, places, L)
    score: FloatArray  # (B, values of k, places), share of the k nearest who were decided on otherwise
    given: FloatArray  # (B, places, places), what a distance of one's own said


# The nearest neighbours of each person are a list of distances, ascending. It is longer than k, so that it is seldom too
# short when somebody leaves, and only then made anew.
HEAD = np.dtype([("levels", np.int64), ("held", np.int64)])  # how many distances, how many people
LEVEL = np.dtype([("distance", np.float64), ("people", np.int32), ("otherwise", np.int32)])  # decided on otherwise

BY_PLACE = {"features": 2, "probs": 2, "roots": 2, "late": 2, "score": 2}  # which axis the places are; else 1


class Plan(NamedTuple):
    """What is to be computed for the people in the window, as compiled code reads it."""

    measure: Measure
    columns: IntArray  # (features,), of the history's features
    nominal: NDArray[np.bool_]  # (features,)
    forms: IntArray  # (fairness notions, 2): form, how treatments are compared
    bounds: FloatArray  # (fairness notions,): how differently people may be treated for each unit of distance
    ks: IntArray  # (values of k,)
    keep: int  # how many neighbours are listed for each person
    factor: float  # each later step multiplies the weight by this
    published: bool  # whether the history forgets as in the published code
    minimum: int
    delay: int
    discount: float
    threshold: float


@rule
def lane_of(pool, b):  # type: ignore[no-untyped-def]
    """Return one lane's people."""
    return Pool(
        pool.features[b],
        pool.probs[b],
        pool.roots[b],
        pool.known[b],
        pool.action[b],
        pool.step[b],
        pool.late[b],
        pool.cut[b],
        pool.heads[b],
        pool.lists[b],
        pool.score[b],
        pool.given[b],
    )


@rule
def part(first, end, places, which):  # type: ignore[no-untyped-def]
    """Return where the rows from first up to end lie in the ring: one of its two stretches, which may be empty."""
    start = first % places
    stop = start + end - first
    if which == 0:
        return start, min(stop, places)
    return 0, max(stop - places, 0)


@rule
def compare(lane, plan, place, start, stop, out):  # type: ignore[no-untyped-def]
    """Write how far one person is from others, before root and scaling, shape (2, places)."""
    if plan.measure.kind == GIVEN:
        out[0, start:stop] = lane.given[place, start:stop]
    else:
        spread(plan.measure, lane.features, plan.nominal, place, start, stop, out)


@rule
def settle(lane, plan, row, place):  # type: ignore[no-untyped-def]
    """Write who came at a place."""
    for f in range(plan.columns.shape[0]):
        lane.features[f, place] = row.features[plan.columns[f]]
    known = 0.0
    for a in range(lane.probs.shape[0]):
        probability = np.float64(row.action_probs[a])
        lane.probs[a, place] = probability
        lane.roots[a, place] = np.sqrt(probability) if probability >= 0.0 else np.nan
        if probability != 0.0:
            known = 1.0
    lane.known[place] = known
    lane.action[place] = row.action
    lane.step[place] = row.step
    lane.late[:, place] = 0.0


# Neighbours


@rule
def insert(head, levels, distance, otherwise, keep):  # type: ignore[no-untyped-def]
    """Put a neighbour on a person's list, end it where it is long enough, and return where that is; infinite: nowhere.

    Args:
        head: Of the list.
        levels: The list, shape (L,).
        distance: Of the neighbour, not beyond the cut.
        otherwise: Whether the neighbour was decided on otherwise.
        keep: How many people are enough.
    """
    at, used = head.levels, head.levels
    while at > 0 and levels[at - 1].distance > distance:
        at -= 1
    if at > 0 and levels[at - 1].distance == distance:
        levels[at - 1].people += 1
        levels[at - 1].otherwise += otherwise
    else:
        for later in range(used, at, -1):
            move(levels[later - 1], levels[later])
        levels[at].distance, levels[at].people, levels[at].otherwise = distance, 1, otherwise
        used += 1
    held, cut = head.held + 1, np.inf
    while held - levels[used - 1].people >= keep:
        used -= 1
        held -= levels[used].people
        cut = levels[used - 1].distance
    head.levels, head.held = used, held
    return cut


@rule
def move(level, to):  # type: ignore[no-untyped-def]
    """Copy an entry of a list."""
    to.distance, to.people, to.otherwise = level.distance, level.people, level.otherwise


@rule
def remove(head, levels, distance, otherwise):  # type: ignore[no-untyped-def]
    """Take a neighbour who is not beyond the cut off a person's list."""
    at = 0
    while levels[at].distance != distance:
        at += 1
    levels[at].people -= 1
    levels[at].otherwise -= otherwise
    head.held -= 1
    if levels[at].people == 0:
        head.levels -= 1
        for later in range(at, head.levels):
            move(levels[later + 1], levels[later])


@rule
def share(head, levels, k):  # type: ignore[no-untyped-def]
    """Return which share of a person's k nearest was decided on otherwise, NaN without any.

    Those who are as far as the k-th share the places that are left, so that no order matters.
    """
    wanted = min(k, head.held)
    left, otherwise, at = wanted, 0.0, 0
    while left > 0:
        taken = min(left, levels[at].people)
        otherwise += levels[at].otherwise * (taken / levels[at].people)
        left -= taken
        at += 1
    return otherwise / wanted if wanted > 0 else np.nan


@rule
def fill(lane, plan, i, first, end, far):  # type: ignore[no-untyped-def]
    """Make a person's list anew from the distances to everybody, shape (places,)."""
    head, levels, actions, keep = lane.heads[i], lane.lists[i], lane.action, plan.keep
    head.levels, head.held = 0, 0
    cut, own, sign = np.inf, actions[i], sign_of(plan.measure)
    for which in range(2):
        start, stop = part(first, end, actions.shape[0], which)
        for j in range(start, stop):
            if j != i and sign * far[j] <= cut:
                cut = min(cut, insert(head, levels, sign * far[j], int(actions[j] != own), keep))
    lane.cut[i] = cut


@rule
def sign_of(measure):  # type: ignore[no-untyped-def]
    """Return -1 if the farthest count as nearest."""
    return -1.0 if measure.scaling == SIMILARITY else 1.0


@rule
def meet(lane, plan, place, first, number, far):  # type: ignore[no-untyped-def]
    """Let everybody and a newcomer be neighbours."""
    fill(lane, plan, place, first, number, far)
    for c in range(plan.ks.shape[0]):
        lane.score[c, place] = share(lane.heads[place], lane.lists[place], plan.ks[c])
    heads, lists, cut, actions, score, ks = lane.heads, lane.lists, lane.cut, lane.action, lane.score, plan.ks
    sign, own, keep = sign_of(plan.measure), actions[place], plan.keep
    for which in range(2):
        start, stop = part(first, number, actions.shape[0], which)
        for j in range(start, stop):
            if sign * far[j] <= cut[j]:
                ends = insert(heads[j], lists[j], sign * far[j], int(actions[j] != own), keep)
                cut[j] = min(cut[j], ends)
                for c in range(ks.shape[0]):
                    score[c, j] = share(heads[j], lists[j], ks[c])


@rule
def leave(lane, plan, own, room):  # type: ignore[no-untyped-def]
    """Let the oldest go."""
    place = own[0] % lane.action.shape[0]
    own[0] += 1
    if plan.ks.shape[0] == 0:
        return
    heads, lists, cut, actions, score, ks = lane.heads, lane.lists, lane.cut, lane.action, lane.score, plan.ks
    others, sign, action, far = own[1] - own[0] - 1, sign_of(plan.measure), actions[place], room[0]
    enough = min(ks.max(), others)
    for which in range(2):
        start, stop = part(own[0], own[1], actions.shape[0], which)
        compare(lane, plan, place, start, stop, room[:2])
        for j in range(start, stop):
            if sign * far[j] <= cut[j]:
                remove(heads[j], lists[j], sign * far[j], int(actions[j] != action))
                if heads[j].held == others:
                    cut[j] = np.inf
                elif heads[j].held < enough:
                    look_around(lane, plan, j, own, room[2:])
                for c in range(ks.shape[0]):
                    score[c, j] = share(heads[j], lists[j], ks[c])


@rule
def look_around(lane, plan, i, own, room):  # type: ignore[no-untyped-def]
    """Make a person's list anew."""
    for which in range(2):
        start, stop = part(own[0], own[1], lane.action.shape[0], which)
        compare(lane, plan, i, start, stop, room)
    fill(lane, plan, i, own[0], own[1], room[0])


# Pairs


@rule
def pair(lane, plan, place, start, stop, room):  # type: ignore[no-untyped-def]
    """Add what counts of the pairs with a newcomer, who is ``room[0]`` from those at some places."""
    far, apart, known = room[2, start:stop], room[3, start:stop], lane.known[start:stop]
    scale(plan.measure, room[0, start:stop], far)
    for form in range(plan.forms.shape[0]):
        late = lane.late[form, start:stop]
        columns = lane.roots if plan.forms[form, 1] == HELLINGER else lane.probs
        treated_apart(plan.forms[form, 1], columns, columns[:, place], start, stop, room[3])
        if plan.forms[form, 0] == VIOLATION:
            for j in range(far.shape[0]):
                above = apart[j] - plan.bounds[form] * far[j]
                late[j] += known[j] * (0.0 if above <= 0.0 else above)
        else:
            for j in range(far.shape[0]):
                less = far[j] - apart[j]
                late[j] += 0.0 if np.isnan(less) else known[j] * less  # the published code leaves NaN out of the sum


@rule
def enter(lane, plan, row, number, own, room):  # type: ignore[no-untyped-def]
    """Compare a newcomer with everybody."""
    places = lane.action.shape[0]
    place, before = number % places, (number - 1) % places
    settle(lane, plan, row, place)
    decay = 1.0
    if plan.factor != 1.0 and number > own[0]:
        decay = plan.factor ** (lane.step[place] - lane.step[before])
    for which in range(2):
        start, stop = part(own[0], number, places, which)
        compare(lane, plan, place, start, stop, room[:2])
        if decay != 1.0:
            lane.late[:, start:stop] *= decay
        if plan.forms.shape[0] > 0 and lane.known[place] == 1.0:
            pair(lane, plan, place, start, stop, room)
    if plan.ks.shape[0] > 0:
        meet(lane, plan, place, own[0], number, room[0])
    own[1] = number + 1


@rule
def forget_as_published(lane, plan, own, room):  # type: ignore[no-untyped-def]
    """Return the discounted mean of the published code, and let those go from whom on it hardly changes.

    The newest ``minimum - delay`` people count as the later ones of their pairs alone, the exponent begins behind them,
    and small changes need not follow each other.
    """
    size = own[1] - own[0]
    total, count, weight, quiet, gone = 0.0, 0.0, 1.0, 0, 0
    for j in range(min(size - plan.minimum + plan.delay, size) - 1, -1, -1):
        larger = total + weight * lane.late[0, (own[0] + j) % lane.action.shape[0]]
        more = count + weight * (size - 1 - j)
        small = more > 0.0 and abs(total / max(1.0, count) - larger / max(more, 1e-300)) <= plan.threshold
        total, count = larger, more
        weight *= plan.discount
        if small and plan.threshold > 0.0:
            quiet += 1
            if quiet > plan.delay:
                gone = j + 1
                break
    for _ in range(gone):
        leave(lane, plan, own, room)
    return total / max(1.0, count) if size > 2 else np.nan


@rule
def conclude(lane, plan, own, out):  # type: ignore[no-untyped-def]
    """Write the mean over pairs for each fairness notion, and the mean share of others for each k."""
    forms, places = plan.forms.shape[0], lane.action.shape[0]
    pairs, weights = 0.0, 0.0
    out[:] = 0.0
    if plan.factor != 1.0:
        pairs, weights = weigh(lane, plan.factor, own, out)
    else:
        known = 0.0
        for which in range(2):
            start, stop = part(own[0], own[1], places, which)
            known += total(lane.known[start:stop])
            for form in range(forms):
                out[form] += total(lane.late[form, start:stop])
            for c in range(plan.ks.shape[0]):
                out[forms + c] += total(lane.score[c, start:stop])
        pairs, weights = known * (known - 1.0) / 2.0, float(own[1] - own[0])
    out[:forms] /= pairs if pairs > 0.0 else np.nan
    out[forms:] /= weights if weights > 0.0 else np.nan


@rule
def total(values):  # type: ignore[no-untyped-def]
    """Return the sum, in four strands so that additions need not wait for each other."""
    one = two = three = four = 0.0
    whole = values.shape[0] // 4 * 4
    for j in range(0, whole, 4):
        one += values[j]
        two += values[j + 1]
        three += values[j + 2]
        four += values[j + 3]
    for j in range(whole, values.shape[0]):
        one += values[j]
    return (one + two) + (three + four)


@rule
def weigh(lane, factor, own, out):  # type: ignore[no-untyped-def]
    """Add to the sums by weight, and return the weights of all pairs whose treatment is known, and of all people."""
    forms, places = lane.late.shape[0], lane.action.shape[0]
    weight, weights, known, pairs = 1.0, 0.0, 0.0, 0.0
    for number in range(own[1] - 1, own[0] - 1, -1):
        i = number % places
        if number < own[1] - 1:
            weight *= factor ** (lane.step[(number + 1) % places] - lane.step[i])
        mine = weight * lane.known[i]
        pairs += mine * known
        known += mine
        weights += weight
        for form in range(forms):
            out[form] += weight * lane.late[form, i]
        for c in range(lane.score.shape[0]):
            out[forms + c] += weight * lane.score[c, i]
    return pairs, weights


@functools.cache
def kernels() -> Mapping[str, Kernel]:
    """Return the compiled loops over lanes and people."""

    def measured(measure, people, nominal, out):  # type: ignore[no-untyped-def]
        last = people.shape[1] - 1
        spread(measure, people, nominal, last, 0, last, out)
        scale(measure, out[0, :last].copy(), out[0, :last])

    def treated(between, one, other, out):  # type: ignore[no-untyped-def]
        for n in range(out.shape[0]):
            treated_apart(between, one, other[:, n], n, n + 1, out)

    def present(state, rows, reach):  # type: ignore[no-untyped-def]
        for b in range(state.shape[0]):
            lane = state[b]
            first = lane.end
            while first > lane.first:
                row = rows[b, (first - 1) % rows.shape[1]]
                if row.step != lane.step or row.episode != lane.episode:
                    break
                first -= 1
            reach[b, 0], reach[b, 1] = first, lane.end

    def follow(rows, reach, own, pool, plan, room, values):  # type: ignore[no-untyped-def]
        places = rows.shape[1]
        for b in range(rows.shape[0]):
            lane, mine, first, end = lane_of(pool, b), own[b], reach[b, 0], reach[b, 1]
            if first >= mine[1]:
                mine[:] = first
            while mine[0] < first:
                leave(lane, plan, mine, room)
            for number in range(mine[1], end):
                row = rows[b, number % places]
                enter(lane, plan, row, number, mine, room)
                if plan.published and (number + 1 == end or rows[b, (number + 1) % places].step != row.step):
                    values[b, 0] = forget_as_published(lane, plan, mine, room)
            mean = values[b, 0]
            conclude(lane, plan, mine, values[b])
            if plan.published:
                values[b, 0] = mean

    def first_neighbours(own, pool, plan, k, room, out):  # type: ignore[no-untyped-def]
        for b in range(own.shape[0]):
            lane, places, size = lane_of(pool, b), pool.action.shape[1], own[b, 1] - own[b, 0]
            sign = sign_of(plan.measure)
            total = 0.0
            for number in range(own[b, 0], own[b, 1]):
                i = number % places
                for which in range(2):
                    start, stop = part(own[b, 0], own[b, 1], places, which)
                    compare(lane, plan, i, start, stop, room)
                chosen, otherwise = 0, 0
                room[2] = 0.0  # 1: chosen
                while chosen < min(k, size - 1):
                    best = -1
                    for rank in range(size - 1):  # those before, the newest first; then those after, the oldest first
                        other = number - 1 - rank if rank < number - own[b, 0] else own[b, 0] + rank + 1
                        j = other % places
                        if room[2, j] == 0.0 and (best < 0 or sign * room[0, j] < sign * room[0, best]):
                            best = j
                    room[2, best] = 1.0
                    chosen += 1
                    otherwise += int(lane.action[best] != lane.action[i])
                total += otherwise / max(chosen, 1)
            out[b] = total / size if size > 1 else np.nan

    return compile_kernels(IndividualFairness, measured, treated, present, follow, first_neighbours)


class Comparisons:
    """What the individual notions of one distance keep beside a history.

    Args:
        history: Whose people are compared.
        distance: How.
        columns: Which of their features, shape (features,).
        current_step: Whether the people of each lane's last step alone are compared.
    """

    def __init__(self, history: History, distance: Distance, columns: IntArray, *, current_step: bool) -> None:
        self.distance, self.current_step = distance, current_step
        spec, memory = history.spec, history.memory
        self._history_spec = spec
        self.forms: list[tuple[int, int, float]] = []
        self.ks: list[int] = []
        nominal = np.array([spec.features[c] in spec.nominal_features for c in columns], bool)
        published = isinstance(memory, Discounted) and memory.algorithm == "paper" and not current_step
        if published:
            self.forms.append((PAPER, HELLINGER, 1.0))
        self._columns, self._nominal, self._published = columns, nominal & distance.overlap, published
        self._factor = 1.0 if current_step else memory.weighting.factor
        self._memory = memory if isinstance(memory, Discounted) else Discounted()
        self._begin(history)

    def copy(self) -> "Comparisons":
        """Return an independent copy."""
        other = object.__new__(Comparisons)
        other.__dict__ |= self.__dict__
        other.forms, other.ks = list(self.forms), list(self.ks)
        other.own, other._values, other._room = self.own.copy(), self._values.copy(), self._room.copy()
        other._pool = Pool(*(column.copy() for column in self._pool))
        return other

    def mean(self, history: History, form: int, between: int, lipschitz: float) -> FloatArray:
        """Return the mean over the pairs of each lane of what counts of a pair, shape (B,)."""
        wanted = (form, between, lipschitz)
        if wanted not in self.forms:
            self.forms.append(wanted)
            self._begin(history)
        self._follow(history)
        return self._values[:, self.forms.index(wanted)].copy()

    def otherwise(self, history: History, k: int) -> FloatArray:
        """Return the mean share of the k nearest who were decided on otherwise, shape (B,)."""
        if k not in self.ks:
            self.ks.append(k)
            self._begin(history)
        self._follow(history)
        return self._values[:, len(self.forms) + self.ks.index(k)].copy()

    def otherwise_of_first(self, history: History, k: int) -> FloatArray:
        """Return the same where of equally near people those come first whom the published code met first."""
        self._follow(history)
        out = np.empty(len(self.own))
        kernels()["first_neighbours"](self.own, self._pool, self._plan, k, self._room, out)
        return out

    def people(self, history: History) -> tuple[IntArray, IntArray]:
        """Return how many people are compared, and of how many the probabilities are known, shapes (B,)."""
        self._follow(history)
        known = np.zeros(len(self.own), np.int64)
        for b, (first, end) in enumerate(self.own):
            known[b] = self._pool.known[b, np.arange(first, end) % self._pool.known.shape[1]].sum()
        return self.own[:, 1] - self.own[:, 0], known

    def _begin(self, history: History) -> None:
        """Begin anew with what is asked for now."""
        keep = 2 * max(self.ks, default=1) + 4
        self._plan = Plan(
            measure=self.distance.measure,
            columns=self._columns,
            nominal=self._nominal,
            forms=np.array([form[:2] for form in self.forms], np.int64).reshape(-1, 2),
            bounds=np.array([form[2] for form in self.forms], np.float64),
            ks=np.array(self.ks, np.int64),
            keep=keep,
            factor=self._factor,
            published=self._published,
            minimum=self._memory.minimum,
            delay=self._memory.delay,
            discount=self._memory.factor,
            threshold=self._memory.threshold,
        )
        self.own = np.zeros((history.lanes, 2), np.int64)  # the rows of each lane that are in, from first up to end
        self._values = np.full((history.lanes, max(1, len(self.forms) + len(self.ks))), np.nan)
        self._pool = self._make_pool(history.lanes, self._places(history))
        self._room = np.zeros((4, self._pool.action.shape[1]))
        self._version = -1

    def _places(self, history: History) -> int:
        return history.spec.individuals if self.current_step else history.ring()[1].shape[1]

    def _make_pool(self, lanes: int, places: int) -> Pool:
        """Return room for so many people."""
        length = self._plan.keep + 1 if self.ks else 1
        given = places if self.distance.measure.kind == GIVEN else 1
        actions = self._history_spec.actions
        listed = places if self.ks else 1
        return Pool(
            features=np.zeros((lanes, len(self._columns), places), np.float32),
            probs=np.zeros((lanes, actions, places)),
            roots=np.zeros((lanes, actions, places)),
            known=np.zeros((lanes, places)),
            action=np.zeros((lanes, places), np.int64),
            step=np.zeros((lanes, places), np.int64),
            late=np.zeros((lanes, len(self.forms), places)),
            cut=np.zeros((lanes, listed)),
            heads=readable(np.zeros((lanes, listed), HEAD)),
            lists=readable(np.zeros((lanes, listed, length), LEVEL)),
            score=np.zeros((lanes, len(self.ks), places)),
            given=np.zeros((lanes, given, given)),
        )

    def _follow(self, history: History) -> None:
        """Take in who came to the history since, and let go who was forgotten."""
        if self._version == history.version:
            return
        if self._places(history) != self._pool.action.shape[1]:
            self._grow(history)
        reach = self._reach(history)
        if self.distance.measure.kind == GIVEN:
            self._ask(history, reach)
        self._advance(history, reach)
        self._version = history.version

    def _reach(self, history: History) -> IntArray:
        """Return which rows of each lane are to be compared, from first up to end, shape (B, 2)."""
        state, rows = history.ring()
        reach = np.empty((history.lanes, 2), np.int64)
        if self.current_step:
            kernels()["present"](readable(state), readable(rows), reach)
        else:
            reach[:, 0], reach[:, 1] = state["first"], state["end"]
        return reach

    def _advance(self, history: History, reach: IntArray) -> None:
        rows = readable(history.ring()[1])
        kernels()["follow"](rows, reach, self.own, self._pool, self._plan, self._room, self._values)

    def _ask(self, history: History, reach: IntArray) -> None:
        """Ask a distance of one's own about each newcomer and everybody."""
        rows = history.ring()[1]
        self._advance(history, np.stack([reach[:, 0], np.minimum(np.maximum(self.own[:, 1], reach[:, 0]), reach[:, 1])], 1))
        upto = self.own.copy()
        for b, (_, end) in enumerate(reach):
            for number in range(self.own[b, 1], end):
                features = rows[b]["features"][:, self._columns]
                others = np.arange(self.own[b, 0], number)
                told = self.distance(features[others % rows.shape[1]], features[number % rows.shape[1]])
                here, there = number % self._pool.action.shape[1], others % self._pool.action.shape[1]
                self._pool.given[b, here, there] = self._pool.given[b, there, here] = told
                upto[:] = self.own
                upto[b, 1] = number + 1
                self._advance(history, upto)

    def _grow(self, history: History) -> None:
        """Move everybody to a larger ring."""
        old, places = self._pool, self._places(history)
        self._pool = self._make_pool(history.lanes, places)
        self._room = np.zeros((4, places))
        for b, (first, end) in enumerate(self.own):
            numbers = np.arange(first, end)
            here, there = numbers % old.action.shape[1], numbers % places
            for name, before, after in zip(Pool._fields, old, self._pool, strict=True):
                if name == "given" and before.shape[1] > 1:
                    after[b][np.ix_(there, there)] = before[b][np.ix_(here, here)]
                elif after.shape[BY_PLACE.get(name, 1)] == places:
                    axis = BY_PLACE.get(name, 1) - 1
                    np.moveaxis(after[b], axis, 0)[there] = np.moveaxis(before[b], axis, 0)[here]


# Notions --------------------------------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """How many pairs of people there are in each lane, shape (B,) each."""

    compared: IntArray
    left_out: IntArray  # because the action probabilities of one were not reported


@dataclass(frozen=True, kw_only=True)
class _Individual:
    """What individual notions have in common."""

    distance: Any = HEOM()
    exclude: Sequence[str] | None = None
    undefined: Undefined = "nan"
    current_step: bool = False
    worst: ClassVar[float] = 1.0
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "distance", _distance(self.distance))
        if isinstance(self.exclude, str):
            raise ValueError(f"exclude must be several names or None, got {self.exclude!r}")
        if self.exclude is not None:
            object.__setattr__(self, "exclude", tuple(self.exclude))
        checked("undefined", self.undefined, Undefined)
        object.__setattr__(self, "current_step", checked("current_step", self.current_step, bool))

    def check(self, spec: FairSpec) -> None:
        """Raise ValueError if an environment cannot tell what the notion needs."""
        self._columns(spec)

    def sizes(self, history: History) -> IntArray:
        """Return how many people of each lane are compared, shape (B,); the published discount forgets for itself."""
        return self._comparisons(history).people(history)[0]

    def _columns(self, spec: FairSpec) -> IntArray:
        """Return which features are compared."""
        excluded = spec.sensitive_features if self.exclude is None else self.exclude
        for name in excluded:
            if name not in spec.features:
                known = ", ".join(spec.features) or "none"
                raise ValueError(f"exclude must be of the features ({known}), got {name!r}")
        columns = [c for c, name in enumerate(spec.features) if name not in excluded]
        if not columns:
            raise ValueError(f"{self.name} needs features that are not excluded; this environment has none")
        return np.array(columns, np.int64)

    def _comparisons(self, history: History) -> Comparisons:
        def make() -> Comparisons:
            return Comparisons(history, self.distance, self._columns(history.spec), current_step=self.current_step)

        comparisons: Comparisons = history.follow((self.distance, self.exclude, self.current_step), make)
        return comparisons

    def _filled(self, gap: FloatArray, last: FloatArray | None) -> FloatArray:
        """Return the gaps with what undefined ones are to be."""
        filled = {"fair": 0.0, "unfair": self.worst, "last": last, "paper": 0.0}.get(self.undefined)
        return gap if filled is None else np.where(np.isnan(gap), filled, gap)


@dataclass(frozen=True, kw_only=True)
class IndividualFairness(_Individual):
    """Individual fairness (Dwork et al. 2012): people who are alike are to be treated alike.

    The gap is the mean over all pairs of people of ``max(0, D - lipschitz * d)``: how much further apart their
    treatments are than they themselves are. 0 is fair, 1 the largest. People whose action probabilities were not
    reported are in no pair, see `pairs`. Each pair has the product of its weights in the history.

    Args:
        distance: Between people (d): a `Distance`, or a function of two people, see `Given`.
        exclude: Names of features that are not to make people differ; None: the environment's sensitive features.
        form: ``"violation"``, or ``"paper"``: equation 8 of Cimpean et al. (2025), whose objective, minus the gap, is
            mean(d) - mean(D) - 1. It is at most 0, and depends on the people met even where all are treated alike.
        lipschitz: How differently people may be treated for each unit of distance between them, in the violation form.
        between: How treatments are compared (D): by `hellinger` or `total_variation` of the action probabilities.
        undefined: What the gap is if there are no two people: ``"nan"``; ``"fair"``: 0; ``"unfair"``: the largest there
            can be; ``"last"``: the one before, see `gap`; ``"paper"``: 0, and also for two people, as in the published
            code.
        current_step: Compare the people of each lane's last step alone.

    In the paper's form a pair that has no distance (NaN: published Bray-Curtis; a history with ``scores``) is left out
    of the sum and counted in the mean, as in the published code; in the violation form the gap has no value.

    Raises:
        ValueError: An unknown option.
    """

    form: Literal["violation", "paper"] = "violation"
    lipschitz: float = 1.0
    between: Literal["hellinger", "total_variation"] = "hellinger"
    name: ClassVar[str] = "individual_fairness"

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        checked("form", self.form, Literal["violation", "paper"])
        checked("between", self.between, Literal["hellinger", "total_variation"])
        object.__setattr__(self, "lipschitz", checked("lipschitz", self.lipschitz, Weight))

    @property
    def worst(self) -> float:  # type: ignore[override]
        """The largest gap there can be."""
        return 2.0 if self.form == "paper" else 1.0

    def gap(self, history: History, *, last: FloatArray | None = None) -> FloatArray:
        """Return the gap in each lane, shape (B,): 0 is fair in the violation form.

        Args:
            history: What was decided.
            last: With ``undefined="last"``: the gaps before, shape (B,); NaN where there is none.

        Raises:
            ValueError: The environment cannot tell what the notion needs.
        """
        published = isinstance(history.memory, Discounted) and history.memory.algorithm == "paper"
        if published and (self.form, self.between) != ("paper", "hellinger"):
            raise ValueError(f"form must be 'paper' and between 'hellinger' on a history with algorithm='paper', got {self}")
        comparisons = self._comparisons(history)
        form, between = int(self.form == "paper"), int(self.between == "total_variation")
        gap = comparisons.mean(history, form, between, 1.0 if form else self.lipschitz)
        if form:
            gap = 1.0 - gap
        if self.undefined == "paper" and not published:
            gap = np.where(comparisons.people(history)[0] <= 2, np.nan, gap)
        return self._filled(gap, last)

    def pairs(self, history: History) -> Pairs:
        """Return how many pairs are compared, and how many are left out for want of action probabilities."""
        people, known = self._comparisons(history).people(history)
        compared = known * (known - 1) // 2
        return Pairs(compared, people * (people - 1) // 2 - compared)


@dataclass(frozen=True, kw_only=True)
class Consistency(_Individual):
    """Consistency score complement (Zemel et al. 2013): the nearest of each person are to be decided on alike.

    The gap is the mean over people, by their weights in the history, of the share of their k nearest neighbours who
    were decided on otherwise; with two actions that is ``|a - mean of the neighbours' a|``. 0 is fair, 1 the largest.
    With fewer than k others all of them are neighbours; who is as far as the k-th shares the places that are left. The
    cost of a step grows with the number of people; over a `Full` history, without a bound.

    Args:
        distance: Between people: a `Distance`, or a function of two people, see `Given`.
        exclude: Names of features that are not to make people differ; None: the environment's sensitive features.
        k: How many neighbours; less than a window's size.
        ties: Who is a neighbour of several people as far as the k-th: ``"shared"``; ``"first"``: whom the published
            code listed first (slow: all pairs are compared anew). Its lists in a window that is full, which keep people
            who have left and lose others, are not reproduced.
        undefined: What the gap is if there are no two people: ``"nan"``; ``"fair"``: 0; ``"unfair"``: 1; ``"last"``: the
            one before, see `gap`; ``"paper"``: 0, as in the published code.
        current_step: Compare the people of each lane's last step alone.

    Raises:
        ValueError: An unknown option.
    """

    k: int = 5
    ties: Literal["shared", "first"] = "shared"
    name: ClassVar[str] = "consistency"

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "k", checked("k", self.k, Count))
        checked("ties", self.ties, Literal["shared", "first"])

    def gap(self, history: History, *, last: FloatArray | None = None) -> FloatArray:
        """Return the gap in each lane, shape (B,): 0 is fair, 1 the largest.

        Args:
            history: What was decided.
            last: With ``undefined="last"``: the gaps before, shape (B,); NaN where there is none.

        Raises:
            ValueError: The environment cannot tell what the notion needs, or k is not less than the window's size.
        """
        size = history.memory.capacity
        if size is not None and self.k >= size and not self.current_step:
            raise ValueError(f"k must be below the window's size, {size}, got {self.k}")
        comparisons = self._comparisons(history)
        look = comparisons.otherwise if self.ties == "shared" else comparisons.otherwise_of_first
        return self._filled(look(history, self.k), last)


INDIVIDUAL: Mapping[str, type[IndividualFairness] | type[Consistency]] = {
    notion.name: notion for notion in (IndividualFairness, Consistency)
}
"""The individual notions by name."""

SHORT: Mapping[str, str] = {"IF": "individual_fairness", "CSC": "consistency"}
"""The abbreviations of the FAReL study."""

__all__ = [
    "HEOM",
    "HMOM",
    "INDIVIDUAL",
    "SHORT",
    "BrayCurtis",
    "Consistency",
    "Distance",
    "Given",
    "IndividualFairness",
    "Minkowski",
    "Pairs",
    "hellinger",
    "total_variation",
]
