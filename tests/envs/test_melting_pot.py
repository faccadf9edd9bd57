"""The rules of the variant ``melting_pot`` on small scenes: a torus of 7 x 5 cells and up to three agents."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.core import Lanes, Step
from fair_envs.core.compilation import COMPILED
from fair_envs.envs.harvest.melting_pot import (
    BACKWARD,
    BLUE,
    EAST,
    FORWARD,
    GREEN,
    GREY,
    NOOP,
    NORTH,
    OUT_OF_THE_WORLD,
    OWN,
    PLANT_BLUE,
    PLANT_GREEN,
    PLANT_RED,
    RED,
    RIPE,
    SOUTH,
    STEP_LEFT,
    STEP_RIGHT,
    TURN_LEFT,
    TURN_RIGHT,
    WEST,
    ZAP,
    MeltingPotHarvest,
    ripening_chance,
    window_shape,
)
from fair_envs.envs.harvest.rules import NO_TURN
from fair_envs.support.aliases import Floats32
from fair_envs.support.parameters import encode
from tests.helpers import assert_same, uncompiled

SMALL: Mapping[str, Any] = {
    "width": 7,
    "height": 5,
    "agents": 3,
    "patches": 0,
    "sensitive_fraction": 0.0,
    "turn_order": "index",
    "ripening_rate": 0.0,
    "scaled": False,
}
FAR = 10_000  # frames
Cell = tuple[int, int]

compiled_only = pytest.mark.skipif(not COMPILED, reason="too slow without compilation")


class Player(NamedTuple):
    """An agent of a scene."""

    x: int
    y: int
    direction: int = NORTH
    preference: int = RED


def scene(*players: Player, patches: Mapping[Cell, int] | None = None, count: int = 1, **parameters: Any) -> Lanes:
    """Return lanes that hold these players, agents 0, 1, ..., and these patches, and nothing else."""
    lanes = Lanes(MeltingPotHarvest(**{**SMALL, **parameters}), count)
    lanes.seed(0)
    lanes.restart()
    lanes.records["occupant"] = 0
    lanes.records["away"] = FAR
    for name in ("x", "y"):
        lanes.records[name] = OUT_OF_THE_WORLD
    for i, player in enumerate(players):
        lanes.records["away"][:, i] = 0
        for name, value in player._asdict().items():
            lanes.records[name][:, i] = value
        lanes.records["occupant"][:, player.x, player.y] = 1 + i
    for (x, y), code in (patches or {}).items():
        lanes.records["patch"][:, x, y] = code
    lanes.show()
    return lanes


def play(lanes: Lanes, *actions: int) -> Step:
    """Play a frame in which agents 0, 1, ... take these actions, in all lanes; the others do nothing."""
    joint = [*actions, *[NOOP] * (lanes.agents - len(actions))]
    return lanes.advance(np.tile(np.array(joint), (lanes.count, 1)))


def rewards(lanes: Lanes, *actions: int) -> list[float]:
    """Play a frame and return the rewards of the agents that act."""
    return play(lanes, *actions).reward[0, : len(actions)].tolist()  # type: ignore[no-any-return]


def executed(lanes: Lanes, *actions: int) -> list[int]:
    """Play a frame and return what was carried out of these actions."""
    return play(lanes, *actions).facts["action"][0, : len(actions)].tolist()  # type: ignore[no-any-return]


def wait(lanes: Lanes, frames: int) -> None:
    """Let frames pass in which nobody does anything."""
    for _ in range(frames):
        play(lanes)


def at(lanes: Lanes, agent: int = 0) -> Cell:
    """Return where an agent of lane 0 is."""
    return int(lanes.records["x"][0, agent]), int(lanes.records["y"][0, agent])


def state(lanes: Lanes, name: str, agent: int = 0) -> int:
    """Return a field of an agent of lane 0."""
    return int(lanes.records[name][0, agent])


def patch(lanes: Lanes, *cell: int) -> int:
    """Return what grows in a cell of lane 0."""
    return int(lanes.records["patch"][0][cell])


def window(lanes: Lanes, agent: int = 0) -> Floats32:
    """Return what an agent of lane 0 sees, row by row from the farthest ahead."""
    return lanes.observe()[0, agent, len(OWN) :].reshape(window_shape(lanes.rules.params))


def own(lanes: Lanes, name: str, agent: int = 0) -> float:
    """Return what an agent of lane 0 knows of itself."""
    return float(lanes.observe()[0, agent, OWN.index(name)])


def features(step: Step, lanes: Lanes, name: str) -> list[float]:
    """Return a feature of the agents of lane 0."""
    column = lanes.rules.spec.features.index(name)
    return step.facts["features"][0, :, column].tolist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------------- the start


@pytest.fixture(scope="module")
def full() -> Lanes:
    """Return eight lanes of the default world."""
    lanes = Lanes(MeltingPotHarvest(), 8)
    lanes.seed(5)
    lanes.restart()
    return lanes


def test_the_world_is_the_substrates(full: Lanes) -> None:
    patches = full.records["patch"]
    assert patches.shape == (8, 29, 30)
    for colour in (RED, GREEN, BLUE):
        assert (patches == colour).sum(axis=(1, 2)).tolist() == [116] * 8
    assert (patches == 0).sum(axis=(1, 2)).tolist() == [522] * 8
    assert full.agents == 16
    assert full.rules.params.horizon == 2000
    assert full.rules.action_space(full.rules.params) == gym.spaces.Discrete(11)


def test_agents_start_on_cells_of_their_own_without_patches(full: Lanes) -> None:
    records = full.records
    assert ((records["occupant"] > 0) & (records["patch"] > 0)).sum() == 0
    for lane in records:
        assert lane["occupant"][lane["x"], lane["y"]].tolist() == list(range(1, 17))


def test_agents_start_in_random_directions(full: Lanes) -> None:
    counts = np.bincount(full.records["direction"].ravel(), minlength=4)
    assert counts.sum() == 128
    assert counts.min() > 16  # 32 expected, standard deviation 4.9


def test_episodes_start_differently_and_seeds_repeat_them(full: Lanes) -> None:
    again = Lanes(full.rules, 1)
    again.seed(6)
    again.restart()
    assert again.records["patch"][0].tolist() == full.records["patch"][1].tolist()
    again.restart()
    assert again.records["patch"][0].tolist() != full.records["patch"][1].tolist()


def test_preferences_alternate_and_half_of_each_carries_the_attribute(full: Lanes) -> None:
    assert full.records["preference"][0].tolist() == [RED, GREEN] * 8
    for preference in (RED, GREEN):
        carriers = full.records["sensitive"][full.records["preference"] == preference]
        assert carriers.reshape(8, 8).sum(axis=1).tolist() == [4] * 8


def test_a_lane_takes_less_than_four_kibibytes(full: Lanes) -> None:
    assert full.rules.dtype.itemsize < 4096


def test_preferences_follow_their_shares() -> None:
    lanes = Lanes(MeltingPotHarvest(green_fraction=0.25, blue_fraction=0.5), 1)
    lanes.seed(0)
    lanes.restart()
    assert np.bincount(lanes.records["preference"][0]).tolist() == [0, 4, 4, 8]
    assert lanes.records["sensitive"][0].sum() == 8


@pytest.mark.parametrize(
    ("green", "blue", "counts"), [(0.0, 0.0, [16, 0, 0]), (1.0, 0.0, [0, 16, 0]), (0.0, 1.0, [0, 0, 16])]
)
def test_all_agents_may_prefer_one_colour(green: float, blue: float, counts: list[int]) -> None:
    lanes = Lanes(MeltingPotHarvest(green_fraction=green, blue_fraction=blue), 1)
    lanes.seed(0)
    lanes.restart()
    assert np.bincount(lanes.records["preference"][0], minlength=4)[1:].tolist() == counts


def test_with_two_colours_nothing_is_blue() -> None:
    lanes = Lanes(MeltingPotHarvest(colours=2), 1)
    lanes.seed(0)
    lanes.restart()
    assert lanes.rules.action_space(lanes.rules.params) == gym.spaces.Discrete(10)
    assert np.bincount(lanes.records["patch"][0].ravel(), minlength=4).tolist() == [522, 174, 174, 0]
    assert lanes.rules.spec.actions == 10
    assert lanes.rules.spec.legitimate == {"preference": ("red", "green")}


# ------------------------------------------------------------------------------------------------ movement

MOVES = {  # by direction: forward, backward, step left, step right
    NORTH: ((3, 1), (3, 3), (2, 2), (4, 2)),
    EAST: ((4, 2), (2, 2), (3, 1), (3, 3)),
    SOUTH: ((3, 3), (3, 1), (4, 2), (2, 2)),
    WEST: ((2, 2), (4, 2), (3, 3), (3, 1)),
}


@pytest.mark.nojit
@pytest.mark.parametrize("direction", MOVES)
def test_moves_are_relative_to_the_direction_and_keep_it(direction: int) -> None:
    for action, target in zip((FORWARD, BACKWARD, STEP_LEFT, STEP_RIGHT), MOVES[direction], strict=True):
        lanes = scene(Player(3, 2, direction))
        assert executed(lanes, action) == [action]
        assert (at(lanes), state(lanes, "direction")) == (target, direction)
        assert lanes.records["occupant"][0].sum() == lanes.records["occupant"][0][target] == 1


def test_turns_go_through_all_directions_on_the_spot() -> None:
    lanes = scene(Player(3, 2))
    for direction in (EAST, SOUTH, WEST, NORTH):
        assert executed(lanes, TURN_RIGHT) == [TURN_RIGHT]
        assert state(lanes, "direction") == direction
    for direction in (WEST, SOUTH, EAST, NORTH):
        assert executed(lanes, TURN_LEFT) == [TURN_LEFT]
        assert (at(lanes), state(lanes, "direction")) == ((3, 2), direction)


@pytest.mark.parametrize(
    ("direction", "action", "target"),
    [(NORTH, FORWARD, (0, 4)), (NORTH, STEP_LEFT, (6, 0)), (SOUTH, STEP_RIGHT, (6, 0)), (EAST, STEP_LEFT, (0, 4))],
)
def test_the_world_is_a_torus(direction: int, action: int, target: Cell) -> None:
    lanes = scene(Player(0, 0, direction))
    play(lanes, action)
    assert at(lanes) == target


def test_agents_block_each_other_and_patches_do_not() -> None:
    lanes = scene(Player(3, 3), Player(3, 2), patches={(4, 3): GREEN})
    assert executed(lanes, FORWARD) == [NOOP]
    assert at(lanes) == (3, 3)
    assert executed(lanes, STEP_RIGHT) == [STEP_RIGHT]
    assert at(lanes) == (4, 3)


def test_in_index_order_a_cell_goes_to_the_lower_index() -> None:
    lanes = scene(Player(2, 2, EAST), Player(4, 2, WEST))
    assert executed(lanes, FORWARD, FORWARD) == [FORWARD, NOOP]
    assert (at(lanes, 0), at(lanes, 1)) == ((3, 2), (4, 2))


def test_in_index_order_a_cell_is_free_once_a_lower_index_has_left_it() -> None:
    followed = scene(Player(3, 2, EAST), Player(2, 2, EAST))
    assert executed(followed, FORWARD, FORWARD) == [FORWARD, FORWARD]
    following = scene(Player(2, 2, EAST), Player(3, 2, EAST))
    assert executed(following, FORWARD, FORWARD) == [NOOP, FORWARD]


def test_agents_do_not_swap_places() -> None:
    assert executed(scene(Player(2, 2, EAST), Player(3, 2, WEST)), FORWARD, FORWARD) == [NOOP, NOOP]


def test_in_random_order_each_wins_the_cell_about_as_often() -> None:
    lanes = scene(Player(2, 2, EAST), Player(4, 2, WEST), count=400, turn_order="random")
    play(lanes, FORWARD, FORWARD)
    assert 160 < (lanes.records["x"][:, 0] == 3).sum() < 240  # 200 expected, standard deviation 10
    assert ((lanes.records["x"][:, 0] == 3) != (lanes.records["x"][:, 1] == 3)).all()


# ----------------------------------------------------------------------------------------------- ripening


@pytest.mark.nojit
def test_a_patch_cannot_ripen_before_its_tenth_frame() -> None:
    lanes = scene(patches={(1, 1): RED, (2, 2): BLUE}, ripening_rate=1.0)
    wait(lanes, 9)
    assert (patch(lanes, 1, 1), patch(lanes, 2, 2)) == (RED, BLUE)
    wait(lanes, 1)
    assert (patch(lanes, 1, 1), patch(lanes, 2, 2)) == (RED + RIPE, BLUE + RIPE)


def test_planting_and_eating_begin_the_wait_anew() -> None:
    lanes = scene(Player(3, 3), patches={(3, 2): RED}, ripening_rate=1.0)
    wait(lanes, 8)
    play(lanes, PLANT_GREEN)
    wait(lanes, 9)
    assert patch(lanes, 3, 2) == GREEN
    wait(lanes, 1)
    assert patch(lanes, 3, 2) == GREEN + RIPE
    play(lanes, FORWARD)
    wait(lanes, 9)
    assert patch(lanes, 3, 2) == GREEN
    wait(lanes, 1)
    assert patch(lanes, 3, 2) == GREEN + RIPE


def test_the_wait_is_a_parameter() -> None:
    lanes = scene(patches={(1, 1): RED}, ripening_rate=1.0, ripening_wait=0)
    wait(lanes, 1)
    assert patch(lanes, 1, 1) == RED + RIPE


@pytest.mark.parametrize(("count", "linear"), [(116, 5.8e-4), (348, 1.74e-3), (0, 0.0)])
def test_the_chance_to_ripen_grows_with_the_patches_of_the_colour(count: int, linear: float) -> None:
    cubic = linear + 5e-6 * 9e-6 * count**3
    assert ripening_chance(count, encode(MeltingPotHarvest().params)) == pytest.approx(linear)
    assert ripening_chance(count, encode(MeltingPotHarvest(ripening="cubic").params)) == pytest.approx(cubic)


def test_ripe_and_unripe_patches_of_the_colour_count() -> None:
    lanes = scene(patches={(0, 0): RED, (1, 0): RED + RIPE, (2, 0): GREEN, (3, 0): BLUE + RIPE})
    assert lanes.records["count"][0].tolist() == [2, 1, 1]


@compiled_only
@pytest.mark.parametrize(("colours", "chance"), [(3, 5.8e-4), (1, 1.74e-3)])
def test_patches_ripen_as_often_as_the_chance_says(colours: int, chance: float) -> None:
    lanes = Lanes(MeltingPotHarvest(), 16)
    lanes.seed(1)
    lanes.restart()
    if colours == 1:
        lanes.records["patch"][lanes.records["patch"] > 0] = RED
        lanes.show()
    wait(lanes, 109)  # 100 chances each
    expected = 1 - (1 - chance) ** 100
    ripe = (lanes.records["patch"] > RIPE).sum() / (16 * 348)
    assert ripe == pytest.approx(expected, abs=4 * (expected * (1 - expected) / (16 * 348)) ** 0.5)


def test_a_twin_that_behaves_otherwise_meets_the_same_luck() -> None:
    ends = []
    for action in (NOOP, FORWARD):
        lanes = scene(Player(0, 0), patches={(x, y): RED for x in range(1, 7) for y in range(5)}, ripening_rate=0.002)
        for _ in range(40):
            play(lanes, action)
        ends.append(lanes.records["patch"][0])
    assert at(lanes) == (0, 0)
    assert (ends[0] > RIPE).sum() > 5
    assert ends[0].tolist() == ends[1].tolist()


# ------------------------------------------------------------------------------------------------- eating


@pytest.mark.nojit
@pytest.mark.parametrize(("preference", "reward"), [(RED, 2.0), (GREEN, 1.0), (BLUE, 1.0)])
def test_entering_a_ripe_patch_pays_two_for_the_favourite_and_one_otherwise(preference: int, reward: float) -> None:
    lanes = scene(Player(3, 3, preference=preference), patches={(3, 2): RED + RIPE})
    step = play(lanes, FORWARD)
    assert step.reward[0].tolist() == [reward, 0, 0]
    assert step.facts["outcome"][0].tolist() == [reward, 0, 0]
    assert patch(lanes, 3, 2) == RED
    assert lanes.records["total"][0].tolist() == [reward, 0, 0]


def test_entering_an_unripe_patch_pays_nothing() -> None:
    lanes = scene(Player(3, 3), patches={(3, 2): RED})
    assert rewards(lanes, FORWARD) == [0]


def test_what_ripens_under_an_agent_is_eaten_by_leaving_and_entering_again() -> None:
    lanes = scene(Player(3, 3), patches={(3, 2): RED + RIPE})
    assert rewards(lanes, FORWARD) == [2]
    lanes.records["patch"][0, 3, 2] = RED + RIPE
    assert [rewards(lanes, action) for action in (NOOP, TURN_LEFT, TURN_RIGHT, BACKWARD)] == [[0]] * 4
    assert patch(lanes, 3, 2) == RED + RIPE
    assert rewards(lanes, FORWARD) == [2]


def test_the_first_to_enter_gets_the_berry() -> None:
    lanes = scene(Player(2, 2, EAST), Player(4, 2, WEST), patches={(3, 2): RED + RIPE})
    assert rewards(lanes, FORWARD, FORWARD) == [2, 0]


# ------------------------------------------------------------------------------------------------ planting


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("before", "action", "after", "worn"),
    [
        (RED, PLANT_GREEN, GREEN, GREEN),
        (RED, PLANT_BLUE, BLUE, BLUE),
        (BLUE, PLANT_RED, RED, RED),
        (RED, PLANT_RED, RED, GREY),
        (RED + RIPE, PLANT_GREEN, RED + RIPE, GREY),
    ],
)
def test_planting_changes_only_an_unripe_patch_of_another_colour(
    before: int, action: int, after: int, worn: int
) -> None:
    lanes = scene(Player(3, 3), patches={(3, 2): before})
    assert rewards(lanes, action) == [0]
    assert (patch(lanes, 3, 2), state(lanes, "colour")) == (after, worn)


def test_a_ripe_patch_keeps_its_wait_when_it_is_planted_on() -> None:
    lanes = scene(Player(3, 3), patches={(3, 2): RED})
    wait(lanes, 4)
    play(lanes, PLANT_RED)
    assert lanes.records["unripe_for"][0, 3, 2] == 5


def test_the_planting_beam_reaches_three_cells_straight_ahead() -> None:
    everywhere = {(x, y): RED for x in range(7) for y in range(5) if (x, y) != (1, 2)}
    reached = set()
    for cell in everywhere:
        lanes = scene(Player(1, 2, EAST), patches={cell: RED})
        play(lanes, PLANT_GREEN)
        if patch(lanes, *cell) == GREEN:
            reached.add(cell)
    assert reached == {(2, 2), (3, 2), (4, 2)}


def test_the_planting_beam_stops_at_the_first_patch_whatever_it_is() -> None:
    for first in (RED, GREEN, RED + RIPE):
        lanes = scene(Player(3, 4), patches={(3, 3): first, (3, 2): RED})
        play(lanes, PLANT_GREEN)
        assert patch(lanes, 3, 2) == RED


def test_the_planting_beam_stops_at_an_agent_and_reaches_the_patch_under_it() -> None:
    lanes = scene(Player(3, 4), Player(3, 3), patches={(3, 2): RED})
    play(lanes, PLANT_GREEN)
    assert patch(lanes, 3, 2) == RED
    lanes = scene(Player(3, 4), Player(3, 3), patches={(3, 3): RED})
    play(lanes, PLANT_GREEN)
    assert patch(lanes, 3, 3) == GREEN
    assert state(lanes, "frozen", 1) == state(lanes, "marked", 1) == 0


def test_the_colours_share_a_cooldown_of_two_frames() -> None:
    lanes = scene(Player(3, 3), patches={(3, 2): RED})
    assert own(lanes, "ready_to_plant") == 1
    assert executed(lanes, PLANT_GREEN) == [PLANT_GREEN]
    assert own(lanes, "ready_to_plant") == 0
    assert executed(lanes, PLANT_RED) == [NOOP]
    assert own(lanes, "ready_to_plant") == 0.5
    assert executed(lanes, PLANT_BLUE) == [NOOP]
    assert patch(lanes, 3, 2) == GREEN
    assert own(lanes, "ready_to_plant") == 1
    assert executed(lanes, PLANT_BLUE) == [PLANT_BLUE]
    assert patch(lanes, 3, 2) == BLUE


def test_a_beam_that_hits_nothing_cools_down_too() -> None:
    lanes = scene(Player(3, 3))
    assert [executed(lanes, action) for action in (PLANT_RED, PLANT_RED)] == [[PLANT_RED], [NOOP]]
    assert executed(lanes, ZAP) == [ZAP]


def test_a_patch_accepts_one_planting_hit_a_frame() -> None:
    lanes = scene(Player(2, 2, EAST), Player(4, 2, WEST), patches={(3, 2): RED})
    play(lanes, PLANT_GREEN, PLANT_BLUE)
    assert (patch(lanes, 3, 2), state(lanes, "colour", 1)) == (GREEN, GREY)
    lanes = scene(Player(2, 2, EAST), Player(4, 2, WEST), patches={(3, 2): RED})
    play(lanes, PLANT_RED, PLANT_BLUE)  # a hit that changes nothing counts as one
    assert patch(lanes, 3, 2) == RED


def test_moves_come_before_beams() -> None:
    lanes = scene(Player(1, 2, EAST), Player(3, 1, SOUTH))
    play(lanes, ZAP, FORWARD)  # agent 1 walks into the beam of agent 0, who comes first
    assert (at(lanes, 1), state(lanes, "frozen", 1)) == ((3, 2), 25)
    lanes = scene(Player(1, 2, EAST), Player(4, 2, SOUTH))
    play(lanes, ZAP, FORWARD)
    assert state(lanes, "frozen", 1) == 0


# --------------------------------------------------------------------------------------- the colour worn


def share_of_grey_after_eating(patches: Mapping[Cell, int]) -> float:
    """Return the share of 400 agents, blue before, that are grey after they entered a ripe red patch at (3, 2)."""
    lanes = scene(Player(3, 3), patches={(3, 2): RED + RIPE, **patches}, count=400 if COMPILED else 2)
    lanes.records["colour"][:, 0] = BLUE
    assert play(lanes, FORWARD).reward[:, 0].tolist() == [2] * lanes.count
    return float((lanes.records["colour"][:, 0] == GREY).mean())


def test_in_a_monoculture_eating_never_turns_an_agent_grey() -> None:
    assert share_of_grey_after_eating({(0, 0): RED, (1, 0): RED + RIPE}) == 0


@compiled_only
def test_eating_turns_an_agent_grey_the_likelier_the_more_mixed_the_patches_are() -> None:
    mixed = share_of_grey_after_eating({(0, 0): GREEN, (1, 0): BLUE})  # the largest share is 1/3
    green = share_of_grey_after_eating({(x, 0): GREEN for x in range(4)})  # 4/5
    assert mixed == pytest.approx(2 / 3, abs=0.095)  # 4 standard deviations
    assert green == pytest.approx(1 / 5, abs=0.08)


# ------------------------------------------------------------------------------------------------- zapping


def zapped(lanes: Lanes, agent: int) -> bool:
    """Return whether an agent of lane 0 was hit for the first time."""
    return (state(lanes, "marked", agent), state(lanes, "frozen", agent)) == (1, 25)


@pytest.mark.parametrize(
    ("direction", "reached"),
    [
        (NORTH, {(3, 3), (3, 2), (3, 1), (2, 4), (2, 3), (2, 2), (4, 4), (4, 3), (4, 2)}),
        (WEST, {(2, 4), (1, 4), (0, 4), (3, 3), (2, 3), (1, 3), (3, 0), (2, 0), (1, 0)}),
    ],
)
def test_a_zap_reaches_three_cells_ahead_and_three_beside_from_its_own_row(direction: int, reached: set[Cell]) -> None:
    cells = [(x, y) for x in range(7) for y in range(5) if (x, y) != (3, 4)]
    lanes = scene(Player(3, 4, direction), Player(0, 0), count=len(cells))
    lanes.records["occupant"][:, 0, 0] = 0
    for lane, (x, y) in zip(lanes.records, cells, strict=True):  # one lane for each cell that the target may be in
        lane["x"][1], lane["y"][1], lane["occupant"][x, y] = x, y, 2
    play(lanes, ZAP)
    assert {cell for cell, lane in zip(cells, lanes.records, strict=True) if lane["marked"][1]} == reached


def test_a_zap_passes_patches_and_stops_at_the_first_agent() -> None:
    lanes = scene(Player(3, 4), Player(3, 2), Player(3, 1), patches={(3, 3): RED, (3, 2): GREEN + RIPE})
    assert rewards(lanes, ZAP) == [0]
    assert (zapped(lanes, 1), zapped(lanes, 2)) == (True, False)
    assert (patch(lanes, 3, 3), patch(lanes, 3, 2)) == (RED, GREEN + RIPE)


def test_a_zap_hits_the_first_agent_of_each_column() -> None:
    lanes = scene(Player(3, 4), Player(2, 4), Player(4, 3))
    play(lanes, ZAP)
    assert (zapped(lanes, 1), zapped(lanes, 2)) == (True, True)


def test_an_agent_right_beside_shields_the_columns_further_out() -> None:
    for beside, is_hit in (((2, 4), False), ((2, 3), True)):
        lanes = scene(Player(3, 4), Player(*beside), Player(1, 4), zap_radius=2)
        play(lanes, ZAP)
        assert (zapped(lanes, 1), zapped(lanes, 2)) == (True, is_hit)


def test_a_column_further_out_is_a_cell_shorter() -> None:
    for y, is_hit in ((3, True), (2, False)):
        lanes = scene(Player(3, 4), Player(1, y), zap_radius=2)
        play(lanes, ZAP)
        assert zapped(lanes, 1) == is_hit


def test_after_a_zap_four_frames_pass_without_one() -> None:
    lanes = scene(Player(3, 3))
    ready, done = [own(lanes, "ready_to_shoot")], []
    for _ in range(6):
        done += executed(lanes, ZAP)
        ready.append(own(lanes, "ready_to_shoot"))
    assert done == [ZAP, NOOP, NOOP, NOOP, NOOP, ZAP]
    assert ready == [1, 0, 0.25, 0.5, 0.75, 1, 0]


@pytest.mark.nojit
def test_the_first_hit_freezes_for_25_frames_in_which_only_planting_works() -> None:
    lanes = scene(Player(3, 4), Player(3, 3), patches={(3, 2): RED})
    assert rewards(lanes, ZAP, NOOP) == [0, 0]
    assert (own(lanes, "frozen", 1), own(lanes, "ready_to_shoot", 1), own(lanes, "ready_to_plant", 1)) == (25, 0, 1)
    frozen = [FORWARD, ZAP, TURN_LEFT, *[BACKWARD] * 20, STEP_LEFT]
    assert [executed(lanes, NOOP, action) for action in frozen] == [[NOOP, NO_TURN]] * 24
    assert executed(lanes, NOOP, PLANT_BLUE) == [NOOP, PLANT_BLUE]
    assert (at(lanes, 1), state(lanes, "direction", 1), patch(lanes, 3, 2)) == ((3, 3), NORTH, BLUE)
    assert own(lanes, "frozen", 1) == 0
    assert executed(lanes, NOOP, FORWARD) == [NOOP, FORWARD]


def test_who_was_frozen_must_wait_a_cooldown_before_it_zaps() -> None:
    lanes = scene(Player(3, 4), Player(3, 3))
    play(lanes, ZAP)
    wait(lanes, 25)
    assert own(lanes, "ready_to_shoot", 1) == 0
    assert [executed(lanes, NOOP, ZAP)[1] for _ in range(5)] == [NOOP, NOOP, NOOP, NOOP, ZAP]


def test_two_that_zap_each_other_in_one_frame_are_both_frozen() -> None:
    lanes = scene(Player(3, 4, NORTH), Player(3, 2, SOUTH))
    assert executed(lanes, ZAP, ZAP) == [ZAP, ZAP]
    assert (zapped(lanes, 0), zapped(lanes, 1)) == (True, True)


@pytest.mark.parametrize(("frames", "cost"), [(5, -10), (49, -10), (50, 0)])
def test_a_second_hit_costs_ten_if_it_comes_within_fifty_frames(frames: int, cost: float) -> None:
    lanes = scene(Player(3, 4), Player(3, 3))
    play(lanes, ZAP)
    wait(lanes, frames - 1)
    assert rewards(lanes, ZAP, NOOP) == [0, cost]
    assert lanes.records["total"][0].tolist() == [0, cost, 0]
    assert zapped(lanes, 1) == (cost == 0)


def test_a_mark_lasts_fifty_frames_each_time() -> None:
    lanes = scene(Player(3, 4), Player(3, 3))
    for _ in range(2):
        play(lanes, ZAP)
        wait(lanes, 49)
        assert state(lanes, "marked", 1) == 1
        wait(lanes, 1)
        assert state(lanes, "marked", 1) == 0


def test_a_marked_agent_is_removed_a_frame_after_its_hit_and_back_25_frames_later() -> None:
    lanes = scene(Player(3, 4), Player(3, 3), patches={(x, 0): RED for x in range(7)})
    play(lanes, ZAP)
    wait(lanes, 4)
    lanes.records["colour"][0, 1] = BLUE
    play(lanes, ZAP)
    assert at(lanes, 1) == (3, 3)
    step = play(lanes, FORWARD, FORWARD)  # its cell is free in the frame in which it leaves
    assert step.facts["action"][0].tolist() == [FORWARD, NO_TURN, NO_TURN]
    assert (at(lanes, 0), at(lanes, 1)) == ((3, 3), (-1, -1))
    for _ in range(24):
        play(lanes)
        assert at(lanes, 1) == (-1, -1)
    assert own(lanes, "ready_to_shoot", 1) == own(lanes, "ready_to_plant", 1) == 0
    assert not window(lanes, 1).any()
    play(lanes)
    x, y = at(lanes, 1)
    assert x >= 0
    assert patch(lanes, x, y) == 0
    assert lanes.records["occupant"][0, x, y] == 2
    assert [state(lanes, name, 1) for name in ("colour", "marked", "frozen")] == [GREY, 0, 0]
    assert lanes.records["total"][0].tolist() == [0, -10, 0]
    assert [executed(lanes, NOOP, ZAP)[1] for _ in range(5)] == [NOOP, NOOP, NOOP, NOOP, ZAP]


def test_an_agent_that_comes_back_is_not_frozen_any_more() -> None:
    lanes = scene(Player(3, 4), Player(3, 3), freeze_frames=100, respawn_frames=1)
    play(lanes, ZAP)
    wait(lanes, 4)
    play(lanes, ZAP)
    wait(lanes, 2)
    assert executed(lanes, NOOP, TURN_LEFT) == [NOOP, TURN_LEFT]


def test_agents_come_back_on_any_free_cell_without_a_patch_and_in_any_direction() -> None:
    free = {(0, 0), (6, 4), (2, 3)}
    taken = {(x, y): RED for x in range(7) for y in range(5) if (x, y) not in free | {(1, 1)}}
    lanes = scene(Player(1, 1), patches=taken, count=300)
    lanes.records["away"][:, 1] = 1
    play(lanes)
    places = list(zip(lanes.records["x"][:, 1].tolist(), lanes.records["y"][:, 1].tolist(), strict=True))
    assert set(places) == free
    assert min(places.count(cell) for cell in free) > 67  # 100 expected, standard deviation 8.2
    assert np.bincount(lanes.records["direction"][:, 1], minlength=4).min() > 45  # 75 expected, standard deviation 7.5


def test_hits_after_the_last_one_miss() -> None:
    lanes = scene(Player(3, 4), Player(3, 3), Player(3, 2, SOUTH))
    lanes.records["marked"][0, 1] = 1
    assert rewards(lanes, ZAP, NOOP, ZAP) == [0, -10, 0]
    assert (state(lanes, "doomed", 1), state(lanes, "marked", 1)) == (1, 0)


# ------------------------------------------------------------------------------------ the sensitive attribute


@pytest.mark.nojit
def test_carriers_ignore_actions_on_even_frames() -> None:
    lanes = scene(Player(3, 2, EAST), Player(3, 3, EAST))
    lanes.records["sensitive"][0, 0] = 1
    done = [executed(lanes, FORWARD, FORWARD) for _ in range(4)]
    assert done == [[NO_TURN, FORWARD], [FORWARD, FORWARD]] * 2
    assert (at(lanes, 0), at(lanes, 1)) == ((5, 2), (0, 3))


def test_cooldowns_pass_on_even_frames_too() -> None:
    lanes = scene(Player(3, 2))
    lanes.records["sensitive"][0, 0] = 1
    wait(lanes, 1)
    assert [executed(lanes, PLANT_RED)[0] for _ in range(5)] == [PLANT_RED, NO_TURN, NOOP, NO_TURN, PLANT_RED]


@uncompiled
def test_without_the_attribute_all_actions_count() -> None:
    lanes = Lanes(MeltingPotHarvest(sensitive_fraction=0.0), 1)
    lanes.seed(0)
    lanes.restart()
    assert (play(lanes, *[TURN_LEFT] * 16).facts["action"] == TURN_LEFT).all()


# -------------------------------------------------------------------------------------------- what is seen


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("direction", "ahead_right", "behind_left"),
    [
        (NORTH, (4, 0), (2, 3)),
        (EAST, (5, 3), (2, 1)),
        (SOUTH, (2, 4), (4, 1)),
        (WEST, (1, 1), (4, 3)),
    ],
)
def test_the_window_turns_with_the_agent(direction: int, ahead_right: Cell, behind_left: Cell) -> None:
    view = {"view_left": 1, "view_right": 2, "view_ahead": 3, "view_behind": 1}
    lanes = scene(Player(3, 2, direction), patches={ahead_right: GREEN, behind_left: BLUE + RIPE}, **view)
    seen = window(lanes)
    assert seen.shape == (5, 4)
    expected = np.ones((5, 4))
    expected[1, 2], expected[4, 0], expected[3, 1] = 3, 7, 8
    # The world is 7 x 5: looking along its height, five rows show each cell of a column once.
    assert seen.tolist() == expected.tolist()


def test_codes_tell_floor_patches_and_agents_by_colour_and_mark() -> None:
    view = {"view_left": 3, "view_right": 3, "view_ahead": 2, "view_behind": 2}
    row = {(x, 0): code for x, code in enumerate((RED, GREEN, BLUE, RED + RIPE, GREEN + RIPE, BLUE + RIPE))}
    lanes = scene(Player(3, 2), Player(0, 1), Player(6, 1), patches={**row, (6, 1): RED}, **view)
    lanes.records["colour"][0] = [BLUE, GREY, GREEN]
    lanes.records["marked"][0] = [0, 1, 1]
    seen = window(lanes)
    assert seen[0].tolist() == [2, 3, 4, 5, 6, 7, 1]
    assert seen[1].tolist() == [12, 1, 1, 1, 1, 1, 14]
    assert seen[2].tolist() == [1, 1, 1, 11, 1, 1, 1]


def test_the_default_window_is_eleven_by_eleven_with_nine_rows_ahead() -> None:
    lanes = scene(Player(3, 2))
    assert window(lanes).shape == (11, 11)
    assert window(lanes)[9, 5] == 8
    assert lanes.observe().shape == (1, 3, 5 + 121)


def test_an_agent_knows_its_attribute_and_preference() -> None:
    lanes = scene(Player(3, 2, preference=GREEN))
    lanes.records["sensitive"][0, 0] = 1
    assert (own(lanes, "sensitive"), own(lanes, "preference")) == (1, 2)
    assert lanes.rules.observed_features(lanes.rules.params) == OWN


def test_scaled_observations_are_the_raw_ones_divided_by_their_largest() -> None:
    players = Player(3, 4, preference=GREEN), Player(3, 3, preference=BLUE)
    seen = {}
    for scaled in (False, True):
        lanes = scene(*players, patches={(2, 3): BLUE + RIPE}, scaled=scaled)
        play(lanes, ZAP)
        seen[scaled] = lanes.observe()[0]
    largest = np.array([1, 3, 1, 1, 25, *[15] * 121])
    assert seen[True] == pytest.approx(seen[False] / largest)
    assert seen[False][1, 4] == 25


@compiled_only
@pytest.mark.parametrize("scaled", [False, True])
def test_observations_and_features_stay_within_their_bounds(scaled: bool) -> None:
    rules = MeltingPotHarvest(**{**SMALL, "scaled": scaled, "patches": 20, "ripening_rate": 0.01})
    space, lanes = rules.observation_space(rules.params), Lanes(rules, 16)
    lanes.seed(0)
    lanes.restart()
    rng, gone, eaten = np.random.default_rng(0), 0, 0.0
    for _ in range(300):
        step = lanes.advance(rng.integers(0, 11, (16, 3)))
        assert all(space.contains(row) for row in step.observation.reshape(-1, *space.shape))
        assert ((step.facts["features"] >= 0) & (step.facts["features"] <= 1)).all()
        assert lanes.records["count"].sum(axis=1).tolist() == [20] * 16
        present = lanes.records["x"] >= 0
        assert ((lanes.records["occupant"] > 0).sum(axis=(1, 2)) == present.sum(axis=1)).all()
        gone, eaten = gone + int((~present).sum()), eaten + float(step.reward.clip(0).sum())
    assert gone > 100
    assert eaten > 100
    assert lanes.records["total"].sum() < eaten


# ------------------------------------------------------------------------------------------------- the facts


@pytest.mark.nojit
def test_facts_say_who_the_agents_are_and_what_they_acted_on() -> None:
    lanes = scene(Player(3, 4, preference=GREEN), Player(6, 2, preference=BLUE), patches={(0, 0): RED, (1, 0): BLUE})
    lanes.records["sensitive"][0, 1] = 1
    lanes.records["marked"][0, 0] = 1
    step = play(lanes, FORWARD, FORWARD)
    assert step.facts["individual"][0].tolist() == [0, 1, 2]
    assert step.facts["sensitive"][0, :, 0].tolist() == step.facts["group"][0].tolist() == [0, 1, 0]
    assert step.facts["legitimate"][0, :2, 0].tolist() == [1, 2]
    assert step.facts["action"][0].tolist() == [FORWARD, NO_TURN, NO_TURN]
    assert features(step, lanes, "x") == pytest.approx([3 / 6, 1, 0])
    assert features(step, lanes, "y") == pytest.approx([1, 2 / 4, 0])
    assert features(step, lanes, "present") == [1, 1, 0]
    assert features(step, lanes, "marked") == [1, 0, 0]
    assert features(step, lanes, "sensitive") == [0, 1, 0]
    assert features(step, lanes, "preference")[:2] == pytest.approx([2 / 3, 1])
    assert features(step, lanes, "ready_to_shoot") == [1, 1, 0]
    assert features(step, lanes, "red_share") == features(step, lanes, "blue_share") == [0.5] * 3


# --------------------------------------------------------------------------------------------- the picture


def test_drawing_changes_nothing_and_shows_every_agent_and_patch() -> None:
    lanes = scene(Player(3, 4, NORTH, GREEN), Player(3, 3), Player(6, 0), patches={(0, 0): BLUE + RIPE, (6, 0): RED})
    play(lanes, ZAP)
    before = lanes.snapshot()
    renderer = lanes.rules.renderer()
    frame, drawn = renderer.frame(lanes.records[0]), dict(renderer.figures(lanes.records[0]))
    assert (frame.dtype, frame.ndim, frame.shape[2]) == (np.uint8, 3, 3)
    assert set(drawn) == {(3, 4), (3, 3), (6, 0), (0, 0)}
    assert len(drawn[6, 0]) == 2  # the agent on the patch
    assert_same(lanes.snapshot(), before)  # by fields: what lies between them is anything


def test_the_picture_tells_preference_speed_direction_colour_mark_and_freeze() -> None:
    lanes = scene(Player(3, 3))
    record, renderer = lanes.records[0], lanes.rules.renderer()
    frames = [renderer.frame(record).tobytes()]
    for name, value in (
        ("preference", BLUE),
        ("sensitive", 1),
        ("direction", SOUTH),
        ("colour", GREEN),
        ("marked", 1),
        ("frozen", 3),
    ):
        record[name][0] = value
        frames.append(renderer.frame(record).tobytes())
    assert len(set(frames)) == 7


def test_the_text_shows_the_world_row_by_row() -> None:
    lanes = scene(Player(3, 4, NORTH, GREEN), Player(5, 1), patches={(0, 0): BLUE + RIPE, (1, 0): RED})
    lanes.records["marked"][0, 1] = 1
    lanes.records["frozen"][0, 0] = 2
    text = re.sub("\x1b\\[[0-9;]*m", "", lanes.rules.renderer().text(lanes.records[0]))
    rows = text.splitlines()[1:6]
    assert [row[1:-1] for row in rows] == [
        "■ ○ · · · · · ",
        "· · · · · R!· ",
        "· · · · · · · ",
        "· · · · · · · ",
        "· · · G#· · · ",
    ]
    assert "1 of 2 ripe: red 50%, blue 50%" in text


# --------------------------------------------------------------------------------------------- the variant


def test_the_variant_is_chosen_by_a_keyword() -> None:
    env = gym.make("FairHarvest-v0", variant="melting_pot", agents=4)
    assert env.unwrapped.lanes.rules.name == "harvest_melting_pot"  # type: ignore[attr-defined]
    assert env.action_space == gym.spaces.MultiDiscrete([11] * 4)
    assert env.observation_space.shape == (4 * 126,)
    rules = fair_envs.make_rules("FairHarvest-v0", variant="melting_pot")
    assert isinstance(rules, MeltingPotHarvest)


def test_an_episode_is_truncated_at_the_horizon() -> None:
    lanes = scene(horizon=3)
    ends: Sequence[Step] = [play(lanes) for _ in range(3)]
    assert [bool(step.truncated[0]) for step in ends] == [False, False, True]
    assert not any(step.terminated[0] for step in ends)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"patches": 855}, "agents + patches must be at most the 870 cells, got 871"),
        ({"width": 3, "patches": 0}, "width and height must be above 3, the reach of the beams, got 3"),
        ({"zap_radius": 15}, "width and height must be above 30, the reach of the beams, got 29"),
        ({"colours": 2, "blue_fraction": 0.1}, "blue_fraction must be 0 with two colours, got 0.1"),
        ({"blue_fraction": 0.75}, "green_fraction + blue_fraction must be at most 1, got 1.25"),
        ({"width": 1000, "height": 33}, "width * height must be at most 32767 cells, got 33000"),
        ({"colours": 4}, "colours must be between 2 and 3, got 4"),
        ({"ripening": "fast"}, "ripening must be one of 'linear', 'cubic', got 'fast'"),
        ({"agents": 128}, "agents must be between 1 and 127, got 128"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        MeltingPotHarvest(**given)
    assert str(raised.value) == message
