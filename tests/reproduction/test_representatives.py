"""Which policies a figure shows, and their colours."""

import numpy as np
import pytest

from fair_envs.reproduction.cimpean2025.representatives import KIND_COLOURS, mixed_colours, representative_subset


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


def test_a_policy_that_is_best_in_one_kind_alone_has_the_colour_of_that_kind() -> None:
    colours = mixed_colours(np.eye(3), ("performance", "group", "individual"))
    np.testing.assert_allclose(colours * 255, list(KIND_COLOURS.values()))


def test_colours_are_mixed_in_proportion_and_the_objectives_of_a_kind_averaged() -> None:
    values = [[1.0, 0.5, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    colours = mixed_colours(values, ("performance", "group", "group"))
    red, green = np.array(KIND_COLOURS["performance"]) / 255, np.array(KIND_COLOURS["group"]) / 255
    np.testing.assert_allclose(colours[0], (2 * red + green) / 3)
    np.testing.assert_allclose(colours[1], green)
    np.testing.assert_allclose(colours[2], (red + green) / 2)


def test_kinds_must_fit_the_objectives() -> None:
    with pytest.raises(ValueError, match="kinds must be one for each objective, got 1"):
        mixed_colours([[0, 1]], ["group"])
