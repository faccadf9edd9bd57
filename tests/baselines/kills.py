"""Kills trainings at chosen moments, resumes them, and compares what they leave with an undisturbed training.

``python -m tests.baselines.kills`` prints the table of all algorithms and moments (see CONTRIBUTING.md). A moment is
the k-th call of a function, counted in the process that trains: it is the same in every run.
"""

import argparse
import importlib
import json
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from fair_envs.support.imports import imported
from tests.forks import Forks, forks
from tests.helpers import CLOCK, LITTLE

HARVEST = {
    "env_id": "FairHarvest-v0",
    "parameters": LITTLE,
    "lanes": 4,
    "n_steps": 5,
    "batch_size": 80,
    "n_epochs": 2,
    "net_arch": [8],
    "steps": 24 * 160,
}
PURSUIT = {
    "env_id": "FairPursuit-v0",
    "parameters": {"side": 3.0, "horizon": 20},
    "lanes": 2,
    "train_freq": 2,
    "speeds": [1.2, 0.4],
    "learning_starts": 60,
    "batch_size": 8,
    "buffer_size": 100,
    "actor": [8, 8],
    "critic": [8, 8],
    "n_steps": 3,
    "steps": 6 * 150,
}
PCN = {
    "env_id": "FairHiring-v0",
    "parameters": {"horizon": 10},
    "objectives": ["R", "SP"],
    "groups": ["gender"],
    "window": 20,
    "lanes": 2,
    "first_episodes": 20,
    "updates": 10,
    "test_episodes": 2,
    "steps": 700,
}
LENDING = {
    "env_id": "FairLending-v0",
    "parameters": {"horizon": 20, "feedback": "full"},
    "lanes": 4,
    "n_steps": 5,
    "batch_size": 10,
    "n_epochs": 2,
    "pi": [8],
    "vf": [8],
    "steps": 24 * 20,
}


class Training(NamedTuple):
    """A training to be killed.

    Attributes:
        settings: Import path of its record of settings.
        train: Import path of what trains.
        values: The settings.
    """

    settings: str
    train: str
    values: Mapping[str, Any]


_AGENTS = ("fair_envs.baselines.training:Training", "fair_envs.baselines.training:train")
_TEAM = ("fair_envs.baselines.team.training:TeamTraining", "fair_envs.baselines.team.training:train_team")
_LONG = ("fair_envs.baselines.ppo.long_term_training:LongTermTraining", "fair_envs.baselines:train_long_term")
_PCN = ("fair_envs.baselines.pcn.training:PCNTraining", "fair_envs.baselines.pcn.training:train_pcn")

ALGORITHMS: Mapping[str, Training] = {
    "ppo": Training(*_AGENTS, {**HARVEST, "algorithm": "ppo"}),
    "fair-ppo": Training(*_AGENTS, {**HARVEST, "algorithm": "fair-ppo", "beta": 0.5}),
    "pcn": Training(*_PCN, PCN),
    "f-ppo": Training(*_LONG, {**LENDING, "algorithm": "f-ppo"}),
    "ddpg": Training(*_TEAM, {**PURSUIT, "algorithm": "ddpg"}),
    "fair-e": Training(*_TEAM, {**PURSUIT, "algorithm": "fair-e", "network": "sets"}),
    "fair-er": Training(*_TEAM, {**PURSUIT, "algorithm": "fair-er", "form": "automatic"}),
}


class Moment(NamedTuple):
    """When a training is killed, and by which signal.

    Attributes:
        number: The signal.
        place: Module and name of the function that is called.
        share: At which share of its calls in the undisturbed training.
        when: What the training does then.
        file: Only calls that have a file of this name as their last argument; empty: all calls.
    """

    number: signal.Signals
    place: tuple[str, str]
    share: float
    when: str
    file: str = ""


_STEP, _UPDATE, _REPLACE = ("fair_envs.core", "Lanes.advance"), ("torch.optim", "Adam.step"), ("os", "replace")
MOMENTS: Mapping[str, Moment] = {
    "setup": Moment(signal.SIGKILL, _REPLACE, 0.0, "while the folder is set up", "versions.json"),
    "step": Moment(signal.SIGKILL, _STEP, 0.7, "in a step, after a checkpoint"),
    "late-step": Moment(signal.SIGTERM, _STEP, 0.9, "in a step, after a checkpoint"),
    "update": Moment(signal.SIGHUP, _UPDATE, 0.6, "in an update, after a checkpoint"),
    "write": Moment(signal.SIGKILL, _REPLACE, 0.7, "between metrics and a later checkpoint", "checkpoint.pt"),
}
AFTER_CHECKPOINT = [name for name, moment in MOMENTS.items() if "checkpoint" in moment.when]


# ------------------------------------------------------------------------------------------------ in the process


def train(algorithm: str, out: str, resume: str, moment: str, call: int) -> dict[str, int]:
    """Train in this process and send it a moment's signal at a call; return how often the moments' places were called.

    Args:
        algorithm: One of `ALGORITHMS`.
        out: The run's folder.
        resume: ``"resume"``, or anything else for a new run.
        moment: One of `MOMENTS`, or empty.
        call: The number of the call.
    """
    from fair_envs.baselines.team import training as team_training

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    counts = dict.fromkeys(MOMENTS, 0)
    with ExitStack() as patches:
        # A checkpoint of a team in each rollout, where it is one a minute otherwise.
        patches.enter_context(patch.multiple(team_training, KEPT_EVERY=0.0, KEPT_SHARE=math.inf))
        for name, one in MOMENTS.items():
            patches.enter_context(watched(name, one, counts, at=call if name == moment else -1))
        settings, begin, values = ALGORITHMS[algorithm]
        imported(begin)(imported(settings)(**values), out=out, resume=resume == "resume")
    return counts


def watched(name: str, moment: Moment, counts: dict[str, int], *, at: int) -> AbstractContextManager[Any]:
    """Return a context in which calls of a moment's place are counted; one of them sends this process its signal."""
    module, path = moment.place
    *owners, function = path.split(".")
    owner = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    original = getattr(owner, function)

    def counted(*arguments: Any, **keywords: Any) -> Any:
        if not moment.file or Path(arguments[-1]).name == moment.file:
            counts[name] += 1
            if counts[name] == at:
                os.kill(os.getpid(), moment.number)
        return original(*arguments, **keywords)

    return patch.object(owner, function, counted)


# ---------------------------------------------------------------------------------------------------- from outside


def processes() -> AbstractContextManager[Forks]:
    """Return processes that begin with what trainings import."""
    return forks(*sorted({place.split(":")[0] for training in ALGORITHMS.values() for place in training[:2]}))


def whole(algorithm: str, folder: Path) -> dict[str, int]:
    """Train without a disturbance, in this process; return how often the places of the moments were called."""
    return train(algorithm, str(folder), "new", "", -1)


def killed(algorithm: str, moment: str, folder: Path, counts: Mapping[str, int], *, within: Forks) -> None:
    """Kill a training in its own process at a moment; resume it here to its end, or begin it if it had no folder."""
    number = MOMENTS[moment].number
    call = max(1, ceil(MOMENTS[moment].share * counts[moment]))
    within.begin("tests.baselines.kills:train", algorithm, str(folder), "new", moment, call)
    code = within.wait()
    if code == 0 or (number == signal.SIGKILL and code != -number):
        raise RuntimeError(f"{algorithm} was not stopped by {number.name}: it ended with code {code}")
    if moment in AFTER_CHECKPOINT and not (folder / "checkpoint.pt").exists():
        raise RuntimeError(f"{algorithm} had no checkpoint when it was stopped")
    train(algorithm, str(folder), "resume" if folder.exists() else "new", "", -1)


def results(folder: Path) -> dict[str, bytes]:
    """Return what a run leaves: all files but those that hold the time of day, which come without it."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".pt", ".csv", ".json")}
    found.pop("metrics.csv")  # the rows of metrics.json
    rows = json.loads(found["metrics.json"])
    timeless = [{name: v for name, v in row.items() if name not in CLOCK} for row in rows]
    return {**found, "metrics.json": json.dumps(timeless).encode()}


def differences(algorithm: str, one: Path, other: Path) -> list[str]:
    """Return the names of the files in which two runs differ.

    Metrics of teams are left out: an interruption ends the row in which it comes, and begins another one.
    """
    first, second = results(one), results(other)
    if ALGORITHMS[algorithm].train == _TEAM[1]:
        first.pop("metrics.json"), second.pop("metrics.json")
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def main() -> int:
    """Print the table; return 1 if a resumed training differs from an undisturbed one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", action="append", choices=ALGORITHMS, help="Only this one; may be repeated.")
    parser.add_argument("--moment", action="append", choices=MOMENTS, help="Only this one; may be repeated.")
    given = parser.parse_args()
    failed = 0
    print("| algorithm | moment | signal | when | files compared | result | seconds |\n|---|---|---|---|---|---|---|")
    for algorithm in given.algorithm or ALGORITHMS:
        with tempfile.TemporaryDirectory() as place, processes() as within:
            counts = whole(algorithm, Path(place) / "whole")
            for k, moment in enumerate(given.moment or MOMENTS):
                begun, part = time.monotonic(), Path(place) / f"part-{k}"
                killed(algorithm, moment, part, counts, within=within)
                differing = differences(algorithm, Path(place) / "whole", part)
                failed += bool(differing)
                verdict = f"differs in {', '.join(differing)}" if differing else "identical bytes"
                seconds = time.monotonic() - begun
                told = (
                    algorithm,
                    moment,
                    MOMENTS[moment].number.name,
                    MOMENTS[moment].when,
                    len(results(part)),
                    verdict,
                )
                print(f"| {' | '.join(map(str, told))} | {seconds:.0f} |", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
