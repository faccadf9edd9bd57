"""Measures of long-term and short-term fairness that follow a process step by step.

A `Measure` is a number about each of B lanes that is kept up to date while the lanes are played. 0 is fair.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Measure:
    """A number about each of B lanes, kept up to date step by step; 0 is fair, NaN where it is undefined.

    Subclass it and override `measured` and `forget`.

    Args:
        lanes: How many lanes (B).

    Attributes:
        value: After the last step, shape (B,).
        before: Before the last step, shape (B,); NaN in an episode's first step unless the measure knows better.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.value: Floats = np.full(lanes, np.nan)
        self.before: Floats = np.full(lanes, np.nan)

    def update(self, info: Mapping[str, NDArray[Any]]) -> Floats:
        """Take in a step and return the value after it, fresh, shape (B,).

        Args:
            info: The columns ``fair_*`` of the step in all lanes, lanes first, as a vector environment's ``info``.
        """
        self.before = self.value
        self.value = self.measured(info)
        return np.array(self.value)

    def restart(self, mask: Flags) -> None:
        """Forget the masked lanes, shape (B,), whose next episodes begin."""
        self.value = np.where(mask, np.nan, self.value)
        self.before = np.where(mask, np.nan, self.before)
        self.forget(mask)

    def measured(self, info: Mapping[str, NDArray[Any]]) -> Floats:
        """Take in a step and return the value after it, fresh, shape (B,)."""
        raise NotImplementedError

    def forget(self, mask: Flags) -> None:
        """Forget what was taken in of the masked lanes, shape (B,)."""
