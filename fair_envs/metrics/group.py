"""Group notions on histories of decisions: how much do decisions differ between groups of people?

A notion consists of a rate, the groups, and the way their rates are compared. Every gap is 0 when fair. Undefined gaps
are NaN unless the caller chooses another value. All rates are quotients of weights that `fair_envs.metrics.History`
stores; therefore the cost of a notion does not depend on the window.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from fair_envs.core.compilation import kernel, rule
from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.history import NEGATIVE, POSITIVE, UNKNOWN, History, Memory
from fair_envs.metrics.notions import canonical_name
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import checked, meant

Criteria = Mapping[str, str | int]
Groups = str | Sequence[str] | Criteria | Mapping[str, Criteria] | None
Undefined = Literal["nan", "fair", "unfair", "last", "paper"]
Across = Literal["pairs", "rest"]


# Rates ----------------------------------------------------------------------------------------------------------------

# The codes of the rates in compiled code
SELECTED, TRUE_POSITIVE, FALSE_POSITIVE, ACCURACY, POSITIVE_VALUE, ODDS, VALUES, ERROR_SHARE, ERROR_RATIO = range(9)
LARGEST = sys.float_info.max  # the published code of FAReL replaces an infinite gap by this


@rule
def rate(code: int, counts: Floats, side: int, g: int) -> tuple[float, float]:
    """Return the rate of a group; a notion of two rates has a second one, else it is NaN.

    Args:
        code: Which rate.
        counts: Weights of decisions, shape (2, groups, 2, 3); the last two axes are the decision (another one, 1) and
            the label (`NEGATIVE`, `POSITIVE`, `UNKNOWN`).
        side: 0: the group; 1: all other people.
        g: Index of the group.
    """
    tp, fp = counts[side, g, 1, POSITIVE], counts[side, g, 1, NEGATIVE]
    fn, tn = counts[side, g, 0, POSITIVE], counts[side, g, 0, NEGATIVE]
    if code == SELECTED:  # of all decisions, with any label
        selected = tp + fp + counts[side, g, 1, UNKNOWN]
        return quotient(selected, selected + fn + tn + counts[side, g, 0, UNKNOWN]), np.nan
    if code == TRUE_POSITIVE:
        return quotient(tp, tp + fn), np.nan
    if code == FALSE_POSITIVE:
        return quotient(fp, fp + tn), np.nan
    if code == ACCURACY:
        return quotient(tp + tn, tp + tn + fn + fp), np.nan
    if code == POSITIVE_VALUE:
        return quotient(tp, tp + fp), np.nan
    if code == ODDS:
        return quotient(fp, fp + tn), quotient(tp, tp + fn)
    if code == VALUES:
        return quotient(tn, tn + fn), quotient(tp, tp + fp)
    if code == ERROR_SHARE:
        return quotient(fn, fn + fp), np.nan
    return np.inf if fn > 0 and fp == 0 else quotient(fn, fp), np.nan  # ERROR_RATIO


@rule
def quotient(numerator: float, denominator: float) -> float:
    """Return the quotient, NaN if the denominator is 0."""
    return numerator / denominator if denominator > 0 else np.nan


@rule
def totals(counts: Floats, b: int, members: Flags, stratum: int, out: Floats) -> None:
    """Write the weights of each group, and of all people outside it, in one stratum or in all of them (-1).

    Args:
        counts: Shape (lanes, sensitive codes, legitimate codes, 2, 3).
        b: Index of the lane.
        members: Which sensitive codes are in each group, shape (groups, sensitive codes).
        stratum: The legitimate code; -1: all.
        out: Shape (2, groups, 2, 3).
    """
    out[:] = 0.0
    low, high = (0, counts.shape[2]) if stratum < 0 else (stratum, stratum + 1)
    for code in range(counts.shape[1]):
        for k in range(low, high):
            for g in range(members.shape[0]):
                side = 0 if members[g, code] else 1
                for decision in range(2):
                    for truth in range(3):
                        out[side, g, decision, truth] += counts[b, code, k, decision, truth]


@rule
def rate_difference(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the larger of two absolute differences between rates; NaN if neither is defined.

    If only one difference is defined, it is a lower bound: the other one could only make the result larger.
    """
    first, second = abs(one[0] - other[0]), abs(one[1] - other[1])
    if np.isnan(first) or np.isnan(second):
        return second if np.isnan(first) else first
    return max(first, second)


@rule
def rate_difference_as_published(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the gap of two absolute differences as in the published code of FAReL, where one may be undefined.

    Python's ``max`` returns an undefined first difference, which then counts as 0, and ignores an undefined second one.
    """
    first, second = abs(one[0] - other[0]), abs(one[1] - other[1])
    gap = second if second > first else first
    return 0.0 if np.isnan(gap) else min(gap, LARGEST)


@kernel
def fill_rates(counts: Floats, members: Flags, strata: Ints, code: int, out: Floats, sums: Floats) -> None:
    """Write the rates of each lane, stratum and group, shape (B, strata, groups, 2)."""
    for b in range(counts.shape[0]):
        for s, stratum in enumerate(strata):
            totals(counts, b, members, stratum, sums)
            for g in range(members.shape[0]):
                out[b, s, g, 0], out[b, s, g, 1] = rate(code, sums, 0, g)


@rule
def largest(code: int, rest: bool, paper: bool, sums: Floats, gap: float) -> float:
    """Return the largest difference between the rates of two groups, or of a group and all others."""
    for g in range(sums.shape[1]):
        own = rate(code, sums, 0, g)
        for k in range(1 if rest else g):
            other = rate(code, sums, 1, g) if rest else rate(code, sums, 0, k)
            found = rate_difference_as_published(own, other) if paper else rate_difference(own, other)
            if np.isnan(gap) or found > gap:
                gap = found
    return gap


@kernel
def fill_gaps(
    counts: Floats,
    members: Flags,
    codes: Ints,
    conditional: Flags,
    rest: Flags,
    paper: Flags,
    out: Floats,
    sums: Floats,
) -> None:
    """Write the gap of each lane and notion, shape (B, notions)."""
    notions, strata = codes.shape[0], counts.shape[2] if conditional.any() else 0
    for b in range(counts.shape[0]):
        out[b] = np.nan
        for stratum in range(strata - 1, -2, -1):  # all people (-1) last: their sums are needed below
            totals(counts, b, members, stratum, sums)
            for n in range(notions):
                if conditional[n] == (stratum >= 0):
                    out[b, n] = largest(codes[n], rest[n], paper[n], sums, out[b, n])
        for n in range(notions):
            if paper[n]:  # the gap is 1 if both groups are empty, and 0 if one is
                sizes = sums[0, 0].sum(), sums[0, 1].sum()
                out[b, n] = 1.0 if max(sizes) == 0 else 0.0 if min(sizes) == 0 else out[b, n]


@dataclass(frozen=True, kw_only=True)
class Definition:
    """The rates that a notion compares.

    Attributes:
        code: The code of the rate, see `rate`.
        components: The number of rates; the gap is the largest of their defined gaps.
        feedback: Whether it needs labels (the correct decisions).
        conditional: Whether groups are compared within each value of the legitimate factors.
        worst: The largest possible gap.
    """

    code: int
    components: int = 1
    feedback: bool = True
    conditional: bool = False
    worst: float = 1.0


DEFINITIONS: Mapping[str, Definition] = {
    "demographic_parity": Definition(code=SELECTED, feedback=False),
    "equal_opportunity": Definition(code=TRUE_POSITIVE),
    "overall_accuracy_equality": Definition(code=ACCURACY),
    "predictive_parity": Definition(code=POSITIVE_VALUE),
    "predictive_equality": Definition(code=FALSE_POSITIVE),
    "equalized_odds": Definition(code=ODDS, components=2),
    "conditional_use_accuracy_equality": Definition(code=VALUES, components=2),
    "treatment_equality": Definition(code=ERROR_SHARE),
    "treatment_equality_raw": Definition(code=ERROR_RATIO, worst=np.inf),
    "conditional_parity": Definition(code=SELECTED, feedback=False, conditional=True),
}
"""The group notions by name, as Cimpean et al. (2025) and Verma and Rubin (2018) define them."""


# Groups ---------------------------------------------------------------------------------------------------------------


def group_members(spec: FairSpec, groups: Groups) -> dict[str, Flags]:
    """Return the name of each group and its combinations of sensitive codes, shape (codes, codes, ...).

    Args:
        spec: The spec with the names of the attributes and their values.
        groups: An attribute's name: each of its values is a group (the first attribute by default). Several names: each
            combination of their values is a group. A mapping of names to values (``{"gender": "woman", "nationality":
            "foreign"}``): people with all these values, and all other people. A mapping of group names to such
            mappings: these groups.

    Raises:
        ValueError: An attribute or value does not exist, there are fewer than two groups, or two groups have the same
            people.
    """
    if groups is None:
        groups = next(iter(spec.sensitive), None)
        if groups is None:
            raise ValueError("groups must be given if there is no sensitive attribute, got None")
    if isinstance(groups, Mapping):
        members = _named_groups(spec, groups)
    else:
        if not isinstance(groups, Sequence):
            raise ValueError(f"groups must be a name, several names or a mapping, got {groups!r}")
        names = [groups] if isinstance(groups, str) else list(groups)
        if len({*map(str, names)}) < len(names):
            raise ValueError(f"groups must name each attribute once, got {groups!r}")
        sizes = [range(len(_values(spec, name))) for name in names]
        members = {
            ", ".join(_values(spec, name)[code] for name, code in zip(names, codes, strict=True)): _having(
                spec, dict(zip(names, codes, strict=True))
            )
            for codes in product(*sizes)
        }
    if len(members) < 2:
        raise ValueError(f"groups must be at least two, got {groups!r}")
    if len({own.tobytes() for own in members.values()}) < len(members):
        raise ValueError(f"groups must have different people, got {groups!r}")
    return members


def _named_groups(spec: FairSpec, groups: Mapping[str, Any]) -> dict[str, Flags]:
    if groups and all(isinstance(criteria, Mapping) for criteria in groups.values()):
        return {name: _having(spec, criteria) for name, criteria in groups.items()}
    inside = _having(spec, groups)
    label = ", ".join(f"{name}={value}" for name, value in groups.items())
    return {label: inside, "everybody else": ~inside}


def _having(spec: FairSpec, criteria: Criteria) -> Flags:
    """Return the mask of the combinations of sensitive codes with all these values."""
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
        own, equals, value = str(name).partition("=")
        here = f"; write {{{own!r}: {value!r}}} for one value" if equals else meant(name, spec.sensitive)
        raise ValueError(f"groups must use the sensitive attributes ({known}), got {name!r}{here}")
    return spec.sensitive[name]


# Notions --------------------------------------------------------------------------------------------------------------


def decisions_needed(spec: FairSpec) -> str:
    """Return which decisions group notions need, and what to use instead; "": the environment has such decisions."""
    if spec.amounts:
        return (
            "decisions where 1 is the positive one; in this environment they are amounts from 0 to "
            f"{spec.actions - 1}. Use an individual notion (individual_fairness, consistency) or a measure of shares, "
            "such as fair_envs.metrics.ShareDeviation"
        )
    if spec.same_individuals and spec.actions > 2:
        return (
            "decisions about people, where 1 is the positive one; in this environment, they choose one of "
            f"{spec.actions} actions themselves. Compare returns instead: FairnessPenalty(env), VectorReward(env, "
            'per="group"), or fair_envs.metrics.demographic_parity(returns)'
        )
    return ""


@dataclass(frozen=True, kw_only=True)
class GroupNotion:
    """A group notion with its groups: ``GroupNotion(name="equal_opportunity").gap(history)``.

    Args:
        name: One of `DEFINITIONS`, or one of its aliases in `fair_envs.metrics.NOTIONS`, such as ``"SP"``.
        groups: The compared groups, see `group_members`. By default, the values of the first sensitive attribute, with
            a warning if there are several attributes.
        across: With more than two groups: ``"pairs"``: the largest gap between two of them; ``"rest"``: the largest gap
            between one of them and all other people.
        undefined: The value of an undefined gap (a group is empty, or a denominator is 0): ``"nan"``; ``"fair"``: 0;
            ``"unfair"``: the largest possible gap; ``"last"``: the previous gap, see `gap`; ``"paper"``: as in the
            published code of FAReL, mostly 0. The gap of a notion with two rates is defined if one of them is: it is
            then the defined one, a lower bound. With ``"paper"``, it is dropped as in the published code.
        current_step: Whether to compare only the people of each lane's last step.

    Raises:
        ValueError: The name or an option is unknown.
    """

    name: str
    groups: Groups = None
    across: Across = "pairs"
    undefined: Undefined = "nan"
    current_step: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "name", canonical_name("name", self.name, DEFINITIONS))
        for name, kind in (("across", Across), ("undefined", Undefined), ("current_step", bool)):
            object.__setattr__(self, name, checked(name, getattr(self, name), kind))

    @property
    def definition(self) -> Definition:
        """The definition of the notion; the published code has only the raw form of treatment equality."""
        raw = self.undefined == "paper" and self.name == "treatment_equality"
        return DEFINITIONS["treatment_equality_raw" if raw else self.name]

    @property
    def worst(self) -> float:
        """The largest possible gap."""
        return self.definition.worst

    def check(self, spec: FairSpec) -> None:
        """Raise ValueError if an environment does not report what the notion needs."""
        members = group_members(spec, self.groups)
        if self.groups is None:
            first = next(iter(spec.sensitive), "")
            spec.default_attribute(
                chosen_with=f"groups={first!r}, or groups={tuple(spec.sensitive)} for all combinations"
            )
        if needed := decisions_needed(spec):
            raise ValueError(f"{self.name} needs {needed}")
        if self.definition.feedback and spec.feedback == "none":
            raise ValueError(f"{self.name} needs feedback (the correct decisions); this environment reveals none")
        if self.definition.conditional and not spec.legitimate:
            raise ValueError(f"{self.name} needs a legitimate factor; this environment has none")
        if spec.only_accepted:
            self._check_accepted(spec)
        if self.undefined == "paper" and len(members) != 2:
            raise ValueError(f"undefined='paper' needs two groups, got {len(members)}")

    def check_memory(self, memory: Memory, spec: FairSpec) -> None:
        """Raise ValueError if a history with this memory removes all people before the needed labels arrive."""
        if not self.definition.feedback or spec.feedback != "delayed":
            return
        if self.current_step:
            raise ValueError(f"current_step must be False for {self.name} if feedback is delayed, got True")
        if not memory.holds(spec.delay, individuals=spec.individuals):
            people = "1 person" if spec.individuals == 1 else f"{spec.individuals} people"
            raise ValueError(
                f"history must hold {people} per step for more than {spec.delay} steps, until the feedback for "
                f"{self.name} arrives, got {memory}"
            )

    def _check_accepted(self, spec: FairSpec) -> None:
        """Raise ValueError if the notion is meaningless because labels are only revealed for one decision.

        All people with a known label then got the same decision. Therefore rates among people with a given label, and
        shares of errors, are 0 or 1 in every group, whatever the policy does.
        """
        code, favourable = self.definition.code, spec.favourable_action
        tells = code == ACCURACY or (code == POSITIVE_VALUE and favourable == 1)
        if self.definition.feedback and not tells:
            needed = "decision 1" if code == POSITIVE_VALUE else "all decisions"
            raise ValueError(
                f"{self.name} needs feedback on {needed}; this environment reveals it only on decision {favourable}: "
                "make the environment with feedback='full', if it has this parameter"
            )

    def rates(self, history: History) -> dict[str, Floats]:
        """Return each group's rates, shape (B, components), or (B, strata, components) if conditional."""
        rates = self._rates(history)
        if not self.definition.conditional:
            rates = rates[:, 0]
        return {name: rates[..., g, :] for g, name in enumerate(group_members(history.spec, self.groups))}

    def gap(self, history: History, *, last: Floats | float | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair, 1 the largest (infinite for the raw treatment equality).

        Args:
            history: The decisions.
            last: With ``undefined="last"``: the previous gaps, shape (B,) or one number; NaN where undefined.

        Raises:
            ValueError: The environment does not report what the notion needs or does not have the groups, the history
                removes all people before their labels arrive, or ``last`` has a wrong shape.
        """
        gaps: GroupGaps = history.follow(repr(self), lambda: GroupGaps([self], history.spec))
        if last is not None and np.shape(last) not in ((), (history.lanes,)):
            raise ValueError(f"last must have shape ({history.lanes},), got {np.shape(last)}")
        return gaps(history, last=None if last is None else np.reshape(last, (-1, 1)))[:, 0]

    def _rates(self, history: History) -> Floats:
        """Return the rates, shape (B, strata, groups, components)."""
        self.check(history.spec)
        self.check_memory(history.memory, history.spec)
        members = stacked_members(history.spec, self.groups)
        counts = history.counts(current_step=self.current_step).reshape(history.lanes, len(members[0]), -1, 2, 3)
        strata = np.arange(counts.shape[2]) if self.definition.conditional else np.array([-1])
        rates, sums = np.empty((history.lanes, len(strata), len(members), 2)), np.empty((2, len(members), 2, 3))
        fill_rates(counts, members, strata, self.definition.code, rates, sums)
        return rates[..., : self.definition.components]


def stacked_members(spec: FairSpec, groups: Groups) -> Flags:
    """Return the mask of the combinations of sensitive codes in each group, shape (groups, codes)."""
    return np.stack([own.ravel() for own in group_members(spec, groups).values()])


class _Family(NamedTuple):
    """Notions that compare the same groups over the same decisions."""

    places: Ints  # (n,) among all notions
    current_step: bool
    members: Flags  # (groups, sensitive codes)
    codes: Ints  # (n,) of their rates
    conditional: Flags  # (n,)
    rest: Flags  # (n,)
    paper: Flags  # (n,)


class GroupGaps:
    """Computes the gaps of several group notions at once; sums that several notions need are computed once.

    Args:
        notions: N group notions.
        spec: The environment's `FairSpec`.

    Raises:
        ValueError: The environment does not report what a notion needs, or does not have its groups.
    """

    def __init__(self, notions: Sequence[GroupNotion], spec: FairSpec) -> None:
        for notion in notions:
            notion.check(spec)
        self.spec, self.notions = spec, tuple(notions)
        self._fits: Memory | None = None  # the last memory that passed the check of all notions
        self._families = _families(notions, spec)
        self._fill = np.array([{"fair": 0.0, "unfair": own.worst}.get(own.undefined, np.nan) for own in notions])
        self._last = np.array([notion.undefined == "last" for notion in notions])
        self._leaves_undefined = all(notion.undefined in ("nan", "paper") for notion in notions)

    def __call__(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return each notion's gap in each lane, shape (B, N), as `GroupNotion.gap` does.

        Args:
            history: The decisions, of an environment with this spec.
            last: The previous gaps, shape (B, N), for notions with ``undefined="last"``.

        Raises:
            ValueError: The history removes all people before the labels that a notion needs arrive.
        """
        if self._fits is not history.memory:
            self._check_memory(history.memory)
        gaps = np.empty((history.lanes, len(self._fill)))
        for family in self._families:
            counts = history.counts(current_step=family.current_step)
            counts = counts.reshape(history.lanes, len(family.members[0]), -1, 2, 3)  # by sensitive and legitimate code
            own = gaps if len(self._families) == 1 else np.empty((history.lanes, len(family.places)))
            fill_gaps(counts, *family[2:], own, np.empty((2, len(family.members), 2, 3)))
            if own is not gaps:
                gaps[:, family.places] = own
        if self._leaves_undefined:
            return gaps
        undefined = np.isnan(gaps)
        if not np.count_nonzero(undefined):
            return gaps
        gaps = np.where(undefined, self._fill, gaps)
        return gaps if last is None else np.where(undefined & self._last, last, gaps)

    def _check_memory(self, memory: Memory) -> None:
        for notion in self.notions:
            notion.check_memory(memory, self.spec)
        self._fits = memory

    def copy(self) -> "GroupGaps":
        """Return the same object for a copy of the history, because it stores nothing about the history."""
        return self


def _families(notions: Sequence[GroupNotion], spec: FairSpec) -> list[_Family]:
    """Return the notions in families with the same groups and decisions."""
    alike: dict[Any, list[int]] = {}
    for place, notion in enumerate(notions):
        alike.setdefault((stacked_members(spec, notion.groups).tobytes(), notion.current_step), []).append(place)
    families = []
    for places in alike.values():
        own = [notions[place] for place in places]
        families.append(
            _Family(
                places=np.array(places),
                current_step=own[0].current_step,
                members=stacked_members(spec, own[0].groups),
                codes=np.array([notion.definition.code for notion in own]),
                conditional=np.array([notion.definition.conditional for notion in own]),
                rest=np.array([notion.across == "rest" for notion in own]),
                paper=np.array([notion.undefined == "paper" for notion in own]),
            )
        )
    return families


__all__ = ["DEFINITIONS", "Definition", "GroupGaps", "GroupNotion", "group_members"]
