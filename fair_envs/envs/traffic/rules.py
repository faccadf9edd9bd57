"""The rules of FairTraffic, in the order in which they are played.

Streets have lanes too. Here `lane` is always the core's record of an episode; a lane of a street is a *side*.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Facts, Floats, Floats32, Ints, Lane, Record
from fair_envs.chance import integer, share, uniform, words
from fair_envs.compilation import record_of
from fair_envs.core import Rules, rule
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
from fair_envs.interactions import FairSpec
from fair_envs.parameters import encode

# Sites of chance
WHO, FAST, SAFE, ROADWORKS, PLACE, GOAL, DAWDLE = range(7)

BRAKE, KEEP, ACCELERATE = range(3)  # an action is 3 * pedal + turn
ACTION_NAMES = tuple(f"{pedal}, {turn}" for pedal in ("brake", "keep", "accelerate") for turn in TURNS)
UNSAID = -1  # the turn of who has not chosen yet in this street
ATTEMPTS = 100  # to find a free cell to begin in; then the next free one
HEADWAY = 1.0  # steps after which the next car of a queue starts
MOMENTS = MOST_REACTION + 1  # that are remembered, the present one included
FAR = 1e9  # steps to where no way was found yet
SEEN = ("on_the_road", "speed", "street_left", "free_ahead", "green", "human_driven", "fast", "safety")
SEEN_OF_TURN = ("exists", "distance", "time", "announced", "human_lane", "toll")
OF_TURN, EACH_TURN = len(SEEN), len(SEEN_OF_TURN)


# --------------------------------------------------------------------------------------------------- the start


@rule
def start(lane: Lane, params: Record) -> None:
    """Say who drives what, where roads are dug up, and put the cars on the roads, standing."""
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
def assign(lane: Lane, params: Record, attribute: int, carriers: int) -> None:
    """Give an attribute to exactly so many cars, each set of them being as likely."""
    left = carriers
    for car in range(params.cars):
        carries = uniform(lane.key, 0, attribute, car) * (params.cars - car) < left
        left -= carries
        if attribute == WHO:
            lane.human[car] = carries
        elif attribute == FAST:
            lane.fast[car] = carries
        else:
            lane.safety[car] = carries


@rule
def dig(lane: Lane, params: Record) -> None:
    """Choose the streets with road works, each set of as many being as likely."""
    left, streets = params.diggings, params.street.shape[0]
    for k in range(streets):
        if uniform(lane.key, 0, ROADWORKS, k) * (streets - k) < left:
            left -= 1
            lane.dug[params.street[k, 0]] = 1
            lane.dug[params.street[k, 1]] = 1


@rule
def place(lane: Lane, params: Record, car: int) -> None:
    """Put a car into a free cell of a street's first lane."""
    cells = 2 * params.street.shape[0] * params.street_length
    for attempt in range(ATTEMPTS):
        cell = integer(lane.key, attempt, PLACE, car, cells)
        if put(lane, params, car, cell):
            return
    while not put(lane, params, car, cell):
        cell = (cell + 1) % cells


@rule
def put(lane: Lane, params: Record, car: int, cell: int) -> bool:
    """Put a car into a cell, counted over all streets, and return whether it was free."""
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
    """Let all see, choose and move at once; it terminates when all have arrived."""
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
    """Turn a car's action into the cells it wants to drive and the turn it wants to take, and brake to what it sees."""
    lane.turn[car] = params.taken_turn[lane.street[car], action % 3]
    speed = lane.speed[car] + action // 3 - KEEP
    speed = max(0, min(speed, limit(lane, params, car, lane.street[car])))
    speed = min(speed, lane.seen[moment(lane, params, car) % MOMENTS, car])  # machines brake to all that below too
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
    """Return how fast a car may go in a street."""
    return params.speeds[lane.fast[car], lane.dug[street]]


@rule
def moment(lane: Lane, params: Record, car: int) -> int:
    """Return the time as of which a driver sees the road: people as long ago as their reaction takes."""
    return max(0, lane.time - params.reaction[lane.human[car]])


@rule
def green(lane: Lane, params: Record, street: int, time: int) -> bool:
    """Return whether the lights at the end of a street let its cars cross, now or some steps ago."""
    return (lane.lights[time % MOMENTS, params.ahead[street]] >> (street % 2)) & 1 == 1


# ------------------------------------------------------------------------------------------------- crossroads


@rule
def serve(lane: Lane, params: Record, asker: int) -> None:
    """Let those cross who wait around a crossroads, unless that was done.

    Who turns left gives way to all; of the others, and of these, each gives way to who comes from the right. Where
    somebody waits on every side, each heading is the first in turn.
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
    """Return the heading of who has nobody on the right; who comes from there has the heading before, clockwise."""
    headings = 0  # with which somebody comes who waits, as bits
    for heading in range(4):
        headings |= anybody(lane, params, params.coming[end, heading]) << heading
    for heading in range(4):
        if (headings >> heading) & 1 and not (headings >> (heading + 3) % 4) & 1:
            return heading
    return lane.time % 4


@rule
def anybody(lane: Lane, params: Record, street: int) -> int:
    """Return 1 if somebody waits at the end of a street, else 0, which is right too where there is none."""
    if street >= 0:
        for side in range(params.lanes):
            if lane.waiting[street, side]:
                return 1
    return 0


@rule
def cross(lane: Lane, params: Record, car: int, granted: int) -> int:
    """Let a car cross if nobody who was let is in its way, and there is room; return its movement as a bit, or 0."""
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
    """Return the lane of a street with the most room for a car, and how many cells of it: 0 if it cannot go in.

    Of equal ones, the lane for human drivers is theirs; else the first.
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
    """Return how many cells a car may drive into a lane; who drives safely keeps one free before another car."""
    for cell in range(min(wanted + lane.safety[car], params.street_length)):
        if lane.taken[into, side, cell]:
            return cell - (lane.safety[car] and cell > 0)
    return min(wanted, params.street_length)


@rule
def dawdle(lane: Lane, params: Record) -> None:
    """Let each car drive a cell less by chance."""
    for first in range(0, params.cars, 4):
        drawn = words(lane.key, lane.time, DAWDLE, first)
        for car in range(first, min(first + 4, params.cars)):
            dawdles = share(drawn[car - first]) < params.dawdles[lane.human[car]]
            lane.wish[car] -= dawdles & (lane.wish[car] > 0)


@rule
def go(lane: Lane, params: Record, car: int) -> float:
    """Move a car and return what it earns."""
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


# ---------------------------------------------------------------------------------------- what is seen and told


@rule
def take_in(lane: Lane, params: Record, time: int) -> None:
    """Note what is to be seen at a time, for people see it later: lights and free cells."""
    for end in range(params.crossroads_count):
        lane.lights[time % MOMENTS, end] = lights(params, end, time)
    for car in range(params.cars):
        if not lane.arrived[car]:
            look(lane, params, car, time)


@rule
def lights(params: Record, end: int, time: int) -> int:
    """Return who may cross: 1 east and west, 2 north and south, 3 all."""
    if params.crossroads != SIGNALS:
        return 3
    now = (time + params.early[end]) % params.signal_period
    return 1 if now < params.east_west_green else 2


@rule
def look(lane: Lane, params: Record, car: int, time: int) -> None:
    """Count the free cells to the car ahead, and keep how many the driver sees: up to that car or a red light."""
    street, side, at = lane.street[car], lane.side[car], lane.at[car]
    left = params.street_length - 1 - at
    gap = 0
    while gap < min(left, MOST_SPEED + 1) and not lane.taken[street, side, at + gap + 1]:
        gap += 1
    if gap == min(left, MOST_SPEED + 1):
        gap = max(params.street_length, MOST_SPEED)  # nobody is in sight
    lane.gap[car] = gap
    stop = left if gap > left and not green(lane, params, street, time) else gap
    lane.seen[time % MOMENTS, car] = min(stop, MOST_SPEED)


@rule
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write what each driver sees; who has arrived sees nothing."""
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
    """Work out from where cars are how long each street takes now, and how many have announced to turn into it."""
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
    """Return whether a car has told others where it will turn at the end of its street, if it goes on there."""
    knows_all = params.knows[lane.human[car]] == ALL
    return knows_all & (lane.turn[car] != UNSAID) & (not last(lane, params, car))


@rule
def write_own(lane: Lane, params: Record, car: int, observation: Floats32) -> None:
    """Write what a driver sees of its car, the road ahead and the lights."""
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
    """Write what a driver knows of each turn; who is told live times is put on the list for them.

    What is written might, for all that the compiler knows, be what is read: so all is read first. A turn without a
    street has a place in all tables, for a jump that the processor cannot foresee costs more than what it saves.
    """
    street, goal, human = lane.street[car], lane.goal[car], lane.human[car]
    nowhere, at_goal = params.ahead.shape[0], last(lane, params, car)
    said = lane.turn[car] if announces(lane, params, car) else UNSAID
    per_street, per_announced = params.per_street * (1 - at_goal), params.per_announced[human]
    for turn in range(3):
        place, into = OF_TURN + EACH_TURN * turn, params.after[street, turn]
        exists, distance = into != nowhere, params.far[into, goal] * per_street
        announced = (lane.announced[into] - (turn == said)) * per_announced
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
    """Write the times of ways to a goal for all who want to know, and strike them off."""
    find_ways(lane, params, goal)
    car = lane.seeker[goal] - 1
    lane.seeker[goal] = 0
    while car >= 0:
        for turn in range(3):
            steps = lane.way[params.after[lane.street[car], turn]]  # where there is no street, FAR
            observation[car, OF_TURN + EACH_TURN * turn + 2] = min(1.0, steps * params.per_step)
        car = lane.next_seeker[car] - 1


@rule
def find_ways(lane: Lane, params: Record, goal: int) -> None:
    """Work out how long it takes to a goal at least by turning into each street, as streets are now (Bellman and Ford).

    The streets come in the order of how far it is by them, so that few rounds are enough.
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


# ------------------------------------------------------------------------------------------------------- facts


@rule
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write who is on the road; nobody is there any more who has arrived."""
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
    """Cars on their way through a city, some driven by people, some by machines that know more and answer sooner.

    **Description.** Crossroads in columns (A, B, ... from west to east) and rows (1, 2, ... from north to south) are
    joined by streets of two directions, each with lanes of cells. A cell holds one car. Cars drive as Nagel and
    Schreckenberg's do: they accelerate, brake to the free cells ahead, dawdle by chance, move. They begin anywhere and
    want to reach the hospital, or a place of their own. Whether a person or a machine drives should make no difference
    to when somebody gets there; how fast the car is, and how carefully it is driven, may.

    **Who decides and who is affected.** The cars, both. The harm is to arrive later, or not at all, because of who
    drives. Nothing is said about safety: nobody ever collides.

    **Sensitive attribute and legitimate factors.** ``human_driven`` (1: by a person). ``fast``: goes up to 5 cells a
    step, else 2. ``safety``: keeps one cell more to the car ahead. In each episode exactly the given share of the cars
    has each, and each set of as many cars is as likely, so that the three are independent.

    **What being human-driven does**, each of which can be switched off:

    * (a) ``human_information="static"``: people see how far it is by each turn; machines see how long it takes now,
      and into which streets other machines have announced to turn. ``"times"`` tells people the former, as a navigation
      service does, ``"all"`` the latter too, and announces their turns: then there is no difference. With the drivers
      of `fair_envs.envs.traffic.policies`, to withhold announcements alone (``"times"``) makes none to be measured.
    * (b) ``human_reaction=1``: people see the free cells ahead and the lights as they were so many steps ago, and brake
      to those cells (never into another car). 0: at once, as machines do.
    * (c) ``human_dawdling=0.3``: their chance to drive a cell less, that of machines being ``dawdling=0.1``.

    **Action space.** ``Discrete(9)`` a car: ``3 * pedal + turn``, pedal 0 brake, 1 keep the speed, 2 accelerate by one
    cell a step; turn 0 left, 1 straight on, 2 right at the next crossroads. Where there is no street to turn into, the
    car goes straight on, else right, else left.

    **Observation space.** ``Box`` of 26 numbers from 0 to 1 a car: on the road (1) or arrived (0, then all are 0);
    speed and free cells ahead in ninths of a cell a step and of a cell; share of the street that is left; green light;
    human-driven, fast, safety; and for left, straight on and right: whether there is such a street, the steps to the
    goal by it if roads are free, the steps as streets are now (for people the former, unless they are told), both as
    a share of more than any way can take, along which nobody turns back; how many others, as a share of all cars, have
    announced to turn into it (nobody has before its first choice in a street); whether it has a lane for people and
    this is one; its toll, at most 1. How long a street takes now: its cells at full speed, or at that of road works,
    the mean wait for the light at its end, and a step for each standing car and lane. More than any way can take: the
    longest way and a street more, all with road works (if there are any), the longer wait, and full of standing cars.

    **Rewards.** ``arrival_reward`` (1) on arrival; minus ``time_cost`` (0.01) for each step on the road, minus
    ``distance_cost`` (0.001) for each cell, of the last street up to its line, minus ``toll`` (0) for entering a street
    that has one.

    **Interactions.** One individual a car, -1 once it has arrived. ``fair_action``: 1 moves, 0 stands, -1 has arrived
    before. ``fair_outcome``: its reward. ``fair_features``: cells to the goal as a share of the longest way, without
    turning back, fast, safety.

    **Starting state.** Cars stand in different cells of first lanes, each cell as likely. ``roadworks_share``
    (0.32) of the streets, in the default city 10 of 31, others in each episode, allow one cell a step in both
    directions; machines know where they are. A share of cars or streets is the nearest number of them.

    **Order of a step.** All see the same state. (1) The speed changes by the pedal, to at most the car's and the
    street's; people brake to what they saw; all brake to the car ahead. (2) Whose speed leads beyond the end of the
    street asks to cross, if the light is green. Around a crossroads, who turns left gives way to everybody; else who
    comes from the right goes first, and where somebody comes from everywhere, each heading in turn. Who would cross
    the way of somebody who was let, or finds no free cell in the street beyond, stops at the line. In the street beyond
    a car takes the lane with the most room that nobody entered in this step; of equal ones a person takes that for
    people, else the first. There are no other changes of lanes. (3) Each car drives a cell less by chance. (4) All
    move. Who crosses into its goal has arrived and leaves the road.

    **Gridlock** is possible: as all see the state at the start of the step, full streets that lead into each other in a
    circle never move again. In the default city with goals of their own and one lane each way, of 300 cars that take
    the shortest time 120 to 262 were still on the road after 1,500 steps in nine of ten episodes, of 100 cars none.

    **Lights.** East and west are green in the first ``east_west_share`` of ``signal_period`` steps, north and south in
    the others. ``offset_east_west`` makes each column's lights so many steps later than those of the column before, and
    so does ``offset_north_south`` by rows. ``crossroads="right_of_way"``: no lights. People who stand start when they
    have seen the green light, ``human_reaction`` steps late: where they drive, it has to last longer than that.

    **Episode end.** Of a car, when it arrives; of all, when the last one does (termination), or after ``horizon`` steps
    (truncation).

    **What can be changed about the city**: lights; ``human_lanes``, streets whose last lane is for people alone, who
    may use the others too (the street gets no wider); ``human_information``; ``human_share``; tolls, for everybody or
    for machines alone. Streets are told by their ends, ``"B2-C2"``, by column, ``"C"``, by row, ``"2"``, or ``"all"``.

    **Arguments.** The fields of `TrafficParams`. A city has up to 26 columns and rows, for its tables have a row for
    each street and a column for each crossroads.

    **Differences from the paper.** The paper that names this example (La Malfa and others) gives no rules; these are
    this package's.

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
        """Return the parameters as numbers, and what follows from them, as one record."""
        city = City(params.columns, params.rows)
        column, row = np.arange(city.crossroads) % city.columns, np.arange(city.crossroads) // city.columns
        late = params.offset_east_west * column + params.offset_north_south * row
        far, nowhere = city.far, 4 * city.crossroads  # where a turn leads that there is not
        reserved = city.chosen(params.human_lanes, argument="human_lanes")
        tolled = city.chosen(params.toll_streets, argument="toll_streets")
        toll = params.toll * np.array([True, params.toll_for == "everybody"])
        own = {
            "crossroads_count": city.crossroads,
            "ahead": city.ahead.astype(np.int16),  # (4 * crossroads,)
            "after": np.where(city.after < 0, nowhere, city.after).astype(np.uint16),  # (nowhere, 3): by a turn
            "taken_turn": city.taken_turn.astype(np.int8),  # (4 * crossroads, 3)
            "coming": city.coming.astype(np.int16),  # (crossroads, 4): with a heading
            "street": np.array([city.both(street) for street in city.streets]),  # (streets, 2)
            "crossing": crossing(),  # (12,)
            "far": np.concatenate([far, far[:1]]).astype(np.int8),  # (nowhere + 1, crossroads), streets
            "order": by_distance(far).astype(np.uint16),  # (crossroads, directions of streets)
            "early": -late % params.signal_period,  # (crossroads,)
            "east_west_green": east_west_green(params),
            "human_lane": np.append(reserved, False).astype(np.int8),  # (nowhere + 1,)
            "toll_of": np.append(tolled, False)[:, np.newaxis] * toll,  # (nowhere + 1, 2): of machines, of people
            "hospital_at": -1 if params.destination == "own" else city.find(params.hospital, argument="hospital"),
            "humans": carriers(params.human_share, params.cars),
            "fasts": carriers(params.fast_share, params.cars),
            "safes": carriers(params.safety_share, params.cars),
            "diggings": carriers(params.roadworks_share, len(city.streets)),  # streets with road works
            "per_cell": 1 / (params.street_length * far.max()),
        }
        own |= drivers(params) | times(params, most_streets=int(far.max()))
        plain = encode(params)._asdict()
        return record_of({name: value for name, value in plain.items() if not isinstance(value, (str, tuple))} | own)

    def check(self, params: TrafficParams) -> None:
        """Raise ValueError for streets that do not exist, lanes that nobody else could use, or too little room."""
        city = City(params.columns, params.rows)
        if params.destination == "hospital":
            city.find(params.hospital, argument="hospital", hint=" (set hospital too where columns or rows change)")
        for argument in ("human_lanes", "toll_streets"):
            city.chosen(getattr(params, argument), argument=argument)
        if params.human_lanes and params.lanes < 2:
            raise ValueError(f"lanes must be at least 2 where human drivers have one of their own, got {params.lanes}")
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
            ("side", np.int8, cars),  # which lane of the street
            ("at", np.int8, cars),  # cell, from where the street begins
            ("speed", np.int8, cars),  # cells in the last step
            ("turn", np.int8, cars),  # that is taken next; -1: not said yet
            ("steps", np.int32, cars),  # on the road
            ("dug", np.int8, streets),  # 1: road works
            ("taken", np.int16, (streets, params.lanes, params.street_length)),  # 0: free; car + 1
            ("lights", np.int8, (MOMENTS, crossroads)),  # by time: 1 east and west are green, 2 north and south, 3 all
            ("seen", np.int8, (MOMENTS, cars)),  # by time: free cells ahead that the driver sees
            ("gap", np.int8, cars),  # free cells to the car ahead; more than are left: none in sight
            # Of one step
            ("wish", np.int8, cars),  # cells to drive
            ("next", np.int16, cars),  # street to enter; -1: none; the present one: the car leaves the road
            ("next_side", np.int8, cars),
            ("asking", np.int32),  # how many cars want to cross
            ("asker", np.int16, cars),  # which
            ("waiting", np.int16, (streets, params.lanes)),  # car + 1 that wants to cross
            ("claimed", np.int32, (streets, params.lanes)),  # time + 1 of when a car was let in
            # Of one observation
            ("announced", np.int16, streets + 1),  # cars that have told others that they will turn into it
            ("takes", np.float64, streets),  # steps, as it is now
            ("way", np.float64, streets + 1),  # steps to a goal by turning into it, as streets are now
            ("seeker", np.int16, crossroads),  # car + 1 that wants to know the ways to this goal; 0: nobody
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
        """Return how many cars there are."""
        return params.cars

    def observation_space(self, params: TrafficParams) -> gym.spaces.Box:
        """Return the bounds of what one driver sees."""
        return gym.spaces.Box(0.0, 1.0, (len(self.observed_features(params)),), np.float32)

    def observed_features(self, params: TrafficParams) -> tuple[str, ...]:
        """Return the names of all entries."""
        return SEEN + tuple(f"{name}_{turn}" for turn in TURNS for name in SEEN_OF_TURN)

    def action_space(self, params: TrafficParams) -> gym.spaces.Discrete:
        """Return brake, keep and accelerate, each with left, straight and right."""
        return gym.spaces.Discrete(9)


def carriers(share: float, count: int) -> int:
    """Return how many of so many carry an attribute: the nearest number to the share of them."""
    return int(share * count + 0.5)


def east_west_green(params: TrafficParams) -> int:
    """Return in how many steps of a period east and west have the green light; each axis has it in one at least."""
    return int(min(max(round(params.east_west_share * params.signal_period), 1), params.signal_period - 1))


def check_green(params: TrafficParams) -> None:
    """Raise ValueError if a light is green too briefly for people: who saw the red one would never start."""
    green = east_west_green(params)
    least = min(green, params.signal_period - green)
    people = carriers(params.human_share, params.cars) > 0
    if params.crossroads == "signals" and people and least <= params.human_reaction:
        raise ValueError(
            f"signal_period must give each axis more than human_reaction ({params.human_reaction}) steps of green "
            f"where people drive, got {least} of {params.signal_period}"
        )


def drivers(params: TrafficParams) -> dict[str, Any]:
    """Return what differs between cars as tables, by who drives, 0: a machine, or by whether the car is fast."""
    speeds = np.array([params.slow_speed, params.fast_speed])
    knows = np.array([ALL, encode(params).human_information])
    return {
        "speeds": np.stack([speeds, np.minimum(speeds, params.roadworks_speed)], axis=1),  # (2, 2): free, road works
        "knows": knows,
        "per_announced": (knows == ALL) / params.cars,
        "reaction": np.array([0, params.human_reaction]),
        "dawdles": np.array([params.dawdling, params.human_dawdling]),  # the chance
    }


def by_distance(far: Ints) -> Ints:
    """Return the streets in the order of how far it is by them to each goal; see `City.far`."""
    streets = int((far[:, 0] > 0).sum())
    order = np.where(far > 0, far, far.max() + 1).argsort(axis=0, kind="stable")
    return np.asarray(order[:streets].T)


def times(params: TrafficParams, *, most_streets: int) -> dict[str, Any]:
    """Return how long streets take, and what compiled rules need to search the quickest ways.

    Args:
        params: The parameters.
        most_streets: Of the longest way.
    """
    lights, speeds = mean_wait(params), (params.fast_speed, min(params.roadworks_speed, params.fast_speed))
    takes = params.street_length / np.array(speeds)[:, None] + lights
    works = carriers(params.roadworks_share, len(City(params.columns, params.rows).streets)) > 0
    queue = HEADWAY * min(params.street_length, params.cars / params.lanes)  # nowhere is room for a longer one
    per_step = 1 / ((takes[: 1 + works].max() + queue) * (most_streets + 1))  # no way can take as long as that
    return {
        "takes": takes,  # (2, 2): steps of a free street and of one with road works, by axis
        "queue_takes": HEADWAY / params.lanes,  # steps for each car of it
        "per_step": per_step,
        "per_street": takes[0].mean() * per_step,
    }


def mean_wait(params: TrafficParams) -> Floats:
    """Return how many steps who comes at any step waits for a green light on average: heading east or west, or not."""
    if params.crossroads != "signals":
        return np.zeros(2)
    green = east_west_green(params)
    red = np.array([params.signal_period - green, green])
    return np.asarray(red * (red + 1) / (2 * params.signal_period))  # red, red - 1, ..., 1 steps
