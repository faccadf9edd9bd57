"""A study trains and compares methods: it keeps stored evaluations, and a failure does not end it."""

import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fair_envs.assessment.result import Evaluation, read
from tests.test_cli import Said, mistake

pytest.importorskip("stable_baselines3")

from fair_envs.baselines.runs import Run
from fair_envs.experiments import study as module
from fair_envs.experiments.study import Commands, Study, failures, run_study

STUDY = Study(env_id="FairLending-v0", steps=64, parameters={"horizon": 30}, episodes=2)
CONFIG = {
    "env_id": "FairLending-v0",
    "algorithm": "ppo",
    "seed": 0,
    "steps": 64,
    "parameters": {"horizon": 30, "feedback": "full"},
}


class Played:
    """Replaces commands: trainings succeed or are killed, evaluations write a file.

    Attributes:
        calls: The words of each command.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, killed: str = "", why: str = "exit status -9") -> None:
        self.calls: list[list[str]] = []
        self._killed, self._why = killed, why
        self.changes: dict[str, Any] = {}  # of what trainings store
        monkeypatch.setattr(module.Commands, "run", self)

    def __call__(self, *words: str) -> str:
        """Do as the command would."""
        self.calls.append(list(words))
        kind, own = words[0], words[1:]
        if kind == "train" and self._killed in own and self._killed:
            return self._why
        if kind == "train" and "--resume" not in own:
            run = Path(own[own.index("--out") + 1])
            method, seed = own[0], int(own[own.index("--seed") + 1])
            begin(run.parent, run.name, algorithm=method, seed=seed, **self.changes)
        if kind == "evaluate":
            found = Evaluation(policy=own[2], env_id=own[0], rate="rate", groups=(), rows=(), about={})
            place = Path(own[own.index("--out") + 1])
            place.mkdir()
            (place / "evaluation.json").write_text(json.dumps([found.as_dict() | {"worst_off": ""}]))
        return ""

    def trained(self) -> list[str]:
        """Return the methods and seeds of the trainings, in their order."""
        return [f"{one[1]}-{one[one.index('--seed') + 1]}" for one in self.calls if one[0] == "train"]


def compared(folder: Path, monkeypatch: pytest.MonkeyPatch, *, seeds: int = 1, **given: Any) -> list[str]:
    """Run a study of two methods, and return the names of the files that it compares."""
    names: list[str] = []

    class Nothing:
        def save(self, place: Path) -> None:
            assert place == folder

    def compare(files: list[str], **_: Any) -> Nothing:
        names.extend(Path(file).name for file in files)
        return Nothing()

    monkeypatch.setattr(module, "compare", compare)
    run_study(STUDY, folder, **{"methods": ["ppo", "elbert"], "seeds": seeds, **given})
    return names


def test_a_killed_training_does_not_end_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, killed="ppo")
    assert compared(tmp_path, monkeypatch) == ["elbert-0.json"]
    assert failures(tmp_path) == ["ppo-0: exit status -9"]
    assert [one[0] for one in played.calls] == ["train", "train", "evaluate"]
    run = str(tmp_path / "runs" / "elbert-0")
    assert played.calls[1] == [
        *("train", "elbert", "FairLending-v0", "--out", run, "--seed", "0", "--steps", "64", "--param", "horizon=30"),
    ]
    assert played.calls[2][:-1] == ["evaluate", "FairLending-v0", "--policy", run, "--episodes", "2", "--out"]


def test_a_second_call_trains_only_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Played(monkeypatch, killed="ppo")
    compared(tmp_path, monkeypatch)
    played = Played(monkeypatch)
    assert compared(tmp_path, monkeypatch) == ["elbert-0.json", "ppo-0.json"]
    assert played.trained() == ["ppo-0"] and not failures(tmp_path)
    (stored,) = read(tmp_path / "evaluations" / "ppo-0.json")
    assert stored.policy == "ppo"


def test_all_methods_come_before_the_next_seed_and_earlier_results_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch)
    compared(tmp_path, monkeypatch, seeds=2)
    assert played.trained() == ["ppo-0", "elbert-0", "ppo-1", "elbert-1"]
    found = compared(tmp_path, monkeypatch, methods=["ggf"])
    assert found == ["elbert-0.json", "elbert-1.json", "ggf-0.json", "ppo-0.json", "ppo-1.json"]


def test_an_evaluation_that_cannot_be_read_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    compared(tmp_path, monkeypatch)
    stored = tmp_path / "evaluations" / "ppo-0.json"
    stored.write_text(stored.read_text()[:-20])
    played.calls.clear()
    assert compared(tmp_path, monkeypatch) == ["elbert-0.json", "ppo-0.json"]
    assert [one[0] for one in played.calls] == ["train", "evaluate"] and read(stored)


def begin(runs: Path, name: str = "ppo-0", **changes: Any) -> Path:
    """Write the settings of a training, which has begun."""
    (runs / name).mkdir(parents=True)
    (runs / name / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    return runs / name


def test_a_training_that_has_begun_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(tmp_path / "mine")
    (run / "metrics.json").write_text(json.dumps([{"time/total_timesteps": 64}]))  # but its last update is missing
    played = Played(monkeypatch)
    compared(tmp_path / "study", monkeypatch, methods=["ppo"], runs=tmp_path / "mine")
    assert played.calls[0] == ["train", "--out", str(run), "--resume"]
    assert played.calls[1][:4] == ["evaluate", "FairLending-v0", "--policy", str(run)]


def test_a_training_with_other_parameters_than_the_studys_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(monkeypatch)
    played.changes = {"parameters": {"horizon": "30", "feedback": "full"}}  # a text was not converted back
    with pytest.raises(RuntimeError, match=r"ppo-0: .* must be a run of this study, with parameters="):
        compared(tmp_path, monkeypatch)


def test_stopping_while_commands_end_stops_all_others() -> None:
    commands = Commands([])

    class Process:
        def terminate(self) -> None:
            ended.append(self)
            commands._running.discard(self)

    ended: list[Any] = []
    commands._running = {Process() for _ in range(9)}  # type: ignore[misc]
    commands.stop()
    assert len(ended) == 9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"env_id": "FairHiring-v0"}, "env_id='FairLending-v0', got 'FairHiring-v0'"),
        ({"algorithm": "elbert"}, "algorithm='ppo', got 'elbert'"),
        ({"seed": 1}, "seed=0, got 1"),
        ({"steps": 65}, "steps=64, got 65"),
        ({"parameters": {"horizon": 50}}, "parameters={'horizon': 30, 'feedback': 'full'}, got {'horizon': 50}"),
    ],
)
def test_runs_of_another_study_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], message: str
) -> None:
    begin(tmp_path / "runs", **changed)
    played = Played(monkeypatch)
    assert compared(tmp_path / "study", monkeypatch, runs=tmp_path / "runs") == ["elbert-0.json"]
    (failure,) = failures(tmp_path / "study")
    assert "must be a run of this study, with" in failure and message in failure
    assert played.trained() == ["elbert-0"]


def test_a_damaged_run_does_not_end_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (begin(tmp_path / "runs") / "config.json").write_text("{")
    Played(monkeypatch)
    assert compared(tmp_path / "study", monkeypatch, runs=tmp_path / "runs") == ["elbert-0.json"]
    assert "config.json" in failures(tmp_path / "study")[0]


def test_trainings_can_run_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played, together = Played(monkeypatch), threading.Barrier(2, timeout=20)

    def run(self: Any, *words: str) -> str:
        if words[0] == "train":
            together.wait()
        return played(*words)

    monkeypatch.setattr(module.Commands, "run", run)
    compared(tmp_path, monkeypatch, jobs=2)
    assert sorted(played.trained()) == ["elbert-0", "ppo-0"]


def test_without_any_evaluation_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Commands, "run", lambda self, *words: "no such thing")
    with pytest.raises(RuntimeError, match="nothing to compare: ppo-0: no such thing; elbert-0: no such thing"):
        compared(tmp_path, monkeypatch)


def test_a_folder_holds_one_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Played(monkeypatch)
    compared(tmp_path, monkeypatch)
    for change, message in (
        ({"steps": 65}, "steps must be 64, as in the study in .*, got 65; use another folder"),
        ({"episodes": 3}, "episodes must be 2"),
        ({"parameters": {"horizon": 31}}, r"parameters must be \{'horizon': 30\}"),
    ):
        with pytest.raises(ValueError, match=message):
            run_study(replace(STUDY, **change), tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"folder must be new, or hold a study, got .*, which holds other files"):
        run_study(STUDY, tmp_path / "other")


def test_methods_are_those_that_train_with_the_parameters() -> None:
    every = STUDY.supported()
    assert {"ppo", "elbert", "pcn"} <= set(every) and "fair-e" not in every
    hidden = replace(STUDY, parameters={"feedback": "accepted"})
    assert "elbert" not in hidden.supported() and "ppo" in hidden.supported()
    with pytest.raises(ValueError, match="method must support FairLending-v0, got 'elbert'"):
        run_study(hidden, Path("nowhere"), methods=["elbert"])


def test_methods_without_a_policy_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from fair_envs.baselines import methods as registry

    seeing = registry.named("ppo")
    blind = replace(seeing, name="blind", policy=None, evaluated=lambda model, settings, test: None)
    monkeypatch.setattr(registry, "methods", lambda: [seeing, blind])
    assert STUDY.supported() == ["ppo"]


# Processes ------------------------------------------------------------------------------------------------------------


def test_a_command_has_one_thread_and_imports_the_users_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setenv("OMP_NUM_THREADS", "4")

    class Process:
        returncode = 0

        def __init__(self, words: list[str], **options: Any) -> None:
            seen.update(words=words, **options)

        def communicate(self) -> tuple[str, str]:
            return "", ""

    monkeypatch.setattr(subprocess, "Popen", Process)
    assert Commands(["school"]).run("train", "ppo") == ""
    assert seen["words"][1:] == ["-m", "fair_envs.cli", "--import", "school", "train", "ppo", "--no-progress"]
    assert seen["env"]["OMP_NUM_THREADS"] == "1"


def test_a_command_that_fails_says_why() -> None:
    found = Commands([]).run("train", "ppa", "FairLending-v0")
    assert found.startswith("method must be one of") and "got 'ppa'" in found


def test_after_a_stop_no_command_begins() -> None:
    commands = Commands([])
    commands.stop()
    assert commands.run("list") == "stopped"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_study_stops_its_training_and_continues_later(tmp_path: Path, number: signal.Signals) -> None:
    study = ["study", "FairLending-v0", "-p", "horizon=30", "--seeds", "1", "--episodes", "2", "--method", "ppo"]
    study += ["--steps", "100000", "--out", str(tmp_path / "found"), "--no-progress"]
    words = [sys.executable, "-m", "fair_envs.cli", *study]
    run = tmp_path / "found" / "runs" / "ppo-0"
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not (run / "metrics.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"stopped; continue with: the same command and --out {tmp_path / 'found'}" in said
    assert Run(run).has_checkpoint and Run(run).logged_steps() < 100_000
    assert not (tmp_path / "found" / "comparison.md").exists()
    assert subprocess.run(words, capture_output=True, timeout=300).returncode == 0
    (found,) = read(tmp_path / "found" / "evaluations" / "ppo-0.json")
    assert found.about["run"]["steps"] >= 100_000


# The command ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 0}, "seeds must be an integer of at least 1, got 0"),
        ({"jobs": 0}, "jobs must be an integer of at least 1, got 0"),
        ({"methods": ["ppa"]}, "method must be one of .*, got 'ppa'"),
        ({"methods": ["fair-e"]}, "method must support FairLending-v0, got 'fair-e'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_study(STUDY, tmp_path / "new", **given)
    assert not (tmp_path / "new").exists()


def test_a_study_of_an_unknown_environment_or_without_episodes_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'FairLending-v0'"):
        Study(env_id="FairLendin-v0")
    with pytest.raises(ValueError, match="episodes must be an integer of at least 1, got 0"):
        Study(env_id="FairLending-v0", episodes=0)
    with pytest.raises(TypeError, match="horizonn"):
        Study(env_id="FairLending-v0", parameters={"horizonn": 30})


@pytest.mark.long
def test_the_command_trains_and_compares_and_continues(empty_folder: Path) -> None:
    options = ("-p", "horizon=30", "--steps", "64", "--seeds", "1", "--episodes", "2", "--method", "ppo")
    said = Said("study", "FairLending-v0", *options, "--no-progress", "--out", "found")
    assert said.code == 0, said.text
    assert "lenient" in said.text and "saved found" in said.text
    assert {path.name for path in Path("found").iterdir()} >= {
        "comparison.md",
        "evaluations",
        "price.png",
        "runs",
        "study.json",
    }
    before = (Path("found") / "evaluations" / "ppo-0.json").stat().st_mtime_ns
    assert Said("study", "FairLending-v0", *options, "--no-progress", "--out", "found").code == 0
    assert (Path("found") / "evaluations" / "ppo-0.json").stat().st_mtime_ns == before
    assert "steps must be 64" in mistake(
        "study", "FairLending-v0", "-p", "horizon=30", "--steps", "65", "--episodes", "2", "--out", "found"
    )
    assert "did you mean 'horizon'" in mistake("study", "FairLending-v0", "-p", "horizonn=30", "--out", "other")
    assert not Path("other").exists()


@pytest.mark.long
def test_the_command_fails_if_a_training_has_failed(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = module.Commands.run
    monkeypatch.setattr(
        module.Commands, "run", lambda self, *words: "no memory" if "elbert" in words else whole(self, *words)
    )
    options = ("-p", "horizon=30", "--steps", "64", "--seeds", "1", "--episodes", "2", "--out", "found")
    said = Said("study", "FairLending-v0", *options, "--method", "ppo", "--method", "elbert", "--no-progress")
    assert said.code == 1 and "failed: elbert-0: no memory" in said.text and "lenient" in said.text
