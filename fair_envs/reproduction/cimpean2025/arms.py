"""The arms of the study, and which methods learned the tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fair_envs.experiments.seeds import Arm
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.metrics.inference import holm, p_value
from fair_envs.reproduction import study
from fair_envs.reproduction.cimpean2025.jobs import (
    CONSTANT,
    IDENTICAL,
    LEARNERS,
    RANDOM,
    SCALES,
    SCRIPTED,
    UNPLANNED,
    Learner,
    Scale,
    Simple,
    worlds_of,
)
from fair_envs.reproduction.cimpean2025.plays import NOTHING
from fair_envs.reproduction.cimpean2025.published import Setting, World
from fair_envs.reproduction.cimpean2025.published import tables as settings_of_tables
from fair_envs.reproduction.study import PRINTED, REPAIRED

FIRST: Mapping[World, int] = {"hiring": 1, "fraud": 13}  # the world's first table
DISTANCES_OF: Mapping[World, int] = {"hiring": 5, "fraud": 17}
LEARNED = 0.5  # share of the reward between a random and the best scripted policy that counts as learned; our choice
BOTH = 0.01  # least share of both decisions of a policy that is not nearly constant; our choice
ONE_SIDED = 0.025
PCN: Mapping[str, str] = {REPAIRED: "PCN", PRINTED: "PCN as printed"}
"""The names of Pareto Conditioned Networks beside other methods."""


class Candidate(NamedTuple):
    """A method that may have learned a task.

    Attributes:
        arm: Its seeds.
        method: The method whose environment it was trained and tested in.
    """

    arm: Arm
    method: str


@dataclass(frozen=True, kw_only=True)
class Arms(study.Report[Scale]):
    """The arms of the study; their keys are settings, learners or policies."""

    paper = "cimpean2025"
    scales = SCALES
    left_out = ("policy ",)

    def __post_init__(self) -> None:
        """Let numbers that are rounding errors of sums be 0: they would have ranks and intervals."""
        object.__setattr__(self, "arms", {key: without_rounding(arm) for key, arm in self.arms.items()})

    def groups(self, table: int, method: str = REPAIRED) -> dict[str, Arm]:
        """Return the arms of a table's groups of rows with a method; none if they were not all run."""
        settings = settings_of_tables()[table]
        keys = {name: own.as_printed if method == PRINTED else own for name, own in settings.items()}
        if not all(key in self.arms for key in keys.values()):
            return {}
        return {name: self.arms[key] for name, key in keys.items()}

    def settings(self, world: World, method: str = REPAIRED) -> dict[Setting, Arm]:
        """Return the arms of all settings of a world with a method."""
        return {
            key: arm
            for key, arm in self.arms.items()
            if isinstance(key, Setting) and key.world == world and key.printed == (method == PRINTED)
        }

    def default(self, world: World, method: str = REPAIRED) -> Arm | None:
        """Return the setting that the paper varies: R, SP and IF over a window of 500; None if it was not run."""
        setting = settings_of_tables()[DISTANCES_OF[world]]["HEOM"]
        return self.arms.get(setting.as_printed if method == PRINTED else setting)

    def references(self, world: World, method: str = REPAIRED) -> dict[str, Arm]:
        """Return the policies without training in our or in the published environment; none if it was not run."""
        arms = {name: self.arms.get(Simple(world, name, method == PRINTED)) for name in SCRIPTED[world]}
        return {name: arm for name, arm in arms.items() if arm is not None}

    def without(self, world: World) -> dict[str, Candidate]:
        """Return the policies without training in both environments."""
        return {
            f"{name}{', as printed' * (method == PRINTED)}": Candidate(arm, method)
            for method in (REPAIRED, PRINTED)
            for name, arm in self.references(world, method).items()
        }

    def identical(self, world: World) -> dict[str, Arm]:
        """Return identical random policies, by the method in whose environment they act."""
        keys = {method: Simple(world, IDENTICAL, method == PRINTED) for method in (REPAIRED, PRINTED)}
        return {method: self.arms[key] for method, key in keys.items() if key in self.arms}

    def learners(self, world: World) -> dict[str, Candidate]:
        """Return the trainings for the reward only."""
        keys = [key for key in (Learner(world, name) for name in LEARNERS) if key in self.arms]
        return {key.name: Candidate(self.arms[key], PRINTED if key.printed else REPAIRED) for key in keys}

    @property
    def worlds(self) -> list[World]:
        """The environments that were run."""
        return list(worlds_of(self.scale))

    # ------------------------------------------------------------------------------- whether a task is learned

    def span(self, world: World, method: str) -> tuple[float, float]:
        """Return the mean reward of the random and of the best policy without training, in a method's environment.

        Only policies that were planned count.
        """
        planned = {key: arm for key, arm in self.references(world, method).items() if key not in UNPLANNED}
        rewards = {key: float(arm.values("total R").mean()) for key, arm in planned.items()}
        return rewards[RANDOM], max(rewards.values())

    def shares(self, world: World, rewards: Any, method: str) -> Any:
        """Return rewards as shares of the way from the random to the best policy without training."""
        random, best = self.span(world, method)
        return (rewards - random) / (best - random)

    def best_constant(self, world: World, method: str) -> Arm:
        """Return the policy with the largest reward among those that always decide in the same way."""
        constant = [self.references(world, method)[name] for name in CONSTANT[world]]
        return max(constant, key=lambda arm: float(arm.values("total R").mean()))

    def candidates(self, world: World) -> dict[str, Candidate]:
        """Return the methods of which one must learn the task: learners of the reward, and PCN's default setting."""
        found = self.learners(world)
        for method, name in PCN.items():
            arm = self.default(world, method)
            if arm is not None:
                found[name] = Candidate(arm, method)
        return found

    def learned(self, world: World) -> list[str]:
        """Return the methods that learned a task."""
        return self._learned[world]

    @cached_property
    def _learned(self) -> dict[World, list[str]]:
        return {world: self._shown_to_learn(world) for world in self.worlds}

    def _shown_to_learn(self, world: World) -> list[str]:
        """Return the methods that learned a task.

        They are shown to reach the share `LEARNED`, and to earn more than the best constant policy, with Holm's
        correction over the methods.
        """
        candidates = self.candidates(world)
        p_values = holm(
            [
                np.max(
                    [
                        p_value(
                            mean_interval(self.shares(world, arm.values("top total R"), method)), LEARNED, "greater"
                        ),
                        p_value(arm.minus(self.best_constant(world, method), "top total R"), 0, "greater"),
                    ]
                )
                for arm, method in candidates.values()
            ]
        )
        return [name for name, p in zip(candidates, p_values, strict=True) if p <= ONE_SIDED]

    def unlearned(self) -> list[World]:
        """Return the environments that no method learned."""
        return [world for world in self.worlds if not self.learned(world)]

    def reached(self, world: World, arms: Sequence[Arm], method: str, *, share: float = LEARNED) -> Any:
        """Return whether the most rewarded policy of each seed learned the task.

        It must reach the share of the span, earn more than the best constant policy, and not be nearly constant itself,
        which would beat that policy by chance. The policy is chosen in the first test and measured in the second.
        """
        every = [*arms, self.best_constant(world, method)]
        first, second, acted = (together(every, name) for name in ("first total R", "top total R", "top acted"))
        chosen = first[:-1].argmax(axis=0)[np.newaxis]
        top, chance_of_one = (np.take_along_axis(own[:-1], chosen, axis=0)[0] for own in (second, acted))
        varied = (chance_of_one >= BOTH) & (chance_of_one <= 1 - BOTH)
        return (self.shares(world, top, method) >= share) & (top > second[-1]) & varied


def without_rounding(arm: Arm) -> Arm:
    """Return an arm whose numbers below `NOTHING` are 0."""
    rows = [
        replace(row, numbers={name: 0.0 if abs(value) < NOTHING else value for name, value in row.numbers.items()})
        for row in arm.rows
    ]
    return Arm(arm.label, rows)


def together(arms: Sequence[Arm], name: str) -> Any:
    """Return a number of the seeds that all arms have, shape (arms, seeds)."""
    by_seed = [{row.seed: row.numbers.get(name, np.nan) for row in arm.rows} for arm in arms]
    common = [seed for seed in by_seed[0] if all(seed in own for own in by_seed)]
    return np.array([[own[seed] for seed in common] for own in by_seed])


def paired(one: Arm, other: Arm, name: str) -> Estimate:
    """Return the mean difference of a number over the seeds of both arms, whose tests share random numbers."""
    first, second = together([one, other], name)
    return mean_interval(first - second)
