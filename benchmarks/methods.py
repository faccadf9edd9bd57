"""Train, kill, resume and evaluate every method on every environment: ``python benchmarks/methods.py --out FOLDER``.

Each cell trains for some seconds. It is killed with SIGKILL in the middle, resumed, stopped with SIGTERM at the end,
and evaluated. Results are stored in ``table.csv`` after each cell, so an interrupted run continues where it stopped;
failed cells run again. ``table.md`` shows the results, or the number of the reason why a method does not train on an
environment.
"""

import argparse
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rich.progress import track

from fair_envs.baselines import methods
from fair_envs.registration import TABLE
from fair_envs.support.files import replace_file
from fair_envs.support.parameters import checked

POLICIES = ("random", "scripted")
MANY = "1000000000"  # steps; the time ends the training
COLUMNS = (
    "method",
    "env_id",
    "performance",
    "gap",
    "noise_floor",
    "steps_when_killed",
    "steps",
    "killed_after_seconds",
    "seconds",
    "error",
)


def main() -> None:
    """Run the cells that have no result yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/methods"), help="Folder of the results.")
    parser.add_argument("--seconds", type=float, default=60.0, help="Seconds of training for each cell.")
    parser.add_argument("--episodes", type=int, default=4, help="Episodes of each evaluation.")
    parser.add_argument("--jobs", type=int, default=1, help="Cells at a time.")
    parser.add_argument("--method", action="append", help="Only this method; may be repeated.")
    parser.add_argument("--id", action="append", help="Only this environment; may be repeated.")
    given = parser.parse_args()
    checked("seconds", given.seconds, float)
    given.out.mkdir(parents=True, exist_ok=True)
    reasons = {method.name: found for method, found in methods.supported()}
    names, ids = given.method or [*POLICIES, *reasons], given.id or list(TABLE)
    stored = read_results(given.out)
    done = {cell for cell, result in stored.items() if not result.get("error")}
    cells = [
        (name, env_id)
        for name in names
        for env_id in ids
        if not reasons.get(name, {}).get(env_id) and (name, env_id) not in done
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        work = [pool.submit(run_cell, *cell, given) for cell in cells]
        for one in track(as_completed(work), total=len(work), description="cells"):
            result = one.result()
            stored[result["method"], result["env_id"]] = result
            write_tables(given.out, stored, [*POLICIES, *reasons], list(TABLE), reasons)
    write_tables(given.out, stored, [*POLICIES, *reasons], list(TABLE), reasons)
    print((given.out / "table.md").read_text())


def run_cell(method: str, env_id: str, given: Any) -> dict[str, Any]:
    """Train, kill, resume and evaluate a method on an environment; return the result."""
    started = time.time()
    folder = given.out / "runs" / f"{method}-{env_id}"
    result: dict[str, Any] = {"method": method, "env_id": env_id}
    try:
        if method not in POLICIES:
            shutil.rmtree(folder, ignore_errors=True)  # of a cell that failed or was interrupted
            result |= train_twice(method, env_id, folder, seconds=given.seconds)
        result |= evaluate(method, env_id, folder, episodes=given.episodes)
    except subprocess.CalledProcessError as failed:
        result["error"] = (failed.stderr or failed.output or str(failed)).strip().splitlines()[-1]
    return {**result, "seconds": round(time.time() - started, 1)}


def command(*words: str) -> list[str]:
    """Return the words of a `fair-envs` command for a new process."""
    return [sys.executable, "-m", "fair_envs.cli", *words]


def environment() -> dict[str, str]:
    """Return the variables of a process with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


def train_twice(method: str, env_id: str, folder: Path, *, seconds: float) -> dict[str, Any]:
    """Train half of the time, kill the process, resume the run for the other half, and stop it.

    The process is killed later if it has not yet stored any learning by then.
    """
    started = time.time()
    train = command("train", method, env_id, "--out", str(folder), "--no-progress", "--total-timesteps", MANY)
    stored = Stored(method, folder)
    for_seconds(train, seconds / 2, signal.SIGKILL, ready=lambda: stored.steps() > 0)
    killed, before = time.time() - started, stored.steps()
    for_seconds(command("train", "--out", str(folder), "--resume", "--no-progress"), seconds / 2, signal.SIGTERM)
    after = stored.steps()
    if after <= before:
        raise subprocess.CalledProcessError(1, "train", stderr=f"resumed at step {before} and learned nothing more")
    return {"killed_after_seconds": round(killed, 1), "steps_when_killed": before, "steps": after}


class Stored:
    """The steps in the last checkpoint of a run, which is read again if the file has changed.

    Args:
        method: The method.
        folder: The run's folder.
    """

    def __init__(self, method: str, folder: Path) -> None:
        self._method, self._folder = methods.named(method), folder
        self._seen, self._steps = 0.0, 0

    def steps(self) -> int:
        """Return the number of steps; 0 without a checkpoint."""
        file = self._folder / "checkpoint.pt"
        if file.exists() and file.stat().st_mtime > self._seen:
            self._seen = file.stat().st_mtime
            self._steps = int(self._method.load(self._folder)[0].num_timesteps)
        return self._steps


def for_seconds(words: Sequence[str], seconds: float, number: int, *, ready: Callable[[], bool] = lambda: True) -> None:
    """Run a command for some seconds, or longer until it is ready, and send it a signal."""
    started = time.time()
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None and (time.time() - started < seconds or not ready()):
            time.sleep(0.5)
        ended = run.poll()
        if ended is None:
            run.send_signal(number)
        _, errors = run.communicate(timeout=120)
    if ended is not None:
        raise subprocess.CalledProcessError(ended, words, stderr=errors or f"it ended with {ended} before its time")


def evaluate(method: str, env_id: str, folder: Path, *, episodes: int) -> dict[str, Any]:
    """Return the evaluation of a run, or of a policy without training."""
    policy: Any = folder
    if method == "random":
        policy = method
    elif method == "scripted":
        from fair_envs.tasks import task_of

        policy = task_of(env_id).scripted[0]
    code = (
        "import sys, json, fair_envs; env_id, policy, episodes = sys.argv[1:]; "
        "print(json.dumps(fair_envs.evaluate(env_id, policy, episodes=int(episodes)).as_dict()))"
    )
    words = [sys.executable, "-c", code, env_id, str(policy), str(episodes)]
    run = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    found = {(row["section"], row["of"]): row for row in json.loads(run.stdout.splitlines()[-1])["rows"]}
    performance = next(row["value"] for (section, _), row in found.items() if section == "performance")
    gap = found.get(("gap", "largest"), {})
    numbers = {"performance": performance, "gap": gap.get("value"), "noise_floor": gap.get("noise_floor")}
    return {name: "" if value is None else format(value, ".4g") for name, value in numbers.items()}


Results = dict[tuple[str, str], dict[str, Any]]


def read_results(out: Path) -> Results:
    """Return the stored results by method and environment."""
    if not (out / "table.csv").exists():
        return {}
    with (out / "table.csv").open(newline="") as file:
        return {(row["method"], row["env_id"]): row for row in csv.DictReader(file)}


def write_tables(out: Path, stored: Results, names: Sequence[str], ids: Sequence[str], reasons: Any) -> None:
    """Write ``table.md`` and ``table.csv``: a row for each method, a column for each environment."""
    numbers: dict[str, int] = {}
    lines = [
        "| method | " + " | ".join(env_id.removesuffix("-v0") for env_id in ids) + " |",
        "|---" * (len(ids) + 1) + "|",
    ]
    for name in names:
        row = [shown(stored.get((name, env_id)), reasons.get(name, {}).get(env_id, ""), numbers) for env_id in ids]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    lines += ["", *(f"({number}) {reason}" for reason, number in numbers.items())]
    replace_file(out / "table.md", ("\n".join(lines) + "\n").encode())
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(stored[cell] for cell in sorted(stored))
    replace_file(out / "table.csv", text.getvalue().encode())


def shown(result: dict[str, Any] | None, reason: str, numbers: dict[str, int]) -> str:
    """Return a cell of the table: its result and seconds, the number of the reason against it, or nothing yet."""
    if reason:
        return f"({numbers.setdefault(reason, len(numbers) + 1)})"
    if result is None:
        return ""
    if result.get("error"):
        return f"failed: {result['error']}"
    gap = f"{result['gap']} ~{result['noise_floor']}" if result["gap"] else "undefined"
    return f"{result['performance']}; gap {gap}; {float(result['seconds']):.0f} s"


if __name__ == "__main__":
    main()
