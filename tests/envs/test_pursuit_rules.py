"""Each rule of FairPursuit on a lane set by hand, and the worked examples of Grupen, Selman and Lee's world."""

import math
from itertools import permutations
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core import Lanes
from fair_envs.envs.pursuit.rules import Parts, Pursuit, parts_of

Floats = NDArray[np.float64]
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


# ------------------------------------------------------------------------------------------------- the evader


@pytest.mark.nojit
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
def test_the_evader_flees_from_the_sum_of_repulsions(evader: Any, pursuers: Any, heading: float) -> None:
    lanes = world(pursuers, [evader])
    head(lanes, *[0.0] * len(pursuers))
    assert math.cos(evader_heading(lanes) - heading) == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("before", [(1.0, 0.0), (0.6, -0.8)])
def test_where_repulsions_are_in_balance_it_keeps_its_heading(before: tuple[float, float]) -> None:
    around = [[3 + math.cos(a), 3 + math.sin(a)] for a in (0, 2 * math.pi / 3, 4 * math.pi / 3)]
    lanes = world(around)
    lanes.records["facing"][0, 3] = before
    head(lanes, 0, 0, 0)
    np.testing.assert_allclose(lanes.records["facing"][0, 3], before)


@pytest.mark.parametrize("seed", range(5))
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


def test_s1_all_move_at_once_and_nobody_is_caught() -> None:
    lanes = world(E6)
    step = head(lanes, *GREEDY_E6)
    wanted = [[1.084853, 1.084853], [4.892669, 2.053666], [3.955433, 5.388583], [2.906070, 3.034310]]
    np.testing.assert_allclose(places(lanes), wanted, atol=1e-5)
    np.testing.assert_allclose(distances(lanes), [2.667811, 2.215454, 2.577550], atol=1e-5)
    assert step.reward[0].tolist() == [PENALTY] * 3 and not step.terminated[0]
    assert step.facts["action"][0].tolist() == [0, 0, 0]


@pytest.mark.nojit
def test_s2_agents_move_across_the_seam() -> None:
    lanes = world([[5.95, 3]], [[0.25, 3]])
    step = head(lanes, 0)
    np.testing.assert_allclose(places(lanes), [[0.07, 3], [0.35, 3]], atol=1e-9)
    assert distances(lanes) == pytest.approx([0.28]) and not step.terminated[0]


@pytest.mark.parametrize(
    ("reward", "wanted"), [("mutual", [50, 50, 50]), ("mutual_sum", [50, 50, 50]), ("individual", [50, -0.1, -0.1])]
)
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


def test_s4_an_equally_fast_pursuer_never_gains() -> None:
    lanes = world([[3.2, 3]], pursuer_speed=1.0)
    for step in range(50):
        head(lanes, math.pi)
        if step == 0:
            np.testing.assert_allclose(places(lanes), [[3.1, 3], [2.9, 3]], atol=1e-9)
        assert distances(lanes) == pytest.approx([0.2])


def test_s7_an_evader_between_two_escapes_sideways() -> None:
    lanes = world([[2.5, 3], [3.5, 3], [3, 5.5]], pursuer_speed=0.9)
    step = head(lanes, 0, math.pi, -math.pi / 2)
    np.testing.assert_allclose(places(lanes), [[2.59, 3], [3.41, 3], [3, 5.41], [3, 2.9]], atol=1e-6)
    np.testing.assert_allclose(distances(lanes), [0.422019, 0.422019, 2.51], atol=1e-5)
    assert not step.terminated[0]


@pytest.mark.parametrize(("at_horizon", "ends"), [("truncate", (False, True)), ("terminate", (True, False))])
def test_s8_the_time_limit_truncates_or_as_published_terminates(at_horizon: str, ends: tuple[bool, bool]) -> None:
    lanes = world(E6, at_horizon=at_horizon)
    lanes.records["time"] = 499
    step = head(lanes, 0, 0, 0)
    assert (bool(step.terminated[0]), bool(step.truncated[0])) == ends
    assert step.reward[0].tolist() == [PENALTY] * 3


def test_a_capture_across_the_seam_is_missed_with_the_published_physics_alone() -> None:
    for legacy in (False, True):
        lanes = world([[5.91, 3]], [[5.97, 3]], pursuer_speed=0.6, evader_speed=0.6, legacy_physics=legacy)
        assert bool(head(lanes, 0).terminated[0]) is not legacy
        np.testing.assert_allclose(places(lanes)[:, 0], [5.97, 0.03], atol=0.02)


def test_closer_than_the_radii_is_a_capture_and_no_further() -> None:
    for gap, caught in ((0.1249, True), (0.1251, False)):
        lanes = world([[3 - gap, 3]], pursuer_speed=0.0, evader_speed=0.0)
        assert bool(head(lanes, 0).terminated[0]) is caught


@pytest.mark.parametrize(
    ("reward", "wanted"),
    [("mutual", [50, 50, 50]), ("mutual_sum", [100, 100, 100]), ("individual", [50, 50, -0.1])],
)
def test_all_who_are_close_enough_at_once_are_captors(reward: str, wanted: list[float]) -> None:
    lanes = world([[2.9, 3], [3.1, 3], [1, 1]], evader_speed=0.0, pursuer_speed=0.0, reward=reward)
    step = head(lanes, 0, 0, 0)
    assert step.facts["outcome"][0].tolist() == [1, 1, 0]
    np.testing.assert_allclose(step.reward[0], wanted)


def test_in_the_published_code_the_step_of_a_capture_costs_too() -> None:
    lanes = world([[2.9, 3], [1, 1]], evader_speed=0.0, pursuer_speed=0.0, penalty_at_capture=True)
    np.testing.assert_allclose(head(lanes, 0, 0).reward[0], [49.9, 49.9])


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


@pytest.mark.nojit
def test_the_ways_to_the_evader_and_the_team_mates_are_seen_in_halves_of_the_side() -> None:
    lanes = world([[5.5, 3], [0.5, 3], [3, 0]], [[3, 3]])
    seen = lanes.observe()[0]
    np.testing.assert_allclose(seen[0] * 3, [-2.5, 0, 1, 0, -2.5, 3 * -1], atol=1e-6)  # across the seam; half a side
    np.testing.assert_allclose(seen[1] * 3, [2.5, 0, 2.5, -3, -1, 0], atol=1e-6)  # first pursuer 2, then pursuer 0
    names = lanes.rules.observed_features(lanes.rules.params)
    assert names == ("evader_0_x", "evader_0_y", "teammate_0_x", "teammate_0_y", "teammate_1_x", "teammate_1_y")


def test_on_the_torus_ways_are_angles() -> None:
    lanes = world([[5.5, 3], [0.5, 3]], [[3, 3]], observation="torus")
    way = -2.5 * math.pi / 3
    np.testing.assert_allclose(lanes.observe()[0, 0, :4], [math.sin(way), math.cos(way), 0, 1], atol=1e-6)


def test_the_published_observation_is_of_positions_the_evader_last() -> None:
    lanes = world(E6, profile="authors")
    assert lanes.observe()[0].tolist() == [
        [1, 1, 5, 2, 4, 5.5, 3, 3],
        [5, 2, 1, 1, 4, 5.5, 3, 3],
        [4, 5.5, 1, 1, 5, 2, 3, 3],
    ]
    space: Any = lanes.rules.observation_space(lanes.rules.params)
    assert space.high.tolist() == [6] * 8


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


# -------------------------------------------------------------------------------------------------- movement


def test_a_direction_of_any_length_is_a_heading_and_none_keeps_the_one_before() -> None:
    lanes = world([[1, 1], [2, 2], [5, 5]], action="direction", pursuer_speed=1.0)
    lanes.records["facing"][0, 2] = 0.6, 0.8
    lanes.advance(np.array([[[0.1, 0], [0, -1], [0, 0]]], np.float32))
    np.testing.assert_allclose(places(lanes)[:3], [[1.1, 1], [2, 1.9], [5.06, 5.08]], atol=1e-7)


def test_headings_can_be_chosen_from_a_few() -> None:
    lanes = world([[1, 1], [2, 2]], action="discrete", headings=4, pursuer_speed=1.0)
    lanes.advance(np.array([[1, 2]]))
    np.testing.assert_allclose(places(lanes)[:2], [[1, 1.1], [1.9, 2]], atol=1e-9)
    assert lanes.rules.action_space(lanes.rules.params) == gym.spaces.Discrete(4)


def test_pursuers_may_be_of_different_speeds_which_are_classes() -> None:
    rules = Pursuit(speeds=[0.5, 1, 0.5, 0.8])
    assert rules.params.pursuers == 4
    assert rules.spec.sensitive["speed"] == ("1", "0.8", "0.5")
    lanes = Lanes(rules, 2)
    lanes.seed(0)
    facts = lanes.restart().facts
    assert facts["sensitive"][0].tolist() == [[0, 2], [1, 0], [2, 2], [3, 1]]
    assert lanes.records["speed"][0].tolist() == [0.5, 1, 0.5, 0.8]


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


def test_the_published_physics_slow_nobody_who_touches_nobody_whatever_the_time_step() -> None:
    lanes = world(E6, legacy_physics=True, time_step=0.02)
    head(lanes, 0, 0, 0)
    np.testing.assert_allclose(places(lanes)[:3, 0], np.array(E6)[:, 0] + 0.02 * 1.2)


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speeds": [1, -1]}, "speeds must be at least 0|speeds must be between 0 and 100, got -1"),
        ({"speeds": 2}, "speeds must be 'equal', or a factor of at least 0 for each pursuer, got 2"),
        ({"speeds": [1, 1], "pursuers": 3}, "speeds must hold one factor for each of 3 pursuers"),
        ({"speeds": "own"}, "speeds must be a factor for each pursuer to be your own, got 'own'"),
        ({"pursuer_speed": 50, "speeds": [1, 3]}, "pursuer_speed times speeds must be at most 100, got 150"),
        ({"start_distance": 4}, "start_distance must be at most half the side, 3, got 4"),
        ({"profile": "authors", "include_headings": True}, "include_headings must be False for the observation"),
    ],
)
def test_what_does_not_go_together_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pursuit(**given)
