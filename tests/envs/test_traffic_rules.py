"""Each rule of FairTraffic on a scene set by hand: the streets A1 to D3 of a small city, without lights or chance."""

from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.cli.playing import described_keys
from fair_envs.core import Lanes
from fair_envs.envs.traffic.city import LEFT, RIGHT, STRAIGHT, City, crossing
from fair_envs.envs.traffic.rules import ACTION_NAMES, Traffic
from fair_envs.wrappers import counterfactual
from tests.envs.traffic_scenes import (
    CALM,
    FEATURES,
    SIZES,
    TURNS,
    Car,
    action,
    cells,
    drive,
    place,
    scene,
    sight,
    speeds,
    started,
    street_of,
    way_of,
)
from tests.helpers import uncompiled

LAST = 6  # cell of a street
TO_B2 = ("A2>B2", "B1>B2", "C2>B2", "B3>B2")  # heading east, south, west, north
FROM_B2 = ("B2>C2", "B2>B3", "B2>A2", "B2>B1")
SIDES = ("west", "north", "east", "south")  # where they come from
OFF: dict[str, Any] = {"human_information": "all", "human_reaction": 0}  # with CALM: people drive as machines do


def waiting(heading: int, **changes: Any) -> Car:
    """Return a car that stands before B2."""
    return Car(TO_B2[heading], LAST)._replace(**changes)


def crossed(batch: Lanes, cars: int) -> list[bool]:
    """Return which of the first cars are no more in the streets before B2."""
    return [place(batch, car)[0] not in TO_B2 for car in range(cars)]


# ------------------------------------------------------------------------------------------------------- speed


@pytest.mark.nojit
def test_a_car_accelerates_keeps_its_speed_and_brakes_by_one_cell_a_step() -> None:
    batch = scene(Car("A2>B2"))
    driven = []
    for pedal in ("accelerate", "accelerate", "keep", "brake", "brake", "brake"):
        drive(batch, pedal)
        driven += speeds(batch, 1)
    assert driven == [1, 2, 2, 1, 0, 0] and place(batch) == ("A2>B2", 0, 6)


@pytest.mark.nojit
@pytest.mark.parametrize(("fast", "most"), [(1, 5), (0, 2)])
def test_fast_cars_go_up_to_5_cells_a_step_and_others_up_to_2(fast: int, most: int) -> None:
    batch = scene(Car("A2>B2", fast=fast, speed=most - 1), Car("A1>B1", speed=most, fast=fast))
    drive(batch)
    assert speeds(batch, 2) == [most, most] == cells(batch, 2)


@pytest.mark.parametrize("way", ["A2>B2", "B2>A2"])
@pytest.mark.parametrize("pedal", ["accelerate", "keep", "brake"])
def test_road_works_allow_one_cell_a_step_in_both_directions(way: str, pedal: str) -> None:
    batch = scene(Car(way, speed=5), dug=["A2-B2"])
    drive(batch, pedal)
    assert place(batch) == (way, 0, 1)


@pytest.mark.nojit
def test_road_works_allow_no_more_to_who_comes_into_them() -> None:
    batch = scene(Car("A2>B2", LAST - 1, speed=5), Car("B3>B2", LAST - 1, speed=5), dug=["B2-C2"])
    drive(batch, "straight", "left")
    assert place(batch) == ("B2>C2", 0, 0) and speeds(batch, 1) == [2]
    drive(batch, "brake")
    assert place(batch) == ("B2>C2", 0, 1)


@pytest.mark.nojit
def test_road_works_that_allow_more_than_any_car_goes_take_no_longer_than_a_free_street() -> None:
    batch = scene(Car("A2>B2"), dug=["B2-C2"], fast_speed=5, roadworks_speed=9)
    assert sight(batch)["time_straight"] == pytest.approx(sight(batch)["distance_straight"])


def test_road_works_may_allow_more_than_a_car_goes() -> None:
    batch = scene(Car("A2>B2", speed=5), Car("A2>B2", side=1, speed=5, fast=0), dug=["A2-B2"], roadworks_speed=4)
    drive(batch)
    assert speeds(batch, 2) == [4, 2]


@pytest.mark.parametrize(
    ("speed", "gap", "plain", "careful"),
    [(0, 0, 0, 0), (0, 1, 1, 0), (0, 2, 1, 1), (2, 2, 2, 1), (2, 3, 3, 2), (4, 3, 3, 2), (4, 4, 4, 3), (4, 5, 5, 4)],
)
def test_a_car_brakes_to_the_free_cells_ahead_and_a_careful_one_keeps_one_of_them(
    speed: int, gap: int, plain: int, careful: int
) -> None:
    for safety, driven in ((0, plain), (1, careful)):
        batch = scene(Car("A2>B2", 0, speed=speed, safety=safety), Car("A2>B2", gap + 1))
        drive(batch, "accelerate", "brake")
        assert speeds(batch, 2) == [driven, 0]


@pytest.mark.nojit
def test_all_see_the_same_state_so_who_stands_behind_another_waits_for_it_to_go() -> None:
    batch = scene(Car("A2>B2", 0), Car("A2>B2", 1), Car("A2>B2", 2))
    drive(batch)
    assert cells(batch, 3) == [0, 1, 3]
    drive(batch)
    assert cells(batch, 3) == [0, 2, 5]


def test_cars_in_the_other_lane_or_the_other_direction_are_in_nobodys_way() -> None:
    batch = scene(Car("A2>B2", 1, speed=4), Car("A2>B2", 2, side=1), Car("B2>A2", 3))
    drive(batch, "accelerate", "brake", "brake")
    assert speeds(batch, 3) == [5, 0, 0]


@uncompiled
def test_in_a_long_street_a_car_brakes_to_another_in_reach_alone() -> None:
    for gap, driven in ((7, 7), (8, 8), (9, 9), (12, 9)):
        batch = scene(Car("A2>B2", 1, speed=9, human=1), Car("A2>B2", gap + 2), street_length=15, cars=2, fast_speed=9)
        assert sight(batch)["free_ahead"] == pytest.approx(min(gap, 9) / 9)
        drive(batch, "accelerate", "brake")
        assert speeds(batch, 1) == [driven]


@uncompiled
@pytest.mark.parametrize("human", [0, 1])
def test_in_streets_shorter_than_a_step_everybody_drives_as_far_as_the_next_street_goes(human: int) -> None:
    batch = scene(Car("A2>B2", 0, speed=5, human=human), street_length=3, cars=1)
    assert sight(batch)["free_ahead"] == 1
    drive(batch)
    assert place(batch) == ("B2>C2", 0, 2) and speeds(batch, 1) == [5]
    drive(batch)
    assert place(batch) == ("C2>D2", 0, 2) and speeds(batch, 1) == [3]  # one crossroads a step


# ---------------------------------------------------------------------------------------------------- dawdling


@pytest.mark.nojit
@pytest.mark.parametrize(("machines", "people"), [(1, 0), (0, 1)])
def test_who_dawdles_drives_a_cell_less_but_never_backwards(machines: int, people: int) -> None:
    cars = [Car("A2>B2", speed=4), Car("A1>B1", speed=4, human=1), Car("B3>A3", human=1), Car("C3>B3")]
    batch = scene(*cars, dawdling=float(machines), human_dawdling=float(people))
    drive(batch, "accelerate", "accelerate", "brake", "brake")
    assert speeds(batch, 4) == [5 - machines, 5 - people, 0, 0]


@pytest.mark.nojit
def test_dawdling_comes_after_braking_and_after_crossing() -> None:
    cars = [Car("A1>B1", 0, speed=4), Car("A1>B1", 3), waiting(0), Car("B3>B2", LAST - 2, speed=4)]
    batch = scene(*cars, dawdling=1.0)
    drive(batch, "accelerate", "brake", "straight", "right")
    assert speeds(batch, 4) == [1, 0, 0, 4]
    assert place(batch, 2) == ("A2>B2", 0, LAST) and place(batch, 3) == ("B2>C2", 0, 1)


def test_who_may_cross_and_dawdles_at_the_line_has_kept_others_from_it_all_the_same() -> None:
    batch = scene(waiting(0), waiting(3, human=1), human_dawdling=1.0)
    drive(batch)
    assert crossed(batch, 2) == [False, False]


def test_who_dawdles_at_the_last_line_has_not_arrived() -> None:
    batch = scene(waiting(0, goal="B2"), dawdling=1.0)
    assert drive(batch).reward[0, 0] == pytest.approx(-0.01)
    assert place(batch) == ("A2>B2", 0, LAST)


# ------------------------------------------------------------------------------------------------- crossroads


@pytest.mark.nojit
def test_a_street_begins_where_the_last_one_ends() -> None:
    for turn, wanted in zip(TURNS, ("B2>B1", "B2>C2", "B2>B3"), strict=True):
        batch = scene(Car("A2>B2", LAST - 2, speed=4))
        drive(batch, turn)
        assert place(batch) == (wanted, 0, 2) and speeds(batch, 1) == [5]


def test_who_does_not_drive_beyond_the_end_of_the_street_stays_in_it() -> None:
    batch = scene(Car("A2>B2", LAST - 2, speed=1))
    drive(batch, "left")
    assert place(batch) == ("A2>B2", 0, LAST)
    drive(batch, "brake left")
    assert place(batch) == ("B2>B1", 0, 0)  # at the line a speed of 1 is enough


@pytest.mark.nojit
@pytest.mark.parametrize("heading", range(4), ids=SIDES)
def test_who_comes_from_the_right_goes_first(heading: int) -> None:
    right = (heading + 3) % 4
    batch = scene(waiting(heading), waiting(right))
    drive(batch)
    assert crossed(batch, 2) == [False, True] and speeds(batch, 2) == [0, 1]
    drive(batch)
    assert crossed(batch, 2) == [True, True]


def test_who_has_to_give_way_drives_up_to_the_line() -> None:
    batch = scene(Car("A2>B2", LAST - 2, speed=4), waiting(3))
    drive(batch)
    assert place(batch) == ("A2>B2", 0, LAST) and speeds(batch, 1) == [2]


@pytest.mark.nojit
@pytest.mark.parametrize("heading", range(4), ids=SIDES)
def test_of_three_the_one_with_nobody_on_the_right_goes_first(heading: int) -> None:
    batch = scene(*[waiting((heading + k) % 4) for k in (1, 0, 2)])  # k = 0 has nobody on the right
    drive(batch)
    assert crossed(batch, 3) == [False, True, True]  # the opposite one is in nobody's way
    drive(batch)
    assert crossed(batch, 3) == [True, True, True]


@pytest.mark.parametrize("heading", range(2))
def test_opposing_traffic_goes_straight_on_at_once(heading: int) -> None:
    batch = scene(waiting(heading), waiting(heading + 2))
    drive(batch)
    assert crossed(batch, 2) == [True, True]


@pytest.mark.parametrize("other", ["straight", "right"])
@pytest.mark.parametrize("heading", range(4), ids=SIDES)
def test_who_turns_left_gives_way_to_opposing_traffic(heading: int, other: str) -> None:
    into = FROM_B2[(heading + 3) % 4]  # where both go, if the other turns right; one lane of it is taken
    batch = scene(waiting(heading), waiting((heading + 2) % 4), Car(into, 0, side=1))
    drive(batch, "left", other, "brake")
    assert crossed(batch, 2) == [False, True]


@pytest.mark.nojit
@pytest.mark.parametrize("heading", range(4), ids=SIDES)
def test_who_turns_left_gives_way_to_who_comes_from_the_left_too(heading: int) -> None:
    batch = scene(waiting(heading), waiting((heading + 1) % 4))
    drive(batch, "left", "straight")
    assert crossed(batch, 2) == [False, True]


def test_opposing_cars_that_turn_left_pass_each_other() -> None:
    batch = scene(waiting(1), waiting(3))
    drive(batch, "left", "left")
    assert [place(batch, car)[0] for car in range(2)] == ["B2>C2", "B2>A2"]


@pytest.mark.parametrize("heading", range(4), ids=SIDES)
def test_of_two_that_turn_left_who_comes_from_the_right_goes_first(heading: int) -> None:
    batch = scene(waiting(heading), waiting((heading + 3) % 4))
    drive(batch, "left", "left")
    assert crossed(batch, 2) == [False, True]


@pytest.mark.parametrize("time", range(8))
def test_where_somebody_comes_from_everywhere_each_heading_is_first_in_turn(time: int) -> None:
    batch = scene(*map(waiting, range(4)), time=time)
    drive(batch)
    assert crossed(batch, 4) == [(heading - time) % 2 == 0 for heading in range(4)]


@pytest.mark.parametrize(("heading", "time"), list(product(range(4), range(4))))
def test_the_first_in_turn_goes_before_who_comes_from_its_right(heading: int, time: int) -> None:
    """One goes straight on into the street, of one free lane, into which the one from its right turns right."""
    right = (heading + 3) % 4
    batch = scene(*map(waiting, range(4)), Car(FROM_B2[heading], 0, side=1), time=time)
    drive(batch, *["right" if k == right else "straight" for k in range(4)], "brake")
    entered = [car for car in (heading, right) if place(batch, car)[0] == FROM_B2[heading]]
    assert entered == [heading if time == heading else right]


@pytest.mark.nojit
def test_sixteen_pairs_of_movements_cross_as_on_any_crossroads_of_four_arms() -> None:
    crosses = np.array([[table >> k & 1 for k in range(12)] for table in crossing()])
    assert (crosses == crosses.T).all() and crosses.sum() == 2 * 16
    clockwise = np.roll(np.arange(12), 3)
    assert (crosses == crosses[np.ix_(clockwise, clockwise)]).all()
    assert crosses[STRAIGHT::3, STRAIGHT::3].sum() == 8  # of each with both its neighbours
    assert crosses[LEFT::3, STRAIGHT::3].sum() == 8  # with the opposing one and one neighbour
    assert crosses[LEFT::3, LEFT::3].sum() == 8  # with both neighbours
    assert crosses[RIGHT::3].sum() == 0


@pytest.mark.nojit
def test_cars_that_go_into_one_street_take_a_lane_each() -> None:
    batch = scene(waiting(0), waiting(3))
    drive(batch, "straight", "right")
    assert [place(batch, car) for car in (1, 0)] == [("B2>C2", 0, 0), ("B2>C2", 1, 0)]


def test_who_finds_no_lane_that_nobody_enters_stops_at_the_line() -> None:
    batch = scene(waiting(0), waiting(3), waiting(1))
    drive(batch, "straight", "right", "left")  # all to C2
    assert crossed(batch, 3) == [True, True, False]
    drive(batch, "straight", "straight", "left")
    assert crossed(batch, 3) == [True, True, False]  # all saw the first cells taken
    drive(batch, "straight", "straight", "left")
    assert place(batch, 2) == ("B2>C2", 0, 0)


def test_both_lanes_of_a_street_cross_at_once() -> None:
    batch = scene(waiting(0), waiting(0, side=1))
    drive(batch)
    assert [place(batch, car) for car in range(2)] == [("B2>C2", 0, 0), ("B2>C2", 1, 0)]


@pytest.mark.nojit
def test_who_finds_no_free_cell_in_the_street_beyond_stops_at_the_line_and_is_in_nobodys_way() -> None:
    full = [Car("B2>C2", 0), Car("B2>C2", 0, side=1)]
    batch = scene(Car("A2>B2", LAST - 2, speed=4), waiting(1), *full)
    drive(batch, "straight", "straight", "brake", "brake")
    assert place(batch) == ("A2>B2", 0, LAST)
    assert place(batch, 1) == ("B2>B3", 0, 0)


def test_a_car_drives_into_the_street_beyond_up_to_where_the_next_one_stood() -> None:
    batch = scene(Car("A2>B2", LAST - 1, speed=5), Car("B2>C2", 2, speed=3), Car("B2>C2", 1, side=1))
    drive(batch, "straight", "straight", "brake")
    assert place(batch) == ("B2>C2", 0, 1) and speeds(batch, 1) == [3]


@pytest.mark.parametrize("cell", range(LAST + 1))
def test_a_careful_car_keeps_a_cell_to_the_car_in_the_street_beyond_however_fast_it_comes(cell: int) -> None:
    ahead = 1 + cell  # free cells, the line being one of them
    for wanted in range(1, 6):
        before = Car("A2>B2", LAST - 1, speed=wanted - 1, safety=1)
        batch = scene(before, Car("B2>C2", cell), Car("B2>C2", cell, side=1))
        drive(batch, "straight", "brake", "brake")
        assert speeds(batch, 1) == [max(1, min(wanted, ahead - 1))]  # it may go up to the line


@pytest.mark.nojit
def test_where_there_is_no_street_a_car_goes_straight_on_else_right_else_left() -> None:
    for way, asked, taken in [
        ("A1>B1", "left", "B1>C1"),
        ("B3>C3", "right", "C3>D3"),
        ("B3>A3", "left", "A3>A2"),
        ("C1>D1", "straight", "D1>D2"),
        ("C1>D1", "left", "D1>D2"),
        ("C3>D3", "straight", "D3>D2"),
        ("C3>D3", "right", "D3>D2"),
        ("C2>D2", "straight", "D2>D3"),
        ("C2>D2", "left", "D2>D1"),
    ]:
        batch = scene(Car(way, LAST, goal="A1"))
        drive(batch, asked)
        assert place(batch)[0] == taken, (way, asked)


@uncompiled
def test_of_two_that_go_into_a_street_of_one_lane_the_second_waits() -> None:
    batch = scene(waiting(0), waiting(3), waiting(2), lanes=1, cars=3)
    drive(batch, "straight", "right", "straight")
    assert crossed(batch, 3) == [False, True, True]


# ------------------------------------------------------------------------------------------------------ lights


@pytest.mark.parametrize(
    ("period", "share", "by_column", "by_row"),
    [(16, 0.5, 0, 0), (5, 0.4, 1, 0), (6, 0.7, 0, 2), (7, 0.3, 3, 15), (4, 0.05, 2, 1)],
)
def test_lights_have_a_period_a_share_and_offsets(period: int, share: float, by_column: int, by_row: int) -> None:
    ways = {"A2>B2": (1, 1), "B1>B2": (1, 1), "C2>D2": (3, 1), "B3>A3": (0, 2), "D2>D3": (3, 2)}
    late = [by_column * column + by_row * row for column, row in ways.values()]
    batch = scene(
        *[Car(way, LAST) for way in ways],
        crossroads="signals",
        human_share=0.0,
        signal_period=period,
        east_west_share=share,
        offset_east_west=by_column,
        offset_north_south=by_row,
    )
    east_west = max(1, round(share * period))
    for time in range(2 * period):
        first = [(time - steps) % period < east_west for steps in late]
        wanted = [first[0], not first[1], first[2], first[3], not first[4]]
        assert batch.observe()[0, :, FEATURES.index("green")].tolist() == wanted
        drive(batch, *["brake"] * 5)


LIGHTS: dict[str, Any] = {"crossroads": "signals", "signal_period": 6}  # east and west first


@pytest.mark.nojit
def test_who_has_a_red_light_drives_up_to_the_line_and_waits_for_the_green_one() -> None:
    batch = scene(Car("B1>B2", LAST - 2, speed=4), **LIGHTS)
    for _ in range(3):
        drive(batch)
        assert place(batch) == ("B1>B2", 0, LAST)
    drive(batch)
    assert place(batch) == ("B2>B3", 0, 0)


@pytest.mark.nojit
def test_who_has_a_green_light_goes_on_and_no_more_when_it_turns_red() -> None:
    for time, wanted in ((2, ("B2>C2", 0, 2)), (3, ("A2>B2", 0, LAST))):
        batch = scene(Car("A2>B2", LAST - 2, speed=5), time=time, **LIGHTS)
        drive(batch)
        assert place(batch) == wanted


def test_who_waits_for_a_green_light_keeps_nobody_from_crossing() -> None:
    batch = scene(waiting(0), waiting(3), **LIGHTS)
    drive(batch)  # who comes from the right has a red light
    assert crossed(batch, 2) == [True, False]


def test_under_lights_who_turns_left_gives_way_to_opposing_traffic() -> None:
    batch = scene(waiting(0), waiting(2), **LIGHTS)
    drive(batch, "left", "straight")
    assert crossed(batch, 2) == [False, True]


# ------------------------------------------------------------------------------------------------------- lanes


@pytest.mark.parametrize(("first", "second", "taken"), [(4, 5, 1), (5, 4, 0), (4, 4, 0), (2, 0, 0), (0, 1, 1)])
def test_a_car_takes_the_lane_with_the_most_room_and_of_equal_ones_the_first(
    first: int, second: int, taken: int
) -> None:
    batch = scene(Car("A2>B2", LAST, speed=5), Car("B2>C2", first), Car("B2>C2", second, side=1))
    drive(batch, "straight", "brake", "brake")
    assert place(batch) == ("B2>C2", taken, max(first, second) - 1)


def test_room_beyond_what_a_car_wants_makes_no_difference() -> None:
    batch = scene(Car("A2>B2", LAST, speed=1), Car("B2>C2", 2), Car("B2>C2", 6, side=1))
    drive(batch, "straight", "brake", "brake")
    assert place(batch) == ("B2>C2", 0, 1)


def test_there_are_no_other_changes_of_lanes() -> None:
    batch = scene(Car("A2>B2", 0, side=1, speed=4), Car("A2>B2", 2, side=1))
    drive(batch, "accelerate", "brake")
    assert place(batch) == ("A2>B2", 1, 1)


PEOPLES: dict[str, Any] = {"human_lanes": ["B2-C2"]}


@pytest.mark.nojit
@pytest.mark.parametrize(("way", "beyond"), [("A2>B2", "B2>C2"), ("D2>C2", "C2>B2")])
def test_of_equal_lanes_people_take_theirs_and_machines_the_first(way: str, beyond: str) -> None:
    for human, side in ((1, 1), (0, 0)):
        batch = scene(Car(way, LAST, human=human), **PEOPLES)
        drive(batch)
        assert place(batch) == (beyond, side, 0)


@pytest.mark.nojit
def test_machines_do_not_enter_a_lane_for_people_though_it_is_the_only_free_one() -> None:
    for human, wanted in ((0, ("A2>B2", 0, LAST)), (1, ("B2>C2", 1, 1))):
        batch = scene(Car("A2>B2", LAST, speed=1, human=human), Car("B2>C2", 0), **PEOPLES, human_reaction=0)
        drive(batch, "straight", "brake")
        assert place(batch) == wanted


def test_people_take_another_lane_than_theirs_where_that_has_more_room_or_somebody_enters_theirs() -> None:
    batch = scene(Car("A2>B2", LAST, speed=4, human=1), Car("B2>C2", 2, side=1), **PEOPLES)
    drive(batch, "straight", "brake")
    assert place(batch) == ("B2>C2", 0, 4)
    batch = scene(waiting(0, human=1), waiting(3, human=1), **PEOPLES)
    drive(batch, "straight", "right")
    assert [place(batch, car) for car in (1, 0)] == [("B2>C2", 1, 0), ("B2>C2", 0, 0)]


def test_a_street_without_a_lane_for_people_is_everybodys() -> None:
    batch = scene(Car("A2>B2", LAST), Car("B2>B1", 0), Car("A1>B1", LAST, human=1), **PEOPLES)
    drive(batch, "left", "brake", "straight")
    assert place(batch) == ("B2>B1", 1, 0) and place(batch, 2) == ("B1>C1", 0, 0)


@uncompiled
def test_of_three_lanes_the_last_one_is_for_people() -> None:
    for human, sides in ((0, [0, 1, -1]), (1, [2, 0, 1])):
        cars = [waiting(heading, human=human) for heading in (3, 0, 1)]
        batch = scene(*cars, lanes=3, cars=3, **PEOPLES)
        drive(batch, "right", "straight", "left")
        entered = [place(batch, car) for car in range(3)]
        assert [where[1] if where[0] == "B2>C2" else -1 for where in entered] == sides


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("names", "ways"),
    [
        (["B2-C2"], {"B2>C2", "C2>B2"}),
        (["C2-B2"], {"B2>C2", "C2>B2"}),
        (["B"], {"B1>B2", "B2>B1", "B2>B3", "B3>B2"}),
        (["3"], {"A3>B3", "B3>A3", "B3>C3", "C3>B3", "C3>D3", "D3>C3"}),
        (["A1-A2", "D3-C3"], {"A1>A2", "A2>A1", "C3>D3", "D3>C3"}),
        ([], set()),
    ],
)
def test_streets_are_told_by_their_ends_in_either_order_by_column_or_by_row(names: Any, ways: set[str]) -> None:
    city = City(4, 3)
    chosen = city.chosen(names, argument="human_lanes")
    assert {way_of(city, int(street)) for street in np.flatnonzero(chosen)} == ways


def test_all_streets_are_all() -> None:
    city = City(4, 3)
    assert (city.chosen(["all"], argument="human_lanes") == (city.ahead >= 0)).all()
    assert (city.ahead >= 0).sum() == 2 * (3 * 3 + 4 * 2)


@pytest.mark.nojit
def test_crossroads_have_letters_from_west_to_east_and_numbers_from_north_to_south() -> None:
    city = City(3, 11)
    assert [way_of(city, street_of(city, way)) for way in ("B9>B10", "A11>B11")] == ["B9>B10", "A11>B11"]
    chosen = city.chosen(["C10-C9"], argument="toll_streets")
    assert {way_of(city, int(street)) for street in np.flatnonzero(chosen)} == {"C9>C10", "C10>C9"}
    assert city.chosen(["10"], argument="toll_streets").sum() == 4
    assert city.chosen(["1"], argument="toll_streets").sum() == 4


# ----------------------------------------------------------------------------------------------------- arrival


@pytest.mark.nojit
def test_who_crosses_into_its_goal_has_arrived_and_leaves_its_cell_free() -> None:
    batch = scene(waiting(0, goal="B2"), Car("A2>B2", LAST - 1, speed=0))
    step = drive(batch)
    assert place(batch) == "arrived" and place(batch, 1) == ("A2>B2", 0, LAST - 1)
    assert step.reward[0, 0] == pytest.approx(1 - 0.01) and not step.terminated[0]
    assert not batch.records["taken"][0][street_of(City(4, 3), "A2>B2"), 0, LAST]
    drive(batch, "brake", "accelerate")
    assert place(batch, 1) == ("A2>B2", 0, LAST)


def test_who_stands_at_the_last_line_has_not_arrived() -> None:
    batch = scene(Car("A2>B2", LAST - 1, goal="B2"))
    drive(batch)
    assert place(batch) == ("A2>B2", 0, LAST)
    drive(batch)
    assert place(batch) == "arrived"


@pytest.mark.parametrize("turn", TURNS)
def test_to_arrive_needs_no_room_and_no_street_beyond(turn: str) -> None:
    batch = scene(Car("C1>D1", LAST - 1, speed=4, goal="D1"), Car("D1>D2", 0), Car("D1>D2", 0, side=1))
    drive(batch, turn, "brake", "brake")
    assert place(batch) == "arrived"


def test_who_arrives_gives_way_and_waits_for_the_lights_like_others() -> None:
    for goals in (("B2", "D1"), ("D1", "B2")):  # of who gives way, and of who comes from its right
        batch = scene(waiting(0, goal=goals[0]), waiting(3, goal=goals[1]))
        drive(batch)
        assert crossed(batch, 2) == [False, True]
    batch = scene(waiting(1, goal="B2"), **LIGHTS)
    drive(batch)
    assert place(batch) == ("B1>B2", 0, LAST)


@pytest.mark.nojit
def test_nothing_changes_any_more_for_who_has_arrived_whatever_it_does() -> None:
    one, other = (scene(waiting(0, goal="B2"), Car("A2>B2", 0), Car("B3>B2", 0, goal="B2")) for _ in range(2))
    for batch in (one, other):
        drive(batch)
    before = one.records[0].copy()
    for _ in range(4):
        steps = [drive(one, "accelerate left", "accelerate", "keep"), drive(other, "brake right", "accelerate", "keep")]
        assert steps[0].reward.tolist() == steps[1].reward.tolist() and steps[0].reward[0, 0] == 0
        assert (steps[0].observation == steps[1].observation).all() and not steps[0].observation[0, 0].any()
        assert steps[0].facts["individual"][0, 0] == -1 and steps[0].facts["action"][0, 0] == -1
    assert one.records.tobytes() == other.records.tobytes()
    for name in ("street", "side", "at", "speed", "turn", "steps", "goal"):
        assert one.records[name][0, 0] == before[name][0]


def test_the_episode_ends_when_the_last_car_has_arrived() -> None:
    batch = scene(waiting(0, goal="B2"), Car("A1>B1", LAST - 1, goal="B1"))
    assert not drive(batch).terminated[0]
    assert drive(batch).terminated[0] and batch.records["driving"][0] == 0


def test_the_episode_is_truncated_after_the_horizon() -> None:
    batch = scene(Car("A2>B2"), horizon=3)
    ends = [drive(batch, "brake") for _ in range(3)]
    assert [bool(step.truncated[0]) for step in ends] == [False, False, True]
    assert not any(step.terminated[0] for step in ends)


# ---------------------------------------------------------------------------------------------------- reaction


@pytest.mark.parametrize("delay", range(9))
def test_people_start_so_many_steps_after_a_light_turns_green(delay: int) -> None:
    slow_lights: dict[str, Any] = {"crossroads": "signals", "signal_period": 20, "east_west_share": 0.45}
    batch = scene(waiting(1), waiting(3, human=1), human_reaction=delay, **slow_lights)
    left = []
    for _ in range(19):
        drive(batch)
        left.append(crossed(batch, 2))
    machine, person = (next(time for time, gone in enumerate(left) if gone[car]) for car in range(2))
    assert machine == 9 and person == machine + delay


@pytest.mark.nojit
@pytest.mark.parametrize("delay", [1, 3])
@pytest.mark.parametrize("axis", ["east and west", "north and south"])
def test_people_get_through_a_light_that_is_green_a_step_longer_than_their_reaction_takes(
    delay: int, axis: str
) -> None:
    period = 10
    green = delay + 1 if axis == "east and west" else period - delay - 1
    lights: dict[str, Any] = {"crossroads": "signals", "signal_period": period, "east_west_share": green / period}
    batch = scene(waiting(0, human=1), waiting(1, human=1), human_reaction=delay, time=40, **lights)
    for _ in range(period):
        drive(batch)
    assert crossed(batch, 2) == [True, True]


@pytest.mark.nojit
@pytest.mark.parametrize("delay", [1, 3])
@pytest.mark.parametrize("axis", ["east and west", "north and south"])
def test_a_light_that_is_green_no_longer_than_the_reaction_of_people_takes_is_refused(delay: int, axis: str) -> None:
    green = delay if axis == "east and west" else 10 - delay
    lights: dict[str, Any] = {"signal_period": 10, "east_west_share": green / 10, "human_reaction": delay}
    message = (
        rf"signal_period must give .* human_reaction \({delay}\) steps of green where people drive, got {delay} of 10"
    )
    with pytest.raises(ValueError, match=message):
        Traffic(**lights)
    for nobody in ({"human_share": 0.0}, {"cars": 2, "human_share": 0.2}, {"crossroads": "right_of_way"}):
        Traffic(**lights, **nobody)


@pytest.mark.parametrize("delay", range(9))
def test_people_start_so_many_steps_after_the_car_ahead(delay: int) -> None:
    behind = [Car("A2>B2", 3), Car("A1>B1", 3, human=1)]
    batch = scene(Car("A2>B2", 4), Car("A1>B1", 4), *behind, human_reaction=delay)
    started_at: dict[int, int] = {}
    for time in range(11):
        drive(batch)
        for car, speed in enumerate(speeds(batch, 4)):
            if speed:
                started_at.setdefault(car, time)
    assert started_at == {0: 0, 1: 0, 2: 1, 3: 1 + delay}


@pytest.mark.nojit
@pytest.mark.parametrize("delay", [0, 1, 2, 4])
def test_people_brake_to_the_free_cells_that_they_saw(delay: int) -> None:
    """One cell is free between both cars, until the one ahead leaves the street in the first step."""
    batch = scene(Car("A2>B2", 0, human=1), Car("A2>B2", 2, speed=4), human_reaction=delay)
    driven = []
    for _ in range(delay + 2):
        drive(batch)
        driven += speeds(batch, 1)
    assert driven == [1] * (delay + 1) + [2]


@pytest.mark.nojit
def test_people_do_not_drive_into_another_car_though_they_saw_more_free_cells() -> None:
    batch = scene(Car("A2>B2", 0, human=1), Car("A2>B2", 6), human_reaction=4)
    found = []
    for _ in range(4):
        drive(batch, "accelerate", "brake")
        found += cells(batch, 1)
    assert found == [1, 3, 5, 5]


def test_people_do_not_drive_against_a_red_light_though_they_saw_a_green_one() -> None:
    batch = scene(Car("A2>B2", LAST - 1, speed=4, human=1), time=3, human_reaction=2, **LIGHTS)
    assert sight(batch)["green"] == 1  # two steps ago
    drive(batch)
    assert place(batch) == ("A2>B2", 0, LAST)


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_people_see_the_free_cells_and_the_lights_as_they_were(delay: int) -> None:
    cars = [Car("B1>B2", 1), Car("C1>C2", 1, human=1), Car("B1>B2", 3), Car("C1>C2", 3)]
    batch = scene(*cars, human_reaction=delay, **{**LIGHTS, "signal_period": 8})
    machine, person = [], []
    for _ in range(10):
        machine.append([sight(batch, 0)[name] for name in ("free_ahead", "green")])
        person.append([sight(batch, 1)[name] for name in ("free_ahead", "green")])
        drive(batch, "brake", "brake")
    assert person == machine[:1] * delay + machine[: 10 - delay]
    assert len({tuple(row) for row in machine}) > 3


def test_machines_react_at_once() -> None:
    lights = {**LIGHTS, "human_share": 0.0}
    slow, quick = (scene(waiting(1), Car("A2>B2", 1), Car("A2>B2", 3), human_reaction=d, **lights) for d in (8, 0))
    for _ in range(8):
        drive(slow), drive(quick)
        assert slow.records.tobytes() == quick.records.tobytes()


# ----------------------------------------------------------------------------------------------------- rewards


def test_a_step_costs_time_and_each_cell_of_it_distance() -> None:
    cars = [Car("A2>B2", speed=2), Car("A1>B1"), Car("B3>C3", speed=4), Car("C2>C3", LAST - 1, speed=3)]
    step = drive(scene(*cars), "accelerate", "brake", "keep", "accelerate left")
    assert step.reward[0].tolist() == pytest.approx([-0.013, -0.01, -0.014, -0.014, 0])
    assert step.facts["outcome"][0].tolist() == pytest.approx(step.reward[0].tolist())
    assert step.facts["action"][0].tolist() == [1, 0, 1, 1, -1]


@pytest.mark.nojit
def test_what_a_car_earns_can_be_chosen() -> None:
    costs: dict[str, Any] = {
        "time_cost": 0.25,
        "distance_cost": 0.125,
        "arrival_reward": 8.0,
        "toll": 0.5,
        "toll_streets": ["all"],
    }
    cars = [Car("A2>B2", speed=2), Car("A1>B1", LAST - 1, speed=1, goal="B1"), Car("B3>C3", LAST)]
    step = drive(scene(*cars, **costs))
    assert step.reward[0].tolist() == [-0.25 - 0.375, 8 - 0.25 - 0.125, -0.25 - 0.125 - 0.5, 0, 0]


@pytest.mark.nojit
@pytest.mark.parametrize("at", [LAST, LAST - 1, LAST - 4])
def test_who_arrives_pays_for_the_cells_up_to_the_line_and_for_none_beyond_it(at: int) -> None:
    step = drive(scene(Car("A2>B2", at, speed=4, goal="B2"), distance_cost=0.125, time_cost=0.0))
    assert step.reward[0, 0] == 1 - 0.125 * (LAST - at)


TOLL: dict[str, Any] = {"toll": 0.25, "toll_streets": ["C2-B2"]}


@pytest.mark.nojit
@pytest.mark.parametrize(("payers", "person"), [("everybody", 0.25), ("ai_driven", 0.0)])
def test_tolls_are_for_everybody_or_for_machines_alone(payers: str, person: float) -> None:
    for human, toll in ((0, 0.25), (1, person)):
        batch = scene(waiting(0, human=human), **TOLL, toll_for=payers)
        assert sight(batch)["toll_straight"] == toll and sight(batch)["toll_left"] == 0
        assert drive(batch).reward[0, 0] == pytest.approx(-0.011 - toll)
        assert drive(batch).reward[0, 0] == pytest.approx(-0.012)  # it is paid once


def test_only_who_enters_a_street_pays_its_toll() -> None:
    cars = [waiting(0), Car("B2>C2", 3), waiting(2, goal="B2"), Car("D2>C2", LAST), Car("B3>B2", LAST - 1)]
    step = drive(scene(*cars, **TOLL), "right", "straight", "straight", "straight", "brake")
    assert step.reward[0].tolist() == pytest.approx([-0.011, -0.011, 0.99, -0.011 - 0.25, -0.01])


# ------------------------------------------------------------------------------------------------ observations


FREE = 7 / 5  # steps through a free street
QUEUE = 5 / 2  # steps that all five cars of a scene take in a street of two lanes
LONGEST = 7 * (FREE + QUEUE)  # steps: the longest way, of 6 streets, and one more, all full


def looked_at(human: int = 0, **parameters: Any) -> dict[str, float]:
    """Return what the driver of a car before B2 sees: road works and a queue on its ways, and another car's plan."""
    batch = scene(
        Car("A2>B2", 1, speed=1, human=human, safety=1, goal="D1"),
        Car("A2>B2", 6, side=1),
        Car("B2>B1", 3, fast=0),
        Car("B3>B2", 2),
        Car("C2>B2", 2, human=1),
        dug=["B2-C2"],
        human_lanes=["B"],
        toll=0.25,
        toll_streets=["2"],
        **parameters,
    )
    drive(batch, "straight", "brake right", "brake", "brake straight", "brake straight")
    return sight(batch)


SEEN = {
    "on_the_road": 1,
    "speed": 2 / 9,
    "street_left": 3 / 7,
    "free_ahead": 1,
    "green": 1,
    "human_driven": 0,
    "fast": 1,
    "safety": 1,
    "exists_left": 1,
    "distance_left": 3 * FREE / LONGEST,
    "time_left": (3 * FREE + 0.5) / LONGEST,  # a standing car, two lanes
    "announced_left": 0.2,
    "human_lane_left": 0,
    "toll_left": 0,
    "exists_straight": 1,
    "distance_straight": 3 * FREE / LONGEST,
    "time_straight": (7 + 2 * FREE) / LONGEST,  # one cell a step
    "announced_straight": 0,
    "human_lane_straight": 0,
    "toll_straight": 0.25,
    "exists_right": 1,
    "distance_right": 5 * FREE / LONGEST,
    "time_right": 5 * FREE / LONGEST,
    "announced_right": 0.2,
    "human_lane_right": 0,
    "toll_right": 0,
}


@pytest.mark.nojit
def test_a_machine_sees_all_this() -> None:
    assert looked_at() == pytest.approx(SEEN, abs=1e-6) and tuple(SEEN) == FEATURES


@pytest.mark.nojit
@pytest.mark.parametrize("information", ["static", "times", "all"])
def test_people_see_the_times_and_what_is_announced_if_they_are_told(information: str) -> None:
    wanted: dict[str, float] = {**SEEN, "human_driven": 1, "human_lane_left": 1, "human_lane_right": 1}
    for turn in TURNS:
        if information == "static":
            wanted[f"time_{turn}"] = wanted[f"distance_{turn}"]
        if information != "all":
            wanted[f"announced_{turn}"] = 0
    seen = looked_at(human=1, human_information=information, human_reaction=0)
    assert seen == pytest.approx(wanted, abs=1e-6)


def test_people_announce_their_turns_where_they_are_told_all() -> None:
    for information, share in (("static", 0), ("times", 0), ("all", 0.2)):
        batch = scene(Car("A2>B2"), Car("B3>B2", human=1), human_information=information)
        drive(batch, "brake", "brake right")
        assert sight(batch)["announced_straight"] == pytest.approx(share)


@pytest.mark.nojit
def test_nobody_has_announced_a_turn_before_its_first_choice_in_a_street() -> None:
    batch = scene(Car("B1>B2"), Car("A3>B3", LAST))
    announced = [[sight(batch)[f"announced_{turn}"] for turn in TURNS]]
    for choice in ("accelerate left", "brake left"):  # into B3>B2, and from there to A2
        drive(batch, "brake", choice)
        announced.append([sight(batch)[f"announced_{turn}"] for turn in TURNS])
    assert announced == [[0, 0, 0], [0, 0, 0], [0, 0, pytest.approx(0.2)]]


@pytest.mark.nojit
def test_who_arrives_at_the_end_of_its_street_announces_no_turn_beyond_it() -> None:
    batch = scene(Car("A2>B2"), Car("C2>B2", goal="B2"), Car("B3>B2"))
    drive(batch, "brake", "brake right", "brake left")  # into B2>B1, but for its goal, and into B2>A2
    drive(batch, "brake left", "brake right", "brake straight")  # into B2>B1
    assert sight(batch)["announced_left"] == pytest.approx(0.2)


def test_at_the_start_nobody_has_announced_anything() -> None:
    announced = [k for k, name in enumerate(FEATURES) if name.startswith("announced")]
    assert not started(copies=3).observe()[..., announced].any()


def test_what_is_announced_is_the_turn_that_will_be_taken() -> None:
    batch = scene(Car("D1>D2", goal="A1"), Car("C2>D2"))
    drive(batch, "brake", "brake straight")  # there is no street: it will turn right, to the south
    assert sight(batch)["announced_straight"] == pytest.approx(0.2)


@pytest.mark.nojit
def test_a_turn_without_a_street_is_as_far_as_can_be() -> None:
    seen = sight(scene(Car("C1>D1", goal="A3")))
    for turn in ("left", "straight"):
        names = ("exists", "distance", "time", "announced", "human_lane", "toll")
        assert [seen[f"{name}_{turn}"] for name in names] == [0, 1, 1, 0, 0, 0]
    assert seen["exists_right"] == 1 and seen["distance_right"] == pytest.approx(5 * FREE / LONGEST)


def test_who_comes_to_its_goal_at_the_end_of_the_street_has_no_way_beyond_it() -> None:
    seen = sight(scene(Car("A2>B2", goal="B2"), Car("B2>C2"), dug=["B2-B3"]))
    assert [seen[f"{name}_{turn}"] for name in ("distance", "time") for turn in TURNS] == [0] * 6


@pytest.mark.nojit
def test_the_way_back_leads_around_a_block_for_nobody_turns_back() -> None:
    seen = sight(scene(Car("A2>B2", goal="A2")))
    for name in ("distance", "time"):
        told = [seen[f"{name}_{turn}"] * LONGEST / FREE for turn in TURNS]
        assert told == pytest.approx([3, 5, 3], abs=1e-5)


@pytest.mark.nojit
def test_a_way_around_a_block_is_told_to_facts_too() -> None:
    facts = scene(Car("A2>B2", goal="A2")).show().facts
    assert facts["features"][0, 0, 0] == pytest.approx(4 / 6)


@pytest.mark.nojit
@pytest.mark.parametrize("information", ["static", "times"])
def test_a_twin_that_is_made_in_mid_episode_sees_what_it_could_have_seen(information: str) -> None:
    world: dict[str, Any] = {**SIZES, **CALM, "human_information": information}
    env: Any = gym.make("FairTraffic-v0", **world)
    env.reset(seed=0)
    for _ in range(10):
        env.step(np.full(5, action("left")))
    twin: Any = counterfactual(env, flip="all")
    observation = twin.unwrapped.set_state(twin.unwrapped.get_state())
    assert twin.observation_space.contains(observation)
    announced = observation.reshape(5, -1)[:, [name.startswith("announced") for name in FEATURES]]
    assert announced.max() <= 0.8


@uncompiled
def test_no_time_is_as_much_as_can_be_however_slow_roads_are() -> None:
    """All streets have road works and are full of standing cars: the longest way takes less than what is not there."""
    ways = [way_of(City(2, 2), street) for street in np.flatnonzero(City(2, 2).ahead >= 0).tolist()]
    cars = [Car(way, at, goal="A1") for way in ways for at in range(3)]
    small: dict[str, Any] = {"columns": 2, "rows": 2, "hospital": "A1", "lanes": 1, "street_length": 3, "cars": 24}
    slow: dict[str, Any] = {"roadworks_share": 1.0, "fast_speed": 9, "human_share": 0.0}
    seen = scene(*cars, dug=["all"], **small, **slow).observe()[0]
    told: list[Any] = [seen[:, [FEATURES.index(f"{name}_{turn}") for turn in TURNS]] for name in ("exists", "time")]
    times = told[1][told[0] > 0]
    assert times.max() < 1 and len(set(times.tolist())) > 3


def test_a_red_light_ends_the_free_cells() -> None:
    for time, free in ((0, 4), (3, 9)):
        batch = scene(Car("B1>B2", 2), time=time, **LIGHTS)
        assert sight(batch)["free_ahead"] == pytest.approx(free / 9) and sight(batch)["green"] == (free == 9)


def test_the_mean_wait_for_a_light_is_part_of_the_time_of_its_street() -> None:
    """East and west have two green steps of six: who comes at each of the six waits 0, 0, 4, 3, 2, 1 steps."""
    batch = scene(Car("A2>B2", goal="D2"), crossroads="signals", signal_period=6, east_west_share=0.35)
    east, south = FREE + 10 / 6, FREE + 3 / 6
    mean = (east + south) / 2
    seen = sight(batch)
    longest = 7 * (east + QUEUE)
    assert seen["distance_straight"] == pytest.approx(2 * mean / longest)
    assert seen["time_straight"] == pytest.approx(2 * east / longest)
    assert seen["time_left"] == pytest.approx(2 * (east + south) / longest)


def test_cars_that_have_arrived_or_move_are_in_no_queue() -> None:
    batch = scene(Car("A2>B2", goal="C2"), Car("B2>C2", 1), Car("B2>C2", 3), waiting(2, goal="B2"))
    assert sight(batch)["time_straight"] == pytest.approx((FREE + 1) / LONGEST)
    drive(batch, "brake", "brake", "accelerate", "accelerate")
    assert sight(batch)["time_straight"] == pytest.approx((FREE + 0.5) / LONGEST)


@pytest.mark.nojit
def test_facts_tell_who_is_on_the_road_and_how_far_it_has_to_go() -> None:
    cars = [
        Car("A2>B2", 2, human=1, safety=1, goal="D1"),
        Car("A1>B1", 0, fast=0, goal="B1"),
        Car("B1>A1", 0, goal="D3"),
    ]
    facts = scene(*cars).show().facts
    assert facts["individual"][0].tolist() == [0, 1, 2, -1, -1]
    assert facts["sensitive"][0, :3, 0].tolist() == facts["group"][0, :3].tolist() == [1, 0, 0]
    assert facts["legitimate"][0, :3].tolist() == [[1, 1], [0, 0], [1, 0]]
    wanted: Any = [[(4 * 7 - 2) / 42, 1, 1], [7 / 42, 0, 0], [1, 1, 0]]
    np.testing.assert_allclose(facts["features"][0, :3], wanted, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------- start


@pytest.mark.parametrize("chosen", [{}, {"destination": "own"}])
def test_cars_begin_standing_in_different_cells_of_first_lanes(chosen: Any) -> None:
    batch = started(copies=30, **chosen)
    records = batch.records
    assert not records["speed"].any() and not records["side"].any() and not records["arrived"].any()
    city = City(4, 3)
    assert (city.ahead[records["street"]] >= 0).all() and records["at"].min() >= 0 and records["at"].max() <= LAST
    for record in records:
        assert len(set(zip(record["street"].tolist(), record["at"].tolist(), strict=True))) == 5
        for car in range(5):
            assert record["taken"][record["street"][car], 0, record["at"][car]] == car + 1
    assert ((records["taken"] > 0).sum(axis=(1, 2, 3)) == 5).all()


@uncompiled
def test_a_full_city_can_be_begun_in_too() -> None:
    batch = started(columns=2, rows=2, street_length=2, cars=16, hospital="A2")
    assert sorted(batch.records["taken"][0, :, 0].ravel().tolist())[-17:] == list(range(17))
    drive(batch)


def test_all_go_to_the_hospital_or_each_to_a_crossroads_that_it_does_not_come_to_anyway() -> None:
    assert (started(copies=30, hospital="C2").records["goal"] == 6).all()
    records = started(copies=30, destination="own").records
    assert (records["goal"] != City(4, 3).ahead[records["street"]]).all()
    assert set(records["goal"].ravel().tolist()) == set(range(12))


@pytest.mark.parametrize(
    ("share", "roadworks"), [(0, 0), (0.029, 0), (0.03, 1), (0.32, 5), (0.98, 17), (1, 17), (10 / 34, 5)]
)
def test_so_many_streets_have_road_works_in_both_directions(share: float, roadworks: int) -> None:
    """There are 17 streets; the number is the nearest one, the larger of two."""
    records, city = started(copies=20, roadworks_share=float(share)).records, City(4, 3)
    assert (records["dug"].sum(axis=1) == 2 * roadworks).all()
    for street in city.streets:
        there, back = city.both(street)
        assert (records["dug"][:, there] == records["dug"][:, back]).all()
    if 0 < roadworks < 17:
        assert len({record.tobytes() for record in records["dug"]}) > 5  # others in each episode


DUG = ["A1-B1", "A1-A2", "B1-C1", "A2-B2", "B2-C2", "C3-D3", "C3-C4", "E3-E4", "B4-C4", "D4-E4"]


def test_in_the_default_city_10_streets_have_road_works_the_same_in_each_seed() -> None:
    batch = Lanes(Traffic(), 2)
    batch.seed(0)
    batch.restart()
    city = batch.rules.city  # type: ignore[attr-defined]
    dug = [[city.street_name(street) for street in city.streets if lane["dug"][street]] for lane in batch.records]
    assert dug[0] == DUG
    assert len(dug[1]) == 10 and dug[1] != dug[0]


def test_a_city_of_two_columns_and_two_rows_needs_another_hospital_and_nothing_else() -> None:
    rules = Traffic(columns=2, rows=2, hospital="B2")
    assert rules.code["diggings"][0] == 1  # of 4 streets


@pytest.mark.parametrize(
    ("shares", "numbers"), [((0.4, 0.6, 0.2), (2, 3, 1)), ((0.0, 1.0, 0.5), (0, 5, 3)), ((0.29, 0.31, 0.9), (1, 2, 5))]
)
def test_exactly_the_given_share_of_the_cars_has_each_attribute(shares: Any, numbers: Any) -> None:
    names = ("human_share", "fast_share", "safety_share")
    records = started(copies=20, **dict(zip(names, shares, strict=True))).records
    for field, number in zip(("human", "fast", "safety"), numbers, strict=True):
        assert (records[field].sum(axis=1) == number).all()


# ------------------------------------------------------------------------------------------------------- twins


def test_with_all_three_off_it_changes_nothing_but_what_is_told_who_drives() -> None:
    chosen = {**OFF, "dawdling": 0.3, "human_dawdling": 0.3, "roadworks_share": 0.25, "crossroads": "signals"}
    one = started(copies=3, destination="own", **chosen)
    other = Lanes(one.rules, 3)
    other.restore(one.snapshot())
    other.rules.flip(other.records, np.array([[1, 1, 0, 0, 1], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0]], bool))
    others = [name != "human_driven" for name in FEATURES]
    assert (one.observe()[..., others] == other.observe()[..., others]).all()
    luck = np.random.default_rng(0)
    for _ in range(30):
        actions = np.where(luck.random((3, 5)) < 0.8, 6, 3) + luck.integers(0, 3, (3, 5))
        steps = one.advance(actions), other.advance(actions)
        assert (steps[0].observation[..., others] == steps[1].observation[..., others]).all()
        for field in ("reward", "terminated", "truncated"):
            assert (getattr(steps[0], field) == getattr(steps[1], field)).all()
        for name in ("individual", "features", "legitimate", "action", "outcome"):
            assert (steps[0].facts[name] == steps[1].facts[name]).all()
    for name in one.records.dtype.names or ():
        if name != "human":
            assert (one.records[name] == other.records[name]).all(), name
    assert one.records["arrived"].any()


@pytest.mark.nojit
@pytest.mark.parametrize(
    "on",
    [
        {"human_information": "static"},
        {"human_information": "times"},
        {"human_reaction": 1},
        {"human_dawdling": 1.0},
    ],
)
def test_each_of_them_alone_makes_a_difference(on: Any) -> None:
    cars = [Car("A2>B2", 0), Car("A2>B2", 1), Car("C2>B2", 3)]
    one, other = (scene(*[car._replace(human=human) for car in cars], **{**OFF, **on}) for human in (0, 1))
    others = [name != "human_driven" for name in FEATURES]
    seen = [[drive(batch).observation[..., others].tolist() for _ in range(3)] for batch in (one, other)]
    assert seen[0] != seen[1]


# ------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": 1}, "columns must be between 2 and 26, got 1"),
        ({"rows": 27}, "rows must be between 2 and 26, got 27"),
        ({"street_length": 1}, "street_length must be between 2 and 100, got 1"),
        ({"lanes": 5}, "lanes must be between 1 and 4, got 5"),
        ({"crossroads": "lights"}, "crossroads must be one of 'signals', 'right_of_way', got 'lights'"),
        ({"signal_period": 1}, "signal_period must be between 2 and 1000, got 1"),
        ({"east_west_share": 1.0}, "east_west_share must be between 0.05 and 0.95, got 1.0"),
        ({"offset_east_west": -1}, "offset_east_west must be between 0 and 999, got -1"),
        ({"offset_north_south": 0.5}, "offset_north_south must be an integer between 0 and 999, got 0.5"),
        ({"roadworks_share": 1.1}, "roadworks_share must be between 0 and 1, got 1.1"),
        ({"roadworks_speed": 0}, "roadworks_speed must be between 1 and 9, got 0"),
        ({"cars": 239}, "cars must be at most 238, the cells of the first lanes, got 239"),
        ({"cars": 0}, "cars must be between 1 and 10000, got 0"),
        ({"human_share": 1.1}, "human_share must be between 0 and 1, got 1.1"),
        ({"fast_speed": 10}, "fast_speed must be between 1 and 9, got 10"),
        ({"dawdling": -0.1}, "dawdling must be between 0 and 1, got -0.1"),
        ({"human_dawdling": "often"}, "human_dawdling must be a finite number between 0 and 1, got 'often'"),
        ({"human_reaction": 9}, "human_reaction must be between 0 and 8, got 9"),
        ({"human_information": "some"}, "human_information must be one of 'static', 'times', 'all', got 'some'"),
        ({"destination": "A1"}, "destination must be one of 'hospital', 'own', got 'A1'"),
        (
            {"columns": 2, "rows": 2, "hospital": "C2"},
            r"hospital must be a crossroads from A1 to B2 \(set hospital too if you change columns or rows\), got 'C2'",
        ),
        ({"hospital": "E1"}, "hospital must be a crossroads from A1 to D3 .*, got 'E1'"),
        ({"hospital": "A03"}, "hospital must be a crossroads from A1 to D3 .*, got 'A03'"),
        ({"hospital": 3}, "hospital must be a text, got 3"),
        (
            {"human_lanes": ["A1-C1"]},
            "human_lanes must be streets such as A1-B1, a column such as A, a row such as 1, "
            "or all; there is no 'A1-C1'",
        ),
        ({"human_lanes": "all"}, "human_lanes must be several values, got 'all'"),
        ({"human_lanes": [2]}, r"human_lanes\[0\] must be a text, got 2"),
        (
            {"human_lanes": ["A"], "lanes": 1},
            "lanes must be at least 2 with human_lanes, got 1",
        ),
        ({"toll_streets": ["1", "E"]}, "toll_streets must be streets such as A1-B1, .* there is no 'E'"),
        ({"toll": -1.0}, "toll must be at least 0, got -1.0"),
        ({"toll_for": "people"}, "toll_for must be one of 'everybody', 'ai_driven', got 'people'"),
        ({"arrival_reward": np.inf}, "arrival_reward must be a finite number at least 0, got inf"),
        ({"horizon": 0}, "horizon must be between 1 and 2147483646, got 0"),
    ],
)
def test_what_cannot_be_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Traffic(**{**SIZES, **CALM, **given})


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'taxis'. The parameters are: arrival_reward, cars, "
    ):
        Traffic(taxis=3)


def test_an_action_is_a_pedal_and_a_turn() -> None:
    words = ["brake left", "brake", "brake right", "keep left", "keep", "keep right", "left", "", "right"]
    assert list(map(action, words)) == list(range(9))
    assert ACTION_NAMES[0] == "brake, left" and ACTION_NAMES[7] == "accelerate, straight"


def test_the_keys_of_a_player_say_which_pedal_and_turn_they_are() -> None:
    keys = described_keys(Traffic())
    assert keys["0"] == "brake, left" and keys["5"] == "keep, right" and keys["6"] == "accelerate, left"


@pytest.mark.nojit
def test_the_steps_of_a_car_are_counted_while_it_is_on_the_road() -> None:
    batch = scene(Car("A2>B2", LAST - 1, goal="B2"), Car("A1>B1"))
    for _ in range(4):
        drive(batch, "accelerate", "brake")
    assert batch.records["steps"][0].tolist() == [2, 4, 0, 0, 0]
