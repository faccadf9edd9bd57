"""Scenes of FairTraffic: cars set by hand in a small city, driven by words, and where they are then."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fair_envs.core import Lanes, Step
from fair_envs.envs.traffic.city import STEPS, City
from fair_envs.envs.traffic.rules import MOMENTS, UNSAID, Traffic, take_in
from fair_envs.support.aliases import Floats32

SIZES = {"columns": 4, "rows": 3, "street_length": 7, "lanes": 2, "cars": 5}
"""One layout for all scenes that need no other: A1 to D1 in the north, A3 to D3 in the south."""

TOWN: dict[str, Any] = {**SIZES, "hospital": "B2", "roadworks_share": 0.0, "horizon": 20}
"""A town of this layout, as the command line and a search take it."""

CALM = {"roadworks_share": 0.0, "dawdling": 0.0, "human_dawdling": 0.0, "crossroads": "right_of_way", "hospital": "D1"}
"""Nothing by chance, no lights, and a goal that is out of the way."""

PEDALS, TURNS = ("brake", "keep", "accelerate"), ("left", "straight", "right")
FEATURES = Traffic().observed_features(Traffic().params)


class Car(NamedTuple):
    """A car of a scene."""

    way: str  # the direction of a street: from "A2" to "B2" is "A2>B2"
    at: int = 0  # cell
    side: int = 0  # lane of the street
    speed: int = 0
    human: int = 0
    fast: int = 1
    safety: int = 0
    goal: str = "D1"


def started(*, copies: int = 1, **parameters: Any) -> Lanes:
    """Return so many episodes that have just begun, with these parameters in place of `SIZES` and `CALM`."""
    batch = Lanes(Traffic(**{**SIZES, **CALM, **parameters}), copies)
    batch.seed(0)
    batch.restart()
    return batch


def scene(*cars: Car, copies: int = 1, time: int = 0, dug: Sequence[str] = (), **parameters: Any) -> Lanes:
    """Return episodes that hold these cars; all others have arrived.

    Args:
        cars: At most as many as the parameters say.
        copies: How many such episodes; chance is each one's own.
        time: Steps of the episode that are over, in which the cars stood where they stand.
        dug: Names of the streets with road works, such as ``"B2-C2"``.
        parameters: In place of `SIZES` and `CALM`.
    """
    one = started(**parameters)
    put(one, [cars], time=time, dug=dug)
    if copies == 1:
        return one
    batch = started(copies=copies, **parameters)
    for name in one.records.dtype.names or ():
        if name not in ("seed", "episode", "key"):
            batch.records[name] = one.records[name]
    return batch


def put(batch: Lanes, scenes: Sequence[Sequence[Car]], *, time: int = 0, dug: Sequence[str] = ()) -> None:
    """Put a scene into each lane, in place of all that is there, and let the drivers see it."""
    records, city = batch.records, batch.rules.city  # type: ignore[attr-defined]
    records["time"] = time
    records["taken"] = 0
    records["arrived"] = 1
    records["turn"] = UNSAID
    records["dug"] = city.chosen(dug, argument="dug")
    for b, cars in enumerate(scenes):
        records["driving"][b] = len(cars)
        for i, car in enumerate(cars):
            street = street_of(city, car.way)
            values = car._replace(way=street, goal=city.find(car.goal, argument="goal"))._asdict()  # type: ignore[arg-type]
            values["street"] = values.pop("way")
            for name, value in values.items():
                records[name][b, i] = value
            records["arrived"][b, i] = 0
            assert not records["taken"][b, street, car.side, car.at], "a cell holds one car"
            records["taken"][b, street, car.side, car.at] = i + 1
    see(batch)


def see(batch: Lanes) -> None:
    """Work out what there is to see in lanes set by hand, now and at the times that people remember."""
    lanes, params = batch.records.view(np.recarray), batch.rules.code.view(np.recarray)[0]
    for lane in lanes:
        for time in range(max(0, lane.time - MOMENTS + 1), lane.time + 1):
            take_in(lane, params, time)


def street_of(city: City, way: str) -> int:
    """Return the number of a direction such as ``"A2>B2"``."""
    begin, end = (divmod(city.find(name, argument="way"), city.columns) for name in way.split(">"))
    heading = STEPS.index((end[1] - begin[1], end[0] - begin[0]))
    return 4 * (begin[0] * city.columns + begin[1]) + heading


def way_of(city: City, street: int) -> str:
    """Return the name of a direction, such as ``"A2>B2"``."""
    return f"{city.name(street // 4)}>{city.name(int(city.ahead[street]))}"


def action(words: str) -> int:
    """Return the action of a choice such as ``"brake left"``; by default a car accelerates and goes straight on."""
    pedal = next((k for k, word in enumerate(PEDALS) if word in words), 2)
    turn = next((k for k, word in enumerate(TURNS) if word in words), 1)
    return 3 * pedal + turn


def drive(batch: Lanes, *choices: str) -> Step:
    """Play a step in which the first cars choose so (see `action`), and the others accelerate straight on."""
    actions = [action(words) for words in choices] + [action("")] * (batch.agents - len(choices))
    return batch.advance(np.tile(actions, (batch.count, 1)))


def place(batch: Lanes, car: int = 0, lane: int = 0) -> tuple[str, int, int] | str:
    """Return where a car is: direction, lane of the street and cell; or that it has arrived."""
    record = batch.records[lane]
    if record["arrived"][car]:
        return "arrived"
    city = batch.rules.city  # type: ignore[attr-defined]
    return way_of(city, record["street"][car]), int(record["side"][car]), int(record["at"][car])


def cells(batch: Lanes, cars: int) -> list[int]:
    """Return the cells of the first cars of the first lane."""
    found: list[int] = batch.records["at"][0, :cars].tolist()
    return found


def speeds(batch: Lanes, cars: int) -> list[int]:
    """Return how far the first cars of the first lane drove in the last step."""
    found: list[int] = batch.records["speed"][0, :cars].tolist()
    return found


def sight(batch: Lanes, car: int = 0, lane: int = 0) -> dict[str, float]:
    """Return what a car's driver sees, by name."""
    row: Floats32 = batch.observe()[lane, car]
    return dict(zip(FEATURES, row.tolist(), strict=True))
