"""The study of team fairness: its cells, and what its report says of plays that are made here."""

import csv
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from fair_envs import make_rules
from fair_envs.baselines.runs import read_weights
from fair_envs.baselines.team.evaluation import penalty_of
from fair_envs.baselines.team.play import TeamPlay, play_team
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.team.training import TeamTraining, team_settings, train_team
from fair_envs.envs.pursuit.policies import Greedy, actions_of
from fair_envs.evaluation import as_policy, begun
from fair_envs.experiments import tables
from fair_envs.experiments.jobs import read_cell, run_cell
from fair_envs.experiments.seeds import TABLE, Arm, SeedRow
from fair_envs.metrics import mean_interval, share_interval
from fair_envs.metrics.inference import fisher, majority_units_needed, welch
from fair_envs.reproduction.claims import Claim, Outcome, comparisons, everywhere_within
from fair_envs.reproduction.grupen2022 import jobs, sections
from fair_envs.reproduction.grupen2022 import report as paper
from fair_envs.reproduction.grupen2022.jobs import (
    BY_NUMBER,
    DEALT,
    LARGER,
    METHODS,
    MIDDLE,
    PLANNED,
    SCALES,
    SLOWER,
    TEAMS,
    WEIGHTS,
    ScriptedTeamCell,
    TeamCell,
    TeamResult,
    cells,
    numbers_of,
    read_team,
)
from fair_envs.reproduction.grupen2022.report import Report
from fair_envs.reproduction.grupen2022.roles import distances_of, equivariance_gap, role_numbers
from fair_envs.reproduction.study import PRINTED, REPAIRED
from fair_envs.support.seeds import TEST_EACH, TEST_SEEDS
from tests.helpers import markdown_rows
from tests.jobs import run_here

SMOKE, SMALL, FULL = (SCALES[name] for name in ("smoke", "small", "full"))
EVERY = replace(SMALL, methods=tuple(METHODS))  # all arms
FEW: dict[str, Any] = {"parameters": {"side": 1.5, "horizon": 40, "include_speed": True}, "steps": 600, "lanes": 2}
FEW |= {"learning_starts": 60, "batch_size": 8, "buffer_size": 200, "actor": (8, 8), "critic": (8, 8)}


@cache
def cells_of(scale: str) -> Mapping[str, Sequence[Any]]:
    """Return the cells of a scale, or of the small one with all arms, which are the same each time."""
    return cells(EVERY if scale == "every" else SCALES[scale])


def test_a_cell_has_the_seed_of_its_training() -> None:
    teams = [cell for group in cells_of("small").values() for cell in group if isinstance(cell, TeamCell)]
    assert teams and all(cell.seed == cell.training.seed for cell in teams)


def test_no_seed_is_one_of_the_earlier_run_or_of_the_pilots() -> None:
    for scale in SCALES:
        seeds = {cell.seed for group in cells_of(scale).values() for cell in group}
        assert not seeds & {*range(5), *range(20, 23), 100, 101}


def training(name: str, scale: str = "small") -> TeamTraining:
    """Return a method's first training."""
    cell: Any = cells_of(scale)[name][0]
    settings: TeamTraining = cell.training
    return settings


# ------------------------------------------------------------------------------------------------------- cells


def test_each_arm_has_a_cell_for_each_of_its_seeds_and_equal_scales_have_equal_cells() -> None:
    one, again, fewer = cells(SMALL), cells(SMALL), cells(replace(SMALL, seeds=1))
    assert set(one) == {*SMALL.methods, *TEAMS} and set(cells(SMOKE)) == {*METHODS, *TEAMS}
    assert {name: len(group) for name, group in one.items()} == {
        name: SMALL.seeds if name in jobs.MAIN else SMALL.fewer for name in one
    }
    assert SMALL.seeds >= 20 and SMALL.fewer >= 10
    identities = [cell.identity for group in one.values() for cell in group]
    assert len(set(identities)) == len(identities)
    assert identities == [cell.identity for group in again.values() for cell in group]
    assert all([cell.identity for cell in fewer[name]] == [group[0].identity] for name, group in one.items())


def test_methods_differ_from_mutual_reward_in_what_their_names_say() -> None:
    usual = training("mutual", "every")
    assert (usual.algorithm, usual.parameters.get("reward")) == ("ddpg", None)
    assert training("individual", "every") == replace(usual, parameters={**usual.parameters, "reward": "individual"})
    assert training("Fair-E", "every") == replace(usual, algorithm="fair-e")
    assert training("Fair-E, sets", "every") == replace(usual, algorithm="fair-e", network="sets")
    number = replace(usual, algorithm="fair-e", parameters={**usual.parameters, "teammates": "index"})
    assert training("Fair-E, by number", "every") == number
    assert training(LARGER, "every") == replace(usual, algorithm="fair-e", batch_size=3 * usual.batch_size)
    strong, scaled = (training(f"Fair-ER {kind}", "every") for kind in ("1", "normalised"))
    assert strong == replace(usual, algorithm="fair-er", fairness_weight=strong.fairness_weight)
    assert scaled == replace(usual, algorithm="fair-er", form="normalised", fairness_weight=0.5)
    assert training("Fair-ER automatic", "every") == replace(scaled, form="automatic")


def test_weights_are_the_papers_where_rewards_are_not_scaled() -> None:
    for weight in WEIGHTS:
        for scale in ("every", "full"):
            found = training(f"Fair-ER {weight:g}", scale)
            assert found.fairness_weight == pytest.approx(weight * found.reward_scale)
    assert (training("mutual").reward_scale, training("mutual", "full").reward_scale) == (0.1, 1.0)


def test_the_full_scale_has_the_papers_settings_in_observations_that_are_exchanged() -> None:
    found = training("Fair-E", "full")
    assert (found.actor, found.critic, found.batch_size, found.buffer_size) == ((128,) * 2, (128,) * 3, 512, 500_000)
    assert (found.learning_rate, found.critic_learning_rate, found.tau, found.gamma) == (1e-4, 1e-3, 0.001, 0.99)
    assert (found.n_steps, found.train_freq, found.lanes, found.speeds) == (1, 5, 1, (1.2, 0.4))
    assert found.parameters == {"observation": "relative", "teammates": "cyclic", "include_speed": True}


def test_policies_are_kept_at_every_speed_that_is_tested() -> None:
    for scale, own in SCALES.items():
        for name in own.methods:
            assert training(name, scale).kept_levels == own.speeds_of(name)
    assert SLOWER not in cells_of("full") and min(FULL.speeds) < sections.SLOWEST
    assert EVERY.speeds_of("greedy") == EVERY.speeds_of(SLOWER) == jobs.TENTHS[:8]
    fewer = replace(SMALL, methods=("mutual",))
    assert fewer.speeds_of("greedy") == fewer.speeds == jobs.TENTHS[:6]


def test_the_speed_falls_equally_fast_in_all_arms() -> None:
    arms = [training(name) for name in ("mutual", SLOWER)]
    assert [arm.speeds for arm in arms] == [(1.2, 0.7), (1.2, 0.5)]
    assert [arm.steps / (arm.speeds[0] - arm.speeds[1]) for arm in arms] == pytest.approx([7_200_000] * 2)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a small training and a scripted team gave."""
    learned = team_settings(
        "FairPursuit-v0", preset="small", algorithm="fair-er", speeds=(1.2, 0.8), levels=(1.2, 0.8), **FEW
    )
    tested: dict[str, Any] = {"speeds": (1.2, 0.8), "episodes": 7}
    group = [
        TeamCell(training=learned, dealt=True, **tested),
        ScriptedTeamCell(name="greedy", seed=3, parameters=FEW["parameters"], **tested),
    ]
    folders = [run_cell(cell, tmp_path_factory.mktemp("cells")) for cell in group]
    return {"results": [read_team(folder) for folder in folders], "cell": group[0], "folder": folders[0]}


def test_a_training_is_tested_with_the_policy_of_each_speed_and_the_last_and_with_roles_dealt(few: Any) -> None:
    learned, _ = few["results"]
    assert set(learned.plays) == {"of the speed", "last", MIDDLE, f"{DEALT}of the speed", f"{DEALT}last"}
    assert all(list(of) == [1.2, 0.8] for kept, of in learned.plays.items() if kept != MIDDLE)
    assert learned.learning.shape[1] == 6 and learned.learning[-1, 0] <= 600
    assert 0 < learned.seconds < 600  # a difference of two readings of the same clock
    last = (learned.plays[kept][0.8] for kept in ("of the speed", "last"))
    assert len({play.captors.tobytes() for play in last}) == 1  # the last level's policy is the last one


def test_policies_are_also_kept_in_the_middle_of_their_levels(few: Any) -> None:
    learned, _ = few["results"]
    found = numbers_of(learned)
    assert {"middle success at 1.2", "middle captors 000 at 1.2"} <= set(found)  # this curriculum ends before 0.8
    course = few["cell"].training
    follow = jobs.ComparedLevels(
        course.course(), levels=(1.2, 1.0), rules=make_rules(course.env_id, **course.parameters)
    )
    train_team(course, follow=follow)
    middle, end = follow.middles[1.0], follow.states[1.0]
    assert any((middle[name] != end[name]).any() for name in end)


def test_a_teams_distances_and_roles_are_measured(few: Any) -> None:
    learned, greedy = few["results"]
    for result, kept in ((learned, "of the speed"), (greedy, "last")):
        assert list(result.distances) == [1.2, 0.8]
        began, ended = result.distances[1.2]
        assert began.shape == ended.shape == result.plays[kept][1.2].captors.shape
        assert (began >= 0.5).all() and (ended != began).all()
    np.testing.assert_array_equal(learned.distances[1.2][0], learned.distances[0.8][0])  # the same starts
    captors, (_, ended) = greedy.plays["last"][1.2].captors, greedy.distances[1.2]
    assert captors.any() and (ended[captors] < 0.3).all() and ended[~captors].max() > ended[captors].max()
    assert all(0 <= value <= 2 for value in learned.gaps.values()) and learned.gaps and not greedy.gaps
    assert numbers_of(learned)["equivariance gap at 0.8"] == learned.gaps[0.8]


def test_roles_are_who_captures_by_nearness_and_where_pursuers_end() -> None:
    began = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    ended = np.array([[0.0, 2.0, 4.0], [0.0, 4.0, 2.0], [9.0, 9.0, 9.0]])
    captors = np.array([[True, False, False], [True, True, False], [False, False, False]])
    found = role_numbers(captors, np.stack([began, ended]))
    assert [found[f"captures of nearest {k}"] for k in range(3)] == [1, 1, 1]
    assert [found[f"end distance of {k}"] for k in range(3)] == [0, 3, 3]
    assert [found[f"end distance, nearest {k}"] for k in range(3)] == [0, 2, 4]
    assert 0 < found["end distance, relabelled"] < 4
    nothing = role_numbers(np.zeros_like(captors), np.stack([began, ended]))
    assert [nothing[f"captures of nearest {k}"] for k in range(3)] == [0, 0, 0] and len(nothing) == 3


def test_distances_cross_the_edges_of_the_torus() -> None:
    rules = make_rules("FairPursuit-v0", side=3.0)
    lanes = begun(rules, np.arange(2, dtype=np.uint64))
    position = lanes.records["position"]
    position[:] = 1.5
    position[0, 0], position[0, 3] = (0.1, 1.0), (2.9, 1.0)  # pursuer 0, and the evader
    assert distances_of(lanes)[0].tolist() == pytest.approx([0.2, *[math.hypot(1.4, 0.5)] * 2])
    assert distances_of(lanes)[1].tolist() == [0, 0, 0]


def test_an_equivariant_team_has_no_gap_and_independent_directions_have_one() -> None:
    rules = make_rules("FairPursuit-v0")

    def apart(name: str) -> float:
        return equivariance_gap(TEAMS[name](rules, 0), rules, speed=0.8)

    assert apart("greedy") == pytest.approx(0, abs=1e-6) and apart("straight") == pytest.approx(0, abs=1e-6)
    by_number = as_policy(lambda _, u: actions_of(rules, np.broadcast_to(THIRDS, (*u.shape, 2))))
    assert equivariance_gap(by_number, rules, speed=0.8) == pytest.approx(1.5)
    assert apart("random") == pytest.approx(1, abs=0.05)
    discrete = make_rules("FairPursuit-v0", action="discrete")
    with pytest.raises(ValueError, match="must have directions or angles as actions, got"):
        equivariance_gap(Greedy(), discrete, speed=0.8)


@pytest.mark.parametrize(("teammates", "fair"), [("cyclic", True), ("index", False)])
def test_shared_networks_are_equivariant_if_observations_are_exchanged(teammates: str, fair: bool) -> None:
    own = {**FEW, "parameters": {**FEW["parameters"], "observation": "relative", "teammates": teammates}}
    size: dict[str, Any] = {"speeds": (1.2, 0.8), "levels": (1.2,), **own}
    course = team_settings("FairPursuit-v0", preset="small", algorithm="fair-e", **size)
    rules = make_rules(course.env_id, **course.parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = equivariance_gap(Learned(train_team(course)), rules, speed=1.2)
    assert (found == pytest.approx(0, abs=1e-5)) == fair


THIRDS = np.array([[1, 0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])


def test_shared_networks_have_no_penalty(tmp_path: Path) -> None:
    size: dict[str, Any] = {"speeds": (1.2, 0.8), "levels": (1.2, 0.8), **FEW}
    shared = team_settings("FairPursuit-v0", preset="small", algorithm="fair-e", **size)
    found = read_team(run_cell(TeamCell(training=shared, speeds=(1.2, 0.8), episodes=2), tmp_path))
    assert found.penalties == {} and not any("penalty" in name for name in numbers_of(found))


def test_what_the_penalty_does_is_measured(few: Any) -> None:
    learned, greedy = few["results"]
    assert list(learned.penalties) == [1.2, 0.8] and all(0 < value <= 2 for value in learned.penalties.values())
    assert learned.penalties[0.8] != learned.penalties[1.2]
    assert learned.penalised.shape[1] == 1 + len(jobs.PULLS) and np.isfinite(learned.penalised[-1]).all()
    found = jobs.numbers_of(learned)
    assert found["penalty at 0.8"] == learned.penalties[0.8]
    assert any(name.startswith("gradient of penalty@") for name in found)
    assert not greedy.penalties and not any("penalty" in name for name in jobs.numbers_of(greedy))


def test_a_cell_run_again_has_the_same_result_and_stores_its_policies(few: Any, tmp_path: Path) -> None:
    again = run_cell(few["cell"], tmp_path)
    records = [read_cell(folder) for folder in (few["folder"], again)]
    for name, value in records[1][1].items():
        np.testing.assert_array_equal(records[0][1][name], value, err_msg=name)
    states: Any = read_weights(again / "levels.pt")
    assert list(states) == [1.2, 0.8] and (states[1.2]["actor.weights"] != states[0.8]["actor.weights"]).any()


def test_comparing_networks_does_not_change_the_training(few: Any) -> None:
    course = few["cell"].training
    usual = train_team(course)
    kept: Any = read_weights(few["folder"] / "levels.pt")
    assert all((kept[0.8][name] == value).all() for name, value in usual.policy.state_dict().items())


def test_the_first_points_of_a_penalty_are_those_with_updates() -> None:
    rows = np.array([[1000.0 * (k + 1), *[np.nan if k < 3 else k] * len(jobs.PULLS)] for k in range(100)])
    found = jobs.numbers_of(TeamResult({"last": {}}, np.zeros((0, 0)), 0.0, rows))
    points = {name: value for name, value in found.items() if name.startswith("penalty@")}
    assert len(points) == jobs.POINTS and next(iter(points.items())) == ("penalty@6000", 4.0)


def test_equal_networks_have_no_penalty() -> None:
    settings = team_settings(
        "FairPursuit-v0", preset="small", algorithm="ddpg", speeds=(1.2, 0.8), levels=(1.2,), **FEW
    )
    model: Any = train_team(settings)
    same = {
        name: value[:1].expand_as(value).clone() if value.ndim and len(value) == model.agents else value
        for name, value in model.policy.state_dict().items()
    }
    drawn = np.random.get_state()[1].copy()  # type: ignore[index]
    found = penalty_of(model, seed=0)
    assert found > 0.01 and found == penalty_of(model, seed=0) != penalty_of(model, seed=1)
    assert (drawn == np.random.get_state()[1]).all()  # type: ignore[index]
    model.policy.load_state_dict(same)
    assert penalty_of(model, seed=0) == pytest.approx(0, abs=1e-6)


def test_a_scripted_team_meets_the_starts_of_the_trainings_of_its_seed(few: Any) -> None:
    _, greedy = few["results"]
    rules, seed = make_rules("FairPursuit-v0", **FEW["parameters"]), TEST_SEEDS + 3 * TEST_EACH
    again = play_team(Greedy(), rules, episodes=7, seed=seed, speed=0.8)
    found = greedy.plays["last"][0.8]
    assert found.seed == seed and (found.captors == again.captors).all() and (found.steps == again.steps).all()
    assert list(greedy.plays) == ["last"] and not len(greedy.learning)


def test_teams_without_training_capture_as_their_names_say(tmp_path: Path) -> None:
    found = {}
    for name in TEAMS:
        cell = ScriptedTeamCell(name=name, seed=0, speeds=(1.2, 0.8), episodes=10, parameters={"side": 3.0})
        found[name] = jobs.numbers(name, run_cell(cell, tmp_path))
    assert found["greedy"]["success at 1.2"] == found["planner"]["success at 0.8"] == 1
    assert found["greedy"]["success at 0.8"] == found["straight"]["success at 0.8"] == 0
    assert max(found[name]["success at 1.2"] for name in ("random", "straight")) < 0.5


# ------------------------------------------------------------------------------------------------------ numbers


def play(counts: Sequence[int], *, episodes: int = 500) -> TeamPlay:
    """Return plays in which each pursuer captured so often, alone."""
    captors = np.zeros((episodes, 3), bool)
    captors[np.arange(sum(counts)), np.repeat(np.arange(3), counts)] = True
    captured: Any = captors.any(axis=1)
    steps = np.where(captured, 40, 250)
    return TeamPlay(captured=captured, captors=captors, returns=np.where(captors, 50.0, 0.0), steps=steps, seed=0)


def test_numbers_are_those_of_the_plays() -> None:
    result = TeamResult(
        {
            "of the speed": {1.0: play((300, 50, 50))},
            "last": {1.0: play((100, 0, 0))},
            f"{DEALT}of the speed": {1.0: play((133, 133, 134))},
        },
        np.array([[1000.0, 4, 0.5, 0, 0, 0], [2000.0, 0, 0, 0, 0, 0], [3000.0, 6, 1.0, 0, 0, 0]]),
        1.0,
    )
    found = jobs.numbers_of(result)
    assert (found["success at 1"], found["steps at 1"], found["largest at 1"]) == (0.8, 40, 0.75)
    assert found["corrected at 1"] == pytest.approx(play((300, 50, 50)).fairness.corrected)
    assert found["p at 1"] == pytest.approx(1 / (1 + jobs.PERMUTATIONS))
    assert 0 < found["floor at 1"] < 0.01 and 1 / 3 < found["largest floor at 1"] < 0.4
    assert found["last success at 1"] == 0.2
    unequal = found["corrected, unequal at 1"]
    assert unequal == pytest.approx(found["corrected at 1"] / 0.8)  # the other episodes have no capture
    assert (found["captors 100 at 1"], found["captors 000 at 1"], found["last captors 100 at 1"]) == (300, 100, 100)
    assert found["dealt corrected at 1"] < 0 < found["dealt p at 1"]
    assert found["learned@1000"] == 0.5 and np.isnan(found["learned@2000"]) and found["learned@3000"] == 1


def test_the_last_policy_with_dealt_roles_has_numbers_of_its_own() -> None:
    plays = {"of the speed": (300, 50, 50), "last": (100, 0, 0), DEALT + "of the speed": (133, 133, 134)}
    counts = {**plays, DEALT + "last": (30, 30, 40)}
    found = numbers_of(TeamResult({name: {1.0: play(own)} for name, own in counts.items()}, np.zeros((0, 0)), 1.0))
    shares = {name: found[f"{name}success at 1"] for name in ("", "last ", "dealt ", "dealt last ")}
    assert shares == {"": 0.8, "last ": 0.2, "dealt ": 0.8, "dealt last ": 0.2}
    assert found["dealt last captors 100 at 1"] == 30 and found["last captors 100 at 1"] == 100


def test_a_long_learning_curve_is_thinned_without_losing_episodes() -> None:
    rows = np.array([[1000.0 * (k + 1), k % 3, float(k % 2), 0, 0, 0] for k in range(200)])
    places, curves = jobs.learning_curves(rows)
    success = curves["learned"]
    assert list(curves) == ["learned", "captures of 0", "captures of 1", "captures of 2"]
    assert len(places) == jobs.POINTS and places[-1] == 200_000
    first = rows[:5]
    assert places[0] == 5000 and success[0] == pytest.approx((first[:, 1] @ first[:, 2]) / first[:, 1].sum())


def test_a_team_that_never_captures_has_no_steps_and_no_largest_share() -> None:
    found = jobs.numbers_of(TeamResult({"last": {1.0: play((0, 0, 0))}}, np.zeros((0, 0)), 0.0))
    counts = {f"captors {code:03b} at 1": 0.0 for code in range(1, 8)}
    assert (
        found
        == {"success at 1": 0, "corrected at 1": 0, "floor at 1": 0, "p at 1": 1, "captors 000 at 1": 500} | counts
    )


# ------------------------------------------------------------------------------------------------------ the report

FAIR = [(166, 168, 165), (167, 165, 168), (168, 166, 166)]
UNFAIR = [(400, 60, 40), (50, 420, 30), (30, 60, 408)]
SOMEWHAT = [(260, 120, 120), (120, 270, 110), (110, 120, 270)]
NEVER = [(0, 0, 0)]
SPEEDS = EVERY.speeds_of("greedy")
Counts = Mapping[float, Sequence[Sequence[int]]]
MANY = 60  # seeds that can show that at most a tenth of them does not learn


@cache
def measured(counts: tuple[int, ...]) -> Mapping[str, float]:
    return jobs.measures(play(counts))


def arm(name: str, counts: Counts, *, seeds: int | None = None, dealt: Counts | None = None) -> Arm:
    """Return an arm whose seeds, in turn, captured so often at each speed."""
    rows = []
    for seed in range(EVERY.seeds_of(name) if seeds is None else seeds):
        found = {"learned@1000": 0.2, "learned@2000": 0.5}
        for prefix, of in {"": counts, "last ": counts, "dealt ": dealt or {}}.items():
            for speed, several in of.items():
                own = measured(tuple(several[seed % len(several)]))
                found |= {f"{prefix}{key} at {speed:g}": value for key, value in own.items()}
                if not prefix:
                    found |= {f"{key.format(k)} at {speed:g}": v + k for key, v in PLACES.items() for k in range(3)}
                    found[f"end distance, relabelled at {speed:g}"] = 0.5
                    found |= {f"equivariance gap at {speed:g}": 0.25} if name in METHODS else {}
        rows.append(SeedRow(arm=name, seed=seed, job=f"{name} {seed}", code="c", seconds=60.0, numbers=found))
    return Arm(name, rows)


PLACES = {"captures of nearest {}": 10.0, "end distance of {}": 1.0, "end distance, nearest {}": 2.0}


def always(counts: Sequence[Sequence[int]]) -> Counts:
    return dict.fromkeys(SPEEDS, counts)


LESS_UNFAIR: Counts = {speed: UNFAIR if speed >= sections.FALLING else SOMEWHAT for speed in SPEEDS}
SKILLED: Counts = {speed: FAIR if speed > 1 else NEVER for speed in SPEEDS}
NEVER_BELOW_1: Counts = {speed: FAIR if speed >= 1 else NEVER for speed in SPEEDS}
FALLS: Counts = {speed: FAIR if speed >= sections.FALLING else NEVER for speed in SPEEDS}
ONE_UNFAIR: Counts = always([*FAIR, *FAIR, *FAIR, (400, 60, 40)])


def report(folder: Path, changed: Mapping[str, Counts] = {}, *, seeds: int | None = None) -> Report:
    """Return a report of a study that found what the paper says, except for what is changed."""
    counts: dict[str, Counts] = {
        "random": always(NEVER),
        "straight": always(NEVER),
        "greedy": SKILLED,
        "planner": always(FAIR),
        "mutual": LESS_UNFAIR,
        "individual": SKILLED,
        "Fair-E": FALLS,
        "Fair-E, sets": FALLS,
        "Fair-E, by number": FALLS,
        LARGER: FALLS,
        **{f"Fair-ER {weight:g}{ending}": always(FAIR) for weight in WEIGHTS for ending in ("", BY_NUMBER)},
        "Fair-ER normalised": always(FAIR),
        "Fair-ER automatic": always(FAIR),
        SLOWER: always(UNFAIR),
        **{name: of for name, of in changed.items() if name != "dealt"},
    }
    roles = changed.get("dealt", always(FAIR))
    arms = {
        name: arm(name, of, seeds=seeds, dealt=roles if name == "mutual" else None)
        for name, of in counts.items()
    }  # fmt: skip
    return Report(name="small", scale=EVERY, arms=arms, out=folder)


NAMES = ("greedy", "mutual", "slower", "unfair", "fair", "loss", "between", "strong", "free", "roles")


def claims(found: Report) -> dict[str, Claim]:
    return dict(zip(NAMES, found.claims(), strict=True))


def holds(claim: Claim, method: str = REPAIRED) -> dict[str, bool | None]:
    return {name: outcome.holds for name, outcome in claim.outcomes[method].items()}


def test_claims_hold_where_the_plays_are_as_the_paper_says(tmp_path: Path) -> None:
    found, many = claims(report(tmp_path)), claims(report(tmp_path, seeds=MANY))
    for name, claim in {**found, "free": many["free"]}.items():
        for method in (PRINTED, REPAIRED):
            if name == "strong":
                continue
            assert set(holds(claim, method).values()) == {True}, (name, method, claim.outcomes)
    assert list(holds(found["mutual"])) == ["at 1", "at 0.9", "at 0.8", "at 0.7"]
    below = [f"Fair-ER {weight:g}" for weight in WEIGHTS if weight < 1]
    assert list(holds(found["between"], PRINTED)) == [name + BY_NUMBER for name in below]
    assert list(holds(found["between"])) == [*below, "Fair-ER normalised", "Fair-ER automatic"]
    assert holds(found["strong"], PRINTED) == {"Fair-ER 1, by number": False}
    assert holds(found["strong"]) == {"Fair-ER 1": False}


def test_claims_do_not_hold_where_the_plays_are_otherwise(tmp_path: Path) -> None:
    changed = {
        "mutual": always(FAIR),
        "individual": always(FAIR),
        "greedy": always(FAIR),
        "Fair-E": always(UNFAIR),
        "Fair-E, sets": always(UNFAIR),
        SLOWER: SKILLED,
        "Fair-ER 1, by number": FALLS,
        "Fair-ER automatic": always(UNFAIR),
    }
    found = claims(report(tmp_path, changed))
    for name in ("mutual", "greedy", "loss"):
        assert True not in holds(found[name]).values(), name
    assert holds(found["unfair"])["from 0.9 up, above 0.05"] is False
    assert holds(found["slower"]) == {"at 0.5": False}
    assert holds(found["fair"]) == {"within 0.01 bits": False, "each seed": False}
    assert set(holds(found["fair"], PRINTED).values()) == {True}
    assert holds(found["between"])["Fair-ER automatic"] is False
    assert holds(found["strong"], PRINTED) == {"Fair-ER 1, by number": None}  # Fair-E by number does not capture there
    changed = {"Fair-E, by number": always(FAIR), "Fair-ER 1, by number": FALLS}
    assert holds(claims(report(tmp_path, changed))["strong"], PRINTED) == {"Fair-ER 1, by number": True}
    assert holds(found["free"])["Fair-ER automatic"] is False  # a larger deficit than mutual reward


def test_a_team_that_captures_less_pays_for_its_fairness(tmp_path: Path) -> None:
    found = claims(report(tmp_path, {"Fair-ER 0.5, by number": SKILLED}, seeds=MANY))
    assert holds(found["free"], PRINTED) == {
        "Fair-E, by number": True,
        **{f"Fair-ER {weight:g}, by number": weight != 0.5 for weight in WEIGHTS},
    }


def test_nothing_is_free_while_some_seeds_might_lose(tmp_path: Path) -> None:
    planned, many = claims(report(tmp_path))["free"], claims(report(tmp_path, seeds=MANY))["free"]
    assert set(holds(planned).values()) == {None}
    assert "more than 10 % of the seeds might lose success" in planned.verdict(REPAIRED)
    assert holds(many)["Fair-ER 0.1"] is True
    learns: Counts = {speed: FAIR if speed >= 0.8 else NEVER for speed in SPEEDS}
    some = {speed: [*([FAIR[0]] * 14), (0, 0, 0)] if speed < 1 else FAIR for speed in learns}  # one of 15 does not
    lost = holds(claims(report(tmp_path, {"Fair-ER 0.1": some}, seeds=MANY))["free"])
    assert lost["Fair-ER 0.1"] is None and lost["Fair-ER 0.5"] is True


def test_a_team_that_captures_more_often_is_not_said_to_pay(tmp_path: Path) -> None:
    lower: dict[str, Counts] = {"mutual": {speed: UNFAIR if speed > 0.8 else NEVER for speed in SPEEDS}}
    found = claims(report(tmp_path, lower, seeds=MANY))
    assert holds(found["free"], PRINTED)["Fair-ER 0.5, by number"] is True


def test_roles_that_are_dealt_and_stay_unfair_refute_the_claim(tmp_path: Path) -> None:
    found = holds(claims(report(tmp_path, {"dealt": always(UNFAIR)}))["roles"])
    assert found == {"fair": False, "less deficit": False, "success within 0.05": True}


def test_nothing_is_said_of_the_fairness_of_teams_that_never_capture(tmp_path: Path) -> None:
    found = claims(report(tmp_path, dict.fromkeys([*METHODS, "dealt"], always(NEVER))))
    assert found["fair"].verdict(REPAIRED).startswith("Undecided")
    for name in ("unfair", "fair", "roles"):
        assert set(holds(found[name]).values()) == {None}, name
    for name in NAMES:
        assert True not in holds(found[name]).values(), name


def test_one_unfair_seed_among_many_refutes_that_each_is_fair(tmp_path: Path) -> None:
    changed = report(tmp_path, {"Fair-E": ONE_UNFAIR})
    assert holds(claims(changed)["fair"])["each seed"] is False
    assert holds(claims(report(tmp_path))["fair"])["each seed"] is True


def test_the_slower_arm_is_not_mixed_up_with_the_main_one(tmp_path: Path) -> None:
    found = claims(report(tmp_path, {SLOWER: SKILLED}))
    assert holds(found["slower"]) == {"at 0.5": False} and set(holds(found["unfair"]).values()) == {True}


def test_claims_about_arms_that_were_not_run_have_no_verdict(tmp_path: Path) -> None:
    found = report(tmp_path)
    methods = tuple(name for name in SMALL.methods if name != SLOWER)
    arms = {name: of for name, of in found.arms.items() if name in (*methods, *TEAMS)}
    some = replace(found, scale=replace(SMALL, methods=methods), arms=arms)
    assert claims(some)["slower"].verdict(REPAIRED) == claims(some)["slower"].verdict(PRINTED) == "Not run"
    assert holds(claims(some)["loss"]) == {"Fair-E": True}
    assert list(holds(claims(some)["between"], PRINTED)) == ["Fair-ER 0.5, by number"]
    assert f"{LARGER} 0 of 10" in claims(some)["loss"].evidence
    assert some.write().exists()


def test_deficits_of_few_seeds_have_no_picture(tmp_path: Path) -> None:
    few = report(tmp_path, seeds=sections.FEW - 1).write()
    assert "(fairness.png)" not in few.read_text() and not (tmp_path / "fairness.png").exists()
    assert "(fairness.png)" in report(tmp_path, seeds=sections.FEW).write().read_text()


def test_one_seed_without_an_unfair_team_decides_nothing(tmp_path: Path) -> None:
    for name, claim in claims(report(tmp_path, seeds=1)).items():
        for method in (PRINTED, REPAIRED):
            assert set(holds(claim, method).values()) == {None}, (name, method)


def test_few_seeds_decide_nothing_except_by_exact_tests(tmp_path: Path) -> None:
    loses: dict[str, Counts] = {"Fair-ER 0.5": NEVER_BELOW_1, "Fair-ER 0.5" + BY_NUMBER: NEVER_BELOW_1}
    few, more = (claims(report(tmp_path, loses, seeds=seeds)) for seeds in (sections.FEW - 1, sections.FEW))
    assert holds(more["free"])["Fair-ER 0.5"] is False
    for name in ("unfair", "fair", "free", "roles"):
        assert set(holds(few[name]).values()) == {None} and sections.FEWER in few[name].verdict(REPAIRED), name
    assert set(holds(more["roles"]).values()) == set(holds(more["fair"]).values()) == {True}
    assert holds(few["loss"], PRINTED) == {"Fair-E, by number": True}  # 4 of 4 and 0 of 4: Fisher's p is 0.03
    assert (
        claims(report(tmp_path, seeds=2))["loss"].verdict(PRINTED)
        == "Undecided (Fair-E, by number: fewer than 5 seeds)"
    )
    unfair = claims(report(tmp_path, {"Fair-E": always(UNFAIR)}, seeds=2))["fair"]
    assert holds(unfair)["each seed"] is False and holds(unfair)["within 0.01 bits"] is None


def test_numbers_of_seeds_that_capture_need_enough_of_these(tmp_path: Path) -> None:
    never, captures = [(0, 0, 0)], [(400, 60, 40)]
    some: Counts = {speed: captures * 3 + never * 17 if speed < sections.FALLING else UNFAIR for speed in SPEEDS}
    found = claims(report(tmp_path, {"mutual": some}))
    assert holds(found["unfair"]) == {"from 0.9 up, above 0.05": True, "less below 0.9": None}
    assert "less below 0.9: fewer than 5 seeds that capture" in found["unfair"].verdict(REPAIRED)
    assert set(holds(found["between"]).values()) == {None} and paper.FEWER_CAPTURE in found["between"].verdict(REPAIRED)
    rare = dict.fromkeys(SPEEDS, captures * 3 + never * 17)
    found = claims(report(tmp_path, {"mutual": rare, "Fair-E": dict.fromkeys(SPEEDS, FAIR[:1] * 3 + never * 17)}))
    assert set(holds(found["roles"]).values()) == {None} and paper.FEWER_CAPTURE in found["roles"].verdict(REPAIRED)
    assert holds(found["fair"]) == {"within 0.01 bits": None, "each seed": None}
    lower = np.linspace(0.0, 0.01, 5), np.full(5, 1.0)
    assert paper.each_below({"a": lower}, 0)["a"].holds is True
    assert paper.each_below({"a": (lower[0][:4], lower[1])}, 0, why="so few")["a"] == Outcome(None, why="so few")


def test_an_arm_with_few_seeds_does_not_hide_that_another_refutes() -> None:
    within = partial(everywhere_within, margin=0.01)
    off, on, few = np.linspace(0.05, 0.051, 5), np.linspace(0.0, 0.001, 5), np.zeros(2)
    assert paper.of_enough(within, {"a": off, "b": few}).holds is False
    assert paper.of_enough(within, {"a": on, "b": few}) == Outcome(None, why=paper.FEWER_CAPTURE)
    assert paper.of_enough(within, {"a": on, "b": on}).holds is True
    assert not paper.of_enough(within, {}).run


def test_few_seeds_are_not_in_the_correction_of_the_others() -> None:
    clear = np.array([0.1, 0.3, 0.2, 0.25, 0.02]), np.zeros(5)  # p = 0.03
    short = np.array([0.5, 0.5]), np.zeros(2)
    assert paper.each_above({"a": clear, "b": short, "c": short}, 0)["a"].holds is True
    assert paper.each_above({"a": clear, "b": short}, 0)["b"].holds is None


def test_the_number_of_seeds_that_most_need_is_said() -> None:
    assert paper.most_seeds(flags(5, 5)) == Outcome(None, why="fewer than 6 seeds")
    assert paper.most_seeds(flags(6, 6)).holds is True and paper.most_seeds(flags(6, 6), arms=2).holds is None
    assert paper.most_seeds(flags(7, 7), arms=2).holds is True
    assert paper.most_seeds(flags(6, 10)) == Outcome(None, majority_units_needed(0.6, above=10))
    assert str(paper.most_seeds(flags(6, 7), arms=2)) == "undecided (about 16 seeds)"
    assert paper.most_seeds(flags(5, 10)) == Outcome(None)  # no number shows it


def test_curves_of_few_seeds_have_no_bands() -> None:
    few, enough = np.arange(sections.FEW - 1.0), np.arange(float(sections.FEW))
    for summary in (sections.quartiles, sections.mean_of_enough):
        assert math.isnan(summary(few).low) and math.isnan(summary(few).high) and summary(few).value == few.mean()
        assert summary(enough).low < summary(enough).value < summary(enough).high
    assert sections._quartiles(few) == "0.00, 1.00, 2.00, 3.00" and sections._quartiles(enough) == "2.00 (1.00, 3.00)"


def test_differences_of_few_seeds_are_not_shown(tmp_path: Path) -> None:
    few, more = (claims(report(tmp_path, seeds=seeds)) for seeds in (sections.FEW - 1, sections.FEW))
    for name in ("between", "free"):
        rows = [of for methods in few[name].measured.numbers.values() for of in methods.values()]  # type: ignore[union-attr]
        assert rows and not any(rows)
        assert more[name].measured.panels()  # type: ignore[union-attr]
    told, shown = (report(tmp_path, seeds=seeds).write().read_text() for seeds in (sections.FEW - 1, sections.FEW))
    assert "tested against 0." not in told and "tested against 0." in shown


def test_a_method_of_which_one_weight_was_run_says_so(tmp_path: Path) -> None:
    made = report(tmp_path)
    only = "Fair-ER 0.5" + BY_NUMBER
    kept = {name: of for name, of in made.arms.items() if BY_NUMBER not in name or name in (only, "Fair-E" + BY_NUMBER)}
    for name in ("between", "free"):
        assert claims(made)[name].verdict(PRINTED).count("was run") == 0
        assert claims(replace(made, arms=kept))[name].verdict(PRINTED).endswith(f". Of Fair-ER, only `{only}` was run")


def test_a_fair_team_is_seldom_said_to_be_unfair() -> None:
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(10):
        ps = [play(rng.multinomial(475, [1 / 3] * 3).tolist()).fairness.p_value for _ in range(25)]
        wrong += paper.no_seed_unfair({"a": np.array(ps)}, seeds=[25]).holds is False
    assert wrong <= 3  # about one in twenty
    assert not paper.no_seed_unfair({}, seeds=[]).run
    fair, unfair = np.full(4, 0.5), np.array([0.5, 0.5, 0.5, 0.001])
    assert paper.no_seed_unfair({"a": fair}, seeds=[4]) == Outcome(None, why="fewer than 5 seeds that capture")
    assert paper.no_seed_unfair({"a": fair, "b": fair}, seeds=[5, 0]).holds is None
    assert paper.no_seed_unfair({"a": unfair}, seeds=[1]).holds is False


# -------------------------------------------------------------------------------------------------------- tests


def flags(k: int, n: int) -> Any:
    return np.arange(n) < k


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (((15, 20), (2, 20)), True),
        (((2, 20), (15, 20)), False),
        (((20, 20), (20, 20)), False),  # both capture: the difference is below a quarter
        (((0, 20), (0, 20)), None),  # hardly any seed captures, so that nothing can be compared
        (((1, 20), (0, 10)), None),
        (((12, 20), (8, 20)), None),
    ],
)
def test_more_seeds_capture_is_decided_by_counts(pair: Any, expected: bool | None) -> None:
    one, other = (flags(*count) for count in pair)
    found = paper.more_capture({"a": (one, other)})["a"]
    assert found.holds is expected
    if expected is not None:
        assert found.needed is None


def test_the_seeds_that_would_decide_have_a_power_of_about_four_fifths() -> None:
    needed = paper.more_capture({"a": (flags(12, 20), flags(8, 20))})["a"].needed
    assert needed is not None and 80 < needed < 110
    rng = np.random.default_rng(0)
    draws = (rng.random((2, needed)) < [[0.6], [0.4]] for _ in range(300))
    assert 0.7 < np.mean([fisher(one, other) <= 0.05 for one, other in draws]) < 0.9


def test_comparisons_of_seeds_are_corrected_for_their_number() -> None:
    close = (flags(8, 10), flags(2, 10))  # p = 0.023
    assert paper.more_capture({"a": close})["a"].holds is True
    assert [one.holds for one in paper.more_capture({name: close for name in "abc"}).values()] == [None] * 3


def test_most_seeds_capture_only_if_the_exact_interval_says_so() -> None:
    assert [paper.most_seeds(flags(k, 20)).holds for k in (20, 16, 11, 4, 0)] == [True, True, None, False, False]


def test_numbers_of_several_arms_are_corrected_for_their_number() -> None:
    def more(*values: float) -> paper.Samples:
        return np.array(values), np.zeros(len(values))

    e = more(0.1, 0.3, 0.2, 0.25, -0.05)  # p of two sides: 0.06
    clear = more(0.2, 0.21, 0.19, 0.2, 0.2)
    assert [one.holds for one in paper.each_above({"a": clear, "b": e}, 0).values()] == [True, None]
    strict = more(0.1, 0.3, 0.2, 0.25, 0.02)  # p = 0.03
    assert paper.each_above({"a": strict}, 0)["a"].holds is True
    assert paper.each_above({name: strict for name in "abc"}, 0)["a"].holds is None
    assert paper.each_below({"a": clear}, 0)["a"].holds is False


# ------------------------------------------------------------------------------------------------------- tables

HALF = [(120, 70, 60), (70, 110, 70), (60, 70, 120)]  # no capture in half of the episodes


def with_numbers(made: Report, name: str, numbers: Sequence[Mapping[str, float]]) -> Report:
    """Return a report in which the seeds of an arm have other numbers too."""
    rows = [
        replace(row, numbers={**row.numbers, **own}) for row, own in zip(made.arms[name].rows, numbers, strict=True)
    ]
    return replace(made, arms={**made.arms, name: Arm(name, rows)})


def unequal_of(counts: Sequence[Sequence[int]], seeds: int) -> Any:
    """Return the deficit of unequal episodes of each seed."""
    return np.array([measured(tuple(counts[k % len(counts)]))["corrected, unequal"] for k in range(seeds)])


def cells_by_row(table: str) -> dict[str, list[str]]:
    """Return the cells of a table by the first ones of its rows."""
    return {name: own for name, *own in markdown_rows(table)[1:]}


def test_deficits_of_unequal_episodes_are_compared_where_the_claims_compare_deficits(tmp_path: Path) -> None:
    half_below = {speed: FAIR if speed >= sections.FALLING else HALF for speed in SPEEDS}
    made = report(tmp_path, {"Fair-ER 1": always(HALF), "Fair-E": half_below})
    below = tables.show(welch(unequal_of(HALF, 10), unequal_of(SOMEWHAT, 20)))
    assert made._less_unequal("Fair-ER 1", made.slow) == below
    rows, up = cells_by_row(made.unequal_table().split("\n\n")[-1]), made.from_up(sections.SKILLED)
    assert rows["Fair-ER 1"] == [below, made._less_unequal("Fair-ER 1", up)]
    falling = made._less_unequal("Fair-E", made.from_up(sections.FALLING))
    assert rows["Fair-E"][1] == falling != made._less_unequal("Fair-E", up)


def test_the_rise_of_mutual_rewards_deficit_is_of_seeds_that_capture_in_both(tmp_path: Path) -> None:
    seldom = [*SOMEWHAT, (60, 5, 5)]
    made = report(tmp_path, {"mutual": {v: UNFAIR if v >= sections.FALLING else seldom for v in SPEEDS}})
    slow, fast = (made.mean("mutual", "corrected, unequal", v) for v in (made.slow, made.from_up(sections.FALLING)))
    both = np.arange(20) % 4 != 3
    assert f"in both: {tables.show(mean_interval((slow - fast)[both]))}" in made.unequal_table()


def test_a_seed_without_unequal_episodes_is_left_out_of_their_deficit(tmp_path: Path) -> None:
    made = report(tmp_path)
    first, *rest = made.arms["Fair-ER 1"].rows
    together = {f"captors {code:03b} at {speed:g}": 0.0 for code in range(1, 7) for speed in SPEEDS}
    first = replace(first, numbers={**first.numbers, **together})
    made = replace(made, arms={**made.arms, "Fair-ER 1": Arm("Fair-ER 1", [first, *rest])})
    assert np.isnan(made.unequal("Fair-ER 1", (0.8,))).tolist() == [True, *[False] * len(rest)]
    assert "nan" not in made._less_unequal("Fair-ER 1", made.slow) and "nan" not in made.unequal_table()


def test_a_deficit_is_of_the_speeds_at_which_a_seed_captures(tmp_path: Path) -> None:
    made = report(tmp_path, {"Fair-ER 1": {v: NEVER if v == 0.7 else SOMEWHAT for v in SPEEDS}})
    assert made.deficit("Fair-ER 1", made.slow) == pytest.approx(made.deficit("Fair-ER 1", (0.8,)))
    assert made.deficit("Fair-ER 1", (0.7,)).size == 0
    assert made.unequal("Fair-ER 1", made.slow) == pytest.approx(unequal_of(SOMEWHAT, 10))


def test_most_seeds_must_capture_and_not_only_more_than_with_greedy_pursuers(tmp_path: Path) -> None:
    some = always([*FAIR, *FAIR[:2], *NEVER * 5])
    found = holds(claims(report(tmp_path, {"Fair-E": some, "Fair-E, by number": some}))["greedy"])
    assert found == {"mutual": True, "Fair-E": None, "Fair-E, sets": True}
    few = holds(claims(report(tmp_path, {"Fair-E": always([*FAIR[:1], *NEVER * 9])}))["greedy"])
    assert few["Fair-E"] is False


def test_the_penalty_of_each_speed_is_shown_for_separate_networks(tmp_path: Path) -> None:
    made = report(tmp_path)
    for name in ("mutual", "Fair-ER 1"):
        own = [{f"penalty at {speed:g}": speed for speed in SPEEDS}] * len(made.arms[name].rows)
        made = with_numbers(made, name, own)
    rows = cells_by_row(made.penalty_table().split("\n\n")[-1])
    assert list(rows) == ["mutual", "Fair-ER 1"]
    seeds, *shown = rows["mutual"]
    assert seeds == "20" and [cell[:4] for cell in shown] == [
        f"{speed:.2f}" if speed in made.speeds else "" for speed in SPEEDS
    ]


def test_the_last_policy_is_shown_by_seeds_success_and_deficit(tmp_path: Path) -> None:
    last = [measured((300, 50, 50)), measured((20, 5, 5))] * 10
    own = [{f"last {name} at 1": of for name, of in seed.items()} for seed in last]
    made = with_numbers(report(tmp_path), "mutual", own)
    success, deficit = (np.mean([seed[name] for seed in last]) for name in ("success", "corrected"))
    count = sections.count(np.arange(20) < 10)
    assert made._by_other("last ", "mutual", 1.0) == f"{count}; {success:.3f} / {deficit:.3f}"
    assert made._by_other("last ", "greedy", 1.2).startswith("10 of 10")  # its only policy
    assert made._by_other("middle ", "mutual", 1.0) == ""


def test_the_page_says_which_speeds_and_episodes_and_which_numbers_of_the_figures(tmp_path: Path) -> None:
    made = report(tmp_path)
    text = made.runs()
    assert "falls from 1.2 to 0.7 (the evader's" in text
    assert f"the planner has {PLANNED}." in text and made.scale.episodes > PLANNED
    rows = markdown_rows(made.paper_table())
    shares = {own[1]: own[4:] for own in rows if own[0] == "3a"}
    for name, (kind, *cells_of_row) in shares.items():
        assert kind == "largest share"
        assert " / ".join(cells_of_row) == made._beside_floor(name, "largest", "largest floor", 1.0)
    assert set(shares) == {"mutual", "Fair-E", "Fair-E, by number"}
    told = {own[1]: own[3] for own in rows if own[0] == "4"}  # the paper says nothing of the other forms
    assert told == {
        f"Fair-ER {weight}{ending}": "lambda 1: below Fair-E"
        if weight == "1"
        else "lambda up to 0.5: between mutual and Fair-E"
        for weight in ("0.1", "0.5", "1")
        for ending in (BY_NUMBER, "")
    }
    assert {own[1] for own in rows if own[0] == "4" and "below Fair-E" in own[3]} == {
        "Fair-ER 1",
        "Fair-ER 1, by number",
    }
    (slowest,) = [own for own in rows if own[0] == "2" and own[2] == "0.5"]
    assert slowest[1] == SLOWER and slowest[4] == "seeds" and slowest[5].startswith("10 of 10")
    assert "Other arms" not in text
    fewer = replace(made, arms={name: of for name, of in made.arms.items() if name != "Fair-ER 0.9"})
    assert "Other arms that the code has were not run: `Fair-ER 0.9`. " in fewer.runs()


def test_captures_of_pursuers_are_shown_beside_those_of_relabelled_ones(tmp_path: Path) -> None:
    made = report(tmp_path)
    rows = cells_by_row(made.captors_table().split("\n\n")[-1])
    one = cells_by_row(report(tmp_path, {"mutual": always([(400, 60, 40)])}).captors_table().split("\n\n")[-1])
    assert one["mutual"][1].startswith("0.80, 0.12, 0.08 (0.36, 0.33, 0.31)")
    assert one["mutual"][2:] == ["0.30, 0.33, 0.36", "2.00 (0.50)", "2.00, 3.00, 4.00"]
    assert rows["random"] == ["0", *["none captures"] * 4]
    assert rows["planner"][1].startswith("0.3")
    codes = {"captors 110": 400.0, "captors 111": 50.0, "captors 001": 50.0}
    own = {f"captors {code:03b}": codes.get(f"captors {code:03b}", 0.0) for code in range(8)}
    several = [{f"{key} at {speed:g}": value for key, value in own.items() for speed in SPEEDS}] * 20
    changed = with_numbers(made, "mutual", several)
    assert changed._captures("mutual")[0, 0] == pytest.approx([0.9, 0.9, 0.2])
    assert changed._relabelled("mutual")[0, 0].sum() == pytest.approx(2.0)  # captures per episode
    assert changed._relabelled("mutual")[0, 0] == pytest.approx([2 / 3] * 3, abs=0.03)
    share = changed.values("mutual", "corrected", (1.0,))[:, 0] / 0.9
    assert changed.unequal("mutual", (1.0,)) == pytest.approx(share)


def test_an_episode_without_a_capture_counts_as_long_as_it_can_be(tmp_path: Path) -> None:
    made = with_numbers(report(tmp_path), "Fair-E", [{"success at 1": 0.75, "steps at 1": 100.0}] * 20)
    assert made._steps("Fair-E", 1.0) == "100 [100, 100] (20) / 138"
    assert made._steps("random", 1.0) == "none / 250"


def test_verdicts_that_follow_from_the_construction_or_compare_nobody_are_marked(tmp_path: Path) -> None:
    found = claims(report(tmp_path, dict.fromkeys(("Fair-E, by number", "Fair-ER 1, by number"), always(NEVER))))
    assert found["fair"].verdict(REPAIRED) == f"Holds. {paper.BUILT}" and paper.BUILT not in found["fair"].verdict(
        PRINTED
    )
    assert all(found["roles"].verdict(method) == f"Holds. {paper.FAIR_BUILT}" for method in (PRINTED, REPAIRED))
    assert found["strong"].verdict(PRINTED) == f"Undecided (Fair-ER 1, by number: {paper.HARDLY_ANY})"
    assert paper.HARDLY_ANY not in found["strong"].verdict(REPAIRED)
    unfair = claims(report(tmp_path, {"Fair-E": ONE_UNFAIR, "dealt": ONE_UNFAIR}))
    assert not any("construction" in unfair[name].verdict(REPAIRED) for name in ("fair", "roles"))


def test_a_claim_with_several_parts_has_one_verdict_and_those_of_its_parts(tmp_path: Path) -> None:
    rising: Counts = {speed: SOMEWHAT if speed >= sections.FALLING else UNFAIR for speed in SPEEDS}
    found = claims(report(tmp_path, {"mutual": rising}))["unfair"]
    text = "Does not hold. Its parts: holds (from 0.9 up, above 0.05); does not hold (less below 0.9)"
    assert found.verdict(PRINTED) == found.verdict(REPAIRED) == text
    assert claims(report(tmp_path))["unfair"].verdict(PRINTED) == "Holds"


def test_the_numbers_of_the_tests_are_in_the_evidence(tmp_path: Path) -> None:
    found = claims(report(tmp_path))
    assert "at 0.8 p < 0.001, at most 1.00; at 0.7 p < 0.001, at most 1.00 (with Holm's" in found["mutual"].evidence
    exact = share_interval(flags(20, 20), level=1 - 0.05 / 3, method="exact")
    assert f"mutual 20 of 20 [{exact.low:.2f}, 1.00]" in found["greedy"].evidence  # three arms of our repair
    assert "exact intervals at 98.33 %" in found["greedy"].evidence
    close = {"a": (flags(12, 20), flags(8, 20))}
    high, low = (share_interval(flags(k, 20), method="exact") for k in (12, 8))
    told = f"a p = {fisher(*close['a']):.3f}, at most {high.high - low.low:.2f}."
    assert comparisons({PRINTED: close}, margin=0.25).endswith(told) and "Holm" not in comparisons({PRINTED: close})


def test_teams_without_training_have_no_interval_in_figures(tmp_path: Path) -> None:
    made = report(tmp_path)
    assert math.isnan(made._share("greedy", 1.2).low) and made._share("greedy", 1.2).value == 1
    assert made._share("mutual", 1.2).low == share_interval(flags(20, 20), method="exact").low
    able, deficits = [1.0, 0.8, 0.9, 0.7, 0.6], [0.1, 0.3, 0.2, 0.5, 0.4]
    deficit, success = made._means(np.array([*deficits, 0.9]), np.array([*able, 0.2]))
    assert deficit == mean_interval(deficits) and success.value == pytest.approx(0.8) and math.isnan(success.high)
    assert sections.quartiles(np.arange(5.0)).value == 2 and sections.quartiles(np.arange(5.0)).high == 3


def test_weights_are_drawn_in_the_papers_units_and_other_forms_have_panels_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = report(tmp_path, seeds=1)
    own = {f"{title}@{step}": 0.05 for title in jobs.PULLS.values() for step in (1000, 2000)}
    names = [name for of in made.penalised.values() for name in of]
    for name in names:
        made = with_numbers(made, name, [own])
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(
        "fair_envs.experiments.figures.course_plot", lambda panels, path, **settings: drawn.update(panels)
    )
    assert [picture.file for picture in made._pulls(names)] == ["penalty.png"]
    titles = list(jobs.PULLS.values())
    assert list(drawn) == [*titles, *(f"{one}, normalised" for one in titles), *(f"{one}, automatic" for one in titles)]
    assert (drawn["weight"]["Fair-ER 0.5"].seeds == 0.5).all() and (drawn["penalty"]["Fair-ER 0.5"].seeds == 0.05).all()
    assert list(drawn["weight, automatic"]) == ["Fair-ER automatic"]
    assert (drawn["weight, automatic"]["Fair-ER automatic"].seeds == 0.05).all()


def test_few_seeds_have_no_interval_and_teams_without_training_stand_beside_counts(tmp_path: Path) -> None:
    assert sections.with_count(np.array([0.1, np.nan, 0.25])) == "0.100, 0.250"
    assert (
        sections.with_count(np.full(6, 0.5)) == "0.500 [0.500, 0.500] (6)"
        and sections.with_count(np.array([])) == "none"
    )
    deficit, _ = report(tmp_path)._means(np.array([0.1, 0.3, 0.9]), np.array([1.0, 0.8, 0.2]))
    assert deficit.value == pytest.approx(0.2) and math.isnan(deficit.low) and math.isnan(deficit.high)
    assert "greedy 0 of 10, planner 10 of 10" in claims(report(tmp_path))["loss"].evidence  # not independent teams
    for name in ("greedy", "mutual", "loss", "between", "strong"):
        assert all(f"{own} " in claims(report(tmp_path))[name].evidence for own in paper.REFERENCES)


# ------------------------------------------------------------------------------------------------- from end to end


def test_the_report_has_tables_figures_and_every_team(tmp_path: Path) -> None:
    made = report(tmp_path)
    text = made.write().read_text()
    assert "`fair-envs reproduce grupen2022 --scale small`" in text
    assert "on a torus of side 3 with 250 steps" in text
    for name in (*METHODS, *TEAMS, sections.DEALT):
        assert f"| {name} |" in text
    assert "| mutual | 20 | 20 of 20 [0.83, 1.00] |" in text
    assert "the arm `mutual, to slower speeds` has 5,040,000 and ends at 0.5" in text
    unequal = text.split("## Team fairness of episodes with unequal pursuers")[1].split("\n## ")[0]
    assert f"| mutual | 20 | {tables.show(made.arms['mutual'].estimate('corrected, unequal at 1.2'))} (20) |" in unequal
    less = made._less_unequal("Fair-ER 1", (0.8, 0.7))
    assert less == tables.show(welch(unequal_of(FAIR, 10), unequal_of(SOMEWHAT, 20)))
    assert f"| Fair-ER 1 | {less} |" in unequal
    assert "| individual | 10 | 10 of 10 [0.69, 1.00] | 10 of 10 [0.69, 1.00] | 0 of 10 [0.00, 0.31] |" in text
    for picture in ("reward", "fairness", "training", "exchange"):
        assert (tmp_path / f"{picture}.png").stat().st_size > 5000
    with (tmp_path / "table.csv").open(newline="") as file:
        table = {(row["row"], row["number"]): float(row["value"]) for row in csv.DictReader(file)}
    assert table["mutual", "success at 1"] == pytest.approx(0.9986667, abs=1e-3)
    assert ("individual", "steps at 0.8") not in table  # it never captures there
    assert len(json.loads((tmp_path / "claims.json").read_text())) == len(NAMES)


@pytest.mark.long
def test_the_study_runs_end_to_end_and_its_table_gives_the_same_report_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {name: value for name, value in FEW.items() if name not in ("parameters", "steps")}
    tiny = jobs.Scale(
        seeds=2,
        fewer=1,
        steps=300,
        speeds=(1.1, 1.0, 0.8),
        slower=(1.1, 0.5),
        slower_steps=300,
        episodes=4,
        settings=settings,
        parameters=FEW["parameters"],
    )
    monkeypatch.setitem(SCALES, "smoke", tiny)
    with monkeypatch.context() as patch:
        patch.setattr("fair_envs.experiments.seeds.run_cells", run_here)
        path = paper.main(scale="smoke", out=tmp_path / "out", jobs=1, progress=False)
    text = path.read_text()
    assert "| Fair-E | 2 |" in text and "| greedy | 1 |" in text
    assert (tmp_path / "out" / TABLE).exists()

    def nothing_to_run(cells: Sequence[Any], *_: Any, **__: Any) -> None:
        assert not cells

    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", nothing_to_run)
    again = paper.main(scale="smoke", out=tmp_path / "again", merge_from=[tmp_path / "out"], progress=False)
    assert again.read_text() == text
