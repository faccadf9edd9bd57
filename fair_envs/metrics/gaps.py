"""Several notions of one history in one call: ``gaps(["SP", "EO"], history)``, shape (lanes, notions)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from fair_envs.aliases import Floats
from fair_envs.core.interactions import FairSpec
from fair_envs.history import History, Memory
from fair_envs.metrics import individual
from fair_envs.metrics.group import DEFINITIONS, SHORT, GroupGaps, GroupNotion, Groups, group_members
from fair_envs.metrics.individual import INDIVIDUAL
from fair_envs.parameters import meant


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
    **{name: partial(GroupNotion, name=name) for name in (*DEFINITIONS, *SHORT)},
    **{name: INDIVIDUAL[own] for name, own in {**{own: own for own in INDIVIDUAL}, **individual.SHORT}.items()},
}
"""The notions by name and abbreviation, in their default form."""


def decision_notion(notion: str | DecisionNotion) -> DecisionNotion:
    """Return the notion with that name (``"SP"``, ``"statistical_parity"``); a notion object is returned unchanged.

    Raises:
        ValueError: The name is unknown, or the argument is not a notion or is a class.
    """
    if isinstance(notion, str):
        if notion in BY_NAME:
            return BY_NAME[notion]()
    elif isinstance(notion, type) and issubclass(notion, DecisionNotion):
        raise ValueError(f"notions must be instances, such as {notion.__name__}(...), got the class")
    elif isinstance(notion, DecisionNotion):
        return notion
    known = ", ".join(BY_NAME)
    raise ValueError(
        f"notions must be objects with check and gap or names ({known}), got {notion!r}{meant(notion, BY_NAME)}"
    )


def name_of(notion: DecisionNotion) -> str:
    """Return a notion's display name: its own name, or that of its class."""
    return str(getattr(notion, "name", type(notion).__name__))


def unique_names(notions: Sequence[DecisionNotion], spec: FairSpec) -> tuple[str, ...]:
    """Return display names that are unique: a repeated name gets its groups, its options or a number.

    Example:
        >>> gender = {"gender": ("man", "woman")}
        >>> spec = FairSpec(individuals=2, actions=2, features=(), sensitive=gender, groups=gender["gender"])
        >>> unique_names([GroupNotion(name="SP"), GroupNotion(name="SP", current_step=True)], spec)
        ('statistical_parity', 'statistical_parity (current step)')
    """
    names = [name_of(notion) for notion in notions]
    for name in set(names):
        places = [n for n, own in enumerate(names) if own == name]
        options = [_options(notions[n], spec) for n in places]
        for n, own in zip(places, options, strict=True):
            telling = [word for key, word in own.items() if any(other.get(key) != word for other in options)]
            names[n] += f" ({', '.join(filter(None, telling))})" if any(telling) else ""
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

    Attributes:
        notions: The notions.
        names: Their display names, see `unique_names`.

    Raises:
        ValueError: The list is empty, or a notion is unknown or needs what the environment does not report.
    """

    def __init__(self, notions: Sequence[str | DecisionNotion], spec: FairSpec) -> None:
        if isinstance(notions, str) or not isinstance(notions, Sequence) or not notions:
            raise ValueError(f"notions must be a list of at least one name or notion, got {notions!r}")
        self._spec = spec
        self.notions = tuple(map(decision_notion, notions))
        for notion in self.notions:
            notion.check(spec)
        self.names = unique_names(self.notions, spec)
        grouped = [n for n, notion in enumerate(self.notions) if isinstance(notion, GroupNotion)]
        self._grouped = np.array(grouped, int)
        self._group_gaps = GroupGaps([self.notions[n] for n in grouped], spec)  # type: ignore[misc]
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


def gaps(notions: Sequence[str | DecisionNotion], history: History, *, last: Floats | None = None) -> Floats:
    """Return the gap of each notion in each lane of a history, shape (B, N): 0 is fair, NaN if undefined.

    Args:
        notions: N names or notions.
        history: The decisions.
        last: The previous gaps, shape (B, N), for notions with ``undefined="last"``.

    Raises:
        ValueError: The list is empty, or a notion is unknown or needs what the environment does not report.

    Example:
        >>> from fair_envs.history import SlidingWindow
        >>> gender = {"gender": ("man", "woman")}
        >>> spec = FairSpec(individuals=1, actions=2, features=(), sensitive=gender, groups=gender["gender"])
        >>> history = History(SlidingWindow(100), spec)
        >>> history.add_rows(sensitive=[[0], [0], [1], [1]], action=[1, 1, 0, 1])
        >>> print(gaps(["SP"], history))
        [[0.5]]
    """
    return Gaps(notions, history.spec)(history, last=last)


__all__ = ["BY_NAME", "DecisionNotion", "Gaps", "decision_notion", "gaps", "name_of", "unique_names"]
