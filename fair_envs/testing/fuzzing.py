"""Draws cases of an environment until enough steps are played, and reports every broken promise.

PYTEST_DONT_REWRITE: the messages of its errors are complete, and pytest should add nothing to them.
"""

import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fair_envs.core import LARGEST_SEED
from fair_envs.registration import TABLE
from fair_envs.support.parameters import NonNegativeInt, PositiveInt, checked
from fair_envs.testing.cases import Case
from fair_envs.testing.parameters import Drawer, DrawError, Given
from fair_envs.testing.players import OF_LANES, WRAPPERS, World, interfaces, rules_of
from fair_envs.testing.runs import Run

LANES = (1, 2, 3, 5, 8, 17, 64, 64, 256, 256, 256)
FEWEST, MOST = 12, 150  # calls of a case
SLOWEST = 20.0  # seconds of processor time after which a case ends early: a valid environment can be slow


@dataclass(frozen=True)
class Problem:
    """A promise that was broken.

    Attributes:
        case: The case.
        call: Number of the call of ``step``; 0: in the first call, or before it.
        message: What was checked, what was expected and what came.
        trace: Traceback of an unexpected exception, or empty.
    """

    case: Case
    call: int
    message: str
    trace: str = ""

    def __str__(self) -> str:
        """Return everything needed to reproduce it."""
        case, own = self.case, dict(self.case.parameters)
        lines = [
            f"{case.env_id}, variant {own.pop('variant', None)}, interface {case.interface}, step {self.call}:",
            f"  {self.message}",
            f"  parameters {own or 'the defaults'}, wrapper {case.wrapper}, lanes {case.lanes}, "
            f"threads {case.threads}, seed {case.seed}",
            f"  replay: {case.command}",
        ]
        return "\n".join([*lines, *(f"  | {line}" for line in self.trace.splitlines())])


@dataclass
class Fuzzed:
    """The results for one environment, with the problems found.

    Attributes:
        env_id: The environment.
        cases: Number of cases played.
        cut: Number of cases that ended early because they were slow.
        layouts: Number of layouts of lanes played.
        steps: Number of lane steps played.
        interfaces: Number of steps by interface.
        problems: The problems found; there should be none.
        seconds: Duration, including compilation.
    """

    env_id: str
    cases: int = 0
    cut: int = 0
    layouts: int = 0
    interfaces: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        """Number of lane steps played."""
        return self.interfaces.total()

    def check(self) -> None:
        """Raise AssertionError that lists the problems, if there are any."""
        assert not self.problems, "\n".join(map(str, self.problems))


def fuzz_environment(
    env_id: str,
    *,
    steps: int = 100_000,
    seed: int = 0,
    layouts: int = 4,
    most_problems: int = 3,
    each: Callable[[int], Any] = lambda steps: None,
) -> Fuzzed:
    """Play an environment at random through every interface and check all return values.

    Args:
        env_id: A registered environment, made of this package's rules, or any Gymnasium environment whose ``info``
            contains the record; ``"module:Id"`` imports the module first.
        steps: Smallest number of lane steps to play.
        seed: Everything random depends on it.
        layouts: Largest number of layouts of lanes to play; each takes 3 to 10 seconds to compile. Parameters that do
            not change the layout vary from case to case.
        most_problems: Number of problems after which no further case is played.
        each: Called after each case with its number of steps.

    Raises:
        ValueError: There is no such environment, it has no record, or a number is out of its range.
    """
    for name, value, kind in (
        ("steps", steps, PositiveInt),
        ("seed", seed, NonNegativeInt),
        ("layouts", layouts, PositiveInt),
    ):
        checked(name, value, kind)
    began, result = time.monotonic(), Fuzzed(env_id)
    cases = Cases(env_id, steps=steps, seed=seed, layouts=layouts)
    while result.steps < steps and len(result.problems) < most_problems:
        case = cases.draw(result.cases, result.steps / steps)
        run, problem = play(case, seconds=SLOWEST)
        result.cases += 1
        result.problems += [problem] if problem else []
        if run is not None:
            result.cut += run.call < run.case.calls and problem is None
            result.interfaces[run.case.interface] += run.steps
            each(run.steps)
        result.layouts, result.seconds = cases.layouts, time.monotonic() - began
    return result


def play(case: Case, *, seconds: float | None = None) -> tuple[Run | None, Problem | None]:
    """Play one case; return the run and the broken promise, if there is one."""
    run = None
    try:
        run = Run(case)
        run.play(seconds=seconds)
    except AssertionError as error:
        message = str(error) or "an assertion failed"
        return run, Problem(case, run.call if run else 0, message, "" if str(error) else traceback.format_exc())
    except Exception as error:
        message = f"no exception must be raised, got {type(error).__name__}: {error}"
        return run, Problem(case, run.call if run else 0, message, traceback.format_exc())
    return run, None


class Cases:
    """Draws the cases of one environment; each depends on the seed, its number and the share of steps played.

    Args:
        env_id: The environment.
        steps: Number of steps that will be played.
        seed: Everything random depends on it.
        layouts: Number of layouts of lanes that may be played.
    """

    def __init__(self, env_id: str, *, steps: int, seed: int, layouts: int) -> None:
        rules = rules_of(env_id)
        self._env_id, self._seed = env_id, seed
        variants = [] if rules is None else [None, *rules.variants]
        self._drawers = [Drawer(rules, variant) for variant in variants] if rules else []
        self._interfaces = interfaces(ruled=rules is not None)
        self._bases: list[Given] = []
        self._layouts = max(layouts, len(variants)) if rules is not None else 1
        self._budget = steps // (2 * self._layouts * len(self._interfaces))  # steps of a case
        if rules is None:
            World(Case(env_id=env_id, interface="gym"))  # raises an error if there is no record

    @property
    def layouts(self) -> int:
        """Number of layouts drawn so far."""
        return max(1, len(self._bases))

    def draw(self, number: int, played: float) -> Case:
        """Return a case by its number, after a share of the steps has been played.

        If parameters within their ranges are not accepted correctly, the case shows this.
        """
        rng = np.random.default_rng([self._seed, number])
        interface = self._interfaces[number % len(self._interfaces)]
        try:
            parameters = self._parameters(played, rng) if self._drawers else {}
        except DrawError as error:
            return Case(env_id=self._env_id, interface="gym", parameters=error.given)
        lanes = min(int(rng.choice(LANES)), max(3, self._budget // FEWEST)) if interface in OF_LANES else 1
        threads = int(rng.integers(2, 4)) if lanes > 1 and rng.random() < 0.3 else 1
        calls = int(np.clip(self._budget // lanes, FEWEST, MOST))
        seed = int(rng.integers(2**31)) if rng.random() < 0.95 else LARGEST_SEED - lanes
        case = Case(
            env_id=self._env_id,
            interface=interface,
            parameters=parameters,
            lanes=lanes,
            threads=threads,
            seed=seed,
            calls=calls,
        )
        wanted = str(rng.choice(list(WRAPPERS))) if rng.random() < 0.3 else None
        return case if wanted is None else wrapped(case, wanted)

    def _parameters(self, played: float, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters of the layout that is next; each layout gets the same share of the steps."""
        turn = min(int(played * self._layouts), self._layouts - 1)
        for new in range(len(self._bases), turn + 1):
            drawer = self._drawers[new % len(self._drawers)]
            known = new < len(self._drawers)
            self._bases.append(drawer.base if known else drawer.anew(np.random.default_rng([self._seed, 0, new])))
        return self._drawers[turn % len(self._drawers)].alike(self._bases[turn], rng)


def wrapped(case: Case, name: str) -> Case:
    """Return the case with that wrapper around the environment, or without it if the wrapper does not apply."""
    ruled = case.env_id.rpartition(":")[2] in TABLE
    if not (case.interface == "gym" or (ruled and case.interface.startswith("vector"))):
        return case
    other = replace(case, wrapper=name)
    try:
        World(other)
    except (TypeError, ValueError):  # the error names what the environment lacks
        return case
    return other
