"""When the correct decision is revealed, on the ferry, whose passengers should board with a ticket."""

from typing import Any

import numpy as np
import pytest

from fair_envs.metrics.history import Full, History
from tests.ferry import BOARD, REFUSE, Env, Ferry
from tests.helpers import uncompiled


def crossing(actions: list[int], **parameters: Any) -> tuple[list[dict[str, Any]], list[int]]:
    """Play these actions; return the infos of the steps and the correct decisions."""
    env = Env(seats=100, **parameters)
    env.reset(seed=4)
    infos, correct = [], []
    for action in actions:
        correct.append(int(env.oracle()["feedback"][0, 0]))
        infos.append(env.step(action)[4])
    return infos, correct


def feedback(infos: list[dict[str, Any]]) -> list[int]:
    return [int(info["fair_feedback"]) for info in infos]


ACTIONS = [BOARD, REFUSE, BOARD, REFUSE, BOARD, BOARD, REFUSE, BOARD]


def test_full_feedback_comes_at_once_for_everybody() -> None:
    infos, correct = crossing(ACTIONS)
    assert feedback(infos) == correct
    assert set(correct) == {0, 1}


def test_no_feedback_is_missing() -> None:
    infos, _ = crossing(ACTIONS, feedback="none")
    assert feedback(infos) == [-1] * len(ACTIONS)
    assert all(info["fair_late_count"] == 0 for info in infos)


def test_feedback_on_the_accepted_tells_nothing_of_the_refused() -> None:
    infos, correct = crossing(ACTIONS, feedback="accepted")
    assert feedback(infos) == [truth if action == BOARD else -1 for truth, action in zip(correct, ACTIONS, strict=True)]


@pytest.mark.parametrize("delay", [1, 3])
def test_delayed_feedback_comes_so_many_steps_later(delay: int) -> None:
    infos, correct = crossing(ACTIONS, feedback="delayed", delay=delay)
    assert feedback(infos) == [-1] * len(ACTIONS)
    late = [(int(info["fair_late_individual"][0]), int(info["fair_late_feedback"][0])) for info in infos]
    assert late == [(-1, -1)] * delay + list(enumerate(correct))[: len(ACTIONS) - delay]
    assert [int(info["fair_late_count"]) for info in infos] == [0] * delay + [1] * (len(ACTIONS) - delay)


@uncompiled
def test_feedback_later_than_the_horizon_never_comes_and_takes_no_room() -> None:
    infos, _ = crossing(ACTIONS[:5], feedback="delayed", delay=1000, horizon=5)
    assert [int(info["fair_late_count"]) for info in infos] == [0] * 5
    assert Ferry(feedback="delayed", delay=1000, horizon=5).dtype["to_reveal"].shape == (5,)
    infos, correct = crossing(ACTIONS[:5], feedback="delayed", delay=4, horizon=5)
    assert [int(info["fair_late_feedback"][0]) for info in infos] == [-1] * 4 + correct[:1]


def test_a_history_fed_with_delayed_feedback_knows_what_one_fed_at_once_knew_before() -> None:
    histories = []
    plans: list[tuple[dict[str, Any], int]] = [({}, len(ACTIONS) - 3), ({"feedback": "delayed"}, len(ACTIONS))]
    for parameters, steps in plans:
        env = Env(seats=100, **parameters)
        history = History(Full(), env.fair_spec)
        history.add(env.reset(seed=4)[1])
        for action in ACTIONS[:steps]:
            history.add(env.step(action)[4])
        histories.append(history.columns()["feedback"][: len(ACTIONS) - 3])
    np.testing.assert_array_equal(histories[0], histories[1])
