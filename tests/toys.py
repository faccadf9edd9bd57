"""A toy whose episodes terminate, at different times in different lanes."""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from fair_envs.core import Rules, rule
from fair_envs.interactions import FairSpec

AGENTS = 2


class CountdownParams(NamedTuple):
    """The parameter that all rules have."""

    horizon: int = 3


@rule
def start(lane: Any, params: Any) -> None:
    """Let the episode last 1, 2 or 3 steps, by the lane's seed."""
    lane.lasts = 1 + np.int64(lane.seed % np.uint64(3))


@rule
def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> Any:
    """Pay every agent 1; terminate when the time has come."""
    for agent in range(AGENTS):
        facts.action[agent] = action[agent]
        facts.outcome[agent] = reward[agent] = 1
    return lane.time + 1 >= lane.lasts


@rule
def observe(lane: Any, params: Any, observation: Any) -> None:
    """Show the attribute and the time."""
    for agent in range(AGENTS):
        observation[agent, 0] = lane.sensitive[agent]
        observation[agent, 1] = lane.time


@rule
def describe(lane: Any, params: Any, facts: Any) -> None:
    """Say who carries the attribute."""
    for agent in range(AGENTS):
        facts.individual[agent] = agent
        facts.sensitive[agent, 0] = facts.group[agent] = lane.sensitive[agent]


class Countdown(Rules):
    """Two agents that are paid 1 a step; the lane of seed s terminates after 1 + s % 3 steps."""

    name, Params, multi_agent = "countdown", CountdownParams, True
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def lane(self, params: CountdownParams) -> list[tuple[Any, ...]]:
        return [("lasts", np.int64), ("sensitive", np.int64, (AGENTS,))]

    def fair_spec(self, params: CountdownParams) -> FairSpec:
        return FairSpec(
            individuals=AGENTS,
            actions=2,
            features=(),
            sensitive={"marked": ("no", "yes")},
            groups=("unmarked", "marked"),
            same_individuals=True,
        )

    def agents(self, params: CountdownParams) -> int:
        return AGENTS

    def observation_space(self, params: CountdownParams) -> gym.spaces.Box:
        return gym.spaces.Box(0, 3, (2,), np.float32)

    def action_space(self, params: CountdownParams) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(2)
