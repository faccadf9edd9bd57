"""The cells of the leaderboard: trainings with their evaluations, and evaluations of policies without training."""

import csv
import functools
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from fair_envs.assessment import Evaluation, evaluate
from fair_envs.assessment.policies import can_play, scripted_in
from fair_envs.evaluation import as_policy
from fair_envs.evaluation.deciders import Rejecting
from fair_envs.experiments.jobs import RECORD, Job
from fair_envs.registration import TABLE
from fair_envs.support.aliases import Floats
from fair_envs.support.files import read_json
from fair_envs.support.seeds import first_test_seed
from fair_envs.tasks import task_of

REWARD_ONLY = "ppo"
AGAIN = "ppo again"
"""The reward-only method with other seeds: a control that must not differ from it."""

ONE_NETWORK = "ppo, one network"
"""The reward-only method with one network for all agents, on tasks with several."""

PLANTED = "planted bias"
PARTIAL = "partial bias"
REJECTED = {PLANTED: 1.0, PARTIAL: 0.3}
"""Policies that accept everyone, but reject people outside one group with this probability."""

RANDOM = "random"
CONSTANT = "constant "  # prefix of the policies that always take one action
MOST_CONSTANTS = 24  # actions of which each has a constant policy
SHUFFLES = 50  # relabellings of a noise floor
AGAIN_SEEDS = 1000  # first seed of `AGAIN`
RATE_OF = "rate of "  # prefix of the columns with the rates of groups
RUN = "run"  # the folder of a cell's run
LATER = ("selection",)  # sections that evaluations got after rows had been stored, which a row's hash leaves out


class ArmKey(NamedTuple):
    """An arm of the leaderboard.

    Attributes:
        env_id: The task's environment.
        name: The method, or the policy.
        strength: The value of the method's knob; None: it has none.
    """

    env_id: str
    name: str
    strength: float | None = None

    def __str__(self) -> str:
        """Return its name, ``TASK/METHOD`` or ``TASK/METHOD/STRENGTH``."""
        return "/".join([self.env_id, self.name, *([] if self.strength is None else [f"{self.strength:g}"])])


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of a leaderboard.

    Attributes:
        seeds: Number of training seeds of each arm.
        strengths: Largest number of strengths of a method.
        budget: Steps of a training as a part of those that the task recommends.
        budget_of_agents: The same on tasks with several agents, who learn from fewer episodes.
        tested: About how many times the test episodes of a seed count an individual; they are 16 to 256 episodes.
        tasks: The environments; empty: all.
        methods: Names of the methods; empty: all.
        parameters: Parameters of all environments that override those of their tasks.
    """

    seeds: int
    strengths: int
    budget: float
    budget_of_agents: float
    tested: int
    tasks: Sequence[str] = ()
    methods: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    _rules: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def steps(self, env_id: str) -> int:
        """Return the steps of a training."""
        share = self.budget_of_agents if self.rules(env_id).multi_agent else self.budget
        return round(share * task_of(env_id).steps)

    def episodes(self, env_id: str) -> int:
        """Return the number of test episodes of a seed."""
        rules, task = self.rules(env_id), task_of(env_id)
        once = task.rate_of(rules).once
        counted = int(rules.spec.individuals * (1 if once else rules.params.horizon))
        return min(max(round(self.tested / counted), FEWEST), MOST)

    def rules(self, env_id: str) -> Any:
        """Return the rules of an environment, which are made once."""
        if env_id not in self._rules:
            self._rules[env_id] = task_of(env_id).rules(**self.parameters)
        return self._rules[env_id]


FEWEST, MOST = 16, 256  # test episodes of a seed


def with_planted_bias() -> list[str]:
    """Return the environments in which a bias can be planted."""
    return [env_id for env_id in TABLE if can_plant(task_of(env_id).rules())]


def can_plant(rules: Any) -> bool:
    """Return whether a bias can be planted: decisions for or against one person whose group is observed."""
    try:
        Rejecting(rules)
    except ValueError:
        return False
    return True


def scales() -> dict[str, Scale]:
    """Return the available scales, by name."""
    return {
        "smoke": Scale(
            seeds=5,  # with fewer, the controls are too imprecise
            strengths=2,
            budget=0.12,
            budget_of_agents=0.12,
            tested=64_000,
            tasks=with_planted_bias(),
            methods=(REWARD_ONLY, "parity"),
        ),
        "small": Scale(seeds=5, strengths=3, budget=0.5, budget_of_agents=1, tested=256_000),
        "full": Scale(seeds=10, strengths=4, budget=10, budget_of_agents=10, tested=1_000_000),
    }


@dataclass(frozen=True, kw_only=True)
class TrainedCell(Job):
    """A training and its evaluation.

    Attributes:
        env_id: The environment.
        method: Name of the method.
        given: Settings that differ from the method's recommended ones, among them the seed and the steps.
        episodes: Number of test episodes, which each seed has of its own.
    """

    env_id: str
    method: str
    given: Mapping[str, Any]
    episodes: int

    def train(self, out: Path) -> None:
        """Train, and write the folder of the run."""
        train(self.method, self.env_id, self.given, out)
        (out / "model.zip").unlink(missing_ok=True)  # the checkpoint has the same weights, and runs no code when read

    def evaluation(self, run: Path) -> Evaluation:
        """Return the evaluation of a run's policy in the test episodes of its seed."""
        return evaluated(
            self.env_id, str(run), seed=self.given["seed"], episodes=self.episodes, parameters=self.given["parameters"]
        )

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the run, and return the numbers of its evaluation."""
        started = time.process_time()
        self.train(part / RUN)
        seconds = time.process_time() - started
        found = outcome(self.evaluation(part / RUN))
        return {"seconds": seconds, **found, "numbers": {**found["numbers"], **learning(part / RUN)}}


@dataclass(frozen=True, kw_only=True)
class PolicyCell(Job):
    """An evaluation of a policy without training.

    Attributes:
        env_id: The environment.
        policy: `RANDOM`, a name in `REJECTED`, `CONSTANT` and an action, or the name of a scripted policy.
        seed: Selects the test episodes, which are those of the training with this seed.
        episodes: Number of test episodes.
        parameters: Parameters of the environment that override those of the task.
    """

    env_id: str
    policy: str
    seed: int
    episodes: int
    parameters: Mapping[str, Any]

    def evaluation(self) -> Evaluation:
        """Return the evaluation."""
        policy: Any = self.policy
        if policy in REJECTED:
            policy = Rejecting(task_of(self.env_id).rules(**self.parameters), probability=REJECTED[policy])
        elif self.policy.startswith(CONSTANT):
            action = int(self.policy.removeprefix(CONSTANT))
            policy = as_policy(lambda observation, uniforms: np.full(uniforms.shape, action))
        return evaluated(self.env_id, policy, seed=self.seed, episodes=self.episodes, parameters=self.parameters)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Return the numbers of the evaluation."""
        return {"seconds": 0.0, **outcome(self.evaluation())}


def train(method: str, env_id: str, given: Mapping[str, Any], out: Path) -> None:
    """Train a method with settings that differ from its recommended ones, and write the folder of the run."""
    from fair_envs.baselines.methods import named

    chosen = named(method)
    chosen.train(chosen.configured({"env_id": env_id, **given}), out=out, resume=False, progress=False)


def rollouts(run: Path) -> list[dict[str, str]]:
    """Return the metrics of a run's rollouts."""
    with (run / "metrics.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row.get(STEPS)]


def course(rows: Sequence[Mapping[str, str]], column: str) -> tuple[Floats, Floats]:
    """Return the steps of rollouts, and the mean in each of the metrics whose names begin with a text."""
    names = [name for name in (rows[0] if rows else {}) if name.startswith(column)]
    kept = [row for row in rows if names and all(row[name] for name in names)]
    steps = np.array([float(row[STEPS]) for row in kept])
    return steps, np.array([np.mean([float(row[name]) for name in names]) for row in kept])


def learning(run: Path) -> dict[str, float]:
    """Return a run's steps, its rewards at a half, three quarters and the end, and the late means of `FOLLOWED`."""
    rows, found = rollouts(run), {}
    if rows:
        found["steps"] = end = float(rows[-1][STEPS])
        steps, rewards = course(rows, REWARDS)
        if len(steps):
            found |= {f"reward at {at:g}": float(np.interp(at * end, steps, rewards)) for at in (0.5, 0.75, 1)}
        found |= {name: value for name in FOLLOWED if not np.isnan(value := late_mean(rows, name))}
    return found


def late_mean(rows: Sequence[Mapping[str, str]], column: str) -> float:
    """Return the mean of a metric over the rollouts in the last part of a training; NaN if they have none."""
    steps, values = course(rows, column)
    return float(values[steps > (1 - LAST_PART) * steps[-1]].mean()) if len(steps) else np.nan


STEPS, REWARDS = "time/total_timesteps", "rollout/reward"  # columns of a run's metrics
FOLLOWED = ("train/measured", "train/short_term", "train/multiplier", "train/recovery")
"""Metrics that show whether a limit was met."""

Cell = TrainedCell | PolicyCell


def cells(scale: Scale) -> dict[ArmKey, list[Cell]]:
    """Return the cells of all arms, each with its seeds: first policies without training, then the reward-only method.

    Methods that do not train on an environment are left out, see `fair_envs.baselines.methods.supported`.
    """
    found: dict[ArmKey, list[Cell]] = {}
    for env_id in scale.tasks or TABLE:
        tested: dict[str, Any] = {"episodes": scale.episodes(env_id), "parameters": dict(scale.parameters)}
        for name in untrained(env_id, scale.rules(env_id)):
            found[ArmKey(env_id, name)] = [
                PolicyCell(env_id=env_id, policy=name, seed=seed, **tested) for seed in range(scale.seeds)
            ]
        for key, given in trainings(scale, env_id):
            found[key] = [trained(scale, key, given, seed) for seed in range(scale.seeds)]
    return found


def untrained(env_id: str, rules: Any) -> list[str]:
    """Return the names of the policies without training: random, constant and scripted ones, and planted biases.

    There is a constant policy for each of an individual's discrete actions, or for the first and the last one if they
    are more than `MOST_CONSTANTS`. Scripted policies are those of the task, and all others of the environment that can
    play. `REJECTED` are only there if a bias can be planted.
    """
    space, scripted = rules.action_space(rules.params), scripted_in(task_of(env_id), rules)
    actions = range(space.n) if isinstance(space, gym.spaces.Discrete) else []
    constant = [f"{CONSTANT}{k}" for k in (actions if len(actions) <= MOST_CONSTANTS else (0, actions[-1]))]
    others = [name for name in rules.policies if name not in scripted and can_play(name, rules)]
    return [RANDOM, *constant, *scripted, *others, *(REJECTED if can_plant(rules) else ())]


def trainings(scale: Scale, env_id: str) -> Iterator[tuple[ArmKey, dict[str, Any]]]:
    """Yield the arms of an environment's trainings with their settings, beginning with the reward-only method."""
    from fair_envs.baselines.methods import named

    rules = scale.rules(env_id)
    yield ArmKey(env_id, REWARD_ONLY), {}
    yield ArmKey(env_id, AGAIN), {}
    if rules.multi_agent:
        yield ArmKey(env_id, ONE_NETWORK), {"sharing": "all"}
    for name, why in included(scale, env_id).items():
        if why or name == REWARD_ONLY:
            continue
        method = named(name)
        terms, knob = equal_terms(method, env_id, rules), method.strength
        for value in [None] if knob is None else knob.spread(scale.strengths):
            given = {} if knob is None or value is None else knob.given(value)
            yield ArmKey(env_id, name, value), {**given, **terms, **in_unit(method, env_id, value)}


EQUAL_TERMS: Mapping[str, Any] = {"measure": "rate", "signals": "record"}
"""Settings with which methods learn from the number that is compared, and from nothing that others do not have."""


def equal_terms(method: Any, env_id: str, rules: Any) -> dict[str, Any]:
    """Return the settings of `EQUAL_TERMS` that a method has.

    A method that compares returns already keeps to them. A rate with demand only at the end of an episode has no value
    before, so there the measure of methods that follow one is their own.
    """
    own = {one.name for one in method.fields()}
    terms = {name: value for name, value in EQUAL_TERMS.items() if name in own}
    if task_of(env_id).rate_of(rules).once or method.trains_on(env_id, rules, {}) == "returns":
        terms.pop("measure", None)
    return terms


class Unit(NamedTuple):
    """What a method has in its measure, over the last part of trainings that maximise the reward only.

    Attributes:
        value: The measure of the trained policy.
        floor: That of a policy that did not learn, where such decisions treat groups alike; otherwise 0.
    """

    value: float
    floor: float

    @property
    def room(self) -> float:
        """How far the trained policy is above the floor; 0 or less: a limit would be met by chance or never."""
        return self.value - self.floor

    def part(self, share: float) -> float:
        """Return the floor and a part of the room above it; without room, the part of the measure."""
        return self.floor + share * self.room if self.room > 0 else share * self.value


UNITS = Path(__file__).parent / "data" / "units.json"
LAST_PART = 0.25  # of a training, over which its measure is averaged
TYPICAL = 0.2  # the unit for which gains are recommended


@functools.cache
def units() -> dict[str, dict[str, Unit]]:
    """Return the units of tolerances, by environment and the method whose training has the measure."""
    return {
        env_id: {name: Unit(**unit) for name, unit in own.items()} for env_id, own in read_json(UNITS, dict).items()
    }


def in_unit(method: Any, env_id: str, strength: float | None) -> dict[str, float]:
    """Return a method's tolerance in the unit of its measure, and the gains that multiply the measure."""
    if method.tolerance is None:
        return {}
    unit, defaults = units()[env_id][method.tolerance.method], {one.name: one.default for one in method.fields()}
    share = strength if limits(method) and strength is not None else method.tolerance.share
    gains = {name: defaults[name] * TYPICAL / unit.value for name in method.tolerance.gains}
    return {method.tolerance.setting: unit.part(share), **gains}


def limits(method: Any) -> bool:
    """Return whether the knob of a method is its tolerance."""
    return (
        method.strength is not None
        and method.tolerance is not None
        and (method.tolerance.setting in method.strength.settings)
    )


def included(scale: Scale, env_id: str) -> dict[str, str]:
    """Return the methods that train on an environment, with the reason why one is left out, or ""."""
    from fair_envs.baselines.methods import methods

    rules, found = scale.rules(env_id), {}
    for method in methods():
        terms = equal_terms(method, env_id, rules)
        if (scale.methods and method.name not in scale.methods) or not method.plays(env_id, rules, terms):
            continue
        same, least, steps = method.equals(env_id, rules), method.least(rules, {}), steps_of(scale, env_id, method)
        if same:
            found[method.name] = f"equals {same} here"
        elif method.tolerance is not None and limits(method) and units()[env_id][method.tolerance.method].room <= 0:
            found[method.name] = "limits a measure in which even random decisions, which treat groups alike, have more"
        elif steps < least:
            found[method.name] = f"has updated its networks a few times only after {least:,} steps, of {steps:,}"
        else:
            found[method.name] = ""
    return found


def steps_of(scale: Scale, env_id: str, method: Any) -> int:
    """Return a method's steps of a training: where several agents act, those of agents, or of environments."""
    steps, rules = scale.steps(env_id), scale.rules(env_id)
    return steps if method.counts_agents or not rules.multi_agent else max(1, steps // rules.spec.individuals)


def trained(scale: Scale, key: ArmKey, given: Mapping[str, Any], seed: int) -> TrainedCell:
    """Return the cell of a training."""
    from fair_envs.baselines.methods import named

    method = named(REWARD_ONLY if key.name in (AGAIN, ONE_NETWORK) else key.name)
    own = settings_of(scale, key.env_id, method, seed + AGAIN_SEEDS * (key.name == AGAIN), given)
    return TrainedCell(env_id=key.env_id, method=method.name, given=own, episodes=scale.episodes(key.env_id))


def settings_of(scale: Scale, env_id: str, method: Any, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a training that differ from the method's recommended ones."""
    own = {"steps": steps_of(scale, env_id, method), "seed": seed, **given}
    return {**own, "parameters": dict(task_of(env_id).merged(scale.parameters))}


def evaluated(env_id: str, policy: Any, *, seed: int, episodes: int, parameters: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation of a policy in the test episodes of a training seed."""
    return evaluate(
        env_id,
        policy,
        episodes=episodes,
        seed=first_test_seed(seed),
        parameters=task_of(env_id).merged(parameters),
        twins=False,
        shuffles=SHUFFLES,
    )


def numbers_of(found: Evaluation) -> dict[str, float]:
    """Return the columns of the leaderboard.

    ``gap`` is the largest difference between two groups in the task's rate, ``noise`` its noise floor.
    ``worst`` and ``best`` are the rates of the worst-off and the best-off group.
    """
    gap = found.gap
    numbers = {"performance": found.performance.value, "gap": gap.value, "noise": gap.noise}
    rates = {name: rate.value for name, rate in found.rates.items()}
    numbers |= {f"{RATE_OF}{name}": value for name, value in rates.items()}
    numbers |= {"worst": float(np.nanmin([*rates.values()])), "best": float(np.nanmax([*rates.values()]))}
    for section in ("short-term", "long-term"):
        rows = [row for row in found.rows if row.section == section]
        if rows:
            row = rows[-1 if section == "long-term" else 0]
            numbers |= {section: row.value, f"{section} noise": row.noise}
    return numbers


def fingerprint(found: Evaluation) -> str:
    """Return a hash of every bit of the values of an evaluation, without the sections `LATER` and noise floors."""
    bits = [[*row.key, float(row.value).hex()] for row in found.rows if row.section not in LATER]
    return hashlib.sha256(json.dumps(bits).encode()).hexdigest()[:16]


def outcome(found: Evaluation) -> dict[str, Any]:
    """Return what a cell's record keeps of an evaluation: the columns, and the fingerprint of the exact result."""
    return {"numbers": numbers_of(found), "result": fingerprint(found)}


@dataclass(frozen=True, kw_only=True)
class UnitCell(Job):
    """A training for the mean of the measure in which a tolerance is given.

    Attributes:
        env_id: The environment.
        method: Name of the method.
        given: Settings that differ from its recommended ones.
        column: The metric with the mean of the measure in a rollout.
    """

    env_id: str
    method: str
    given: Mapping[str, Any]
    column: str

    def work(self, part: Path) -> Mapping[str, Any]:
        """Return the mean of the measure over the last part of the training."""
        started = time.process_time()
        with TemporaryDirectory() as folder:
            train(self.method, self.env_id, self.given, Path(folder) / RUN)
            found = late_mean(rollouts(Path(folder) / RUN), self.column)
        return {"seconds": time.process_time() - started, "numbers": {"measured": found}}


UNIT_SEEDS = range(2000, 2005)  # which no result uses
UNIT_SEEDS_OF_AGENTS = UNIT_SEEDS[:2]  # whose trainings take longer
FLOOR = "floor"


def unit_cells(scale: Scale) -> dict[tuple[str, str, str], list[UnitCell]]:
    """Return the cells of the units of all tolerances, by environment, method, and the field of `Unit`."""
    from fair_envs.baselines.methods import methods, named

    found = {}
    tolerances = {one.tolerance.method: one.tolerance for one in methods() if one.tolerance is not None}
    for env_id in scale.tasks or TABLE:
        rules = scale.rules(env_id)
        seeds = UNIT_SEEDS_OF_AGENTS if rules.multi_agent else UNIT_SEEDS
        for name, tolerance in tolerances.items():
            method, fields = named(name), {"value": {}, **({FLOOR: tolerance.frozen} if can_plant(rules) else {})}
            terms = equal_terms(method, env_id, rules)
            for of, frozen in fields.items() if method.plays(env_id, rules, terms) else ():
                given = {**terms, **tolerance.off, **frozen}
                found[env_id, name, of] = [
                    UnitCell(
                        env_id=env_id,
                        method=name,
                        given=settings_of(scale, env_id, method, seed, given),
                        column=tolerance.column,
                    )
                    for seed in seeds
                ]
    return found


def stored_numbers(key: object, folder: Path) -> Mapping[str, float]:
    """Return the columns of a finished cell."""
    numbers: Mapping[str, float] = read_json(folder / RECORD, dict)["numbers"]
    return numbers
