"""Scores of methods over tasks: normalised performance and unfairness, areas, levelling down, and simple rules."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from fair_envs.experiments.seeds import Arm
from fair_envs.leaderboard.jobs import AGAIN, PLANTED, RANDOM, REWARD_ONLY, ArmKey
from fair_envs.metrics import Estimate
from fair_envs.metrics.inference import (
    interquartile_mean,
    p_value,
    probability_of_improvement,
    stratified_bootstrap,
    welch,
)
from fair_envs.support.aliases import Floats
from fair_envs.tasks import task_of

LITTLE = 0.05
"""Largest loss of performance, on the scale from random to reward-only, at which a rule counts as equally good."""


@dataclass(frozen=True)
class TaskBoard:
    """The arms of a task.

    Attributes:
        env_id: The task's environment.
        arms: The arms by their keys.
        untrained: Names of the policies without training.
        bounds: Those of them that use the ground truth.
    """

    env_id: str
    arms: Mapping[ArmKey, Arm]
    untrained: Sequence[str]
    bounds: frozenset[str] = frozenset()

    @property
    def random(self) -> Arm:
        """The random policy."""
        return self.arms[ArmKey(self.env_id, RANDOM)]

    @property
    def reward_only(self) -> Arm:
        """The reward-only method."""
        return self.arms[ArmKey(self.env_id, REWARD_ONLY)]

    @property
    def rules(self) -> dict[str, Arm]:
        """The scripted policies that use no ground truth, by name."""
        return {
            name: self.arms[ArmKey(self.env_id, name)]
            for name in self.untrained
            if name not in self.bounds and name not in (RANDOM, PLANTED)
        }

    def of(self, method: str) -> dict[ArmKey, Arm]:
        """Return the arms of a method, from weak to strong."""
        return {key: arm for key, arm in self.arms.items() if key.name == method}

    @cached_property
    def methods(self) -> list[str]:
        """The trained methods, without the reward-only one and its control."""
        names = dict.fromkeys(key.name for key in self.arms)
        return [name for name in names if name not in (*self.untrained, REWARD_ONLY, AGAIN)]

    @cached_property
    def unscored(self) -> str:
        """Why the task has no scores; "": it has."""
        gained = welch(self.reward_only.values("performance"), self.random.values("performance"))
        if not p_value(gained, 0, "greater") <= 0.025:
            return "the reward-only method is not shown to perform better than random actions"
        beyond = welch(self.reward_only.values("gap"), self.reward_only.values("limit"))
        if not p_value(beyond, 0, "greater") <= 0.025:
            return "the gap of the reward-only method is not shown to be beyond noise"
        return ""

    def performance(self, arm: Arm) -> Floats:
        """Return each seed's performance: 0 is the random policy's mean, 1 the reward-only method's."""
        low, high = (own.values("performance").mean() for own in (self.random, self.reward_only))
        return np.asarray((arm.values("performance") - low) / (high - low))

    def unfairness(self, arm: Arm) -> Floats:
        """Return each seed's gap: 0 is fair, 1 the reward-only method's mean."""
        return np.asarray(arm.values("gap") / self.reward_only.values("gap").mean())

    def areas(self, method: str) -> Floats:
        """Return each seed's area under the price-of-fairness curve: 0 is the reward-only method, 1 the ideal.

        It is the part of the rectangle between random and reward-only performance, and between no gap and the gap of
        the reward-only method, that the strengths of a method dominate (a hypervolume). Performance above that of the
        reward-only method counts as equal to it.
        """
        points = np.stack(
            [
                np.stack([np.clip(self.performance(arm), 0, 1), np.clip(1 - self.unfairness(arm), 0, 1)], axis=-1)
                for arm in self.of(method).values()
            ],
            axis=1,
        )  # (seeds, strengths, 2)
        return np.array([_dominated(own) for own in points])

    def best(self, method: str) -> ArmKey:
        """Return the strength of a method with the largest area, of its means."""
        arms = self.of(method)

        def area(key: ArmKey) -> float:
            arm = arms[key]
            return float(np.clip(self.performance(arm).mean(), 0, 1) * np.clip(1 - self.unfairness(arm).mean(), 0, 1))

        return max(arms, key=area)

    def levelling(self, arm: Arm) -> "Levelling":
        """Return whose rates changed, compared with the reward-only method."""
        base = self.reward_only
        groups = [name for name in base.names if name.startswith("rate of ")]
        means = {name: np.nanmean(base.values(name)) for name in groups}
        ahead, behind = max(means, key=lambda name: means[name]), min(means, key=lambda name: means[name])
        return Levelling(
            ahead=ahead.removeprefix("rate of "),
            behind=behind.removeprefix("rate of "),
            loss=base.minus(arm, ahead),
            gain=arm.minus(base, behind),
        )

    def as_good(self, arm: Arm) -> list[str]:
        """Return the scripted rules, without ground truth, that do as well as an arm.

        A rule does as well if its mean performance is at most `LITTLE` lower, on the scale from random to reward-only,
        and its mean gap at most the noise floor larger.
        """
        performance, gap = self.performance(arm).mean(), arm.values("gap").mean()
        floor = max(arm.values("noise").mean(), 0.0)
        return [
            name
            for name, rule in self.rules.items()
            if self.performance(rule).mean() >= performance - LITTLE and rule.values("gap").mean() <= gap + floor
        ]


class Levelling(NamedTuple):
    """Who paid for a smaller gap.

    Attributes:
        ahead: The group that was best off with the reward-only method.
        behind: The group that was worst off.
        loss: How much the rate of the group ahead fell.
        gain: How much the rate of the group behind rose.
    """

    ahead: str
    behind: str
    loss: Estimate
    gain: Estimate

    @property
    def share(self) -> float:
        """The part of the fall of the gap that is the loss of the group ahead; NaN if the gap did not fall."""
        fall = self.loss.value + self.gain.value
        return float(self.loss.value / fall) if fall > 0 else float("nan")


class Score(NamedTuple):
    """The scores of a method over the scored tasks.

    Attributes:
        tasks: Number of tasks with scores on which it was run.
        area: Interquartile mean of the areas over tasks and seeds.
        performance: Interquartile mean of the performance at the strength with the largest area of each task.
        unfairness: The same of the unfairness.
        improvement: Probability that a run has a larger area than a run of the reward-only method.
        levelled: Mean part of the fall of the gap that is the loss of the group ahead, over tasks where it fell.
        matched: Number of tasks on which a scripted rule without ground truth does as well.
    """

    tasks: int
    area: Estimate
    performance: Estimate
    unfairness: Estimate
    improvement: Estimate
    levelled: float
    matched: int


def scores(boards: Iterable[TaskBoard]) -> dict[str, Score]:
    """Return the scores of every method, the largest area first."""
    scored = [board for board in boards if not board.unscored]
    names = dict.fromkeys(name for board in scored for name in [*board.methods, AGAIN])
    found = {name: score(name, [board for board in scored if board.of(name)]) for name in names}
    return dict(sorted(found.items(), key=lambda item: -item[1].area.value))


def score(method: str, boards: Sequence[TaskBoard]) -> Score:
    """Return the scores of a method on tasks on which it was run."""
    areas = [board.areas(method) for board in boards]
    base = [board.areas(REWARD_ONLY) for board in boards]
    chosen = [(board, board.of(method)[board.best(method)]) for board in boards]
    shares = [board.levelling(arm).share for board, arm in chosen]
    estimate = partial(stratified_bootstrap, statistic=interquartile_mean)
    return Score(
        tasks=len(boards),
        area=estimate([areas]),
        performance=estimate([[board.performance(arm) for board, arm in chosen]]),
        unfairness=estimate([[board.unfairness(arm) for board, arm in chosen]]),
        improvement=stratified_bootstrap([areas, base], probability_of_improvement),
        levelled=float(np.nanmean(shares)) if not np.isnan(shares).all() else float("nan"),
        matched=sum(bool(board.as_good(arm)) for board, arm in chosen),
    )


def boards_of(arms: Mapping[ArmKey, Arm]) -> list[TaskBoard]:
    """Return the boards of all tasks with the reward-only method and random actions."""
    from fair_envs.evaluation import scripted

    boards = []
    for env_id in dict.fromkeys(key.env_id for key in arms):
        own = {key: arm for key, arm in arms.items() if key.env_id == env_id}
        task = task_of(env_id)
        names = [key.name for key in own if key.name in (RANDOM, PLANTED, *task.scripted)]
        rules: Any = task.rules()
        bounds = {name for name in names if name in task.scripted and scripted(rules, name).uses_truth}
        if {ArmKey(env_id, RANDOM), ArmKey(env_id, REWARD_ONLY)} <= set(own):
            boards.append(TaskBoard(env_id, own, names, frozenset(bounds)))
    return boards


def _dominated(points: Floats) -> float:
    """Return the area that points (n, 2) dominate, above (0, 0)."""
    from moocore import hypervolume

    return float(hypervolume(points, ref=[0.0, 0.0], maximise=True))
