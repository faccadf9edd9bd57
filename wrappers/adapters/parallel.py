"""The adapter for a PettingZoo parallel environment."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper

from fair_envs.core import Lanes
from fair_envs.faces.common import joint_space
from fair_envs.wrappers.adapters.bound import Bound
from fair_envs.wrappers.transform import Batch, Transform


class ParallelAdapter(BaseParallelWrapper[str, Any, Any]):
    """A transform on a PettingZoo parallel environment.

    Attributes:
        bound: The transform and the shapes.
    """

    def __init__(self, env: ParallelEnv[str, Any, Any], transform: Transform) -> None:
        super().__init__(env)
        names = env.possible_agents
        self.bound = Bound(env, transform, env.observation_space(names[0]), joint=False)
        self.observation_spaces = dict.fromkeys(names, self.bound.shown_space)
        self.state_space = joint_space(self.bound.shown_space, len(names), drop=False)
        if (space := self.bound.reward_space) is not None:
            for owner in (self, env.unwrapped):
                vars(owner).update(reward_spaces=dict.fromkeys(names, space), reward_dim=space.shape[0])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.env!r}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.env}>"

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """Return the agent's observation space."""
        return self.observation_spaces[agent]

    def reward_space(self, agent: str) -> Box:
        """Return the space of the agent's vector reward."""
        space: Box = self.reward_spaces[agent]
        return space

    def state(self) -> NDArray[Any]:
        """Return the observations of all agents, concatenated, after the transform."""
        lanes: Lanes = self.env.unwrapped.lanes  # type: ignore[attr-defined]
        below = self.env.state().reshape(1, lanes.agents, *(self.bound.space.shape or ()))
        return self.bound.transform_observation(below, lanes.show().facts).observation.reshape(-1)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start an episode."""
        observations, infos = self.env.reset(seed=seed, options=options)
        out = self.bound.reset(self._joined(observations))
        return self._of_each(out.observation, observations), self._infos(out, infos)

    def step(self, actions: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Play one step of all agents."""
        if self.bound.transform.reports:
            (probs,) = self.bound.reported()
            names = self.possible_agents
            by_name = {names[0]: probs} if len(names) == 1 else dict(zip(names, probs, strict=True))
            self.env.unwrapped.report_action_probs(by_name)  # type: ignore[attr-defined]
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        rewarded = next(iter(rewards.values())) if self.bound.objectives else self._joined(rewards)
        earned, seen = self.bound.earned(rewarded, None), self._joined(observations)
        self.bound.store_observation(seen)
        batch, out = self.bound.step(seen, *earned, done=np.array([not self.env.agents]))
        if out.reward is not batch.reward:
            rewards = {name: float(reward) for name, reward in self._of_each(out.reward, rewards).items()}
        if out.vector is not None:
            rewards = {name: out.vector[0].copy() for name in rewards}
        seen_by = self._of_each(out.observation, observations)
        return seen_by, rewards, terminations, truncations, self._infos(out, infos)

    def _infos(self, out: Batch, infos: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the infos with the columns that the transform added; each agent gets its own entries."""
        extra = {name: dict(info) for name, info in infos.items()}
        for key, column in out.added.items():
            own = (
                self._of_each(column, infos)
                if key in self.bound.transform.personal
                else dict.fromkeys(infos, column[0])
            )
            for name, value in own.items():
                extra[name][key] = value.copy()
        return extra

    def _joined(self, values: Mapping[str, Any]) -> NDArray[Any]:
        """Return the agents' values as one array, shape (1, agents, ...); 0 for agents that have left."""
        found = np.array(list(values.values()))
        joined = np.zeros((1, self.bound.agents, *found.shape[1:]), found.dtype)
        joined[0, self._places(values)] = found
        return joined

    def _of_each(self, values: NDArray[Any], agents: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the values, shape (1, agents, ...), of some agents by name."""
        return dict(zip(agents, values[0, self._places(agents)], strict=True))

    def _places(self, agents: Mapping[str, Any]) -> Any:
        everyone = len(agents) == self.bound.agents
        return slice(None) if everyone else [self.possible_agents.index(name) for name in agents]
