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
from typing import Any

from fair_envs.assessment.result import read, save_compact
from fair_envs.core import check_count
from fair_envs.experiments.comparing import Comparison, compare, used
from fair_envs.support.files import read_json, replace_file
from fair_envs.support.progress import progress_bar
from fair_envs.tasks import task_of


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is trained and compared; a folder holds one study.

    Attributes:
        env_id: The environment, also ``module:Id``.
        parameters: Its parameters, as texts by name; they override those of the task.
        steps: Steps of each training; None: as each method recommends.
        episodes: Test episodes of each run.
        imports: Modules that register the user's own environments and methods.

    Raises:
        ValueError: A number is below 1, or the environment is unknown.
    """

    env_id: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    steps: int | None = None
    episodes: int = 32
    imports: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the numbers and the environment."""
        task_of(self.env_id)
        check_count("episodes", self.episodes)
        if self.steps is not None:
            check_count("steps", self.steps)

    def supported(self) -> list[str]:
        """Return the methods that train on the environment, and whose policies play by themselves."""
        from fair_envs.baselines import methods as registry

        rules = task_of(self.env_id).rules()
        return [
            one.name for one in registry.methods() if one.policy is not None and not one.reason(self.env_id, rules, {})
        ]

    def words(self) -> list[str]:
        """Return the parameters as words of a command."""
        return [word for name, value in self.parameters.items() for word in ("--param", f"{name}={value}")]

    def command(self, *words: str) -> str:
        """Run a `fair-envs` command in a process with one thread; return why it failed, or ""."""
        imports = [word for name in self.imports for word in ("--import", name)]
        done = subprocess.run(
            [sys.executable, "-m", "fair_envs.cli", *imports, *words, "--no-progress"],
            env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
            capture_output=True,
            text=True,
        )
        lines = (done.stderr or done.stdout or "").strip().splitlines()
        return (lines[-1] if lines else f"exit status {done.returncode}") if done.returncode else ""


@dataclass(frozen=True)
class Cell:
    """One training of a method and its evaluation.

    Attributes:
        study: The study.
        method: Name of the method.
        seed: The seed.
        folder: The folder of the study.
        runs: The folder of its runs.
    """

    study: Study
    method: str
    seed: int
    folder: Path
    runs: Path

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
        if self.stored.exists():
            return ""
        try:
            error = self._train() or self._evaluate()
        except (OSError, ValueError) as damage:  # of a run that cannot be read: the other cells continue
            error = str(damage)
        return f"{self.name}: {error}" if error else ""

    def _train(self) -> str:
        from fair_envs.baselines.runs import Run

        run = self.runs / self.name
        if (run / "config.json").exists():
            kept = Run(run)
            finished = kept.logged_steps() >= kept.config().get("steps", 0)
            return "" if finished else self.study.command("train", "--out", str(run), "--resume")
        steps = [] if self.study.steps is None else ["--steps", str(self.study.steps)]
        words = ["--out", str(run), "--seed", str(self.seed), *steps, *self.study.words()]
        return self.study.command("train", self.method, self.study.env_id, *words)

    def _evaluate(self) -> str:
        with TemporaryDirectory() as place:
            found = Path(place) / "found"
            words = ["--policy", str(self.runs / self.name), "--episodes", str(self.study.episodes)]
            error = self.study.command("evaluate", self.study.env_id, *words, "--out", str(found))
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

    Cells that fail are listed in ``failed.json``; they run again the next time.

    Args:
        study: What is trained and compared.
        folder: A new folder, or that of the same study, which is continued.
        methods: Names of methods; empty: all that train on the environment.
        seeds: Number of trainings of each method.
        jobs: Trainings at a time.
        runs: Folder of the runs; None: ``runs`` in the folder.
        progress: Whether to show a progress bar.

    Raises:
        ValueError: A method is unknown or does not train on the environment, a number is below 1, or the folder holds
            another study.
        RuntimeError: No cell has an evaluation.
    """
    from fair_envs.baselines import methods as registry

    place = Path(folder)
    for name, number in (("seeds", seeds), ("jobs", jobs)):
        check_count(name, number)
    for name in methods:
        registry.method_for(name, study.env_id, {})
    _keep(study, place)
    names = list(dict.fromkeys(methods)) or study.supported()
    held = place / "runs" if runs is None else Path(runs)
    cells = [Cell(study, name, seed, place, held) for seed in range(seeds) for name in names]
    failed = []
    with ThreadPoolExecutor(jobs) as pool, progress_bar("studying", total=len(cells), shown=progress) as advanced:
        for error in pool.map(Cell.complete, cells):
            failed += [error] if error else []
            advanced()
    replace_file(place / "failed.json", (json.dumps(failed, indent=1) + "\n").encode())
    stored = sorted(str(cell.stored) for cell in cells if cell.stored.exists())
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


def failures(folder: Path) -> list[Any]:
    """Return why cells of a study failed when it last ran."""
    return list(read_json(folder / "failed.json", list))


__all__ = ["Cell", "Study", "failures", "run_study"]
