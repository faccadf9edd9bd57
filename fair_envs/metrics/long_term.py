"""Short-term and long-term fairness of a process: measures that are updated step by step.

Short-term notions measure how people are treated by decisions. Long-term notions measure how far apart decisions have
driven groups in what they are or have: their scores, the incidents that affect them, their health. All of them are a
`fair_envs.metrics.measures.Measure`, updated at a cost that does not grow with the window. 0 is fair.

Most measures come from the study of Hu, Lear and Zhang (2024) and from ml-fairness-gym (D'Amour et al. 2020). Where the
study's published code measures something else than its text says, an option selects the code's version; see also
`fair_envs.metrics.populations`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core.compilation import copyto, kernel, rule
from fair_envs.metrics.measures import FunctionMeasure, Measure, column_names
from fair_envs.metrics.populations import (
    EUCLIDEAN,
    RELATIVE,
    SHARE,
    TOTAL_VARIATION,
    UNLABELLED,
    VARIATION,
    WASSERSTEIN,
    Undefined,
    ascending,
    coverage,
    from_equal,
    furthest,
    opportunity,
)
from fair_envs.support.aliases import Columns, Flags, Floats, Floats32, Ints
from fair_envs.support.parameters import NonNegative, NonNegativeInt, Positive, PositiveInt, Range, checked

Several = Annotated[int, Range(2)]

NOBODY = -1
"""The group number for "no person" in questions about a possible decision."""

FEEDBACK, BY_LEVEL, GIVEN = range(3)
"""Where compiled code reads who is qualified."""

SUSCEPTIBLE, INFECTED, RECOVERED = range(3)
"""The states of health, in the order that `StateDistance` assumes."""

GRAIN = 2.0**-30
"""Probabilities are rounded to multiples of this. Their sums are then exact, so a window leaves no rounding errors."""


# Measures -------------------------------------------------------------------------------------------------------------


class OpportunityGap(Measure):
    """Gap of true positive rates: how unequally often qualified people of each group are accepted, in a window.

    With more than two groups, this is the largest gap between any two of them. 0 is fair; 1 if all qualified people of
    one group are accepted and none of another. *Harm it can show:* deserving people of one group are rejected more
    often now. It does not show how the decisions affect them later.

    `fair_envs.metrics.GroupNotion` measures the same on histories of decisions, with delayed labels and any groups.
    This class also accepts expected counts, and can return the value that a possible decision would lead to.

    Args:
        lanes: Number of lanes (B).
        groups: Number of groups, the values of ``fair_group``.
        window: Number of recent decisions that count, over all groups together; None: all since the episode's start.
        qualified: Who should be accepted. ``"feedback"``: people with feedback 1. People with feedback -1 do not count
            as qualified, so every defined rate is 1 if feedback is only revealed for accepted people. Numbers, shape
            (levels,) or (groups, levels): the probability for each level of a feature; the gap is then one of expected
            counts. A function of ``info``: the probabilities, shape (B,) or (B, M).
        feature: Which feature the level is, if `qualified` is numbers.
        scale: The level is ``rint(feature * scale)``; levels - 1 by default.
        minimum: A group's rate is undefined while the window has fewer qualified people of that group.
        undefined: How an undefined rate counts: ``"nan"``: it is left out, and the gap is NaN unless two rates remain;
            ``"zero"``: as 0, as in the published code, whose gap then jumps at the start of an episode.
        one_more: Whether one more decision counts than `window` says. The published training code drops the oldest
            decision only after it has measured; its evaluation code drops it before.

    Attributes:
        counts: Weight of qualified people by group and decision, shape (B, groups, 2): ``[..., 1]`` accepted.
    """

    name = "equal opportunity"

    def __init__(
        self,
        lanes: int,
        *,
        groups: int = 2,
        window: int | None = 300,
        qualified: Literal["feedback"] | ArrayLike | Callable[[Columns], ArrayLike] = "feedback",
        feature: int = 0,
        scale: float | None = None,
        minimum: float = 0.0,
        undefined: Undefined = "nan",
        one_more: bool = False,
    ) -> None:
        self.blank = 0.0 if checked("undefined", undefined, Undefined) == "zero" else math.nan
        super().__init__(lanes)
        groups, room = checked("groups", groups, Several), _room(window)
        room += bool(room and checked("one_more", one_more, bool))
        self._qualified = qualified if callable(qualified) else None
        table = _probabilities(qualified, groups)
        source = GIVEN if callable(qualified) else BY_LEVEL if table.size else FEEDBACK
        self._names = column_names(
            "group", "action", {FEEDBACK: "feedback", BY_LEVEL: "features"}.get(source, "action")
        )
        self._last_feature = checked("feature", feature, NonNegativeInt) if source == BY_LEVEL else 0
        longest = table.shape[1] - 1 if scale is None else checked("scale", scale, Positive)
        settings = np.array(
            [checked("minimum", minimum, NonNegative), undefined == "zero", source, self._last_feature, longest],
            np.float64,
        )
        self.counts: Floats = np.zeros((self.lanes, groups, 2))
        ring = np.zeros((self.lanes, room, 3))  # group, decision, weight
        self._seen = np.zeros(self.lanes, np.int64)
        self._state = (self.counts, ring, self._seen, settings, table)

    def measured(self, info: Columns) -> Floats:
        """Add a step and return the gap after it."""
        group, action, reported = self._reported(info)
        if self._qualified is not None:
            reported = _shares("qualified", _output("qualified", self._qualified(info), action.shape))
        value: Floats = np.empty(self.lanes)
        odd = take_people(self._state, group, action, reported, value)
        if odd >= 0:
            settings, table = self._state[3:]
            _check_groups(odd, group, action, self.counts.shape[1])
            raise _no_level(odd, reported, action, int(settings[3]), settings[4], table.shape[1])
        return value

    def if_taken(self, group: ArrayLike, action: ArrayLike, qualified: ArrayLike) -> Floats:
        """Return the value that the measure would have after one more decision, shape (B,).

        Args:
            group: Group of the affected person, shape (B,); -1: no person.
            action: The decision, shape (B,).
            qualified: Whether the decision should be 1, or the probability of that, shape (B,).

        Raises:
            ValueError: Another shape, an unknown group, or a number that is not a probability (NaN included).
        """
        who, what = _entries("group", group, self.lanes), _entries("action", action, self.lanes)
        weight = np.asarray(qualified, np.float64)
        if weight.shape != (self.lanes,):
            raise ValueError(f"qualified must have shape {(self.lanes,)}, got {weight.shape}")
        _shares("qualified", weight[who != NOBODY])
        value: Floats = np.empty(self.lanes)
        odd = suppose_person(self._state, who, what, weight, value)
        if odd >= 0:
            raise _no_member(odd, who, self.counts.shape[1])
        return value

    def forget(self, mask: Flags) -> None:
        """Clear the masked lanes."""
        self.counts[mask] = 0
        self._seen[mask] = 0


class WindowDistance(Measure):
    """How far apart the groups' distributions over ordered levels are, among the people of the last decisions.

    With more than two groups, this is the largest distance between any two of them. 0 if their shares are equal, NaN
    unless two groups have people in the window. *Harm it can show:* decisions that leave one group behind in a feature
    that later decisions depend on. It only sees people who get a decision, not those who stay away, and it
    lags behind by the window.

    Args:
        lanes: Number of lanes (B).
        groups: Number of groups, the values of ``fair_group``.
        levels: Number of levels.
        window: Number of recent people who count, over all groups together; None: all since the episode's start.
        level_of: Which feature the level is, or a function of ``info`` that returns the levels, whole numbers of shape
            (B,) or (B, M).
        scale: The level is ``rint(feature * scale)``; levels - 1 by default.
        distance: ``"wasserstein"``: between shares, in units of `positions`; ``"total_variation"``: between shares;
            ``"as_coded"``: the distance that the published code trains on, see `unlabelled_distance`.
        positions: Positions of the levels on their scale, ascending, shape (levels,); 0, 1, ... by default.

    Attributes:
        counts: People by group and level, shape (B, groups, levels).
    """

    name = "distance between groups"

    def __init__(
        self,
        lanes: int,
        *,
        groups: int,
        levels: int,
        window: int | None = 300,
        level_of: int | Callable[[Columns], ArrayLike] = 0,
        scale: float | None = None,
        distance: Literal["wasserstein", "total_variation", "as_coded"] = "wasserstein",
        positions: ArrayLike | None = None,
    ) -> None:
        kinds = {"wasserstein": WASSERSTEIN, "total_variation": TOTAL_VARIATION, "as_coded": UNLABELLED}
        kind = kinds[checked("distance", distance, Literal["wasserstein", "total_variation", "as_coded"])]
        self.blank = 0.0 if kind == UNLABELLED else math.nan
        super().__init__(lanes)
        groups, levels = checked("groups", groups, Several), checked("levels", levels, Several)
        self._level_of = level_of if callable(level_of) else None
        self._names = column_names("group", "action", "action" if callable(level_of) else "features")
        self._last_feature = 0 if callable(level_of) else checked("level_of", level_of, NonNegativeInt)
        longest = levels - 1 if scale is None else checked("scale", scale, Positive)
        settings = np.array([kind, self._last_feature, 1 if callable(level_of) else longest], np.float64)
        place = ascending("positions", positions, levels)
        self.counts = np.zeros((self.lanes, groups, levels), np.int64)
        ring = np.zeros((self.lanes, _room(window), 2), np.int64)  # group, level
        self._seen = np.zeros(self.lanes, np.int64)
        self._state = (self.counts, ring, self._seen, settings, place)

    def measured(self, info: Columns) -> Floats:
        """Add a step and return the distance after it."""
        group, action, features = self._reported(info)
        if self._level_of is not None:
            features = _whole("level_of", _output("level_of", self._level_of(info), action.shape), action)[
                ..., np.newaxis
            ]
        value: Floats = np.empty(self.lanes)
        odd = take_levels(self._state, group, action, features, value)
        if odd >= 0:
            _, column, scale = self._state[3]
            _check_groups(odd, group, action, self.counts.shape[1])
            raise _no_level(odd, features, action, int(column), scale, self.counts.shape[2])
        return value

    def forget(self, mask: Flags) -> None:
        """Clear the masked lanes."""
        self.counts[mask] = 0
        self._seen[mask] = 0


class _Totals(Measure):
    """A column of each individual, summed over a window of steps and compared with an equal split.

    Args:
        lanes: Number of lanes (B).
        individuals: Number of individuals (K), the same in every step.
        window: Number of recent steps that count; None: the whole episode.
        kind: How they are compared.
        column: Name of the column to sum; steps in which it is -1 for any individual are skipped.

    Attributes:
        totals: Sum of each individual, shape (B, K).
    """

    def __init__(self, lanes: int, *, individuals: int, window: int | None, kind: int, column: str) -> None:
        super().__init__(lanes)
        individuals = checked("individuals", individuals, Several)
        self._kind, self._names = kind, column_names(column)
        self.totals: Floats = np.zeros((self.lanes, individuals))
        ring = np.zeros((self.lanes, _room(window), individuals))
        self._seen = np.zeros(self.lanes, np.int64)
        self._state = (self.totals, ring, self._seen)

    def measured(self, info: Columns) -> Floats:
        """Add a step and return the distance after it."""
        (amounts,) = self._reported(info)
        if amounts.shape != self.totals.shape:
            raise ValueError(f"{self._names[0]} must have shape {self.totals.shape}, got {amounts.shape}")
        value: Floats = np.empty(self.lanes)
        take_amounts(self._kind, self._state, amounts, value)
        return value

    def forget(self, mask: Flags) -> None:
        """Clear the masked lanes."""
        self.totals[mask] = 0
        self._seen[mask] = 0


class ShareDeviation(_Totals):
    """How unequally something is allocated: the largest distance of an individual's share from an equal share.

    It reads ``fair_action``, the amount that each individual received. 0 if all received the same in the window, 1 -
    1/K if one received everything, NaN if nothing was allocated. *Harm it can show:* places that get no attention. An
    equal share does not mean an equal need: it is also 0 if places with many incidents receive as much as those with
    none.

    Args:
        lanes: Number of lanes (B).
        individuals: Number of individuals (K), the same in every step.
        window: Number of recent steps that count; None: the whole episode.

    Attributes:
        totals: Amount that each individual received, shape (B, K).
    """

    name = "deviation of shares"

    def __init__(self, lanes: int, *, individuals: int, window: int | None = 300) -> None:
        super().__init__(lanes, individuals=individuals, window=window, kind=SHARE, column="action")

    def if_taken(self, allocation: ArrayLike) -> Floats:
        """Return the value that the measure would have after this allocation, shape (B,), or (B, n) for n choices.

        Args:
            allocation: Amount that each individual would receive, shape (B, K), or (B, n, K).
        """
        amounts = np.asarray(allocation)
        lanes, individuals = self.totals.shape
        if amounts.ndim not in (2, 3) or (amounts.shape[0], amounts.shape[-1]) != (lanes, individuals):
            raise ValueError(f"allocation must have shape {self.totals.shape}, got {amounts.shape}")
        choices = amounts.reshape(lanes, -1, individuals)
        value: Floats = np.empty(choices.shape[:2])
        suppose_amounts(self._kind, self._state, choices, value)
        return value.reshape(amounts.shape[:-1])


class IncidentDistance(_Totals):
    """How unequally incidents are distributed: how far each individual's share of incidents is from an equal share.

    It reads ``fair_feedback``, the incidents of each individual in the step; steps with an unknown number (-1) are
    skipped. 0 if all had equally many in the window, 1 - 1/K if one had all of them, NaN if there were none. *Harm it
    can show:* incidents that grow where attention is missing. It does not show how many incidents there are.

    Args:
        lanes: Number of lanes (B).
        individuals: Number of individuals (K), the same in every step.
        window: Number of recent steps that count; None: the whole episode.
        distance: ``"total_variation"``: between the shares and equal ones; ``"as_coded"``: the distance that the
            published code trains on, see `relative_deviation`.

    Attributes:
        totals: Incidents of each individual, shape (B, K).
    """

    name = "distance of incidents"

    def __init__(
        self,
        lanes: int,
        *,
        individuals: int,
        window: int | None = 300,
        distance: Literal["total_variation", "as_coded"] = "total_variation",
    ) -> None:
        coded = checked("distance", distance, Literal["total_variation", "as_coded"]) == "as_coded"
        kind = RELATIVE if coded else VARIATION
        super().__init__(lanes, individuals=individuals, window=window, kind=kind, column="feedback")


class ShareDistance(Measure):
    """Total variation distance between the groups' shares of the selected and of the qualified people, in an episode.

    0 if the selected people come from the groups in the same shares as the qualified; 1 if they come from other groups
    altogether; NaN until someone is selected and someone is qualified. *Harm it can show:* a team that does not
    represent the people who deserved to be in it.

    Args:
        lanes: Number of lanes (B).
        groups: Number of groups, the values of ``fair_group``.

    Attributes:
        counts: People of each group who were selected (``[..., 0]``) and who are qualified (``[..., 1]``), shape
            (B, groups, 2).
    """

    name = "share distance"

    worst = 1.0

    def __init__(self, lanes: int, *, groups: int) -> None:
        super().__init__(lanes)
        self._names = column_names("group", "action", "feedback")
        self.counts: Floats = np.zeros((self.lanes, checked("groups", groups, Several), 2))

    def measured(self, info: Columns) -> Floats:
        """Count the people of a step and return the distance after it."""
        group, action, label = self._reported(info)
        value: Floats = np.empty(self.lanes)
        odd = take_shares(self.counts, group, action, label, value)
        if odd >= 0:
            _check_groups(odd, np.maximum(group, 0), action, self.counts.shape[1])
        return value

    def forget(self, mask: Flags) -> None:
        """Clear the masked lanes."""
        self.counts[mask] = 0


class VaccinationGap(Measure):
    """How unequally many vaccinations the groups get for each newly infected member, since the episode's start.

    The largest gap between two groups in v / (n + 1), with v vaccinations (``fair_action`` 1) and n newly infected
    (``fair_outcome`` -1); infections at the reset do not count. 0 is fair, and there is no upper limit. *Harm it can
    show:* a community that is left without protection. It counts vaccines, not the infections that they prevent
    elsewhere.

    Args:
        lanes: Number of lanes (B).
        groups: Number of groups, the values of ``fair_group``.
        effective: Whether only vaccinations of susceptible people count (``fair_feedback`` 1). The published code
            counts all; once no one is susceptible, its gap rises with every useless vaccination. The published code
            also counts each of several doses for one person in a step. Here they count as 1, since ``fair_action``
            reports who was vaccinated, not how often.

    Attributes:
        counts: Vaccinations (``[..., 0]``) and newly infected (``[..., 1]``) by group, shape (B, groups, 2).
    """

    name = "vaccination gap"

    blank = 0.0

    def __init__(self, lanes: int, *, groups: int, effective: bool = True) -> None:
        super().__init__(lanes)
        self._effective = checked("effective", effective, bool)
        self._names = column_names("group", "action", "feedback", "outcome")
        self.counts = np.zeros((self.lanes, checked("groups", groups, Several), 2), np.int64)

    def measured(self, info: Columns) -> Floats:
        """Add a step and return the gap after it."""
        reported = self._reported(info)
        value: Floats = np.empty((1, self.lanes))
        columns = [column[np.newaxis] for column in reported]
        odd = take_vaccines(self.counts, self._effective, np.zeros((1, self.lanes), bool), *columns, value)
        if odd >= 0:
            _check_groups(odd, reported[0], reported[1], self.counts.shape[1])
        return value[0]

    def measured_together(self, columns: Sequence[NDArray[Any]], first: Flags) -> tuple[Floats, Floats] | None:
        """Add T steps in one loop."""
        counts, value = self.counts.copy(), np.empty(first.shape)
        if take_vaccines(counts, self._effective, first, *columns, value) >= 0:
            return None
        before = np.concatenate([self.value[np.newaxis], value[:-1]])
        before[first] = self.blank
        self.counts = counts
        return value, before

    def if_taken(self, group: ArrayLike) -> Floats:
        """Return the value that the measure would have after vaccinating one member of a group, shape (B,).

        Args:
            group: Group of that person, shape (B,); -1: no person.
        """
        who = _entries("group", group, self.lanes)
        value: Floats = np.empty(self.lanes)
        odd = suppose_vaccine(self.counts, who, value)
        if odd >= 0:
            raise _no_member(odd, who, self.counts.shape[1])
        return value

    def forget(self, mask: Flags) -> None:
        """Clear the masked lanes."""
        self.counts[mask] = 0


class StateDistance(Measure):
    """How far apart the groups' shares of people in each state of health are, after the step.

    The first features are the state that the decision saw; one of them is 1. After the step, susceptible people who
    were vaccinated and people with ``fair_outcome`` 1 are recovered; people with -1 are infected. `before` is the
    distance that the decision saw. With more than two groups, this is the largest distance between any two of them. 0
    if the shares are equal. *Harm it can show:* an epidemic that affects one community. It is also 0 if everyone in
    both groups is infected.

    Args:
        lanes: Number of lanes (B).
        groups: Number of groups, the values of ``fair_group``.
        states: Number of states; the first are susceptible, infected and recovered.
        distance: ``"total_variation"``: between shares; ``"wasserstein"``: between shares, one unit from each state to
            the next; ``"as_coded"``: the Euclidean distance of raw counts, as in the published code, which is above 0
            between groups of unequal sizes even if everyone is in the same state.

    Attributes:
        counts: People by group and state, shape (B, groups, states).
    """

    name = "distance of states"

    def __init__(
        self,
        lanes: int,
        *,
        groups: int,
        states: int = 3,
        distance: Literal["total_variation", "wasserstein", "as_coded"] = "total_variation",
    ) -> None:
        super().__init__(lanes)
        kinds = {"total_variation": TOTAL_VARIATION, "wasserstein": WASSERSTEIN, "as_coded": EUCLIDEAN}
        self._kind = kinds[checked("distance", distance, Literal["total_variation", "wasserstein", "as_coded"])]
        groups, states = checked("groups", groups, Several), checked("states", states, Annotated[int, Range(3)])
        self._names, self._last_feature = column_names("group", "action", "features", "outcome"), states - 1
        self._positions = ascending("states", None, states)
        self.counts = np.zeros((self.lanes, groups, states), np.int64)
        self._seen = np.zeros((groups, states), np.int64)  # space for the states that a lane's decision saw

    def measured(self, info: Columns) -> Floats:
        """Add a step and return the distance after it."""
        group, action, features, outcome = self._reported(info)
        counts, before = self.counts.copy(), self.value.copy()
        value: Floats = before.copy()
        odd = take_states(
            self._kind, self._positions, counts, group, action, features, outcome, self._seen, before, value
        )
        if odd >= 0:
            _check_groups(odd, group, np.zeros_like(action), counts.shape[1])  # checks everyone
            raise _no_state(odd, features, counts.shape[2])
        self.counts, self.value = counts, before  # update() then takes this value as `before`
        return value

    def measured_together(self, columns: Sequence[NDArray[Any]], first: Flags) -> tuple[Floats, Floats] | None:
        """Add T steps as if they were lanes, because what a step reports does not depend on earlier ones."""
        steps, lanes = first.shape
        columns = [column.reshape(steps * lanes, *column.shape[2:]) for column in columns]
        if (columns[1].reshape(steps * lanes, -1)[:, 0] < 0).any():  # a reset, after which the value stays
            return None
        counts = np.zeros((steps * lanes, *self.counts.shape[1:]), np.int64)
        value, before = np.empty(steps * lanes), np.empty(steps * lanes)
        if take_states(self._kind, self._positions, counts, *columns, self._seen, before, value) >= 0:
            return None
        self.counts = counts[-lanes:].copy()
        return value.reshape(first.shape), before.reshape(first.shape)

    def forget(self, mask: Flags) -> None:
        """Clear the masked lanes."""
        self.counts[mask] = 0


# Rules ----------------------------------------------------------------------------------------------------------------


@rule
def people_in(column: Ints) -> Any:
    """Return how many people a lane's entry in a column describes: 1 without an axis of people."""
    if column.ndim == 1:
        return 1
    return column.shape[1]


@rule
def reported_of(column: NDArray[Any], b: int, m: int) -> float:
    """Return a column's number for a person."""
    if column.ndim == 1:
        return column[b]
    if column.ndim == 2:
        return column[b, m]
    return column[b, m, 0]


@rule
def feature_of(features: NDArray[Any], b: int, m: int, k: int) -> float:
    """Return a person's feature; the features may or may not have an axis of people."""
    if features.ndim == 1:
        return features[b]
    if features.ndim == 2:
        return features[b, k]
    return features[b, m, k]


@rule
def odd_group(group: Ints, action: Ints, groups: int) -> int:
    """Return the first lane in which a person with a decision has an invalid group, or -1."""
    for b in range(group.shape[0]):
        for m in range(people_in(group)):
            if reported_of(action, b, m) >= 0 and not 0 <= reported_of(group, b, m) < groups:
                return b
    return -1


@rule
def odd_member(group: Ints, groups: int) -> int:
    """Return the first lane whose group is invalid, or -1."""
    for b in range(group.shape[0]):
        if not -1 <= group[b] < groups:
            return b
    return -1


@rule
def level_of(features: NDArray[Any], b: int, m: int, column: int, scale: float) -> int:
    """Return a person's level: a feature times the scale, rounded."""
    return int(np.rint(feature_of(features, b, m, column) * scale))


@rule
def odd_level(features: NDArray[Any], action: Ints, column: int, scale: float, levels: int) -> int:
    """Return the first lane in which the level of a person with a decision is out of range, or -1."""
    for b in range(action.shape[0]):
        for m in range(people_in(action)):
            if reported_of(action, b, m) < 0:
                continue
            level = feature_of(features, b, m, column) * scale
            if not -0.5 < level < levels - 0.5:  # also true for NaN
                return b
    return -1


@rule
def shift(counts: Floats, entry: Floats, sign: float) -> None:
    """Add an entry of the window to the counts, or remove it (sign -1)."""
    counts[int(entry[0]), int(entry[1])] += sign * entry[2]


@kernel
def take_people(state: Any, group: Ints, action: Ints, reported: NDArray[Any], value: Floats) -> int:
    """Count the decisions of a step by group; write each lane's equal opportunity gap."""
    counts, ring, seen, settings, table = state
    minimum, zero, source, column, scale = settings[0], settings[1] > 0, settings[2], int(settings[3]), settings[4]
    window = ring.shape[1]
    odd = odd_group(group, action, counts.shape[1])
    if odd < 0 and source == BY_LEVEL:
        odd = odd_level(reported, action, column, scale, table.shape[1])
    if odd >= 0:
        return odd
    for b in range(value.shape[0]):
        for m in range(people_in(group)):
            decision, g = reported_of(action, b, m), int(reported_of(group, b, m))
            if decision < 0:
                continue
            if source == FEEDBACK:
                weight = 1.0 if reported_of(reported, b, m) == 1 else 0.0
            elif source == BY_LEVEL:
                weight = table[g, level_of(reported, b, m, column, scale)]
            else:
                weight = np.rint(reported_of(reported, b, m) / GRAIN) * GRAIN
            if window > 0:
                entry = ring[b, seen[b] % window]
                if seen[b] >= window:
                    shift(counts[b], entry, -1.0)
                entry[0], entry[1], entry[2] = g, 1.0 if decision == 1 else 0.0, weight
            counts[b, g, 1 if decision == 1 else 0] += weight
            seen[b] += 1
        value[b] = opportunity(counts[b], minimum, zero)
    return -1


@kernel
def suppose_person(state: Any, group: Ints, action: Ints, weight: Floats, value: Floats) -> int:
    """Write the gap that one more decision in each lane would lead to, without counting it."""
    counts, ring, seen, settings, _ = state
    minimum, zero, window = settings[0], settings[1] > 0, ring.shape[1]
    odd = odd_member(group, counts.shape[1])
    if odd >= 0:
        return odd
    for b in range(value.shape[0]):
        g, decision = group[b], 1 if action[b] == 1 else 0
        if g < 0:
            value[b] = opportunity(counts[b], minimum, zero)
            continue
        after = counts[b].copy()  # a copy: a query must not change the counts
        if window > 0 and seen[b] >= window:
            shift(after, ring[b, seen[b] % window], -1.0)
        after[g, decision] += np.rint(weight[b] / GRAIN) * GRAIN
        value[b] = opportunity(after, minimum, zero)
    return -1


@kernel
def take_levels(state: Any, group: Ints, action: Ints, features: NDArray[Any], value: Floats) -> int:
    """Count the levels of the people of a step by group; write the distance between the groups' levels."""
    counts, ring, seen, settings, positions = state
    kind, column, scale = int(settings[0]), int(settings[1]), settings[2]
    window = ring.shape[1]
    odd = odd_group(group, action, counts.shape[1])
    if odd < 0:
        odd = odd_level(features, action, column, scale, counts.shape[2])
    if odd >= 0:
        return odd
    for b in range(value.shape[0]):
        for m in range(people_in(group)):
            if reported_of(action, b, m) < 0:
                continue
            g, level = int(reported_of(group, b, m)), level_of(features, b, m, column, scale)
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
def add_totals(totals: Floats, entry: NDArray[Any], sign: float) -> None:
    """Add an entry of the window to the totals, times a sign."""
    for k in range(totals.shape[0]):
        totals[k] += sign * entry[k]


@kernel
def take_amounts(kind: int, state: Any, amounts: Ints, value: Floats) -> None:
    """Add the amounts of a step to the totals; write how far their shares are from equal shares."""
    totals, ring, seen = state
    window = ring.shape[1]
    for b in range(value.shape[0]):
        if amounts[b].min() >= 0:
            if window > 0:
                entry = ring[b, seen[b] % window]
                if seen[b] >= window:
                    add_totals(totals[b], entry, -1.0)
                copyto(entry, amounts[b])
            add_totals(totals[b], amounts[b], 1.0)
            seen[b] += 1
        value[b] = from_equal(kind, totals[b], totals[b].sum())


@kernel
def suppose_amounts(kind: int, state: Any, amounts: NDArray[Any], value: Floats) -> None:
    """Write how far the shares would be from equal shares after each of several amounts, (B, n)."""
    totals, ring, seen = state
    window = ring.shape[1]
    for b in range(value.shape[0]):
        for n in range(value.shape[1]):
            after = totals[b].copy()  # subtracting non-integers again would leave rounding errors
            if window > 0 and seen[b] >= window:
                add_totals(after, ring[b, seen[b] % window], -1.0)
            add_totals(after, amounts[b, n], 1.0)
            value[b, n] = from_equal(kind, after, after.sum())


@kernel
def take_shares(counts: Floats, group: Ints, action: Ints, label: Ints, value: Floats) -> int:
    """Count the selected and the qualified of a step by group; write the distance between their shares."""
    groups = counts.shape[1]
    for b in range(value.shape[0]):
        for m in range(people_in(group)):
            if reported_of(action, b, m) >= 0 and reported_of(group, b, m) >= groups:
                return b
    for b in range(value.shape[0]):
        for m in range(people_in(group)):
            g, decision = int(reported_of(group, b, m)), reported_of(action, b, m)
            if g >= 0 and decision >= 0:
                counts[b, g, 0] += 1.0 if decision == 1 else 0.0
                counts[b, g, 1] += 1.0 if reported_of(label, b, m) == 1 else 0.0
        selected, qualified = counts[b, :, 0].sum(), counts[b, :, 1].sum()
        apart = 0.0
        for g in range(groups):
            if selected > 0 and qualified > 0:
                apart += abs(counts[b, g, 0] / selected - counts[b, g, 1] / qualified)
        value[b] = apart / 2 if selected > 0 and qualified > 0 else np.nan
    return -1


@kernel
def take_vaccines(
    counts: Ints,
    effective: bool,
    first: Flags,
    group: Ints,
    action: Ints,
    feedback: Ints,
    outcome: Floats32,
    value: Floats,
) -> int:
    """Count vaccinations and infections of T steps by group, and write the gap between their quotients after each step.

    Counts are 0 in lanes that begin (``first``). Return the first lane with an invalid group, or -1.
    """
    for t in range(first.shape[0]):
        for b in range(first.shape[1]):
            if first[t, b]:
                counts[b] = 0
        odd = odd_group(group[t], action[t], counts.shape[1])
        if odd >= 0:
            return odd
        for b in range(first.shape[1]):
            for m in range(people_in(group[t])):
                decision = reported_of(action[t], b, m)
                if decision < 0:
                    continue
                g = int(reported_of(group[t], b, m))
                if decision == 1 and (not effective or reported_of(feedback[t], b, m) == 1):
                    counts[b, g, 0] += 1
                if reported_of(outcome[t], b, m) == -1:
                    counts[b, g, 1] += 1
            value[t, b] = coverage(counts[b])
    return -1


@kernel
def suppose_vaccine(counts: Ints, group: Ints, value: Floats) -> int:
    """Write the gap that one more vaccination in each lane would lead to, without counting it."""
    odd = odd_member(group, counts.shape[1])
    if odd >= 0:
        return odd
    for b in range(value.shape[0]):
        after = counts[b].copy()
        if group[b] >= 0:
            after[group[b], 0] += 1
        value[b] = coverage(after)
    return -1


@rule
def state_before(features: Floats32, b: int, m: int, states: int) -> int:
    """Return a person's state before the step: the first state whose feature is 1, or -1."""
    for state in range(states):
        if feature_of(features, b, m, state) > 0.5:
            return state
    return -1


@rule
def state_after(state: int, decision: int, outcome: float) -> int:
    """Return a person's state after the step."""
    if decision == 1 and state == SUSCEPTIBLE:
        return RECOVERED
    if outcome == -1:
        return INFECTED
    return RECOVERED if outcome == 1 else state


@kernel
def take_states(
    kind: int,
    positions: Floats,
    counts: Ints,
    group: Ints,
    action: Ints,
    features: Floats32,
    outcome: Floats32,
    seen: Ints,
    before: Floats,
    value: Floats,
) -> int:
    """Count the states of a step by group; write the distance between the groups' states before and after it."""
    groups, states = counts.shape[1], counts.shape[2]
    for b in range(value.shape[0]):
        if reported_of(action, b, 0) < 0:  # a reset
            continue
        seen[:] = 0
        counts[b] = 0
        for m in range(people_in(group)):
            g, state = int(reported_of(group, b, m)), state_before(features, b, m, states)
            if not 0 <= g < groups or state < 0:
                return b
            seen[g, state] += 1
            counts[b, g, state_after(state, reported_of(action, b, m), reported_of(outcome, b, m))] += 1
        before[b] = furthest(kind, seen, positions)
        value[b] = furthest(kind, counts[b], positions)
    return -1


# Checks of arguments --------------------------------------------------------------------------------------------------


def _room(window: int | None) -> int:
    """Return how many entries a window stores; 0: everything counts, and nothing needs to be stored."""
    return 0 if window is None else int(checked("window", window, PositiveInt))


def _probabilities(qualified: Any, groups: int) -> Floats:
    """Return the probability of being qualified, shape (groups, levels); no levels if the argument is not numbers."""
    if callable(qualified) or (isinstance(qualified, str) and qualified == "feedback"):
        return np.zeros((groups, 0))
    if isinstance(qualified, str):
        raise ValueError(f"qualified must be 'feedback', probabilities or a function of info, got {qualified!r}")
    given = _shares("qualified", qualified)
    if given.ndim not in (1, 2) or not given.size or (given.ndim == 2 and len(given) != groups):
        raise ValueError(f"qualified must have shape (levels,) or ({groups}, levels), got {given.shape}")
    grains: Floats = np.rint(given / GRAIN) * GRAIN
    return np.array(np.broadcast_to(grains, (groups, given.shape[-1])), order="C")  # one layout, one machine code


def _shares(name: str, given: ArrayLike) -> Floats:
    shares = np.asarray(given, np.float64)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError(f"{name} must be probabilities, got {given!r}")
    return shares


def _entries(name: str, given: ArrayLike, lanes: int) -> Ints:
    """Return one integer for each lane."""
    entries = np.asarray(given)
    if entries.shape != (lanes,):
        raise ValueError(f"{name} must have shape {(lanes,)}, got {entries.shape}")
    if entries.dtype.kind not in "iub":
        raise ValueError(f"{name} must be integers, got {given!r}")
    return entries.astype(np.int64)


def _output(function: str, output: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a function's values for each person, or raise ValueError if their shape is wrong."""
    numbers = np.asarray(output, np.float64)
    if numbers.size != math.prod(shape):
        raise ValueError(f"{function} must return shape {shape}, got {numbers.shape}")
    return numbers.reshape(shape)


def _whole(function: str, levels: Floats, action: NDArray[Any]) -> Floats:
    """Return levels that are whole numbers wherever there is a decision, or raise ValueError."""
    odd = levels[(action >= 0) & (levels != np.rint(levels))]  # also true for NaN
    if odd.size:
        raise ValueError(f"{function} must return whole numbers, got {odd[0]}")
    return levels


def _check_groups(lane: int, group: NDArray[Any], action: NDArray[Any], groups: int) -> None:
    """Raise ValueError if a person with a decision in a lane has an invalid group."""
    for one in np.ravel(group[lane])[np.ravel(action[lane]) >= 0]:
        if not 0 <= one < groups:
            raise ValueError(f"fair_group must be between 0 and {groups - 1}, got {one} in lane {lane}")


def _no_level(
    lane: int, features: NDArray[Any], action: NDArray[Any], feature: int, scale: float, levels: int
) -> ValueError:
    """Return the error for a lane in which a person's level is out of range."""
    found = np.ravel(features[lane, ..., feature]) * scale
    odd = found[(np.ravel(action[lane]) >= 0) & ~((found > -0.5) & (found < levels - 0.5))]
    return ValueError(f"the level must be between 0 and {levels - 1}, got {odd[0]:g} in lane {lane}")


def _no_state(lane: int, features: NDArray[Any], states: int) -> ValueError:
    """Return the error for a lane in which a person has no state."""
    found = features[lane].reshape(-1, features.shape[-1])[:, :states]
    odd = found[~(found > 0.5).any(axis=-1)][0].tolist()
    return ValueError(f"one of the first {states} fair_features must be 1, got {odd} in lane {lane}")


def _no_member(lane: int, group: Ints, groups: int) -> ValueError:
    """Return the error for a lane in which the group of a query is invalid."""
    return ValueError(f"group must be between {NOBODY} and {groups - 1}, got {group[lane]} in lane {lane}")


__all__ = [
    "FunctionMeasure",
    "IncidentDistance",
    "Measure",
    "OpportunityGap",
    "ShareDeviation",
    "ShareDistance",
    "StateDistance",
    "VaccinationGap",
    "WindowDistance",
]
