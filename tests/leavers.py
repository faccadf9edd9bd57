"""A toy whose agents leave at different times while the others go on."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from fair_envs.core import Rules, rule
from fair_envs.core.interactions import FairSpec
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv
from tests.toys import LongParams, TextRenderer

AGENTS = 3


@rule
def start(lane: Any, params: Any) -> None:
    """Let everybody be there."""
    lane.there = AGENTS


@rule
def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> Any:
    """Pay all who are there 1 and their action; agent i leaves with step i + 1 + s % 2 of seed s, the last never."""
    for agent in range(AGENTS):
        if lane.gone[agent]:
            continue
        facts.action[agent] = action[agent] > 0
        facts.outcome[agent] = reward[agent] = 1 + action[agent]
        if agent < AGENTS - 1 and lane.time >= agent + np.int64(lane.seed % np.uint64(2)):
            lane.gone[agent] = 1
            lane.there -= 1
    return lane.there == 0


@rule
def observe(lane: Any, params: Any, observation: Any) -> None:
    """Show the number and the time to who is there."""
    for agent in range(AGENTS):
        there = 1 - lane.gone[agent]
        observation[agent, 0] = there * (agent + 1)
        observation[agent, 1] = there * lane.time


@rule
def describe(lane: Any, params: Any, facts: Any) -> None:
    """Say who is there and who carries the attribute."""
    for agent in range(AGENTS):
        facts.sensitive[agent, 0] = facts.group[agent] = lane.sensitive[agent]
        if not lane.gone[agent]:
            facts.individual[agent] = agent


class Leavers(Rules):
    """Three agents of which two leave early."""

    name, multi_agent, leaving_field = "leavers", True, "gone"
    Params: ClassVar[type] = LongParams
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def lane(self, params: LongParams) -> list[tuple[Any, ...]]:
        return [("there", np.int64), ("gone", np.int64, (AGENTS,)), ("sensitive", np.int64, (AGENTS,))]

    def fair_spec(self, params: LongParams) -> FairSpec:
        return FairSpec(
            individuals=AGENTS,
            actions=2,
            features=(),
            sensitive={"marked": ("no", "yes")},
            groups=("unmarked", "marked"),
            same_individuals=True,
        )

    def agents(self, params: LongParams) -> int:
        return AGENTS

    def observation_space(self, params: LongParams) -> gym.spaces.Box:
        return gym.spaces.Box(0, 10_000, (2,), np.float32)

    def action_space(self, params: LongParams) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(3)

    def renderer(self) -> TextRenderer:
        return TextRenderer()


class Env(SingleEnv):
    rules = Leavers


class Vector(BatchEnv):
    rules = Leavers


class Parallel(AgentsEnv):
    rules = Leavers


parallel_env, env, raw_env = module_of(Parallel)
