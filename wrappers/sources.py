"""Sources: where the columns of the record come from in a user's own environment, see `fair_envs.wrappers.Annotate`."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from fair_envs.support.aliases import Floats, Ints

When = Literal["before", "after"]
Function = Callable[[Any, Any, Mapping[str, Any]], Any]
"""A function of the observation before the decision, the action and an ``info``."""

INFOS: Mapping[When, str] = {"before": "the info that came with the observation", "after": "the info of the step"}


@dataclass(frozen=True)
class InInfo:
    """A key of one of the two ``info`` of a decision, or a function that gets this ``info``; see `before`, `after`."""

    source: str | Function
    when: When

    def __post_init__(self) -> None:
        """Check the source."""
        if not isinstance(self.source, str) and not callable(self.source):
            raise ValueError(f"{self.when} must get a key of info or a function, got {self.source!r}")


def before(source: str | Function) -> InInfo:
    """Return a source in the ``info`` that came with the observation: of the previous step, or of the reset.

    Args:
        source: A key of this ``info``, or a function of the observation, the action and this ``info``.
    """
    return InInfo(source, "before")


def after(source: str | Function) -> InInfo:
    """Return a source in the ``info`` of the step that made the decision.

    Args:
        source: A key of this ``info``, or a function of the observation before the decision, the action and this
            ``info``.
    """
    return InInfo(source, "after")


Source = int | slice | str | Function | InInfo
"""Where a column of the record comes from, see `fair_envs.wrappers.Annotate`."""


class Decision(NamedTuple):
    """A decision, and what was known before and after it."""

    observation: Any  # before the decision
    entries: Floats  # its numbers, see `Entries`
    shown: Mapping[str, Any]  # the info that came with it
    action: Any
    info: Mapping[str, Any]  # of the step


# The numbers of an observation or an action ---------------------------------------------------------------------------


class Leaf(NamedTuple):
    """A part of a space whose values are arrays of numbers."""

    path: tuple[Any, ...]  # keys and indices in Dict and Tuple spaces
    counts: Ints  # number of possible values of each entry, 0 if unknown
    start: Any  # the smallest value of each entry, which is counted as 0


def leaves(space: gym.Space[Any], path: tuple[Any, ...] = ()) -> Iterator[Leaf]:
    """Yield the parts of a space with numbers, in the order of the space; parts with other values are left out."""
    if isinstance(space, gym.spaces.Dict):
        for key, part in space.spaces.items():
            yield from leaves(part, (*path, key))
    elif isinstance(space, gym.spaces.Tuple):
        for place, part in enumerate(space.spaces):
            yield from leaves(part, (*path, place))
    elif isinstance(space, gym.spaces.Discrete):
        yield Leaf(path, np.array([space.n]), space.start)
    elif isinstance(space, gym.spaces.MultiDiscrete):
        yield Leaf(path, space.nvec.ravel().astype(np.int64), space.start.ravel())
    elif isinstance(space, (gym.spaces.Box, gym.spaces.MultiBinary)):
        count = 2 if isinstance(space, gym.spaces.MultiBinary) else 0
        yield Leaf(path, np.full(math.prod(space.shape), count), 0)


class Entries:
    """The numbers of the values of a space in one row; unlike in `gymnasium.spaces.flatten`, a Discrete is one number.

    Args:
        space: The space.
        word: What its values are, such as ``"observation"``.

    Attributes:
        names: The name of each number, such as ``"observation 0"``; in a Dict space, the keys.
        counts: How many values each number has, counted from 0; 0: unknown.
        places: The positions of the numbers under each key of a Dict space.
    """

    def __init__(self, space: gym.Space[Any], word: str) -> None:
        self.space, self.word = space, word
        self.keys = tuple(space.spaces) if isinstance(space, gym.spaces.Dict) else ()
        self._leaves = tuple(leaves(space))
        self.counts: Ints = np.concatenate([np.zeros(0, np.int64), *(leaf.counts for leaf in self._leaves)])
        self.names: list[str] = []
        self.places: dict[Any, list[int]] = {}
        for path, counts, _ in self._leaves:
            name = " ".join(map(str, path))
            alone = name and len(counts) == 1
            for k in range(len(counts)):
                self.places.setdefault(path[0] if path else None, []).append(len(self.names))
                self.names.append(name if alone else f"{name or word} {k}")

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return len(self.names)

    def __call__(self, value: Any) -> Floats:
        """Return the numbers of a value, in new memory.

        Raises:
            ValueError: There are more or fewer than the space says.
        """
        rows = [np.zeros(0)]
        for path, _, start in self._leaves:
            part = value
            for key in path:
                part = part[key]
            rows.append(np.asarray(part, np.float64).ravel() - start)
        found = np.concatenate(rows)
        if len(found) != len(self):
            raise ValueError(f"{self.word} must have {len(self)} numbers, as its space says, got {len(found)}")
        return found


# Where a value is -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """Numbers of the observation, or of the action.

    Attributes:
        text: Where they are, for reports and errors.
        entries: The numbers of all values; None: those of the observation, which are computed once.
        positions: Which of them.
    """

    text: str
    positions: tuple[int, ...]
    entries: Entries | None = None

    def value(self, decision: Decision) -> Any:
        """Return the number, or an array of several numbers."""
        row = decision.entries if self.entries is None else self.entries(decision.action)
        return row[list(self.positions)] if len(self.positions) > 1 else row[self.positions[0]]


@dataclass(frozen=True)
class Item:
    """The value under a key of a Dict observation or action that is not a number, such as a text."""

    text: str
    key: str
    acted: bool = False

    def value(self, decision: Decision) -> Any:
        """Return the value."""
        return (decision.action if self.acted else decision.observation)[self.key]


@dataclass(frozen=True)
class Key:
    """The value under a key of an ``info``."""

    text: str
    key: str
    when: When


@dataclass(frozen=True)
class Called:
    """The result of a user's function."""

    text: str
    function: Function
    when: When

    def value(self, decision: Decision) -> Any:
        """Return the result."""
        info = decision.shown if self.when == "before" else decision.info
        return self.function(decision.observation, decision.action, info)


Place = Numbers | Item | Key | Called


def locate(name: str, source: Any, entries: Entries, *, when: When, of_action: bool = False) -> Place:
    """Return where a source's value is.

    Args:
        name: The column, for error messages.
        source: The source.
        entries: The numbers of the observation or, with ``of_action``, of the action.
        when: The ``info`` that a key or a function without `before` or `after` means.
        of_action: Whether numbers and keys are of the action.

    Raises:
        ValueError: There is no such source.
    """
    word = entries.word
    if isinstance(source, InInfo):
        source, when = source.source, source.when
    elif isinstance(source, str) and source in entries.keys:
        text = f"{word}[{source!r}]"
        if source in entries.places:
            return Numbers(text, tuple(entries.places[source]), entries if of_action else None)
        return Item(text, source, of_action)
    if isinstance(source, str):
        return Key(f"{INFOS[when]}, key {source!r}", source, when)
    if callable(source):
        return Called(f"the function {getattr(source, '__name__', type(source).__name__)}", source, when)
    positions = _positions(name, source, entries)
    inside = f"{source}" if isinstance(source, int) else f"{positions[0]}:{positions[-1] + 1}"
    return Numbers(f"{word}[{inside}]", positions, entries if of_action else None)


def _positions(name: str, source: Any, entries: Entries) -> tuple[int, ...]:
    """Return the positions that an index or a slice selects, at least one."""
    size, word = len(entries), entries.word
    if isinstance(source, slice):
        if found := tuple(range(size)[source]):
            return found
        raise ValueError(f"{name} must come from entries of the {word}, which has {size}, got {source}")
    if isinstance(source, (int, np.integer)) and not isinstance(source, bool):
        if -size <= source < size:
            return (int(source) % size,)
        raise ValueError(f"{name} must come from an entry of the {word}, which has {size}, got the index {source}")
    raise ValueError(
        f"{name} must come from an index or a slice of the {word}, a key of info, a function, before(...) or "
        f"after(...), got {source!r}"
    )


def kept(info: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """Return a copy of an ``info`` that does not change if the environment changes the values of the keys in place."""
    return {**info, **{key: copy.deepcopy(info[key]) for key in keys if key in info}}
