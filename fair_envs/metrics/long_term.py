"""Short-term and long-term fairness of a process: functions of arrays, and measures that follow a process step by step.

Short-term notions ask how people are decided on; long-term ones ask how far apart the decisions have brought groups, in
what they are or have: their scores, the incidents that strike them, their health. A `Measure` is such a number about
each of B lanes, kept up to date while the lanes are played, at a cost that does not grow with its window. 0 is fair.

Most are of the study of Hu, Lear and Zhang (2024) and of ml-fairness-gym (D'Amour et al. 2020). Where the study's
published code measures something else than its text says, the code's number has a name of its own here.
"""

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.compilation import Kernel, compile_kernels, rule
from fair_envs.interactions import PREFIX
from fair_envs.parameters import Count, Range, Weight, checked

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Info = Mapping[str, NDArray[Any]]
Undefined = Literal["nan", "zero"]
Several = Annotated[int, Range(2)]

# How compiled code compares the counts of two groups
WASSERSTEIN, TOTAL_VARIATION, UNLABELLED, EUCLIDEAN = range(4)
# How it compares the totals of one group's members with an equal split
SHARE, VARIATION, RELATIVE = range(3)
# Where it finds out who is qualified
FEEDBACK, BY_LEVEL, GIVEN = range(3)

GRAIN = 2.0**-30
"""Expectations are rounded to multiples of this, whose sums are exact: what leaves a window leaves nothing behind."""


# Rules ----------------------------------------------------------------------------------------------------------------


@rule
def counts_apart(kind, p, q, positions):  # type: ignore[no-untyped-def]
    """Return how far apart two groups are whose members are counted by level, shape (levels,).

    Args:
        kind: `WASSERSTEIN`, `TOTAL_VARIATION`, both of shares and NaN without members; `UNLABELLED`, `EUCLIDEAN`, both
            of raw counts.
        p: Counts of one group.
        q: Counts of the other.
        positions: Of the levels on their scale, ascending.
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
def unlabelled(p, q):  # type: ignore[no-untyped-def]
    """Return the optimal transport between the numbers of one group and of the other, each of the same weight."""
    one, other = p.copy(), q.copy()
    sort(one)
    sort(other)
    apart = 0.0
    for j in range(one.shape[0]):
        apart += abs(one[j] - other[j])
    return apart / one.shape[0]


@rule
def sort(numbers):  # type: ignore[no-untyped-def]
    """Sort a few numbers in place."""
    for j in range(1, numbers.shape[0]):
        number, k = numbers[j], j
        while k > 0 and numbers[k - 1] > number:
            numbers[k] = numbers[k - 1]
            k -= 1
        numbers[k] = number


@rule
def euclidean(p, q):  # type: ignore[no-untyped-def]
    """Return the Euclidean distance."""
    square = 0.0
    for j in range(p.shape[0]):
        square += (p[j] - q[j]) ** 2
    return np.sqrt(square)


@rule
def furthest(kind, counts, positions):  # type: ignore[no-untyped-def]
    """Return the largest distance between two groups, counts of shape (groups, levels); NaN if none is defined."""
    largest = np.nan
    for g in range(1, counts.shape[0]):
        for k in range(g):
            found = counts_apart(kind, counts[g], counts[k], positions)
            if np.isnan(largest) or found > largest:
                largest = found
    return largest


@rule
def from_equal(kind, totals, whole):  # type: ignore[no-untyped-def]
    """Return how far totals, shape (K,), are from an equal split; NaN where there is nothing to share.

    Args:
        kind: `SHARE`: the largest distance of a share from 1 / K; `VARIATION`: half the sum of them; `RELATIVE`: the
            largest distance of a total from the mean, divided by the largest total.
        totals: What each has.
        whole: What shares are of.
    """
    largest, mean = totals.max(), totals.mean()
    scale, middle = (largest, mean) if kind == RELATIVE else (whole, whole / totals.shape[0])
    if not scale > 0:
        return np.nan
    furthest_off, off = 0.0, 0.0
    for k in range(totals.shape[0]):
        distance = abs(totals[k] - middle) / scale
        furthest_off, off = max(furthest_off, distance), off + distance
    return 0.5 * off if kind == VARIATION else furthest_off


@rule
def opportunity(counts, minimum, zero):  # type: ignore[no-untyped-def]
    """Return the largest gap between the rates of two groups; NaN unless two are defined.

    Args:
        counts: Weight of qualified people by decision, shape (groups, 2).
        minimum: A rate is defined from this weight on.
        zero: Whether an undefined rate is 0.
    """
    low, high, rates = np.inf, -np.inf, 0
    for g in range(counts.shape[0]):
        qualified = counts[g, 0] + counts[g, 1]
        defined = qualified > 0 and qualified >= minimum
        if defined or zero:
            rate = counts[g, 1] / qualified if defined else 0.0
            low, high, rates = min(low, rate), max(high, rate), rates + 1
    return high - low if rates > 1 else np.nan


@rule
def coverage(counts):  # type: ignore[no-untyped-def]
    """Return the largest gap between two groups in ``counts[g, 0] / (counts[g, 1] + 1)``, shape (groups, 2)."""
    low, high = np.inf, -np.inf
    for g in range(counts.shape[0]):
        rate = counts[g, 0] / (counts[g, 1] + 1.0)
        low, high = min(low, rate), max(high, rate)
    return high - low


@rule
def people_in(column):  # type: ignore[no-untyped-def]
    """Return how many people a lane's entry in a column is about: 1 if it has no axis for them."""
    if column.ndim == 1:
        return 1
    return column.shape[1]


@rule
def told_of(column, b, m):  # type: ignore[no-untyped-def]
    """Return a column's number about a person."""
    if column.ndim == 1:
        return column[b]
    if column.ndim == 2:
        return column[b, m]
    return column[b, m, 0]


@rule
def feature_of(features, b, m, k):  # type: ignore[no-untyped-def]
    """Return a person's feature, of features with or without an axis of people."""
    if features.ndim == 1:
        return features[b]
    if features.ndim == 2:
        return features[b, k]
    return features[b, m, k]


@functools.cache
def kernels() -> Mapping[str, Kernel]:
    """Return the compiled loops over lanes and people.

    Those that take in a step return the first lane in which somebody's group, level or state is none, or -1; until
    then nothing is changed.
    """

    def between(kind, p, q, positions, out):  # type: ignore[no-untyped-def]
        for n in range(out.shape[0]):
            out[n] = counts_apart(kind, p[n], q[n], positions)

    def split(kind, totals, whole, out):  # type: ignore[no-untyped-def]
        for n in range(out.shape[0]):
            out[n] = from_equal(kind, totals[n], whole[n])

    def rates_apart(counts, minimum, zero, out):  # type: ignore[no-untyped-def]
        for n in range(out.shape[0]):
            out[n] = opportunity(counts[n], minimum, zero)

    def covered_apart(counts, out):  # type: ignore[no-untyped-def]
        for n in range(out.shape[0]):
            out[n] = coverage(counts[n])

    @rule
    def odd_group(group, action, groups):  # type: ignore[no-untyped-def]
        for b in range(group.shape[0]):
            for m in range(people_in(group)):
                if told_of(action, b, m) >= 0 and not 0 <= told_of(group, b, m) < groups:
                    return b
        return -1

    @rule
    def level_of(features, b, m, column, scale):  # type: ignore[no-untyped-def]
        return int(np.rint(feature_of(features, b, m, column) * scale))

    @rule
    def odd_level(features, action, column, scale, levels):  # type: ignore[no-untyped-def]
        for b in range(action.shape[0]):
            for m in range(people_in(action)):
                if told_of(action, b, m) < 0:
                    continue
                level = feature_of(features, b, m, column) * scale
                if not -0.5 < level < levels - 0.5:  # NaN too
                    return b
        return -1

    @rule
    def shift(counts, entry, sign):  # type: ignore[no-untyped-def]
        counts[int(entry[0]), int(entry[1])] += sign * entry[2]

    def take_people(counts, ring, seen, settings, table, group, action, told, value):  # type: ignore[no-untyped-def]
        minimum, zero, source, column, scale = settings
        window = ring.shape[1]
        odd = odd_group(group, action, counts.shape[1])
        if odd < 0 and source == BY_LEVEL:
            odd = odd_level(told, action, int(column), scale, table.shape[1])
        if odd >= 0:
            return odd
        for b in range(value.shape[0]):
            for m in range(people_in(group)):
                decision, g = told_of(action, b, m), int(told_of(group, b, m))
                if decision < 0:
                    continue
                if source == FEEDBACK:
                    weight = 1.0 if told_of(told, b, m) == 1 else 0.0
                elif source == BY_LEVEL:
                    weight = table[g, level_of(told, b, m, int(column), scale)]
                else:
                    weight = np.rint(told_of(told, b, m) / GRAIN) * GRAIN
                if window > 0:
                    entry = ring[b, seen[b] % window]
                    if seen[b] >= window:
                        shift(counts[b], entry, -1.0)
                    entry[0], entry[1], entry[2] = g, 1.0 if decision == 1 else 0.0, weight
                counts[b, g, 1 if decision == 1 else 0] += weight
                seen[b] += 1
            value[b] = opportunity(counts[b], minimum, zero > 0)
        return -1

    def suppose_person(counts, ring, seen, settings, group, action, weight, value):  # type: ignore[no-untyped-def]
        minimum, zero, window = settings[0], settings[1], ring.shape[1]
        for b in range(value.shape[0]):
            g, decision = group[b], 1 if action[b] == 1 else 0
            if g < 0:
                value[b] = opportunity(counts[b], minimum, zero > 0)
                continue
            full = window > 0 and seen[b] >= window
            if full:
                shift(counts[b], ring[b, seen[b] % window], -1.0)
            added = np.rint(weight[b] / GRAIN) * GRAIN
            counts[b, g, decision] += added
            value[b] = opportunity(counts[b], minimum, zero > 0)
            counts[b, g, decision] -= added
            if full:
                shift(counts[b], ring[b, seen[b] % window], 1.0)

    def take_levels(counts, ring, seen, settings, positions, group, action, features, value):  # type: ignore[no-untyped-def]
        kind, column, scale = int(settings[0]), int(settings[1]), settings[2]
        window = ring.shape[1]
        odd = odd_group(group, action, counts.shape[1])
        if odd < 0:
            odd = odd_level(features, action, column, scale, counts.shape[2])
        if odd >= 0:
            return odd
        for b in range(value.shape[0]):
            for m in range(people_in(group)):
                if told_of(action, b, m) < 0:
                    continue
                g, level = int(told_of(group, b, m)), level_of(features, b, m, column, scale)
                if window > 0:
                    entry = ring[b, seen[b] % window]
                    if seen[b] >= window:
                        counts[b, entry[0], entry[1]] -= 1
                    entry[0], entry[1] = g, level
                counts[b, g, level] += 1
                seen[b] += 1
            value[b] = furthest(kind, counts[b], positions)
        return -1

    @rule
    def add_totals(totals, entry, sign):  # type: ignore[no-untyped-def]
        for k in range(totals.shape[0]):
            totals[k] += sign * entry[k]

    def take_amounts(kind, totals, ring, seen, amounts, value):  # type: ignore[no-untyped-def]
        window = ring.shape[1]
        for b in range(value.shape[0]):
            if amounts[b].min() >= 0:
                if window > 0:
                    entry = ring[b, seen[b] % window]
                    if seen[b] >= window:
                        add_totals(totals[b], entry, -1.0)
                    entry[:] = amounts[b]
                add_totals(totals[b], amounts[b], 1.0)
                seen[b] += 1
            value[b] = from_equal(kind, totals[b], totals[b].sum())
        return -1

    def suppose_amounts(kind, totals, ring, seen, amounts, value):  # type: ignore[no-untyped-def]
        window = ring.shape[1]
        for b in range(value.shape[0]):
            after = totals[b].copy()
            if window > 0 and seen[b] >= window:
                add_totals(after, ring[b, seen[b] % window], -1.0)
            add_totals(after, amounts[b], 1.0)
            value[b] = from_equal(kind, after, after.sum())

    def take_vaccines(counts, effective, group, action, feedback, outcome, value):  # type: ignore[no-untyped-def]
        odd = odd_group(group, action, counts.shape[1])
        if odd >= 0:
            return odd
        for b in range(value.shape[0]):
            for m in range(people_in(group)):
                decision = told_of(action, b, m)
                if decision < 0:
                    continue
                g = int(told_of(group, b, m))
                if decision == 1 and (not effective or told_of(feedback, b, m) == 1):
                    counts[b, g, 0] += 1
                if told_of(outcome, b, m) == -1:
                    counts[b, g, 1] += 1
            value[b] = coverage(counts[b])
        return -1

    def suppose_vaccine(counts, group, value):  # type: ignore[no-untyped-def]
        for b in range(value.shape[0]):
            if group[b] >= 0:
                counts[b, group[b], 0] += 1
            value[b] = coverage(counts[b])
            if group[b] >= 0:
                counts[b, group[b], 0] -= 1

    @rule
    def state_before(features, b, m, states):  # type: ignore[no-untyped-def]
        for state in range(states):
            if feature_of(features, b, m, state) > 0.5:
                return state
        return -1

    @rule
    def state_after(state, decision, outcome):  # type: ignore[no-untyped-def]
        if decision == 1 and state == SUSCEPTIBLE:
            return RECOVERED
        if outcome == -1:
            return INFECTED
        return RECOVERED if outcome == 1 else state

    def take_states(kind, positions, counts, group, action, features, outcome, before, value):  # type: ignore[no-untyped-def]
        states = counts.shape[2]
        odd = odd_group(group, action, counts.shape[1])
        if odd >= 0:
            return odd
        for b in range(value.shape[0]):
            for m in range(people_in(group)):
                if told_of(action, b, m) >= 0 and state_before(features, b, m, states) < 0:
                    return b
        for b in range(value.shape[0]):
            if told_of(action, b, 0) < 0:  # a reset
                continue
            counts[b] = 0
            for m in range(people_in(group)):
                counts[b, told_of(group, b, m), state_before(features, b, m, states)] += 1
            before[b] = furthest(kind, counts[b], positions)
            for m in range(people_in(group)):
                g, state = told_of(group, b, m), state_before(features, b, m, states)
                counts[b, g, state] -= 1
                counts[b, g, state_after(state, told_of(action, b, m), told_of(outcome, b, m))] += 1
            value[b] = furthest(kind, counts[b], positions)
        return -1

    loops = (between, split, rates_apart, covered_apart, take_people, suppose_person, take_levels)
    loops += (take_amounts, suppose_amounts, take_vaccines, suppose_vaccine, take_states)
    return compile_kernels(Measure, *loops)


SUSCEPTIBLE, INFECTED, RECOVERED = range(3)
"""The states of health, as `StateDistance` takes them to follow each other."""


# Functions of arrays --------------------------------------------------------------------------------------------------


# Measures -------------------------------------------------------------------------------------------------------------


class Measure:
    """A number about each of B lanes, kept up to date step by step; 0 is fair, NaN where it is undefined.

    Subclass it and override `measured` and `forget`. Copies are independent.

    Args:
        lanes: How many lanes (B).

    Attributes:
        value: After the last step, shape (B,).
        before: Before the last step, shape (B,); in an episode's first step what `value` is before any step, which is
            NaN unless the measure knows better.
    """

    blank: float = math.nan
    """The value before the first step."""

    def __init__(self, lanes: int) -> None:
        self.lanes = checked("lanes", lanes, Count)
        self.value: Floats = np.full(self.lanes, self.blank)
        self.before: Floats = np.full(self.lanes, self.blank)
        self._shapes: list[tuple[int, ...]] = []  # of the columns that fitted last

    def __copy__(self) -> "Measure":
        return copy.deepcopy(self)

    def update(self, info: Info) -> Floats:
        """Take in a step and return the value after it, fresh, shape (B,).

        Lanes that decided nothing (``fair_action`` -1: a reset) stay as they are.

        Args:
            info: The columns ``fair_*`` of the step in all lanes, lanes first, as a vector environment's ``info``; of
                one lane, a single environment's too.

        Raises:
            ValueError: A column is missing, of an odd shape, or names no group; nothing has changed then.
        """
        value = self.measured(info)
        self.before, self.value = self.value, value
        return value.copy()

    def restart(self, mask: Flags) -> None:
        """Forget the masked lanes, shape (B,), whose next episodes begin."""
        if not np.count_nonzero(mask):
            return
        self.value = np.where(mask, self.blank, self.value)
        self.before = np.where(mask, self.blank, self.before)
        self.forget(mask)

    def measured(self, info: Info) -> Floats:
        """Take in a step and return the value after it, fresh, shape (B,)."""
        raise NotImplementedError

    def forget(self, mask: Flags) -> None:
        """Forget what was taken in of the masked lanes, shape (B,)."""

    def _told(self, info: Info, names: Sequence[str]) -> list[NDArray[Any]]:
        """Return columns of ``info``, with the axis of lanes; ``fair_action`` is to be among the first ones."""
        try:
            told = [np.asarray(info[name]) for name in names]
        except KeyError as missing:
            raise ValueError(f"info must have the key {missing}, got {sorted(map(str, info))}") from None
        if [column.shape for column in told] != self._shapes:
            told = self._fitted(told, names)
        return told

    def _fitted(self, told: list[NDArray[Any]], names: Sequence[str]) -> list[NDArray[Any]]:
        """Return the columns with an axis of lanes, or raise ValueError if their shapes do not fit each other."""
        shape = told[0].shape
        if self.lanes == 1 and (not shape or shape[0] != 1 or told[-1].ndim > 1 + len(shape)):
            told = [column[np.newaxis] for column in told]
            shape = told[0].shape
        for name, column in zip(names, told, strict=True):
            own = column.shape[:-1] if name == PREFIX + "features" else column.shape
            if own != shape or shape[0] != self.lanes:
                raise ValueError(f"{name} must have shape {(self.lanes, *shape[1:])}, got {column.shape}")
        self._shapes = [column.shape for column in told]
        return told


def column_names(*names: str) -> tuple[str, ...]:
    """Return the keys of columns in ``info``."""
    return tuple(PREFIX + name for name in names)


class FunctionMeasure(Measure):
    """A measure from a function of a step's ``info``, for an environment of one's own.

    Args:
        lanes: How many lanes (B).
        function: ``info -> (B,)`` numbers, 0 fair; called once a step.

    Example:
        >>> half = FunctionMeasure(2, lambda info: abs(info["fair_action"] - 0.5))
        >>> half.update({"fair_action": np.array([0, 1])}).tolist()
        [0.5, 0.5]
    """

    def __init__(self, lanes: int, function: Callable[[Info], ArrayLike]) -> None:
        super().__init__(lanes)
        if not callable(function):
            raise ValueError(f"function must be a function of info, got {function!r}")
        self.function = function

    def measured(self, info: Info) -> Floats:
        """Return what the function says."""
        value = np.array(self.function(info), np.float64)
        if value.shape != (self.lanes,):
            raise ValueError(f"function must return shape {(self.lanes,)}, got {value.shape}")
        return value


class OpportunityGap(Measure):
    """How differently often qualified people of each group are decided for: the gap of true positive rates in a window.

    With more than two groups the largest gap between two of them counts. 0 is fair, 1 if all qualified people of one
    group are decided for and none of another. *Harm it can show:* deserving people who are refused more often in one
    group, now. It says nothing about what the decisions do to them later.

    `fair_envs.metrics.GroupNotion` measures the same on histories of decisions, with late feedback and any groups.
    This one also takes expectations, and says what a decision would make of it.

    Args:
        lanes: How many lanes (B).
        groups: How many groups, the values of ``fair_group``.
        window: So many decisions count, on people of all groups together; None: all since the episode's start.
        qualified: Who should be decided for: ``"feedback"``: those of feedback 1 (of feedback that is -1 nobody is
            known to be; where it is revealed of the accepted alone, every defined rate is 1). Numbers of shape (levels,)
            or (groups, levels): the probability, by level of the feature; the gap is then of expected counts. A
            function of ``info``: the probabilities, shape (B,) or (B, M).
        feature: Which feature the level is, with numbers as ``qualified``.
        scale: The level is ``rint(feature * scale)``; levels - 1 by default.
        minimum: A group's rate is undefined while fewer qualified people of it are in the window.
        undefined: What such a rate is: ``"nan"``: left out, and the gap is NaN unless two are left; ``"zero"``: 0, as
            in the published code, whose gap then jumps at the start of an episode.
        one_more: Whether one more decision counts than `window` says. The published training code forgets the oldest
            one only after it has measured.

    Attributes:
        counts: Weight of qualified people by group and decision, shape (B, groups, 2): ``[..., 1]`` decided for.
    """

    def __init__(
        self,
        lanes: int,
        *,
        groups: int = 2,
        window: int | None = 300,
        qualified: Literal["feedback"] | ArrayLike | Callable[[Info], ArrayLike] = "feedback",
        feature: int = 0,
        scale: float | None = None,
        minimum: float = 0.0,
        undefined: Undefined = "nan",
        one_more: bool = False,
    ) -> None:
        self.blank = 0.0 if checked("undefined", undefined, Undefined) == "zero" else math.nan
        super().__init__(lanes)
        groups, room = checked("groups", groups, Several), _room(window)
        if room and checked("one_more", one_more, bool):
            room += 1
        self._qualified = qualified if callable(qualified) else None
        self._table = _probabilities(qualified, groups)
        source = GIVEN if callable(qualified) else BY_LEVEL if self._table.size else FEEDBACK
        told = {FEEDBACK: "feedback", BY_LEVEL: "features", GIVEN: "action"}[source]
        self._names = column_names("group", "action", told)
        default = self._table.shape[1] - 1 if scale is None else scale
        minimum = checked("minimum", minimum, Weight)
        self._settings = np.array([minimum, undefined == "zero", source, feature, default], np.float64)
        self.counts: Floats = np.zeros((self.lanes, groups, 2))
        self._ring = np.zeros((self.lanes, room, 3))  # group, decision, weight
        self._seen = np.zeros(self.lanes, np.int64)

    def measured(self, info: Info) -> Floats:
        """Take in a step and return the gap after it."""
        group, action, told = self._told(info, self._names)
        if self._qualified is not None:
            told = np.asarray(self._qualified(info), np.float64).reshape(action.shape)
        value: Floats = np.empty(self.lanes)
        odd = kernels()["take_people"](
            self.counts, self._ring, self._seen, self._settings, self._table, group, action, told, value
        )
        return value

    def if_taken(self, group: ArrayLike, action: ArrayLike, qualified: ArrayLike) -> Floats:
        """Return the value that the measure would take if one more decision were taken now, shape (B,).

        Args:
            group: Of the person decided on, shape (B,); -1: nobody.
            action: The decision, shape (B,).
            qualified: Whether it should be 1, or the probability, shape (B,).
        """
        raise NotImplementedError

    def forget(self, mask: Flags) -> None:
        """Forget the masked lanes."""
        self.counts[mask] = 0
        self._seen[mask] = 0


class WindowDistance(Measure):
    """How far apart the groups' distributions over ordered levels are, among the people of the last decisions.

    Args:
        lanes: How many lanes (B).
        groups: How many groups, the values of ``fair_group``.
        levels: How many levels.
        window: So many people count, of all groups together; None: all since the episode's start.
        level_of: Which feature the level is, or a function of ``info`` that returns levels, shape (B,) or (B, M).
        scale: The level is ``rint(feature * scale)``; levels - 1 by default.
        distance: ``"wasserstein"``: the 1-Wasserstein distance in levels (or ``positions``) of the groups' shares;
            ``"total_variation"``: of their shares; ``"as_coded"``: what the published training code compares, see
            `unlabelled_distance`.
        positions: Of the levels on their scale, ascending, shape (levels,); 0, 1, ... by default.

    Attributes:
        counts: People by group and level, shape (B, groups, levels).
    """

    def __init__(
        self,
        lanes: int,
        *,
        groups: int,
        levels: int,
        window: int | None = 300,
        level_of: int | Callable[[Info], ArrayLike] = 0,
        scale: float | None = None,
        distance: Literal["wasserstein", "total_variation", "as_coded"] = "wasserstein",
        positions: ArrayLike | None = None,
    ) -> None:
        super().__init__(lanes)
        raise NotImplementedError


class ShareDeviation(Measure):
    """The largest distance of an individual's share of all that was given out from an equal share, in a window.

    Args:
        lanes: How many lanes (B).
        individuals: How many individuals (K), the same in every step.
        window: So many steps count; None: the whole episode.

    Attributes:
        totals: What each individual was given, shape (B, K).
    """

    def __init__(self, lanes: int, *, individuals: int, window: int | None = 300) -> None:
        super().__init__(lanes)
        raise NotImplementedError

    def if_taken(self, allocation: ArrayLike) -> Floats:
        """Return the value that the measure would take if this were given out now, shape (B,).

        Args:
            allocation: Shape (B, K).
        """
        raise NotImplementedError


class IncidentDistance(Measure):
    """How far the shares of incidents (``fair_feedback``) that struck each individual are from equal shares.

    Args:
        lanes: How many lanes (B).
        individuals: How many individuals (K), the same in every step.
        window: So many steps count; None: the whole episode.
        distance: ``"total_variation"`` of the shares from equal ones; ``"as_coded"``: what the published training code
            compares, see `relative_deviation`.

    Attributes:
        totals: Incidents of each individual, shape (B, K).
    """

    def __init__(
        self,
        lanes: int,
        *,
        individuals: int,
        window: int | None = 300,
        distance: Literal["total_variation", "as_coded"] = "total_variation",
    ) -> None:
        super().__init__(lanes)
        raise NotImplementedError


class VaccinationGap(Measure):
    """How differently many vaccinations each group got for each of its newly infected, since the episode's start.

    Args:
        lanes: How many lanes (B).
        groups: How many groups, the values of ``fair_group``.
        effective: Whether only vaccinations of susceptible people count (``fair_feedback`` 1); the published code
            counts all.

    Attributes:
        counts: Vaccinations and infections by group, shape (B, groups, 2).
    """

    blank = 0.0

    def __init__(self, lanes: int, *, groups: int, effective: bool = True) -> None:
        super().__init__(lanes)
        raise NotImplementedError

    def if_taken(self, group: ArrayLike) -> Floats:
        """Return the value that the measure would take if somebody of a group were vaccinated now, shape (B,).

        Args:
            group: Whose member, shape (B,); -1: nobody's.
        """
        raise NotImplementedError


class StateDistance(Measure):
    """How far apart the groups' shares of people in each state of health are, after the step.

    Args:
        lanes: How many lanes (B).
        groups: How many groups, the values of ``fair_group``.
        states: How many states, the first columns of ``fair_features``; the first three are susceptible, infected and
            recovered.
        distance: ``"total_variation"`` of shares; ``"wasserstein"`` of shares, the states in their order;
            ``"as_coded"``: the Euclidean distance of raw counts, as in the published code.

    Attributes:
        counts: People by group and state, shape (B, groups, states).
    """

    def __init__(
        self,
        lanes: int,
        *,
        groups: int,
        states: int = 3,
        distance: Literal["total_variation", "wasserstein", "as_coded"] = "total_variation",
    ) -> None:
        super().__init__(lanes)
        raise NotImplementedError
