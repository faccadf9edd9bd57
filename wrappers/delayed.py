"""Feedback that comes late, for environments that reveal the correct decision at once."""

from dataclasses import replace
from typing import Literal

import numpy as np

from fair_envs.aliases import Flags, Ints
from fair_envs.core.compilation import kernel
from fair_envs.core.interactions import MISSING, FairSpec
from fair_envs.parameters import PositiveInt, checked
from fair_envs.wrappers.adapters import wrapper
from fair_envs.wrappers.transform import Batch, Setting, Transform

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
        self.delay, self.only = checked("delay", delay, PositiveInt), checked("only", only, Only)
        self.rows = None if rows is None else checked("rows", rows, PositiveInt)

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
        self._width = self.rows or spec.individuals
        self._wanted = spec.favourable_action if self.only == "accepted" else MISSING

    def fair_spec(self, spec: FairSpec) -> FairSpec:
        """Return the static facts with late feedback."""
        only_accepted = spec.only_accepted or self.only == "accepted"
        return replace(spec, feedback="delayed", only_accepted=only_accepted, delay=self.delay, late_rows=self._width)

    def __call__(self, batch: Batch) -> Batch:
        """Hold back what is revealed and tell what has been held back long enough."""
        lanes = len(self._time)
        late = np.full((2, lanes, self._width), MISSING, np.int64)
        tally = np.zeros((2, lanes), np.int64)
        facts = (np.asarray(batch.facts[name]).reshape(lanes, -1) for name in HELD)
        hold(batch.first, batch.decided, self._wanted, self._time, self._who, self._what, *facts, late, tally)
        feedback = np.full(np.shape(batch.facts["fair_feedback"]), MISSING, np.int64)
        return batch._replace(added=dict(zip(TOLD, (feedback, *late, *tally), strict=True)))


HELD = ("fair_individual", "fair_action", "fair_feedback")
TOLD = ("fair_feedback", "fair_late_individual", "fair_late_feedback", "fair_late_count", "fair_late_dropped")


@kernel
def hold(
    first: Flags,
    decided: Flags,
    wanted: int,
    time: Ints,
    who: Ints,
    what: Ints,
    individual: Ints,
    action: Ints,
    feedback: Ints,
    late: Ints,
    tally: Ints,
) -> None:
    """Keep the labels of these decisions, and return those of the decisions made a delay ago."""
    for b in range(time.shape[0]):
        if first[b]:
            time[b] = 0
            what[b] = MISSING
        if not decided[b]:
            continue
        place, told = time[b] % who.shape[1], 0
        for m in range(who.shape[2]):
            if what[b, place, m] >= 0 and told < late.shape[2]:
                late[0, b, told], late[1, b, told] = who[b, place, m], what[b, place, m]
                told += 1
            elif what[b, place, m] >= 0:
                tally[1, b] += 1
            learnt = action[b, m] >= 0 if wanted == MISSING else action[b, m] == wanted
            who[b, place, m] = individual[b, m]
            what[b, place, m] = feedback[b, m] if learnt else MISSING
        tally[0, b] = told
        time[b] += 1


DelayedFeedback = wrapper(LateFeedback, name="DelayedFeedback")
