"""How fast the package is: the rows of the table that `fair-envs bench` prints.

Each row is measured in a process of its own, so that the threads, caches and memory of one leave the others alone. A
repeat notes the time on the clock and the processor's time of all its threads beside it: on a machine that does other
work too, the second says what the clock would show on an idle one.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import fair_envs
from fair_envs.core import Lanes

ENV_ID = "FairHarvest-v0"
BATCH = 64  # lanes of the vector environment and of Stable-Baselines3
ROLLOUT = 64  # steps of each lane in a rollout
ACTIONS = 64  # sets of actions drawn beforehand and played in turn
THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
LIBRARIES = ("numba", "numpy", "gymnasium", "pettingzoo", "stable-baselines3", "torch")
NOT_A_NUMBER = float("nan")


class Sample(NamedTuple):
    """One repeat."""

    value: float  # in the row's unit, by the clock
    by_cpu: float  # the same by the processor's time; NaN where that says nothing
    wall: float  # seconds on the clock
    cpu: float  # seconds of the processor, of all threads and child processes
    others: float  # cores that other processes kept busy meanwhile; NaN if the system does not tell


class Effort(NamedTuple):
    """How long is measured."""

    repeats: int
    seconds: float  # of a repeat, about


FULL = Effort(repeats=7, seconds=1.0)
QUICK = Effort(repeats=5, seconds=0.05)

Repeats = Callable[[Effort], Iterator[Sample]]


class Row(NamedTuple):
    """What is measured, and what it should reach."""

    name: str
    what: str
    unit: str
    target: float | None
    at_least: bool  # False: the target is an upper limit
    threads: int
    repeats: Repeats


class Load(NamedTuple):
    """Work that is repeated."""

    run: Callable[[int], None]  # does it so many times
    steps: int  # that each time counts for


# ------------------------------------------------------------------------------------------------ the loads


def actions(lanes: int) -> NDArray[np.int64]:
    """Return actions to play, shape (`ACTIONS`, lanes, agents)."""
    rules = fair_envs.make_rules(ENV_ID)
    count = rules.action_space(rules.params).n  # type: ignore[attr-defined]
    return np.random.default_rng(0).integers(0, count, (ACTIONS, lanes, rules.agents(rules.params)))


def batch_load(lanes: int, *, threads: int = 1) -> Load:
    """Return the rules with rewards, facts and observations, in fresh arrays, for many lanes at once."""
    batch, drawn = Lanes(fair_envs.make_rules(ENV_ID), lanes, threads=threads), actions(lanes)
    batch.seed(0)
    batch.restart()

    def run(times: int) -> None:
        for k in range(times):
            played = batch.advance(drawn[k % ACTIONS])
            over = played.terminated | played.truncated
            if over.any():
                batch.restart(mask=over)

    return Load(run, lanes)


def vector_load() -> Load:
    """Return Gymnasium's vector environment."""
    env, drawn = gym.make_vec(ENV_ID, num_envs=BATCH), actions(BATCH)
    env.reset(seed=0)

    def run(times: int) -> None:
        for k in range(times):
            env.step(drawn[k % ACTIONS])

    return Load(run, BATCH)


def single_load() -> Load:
    """Return Gymnasium's environment with the wrappers that `gym.make` puts around it."""
    env, drawn = gym.make(ENV_ID), actions(1)[:, 0]
    env.reset(seed=0)

    def run(times: int) -> None:
        for k in range(times):
            _, _, terminated, truncated, _ = env.step(drawn[k % ACTIONS])
            if terminated or truncated:
                env.reset()

    return Load(run, 1)


def parallel_load() -> Load:
    """Return PettingZoo's environment; a step is one of all agents."""
    from fair_envs.envs.harvest import parallel_env

    env = parallel_env()
    drawn = [dict(zip(env.possible_agents, row, strict=True)) for row in actions(1)[:, 0].tolist()]
    env.reset(seed=0)

    def run(times: int) -> None:
        for k in range(times):
            env.step(drawn[k % ACTIONS])
            if not env.agents:
                env.reset()

    return Load(run, 1)


def learner(*, threads: int) -> tuple[Any, int]:
    """Return PPO with networks for both groups, and the agent steps of one rollout."""
    env = fair_envs.make_sb3(ENV_ID, n_envs=BATCH, append_group=True, reward_scale=0.1, seed=0, threads=threads)
    from fair_envs.baselines.policies import GroupedPolicy
    from fair_envs.baselines.ppo import PPO

    model = PPO(
        GroupedPolicy,
        env,
        n_steps=ROLLOUT,
        batch_size=16_384,
        n_epochs=5,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
    )
    return model, ROLLOUT * env.num_envs


def rollout_load() -> Load:
    """Return the rollouts of Stable-Baselines3 without learning; each agent's step counts."""
    model, steps = learner(threads=1)
    _, callback = model._setup_learn(total_timesteps=steps)

    def run(times: int) -> None:
        for _ in range(times):
            model.collect_rollouts(model.env, callback, model.rollout_buffer, ROLLOUT)

    return Load(run, steps)


def training_load() -> Load:
    """Return rollouts and updates of PPO; each agent's step counts."""
    model, steps = learner(threads=2)

    def run(times: int) -> None:
        model.learn(times * steps, reset_num_timesteps=False)

    return Load(run, steps)


# --------------------------------------------------------------------------------------------- measurements


class Stopwatch:
    """Takes the time from its making on: on the clock, of the processor, and of what other processes used."""

    def __init__(self) -> None:
        self._busy, self._cpu, self._wall = busy_seconds(), cpu_seconds(), time.perf_counter()

    def sample(self, *, value: float | None = None, steps: float = 0.0) -> Sample:
        """Return what was measured: the value, or else the steps a second."""
        wall, cpu = time.perf_counter() - self._wall, cpu_seconds() - self._cpu
        others = max(0.0, busy_seconds() - self._busy - cpu) / wall
        if value is not None:
            return Sample(value, NOT_A_NUMBER, wall, cpu, others)
        return Sample(steps / wall, steps / max(cpu, 1e-9), wall, cpu, others)


def cpu_seconds() -> float:
    """Return the processor's time of this process and of the child processes that have ended."""
    return time.process_time() + sum(os.times()[2:4])


def busy_seconds() -> float:
    """Return the processor's time of all processes since the machine started; NaN if the system does not tell."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return NOT_A_NUMBER
    user, nice, system, _idle, _waiting, *interrupts = map(int, fields)
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def repeats_lasting(load: Load, seconds: float) -> int:
    """Return how many times the load runs in so many seconds; it is warm afterwards."""
    load.run(1)
    times = 1
    while True:
        begin = time.perf_counter()
        load.run(times)
        took = time.perf_counter() - begin
        if took >= seconds / 4:
            return max(1, round(times * seconds / took))
        times *= 4


def rates(effort: Effort, *, load: Callable[[], Load]) -> Iterator[Sample]:
    """Yield steps a second."""
    made = load()
    times = repeats_lasting(made, effort.seconds)
    for _ in range(effort.repeats):
        watch = Stopwatch()
        made.run(times)
        yield watch.sample(steps=times * made.steps)


def gains(effort: Effort, *, lanes: int) -> Iterator[Sample]:
    """Yield how many times as fast two threads are as one; both are timed in turn."""
    one, two = batch_load(lanes), batch_load(lanes, threads=2)
    times = repeats_lasting(one, effort.seconds)
    two.run(times)
    for _ in range(effort.repeats):
        watch, seconds = Stopwatch(), []
        for load in (one, two):
            begin = time.perf_counter()
            load.run(times)
            seconds.append(time.perf_counter() - begin)
        yield watch.sample(value=seconds[0] / seconds[1])


def lane_sizes(effort: Effort) -> Iterator[Sample]:
    """Yield the bytes of one lane: a batch holds them once for each lane, and nothing beside."""
    batch = Lanes(fair_envs.make_rules(ENV_ID), BATCH)
    yield Stopwatch().sample(value=batch.records.nbytes / batch.count)


IMPORT = "import time; begin = time.perf_counter(); import fair_envs; print(time.perf_counter() - begin)"
FIRST_STEP = f"""
import time
import gymnasium, fair_envs
begin = time.perf_counter()
env = gymnasium.make({ENV_ID!r})
env.reset(seed=0)
env.step(env.action_space.sample())
print(time.perf_counter() - begin)
"""


def import_times(effort: Effort) -> Iterator[Sample]:
    """Yield the seconds of ``import fair_envs`` in a fresh process."""
    timed(IMPORT)
    for _ in range(effort.repeats):
        yield timed(IMPORT)


def first_starts(effort: Effort) -> Iterator[Sample]:
    """Yield the seconds from ``gym.make`` to the end of the first step where nothing is compiled yet."""
    for _ in range(effort.repeats if effort == FULL else 1):
        with tempfile.TemporaryDirectory() as folder:
            yield timed(FIRST_STEP, FAIR_ENVS_CACHE=folder)


def later_starts(effort: Effort) -> Iterator[Sample]:
    """Yield the seconds from ``gym.make`` to the end of the first step where all is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        timed(FIRST_STEP, FAIR_ENVS_CACHE=folder)
        for _ in range(effort.repeats):
            yield timed(FIRST_STEP, FAIR_ENVS_CACHE=folder)


def timed(program: str, **environment: str) -> Sample:
    """Return the seconds that a program prints, run in a fresh process."""
    watch = Stopwatch()
    run = subprocess.run(
        [sys.executable, "-c", program], env=child_environment(**environment), capture_output=True, text=True
    )
    if run.returncode != 0:
        raise RuntimeError(f"a timed program failed:\n{run.stderr}")
    return watch.sample(value=float(run.stdout))


def child_environment(**changes: str) -> dict[str, str]:
    """Return the environment of a child process that imports this very package."""
    root = str(Path(fair_envs.__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **changes}


# ------------------------------------------------------------------------------------------------- the rows

RATE, AGENT_RATE = "steps/s", "agent steps/s"

ROWS: tuple[Row, ...] = (
    Row("lanes", "rules and observations, 16 lanes", RATE, 250_000, True, 1, partial(rates, load=partial(batch_load, 16))),
    Row("vector", f"gym.make_vec, {BATCH} lanes, info included", RATE, 150_000, True, 1, partial(rates, load=vector_load)),
    Row("single", "gym.make", RATE, 20_000, True, 1, partial(rates, load=single_load)),
    Row("parallel", "PettingZoo, 40 agents, infos included", RATE, 4_000, True, 1, partial(rates, load=parallel_load)),
    Row(
        "rollout",
        f"Stable-Baselines3 rollout, {BATCH} lanes, agents as rows, 64x64 networks",
        AGENT_RATE,
        400_000,
        True,
        1,
        partial(rates, load=rollout_load),
    ),
    Row(
        "training",
        "PPO, 64x64 networks for each group, minibatch 16,384, 5 epochs, 2 threads",
        AGENT_RATE,
        60_000,
        True,
        2,
        partial(rates, load=training_load),
    ),
    Row("threads", "2 threads against 1, 256 lanes", "times", 1.5, True, 1, partial(gains, lanes=256)),
    Row("memory", "memory of a lane", "bytes", 4096, False, 1, lane_sizes),
    Row("import", "import fair_envs", "s", 0.5, False, 1, import_times),
    Row("compilation", "gym.make to first step, nothing compiled", "s", 10, False, 1, first_starts),
    Row("cached", "gym.make to first step, compiled before", "s", None, False, 1, later_starts),
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """A row and what was measured."""

    row: Row
    samples: Sequence[Sample]
    missing: str | None = None  # why nothing was measured

    def median(self, field: str = "value") -> float:
        """Return the median over the repeats; NaN without repeats."""
        values = [getattr(sample, field) for sample in self.samples]
        return statistics.median(values) if values else NOT_A_NUMBER

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the largest value."""
        values = [sample.value for sample in self.samples]
        return (min(values), max(values)) if values else (NOT_A_NUMBER, NOT_A_NUMBER)

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the target; None without a target or a measurement."""
        if self.row.target is None or not self.samples:
            return None
        return self.median() >= self.row.target if self.row.at_least else self.median() < self.row.target

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; what does not exist is None."""
        low, high = self.spread
        numbers = {field: self.median(field) for field in Sample._fields} | {"low": low, "high": high}
        return {
            **{name: getattr(self.row, name) for name in ("name", "what", "unit", "target", "at_least", "threads")},
            **{name: _or_none(number) for name, number in numbers.items()},
            "met": self.met,
            "missing": self.missing,
            "repeats": [{name: _or_none(number) for name, number in s._asdict().items()} for s in self.samples],
        }


def find_row(name: str) -> Row:
    """Return the row of that name.

    Raises:
        ValueError: There is none.
    """
    for row in ROWS:
        if row.name == name:
            return row
    raise ValueError(f"row must be one of {', '.join(row.name for row in ROWS)}, got {name!r}")


def run_row(row: Row, effort: Effort, *, each: Callable[[], None] = lambda: None) -> Result:
    """Measure a row in a process of its own.

    Args:
        row: What is measured.
        effort: How long.
        each: Called after every repeat.

    Raises:
        RuntimeError: The process failed.
    """
    program = "import sys; from fair_envs.benchmark import report; report(*sys.argv[1:])"
    command = [sys.executable, "-c", program, row.name, str(effort.repeats), str(effort.seconds)]
    threads = dict.fromkeys(THREAD_COUNTS, str(row.threads))
    samples, missing = [], None
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, env=child_environment(**threads), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            for line in process.stdout or ():
                told = json.loads(line)
                missing = told.get("missing")
                if missing is None:
                    samples.append(Sample(**told))
                    each()
        if process.returncode != 0:
            errors.seek(0)
            raise RuntimeError(f"row {row.name!r} failed:\n{errors.read()}")
    return Result(row=row, samples=samples, missing=missing)


def report(name: str, repeats: str, seconds: str) -> None:
    """Measure a row in this process and print each repeat as a line of JSON, or what is missing for it."""
    try:
        for sample in find_row(name).repeats(Effort(int(repeats), float(seconds))):
            print(json.dumps(sample._asdict()), flush=True)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)


def record(results: Sequence[Result], *, effort: Effort) -> dict[str, Any]:
    """Return the table with the versions and the machine that it belongs to, for JSON."""
    return {
        "fair_envs": fair_envs.__version__,
        "effort": effort._asdict(),
        "machine": machine(),
        "versions": versions(),
        "rows": [result.as_dict() for result in results],
    }


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: the processor and how many cores this process may use."""
    return {"processor": processor(), "cores": cores(), "system": platform.platform()}


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the libraries that are installed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number
