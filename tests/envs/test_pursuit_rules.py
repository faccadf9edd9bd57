"""Each rule of FairPursuit on a lane set by hand, and the worked examples of Grupen, Selman and Lee's world."""

import json
import math
from itertools import permutations
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.cli import environment_parameters
from fair_envs.core import Lanes, Worlds
from fair_envs.envs.pursuit.params import PROFILES
from fair_envs.envs.pursuit.rules import Parts, Pursuit, parts_of, wrapped
from tests.helpers import uncompiled

E6 = [[1, 1], [5, 2], [4, 5.5]]
GREEDY_E6 = [0.785398, 2.677945, -1.951303]
CENTRE = [[3, 3]]
PENALTY = pytest.approx(-0.1)


def world(pursuers: Any, evaders: Any = CENTRE, **parameters: Any) -> Lanes:
    """Return one world in which these are the positions, shapes (pursuers, 2) and (evaders, 2)."""
    places = np.concatenate([np.array(pursuers, float), np.array(evaders, float)])
    counts = {"pursuers": len(np.array(pursuers)), "evaders": len(np.array(evaders))}
    lanes = Lanes(Pursuit(**{**counts, "pursuer_speed": 1.2, "action": "heading", **parameters}), 1)
    lanes.seed(0)
    lanes.restart()
    lanes.records["position"] = places
    return lanes


def head(lanes: Lanes, *headings: float) -> Any:
    """Play a step in which the pursuers have these headings."""
    return lanes.advance(np.array(headings, np.float64).reshape(1, -1, 1))


def places(lanes: Lanes) -> Any:
    """Return where the pursuers, then the evaders, are."""
    return np.array(lanes.records["position"][0])


def evader_heading(lanes: Lanes) -> float:
    """Return where the evader heads."""
    x, y = lanes.records["facing"][0, -1]
    return math.atan2(y, x)


def distances(lanes: Lanes) -> Any:
    """Return the pursuers' distances to the only evader, on the torus."""
    way = places(lanes)[:-1] - places(lanes)[-1]
    side = lanes.rules.params.side
    return np.asarray(np.hypot(*(way - side * np.round(way / side)).T))


# -------------------------------------------------------------------------------------------------- to the bit


@pytest.mark.nojit
def test_a_game_is_the_same_to_the_bit_with_and_without_compilation() -> None:
    """Directions are of single precision, and so is all that is made of one before the way that it leads."""
    lanes = Lanes(Pursuit(start_spread=0.0), 1)
    lanes.seed(7)
    lanes.restart()
    for directions in np.random.default_rng(0).uniform(-1, 1, (25, 1, 3, 2)).astype(np.float32):
        lanes.advance(directions)
    assert [[coordinate.hex() for coordinate in place] for place in places(lanes).tolist()] == [
        ["0x1.356b198bb397dp+0", "0x1.1fe9d38e295d7p+2"],
        ["0x1.446174b2f6ea5p+1", "0x1.32b82d11ddc8cp+1"],
        ["0x1.1131524fe4e03p+2", "0x1.4610c9aa3469dp+1"],
        ["0x1.f2fd73ddc8db6p+1", "0x1.53f77be494ff2p+2"],
    ]


@pytest.mark.nojit
@pytest.mark.parametrize("length", [1, 1e-10, 1.1e-15, 1e-15, 1e-16, 1e-21, 1e-30, 1e-44])
def test_a_direction_counts_whatever_its_length(length: float) -> None:
    """Also where single precision does not hold the squares, or no more than a few digits of the direction."""
    lanes = world([[1, 1], [5, 2], [1, 5]], action="direction")  # in the usual layout
    lanes.advance(length * np.array([[[0, -1], [0.6, 0.8], [-0.8, 0.6]]], np.float32))
    expected = np.array([[0, -1], [0.6, 0.8], [-0.8, 0.6]])
    np.testing.assert_allclose(lanes.records["facing"][0, :3], expected, atol=1e-7 if length > 1e-35 else 0.05)
    lanes.advance(np.zeros((1, 3, 2), np.float32))
    np.testing.assert_allclose(lanes.records["facing"][0, :3], expected, atol=1e-7 if length > 1e-35 else 0.05)


# ------------------------------------------------------------------------------------------------- the evader


@pytest.mark.parametrize(
    ("evader", "pursuers", "heading"),
    [
        ([3, 3], [[4, 3]], math.pi),
        ([3, 3], [[4, 3], [3, 4]], -2.356194),
        ([3, 3], [[4, 3], [3, 5], [1, 3]], -2.356194),
        ([0.1, 3], [[5.9, 3]], 0.0),
    ],
    ids=["E1", "E2", "E3", "E4"],
)
@uncompiled
def test_the_evader_flees_from_the_sum_of_repulsions(evader: Any, pursuers: Any, heading: float) -> None:
    lanes = world(pursuers, [evader])
    head(lanes, *[0.0] * len(pursuers))
    assert math.cos(evader_heading(lanes) - heading) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("before", [(1.0, 0.0), (0.6, -0.8)])
@uncompiled
def test_where_repulsions_are_in_balance_it_keeps_its_heading(before: tuple[float, float]) -> None:
    around = [[3 + math.cos(a), 3 + math.sin(a)] for a in (0, 2 * math.pi / 3, 4 * math.pi / 3)]
    lanes = world(around)
    lanes.records["facing"][0, 3] = before
    head(lanes, 0, 0, 0)
    np.testing.assert_allclose(lanes.records["facing"][0, 3], before)


@uncompiled
def test_the_least_imbalance_of_repulsions_turns_it() -> None:
    lanes = world([[4, 3], [2.0001, 3]], pursuer_speed=0.0)
    lanes.records["facing"][0, 2] = 0.0, 1.0
    head(lanes, 0, 0)
    np.testing.assert_allclose(lanes.records["facing"][0, 2], [1, 0])


@uncompiled
def test_it_flees_the_more_from_a_pursuer_the_nearer_down_to_the_smallest_distance() -> None:
    lanes = world([[3.05, 3], [3, 3.1]])
    head(lanes, 0, 0)
    assert evader_heading(lanes) == pytest.approx(math.atan2(-10, -20))
    lanes = world([[3, 3], [4, 3]])
    head(lanes, 0, 0)
    assert abs(evader_heading(lanes)) == pytest.approx(math.pi)  # who is in the same place repels to no side


@pytest.mark.parametrize("seed", range(5))
@uncompiled
def test_its_heading_is_the_minimum_of_equation_7(seed: int) -> None:
    pursuers = np.random.default_rng(seed).uniform(0, 6, (3, 2))
    lanes = world(pursuers)
    way = pursuers - 3
    far, towards = np.hypot(*way.T), np.arctan2(way[:, 1], way[:, 0])
    angles = np.linspace(-np.pi, np.pi, 100_000)
    cost = (np.cos(angles[:, np.newaxis] - towards) / far).sum(axis=1)
    head(lanes, 0, 0, 0)
    assert math.cos(evader_heading(lanes) - angles[cost.argmin()]) == pytest.approx(1, abs=1e-8)


# ----------------------------------------------------------------------------------------------- transitions


@uncompiled
def test_s1_all_move_at_once_and_nobody_is_caught() -> None:
    lanes = world(E6)
    step = head(lanes, *GREEDY_E6)
    wanted = [[1.084853, 1.084853], [4.892669, 2.053666], [3.955433, 5.388583], [2.906070, 3.034310]]
    np.testing.assert_allclose(places(lanes), wanted, atol=1e-5)
    np.testing.assert_allclose(distances(lanes), [2.667811, 2.215454, 2.577550], atol=1e-5)
    assert step.reward[0].tolist() == [PENALTY] * 3 and not step.terminated[0]
    assert step.facts["action"][0].tolist() == [0, 0, 0]


@uncompiled
def test_s2_agents_move_across_the_seam() -> None:
    lanes = world([[5.95, 3]], [[0.25, 3]])
    step = head(lanes, 0)
    np.testing.assert_allclose(places(lanes), [[0.07, 3], [0.35, 3]], atol=1e-9)
    assert distances(lanes) == pytest.approx([0.28]) and not step.terminated[0]


@pytest.mark.parametrize("axis", [0, 1])
@uncompiled
def test_s2_mirrored_agents_move_below_0_across_the_seam(axis: int) -> None:
    before, after = np.full((2, 2), 3.0), np.full((2, 2), 3.0)
    before[:, axis], after[:, axis] = [0.05, 5.75], [5.93, 5.65]
    lanes = world(before[:1], before[1:])
    head(lanes, math.pi if axis == 0 else -math.pi / 2)
    np.testing.assert_allclose(places(lanes), after, atol=1e-9)
    assert distances(lanes) == pytest.approx([0.28])


@uncompiled
def test_who_is_below_0_by_less_than_rounding_is_at_0() -> None:
    lanes = world([[0, 3]], pursuer_speed=1e-16, evader_speed=0.0)
    head(lanes, math.pi)
    assert places(lanes)[0].tolist() == [0, 3]
    assert [wrapped(6.0, place) for place in (-1e-17, 6.0, -6.0, 0.0)] == [0, 0, 0, 0]


@pytest.mark.parametrize("given", [{}, {"side": 0.7, "start_distance": 0.1}, {"legacy_physics": True}, {"side": 1e6}])
def test_nobody_ever_leaves_the_torus(given: Any) -> None:
    lanes = Lanes(Pursuit(pursuer_speed=50.0, evader_speed=70.0, **given), 20)
    lanes.seed(0)
    lanes.restart()
    chance = np.random.default_rng(0)
    for _ in range(50):
        lanes.advance(chance.uniform(-1, 1, (20, 3, 2)).astype(np.float32))
        position = lanes.records["position"]
        assert position.min() >= 0 and position.max() < lanes.rules.params.side


@pytest.mark.parametrize(
    ("reward", "wanted"), [("mutual", [50, 50, 50]), ("mutual_sum", [50, 50, 50]), ("individual", [50, -0.1, -0.1])]
)
@uncompiled
def test_s3_a_capture_is_paid_for(reward: str, wanted: list[float]) -> None:
    lanes = world([[3, 3.12], [3, 2], [1, 3]], reward=reward)
    step = head(lanes, -math.pi / 2, math.pi / 2, 0)
    after = np.array([[3, 3], [3, 2.12], [1.12, 3], [3.006802, 2.900232]])
    np.testing.assert_allclose(places(lanes), after, atol=1e-5)
    np.testing.assert_allclose(distances(lanes), [0.1, 0.780261, 1.889438], atol=1e-5)
    assert evader_heading(lanes) == pytest.approx(-1.502720, abs=1e-5)
    assert step.reward[0].tolist() == pytest.approx(wanted)
    assert step.terminated[0] and not step.truncated[0]
    assert step.facts["action"][0].tolist() == [1, 0, 0] and step.facts["outcome"][0].tolist() == [1, 0, 0]


@uncompiled
def test_s4_an_equally_fast_pursuer_never_gains() -> None:
    lanes = world([[3.2, 3]], pursuer_speed=1.0)
    for step in range(50):
        head(lanes, math.pi)
        if step == 0:
            np.testing.assert_allclose(places(lanes), [[3.1, 3], [2.9, 3]], atol=1e-9)
        assert distances(lanes) == pytest.approx([0.2])


@uncompiled
def test_s7_an_evader_between_two_escapes_sideways() -> None:
    lanes = world([[2.5, 3], [3.5, 3], [3, 5.5]], pursuer_speed=0.9)
    step = head(lanes, 0, math.pi, -math.pi / 2)
    np.testing.assert_allclose(places(lanes), [[2.59, 3], [3.41, 3], [3, 5.41], [3, 2.9]], atol=1e-6)
    np.testing.assert_allclose(distances(lanes), [0.422019, 0.422019, 2.51], atol=1e-5)
    assert not step.terminated[0]


@pytest.mark.parametrize(("at_horizon", "ends"), [("truncate", (False, True)), ("terminate", (True, False))])
@uncompiled
def test_s8_the_time_limit_truncates_or_as_published_terminates(at_horizon: str, ends: tuple[bool, bool]) -> None:
    lanes = world(E6, at_horizon=at_horizon)
    lanes.records["time"] = 499
    step = head(lanes, 0, 0, 0)
    assert (bool(step.terminated[0]), bool(step.truncated[0])) == ends
    assert step.reward[0].tolist() == [PENALTY] * 3


@pytest.mark.parametrize("at_horizon", ["truncate", "terminate"])
@uncompiled
def test_the_step_before_the_time_limit_ends_nothing(at_horizon: str) -> None:
    lanes = world(E6, at_horizon=at_horizon)
    lanes.records["time"] = 498
    step = head(lanes, 0, 0, 0)
    assert not step.terminated[0] and not step.truncated[0]


@uncompiled
def test_a_capture_across_the_seam_is_missed_with_the_published_physics_alone() -> None:
    for legacy in (False, True):
        lanes = world([[5.91, 3]], [[5.97, 3]], pursuer_speed=0.6, evader_speed=0.6, legacy_physics=legacy)
        assert bool(head(lanes, 0).terminated[0]) is not legacy
        np.testing.assert_allclose(places(lanes)[:, 0], [5.97, 0.03], atol=0.02)


@uncompiled
def test_closer_than_the_radii_is_a_capture_and_no_further() -> None:
    for gap, caught in ((0.1249, True), (0.1251, False)):
        lanes = world([[3 - gap, 3]], pursuer_speed=0.0, evader_speed=0.0)
        assert bool(head(lanes, 0).terminated[0]) is caught


@uncompiled
def test_exactly_at_the_radii_is_no_capture() -> None:
    for gap, caught in ((0.25, False), (0.25 - 2**-40, True)):
        radii = {"pursuer_radius": 0.125, "evader_radius": 0.125}
        lanes = world([[3 - gap, 3]], pursuer_speed=0.0, evader_speed=0.0, **radii)
        assert bool(head(lanes, 0).terminated[0]) is caught


@pytest.mark.parametrize(
    ("reward", "wanted"), [("mutual", [100, 100]), ("mutual_sum", [150, 150]), ("individual", [100, 50])]
)
@uncompiled
def test_who_captures_two_evaders_at_once_is_the_captor_of_both(reward: str, wanted: list[float]) -> None:
    still = {"evader_speed": 0.0, "pursuer_speed": 0.0, "reward": reward}
    lanes = world([[3, 3], [3.1, 3.1]], [[3, 3.06], [2.96, 2.96]], **still)
    step = head(lanes, 0, 0)
    assert step.facts["outcome"][0].tolist() == [2, 1] and step.facts["action"][0].tolist() == [1, 1]
    np.testing.assert_allclose(step.reward[0], wanted)
    assert lanes.records["captures"][0].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("reward", "wanted"),
    [("mutual", [50, 50, 50]), ("mutual_sum", [100, 100, 100]), ("individual", [50, 50, -0.1])],
)
@uncompiled
def test_all_who_are_close_enough_at_once_are_captors(reward: str, wanted: list[float]) -> None:
    lanes = world([[2.9, 3], [3.1, 3], [1, 1]], evader_speed=0.0, pursuer_speed=0.0, reward=reward)
    step = head(lanes, 0, 0, 0)
    assert step.facts["outcome"][0].tolist() == [1, 1, 0]
    np.testing.assert_allclose(step.reward[0], wanted)


@uncompiled
def test_in_the_published_code_the_step_of_a_capture_costs_too() -> None:
    lanes = world([[2.9, 3], [1, 1]], evader_speed=0.0, pursuer_speed=0.0, penalty_at_capture=True)
    np.testing.assert_allclose(head(lanes, 0, 0).reward[0], [49.9, 49.9])


@uncompiled
def test_the_game_goes_on_until_every_evader_is_caught() -> None:
    still = {"evader_speed": 0.0, "pursuer_speed": 1.0, "reward": "individual"}
    lanes = world([[2.9, 3], [1, 1]], [[3, 3], [1.2, 1]], **still)
    first = head(lanes, 0, 0)
    assert first.facts["outcome"][0].tolist() == [1, 1] and first.terminated[0]  # each its own
    lanes = world([[2.9, 3], [1, 1]], [[3, 3], [1.3, 1]], **still)
    first, second = head(lanes, 0, 0), head(lanes, 0, 0)
    assert first.facts["outcome"][0].tolist() == [1, 0] and not first.terminated[0]
    np.testing.assert_allclose(first.reward[0], [50, -0.1])
    assert second.facts["outcome"][0].tolist() == [0, 1] and second.terminated[0]
    assert lanes.records["captures"][0].tolist() == [1, 1]


@uncompiled
def test_a_captured_evader_moves_and_turns_no_more_and_is_told_as_captured() -> None:
    lanes = world([[2.9, 3], [1, 1]], [[3, 3], [5, 1]], pursuer_speed=1.0)
    assert lanes.observe()[0, :, [2, 5]].tolist() == [[1, 1], [1, 1]]
    step = head(lanes, 0, 0)
    caught, facing = places(lanes)[2], np.array(lanes.records["facing"][0, 2])
    assert step.observation[0, :, [2, 5]].tolist() == [[0, 0], [1, 1]]
    head(lanes, 2, 1)
    np.testing.assert_array_equal(places(lanes)[2], caught)
    np.testing.assert_array_equal(lanes.records["facing"][0, 2], facing)


@uncompiled
def test_what_is_told_of_a_pursuer_is_who_it_is_how_far_and_how_fast() -> None:
    lanes = world([[3, 4.5], [1, 3], [3, 0.2]], speeds=[1, 0.5, 1], pursuer_speed=1.2)
    facts = lanes.show().facts
    assert facts["individual"][0].tolist() == facts["group"][0].tolist() == [0, 1, 2]
    assert facts["sensitive"][0].tolist() == [[0, 0], [1, 1], [2, 0]]
    largest = 3 * math.sqrt(2)  # two agents half a side apart on both axes
    wanted = [[1.5 / largest, 0.012], [2 / largest, 0.006], [2.8 / largest, 0.012]]
    np.testing.assert_allclose(facts["features"][0], wanted, rtol=1e-6)
    assert world([[0, 0]]).show().facts["features"][0, 0, 0] == pytest.approx(1)
    lanes.records["free"] = 0
    assert lanes.show().facts["features"][0, :, 0].tolist() == [0, 0, 0]


# -------------------------------------------------------------------------------------------------- symmetry


def exchanged(lanes: Lanes, order: tuple[int, ...]) -> Lanes:
    """Return the world in which pursuer ``order[i]`` is where pursuer i was."""
    other = Lanes(lanes.rules, 1)
    other.restore(lanes.snapshot())
    for field in ("position", "facing"):
        other.records[field][0, list(order)] = lanes.records[field][0, :3]
    return other


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("order", list(permutations(range(3))))
@uncompiled
def test_physics_and_rewards_know_no_pursuers_number(seed: int, order: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    near = [[3, 3.1], [3.05, 3.05], [2, 2]] if seed == 0 else rng.uniform(0, 6, (3, 2))
    lanes, headings = world(near, reward="individual"), rng.uniform(-np.pi, np.pi, 3)
    other = exchanged(lanes, order)
    changed = np.empty(3)
    changed[list(order)] = headings
    one, two = head(lanes, *headings), head(other, *changed)
    np.testing.assert_allclose(places(other)[list(order)], places(lanes)[:3], atol=1e-9)
    np.testing.assert_allclose(places(other)[3], places(lanes)[3], atol=1e-9)
    for name in ("action", "outcome"):
        assert two.facts[name][0, list(order)].tolist() == one.facts[name][0].tolist()
    np.testing.assert_allclose(two.reward[0, list(order)], one.reward[0])


@pytest.mark.parametrize(
    ("teammates", "kept"),
    [
        ("index", {(0, 1, 2)}),
        ("cyclic", {(0, 1, 2), (1, 2, 0), (2, 0, 1)}),
        ("sorted", set(permutations(range(3)))),
    ],
)
@uncompiled
def test_observations_are_exchanged_with_the_pursuers(teammates: str, kept: set[tuple[int, ...]]) -> None:
    found = set()
    for order in permutations(range(3)):
        same = []
        for seed in range(5):
            lanes = world(np.random.default_rng(seed).uniform(0, 6, (3, 2)), teammates=teammates)
            other = exchanged(lanes, order).observe()[0]
            same.append(np.allclose(other[list(order)], lanes.observe()[0], atol=1e-6))
        if all(same):
            found.add(order)
    assert found == kept


# ---------------------------------------------------------------------------------------------- observations


@uncompiled
def test_the_ways_to_the_evader_and_the_team_mates_are_seen_in_halves_of_the_side() -> None:
    lanes = world([[5.5, 3], [0.5, 3], [3, 0]], [[3, 3]])
    seen = lanes.observe()[0]
    np.testing.assert_allclose(seen[0] * 3, [-2.5, 0, 1, 0, -2.5, 3 * -1], atol=1e-6)  # across the seam; half a side
    np.testing.assert_allclose(seen[1] * 3, [2.5, 0, 2.5, -3, -1, 0], atol=1e-6)  # first pursuer 2, then pursuer 0
    names = lanes.rules.observed_features(lanes.rules.params)
    assert names == ("evader_0_x", "evader_0_y", "teammate_0_x", "teammate_0_y", "teammate_1_x", "teammate_1_y")


@uncompiled
def test_on_the_torus_ways_are_angles() -> None:
    lanes = world([[5.5, 3], [0.5, 3]], [[3, 3]], observation="torus")
    way = -2.5 * math.pi / 3
    np.testing.assert_allclose(lanes.observe()[0, 0, :4], [math.sin(way), math.cos(way), 0, 1], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@uncompiled
def test_angles_of_coordinates_give_those_of_the_ways(seed: int) -> None:
    chance = np.random.default_rng(seed)
    lanes = world(chance.uniform(0, 6, (3, 2)), chance.uniform(0, 6, (2, 2)), observation="torus", teammates="index")
    seen, at = lanes.observe()[0], places(lanes)
    for pursuer in range(3):
        others = [3, 4, *(k for k in range(3) if k != pursuer)]
        turn = 2 * np.pi * (at[others] - at[pursuer]) / 6
        wanted = np.stack([np.sin(turn), np.cos(turn)], axis=2).reshape(4, 4)
        found = np.delete(seen[pursuer], [4, 9]).reshape(4, 4)  # without whether evaders are free
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@uncompiled
def test_sorted_team_mates_are_seen_the_nearest_on_the_torus_first() -> None:
    lanes = world([[8, 5], [1, 5], [8, 6], [6, 5]], side=10.0, teammates="sorted", pursuer_speed=0.0)
    ways = lanes.observe()[0, 0, 2:].reshape(3, 2) * 5  # mates at distances 3, 1 and 2
    np.testing.assert_allclose(ways, [[0, 1], [-2, 0], [3, 0]], atol=1e-6)


@uncompiled
def test_the_published_observation_is_of_positions_the_evader_last() -> None:
    lanes = world(E6, profile="authors")
    assert lanes.observe()[0].tolist() == [
        [1, 1, 5, 2, 4, 5.5, 3, 3],
        [5, 2, 1, 1, 4, 5.5, 3, 3],
        [4, 5.5, 1, 1, 5, 2, 3, 3],
    ]
    space: Any = lanes.rules.observation_space(lanes.rules.params)
    assert space.high.tolist() == [6] * 8


@uncompiled
def test_headings_and_speeds_can_be_seen_and_team_mates_left_out() -> None:
    lanes = world([[1, 1], [5, 2]], include_headings=True, include_speed=True, speeds=[1, 0.5])
    head(lanes, 0.5, math.pi)
    seen = lanes.observe()[0]
    np.testing.assert_allclose(seen[0, 6:8], [-1, 0], atol=1e-6)  # the team-mate's heading
    np.testing.assert_allclose(seen[:, -3:], [[math.cos(0.5), math.sin(0.5), 1.2], [-1, 0, 0.6]], atol=1e-6)
    assert parts_of(lanes.rules.params) == Parts(evader=4, mate=4, own=3)
    blind = world([[1, 1], [5, 2]], blind=True)
    assert blind.observe().shape == (1, 2, 2)
    assert len(blind.rules.observed_features(blind.rules.params)) == 2


@pytest.mark.parametrize("evaders", [1, 3])
@pytest.mark.parametrize("observation", ["relative", "torus"])
@pytest.mark.parametrize("headings", [False, True])
@pytest.mark.parametrize("speed", [False, True])
def test_an_observation_is_made_up_of_its_parts(evaders: int, observation: Any, headings: bool, speed: bool) -> None:
    own = {"include_headings": headings, "include_speed": speed}
    params = Pursuit(evaders=evaders, observation=observation, **own).params
    way = (2 if observation == "relative" else 4) + 2 * headings
    assert parts_of(params) == Parts(evader=way + (evaders > 1), mate=way, own=2 * headings + speed)
    names = Pursuit(**params._asdict()).observed_features(params)
    assert len(names) == evaders * (way + (evaders > 1)) + 2 * way + 2 * headings + speed


@uncompiled
def test_a_speed_is_seen_up_to_the_largest() -> None:
    lanes = Lanes(Pursuit(pursuer_speed=100.0, include_speed=True), 1)
    space: Any = lanes.rules.observation_space(lanes.rules.params)
    assert space.high[-1] == 100 and space.low[-1] == 0
    seen = lanes.restart().observation[0, 0]
    assert seen[-1] == 100 and space.contains(seen)


# -------------------------------------------------------------------------------------------------- movement


@uncompiled
def test_a_direction_of_any_length_is_a_heading_and_none_keeps_the_one_before() -> None:
    lanes = world([[1, 1], [2, 2], [5, 5]], action="direction", pursuer_speed=1.0)
    lanes.records["facing"][0, 2] = 0.6, 0.8
    lanes.advance(np.array([[[0.1, 0], [0, -1], [0, 0]]], np.float32))
    np.testing.assert_allclose(places(lanes)[:3], [[1.1, 1], [2, 1.9], [5.06, 5.08]], atol=1e-7)


def test_the_shortest_direction_is_one_and_at_first_all_head_along_the_first_axis() -> None:
    lanes = Lanes(Pursuit(), 1)
    lanes.seed(0)
    lanes.restart()
    assert lanes.records["facing"][0].tolist() == [[1, 0]] * 4
    lanes.records["position"][0] = [[1, 1], [2, 2], [5, 5], [3, 3]]
    lanes.advance(np.array([[[0, 1e-30], [-1e-9, 0], [0, 0]]], np.float64))
    np.testing.assert_allclose(places(lanes)[:3], [[1, 1.1], [1.9, 2], [5.1, 5]], atol=1e-7)


@uncompiled
def test_headings_can_be_chosen_from_a_few() -> None:
    lanes = world([[1, 1], [2, 2]], action="discrete", headings=4, pursuer_speed=1.0)
    lanes.advance(np.array([[1, 2]]))
    np.testing.assert_allclose(places(lanes)[:2], [[1, 1.1], [1.9, 2]], atol=1e-9)
    assert lanes.rules.action_space(lanes.rules.params) == gym.spaces.Discrete(4)


@uncompiled
def test_pursuers_may_be_of_different_speeds_which_are_classes() -> None:
    rules = Pursuit(speeds=[0.5, 1, 0.5, 0.8])
    assert rules.params.pursuers == 4
    assert rules.spec.sensitive["speed"] == ("1", "0.8", "0.5")
    lanes = Lanes(rules, 2)
    lanes.seed(0)
    facts = lanes.restart().facts
    assert facts["sensitive"][0].tolist() == [[0, 2], [1, 0], [2, 2], [3, 1]]
    assert lanes.records["speed"][0].tolist() == [0.5, 1, 0.5, 0.8]


def test_factors_that_show_alike_are_one_class() -> None:
    rules = Pursuit(speeds=[0.1 + 0.2, 1, 0.3])
    assert rules.spec.sensitive["speed"] == ("1", "0.3")
    assert rules.classes[1].tolist() == [1, 0, 1]
    assert Pursuit().spec.sensitive["speed"] == ("1",)


@pytest.mark.parametrize("speeds", [[1, 0.5], (1.0, 0.5), np.array([1, 0.5]), np.array([1, 0.5], np.float32)])
def test_speeds_are_kept_among_the_parameters(speeds: Any) -> None:
    rules = Pursuit(speeds=speeds)
    assert rules.params.speeds == (1.0, 0.5) and rules.params.pursuers == 2
    for given in (rules.params._asdict(), json.loads(json.dumps(rules.params._asdict()))):
        again = Pursuit(**given)
        assert again.params == rules.params and again.factors.tolist() == [1, 0.5]
    assert Pursuit(**Pursuit().params._asdict()).params == Pursuit().params
    assert Pursuit(speeds=[], pursuers=4).params.pursuers == 4


def test_speeds_can_be_given_on_the_command_line_and_kept_with_an_environment() -> None:
    assert environment_parameters("FairPursuit-v0", ["speeds=1,0.5"]) == {"speeds": [1, 0.5]}
    with pytest.raises(ValueError, match=r"speeds\[1\] must be a finite number between 0 and 100, got 'fast'"):
        environment_parameters("FairPursuit-v0", ["speeds=1,fast"])
    spec = gym.make("FairPursuit-v0", speeds=[1, 0.5]).spec
    assert spec is not None
    again: Any = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert again.unwrapped.fair_spec.sensitive["speed"] == ("1", "0.5")


def test_worlds_whose_classes_of_speed_differ_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rules must have one fair_spec in all worlds, got sensitive .*'0.5'"):
        Worlds([Pursuit(speeds=[1, 0.5]), Pursuit(speeds=[1, 1])], 1)
    assert Worlds([Pursuit(pursuer_speed=1.2), Pursuit(pursuer_speed=0.9)], 2).count == 4


def test_the_profile_of_the_authors_is_what_their_code_does() -> None:
    assert PROFILES["authors"] == {
        "legacy_physics": True,
        "at_horizon": "terminate",
        "penalty_at_capture": True,
        "observation": "authors",
        "teammates": "index",
    }


@pytest.mark.parametrize(
    ("pursuers", "headings", "wanted"),
    [
        # Control (24, 0), overlap 0.15 - 0.0707 of stiffness 100: a push of 5.6066 on each axis.
        ([[1, 1], [1.05, 1.05]], (0, 0), [[1.114786, 0.965012], [1.167905, 1.072328]]),
        # At 45 degrees the control is 24 in either entry, not in length: (24 - 10, 24) and (24 + 10, 24).
        ([[1, 1], [1.05, 1]], (math.pi / 4, math.pi / 4), [[1.060464, 1.103653], [1.148036, 1.069202]]),
        # A push of 14 against a control of 24 leaves 10, which 0.1 time units make a speed of 1 instead of 1.2.
        ([[1, 1], [1.01, 1]], (0, math.pi), [[1.1, 1], [0.91, 1]]),
        # Across the seam there is no contact.
        ([[5.99, 1], [0.01, 1]], (math.pi / 2, math.pi / 2), [[5.99, 1.12], [0.01, 1.12]]),
    ],
    ids=["side by side", "max-norm", "slower", "seam"],
)
@uncompiled
def test_the_published_contacts_are_these(pursuers: Any, headings: Any, wanted: Any) -> None:
    lanes = world(pursuers, legacy_physics=True)
    head(lanes, *headings)
    np.testing.assert_allclose(places(lanes)[:2], wanted, atol=2e-6)


@uncompiled
def test_with_the_published_physics_who_overlaps_is_pushed_apart() -> None:
    """Two pursuers head the same way, one 0.1 in front of the other: the contact slows one's turn to the side."""
    plain, legacy = (world([[1, 1], [1.05, 1.05]], legacy_physics=kind) for kind in (False, True))
    for lanes in (plain, legacy):
        head(lanes, 0, 0)
    np.testing.assert_allclose(places(plain)[:2], [[1.12, 1], [1.17, 1.05]], atol=1e-9)
    moved = places(legacy)[:2] - [[1, 1], [1.05, 1.05]]
    assert moved[0, 1] < 0 < moved[1, 1]
    np.testing.assert_allclose(np.hypot(*moved.T), [0.12, 0.12], atol=1e-9)  # clipped to the speed
    apart = world(E6, legacy_physics=True)
    head(apart, *GREEDY_E6)
    np.testing.assert_allclose(places(apart)[0], [1.084853, 1.084853], atol=1e-5)


@uncompiled
def test_the_published_physics_slow_nobody_who_touches_nobody_whatever_the_time_step() -> None:
    lanes = world(E6, legacy_physics=True, time_step=0.02)
    head(lanes, 0, 0, 0)
    np.testing.assert_allclose(places(lanes)[:3, 0], np.array(E6)[:, 0] + 0.02 * 1.2)


@uncompiled
def test_a_captured_evader_pushes_nobody() -> None:
    lanes = world([[2.95, 3], [1, 1]], [[3, 3], [5, 5]], legacy_physics=True)
    lanes.records["free"][0, 0], lanes.records["left"] = 0, 1
    head(lanes, 0, 0)
    np.testing.assert_allclose(places(lanes)[[0, 2]], np.array([[3.07, 3], [3, 3]]))


# ------------------------------------------------------------------------------------------------- the start


def test_pursuers_begin_anywhere_but_near_an_evader() -> None:
    lanes = Lanes(Pursuit(evaders=2), 4000)
    lanes.seed(0)
    lanes.restart()
    position = lanes.records["position"]
    for evader in (3, 4):
        way = position[:, :3] - position[:, evader, np.newaxis]
        assert np.hypot(*np.moveaxis(way - 6 * np.round(way / 6), -1, 0)).min() >= 0.5
    assert np.abs(position[:, 3] - 3).max() < 1e-3 and position[:, 3].std() == pytest.approx(1e-4, rel=0.05)
    for agent in (0, 1, 2, 4):
        np.testing.assert_allclose(position[:, agent].mean(axis=0), 3, atol=0.1)
        np.testing.assert_allclose(position[:, agent].std(axis=0), 6 / math.sqrt(12), atol=0.1)


def test_coordinates_and_agents_begin_independently() -> None:
    lanes = Lanes(Pursuit(evaders=2), 4000)
    lanes.seed(1)
    lanes.restart()
    correlation = np.corrcoef(lanes.records["position"].reshape(4000, -1).T)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.08


def test_where_all_places_tried_are_too_near_the_last_is_taken() -> None:
    lanes = Lanes(Pursuit(evaders=2, start_distance=3.0), 400)
    lanes.seed(0)
    lanes.restart()
    way = lanes.records["position"][:, np.newaxis, 3:] - lanes.records["position"][:, :3, np.newaxis]
    near = np.hypot(*np.moveaxis(way - 6 * np.round(way / 6), -1, 0)).min(axis=2) < 3  # (lanes, pursuers)
    assert (near.mean(axis=0) > 0).all() and (near.mean(axis=0) < 0.2).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speeds": [1, -1]}, r"speeds\[1\] must be between 0 and 100, got -1"),
        ({"speeds": 2}, "speeds must be several values, got 2"),
        ({"speeds": np.array(2.0)}, r"speeds must be several values, got array\(2.\)"),
        ({"speeds": [[1, 0.5]]}, r"speeds\[0\] must be a finite number between 0 and 100, got \[1, 0.5\]"),
        ({"speeds": np.ones((2, 2))}, r"speeds\[0\] must be a finite number between 0 and 100, got array"),
        ({"speeds": [1] * 101}, "speeds must be at most 100 factors, got 101"),
        ({"speeds": [1, 1], "pursuers": 3}, "speeds must be one factor for each of 3 pursuers, got 2"),
        ({"speeds": "equal"}, "speeds must be several values, got 'equal'"),
        ({"pursuer_speed": 50, "speeds": [1, 3]}, "pursuer_speed times speeds must be at most 100, got 150"),
        ({"start_distance": 4}, "start_distance must be at most half the side, 3, got 4"),
        (
            {"start_distance": 2.9, "evaders": 4},
            "start_distance from 4 evaders must leave at least 1% of the places free on average, got 2.9, "
            "which leaves 0.5%",
        ),
        ({"profile": "authors", "include_headings": True}, "include_headings must be False for the observation"),
    ],
)
def test_what_does_not_go_together_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pursuit(**given)
