"""The cells of the study on fair-PPO: trainings with their tests, and tests of policies without training."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import fair_envs
from fair_envs.baselines.ppo.fair_ppo import ModeName
from fair_envs.baselines.training import Training
from fair_envs.envs.harvest.params import Observation
from fair_envs.envs.harvest.rules import STAY
from fair_envs.evaluation import Policy, RandomPolicy, as_policy, scripted
from fair_envs.experiments.jobs import Job, write_arrays
from fair_envs.reproduction.experiment import Cell, played_arrays, read_result
from fair_envs.reproduction.measures import numbers

Notion = Literal["dp", "csp", "cf"]  # the notions that are penalised, by their short names
Variant = ModeName | Literal["own credit", "one network"]  # a mode; "shaped" with own credit; PPO with one network
Weights = tuple[float, float]  # alpha and beta

OBSERVATIONS: tuple[Observation, ...] = ("ten", "extended")
OTHERS: tuple[Observation, ...] = ("neighbours", "timing", "without_reward")
"""Observations for PPO only: with one part of what "extended" adds to "ten", and without the last reward."""

PENALTIES: tuple[Notion, ...] = ("dp", "csp", "cf")
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
PPO: Weights = (0.0, 0.0)
DIAGONAL: tuple[Weights, ...] = ((0.25, 0.25), (0.5, 0.5), (1.0, 1.0))
ALONE: tuple[Weights, ...] = ((1.0, 0.0), (0.0, 1.0))  # each component of the penalty without the other
UNTRAINED = ("random", "stay", "reactive", "greedy")
ACTIONS = ("stay", "up", "down", "left", "right", "ripen/eat", "recolour", "obstruct")


class Point(NamedTuple):
    """An arm: what the agents observe, what is penalised, in which mode, and the weights."""

    observation: Observation
    penalty: Notion
    variant: Variant
    alpha: float
    beta: float

    @property
    def weights(self) -> Weights:
        """The weights (alpha, beta)."""
        return self.alpha, self.beta

    def __str__(self) -> str:
        """Return its name in the table of seeds."""
        return f"{self.observation} {self.penalty} {self.label}"

    @property
    def label(self) -> str:
        """Its name in tables and plots."""
        if self.weights == PPO:
            return "PPO" if self.variant == "shaped" else f"PPO, {self.variant}"
        text = f"({self.alpha:g}, {self.beta:g})"
        return text if self.variant == "shaped" else f"{self.variant} {text}"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of each arm.
        steps: Agent steps of each training.
        horizon: Steps of an episode, in training and test.
        episodes: Number of test episodes of each training; those of different seeds are different.
        points: Weights of each penalty in the mode ``shaped``, in addition to PPO.
        printed: Weights of each penalty in the mode ``paper_literal``.
        variants: Other modes, run at (1, 1) with the penalty on demographic parity.
        curve: Weights alpha at which the penalty on demographic parity is run with beta = 0.
        training: Other settings of the training.
        parameters: Other parameters of the environment.
        penalties: The penalties in whose worlds PPO is run.
        ablated: Whether PPO is also run with the observations `OTHERS`, and with one network for all agents.
    """

    seeds: int
    steps: int
    horizon: int
    episodes: int
    points: Mapping[Notion, Sequence[Weights]]
    printed: Mapping[Notion, Sequence[Weights]]
    variants: Sequence[Variant] = ()
    curve: Sequence[float] = ()
    training: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    penalties: Sequence[Notion] = PENALTIES
    ablated: bool = True


SMALL: Mapping[str, Any] = {"lanes": 8, "n_steps": 100, "batch_size": 4096}
SCALES: dict[str, Scale] = {
    "smoke": Scale(
        seeds=2,
        steps=64_000,
        horizon=100,
        episodes=4,
        points={"dp": [(1.0, 1.0)]},
        printed={"dp": [(1.0, 1.0)]},
        training=SMALL,
    ),
    "small": Scale(
        seeds=10,
        steps=1_280_000,  # 107 episodes of 40 agents
        horizon=300,
        episodes=32,
        points={
            "dp": [*DIAGONAL, (0.0, 0.25), *ALONE],
            "csp": [*DIAGONAL, (0.75, 0.25), (0.5, 1.0), *ALONE],
            "cf": [*DIAGONAL, (0.75, 0.5), (0.0, 0.75), (0.25, 0.75)],
        },
        printed={"dp": [(1.0, 1.0), (0.0, 0.25)], "csp": [(1.0, 1.0)], "cf": [(1.0, 1.0)]},
        variants=("authors",),
        training=SMALL,
    ),
    "long": Scale(  # four times the training, for what may only be late
        seeds=5,
        steps=5_120_000,
        horizon=300,
        episodes=32,
        points={"dp": [(0.25, 0.25), (1.0, 1.0)]},
        printed={},
        training=SMALL,
        penalties=("dp",),
        ablated=False,
    ),
    "full": Scale(
        seeds=10,
        steps=120_000_000,  # 1000 episodes of 3000 steps of 40 agents, as in the paper
        horizon=3000,
        episodes=1000,
        points={penalty: list(product(GRID, GRID))[1:] for penalty in PENALTIES},
        printed={penalty: list(product(GRID, GRID))[1:] for penalty in PENALTIES},
        variants=("own credit", "weighted", "p3o", "authors"),
        curve=(1.5, 2.0, 3.0, 4.0),
        training={"lanes": 8, "n_steps": 250, "batch_size": 16_384},
    ),
}


@dataclass(frozen=True, kw_only=True)
class UntrainedCell(Job):
    """A test of a policy that needs no training, in the episodes of the training with the same seed.

    Attributes:
        name: One of `UNTRAINED`.
        seed: Selects the test episodes.
        episodes: Number of test episodes.
        parameters: Parameters of the environment.
    """

    name: str
    seed: int
    episodes: int
    parameters: Mapping[str, Any]

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the test's arrays."""
        started = time.process_time()
        rules = fair_envs.make_rules("FairHarvest-v0", **self.parameters)
        arrays = played_arrays(self._policy(rules), rules, episodes=self.episodes, seed=self.seed)
        write_arrays(part, {**arrays, "learning": np.zeros((0, 3))})
        return {"seconds": time.process_time() - started}

    def _policy(self, rules: Any) -> Policy:
        if self.name == "random":
            policy: Policy = RandomPolicy(rules)
        elif self.name == "stay":
            policy = as_policy(lambda observation, uniforms: np.full(uniforms.shape, STAY))
        else:
            policy = scripted(rules, self.name)
        policy.append_group = True  # none of them reads what follows the ten numbers
        return policy


def cells(scale: Scale) -> dict[Point | str, list[Cell] | list[UntrainedCell]]:
    """Return the study's cells: each arm, and each policy without training, with its seeds."""
    found: dict[Point | str, list[Any]] = {}
    for name in UNTRAINED:
        found[name] = [untrained(scale, name, seed) for seed in range(scale.seeds)]
    points = [point for observation in OBSERVATIONS for point in points_of(scale, observation)]
    if scale.ablated:
        points += [Point(observation, "dp", "shaped", *PPO) for observation in OTHERS]
        points += [Point(observation, "dp", "one network", *PPO) for observation in OBSERVATIONS]
    for point in points:
        found[point] = [cell(scale, point, seed) for seed in range(scale.seeds)]
    return found


def points_of(scale: Scale, observation: Observation) -> list[Point]:
    """Return the arms with an observation."""
    found = [Point(observation, penalty, "shaped", *PPO) for penalty in scale.penalties]
    found += [Point(observation, p, "shaped", *weights) for p, several in scale.points.items() for weights in several]
    found += [
        Point(observation, p, "paper_literal", *weights) for p, several in scale.printed.items() for weights in several
    ]
    found += [Point(observation, "dp", variant, 1.0, 1.0) for variant in scale.variants]
    found += [Point(observation, "dp", "shaped", alpha, 0.0) for alpha in scale.curve]
    return list(dict.fromkeys(found))


def cell(scale: Scale, point: Point, seed: int) -> Cell:
    """Return one cell; with weights of 0, fair-PPO equals PPO bit for bit, and the penalty only selects the worlds."""
    own = point.variant == "own credit"
    training = Training(
        env_id="FairHarvest-v0",
        parameters={**scale.parameters, "horizon": scale.horizon, "observation": point.observation},
        algorithm="fair-ppo",
        steps=scale.steps,
        penalty="dp" if point.weights == PPO and point.penalty == "csp" else point.penalty,  # the same training
        mode="shaped" if point.variant in ("own credit", "one network") else point.variant,  # type: ignore[arg-type]
        credit="own" if own else "common",
        sharing="all" if point.variant == "one network" else "groups",
        alpha=point.alpha,
        beta=point.beta,
        seed=seed,
        **scale.training,
    )
    return Cell(training=training, episodes=scale.episodes)


def untrained(scale: Scale, name: str, seed: int) -> UntrainedCell:
    """Return the test of a policy without training."""
    return UntrainedCell(
        name=name, seed=seed, episodes=scale.episodes, parameters={**scale.parameters, "horizon": scale.horizon}
    )


def numbers_of(key: Point | str, folder: Path) -> dict[str, float]:
    """Return the numbers of a finished cell."""
    result = read_result(folder)
    horizon = result.cell.get("training", result.cell)["parameters"]["horizon"]
    return numbers(result, horizon=horizon, actions=ACTIONS)
