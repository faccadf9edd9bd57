"""A cell: a unit of work whose result is named by a hash of all its inputs, computed once and stored atomically.

Studies, evaluations and searches consist of cells; `fair_envs.experiments.executors` runs them in processes or on
several machines.
"""

import functools
import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import fair_envs
from fair_envs.support.files import appearing, damaged, first_line, read_json, replace_file

if TYPE_CHECKING:
    from fair_envs.metrics.returns import Returns

RECORD = "cell.json"  # written last: a folder that has it is a result
ARRAYS = "arrays.npz"
SHOWING = (
    "assessment/plots",
    "benchmark/*",
    "cli/*",
    "evaluation/reports",
    "experiments/comparing",
    "experiments/contenders",
    "experiments/entries",
    "experiments/executors",
    "experiments/figures",
    "experiments/findings",
    "experiments/seeds",
    "experiments/study",
    "experiments/tables",
    "explorer/*",
    "leaderboard/answer",
    "leaderboard/board",
    "leaderboard/controls",
    "leaderboard/figures",
    "leaderboard/page",
    "leaderboard/rows",
    "leaderboard/scores",
    "leaderboard/standing",
    "leaderboard/verification",
    "reproduction/*/arms",
    "reproduction/*/published.json",
    "reproduction/*/report",
    "reproduction/*/sections",
    "reproduction/*/singles",
    "reproduction/*/tuning",
    "reproduction/claims",
    "reproduction/demo",
    "reproduction/study",
    "search/*",
    "support/files",
    "support/imports",
    "support/progress",
    "support/stopping",
    "template/*",
    "testing/*",
)
"""Files that show or store results without changing them; an edit there leaves stored results valid."""

COUNTED = (".py", ".csv", ".json")
"""Suffixes of the files that can change results: modules, and the data of environments and studies."""


def contents() -> dict[str, Path]:
    """Return the package's modules, such as ``core/lanes``, and data files, such as ``envs/x/data/y.csv``, in order."""
    root = Path(fair_envs.__file__).parent
    files = [Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names]
    return {
        file.relative_to(root).as_posix().removesuffix(".py"): file for file in sorted(files) if file.suffix in COUNTED
    }


@functools.cache
def sources() -> str:
    """Return the hash of the files that a cell's result depends on: the package without those that show results."""
    digest = hashlib.sha256()
    for name, file in contents().items():
        if not any(fnmatchcase(name, pattern) for pattern in SHOWING):
            digest.update(file.read_bytes())
    return digest.hexdigest()


@functools.cache
def commit() -> str:
    """Return the last Git commit that changed the package; "" if the package is not exactly as in a commit.

    That is so after changes, with modules that Git does not know, and outside of a Git repository.
    """
    root = Path(fair_envs.__file__).parent
    folders = [root.resolve(), *(part.resolve() for part in root.iterdir() if part.is_symlink())]
    settings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings["GIT_OPTIONAL_LOCKS"] = "0"  # other commands of Git may run

    def git(*command: str, about: Iterable[Path]) -> str:
        full = ["git", *command, "--", *map(str, about)]
        return subprocess.run(full, cwd=root, env=settings, capture_output=True, text=True, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", about=[file.resolve() for file in contents().values()])
        changed = git("status", "--porcelain", "--untracked-files=no", about=folders)
        return "" if changed else git("log", "-1", "--format=%H", about=folders).strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Work with a result; equal jobs have equal results. A subclass's fields are all inputs of the result."""

    @property
    def key(self) -> str:
        """A hash of the job and of the code that runs it."""
        return self._hash(sources=sources())

    @property
    def identity(self) -> str:
        """A hash of the job without the code, for results that are kept when the code changes."""
        return self._hash()

    def _hash(self, **others: str) -> str:
        content = {**others, "kind": type(self).__name__, **self.as_dict()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Return the job as plain data for JSON."""
        return asdict(self)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write files into an empty folder and return further entries of the record."""
        raise NotImplementedError


def is_done(cell: Job, folder: Path) -> bool:
    """Return whether a folder contains a cell's result."""
    return has_record(folder / cell.key)


def has_record(folder: Path) -> bool:
    """Return whether a folder is that of a cell that is done."""
    return (folder / RECORD).exists()


def run_cell(cell: Job, folder: Path) -> Path:
    """Run a cell unless its result exists; return the result's folder, which is created atomically."""
    done = folder / cell.key
    if not is_done(cell, folder):
        with appearing(done) as part:
            about = {"key": cell.key, "sources": sources(), "commit": commit(), "version": fair_envs.__version__}
            record = {"cell": cell.as_dict(), **about, **cell.work(part)}
            replace_file(part / RECORD, (json.dumps(record, indent=2, sort_keys=True) + "\n").encode())
    return done


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record in a cell's folder.

    Raises:
        FileNotFoundError: The cell does not exist.
        ValueError: The record is damaged.
    """
    try:
        return read_json(folder / RECORD, dict)
    except ValueError as error:
        raise ValueError(f"{error}; or remove the folder {folder}, so that only this cell runs again") from error


def write_arrays(part: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a cell's arrays into its folder, for `read_cell`."""
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(part / ARRAYS, **named)


def read_cell(folder: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the record and the arrays in a cell's folder.

    Raises:
        FileNotFoundError: The cell does not exist.
        ValueError: The cell is damaged.
    """
    record, file = read_record(folder), folder / ARRAYS
    try:
        with np.load(file, allow_pickle=False) as stored:
            return record, {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged archives raise many kinds of errors
        raise damaged(file, f"it is not a file of arrays ({type(error).__name__}: {first_line(error)})") from error


# Returns in a cell's arrays -------------------------------------------------------------------------------------------


def returns_arrays(name: str, returns: "Returns") -> dict[str, NDArray[Any]]:
    """Return the arrays of returns under flat names that begin with ``name``, for `read_returns`."""
    attributes = {f"{name}/{key}": np.asarray(codes) for key, codes in returns.attributes.items()}
    return {f"{name}/values": np.asarray(returns.values), **attributes}


def read_returns(name: str, arrays: Mapping[str, NDArray[Any]]) -> "Returns | None":
    """Return the returns that `returns_arrays` stored under a name; None if there are none."""
    if f"{name}/values" not in arrays:
        return None
    prefix = f"{name}/"
    attributes = {key[len(prefix) :]: arrays[key] for key in arrays if key.startswith(prefix)}
    from fair_envs.metrics.returns import Returns  # this also imports Numba, which a worker should not wait for

    return Returns(attributes.pop("values"), attributes=attributes)
