"""How much memory and time do many lanes take? ``python benchmarks/large_batches.py --out FILE`` measures 100,000.

Each environment runs in a process of its own. The table shows the size of a lane, the largest memory of the process
relative to that of all lanes, and the time of the restart and of a step of all lanes, on one core.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import fair_envs
from fair_envs.core import Lanes
from fair_envs.experiments.tables import markdown
from fair_envs.support.files import replace_file

STEPS = 5


def measured(env_id: str, lanes: int) -> dict[str, float]:
    """Return what many lanes of an environment take, in bytes and seconds."""
    rules = fair_envs.make_rules(env_id)
    space = rules.action_space(rules.params)
    space.seed(0)
    drawn = np.array([space.sample() for _ in range(64 * rules.agents(rules.params))])
    few = Lanes(rules, 2)  # compiles
    few.seed(0)
    few.restart()
    shape = (rules.agents(rules.params), *drawn.shape[1:])
    few.advance(np.resize(drawn, (2, *shape)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    batch = Lanes(rules, lanes)
    batch.seed(0)
    begin = time.perf_counter()
    batch.restart()
    started = time.perf_counter()
    actions = np.resize(drawn, (lanes, *shape))
    played = time.perf_counter()
    for _ in range(STEPS):
        batch.advance(actions)
    took = (time.perf_counter() - played) / STEPS
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = batch.records.nbytes / lanes
    return {
        "lane": size,
        "peak": 1024 * (after - before) / batch.records.nbytes,
        "restart": started - begin,
        "step": took,
    }


def main() -> None:
    """Measure every environment, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/large-batches.md"), help="File of the table.")
    parser.add_argument("--lanes", type=int, default=100_000, help="Number of lanes.")
    parser.add_argument("--only", help="Measure this environment in this process, and print JSON.")
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measured(given.only, given.lanes)))
        return
    rows = []
    for env_id in fair_envs.TABLE:
        command = [sys.executable, __file__, "--only", env_id, "--lanes", str(given.lanes)]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        rows.append(
            [
                env_id,
                f"{found['lane']:,.0f}",
                f"{found['lane'] * given.lanes / 2**20:,.0f}",
                f"{found['peak']:.2f}",
                f"{found['restart']:.2f}",
                f"{1e3 * found['step']:.0f}",
                f"{given.lanes / found['step']:,.0f}",
            ]
        )
        print(*rows[-1], flush=True)
    columns = ["environment", "bytes of a lane", "MiB of all", "peak, times that", "restart, s", "step, ms", "steps/s"]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    text = markdown(columns, rows)
    replace_file(given.out, f"{text}\n".encode())
    print(text)


if __name__ == "__main__":
    main()
