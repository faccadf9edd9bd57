"""A run's folder: settings, versions, metrics, and a checkpoint from which it goes on to the bit."""

import csv
import importlib.metadata
import importlib.util
import io
import json
import math
import os
import platform
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnv

import fair_envs
from fair_envs.baselines.ppo import lanes_of, source_of
from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv

COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_current_progress_remaining")
LIBRARIES = ("gymnasium", "numba", "numpy", "stable-baselines3", "torch")
Row = dict[str, Any]


# ---------------------------------------------------------------------------------------------------- checkpoints


def source(env: VecEnv | None) -> AgentsVecEnv:
    """Return the environment of agents under the wrappers."""
    found = None if env is None else source_of(env)
    if found is None:
        raise ValueError("env must be made by fair_envs.make_sb3 with rows='agents', got another environment")
    return found


def batch(env: VecEnv | None) -> LanesVecEnv:
    """Return the environment under the wrappers, whose rows are agents or lanes."""
    found = None if env is None else lanes_of(env)
    if found is None:
        raise ValueError("env must be made by fair_envs.make_sb3, got another environment")
    return found


def freeze(model: BaseAlgorithm, *, rows: int) -> bytes:
    """Return all that the rest of a training depends on, at the beginning of a rollout.

    It holds tensors and plain data only, so that thawing it runs no code.

    Args:
        model: The learner.
        rows: How many rows of metrics there are.
    """
    name, keys, *place = np.random.get_state()
    state = {
        "learner": model.get_parameters(),
        "counters": {counter: getattr(model, counter) for counter in COUNTERS},
        "last_obs": th.as_tensor(np.asarray(model._last_obs)),
        "last_episode_starts": th.as_tensor(np.asarray(model._last_episode_starts)),
        "lanes": th.frombuffer(bytearray(batch(model.env).lanes.snapshot().tobytes()), dtype=th.uint8),
        "carried": model.carried() if isinstance(model, Carrying) else [],
        "chance": {
            "torch": th.get_rng_state(),
            "numpy": [name, th.as_tensor(np.asarray(keys, np.int64)), *place],
            "python": random.getstate(),
        },
        "rows": rows,
        "unlogged": [(key, number(value)) for key, value in model.logger.name_to_value.items()],
    }
    stream = io.BytesIO()
    th.save(state, stream)
    return stream.getvalue()


def restore(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Put a model that was made with the same settings, and the global generators of chance, where they were."""
    env = batch(model.env)
    env.reset()
    lanes = np.frombuffer(state["lanes"].numpy().tobytes(), env.lanes.rules.dtype)
    env.lanes.restore(lanes)
    model.set_parameters(state["learner"])
    for counter, value in state["counters"].items():
        setattr(model, counter, value)
    model._last_obs = state["last_obs"].numpy()
    model._last_episode_starts = state["last_episode_starts"].numpy()
    if isinstance(model, Carrying):
        model.carry(state.get("carried", []))
    name, keys, *place = state["chance"]["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *place))
    random.setstate(state["chance"]["python"])
    th.set_rng_state(state["chance"]["torch"])


# ------------------------------------------------------------------------------------------------------ the folder


@runtime_checkable
class Carrying(Protocol):
    """A learner whose training depends on more than its networks and counters."""

    def carried(self) -> Any:
        """Return that, as tensors and plain data."""

    def carry(self, state: Any) -> None:
        """Take it up."""


class Logging(Protocol):
    """A learner that logs; every one of Stable-Baselines3 does."""

    num_timesteps: int

    def set_logger(self, logger: Logger) -> None:
        """Log there from now on."""


class Run:
    """A run's folder.

    Attributes:
        folder: Where it is.
        rows: The metrics, one row for each rollout.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[Row] = []

    @staticmethod
    def check_new(folder: Path) -> None:
        """Raise FileExistsError if there is something already."""
        if folder.exists():
            raise FileExistsError(f"out must be a new folder, or one to resume, got {folder}, which exists")

    @classmethod
    def create(cls, folder: Path, config: Mapping[str, Any]) -> "Run":
        """Make the folder of a new run."""
        folder.mkdir(parents=True)  # fails if another run was faster
        write_json(folder / "config.json", config)
        write_json(folder / "versions.json", versions())
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> "Run":
        """Return a run that was begun.

        Raises:
            FileNotFoundError: The folder holds none.
        """
        if not (folder / "config.json").is_file():
            raise FileNotFoundError(f"run must be a folder that a training has made, with config.json, got {folder}")
        run = cls(folder)
        if run.has_checkpoint:
            run.rows = json.loads((folder / "metrics.json").read_text("utf-8"))[: run.checkpoint()["rows"]]
        return run

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is one; a run that was stopped while it was set up has none."""
        return (self.folder / "checkpoint.pt").is_file()

    def config(self) -> dict[str, Any]:
        """Return the settings it was begun with."""
        kept: dict[str, Any] = json.loads((self.folder / "config.json").read_text("utf-8"))
        return kept

    def check(self, config: Mapping[str, Any]) -> None:
        """Raise ValueError if the run was begun with other settings."""
        kept = self.config()
        for name in kept | dict(config):
            expected, came = kept.get(name), config.get(name)
            if expected != came:
                raise ValueError(f"{name} must be {expected!r} to resume {self.folder}, got {came!r}")

    def checkpoint(self) -> dict[str, Any]:
        """Return the state that was written last.

        Raises:
            FileNotFoundError: None was.
        """
        if not self.has_checkpoint:
            raise FileNotFoundError(f"run must be a folder with checkpoint.pt, got {self.folder}")
        state: dict[str, Any] = th.load(self.folder / "checkpoint.pt", map_location="cpu", weights_only=True)
        return state

    def write(self, state: bytes) -> None:
        """Write a checkpoint, after the metrics that it counts on."""
        write_json(self.folder / "metrics.json", self.rows)
        replace_file(self.folder / "checkpoint.pt", state)

    @contextmanager
    def log(self, model: "Logging") -> Iterator[Logger]:
        """Let a model log to the metrics and to TensorBoard, from where it stands."""
        board = Board(self.folder / "tensorboard", step=model.num_timesteps)
        logger = Logger(str(self.folder), [Metrics(self), board])
        for name, value in self.checkpoint()["unlogged"] if self.has_checkpoint else ():
            logger.record(name, math.nan if value is None else value)
        model.set_logger(logger)
        try:
            yield logger
        finally:
            logger.close()
            model.set_logger(Logger(None, []))


def versions() -> dict[str, str]:
    """Return the versions that a run depends on."""
    found = {"fair-envs": fair_envs.__version__, "python": platform.python_version(), "machine": platform.machine()}
    return found | {name: importlib.metadata.version(name) for name in LIBRARIES}


def write_json(path: Path, content: Any) -> None:
    """Write plain data, whole or not at all."""
    replace_file(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in place of another at once: whoever reads it finds the old one or the new one, whole."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


class Metrics(KVWriter):
    """Appends rows to a run's metrics, and to ``metrics.csv`` at once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._names: list[str] = []
        if run.rows:
            self._rewrite()

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Append a row."""
        row = {name: number(value) for name, value in key_values.items() if np.isscalar(value)}
        self._run.rows.append(row)
        if set(row) <= set(self._names):
            with self._path.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, self._names).writerow(row)
        else:
            self._rewrite()

    def close(self) -> None:
        """Do nothing: no file is open."""

    @property
    def _path(self) -> Path:
        return self._run.folder / "metrics.csv"

    def _rewrite(self) -> None:
        """Write all rows under all names."""
        self._names = list(dict.fromkeys(name for row in self._run.rows for name in row))
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, self._names)
        writer.writeheader()
        writer.writerows(self._run.rows)
        replace_file(self._path, stream.getvalue().encode())


def need_tensorboard() -> None:
    """Raise ImportError, before a folder is made, if the library that writes TensorBoard's log is missing."""
    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError("runs need tensorboard; install it with: pip install 'fair-envs[baselines]'")


class Board(TensorBoardOutputFormat):
    """TensorBoard's log; what it showed after the step from which a run goes on is dropped."""

    def __init__(self, folder: Path, *, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(log_dir=str(folder), purge_step=step + 1)
        self._is_closed = False


def number(value: Any) -> Any:
    """Return a Python number or text that JSON can hold; None for one that is not finite."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
