"""Benchmarks: the rows of the table that `fair-envs bench` prints.

Each row is measured in a separate process, so rows do not share threads, caches or memory. A repeat measures wall-clock
time and the CPU time of all its threads. If the machine also does other work, CPU time estimates the wall-clock time on
an idle machine.
"""

import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from rich.table import Table

import fair_envs
from fair_envs.benchmark import loads
from fair_envs.benchmark.loads import Load
from fair_envs.core import Lanes
from fair_envs.experiments.executors import THREAD_COUNTS
from fair_envs.registration import TABLE
from fair_envs.support.aliases import Ints, OnProgress
from fair_envs.support.parameters import meant

ENV_ID = "FairHarvest-v0"
DECISIONS = {"hiring": "FairHiring-v0", "fraud": "FairFraud-v0"}
PROCESSES = {"lending": "FairLending-v0", "attention": "FairAttention-v0", "epidemic": "FairEpidemic-v0"}
FASTEST = {"lending": 5_000_000, "attention": 2_000_000, "epidemic": 1_000_000}  # steps/s of the rules
WORLD: dict[str, Any] = {}  # parameters of the environment
BATCH = 64  # lanes of the vector environment and of Stable-Baselines3
ROLLOUT = 64  # steps of each lane in a rollout
MINIBATCH = 16_384
ACTIONS = 64  # sets of actions drawn in advance and played in turn
LIBRARIES = ("numba", "numpy", "gymnasium", "pettingzoo", "stable-baselines3", "torch")
NOT_A_NUMBER = float("nan")
LOOKS = 15  # number of short measurements in a repeat, alternating between two threads and one
ROUNDS = 5  # number of short measurements in a repeat, alternating between two loads
PATIENCE = 60  # how many repeats' time a repeat may take while it waits for two free cores
OWN_CORES = 1.8  # least speedup of arithmetic on two threads if two cores are free
IDLE = 0.1  # largest number of cores that other processes use on an idle machine


class Sample(NamedTuple):
    """One repeat."""

    value: float  # in the row's unit, by wall-clock time
    by_cpu: float  # the same by CPU time; NaN if that has no meaning
    wall: float  # seconds of wall-clock time
    cpu: float  # seconds of CPU time, of all threads and child processes
    others: float  # cores that other processes used meanwhile; NaN if the system does not report it


class Effort(NamedTuple):
    """How long to measure."""

    repeats: int
    repeats_of_slow: int  # repeats of slow rows
    seconds: float  # approximate duration of a repeat


FULL = Effort(repeats=7, repeats_of_slow=5, seconds=1.0)
QUICK = Effort(repeats=5, repeats_of_slow=1, seconds=0.05)

Prepare = Callable[[float], Callable[[], Sample]]
"""Prepares repeats of a number of seconds; returns a function that runs one repeat."""


class Row(NamedTuple):
    """A measurement and its target."""

    name: str
    what: str
    unit: str
    target: float | None
    prepare: Prepare
    at_least: bool = True  # False: the target is an upper limit
    threads: int = 1  # threads of torch
    slow: bool = False  # whether a repeat takes long
    summed: bool = False  # whether the sum of the repeats is reported instead of their median

    def repeats(self, effort: Effort) -> int:
        """Return the number of repeats."""
        return effort.repeats_of_slow if self.slow else effort.repeats


# ------------------------------------------------------------------------------------------------ the loads


def actions(lanes: int) -> Ints:
    """Return actions to play, shape (`ACTIONS`, lanes, agents)."""
    rules = fair_envs.make_rules(ENV_ID, **WORLD)
    count = rules.action_space(rules.params).n  # type: ignore[attr-defined]
    return np.random.default_rng(0).integers(0, count, (ACTIONS, lanes, rules.agents(rules.params)))


def batch_load(lanes: int, *, threads: int = 1) -> Load:
    """Return a load of many lanes: rules with rewards, records and observations, in new arrays."""
    return loads.played_on(Lanes(fair_envs.make_rules(ENV_ID, **WORLD), lanes, threads=threads), actions(lanes))


def vector_load() -> Load:
    """Return a load of Gymnasium's vector environment."""
    env, drawn = gym.make_vec(ENV_ID, num_envs=BATCH, **WORLD), actions(BATCH)
    env.reset(seed=0)

    def run(times: int) -> None:
        for k in range(times):
            env.step(drawn[k % ACTIONS])

    return Load(run, BATCH)


def single_load() -> Load:
    """Return a load of Gymnasium's environment, including the wrappers that `gym.make` adds."""
    return loads.alone(gym.make(ENV_ID, **WORLD), actions(1)[:, 0])


def parallel_load() -> Load:
    """Return a load of PettingZoo's environment; one step counts for all agents together."""
    from fair_envs.envs.harvest import parallel_env

    return loads.rounds(parallel_env(**WORLD), actions(1)[:, 0].tolist())


def learner(*, threads: int) -> tuple[Any, int]:
    """Return PPO with networks for both groups, and the agent steps of one rollout."""
    env = fair_envs.make_sb3(
        ENV_ID, n_envs=BATCH, append_group=True, reward_scale=0.1, seed=0, threads=threads, **WORLD
    )
    from fair_envs.baselines.ppo.policies import GroupedPolicy
    from fair_envs.baselines.ppo.ppo import PPO

    model = PPO(
        GroupedPolicy,
        env,
        n_steps=ROLLOUT,
        batch_size=MINIBATCH,
        n_epochs=5,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
    )
    return model, ROLLOUT * env.num_envs


def rollout_load() -> Load:
    """Return a load of Stable-Baselines3 rollouts without learning; each agent's step counts."""
    model, steps = learner(threads=1)
    _, callback = model._setup_learn(total_timesteps=steps)

    def run(times: int) -> None:
        for _ in range(times):
            model.collect_rollouts(model.env, callback, model.rollout_buffer, ROLLOUT)

    return Load(run, steps)


def training_load() -> Load:
    """Return a load of PPO's rollouts and updates; each agent's step counts."""
    model, steps = learner(threads=2)

    def run(times: int) -> None:
        model.learn(times * steps, reset_num_timesteps=False)

    return Load(run, steps)


# --------------------------------------------------------------------------------------------- measurements


class Stopwatch:
    """Measures wall-clock time, CPU time and the CPU time of other processes, from its creation on."""

    def __init__(self) -> None:
        self._busy, self._cpu, self._wall = busy_seconds(), cpu_seconds(), time.perf_counter()

    def sample(self, *, value: float | None = None, by_cpu: float = NOT_A_NUMBER, steps: float = 0.0) -> Sample:
        """Return the measurement: the given value, also by CPU time if that is known, or the steps per second."""
        wall, cpu = time.perf_counter() - self._wall, cpu_seconds() - self._cpu
        others = max(0.0, busy_seconds() - self._busy - cpu) / wall
        if value is not None:
            return Sample(value, by_cpu, wall, cpu, others)
        return Sample(steps / wall, steps / max(cpu, 1e-9), wall, cpu, others)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the child processes that have ended."""
    return time.process_time() + sum(os.times()[2:4])


def busy_seconds() -> float:
    """Return the CPU time of all processes since the machine started; NaN if the system does not report it."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return NOT_A_NUMBER
    user, nice, system, _idle, _waiting, *interrupts = map(int, fields)
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def repeats_lasting(load: Load, seconds: float) -> int:
    """Return how many times the load runs in a number of seconds; this also warms it up."""
    load.run(1)
    times = 1
    while True:
        begin = time.perf_counter()
        load.run(times)
        took = time.perf_counter() - begin
        if took >= seconds / 4:
            return max(1, round(times * seconds / took))
        times *= 4


def rate(seconds: float, *, load: Callable[[], Load]) -> Callable[[], Sample]:
    """Return a function that measures steps per second."""
    made = load()
    times = repeats_lasting(made, seconds)

    def repeat() -> Sample:
        watch = Stopwatch()
        made.run(times)
        return watch.sample(steps=times * made.steps)

    return repeat


def duration(seconds: float, *, load: Callable[[], Load]) -> Callable[[], Sample]:
    """Return a function that measures the microseconds of a step."""
    repeat = rate(seconds, load=load)

    def inverted() -> Sample:
        sample = repeat()
        return sample._replace(value=1e6 / sample.value, by_cpu=1e6 / sample.by_cpu)

    return inverted


def duration_of_part(seconds: float, *, load: Callable[[], Load]) -> Callable[[], Sample]:
    """Return a function that measures the microseconds of the part of a step that the load times itself."""
    made = load()
    times = repeats_lasting(made, seconds)

    def repeat() -> Sample:
        watch = Stopwatch()
        return watch.sample(value=1e6 * float(made.run(times)) / (times * made.steps))  # type: ignore[arg-type]

    return repeat


def gain(seconds: float, *, lanes: int, own_cores: bool = False) -> Callable[[], Sample]:
    """Return a function that measures the speedup of two threads, a median over short alternating measurements.

    The two cores of a virtual machine can be one physical core for seconds at a time; two threads are then no faster.
    With ``own_cores``, a measurement only counts if two cores were free immediately before and after it. Arithmetic
    without shared data is used to check this.

    Raises:
        TimeoutError: With ``own_cores``, two cores were hardly ever free during `PATIENCE` repeats' time.
    """
    one, two = batch_load(lanes), batch_load(lanes, threads=2)
    times = repeats_lasting(one, seconds / LOOKS)
    two.run(times)
    given = gain_of_arithmetic(seconds / LOOKS / 4) if own_cores else lambda: OWN_CORES

    def repeat() -> Sample:
        watch, looks = Stopwatch(), list[float]()
        end = time.perf_counter() + PATIENCE * seconds
        while len(looks) < LOOKS:
            if own_cores and time.perf_counter() > end:
                raise TimeoutError("two cores of the machine were hardly ever free")
            before, look, after = given(), clocked(one, times).wall / clocked(two, times).wall, given()
            if min(before, after) >= OWN_CORES:
                looks.append(look)
        return watch.sample(value=statistics.median(looks))

    return repeat


def against(seconds: float, *, loads: Callable[[], tuple[Load, Load]]) -> Callable[[], Sample]:
    """Return a function that measures how many times faster the first load is than the second.

    It is the median of `ROUNDS` short measurements in which they alternate, because a machine's speed changes in time.
    """
    one, other = loads()
    times = repeats_lasting(other, seconds / 2 / ROUNDS)

    def repeat() -> Sample:
        watch = Stopwatch()
        rounds = [(clocked(other, times), clocked(one, times)) for _ in range(ROUNDS)]
        walls, cpus = zip(*((a.wall / b.wall, a.cpu / b.cpu) for a, b in rounds), strict=True)
        return watch.sample(value=statistics.median(walls), by_cpu=statistics.median(cpus))

    return repeat


def machine_gain(seconds: float) -> Callable[[], Sample]:
    """Return a function that measures the speedup of two threads without shared data, the most that is possible."""
    given = gain_of_arithmetic(seconds / LOOKS)

    def repeat() -> Sample:
        watch = Stopwatch()
        return watch.sample(value=statistics.median(given() for _ in range(LOOKS)))

    return repeat


def gain_of_arithmetic(seconds: float) -> Callable[[], float]:
    """Return a function that measures the speedup of arithmetic on two threads, in about three times the seconds."""
    import numba

    @numba.njit(nogil=True)
    def arithmetic(times: int) -> int:  # independent chains keep a core busy
        a, b, c, d = 1, 2, 3, 4
        for i in range(times):
            a, b, c, d = (a ^ i) + (a >> 3), (b ^ i) + (b >> 3), (c ^ i) + (c >> 3), (d ^ i) + (d >> 3)
        return a + b + c + d

    alone = Load(arithmetic, 1)
    threads = ThreadPoolExecutor(2)
    both = Load(lambda times: wait([threads.submit(arithmetic, times) for _ in range(2)]), 2)
    times = repeats_lasting(alone, seconds)
    both.run(times)
    return lambda: 2 * clocked(alone, times).wall / clocked(both, times).wall


class Taken(NamedTuple):
    """Seconds of a load."""

    wall: float
    cpu: float  # of all threads


def clocked(load: Load, times: int) -> Taken:
    """Return how many seconds it takes to run a load a number of times."""
    begin, cpu = time.perf_counter(), time.process_time()
    load.run(times)
    return Taken(time.perf_counter() - begin, max(time.process_time() - cpu, 1e-9))


def lane_size(seconds: float) -> Callable[[], Sample]:
    """Return a function that measures the bytes of a lane, which is its whole state."""
    batch = Lanes(fair_envs.make_rules(ENV_ID, **WORLD), BATCH)
    size = batch.records.nbytes / batch.count
    return lambda: Sample(size, by_cpu=NOT_A_NUMBER, wall=NOT_A_NUMBER, cpu=NOT_A_NUMBER, others=NOT_A_NUMBER)


TIMED = """
import time
{before}
begin = time.perf_counter(), time.process_time()
{timed}
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""
IMPORT = TIMED.format(before="", timed="import fair_envs")
FIRST_STEP = TIMED.format(
    before="import gymnasium, fair_envs",
    timed=f"env = gymnasium.make({ENV_ID!r}); env.reset(seed=0); env.step(env.action_space.sample())",
)


def import_time(seconds: float) -> Callable[[], Sample]:
    """Return a function that measures ``import fair_envs`` in a new process."""
    timed(IMPORT)
    return lambda: timed(IMPORT)


def first_start(seconds: float) -> Callable[[], Sample]:
    """Return a function that measures the time from ``gym.make`` to the end of the first step, without a cache."""

    def repeat() -> Sample:
        with tempfile.TemporaryDirectory() as folder:
            return timed(FIRST_STEP, FAIR_ENVS_CACHE=folder)

    return repeat


def later_start(seconds: float) -> Callable[[], Sample]:
    """Return a function that measures the time from ``gym.make`` to the end of the first step, with a full cache."""
    timed(FIRST_STEP)
    return lambda: timed(FIRST_STEP)


def search_time(seconds: float) -> Callable[[], Sample]:
    """Return a function that measures a search on one core, each time with another seed, after a short warm-up."""
    trials, seeds = loads.TRIALS if seconds >= FULL.seconds else loads.TRIALS // 10, itertools.count(1)
    loads.search(trials=1, seed=0)

    def repeat() -> Sample:
        watch, seed = Stopwatch(), next(seeds)
        loads.search(trials=trials, seed=seed)
        sample = watch.sample()
        whole = loads.TRIALS / trials
        return sample._replace(value=sample.wall * whole, by_cpu=sample.cpu * whole)

    return repeat


def timed(program: str, **environment: str) -> Sample:
    """Return the wall-clock and CPU seconds that a program prints, run in a new process."""
    watch = Stopwatch()
    run = subprocess.run(
        [sys.executable, "-c", program], env=child_environment(**environment), capture_output=True, text=True
    )
    if run.returncode != 0:
        raise RuntimeError(f"a timed program failed:\n{run.stderr}")
    value, by_cpu = map(float, run.stdout.split())
    return watch.sample(value=value)._replace(by_cpu=by_cpu)


def child_environment(**changes: str) -> dict[str, str]:
    """Return the environment of a child process that imports this same package, also from a checkout."""
    root, path = str(Path(fair_envs.__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    if root not in sysconfig.get_paths().values():
        path = os.pathsep.join(filter(None, (root, path)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", **changes}


def pcn_race(seconds: float, *, fronts: bool) -> Callable[[], Sample]:
    """Return a function that compares this package's PCN with another one, each time with another seed.

    Args:
        seconds: Approximate duration of a repeat; less than a full repeat means fewer steps.
        fronts: Whether to compare which of them finds the whole front; otherwise compare their durations.

    Raises:
        ImportError: MO-Gymnasium or morl-baselines is missing.
    """
    from fair_envs.benchmark import peers

    steps, seeds = peers.STEPS if seconds >= FULL.seconds else peers.STEPS // 4, itertools.count()
    peers.ready()

    def repeat() -> Sample:
        watch, seed = Stopwatch(), next(seeds)
        own, other = peers.own(steps, seed=seed), peers.other(steps, seed=seed)
        return watch.sample(value=own.whole - other.whole if fronts else other.seconds / own.seconds)

    return repeat


# ------------------------------------------------------------------------------------------------- the rows

RATE, AGENT_RATE, DURATION = "steps/s", "agent steps/s", "µs"

VARIANTS = {
    "ppo": ("this package's PPO against Stable-Baselines3's", "ppo", "sb3-ppo", 0.9),
    "following": ("PPO that follows a short-term and a long-term measure against PPO", "following", "ppo", 0.95),
    "heads": ("PPO with a critic of all groups' streams against PPO", "elbert", "ppo", 1 / 1.15),
}
"""Variants of PPO that are compared on every environment: what, the two variants, and the target."""

ROWS: tuple[Row, ...] = (
    Row("lanes", "rules and observations, 16 lanes", RATE, 250_000, partial(rate, load=partial(batch_load, 16))),
    Row("vector", f"gym.make_vec, {BATCH} lanes, info included", RATE, 150_000, partial(rate, load=vector_load)),
    Row("single", "gym.make", RATE, 20_000, partial(rate, load=single_load)),
    Row("parallel", "PettingZoo parallel, 40 agents, infos included", RATE, 4_000, partial(rate, load=parallel_load)),
    Row(
        "rollout",
        f"Stable-Baselines3 rollout, {BATCH} lanes, agents as rows, 64x64 networks",
        AGENT_RATE,
        400_000,
        partial(rate, load=rollout_load),
    ),
    Row(
        "training",
        "PPO, 64x64 networks for each group, minibatch 16,384, 5 epochs, 2 threads",
        AGENT_RATE,
        60_000,
        partial(rate, load=training_load),
        threads=2,
    ),
    Row(
        "threads",
        "256 lanes, 2 threads against 1, two cores free",
        "times",
        1.5,
        partial(gain, lanes=256, own_cores=True),
    ),
    Row("threads anyway", "256 lanes, 2 threads against 1, at any time", "times", None, partial(gain, lanes=256)),
    Row("cores", "arithmetic that shares nothing, 2 threads against 1", "times", None, machine_gain),
    *(
        Row(
            f"{name} vector",
            f"{env_id}, gym.make_vec, {loads.LANES} lanes, info included",
            RATE,
            500_000,
            partial(rate, load=partial(loads.vector, env_id)),
        )
        for name, env_id in DECISIONS.items()
    ),
    *(
        Row(f"{name} single", f"{env_id}, gym.make", RATE, 40_000, partial(rate, load=partial(loads.single, env_id)))
        for name, env_id in DECISIONS.items()
    ),
    *(
        Row(
            f"group notions, {name}",
            f"a decision and all {len(loads.GROUP_NOTIONS)} group notions, {name}, {loads.LANES} lanes",
            DURATION,
            2,
            partial(duration, load=partial(loads.group_notions, memory())),
            at_least=False,
        )
        for name, memory in loads.MEMORIES.items()
    ),
    *(
        Row(
            f"individual notions, {window}",
            f"IF and CSC after a decision, exact, window {window}, 1 lane",
            DURATION,
            target,
            partial(duration_of_part, load=partial(loads.individual_notions, window=window, lanes=1)),
            at_least=False,
        )
        for window, target in ((500, 25), (1000, 50))
    ),
    *(
        Row(
            f"decision and individual notions, {window}, {lanes}",
            f"a decision, IF and CSC, exact, window {window}, {lanes} lane{'s' * (lanes > 1)}",
            DURATION,
            None,
            partial(duration, load=partial(loads.individual_notions, window=window, lanes=lanes)),
            at_least=False,
        )
        for window in (500, 1000)
        for lanes in (1, 10)
    ),
    Row(
        "eight objectives",
        "FairHiring-v0 with R, SP, EO, OAE, PP, PE, IF, CSC, window 1000, 10 lanes",
        RATE,
        15_000,
        partial(rate, load=partial(loads.objectives, loads.EIGHT, window=1000, lanes=10)),
    ),
    Row(
        "pcn",
        "PCN on FairHiring-v0 for R, SP, IF, window 500, updates included, 2 threads",
        RATE,
        2_000,
        partial(rate, load=loads.trade_offs),
        threads=2,
    ),
    Row(
        "pcn race",
        "PCN on deep-sea-treasure, 20,000 steps, against morl-baselines in turn",
        "times",
        2.5,
        partial(pcn_race, fronts=False),
        slow=True,
    ),
    Row(
        "pcn front",
        "in how many more of the seeds of that race than the other it finds the whole front, summed",
        "seeds",
        0,
        partial(pcn_race, fronts=True),
        slow=True,
        summed=True,
    ),
    *(
        Row(
            f"{name} rules",
            f"{env_id}, rules and observations, {loads.LANES} lanes",
            RATE,
            FASTEST[name],
            partial(rate, load=partial(loads.batch, env_id)),
        )
        for name, env_id in PROCESSES.items()
    ),
    *(
        Row(
            f"{name} vector",
            f"{env_id}, gym.make_vec, {loads.LANES} lanes, info included",
            RATE,
            600_000,
            partial(rate, load=partial(loads.vector, env_id)),
        )
        for name, env_id in PROCESSES.items()
    ),
    *(
        Row(f"{name} single", f"{env_id}, gym.make", RATE, 50_000, partial(rate, load=partial(loads.single, env_id)))
        for name, env_id in PROCESSES.items()
    ),
    Row(
        "equal opportunity",
        "exact thresholds of equal opportunity, 2 groups, 7 scores",
        DURATION,
        5,
        partial(duration, load=loads.equal_opportunity),
        at_least=False,
    ),
    *(
        Row(
            f"{name} measures, {lanes}",
            f"short-term and long-term measure of {env_id} after a step, {lanes} lane{'s' * (lanes > 1)}",
            DURATION,
            3 if lanes > 1 else None,
            partial(duration, load=partial(loads.measures, env_id, lanes=lanes)),
            at_least=False,
        )
        for name, env_id in PROCESSES.items()
        for lanes in (loads.LANES, 1)
    ),
    *(
        Row(
            f"{name} f-ppo, {lanes}",
            f"F-PPO with massaging against Stable-Baselines3's PPO, {env_id}, {lanes} lane{'s' * (lanes > 1)}, 64x64",
            "times",
            0.8,
            partial(against, loads=partial(loads.learners, env_id, lanes=lanes)),
        )
        for name, env_id in PROCESSES.items()
        for lanes in (8, 1)
    ),
    *(
        Row(
            f"{env_id.removesuffix('-v0')} {name}",
            f"{what}, {env_id}, 8 environments",
            "times",
            target,
            partial(against, loads=partial(loads.variants, env_id, one, other)),
            slow=True,
        )
        for env_id in TABLE
        for name, (what, one, other, target) in VARIANTS.items()
    ),
    Row(
        "pursuit rules",
        f"FairPursuit-v0, rules, evader and observations, {loads.LANES} lanes",
        RATE,
        2_000_000,
        partial(rate, load=partial(loads.batch, "FairPursuit-v0")),
    ),
    Row(
        "pursuit arrays",
        f"FairPursuit-v0, rules, evader and observations, {loads.LANES} lanes, against whole arrays of NumPy",
        "times",
        2.7,  # 2 million steps per second where such a prototype made 740,000; a ratio holds on any machine
        partial(against, loads=loads.pursuits),
    ),
    Row(
        "pursuit parallel",
        "FairPursuit-v0, PettingZoo parallel, infos included",
        RATE,
        25_000,
        partial(rate, load=partial(loads.parallel, "FairPursuit-v0")),
    ),
    Row(
        "traffic rules",
        f"FairTraffic-v0, 30 cars, rules and observations, random drivers, {loads.LANES} lanes",
        RATE,
        150_000,
        partial(rate, load=partial(loads.batch, "FairTraffic-v0")),
    ),
    Row(
        "design",
        f"fair-envs design FairTraffic-v0, {loads.TRIALS} configurations, {loads.EPISODES} episodes of 300 steps each",
        "s",
        60,
        search_time,
        at_least=False,
        slow=True,
    ),
    Row(
        "team update",
        f"DDPG, an update of 3 agents, batch {loads.TEAM_BATCH}, against 3 DDPGs of Stable-Baselines3, 1 thread",
        "times",
        1,
        partial(against, loads=loads.team_updates),
    ),
    Row(
        "team training",
        f"FairPursuit-v0, DDPG of 3 agents, {loads.TEAM_LANES} lanes, an update every 80 steps, 1 thread",
        RATE,
        2_000,
        partial(rate, load=loads.team_training),
    ),
    Row("memory", "memory of a lane", "bytes", 4096, lane_size, at_least=False),
    Row("import", "import fair_envs", "s", 0.5, import_time, at_least=False),
    Row("compilation", "gym.make to first step, not compiled", "s", 10, first_start, at_least=False, slow=True),
    Row("cached", "gym.make to first step, compiled before", "s", None, later_start, at_least=False),
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """A row and its measurements."""

    row: Row
    samples: Sequence[Sample]
    missing: str | None = None  # why no repeat, or not every repeat, was measured

    def median(self, field: str = "value") -> float:
        """Return the median over the repeats, or the sum of the values for summed rows; NaN without repeats."""
        values = [float(getattr(sample, field)) for sample in self.samples]
        if not values:
            return NOT_A_NUMBER
        return sum(values) if self.row.summed and field == "value" else statistics.median(values)

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        values = [sample.value for sample in self.samples]
        return (min(values), max(values)) if values else (NOT_A_NUMBER, NOT_A_NUMBER)

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the target; None without a target or a measurement."""
        if self.row.target is None or not self.samples:
            return None
        return self.median() >= self.row.target if self.row.at_least else self.median() < self.row.target

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the printed table."""
        row, (low, high) = self.row, self.spread
        target = "-" if row.target is None else f"{'>=' if row.at_least else '<'} {figure(row.target)}"
        met = {True: "yes", False: "no", None: "-"}[self.met]
        spread = f"{figure(low)} to {figure(high)}"
        return f"{row.what}, {row.unit}", target, figure(self.median()), spread, figure(self.median("by_cpu")), met

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; missing numbers are None."""
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
    """Return the row with a name.

    Raises:
        ValueError: The name is unknown.
    """
    for row in ROWS:
        if row.name == name:
            return row
    listed = "".join(f"\n  {row.name}" for row in ROWS)
    raise ValueError(f"row must be one of the following, got {name!r}{meant(name, [row.name for row in ROWS])}{listed}")


def run_row(row: Row, effort: Effort, *, each: OnProgress = lambda: None) -> Result:
    """Measure a row in a separate process.

    Args:
        row: The row.
        effort: How long to measure.
        each: Called after every repeat.

    Raises:
        RuntimeError: The process failed.
    """
    program = "import sys; from fair_envs.benchmark.rows import report; report(*sys.argv[1:])"
    command = [sys.executable, "-c", program, row.name, str(row.repeats(effort)), str(effort.seconds)]
    threads = dict.fromkeys(THREAD_COUNTS, str(row.threads))
    samples: list[Sample] = []
    missing = None
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, env=child_environment(**threads), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            for line in process.stdout or ():
                reported = json.loads(line)
                missing = reported.get("missing")
                if missing is None:
                    samples.append(Sample(**reported))
                    each()
        if process.returncode != 0:
            errors.seek(0)
            raise RuntimeError(f"row {row.name!r} failed:\n{errors.read()}")
    return Result(row=row, samples=samples, missing=missing)


def report(name: str, repeats: str, seconds: str) -> None:
    """Measure a row in this process; print each repeat as a line of JSON, or the reason why it cannot be measured."""
    try:
        repeat = find_row(name).prepare(float(seconds))
        for _ in range(int(repeats)):
            print(json.dumps(repeat()._asdict()), flush=True)
    except (ImportError, TimeoutError) as error:
        print(json.dumps({"missing": str(error)}), flush=True)


# ------------------------------------------------------------------------------------------------- reports


def table(results: Sequence[Result]) -> Table:
    """Return the table to print."""
    shown = Table("what", box=None, pad_edge=False)
    for column in ("target", "median", "least to largest", "by CPU time", "met"):
        shown.add_column(column, no_wrap=True)
    for result in results:
        shown.add_row(*result.cells())
    return shown


def notes(results: Sequence[Result]) -> list[str]:
    """Return the notes below the table: rows that were not measured, and whether the machine was busy."""
    reported = []
    for result in results:
        if result.missing:
            measured = f"{len(result.samples)} repeats only" if result.samples else "not measured"
            reported.append(f"{result.row.name}: {measured}; {result.missing}")
    others = max(filter(np.isfinite, (result.median("others") for result in results)), default=0.0)
    if others > IDLE:
        reported.append(
            f"Other processes used up to {others:.1f} of {cores()} cores during the measurement: wall-clock times are "
            "longer than on an idle machine."
        )
    return reported


def figure(number: float) -> str:
    """Return a number with about three digits, or - for NaN."""
    if np.isnan(number):
        return "-"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def record(results: Sequence[Result], *, effort: Effort) -> dict[str, Any]:
    """Return the table for JSON, with versions and machine."""
    return {
        "fair_envs": fair_envs.__version__,
        "effort": effort._asdict(),
        "machine": machine(),
        "versions": versions(),
        "rows": [result.as_dict() for result in results],
    }


def machine() -> dict[str, Any]:
    """Return the processor and the number of cores that this process may use."""
    return {"processor": processor(), "cores": cores(), "system": f"{platform.system()} {platform.machine()}"}


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the installed libraries."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number
