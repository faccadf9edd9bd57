"""The loop in which a policy plays episodes, whatever the interface of the environment."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Columns, Flags, Floats, Ints, Records
from fair_envs.evaluation.policy import Act, Policy, Stochastic, as_policy

MOST_STEPS = 1_000_000  # of an episode; one that goes on longer has no end


@dataclass(frozen=True, kw_only=True, eq=False)
class Transition:
    """One step of B lanes.

    Attributes:
        observation: What the policy saw before the step, shape (B, agents, ...).
        action: What it chose, shape (B, agents, ...).
        reward: Shape (B, agents), or (B, agents, objectives) for vector rewards.
        active: The lanes that played; the other entries mean nothing. Shape (B,).
        ended: The active lanes whose episode ended with this step, shape (B,).
        episode: The number of each lane's episode, shape (B,).
        facts: The records of what happened to whom, shape (B,); None where the environment reports `info` only.
        tell: Returns the ``fair_*`` columns of `info`.
    """

    observation: Any
    action: Any
    reward: Floats
    active: Flags
    ended: Flags
    episode: Ints
    facts: Records = None
    tell: Callable[[], Columns] = dict

    @cached_property
    def columns(self) -> Columns:
        """The ``fair_*`` columns of `info`, lanes first."""
        return self.tell()


class World:
    """B lanes of an environment, at the start of an episode each; subclasses adapt an interface.

    Attributes:
        count: B.
        lanes: The batch behind the interface, a `Lanes` or `Worlds`; None for an environment of another package.
        observation: What the agents see now, shape (B, agents, ...).
    """

    count: int
    lanes: Any = None
    observation: Any

    def uniforms(self) -> Floats:
        """Return random numbers for the actions of this step, shape (B, agents) or (B, agents, choices)."""
        raise NotImplementedError

    def report(self, probabilities: Floats) -> None:
        """Report action probabilities to an environment that records them; others ignore them."""

    def step(self, action: Any, active: Flags, episode: Ints) -> Transition:
        """Play one step of the active lanes, and update the observation."""
        raise NotImplementedError

    def restart(self, mask: Flags) -> None:
        """Begin the next episode in lanes whose episode has ended, unless the environment does so itself."""


def rollout(world: World, policy: Policy | Act, *, episodes: float | None = None) -> Iterator[Transition]:
    """Let a policy play and yield every step.

    Lane b plays episodes b, b + B, b + 2 B, ..., so that short episodes are not over-represented. Where another episode
    follows in a lane, it has begun when the last step of the one before is yielded.

    Args:
        world: What is played.
        policy: Who plays.
        episodes: How many in all; None: one in each lane, ``math.inf``: until the caller stops asking for steps.

    Raises:
        RuntimeError: An episode does not end.
    """
    policy = as_policy(policy)
    count = world.count if episodes is None else episodes
    episode: Ints = np.arange(world.count)
    active = episode < count
    steps = np.zeros(world.count, np.int64)
    policy.start(world)
    policy.begin(active, episode)
    while active.any():
        action = _chosen(policy, world)
        step = world.step(action, active, episode)
        policy.observe_step(step)
        steps += step.active
        if steps.max() > MOST_STEPS:
            raise RuntimeError(f"episodes must end, got one of more than {MOST_STEPS} steps")
        if step.ended.any():
            steps[step.ended] = 0
            episode = episode + world.count * step.ended
            active = episode < count
            begun = step.ended & active
            if begun.any():
                world.restart(begun)
                policy.begin(begun, episode)
        yield step


def _chosen(policy: Policy, world: World) -> NDArray[Any]:
    """Return the policy's actions, after telling the world its probabilities if it has any."""
    if not isinstance(policy, Stochastic):
        return policy.act(world.observation, world.uniforms())
    probabilities = policy.probabilities(world.observation)
    world.report(probabilities)
    return policy.sample(probabilities, world.uniforms())
