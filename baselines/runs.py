"""A run's folder: settings, versions, metrics, and a checkpoint from which training resumes bit-identically.

Reading a run runs no code: settings are JSON, weights are tensors and plain data. Errors name damaged files. Only one
process at a time can write a run.
"""

import csv
import dataclasses
import hashlib
import importlib.metadata
import io
import math
import platform
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import gymnasium as gym
import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnv

import fair_envs
from fair_envs.assessment.measured import in_words, measured
from fair_envs.assessment.played import exactly, system_of
from fair_envs.assessment.policies import logged_steps
from fair_envs.baselines.ppo.ppo import agents_env_of, lanes_env_of
from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv
from fair_envs.support.extras import need
from fair_envs.support.files import (
    appearing,
    check_new,
    damaged,
    first_line,
    read_json,
    replace_file,
    write_json,
    writing,
)
from fair_envs.support.imports import paths_in, refuse_stored_paths, source_hash
from fair_envs.support.stopping import delayed_signals
from fair_envs.tasks import environment_id
from fair_envs.wrappers.adapters.bound import transforms

ANOTHER_VERSION = ", or it was written by a version of fair-envs with other settings"
COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_current_progress_remaining")
LIBRARIES = ("gymnasium", "numba", "numpy", "stable-baselines3", "torch")
Row = dict[str, Any]
S = TypeVar("S")
M = TypeVar("M")
Restore = Callable[[M, Mapping[str, Any]], object]
"""Function that restores the state of a checkpoint in a model."""


# ---------------------------------------------------------------------------------------------------- checkpoints


def source(env: VecEnv | None) -> AgentsVecEnv:
    """Return the environment of agents under the wrappers."""
    found = None if env is None else agents_env_of(env)
    if found is None:
        raise ValueError("env must be made by fair_envs.make_sb3 with rows='agents', got another environment")
    return found


def batch(env: VecEnv | None) -> LanesVecEnv:
    """Return the environment of agents or lanes under the wrappers."""
    found = None if env is None else lanes_env_of(env)
    if found is None:
        raise ValueError("env must be made by fair_envs.make_sb3, got another environment")
    return found


def freeze(model: BaseAlgorithm, run: "Run") -> bytes:
    """Return the complete, serialised state of a training at the beginning of a rollout.

    It contains only tensors and plain data, so that loading it runs no code.

    Args:
        model: The learner.
        run: The learner's run.
    """
    name, keys, *place = np.random.get_state()
    state = {
        "learner": model.get_parameters(),
        "counters": {counter: getattr(model, counter) for counter in COUNTERS},
        "last_obs": th.as_tensor(np.asarray(model._last_obs)),
        "last_episode_starts": th.as_tensor(np.asarray(model._last_episode_starts)),
        "lanes": th.frombuffer(bytearray(lanes_of(model.env)), dtype=th.uint8),
        "transforms": [
            {name: th.as_tensor(array) for name, array in one.snapshot().items()} for one in transforms_of(model.env)
        ],
        "extra_state": model.get_extra_state() if isinstance(model, HasExtraState) else [],
        "randomness": {
            "torch": th.get_rng_state(),
            "numpy": [name, th.as_tensor(np.asarray(keys, np.int64)), *place],
            "python": random.getstate(),
        },
        **run.place(),
        "unlogged": [(key, number(value)) for key, value in model.logger.name_to_value.items()],
    }
    return serialized(state)


def lanes_of(env: VecEnv | None) -> bytes:
    """Return the state of the unfinished episodes; a zero if the environment cannot store them."""
    found = None if env is None else lanes_env_of(env)
    return bytes(1) if found is None else found.lanes.snapshot().tobytes()


def transforms_of(env: VecEnv | None) -> list[Any]:
    """Return the transforms around an environment that have a state."""
    around = [] if env is None or lanes_env_of(env) is None else transforms(env)
    return [bound.transform for bound in around if hasattr(bound.transform, "snapshot")]


def restore(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Restore a model that was created with the same settings, and the global random number generators.

    An environment that is registered only with Gymnasium cannot restore its unfinished episodes: new ones begin.
    """
    assert model.env is not None
    env = lanes_env_of(model.env)
    model.env.reset()
    restore_learner(model, state)
    model._last_obs = state["last_obs"].numpy()
    model._last_episode_starts = state["last_episode_starts"].numpy()
    name, keys, *place = state["randomness"]["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *place))
    random.setstate(state["randomness"]["python"])
    th.set_rng_state(state["randomness"]["torch"])
    if env is not None:
        env.lanes.restore(np.frombuffer(state["lanes"].numpy().tobytes(), env.lanes.rules.dtype))
        for one, kept in zip(transforms_of(model.env), state.get("transforms", []), strict=True):
            one.restore({name: tensor.numpy() for name, tensor in kept.items()})
    else:
        model.env.seed(int(np.random.randint(2**31)))  # not the episodes with which the training began
        model._last_obs = model.env.reset()  # type: ignore[assignment]
        model._last_episode_starts = np.ones(model.env.num_envs, bool)


def restore_learner(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Restore a model that was created with the same settings, without its unfinished episodes."""
    model.set_parameters(dict(state["learner"]))  # Stable-Baselines3 would open a string as a file name
    for counter in COUNTERS:
        setattr(model, counter, state["counters"][counter])
    if isinstance(model, HasExtraState):
        model.set_extra_state(state.get("extra_state", []))


# -------------------------------------------------------------------------------------------------- stored weights


def serialized(state: Any) -> bytes:
    """Return tensors and plain data as a PyTorch file, with a checksum of the content as the archive's comment."""
    stream = io.BytesIO()
    th.save(state, stream)
    content = stream.getvalue()
    return content[:-2] + _comment(content)


def _comment(content: bytes) -> bytes:
    """Return the archive comment, the checksum of an archive without comment, preceded by the comment's length."""
    checksum = b"sha256:" + hashlib.sha256(content).hexdigest().encode()
    return len(checksum).to_bytes(2, "little") + checksum


def read_weights(path: Path) -> dict[str, Any]:
    """Return the content of a file of tensors and plain data, after checking its checksum; loading runs no code.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is damaged, or has other content.
    """
    sealed = path.read_bytes()
    size = len(_comment(b""))
    content = sealed[:-size] + bytes(2)  # an archive without a comment ends with its length, 0
    if sealed[-size:] != _comment(content):
        raise damaged(path, "its checksum is wrong or missing")
    try:
        state: dict[str, Any] = th.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # the content is untrusted
        reason = first_line(error).split(". ")[0]
        raise ValueError(
            f"{path} must contain only tensors and plain data, and nothing that runs code when it is loaded; "
            f"it is refused ({reason})"
        ) from error
    if not isinstance(state, dict):
        raise damaged(path, f"it must contain names and values, got a {type(state).__name__}")
    return state


# ------------------------------------------------------------------------------------------------------ the folder


@runtime_checkable
class HasExtraState(Protocol):
    """A learner whose training has state besides its networks and counters."""

    def get_extra_state(self) -> Any:
        """Return that state as tensors and plain data."""

    def set_extra_state(self, state: Any) -> None:
        """Restore that state."""


class Counting(Protocol):
    """A learner that counts its steps, such as every learner of Stable-Baselines3."""

    num_timesteps: int


class Run:
    """A run's folder.

    Attributes:
        folder: Path of the folder.
        rows: The metrics, one row for each rollout.
        unlogged: Values recorded by the learner that were not yet written as a row at the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[Row] = []
        self.unlogged: Mapping[str, Any] = {}
        self._state: dict[str, Any] | None = None  # of the checkpoint when the run was opened, until it is used

    @cached_property
    def _made_from(self) -> dict[str, Any]:
        """Inputs of the training besides this package: its settings, and hashes of the functions that they name."""
        settings = self.config()
        return {"settings": settings, "functions": {path: source_hash(path) for path in sorted(paths_in(settings))}}

    def place(self) -> dict[str, Any]:
        """Return a checkpoint's information about its run: the number of rows of metrics, and the run's inputs."""
        return {"rows": len(self.rows), **self._made_from}

    @staticmethod
    def check_begun(folder: Path) -> None:
        """Raise FileNotFoundError if the folder contains no run."""
        if not (folder / "config.json").is_file():
            raise FileNotFoundError(f"run must be a folder created by a training, with config.json, got {folder}")

    @classmethod
    @contextmanager
    def begun(
        cls,
        folder: Path,
        config: Mapping[str, Any],
        make: Callable[[], M],
        *,
        resume: bool,
        restore: Restore[M],
        defaults: Mapping[str, Any],
    ) -> Iterator[tuple["Run", M]]:
        """Yield a new or resumed run and its model in its current state; the folder is locked meanwhile.

        Args:
            folder: Folder of the run.
            config: The settings.
            make: Creates the untrained model.
            resume: Whether to resume the run in the folder.
            restore: Restores the state of a checkpoint in a model.
            defaults: Values of settings that a run to resume does not store, because it is older than the settings.

        Raises:
            FileExistsError: The folder exists and ``resume`` is False.
            FileNotFoundError: There is no run to resume.
            ValueError: The run has other settings, is damaged, or is being written by another process.
        """
        if not resume:
            check_new(folder)
            need("a run", "tensorboard", extra="baselines")
            task = task_in(config)
            model = make()  # before the folder is created, so that invalid parameters leave no folder behind
            run = cls.create(folder, config, task=task)
            with writing(folder):
                yield run, model
            return
        cls.check_begun(folder)
        with writing(folder):
            run = cls.open(folder)
            run.check(config, defaults=defaults)
            if other := run.other_task():
                raise ValueError(other)
            model = make()
            if run.has_checkpoint:
                run.take_up(lambda state: restore(model, state))
            yield run, model

    @classmethod
    def create(cls, folder: Path, config: Mapping[str, Any], *, task: Mapping[str, Any] | None = None) -> "Run":
        """Create the folder of a new run atomically, with its settings and versions.

        Args:
            folder: The folder.
            config: The settings.
            task: What the environment's task measures, see `task_in`; empty or None: it is not stored.

        Raises:
            FileExistsError: Another run has created the folder.
        """
        with appearing(folder, new=True) as part:
            write_json(part / "config.json", config)
            write_json(part / "versions.json", versions())
            if task:
                write_json(part / "task.json", task)
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> "Run":
        """Return an existing run.

        Raises:
            FileNotFoundError: The folder contains no run.
        """
        cls.check_begun(folder)
        run = cls(folder)
        if run.has_checkpoint:
            state, kept = run.checkpoint(), run.config()
            before = state.get("settings", kept)
            for name in sorted(before.keys() | kept.keys()):
                if before.get(name) != kept.get(name):
                    raise damaged(
                        folder / "config.json",
                        f"it has {name} {kept.get(name)!r}, but the training was started with {before.get(name)!r}",
                    )
            rows = read_json(folder / "metrics.json", list)
            if len(rows) < state["rows"] or not all(isinstance(row, dict) for row in rows):
                raise damaged(
                    folder / "metrics.json", f"it must contain the {state['rows']} rows that checkpoint.pt refers to"
                )
            run.rows, run.unlogged, run._state = rows[: state["rows"]], state["unlogged"], state
        elif (folder / "metrics.json").exists():
            raise damaged(folder, "it has metrics.json, but no checkpoint.pt")
        return run

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a checkpoint; a run that was stopped during its setup has none."""
        return (self.folder / "checkpoint.pt").is_file()

    def config(self) -> dict[str, Any]:
        """Return the settings of the run as stored in the file.

        Raises:
            FileNotFoundError: The folder contains no run.
            ValueError: The file is damaged.
        """
        return read_json(self.folder / "config.json", dict)

    def trusted_config(self, kind: type[Any]) -> dict[str, Any]:
        """Return the settings as arguments for a dataclass.

        Raises:
            FileNotFoundError: The folder contains no run.
            ValueError: The file is damaged, has other settings, or names something to import that is not trusted, see
                `fair_envs.support.imports`.
        """
        path, kept = self.folder / "config.json", self.config()
        known = [field.name for field in dataclasses.fields(kind)]
        if unknown := sorted(set(kept) - set(known)):
            raise damaged(path, f"a {kind.__name__} has no {', '.join(unknown)}{ANOTHER_VERSION}")
        refuse_stored_paths(kept, file=path)
        return kept

    def settings(self, kind: type[S]) -> S:
        """Return the settings as an instance of a dataclass; errors are those of `trusted_config`."""
        given = self.trusted_config(kind)
        try:
            return kind(**given)
        except (TypeError, ValueError) as error:
            raise damaged(self.folder / "config.json", first_line(error) + ANOTHER_VERSION) from error

    def check(self, config: Mapping[str, Any], *, defaults: Mapping[str, Any]) -> None:
        """Raise ValueError if the run was started with other settings; settings that it lacks have their defaults."""
        kept = {**defaults, **self.config()}
        for name in kept | dict(config):
            expected, came = kept.get(name), config.get(name)
            if expected != came:
                why = "; it cannot be extended, because schedules depend on the number of steps" * (name == "steps")
                raise ValueError(
                    f"{name} must be {expected!r} to resume {self.folder}, got {came!r}{why}; train a new run in "
                    "another folder"
                )

    def other_task(self) -> str:
        """Return that the run was trained with another task of the environment than the current one, or "".

        Runs that do not store their task, which are older, are not compared.
        """
        path, config = self.folder / "task.json", self.config()
        kept = read_json(path, dict) if path.is_file() else {}
        named = str(config.get("env_id")).rpartition(":")[2]  # a stored module is not imported
        current = task_in({**config, "env_id": named}) if kept else {}
        if not current or kept == current:
            return ""
        return (
            f"{self.folder} was trained with another task ({in_words(kept)}), got the task {in_words(current)}; import "
            "the module that defines its task, in Python or with: fair-envs --import MODULE"
        )

    def logged_steps(self) -> int:
        """Return the number of steps, see `fair_envs.assessment.policies.logged_steps`."""
        return logged_steps(self.folder)

    def checkpoint(self) -> dict[str, Any]:
        """Return the state of the last checkpoint.

        Raises:
            FileNotFoundError: There is no checkpoint.
        """
        if not self.has_checkpoint:
            raise FileNotFoundError(f"run must be a folder with checkpoint.pt, got {self.folder}")
        path = self.folder / "checkpoint.pt"
        state = read_weights(path)
        if not isinstance(state.get("rows"), int):
            raise damaged(path, "the number of its rows of metrics is missing or invalid")
        try:
            state["unlogged"] = dict(state["unlogged"])
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, "the values recorded for the next row are missing or invalid") from error
        return state

    def take_up(self, restore: Callable[[Mapping[str, Any]], object]) -> None:
        """Pass the checkpoint from when the run was opened to a function that restores it, and discard it.

        Raises:
            FileNotFoundError: There was no checkpoint.
            ValueError: The checkpoint is damaged, or belongs to another kind of training.
        """
        state, self._state = self._state or self.checkpoint(), None
        for function in sorted(paths_in(self.config())):  # trusted; names only in the checkpoint are not imported
            if source_hash(function) != state.get("functions", {}).get(function):
                raise ValueError(
                    f"{function!r} must be the function with which {self.folder} was started, but its module's file "
                    "has changed; restore that file, or begin again in a new folder"
                )
        try:
            restore(state)
        except (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            path = self.folder / "checkpoint.pt"
            if other := self.other_task():
                raise ValueError(other) from error
            raise damaged(
                path, f"it does not fit the run's settings ({type(error).__name__}: {first_line(error)})"
            ) from error

    def write(self, state: bytes) -> None:
        """Write a checkpoint, after the metrics that it refers to."""
        write_json(self.folder / "metrics.json", self.rows)
        replace_file(self.folder / "checkpoint.pt", state)

    @contextmanager
    def log(self, model: "Counting", *, iterations: int = 0) -> Iterator[Logger]:
        """Make a model log to the metrics and to TensorBoard, as a context.

        Args:
            model: The learner. If it has a method ``set_logger``, it gets the logger.
            iterations: Number of iterations logged before, if the learner restarts its count when resumed.
        """
        logger = RunLogger(str(self.folder), [Metrics(self)], iterations=iterations)
        set_logger = getattr(model, "set_logger", lambda logger: None)
        try:
            with delayed_signals():  # as in `RunLogger.dump`
                logger.output_formats.append(Board(self.folder / "tensorboard", step=model.num_timesteps))
            for name, value in self.unlogged.items():
                logger.record(name, math.nan if value is None else value)
            set_logger(logger)
            yield logger
        finally:
            logger.close()
            set_logger(Logger(None, []))


def task_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the task of a training's environment measures, see `fair_envs.assessment.measured`.

    It is empty if the environment is unknown or reports no record.
    """
    try:
        name = environment_id(config["env_id"])
        system = system_of(exactly(name, config.get("parameters", {})), task=name)
        if system.env is not None:
            system.env.close()
        return measured(system)
    except (AttributeError, LookupError, TypeError, ValueError, ImportError, gym.error.Error):
        return {}


def versions() -> dict[str, str]:
    """Return the versions of software that a run depends on."""
    found = {"fair-envs": fair_envs.__version__, "python": platform.python_version(), "machine": platform.machine()}
    return found | {name: importlib.metadata.version(name) for name in LIBRARIES}


class RunLogger(Logger):
    """A logger that continues the count of iterations of an interrupted run.

    Args:
        folder: Folder of the run.
        outputs: Outputs of the logger.
        iterations: Number of iterations logged before.
    """

    def __init__(self, folder: str, outputs: list[KVWriter], *, iterations: int) -> None:
        super().__init__(folder, outputs)
        self._before = iterations

    def record(self, key: str, value: Any, exclude: Any = None) -> None:
        """Record a value for the next row."""
        super().record(key, value + self._before if key == "time/iterations" else value, exclude)

    def dump(self, step: int = 0) -> None:
        """Write a row undisturbed, since an interruption could leave the queue of TensorBoard's thread locked."""
        with delayed_signals():
            super().dump(step)


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
        """Rewrite all rows with all column names."""
        self._names = list(dict.fromkeys(name for row in self._run.rows for name in row))
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, self._names)
        writer.writeheader()
        writer.writerows(self._run.rows)
        replace_file(self._path, stream.getvalue().encode())


class Board(TensorBoardOutputFormat):
    """TensorBoard's log, without the entries after the step from which a run is resumed."""

    def __init__(self, folder: Path, *, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(log_dir=str(folder), purge_step=step + 1)
        self._is_closed = False


def number(value: Any) -> Any:
    """Return a Python number or string that can be stored as JSON; None for a number that is not finite."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
