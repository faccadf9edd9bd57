"""The numbers of results, arms and claims, on returns made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs.experiments import tables
from fair_envs.metrics import Returns
from fair_envs.reproduction.experiment import Result
from fair_envs.reproduction.measures import Arm, largest_absolute, series
from fair_envs.support.aliases import Floats

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


def test_the_learning_curve_is_the_ratio_of_what_the_groups_earned_in_each_rollout() -> None:
    steps, ratios = Arm("a", [result([40, 10, 20, 20])] * 2, HORIZON).learning()
    assert steps.tolist() == [40, 80]
    assert ratios.tolist() == [[0, 0.5], [0, 0.5]]


def test_the_trend_is_how_far_a_straight_line_through_the_second_half_rises() -> None:
    def learning(rise: float) -> Floats:
        ratio = np.array([0.9, 0.9, 0.2, 0.2 + rise / 2, 0.2 + rise])  # of rollouts that end after 1 to 5 steps
        return np.stack([np.arange(1.0, 6.0), 1 + ratio, 1 - ratio], axis=1)

    seeds = [replace(result([40, 10, 20, 20]), learning=learning(rise)) for rise in (0.1, 0.2, 0.3)]
    trend = Arm("a", seeds, HORIZON).trend()
    assert trend.value == pytest.approx(0.2 * 2.5 / 2)
    assert trend.low < trend.value < trend.high
    assert np.isnan(Arm("a", [replace(seed, learning=learning(1)[:1]) for seed in seeds], HORIZON).trend().value)


def test_an_arm_averages_episodes_within_seeds_and_gives_intervals_over_seeds() -> None:
    arm = Arm("a", [result([40, 20, 20, 10]), result([20, 10, 10, 5], [20, 10, 10, 5])], HORIZON)
    assert arm.per_seed("return[without]").tolist() == [3.0, 1.5]
    estimate = arm.estimate("return[without]")
    assert (estimate.value, estimate.n) == (2.25, 2)


def test_prices_and_differences_are_paired_by_seed() -> None:
    classic = Arm("PPO", [result([100, 50, 100, 50]), result([50, 25, 50, 25])], HORIZON)
    fair = Arm("fair", [result([44, 50, 44, 50]), result([22, 25, 22, 25])], HORIZON)
    assert fair.price(classic, "return[without]").value == pytest.approx(-56)
    assert fair.price(classic, "return[with]").value == pytest.approx(0)
    difference = fair.against(classic, "dp_ratio", absolute=True)
    assert difference.value == pytest.approx(abs(-6 / 94) - 1 / 3)


def test_the_reduction_is_the_fall_of_the_absolute_number_in_percent() -> None:
    classic = Arm("PPO", [result([30, 10, 30, 10]), result([30, 10, 30, 10])], HORIZON)
    fair = Arm("fair", [result([10, 20, 10, 20]), result([10, 20, 10, 20])], HORIZON)  # ahead the other way
    reduction = fair.reduction(classic, "dp_difference")
    assert reduction.value == pytest.approx(50)
    assert reduction.low <= 50 <= reduction.high


def test_the_reductions_interval_runs_from_the_smaller_fall_to_the_larger() -> None:
    classic = Arm("PPO", [result([30, 10, 30, 10])] * 3, HORIZON)
    fair = Arm("fair", [result([ahead, 20, ahead, 20]) for ahead in (8, 10, 12)], HORIZON)
    reduction = fair.reduction(classic, "dp_difference")  # 40, 50 and 60 % by seed
    half = 4.303 * 10 / 3**0.5  # Student's t with 2 degrees of freedom
    assert (reduction.value, reduction.low, reduction.high) == pytest.approx((50, 50 - half, 50 + half), abs=0.01)


def test_signed_disparities_may_cancel_but_absolute_ones_do_not() -> None:
    arm = Arm("a", [result([30, 10, 30, 10], [10, 30, 10, 30])], HORIZON)
    assert arm.per_seed("dp_ratio").tolist() == [0.0]
    assert arm.per_seed("dp_ratio", absolute=True).tolist() == [0.5]


def test_the_reference_is_the_largest_absolute_number_of_all_arms() -> None:
    arms = [Arm("a", [result([10, 0, 30, 10])], HORIZON), Arm("b", [result([0, 50, 10, 10])], HORIZON)]
    assert largest_absolute(arms, ["csp_total[red]", "csp_total[blue]"]) == 50


def test_the_actions_are_shares_within_each_group() -> None:
    arm = Arm("a", [result([1, 1, 1, 1]), result([1, 1, 1, 1])], HORIZON)
    assert arm.actions("selected").tolist() == [[0.75, 0.25], [0.5, 0.5]]
    assert arm.actions("executed").tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_a_table_shows_estimates_with_their_intervals(tmp_path: Path) -> None:
    arm = Arm("a", [result([40, 20, 20, 10]), result([20, 10, 10, 5])], HORIZON)
    estimate = arm.estimate("return[with]")
    table = tables.markdown(["arm", "return"], [["a", estimate]], digits=2)
    assert table.splitlines() == [
        "| arm | return |",
        "| --- | --- |",
        f"| a | {estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}] |",
    ]
    tables.write_csv(tmp_path / "t.csv", {"a": {"return": estimate}})
    assert (tmp_path / "t.csv").read_text().splitlines()[1].startswith("a,return,1.125,")
