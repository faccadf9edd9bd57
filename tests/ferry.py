"""A toy in which a captain decides on one passenger after another, and the episode ends when the ferry is full."""

from typing import Annotated, Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from fair_envs.core import Rules, rule
from fair_envs.core.feedback import Kind, fields, reveal
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import uniform
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv
from fair_envs.support.parameters import Range
from tests.toys import TextRenderer

REFUSE, BOARD = range(2)
DIALECT, TICKET = range(2)  # the sites of chance


class FerryParams(NamedTuple):
    """The parameters of the ferry."""

    seats: Annotated[int, Range(1, 100)] = 4
    horizon: Annotated[int, Range(1, 10_000)] = 50  # steps until truncation
    feedback: Kind = "full"
    delay: Annotated[int, Range(1, 1000)] = 3  # steps until delayed feedback


@rule
def meet(lane: Any, time: Any) -> None:
    """Let the passenger of a time come to the ferry."""
    lane.passenger = time
    lane.foreign = (uniform(lane.key, time, DIALECT, 0) < 0.5) != lane.flipped
    lane.ticket = uniform(lane.key, time, TICKET, 0) < 0.6


@rule
def start(lane: Any, params: Any) -> None:
    """Let the first passenger come to an empty ferry."""
    lane.free = params.seats
    meet(lane, 0)


@rule
def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> Any:
    """Board or refuse the passenger; a full ferry ends the episode."""
    facts.action[0] = action[0]
    reveal(lane, params, facts, lane.ticket)
    if action[0] == BOARD:
        lane.free -= 1
        facts.outcome[0] = 1
        reward[0] = 1 if lane.ticket else -1
    meet(lane, lane.time + 1)
    return lane.free == 0


@rule
def observe(lane: Any, params: Any, observation: Any) -> None:
    """Write the share of free seats, the dialect and the ticket."""
    observation[0, 0] = lane.free / params.seats
    observation[0, 1] = lane.foreign
    observation[0, 2] = lane.ticket


@rule
def describe(lane: Any, params: Any, facts: Any) -> None:
    """Write who the passenger is."""
    observe(lane, params, facts.features)
    facts.individual[0] = lane.passenger
    facts.sensitive[0, 0] = facts.group[0] = lane.foreign
    facts.legitimate[0, 0] = lane.ticket


class Ferry(Rules):
    """A ferry whose captain hears the passengers' dialect and sees their tickets."""

    name, Params = "ferry", FerryParams
    sensitive_features: ClassVar[tuple[str, ...]] = ("foreign",)
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def lane(self, params: FerryParams) -> list[tuple[Any, ...]]:
        own = [("free", np.int32), ("passenger", np.int32), ("foreign", np.int8), ("ticket", np.int8)]
        return [*own, ("flipped", np.int8), *fields(params)]  # 1: everybody speaks the other dialect

    def flip(self, records: Any, who: Any) -> None:
        for name in ("flipped", "foreign"):
            records[name] ^= who[:, 0].astype(np.int8)

    def assign(self, records: Any, attribute: str, code: int) -> None:
        records["foreign"] = code

    def oracle(self, records: Any) -> dict[str, Any]:
        return {"feedback": records["ticket"][:, np.newaxis].astype(np.int64)}

    def fair_spec(self, params: FerryParams) -> FairSpec:
        return FairSpec(
            individuals=1,
            actions=2,
            features=("free", "foreign", "ticket"),
            nominal_features=("foreign", "ticket"),
            sensitive_features=("foreign",),
            sensitive={"dialect": ("local", "foreign")},
            legitimate={"ticket": ("unpaid", "paid")},
            groups=("local", "foreign"),
            feedback=params.feedback,
            delay=params.delay if params.feedback == "delayed" else 0,
        )

    def observation_space(self, params: FerryParams) -> gym.spaces.Box:
        return gym.spaces.Box(0.0, 1.0, (3,), np.float32)

    def observed_features(self, params: FerryParams) -> tuple[str, ...]:
        return ("free", "foreign", "ticket")

    def action_space(self, params: FerryParams) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(2)

    def renderer(self) -> TextRenderer:
        return TextRenderer()


class Env(SingleEnv):
    rules = Ferry


class Vector(BatchEnv):
    rules = Ferry


class Parallel(AgentsEnv):
    rules = Ferry


parallel_env, env, raw_env = module_of(Parallel)
