"""Drivers of FairTraffic choose what they say they choose, by what they are shown."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs.core import Lanes
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.envs.traffic.policies import DRIVERS, RandomTurns, ShortestPath, ShortestTime, Turns
from fair_envs.envs.traffic.rules import OF_TURN, SEEN_OF_TURN, Traffic
from fair_envs.wrappers.twin import Twins

LEFT, STRAIGHT, RIGHT = range(3)
RULES = Traffic()


def shown(**columns: list[float]) -> Any:
    """Return the observation of one car in one lane; every street exists unless it is said."""
    told = np.zeros((1, 1, OF_TURN + 3 * len(SEEN_OF_TURN)), np.float32)
    for name, values in ({"exists": [1.0, 1.0, 1.0]} | columns).items():
        for turn, value in enumerate(values):
            told[..., OF_TURN + turn * len(SEEN_OF_TURN) + SEEN_OF_TURN.index(name)] = value
    return told


def turn(driver: Any, observation: Any, uniform: float = 0.5) -> int:
    action = int(driver.act(observation, np.array([[uniform]]))[0, 0])
    assert action // 3 == 2  # accelerates
    return action % 3


def test_turns_are_read_by_name() -> None:
    assert Turns(shown(time=[0.25, 0.5, 0.75]))["time"].tolist() == [[[0.25, 0.5, 0.75]]]


def test_the_shortest_path_knows_no_traffic_and_the_shortest_time_does() -> None:
    observation = shown(distance=[0.2, 0.1, 0.3], time=[0.2, 0.4, 0.1])
    assert turn(ShortestPath(RULES), observation) == STRAIGHT
    assert turn(ShortestTime(RULES), observation) == RIGHT


def test_a_street_that_does_not_exist_is_never_chosen() -> None:
    observation = shown(exists=[0, 1, 1], distance=[0.0, 0.2, 0.1], time=[0.0, 0.2, 0.1])
    for kind in (ShortestPath, ShortestTime):
        assert turn(kind(RULES), observation) == RIGHT
    assert {turn(RandomTurns(RULES), observation, luck) for luck in np.linspace(0, 0.999, 20)} == {STRAIGHT, RIGHT}


def test_of_equal_turns_chance_takes_each_as_often() -> None:
    observation = shown(distance=[0.1, 0.3, 0.1])
    chosen = [turn(ShortestPath(RULES), observation, luck) for luck in np.linspace(0, 1, 1000, endpoint=False)]
    assert chosen.count(LEFT) == chosen.count(RIGHT) == 500
    assert [turn(RandomTurns(RULES), shown(), luck) for luck in (0.1, 0.5, 0.9)] == [LEFT, STRAIGHT, RIGHT]


def test_announced_cars_count_as_steps_each() -> None:
    unit = float(RULES.code["per_step"][0])
    one_car = 1 / RULES.params.cars
    observation = shown(time=[10 * unit, 9.5 * unit, 1], announced=[0, one_car, 0])
    assert turn(ShortestTime(RULES, per_car=0.4), observation) == STRAIGHT
    assert turn(ShortestTime(RULES, per_car=0.6), observation) == LEFT


def test_tolls_count_as_the_steps_that_cost_as_much() -> None:
    rules = Traffic(time_cost=0.02)
    unit = float(rules.code["per_step"][0])
    observation = shown(time=[10 * unit, 7 * unit, 1], toll=[0, 0.05, 0])  # 2.5 steps
    assert turn(ShortestTime(rules), observation) == STRAIGHT
    observation = shown(time=[10 * unit, 8 * unit, 1], toll=[0, 0.05, 0])
    assert turn(ShortestTime(rules), observation) == LEFT
    assert turn(ShortestTime(rules, tolls=False), observation) == STRAIGHT


def test_who_knows_the_way_arrives_sooner_and_who_knows_the_traffic_earlier_still() -> None:
    """All cars are driven by machines, the same episodes by each driver."""
    rules = Traffic(human_share=0.0, roadworks_share=12 / 31)
    returns = {}
    for name, driver in DRIVERS.items():
        lanes = Lanes(rules, 64)
        lanes.seed(0)
        step, act = lanes.restart(), driver(rules)
        luck = np.random.default_rng(0)
        total = np.zeros(64)
        for _ in range(rules.params.horizon):
            going = ~lanes.records["over"].astype(bool)
            step = lanes.advance(act.act(lanes.observe(), luck.random((64, rules.params.cars))), mask=going)
            total += step.reward.mean(axis=1)
        returns[name] = total
    for worse, better in (("random-turns", "shortest-path"), ("shortest-path", "shortest-time")):
        gain = returns[better] - returns[worse]
        assert gain.mean() > 3 * gain.std() / 8  # of 64 episodes


def test_without_what_being_human_driven_does_twins_are_the_same() -> None:
    rules = Traffic(human_information="all", human_reaction=0, human_dawdling=0.1)
    pairs = Twins(rules, lanes=32).run(ShortestTime(rules), episodes=32, flip="protected")
    np.testing.assert_array_equal(pairs.factual.values, pairs.counterfactual.values)


@pytest.mark.parametrize("kind", DRIVERS.values())
def test_drivers_refuse_another_environment(kind: Any) -> None:
    with pytest.raises(ValueError, match="rules must be those of FairTraffic, got those of harvest"):
        kind(Harvest())


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="per_car must be at least 0, got -1"):
        ShortestTime(RULES, per_car=-1)
    with pytest.raises(ValueError, match="tolls must be True or False, got 'no'"):
        ShortestTime(RULES, tolls="no")  # type: ignore[arg-type]


def test_drivers_need_no_torch() -> None:
    program = "import sys, fair_envs.envs.traffic.policies; print(*{'torch', 'stable_baselines3'} & set(sys.modules))"
    folder = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
