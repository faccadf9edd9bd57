"""What the pictures of FairLending show; no test needs a screen."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core import Lanes
from fair_envs.envs.drawing import BLUE, PAPER, WHITE, Stock, mixed
from fair_envs.envs.lending import render
from fair_envs.envs.lending.params import ADVANTAGED, DISADVANTAGED
from fair_envs.envs.lending.rules import ACCEPT, Lending
from tests.helpers import assert_same, begun, grey, plain, uncompiled

pygame = pytest.importorskip("pygame")


def played(steps: int = 40, **parameters: Any) -> tuple[render.LendingRenderer, Any]:
    """Return the renderer and the lane after some steps in which scores from 3 on were accepted."""
    lanes = begun(Lending(**parameters), seed=3)
    for _ in range(steps):
        lanes.advance((lanes.records["score"] >= 3).astype(np.int64)[:, np.newaxis])
    return lanes.rules.renderer(), lanes.records[0]


def has(frame: NDArray[np.uint8], colour: Any) -> int:
    """Return how many pixels have exactly this colour."""
    return int((frame == colour).all(axis=-1).sum())


@pytest.mark.parametrize("size", [render.PORTRAIT, render.STANDING])
def test_groups_look_different_without_colour_too(size: int) -> None:
    one, other = (
        pygame.surfarray.array3d(Stock(plain=False).tile((render.Person(group),), size, PAPER)) for group in range(2)
    )
    assert np.abs(grey(one) - grey(other)).mean() > 5


def test_the_frame_changes_with_the_bank_and_fits_video_codecs() -> None:
    renderer, lane = played()
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert np.array_equal(frame, renderer.frame(lane))
    assert not np.array_equal(frame, played(41)[0].frame(played(41)[1]))


@pytest.mark.parametrize("group", [ADVANTAGED, DISADVANTAGED])
def test_the_applicant_stands_in_the_own_group(group: int) -> None:
    renderer, lane = played(0)
    lane["group"] = group
    rows = (slice(92, 300), slice(305, 500))
    standing = [has(renderer.frame(lane)[rows[g], :560], render.COLOURS[g]) > 50 for g in range(2)]
    assert standing == [group == ADVANTAGED, group == DISADVANTAGED]


def test_the_facts_are_those_of_the_lane() -> None:
    renderer, lane = played(60)
    for own in renderer.groups(lane):
        tally = lane["tally"][own.group]
        assert (own.asked, own.accepted) == (tally.sum(), tally[:, ACCEPT].sum())
        assert (own.would_repay, own.served) == (tally[1].sum(), tally[1, ACCEPT])  # all are in the window
        np.testing.assert_array_equal(own.now, lane["score_shares"][own.group])
        assert own.means[0] == pytest.approx((3.6, 2.6)[own.group])


@uncompiled
def test_the_window_of_the_picture_is_that_of_the_bank() -> None:
    renderer, lane = played(60, window=11)
    assert sum(own.would_repay for own in renderer.groups(lane)) <= 11 < lane["tally"][:, 1].sum()


def test_the_text_says_who_asks_how_the_groups_fare_and_the_gaps() -> None:
    renderer, lane = played()
    text = plain(renderer.text(lane))
    assert "FairLending, step 40 of 10000" in text
    assert ", ".join(renderer.applicant(lane)) in text
    for own in renderer.groups(lane):
        assert f"{own.accepted} of {own.asked} accepted" in text
    for gap in renderer.gaps(renderer.groups(lane)):
        assert gap in text


def test_gaps_are_undefined_or_those_of_the_start_before_the_first_decision() -> None:
    renderer, lane = played(0)
    assert renderer.gaps(renderer.groups(lane)) == [
        "gap in loans to those who would repay: -",
        "distance between the groups' scores: 1.00",
    ]


def test_the_words_describe_the_applicant() -> None:
    renderer, lane = played(0)
    lane["group"], lane["score"], lane["repays"] = DISADVANTAGED, 2, 0
    assert renderer.applicant(lane) == ["disadvantaged", "score 2", "repays with probability 45%", "(will not repay)"]


def test_in_a_flipped_world_the_first_scores_are_exchanged_too() -> None:
    lanes = Lanes(Lending(), 1)
    lanes.seed(0)
    lanes.restart()
    lanes.rules.flip(lanes.records, np.ones((1, 1), bool))
    for own in lanes.rules.renderer().groups(lanes.records[0]):
        assert own.first == own.now


@pytest.mark.parametrize(("steps", "horizon"), [(0, 50), (1, 50), (50, 50), (150, 400), (3, 10_000)])
def test_the_curve_begins_with_the_first_cash_and_ends_with_the_last(steps: int, horizon: int) -> None:
    renderer, lane = played(steps, horizon=horizon)
    curve = renderer.curve(lane)
    assert curve[0] == (0, 10_000) and curve[-1] == (steps / horizon, lane["cash"])
    assert [gone for gone, _ in curve] == sorted(gone for gone, _ in curve)
    assert all(abs(cash - 10_000) <= steps for _, cash in curve)


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_every_mode_draws_and_leaves_the_episode_as_it_was(mode: str) -> None:
    env: Any = gym.make("FairLending-v0", render_mode=mode)
    env.reset(seed=0)
    env.step(ACCEPT)
    before = env.unwrapped.get_state()
    picture = env.render()
    assert {"rgb_array": np.ndarray, "ansi": str, "human": type(None)}[mode] is type(picture)
    assert_same(env.unwrapped.get_state(), before)
    env.close()


@pytest.mark.parametrize("scores", [2, 13, 200])
def test_any_number_of_scores_can_be_drawn(scores: int) -> None:
    rules = Lending(distributions=np.ones((2, scores)).tolist(), repayment=np.linspace(0, 1, scores).tolist())
    lane = np.zeros(1, rules.dtype)[0]
    lane["score_shares"] = 1 / scores
    frame = rules.renderer().frame(lane)
    assert has(frame, mixed(BLUE, WHITE, 0.25)) > 1000
