"""Scripted policies for FairLending, which give loans with a probability for each group and score, see `Lender`.

Policies with access to the groups' true scores are upper bounds and cannot be used in practice. With a threshold for
each group under equal opportunity, the optimum lies at a corner of one group's receiver operating characteristic (ROC)
curve. All corners are tried, so the solution is exact.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core.compilation import kernel, rule
from fair_envs.core.weights import shares_of
from fair_envs.envs.lending.params import GROUPS
from fair_envs.envs.lending.rules import Lending
from fair_envs.evaluation import DecisionMaker, rules_of
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import NonNegative, checked

LARGEST_WEIGHT = 1e300  # of a score: sums stay finite


Source = Literal["true", "initial", "window"]


"""Source of the groups' scores: the hidden current ones, those at the start of the episode, or those in the window."""


class Thresholds(NamedTuple):
    """A randomised threshold for each group; scores at or above the threshold get a loan.

    Attributes:
        strict: The higher threshold, shape (..., groups).
        lax: The lower threshold, shape (..., groups).
        strictness: Probability of using the higher threshold, shape (..., groups).
        opportunity: The resulting true positive rate of the groups, shape (...,).
        profit: Expected profit per applicant, shape (...,).
    """

    strict: Ints
    lax: Ints
    strictness: Floats
    opportunity: Floats
    profit: Floats

    def acceptance(self, scores: int) -> Floats:
        """Return the probability of a loan at each score, shape (..., groups, scores)."""
        score = np.arange(scores)
        above, between = (score >= limit[..., np.newaxis] for limit in (self.strict, self.lax))
        return np.where(above, 1.0, between * (1 - self.strictness[..., np.newaxis]))


def equal_opportunity(
    distributions: ArrayLike, repayment: ArrayLike, *, interest: float = 1.0, weights: ArrayLike | None = None
) -> Thresholds:
    """Return the most profitable thresholds with the same true positive rate in each group.

    Args:
        distributions: Weight of each score in each group, shape (..., groups, scores), normalised to shares. A group
            whose weights are all 0 has no known members and gets no loans.
        repayment: Probability of repayment at each score, shape (scores,) or (..., scores).
        interest: Profit of a repaid loan of 1; the loss of a defaulted loan is 1.
        weights: Numbers of applicants of each group, shape (groups,), normalised to shares; equal by default.

    Raises:
        ValueError: Shapes do not match, weights are negative or not finite, all group weights are 0, or ``repayment``
            contains numbers that are not probabilities.

    Example:
        >>> first = equal_opportunity([[0, 0.1, 0.9], [0.5, 0.5, 0]], [0.2, 0.6, 0.8])
        >>> first.strict.tolist(), first.lax.tolist(), first.strictness.round(3).tolist()
        ([3, 1], [2, 1], [0.188, 1.0])

    References:
        Hardt, Price and Srebro, "Equality of opportunity in supervised learning", NeurIPS 2016.
    """
    shares = _checked_shares(distributions)
    *batch, groups, scores = shares.shape
    chances = _checked_chances(repayment, (*batch, scores))
    sizes = _checked_sizes(weights, groups)
    earns = float(checked("interest", interest, NonNegative))
    limits, numbers = np.zeros((*batch, groups, 2), np.int64), np.full((*batch, groups + 2), np.nan)
    rates, earned = np.empty((2, groups, scores + 1))
    solve(
        *(shares.reshape(-1, groups, scores), chances.reshape(-1, scores), earns, sizes, rates, earned),
        *(limits.reshape(-1, groups, 2), numbers.reshape(-1, groups + 2)),
    )
    return Thresholds(limits[..., 0], limits[..., 1], numbers[..., 2:], numbers[..., 0], numbers[..., 1])


def _checked_shares(distributions: ArrayLike) -> Floats:
    """Return the share of each score in each group, shape (..., groups, scores); 0 if all weights of a group are 0."""
    given = np.asarray(distributions, np.float64)
    if given.ndim < 2 or 0 in given.shape[-2:]:
        raise ValueError(f"distributions must have shape (..., groups, scores), got {given.shape}")
    wrong = given[~((given >= 0) & (given <= LARGEST_WEIGHT))]
    if wrong.size:
        raise ValueError(f"distributions must have weights between 0 and {LARGEST_WEIGHT:g}, got {wrong[0]:g}")
    whole = given.sum(axis=-1, keepdims=True)
    return np.ascontiguousarray(given / np.where(whole > 0, whole, 1.0))


def _checked_chances(repayment: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return the repayment probabilities broadcast to a shape (..., scores)."""
    given = np.asarray(repayment, np.float64)
    if given.shape not in (shape, shape[-1:]):
        raise ValueError(f"repayment must have shape {shape[-1:]} or {shape}, got {given.shape}")
    wrong = given[~((given >= 0) & (given <= 1))]
    if wrong.size:
        raise ValueError(f"repayment must hold probabilities between 0 and 1, got {wrong[0]:g}")
    return np.ascontiguousarray(np.broadcast_to(given, shape))


def _checked_sizes(weights: ArrayLike | None, groups: int) -> Floats:
    """Return the groups' shares of the applicants, shape (groups,)."""
    given = np.ones(groups) if weights is None else np.asarray(weights, np.float64)
    if given.shape != (groups,):
        raise ValueError(f"weights must have shape ({groups},), got {given.shape}")
    return shares_of("weights", given)


def profitable(repayment: ArrayLike, *, interest: float = 1.0) -> Flags:
    """Return the mask of scores with a positive expected profit of a loan, with the shape of ``repayment``."""
    probability = np.asarray(repayment, np.float64)
    return np.asarray(probability * interest > 1 - probability)


@rule
def fill_corners(shares: Floats, repayment: Floats, interest: float, rates: Floats, earned: Floats) -> None:
    """Write the true positive rate and the profit per applicant for each threshold, 0 to ``scores``.

    If no member of a group repays, its rates are 0.
    """
    scores = shares.shape[0]
    rates[scores], earned[scores] = 0.0, 0.0
    for score in range(scores - 1, -1, -1):
        rates[score] = rates[score + 1] + shares[score] * repayment[score]
        earned[score] = earned[score + 1] + shares[score] * (repayment[score] * (1.0 + interest) - 1.0)
    whole = rates[0]
    for score in range(scores + 1):
        rates[score] = rates[score] / whole if whole > 0.0 else 0.0


@rule
def threshold_for(rates: Floats, wanted: float) -> tuple[int, float]:
    """Return the highest threshold that reaches a true positive rate, and how often to use the next higher one.

    If no member of a group repays, the group gets no loans.
    """
    threshold = rates.shape[0] - 1
    if not (wanted > 0.0 and rates[0] > 0.0):
        return threshold, 0.0
    while threshold > 0 and rates[threshold] < wanted:
        threshold -= 1
    return threshold, (rates[threshold] - wanted) / (rates[threshold] - rates[threshold + 1])


@rule
def profit_at(rates: Floats, earned: Floats, sizes: Floats, wanted: float) -> float:
    """Return the mean profit per applicant at a true positive rate."""
    profit = 0.0
    for group in range(rates.shape[0]):
        threshold, strictness = threshold_for(rates[group], wanted)
        each = earned[group, threshold]
        if strictness > 0.0:
            each += strictness * (earned[group, threshold + 1] - earned[group, threshold])
        profit += sizes[group] * each
    return profit


@kernel
def solve(
    shares: Floats,
    repayment: Floats,
    interest: float,
    sizes: Floats,
    rates: Floats,
    earned: Floats,
    limits: Ints,
    numbers: Floats,
) -> None:
    """Write each entry's thresholds to ``limits``, and its rate, profit and strictness to ``numbers``."""
    groups = shares.shape[1]
    for b in range(shares.shape[0]):
        for group in range(groups):
            fill_corners(shares[b, group], repayment[b], interest, rates[group], earned[group])
        numbers[b, 1] = -np.inf
        for wanted in rates.flat:
            profit = profit_at(rates, earned, sizes, wanted)
            if profit > numbers[b, 1]:
                numbers[b, 0], numbers[b, 1] = wanted, profit
        for group in range(groups):
            threshold, strictness = threshold_for(rates[group], numbers[b, 0])
            limits[b, group, 0], limits[b, group, 1] = threshold + (strictness > 0.0), threshold
            numbers[b, 2 + group] = strictness if strictness > 0.0 else 1.0


class Lender(DecisionMaker):
    """Gives loans by group and score; subclasses define the probabilities.

    All lenders know how likely each group repays at each score (`Lending.repayment`), as a bank does from its past
    loans. Methods have to learn it. Lenders do not know who will repay.

    Args:
        env: FairLending, of any interface, or its rules.

    Raises:
        ValueError: The environment is not FairLending.
    """

    def __init__(self, env: Any) -> None:
        self.rules = lending_of(env)
        self.interest = self.rules.params.interest_rate
        self._applicant = ApplicantReader(self.rules)

    def acceptance(self, observation: NDArray[Any]) -> Floats:
        """Return the probability of a loan, of shape (B, groups, scores) or one that broadcasts to it."""
        raise NotImplementedError

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the probabilities of rejecting and accepting, shape (B, 2)."""
        group, score = self._applicant(observation)
        acceptance = np.broadcast_to(self.acceptance(observation), (len(group), len(GROUPS), len(self.rules.repayment)))
        probability = acceptance[np.arange(len(group)), group, score]
        return np.stack([1 - probability, probability], axis=1)


class MaxReward(Lender):
    """Lends if the expected profit is positive, in any group; this maximises the expected reward of the next step."""

    def acceptance(self, observation: NDArray[Any]) -> Floats:
        """Return 1 for profitable scores, else 0."""
        return profitable(self.rules.repayment, interest=self.interest).astype(np.float64)


class Lenient(Lender):
    """Lends also at the highest score with an expected loss, since loans raise the scores of later applicants.

    In the long run this earns more than `MaxReward`: a repaid loan raises a score of the applicant's group.
    """

    def acceptance(self, observation: NDArray[Any]) -> Floats:
        """Return 1 for profitable scores and the next lower one, else 0."""
        earns = profitable(self.rules.repayment, interest=self.interest)
        lowest = np.flatnonzero(earns).min(initial=len(earns))
        return (np.arange(len(earns)) >= lowest - 1).astype(np.float64)


class EqualOpportunityLender(Lender):
    """Lends with the same true positive rate in each group, at the most profitable rate, see `equal_opportunity`.

    It has access to the repayment probabilities and the groups' shares of the applicants; the groups' scores are known
    or estimated. Until an applicant of each group has been observed, it lends where the expected profit is positive.

    Args:
        env: FairLending, of any interface, or its rules.
        distributions: The groups' scores: ``"true"``, the hidden scores of each lane at each step; ``"initial"``, those
            at the start of the episode; ``"window"``, as observed.

    Raises:
        ValueError: The environment is not FairLending, or ``"window"`` is not observed.
    """

    def __init__(self, env: Any, *, distributions: Source = "true") -> None:
        super().__init__(env)
        self._source = checked("distributions", distributions, Source)
        self.uses_truth = distributions == "true"
        self._first_share = place_of(self.rules, "share_0_advantaged") if distributions == "window" else 0
        advantaged = self.rules.params.advantaged_share
        self._sizes = np.array([advantaged, 1 - advantaged])

    def acceptance(self, observation: NDArray[Any]) -> Floats:
        """Return the probabilities given by the thresholds."""
        return self._acceptance(self._distributions(observation), self.rules.repayment)

    def _distributions(self, observation: NDArray[Any]) -> Floats:
        if self._source == "initial":
            return self.rules.distributions
        if self._source == "true":
            return np.asarray(self.oracle()["distribution"])
        return shares_in(observation, self._first_share, scores=len(self.rules.repayment))

    def _acceptance(self, distributions: Floats, repayment: Floats) -> Floats:
        fair = equal_opportunity(distributions, repayment, interest=self.interest, weights=self._sizes)
        greedy = profitable(repayment, interest=self.interest)[..., np.newaxis, :]
        both_seen = (distributions.sum(axis=-1) > 0).all(axis=-1)[..., np.newaxis, np.newaxis]
        return np.where(both_seen, fair.acceptance(repayment.shape[-1]), greedy)


class ObservedOpportunityLender(EqualOpportunityLender):
    """Lends with the same true positive rate in each group, estimated from the scores in the observed window."""

    def __init__(self, env: Any) -> None:
        super().__init__(env, distributions="window")


def lending_of(env: Any) -> Lending:
    """Return the rules of FairLending, of any interface.

    Raises:
        ValueError: The environment is not FairLending.
    """
    rules = rules_of(env)
    if not isinstance(rules, Lending):
        raise ValueError(f"env must be FairLending, got {env}")
    return rules


def check_codes(name: str, codes: Ints, count: int) -> None:
    """Raise ValueError unless codes are at least 0 and less than ``count``."""
    odd = codes[(codes < 0) | (codes >= count)]
    if odd.size:
        raise ValueError(f"{name} must be between 0 and {count - 1}, got {odd[0]}")


def place_of(rules: Lending, name: str) -> int:
    """Return the index of an entry in an observation.

    Raises:
        ValueError: The entry is not observed.
    """
    names = rules.observed_features(rules.params)
    if name not in names:
        raise ValueError(f"observation must include {name}, got {rules.params.observation!r}, which does not")
    return names.index(name)


class ApplicantReader:
    """Reads the current applicant from observations."""

    def __init__(self, rules: Lending) -> None:
        score, group = place_of(rules, "score_0"), place_of(rules, GROUPS[0])
        self._scores = slice(score, score + len(rules.repayment))
        self._groups = slice(group, group + len(GROUPS))

    def __call__(self, observation: NDArray[Any]) -> tuple[Ints, Ints]:
        """Return group and score of the current applicants, each of shape (B,)."""
        return observation[:, self._groups].argmax(axis=1), observation[:, self._scores].argmax(axis=1)


def shares_in(observation: NDArray[Any], first: int, *, scores: int) -> Floats:
    """Return the observed shares of scores in each group, shape (B, groups, scores); 0 for a group not yet observed."""
    counts = np.asarray(observation[:, first : first + len(GROUPS) * scores], np.float64)
    counts = counts.reshape(-1, len(GROUPS), scores)
    whole = counts.sum(axis=-1, keepdims=True)
    return counts / np.where(whole > 0, whole, 1)
