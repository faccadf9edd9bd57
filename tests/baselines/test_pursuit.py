"""Designed teams of FairPursuit, and what is told of the episodes that they play."""

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.baselines.team.play import (
    SetSpeed,
    TeamPlay,
    by_seed,
    evaluate_speeds,
    paired_difference,
    play_team,
)
from fair_envs.baselines.team.policy import Learned
from fair_envs.core import Lanes, Rules
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.envs.pursuit.policies import (
    Greedy,
    Planner,
    ShuffledRoles,
    Team,
    actions_of,
    dealt,
    exchanged,
    greedy_directions,
)
from fair_envs.envs.pursuit.rules import Pursuit
from fair_envs.support.aliases import Floats, Ints
from tests.helpers import actions, uncompiled

E6 = [[1, 1], [5, 2], [4, 5.5], [3, 3]]
GREEDY_E6 = [0.785398, 2.677945, -1.951303]
KINDS = ("direction", "heading", "discrete")
SMALL: dict[str, Any] = {"samples": 60, "horizon": 24}


def started(*, lanes: int = 1, seed: int = 0, **parameters: Any) -> Lanes:
    """Return lanes whose first episodes have begun."""
    batch = Lanes(Pursuit(**parameters), lanes)
    batch.seed(seed)
    batch.restart()
    return batch


def placed(positions: Any, **parameters: Any) -> Lanes:
    """Return one lane with the agents at these positions, shape (agents, 2)."""
    lanes = started(**parameters)
    lanes.records["position"] = np.array(positions, float)
    return lanes


def greedy_angles(lanes: Lanes) -> list[float]:
    directions = greedy_directions(lanes)[0]
    return list(np.arctan2(directions[:, 1], directions[:, 0]))


def equal(one: TeamPlay, other: TeamPlay) -> bool:
    """Return whether the same came of the same episodes."""
    fields = ("captured", "captors", "returns", "steps")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


def play(**numbers: Any) -> TeamPlay:
    """Return episodes in which these captured, shape (E, n)."""
    captors = np.array(numbers.pop("captors"), bool)
    captured = np.asarray(captors.any(axis=1))
    steps = np.where(captured, 10 + np.arange(len(captured)), 500)
    given = {"captured": captured, "captors": captors, "returns": np.zeros(captors.shape), "steps": steps, "seed": 0}
    return TeamPlay(**{**given, **numbers})


class Still(Team):
    """Pursuer 0 chases, the others keep their first heading."""

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        directions = greedy_directions(self.lanes)
        directions[:, 1:] = 0
        return actions_of(self.lanes.rules, directions)


class Away(Team):
    """Pursuer 0 chases, by what it sees; the others run away."""

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        ways = observation[..., :2].copy()
        ways[:, 1:] *= -1
        return actions_of(self.lanes.rules, ways)


# --------------------------------------------------------------------------------------------------- greedy


@pytest.mark.nojit
def test_s1_greedy_pursuers_head_across_the_seam() -> None:
    assert greedy_angles(placed(E6)) == pytest.approx(GREEDY_E6, abs=1e-6)
    assert greedy_angles(placed([[5.9, 3], [0.3, 3], [0.1, 5.9], [0.1, 3.0]])) == pytest.approx(
        [0, math.pi, -math.pi / 2], abs=1e-6
    )


@pytest.mark.nojit
def test_greedy_pursuers_head_for_the_nearest_evader_that_is_free() -> None:
    lanes = placed([[1, 1], [5, 5], [2, 2], [2, 1], [5, 4]], evaders=2)
    assert greedy_angles(lanes) == pytest.approx([0, -math.pi / 2, -math.pi / 2])
    lanes.records["free"] = [[0, 1]]
    assert greedy_angles(lanes)[:2] == pytest.approx([math.atan2(-3, -2), -math.pi / 2])
    lanes.records["free"] = 0
    assert not greedy_directions(lanes).any()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_action_heads_in_the_direction(kind: Any) -> None:
    lanes = placed(E6, action=kind, headings=64)
    action = actions(Greedy(), lanes)
    space = lanes.rules.action_space(lanes.rules.params)
    assert action.dtype == space.dtype and all(space.contains(each) for each in action[0])
    lanes.advance(action)
    facing = lanes.records["facing"][0, :3]
    error = np.angle(np.exp(1j * (np.arctan2(facing[:, 1], facing[:, 0]) - GREEDY_E6)))
    assert np.abs(error).max() < (math.pi / 64 + 1e-6 if kind == "discrete" else 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_captures_if_faster_and_never_at_equal_speed(kind: Any) -> None:
    plays = evaluate_speeds(Greedy(), Pursuit(action=kind, headings=32), speeds=(1.2, 1.0), episodes=50, seed=3)
    assert plays[1.2].success.value == 1 and plays[1.0].success.value == 0


def test_a_team_refuses_another_environment() -> None:
    lanes = Lanes(Harvest(), 1)
    with pytest.raises(ValueError, match=r"rules must be those of FairPursuit, got those of harvest"):
        actions(Greedy(), lanes)
    with pytest.raises(ValueError, match=r"rules must be those of a team"):
        play_team(Greedy(), Harvest(), episodes=1, seed=0)


# -------------------------------------------------------------------------------------------------- planner


def test_the_planner_captures_where_greedy_cannot() -> None:
    team = play_team(Planner(**SMALL), Pursuit(), episodes=12, seed=5)
    assert team.success.value >= 0.75
    assert paired_difference(team, play_team(Greedy(), Pursuit(), episodes=12, seed=5)).low > 0


def test_the_planner_plays_alike_in_any_batch_and_again() -> None:
    planner, rules = Planner(samples=20, horizon=12, seed=7), Pursuit(pursuer_speed=1.1, horizon=60)
    plays = [play_team(planner, rules, episodes=7, seed=2, lanes=lanes) for lanes in (7, 7, 3, 1)]
    assert all(equal(plays[0], other) for other in plays[1:])
    assert not equal(plays[0], play_team(Planner(samples=20, horizon=12), rules, episodes=7, seed=2))


@pytest.mark.nojit
def test_the_planner_looks_ahead_without_a_trace_and_keeps_to_its_plan() -> None:
    lanes, planner = started(lanes=2), Planner(samples=4, horizon=4, every=2)
    before = lanes.snapshot()
    first = actions(planner, lanes)
    assert (lanes.records == before).all()
    lanes.advance(first)
    np.testing.assert_array_equal(actions(planner, lanes), first)
    lanes.advance(first)
    assert (actions(planner, lanes) != first).any()


@pytest.mark.nojit
def test_the_planner_finds_a_capture_that_is_a_step_away() -> None:
    lanes = placed([[3, 3.15], [5, 5], [1, 1], [3, 3]], pursuer_speed=1.2, evader_speed=0.1)
    lanes.advance(actions(Planner(samples=64, horizon=2, every=1), lanes))
    assert lanes.records["caught"][0, 0] == 1


@pytest.mark.parametrize("kind", ["heading", "discrete"])
def test_the_planner_takes_every_kind_of_action(kind: Any) -> None:
    rules = Pursuit(action=kind, evaders=2, horizon=150)
    assert play_team(Planner(**SMALL), rules, episodes=4, seed=0, speed=1.1).success.value >= 0.5


def test_the_planner_forgets_its_plan_where_an_episode_begins() -> None:
    lanes, planner = started(lanes=2), Planner(samples=8, horizon=8)
    first = actions(planner, lanes)
    lanes.restart(mask=np.array([False, True]))
    again = actions(planner, lanes)
    np.testing.assert_array_equal(again[0], first[0])
    np.testing.assert_array_equal(again[1], actions(Planner(samples=8, horizon=8), lanes)[1])


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("samples", 0, "samples must be at least 1, got 0"),
        ("horizon", 0, "horizon must be at least 1, got 0"),
        ("every", 37, "every must be between 1 and 36, got 37"),
        ("explored", 301, "explored must be between 1 and 300, got 301"),
        ("weight", -1, "weight must be at least 0, got -1"),
        ("seed", -1, "seed must be between 0"),
    ],
)
def test_a_planner_that_cannot_be_is_refused(name: str, value: int, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Planner(**{name: value})  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------- learnt


class Pointer:
    """Heads for the evader that a row shows, or the heading that it stands nearest to."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.rows = rules, 0

    def predict(self, rows: NDArray[Any], *, deterministic: bool) -> tuple[NDArray[Any], None]:
        assert deterministic
        self.rows = len(rows)
        return actions_of(self.rules, rows[:, :2]), None


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_plays_a_row_for_each_pursuer(kind: Any) -> None:
    rules = Pursuit(action=kind, pursuer_speed=1.2)
    model = Pointer(rules)
    learned, greedy = (play_team(team, rules, episodes=20, seed=1) for team in (Learned(model), Greedy()))
    assert model.rows == 60
    np.testing.assert_array_equal(learned.captors, greedy.captors)


# ------------------------------------------------------------------------------------------- shuffled roles


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"teammates": "index"},
        {"teammates": "sorted", "include_headings": True, "include_speed": True},
        {"observation": "torus", "action": "heading"},
        {"pursuers": 4, "evaders": 2},
    ],
    ids=str,
)
def test_shuffled_roles_give_the_inner_teams_captures_to_others(parameters: dict[str, Any]) -> None:
    rules, seed = Pursuit(pursuer_speed=1.3, **parameters), 11
    roles: dict[int, Ints] = {}

    def in_place(rules: Rules, records: NDArray[np.void]) -> None:
        """Put the roles where the bodies that play them begin."""
        lanes = Lanes(rules, len(records))
        lanes.records[:] = records
        drawn = dealt(lanes, seed=seed)
        roles.update(zip(records["seed"].tolist(), drawn, strict=True))
        records[:] = exchanged(records, drawn.argsort(axis=1))

    inner = play_team(Away(), rules, episodes=40, seed=0, amendments=[in_place])
    shuffled = play_team(ShuffledRoles(Away(), seed=seed), rules, episodes=40, seed=0, lanes=9)
    assert inner.captors.any() and inner.success.value == shuffled.success.value
    np.testing.assert_array_equal(shuffled.steps, inner.steps)
    np.testing.assert_allclose(shuffled.returns.sum(axis=1), inner.returns.sum(axis=1))
    drawn = np.array([roles[episode] for episode in range(40)])
    np.testing.assert_array_equal(shuffled.captors, np.take_along_axis(inner.captors, drawn, axis=1))


def test_shuffled_roles_take_the_unfairness_away_and_leave_the_captures() -> None:
    rules = Pursuit(pursuer_speed=1.2)
    inner, shuffled = (
        play_team(team, rules, episodes=300, seed=0, lanes=300) for team in (Still(), ShuffledRoles(Still(), seed=1))
    )
    assert inner.fairness.deficit > 0.9 * math.log2(3) and inner.fairness.p_value < 0.002
    assert shuffled.fairness.deficit < shuffled.fairness.null_level(level=0.999)
    assert shuffled.fairness.p_value > 0.01
    assert inner.success.value == shuffled.success.value == 1
    assert inner.shares[0] > 0.95 and shuffled.shares.max() < 0.42


@pytest.mark.nojit
def test_roles_are_a_function_of_seed_and_episode_and_each_is_as_likely() -> None:
    lanes = started(lanes=600)
    roles = dealt(lanes, seed=3)
    np.testing.assert_array_equal(dealt(started(lanes=3, seed=100), seed=3), roles[100:103])
    assert (dealt(lanes, seed=4) != roles).any()
    _, counts = np.unique(roles, axis=0, return_counts=True)
    assert len(counts) == 6 and counts.min() > 60


def test_a_team_within_keeps_its_plans_by_role() -> None:
    rules, planner = Pursuit(horizon=60), Planner(samples=20, horizon=12)
    one, other = (play_team(ShuffledRoles(planner), rules, episodes=4, seed=0, lanes=lanes) for lanes in (4, 1))
    assert equal(one, other)


@uncompiled
def test_pursuers_of_different_speeds_cannot_change_roles() -> None:
    with pytest.raises(ValueError, match=r"pursuers of one speed to exchange their roles, got \[1.0, 0.5\]"):
        play_team(ShuffledRoles(Greedy()), Pursuit(speeds=[1, 0.5]), episodes=1, seed=0)


# ----------------------------------------------------------------------------------------------- evaluation


def test_results_do_not_depend_on_how_many_lanes_are_played_at_once() -> None:
    rules = Pursuit(pursuer_speed=1.1, evaders=2)
    plays = [play_team(Greedy(), rules, episodes=25, seed=4, lanes=lanes) for lanes in (100, 7, 1)]
    assert equal(plays[0], plays[1]) and equal(plays[0], plays[2])
    later = play_team(Greedy(), rules, episodes=20, seed=9)
    np.testing.assert_array_equal(later.steps, plays[0].steps[5:])


def test_two_teams_meet_the_same_starts() -> None:
    met: list[Floats] = []

    def note(rules: Rules, records: NDArray[np.void]) -> None:
        met.append(records["position"].copy())

    for team in (Greedy(), Still()):
        play_team(team, Pursuit(horizon=5), episodes=6, seed=8, amendments=[note])
    np.testing.assert_array_equal(met[0], met[1])
    np.testing.assert_array_equal(met[0], started(lanes=6, seed=8).records["position"])


def test_a_play_tells_captures_steps_and_returns_of_each_episode() -> None:
    rules = Pursuit(pursuer_speed=1.2, horizon=60)
    plays = play_team(Greedy(), rules, episodes=40, seed=0)
    assert plays.captured.any() and not plays.captured.all()
    np.testing.assert_array_equal(plays.captured, plays.captors.any(axis=1))
    assert (plays.steps[~plays.captured] == 60).all()
    paid = np.where(plays.captured, 50 - 0.1 * (plays.steps - 1), -6.0)
    np.testing.assert_allclose(plays.returns, np.repeat(paid[:, np.newaxis], 3, axis=1))


def test_a_time_limit_that_terminates_is_no_capture() -> None:
    assert not play_team(Greedy(), Pursuit(at_horizon="terminate", horizon=5), episodes=4, seed=0).captured.any()


def test_all_of_several_evaders_have_to_be_captured() -> None:
    plays = play_team(Greedy(), Pursuit(pursuer_speed=1.2, evaders=2, horizon=100), episodes=40, seed=0)
    assert (plays.captors.any(axis=1) & ~plays.captured).any() and plays.captured.any()


def test_success_has_wilsons_interval() -> None:
    found = play(captors=[[1, 0]] * 3 + [[0, 0]]).success
    assert (found.value, round(found.low, 4), round(found.high, 4)) == (0.75, 0.3006, 0.9544)


def test_measures_of_a_play() -> None:
    plays = play(captors=[[1, 0, 0]] * 60 + [[0, 1, 0]] * 30 + [[0, 0, 1]] * 10)
    assert (round(plays.fairness.deficit, 6), round(plays.identity, 6)) == (0.289501, 0.144550)
    assert plays.fairness.p_value < 0.01
    assert plays.shares.tolist() == [0.6, 0.3, 0.1]
    sets = {(): 0, (0,): 60, (1,): 30, (2,): 10, (0, 1): 0, (0, 2): 0, (1, 2): 0, (0, 1, 2): 0}
    assert list(plays.outcomes.items()) == list(sets.items())
    assert plays.steps_to_capture.value == pytest.approx(59.5)
    assert json.loads(json.dumps(plays.as_dict()))["outcomes"] == {"0": 60, "1": 30, "2": 10}


def test_without_captures_steps_and_shares_are_undefined() -> None:
    plays = play(captors=[[0, 0]] * 5)
    assert math.isnan(plays.steps_to_capture.value) and np.isnan(plays.shares).all()
    assert plays.fairness.deficit == 0 and plays.fairness.p_value == 1
    assert json.loads(json.dumps(plays.as_dict()))["steps_to_capture"]["value"] is None


def test_seeds_are_averaged_and_not_pooled() -> None:
    means = by_seed(
        [play(captors=[[1, 0]] * 10), play(captors=[[0, 1]] * 10), play(captors=[[1, 0]] * 5 + [[0, 0]] * 5)]
    )
    assert means["deficit"].value == pytest.approx((1 + 1 + 0.5) / 3)
    assert means["success"].value == pytest.approx(2.5 / 3) and means["success"].n == 3
    assert means["steps_to_capture"].value == pytest.approx((14.5 + 14.5 + 12) / 3)
    with pytest.raises(ValueError, match="plays must contain results for at least one training seed, got none"):
        by_seed([])


def test_a_seed_without_captures_is_left_out_on_request() -> None:
    plays = [play(captors=[[1, 0]] * 2), play(captors=[[0, 0]] * 2)]
    assert math.isnan(by_seed(plays)["steps_to_capture"].value)
    assert by_seed(plays, undefined="omit")["steps_to_capture"].value == 10.5


def test_a_difference_is_paired_by_start() -> None:
    one, other = play(captors=[[1, 0]] * 4), play(captors=[[1, 0], [0, 0], [1, 0], [1, 1]])
    assert paired_difference(one, other).value == 0.25 and paired_difference(one, one).high == 0
    for second in (play(captors=[[1, 0]] * 3), play(captors=[[1, 0]] * 4, seed=1)):
        with pytest.raises(ValueError, match="second must have the episodes of first, 4 from seed 0"):
            paired_difference(one, second)


@uncompiled
def test_a_set_speed_multiplies_the_pursuers_own_factors_from_the_next_episode_on() -> None:
    lanes, speed = Lanes(Pursuit(speeds=[1, 0.5]), 2), SetSpeed(None)
    lanes.amendments.append(speed)
    lanes.seed(0)
    lanes.restart()
    assert lanes.records["speed"].tolist() == [[1, 0.5]] * 2
    speed.value = 0.8
    lanes.restart(mask=np.array([True, False]))
    assert lanes.records["speed"].tolist() == [[0.8, 0.4], [1, 0.5]]


def test_a_speed_that_is_set_is_the_rules_speed() -> None:
    set_later = play_team(Greedy(), Pursuit(), episodes=10, seed=0, speed=1.3)
    assert equal(set_later, play_team(Greedy(), Pursuit(pursuer_speed=1.3), episodes=10, seed=0))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"episodes": 0}, "episodes must be an integer of at least 1, got 0"),
        ({"lanes": 0}, "lanes must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be between 0"),
        ({"speed": -0.1}, "speed must be between 0 and 100, got -0.1"),
    ],
)
def test_episodes_that_cannot_be_are_refused(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        play_team(Greedy(), Pursuit(), **{"episodes": 1, "seed": 0, **wrong})


@pytest.mark.parametrize("speeds", [(), (1.0, 1)])
def test_speeds_must_be_given_once_each(speeds: Any) -> None:
    with pytest.raises(ValueError, match="speeds must contain at least one speed and no repetitions, got"):
        evaluate_speeds(Greedy(), Pursuit(), speeds=speeds, episodes=1, seed=0)
