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
    cells_of,
    noise,
    pooled_estimate,
    resampled,
    shuffled,
    shuffled_totals,
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


def test_the_interval_of_the_largest_gap_comes_from_signed_differences() -> None:
    """Percentiles of an absolute difference exclude 0, and often the estimate, where groups are treated alike."""
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        benefits = rng.integers(0, 11, (20, 2, 1))
        totals = np.stack([benefits, np.full((20, 2, 1), 10)], axis=-1).astype(float)
        found = pooled_estimate(totals, resampled(totals, count=300, seed=seed), Largest(), level=0.95)
        assert found.low <= found.value <= found.high
        covered += found.low == 0
    assert covered > 180
    unequal = np.tile([[[8.0, 10.0]], [[3.0, 10.0]]], (20, 1, 1, 1))  # rates 0.8 and 0.3 in each episode
    found = pooled_estimate(unequal, resampled(unequal, count=50, seed=0), Largest(), level=0.95)
    assert (found.low, found.value, found.high) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize("groups", [2, 4, 8])
def test_an_interval_of_the_largest_gap_excludes_0_rarely_if_any_number_of_groups_are_alike(groups: int) -> None:
    rng = np.random.default_rng(groups)
    excluded = 0
    for seed in range(200):
        benefits = rng.binomial(50, 0.5, (32, groups, 1))
        totals = np.stack([benefits, np.full_like(benefits, 50)], axis=-1).astype(float)
        found = pooled_estimate(totals, resampled(totals, count=300, seed=seed), Largest(), level=0.95)
        assert found.low <= found.value <= found.high
        excluded += found.low > 0
    assert excluded <= 22  # 10 expected, and four standard deviations


def test_an_interval_of_the_largest_gap_finds_the_groups_that_differ() -> None:
    rng = np.random.default_rng(0)
    benefits = rng.binomial(50, np.array([0.5, 0.5, 0.8])[:, np.newaxis], (32, 3, 1))
    totals = np.stack([benefits, np.full_like(benefits, 50)], axis=-1).astype(float)
    found = pooled_estimate(totals, resampled(totals, count=300, seed=0), Largest(), level=0.95)
    assert 0.2 < found.low < 0.3 < found.high < 0.4
    totals[1:, 0] = 0  # one group is absent from all episodes but one, and so from some samples
    assert np.isnan(pooled_estimate(totals, resampled(totals, count=300, seed=0), Largest(), level=0.95).low)


def test_a_rate_that_is_undefined_in_a_sample_has_no_interval() -> None:
    lonely = people([0, 0, 1], [0, 1, 0], [1, 1, 0])
    found = totals_of_episodes(lonely, lonely.group, lonely.sums, count=2, episodes=2)
    estimate = pooled_estimate(found, resampled(found, count=200, seed=0), RateOf(1), level=0.95)
    assert estimate.value == 1.0 and np.isnan(estimate.low)


def test_orders_stay_inside_cells() -> None:
    for order in shuffled(np.array([0, 1, 0, 1, 0]), count=20, seed=3):
        assert sorted(order[[0, 2, 4]].tolist()) == [0, 2, 4] and sorted(order[[1, 3]].tolist()) == [1, 3]


def test_labels_are_shuffled_inside_the_strata_of_episodes() -> None:
    assert cells_of(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])).tolist() == [0, 1, 3, 3]


def test_labels_are_shuffled_among_all_if_each_episode_has_one_individual() -> None:
    assert cells_of(np.arange(4), np.array([0, 1, 1, 0])).tolist() == [0, 1, 1, 0]
    alone = people([0, 1, 2, 3], [0, 1, 0, 1], [1, 0, 1, 0])
    assert {float(gap) for gap in gaps_of(alone, count=50)} == {-1, 0, 1}


# What is shuffled -----------------------------------------------------------------------------------------------------


def gaps_of(own: People, *, count: int = 100, within: np.ndarray | None = None) -> np.ndarray:
    """Return the differences of two groups with shuffled labels."""
    index = own.group if within is None else np.where(within, own.group, -1)
    (found,) = shuffled_totals(own.episode, [(index, own.sums, 2)], count=count, seed=0)
    return Difference(0, 1)(found)


def with_demand(episode: list[int], group: list[int], benefit: list[float], demand: list[float]) -> People:
    """Return individuals with the given demands in one rate."""
    own = people(episode, group, benefit)
    own.sums[:, 0, 1] = demand
    return own


def test_only_those_who_count_in_a_rate_get_other_labels() -> None:
    # two of group 0 and one of group 1 are qualified, whoever else applies
    own = with_demand([0] * 6, [0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0])
    (found,) = shuffled_totals(own.episode, [(own.group, own.sums, 2)], count=60, seed=0)
    assert (found[:, :, 0, 1] == [2, 1]).all()
    assert set(found[:, 1, 0, 0].tolist()) == {0, 1}


def test_labels_stay_inside_a_stratum_and_an_episode() -> None:
    own = people([0, 0, 0, 1, 1, 1], [0, 1, 0, 0, 1, 1], [1, 0, 0, 1, 0, 1])
    (found,) = shuffled_totals(own.episode, [(np.array([0, 1, -1, 0, 1, -1]), own.sums, 2)], count=200, seed=0)
    assert (found[:, :, 0, 1] == [2, 2]).all()
    assert set(found[:, 0, 0, 0].tolist()) == {0, 1, 2}


def test_each_grouping_and_rate_has_its_own_sums() -> None:
    sums = np.array([[[1, 1], [0, 0]], [[0, 1], [5, 1]], [[1, 1], [7, 1]]], float)
    given = [(np.array([0, 1, 1]), sums, 2), (np.array([0, 0, 1]), sums[:, :1], 2)]
    first, second = shuffled_totals(np.zeros(3, int), given, count=40, seed=0)
    assert first.shape == (40, 2, 2, 2) and second.shape == (40, 2, 1, 2)
    assert (first[:, :, 0, 1] == [1, 2]).all() and (second[:, :, 0, 1] == [2, 1]).all()
    assert np.isnan(first[:, :, 1]).all()  # only one group counts in the second rate
    assert np.isnan(Largest((0, 1))(first)).all()


def test_there_is_no_noise_if_shuffling_changes_nothing() -> None:
    own = people([0, 0, 1, 1], [0, 0, 1, 1], [1, 0, 1, 1])
    assert np.isnan(noise(gaps_of(own), level=0.95)).all()


def test_shuffles_are_reproducible() -> None:
    own = people([0] * 9, [0, 1, 1, 0, 0, 1, 0, 1, 1], [1, 0, 1, 0, 0, 1, 1, 1, 0])
    assert gaps_of(own).tolist() == gaps_of(own).tolist()
    assert len(set(gaps_of(own).tolist())) > 1


@pytest.mark.parametrize(("share", "qualified"), [(0.2, (0.9, 0.05)), (0.5, (0.5, 0.05)), (0.1, (0.05, 0.6))], ids=str)
@pytest.mark.parametrize("in_stratum", [False, True])
def test_few_gaps_of_a_coin_are_beyond_noise_with_unequal_groups(
    share: float, qualified: tuple[float, float], in_stratum: bool
) -> None:
    """The qualified, or the people of a stratum, are unequally frequent in two groups of unequal sizes."""
    stars = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        episode, group = np.repeat(np.arange(10), 40), (rng.random(400) < share).astype(int)
        counts, selected = rng.random(400) < np.array(qualified)[group], rng.random(400) < 0.5
        demand = np.ones(400) if in_stratum else counts
        own = with_demand(list(episode), list(group), list(demand * selected), list(demand))
        index = np.where(counts, group, -1) if in_stratum else group
        gap = Difference(0, 1)(totals_by(index, own.sums, count=2))
        stars.append(abs(gap) > noise(gaps_of(own, within=counts if in_stratum else None), level=0.95)[1])
    assert np.mean(stars) < 0.1


def test_the_noise_floor_of_a_fair_policy_is_about_its_gap_and_far_below_that_of_an_unfair_one() -> None:
    rng = np.random.default_rng(1)
    episode, group = np.repeat(np.arange(20), 50), rng.integers(2, size=1000)
    for benefit, unfair in ((rng.random(1000) < 0.5, False), (rng.random(1000) < 0.3 + 0.4 * group, True)):
        own = people(episode.tolist(), group.tolist(), benefit.astype(float).tolist())
        gap = abs(float(Difference(0, 1)(totals_by(own.group, own.sums, count=2))))
        floor, limit = noise(gaps_of(own, count=200), level=0.95)
        assert 0.015 < floor < 0.04 < limit < 0.1  # the standard error of the difference is 0.032
        assert (gap > limit) == unfair


def test_intervals_of_few_episodes_hold_the_difference_nearly_as_often_as_they_say() -> None:
    """Without expansion, they hold it in 0.87 of the cases with 8 episodes, so this test fails."""
    rng, held = np.random.default_rng(0), 0
    for k in range(400):
        demand = rng.integers(10, 31, (8, 2))
        benefit = rng.binomial(demand, np.clip([0.5, 0.6] + 0.1 * rng.standard_normal((8, 1)), 0, 1))
        totals = np.stack([benefit, demand], axis=-1)[:, :, np.newaxis].astype(float)
        found = pooled_estimate(totals, resampled(totals, count=400, seed=k), Difference(0, 1), level=0.95)
        held += found.low <= -0.1 <= found.high
    assert 0.905 < held / 400 < 0.97


@pytest.mark.parametrize("count", [19, 20, 50, 100])
def test_a_gap_that_chance_gives_is_beyond_the_limit_in_at_most_five_percent_of_cases(count: int) -> None:
    draws = np.random.default_rng(0).standard_normal((8000, count + 1))
    stars = [abs(gap) > noise(shuffled, level=0.95)[1] for gap, *shuffled in draws]
    expected = (count + 1 - np.ceil(0.95 * (count + 1) - 1e-9)) / (count + 1)  # of equal ranks
    assert np.mean(stars) == pytest.approx(expected, abs=0.0075) and 0.039 < expected <= 0.05


def test_few_shuffles_have_no_limit() -> None:
    assert np.isnan(noise(np.arange(18.0), level=0.95)[1])
    assert noise(np.arange(19.0), level=0.95) == (9.0, 18.0) and noise(np.arange(-99.0, 1), level=0.95)[1] == 95.0


def test_noise_is_undefined_if_a_shuffle_is() -> None:
    assert np.isnan(noise(np.array([0.1, np.nan]), level=0.95)).all()
    assert np.isnan(noise(np.zeros(0), level=0.95)).all()
