"""Individual notions on histories of decisions: are people who are alike treated alike?

A notion compares pairs of people by a distance between their features. What it needs of the pairs is kept beside the
history and brought up to date when the notion is asked, see `fair_envs.metrics.comparisons`; the result is that of
comparing all pairs anew. Notions with the same distance share the comparison.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fair_envs.aliases import Floats, Ints
from fair_envs.history import Discounted, History, Memory
from fair_envs.interactions import FairSpec
from fair_envs.metrics.comparisons import PAPER, VIOLATION, Comparisons
from fair_envs.metrics.distances import (
    HELLINGER,
    HEOM,
    HMOM,
    RAW,
    TOTAL_VARIATION,
    BrayCurtis,
    Distance,
    Given,
    Minkowski,
    as_distance,
    hellinger,
    total_variation,
)
from fair_envs.parameters import NonNegative, PositiveInt, checked

Undefined = Literal["nan", "fair", "unfair", "last", "paper"]


# Notions --------------------------------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """How many pairs of people there are in each lane, shape (B,) each."""

    compared: Ints
    left_out: Ints  # because the action probabilities of one were not reported


@dataclass(frozen=True, kw_only=True)
class IndividualNotion:
    """What individual notions have in common."""

    distance: Any = field(default_factory=HEOM)
    exclude: Sequence[str] | None = None
    undefined: Undefined = "nan"
    current_step: bool = False
    worst: ClassVar[float] = 1.0
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "distance", as_distance(self.distance))
        if isinstance(self.exclude, str):
            raise ValueError(f"exclude must be several names or None, got {self.exclude!r}")
        if self.exclude is not None:
            object.__setattr__(self, "exclude", tuple(self.exclude))
        checked("undefined", self.undefined, Undefined)
        object.__setattr__(self, "current_step", checked("current_step", self.current_step, bool))

    def check(self, spec: FairSpec) -> None:
        """Raise ValueError if an environment cannot tell what the notion needs."""
        self._columns(spec)

    def check_memory(self, memory: Memory, spec: FairSpec) -> None:
        """Raise ValueError if a history with such a memory cannot hold whom the notion compares."""
        if self.current_step and memory.surely_held < spec.individuals:
            raise ValueError(
                f"history must hold the {spec.individuals} people of a step for current_step=True, got {memory}"
            )

    def gap(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair.

        Args:
            history: What was decided.
            last: With ``undefined="last"``: the gaps before, shape (B,); NaN where there is none.

        Raises:
            ValueError: The environment cannot tell what the notion needs, or the history cannot hold it.
        """
        raise NotImplementedError

    def sizes(self, history: History) -> Ints:
        """Return how many people of each lane are compared, shape (B,); the published discount forgets for itself."""
        self.check_memory(history.memory, history.spec)
        return self._comparisons(history).sizes(history)

    def _columns(self, spec: FairSpec) -> Ints:
        """Return which features are compared."""
        excluded = spec.sensitive_features if self.exclude is None else self.exclude
        for name in excluded:
            if name not in spec.features:
                known = ", ".join(spec.features) or "none"
                raise ValueError(f"exclude must be of the features ({known}), got {name!r}")
        columns = [c for c, name in enumerate(spec.features) if name not in excluded]
        if not columns:
            raise ValueError(f"{self.name} needs features that are not excluded; this environment has none")
        return np.array(columns, np.int64)

    def _comparisons(self, history: History) -> Comparisons:
        def make() -> Comparisons:
            return Comparisons(history, self.distance, self._columns(history.spec), current_step=self.current_step)

        comparisons: Comparisons = history.follow((self.distance, self.exclude, self.current_step), make)
        return comparisons

    def _filled(self, gap: Floats, last: Floats | None) -> Floats:
        """Return the gaps with what undefined ones are to be."""
        filled = {"fair": 0.0, "unfair": self.worst, "last": last, "paper": 0.0}.get(self.undefined)
        return gap if filled is None else np.where(np.isnan(gap), filled, gap)


@dataclass(frozen=True, kw_only=True)
class IndividualFairness(IndividualNotion):
    """Individual fairness (Dwork et al. 2012): people who are alike are to be treated alike.

    The gap is the mean over all pairs of people of ``max(0, D - lipschitz * d)``: how much further apart their
    treatments are than they themselves are. 0 is fair, 1 the largest. People whose action probabilities were not
    reported are in no pair, see `pairs`. Each pair has the product of its weights in the history.

    Args:
        distance: Between people (d): a `Distance`, or a function of two people, see `Given`.
        exclude: Names of features that are not to make people differ; None: the environment's sensitive features.
        form: ``"violation"``, or ``"paper"``: equation 8 of Cimpean et al. (2025), whose objective, minus the gap, is
            mean(d) - mean(D) - 1. It depends on the people met even where all are treated alike, and is at most 0 only
            where distances are at most 1 (not with ``scaling="raw"``, nor with every distance of one's own).
        lipschitz: How differently people may be treated for each unit of distance between them, in the violation form.
        between: How treatments are compared (D): by `hellinger` or `total_variation` of the action probabilities.
        undefined: What the gap is if there are no two people: ``"nan"``; ``"fair"``: 0; ``"unfair"``: the largest there
            can be; ``"last"``: the one before, see `gap`; ``"paper"``: 0, and also for two people, as in the published
            code.
        current_step: Compare the people of each lane's last step alone.

    In the paper's form a pair that has no distance (NaN: published Bray-Curtis; a history with ``scores``) is left out
    of the sum and counted in the mean, as in the published code; in the violation form the gap has no value.

    Raises:
        ValueError: An unknown option.
    """

    form: Literal["violation", "paper"] = "violation"
    lipschitz: float = 1.0
    between: Literal["hellinger", "total_variation"] = "hellinger"
    name: ClassVar[str] = "individual_fairness"
    needs_action_probs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        checked("form", self.form, Literal["violation", "paper"])
        checked("between", self.between, Literal["hellinger", "total_variation"])
        object.__setattr__(self, "lipschitz", checked("lipschitz", self.lipschitz, NonNegative))

    @property
    def worst(self) -> float:  # type: ignore[override]
        """The largest gap there can be."""
        return 2.0 if self.form == "paper" else 1.0

    @property
    def least(self) -> float:
        """The smallest gap there can be; without a bound in the paper's form where distances can be above 1."""
        return -np.inf if self.form == "paper" and self.distance.measure.scaling == RAW else 0.0

    def check_memory(self, memory: Memory, spec: FairSpec) -> None:
        """Raise ValueError if a history with such a memory cannot hold whom the notion compares, or in another form."""
        super().check_memory(memory, spec)
        if _published(memory) and (self.form, self.between) != ("paper", "hellinger"):
            raise ValueError(
                f"form must be 'paper' and between 'hellinger' on a history with algorithm='paper', got {self}"
            )

    def gap(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair in the violation form.

        Args:
            history: What was decided.
            last: With ``undefined="last"``: the gaps before, shape (B,); NaN where there is none.

        Raises:
            ValueError: The environment cannot tell what the notion needs, or the history cannot hold it.
        """
        self.check_memory(history.memory, history.spec)
        comparisons = self._comparisons(history)
        between = HELLINGER if self.between == "hellinger" else TOTAL_VARIATION
        if self.form == "paper":
            gap = 1.0 - comparisons.mean(history, PAPER, between)
        else:
            gap = comparisons.mean(history, VIOLATION, between, lipschitz=self.lipschitz)
        if self.undefined == "paper" and not _published(history.memory):
            gap = np.where(comparisons.sizes(history) <= 2, np.nan, gap)
        return self._filled(gap, last)

    def pairs(self, history: History) -> Pairs:
        """Return how many pairs are compared, and how many are left out for want of action probabilities."""
        self.check_memory(history.memory, history.spec)
        comparisons = self._comparisons(history)
        people, known = comparisons.sizes(history), comparisons.known(history)
        compared = known * (known - 1) // 2
        return Pairs(compared, people * (people - 1) // 2 - compared)


def _published(memory: Memory) -> bool:
    """Return whether histories with this memory forget as in the published code."""
    return isinstance(memory, Discounted) and memory.algorithm == "paper"


@dataclass(frozen=True, kw_only=True)
class Consistency(IndividualNotion):
    """Consistency score complement (Zemel et al. 2013): the nearest of each person are to be decided on alike.

    The gap is the mean over people, by their weights in the history, of the share of their k nearest neighbours who
    were decided on otherwise; with two actions that is ``|a - mean of the neighbours' a|``. 0 is fair, 1 the largest.
    With fewer than k others all of them are neighbours; who is as far as the k-th shares the places that are left. The
    cost of a step grows with the number of people; over a `Full` history, without a bound.

    Args:
        distance: Between people: a `Distance`, or a function of two people, see `Given`.
        exclude: Names of features that are not to make people differ; None: the environment's sensitive features.
        k: How many neighbours; less than a window's size.
        ties: Who is a neighbour of several people as far as the k-th: ``"shared"``; ``"first"``: whom the published
            code listed first (slow: all pairs are compared anew). Its lists in a window that is full, which keep people
            who have left and lose others, are not reproduced.
        undefined: What the gap is if there are no two people: ``"nan"``; ``"fair"``: 0; ``"unfair"``: 1; ``"last"``:
            the one before, see `gap`; ``"paper"``: 0, as in the published code.
        current_step: Compare the people of each lane's last step alone.

    Raises:
        ValueError: An unknown option.
    """

    k: int = 5
    ties: Literal["shared", "first"] = "shared"
    name: ClassVar[str] = "consistency"

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "k", checked("k", self.k, PositiveInt))
        checked("ties", self.ties, Literal["shared", "first"])

    def check_memory(self, memory: Memory, spec: FairSpec) -> None:
        """Raise ValueError if a history with such a memory cannot hold whom the notion compares."""
        super().check_memory(memory, spec)
        size = memory.capacity
        if size is not None and self.k >= size and not self.current_step:
            raise ValueError(f"k must be below the window's size, {size}, got {self.k}")

    def gap(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair, 1 the largest.

        Args:
            history: What was decided.
            last: With ``undefined="last"``: the gaps before, shape (B,); NaN where there is none.

        Raises:
            ValueError: The environment cannot tell what the notion needs, or the history cannot hold it (k is not less
                than the window's size).
        """
        self.check_memory(history.memory, history.spec)
        comparisons = self._comparisons(history)
        look = comparisons.otherwise if self.ties == "shared" else comparisons.otherwise_of_first
        return self._filled(look(history, self.k), last)


INDIVIDUAL: Mapping[str, type[IndividualFairness] | type[Consistency]] = {
    notion.name: notion for notion in (IndividualFairness, Consistency)
}
"""The individual notions by name."""

SHORT: Mapping[str, str] = {"IF": "individual_fairness", "CSC": "consistency"}
"""The abbreviations of the FAReL study."""

__all__ = [
    "HEOM",
    "HMOM",
    "INDIVIDUAL",
    "SHORT",
    "BrayCurtis",
    "Consistency",
    "Distance",
    "Given",
    "IndividualFairness",
    "IndividualNotion",
    "Minkowski",
    "Pairs",
    "hellinger",
    "total_variation",
]
