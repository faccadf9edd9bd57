"""The rules of FairHarvest on one lane, in the order in which the game is played."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, rule
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import integer, shuffle, uniform
from fair_envs.envs.harvest.params import (
    BY_AGENTS,
    BY_TIMER,
    CUBIC,
    MOVEMENT_ONLY,
    PROFILES,
    RANDOM_ORDER,
    RED_FIRST,
    RESAMPLE,
    SHUFFLED,
    SKILL_FACTOR,
    TEN,
    TERMINATE,
    UNTIL_EATEN,
    WITH_NEIGHBOURS,
    WITH_TIMING,
    WITHOUT_REWARD,
    HarvestParams,
    largest_population,
)
from fair_envs.support.aliases import Facts, Floats, Floats32, Ints, Lane, Record

# Actions
STAY, UP, DOWN, LEFT, RIGHT, USE, RECOLOUR, OBSTRUCT, RIPEN = range(9)
ACTION_NAMES = ("stay", "up", "down", "left", "right", "ripen/eat", "recolour", "obstruct", "ripen")
NO_TURN = -1  # `facts.action` of an agent that was frozen or whose turn was not granted

# Colours; an agent's preference is one of them
NO_COLOUR, RED, BLUE = range(3)

# Random streams
PLACEMENT, ATTRIBUTES, TURN_ORDER, RETRY, GROWTH_COLOUR, GROWTH_CELL, RIPENING = range(7)

ROUNDING = 1e-9  # so that 0.29 of 100 agents are 29, not 28
TRIES = 3  # number of tries to find a possible action with "resample"
PERMANENT = -1
NEIGHBOURS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # scanned down, right, up, left
FEATURES = (
    "x",
    "y",
    "sensitive",
    "last_reward",
    "preference",
    "red_bushes",
    "blue_bushes",
    "nearest_red",
    "nearest_blue",
    "nearest_agent",
)
SURROUNDINGS = 8  # out, empty, red unripe, red ripe, blue unripe, blue ripe, agent of same, of other preference
OUT, EMPTY, BUSH_SEEN, SAME_AGENT, OTHER_AGENT = 0, 1, 2, 6, 7
TIMING = 3  # frozen, turn granted, share of the episode that has passed
MORE = {"extended": 4 * SURROUNDINGS + TIMING, "neighbours": 4 * SURROUNDINGS, "timing": TIMING}
"""By how many entries an observation is longer than the ten numbers; others have none."""


# ---------------------------------------------------------------------------------------------- the start


@rule
def start(lane: Lane, params: Record) -> None:
    """Assign the agents' attributes, and place agents and bushes on shuffled cells."""
    assign_preferences(lane, params)
    assign_within_preference(lane, params.skilled_fraction, lane.skilled)
    assign_within_preference(lane, params.sensitive_fraction, lane.sensitive)
    if params.assignment == SHUFFLED:
        assign_shuffled(lane, params)
    place(lane, params)
    for agent in range(params.agents):
        put_agent(lane, agent, lane.x[agent], lane.y[agent])
    for bush in range(params.red_bushes + params.blue_bushes):
        colour = RED if bush < params.red_bushes else BLUE
        add_bush(lane, lane.bush_x[bush], lane.bush_y[bush], colour)


@rule
def place(lane: Lane, params: Record) -> None:
    """Set the positions of agents and bushes to shuffled cells; the memory of the cells is used, and then empty."""
    cells = lane.cell.reshape(-1)
    in_order(cells)
    shuffle(cells, lane.key, 0, PLACEMENT)
    for agent in range(params.agents):
        lane.x[agent] = cells[agent] % params.width
        lane.y[agent] = cells[agent] // params.width
    for bush in range(params.red_bushes + params.blue_bushes):
        lane.bush_x[bush] = cells[params.agents + bush] % params.width
        lane.bush_y[bush] = cells[params.agents + bush] // params.width
    cells[:] = 0


@rule
def in_order(items: Ints) -> None:
    """Write 0, 1, 2 and so on."""
    for k in range(items.shape[0]):
        items[k] = k


@rule
def falls_on(k: int, share: float) -> bool:
    """Return whether item k is selected if a share is spread evenly: floor(n * share) of the first n are."""
    return int((k + 1) * share + ROUNDING) > int(k * share + ROUNDING)


@rule
def assign_preferences(lane: Lane, params: Record) -> None:
    """Assign each agent's preferred colour."""
    agents = params.agents
    reds = agents - int(agents * params.blue_fraction + ROUNDING)
    for agent in range(agents):
        likes_blue = agent >= reds if params.indices == RED_FIRST else falls_on(agent, params.blue_fraction)
        lane.preference[agent] = BLUE if likes_blue else RED


@rule
def assign_within_preference(lane: Lane, share: float, attribute: Any) -> None:
    """Assign the attribute to a share of the agents of each preference and skill."""
    red, red_skilled, blue, blue_skilled = 0, 0, 0, 0  # agents so far
    for agent in range(attribute.shape[0]):
        skilled = lane.skilled[agent]  # before it is assigned, if it is the attribute
        if lane.preference[agent] == BLUE:
            attribute[agent] = falls_on(blue_skilled if skilled else blue, share)
            blue_skilled, blue = blue_skilled + skilled, blue + 1 - skilled
        else:
            attribute[agent] = falls_on(red_skilled if skilled else red, share)
            red_skilled, red = red_skilled + skilled, red + 1 - skilled


@rule
def assign_shuffled(lane: Lane, params: Record) -> None:
    """Assign the sensitive attribute to a share of all agents, independently of their preferences."""
    order = lane.order
    in_order(order)
    shuffle(order, lane.key, 0, ATTRIBUTES)
    protected = int(params.agents * params.sensitive_fraction + ROUNDING)
    lane.sensitive[:] = 0
    for k in range(protected):
        lane.sensitive[order[k]] = 1


@rule
def put_agent(lane: Lane, agent: int, x: int, y: int) -> None:
    """Place an agent in a cell."""
    lane.x[agent] = x
    lane.y[agent] = y
    lane.cell[x, y] = 1 + agent


@rule
def add_bush(lane: Lane, x: int, y: int, colour: int) -> None:
    """Add an unripe bush."""
    bush = lane.bushes
    lane.bush_x[bush] = x
    lane.bush_y[bush] = y
    lane.colour[bush] = colour
    lane.ripe[bush] = 0
    lane.age[bush] = 0
    lane.unripe_for[bush] = 0
    lane.cell[x, y] = first_bush(lane) + bush
    lane.bushes += 1


# ----------------------------------------------------------------------------------------------- a step


@rule
def step(lane: Lane, action: Ints, params: Record, reward: Floats, facts: Facts) -> bool:
    """Play each agent's turn, then let the bushes age, ripen and grow; return whether the episode terminates."""
    agents = params.agents
    if params.turn_order == RANDOM_ORDER:
        order = lane.order
        in_order(order)
        shuffle(order, lane.key, lane.time, TURN_ORDER)
        for agent in order:
            take_turn(lane, agent, action[agent], params, reward, facts)
    else:
        for agent in range(agents):
            take_turn(lane, agent, action[agent], params, reward, facts)
    age_bushes(lane, params)
    if params.ripening != BY_AGENTS:
        ripen_by_themselves(lane, params)
    grow(lane, params)
    return params.at_horizon == TERMINATE and lane.time + 1 >= params.horizon


@rule
def take_turn(lane: Lane, agent: int, action: int, params: Record, reward: Floats, facts: Facts) -> None:
    """Play one agent's turn; a frozen agent loses it before the handicap applies."""
    executed, earned = NO_TURN, 0.0
    if lane.frozen[agent] != 0:
        if lane.frozen[agent] != PERMANENT:
            lane.frozen[agent] -= 1
    elif is_granted(lane, agent, params) or params.handicap == MOVEMENT_ONLY:
        if params.invalid_action == RESAMPLE:
            executed, earned = act_or_resample(lane, agent, action, params)
        else:
            possible, earned = attempt(lane, agent, action, params)
            executed = action if possible else STAY
    if lane.skilled[agent]:
        earned *= params.skill_reward
    reward[agent] = earned
    lane.last_reward[agent] = earned
    lane.total[agent] += earned
    facts.action[agent] = executed
    facts.outcome[agent] = earned


@rule
def is_granted(lane: Lane, agent: int, params: Record) -> bool:
    """Return whether the handicap leaves the agent this turn: every n-th if it has the attribute, not the first."""
    return not lane.sensitive[agent] or (lane.time + 1) % params.handicap_period == 0


@rule
def attempt(lane: Lane, agent: int, action: int, params: Record) -> tuple[bool, float]:
    """Take an action; return whether it was possible, and its reward. An impossible one changes nothing."""
    if action == STAY:
        return True, 0.0
    if UP <= action <= RIGHT:
        granted = params.moves_succeed and is_granted(lane, agent, params)
        return granted and move(lane, agent, action, params), 0.0
    if action == USE:
        if params.separate_ripening:
            return touch_first(lane, agent, params, True, False)
        if params.touch == UNTIL_EATEN:
            return touch_until_eaten(lane, agent, params)
        return touch_first(lane, agent, params, True, True)
    if action == RIPEN:
        return touch_first(lane, agent, params, False, True)
    if action == RECOLOUR:
        return recolour(lane, agent, params)
    return obstruct(lane, agent, params)


@rule
def act_or_resample(lane: Lane, agent: int, action: int, params: Record) -> tuple[int, float]:
    """Take the action or, if it is impossible, another one drawn from those not yet tried; as in the code C.

    If a move fails, its replacement is taken in the same try, provided that it acts on a neighbour.
    """
    untried = (1 << (9 if params.separate_ripening else 8)) - 1  # one bit for each action
    drawn = 0
    for _ in range(TRIES):
        if action <= RIGHT:
            possible, earned = attempt(lane, agent, action, params)
            if possible:
                return action, earned
            untried &= ~(1 << action)
            action = draw_untried(lane, agent, untried, drawn)
            drawn += 1
        if action > RIGHT:
            possible, earned = attempt(lane, agent, action, params)
            if possible:
                return action, earned
            untried &= ~(1 << action)
            action = draw_untried(lane, agent, untried, drawn)
            drawn += 1
    return STAY, 0.0


@rule
def draw_untried(lane: Lane, agent: int, untried: int, drawn: int) -> int:
    """Return one of the actions that were not tried, given by bits, all equally likely."""
    count = 0
    for action in range(9):
        count += (untried >> action) & 1
    left = integer(lane.key, lane.time, RETRY, agent * 2 * TRIES + drawn, count)
    for action in range(9):
        if (untried >> action) & 1:
            if left == 0:
                return action
            left -= 1
    return STAY


@rule
def move(lane: Lane, agent: int, action: int, params: Record) -> bool:
    """Move one cell if that cell is in the world and empty; return whether it is."""
    x, y = lane.x[agent], lane.y[agent]
    to_x = x + (action == RIGHT) - (action == LEFT)
    to_y = y + (action == DOWN) - (action == UP)
    if not inside(to_x, to_y, params) or lane.cell[to_x, to_y] != 0:
        return False
    lane.cell[x, y] = 0
    put_agent(lane, agent, to_x, to_y)
    return True


@rule
def touch_first(lane: Lane, agent: int, params: Record, may_eat: bool, may_ripen: bool) -> tuple[bool, float]:
    """Eat the first adjacent bush if it is ripe, else ripen it, if the action allows it."""
    for dx, dy in NEIGHBOURS:
        bush = bush_at(lane, lane.x[agent] + dx, lane.y[agent] + dy, params)
        if bush >= 0:
            if lane.ripe[bush]:
                return True, eat(lane, agent, bush, params) if may_eat else 0.0
            return True, ripen(lane, agent, bush, params) if may_ripen else 0.0
    return False, 0.0


@rule
def touch_until_eaten(lane: Lane, agent: int, params: Record) -> tuple[bool, float]:
    """Ripen adjacent bushes until one is eaten; the last one's reward counts, as in the code C."""
    touched, earned = False, 0.0
    for dx, dy in NEIGHBOURS:
        bush = bush_at(lane, lane.x[agent] + dx, lane.y[agent] + dy, params)
        if bush >= 0:
            touched = True
            if lane.ripe[bush]:
                return True, eat(lane, agent, bush, params)
            earned = ripen(lane, agent, bush, params)
    return touched, earned


@rule
def ripen(lane: Lane, agent: int, bush: int, params: Record) -> float:
    """Make a bush ripe and return the reward."""
    lane.ripe[bush] = 1
    return params.ripen_preferred if lane.colour[bush] == lane.preference[agent] else params.ripen_other


@rule
def eat(lane: Lane, agent: int, bush: int, params: Record) -> float:
    """Eat the berry and return the reward, 0 for a bush without a colour; the bush stays and is unripe again."""
    make_unripe(lane, bush)
    if lane.colour[bush] == NO_COLOUR:
        return 0.0
    return params.eat_preferred if lane.colour[bush] == lane.preference[agent] else params.eat_other


@rule
def make_unripe(lane: Lane, bush: int) -> None:
    """Make a bush unripe and restart its wait."""
    lane.ripe[bush] = 0
    lane.unripe_for[bush] = 0


@rule
def recolour(lane: Lane, agent: int, params: Record) -> tuple[bool, float]:
    """Give the first adjacent bush of another colour the preferred one; it becomes unripe but keeps its age."""
    beside_a_bush = False
    for dx, dy in NEIGHBOURS:
        bush = bush_at(lane, lane.x[agent] + dx, lane.y[agent] + dy, params)
        if bush >= 0:
            beside_a_bush = True
            if lane.colour[bush] != lane.preference[agent]:
                lane.colour[bush] = lane.preference[agent]
                make_unripe(lane, bush)
                return True, params.recolour
    return beside_a_bush, 0.0


@rule
def obstruct(lane: Lane, agent: int, params: Record) -> tuple[bool, float]:
    """Freeze the first adjacent agent; a new freeze replaces an old one."""
    for dx, dy in NEIGHBOURS:
        other = agent_at(lane, lane.x[agent] + dx, lane.y[agent] + dy, params)
        if other >= 0:
            pays = params.pay_frozen or lane.frozen[other] == 0
            lane.frozen[other] = params.freeze_turns
            opposed = lane.preference[other] != lane.preference[agent]
            earned = params.obstruct_opposed if opposed else params.obstruct_same
            return True, earned if pays else 0.0
    return False, 0.0


# --------------------------------------------------------------------------------------------- the cells


@rule
def inside(x: int, y: int, params: Record) -> bool:
    """Return whether a cell is in the world."""
    return 0 <= x < params.width and 0 <= y < params.height


@rule
def first_bush(lane: Lane) -> int:
    """Return the code of bush 0: a cell holds 0 if empty, 1 + i for agent i, 1 + agents + k for bush k."""
    return 1 + lane.x.shape[0]


@rule
def bush_at(lane: Lane, x: int, y: int, params: Record) -> int:
    """Return the bush in a cell, or -1."""
    if not inside(x, y, params):
        return -1
    return max(lane.cell[x, y] - first_bush(lane), -1)


@rule
def agent_at(lane: Lane, x: int, y: int, params: Record) -> int:
    """Return the agent in a cell, or -1."""
    if not inside(x, y, params) or lane.cell[x, y] >= first_bush(lane):
        return -1
    return lane.cell[x, y] - 1


# -------------------------------------------------------------------------------------------- the bushes


@rule
def age_bushes(lane: Lane, params: Record) -> None:
    """Increase the age of each bush by one step, and remove those that reach their lifespan."""
    if params.lifespan == 0:
        return
    bush = 0
    while bush < lane.bushes:
        lane.age[bush] += 1
        if lane.age[bush] >= params.lifespan:
            remove_bush(lane, bush)  # the last bush takes its place and is checked next
        else:
            bush += 1


@rule
def remove_bush(lane: Lane, bush: int) -> None:
    """Remove a bush and put the last one in its place."""
    last = lane.bushes - 1
    lane.cell[lane.bush_x[bush], lane.bush_y[bush]] = 0
    if bush != last:
        for column in (lane.bush_x, lane.bush_y, lane.age, lane.unripe_for):
            column[bush] = column[last]
        lane.colour[bush] = lane.colour[last]
        lane.ripe[bush] = lane.ripe[last]
        lane.cell[lane.bush_x[bush], lane.bush_y[bush]] = first_bush(lane) + bush
    lane.bushes = last


@rule
def ripen_by_themselves(lane: Lane, params: Record) -> None:
    """Ripen bushes that were unripe long enough: all, or each with a probability set by its colour's count."""
    red, blue = params.ripening_rate * bushes_of(lane, RED), params.ripening_rate * bushes_of(lane, BLUE)
    grey = params.ripening_rate * bushes_of(lane, NO_COLOUR)
    for bush in range(lane.bushes):
        if lane.ripe[bush]:
            continue
        if lane.unripe_for[bush] < params.ripening_wait:
            lane.unripe_for[bush] += 1  # at most the wait: an immortal bush would overflow the type
        if lane.unripe_for[bush] < params.ripening_wait:
            continue
        cell = lane.bush_x[bush] + params.width * lane.bush_y[bush]
        random = uniform(lane.key, lane.time, RIPENING, cell)
        colour = lane.colour[bush]
        chance = red if colour == RED else blue if colour == BLUE else grey
        if params.ripening == BY_TIMER or random < chance:
            lane.ripe[bush] = 1


@rule
def grow(lane: Lane, params: Record) -> None:
    """Grow one bush every few steps: a colour drawn by the colours' shares, a random empty cell."""
    if params.growth_interval == 0 or lane.time % params.growth_interval != 0:
        return
    if lane.time == 0 and not params.growth_at_zero:
        return
    colour = NO_COLOUR
    red_share = share_of_red(bushes_of(lane, RED), bushes_of(lane, BLUE), params)
    if red_share >= 0:
        colour = RED if uniform(lane.key, lane.time, GROWTH_COLOUR, 0) < red_share else BLUE
    for tried in range(params.growth_attempts):
        cell = integer(lane.key, lane.time, GROWTH_CELL, tried, params.width * params.height)
        x, y = cell % params.width, cell // params.width
        if lane.cell[x, y] == 0 and lane.bushes < lane.colour.shape[0]:
            add_bush(lane, x, y, colour)
            return


@rule
def share_of_red(reds: int, blues: int, params: Record) -> float:
    """Return the probability that a new bush is red, or -1 if there are no coloured bushes."""
    if reds + blues == 0:
        return -1.0
    if params.growth_colour == CUBIC:
        return reds**3 / (reds**3 + blues**3)
    return reds / (reds + blues)


@rule
def bushes_of(lane: Lane, colour: int) -> int:
    """Return the number of bushes of a colour."""
    count = 0
    for bush in range(lane.bushes):
        count += lane.colour[bush] == colour
    return count


# -------------------------------------------------------------------------------------------- observations


@rule
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write each agent's observation: the ten numbers and, if chosen, its neighbouring cells and its timing."""
    lane.reds = bushes_of(lane, RED)
    lane.blues = bushes_of(lane, BLUE)
    measure_distances(lane, params)
    write_ten(lane, params, params.scaled, observation)
    if params.observation != TEN and params.observation != WITHOUT_REWARD:
        for agent in range(params.agents):
            write_surroundings(lane, agent, params, observation[agent])


@rule
def measure_distances(lane: Lane, params: Record) -> None:
    """Compute the Manhattan distances to the nearest red bush, blue bush and other agent; width + height if none."""
    none = params.width + params.height
    for agent in range(params.agents):
        x, y = lane.x[agent], lane.y[agent]
        red, blue, other = none, none, none
        for bush in range(lane.bushes):
            distance = abs(lane.bush_x[bush] - x) + abs(lane.bush_y[bush] - y)
            red = min(red, distance if lane.colour[bush] == RED else none)
            blue = min(blue, distance if lane.colour[bush] == BLUE else none)
        for k in range(params.agents):
            distance = abs(lane.x[k] - x) + abs(lane.y[k] - y)
            other = min(other, distance if k != agent else none)
        lane.nearest[agent, 0] = red
        lane.nearest[agent, 1] = blue
        lane.nearest[agent, 2] = other


@rule
def write_ten(lane: Lane, params: Record, scaled: bool, out: Any) -> None:
    """Write the ten numbers of the code C, raw or divided by `scale_of_ten`, for each agent."""
    right, bottom, largest, population, far = 1.0, 1.0, 1.0, 1.0, 1.0
    if scaled:
        right, bottom, largest, population, far = scale_of_ten(params, lane.colour.shape[0], largest_reward(params))
    for agent in range(params.agents):
        row = out[agent]
        row[0] = lane.x[agent] / right
        row[1] = lane.y[agent] / bottom
        row[2] = lane.sensitive[agent]
        row[3] = 0.0 if params.observation == WITHOUT_REWARD else lane.last_reward[agent] / largest
        row[4] = lane.preference[agent]
        row[5] = lane.reds / population
        row[6] = lane.blues / population
        for k in range(3):
            row[7 + k] = lane.nearest[agent, k] / far


@rule
def scale_of_ten(params: Record, population: int, largest: float) -> tuple[float, float, float, float, float]:
    """Return the divisors of x, y, rewards, numbers of bushes and distances in the scaled ten numbers.

    Args:
        params: The parameters.
        population: The largest possible number of bushes.
        largest: The largest absolute reward.
    """
    right, bottom = float(max(params.width - 1, 1)), float(max(params.height - 1, 1))
    return right, bottom, float(largest), float(population), float(params.width + params.height)


@rule
def largest_reward(params: Record) -> float:
    """Return the largest absolute reward of a turn, or 1 if no action pays."""
    largest = max(abs(params.ripen_preferred), abs(params.ripen_other), abs(params.eat_preferred))
    largest = max(largest, abs(params.eat_other), abs(params.recolour))
    largest = max(largest, abs(params.obstruct_opposed), abs(params.obstruct_same))
    if params.skilled_fraction > 0:
        largest *= max(1.0, abs(params.skill_reward))
    return largest if largest > 0 else 1.0


@rule
def write_surroundings(lane: Lane, agent: int, params: Record, row: Floats32) -> None:
    """Write the four neighbours in scan order as one-hot codes, then own freeze, own turn, and the time passed."""
    first = 10
    row[first:] = 0
    if params.observation != WITH_TIMING:
        for dx, dy in NEIGHBOURS:
            seen = what_is_at(lane, agent, lane.x[agent] + dx, lane.y[agent] + dy, params)
            if seen >= 0:
                row[first + seen] = 1
            first += SURROUNDINGS
    if params.observation != WITH_NEIGHBOURS:
        row[first] = lane.frozen[agent] != 0
        row[first + 1] = is_granted(lane, agent, params)
        row[first + 2] = lane.time / params.horizon


@rule
def what_is_at(lane: Lane, agent: int, x: int, y: int, params: Record) -> int:
    """Return the code of a neighbouring cell, or -1 for a bush without a colour."""
    if not inside(x, y, params):
        return OUT
    bush = bush_at(lane, x, y, params)
    if bush >= 0:
        if lane.colour[bush] == NO_COLOUR:
            return -1
        return BUSH_SEEN + 2 * (lane.colour[bush] - RED) + lane.ripe[bush]
    other = agent_at(lane, x, y, params)
    if other < 0:
        return EMPTY
    return SAME_AGENT if lane.preference[other] == lane.preference[agent] else OTHER_AGENT


@rule
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write the agents' records; their features are the scaled ten numbers that they acted on."""
    write_ten(lane, params, True, facts.features)
    for agent in range(params.agents):
        facts.individual[agent] = agent
        facts.sensitive[agent, 0] = lane.sensitive[agent]
        facts.group[agent] = lane.sensitive[agent]
        if params.legitimate == SKILL_FACTOR:
            facts.legitimate[agent, 0] = lane.skilled[agent]
        else:
            facts.legitimate[agent, 0] = lane.preference[agent] - RED


# ------------------------------------------------------------------------------------------ the environment


class Harvest(Rules):
    """Allelopathic harvest in which some agents have half the turns.

    **Description.** Agents walk on a bounded grid (x to the right, y downwards) among red and blue berry bushes. Each
    agent prefers one colour. Beside a bush it can ripen it, eat from it or change its colour; beside another agent it
    can obstruct the agent. Bushes die of age, and new ones more often have the majority's colour (allelopathy). The
    rules follow La Malfa et al. (2025), who made a grid game of Melting Pot's allelopathic harvest.

    **Who decides and who is affected.** The agents decide and are affected. One controller can play all agents
    (``gym.make``), each agent can be played separately (PettingZoo), or all with shared parameters
    (``fair_envs.make_sb3``).

    **Sensitive attribute and legitimate factors.** ``half_speed``: agents with the attribute have only every second
    turn, the first at t = 1. They are half of the agents of each preference (rounded down, within each skill).
    Legitimate factor: an agent's preferred colour (``preference``), or by parameter a skill that multiplies rewards.

    **Action space.** ``Discrete(8)`` per agent: 0 stay, 1 up, 2 down, 3 left, 4 right, 5 ripen or eat, 6 recolour,
    7 obstruct. With ``separate_ripening`` 5 only eats and 8 ripens. Neighbours are scanned down, right, up, left. An
    impossible action changes nothing and earns nothing.

    **Observation space.** ``Box`` of 10 numbers per agent, by default scaled to about [0, 1]: x, y, sensitive (0 or
    1), reward of the last step, preference (1 red, 2 blue), red bushes and blue bushes in the world, Manhattan
    distance to the nearest red bush, blue bush and other agent (width + height if there is none).
    ``observation="extended"`` adds 35: for each of the four neighbours (in scan order) a one-hot code of out of the
    world, empty, red unripe, red ripe, blue unripe, blue ripe, agent of the same preference, agent of the other
    preference; whether the agent is frozen; whether the handicap leaves it this turn; the share of the episode that has
    passed. ``"neighbours"`` adds only the 32 entries of the neighbours, ``"timing"`` only the last three.
    ``"without_reward"`` has the ten numbers with 0 in place of the last reward. The last reward shows an agent at full
    speed whether it is beside a bush. An agent with half the turns had no turn in the last step, so for it, this number
    is always 0 when it acts.

    **Rewards.** Per turn of an agent: ripening 3 in the preferred colour, 1 otherwise; eating 5 or 1; recolouring a
    bush to the preferred colour 5; obstructing 3 if the other agent prefers the other colour, else 0. All are
    parameters.

    **Interactions.** One individual per agent. ``fair_action`` is the action carried out (0 for an impossible one), -1
    if the agent had no turn: frozen, or turn not granted. ``fair_outcome`` is its reward; ``fair_features`` are the
    scaled ten numbers that it acted on. There is no ground truth: ``fair_feedback`` stays -1.

    **Starting state.** Agents, then bushes, on cells drawn without replacement; all bushes are unripe and of age 0.
    Preference and attribute are spread over the indices: preference alternates, every second pair has the attribute.

    **Episode end.** Truncation after ``horizon`` steps; no termination (``at_horizon="terminate"`` makes it one).

    **Order of a step.** Agents act in index order; each sees the effects of earlier agents. A frozen agent loses its
    turn. Then bushes age and die (after ``lifespan`` steps), and ripen by themselves if so chosen. Every
    ``growth_interval`` steps one bush grows on an empty cell; it is red with a probability equal to the share of red
    among the coloured bushes.

    **Arguments.** The fields of `HarvestParams`, each with its default and source. ``profile="authors"`` selects the
    published code's rules, ``profile="eating_only"`` Melting Pot's rewards; ``variant="melting_pot"`` entirely
    different rules, see `fair_envs.envs.harvest.melting_pot.MeltingPotHarvest`.

    **Differences from the published code**, with the switches that restore its behaviour (together:
    ``profile="authors"``):

    * Moves are possible; in the code they always fail: ``moves_succeed=False``.
    * An obstructed agent loses one turn; in the code, all later turns: ``freeze_turns=-1``.
    * An impossible action does nothing; in the code another one is drawn: ``invalid_action="resample"``.
    * Ripen/eat acts on the first bush; in the code, on all until one is eaten: ``touch="until_eaten"``.
    * Half of each preference has the attribute, and indices are interleaved. In the code any half of the agents has it,
      and agents that prefer red come first: ``assignment="shuffled"``, ``indices="red_first"``.
    * Observations are scaled: ``scaled=False``.
    * Reaching the horizon is truncation; in the code it was termination: ``at_horizon="terminate"``.

    **References.** G. La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization", arXiv
    2502.03953, 2025. J. Z. Leibo et al., "Scalable Evaluation of Multi-Agent Reinforcement Learning with Melting Pot",
    ICML 2021.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "harvest"
    drawn_by: ClassVar[str] = "fair_envs.envs.harvest.render:HarvestRenderer"
    policies: ClassVar[Mapping[str, str]] = {
        "greedy": "fair_envs.envs.harvest.policies:GreedyHarvester",
        "reactive": "fair_envs.envs.harvest.policies:ReactiveHarvester",
    }
    action_names: ClassVar[Sequence[str]] = ACTION_NAMES
    keys: ClassVar[Mapping[str, int]] = {
        "up": UP,
        "down": DOWN,
        "left": LEFT,
        "right": RIGHT,
        "space": USE,
        "r": RECOLOUR,
        "o": OBSTRUCT,
        "e": RIPEN,
    }
    Params: ClassVar[type] = HarvestParams
    presets = PROFILES
    multi_agent = True
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def check(self, params: HarvestParams) -> None:
        """Raise ValueError if there are more agents and bushes than cells."""
        cells = params.width * params.height
        bushes = params.red_bushes + params.blue_bushes
        if params.agents > cells:
            raise ValueError(f"agents must be at most the {cells} cells of the grid, got {params.agents}")
        if params.agents + bushes > cells:
            free = cells - params.agents
            raise ValueError(f"red_bushes + blue_bushes must be at most the {free} free cells, got {bushes}")
        if cells > np.iinfo(np.int16).max // 2:
            raise ValueError(f"width * height must be at most {np.iinfo(np.int16).max // 2} cells, got {cells}")

    def lane(self, params: HarvestParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        agents, bushes = params.agents, largest_population(params)
        return [
            ("cell", np.int16, (params.width, params.height)),  # 0 empty, 1 + i agent i, 1 + agents + k bush k
            ("x", np.int16, agents),
            ("y", np.int16, agents),  # grows downwards
            ("preference", np.int8, agents),  # RED or BLUE
            ("sensitive", np.int8, agents),  # 1: has only every second turn
            ("skilled", np.int8, agents),
            ("order", np.int16, agents),  # of the turns in this step, if it is random
            ("frozen", np.int16, agents),  # turns that are still lost; -1: all
            ("last_reward", np.float32, agents),
            ("total", np.float32, agents),  # rewards of the episode so far
            ("nearest", np.int16, (agents, 3)),  # distance to the nearest red bush, blue bush, other agent
            ("bush_x", np.int16, bushes),  # the first `bushes` entries of each column are in use
            ("bush_y", np.int16, bushes),
            ("age", np.int16, bushes),  # steps since the bush grew; always 0 if bushes are immortal
            ("unripe_for", np.int16, bushes),  # unripe steps, for ripening by itself
            ("colour", np.int8, bushes),  # NO_COLOUR, RED or BLUE
            ("ripe", np.int8, bushes),
            ("bushes", np.int32),
            ("reds", np.int32),  # counted when the lane was last observed
            ("blues", np.int32),
        ]

    def fair_spec(self, params: HarvestParams) -> FairSpec:
        """Return who is affected: the agents."""
        factors = {"preference": ("red", "blue"), "skill": ("unskilled", "skilled")}
        return FairSpec(
            individuals=params.agents,
            actions=number_of_actions(params),
            features=FEATURES,
            sensitive={"half_speed": ("no", "yes")},
            legitimate={params.legitimate: factors[params.legitimate]},
            groups=("full_speed", "half_speed"),
            same_individuals=True,
        )

    def agents(self, params: HarvestParams) -> int:
        """Return the number of agents."""
        return params.agents

    def observation_space(self, params: HarvestParams) -> gym.spaces.Box:
        """Return the bounds of one agent's observation."""
        population = largest_population(params)
        largest = largest_reward(params)
        right, bottom, *_, far = scale_of_ten(params, population, largest)
        low = np.array([0, 0, 0, -largest, 0, 0, 0, 0, 0, 0], float)  # with 0, which some libraries fill in
        high = np.array([right, bottom, 1, largest, BLUE, population, population, far, far, far])
        if params.scaled:
            scale = np.array([right, bottom, 1, largest, 1, population, population, far, far, far])
            low, high = low / scale, high / scale
        more = MORE.get(params.observation, 0)
        low, high = np.append(low, np.zeros(more)), np.append(high, np.ones(more))
        return gym.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def observed_features(self, params: HarvestParams) -> tuple[str, ...]:
        """Return the names of the ten numbers with which every observation begins."""
        return FEATURES

    def action_space(self, params: HarvestParams) -> gym.spaces.Discrete:
        """Return the eight actions, nine with separate ripening."""
        return gym.spaces.Discrete(number_of_actions(params))

    def action_masks(self, records: NDArray[np.void]) -> NDArray[np.int8]:
        """Return which moves stay in the world; whether a cell is free also depends on the other agents' actions."""
        masks = super().action_masks(records)
        if self.params.invalid_action == "resample":  # a move out of the world means another action
            return masks
        masks[..., UP], masks[..., DOWN] = records["y"] > 0, records["y"] < self.params.height - 1
        masks[..., LEFT], masks[..., RIGHT] = records["x"] > 0, records["x"] < self.params.width - 1
        return masks


def number_of_actions(params: HarvestParams) -> int:
    """Return the number of actions of an agent."""
    return 9 if params.separate_ripening else 8
