"""A scripted allocation that never changes, for the study on long-term fairness."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.envs.attention.policies import Allocator
from fair_envs.support.aliases import Floats


class SameUnits(Allocator):
    """Sends the same units in every step, in equal numbers; the remaining units go to the first locations."""

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the constant allocation."""
        counts = np.bincount(np.arange(self.units) % self.locations, minlength=self.locations)
        return self.of_counts(np.tile(counts, (len(observation), 1)))
