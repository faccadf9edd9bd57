"""A cell is named by all that it depends on, runs once, and can be brought together from several machines."""

import fnmatch
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fair_envs
from fair_envs.experiments import jobs as cells
from fair_envs.experiments.jobs import commit, read_returns, returns_arrays, run_cell, sources
from fair_envs.metrics.returns import Returns
from fair_envs.support.files import appearing
from tests.jobs import Failing, Square


class Cube(Square):
    pass


def test_a_key_depends_on_every_field_and_on_the_code_that_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Square(number=1)
    assert one.key == Square(number=1).key != replace(one, number=2).key
    assert one.key != Cube(number=1).key
    before = one.key
    monkeypatch.setattr(cells, "sources", lambda: "others")
    assert one.key != before


def test_the_code_that_counts_is_all_but_what_shows_results(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[str] = set()

    def note(file: Path) -> bytes:
        read.add("/".join(file.parts[file.parts.index("fair_envs") + 1 :]))
        return b""

    monkeypatch.setattr(Path, "read_bytes", note)
    sources.__wrapped__()
    names = {path.rpartition("fair_envs/")[2] for path in read}
    counted = {
        "baselines/ppo/fair_modes.py",
        "core/randomness.py",
        "core/lanes.py",
        "envs/harvest/rules.py",
        "envs/hiring/data/population.csv",
        "evaluation/rollout.py",
        "evaluation/systems.py",
        "experiments/jobs.py",
        "experiments/players.py",
        "experiments/systems.py",
        "metrics/group.py",
        "reproduction/cimpean2025/jobs.py",
        "reproduction/cimpean2025/published.py",
        "reproduction/experiment.py",
        "support/seeds.py",
        "wrappers/twin.py",
    }
    shown = {
        "assessment/plots.py",
        "benchmark/loads.py",
        "cli/train.py",
        "evaluation/reports.py",
        "experiments/executors.py",
        "experiments/tables.py",
        "experiments/figures.py",
        "reproduction/cimpean2025/published.json",
        "reproduction/lamalfa2025/report.py",
        "search/design.py",
    }
    root = Path(fair_envs.__file__).parent
    assert [name for name in sorted(counted | shown) if not (root / name).is_file()] == []
    assert counted <= names and not shown & names


@pytest.mark.skipif(shutil.which("git") is None, reason="needs Git")
def test_the_commit_of_the_code_is_known_unless_the_code_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    package, linked, ignored = tmp_path / "package", tmp_path / "linked", tmp_path / ".gitignore"
    for folder in (package, linked):
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    (package / "part").symlink_to("../linked")
    ignored.write_text("package/\nlinked/\n")
    monkeypatch.setattr(fair_envs, "__file__", str(package / "__init__.py"))
    assert commit.__wrapped__() == ""  # no repository
    git("init")
    git("add", ".gitignore")
    git("commit", "-m", "First")
    assert commit.__wrapped__() == ""  # as if installed into an ignored folder of another project
    git("add", "--force", "package", "linked")
    git("commit", "-m", "Second")
    second = git("rev-parse", "HEAD").strip()
    ignored.write_text("changed")
    git("commit", "--all", "-m", "Third")
    ignored.write_text("changed again")
    assert commit.__wrapped__() == second  # neither of these is code
    monkeypatch.setenv("GIT_DIR", "elsewhere")  # as in a hook
    assert commit.__wrapped__() == second
    monkeypatch.delenv("GIT_DIR")
    (linked / "__init__.py").write_text("changed")
    assert commit.__wrapped__() == ""
    git("checkout", "linked")
    assert commit.__wrapped__() == second
    (linked / "new.py").write_text("")
    assert commit.__wrapped__() == ""
    (linked / "new.py").unlink()
    monkeypatch.setenv("PATH", "")
    assert commit.__wrapped__() == ""


def test_a_cell_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="number must be even"):
        run_cell(Failing(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_appears_whole_and_leaves_one_that_was_first(tmp_path: Path) -> None:
    with appearing(tmp_path / "done") as part:
        (part / "a.txt").write_text("mine")
        assert not (tmp_path / "done").exists()
    with appearing(tmp_path / "done") as part:
        (part / "a.txt").write_text("late")
    assert (tmp_path / "done" / "a.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


def test_two_that_finish_at_once_keep_the_first(tmp_path: Path) -> None:
    with appearing(tmp_path / "done") as first, appearing(tmp_path / "done") as second:
        (first / "a.txt").write_text("first")
        (second / "a.txt").write_text("second")
    assert (tmp_path / "done" / "a.txt").read_text() == "second"  # the inner one ends first
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


def test_a_folder_that_cannot_appear_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), appearing(tmp_path / "done") as part:
        part.rmdir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o755), (0o027, 0o750)])
def test_others_may_read_results_where_they_may_read_files(mask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        done = run_cell(Square(number=1), tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(done.stat().st_mode) == mode


def test_returns_are_read_as_they_were_kept() -> None:
    returns = Returns([[1.0, 2.0]], attributes={"old": [0, 1]})
    arrays = {**returns_arrays("here", returns), "there/values": np.zeros((1, 2))}
    found = read_returns("here", arrays)
    assert found is not None and np.array_equal(found.values, returns.values)
    assert {name: codes.tolist() for name, codes in found.attributes.items()} == {"old": [[0, 1]]}
    assert read_returns("nowhere", arrays) is None


def test_work_loads_no_code_that_tests_or_compares() -> None:
    """An edit there leaves stored results valid."""
    jobs = [f"reproduction.{name}.jobs" for name in ("cimpean2025", "grupen2022", "hu2024", "lamalfa2025")]
    jobs += ["experiments.evaluations", "experiments.systems", "leaderboard.jobs", "baselines.methods"]
    program = "".join(f"import fair_envs.{name}\n" for name in jobs) + "import sys; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    names = [name.removeprefix("fair_envs.").replace(".", "/") for name in loaded if name.startswith("fair_envs.")]
    assert "leaderboard/jobs" in names
    assert fnmatch.filter(names, "testing*") == []
    unused = {"comparing", "contenders", "entries", "findings", "study"}
    assert {f"experiments/{name}" for name in unused} & {*names} == set()


def test_the_files_that_results_do_not_depend_on_exist() -> None:
    """A file that was moved would be counted among those that change results."""
    assert [pattern for pattern in cells.SHOWING if not fnmatch.filter(cells.contents(), pattern)] == []
