"""Pooled rates, their intervals, and what noise alone would give, against numbers worked out by hand."""

import numpy as np
import pytest

from fair_envs.assessment.pooling import (
    Difference,
    Largest,
    Lowest,
    Overall,
    People,
    RateOf,
    ToOthers,
    noise,
    pooled_estimate,
    resampled,
    shuffled,
    totals_by,
    totals_of_episodes,
)


def people(episode: list[int], group: list[int], benefit: list[float]) -> People:
    """Return individuals with a demand of 1 each."""
    sums = np.stack([np.array(benefit, float), np.ones(len(benefit))], axis=-1)[:, np.newaxis]
    labels = np.array(group)
    none = np.zeros((len(group), 0), int)
    return People(
        episode=np.array(episode), group=labels, group_code=labels, sensitive=none, legitimate=none, sums=sums
    )


# two groups: 3 of 4 and 1 of 2 over two episodes
SOME = people([0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 0, 1], [1, 1, 1, 1, 0, 0])


def totals() -> np.ndarray:
    return totals_of_episodes(SOME, SOME.group, SOME.sums, count=2, episodes=2)


def test_totals_are_sums_by_group_and_by_episode() -> None:
    assert totals_by(SOME.group, SOME.sums, count=2)[:, 0].tolist() == [[3, 4], [1, 2]]
    assert totals()[:, :, 0].tolist() == [[[2, 2], [1, 1]], [[1, 2], [0, 1]]]


def test_individuals_without_a_group_do_not_count() -> None:
    assert totals_by(np.array([-1, 0]), np.ones((2, 1, 2)), count=1).tolist() == [[[1, 1]]]


def test_a_pooled_rate_is_not_the_mean_of_the_rates_of_episodes() -> None:
    pooled = totals().sum(axis=0)
    assert [float(RateOf(group)(pooled)) for group in (0, 1)] == [0.75, 0.5]
    assert Difference(0, 1)(pooled) == 0.25
    assert Difference(1, 0)(pooled) == -0.25
    assert Largest()(pooled) == 0.25
    assert Overall()(pooled) == pytest.approx(4 / 6)
    assert Lowest()(pooled) == 0.5


def test_a_group_is_compared_with_all_others_pooled() -> None:
    pooled = np.array([[[1, 4]], [[1, 2]], [[3, 8]]], float)
    assert ToOthers(0)(pooled) == pytest.approx(0.25 - 4 / 10)


def test_the_largest_difference_of_several_rates_leaves_out_undefined_groups() -> None:
    pooled = np.array([[[1, 4], [0, 0]], [[2, 4], [3, 4]], [[0, 0], [1, 4]]], float)
    assert Largest((0, 1))(pooled) == 0.5
    assert Largest((0,))(pooled) == 0.25
    assert np.isnan(Largest()(pooled[:1]))
    assert Lowest(0)(pooled) == 0.25 and np.isnan(Lowest(0)(pooled[2:]))


def test_an_interval_covers_the_episodes_that_could_have_been_drawn() -> None:
    found = totals()
    samples = resampled(found, count=2000, seed=0)
    estimate = pooled_estimate(found, samples, RateOf(0), level=0.95)
    assert (estimate.value, estimate.n) == (0.75, 2)
    assert (estimate.low, estimate.high) == (0.5, 1.0)  # twice episode 1, twice episode 0


def test_a_rate_that_is_undefined_in_a_sample_has_no_interval() -> None:
    lonely = people([0, 0, 1], [0, 1, 0], [1, 1, 0])
    found = totals_of_episodes(lonely, lonely.group, lonely.sums, count=2, episodes=2)
    estimate = pooled_estimate(found, resampled(found, count=200, seed=0), RateOf(1), level=0.95)
    assert estimate.value == 1.0 and np.isnan(estimate.low)


def test_labels_are_shuffled_inside_episodes() -> None:
    for order in shuffled(SOME, count=20, seed=3):
        assert sorted(order[:3].tolist()) == [0, 1, 2] and sorted(order[3:].tolist()) == [3, 4, 5]


def test_labels_are_shuffled_among_all_if_each_episode_has_one_individual() -> None:
    alone = people([0, 1, 2, 3], [0, 1, 0, 1], [1, 0, 1, 0])
    firsts = {int(order[0]) for order in shuffled(alone, count=50, seed=3)}
    assert firsts == {0, 1, 2, 3}


def test_the_noise_floor_of_a_fair_policy_is_about_its_gap_and_far_below_that_of_an_unfair_one() -> None:
    rng = np.random.default_rng(1)
    episode, group = np.repeat(np.arange(20), 50), rng.integers(2, size=1000)
    for benefit, unfair in ((rng.random(1000) < 0.5, False), (rng.random(1000) < 0.3 + 0.4 * group, True)):
        own = people(episode.tolist(), group.tolist(), benefit.astype(float).tolist())
        gap = abs(float(Difference(0, 1)(totals_by(own.group, own.sums, count=2))))
        orders = shuffled(own, count=200, seed=0)
        again = [Difference(0, 1)(totals_by(own.group[order], own.sums, count=2)) for order in orders]
        floor, limit = noise(np.array(again), level=0.95)
        assert 0.015 < floor < 0.04 < limit < 0.1  # the standard error of the difference is 0.032
        assert (gap > limit) == unfair


def test_noise_is_undefined_if_a_shuffle_is() -> None:
    assert np.isnan(noise(np.array([0.1, np.nan]), level=0.95)).all()
    assert np.isnan(noise(np.zeros(0), level=0.95)).all()
