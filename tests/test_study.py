"""A study trains and compares methods: it keeps stored evaluations, and a failure does not end it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fair_envs.assessment.result import Evaluation, read
from tests.test_cli import Said, mistake

pytest.importorskip("stable_baselines3")

from fair_envs.experiments import study as module
from fair_envs.experiments.study import Study, failures, run_study

STUDY = Study(env_id="FairLending-v0", steps=64, parameters={"horizon": "30"}, episodes=2)
Answer = subprocess.CompletedProcess[str]


def played(calls: list[list[str]], *, killed: str = "") -> Callable[..., Answer]:
    """Return a replacement for processes: trainings succeed or are killed, evaluations write a file."""

    def run(words: list[str], **_: Any) -> Answer:
        calls.append(words[3:])
        kind, own = words[3], words[4:]
        if kind == "train" and killed in own and killed:
            return subprocess.CompletedProcess(words, -9, "", "")
        if kind == "evaluate":
            found = Evaluation(policy=own[2], env_id=own[0], rate="rate", groups=(), rows=(), about={})
            place = Path(own[own.index("--out") + 1])
            place.mkdir()
            (place / "evaluation.json").write_text(json.dumps([found.as_dict() | {"worst_off": ""}]))
        return subprocess.CompletedProcess(words, 0, "", "")

    return run


def compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a study of two methods and one seed, and return the names of the files that it compares."""
    names: list[str] = []

    class Nothing:
        def save(self, place: Path) -> None:
            assert place == folder

    def compare(files: list[str], **_: Any) -> Nothing:
        names.extend(Path(file).name for file in files)
        return Nothing()

    monkeypatch.setattr(module, "compare", compare)
    run_study(STUDY, folder, methods=["ppo", "elbert"], seeds=1)
    return names


def test_a_killed_training_does_not_end_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", played(calls, killed="ppo"))
    assert compared(tmp_path, monkeypatch) == ["elbert-0.json"]
    assert failures(tmp_path) == ["ppo-0: exit status -9"]
    assert [one[0] for one in calls] == ["train", "train", "evaluate"]
    assert calls[1][1:3] == ["elbert", "FairLending-v0"]
    assert " ".join(calls[1][3:]) == (
        f"--out {tmp_path / 'runs' / 'elbert-0'} --seed 0 --steps 64 --param horizon=30 --no-progress"
    )


def test_a_stored_evaluation_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", played(calls))
    compared(tmp_path, monkeypatch)
    (stored,) = read(tmp_path / "evaluations" / "ppo-0.json")
    assert stored.policy == "ppo"
    calls.clear()
    assert compared(tmp_path, monkeypatch) == ["elbert-0.json", "ppo-0.json"]
    assert not calls and not failures(tmp_path)


def test_without_any_evaluation_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str], **_: Any) -> Answer:
        return subprocess.CompletedProcess(words, 2, "", "first\nfair-envs: no such thing\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(RuntimeError, match="nothing to compare: ppo-0: fair-envs: no such thing; elbert-0"):
        compared(tmp_path, monkeypatch)


def test_a_folder_holds_one_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", played([]))
    compared(tmp_path, monkeypatch)
    with pytest.raises(ValueError, match=r"steps must be 64, as in the study in .*, got 65; use another folder"):
        run_study(Study(env_id="FairLending-v0", steps=65, parameters={"horizon": "30"}, episodes=2), tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"folder must be new, or hold a study, got .*, which holds other files"):
        run_study(STUDY, tmp_path / "other")


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
