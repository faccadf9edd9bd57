"""Weights are checked and summed in one place."""

import numpy as np
import pytest

from fair_envs.core.weights import cumulative, shares_of


def test_weights_are_divided_by_their_sum() -> None:
    assert shares_of("luck", [3, 1, 0]).tolist() == [0.75, 0.25, 0]
    assert shares_of("luck", [0.0, 0.0], may_be_zero=True).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -0.5], "luck must have finite weights of at least 0, got -0.5"),
        ([1.0, np.nan], "luck must have finite weights of at least 0, got nan"),
        ([1.0, np.inf], "luck must have finite weights of at least 0, got inf"),
        ([0.0, 0.0], "luck must have weights that sum to a positive, finite number, got 0"),
        ([1e308, 1e308], "luck must have weights that sum to a positive, finite number, got inf"),
    ],
)
def test_what_are_no_weights_is_refused(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shares_of("luck", weights)


def test_cumulative_shares_end_with_exactly_1() -> None:
    rows = cumulative(np.array([[0.1] * 10 + [0.0], [0.0] * 11]))
    assert rows[0, 9:].tolist() == [1.0, 1.0]
    assert rows[0, 4] == pytest.approx(0.5)
    assert rows[1].tolist() == [0.0] * 11
