"""What the pictures of FairTraffic show; most tests set a scene by hand, so that nothing is compiled for it."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.envs.drawing import BLUE, GREEN, GROUND, LARGEST_FRAME, MARGIN, ORANGE, PURPLE, VERMILION, Stock
from fair_envs.envs.traffic import Env, render
from fair_envs.envs.traffic.city import EAST, NORTH, SOUTH, WEST, City
from fair_envs.envs.traffic.params import TrafficParams
from fair_envs.envs.traffic.rules import Traffic
from fair_envs.support.aliases import Floats, Ints
from tests.helpers import assert_same, plain

pygame = pytest.importorskip("pygame")

A1, B1, C1, A2, B2, C2 = range(6)
TOWN = City(3, 2)
PIXELS = 32  # of a cell in that town; a crossroads has 128, the next one begins 256 further


class Driver(NamedTuple):
    """A car of a scene: where it is, and what it is."""

    start: int = A1  # a crossroads
    heading: int = EAST
    at: int = 0
    side: int = 0
    human: int = 0
    fast: int = 0
    safety: int = 0


def scene(*drivers: Driver, **given: Any) -> tuple[Any, Any]:
    """Return the renderer and the lane with these cars in a town of three columns and two rows, lights all red."""
    town = {"columns": 3, "rows": 2, "street_length": 4, "roadworks_share": 0.0, "cars": max(1, len(drivers))}
    rules = Traffic(**{**town, **given})
    lane = np.zeros(1, rules.dtype)[0]
    lane["arrived"][len(drivers) :] = 1
    for k, driver in enumerate(drivers):
        lane["street"][k] = 4 * driver.start + driver.heading
        for name in ("at", "side", "human", "fast", "safety"):
            lane[name][k] = getattr(driver, name)
    return rules.renderer(), lane


def map_of(renderer: Any, lane: Any) -> Ints:
    """Return the map of a frame, shape (rows, columns, 3)."""
    width, height = renderer.plan.size
    return renderer.frame(lane)[MARGIN : MARGIN + height, MARGIN : MARGIN + width].astype(np.int64)  # type: ignore[no-any-return]


def panel_of(renderer: Any, lane: Any) -> Ints:
    """Return the panel of a frame, shape (rows, columns, 3)."""
    return renderer.frame(lane)[:, MARGIN + renderer.plan.size[0] + MARGIN // 2 :].astype(np.int64)  # type: ignore[no-any-return]


def changed(one: Ints, other: Ints) -> tuple[slice, slice]:
    """Return the smallest rectangle, rows and columns, outside of which two pictures are the same."""
    rows, columns = np.nonzero(np.any(one != other, axis=2))
    return slice(int(rows.min()), int(rows.max()) + 1), slice(int(columns.min()), int(columns.max()) + 1)


def count(picture: Ints, colour: tuple[int, int, int]) -> int:
    """Return how many pixels have exactly that colour."""
    return int(np.all(picture == colour, axis=2).sum())


def colours(picture: NDArray[Any]) -> set[tuple[int, ...]]:
    """Return all colours in a picture."""
    packed = np.unique(picture @ np.array([1 << 16, 1 << 8, 1]))
    return set(zip((packed >> 16).tolist(), (packed >> 8 & 255).tolist(), (packed & 255).tolist(), strict=True))


def drawn(figure: Any, size: int) -> Floats:
    """Return a figure on a road, in grey, shape (size, size)."""
    tile = Stock(plain=False).tile((figure,), size, render.ROAD)
    return pygame.surfarray.array3d(tile).mean(axis=2)  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------------- cars


@pytest.mark.parametrize(
    ("driver", "left", "top"),
    [
        (Driver(A1, EAST, at=2, side=1), 192, 96),
        (Driver(B1, WEST, at=2, side=0), 160, 32),
        (Driver(B1, SOUTH, at=0, side=1), 256, 128),
        (Driver(B2, NORTH, at=1, side=0), 320, 192),
    ],
)
@pytest.mark.parametrize("human", [0, 1])
def test_a_car_is_drawn_in_its_cell_to_the_right_of_the_middle(driver: Driver, left: int, top: int, human: int) -> None:
    renderer, lane = scene(driver._replace(human=human))
    assert renderer.plan.cell == renderer.plan.wide == PIXELS
    with_car = map_of(renderer, lane)
    lane["arrived"] = 1
    rows, columns = changed(with_car, map_of(renderer, lane))
    assert top <= rows.start < rows.stop <= top + PIXELS and left <= columns.start < columns.stop <= left + PIXELS
    assert rows.stop - rows.start > 0.7 * PIXELS < columns.stop - columns.start


@pytest.mark.parametrize("heading", range(4))
def test_a_machines_car_is_a_wedge_that_points_ahead(heading: int) -> None:
    darker = drawn(render.Car(human=False, heading=heading), 32) < 120  # columns first
    ahead, behind = {
        EAST: (darker[16:], darker[:16]),
        WEST: (darker[:16], darker[16:]),
        SOUTH: (darker[:, 16:], darker[:, :16]),
        NORTH: (darker[:, :16], darker[:, 16:]),
    }[heading]
    assert behind.sum() > 1.5 * ahead.sum()


@pytest.mark.parametrize("size", [11, 24])
def test_cars_tell_without_colour_who_drives_how_fast_how_safely_and_whereto(size: int) -> None:
    kinds = [
        render.Car(human, fast, safety) for human in (False, True) for fast in (False, True) for safety in (False, True)
    ]
    kinds += [render.Car(human, heading=heading) for human in (False, True) for heading in (SOUTH, WEST, NORTH)]
    pictures = [drawn(kind, size) for kind in kinds]
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).max() > 40


def test_who_drives_has_a_colour() -> None:
    renderer, lane = scene(Driver(human=0), Driver(B1, SOUTH, human=1))
    both = map_of(renderer, lane)
    assert min(count(both, BLUE), count(both, ORANGE)) > 100
    lane["arrived"][1] = 1
    one = map_of(renderer, lane)
    assert count(one, BLUE) == count(both, BLUE) and count(one, ORANGE) == 0


def test_cars_that_are_drawn_small_still_have_shape_and_colour() -> None:
    renderer, lane = scene(
        Driver(A1, EAST, at=20), Driver(A1, EAST, at=60, human=1), columns=12, rows=10, street_length=100
    )
    with_cars = map_of(renderer, lane)
    lane["arrived"] = 1
    rows, columns = changed(with_cars, map_of(renderer, lane))
    seen = with_cars[rows, columns]
    assert rows.stop - rows.start <= render.LEAST_CAR < columns.stop - columns.start
    assert (seen[..., 2] - seen[..., 0]).max() > 60 and (seen[..., 0] - seen[..., 2]).max() > 60


# -------------------------------------------------------------------------------------------------- streets


def test_a_lane_for_people_is_the_last_of_both_directions_and_has_a_mark() -> None:
    renderer, lane = scene(human_lanes=["A1-B1"])
    picture = map_of(renderer, lane)
    common, reserved = picture[34:94, 130:254], (picture[2:30, 130:254], picture[98:126, 130:254])
    assert render.RESERVED not in colours(common)
    for own in reserved:
        assert count(own, render.RESERVED) > 1000 and render.ROAD not in colours(own)
        assert own.min() < 80  # the diamonds
    assert render.RESERVED not in colours(picture[:, 256:])


def test_road_works_are_hatched_in_both_directions_of_their_street() -> None:
    renderer, lane = scene(roadworks_share=1 / 7)
    before = map_of(renderer, lane)
    lane["dug"][list(TOWN.both(4 * B1 + SOUTH))] = 1
    after = map_of(renderer, lane)
    assert changed(before, after) == (slice(128, 256), slice(256, 384))
    share = np.any(before != after, axis=2)[128:256, 256:384].mean(axis=0)
    assert share.min() > 0.2 and share.max() < 0.5


def test_a_toll_is_marked_where_it_costs_something() -> None:
    for toll, marked in ((0.0, False), (0.5, True)):
        picture = map_of(*scene(toll=toll, toll_streets=["A1-B1"]))
        assert (count(picture[40:88, 130:254], PURPLE) > 100) == marked
        assert (PURPLE in colours(picture[128:131, 130:254])) == marked  # the kerb
        assert PURPLE not in colours(picture[:, 256:])


def test_the_lights_stand_where_each_direction_ends_and_change() -> None:
    renderer, lane = scene()
    lane["lights"][0, B1] = 1
    eastward, southward = slice(64, 128), slice(0, 64)
    picture = map_of(renderer, lane)
    entries = {
        EAST: (eastward, slice(256, 262)),
        WEST: (southward, slice(378, 384)),
        NORTH: (slice(122, 128), slice(320, 384)),
    }
    seen = {heading: picture[entry] for heading, entry in entries.items()}
    for heading in (EAST, WEST):
        assert count(seen[heading], GREEN) > 50 and count(seen[heading], VERMILION) == 0
    assert count(seen[NORTH], VERMILION) > count(seen[EAST], GREEN) > 0 and count(seen[NORTH], GREEN) == 0
    lane["lights"][0, B1] = 2
    picture = map_of(renderer, lane)
    assert GREEN not in colours(picture[entries[EAST]]) and GREEN in colours(picture[entries[NORTH]])
    assert colours(picture[:, :128]).isdisjoint({GREEN})  # nobody told A1 and A2
    lane["time"] = 1  # of which no light was said to be green
    assert GREEN not in colours(map_of(renderer, lane))


def test_right_of_way_has_no_lights() -> None:
    renderer, lane = scene(crossroads="right_of_way", hospital="A1")
    lane["lights"][0] = 3
    seen = colours(map_of(renderer, lane)[:, 128:])
    assert seen.isdisjoint({GREEN, VERMILION})


def test_the_hospital_is_marked_and_other_crossroads_have_names() -> None:
    one, other = (map_of(*scene(hospital=name, crossroads="right_of_way")) for name in ("C2", "B1"))
    crosses = [
        [count(picture[top : top + 128, left : left + 128], VERMILION) for top, left in ((256, 512), (0, 256))]
        for picture in (one, other)
    ]
    assert min(crosses[0][0], crosses[1][1]) > 500 and crosses[0][1] == crosses[1][0] == 0
    names = [one[44:84, left + 44 : left + 84] for left in (0, 256, 512)]
    for k, name in enumerate(names):
        assert len(colours(name)) > 5
        assert not np.array_equal(name, names[k - 1])


def test_goals_are_framed_while_somebody_is_on_the_way_there() -> None:
    renderer, lane = scene(Driver(), Driver(), destination="own")
    lane["goal"] = B1, C2
    before = map_of(renderer, lane)
    lane["arrived"][1] = 1
    rows, columns = changed(before[128:], map_of(renderer, lane)[128:])
    assert rows.start > 128 and columns.start > 512


# --------------------------------------------------------------------------------------------------- panels


def fared() -> tuple[Any, Any]:
    """Return a scene of two machines, of which a fast one has arrived, and three people, of which a slow one has."""
    renderer, lane = scene(*5 * [Driver()], time_cost=0.0)
    lane["human"], lane["fast"], lane["arrived"] = (0, 0, 1, 1, 1), (1, 0, 0, 0, 1), (1, 0, 1, 0, 0)
    lane["steps"], lane["time"] = (4, 10, 7, 10, 10), 10
    return renderer, lane


def test_the_groups_tell_arrivals_and_mean_steps_by_speed() -> None:
    renderer, lane = fared()
    told = [(group.name, *group.words) for group in renderer.groups(lane)]
    assert told == [
        ("AI-driven", "1 of 2", "7.0"),
        ("fast", "1 of 1", "4.0"),
        ("slow", "0 of 1", "10.0"),
        ("human-driven", "1 of 3", "9.0"),
        ("fast", "0 of 1", "10.0"),
        ("slow", "1 of 2", "8.5"),
    ]


def test_a_group_without_cars_has_no_mean() -> None:
    renderer, lane = scene(Driver())
    assert [*renderer.groups(lane)][3].words == ("0 of 0", "-")


def test_an_arrival_shows_in_the_panel() -> None:
    renderer, lane = fared()
    before = panel_of(renderer, lane)
    lane["arrived"][3] = 1
    after = panel_of(renderer, lane)
    assert count(after, ORANGE) > count(before, ORANGE) + 500 and abs(count(after, BLUE) - count(before, BLUE)) < 20


def test_the_legend_has_the_signs_of_the_city_alone() -> None:
    def signs(**given: Any) -> set[str]:
        renderer, lane = scene(**given)
        return {word for _, word in renderer.panel(lane)[-1].signs}

    assert signs(safety_share=0.0, crossroads="right_of_way") == {"hospital"}
    assert signs(destination="own") == {"a car's goal", "drives safely", "green light", "red light"}
    streets = signs(human_lanes=["all"], toll=1.0, toll_streets=["A"], roadworks_share=1 / 7)
    assert streets > {"people only", "toll", "road works"}
    assert "toll" not in signs(toll_streets=["A"])
    assert "road works" not in signs(roadworks_share=0.05)  # of 7 streets none


# ---------------------------------------------------------------------------------------------------- text


def test_the_text_tells_the_groups_and_the_cars_on_each_street() -> None:
    renderer, lane = scene(
        Driver(A1, EAST), Driver(B1, WEST), Driver(B1, SOUTH), Driver(C2, NORTH), Driver(A1, EAST, human=1)
    )
    lane["time"] = 7
    lane["dug"][list(TOWN.both(4 * C1 + SOUTH))] = lane["dug"][list(TOWN.both(4 * A2 + EAST))] = 1
    lines = plain(renderer.text(lane)).splitlines()
    assert lines[0] == "FairTraffic, step 7 of 300"
    assert lines[1:4] == ["A1 --3--B1 -----C1", "|       |1      ~1", "A2 ~~~~~B2 -----C2"]
    assert lines[4].split() == ["arrived", "mean", "steps"]
    assert lines[5].split() == ["AI-driven", "0", "of", "4", "0.0"] and len(lines) == 12
    assert lines[-1].endswith("the hospital is in C2")
    lane["arrived"][:2] = 1
    assert "A1 --1--B1" in plain(renderer.text(lane)) and "2 of 4" in plain(renderer.text(lane))


def test_the_text_says_nothing_of_a_hospital_where_there_is_none() -> None:
    renderer, lane = scene(destination="own")
    assert "hospital" not in renderer.text(lane) and "\x1b[7m" not in renderer.text(lane)
    assert "\x1b[7mC2" in scene()[0].text(lane)


# --------------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("counts", [(2, 2), (2, 26), (26, 2), (12, 10), (26, 26)])
@pytest.mark.parametrize("length", [2, 7, 100])
@pytest.mark.parametrize("lanes", [1, 4])
def test_any_map_fits_and_fills_its_room_unless_cells_are_large(
    counts: tuple[int, int], length: int, lanes: int
) -> None:
    plan = render.plan_of(TrafficParams(columns=counts[0], rows=counts[1], street_length=length, lanes=lanes))
    shares = [size / room for size, room in zip(plan.size, render.LARGEST_MAP, strict=True)]
    assert max(shares) <= 1 and min(plan.cell, plan.wide) > 0
    assert max(shares) > 0.75 or plan.cell == render.MOST_CELL


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"columns": 2, "rows": 2, "street_length": 2, "lanes": 1, "hospital": "A1", "crossroads": "right_of_way"},
        {"columns": 2, "rows": 2, "street_length": 100, "lanes": 4, "hospital": "A1"},
        {"columns": 12, "rows": 10, "street_length": 10},
        {"columns": 12, "rows": 10, "street_length": 100, "lanes": 3, "destination": "own"},
        {"columns": 2, "rows": 26, "street_length": 7, "hospital": "B26"},
        {"columns": 26, "rows": 26, "street_length": 2, "lanes": 4},
    ],
)
def test_any_city_fits_into_a_frame(given: dict[str, Any]) -> None:
    last = Driver(A1, EAST, at=given.get("street_length", 10) - 1, side=given.get("lanes", 2) - 1)
    streets = {"human_lanes": ["all"] if given.get("lanes", 2) > 1 else (), "toll": 1.0, "toll_streets": ["1"]}
    renderer, lane = scene(
        last, last._replace(human=1), **{"columns": 5, "rows": 4, "street_length": 10, **streets, **given}
    )
    lane["dug"] = 1
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.flags.c_contiguous and frame.shape[2] == 3
    assert frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    assert frame.shape[1] <= LARGEST_FRAME[0] and frame.shape[0] <= LARGEST_FRAME[1]
    height = MARGIN + renderer.plan.size[1]
    assert GROUND in colours(frame[MARGIN:height, MARGIN : MARGIN + renderer.plan.size[0]]) or renderer.plan.pitch < 30
    assert renderer.text(lane)


def test_cells_are_as_large_as_fits_and_square_where_names_have_room() -> None:
    sizes = {"columns": 5, "rows": 4, "street_length": 10}
    plan = scene(**sizes)[0].plan
    assert plan.cell == plan.wide == 11 and plan._replace(cell=12, wide=12).size > render.LARGEST_MAP
    long = scene(columns=2, rows=2, street_length=100, lanes=1, hospital="A1")[0].plan
    assert long.cell < long.wide and long.crossroads >= render.NAMED_FROM


def test_the_frame_changes_with_the_lane_and_with_nothing_else() -> None:
    renderer, lane = scene(Driver())
    frame = renderer.frame(lane)
    assert np.array_equal(frame, renderer.frame(lane)) and np.array_equal(frame, scene()[0].frame(lane))
    lane["at"][0] = 1
    assert not np.array_equal(frame, renderer.frame(lane))
    lane["at"][0] = 0
    frame[:] = 0
    assert renderer.frame(lane).any()


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_every_mode_draws_and_leaves_the_episode_as_it_was(mode: str) -> None:
    env: Any = Env(render_mode=mode)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    before = env.get_state()
    picture = env.render()
    assert {"rgb_array": np.ndarray, "ansi": str, "human": type(None)}[mode] is type(picture)
    assert_same(env.get_state(), before)
    env.close()
