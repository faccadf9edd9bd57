"""The contract between an environment and everything else.

An environment supplies `Rules`: parameters, the layout of one lane, and a few compiled functions on one lane. A batch
of lanes is a `Lanes` object: an array of records with seeds, clocks, restarts and snapshots. Every interface is a view
of `Lanes`.
"""

import functools
import importlib
import math
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs import chance
from fair_envs.aliases import Flags, Floats, Records
from fair_envs.compilation import (
    COMPILED,
    Kernel,
    inlined,
    kernels_of,
    known_call,
    one_layout,
    readable,
    record_of,
    rule,
    unowned,
)
from fair_envs.interactions import FairSpec, blank_facts
from fair_envs.parameters import encode, make_params, meant, shown

LARGEST_SEED = 2**63 - 1
LARGEST_LANE = 2**26
"""Largest size of a lane in bytes; with default parameters the environments use at most 92 KiB."""
LARGEST_BATCH = 2**34
"""Largest size of a batch in bytes, including the report after a step."""

CLOCK: list[tuple[Any, ...]] = [
    ("seed", np.uint64),  # seed of the lane
    ("episode", np.uint64),  # number of episodes with this seed before
    ("key", np.uint64),  # key of the episode: equal keys give equal random draws
    ("time", np.int32),  # steps taken
    ("over", np.int8),  # 1: the episode has terminated or was truncated
]
"""The fields at the beginning of every lane; they are set here, not by the rules."""


class TeamOutcome(NamedTuple):
    """What a team has achieved in B episodes."""

    success: Flags  # (B,)
    contributed: Flags  # (B, agents): whether the agent made a part of it


class ObservedTeammates(NamedTuple):
    """How many numbers of an observation are about what, in this order."""

    base: int  # others than team-mates
    mates: int  # team-mates
    mate: int  # each of them
    own: int  # the agent itself


class Rules:
    """What an environment supplies. Subclass it, and describe the environment in the subclass's docstring.

    Attributes:
        name: Lower-case name, for example ``"harvest"``.
        Params: The NamedTuple of parameters; it has a field ``horizon``, the steps until truncation.
        presets: Named sets of parameters that the field ``profile`` chooses from, or None.
        variants: Other rules of the same environment, chosen by the constructor's keyword ``variant``.
        multi_agent: True if the agents are the affected people (there are several); False if one decision-maker decides
            about others.
        start: ``start(lane, params)`` sets up a new episode in a zeroed lane whose clock is set.
        step: ``step(lane, action, params, reward, facts) -> terminated`` plays one step. ``action`` has shape (agents,
            ...), ``reward`` (agents,) is zeroed, ``facts`` receives the action, feedback and outcome.
        observe: ``observe(lane, params, observation)`` writes (agents, ...) after every start and step.
        describe: ``describe(lane, params, facts)`` writes, before a step, the people that the decision is about.
        fps: Frames per second of the renderer.
        sensitive_field: Field of the lane that holds the sensitive attribute of each agent, 0 or 1; see `flip`.
        sensitive_features: The `observed_features` that show the sensitive attribute.
        leaving_field: Field of the lane that is 1 for each agent that is done while others are active; None: no agent
            leaves early. Actions of agents that have left have no effect.
        drawn_by: The renderer, as the import path ``"module:Class"`` of a class made from the rules; empty: none.
        policies: Scripted policies by name, as import paths ``"module:Class"``; each is made from the rules alone.
        keys: Which key of the keyboard takes which action, by pygame's names; empty: the digits do.
        action_names: The names of the actions; empty: they have numbers only.
        pace: The parameter that a curriculum changes for a team, see `set_pace`; None: there is none.
    """

    name: ClassVar[str]
    Params: ClassVar[type]
    presets: ClassVar[Mapping[str, Mapping[str, Any]] | None] = None
    variants: ClassVar[Mapping[str, "type[Rules]"]] = {}
    multi_agent: ClassVar[bool] = False
    fps: ClassVar[int] = 10
    sensitive_field: ClassVar[str] = "sensitive"
    sensitive_features: ClassVar[tuple[str, ...]] = ("sensitive",)
    leaving_field: ClassVar[str | None] = None
    drawn_by: ClassVar[str] = ""
    policies: ClassVar[Mapping[str, str]] = {}
    keys: ClassVar[Mapping[str, int]] = {}
    action_names: ClassVar[Sequence[str]] = ()
    pace: ClassVar[str | None] = None
    start: ClassVar[Callable[..., Any]]
    step: ClassVar[Callable[..., Any]]
    observe: ClassVar[Callable[..., Any]]
    describe: ClassVar[Callable[..., Any]]

    def __init__(self, **given: Any) -> None:
        self.params: Any = make_params(self.Params, given, presets=self.presets)
        self.check(self.params)
        self.code: Any = self.encoded(self.params)
        fields = CLOCK + self.lane(self.params)
        self._check_size(fields)
        self.dtype: np.dtype[np.void] = one_layout(np.dtype(fields, align=True))
        self.spec: FairSpec = self.fair_spec(self.params)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy's state; layouts are shared objects, which Numba finds faster."""
        vars(self).update(state)
        self.dtype = one_layout(self.dtype)
        if isinstance(self.code, np.ndarray):
            self.code = self.code.view(one_layout(self.code.dtype))

    def _check_size(self, fields: Sequence[tuple[Any, ...]]) -> None:
        """Raise ValueError if a lane is too large; the error names the parameter that enlarges it most."""
        size = bytes_of(fields)
        if size > LARGEST_LANE:
            name = self._enlarging(size)
            got = f"{shown(getattr(self.params, name))}, with which it takes " if name else ""
            raise ValueError(
                f"{name or 'parameters'} must be such that a lane takes at most {in_units(LARGEST_LANE)}, got "
                f"{got}{in_units(size)}"
            )

    def _enlarging(self, size: int) -> str:
        """Return the parameter whose default would make the lane smallest; empty if none enlarges it."""
        profile = {} if self.presets is None else {"profile": self.params.profile}
        defaults: Any = make_params(self.Params, profile, presets=self.presets)
        smallest, name, probe = size, "", object.__new__(type(self))
        vars(probe).update(vars(self))
        for changed, default in defaults._asdict().items():
            if getattr(self.params, changed) != default:
                with suppress(ValueError):  # the default is incompatible with the other parameters
                    probe.params = self.params._replace(**{changed: default})
                    probe.code = probe.encoded(probe.params)
                    without = bytes_of(probe.lane(probe.params))
                    smallest, name = min((smallest, name), (without, changed))
        return name

    def encoded(self, params: Any) -> Any:
        """Return what compiled rules receive: the parameters as numbers, which rules must not change.

        It is one record, shape (1,). To add arrays, override it:
        ``record_of({**encode(params)._asdict(), "table": table})``. It can also be a NamedTuple. That costs time at
        every call, but its type does not depend on the sizes of its arrays. Rules read the fields of both in the same
        way.
        """
        return record_of(encode(params)._asdict())

    def check(self, params: Any) -> None:
        """Raise ValueError if parameters that are valid separately are incompatible."""

    def lane(self, params: Any) -> list[tuple[Any, ...]]:
        """Return the fields of one lane after `CLOCK`."""
        raise NotImplementedError

    def fair_spec(self, params: Any) -> FairSpec:
        """Return the environment's static description."""
        raise NotImplementedError

    def agents(self, params: Any) -> int:
        """Return the number of agents."""
        return 1

    def observation_space(self, params: Any) -> gym.Space[Any]:
        """Return the observation space of one agent; a Box."""
        raise NotImplementedError

    def action_space(self, params: Any) -> gym.Space[Any]:
        """Return the action space of one agent; a Discrete, a MultiDiscrete or a Box."""
        raise NotImplementedError

    def observed_features(self, params: Any) -> tuple[str, ...]:
        """Return the names of the first entries of one agent's observation; empty if they have no names."""
        return ()

    def flip(self, records: NDArray[np.void], who: Flags) -> None:
        """Give the selected agents the other value of the sensitive attribute, in place.

        Override it if `start` derives more from the attribute than its own field, and for a decision-maker. For a
        decision-maker it flips everyone in the episode permanently, including people who wait or arrive later.

        Args:
            records: Lanes, shape (B,).
            who: Which agents are flipped, or which decision-makers have their people flipped, shape (B, agents).

        Raises:
            ValueError: The lanes have no sensitive attribute for each agent.
        """
        fields: Mapping[str, Any] = self.dtype.fields or {}
        if self.sensitive_field not in fields or fields[self.sensitive_field][0].shape != who.shape[1:]:
            raise ValueError(f"flip needs a sensitive attribute of each agent; {self.name} has none to flip")
        records[self.sensitive_field] ^= who.astype(records[self.sensitive_field].dtype)

    def assign(self, records: NDArray[np.void], attribute: str, code: int) -> None:
        """Give the people in the next decision a value of a sensitive attribute, all else being equal, in place.

        Args:
            records: Lanes, shape (B,).
            attribute: One of ``spec.sensitive``.
            code: One of its codes.

        Raises:
            ValueError: The rules do not define how.
        """
        raise ValueError(f"assign needs individuals with a sensitive attribute; those of {self.name} cannot be changed")

    def oracle(self, records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Return what the decision-maker cannot observe about the people in the next decision, only for evaluation.

        Args:
            records: Lanes, shape (B,).

        Returns:
            New arrays; ``"feedback"`` is the label (correct decision), shape (B, M). The environment's page lists the
            shapes (B, ...) of the others. The dictionary is empty if nothing is hidden.
        """
        return {}

    def set_pace(self, records: NDArray[np.void], value: float) -> None:
        """Change the parameter `pace` of lanes whose episode begins, shape (B,), in place."""
        raise NotImplementedError(f"{self.name} has no pace that a curriculum could change")

    def team_outcome(self, records: NDArray[np.void]) -> TeamOutcome:
        """Return what a team has achieved in finished episodes, shape (B,)."""
        raise NotImplementedError(f"{self.name} does not say what a team achieves")

    def acts_by_directions(self) -> bool:
        """Return whether an action is a direction in the plane, of length at most 1."""
        return False

    def observed_teammates(self) -> ObservedTeammates | None:
        """Return which parts of an observation are about team-mates, for networks that see a set; None: unknown."""
        return None

    def asymmetry(self, *, sets: bool) -> str:
        """Return why agents with one network need not act alike, as far as the rules tell; empty: they do.

        Args:
            sets: Whether the network treats team-mates as a set.
        """
        return ""

    def renderer(self) -> Any:
        """Return the renderer of a lane: ``frame(lane) -> (height, width, 3) uint8`` and ``text(lane) -> str``."""
        if not self.drawn_by:
            raise NotImplementedError(f"{self.name} has no renderer")
        module, _, name = self.drawn_by.partition(":")
        return getattr(importlib.import_module(module), name)(self)


def variant_of(rules: type[Rules], given: Mapping[str, Any]) -> Rules:
    """Return the rules for a constructor's keywords; ``variant`` selects among them.

    Raises:
        ValueError: The variant is unknown.
    """
    given = dict(given)
    return variant_named(rules, given.pop("variant", None))(**given)


def variant_named(rules: type[Rules], variant: Any) -> type[Rules]:
    """Return a variant of rules by name; None: the rules themselves.

    Raises:
        ValueError: The variant is unknown.
    """
    if variant is None:
        return rules
    if not isinstance(variant, str) or variant not in rules.variants:
        known = ", ".join(map(repr, rules.variants))
        allowed = f"one of {known} or None" if known else f"None, {rules.name} has no variants"
        raise ValueError(f"variant must be {allowed}, got {variant!r}{meant(variant, rules.variants)}")
    return rules.variants[variant]


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
        layout = self._blank.dtype  # twice as fast as allocating an array of records
        return Step(
            observation=np.empty(self._observation_shape, self._observation_dtype),
            reward=np.zeros((self.count, self.agents)),
            terminated=np.zeros(self.count, bool),
            truncated=np.zeros(self.count, bool),
            facts=np.frombuffer(np.empty(self.count * layout.itemsize, np.uint8), layout),
        )

    def restart(self, *, mask: Flags | None = None, out: Step | None = None) -> Step:
        """Begin the next episode of the masked lanes (all by default) and return their first observations."""
        if not self.seeded:
            self.seed(fresh_seeds(self.count))
        mask = self._everyone if mask is None else mask
        fresh = np.zeros(int(mask.sum()), self.records.dtype)
        fresh["seed"] = self.records["seed"][mask]
        fresh["episode"] = self.records["episode"][mask] + np.uint64(1)
        self.records[mask] = fresh
        self._run("begin", (), (self.records, mask))
        if self.amendments:
            self._amend(mask)
        return self.show(mask=mask, out=out)

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

        All other arrays belong to this batch, and have the same type at every call.
        """
        out = self._unwritten_step()
        arguments = (self.rules.code, self._blank, self.records, self._everyone, actions, *out)
        kind = (actions.dtype, actions.ndim) if actions.flags.carray else None  # contiguous and writeable
        known = self._known.get(kind)
        if known is not None:
            known(*arguments)
            return out
        self._run("advance", (self._blank,), (self.records, self._everyone, actions, *out))
        if kind is not None and COMPILED and self.threads == 1 and isinstance(self.rules.code, np.ndarray):
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
        code = readable(self.rules.code) if isinstance(self.rules.code, np.ndarray) else (self.rules.code,)
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


def bytes_of(fields: Sequence[tuple[Any, ...]]) -> int:
    """Return the number of bytes of a record's fields, without padding."""
    return sum(np.dtype(kind).itemsize * math.prod(map(int, np.ravel(shape))) for _, kind, *shape in fields)


def in_units(size: int) -> str:
    """Return a number of bytes in the most readable unit."""
    unit = max(k for k in range(5) if size >= 1024**k or k == 0)
    return f"{size / 1024**unit:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"


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
    return np.array([check_seed(first + i) for i in range(count)], np.uint64)


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
    episode_key = chance.episode_key

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


def draws(lanes: Lanes, *, site: int = chance.POLICY) -> Floats:
    """Return one uniform number for each lane and agent at the current step, shape (B, agents).

    They only depend on the episode's key, the time and the agent. Policies that sample with them use common random
    numbers in factual and counterfactual worlds.
    """
    out = np.empty((lanes.count, lanes.agents))
    chance.fill_uniform(lanes.records["key"], lanes.records["time"], site, out)
    return out


__all__ = [
    "CLOCK",
    "Amendment",
    "Lanes",
    "Rules",
    "Step",
    "check_seed",
    "check_seeds",
    "draws",
    "inlined",
    "kernels",
    "rule",
    "variant_of",
]
