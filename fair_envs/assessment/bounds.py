"""The ranges of the reported numbers, which no interval leaves.

Intervals of means over episodes are symmetric (Student's t), so with few episodes they would also contain numbers that
cannot occur, such as shares above 1 or largest differences below 0.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fair_envs.metrics.intervals import Estimate
from fair_envs.metrics.measures import Measure
from fair_envs.metrics.rates import (
    ACCURACY,
    ERROR_SHARE,
    FALSE_POSITIVE,
    NEED_MET,
    NEGATIVE_VALUE,
    POSITIVE_VALUE,
    SELECTION,
    TRUE_NEGATIVE,
    TRUE_POSITIVE,
    RateMeasure,
)

Bounds = tuple[float, float]
"""The smallest and the largest possible value."""

SHARE: Bounds = (0.0, 1.0)
DIFFERENCE: Bounds = (-1.0, 1.0)  # of two shares
WELFARE_BOUNDS: Mapping[str, Bounds] = {
    "nash_welfare": (0.0, np.inf),
    "gini": SHARE,
    "jain": SHARE,
    "atkinson": SHARE,
}
"""The ranges of the welfare functions of `fair_envs.metrics.welfare` that have one."""

SHARES = (
    SELECTION,
    TRUE_POSITIVE,
    FALSE_POSITIVE,
    TRUE_NEGATIVE,
    ACCURACY,
    POSITIVE_VALUE,
    NEGATIVE_VALUE,
    ERROR_SHARE,
    NEED_MET,
)
"""The rates in [0, 1]; outcomes and returns have no range."""


def bounds_of(measure: Measure) -> Bounds:
    """Return the range of a measure; largest differences between shares are at most 1."""
    share = isinstance(measure, RateMeasure) and measure.rate in SHARES
    return measure.least, min(measure.worst, 1.0) if share else measure.worst


def within(estimate: Estimate, bounds: Bounds | None) -> Estimate:
    """Return an estimate whose interval does not leave the range; an undefined interval stays undefined."""
    if bounds is None:
        return estimate
    low, high = (float(end) for end in np.clip([estimate.low, estimate.high], *bounds))
    return replace(estimate, low=low, high=high)
