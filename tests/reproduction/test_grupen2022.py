"""The study of team fairness: its cells, and what its report says of plays that are made here."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs import make_rules
from fair_envs.baselines.team.play import TeamPlay, play_team
from fair_envs.baselines.team.training import TeamTraining, team_settings
from fair_envs.envs.pursuit.policies import Greedy
from fair_envs.experiments.executors import run_cells
from fair_envs.reproduction.grupen2022 import report as grupen2022
from fair_envs.reproduction.grupen2022.jobs import DEALT, ScriptedTeamCell, TeamCell, read_team
from fair_envs.reproduction.grupen2022.report import DEALT_ROLES, METHODS, SCALES, Arm, Report, arms_of, cells
from fair_envs.support.seeds import TEST_EACH, TEST_SEEDS

SMOKE, SMALL, FULL = (SCALES[name] for name in ("smoke", "small", "full"))
FEW: dict[str, Any] = {"parameters": {"side": 1.5, "horizon": 40, "include_speed": True}, "steps": 600, "lanes": 2}
FEW |= {"learning_starts": 60, "batch_size": 8, "buffer_size": 200, "actor": (8, 8), "critic": (8, 8)}


def training(name: str, *, scale: Any = SMALL) -> TeamTraining:
    """Return a method's first training."""
    cell: Any = cells(scale)[name][0]
    settings: TeamTraining = cell.training
    return settings


# ------------------------------------------------------------------------------------------------------- cells


def test_each_team_has_a_cell_for_each_seed_and_equal_scales_have_equal_keys() -> None:
    one, again, fewer = cells(SMOKE), cells(SMOKE), cells(replace(SMOKE, seeds=1))
    assert set(one) == {*METHODS, "greedy", "planner"}
    assert {len(group) for group in one.values()} == {SMOKE.seeds}
    keys = [cell.key for group in one.values() for cell in group]
    assert len(set(keys)) == len(keys) and keys == [cell.key for group in again.values() for cell in group]
    assert all(fewer[name][0].key == group[0].key for name, group in one.items())


def test_methods_differ_from_mutual_reward_in_what_their_names_say() -> None:
    usual = training("mutual")
    assert (usual.algorithm, usual.parameters.get("reward")) == ("ddpg", None)
    assert training("individual") == replace(usual, parameters={**usual.parameters, "reward": "individual"})
    assert training("Fair-E") == replace(usual, algorithm="fair-e")
    assert training("Fair-E, sets") == replace(usual, algorithm="fair-e", network="sets")
    strong = training("Fair-ER 1")
    assert strong == replace(usual, algorithm="fair-er", fairness_weight=strong.fairness_weight)


def test_weights_are_the_papers_where_rewards_are_not_scaled() -> None:
    for weight in grupen2022.WEIGHTS:
        for scale in (SMALL, FULL):
            found = training(f"Fair-ER {weight:g}", scale=scale)
            assert found.fairness_weight == pytest.approx(weight * found.reward_scale)
    assert (training("mutual").reward_scale, training("mutual", scale=FULL).reward_scale) == (0.1, 1.0)


def test_the_full_scale_has_the_papers_settings_in_observations_that_are_exchanged() -> None:
    found = training("Fair-E", scale=FULL)
    assert (found.actor, found.critic, found.batch_size, found.buffer_size) == ((128,) * 2, (128,) * 3, 512, 500_000)
    assert (found.learning_rate, found.critic_learning_rate, found.tau, found.gamma) == (1e-4, 1e-3, 0.001, 0.99)
    assert (found.n_steps, found.train_freq, found.lanes, found.speeds) == (1, 5, 1, (1.2, 0.4))
    assert found.parameters == {"observation": "relative", "teammates": "cyclic", "include_speed": True}


def test_policies_are_kept_at_every_speed_that_is_tested() -> None:
    for scale in SCALES.values():
        assert training("mutual", scale=scale).kept_levels == tuple(scale.speeds)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a small training and a designed team gave, and the cells."""
    learned = team_settings("FairPursuit-v0", algorithm="fair-er", speeds=(1.2, 0.8), levels=(1.2, 0.8), **FEW)
    tested: dict[str, Any] = {"speeds": (1.2, 0.8), "episodes": 7}
    group = [
        TeamCell(training=learned, dealt=True, **tested),
        ScriptedTeamCell(name="greedy", seed=3, parameters=FEW["parameters"], **tested),
    ]
    folders = run_cells(group, tmp_path_factory.mktemp("cells"), jobs=1, progress=False)
    return {"cells": group, "results": [read_team(folders[cell.key]) for cell in group]}


def test_a_training_is_tested_with_the_policy_of_each_speed_and_the_last_and_with_roles_dealt(few: Any) -> None:
    learned, _ = few["results"]
    assert set(learned.plays) == {"of the speed", "last", f"{DEALT}of the speed", f"{DEALT}last"}
    assert all(list(of) == [1.2, 0.8] for of in learned.plays.values())
    assert learned.learning.shape[1] == 6 and learned.learning[-1, 0] <= 600 and learned.seconds > 0
    last = (learned.plays[kept][0.8] for kept in ("of the speed", "last"))
    assert len({play.captors.tobytes() for play in last}) == 1  # the last level's policy is the last one


def test_a_designed_team_meets_the_starts_of_the_trainings_of_its_seed(few: Any) -> None:
    _, greedy = few["results"]
    rules, seed = make_rules("FairPursuit-v0", **FEW["parameters"]), TEST_SEEDS + 3 * TEST_EACH
    again = play_team(Greedy(), rules, episodes=7, seed=seed, speed=0.8)
    found = greedy.plays["last"][0.8]
    assert found.seed == seed and (found.captors == again.captors).all() and (found.steps == again.steps).all()
    assert list(greedy.plays) == ["last"] and not len(greedy.learning)


# ------------------------------------------------------------------------------------------------------ the report


def play(counts: Any, *, episodes: int = 500, seed: int = 0) -> TeamPlay:
    """Return plays in which each pursuer captured so often, alone."""
    captors = np.zeros((episodes, 3), bool)
    captors[np.arange(sum(counts)), np.repeat(np.arange(3), counts)] = True
    captured: Any = captors.any(axis=1)
    steps = np.where(captured, 40, 250)
    return TeamPlay(captured=captured, captors=captors, returns=np.where(captors, 50.0, 0.0), steps=steps, seed=seed)


def arm(counts: dict[float, list[Any]], **other: Any) -> Arm:
    """Return an arm of three seeds, which captured so often at each speed."""
    plays = [{speed: play(of[seed], seed=seed) for speed, of in counts.items()} for seed in range(3)]
    return Arm(plays, plays, **other)


FAIR = [(166, 168, 165), (167, 165, 168), (168, 166, 166)]
UNFAIR = [(400, 60, 40), (50, 420, 30), (30, 60, 408)]
HALF_FAIR = [(83, 84, 83), (84, 83, 83), (82, 84, 84)]
NOBODY = [(0, 0, 0)] * 3
SPEEDS = SMALL.speeds
LEARNING = [np.array([[1000.0, 5.0, 0.5, 0.2, 0.2, 0.1], [2000.0, 0.0, 0.0, 0.0, 0.0, 0.0]])] * 3


def report(folder: Path, **changed: dict[float, list[Any]]) -> Report:
    """Return a report of a study that found what the paper says, but for what is changed."""
    trained: dict[str, Any] = {"learning": LEARNING, "seconds": [1.0, 2.0, 3.0]}
    always = {speed: FAIR for speed in SPEEDS}
    falls = {speed: FAIR if speed >= 0.9 else HALF_FAIR for speed in SPEEDS}
    skilled = {speed: FAIR if speed > 1 else NOBODY for speed in SPEEDS}
    counts: dict[str, Any] = {
        "mutual": {speed: UNFAIR for speed in SPEEDS},
        DEALT_ROLES: always,
        "individual": skilled,
        "Fair-E": falls,
        "Fair-E, sets": falls,
        **{f"Fair-ER {weight:g}": always for weight in grupen2022.WEIGHTS},
        **changed,
    }
    arms = {name: arm(of, **({} if name == DEALT_ROLES else trained)) for name, of in counts.items()}
    arms |= {"greedy": arm(skilled, seconds=[0.0] * 3), "planner": arm(always, seconds=[0.0] * 3)}
    return Report(name="small", scale=SMALL, arms=arms, out=folder)


def verdicts(found: Report) -> dict[str, str]:
    names = ["greedy", "mutual", "unfair", "fair", "sets", "dealt", "loss", "between", "free", "roles"]
    return dict(zip(names, (claim.verdict for claim in found.claims()), strict=True))


def test_claims_hold_where_the_plays_are_as_the_paper_says(tmp_path: Path) -> None:
    found = verdicts(report(tmp_path))
    assert found["greedy"] == "Holds (mutual); Holds (Fair-E, sets)."
    assert found["mutual"] == "Holds (at 1); Holds (at 0.9); Holds (at 0.8); Holds (at 0.7)."
    assert found["unfair"] == "Holds (from 0.9 up); Holds (below)."
    fair = "Holds (not distinguishable from fair); Holds (within 0.05 bits)."
    assert found["fair"] == found["sets"] == found["dealt"] == fair
    assert found["loss"] == "Holds (Fair-E); Holds (Fair-E, sets)."
    assert found["between"] == "Holds (Fair-ER 0.1); Holds (Fair-ER 0.5); Holds (Fair-ER 1)."
    assert found["free"].count("Holds (") == 5
    assert found["roles"] == "Holds (less deficit); Holds (success within 0.05)."


def test_claims_do_not_hold_where_plays_are_otherwise(tmp_path: Path) -> None:
    always, unfair = ({speed: of for speed in SPEEDS} for of in (FAIR, UNFAIR))
    changed = {"mutual": always, "individual": always, "Fair-E": unfair, "Fair-ER 1": unfair}
    found = verdicts(report(tmp_path, **changed))
    for claim in ("mutual", "unfair", "free", "roles"):
        assert "Holds" not in found[claim].replace("Holds (success", "")
    assert found["fair"] == "Does not hold (not distinguishable from fair); Does not hold (within 0.05 bits)."
    assert found["loss"].startswith("Undecided (Fair-E)") or found["loss"].startswith("Does not hold (Fair-E)")
    assert "Holds (Fair-ER 1)" not in found["between"]


def test_a_team_as_unfair_as_mutual_reward_pays_for_no_fairness(tmp_path: Path) -> None:
    unfair = {speed: UNFAIR for speed in SPEEDS}
    same = {f"Fair-ER {weight:g}": unfair for weight in grupen2022.WEIGHTS}
    assert "Holds (Fair-ER" not in verdicts(report(tmp_path, **same))["free"]


def test_nothing_is_said_of_teams_that_never_capture(tmp_path: Path) -> None:
    nobody = {speed: NOBODY for speed in SPEEDS}
    found = verdicts(report(tmp_path, **{name: nobody for name in (*METHODS, DEALT_ROLES)}))
    assert found["fair"] == "Undecided (not distinguishable from fair); Undecided (within 0.05 bits)."
    for claim in ("unfair", "sets", "dealt", "between", "free", "roles"):
        assert "olds" not in found[claim] and "not hold" not in found[claim], claim
    assert "Holds" not in found["greedy"] and "Holds" not in found["mutual"]


def test_one_unfair_seed_of_many_is_told_by_its_p_value(tmp_path: Path) -> None:
    plays = [
        {speed: play((3, 0, 0) if k == 8 else FAIR[0], episodes=4 if k == 8 else 500) for speed in SPEEDS}
        for k in range(9)
    ]
    many = report(tmp_path)
    unfair = [{speed: play((500, 0, 0)) for speed in SPEEDS}]
    for seeds, told in ((plays[:8] + unfair, "Does not hold (not"), (plays[:8] + plays[:1], "Holds (not")):
        arms = {**many.arms, "Fair-E": Arm(seeds, seeds)}
        claim = replace(many, arms=arms)._fair_claim("Fair-E")
        assert claim.verdict.startswith(told)


def test_one_seed_decides_nothing(tmp_path: Path) -> None:
    many = report(tmp_path)
    one = replace(
        many, arms={name: Arm(of.kept[:1], of.last[:1], LEARNING[:1], [1.0]) for name, of in many.arms.items()}
    )
    assert all("olds (" not in text and "not hold" not in text for text in verdicts(one).values())


def test_a_fair_team_is_seldom_said_to_be_unfair(tmp_path: Path) -> None:
    chance, known = np.random.default_rng(0), report(tmp_path)
    wrong = 0
    for _ in range(15):
        seeds = [{speed: play(chance.multinomial(475, [1 / 3] * 3)) for speed in SPEEDS} for _ in range(3)]
        claim = replace(known, arms={**known.arms, "Fair-E": Arm(seeds, seeds)})._fair_claim("Fair-E")
        wrong += claim.verdict.startswith("Does not hold")
    assert wrong <= 4  # about one in twenty by each of the two rules


def test_the_report_has_tables_figures_and_every_team(tmp_path: Path) -> None:
    path = report(tmp_path).write()
    text = path.read_text()
    assert "`fair-envs reproduce grupen2022 --scale small`: 21 trainings (2 s each" in text
    assert "on a torus of side 3 with 250 steps" in text and "rewards scaled by 0.1" in text
    for name in (*METHODS, "greedy", "planner", DEALT_ROLES):
        assert f"| {name} |" in text
    assert "| mutual | 0 | 0.80, 0.12, 0.08 |" in text  # shares of captures
    for picture in ("reward", "fairness", "training", "exchange"):
        assert (tmp_path / f"{picture}.png").stat().st_size > 5000
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["mutual at 1"]["share of episodes with a capture"]["value"] == pytest.approx(0.9986667, abs=1e-6)
    assert table["individual at 0.7"]["steps to capture"]["value"] is None
    assert len(json.loads((tmp_path / "claims.json").read_text())) == 10


def test_arms_are_the_tests_of_each_seed(few: Any) -> None:
    learned, greedy = few["results"]
    arms = arms_of({"mutual": [learned, learned], "greedy": [greedy, greedy]})
    assert list(arms) == ["mutual", DEALT_ROLES, "greedy"]
    assert arms["mutual"].kept[0] is learned.plays["of the speed"] and arms["mutual"].last[1] is learned.plays["last"]
    assert arms[DEALT_ROLES].kept[0] is learned.plays[f"{DEALT}of the speed"]
    assert arms["greedy"].kept[0] is greedy.plays["last"] is arms["greedy"].last[0]
