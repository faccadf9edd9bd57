"""How often a greedy team captures the evader, by speed: a cliff where the pursuers are as fast as it is."""

from typing import NamedTuple

import numpy as np
import pytest

from fair_envs.core import Lanes
from fair_envs.envs.pursuit.rules import Pursuit

EPISODES = 500


class Outcome(NamedTuple):
    """What a team did in its episodes."""

    success: float
    steps: float  # to a capture, on average
    captors: list[int]  # how often each pursuer was one


def greedy(pursuer_speed: float, *, seed: int = 7) -> Outcome:
    """Let all pursuers head straight to the evader."""
    lanes = Lanes(Pursuit(pursuer_speed=pursuer_speed), EPISODES)
    lanes.seed(seed)
    seen = lanes.restart().observation
    playing, took, captors = np.ones(EPISODES, bool), np.full(EPISODES, np.nan), np.zeros(3, int)
    while playing.any():
        step = lanes.advance(seen[..., :2], mask=playing)
        caught = playing & step.terminated
        took[caught] = lanes.records["time"][caught]
        captors += step.facts["outcome"][caught].sum(axis=0).astype(int)
        playing &= ~(step.terminated | step.truncated)
        seen = step.observation
    success = float(np.isfinite(took).mean())
    return Outcome(success, float(np.nanmean(took)) if success else np.nan, captors.tolist())


@pytest.mark.parametrize(
    ("speed", "least", "steps"), [(1.2, 1.0, pytest.approx(55, rel=0.1)), (1.1, 1.0, pytest.approx(104, rel=0.1))]
)
def test_a_faster_greedy_team_always_captures(speed: float, least: float, steps: float) -> None:
    found = greedy(speed)
    assert found.success >= least and found.steps == steps


def test_a_slightly_faster_one_nearly_always_does() -> None:
    found = greedy(1.05)
    assert found.success >= 0.99 and found.steps == pytest.approx(201, rel=0.1)


@pytest.mark.parametrize("speed", [1.0, 0.9, 0.5])
def test_a_greedy_team_as_fast_as_the_evader_or_slower_never_captures(speed: float) -> None:
    assert greedy(speed).success == 0


def test_greedy_pursuers_capture_equally_often() -> None:
    captors = greedy(1.2).captors
    assert min(captors) > 0.8 * np.mean(captors)
