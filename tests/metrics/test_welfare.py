from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from fair_envs.metrics.welfare import (
    atkinson,
    gini,
    jain,
    log_nash_welfare,
    lorenz,
    maximin,
    nash_welfare,
    theil,
    utilitarian,
)
from fair_envs.support.aliases import Floats

Measure = Callable[[ArrayLike], Floats]
INEQUALITY: tuple[Measure, ...] = (gini, jain, atkinson, theil)
MEASURES: tuple[Measure, ...] = (*INEQUALITY, utilitarian, maximin, nash_welfare, log_nash_welfare)
# Not below 1e-3, where the rounding of a return matters more than its measure.
societies = st.lists(st.floats(0, 1e4).map(lambda x: round(x, 3)), min_size=1, max_size=9)


def test_worked_examples() -> None:
    values = [1, 2, 3, 6]
    # Pairwise |differences| sum to 2 * (1+2+5+1+4+3) = 32; 32 / (2 * 4 * 12).
    assert gini(values) == pytest.approx(1 / 3)
    assert jain(values) == pytest.approx(144 / (4 * 50))
    assert utilitarian(values) == 3
    assert maximin(values) == 1
    assert nash_welfare(values) == pytest.approx(36**0.25)
    assert log_nash_welfare(values) == pytest.approx(np.log(36) / 4)
    assert atkinson(values) == pytest.approx(1 - 36**0.25 / 3)
    assert atkinson(values, epsilon=2) == pytest.approx(1 - (4 / (1 + 1 / 2 + 1 / 3 + 1 / 6)) / 3)  # the harmonic mean
    assert atkinson(values, epsilon=0.5) == pytest.approx(1 - np.mean(np.sqrt(values)) ** 2 / 3)


def test_equality_and_one_agent_with_everything_are_the_extremes() -> None:
    equal, one = [5, 5, 5, 5], [0, 0, 0, 8]
    assert (gini(equal), jain(equal), atkinson(equal)) == pytest.approx((0, 1, 0))
    assert (gini(one), jain(one), atkinson(one)) == pytest.approx((0.75, 0.25, 1))
    assert (nash_welfare(equal), nash_welfare(one)) == pytest.approx((5, 0))
    assert log_nash_welfare(one) == -np.inf


def test_theils_index_by_hand() -> None:
    assert theil([5, 5, 5, 5]) == pytest.approx(0)
    assert theil([0, 0, 0, 8]) == pytest.approx(np.log(4))
    assert theil([1, 3]) == pytest.approx((0.5 * np.log(0.5) + 1.5 * np.log(1.5)) / 2)


def test_theils_index_is_the_inequality_between_groups_and_within_them() -> None:
    one, other = np.array([1.0, 3.0, 2.0]), np.array([4.0, 9.0])
    everybody = np.concatenate([one, other])
    between = theil([*[one.mean()] * 3, *[other.mean()] * 2])
    within = (one.sum() * theil(one) + other.sum() * theil(other)) / everybody.sum()
    assert theil(everybody) == pytest.approx(between + within)


def test_lorenz_curve_by_hand() -> None:
    assert lorenz([6, 1, 3, 2]) == pytest.approx(np.array([0, 1, 3, 6, 12]) / 12)
    assert np.isnan(lorenz([[0, 0], [-1, 5]])).all()
    assert lorenz(np.ones((2, 3, 5))).shape == (2, 3, 6)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(societies)
def test_gini_is_twice_the_area_below_equality(values: list[float]) -> None:
    if sum(values) > 0:
        curve = lorenz(values)
        area = (0.5 * (curve[1:] + curve[:-1])).mean()
        assert gini(values) == pytest.approx(1 - 2 * area, abs=1e-9)


def test_atkinson_goes_from_indifference_to_the_worst_off() -> None:
    values = [1, 2, 3, 6]
    assert atkinson(values, epsilon=0) == pytest.approx(0)
    assert atkinson(values, epsilon=5000) == pytest.approx(1 - 1 / 3, abs=1e-3)
    steps = [float(atkinson(values, epsilon=epsilon)) for epsilon in (0, 0.5, 1, 1.5, 4, 50)]
    assert steps == sorted(steps)
    assert atkinson([0, 1], epsilon=0.5) == pytest.approx(0.5)
    assert atkinson([0, 1], epsilon=1.5) == 1


@pytest.mark.parametrize("measure", INEQUALITY)
def test_shares_of_nothing_and_of_debts_are_undefined(measure: Measure) -> None:
    assert np.isnan(measure([0, 0, 0]))
    assert np.isnan(measure([-1, 5]))
    assert np.isnan(measure([[0, 0], [-1, 5], [2, 2]])).tolist() == [True, True, False]


def test_nash_welfare_of_debts_is_undefined_and_of_nothing_is_nothing() -> None:
    assert np.isnan(nash_welfare([-1, 5, 0]))
    assert np.isnan(log_nash_welfare([-1, 5]))
    assert nash_welfare([0, 0]) == 0
    assert [float(measure([-1, 5])) for measure in (utilitarian, maximin)] == [2, -1]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_society_without_agents_is_undefined(measure: Measure) -> None:
    assert np.isnan(measure([]))
    assert np.isnan(measure(np.zeros((3, 0)))).tolist() == [True] * 3
    assert measure(np.zeros((0, 4))).shape == (0,)


@pytest.mark.parametrize("measure", MEASURES)
def test_leading_axes_are_kept(measure: Measure) -> None:
    values = np.random.default_rng(0).random((2, 3, 5)) + 0.1
    assert measure(values).shape == (2, 3)
    assert measure(values)[1, 2] == pytest.approx(measure(values[1, 2]))


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(values=societies, data=st.data())
def test_names_do_not_matter(measure: Measure, values: list[float], data: st.DataObject) -> None:
    order = data.draw(st.permutations(values))
    assert measure(order) == pytest.approx(measure(values), nan_ok=True)


@pytest.mark.parametrize("measure", INEQUALITY)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(values=societies, factor=st.floats(1e-6, 1e6))
def test_inequality_does_not_depend_on_the_currency(measure: Measure, values: list[float], factor: float) -> None:
    assert measure(factor * np.array(values)) == pytest.approx(measure(values), abs=1e-9, nan_ok=True)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(societies)
def test_gini_equals_its_sum_over_pairs(values: list[float]) -> None:
    x = np.array(values)
    if x.sum() > 0:
        pairs = np.abs(x[:, None] - x[None, :]).sum() / (2 * x.size * x.sum())
        assert gini(values) == pytest.approx(pairs, abs=1e-12)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(societies)
def test_measures_stay_between_their_extremes(values: list[float]) -> None:
    n, tiny = len(values), 1e-9
    if sum(values) > 0:
        assert 0 <= gini(values) <= (n - 1) / n + tiny
        assert 1 / n - tiny <= jain(values) <= 1 + tiny
        assert 0 <= atkinson(values) <= 1
        assert 0 <= theil(values) <= np.log(n) + tiny
    scale = max(values) * tiny
    assert maximin(values) - scale <= nash_welfare(values) <= utilitarian(values) + scale


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.floats(0.01, 0.5))
def test_a_transfer_from_rich_to_poor_lowers_inequality(values: list[int], share: float) -> None:
    before = np.sort(np.array(values, dtype=float))
    if before[0] == before[-1]:
        return
    after = before.copy()
    gift = share * (before[-1] - before[0])
    after[0], after[-1] = before[0] + gift, before[-1] - gift
    assert gini(after) < gini(before)
    assert jain(after) > jain(before)
    assert atkinson(after) < atkinson(before)
    assert theil(after) < theil(before)
    assert (lorenz(after) >= lorenz(before) - 1e-12).all()


def test_bad_input_names_the_argument_and_what_came() -> None:
    with pytest.raises(ValueError, match=r"epsilon must be a finite number of at least 0, got -1"):
        atkinson([1, 2], epsilon=-1)
    with pytest.raises(ValueError, match=r"epsilon must be a finite number of at least 0, got nan"):
        atkinson([1, 2], epsilon=float("nan"))
    with pytest.raises(ValueError, match=r"values must have an axis of agents, got a single number"):
        gini(3.0)
