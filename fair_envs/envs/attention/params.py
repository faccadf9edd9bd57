"""The parameters of FairAttention: every number an experiment may change, with its default and source.

Sources: A is the code of Hu, Lear and Zhang (2024), whose text gives none of these numbers; Y is the code of Yu et al.
(2022), "POCAR"; G is ml-fairness-gym (D'Amour et al., 2020). Values without a mark are this package's recommendations.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.support.parameters import NonNegative, Positive, PositiveInt, Range, UnitInterval

Factor = Annotated[float, Range(0, 3)]
Size = Annotated[int, Range(1, 1000)]

# The options of each choice, in the order in which compiled rules number them.
ONCE, PER_INCIDENT = range(2)
UNITS, LOGITS = range(2)
STRUCTURED, AUTHORS = range(2)
ALL, DISCOVERED = range(2)


class AttentionParams(NamedTuple):
    """The parameters of FairAttention."""

    profile: Literal["paper", "authors", "pocar", "ml-fairness-gym"] = "paper"  # selects other defaults, see PROFILES
    # The locations
    locations: Annotated[int, Range(2, 1000)] = 5  # the number of user-defined rates, if given; A, Y, G's experiments
    initial_rates: Literal["study", "even", "own"] = "study"  # or one number, or one per location; A, Y, G
    increase_rates: Literal["study", "as_decrease", "own"] = "study"  # or one number, or one per location; A; Y, G: .1
    decrease_rate: NonNegative = 0.1  # decrease of the rate per unit sent; A, Y; G: 0 to 0.15
    discoverable_weight: Factor = 1.0  # mean discoverable incidents per unit of the rate; A, Y, G
    reported_weight: Factor = 0.0  # mean incidents reported without any unit, per unit of the rate; A, Y, G
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 1000  # steps until truncation; A, G
    # The units
    units: Size = 6  # sent in each step; A, Y, G's experiments
    replacement: bool = False  # True: a unit discovers any number of incidents; False: at most one; A, Y, G
    miss_probability: UnitInterval = 0.0  # probability that a unit misses an incident; A, Y, G's experiments; G: .2
    extra_probability: UnitInterval = 0.0  # of a false incident by a free unit; unused with replacement; A, Y, G
    extras: Literal["once", "per_incident"] = "once"  # how often this can happen; G: after each incident
    # Rewards
    discovered_reward: NonNegative = 1.0  # reward for each discovered incident; A
    missed_penalty: NonNegative = 0.25  # subtracted for each missed incident; A
    share_penalty: NonNegative = 0.0  # weight of the shares' deviation above the tolerance; A has it and uses 0
    share_tolerance: UnitInterval = 0.05  # A: .1 for its own algorithm
    # Actions
    action: Literal["units", "logits"] = "units"  # each unit chooses a location; A, Y: logits
    logit_limit: Positive = 3.0  # logits are in [-limit, limit]; A declares 3, does not enforce it
    # Observations
    observation: Literal["structured", "authors"] = "structured"  # scaled, with axes; or A's flat numbers
    told: Literal["all", "discovered"] = "all"  # which incidents are revealed; G: the discovered
    noisy_features: bool = False  # whether two noisy features hint at each location's incidents; G
    feature_variance_0: NonNegative = 0.8  # of the first feature, which carries no information; G
    feature_variance_1: NonNegative = 0.7  # of the second feature, whose mean is 1 + incidents; G
    history: Annotated[int, Range(1, 1000)] = 8  # number of last steps in an observation; A
    window: PositiveInt = 300  # number of last steps for the discovery ratio and the shares; A


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "authors": {"action": "logits", "logit_limit": 1000.0, "observation": "authors"},
    "pocar": {
        "increase_rates": "as_decrease",
        "action": "logits",
        "logit_limit": 1000.0,
        "observation": "authors",
    },
    "ml-fairness-gym": {
        "increase_rates": "as_decrease",
        "missed_penalty": 0.0,
        "extras": "per_incident",
        "told": "discovered",
        "noisy_features": True,
    },
}

RATES: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "initial_rates": {"study": (8.0, 6.0, 4.0, 3.0, 1.5), "even": (4.5,)},  # A, Y, G's experiments; their mean
    "increase_rates": {"study": (0.2, 0.26, 0.4, 0.6, 0.3)},  # A; "as_decrease" uses the decrease rate
}
"""The named sets of rates: one rate for each location, or one for all."""
