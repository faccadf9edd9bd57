"""The parameters of FairCollege: every number an experiment may change, with its default and source.

Sources: G is the college admission environment of ml-fairness-gym (D'Amour et al., 2020) with its own defaults; E is
the experiment on it in that paper, as its code runs. Values without a mark are this package's recommendations.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.core.feedback import AtOnce
from fair_envs.support.parameters import NonNegative, Positive, Range, UnitInterval

# The options of each choice, in the order in which compiled rules number them.
THRESHOLD, THRESHOLD_EPSILON, LEVELS = range(3)
NO_NOISE, NOISY_SCORES, NOISY_THRESHOLDS, ALL_NOISY = range(4)
GAUSSIAN, BETA = range(2)
SEEN, PUBLISHED = range(2)

Value = Annotated[float, Range(-1e6, 1e6)]


class CollegeParams(NamedTuple):
    """The parameters of FairCollege."""

    profile: Literal["recommended", "ml-fairness-gym", "fat2020", "fat2020_noisy"] = (
        "recommended"  # selects other defaults, see PROFILES
    )
    # The episode
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 100  # rounds until truncation; G: 100,001, see PROFILES
    applicants: Annotated[int, Range(1, 10_000)] = 20  # applicants per round; G, E
    # What the jury publishes
    action: Literal["threshold", "threshold_epsilon", "levels"] = "threshold"  # G: both numbers
    levels: Annotated[int, Range(2, 10_001)] = 21  # "levels": number of thresholds 0, 0.05, ..., 1
    epsilon: UnitInterval = 0.0  # probability of admission below the threshold, unless part of the action; G, E
    # The applicants
    disadvantaged_share: UnitInterval = 0.4  # share of disadvantaged applicants; G; E: 0.5
    advantaged_mean: UnitInterval = 0.8  # mean of the true scores, before they are clipped to 0 to 1; G; E: 0.5
    disadvantaged_mean: UnitInterval = 0.6  # G; E: 0.5
    advantaged_spread: NonNegative = 0.1  # standard deviation; G, E
    disadvantaged_spread: NonNegative = 0.3  # G; E: 0.1
    qualified_above: Annotated[float, Range(-1, 100)] = 0.1  # least true score: (1 + this) times the group mean; G, E
    # Manipulation
    manipulation: bool = True  # whether applicants respond to the threshold; G, E
    largest_change: UnitInterval = 1.0  # most points that a score can be raised by; G, E: no limit, which is the same
    advantaged_cost: NonNegative = 0.8  # cost of raising a score from 0 to 1; admission is worth 1; G; E: 5
    disadvantaged_cost: NonNegative = 1.2  # G; E: 10
    subsidy: bool = False  # whether the disadvantaged pay only a share of their cost; G, E
    subsidy_beta: UnitInterval = 0.8  # that share; 0: no cost; G, E
    # Noise
    noise: Literal["none", "scores", "thresholds", "both"] = (
        "none"  # on scores before manipulation, or on the threshold each applicant sees; G, E
    )
    noise_distribution: Literal["gaussian", "beta"] = "gaussian"  # "beta": with a random sign; G, E
    noise_mean: Annotated[float, Range(-1, 1)] = 0.0  # "gaussian"; E; G: 0.1
    noise_spread: NonNegative = 0.1  # "gaussian": standard deviation; E: 0 to 0.3; G: 0.01
    noise_low: Annotated[float, Range(-1, 1)] = -0.35  # "gaussian": lower bound, by clipping; E; G: -0.3
    noise_high: Annotated[float, Range(-1, 1)] = 0.35  # "gaussian": upper bound, by clipping; E; G: 0.3
    noise_alpha: Positive = 2.0  # "beta"; E: 2 to 8; G: 0.01, its standard deviation
    noise_beta: Positive = 2.0  # "beta"; E; G: 0.1, its mean
    noise_response: Literal["seen", "published"] = "seen"  # response to a noisy threshold, see College; G, E: published
    # Rewards: the mean of these over the applicants of a round
    true_admission: Value = 1.0  # for admitting a qualified applicant; the juries of G
    true_rejection: Value = 1.0  # for rejecting an unqualified applicant
    false_admission: Value = 0.0  # for admitting an unqualified applicant; the juries of G: -1
    false_rejection: Value = 0.0  # for rejecting a qualified applicant; the juries of G: -1
    # What the jury observes
    feedback: AtOnce = "accepted"  # applicants whose label (qualified) is revealed; G, E


FAT2020: Mapping[str, Any] = {
    "horizon": 750,
    "disadvantaged_share": 0.5,
    "advantaged_mean": 0.5,
    "disadvantaged_mean": 0.5,
    "disadvantaged_spread": 0.1,
    "advantaged_cost": 5.0,
    "disadvantaged_cost": 10.0,
    "noise_response": "published",
}

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "recommended": {},
    "ml-fairness-gym": {
        "horizon": 100_001,  # its episodes end one round after its 100,000
        "action": "threshold_epsilon",
        "noise_mean": 0.1,
        "noise_spread": 0.01,
        "noise_low": -0.3,
        "noise_high": 0.3,
        "noise_alpha": 0.01,
        "noise_beta": 0.1,
        "noise_response": "published",
        "false_admission": -1.0,
        "false_rejection": -1.0,
    },
    "fat2020": FAT2020,
    "fat2020_noisy": {**FAT2020, "noise": "scores"},
}
