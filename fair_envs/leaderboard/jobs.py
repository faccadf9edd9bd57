"""The cells of the leaderboard: trainings with their evaluations, and evaluations of policies without training."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fair_envs.assessment import Evaluation, evaluate
from fair_envs.assessment.policies import scripted_in
from fair_envs.evaluation.deciders import Rejecting
from fair_envs.experiments.jobs import RECORD, Job
from fair_envs.registration import TABLE
from fair_envs.support.files import read_json
from fair_envs.support.seeds import first_test_seed
from fair_envs.tasks import task_of

REWARD_ONLY = "ppo"
AGAIN = "ppo again"
"""The reward-only method with other seeds: a control that must not differ from it."""

PLANTED = "planted bias"
RANDOM = "random"
SHUFFLES = 50  # relabellings of a noise floor
AGAIN_SEEDS = 1000  # first seed of `AGAIN`
RUN = "run"  # the folder of a cell's run


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

    @classmethod
    def parsed(cls, text: str) -> "ArmKey":
        """Return the arm with a name."""
        env_id, name, *strength = text.split("/")
        return cls(env_id, name, float(strength[0]) if strength else None)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of a leaderboard.

    Attributes:
        seeds: Number of training seeds of each arm.
        strengths: Largest number of strengths of a method.
        budget: Steps of a training as a part of those that the task recommends.
        most: Largest number of steps of a training.
        tested: About how many individuals the test episodes of a seed have, each counted once a step; they are 16 to
            128 episodes.
        tasks: The environments; empty: all.
        methods: Names of the methods; empty: all.
        parameters: Parameters of all environments that override those of their tasks.
    """

    seeds: int
    strengths: int
    budget: float
    most: int = 10**9
    tested: int
    tasks: Sequence[str] = ()
    methods: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def steps(self, env_id: str) -> int:
        """Return the steps of a training."""
        return min(round(self.budget * task_of(env_id).steps), self.most)

    def episodes(self, env_id: str) -> int:
        """Return the number of test episodes of a seed."""
        rules = self.rules(env_id)
        individuals = int(rules.spec.individuals * rules.params.horizon)
        return min(max(round(self.tested / individuals), FEWEST), MOST)

    def rules(self, env_id: str) -> Any:
        """Return the rules of an environment."""
        return task_of(env_id).rules(**self.parameters)


FEWEST, MOST = 16, 128  # test episodes of a seed


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
            seeds=3,
            strengths=2,
            budget=0.2,
            tested=64_000,
            tasks=with_planted_bias(),
            methods=(REWARD_ONLY, "parity"),
        ),
        "small": Scale(seeds=5, strengths=3, budget=0.5, most=640_000, tested=128_000),
        "full": Scale(seeds=10, strengths=4, budget=10, tested=1_000_000),
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

    @property
    def command(self) -> str:
        """The command that trains the same."""
        options = " ".join(
            f"--{name.replace('_', '-')} {value}" for name, value in self.given.items() if name != "parameters"
        )
        return f"fair-envs train {self.method} {self.env_id} {options}"

    def train(self, out: Path) -> None:
        """Train, and write the folder of the run."""
        from fair_envs.baselines.methods import named

        method = named(self.method)
        method.train(method.configured({"env_id": self.env_id, **self.given}), out=out, resume=False, progress=False)
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
        return {"seconds": seconds, **outcome(self.evaluation(part / RUN))}


@dataclass(frozen=True, kw_only=True)
class PolicyCell(Job):
    """An evaluation of a policy without training.

    Attributes:
        env_id: The environment.
        policy: `RANDOM`, `PLANTED`, or the name of a scripted policy.
        seed: Selects the test episodes, which are those of the training with this seed.
        episodes: Number of test episodes.
        parameters: Parameters of the environment that override those of the task.
    """

    env_id: str
    policy: str
    seed: int
    episodes: int
    parameters: Mapping[str, Any]

    @property
    def command(self) -> str:
        """The command that evaluates the same; "" for the planted bias."""
        seed = first_test_seed(self.seed)
        if self.policy == PLANTED:
            return ""
        return f"fair-envs evaluate {self.env_id} --policy {self.policy} --episodes {self.episodes} --seed {seed}"

    def evaluation(self) -> Evaluation:
        """Return the evaluation."""
        policy: Any = self.policy
        if policy == PLANTED:
            policy = Rejecting(task_of(self.env_id).rules(**self.parameters))
        return evaluated(self.env_id, policy, seed=self.seed, episodes=self.episodes, parameters=self.parameters)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Return the numbers of the evaluation."""
        return {"seconds": 0.0, **outcome(self.evaluation())}


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
    """Return the names of the policies without training: random, scripted ones, and the planted bias if possible."""
    return [RANDOM, *scripted_in(task_of(env_id), rules), *([PLANTED] if can_plant(rules) else [])]


def trainings(scale: Scale, env_id: str) -> Iterator[tuple[ArmKey, dict[str, float]]]:
    """Yield the arms of an environment's trainings with their settings, beginning with the reward-only method."""
    from fair_envs.baselines.methods import methods

    rules = scale.rules(env_id)
    of_all = {method.name: method for method in methods()}
    for name in dict.fromkeys([REWARD_ONLY, AGAIN, *(scale.methods or of_all)]):
        method = of_all[REWARD_ONLY if name == AGAIN else name]
        if not method.plays(env_id, rules, {}):
            continue
        if method.strength is None:
            yield ArmKey(env_id, name), {}
        else:
            for value in method.strength.spread(scale.strengths):
                yield ArmKey(env_id, name, value), method.strength.given(value)


def trained(scale: Scale, key: ArmKey, given: Mapping[str, float], seed: int) -> TrainedCell:
    """Return the cell of a training."""
    from fair_envs.baselines.methods import named

    again = key.name == AGAIN
    method, rules = named(REWARD_ONLY if again else key.name), scale.rules(key.env_id)
    steps = scale.steps(key.env_id)
    if rules.multi_agent and not method.counts_agents:
        steps = max(1, steps // rules.spec.individuals)
    own = {"steps": steps, "seed": seed + AGAIN_SEEDS * again, **given}
    return TrainedCell(
        env_id=key.env_id,
        method=method.name,
        given={**own, "parameters": dict(scale.parameters)},
        episodes=scale.episodes(key.env_id),
    )


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

    ``gap`` is the largest difference between two groups in the task's rate, ``noise`` its noise floor, ``limit`` the
    value above which it is beyond noise. ``worst`` and ``best`` are the rates of the worst-off and the best-off group.
    """
    gap = found.gap
    numbers = {"performance": found.performance.value, "gap": gap.value, "noise": gap.noise, "limit": gap.limit}
    rates = {name: rate.value for name, rate in found.rates.items()}
    numbers |= {f"rate of {name}": value for name, value in rates.items()}
    numbers |= {"worst": min(rates.values()), "best": max(rates.values())}
    for section in ("short-term", "long-term"):
        rows = [row for row in found.rows if row.section == section]
        if rows:
            numbers[section] = rows[-1 if section == "long-term" else 0].value
    return numbers


def fingerprint(found: Evaluation) -> str:
    """Return a hash of all numbers of an evaluation, which differs if any bit of one of them does."""
    bits = [[*row.key, float(row.value).hex()] for row in found.rows]
    return hashlib.sha256(json.dumps(bits).encode()).hexdigest()[:16]


def outcome(found: Evaluation) -> dict[str, Any]:
    """Return what a cell's record keeps of an evaluation: the columns, and the fingerprint of the exact result."""
    return {"numbers": numbers_of(found), "result": fingerprint(found)}


def stored_numbers(key: ArmKey, folder: Path) -> Mapping[str, float]:
    """Return the columns of a finished cell."""
    numbers: Mapping[str, float] = read_json(folder / RECORD, dict)["numbers"]
    return numbers
