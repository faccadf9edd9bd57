"""Individual notions on histories of decisions: are similar people treated similarly?

A notion compares pairs of people by a distance between their features. The data it needs about the pairs is kept beside
the history and updated when the notion is evaluated, see `fair_envs.metrics.comparisons`. The result equals a new
comparison of all pairs. Notions with the same distance share the comparison.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fair_envs.core.interactions import FairSpec
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
from fair_envs.metrics.history import Discounted, History, Memory
from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.parameters import NonNegative, PositiveInt, checked

Undefined = Literal["nan", "fair", "unfair", "last", "paper"]


# Notions --------------------------------------------------------------------------------------------------------------


class Pairs(NamedTuple):
    """How many pairs of people there are in each lane, shape (B,) each."""

    compared: Ints
    left_out: Ints  # because the action probabilities of a person are missing


@dataclass(frozen=True, kw_only=True)
class IndividualNotion:
    """Base class of the individual notions."""

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
            raise ValueError(f"exclude must be a list of names or None, got {self.exclude!r}")
        if self.exclude is not None:
            object.__setattr__(self, "exclude", tuple(self.exclude))
        checked("undefined", self.undefined, Undefined)
        object.__setattr__(self, "current_step", checked("current_step", self.current_step, bool))

    def check(self, spec: FairSpec) -> None:
        """Raise ValueError if an environment does not report what the notion needs."""
        self._columns(spec)

    def check_memory(self, memory: Memory, spec: FairSpec) -> None:
        """Raise ValueError if a history with this memory cannot hold the people to compare."""
        if self.current_step and memory.surely_held < spec.individuals:
            raise ValueError(
                f"history must hold the {spec.individuals} people of a step for current_step=True, got {memory}"
            )

    def gap(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair.

        Args:
            history: The decisions.
            last: With ``undefined="last"``: the previous gaps, shape (B,); NaN where undefined.

        Raises:
            ValueError: The environment does not report what the notion needs, or the history cannot hold it.
        """
        raise NotImplementedError

    def sizes(self, history: History) -> Ints:
        """Return how many people of each lane are compared, shape (B,); the published discount has its own cut-off."""
        self.check_memory(history.memory, history.spec)
        return self._comparisons(history).sizes(history)

    def _columns(self, spec: FairSpec) -> Ints:
        """Return the indices of the features that are compared."""
        excluded = spec.sensitive_features if self.exclude is None else self.exclude
        for name in excluded:
            if name not in spec.features:
                known = ", ".join(spec.features) or "none"
                raise ValueError(f"exclude must be one of the features ({known}), got {name!r}")
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
        """Return the gaps, with undefined ones replaced as the option asks."""
        filled = {"fair": 0.0, "unfair": self.worst, "last": last, "paper": 0.0}.get(self.undefined)
        return gap if filled is None else np.where(np.isnan(gap), filled, gap)


@dataclass(frozen=True, kw_only=True)
class IndividualFairness(IndividualNotion):
    """Individual fairness (Dwork et al. 2012): similar people should be treated similarly.

    The gap says how much more two people's treatments differ than the people themselves do. It is the mean of
    ``max(0, D - lipschitz * d)`` over all pairs, with D the distance between treatments and d the distance between
    people. 0 is fair, 1 is the largest gap. People whose action probabilities were not reported are in no pair, see
    `pairs`. The weight of a pair is the product of both people's weights in the history.

    Args:
        distance: Distance d between people: a `Distance`, or a function of two people, see `Given`.
        exclude: Names of features that are ignored in the distance; None: the environment's sensitive features.
        form: ``"violation"``, or ``"paper"``: equation 8 of Cimpean et al. (2025), whose objective, minus the gap, is
            mean(d) - mean(D) - 1. Its value depends on which people arrive, even if all are treated alike. It is
            guaranteed to be at most 0 only if distances are at most 1 (not with ``scaling="raw"``, nor with every
            user-defined distance).
        lipschitz: How differently people may be treated for each unit of distance between them, in the violation form.
        between: Distance D between treatments: `hellinger` or `total_variation` of the action probabilities.
        undefined: The gap if there are fewer than two people: ``"nan"``; ``"fair"``: 0; ``"unfair"``: the largest
            possible gap; ``"last"``: the previous gap, see `gap`; ``"paper"``: 0, also for exactly two people, as in
            the published code.
        current_step: Whether to compare only the people of each lane's last step.

    In the paper's form, a pair without a distance (NaN: published Bray-Curtis; a history with ``scores``) is left out
    of the sum but counted in the mean, as in the published code. In the violation form such a pair makes the gap
    undefined.

    Raises:
        ValueError: An option is unknown.
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
        """The largest possible gap."""
        return 2.0 if self.form == "paper" else 1.0

    @property
    def least(self) -> float:
        """The smallest possible gap; minus infinity in the paper's form if distances can be above 1."""
        return -np.inf if self.form == "paper" and self.distance.measure.scaling == RAW else 0.0

    def check_memory(self, memory: Memory, spec: FairSpec) -> None:
        """Raise ValueError if a history with this memory cannot hold the people to compare, or needs another form."""
        super().check_memory(memory, spec)
        if _published(memory) and (self.form, self.between) != ("paper", "hellinger"):
            raise ValueError(
                f"form must be 'paper' and between 'hellinger' on a history with algorithm='paper', got {self}"
            )

    def gap(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair in the violation form.

        Args:
            history: The decisions.
            last: With ``undefined="last"``: the previous gaps, shape (B,); NaN where undefined.

        Raises:
            ValueError: The environment does not report what the notion needs, or the history cannot hold it.
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
        """Return how many pairs are compared, and how many are left out because action probabilities are missing."""
        self.check_memory(history.memory, history.spec)
        comparisons = self._comparisons(history)
        people, known = comparisons.sizes(history), comparisons.known(history)
        compared = known * (known - 1) // 2
        return Pairs(compared, people * (people - 1) // 2 - compared)


def _published(memory: Memory) -> bool:
    """Return whether histories with this memory discount as in the published code."""
    return isinstance(memory, Discounted) and memory.algorithm == "paper"


@dataclass(frozen=True, kw_only=True)
class Consistency(IndividualNotion):
    """Consistency score complement (Zemel et al. 2013): a person's nearest neighbours should get the same decision.

    The gap is the share of a person's k nearest neighbours who got another decision, averaged over people by their
    weights in the history. With two actions that is ``|a - mean of the neighbours' a|``. 0 is fair, 1 is the largest
    gap. If there are fewer than k other people, all of them are neighbours. People at the same distance as the k-th
    share the remaining places. The cost of a step grows with the number of people, without a bound over a `Full`
    history.

    Args:
        distance: Distance between people: a `Distance`, or a function of two people, see `Given`.
        exclude: Names of features that are ignored in the distance; None: the environment's sensitive features.
        k: Number of neighbours; less than a window's size.
        ties: Which people count as neighbours if several are at the same distance as the k-th: ``"shared"``: each in
            part; ``"first"``: those that the published code lists first (slow: all pairs are compared again). The lists
            of the published code in a full window, which keep people who have left and lose others, are not reproduced.
        undefined: The gap if there are fewer than two people: ``"nan"``; ``"fair"``: 0; ``"unfair"``: 1; ``"last"``:
            the previous gap, see `gap`; ``"paper"``: 0, as in the published code.
        current_step: Whether to compare only the people of each lane's last step.

    Raises:
        ValueError: An option is unknown.
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
        """Raise ValueError if a history with this memory cannot hold the people to compare."""
        super().check_memory(memory, spec)
        size = memory.capacity
        if size is not None and self.k >= size and not self.current_step:
            raise ValueError(f"k must be below the window's size, {size}, got {self.k}")

    def gap(self, history: History, *, last: Floats | None = None) -> Floats:
        """Return the gap in each lane, shape (B,): 0 is fair, 1 the largest.

        Args:
            history: The decisions.
            last: With ``undefined="last"``: the previous gaps, shape (B,); NaN where undefined.

        Raises:
            ValueError: The environment does not report what the notion needs, or the history cannot hold it (k is not
                less than the window's size).
        """
        self.check_memory(history.memory, history.spec)
        comparisons = self._comparisons(history)
        look = comparisons.otherwise if self.ties == "shared" else comparisons.otherwise_of_first
        return self._filled(look(history, self.k), last)


INDIVIDUAL: Mapping[str, type[IndividualFairness] | type[Consistency]] = {
    notion.name: notion for notion in (IndividualFairness, Consistency)
}
"""The individual notions by name."""

__all__ = [
    "HEOM",
    "HMOM",
    "INDIVIDUAL",
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
