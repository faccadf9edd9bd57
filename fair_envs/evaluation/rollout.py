"""The loop in which a policy plays episodes, for all interfaces."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.evaluation.policy import Act, Policy, Stochastic, as_policy
from fair_envs.evaluation.world import Transition, World
from fair_envs.support.aliases import Ints

MOST_STEPS = 1_000_000  # of an episode; a longer one is considered endless


def rollout(world: World, policy: Policy | Act, *, episodes: float | None = None) -> Iterator[Transition]:
    """Play episodes with a policy and yield every step.

    Lane b plays episodes b, b + B, b + 2 B, ..., so short episodes are not over-represented. If another episode follows
    in a lane, it has already started when the last step of the previous one is yielded.

    Args:
        world: The environment.
        policy: The policy.
        episodes: Total number of episodes; None: one per lane; ``math.inf``: until the caller stops asking for steps.

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
    """Return the policy's actions; report its action probabilities to the world if it has any."""
    if not isinstance(policy, Stochastic):
        return policy.act(world.observation, world.uniforms())
    probabilities = policy.probabilities(world.observation)
    world.report(probabilities)
    return policy.sample(probabilities, world.uniforms())
