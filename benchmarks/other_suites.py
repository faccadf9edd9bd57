"""How fast are environments of other suites? ``python benchmarks/other_suites.py SUITE=PYTHON:CHECKOUT ...`` shows it.

``PYTHON`` is an interpreter in which the suite's dependencies are installed, and ``CHECKOUT`` a copy of its repository,
which is the working folder: both as the suite's own documentation says. Every environment plays random actions in a
process of its own; the processes of a row take turns. The measure is the CPU time of the process, which depends little
on other work. docs/other-suites.md has the results.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fair_envs.benchmark.loads import LANES
from fair_envs.benchmark.rows import child_environment
from fair_envs.experiments.tables import markdown
from fair_envs.support.aliases import Floats

# A process runs BEGIN, a program of a row, and END. The program defines `env` and `actions`, how many there are. It may
# define `players`, if a step takes several actions, and another `play`, which returns whether the episode is over.
BEGIN = """
import os, sys, time
import numpy as np
answers, sys.stdout = sys.stdout, sys.stderr  # some suites print
players = None
def play(action):
    return any(env.step(action)[2:-1])  # done, or terminated and truncated
"""
END = """
drawn = np.random.default_rng(0).integers(0, actions, (64, players) if players else 64)
drawn = list(drawn) if players else drawn.tolist()
env.reset()
for line in sys.stdin:
    begin = time.process_time()
    for k in range(int(line)):
        if play(drawn[k % 64]):
            env.reset()
    print(time.process_time() - begin, file=answers, flush=True)
"""

SINGLE = """
import gymnasium, fair_envs
env, actions = gymnasium.make({}), 2
"""
TOGETHER = """
import gymnasium, fair_envs
env, actions, players = gymnasium.make_vec({}, num_envs=LANES), 2, LANES
def play(action):
    env.step(action)  # it restarts lanes itself
""".replace("LANES", str(LANES))
PARITY = """
from fair_envs.metrics.history import SlidingWindow
from fair_envs.wrappers import FairnessObjectives
env = FairnessObjectives(env, ("SP",), SlidingWindow(1000), groups="gender")
"""
OWN_LENDING = '"FairLending-v0", profile="ml-fairness-gym"'
OWN_HIRING = '"FairHiring-v0", profile="authors", team_size=100, horizon=1000'

LENDING = """
sys.path.insert(0, os.getcwd())
from environments import lending
env, actions = lending.DelayedImpactEnv(), 2
env.seed(0)
"""
HIRING = """
sys.path[:0] = [os.getcwd(), os.path.abspath("scenario")]
os.chdir("scenario")  # its paths are relative to this folder
from scenario.create_fair_env import create_fairness_framework_env, create_job_env, fMDP_parser
words = "--objectives R:SP --compute_objectives --team_size 100 --episode_length 1000 --window 1000 --env job"
given = fMDP_parser.parse_args(words.split())
given.steps, given.log_dir = 1e5, "."
env, actions = create_job_env(given)[0], 2
"""
HIRING_PARITY = """
env = create_fairness_framework_env(given)[0]
def play(action):
    return env.step(action, [0.5, 0.5])[2]
"""
OBJECTIVES = """
import mo_gymnasium
env = mo_gymnasium.make({!r})
actions = int(env.action_space.n)
"""
HARVEST = """
import types
package = types.ModuleType("meltingpot")  # without its trained players, which need TensorFlow and a download
package.__path__ = [os.path.abspath("meltingpot")]
sys.modules["meltingpot"] = package
from meltingpot import substrate
roles = substrate.get_config("allelopathic_harvest__open").default_player_roles
env = substrate.build("allelopathic_harvest__open", roles=roles)
actions, players = env.action_spec()[0].num_values, len(roles)
def play(action):
    return env.step(action).last()
"""


class Row(NamedTuple):
    """An environment of another suite, and this package's with the same rules, if it has one."""

    suite: str
    what: str
    other: str  # the program of the other suite
    single: str | None = None  # this package's, of one episode
    together: str | None = None  # this package's, of `LANES` episodes at once


ROWS = (
    Row("ml-fairness-gym", "`DelayedImpactEnv`", LENDING, SINGLE.format(OWN_LENDING), TOGETHER.format(OWN_LENDING)),
    Row("FAReL", "`JobHiringEnv`", HIRING, SINGLE.format(OWN_HIRING), TOGETHER.format(OWN_HIRING)),
    Row(
        "FAReL",
        "the same, with statistical parity of the last 1000 decisions in each reward",
        HIRING + HIRING_PARITY,
        SINGLE.format(OWN_HIRING) + PARITY,
        TOGETHER.format(OWN_HIRING) + PARITY,
    ),
    *(Row("MO-Gymnasium", f"`{name}`", OBJECTIVES.format(name)) for name in ("deep-sea-treasure-v0", "minecart-v0")),
    Row("Melting Pot", "`allelopathic_harvest__open`, 16 players and their images", HARVEST),
)
SUITES = tuple(dict.fromkeys(row.suite for row in ROWS))
COLUMNS = ("suite", "environment", "steps/s", "fair-envs, steps/s", "times as many", f"with {LANES} episodes at once")


class Player:
    """A process that plays an environment.

    Args:
        program: Defines the environment, see `BEGIN`.
        python: Interpreter of another suite; this one by default.
        folder: Working folder of another suite.
    """

    def __init__(self, program: str, *, python: str | None = None, folder: str | None = None) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        changes = {"OMP_NUM_THREADS": "1", **({} if python is None else {"PYTHONPATH": ""})}
        self._process = subprocess.Popen(
            [python or sys.executable, "-c", BEGIN + program + END],
            cwd=folder,
            env=child_environment(**changes),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def seconds(self, times: int) -> float:
        """Return the CPU seconds of a number of steps.

        Raises:
            RuntimeError: The process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{times}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise RuntimeError(f"the process of an environment has ended:\n{self._errors.read()[-2000:]}")
        return float(answer)

    def steps_in(self, seconds: float) -> int:
        """Return how many steps take a number of CPU seconds."""
        self.seconds(1)  # compiles
        times = 1
        while (took := self.seconds(times)) < seconds / 4:
            times *= 4
        return max(1, round(times * seconds / took))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def taking_turns(players: Sequence[Player], *, rounds: int, seconds: float) -> Floats:
    """Return the CPU seconds of a step, shape (rounds, players)."""
    times = [player.steps_in(seconds) for player in players]
    return np.array([[player.seconds(n) / n for player, n in zip(players, times, strict=True)] for _ in range(rounds)])


def measured(row: Row, *, python: str, folder: str, rounds: int, seconds: float) -> list[str]:
    """Return the cells of a row: steps per second, and how many times as many this package plays."""
    own = [program for program in (row.single, row.together) if program is not None]
    players = [Player(row.other, python=python, folder=folder), *map(Player, own)]
    theirs, *ours = taking_turns(players, rounds=rounds, seconds=seconds).T
    for player in players:
        player.close()
    cells = [row.suite, row.what, shown(1 / theirs)]
    if not ours:
        return [*cells, "", "", ""]
    single, together = ours
    return [*cells, shown(1 / single), shown(theirs / single), shown(LANES * theirs / together)]


def shown(values: Floats) -> str:
    """Return the median, the smallest and the largest of some numbers, with three digits."""
    median, least, largest = (f"{float(f'{of(values):.3g}'):,.10g}" for of in (np.median, np.min, np.max))
    return f"{median} [{least}, {largest}]"


def main() -> None:
    """Measure the suites that are given, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("suites", nargs="+", metavar="SUITE=PYTHON:CHECKOUT", help=f"SUITE: {', '.join(SUITES)}.")
    parser.add_argument("--rounds", type=int, default=15, help="Number of turns of each process.")
    parser.add_argument("--seconds", type=float, default=2.0, help="Approximate CPU time of a turn.")
    given = parser.parse_args()
    places = {}
    for text in given.suites:
        suite, _, place = text.partition("=")
        python, _, folder = place.partition(":")
        if suite not in SUITES or not Path(python).is_file() or not Path(folder).is_dir():
            parser.error(f"SUITE=PYTHON:CHECKOUT must have one of {SUITES}, a file and a folder, got {text!r}")
        places[suite] = {"python": str(Path(python).absolute()), "folder": folder}
    rows = [row for row in ROWS if row.suite in places]
    effort = {"rounds": given.rounds, "seconds": given.seconds}
    print(markdown(COLUMNS, [measured(row, **places[row.suite], **effort) for row in rows]))


if __name__ == "__main__":
    main()
