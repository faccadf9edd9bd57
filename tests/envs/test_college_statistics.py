"""Whom FairCollege draws, and that the same threshold costs the qualified of one group more."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fair_envs.core import Lanes
from fair_envs.envs.college.params import CollegeParams
from fair_envs.envs.college.rules import ADMIT, ADVANTAGED, DISADVANTAGED, GROUPS, College, quantiles_of
from fair_envs.metrics import burden, social_burden, stratified_accuracy

LANES, ROUNDS = 200, 5  # of 20 applicants: 20,000

Columns = dict[str, NDArray[Any]]


@cache
def rounds(threshold: float, **parameters: Any) -> Columns:
    """Return what the oracle and the record tell of all applicants at this threshold, shape (rounds, lanes, 20)."""
    lanes = Lanes(College(**parameters), LANES)
    lanes.seed(7)
    lanes.restart()
    told: dict[str, list[NDArray[Any]]] = {}
    for _ in range(ROUNDS):
        hidden = lanes.rules.oracle(lanes.records)
        facts = lanes.advance(np.full((LANES, 1, 1), threshold, np.float32)).facts
        for name in ("group", "action", "outcome"):
            hidden[name] = facts[name].copy()
        for name, column in hidden.items():
            told.setdefault(name, []).append(column)
    return {name: np.array(columns) for name, columns in told.items()}


def burdens(threshold: float, **parameters: Any) -> list[float]:
    """Return the social burden of each group."""
    told = rounds(threshold, **parameters)
    needed = burden(told["score"], threshold, told["cost"])
    found: list[float] = social_burden(needed, told["feedback"], told["group"], groups=len(GROUPS)).tolist()
    return found


def accuracy(threshold: float, **parameters: Any) -> list[float]:
    """Return the share of correct decisions about each group."""
    told = rounds(threshold, **parameters)
    found: list[float] = stratified_accuracy(told["action"], told["feedback"], told["group"], groups=2).tolist()
    return found


@pytest.mark.parametrize(("group", "mean", "spread"), [(ADVANTAGED, 0.8, 0.1), (DISADVANTAGED, 0.6, 0.3)])
def test_true_scores_are_normal_and_clipped(group: int, mean: float, spread: float) -> None:
    told = rounds(0.5)
    merit = told["merit"][told["group"] == group]
    assert (merit >= 0).all() and (merit <= 1).all()
    normal = stats.norm(mean, spread)
    size = len(merit)
    for end, chance in ((0.0, normal.cdf(0)), (1.0, normal.sf(1))):
        assert stats.binomtest(int((merit == end).sum()), size, chance).pvalue > 1e-3
    inside = merit[(merit > 0) & (merit < 1)]
    truncated = stats.truncnorm((0 - mean) / spread, (1 - mean) / spread, mean, spread)
    assert stats.kstest(inside, truncated.cdf).pvalue > 1e-3


def test_the_shares_of_groups_and_of_the_qualified_are_those_of_the_parameters() -> None:
    told = rounds(0.5)
    assert stats.binomtest(int(told["group"].sum()), told["group"].size, 0.4).pvalue > 1e-3
    for group, mean, spread in ((ADVANTAGED, 0.8, 0.1), (DISADVANTAGED, 0.6, 0.3)):
        qualified = told["feedback"][told["group"] == group]
        chance = stats.norm(mean, spread).sf(1.1 * mean)
        assert stats.binomtest(int(qualified.sum()), len(qualified), chance).pvalue > 1e-3


def test_groups_are_drawn_independently_of_each_other() -> None:
    count = rounds(0.5)["group"].sum(axis=-1).ravel()
    expected = stats.binom(20, 0.4)
    assert count.var() == pytest.approx(expected.var(), rel=0.15)
    assert count.mean() == pytest.approx(expected.mean(), abs=0.25)


def test_true_scores_decide_who_is_qualified_whatever_the_noise() -> None:
    told = rounds(0.5, profile="fat2020_noisy")
    assert ((told["merit"] >= 0.55) == told["feedback"]).all()
    assert ((told["score"] >= 0.55) != told["feedback"]).mean() > 0.1


def test_gaussian_noise_is_clipped_to_its_bounds() -> None:
    told = rounds(0.5, profile="fat2020_noisy")
    noise = (told["score"] - told["merit"])[(told["score"] > 0) & (told["score"] < 1)]
    assert noise.mean() == pytest.approx(0, abs=0.005)
    assert noise.std() == pytest.approx(0.1, rel=0.03)
    assert np.abs(noise).max() < 0.35 + 1e-9
    bound = rounds(0.5, profile="fat2020", noise="scores", noise_low=-0.02, noise_high=0.05)
    noise = bound["score"] - bound["merit"]
    assert (noise.min(), noise.max()) == pytest.approx((-0.02, 0.05))


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 2.0), (0.5, 3.0), (0.01, 0.1)])
def test_beta_noise_has_either_sign_and_the_quantiles_of_its_distribution(alpha: float, beta: float) -> None:
    table = quantiles_of(CollegeParams(noise="scores", noise_distribution="beta", noise_alpha=alpha, noise_beta=beta))
    expected = stats.beta(alpha, beta)
    assert table.mean() == pytest.approx(expected.mean(), abs=0.01)
    assert (table[0], table[-1]) == (0, 1)
    parameters = {"noise": "scores", "noise_distribution": "beta", "noise_alpha": alpha, "noise_beta": beta}
    told = rounds(0.5, profile="fat2020", **parameters)
    up, down = ((told["score"] > told["merit"]).mean(), (told["score"] < told["merit"]).mean())
    assert up > 0.02 and down == pytest.approx(up, abs=0.02)


# ------------------------------------------------------------------------------------------- the disparity


@pytest.mark.parametrize("threshold", [0.6, 0.65, 0.7])
def test_a_threshold_costs_the_qualified_of_the_disadvantaged_more(threshold: float) -> None:
    """They have the same scores and bars, and twice the cost."""
    one, other = burdens(threshold, profile="fat2020")
    assert one > 0 and other == pytest.approx(2 * one, rel=0.1)


def test_social_burden_is_what_the_distribution_says() -> None:
    scores = np.linspace(0.55, 1.0, 20_001)
    density = stats.norm(0.5, 0.1).pdf(scores)
    needed = (np.maximum(0, 0.65 - scores) * density).sum() / density.sum()
    assert burdens(0.65, profile="fat2020") == pytest.approx([5 * needed, 10 * needed], rel=0.05)


def test_fewer_of_the_disadvantaged_can_afford_a_high_threshold() -> None:
    told = rounds(0.75, profile="fat2020")
    admitted = [told["action"][(told["group"] == g) & (told["feedback"] == ADMIT)].mean() for g in (0, 1)]
    assert admitted[0] > 0.99 and admitted[1] < 0.5


def between(low: float, high: float) -> float:
    """Return the share of true scores of ``fat2020`` between two."""
    return float(np.diff(stats.norm(0.5, 0.1).cdf([low, high]))[0])


def test_each_groups_threshold_with_costs_decides_about_it_correctly() -> None:
    """Who can just afford the threshold T has the score T - 1 / cost: 0.55, the bar, at 0.75 and at 0.65."""
    assert accuracy(0.75, profile="fat2020") == pytest.approx([1, 1 - between(0.55, 0.65)], abs=0.01)
    assert accuracy(0.65, profile="fat2020") == pytest.approx([1 - between(0.45, 0.55), 1], abs=0.01)


def test_a_jury_that_expects_no_response_is_gamed_most_by_those_who_pay_least() -> None:
    """Whoever is qualified has 0.55; but 0.35 and 0.45 are enough to afford that."""
    assert accuracy(0.55, profile="fat2020", manipulation=False) == pytest.approx([1, 1], abs=1e-3)
    gamed = [1 - between(0.35, 0.55), 1 - between(0.45, 0.55)]
    assert accuracy(0.55, profile="fat2020") == pytest.approx(gamed, abs=0.015)


def test_a_subsidy_of_half_the_cost_closes_the_gap() -> None:
    one, other = burdens(0.65, profile="fat2020", subsidy=True, subsidy_beta=0.5)
    assert other == pytest.approx(one, rel=0.1)


def test_nearly_everybody_can_afford_any_threshold_at_the_default_costs() -> None:
    told = rounds(0.9)
    assert told["action"].mean() > 0.95
    one, other = burdens(1.0)
    assert other > 1.2 * one > 0
