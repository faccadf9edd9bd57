"""The rules of FairTraffic, in the order in which they are applied.

Streets also have lanes. Here `lane` is always the core's record of an episode; a lane of a street is called a *side*.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, rule
from fair_envs.core.compilation import record_of
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import integer, random_words, to_unit_interval, uniform
from fair_envs.envs.traffic.city import LEFT, TURNS, City, crossing
from fair_envs.envs.traffic.params import (
    ALL,
    MOST_REACTION,
    MOST_SPEED,
    OWN,
    SIGNALS,
    STATIC,
    TrafficParams,
)
from fair_envs.support.aliases import Facts, Floats, Floats32, Ints, Lane, Record
from fair_envs.support.parameters import encode

# Random streams
WHO, FAST, SAFE, ROADWORKS, PLACE, GOAL, DAWDLE = range(7)

BRAKE, KEEP, ACCELERATE = range(3)  # an action is 3 * pedal + turn
ACTION_NAMES = tuple(f"{pedal}, {turn}" for pedal in ("brake", "keep", "accelerate") for turn in TURNS)
UNSAID = -1  # turn of a car that has not chosen yet in this street
ATTEMPTS = 100  # tries to find a free cell at the start; then the next free one
HEADWAY = 1.0  # steps between the starts of successive cars in a queue
MOMENTS = MOST_REACTION + 1  # number of remembered times, with the present
FAR = 1e9  # steps to places that have not been reached
SEEN = ("on_the_road", "speed", "street_left", "free_ahead", "green", "human_driven", "fast", "safety")
SEEN_OF_TURN = ("exists", "distance", "time", "announced", "human_lane", "toll")
OF_TURN, EACH_TURN = len(SEEN), len(SEEN_OF_TURN)


# --------------------------------------------------------------------------------------------------- the start


@rule
def start(lane: Lane, params: Record) -> None:
    """Assign the cars' attributes, choose the streets with road works, and place the cars, standing."""
    assign(lane, params, WHO, params.humans)
    assign(lane, params, FAST, params.fasts)
    assign(lane, params, SAFE, params.safes)
    dig(lane, params)
    for car in range(params.cars):
        place(lane, params, car)
        lane.turn[car] = UNSAID
        lane.goal[car] = params.hospital_at
        if params.destination == OWN:
            lane.goal[car] = elsewhere(lane, params, car)
    lane.driving = params.cars
    take_in(lane, params, 0)


@rule
def assign(lane: Lane, params: Record, attribute: int, count: int) -> None:
    """Assign an attribute to exactly `count` cars; all sets of this size are equally likely."""
    left = count
    for car in range(params.cars):
        has_it = uniform(lane.key, 0, attribute, car) * (params.cars - car) < left
        left -= has_it
        if attribute == WHO:
            lane.human[car] = has_it
        elif attribute == FAST:
            lane.fast[car] = has_it
        else:
            lane.safety[car] = has_it


@rule
def dig(lane: Lane, params: Record) -> None:
    """Choose the streets with road works; all sets of their number are equally likely."""
    left, streets = params.diggings, params.street.shape[0]
    for k in range(streets):
        if uniform(lane.key, 0, ROADWORKS, k) * (streets - k) < left:
            left -= 1
            lane.dug[params.street[k, 0]] = 1
            lane.dug[params.street[k, 1]] = 1


@rule
def place(lane: Lane, params: Record, car: int) -> None:
    """Place a car in a free cell of a street's first lane."""
    cells = 2 * params.street.shape[0] * params.street_length
    for attempt in range(ATTEMPTS):
        cell = integer(lane.key, attempt, PLACE, car, cells)
        if put(lane, params, car, cell):
            return
    while not put(lane, params, car, cell):
        cell = (cell + 1) % cells


@rule
def put(lane: Lane, params: Record, car: int, cell: int) -> bool:
    """Place a car in a cell, counted over all streets, if it is free, and return whether it was."""
    way, at = cell // params.street_length, cell % params.street_length
    street = params.street[way // 2, way % 2]
    if lane.taken[street, 0, at]:
        return False
    lane.taken[street, 0, at] = car + 1
    lane.street[car], lane.at[car] = street, at
    return True


@rule
def elsewhere(lane: Lane, params: Record, car: int) -> int:
    """Return a crossroads that is not at the end of the car's street."""
    goal = integer(lane.key, 0, GOAL, car, params.crossroads_count - 1)
    return goal + (goal >= params.ahead[lane.street[car]])


# ------------------------------------------------------------------------------------------------------ a step


@rule
def step(lane: Lane, action: Ints, params: Record, reward: Floats, facts: Facts) -> bool:
    """Let all cars decide and move simultaneously; it terminates when all have arrived."""
    lane.asking = 0
    for car in range(params.cars):
        facts.outcome[car] = 0.0
        if not lane.arrived[car]:
            decide(lane, params, car, int(action[car]))
    for k in range(lane.asking):
        serve(lane, params, lane.asker[k])
    dawdle(lane, params)
    for car in range(params.cars):
        if not lane.arrived[car]:
            lane.taken[lane.street[car], lane.side[car], lane.at[car]] = 0
    for car in range(params.cars):
        if not lane.arrived[car]:
            reward[car] = go(lane, params, car)
            facts.action[car] = lane.speed[car] > 0
            facts.outcome[car] = reward[car]
    take_in(lane, params, lane.time + 1)
    return lane.driving == 0


@rule
def decide(lane: Lane, params: Record, car: int, action: int) -> None:
    """Set a car's wished cells and turn from its action, and brake to the free cells that it sees."""
    lane.turn[car] = params.taken_turn[lane.street[car], action % 3]
    speed = lane.speed[car] + action // 3 - KEEP
    speed = max(0, min(speed, limit(lane, params, car, lane.street[car])))
    speed = min(speed, lane.seen[moment(lane, params, car) % MOMENTS, car])  # machines brake to what follows too
    gap, left = lane.gap[car], params.street_length - 1 - lane.at[car]
    if gap <= left:  # a car is ahead on the street
        speed = min(speed, gap - (lane.safety[car] and gap > 0))
    lane.wish[car] = min(speed, left)
    lane.next[car] = -1
    if speed > left and green(lane, params, lane.street[car], lane.time):
        lane.wish[car] = speed
        lane.asker[lane.asking] = car
        lane.asking += 1
        lane.waiting[lane.street[car], lane.side[car]] = car + 1


@rule
def limit(lane: Lane, params: Record, car: int, street: int) -> int:
    """Return the largest speed of a car in a street."""
    return params.speeds[lane.fast[car], lane.dug[street]]


@rule
def moment(lane: Lane, params: Record, car: int) -> int:
    """Return the time of the state that a driver sees: for people, earlier by their reaction time."""
    return max(0, lane.time - params.reaction[lane.human[car]])


@rule
def green(lane: Lane, params: Record, street: int, time: int) -> bool:
    """Return whether the lights at the end of a street let its cars cross, at this or an earlier time."""
    return (lane.lights[time % MOMENTS, params.ahead[street]] >> (street % 2)) & 1 == 1


# ------------------------------------------------------------------------------------------------- crossroads


@rule
def serve(lane: Lane, params: Record, asker: int) -> None:
    """Let the cars around a crossroads cross that wait there, unless this has been done.

    Cars that turn left give way to all others. Within both classes, each car gives way to cars from the right. If cars
    wait on every side, the headings take turns in being first.
    """
    street = lane.street[asker]
    if not lane.waiting[street, lane.side[asker]]:
        return
    end = params.ahead[street]
    first, granted = first_heading(lane, params, end), 0
    for turning in range(2):
        for k in range(4):
            heading = (first + k) % 4
            street = params.coming[end, heading]
            if street < 0:
                continue
            for side in range(params.lanes):
                car = lane.waiting[street, side] - 1
                if car >= 0 and (lane.turn[car] == LEFT) == (turning == 1):
                    granted |= cross(lane, params, car, granted)
                    lane.waiting[street, side] = 0


@rule
def first_heading(lane: Lane, params: Record, end: int) -> int:
    """Return the heading of a car with no car on its right; cars from there have the previous heading, clockwise."""
    headings = 0  # headings of the waiting cars, as bits
    for heading in range(4):
        headings |= anybody(lane, params, params.coming[end, heading]) << heading
    for heading in range(4):
        if (headings >> heading) & 1 and not (headings >> (heading + 3) % 4) & 1:
            return heading
    return lane.time % 4


@rule
def anybody(lane: Lane, params: Record, street: int) -> int:
    """Return 1 if a car waits at the end of a street, else 0, also if there is no street."""
    if street >= 0:
        for side in range(params.lanes):
            if lane.waiting[street, side]:
                return 1
    return 0


@rule
def cross(lane: Lane, params: Record, car: int, granted: int) -> int:
    """Let a car cross if no granted car is in its way and there is room; return its movement as a bit, or 0."""
    street, turn = lane.street[car], lane.turn[car]
    left = params.street_length - 1 - lane.at[car]
    movement = 3 * (street % 4) + turn
    if params.crossing[movement] & granted:
        lane.wish[car] = left
        return 0
    if params.ahead[street] == lane.goal[car]:
        lane.next[car] = street  # it leaves the road
        return 1 << movement
    into = params.after[street, turn]
    side, room = best_side(lane, params, car, into, min(lane.wish[car] - left, limit(lane, params, car, into)))
    if room == 0:
        lane.wish[car] = left
        return 0
    lane.wish[car] = left + room
    lane.next[car], lane.next_side[car] = into, side
    lane.claimed[into, side] = lane.time + 1
    return 1 << movement


@rule
def best_side(lane: Lane, params: Record, car: int, into: int, wanted: int) -> tuple[int, int]:
    """Return the lane of a street with the most room for a car, and the number of cells: 0 if it cannot enter.

    Among equal lanes, human drivers take the lane for human drivers, others the first.
    """
    best, most = 0, 0
    for side in range(params.lanes):
        reserved = params.human_lane[into] and side == params.lanes - 1
        if lane.claimed[into, side] == lane.time + 1 or (reserved and not lane.human[car]):
            continue
        room = room_at_start(lane, params, car, into, side, wanted)
        if room > most or (room == most and room > 0 and reserved):
            best, most = side, room
    return best, most


@rule
def room_at_start(lane: Lane, params: Record, car: int, into: int, side: int, wanted: int) -> int:
    """Return how many cells a car can drive into a lane; a safe driver keeps one free before another car."""
    for cell in range(min(wanted + lane.safety[car], params.street_length)):
        if lane.taken[into, side, cell]:
            return cell - (lane.safety[car] and cell > 0)
    return min(wanted, params.street_length)


@rule
def dawdle(lane: Lane, params: Record) -> None:
    """Let each car drive one cell less with the probability of dawdling."""
    for first in range(0, params.cars, 4):
        drawn = random_words(lane.key, lane.time, DAWDLE, first)
        for car in range(first, min(first + 4, params.cars)):
            dawdles = to_unit_interval(drawn[car - first]) < params.dawdles[lane.human[car]]
            lane.wish[car] -= dawdles & (lane.wish[car] > 0)


@rule
def go(lane: Lane, params: Record, car: int) -> float:
    """Move a car and return its reward."""
    length = params.street_length
    lane.speed[car] = lane.wish[car]
    at = lane.at[car] + lane.wish[car]
    lane.steps[car] += 1
    if at >= length and lane.next[car] == lane.street[car]:
        lane.arrived[car] = 1
        lane.driving -= 1
        to_the_line = length - 1 - lane.at[car]
        return params.arrival_reward - params.time_cost - params.distance_cost * to_the_line
    earned = -params.time_cost - params.distance_cost * lane.wish[car]
    if at < length:
        lane.at[car] = at
    else:
        lane.street[car], lane.side[car], lane.at[car] = lane.next[car], lane.next_side[car], at - length
        lane.turn[car] = UNSAID
        earned -= params.toll_of[lane.next[car], lane.human[car]]
    lane.taken[lane.street[car], lane.side[car], lane.at[car]] = car + 1
    return earned


# ------------------------------------------------------------------------------- observations and feedback


@rule
def take_in(lane: Lane, params: Record, time: int) -> None:
    """Store what can be seen at this time, since people see it later: lights and free cells."""
    for end in range(params.crossroads_count):
        lane.lights[time % MOMENTS, end] = lights(params, end, time)
    for car in range(params.cars):
        if not lane.arrived[car]:
            look(lane, params, car, time)


@rule
def lights(params: Record, end: int, time: int) -> int:
    """Return who can cross: 1 east and west, 2 north and south, 3 all."""
    if params.crossroads != SIGNALS:
        return 3
    now = (time + params.early[end]) % params.signal_period
    return 1 if now < params.east_west_green else 2


@rule
def look(lane: Lane, params: Record, car: int, time: int) -> None:
    """Count the free cells to the car ahead, and store how many the driver sees: up to that car or a red light."""
    street, side, at = lane.street[car], lane.side[car], lane.at[car]
    left = params.street_length - 1 - at
    gap = 0
    while gap < min(left, MOST_SPEED + 1) and not lane.taken[street, side, at + gap + 1]:
        gap += 1
    if gap == min(left, MOST_SPEED + 1):
        gap = max(params.street_length, MOST_SPEED)  # no car in sight
    lane.gap[car] = gap
    stop = left if gap > left and not green(lane, params, street, time) else gap
    lane.seen[time % MOMENTS, car] = min(stop, MOST_SPEED)


@rule
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write each driver's observation; drivers who have arrived see nothing."""
    survey(lane, params)
    for car in range(params.cars):
        if lane.arrived[car]:
            for k in range(observation.shape[1]):
                observation[car, k] = 0.0
        else:
            write_own(lane, params, car, observation)
            write_turns(lane, params, car, observation)
    for car in range(params.cars):
        if lane.seeker[lane.goal[car]]:
            tell_times(lane, params, lane.goal[car], observation)


@rule
def survey(lane: Lane, params: Record) -> None:
    """Compute how long each street takes now, and how many cars have announced to turn into it."""
    for street in range(params.ahead.shape[0]):
        lane.takes[street] = params.takes[lane.dug[street], street % 2]
        lane.announced[street] = 0
    for car in range(params.cars):
        if not lane.arrived[car]:
            street = lane.street[car]
            if lane.speed[car] == 0:
                lane.takes[street] += params.queue_takes
            if announces(lane, params, car):
                lane.announced[params.after[street, lane.turn[car]]] += 1


@rule
def last(lane: Lane, params: Record, car: int) -> bool:
    """Return whether the car's goal is at the end of its street."""
    return params.ahead[lane.street[car]] == lane.goal[car]


@rule
def announces(lane: Lane, params: Record, car: int) -> bool:
    """Return whether a car has announced its turn at the end of its street, where it drives on."""
    has_full_information = params.knows[lane.human[car]] == ALL
    return has_full_information & (lane.turn[car] != UNSAID) & (not last(lane, params, car))


@rule
def write_own(lane: Lane, params: Record, car: int, observation: Floats32) -> None:
    """Write a driver's observation of its car, the road ahead and the lights."""
    human, fast, safety = lane.human[car], lane.fast[car], lane.safety[car]
    then, length = moment(lane, params, car), params.street_length
    left = (length - 1 - lane.at[car]) / length
    speed, free = lane.speed[car] / MOST_SPEED, lane.seen[then % MOMENTS, car] / MOST_SPEED
    may_cross = green(lane, params, lane.street[car], then)
    observation[car, 0] = 1.0
    observation[car, 1] = speed
    observation[car, 2] = left
    observation[car, 3] = free
    observation[car, 4] = may_cross
    observation[car, 5] = human
    observation[car, 6] = fast
    observation[car, 7] = safety


@rule
def write_turns(lane: Lane, params: Record, car: int, observation: Floats32) -> None:
    """Write a driver's observation of each turn, and list the drivers who receive live times.

    All values are read before any is written, since the compiler cannot exclude that they share memory. Turns without a
    street have an entry in all tables, because an unpredictable branch would cost more than it saves.
    """
    street, goal, human = lane.street[car], lane.goal[car], lane.human[car]
    nowhere, at_goal = params.ahead.shape[0], last(lane, params, car)
    output = lane.turn[car] if announces(lane, params, car) else UNSAID
    per_street, per_announced = params.per_street * (1 - at_goal), params.per_announced[human]
    for turn in range(3):
        place, into = OF_TURN + EACH_TURN * turn, params.after[street, turn]
        exists, distance = into != nowhere, params.far[into, goal] * per_street
        announced = (lane.announced[into] - (turn == output)) * per_announced
        reserved, toll = params.human_lane[into] & human, min(1.0, params.toll_of[into, human])
        observation[car, place] = exists
        observation[car, place + 1] = distance if exists else 1.0
        observation[car, place + 2] = distance if exists else 1.0
        observation[car, place + 3] = announced
        observation[car, place + 4] = reserved
        observation[car, place + 5] = toll
    if params.knows[human] != STATIC and not at_goal:
        lane.next_seeker[car] = lane.seeker[goal]
        lane.seeker[goal] = car + 1


# ------------------------------------------------------------------------------------------------- live times


@rule
def tell_times(lane: Lane, params: Record, goal: int, observation: Floats32) -> None:
    """Write the times of ways to a goal for all drivers on its list, and clear the list."""
    find_ways(lane, params, goal)
    car = lane.seeker[goal] - 1
    lane.seeker[goal] = 0
    while car >= 0:
        for turn in range(3):
            steps = lane.way[params.after[lane.street[car], turn]]  # FAR without a street
            observation[car, OF_TURN + EACH_TURN * turn + 2] = min(1.0, steps * params.per_step)
        car = lane.next_seeker[car] - 1


@rule
def find_ways(lane: Lane, params: Record, goal: int) -> None:
    """Compute the shortest time to a goal by each street, as streets are now (Bellman and Ford).

    Streets come in the order of their distance to the goal, so that few rounds suffice.
    """
    for street in range(params.ahead.shape[0]):
        lane.way[street] = lane.takes[street] if params.ahead[street] == goal else FAR
    lane.way[params.ahead.shape[0]] = FAR
    changed = True
    while changed:
        changed = False
        for k in range(params.order.shape[1]):
            street = params.order[goal, k]
            beyond = params.after[street]
            least = min(lane.way[beyond[0]], lane.way[beyond[1]], lane.way[beyond[2]]) + lane.takes[street]
            if least < lane.way[street]:
                lane.way[street] = least
                changed = True


# ------------------------------------------------------------------------------------------------------ record


@rule
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write the records of the cars on the road; cars that have arrived are absent."""
    for car in range(params.cars):
        human, fast, safety = lane.human[car], lane.fast[car], lane.safety[car]
        cells = params.far[lane.street[car], lane.goal[car]] * params.street_length - lane.at[car]
        facts.sensitive[car, 0] = human
        facts.group[car] = human
        facts.legitimate[car, 0] = fast
        facts.legitimate[car, 1] = safety
        if not lane.arrived[car]:
            facts.individual[car] = car
            facts.features[car, 0] = cells * params.per_cell
            facts.features[car, 1] = fast
            facts.features[car, 2] = safety


# ------------------------------------------------------------------------------------------------ the environment


class Traffic(Rules):
    """Cars drive through a city: some driven by people, some by machines with more information and faster reactions.

    **Description.** Crossroads in columns (A, B, ... from west to east) and rows (1, 2, ... from north to south) are
    joined by streets with two directions, each with lanes of cells. A cell holds one car. Cars follow Nagel and
    Schreckenberg's model: they accelerate, brake to the free cells ahead, dawdle at random, and move. They start
    anywhere and drive to the hospital, or each to its own goal. Whether a person or a machine drives should make no
    difference to the time of arrival. The car's speed and careful driving may make a difference.

    **Who decides and who is affected.** The cars decide and are affected. The harm is to arrive later, or not at all,
    because of who drives. The environment does not model safety: cars never collide.

    **Sensitive attribute and legitimate factors.** ``human_driven`` (1: by a person). ``fast``: up to 5 cells per step,
    else 2. ``safety``: keeps one more cell to the car ahead. In each episode exactly the given share of the cars has
    each attribute. All sets of this size are equally likely, so the three attributes are independent.

    **Effects of being human-driven**, each of which can be switched off:

    * (a) ``human_information="static"``: people see the distance by each turn. Machines see how long it takes now,
      and into which streets other machines have announced to turn. ``"times"`` gives people the live times, as a
      navigation service does. ``"all"`` also gives them the announcements, and announces their turns: then there is no
      difference. With the drivers of `fair_envs.envs.traffic.policies`, withholding only announcements (``"times"``)
      has no measurable effect.
    * (b) ``human_reaction=1``: people see the free cells ahead and the lights as they were this number of steps ago,
      and brake to those cells (never into another car). 0: without delay, as machines do.
    * (c) ``human_dawdling=0.3``: people's probability to drive one cell less; that of machines is ``dawdling=0.1``.

    **Action space.** ``Discrete(9)`` per car: ``3 * pedal + turn``, pedal 0 brake, 1 keep the speed, 2 accelerate by
    one cell per step; turn 0 left, 1 straight on, 2 right at the next crossroads. If there is no street to turn into,
    the car goes straight on, else right, else left.

    **Observation space.** ``Box`` of 26 numbers from 0 to 1 per car: on the road (1) or arrived (0, then all are 0);
    speed and free cells ahead, in ninths of one cell per step and of one cell; the remaining share of the street; green
    light; human-driven, fast, safety. Then for left, straight on and right:

    * whether there is such a street;
    * the steps to the goal by it if roads are free, and the steps as streets are now (for people without live times the
      former again), both as a share of more than any way without turning back can take;
    * the number of other cars that have announced to turn into it, as a share of all cars (a car announces nothing
      before its first choice in a street);
    * whether it has a lane for people and this car is human-driven;
    * its toll, at most 1.

    The current time of a street is the sum of three times: its cells at full speed, or at that of road works; the mean
    wait for the light at its end; one step per standing car and lane. "More than any way can take" is the time of the
    longest way plus one street, all with road works (if there are any), the longer wait, and full of standing cars.

    **Rewards.** ``arrival_reward`` (1) on arrival; minus ``time_cost`` (0.01) for each step on the road, minus
    ``distance_cost`` (0.001) for each cell, in the last street up to its line, minus ``toll`` (0) for entering a street
    that has one.

    **Interactions.** One individual per car, -1 once it has arrived. ``fair_action``: 1 moves, 0 stands, -1 arrived
    earlier. ``fair_outcome``: its reward. ``fair_features``: cells to the goal as a share of the longest way, without
    turning back, fast, safety.

    **Starting state.** Cars stand in different cells of first lanes, all cells equally likely. ``roadworks_share``
    (0.32) of the streets, in the default city 10 of 31, redrawn in each episode, allow one cell per step in both
    directions; machines have access to their locations. A share of cars or streets is rounded to the nearest number.

    **Order of a step.** All drivers see the same state.

    1. The speed changes by the pedal, to at most the car's and the street's; people brake to what they saw; all brake
       to the car ahead.
    2. Cars whose speed leads beyond the end of the street ask to cross, if the light is green. Around a crossroads,
       cars that turn left give way to all others. Otherwise cars from the right go first; if cars come from every side,
       the headings take turns. A car stops at the line if it would cross the way of a car that may already cross, or if
       the next street has no free cell. In the next street it takes the lane with the most room that no car has entered
       in this step; among equal lanes, a person takes the lane for people, other cars the first. There are no other
       changes of lanes.
    3. Each car drives one cell less with the probability of dawdling.
    4. All cars move. A car that crosses into its goal has arrived and leaves the road.

    **Gridlock** is possible: all drivers see the state at the start of the step, so full streets that form a circle
    never move again. In the default city with separate goals and one lane each way, with 300 cars that take the
    shortest time, 120 to 262 were still on the road after 1,500 steps in nine of ten episodes; with 100 cars, none.

    **Lights.** East and west are green in the first ``east_west_share`` of ``signal_period`` steps, north and south in
    the others. ``offset_east_west`` delays each column's lights by this number of steps relative to the column before;
    ``offset_north_south`` does the same by rows. ``crossroads="right_of_way"``: no lights. People who stand start when
    they have seen the green light, ``human_reaction`` steps late: if people drive, green must last longer than that.

    **Episode end.** A car's episode ends when it arrives. The whole episode ends when the last car arrives
    (termination), or after ``horizon`` steps (truncation).

    **Changes to the city**: lights; ``human_lanes``, streets whose last lane is only for people, who can also use the
    others (the street gets no wider); ``human_information``; ``human_share``; tolls, for all cars or only for machines.
    Streets are named by their ends, ``"B2-C2"``, by column, ``"C"``, by row, ``"2"``, or ``"all"``.

    **Arguments.** The fields of `TrafficParams`. A city has up to 26 columns and rows, since its tables have a row for
    each street and a column for each crossroads.

    **Differences from the paper.** The paper with this example (La Malfa and others) gives no rules; these are this
    package's.

    **References.** G. La Malfa, J. M. Zhang, M. Luck, E. Black, "Using Protected Attributes to Consider Fairness in
    Multi-Agent Systems", AEQUITAS 2024, arXiv 2410.12889 (the example and the notions). K. Nagel, M. Schreckenberg, "A
    cellular automaton model for freeway traffic", Journal de Physique I 2 (1992) (how cars drive).

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "traffic"
    drawn_by: ClassVar[str] = "fair_envs.envs.traffic.render:TrafficRenderer"
    action_names: ClassVar[Sequence[str]] = ACTION_NAMES
    policies: ClassVar[Mapping[str, str]] = {
        "random-turns": "fair_envs.envs.traffic.policies:RandomTurns",
        "shortest-path": "fair_envs.envs.traffic.policies:ShortestPath",
        "shortest-time": "fair_envs.envs.traffic.policies:ShortestTime",
    }
    Params: ClassVar[type] = TrafficParams
    multi_agent = True
    sensitive_field: ClassVar[str] = "human"
    leaving_field: ClassVar[str | None] = "arrived"
    sensitive_features: ClassVar[tuple[str, ...]] = ("human_driven",)
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    @property
    def city(self) -> City:
        """The map."""
        return City(self.params.columns, self.params.rows)

    def encoded(self, params: TrafficParams) -> NDArray[np.void]:
        """Return the parameters, as numbers, and the tables derived from them, as one record."""
        city = City(params.columns, params.rows)
        column, row = np.arange(city.crossroads) % city.columns, np.arange(city.crossroads) // city.columns
        late = params.offset_east_west * column + params.offset_north_south * row
        far, nowhere = city.far, 4 * city.crossroads  # index of turns without a street
        reserved = city.chosen(params.human_lanes, argument="human_lanes")
        tolled = city.chosen(params.toll_streets, argument="toll_streets")
        toll = params.toll * np.array([True, params.toll_for == "everybody"])
        own = {
            "crossroads_count": city.crossroads,
            "ahead": city.ahead.astype(np.int16),  # (4 * crossroads,)
            "after": np.where(city.after < 0, nowhere, city.after).astype(np.uint16),  # (nowhere, 3): by turn
            "taken_turn": city.taken_turn.astype(np.int8),  # (4 * crossroads, 3)
            "coming": city.coming.astype(np.int16),  # (crossroads, 4): by heading
            "street": np.array([city.both(street) for street in city.streets]),  # (streets, 2)
            "crossing": crossing(),  # (12,)
            "far": np.concatenate([far, far[:1]]).astype(np.int8),  # (nowhere + 1, crossroads), streets
            "order": by_distance(far).astype(np.uint16),  # (crossroads, directions of streets)
            "early": -late % params.signal_period,  # (crossroads,)
            "east_west_green": east_west_green(params),
            "human_lane": np.append(reserved, False).astype(np.int8),  # (nowhere + 1,)
            "toll_of": np.append(tolled, False)[:, np.newaxis] * toll,  # (nowhere + 1, 2): for machines, for people
            "hospital_at": -1 if params.destination == "own" else city.find(params.hospital, argument="hospital"),
            "humans": rounded_count(params.human_share, params.cars),
            "fasts": rounded_count(params.fast_share, params.cars),
            "safes": rounded_count(params.safety_share, params.cars),
            "diggings": rounded_count(params.roadworks_share, len(city.streets)),  # number of streets with road works
            "per_cell": 1 / (params.street_length * far.max()),
        }
        own |= drivers(params) | times(params, most_streets=int(far.max()))
        plain = encode(params)._asdict()
        return record_of({name: value for name, value in plain.items() if not isinstance(value, (str, tuple))} | own)

    def check(self, params: TrafficParams) -> None:
        """Raise ValueError if streets do not exist, other cars have no lane, or there is too little room."""
        city = City(params.columns, params.rows)
        if params.destination == "hospital":
            city.find(params.hospital, argument="hospital", hint=" (set hospital too if you change columns or rows)")
        for argument in ("human_lanes", "toll_streets"):
            city.chosen(getattr(params, argument), argument=argument)
        if params.human_lanes and params.lanes < 2:
            raise ValueError(f"lanes must be at least 2 with human_lanes, got {params.lanes}")
        check_green(params)
        room = 2 * len(city.streets) * params.street_length
        if params.cars > room:
            raise ValueError(f"cars must be at most {room}, the cells of the first lanes, got {params.cars}")

    def lane(self, params: TrafficParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        cars, crossroads = params.cars, params.columns * params.rows
        streets = 4 * crossroads
        return [
            ("human", np.int8, cars),
            ("fast", np.int8, cars),
            ("safety", np.int8, cars),
            ("arrived", np.int8, cars),
            ("driving", np.int32),  # cars on the road
            ("goal", np.int16, cars),  # a crossroads
            ("street", np.int16, cars),  # see `City`
            ("side", np.int8, cars),  # lane of the street
            ("at", np.int8, cars),  # cell, from the start of the street
            ("speed", np.int8, cars),  # cells in the last step
            ("turn", np.int8, cars),  # next turn; -1: not chosen yet
            ("steps", np.int32, cars),  # on the road
            ("dug", np.int8, streets),  # 1: road works
            ("taken", np.int16, (streets, params.lanes, params.street_length)),  # 0: free; car + 1
            ("lights", np.int8, (MOMENTS, crossroads)),  # by time: 1 east and west are green, 2 north and south, 3 all
            ("seen", np.int8, (MOMENTS, cars)),  # by time: free cells ahead that the driver sees
            ("gap", np.int8, cars),  # free cells to the car ahead; more than are left in the street: none in sight
            # Of one step
            ("wish", np.int8, cars),  # cells to drive
            ("next", np.int16, cars),  # street to enter; -1: none; the current one: the car leaves the road
            ("next_side", np.int8, cars),
            ("asking", np.int32),  # number of cars that want to cross
            ("asker", np.int16, cars),  # these cars
            ("waiting", np.int16, (streets, params.lanes)),  # car + 1 that wants to cross
            ("claimed", np.int32, (streets, params.lanes)),  # time + 1 at which a car was let in
            # Of one observation
            ("announced", np.int16, streets + 1),  # cars that have announced to turn into it
            ("takes", np.float64, streets),  # steps it takes now
            ("way", np.float64, streets + 1),  # steps to a goal by it, as streets are now
            ("seeker", np.int16, crossroads),  # car + 1 that receives the ways to this goal; 0: none
            ("next_seeker", np.int16, cars),  # car + 1
        ]

    def fair_spec(self, params: TrafficParams) -> FairSpec:
        """Return who is affected: the cars."""
        drivers = ("AI-driven", "human-driven")
        return FairSpec(
            individuals=params.cars,
            actions=2,  # stands, moves
            features=("distance", "fast", "safety"),
            sensitive={"human_driven": drivers},
            legitimate={"fast": ("slow", "fast"), "safety": ("ordinary", "safe")},
            groups=drivers,
            same_individuals=True,
        )

    def agents(self, params: TrafficParams) -> int:
        """Return the number of cars."""
        return params.cars

    def observation_space(self, params: TrafficParams) -> gym.spaces.Box:
        """Return the bounds of one driver's observation."""
        return gym.spaces.Box(0.0, 1.0, (len(self.observed_features(params)),), np.float32)

    def observed_features(self, params: TrafficParams) -> tuple[str, ...]:
        """Return the names of all entries."""
        return SEEN + tuple(f"{name}_{turn}" for turn in TURNS for name in SEEN_OF_TURN)

    def action_space(self, params: TrafficParams) -> gym.spaces.Discrete:
        """Return brake, keep and accelerate, each with left, straight and right."""
        return gym.spaces.Discrete(9)

    def action_masks(self, records: NDArray[np.void]) -> NDArray[np.int8]:
        """Return which turns exist at the next crossroads; the others mean the same as one of these."""
        masks = super().action_masks(records)
        exists = self.code["taken_turn"][0] == np.arange(3)  # (streets, 3)
        driving = records["arrived"] == 0
        masks[driving] = np.tile(exists[records["street"][driving]], 3)
        return masks


def rounded_count(share: float, count: int) -> int:
    """Return how many of `count` items have an attribute: the number nearest to the share."""
    return int(share * count + 0.5)


def east_west_green(params: TrafficParams) -> int:
    """Return the number of steps of a period in which east and west are green; each axis has at least one."""
    return int(min(max(round(params.east_west_share * params.signal_period), 1), params.signal_period - 1))


def check_green(params: TrafficParams) -> None:
    """Raise ValueError if a light is green too briefly for people: if they saw a red light, they would never start."""
    green = east_west_green(params)
    least = min(green, params.signal_period - green)
    people = rounded_count(params.human_share, params.cars) > 0
    if params.crossroads == "signals" and people and least <= params.human_reaction:
        raise ValueError(
            f"signal_period must give each axis more than human_reaction ({params.human_reaction}) steps of green "
            f"where people drive, got {least} of {params.signal_period}"
        )


def drivers(params: TrafficParams) -> dict[str, Any]:
    """Return tables of the differences between cars, by driver, 0: a machine, or by whether the car is fast."""
    speeds = np.array([params.slow_speed, params.fast_speed])
    knows = np.array([ALL, encode(params).human_information])
    return {
        "speeds": np.stack([speeds, np.minimum(speeds, params.roadworks_speed)], axis=1),  # (2, 2): free, road works
        "knows": knows,
        "per_announced": (knows == ALL) / params.cars,
        "reaction": np.array([0, params.human_reaction]),
        "dawdles": np.array([params.dawdling, params.human_dawdling]),  # probabilities
    }


def by_distance(far: Ints) -> Ints:
    """Return the streets in the order of the distance by them to each goal; see `City.far`."""
    streets = int((far[:, 0] > 0).sum())
    order = np.where(far > 0, far, far.max() + 1).argsort(axis=0, kind="stable")
    return np.asarray(order[:streets].T)


def times(params: TrafficParams, *, most_streets: int) -> dict[str, Any]:
    """Return how long streets take, and the tables with which compiled rules search the quickest ways.

    Args:
        params: The parameters.
        most_streets: Number of streets of the longest way.
    """
    lights, speeds = mean_wait(params), (params.fast_speed, min(params.roadworks_speed, params.fast_speed))
    takes = params.street_length / np.array(speeds)[:, None] + lights
    works = rounded_count(params.roadworks_share, len(City(params.columns, params.rows).streets)) > 0
    queue = HEADWAY * min(params.street_length, params.cars / params.lanes)  # there is no room for a longer one
    per_step = 1 / ((takes[: 1 + works].max() + queue) * (most_streets + 1))  # no way can take that long
    return {
        "takes": takes,  # (2, 2): steps of a free street and of one with road works, by axis
        "queue_takes": HEADWAY / params.lanes,  # steps for each car in the queue
        "per_step": per_step,
        "per_street": takes[0].mean() * per_step,
    }


def mean_wait(params: TrafficParams) -> Floats:
    """Return the mean number of steps to wait for a green light from a random step, east or west, or not."""
    if params.crossroads != "signals":
        return np.zeros(2)
    green = east_west_green(params)
    red = np.array([params.signal_period - green, green])
    return np.asarray(red * (red + 1) / (2 * params.signal_period))  # red, red - 1, ..., 1 steps
