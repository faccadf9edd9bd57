"""What the pictures of FairAttention show; no test needs a screen."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.envs.attention import render
from fair_envs.envs.attention.rules import Attention
from fair_envs.envs.drawing import GROUND, PLAIN_BELOW, Stock
from tests.helpers import assert_same, begun, plain

pygame = pytest.importorskip("pygame")


def played(steps: int = 12) -> tuple[Any, Any]:
    """Return the renderer and the lane after some steps."""
    lanes = begun(Attention(), seed=3)
    for time in range(steps):
        lanes.advance(np.array([[[0, 0, 1, 2, 3, time % 4]]]))
    return lanes.rules.renderer(), lanes.records[0]


def drawn(figure: Any, size: int) -> Any:
    """Return a cell with the figure, shape (size, size, 3)."""
    tile = Stock(plain=size < PLAIN_BELOW).tile((figure,), size, GROUND)
    return pygame.surfarray.array3d(tile).swapaxes(0, 1).astype(float)


@pytest.mark.parametrize("size", [144, 32])
def test_a_location_shows_units_and_what_became_of_incidents(size: int) -> None:
    nothing = render.Location(0, render.COLOURS[0], 2, 0, 0, 0)
    changed = [
        nothing._replace(units=1),
        nothing._replace(found=1),
        nothing._replace(missed=1),
        nothing._replace(shade=5),
    ]
    pictures = [drawn(figure, size).mean(axis=2) for figure in (nothing, *changed)]  # in grey
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).max() > 20 or np.abs(one - other).mean() > 5


def test_the_map_shows_the_last_step_and_not_the_coming_incidents() -> None:
    renderer, lane = played()
    figures = [figure for _, (figure,) in renderer.figures(lane)]
    assert [figure.units for figure in figures] == lane["units"].tolist()
    assert [figure.found for figure in figures] == lane["found"].tolist()
    assert [figure.found + figure.missed for figure in figures] == lane["occurred"].tolist()
    before = renderer.frame(lane)
    lane["incidents"] += 5
    assert np.array_equal(renderer.frame(lane), before)


def test_the_frame_changes_with_the_episode() -> None:
    renderer, lane = played()
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert not np.array_equal(frame, played(11)[0].frame(played(11)[1]))
    assert np.array_equal(frame, renderer.frame(lane))


def test_the_chart_shows_the_rates_so_far() -> None:
    renderer, lane = played(100)
    (chart,) = (item for item in renderer.panel(lane) if isinstance(item, render.Chart))
    assert len(chart.rates) == lane["kept"] == 1 + 100 // 8
    assert chart.rates[0].tolist() == [8, 6, 4, 3, 1.5]
    renderer, lane = played(1000)
    (chart,) = (item for item in renderer.panel(lane) if isinstance(item, render.Chart))
    assert len(chart.rates) == chart.whole == 126


def test_the_text_tells_rates_units_and_incidents() -> None:
    renderer, lane = played()
    text = plain(renderer.text(lane))
    assert "FairAttention, step 12 of 1000" in text
    for k in range(5):
        (line,) = (line for line in text.splitlines() if line.startswith(f"location {k} "))
        rate, *counts = line.split()[2:]
        assert float(rate) == pytest.approx(lane["rates"][k], abs=0.005)
        found = lane["found"][k]
        last = [lane["units"][k], found, lane["occurred"][k] - found]
        assert [int(count) for count in counts] == [*last, lane["discovered"][k], lane["missed"][k]]


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_every_mode_draws_and_leaves_the_episode_as_it_was(mode: str) -> None:
    env: Any = gym.make("FairAttention-v0", render_mode=mode)
    env.reset(seed=0)
    env.step(np.zeros(6, np.int64))
    before = env.unwrapped.get_state()
    picture = env.render()
    assert {"rgb_array": np.ndarray, "ansi": str, "human": type(None)}[mode] is type(picture)
    assert_same(env.unwrapped.get_state(), before)
    env.close()


@pytest.mark.parametrize("locations", [2, 40, 1000])
def test_any_number_of_locations_fits_into_a_frame(locations: int) -> None:
    rules = Attention(locations=locations, initial_rates=2.0, increase_rates=0.1)
    lane = np.zeros(1, rules.dtype)[0]
    height, width, _ = rules.renderer().frame(lane).shape
    assert height <= 704 and width <= 1008
    assert ("more" in plain(rules.renderer().text(lane))) == (locations > 12)
