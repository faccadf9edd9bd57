"""The numbers of a seed, on returns made by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fair_envs.experiments.seeds import Arm, SeedRow
from fair_envs.metrics import Returns
from fair_envs.reproduction.experiment import Result
from fair_envs.reproduction.measures import noise, numbers, series

HORIZON = 10
ATTRIBUTES: dict[str, Any] = {"sensitive": [0, 1, 0, 1], "preference": ["red", "red", "blue", "blue"]}


def result(*episodes: list[float], games: tuple[float, float] = (8.0, 4.0)) -> Result:
    """Four agents: full and half speed among red, then among blue."""
    game = {
        carries: Returns(np.full((len(episodes), 4), value), attributes={**ATTRIBUTES, "sensitive": [carries] * 4})
        for carries, value in zip((0, 1), games, strict=True)
    }
    ordinary = Returns(episodes, attributes=ATTRIBUTES)
    flipped = Returns(np.array(episodes) + 1, attributes={**ATTRIBUTES, "sensitive": [0, 0, 0, 0]})
    return Result(
        cell={},
        ordinary=ordinary,
        none=game[0],
        everybody=game[1],
        twins={"own": flipped},
        selected=np.array([[3, 1], [1, 1]]),
        executed=np.array([[3, 0], [1, 1]]),
        learning=np.array([[40.0, 2.0, 2.0], [80.0, 3.0, 1.0]]),
        seconds=1.0,
    )


def test_the_series_are_the_notions_episode_by_episode() -> None:
    found = series(result([40, 10, 20, 20], [10, 10, 10, 10]), horizon=HORIZON)
    assert found["return[without]"].tolist() == [3.0, 1.0]
    assert found["return[with]"].tolist() == [1.5, 1.0]
    assert found["dp_total"].tolist() == [30.0, 0.0]
    assert found["dp_ratio"] == pytest.approx([1 / 3, 0.0])
    assert found["dp_difference"].tolist() == [1.5, 0.0]
    assert found["csp_ratio[red]"] == pytest.approx([0.6, 0.0])
    assert found["csp_ratio[blue]"].tolist() == [0.0, 0.0]
    assert found["cf_ratio"] == pytest.approx([1 / 3, 1 / 3])
    assert found["game[without]"].tolist() == [0.8, 0.8]
    assert found["twin_own"] == pytest.approx([0.1, 0.1])


def arm_of(label: str, results: Sequence[Result]) -> Arm:
    """Return an arm with a row for each result."""
    rows = [
        SeedRow(
            arm=label,
            seed=seed,
            job=f"{label}/{seed}",
            code="",
            seconds=1.0,
            numbers=numbers(one, horizon=HORIZON, actions=("stay", "go")),
        )
        for seed, one in enumerate(results)
    ]
    return Arm(label, rows)


def test_the_numbers_are_means_over_episodes_and_signed_ones_may_cancel() -> None:
    found = numbers(result([30, 10, 30, 10], [10, 30, 10, 30]), horizon=HORIZON, actions=("stay", "go"))
    assert found["dp_ratio"] == 0
    assert found["|dp_ratio|"] == 0.5
    assert found["|dp_difference|"] == 2.0
    assert found["return[without]"] == found["return[with]"] == 2.0


def test_the_actions_are_shares_within_each_group() -> None:
    found = numbers(result([1, 1, 1, 1]), horizon=HORIZON, actions=("stay", "go"))
    assert [found[f"selected[without][{action}]"] for action in ("stay", "go")] == [0.75, 0.25]
    assert [found[f"executed[with][{action}]"] for action in ("stay", "go")] == [0.5, 0.5]
    assert found["selected, total variation"] == pytest.approx(0.25)


def test_the_learning_curve_has_each_groups_rewards() -> None:
    curve = arm_of("a", [result([40, 10, 20, 20])] * 2).curve("learned[without]")
    assert curve.times.tolist() == [40, 80]
    assert curve.seeds.tolist() == [[2, 3], [2, 3]]


def test_the_noise_floor_deals_the_attribute_anew() -> None:
    """Of two agents who earn 30 and two who earn 10, the dealt groups are alike in 4 of 6 deals."""
    episodes = [[30.0, 10.0, 30.0, 10.0]] * 40
    found = noise(result(*episodes), form="difference")
    assert found["dp_difference"] == pytest.approx(20 * 2 / 6, rel=0.15)
    assert found["csp_difference[red]"] == 20  # one agent of each group: it only changes its sign
    assert found["cf_difference"] == 0  # all episodes of a game are the same


def test_the_noise_floor_is_where_groups_that_are_treated_alike_are() -> None:
    rng = np.random.default_rng(0)
    alike = result(*rng.normal(10, 3, (200, 4)).tolist())
    found = numbers(alike, horizon=HORIZON, actions=("stay", "go"))
    for name in ("dp_ratio", "dp_difference", "csp_ratio[red]"):
        assert found[f"|{name}|"] == pytest.approx(found[f"noise |{name}|"], rel=0.2)
