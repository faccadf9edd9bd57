"""Trainings of Pareto Conditioned Networks: their folder, their interruption, their coverage set, the command line."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from matplotlib.figure import Figure

pytest.importorskip("moocore")

from fair_envs import cli
from fair_envs.baselines.pcn import coverage
from fair_envs.baselines.pcn.pcn import Command
from fair_envs.baselines.pcn.training import PCNTraining, load_pcn, make_env, preset_values, test, train_pcn
from tests.baselines.test_pcn import model
from tests.baselines.treasure import FRONT, Treasure
from tests.helpers import uncompiled
from tests.test_cli import Said, missing_options, mistake

pytestmark = pytest.mark.usefixtures("empty_folder", "ferry")

test.__test__ = False  # type: ignore[attr-defined]  # a function of ours, no test
FERRY = "TestFerry-v0"
SMALL: Mapping[str, Any] = {
    "parameters": {"seats": 3, "horizon": 10},
    "objectives": ("R", "SP", "EO"),
    "window": 20,
    "steps": 500,
    "first_episodes": 10,
    "updates": 5,
    "batch_size": 32,
    "lanes": 4,
}
OPTIONS = ["--no-progress", "--steps", 200, "--updates", 2, "--first-episodes", 10, "-p", "horizon=8", "--window", 20]


@pytest.fixture(autouse=True)
def blank_plots(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Draw nothing into the plots of a run, which take longer than its training, but in the tests that look at them."""
    if "plots" not in request.fixturenames:
        for name in ("pareto_plot", "parallel_plot"):
            monkeypatch.setattr(coverage, name, lambda found: Figure())


@pytest.fixture
def plots() -> None:
    """Let plots be drawn."""


def config(**changes: Any) -> PCNTraining:
    """Return a small training."""
    return PCNTraining(**{"env_id": FERRY, **SMALL, **changes})


class Stop:
    """Presses Ctrl-C after some steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __call__(self, learner: Any, episodes: Any) -> None:
        if learner.num_timesteps >= self.steps:
            raise KeyboardInterrupt


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------------------------------------- trainings


@pytest.mark.parametrize("keep_history", [False, True])
@pytest.mark.parametrize("at", [0, 250])
def test_an_interrupted_training_ends_like_one_that_was_not(tmp_path: Path, keep_history: bool, at: int) -> None:
    own = config(keep_history=keep_history)
    whole = train_pcn(own, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_pcn(own, out=tmp_path / "part", callback=Stop(at))
    resumed = train_pcn(own, out=tmp_path / "part", resume=True)
    for one, other in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert th.equal(one, other)
    for name in ("metrics.csv", "coverage.csv", "coverage.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "part" / name).read_bytes()


def test_a_run_holds_metrics_coverage_and_plots(tmp_path: Path, plots: None) -> None:
    learner = train_pcn(config(), out=tmp_path / "run")
    found = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"config.json", "versions.json", "checkpoint.pt", "metrics.csv", "metrics.json", "tensorboard"} <= found
    assert {"coverage.csv", "coverage.json", "pareto.png", "parallel.png"} <= found
    metrics = rows(tmp_path / "run" / "metrics.csv")
    assert int(metrics[-1]["time/total_timesteps"]) == learner.num_timesteps >= 500
    assert {
        "rollout/performance",
        "rollout/demographic_parity",
        "rollout/equal_opportunity",
        "buffer/hypervolume",
    } <= set(metrics[0])
    points = rows(tmp_path / "run" / "coverage.csv")
    assert {
        "desired_performance",
        "performance",
        "performance_low",
        "demographic_parity",
        "on_front",
        "episodes",
    } <= set(points[0])
    assert {point["episodes"] for point in points} == {"10"}


def test_a_run_is_loaded_as_it_was(tmp_path: Path) -> None:
    learner = train_pcn(config(), out=tmp_path / "run")
    loaded, known = load_pcn(tmp_path / "run")
    assert known == config()
    seen = np.zeros((2, 3), np.float32)
    assert np.array_equal(
        learner.action_probabilities(seen, (1, 0, 0), 5), loaded.action_probabilities(seen, (1, 0, 0), 5)
    )
    assert test(loaded, known).rows() == test(learner, known).rows()


def test_what_is_computed_is_recorded_and_not_asked_for(tmp_path: Path) -> None:
    own = config(objectives=("SP",), computed=("EO", "R"))
    assert (own.names, own.requested) == (("performance", "demographic_parity", "equal_opportunity"), [1])
    train_pcn(own, out=tmp_path / "run")
    point = rows(tmp_path / "run" / "coverage.csv")[0]
    assert "equal_opportunity_low" in point and "desired_demographic_parity" in point
    assert "desired_equal_opportunity" not in point and "desired_performance" not in point


def test_the_rewards_are_the_performance_and_minus_the_gaps() -> None:
    env = make_env(config())
    assert env.reward_space.shape == (3,)
    assert env.reward_space.high.tolist() == [np.inf, 0, 0]
    assert isinstance(env, gym.vector.VectorEnv)


@uncompiled
def test_group_notions_compare_whom_they_are_told_to() -> None:
    fraud: Any = {"env_id": "FairFraud-v0", "parameters": {"horizon": 100}, "lanes": 2, "objectives": ("R", "SP", "IF")}
    few = PCNTraining(**fraud, groups=("continent=NA",))
    assert few.names == ("performance", "demographic_parity", "individual_fairness")
    assert few.compared == {"continent": "NA"}
    assert PCNTraining(**fraud, groups=("continent",)).compared == ("continent",)
    assert PCNTraining(**fraud).compared is None
    env = make_env(few)
    env.reset(seed=0)
    env.unwrapped.report_action_probs(np.full((2, 2), 0.5))
    env.step(np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="groups must be attributes or criteria such as gender=woman, not both"):
        PCNTraining(**fraud, groups=("continent", "continent=NA"))


def test_wrong_trainings_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="objectives and computed must not repeat a name"):
        config(computed=("SP",))
    with pytest.raises(ValueError, match="objectives must be several values, got 'R'"):
        config(objectives="R")
    with pytest.raises(ValueError, match="objectives must name a notion besides performance"):
        train_pcn(config(objectives=("R",)), out=tmp_path / "run")
    with pytest.raises(ValueError, match="objectives must be one of performance, groups, measures, demographic_parity"):
        train_pcn(config(objectives=("R", "XX")), out=tmp_path / "run")
    with pytest.raises(ValueError, match="seats must be between 1 and 100, got 0"):
        train_pcn(config(parameters={"seats": 0}), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    train_pcn(config(steps=100), out=tmp_path / "run")
    with pytest.raises(ValueError, match="seed must be 0 to resume"):
        train_pcn(config(steps=100, seed=1), out=tmp_path / "run", resume=True)
    with pytest.raises(FileExistsError):
        train_pcn(config(), out=tmp_path / "run")


def test_presets_know_the_environments_horizon() -> None:
    given = {"env_id": FERRY, "objectives": ("R", "SP"), "parameters": {"horizon": 7}}
    own = PCNTraining(**(preset_values("farel", given) | given))
    assert (own.max_return, own.lanes, own.keep_history, own.window) == ((7, 0), 1, True, 1000)
    assert (own.coverage, own.test_actions) == ("front", "deterministic")
    assert PCNTraining(**(preset_values("farel-published", given) | given)).coverage == "leaves"
    assert preset_values("recommended", given)["parameters"] == given["parameters"]


@pytest.mark.parametrize(
    ("objectives", "expected"), [(("SP", "R"), (0, 7)), (("SP",), (0,)), (("SP", "IF"), (0, 0)), (("R",), (7,))]
)
def test_presets_bound_the_performance_by_the_horizon_wherever_it_stands(objectives: Any, expected: Any) -> None:
    given = {"env_id": FERRY, "objectives": objectives, "parameters": {"horizon": 7}}
    assert preset_values("farel", given)["max_return"] == expected


# ------------------------------------------------------------------------------------------------- coverage sets


def test_a_coverage_set_says_what_each_command_achieves() -> None:
    learner = model(updates=20).learn(2000)
    found = coverage.cover(learner, names=("treasure", "time"), episodes=12)
    assert found.achieved[found.on_front].tolist() == FRONT
    assert found.returns.shape == (len(FRONT), 12, 2)
    estimate = found.estimate(0, 1)
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (-1, -1, -1, 12)
    told = found.measures(reference=(-1, -10))
    assert told["cardinality"] == len(FRONT)
    assert told["hypervolume"] == told["hypervolume_desired"]
    assert told["epsilon_worst"] == 0


def test_luck_shows_as_an_interval_and_every_command_meets_the_same() -> None:
    learner = model(Treasure(10, slip=0.5)).learn(1500)
    same = [Command(np.array([4.0, -3.0]), 3.0)] * 2
    found = coverage.cover(learner, commands=same, episodes=20, deterministic=False)
    assert np.array_equal(found.returns[0], found.returns[1])
    estimate = found.estimate(0, 0)
    assert estimate.low < estimate.value < estimate.high


def test_test_episodes_sample_actions_with_other_numbers_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = model().learn(500)
    play, drawn = learner.play, []

    def watched(*args: Any, **given: Any) -> Any:
        drawn.append(given["rng"].random())
        return play(*args, **given)

    monkeypatch.setattr(learner, "play", watched)
    coverage.cover(learner, commands=[Command(np.zeros(2), 1.0)], episodes=2, seed=7)
    assert drawn and drawn[0] != np.random.default_rng(7).random()


def test_the_parallel_plot_does_not_magnify_noise(plots: None) -> None:
    returns = np.stack([np.linspace(-8, 4, 20) + shift for shift in (0.0, 0.1)])[:, :, np.newaxis]  # means -2, -1.9
    commands = tuple(Command(np.array([value]), 3.0) for value in (-2.0, -1.9))
    found = coverage.CoverageSet(
        names=("R",), requested=(0,), commands=commands, returns=returns, lengths=np.ones((2, 20))
    )
    (axis,) = coverage.parallel_plot(found).axes
    heights = [float(line.get_ydata()[0]) for line in axis.lines]
    assert 0 < abs(heights[0] - heights[1]) < 0.05
    (bar,) = axis.patches
    assert bar.get_height() > 10 * abs(heights[0] - heights[1])
    assert axis.texts[-1].get_text() == "0"  # the upper end of the scale


def test_nothing_to_ask_for_is_named() -> None:
    with pytest.raises(ValueError, match="commands must hold at least one, got none"):
        coverage.cover(model(), commands=[])
    with pytest.raises(ValueError, match="episodes must be an integer of at least 1, got 0"):
        coverage.cover(model(), commands=[Command(np.zeros(2), 1.0)], episodes=0)


# ----------------------------------------------------------------------------------------------- the command line


def test_the_command_line_trains_resumes_and_evaluates(tmp_path: Path, plots: None) -> None:
    said = Said("train", "pcn", FERRY, "--objectives", "R,SP", "--out", tmp_path / "run", *OPTIONS)
    assert said.code == 0, said.text
    kept = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (kept["algorithm"], kept["objectives"], kept["parameters"]) == (
        "pcn",
        ["performance", "demographic_parity"],
        {"horizon": 8},
    )
    resumed = Said("train", "--out", tmp_path / "run", "--resume", "--no-progress")
    assert resumed.code == 0, resumed.text
    tested = Said("evaluate", tmp_path / "run", "--episodes", "10")
    assert tested.code == 0, tested.text
    assert "desired performance" in tested.text
    assert (tmp_path / "run" / "evaluation-1" / "coverage.csv").is_file()


def test_a_run_of_pcn_is_resumed_without_a_preset(tmp_path: Path) -> None:
    train_pcn(config(steps=100), out=tmp_path / "run")
    said = Said("train", "pcn", "--out", tmp_path / "run", "--resume", "--preset", "farel")
    assert "preset must be left out when a run is resumed" in said.flat


def test_ctrl_c_tells_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from fair_envs.baselines.pcn.pcn import PCN

    iterate = PCN.iterate

    def interrupted(learner: PCN) -> Any:
        if learner.iterations:
            raise KeyboardInterrupt
        return iterate(learner)

    monkeypatch.setattr(PCN, "iterate", interrupted)
    said = Said("train", "pcn", FERRY, "--objectives", "R,SP", *OPTIONS)
    assert said.code == cli.INTERRUPTED
    assert f"continue with: fair-envs train --out runs/pcn-{FERRY}-1 --resume" in said.flat


def test_every_setting_is_an_option_with_its_meaning() -> None:
    said = Said("train", "pcn", "--help")
    assert said.code == 0
    assert missing_options("pcn", said.text) == [] and "--preset" in said.text
    assert "Capacity of the replay buffer in episodes. [200; an integer at least 1]" in said.flat


def test_wrong_options_are_told_in_a_line() -> None:
    assert "preset must be one of 'recommended', 'farel'" in mistake("train", "pcn", FERRY, "--preset", "best")
    assert "updates must be an integer at least 1, got 'x'" in mistake("train", "pcn", FERRY, "--updates", "x")
    assert "ID must be given" in mistake("train", "pcn")
