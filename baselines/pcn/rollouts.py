"""Plays whole episodes with discrete actions on the parallel lanes of any `gymnasium.vector.VectorEnv`."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.baselines.pcn.actions import Choices, Rows, choices_of
from fair_envs.evaluation import MostLikely, Stochastic, Transition, VectorEnv, VectorWorld, rollout
from fair_envs.support.aliases import Flags, Floats, Floats32, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Episode:
    """An episode of T steps, with R observations and actions: one of each step, of each agent's turns, or some of them.

    Attributes:
        observations: Observations on which the decisions are based, shape (R, ...), float32.
        actions: Actions, shape (R, ...): (R, N) if a step has N choices.
        rewards: Rewards, shape (T, objectives), float64; one objective if rewards are numbers.
        turns: The step of each observation, shape (R,), ascending; None: R = T, and each step has one.
    """

    observations: Floats32
    actions: NDArray[Any]
    rewards: Floats
    turns: Ints | None = None

    def __len__(self) -> int:
        """Return T."""
        return len(self.rewards)

    @property
    def samples(self) -> int:
        """Number of observations and actions (R)."""
        return len(self.actions)

    def thinned(self, count: int, rng: np.random.Generator) -> "Episode":
        """Return the episode with at most a number of its observations and actions, drawn without replacement."""
        if self.samples <= count:
            return self
        kept = np.sort(rng.choice(self.samples, count, replace=False))
        some, taken = self.observations[kept], self.actions[kept]
        return Episode(observations=some, actions=taken, rewards=self.rewards, turns=self.steps(kept))

    def steps(self, samples: Ints) -> Ints:
        """Return the steps of some observations, given by number."""
        found: Ints = samples if self.turns is None else self.turns[samples]
        return found

    @cached_property
    def returns_to_go(self) -> Floats:
        """Sum of the rewards from each step on, including that step, shape (T, objectives)."""
        return np.cumsum(self.rewards[::-1], axis=0)[::-1]

    @property
    def returns(self) -> Floats:
        """Sum of all rewards, shape (objectives,)."""
        total: Floats = self.returns_to_go[0]
        return total


class Chosen(Stochastic):
    """A policy that chooses from the values of an action's entries.

    Args:
        choices: The choices.
    """

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def sample(self, probabilities: ArrayLike, uniforms: Floats) -> NDArray[Any]:
        """Return the actions that the uniform numbers select."""
        return self.choices.action(super().sample(probabilities, uniforms))


class Random(Chosen):
    """Takes actions uniformly at random, and reports the probabilities to environments that record them.

    Args:
        env: The environment.
        rows: Its rows, if the agents act one by one; None: one row for each lane.

    Raises:
        ValueError: The actions cannot be listed.
    """

    def __init__(self, env: VectorEnv, rows: Rows | None = None) -> None:
        super().__init__(choices_of(env.single_action_space) if rows is None else rows.choices)
        possible = self.choices.possible
        even = possible / possible.sum(axis=1, keepdims=True)
        agents = 1 if rows is None else rows.agents
        entries = even if self.choices.several else even[0]
        self._probabilities: Floats = np.broadcast_to(entries, (env.num_envs, agents, *entries.shape)).copy()

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return equal probabilities."""
        return self._probabilities


def copied(env: VectorEnv, memo: dict[int, Any] | None = None) -> Any:
    """Return an independent copy of a vector environment with its wrappers.

    Args:
        env: The environment.
        memo: That of a copy which this one is a part of.
    """
    known = {} if memo is None else memo
    made_from = getattr(env.unwrapped, "env_fns", None)
    known[id(made_from)] = made_from  # before 1.3, Gymnasium keeps a used-up generator, which cannot be copied
    return copy.deepcopy(env, known)


def reward_space_of(env: VectorEnv) -> gym.spaces.Box:
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


def vector_reward(step: Transition) -> Floats:
    """Return a step's vector rewards, shape (B, objectives); undefined entries (NaN) count as 0."""
    rewards = step.reward[:, 0].reshape(len(step.active), -1)
    found: Floats = np.where(np.isnan(rewards), 0.0, rewards)
    return found


def collect(
    env: VectorEnv,
    policy: Stochastic,
    *,
    episodes: int,
    rng: np.random.Generator,
    seed: int | None = None,
    deterministic: bool = False,
    agents: int = 1,
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
        agents: Number of agents that act one by one in an environment of this package, whose interface joins their
            observations and actions; the episodes then contain every turn of an agent.
    """
    world = VectorWorld(env, seed=seed, random=rng, agents=agents)
    played = rollout(world, MostLikely(policy) if deterministic else policy, episodes=episodes)
    return _episodes([_played(step, agents) for step in played], episodes)


class _Played(NamedTuple):
    """What the episodes need of the steps of all lanes, or of one step (without the first axis)."""

    number: Ints  # (steps, B) of the lane's episode; -1: the lane did not play
    observation: NDArray[Any]  # (steps, B, agents, ...)
    action: NDArray[Any]  # (steps, B, agents, ...)
    reward: Floats  # (steps, B, objectives)
    had_turn: Flags  # (steps, B, agents)


def _played(step: Transition, agents: int) -> _Played:
    number = np.where(step.active, step.episode, -1)
    had_turn = np.ones((len(number), 1), bool) if agents == 1 else step.facts["action"] >= 0
    return _Played(number, step.observation, step.action, vector_reward(step), had_turn)


def _episodes(steps: Sequence[_Played], count: int) -> list[Episode]:
    """Return the episodes from the steps of all lanes."""
    played = _Played._make(np.stack(column) for column in zip(*steps, strict=True))
    lanes = played.number.shape[1]
    return [_episode(played, played.number[:, k % lanes] == k, k % lanes) for k in range(count)]


def _episode(played: _Played, rows: Flags, lane: int) -> Episode:
    """Return the episode of some steps of a lane."""
    observations, actions, had_turn = (column[rows, lane] for column in (played[1], played[2], played.had_turn))
    rewards = played.reward[rows, lane].astype(np.float64)
    if had_turn.shape[1] == 1:
        return Episode(observations=observations[:, 0].astype(np.float32), actions=actions[:, 0], rewards=rewards)
    turns, agents = np.nonzero(had_turn)
    own, taken = observations[turns, agents].astype(np.float32), actions[turns, agents]
    return Episode(observations=own, actions=taken, rewards=rewards, turns=turns)
