"""The environments that `rollout` plays: lanes of rules, Gymnasium vector environments and PettingZoo."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from fair_envs.core import Amendment, Lanes, Rules, Step, Worlds, check_seeds, draws
from fair_envs.core.interactions import columns
from fair_envs.evaluation.policy import Policy
from fair_envs.evaluation.rollout import rollout
from fair_envs.evaluation.world import Transition, World
from fair_envs.faces.common import ActionCheck, with_last
from fair_envs.support.aliases import Flags, Floats, Ints, Lane
from fair_envs.support.seeds import policy_numbers

# Lanes of rules -------------------------------------------------------------------------------------------------------


def lanes_of(env: Any) -> Lanes | Worlds:
    """Return the lanes of an environment with any interface, or raise TypeError."""
    lanes = getattr(getattr(env, "unwrapped", None), "lanes", None)
    if not isinstance(lanes, (Lanes, Worlds)):
        raise TypeError(f"env must be an environment of fair_envs, with any interface, got {env!r}")
    return lanes


def rules_of(env: Any) -> Rules:
    """Return rules unchanged, or the rules of an environment."""
    return env if isinstance(env, Rules) else lanes_of(env).rules


def begun(rules: Rules, seeds: NDArray[np.uint64], *, threads: int = 1, amendments: Sequence[Amendment] = ()) -> Lanes:
    """Return lanes at the start of the first episode of each seed, shape (B,); other arguments are as for `Lanes`."""
    lanes = Lanes(rules, len(seeds), threads=threads)
    lanes.amendments += amendments
    lanes.seed(seeds)
    lanes.restart()
    return lanes


class Shown(Protocol):
    """Converts lanes into the observations of policies, for example with transforms."""

    def start(self, step: Step) -> NDArray[Any]:
        """Return the first observations."""

    def restart(self, step: Step, mask: Flags) -> NDArray[Any]:
        """Return the observations after new episodes have started in the masked lanes."""

    def step(self, step: Step, active: Flags) -> NDArray[Any]:
        """Return the observations after a step of the active lanes."""


class Plain:
    """Returns the lanes' observations unchanged."""

    def start(self, step: Step) -> NDArray[Any]:
        """Return the first observations."""
        self._last = step.observation
        return self._last

    def restart(self, step: Step, mask: Flags) -> NDArray[Any]:
        """Return the first observations of the masked lanes, and the last ones of the others."""
        return self.step(step, mask)

    def step(self, step: Step, active: Flags) -> NDArray[Any]:
        """Return the new observations of the active lanes, and the last ones of the others."""
        if not active.all():
            self._last = self._last.copy()
            self._last[active] = step.observation[active]
            return self._last
        self._last = step.observation
        return self._last


class LanesWorld(World):
    """Lanes whose episodes have started, played until they end.

    Policies sample with random numbers that depend only on the lane's key, the time and the agent, so twins use common
    random numbers.

    Args:
        lanes: The batch.
        shown: Converts lanes into observations; None: the lanes' own observations.
        append_group: Whether observations end with the agent's group.
        group: The groups that are appended, shape (B, agents); None: the agents' own.
        assign: Function that changes the lanes after the start and after each step, before they are observed.
    """

    def __init__(
        self,
        lanes: Lanes,
        *,
        shown: Shown | None = None,
        append_group: bool = False,
        group: Ints | None = None,
        assign: Callable[[Lanes], None] | None = None,
    ) -> None:
        self.lanes, self.count = lanes, lanes.count
        self._shown, self._assign = shown or Plain(), assign
        self._append_group, self._given_group = append_group, group
        self._check = ActionCheck(lanes.rules)
        if assign is not None:
            assign(lanes)
        start = lanes.show()
        self._group = start.facts["group"] if group is None else group
        self.observation = self._with_group(self._shown.start(start))

    def uniforms(self) -> Floats:
        """Return the lanes' random numbers of this step, shape (B, agents)."""
        return draws(self.lanes)

    def step(self, action: Any, active: Flags, episode: Ints) -> Transition:
        """Play one step of the active lanes."""
        lanes = self.lanes
        action = self._check(action, shape=(lanes.count, lanes.agents, *self._check.shape))
        before = self.observation
        step = lanes.advance(action, mask=active)
        if self._assign is not None:
            self._assign(lanes)
            step = step._replace(observation=lanes.observe())
        self.observation = self._with_group(self._shown.step(step, active))
        return Transition(
            observation=before,
            action=action,
            reward=step.reward,
            active=active,
            ended=active & (step.terminated | step.truncated),
            episode=episode,
            facts=step.facts,
            tell=lambda: columns(lanes.rules.spec, step.facts, None),
        )

    def restart(self, mask: Flags) -> None:
        """Start the next episode of the masked lanes."""
        step = self.lanes.restart(mask=mask)
        if self._given_group is None and self._append_group:
            self._group = self.lanes.show().facts["group"]
        self.observation = self._with_group(self._shown.restart(step, mask))

    def _with_group(self, observation: NDArray[Any]) -> NDArray[Any]:
        if not self._append_group:
            return observation
        return with_last(observation, self._group)


def scenes(rules: Rules, policy: Policy, *, seed: int) -> Iterator[Lane]:
    """Yield the lane before each step of the episodes with a seed, endlessly."""
    lanes = begun(rules, check_seeds(seed, 1))
    world = LanesWorld(lanes, append_group=policy.append_group)
    steps = rollout(world, policy, episodes=math.inf)
    while True:
        yield lanes.records[0]
        next(steps)


# Gymnasium ------------------------------------------------------------------------------------------------------------


class VectorEnv(Protocol):
    """The required parts of a `gymnasium.vector.VectorEnv`, as a protocol: vector wrappers are not subclasses of it."""

    num_envs: int
    metadata: dict[str, Any]
    single_observation_space: gym.Space[Any]
    single_action_space: gym.Space[Any]

    @property
    def unwrapped(self) -> Any:
        """The environment under the wrappers."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one step."""


class VectorWorld(World):
    """A vector environment, reset before it is played.

    The environment restarts its episodes itself. Action probabilities are reported to environments that record them and
    decide about one person per step.

    Args:
        env: The environment, with B lanes.
        seed: Seed of the reset; lane b gets ``seed + b``. None: the environment continues its random numbers.
        random: Source of the random numbers that policies sample with.
        agents: Number of agents whose observations and actions the environment joins; policies see them one by one.

    Raises:
        ValueError: Ended episodes are not restarted.
    """

    def __init__(
        self,
        env: VectorEnv,
        *,
        seed: int | None = None,
        random: np.random.Generator | None = None,
        agents: int = 1,
    ) -> None:
        self.env, self.count, self.agents = env, env.num_envs, agents
        lanes = getattr(env.unwrapped, "lanes", None)
        self.lanes = lanes if isinstance(lanes, (Lanes, Worlds)) else None
        self._late = restarts_late(env)
        self._restarting = np.zeros(self.count, bool)
        self._random = np.random.default_rng(0) if random is None else random
        self._hold = getattr(env, "hold", None)
        self._report = getattr(env, "report_action_probs", None)
        spec = getattr(env, "fair_spec", None)
        if (spec is not None and not spec.one_person) or isinstance(env.single_action_space, gym.spaces.Box):
            self._report = None  # an action is not the decision about each person
        observation, _ = env.reset(seed=seed)
        self.observation = self._of_agents(observation)

    def _of_agents(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return observations by agent, shape (B, agents, ...)."""
        return observation[:, np.newaxis] if self.agents == 1 else observation.reshape(self.count, self.agents, -1)

    def uniforms(self) -> Floats:
        """Return the next random numbers, shape (B, agents), or (B, 1, N) if a step of one agent has N choices."""
        space = self.env.single_action_space
        several = self.agents == 1 and isinstance(space, gym.spaces.MultiDiscrete)
        return self._random.random((self.count, self.agents, *((space.shape or ()) if several else ())))

    def report(self, probabilities: Floats) -> None:
        """Report the probabilities to the environment."""
        if self._report is not None:
            self._report(probabilities[:, 0])

    def step(self, action: Any, active: Flags, episode: Ints) -> Transition:
        """Play one step; inactive lanes are not added to histories."""
        if self._hold is not None and not active.all():
            self._hold(~active)
        before, playing = self.observation, active & ~self._restarting
        joint = action[:, 0] if self.agents == 1 else action.reshape(self.count, -1)
        observation, reward, terminated, truncated, info = self.env.step(joint)
        done = terminated | truncated
        self._restarting = done & self._late
        self.observation = self._of_agents(observation)
        return Transition(
            observation=before,
            action=action,
            reward=np.asarray(reward, np.float64)[:, np.newaxis],
            active=playing,
            ended=playing & done,
            episode=episode,
            facts=getattr(self.env.unwrapped, "interactions", None),
            tell=lambda: info,
        )


def restarts_late(env: VectorEnv) -> bool:
    """Return whether an ended episode is followed by a step that only restarts it (mode NextStep).

    Raises:
        ValueError: Ended episodes are not restarted.
    """
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    if mode is AutoresetMode.DISABLED:
        raise ValueError("env must restart ended episodes: autoreset_mode NextStep or SameStep, got Disabled")
    return mode is AutoresetMode.NEXT_STEP


# PettingZoo -----------------------------------------------------------------------------------------------------------


class ParallelWorld(World):
    """The first episode with a seed of a PettingZoo environment: one lane, whose agents may join and leave.

    Observations and actions are dictionaries by agent, because agents may have different spaces. The reward of an
    absent agent is 0.

    Args:
        env: A `pettingzoo.ParallelEnv`.
        seed: Seed of the episode, and of the random numbers that policies sample with.

    Raises:
        ValueError: No agent is present after the reset.
    """

    count = 1

    def __init__(self, env: Any, *, seed: int) -> None:
        self.env, self.agents = env, list(env.possible_agents)
        self._seed, self._time = seed, 0
        self.observation, _ = env.reset(seed=seed)
        if not env.agents:
            raise ValueError(f"env must have agents after reset(seed={seed}), got none")

    def uniforms(self) -> Floats:
        """Return one random number per possible agent, shape (1, agents), as a function of seed and time."""
        return policy_numbers(self._seed, self._time).random((1, len(self.agents)))

    def step(self, action: Mapping[str, Any], active: Flags, episode: Ints) -> Transition:
        """Play one step of all present agents."""
        before = self.observation
        self.observation, rewards, *_ = self.env.step(action)
        self._time += 1
        if unknown := [agent for agent in rewards if agent not in self.agents]:
            raise ValueError(f"env must reward only its possible_agents {self.agents}, got {unknown[0]!r}")
        reward = np.array([[rewards.get(agent, 0.0) for agent in self.agents]], np.float64)
        ended = active & (not self.env.agents)
        return Transition(observation=before, action=action, reward=reward, active=active, ended=ended, episode=episode)
