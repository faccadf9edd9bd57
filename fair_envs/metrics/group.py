"""Group notions on histories of decisions: how far apart are groups of people in what is decided about them?

A notion is a rate, groups, and how their rates are compared. Every gap is 0 when fair; what is undefined is NaN unless
the caller chooses otherwise. All rates are quotients of weights that `fair_envs.history.History` keeps, so that a
notion costs the same over any window.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.history import NEGATIVE, POSITIVE, History
from fair_envs.interactions import FairSpec

FloatArray = NDArray[np.float64]
Criteria = Mapping[str, str | int]
Groups = str | Sequence[str] | Criteria | Mapping[str, Criteria] | None
Undefined = Literal["nan", "fair", "unfair", "last", "paper"]
Across = Literal["pairs", "rest"]


# Rates ----------------------------------------------------------------------------------------------------------------


def _selected(counts: FloatArray) -> FloatArray:
    """P(decision = 1), of all decisions, whatever is known of the correct one."""
    return _quotients((counts[..., 1, :].sum(-1), counts.sum((-1, -2))))


def _true_positive(counts: FloatArray) -> FloatArray:
    return _quotients((counts[..., 1, POSITIVE], counts[..., POSITIVE].sum(-1)))


def _accuracy(counts: FloatArray) -> FloatArray:
    right = counts[..., 1, POSITIVE] + counts[..., 0, NEGATIVE]
    return _quotients((right, counts[..., (NEGATIVE, POSITIVE)].sum((-1, -2))))


def _positive_predictive(counts: FloatArray) -> FloatArray:
    return _quotients((counts[..., 1, POSITIVE], counts[..., 1, (NEGATIVE, POSITIVE)].sum(-1)))


def _false_positive(counts: FloatArray) -> FloatArray:
    return _quotients((counts[..., 1, NEGATIVE], counts[..., NEGATIVE].sum(-1)))


def _odds(counts: FloatArray) -> FloatArray:
    return np.concatenate([_false_positive(counts), _true_positive(counts)], axis=-1)


def _predictive(counts: FloatArray) -> FloatArray:
    negative = _quotients((counts[..., 0, NEGATIVE], counts[..., 0, (NEGATIVE, POSITIVE)].sum(-1)))
    return np.concatenate([negative, _positive_predictive(counts)], axis=-1)


def _error_share(counts: FloatArray) -> FloatArray:
    missed, wrong = counts[..., 0, POSITIVE], counts[..., 1, NEGATIVE]
    return _quotients((missed, missed + wrong))


def _error_ratio(counts: FloatArray) -> FloatArray:
    """False negatives over false positives; infinite without false positives."""
    missed, wrong = counts[..., 0, POSITIVE], counts[..., 1, NEGATIVE]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (missed / wrong)[..., np.newaxis]


def _quotients(*parts: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return each numerator over its denominator along a new last axis, NaN where the denominator is 0."""
    quotients = np.full((*parts[0][0].shape, len(parts)), np.nan)
    for k, (numerator, denominator) in enumerate(parts):
        np.divide(numerator, denominator, out=quotients[..., k], where=denominator > 0)
    return quotients


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What a notion compares.

    Attributes:
        rate: From weights of shape (..., 2, 3) to the compared numbers, shape (..., components).
        feedback: Whether it needs the correct decisions.
        conditional: Whether groups are compared within each value of the legitimate factors.
        worst: The largest gap there can be.
    """

    rate: Callable[[FloatArray], FloatArray]
    feedback: bool = True
    conditional: bool = False
    worst: float = 1.0


DEFINITIONS: Mapping[str, Definition] = {
    "statistical_parity": Definition(rate=_selected, feedback=False),
    "equal_opportunity": Definition(rate=_true_positive),
    "overall_accuracy_equality": Definition(rate=_accuracy),
    "predictive_parity": Definition(rate=_positive_predictive),
    "predictive_equality": Definition(rate=_false_positive),
    "equalised_odds": Definition(rate=_odds),
    "conditional_use_accuracy_equality": Definition(rate=_predictive),
    "treatment_equality": Definition(rate=_error_share),
    "treatment_equality_raw": Definition(rate=_error_ratio, worst=np.inf),
    "conditional_statistical_parity": Definition(rate=_selected, feedback=False, conditional=True),
}
"""The group notions by name, as Cimpean et al. (2025) and Verma and Rubin (2018) define them."""

SHORT: Mapping[str, str] = {
    "SP": "statistical_parity",
    "EO": "equal_opportunity",
    "OAE": "overall_accuracy_equality",
    "PP": "predictive_parity",
    "PE": "predictive_equality",
    "EqOdds": "equalised_odds",
    "CUAE": "conditional_use_accuracy_equality",
    "TE": "treatment_equality",
    "CSP": "conditional_statistical_parity",
}
"""The abbreviations of the FAReL study."""


# Groups ---------------------------------------------------------------------------------------------------------------


def group_members(spec: FairSpec, groups: Groups) -> dict[str, NDArray[np.bool_]]:
    """Return each group's name and which combinations of sensitive codes belong to it, shape (codes, codes, ...).

    Args:
        spec: Names the attributes and their values.
        groups: An attribute's name: each of its values is a group (the first attribute by default). Several names: each
            combination of their values. A mapping of names to values (``{"gender": "woman", "nationality":
            "foreign"}``): those people, and everybody else. A mapping of groups' names to such mappings: these groups.

    Raises:
        ValueError: No such attribute or value, or fewer than two groups.
    """
    if groups is None:
        groups = next(iter(spec.sensitive), None)
        if groups is None:
            raise ValueError("groups must be given where there is no sensitive attribute, got None")
    if isinstance(groups, Mapping):
        members = _named_groups(spec, groups)
    else:
        names = [groups] if isinstance(groups, str) else list(groups)
        sizes = [range(len(_values(spec, name))) for name in names]
        members = {
            ", ".join(_values(spec, name)[code] for name, code in zip(names, codes, strict=True)): _having(
                spec, dict(zip(names, codes, strict=True))
            )
            for codes in product(*sizes)
        }
    if len(members) < 2:
        raise ValueError(f"groups must be at least two, got {groups!r}")
    return members


def _named_groups(spec: FairSpec, groups: Mapping[str, Any]) -> dict[str, NDArray[np.bool_]]:
    if groups and all(isinstance(criteria, Mapping) for criteria in groups.values()):
        return {name: _having(spec, criteria) for name, criteria in groups.items()}
    inside = _having(spec, groups)
    label = ", ".join(f"{name}={value}" for name, value in groups.items())
    return {label: inside, "everybody else": ~inside}


def _having(spec: FairSpec, criteria: Criteria) -> NDArray[np.bool_]:
    """Return which combinations of sensitive codes have all these values."""
    if not criteria:
        raise ValueError("groups must name at least one attribute, got none")
    having = np.ones([len(values) for values in spec.sensitive.values()], bool)
    for name, value in criteria.items():
        values = _values(spec, name)
        code = values.index(value) if value in values else value
        if not isinstance(code, (int, np.integer)) or isinstance(code, bool) or not 0 <= code < len(values):
            raise ValueError(f"groups[{name!r}] must be one of {', '.join(map(repr, values))}, got {value!r}")
        axis = list(spec.sensitive).index(name)
        own = np.arange(len(values)) == code
        having &= own.reshape([-1 if k == axis else 1 for k in range(having.ndim)])
    return having


def _values(spec: FairSpec, name: str) -> tuple[str, ...]:
    if name not in spec.sensitive:
        known = ", ".join(spec.sensitive) or "none"
        raise ValueError(f"groups must be of the sensitive attributes ({known}), got {name!r}")
    return spec.sensitive[name]


# Notions --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GroupNotion:
    """A group notion with its groups: ``GroupNotion(name="equal_opportunity").gap(history)``.

    Args:
        name: One of `DEFINITIONS`, or an abbreviation of `SHORT`.
        groups: Who is compared, see `group_members`; the values of the first sensitive attribute by default.
        across: With more than two groups: ``"pairs"``: the largest gap between two of them; ``"rest"``: the largest
            between one of them and all other people.
        undefined: What a gap is that has no value, because a group is empty or a denominator is 0: ``"nan"``;
            ``"fair"``: 0; ``"unfair"``: the largest there can be; ``"last"``: the one before, see `gap`; ``"paper"``:
            what the published code of FAReL makes of it, mostly 0.
        current_step: Compare the people of each lane's last step alone.

    Raises:
        ValueError: An unknown name or option.
    """

    name: str
    groups: Groups = None
    across: Across = "pairs"
    undefined: Undefined = "nan"
    current_step: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "name", SHORT.get(self.name, self.name))
        for name, options in (
            ("name", DEFINITIONS),
            ("across", ("pairs", "rest")),
            ("undefined", ("nan", "fair", "unfair", "last", "paper")),
        ):
            if getattr(self, name) not in options:
                raise ValueError(f"{name} must be one of {', '.join(options)}, got {getattr(self, name)!r}")

    @property
    def definition(self) -> Definition:
        """What is compared."""
        return DEFINITIONS[self.name]

    def check(self, spec: FairSpec) -> None:
        """Raise ValueError if an environment cannot tell what the notion needs."""
        members = group_members(spec, self.groups)
        if self.definition.feedback and spec.feedback == "none":
            raise ValueError(f"{self.name} needs feedback, the correct decisions; this environment reveals none")
        if self.definition.conditional and not spec.legitimate:
            raise ValueError(f"{self.name} needs a legitimate factor; this environment has none")
        if self.undefined == "paper" and len(members) != 2:
            raise ValueError(f"undefined='paper' needs two groups, got {len(members)}")

    def rates(self, history: History) -> dict[str, FloatArray]:
        """Return each group's compared numbers, shape (B, components), or (B, strata, components) if conditional."""
        self.check(history.spec)
        members = group_members(history.spec, self.groups)
        rates = self.definition.rate(self._counts(history, list(members.values())))
        if not self.definition.conditional:
            rates = rates[:, 0]
        return {name: rates[..., g, :] for g, name in enumerate(members)}

    def gap(self, history: History, *, last: FloatArray | None = None) -> FloatArray:
        """Return the gap in each lane, shape (B,): 0 is fair, 1 the largest (infinite for the raw treatment equality).

        Args:
            history: What was decided.
            last: With ``undefined="last"``: the gaps before, shape (B,); NaN where there is none.

        Raises:
            ValueError: The environment cannot tell what the notion needs, or has no such groups.
        """
        self.check(history.spec)
        members = list(group_members(history.spec, self.groups).values())
        counts = self._counts(history, members)
        rates = self.definition.rate(counts)
        if self.undefined == "paper":
            return _largest(_paper_gap(rates, counts), axis=-1)
        if self.across == "pairs":
            gap = _pairwise(rates)
        else:
            gap = _difference(rates, self.definition.rate(self._counts(history, [~own for own in members])))
        gap = _largest(gap.reshape(history.lanes, -1), axis=-1)
        filled = {"fair": 0.0, "unfair": self.definition.worst}.get(self.undefined, np.nan)
        if self.undefined == "last" and last is not None:
            return np.where(np.isnan(gap), last, gap)
        return np.where(np.isnan(gap), filled, gap)

    def _counts(self, history: History, members: Sequence[NDArray[np.bool_]]) -> FloatArray:
        """Return the weights of each stratum and group, shape (B, strata, groups, 2, 3); else one stratum of all."""
        counts = history.counts(current_step=self.current_step)
        by_codes = counts.reshape(history.lanes, members[0].size, -1, 2, 3)  # sensitive codes, legitimate codes
        if not self.definition.conditional:
            by_codes = by_codes.sum(2, keepdims=True)
        belongs = np.stack([own.ravel() for own in members]).astype(float)
        grouped: FloatArray = np.einsum("gc,bcsad->bsgad", belongs, by_codes)
        return grouped


def _pairwise(rates: FloatArray) -> FloatArray:
    """Return the gaps between all pairs of groups, shape (B, strata, groups, groups), NaN between one and itself."""
    gaps = _difference(rates[..., :, np.newaxis, :], rates[..., np.newaxis, :, :])
    return np.where(np.eye(rates.shape[-2], dtype=bool), np.nan, gaps)


def _difference(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the largest component of the absolute differences, NaN if one is undefined."""
    with np.errstate(invalid="ignore"):  # infinite less infinite is undefined
        return np.asarray(np.abs(first - second).max(axis=-1))


def _largest(gaps: FloatArray, *, axis: int) -> FloatArray:
    """Return the largest defined gap along an axis, NaN if none is."""
    largest = np.max(np.where(np.isnan(gaps), -np.inf, gaps), axis=axis)
    return np.where(np.isneginf(largest), np.nan, largest)


def _paper_gap(rates: FloatArray, counts: FloatArray) -> FloatArray:
    """Return what the published code of FAReL gives for two groups, shape (B, strata).

    Nobody at all is the largest gap; one empty group, or a denominator of 0, is none. Of two components Python's
    ``max`` keeps an undefined first one, which then counts as 0, and passes over an undefined second one.
    """
    with np.errstate(invalid="ignore"):
        apart = np.abs(rates[..., 0, :] - rates[..., 1, :])
    gap = apart[..., 0]
    for k in range(1, apart.shape[-1]):
        gap = np.where(apart[..., k] > gap, apart[..., k], gap)
    sizes = counts.sum((-1, -2))
    gap = np.where(sizes.min(-1) == 0, 0.0, np.nan_to_num(gap, nan=0.0, posinf=sys.float_info.max))
    return np.where(sizes.max(-1) == 0, 1.0, gap)


__all__ = ["DEFINITIONS", "SHORT", "Definition", "GroupNotion", "group_members"]
