"""The cells of the study on long-term fairness: trainings with their tests, and tests of scripted agents."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.methods import named
from fair_envs.baselines.pcn.rollouts import Random
from fair_envs.baselines.ppo.cpo_methods import CPOTraining
from fair_envs.baselines.ppo.long_term_training import (
    DisparityCurve,
    LongTermTraining,
    long_term_settings,
    train_long_term,
)
from fair_envs.baselines.ppo.massaging import massager_maker
from fair_envs.baselines.ppo.objective_training import ObjectiveTraining
from fair_envs.baselines.tasks import task_for
from fair_envs.baselines.training import isolated_random_state
from fair_envs.envs.attention import policies as attention
from fair_envs.envs.epidemic import policies as epidemic
from fair_envs.envs.lending import policies as lending
from fair_envs.evaluation import Policy, VectorEnv
from fair_envs.evaluation.deciders import Always
from fair_envs.experiments.jobs import Job, read_cell, write_arrays
from fair_envs.reproduction.hu2024.allocator import SameUnits
from fair_envs.reproduction.hu2024.lender import ClosingLender
from fair_envs.reproduction.hu2024.processes import ENV_IDS, MassagedPolicy, World, watch
from fair_envs.support.seeds import first_test_seed

Label = str
AnyTraining = LongTermTraining | ObjectiveTraining | CPOTraining

WORLDS: tuple[World, ...] = ("lending", "attention", "epidemic")
BEHIND = "shielded/"  # prefix of the results of the test with the shield
MOST_PROBABLE = "likeliest/"  # prefix of the results with the most likely actions
TRAINING = "training/"  # prefix of the records of the training

# ----------------------------------------------------------------------------------------------------------- the arms

AGENTS: Mapping[World, Mapping[str, Callable[[VectorEnv], Policy]]] = {
    "lending": {
        "EO": lending.EqualOpportunityLender,
        "max-reward": lending.MaxReward,
        "accept all": Always,
        "closing step by step": ClosingLender,
        "random": Random,
    },
    "attention": {
        "round-robin": attention.RoundRobin,
        "last incidents": attention.LastIncidents,
        "proportional": attention.Proportional,
        "greedy": attention.Greedy,
        "constant": SameUnits,
        "uniform": attention.Uniform,
    },
    "epidemic": {
        "Max": partial(epidemic.MostNeighbours, otherwise="hub"),
        "Max, infected neighbours": partial(epidemic.MostInfectedNeighbours, otherwise="hub"),
        "random": Random,
        "nobody": epidemic.Nobody,
    },
}
"""The scripted agents, by their names in the study; each process has a random and a constant one."""

LIMITS: Mapping[World, float] = {"lending": 0.05, "attention": 0.1, "epidemic": 0.05}
"""Tolerances of short-term unfairness of the paper, or of the published code if the paper gives none."""

PAPER_WEIGHTS: Mapping[World, float] = {"lending": 1.0, "attention": 0.15, "epidemic": 0.25}
"""The paper's lambda; in attention, where it gives none, that of the published code."""

AS_CODED, AS_PRINTED = ", as coded", ", as printed"
KNOWN = "F-PPO, known, weight 5"


class Knob(NamedTuple):
    """The setting of an arm that is tuned.

    Attributes:
        names: The fields of the training's settings that have this value.
        values: The values that are tried.
        measured: What the value is, in words.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    measured: str


F_PPO_KNOB = Knob(("weight", "bonus_weight"), (0.25, 1.0, 4.0, 16.0), "weight of the penalty and the bonus")
KNOBS: Mapping[Label, Knob] = {
    "A-PPO": Knob(("value_weight", "decrease_weight"), (0.1, 0.25, 1.0, 4.0), "weight of both terms"),
    "F-PPO": F_PPO_KNOB,
    "PPO-Lagrangian": Knob(("proportional",), (1.0, 5.0, 20.0, 50.0), "gain of the excess"),
    "CPO": Knob(("max_kl",), (0.003, 0.01, 0.03, 0.1), "size of the trust region"),
    "ELBERT": Knob(("alpha",), (1.0, 2.0, 5.0, 20.0), "weight of the squared gap"),
    "return parity": Knob(("alpha",), (0.1, 0.2, 0.5, 1.0), "weight of the gap"),
}
"""The one setting of each arm that is tuned, with as many values for each."""

FOLLOWS: Mapping[Label, Label] = {"F-PPO-L": "F-PPO", "F-PPO, shield": "F-PPO"}
"""Ablations have the setting of the arm that they are compared with."""

TUNED: Mapping[World, Mapping[Label, float]] = {
    "lending": {
        "A-PPO": 0.1,
        "F-PPO": 0.25,
        "PPO-Lagrangian": 50.0,
        "ELBERT": 1.0,
        "return parity": 1.0,
    },
    "attention": {"A-PPO": 4.0, "F-PPO": 1.0, "PPO-Lagrangian": 1.0, "CPO": 0.03},
    "epidemic": {"A-PPO": 0.1, "F-PPO": 0.25, "PPO-Lagrangian": 20.0},
}
"""The chosen values of `KNOBS`.

They come from the scale ``tuning``, whose seeds no result uses: ``fair-envs reproduce hu2024 --scale tuning`` trains
every arm with the same four values and two seeds, and prints this table; its numbers are in
``docs/reproduction/hu2024/tuning.csv.gz``. The rule is in `fair_envs.reproduction.hu2024.tuning`.
"""


def learners(world: World) -> dict[Label, dict[str, Any]]:
    """Return the learners of a process by name, as settings; ``algorithm`` is the method."""
    limit = {"delta": LIMITS[world]}
    printed = {"scaling": "paper", "weight": PAPER_WEIGHTS[world], "bonus_weight": PAPER_WEIGHTS[world]}
    found: dict[Label, Mapping[str, Any]] = {
        "PPO": {"algorithm": "ppo"},
        "A-PPO": {"algorithm": "a-ppo", **limit},
        "F-PPO": {"algorithm": "f-ppo", **limit},
        "F-PPO-L": {"algorithm": "f-ppo-l", **limit},
        "F-PPO, shield": {"algorithm": "f-ppo", "massaging": "shield", **limit},
        "F-PPO" + AS_PRINTED: {"algorithm": "f-ppo", **limit, **printed},
        "F-PPO-L" + AS_PRINTED: {"algorithm": "f-ppo-l", **limit, **printed},
        **{name + AS_CODED: as_coded(world, name) for name in LEARNED},
        **CONSTRAINED[world],
    }
    return {name: {**given, **tuned(world, FOLLOWS.get(name, name))} for name, given in found.items()}


def tuned(world: World, name: Label) -> dict[str, float]:
    """Return the tuned settings of an arm; none if it has no knob."""
    return dict.fromkeys(KNOBS[name].names, TUNED[world][name]) if name in TUNED[world] else {}


LEARNED: Mapping[Label, str] = {"PPO": "ppo", "A-PPO": "a-ppo", "F-PPO": "f-ppo"}
"""The paper's learners, by their methods."""

LABELS: Mapping[str, Any] = {"parameters": {"feedback": "full"}}  # all past labels; actions never depend on them
CONSTRAINED: Mapping[World, Mapping[Label, Mapping[str, Any]]] = {
    "lending": {
        "PPO-Lagrangian": {"algorithm": "lagrangian", "measure": "rate", "limit": LIMITS["lending"], **LABELS},
        "ELBERT": {"algorithm": "elbert", **LABELS},
        "return parity": {"algorithm": "parity", **LABELS},
        KNOWN: {
            "algorithm": "f-ppo",
            "signals": "known",
            "weight": 5.0,
            "bonus_weight": 5.0,
            "delta": LIMITS["lending"],
        },
    },
    "attention": {
        "PPO-Lagrangian": {"algorithm": "lagrangian", "measure": "short", "limit": LIMITS["attention"]},
        "CPO": {"algorithm": "cpo", "measure": "short", "limit": LIMITS["attention"]},
    },
    "epidemic": {"PPO-Lagrangian": {"algorithm": "lagrangian", "measure": "short", "limit": LIMITS["epidemic"]}},
}
"""The other methods of each process, and in lending the one variant of F-PPO that earlier results were promising for.

In lending, the limit is on the gap of the groups' expected rates. A limit of 0.05 on the mean gap of a window cannot be
met: that gap is above 0.05 even if both groups are treated alike. The paper has CPO in attention only.
"""

CODED = ("parameters", "signals", "scaling", "delta", "value_weight", "decrease_weight", "weight", "bonus_weight")
"""The published code's settings for agents "as coded"; its networks and step sizes are only in the full scale."""

BACKBONE = ("lanes", "n_steps", "batch_size", "learning_rate", "trunk", "pi", "vf")
"""The published code's settings for all agents at the full scale."""


def as_coded(world: World, name: Label) -> dict[str, Any]:
    """Return the settings of the published code for one of the paper's learners."""
    coded = long_term_settings(ENV_IDS[world], preset="published", algorithm=LEARNED[name])
    return {"algorithm": LEARNED[name], **{one: getattr(coded, one) for one in CODED}}


# ---------------------------------------------------------------------------------------------------------- the scales

TEST: Mapping[World, tuple[int, int]] = {"lending": (10, 10_000), "attention": (10, 1000), "epidemic": (200, 20)}
"""Number of test episodes of each cell, and of steps in each, as in the paper."""

TRAINING_HORIZON: Mapping[World, int] = {"lending": 2000, "attention": 1000, "epidemic": 20}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of each cell, and of sets of test episodes of scripted agents.
        steps: Environment steps of a training, by process.
        tests: Number of test episodes of a cell, and of steps in each, by process.
        training: Other settings of the trainings; None: the published code's networks, rollouts and step sizes.
        tuning: Whether PPO and every value of every knob are run, in place of the study's arms.
        first_seed: The first training seed.
    """

    seeds: int
    steps: Mapping[World, int]
    tests: Mapping[World, tuple[int, int]]
    training: Mapping[str, Any] | None = field(default_factory=dict)
    tuning: bool = False
    first_seed: int = 0


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        seeds=2,
        steps=dict.fromkeys(WORLDS, 4096),
        tests={"lending": (4, 700), "attention": (4, 100), "epidemic": (20, 20)},
    ),
    "small": Scale(seeds=20, steps=dict.fromkeys(WORLDS, 100_000), tests=TEST),
    "full": Scale(
        seeds=20,
        steps={"lending": 700_000, "attention": 2_000_000, "epidemic": 500_000},
        tests=TEST,
        training=None,
    ),
    "tuning": Scale(seeds=2, steps=dict.fromkeys(WORLDS, 100_000), tests=TEST, tuning=True, first_seed=1000),
}


class Key(NamedTuple):
    """An arm: its process and its name."""

    world: World
    label: Label

    def __str__(self) -> str:
        """Return its name in the table of seeds."""
        return f"{self.world} {self.label}"


def cells(scale: Scale) -> dict[Key, list[Job]]:
    """Return the study's cells: each agent on each process, with its seeds."""
    found: dict[Key, list[Job]] = {}
    seeds = range(scale.first_seed, scale.first_seed + scale.seeds)
    for world in WORLDS:
        episodes, steps = scale.tests[world]
        shared: dict[str, Any] = {"world": world, "episodes": episodes, "steps": steps}
        if not scale.tuning:
            for name in AGENTS[world]:
                found[Key(world, name)] = [ScriptedCell(name=name, seed=seed, **shared) for seed in seeds]
        for name, given in (tried(world) if scale.tuning else learners(world)).items():
            likely = world == "attention" and name in (*LEARNED, "CPO") and not scale.tuning
            found[Key(world, name)] = [
                LearnedCell(training=training_of(scale, world, given, seed), most_probable=likely, **shared)
                for seed in seeds
            ]
    return found


def tried(world: World) -> dict[Label, dict[str, Any]]:
    """Return PPO, and every tuned arm with each value of its knob, by name."""
    arms = learners(world)
    found = {"PPO": arms["PPO"]}
    for name in TUNED[world]:
        for value in KNOBS[name].values:
            found[tried_name(name, value)] = {**arms[name], **dict.fromkeys(KNOBS[name].names, value)}
    return found


def tried_name(name: Label, value: float) -> Label:
    """Return the name of an arm with a value of its knob."""
    return f"{name} = {value:g}"


def training_of(scale: Scale, world: World, given: Mapping[str, Any], seed: int) -> AnyTraining:
    """Return a training of a process."""
    kind = LongTermTraining if given["algorithm"] in LONG_TERM else named(given["algorithm"]).settings
    backbone = dict(published_backbone(world) if scale.training is None else scale.training)
    if kind is not LongTermTraining and "pi" in backbone:
        backbone["net_arch"] = backbone["pi"]
    known = {one.name for one in fields(kind)}
    settings = {
        "env_id": ENV_IDS[world],
        "steps": scale.steps[world],
        "seed": seed,
        "activation": "relu",  # of all arms, as in the published code
        **{name: value for name, value in backbone.items() if name in known},
        **given,
        "parameters": {"horizon": TRAINING_HORIZON[world], **given.get("parameters", {})},
    }
    made: AnyTraining = kind(**settings)
    return made


LONG_TERM = frozenset({*LEARNED.values(), "f-ppo-l"})
"""The methods whose settings are a `LongTermTraining`; they have one backbone with the others."""


def published_backbone(world: World) -> dict[str, Any]:
    """Return the networks, rollouts and step sizes of the published code."""
    published = long_term_settings(ENV_IDS[world], preset="published")
    return {one: getattr(published, one) for one in BACKBONE}


# ----------------------------------------------------------------------------------------------------------- the cells


@dataclass(frozen=True, kw_only=True)
class ScriptedCell(Job):
    """A test of a scripted agent.

    Attributes:
        world: The process.
        name: One of the process's `AGENTS`.
        seed: Selects the test episodes; a training with this seed uses the same ones.
        episodes: Number of episodes.
        steps: Steps of each episode.
    """

    world: World
    name: str
    seed: int
    episodes: int
    steps: int

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the results of the test."""
        started, rng = time.process_time(), np.random.default_rng(self.seed)
        arrays = watch(
            self.world,
            AGENTS[self.world][self.name],
            episodes=self.episodes,
            steps=self.steps,
            seed=first_test_seed(self.seed),
            parameters={},
            rng=rng,
        )
        write_arrays(part, arrays)
        return {"seconds": time.process_time() - started}


@dataclass(frozen=True, kw_only=True)
class LearnedCell(Job):
    """A training and its tests, without and with its shield (massaging at test time).

    Attributes:
        world: The process.
        training: The settings of the training.
        episodes: Number of test episodes.
        steps: Steps of each episode.
        most_probable: Whether it is also tested with its most likely actions.
    """

    world: World
    training: AnyTraining
    episodes: int
    steps: int
    most_probable: bool = False

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return self.training.seed

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the results of the tests and of the training, and return the CPU time of both."""
        started = time.process_time()
        model, course = self._trained()
        arrays = {**self.test(model), **{TRAINING + name: value for name, value in course.items()}}
        if model.massager is not None:
            arrays |= {BEHIND + name: value for name, value in self.test(model, shield=True).items()}
        if self.most_probable:
            arrays |= {MOST_PROBABLE + name: value for name, value in self.test(model, most_probable=True).items()}
        write_arrays(part, arrays)
        return {"seconds": time.process_time() - started}

    def _trained(self) -> tuple[Any, Mapping[str, NDArray[Any]]]:
        """Return the trained model, and the disparity in the course of a training for long-term fairness."""
        if isinstance(self.training, LongTermTraining):
            course = DisparityCurve()
            return train_long_term(self.training, callback=course), course.arrays()
        return named(self.training.algorithm).train(self.training), {}

    def test(self, model: Any, *, shield: bool = False, most_probable: bool = False) -> dict[str, NDArray[Any]]:
        """Return the results of the test episodes; a shield uses the schedule of the training's last rollout."""
        rng = np.random.default_rng(self.training.seed)

        def player(env: VectorEnv) -> MassagedPolicy:
            behind = self._shield(model, env) if shield else {}
            return MassagedPolicy(model.policy, env, rng, most_probable=most_probable, **behind)

        with isolated_random_state(1):
            return watch(
                self.world,
                player,
                episodes=self.episodes,
                steps=self.steps,
                seed=first_test_seed(self.training.seed),
                parameters=self.training.parameters,
            )

    def _shield(self, model: Any, env: VectorEnv) -> dict[str, Any]:
        """Return the settings of a policy with the model's shield; it is made for the environment that it inspects."""
        assert isinstance(self.training, LongTermTraining)
        make = massager_maker(task_for(self.training.env_id, self.training.signals), model.short.rules)
        last = model.massaging_schedule(max(0, model.rollouts - 1))
        if last is None or make is None:
            return {}
        return {"short": model.short(env.num_envs), "massager": make(env), "threshold": last}


class ProcessResult(NamedTuple):
    """The result of a cell."""

    open: Mapping[str, NDArray[Any]]  # results of the test
    shielded: Mapping[str, NDArray[Any]]  # results with the shield; empty without a shield
    most_probable: Mapping[str, NDArray[Any]]  # results with the most likely actions; empty if not tested
    training: Mapping[str, NDArray[Any]]
    seconds: float


def read_process(folder: Path) -> ProcessResult:
    """Return the result in a cell's folder."""
    record, arrays = read_cell(folder)
    parts = {
        prefix: {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}
        for prefix in (BEHIND, MOST_PROBABLE, TRAINING)
    }
    plain = {name: value for name, value in arrays.items() if "/" not in name}
    return ProcessResult(plain, parts[BEHIND], parts[MOST_PROBABLE], parts[TRAINING], record["seconds"])


DRAWN: Mapping[World, Sequence[Label]] = {
    "lending": ("EO", "PPO", "A-PPO", "F-PPO", "F-PPO" + AS_PRINTED, "F-PPO" + AS_CODED, "ELBERT"),
    "attention": ("CPO", "A-PPO", "PPO", "F-PPO", "F-PPO" + AS_PRINTED, "F-PPO" + AS_CODED),
    "epidemic": ("Max", "nobody", "PPO", "A-PPO", "F-PPO", "F-PPO" + AS_PRINTED, "F-PPO" + AS_CODED),
}
"""The agents whose curves are kept and drawn: those of the paper, and the printed and published method."""
