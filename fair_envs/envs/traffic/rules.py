"""The rules of FairTraffic, in the order in which they are played.

Streets have lanes too. Here `lane` is always the core's record of an episode; a lane of a street is a *side*.
"""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.chance import integer, share, uniform, words
from fair_envs.compilation import record_of
from fair_envs.core import Rules, rule
from fair_envs.envs.traffic.city import LEFT, RIGHT, STRAIGHT, City, crossing
from fair_envs.envs.traffic.params import (
    AI_DRIVEN,
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
UNSAID = -1  # the turn of who has not chosen yet in this street
ATTEMPTS = 100  # to find a free cell to begin in; then the next free one
HEADWAY = 1.0  # steps after which the next car of a queue starts
MOMENTS = MOST_REACTION + 1  # that are remembered, the present one included
FAR = 1e9  # steps to a place that no way leads to
SEEN = ("on_the_road", "speed", "street_left", "free_ahead", "green", "human_driven", "fast", "safety")
SEEN_OF_TURN = ("exists", "distance", "time", "announced", "human_lane", "toll")
OF_TURN, EACH_TURN = len(SEEN), len(SEEN_OF_TURN)


# --------------------------------------------------------------------------------------------------- the start


@rule
def start(lane, params):
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
def assign(lane, params, attribute, carriers):
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
def dig(lane, params):
    """Choose the streets with road works, each set of as many being as likely."""
    left, streets = params.roadworks, params.street.shape[0]
    for k in range(streets):
        if uniform(lane.key, 0, ROADWORKS, k) * (streets - k) < left:
            left -= 1
            lane.dug[params.street[k, 0]] = 1
            lane.dug[params.street[k, 1]] = 1


@rule
def place(lane, params, car):
    """Put a car into a free cell of a street's first lane."""
    cells = 2 * params.street.shape[0] * params.street_length
    for attempt in range(ATTEMPTS):
        cell = integer(lane.key, attempt, PLACE, car, cells)
        if put(lane, params, car, cell):
            return
    while not put(lane, params, car, cell):
        cell = (cell + 1) % cells


@rule
def put(lane, params, car, cell):
    """Put a car into a cell, counted over all streets, and return whether it was free."""
    way, at = cell // params.street_length, cell % params.street_length
    street = params.street[way // 2, way % 2]
    if lane.taken[street, 0, at]:
        return False
    lane.taken[street, 0, at] = car + 1
    lane.street[car], lane.at[car] = street, at
    return True


@rule
def elsewhere(lane, params, car):
    """Return a crossroads that is not at the end of the car's street."""
    goal = integer(lane.key, 0, GOAL, car, params.crossroads_count - 1)
    return goal + (goal >= params.ahead[lane.street[car]])


# ------------------------------------------------------------------------------------------------------ a step


@rule
def step(lane, action, params, reward, facts):
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
def decide(lane, params, car, action):
    """Turn a car's action into the cells it wants to drive and the turn it wants to take, and brake to what it sees."""
    lane.turn[car] = passable(params, lane.street[car], action % 3)
    speed = lane.speed[car] + action // 3 - KEEP
    speed = max(0, min(speed, limit(lane, params, car, lane.street[car])))
    if lane.human[car]:
        speed = min(speed, seen(lane, params, car))
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
def passable(params, street, turn):
    """Return the turn if there is a street to turn into, else the first there is: straight on, right, left."""
    if leads(params, street, turn):
        return turn
    for other in (STRAIGHT, RIGHT, LEFT):
        if leads(params, street, other):
            return other
    return turn


@rule
def leads(params, street, turn):
    """Return whether there is a street to turn into."""
    return params.ahead[after(params, street, turn)] >= 0


@rule
def after(params, street, turn):
    """Return the street that a turn at the end of a street leads into."""
    return 4 * params.ahead[street] + (street + turn + 3) % 4


@rule
def limit(lane, params, car, street):
    """Return how fast a car may go in a street."""
    speed = params.fast_speed if lane.fast[car] else params.slow_speed
    return min(speed, params.roadworks_speed) if lane.dug[street] else speed


@rule
def seen(lane, params, car):
    """Return how many cells a human driver saw free ahead as long ago as its reaction takes."""
    return lane.seen[max(0, lane.time - params.human_reaction) % MOMENTS, car]


@rule
def green(lane, params, street, time):
    """Return whether the lights at the end of a street let its cars cross, now or some steps ago."""
    return (lane.lights[time % MOMENTS, params.ahead[street]] >> (street % 2)) & 1 == 1


# ------------------------------------------------------------------------------------------------- crossroads


@rule
def serve(lane, params, asker):
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
            street = coming(params, end, heading)
            if street < 0:
                continue
            for side in range(params.lanes):
                car = lane.waiting[street, side] - 1
                if car >= 0 and (lane.turn[car] == LEFT) == (turning == 1):
                    granted |= cross(lane, params, car, granted)
                    lane.waiting[street, side] = 0


@rule
def coming(params, end, heading):
    """Return the street that comes to a crossroads with a heading, -1 if there is none."""
    back = params.ahead[4 * end + (heading + 2) % 4]
    return 4 * back + heading if back >= 0 else -1


@rule
def anybody(lane, params, end, heading):
    """Return whether somebody waits who comes with that heading."""
    street = coming(params, end, heading)
    if street >= 0:
        for side in range(params.lanes):
            if lane.waiting[street, side]:
                return True
    return False


@rule
def first_heading(lane, params, end):
    """Return the heading of who has nobody on the right; who comes from there has the heading before, clockwise."""
    for heading in range(4):
        if anybody(lane, params, end, heading) and not anybody(lane, params, end, (heading + 3) % 4):
            return heading
    return lane.time % 4


@rule
def cross(lane, params, car, granted):
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
    into = after(params, street, turn)
    side, room = best_side(lane, params, car, into, min(lane.wish[car] - left, limit(lane, params, car, into)))
    if room == 0:
        lane.wish[car] = left
        return 0
    lane.wish[car] = left + room
    lane.next[car], lane.next_side[car] = into, side
    lane.claimed[into, side] = lane.time + 1
    return 1 << movement


@rule
def best_side(lane, params, car, into, wanted):
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
def room_at_start(lane, params, car, into, side, wanted):
    """Return how many cells a car may drive into a lane; who drives safely keeps one free before another car."""
    for cell in range(min(wanted + lane.safety[car], params.street_length)):
        if lane.taken[into, side, cell]:
            return cell - (lane.safety[car] and cell > 0)
    return min(wanted, params.street_length)


@rule
def dawdle(lane, params):
    """Let each car drive a cell less by chance."""
    for first in range(0, params.cars, 4):
        drawn = words(lane.key, lane.time, DAWDLE, first)
        for k in range(4):
            car = first + k
            if car < params.cars and not lane.arrived[car]:
                chance = params.human_dawdling if lane.human[car] else params.dawdling
                if share(drawn[k]) < chance:
                    lane.wish[car] = max(0, lane.wish[car] - 1)


@rule
def go(lane, params, car):
    """Move a car and return what it earns."""
    length = params.street_length
    lane.speed[car] = lane.wish[car]
    at = lane.at[car] + lane.wish[car]
    earned = -params.time_cost - params.distance_cost * lane.wish[car]
    lane.steps[car] += 1
    if at < length:
        lane.at[car] = at
    elif lane.next[car] == lane.street[car]:
        lane.arrived[car] = 1
        lane.driving -= 1
        return earned + params.arrival_reward
    else:
        lane.street[car], lane.side[car], lane.at[car] = lane.next[car], lane.next_side[car], at - length
        lane.turn[car] = UNSAID
        earned -= toll_of(lane, params, car, lane.next[car])
    lane.taken[lane.street[car], lane.side[car], lane.at[car]] = car + 1
    return earned


@rule
def toll_of(lane, params, car, street):
    """Return what it costs a car to enter a street."""
    exempt = params.toll_for == AI_DRIVEN and lane.human[car]
    return params.toll if params.toll_street[street] and not exempt else 0.0


# ---------------------------------------------------------------------------------------- what is seen and told


@rule
def take_in(lane, params, time):
    """Work out what is to be seen and told at a time: lights, free cells, how long streets take, ways, turns."""
    for end in range(params.crossroads_count):
        lane.lights[time % MOMENTS, end] = lights(params, end, time)
        lane.sought[end] = 0
    for street in range(params.ahead.shape[0]):
        lane.announced[street] = 0
        lane.queue[street] = 0
    for car in range(params.cars):
        if not lane.arrived[car]:
            look(lane, params, car, time)
            street = lane.street[car]
            lane.queue[street] += lane.speed[car] == 0
            lane.sought[lane.goal[car]] = 1
            if announces(lane, params, car):
                lane.announced[after(params, street, lane.turn[car])] += 1
    for street in range(params.ahead.shape[0]):
        takes = params.dug_time if lane.dug[street] else params.free_time
        lane.takes[street] = takes + params.lights_take[street % 2] + params.queue_takes * lane.queue[street]
    for goal in range(params.crossroads_count):
        if lane.sought[goal]:
            find_ways(lane, params, goal)


@rule
def announces(lane, params, car):
    """Return whether a car has told others where it will turn at the end of its street, if it goes on there."""
    goes_on = lane.turn[car] != UNSAID and params.ahead[lane.street[car]] != lane.goal[car]
    return goes_on and (not lane.human[car] or params.human_information == ALL)


@rule
def lights(params, end, time):
    """Return who may cross: 1 east and west, 2 north and south, 3 all."""
    if params.crossroads != SIGNALS:
        return 3
    now = (time + params.early[end]) % params.signal_period
    return 1 if now < params.east_west_green else 2


@rule
def look(lane, params, car, time):
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
def find_ways(lane, params, goal):
    """Work out how long it takes from each crossroads to a goal at least, as streets are now (Bellman and Ford)."""
    for k in range(params.crossroads_count):
        lane.way[goal, k] = FAR
    lane.way[goal, goal] = 0.0
    changed, backwards = True, False
    while changed:
        changed = False
        for k in range(params.crossroads_count):
            here = params.crossroads_count - 1 - k if backwards else k
            least = lane.way[goal, here]
            for heading in range(4):
                street = 4 * here + heading
                if params.ahead[street] >= 0:
                    least = min(least, lane.takes[street] + lane.way[goal, params.ahead[street]])
            if least < lane.way[goal, here]:
                lane.way[goal, here] = least
                changed = True
        backwards = not backwards


@rule
def observe(lane, params, observation):
    """Write what each driver sees; who has arrived sees nothing."""
    for car in range(params.cars):
        row = lane.sight[car]
        for k in range(row.shape[0]):
            row[k] = 0.0
        if not lane.arrived[car]:
            write_own(lane, params, car)
            for turn in range(3):
                write_turn(lane, params, car, turn)
        for k in range(row.shape[0]):
            observation[car, k] = row[k]


@rule
def write_own(lane, params, car):
    """Write what a driver sees of its car, the road ahead and the lights."""
    row, length = lane.sight[car], params.street_length
    moment = max(0, lane.time - (params.human_reaction if lane.human[car] else 0))
    row[0] = 1.0
    row[1] = lane.speed[car] / MOST_SPEED
    row[2] = (length - 1 - lane.at[car]) / length
    row[3] = lane.seen[moment % MOMENTS, car] / MOST_SPEED
    row[4] = green(lane, params, lane.street[car], moment)
    row[5] = lane.human[car]
    row[6] = lane.fast[car]
    row[7] = lane.safety[car]


@rule
def write_turn(lane, params, car, turn):
    """Write what a driver knows of a turn: whether it exists, how far it is to the goal by it, and of the street."""
    row, place = lane.sight[car], OF_TURN + EACH_TURN * turn
    street = lane.street[car]
    if not leads(params, street, turn):
        row[place + 1] = 1.0
        row[place + 2] = 1.0
        return
    end, into = params.ahead[street], after(params, street, turn)
    informed = params.human_information if lane.human[car] else ALL
    plain, now = 0.0, 0.0
    if end != lane.goal[car]:
        beyond = params.ahead[into]
        plain = (1 + params.between[beyond, lane.goal[car]]) * params.street_takes
        now = lane.takes[into] + lane.way[lane.goal[car], beyond]
    row[place] = 1.0
    row[place + 1] = min(1.0, plain * params.per_step)
    row[place + 2] = min(1.0, (plain if informed == STATIC else now) * params.per_step)
    if informed == ALL:
        own = announces(lane, params, car) and lane.turn[car] == turn
        row[place + 3] = (lane.announced[into] - own) / params.cars
    row[place + 4] = params.human_lane[into] and lane.human[car]
    row[place + 5] = min(1.0, toll_of(lane, params, car, into))


@rule
def describe(lane, params, facts):
    """Write who is on the road; nobody is there any more who has arrived."""
    for car in range(params.cars):
        facts.sensitive[car, 0] = lane.human[car]
        facts.group[car] = lane.human[car]
        facts.legitimate[car, 0] = lane.fast[car]
        facts.legitimate[car, 1] = lane.safety[car]
        if lane.arrived[car]:
            continue
        facts.individual[car] = car
        streets = 1 + params.between[params.ahead[lane.street[car]], lane.goal[car]]
        facts.features[car, 0] = (streets * params.street_length - lane.at[car]) * params.per_cell
        facts.features[car, 1] = lane.fast[car]
        facts.features[car, 2] = lane.safety[car]


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
      service does, ``"all"`` the latter too, and announces their turns: then there is no difference.
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
    a share of four times the longest way; how many others, as a share of all cars, have announced to turn into it
    (nobody has before its first choice in a street); whether it has a lane for people and this is one; its toll, at
    most 1. How long a street takes now: its cells at full speed, or at that of road works, the mean wait for the light
    at its end, and a step for each standing car and lane.

    **Rewards.** ``arrival_reward`` (1) on arrival; minus ``time_cost`` (0.01) for each step on the road, minus
    ``distance_cost`` (0.001) for each cell, minus ``toll`` (0) for entering a street that has one.

    **Interactions.** One individual a car, -1 once it has arrived. ``fair_action``: 1 moves, 0 stands, -1 has arrived
    before. ``fair_outcome``: its reward. ``fair_features``: cells to the goal as a share of the longest way, fast,
    safety.

    **Starting state.** Cars stand in different cells of first lanes, each cell as likely. ``roadworks`` (10) streets,
    others in each episode, allow one cell a step in both directions; machines know where they are.

    **Order of a step.** All see the same state. (1) The speed changes by the pedal, to at most the car's and the
    street's; people brake to what they saw; all brake to the car ahead. (2) Whose speed leads beyond the end of the
    street asks to cross, if the light is green. Around a crossroads, who turns left gives way to everybody; else who
    comes from the right goes first, and where somebody comes from everywhere, each heading in turn. Who would cross
    the way of somebody who was let, or finds no free cell in the street beyond, stops at the line. In the street beyond
    a car takes the lane with the most room that nobody entered in this step; of equal ones a person takes that for
    people, else the first. There are no other changes of lanes. (3) Each car drives a cell less by chance. (4) All
    move. Who crosses into its goal has arrived and leaves the road.

    **Lights.** East and west are green in the first ``east_west_share`` of ``signal_period`` steps, north and south in
    the others. ``offset_east_west`` makes each column's lights so many steps later than those of the column before, and
    so does ``offset_north_south`` by rows. ``crossroads="right_of_way"``: no lights.

    **Episode end.** Of a car, when it arrives; of all, when the last one does (termination), or after ``horizon`` steps
    (truncation).

    **What can be changed about the city**: lights; ``human_lanes``, streets whose last lane is for people alone, who
    may use the others too (the street gets no wider); ``human_information``; ``human_share``; tolls, for everybody or
    for machines alone. Streets are told by their ends, ``"B2-C2"``, by column, ``"C"``, by row, ``"2"``, or ``"all"``.

    **Arguments.** The fields of `TrafficParams`.

    **Differences from the paper.** The paper that names this example (La Malfa and others) gives no rules; these are
    this package's.

    **References.** G. La Malfa, J. M. Zhang, M. Luck, E. Black, "Using Protected Attributes to Consider Fairness in
    Multi-Agent Systems", AEQUITAS 2024, arXiv 2410.12889 (the example and the notions). K. Nagel, M. Schreckenberg, "A
    cellular automaton model for freeway traffic", Journal de Physique I 2 (1992) (how cars drive).

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "traffic"
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
        between = abs(column[:, None] - column) + abs(row[:, None] - row)
        late = params.offset_east_west * column + params.offset_north_south * row
        free_time = params.street_length / params.fast_speed
        street_takes = free_time + mean_wait(params).mean()
        own = {
            "crossroads_count": city.crossroads,
            "ahead": city.ahead,  # (4 * crossroads,)
            "street": np.array([city.both(street) for street in city.streets]),  # (streets, 2)
            "crossing": crossing(),  # (12,)
            "between": between,  # (crossroads, crossroads), streets
            "early": -late % params.signal_period,  # (crossroads,)
            "east_west_green": east_west_green(params),
            "human_lane": city.chosen(params.human_lanes, argument="human_lanes").astype(np.int8),  # (4 * crossroads,)
            "toll_street": city.chosen(params.toll_streets, argument="toll_streets").astype(np.int8),
            "hospital_at": -1 if params.destination == "own" else city.find(params.hospital, argument="hospital"),
            "humans": carriers(params.human_share, params.cars),
            "fasts": carriers(params.fast_share, params.cars),
            "safes": carriers(params.safety_share, params.cars),
            "free_time": free_time,
            "dug_time": params.street_length / min(params.roadworks_speed, params.fast_speed),
            "lights_take": mean_wait(params),  # (2,): east and west, north and south
            "queue_takes": HEADWAY / params.lanes,  # steps for each car of it
            "street_takes": street_takes,
            "per_step": 1 / (4 * street_takes * (1 + between.max())),
            "per_cell": 1 / (params.street_length * (1 + between.max())),
        }
        plain = encode(params)._asdict()
        return record_of({name: value for name, value in plain.items() if not isinstance(value, (str, tuple))} | own)

    def check(self, params: TrafficParams) -> None:
        """Raise ValueError for streets that do not exist, lanes that nobody else could use, or too little room."""
        city = City(params.columns, params.rows)
        if params.destination == "hospital":
            city.find(params.hospital, argument="hospital")
        for argument in ("human_lanes", "toll_streets"):
            city.chosen(getattr(params, argument), argument=argument)
        if params.human_lanes and params.lanes < 2:
            raise ValueError(f"lanes must be at least 2 where human drivers have one of their own, got {params.lanes}")
        if params.roadworks > len(city.streets):
            raise ValueError(f"roadworks must be at most {len(city.streets)} streets, got {params.roadworks}")
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
            ("goal", np.int32, cars),  # a crossroads
            ("street", np.int32, cars),  # see `City`
            ("side", np.int32, cars),  # which lane of the street
            ("at", np.int32, cars),  # cell, from where the street begins
            ("speed", np.int32, cars),  # cells in the last step
            ("turn", np.int32, cars),  # that is taken next; -1: not said yet
            ("steps", np.int32, cars),  # on the road
            ("dug", np.int8, streets),  # 1: road works
            ("taken", np.int16, (streets, params.lanes, params.street_length)),  # 0: free; car + 1
            ("lights", np.int8, (MOMENTS, crossroads)),  # by time: 1 east and west are green, 2 north and south, 3 all
            ("seen", np.int32, (MOMENTS, cars)),  # by time: free cells ahead that the driver sees
            ("gap", np.int32, cars),  # free cells to the car ahead; more than are left: none in sight
            # Of one step
            ("wish", np.int32, cars),  # cells to drive
            ("next", np.int32, cars),  # street to enter; -1: none; the present one: the car leaves the road
            ("next_side", np.int32, cars),
            ("asking", np.int32),  # how many cars want to cross
            ("asker", np.int32, cars),  # which
            ("waiting", np.int32, (streets, params.lanes)),  # car + 1 that wants to cross
            ("claimed", np.int32, (streets, params.lanes)),  # time + 1 of when a car was let in
            # What is told
            ("queue", np.int32, streets),  # cars that stand
            ("announced", np.int32, streets),  # cars that have told others that they will turn into it
            ("takes", np.float64, streets),  # steps, as it is now
            ("sought", np.int8, crossroads),  # 1: somebody's goal
            ("way", np.float64, (crossroads, crossroads)),  # steps from there to a goal, as it is now
            ("sight", np.float32, (cars, len(self.observed_features(params)))),
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
        return SEEN + tuple(f"{name}_{turn}" for turn in ("left", "straight", "right") for name in SEEN_OF_TURN)

    def action_space(self, params: TrafficParams) -> gym.spaces.Discrete:
        """Return brake, keep and accelerate, each with left, straight and right."""
        return gym.spaces.Discrete(9)

    def renderer(self) -> Any:
        """Return what draws the city."""
        from fair_envs.envs.traffic.render import TrafficRenderer

        return TrafficRenderer(self)


def carriers(share: float, cars: int) -> int:
    """Return how many cars carry an attribute: the nearest number to the share of them."""
    return int(share * cars + 0.5)


def east_west_green(params: TrafficParams) -> int:
    """Return in how many steps of a period east and west have the green light; each axis has it in one at least."""
    return int(min(max(round(params.east_west_share * params.signal_period), 1), params.signal_period - 1))


def mean_wait(params: TrafficParams) -> NDArray[np.float64]:
    """Return how many steps who comes at any step waits for a green light on average: heading east or west, or not."""
    if params.crossroads != "signals":
        return np.zeros(2)
    green = east_west_green(params)
    red = np.array([params.signal_period - green, green])
    return np.asarray(red * (red + 1) / (2 * params.signal_period))  # red, red - 1, ..., 1 steps
