"""Train, kill, resume and evaluate every method on every environment: ``python benchmarks/methods.py --out FOLDER``.

Each cell trains for some seconds. It is killed with SIGKILL in the middle, resumed, stopped with SIGTERM at the end,
and evaluated. The result of a complete cell is stored, so an interrupted run continues where it stopped. The table
shows a result, or the number of the reason why the method does not train on the environment.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.progress import track

from fair_envs.baselines import methods
from fair_envs.registration import TABLE
from fair_envs.support.files import replace_file
from fair_envs.support.parameters import checked

POLICIES = ("random", "scripted")
MANY = "1000000000"  # steps; the time ends the training


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
    cells = [
        (name, env_id)
        for name in names
        for env_id in ids
        if not reasons.get(name, {}).get(env_id) and not result_file(given.out, name, env_id).exists()
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        run = pool.map(lambda cell: run_cell(cell[0], cell[1], given), cells)
        for _ in track(run, total=len(cells), description="cells"):
            write_tables(given.out, names, ids, reasons)
    write_tables(given.out, names, ids, reasons)
    print((given.out / "table.md").read_text())


def result_file(out: Path, method: str, env_id: str) -> Path:
    """Return the file of a cell's result."""
    return out / "cells" / f"{method}-{env_id}.json"


def run_cell(method: str, env_id: str, given: Any) -> None:
    """Train, kill, resume and evaluate a method on an environment, and store the result."""
    started = time.time()
    folder = given.out / "runs" / f"{method}-{env_id}"
    result: dict[str, Any] = {"method": method, "env_id": env_id}
    try:
        if method not in POLICIES:
            result |= train_twice(method, env_id, folder, seconds=given.seconds)
        result |= evaluate(method, env_id, folder, episodes=given.episodes)
    except subprocess.CalledProcessError as failed:
        result["error"] = (failed.stderr or failed.output or str(failed)).strip().splitlines()[-1]
    result["seconds"] = round(time.time() - started, 1)
    path = result_file(given.out, method, env_id)
    path.parent.mkdir(exist_ok=True)
    replace_file(path, (json.dumps(result, indent=1) + "\n").encode())


def command(*words: str) -> list[str]:
    """Return the words of a `fair-envs` command for a new process."""
    return [sys.executable, "-m", "fair_envs.cli", *words]


def environment() -> dict[str, str]:
    """Return the variables of a process with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


def train_twice(method: str, env_id: str, folder: Path, *, seconds: float) -> dict[str, Any]:
    """Train half of the time, kill the process, resume the run for the other half, and stop it."""
    train = command("train", method, env_id, "--out", str(folder), "--no-progress", "--total-timesteps", MANY)
    killed = for_seconds(train, seconds / 2, signal.SIGKILL, until=folder / "checkpoint.pt")
    before = steps_of(folder)
    for_seconds(command("train", "--out", str(folder), "--resume", "--no-progress"), seconds / 2, signal.SIGTERM)
    after = steps_of(folder)
    if after <= before:
        raise subprocess.CalledProcessError(1, "train", stderr=f"resumed at step {before} and learned nothing more")
    return {"killed_after_seconds": round(killed, 1), "steps_when_killed": before, "steps": after}


def for_seconds(words: Sequence[str], seconds: float, number: int, *, until: Path | None = None) -> float:
    """Run a command for some seconds, or longer until a file exists, and send it a signal; return the seconds."""
    started = time.time()
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None and (time.time() - started < seconds or (until is not None and not until.exists())):
            time.sleep(0.2)
        ended = run.poll()
        if ended is None:
            run.send_signal(number)
        _, errors = run.communicate(timeout=120)
    if ended is not None:
        raise subprocess.CalledProcessError(ended, words, stderr=errors or f"it ended with {ended} before its time")
    return time.time() - started


def steps_of(folder: Path) -> int:
    """Return the number of logged steps of a run."""
    from fair_envs.baselines.runs import Run

    return int(Run(folder).logged_steps())


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
    return {"evaluation": json.loads(run.stdout.splitlines()[-1])}


def results(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the stored results."""
    for path in sorted((out / "cells").glob("*.json")):
        yield json.loads(path.read_text())


def write_tables(out: Path, names: Sequence[str], ids: Sequence[str], reasons: Any) -> None:
    """Write ``table.md`` and ``table.csv``: a row for each method, a column for each environment."""
    found = {(one["method"], one["env_id"]): one for one in results(out)}
    numbers: dict[str, int] = {}
    lines = [
        "| method | " + " | ".join(env_id.removesuffix("-v0") for env_id in ids) + " |",
        "|---" * (len(ids) + 1) + "|",
    ]
    for name in names:
        row = [shown(found.get((name, env_id)), reasons.get(name, {}).get(env_id, ""), numbers) for env_id in ids]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    lines += ["", *(f"{number}: {reason}" for reason, number in numbers.items())]
    replace_file(out / "table.md", ("\n".join(lines) + "\n").encode())
    rows = [flat(one) for one in found.values()]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with (out / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def flat(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result's row of the CSV file."""
    own = {name: value for name, value in result.items() if not isinstance(value, (dict, list))}
    return {**own, "summary": summary(result)}


def summary(result: dict[str, Any]) -> str:
    """Return performance and gap of an evaluated cell as text, or its error."""
    if "error" in result:
        return f"failed: {result['error']}"
    found = {(row["section"], row["of"]): row["value"] for row in result["evaluation"]["rows"]}
    performance = next(value for (section, _), value in found.items() if section == "performance")
    gap = found.get(("gap", "largest"))
    return f"{performance:.3g}; gap {'undefined' if gap is None else format(gap, '.3g')}"


def shown(result: dict[str, Any] | None, reason: str, numbers: dict[str, int]) -> str:
    """Return a cell of the table: its result and seconds, the number of the reason against it, or nothing yet."""
    if reason:
        return f"({numbers.setdefault(reason, len(numbers) + 1)})"
    return "" if result is None else f"{summary(result)}; {result['seconds']:.0f} s"


if __name__ == "__main__":
    main()
