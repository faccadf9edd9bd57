"""The parameters of FairHiring: every number an experiment may change, with its default and source.

Sources: P is Cimpean et al. (2025), "FAReL"; C is the code published with it. Values without a mark are this package's
recommendations.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.core.feedback import Kind
from fair_envs.support.parameters import Range, UnitInterval

# The options of each choice, in the order in which compiled rules number them.
TRUNCATE, TERMINATE = range(2)
LEVEL, DIFFERENCE = range(2)
SINGLE, DOUBLE = range(2)
DECIDED, NEXT_APPLICANT = range(2)


class HiringParams(NamedTuple):
    """The parameters of FairHiring."""

    profile: Literal["recommended", "authors"] = "recommended"  # selects other defaults, see PROFILES
    # The company
    team_size: Annotated[int, Range(1, 10_000)] = 100  # employees in a complete team; P
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 1000  # steps until truncation; P
    at_horizon: Literal["truncate", "terminate"] = "truncate"  # how the episode ends there; C terminates
    company_counts: Literal["single", "double"] = "single"  # weight of an employee beside a candidate; C: double
    # The applicants
    population: Literal["belgian", "gender", "nationality_gender", "gender_married", "own"] = (
        "belgian"  # or your own table; P
    )
    # Ground truth
    threshold: Annotated[float, Range(-1, 1)] = 0.5  # lowest goodness at which hiring is correct; P
    diversity_weight: UnitInterval = 0.0  # weight of diversity in the goodness, against skills; P
    language_term: Literal["level", "difference"] = "level"  # entropy of the team's languages (C), or its increase (P)
    noise: Annotated[float, Range(0, 10)] = 0.01  # standard deviation of the noise on reward and potential; P, C
    # Rewards
    reward_bias: Literal["none", "men", "belgian_men", "own"] = "none"  # or your own function; P
    reward_bias_size: Annotated[float, Range(-2, 2)] = 0.1  # added to the reward of hiring favoured applicants; P
    # Leaving
    leaving: bool = True  # whether employees leave; P: yes, C: no
    steps_per_year: Annotated[float, Range(1)] = 250.0  # one applicant per working day: 52 weeks of 5, 10 holidays
    leave_18_24: UnitInterval = 0.257  # probability to leave within a year up to age 24; Statbel 2021-2022, P
    leave_25_34: UnitInterval = 0.134  # P
    leave_35_44: UnitInterval = 0.074  # P
    leave_45_54: UnitInterval = 0.047  # P
    leave_55_64: UnitInterval = 0.021  # aged 55 and older; P
    # What the decision-maker observes
    feedback: Kind = "full"  # which applicants' labels are revealed; P, C: all
    delay: Annotated[int, Range(1, 1_000_000)] = 50  # steps until delayed feedback
    alignment: Literal["decided", "next_applicant"] = "decided"  # applicant that info describes; C: the next


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "recommended": {},
    "authors": {
        "at_horizon": "terminate",
        "company_counts": "double",
        "leaving": False,
        "alignment": "next_applicant",
    },
}
