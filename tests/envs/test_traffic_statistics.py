"""What holds in every city at every step of FairTraffic, the traffic that is known from theory, and who gets there."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from fair_envs.core import Lanes
from fair_envs.envs.traffic.city import City
from fair_envs.envs.traffic.rules import Traffic
from fair_envs.metrics import counterfactual_fairness, demographic_parity, mean_interval
from fair_envs.support.aliases import Floats, Floats32, Ints
from fair_envs.wrappers.twin import TwinEpisodes, Twins
from tests.envs.traffic_scenes import CALM, FEATURES, TURNS, Car, action, drive, put, scene, started, street_of
from tests.helpers import uncompiled

# ---------------------------------------------------------------------------------------- what holds at every step


class Turn(NamedTuple):
    """One step of a batch: its lanes before and after, what was earned, and what is seen then."""

    rules: Traffic
    before: Any  # the records, shape (B,)
    after: Any
    reward: Floats  # (B, cars)
    observation: Floats32

    def cars(self) -> Iterator[tuple[np.void, np.void, int]]:
        """Return both records and the number of each car that was on the road."""
        for before, after in zip(self.before, self.after, strict=True):
            for car in np.flatnonzero(before["arrived"] == 0):
                yield before, after, int(car)


def play(rules: Traffic, *, copies: int, steps: int, seed: int) -> Iterator[Turn]:
    """Play episodes by chance, accelerating most of the time."""
    batch, luck = Lanes(rules, copies), np.random.default_rng(seed)
    batch.seed(seed)
    batch.restart()
    for _ in range(steps):
        shape = (copies, batch.agents)
        actions = 3 * luck.choice(3, shape, p=[0.1, 0.2, 0.7]) + luck.integers(0, 3, shape)
        before = batch.snapshot()
        step = batch.advance(actions)
        yield Turn(rules, before, batch.snapshot(), step.reward, step.observation)


def left(before: np.void, after: np.void, car: int | np.integer[Any]) -> bool:
    """Return whether a car has left its street."""
    return bool(after["arrived"][car] or after["street"][car] != before["street"][car])


def check_places(turn: Turn) -> None:
    """Each car has a cell of its own, in which it is noted; none is lost."""
    for record in turn.after:
        noted = np.zeros_like(record["taken"])
        on_the_road = np.flatnonzero(record["arrived"] == 0)
        for car in on_the_road:
            place = record["street"][car], record["side"][car], record["at"][car]
            assert noted[place] == 0, "two cars in a cell"
            noted[place] = car + 1
        assert (record["taken"] == noted).all()
        assert record["driving"] == len(on_the_road)
    assert (turn.after["arrived"] >= turn.before["arrived"]).all()


def check_moves(turn: Turn) -> None:
    """Each car drives its speed, which has its limits, along its lane and into one street beyond at most."""
    params, length = turn.rules.params, turn.rules.params.street_length
    ahead = turn.rules.city.ahead
    for before, after, car in turn.cars():
        street, at, speed = before["street"][car], before["at"][car], after["speed"][car]
        most = params.fast_speed if before["fast"][car] else params.slow_speed
        most = min(most, params.roadworks_speed) if before["dug"][street] else most
        assert 0 <= speed <= min(most, before["speed"][car] + 1)
        if after["arrived"][car]:
            assert ahead[street] == before["goal"][car] and at + speed >= length
        elif not left(before, after, car):
            assert (after["side"][car], after["at"][car]) == (before["side"][car], at + speed)
        else:
            beyond = after["street"][car]
            assert ahead[street] != before["goal"][car]
            assert beyond // 4 == ahead[street] and ahead[beyond] not in (-1, street // 4)
            assert after["at"][car] + length == at + speed
            assert not before["dug"][beyond] or after["at"][car] < params.roadworks_speed


def check_order(turn: Turn) -> None:
    """In a lane nobody passes another, the first alone leaves, and one alone comes in, behind all."""
    for before, after in zip(turn.before, turn.after, strict=True):
        on_the_road = np.flatnonzero(before["arrived"] == 0)
        entered = set()
        for car in on_the_road:
            if left(before, after, car) and not after["arrived"][car]:
                place = int(after["street"][car]), int(after["side"][car])
                assert place not in entered
                entered.add(place)
        for one, other in combinations(on_the_road.tolist(), 2):
            lanes = [
                (record["street"][one], record["side"][one]) == (record["street"][other], record["side"][other])
                for record in (before, after)
            ]
            behind, first = (one, other) if before["at"][one] < before["at"][other] else (other, one)
            if lanes[0]:
                assert not left(before, after, behind)
                assert left(before, after, first) or after["at"][behind] < after["at"][first]
            elif lanes[1] and not after["arrived"][[one, other]].any():
                came, was = (one, other) if left(before, after, one) else (other, one)
                assert not left(before, after, was) and after["at"][came] < after["at"][was]


def check_lights(turn: Turn) -> None:
    """Nobody crosses against the red light."""
    params, city = turn.rules.params, turn.rules.city
    if params.crossroads != "signals":
        return
    for before, after, car in turn.cars():
        if left(before, after, car):
            row, column = divmod(int(city.ahead[before["street"][car]]), city.columns)
            late = params.offset_east_west * column + params.offset_north_south * row
            phase = (int(before["time"]) - late) % params.signal_period
            steps = min(max(round(params.east_west_share * params.signal_period), 1), params.signal_period - 1)
            assert (phase < steps) == (before["street"][car] % 2 == 0)


def check_lanes(turn: Turn) -> None:
    """No machine enters a lane for people."""
    params, city = turn.rules.params, turn.rules.city
    reserved = city.chosen(params.human_lanes, argument="human_lanes")
    for before, after, car in turn.cars():
        if not after["human"][car] and not after["arrived"][car] and left(before, after, car):
            assert not reserved[after["street"][car]] or after["side"][car] < params.lanes - 1


def check_rewards(turn: Turn) -> None:
    """Each car is paid as the page says; who has arrived before is not."""
    params, city = turn.rules.params, turn.rules.city
    tolls = city.chosen(params.toll_streets, argument="toll_streets")
    wanted = np.zeros_like(turn.reward)
    for b, (before, after) in enumerate(zip(turn.before, turn.after, strict=True)):
        for car in np.flatnonzero(before["arrived"] == 0):
            cells = params.street_length - 1 - before["at"][car] if after["arrived"][car] else after["speed"][car]
            wanted[b, car] -= params.time_cost + params.distance_cost * cells
            if after["arrived"][car]:
                wanted[b, car] += params.arrival_reward
            elif left(before, after, car) and tolls[after["street"][car]]:
                wanted[b, car] -= 0 if params.toll_for == "ai_driven" and before["human"][car] else params.toll
    np.testing.assert_allclose(turn.reward, wanted)


def check_sight(turn: Turn) -> None:
    """All that is seen is between 0 and 1; who has arrived sees nothing."""
    assert (turn.observation >= 0).all() and (turn.observation <= 1).all()
    assert (turn.observation[..., 0] == (turn.after["arrived"] == 0)).all()
    assert not turn.observation[turn.after["arrived"] == 1].any()


CHECKS = (check_places, check_moves, check_order, check_lights, check_lanes, check_rewards, check_sight)

CITIES: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "right of way": {"crossroads": "right_of_way", "destination": "own", "safety_share": 0.2},
    "lanes for people": {"human_lanes": ["all"], "human_reaction": 5, "human_dawdling": 0.9, "signal_period": 12},
    "tolls": {"toll": 0.3, "toll_streets": ["B", "2"], "toll_for": "ai_driven", "east_west_share": 0.8},
    "offsets": {
        "offset_east_west": 7,
        "offset_north_south": 3,
        "fast_speed": 9,
        "roadworks_speed": 2,
        "hospital": "A1",
    },
}


@pytest.mark.parametrize("name", CITIES)
def test_in_every_step_all_that_has_to_hold_does(name: str) -> None:
    rules, crossings = Traffic(**CITIES[name]), 0
    for turn in play(rules, copies=4, steps=60, seed=1):
        for check in CHECKS:
            check(turn)
        crossings += int((turn.after["street"] != turn.before["street"]).sum())
    assert crossings > 200


@st.composite
def cities(draw: Any) -> Traffic:
    """Draw a city, from one that is nearly full to one that is nearly empty."""
    columns, rows, length = draw(st.integers(2, 4)), draw(st.integers(2, 3)), draw(st.integers(2, 6))
    lanes, streets = draw(st.integers(1, 3)), len(City(columns, rows).streets)
    chance = st.sampled_from([0.0, 0.3, 1.0])
    period = draw(st.integers(2, 7))
    return Traffic(
        columns=columns,
        rows=rows,
        street_length=length,
        lanes=lanes,
        cars=draw(st.integers(1, min(20, 2 * streets * length))),
        crossroads=draw(st.sampled_from(["signals", "right_of_way"])),
        signal_period=period,
        offset_east_west=draw(st.integers(0, 9)),
        human_lanes=draw(st.sampled_from([[], ["all"], ["A", "B1-B2"]])) if lanes > 1 else [],
        roadworks_share=draw(chance),
        roadworks_speed=draw(st.integers(1, 3)),
        fast_speed=draw(st.integers(3, 9)),
        destination=draw(st.sampled_from(["hospital", "own"])),
        hospital="B2",
        dawdling=draw(chance),
        human_dawdling=draw(chance),
        human_reaction=draw(st.integers(0, period // 2 - 1)),
        human_information=draw(st.sampled_from(["static", "times", "all"])),
        toll=0.5,
        toll_streets=draw(st.sampled_from([[], ["A"], ["2"]])),
    )


@uncompiled
@settings(max_examples=25)
@given(rules=cities(), seed=st.integers(0, 1000))
def test_in_any_city_all_that_has_to_hold_does(rules: Traffic, seed: int) -> None:
    for turn in play(rules, copies=1, steps=12, seed=seed):
        for check in CHECKS:
            check(turn)


@uncompiled
@settings(max_examples=15)
@given(rules=cities(), seed=st.integers(0, 1000))
def test_in_any_city_who_drives_changes_nothing_else_with_all_three_off(rules: Traffic, seed: int) -> None:
    same = {"human_information": "all", "human_reaction": 0, "human_dawdling": rules.params.dawdling}
    rules = Traffic(**{**rules.params._asdict(), **same, "human_lanes": [], "human_share": 0.0})
    people = Traffic(**{**rules.params._asdict(), "human_share": 1.0})
    others = [name != "human_driven" for name in FEATURES]
    both = (play(own, copies=1, steps=12, seed=seed) for own in (rules, people))
    for one, other in zip(*both, strict=True):
        assert (one.reward == other.reward).all()
        assert (one.observation[..., others] == other.observation[..., others]).all()


# ------------------------------------------------------------------------------------------------- the ways


@pytest.mark.parametrize(("columns", "rows"), [(2, 2), (3, 2), (2, 5), (5, 4)])
def test_distances_are_those_of_the_shortest_ways_without_turning_back(columns: int, rows: int) -> None:
    city = City(columns, rows)
    wanted = ways_by(city, np.ones(4 * city.crossroads))
    assert (city.far == np.where(np.isfinite(wanted), wanted, 0)).all()


def wait(green: int, period: int) -> float:
    """Return the mean steps until a light is green over the steps of a period at which one may come."""
    times: list[int] = [next(k for k in range(period) if (time + k) % period < green) for time in range(period)]
    return sum(times) / period


def test_the_times_of_ways_are_those_of_the_shortest_ways_as_streets_are() -> None:
    share, period = 0.7, 10
    chosen: dict[str, Any] = {"signal_period": period, "east_west_share": share, "destination": "own"}
    rules = Traffic(**chosen, human_information="times", cars=30, human_share=0.5)
    city, params = rules.city, rules.params
    waits = wait(7, period), wait(3, period)
    free = params.street_length / params.fast_speed + sum(waits) / 2
    plain = ways_by(city, np.ones(4 * city.crossroads))
    queue = min(params.street_length, params.cars / params.lanes)
    longest = (1 + plain[np.isfinite(plain)].max()) * (params.street_length + max(waits) + queue)
    compared = 0
    for time, turn in enumerate(play(rules, copies=3, steps=60, seed=2)):
        if time % 10:
            continue
        for record, observation in zip(turn.after, turn.observation, strict=True):
            ways = ways_by(city, taken_now(rules, record, waits))
            for car in np.flatnonzero(record["arrived"] == 0):
                seen = dict(zip(FEATURES, observation[car].tolist(), strict=True))
                street, goal = int(record["street"][car]), int(record["goal"][car])
                end = int(city.ahead[street])
                for k, turning in enumerate(TURNS):
                    into = 4 * end + (street + k - 1) % 4
                    exists = city.ahead[into] >= 0
                    assert seen[f"exists_{turning}"] == exists
                    if exists:
                        steps = 0 if end == goal else ways[into, goal]
                        assert seen[f"time_{turning}"] == pytest.approx(steps / longest, abs=1e-6)
                        steps = 0 if end == goal else plain[into, goal] * free
                        assert seen[f"distance_{turning}"] == pytest.approx(steps / longest, abs=1e-6)
                        compared += steps > 0
    assert compared > 500


def taken_now(rules: Traffic, record: np.void, waits: Any) -> Floats:
    """Return the steps that each street takes."""
    city, params = rules.city, rules.params
    takes = np.zeros(4 * city.crossroads)
    standing = (record["arrived"] == 0) & (record["speed"] == 0)
    for street in np.flatnonzero(city.ahead >= 0):
        speed = params.roadworks_speed if record["dug"][street] else params.fast_speed
        queue = int((record["street"][standing] == street).sum())
        takes[street] = params.street_length / speed + waits[street % 2] + queue / params.lanes
    return takes


def ways_by(city: City, takes: Floats) -> Floats:
    """Return the steps of the shortest ways by driving into each street to each crossroads; nobody turns back.

    The places of the graph are the streets, and behind them the crossroads as goals.
    """
    count, exists = 4 * city.crossroads, np.flatnonzero(city.ahead >= 0).tolist()
    graph = np.zeros((count + city.crossroads,) * 2)
    for one in exists:
        graph[one, count + city.ahead[one]] = takes[one]
        for other in exists:
            if other // 4 == city.ahead[one] and (other - one) % 4 != 2:
                graph[one, other] = takes[one]
    return np.asarray(dijkstra(csr_array(graph))[:count, count:])


# ------------------------------------------------------------------------------------------------- the start

STARTS = 10_000


@cache
def starts() -> Any:
    """Return many starts: two of five cars are human-driven, three fast, one careful."""
    shares = {"human_share": 0.4, "fast_share": 0.6, "safety_share": 0.2}
    return started(copies=STARTS, **shares, roadworks_share=3 / 17, destination="own").records


@pytest.mark.parametrize(("field", "carriers"), [("human", 2), ("fast", 3), ("safety", 1)])
def test_each_set_of_carriers_is_as_likely(field: str, carriers: int) -> None:
    sets, counts = np.unique(starts()[field], axis=0, return_counts=True)
    assert len(sets) == len(list(combinations(range(5), carriers)))
    assert stats.chisquare(counts).pvalue > 0.001


def test_attributes_are_independent_of_each_other_and_of_where_a_car_begins() -> None:
    records = starts()
    columns = np.concatenate([records[field] for field in ("human", "fast", "safety", "street", "at")], axis=1)
    found = np.abs(np.corrcoef(columns.T))
    for k in range(5):
        found[5 * k : 5 * k + 5, 5 * k : 5 * k + 5] = 0  # one attribute of two cars: not independent
    assert found.max() < 5 / np.sqrt(STARTS)


def test_each_cell_of_a_first_lane_is_as_likely_to_begin_in() -> None:
    records = starts()
    cells = np.bincount((7 * records["street"] + records["at"]).ravel(), minlength=48 * 7).reshape(48, 7)
    streets = City(4, 3).ahead >= 0
    assert not cells[~streets].any()
    assert stats.chisquare(cells[streets].ravel()).pvalue > 0.001


def test_each_street_is_as_likely_to_have_road_works() -> None:
    streets = City(4, 3).streets
    dug = starts()["dug"][:, streets].sum(axis=0)
    assert stats.chisquare(dug).pvalue > 0.001
    sets = np.unique(starts()["dug"], axis=0)
    assert len(sets) > 0.9 * len(list(combinations(streets, 3)))


def test_each_other_crossroads_is_as_likely_to_be_a_goal() -> None:
    records, ahead = starts(), City(4, 3).ahead
    chosen = ahead[records["street"]] == 5
    counts = np.bincount(records["goal"][chosen], minlength=12)
    assert counts[5] == 0 and stats.chisquare(np.delete(counts, 5)).pvalue > 0.001


# ----------------------------------------------------------------------------------------------- dawdling


def test_people_and_machines_dawdle_with_their_chances_each_car_and_step_for_itself() -> None:
    ways = ["A1>B1", "A2>B2", "A3>B3", "B1>C1", "B2>C2"]
    cars = [Car(way, human=k % 2) for k, way in enumerate(ways)]
    batch = scene(*cars, copies=STARTS, dawdling=0.1, human_dawdling=0.4)
    drive(batch)
    first = batch.records["speed"] == 0
    drive(batch)
    second = batch.records["speed"] == np.where(first, 0, 1)
    for dawdled in (first, second):
        for car in range(5):
            chance = 0.4 if car % 2 else 0.1
            assert stats.binomtest(int(dawdled[:, car].sum()), STARTS, chance).pvalue > 0.001
    both = np.concatenate([first, second], axis=1)
    assert np.abs(np.corrcoef(both.T) - np.eye(10)).max() < 5 / np.sqrt(STARTS)


# ------------------------------------------------------------------------------------------- a ring of streets

RING = ("A1>B1", "B1>B2", "B2>A2", "A2>A1")  # clockwise: always to the right
CELLS, MOST = 100, 5


def on_a_ring(counts: list[int], *, dawdling: float, steps: int, seed: int = 0) -> Ints:
    """Return how many cells the cars of a ring drove in each step, for each number of cars, shape (steps, counts)."""
    sizes = {"columns": 3, "rows": 2, "street_length": CELLS // 4, "lanes": 1, "cars": CELLS}
    rules = Traffic(**{**CALM, **sizes, "hospital": "C1", "dawdling": dawdling, "fast_speed": MOST})
    batch, luck = Lanes(rules, len(counts)), np.random.default_rng(seed)
    batch.seed(seed)
    batch.restart()
    places = [divmod(cell, CELLS // 4) for cell in range(CELLS)]
    put(
        batch,
        [
            [Car(RING[places[k][0]], places[k][1], goal="C1") for k in luck.permutation(CELLS)[:count].tolist()]
            for count in counts
        ],
    )
    actions, driven = np.full((len(counts), CELLS), action("right")), []
    for _ in range(steps):
        batch.advance(actions)
        driven.append(np.where(batch.records["arrived"], 0, batch.records["speed"]).sum(axis=1))
    assert (batch.records["driving"] == counts).all()
    assert np.isin(batch.records["street"][-1, : counts[-1]], [street_of(City(3, 2), way) for way in RING]).all()
    return np.array(driven)


def test_without_dawdling_the_flow_on_a_ring_is_exactly_that_of_the_fundamental_diagram() -> None:
    counts = [1, 8, 16, 17, 20, 34, 50, 73, 99, 100]
    driven = on_a_ring(counts, dawdling=0.0, steps=400)[300:]
    assert (driven == [min(MOST * count, CELLS - count) for count in counts]).all()


def test_with_dawdling_the_flow_rises_and_falls_below_that_and_is_largest_at_a_lower_density() -> None:
    counts = [1, 4, 8, 12, 16, 25, 40, 60, 80, 95]
    flow = on_a_ring(counts, dawdling=0.3, steps=1000)[200:].mean(axis=0)
    best = int(flow.argmax())
    assert (np.diff(flow)[:best] > 0).all() and (np.diff(flow)[best:] < 0).all()
    assert (flow < [min(MOST * count, CELLS - count) for count in counts]).all()
    assert counts[best] == 12  # of those without dawdling, 16
    assert flow[0] == pytest.approx(MOST - 0.3, abs=0.06)  # one car alone


# ------------------------------------------------------------------------------------- who gets there, and when

OFF: dict[str, Any] = {"human_information": "all", "human_reaction": 0, "human_dawdling": 0.1}
ALONE: dict[str, dict[str, Any]] = {
    "information": {"human_information": "static"},
    "reaction": {"human_reaction": 1},
    "dawdling": {"human_dawdling": 0.3},
}


def soonest(observation: NDArray[Any], uniforms: Floats) -> Ints:
    """Return the policy that always accelerates, and turns where the observed time to the goal is least."""
    exists, time = (
        observation[..., [FEATURES.index(f"{name}_{turn}") for turn in TURNS]] for name in ("exists", "time")
    )
    return np.asarray(action("left") + np.where(exists > 0, time, 2).argmin(axis=-1))


@cache
def twins(on: str) -> TwinEpisodes:
    """Play 300 episodes, and the same with everybody driven by machines, with one difference alone, all, or none."""
    chosen = {**OFF, **ALONE[on]} if on in ALONE else {} if on == "all" else OFF
    return Twins(Traffic(**chosen), lanes=100).run(soonest, episodes=300, seed=0, flip="protected")


def gap(played: TwinEpisodes) -> Any:
    """Return how much more machines earn than people, with its 95 % interval."""
    return mean_interval(demographic_parity(played.factual, sensitive="human_driven", form="difference"))


def test_without_any_difference_people_earn_as_much_as_machines_and_as_their_twins() -> None:
    played = twins("none")
    assert gap(played).low < 0 < gap(played).high
    assert (played.factual.values == played.counterfactual.values).all()
    assert played.factual.values.std() > 0.1 and (played.flipped.sum(axis=1) == 15).all()


@pytest.mark.parametrize("on", [*ALONE, "all"])
def test_each_difference_alone_is_to_the_disadvantage_of_people(on: str) -> None:
    played = twins(on)
    assert gap(played).low > 0
    as_machines = counterfactual_fairness(
        played.factual, played.counterfactual, sensitive="human_driven", form="difference"
    )
    assert mean_interval(as_machines).low > 0


def test_the_differences_add_up() -> None:
    assert gap(twins("all")).value > max(gap(twins(on)).value for on in ALONE)
