"""Scripted juries for FairCollege: fixed, naive and robust, after ml-fairness-gym.

They see what a jury is told (`info`), no hidden truth; the robust one also knows what points cost. Each lane of a batch
has a jury of its own.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.aliases import Columns, Floats, Ints
from fair_envs.core import check_count
from fair_envs.envs.college.rules import College
from fair_envs.evaluation import Policy, Transition, World, rules_of
from fair_envs.parameters import UnitInterval, checked

BURN_IN = 10  # rounds; of the published experiment


class Worth(NamedTuple):
    """What a jury earns by a decision."""

    true_admission: float = 1.0
    true_rejection: float = 1.0
    false_admission: float = 0.0
    false_rejection: float = 0.0


BY_ACCURACY = Worth()


def best_threshold(scores: ArrayLike, qualified: ArrayLike, *, worth: Worth = BY_ACCURACY) -> float:
    """Return the threshold that would have earned most on people with these scores: one of the scores, or 1.

    Of equally good ones it is the lowest.

    Args:
        scores: What they presented, shape (n,), 0 to 1.
        qualified: Whether they were qualified, shape (n,).
        worth: What a decision earns.

    Example:
        >>> best_threshold([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
        0.4
    """
    own, known = np.asarray(scores, np.float64), np.asarray(qualified, bool)
    order = np.argsort(own, kind="stable")
    own, known = np.append(own[order], 1.0), known[order]
    by_admitting = np.where(
        known, worth.true_admission - worth.false_rejection, worth.false_admission - worth.true_rejection
    )
    total = np.append(np.cumsum(by_admitting[::-1])[::-1], 0.0)  # of admitting from each score on
    lowest_of_its_score = np.diff(own, prepend=-1.0) > 0
    return float(own[np.argmax(np.where(lowest_of_its_score, total, -np.inf))])


class Jury(Policy):
    """Publishes a threshold in each of B lanes: always the same; subclasses learn.

    Args:
        env: FairCollege, of any interface, or its rules.
        threshold: What is published at first.
        epsilon: Chance to be admitted whatever the score, where it is part of the action.
        decay: What this chance is multiplied by after each round; the published code's is ``0.02 ** (1 / 20)``.

    Attributes:
        thresholds: What is published next, shape (B,).
        rounds: How many it has seen.

    Raises:
        ValueError: Another environment, a number out of range, or a chance that cannot be published.
    """

    def __init__(self, env: Any, threshold: float = 0.5, *, epsilon: float = 0.0, decay: float = 1.0) -> None:
        rules = rules_of(env)
        if not isinstance(rules, College):
            raise ValueError(f"env must be FairCollege, got {env}")
        self.params: Any = rules.params
        self._threshold = checked("threshold", threshold, UnitInterval)
        self._first, self._decay = checked("epsilon", epsilon, UnitInterval), checked("decay", decay, UnitInterval)
        if self._first and self.params.action != "threshold_epsilon":
            raise ValueError(f"epsilon must be 0 where it is not part of the action, got {epsilon}")
        self._space = rules.action_space(rules.params)

    def start(self, world: World) -> None:
        """Publish the first thresholds."""
        self.thresholds: Floats = np.full(world.count, self._threshold)
        self.rounds = 0

    @property
    def epsilon(self) -> float:
        """The chance to be admitted in the next round whatever the score."""
        if self.params.action != "threshold_epsilon":
            return float(self.params.epsilon)
        return float(self._first * self._decay**self.rounds)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the actions, shape (B, 1, 1), (B, 1, 2), or (B, 1) where thresholds are chosen from levels."""
        return self._published()[:, np.newaxis]

    def _published(self) -> NDArray[Any]:
        if isinstance(self._space, gym.spaces.Discrete):
            return np.asarray(np.rint(self.thresholds * (self._space.n - 1)), np.int64)
        if self.params.action == "threshold":
            return self.thresholds[:, np.newaxis].astype(np.float32)
        numbers = np.stack([self.thresholds, np.full_like(self.thresholds, self.epsilon)], axis=1)
        return numbers.astype(np.float32)

    def observe_step(self, step: Transition) -> None:
        """Learn from a round."""
        self.learn(step.columns)

    def learn(self, info: Columns) -> None:
        """Learn from what a round's `info` reports."""
        self.rounds += 1


class NaiveJury(Jury):
    """Believes what is presented: publishes the threshold that would have been best on it.

    In its burn-in the threshold is 0, so that nobody responds and everybody is admitted. The group whose points cost
    less can then best afford what it publishes.

    Args:
        env: FairCollege, of any interface, or its rules.
        burn_in: Rounds before it publishes what it has learnt.
        retrain: Whether it goes on learning from what is presented afterwards, which is raised: the published
            ``continuous`` jury. Of those whom it rejects it learns nothing if feedback is on the admitted.
        epsilon: See `Jury`.
        decay: See `Jury`.
    """

    def __init__(
        self,
        env: Any,
        *,
        burn_in: int = BURN_IN,
        retrain: bool = False,
        epsilon: float = 0.0,
        decay: float = 1.0,
    ) -> None:
        super().__init__(env, 0.0, epsilon=epsilon, decay=decay)
        check_count("burn_in", burn_in)
        self.burn_in, self.retrain = burn_in, retrain
        self._worth = Worth(*(getattr(self.params, name) for name in Worth._fields))

    def start(self, world: World) -> None:
        """Forget what was presented."""
        super().start(world)
        self._scores: list[Floats] = []
        self._feedback: list[Ints] = []

    def learn(self, info: Columns) -> None:
        """Take note of a round, and choose the next thresholds if it is time to."""
        if self.rounds < self.burn_in or self.retrain:
            self._scores.append(self.expected(info))
            self._feedback.append(np.array(info["fair_feedback"]))
        super().learn(info)
        if self.rounds == self.burn_in or (self.retrain and self.rounds > self.burn_in):
            self._choose()

    def expected(self, info: Columns) -> Floats:
        """Return the scores with which the people of a round are expected to come, shape (B, M)."""
        return np.array(info["fair_features"][..., 0], np.float64)

    def _choose(self) -> None:
        scores, feedback = np.concatenate(self._scores, axis=1), np.concatenate(self._feedback, axis=1)
        for b, (own, correct) in enumerate(zip(scores, feedback, strict=True)):
            known = correct >= 0
            if known.any():
                self.thresholds[b] = best_threshold(own[known], correct[known] == 1, worth=self._worth)


class RobustJury(NaiveJury):
    """Expects everybody to raise the score as far as pays, by group: publishes the threshold that is best then.

    It knows costs, subsidy and limits. What it gains in accuracy the qualified pay for (Milli et al., 2019).

    Args:
        env: FairCollege, of any interface, or its rules.
        burn_in: Rounds at threshold 0 before it publishes what it has learnt.
        epsilon: See `Jury`.
        decay: See `Jury`.

    References:
        Hardt, Megiddo, Papadimitriou and Wootters, "Strategic classification", ITCS 2016, algorithm 1.
    """

    def __init__(self, env: Any, *, burn_in: int = BURN_IN, epsilon: float = 0.0, decay: float = 1.0) -> None:
        super().__init__(env, burn_in=burn_in, epsilon=epsilon, decay=decay)
        shared = self.params.subsidy_beta if self.params.subsidy else 1.0
        self._costs = np.array([self.params.advantaged_cost, shared * self.params.disadvantaged_cost])

    def expected(self, info: Columns) -> Floats:
        """Return the scores raised by as much as the admission is worth, at most to 1, shape (B, M)."""
        if not self.params.manipulation:
            return super().expected(info)
        with np.errstate(divide="ignore"):
            affordable = np.minimum((1.0 - self.epsilon) / self._costs, self.params.largest_change)
        return np.asarray(np.minimum(super().expected(info) + affordable[info["fair_group"]], 1.0))
