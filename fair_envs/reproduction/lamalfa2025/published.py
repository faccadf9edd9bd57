"""The numbers that La Malfa et al. (2025) print, and the verdicts of the previous version of our page."""

from collections.abc import Mapping
from typing import NamedTuple

from fair_envs.reproduction.lamalfa2025.jobs import Notion, Weights


class Printed(NamedTuple):
    """A row of Table 1.

    Attributes:
        without: Price of fairness for the agents without the attribute, in percent.
        having: The same for those with the attribute.
        unfairness: The paper's number for unfairness; for conditional parity one for each preference.
    """

    without: float
    having: float
    unfairness: tuple[float, ...]

    def __str__(self) -> str:
        """Return the row as text."""
        return f"{self.without:+g} % / {self.having:+g} %, {', '.join(f'{u:.2f}' for u in self.unfairness)}"


TABLE_1: Mapping[Notion, Mapping[Weights, Printed]] = {
    "dp": {
        (0.0, 0.25): Printed(-56, -53, (0.23,)),
        (0.5, 0.5): Printed(-52, -50, (0.26,)),
        (1.0, 1.0): Printed(-47, -47, (0.29,)),
        (0.25, 0.25): Printed(-45, -44, (0.29,)),
    },
    "csp": {
        (0.75, 0.25): Printed(-57, -54, (0.15, 0.14)),
        (1.0, 0.0): Printed(-57, -55, (0.15, 0.15)),
        (0.5, 1.0): Printed(-56, -54, (0.15, 0.14)),
        (1.0, 1.0): Printed(-47, -46, (0.17, 0.19)),
    },
    "cf": {
        (1.0, 1.0): Printed(-38, -42, (0.25,)),
        (0.75, 0.5): Printed(-33, -39, (0.28,)),
        (0.0, 0.75): Printed(5, 18, (0.41,)),
        (0.25, 0.75): Printed(1, 5, (0.44,)),
    },
}

EPISODES, HORIZON, AGENTS = 1000, 3000, 40
"""The paper's numbers of training episodes, test episodes (equally many) and steps of an episode; agents."""

UPDATES = 4700
"""Optimiser steps of an episode in the published code: 235 minibatches, 5 epochs, 2 data sets, 2 networks."""
