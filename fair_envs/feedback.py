"""When a decision-maker learns which decision was correct.

Where a step decides on one person (`reveal`), the person of step t has the number t within the episode, which late
feedback is told by. An environment's parameters have the fields ``feedback`` (of `Kind`), ``delay`` and ``horizon``;
its lanes have `fields`. Where a step decides on several people (`reveal_at_once`), ``feedback`` (of `AtOnce`) does.
"""

from typing import Any, Literal, get_args

import numpy as np

from fair_envs.aliases import Facts, Lane
from fair_envs.compilation import rule

Kind = Literal["none", "full", "accepted", "delayed"]
"""Never; at once; at once, but only about those who were decided on favourably; ``delay`` steps later."""

AtOnce = Literal["none", "full", "accepted"]
"""The kinds that come at once or never, in the same order."""

FULL, ACCEPTED, DELAYED = (get_args(Kind).index(kind) for kind in ("full", "accepted", "delayed"))


def fields(params: Any) -> list[tuple[Any, ...]]:
    """Return the fields of a lane that hold what is not revealed yet, of as many steps as an episode can use."""
    return [("to_reveal", np.int8, (min(params.delay, params.horizon) if params.feedback == "delayed" else 1,))]


@rule
def reveal(lane: Lane, params: Any, facts: Facts, correct: int, favourable: int = 1) -> None:
    """Write what is learnt in this step, whose decision is in ``facts.action`` already.

    Args:
        lane: Holds `fields`.
        params: With ``feedback`` and ``delay``.
        facts: The step's record.
        correct: The correct decision for the person of this step.
        favourable: The decision that people want, ``favourable_action`` of the static facts.
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
    """Write what is learnt at once about one of several people, whose decision is in ``facts.action`` already.

    Args:
        params: With ``feedback``.
        facts: The step's record.
        person: Their place in it.
        correct: The correct decision for them.
        favourable: The decision that people want.
    """
    if params.feedback == FULL or (params.feedback == ACCEPTED and facts.action[person] == favourable):
        facts.feedback[person] = correct
