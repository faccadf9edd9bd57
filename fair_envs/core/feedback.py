"""When a decision-maker receives labels (the decisions that would have been correct).

If a step decides about one person (`reveal`), the person of step t has the number t within the episode, and delayed
labels refer to this number. An environment's parameters then have the fields ``feedback`` (of `Kind`), ``delay`` and
``horizon``, and its lanes have `fields`. If a step decides about several people (`reveal_at_once`), the parameters have
``feedback`` (of `AtOnce`).
"""

from typing import Any, Literal, get_args

import numpy as np

from fair_envs.core.compilation import rule
from fair_envs.support.aliases import Facts, Lane

Kind = Literal["none", "full", "accepted", "delayed"]
"""Never; immediately; immediately, but only for people with the favourable decision; ``delay`` steps later."""

AtOnce = Literal["none", "full", "accepted"]
"""The kinds that are immediate or never, in the same order."""

FULL, ACCEPTED, DELAYED = (get_args(Kind).index(kind) for kind in ("full", "accepted", "delayed"))


def fields(params: Any) -> list[tuple[Any, ...]]:
    """Return the lane fields that hold labels not revealed yet, with room for as many steps as an episode needs."""
    return [("to_reveal", np.int8, (min(params.delay, params.horizon) if params.feedback == "delayed" else 1,))]


@rule
def reveal(lane: Lane, params: Any, facts: Facts, correct: int, favourable: int = 1) -> None:
    """Write the labels revealed in this step, whose decision is already in ``facts.action``.

    Args:
        lane: Contains `fields`.
        params: Contains ``feedback`` and ``delay``.
        facts: The step's record.
        correct: The label (correct decision) for the person of this step.
        favourable: The decision that people want, ``favourable_action`` of the `FairSpec`.
    """
    reveal_at_once(params, facts, 0, correct, favourable)
    if params.feedback == DELAYED:
        place = lane.time % lane.to_reveal.shape[0]
        if lane.time >= params.delay:
            facts.late_individual[0] = lane.time - params.delay
            facts.late_feedback[0] = lane.to_reveal[place]
            facts.late_count = 1
        lane.to_reveal[place] = correct


@rule
def reveal_at_once(params: Any, facts: Facts, person: int, correct: int, favourable: int = 1) -> None:
    """Write the label of one of several people if it is revealed now; the decision is already in ``facts.action``.

    Args:
        params: Contains ``feedback``.
        facts: The step's record.
        person: The person's index in it.
        correct: The label (correct decision) for this person.
        favourable: The decision that people want.
    """
    if params.feedback == FULL or (params.feedback == ACCEPTED and facts.action[person] == favourable):
        facts.feedback[person] = correct
