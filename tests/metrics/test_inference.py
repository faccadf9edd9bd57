"""Tests of hypotheses and scores over tasks: published examples, other libraries' results, and simulated coverage."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from fair_envs.metrics.inference import (
    MOST_SEEDS,
    all_show,
    all_within,
    fisher,
    fisher_units_needed,
    holm,
    interquartile_mean,
    majority_units_needed,
    noise_floor,
    p_value,
    probability_of_improvement,
    shown,
    shown_outside,
    stratified_bootstrap,
    units_needed,
    welch,
)
from fair_envs.metrics.intervals import Estimate, mean_interval, share_interval
from fair_envs.support.aliases import Flags, Floats

FIRST = [
    [1.13, 0.46, 0.3, -1.33, 0.46, 0.87],
    [0.87, 1.36, -0.27, 0.78, 0.68, 2.37],
    [1.64, 2.3, 0.38, -0.25, 1.41, 0.33],
    [1.1, 1.95, 1.04, 0.27, 2.04, 1.35],
]
SECOND = [
    [1.6, 0.24, 0.54, 0.05, -0.56, 0.96],
    [0.79, 0.92, 1.24, 0.57, 2.21, 0.39],
    [-0.04, -0.31, 0.91, 1.48, 2.05, 2.16],
    [-0.22, 0.49, 1.06, 2.19, 1.48, 2.66],
]


def test_the_scores_are_those_of_rliable() -> None:
    """Computed with rliable 1.2.0."""
    assert interquartile_mean(FIRST) == pytest.approx(0.8733333333333334)
    assert interquartile_mean(SECOND) == pytest.approx(0.9025)
    assert probability_of_improvement(FIRST, SECOND) == pytest.approx(0.4930555555555556)


def test_the_bootstrap_intervals_are_those_of_rliable() -> None:
    """Computed with rliable 1.2.0 and 20,000 resamples; the ends have a standard error of about 0.004."""
    found = stratified_bootstrap([FIRST], interquartile_mean, resamples=5000)
    assert (found.low, found.high) == pytest.approx((0.56914583, 1.20835417), abs=0.02)
    improved = stratified_bootstrap([FIRST, SECOND], probability_of_improvement, resamples=5000)
    assert (improved.low, improved.high) == pytest.approx((0.31944444, 0.67361111), abs=0.02)
    assert found.n == improved.n == 6


def test_the_bootstrap_resamples_each_task_alone() -> None:
    apart = [[0.0, 0.0], [1.0, 1.0]]  # tasks differ, runs do not
    found = stratified_bootstrap([apart], lambda scores: np.concatenate(scores, axis=-1).mean(axis=-1))
    assert (found.low, found.value, found.high) == (0.5, 0.5, 0.5)


def test_scores_of_tasks_with_different_numbers_of_runs() -> None:
    uneven = [[0.0, 1.0, 2.0], [1.0, 2.0]]
    assert stratified_bootstrap([uneven], interquartile_mean).n == 2
    assert np.isnan(
        [probability_of_improvement([[1, 2]], [[0, np.nan]]), probability_of_improvement([[np.nan]], [[0]])]
    ).all()
    assert probability_of_improvement([[np.inf]], [[0]]) == 1
    assert probability_of_improvement(uneven, [[0.0], [1.5, 1.5, 1.5]]) == pytest.approx((2.5 / 3 + 0.5) / 2)


def test_bootstrap_intervals_cover_as_often_as_documented() -> None:
    rng = np.random.default_rng(1)
    games, covered = 150, 0
    for game in range(games):
        scores = [rng.normal(size=5) for _ in range(9)]  # symmetric: the interquartile mean is 0
        found = stratified_bootstrap([scores], interquartile_mean, resamples=100, seed=game)
        covered += found.low <= 0 <= found.high
    assert 0.85 < covered / games < 0.97


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: interquartile_mean([1.0, 2.0]), "scores must have the scores of at least one run on each task"),
        (lambda: interquartile_mean([]), "scores must have the scores of at least one run on each task"),
        (
            lambda: probability_of_improvement([[1.0]], [[1.0], [2.0]]),
            "second must have the scores of the same 1 tasks",
        ),
        (lambda: probability_of_improvement([1.0], [2.0]), "first must have the scores of at least one run"),
        (
            lambda: stratified_bootstrap([[[0.1, 0.2]]], np.mean),
            r"statistic must return .* shape \(2000,\), got .* \(\)",
        ),
        (lambda: stratified_bootstrap([[0.1, 0.2]], np.mean), "samples must hold the tasks of each method"),
        (lambda: stratified_bootstrap([0.1, 0.2], np.mean), "samples must contain the scores"),  # type: ignore[list-item]
        (lambda: fisher_units_needed(90, 50), "first and second must be shares in"),
        (lambda: majority_units_needed(90), r"share must be in \[0, 1\], got 90"),
        (lambda: noise_floor(lambda m: m.mean(1), np.array([[0.5, 1.0]])), "members must be True or False"),
        (lambda: noise_floor(lambda m: m.mean(1), np.array([[0, 1]]), deals=0), "deals must be at least 1"),
    ],
)
def test_what_is_no_sample_or_statistic_is_named(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        wrong()


def test_memberships_may_be_numbers() -> None:
    members = np.array([[1, 0, 0], [0, 1, 1]])
    gap = lambda m: np.where(m, 1.0, 0.0)[:, 0] - np.where(~m, 1.0, 0.0)[:, 1]  # noqa: E731
    assert noise_floor(gap, members) == noise_floor(gap, members.astype(bool))


def test_holm_gives_the_values_of_statsmodels() -> None:
    """Computed with statsmodels 0.14, `multipletests(method="holm")`."""
    assert holm([0.012, 0.2, 0.004, 0.03, 0.051]) == pytest.approx([0.048, 0.2, 0.02, 0.09, 0.102])


def test_holm_keeps_undefined_ones_and_counts_them() -> None:
    assert holm([0.01, np.nan])[0] == pytest.approx(0.02)
    assert np.isnan(holm([0.01, np.nan])[1])
    assert holm([]).size == 0
    with pytest.raises(ValueError, match="p_values must be between 0 and 1"):
        holm([1.2])


def test_p_values_are_those_of_the_t_tests() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(0.5, 1, 8), rng.normal(0, 3, 12)
    assert p_value(mean_interval(one), 0.1, "greater") == pytest.approx(ttest_1samp(one, 0.1, alternative="greater")[1])
    expected = ttest_ind(one, other, equal_var=False, alternative="less")[1]
    assert p_value(welch(one, other), 0, "less") == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3, 1.1])
def test_equal_units_are_not_shown_to_differ_because_their_mean_is_rounded(value: float) -> None:
    for n in range(2, 40):
        found = mean_interval([value] * n)
        assert p_value(found, value, "greater") == p_value(found, value, "less") == 1
        assert p_value(found, 0, "greater") == 0
        assert not welch([value] * n, [value] * (n + 5)).excludes(0)


def test_a_p_value_agrees_with_the_interval() -> None:
    estimate = mean_interval([1.0, 2.0, 4.0])
    assert p_value(estimate, estimate.low, "greater") == pytest.approx(0.025)
    assert p_value(estimate, estimate.high, "less") == pytest.approx(0.025)
    assert np.isnan(p_value(mean_interval([1.0]), 0, "less"))
    assert [p_value(mean_interval([1.0, 1.0]), bound, "greater") for bound in (0, 2)] == [0, 1]


def of(low: float, high: float) -> Estimate:
    """Return an estimate of 10 units with this interval."""
    half = (high - low) / 2
    return Estimate(
        value=(low + high) / 2, low=low, high=high, n=10, standard_error=half / 2.262157162740992, freedom=9
    )


def test_a_claim_about_all_needs_no_correction_and_a_claim_about_some_does() -> None:
    barely = {name: of(0.001, 2) for name in "abc"}
    assert all_show(barely, 0, "greater")
    assert shown(barely, 0, "greater") == []  # each alone would be shown
    assert shown({"a": of(0.001, 2)}, 0, "greater") == ["a"]
    assert shown({**barely, "d": of(5, 7)}, 0, "greater") == ["d"]
    assert not all_show({**barely, "d": of(-1, 1)}, 0, "greater")
    assert not all_show({}, 0, "greater") and shown({}, 0, "greater") == []


def test_equivalence_needs_the_whole_interval() -> None:
    assert all_within({"a": of(-0.9, 0.9), "b": of(0.1, 0.2)}, 1)
    assert not all_within({"a": of(-0.9, 1.1)}, 1)
    assert shown_outside({"a": of(-5, -4), "b": of(4, 5), "c": of(-1, 2)}, 1) == ["a", "b"]


def test_holm_holds_its_error_where_each_test_alone_does_not() -> None:
    rng = np.random.default_rng(0)
    wrong = alone = 0
    for _ in range(1000):
        estimates = {k: mean_interval(rng.normal(size=5)) for k in range(10)}
        wrong += bool(shown(estimates, 0, "greater"))
        alone += any(e.low > 0 for e in estimates.values())
    assert wrong / 1000 < 0.045 < 0.15 < alone / 1000  # a one-sided test has 0.025


def test_an_intersection_union_test_holds_its_error() -> None:
    rng = np.random.default_rng(0)
    wrong = sum(
        all_show({"no": mean_interval(rng.normal(size=5)), "yes": mean_interval(rng.normal(9, 1, 5))}, 0, "greater")
        for _ in range(1000)
    )
    assert wrong / 1000 == pytest.approx(0.025, abs=0.013)


def test_the_needed_number_of_units_decides_with_the_given_power() -> None:
    estimate = mean_interval(np.random.default_rng(0).normal(0.3, 1, 10))
    needed = units_needed(estimate, 0)
    assert needed is not None and needed > 10
    rng, spread = np.random.default_rng(1), estimate.standard_error * np.sqrt(10)
    decided = [
        p_value(mean_interval(rng.normal(estimate.value, spread, needed)), 0, "greater") <= 0.025 for _ in range(1000)
    ]
    assert np.mean(decided) == pytest.approx(0.8, abs=0.04)


def test_more_units_are_needed_for_more_tests_and_always_more_than_there_are() -> None:
    estimate = mean_interval(np.random.default_rng(0).normal(0.3, 1, 10))
    one, many = (units_needed(estimate, 0, tests=tests) for tests in (1, 10))
    assert one is not None and many is not None and many > one
    assert units_needed(mean_interval([9.9, 10.0, 10.1]), 0) == 4
    assert units_needed(estimate, estimate.value) is None
    assert units_needed(estimate, estimate.value + 1e-4) is None  # more than MOST_SEEDS
    assert MOST_SEEDS == 1000


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.5), (0.9, 0.5), (0.8, 0.3)])
def test_so_many_units_show_a_difference_of_shares_and_one_less_does_not(first: float, second: float) -> None:
    needed = fisher_units_needed(first, second)
    assert needed is not None
    rng, shown = np.random.default_rng(0), []
    for n in (needed, needed - 1):
        draws = [rng.random((2, n)) < [[first], [second]] for _ in range(2000)]
        shown.append(np.mean([fisher(*pair) <= 0.05 and pair[0].sum() > pair[1].sum() for pair in draws]))
    assert shown[0] > 0.78 and shown[1] < 0.82  # two standard errors of 2,000 draws


def test_more_units_are_needed_with_a_correction_and_none_without_a_larger_share() -> None:
    one, several = (fisher_units_needed(0.9, 0.5, tests=tests) for tests in (1, 4))
    assert one is not None and several is not None and several > one
    assert fisher_units_needed(1.0, 0.5, above=20) == 21
    assert fisher_units_needed(0.5, 0.5) is None and fisher_units_needed(0.4, 0.5) is None
    many = fisher_units_needed(0.6, 0.5)
    assert many is not None and 300 < many < 450  # from the normal approximation
    assert fisher_units_needed(0.51, 0.5) is None  # more than MOST_SEEDS


@pytest.mark.parametrize(("share", "tests"), [(6 / 7, 2), (0.8, 1), (0.1, 3)])
def test_so_many_units_show_a_majority_and_no_smaller_number_does(share: float, tests: int) -> None:
    def power(n: int) -> float:
        """The probability of the counts whose interval is on the right side of one half."""
        right = 0.0
        for count in range(n + 1):
            found = share_interval(np.arange(n) < count, level=1 - 0.05 / tests, method="exact")
            if (found.low > 0.5) if share > 0.5 else (found.high < 0.5):
                right += math.comb(n, count) * share**count * (1 - share) ** (n - count)
        return right

    needed = majority_units_needed(share, tests=tests)
    assert needed is not None and power(needed) >= 0.8 > max(power(n) for n in range(1, needed))
    assert majority_units_needed(share, tests=tests, above=needed) != needed


def test_no_number_of_units_shows_a_majority_of_one_half() -> None:
    assert majority_units_needed(0.5) is None and majority_units_needed(0.51) is None  # more than MOST_SEEDS
    assert majority_units_needed(0.0) == majority_units_needed(1.0) == 6


def test_the_interquartile_mean_of_an_undefined_score_is_undefined() -> None:
    found = interquartile_mean([[[0.0, 1.0, 2.0, np.nan], [0.0, 1.0, 2.0, 3.0]]])
    assert np.isnan(found[0]) and found[1] == 1.5


def test_fishers_tea_tasting() -> None:
    """Fisher, The Design of Experiments, 1935: 3 of 4 cups right has a one-sided p-value of 0.243."""
    assert fisher([1, 1, 1, 0], [0, 0, 0, 1]) == pytest.approx(0.4857, abs=1e-4)
    assert fisher([1, 1, 1, 1], [0, 0, 0, 0]) == pytest.approx(2 / 70)
    with pytest.raises(ValueError, match="first and second must have 0 or 1 for each unit"):
        fisher([0.5], [1])


def test_the_exact_interval_of_clopper_and_pearson() -> None:
    """With no success of 10, the upper end is 1 - 0.025^(1/10) (Clopper and Pearson, Biometrika, 1934)."""
    found = share_interval([0] * 10, method="exact")
    assert found.low == 0 and found.high == pytest.approx(1 - 0.025**0.1)
    with pytest.raises(ValueError, match="method must be one of wilson, exact"):
        share_interval([0], method="wald")  # type: ignore[arg-type]


def test_the_exact_interval_covers_where_students_does_not() -> None:
    rng, games = np.random.default_rng(0), 400
    flags = (rng.random((games, 3)) < 0.8).astype(float)  # three seeds that learn or do not
    covers = [
        np.mean([e.low <= 0.8 <= e.high for e in map(make, flags)])
        for make in (lambda own: share_interval(own, method="exact"), mean_interval)
    ]
    assert covers[0] >= 0.95 and covers[1] < 0.6


def test_the_noise_floor_is_the_gap_of_groups_that_are_treated_alike() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 20))
    members = np.tile(np.arange(20) < 10, (400, 1))

    def gap(mask: Flags) -> Floats:
        return np.asarray(values.mean(axis=1, where=mask) - values.mean(axis=1, where=~mask))

    alike = float(np.abs(gap(members)).mean())
    assert noise_floor(gap, members) == pytest.approx(alike, rel=0.1)
    assert noise_floor(gap, members) == pytest.approx(np.sqrt(2 / 10) * np.sqrt(2 / np.pi), rel=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: stratified_bootstrap([], interquartile_mean), "samples must contain the scores of at least one"),
        (lambda: stratified_bootstrap([[[1.0, 2.0]]], interquartile_mean, resamples=0), "resamples must be at least 1"),
        (lambda: p_value(mean_interval([1, 2]), 0, "two"), "alternative must be one of greater, less"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_named(given: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        given()  # type: ignore[operator]
