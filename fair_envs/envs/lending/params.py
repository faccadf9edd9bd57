"""The parameters of FairLending: every number an experiment may change, with its default and source.

Sources: P is Hu, Lear and Zhang (2024); A is the code published with it; G is ml-fairness-gym (D'Amour et al., 2020),
on which A is based. P gives few numbers; the others come from A. Values without a mark are this package's
recommendations.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.core.feedback import Kind
from fair_envs.core.weights import shares_of
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegative, Positive, Range, UnitInterval, shown

# The options of each choice, in the order in which compiled rules number them.
TRUNCATE, TERMINATE = range(2)
OBSERVE_ESTIMATED, OBSERVE_AUTHORS, OBSERVE_GYM = range(3)


class LendingParams(NamedTuple):
    """The parameters of FairLending."""

    profile: Literal["paper", "authors", "ml-fairness-gym"] = "paper"  # selects other defaults, see PROFILES
    # The bank
    starting_cash: NonNegative = 10_000.0  # P (Fig. 1c), A; G: 1000, in its experiments 100 to 10,000
    loan_amount: Positive = 1.0  # amount lost if a loan is not repaid; A, G
    interest_rate: NonNegative = 1.0  # interest on a repaid loan; A, G's experiments; G: 0.3
    max_cash: Positive = 1e20  # upper limit of the bank's cash; A, G
    # The applicants
    distributions: Literal["delayed_impact", "equal", "own"] = "delayed_impact"  # of scores, or your own table; A, G
    repayment: Literal["delayed_impact", "own"] = "delayed_impact"  # by score, or your own table; A, G
    advantaged_share: UnitInterval = 0.5  # share of applicants from the advantaged group; A, G
    mass_shift: UnitInterval = 0.01  # share of a group's distribution that one loan moves; A, G
    # The episode
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 10_000  # steps until truncation; P; A trains for 2000
    at_horizon: Literal["truncate", "terminate"] = "truncate"  # how the episode ends there; A terminates
    # What the bank observes
    observation: Literal["estimated", "authors", "ml-fairness-gym"] = "estimated"  # "authors" reveals hidden labels
    window: Annotated[int, Range(1, 1_000_000)] = 300  # applicants in the rates and shares; P, A
    feedback: Kind = "accepted"  # for which applicants the label (would repay) is revealed
    delay: Annotated[int, Range(1, 1_000_000)] = 50  # steps until a delayed label arrives


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "authors": {"horizon": 2000, "at_horizon": "terminate", "observation": "authors"},
    "ml-fairness-gym": {"starting_cash": 1000.0, "interest_rate": 0.3, "observation": "ml-fairness-gym"},
}

# ------------------------------------------------------------------------------------------------- the tables

USER_TABLE = "own"
ADVANTAGED, DISADVANTAGED = range(2)
GROUPS = ("advantaged", "disadvantaged")
MOST_SCORES = 1000

_ADVANTAGED_SHARES = (0.0, 0.1, 0.1, 0.2, 0.3, 0.3, 0.0)
_DISADVANTAGED_SHARES = (0.1, 0.1, 0.2, 0.3, 0.3, 0.0, 0.0)

DISTRIBUTIONS: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "delayed_impact": (_ADVANTAGED_SHARES, _DISADVANTAGED_SHARES),  # G
    "equal": (_ADVANTAGED_SHARES, _ADVANTAGED_SHARES),
}
"""Initial share of each score in each group, the lowest score first."""

REPAYMENTS: Mapping[str, tuple[float, ...]] = {"delayed_impact": (0.1, 0.2, 0.45, 0.6, 0.65, 0.7, 0.7)}  # G
"""Repayment probability at each score, the lowest score first."""

NAMED_TABLES: Mapping[str, tuple[str, ...]] = {"distributions": tuple(DISTRIBUTIONS), "repayment": tuple(REPAYMENTS)}


def is_named_table(name: str, value: Any) -> bool:
    """Return whether the value of the parameter is the name of a table in this package."""
    return isinstance(value, str) and value in NAMED_TABLES[name]


def checked_distributions(table: ArrayLike) -> Floats:
    """Return a table of weights as the share of each score in each group, shape (2, scores).

    Raises:
        ValueError: The shape is wrong, or weights are negative, not finite or all 0.
    """
    given = _numbers("distributions", table)
    if given.ndim != 2 or given.shape[0] != len(GROUPS) or not 2 <= given.shape[1] <= MOST_SCORES:
        raise ValueError(
            f"distributions must have shape (2, scores), with 2 to {MOST_SCORES} scores, got {given.shape}"
        )
    return np.stack([shares_of("distributions", weights) for weights in given])


def checked_repayment(table: ArrayLike, *, scores: int) -> Floats:
    """Return a table as the repayment probability at each score, shape (scores,).

    Raises:
        ValueError: The shape does not match the distributions, or the values are not probabilities.
    """
    given = _numbers("repayment", table)
    if given.shape != (scores,):
        raise ValueError(f"repayment must have shape ({scores},), one entry for each score, got {given.shape}")
    wrong = given[~((given >= 0) & (given <= 1))]
    if wrong.size:
        raise ValueError(f"repayment must hold probabilities between 0 and 1, got {wrong[0]:g}")
    return given


def _numbers(name: str, table: ArrayLike) -> Floats:
    try:
        return np.array(table, np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        options = ", ".join(map(repr, NAMED_TABLES[name]))
        raise ValueError(f"{name} must be one of {options} or a table of numbers, got {shown(table)}") from error
