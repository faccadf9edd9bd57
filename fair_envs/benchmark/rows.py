"""Benchmarks: the rows of the table that `fair-envs bench` prints.

Each row is measured in a separate process, so rows do not share threads, caches or memory. A repeat measures wall-clock
time and the CPU time of all its threads. If the machine also does other work, CPU time estimates the wall-clock time on
an idle machine.
"""

import dataclasses
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

import fair_envs
from fair_envs.benchmark import loads
from fair_envs.benchmark.loads import Load
from fair_envs.core import Lanes
from fair_envs.experiments.executors import THREAD_COUNTS
from fair_envs.registration import TABLE
from fair_envs.support.aliases import Ints, OnProgress
from fair_envs.support.machine import cores, machine
from fair_envs.support.parameters import meant

ENV_ID = "FairHarvest-v0"
PROCESSES = {"lending": "FairLending-v0", "attention": "FairAttention-v0", "epidemic": "FairEpidemic-v0"}
SEEDS = 10  # trained at once
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

    value: float  # in the row's unit, by wall-clock time; NaN if only the ratio has a meaning
    by_cpu: float  # the same by CPU time; NaN if that has no meaning
    wall: float  # seconds of wall-clock time
    cpu: float  # seconds of CPU time, of all threads and child processes
    others: float  # cores that other processes used meanwhile; NaN if the system does not report it
    ratio: float = NOT_A_NUMBER  # how many times as fast as the peer, by wall-clock time; NaN without a peer
    ratio_by_cpu: float = NOT_A_NUMBER  # the same by CPU time


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
    """A measurement, what it is compared with, and the target of the comparison.

    A target is the least ratio to the peer, which is measured in turn, so that a slow minute slows down both. Rows
    without a peer have a target only if it does not depend on time.
    """

    name: str
    what: str
    unit: str
    prepare: Prepare
    peer: str = ""  # what it is compared with
    target: float | None = None
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


def learner(*, threads: int, ours: bool = True) -> tuple[Any, int]:
    """Return PPO, or Stable-Baselines3's, with networks for both groups, and the agent steps of one rollout."""
    env = fair_envs.make_sb3(
        ENV_ID, n_envs=BATCH, append_group=True, reward_scale=0.1, seed=0, threads=threads, **WORLD
    )
    from fair_envs.baselines.ppo.policies import GroupedPolicy
    from fair_envs.baselines.ppo.ppo import PPO
    from fair_envs.benchmark.peers import PLAIN

    kind: Any = PPO if ours else PLAIN
    model = kind(
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


def training_load(*, ours: bool = True) -> Load:
    """Return a load of rollouts and updates of PPO, or of Stable-Baselines3's; each agent's step counts."""
    model, steps = learner(threads=1, ours=ours)

    def run(times: int) -> None:
        model.learn(times * steps, reset_num_timesteps=False)

    return Load(run, steps)


# --------------------------------------------------------------------------------------------- measurements


class Stopwatch:
    """Measures wall-clock time, CPU time and the CPU time of other processes, from its creation on."""

    def __init__(self) -> None:
        self._busy, self._cpu, self._wall = busy_seconds(), cpu_seconds(), time.perf_counter()

    def sample(self, *, value: float | None = None, steps: float = 0.0, **found: float) -> Sample:
        """Return the measurement: the given numbers, or the steps per second."""
        wall, cpu = time.perf_counter() - self._wall, cpu_seconds() - self._cpu
        others = max(0.0, busy_seconds() - self._busy - cpu) / wall
        if value is None:
            value, found = steps / wall, {"by_cpu": steps / max(cpu, 1e-9), **found}
        return Sample(value, **{"by_cpu": NOT_A_NUMBER, "wall": wall, "cpu": cpu, "others": others, **found})


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
    return inverted(rate(seconds, load=load))


def inverted(repeat: Callable[[], Sample]) -> Callable[[], Sample]:
    """Return a function that measures microseconds instead of a rate."""

    def repeated() -> Sample:
        sample = repeat()
        return sample._replace(value=1e6 / sample.value, by_cpu=1e6 / sample.by_cpu)

    return repeated


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
        return watch.sample(value=NOT_A_NUMBER, ratio=statistics.median(looks))

    return repeat


def against(seconds: float, *, loads: Callable[[], tuple[Load, Load]]) -> Callable[[], Sample]:
    """Return a function that measures the rate of the first load, and how many times as fast as the second it is.

    The ratio is the median of `ROUNDS` short measurements in which they alternate, because a machine's speed changes in
    time. It compares runs of the loads, whatever they count as steps.
    """
    one, other = loads()
    own, others = (repeats_lasting(load, seconds / 2 / ROUNDS) for load in (one, other))

    def repeat() -> Sample:
        watch = Stopwatch()
        rounds = [(clocked(other, others).each(others), clocked(one, own).each(own)) for _ in range(ROUNDS)]
        walls, cpus = zip(*((a.wall / b.wall, a.cpu / b.cpu) for a, b in rounds), strict=True)
        wall, cpu = (statistics.median(getattr(taken, name) for _, taken in rounds) for name in ("wall", "cpu"))
        return watch.sample(
            value=one.steps / wall,
            by_cpu=one.steps / cpu,
            ratio=statistics.median(walls),
            ratio_by_cpu=statistics.median(cpus),
        )

    return repeat


def beside(load: Callable[[], Load], peer: Callable[[], Load]) -> Callable[[], tuple[Load, Load]]:
    """Return a function that makes two loads, for `against`."""
    return lambda: (load(), peer())


def machine_gain(seconds: float) -> Callable[[], Sample]:
    """Return a function that measures the speedup of two threads without shared data, the most that is possible."""
    given = gain_of_arithmetic(seconds / LOOKS)

    def repeat() -> Sample:
        watch = Stopwatch()
        return watch.sample(value=NOT_A_NUMBER, ratio=statistics.median(given() for _ in range(LOOKS)))

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

    def each(self, times: int) -> "Taken":
        """Return the seconds of each of a number of runs."""
        return Taken(self.wall / times, self.cpu / times)


def clocked(load: Load, times: int) -> Taken:
    """Return how many seconds it takes to run a load a number of times."""
    begin, cpu = time.perf_counter(), time.process_time()
    load.run(times)
    return Taken(time.perf_counter() - begin, max(time.process_time() - cpu, 1e-9))


def seeds_together(seconds: float, *, env_id: str, alone_by: str) -> Callable[[], Sample]:
    """Return a function that measures how many times as long as a single training `SEEDS` of PPO at once take.

    Args:
        seconds: Approximate duration of a repeat; less than a full repeat means fewer rollouts.
        env_id: Id of the environment.
        alone_by: Method of the single training.
    """
    from fair_envs.baselines import methods, train_together

    rollouts = 10 if seconds >= FULL.seconds else 2

    def settings(name: str, seed: int) -> Any:
        given = {"env_id": env_id, "algorithm": name, "seed": seed, "lanes": 8, "n_steps": 256}
        config = methods.named(name).configured(given)
        return dataclasses.replace(config, steps=rollouts * config.lanes * config.n_steps * agents_of(env_id))

    together = Load(lambda times: train_together([settings("ppo", k) for k in range(SEEDS)]), 1)
    alone = Load(lambda times: methods.named(alone_by).train(settings(alone_by, 0)), 1)
    train_together([settings("ppo", k) for k in range(2)])
    clocked(alone, 1)

    def repeat() -> Sample:
        watch = Stopwatch()
        one, all_at_once = clocked(alone, 1), clocked(together, 1)
        return watch.sample(value=all_at_once.wall / one.wall, by_cpu=all_at_once.cpu / one.cpu)

    return repeat


def agents_of(env_id: str) -> int:
    """Return the number of rows of a lane for a learner."""
    rules = fair_envs.make_rules(env_id)
    return rules.agents(rules.params) if rules.multi_agent else 1


def lane_size(seconds: float, *, env_id: str) -> Callable[[], Sample]:
    """Return a function that measures the bytes of a lane, which is its whole state."""
    batch = Lanes(fair_envs.make_rules(env_id), BATCH)
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
START = "env = gymnasium.make({!r}); env.reset(seed=0); env.step(env.action_space.sample())"
FIRST_STEP = TIMED.format(before="import gymnasium, fair_envs", timed=START.format(ENV_ID))
WHOLE_START = TIMED.format(before="", timed=f"import gymnasium, fair_envs; {START.format(ENV_ID)}")
START_OF_PEER = TIMED.format(before="", timed=f"import gymnasium; {START.format('CartPole-v1')}")


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
    """Return a function that measures the time from Python's start to the end of the first step, with a full cache."""
    timed(WHOLE_START)
    timed(START_OF_PEER)

    def repeat() -> Sample:
        peer, own = timed(START_OF_PEER), timed(WHOLE_START)
        return own._replace(ratio=peer.value / own.value, ratio_by_cpu=peer.by_cpu / own.by_cpu)

    return repeat


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
        if fronts:
            return watch.sample(value=own.whole - other.whole)
        return watch.sample(value=NOT_A_NUMBER, ratio=other.seconds / own.seconds)

    return repeat


# ------------------------------------------------------------------------------------------------- the rows

RATE, AGENT_RATE, DURATION, NOTHING = "steps/s", "agent steps/s", "µs", ""

CARTPOLES = f"Gymnasium's {BATCH} CartPoles in NumPy"
CARTPOLE = "Gymnasium's CartPole"
SB3 = "Stable-Baselines3's PPO"

VARIANTS = {
    "ppo": ("PPO", "ppo", "sb3-ppo", SB3, 1.3),
    "following": ("PPO that follows a short-term and a long-term measure", "following", "ppo", "PPO", None),
    "heads": ("PPO with a critic of all groups' streams", "elbert", "ppo", "PPO", None),
}
"""Variants of PPO that are compared on every environment: what, the two variants, the second in words, the target."""

NAMES = {env_id: env_id.removesuffix("-v0").removeprefix("Fair").lower() for env_id in TABLE}
FASTER: Mapping[str, float] = {
    "lending vector": 1.5,
    "lending single": 0.6,
    "harvest single": 0.35,
    "harvest parallel": 0.45,
}
"""Least ratios to the peers, by row."""


def of_every_environment() -> Iterator[Row]:
    """Yield the rows that every environment has."""
    kinds: Mapping[str, tuple[str, Any, Any, str]] = {
        "rules": (f"rules and observations, {loads.LANES} lanes", loads.batch, loads.cartpoles, CARTPOLES),
        "vector": (f"gym.make_vec, {loads.LANES} lanes, info included", loads.vector, loads.cartpoles, CARTPOLES),
        "single": ("gym.make", loads.single, loads.cartpole, CARTPOLE),
    }
    for env_id, name in NAMES.items():
        for kind, (what, load, peer, words) in kinds.items():
            pair = beside(partial(load, env_id), peer)
            row = f"{name} {kind}"
            yield Row(row, f"{env_id}, {what}", RATE, partial(against, loads=pair), words, FASTER.get(row))


ROWS: tuple[Row, ...] = (
    *of_every_environment(),
    *(
        Row(
            f"{NAMES[env_id]} parallel",
            f"{env_id}, PettingZoo parallel, infos included",
            RATE,
            partial(against, loads=beside(partial(loads.parallel, env_id), partial(loads.dictionaries, env_id))),
            "making the dictionaries from their entries",
            FASTER.get(f"{NAMES[env_id]} parallel"),
        )
        for env_id in ("FairHarvest-v0", "FairPursuit-v0")
    ),
    Row(
        "rollout",
        f"Stable-Baselines3 rollout, {ENV_ID}, {BATCH} lanes, agents as rows, 64x64 networks",
        AGENT_RATE,
        partial(rate, load=rollout_load),
    ),
    Row(
        "training",
        f"PPO on {ENV_ID}, 64x64 networks for each group, minibatch 16,384, 5 epochs",
        AGENT_RATE,
        partial(against, loads=beside(training_load, partial(training_load, ours=False))),
        SB3,
        1.7,
        slow=True,
    ),
    *(
        Row(
            f"{NAMES[env_id]} seeds, {alone_by}",
            f"{SEEDS} seeds of PPO at once, {env_id}, 8 environments: as long as so many trainings of {alone_by}",
            "trainings",
            partial(seeds_together, env_id=env_id, alone_by=alone_by),
            target=limit,
            at_least=False,
            slow=True,
        )
        for env_id, alone_by, limit in (
            ("FairLending-v0", "ppo", None),
            ("FairLending-v0", "sb3-ppo", 3.5),
            ("FairHarvest-v0", "ppo", None),
        )
    ),
    Row(
        "threads",
        "256 lanes on 2 threads, two cores free",
        NOTHING,
        partial(gain, lanes=256, own_cores=True),
        "1 thread",
        1.5,
    ),
    Row("threads anyway", "256 lanes on 2 threads, at any time", NOTHING, partial(gain, lanes=256), "1 thread"),
    Row("cores", "arithmetic that shares nothing, on 2 threads", NOTHING, machine_gain, "1 thread"),
    *(
        Row(
            f"group notions, {name}",
            f"a decision and all {len(loads.GROUP_NOTIONS)} group notions, {name}, {loads.LANES} lanes",
            DURATION,
            partial(duration, load=partial(loads.group_notions, memory())),
        )
        for name, memory in loads.MEMORIES.items()
    ),
    *(
        Row(
            f"individual notions, {window}",
            f"IF and CSC after a decision, exact, window {window}, 1 lane",
            DURATION,
            partial(duration_of_part, load=partial(loads.individual_notions, window=window, lanes=1)),
        )
        for window in (500, 1000)
    ),
    *(
        Row(
            f"decision and individual notions, {window}, {lanes}",
            f"a decision, IF and CSC, exact, window {window}, {lanes} lane{'s' * (lanes > 1)}",
            DURATION,
            partial(duration, load=partial(loads.individual_notions, window=window, lanes=lanes)),
        )
        for window in (500, 1000)
        for lanes in (1, 10)
    ),
    Row(
        "objectives",
        "FairHiring-v0 with R and SP as objectives, window 1000, gym.make",
        RATE,
        partial(against, loads=beside(loads.one_with_objectives, loads.cartpole)),
        CARTPOLE,
    ),
    Row(
        "eight objectives",
        "FairHiring-v0 with R, SP, EO, OAE, PP, PE, IF, CSC, window 1000, 10 lanes",
        RATE,
        partial(rate, load=partial(loads.objectives, loads.EIGHT, window=1000, lanes=10)),
    ),
    Row(
        "pcn",
        "PCN on FairHiring-v0 for R, SP, IF, window 500, updates included, 2 threads",
        RATE,
        partial(rate, load=loads.trade_offs),
        threads=2,
    ),
    Row(
        "pcn race",
        "PCN on deep-sea-treasure, 20,000 steps",
        NOTHING,
        partial(pcn_race, fronts=False),
        "morl-baselines' PCN",
        2.5,
        slow=True,
    ),
    Row(
        "pcn front",
        "in how many more of the seeds of that race than the other it finds the whole front, summed",
        "seeds",
        partial(pcn_race, fronts=True),
        target=0,
        slow=True,
        summed=True,
    ),
    Row(
        "equal opportunity",
        "exact thresholds of equal opportunity, 2 groups, 7 scores",
        DURATION,
        partial(duration, load=loads.equal_opportunity),
    ),
    *(
        Row(
            f"{name} measures, {lanes}",
            f"short-term and long-term measure of {env_id} after a step, {lanes} lane{'s' * (lanes > 1)}",
            DURATION,
            partial(duration, load=partial(loads.measures, env_id, lanes=lanes)),
        )
        for name, env_id in PROCESSES.items()
        for lanes in (loads.LANES, 1)
    ),
    *(
        Row(
            f"{name} f-ppo, {lanes}",
            f"F-PPO with massaging, {env_id}, {lanes} lane{'s' * (lanes > 1)}, 64x64",
            RATE,
            partial(against, loads=partial(loads.learners, env_id, lanes=lanes)),
            SB3,
            0.8,
        )
        for name, env_id in PROCESSES.items()
        for lanes in (8, 1)
    ),
    *(
        Row(
            f"{env_id.removesuffix('-v0')} {name}",
            f"{what}, {env_id}, 8 environments",
            RATE,
            partial(against, loads=partial(loads.variants, env_id, one, other)),
            words,
            target,
            slow=True,
        )
        for env_id in TABLE
        for name, (what, one, other, words, target) in VARIANTS.items()
    ),
    Row(
        "pursuit arrays",
        f"FairPursuit-v0, rules, evader and observations, {loads.LANES} lanes",
        RATE,
        partial(against, loads=loads.pursuits),
        "the same world in whole arrays of NumPy",
        2.7,
    ),
    Row(
        "design",
        f"fair-envs design FairTraffic-v0, {loads.TRIALS} configurations, {loads.EPISODES} episodes of 300 steps each",
        "s",
        search_time,
        slow=True,
    ),
    Row(
        "team update",
        f"DDPG, an update of 3 agents, batch {loads.TEAM_BATCH}, 1 thread",
        "updates/s",
        partial(against, loads=loads.team_updates),
        "3 DDPGs of Stable-Baselines3",
        1,
    ),
    Row(
        "team training",
        f"FairPursuit-v0, DDPG of 3 agents, {loads.TEAM_LANES} lanes, an update every 80 steps, 1 thread",
        RATE,
        partial(rate, load=loads.team_training),
    ),
    *(
        Row(f"{name} memory", f"{env_id}, memory of a lane", "bytes", partial(lane_size, env_id=env_id))
        for env_id, name in NAMES.items()
    ),
    Row("import", "import fair_envs", "s", import_time),
    Row("compilation", f"{ENV_ID}, gym.make to first step, not compiled", "s", first_start, slow=True),
    Row("cached", f"{ENV_ID}, import to first step, compiled before", "s", later_start, CARTPOLE),
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

    def spread(self, field: str = "value") -> tuple[float, float]:
        """Return the smallest and the largest value over the repeats; NaN without repeats."""
        values = [float(getattr(sample, field)) for sample in self.samples]
        return (min(values), max(values)) if values else (NOT_A_NUMBER, NOT_A_NUMBER)

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the target; None without a target or a measurement."""
        if self.row.target is None or not self.samples:
            return None
        found = self.median("ratio" if self.row.peer else "value")
        return found >= self.row.target if self.row.at_least else found < self.row.target

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the printed table."""
        row, ratio = self.row, ""
        if row.peer:
            low, high = map(figure, self.spread("ratio"))
            ratio = f"{figure(self.median('ratio'))} [{low}, {high}]"
        low, high = map(figure, self.spread())
        value = f"{figure(self.median())} [{low}, {high}] {row.unit}" if row.unit else ""
        target = "" if row.target is None else f"{'>=' if row.at_least else '<'} {figure(row.target)}"
        met = {True: "yes", False: "no", None: ""}[self.met]
        by_cpu = figure(self.median("ratio_by_cpu")) if row.peer else ""
        return row.what, value, row.peer, ratio, by_cpu, target, met

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; missing numbers are None."""
        numbers = {field: self.median(field) for field in Sample._fields}
        for field, prefix in (("value", ""), ("ratio", "ratio_")):
            numbers[f"{prefix}low"], numbers[f"{prefix}high"] = self.spread(field)
        names = ("name", "what", "unit", "peer", "target", "at_least", "threads")
        return {
            **{name: getattr(self.row, name) for name in names},
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
    shown = Table("what", "median [least, largest]", "compared with", box=None, pad_edge=False)
    for column in ("times as fast", "by CPU", "target", "met"):
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
