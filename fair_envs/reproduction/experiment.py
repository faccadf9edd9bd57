"""A cell: one training and its evaluation, named by a hash of all that it depends on.

A `Job` is what every study's cells have in common: a name and a result that appears whole or not at all. `Cell` is that
of a multi-agent training.
"""

import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fair_envs
from fair_envs.baselines.evaluation import counterfactual, play
from fair_envs.baselines.training import LearningCurve, Training, train
from fair_envs.metrics import Returns

SENSITIVE = "sensitive"  # the attribute's name among the returns' attributes
TEST_SEEDS = 1_000_000  # test episodes are seeded from here on: no training reaches them
SHOWING = {"assessment", "benchmark", "cli", "loads", "pages", "playing"}  # modules that no result depends on
SHOWING |= {f"reproduction/{name}" for name in ("claims", "demo", "figures", "measures", "runner", "study", "tables")}


@functools.cache
def sources() -> str:
    """Return the hash of the code that a cell's result depends on: the package's, less what shows results."""
    root, digest = Path(fair_envs.__file__).parent, hashlib.sha256()
    files = [Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names]
    for file in sorted(file for file in files if file.suffix == ".py"):
        module = file.relative_to(root).with_suffix("").as_posix()
        if module not in SHOWING and not module.startswith("reproduction/papers/"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Job:
    """Work with a result; equal jobs have equal results. A subclass's fields are all that it depends on."""

    @property
    def key(self) -> str:
        """A hash of the job and of the code that runs it."""
        content = {"sources": sources(), **self.as_dict()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Return the job as plain data for JSON."""
        return asdict(self)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write files into an empty folder and return what else the record should hold."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Cell(Job):
    """One training and its evaluation.

    Attributes:
        training: What is trained, and how.
        episodes: Test episodes.
    """

    training: Training
    episodes: int

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the test's arrays and the model; return how long the training took."""
        started = time.perf_counter()
        curve = LearningCurve()
        model = train(self.training, callback=curve)
        seconds = time.perf_counter() - started
        arrays = {**evaluate_cell(self, model), "learning": np.array(curve.rows)}
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        model.save(part / "model.zip")
        return {"seconds": seconds}


@dataclass(frozen=True)
class Result:
    """What a cell gave: the test's returns, and counts of selected and executed actions by group.

    Attributes:
        cell: The cell, as plain data.
        ordinary: Returns of the ordinary game.
        none: Returns of the game in which nobody carries the attribute, or None.
        everybody: Returns of the game in which everybody does, or None.
        twins: Counterfactual returns of the ordinary game: each carrier as a non-carrier, played by the networks of its
            new group ("own") and by those of its old one ("same").
        selected: Actions that the policies chose, shape (groups, actions).
        executed: Actions that were carried out, shape (groups, actions).
        learning: One row for each rollout of the training: agent steps at its end, then the mean reward per agent and
            step of each group in it; shape (rollouts, 1 + groups).
        seconds: Wall time of the training.
    """

    cell: Mapping[str, Any]
    ordinary: Returns
    none: Returns | None
    everybody: Returns | None
    twins: Mapping[str, Returns]
    selected: NDArray[np.int64]
    executed: NDArray[np.int64]
    learning: NDArray[np.float64]
    seconds: float


def run_cell(cell: Job, folder: Path) -> Path:
    """Run a cell unless its result is there; return the result's folder, which appears whole or not at all."""
    done = folder / cell.key
    if (done / "cell.json").exists():
        return done
    folder.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{cell.key}-", dir=folder))
    try:
        record = {"cell": cell.as_dict(), "key": cell.key, "version": fair_envs.__version__, **cell.work(part)}
        (part / "cell.json").write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
        if not done.exists():
            os.replace(part, done)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return done


def evaluate_cell(cell: Cell, model: Any) -> dict[str, NDArray[Any]]:
    """Play the test episodes and return their arrays under flat names."""
    training = cell.training
    rules = fair_envs.make_rules(training.env_id, **training.parameters)
    ordinary = play(model, rules, episodes=cell.episodes, seed=TEST_SEEDS)
    arrays = {**_arrays("ordinary", ordinary.returns), "selected": ordinary.selected, "executed": ordinary.executed}
    worlds = counterfactual(model, rules, episodes=cell.episodes, seed=TEST_SEEDS)
    for name in ("none", "everybody", "own", "same"):
        arrays |= _arrays(name, getattr(worlds, name))
    return arrays


def read_result(folder: Path) -> Result:
    """Return the result in a cell's folder.

    Raises:
        FileNotFoundError: There is none.
    """
    record = json.loads((folder / "cell.json").read_text())
    with np.load(folder / "arrays.npz") as arrays:
        read = {name: _returns(name, arrays) for name in ("ordinary", "none", "everybody", "own", "same")}
        selected, executed, learning = arrays["selected"], arrays["executed"], arrays["learning"]
    ordinary = read["ordinary"]
    if ordinary is None:
        raise FileNotFoundError(f"folder must hold the returns of a cell, got {folder}")
    return Result(
        cell=record["cell"],
        ordinary=ordinary,
        none=read["none"],
        everybody=read["everybody"],
        twins={name: found for name in ("own", "same") if (found := read[name]) is not None},
        selected=selected,
        executed=executed,
        learning=learning,
        seconds=record["seconds"],
    )


def _arrays(name: str, returns: Returns) -> dict[str, NDArray[Any]]:
    attributes = {f"{name}/{key}": np.asarray(codes) for key, codes in returns.attributes.items()}
    return {f"{name}/values": np.asarray(returns.values), **attributes}


def _returns(name: str, arrays: Mapping[str, NDArray[Any]]) -> Returns | None:
    if f"{name}/values" not in arrays:
        return None
    prefix = f"{name}/"
    attributes = {key[len(prefix) :]: arrays[key] for key in arrays if key.startswith(prefix)}
    return Returns(attributes.pop("values"), attributes=attributes)
