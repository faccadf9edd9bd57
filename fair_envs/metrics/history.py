"""Histories of decisions, affected people and labels, for fairness notions on decisions.

A history is filled from the ``info`` of any interface, or from arrays. It stores the decisions of each lane separately:
in a sliding window, with a discount, or all of them. Group notions read `History.counts`, which is updated in constant
time for each decision.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core.compilation import Kernel, copyto, kernel, known_call, one_layout, readable, record_of, rule
from fair_envs.core.interactions import MISSING, PERSONAL, PREFIX, FairSpec, facts_dtype, named_columns
from fair_envs.support.aliases import Columns, Facts, Flags, Floats, Floats32, Ints, Lane, Record, Records
from fair_envs.support.parameters import NonNegativeInt, PositiveInt, UnitInterval, checked

NEGATIVE, POSITIVE, UNKNOWN = range(3)
"""What is known about the label (the correct decision): the last axis of `History.counts`."""

BLOCK = 1000
"""How many rows of arrays are made to records at once."""

TOLERANCE = 2e-4
"""How much the sum of a distribution's single-precision numbers may differ from 1."""


# Memories -------------------------------------------------------------------------------------------------------------


class Weighting(NamedTuple):
    """How the weight of a decision changes over time."""

    factor: float = 1.0  # each later step multiplies the weight by this
    threshold: float = 0.0  # a decision is removed if its share of the total weight is below this
    minimum: int = 0  # this number of decisions is kept, whatever their weight


class Memory:
    """How long decisions count, and with which weight."""

    @property
    def capacity(self) -> int | None:
        """The largest number of stored decisions; None: no bound."""
        return None

    @property
    def surely_held(self) -> float:
        """How many decisions of one step are guaranteed to be kept until the next step."""
        if self.capacity is not None:
            return self.capacity
        _, threshold, minimum = self.weighting
        return max(minimum, 1 / threshold) if threshold else math.inf

    def holds(self, age: int, *, individuals: int) -> bool:
        """Return whether a decision may still be stored ``age`` steps later.

        Args:
            age: The number of later steps.
            individuals: The number of people that each step decides on.
        """
        newer = age * individuals
        if self.capacity is not None:
            return newer < self.capacity
        factor, threshold, minimum = self.weighting
        weight = age if factor == 1 else (1 - factor**age) / (1 - factor)
        return newer < minimum or factor**age >= threshold * (individuals * weight + factor**age)

    @property
    def weighting(self) -> Weighting:
        """How their weights change over time."""
        return Weighting()


@dataclass(frozen=True)
class SlidingWindow(Memory):
    """The most recent decisions, all with the same weight.

    Args:
        size: The number of decisions, at least 1.
    """

    size: int

    def __post_init__(self) -> None:
        """Check the size."""
        object.__setattr__(self, "size", checked("size", self.size, PositiveInt))

    @property
    def capacity(self) -> int:
        """The largest number of stored decisions."""
        return self.size


@dataclass(frozen=True)
class Full(Memory):
    """All decisions, all with the same weight."""


@dataclass(frozen=True)
class Discounted(Memory):
    """All decisions, with the weight ``factor ** age``; the age is the number of later steps.

    By default, the weights are the same for all notions. With ``algorithm="paper"``, the history follows the published
    code of FAReL, which discounts only individual fairness: it counts the exponent from within the window, removes
    older decisions once they hardly change individual fairness, and never removes or discounts decisions in its group
    counts. The history then stores every decision with the weight 1, and each individual notion removes decisions
    itself, see `fair_envs.metrics.individual`.

    Args:
        factor: Above 0, at most 1.
        threshold: A decision is removed once its share of the total weight is below this; 0: never. In the published
            algorithm: a change of the mean below this counts as small.
        delay: In the published algorithm: more small changes than this end the memory, and the newest
            ``minimum - delay`` decisions are not used as the older one of a pair.
        minimum: This number of decisions is kept, whatever their weight.
        algorithm: ``"weights"`` or ``"paper"``.
    """

    factor: float = 0.95
    threshold: float = 1e-4
    delay: int = 5
    minimum: int = 100
    algorithm: Literal["weights", "paper"] = "weights"

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("factor", "threshold"):
            object.__setattr__(self, name, checked(name, getattr(self, name), UnitInterval))
        if self.factor == 0 or self.threshold == 1:
            raise ValueError(f"factor must be above 0 and threshold below 1, got {self.factor} and {self.threshold}")
        object.__setattr__(self, "minimum", checked("minimum", self.minimum, PositiveInt))
        object.__setattr__(self, "delay", checked("delay", self.delay, NonNegativeInt))
        checked("algorithm", self.algorithm, Literal["weights", "paper"])

    @property
    def weighting(self) -> Weighting:
        """How their weights change over time."""
        return Weighting() if self.algorithm == "paper" else Weighting(self.factor, self.threshold, self.minimum)


def check_memory(name: str, memory: Any) -> None:
    """Raise ValueError if the named argument is not a memory."""
    if not isinstance(memory, Memory) or type(memory) is Memory:
        raise ValueError(f"{name} must be a SlidingWindow, Discounted or Full, got {memory!r}")


class Follower(Protocol):
    """Data that a notion keeps beside a history, so that it does not have to be computed again at every step."""

    def copy(self) -> "Follower":
        """Return an independent copy, for a copy of the history."""


# The history ----------------------------------------------------------------------------------------------------------


class History:
    """The decisions of B lanes, stored separately for each lane.

    Args:
        memory: `SlidingWindow`, `Discounted` or `Full`.
        spec: The environment's `FairSpec`, ``env.unwrapped.fair_spec``; make one for a user's own environment.
        lanes: The number of lanes (B); 1 for a single environment.
        keep: Whether decisions are kept when an episode ends; otherwise, each episode begins with an empty history.
        scores: Whether ``action_probs`` may contain arbitrary numbers, as in the published code of FAReL, which used
            log-probabilities as probabilities. Otherwise, numbers that are not a distribution are an error.

    Attributes:
        late_expired: How often a delayed label arrived for a decision that was already removed, shape (B,).
        version: A number that changes whenever a decision is added or removed.

    Copies are independent: evaluate a policy on a copy, and the original does not change.

    Example:
        >>> gender = {"gender": ("man", "woman")}
        >>> spec = FairSpec(individuals=1, actions=2, features=(), sensitive=gender, groups=gender["gender"])
        >>> history = History(SlidingWindow(100), spec)
        >>> history.add_rows(sensitive=[[0], [1], [1]], action=[1, 0, 1], feedback=[1, 1, 0])
        >>> len(history)
        3
    """

    def __init__(
        self, memory: Memory, spec: FairSpec, *, lanes: int = 1, keep: bool = True, scores: bool = False
    ) -> None:
        check_memory("memory", memory)
        if not isinstance(spec, FairSpec):
            raise TypeError(f"spec must be a FairSpec, such as env.unwrapped.fair_spec, got {type(spec).__name__}")
        if spec.actions < 2:
            raise ValueError(f"spec must have at least 2 actions, got {spec.actions}")
        self.memory, self.spec, self.keep = memory, spec, checked("keep", keep, bool)
        self.lanes, self.scores = checked("lanes", lanes, PositiveInt), checked("scores", scores, bool)
        self._labels = np.iinfo(np.int64).max if spec.amounts else spec.actions  # feedback is below this
        self._shape = tuple(len(names) for names in (*spec.sensitive.values(), *spec.legitimate.values()))
        self._settings = record_of(
            {
                "window": memory.capacity is not None,
                **memory.weighting._asdict(),
                "sizes": np.array(self._shape, np.int64),
                "actions": spec.actions,
                "labels": self._labels,
                "scores": self.scores,
            }
        )
        self._known_store: Kernel | None = None  # the compiled function of `store`
        self._layout, self._facts_dtype = _layout(spec), one_layout(facts_dtype(spec))
        self._no_probs = np.zeros((self.lanes, spec.individuals, spec.actions), np.float32)
        self._reported = _reported(spec)
        self._state = np.zeros(self.lanes, _state_dtype(math.prod(self._shape)))
        self._rows = np.zeros((self.lanes, memory.capacity or 64), _row_dtype(spec))
        self._followers: dict[Hashable, Follower] = {}
        self.version = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the data of notions, which they compute again when needed."""
        return self.__dict__ | {"_followers": {}, "_known_store": None}

    def __copy__(self) -> "History":
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> "History":
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__ | {"_state": self._state.copy(), "_rows": self._rows.copy()}
        other._followers = {key: follower.copy() for key, follower in self._followers.items()}
        return other

    def snapshot(self) -> dict[str, NDArray[np.uint8]]:
        """Return the stored decisions as bytes, for `restore`; notions compute their own data again when needed."""
        arrays = {"state": self._state, "rows": self._rows}
        return {name: np.frombuffer(array.tobytes(), np.uint8).copy() for name, array in arrays.items()}

    def restore(self, snapshot: Mapping[str, NDArray[np.uint8]]) -> None:
        """Restore a snapshot of a history with the same memory, environment and lanes.

        Raises:
            ValueError: The snapshot is from another history.
        """
        state, rows = snapshot["state"], snapshot["rows"]
        if state.nbytes != self._state.nbytes or rows.nbytes % (self.lanes * self._rows.dtype.itemsize):
            raise ValueError("snapshot must be of a history with the same memory, environment and lanes, got another")
        self._state = np.frombuffer(state.tobytes(), self._state.dtype).copy()
        self._rows = np.frombuffer(rows.tobytes(), self._rows.dtype).reshape(self.lanes, -1).copy()
        self._followers = {}
        self.version += 1

    def __len__(self) -> int:
        """Return the number of stored decisions in all lanes together."""
        return int((self._state["end"] - self._state["first"]).sum())

    @property
    def sizes(self) -> Ints:
        """The number of stored decisions in each lane, shape (B,)."""
        return np.array(self._state["end"] - self._state["first"])

    @property
    def late_expired(self) -> Ints:
        """How often a delayed label arrived for a decision that was already removed, shape (B,)."""
        return np.array(self._state["late_expired"])

    def counts(self, *, current_step: bool = False) -> Floats:
        """Return the total weight of the decisions by attributes, decision and label.

        The axes are: lane; the code of each sensitive attribute; the code of each legitimate factor; whether the
        decision was 1 (index 1) or another one (index 0); whether the label is another one (`NEGATIVE`), 1 (`POSITIVE`)
        or `UNKNOWN`.

        Args:
            current_step: Whether to count only the decisions of each lane's last step.
        """
        counted: Floats = np.array(self._state["now" if current_step else "counts"])
        return counted.reshape(self.lanes, *self._shape, 2, 3)

    def columns(self, lane: int = 0) -> dict[str, NDArray[Any]]:
        """Return a lane's decisions, the oldest first: the columns of `info` without prefix, and ``weight``."""
        self._check_lane(lane)
        state = self._state[lane]
        rows = self._rows[lane, np.arange(state["first"], state["end"]) % self._rows.shape[1]]
        sizes = self._shape or (1,)
        codes = np.stack(np.unravel_index(rows["profile"], sizes), axis=-1)[:, : len(self._shape)]
        attributes = len(self.spec.sensitive)
        reported = {name: rows[name].copy() for name in ("individual", "episode", "features", "action", "action_probs")}
        reported |= {"sensitive": codes[:, :attributes], "legitimate": codes[:, attributes:]}
        reported |= {name: rows[name].copy() for name in ("feedback", "outcome")}
        return reported | {"weight": self.memory.weighting.factor ** (state["step"] - rows["step"])}

    def frame(self, lane: int = 0) -> Any:
        """Return a lane's decisions as a pandas DataFrame, with the names of attribute values."""
        import pandas

        reported = self.columns(lane)
        return pandas.DataFrame(named_columns(self.spec, {name: reported[name] for name in IN_TABLES}))

    def ring(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return each lane's state, shape (B,), and its decisions, shape (B, capacity), for compiled notions.

        Decision number k of a lane is at index ``k % capacity``; the numbers from ``first`` up to ``end`` are stored.
        Both arrays belong to the history: do not write to them, and call this method again at every step.
        """
        return self._state, self._rows

    def follow(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return a notion's data by key, created by ``make`` at the first call; copies of the history copy the data."""
        if key not in self._followers:
            self._followers[key] = make()
        return self._followers[key]

    # ---------------------------------------------------------------------------------------- adding decisions

    def add(self, info: Mapping[str, Any]) -> None:
        """Add the decisions in the ``info`` of a step; the ``info`` of a reset starts an episode.

        Args:
            info: The ``info`` of the single interface, of the vector interface in any autoreset mode, or of all
                PettingZoo agents.

        Raises:
            ValueError: A key is missing, or a value lies outside the spec. Nothing has changed then.
        """
        if not isinstance(info, Mapping):
            raise TypeError(
                f"info must be a mapping, the last item that step and reset return, got {type(info).__name__}"
            )
        if info and all(isinstance(own, Mapping) for own in info.values()):
            info = self._of_agents(info)
        columns = self._columns(info)
        reported = self._lanes_in(f"_{PREFIX}decided", info.get(f"_{PREFIX}decided", np.ones(self.lanes, bool)))
        decided = columns["decided"].astype(bool)
        parts = [(columns, reported & decided)]
        if "_final_info" in info:  # these lanes ended an episode and started the next one in the same step
            ended = self._lanes_in("_final_info", info["_final_info"])
            parts.insert(0, (self._columns(info["final_info"]), ended))
        records = [(*self._records(own, self.lanes), mask) for own, mask in parts if np.count_nonzero(mask)]
        for one in records[1:] and records:  # check all of them before adding any
            self._check(*one)
        for one in records:
            self._add(*one)
        self.begin(reported & ~decided)

    def add_batch(self, facts: Facts, action_probs: Floats32 | None, *, decided: Flags, first: Flags) -> None:
        """Add the record of a batch, given which lanes made a decision and which start an episode.

        Args:
            facts: The record, shape (B,), see `fair_envs.core.interactions.facts_dtype`.
            action_probs: The probabilities reported by the policy, shape (B, M, A), or None.
            decided: Lanes that made a decision, shape (B,).
            first: Lanes that start an episode, shape (B,).

        Raises:
            ValueError: A shape is wrong, or a value lies outside the spec. Nothing has changed then.
        """
        probs = self._no_probs if action_probs is None else action_probs
        self._check_layout(facts, probs)
        decided, first = self._lanes_in("decided", decided), self._lanes_in("first", first)
        if np.count_nonzero(decided):
            self._add(facts, probs, decided)
        self.begin(first)

    def add_facts(
        self, facts: NDArray[np.void], action_probs: ArrayLike | None = None, *, done: ArrayLike | None = None
    ) -> None:
        """Add the record of a batch, shape (B,), such as ``vec_env.interactions``.

        Stable-Baselines3 environments start the next episode in the step that ends one, and only report the decision.
        Pass ``done=done`` there (``done=done.reshape(lanes, -1)[:, 0]`` if rows are agents); otherwise, the history
        does not notice the end of an episode.

        Args:
            facts: The record, see `fair_envs.core.interactions.facts_dtype`; lanes with ``decided`` 0 start an episode.
            action_probs: The probabilities reported by the policy, shape (B, M, A), or None.
            done: Lanes that start an episode after these decisions, booleans of shape (B,); none by default.

        Raises:
            ValueError: A shape is wrong, or a value lies outside the spec. Nothing has changed then.
        """
        probs = self._no_probs if action_probs is None else np.asarray(action_probs, np.float32)
        self._check_layout(facts, probs)
        ended = np.zeros(self.lanes, bool) if done is None else np.asarray(done)
        if ended.shape != (self.lanes,) or ended.dtype != bool:
            raise ValueError(f"done must have {self.lanes} entries, True or False, got {done!r}")
        decided = facts["decided"].astype(bool)
        self.add_batch(facts, probs, decided=decided, first=~decided | ended)

    def add_rows(
        self,
        *,
        action: ArrayLike,
        sensitive: ArrayLike,
        legitimate: ArrayLike | None = None,
        individual: ArrayLike | None = None,
        features: ArrayLike | None = None,
        action_probs: ArrayLike | None = None,
        feedback: ArrayLike | None = None,
        outcome: ArrayLike | None = None,
    ) -> None:
        """Add decisions from arrays to a history of one lane; each row is one step.

        Args:
            action: The decisions, shape (n,); -1: no decision.
            sensitive: Codes of the sensitive attributes, shape (n, attributes).
            legitimate: Codes of the legitimate factors, shape (n, factors).
            individual: Ids of the people, shape (n,); consecutive numbers by default.
            features: Finite numbers, shape (n, features); required if the spec has features.
            action_probs: Probability of each decision, shape (n, actions); all 0 if unknown.
            feedback: The labels (correct decisions), shape (n,); -1 (the default): not known yet.
            outcome: Finite numbers, shape (n,).

        Raises:
            ValueError: A shape or value does not fit the spec. Nothing has changed then.
        """
        if self.lanes != 1:
            raise ValueError(f"add_rows needs a history of 1 lane, got one of {self.lanes}")
        if np.ndim(action) != 1:
            raise ValueError(f"action must have shape (n,), got {np.shape(action)}")
        n = len(np.asarray(action))
        given = {"action": action, "sensitive": sensitive, "legitimate": legitimate, "individual": individual}
        given |= {"features": features, "action_probs": action_probs, "feedback": feedback, "outcome": outcome}
        if features is None and self.spec.features:
            raise ValueError(f"features must be given, the spec has {', '.join(self.spec.features)}; got None")
        blank = {"individual": self._state["step"][0] + np.arange(n), "feedback": np.full(n, MISSING)}
        columns = {}
        for name, (kind, width) in self._layout.items():
            shape = (n, *width)
            value = blank.get(name, np.zeros(shape)) if given[name] is None else np.asarray(given[name])
            columns[name] = _column(name, value, kind, shape)[:, np.newaxis]
        blocks = [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]
        for add in (False, True):  # check all of them before adding any
            for block in blocks:
                count = block.stop - block.start
                facts, probs = self._records({name: column[block] for name, column in columns.items()}, count)
                everyone = np.ones(count, bool)
                if not add:
                    self._check(facts, probs, everyone)
                    continue
                for row in range(count):
                    self._add(facts[row : row + 1], probs[row : row + 1], everyone[:1])

    def add_feedback(self, individual: ArrayLike, feedback: ArrayLike, *, lane: int = 0) -> None:
        """Add delayed labels for the last decisions on these people in the current episode.

        Args:
            individual: Ids of the people, shape (K,).
            feedback: The labels (correct decisions), shape (K,).
            lane: The lane of the episode.

        Raises:
            ValueError: This episode has no decision on a person with that id. Nothing has changed then. Ids between
                those of removed decisions count as removed too, since the history cannot know whether they were
                skipped.
        """
        self._check_lane(lane)
        who, what = (_integers(*given) for given in (("individual", individual), ("feedback", feedback)))
        if who.shape != what.shape or who.ndim != 1:
            raise ValueError(f"feedback must have the shape of individual, {who.shape}, got {what.shape}")
        late = np.tile(who, (self.lanes, 1)), np.tile(what, (self.lanes, 1)), np.full(self.lanes, who.size)
        mask = np.arange(self.lanes) == lane
        self._check_late(mask, *late, age=0)
        self._take_late(mask, *late, age=0)

    def begin(self, mask: Flags | None = None) -> None:
        """Start an episode in the masked lanes (all by default); without ``keep``, their decisions are removed."""
        lanes = np.ones(self.lanes, bool) if mask is None else mask
        if not np.count_nonzero(lanes):
            return
        self._state["episode"][lanes] += 1
        self._state["expired"][lanes] = 0
        self._state["now"][lanes] = 0
        self.version += 1
        if not self.keep:
            self._state["first"][lanes] = self._state["end"][lanes]
            for field in ("counts", "numbers", "total"):
                self._state[field][lanes] = 0

    # ------------------------------------------------------------------------------------------- implementation

    def _columns(self, info: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the columns of ``info``, with axes for lanes and individuals."""
        columns: dict[str, NDArray[Any]] = {}
        for name, key, kind, shape, personal in self._reported:
            if key not in info:
                raise ValueError(f"info must have the key {key!r}, got {sorted(map(str, info))}")
            value = np.asarray(info[key])
            if value.shape == shape and self.lanes == 1:
                value = value[np.newaxis]
            if value.shape != (self.lanes, *shape):
                raise ValueError(f"{key} must have shape {(self.lanes, *shape)}, got {value.shape}")
            if value.dtype != kind:
                if not np.can_cast(value.dtype, kind, casting="same_kind"):
                    raise ValueError(f"{key} must hold {kind} values, got {value.dtype}")
                value = value.astype(kind)
            columns[name] = value[:, np.newaxis] if personal else value
        return columns

    def _of_agents(self, infos: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return PettingZoo's infos as one info: joined if the agents are the affected people, else the first one."""
        several = list(infos.values())
        if self.spec.one_person or len(several) != self.spec.individuals:
            return dict(several[0])
        return {
            name: np.stack([own[name] for own in several]) if name in PERSONAL else value
            for name, value in several[0].items()
        }

    def _check_lane(self, lane: int) -> None:
        if not 0 <= lane < self.lanes:
            raise ValueError(f"lane must be between 0 and {self.lanes - 1}, got {lane}")

    def _records(self, columns: Columns, count: int) -> tuple[NDArray[Any], Floats32]:
        """Return columns as that many records, and their action probabilities.

        If there are columns of fewer people than the spec has individuals, there is no decision on the others.
        """
        facts = np.zeros(count, self._facts_dtype)
        facts["action"] = MISSING
        probs = np.zeros((count, *self._no_probs.shape[1:]), np.float32)
        for name, column in columns.items():
            if name in LATE:
                facts[name] = column
            elif name in self._layout:
                own = probs if name == "action_probs" else facts[name]
                own[:, : column.shape[1]] = column
        return facts, probs

    def _lanes_in(self, name: str, mask: ArrayLike) -> Flags:
        """Return the named mask of lanes, contiguous, or raise ValueError: compiled code does not check it."""
        flags = np.asarray(mask, bool)
        if flags.shape != (self.lanes,):
            raise ValueError(f"{name} must have shape ({self.lanes},), got {flags.shape}")
        return np.ascontiguousarray(flags)

    def _check_layout(self, facts: NDArray[Any], probs: Floats32) -> None:
        if not isinstance(facts, np.ndarray) or facts.dtype != self._facts_dtype or facts.shape != (self.lanes,):
            raise ValueError(f"facts must be {self.lanes} records of the spec's layout, got shape {np.shape(facts)}")
        if probs.shape != self._no_probs.shape:
            raise ValueError(f"action_probs must have shape {self._no_probs.shape}, got {probs.shape}")

    def _check(self, facts: NDArray[Any], probs: Floats32, mask: Flags) -> None:
        """Raise ValueError if codes, decisions, features, probabilities or delayed labels do not fit the spec."""
        self._store(facts, probs, mask, adding=False)
        if np.count_nonzero(facts["late_count"]):
            self._check_late(mask, *(facts[name] for name in LATE), age=self._age)

    def _add(self, facts: NDArray[Any], probs: Floats32, mask: Flags) -> None:
        """Add the delayed labels and then the decisions of the masked lanes.

        Raises:
            ValueError: A shape is wrong, or a value does not fit the spec. Nothing has changed then.
        """
        late, full = np.count_nonzero(facts["late_count"]), self._is_full()
        if late or full:
            self._check(facts, probs, mask)
        if full:
            self._grow()
        if late:
            self._take_late(mask, *(facts[name] for name in LATE), age=self._age)
        self._store(facts, probs, mask, adding=True)
        self.version += 1

    def _store(self, facts: NDArray[Any], probs: Floats32, mask: Flags, *, adding: bool) -> None:
        """Check the decisions of the masked lanes, and add them if all fit the spec.

        Raises:
            ValueError: A value does not fit the spec.
        """
        records = readable(np.ascontiguousarray(facts))
        own = self._settings, readable(self._state), readable(self._rows)
        arguments = (*own, mask, records, np.ascontiguousarray(probs, np.float32), adding)
        if self._known_store is None:
            found = store(*arguments)
            self._known_store = known_call(store, *arguments)  # it takes a third of the time
        else:
            found = self._known_store(*arguments)
        place, lane, person, k = found
        if place >= 0:
            name = CHECKED[place]
            column = probs if name == "action_probs" else facts[name]
            raise ValueError(self._odd(name, column[lane, person], k))

    def _odd(self, name: str, value: Any, k: int) -> str:
        """Return the error message for a person's entry in a column; k is the index of the wrong code."""
        if name in ("action", "feedback"):
            highest = self.spec.actions - 1
            allowed = "at least -1" if name == "feedback" and self.spec.amounts else f"between -1 and {highest}"
            return f"{name} must be {allowed}, got {value}"
        if name in ("sensitive", "legitimate"):
            attribute, values = list(getattr(self.spec, name).items())[k]
            return f"{name} {attribute!r} must be between 0 and {len(values) - 1}, got {value[k]}"
        if name == "features":
            return f"features must be finite numbers, got {value.tolist()}"
        return f"action_probs must be distributions: at least 0 and summing to 1, got {value.tolist()}"

    @property
    def _age(self) -> int:
        """How many steps before the last stored step the decisions were made whose labels arrive in the next step."""
        return max(self.spec.delay, 1) - 1

    def _check_late(self, mask: Flags, who: NDArray[Any], what: NDArray[Any], count: NDArray[Any], *, age: int) -> None:
        """Raise ValueError for delayed labels with a wrong number, a wrong value, or an unknown person."""
        stored = readable(self._state), readable(self._rows)
        odd, lane, k = check_late(*stored, mask, self._labels, age, who, what, count)
        if odd == ODD_COUNT:
            raise ValueError(f"late_count must be between 0 and {who.shape[1]}, got {count[lane]}")
        if odd == ODD_FEEDBACK:
            allowed = "at least 0" if self.spec.amounts else f"between 0 and {self.spec.actions - 1}"
            raise ValueError(f"feedback must be {allowed}, got {what[lane, k]}")
        if odd == ODD_PERSON:
            raise ValueError(f"late feedback must be for a person with a decision in this episode, got {who[lane, k]}")

    def _take_late(self, mask: Flags, who: NDArray[Any], what: NDArray[Any], count: NDArray[Any], *, age: int) -> None:
        """Write delayed labels to the last decisions on these people, made at least ``age`` steps before the last."""
        stored = readable(self._state), readable(self._rows)
        take_late(*stored, mask, self.memory.weighting.factor, age, who, what, count)

    def _is_full(self) -> bool:
        """Return whether a memory without bound has no room for another step."""
        room = self._rows.shape[1] - self.spec.individuals
        return self.memory.capacity is None and bool(self.sizes.max() > room)

    def _grow(self) -> None:
        """Make room for more rows in each lane."""
        capacity, more = self._rows.shape[1], self.spec.individuals
        larger = np.zeros((self.lanes, 2 * max(capacity, more)), self._rows.dtype)
        for lane, state in enumerate(self._state):
            places = np.arange(state["first"], state["end"])
            larger[lane, places % larger.shape[1]] = self._rows[lane, places % capacity]
        self._rows = larger


CHECKED = ("action", "feedback", "sensitive", "legitimate", "features", "action_probs")
"""The columns that are checked, in the order of the compiled check."""

IN_TABLES = (
    *("individual", "episode", "sensitive", "legitimate", "features", "action_probs"),
    *("action", "feedback", "outcome", "weight"),
)
"""The columns of `History.columns` in the order of `History.frame`."""

LATE = ("late_individual", "late_feedback", "late_count")
"""The columns of delayed labels: the people, the labels, and the number of rows that are used."""

FINE, ODD_COUNT, ODD_FEEDBACK, ODD_PERSON = range(4)  # what is wrong with delayed labels


class Reported(NamedTuple):
    """A column of ``info``."""

    name: str
    key: str
    kind: np.dtype[Any]
    shape: tuple[int, ...]  # of one lane's entry
    personal: bool  # whether the axis of individuals is missing, because there is only one


def _reported(spec: FairSpec) -> list[Reported]:
    """Return the columns of ``info`` that are read."""
    people = () if spec.one_person else (spec.individuals,)
    columns = {name: (kind, (*people, *width)) for name, (kind, width) in _layout(spec).items()}
    columns |= {"decided": (np.int8, ()), "late_count": (np.int64, ())}
    columns |= dict.fromkeys(("late_individual", "late_feedback"), (np.int64, (spec.late_rows,)))
    return [
        Reported(name, PREFIX + name, np.dtype(kind), shape, spec.one_person and PREFIX + name in PERSONAL)
        for name, (kind, shape) in columns.items()
    ]


def _layout(spec: FairSpec) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return dtype and shape of one individual's entry in each column."""
    return {
        "individual": (np.int64, ()),
        "sensitive": (np.int64, (len(spec.sensitive),)),
        "legitimate": (np.int64, (len(spec.legitimate),)),
        "action": (np.int64, ()),
        "feedback": (np.int64, ()),
        "features": (np.float32, (len(spec.features),)),
        "action_probs": (np.float32, (spec.actions,)),
        "outcome": (np.float32, ()),
    }


def _column(name: str, value: NDArray[Any], kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the named argument as numbers of a kind, or raise ValueError."""
    if value.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {value.shape}")
    if name == "outcome" and not np.isfinite(value).all():
        raise ValueError(f"outcome must hold finite numbers, got {value.tolist()}")
    if kind is np.int64 and not (np.isfinite(value).all() and (value == value.astype(kind)).all()):
        raise ValueError(f"{name} must hold integers, got {value.dtype} values")
    return value.astype(kind, order="C")  # as in a single environment: another memory order would be compiled again


def _integers(name: str, given: ArrayLike) -> Ints:
    """Return the named argument as a flat array of integers, or raise ValueError."""
    values = np.atleast_1d(np.asarray(given))
    if values.size and not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"{name} must hold integers, got {values.dtype} values")
    return values.astype(np.int64)


def _state_dtype(profiles: int) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("first", np.int64),  # number of the oldest row; row k is at index k % capacity
            ("end", np.int64),  # number of the next row
            ("step", np.int64),  # number of steps, including steps without a decision
            ("episode", np.int64),
            ("expired", np.int64),  # number of removed decisions of this episode
            ("expired_low", np.int64),  # the lowest and the highest id of their people
            ("expired_high", np.int64),
            ("late_expired", np.int64),
            ("total", np.float64),  # the weight of all rows
            ("counts", np.float64, (profiles, 2, 3)),
            ("numbers", np.int64, (profiles, 2, 3)),  # number of rows; if it is 0, the count is set to exactly 0
            ("now", np.float64, (profiles, 2, 3)),  # only of the last step
        ],
        align=True,
    )


def _row_dtype(spec: FairSpec) -> np.dtype[np.void]:
    return np.dtype(
        [
            ("individual", np.int64),
            ("episode", np.int64),
            ("step", np.int64),
            ("profile", np.int64),  # one number for the codes of all attributes and factors
            ("action", np.int64),
            ("feedback", np.int64),
            ("features", np.float32, (len(spec.features),)),
            ("action_probs", np.float32, (spec.actions,)),
            ("outcome", np.float32),
        ],
        align=True,
    )


@rule
def reported_well(probs: Floats32) -> bool:
    """Return whether numbers are a distribution, or all 0 (not reported)."""
    total, least = 0.0, 0.0
    for a in range(probs.shape[0]):
        total += probs[a]
        if not probs[a] >= least:  # NaN too
            return False
    return total == 0.0 or abs(total - 1.0) <= TOLERANCE


@rule
def fade(values: Floats, factor: float) -> None:
    """Multiply all values by a factor, in place."""
    for j in range(values.shape[0]):
        values[j] *= factor


@rule
def known(feedback: int) -> int:
    """Return the index of a label in the counts: unknown, positive or negative."""
    return UNKNOWN if feedback < 0 else POSITIVE if feedback == 1 else NEGATIVE


@rule
def count(lane: Lane, row: Record, number: int, weight: float) -> None:
    """Add a row to the weights of its profile, decision and label, or subtract it (number -1)."""
    cell = row.profile, int(row.action == 1), known(row.feedback)
    lane.numbers[cell] += number
    lane.counts[cell] = lane.counts[cell] + number * weight if lane.numbers[cell] else 0.0


@rule
def forget(lane: Lane, row: Record, weight: float) -> None:
    """Remove the oldest row from the history."""
    count(lane, row, -1, weight)
    lane.total -= weight
    lane.first += 1
    if row.episode == lane.episode:
        who = row.individual
        lane.expired_low = min(lane.expired_low, who) if lane.expired else who
        lane.expired_high = max(lane.expired_high, who) if lane.expired else who
        lane.expired += 1


@rule
def may_have_expired(lane: Lane, individual: int) -> bool:
    """Return whether a person's decision may be among the removed decisions of this episode."""
    return lane.expired > 0 and lane.expired_low <= individual <= lane.expired_high


@rule
def weigh_again(lane: Lane, rows: Records, cell: tuple[int, int, int], factor: float) -> None:
    """Compute the weight of a cell again from its rows, after subtraction has lost precision."""
    capacity = rows.shape[0]
    weight = 0.0
    for number in range(lane.first, lane.end):
        row = rows[number % capacity]
        if (row.profile, int(row.action == 1), known(row.feedback)) == cell:
            weight += factor ** (lane.step - row.step)
    lane.counts[cell] = weight


@rule
def first_after(lane: Lane, rows: Records, latest: int) -> int:
    """Return the number of the first row after step ``latest``; rows are in the order of their steps."""
    capacity = rows.shape[0]
    low, high = lane.first, lane.end
    while low < high:
        middle = (low + high) // 2
        if rows[middle % capacity].step <= latest:
            low = middle + 1
        else:
            high = middle
    return low


@rule
def place_of(lane: Lane, rows: Records, individual: int, latest: int) -> int:
    """Return the index of the last decision on a person in this episode up to step ``latest``, or -1."""
    capacity = rows.shape[0]
    for number in range(first_after(lane, rows, latest) - 1, lane.first - 1, -1):
        row = rows[number % capacity]
        if row.episode != lane.episode:
            break
        if row.individual == individual:
            return number % capacity
    return -1


@rule
def labelled(lane: Lane, rows: Records, individual: int, age: int) -> int:
    """Return the index of the last decision on a person at least ``age`` steps before the last step, or -1.

    If all of them were made later, it is the last one.
    """
    place = place_of(lane, rows, individual, lane.step - age)
    if place < 0 and age > 0 and not may_have_expired(lane, individual):
        return place_of(lane, rows, individual, lane.step)
    return place


@rule
def profile_of(sizes: Ints, sensitive: Ints, legitimate: Ints) -> int:
    """Return one number that encodes all attributes and factors."""
    profile, attributes = 0, sensitive.shape[0]
    for k in range(sizes.shape[0]):
        code = sensitive[k] if k < attributes else legitimate[k - attributes]
        profile = profile * sizes[k] + code
    return profile


@rule
def odd_code(codes: Ints, sizes: Ints, first: int) -> int:
    """Return the index of the first code that is out of range, or -1."""
    for k in range(codes.shape[0]):
        if not 0 <= codes[k] < sizes[first + k]:
            return k
    return -1


@rule
def odd_of(settings: Record, fact: Record, m: int, probs: Floats32) -> tuple[int, int]:
    """Return the index of the decision's first column that is out of range (-1: none), and the index of the entry."""
    if not MISSING <= fact.action[m] < settings.actions:
        return 0, 0
    if fact.action[m] == MISSING:
        return -1, 0
    if not MISSING <= fact.feedback[m] < settings.labels:
        return 1, 0
    odd = odd_code(fact.sensitive[m], settings.sizes, 0)
    if odd >= 0:
        return 2, odd
    odd = odd_code(fact.legitimate[m], settings.sizes, fact.sensitive.shape[1])
    if odd >= 0:
        return 3, odd
    for f in range(fact.features.shape[1]):
        if not np.isfinite(fact.features[m, f]):
            return 4, f
    return (-1, 0) if settings.scores or reported_well(probs) else (5, 0)


@rule
def remember(lane: Lane, rows: Records, settings: Record, fact: Record, probs: Floats32) -> None:
    """Add a lane's decisions of a step to its rows, and remove those that no longer count."""
    capacity = rows.shape[0]
    lane.step += 1
    lane.now[:] = 0
    if settings.factor != 1.0:
        for profile in range(lane.counts.shape[0]):
            for decision in range(2):
                fade(lane.counts[profile, decision], settings.factor)
        lane.total *= settings.factor
    for m in range(fact.action.shape[0]):
        if fact.action[m] < 0:
            continue
        if settings.window and lane.end - lane.first == capacity:
            forget(lane, rows[lane.first % capacity], 1.0)
        row = rows[lane.end % capacity]
        row.individual, row.episode, row.step = fact.individual[m], lane.episode, lane.step
        row.profile = profile_of(settings.sizes, fact.sensitive[m], fact.legitimate[m])
        row.action, row.feedback = fact.action[m], fact.feedback[m]
        copyto(row.features, fact.features[m])
        copyto(row.action_probs, probs[m])
        row.outcome = fact.outcome[m]
        count(lane, row, 1, 1.0)
        lane.now[row.profile, int(row.action == 1), known(row.feedback)] += 1.0
        lane.total += 1.0
        lane.end += 1
    while settings.threshold > 0.0 and lane.end - lane.first > settings.minimum:
        oldest = rows[lane.first % capacity]
        weight = settings.factor ** (lane.step - oldest.step)
        if weight >= settings.threshold * lane.total:
            break
        forget(lane, oldest, weight)


@kernel
def store(
    settings: Records,
    state: Records,
    rows: Records,
    mask: Flags,
    facts: Records,
    probs: Floats32,
    adding: bool,
) -> tuple[int, int, int, int]:
    """Check the decisions of the masked lanes, and with ``adding`` add them to the history if all fit.

    Returns:
        The index of the first column that is out of range (-1: none), and its lane, individual and entry.
    """
    for b in range(mask.shape[0]):
        for m in range(facts[b].action.shape[0] if mask[b] else 0):
            odd, k = odd_of(settings[0], facts[b], m, probs[b, m])
            if odd >= 0:
                return odd, b, m, k
    for b in range(state.shape[0] if adding else 0):
        if mask[b]:
            remember(state[b], rows[b], settings[0], facts[b], probs[b])
    return -1, 0, 0, 0


@kernel
def check_late(
    state: Records, rows: Records, mask: Flags, labels: int, age: int, who: Ints, what: Ints, used: Ints
) -> tuple[int, int, int]:
    """Return what is wrong with labels of decisions at least ``age`` steps ago, and where the first wrong one is.

    Returns:
        The kind of error, its lane, and the index of the label.
    """
    for b in range(state.shape[0]):
        if not mask[b]:
            continue
        if not 0 <= used[b] <= who.shape[1]:
            return ODD_COUNT, b, 0
        for k in range(used[b]):
            if not 0 <= what[b, k] < labels:
                return ODD_FEEDBACK, b, k
            place = labelled(state[b], rows[b], who[b, k], age)
            if place < 0 and not may_have_expired(state[b], who[b, k]):
                return ODD_PERSON, b, k
    return FINE, 0, 0


@kernel
def take_late(
    state: Records, rows: Records, mask: Flags, factor: float, age: int, who: Ints, what: Ints, used: Ints
) -> None:
    """Write the labels that arrive now to the last decisions at least ``age`` steps ago."""
    for b in range(state.shape[0]):
        if not mask[b]:
            continue
        lane = state[b]
        for k in range(used[b]):
            place = labelled(lane, rows[b], who[b, k], age)
            if place < 0:
                lane.late_expired += 1
                continue
            row = rows[b, place]
            weight = factor ** (lane.step - row.step)
            acted, before = int(row.action == 1), known(row.feedback)
            cell = row.profile, acted, before
            had = lane.counts[cell]
            count(lane, row, -1, weight)
            row.feedback = what[b, k]
            if lane.counts[cell] < 0.01 * had and lane.numbers[cell]:  # the subtraction has lost precision
                weigh_again(lane, rows[b], cell, factor)
            count(lane, row, 1, weight)
            if row.step == lane.step:
                lane.now[row.profile, acted, before] -= 1.0
                lane.now[row.profile, acted, known(row.feedback)] += 1.0


__all__ = ["NEGATIVE", "POSITIVE", "UNKNOWN", "Discounted", "Full", "History", "Memory", "SlidingWindow"]
