"""The rules of FairPursuit on one lane, in the order in which they are applied."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import ObservedTeammates, Rules, TeamOutcome, inlined, rule
from fair_envs.core.compilation import record_of
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import normal, uniform
from fair_envs.envs.pursuit.params import (
    AUTHORS,
    CYCLIC,
    DIRECTION,
    HEADING,
    INDIVIDUAL,
    MOST,
    MUTUAL_SUM,
    PROFILES,
    SORTED,
    TERMINATE,
    TORUS,
    PursuitParams,
    Speed,
)
from fair_envs.support.aliases import Facts, Floats, Floats32, Ints, Lane, Record
from fair_envs.support.parameters import checked, encode

# Random streams
FIRST_EVADER, MORE_EVADERS, PURSUERS = range(3)

ATTEMPTS = 1000  # tries to start far enough from every evader
LEAST_ROOM = 0.01  # least share of places that are far enough: all tries fail with a probability of 4e-5
BALANCE = 1e-9  # length of the evader's sum of repulsions below which it keeps its heading
SHORT = 1e-30  # squared length of a direction below which single precision represents squares poorly
STRETCHED = np.float32(2.0**100)  # factor by which such a direction is scaled up
CLOSEST = 1e-12  # least squared distance at which a repulsion is computed
STIFFNESS, SOFTNESS, THRUST = 100.0, 1e-3, 20.0  # of contacts, and of the steering that they change; C
PUSHED = 0.1  # time units for which these forces act; C's time step
TRAIL = 64  # positions stored in a lane for its picture
LARGEST_SPEED = 100.0


# ------------------------------------------------------------------------------------------------- the torus


@inlined
def apart(side: float, here: float, there: float) -> float:
    """Return the shortest way between two coordinates in [0, side), from -side / 2 to less than side / 2."""
    way, half = there - here, 0.5 * side
    around = 1.0 * (way >= half) - 1.0 * (way < -half)  # branches on positions would be mispredicted
    return way - side * around


@inlined
def wrapped(side: float, coordinate: float) -> float:
    """Return a coordinate in [0, side)."""
    if 0.0 <= coordinate < side:  # true for most, which need no division
        return coordinate
    inside = coordinate - side * math.floor(coordinate / side)
    return inside if inside < side else 0.0


@inlined
def squared_distance(lane: Lane, params: Record, one: int, other: int) -> float:
    """Return the squared distance of two agents on the torus."""
    x = apart(params.side, lane.position[one, 0], lane.position[other, 0])
    y = apart(params.side, lane.position[one, 1], lane.position[other, 1])
    return x * x + y * y


@rule
def distance_on_map(lane: Lane, one: int, other: int) -> float:
    """Return the distance of two agents without the joined edges."""
    x = lane.position[one, 0] - lane.position[other, 0]
    y = lane.position[one, 1] - lane.position[other, 1]
    return math.sqrt(x * x + y * y)


@inlined
def pursuers_of(lane: Lane) -> Any:
    """Return the pursuers. Their number is part of a lane's layout, so the loop over them is compiled unrolled."""
    return range(lane.speed.shape[0])


@inlined
def evaders_of(lane: Lane) -> Any:
    """Return the evaders; see `pursuers_of`."""
    return range(lane.free.shape[0])


@inlined
def mates_of(lane: Lane) -> Any:
    """Return indices for a pursuer's team-mates; see `pursuers_of`."""
    return range(lane.speed.shape[0] - 1)


@inlined
def agent_of(lane: Lane, evader: int) -> int:
    """Return an evader's index among the agents: evaders come after the pursuers."""
    return lane.speed.shape[0] + evader


# ------------------------------------------------------------------------------------------------- the start


@rule
def start(lane: Lane, params: Record) -> None:
    """Place the first evader at the centre, the others and the pursuers anywhere, pursuers not too close to evaders."""
    for pursuer in pursuers_of(lane):
        lane.speed[pursuer] = params.pursuer_speed * params.speeds[pursuer]
    lane.left = lane.free.shape[0]
    for evader in evaders_of(lane):
        lane.free[evader] = 1
        for axis in range(2):
            if evader == 0:
                place = params.side / 2 + params.start_spread * normal(lane.key, 0, FIRST_EVADER, axis)
            else:
                place = params.side * uniform(lane.key, 0, MORE_EVADERS, 2 * evader + axis)
            lane.position[agent_of(lane, evader), axis] = wrapped(params.side, place)
    for pursuer in pursuers_of(lane):
        for attempt in range(ATTEMPTS):
            for axis in range(2):
                lane.position[pursuer, axis] = params.side * uniform(lane.key, attempt, PURSUERS, 2 * pursuer + axis)
            if math.sqrt(nearest_squared(lane, params, pursuer)) >= params.start_distance:
                break
    for agent in range(lane.facing.shape[0]):
        lane.facing[agent, 0] = 1.0
    keep_trail(lane)


@inlined
def nearest_squared(lane: Lane, params: Record, pursuer: int) -> float:
    """Return the squared distance to the nearest free evader; 0 if there is none."""
    nearest = math.inf
    for evader in evaders_of(lane):
        if lane.free[evader]:
            nearest = min(nearest, squared_distance(lane, params, pursuer, agent_of(lane, evader)))
    return nearest if nearest < math.inf else 0.0


# ---------------------------------------------------------------------------------------------------- a step


@inlined
def step(lane: Lane, action: NDArray[Any], params: Record, reward: Floats, facts: Facts) -> bool:
    """Let all agents choose headings, move simultaneously, and capture; it terminates when no evader is free."""
    for pursuer in pursuers_of(lane):
        steer(lane, action, params, pursuer)
    for evader in evaders_of(lane):
        if lane.free[evader]:
            flee(lane, params, agent_of(lane, evader))
    if params.legacy_physics:
        push(lane, params)
    move(lane, params)
    caught = catch(lane, params)
    lane.left -= caught
    pay(lane, params, caught, reward)
    for pursuer in pursuers_of(lane):
        facts.action[pursuer] = lane.caught[pursuer] > 0
        facts.outcome[pursuer] = lane.caught[pursuer]
    keep_trail(lane)
    return lane.left == 0 or (params.at_horizon == TERMINATE and lane.time + 1 >= params.horizon)


@inlined
def steer(lane: Lane, action: NDArray[Any], params: Record, pursuer: int) -> None:
    """Turn a pursuer in the direction of its action; a zero direction keeps the previous heading."""
    if params.action == DIRECTION:
        x, y = entry(action, pursuer, 0), entry(action, pursuer, 1)
        if x * x + y * y < SHORT:
            x, y = STRETCHED * x, STRETCHED * y
        face(lane, pursuer, x, y)
    else:
        turn = 1.0 if params.action == HEADING else 2.0 * math.pi / params.headings
        angle = turn * entry(action, pursuer, 0)
        face(lane, pursuer, math.cos(angle), math.sin(angle))


@inlined
def entry(action: NDArray[Any], pursuer: int, k: int) -> float:
    """Return the k-th entry of a pursuer's action; a discrete action is one number."""
    if action.ndim == 1:  # resolved at compile time
        return action[pursuer]
    return action[pursuer, k]


@inlined
def face(lane: Lane, agent: int, x: float, y: float) -> None:
    """Turn an agent in a direction of any length other than 0."""
    length = math.sqrt(x * x + y * y)
    if length > 0.0:
        lane.facing[agent, 0] = x / length
        lane.facing[agent, 1] = y / length


@inlined
def flee(lane: Lane, params: Record, agent: int) -> None:
    """Turn an evader away from the sum of ``(p - e) / |p - e|^2`` over the pursuers p (Eq. 7, its minimum)."""
    x, y = 0.0, 0.0
    for pursuer in pursuers_of(lane):
        way_x = apart(params.side, lane.position[agent, 0], lane.position[pursuer, 0])
        way_y = apart(params.side, lane.position[agent, 1], lane.position[pursuer, 1])
        squared = max(CLOSEST, way_x * way_x + way_y * way_y)
        x += way_x / squared
        y += way_y / squared
    if math.sqrt(x * x + y * y) >= BALANCE:
        face(lane, agent, -x, -y)


@inlined
def move(lane: Lane, params: Record) -> None:
    """Move all agents except captured ones by one step of their speed, or of their push with contacts."""
    for agent in range(lane.position.shape[0]):
        if not plays(lane, params, agent):
            continue
        length = params.time_step * speed_of(lane, params, agent)
        if params.legacy_physics:
            length *= lane.share[agent]
        for axis in range(2):
            lane.position[agent, axis] = wrapped(
                params.side, lane.position[agent, axis] + length * lane.facing[agent, axis]
            )


@rule
def push(lane: Lane, params: Record) -> None:
    """Disturb the steering of overlapping agents, as the published code does: add a force before it is clipped.

    The control is 20 times the speed in the larger of its two entries; contacts across the seam are ignored.
    """
    agents = lane.position.shape[0]
    for agent in range(agents):
        speed = speed_of(lane, params, agent)
        size = max(abs(lane.facing[agent, 0]), abs(lane.facing[agent, 1]))
        for axis in range(2):
            lane.force[agent, axis] = THRUST * speed * lane.facing[agent, axis] / size
    for one in range(agents):
        for other in range(one + 1, agents):
            if plays(lane, params, one) and plays(lane, params, other):
                contact(lane, params, one, other)
    for agent in range(agents):
        speed = speed_of(lane, params, agent)
        x, y = PUSHED * lane.force[agent, 0], PUSHED * lane.force[agent, 1]
        length = math.sqrt(x * x + y * y)
        lane.share[agent] = min(1.0, length / speed) if speed > 0.0 else 0.0
        face(lane, agent, x, y)


@rule
def contact(lane: Lane, params: Record, one: int, other: int) -> None:
    """Add the force between two agents that push each other: stiffness times the softened depth of their overlap."""
    distance = distance_on_map(lane, one, other)
    depth = (radius_of(lane, params, one) + radius_of(lane, params, other) - distance) / SOFTNESS
    if distance == 0.0 or depth < -40.0:  # negligible in double precision
        return
    felt = SOFTNESS * (depth if depth > 40.0 else math.log1p(math.exp(depth)))
    for axis in range(2):
        pushed = STIFFNESS * felt * (lane.position[one, axis] - lane.position[other, axis]) / distance
        lane.force[one, axis] += pushed
        lane.force[other, axis] -= pushed


@inlined
def plays(lane: Lane, params: Record, agent: int) -> bool:
    """Return whether an agent is not a captured evader."""
    return agent < lane.speed.shape[0] or lane.free[agent - lane.speed.shape[0]] != 0


@inlined
def speed_of(lane: Lane, params: Record, agent: int) -> float:
    """Return an agent's speed."""
    return params.evader_speed if agent >= lane.speed.shape[0] else lane.speed[agent]


@rule
def radius_of(lane: Lane, params: Record, agent: int) -> float:
    """Return an agent's radius."""
    return params.evader_radius if agent >= lane.speed.shape[0] else params.pursuer_radius


@inlined
def catch(lane: Lane, params: Record) -> int:
    """Let every pursuer capture that is close enough; return the number of evaders captured now."""
    for pursuer in pursuers_of(lane):
        lane.caught[pursuer] = 0
    reach, evaders = params.pursuer_radius + params.evader_radius, 0
    for evader in evaders_of(lane):
        if not lane.free[evader]:
            continue
        for pursuer in pursuers_of(lane):
            if within(lane, params, pursuer, agent_of(lane, evader), reach):
                lane.caught[pursuer] += 1
                lane.captures[pursuer] += 1
                lane.free[evader] = 0
        evaders += 1 - lane.free[evader]
    return evaders


@inlined
def within(lane: Lane, params: Record, one: int, other: int, reach: float) -> bool:
    """Return whether two agents are closer than `reach`; the published code ignores ways across the seam."""
    if params.legacy_physics:
        return distance_on_map(lane, one, other) < reach
    return math.sqrt(squared_distance(lane, params, one, other)) < reach


@inlined
def pay(lane: Lane, params: Record, evaders: int, reward: Floats) -> None:
    """Pay for captures: all pursuers for each evader, or for each captor, or each pursuer only for its own."""
    captors = 0
    for pursuer in pursuers_of(lane):
        captors += lane.caught[pursuer]
    for pursuer in pursuers_of(lane):
        paid = captors if params.reward == MUTUAL_SUM else evaders
        if params.reward == INDIVIDUAL:
            paid = lane.caught[pursuer]
        reward[pursuer] = params.capture_reward * paid
        if paid == 0 or params.penalty_at_capture:
            reward[pursuer] -= params.step_penalty


@inlined
def keep_trail(lane: Lane) -> None:
    """Store the positions for the picture, replacing the oldest."""
    place = lane.newest
    for agent in range(lane.position.shape[0]):
        for axis in range(2):
            lane.trail[place, agent, axis] = lane.position[agent, axis]
    lane.newest = place + 1 if place + 1 < lane.trail.shape[0] else 0


# ------------------------------------------------------------------------------- observations and feedback


@inlined
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write each pursuer's observation."""
    if params.observation == TORUS:
        measure_angles(lane, params)
    for pursuer in pursuers_of(lane):
        if params.teammates == SORTED and not params.blind:
            sort_by_distance(lane, params, pursuer)
        if params.observation == AUTHORS:
            write_positions(lane, params, pursuer, observation)
        else:
            write_ways(lane, params, pursuer, observation)


@rule
def measure_angles(lane: Lane, params: Record) -> None:
    """Compute sine and cosine of each coordinate as an angle; the side is a full turn."""
    for agent in range(lane.position.shape[0]):
        for axis in range(2):
            angle = math.pi * params.per_half * lane.position[agent, axis]
            lane.angle[agent, axis, 0] = math.sin(angle)
            lane.angle[agent, axis, 1] = math.cos(angle)


@rule
def write_positions(lane: Lane, params: Record, pursuer: int, observation: Floats32) -> None:
    """Write the pursuer's position, then the others' positions, in their order, unscaled."""
    observation[pursuer, 0] = lane.position[pursuer, 0]
    observation[pursuer, 1] = lane.position[pursuer, 1]
    place = 2
    if not params.blind:
        for k in mates_of(lane):
            mate = teammate(lane, params, pursuer, k)
            observation[pursuer, place] = lane.position[mate, 0]
            observation[pursuer, place + 1] = lane.position[mate, 1]
            place += 2
    for evader in evaders_of(lane):
        observation[pursuer, place] = lane.position[agent_of(lane, evader), 0]
        observation[pursuer, place + 1] = lane.position[agent_of(lane, evader), 1]
        place += 2
    write_own(lane, params, pursuer, observation, place)


@inlined
def write_ways(lane: Lane, params: Record, pursuer: int, observation: Floats32) -> None:
    """Write the ways to the evaders, then to the team-mates in their order, then the pursuer's own entries."""
    place = 0
    for evader in evaders_of(lane):
        place = write_other(lane, params, pursuer, agent_of(lane, evader), observation, place)
        if lane.free.shape[0] > 1:
            observation[pursuer, place] = lane.free[evader]
            place += 1
    if not params.blind:
        for k in mates_of(lane):
            place = write_other(lane, params, pursuer, teammate(lane, params, pursuer, k), observation, place)
    write_own(lane, params, pursuer, observation, place)


@inlined
def write_other(lane: Lane, params: Record, pursuer: int, other: int, observation: Floats32, place: int) -> int:
    """Write the way to another agent, and its heading; return the next index."""
    if params.observation == TORUS:
        place = write_angles(lane, pursuer, other, observation, place)
    else:
        for axis in range(2):
            way = apart(params.side, lane.position[pursuer, axis], lane.position[other, axis])
            observation[pursuer, place + axis] = way * params.per_half
        place += 2
    if params.include_headings:
        observation[pursuer, place] = lane.facing[other, 0]
        observation[pursuer, place + 1] = lane.facing[other, 1]
        place += 2
    return place


@rule
def write_angles(lane: Lane, pursuer: int, other: int, observation: Floats32, place: int) -> int:
    """Write sine and cosine of the way to another agent as an angle, for both axes; return the next index."""
    for axis in range(2):
        sine, cosine = lane.angle[pursuer, axis, 0], lane.angle[pursuer, axis, 1]
        to_sine, to_cosine = lane.angle[other, axis, 0], lane.angle[other, axis, 1]
        observation[pursuer, place] = to_sine * cosine - to_cosine * sine  # of the difference of angles
        observation[pursuer, place + 1] = to_cosine * cosine + to_sine * sine
        place += 2
    return place


@inlined
def write_own(lane: Lane, params: Record, pursuer: int, observation: Floats32, place: int) -> None:
    """Write the pursuer's heading and speed, if these are observed."""
    if params.include_headings:
        observation[pursuer, place] = lane.facing[pursuer, 0]
        observation[pursuer, place + 1] = lane.facing[pursuer, 1]
        place += 2
    if params.include_speed:
        observation[pursuer, place] = lane.speed[pursuer]


@inlined
def teammate(lane: Lane, params: Record, pursuer: int, k: int) -> int:
    """Return the k-th team-mate in the order of the pursuer's observation."""
    if params.teammates == SORTED:
        return lane.order[k]
    if params.teammates == CYCLIC:
        mate = pursuer + 1 + k
        return mate if mate < lane.speed.shape[0] else mate - lane.speed.shape[0]  # a remainder takes longer
    return k if k < pursuer else k + 1


@rule
def sort_by_distance(lane: Lane, params: Record, pursuer: int) -> None:
    """Sort the team-mates by their distance to the pursuer, the nearest first."""
    for k in mates_of(lane):
        mate = k if k < pursuer else k + 1
        far, place = squared_distance(lane, params, pursuer, mate), k
        while place > 0 and lane.far[place - 1] > far:
            lane.order[place] = lane.order[place - 1]
            lane.far[place] = lane.far[place - 1]
            place -= 1
        lane.order[place] = mate
        lane.far[place] = far


@inlined
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write the pursuers' records; their features are the distance to the nearest free evader, and their speed."""
    for pursuer in pursuers_of(lane):
        facts.individual[pursuer] = pursuer
        facts.sensitive[pursuer, 0] = pursuer
        facts.sensitive[pursuer, 1] = params.classes[pursuer]
        facts.group[pursuer] = pursuer
        facts.features[pursuer, 0] = math.sqrt(2.0 * nearest_squared(lane, params, pursuer)) / params.side
        facts.features[pursuer, 1] = lane.speed[pursuer] / LARGEST_SPEED


# ------------------------------------------------------------------------------------------ the environment


class Parts(NamedTuple):
    """The numbers of entries in the parts of an observation, in this order.

    Attributes:
        evader: Entries for each evader.
        mate: Entries for each team-mate.
        own: Entries for the pursuer itself.
    """

    evader: int
    mate: int
    own: int


def parts_of(params: PursuitParams) -> Parts:
    """Return the composition of an observation of ways."""
    mate = (2 if params.observation == "relative" else 4) + 2 * params.include_headings
    own = 2 * params.include_headings + params.include_speed
    return Parts(evader=mate + (params.evaders > 1), mate=mate, own=own)


class Pursuit(Rules):
    """Pursuers who catch an evader together on a torus, after Grupen, Selman and Lee (2022).

    **Description.** Three pursuers and an evader move on a square whose edges are joined. In each step all agents
    choose a direction and move at their own speed, without inertia. The evader flees from the pursuers by a fixed rule.
    A pursuer that comes close enough captures it. Pursuers as fast as the evader, or slower, must cut off its ways
    together; then it matters which pursuer makes the capture. Search and rescue, deliveries and sales teams are
    similar: a team's success may always be credited to the same member.

    **Who decides and who is affected.** The pursuers decide and are affected. The harm is to make no captures, or to
    drive the evader towards team-mates who always make the capture. The total return of a team of equals does not show
    it. The environment does not model harm to the evader. It measures how captures are spread over many episodes, not
    fairness within one episode.

    **Sensitive attributes and legitimate factors.** ``identity``: each pursuer is a group of one. ``speed``: the class
    of pursuers with the same speed factor to six digits, the fastest first. No legitimate factor.

    **Action space.** Per pursuer, ``Box(-1, 1, (2,))``: a direction of any length; (0, 0) keeps the previous one.
    ``action="heading"``: ``Box(-pi, pi, (1,))``, an angle. ``action="discrete"``: ``Discrete(headings)``, action k is
    the angle 2 pi k / headings.

    **Observation space.** ``Box`` of 6 numbers from -1 to 1: the shortest way to the evader, then to each team-mate,
    in halves of the side; a number jumps where the shortest way changes sides. ``observation="torus"``: sine and
    cosine of each way as an angle, which do not jump. ``observation="authors"``: the published code's positions of the
    pursuer, of the team-mates and of the evader, from 0 to the side.

    ``teammates`` sets the order of the team-mates. ``"cyclic"``: pursuer i sees i + 1, i + 2, ..., modulo the number of
    pursuers; ``"sorted"``: the nearest first; ``"index"``: by number, as in the published code. If all pursuers share
    one policy, ``"cyclic"`` makes it treat the pursuers alike up to a rotation of their numbers, ``"sorted"`` up to any
    permutation, ``"index"`` not at all: see **Symmetry**.

    ``blind`` leaves team-mates out. ``include_headings`` adds cosine and sine of the heading of each other agent, and
    at the end of the pursuer's own; ``include_speed`` adds its own speed. With several evaders, a number shows whether
    each is free, except with ``"authors"``: there a captured evader looks like one that stands still.

    **Symmetry.** Physics, the start and rewards do not depend on a pursuer's number (unless speeds differ). If all
    pursuers share a policy and their observations are permuted with them, all pursuers therefore capture equally often.
    With ``"sorted"`` all sets of captors of the same size are also equally likely, and the deficit of team fairness is
    0. With ``"cyclic"`` this holds only for up to three pursuers. Of four, neighbours may capture together more often
    than opposite pursuers, since no rotation maps one pair to the other. A single function of one global state has none
    of these guarantees.

    **Rewards.** ``reward="mutual"``: all pursuers get ``capture_reward`` (50) for a captured evader, regardless of the
    number of captors; ``"mutual_sum"``: for each captor; ``"individual"``: each captor alone. A pursuer that gets
    nothing in a step pays ``step_penalty`` (0.1).

    **Interactions.** One individual per pursuer. The recorded decision is a capture, not a direction: ``fair_action``
    is 1 if the pursuer captures in the step, ``fair_outcome`` is the number of evaders. ``fair_features``: the distance
    to the nearest free evader, as a share of the largest, and the speed in hundredths.

    **Starting state.** The first evader is at the centre, within about 1e-4. Other evaders and the pursuers are
    anywhere, the pursuers at least ``start_distance`` (0.5) from every evader. Up to 1,000 places are drawn for each
    pursuer; if all are too near, it starts in the last. To keep this rare, parameters that leave less than 1 % of the
    places free on average are refused. All agents face along the first axis.

    **Order of a step.** All agents choose from the same state, all move simultaneously, then captures are found:
    pursuers closer than 0.125 to an evader. All of them are captors, whatever their number. A captured evader stays
    where it is.

    **Episode end.** Termination when no evader is free, truncation after ``horizon`` steps.

    **The evader** heads away from the sum over the pursuers of (way to the pursuer) / (distance squared). This
    minimises the sum over the pursuers of cos(its angle to the pursuer) / distance (Eq. 7). If the sum is 0 it keeps
    its direction. It never slows down.

    **Arguments.** The fields of `PursuitParams`, each with its default and source. ``speeds=(1, 0.5)``, or
    ``-p speeds=1,0.5`` on the command line, gives each pursuer a factor of ``pursuer_speed``; their number is then the
    number of pursuers. ``profile="authors"``: the published code's physics, observations, penalty at a capture and end
    of episodes.

    **Differences from the paper and its code**, with the switches that restore their behaviour:

    * In the paper all pursuers receive each captor's reward: ``reward="mutual_sum"``. In the code they do not.
    * The step of a capture costs nothing, as in the paper; in the code it does: ``penalty_at_capture=True``.
    * Captures are found across the seam, and overlapping agents move on undisturbed, as in the paper. Neither is true
      of the code: ``legacy_physics=True``.
    * Agents have no inertia: in the paper they follow headings exactly. The code's environment is based on one in which
      velocity carries over from step to step. This package assumes that it does not, also with ``legacy_physics``.
    * Team-mates are observed in cyclic order and as ways; in the code by number, as positions.
    * The time limit is truncation; in the code it is termination: ``at_horizon="terminate"``.

    **References.** N. Grupen, B. Selman, D. Lee, "Cooperative multi-agent fairness and equivariant policies", AAAI
    2022, arXiv 2106.05727.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "pursuit"
    drawn_by: ClassVar[str] = "fair_envs.envs.pursuit.render:PursuitRenderer"
    Params: ClassVar[type] = PursuitParams
    presets = PROFILES
    multi_agent = True
    fps: ClassVar[int] = 20
    sensitive_features: ClassVar[tuple[str, ...]] = ()
    pace: ClassVar[str | None] = "pursuer_speed"
    policies: ClassVar[Mapping[str, str]] = {
        "greedy": "fair_envs.envs.pursuit.policies:Greedy",
        "planner": "fair_envs.envs.pursuit.policies:Planner",
        "shuffled-roles": "fair_envs.envs.pursuit.policies:ShuffledPlanner",
    }
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def __init__(self, **given: Any) -> None:
        if "speeds" in given:
            speeds = checked("speeds", given["speeds"], Sequence[Speed])
            if len(speeds) > MOST:
                raise ValueError(f"speeds must be at most {MOST} factors, got {len(speeds)}")
            given = {**({"pursuers": len(speeds)} if speeds else {}), **given, "speeds": speeds}
        super().__init__(**given)

    @property
    def factors(self) -> Floats:
        """The pursuers' factors of the speed, shape (pursuers,)."""
        return np.array(self.params.speeds or (1.0,) * self.params.pursuers)

    @property
    def classes(self) -> tuple[tuple[str, ...], Ints]:
        """The factors that differ in six digits, the largest first, and which each pursuer has, shape (pursuers,)."""
        shown = [f"{factor:g}" for factor in self.factors]
        names = sorted(set(shown), key=float, reverse=True)
        return tuple(names), np.array([names.index(name) for name in shown])

    def encoded(self, params: PursuitParams) -> NDArray[np.void]:
        """Return the parameters as numbers, and the pursuers' speeds, as one record."""
        own = {"speeds": self.factors, "classes": self.classes[1]}  # by pursuer
        return record_of({**encode(params)._asdict(), **own, "per_half": 2.0 / params.side})

    def check(self, params: PursuitParams) -> None:
        """Raise ValueError unless each pursuer has a speed and there is enough room at the start."""
        if params.speeds and len(params.speeds) != params.pursuers:
            raise ValueError(
                f"speeds must be one factor for each of {params.pursuers} pursuers, got {len(params.speeds)}"
            )
        fastest = params.pursuer_speed * self.factors.max()
        if fastest > LARGEST_SPEED:
            raise ValueError(f"pursuer_speed times speeds must be at most {LARGEST_SPEED:g}, got {fastest:g}")
        if params.start_distance > params.side / 2:
            raise ValueError(
                f"start_distance must be at most half the side, {params.side / 2:g}, got {params.start_distance:g}"
            )
        room = (1 - math.pi * (params.start_distance / params.side) ** 2) ** params.evaders
        if room < LEAST_ROOM:
            raise ValueError(
                f"start_distance from {params.evaders} evaders must leave at least {LEAST_ROOM:.0%} of the places free "
                f"on average, got {params.start_distance:g}, which leaves {room:.1%}"
            )
        if params.observation == "authors" and params.include_headings:
            raise ValueError("include_headings must be False for the observation 'authors', got True")

    def lane(self, params: PursuitParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane; agents are the pursuers, then the evaders."""
        pursuers, agents = params.pursuers, params.pursuers + params.evaders
        return [
            # fields that all worlds use, side by side in memory
            ("position", np.float64, (agents, 2)),  # from 0 to less than the side
            ("facing", np.float64, (agents, 2)),  # direction of the last move, of length 1
            ("speed", np.float64, pursuers),
            ("free", np.int8, params.evaders),
            ("left", np.int32),  # number of free evaders
            ("caught", np.int32, pursuers),  # evaders captured in the last step
            ("captures", np.int32, pursuers),  # evaders captured in the episode
            ("newest", np.int32),  # index of the next position in the trail
            ("trail", np.float32, (TRAIL, agents, 2)),  # the last positions
            # fields that some worlds use
            ("order", np.int32, max(1, pursuers - 1)),  # team-mates by distance, if observed in this order
            ("far", np.float64, max(1, pursuers - 1)),  # square of that distance
            ("angle", np.float64, (agents, 2, 2)),  # sine and cosine of each coordinate as an angle, if observed
            ("force", np.float64, (agents, 2)),  # steering force, with legacy physics
            ("share", np.float64, agents),  # share of the speed that contacts leave
        ]

    def fair_spec(self, params: PursuitParams) -> FairSpec:
        """Return who is affected: the pursuers."""
        names = tuple(f"pursuer {k}" for k in range(params.pursuers))
        return FairSpec(
            individuals=params.pursuers,
            actions=2,  # no capture, a capture
            features=("distance", "speed"),
            sensitive={"identity": names, "speed": self.classes[0]},
            groups=names,
            same_individuals=True,
        )

    def agents(self, params: PursuitParams) -> int:
        """Return the number of pursuers."""
        return params.pursuers

    def observation_space(self, params: PursuitParams) -> gym.spaces.Box:
        """Return the bounds of one pursuer's observation."""
        names = self.observed_features(params)
        low, high = (0.0, params.side) if params.observation == "authors" else (-1.0, 1.0)
        bounds = np.tile(np.array([[low], [high]], np.float32), len(names))
        if params.include_speed:
            bounds[:, -1] = 0, LARGEST_SPEED
        return gym.spaces.Box(bounds[0], bounds[1], dtype=np.float32)

    def observed_features(self, params: PursuitParams) -> tuple[str, ...]:
        """Return the names of all entries."""
        evaders = [f"evader_{k}" for k in range(params.evaders)]
        mates = [] if params.blind else [f"teammate_{k}" for k in range(params.pursuers - 1)]
        own = ["own_heading_x", "own_heading_y"] * params.include_headings + ["own_speed"] * params.include_speed
        if params.observation == "authors":
            return (*(f"{name}_{axis}" for name in ("own", *mates, *evaders) for axis in "xy"), *own)
        kinds = ("",) if params.observation == "relative" else ("_sine", "_cosine")
        way = [f"_{axis}{kind}" for axis in "xy" for kind in kinds]
        way += ["_heading_x", "_heading_y"] * params.include_headings
        free = ["_free"] * (params.evaders > 1)
        return (*(e + part for e in evaders for part in way + free), *(m + part for m in mates for part in way), *own)

    def action_space(self, params: PursuitParams) -> gym.spaces.Box | gym.spaces.Discrete:
        """Return directions, angles, or a number of headings."""
        if params.action == "discrete":
            return gym.spaces.Discrete(params.headings)
        if params.action == "heading":
            return gym.spaces.Box(-math.pi, math.pi, (1,), np.float32)
        return gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def set_pace(self, records: NDArray[np.void], value: float) -> None:
        """Set the pursuers' speed; each pursuer's own factor multiplies it."""
        records["speed"] = value * self.factors

    def team_outcome(self, records: NDArray[np.void]) -> TeamOutcome:
        """Return whether all evaders were captured, and who captured at least one."""
        # not `terminated`, which a time limit may be too
        return TeamOutcome(success=records["left"] == 0, contributed=records["captures"] > 0)

    def acts_by_directions(self) -> bool:
        """Return whether the parameter ``action`` says so."""
        return bool(self.params.action == "direction")

    def observed_teammates(self) -> ObservedTeammates | None:
        """Return the parts of an observation of ways."""
        params = self.params
        if params.observation == "authors":
            return None
        parts = parts_of(params)
        mates = 0 if params.blind else params.pursuers - 1
        return ObservedTeammates(base=parts.evader * params.evaders, mates=mates, mate=parts.mate, own=parts.own)

    def asymmetry(self, *, sets: bool) -> str:
        """Return whether agents can be distinguished by speeds or by the order of team-mates."""
        params = self.params
        if len(set(self.factors)) > 1:
            return f"pursuers have different speeds, {self.factors.tolist()}"
        if params.teammates != "index" or sets or params.blind or params.pursuers < 3:
            return ""
        return "with teammates='index' observations are not exchanged with the agents; use 'cyclic' or DeepSetsPolicy"
