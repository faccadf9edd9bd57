"""Teams at a terminal: they are trained, resumed, evaluated and played, and mistakes get one line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.test_cli import Said, missing_options, mistake

pytest.importorskip("stable_baselines3")
from fair_envs.baselines.team import training as team_training
from fair_envs.baselines.team.ddpg import DDPG

pytestmark = pytest.mark.usefixtures("empty_folder")

PURSUIT = "FairPursuit-v0"
WORLD = {"side": 1.5, "horizon": 12}
SETTINGS = {
    "steps": 240,
    "lanes": 2,
    "train_freq": 2,
    "learning_starts": 30,
    "batch_size": 8,
    "buffer_size": 60,
    "actor": "8,8",
    "critic": "8,8",
    "levels": "1.2,0.8",
}
SMALL: list[Any] = ["--preset", "small"]
SMALL += [part for name, value in SETTINGS.items() for part in (f"--{name.replace('_', '-')}", value)]
SMALL += [part for name, value in WORLD.items() for part in ("--param", f"{name}={value}")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small training."""
    folder = tmp_path_factory.mktemp("runs") / "team"
    said = Said("train", "fair-er", PURSUIT, *SMALL, "--fairness-weight", "0.9", "--out", folder, "--no-progress")
    assert said.code == 0, said.text
    return folder


def settings_of(folder: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return kept


# ------------------------------------------------------------------------------------------------------- train


@pytest.mark.parametrize(("algorithm", "more"), [("ddpg", []), ("fair-e", ["--network", "sets"]), ("fair-er", [])])
def test_a_team_is_trained_with_a_bar_into_a_folder(algorithm: str, more: list[str], empty_folder: Path) -> None:
    said = Said("train", algorithm, PURSUIT, *SMALL, *more)
    assert said.code == 0, said.text
    folder = Path("runs") / f"{algorithm}-{PURSUIT}-1"
    assert f"saved {folder}; measure it with: fair-envs evaluate {folder}" in said.flat
    assert re.search(rf"{algorithm} .* ([\d,]+)/\1 agent steps", said.flat)
    names = {path.name for path in folder.iterdir()}
    written = {"config.json", "task.json", "versions.json", "metrics.csv", "metrics.json", "checkpoint.pt", "model.zip"}
    assert names == {*written, "tensorboard", "model-1.2.pt", "model-0.8.pt"}


def test_a_training_keeps_what_was_given_and_has_the_presets_in_place_of_the_rest(
    run: Path, empty_folder: Path
) -> None:
    kept = settings_of(run)
    assert (kept["algorithm"], kept["env_id"], kept["fairness_weight"], kept["levels"]) == (
        "fair-er",
        PURSUIT,
        0.9,
        [1.2, 0.8],
    )
    assert kept["parameters"] == {"include_speed": True, **WORLD}
    said = Said("train", "ddpg", PURSUIT, *SMALL, "--preset", "paper", "--out", "paper", "--no-progress")
    assert said.code == 0, said.text
    kept = settings_of(empty_folder / "paper")
    assert (kept["gamma"], kept["lanes"], kept["episodes"], kept["actor"]) == (0.99, 2, 15_000, [8, 8])
    assert kept["parameters"] == {"observation": "authors", "teammates": "index", **WORLD}


def test_every_setting_of_a_team_is_an_option() -> None:
    said = Said("train", "ddpg", "--help")
    assert said.code == 0
    assert missing_options("ddpg", said.text) == [] and "--fairness-weight" not in said.text
    assert "recommended|small|large|paper" in said.flat
    said = Said("train", "fair-er", "--help")
    assert missing_options("fair-er", said.text) == [] and "with normalised values" in said.flat


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["fair-e", "FairLending-v0"], "method must support FairLending-v0, got 'fair-e', which needs several agents"),
        (["fair-e", "FairWheat-v0"], "id must be one of "),
        (["fair-e"], "ID must be given"),
        (["fair-f", PURSUIT], "method must be one of a-ppo, alpha-fair,"),
        (["ddpg", PURSUIT, "--steps", "6000"], "--total-timesteps or --steps must be more than learning_starts, 20000"),
        (["ddpg", PURSUIT, "--gamma", "2"], "--gamma must be between 0 and 1, got 2"),
        (["ddpg", PURSUIT, "--preset", "tiny"], "preset must be one of 'recommended', 'small', 'large', 'paper', got"),
        (["ddpg", PURSUIT, "--preset", "small", "--speeds", "0.4,1.2"], "--speeds must decrease, got (0.4, 1.2)"),
        (
            ["ddpg", PURSUIT, "--actor", "8,x"],
            "--actor must be integers at least 1, separated by commas, such as 64,64",
        ),
        (
            ["fair-er", PURSUIT, "--form", "fair"],
            "--form must be one of 'plain', 'normalised', 'automatic', got 'fair'",
        ),
        (
            ["ddpg", PURSUIT, "-p", "action=heading"],
            "method must support FairPursuit-v0, got 'ddpg', which needs actions that are discrete or vectors",
        ),
        (
            ["fair-e", PURSUIT, "-p", "observation=authors", "--network", "sets"],
            "policy_kwargs['sets'] must be given for DeepSetsPolicy",
        ),
        (["fair-er", PURSUIT, "-p", "pursuers=1"], "env must have at least two agents whose actions are directions"),
    ],
)
def test_wrong_settings_leave_no_folder_behind(given: list[str], line: str, empty_folder: Path) -> None:
    assert mistake("train", *given).startswith(line)
    assert list(empty_folder.iterdir()) == []


def test_an_interrupted_training_says_how_to_go_on_and_does(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Said("train", "fair-e", PURSUIT, *SMALL, "--out", "whole", "--no-progress")
    assert whole.code == 0, whole.text
    learn, calls = DDPG.train, []

    def pressed(self: Any, *given: Any, **named: Any) -> None:
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        learn(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(DDPG, "train", pressed)
        said = Said("train", "fair-e", PURSUIT, *SMALL, "--out", "part", "--no-progress")
    assert said.code == 130
    assert "stopped; continue with: fair-envs train --out part --resume" in said.flat
    assert not (empty_folder / "part" / "model.zip").exists()
    said = Said("train", "--out", "part", "--resume", "--no-progress")
    assert said.code == 0, said.text
    states = [team_training.load_team(empty_folder / name)[0].policy.state_dict() for name in ("whole", "part")]
    assert all((states[0][name] == states[1][name]).all() for name in states[0])


def test_a_finished_run_is_resumed_by_its_folder_alone_and_with_nothing_else(run: Path) -> None:
    resume = ("train", "fair-er", "--out", run, "--resume")
    said = Said(*resume, "--no-progress")
    assert said.code == 0, said.text
    assert "--fairness-weight must be 0.9 to resume" in mistake(*resume, "--fairness-weight", "0.5")
    assert "preset must be left out when a run is resumed" in mistake(*resume, "--preset", "small")
    assert "parameters must be" in mistake(*resume, "--param", "pursuers=4")
    assert "algorithm must be 'fair-er' to resume" in mistake("train", "ddpg", *resume[2:])
    assert "which exists" in mistake("train", "ddpg", PURSUIT, "--out", run)


# ---------------------------------------------------------------------------------------------------- evaluate


def test_an_evaluation_prints_and_writes_what_each_policy_does_at_each_speed(run: Path, empty_folder: Path) -> None:
    said = Said("evaluate", run, "--episodes", "5", "--seed", "7", "--out", "found", "--no-progress")
    assert said.code == 0, said.text
    report = json.loads((empty_folder / "found" / "report.json").read_text())
    assert (report["episodes"], report["seed"], report["training"]["fairness_weight"]) == (5, 7, 0.9)
    assert report["parameters"] == {"include_speed": True, **WORLD}
    assert {kept: list(plays) for kept, plays in report["tests"].items()} == {
        "of the speed": ["1.2", "0.8"],
        "last": ["1.2", "0.8"],
    }
    told = report["tests"]["last"]["0.8"]
    assert told["success"]["n"] == 5
    measured = {(row["policy"], row["speed"], row["number"]): row["value"] for row in report["measured"]}
    assert measured["last", "0.8", "success"] == told["success"]["value"]
    assert f"{told['success']['value']:.4g} [" in said.flat and "captures 2" in said.flat
    assert "0 is fair, and so is a team that never captures" in said.flat


def test_a_team_is_evaluated_in_another_world_if_it_can_play_there(run: Path, empty_folder: Path) -> None:
    still = Said("evaluate", run, "--episodes", "3", "-p", "evader_speed=0", "--out", "still", "--no-progress")
    assert still.code == 0, still.text
    assert json.loads((empty_folder / "still" / "report.json").read_text())["parameters"]["evader_speed"] == 0
    line = mistake("evaluate", run, "--episodes", "3", "-p", "evaders=2", "--out", "two", "--no-progress")
    assert line.startswith("model must take these rules' observations of 11 numbers, got one of 7")
    assert not (empty_folder / "two").exists()


def test_a_team_of_one_speed_is_evaluated_at_it(empty_folder: Path) -> None:
    fixed = ["--curriculum", "fixed", "-p", "pursuer_speed=1.1", "--out", "run", "--no-progress"]
    assert Said("train", "ddpg", PURSUIT, *SMALL, *fixed).code == 0
    said = Said("evaluate", "run", "--episodes", "3", "--no-progress")
    assert said.code == 0, said.text
    report = json.loads((empty_folder / "run" / "evaluation-1" / "report.json").read_text())
    assert {kept: list(plays) for kept, plays in report["tests"].items()} == {"of the speed": [], "last": ["1.1"]}
    assert "which exists" in mistake("evaluate", "run", "--out", "run/evaluation-1")


# -------------------------------------------------------------------------------------------------------- play


def test_a_trained_team_plays_in_the_world_of_its_run(run: Path, empty_folder: Path) -> None:
    pytest.importorskip("pygame")
    imageio = pytest.importorskip("imageio.v3")
    worlds: dict[str, list[Any]] = {
        "own": ["--run", run],
        "chance": [f"-p{name}={value}" for name, value in WORLD.items()],
    }
    for name, more in worlds.items():
        said = Said("play", PURSUIT, *more, "--gif", f"{name}.gif", "--frames", "6")
        assert said.code == 0, said.text
    own, chance = (imageio.imread(empty_folder / f"{name}.gif") for name in worlds)
    assert own.shape == chance.shape
    assert len(own) == 6
    assert (own != chance).any()


def test_a_team_is_not_played_where_it_does_not_fit(run: Path, empty_folder: Path) -> None:
    film = ("--run", run, "--gif", "film.gif", "--frames", "3")
    assert "id must be that of the run, FairPursuit-v0" in mistake("play", "FairHarvest-v0", *film)
    for param, line in {"pursuers=4": "take these rules' observations", "action=discrete": "return actions of"}.items():
        said = Said("play", PURSUIT, *film, "-p", param)
        assert said.code == 2
        assert f"fair-envs: model must {line}" in said.flat
    assert not (empty_folder / "film.gif").exists()


def test_a_team_is_evaluated_at_a_speed_that_is_given(run: Path, empty_folder: Path) -> None:
    said = Said("evaluate", run, "--episodes", "3", "-p", "pursuer_speed=1.05", "--out", "own", "--no-progress")
    assert said.code == 0, said.text
    assert {
        kept: list(of) for kept, of in json.loads((empty_folder / "own" / "report.json").read_text())["tests"].items()
    } == {
        "of the speed": [],
        "last": ["1.05"],
    }


PPO_TEAMS: dict[str, tuple[str, ...]] = {
    "own": (),
    "shared": ("--shared",),
    "pulled": ("--sharing", "none", "--equivariance", "1"),
    "discrete": ("--param", "action=discrete"),
}


def test_ppo_with_networks_of_their_own_or_shared_plays_and_is_evaluated_as_a_team(empty_folder: Path) -> None:
    small = ("--steps", "96", "--lanes", "2", "--n-steps", "8", "--batch-size", "16", "--net-arch", "8")
    world = [word for name, value in WORLD.items() for word in ("-p", f"{name}={value}")]
    for name, given in PPO_TEAMS.items():
        said = Said("train", "ppo", PURSUIT, *small, *given, *world, "--out", name, "--no-progress")
        assert said.code == 0, said.text
        said = Said("evaluate", name, "--episodes", "3", "--no-progress")
        assert said.code == 0, said.text
        tests = json.loads((empty_folder / name / "evaluation-1" / "report.json").read_text())["tests"]
        assert [*tests["last"]] == ["1.2"]
        assert Said("play", PURSUIT, "--run", name, "--gif", f"{name}.gif", "--frames", "3").code == 0


def test_a_world_without_keys_is_watched(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert Said("play", PURSUIT, "--agent", "none", "--frames", "2").code == 0
    assert "agent must be none" in mistake("play", PURSUIT, "--frames", "2", "--agent", "agent_0")
    assert "watching" in Said("play", PURSUIT, "--frames", "2").text
