"""Batches of lanes: arrays of records with seeds, clocks, restarts and snapshots. Every interface is a view of them."""

import functools
import math
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core import randomness
from fair_envs.core.compilation import (
    COMPILED,
    Kernel,
    kernel,
    kernels_of,
    known_call,
    one_layout,
    readable,
    unowned,
)
from fair_envs.core.interactions import FairSpec, blank_facts
from fair_envs.core.rules import Rules, in_units
from fair_envs.support.aliases import Flags, Floats, Records
from fair_envs.support.parameters import shown

LARGEST_SEED = 2**63 - 1
LARGEST_BATCH = 2**34
"""Largest size of a batch in bytes, including the report after a step."""


Amendment = Callable[[Rules, NDArray[np.void]], None]
"""Changes lanes that have just started, in place, before they are observed."""


class Step(NamedTuple):
    """The report of a batch after a step or a restart; all arrays are new."""

    observation: NDArray[Any]  # (lanes, agents, ...)
    reward: Floats  # (lanes, agents)
    terminated: Flags  # (lanes,)
    truncated: Flags  # (lanes,)
    facts: NDArray[np.void]  # (lanes,)


def active_agents(rules: Rules, records: NDArray[np.void]) -> Flags:
    """Return which agents have not left before the others, shape (B, agents), for lanes of shape (B,); a new array."""
    if rules.leaving_field is None:
        return np.ones((len(records), rules.agents(rules.params)), bool)
    return np.asarray(records[rules.leaving_field] == 0)


class Lanes:
    """A batch of episodes under one set of rules.

    Args:
        rules: The environment.
        count: Number of lanes (B), at least 1, at most as many as fit into `LARGEST_BATCH`.
        threads: Number of threads that share the lanes; the results do not depend on it.

    Attributes:
        records: The complete state, shape (B,). Change it only in place; a copy is a snapshot.
        amendments: Functions that change every lane that starts, in this order; empty at first.
    """

    def __init__(self, rules: Rules, count: int, *, threads: int = 1) -> None:
        check_batch("count", count, rules)
        check_count("threads", threads)
        self.rules = rules
        self.count = int(count)
        self.threads = min(int(threads), self.count)
        self.agents = rules.agents(rules.params)
        self.records: Any = np.zeros(count, rules.dtype)  # Any: type checkers need a second for ten NDArray fields
        self.seeded = False
        self.amendments: list[Amendment] = []
        blank = blank_facts(rules.spec)
        self._blank = blank.view(one_layout(blank.dtype))
        space = rules.observation_space(rules.params)
        self._observation_shape = (self.count, self.agents, *(space.shape or ()))
        self._observation_dtype = space.dtype
        self._reward_shape, self._bytes = (self.count, self.agents), self.count * self._blank.dtype.itemsize
        self._everyone = np.ones(self.count, bool)
        edges = np.linspace(0, self.count, self.threads + 1).astype(int)
        self._parts = [slice(low, high) for low, high in pairwise(edges)]  # a thread always has the same lanes
        self._known: dict[Any, Kernel] = {}  # compiled functions for `_advance_all`, by the kind of actions

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without machine code, which only works in this process."""
        return {**vars(self), "_known": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy's state; see `Rules`."""
        vars(self).update(state)
        self.records = self.records.view(self.rules.dtype)
        self._blank = self._blank.view(one_layout(self._blank.dtype))

    def seed(self, seeds: ArrayLike) -> None:
        """Set each lane's seed; its next restart begins the seed's first episode."""
        self.records["seed"] = check_seeds(seeds, self.count)
        self.records["episode"] = np.uint64(2**64 - 1)  # the next restart makes it 0
        self.seeded = True

    def blank_step(self) -> Step:
        """Return an empty report; `restart` and `advance` fill it in."""
        step = self._unwritten_step()
        step.facts[:] = self._blank
        return step

    def _unwritten_step(self) -> Step:
        """Return a report with uninitialised records and observations, to be written by every lane."""
        record = np.empty(self._bytes, np.uint8)  # allocated in half the time of an array of records
        return Step(
            np.empty(self._observation_shape, self._observation_dtype),
            np.zeros(self._reward_shape),
            np.zeros(self.count, bool),
            np.zeros(self.count, bool),
            np.frombuffer(record, self._blank.dtype),
        )

    def restart(self, *, mask: Flags | None = None, out: Step | None = None) -> Step:
        """Begin the next episode of the masked lanes (all by default) and return their first observations."""
        if not self.seeded:
            self.seed(fresh_seeds(self.count))
        mask = self._everyone if mask is None else mask
        self._clear(mask)
        self._run("begin", (), (self.records, mask))
        if self.amendments:
            self._amend(mask)
        return self.show(mask=mask, out=out)

    def _clear(self, mask: Flags) -> None:
        """Set the masked lanes to 0, except for their seeds and the numbers of their next episodes."""
        if np.count_nonzero(mask) == self.count:  # in place: a batch can take half of the memory
            kept = self.records["seed"].copy(), self.records["episode"] + np.uint64(1)
            self.records.view(np.uint8)[:] = 0
            self.records["seed"], self.records["episode"] = kept
            return
        fresh = np.zeros(int(mask.sum()), self.records.dtype)
        fresh["seed"] = self.records["seed"][mask]
        fresh["episode"] = self.records["episode"][mask] + np.uint64(1)
        self.records[mask] = fresh

    def _amend(self, mask: Flags) -> None:
        started = self.records[mask]
        for amendment in self.amendments:
            amendment(self.rules, started)
        self.records[mask] = started

    def advance(self, actions: NDArray[Any], *, mask: Flags | None = None, out: Step | None = None) -> Step:
        """Play one step of the masked lanes (all by default); actions have shape (B, agents, ...)."""
        if mask is None and out is None:
            return self._advance_all(actions)
        out = self.blank_step() if out is None else out
        mask = self._everyone if mask is None else mask
        self._run("advance", (self._blank,), (self.records, mask, actions, *out))
        return out

    def _advance_all(self, actions: NDArray[Any]) -> Step:
        """Play one step of all lanes; Numba only checks argument types at the first call with such actions.

        All other arrays belong to this batch or its rules, and have the same type at every call.
        """
        out = self._unwritten_step()
        arguments = (_passed(self.rules.code), self._blank, self.records, self._everyone, actions, *out)
        carray = actions.flags.carray  # contiguous and writeable
        kind = (actions.dtype, actions.ndim, id(self.rules)) if carray else None
        known = self._known.get(kind)
        if known is not None:
            known(*arguments)
            return out
        self._run("advance", (self._blank,), (self.records, self._everyone, actions, *out))
        if kind is not None and COMPILED and self.threads == 1:
            self._known[kind] = known_call(kernels(type(self.rules))["advance"], *arguments)  # type: ignore[arg-type]
        return out

    def show(self, *, mask: Flags | None = None, out: Step | None = None) -> Step:
        """Return the current observations of the masked lanes (all by default), also after manual changes."""
        mask = self._everyone if mask is None else mask
        out = self.blank_step() if out is None else out
        self._run("show", (self.rules.spec.same_individuals,), (self.records, mask, out.observation, out.facts))
        return out

    def observe(self) -> NDArray[Any]:
        """Return the current observations of the agents of all lanes, shape (B, agents, ...)."""
        return self.show().observation

    def active(self) -> Flags:
        """Return which agents have not left before the others, shape (B, agents)."""
        return active_agents(self.rules, self.records)

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions can be chosen without a loss, shape (B, agents, n), see `Rules.action_masks`."""
        return self.rules.action_masks(self.records)

    def snapshot(self) -> NDArray[np.void]:
        """Return the complete state for `restore` or ``np.save``; equal states have equal bytes."""
        return _without_padding(self.records)

    def restore(self, snapshot: NDArray[np.void]) -> None:
        """Return to a snapshot of a batch of the same size and rules.

        Raises:
            ValueError: The snapshot has another layout or size, or has lanes whose first episode has not begun.
        """
        if not isinstance(snapshot, np.ndarray) or snapshot.dtype != self.records.dtype:
            raise ValueError("snapshot must be a record array of these rules' lanes, got another layout")
        if snapshot.shape != self.records.shape:
            raise ValueError(f"snapshot must have shape {self.records.shape}, got {snapshot.shape}")
        if not snapshot["key"].all():  # the key is set when an episode begins
            raise ValueError("snapshot must be of episodes that have begun, got one from before the first restart")
        self.records[:] = snapshot
        self.seeded = True

    def _run(self, kernel: str, shared: tuple[Any, ...], arrays: tuple[NDArray[Any], ...]) -> None:
        """Run a kernel over all lanes, split among the threads; the first axis of all arrays not shared is lanes."""
        compiled = kernels(type(self.rules))[kernel]  # type: ignore[arg-type]
        code = _passed(self.rules.code)
        if not COMPILED:
            arrays = tuple(map(readable, arrays))
        if self.threads == 1:
            compiled(code, *shared, *arrays)
            return
        own, *others = self._parts
        jobs = [
            _worker(k, os.getpid()).submit(compiled, code, *shared, *(a[part] for a in arrays))
            for k, part in enumerate(others)
        ]
        try:
            compiled(code, *shared, *(a[own] for a in arrays))
        finally:
            for job in jobs:
                job.result()


class Worlds:
    """Batches whose rules differ only in parameters, combined into one batch with common random numbers.

    Lane b of each world has the same seed, so all differences between worlds come from the parameters. The lanes of the
    first world come first.

    Args:
        rules: The rules of each world; their lanes have the same layout.
        count: Number of lanes of each world.
        threads: Number of threads that share a world's lanes.

    Raises:
        ValueError: The rules differ in the layout of lanes, in spaces, or in their description (``fair_spec``).
    """

    def __init__(self, rules: Sequence[Rules], count: int, *, threads: int = 1) -> None:
        if any(other.dtype != rules[0].dtype for other in rules):
            raise ValueError("rules must have lanes of the same layout (the same sizes) in all worlds")
        for space in ("observation_space", "action_space"):
            spaces = [getattr(own, space)(own.params) for own in rules]
            if any(other != spaces[0] for other in spaces):
                raise ValueError(f"rules must have one {space} in all worlds, got {spaces}")
        for other in rules:
            _check_same_facts(rules[0].spec, other.spec)
        self.worlds = [Lanes(own, count, threads=threads) for own in rules]
        self.rules, self.agents = self.worlds[0].rules, self.worlds[0].agents
        self.count = len(self.worlds) * self.worlds[0].count

    @property
    def seeded(self) -> bool:
        """Whether the lanes have seeds."""
        return self.worlds[0].seeded

    @property
    def records(self) -> NDArray[np.void]:
        """The complete state, a copy."""
        return self.snapshot()

    def seed(self, seeds: ArrayLike) -> None:
        """Give lane b of each world the same seed."""
        for world in self.worlds:
            world.seed(seeds)

    def blank_step(self) -> Step:
        """Return an empty report."""
        return self._join([world.blank_step() for world in self.worlds])

    def restart(self, *, mask: Flags | None = None) -> Step:
        """Begin the next episode of the masked lanes (all by default)."""
        if not self.seeded:
            self.seed(fresh_seeds(self.worlds[0].count))
        return self._join([world.restart(mask=part) for world, part in self._split(mask)])

    def advance(self, actions: NDArray[Any], *, mask: Flags | None = None) -> Step:
        """Play one step of the masked lanes (all by default)."""
        parts = np.split(actions, len(self.worlds))
        return self._join(
            [world.advance(own, mask=part) for (world, part), own in zip(self._split(mask), parts, strict=True)]
        )

    def show(self) -> Step:
        """Return the current observations."""
        return self._join([world.show() for world in self.worlds])

    def active(self) -> Flags:
        """Return which agents have not left before the others."""
        return np.concatenate([world.active() for world in self.worlds])

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions can be chosen without a loss, by the rules of each world."""
        return np.concatenate([world.action_masks() for world in self.worlds])

    def snapshot(self) -> NDArray[np.void]:
        """Return the complete state for `restore`."""
        return _without_padding(np.concatenate([world.records for world in self.worlds]))

    def restore(self, snapshot: NDArray[np.void]) -> None:
        """Return to a snapshot."""
        for world, part in zip(self.worlds, np.split(snapshot, len(self.worlds)), strict=True):
            world.restore(part)

    def _split(self, mask: Flags | None) -> list[tuple[Lanes, Flags | None]]:
        parts = [None] * len(self.worlds) if mask is None else np.split(mask, len(self.worlds))
        return list(zip(self.worlds, parts, strict=True))

    def _join(self, steps: Sequence[Step]) -> Step:
        return Step(*(np.concatenate(parts) for parts in zip(*steps, strict=True)))


def _passed(code: Any) -> Any:
    """Return what compiled loops get as the parameters of rules: something whose entry 0 has them as attributes."""
    return readable(code) if isinstance(code, np.ndarray) else (code,)


def _without_padding(records: NDArray[np.void]) -> NDArray[np.void]:
    """Return a copy whose padding bytes are 0; NumPy leaves previous memory there."""
    copy = np.zeros(records.shape, records.dtype)
    copy[:] = records
    return copy


def _check_same_facts(one: FairSpec, other: FairSpec) -> None:
    """Raise ValueError unless two worlds have equivalent specs, since they are described as one environment."""
    for name, value in vars(one).items():
        if getattr(other, name) != value:
            raise ValueError(
                f"rules must have one fair_spec in all worlds, got {name} {value} and {getattr(other, name)}"
            )


def check_count(name: str, value: Any) -> None:
    """Raise ValueError unless the argument called `name` is an integer of at least 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")


def check_batch(name: str, count: Any, rules: Rules) -> None:
    """Raise ValueError unless the argument called `name` is a number of lanes that fit into memory."""
    check_count(name, count)
    space = rules.observation_space(rules.params)
    seen = rules.agents(rules.params) * math.prod(space.shape or ()) * np.dtype(space.dtype).itemsize
    size = rules.dtype.itemsize + seen + blank_facts(rules.spec).nbytes
    if int(count) * size > LARGEST_BATCH:
        most = f"{LARGEST_BATCH // size} ({in_units(LARGEST_BATCH)}; a lane of {rules.name} takes {in_units(size)})"
        raise ValueError(f"{name} must be at most {most}, got {shown(count)}")


@kernel
def within(numbers: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> bool:
    """Return whether all numbers are within their bounds, all of shape (n,); NaN never is."""
    inside = True
    for k in range(numbers.shape[0]):  # without leaving early, so that the processor compares several at once
        inside &= (low[k] <= numbers[k]) & (numbers[k] <= high[k])
    return inside


def fresh_seeds(count: int) -> list[int]:
    """Return that many random seeds from the operating system."""
    return [secrets.randbits(63) for _ in range(count)]


def check_seeds(seeds: ArrayLike, count: int) -> NDArray[np.uint64]:
    """Return one seed for each lane: lane i of a batch seeded s is the single environment seeded s + i.

    Raises:
        ValueError: A seed is not an integer, is below 0 or above 2**63 - 1, or the number of seeds is not ``count``.
    """
    given = np.asarray(seeds, dtype=object)
    if given.shape not in ((), (count,)):
        raise ValueError(f"seed must be one integer or {count} of them, got {seeds!r}")
    if given.ndim:
        return np.array([check_seed(seed) for seed in given], np.uint64)
    first = check_seed(given[()])
    check_seed(first + max(count, 1) - 1)
    return np.arange(first, first + count, dtype=np.uint64)


def check_seed(seed: Any) -> int:
    """Return the seed of one lane.

    Raises:
        ValueError: The seed is not an integer, is below 0 or above 2**63 - 1.
    """
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise ValueError(f"seed must be an integer, got {seed!r}")
    if not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"seed must be between 0 and 2**63 - 1, got {seed}")
    return int(seed)


@functools.cache
def _worker(index: int, process: int) -> ThreadPoolExecutor:
    """Return a thread of this process; a forked process cannot use its parent's threads.

    The same lanes always go to the same thread, so that they stay in its core's cache.
    """
    return ThreadPoolExecutor(1, thread_name_prefix=f"fair_envs_{index}")


@functools.cache
def kernels(rules: Any) -> Mapping[str, Kernel]:
    """Return the compiled loops over lanes for these rules; no other code loops over the batch."""
    start, step, observe, describe = rules.start, rules.step, rules.observe, rules.describe
    episode_key = randomness.episode_key

    def begin(code: Any, lanes: Records, mask: Flags) -> None:
        params = code[0]
        for b in range(lanes.shape[0]):
            if mask[b]:
                lane = lanes[b]
                lane.key = episode_key(lane.seed, lane.episode)
                start(lane, params)

    def show(
        code: Any, same_individuals: bool, lanes: Records, mask: Flags, observation: NDArray[Any], facts: Records
    ) -> None:
        params, observation = code[0], unowned(observation)
        for b in range(lanes.shape[0]):
            if mask[b]:
                lane = lanes[b]
                observe(lane, params, observation[b])
                if same_individuals:
                    describe(lane, params, facts[b])

    def advance(
        code: Any,
        blank: Records,
        lanes: Records,
        mask: Flags,
        actions: NDArray[Any],
        observation: NDArray[Any],
        reward: Floats,
        terminated: Flags,
        truncated: Flags,
        facts: Records,
    ) -> None:
        params = code[0]
        actions, observation, reward = unowned(actions), unowned(observation), unowned(reward)
        for b in range(lanes.shape[0]):
            if mask[b]:
                facts[b] = blank[0]  # here, not for all lanes in advance: it stays in this core's cache
                lane, fact = lanes[b], facts[b]
                describe(lane, params, fact)
                terminated[b] = step(lane, actions[b], params, reward[b], fact)
                lane.time += 1
                truncated[b] = lane.time >= params.horizon and not terminated[b]
                lane.over = terminated[b] or truncated[b]
                fact.decided = 1
                observe(lane, params, observation[b])

    return kernels_of(rules, begin, show, advance)


def draws(lanes: Lanes, *, site: int = randomness.POLICY) -> Floats:
    """Return one uniform number for each lane and agent at the current step, shape (B, agents).

    They only depend on the episode's key, the time and the agent. Policies that sample with them use common random
    numbers in factual and counterfactual worlds.
    """
    out = np.empty((lanes.count, lanes.agents))
    randomness.fill_uniform(lanes.records["key"], lanes.records["time"], site, out)
    return out
