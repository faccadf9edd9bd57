"""Planning for pursuers: find the nearest evader, and predict the results of headings.

Scripted teams use this module. They look ahead with the environment's own rules, on copies of the lane.
"""

import functools
import math
from typing import Any

from fair_envs.core.compilation import Kernel, copyto, kernel, kernels_of, rule
from fair_envs.core.randomness import (
    SITES_OF_ENVIRONMENTS,
    episode_key,
    random_words,
    shuffle,
    to_unit_interval,
    uniform,
)
from fair_envs.envs.pursuit.rules import apart, squared_distance
from fair_envs.support.aliases import Facts, Flags, Floats, Ints, Lane, Record, Records

# Random streams of teams
EXPLORED, REFINED, ROLES = range(SITES_OF_ENVIRONMENTS + 2, SITES_OF_ENVIRONMENTS + 5)

PARTS = 3  # parts of the time ahead; an explored plan keeps one heading in each


@rule
def nearest_evader(lane: Lane, params: Record, pursuer: int) -> int:
    """Return the free evader nearest to a pursuer, the first one in a tie; -1 if there is none."""
    found, nearest = -1, math.inf
    for evader in range(params.evaders):
        if lane.free[evader]:
            squared = squared_distance(lane, params, pursuer, params.pursuers + evader)
            if squared < nearest:
                found, nearest = evader, squared
    return found


@rule
def copy_plan(out: Floats, plan: Floats) -> None:
    """Write a plan into another array, shape (pieces, n)."""
    for piece in range(plan.shape[0]):
        copyto(out[piece], plan[piece])


@rule
def angle_of(part: float, headings: int) -> float:
    """Return the angle for a share of the circle; one of `headings` angles, unless that is 0."""
    return 2.0 * math.pi * (math.floor(part * headings) / headings if headings > 0 else part)


@rule
def explore(key: int, time: int, plan: Record, sample: int, tried: Floats) -> None:
    """Draw plans, shape (pieces, pursuers): an angle for each pursuer and part of the time."""
    pieces, pursuers = tried.shape
    for piece in range(pieces):
        part = PARTS * piece // pieces
        for pursuer in range(pursuers):
            place = (sample * PARTS + part) * pursuers + pursuer
            tried[piece, pursuer] = angle_of(uniform(key, time, EXPLORED, place), plan.headings)


@rule
def refine(key: int, time: int, plan: Record, sample: int, tried: Floats) -> None:
    """Draw a new angle for one pursuer, from a random piece on, for a random number of pieces."""
    pieces, pursuers = tried.shape
    word_0, word_1, word_2, word_3 = random_words(key, time, REFINED, sample)
    pursuer, first = int(to_unit_interval(word_0) * pursuers), int(to_unit_interval(word_1) * pieces)
    angle = angle_of(to_unit_interval(word_3), plan.headings)
    for piece in range(first, min(first + 1 + int(to_unit_interval(word_2) * pieces), pieces)):
        tried[piece, pursuer] = angle


@rule
def approach(lane: Lane, params: Record, closest: Floats) -> float:
    """Record the least distance to each evader; return the sum of the pursuers' distances to the nearest free one."""
    total = 0.0
    for pursuer in range(params.pursuers):
        nearest = math.inf
        for evader in range(params.evaders):
            if lane.free[evader]:
                distance = math.sqrt(squared_distance(lane, params, pursuer, params.pursuers + evader))
                closest[evader] = min(closest[evader], distance)
                nearest = min(nearest, distance)
        total += nearest if nearest < math.inf else 0.0
    for evader in range(params.evaders):
        if not lane.free[evader]:
            closest[evader] = 0.0
    return total


@kernel
def point(code: Records, lanes: Records, out: Floats) -> None:
    """Write the direction from each pursuer to the nearest free evader, shape (B, n, 2)."""
    params = code[0]
    for b in range(lanes.shape[0]):
        lane = lanes[b]
        for pursuer in range(params.pursuers):
            x, y = 0.0, 0.0
            evader = nearest_evader(lane, params, pursuer)
            if evader >= 0:
                place = params.pursuers + evader
                x = apart(params.side, lane.position[pursuer, 0], lane.position[place, 0])
                y = apart(params.side, lane.position[pursuer, 1], lane.position[place, 1])
            length = math.sqrt(x * x + y * y)
            out[b, pursuer, 0] = x / length if length > 0.0 else 0.0
            out[b, pursuer, 1] = y / length if length > 0.0 else 0.0


@kernel
def deal(seed: int, lanes: Records, roles: Ints) -> None:
    """Write a permutation of n roles for each lane's episode, shape (B, n)."""
    for b in range(lanes.shape[0]):
        for role in range(roles.shape[1]):
            roles[b, role] = role
        shuffle(roles[b], episode_key(lanes[b].key, seed), 0, ROLES)


@functools.cache
def shooting(rules: Any) -> Kernel:
    """Return the loop over lanes that plans in copies of them, by these rules.

    ``shoot(code, plan, lanes, due, fresh, held, scratch...)`` writes the best plans found, shape (B, pieces, n), for
    lanes in which they are due. It starts from the second piece of the previous plan, unless the lane is fresh.

    The loops are inside this function, which is therefore long, because they call the rules that it is given.
    """
    step = rules.step

    @rule
    def score(
        lane: Lane,
        params: Record,
        plan: Record,
        tried: Floats,
        directions: Floats,
        closest: Floats,
        reward: Floats,
        fact: Facts,
    ) -> float:
        closest[:] = math.inf
        total = 0.0
        for k in range(plan.horizon):
            if k % plan.every == 0:
                for pursuer in range(tried.shape[1]):
                    directions[pursuer, 0] = math.cos(tried[k // plan.every, pursuer])
                    directions[pursuer, 1] = math.sin(tried[k // plan.every, pursuer])
            step(lane, directions, params, reward, fact)
            lane.time += 1
            total += approach(lane, params, closest)
            if lane.left == 0:
                break
        return closest.sum() + plan.weight * total / (plan.horizon * tried.shape[1])

    def shoot(
        code: Records,
        plan: Records,
        lanes: Records,
        due: Flags,
        fresh: Flags,
        held: Floats,
        trial: Records,
        tried: Floats,
        directions: Floats,
        closest: Floats,
        reward: Floats,
        facts: Records,
    ) -> None:
        params, plan = code[0], plan[0]
        for b in range(lanes.shape[0]):
            if not due[b]:
                continue
            best, lowest = held[b], math.inf
            key, time = episode_key(lanes[b].key, plan.seed), lanes[b].time
            for piece in range(best.shape[0] - 1):
                copyto(best[piece], best[piece + 1])
            for sample in range(plan.samples):
                if sample < plan.explored and (sample > 0 or fresh[b]):
                    explore(key, time, plan, sample, tried)
                else:
                    copy_plan(tried, best)
                    if sample > 0:  # the first sample is the rest of the previous plan
                        refine(key, time, plan, sample, tried)
                trial[0] = lanes[b]
                found = score(trial[0], params, plan, tried, directions, closest, reward, facts[0])
                if found < lowest:
                    lowest = found
                    copy_plan(best, tried)

    return kernels_of(rules, shoot)["shoot"]
