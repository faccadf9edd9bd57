"""Delayed feedback for environments that reveal labels (the correct decisions) at once."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fair_envs.core.compilation import kernel, one_layout, readable
from fair_envs.core.interactions import MISSING, PREFIX, FairSpec, facts_dtype
from fair_envs.support.aliases import Flags, Ints, Records
from fair_envs.support.parameters import PositiveInt, checked
from fair_envs.wrappers.transform import Batch, Setting, Transform
from fair_envs.wrappers.wrapper import Wrapper

Only = Literal["all", "accepted"]


class LateFeedback(Transform):
    """The transform of `DelayedFeedback`, which describes the arguments."""

    def __init__(self, *, delay: int, only: Only = "all", rows: int | None = None) -> None:
        self.delay, self.only = checked("delay", delay, PositiveInt), checked("only", only, Only)
        self.rows = None if rows is None else checked("rows", rows, PositiveInt)

    def bind(self, setting: Setting) -> None:
        """Start without held-back labels."""
        spec, rules = setting.spec, setting.rules
        if rules.multi_agent:
            raise ValueError(f"env must have one decision-maker, {rules.name} has several agents")
        if spec.feedback not in ("full", "accepted"):
            raise ValueError(
                f"env must reveal feedback at once ('full' or 'accepted'), {rules.name} has {spec.feedback!r}"
            )
        held = setting.lanes.count, self.delay, spec.individuals
        self._who, self._what = (np.full(held, MISSING, np.int64) for _ in range(2))
        self._one_person, self._layout = spec.one_person, one_layout(facts_dtype(self.fair_spec(spec)))
        self._time = np.zeros(setting.lanes.count, np.int64)  # steps of the episode
        self._wanted = spec.favourable_action if self.only == "accepted" else MISSING

    def fair_spec(self, spec: FairSpec) -> FairSpec:
        """Return the spec with delayed feedback."""
        only_accepted, rows = spec.only_accepted or self.only == "accepted", self.rows or spec.individuals
        return replace(spec, feedback="delayed", only_accepted=only_accepted, delay=self.delay, late_rows=rows)

    def __call__(self, batch: Batch) -> Batch:
        """Hold back the revealed labels, and report those whose delay is over."""
        facts = batch.facts.astype(self._layout)
        hold(batch.first, batch.decided, self._wanted, self._time, self._who, self._what, readable(facts))
        added = {PREFIX + name: facts[name] for name in REPLACED}
        if self._one_person:
            added["fair_feedback"] = facts["feedback"][:, 0]
        return batch._replace(facts=facts, added=added)


REPLACED = ("feedback", "late_individual", "late_feedback", "late_count", "late_dropped")
"""The columns of the record that this wrapper replaces."""


@kernel
def hold(first: Flags, decided: Flags, wanted: int, time: Ints, who: Ints, what: Ints, facts: Records) -> None:
    """Store the labels of these decisions, and replace them by the labels of the decisions made ``delay`` steps ago."""
    for b in range(time.shape[0]):
        fact = facts[b]
        fact.late_individual[:] = fact.late_feedback[:] = MISSING
        fact.late_count = fact.late_dropped = 0
        if first[b]:
            time[b] = 0
            what[b] = MISSING
        if decided[b]:
            place = time[b] % who.shape[1]
            for m in range(who.shape[2]):
                if what[b, place, m] >= 0 and fact.late_count < fact.late_feedback.shape[0]:
                    fact.late_individual[fact.late_count] = who[b, place, m]
                    fact.late_feedback[fact.late_count] = what[b, place, m]
                    fact.late_count += 1
                elif what[b, place, m] >= 0:
                    fact.late_dropped += 1
                learned = fact.action[m] >= 0 if wanted == MISSING else fact.action[m] == wanted
                who[b, place, m] = fact.individual[m]
                what[b, place, m] = fact.feedback[m] if learned else MISSING
            time[b] += 1
        fact.feedback[:] = MISSING


class DelayedFeedback(Wrapper):
    """Delays labels (the correct decisions) by some steps: ``fair_late_*`` replaces ``fair_feedback``.

    The labels of a step's people arrive ``delay`` steps later, within the episode. Labels that are still held back when
    the episode ends never arrive. ``env.unwrapped.fair_spec`` reports ``feedback="delayed"``, ``delay`` and
    ``late_rows``. Put wrappers that keep a history of decisions above this one.

    Args:
        env: The environment, with any interface.
        delay: The number of steps, at least 1.
        only: ``"all"``: labels of all people arrive. ``"accepted"``: only labels of people whose decision was
            ``fair_spec.favourable_action``; the others never arrive.
        rows: How many labels can arrive in one step (K); by default, the number of individuals of a step. Labels beyond
            it are lost and counted in ``fair_late_dropped``.

    Raises:
        ValueError: An option is invalid, or the environment has several agents or does not reveal labels at once.
    """

    def __init__(self, env: Any, *, delay: int, only: Only = "all", rows: int | None = None) -> None:
        super().__init__(env, LateFeedback(delay=delay, only=only, rows=rows))
