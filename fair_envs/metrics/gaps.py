"""Several notions of one history in one call: ``gaps(["SP", "EO"], history)``, shape (lanes, notions)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.group import DEFINITIONS, GroupGaps, GroupNotion, Groups, decisions_needed, group_members
from fair_envs.metrics.history import History, Memory
from fair_envs.metrics.individual import INDIVIDUAL
from fair_envs.metrics.notions import canonical_name
from fair_envs.support.aliases import Floats


@runtime_checkable
class DecisionNotion(Protocol):
    """A notion that is measured on histories of decisions, such as `fair_envs.metrics.GroupNotion`.

    It may have five more attributes: ``name``; ``worst``, its largest gap (1 if missing); ``least``, its smallest gap
    (0 if missing, minus infinity if there is no bound); ``needs_action_probs``, whether it needs the policy's action
    probabilities; ``check_memory(memory, spec)``, which raises ValueError if a history with this memory cannot hold
    what the notion needs.
    """

    def check(self, spec: FairSpec) -> None:
        """Raise ValueError if an environment does not report what the notion needs."""

    def gap(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair; NaN if it is undefined."""


BY_NAME: dict[str, Callable[[], DecisionNotion]] = {
    **{name: partial(GroupNotion, name=name) for name in DEFINITIONS},
    **INDIVIDUAL,
}
"""The notions by name, in their default form."""

Notions: TypeAlias = str | DecisionNotion | Sequence[str | DecisionNotion]
"""One notion on histories of decisions, or several; each is a name, an alias (``"SP"``) or a notion object."""


def decision_notions(notions: Notions, *, groups: Groups = None) -> tuple[DecisionNotion, ...]:
    """Return notions given by name or as objects, at least one.

    Args:
        notions: One or several names or objects.
        groups: The groups that group notions given by name compare, see `group_members`.

    Raises:
        ValueError: There is no notion, a name is unknown, an entry is not a notion or is a class, or ``groups`` applies
            to no notion.
    """
    single = isinstance(notions, (str, type, DecisionNotion)) or not isinstance(notions, Sequence)
    given: Sequence[Any] = [notions] if single else notions  # type: ignore[assignment]
    if not given:
        raise ValueError(f"notions must name at least one notion, got {notions!r}")
    found = tuple(_decision_notion(notion, groups) for notion in given)
    named = [own for own, notion in zip(found, given, strict=True) if isinstance(notion, str)]
    if groups is not None and not any(isinstance(notion, GroupNotion) for notion in named):
        raise ValueError(f"groups applies to group notions given by name, got groups={groups!r} for {notions!r}")
    return found


def default_notion(spec: FairSpec) -> str:
    """Return a notion that applies to an environment's decisions: one of groups if 1 is the positive decision."""
    return "consistency" if decisions_needed(spec) else "demographic_parity"


def _decision_notion(notion: Any, groups: Groups) -> DecisionNotion:
    if isinstance(notion, str):
        found = BY_NAME[canonical_name("notions", notion, BY_NAME)]()
        return replace(found, groups=groups) if isinstance(found, GroupNotion) else found
    if isinstance(notion, type) and issubclass(notion, DecisionNotion):
        raise ValueError(f"notions must be instances, such as {notion.__name__}(...), got the class")
    if isinstance(notion, DecisionNotion):
        return notion
    raise ValueError(f"notions must be objects with check and gap or names ({', '.join(BY_NAME)}), got {notion!r}")


def name_of(notion: DecisionNotion) -> str:
    """Return a notion's display name: its own name, or that of its class."""
    return str(getattr(notion, "name", type(notion).__name__))


def unique_names(notions: Sequence[DecisionNotion], spec: FairSpec) -> tuple[str, ...]:
    """Return display names that are unique: a repeated name gets its groups, its options or a number.

    Example:
        >>> gender = {"gender": ("man", "woman")}
        >>> spec = FairSpec(individuals=2, actions=2, features=(), sensitive=gender, groups=gender["gender"])
        >>> unique_names([GroupNotion(name="SP"), GroupNotion(name="SP", current_step=True)], spec)
        ('demographic_parity', 'demographic_parity (current step)')
    """
    names = [name_of(notion) for notion in notions]
    for name in set(names):
        places = [n for n, own in enumerate(names) if own == name]
        options = [_options(notions[n], spec) for n in places]
        for n, own in zip(places, options, strict=True):
            telling = [word for key, word in own.items() if any(other.get(key) != word for other in options)]
            names[n] += f" ({', '.join(filter(None, telling))})" if any(telling) else ""
    return numbered(names)


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that are unique: repeated ones are followed by a number.

    Example:
        >>> numbered(["gap", "distance", "gap"])
        ('gap 1', 'distance', 'gap 2')
    """
    numbers = [names[: n + 1].count(name) if names.count(name) > 1 else 0 for n, name in enumerate(names)]
    return tuple(f"{name} {number}" if number else name for name, number in zip(names, numbers, strict=True))


def _options(notion: DecisionNotion, spec: FairSpec) -> dict[str, str]:
    """Return the text for each option that may follow a notion's name; an empty text is left out."""
    if not is_dataclass(notion):
        return {}
    options = {own.name: getattr(notion, own.name) for own in fields(notion) if own.compare and own.name != "name"}
    words = {name: f"{name}={value}" for name, value in options.items()}
    if isinstance(notion, GroupNotion):
        words["groups"] = _called(notion.groups, spec)
    if "current_step" in options:
        words["current_step"] = "current step" if options["current_step"] else ""
    return words


def _called(groups: Groups, spec: FairSpec) -> str:
    """Return the names of the attributes or groups that are compared."""
    if isinstance(groups, Mapping):
        return " / ".join(group_members(spec, groups))
    return ", ".join([groups] if isinstance(groups, str) else groups or list(spec.sensitive)[:1])


class Gaps:
    """Several notions, prepared for one environment.

    Args:
        notions: N names or notions, at least one.
        spec: The environment's `FairSpec`.
        groups: The groups that notions given by name compare, see `fair_envs.metrics.group.group_members`.

    Attributes:
        notions: The notions.
        names: Their display names, see `unique_names`.

    Raises:
        ValueError: The list is empty, or a notion is unknown or needs what the environment does not report.
    """

    def __init__(self, notions: Notions, spec: FairSpec, *, groups: Groups = None) -> None:
        self._spec = spec
        self.notions = decision_notions(notions, groups=groups)
        for notion in self.notions:
            if not isinstance(notion, GroupNotion):  # `GroupGaps` checks those
                notion.check(spec)
        grouped = [n for n, notion in enumerate(self.notions) if isinstance(notion, GroupNotion)]
        self._grouped = np.array(grouped, int)
        self._group_gaps = GroupGaps([self.notions[n] for n in grouped], spec)  # type: ignore[misc]
        self.names = unique_names(self.notions, spec)
        self._others = [n for n in range(len(self.notions)) if n not in grouped]

    def check_memory(self, memory: Memory) -> None:
        """Raise ValueError if histories with this memory cannot hold what a notion needs."""
        for notion in self.notions:
            if hasattr(notion, "check_memory"):
                notion.check_memory(memory, self._spec)

    @property
    def worst(self) -> Floats:
        """The largest gap of each notion, shape (N,)."""
        return np.array([float(getattr(notion, "worst", 1.0)) for notion in self.notions])

    @property
    def least(self) -> Floats:
        """The smallest gap of each notion, shape (N,)."""
        return np.array([float(getattr(notion, "least", 0.0)) for notion in self.notions])

    def __call__(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gaps, shape (B, N); each equals the number that its notion returns on its own.

        Args:
            history: The decisions, of an environment with this spec.
            last: The previous gaps, shape (B, N), for notions with ``undefined="last"``; NaN where undefined.
        """
        if not self._others:
            return self._group_gaps(history, last=last)
        found = np.empty((history.lanes, len(self.notions)))
        if self._grouped.size:
            found[:, self._grouped] = self._group_gaps(history, last=None if last is None else last[:, self._grouped])
        for n in self._others:
            found[:, n] = self.notions[n].gap(history, last=None if last is None else last[:, n])
        return found


def gaps(notions: Notions, history: History, *, groups: Groups = None, last: Floats | None = None) -> Floats:
    """Return the gap of each notion in each lane of a history, shape (B, N): 0 is fair, NaN if undefined.

    Args:
        notions: N names or notions.
        history: The decisions.
        groups: The groups that notions given by name compare, see `fair_envs.metrics.group.group_members`.
        last: The previous gaps, shape (B, N), for notions with ``undefined="last"``.

    Raises:
        ValueError: The list is empty, or a notion is unknown or needs what the environment does not report.

    Example:
        >>> from fair_envs.metrics.history import SlidingWindow
        >>> gender = {"gender": ("man", "woman")}
        >>> spec = FairSpec(individuals=1, actions=2, features=(), sensitive=gender, groups=gender["gender"])
        >>> history = History(SlidingWindow(100), spec)
        >>> history.add_rows(sensitive=[[0], [0], [1], [1]], action=[1, 1, 0, 1])
        >>> print(gaps(["SP"], history))
        [[0.5]]
    """
    return Gaps(notions, history.spec, groups=groups)(history, last=last)


__all__ = [
    "BY_NAME",
    "DecisionNotion",
    "Gaps",
    "Notions",
    "decision_notions",
    "default_notion",
    "gaps",
    "name_of",
    "unique_names",
]
