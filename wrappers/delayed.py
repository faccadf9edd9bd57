"""Feedback that comes late, for environments that reveal the correct decision at once."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.interactions import MISSING, FairSpec
from fair_envs.parameters import Count, checked
from fair_envs.wrappers.adapters import wrapper
from fair_envs.wrappers.transform import Batch, Columns, Setting, Transform

Codes = NDArray[np.int64]
Only = Literal["all", "accepted"]


class LateFeedback(Transform):
    """Holds back the correct decisions for some steps: ``fair_feedback`` becomes ``fair_late_*``.

    What is known of the people of one step comes ``delay`` steps later, within the episode; what is still held back at
    its end never comes. ``env.unwrapped.fair_spec`` says so: ``feedback="delayed"``, ``delay``, ``late_rows``.
    Wrappers that remember decisions stand above this one.

    Args:
        delay: Steps, at least 1.
        only: ``"accepted"``: nothing is ever learnt of those whose decision was not ``fair_spec.favourable_action``.
        rows: How many can be told in one step (K), the individuals of a step by default; the rest are counted in
            ``fair_late_dropped`` and lost.

    Raises:
        ValueError: An option; an environment of several agents, or one that reveals nothing at once.
    """

    def __init__(self, *, delay: int, only: Only = "all", rows: int | None = None) -> None:
        self.delay, self.only = checked("delay", delay, Count), checked("only", only, Only)
        self.rows = None if rows is None else checked("rows", rows, Count)

    def bind(self, setting: Setting) -> None:
        """Begin with nothing held back."""
        spec, rules = setting.spec, setting.rules
        if rules.multi_agent:
            raise ValueError(f"env must have one decision-maker, {rules.name} has agents")
        if spec.feedback not in ("full", "accepted"):
            raise ValueError(
                f"env must reveal feedback at once ('full' or 'accepted'), {rules.name} has {spec.feedback!r}"
            )
        held = setting.lanes.count, self.delay, spec.individuals
        self._who, self._what = (np.full(held, MISSING, np.int64) for _ in range(2))
        self._time = np.zeros(setting.lanes.count, np.int64)  # steps of the episode
        self._favourable, self._width = spec.favourable_action, self.rows or spec.individuals

    def fair_spec(self, spec: FairSpec) -> FairSpec:
        """Return the static facts with late feedback."""
        return replace(spec, feedback="delayed", delay=self.delay, late_rows=self._width)

    def __call__(self, batch: Batch) -> Batch:
        """Hold back what is revealed and tell what has been held back long enough."""
        self._time[batch.first] = 0
        self._what[batch.first] = MISSING
        lanes = np.flatnonzero(batch.decided)
        added = self._blank(batch)
        if lanes.size:
            place = self._time[lanes] % self.delay
            for name, column in self._told(self._who[lanes, place], self._what[lanes, place]).items():
                added[name][lanes] = column
            self._who[lanes, place], self._what[lanes, place] = self._revealed(batch.facts, lanes)
            self._time[lanes] += 1
        return batch._replace(added=added)

    def _blank(self, batch: Batch) -> dict[str, NDArray[Any]]:
        """Return the columns of feedback with nothing told."""
        lanes = len(batch.decided)
        missing = {"fair_feedback": np.shape(batch.facts["fair_feedback"])}
        missing |= {f"fair_late_{name}": (lanes, self._width) for name in ("individual", "feedback")}
        blank = {name: np.full(shape, MISSING, np.int64) for name, shape in missing.items()}
        return {**blank, **{f"fair_late_{name}": np.zeros(lanes, np.int64) for name in ("count", "dropped")}}

    def _revealed(self, facts: Columns, lanes: NDArray[np.intp]) -> tuple[Codes, Codes]:
        """Return who was decided on and what is known of them, shape (n, M)."""
        who, action, what = (
            np.asarray(facts[f"fair_{name}"]).reshape(len(self._time), -1)[lanes]
            for name in ("individual", "action", "feedback")
        )
        told = action == self._favourable if self.only == "accepted" else action >= 0
        return who, np.where(told, what, MISSING)

    def _told(self, who: Codes, what: Codes) -> Columns:
        """Return the late columns of some lanes: what is known of up to K people, in their order."""
        known = what >= 0
        order = np.argsort(~known, axis=1, kind="stable")[:, : self._width]
        rows = order.shape[1]
        told = np.take_along_axis(known, order, axis=1)
        late = np.full((2, len(who), self._width), MISSING, np.int64)
        for k, values in enumerate((who, what)):
            late[k, :, :rows] = np.where(told, np.take_along_axis(values, order, axis=1), MISSING)
        count = told.sum(axis=1)
        names = ("fair_late_individual", "fair_late_feedback", "fair_late_count", "fair_late_dropped")
        return dict(zip(names, (*late, count, known.sum(axis=1) - count), strict=True))


DelayedFeedback = wrapper(LateFeedback, name="DelayedFeedback")
