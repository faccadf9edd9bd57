import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fair_envs.metrics.intervals import (
    Estimate,
    Method,
    Resampling,
    bootstrap_interval,
    cluster_means,
    difference_interval,
    mean_interval,
    paired_difference,
    share_interval,
)

METHODS: tuple[Method, ...] = ("t", "percentile", "bca")
NAN = float("nan")


def test_the_t_interval_is_the_textbook_one() -> None:
    # Mean 3, s = sqrt(2.5), n = 5, t(0.975, 4) = 2.776445.
    estimate = mean_interval([1, 2, 3, 4, 5])
    half = 2.7764451 * np.sqrt(2.5 / 5)
    assert estimate.value == 3
    assert estimate.standard_error == pytest.approx(np.sqrt(0.5))
    assert (estimate.low, estimate.high) == pytest.approx((3 - half, 3 + half))
    assert (estimate.n, estimate.level) == (5, 0.95)


def test_wilsons_interval_is_the_textbook_one_and_stays_between_0_and_1() -> None:
    # 7 of 10, z = 1.959964: centre (0.7 + z^2 / 20) / (1 + z^2 / 10), half z sqrt(0.021 + z^2 / 400) / (1 + z^2 / 10).
    estimate = share_interval([1] * 7 + [0] * 3)
    assert (estimate.value, estimate.n) == (0.7, 10)
    assert (estimate.low, estimate.high) == pytest.approx((0.396779, 0.892209), abs=1e-5)
    assert share_interval([True] * 5).high == 1 and share_interval([True] * 5).low > 0.5


def test_a_share_of_nothing_is_undefined_and_of_other_numbers_refused() -> None:
    estimate = share_interval([])
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all() and estimate.n == 0
    with pytest.raises(ValueError, match="flags must be 0 or 1, got 2"):
        share_interval([0, 2])


@pytest.mark.parametrize("method", METHODS)
def test_about_nine_in_ten_intervals_of_level_ninety_cover_the_mean(method: Method) -> None:
    chance = np.random.default_rng(3)
    samples = chance.uniform(0.0, 2.0, size=(300, 60))
    estimates = [mean_interval(sample, level=0.9, method=method, resamples=400) for sample in samples]
    covered = np.mean([estimate.low <= 1 <= estimate.high for estimate in estimates])
    assert 0.84 < covered < 0.95


def test_bca_follows_the_skewness_of_the_sample() -> None:
    sample = np.random.default_rng(1).exponential(1.0, size=40) ** 2
    t, percentile, bca = (mean_interval(sample, method=method) for method in METHODS)
    assert bca.high - bca.value > 1.2 * (bca.value - bca.low)
    assert percentile.low < bca.low
    assert percentile.high < bca.high
    assert t.high - t.value == pytest.approx(t.value - t.low)


def test_a_higher_level_gives_a_wider_interval() -> None:
    sample = [1.0, 4.0, 2.0, 7.0, 3.0]
    wide, narrow = mean_interval(sample, level=0.99), mean_interval(sample, level=0.8)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_equal_seeds_resample_alike_and_others_do_not() -> None:
    sample = np.random.default_rng(0).normal(size=30)
    first = mean_interval(sample, method="percentile", seed=1)
    assert mean_interval(sample, method="percentile", seed=1) == first
    assert mean_interval(sample, method="percentile", seed=2) != first


@pytest.mark.parametrize("method", METHODS)
def test_equal_units_have_an_interval_without_width(method: Method) -> None:
    estimate = mean_interval([0.3, 0.3, 0.3], method=method)
    assert (estimate.low, estimate.high) == pytest.approx((0.3, 0.3))


@pytest.mark.parametrize("method", METHODS)
def test_one_unit_has_a_mean_without_interval_and_no_unit_has_no_mean(method: Method) -> None:
    one, none = mean_interval([4.0], method=method), mean_interval([], method=method)
    assert one.value == 4
    assert np.isnan([one.low, one.high, one.standard_error]).all()
    assert np.isnan([none.value, none.low, none.high]).all()
    assert (one.n, none.n) == (1, 0)


@pytest.mark.parametrize("method", METHODS)
def test_an_undefined_unit_makes_the_mean_undefined_unless_it_is_omitted(method: Method) -> None:
    strict = mean_interval([1.0, NAN, 3.0], method=method)
    assert np.isnan(strict.value)
    assert np.isnan(strict.low)
    assert mean_interval([1.0, NAN, 3.0], method=method, undefined="omit") == mean_interval([1.0, 3.0], method=method)


def test_clusters_count_as_units_with_equal_weight() -> None:
    values, seeds = [1.0, 3.0, 10.0, NAN, 7.0], [4, 4, 2, 2, 9]
    assert cluster_means(values, clusters=seeds).tolist() == [10.0, 2.0, 7.0]
    assert mean_interval(cluster_means(values, clusters=seeds)).n == 3


def test_a_cluster_without_a_defined_value_is_undefined() -> None:
    assert np.isnan(cluster_means([1.0, NAN], clusters=["a", "b"])).tolist() == [False, True]


def test_pairing_removes_what_the_seeds_share() -> None:
    shared = np.array([10.0, 50.0, 90.0, 20.0])
    difference = paired_difference(shared + np.array([1, 2, 1, 2]), shared)
    assert difference.value == 1.5
    assert difference.low > 0
    assert difference.excludes(0)
    assert not mean_interval(shared).excludes(50)


def test_a_paired_difference_of_an_undefined_seed_is_undefined() -> None:
    difference = paired_difference([1.0, NAN], [0.0, 0.0])
    assert np.isnan(difference.value)
    assert not difference.excludes(0)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_paired_bootstrap_draws_units_together(method: Resampling) -> None:
    one = np.arange(12.0)

    def gap(first: np.ndarray, second: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(first.mean(axis=axis) - second.mean(axis=axis))

    paired = bootstrap_interval([one + np.sin(one), one], gap, paired=True, method=method)
    apart = bootstrap_interval([one + np.sin(one), one], gap, method=method)
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)


def test_an_interval_that_some_resample_cannot_give_is_undefined_without_a_warning() -> None:
    def inverse(sample: np.ndarray, axis: int) -> np.ndarray:
        mean = sample.mean(axis=axis)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(mean != 0, 1 / mean, np.nan))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = bootstrap_interval([[0.0, 0.0, 3.0]], inverse)
    assert estimate.value == 1
    assert np.isnan([estimate.low, estimate.high]).all()


def test_an_estimate_prints_its_level_and_number_of_units() -> None:
    estimate = Estimate(value=1 / 3, low=0.25, high=0.5, n=12)
    assert str(estimate) == "0.3333 [0.25, 0.5] (95 %, n = 12)"
    assert f"{estimate:.2f}" == "0.33 [0.25, 0.50] (95 %, n = 12)"
    assert str({"women": estimate}) == "{'women': Estimate(0.3333 [0.25, 0.5] (95 %, n = 12))}"
    assert str(Estimate(value=-30171.7, low=-40000.2, high=900, n=2)) == "-30172 [-40000, 900] (95 %, n = 2)"
    assert str(mean_interval([], level=0.9)) == "undefined [undefined] (90 %, n = 0)"


def test_an_estimate_becomes_json_with_null_for_the_undefined() -> None:
    text = json.dumps(mean_interval([2.0]).as_dict(), allow_nan=False)
    assert json.loads(text) == {"value": 2, "low": None, "high": None, "n": 1, "level": 0.95, "standard_error": None}


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8), st.floats(0.1, 10), st.floats(-50, 50))
def test_the_interval_moves_and_stretches_with_the_data(values: list[float], factor: float, shift: float) -> None:
    plain, moved = mean_interval(values), mean_interval(factor * np.array(values) + shift)
    for name in ("value", "low", "high"):
        assert getattr(moved, name) == pytest.approx(factor * getattr(plain, name) + shift, abs=1e-6)


def test_bad_input_names_the_argument_and_what_came() -> None:
    with pytest.raises(ValueError, match=r"level must be between 0 and 1, got 95"):
        mean_interval([1.0, 2.0], level=95)
    with pytest.raises(ValueError, match=r"method must be one of t, percentile, bca, got 'normal'"):
        mean_interval([1.0, 2.0], method="normal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"undefined must be one of nan, omit, got 'fair'"):
        mean_interval([1.0, 2.0], undefined="fair")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"resamples must be at least 1, got 0"):
        mean_interval([1.0, 2.0], method="bca", resamples=0)
    with pytest.raises(ValueError, match=r"values must have one axis, got shape \(1, 2\)"):
        mean_interval([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"second must have the shape of first, \(2,\), got \(3,\)"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"clusters must have shape \(2,\), got \(3,\)"):
        cluster_means([1.0, 2.0], clusters=[0, 0, 1])
    with pytest.raises(ValueError, match=r"samples must contain at least one sample, got none"):
        bootstrap_interval([], np.mean)
    with pytest.raises(ValueError, match=r"paired samples must have the same length, got \[2, 3\]"):
        bootstrap_interval([[1.0, 2.0], [1.0, 2.0, 3.0]], np.mean, paired=True)


def test_a_difference_of_means_has_welchs_interval() -> None:
    from scipy.stats import ttest_ind

    first, second = [3.0, 4.0, 5.0, 9.0], [1.0, 2.0, 3.0]
    found = difference_interval(mean_interval(first), mean_interval(second))
    expected = ttest_ind(first, second, equal_var=False).confidence_interval()
    assert found.value == pytest.approx(3.25) and (found.low, found.high) == pytest.approx(tuple(expected))


def test_a_difference_of_shares_has_the_width_of_their_intervals() -> None:
    first, second = share_interval([True] * 60 + [False] * 40), share_interval([True] * 30 + [False] * 70)
    found = difference_interval(first, second)
    half = float(np.hypot(first.high - first.low, second.high - second.low)) / 2
    assert found.value == pytest.approx(0.3) and found.high - found.value == pytest.approx(half, rel=0.02)


def test_a_difference_to_a_single_unit_has_no_interval() -> None:
    found = difference_interval(mean_interval([1.0]), mean_interval([1.0, 2.0]))
    assert np.isnan(found.low) and not found.excludes(0)
