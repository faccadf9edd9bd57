"""Trains methods with several seeds on an environment and compares them, in one folder that can be continued.

Each training and each evaluation is a process of its own. Seeds come first: after the first round, each method has one
run. What comparisons use of an evaluation is stored after each training, so an interrupted study continues where it
stopped, and a run with a stored evaluation is not trained again.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from fair_envs.assessment.result import read, save_compact
from fair_envs.core import check_count
from fair_envs.experiments.comparing import Comparison, compare, used
from fair_envs.support.files import keep_json, read_json, replace_file
from fair_envs.support.progress import progress_bar
from fair_envs.support.stopping import stoppable
from fair_envs.tasks import environment_id, task_of


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is trained and compared; a folder holds one study.

    Attributes:
        env_id: The environment, also ``module:Id``.
        parameters: Its parameters; they override those of the task.
        steps: Steps of each training; None: as each method recommends.
        episodes: Test episodes of each run.
        imports: Modules that register the user's own environments and methods.

    Raises:
        ValueError: A number is below 1, the environment is unknown, or a parameter is outside its range.
        TypeError: A parameter is unknown.
    """

    env_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    steps: int | None = None
    episodes: int = 32
    imports: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the numbers, the environment and its parameters."""
        task_of(self.env_id).rules(**self.parameters)
        check_count("episodes", self.episodes)
        if self.steps is not None:
            check_count("steps", self.steps)

    def supported(self) -> list[str]:
        """Return the methods that train on the environment, and whose policies play by themselves."""
        from fair_envs.baselines import methods as registry

        rules, given = task_of(self.env_id).rules(**self.parameters), {"parameters": dict(self.parameters)}
        return [one.name for one in registry.methods() if one.plays(self.env_id, rules, given)]

    def words(self) -> list[str]:
        """Return the parameters as words of a command."""
        return [word for name, value in self.parameters.items() for word in ("--param", f"{name}={_text(value)}")]

    def check(self, run: Path, method: str, seed: int) -> None:
        """Raise ValueError if the run in a folder is not the training of a method with a seed in this study."""
        kept = read_json(run / "config.json", dict)
        kept["env_id"] = str(kept.get("env_id")).rpartition(":")[2]
        wanted = {"env_id": environment_id(self.env_id), "algorithm": method, "seed": seed}
        wanted |= {} if self.steps is None else {"steps": self.steps}
        parameters = json.loads(json.dumps(task_of(self.env_id).merged(self.parameters)))
        for name, value in {**wanted, "parameters": parameters}.items():
            if kept.get(name) != value:
                raise ValueError(
                    f"{run} must be a run of this study, with {name}={value!r}, got {kept.get(name)!r}; use another "
                    "folder for the runs"
                )


def _text(value: Any) -> str:
    """Return a parameter as `fair_envs.support.parameters.value_of` reads it."""
    return ",".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)


class Commands:
    """Runs `fair-envs` commands in processes with one thread, until it is stopped.

    Args:
        imports: Modules that the processes import first.
    """

    def __init__(self, imports: Sequence[str]) -> None:
        self._options = [word for name in imports for word in ("--import", name)]
        self._running: set[subprocess.Popen[str]] = set()
        self._lock, self._stopped = Lock(), False

    def run(self, *words: str) -> str:
        """Run a command; return why it failed, or ""."""
        with self._lock:
            if self._stopped:
                return "stopped"
            process = subprocess.Popen(
                [sys.executable, "-m", "fair_envs.cli", *self._options, *words, "--no-progress"],
                env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self._running.add(process)
        said, errors = process.communicate()
        with self._lock:
            self._running.discard(process)
        lines = (errors or said).strip().splitlines()
        why = lines[-1].removeprefix("fair-envs: ") if lines else f"exit status {process.returncode}"
        return why if process.returncode else ""

    def stop(self) -> None:
        """Stop the running commands in order, and start no others: a training saves a checkpoint first."""
        with self._lock:
            self._stopped = True
            for process in list(self._running):
                process.terminate()


@dataclass(frozen=True)
class Cell:
    """One training of a method and its evaluation.

    Attributes:
        study: The study.
        method: Name of the method.
        seed: The seed.
        folder: The folder of the study.
        runs: The folder of its runs.
        commands: Runs its commands.
    """

    study: Study
    method: str
    seed: int
    folder: Path
    runs: Path
    commands: Commands

    @property
    def name(self) -> str:
        """The cell's name."""
        return f"{self.method}-{self.seed}"

    @property
    def stored(self) -> Path:
        """The file of its evaluation."""
        return self.folder / "evaluations" / f"{self.name}.json"

    def complete(self) -> str:
        """Train or resume the run and evaluate it, unless its evaluation is stored; return why it failed, or ""."""
        if self._is_evaluated():
            return ""
        try:
            error = self._train() or self._evaluate()
        except (OSError, ValueError) as damage:  # of a run that cannot be read: the other cells continue
            error = str(damage)
        return f"{self.name}: {error}" if error else ""

    def _is_evaluated(self) -> bool:
        """Return whether an evaluation is stored that can be read."""
        try:
            return self.stored.exists() and bool(read(self.stored))
        except ValueError:
            return False

    def _train(self) -> str:
        run = self.runs / self.name
        if (run / "config.json").exists():
            self.study.check(run, self.method, self.seed)
            return self.commands.run("train", "--out", str(run), "--resume")  # does nothing if it is complete
        steps = [] if self.study.steps is None else ["--steps", str(self.study.steps)]
        words = ["--out", str(run), "--seed", str(self.seed), *steps, *self.study.words()]
        error = self.commands.run("train", self.method, self.study.env_id, *words)
        if not error:
            self.study.check(run, self.method, self.seed)  # not every parameter can be written as a text
        return error

    def _evaluate(self) -> str:
        with TemporaryDirectory() as place:
            found = Path(place) / "found"
            words = ["--policy", str(self.runs / self.name), "--episodes", str(self.study.episodes)]
            error = self.commands.run("evaluate", self.study.env_id, *words, "--out", str(found))
            if not error:
                of_run = [used(replace(one, policy=self.method)) for one in read(found / "evaluation.json")]
                save_compact(of_run, self.stored)
        return error


def run_study(
    study: Study,
    folder: Path | str,
    *,
    methods: Sequence[str] = (),
    seeds: int = 5,
    jobs: int = 1,
    runs: Path | str | None = None,
    progress: bool = False,
) -> Comparison:
    """Train and evaluate what is missing, compare what is stored, and save the comparison in the folder.

    Earlier results in the folder are compared too, also of methods and seeds that are not asked for this time. Cells
    that fail are listed in ``failed.json``; they run again the next time. Ctrl-C, SIGTERM and SIGHUP stop the trainings
    in order; the same call continues.

    Args:
        study: What is trained and compared.
        folder: A new folder, or that of the same study, which is continued.
        methods: Names of methods; empty: all that train on the environment.
        seeds: Number of trainings of each method.
        jobs: Trainings at a time.
        runs: Folder of the runs; None: ``runs`` in the folder.
        progress: Whether to show a progress bar.

    Raises:
        ValueError: A method is unknown or does not train on the environment with these parameters, a number is below 1,
            or the folder holds another study.
        RuntimeError: No cell has an evaluation.
        KeyboardInterrupt: A signal has stopped the study.
    """
    from fair_envs.baselines import methods as registry

    place = Path(folder)
    for name, number in (("seeds", seeds), ("jobs", jobs)):
        check_count(name, number)
    for name in methods:
        registry.method_for(name, study.env_id, {"parameters": dict(study.parameters)})
    _keep(study, place)
    names = list(dict.fromkeys(methods)) or study.supported()
    held, commands = place / "runs" if runs is None else Path(runs), Commands(study.imports)
    cells = [Cell(study, name, seed, place, held, commands) for seed in range(seeds) for name in names]
    failed = []
    with (
        stoppable(),
        ThreadPoolExecutor(jobs) as pool,
        progress_bar("studying", total=len(cells), shown=progress) as up,
    ):
        try:
            for error in pool.map(Cell.complete, cells):
                failed += [error] if error else []
                up()
        except KeyboardInterrupt:
            commands.stop()
            raise
    keep_json(place / FAILURES, failed)
    stored = sorted(map(str, (place / "evaluations").glob("*.json")))
    if not stored:
        raise RuntimeError(f"nothing to compare: {'; '.join(failed)}")
    found = compare(stored, progress=progress)
    found.save(place)
    return found


def _keep(study: Study, folder: Path) -> None:
    """Store what is studied in a new folder, or raise ValueError if the folder holds something else."""
    file, own = folder / "study.json", json.loads(json.dumps(asdict(study)))
    if file.exists():
        kept = read_json(file, dict)
        for name, value in own.items():
            if kept.get(name) != value and name != "imports":
                raise ValueError(
                    f"{name} must be {kept.get(name)!r}, as in the study in {folder}, got {value!r}; use another "
                    "folder for another study"
                )
        return
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"folder must be new, or hold a study, got {folder}, which holds other files")
    (folder / "evaluations").mkdir(parents=True, exist_ok=True)
    replace_file(file, (json.dumps(own, indent=1) + "\n").encode())


FAILURES = "failed.json"


def failures(folder: Path) -> list[Any]:
    """Return why cells of a study failed when it last ran."""
    file = folder / FAILURES
    return list(read_json(file, list)) if file.exists() else []


__all__ = ["Cell", "Commands", "Study", "failures", "run_study"]
