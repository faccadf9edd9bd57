"""The cells of the study on long-term fairness: trainings with their tests, and tests of designed agents."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.long_term_training import DisparityCurve, LongTermTraining, train_long_term
from fair_envs.baselines.rollouts import Random
from fair_envs.baselines.tasks import study_of
from fair_envs.baselines.training import own_chance
from fair_envs.envs.attention import policies as attention
from fair_envs.envs.epidemic import policies as epidemic
from fair_envs.envs.lending import policies as lending
from fair_envs.evaluation import Policy, VectorEnv
from fair_envs.evaluation.deciders import Always
from fair_envs.experiments.jobs import Job, read_cell
from fair_envs.reproduction.closing import ClosingLender
from fair_envs.reproduction.processes import Learned, World, watch
from fair_envs.seeds import TEST_EACH, TEST_SEEDS

BEHIND = "shielded/"  # before the names of what was kept of the test behind the shield
LIKELIEST = "likeliest/"  # of that with the likeliest actions
TRAINING = "training/"  # and of what was recorded in the course of the training

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
        "proportional": attention.Proportional,
        "greedy": attention.Greedy,
        "uniform": attention.Uniform,
    },
    "epidemic": {
        "Max": partial(epidemic.MostNeighbours, otherwise="hub"),
        "Max, infected neighbours": partial(epidemic.MostInfectedNeighbours, otherwise="hub"),
        "random": Random,
        "nobody": epidemic.Nobody,
    },
}
"""The designed agents by their names in the study."""


@dataclass(frozen=True, kw_only=True)
class DesignedCell(Job):
    """A test of an agent that is written down.

    Attributes:
        world: The process.
        name: One of `AGENTS` there.
        seed: Which test episodes; those of a training of that seed are the same.
        episodes: How many.
        steps: Of each.
    """

    world: World
    name: str
    seed: int
    episodes: int
    steps: int

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write what was kept of the test."""
        chance = np.random.default_rng(self.seed)
        arrays = watch(
            self.world,
            AGENTS[self.world][self.name],
            episodes=self.episodes,
            steps=self.steps,
            seed=TEST_SEEDS + TEST_EACH * self.seed,
            parameters={},
            chance=chance,
        )
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        return {"seconds": 0.0}


@dataclass(frozen=True, kw_only=True)
class LearnedCell(Job):
    """A training and its tests, by itself and behind its shield.

    Attributes:
        world: The process.
        training: What is trained, and how.
        episodes: Test episodes.
        steps: Of each.
        likeliest: Whether it is also tested with its likeliest actions.
    """

    world: World
    training: LongTermTraining
    episodes: int
    steps: int
    likeliest: bool = False

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write what was kept of the tests and of the training, and return how long the training took."""
        started, course = time.perf_counter(), DisparityCurve()
        model: Any = train_long_term(self.training, callback=course)
        seconds = time.perf_counter() - started
        arrays = {**self.test(model), **{TRAINING + name: value for name, value in course.arrays().items()}}
        if model.massager is not None:
            arrays |= {BEHIND + name: value for name, value in self.test(model, shield=True).items()}
        if self.likeliest:
            arrays |= {LIKELIEST + name: value for name, value in self.test(model, likeliest=True).items()}
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        return {"seconds": seconds}

    def test(self, model: Any, *, shield: bool = False, likeliest: bool = False) -> dict[str, NDArray[Any]]:
        """Return what is kept of the test episodes; a shield is that of the training's last rollout."""
        chance, study = np.random.default_rng(self.training.seed), study_of(self.training.env_id)
        last = model.massaging_schedule(max(0, model.rollouts - 1)) if shield else None

        def player(env: VectorEnv) -> Learned:
            behind: dict[str, Any] = {"short": model.short(env.num_envs), "likeliest": likeliest}
            if last is not None:  # made for this environment: one may look into it
                behind |= {"massager": study.of(self.training.signals).massager(env), "threshold": last}  # type: ignore
            return Learned(model.policy, env, chance, **behind)

        with own_chance(1):
            return watch(
                self.world,
                player,
                episodes=self.episodes,
                steps=self.steps,
                seed=TEST_SEEDS + TEST_EACH * self.training.seed,
                parameters=self.training.parameters,
            )


class ProcessResult(NamedTuple):
    """What a cell gave."""

    open: Mapping[str, NDArray[Any]]  # of the test
    shielded: Mapping[str, NDArray[Any]]  # of the test behind the shield; nothing if there is none
    likeliest: Mapping[str, NDArray[Any]]  # of that with the likeliest actions; nothing if there was none
    training: Mapping[str, NDArray[Any]]
    seconds: float


def read_process(folder: Path) -> ProcessResult:
    """Return the result in a cell's folder."""
    record, arrays = read_cell(folder, "arrays.npz")
    parts = {
        prefix: {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}
        for prefix in (BEHIND, LIKELIEST, TRAINING)
    }
    plain = {name: value for name, value in arrays.items() if "/" not in name}
    return ProcessResult(plain, parts[BEHIND], parts[LIKELIEST], parts[TRAINING], record["seconds"])
