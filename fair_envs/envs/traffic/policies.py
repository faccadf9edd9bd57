"""Scripted policies for FairTraffic: they accelerate, and choose the turn that looks best.

They use only what their car observes: in a car without live traffic data the same driver uses distances.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.traffic.rules import ACCELERATE, OF_TURN, SEEN_OF_TURN, Traffic
from fair_envs.evaluation import Policy
from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.parameters import NonNegative, checked

NOWHERE = 1e9  # cost of a turn without a street


class Driver(Policy):
    """Accelerates, and takes the turn with the least cost; subclasses define the cost of a turn.

    Ties are broken at random, by the uniform number. Drivers never brake: the rules prevent collisions.

    Args:
        rules: FairTraffic's.

    Raises:
        ValueError: The rules are another environment's.
    """

    def __init__(self, rules: Rules) -> None:
        if not isinstance(rules, Traffic):
            raise ValueError(f"rules must be those of FairTraffic, got those of {rules.name}")
        self.rules = rules

    def cost(self, turns: "Turns") -> NDArray[Any]:
        """Return the cost of each turn, shape (B, cars, 3); only the position of the least cost matters."""
        raise NotImplementedError

    def act(self, observation: NDArray[Any], uniforms: Floats) -> Ints:
        """Return the actions, shape (B, cars)."""
        turns = Turns(observation)
        cost = np.where(turns["exists"] > 0, self.cost(turns), NOWHERE)
        best = cost <= cost.min(axis=-1, keepdims=True) + 1e-6
        count = best.cumsum(axis=-1)
        wanted = np.floor(uniforms[..., np.newaxis] * count[..., -1:]) + 1  # n, for the n-th of the best turns
        turn: Ints = (count >= wanted).argmax(axis=-1)
        return 3 * ACCELERATE + turn


class Turns:
    """The entries of an observation for left, straight on and right; ``turns[name]`` has shape (B, cars, 3)."""

    def __init__(self, observation: NDArray[Any]) -> None:
        reported = observation[..., OF_TURN:]
        self._table = reported.reshape(*reported.shape[:-1], 3, len(SEEN_OF_TURN))

    def __getitem__(self, name: Literal["exists", "distance", "time", "announced", "human_lane", "toll"]) -> Any:
        """Return one column."""
        return self._table[..., SEEN_OF_TURN.index(name)]


class RandomTurns(Driver):
    """Turns at random."""

    def cost(self, turns: Turns) -> NDArray[Any]:
        """Return 0 for each turn."""
        return np.zeros_like(turns["exists"])


class ShortestPath(Driver):
    """Takes the shortest way, as if roads were free."""

    def cost(self, turns: Turns) -> NDArray[Any]:
        """Return the distances."""
        return turns["distance"]


class ShortestTime(Driver):
    """Takes the currently fastest way; without live times, the shortest.

    Args:
        rules: FairTraffic's.
        per_car: Steps added for each car that has announced to take a street, so that cars spread over streets.
        tolls: Whether tolls count, converted to the steps that cost the same.
    """

    def __init__(self, rules: Rules, *, per_car: float = 0.2, tolls: bool = True) -> None:
        super().__init__(rules)
        self.per_car = checked("per_car", per_car, NonNegative)
        self.tolls = checked("tolls", tolls, bool)

    def cost(self, turns: Turns) -> NDArray[Any]:
        """Return the time, the time for announced cars, and the toll, in the observation's unit."""
        params, unit = self.rules.params, self.rules.code["per_step"][0]
        cost = turns["time"] + self.per_car * unit * params.cars * turns["announced"]
        if self.tolls and params.time_cost > 0:
            cost = cost + turns["toll"] / params.time_cost * unit
        return cost


DRIVERS = {"random-turns": RandomTurns, "shortest-path": ShortestPath, "shortest-time": ShortestTime}
"""The drivers by their names on the command line."""

__all__ = ["DRIVERS", "Driver", "RandomTurns", "ShortestPath", "ShortestTime", "Turns"]
