"""Distances between people (by features) and between treatments (by action probabilities)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core.compilation import copyto, kernel, rule
from fair_envs.metrics.history import TOLERANCE
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.parameters import Positive, Range, checked

Scaling = Literal["distance", "similarity", "raw"]

# The options in compiled code
POWERS, BRAY_CURTIS, GIVEN = range(3)  # how people are compared
DISTANCE, SIMILARITY, RAW = range(3)  # how the distance is transformed
HELLINGER, TOTAL_VARIATION = range(2)  # how treatments are compared


# Between people ---------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """A distance between people, in the form that compiled code reads."""

    kind: int
    power: float = 1.0  # of the differences, before the sum
    root: float = 1.0  # of that sum
    zero: float = 0.0  # Bray-Curtis distance of two people whose features are all 0
    scaling: int = RAW
    rate: float = 0.0


class Distance:
    """How far apart two people are: 0 if their features are the same.

    ``distance(rows, row)`` compares people directly, for experiments; notions compare them in compiled code.
    """

    overlap: ClassVar[bool] = False  # whether nominal features count 0 if equal and 1 if they differ

    @property
    def measure(self) -> Measure:
        """The distance in the form that compiled code reads."""
        raise NotImplementedError

    def __call__(self, rows: ArrayLike, row: ArrayLike, *, nominal: Sequence[int] = ()) -> Any:
        """Return the distance from each row, shape (..., features), to one person, shape (features,): shape (...).

        Args:
            rows: The people.
            row: The person to compare with.
            nominal: Columns that are codes without an order.
        """
        given, one = np.asarray(rows, np.float64), np.asarray(row, np.float64)
        if one.ndim != 1 or given.shape[-1:] != one.shape:
            raise ValueError(f"rows must have as many columns as row, {one.shape}, got {given.shape}")
        people = np.concatenate([given.reshape(-1, one.size), one[np.newaxis]]).T.copy()
        flags = np.zeros(one.size, bool)
        flags[list(nominal)] = self.overlap
        out = np.zeros((2, people.shape[1]))
        measured(self.measure, people, flags, out)
        return out[0, :-1].reshape(given.shape[:-1])[()]


@dataclass(frozen=True, kw_only=True)
class BrayCurtis(Distance):
    """Bray-Curtis dissimilarity, sum of ``|u - v|`` over sum of ``|u + v|``: in [0, 1] for features of at least 0.

    Two people who are opposite in every feature are infinitely far apart.

    Args:
        variant: The distance of two people whose features are all 0: ``"sound"``: 0; ``"code"``: NaN, as in the
            published code.
    """

    variant: Literal["sound", "code"] = "sound"

    def __post_init__(self) -> None:
        """Check the options."""
        checked("variant", self.variant, Literal["sound", "code"])

    @property
    def measure(self) -> Measure:
        """The distance in the form that compiled code reads."""
        return Measure(BRAY_CURTIS, zero=math.nan if self.variant == "code" else 0.0)


@dataclass(frozen=True, kw_only=True)
class Scaled(Distance):
    """An unbounded distance with an optional transformation.

    Args:
        scaling: ``"distance"``: ``1 - exp(-rate * d)``, in [0, 1]; ``"raw"``: d itself; ``"similarity"``: ``exp(-rate *
            d)``, which the published code of FAReL uses as if it were a distance. With it, the people that count as
            nearest are those whose features differ most.
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
    """Heterogeneous Euclidean-overlap metric (Wilson and Martinez 1997), for features that are already normalised.

    A numerical feature contributes its difference. A nominal feature contributes 1 if it differs.

    Args:
        variant: ``"sound"``: the root of the sum of squares; ``"paper"``: the sum of differences, as printed in the
            paper of FAReL; ``"code"``: the sum of squares without a root, as in its code.
    """

    variant: Literal["sound", "paper", "code"] = "sound"
    overlap: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        checked("variant", self.variant, Literal["sound", "paper", "code"])

    @property
    def measure(self) -> Measure:
        """The distance in the form that compiled code reads."""
        power, root = {"sound": (2.0, 2.0), "paper": (1.0, 1.0), "code": (2.0, 1.0)}[self.variant]
        return self._measure(power, root)


@dataclass(frozen=True, kw_only=True)
class HMOM(Scaled):
    """Heterogeneous Manhattan-overlap metric: the sum of differences, plus 1 for each nominal feature that differs.

    The paper of FAReL, its code and the literature agree on this definition.
    """

    overlap: ClassVar[bool] = True

    @property
    def measure(self) -> Measure:
        """The distance in the form that compiled code reads."""
        return self._measure(1.0, 1.0)


@dataclass(frozen=True)
class Minkowski(Scaled):
    """Minkowski distance; all features are treated as numbers.

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
        """The distance in the form that compiled code reads."""
        return self._measure(self.p, self.p)


@dataclass(frozen=True)
class Given(Distance):
    """A user-defined distance. It is called from Python once for each pair of people, and its values are stored.

    Args:
        function: ``(u, v) -> number``, or ``(rows, row) -> numbers`` if vectorised; the numbers must be at least 0. It
            must be symmetric: the order of u and v must make no difference.
        vectorised: Whether it takes several people at once, shape (n, features).
    """

    function: Callable[..., Any]
    vectorised: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        if not callable(self.function):
            raise ValueError(f"distance must be a Distance or a function of two people, got {self.function!r}")

    @property
    def measure(self) -> Measure:
        """The distance in the form that compiled code reads."""
        return Measure(GIVEN)

    def __call__(self, rows: ArrayLike, row: ArrayLike, *, nominal: Sequence[int] = ()) -> Any:
        """Return the values for each row, shape (n, features), and one person, shape (features,): shape (n,)."""
        people, one = np.asarray(rows, np.float64), np.asarray(row, np.float64)
        if not len(people):
            return np.zeros(0)
        reported = self.function(people, one) if self.vectorised else [self.function(person, one) for person in people]
        reported = np.asarray(reported, np.float64)
        if reported.shape != people.shape[:1] or not (reported >= 0).all():
            raise ValueError(f"distance must return numbers of at least 0, one for each person, got {reported!r}")
        return reported


def as_distance(given: Any) -> Distance:
    """Return the argument as a `Distance`; a function is wrapped in `Given`."""
    if isinstance(given, type) and issubclass(given, Distance):
        raise ValueError(f"distance must be an instance, such as {given.__name__}(), got the class")
    distance = given if isinstance(given, Distance) else Given(given)
    try:
        hash(distance)
    except TypeError:
        raise ValueError(f"distance must be hashable, got {given!r}") from None
    return distance


@rule
def spread(
    measure: Any, features: NDArray[Any], nominal: Flags, place: int, start: int, stop: int, out: Floats
) -> None:
    """Write the distances of the person at one place to those at other places, before root and scaling.

    Args:
        measure: `Measure`.
        features: Shape (features, places).
        nominal: Which features count 0 if equal and 1 if they differ, shape (features,).
        place: Place of the person.
        start: First place of the others.
        stop: Place after the last.
        out: Shape (2, places): the result, and working space.
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
            if whole[j] > 0.0:
                near[j] = near[j] / whole[j]
            else:
                near[j] = np.inf if near[j] > 0.0 else measure.zero


@rule
def scale(measure: Any, raw: Floats, out: Floats) -> None:
    """Apply root and scaling to the distances from `spread`, shape (n,)."""
    if measure.root == 1.0:
        copyto(out, raw)
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
    """Return the Hellinger distance between action distributions: 0 if equal, 1 if they share no action.

    Args:
        p: Probabilities, shape (..., A).
        q: Probabilities, shape (..., A).

    Raises:
        ValueError: The arguments are not distributions: a number below 0, NaN, or a sum other than 1.
    """
    return _treatments(HELLINGER, p, q)


def total_variation(p: ArrayLike, q: ArrayLike) -> Any:
    """Return the total variation distance between action distributions: 0 if equal, 1 if they share no action.

    Args:
        p: Probabilities, shape (..., A).
        q: Probabilities, shape (..., A).

    Raises:
        ValueError: The arguments are not distributions: a number below 0, NaN, or a sum other than 1.
    """
    return _treatments(TOTAL_VARIATION, p, q)


def _treatments(between: int, p: ArrayLike, q: ArrayLike) -> Any:
    one, other = _distributions("p", p), _distributions("q", q)
    if one.shape[-1] != other.shape[-1]:
        raise ValueError(f"q must have as many actions as p, {one.shape[-1]}, got {other.shape[-1]}")
    try:
        one, other = np.broadcast_arrays(one, other)
    except ValueError:
        raise ValueError(f"q must have the shape of p, {one.shape}, or one that fits it, got {other.shape}") from None
    columns = [side.reshape(-1, side.shape[-1]).T.copy() for side in (one, other)]
    if between == HELLINGER:
        columns = [np.sqrt(side) for side in columns]
    out = np.zeros(columns[0].shape[1])
    treated(between, *columns, out)
    return out.reshape(one.shape[:-1])[()]


def _distributions(name: str, given: ArrayLike) -> Floats:
    probs = np.asarray(given, np.float64)
    if probs.ndim < 1 or not ((probs >= 0).all() and (abs(probs.sum(-1) - 1) <= TOLERANCE).all()):
        raise ValueError(f"{name} must be distributions: at least 0 and summing to 1, got {given!r}")
    return probs


@rule
def treated_apart(between: int, columns: Floats, own: Floats, start: int, stop: int, out: Floats) -> None:
    """Write how differently one person was treated from the people at some places.

    Args:
        between: `HELLINGER` or `TOTAL_VARIATION`.
        columns: Square roots of the probabilities (`HELLINGER`), or the probabilities, shape (A, places).
        own: The same for the person, shape (A,).
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


@kernel
def measured(measure: Any, people: Floats, nominal: Flags, out: Floats) -> None:
    """Write the distances from the last person to all others, shape (1, people - 1)."""
    last = people.shape[1] - 1
    spread(measure, people, nominal, last, 0, last, out)
    scale(measure, out[0, :last].copy(), out[0, :last])


@kernel
def treated(between: int, one: Floats, other: Floats, out: Floats) -> None:
    """Write the distances between the treatments of pairs of people."""
    for n in range(out.shape[0]):
        treated_apart(between, one, other[:, n], n, n + 1, out)


__all__ = [
    "HEOM",
    "HMOM",
    "BrayCurtis",
    "Distance",
    "Given",
    "Minkowski",
    "hellinger",
    "total_variation",
]
