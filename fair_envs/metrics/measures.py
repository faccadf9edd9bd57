"""The protocol of measures: numbers that follow a process step by step, one for each lane.

A `Measure` reads the record of a step (the columns ``fair_*``), the agents' rewards, or both. It has one value for each
of B lanes: 0 is fair, NaN if undefined. Wrappers, methods and the evaluation follow any measure in the same way. Gaps
between rates are in `fair_envs.metrics.rates`, notions on histories of decisions in `fair_envs.metrics.followed`, gaps
between returns in `fair_envs.metrics.disparity`, and distances between groups in `fair_envs.metrics.long_term`.
"""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core.interactions import PREFIX
from fair_envs.support.aliases import Columns, Flags, Floats, Ints
from fair_envs.support.parameters import PositiveInt, checked

FEATURES = PREFIX + "features"
ROWS = (FEATURES, PREFIX + "sensitive", PREFIX + "legitimate")
"""The columns with several entries for each person."""

OF_DECISION = (PREFIX + "action", PREFIX + "feedback")
"""The columns that are -1 without a decision."""


def check_without_probs(measure: "Measure", argument: str) -> None:
    """Raise ValueError if a measure needs the policy's action probabilities where nobody reports them.

    Args:
        measure: The measure.
        argument: What gave it.
    """
    if measure.needs_action_probs:
        raise ValueError(
            f"{argument} must not be {measure.name} here: it needs the policy's action probabilities, which are only "
            "reported to wrappers (fair_envs.wrappers.ReportActionProbs); use a notion of groups"
        )


@dataclass(frozen=True)
class Replay:
    """What a measure says about T steps.

    Attributes:
        value: The value after each step, shape (T, B).
        before: The value before each step, as `Measure.before`, shape (T, B).
        people: For a measure of rates, the group (-1: nobody), the benefit and the demand of each person in each step,
            each of shape (T, B, M); otherwise None.
    """

    value: Floats
    before: Floats
    people: tuple[Ints, Floats, Floats] | None = None


def _owner(kind: type, name: str) -> type:
    """Return the class that defines a method of a class."""
    return next(own for own in kind.__mro__ if name in vars(own))


class Measure:
    """A number for each of B lanes, updated step by step; 0 is fair, NaN if undefined.

    Subclasses override `measured` and `forget`, and may override `measured_together`. Copies are independent.

    Args:
        lanes: Number of lanes (B).

    Attributes:
        value: The number after the last step, shape (B,).
        before: The number before the last step, shape (B,). In an episode's first step it is the value before any step,
            which is NaN unless the measure defines another.
        reward: The agents' rewards in the step that is measured, shape (B, agents); None: they were not given.
        ended: The lanes whose episode ended with that step, shape (B,); None: it was not given.
        decided: The lanes with a decision in that step (``fair_decided``), shape (B,); all, if it was not given.
    """

    blank: float = math.nan
    """The value before the first step."""

    name: str = ""
    """A short name for tables and logs; empty: the name of the class."""

    keeps: bool = False
    """Whether the value continues across episodes, as for a window of decisions or of episodes."""

    conditional: bool = False
    """Whether groups are compared within each value of the legitimate factors."""

    least: float = 0.0
    """A lower bound of the value."""

    worst: float = math.inf
    """An upper bound of the value."""

    needs_action_probs: bool = False
    """Whether the policy's action probabilities (``fair_action_probs``) must be reported."""

    def __init__(self, lanes: int) -> None:
        self.lanes = checked("lanes", lanes, PositiveInt)
        self.value: Floats = np.full(self.lanes, self.blank)
        self.before: Floats = np.full(self.lanes, self.blank)
        self.reward: Floats | None = None
        self.ended: Flags | None = None
        self._everyone: Flags = np.ones(self.lanes, bool)
        self._everyone.flags.writeable = False
        self.decided: Flags = self._everyone
        self._names: tuple[str, ...] = ()  # of the columns to read
        self._last_feature = 0  # index of the last feature to read
        self._shapes: list[tuple[str, tuple[int, ...]]] = []  # shapes of columns that were accepted
        self._single = False  # whether these columns have no axis of lanes

    @property
    def reads(self) -> tuple[str, ...]:
        """The keys of ``info`` that are read; empty if they are unknown."""
        return self._names

    def __copy__(self) -> "Measure":
        return copy.deepcopy(self)

    def update(self, info: Columns, reward: ArrayLike | None = None, *, ended: Flags | None = None) -> Floats:
        """Add a step and return the value after it, shape (B,), as a new array.

        Lanes without a decision (``fair_decided`` 0, a reset) do not change.

        Args:
            info: The columns ``fair_*`` of the step in all lanes, lanes first, like the ``info`` of a vector
                environment. For one lane, the ``info`` of a single environment also works.
            reward: The agents' rewards in the step, shape (B, agents), or (B,) for one agent; only measures of returns
                read them.
            ended: The lanes whose episode ended with this step, shape (B,); only measures of whole episodes read it.

        Raises:
            ValueError: A column is missing, has another shape, or names an unknown group; or rewards or ends of
                episodes are needed and missing. Nothing has changed in this case.
        """
        self.reward = None if reward is None else np.asarray(reward, np.float64).reshape(self.lanes, -1)
        self.ended = ended
        self.decided = self._decided(info)
        self._advance(info)
        return np.array(self.value)

    def _advance(self, info: Columns) -> None:
        """Add a step whose rewards, ends of episodes and decisions are set."""
        value: Floats = self.measured(info)
        if self._some_undecided:
            value = np.where(self.decided, value, self.value)
        self.before, self.value = self.value, value

    def replay(self, info: Columns, reward: Floats | None = None, *, first: Flags, ended: Flags) -> Replay:
        """Add T steps at once, as `restart` and `update` would add them one by one.

        Args:
            info: The columns of `update` with one more axis, the step, in front: (T, B, ...).
            reward: The agents' rewards, shape (T, B, agents), or None.
            first: The lanes whose step is the first of an episode, shape (T, B).
            ended: The lanes whose episode ended with the step, shape (T, B).

        Raises:
            ValueError: See `update`. The steps before the invalid one may have been added.
        """
        value, before = np.empty(first.shape), np.empty(first.shape)
        decided = info.get(PREFIX + "decided")
        if decided is not None and np.all(decided):
            decided = None
        names = [name for name in self.reads or info if name in info]
        self.decided = self._everyone
        together = None if decided is not None else self._together(info, first)
        if together is not None:
            return together
        steps = zip(*(info[name] for name in names), strict=True) if names else [()] * len(first)
        rewards = None if reward is None else np.asarray(reward, np.float64).reshape(len(first), self.lanes, -1)
        begins: list[bool] = np.any(first, axis=1).tolist()
        for t, columns in enumerate(steps):
            if begins[t]:
                self.restart(first[t])
            self.reward, self.ended = None if rewards is None else rewards[t], ended[t]
            if decided is not None:
                self.decided = self._decided({PREFIX + "decided": decided[t]})
            self._advance(dict(zip(names, columns, strict=True)))
            value[t], before[t] = self.value, self.before
        return Replay(value, before)

    def _together(self, info: Columns, first: Flags) -> Replay | None:
        """Add T steps in which all lanes decide, in one call; None: nothing has changed, add them separately."""
        if not self._names or not all(name in info for name in self._names):
            return None
        step, steps = (_owner(type(self), name) for name in ("measured", "measured_together"))
        if step is not steps and issubclass(step, steps):  # a subclass measures differently
            return None
        columns = [info[name] for name in self._names]
        self._reported({name: column[0] for name, column in zip(self._names, columns, strict=True)})  # has these shapes
        found = None if self._single else self.measured_together(columns, first)
        if found is None:
            return None
        value, before = found
        self.value, self.before = value[-1].copy(), before[-1].copy()
        return Replay(value, before)

    def measured_together(self, columns: Sequence[NDArray[Any]], first: Flags) -> tuple[Floats, Floats] | None:
        """Add T steps in which all lanes decide, and return the values after and before each of them, shape (T, B).

        Subclasses may override it if they can do this faster than step by step, where most of the time is Python's.

        Args:
            columns: The columns that the measure reads, shape (T, B, ...).
            first: The lanes whose step is the first of an episode, shape (T, B).

        Returns:
            The values, as new arrays. None: a column is invalid, or there is no faster way; nothing has changed then.
        """
        return None

    def restart(self, mask: Flags) -> None:
        """Clear the masked lanes, whose next episodes begin.

        Args:
            mask: Booleans, shape (B,).

        Raises:
            ValueError: The mask has another type, such as lane numbers, or another shape.
        """
        if not (isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (self.lanes,)):
            raise ValueError(f"mask must be an array of bool of shape {(self.lanes,)}, got {mask!r}")
        if not np.count_nonzero(mask):
            return
        blank = self.value if self.keeps else self.blank
        self.value = np.where(mask, blank, self.value)
        self.before = np.where(mask, blank, self.before)
        self.forget(mask)

    def _decided(self, info: Columns) -> Flags:
        """Return the lanes with a decision; all, if ``info`` does not say it."""
        given = info.get(PREFIX + "decided")
        if given is None:
            return self._everyone
        if np.size(given) != self.lanes:
            raise ValueError(f"fair_decided must have {self.lanes} lanes, got shape {np.shape(given)}")
        return np.asarray(given).reshape(self.lanes) != 0

    @property
    def _some_undecided(self) -> bool:
        """Whether a lane has no decision in the step that is measured."""
        return self.decided is not self._everyone and np.count_nonzero(self.decided) < self.lanes

    def measured(self, info: Columns) -> Floats:
        """Add a step and return the value after it, shape (B,), as a new array; lanes without a decision may be NaN."""
        raise NotImplementedError

    def forget(self, mask: Flags) -> None:
        """Clear the data of the masked lanes, shape (B,)."""

    def snapshot(self) -> list[NDArray[Any]]:
        """Return copies of all arrays and numbers of the state, in a fixed order.

        Numbers in tuples count as constants. Lists and dictionaries must keep their lengths.
        """
        return [np.array(value) for _, _, value in numbers_in([self])]

    def restore(self, snapshot: Sequence[NDArray[Any]]) -> None:
        """Restore a snapshot of a measure with the same arguments.

        Arrays are written in place where their shapes match, so an array with two names stays shared.
        """
        for (owner, name, current), saved in zip(numbers_in([self]), snapshot, strict=True):
            if not isinstance(current, np.ndarray):
                _put(owner, name, type(current)(saved.item()))
                continue
            fits = current.flags.writeable and (current.shape, current.dtype) == (saved.shape, saved.dtype)
            if owner is None or fits:
                current[...] = saved
            else:
                _put(owner, name, saved.copy())

    def _reported(self, info: Columns) -> Sequence[NDArray[Any]]:
        """Return the columns of ``info`` that are read, with an axis of lanes; -1 in lanes without a decision."""
        try:
            reported = [column for name, shape in self._shapes if (column := info[name]).shape == shape]
        except (AttributeError, KeyError):
            reported = []
        if len(reported) < len(self._names):
            reported = self._looked_over(info)
        found = [np.asarray(column)[np.newaxis] for column in reported] if self._single else list(reported)
        if self._some_undecided:
            for place, name in enumerate(self._names):
                if name in OF_DECISION:
                    column = found[place]
                    decided = self.decided.reshape(self.lanes, *(1,) * (column.ndim - 1))
                    found[place] = np.where(decided, column, column.dtype.type(-1))
        return found

    def _looked_over(self, info: Columns) -> list[NDArray[Any]]:
        """Return the columns unchanged if their shapes are consistent, and remember these shapes."""
        missing = [name for name in self._names if name not in info]
        if missing:
            raise ValueError(f"info must have the key {missing[0]!r}, got {sorted(map(str, info))}")
        reported = [np.asarray(info[name]) for name in self._names]
        single = self.lanes == 1 and reported[0].shape[:1] != (1,)  # of an environment without lanes
        people = (1,) * single + reported[0].shape  # the first column has one number for each person
        for name, column in zip(self._names, reported, strict=True):
            shape = (1,) * single + column.shape
            if name == FEATURES and not shape[-1:] > (self._last_feature,):
                raise ValueError(f"{name} must have more than {self._last_feature} columns, got {column.shape}")
            own = shape[:-1] if name in ROWS else shape
            if own != people or people[0] != self.lanes or len(people) > 2:
                raise ValueError(f"{name} must have {self.lanes} lanes and fit {self._names[0]}, got {column.shape}")
        self._shapes = [(name, column.shape) for name, column in zip(self._names, reported, strict=True)]
        self._single = single
        return reported


class FunctionMeasure(Measure):
    """A measure computed by a function of a step's ``info``, for custom environments.

    Args:
        lanes: Number of lanes (B).
        function: ``info -> (B,)`` numbers, where 0 is fair; called once a step.

    Example:
        >>> half = FunctionMeasure(2, lambda info: abs(info["fair_action"] - 0.5))
        >>> half.update({"fair_action": np.array([0, 1])}).tolist()
        [0.5, 0.5]
    """

    least = -math.inf

    def __init__(self, lanes: int, function: Callable[[Columns], ArrayLike]) -> None:
        super().__init__(lanes)
        if not callable(function):
            raise ValueError(f"function must be a function of info, got {function!r}")
        self.function = function

    def measured(self, info: Columns) -> Floats:
        """Return the function's values."""
        value = np.array(self.function(info), np.float64)
        if value.shape != (self.lanes,):
            raise ValueError(f"function must return shape {(self.lanes,)}, got {value.shape}")
        return value


MeasureOf = Callable[[int], Measure]
"""Creates a measure for a number of lanes."""


def column_names(*names: str) -> tuple[str, ...]:
    """Return the keys of columns in ``info``."""
    return tuple(PREFIX + name for name in names)


def of_people(name: str, column: NDArray[Any]) -> NDArray[Any]:
    """Return a column, lanes first, with an axis of people; without one, each step is about one person."""
    return column[:, np.newaxis] if column.ndim == 1 + (name in ROWS) else column


def numbers_in(parts: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """Return the arrays and numbers in attributes, lists and dictionaries, also nested ones: owner, name and value.

    The owner is None for an array in a tuple, which cannot be replaced there. Numbers in tuples and frozen dataclasses
    never change and are left out.
    """
    found: list[tuple[Any, Any, Any]] = []
    for part in parts:
        if isinstance(part, np.ndarray):
            found.append((None, "", part))
        elif isinstance(part, tuple):
            found += numbers_in(part)
        elif isinstance(part, list):
            found += _numbers_of(part, enumerate(part))
        elif isinstance(part, dict):
            found += _numbers_of(part, ((key, part[key]) for key in sorted(part)))
        elif is_dataclass(part) and vars(type(part))["__dataclass_params__"].frozen:
            continue
        elif type(part).__module__.partition(".")[0] not in ("builtins", "numpy") and hasattr(part, "__dict__"):
            found += _numbers_of(
                part, ((name, value) for name, value in sorted(vars(part).items()) if name not in PASSING)
            )
    return found


def _numbers_of(owner: Any, entries: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any, Any]]:
    found: list[tuple[Any, Any, Any]] = []
    for name, value in entries:
        if isinstance(value, (np.ndarray, np.generic, bool, int, float)):
            found.append((owner, name, value))
        elif not callable(value) or isinstance(value, Measure):
            found += numbers_in([value])
    return found


def _put(owner: Any, name: Any, value: Any) -> None:
    """Replace an entry of a list or dictionary, or an attribute."""
    if isinstance(owner, (list, dict)):
        owner[name] = value
    else:
        setattr(owner, name, value)


PASSING = frozenset({"reward", "ended", "decided", "_everyone"})
"""Attributes of a measure that belong to one step and not to its state."""


__all__ = [
    "FunctionMeasure",
    "Measure",
    "MeasureOf",
    "Replay",
    "check_without_probs",
    "column_names",
    "numbers_in",
    "of_people",
]
