"""The massager of lenders' decisions, and a long-term measure, for FairLending."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.aliases import Flags, Floats
from fair_envs.baselines.massaging import ROUNDING, PolicyOutput
from fair_envs.envs.lending.params import checked_repayment
from fair_envs.envs.lending.policies import ApplicantReader, check_codes, lending_of
from fair_envs.envs.lending.rules import ACCEPT
from fair_envs.metrics.long_term import Measure, column_names
from fair_envs.metrics.populations import wasserstein
from fair_envs.parameters import checked

# Massaging ------------------------------------------------------------------------------------------------------------


class LendingMassager:
    """Turns unsure decisions about loans around where that brings the groups' true positive rates closer together.

    A decision of the probability p is unsure if threshold <= p <= 1 - threshold. The short-term measure is asked for
    its value after the decision and after the other one; strictly less wins, by more than a rounding.

    Args:
        env: FairLending of any face, or its rules.
        label: What is taken for whether the applicant repays: ``"estimated"``, the chance at the score; ``"known"``,
            the hidden label, a privilege that no bank has; ``"as_coded"``, the hidden label and a tie turns the
            decision around too, as in the published code. There, every unsure decision about somebody who will not
            repay is turned around, since neither decision changes the measure: the label leaks into what is learnt.
        known: Returns who will repay, shape (B,), for the latter two:
            ``lambda: env.unwrapped.oracle()["feedback"][:, 0]``. It is asked where a decision is unsure.
        repayment: The chance to repay at each score, shape (scores,); by default the environment's.

    Raises:
        ValueError: Another environment, no such chances, or ``known`` is missing or not asked for.
    """

    def __init__(
        self,
        env: Any,
        *,
        label: Literal["estimated", "known", "as_coded"] = "estimated",
        known: Callable[[], ArrayLike] | None = None,
        repayment: ArrayLike | None = None,
    ) -> None:
        self.rules = lending_of(env)
        self.label = checked("label", label, Literal["estimated", "known", "as_coded"])
        if (known is None) != (label == "estimated"):
            raise ValueError(f"known must be given for the labels 'known' and 'as_coded' alone, got {known!r}")
        self._known = known
        self._applicant = ApplicantReader(self.rules)
        scores = len(self.rules.repayment)
        self.repayment = self.rules.repayment if repayment is None else checked_repayment(repayment, scores=scores)

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Any, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions, fresh, shape (B,); ``short`` is an `OpportunityGap` or offers its `if_taken`."""
        if policy.probabilities is None:
            raise ValueError("policy must give probabilities of discrete actions, got none")
        chance = policy.probabilities[np.arange(len(action)), action]
        unsure = (threshold <= chance) & (chance <= 1 - threshold)
        if not np.count_nonzero(unsure):
            return np.array(action)
        group, score = self._applicant(observation)
        repays = self.repayment[score] if self._known is None else np.asarray(self._known(), np.float64)
        other = 1 - action
        gain = short.if_taken(group, action, repays) - short.if_taken(group, other, repays)
        fairer = gain >= -ROUNDING if self.label == "as_coded" else gain > ROUNDING
        return np.where(unsure & fairer, other, action)


# What loans do to the groups ------------------------------------------------------------------------------------------


class ScoreDistance(Measure):
    """The 1-Wasserstein distance of the groups' scores, as a bank keeps it in its books.

    It is the true distance: the bank knows the scores that the groups began with, and each loan moves ``mass_shift`` of
    them by ``fair_outcome``. Unlike the distance of those who came to its door lately, it tells what a decision itself
    has changed. 0 is fair; at most the number of scores - 1.

    Args:
        env: FairLending of any face, or its rules.
        lanes: How many lanes (B).

    Attributes:
        distributions: Share of each score in each group, shape (B, 2, scores).

    Raises:
        ValueError: Another environment.
    """

    def __init__(self, env: Any, lanes: int) -> None:
        super().__init__(lanes)
        rules = lending_of(env)
        self._names = column_names("group", "action", "features", "outcome")
        self._first, self._shift = np.array(rules.distributions), rules.params.mass_shift
        self.distributions: Floats = np.empty((self.lanes, *self._first.shape))
        self.restart(np.ones(self.lanes, bool))

    def measured(self, info: Mapping[str, NDArray[Any]]) -> Floats:
        """Take in a step and return the distance after it."""
        group, action, features, outcome = self._told(info)
        if group.ndim > 1:
            raise ValueError(f"fair_group must be of one applicant a lane, got shape {group.shape}")
        lane = np.flatnonzero(action == ACCEPT)
        who, scores = group[lane], self._first.shape[1]
        score = np.rint(features[lane, 0] * (scores - 1)).astype(np.int64)
        after = score + np.rint(outcome[lane]).astype(np.int64)
        check_codes("fair_group", who, len(self._first))
        check_codes("the score", score, scores)
        check_codes("the score after the loan", after, scores)
        mass = np.minimum(self._shift, self.distributions[lane, who, score])
        self.distributions[lane, who, score] -= mass
        self.distributions[lane, who, after] += mass
        return self._distance()

    def forget(self, mask: Flags) -> None:
        """Begin with the first distributions in the masked lanes."""
        self.distributions[mask] = self._first
        self.value = np.where(mask, self._distance(), self.value)

    def _distance(self) -> Floats:
        return np.asarray(wasserstein(self.distributions[:, 0], self.distributions[:, 1]))
