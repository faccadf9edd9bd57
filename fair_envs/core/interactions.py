"""The record of the fairness MDP: which people a step affected, and how.

An environment writes one record for each lane and step; it never computes a fairness number. ``info`` is created from
that record, key by key, in one place. Missing values are -1, or 0 beside a mask. They are never NaN, None, a string or
a Python scalar, because each of these breaks a library that reads ``info``.
"""

import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.support.aliases import Facts, Floats32
from fair_envs.support.parameters import NonNegativeInt, PositiveInt, checked, meant

PREFIX = "fair_"
MISSING = -1


@dataclass(frozen=True, kw_only=True)
class FairSpec:
    """The static description of an environment, the same in every episode: ``env.unwrapped.fair_spec``.

    Attributes:
        individuals: Number of individuals that one step affects (M).
        actions: Number of possible decisions (A), the width of ``fair_action_probs``; 0 for continuous actions.
        features: Names of the columns of ``fair_features``.
        nominal_features: Features whose values are codes without an order: two values are equal or differ.
        sensitive_features: Features that show a sensitive attribute, or that individual notions should ignore.
        sensitive: Each sensitive attribute and the names of its codes 0, 1, ...
        legitimate: Each legitimate factor and the names of its codes.
        groups: Names of the values of ``fair_group``, the intersections of the sensitive attributes.
        favourable_action: The decision that people want to receive.
        amounts: Whether decisions are amounts (0, 1, 2, ...) instead of kinds of treatment. Feedback is then an amount
            too: the amount that was needed, which can be more than any decision gives. Group notions, which measure who
            got decision 1, do not apply.
        same_individuals: Whether an episode is about the same individuals throughout (agents); they are then also
            reported at the reset.
        feedback: When the label (correct decision) is revealed.
        only_accepted: Whether labels are only revealed, immediately or with a delay, for people who got
            `favourable_action`; always true for ``feedback="accepted"``.
        delay: Number of steps until delayed labels arrive: a label is about the person's last decision that was made
            at least so many steps ago, or about the last one if all were made later.
        late_rows: Width of ``fair_late_individual`` and ``fair_late_feedback`` (K).
    """

    individuals: int
    actions: int
    features: tuple[str, ...]
    nominal_features: tuple[str, ...] = ()
    sensitive_features: tuple[str, ...] = ()
    sensitive: Mapping[str, tuple[str, ...]]
    legitimate: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[str, ...]
    favourable_action: int = 1
    amounts: bool = False
    same_individuals: bool = False
    feedback: Literal["none", "full", "accepted", "delayed"] = "none"
    only_accepted: bool = False
    delay: int = 0
    late_rows: int = 1

    def __post_init__(self) -> None:
        """Check numbers and names, references to features by name, and that choices are among the options."""
        for name, kind in NUMBERS.items():
            object.__setattr__(self, name, checked(name, getattr(self, name), kind))
        checked("amounts", self.amounts, bool)
        _check_names(self)
        if not 0 <= self.favourable_action < max(self.actions, 2):
            raise ValueError(
                f"favourable_action must be between 0 and {max(self.actions, 2) - 1}, got {self.favourable_action!r}"
            )
        if self.feedback not in ("none", "full", "accepted", "delayed"):
            raise ValueError(f"feedback must be one of 'none', 'full', 'accepted', 'delayed', got {self.feedback!r}")
        if self.feedback == "accepted":
            object.__setattr__(self, "only_accepted", True)
        if self.amounts and self.only_accepted:
            raise ValueError("amounts must be False if feedback is only on one decision, got True")
        for kind in ("nominal_features", "sensitive_features"):
            unknown = [name for name in getattr(self, kind) if name not in self.features]
            if unknown:
                raise ValueError(
                    f"{kind} must be among {', '.join(self.features) or 'no features'}, got {unknown[0]!r}"
                )

    def default_attribute(self, *, chosen_with: str, preferred: Collection[str] = ()) -> str:
        """Return the first sensitive attribute; warn if there are others, which are then ignored.

        Args:
            chosen_with: The argument that chooses others, with an example for the warning.
            preferred: Attributes that come before all others.

        Raises:
            ValueError: There is no sensitive attribute.
        """
        if not self.sensitive:
            raise ValueError(f"{chosen_with} needs a sensitive attribute, got an environment without any")
        first, *others = sorted(self.sensitive, key=lambda name: name not in preferred)
        if others:
            ignored = ", ".join(map(repr, others))
            warnings.warn(
                f"groups are compared by {first!r}, not by {ignored}; choose with {chosen_with}", stacklevel=3
            )
        return first

    @property
    def one_person(self) -> bool:
        """Whether each step is about one person, a different one each time: then ``info`` has no axis for people."""
        return self.individuals == 1 and not self.same_individuals


NUMBERS: Mapping[str, Any] = {
    "individuals": PositiveInt,
    "actions": NonNegativeInt,
    "delay": NonNegativeInt,
    "late_rows": PositiveInt,
}
"""The allowed numbers of a spec."""


def _check_names(spec: FairSpec) -> None:
    """Raise ValueError for a single text where a list of names is needed, and for duplicate names of features."""
    several = {name: getattr(spec, name) for name in ("features", "nominal_features", "sensitive_features", "groups")}
    for kind in ("sensitive", "legitimate"):
        several |= {f"{kind}[{name!r}]": values for name, values in getattr(spec, kind).items()}
    for name, names in several.items():
        if isinstance(names, str):
            raise ValueError(f"{name} must be a list of names, got {names!r}")
    if len(set(spec.features)) < len(spec.features):
        raise ValueError(f"features must have different names, got {spec.features!r}")


def facts_dtype(spec: FairSpec) -> np.dtype[np.void]:
    """Return the layout of one lane's record: the columns of ``info`` without their prefix."""
    people: tuple[int, ...] = (spec.individuals,)
    return np.dtype(
        [
            ("individual", np.int64, people),  # unique within the episode
            ("sensitive", np.int64, (*people, len(spec.sensitive))),  # codes
            ("legitimate", np.int64, (*people, len(spec.legitimate))),  # codes
            ("group", np.int64, people),  # index of the intersectional group
            ("action", np.int64, people),  # the decision about the individual; -1: no decision
            ("feedback", np.int64, people),  # the label, if revealed immediately
            ("late_individual", np.int64, (spec.late_rows,)),
            ("late_feedback", np.int64, (spec.late_rows,)),
            ("late_count", np.int64),
            ("late_dropped", np.int64),
            ("features", np.float32, (*people, len(spec.features))),  # as the decision-maker saw them
            ("outcome", np.float32, people),  # benefit to the individual
            ("decided", np.int8),  # 1: a decision; 0: a reset
        ],
        align=True,
    )


def blank_facts(spec: FairSpec) -> NDArray[np.void]:
    """Return one record, shape (1,), in which all values are missing."""
    blank = np.zeros(1, facts_dtype(spec))
    for name in ("individual", "sensitive", "legitimate", "group", "action", "feedback"):
        blank[name] = MISSING
    blank["late_individual"] = MISSING
    blank["late_feedback"] = MISSING
    return blank


def columns(spec: FairSpec, facts: Facts, action_probs: Floats32 | None) -> dict[str, NDArray[Any]]:
    """Return the batch's record as ``info`` columns.

    Args:
        spec: The environment's static description.
        facts: New records, shape (lanes,); the columns are views of them.
        action_probs: The reported action probabilities, shape (lanes, M, A), or None: all 0.
    """
    info = dict(zip(_NAMES, _ALL(facts), strict=True))
    info[PREFIX + "action_probs"] = _probs(spec, facts, action_probs)
    if spec.one_person:
        for name in PERSONAL:
            info[name] = info[name][:, 0]
    return info


class Columns(Mapping[str, NDArray[Any]]):
    """The columns of `columns`, each made when it is read: most readers need few of them.

    Args:
        spec: The environment's static description.
        facts: New records, shape (lanes,), or (T, lanes) for T steps.
        action_probs: The reported action probabilities, shape (lanes, M, A) or (T, lanes, M, A), or None: all 0.
    """

    def __init__(self, spec: FairSpec, facts: Facts, action_probs: Floats32 | None) -> None:
        self._spec, self._facts, self._action_probs = spec, facts, action_probs
        self._person = (*(slice(None),) * facts.ndim, 0)  # the entry of the only person

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column."""
        if name == PREFIX + "action_probs":
            column: NDArray[Any] = _probs(self._spec, self._facts, self._action_probs)
        else:
            column = self._facts[_NAMES[name]]
        return column[self._person] if self._spec.one_person and name in PERSONAL else column

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter((*_NAMES, PREFIX + "action_probs"))

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(_NAMES) + 1


def _probs(spec: FairSpec, facts: Facts, action_probs: Floats32 | None) -> Floats32:
    """Return the reported action probabilities, or 0."""
    if action_probs is None:
        return np.zeros((*facts.shape, spec.individuals, spec.actions), np.float32)
    return action_probs


def record(spec: FairSpec, **facts: Any) -> dict[str, NDArray[Any]]:
    """Return one step's record as keys of ``info``, for environments that do not use this package's rules.

    Args:
        spec: The environment's static description.
        facts: Columns without their prefix, each with its shape in ``info``. Omitted columns are missing, but features
            are required if the spec has any: with 0 everyone would look the same. No columns at all (after a reset): no
            decision was made.

    Raises:
        TypeError: A column is unknown.
        ValueError: A value has another shape or kind, or is not finite; or features are missing.

    Example:
        >>> who = ("woman", "man")
        >>> loans = FairSpec(individuals=1, actions=2, features=("income",), sensitive={"gender": who}, groups=who)
        >>> info = record(loans, individual=7, features=[0.4], sensitive=[1], group=1, action=1, feedback=0)
        >>> int(info["fair_decided"]), int(info["fair_sensitive"][0]), float(info["fair_outcome"])
        (1, 1, 0.0)
    """
    reported = columns(spec, blank_facts(spec), None)
    reported = {name: np.array(column) for name, column in reported.items()}
    reported[PREFIX + "decided"][0] = bool(facts)
    for name, value in facts.items():
        column = reported.get(PREFIX + name)
        if column is None or name == "decided":
            known = ", ".join(own.removeprefix(PREFIX) for own in reported)
            raise TypeError(f"{name} must be one of {known}; it is unknown{meant(name, known.split(', '))}")
        given = np.asarray(value)
        if given.shape != column.shape[1:]:
            raise ValueError(f"{name} must have shape {column.shape[1:]}, got {given.shape}")
        if not np.can_cast(given.dtype, column.dtype, casting="same_kind"):
            raise ValueError(f"{name} must hold {column.dtype} values, got {given.dtype}")
        if not np.isfinite(given).all():
            raise ValueError(f"{name} must hold finite numbers, got {given.tolist()}")
        column[0] = given
    if facts and spec.features and "features" not in facts:
        raise ValueError(f"features must be given, the spec has {', '.join(spec.features)}; got none")
    return {name: column[0] for name, column in reported.items()}


def named_columns(spec: FairSpec, people: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return columns of n people as the columns of a table, with the names of values instead of codes.

    Args:
        spec: The environment's static description.
        people: Columns of the record without their prefix, shape (n, ...), in the order of the table.

    Returns:
        Columns of shape (n,). Columns with an entry for each attribute, factor, feature or decision become several,
        such as ``sensitive[gender]``; an unknown code becomes None. Other columns are unchanged.
    """
    table: dict[str, NDArray[Any]] = {}
    for name, column in people.items():
        if name in ("sensitive", "legitimate"):
            for k, (attribute, values) in enumerate(getattr(spec, name).items()):
                table[f"{name}[{attribute}]"] = _named(values, column[:, k])
        elif name == "group":
            table[name] = _named(spec.groups, column)
        elif name == "features":
            table |= {f"feature[{feature}]": column[:, k] for k, feature in enumerate(spec.features)}
        elif name == "action_probs":
            table |= {f"probability[{a}]": column[:, a] for a in range(spec.actions)}
        else:
            table[name] = column
    return table


def _named(values: Sequence[str], codes: NDArray[Any]) -> NDArray[Any]:
    """Return the values' names by their codes; None for `MISSING`, the last one."""
    names: NDArray[Any] = np.array([*values, None], object)[codes]
    return names


_NAMES = {
    PREFIX + name: name
    for name in facts_dtype(FairSpec(individuals=1, actions=2, features=(), sensitive={}, groups=())).names or ()
}

_ALL = itemgetter(*_NAMES.values())


PERSONAL = tuple(
    PREFIX + name
    for name in (
        "individual",
        "features",
        "sensitive",
        "legitimate",
        "group",
        "action",
        "action_probs",
        "feedback",
        "outcome",
    )
)
"""The columns with one row for each individual."""


class LaneRecord:
    """Reads the record of one lane, several times as fast as `columns`, without the axis for lanes.

    Args:
        spec: The environment's static description.
    """

    def __init__(self, spec: FairSpec) -> None:
        self._people = () if spec.one_person else (spec.individuals,)
        self._probs_shape = (*self._people, spec.actions)
        self._tables: list[tuple[str, str]] = []  # what has two axes, and its name in info
        places: dict[Any, list[int | slice]] = {np.int64: [], np.float32: [], np.int8: []}  # a record's types, in order
        first: dict[Any, int] = {}  # byte of each type
        for name, (layout, offset, *_) in (facts_dtype(spec).fields or {}).items():
            base, shape = layout.subdtype or (layout, ())
            shape = shape[1:] if spec.one_person and PREFIX + name in PERSONAL else shape
            start = (offset - first.setdefault(base.type, offset)) // base.itemsize
            places[base.type].append(slice(start, start + math.prod(shape)) if len(shape) == 1 else start)
            if len(shape) > 1:
                self._tables.append((name, PREFIX + name))
        self._integers, self._numbers = (itemgetter(*places[kind]) for kind in (np.int64, np.float32))
        self._of_integers = np.int64, first[np.float32] // 8
        self._of_numbers = np.float32, (first[np.int8] - first[np.float32]) // 4, first[np.float32]

    def __call__(self, facts: Facts, action_probs: Floats32 | None) -> dict[str, Any]:
        """Return one lane's record, shape (1,), as its entries in ``info``; arrays share the record's memory.

        Args:
            facts: The record, new in each step.
            action_probs: The reported action probabilities, shape (1, M, A), or None: all 0.
        """
        integers, numbers = np.frombuffer(facts, *self._of_integers), np.frombuffer(facts, *self._of_numbers)
        shape = self._probs_shape
        probs = np.zeros(shape, np.float32) if action_probs is None else action_probs.reshape(shape)
        columns = *self._integers(integers), *self._numbers(numbers), facts["decided"][0], probs
        row = _entries(*columns)
        for name, key in self._tables:
            row[key] = facts[name][0]
        return row

    def of_people(self, facts: Facts, action_probs: Floats32 | None) -> list[dict[str, Any]]:
        """Return one lane's record, shape (1,), as one dictionary for each individual; they share no memory."""
        row = self(facts, action_probs)
        if not self._people:
            return [row]
        for name in LATE_ROWS:
            own = np.empty((*self._people, len(row[name])), np.int64)  # in a tenth of the time of np.tile
            own[:] = row[name]
            row[name] = own
        for name in OF_STEPS:
            row[name] = repeat(row[name])
        return list(map(_entries, *row.values()))


def _entries(
    individual: Any,
    sensitive: Any,
    legitimate: Any,
    group: Any,
    action: Any,
    feedback: Any,
    late_individual: Any,
    late_feedback: Any,
    late_count: Any,
    late_dropped: Any,
    features: Any,
    outcome: Any,
    decided: Any,
    action_probs: Any,
) -> dict[str, Any]:
    """Return the entries of ``info``, given in the order of `columns`; ``dict(zip(...))`` takes longer."""
    return {
        "fair_individual": individual,
        "fair_sensitive": sensitive,
        "fair_legitimate": legitimate,
        "fair_group": group,
        "fair_action": action,
        "fair_feedback": feedback,
        "fair_late_individual": late_individual,
        "fair_late_feedback": late_feedback,
        "fair_late_count": late_count,
        "fair_late_dropped": late_dropped,
        "fair_features": features,
        "fair_outcome": outcome,
        "fair_decided": decided,
        "fair_action_probs": action_probs,
    }


LATE_ROWS = ("fair_late_individual", "fair_late_feedback")
"""The columns with one row for each label that arrives late, which each individual gets a copy of."""

OF_STEPS = ("fair_late_count", "fair_late_dropped", "fair_decided")
"""The columns with one number for each step."""
