"""Toys whose agents' actions have several entries: choices of their own sizes, or numbers in a box."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from fair_envs.core import Rules, rule
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv
from tests.toys import AGENTS, LongCountdown

SIZES = [3, 2]  # of an agent's choices


@rule
def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> Any:
    """Pay every agent its first entry less half its second, in eighths: which is which matters, sums are exact."""
    for agent in range(AGENTS):
        facts.action[agent] = action[agent, 1] > 0
        facts.outcome[agent] = reward[agent] = np.floor(8 * action[agent, 0] - 4 * action[agent, 1]) / 8
    return lane.time + 1 >= lane.lasts


class Boxed(LongCountdown):
    """The countdown with two numbers an agent."""

    name = "boxed"
    step = staticmethod(step)

    def action_space(self, params: Any) -> gym.spaces.Box:  # type: ignore[override]
        return gym.spaces.Box(-1, 1, (2,), np.float32)


class Choices(LongCountdown):
    """The countdown with two choices of different sizes an agent."""

    name = "choices"
    variants: ClassVar[dict[str, type[Rules]]] = {"box": Boxed}
    step = staticmethod(step)

    def action_space(self, params: Any) -> gym.spaces.MultiDiscrete:  # type: ignore[override]
        return gym.spaces.MultiDiscrete(SIZES)


class Env(SingleEnv):
    rules = Choices


class Vector(BatchEnv):
    rules = Choices


class Parallel(AgentsEnv):
    rules = Choices


parallel_env, env, raw_env = module_of(Parallel)
