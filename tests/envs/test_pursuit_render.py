"""What the pictures of FairPursuit show; no test needs a screen."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.envs.drawing import GROUND, LARGEST_FRAME, MARGIN, Stock
from fair_envs.envs.pursuit import render
from fair_envs.envs.pursuit.rules import TRAIL, Pursuit
from fair_envs.support.aliases import Flags, Floats, Ints
from tests.helpers import assert_same, begun, plain, uncompiled

pygame = pytest.importorskip("pygame")

FASTEST = render.Pursuer(0, 0, render.SHARES, 0)


def played(steps: int = 5, **given: Any) -> tuple[Any, Any]:
    """Return the renderer and the lane after some steps to the right."""
    lanes = begun(Pursuit(**given), seed=3)
    for _ in range(steps):
        lanes.advance(np.tile(np.array([1, 0], np.float32), (1, lanes.rules.params.pursuers, 1)))
    return lanes.rules.renderer(), lanes.records[0]


def placed(places: Any, **given: Any) -> tuple[Any, Any]:
    """Return the renderer and the lane with agents who have just begun there; the evader is the last."""
    renderer, lane = played(0, pursuers=len(places) - 1, **given)
    lane["position"] = places
    lane["trail"][0] = places
    return renderer, lane


def moved(lane: Any, places: Any) -> None:
    """Let everybody be there a step later."""
    lane["position"] = places
    lane["trail"][lane["newest"]] = places
    lane["newest"] += 1
    lane["time"] += 1


def drawn(figure: Any, size: int = 36) -> Floats:
    """Return a figure on the map, shape (size, size, 3)."""
    tile = Stock(plain=False).tile((figure,), size, GROUND)
    return pygame.surfarray.array3d(tile).swapaxes(0, 1).astype(float)  # type: ignore[no-any-return]


def map_of(renderer: Any, lane: Any) -> Ints:
    """Return the map of a frame, shape (rows, columns, 3)."""
    inside = slice(MARGIN, MARGIN + render.MAP)
    return renderer.frame(lane)[inside, inside].astype(np.int64)  # type: ignore[no-any-return]


def changed(renderer: Any, lane: Any, places: Any) -> Flags:
    """Return where the map with the trail of a step differs from the one without, shape (rows, columns)."""
    moved(lane, places)
    after = map_of(renderer, lane)
    lane["trail"][:] = lane["position"]
    return np.asarray(np.any(map_of(renderer, lane) != after, axis=2))


# -------------------------------------------------------------------------------------------------- figures


def test_figures_tell_speed_direction_captures_and_who_is_caught() -> None:
    figures: list[Any] = [
        FASTEST,
        FASTEST._replace(turn=12),
        FASTEST._replace(share=2),
        FASTEST._replace(bars=1),
        FASTEST._replace(bars=2),
        FASTEST._replace(captor=True),
        render.Evader(0),
        render.Evader(12),
        render.Evader(0, free=False),
    ]
    pictures = [drawn(figure).mean(axis=2) for figure in figures]  # in grey
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).max() > 50


@uncompiled
def test_the_second_axis_leads_upwards() -> None:
    assert render.ahead(render.TURNS // 4, 0.4, 0) == pytest.approx((0.5, 0.1))
    assert render.ahead(0, 0.4, 0.2) == pytest.approx((0.9, 0.3))
    renderer, lane = placed([[1, 5], [3, 3]])
    row, column = np.argwhere(np.all(map_of(renderer, lane) == render.COLOURS[0], axis=2)).mean(axis=0)
    assert (row, column) == pytest.approx((render.MAP / 6, render.MAP / 6), abs=3)


@uncompiled
def test_a_slower_pursuer_has_bars_and_a_shorter_nose() -> None:
    renderer, lane = played(pursuers=4, speeds=[1, 0.5, 0.25, 0.125])
    pursuers = renderer.figures(lane)[:4]
    assert [figure.bars for figure in pursuers] == [0, 1, 2, 2]
    assert [figure.share for figure in pursuers] == [8, 4, 2, 1]
    equal, other = played(pursuers=4)
    assert {figure.bars for figure in equal.figures(other)[:4]} == {0}
    lane["speed"] = 0
    assert [figure.share for figure in renderer.figures(lane)[:4]] == [0, 0, 0, 0]


@uncompiled
def test_a_captured_evader_is_hollow_and_has_no_circle() -> None:
    renderer, lane = placed([[1, 1], [3, 3]])
    before = map_of(renderer, lane)
    lane["free"], lane["caught"], lane["captures"] = 0, 1, 1
    after = map_of(renderer, lane)
    assert not renderer.figures(lane)[1].free and renderer.figures(lane)[0].captor
    middle = render.MAP // 2
    assert before[middle, middle].max() < 60 and after[middle, middle].min() == 255
    radius = round(render.MAP * 0.125 / 6)
    ring = slice(middle - radius - 1, middle - radius + 2), middle
    assert before[ring].min() < after[ring].min() - 50


@uncompiled
def test_the_halo_of_a_captor_does_not_hide_the_evader() -> None:
    renderer, lane = placed([[2.88, 3], [3, 3]])
    lane["free"], lane["caught"], lane["facing"][0] = 0, 1, (-1, 0)
    picture, middle = map_of(renderer, lane), render.MAP // 2
    assert picture[middle, middle + 2 : middle + 7].min() == 255
    assert np.all(picture == render.HALO, axis=2).sum() > 100


# ---------------------------------------------------------------------------------------------------- seams


@pytest.mark.parametrize("axis", [0, 1])
@uncompiled
def test_who_is_near_an_edge_is_seen_on_both_sides(axis: int) -> None:
    place = [3.0, 3.0]
    place[axis] = 0.01
    renderer, lane = placed([place, [2, 2]])
    seen = np.argwhere(np.all(map_of(renderer, lane) == render.COLOURS[0], axis=2))
    along = seen[:, 1 - axis]
    assert (along < 15).any() and (along > render.MAP - 15).any()
    assert not ((along > 15) & (along < render.MAP - 15)).any()


def test_who_is_in_a_corner_is_seen_in_all_four() -> None:
    assert len(list(render.images((0.01, 5.99), 0.1, 6.0))) == 4
    assert list(render.images((3.0, 3.0), 0.1, 6.0)) == [(3.0, 3.0)]


@pytest.mark.parametrize("axis", [0, 1])
@uncompiled
def test_a_trail_across_the_seam_does_not_cross_the_map(axis: int) -> None:
    start, end = [3.0, 3.0], [3.0, 3.0]
    start[axis], end[axis] = 0.6, 5.4
    renderer, lane = placed([start, [2, 2]])
    differs = changed(renderer, lane, [end, [2, 2]])
    along = np.argwhere(differs)[:, 1 - axis]
    tenth = render.MAP // 10
    assert (along < tenth).any() and (along > render.MAP - tenth).any()
    assert not ((along > tenth + 6) & (along < render.MAP - tenth - 6)).any()


@uncompiled
def test_a_trail_inside_joins_its_ends() -> None:
    renderer, lane = placed([[1, 3], [2, 5]])
    differs = changed(renderer, lane, [[3, 3], [2, 5]])
    rows, columns = np.nonzero(differs)
    assert np.abs(rows - render.MAP / 2).max() < 7
    assert columns.min() == pytest.approx(render.MAP / 6, abs=4) and len(set(columns.tolist())) > render.MAP / 4


@uncompiled
def test_the_published_physics_draw_no_circle_across_the_seam() -> None:
    pictures = [map_of(*placed([[1, 1], [0.1, 3]], legacy_physics=legacy)) for legacy in (False, True)]
    differs = np.nonzero(np.any(pictures[0] != pictures[1], axis=2))[1]
    assert len(differs) and differs.min() > render.MAP - 20


# --------------------------------------------------------------------------------------------------- trails


def test_a_trail_begins_where_the_episode_began() -> None:
    _, lane = played(0)
    assert np.allclose(render.past(lane), lane["position"][None])
    _, lane = played(5)
    assert render.past(lane).shape == (6, 4, 2)
    assert np.all(render.past(lane) > 0)


def test_a_trail_keeps_its_order_when_the_memory_is_full() -> None:
    _, lane = played(TRAIL + 9, pursuer_speed=0.01, evader_speed=0.0)
    points = render.past(lane)[:, 0, 0]
    assert len(points) == TRAIL and np.all(np.diff(points) > 0)
    assert points[-1] == pytest.approx(lane["position"][0, 0], rel=1e-6)


@uncompiled
def test_trails_become_thin_with_age() -> None:
    renderer, lane = played(40, pursuers=1, pursuer_speed=0.5, evader_speed=0.0)
    widths = [renderer._trail(0, age)[1] for age in (0.01, 0.5, 1.0)]
    assert widths[0] > widths[1] > widths[2] > 0
    assert renderer._trail(1, 0.01)[0] != renderer._trail(0, 0.01)[0]
    before = map_of(renderer, lane)
    lane["trail"] = lane["position"]
    assert not np.array_equal(before, map_of(renderer, lane))


@uncompiled
def test_steps_that_may_lead_either_way_round_leave_no_trail() -> None:
    renderer, lane = placed([[0.2, 0.2], [0.5, 0.5]], side=1.0, pursuer_speed=5.0, evader_speed=0.0)
    assert not changed(renderer, lane, [[0.5, 0.2], [0.5, 0.5]]).any()


# ---------------------------------------------------------------------------------------------- territories


@uncompiled
def test_a_place_belongs_to_who_could_be_there_first_also_across_the_seam() -> None:
    renderer, lane = placed([[0.5, 3], [3, 3]])
    row = render.first_there(lane, renderer._params, 6)[:, 3]  # the middles are 0.5, 1.5, ..., 5.5
    assert row.tolist() == [0, 0, 1, 1, 1, 0]
    lane["speed"] = 0.2
    assert render.first_there(lane, renderer._params, 6)[:, 3].tolist() == [0, 1, 1, 1, 1, 1]
    lane["free"] = 0
    assert not render.first_there(lane, renderer._params, 6).any()


@uncompiled
def test_where_an_evader_is_first_the_map_is_white() -> None:
    renderer, lane = placed([[1, 1], [3, 5]])
    picture, unit = map_of(renderer, lane), render.MAP // 6
    assert picture[unit // 2, 4 * unit].tolist() == [255, 255, 255]  # at (4, 5.5)
    assert picture[-unit // 2, 2 * unit].tolist() != [255, 255, 255]
    lane["free"] = 0
    assert picture[unit // 2, 4 * unit].tolist() != map_of(renderer, lane)[unit // 2, 4 * unit].tolist()


# ------------------------------------------------------------------------------------------------------ labels


@uncompiled
def test_labels_tell_captures_and_speeds_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer, lane = played(1, pursuers=3, speeds=[1, 0.5, 0.5])
    written: list[str] = []
    draw = renderer._stock.lines.draw

    def watched(text: str, **look: Any) -> Any:
        written.append(text)
        return draw(text, **look)

    monkeypatch.setattr(renderer._stock.lines, "draw", watched)
    lane["caught"] = [0, 0, 1]
    renderer.frame(lane)
    assert [written.count(text) for text in ("fast", "slow", "captured!")] == [1, 1, 1]
    written.clear()
    lane["speed"], lane["caught"] = 1, 0
    renderer.frame(lane)
    assert {"fast", "slow", "captured!"}.isdisjoint(written)


# --------------------------------------------------------------------------------------------------- panels


def nearest_free(renderer: Any, lane: Any) -> list[float]:
    """Return what the panel says of the pursuers' distances to the nearest free evader."""
    return [record.distance for record in renderer._records(lane)]


@uncompiled
def test_the_distance_is_to_the_nearest_free_evader_on_the_torus() -> None:
    renderer, lane = played(0, pursuers=2, evaders=2)
    lane["position"] = [[0.5, 1], [3, 3], [5.5, 1], [3, 4]]
    assert nearest_free(renderer, lane) == pytest.approx([1, 1])
    lane["free"] = 1, 0
    assert nearest_free(renderer, lane) == pytest.approx([1, np.hypot(2.5, 2)])
    lane["free"] = 0
    assert np.isnan(nearest_free(renderer, lane)).all()


@uncompiled
def test_the_text_tells_speeds_distances_and_captures() -> None:
    renderer, lane = played(12, pursuers=3, evaders=2, speeds=[1, 0.5, 0.5])
    lane["captures"], lane["caught"], lane["free"] = [1, 0, 1], [1, 0, 0], [1, 0]
    text = plain(renderer.text(lane))
    assert "FairPursuit, step 12 of 500" in text
    assert "free evaders: 1 of 2" in text and "capture by pursuer 0\n" in text
    lane["caught"] = [1, 0, 1]
    assert "capture by pursuers 0, 2\n" in plain(renderer.text(lane))
    lane["caught"] = [1, 0, 0]
    distances = nearest_free(renderer, lane)
    for k in range(3):
        (line,) = (line for line in text.splitlines() if line.startswith(f"pursuer {k} "))
        speed, distance, *counts = map(float, line.split()[2:])
        assert [speed, distance] == pytest.approx([lane["speed"][k], distances[k]], abs=0.005)
        assert counts == [lane["captures"][k], lane["caught"][k]]


@uncompiled
def test_the_text_shows_where_everybody_is() -> None:
    renderer, lane = placed([[0.1, 0.1], [5.9, 0.1], [0.1, 5.9]])
    rows = [line for line in plain(renderer.text(lane)).splitlines() if line.startswith("|")]
    assert len(rows) == render.COLUMNS and {len(row) for row in rows} == {2 * render.COLUMNS + 2}
    assert rows[-1].startswith("|0 ") and rows[-1].endswith("1 |") and rows[0].startswith("|E ")
    lane["free"] = 0
    assert "|e " in plain(renderer.text(lane))
    lane["position"][0] = lane["position"][2]
    assert "|0 " in plain(renderer.text(lane)).splitlines()[2]


def test_captures_and_captors_are_in_the_panel() -> None:
    renderer, lane = played()
    before = renderer.frame(lane)[:, MARGIN + render.MAP + MARGIN :]
    lane["captures"][1] = 1
    after = renderer.frame(lane)[:, MARGIN + render.MAP + MARGIN :]
    count = [int(np.all(panel == render.COLOURS[1], axis=2).sum()) for panel in (before, after)]
    assert count[1] > count[0] + 500
    (status,) = (item for item in renderer.panel(lane) if isinstance(item, render.Status))
    assert status.captors == ()


# --------------------------------------------------------------------------------------------------- frames


@uncompiled
@pytest.mark.parametrize(
    "given",
    [
        {"pursuers": 1},
        {"pursuers": 7, "evaders": 3, "side": 1.0, "start_distance": 0.1, "legacy_physics": True},
        {"pursuers": 100, "evaders": 100, "side": 40.0, "blind": True},
        {"side": 0.1, "start_distance": 0.0},
        {"side": 1e6, "pursuer_speed": 0.0, "evader_speed": 0.0},
        {"pursuer_radius": 1e9},
        {"pursuer_radius": 0.0, "evader_radius": 0.0},
    ],
)
def test_any_world_fits_into_a_frame(given: dict[str, Any]) -> None:
    renderer, lane = played(1, **given)
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.flags.c_contiguous and frame.shape[2] == 3
    assert frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert frame.shape[1] <= LARGEST_FRAME[0] and frame.shape[0] <= LARGEST_FRAME[1]
    assert ("more" in plain(renderer.text(lane))) == (len(lane["speed"]) > render.MOST_LISTED)


def test_the_frame_changes_with_the_episode_and_with_nothing_else() -> None:
    renderer, lane = played(5)
    frame = renderer.frame(lane)
    assert np.array_equal(frame, renderer.frame(lane))
    assert np.array_equal(frame, played(5)[0].frame(lane))
    other, later = played(6)
    assert not np.array_equal(frame, other.frame(later))
    frame[:] = 0
    assert renderer.frame(lane).any()


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_every_mode_draws_and_leaves_the_episode_as_it_was(mode: str) -> None:
    env: Any = gym.make("FairPursuit-v0", render_mode=mode)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    before = env.unwrapped.get_state()
    picture = env.render()
    assert {"rgb_array": np.ndarray, "ansi": str, "human": type(None)}[mode] is type(picture)
    assert_same(env.unwrapped.get_state(), before)
    env.close()
