"""Functions of expected returns: their gradients, their values by hand, and the controller of the multiplier."""

import math
from typing import Any

import numpy as np
import pytest
import torch as th

from fair_envs.baselines.ppo.functions import (
    OBJECTIVES,
    AlphaFair,
    BenefitRate,
    Controller,
    Gini,
    Lagrangian,
    Maxmin,
    Nash,
    Objective,
    Parity,
    Reward,
    Streams,
)

GROUPS = 3
MEANS = th.tensor([0.4, 0.3, 0.1, 0.25, 0.5, 0.4, 0.3, 0.2], dtype=th.float64)  # rates 0.6, 0.25, 0.8333
EACH: dict[str, Objective] = {
    "reward": Reward(),
    "parity": Parity(alpha=0.7, smoothing=0.1),
    "parity without smoothing": Parity(alpha=0.7, smoothing=0.0),
    "elbert": BenefitRate(alpha=1.5),
    "lagrangian of rates": Lagrangian(limit=0.1, multiplier=0.8),
    "lagrangian of a cost": Lagrangian(limit=0.1, multiplier=0.8, of_rates=False),
    "ggf": Gini(weight=0.3, ratio=0.4),
    "nash": Nash(weight=0.6),
    "alpha-fair": AlphaFair(weight=0.6, a=3.0),
    "alpha-fair 1": AlphaFair(weight=0.6, a=1.0),
    "maxmin": Maxmin(weight=0.9),
}


def about(**changed: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"groups": GROUPS, "unit": 0.5, "of_returns": False}
    return {**given, "sizes": MEANS[1 + GROUPS : 1 + 2 * GROUPS], **changed}


@pytest.mark.parametrize("of_returns", [False, True])
@pytest.mark.parametrize("objective", EACH.values(), ids=EACH)
def test_the_gradient_is_that_of_finite_differences(objective: Objective, of_returns: bool) -> None:
    given = about(of_returns=of_returns)
    _, slope = objective.gradient(MEANS, **given)
    step = 1e-6
    for k in range(len(MEANS)):
        moved = [MEANS + sign * step * th.eye(len(MEANS), dtype=th.float64)[k] for sign in (1, -1)]
        above, below = (float(objective.value(Streams(means, **given))) for means in moved)
        assert float(slope[k]) == pytest.approx((above - below) / (2 * step), abs=1e-6)


def value(
    objective: Objective, rates: list[float], *, reward: float = 0.2, unit: float = 1.0, cost: float = 0.0
) -> float:
    means = th.tensor([reward, *rates, *(1.0,) * len(rates), cost], dtype=th.float64)
    sizes = th.ones(len(rates), dtype=th.float64)
    return objective.gradient(means, groups=len(rates), unit=unit, sizes=sizes, of_returns=False)[0]


def test_each_function_has_the_value_computed_by_hand() -> None:
    assert value(Parity(alpha=2.0, smoothing=0.0), [0.5, 0.2, 0.4]) == pytest.approx(0.2 - 2 * 0.3)
    assert value(BenefitRate(alpha=2.0), [0.5, 0.2]) == pytest.approx(0.2 - 2 * 0.09)
    soft = [math.log(sum(math.exp(sign * 20 * rate) for rate in (0.5, 0.2, 0.4))) / 20 for sign in (1, -1)]
    assert value(BenefitRate(alpha=2.0), [0.5, 0.2, 0.4]) == pytest.approx(0.2 - 2 * sum(soft) ** 2)
    assert value(Lagrangian(limit=0.1, multiplier=3.0), [0.5, 0.2]) == pytest.approx((0.2 - 3 * 0.2) / 4)
    costly = Lagrangian(limit=0.1, multiplier=3.0, of_rates=False)
    assert value(costly, [0.5, 0.2], cost=0.4) == pytest.approx((0.2 - 3 * 0.3) / 4)
    assert value(Gini(weight=1.0), [0.5, 0.2]) == pytest.approx(0.2 * 2 / 3 + 0.5 / 3)
    assert value(Nash(weight=1.0), [0.5, 0.2]) == pytest.approx((math.log(0.5) + math.log(0.2)) / 2)
    assert value(AlphaFair(weight=1.0, a=2.0), [0.5, 0.2]) == pytest.approx(-(1 / 0.5 + 1 / 0.2) / 2)
    assert value(AlphaFair(weight=1.0, a=0.0), [0.5, 0.2]) == pytest.approx(0.35)
    assert value(Maxmin(weight=1.0, beta=2000.0), [0.5, 0.2]) == pytest.approx(0.2, abs=1e-3)
    assert value(Gini(weight=0.25), [0.4, 0.4], unit=2.0) == pytest.approx(0.75 * 0.2 + 0.25 * 2 * 0.4)


def test_a_group_without_demand_has_no_part_in_the_objective() -> None:
    means = th.tensor([0.1, 0.3, 0.0, 0.1, 0.5, 0.0, 0.5, 0.0], dtype=th.float64)
    for name, kind in OBJECTIVES.items():
        _, slope = kind().gradient(means, **about(sizes=means[4:7]))
        assert np.isfinite(slope.numpy()).all(), name
        assert slope[2] == slope[5] == 0, name


def test_a_rate_of_zero_still_pulls_upward() -> None:
    means = th.tensor([0.1, 0.3, 0.0, 0.5, 0.5, 0.0], dtype=th.float64)
    for kind in (Nash, AlphaFair, Maxmin, Gini):
        _, slope = kind(weight=1.0).gradient(means, groups=2, unit=1.0, sizes=means[3:5], of_returns=False)
        assert np.isfinite(slope.numpy()).all()
        assert slope[2] > slope[1]


def test_parity_has_no_gradient_at_parity() -> None:
    means = th.tensor([0.1, 0.25, 0.25, 0.5, 0.5, 0.0], dtype=th.float64)
    _, slope = Parity(alpha=10.0).gradient(means, groups=2, unit=1.0, sizes=means[3:5], of_returns=False)
    assert slope.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_the_controller_adds_its_three_parts() -> None:
    controller = Controller(proportional=2.0, integral=0.5, derivative=10.0)
    assert controller(0.3, 0.1) == pytest.approx(2 * 0.2 + 0.5 * 0.2)  # no increase is known yet
    assert controller(0.4, 0.1) == pytest.approx(2 * 0.3 + 0.5 * 0.5 + 10 * 0.1)
    assert controller(0.0, 0.1) == pytest.approx(max(0, 2 * -0.1 + 0.5 * 0.4))  # a decrease has no derivative
    for _ in range(10):
        last = controller(0.0, 0.1)
    assert last == 0 and controller.state[0] == 0  # neither multiplier nor integral falls below 0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Parity(alpha=-1.0), "alpha"),
        (lambda: Gini(weight=1.5), "weight"),
        (lambda: Gini(ratio=2.0), "ratio"),
        (lambda: AlphaFair(a=-1.0), "a"),
        (lambda: Maxmin(beta=0.0), "beta"),
        (lambda: BenefitRate(beta=0.0), "beta"),
    ],
)
def test_settings_outside_their_range_are_refused(make: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lagrangian(limit=-3.0), "limit must be at least 0, got -3"),
        (lambda: Lagrangian(limit=float("nan")), "limit must be a finite number at least 0, got nan"),
        (lambda: Controller(proportional=-5.0), "proportional must be at least 0, got -5"),
        (lambda: AlphaFair(a=200.0), "a must be between 0 and 20, got 200"),
    ],
)
def test_bad_settings_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
