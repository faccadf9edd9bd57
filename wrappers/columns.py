"""The columns of the record of a user's own environment, and which values they allow; see `Annotate`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np

from fair_envs.core.interactions import MISSING, FairSpec
from fair_envs.support.parameters import PositiveInt, checked, meant
from fair_envs.wrappers.sources import INFOS, Called, Decision, Entries, Item, Key, Numbers, Place, Source, When, locate

Names = Mapping[str, Sequence[str]]
"""Attributes, and the names of their codes 0, 1, ..."""

Features = Sequence[str] | Mapping[str, Source] | None
"""Names of features, or their sources; see `fair_envs.wrappers.Annotate`."""

LARGEST_DEFAULT = 1000
"""The largest observation whose entries are features unless the user chooses them."""


@dataclass(frozen=True)
class Column:
    """A column of the record and the place of its values.

    Attributes:
        name: The column, for error messages.
        place: Where its values are.
        advice: What to change if there is no value.
    """

    name: str
    place: Place
    advice: str = ""

    def check_shown(self, shown: Mapping[str, Any]) -> None:
        """Raise ValueError if the ``info`` that came with an observation lacks the column's value."""
        if isinstance(self.place, Key) and self.place.when == "before" and self.place.key not in shown:
            later = f"if the info of the step has it, use after({self.place.key!r})"
            raise ValueError(self._absent(shown, "; ".join(filter(None, (self.advice, later)))))

    def value(self, decision: Decision) -> Any:
        """Return the value of a decision.

        Raises:
            ValueError: It is missing.
        """
        place = self.place
        if not isinstance(place, Key):
            return place.value(decision)
        infos: dict[When, Mapping[str, Any]] = {"before": decision.shown, "after": decision.info}
        own = infos.pop(place.when)
        if place.key in own:
            return own[place.key]
        ((marker, other),) = infos.items()
        has_it = f"{INFOS[marker]} has it: use {marker}({place.key!r})"
        raise ValueError(self._absent(own, has_it if place.key in other else self.advice))

    def _absent(self, info: Mapping[str, Any], hint: str) -> str:
        keys = ", ".join(sorted(map(repr, info))) or "none"
        assert isinstance(self.place, Key)
        where = INFOS[self.place.when]
        return f"{self.name} must be in {where} under {self.place.key!r}, got the keys {keys}" + (hint and f"; {hint}")

    def number(self, decision: Decision) -> float:
        """Return the value of a decision as a finite number.

        Raises:
            ValueError: It is something else.
        """
        value = single(self.value(decision))
        if isinstance(value, (bool, int, float)) and math.isfinite(value):
            return float(value)
        raise ValueError(f"{self.name} must be a finite number, got {value!r} from {self.place.text}")

    def whole(self, decision: Decision) -> int:
        """Return the value of a decision as a whole number of at least 0.

        Raises:
            ValueError: It is something else.
        """
        value = single(self.value(decision))
        if (found := as_whole(value)) is not None and found >= 0:
            return found
        raise ValueError(f"{self.name} must be a whole number of at least 0, got {value!r} from {self.place.text}")


@dataclass(frozen=True, kw_only=True)
class Codes(Column):
    """A column of codes 0, 1, ...; values may also be their names.

    Attributes:
        count: The number of codes.
        names: The names of the codes; empty: they have none.
        optional: Whether None is allowed, for a value that is not known.
    """

    count: int
    names: tuple[str, ...] = ()
    optional: bool = False

    def __post_init__(self) -> None:
        """Check that several numbers are one for each code."""
        if isinstance(self.place, Numbers) and len(self.place.positions) not in (1, self.count):
            raise ValueError(
                f"{self.name} must come from one entry, or from {self.count} of which one is 1, got "
                f"{len(self.place.positions)} of {self.place.text}"
            )

    def code(self, decision: Decision) -> int:
        """Return the code of a decision; `MISSING` if it is not known.

        Raises:
            ValueError: It is no code and no name.
        """
        given = self.value(decision)
        if given is None and self.optional:
            return MISSING
        value = single(given)
        if isinstance(value, str) and value in self.names:
            return self.names.index(value)
        if isinstance(value, np.ndarray) and value.shape == (self.count,) and self.count > 1:
            value = one_hot(value)
        found = as_whole(value)
        if found is not None and found < self.count:
            return found
        codes = f"a code from 0 to {self.count - 1}"
        allowed = f"one of {', '.join(map(repr, self.names))} or {codes}" if self.names else codes
        raise ValueError(f"{self.name} must be {allowed}, got {shown_value(given)} from {self.place.text}")


def single(value: Any) -> Any:
    """Return the only entry of an array as a Python value; other values, and arrays of several, stay the same."""
    return value.item() if isinstance(value, (np.ndarray, np.generic)) and value.size == 1 else value


def as_whole(value: Any) -> int | None:
    """Return a bool, integer or float without fraction as an int; None for all others and numbers below 0."""
    whole = isinstance(value, (bool, int)) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and value >= 0 else None


def one_hot(row: Any) -> int | None:
    """Return the place of the only 1 in a row of zeros, or None."""
    return int(row.argmax()) if np.count_nonzero(row) == 1 and row.max() == 1 else None


def shown_value(value: Any) -> str:
    """Return a value's text for an error message."""
    return repr(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value)


# All columns ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Columns:
    """All columns of a record; those without a source are None or empty."""

    sensitive: Mapping[str, Codes]
    legitimate: Mapping[str, Codes]
    features: Mapping[str, Column]
    decision: Codes
    individual: Column | None
    label: Codes | None
    outcome: Column | None

    def __iter__(self) -> Iterator[Column]:
        """Yield the columns with a source."""
        attributes = (*self.sensitive.values(), *self.legitimate.values(), *self.features.values())
        others = (self.decision, self.individual, self.label, self.outcome)
        yield from (*attributes, *(column for column in others if column is not None))

    @property
    def missing(self) -> tuple[str, ...]:
        """The parts of the record without a source."""
        optional = {"legitimate": self.legitimate, "features": self.features}
        optional |= {"label": self.label, "outcome": self.outcome}  # type: ignore[dict-item]
        return tuple(name for name, source in optional.items() if not source)

    @property
    def keys_before(self) -> frozenset[str]:
        """The keys of the ``info`` that comes with an observation."""
        places = [column.place for column in self]
        return frozenset(place.key for place in places if isinstance(place, Key) and place.when == "before")

    @property
    def read_observation(self) -> bool:
        """Whether a column needs the observation itself, not only its numbers."""
        return any(isinstance(column.place, (Called, Item)) for column in self)

    @cached_property
    def _positions(self) -> list[int] | None:
        """The features' positions in the observation; None if some come from elsewhere."""
        places = [column.place for column in self.features.values()]
        found = [place.positions[0] for place in places if isinstance(place, Numbers)]
        return found if len(found) == len(places) else None

    def spec(
        self,
        *,
        feedback: Literal["none", "full", "accepted"],
        favourable_action: int,
        nominal_features: Sequence[str],
        sensitive_features: Sequence[str],
    ) -> FairSpec:
        """Return the spec of the record; features with the source of a sensitive attribute are sensitive."""
        for name, given in (("nominal_features", nominal_features), ("sensitive_features", sensitive_features)):
            if isinstance(given, str):
                raise ValueError(f"{name} must be a list of names, got {given!r}")
        return FairSpec(
            individuals=1,
            actions=self.decision.count,
            features=tuple(self.features),
            nominal_features=tuple(nominal_features),
            sensitive_features=tuple(dict.fromkeys([*self._showing(), *sensitive_features])),
            sensitive={name: column.names for name, column in self.sensitive.items()},
            legitimate={name: column.names for name, column in self.legitimate.items()},
            groups=tuple(map(", ".join, product(*(column.names for column in self.sensitive.values())))),
            favourable_action=favourable_action,
            feedback=feedback,
        )

    def _showing(self) -> list[str]:
        """Return the features with the source of a sensitive attribute."""
        places = [column.place for column in self.sensitive.values()]
        positions = {own for place in places if isinstance(place, Numbers) for own in place.positions}
        return [
            name
            for name, column in self.features.items()
            if column.place in places or (isinstance(column.place, Numbers) and positions & {*column.place.positions})
        ]

    def facts(self, decision: Decision, spec: FairSpec, *, count: int) -> dict[str, Any]:
        """Return the columns of a decision's record, without their prefix.

        Args:
            decision: The decision.
            spec: The spec of the record.
            count: The number of earlier decisions in the episode, which is the person's id by default.

        Raises:
            ValueError: A value is missing, or is not what its column needs.
        """
        action, codes = self.decision.code(decision), [column.code(decision) for column in self.sensitive.values()]
        facts: dict[str, Any] = {
            "individual": count if self.individual is None else self.individual.whole(decision),
            "sensitive": codes,
            "group": _index(codes, [column.count for column in self.sensitive.values()]),
            "action": action,
        }
        if self.features:
            at = self._positions
            values = [column.number(decision) for column in self.features.values()] if at is None else None
            facts["features"] = decision.entries[at] if values is None else values
        if self.legitimate:
            facts["legitimate"] = [column.code(decision) for column in self.legitimate.values()]
        if self.outcome is not None:
            facts["outcome"] = self.outcome.number(decision)
        if self.label is not None and (not spec.only_accepted or action == spec.favourable_action):
            facts["feedback"] = self.label.code(decision)
        return facts


def attributes(kind: str, names: Names, sources: Mapping[str, Source], entries: Entries) -> dict[str, Codes]:
    """Return the columns of attributes, given the names of their codes."""
    if not isinstance(names, Mapping) or (kind == "sensitive" and not names):
        example = "{'group': ('A', 'B')}"
        raise ValueError(f"{kind} must map attributes to the names of their values, such as {example}, got {names!r}")
    found = {}
    for name, values in names.items():
        texts = not isinstance(values, str) and all(isinstance(value, str) for value in values)
        if not texts or len(set(values)) < max(2, len(values)):
            raise ValueError(f"{kind}[{name!r}] must be at least two different names, got {values!r}")
        full = f"{kind} {name!r}"
        place = locate(full, sources.get(name, name), entries, when="before")
        advice = "" if name in sources else f"say where it comes from with sources={{{name!r}: ...}}"
        found[name] = Codes(full, place, advice, count=len(values), names=tuple(values))
    return found


def check_known(sources: Mapping[str, Source], known: Sequence[str]) -> None:
    """Raise ValueError for a source of an unknown attribute."""
    for name in sources:
        if name not in known:
            raise ValueError(
                f"sources must be for sensitive attributes or legitimate factors ({', '.join(known)}), got {name!r}"
                f"{meant(name, known)}"
            )


def _number(name: str, source: Source, entries: Entries, when: When) -> Column:
    """Return a column of numbers."""
    place = locate(name, source, entries, when=when)
    if isinstance(place, Numbers) and len(place.positions) > 1:
        raise ValueError(f"{name} must come from one entry, got {len(place.positions)} of {place.text}")
    return Column(name, place)


def number_column(name: str, source: Source | None, entries: Entries, when: When) -> Column | None:
    """Return a column of numbers; None without a source."""
    return None if source is None else _number(name, source, entries, when)


def feature_columns(features: Features, entries: Entries) -> dict[str, Column]:
    """Return the columns of the features."""
    if isinstance(features, Mapping):
        return dict(own for name, source in features.items() for own in _feature(name, source, entries))
    if features is None:
        if len(entries) > LARGEST_DEFAULT:
            raise ValueError(f"features must be given if an observation has {len(entries)} numbers; () for none")
        features = entries.names
    if isinstance(features, str) or len(features) not in (0, len(entries)):
        raise ValueError(
            f"features must be a mapping of names to sources, or name all {len(entries)} numbers of the observation, "
            f"got {features!r}"
        )
    return {name: _number(f"feature {name!r}", k, entries, "before") for k, name in enumerate(features)}


def _feature(name: str, source: Source, entries: Entries) -> list[tuple[str, Column]]:
    """Return the features of one source: one for each number."""
    place = locate(f"feature {name!r}", source, entries, when="before")
    if not isinstance(place, Numbers) or len(place.positions) == 1:
        return [(name, Column(f"feature {name!r}", place))]
    names = [f"{name} {k}" for k in range(len(place.positions))]
    return [
        (own, _number(f"feature {own!r}", position, entries, "before"))
        for own, position in zip(names, place.positions, strict=True)
    ]


def decision_column(source: Source | None, actions: int | None, entries: Entries) -> Codes:
    """Return the column of the decision."""
    if source is None:
        if len(entries) != 1:
            raise ValueError(
                f"decision must say which part of the action is the decision, such as decision=0, if an action has "
                f"{len(entries)} numbers, as in {entries.space}; got None"
            )
        source = 0
    place = locate("decision", source, entries, when="after", of_action=True)
    known = 0
    if isinstance(place, Numbers):
        known = int(entries.counts[place.positions[0]]) if len(place.positions) == 1 else len(place.positions)
    if actions is None and not known:
        raise ValueError(f"actions, the number of decisions, must be given for decisions from {place.text}, got None")
    count = known if actions is None else checked("actions", actions, PositiveInt)
    if known not in (0, count):
        raise ValueError(f"actions must be {known}, as many as {place.text} has, got {actions}")
    return Codes("decision", place, count=count)


def label_column(source: Source | None, actions: int, entries: Entries) -> Codes | None:
    """Return the column of the correct decisions; None without a source."""
    if source is None:
        return None
    advice = "if it is only known for some people, use feedback='accepted', or report None for the others"
    place = locate("label", source, entries, when="after")
    return Codes("label", place, advice, count=actions, optional=True)


def _index(codes: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the index of a combination of codes; the last code varies fastest."""
    index = 0
    for code, size in zip(codes, sizes, strict=True):
        index = index * size + code
    return index
