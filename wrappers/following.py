"""Measures that follow a wrapped environment, for all wrappers that use them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core.interactions import FairSpec, columns
from fair_envs.metrics.followed import NotionMeasure, measure_named
from fair_envs.metrics.gaps import numbered
from fair_envs.metrics.group import Groups
from fair_envs.metrics.history import History
from fair_envs.metrics.measures import Measure, MeasureOf
from fair_envs.metrics.rates import Rate
from fair_envs.support.aliases import Floats
from fair_envs.support.imports import imported
from fair_envs.wrappers.transform import Batch, Setting

Measured = str | Rate | MeasureOf
"""A measure.

One of: ``"short"``, ``"long"`` or ``"rate"``, the measures of the environment's task (`fair_envs.tasks`); the name of a
notion; a rate; a function that creates a measure for a number of lanes.
"""

TASK_MEASURE = "fair_envs.tasks:measure_for"  # named by a string, because tasks are above wrappers


def follow(measures: Sequence[Measure], batch: Batch, spec: FairSpec) -> None:
    """Update measures with a batch: lanes whose episode begins are cleared, then those with a decision are added.

    Args:
        measures: The measures.
        batch: The batch. In the autoreset mode NextStep, some lanes begin an episode while others decide.
        spec: The description of the environment, as the wrapper sees it.
    """
    for measure in measures:
        measure.restart(batch.first)
    if not np.count_nonzero(batch.decided):
        return
    info = {**columns(spec, batch.facts, batch.action_probs), "fair_decided": batch.decided.astype(np.int8)}
    for measure in measures:
        measure.update(info, batch.reward, ended=batch.done & batch.decided)


def check_reported(batch: Batch, name: str) -> None:
    """Raise ValueError if decisions were made without reporting their probabilities, which a notion needs."""
    taken = (batch.facts["action"] >= 0) & batch.decided[:, np.newaxis]  # (B, M)
    if batch.action_probs is not None:
        taken &= ~batch.action_probs.any(axis=-1)
    if taken.any():
        raise ValueError(
            f"action_probs must be reported before each step for {name} (by env.unwrapped.report_action_probs or the "
            "wrapper ReportActionProbs), got none"
        )


def check_finite(name: str, worst: float) -> None:
    """Raise ValueError if the gap of a notion has no finite largest value."""
    if not np.isfinite(worst):
        raise ValueError(f"notions must have a finite largest gap to be used in a reward; {name} has none")


class Followed:
    """Measures of a wrapped environment; their values are the gaps that rewards use.

    Args:
        given: One or several of `Measured` (N).
        groups: The groups that notions given by name, and rates, compare; None: those of the task for its measures,
            otherwise those of ``fair_group``.

    Attributes:
        measures: The measures, known after `bind`.
        names: Their display names; repeated ones are numbered.
        least: A lower bound of each value, shape (N,).
        worst: An upper bound of each value, shape (N,).
        keeps: Which of them continue across episodes, shape (N,).
        count: Number of measures (N).

    Raises:
        ValueError: There is no measure, one is of another type, or ``groups`` is given without a name or rate.
    """

    def __init__(self, given: Measured | Sequence[Measured], *, groups: Groups = None) -> None:
        several = isinstance(given, (list, tuple))
        self.given: tuple[Any, ...] = tuple(given) if several else (given,)  # type: ignore[arg-type]
        self._groups = groups
        self.measures: tuple[Measure, ...] = ()
        self.count = len(self.given)
        if not self.given:
            raise ValueError(f"measures must be at least one, got {given!r}")
        for one in self.given:
            if isinstance(one, Measure) or not (isinstance(one, (str, Rate)) or callable(one)):
                raise ValueError(
                    "measures must be short, long, rate, names of notions, rates, or functions that create a measure "
                    f"for a number of lanes, such as Task.factory gives, got {one!r}"
                )
        if groups is not None and not any(isinstance(one, (str, Rate)) for one in self.given):
            raise ValueError(f"groups applies to rates and measures given by name, got groups={groups!r} for {given!r}")

    def bind(self, setting: Setting) -> None:
        """Create the measures.

        Raises:
            ValueError: A notion is unknown, or the environment does not report what it needs.
        """
        self._spec = setting.spec
        self.measures = tuple(self._made(one, setting) for one in self.given)
        for measure in self.measures:
            if isinstance(measure, NotionMeasure):
                check_finite(measure.name, measure.worst)
        self.names = numbered([measure.name or type(measure).__name__ for measure in self.measures])
        self.least = np.array([measure.least for measure in self.measures])
        self.worst = np.array([measure.worst for measure in self.measures])
        self.keeps = np.array([measure.keeps for measure in self.measures])

    def _made(self, one: Any, setting: Setting) -> Measure:
        lanes, rules = setting.lanes.count, setting.rules
        if isinstance(one, str):
            found: Measure = imported(TASK_MEASURE)(one, rules, lanes, spec=setting.spec, groups=self._groups)
            return found
        if isinstance(one, Rate):
            return measure_named(one, lanes, spec=setting.spec, of_agents=rules.multi_agent, groups=self._groups)
        found = one(lanes)
        if not isinstance(found, Measure) or found.lanes != lanes:
            raise ValueError(f"measures must be functions that create a Measure of {lanes} lanes, got {found!r}")
        return found

    @property
    def histories(self) -> tuple[History, ...]:
        """The histories of decisions that measures keep."""
        return tuple(measure.history for measure in self.measures if isinstance(measure, NotionMeasure))

    def __call__(self, batch: Batch, last: Floats | None = None) -> Floats:
        """Return the values after a batch, shape (B, N).

        Args:
            batch: The batch.
            last: Not used: measures know their previous values.

        Raises:
            ValueError: A notion needs the policy's probabilities and none were reported. Nothing has changed then.
        """
        for measure in self.measures:
            if measure.needs_action_probs:
                check_reported(batch, measure.name)
        follow(self.measures, batch, self._spec)
        return np.stack([measure.value for measure in self.measures], axis=-1)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the state of the measures as arrays."""
        return {
            f"measure_{k}_{part}": array
            for k, measure in enumerate(self.measures)
            for part, array in enumerate(measure.snapshot())
        }

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> None:
        """Restore a snapshot of the same measures."""
        for k, measure in enumerate(self.measures):
            measure.restore([snapshot[f"measure_{k}_{part}"] for part in range(len(measure.snapshot()))])
