"""Plays whole episodes with discrete actions on the parallel lanes of any `gymnasium.vector.VectorEnv`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.evaluation import MostLikely, Stochastic, Transition, VectorEnv, VectorWorld, rollout
from fair_envs.support.aliases import Floats, Floats32, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Episode:
    """An episode of T steps.

    Attributes:
        observations: Observations on which the decisions are based, shape (T, ...), float32.
        actions: Actions, shape (T,), or (T, N) if a step has N choices.
        rewards: Rewards, shape (T, objectives), float64; one objective if rewards are numbers.
    """

    observations: Floats32
    actions: Ints
    rewards: Floats

    def __len__(self) -> int:
        """Return T."""
        return len(self.actions)

    @cached_property
    def returns_to_go(self) -> Floats:
        """Sum of the rewards from each step on, including that step, shape (T, objectives)."""
        return np.cumsum(self.rewards[::-1], axis=0)[::-1]

    @property
    def returns(self) -> Floats:
        """Sum of all rewards, shape (objectives,)."""
        total: Floats = self.returns_to_go[0]
        return total


class Random(Stochastic):
    """Takes discrete actions uniformly at random, and reports the probabilities to environments that record them."""

    def __init__(self, env: VectorEnv) -> None:
        shape = (env.num_envs, 1, *choices_of(env), actions_of(env))
        self._probabilities = np.full(shape, 1 / shape[-1])

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return equal probabilities."""
        return self._probabilities


def actions_of(env: VectorEnv) -> int:
    """Return the number of actions of a step, or of each choice if a step has several.

    Raises:
        ValueError: The actions are not discrete, or the observations are not arrays of numbers.
    """
    space = env.single_action_space
    one = isinstance(space, gym.spaces.Discrete)
    sizes = np.atleast_1d(space.n if one else getattr(space, "nvec", 0))  # type: ignore[attr-defined]
    if not sizes[0] or (sizes != sizes[0]).any() or np.any(space.start != 0):  # type: ignore[attr-defined]
        raise ValueError(
            f"env must have actions Discrete(n), or a MultiDiscrete of equal choices, numbered from 0, got {space}"
        )
    if not isinstance(env.single_observation_space, gym.spaces.Box):
        raise ValueError(f"env must have observations in a Box, got {env.single_observation_space}")
    return int(sizes[0])


def choices_of(env: VectorEnv) -> tuple[int, ...]:
    """Return the shape of one action: () for a Discrete, (N,) for N choices per step."""
    return env.single_action_space.shape or ()


def objectives_of(env: VectorEnv) -> gym.spaces.Box:
    """Return the space of the vector rewards.

    Raises:
        ValueError: The environment does not define it.
    """
    space = getattr(env, "reward_space", None) or getattr(env.unwrapped, "reward_space", None)
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise ValueError(
            f"env must have vector rewards and define reward_space, got {space}: wrap the whole vector environment, as "
            "in FairnessObjectives(gymnasium.make_vec(...), ...)"
        )
    return space


def collect(
    env: VectorEnv,
    policy: Stochastic,
    *,
    episodes: int,
    rng: np.random.Generator,
    seed: int | None = None,
    deterministic: bool = False,
) -> list[Episode]:
    """Play episodes and return them; the k-th episode is played in lane k modulo B.

    Every lane plays a fixed number of episodes, so that the sample is not biased towards short episodes. Action
    probabilities are reported to environments that record them and decide about one person per step; those of a
    deterministic policy are 0 and 1.

    Args:
        env: Environment of B lanes.
        policy: The policy.
        episodes: Number of episodes.
        rng: Generator for sampling actions.
        seed: Seed of the environment's reset; lane b gets ``seed + b``. None: the environment continues its random
            streams.
        deterministic: Whether the most probable action is taken instead of a sampled one.
    """
    world = VectorWorld(env, seed=seed, random=rng)
    return _episodes(list(rollout(world, MostLikely(policy) if deterministic else policy, episodes=episodes)), episodes)


def _episodes(steps: Sequence[Transition], count: int) -> list[Episode]:
    """Return the episodes from the transitions of all lanes."""
    numbers = np.stack([np.where(step.active, step.episode, -1) for step in steps])
    observations, actions, rewards = (
        np.stack([getattr(step, name)[:, 0] for step in steps]) for name in ("observation", "action", "reward")
    )
    rewards = rewards.reshape(*numbers.shape, -1)
    lanes, found = numbers.shape[1], []
    for number in range(count):
        rows, lane = numbers[:, number % lanes] == number, number % lanes
        found.append(
            Episode(
                observations=observations[rows, lane].astype(np.float32),
                actions=actions[rows, lane],
                rewards=rewards[rows, lane].astype(np.float64),
            )
        )
    return found
