"""The Gymnasium interface: one lane, one controller."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules, Step, check_seed, draws, variant_of
from fair_envs.core.interactions import LaneRecord
from fair_envs.faces.common import (
    RENDER_MODES,
    ActionCheck,
    NotReset,
    OfLanes,
    Picture,
    Reported,
    check_options,
    check_render_mode,
    joint_space,
)
from fair_envs.support.aliases import Floats
from fair_envs.support.imports import imported

Others = Callable[[NDArray[Any], Floats], NDArray[Any]]
"""Policy of the other agents: observations (agents, ...) and uniform numbers (agents,) to actions (agents, ...)."""


class SingleEnv(OfLanes, gym.Env[Any, Any]):
    """One lane as a `gymnasium.Env`; subclasses set the rules.

    If there are several agents, one controller plays all of them. The observation joins the agents' observations in
    order, the action has one entry for each agent, the reward is the mean over agents, and ``info["agent_reward"]`` has
    each agent's reward. With ``control="focal"`` the controller plays one agent, and the others follow ``others``.

    Args:
        render_mode: ``"human"``, ``"rgb_array"``, ``"ansi"`` or None.
        control: ``"joint"`` or ``"focal"``.
        focal: The PettingZoo name of the agent that is played under focal control.
        others: Policy of the other agents: ``"random"``, a function of observations and uniform numbers, or its import
            path ``"module:function"``.
        parameters: The environment's parameters, see the class of its rules.

    Attributes:
        own_reward: The agents' rewards in the last step, shape (1, agents); wrappers do not change it.

    Raises:
        TypeError: A keyword is unknown.
        ValueError: A value is outside its range.
    """

    rules: ClassVar[type[Rules]]
    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        *,
        render_mode: str | None = None,
        control: Literal["joint", "focal"] = "joint",
        focal: str = "agent_0",
        others: str | Others = "random",
        **parameters: Any,
    ) -> None:
        check_render_mode(render_mode)
        rules = variant_of(self.rules, parameters)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": rules.fps}
        self.lanes = Lanes(rules, 1)
        self.interactions = self.lanes.blank_step().facts
        self.own_reward: Floats = np.zeros((1, self.lanes.agents))
        self._check = ActionCheck(rules)
        self._reported, self._record = Reported(rules, 1), LaneRecord(rules.spec)
        self._picture = Picture(self.lanes, render_mode)
        self._running = False
        self._observation: NDArray[Any] | None = None  # (agents, ...), what the others observe under focal control
        self._focal = focal_index(control, focal, self.lanes.agents)
        self._others = partners(others, rules)
        single = self._focal is not None or not rules.multi_agent
        self.observation_space = joint_space(rules.observation_space(rules.params), self.lanes.agents, drop=single)
        self.action_space = joint_space(rules.action_space(rules.params), self.lanes.agents, drop=single)
        self._seen_shape, self._own_shape = self.observation_space.shape or (), self.action_space.shape or ()
        self._multi_agent, self._leaving = rules.multi_agent, rules.leaving_field is not None
        self._joint_shape = (1, self.lanes.agents, *self._check.shape)

    @property
    def focal_agent(self) -> int | None:
        """The index of the agent that is played under focal control; None under joint control."""
        return self._focal

    def report_action_probs(self, action_probs: Any) -> None:
        """Report the probabilities with which the next action is chosen: (A,), or (M, A) for M people."""
        spec = self.fair_spec
        shape = (spec.actions,) if spec.one_person else (spec.individuals, spec.actions)
        self._reported.set(action_probs, shape=shape)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: the first one of a new seed, or the next one of the previous seed.

        Args:
            seed: Seed of this and the following episodes.
            options: Options for wrappers; the environment itself has none.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ValueError: The seed is out of range, or the options are not a dictionary. Nothing has changed in this case.
        """
        self.check_open("reset")
        check_options(options)
        super().reset(seed=None if seed is None else check_seed(seed))
        if seed is not None:
            self.lanes.seed(seed)
        self._reported.take()
        start = self.lanes.restart()
        self._running = True
        if self.render_mode == "human":
            self.render()
        return self._see(start), self._info(start)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ResetNeeded: The episode has not begun or has ended.
            ValueError: The action is not in the action space.
        """
        if not self._running:
            self.check_open("step")
            raise NotReset("step must follow a reset: the episode has not begun or is over")
        played = self.lanes.advance(self._actions(action))
        terminated, truncated = played.terminated.item(), played.truncated.item()
        if self._focal is not None and not self.lanes.active()[0, self._focal]:
            terminated, truncated = True, False  # the other agents' episode is not played further
        self._running = not (terminated or truncated)
        self.own_reward = played.reward
        if self._focal is None and self.lanes.agents > 1:
            reward = np.add.reduce(played.reward[0]) / self.lanes.agents  # the mean, in a third of the time
        else:
            reward = played.reward[0, self._focal or 0]
        if self.render_mode == "human":
            self.render()
        return self._see(played), float(reward), terminated, truncated, self._info(played)

    def render(self) -> Any:
        """Return the picture in the render mode: pixels (height, width, 3), text, or None after showing it."""
        return self._picture.draw()

    def close(self) -> None:
        """Close the window, if there is one; the episode cannot continue."""
        self._picture.close()
        self.closed, self._running = True, False

    def set_state(self, state: NDArray[np.void]) -> NDArray[Any]:
        """Return to a state and return its observation; the episode continues from there."""
        self.lanes.restore(state)
        self._running = not (self.closed or state["over"][0])
        return self._see(self.lanes.blank_step()._replace(observation=self.lanes.observe()))

    def _actions(self, action: Any) -> NDArray[Any]:
        """Return the actions of all agents, shape (1, agents, ...)."""
        own = self._check(action, shape=self._own_shape, copy=False)
        if self._focal is None:
            return own.reshape(self._joint_shape)
        joint = np.array(self._others(self._observation, draws(self.lanes)[0]))  # type: ignore[arg-type]
        joint = self._check(joint, shape=(self.lanes.agents, *self._check.shape))
        joint[self._focal] = own
        return joint[np.newaxis]

    def _see(self, step: Step) -> NDArray[Any]:
        """Return the controller's observation, and store what the other agents observe."""
        seen = step.observation[0]
        if self._focal is None:
            found: NDArray[Any] = seen.reshape(self._seen_shape)
            return found
        self._observation = seen
        return np.array(seen[self._focal])

    def _info(self, step: Step) -> dict[str, Any]:
        self.interactions, self.action_probs = step.facts, self._reported.take()
        row = self._record(step.facts, self.action_probs)
        if self._multi_agent:
            row["agent_reward"] = step.reward[0]
        if self._leaving:
            row["agent_active"] = self.lanes.active()[0].astype(np.int8)
        return row


def focal_index(control: str, focal: str, agents: int) -> int | None:
    """Return the index of the focal agent, or None under joint control.

    Raises:
        ValueError: The kind of control or the agent is unknown.
    """
    if control == "joint":
        return None
    if control != "focal":
        raise ValueError(f"control must be 'joint' or 'focal', got {control!r}")
    names = [f"agent_{i}" for i in range(agents)]
    if focal not in names:
        raise ValueError(f"focal must be one of agent_0 to agent_{agents - 1}, got {focal!r}")
    return names.index(focal)


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
    """

    def __init__(self, rules: Rules) -> None:
        self._space = rules.action_space(rules.params)

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
        if isinstance(self._space, gym.spaces.Box) and self._space.is_bounded():
            return rng.uniform(self._space.low, self._space.high).astype(self._space.dtype)
        raise ValueError(
            f"others='random' needs discrete or bounded actions, got {self._space}; pass a function instead"
        )
