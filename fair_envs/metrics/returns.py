"""Measures of fairness on returns: do agents with a sensitive attribute earn as much as those without it?

They apply to any multi-agent system whose agents have named attributes; the data are one `Returns`. A notion gives one
number per episode. Its mean over episodes estimates the expectation, and its spread gives the interval.
`fair_envs.metrics.report` computes all notions in one call.

*with* are the agents with the sensitive attribute, *without* all others; R is a return, T the sum over a group. 0 is
parity in every form.

| form         | one episode                                               | positive when better off |
|--------------|-----------------------------------------------------------|--------------------------|
| `sum`        | the definition: sum over pairs of R(with) - R(without)    | **with**                 |
| `difference` | mean R(without) - mean R(with), per agent                 | without                  |
| `total`      | T(without) - T(with)                                      | without                  |
| `ratio`      | (T(without) - T(with)) / max(T(without) + T(with), floor) | without                  |
| `mean_ratio` | the same as if both groups had equal sizes                 | without                  |

The definition and the published tables have opposite signs; both signs are kept here. `total` and `ratio` grow with the
size of a group. For groups of unequal sizes use `difference` or `mean_ratio`.

References:
    La Malfa, Zhang, Luck and Black, "Using Protected Attributes to Consider Fairness in Multi-Agent Systems",
    AEQUITAS 2024, arXiv:2410.12889 (the definitions).
    La Malfa, Zhang, Luck and Black, "Fairness Aware Reinforcement Learning via Proximal Policy Optimization",
    arXiv:2502.03953 (their use as penalties, the price of fairness).
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.metrics.intervals import (
    METHODS,
    Estimate,
    Method,
    bootstrap_interval,
    check_choice,
    cluster_means,
    summed_interval,
    t_interval,
    vector,
)
from fair_envs.support.aliases import Flags, Floats, Ints

Code = int | str
Group = str | Mapping[str, Code]
Form = Literal["sum", "difference", "total", "ratio", "mean_ratio"]

FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Returns:
    """What every agent earned in every episode, and its attributes.

    Args:
        values: Returns, shape (episodes, agents); finite.
        attributes: Codes of each named attribute, shape (agents,), or (episodes, agents) if they are drawn again in
            every episode. A code is a whole number of at least 0, a bool, or a text.

    The arrays are copied and read-only; `attributes` holds them with shape (episodes, agents).

    Example:
        >>> Returns([[3.0, 1.0], [5.0, 2.0]], attributes={"sensitive": [0, 1], "preference": ["red", "red"]})
        Returns(2 episodes, 2 agents, attributes: sensitive, preference)
    """

    values: Floats
    attributes: Mapping[str, NDArray[Any]]

    def __init__(self, values: ArrayLike, *, attributes: Mapping[str, ArrayLike] | None = None) -> None:
        checked = _checked_values(values)
        object.__setattr__(self, "values", checked)
        named = {name: _checked_codes(name, codes, checked.shape) for name, codes in (attributes or {}).items()}
        object.__setattr__(self, "attributes", named)

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return int(self.values.shape[0])

    @property
    def agents(self) -> int:
        """Number of agents."""
        return int(self.values.shape[1])

    def attribute(self, name: str) -> NDArray[Any]:
        """Return the codes of one attribute, shape (episodes, agents)."""
        if name not in self.attributes:
            names = ", ".join(map(repr, self.attributes)) or "none: pass attributes={name: codes} to Returns"
            raise ValueError(f"returns must have the attribute {name!r}, got {names}")
        return self.attributes[name]

    def members(self, group: Group) -> Flags:
        """Return which agents belong to a group, shape (episodes, agents).

        Args:
            group: Name of an attribute with codes 0 and 1 (its members have 1), or a mapping of attributes to the code
                that a member has in each: `{"nationality": "foreign", "gender": "woman"}`.
        """
        belongs = np.ones(self.values.shape, dtype=np.bool_)
        for name, code in _criteria(self, group).items():
            belongs &= self.attribute(name) == code
        return belongs

    def select(self, *, episodes: Any = slice(None), agents: Any = slice(None)) -> "Returns":
        """Return some of the episodes and agents; each argument is a slice, a mask or a list of indices."""
        kept = {name: codes[episodes][:, agents] for name, codes in self.attributes.items()}
        return Returns(self.values[episodes][:, agents], attributes=kept)

    @classmethod
    def concat(cls, parts: Iterable["Returns"]) -> "Returns":
        """Return the episodes of all parts in order; the agents and the attribute names must agree."""
        items = list(parts)
        if not items:
            raise ValueError("parts must contain at least one Returns, got none")
        for item in items[1:]:
            _check_same_agents(items[0], item)
        names = items[0].attributes
        merged = {name: np.concatenate([item.attributes[name] for item in items]) for name in names}
        return cls(np.concatenate([item.values for item in items]), attributes=merged)

    def __repr__(self) -> str:
        names = ", ".join(self.attributes) or "none"
        return f"Returns({self.episodes} episodes, {self.agents} agents, attributes: {names})"


# Notions: one number per episode ------------------------------------------------------------------------------------


def demographic_parity(
    returns: Returns, *, sensitive: Group = "sensitive", form: Form = "sum", floor: float = 1.0
) -> Floats:
    r"""Return demographic parity of each episode, shape (episodes,): 0 is parity.

    The definition sums E[R(x)] - E[R(y)] over the pairs of an agent x with the attribute and an agent y without it
    whose other attributes are all equal. It is computed within each episode, in O(agents) by groups of equal agents.
    Its mean over episodes estimates the definition's sum. If attributes are drawn again in every episode, it estimates
    the expected sum over that draw. The other forms compare all agents with the attribute with all agents without it,
    unpaired.

    Args:
        returns: Returns and attributes.
        sensitive: The group with the sensitive attribute (see `Returns.members`).
        form: How the groups are compared. ``"sum"`` is the published definition and is positive if agents *with* the
            attribute are better off; all other forms are positive if those *without* it are. See the table of this
            module.
        floor: Smallest denominator of `ratio` and `mean_ratio`.

    Returns:
        One number per episode; NaN without any such pair (`sum`) or if one of the groups is empty.
    """
    check_returns("returns", returns)
    counted = np.ones(returns.values.shape, dtype=np.bool_)
    return _parity(returns, counted, sensitive=sensitive, form=form, floor=floor)


def conditional_parity(
    returns: Returns,
    *,
    sensitive: Group = "sensitive",
    legitimate: str | Sequence[str],
    form: Form = "sum",
    floor: float = 1.0,
) -> dict[str, Floats]:
    """Return conditional statistical parity: demographic parity for each value of the legitimate factor.

    Args:
        returns: Returns and attributes.
        sensitive: The group with the sensitive attribute (see `Returns.members`).
        legitimate: The attribute that may justify a difference; several attributes are combined.
        form: See the table of this module.
        floor: Smallest denominator of `ratio` and `mean_ratio`.

    Returns:
        For each value of the factor (as text, in ascending order), one number per episode, shape (episodes,).
    """
    check_returns("returns", returns)
    overlap = sorted(_criteria(returns, sensitive).keys() & set(_names(legitimate)))
    if overlap:
        raise ValueError(f"legitimate and sensitive must not share attributes, got {overlap[0]!r} in both")
    return {
        label: _parity(returns, counted, sensitive=sensitive, form=form, floor=floor)
        for label, counted in _groups(returns, legitimate)
    }


def counterfactual_fairness(
    factual: Returns,
    counterfactual: Returns,
    *,
    sensitive: Group = "sensitive",
    form: Form = "sum",
    floor: float = 1.0,
) -> Floats:
    """Return counterfactual fairness of each pair of episodes, shape (episodes,): 0 is fair.

    The definition sums, over the agents with the attribute, E[R] - E[R of the same agent with the attribute flipped,
    all else being equal]. Row e of both arguments is one pair of episodes with common random numbers. Entry (e, i) of
    `counterfactual` comes from a world in which agent i is flipped: either one world in which all of them are, or one
    world for each. For the two games of the fair-PPO paper, pass the game in which all agents have the attribute as
    `factual` and the game in which none has it as `counterfactual`; `ratio` is then its normalised disparity.

    In the other forms *with* is the agent in the factual world and *without* the same agent in the counterfactual
    world. The groups have equal sizes, so `ratio` and `mean_ratio` agree.

    Returns:
        One number per episode; NaN if no agent has the attribute.
    """
    check_returns("factual", factual)
    check_returns("counterfactual", counterfactual)
    _check_same_agents(factual, counterfactual)
    having = factual.members(sensitive)
    _check_flipped(factual, counterfactual, having, sensitive)
    sums = _Sums(
        total_without=np.sum(counterfactual.values, axis=1, where=having),
        total_with=np.sum(factual.values, axis=1, where=having),
        size_without=having.sum(axis=1),
        size_with=having.sum(axis=1),
    )
    if form == "sum":
        return -_disparity(sums, "total", floor)
    return _disparity(sums, form, floor)


def disparity_ratio(without: ArrayLike, having: ArrayLike, *, floor: float = 1.0) -> Floats:
    """Return (without - with) / max(without + with, floor) of the totals of two groups (fair-PPO's evaluation).

    For returns of at least 0 the ratio is between -1 and 1, on any scale of returns. 0 is parity, 1 means that agents
    with the attribute earn nothing, and 1/3 that they earn half. With the paper's floor of 1, two groups that earn
    nothing get 0; with `floor=0` the ratio is then undefined (NaN). Totals near or below the floor shrink the ratio.

    Args:
        without: Totals of the agents without the attribute.
        having: Totals of the agents with it, same shape.
        floor: Smallest denominator, at least 0.
    """
    if not floor >= 0:
        raise ValueError(f"floor must be at least 0, got {floor}")
    one, other = np.asarray(without, dtype=np.float64), np.asarray(having, dtype=np.float64)
    return _divide(one - other, np.maximum(one + other, floor))


def group_returns(returns: Returns, *, by: str | Sequence[str]) -> dict[str, Floats]:
    """Return the mean return per agent of each group, one number per episode, shape (episodes,).

    Groups are the values of the attribute `by`, or the existing combinations of values of several attributes. NaN in
    episodes without a member.
    """
    return {label: _group_mean(returns, members) for label, members in _groups(returns, by)}


def sensitive_returns(returns: Returns, *, sensitive: Group = "sensitive") -> dict[str, Floats]:
    """Return the mean return per agent `without` and `with` the attribute, each of shape (episodes,)."""
    having = returns.members(sensitive)
    return {"without": _group_mean(returns, ~having), "with": _group_mean(returns, having)}


# Several groups, scaling, price -------------------------------------------------------------------------------------


def largest_gap(groups: Mapping[str, ArrayLike]) -> float:
    """Return the largest gap between the expected returns of any two groups; at least 0, which is parity.

    Args:
        groups: One number per unit for each group, as returned by `group_returns`; NaN (no member) is left out.

    Returns:
        The gap; NaN with fewer than two groups, or if a group never has members.
    """
    return float(_largest_gap(*_columns(groups), axis=-1)) if len(groups) > 1 else float("nan")


def largest_gap_interval(
    groups: Mapping[str, ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """Return `largest_gap` with a percentile bootstrap interval; a unit is resampled with all its groups together.

    A largest gap is never below 0, and noise only increases it: with few units it overstates the gap.
    """
    columns = _columns(groups)
    if len(columns) < 2:
        nan = float("nan")
        return Estimate(value=nan, low=nan, high=nan, n=columns[0].size if columns else 0, level=level)
    return bootstrap_interval(columns, _largest_gap, paired=True, level=level, resamples=resamples, seed=seed)


@dataclass(frozen=True, kw_only=True)
class MaxAbs:
    """The largest absolute raw differences (form `total`) over a set of episodes, used as a scale for others.

    A scaled difference has no meaning without its reference set, so the set has a name. It must contain all policies
    and episodes that are compared. NaN: the set does not define the notion.
    """

    reference: str
    demographic_parity: float = float("nan")
    conditional_parity: float = float("nan")  # one for all values of the legitimate factor
    counterfactual_fairness: float = float("nan")


def max_abs(
    runs: Iterable[Returns],
    *,
    reference: str,
    sensitive: Group = "sensitive",
    legitimate: str | Sequence[str] | None = "preference",
    twins: Iterable[tuple[Returns, Returns]] = (),
) -> MaxAbs:
    """Return the scale that a set of runs defines.

    Args:
        runs: The returns of every policy in the set.
        reference: Name of the set, to print beside scaled numbers.
        sensitive: The group with the sensitive attribute.
        legitimate: The legitimate factor, or None.
        twins: Pairs of factual and counterfactual returns.
    """
    items = list(runs)
    parity = [demographic_parity(run, sensitive=sensitive, form="total") for run in items]
    conditional = [
        series
        for run in items
        if legitimate is not None
        for series in conditional_parity(run, sensitive=sensitive, legitimate=legitimate, form="total").values()
    ]
    flipped = [counterfactual_fairness(*pair, sensitive=sensitive, form="total") for pair in twins]
    return MaxAbs(
        reference=reference,
        demographic_parity=_largest_absolute(parity),
        conditional_parity=_largest_absolute(conditional),
        counterfactual_fairness=_largest_absolute(flipped),
    )


def scale_by_max_abs(values: ArrayLike, *, reference: Iterable[ArrayLike]) -> Floats:
    """Return values divided by the largest absolute value in `reference`: -1 to 1 within that set.

    The result can also shrink because all returns shrink; read it together with the ratio.

    Args:
        values: Raw differences of one policy, shape (episodes,).
        reference: Raw differences of all policies that are compared, including this one. If they are all 0, the result
            is undefined (NaN).
    """
    return _divide(np.asarray(values, dtype=np.float64), np.asarray(_largest_absolute(reference)))


def price_of_fairness(fair: ArrayLike, classic: ArrayLike) -> Floats:
    """Return 100 * (fair - classic) / classic in percent: negative is a loss, 0 is no change; NaN if classic is 0.

    If the classic return is negative, the sign has the opposite meaning.
    """
    new, old = np.asarray(fair, dtype=np.float64), np.asarray(classic, dtype=np.float64)
    return _divide(100 * (new - old), old)


def price_interval(
    fair: ArrayLike,
    classic: ArrayLike,
    *,
    paired: bool = False,
    level: float = 0.95,
    method: Method = "bca",
    resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """Return the price of fairness between the means of two samples, in percent, with its interval.

    Args:
        fair: One return per unit (episode, or training seed) under the fair method, shape (units,); NaN is left out.
        classic: The same under the classic method.
        paired: Whether unit i is the same in both (the same training seed).
        level: Confidence level: the share of such intervals that cover the price.
        method: `bca` and `percentile` resample the units; `t` linearises the ratio (delta method) and suits few units.
        resamples: Number of bootstrap resamples.
        seed: Seed of the resampling.
    """
    check_choice(method, "method", METHODS)
    new, old = _defined_samples(fair, classic, paired=paired)
    if method == "t":
        return _price_t_interval(new, old, paired=paired, level=level)
    return bootstrap_interval(
        [new, old], _price, paired=paired, level=level, method=method, resamples=resamples, seed=seed
    )


def group_prices(
    fair: Returns,
    classic: Returns,
    *,
    sensitive: Group = "sensitive",
    clusters: tuple[ArrayLike, ArrayLike] | None = None,
    paired: bool = False,
    level: float = 0.95,
    method: Method = "bca",
    resamples: int = 9999,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Return the price of fairness for the agents `without` and `with` the attribute, on the mean return per agent.

    Args:
        fair: Returns under the fair method.
        classic: Returns under the classic method.
        sensitive: The group with the sensitive attribute.
        clusters: Training seed of each episode of `fair` and of `classic`, shapes (episodes,); the units are then the
            seeds.
        paired: Whether both methods have the same units: the same training seeds, or the same episodes.
        level: Confidence level: the share of such intervals that cover the price.
        method: See `price_interval`.
        resamples: Number of bootstrap resamples.
        seed: Seed of the resampling.
    """
    if clusters is not None and paired:
        _check_same_clusters(*clusters)
    news, olds = sensitive_returns(fair, sensitive=sensitive), sensitive_returns(classic, sensitive=sensitive)
    prices = {}
    for side in ("without", "with"):
        new, old = news[side], olds[side]
        if clusters is not None:
            new, old = cluster_means(new, clusters=clusters[0]), cluster_means(old, clusters=clusters[1])
        prices[side] = price_interval(
            new, old, paired=paired, level=level, method=method, resamples=resamples, seed=seed
        )
    return prices


# Sums per group -----------------------------------------------------------------------------------------------------


class _Sums(NamedTuple):
    """Totals and sizes of two groups in each episode; every field has shape (episodes,)."""

    total_without: Floats
    total_with: Floats
    size_without: Ints
    size_with: Ints


def _parity(returns: Returns, counted: Flags, *, sensitive: Group, form: Form, floor: float) -> Floats:
    having = returns.members(sensitive)
    if form == "sum":
        profile = _profile(returns, ignored=_criteria(returns, sensitive).keys())
        return _pair_sum(returns.values, having & counted, ~having & counted, profile)
    return _disparity(_sums(returns.values, having & counted, ~having & counted), form, floor)


def _sums(values: Floats, having: Flags, lacking: Flags) -> _Sums:
    return _Sums(
        total_without=np.sum(values, axis=1, where=lacking),
        total_with=np.sum(values, axis=1, where=having),
        size_without=lacking.sum(axis=1),
        size_with=having.sum(axis=1),
    )


def _disparity(sums: _Sums, form: Form, floor: float) -> Floats:
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    mean_without = _divide(sums.total_without, sums.size_without)
    mean_with = _divide(sums.total_with, sums.size_with)
    difference = mean_without - mean_with  # NaN if a group is empty, which must not count as parity
    if form == "difference":
        return difference
    if form == "mean_ratio":
        half = (sums.size_without + sums.size_with) / 2
        return disparity_ratio(mean_without * half, mean_with * half, floor=floor)
    total = sums.total_without - sums.total_with
    if form == "ratio":
        total = disparity_ratio(sums.total_without, sums.total_with, floor=floor)
    return np.where(np.isnan(difference), np.nan, total)


def _pair_sum(values: Floats, having: Flags, lacking: Flags, profile: Ints) -> Floats:
    """Return the sum of R(x) - R(y) over pairs of equal profile, shape (episodes,).

    Agents with equal profiles (totals T, sizes n) add n(without) T(with) - n(with) T(without): O(agents) instead of
    O(agents^2).
    """
    episodes = values.shape[0]
    episode = np.arange(episodes)[:, None]
    cells, cell = np.unique((profile * episodes + episode).ravel(), return_inverse=True)

    def total(weights: NDArray[Any]) -> Floats:
        return np.asarray(np.bincount(cell, weights=weights.ravel(), minlength=cells.size), dtype=np.float64)

    size_with, size_without = total(having), total(lacking)
    sums = size_without * total(np.where(having, values, 0)) - size_with * total(np.where(lacking, values, 0))
    pairs = np.bincount(cells % max(episodes, 1), weights=size_with * size_without, minlength=episodes)
    summed = np.bincount(cells % max(episodes, 1), weights=sums, minlength=episodes)
    return np.where(pairs > 0, summed, np.nan)


def _profile(returns: Returns, *, ignored: Iterable[str]) -> Ints:
    """Return one number for each combination of the attributes that are not ignored, shape (episodes, agents)."""
    skipped = set(ignored)
    profile = np.zeros(returns.values.shape, dtype=np.int64)
    for name, codes in returns.attributes.items():
        if name not in skipped:
            profile = _numbered(profile * max(codes.size, 1) + _numbered(codes))
    return profile


def _numbered(codes: NDArray[Any]) -> Ints:
    """Return the rank of each code among the codes that occur, same shape."""
    _, index = np.unique(codes, return_inverse=True)
    return np.asarray(index, dtype=np.int64).reshape(codes.shape)


def _groups(returns: Returns, by: str | Sequence[str]) -> list[tuple[str, Flags]]:
    """Return label and members, shape (episodes, agents), of each combination of values that occurs."""
    groups = [("", np.ones(returns.values.shape, dtype=np.bool_))]
    for name in _names(by):
        codes = returns.attribute(name)
        groups = [
            (f"{label}, {code}" if label else str(code), members & (codes == code))
            for label, members in groups
            for code in np.unique(codes)
        ]
    return [(label, members) for label, members in groups if members.any()]


def _group_mean(returns: Returns, members: Flags) -> Floats:
    return _divide(np.sum(returns.values, axis=1, where=members), members.sum(axis=1))


# Arithmetic with undefined values -----------------------------------------------------------------------------------


def _divide(numerator: Floats, denominator: NDArray[Any]) -> Floats:
    """Return the quotient, NaN where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    quotient: Floats = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) != 0)
    return quotient


def _largest_absolute(arrays: Iterable[ArrayLike]) -> float:
    values = [np.abs(np.asarray(array, dtype=np.float64)).ravel() for array in arrays]
    defined = np.concatenate([*values, np.empty(0)])
    defined = defined[~np.isnan(defined)]
    return float(defined.max()) if defined.size else float("nan")


def _mean_of_defined(values: Floats, axis: int) -> Floats:
    defined = ~np.isnan(values)
    return _divide(np.sum(values, axis=axis, where=defined), defined.sum(axis=axis))


def _largest_gap(*columns: Floats, axis: int) -> Floats:
    means = np.stack([_mean_of_defined(column, axis) for column in columns])
    return np.asarray(means.max(axis=0) - means.min(axis=0))


def _columns(groups: Mapping[str, ArrayLike]) -> list[Floats]:
    return [np.asarray(values, dtype=np.float64) for values in groups.values()]


def _price(fair: Floats, classic: Floats, *, axis: int) -> Floats:
    return price_of_fairness(fair.mean(axis=axis), classic.mean(axis=axis))


def _defined_samples(fair: ArrayLike, classic: ArrayLike, *, paired: bool) -> tuple[Floats, Floats]:
    new, old = vector(fair, "fair"), vector(classic, "classic")
    if not paired:
        return new[~np.isnan(new)], old[~np.isnan(old)]
    if new.shape != old.shape:
        raise ValueError(f"classic must have the shape of fair, {new.shape}, to be paired, got {old.shape}")
    defined = ~np.isnan(new + old)
    return new[defined], old[defined]


def _price_t_interval(fair: Floats, classic: Floats, *, paired: bool, level: float) -> Estimate:
    n = min(fair.size, classic.size)
    value = float(_price(fair, classic, axis=-1)) if n else float("nan")
    if n < 2 or np.isnan(value):
        return t_interval(value, standard_error=float("nan"), freedom=0, n=n, level=level)
    # To first order, the price changes by these numbers when one unit changes; their variance is that of the price.
    new, old = 100 * fair / classic.mean(), 100 * fair.mean() * classic / classic.mean() ** 2
    if paired:
        error = float(np.std(new - old, ddof=1) / np.sqrt(n))
        return t_interval(value, standard_error=error, freedom=n - 1, n=n, level=level)
    parts = [(float(sample.var(ddof=1)) / sample.size, sample.size - 1) for sample in (new, old)]
    return summed_interval(value, parts, n=n, level=level)


# Checks of arguments ------------------------------------------------------------------------------------------------


def check_returns(argument: str, value: Any) -> None:
    """Raise TypeError if an argument is not a `Returns`."""
    if not isinstance(value, Returns):
        kind = type(value).__name__
        raise TypeError(f"{argument} must be Returns(values, attributes={{'gender': codes}}), got {kind}")


def _checked_values(values: ArrayLike) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"values must be numbers of shape (episodes, agents), got {values!r}") from error
    if array.ndim != 2:
        raise ValueError(f"values must have shape (episodes, agents), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"values must be finite, got {array[~np.isfinite(array)][0]}")
    array.setflags(write=False)
    return array


def _checked_codes(name: str, codes: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    if not isinstance(name, str) or not name:
        raise ValueError(f"attribute names must be texts, got {name!r}")
    array = np.array(codes)
    where = f"attributes[{name!r}]"
    if array.shape not in (shape, shape[1:]):
        raise ValueError(f"{where} must have shape {shape[1:]} or {shape}, got {array.shape}")
    if array.dtype.kind == "b" or (array.size == 0 and array.dtype.kind == "f"):  # an empty list has no type
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuU":
        raise ValueError(f"{where} must contain whole numbers, bools or texts, got {array.dtype}")
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        raise ValueError(f"{where} must contain codes of at least 0 (-1 means missing), got {array.min()}")
    array.setflags(write=False)
    return np.broadcast_to(array, shape)


def _criteria(returns: Returns, group: Group) -> dict[str, Code]:
    """Return the attributes and codes that define membership of the group."""
    if isinstance(group, str):
        codes = returns.attribute(group)
        if codes.dtype.kind == "U" or (codes.size and codes.max() > 1):
            found = ", ".join(map(str, np.unique(codes)))
            code = codes.ravel()[0].item()
            raise ValueError(
                f"sensitive must be a mapping such as {{{group!r}: {code!r}}} if codes are not 0 and 1, got {group!r} "
                f"with the codes {found}"
            )
        return {group: 1}
    if not group:
        raise ValueError("sensitive must name at least one attribute, got none")
    for name, code in group.items():
        if isinstance(code, str) != (returns.attribute(name).dtype.kind == "U"):
            kind = "a text" if returns.attribute(name).dtype.kind == "U" else "a whole number"
            raise ValueError(f"sensitive[{name!r}] must be {kind}, got {code!r}")
        if (codes := returns.attribute(name)).size and not (codes == code).any():
            found = ", ".join(map(str, np.unique(codes)))
            warnings.warn(f"no agent has {name!r} {code!r}; the codes are {found}", stacklevel=2)
    return dict(group)


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by)


def _check_same_agents(first: Returns, second: Returns) -> None:
    if first.agents != second.agents:
        raise ValueError(f"all Returns must have {first.agents} agents, got {second.agents}")
    if first.attributes.keys() != second.attributes.keys():
        raise ValueError(f"all Returns must have attributes {list(first.attributes)}, got {list(second.attributes)}")


def _check_same_clusters(fair: ArrayLike, classic: ArrayLike) -> None:
    one, other = np.unique(np.asarray(fair)), np.unique(np.asarray(classic))
    if not np.array_equal(one, other):
        raise ValueError(f"paired clusters must have the same seeds, got {one} and {other}")


def _check_flipped(factual: Returns, counterfactual: Returns, having: Flags, sensitive: Group) -> None:
    if factual.episodes != counterfactual.episodes:
        raise ValueError(f"counterfactual must have {factual.episodes} episodes, got {counterfactual.episodes}")
    if (having & counterfactual.members(sensitive)).any():
        raise ValueError("counterfactual must flip every agent with the attribute, got one that keeps it")
    flipped = _criteria(factual, sensitive)
    for name in factual.attributes.keys() - flipped.keys():
        if ((factual.attribute(name) != counterfactual.attribute(name)) & having).any():
            raise ValueError(f"counterfactual must keep all other attributes, got a different {name!r}")
