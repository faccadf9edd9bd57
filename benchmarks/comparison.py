"""Train methods with several seeds on an environment and compare them: ``python benchmarks/comparison.py ID``.

Every run is resumed where it stopped, so an interrupted comparison continues. Seeds come first: after the first round,
each method has one run. Each run is evaluated after its training, and what comparisons use of the evaluation is stored
in ``OUT/ID/evaluations``. A run with a stored evaluation is not trained again. ``OUT/ID`` gets the table and
the plots of ``fair-envs compare`` on the stored evaluations.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.progress import track

from fair_envs.assessment.result import read, save_compact
from fair_envs.baselines import methods
from fair_envs.baselines.runs import Run
from fair_envs.experiments.comparing import compare, used
from fair_envs.tasks import task_of


def main(words: Sequence[str] | None = None) -> None:
    """Train and evaluate what is missing, and compare what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("id", help="Id of the environment.")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="Folder of the results.")
    parser.add_argument("--runs", type=Path, default=Path("runs/comparison"), help="Folder of the runs.")
    parser.add_argument("--seeds", type=int, default=5, help="Number of seeds.")
    parser.add_argument("--episodes", type=int, default=32, help="Test episodes of each run.")
    parser.add_argument("--jobs", type=int, default=1, help="Trainings at a time.")
    parser.add_argument("--method", action="append", help="Only this method; may be repeated. [all]")
    given = parser.parse_args(words)
    names = given.method or supported(given.id)
    cells = [(name, seed) for seed in range(given.seeds) for name in names]
    folder: Path = given.out / given.id
    (folder / "evaluations").mkdir(parents=True, exist_ok=True)
    work = partial(trained_and_evaluated, given.id, folder=folder, runs=given.runs / given.id, episodes=given.episodes)
    with ThreadPoolExecutor(given.jobs) as pool:
        ended = pool.map(lambda cell: work(*cell), cells)
        failed = [error for error in track(ended, total=len(cells), description=given.id) if error]
    (folder / "failed.json").write_text(json.dumps(failed, indent=1) + "\n")
    stored = [str(file) for name, seed in cells if (file := stored_at(folder, name, seed)).exists()]
    if not stored:
        sys.exit("nothing to compare: " + ("; ".join(failed) or "there are no methods"))
    found = compare(sorted(stored), progress=True)
    found.save(folder)
    print(found)


def supported(env_id: str) -> list[str]:
    """Return the methods that train on an environment, and whose policies play by themselves."""
    rules = task_of(env_id).rules()
    return [one.name for one in methods.methods() if one.policy is not None and not one.reason(env_id, rules, {})]


def stored_at(folder: Path, method: str, seed: int) -> Path:
    """Return the file of a cell's evaluation."""
    return folder / "evaluations" / f"{method}-{seed}.json"


def trained_and_evaluated(env_id: str, method: str, seed: int, *, folder: Path, runs: Path, episodes: int) -> str:
    """Train or resume a run and evaluate it, unless its evaluation is stored; return why it failed, or ""."""
    file, run = stored_at(folder, method, seed), runs / f"{method}-{seed}"
    if file.exists():
        return ""
    try:
        error = train(env_id, method, seed, run) or evaluate(env_id, method, run, file, episodes=episodes)
    except (OSError, ValueError) as damage:  # of a run that cannot be read: the other cells continue
        error = str(damage)
    return f"{run.name}: {error}" if error else ""


def train(env_id: str, method: str, seed: int, run: Path) -> str:
    """Train or resume a run; return why it failed, or ""."""
    if is_complete(run):
        return ""
    begin = ["train", method, env_id, "--out", str(run), "--seed", str(seed)]
    words = ["train", "--out", str(run), "--resume"] if (run / "config.json").exists() else begin
    return command(*words, "--no-progress")


def evaluate(env_id: str, method: str, run: Path, file: Path, *, episodes: int) -> str:
    """Evaluate a run and store its evaluation; return why it failed, or ""."""
    with TemporaryDirectory() as place:
        found = Path(place) / "found"
        words = ["evaluate", env_id, "--policy", str(run), "--episodes", str(episodes), "--out", str(found)]
        error = command(*words, "--no-progress")
        if not error:
            save_compact([used(replace(one, policy=method)) for one in read(found / "evaluation.json")], file)
    return error


def command(*words: str) -> str:
    """Run the command line; return the last line of its output if it failed, otherwise ""."""
    done = subprocess.run(
        [sys.executable, "-m", "fair_envs.cli", *words], env=environment(), capture_output=True, text=True
    )
    lines = (done.stderr or done.stdout or "").strip().splitlines()
    return (lines[-1] if lines else f"exit status {done.returncode}") if done.returncode else ""


def is_complete(run: Path) -> bool:
    """Return whether a run has all its steps."""
    if not (run / "config.json").exists():
        return False
    kept = Run(run)
    return bool(kept.logged_steps() >= kept.config().get("steps", 0))


def environment() -> dict[str, str]:
    """Return the variables of a process with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


if __name__ == "__main__":
    main()
