"""What the pictures of FairAttention show; no test needs a screen."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.envs.attention import render
from fair_envs.envs.attention.rules import Attention
from fair_envs.envs.drawing import PAPER, Stock
from tests.helpers import assert_same, begun, plain

pygame = pytest.importorskip("pygame")


def played(steps: int = 12) -> tuple[Any, Any]:
    """Return the renderer and the lane after some steps."""
    lanes = begun(Attention(), seed=3)
    for time in range(steps):
        lanes.advance(np.array([[[0, 0, 1, 2, 3, time % 4]]]))
    return lanes.rules.renderer(), lanes.records[0]


def drawn(figure: Any) -> Any:
    """Return a sign as it is drawn in a row, shape (size, size, 3)."""
    tile = Stock(plain=False).tile((figure,), render.SIGN, PAPER)
    return pygame.surfarray.array3d(tile).swapaxes(0, 1).astype(float)


def table_of(renderer: Any, lane: Any) -> render.Table:
    """Return the table of a picture."""
    (table,) = (item for item in renderer.panel(lane) if isinstance(item, render.Table))
    return table


class Written:
    """A sheet that remembers what is drawn on it."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.icons: list[Any] = []

    def write(self, text: str, x: int, y: int, **look: Any) -> None:
        """Keep the text."""
        self.words.append(text)

    def icon(self, figure: Any, x: int, y: int, **look: Any) -> None:
        """Keep the sign."""
        self.icons.append(figure)

    def bar(self, *area: Any) -> None:
        """Draw nothing."""


def signs_of(locations: int, **last: int) -> tuple[list[int], set[str]]:
    """Return the numbers of units, discovered and missed incidents in a row, and what is written beside them."""
    rules = Attention(locations=locations, initial_rates=2.0, increase_rates=0.1)
    lane, sheet = np.zeros(1, rules.dtype)[0], Written()
    for name, value in last.items():
        lane[name][0] = value
    table = table_of(rules.renderer(), lane)
    table._paint(sheet, 0, table.row // 2, table.records[0])  # type: ignore[arg-type]
    signs = render.Unit(), render.Incident(True), render.Incident(False)
    return [sheet.icons.count(sign) for sign in signs], set(sheet.words) - {"location 0", "-"}


def test_signs_differ_in_grey() -> None:
    signs = [render.Unit(), render.Incident(True), render.Incident(False), render.Trend(True), render.Trend(False)]
    pictures = [drawn(sign).mean(axis=2) for sign in signs]
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).max() > 50


def test_the_table_shows_the_last_step_and_not_the_coming_incidents() -> None:
    renderer, lane = played()
    records = table_of(renderer, lane).records
    assert [own.units for own in records] == lane["units"].tolist()
    assert [own.found for own in records] == lane["found"].tolist()
    assert [own.occurred for own in records] == lane["occurred"].tolist()
    before = renderer.frame(lane)
    lane["incidents"] += 5
    assert np.array_equal(renderer.frame(lane), before)


@pytest.mark.parametrize(("locations", "units", "missed", "more"), [(5, 4, 5, "+31"), (12, 2, 0, "+36")])
def test_a_row_has_a_sign_for_each_unit_and_incident_or_says_how_many_more(
    locations: int, units: int, missed: int, more: str
) -> None:
    assert signs_of(locations, units=2, found=2, occurred=3) == ([2, 2, 1], {"2", "2 of 3"})
    assert signs_of(locations, units=0, found=0, occurred=0) == ([0, 0, 0], {"0", "none"})
    counts, words = signs_of(locations, units=4, found=4, occurred=40)
    assert counts == [units, 4, missed]
    assert {"4", "4 of 40", more} <= words
    assert signs_of(locations, units=400, found=400, occurred=9999) == ([0, 0, 0], {"400", "400 of 9999"})


def test_rates_fall_where_units_are_and_rise_elsewhere() -> None:
    renderer, lane = played()
    lane["units"], lane["rates"] = [2, 0, 0, 1, 0], [1, 1, 1, 0, 1]
    changes = [own.change for own in table_of(renderer, lane).records]
    assert changes == pytest.approx([-0.2, 0.26, 0.4, 0, 0.3])
    renderer, lane = played(0)
    assert {own.change for own in table_of(renderer, lane).records} == {0}


def test_the_frame_changes_with_the_episode() -> None:
    renderer, lane = played()
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert not np.array_equal(frame, played(11)[0].frame(played(11)[1]))
    assert np.array_equal(frame, renderer.frame(lane))


def test_the_curves_show_the_rates_so_far() -> None:
    renderer, lane = played(100)
    table = table_of(renderer, lane)
    assert [own.past_rates[0] for own in table.records] == [8, 6, 4, 3, 1.5]
    assert {len(own.past_rates) for own in table.records} == {lane["kept"]} == {1 + 100 // 8}
    renderer, lane = played(1000)
    table = table_of(renderer, lane)
    assert {len(own.past_rates) for own in table.records} == {table.whole} == {126}


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


def test_locations_without_a_row_are_summed() -> None:
    rules = Attention(locations=15, initial_rates=2.0, increase_rates=0.1)
    lane = np.zeros(1, rules.dtype)[0]
    lane["rates"], lane["units"], lane["occurred"] = np.arange(15), 1, 2
    *listed, rest = table_of(rules.renderer(), lane).records
    assert len(listed) == render.MOST_LISTED
    assert (rest.name, rest.rate, rest.units, rest.occurred) == ("3 more", 13, 3, 6)
