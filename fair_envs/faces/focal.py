"""Focal control: the controller plays one agent of each lane, and a policy plays the others."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules, Step, draws
from fair_envs.faces.common import ActionCheck
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.imports import imported

Control = Literal["joint", "focal"]
Others = Callable[[NDArray[Any], Floats], NDArray[Any]]
"""Policy of the other agents: observations (agents, ...) and uniform numbers (agents,) to actions (agents, ...)."""


class Focal:
    """One agent of each lane whose actions are given, and a policy of the others.

    Args:
        lanes: The batch.
        check: Checks actions.
        focal: The PettingZoo name of the agent.
        others: See `partners`.

    Attributes:
        agent: The agent's index.
        seen: What all agents observe, shape (B, agents, ...); the interface updates it.
    """

    def __init__(self, lanes: Lanes, check: ActionCheck, focal: str, others: "str | Others") -> None:
        names = [f"agent_{i}" for i in range(lanes.agents)]
        if focal not in names:
            raise ValueError(f"focal must be one of agent_0 to agent_{lanes.agents - 1}, got {focal!r}")
        self._lanes, self._check = lanes, check
        self.agent, self._others = names.index(focal), partners(others, lanes.rules)
        self.seen: NDArray[Any] = lanes.blank_step().observation

    def actions(self, own: NDArray[Any]) -> NDArray[Any]:
        """Return the actions of all agents, shape (B, agents, ...), given those of the focal agents, (B, ...)."""
        chosen = [self._others(seen, uniform) for seen, uniform in zip(self.seen, draws(self._lanes), strict=True)]
        joint = self._check(np.array(chosen), shape=(len(own), self._lanes.agents, *self._check.shape))
        joint[:, self.agent] = own
        return joint

    def observed(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the focal agents' observations, shape (B, ...), as a new array."""
        return np.array(observation[:, self.agent])

    def end(self, played: Step, stepping: Flags | None = None) -> None:
        """Terminate the lanes whose focal agents have left: the other agents' episode is not played further.

        Args:
            played: The step; it is changed.
            stepping: Shape (B,), the lanes that have stepped; None: all.
        """
        if self._lanes.rules.leaving_field is None:
            return
        left = self.left() if stepping is None else self.left() & stepping
        played.terminated[left], played.truncated[left] = True, False

    def left(self) -> Flags:
        """Return the lanes whose focal agents have left, shape (B,)."""
        return ~self._lanes.active()[:, self.agent]


def focal_control(lanes: Lanes, check: ActionCheck, control: str, focal: str, others: str | Others) -> Focal | None:
    """Return the control of one agent, or None under joint control.

    Raises:
        ValueError: The kind of control or the agent is unknown, or the others' policy is invalid.
    """
    if control not in get_args(Control):
        raise ValueError(f"control must be 'joint' or 'focal', got {control!r}")
    return Focal(lanes, check, focal, others) if control == "focal" else None


def partners(others: str | Others, rules: Rules) -> Others:
    """Return the policy of the other agents.

    Raises:
        ValueError: The argument is neither ``"random"``, nor a function, nor the import path of one.
    """
    if callable(others):
        return others
    if others == "random":
        return RandomPartners(rules)
    try:
        found: Others = imported(others)
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(f"others must be 'random', a function or 'module:function', got {others!r}") from error
    return found


class RandomPartners:
    """Other agents that choose every action with equal probability.

    Args:
        rules: The environment; its actions must be discrete, several discrete choices, or a bounded box.
        space: The action space of an agent; None: that of the rules.
    """

    def __init__(self, rules: Rules, *, space: gym.Space[Any] | None = None) -> None:
        self._space = rules.action_space(rules.params) if space is None else space
        box = self._space
        self._ends = None  # the lowest action and the range of a bounded box
        if isinstance(box, gym.spaces.Box) and box.is_bounded():
            self._ends = box.low.astype(np.float64), box.high.astype(np.float64) - box.low

    def __call__(self, observation: NDArray[Any], uniform: Floats) -> NDArray[Any]:
        """Return one action for each agent; each uses one uniform number."""
        if isinstance(self._space, gym.spaces.Discrete):
            return np.asarray(self._space.start + (uniform * self._space.n).astype(np.int64))
        return np.stack([self._of_several(number) for number in uniform])

    def _of_several(self, number: float) -> NDArray[Any]:
        """Return one agent's action of several numbers, from its single uniform number."""
        rng = np.random.default_rng(int(number * 2**53))
        if isinstance(self._space, gym.spaces.MultiDiscrete):
            return self._space.start + rng.integers(self._space.nvec)
        if self._ends is not None:
            lowest, span = self._ends
            return np.asarray((lowest + span * rng.random(lowest.shape)).astype(self._space.dtype))
        raise ValueError(
            f"others='random' needs discrete or bounded actions, got {self._space}; pass a function instead"
        )
