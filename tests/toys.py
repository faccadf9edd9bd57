"""A toy whose episodes terminate, at different times in different lanes."""

from typing import Annotated, Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, rule
from fair_envs.core.interactions import FairSpec
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv
from fair_envs.support.parameters import Range

AGENTS = 2


class CountdownParams(NamedTuple):
    """The parameters of the countdown."""

    horizon: Annotated[int, Range(1, 10_000)] = 3
    shortest: Annotated[int, Range(1, 10_000)] = 1  # steps until the first lane terminates


@rule
def start(lane: Any, params: Any) -> None:
    """Let the episode last up to two steps more than the shortest, by the lane's seed."""
    lane.lasts = params.shortest + np.int64(lane.seed % np.uint64(3))


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


class TextRenderer:
    """Draws a lane as its time, and as pixels that are as bright as the time."""

    def frame(self, lane: np.void) -> NDArray[np.uint8]:
        return np.full((16, 16, 3), lane["time"] % 256, np.uint8)

    def text(self, lane: np.void) -> str:
        return f"time {lane['time']}"


class Countdown(Rules):
    """Two agents that are paid 1 a step; the lane of seed s terminates after 1 + s % 3 steps."""

    name, multi_agent = "countdown", True
    Params: ClassVar[type] = CountdownParams
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
        return gym.spaces.Box(0, 10_000, (2,), np.float32)

    def action_space(self, params: CountdownParams) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(2)

    def renderer(self) -> TextRenderer:
        return TextRenderer()


class LongParams(NamedTuple):
    """The parameters of the countdown, with room for a few steps."""

    horizon: Annotated[int, Range(1, 10_000)] = 50
    shortest: Annotated[int, Range(1, 10_000)] = 4


class LongCountdown(Countdown):
    """The countdown whose lanes last 4, 5 or 6 steps."""

    Params: ClassVar[type] = LongParams


class Env(SingleEnv):
    rules = LongCountdown


class Vector(BatchEnv):
    rules = LongCountdown


class Parallel(AgentsEnv):
    rules = LongCountdown


parallel_env, env, raw_env = module_of(Parallel)
