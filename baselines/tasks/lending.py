"""Massager of lending decisions and a long-term measure for FairLending."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.baselines.ppo.massaging import DecisionMassager
from fair_envs.envs.lending.params import checked_repayment
from fair_envs.envs.lending.policies import ApplicantReader, check_codes, lending_of
from fair_envs.envs.lending.rules import ACCEPT
from fair_envs.metrics.measures import Measure, column_names
from fair_envs.metrics.populations import wasserstein
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.parameters import checked

# Massaging ------------------------------------------------------------------------------------------------------------


class LendingMassager(DecisionMassager):
    """Reverses uncertain lending decisions if this reduces the gap between the groups' true positive rates.

    A decision with probability p is uncertain if threshold <= p <= 1 - threshold. The short-term measure is predicted
    for both decisions. The decision is reversed if that gives a smaller value, by more than rounding.

    Args:
        env: FairLending of any interface, or its rules.
        label: Source of the applicant's repayment label. ``"estimated"``: the repayment probability at the score;
            ``"known"``: the hidden label, to which no bank has access; ``"as_coded"``: the hidden label, and ties also
            reverse the decision, as in the published code. There, every uncertain decision about an applicant who will
            not repay is reversed, since neither decision changes the measure: the label leaks into training.
        known: Function that returns the repayment labels, shape (B,), for the latter two:
            ``lambda: env.unwrapped.oracle()["feedback"][:, 0]``. It is called if a decision is uncertain.
        repayment: Repayment probability at each score, shape (scores,); by default the environment's.

    Raises:
        ValueError: The environment is not FairLending, ``repayment`` is invalid, or ``known`` is missing or not needed.
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
            raise ValueError(f"known must be given only for the labels 'known' and 'as_coded', got {known!r}")
        self._known = known
        self._applicant = ApplicantReader(self.rules)
        scores = len(self.rules.repayment)
        self.repayment = self.rules.repayment if repayment is None else checked_repayment(repayment, scores=scores)

    @property
    def ties(self) -> bool:  # type: ignore[override]
        """Whether ties also reverse a decision, as in the published code."""
        return bool(self.label == "as_coded")

    def gain(self, observation: NDArray[Any], action: NDArray[Any], short: Any) -> Floats:
        """Return how much smaller the measure would be after the other decision; see `OpportunityGap.if_taken`."""
        group, score = self._applicant(observation)
        repays = self.repayment[score] if self._known is None else np.asarray(self._known(), np.float64)
        value, other = (short.if_taken(group, decision, repays) for decision in (action, 1 - action))
        return np.asarray(value - other)


# Effects of loans on the groups ---------------------------------------------------------------------------------------


class ScoreDistance(Measure):
    """The 1-Wasserstein distance between the groups' scores, as tracked by a bank.

    The distance is exact: the bank has the initial scores of the groups, and each loan moves ``mass_shift`` of them by
    ``fair_outcome``. Unlike the distance of the latest applicants' scores, it measures the effect of a decision itself.
    0 is fair; the maximum is the number of scores - 1.

    Args:
        env: FairLending of any interface, or its rules.
        lanes: Number of lanes (B).

    Attributes:
        distributions: Share of each score in each group, shape (B, 2, scores).

    Raises:
        ValueError: The environment is not FairLending.
    """

    def __init__(self, env: Any, lanes: int) -> None:
        super().__init__(lanes)
        rules = lending_of(env)
        self._names = column_names("group", "action", "features", "outcome")
        self._first, self._shift = np.array(rules.distributions), rules.params.mass_shift
        self.distributions: Floats = np.empty((self.lanes, *self._first.shape))
        self.restart(np.ones(self.lanes, bool))

    def measured(self, info: Mapping[str, NDArray[Any]]) -> Floats:
        """Process a step and return the distance after it."""
        group, action, features, outcome = self._reported(info)
        if group.ndim > 1:
            raise ValueError(f"fair_group must have one applicant per lane, got shape {group.shape}")
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
        """Reset the masked lanes to the initial distributions."""
        self.distributions[mask] = self._first
        self.value = np.where(mask, self._distance(), self.value)

    def _distance(self) -> Floats:
        return np.asarray(wasserstein(self.distributions[:, 0], self.distributions[:, 1]))
