"""Objectives: the numbers of `fair_envs.evaluation.systems`, with the direction to optimise and their uncertainty."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fair_envs.core import Rules
from fair_envs.core.interactions import FairSpec
from fair_envs.evaluation.systems import (
    DECISIONS,
    PARITIES,
    SIDES,
    TOTAL,
    WELFARE,
    Episodes,
    can_flip,
    can_tell,
    gaps,
    outcomes,
)
from fair_envs.metrics.intervals import Estimate, mean_interval, paired_difference
from fair_envs.metrics.notions import canonical_name
from fair_envs.support.aliases import Floats

UNEQUAL = ("gini", "atkinson")  # welfare measures for which 0 is equality


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A number of every episode, and whether its mean should be small or large.

    A parity may be positive or negative; its objective is the absolute value of its mean over episodes, which should be
    small. A gap between groups in decisions about people is 0 or more in every episode.

    Attributes:
        name: As in `fair_envs.evaluation.systems.Series`, such as ``"demographic_parity:human_driven"``.
    """

    name: str

    @property
    def notion(self) -> str:
        """The notion that it measures."""
        return self.name.partition(":")[0]

    @property
    def of_parity(self) -> bool:
        """Whether 0 is best and both signs are worse."""
        return self.notion in PARITIES

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """The direction to optimise, as Optuna spells it."""
        return "minimize" if self.notion in (*PARITIES, *DECISIONS, *UNEQUAL) else "maximize"

    def value(self, values: Floats) -> float:
        """Return the value to optimise, from the numbers of some episodes; NaN if none is defined."""
        defined = values[~np.isnan(values)]
        if not defined.size:
            return float("nan")
        return abs(float(defined.mean())) if self.of_parity else float(defined.mean())

    def losses(self, values: Floats) -> Floats:
        """Return each episode's loss; the mean of the losses is the value, or minus the value if it should be large."""
        if self.of_parity:
            return values * (-1.0 if np.nansum(values) < 0 else 1.0)
        return values if self.direction == "minimize" else -values

    def error(self, values: Floats) -> float:
        """Return the standard error of the value; infinite below two defined episodes."""
        defined = values[~np.isnan(values)]
        return float(defined.std(ddof=1) / np.sqrt(defined.size)) if defined.size > 1 else float("inf")

    def estimate(self, values: Floats, *, level: float = 0.95) -> Estimate:
        """Return the mean, with its sign, and its interval."""
        return mean_interval(values, undefined="omit", level=level)

    def difference(self, values: Floats, others: Floats, *, level: float = 0.95) -> Estimate:
        """Return how much larger the value is than in other episodes with the same seeds; negative: smaller.

        It is the t-interval of the pairs. For a parity, each side is multiplied by the sign of its own mean. If that
        mean is about 0, the value is slightly overstated, like every absolute mean.
        """
        both = ~(np.isnan(values) | np.isnan(others))
        one, other = values[both], others[both]
        if not both.any() or not self.of_parity:
            return paired_difference(one, other, level=level)
        return paired_difference(self.losses(one), self.losses(other), level=level)

    def significantly_worse(self, values: Floats, others: Floats, *, alpha: float = 0.01) -> bool:
        """Return whether it is worse than in other episodes with the same seeds, at significance level ``alpha``."""
        paired = self.losses(values) - self.losses(others)
        return bool(mean_interval(paired, undefined="omit", level=1 - 2 * alpha).low > 0)


def numbers(episodes: Episodes) -> dict[str, Floats]:
    """Return every number that can be an objective, by its name; shape (episodes,) each."""
    return {one.name: one.values for one in (*gaps(episodes), *outcomes(episodes))}


def objective_named(text: str, rules: Rules) -> Objective:
    """Return the objective with that name; without an attribute, for the first sensitive one.

    Args:
        text: For example ``"total_return"``, ``"demographic_parity"``, its alias ``"dp"``, or
            ``"conditional_parity:human_driven:fast=1"``.
        rules: The rules of the environment.

    Raises:
        ValueError: The environment has no such number.
    """
    known = list(known_names(rules))
    with suppress(ValueError):
        notion, colon, of = text.partition(":")
        text = canonical_name("objective", notion, {name.partition(":")[0] for name in known}) + colon + of
    if text in known:
        return Objective(name=text)
    if any(name.startswith(f"{text}:") for name in known):
        of_first = f"{text}:{rules.spec.default_attribute(chosen_with=f'objective {text}:ATTRIBUTE')}"
        if of_first in known:
            return Objective(name=of_first)
    raise ValueError(f"objective must be one of {', '.join(known)}, got {text!r}")


def default_objectives(rules: Rules) -> list[str]:
    """Return the names of a parity, if the environment has one, and of the total return."""
    return [*[name for name in known_names(rules) if name.startswith("demographic_parity:")][:1], TOTAL]


def known_names(rules: Rules) -> Iterator[str]:
    """Yield the names of all numbers of an environment."""
    spec = rules.spec
    if not rules.multi_agent:
        yield from (f"{name}:{own}" for own in spec.sensitive for name in DECISIONS if can_tell(spec, name, own))
        yield TOTAL
        return
    flips = next(iter(spec.sensitive)) if can_flip(rules) else None
    for name in spec.sensitive:
        for group in labels(spec.sensitive, name):
            yield f"demographic_parity:{group}"
            if name == flips:
                yield f"counterfactual_fairness:{group}"
            yield from (f"conditional_parity:{group}:{within}" for within in _strata(spec, name))
            yield from (f"{side}:{group}" for side in SIDES)
    yield TOTAL
    yield from WELFARE


def labels(attributes: Mapping[str, tuple[str, ...]], name: str) -> list[str]:
    """Return the groups of an attribute: agents that have it, or one group for each code if there are more than two."""
    codes = range(len(attributes[name]))
    return [name] if len(codes) <= 2 else [f"{name}={code}" for code in codes]


def _strata(spec: FairSpec, name: str) -> Iterator[str]:
    for factor, values in spec.legitimate.items():
        if factor != name:
            yield from (f"{factor}={code}" for code in range(len(values)))
