"""Training loop that writes a run's folder, for learners that are not based on Stable-Baselines3."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch as th
from stable_baselines3.common.logger import Logger

from fair_envs.baselines.runs import Run, serialized
from fair_envs.baselines.settings import plain_defaults
from fair_envs.baselines.training import Settings, isolated_random_state, load_run
from fair_envs.support.progress import progress_bar
from fair_envs.support.stopping import stoppable


class State(Protocol):
    """State of a learner, which does not change while the learner continues."""

    def state(self) -> Mapping[str, Any]:
        """Return the state as tensors and plain data."""


class Learner(Protocol):
    """A learner that can be interrupted between two iterations."""

    num_timesteps: int

    def snapshot(self) -> State:
        """Return the current state."""

    def restore(self, state: Mapping[str, Any]) -> object:
        """Restore a state."""


L = TypeVar("L", bound=Learner)
S = TypeVar("S", bound=Settings)


def train_learner(
    settings: Settings,
    make: Callable[[], L],
    iterate: Callable[[L], Mapping[str, float]],
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    kept_every: int = 20,
    after: Callable[[L], object] = lambda learner: None,
    finish: Callable[[L, Path], object] = lambda learner, folder: None,
) -> L:
    """Train a learner for the number of steps in its settings, and return it.

    With ``out``, the training writes ``config.json``, ``versions.json``, ``metrics.csv`` and ``metrics.json`` (one row
    for each iteration), ``tensorboard/`` and ``checkpoint.pt`` to the folder. An interrupted training leaves a
    checkpoint of the end of the last iteration. A resumed training gives the same result as an uninterrupted one.

    Args:
        settings: Settings of the training.
        make: Creates the untrained learner.
        iterate: Trains the learner for one iteration, and returns the values to log.
        out: A new folder, or None.
        resume: Whether to resume the training in ``out``.
        progress: Whether to show a progress bar with the remaining time.
        kept_every: Iterations between checkpoints.
        after: Called after every iteration.
        finish: Called at the end, with the learner and the folder.

    Raises:
        FileExistsError: ``out`` exists and ``resume`` is False.
        FileNotFoundError: There is no run to resume.
        ValueError: The run to resume has other settings.
    """
    if out is None:
        if resume:
            raise ValueError("out must name the run to resume, got None")
        with isolated_random_state(settings.threads):
            return _learned(make(), settings, iterate, progress=progress, each=lambda learner, row: after(learner))
    begun = Run.begun(
        Path(out),
        settings.as_dict(),
        make,
        resume=resume,
        restore=lambda learner, state: learner.restore(state),
        defaults=plain_defaults(settings),
    )
    with stoppable(), isolated_random_state(settings.threads), begun as (run, learner):
        with run.log(learner) as logger:
            check_plain(learner.snapshot().state(), "state()")  # before the first iteration
            keeper = _Keeper(run, learner, logger, every=kept_every)

            def each(learner: L, row: Mapping[str, float]) -> None:
                keeper.keep(learner, row)
                after(learner)

            try:
                _learned(learner, settings, iterate, progress=progress, each=each)
            finally:
                keeper.write()
        finish(learner, run.folder)
        return learner


PLAIN = (type(None), bool, int, float, complex, str, bytes)


def check_plain(state: Any, name: str) -> None:
    """Raise ValueError if a state does not contain only tensors and plain data, which a checkpoint can be read from.

    Args:
        state: The state, or an entry of it.
        name: Its name, for the message.
    """
    if isinstance(state, th.Tensor) or type(state) in PLAIN:
        return
    if isinstance(state, Mapping):
        for key, value in state.items():
            check_plain(value, f"{name}[{key!r}]")
    elif isinstance(state, (list, tuple, set)):
        for place, value in enumerate(state):
            check_plain(value, f"{name}[{place}]")
    else:
        kind = type(state)
        instead = "torch.as_tensor()" if isinstance(state, np.ndarray) else "a Python number, such as float()"
        raise ValueError(
            f"{name} must be a tensor, or a number, a text, a list or a dictionary of Python, got "
            f"{kind.__module__}.{kind.__qualname__}; use {instead}"
        )


def load_learner(run: str | Path, kind: type[S], make: Callable[[S], L]) -> tuple[L, S]:
    """Return the learner of a run's last checkpoint, for evaluation, and its settings.

    Raises:
        FileNotFoundError: The folder contains no run.
        ValueError: The run is damaged, or has another kind of settings.
    """
    return load_run(run, kind, make, lambda learner, state: learner.restore(state))


def _learned(
    learner: L,
    settings: Settings,
    iterate: Callable[[L], Mapping[str, float]],
    *,
    progress: bool,
    each: Callable[[L, Mapping[str, float]], object],
) -> L:
    """Iterate until the number of steps is reached."""
    done, total = min(learner.num_timesteps, settings.steps), settings.steps
    with progress_bar(settings.algorithm, total=total, done=done, unit="steps", shown=progress) as advance:
        while learner.num_timesteps < total:
            before = learner.num_timesteps
            each(learner, iterate(learner))
            advance(learner.num_timesteps - before)
    return learner


class _Keeper:
    """Logs each iteration, keeps the state at its end, and writes a checkpoint periodically."""

    def __init__(self, run: Run, learner: Learner, logger: Logger, *, every: int) -> None:
        self._run, self._logger, self._every, self._iterations = run, logger, every, len(run.rows)
        self._held: tuple[State, Mapping[str, Any]] | None = None
        if not run.has_checkpoint:
            self._hold(learner)

    def keep(self, learner: Learner, row: Mapping[str, float]) -> None:
        """Log an iteration."""
        for name, value in row.items():
            self._logger.record(name, value)
        self._logger.dump(learner.num_timesteps)
        self._hold(learner)
        self._iterations += 1
        if self._iterations % self._every == 0:
            self.write()

    def _hold(self, learner: Learner) -> None:
        self._held = learner.snapshot(), self._run.place()

    def write(self) -> None:
        """Write a checkpoint from which the training can be resumed."""
        if self._held is not None:
            snapshot, place = self._held
            state = snapshot.state()
            check_plain(state, "state()")
            self._run.write(serialized({**state, **place, "unlogged": []}))
