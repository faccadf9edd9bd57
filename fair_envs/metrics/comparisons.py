"""State that individual notions keep beside a history: people in the window, their neighbours, and sums over pairs.

Each new person is compared once with everyone in the window. If neighbour lists are kept, a person who leaves is
compared once more. A step therefore takes time in proportion to the window, and no table of all pairs is stored. The
sums do not drift: each person holds the sum over their pairs with later people, and the total adds up these sums.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core.compilation import copyto, kernel, readable, rule
from fair_envs.metrics.distances import (
    GIVEN,
    HELLINGER,
    SIMILARITY,
    Distance,
    Measure,
    scale,
    spread,
    treated_apart,
)
from fair_envs.metrics.history import Discounted, History, fade
from fair_envs.support.aliases import Flags, Floats, Floats32, Ints, Record, Records

VIOLATION, PAPER = range(2)  # the term that each pair contributes


# The people in the window ---------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """Data of the people in the window, by place in a ring buffer; compiled code uses it for one lane, without B."""

    features: Floats32  # (B, features, places)
    probs: Floats  # (B, A, places)
    roots: Floats  # (B, A, places), of probs
    known: Floats  # (B, places), 1: the probabilities were reported
    action: Ints  # (B, places)
    step: Ints  # (B, places)
    late: Floats  # (B, fairness notions, places), sum over each person's pairs with later people
    cut: Floats  # (B, places), largest distance that each neighbour list covers
    heads: NDArray[np.void]  # (B, places), heads of the neighbour lists
    lists: NDArray[np.void]  # (B, places, L)
    score: Floats  # (B, values of k, places), share of the k nearest with another decision
    given: Floats  # (B, places, places), values of a user-defined distance


# Each person's nearest neighbours are a list of distances in ascending order. The list is longer than k, so that it is
# seldom too short after someone leaves. Only then is it built again.
HEAD = np.dtype([("levels", np.int64), ("held", np.int64)])  # how many distances, how many people
LEVEL = np.dtype([("distance", np.float64), ("people", np.int32), ("otherwise", np.int32)])  # got another decision

SLACK = 1e-12
"""Relative tolerance between two computations of the same distance.

They are bit-identical with differences and squares; with other powers that depends on the machine's math library.
"""

BY_PLACE = {"features": 2, "probs": 2, "roots": 2, "late": 2, "score": 2}  # the axis of the places; else 1


class People(NamedTuple):
    """Columns of a history's rows, kept apart so that the compiled code does not depend on the number of features."""

    features: Floats32  # (B, places, features of the history)
    action: Ints  # (B, places)
    action_probs: Floats32  # (B, places, A)
    step: Ints  # (B, places)


class Plan(NamedTuple):
    """What to compute for the people in the window, in the form that compiled code reads."""

    measure: Measure
    columns: Ints  # (features,), of the history's features
    nominal: Flags  # (features,)
    forms: Ints  # (fairness notions, 2): form, how treatments are compared
    bounds: Floats  # (fairness notions,): how differently people may be treated for each unit of distance
    ks: Ints  # (values of k,)
    most: int  # the largest
    keep: int  # how many neighbours are listed for each person
    factor: float  # each later step multiplies the weight by this
    published: bool  # whether the history discounts as the published code does
    minimum: int
    delay: int
    discount: float
    threshold: float


@rule
def lane_of(pool: Any, b: int) -> Any:
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
def part(first: int, end: int, places: int, which: int) -> tuple[int, int]:
    """Return one of the two stretches of the ring that hold the rows from first up to end; it may be empty."""
    start = first % places
    stop = start + end - first
    if which == 0:
        return start, min(stop, places)
    return 0, max(stop - places, 0)


@rule
def compare(lane: Any, plan: Any, place: int, start: int, stop: int, out: Floats) -> None:
    """Write the distances of one person to others, before root and scaling, shape (2, places)."""
    if plan.measure.kind == GIVEN:
        copyto(out[0, start:stop], lane.given[place, start:stop])
    else:
        spread(plan.measure, lane.features, plan.nominal, place, start, stop, out)


@rule
def settle(lane: Any, plan: Any, people: Any, b: int, row: int, place: int) -> None:
    """Write a new person's data at a place."""
    for f in range(plan.columns.shape[0]):
        lane.features[f, place] = people.features[b, row, plan.columns[f]]
    known = 0.0
    for a in range(lane.probs.shape[0]):
        probability = np.float64(people.action_probs[b, row, a])
        lane.probs[a, place] = probability
        lane.roots[a, place] = np.sqrt(probability) if probability >= 0.0 else np.nan
        if probability != 0.0:
            known = 1.0
    lane.known[place] = known
    lane.action[place] = people.action[b, row]
    lane.step[place] = people.step[b, row]
    for form in range(plan.forms.shape[0]):
        lane.late[form, place] = 0.0


# Neighbours


@rule
def insert(head: Record, levels: Records, distance: float, otherwise: int, keep: int) -> float:
    """Insert a neighbour, cut the list where it is long enough, and return that distance; infinite if it is not cut.

    Args:
        head: Head of the list.
        levels: The list, shape (L,).
        distance: Distance of the neighbour, at most the cut.
        otherwise: Whether the neighbour got another decision.
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
def move(level: Record, to: Record) -> None:
    """Copy an entry of a list."""
    to.distance, to.people, to.otherwise = level.distance, level.people, level.otherwise


@rule
def remove(head: Record, levels: Records, distance: float, otherwise: int) -> bool:
    """Remove a neighbour from a person's list, and return whether it was found."""
    at = 0
    while at < head.levels and levels[at].distance != distance:
        at += 1
    if at == head.levels:
        return False
    levels[at].people -= 1
    levels[at].otherwise -= otherwise
    head.held -= 1
    if levels[at].people == 0:
        head.levels -= 1
        for later in range(at, head.levels):
            move(levels[later + 1], levels[later])
    return True


@rule
def share(head: Record, levels: Records, k: int) -> float:
    """Return the share of a person's k nearest who got another decision, NaN without any.

    People at the same distance as the k-th share the remaining places equally, so the order does not matter.
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
def fill(lane: Any, plan: Any, i: int, first: int, end: int, far: Floats) -> None:
    """Rebuild a person's list from the distances to everyone, before root and scaling, which keep the order."""
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
def sign_of(measure: Any) -> float:
    """Return -1 if the farthest people count as nearest."""
    return -1.0 if measure.scaling == SIMILARITY else 1.0


@rule
def meet(lane: Any, plan: Any, place: int, first: int, number: int, far: Floats) -> None:
    """Add a new person to everyone's neighbour list, and everyone to theirs."""
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
def leave(lane: Any, plan: Any, own: Ints, room: Floats) -> None:
    """Remove the oldest person."""
    place = own[0] % lane.action.shape[0]
    own[0] += 1
    if plan.ks.shape[0] == 0:
        return
    heads, lists, cut, actions, score, ks = lane.heads, lane.lists, lane.cut, lane.action, lane.score, plan.ks
    others, sign, action, far = own[1] - own[0] - 1, sign_of(plan.measure), actions[place], room[0]
    enough = min(plan.most, others)
    for which in range(2):
        start, stop = part(own[0], own[1], actions.shape[0], which)
        compare(lane, plan, place, start, stop, room)
        for j in range(start, stop):
            if sign * far[j] <= cut[j] + SLACK * abs(cut[j]):
                found = remove(heads[j], lists[j], sign * far[j], int(actions[j] != action))
                if found and heads[j].held == others:
                    cut[j] = np.inf
                elif not found or heads[j].held < enough:
                    look_around(lane, plan, j, own, room[2:])
                for c in range(ks.shape[0]):
                    score[c, j] = share(heads[j], lists[j], ks[c])


@rule
def look_around(lane: Any, plan: Any, i: int, own: Ints, room: Floats) -> None:
    """Compute a person's distances again and rebuild their list."""
    for which in range(2):
        start, stop = part(own[0], own[1], lane.action.shape[0], which)
        compare(lane, plan, i, start, stop, room)
    fill(lane, plan, i, own[0], own[1], room[0])


# Pairs


@rule
def pair(lane: Any, plan: Any, place: int, start: int, stop: int, room: Floats) -> None:
    """Add the terms of a new person's pairs with those at some places, at distances ``room[0]``."""
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
def enter(lane: Any, plan: Any, people: Any, b: int, row: int, number: int, own: Ints, room: Floats) -> None:
    """Compare a new person with everyone in the window."""
    places = lane.action.shape[0]
    place, before = number % places, (number - 1) % places
    settle(lane, plan, people, b, row, place)
    decay = 1.0
    if plan.factor != 1.0 and number > own[0]:
        decay = plan.factor ** (lane.step[place] - lane.step[before])
    for which in range(2):
        start, stop = part(own[0], number, places, which)
        compare(lane, plan, place, start, stop, room)
        for form in range(plan.forms.shape[0] if decay != 1.0 else 0):
            fade(lane.late[form, start:stop], decay)
        if plan.forms.shape[0] > 0 and lane.known[place] == 1.0:
            pair(lane, plan, place, start, stop, room)
    if plan.ks.shape[0] > 0:
        meet(lane, plan, place, own[0], number, room[0])
    own[1] = number + 1


@rule
def forget_as_published(lane: Any, plan: Any, own: Ints, room: Floats) -> float:
    """Return the discounted mean of the published code, and remove people whose pairs barely change it.

    The newest ``minimum - delay`` people only count as the later person of a pair. The exponent starts behind them. The
    small changes that end the sum need not be consecutive.
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
def conclude(lane: Any, plan: Any, own: Ints, out: Floats) -> None:
    """Write the mean over pairs for each fairness notion, and the mean share of other decisions for each k."""
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
    for column in range(out.shape[0]):
        divisor = pairs if column < forms else weights
        out[column] = out[column] / divisor if divisor > 0.0 else np.nan


@rule
def total(values: Floats) -> float:
    """Return the sum, in four strands so that additions do not wait for each other."""
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
def weigh(lane: Any, factor: float, own: Ints, out: Floats) -> tuple[float, float]:
    """Add to the weighted sums, and return the weight of all pairs with known treatments, and of all people."""
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


@kernel
def present(state: Records, rows: Records, reach: Ints) -> None:
    """Write the row numbers of the current step: the first row, and the one after the last, shape (B, 2)."""
    for b in range(state.shape[0]):
        lane = state[b]
        first = lane.end
        while first > lane.first:
            row = rows[b, (first - 1) % rows.shape[1]]
            if row.step != lane.step or row.episode != lane.episode:
                break
            first -= 1
        reach[b, 0], reach[b, 1] = first, lane.end


# fmt: off
@kernel
def follow(
    of_people: Floats32, acted: Ints, reported: Floats32, when: Ints, reach: Ints, last: Ints, own: Ints,
    room: Floats,
    values: Floats,
    features: Floats32, probs: Floats, roots: Floats, known: Floats, action: Ints, step: Ints, late: Floats,
    cut: Floats, heads: Records, lists: Records, score: Floats, given: Floats,
    kind: int, power: float, root: float, zero: float, scaling: int, rate: float,
    columns: Ints, nominal: Flags, forms: Ints, bounds: Floats, ks: Ints, most: int, keep: int, factor: float,
    published: bool, minimum: int, delay: int, discount: float, threshold: float,
) -> None:  # separate arguments: named tuples add two microseconds a call
    """Update the sums over pairs with the rows of the history, and write the values of the notions."""
    pool = Pool(features, probs, roots, known, action, step, late, cut, heads, lists, score, given)
    measure = Measure(kind, power, root, zero, scaling, rate)
    plan = Plan(
        measure, columns, nominal, forms, bounds, ks, most, keep,
        factor, published, minimum, delay, discount, threshold,
    )
    # fmt: on
    people, places = People(of_people, acted, reported, when), when.shape[1]
    for b in range(when.shape[0]):
        lane, mine, first, end = lane_of(pool, b), own[b], reach[b, 0], reach[b, 1]
        if first >= mine[1]:
            mine[:] = first
            values[b, 0] = np.nan  # no people yet; the published discount writes it below
        while mine[0] < first:
            leave(lane, plan, mine, room)
        for number in range(mine[1], end):
            row = number % places
            enter(lane, plan, people, b, row, number, mine, room)
            if plan.published and (number + 1 == last[b] or when[b, (number + 1) % places] != when[b, row]):
                values[b, 0] = forget_as_published(lane, plan, mine, room)
        mean = values[b, 0]
        conclude(lane, plan, mine, values[b])
        if plan.published:
            values[b, 0] = mean


@kernel
def first_neighbours(own: Ints, pool: Any, plan: Any, k: int, room: Floats, out: Floats) -> None:
    """Write the consistency with the k nearest people; of people at the same distance, the newest count first."""
    for b in range(own.shape[0]):
        lane, places, size = lane_of(pool, b), pool.action.shape[1], own[b, 1] - own[b, 0]
        sign = sign_of(plan.measure)
        weight, weights, total = 1.0, 0.0, 0.0
        for number in range(own[b, 1] - 1, own[b, 0] - 1, -1):
            i = number % places
            if number < own[b, 1] - 1:
                weight *= plan.factor ** (lane.step[(number + 1) % places] - lane.step[i])
            weights += weight
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
            total += weight * otherwise / max(chosen, 1)
        out[b] = total / weights if size > 1 else np.nan


class Comparisons:
    """State that the individual notions of one distance keep beside a history.

    Args:
        history: History of the people to compare.
        distance: Distance between people.
        columns: Indices of the features to compare, shape (features,).
        current_step: Whether to compare only the people of each lane's last step.
    """

    def __init__(self, history: History, distance: Distance, columns: Ints, *, current_step: bool) -> None:
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
        for name in ("own", "_values", "_room", "_reached"):
            setattr(other, name, getattr(self, name).copy())
        other._pool = Pool(*(column.copy() for column in self._pool))
        return other

    def mean(self, history: History, form: int, between: int, *, lipschitz: float = 1.0) -> Floats:
        """Return the mean term over the pairs of each lane, shape (B,)."""
        wanted = (form, between, lipschitz)
        if wanted not in self.forms:
            self.forms.append(wanted)
            self._begin(history)
        self._follow(history)
        return self._value(self.forms.index(wanted))

    def otherwise(self, history: History, k: int) -> Floats:
        """Return the mean share of the k nearest who got another decision, shape (B,)."""
        if k not in self.ks:
            self.ks.append(k)
            self._begin(history)
        self._follow(history)
        return self._value(len(self.forms) + self.ks.index(k))

    def _value(self, column: int) -> Floats:
        values: Floats = self._values[:, column].copy()
        return values

    def otherwise_of_first(self, history: History, k: int) -> Floats:
        """Return the same, but break ties of distance in the order of the published code."""
        self._follow(history)
        out = np.empty(len(self.own))
        first_neighbours(self.own, self._pool, self._plan, k, self._room, out)
        return out

    def sizes(self, history: History) -> Ints:
        """Return how many people of each lane are compared, shape (B,)."""
        self._follow(history)
        sizes: Ints = self.own[:, 1] - self.own[:, 0]
        return sizes

    def known(self, history: History) -> Ints:
        """Return for how many of these people the action probabilities are known, shape (B,)."""
        self._follow(history)
        known = np.zeros(len(self.own), np.int64)
        for b, (first, end) in enumerate(self.own):
            known[b] = self._pool.known[b, np.arange(first, end) % self._pool.known.shape[1]].sum()
        return known

    def _begin(self, history: History) -> None:
        """Start again with the values requested so far."""
        most = max(self.ks, default=1)
        self._plan = Plan(
            measure=self.distance.measure,
            columns=self._columns,
            nominal=self._nominal,
            forms=np.array([form[:2] for form in self.forms], np.int64).reshape(-1, 2),
            bounds=np.array([form[2] for form in self.forms], np.float64),
            ks=np.array(self.ks, np.int64),
            most=most,
            keep=2 * most + 4,
            factor=self._factor,
            published=self._published,
            minimum=self._memory.minimum,
            delay=self._memory.delay,
            discount=self._memory.factor,
            threshold=self._memory.threshold,
        )
        self.own = np.zeros((history.lanes, 2), np.int64)  # each lane's rows in the pool, from first up to end
        self._values = np.full((history.lanes, max(1, len(self.forms) + len(self.ks))), np.nan)
        self._pool = self._make_pool(history.lanes, self._places(history))
        self._room = np.zeros((4, self._pool.action.shape[1]))
        self._reached = np.zeros_like(self.own)
        self._version = -1

    def _places(self, history: History) -> int:
        return history.spec.individuals if self.current_step else history.ring()[1].shape[1]

    def _make_pool(self, lanes: int, places: int) -> Pool:
        """Allocate a pool with that many places."""
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
        """Add the people who joined the history since the last call, and remove those it dropped."""
        if self._version == history.version:
            return
        if self._places(history) != self._pool.action.shape[1]:
            self._grow(history)
        reach = self._reach(history)
        if self.distance.measure.kind == GIVEN:
            self._ask(history, reach)
        self._advance(history, reach, reach[:, 1])
        self._version = history.version

    def _reach(self, history: History) -> Ints:
        """Return which rows of each lane to compare, from first up to end, shape (B, 2)."""
        state, rows = history.ring()
        reach = self._reached
        if self.current_step:
            present(readable(state), readable(rows), reach)
        else:
            reach[:, 0], reach[:, 1] = state["first"], state["end"]
        return reach

    def _advance(self, history: History, reach: Ints, last: Ints) -> None:
        """Add the people up to ``reach``, of all rows up to ``last``."""
        rows = history.ring()[1]
        people = [rows[name] for name in People._fields]
        measure, *plan = self._plan
        follow(
            *people, reach, np.ascontiguousarray(last), self.own, self._room, self._values, *self._pool, *measure, *plan
        )

    def _ask(self, history: History, reach: Ints) -> None:
        """Call a user-defined distance for each new person and everyone in the window."""
        rows = history.ring()[1]
        met = np.stack([reach[:, 0], np.minimum(np.maximum(self.own[:, 1], reach[:, 0]), reach[:, 1])], 1)
        self._advance(history, met, reach[:, 1])
        upto = self.own.copy()
        for b, (_, end) in enumerate(reach):
            for number in range(self.own[b, 1], end):
                features = rows[b]["features"][:, self._columns]
                others = np.arange(self.own[b, 0], number)
                distances = self.distance(features[others % rows.shape[1]], features[number % rows.shape[1]])
                here, there = number % self._pool.action.shape[1], others % self._pool.action.shape[1]
                self._pool.given[b, here, there] = self._pool.given[b, there, here] = distances
                upto[:] = self.own
                upto[b, 1] = number + 1
                self._advance(history, upto, reach[:, 1])

    def _grow(self, history: History) -> None:
        """Move everyone to a larger ring."""
        old, places = self._pool, self._places(history)
        self._pool = self._make_pool(history.lanes, places)
        self._room = np.zeros((4, places))
        for b, (first, end) in enumerate(self.own):
            numbers = np.arange(first, end)
            here, there = numbers % old.action.shape[1], numbers % places
            pools: Iterator[tuple[str, Any, Any]] = zip(Pool._fields, old, self._pool, strict=True)
            for name, before, after in pools:
                if name == "given" and before.shape[1] > 1:
                    after[b][np.ix_(there, there)] = before[b][np.ix_(here, here)]
                elif after.shape[BY_PLACE.get(name, 1)] == places:
                    axis = BY_PLACE.get(name, 1) - 1
                    np.moveaxis(after[b], axis, 0)[there] = np.moveaxis(before[b], axis, 0)[here]


__all__ = ["PAPER", "VIOLATION", "Comparisons"]
