"""Scripted policies for FairTraffic: they accelerate, and choose the turn that looks best.

They use what their car sees and nothing else: in a car without live traffic data the same driver goes by distances.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Floats, Ints
from fair_envs.core import Rules
from fair_envs.envs.traffic.rules import ACCELERATE, OF_TURN, SEEN_OF_TURN, Traffic
from fair_envs.evaluation import Policy
from fair_envs.parameters import NonNegative, checked

NOWHERE = 1e9  # what a turn costs into a street that there is not


class Driver(Policy):
    """Accelerates, and turns where the cost is least; subclasses say what a turn costs.

    Of equal turns chance takes one, by the uniform number. Braking is left to the rules, which let nobody collide.

    Args:
        rules: FairTraffic's.

    Raises:
        ValueError: They are another environment's.
    """

    def __init__(self, rules: Rules) -> None:
        if not isinstance(rules, Traffic):
            raise ValueError(f"rules must be those of FairTraffic, got those of {rules.name}")
        self.rules = rules

    def cost(self, turns: "Turns") -> NDArray[Any]:
        """Return what each turn costs, shape (B, cars, 3); what counts is where it is least."""
        raise NotImplementedError

    def act(self, observation: NDArray[Any], uniforms: Floats) -> Ints:
        """Return the actions, shape (B, cars)."""
        turns = Turns(observation)
        cost = np.where(turns["exists"] > 0, self.cost(turns), NOWHERE)
        best = cost <= cost.min(axis=-1, keepdims=True) + 1e-6
        count = best.cumsum(axis=-1)
        wanted = np.floor(uniforms[..., np.newaxis] * count[..., -1:]) + 1  # the n-th of the best ones
        turn: Ints = (count >= wanted).argmax(axis=-1)
        return 3 * ACCELERATE + turn


class Turns:
    """What an observation says of left, straight on and right; ``turns[name]`` has shape (B, cars, 3)."""

    def __init__(self, observation: NDArray[Any]) -> None:
        told = observation[..., OF_TURN:]
        self._table = told.reshape(*told.shape[:-1], 3, len(SEEN_OF_TURN))

    def __getitem__(self, name: Literal["exists", "distance", "time", "announced", "human_lane", "toll"]) -> Any:
        """Return one column."""
        return self._table[..., SEEN_OF_TURN.index(name)]


class RandomTurns(Driver):
    """Turns by chance."""

    def cost(self, turns: Turns) -> NDArray[Any]:
        """Return 0 for each."""
        return np.zeros_like(turns["exists"])


class ShortestPath(Driver):
    """Takes the shortest way, as if roads were free."""

    def cost(self, turns: Turns) -> NDArray[Any]:
        """Return how far it is."""
        return turns["distance"]


class ShortestTime(Driver):
    """Takes the way that is quickest now, as far as it is told: without live times, the shortest.

    Args:
        rules: FairTraffic's.
        per_car: Steps that are added for each car that has announced to take a street, so that not all take the same.
        tolls: Whether a toll counts, as the steps that cost as much.
    """

    def __init__(self, rules: Rules, *, per_car: float = 0.2, tolls: bool = True) -> None:
        super().__init__(rules)
        self.per_car = checked("per_car", per_car, NonNegative)
        self.tolls = checked("tolls", tolls, bool)

    def cost(self, turns: Turns) -> NDArray[Any]:
        """Return the time, that which announced cars take, and the toll, in the observation's unit."""
        params, unit = self.rules.params, self.rules.code["per_step"][0]
        cost = turns["time"] + self.per_car * unit * params.cars * turns["announced"]
        if self.tolls and params.time_cost > 0:
            cost = cost + turns["toll"] / params.time_cost * unit
        return cost


DRIVERS = {"random-turns": RandomTurns, "shortest-path": ShortestPath, "shortest-time": ShortestTime}
"""The drivers by the names that the command line knows."""

__all__ = ["DRIVERS", "Driver", "RandomTurns", "ShortestPath", "ShortestTime", "Turns"]
