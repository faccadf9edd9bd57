"""All notions on returns in one call: one number per episode for plots, and estimates with intervals for tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.metrics import welfare
from fair_envs.metrics.intervals import Estimate, Method, cluster_means, mean_interval
from fair_envs.metrics.returns import (
    Form,
    Group,
    MaxAbs,
    Returns,
    check_returns,
    conditional_parity,
    counterfactual_fairness,
    demographic_parity,
    group_returns,
    largest_gap_interval,
    scale_by_max_abs,
    sensitive_returns,
)
from fair_envs.support.aliases import Floats

_Measure = Callable[..., dict[str, Floats]]  # called with a form; returns one series per tag, such as "[red]"

_REPORTED: tuple[Form, ...] = ("sum", "difference", "ratio", "mean_ratio")
WELFARE = (
    welfare.utilitarian,
    welfare.maximin,
    welfare.nash_welfare,
    welfare.gini,
    welfare.jain,
    welfare.atkinson,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FairnessReport(Mapping[str, Estimate]):
    """Estimates by flat names, such as `demographic_parity_ratio` or `conditional_parity_ratio[red]`."""

    estimates: Mapping[str, Estimate]
    sensitive: str  # the group with the sensitive attribute
    unit: Literal["episode", "cluster"]  # what `n` of an estimate counts
    reference: str | None  # the set that scales the estimates named `_scaled`

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.estimates:
            raise KeyError(f"name must be one of {', '.join(self.estimates)}, got {name!r}")
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and dictionaries for JSON; an undefined number becomes None."""
        return {
            "sensitive": self.sensitive,
            "unit": self.unit,
            "reference": self.reference,
            "estimates": {name: estimate.as_dict() for name, estimate in self.estimates.items()},
        }

    def __str__(self) -> str:
        width = max(map(len, self.estimates), default=0)
        return "\n".join(f"{name:{width}}  {estimate}" for name, estimate in self.estimates.items())


def fairness_report(
    returns: Returns,
    *,
    sensitive: Group = "sensitive",
    legitimate: str | Sequence[str] | None = None,
    counterfactual: Returns | None = None,
    factual: Returns | None = None,
    reference: MaxAbs | None = None,
    floor: float = 1.0,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    method: Method = "t",
    resamples: int = 9999,
    seed: int = 0,
) -> FairnessReport:
    """Return every notion on returns with its interval.

    Some names have the value of the legitimate factor in brackets. The names are: `mean_return[with]` and
    `mean_return[without]`; `demographic_parity`, `conditional_parity` and `counterfactual_fairness`, each followed by
    `_sum`, `_difference`, `_ratio`, `_ratio_abs`, `_mean_ratio`, `_mean_ratio_abs` and, with a reference, `_scaled`;
    `largest_gap` between the combinations of the sensitive group and the legitimate factor; `utilitarian`, `maximin`,
    `nash_welfare`, `gini`, `jain` and `atkinson`, computed within each episode.

    `_abs` is the mean of absolute values: in the signed mean, disparities of opposite signs cancel. Episodes in which a
    notion is undefined are left out of it; `n` counts the others.

    Args:
        returns: Returns and attributes.
        sensitive: The group with the sensitive attribute (see `Returns.members`).
        legitimate: The legitimate factor or factors; None: conditional parity is left out.
        counterfactual: The same episodes with the attribute flipped, or None.
        factual: The episodes that `counterfactual` belongs to, if they are not `returns`.
        reference: Scale for `_scaled` (see `max_abs`), or None.
        floor: Smallest denominator of the ratios.
        clusters: Training seed of each episode, shape (episodes,); the units are then the seeds. None: the units are
            episodes.
        level: Confidence level of the intervals.
        method: Interval of the means (see `mean_interval`); the largest gap always uses the bootstrap.
        resamples: Number of bootstrap resamples.
        seed: Seed of the resampling.
    """
    series = fairness_series(
        returns,
        sensitive=sensitive,
        legitimate=legitimate,
        counterfactual=counterfactual,
        factual=factual,
        reference=reference,
        floor=floor,
    )
    estimate = partial(mean_interval, level=level, method=method, undefined="omit", resamples=resamples, seed=seed)
    estimates = {name: estimate(_units(values, clusters)) for name, values in series.items()}
    cells = {label: _units(values, clusters) for label, values in _cells(returns, sensitive, legitimate).items()}
    estimates["largest_gap"] = largest_gap_interval(cells, level=level, resamples=resamples, seed=seed)
    return FairnessReport(
        estimates=estimates,
        sensitive=_label(sensitive),
        unit="episode" if clusters is None else "cluster",
        reference=None if reference is None else reference.reference,
    )


def fairness_series(
    returns: Returns,
    *,
    sensitive: Group = "sensitive",
    legitimate: str | Sequence[str] | None = None,
    counterfactual: Returns | None = None,
    factual: Returns | None = None,
    reference: MaxAbs | None = None,
    floor: float = 1.0,
) -> dict[str, Floats]:
    """Return every notion, one number per episode, under the names of `fairness_report`.

    Use it for box plots, and for your own statistics such as the paired difference of two methods over seeds.
    """
    check_returns("returns", returns)
    shared: dict[str, Any] = {"sensitive": sensitive, "floor": floor}
    measures: dict[str, _Measure] = {"demographic_parity": partial(_parity, returns, **shared)}
    if legitimate is not None:
        measures["conditional_parity"] = partial(_conditional, returns, legitimate=legitimate, **shared)
    if counterfactual is not None:
        pair = (returns if factual is None else factual, counterfactual)
        measures["counterfactual_fairness"] = partial(_counterfactual, *pair, **shared)
    sides = sensitive_returns(returns, sensitive=sensitive)
    series = {f"mean_return[{side}]": values for side, values in sides.items()}
    for notion, measure in measures.items():
        series |= _forms(notion, measure, None if reference is None else getattr(reference, notion))
    return series | {measure.__name__: measure(returns.values) for measure in WELFARE}


def _forms(notion: str, measure: _Measure, scale: float | None) -> dict[str, Floats]:
    """Return the series of one notion in all reported forms."""
    series = {}
    for form in _REPORTED:
        for tag, values in measure(form=form).items():
            series[f"{notion}_{form}{tag}"] = values
            if form in ("ratio", "mean_ratio"):
                series[f"{notion}_{form}_abs{tag}"] = np.abs(values)
    if scale is not None:
        for tag, values in measure(form="total").items():
            series[f"{notion}_scaled{tag}"] = scale_by_max_abs(values, reference=[scale])
    return series


def _parity(returns: Returns, **options: Any) -> dict[str, Floats]:
    return {"": demographic_parity(returns, **options)}


def _conditional(returns: Returns, **options: Any) -> dict[str, Floats]:
    return {f"[{label}]": values for label, values in conditional_parity(returns, **options).items()}


def _counterfactual(factual: Returns, counterfactual: Returns, **options: Any) -> dict[str, Floats]:
    return {"": counterfactual_fairness(factual, counterfactual, **options)}


def _cells(returns: Returns, sensitive: Group, legitimate: str | Sequence[str] | None) -> dict[str, Floats]:
    """Return the mean returns of the sensitive group and of the others, within each value of the factors."""
    names = [] if legitimate is None else [legitimate] if isinstance(legitimate, str) else list(legitimate)
    marked = {"in the group": returns.members(sensitive), **{name: returns.attribute(name) for name in names}}
    return group_returns(Returns(returns.values, attributes=marked), by=list(marked))


def _units(values: Floats, clusters: ArrayLike | None) -> Floats:
    return values if clusters is None else cluster_means(values, clusters=clusters)


def _label(group: Group) -> str:
    return group if isinstance(group, str) else ", ".join(f"{name}={code}" for name, code in group.items())
