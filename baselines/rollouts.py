"""Plays whole episodes of agents with discrete actions on any `gymnasium.vector.VectorEnv`, its lanes side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from fair_envs.aliases import Flags, Floats, Floats32, Ints
from fair_envs.wrappers.twin import choose

MOST_STEPS = 1_000_000  # of an episode; one that goes on longer has no end


@dataclass(frozen=True, kw_only=True, eq=False)
class Episode:
    """What happened in an episode of T steps.

    Attributes:
        observations: What each decision was based on, shape (T, ...), float32.
        actions: Shape (T,), or (T, N) where a step has N choices.
        rewards: Shape (T, objectives), float64; one objective where rewards are numbers.
    """

    observations: Floats32
    actions: Ints
    rewards: Floats

    def __len__(self) -> int:
        """Return T."""
        return len(self.actions)

    @cached_property
    def returns_to_go(self) -> Floats:
        """The sum of the rewards from each step on, that step's included, shape (T, objectives)."""
        return np.cumsum(self.rewards[::-1], axis=0)[::-1]

    @property
    def returns(self) -> Floats:
        """The sum of all rewards, shape (objectives,)."""
        total: Floats = self.returns_to_go[0]
        return total


class Agent:
    """Who decides: gives the probabilities of the actions; what it does at an episode's begin and end is nothing."""

    def begin(self, lanes: Ints, episodes: Ints) -> None:
        """Take note that these lanes begin these episodes."""

    def __call__(self, observation: NDArray[Any]) -> Floats:
        """Return the probabilities of the actions, shape (B, actions) or (B, N, actions), for observations (B, ...)."""
        raise NotImplementedError

    def rewarded(self, rewards: Floats, playing: Flags) -> None:
        """Take note of what the playing lanes earned, shape (B, objectives)."""


class Random(Agent):
    """Takes all actions equally often."""

    def __init__(self, env: "VectorEnv") -> None:
        shape = (env.num_envs, *choices_of(env), actions_of(env))
        self._probabilities = np.full(shape, 1 / shape[-1])

    def __call__(self, observation: NDArray[Any]) -> Floats:
        """Return equal probabilities."""
        return self._probabilities


class VectorEnv(Protocol):
    """What is asked of an environment: a `gymnasium.vector.VectorEnv`; wrappers of it are no subclasses."""

    num_envs: int
    metadata: dict[str, Any]
    single_observation_space: gym.Space[Any]
    single_action_space: gym.Space[Any]

    @property
    def unwrapped(self) -> Any:
        """The environment under the wrappers."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one step."""


def actions_of(env: VectorEnv) -> int:
    """Return how many actions there are, of each choice where a step has several.

    Raises:
        ValueError: The actions are not discrete, or the observations are no arrays of numbers.
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
    """Return the shape of one action: () for a Discrete, (N,) for N choices a step."""
    return env.single_action_space.shape or ()


def objectives_of(env: VectorEnv) -> gym.spaces.Box:
    """Return the space of the vector rewards.

    Raises:
        ValueError: The environment states none.
    """
    space = getattr(env, "reward_space", None) or getattr(env.unwrapped, "reward_space", None)
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise ValueError(f"env must have vector rewards and state their reward_space, got {space}")
    return space


def restarts_late(env: VectorEnv) -> bool:
    """Return whether an ended episode is followed by a step that only restarts it (mode NextStep).

    Raises:
        ValueError: Ended episodes are not restarted.
    """
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    if mode is AutoresetMode.DISABLED:
        raise ValueError("env must restart ended episodes: autoreset_mode NextStep or SameStep, got Disabled")
    return mode is AutoresetMode.NEXT_STEP


def collect(
    env: VectorEnv,
    agent: Agent,
    *,
    episodes: int,
    chance: np.random.Generator,
    seed: int | None = None,
    deterministic: bool = False,
) -> list[Episode]:
    """Play so many episodes and return them; the k-th is played in lane k modulo B.

    Every lane plays a fixed number of episodes, so that short ones are not preferred. Probabilities are reported to
    environments that take note of them and decide on one person a step; those of a deterministic agent are 0 and 1.

    Args:
        env: B lanes.
        agent: Who decides.
        episodes: How many.
        chance: What actions are drawn with.
        seed: Of the environment's reset; lane b gets ``seed + b``. None: it goes on with its own luck.
        deterministic: Whether the likeliest action is taken instead of a drawn one.
    """
    lanes = env.num_envs
    late = restarts_late(env)
    report, hold = (getattr(env.unwrapped, name, None) for name in ("report_action_probs", "hold"))
    spec = getattr(env.unwrapped, "fair_spec", None)
    if spec is not None and not spec.one_person:
        report = None  # actions are not what falls on each person
    observation, _ = env.reset(seed=seed)
    episode = np.arange(lanes)  # that each lane is in
    begun = np.flatnonzero(episode < episodes)
    agent.begin(begun, episode[begun])
    restarting = np.zeros(lanes, bool)
    steps: list[tuple[Any, ...]] = []
    while (live := episode < episodes).any():
        playing = live & ~restarting
        probabilities = agent(observation)
        if deterministic:
            probabilities = np.eye(probabilities.shape[-1])[probabilities.argmax(axis=-1)]
        if report is not None:
            report(probabilities)
        if hold is not None and not live.all():
            hold(~live)  # what they would go on to do would enter the history
        actions = choose(probabilities, chance.random(probabilities.shape[:-1]))
        following, earned, terminated, truncated, _ = env.step(actions)
        rewards = np.reshape(earned, (lanes, -1))
        steps.append((np.where(playing, episode, -1), observation, actions, rewards))
        agent.rewarded(rewards, playing)
        ended = terminated | truncated
        over = playing & ended
        if over.any():
            episode = episode + lanes * over
            begun = np.flatnonzero(over & (episode < episodes))
            agent.begin(begun, episode[begun])
        restarting = ended & late
        observation = following
        if len(steps) > MOST_STEPS:
            raise RuntimeError(f"episodes must end, got one of more than {MOST_STEPS} steps")
    return _episodes(steps, episodes)


def _episodes(steps: Sequence[tuple[Any, ...]], count: int) -> list[Episode]:
    """Return the episodes from what all lanes did, step by step."""
    numbers, observations, actions, rewards = (np.stack(column) for column in zip(*steps, strict=True))
    lanes = numbers.shape[1]
    found = []
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
