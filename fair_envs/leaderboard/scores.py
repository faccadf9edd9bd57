"""Scores of methods over tasks: normalised performance and unfairness, areas, levelling down, and simple rules."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fair_envs.assessment.bounds import within
from fair_envs.experiments.seeds import Arm
from fair_envs.leaderboard.jobs import AGAIN, CONSTANT, RANDOM, RATE_OF, REJECTED, REWARD_ONLY, ArmKey, untrained
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.metrics.inference import (
    interquartile_mean,
    p_value,
    probability_of_improvement,
    stratified_bootstrap,
    welch,
)
from fair_envs.metrics.intervals import summed_interval, t_interval
from fair_envs.support.aliases import Floats
from fair_envs.tasks import task_of

LEARNED = 0.8
"""Least performance of the reward-only method, on the scale from random to the best rule without ground truth."""

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
        entries: Policies from outside, which have rows but no part in scores, controls and the answer.
    """

    env_id: str
    arms: Mapping[ArmKey, Arm]
    untrained: Sequence[str]
    bounds: frozenset[str] = frozenset()
    entries: Mapping[ArmKey, Arm] = field(default_factory=dict)

    @property
    def random(self) -> Arm:
        """The random policy."""
        return self.arms[ArmKey(self.env_id, RANDOM)]

    @property
    def reward_only(self) -> Arm:
        """The reward-only method."""
        return self.arms[self.reward_only_key]

    @property
    def reward_only_key(self) -> ArmKey:
        """The key of the reward-only method."""
        return ArmKey(self.env_id, REWARD_ONLY)

    @property
    def rules(self) -> dict[str, Arm]:
        """The scripted policies that use no ground truth, by name."""
        return {
            name: self.arms[ArmKey(self.env_id, name)]
            for name in self.untrained
            if name not in self.bounds and name not in (RANDOM, *REJECTED)
        }

    @cached_property
    def distinct_rules(self) -> dict[str, Arm]:
        """The same without rules that do exactly what another one does; constants give way to named rules."""
        found: dict[tuple[str, ...], str] = {}
        for name in sorted(self.rules, key=lambda name: name.startswith(CONSTANT)):
            found.setdefault(tuple(row.result or name for row in self.rules[name].rows), name)
        return {name: rule for name, rule in self.rules.items() if name in found.values()}

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
        if not self._performs:
            return "PPO is not shown to perform better than random actions"
        if self.learned < LEARNED:
            return (
                "PPO has not learned the task within this budget: its gain over random is less than "
                f"{100 * LEARNED:.0f} % of the best rule's"
            )
        return "" if self._unfair else "PPO's gap is not shown to be beyond noise"

    @property
    def has_areas(self) -> bool:
        """Whether areas are defined, also on tasks without scores: the reward-only method performs, and is unfair."""
        return self._performs and self._unfair

    @cached_property
    def _performs(self) -> bool:
        """Whether the reward-only method is shown to perform better than random actions."""
        gained = welch(self.reward_only.values("performance"), self.random.values("performance"))
        return p_value(gained, 0, "greater") <= 0.025

    @cached_property
    def _unfair(self) -> bool:
        """Whether the gap of the reward-only method is shown to be beyond noise."""
        beyond = mean_interval(self.base[:, 1])  # floors are of the same test episodes
        return p_value(beyond, 0, "greater") <= 0.025

    @cached_property
    def best_rule(self) -> str:
        """The rule without ground truth with the highest performance; "" without a rule."""
        means = {name: float(arm.values("performance").mean()) for name, arm in self.distinct_rules.items()}
        return max(means, key=lambda name: means[name], default="")

    def area_of(self, arm: Arm) -> float:
        """Return the mean area of the seeds of an arm; that of the reward-only method is what chance gives."""
        return float(areas(self.placed(points(arm))).mean())

    @cached_property
    def trained(self) -> dict[ArmKey, Arm]:
        """The trained arms, without the control."""
        return {key: arm for name in [*self.methods, REWARD_ONLY] for key, arm in self.of(name).items()}

    @property
    def learned(self) -> float:
        """The reward-only method's performance, on the scale from random to the best rule; 1 if that is no better."""
        if not self.best_rule:
            return 1.0
        random, own, rule = (
            float(arm.values("performance").mean())
            for arm in (self.random, self.reward_only, self.rules[self.best_rule])
        )
        return (own - random) / (rule - random) if rule > max(random, own) else 1.0

    @property
    def shown_behind(self) -> bool:
        """Whether the best rule is shown to perform better than the reward-only method (95 %, not corrected)."""
        return bool(self.best_rule) and self.rules[self.best_rule].minus(self.reward_only, "performance").low > 0

    def behind_rule(self, *, below: float = 1.0) -> str:
        """Return how much of the best rule the reward-only method reaches; "": it reaches ``below``."""
        return f"{100 * self.learned:.0f} % of `{self.best_rule}`" if self.learned < below else ""

    @property
    def base(self) -> Floats:
        """Performance and gap above its noise floor of the reward-only method's seeds, shape (n, 2)."""
        return points(self.reward_only)

    def placed(self, of: Floats) -> Floats:
        """Return performance and unfairness of points, see `scaled`, shape (n, 2)."""
        return scaled(of, self.base, points(self.random))

    def chosen(self, method: str) -> Floats:
        """Return performance and gap of each seed, at the strength that is best for the other seeds, shape (n, 2).

        A seed has no part in the choice of its strength; otherwise a method with several strengths would have better
        numbers than one without, even if none has an effect. With a single seed, its own strength is chosen.
        """
        arms = self.of(method)
        common = set.intersection(*({row.seed for row in arm.rows} for arm in arms.values()))
        kept = [Arm(arm.label, [row for row in arm.rows if row.seed in common]) for arm in arms.values()]
        of_strengths = np.array([points(arm) for arm in kept])  # (strengths, seeds, 2)
        found = []
        for seed in range(len(common)):
            others = np.delete(of_strengths, seed, axis=1) if len(common) > 1 else of_strengths
            found.append(of_strengths[self._best(others), seed])
        return np.array(found).reshape(-1, 2)

    def _best(self, of_strengths: Floats) -> int:
        """Return the index of the strength with the largest area of its means, given (strengths, seeds, 2)."""
        return int(np.argmax(self._areas(of_strengths.mean(axis=1))))

    def _areas(self, means: Floats) -> Floats:
        """Return the areas of strengths from their means over seeds, (strengths, 2); an undefined one is -1."""
        return np.where(np.isnan(means).any(axis=-1), -1.0, areas(self.placed(means)))

    def best(self, method: str) -> ArmKey:
        """Return the strength of a method with the largest area of its means over all seeds."""
        arms = self.of(method)
        return list(arms)[self._best(np.array([points(arm).mean(axis=0, keepdims=True) for arm in arms.values()]))]

    @cached_property
    def usual(self) -> Arm:
        """The reward-only method with the seeds of its control too, from which changes of rates are counted."""
        again = self.arms.get(ArmKey(self.env_id, AGAIN))
        return Arm(REWARD_ONLY, [*self.reward_only.rows, *(again.rows if again else ())])

    def levelling(self, key: ArmKey) -> "Levelling":
        """Return how the rates of the best-off and the worst-off group changed, compared with the reward-only method.

        These are the groups of each seed, which another training may exchange. The control is compared with the
        method's own seeds.
        """
        base = self.reward_only if key.name == AGAIN else self.usual
        return Levelling(*(self.arms[key].minus(base, side) for side in Levelling._fields))

    def as_good(self, arm: Arm) -> list[str]:
        """Return the scripted rules, without ground truth, that do about as well as an arm.

        A rule does about as well if its mean performance is at most `LITTLE` lower, on the scale from random to
        reward-only, its mean gap at most the noise floor larger, and it is not shown to give the worst-off group less
        by more than the noise floor. Where the task has no scores, and so no scale, its mean performance must not be
        lower.
        """
        low, high, own = (float(one.values("performance").mean()) for one in (self.random, self.reward_only, arm))
        least = own if self.unscored else own - LITTLE * (high - low)
        floor = max(float(arm.values("noise").mean()), 0.0)
        return [
            name
            for name, rule in self.distinct_rules.items()
            if rule.values("performance").mean() >= least
            and rule.values("gap").mean() <= arm.values("gap").mean() + floor
            and not rule.minus(arm, "worst").high < -floor
        ]

    @cached_property
    def best_trained(self) -> ArmKey:
        """The trained arm with which rules are compared.

        Where the task has scores, that is the arm with the largest mean area of its seeds, otherwise the one with the
        highest performance; of equal ones, that with the highest performance, then that with the smallest gap.
        """
        return max(self.trained, key=lambda key: self._rank(self.trained[key]))

    def _rank(self, arm: Arm) -> tuple[float, float, float]:
        """Return what sorts arms, the best last."""
        return (0.0 if self.unscored else self.area_of(arm), *by_performance(arm))

    @cached_property
    def matched(self) -> list[str]:
        """The scripted rules that do about as well as the best trained arm."""
        return self.as_good(self.arms[self.best_trained])

    def dominating(self) -> "dict[str, Dominated]":
        """Return how many trained arms each rule without ground truth dominates, for rules that dominate some.

        It performs at least as well, and the rate of each group is at least as high (means over seeds).
        """
        numbers = ["performance", *(name for name in self.reward_only.names if name.startswith(RATE_OF))]

        def levels(arm: Arm) -> Floats:
            return np.array([arm.values(name).mean() for name in numbers])

        found = {}
        for name, rule in self.distinct_rules.items():
            below = [arm for arm in self.trained.values() if (levels(rule) >= levels(arm)).all()]
            if below:
                better = sum(rule.minus(arm, "performance").low > 0 for arm in below)
                found[name] = Dominated(len(below), len(self.trained), better)
        return found

    def mean_area(self, method: str) -> float:
        """Return `area` without an interval."""
        return float(areas(self.placed(self.chosen(method))).mean())

    def area(self, method: str) -> Estimate:
        """Return the mean area of a method over its seeds, each with the strength that is best for the others."""
        return averaged([self.chosen(method)], [self], areas, limits=(0.0, 1.0))


def by_performance(arm: Arm) -> tuple[float, float]:
    """Return what sorts arms by their mean performance, and equal ones by their mean gap, the best last."""
    performance, gap = (float(arm.values(name).mean()) for name in ("performance", "gap"))
    return (-np.inf if np.isnan(performance) else performance, -np.inf if np.isnan(gap) else -gap)


def points(arm: Arm) -> Floats:
    """Return performance and gap above its noise floor of each seed, shape (n, 2).

    A fair policy has the gap of the floor in a finite test, not 0.
    """
    return np.stack([arm.values("performance"), arm.values("gap") - arm.values("noise")], axis=-1)


def scaled(of: Floats, base: Floats, random: Floats) -> Floats:
    """Return performance and unfairness: random has a performance of 0, the reward-only method has 1 and 1.

    Args:
        of: Performance and gap above its noise floor, shape (..., n, 2).
        base: Those of the reward-only method, shape (..., m, 2).
        random: Those of the random policy, shape (..., k, 2).
    """
    low = random[..., 0].mean(axis=-1, keepdims=True)
    high, gap = (base[..., place].mean(axis=-1, keepdims=True) for place in (0, 1))
    return np.stack([(of[..., 0] - low) / (high - low), of[..., 1] / gap], axis=-1)


def areas(of: Floats) -> Floats:
    """Return the part of the rectangle between random and reward-only, and no gap and its gap, that points dominate.

    0 is the reward-only method's mean, 1 its performance without a gap; a higher performance counts as equal to it. A
    run whose numbers are undefined dominates nothing.

    Args:
        of: Performance and unfairness, see `scaled`, shape (..., 2).
    """
    return np.nan_to_num(np.clip(of[..., 0], 0, 1) * np.clip(1 - of[..., 1], 0, 1))


class ArmChoice(NamedTuple):
    """A method with the strength that is best for each seed's task, or with one strength on all tasks.

    Attributes:
        method: Name of the method.
        strength: The one strength; None: the best one, see `TaskBoard.chosen`.
    """

    method: str
    strength: float | None = None

    def runs(self, board: TaskBoard) -> bool:
        """Return whether it was run on a task."""
        return any(self.strength in (None, key.strength) for key in board.of(self.method))

    def points(self, board: TaskBoard) -> Floats:
        """Return performance and gap of each seed, see `points`, shape (n, 2)."""
        if self.strength is None:
            return board.chosen(self.method)
        return points(board.arms[ArmKey(board.env_id, self.method, self.strength)])


class Levelling(NamedTuple):
    """Who gained and who paid: the changes of the groups' rates.

    Attributes:
        worst: How much the rate of the worst-off group rose.
        best: The same of the best-off group.
    """

    worst: Estimate
    best: Estimate

    @property
    def named(self) -> dict[str, Estimate]:
        """The changes by the names of the groups."""
        return {f"{side}-off group": change for side, change in self._asdict().items()}


class Dominated(NamedTuple):
    """How many trained arms a rule dominates.

    Attributes:
        arms: Number of arms than which it is at least as good for everyone, by means over seeds.
        of: Number of trained arms.
        shown: Number of the dominated arms than which it is shown to perform better (95 %, not corrected).
    """

    arms: int
    of: int
    shown: int


class TaskScore(NamedTuple):
    """The scores of a method on a task.

    Attributes:
        area: The method's area, see `TaskBoard.area`.
        key: The strength, of which the groups' changes and the rules are.
        performance: Mean performance, see `scaled`, of each seed with the strength that is best for the others.
        unfairness: The same of the gap above the noise floor.
        levels: Who paid.
        as_good: The rules without ground truth that do about as well.
    """

    area: Estimate
    key: ArmKey
    performance: float
    unfairness: float
    levels: Levelling
    as_good: Sequence[str]


class Score(NamedTuple):
    """The scores of a method over the scored tasks, with the best strength on each task if nothing else is said.

    Attributes:
        area: Mean of the areas over tasks, see `areas`.
        common: The same with one strength on all tasks, for each strength that was run on all of the method's tasks.
        interquartile: Interquartile mean of the areas over tasks and seeds.
        performance: Mean performance over tasks: random 0, reward-only 1.
        unfairness: The same of the gap above its noise floor: fair 0, reward-only 1.
        improvement: Probability that a run has a larger area than a run of the reward-only method.
        of_tasks: The scores on each task.
    """

    area: Estimate
    common: Mapping[float | None, Estimate]
    interquartile: Estimate
    performance: Estimate
    unfairness: Estimate
    improvement: Estimate
    of_tasks: Mapping[str, TaskScore]

    @property
    def tasks(self) -> int:
        """Number of tasks with scores on which it was run."""
        return len(self.of_tasks)

    @property
    def matched(self) -> int:
        """Number of tasks on which a scripted rule without ground truth does about as well."""
        return sum(bool(one.as_good) for one in self.of_tasks.values())

    @property
    def strengths(self) -> dict[float, int]:
        """The strengths that are best on some task, from weak to strong, with the number of these tasks."""
        found = Counter(one.key.strength for one in self.of_tasks.values() if one.key.strength is not None)
        return dict(sorted(found.items()))

    @property
    def steadiest(self) -> float | None:
        """The one strength with the largest area on all tasks; None also for a method without strengths."""
        return max(self.common, key=lambda strength: self.common[strength].value, default=None)

    @property
    def area_of_one(self) -> Estimate:
        """The area with that strength; undefined if no strength was run on all tasks."""
        return self.common.get(self.steadiest, mean_interval([]))


def scores(boards: Iterable[TaskBoard]) -> dict[str, Score]:
    """Return the scores of every method: those that run on the most tasks first, of these the largest area first."""
    scored = [board for board in boards if not board.unscored]
    names = dict.fromkeys(name for board in scored for name in [*board.methods, AGAIN] if board.of(name))
    found = {name: score(name, [board for board in scored if board.of(name)]) for name in names}
    return dict(sorted(found.items(), key=lambda item: (-item[1].tasks, -item[1].area.value)))


def score(method: str, boards: Sequence[TaskBoard]) -> Score:
    """Return the scores of a method on tasks on which it was run.

    The bootstrap also resamples the seeds of the reward-only and of the random policy, by which numbers are scaled. The
    choice of strengths is not repeated in it.
    """
    own, scale = [board.chosen(method) for board in boards], scale_of(boards)
    of_strengths = [{key.strength: points(arm) for key, arm in board.of(method).items()} for board in boards]
    common = [strength for strength in of_strengths[0] if all(strength in of for of in of_strengths)]

    def interquartile(*samples: Sequence[Floats]) -> Any:
        return interquartile_mean([areas(scaled(*of)) for of in zip(*samples, strict=True)])

    def improvement(own: Sequence[Floats], base: Sequence[Floats], random: Sequence[Floats]) -> Any:
        return probability_of_improvement(
            *([areas(scaled(*of)) for of in zip(one, base, random, strict=True)] for one in (own, base))
        )

    return Score(
        area=averaged(own, boards, areas, limits=(0.0, 1.0)),
        common={
            strength: averaged([of[strength] for of in of_strengths], boards, areas, limits=(0.0, 1.0))
            for strength in common
        },
        interquartile=stratified_bootstrap([own, *scale], interquartile),
        performance=averaged(own, boards, lambda of: of[..., 0]),
        unfairness=averaged(own, boards, lambda of: of[..., 1]),
        improvement=stratified_bootstrap([own, *scale], improvement),
        of_tasks={board.env_id: task_score(board, board.best(method), board.chosen(method)) for board in boards},
    )


def task_score(board: TaskBoard, key: ArmKey, of: Floats) -> TaskScore:
    """Return the scores of a method on a task.

    Args:
        board: The task.
        key: One of the method's strengths, of which the changes of the groups and the rules are.
        of: Performance and gap of each seed, see `points`: of that strength, or at the strength that is best for the
            other seeds, so that its choice has no part in them.
    """
    arm = board.arms[key]
    performance, unfairness = board.placed(of).mean(axis=0).tolist()
    return TaskScore(board.area(key.name), key, performance, unfairness, board.levelling(key), board.as_good(arm))


def scale_of(boards: Sequence[TaskBoard]) -> list[list[Floats]]:
    """Return the points of the reward-only method and of the random policy on each task, which scale all others."""
    return [[board.base for board in boards], [points(board.random) for board in boards]]


def averaged(
    own: Sequence[Floats],
    boards: Sequence[TaskBoard],
    number: Callable[[Floats], Floats],
    *,
    limits: tuple[float, float] | None = None,
) -> Estimate:
    """Return the mean over tasks of a number of scaled points, given each task's points, with its interval.

    Limits of the number, if it has any, are those of the interval.
    """
    found = stratified_bootstrap([own, *scale_of(boards)], over_tasks(number))
    of_runs = [number(board.placed(of)) for board, of in zip(boards, own, strict=True)]
    return within(student_interval(found, of_runs, level=found.level), limits)


def student_interval(found: Estimate, of_runs: Sequence[Floats], *, level: float) -> Estimate:
    """Return a bootstrapped estimate with Student's interval, because percentile intervals of few runs are too narrow.

    The standard error is the bootstrap's, corrected for small samples; the degrees of freedom are those of Welch and
    Satterthwaite for a mean of the numbers of the runs of each task, shapes (runs,).
    """
    error = found.standard_error * (found.n / max(found.n - 1, 1)) ** 0.5
    parts = [(float(runs.var(ddof=1)) / len(runs), len(runs) - 1.0) for runs in of_runs if len(runs) > 1]
    freedom = summed_interval(0.0, parts, n=found.n).freedom if parts else 0.0
    return t_interval(found.value, standard_error=error, freedom=freedom, n=found.n, level=level)


def over_tasks(number: Callable[[Floats], Floats]) -> Callable[..., Floats]:
    """Return the mean over tasks of a number of scaled points, for `stratified_bootstrap`."""

    def statistic(*samples: Sequence[Floats]) -> Floats:
        means = [number(scaled(*of)).mean(axis=-1) for of in zip(*samples, strict=True)]
        return np.asarray(np.mean(means, axis=0))

    return statistic


def difference(first: ArmChoice, second: ArmChoice, boards: Sequence[TaskBoard], *, level: float) -> Estimate:
    """Return the mean area of a method minus that of another over the scored tasks on which both were run.

    The seeds of the reward-only and of the random policy, by which both are scaled, are the same for both. The interval
    is a `student_interval`. Undefined if there is no such task.
    """
    common = [board for board in boards if not board.unscored and first.runs(board) and second.runs(board)]
    if not common:
        return mean_interval([], level=level)
    samples = [[choice.points(board) for board in common] for choice in (first, second)]
    mean = over_tasks(areas)

    def statistic(one: Sequence[Floats], other: Sequence[Floats], *scale: Sequence[Floats]) -> Floats:
        return np.asarray(mean(one, *scale) - mean(other, *scale))

    found = stratified_bootstrap([*samples, *scale_of(common)], statistic)
    of_runs = [areas(board.placed(own)) for sample in samples for board, own in zip(common, sample, strict=True)]
    return student_interval(found, of_runs, level=level)


def boards_of(arms: Mapping[ArmKey, Arm]) -> list[TaskBoard]:
    """Return the boards of all tasks with the reward-only method and random actions."""
    from fair_envs.assessment.policies import policy_named

    boards = []
    for env_id in dict.fromkeys(key.env_id for key in arms):
        own = {key: arm for key, arm in arms.items() if key.env_id == env_id}
        rules: Any = task_of(env_id).rules()
        names = [name for name in untrained(env_id, rules) if ArmKey(env_id, name) in own]
        policies = [name for name in names if name not in REJECTED and not name.startswith(CONSTANT)]
        bounds = {name for name in policies if policy_named(name, rules).uses_truth}
        if {ArmKey(env_id, RANDOM), ArmKey(env_id, REWARD_ONLY)} <= set(own):
            boards.append(TaskBoard(env_id, own, names, frozenset(bounds)))
    return boards
