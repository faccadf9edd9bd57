"""Scripted policies for FairHarvest: one that reads the whole state, and one that only uses what an agent observes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.core.compilation import kernel, readable, rule
from fair_envs.envs.harvest.rules import (
    BLUE,
    DOWN,
    FEATURES,
    LEFT,
    NEIGHBOURS,
    NO_COLOUR,
    RECOLOUR,
    RED,
    RIGHT,
    RIPEN,
    STAY,
    UP,
    USE,
    Harvest,
    bush_at,
    inside,
)
from fair_envs.evaluation import Policy
from fair_envs.support.aliases import Ints, Lane, Record, Records

MOVES = (DOWN, RIGHT, UP, LEFT)  # in the order of NEIGHBOURS
UNSEEN = -1  # of a cell that the search has not reached
NEAREST_BUSHES = slice(FEATURES.index("nearest_red"), FEATURES.index("nearest_blue") + 1)
BESIDE = 1.5  # distances below this one are 1


def checked_rules(rules: Rules) -> Harvest:
    """Return the rules, or raise ValueError if they are another environment's."""
    if not isinstance(rules, Harvest):
        raise ValueError(f"rules must be those of FairHarvest, got those of {rules.name}")
    return rules


class ReactiveHarvester(Policy):
    """Each agent walks at random until a bush is beside it, and then recolours it or uses it.

    It only uses the distances to the nearest bushes in the agent's own observation, and has no memory. Bushes in the
    other colour are recoloured, if that pays. If ripening is a separate action, it draws between ripening and eating,
    because the ten numbers do not show what is ripe.

    Args:
        rules: FairHarvest's.

    Raises:
        ValueError: The rules are another environment's.
    """

    def __init__(self, rules: Rules) -> None:
        params = checked_rules(rules).params
        self.unit = params.width + params.height if params.scaled else 1
        self.separate, self.at_other = params.separate_ripening, RECOLOUR if params.recolour > 0 else USE

    def act(self, observation: NDArray[Any], uniforms: Any) -> Ints:
        """Return the actions, in the shape of ``uniforms``."""
        preference, distances = observation[..., FEATURES.index("preference")], observation[..., NEAREST_BUSHES]
        beside = distances * self.unit < BESIDE  # (..., 2), red and blue
        prefers_red = preference < (RED + BLUE) / 2
        own = np.where(prefers_red, beside[..., 0], beside[..., 1])
        other = np.where(prefers_red, beside[..., 1], beside[..., 0])
        use = np.where(self.separate & (uniforms < 0.5), RIPEN, USE)
        walk = UP + (4 * uniforms).astype(np.int64)  # up, down, left, right
        return np.where(other, self.at_other, np.where(own, use, walk))


class GreedyHarvester(Policy):
    """Each agent harvests the bushes beside it for the largest immediate reward; without one, it walks to the nearest.

    Beside a bush, the agent eats, ripens or recolours, whichever pays most now; it does not obstruct others. The
    nearest bush is the one with the shortest path through cells that are empty now. Agents without a path stay.

    Args:
        rules: FairHarvest's.

    Raises:
        ValueError: The rules are another environment's.
    """

    uses_truth = True

    def __init__(self, rules: Rules) -> None:
        checked_rules(rules)

    def start(self, world: Any) -> None:
        """Store the lanes."""
        self.lanes = world.lanes

    def act(self, observation: NDArray[Any], uniforms: Any) -> Ints:
        """Return the actions, shape (B, agents)."""
        lanes = self.lanes
        actions = np.zeros((lanes.count, lanes.agents), np.int64)
        harvest(readable(lanes.rules.code), readable(lanes.records), actions)
        return actions


@kernel
def harvest(code: Any, lanes: Records, actions: Ints) -> None:
    """Write the greedy action of each agent, shape (B, agents)."""
    params = code[0]
    queue = np.zeros(params.width * params.height, np.int64)
    first_move = np.zeros(params.width * params.height, np.int64)
    for b in range(lanes.shape[0]):
        for agent in range(actions.shape[1]):
            action = best_beside(lanes[b], agent, params)
            if action == STAY:
                action = first_step(lanes[b], agent, params, queue, first_move)
            actions[b, agent] = action


@rule
def best_beside(lane: Lane, agent: int, params: Record) -> int:
    """Return the action on the bushes beside an agent that pays most at once; stay without a bush."""
    x, y = lane.x[agent], lane.y[agent]
    beside = first_beside(lane, x, y, params, -1)
    if beside < 0:
        return STAY
    other = first_beside(lane, x, y, params, lane.preference[agent])
    gain, action = pay_of_use(lane, agent, beside, params), USE
    if params.separate_ripening and not lane.ripe[beside]:
        action = RIPEN
    if other >= 0 and params.recolour > gain:
        gain, action = params.recolour, RECOLOUR
    return action if gain >= 0.0 else STAY


@rule
def first_beside(lane: Lane, x: int, y: int, params: Record, colour: int) -> int:
    """Return the first bush beside a cell that has another colour; -1 without one."""
    for dx, dy in NEIGHBOURS:
        bush = bush_at(lane, x + dx, y + dy, params)
        if bush >= 0 and lane.colour[bush] != colour:
            return bush
    return -1


@rule
def pay_of_use(lane: Lane, agent: int, bush: int, params: Record) -> float:
    """Return the reward for eating a ripe bush, or for ripening an unripe one."""
    own = lane.colour[bush] == lane.preference[agent]
    if not lane.ripe[bush]:
        return params.ripen_preferred if own else params.ripen_other
    if lane.colour[bush] == NO_COLOUR:
        return 0.0
    return params.eat_preferred if own else params.eat_other


@rule
def first_step(lane: Lane, agent: int, params: Record, queue: Ints, first_move: Ints) -> int:
    """Return the first move of the shortest path to a cell beside a bush; stay without a path.

    Args:
        lane: The lane.
        agent: The agent.
        params: The parameters.
        queue: Memory for the cells to visit, one entry for each cell.
        first_move: Memory for the first move to each cell, one entry for each cell.
    """
    first_move[:] = UNSEEN
    queue[0] = lane.x[agent] * params.height + lane.y[agent]
    first_move[queue[0]] = STAY
    visited, known = 0, 1
    while visited < known:
        cell = queue[visited]
        x, y = cell // params.height, cell % params.height
        visited += 1
        if first_beside(lane, x, y, params, -1) >= 0:
            return first_move[cell]
        for k in range(4):
            to_x, to_y = x + NEIGHBOURS[k][0], y + NEIGHBOURS[k][1]
            following = to_x * params.height + to_y
            if inside(to_x, to_y, params) and lane.cell[to_x, to_y] == 0 and first_move[following] == UNSEEN:
                first_move[following] = MOVES[k] if cell == queue[0] else first_move[cell]
                queue[known] = following
                known += 1
    return STAY


__all__ = ["GreedyHarvester"]
