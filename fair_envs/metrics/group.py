"""Group notions on histories of decisions: how far apart are groups of people in what is decided about them?

A notion is a rate, groups, and how their rates are compared. Every gap is 0 when fair; what is undefined is NaN unless
the caller chooses otherwise. All rates are quotients of weights that `fair_envs.history.History` keeps, so that a
notion costs the same over any window.
"""

import functools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.compilation import Kernel, compile_kernels, rule
from fair_envs.history import NEGATIVE, POSITIVE, History
from fair_envs.interactions import FairSpec

FloatArray = NDArray[np.float64]
Criteria = Mapping[str, str | int]
Groups = str | Sequence[str] | Criteria | Mapping[str, Criteria] | None
Undefined = Literal["nan", "fair", "unfair", "last", "paper"]
Across = Literal["pairs", "rest"]


# Rates ----------------------------------------------------------------------------------------------------------------

# The codes of the rates in compiled code
SELECTED, TRUE_POSITIVE, FALSE_POSITIVE, ACCURACY, POSITIVE_VALUE, ODDS, VALUES, ERROR_SHARE, ERROR_RATIO = range(9)


@rule
def rate(code, counts, out):  # type: ignore[no-untyped-def]
    """Write a group's rate, or both of two.

    Args:
        code: Which rate.
        counts: Weights of the group's decisions, shape (2, 3): decision 1 or another, the correct one.
        out: Shape (2,); the second is 0 where there is one rate.
    """
    selected, refused = counts[1], counts[0]
    missed, wrong = refused[POSITIVE], selected[NEGATIVE]
    out[1] = 0.0
    if code == SELECTED:  # of all decisions, whatever is known of the correct one
        out[0] = quotient(selected.sum(), selected.sum() + refused.sum())
    elif code == TRUE_POSITIVE:
        out[0] = quotient(selected[POSITIVE], selected[POSITIVE] + missed)
    elif code == FALSE_POSITIVE:
        out[0] = quotient(wrong, wrong + refused[NEGATIVE])
    elif code == ACCURACY:
        right = selected[POSITIVE] + refused[NEGATIVE]
        out[0] = quotient(right, right + missed + wrong)
    elif code == POSITIVE_VALUE:
        out[0] = quotient(selected[POSITIVE], selected[POSITIVE] + wrong)
    elif code == ODDS:
        out[0] = quotient(wrong, wrong + refused[NEGATIVE])
        out[1] = quotient(selected[POSITIVE], selected[POSITIVE] + missed)
    elif code == VALUES:
        out[0] = quotient(refused[NEGATIVE], refused[NEGATIVE] + missed)
        out[1] = quotient(selected[POSITIVE], selected[POSITIVE] + wrong)
    elif code == ERROR_SHARE:
        out[0] = quotient(missed, missed + wrong)
    else:  # ERROR_RATIO
        out[0] = np.inf if missed > 0 and wrong == 0 else quotient(missed, wrong)


@rule
def quotient(numerator, denominator):  # type: ignore[no-untyped-def]
    """Return the quotient, NaN where the denominator is 0."""
    return numerator / denominator if denominator > 0 else np.nan


@rule
def total(counts, members, inside, stratum, out):  # type: ignore[no-untyped-def]
    """Write the weights of a group, or of everybody else, in one stratum or (-1) in all.

    Args:
        counts: Shape (sensitive codes, legitimate codes, 2, 3).
        members: Which sensitive codes are in the group, shape (sensitive codes,).
        inside: Whether the group is meant.
        stratum: Which legitimate code; -1: all.
        out: Shape (2, 3).
    """
    out[:] = 0.0
    for code in range(counts.shape[0]):
        if members[code] == inside:
            for k in range(counts.shape[1]):
                if stratum in (-1, k):
                    for decision in range(2):
                        for truth in range(3):
                            out[decision, truth] += counts[code, k, decision, truth]


@rule
def apart(one, other):  # type: ignore[no-untyped-def]
    """Return the larger of two absolute differences, NaN if one is undefined."""
    first, second = abs(one[0] - other[0]), abs(one[1] - other[1])
    if np.isnan(first) or np.isnan(second):
        return np.nan
    return max(first, second)


@functools.cache
def kernels() -> Mapping[str, Kernel]:
    """Return the compiled loops over lanes, strata and groups."""

    def rates(counts, members, strata, code, out, sums):  # type: ignore[no-untyped-def]
        for b in range(counts.shape[0]):
            for s, stratum in enumerate(strata):
                for g in range(members.shape[0]):
                    total(counts[b], members[g], True, stratum, sums)
                    rate(code, sums, out[b, s, g])

    def gaps(counts, members, strata, code, rest, out, sums, values):  # type: ignore[no-untyped-def]
        groups = members.shape[0]
        for b in range(counts.shape[0]):
            largest = np.nan
            for stratum in strata:
                for g in range(groups):
                    total(counts[b], members[g], True, stratum, sums)
                    rate(code, sums, values[g])
                for g in range(groups):
                    if rest:
                        total(counts[b], members[g], False, stratum, sums)
                        rate(code, sums, values[groups])
                    for other in range(groups, groups + 1) if rest else range(g):
                        gap = apart(values[g], values[other])
                        if np.isnan(largest) or gap > largest:
                            largest = gap
            out[b] = largest

    return compile_kernels(GroupNotion, rates, gaps)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What a notion compares.

    Attributes:
        code: Of the rate, see `rate`.
        components: How many rates; the larger gap counts.
        feedback: Whether it needs the correct decisions.
        conditional: Whether groups are compared within each value of the legitimate factors.
        worst: The largest gap there can be.
    """

    code: int
    components: int = 1
    feedback: bool = True
    conditional: bool = False
    worst: float = 1.0


DEFINITIONS: Mapping[str, Definition] = {
    "statistical_parity": Definition(code=SELECTED, feedback=False),
    "equal_opportunity": Definition(code=TRUE_POSITIVE),
    "overall_accuracy_equality": Definition(code=ACCURACY),
    "predictive_parity": Definition(code=POSITIVE_VALUE),
    "predictive_equality": Definition(code=FALSE_POSITIVE),
    "equalised_odds": Definition(code=ODDS, components=2),
    "conditional_use_accuracy_equality": Definition(code=VALUES, components=2),
    "treatment_equality": Definition(code=ERROR_SHARE),
    "treatment_equality_raw": Definition(code=ERROR_RATIO, worst=np.inf),
    "conditional_statistical_parity": Definition(code=SELECTED, feedback=False, conditional=True),
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
    _known: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)  # of the last environment

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
        """What is compared; the published code knows the raw treatment equality alone."""
        raw = self.undefined == "paper" and self.name == "treatment_equality"
        return DEFINITIONS["treatment_equality_raw" if raw else self.name]

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
        rates = self._rates(history)
        if not self.definition.conditional:
            rates = rates[:, 0]
        return {name: rates[..., g, :] for g, name in enumerate(group_members(history.spec, self.groups))}

    def gap(self, history: History, *, last: FloatArray | None = None) -> FloatArray:
        """Return the gap in each lane, shape (B,): 0 is fair, 1 the largest (infinite for the raw treatment equality).

        Args:
            history: What was decided.
            last: With ``undefined="last"``: the gaps before, shape (B,); NaN where there is none.

        Raises:
            ValueError: The environment cannot tell what the notion needs, or has no such groups.
        """
        if self.undefined == "paper":
            return _paper_gap(self._rates(history), self._sizes(history))
        members, strata, counts = self._bound(history)
        gap, values = np.empty(history.lanes), np.empty((len(members) + 1, 2))
        kernels()["gaps"](
            counts, members, strata, self.definition.code, self.across == "rest", gap, np.empty((2, 3)), values
        )
        filled = {"fair": 0.0, "unfair": self.definition.worst, "last": last}.get(self.undefined)
        return gap if filled is None else np.where(np.isnan(gap), filled, gap)

    def _rates(self, history: History) -> FloatArray:
        """Return the rates, shape (B, strata, groups, components)."""
        members, strata, counts = self._bound(history)
        rates = np.empty((history.lanes, len(strata), len(members), 2))
        kernels()["rates"](counts, members, strata, self.definition.code, rates, np.empty((2, 3)))
        return rates[..., : self.definition.components]

    def _sizes(self, history: History) -> FloatArray:
        """Return the weight of each group's decisions, shape (B, groups)."""
        members, _, counts = self._bound(history)
        sizes: FloatArray = counts.sum((2, 3, 4)) @ members.T.astype(float)
        return sizes

    def _bound(self, history: History) -> tuple[NDArray[np.bool_], NDArray[np.int64], FloatArray]:
        """Return who is in which group, the strata, and the weights by sensitive and by legitimate codes."""
        if not self._known or self._known[0] is not history.spec:
            self.check(history.spec)
            members = np.stack([own.ravel() for own in group_members(history.spec, self.groups).values()])
            values = math.prod(len(names) for names in history.spec.legitimate.values())
            strata = np.arange(values) if self.definition.conditional else np.array([-1])
            self._known[:] = [history.spec, members, strata]
        _, members, strata = self._known
        counts = history.counts(current_step=self.current_step).reshape(history.lanes, members.shape[1], -1, 2, 3)
        return members, strata, counts


def _paper_gap(rates: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return what the published code of FAReL gives for two groups, shape (B,).

    Nobody at all is the largest gap; one empty group, or a denominator of 0, is none. Of two components Python's
    ``max`` keeps an undefined first one, which then counts as 0, and passes over an undefined second one. The code has
    no conditional notion; here the largest gap within a stratum counts.
    """
    with np.errstate(invalid="ignore"):
        differences = np.abs(rates[..., 0, :] - rates[..., 1, :])
    gap = differences[..., 0]
    for k in range(1, differences.shape[-1]):
        gap = np.where(differences[..., k] > gap, differences[..., k], gap)
    gap = np.nan_to_num(gap, nan=0.0, posinf=sys.float_info.max).max(axis=1)
    gap = np.where(sizes.min(-1) == 0, 0.0, gap)
    return np.where(sizes.max(-1) == 0, 1.0, gap)


__all__ = ["DEFINITIONS", "SHORT", "Definition", "GroupNotion", "group_members"]
