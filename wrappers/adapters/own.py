"""Support for a user's own Gymnasium environments, which return the record in ``info`` and have no lanes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from fair_envs.core.interactions import PREFIX, FairSpec, blank_facts, record
from fair_envs.faces.common import Reported
from fair_envs.support.aliases import Floats32

PROBS = PREFIX + "action_probs"


@dataclass(frozen=True)
class OwnRules:
    """A replacement for the rules of a user's own environment, with what is known about it.

    Attributes:
        name: The name of its class.
        spec: Its `FairSpec`.
        multi_agent: Always False: there is one decision-maker.
        spaces: The spaces of observations and actions; None: unknown.
        params: Always None: its parameters are arguments of its constructor.
        policies: Scripted policies by name; there are none.
    """

    name: str
    spec: FairSpec
    multi_agent: bool = False
    spaces: tuple[Space[Any], Space[Any]] | None = None
    params: None = None
    policies: Mapping[str, str] = field(default_factory=dict)

    def agents(self, params: Any) -> int:
        """Return 1."""
        return 1

    def observation_space(self, params: Any) -> Space[Any]:
        """Return the space of observations."""
        return self._known()[0]

    def action_space(self, params: Any) -> Space[Any]:
        """Return the space of actions."""
        return self._known()[1]

    def _known(self) -> tuple[Space[Any], Space[Any]]:
        if self.spaces is None:
            raise ValueError(f"spaces must be known, those of {self.name} are not")
        return self.spaces


def own_rules(env: Any) -> OwnRules:
    """Return what is known of a user's own Gymnasium environment.

    Raises:
        ValueError: It has no ``fair_spec``.
    """
    spec = env.get_wrapper_attr("fair_spec") if env.has_wrapper_attr("fair_spec") else None
    if not isinstance(spec, FairSpec):
        raise ValueError(
            "env must have a FairSpec as fair_spec, which the wrapper Annotate adds, got "
            f"{type(env.unwrapped).__name__} without one"
        )
    return OwnRules(type(env.unwrapped).__name__, spec, spaces=(env.observation_space, env.action_space))


@dataclass(frozen=True)
class OwnLanes:
    """A replacement for the lanes of a user's own environment: one lane with one decision-maker."""

    rules: OwnRules
    count: int = 1
    agents: int = 1


class OwnFace:
    """A replacement for the interface object of a user's own environment, shared by all wrappers on it.

    Args:
        env: The environment; only its name is used.
        spec: Its `FairSpec`.

    Attributes:
        lanes: The replacement for its lanes.
        interactions: The record of the last step or reset, shape (1,).
        action_probs: The probabilities with which the decisions were made, shape (1, M, A); 0 if unknown.
        reported_spec: The spec of a wrapper that changes the record; None: unchanged.
        histories: The histories of wrappers that keep one, the innermost first.
        focal_agent: Always None, because there is one decision-maker.
    """

    reported_spec: FairSpec | None = None
    histories: tuple[Any, ...] = ()
    focal_agent: None = None

    def __init__(self, env: Any, spec: FairSpec) -> None:
        self.lanes = OwnLanes(OwnRules(type(env.unwrapped).__name__, spec))
        self._shapes = {name: column.shape for name, column in record(spec).items()}
        self.interactions = blank_facts(spec)
        self._layout = self.interactions.dtype
        self._fields = [(name, PREFIX + name) for name in self._layout.names or ()]
        self.action_probs: Floats32 = np.zeros((1, spec.individuals, spec.actions), np.float32)
        self._reported = Reported(self.lanes.rules, 1)  # type: ignore[arg-type]  # it only uses the spec

    @property
    def fair_spec(self) -> FairSpec:
        """The environment's `FairSpec`, as changed by wrappers."""
        return self.reported_spec or self.lanes.rules.spec

    def report_action_probs(self, action_probs: Any) -> None:
        """Store the probabilities of the next action, shape (A,), or (M, A) for M people."""
        self._reported.set(action_probs, shape=self._shapes[PROBS])

    def extra(self, info: Mapping[str, Any], *, decided: bool) -> dict[str, Any]:
        """Store the record in ``info``, and return it together with the reported probabilities.

        Args:
            info: The ``info`` of a reset or a step.
            decided: Whether it is from a step.

        Raises:
            ValueError: ``info`` does not contain the record.
        """
        for name, shape in self._shapes.items():
            if getattr(info.get(name), "shape", None) == shape:
                continue
            given = np.shape(info[name]) if name in info else None
            if given != shape:
                raise ValueError(
                    f"info must contain fair_envs.core.interactions.record: {name}, shape {shape}, got {given}"
                )
        if info[PREFIX + "decided"] != decided:
            when = "step, which makes a decision" if decided else "reset, which makes no decision"
            raise ValueError(f"fair_decided must be {decided:d} after a {when}, got {info[PREFIX + 'decided']}")
        probs, extra = self._reported.take(), dict(info)
        if probs is not None and decided:
            extra[PROBS] = probs.reshape(self._shapes[PROBS])
        self.interactions = np.empty(1, self._layout)
        for name, key in self._fields:
            self.interactions[name] = extra[key]
        self.action_probs = np.asarray(extra[PROBS], np.float32).reshape(self.action_probs.shape)
        return extra


def stacked(observation: Any, space: Space[Any]) -> NDArray[Any]:
    """Return a copy of an observation with shape (1, 1, ...); 0 if observations are not arrays."""
    return np.zeros((1, 1)) if space.shape is None else np.array(observation)[np.newaxis, np.newaxis]
