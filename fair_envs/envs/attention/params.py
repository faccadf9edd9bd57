"""The parameters of FairAttention: every number an experiment may change, with its default and source.

Sources: A is the code of Hu, Lear and Zhang (2024), whose text prints none of these numbers; Y is the code of Yu et al.
(2022), "POCAR"; G is ml-fairness-gym (D'Amour et al., 2020). Without a mark: the recommended rules of this package.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.parameters import NonNegative, Positive, PositiveInt, Range, UnitInterval

Factor = Annotated[float, Range(0, 3)]
Size = Annotated[int, Range(1, 1000)]

# The options of each choice, in the order in which compiled rules know them.
ONCE, PER_INCIDENT = range(2)
UNITS, LOGITS = range(2)
STRUCTURED, AUTHORS = range(2)
ALL, DISCOVERED = range(2)


class AttentionParams(NamedTuple):
    """The parameters of FairAttention."""

    profile: Literal["paper", "authors", "pocar", "ml-fairness-gym"] = "paper"  # other defaults, see PROFILES
    # The locations
    locations: Annotated[int, Range(2, 1000)] = 5  # as many as you give rates, if you do; A, Y, G's experiments
    initial_rates: Literal["study", "even", "own"] = "study"  # or a number, or one for each location; A, Y, G
    increase_rates: Literal["study", "as_decrease", "own"] = "study"  # or a number, or one for each; A; Y, G: .1
    decrease_rate: NonNegative = 0.1  # of the rate, for each unit sent; A, Y; G: 0 to 0.15
    discoverable_weight: Factor = 1.0  # incidents that units can discover, for each unit of the rate; A, Y, G
    reported_weight: Factor = 0.0  # further incidents that are reported without any unit; A, Y, G
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 1000  # steps until truncation; A, G
    # The units
    units: Size = 6  # sent in each step; A, Y, G's experiments
    replacement: bool = False  # whether a unit discovers any number of incidents; else one at most; A, Y, G
    miss_probability: UnitInterval = 0.0  # that a unit misses an incident; A, Y, G's experiments; G: .2
    extra_probability: UnitInterval = 0.0  # that a free unit reports a false incident; unused with replacement; A, Y, G
    extras: Literal["once", "per_incident"] = "once"  # how often it may; G: after each incident
    # Rewards
    discovered_reward: NonNegative = 1.0  # for each incident discovered; A
    missed_penalty: NonNegative = 0.25  # for each that was not; A
    share_penalty: NonNegative = 0.0  # of the deviation of shares above the tolerance; A has it and uses 0
    share_tolerance: UnitInterval = 0.05  # A: .1 for its own algorithm
    # Actions
    action: Literal["units", "logits"] = "units"  # each unit chooses a location; A, Y: logits
    logit_limit: Positive = 3.0  # logits lie between minus this and this; A: 3 in name, none in fact
    # Observations
    observation: Literal["structured", "authors"] = "structured"  # scaled, with axes; or A's flat numbers
    told: Literal["all", "discovered"] = "all"  # about which incidents one learns; G: the discovered
    noisy_features: bool = False  # whether two numbers of each location hint at its incidents; G
    feature_variance_0: NonNegative = 0.8  # of the first, which tells nothing; G
    feature_variance_1: NonNegative = 0.7  # of the second, which is 1 and the incidents; G
    history: Annotated[int, Range(1, 1000)] = 8  # last steps in an observation; A
    window: PositiveInt = 300  # last steps that the ratio of discovered incidents and the shares cover; A


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
    "increase_rates": {"study": (0.2, 0.26, 0.4, 0.6, 0.3)},  # A; of "as_decrease" it is the decrease rate
}
"""The named sets of rates: one for each location, or one for all."""
