"""The Gymnasium interface: one lane, one controller."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules, Step, check_seed, variant_of
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
from fair_envs.faces.focal import Control, Others, focal_control
from fair_envs.support.aliases import Floats


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
        control: Control = "joint",
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
        self.focal = focal_control(self.lanes, self._check, control, focal, others)
        single = self.focal is not None or not rules.multi_agent
        self.observation_space = joint_space(rules.observation_space(rules.params), self.lanes.agents, drop=single)
        self.action_space = joint_space(rules.action_space(rules.params), self.lanes.agents, drop=single)
        self._seen_shape, self._own_shape = self.observation_space.shape or (), self.action_space.shape or ()
        self._multi_agent, self._leaving = rules.multi_agent, rules.leaving_field is not None
        self._joint_shape = (1, self.lanes.agents, *self._check.shape)

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
        if self.focal is not None:
            self.focal.end(played)
        terminated, truncated = played.terminated.item(), played.truncated.item()
        self._running = not (terminated or truncated)
        self.own_reward = played.reward
        if self.focal is None and self.lanes.agents > 1:
            reward = np.add.reduce(played.reward[0]) / self.lanes.agents  # the mean, in a third of the time
        else:
            reward = played.reward[0, self.focal_agent or 0]
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

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions can be chosen without a loss, shape (n,), see `OfLanes.action_masks`."""
        return np.array(super().action_masks()[0])

    def set_state(self, state: NDArray[np.void]) -> NDArray[Any]:
        """Return to a state and return its observation; the episode continues from there."""
        self.lanes.restore(state)
        left = self.focal is not None and self.focal.left()[0]
        self._running = not (self.closed or state["over"][0] or left)
        return self._see(self.lanes.blank_step()._replace(observation=self.lanes.observe()))

    def _actions(self, action: Any) -> NDArray[Any]:
        """Return the actions of all agents, shape (1, agents, ...)."""
        own = self._check(action, shape=self._own_shape, copy=False)
        return own.reshape(self._joint_shape) if self.focal is None else self.focal.actions(own[np.newaxis])

    def _see(self, step: Step) -> NDArray[Any]:
        """Return the controller's observation, and store what the other agents observe."""
        if self.focal is None:
            found: NDArray[Any] = step.observation[0].reshape(self._seen_shape)
            return found
        self.focal.seen = step.observation
        return np.array(self.focal.observed(step.observation)[0])

    def _info(self, step: Step) -> dict[str, Any]:
        self.interactions, self.action_probs = step.facts, self._reported.take()
        row = self._record(step.facts, self.action_probs)
        if self._multi_agent:
            row["agent_reward"] = step.reward[0]
        if self._leaving:
            row["agent_active"] = self.lanes.active()[0].astype(np.int8)
        return row
