"""The numbers of a result: each notion's series over the test episodes, and its mean."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import linregress

from fair_envs.metrics import (
    Estimate,
    conditional_parity,
    counterfactual_fairness,
    demographic_parity,
    disparity_ratio,
    mean_interval,
    paired_difference,
    price_interval,
    sensitive_returns,
)
from fair_envs.reproduction.experiment import Result
from fair_envs.support.aliases import Floats

Series = dict[str, Floats]

GROUPS = ("without", "with")  # the sensitive attribute


def series(result: Result, *, horizon: int) -> Series:
    """Return each number for each test episode; returns and differences are per agent and step.

    Names: ``return[without]``, ``return[with]``; ``dp_ratio``, ``dp_difference``, ``dp_total``; the same with
    ``csp_..[red]``; ``cf_ratio``, ``cf_difference``, ``cf_total`` of the paper's two games and ``game[without]``,
    ``game[with]``, the returns in them; ``twin_own`` and ``twin_same``, the differences per agent and step if all
    agents with the attribute lose it, with the networks of their new and of their old group.
    """
    found: Series = {}
    for group, values in sensitive_returns(result.ordinary).items():
        found[f"return[{group}]"] = values / horizon
    for form in ("ratio", "difference", "total"):
        unit = horizon if form == "difference" else 1
        found[f"dp_{form}"] = demographic_parity(result.ordinary, form=form) / unit
        for value, gap in conditional_parity(result.ordinary, legitimate="preference", form=form).items():
            found[f"csp_{form}[{value}]"] = gap / unit
        if result.everybody is not None and result.none is not None:
            found[f"cf_{form}"] = counterfactual_fairness(result.everybody, result.none, form=form) / unit
    for group, game in zip(GROUPS, (result.none, result.everybody), strict=True):
        if game is not None:
            found[f"game[{group}]"] = game.values.mean(axis=1) / horizon
    for kind, twin in result.twins.items():
        found[f"twin_{kind}"] = counterfactual_fairness(result.ordinary, twin, form="difference") / horizon
    return found


@dataclass
class Arm:
    """One method with the results of its training seeds, in the order of the seeds.

    Attributes:
        label: The name in tables and plots.
        results: One result per training seed.
        horizon: Steps of an episode.
    """

    label: str
    results: Sequence[Result]
    horizon: int
    _series: list[Series] = field(default_factory=list, repr=False)

    @property
    def series(self) -> list[Series]:
        """Each seed's series."""
        if not self._series:
            self._series = [series(result, horizon=self.horizon) for result in self.results]
        return self._series

    def names(self) -> list[str]:
        """Return the names of the numbers."""
        return list(self.series[0])

    def per_seed(self, name: str, *, absolute: bool = False) -> Floats:
        """Return the number's mean over test episodes for each seed, or the mean of its absolute value."""
        return np.array([np.mean(np.abs(s[name]) if absolute else s[name]) for s in self.series])

    def estimate(self, name: str, *, absolute: bool = False) -> Estimate:
        """Return the number's mean over seeds with its interval."""
        return mean_interval(self.per_seed(name, absolute=absolute))

    def against(self, other: "Arm", name: str, *, absolute: bool = False) -> Estimate:
        """Return this arm's number minus the other's, paired by training seed."""
        return paired_difference(self.per_seed(name, absolute=absolute), other.per_seed(name, absolute=absolute))

    def price(self, classic: "Arm", name: str) -> Estimate:
        """Return the price of fairness in percent of the other arm's number, paired by training seed."""
        return price_interval(self.per_seed(name), classic.per_seed(name), paired=True, method="t")

    def reduction(self, classic: "Arm", name: str) -> Estimate:
        """Return how many percent the mean absolute number is below the other arm's."""
        change = price_interval(
            self.per_seed(name, absolute=True), classic.per_seed(name, absolute=True), paired=True, method="t"
        )
        return replace(change, value=-change.value, low=-change.high, high=-change.low)

    def learning(self) -> tuple[Floats, Floats]:
        """Return the agent steps at the end of each rollout of the training, and each seed's ratio in it.

        The ratio is that of the groups' mean rewards in the rollout; shapes (rollouts,) and (seeds, rollouts).
        """
        rows = np.array([result.learning for result in self.results])
        return rows[0, :, 0], disparity_ratio(rows[..., 1], rows[..., 2], floor=0)

    def trend(self) -> Estimate:
        """Return the rise of the ratio in the rollouts over the training's second half, by linear regression."""
        steps, ratio = self.learning()
        late = steps > steps[-1] / 2
        if late.sum() < 2:  # no line
            return mean_interval(np.full(len(ratio), np.nan))
        slopes = [linregress(steps[late], seed[late]).slope for seed in ratio]
        return mean_interval(np.array(slopes) * steps[-1] / 2)

    def pooled(self, name: str) -> Floats:
        """Return the series of all seeds, concatenated."""
        return np.concatenate([s[name] for s in self.series])

    def actions(self, kind: str) -> Floats:
        """Return the shares of the actions in each group, shape (groups, actions); ``selected`` or ``executed``."""
        counts = sum(np.asarray(getattr(result, kind), float) for result in self.results)
        return np.asarray(counts / np.sum(counts, axis=1, keepdims=True))


def largest_absolute(arms: Sequence[Arm], names: Sequence[str]) -> float:
    """Return the largest absolute value of the numbers over all arms, seeds and episodes: a reference for scaling."""
    return max(float(np.abs(arm.pooled(name)).max()) for arm in arms for name in names)
