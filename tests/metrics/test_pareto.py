"""Sets of points: worked examples, published cases, and other libraries."""

import doctest
import itertools
from typing import Any

import numpy as np
import pytest

from fair_envs.metrics import pareto

pytest.importorskip("moocore")

LINE = [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]
CORNERS = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0.5, 0.5, 0), (0.5, 0, 0.5), (0, 0.5, 0.5)]
INNER = [(0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5)]
BENT = [(0, 10), (2, 8), (3, 3), (9, 1), (10, 0)]


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(pareto).failed == 0


def test_the_first_six_of_nine_points_are_non_dominated() -> None:
    assert pareto.non_dominated(CORNERS + INNER).tolist() == [True] * 6 + [False] * 3
    assert pareto.ranks(CORNERS + INNER).tolist() == [0] * 6 + [1] * 3


def test_crowding_is_measured_within_ranks() -> None:
    found = pareto.crowding_distance(CORNERS + INNER, within_ranks=True)
    assert found == pytest.approx([1, 2 / 3, 1 / 3, 0.5, 0.5, 0.5, 1, 1, 1])


def test_crowding_averages_the_gaps_between_neighbours() -> None:
    assert pareto.crowding_distance(BENT) == pytest.approx([1, 0.5, 0.7, 0.5, 1])
    assert 2 * pareto.crowding_distance([(0, 4), (1, 3), (3, 1), (4, 0)]) == pytest.approx([2, 1.5, 1.5, 2])


def test_points_that_are_alone_are_not_crowded() -> None:
    assert pareto.crowding_distance([(1, 2)]).tolist() == [1]
    assert pareto.crowding_distance([(1, 1), (1, 1), (1, 1)]).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("points", "reference", "expected"),
    [
        (BENT, (-1, -1), 46),
        (LINE, (0, 0), 6),
        ([*LINE, (-1, 5)], (0, 0), 6),
        (LINE, (4, 4), 0),
        ([(1, 1, 3), (2, 2, 1), (3, 1, 1)], (0, 0, 0), 7),
    ],
)
def test_hypervolumes_worked_out_by_hand(points: Any, reference: Any, expected: float) -> None:
    assert pareto.hypervolume(points, reference=reference) == pytest.approx(expected)


def test_the_epsilon_measure_is_scaled_by_what_was_desired() -> None:
    assert pareto.epsilon([(0, 9), (9, 0)], desired=[(0, 10), (10, 0)]) == pytest.approx((0.1, 0.1))
    assert pareto.epsilon([(5, 5)], desired=[(0, 10), (10, 0), (5, 5)]) == pytest.approx((0.5, 1 / 3))


def test_measures_of_a_line() -> None:
    assert pareto.sparsity(LINE) == 2
    assert pareto.cardinality([*LINE, (1, 1), (2, 2)]) == 3
    assert pareto.igd([(2, 2)], known=LINE) == pytest.approx(0.942809, abs=1e-6)
    assert pareto.igd(LINE, known=LINE) == 0
    assert pareto.expected_utility(LINE, weights=[(0, 1), (0.5, 0.5), (1, 0)]) == pytest.approx(8 / 3)


def test_weights_are_equally_spaced_and_sum_to_one() -> None:
    for objectives in (1, 2, 3, 4, 8):
        weights = pareto.equally_spaced_weights(objectives)
        assert 1 <= len(weights) <= 100
        assert weights.sum(axis=1) == pytest.approx(1)
        assert len(np.unique(weights, axis=0)) == len(weights)
    assert len(pareto.equally_spaced_weights(2)) == 100


def test_nothing_has_no_measures_but_volume_and_number() -> None:
    nothing = np.zeros((0, 2))
    assert pareto.hypervolume(nothing, reference=(0, 0)) == 0
    assert pareto.cardinality(nothing) == 0
    undefined = [pareto.sparsity(nothing), pareto.expected_utility(nothing), pareto.igd(nothing, known=LINE)]
    assert np.isnan([*undefined, *pareto.epsilon(nothing, desired=LINE)]).all()
    assert np.isnan(pareto.sparsity([(1, 2)]))


@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_hypervolume_and_igd_agree_with_pymoo(objectives: int) -> None:
    hv, igd = pytest.importorskip("pymoo.indicators.hv"), pytest.importorskip("pymoo.indicators.igd")
    points = np.random.default_rng(objectives).random((30, objectives))
    known = points + 0.1
    assert pareto.hypervolume(points, reference=np.full(objectives, 0.2)) == pytest.approx(
        hv.HV(ref_point=np.full(objectives, -0.2))(-points)
    )
    assert pareto.igd(points, known=known) == pytest.approx(igd.IGD(known)(points))


def test_wrong_points_are_named() -> None:
    with pytest.raises(ValueError, match=r"points must have shape \(points, objectives\), got \(2,\)"):
        pareto.non_dominated([1, 2])
    with pytest.raises(ValueError, match="points must be defined in all objectives, got NaN in row 1"):
        pareto.hypervolume([(1, 2), (np.nan, 1)], reference=(0, 0))
    with pytest.raises(ValueError, match=r"reference must have shape \(2,\), got \(3,\)"):
        pareto.hypervolume(LINE, reference=(0, 0, 0))
    with pytest.raises(ValueError, match=r"reference must be defined in all objectives, got \[0.0, nan\]"):
        pareto.hypervolume(LINE, reference=(0, np.nan))
    for within_ranks in (False, True):
        with pytest.raises(ValueError, match=r"points must be finite for the crowding distance, got \[2.0, -inf\]"):
            pareto.crowding_distance([*LINE, (2, -np.inf)], within_ranks=within_ranks)
    with pytest.raises(ValueError, match=r"known must have shape \(1 or more, 2\), got \(1, 3\)"):
        pareto.igd(LINE, known=[(1, 2, 3)])
    with pytest.raises(ValueError, match="divisions must be an integer at least 1, got 0"):
        pareto.equally_spaced_weights(2, divisions=0)


# ---------------------------------------------------------------------------------------------- Lorenz dominance


def test_a_lorenz_vector_holds_the_sums_of_the_smallest_entries() -> None:
    assert pareto.lorenz_vectors([(5, 1, 3), (0, 0, 9)]).tolist() == [[1, 4, 9], [0, 0, 9]]
    assert pareto.lorenz_vectors([(5, 1, 3)], lorenz_lambda=0.25).tolist() == [[1, 0.75 + 3, 1.25 + 6.75]]
    assert pareto.lorenz_vectors([(5, 1, 3)], lorenz_lambda=1).tolist() == [[5, 1, 3]]


def test_lorenz_dominance_prefers_equal_entries_and_pareto_dominance_does_not() -> None:
    points = [(2, 2), (0, 4), (5, 0), (1, 3.5)]
    assert pareto.non_dominated(points).tolist() == [True, True, True, True]
    assert pareto.non_dominated(points, lorenz_lambda=0).tolist() == [True, False, True, True]
    assert pareto.ranks(points, lorenz_lambda=0).tolist() == [0, 1, 0, 0]


def test_lambda_decides_how_much_a_larger_entry_makes_up_for_a_smaller_one() -> None:
    """The second entries are 2 lambda + 4 (1 - lambda) for (2, 2), and 3 lambda + 4 (1 - lambda) for (1, 3)."""
    pair = [(2, 2), (1, 3)]
    assert pareto.non_dominated(pair, lorenz_lambda=0).tolist() == [True, False]  # sums 4 and 4
    assert pareto.non_dominated(pair, lorenz_lambda=0.1).tolist() == [True, True]  # 3.8 and 3.9


def test_points_with_the_same_entries_in_another_order_are_kept_and_repeated_points_once() -> None:
    points = [(1, 3), (3, 1), (1, 3)]
    assert pareto.non_dominated(points, lorenz_lambda=0).tolist() == [True, True, False]
    assert pareto.non_dominated(points, lorenz_lambda=0, keep_duplicates=True).tolist() == [True, True, True]


def test_a_larger_lambda_keeps_every_point_that_a_smaller_one_keeps() -> None:
    points = np.random.default_rng(0).normal(size=(60, 4))
    kept = [pareto.non_dominated(points, lorenz_lambda=share) for share in (0, 0.3, 0.7, 0.999, 1)]
    for fewer, more in itertools.pairwise(kept):
        assert (fewer <= more).all()
    assert 0 < kept[0].sum() < kept[-1].sum()
    in_order = np.sort(points, axis=1)
    assert np.array_equal(kept[3], pareto.non_dominated(in_order, keep_duplicates=True))  # as published for 1


def test_a_wrong_lambda_is_named() -> None:
    with pytest.raises(ValueError, match=r"lorenz_lambda must be between 0 and 1, got 1\.5"):
        pareto.non_dominated([(1, 2)], lorenz_lambda=1.5)
