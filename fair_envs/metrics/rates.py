"""Rate measures: how far apart the rates of groups are, such as true positive rates or returns per step.

In each step, each person gets a *benefit* and counts as a *demand*. The rate of a group over a span is the sum of its
benefits divided by the sum of its demands, and the measure is the largest difference between the rates of two groups.
Most notions are rate measures: selection rates, true positive rates, returns per turn, incidents discovered per
incident. Methods for functions of expected returns need benefit and demand separately (Xu et al., "Equal Long-term
Benefit Rate", ICML 2024).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core.compilation import kernel
from fair_envs.core.interactions import PREFIX, FairSpec
from fair_envs.metrics.group import Groups, group_members
from fair_envs.metrics.measures import Measure, Replay, column_names, of_people
from fair_envs.metrics.notions import canonical_name
from fair_envs.support.aliases import Columns, Flags, Floats, Ints
from fair_envs.support.parameters import NonNegative, PositiveInt, checked, meant

Parts = tuple[ArrayLike, ArrayLike]
"""Benefit and demand of each person, each of shape (B, M) or (B,)."""


COLUMNS = ("action", "feedback", "outcome", "features", "sensitive", "legitimate", "group", "individual")
"""The columns of the record that a `Rate` can read."""


# Rates ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What a group gets, divided by what it could get.

    A `Task`, `fair_envs.wrappers.VectorReward` and every wrapper with measures accept it where they accept the name of
    a notion.

    Attributes:
        name: A short name for tables, such as ``"true positive rate"``.
        benefit: What counts as a benefit, in words.
        demand: What counts as a demand, in words.
        parts: ``parts(step) -> (benefit, demand)`` of each person in a step, see `Step`.
        columns: The columns of the record that ``parts`` reads, without their prefix, see `Step`.
        labels: Whether it needs labels (the correct decisions) of all people.
        kinds: Whether decisions must be kinds of treatment, not amounts.
        returns: Whether it needs the rewards of agents who are themselves affected.
        once: Whether a person is counted once in an episode, at its end, and not in every step.

    Example:
        >>> def large(step):
        ...     decided = step.action >= 0
        ...     return decided & (step.action == 1) & (step.outcome > 0.5), decided
        >>> rate = Rate(
        ...     name="large loans",
        ...     benefit="people with a large loan",
        ...     demand="people decided on",
        ...     parts=large,
        ...     columns=("action", "outcome"),
        ... )
    """

    name: str
    benefit: str
    demand: str
    parts: Callable[["Step"], Parts]
    columns: tuple[str, ...] = ("action",)
    labels: bool = False
    kinds: bool = False
    returns: bool = False
    once: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError if parts is no function, or a column is unknown."""
        if not callable(self.parts):
            raise ValueError(f"parts must be a function from a Step to benefit and demand, got {self.parts!r}")
        if isinstance(self.columns, str):
            raise ValueError(f"columns must be a list of names, got {self.columns!r}")
        for name in self.columns:
            if name not in COLUMNS:
                raise ValueError(f"columns must be among {', '.join(COLUMNS)}, got {name!r}{meant(name, COLUMNS)}")

    def __str__(self) -> str:
        notion = next((notion for notion, rate in RATES.items() if rate is self), "")
        return f"{notion} (the {self.name})" if notion else self.name

    def check(self, spec: FairSpec, *, of_agents: bool) -> None:
        """Raise ValueError if an environment's record does not contain what the rate needs.

        Args:
            spec: The description of the environment.
            of_agents: Whether the agents are themselves affected and earn rewards.
        """
        if self.returns and not of_agents:
            raise ValueError(
                f"{self} needs agents who earn rewards; this environment has one decision-maker: use a rate of its "
                "decisions, such as demographic_parity"
            )
        if self.kinds and (spec.amounts or spec.actions != 2):
            what = "amounts" if spec.amounts else f"{spec.actions} kinds of decisions"
            raise ValueError(f"{self} needs two kinds of decisions, 0 and 1; this environment has {what}")
        if self.labels and spec.feedback == "none":
            raise ValueError(f"{self} needs labels (the correct decisions); this environment reports none")
        if self.labels and spec.only_accepted:
            raise ValueError(
                f"{self} needs labels of all people; this environment reports only those of selected people: set "
                "feedback='full' if it has that parameter"
            )
        if self.labels and spec.feedback == "delayed":
            raise ValueError(
                f"{self} needs each label in the step of its decision; in this environment, labels arrive later: use a "
                "notion on a history"
            )


class Step:
    """What a step reports about M people in B lanes (episodes played in parallel): its columns as attributes.

    Only the columns that `Rate.columns` lists are there, and always ``group``:

    | attribute    | type, shape             | meaning                                                       |
    |--------------|-------------------------|---------------------------------------------------------------|
    | `action`     | int (B, M)              | the decision; -1: none                                        |
    | `feedback`   | int (B, M)              | the label (the correct decision, the need); -1: unknown       |
    | `outcome`    | float (B, M)            | what happened to the person                                   |
    | `features`   | float (B, M, features)  | the features, in the order of ``fair_spec.features``          |
    | `sensitive`  | int (B, M, attributes)  | codes of the sensitive attributes; -1: unknown                |
    | `legitimate` | int (B, M, factors)     | codes of the legitimate factors; -1: unknown                  |
    | `group`      | int (B, M)              | the group; -1: nobody                                         |
    | `individual` | int (B, M)              | the person's id; -1: nobody                                   |
    | `reward`     | float (B, agents)       | rewards of agents who are themselves affected; needs no entry |
    | `ended`      | bool (B, 1)             | the lanes whose episode ended with the step; needs no entry   |

    Args:
        columns: The columns by name, without their prefix; without an axis of people if there is one person.
        reward: The agents' rewards, shape (B, agents), or None.
        ended: The lanes whose episode ended with the step, shape (B,), or None.
    """

    action: Ints
    feedback: Ints
    outcome: Floats
    features: Floats
    sensitive: Ints
    legitimate: Ints
    group: Ints
    individual: Ints

    def __init__(self, columns: Mapping[str, NDArray[Any]], reward: Floats | None, ended: Flags | None) -> None:
        vars(self).update(columns)
        self._reward, self._ended = reward, ended

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(sorted(own for own in vars(self) if not own.startswith("_")))
        raise AttributeError(f"step has no column {name!r}, only {known}; list it in the columns of the Rate")

    @property
    def reward(self) -> Floats:
        """The agents' rewards, shape (B, agents)."""
        if self._reward is None:
            raise ValueError("reward must be given to a measure of returns, got none")
        return self._reward

    @property
    def ended(self) -> Flags:
        """The lanes whose episode ended with the step, shape (B, 1)."""
        if self._ended is None:
            raise ValueError("ended must be given to a measure of whole episodes, got none")
        return self._ended[:, np.newaxis]


def _selected(step: Step) -> Parts:
    return step.action == 1, step.action >= 0


def _truly_selected(step: Step) -> Parts:
    qualified = (step.feedback == 1) & (step.action >= 0)
    return qualified & (step.action == 1), qualified


def _falsely_selected(step: Step) -> Parts:
    unqualified = (step.feedback == 0) & (step.action >= 0)
    return unqualified & (step.action == 1), unqualified


def _truly_rejected(step: Step) -> Parts:
    unqualified = (step.feedback == 0) & (step.action >= 0)
    return unqualified & (step.action == 0), unqualified


def _correct(step: Step) -> Parts:
    known = (step.feedback >= 0) & (step.action >= 0)
    return known & (step.feedback == step.action), known


def _worthy(step: Step) -> Parts:
    selected = (step.feedback >= 0) & (step.action == 1)
    return selected & (step.feedback == 1), selected


def _unworthy(step: Step) -> Parts:
    rejected = (step.feedback >= 0) & (step.action == 0)
    return rejected & (step.feedback == 0), rejected


def _wrongly_rejected(step: Step) -> Parts:
    wrong = (step.feedback >= 0) & (step.action >= 0) & (step.feedback != step.action)
    return wrong & (step.action == 0), wrong


def _outcome(step: Step) -> Parts:
    decided = step.action >= 0
    return np.where(decided, step.outcome, 0.0), decided


def _met(step: Step) -> Parts:
    known = (step.feedback >= 0) & (step.action >= 0)
    return np.where(known, np.minimum(step.action, step.feedback), 0), np.where(known, step.feedback, 0)


def _earned(step: Step) -> Parts:
    """All steps count for all agents, also for those without a turn and those that left.

    The rate is therefore the return of an episode divided by its length.
    """
    return step.reward, np.ones_like(step.reward)


LABELLED: Mapping[str, Any] = {"columns": ("action", "feedback"), "labels": True, "kinds": True}
SELECTION = Rate(name="selection rate", benefit="selected", demand="decided on", parts=_selected, kinds=True)
TRUE_POSITIVE = Rate(
    name="true positive rate", benefit="qualified and selected", demand="qualified", parts=_truly_selected, **LABELLED
)
FALSE_POSITIVE = Rate(
    name="false positive rate",
    benefit="unqualified, selected",
    demand="unqualified",
    parts=_falsely_selected,
    **LABELLED,
)
TRUE_NEGATIVE = Rate(
    name="true negative rate",
    benefit="unqualified and not selected",
    demand="unqualified",
    parts=_truly_rejected,
    **LABELLED,
)
ACCURACY = Rate(name="accuracy", benefit="correct decisions", demand="decisions", parts=_correct, **LABELLED)
POSITIVE_VALUE = Rate(
    name="positive predictive value", benefit="qualified and selected", demand="selected", parts=_worthy, **LABELLED
)
NEGATIVE_VALUE = Rate(
    name="negative predictive value", benefit="unqualified, rejected", demand="rejected", parts=_unworthy, **LABELLED
)
ERROR_SHARE = Rate(
    name="share of wrong rejections",
    benefit="wrong rejections",
    demand="wrong decisions",
    parts=_wrongly_rejected,
    **LABELLED,
)
OUTCOME = Rate(
    name="mean outcome", benefit="outcomes", demand="people affected", parts=_outcome, columns=("action", "outcome")
)
NEED_MET = Rate(
    name="share of needs met",
    benefit="amount received, at most the need",
    demand="amount needed",
    parts=_met,
    columns=("action", "feedback"),
    labels=True,
)
RETURN = Rate(
    name="return per step", benefit="rewards", demand="steps of the game", parts=_earned, columns=(), returns=True
)

RATES: Mapping[str, Rate] = {
    "demographic_parity": SELECTION,
    "equal_opportunity": TRUE_POSITIVE,
    "predictive_equality": FALSE_POSITIVE,
    "overall_accuracy_equality": ACCURACY,
    "predictive_parity": POSITIVE_VALUE,
    "outcome_parity": OUTCOME,
    "return_parity": RETURN,
    "needs_met": NEED_MET,
}
"""The rate that each notion compares, by the notion's name."""

COMPARED: Mapping[str, tuple[Rate, ...]] = {
    **{name: (rate,) for name, rate in RATES.items()},
    "treatment_equality": (ERROR_SHARE,),
    "equalized_odds": (FALSE_POSITIVE, TRUE_POSITIVE),
    "conditional_use_accuracy_equality": (NEGATIVE_VALUE, POSITIVE_VALUE),
}
"""The rates that each group notion compares, by the notion's name."""


def rate_named(name: str, *, of_agents: bool) -> Rate:
    """Return the rate of a notion; for agents who earn rewards, demographic parity is that of returns.

    Raises:
        ValueError: The name stands for no notion that compares one rate.
    """
    found = canonical_name("rate", name, RATES)
    return RETURN if of_agents and found == "demographic_parity" else RATES[found]


# The measure ----------------------------------------------------------------------------------------------------------


class RateMeasure(Measure):
    """The largest difference between the rates of two groups: 0 is fair, NaN until two groups have a rate.

    Args:
        lanes: Number of lanes (B).
        rate: What is compared, see `Rate` and `RATES`.
        spec: The description of the environment.
        groups: The compared groups, see `group_members`; None: those of ``fair_group``.
        window: Number of recent steps that count; None: all steps of the episode.
        minimum: A group's rate is undefined while its demand is less than this.
        keeps: Whether steps of earlier episodes count too.
        name: A name for tables; empty: ``"gap of RATE"``.

    Attributes:
        totals: Benefit (``[..., 0]``) and demand (``[..., 1]``) of each group so far, shape (B, groups, 2).
        latest: The same for the last step alone.
        group_names: Names of the groups.

    Raises:
        ValueError: The groups overlap, or an argument is outside its range.
    """

    def __init__(
        self,
        lanes: int,
        rate: Rate,
        *,
        spec: FairSpec,
        groups: Groups = None,
        window: int | None = None,
        minimum: float = 0.0,
        keeps: bool = False,
        name: str = "",
    ) -> None:
        super().__init__(lanes)
        if not isinstance(rate, Rate):
            raise ValueError(f"rate must be a Rate, got {rate!r}; measure_named takes the names of notions")
        self.rate, self.keeps, self.name = rate, checked("keeps", keeps, bool), name or f"gap of {rate.name}"
        self.group_names, self._codes = group_codes(spec, groups)
        self._sizes = tuple(len(values) for values in spec.sensitive.values())
        self._minimum = float(checked("minimum", minimum, NonNegative))
        who = "group" if groups is None else "sensitive"
        self._names = column_names(*dict.fromkeys(["group", *rate.columns, who]))
        self._by_attribute = groups is not None
        shape = self.lanes, len(self.group_names), 2
        self.totals: Floats = np.zeros(shape)
        self.latest: Floats = np.zeros(shape)
        room = 0 if window is None else checked("window", window, PositiveInt)
        self._ring: Floats = np.zeros((self.lanes, room, *shape[1:]))
        self._seen: Ints = np.zeros(self.lanes, np.int64)
        self._demands: Ints = np.zeros(shape[:2], np.int64)  # steps in which each group had a demand

    @property
    def rates(self) -> Floats:
        """The rate of each group, shape (B, groups); NaN where it is undefined."""
        return quotients(self.totals, minimum=self._minimum)

    def measured(self, info: Columns) -> Floats:
        """Add a step and return the largest difference after it."""
        given = dict(zip(self._names, self._reported(info), strict=True))
        columns = columns_of_people(given)
        people = self._people(columns, self.reward, self.ended, self.decided)
        return self._added(people, np.zeros((1, self.lanes), bool), self.decided[np.newaxis])[0]

    def replay(self, info: Columns, reward: Floats | None = None, *, first: Flags, ended: Flags) -> Replay:
        """Add T steps at once: benefits and demands of all steps, then their sums in one loop. See `Measure.replay`."""
        steps = len(first)
        self._reported({name: info[name][0] for name in self._names if name in info})  # all steps have these shapes
        if self._single:
            return super().replay(info, reward, first=first, ended=ended)
        decided = info.get(PREFIX + "decided")
        taken = np.ones(first.shape, bool) if decided is None else np.asarray(decided).reshape(first.shape) != 0
        columns = columns_of_people({name: joined(info[name]) for name in self._names})
        earned = None if reward is None else np.asarray(reward, np.float64).reshape(steps * self.lanes, -1)
        people = self._people(columns, earned, joined(ended), joined(taken))
        last = self.value
        value = self._added(people, first, taken)
        before = np.concatenate([last[np.newaxis], value[:-1]])
        if not self.keeps:
            before[first] = self.blank
        self.value, self.before = value[-1].copy(), before[-1].copy()
        (group, gains, needs), shape = people, (steps, self.lanes, -1)
        return Replay(value, before, (group.reshape(shape), gains.reshape(shape), needs.reshape(shape)))

    def _people(
        self, columns: Mapping[str, NDArray[Any]], reward: Floats | None, ended: Flags | None, decided: Flags
    ) -> tuple[Ints, Floats, Floats]:
        """Return group, benefit and demand of each person, each of shape (n, M); group -1: nobody."""
        benefit, demand = self.rate.parts(Step(columns, reward, ended))
        group = self._grouped(columns)
        if not decided.all():
            group = np.where(decided[:, np.newaxis], group, -1)
        return group, numbers_for(benefit, group.shape), numbers_for(demand, group.shape)

    def _added(self, people: tuple[Ints, Floats, Floats], first: Flags, decided: Flags) -> Floats:
        """Add steps; return the value after each of them, shape (T, B)."""
        values = np.empty(first.shape)
        state = self.totals, self.latest, self._ring, self._seen, self._demands, self.value.copy()
        odd = add_steps(*state, first & (not self.keeps), decided, *people, self._minimum, values)
        if odd >= 0:
            highest, (group, *_) = len(self.group_names) - 1, people
            lane = odd % self.lanes
            raise ValueError(f"fair_group must be between -1 and {highest}, got {group[odd].tolist()} in lane {lane}")
        return values

    @property
    def predictable(self) -> bool:
        """Whether `if_taken` exists: the rate reads only decisions and labels."""
        return {*self.rate.columns} <= {"action", "feedback"} and not self.rate.returns

    def if_taken(
        self, group: Ints, sensitive: Ints, action: ArrayLike, *, qualified: ArrayLike | None = None
    ) -> Floats:
        """Return the expected value of the measure after one more decision, shape (B,); NaN where it is undefined.

        Args:
            group: ``fair_group`` of the affected person, shape (B,).
            sensitive: Codes of the person's sensitive attributes, shape (B, attributes).
            action: The decision, shape (B,).
            qualified: Probability that the person's label is 1, shape (B,); None: unknown, both labels count equally.
                Most rates depend on people with one label; this does not change which decision is better for them.

        Raises:
            ValueError: The rate reads more than decisions and labels.
        """
        if not self.predictable:
            raise ValueError(f"rate must read only decisions and labels to be predicted, got {self.rate.name}")
        person = {"group": group, "sensitive": sensitive}
        who = self._grouped({name: np.asarray(column)[:, np.newaxis] for name, column in person.items()})
        taken = np.asarray(action, np.int64).reshape(self.lanes, 1)
        chance = np.full(self.lanes, 0.5) if qualified is None else np.asarray(qualified, np.float64)
        expected = np.zeros(self.lanes)
        for label, weight in ((0, 1 - chance), (1, chance)):
            expected += np.where(weight > 0, weight * self._after(who, taken, np.full_like(taken, label)), 0)
        return expected

    def _after(self, group: Ints, action: Ints, label: Ints) -> Floats:
        """Return the value after one more person in each lane; all arguments have shape (B, 1)."""
        totals, demands, every = self.totals.copy(), self._demands.copy(), np.arange(self.lanes)
        window = self._ring.shape[1]
        if window:
            full = (self._seen >= window)[:, np.newaxis]
            oldest = self._ring[every, self._seen % window]
            totals -= np.where(full[..., np.newaxis], oldest, 0)
            demands -= full & (oldest[..., 1] > 0)
            totals[..., 1][demands == 0] = 0
        known = group[:, 0] >= 0
        for part, own in enumerate(self.rate.parts(Step({"action": action, "feedback": label}, None, None))):
            amounts = np.broadcast_to(np.asarray(own, np.float64), group.shape)
            totals[every[known], group[known, 0], part] += amounts[known, 0]
        return spread(quotients(totals, minimum=self._minimum))

    def _grouped(self, columns: Mapping[str, NDArray[Any]]) -> Ints:
        """Return the index of each person's group, shape (B, M); -1: nobody."""
        if not self._by_attribute:
            return columns["group"]
        return groups_by_attributes(columns["sensitive"], self._codes, sizes=self._sizes)

    def forget(self, mask: Flags) -> None:
        """Clear the masked lanes, unless steps of earlier episodes count."""
        if not self.keeps:
            self.totals[mask] = 0
            self._seen[mask] = 0
            self._demands[mask] = 0


def joined(column: NDArray[Any]) -> NDArray[Any]:
    """Return values of steps and lanes, shape (T, B, ...), with one axis for both, shape (T * B, ...)."""
    return column.reshape(-1, *column.shape[2:])


def columns_of_people(info: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return columns by name without their prefix, each with an axis of people, shape (B, M, ...)."""
    return {key.removeprefix(PREFIX): of_people(key, column) for key, column in info.items()}


def numbers_for(part: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return benefits or demands as numbers of a shape; an array of that shape is not broadcast, which takes longer."""
    numbers = np.asarray(part, np.float64)
    return numbers if numbers.shape == shape else np.broadcast_to(numbers, shape)


def groups_by_attributes(sensitive: Ints, table: Ints, *, sizes: Sequence[int]) -> Ints:
    """Return the index of each person's group; -1: nobody.

    Args:
        sensitive: The codes of the sensitive attributes, shape (..., attributes).
        table: The group of each combination of codes, see `group_codes`.
        sizes: The number of values of each attribute.

    Raises:
        ValueError: A code is not one of its attribute's values.
    """
    if (sensitive >= np.array(sizes)).any():
        highest = sensitive.reshape(-1, len(sizes)).max(axis=0).tolist()
        raise ValueError(f"fair_sensitive must have codes below {list(sizes)}, got {highest}")
    place = np.zeros(sensitive.shape[:-1], np.int64)
    for attribute, size in enumerate(sizes):
        place = place * size + np.maximum(sensitive[..., attribute], 0)
    return np.where((sensitive < 0).any(axis=-1), -1, table[place])


def group_codes(spec: FairSpec, groups: Groups) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the groups, and the group of each combination of sensitive codes, -1 for none.

    Raises:
        ValueError: Groups overlap, or there are fewer than two.
    """
    if groups is None:
        if len(spec.groups) < 2:
            raise ValueError(f"groups must be at least two, got {spec.groups!r}")
        return spec.groups, np.zeros(0, np.int64)
    members = group_members(spec, groups)
    masks = np.stack([own.ravel() for own in members.values()])
    if (masks.sum(axis=0) > 1).any():
        raise ValueError(f"groups must not have people in common, got {groups!r}")
    return tuple(members), np.where(masks.any(axis=0), masks.argmax(axis=0), -1)


def quotients(totals: Floats, *, minimum: float = 0.0) -> Floats:
    """Return benefits divided by demands, NaN where the demand is 0 or below the minimum.

    Args:
        totals: Benefits (``[..., 0]``) and demands (``[..., 1]``), shape (..., 2).
        minimum: The smallest demand of a defined rate.
    """
    demand = totals[..., 1]
    enough = (demand > 0) & (demand >= minimum)
    found: Floats = np.full(demand.shape, np.nan)
    np.divide(totals[..., 0], demand, out=found, where=enough)
    return found


def spread(rates: Floats) -> Floats:
    """Return the largest difference between two defined rates of a row, shape (B,); NaN if fewer than two are.

    Args:
        rates: Shape (B, groups).
    """
    defined = ~np.isnan(rates)
    difference = np.where(defined, rates, -np.inf).max(axis=1) - np.where(defined, rates, np.inf).min(axis=1)
    return np.where(defined.sum(axis=1) > 1, difference, np.nan)


@kernel
def add_steps(
    totals: Floats,
    latest: Floats,
    ring: Floats,
    seen: Ints,
    demands: Ints,
    last: Floats,
    cleared: Flags,
    decided: Flags,
    group: Ints,
    benefit: Floats,
    demand: Floats,
    minimum: float,
    values: Floats,
) -> int:
    """Add the benefits and demands of steps to those of the groups; write each lane's largest difference of rates.

    Lanes without a decision do not change.

    Args:
        totals: Sums so far, shape (B, groups, 2); written.
        latest: Sums of the last step, shape (B, groups, 2); written.
        ring: Sums of the last steps, shape (B, window, groups, 2); written.
        seen: Number of steps so far, shape (B,); written.
        demands: Number of steps that count in which each group had a demand, shape (B, groups); written. Without any,
            its demand is exactly 0, whatever the rounding of the sums.
        last: The values before the first step, shape (B,); written.
        cleared: The lanes that forget everything before the step, shape (T, B).
        decided: The lanes with a decision, shape (T, B).
        group: The group of each person, shape (T * B, M); -1: nobody.
        benefit: What each person got, shape (T * B, M).
        demand: What each person could get, shape (T * B, M).
        minimum: A rate with a smaller demand is undefined.
        values: The values after each step, shape (T, B); written.

    Returns:
        The first row of ``group`` with an invalid group, or -1; then nothing has changed.
    """
    lanes, groups, window = totals.shape[0], totals.shape[1], ring.shape[1]
    for row in range(group.shape[0]):
        for m in range(group.shape[1]):
            if not -1 <= group[row, m] < groups:
                return row
    for t in range(len(values)):
        for b in range(lanes):
            if cleared[t, b]:
                totals[b], seen[b], demands[b], last[b] = 0.0, 0, 0, np.nan
            row = t * lanes + b
            latest[b] = 0.0
            if decided[t, b]:
                for m in range(group.shape[1]):
                    g = group[row, m]
                    if g >= 0:
                        latest[b, g, 0] += benefit[row, m]
                        latest[b, g, 1] += demand[row, m]
                if window > 0:
                    place = seen[b] % window
                    for g in range(groups):
                        if seen[b] >= window:
                            demands[b, g] -= ring[b, place, g, 1] > 0
                        for part in range(2):
                            if seen[b] >= window:
                                totals[b, g, part] -= ring[b, place, g, part]
                            ring[b, place, g, part] = latest[b, g, part]
                        if demands[b, g] == 0:
                            totals[b, g, 1] = 0.0
                seen[b] += 1
                low, high, defined = np.inf, -np.inf, 0
                for g in range(groups):
                    demands[b, g] += latest[b, g, 1] > 0
                    totals[b, g, 0] += latest[b, g, 0]
                    totals[b, g, 1] += latest[b, g, 1]
                    if totals[b, g, 1] > 0 and totals[b, g, 1] >= minimum:
                        rate = totals[b, g, 0] / totals[b, g, 1]
                        low, high, defined = min(low, rate), max(high, rate), defined + 1
                # one group alone, or none, has nothing to be compared with
                last[b] = high - low if defined > 1 else np.nan
            values[t, b] = last[b]
    return -1


__all__ = ["COMPARED", "RATES", "Rate", "RateMeasure", "Step", "quotients", "rate_named"]
