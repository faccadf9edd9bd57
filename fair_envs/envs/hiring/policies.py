"""Scripted policies for FairHiring."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.envs.hiring.population import DEGREE, EXTRA, GENDER, NATIONALITIES, NATIONALITY
from fair_envs.envs.hiring.rules import COMPANY, HIRE, Hiring
from fair_envs.evaluation.deciders import Correct, Decider
from fair_envs.support.aliases import Flags
from fair_envs.support.parameters import UnitInterval, checked


def _check(rules: Any, env: Any) -> None:
    """Raise ValueError if the rules are not those of FairHiring."""
    if not isinstance(rules, Hiring):
        raise ValueError(f"env must be FairHiring, got {env}")


class Graduates(Decider):
    """Hires everyone with a degree, a simple rule on what is observed.

    Args:
        env: FairHiring, of any interface, or its rules.
        extra: Whether only those with an extra degree are hired, about 40 % of the applicants.

    Raises:
        ValueError: The environment is another one.
    """

    def __init__(self, env: Any, *, extra: bool = False) -> None:
        super().__init__(env)
        _check(self.rules, env)
        self._degree = len(COMPANY) + (EXTRA if checked("extra", extra, bool) else DEGREE)

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return where the applicant has such a degree."""
        found: Flags = observation[:, self._degree] > 0
        return found


class Alternating(Correct):
    """Hires qualified applicants, unless another group has been hired clearly less often so far.

    The groups' selection rates in an episode stay equal up to the tolerance, because all groups wait for the one with
    the lowest rate (demographic parity by levelling down). A group without applicants yet is not compared.

    Args:
        env: FairHiring, of any interface, or its rules.
        tolerance: How far a group's selection rate may be above another group's before it waits, 0 to 1. At 0 only the
            group with the lowest rate is hired from; at 1 no group waits.

    Raises:
        ValueError: The environment is another one, or the tolerance is out of range.
    """

    def __init__(self, env: Any, *, tolerance: float = 0.05) -> None:
        super().__init__(env)
        _check(self.rules, env)
        self.tolerance = checked("tolerance", tolerance, UnitInterval)

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return where the applicant is qualified and no other group has a clearly lower selection rate."""
        lane = self.lanes.records
        decided = lane["tally"].sum(axis=2)  # (B, groups, 2) by decision
        applicants = decided.sum(axis=2)
        rates = np.where(applicants > 0, decided[..., HIRE] / np.maximum(applicants, 1), np.nan)
        group = len(NATIONALITIES) * lane["applicant"][:, GENDER] + lane["applicant"][:, NATIONALITY]
        own = np.nan_to_num(rates[np.arange(len(lane)), group])
        behind: Flags = (rates + self.tolerance < own[:, np.newaxis]).any(axis=1)
        return super().chosen(observation) & ~behind


__all__ = ["Alternating", "Graduates"]
