"""The cells of the study on long-term fairness: trainings with their tests, and tests of scripted agents."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.pcn.rollouts import Random
from fair_envs.baselines.ppo.long_term_training import DisparityCurve, LongTermTraining, train_long_term
from fair_envs.baselines.ppo.massaging import massager_maker
from fair_envs.baselines.tasks import task_for
from fair_envs.baselines.training import isolated_random_state
from fair_envs.envs.attention import policies as attention
from fair_envs.envs.epidemic import policies as epidemic
from fair_envs.envs.lending import policies as lending
from fair_envs.evaluation import Policy, VectorEnv
from fair_envs.evaluation.deciders import Always
from fair_envs.experiments.jobs import Job, read_cell
from fair_envs.reproduction.hu2024.lender import ClosingLender
from fair_envs.reproduction.hu2024.processes import MassagedPolicy, World, watch
from fair_envs.support.seeds import TEST_EACH, TEST_SEEDS

BEHIND = "shielded/"  # prefix of the results of the test with the shield
MOST_PROBABLE = "likeliest/"  # prefix of the results with the most likely actions
TRAINING = "training/"  # prefix of the records of the training

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
"""The scripted agents, by their names in the study."""


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
        rng = np.random.default_rng(self.seed)
        arrays = watch(
            self.world,
            AGENTS[self.world][self.name],
            episodes=self.episodes,
            steps=self.steps,
            seed=TEST_SEEDS + TEST_EACH * self.seed,
            parameters={},
            rng=rng,
        )
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        return {"seconds": 0.0}


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
    training: LongTermTraining
    episodes: int
    steps: int
    most_probable: bool = False

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the results of the tests and of the training, and return how long the training took."""
        started, course = time.perf_counter(), DisparityCurve()
        model: Any = train_long_term(self.training, callback=course)
        seconds = time.process_time() - started
        arrays = {**self.test(model), **{TRAINING + name: value for name, value in course.arrays().items()}}
        if model.massager is not None:
            arrays |= {BEHIND + name: value for name, value in self.test(model, shield=True).items()}
        if self.most_probable:
            arrays |= {MOST_PROBABLE + name: value for name, value in self.test(model, most_probable=True).items()}
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        return {"seconds": seconds}

    def test(self, model: Any, *, shield: bool = False, most_probable: bool = False) -> dict[str, NDArray[Any]]:
        """Return the results of the test episodes; a shield uses the schedule of the training's last rollout."""
        rng, task = np.random.default_rng(self.training.seed), task_for(self.training.env_id, self.training.signals)
        last = model.massaging_schedule(max(0, model.rollouts - 1)) if shield else None

        def player(env: VectorEnv) -> MassagedPolicy:
            behind: dict[str, Any] = {"short": model.short(env.num_envs), "most_probable": most_probable}
            make = massager_maker(task, model.short.rules)
            if last is not None and make is not None:  # made for this environment, which it may inspect
                behind |= {"massager": make(env), "threshold": last}
            return MassagedPolicy(model.policy, env, rng, **behind)

        with isolated_random_state(1):
            return watch(
                self.world,
                player,
                episodes=self.episodes,
                steps=self.steps,
                seed=TEST_SEEDS + TEST_EACH * self.training.seed,
                parameters=self.training.parameters,
            )


class ProcessResult(NamedTuple):
    """The result of a cell."""

    open: Mapping[str, NDArray[Any]]  # results of the test
    shielded: Mapping[str, NDArray[Any]]  # results with the shield; empty without a shield
    most_probable: Mapping[str, NDArray[Any]]  # results with the most likely actions; empty if not tested
    training: Mapping[str, NDArray[Any]]
    seconds: float


def read_process(folder: Path) -> ProcessResult:
    """Return the result in a cell's folder."""
    record, arrays = read_cell(folder, "arrays.npz")
    parts = {
        prefix: {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}
        for prefix in (BEHIND, MOST_PROBABLE, TRAINING)
    }
    plain = {name: value for name, value in arrays.items() if "/" not in name}
    return ProcessResult(plain, parts[BEHIND], parts[MOST_PROBABLE], parts[TRAINING], record["seconds"])
