"""What the pictures of FairHiring show; no test needs a screen."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.envs.drawing import GROUND, PLAIN_BELOW, Stock
from fair_envs.envs.hiring import render
from fair_envs.envs.hiring.rules import GROUPS, HIRE, REJECT, Hiring
from fair_envs.support.aliases import Pixels
from tests.helpers import assert_same, begun, grey, plain, uncompiled

pygame = pytest.importorskip("pygame")


def played(steps: int = 12) -> tuple[Any, Any]:
    """Return the renderer and the lane after some steps in which every second applicant was hired."""
    lanes = begun(Hiring(team_size=12), seed=3)
    for time in range(steps):
        lanes.advance(np.array([[HIRE if time % 2 else REJECT]]))
    return lanes.rules.renderer(), lanes.records[0]


def drawn(figure: Any, size: int) -> Pixels:
    """Return a cell with the figure, shape (size, size, 3)."""
    tile = Stock(plain=size < PLAIN_BELOW).tile((figure,), size, GROUND)
    picture: Pixels = pygame.surfarray.array3d(tile).swapaxes(0, 1)
    return picture


@pytest.mark.parametrize("size", [68, 24, 8])
def test_groups_look_different_without_colour_too(size: int) -> None:
    figures = [*render.PEOPLE, render.Seat()]
    pictures = [grey(drawn(figure, size)) for figure in figures]
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).mean() > 5


@uncompiled
def test_the_frame_shows_the_team_and_changes_with_it() -> None:
    renderer, lane = played()
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert not np.array_equal(frame, played(11)[0].frame(played(11)[1]))
    assert np.array_equal(frame, renderer.frame(lane))


@uncompiled
def test_everybody_in_the_team_has_a_seat_and_the_other_seats_are_empty() -> None:
    renderer, lane = played()
    figures = dict(renderer.figures(lane))
    assert len(figures) == 12
    seated = [figure for (figure,) in figures.values() if isinstance(figure, render.Person)]
    assert seated == [render.person_of(row) for row in lane["team"][: lane["employees"]].tolist()]
    assert len(seated) == lane["employees"] == 6


@uncompiled
def test_the_text_says_who_is_at_the_door_and_how_each_group_fared() -> None:
    renderer, lane = played()
    text = plain(renderer.text(lane))
    assert "FairHiring, step 12 of 1000" in text
    assert f"team: {lane['employees']} of 12, {lane['departures']} have left" in text
    for line in render.words_of(lane):
        assert line in text
    for group, tally in zip(GROUPS, lane["tally"], strict=True):
        (line,) = (line for line in text.splitlines() if line[2:].startswith(group + " "))
        numbers = [tally.sum(), tally[1].sum(), tally[:, HIRE].sum(), tally[1, REJECT]]
        assert [int(word) for word in line.split()[-4:]] == numbers


@uncompiled
def test_the_words_describe_the_applicant() -> None:
    _, lane = played(0)
    lane["applicant"] = [41, 1, 1, 0, 1, 1, 20, 1, 0, 0, 1]
    lane["qualified"], lane["goodness"] = 1, 0.625
    assert render.words_of(lane) == [
        "foreign woman, 41",
        "married",
        "a degree",
        "20 years of experience",
        "Dutch, German",
        "qualified (0.62)",
    ]


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_every_mode_draws_and_leaves_the_episode_as_it_was(mode: str) -> None:
    env: Any = gym.make("FairHiring-v0", render_mode=mode)
    env.reset(seed=0)
    env.step(HIRE)
    before = env.unwrapped.get_state()
    picture = env.render()
    assert {"rgb_array": np.ndarray, "ansi": str, "human": type(None)}[mode] is type(picture)
    assert_same(env.unwrapped.get_state(), before)
    env.close()


@pytest.mark.parametrize("team_size", [1, 3, 400])
def test_companies_of_any_size_fit(team_size: int) -> None:
    rules = Hiring(team_size=team_size)
    height, width, _ = rules.renderer().frame(np.zeros(1, rules.dtype)[0]).shape
    assert height <= 704 and width <= 1008
