"""The parameters of FairLending: every number an experiment may change, with its default and source.

Sources: P is Hu, Lear and Zhang (2024); A is the code published with it; G is ml-fairness-gym (D'Amour et al., 2020),
which A is made of. P prints few numbers: where it is silent, A's are taken. Without a mark: the recommended rules of
this package.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.aliases import Floats
from fair_envs.feedback import Kind
from fair_envs.parameters import NonNegative, Positive, Range, UnitInterval, shown
from fair_envs.weights import shares_of

# The options of each choice, in the order in which compiled rules know them.
TRUNCATE, TERMINATE = range(2)
ESTIMATED, AUTHORS, GYM = range(3)


class LendingParams(NamedTuple):
    """The parameters of FairLending."""

    profile: Literal["paper", "authors", "ml-fairness-gym"] = "paper"  # other defaults, see PROFILES
    # The bank
    starting_cash: NonNegative = 10_000.0  # P (Fig. 1c), A; G: 1000, in its experiments 100 to 10,000
    loan_amount: Positive = 1.0  # lost if it is not repaid; A, G
    interest_rate: NonNegative = 1.0  # of a repaid loan; A, G's experiments; G: 0.3
    max_cash: Positive = 1e20  # the bank keeps no more; A, G
    # The applicants
    distributions: Literal["delayed_impact", "equal", "own"] = "delayed_impact"  # or a table, which is your own; A, G
    repayment: Literal["delayed_impact", "own"] = "delayed_impact"  # or a table, which is your own; A, G
    advantaged_share: UnitInterval = 0.5  # of the applicants; A, G
    mass_shift: UnitInterval = 0.01  # of a group's distribution that a loan moves; A, G
    # The episode
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 10_000  # steps until truncation; P; A trains for 2000
    at_horizon: Literal["truncate", "terminate"] = "truncate"  # how the episode ends there; A terminates
    # What the bank sees and is told
    observation: Literal["estimated", "authors", "ml-fairness-gym"] = "estimated"  # "authors" shows hidden labels
    window: Annotated[int, Range(1, 1_000_000)] = 300  # applicants that rates and shares are about; P, A
    feedback: Kind = "accepted"  # of whom it is revealed whether they repay
    delay: Annotated[int, Range(1, 1_000_000)] = 50  # steps until delayed feedback


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "authors": {"horizon": 2000, "at_horizon": "terminate", "observation": "authors"},
    "ml-fairness-gym": {"starting_cash": 1000.0, "interest_rate": 0.3, "observation": "ml-fairness-gym"},
}

# ------------------------------------------------------------------------------------------------- the tables

OWN = "own"
ADVANTAGED, DISADVANTAGED = range(2)
GROUPS = ("advantaged", "disadvantaged")
MOST_SCORES = 1000

_ADVANTAGED_SHARES = (0.0, 0.1, 0.1, 0.2, 0.3, 0.3, 0.0)
_DISADVANTAGED_SHARES = (0.1, 0.1, 0.2, 0.3, 0.3, 0.0, 0.0)

DISTRIBUTIONS: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "delayed_impact": (_ADVANTAGED_SHARES, _DISADVANTAGED_SHARES),  # G
    "equal": (_ADVANTAGED_SHARES, _ADVANTAGED_SHARES),
}
"""Share of each score, the lowest first, in each group when an episode begins."""

REPAYMENTS: Mapping[str, tuple[float, ...]] = {"delayed_impact": (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7)}  # G
"""Probability to repay at each score, the lowest first."""

KNOWN: Mapping[str, tuple[str, ...]] = {"distributions": tuple(DISTRIBUTIONS), "repayment": tuple(REPAYMENTS)}


def is_known(name: str, value: Any) -> bool:
    """Return whether the value of that parameter is the name of a table that comes with the package."""
    return isinstance(value, str) and value in KNOWN[name]


def checked_distributions(table: ArrayLike) -> Floats:
    """Return a table of weights as the share of each score in each group, shape (2, scores).

    Raises:
        ValueError: Another shape, or weights that are negative, not finite or all 0.
    """
    given = _numbers("distributions", table)
    if given.ndim != 2 or given.shape[0] != len(GROUPS) or not 2 <= given.shape[1] <= MOST_SCORES:
        raise ValueError(
            f"distributions must have shape (2, scores), with 2 to {MOST_SCORES} scores, got {given.shape}"
        )
    return np.stack([shares_of("distributions", weights) for weights in given])


def checked_repayment(table: ArrayLike, *, scores: int) -> Floats:
    """Return a table as the probability to repay at each score, shape (scores,).

    Raises:
        ValueError: Another shape than that of the distributions asks for, or no probabilities.
    """
    given = _numbers("repayment", table)
    if given.shape != (scores,):
        raise ValueError(f"repayment must have shape ({scores},), as many scores as distributions, got {given.shape}")
    wrong = given[~((given >= 0) & (given <= 1))]
    if wrong.size:
        raise ValueError(f"repayment must hold probabilities between 0 and 1, got {wrong[0]:g}")
    return given


def _numbers(name: str, table: ArrayLike) -> Floats:
    try:
        return np.array(table, np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        options = ", ".join(map(repr, KNOWN[name]))
        raise ValueError(f"{name} must be one of {options} or a table of numbers, got {shown(table)}") from error
