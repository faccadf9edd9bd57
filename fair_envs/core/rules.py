"""The contract between an environment and everything else.

An environment supplies `Rules`: parameters, the layout of one lane, and a few compiled functions on one lane.
"""

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core.compilation import (
    one_layout,
    record_of,
)
from fair_envs.core.interactions import FairSpec
from fair_envs.support.aliases import Flags
from fair_envs.support.parameters import encode, make_params, meant, shown

LARGEST_LANE = 2**26


"""Largest size of a lane in bytes; with default parameters the environments use at most 92 KiB."""


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

    def action_masks(self, records: NDArray[np.void]) -> NDArray[np.int8]:
        """Return which actions the agents can choose among without a loss, as learners with masks need it.

        By default, all actions are possible, and only the first one for agents that have left. Override it where some
        actions have no effect, or the same as others, and call this function first. Use only what the agents
        observe.

        Args:
            records: Lanes, shape (B,).

        Returns:
            A new array of shape (B, agents, n), with n actions, or the options of several choices one after another. 0:
            the action has no effect on states, observations and rewards, or the same as another action whose entry is
            1. The record of the step may differ.

        Raises:
            ValueError: The actions are not discrete.
        """
        space = self.action_space(self.params)
        if not isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
            raise ValueError(f"action_masks needs discrete actions, got {space}")
        options = np.ravel(space.n if isinstance(space, gym.spaces.Discrete) else space.nvec)
        masks = np.ones((len(records), self.agents(self.params), options.sum()), np.int8)
        if self.leaving_field is not None:
            masks[records[self.leaving_field] != 0] = np.concatenate([np.arange(count) == 0 for count in options])
        return masks

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


def bytes_of(fields: Sequence[tuple[Any, ...]]) -> int:
    """Return the number of bytes of a record's fields, without padding."""
    return sum(np.dtype(kind).itemsize * math.prod(map(int, np.ravel(shape))) for _, kind, *shape in fields)


def in_units(size: int) -> str:
    """Return a number of bytes in the most readable unit."""
    unit = max(k for k in range(5) if size >= 1024**k or k == 0)
    return f"{size / 1024**unit:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
