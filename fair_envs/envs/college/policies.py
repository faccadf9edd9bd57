"""Scripted juries for FairCollege: fixed, naive and robust, after ml-fairness-gym.

They use the information of a jury (`info`) and no hidden state; the robust jury also has access to the costs of points.
Each lane of a batch has its own jury.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core import check_count
from fair_envs.envs.college.rules import College
from fair_envs.evaluation import Policy, Transition, World, rules_of
from fair_envs.support.aliases import Columns, Floats, Ints
from fair_envs.support.parameters import UnitInterval, checked

BURN_IN = 10  # rounds; as in the published experiment


class Worth(NamedTuple):
    """Payoffs of a jury's decisions."""

    true_admission: float = 1.0
    true_rejection: float = 1.0
    false_admission: float = 0.0
    false_rejection: float = 0.0


BY_ACCURACY = Worth()


def best_threshold(scores: ArrayLike, qualified: ArrayLike, *, worth: Worth = BY_ACCURACY) -> float:
    """Return the threshold with the largest total payoff on people with these scores: one of the scores, or 1.

    Ties go to the lowest threshold.

    Args:
        scores: Presented scores, shape (n,), 0 to 1.
        qualified: Whether the people were qualified, shape (n,).
        worth: Payoffs of decisions.

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
    """Publishes a constant threshold in each of B lanes; subclasses learn it.

    Args:
        env: FairCollege, of any interface, or its rules.
        threshold: Initial threshold.
        epsilon: Initial probability of admission regardless of the score, if it is part of the action.
        decay: Factor of this probability after each round; the published code's is ``0.02 ** (1 / 20)``.

    Attributes:
        thresholds: The next thresholds, shape (B,).
        rounds: Number of rounds so far.

    Raises:
        ValueError: The environment is not FairCollege, a number is out of range, or ``epsilon`` is above 0 where it is
            not part of the action.
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
        """Reset the lanes to the initial threshold."""
        self.thresholds: Floats = np.full(world.count, self._threshold)
        self.rounds = 0

    @property
    def epsilon(self) -> float:
        """Probability of admission in the next round regardless of the score."""
        if self.params.action != "threshold_epsilon":
            return float(self.params.epsilon)
        return float(self._first * self._decay**self.rounds)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the actions, shape (B, 1, 1), (B, 1, 2), or (B, 1) if thresholds are discrete levels."""
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
        """Learn from a round's `info`."""
        self.rounds += 1


class NaiveJury(Jury):
    """Takes presented scores at face value, and publishes the threshold that would have been best for them.

    During its burn-in the threshold is 0, so no applicant responds strategically and all are admitted. Afterwards, the
    group with the lower cost of points can best afford the published threshold.

    Args:
        env: FairCollege, of any interface, or its rules.
        burn_in: Rounds before it publishes the learned threshold.
        retrain: Whether it continues to learn from the scores presented afterwards, which are raised strategically: the
            published ``continuous`` jury. It learns nothing about rejected applicants if only admitted ones have
            feedback.
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
        """Reset the presented scores."""
        super().start(world)
        self._scores: list[Floats] = []
        self._feedback: list[Ints] = []

    def learn(self, info: Columns) -> None:
        """Record a round, and choose the next thresholds if training is due."""
        if self.rounds < self.burn_in or self.retrain:
            self._scores.append(self.expected(info))
            self._feedback.append(np.array(info["fair_feedback"]))
        super().learn(info)
        if self.rounds == self.burn_in or (self.retrain and self.rounds > self.burn_in):
            self._choose()

    def expected(self, info: Columns) -> Floats:
        """Return the scores that the people of a round are expected to present, shape (B, M)."""
        return np.array(info["fair_features"][..., 0], np.float64)

    def _choose(self) -> None:
        scores, feedback = np.concatenate(self._scores, axis=1), np.concatenate(self._feedback, axis=1)
        for b, (own, correct) in enumerate(zip(scores, feedback, strict=True)):
            known = correct >= 0
            if known.any():
                self.thresholds[b] = best_threshold(own[known], correct[known] == 1, worth=self._worth)


class RobustJury(NaiveJury):
    """Publishes the best threshold under the assumption that all applicants raise their scores as far as it pays.

    It has access to the groups' costs, the subsidy and the limits. Its gain in accuracy is at the expense of qualified
    applicants (Milli et al., 2019).

    Args:
        env: FairCollege, of any interface, or its rules.
        burn_in: Rounds at threshold 0 before it publishes the learned threshold.
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
        """Return the scores raised by as much as admission is worth, at most to 1, shape (B, M)."""
        if not self.params.manipulation:
            return super().expected(info)
        with np.errstate(divide="ignore"):
            affordable = np.minimum((1.0 - self.epsilon) / self._costs, self.params.largest_change)
        return np.asarray(np.minimum(super().expected(info) + affordable[info["fair_group"]], 1.0))
