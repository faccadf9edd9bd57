"""Gymnasium environments of one's own that tell the record in ``info``: what stands for the lanes that they lack."""

from collections.abc import Mapping
from dataclasses import dataclass
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
    """What can be said of the rules of an environment that is not made of them."""

    name: str
    spec: FairSpec
    multi_agent: bool = False


@dataclass(frozen=True)
class OwnLanes:
    """One lane with one decision-maker, of which nothing but ``info`` is known."""

    rules: OwnRules
    count: int = 1
    agents: int = 1


class OwnFace:
    """What adapters keep of an environment of one's own; the layers on it share it.

    Args:
        env: The environment, for its name.
        spec: Its static facts.

    Attributes:
        lanes: What stands for its lanes.
        interactions: The record of the last step or reset, shape (1,).
        action_probs: With which probabilities its decisions were taken, shape (1, M, A); 0 where it is not known.
        reported_spec: What a wrapper that changes the facts says of them.
        histories: Of the wrappers that keep one, the innermost first.
        focal_agent: None: there is one decision-maker.
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
        self._reported = Reported(self.lanes.rules, 1)  # type: ignore[arg-type]  # it asks for the spec alone

    @property
    def fair_spec(self) -> FairSpec:
        """The static facts."""
        return self.reported_spec or self.lanes.rules.spec

    def report_action_probs(self, action_probs: Any) -> None:
        """Keep with which probabilities the next action is chosen, shape (A,), or (M, A) for M people."""
        self._reported.set(action_probs, shape=self._shapes[PROBS])

    def extra(self, info: Mapping[str, Any], *, decided: bool) -> dict[str, Any]:
        """Keep the record that an ``info`` holds, and return it with the probabilities that were reported.

        Args:
            info: Of a reset or a step.
            decided: Whether it is of a step.

        Raises:
            ValueError: It does not hold the record.
        """
        for name, shape in self._shapes.items():
            if getattr(info.get(name), "shape", None) == shape:
                continue
            given = np.shape(info[name]) if name in info else None
            if given != shape:
                raise ValueError(
                    f"info must hold fair_envs.core.interactions.record: {name}, shape {shape}, got {given}"
                )
        if info[PREFIX + "decided"] != decided:
            when = "step, which decides on somebody" if decided else "reset, which decides on nobody"
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
    """Return an observation as (1, 1, ...), fresh; 0 where observations are no arrays."""
    return np.zeros((1, 1)) if space.shape is None else np.array(observation)[np.newaxis, np.newaxis]
