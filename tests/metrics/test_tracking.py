"""What becomes of groups over time: worked examples by hand."""

import numpy as np
import pytest

from fair_envs.metrics.tracking import confusion, costed_confusion, delayed_impact, prevalence, track


def test_a_group_that_ends_lower_is_harmed_though_it_rose_in_most_steps() -> None:
    impact = delayed_impact([600, 610, 620, 620, 500])
    assert float(impact.change) == -100
    assert [float(share) for share in impact[1:]] == [0.5, 0.25, 0.25]


def test_impact_of_each_group_and_lane() -> None:
    means = np.array([[1.0, 5.0], [0.9, 4.0], [1.1, 3.0]])
    impact = delayed_impact(means, tolerance=0.25)
    assert impact.change == pytest.approx(np.array([0.1, -2]))
    assert (impact.stayed.tolist(), impact.fell.tolist(), impact.rose.tolist()) == ([1, 0], [0, 1], [0, 0])
    assert delayed_impact(np.zeros((7, 3, 2))).rose.shape == (3, 2)


def test_impact_without_a_step_or_of_an_undefined_mean_is_undefined() -> None:
    assert float(delayed_impact([3.0]).change) == 0
    assert np.isnan(delayed_impact([3.0])[1:]).all()
    assert np.isnan(delayed_impact([3.0, np.nan, 3.0])[1:]).all()
    with pytest.raises(ValueError, match=r"means must have an axis of time with at least one entry, got shape \(0,\)"):
        delayed_impact([])


def test_values_are_tracked_in_strata() -> None:
    cash = track([10, 11, np.nan, 13, 8, 50], strata=[0, 1, 0, 1, 0, -1], count=3)
    assert cash.number.tolist() == [2, 2, 0]
    assert cash.sum.tolist() == [18, 24, 0]
    assert cash.mean[:2].tolist() == [9, 12]
    assert cash.first[:2].tolist() == [10, 11]
    assert cash.final[:2].tolist() == [8, 13]
    assert cash.change[:2].tolist() == [-2, 2]
    assert np.isnan([cash.mean[2], cash.first[2], cash.final[2], cash.change[2]]).all()


def test_values_are_tracked_as_a_whole() -> None:
    cash = track([10, 12, 9])
    assert (float(cash.sum), float(cash.final), float(cash.change)) == (31, 9, -1)
    assert np.isnan(track([]).mean)


def test_confusion_leaves_out_what_is_not_known() -> None:
    action, feedback = [1, 1, 0, 0, 1, -1], [1, 0, 1, 0, -1, 1]
    assert confusion(action, feedback).tolist() == [[1, 1], [1, 1]]
    both = confusion([action, action], [feedback, feedback], strata=[[0] * 6, [2] * 6])
    assert both.tolist() == [[[1, 1], [1, 1]], [[0, 0], [0, 0]], [[1, 1], [1, 1]]]


def test_confusion_has_its_cost() -> None:
    table = confusion([1, 1, 0, 0], [1, 0, 1, 1])
    assert float(costed_confusion(table, [[0, 0], [1, -1]])) == 0  # a loan repaid, a loan not repaid
    assert float(costed_confusion(table, [[0, 2], [1, -1]])) == 1  # two wrong refusals of 2 each, among 4 decisions
    assert np.isnan(costed_confusion(np.zeros((2, 2)), np.ones((2, 2))))
    assert costed_confusion(np.ones((5, 3, 2, 2)), np.ones((2, 2))).shape == (5, 3)


def test_prevalence_is_the_share_of_people_in_a_state() -> None:
    assert prevalence([[0, 1, 1, 2], [0, 0, 0, 0]]).tolist() == [0.5, 0]
    assert float(prevalence([0, 1, 1, 2], state=2)) == 0.25


def test_bad_arrays_are_named() -> None:
    with pytest.raises(ValueError, match=r"values and strata must have shape \(time,\), got \(2,\) and \(1,\)"):
        track([1, 2], strata=[0])
    with pytest.raises(ValueError, match="strata must be between -1 and 1, got 0 to 2"):
        track([1, 2], strata=[0, 2], count=2)
    with pytest.raises(ValueError, match="strata must be between -1 and 0, got -2 to 0"):
        confusion([1, 0], [1, 0], strata=[0, -2])
    with pytest.raises(ValueError, match=r"action must have the shape of feedback and strata, \(1,\), got \(2,\)"):
        confusion([1, 2], [1])
    with pytest.raises(ValueError, match=r"table and cost must have shapes .*, got \(2,\) and \(2, 2\)"):
        costed_confusion([1, 2], np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"states must have an axis of people, got shape \(\)"):
        prevalence(3)
