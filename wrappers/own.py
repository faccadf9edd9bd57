"""Gymnasium environments of one's own that tell the record in ``info``: what stands for the lanes that they lack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from fair_envs.core.interactions import PREFIX, FairSpec, record
from fair_envs.faces.common import Reported


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
        told_spec: What a wrapper that changes the facts says of them.
        histories: Of the wrappers that keep one, the innermost first.
        focal_agent: None: there is one decision-maker.
    """

    told_spec: FairSpec | None = None
    histories: tuple[Any, ...] = ()
    focal_agent: None = None

    def __init__(self, env: Any, spec: FairSpec) -> None:
        self.lanes = OwnLanes(OwnRules(type(env.unwrapped).__name__, spec))
        self._shapes = {name: column.shape for name, column in record(spec).items()}
        self._reported = Reported(self.lanes.rules, 1)  # type: ignore[arg-type]  # it asks for the spec alone

    @property
    def fair_spec(self) -> FairSpec:
        """The static facts."""
        return self.told_spec or self.lanes.rules.spec

    def report_action_probs(self, action_probs: Any) -> None:
        """Keep with which probabilities the next action is chosen, shape (A,), or (M, A) for M people."""
        self._reported.set(action_probs, shape=self._shapes[PREFIX + "action_probs"])

    def told(self, info: Mapping[str, Any], *, decided: bool) -> dict[str, Any]:
        """Return the environment's ``info`` with the probabilities that were reported.

        Args:
            info: Of a reset or a step.
            decided: Whether it is of a step.

        Raises:
            ValueError: It does not hold the record.
        """
        for name, shape in self._shapes.items():
            given = np.shape(info[name]) if name in info else None
            if given != shape:
                raise ValueError(
                    f"info must hold fair_envs.core.interactions.record: {name}, shape {shape}, got {given}"
                )
        if info[PREFIX + "decided"] != decided:
            when = "step, which decides on somebody" if decided else "reset, which decides on nobody"
            raise ValueError(f"fair_decided must be {decided:d} after a {when}, got {info[PREFIX + 'decided']}")
        probs = self._reported.take()
        if probs is None or not decided:
            return dict(info)
        return {**info, PREFIX + "action_probs": probs.reshape(self._shapes[PREFIX + "action_probs"])}


def stacked(observation: Any, space: Space[Any]) -> NDArray[Any]:
    """Return an observation as (1, 1, ...), fresh; 0 where observations are no arrays."""
    return np.zeros((1, 1)) if space.shape is None else np.array(observation)[np.newaxis, np.newaxis]
