"""Train methods with several seeds on an environment and compare them: ``python benchmarks/comparison.py ID``.

Every run is resumed where it stopped, so an interrupted comparison continues. Seeds come first: after the first round,
each method has one run. The result is that of ``fair-envs compare`` on all complete runs.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.progress import track

from fair_envs.baselines import methods
from fair_envs.baselines.runs import Run
from fair_envs.tasks import task_of


def main() -> None:
    """Train what is missing, and compare what is complete."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("id", help="Id of the environment.")
    parser.add_argument("--out", type=Path, default=Path("runs/comparison"), help="Folder of the runs.")
    parser.add_argument("--seeds", type=int, default=5, help="Number of seeds.")
    parser.add_argument("--episodes", type=int, default=32, help="Test episodes of each run.")
    parser.add_argument("--jobs", type=int, default=1, help="Trainings at a time.")
    parser.add_argument("--method", action="append", help="Only this method; may be repeated. [all]")
    given = parser.parse_args()
    rules = task_of(given.id).rules()
    names = given.method or [one.name for one in methods.methods() if not one.reason(given.id, rules, {})]
    cells = [(name, seed) for seed in range(given.seeds) for name in names]
    folder: Path = given.out / given.id
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        trained = pool.map(lambda cell: train(given.id, cell[0], cell[1], folder / f"{cell[0]}-{cell[1]}"), cells)
        failed = [error for error in track(trained, total=len(cells), description=given.id) if error]
    (folder / "failed.json").write_text(json.dumps(failed, indent=1) + "\n")
    complete = [str(run) for run in runs(folder, names) if is_complete(run)]
    words = ["compare", *complete, "--episodes", str(given.episodes), "--out", str(numbered(folder))]
    subprocess.run([sys.executable, "-m", "fair_envs.cli", *words], env=environment(), check=True)


def train(env_id: str, method: str, seed: int, run: Path) -> str:
    """Train or resume a run; return why it failed, or ""."""
    if is_complete(run):
        return ""
    begin = ["train", method, env_id, "--out", str(run), "--seed", str(seed)]
    words = ["train", "--out", str(run), "--resume"] if (run / "config.json").exists() else begin
    done = subprocess.run(
        [sys.executable, "-m", "fair_envs.cli", *words, "--no-progress"],
        env=environment(),
        capture_output=True,
        text=True,
    )
    return "" if done.returncode == 0 else f"{run.name}: {(done.stderr or done.stdout).strip().splitlines()[-1]}"


def is_complete(run: Path) -> bool:
    """Return whether a run has all its steps."""
    if not (run / "config.json").exists():
        return False
    kept = Run(run)
    return bool(kept.logged_steps() >= kept.config().get("steps", 0))


def runs(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the folders of the methods' runs."""
    for name in names:
        yield from sorted(folder.glob(f"{name}-[0-9]*"))


def numbered(folder: Path) -> Path:
    """Return the next free folder for a comparison."""
    return next(path for k in range(1, 1_000_000) if not (path := folder / f"compared-{k}").exists())


def environment() -> dict[str, str]:
    """Return the variables of a process with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


if __name__ == "__main__":
    main()
