"""Scripted policies for environments with one decision-maker and two decisions, to compare learned ones with.

Those that use the ground truth or a hidden score are bounds, no policies that anybody could use.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Flags, Floats
from fair_envs.baselines.rollouts import Random
from fair_envs.core import Rules, check_count
from fair_envs.evaluation import DecisionMaker, VectorEnv, VectorWorld, rollout
from fair_envs.parameters import UnitInterval, checked
from fair_envs.wrappers.twin import rules_of

RIDGE = 1e-3  # of the logistic regression, on standardised columns; keeps separable data finite


class Decider(DecisionMaker):
    """Decides for or against a person for certain; subclasses say for whom.

    Args:
        env: The environment, of any interface, or its rules: one person a step, and two decisions.

    Raises:
        ValueError: The environment has others.
    """

    def __init__(self, env: Any) -> None:
        self.rules = rules_of(env)
        self.spec = self.rules.spec
        if self.rules.multi_agent or not self.spec.one_person or self.spec.actions != 2:
            raise ValueError(f"env must decide on one person in each step, with two decisions, got {env}")

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return in which lanes the favourable decision is taken, shape (B,)."""
        raise NotImplementedError

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return probabilities 0 and 1, shape (B, 2)."""
        favourable = self.spec.favourable_action
        action = np.where(self.chosen(observation), favourable, 1 - favourable)
        certain: Floats = np.eye(2)[action]
        return certain


class Always(Decider):
    """Takes the favourable decision about everybody."""

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return True."""
        return np.ones(len(observation), bool)


class Never(Decider):
    """Takes the favourable decision about nobody."""

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return False."""
        return np.zeros(len(observation), bool)


class Correct(Decider):
    """Takes the decision that the ground truth says is correct.

    It need not earn the most: what a decision leads to later does not count.

    Raises:
        ValueError: The environment has no ground truth.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        _check_oracle(self.rules, "feedback")

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return where the favourable decision is correct."""
        found: Flags = self.oracle()["feedback"][:, 0] == self.spec.favourable_action
        return found


class Threshold(Decider):
    """Takes the favourable decision about those whose hidden score reaches a threshold.

    Args:
        env: The environment, of any interface, or its rules.
        threshold: In units of the score.
        score: Its name in `Rules.oracle`.

    Raises:
        ValueError: The environment has no such score.
    """

    def __init__(self, env: Any, threshold: float, *, score: str = "score") -> None:
        super().__init__(env)
        _check_oracle(self.rules, score)
        self.threshold, self.score = checked("threshold", threshold, float), score

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return whose score is high enough."""
        found: Flags = self.oracle()[self.score][:, 0] >= self.threshold
        return found


def _check_oracle(rules: Rules, name: str) -> None:
    known = rules.oracle(np.zeros(1, rules.dtype).view(np.recarray))
    if name not in known:
        raise ValueError(f"env must know {name!r} of those to be decided on, it knows {', '.join(known) or 'nothing'}")


# Equal opportunity ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Past:
    """Decisions whose correctness is known.

    Attributes:
        observations: What was seen before each, shape (n, d).
        favourable: Whether the favourable decision was correct, shape (n,).
    """

    observations: Floats
    favourable: Flags


def gather(env: VectorEnv, *, steps: int = 1000, seed: int = 0) -> Past:
    """Play at random and return the decisions whose feedback came at once; the environment is reset.

    Args:
        env: B lanes.
        steps: Of each lane.
        seed: Of the environment and of the actions.

    Raises:
        ValueError: No feedback came at once.
    """
    check_count("steps", steps)
    favourable = env.unwrapped.fair_spec.favourable_action
    world = VectorWorld(env, seed=seed, random=np.random.default_rng(seed))
    seen, correct = [], []
    for step in islice(rollout(world, Random(env), episodes=math.inf), steps):
        feedback = step.columns["fair_feedback"]
        known = step.active & (feedback >= 0)
        seen.append(step.observation[known, 0])
        correct.append(feedback[known] == favourable)
    past = Past(observations=np.concatenate(seen).astype(np.float64), favourable=np.concatenate(correct))
    if not len(past.favourable):
        raise ValueError("env must tell the correct decision at once (feedback 'full' or 'accepted'), none was told")
    return past


class Logistic:
    """A logistic regression of a yes or no on numbers, with a little ridge.

    Args:
        observations: Shape (n, d).
        favourable: Which of them were followed by a yes, shape (n,).
    """

    def __init__(self, observations: Floats, favourable: Flags) -> None:
        from scipy.optimize import minimize

        self._centre, spread = observations.mean(axis=0), observations.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1)
        columns = self._columns(observations)
        sign = np.where(favourable, 1.0, -1.0)

        def loss(weights: Floats) -> tuple[float, Floats]:
            margin = sign * (columns @ weights)
            slope = -sign / (1 + np.exp(np.clip(margin, -500, 500)))
            value = np.logaddexp(0, -margin).mean() + RIDGE * (weights**2).sum()
            return float(value), columns.T @ slope / len(sign) + 2 * RIDGE * weights

        self._weights: Floats = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B").x

    def __call__(self, observations: NDArray[Any]) -> Floats:
        """Return the probability of a yes, shape (n,), after observations of shape (n, d)."""
        margin = self._columns(np.asarray(observations, np.float64)) @ self._weights
        probability: Floats = 1 / (1 + np.exp(-np.clip(margin, -500, 500)))
        return probability

    def _columns(self, observations: Floats) -> Floats:
        scaled = (observations - self._centre) / self._spread
        return np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)


class EqualOpportunity(Decider):
    """Takes the favourable decision about those whose score reaches the threshold of their group.

    The score is a logistic regression of past feedback on what is seen. The thresholds are such that, in the past, the
    same share of those for whom the favourable decision was correct would have had it in each group (Hardt, Price and
    Srebro 2016). That the past is not the future is its weakness: what was seen there came from random decisions.

    Args:
        env: The environment.
        past: What the score and the thresholds are fitted on, see `gather`.
        group: The entry of an observation that tells the group, by name; None: the first sensitive attribute, or else
            the first feature that shows one.
        share: The true positive rate in each group; None: that of all at a score of one half.

    Attributes:
        thresholds: Of each group's score, by the value that tells the group.

    Raises:
        ValueError: No such entry, or a group of which nobody should be decided for.

    References:
        Hardt, Price and Srebro, "Equality of opportunity in supervised learning", NeurIPS 2016.
    """

    def __init__(self, env: Any, past: Past, *, group: str | None = None, share: float | None = None) -> None:
        super().__init__(env)
        self.column = column_of(self.rules, group)
        self._model = Logistic(past.observations, past.favourable)
        score, values = self.score(past.observations), past.observations[:, self.column]
        correct = score[past.favourable]
        self.share = float((correct >= 0.5).mean()) if share is None else checked("share", share, UnitInterval)
        self.thresholds: Mapping[float, float] = {
            float(value): _threshold(score[past.favourable & (values == value)], self.share, group=value)
            for value in np.unique(values)
        }

    def score(self, observations: NDArray[Any]) -> Floats:
        """Return the probability that the favourable decision is correct, shape (n,)."""
        return self._model(observations)

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return whose score is high enough for the group; a group that was never met has the strictest threshold."""
        strictest = max(self.thresholds.values())
        limits = np.array([self.thresholds.get(float(v), strictest) for v in observation[:, self.column]])
        return self.score(observation) >= limits


def column_of(rules: Rules, name: str | None) -> int:
    """Return the place of the entry of that name in an observation; None: of that which tells the group.

    Raises:
        ValueError: There is none.
    """
    names = rules.observed_features(rules.params)
    wanted = [*rules.spec.sensitive, *rules.spec.sensitive_features] if name is None else [name]
    for candidate in wanted:
        if candidate in names:
            return int(names.index(candidate))
    raise ValueError(
        f"group must be an entry of the observation ({', '.join(names) or 'none has a name'}), got {name!r}"
    )


def _threshold(scores: Floats, share: float, *, group: float) -> float:
    """Return the largest threshold that at least such a share of the scores reaches."""
    if not len(scores):
        raise ValueError(f"past must hold people of each group to decide for, got none of group {group:g}")
    count = max(int(np.ceil(share * len(scores))), 1)
    return float(np.sort(scores)[::-1][count - 1]) if share > 0 else float("inf")


__all__ = [
    "Always",
    "Correct",
    "Decider",
    "EqualOpportunity",
    "Logistic",
    "Never",
    "Past",
    "Random",
    "Threshold",
    "column_of",
    "gather",
]
