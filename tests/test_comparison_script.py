"""The script that trains and compares methods: what is stored is not trained again, and a failure does not end it."""

import json
import subprocess
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from fair_envs.assessment import Evaluation
from fair_envs.assessment.result import read

pytest.importorskip("stable_baselines3")

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "comparison.py"


@pytest.fixture
def script() -> Any:
    """Return the script as a module."""
    found = util.spec_from_file_location("comparison_script", SCRIPT)
    assert found is not None and found.loader is not None
    module = util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


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


def told(script: Any, folder: Path) -> list[str]:
    """Run the script with two methods and one seed, and return the names of the files that it compares."""
    compared: list[str] = []

    class Nothing:
        def save(self, place: Path) -> None:
            assert place == folder / "Some-v0"

    def compare(files: list[str], **_: Any) -> Nothing:
        compared.extend(Path(file).name for file in files)
        return Nothing()

    script.compare = compare
    runs = ("--runs", str(folder / "runs"))
    script.main(["Some-v0", "--out", str(folder), *runs, "--seeds", "1", "--method", "ppo", "--method", "elbert"])
    return compared


def test_a_killed_training_does_not_end_the_comparison(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", played(calls, killed="ppo"))
    assert told(script, tmp_path) == ["elbert-0.json"]
    assert json.loads((tmp_path / "Some-v0" / "failed.json").read_text()) == ["ppo-0: exit status -9"]
    assert [one[0] for one in calls] == ["train", "train", "evaluate"]


def test_a_stored_evaluation_is_not_trained_again(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", played(calls))
    told(script, tmp_path)
    (stored,) = read(tmp_path / "Some-v0" / "evaluations" / "ppo-0.json")
    assert stored.policy == "ppo"
    calls.clear()
    assert told(script, tmp_path) == ["elbert-0.json", "ppo-0.json"]
    assert not calls


def test_without_any_evaluation_it_says_why(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str], **_: Any) -> Answer:
        return subprocess.CompletedProcess(words, 2, "", "first\nfair-envs: no such method\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit, match="nothing to compare: ppo-0: fair-envs: no such method; elbert-0"):
        told(script, tmp_path)
