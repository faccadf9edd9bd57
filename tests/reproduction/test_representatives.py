"""Which policies represent all."""

import numpy as np
import pytest

from fair_envs.reproduction.cimpean2025.representatives import representative_subset


def test_few_policies_are_all_shown() -> None:
    np.testing.assert_array_equal(representative_subset([[0, 1], [1, 0]], size=2), [0, 1])


def test_the_best_in_each_objective_are_shown_even_if_they_are_more_than_the_size() -> None:
    values = np.vstack([np.full((4, 3), 0.5), np.eye(3)])
    np.testing.assert_array_equal(representative_subset(values, size=2), [4, 5, 6])


def test_of_equally_good_policies_the_one_that_is_best_in_more_objectives_is_shown() -> None:
    values = [[5, 0, 0], [5, 5, 0], [0, 0, 5], [1, 0, 0]]
    np.testing.assert_array_equal(representative_subset(values, size=2), [1, 2])


def test_the_next_policy_is_the_one_that_differs_most_from_those_shown() -> None:
    values = [[10, 0], [0, 10], [9, 1], [5, 5], [-20, -20]]
    np.testing.assert_array_equal(representative_subset(values, size=3), [0, 1, 4])


def test_a_difference_in_all_objectives_counts_more_than_one_of_the_same_size_in_one() -> None:
    values = [[10.0, 10.0], [4.0, 10.0], [7.0, 7.0], [10.0, 9.9]]  # both second and third are 6 away in sum
    np.testing.assert_array_equal(representative_subset(values, size=2), [0, 2])


def test_undefined_values_are_refused() -> None:
    with pytest.raises(ValueError, match="values must be a table of finite numbers"):
        representative_subset([[0, np.nan]])
