"""The rules of FairHarvest's variant ``melting_pot`` on one lane, in the order in which a frame is played."""
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
# (compiled rules: Numba infers their types from the call)

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from fair_envs.core import Rules, rule
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import integer, shuffle, uniform
from fair_envs.envs.harvest.melting_pot_params import CUBIC_RIPENING, MeltingPotParams
from fair_envs.envs.harvest.params import RANDOM_ORDER
from fair_envs.envs.harvest.rules import NO_TURN, falls_on, is_granted
from fair_envs.support.aliases import Facts, Floats, Floats32, Ints, Lane, Record

# Actions
NOOP, FORWARD, BACKWARD, STEP_LEFT, STEP_RIGHT, TURN_LEFT, TURN_RIGHT, ZAP = range(8)
PLANT_RED, PLANT_GREEN, PLANT_BLUE = range(8, 11)
ACTION_NAMES = (
    "noop",
    "forward",
    "backward",
    "step left",
    "step right",
    "turn left",
    "turn right",
    "zap",
    "plant red",
    "plant green",
    "plant blue",
)

# Colours; an agent's preference is one of them
GREY, RED, GREEN, BLUE = range(4)
COLOUR_NAMES = ("red", "green", "blue")

# Contents of a cell: nothing, or a patch. Its code is its colour if unripe, and its colour plus RIPE if ripe
NO_PATCH, RIPE = 0, 3

# Orientations, clockwise; y grows downwards
NORTH, EAST, SOUTH, WEST = range(4)
DIRECTIONS = ((0, -1), (1, 0), (0, 1), (-1, 0))
STEPS = ((1, 0), (-1, 0), (0, -1), (0, 1))  # ahead and to the right: forward, backward, step left, step right
OUT_OF_THE_WORLD = -1  # x and y of a removed agent

# Random streams
PLACEMENT, ORIENTATION, ORDER, RIPENING, DISCLOSURE, RESPAWN_CELL, RESPAWN_ORIENTATION = range(7)

# Codes of a cell in the window: FLOOR_SEEN + the cell's content, or an agent by colour, with other codes if marked
NOTHING_SEEN, FLOOR_SEEN, AGENT_SEEN, MARKED_SEEN = 0, 1, 8, 12
LARGEST_CODE = MARKED_SEEN + BLUE

# An agent's own state, with which its observation begins; features add values that the agent does not observe
OWN = ("sensitive", "preference", "ready_to_shoot", "ready_to_plant", "frozen")
FEATURES = (*OWN, "x", "y", "marked", "present", "red_share", "green_share", "blue_share")


# ---------------------------------------------------------------------------------------------- the start


@rule
def start(lane: Lane, params: Record) -> None:
    """Assign the agents' preferences and attributes, and place agents and patches on shuffled cells."""
    assign_preferences(lane, params)
    assign_sensitive(lane, params)
    lane.x[:] = OUT_OF_THE_WORLD
    cells = np.arange(params.width * params.height)
    shuffle(cells, lane.key, 0, PLACEMENT)
    for agent in range(params.agents):
        direction = integer(lane.key, 0, ORIENTATION, agent, 4)
        put_agent(lane, agent, cells[agent] % params.width, cells[agent] // params.width, direction)
    for k in range(params.patches):
        cell = cells[params.agents + k]
        lane.patch[cell % params.width, cell // params.width] = RED + k % params.colours


@rule
def assign_preferences(lane: Lane, params: Record) -> None:
    """Spread preferences for blue and green evenly over the agents by their shares; the others prefer red."""
    rest = 1 - params.blue_fraction
    green_of_rest = params.green_fraction / rest if rest > 0 else 0.0
    seen = 0  # among the rest
    for agent in range(params.agents):
        if falls_on(agent, params.blue_fraction):
            lane.preference[agent] = BLUE
        else:
            lane.preference[agent] = GREEN if falls_on(seen, green_of_rest) else RED
            seen += 1


@rule
def assign_sensitive(lane: Lane, params: Record) -> None:
    """Assign the sensitive attribute to its share of the agents of each preference."""
    seen = np.zeros(1 + BLUE, np.int64)
    for agent in range(params.agents):
        stratum = lane.preference[agent]
        lane.sensitive[agent] = falls_on(seen[stratum], params.sensitive_fraction)
        seen[stratum] += 1


@rule
def put_agent(lane: Lane, agent: int, x: int, y: int, direction: int) -> None:
    """Place an agent that is out of the world."""
    lane.x[agent] = x
    lane.y[agent] = y
    lane.direction[agent] = direction
    lane.occupant[x, y] = 1 + agent


# ---------------------------------------------------------------------------------------------- a frame


@rule
def step(lane: Lane, action: Ints, params: Record, reward: Floats, facts: Facts) -> Any:
    """Play a frame: patches ripen, agents turn or move and eat, then beams, then respawns; it never terminates."""
    ripen(lane, params)
    for agent in range(params.agents):
        remove_or_recover(lane, agent, params)
        facts.action[agent] = what_is_tried(lane, agent, action[agent], params)
    order = order_of_frame(lane, params)
    for agent in order:  # an action turns or moves, so it makes no difference that M plays all turns first
        turn_or_move(lane, agent, params, reward, facts)
    fire_beams(lane, order, params, reward, facts)
    for agent in range(params.agents):
        respawn(lane, agent, params)
        lane.total[agent] += reward[agent]
        facts.outcome[agent] = reward[agent]
    return False


@rule
def order_of_frame(lane: Lane, params: Record) -> Ints:
    """Return the order in which agents move, and in which they fire."""
    order = np.arange(params.agents)
    if params.turn_order == RANDOM_ORDER:
        shuffle(order, lane.key, lane.time, ORDER)
    return order


@rule
def is_present(lane: Lane, agent: int) -> bool:
    """Return whether the agent is in the world."""
    return lane.x[agent] != OUT_OF_THE_WORLD


@rule
def remove_or_recover(lane: Lane, agent: int, params: Record) -> None:
    """Remove an agent a frame after its last hit, or count down its absence, or remove its mark."""
    if lane.doomed[agent]:
        remove(lane, agent, params)
    elif not is_present(lane, agent):
        lane.away[agent] -= 1
    elif lane.marked[agent]:
        lane.since_hit[agent] += 1
        if lane.since_hit[agent] >= params.recovery_frames:
            lane.marked[agent] = 0


@rule
def remove(lane: Lane, agent: int, params: Record) -> None:
    """Remove an agent from the world; it comes back grey."""
    lane.occupant[lane.x[agent], lane.y[agent]] = 0
    lane.x[agent] = OUT_OF_THE_WORLD
    lane.y[agent] = OUT_OF_THE_WORLD
    lane.away[agent] = params.respawn_frames
    lane.doomed[agent] = 0
    lane.frozen[agent] = 0
    lane.colour[agent] = GREY


@rule
def what_is_tried(lane: Lane, agent: int, action: int, params: Record) -> int:
    """Return the action if the agent may try it in this frame, else NO_TURN; count down a frozen frame."""
    frozen = lane.frozen[agent] > 0
    if frozen:
        lane.frozen[agent] -= 1
        lane.zap_wait[agent] = params.zap_cooldown + 1  # this frame itself counts down by one
    if not is_present(lane, agent) or not is_granted(lane, agent, params):
        return NO_TURN
    return NO_TURN if frozen and FORWARD <= action <= ZAP else action


# ------------------------------------------------------------------------------------------------ movement


@rule
def turn_or_move(lane: Lane, agent: int, params: Record, reward: Floats, facts: Facts) -> None:
    """Let the agent turn, or move into a cell without an agent and eat a ripe patch there; a blocked move is a NOOP."""
    action = facts.action[agent]
    if TURN_LEFT <= action <= TURN_RIGHT:
        lane.direction[agent] = (lane.direction[agent] + (1 if action == TURN_RIGHT else 3)) % 4
    elif FORWARD <= action <= STEP_RIGHT:
        ahead, right = STEPS[action - FORWARD]
        x, y = cell_from(lane, agent, ahead, right, params)
        if lane.occupant[x, y] != 0:
            facts.action[agent] = NOOP
            return
        lane.occupant[lane.x[agent], lane.y[agent]] = 0
        put_agent(lane, agent, x, y, lane.direction[agent])
        if lane.patch[x, y] > RIPE:
            reward[agent] += eat(lane, agent, x, y, params)


@rule
def cell_from(lane: Lane, agent: int, ahead: int, right: int, params: Record) -> tuple[int, int]:
    """Return the cell at a distance ahead and to the right of an agent, by its orientation; the world is a torus."""
    dx, dy = DIRECTIONS[lane.direction[agent]]
    x = (int(lane.x[agent]) + ahead * dx - right * dy) % params.width
    y = (int(lane.y[agent]) + ahead * dy + right * dx) % params.height
    return x, y


@rule
def eat(lane: Lane, agent: int, x: int, y: int, params: Record) -> float:
    """Eat the berry; the patch is unripe again. The agent turns grey with probability 1 - the largest colour share."""
    colour = lane.patch[x, y] - RIPE
    set_unripe(lane, x, y, colour)
    largest_share = lane.count.max() / lane.count.sum()
    if uniform(lane.key, lane.time, DISCLOSURE, agent) < 1 - largest_share:
        lane.colour[agent] = GREY
    return params.eat_preferred if colour == lane.preference[agent] else params.eat_other


@rule
def set_unripe(lane: Lane, x: int, y: int, colour: int) -> None:
    """Make a patch an unripe one of the colour, and start its wait."""
    lane.patch[x, y] = colour
    lane.unripe_for[x, y] = 0


# --------------------------------------------------------------------------------------------------- beams


@rule
def fire_beams(lane: Lane, order: Ints, params: Record, reward: Floats, facts: Facts) -> None:
    """Let agents that are ready zap and plant; attempts by other agents are NOOPs."""
    planted = np.full(params.agents, -1)  # the patch that each agent's beam hit in this frame
    for agent in order:
        action = facts.action[agent]
        ready_to_shoot = is_ready(lane.zap_wait, agent)
        ready_to_plant = is_ready(lane.plant_wait, agent)
        if action == ZAP and ready_to_shoot:
            lane.zap_wait[agent] = params.zap_cooldown
            zap(lane, agent, params, reward)
        elif action >= PLANT_RED and ready_to_plant:
            lane.plant_wait[agent] = params.plant_cooldown
            plant(lane, agent, RED + action - PLANT_RED, planted, params)
        elif action >= ZAP:
            facts.action[agent] = NOOP


@rule
def is_ready(wait: Any, agent: int) -> bool:
    """Return whether a beam was ready when the frame began; if not, count down its wait."""
    if wait[agent] > 0:
        wait[agent] -= 1
        return False
    return True


@rule
def zap(lane: Lane, agent: int, params: Record, reward: Floats) -> None:
    """Send the beam ahead, and in columns on either side from beside the agent, each a cell shorter than the last."""
    for side in (-1, 1):
        for out in range(1, params.zap_radius + 1):
            if zap_along(lane, agent, 0, params.zap_length - out + 1, side * out, params, reward) == 0:
                break  # an agent right beside blocks the columns further out
    zap_along(lane, agent, 1, params.zap_length, 0, params, reward)


@rule
def zap_along(lane: Lane, agent: int, first: int, length: int, right: int, params: Record, reward: Floats) -> int:
    """Hit the first agent in a line of `length` cells; return the number of cells before it, or -1 if there is none."""
    for k in range(length):
        x, y = cell_from(lane, agent, first + k, right, params)
        if lane.occupant[x, y] != 0:
            hit(lane, lane.occupant[x, y] - 1, params, reward)
            return k
    return -1


@rule
def hit(lane: Lane, target: int, params: Record, reward: Floats) -> None:
    """Freeze and mark an unmarked agent; a marked one pays and leaves a frame later, unaffected by further hits."""
    if lane.doomed[target]:
        return
    if lane.marked[target]:
        lane.marked[target] = 0
        lane.doomed[target] = 1
        reward[target] += params.removal_reward
    else:
        lane.marked[target] = 1
        lane.since_hit[target] = 0
        lane.frozen[target] = params.freeze_frames


@rule
def plant(lane: Lane, agent: int, colour: int, planted: Ints, params: Record) -> None:
    """Send the beam ahead to the first cell with a patch or an agent; only a patch's first hit in a frame can count."""
    for ahead in range(1, params.plant_length + 1):
        x, y = cell_from(lane, agent, ahead, 0, params)
        if lane.patch[x, y] != NO_PATCH:
            here = x * params.height + y
            if not (planted == here).any():
                change_colour(lane, agent, x, y, colour)
            planted[agent] = here
            return
        if lane.occupant[x, y] != 0:
            return


@rule
def change_colour(lane: Lane, agent: int, x: int, y: int, colour: int) -> None:
    """Give an unripe patch of another colour this colour; the agent then has it too."""
    if lane.patch[x, y] <= RIPE and lane.patch[x, y] != colour:
        set_unripe(lane, x, y, colour)
        lane.colour[agent] = colour


# ----------------------------------------------------------------------------------------------- respawns


@rule
def respawn(lane: Lane, agent: int, params: Record) -> None:
    """Bring back an agent after its absence, to a random free cell without a patch; it must wait before it can zap."""
    if is_present(lane, agent) or lane.away[agent] > 0:
        return
    attempt = 0
    while True:  # the check of the parameters leaves a free cell for every agent
        cell = integer(lane.key, lane.time, RESPAWN_CELL, agent + attempt * params.agents, params.width * params.height)
        x, y = cell % params.width, cell // params.width
        if lane.patch[x, y] == NO_PATCH and lane.occupant[x, y] == 0:
            break
        attempt += 1
    put_agent(lane, agent, x, y, integer(lane.key, lane.time, RESPAWN_ORIENTATION, agent, 4))
    lane.zap_wait[agent] = params.zap_cooldown


# ----------------------------------------------------------------------------------------------- ripening


@rule
def count_patches(lane: Lane) -> None:
    """Count the patches of each colour, ripe and unripe."""
    for k in range(BLUE):
        patches = 0
        for growing in lane.patch.flat:
            patches += (growing == RED + k) | (growing == RIPE + RED + k)
        lane.count[k] = patches


@rule
def ripen(lane: Lane, params: Record) -> None:
    """Let each patch that has waited ripen, with a probability set by the number of patches of its colour."""
    chance_of = np.zeros(1 + BLUE)
    for colour in range(RED, BLUE + 1):
        chance_of[colour] = ripening_chance(lane.count[colour - RED], params)
    for x in range(params.width):
        for y in range(params.height):
            colour = lane.patch[x, y]
            if colour == NO_PATCH or colour > RIPE:
                continue
            if lane.unripe_for[x, y] < params.ripening_wait:
                lane.unripe_for[x, y] += 1
            waited = lane.unripe_for[x, y] >= params.ripening_wait
            if waited and uniform(lane.key, lane.time, RIPENING, x + params.width * y) < chance_of[colour]:
                lane.patch[x, y] = colour + RIPE


@rule
def ripening_chance(count: int, params: Record) -> float:
    """Return the probability per frame that a patch ripens, given the number of patches of its colour."""
    many = float(count)
    if params.ripening == CUBIC_RIPENING:
        return params.ripening_rate * many + params.ripening_rate * params.cubic_rate * many**3
    return params.ripening_rate * many


# -------------------------------------------------------------------------------------------- observations


@rule
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write each agent's own state, and its window row by row from the farthest ahead, left to right."""
    count_patches(lane)
    codes = codes_of_cells(lane, params)
    for agent in range(params.agents):
        row = observation[agent]
        write_own(lane, agent, params, params.scaled, row)
        write_window(lane, agent, params, codes, row[len(OWN) :])


@rule
def write_own(lane: Lane, agent: int, params: Record, scaled: bool, row: Floats32) -> None:
    """Write the entries of `OWN`."""
    row[0] = lane.sensitive[agent]
    row[1] = lane.preference[agent] / (params.colours if scaled else 1)
    row[2] = readiness(lane, agent, lane.zap_wait[agent], params.zap_cooldown) * (lane.frozen[agent] == 0)
    row[3] = readiness(lane, agent, lane.plant_wait[agent], params.plant_cooldown)
    row[4] = lane.frozen[agent] / (max(params.freeze_frames, 1) if scaled else 1)


@rule
def readiness(lane: Lane, agent: int, wait: int, cooldown: int) -> float:
    """Return 1 if an agent can fire in the next frame, less the longer it must still wait; 0 out of the world."""
    if not is_present(lane, agent):
        return 0.0
    return 1.0 if wait == 0 else max(1 - wait / max(cooldown, 1), 0.0)


@rule
def codes_of_cells(lane: Lane, params: Record) -> Floats32:
    """Return the code of each cell, flattened; an agent covers the patch that it stands on."""
    unit = 1 / LARGEST_CODE if params.scaled else 1.0
    codes = np.empty((params.width, params.height), np.float32)
    for x in range(params.width):
        for y in range(params.height):
            codes[x, y] = (FLOOR_SEEN + lane.patch[x, y]) * unit
    for agent in range(params.agents):
        if is_present(lane, agent):
            seen = (MARKED_SEEN if lane.marked[agent] else AGENT_SEEN) + lane.colour[agent]
            codes[lane.x[agent], lane.y[agent]] = seen * unit
    return codes.ravel()


@rule
def write_window(lane: Lane, agent: int, params: Record, codes: Floats32, window: Floats32) -> None:
    """Write the codes of the cells that the agent sees; all NOTHING_SEEN while it is out of the world."""
    if not is_present(lane, agent):
        window[:] = NOTHING_SEEN
        return
    columns = params.view_left + 1 + params.view_right
    across = np.empty(columns, np.int64)  # indices in `codes` of the cells on either side of the agent
    for j in range(columns):
        across[j] = place_from(lane, agent, 0, j - params.view_left, params)
    first = 0
    for ahead in range(params.view_ahead, -params.view_behind - 1, -1):
        further = place_from(lane, agent, ahead, 0, params) - across[params.view_left]
        for j in range(columns):
            window[first + j] = codes[across[j] + further]
        first += columns


@rule
def place_from(lane: Lane, agent: int, ahead: int, right: int, params: Record) -> int:
    """Return the index of the cell at this position relative to an agent, in a flattened array of all cells."""
    x, y = cell_from(lane, agent, ahead, right, params)
    return x * params.height + y


@rule
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write the agents' records, with features in [0, 1]."""
    patches = max(lane.count.sum(), 1)
    for agent in range(params.agents):
        facts.individual[agent] = agent
        facts.sensitive[agent, 0] = lane.sensitive[agent]
        facts.group[agent] = lane.sensitive[agent]
        facts.legitimate[agent, 0] = lane.preference[agent] - RED
        row = facts.features[agent]
        write_own(lane, agent, params, True, row)
        write_place(lane, agent, params, row[len(OWN) :])
        for k in range(BLUE):
            row[len(OWN) + 4 + k] = lane.count[k] / patches


@rule
def write_place(lane: Lane, agent: int, params: Record, row: Floats32) -> None:
    """Write the agent's position, 0 if out of the world, whether it is marked, and whether it is in the world."""
    row[0] = max(lane.x[agent], 0) / max(params.width - 1, 1)
    row[1] = max(lane.y[agent], 0) / max(params.height - 1, 1)
    row[2] = lane.marked[agent]
    row[3] = is_present(lane, agent)


# ------------------------------------------------------------------------------------------ the environment


class MeltingPotHarvest(Rules):
    """Allelopathic harvest as in Melting Pot, in which some agents have half the turns.

    **Description.** Agents walk on a torus (x to the right, y downwards) among patches of red, green and blue berries.
    Each agent prefers one colour. Unripe patches ripen by themselves, sooner if more patches have their colour
    (allelopathy), so it pays to make all patches the same colour. Agents change a patch's colour with a planting beam,
    eat ripe berries by walking onto them, and freeze or remove each other with a zapping beam. The rules are those of
    Melting Pot's ``allelopathic_harvest__open``, M below; the sensitive attribute is that of La Malfa et al. (2025).

    **Who decides and who is affected.** The agents decide and are affected; see `Harvest`.

    **Sensitive attribute and legitimate factors.** ``half_speed``: only every second action of agents with the
    attribute counts, the first at t = 1; they are half of the agents of each preference. Legitimate factor: an agent's
    preferred colour (``preference``).

    **Action space.** ``Discrete(11)`` per agent: 0 noop, 1 forward, 2 backward, 3 step left, 4 step right, 5 turn left,
    6 turn right, 7 zap, 8 plant red, 9 plant green, 10 plant blue; ``Discrete(10)`` with two colours. Moves keep the
    orientation and are blocked by agents, not by patches.

    **Observation space.** ``Box`` of 126 numbers per agent. First its own state: whether it has the sensitive
    attribute; its preferred colour (1 red, 2 green, 3 blue); readiness to zap and to plant (1 ready, less the more of
    the cooldown is left, 0 if frozen or removed; a frozen agent can still be ready to plant); the number of frames for
    which it stays frozen. Then a window of 11 x 11 cells in front of it, row by row from the farthest ahead, each from
    left to right, with the agent itself in row 9 and column 5 (from 0). Codes of cells: 0 nothing (all cells while the
    agent is removed), 1 floor, 2 to 4 unripe red, green, blue, 5 to 7 ripe red, green, blue, 8 to 11 an agent that is
    grey, red, green, blue, 12 to 15 the same for marked agents. An agent covers the patch that it stands on. By default
    all numbers are scaled to [0, 1]: codes are divided by 15, the preference by the number of colours, frames by
    ``freeze_frames``.

    **Rewards.** Eating 2 in the preferred colour, 1 otherwise; being removed -10. Planting and zapping earn nothing.

    **Interactions.** One individual per agent. ``fair_action`` is the action carried out: 0 for a blocked move and for
    a beam that is not ready; -1 if the agent could not act: removed, turn not granted, or frozen and trying to move or
    zap. ``fair_outcome`` is its reward. ``fair_features``, all in [0, 1]: the five numbers of its own state, x, y,
    whether it is marked, whether it is in the world, and the colours' shares of the patches. There is no ground truth:
    ``fair_feedback`` stays -1.

    **Starting state.** Agents with random orientations, and unripe patches, the same number of each colour, on cells
    drawn without replacement. Preferences alternate between red and green; every second agent of each preference has
    the attribute.

    **Episode end.** Truncation after ``horizon`` frames; never termination.

    **Order of a frame.** Patches ripen. Removed agents leave. Agents turn or move, one after another; an agent that
    enters the cell of a ripe patch eats. Then they fire, in the same order. Last, removed agents come back.

    * *Ripening.* In its tenth frame after the start or after a change, and from then on, an unripe patch ripens with
      probability 5e-6 times the number of patches of its colour, ripe and unripe: 5.8e-4 for 116 patches.
    * *Eating* makes a patch unripe again, in the same colour. An agent that stands on a patch must leave and come back.
    * *Planting.* The beam reaches three cells ahead and stops at the first cell with a patch or an agent. The patch
      takes the beam's colour if it is unripe, of another colour, and not hit before in this frame. Then two frames of
      cooldown. An agent has the colour that it planted last; eating turns it grey with probability 1 - the largest
      share of a colour.
    * *Zapping.* The beam reaches three cells ahead, and as many in the columns on either side, counted from beside the
      agent. It passes patches and stops at the first agent of each column. Then four frames of cooldown. The first hit
      freezes its target for 25 frames, in which it can only plant, and marks it for 50. A hit on a marked agent costs
      it 10. The agent leaves a frame later and comes back after 25 frames, grey and unmarked, on a random free cell
      without a patch.

    **Arguments.** The fields of `MeltingPotParams`, each with its default and source. ``sensitive_fraction=0`` gives
    M's game.

    **Differences from Melting Pot.**

    * M has one map; here the cells of patches are drawn anew in each episode.
    * M shows 88 x 88 pixels, with beams for a frame; here the window holds codes, without beams.
    * In M a frozen agent can turn and move again in the 25th frame, and a removed one is back after 26, because its
      counters skip a frame: ``freeze_frames=24``, ``respawn_frames=26``.
    * By M's sources, an agent also eats what ripens under it, and a second zap in the frame of the last one counts as
      the first on the agent that comes back. Neither happens here, and there is no switch.

    **References.** R. Koster et al., "Model-free conventions in multi-agent reinforcement learning with heterogeneous
    preferences", arXiv 2010.09054, 2020. J. Z. Leibo et al., "Scalable Evaluation of Multi-Agent Reinforcement Learning
    with Melting Pot", ICML 2021. G. La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy
    Optimization", arXiv 2502.03953, 2025.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "harvest_melting_pot"
    drawn_by: ClassVar[str] = "fair_envs.envs.harvest.melting_pot_render:MeltingPotRenderer"
    action_names: ClassVar[Sequence[str]] = ACTION_NAMES
    keys: ClassVar[Mapping[str, int]] = {
        "up": FORWARD,
        "down": BACKWARD,
        "a": STEP_LEFT,
        "d": STEP_RIGHT,
        "left": TURN_LEFT,
        "right": TURN_RIGHT,
        "space": ZAP,
        "1": PLANT_RED,
        "2": PLANT_GREEN,
        "3": PLANT_BLUE,
    }
    Params: ClassVar[type] = MeltingPotParams
    multi_agent = True
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def check(self, params: MeltingPotParams) -> None:
        """Raise ValueError if agents or patches do not fit into the world, or if beams would go around it."""
        cells = params.width * params.height
        if cells > np.iinfo(np.int16).max:
            raise ValueError(f"width * height must be at most {np.iinfo(np.int16).max} cells, got {cells}")
        if params.agents + params.patches > cells:
            raise ValueError(
                f"agents + patches must be at most the {cells} cells, got {params.agents + params.patches}"
            )
        reach = max(params.plant_length, params.zap_length, 2 * params.zap_radius)
        if min(params.width, params.height) <= reach:
            smaller = min(params.width, params.height)
            raise ValueError(f"width and height must be above {reach}, the reach of the beams, got {smaller}")
        if params.colours == 2 and params.blue_fraction > 0:
            raise ValueError(f"blue_fraction must be 0 with two colours, got {params.blue_fraction}")
        if params.green_fraction + params.blue_fraction > 1:
            total = params.green_fraction + params.blue_fraction
            raise ValueError(f"green_fraction + blue_fraction must be at most 1, got {total}")

    def lane(self, params: MeltingPotParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        agents, cells = params.agents, (params.width, params.height)
        return [
            ("patch", np.int8, cells),  # NO_PATCH, or its colour, or RIPE + its colour
            ("unripe_for", np.int8, cells),  # unripe frames, up to the wait
            ("occupant", np.int8, cells),  # 0 empty, 1 + i agent i
            ("x", np.int16, agents),  # -1: out of the world
            ("y", np.int16, agents),  # grows downwards
            ("direction", np.int8, agents),  # NORTH, EAST, SOUTH or WEST
            ("preference", np.int8, agents),  # RED, GREEN or BLUE
            ("sensitive", np.int8, agents),  # 1: only every second action counts
            ("colour", np.int8, agents),  # colour that it last planted; or GREY
            ("marked", np.int8, agents),  # 1: the next hit removes it
            ("since_hit", np.int16, agents),  # frames since the last hit, while marked
            ("frozen", np.int16, agents),  # remaining frames without moving and zapping
            ("doomed", np.int8, agents),  # 1: leaves the world at the start of the next frame
            ("away", np.int16, agents),  # remaining frames out of the world
            ("zap_wait", np.int16, agents),  # remaining frames without zapping
            ("plant_wait", np.int16, agents),  # remaining frames without planting
            ("total", np.float32, agents),  # rewards of the episode so far
            ("count", np.int16, BLUE),  # patches of each colour when the lane was last observed
        ]

    def fair_spec(self, params: MeltingPotParams) -> FairSpec:
        """Return who is affected: the agents."""
        return FairSpec(
            individuals=params.agents,
            actions=number_of_actions(params),
            features=FEATURES,
            sensitive={"half_speed": ("no", "yes")},
            legitimate={"preference": COLOUR_NAMES[: params.colours]},
            groups=("full_speed", "half_speed"),
            same_individuals=True,
        )

    def agents(self, params: MeltingPotParams) -> int:
        """Return the number of agents."""
        return params.agents

    def observation_space(self, params: MeltingPotParams) -> gym.spaces.Box:
        """Return the bounds of one agent's observation."""
        rows, columns = window_shape(params)
        high = np.ones(len(OWN) + rows * columns, np.float32)
        if not params.scaled:
            high[1], high[4] = params.colours, params.freeze_frames
            high[len(OWN) :] = LARGEST_CODE
        return gym.spaces.Box(np.zeros_like(high), high, dtype=np.float32)

    def observed_features(self, params: MeltingPotParams) -> tuple[str, ...]:
        """Return the names of the entries before the window."""
        return OWN

    def action_space(self, params: MeltingPotParams) -> gym.spaces.Discrete:
        """Return the eleven actions, ten with two colours."""
        return gym.spaces.Discrete(number_of_actions(params))


def number_of_actions(params: MeltingPotParams) -> int:
    """Return the number of actions of an agent, with one planting action for each colour."""
    return PLANT_RED + params.colours


def window_shape(params: MeltingPotParams) -> tuple[int, int]:
    """Return the rows and columns of an agent's window: the shape of its observation after `OWN`."""
    return params.view_ahead + 1 + params.view_behind, params.view_left + 1 + params.view_right
