"""What it costs people to be decided on well, by hand."""

import numpy as np
import pytest

from fair_envs.metrics import burden, social_burden, stratified_accuracy

SCORE = np.array([[0.4, 0.9], [0.5, 0.2], [0.6, 0.1]])  # 3 rounds of 2 people
COST = np.array([[1.0, 1.0], [2.0, 2.0], [2.0, 1.0]])
THRESHOLD = np.array([[0.7], [0.7], [0.8]])
GROUP = np.array([[0, 0], [1, 1], [1, 0]])
QUALIFIED = np.array([[1, 1], [1, 0], [1, 0]])


def test_whoever_falls_short_needs_to_pay_for_each_point_and_the_others_nothing() -> None:
    np.testing.assert_allclose(burden(SCORE, THRESHOLD, COST), [[0.3, 0], [0.4, 1.0], [0.4, 0.7]])


def test_social_burden_is_the_mean_over_the_qualified_of_a_group() -> None:
    needed = burden(SCORE, THRESHOLD, COST)
    np.testing.assert_allclose(social_burden(needed, QUALIFIED, GROUP, groups=2), [0.15, 0.4])


def test_divided_by_everybody_a_group_with_few_qualified_seems_to_bear_less() -> None:
    needed = burden(SCORE, THRESHOLD, COST)
    found = social_burden(needed, QUALIFIED, GROUP, groups=2, among="everybody")
    np.testing.assert_allclose(found, [0.3 / 3, 0.8 / 3])


def test_it_is_undefined_without_anybody_qualified() -> None:
    found = social_burden([0.2, 0.3], [1, 0], [0, 1], groups=3)
    np.testing.assert_allclose(found, [0.2, np.nan, np.nan])


def test_accuracy_is_the_share_of_correct_decisions_about_each_group() -> None:
    found = stratified_accuracy([[1, 0], [1, 1]], [[1, 1], [0, 1]], [[0, 0], [1, 0]], groups=3)
    np.testing.assert_allclose(found, [2 / 3, 0, np.nan])


def test_an_unknown_denominator_is_refused() -> None:
    with pytest.raises(ValueError, match="among must be 'qualified' or 'everybody', got 'all'"):
        social_burden([0.1], [1], [0], groups=1, among="all")  # type: ignore[arg-type]


def test_bad_groups_are_named() -> None:
    with pytest.raises(ValueError, match="group must be between 0 and 1, got 2"):
        social_burden([0.1, 0.2], [1, 1], [0, 2], groups=2)
    with pytest.raises(ValueError, match="group must be between 0 and 1, got -1"):
        stratified_accuracy([1, 0], [1, 1], [0, -1], groups=2)
    with pytest.raises(ValueError, match="group must have one entry for each of the 2 values, got 1"):
        social_burden([0.1, 0.2], [1, 1], [0], groups=2)
    with pytest.raises(ValueError, match="groups must be at least 1, got 0"):
        stratified_accuracy([], [], [], groups=0)
