"""Only what the caller passes or types is imported, and the current folder is searched for nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fair_envs.support.imports import (
    PATH,
    Permissions,
    imported,
    module_of,
    permissions,
    permit,
    refuse_stored_paths,
    trusting,
    typed_in,
)

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def nothing_permitted() -> Iterator[None]:
    before = permissions()
    permit(Permissions())
    yield
    permit(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder with a module that notes when it is imported."""
    (tmp_path / "noting.py").write_text("open('imported', 'w').close()\ndef answer():\n    return 42\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("noting", None)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("friend.evil:f", ["friend.evil:f"]),
        ("none|friend.evil:f|men", ["friend.evil:f"]),
        ("evil:f,other:g", ["evil:f", "other:g"]),
        ("évil:f.g", ["évil:f.g"]),
        ("4:40", []),
        ("0.5:1e4:log", []),
        ("FairHarvest-v0", []),
        ("", []),
    ],
)
def test_import_paths_are_found_in_texts(text: str, paths: list[str]) -> None:
    assert PATH.findall(text) == paths


@pytest.mark.parametrize("path", ["4:f", "f", ":f", "a:", "a b:f", "a:b:c", "a:f;g", 5, None])
def test_whatever_is_not_found_as_a_path_is_not_imported_as_one(path: str) -> None:
    with pytest.raises(ValueError, match=r"import path must be module:function, got "):
        imported(path)


def test_a_path_is_imported_whatever_is_behind_the_colon() -> None:
    assert imported("os:path.join") is os.path.join and module_of("json:x") is json


def test_the_current_folder_is_searched_for_a_typed_path_alone(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError):
        imported("noting:answer")
    permit(Permissions(typed=typed_in(["-p", "reward_bias=noting:answer"]), folder=str(folder)))
    with pytest.raises(ModuleNotFoundError):
        imported("noting:other")
    before = list(sys.path)
    assert imported("noting:answer")() == 42
    assert sys.path == before


@pytest.mark.parametrize(
    "argument",
    [
        "noting:answer",
        "--policy=noting:answer",
        "runs/noting:answer",
        "/x/noting:answer",
        "noting:answer/new",
        "--out=noting:answer/new",
        "my-noting:answer",
        "--out=my-noting:answer",
        "-omy-noting:answer",
        "/x/my-noting:answer",
        "~/my-noting:answer",
        "runs/my-noting:answer/new",
    ],
)
def test_the_name_of_a_folder_is_no_typed_path(folder: Path, argument: str) -> None:
    for name in ("noting:answer", "my-noting:answer"):
        (folder / name).mkdir()
    assert typed_in([argument, "-p", "reward_bias=other:f"]) == {"other:f"}


def test_an_id_with_a_namespace_is_typed(folder: Path) -> None:
    (folder / "Lend-v0").mkdir()
    assert typed_in(["noting:own/Lend-v0"]) == {"noting:own"}


def test_a_stored_path_is_refused_unless_it_is_typed_or_trusted() -> None:
    settings = {"parameters": {"list": [{"reward_bias": "friend.evil:f"}]}, "objectives": ["parity:human"]}
    with pytest.raises(ValueError, match=r"here/config\.json names the function 'friend\.evil:f'\. .* pass --trust"):
        refuse_stored_paths(settings, file="here/config.json", but=["objectives"])
    with pytest.raises(ValueError, match="'parity:human'"):
        refuse_stored_paths({"objectives": settings["objectives"]}, file="config.json")
    with trusting():
        refuse_stored_paths(settings, file="config.json")
    permit(Permissions(typed=frozenset({"friend.evil:f"})))
    refuse_stored_paths(settings, file="config.json", but=["objectives"])
    assert permissions() == Permissions(typed=frozenset({"friend.evil:f"}))


def test_a_path_as_a_name_is_refused_too() -> None:
    with pytest.raises(ValueError, match="'evil:f'"):
        refuse_stored_paths({"parameters": {"evil:f": 1}}, file="config.json")


def started(folder: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder; Python itself searches the folder of a program first, which is another one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "fair-envs").write_text('if __name__ == "__main__":\n    from fair_envs.cli import main\n    main()\n')
    command = [sys.executable, str(programs / "fair-envs"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_no_command_runs_modules_of_the_current_folder(tmp_path: Path) -> None:
    here, ran = tmp_path / "here", tmp_path / "ran"
    here.mkdir()
    ran.mkdir()
    for name in ("colorama", "cython", "linkify_it", "charset_normalizer"):
        (here / f"{name}.py").write_text(f"open({str(ran / name)!r}, 'w').close()\n")
    run = started(here, tmp_path, "list")
    assert run.returncode == 0 and "FairHarvest-v0" in run.stdout, run.stderr
    assert list(ran.iterdir()) == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always searches the folder of a worker")
def test_workers_run_no_modules_of_the_current_folder(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name in ("pickle", "colorama"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    run = started(here, tmp_path, "evaluate", "FairTraffic-v0", "-p", "horizon=10", "--episodes", "2", "--jobs", "2")
    assert run.returncode == 0, run.stderr
    assert not (tmp_path / "ran").exists()
