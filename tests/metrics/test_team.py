import json
from collections import Counter
from collections.abc import Mapping
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import entropy, friedmanchisquare

from fair_envs.metrics.team import (
    TeamFairness,
    binned,
    captor_sets,
    identity_mutual_information,
    identity_mutual_information_of_returns,
    identity_p_value,
    null_level,
    over_seeds,
    success,
    team_fairness,
    team_fairness_of_returns,
    team_fairness_of_returns_per_seed,
    team_fairness_per_seed,
)
from fair_envs.support.aliases import Ints

NAN = float("nan")
LOG_3 = float(np.log2(3))
few = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def episodes(counts: Mapping[Any, int], *, agents: int = 3) -> Ints:
    """Return captures in which each set of captors occurs that often, shape (episodes, agents)."""
    rows = []
    for captors, count in counts.items():
        row = np.zeros(agents, dtype=np.int64)
        row[list(captors)] = 1
        rows += [row] * count
    return np.stack(rows)


def singles(*counts: int) -> Ints:
    """Return captures in which agent i captures alone in `counts[i]` episodes."""
    return episodes({(i,): count for i, count in enumerate(counts)}, agents=len(counts))


def fair_singles(chance: np.random.Generator, count: int, *, agents: int = 3) -> Ints:
    """Return episodes with one captor each, uniformly drawn."""
    return np.eye(agents, dtype=np.int64)[chance.integers(agents, size=count)]


def symmetrised_divergence(outcomes: NDArray[Any]) -> float:
    """Return KL(distribution of outcomes, its mean over all relabellings) in bits, from the definition."""
    rows = [tuple(row.tolist()) for row in outcomes]
    share = {row: count / len(rows) for row, count in Counter(rows).items()}
    mean: Counter[tuple[int, ...]] = Counter()
    orders = list(permutations(range(outcomes.shape[1])))
    for row, weight in share.items():
        for order in orders:
            mean[tuple(row[i] for i in order)] += weight / len(orders)  # type: ignore[assignment]
    return float(sum(weight * np.log2(weight / mean[row]) for row, weight in share.items()))


# Worked examples ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "deficit", "corrected", "identity"),
    [
        ({(0,): 100}, 1.584963, 1.570536, 0.918296),
        ({(0,): 33, (1,): 33, (2,): 34}, 0.000144, -0.014283, 0.000072),
        ({(0,): 60, (1,): 30, (2,): 10}, 0.289501, 0.275074, 0.144550),
        ({(0,): 80, (1,): 10, (2,): 10}, 0.663034, 0.648607, 0.364989),
        ({(0,): 50, (): 50}, 0.792481, 0.778054, 0.316689),
        ({(0, 1, 2): 100}, 0, 0, 0),
        ({(0, 1): 100}, 1.584963, 1.570536, 0.918296),
        ({(): 100}, 0, 0, 0),
        ({(0,): 50, (1,): 50}, 0.584963, 0.570536, 0.251629),
    ],
)
def test_sets_of_captors_have_the_deficit_worked_out_by_hand(
    counts: Mapping[tuple[int, ...], int], deficit: float, corrected: float, identity: float
) -> None:
    fairness = team_fairness(episodes(counts))
    assert fairness.deficit == pytest.approx(deficit, abs=1e-6)
    assert fairness.corrected == pytest.approx(corrected, abs=1e-6)
    assert identity_mutual_information(episodes(counts)) == pytest.approx(identity, abs=1e-6)
    assert fairness.identity == identity_mutual_information(episodes(counts))


@pytest.mark.parametrize(
    ("alone", "pairs", "deficit"),
    [
        ((58, 17, 20), (1, 1, 3), 0.232),
        ((37, 30, 28), (0, 1, 4), 0.053),
        ((31, 36, 31), (0, 1, 1), 0.015),
        ((32, 28, 38), (0, 0, 2), 0.043),
    ],
)
def test_the_published_reproduction_s_episodes_have_their_deficits(
    alone: tuple[int, int, int], pairs: tuple[int, int, int], deficit: float
) -> None:
    # Only the number of its pairs is known: each split is the one that fits, and all others are more than 0.005 off.
    together = 1 - singles(*pairs)  # who is left out of a pair
    fairness = team_fairness(np.concatenate([singles(*alone), together]))
    assert fairness.deficit == pytest.approx(deficit, abs=5e-4)


def test_a_deficit_with_equal_chances_to_capture_is_beyond_one_agent_s_identity() -> None:
    captures = episodes({(0,): 50, (1, 2): 50})
    assert identity_mutual_information(captures) == pytest.approx(0, abs=1e-12)
    assert team_fairness(captures).deficit == pytest.approx(LOG_3)


def test_a_deficit_among_captures_does_not_fade_as_captures_vanish() -> None:
    rare = team_fairness(episodes({(0,): 4, (): 92, (0, 1, 2): 4}))
    assert rare.share == 0.04
    assert rare.deficit == pytest.approx(0.04 * LOG_3)
    assert rare.among_captures == pytest.approx(LOG_3)
    assert rare.corrected_among_captures == pytest.approx(LOG_3 - 2 / (2 * 4 * np.log(2)))  # as of these 4 alone


def test_without_an_unequal_episode_only_the_deficit_among_captures_is_undefined() -> None:
    never = team_fairness(episodes({(): 7, (0, 1, 2): 2}))
    assert np.isnan(never.among_captures) and np.isnan(never.corrected_among_captures)
    assert (never.deficit, never.corrected, never.share, never.normalised, never.p_value) == (0, 0, 0, 0, 1)


@pytest.mark.parametrize("agents", [2, 3, 4, 5])
def test_the_same_half_of_the_team_capturing_is_the_largest_deficit(agents: int) -> None:
    fairness = team_fairness(episodes({tuple(range(agents // 2)): 9}, agents=agents))
    assert fairness.normalised == pytest.approx(1)
    assert identity_mutual_information(episodes({tuple(range(agents // 2)): 9}, agents=agents)) == pytest.approx(
        entropy([agents // 2, agents - agents // 2], base=2)
    )


def test_one_agent_who_always_captures_alone_has_the_entropy_of_its_share() -> None:
    assert identity_mutual_information(singles(9, 0, 0, 0, 0)) == pytest.approx(entropy([0.2, 0.8], base=2))


@pytest.mark.parametrize("agents", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("each", [1, 2, 5])
def test_rounding_takes_no_measure_below_fair(agents: int, each: int) -> None:
    captures = singles(*[each] * agents)
    fairness = team_fairness(captures)
    assert 0 <= fairness.deficit < 1e-12
    assert 0 <= identity_mutual_information(captures) < 1e-12
    assert fairness.p_value == identity_p_value(captures) == 1


def test_truth_values_and_numbers_are_the_same_and_stay_as_they_came() -> None:
    captures = singles(3, 2, 1)
    before = captures.copy()
    assert team_fairness(captures.astype(bool)) == team_fairness(captures) == team_fairness(captures.tolist())
    assert (captures == before).all()


# Definitions ----------------------------------------------------------------------------------------------------------


def tables(values: int) -> st.SearchStrategy[Ints]:
    """Draw up to nine episodes of two to four agents with so many values."""
    shapes = st.tuples(st.integers(1, 9), st.integers(2, 4))
    return arrays(np.int64, shapes, elements=st.integers(0, values - 1))


@few
@given(tables(2))
def test_the_deficit_is_the_divergence_from_the_mean_over_relabellings(captures: Ints) -> None:
    fairness = team_fairness(captures, permutations=1)
    assert fairness.deficit == pytest.approx(symmetrised_divergence(captures), abs=1e-9)
    assert 0 <= fairness.normalised <= fairness.share + 1e-12


@few
@given(tables(3))
def test_the_deficit_of_returns_is_the_divergence_from_the_mean_over_relabellings(returns: Ints) -> None:
    fairness = team_fairness_of_returns(returns, edges=[0.5, 1.5], permutations=1)
    assert fairness.deficit == pytest.approx(symmetrised_divergence(returns), abs=1e-9)
    assert 0 <= fairness.normalised <= fairness.share + 1e-12


@few
@given(tables(2))
def test_mutual_information_is_the_mean_divergence_of_the_agents_from_the_team(captures: Ints) -> None:
    shares = np.stack([1 - captures.mean(axis=0), captures.mean(axis=0)])  # (outcomes, agents)
    expected = entropy(shares, np.repeat(shares.mean(axis=1, keepdims=True), shares.shape[1], axis=1), base=2).mean()
    assert identity_mutual_information(captures) == pytest.approx(expected, abs=1e-9)


@few
@given(tables(2), st.integers(2, 5))
def test_returns_of_zero_and_one_are_captures(captures: Ints, bins: int) -> None:
    fairness = team_fairness(captures, permutations=20, seed=3)
    for found in (
        team_fairness_of_returns(captures, bins=bins, permutations=20, seed=3),
        team_fairness_of_returns(captures, edges=[0.5], permutations=20, seed=3),
    ):
        np.testing.assert_equal(vars(found), vars(fairness))
    assert identity_mutual_information_of_returns(captures) == identity_mutual_information(captures)


@few
@given(tables(2), st.permutations(range(4)))
def test_renaming_the_agents_changes_nothing(captures: Ints, order: list[int]) -> None:
    renamed = captures[:, [i for i in order if i < captures.shape[1]]]
    assert team_fairness(renamed).deficit == pytest.approx(team_fairness(captures).deficit, abs=1e-9)
    assert identity_mutual_information(renamed) == pytest.approx(identity_mutual_information(captures), abs=1e-9)


# Chance ---------------------------------------------------------------------------------------------------------------


def exact_p_value(captures: Ints) -> float:
    """Return the share of all relabellings of all episodes with as large a deficit."""
    ways = [sorted(set(permutations(row))) for row in captures.tolist()]  # as likely each
    deficits = np.array([symmetrised_divergence(np.array(rows)) for rows in product(*ways)])
    return float(np.mean(deficits >= symmetrised_divergence(captures) - 1e-9))


@pytest.mark.parametrize(
    "captures",
    [
        singles(3, 1, 0),  # more episodes than arrangements: counts are drawn
        singles(2, 0, 0),  # fewer: episodes are
        episodes({(0,): 3, (0, 1): 1}),  # both
        episodes({(0,): 2, (0, 1): 1, (): 1}),
        episodes({(0,): 3, (0, 1): 1, (1, 2): 1}),  # three alike of a kind against two alike of each
    ],
)
def test_the_p_value_is_the_share_of_relabellings_with_as_large_a_deficit(captures: Ints) -> None:
    p = team_fairness(captures, permutations=20_000, seed=1).p_value
    assert p == pytest.approx(exact_p_value(captures), abs=0.015)


def test_more_arrangements_than_integers_are_drawn_without_equals() -> None:
    captures = np.zeros((4, 80), dtype=np.int64)
    captures[:, :40] = 1
    fairness = team_fairness(captures, permutations=99)
    assert fairness.p_value == 0.01
    assert fairness.normalised == pytest.approx(1)
    assert np.isnan(fairness.corrected) and np.isnan(fairness.null_level())


def test_a_team_with_more_arrangements_than_a_float_holds_is_measured() -> None:
    fairness = team_fairness(np.repeat([[1, 0]], 600, axis=1).repeat(2, axis=0), permutations=9)
    assert fairness.normalised == pytest.approx(1)
    assert np.isnan(fairness.corrected) and np.isnan(fairness.null_level())
    assert fairness.as_dict()["freedom"] > 1e299  # type: ignore[operator]


def fair_captures(chance: np.random.Generator, count: int, *, pairs: float = 0.0, share: float = 1.0) -> Ints:
    """Return episodes of three agents, `pairs` of them with two captors, and captures in a `share` of them alone."""
    captures = fair_singles(chance, count)
    captures = np.where(chance.random((count, 1)) < pairs, 1 - captures, captures)
    return np.asarray(captures * (chance.random((count, 1)) < share), dtype=np.int64)


@pytest.mark.parametrize(("count", "pairs", "bias"), [(100, 0, 2), (500, 0, 2), (100, 0.3, 4), (500, 0.3, 4)])
def test_a_fair_team_s_deficit_is_biased_by_the_degrees_of_freedom_and_the_correction_removes_it(
    count: int, pairs: float, bias: int
) -> None:
    chance = np.random.default_rng(5)
    found = [team_fairness(fair_captures(chance, count, pairs=pairs), permutations=1) for _ in range(1500)]
    unit = 1 / (2 * count * np.log(2))  # of a degree of freedom
    assert np.mean([one.deficit for one in found]) == pytest.approx(bias * unit, abs=0.2 * unit)
    assert np.mean([one.corrected for one in found]) == pytest.approx(0, abs=0.2 * unit)
    assert np.mean([one.identity for one in found]) == pytest.approx(unit, abs=0.1 * unit)
    below = np.mean([one.deficit <= one.null_level() for one in found])
    assert 0.93 < below < 0.97


def test_a_fair_team_that_seldom_captures_looks_unfair_among_captures_until_corrected() -> None:
    chance = np.random.default_rng(9)
    found = [team_fairness(fair_captures(chance, 100, share=0.2), permutations=1) for _ in range(1000)]
    assert np.mean([one.among_captures for one in found]) > 0.07
    assert np.mean([one.corrected_among_captures for one in found]) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("agents", "captors", "count", "known"),
    [(3, 1, 1, True), (10, 3, 60, True), (10, 3, 50, False), (6, 3, 10, True), (6, 3, 8, False)],
)
def test_the_correction_holds_up_to_two_degrees_of_freedom_an_episode_and_is_undefined_beyond(
    agents: int, captors: int, count: int, known: bool
) -> None:
    chance = np.random.default_rng(3)
    rows = np.tile([1] * captors + [0] * (agents - captors), (300, count, 1))
    found = [team_fairness(one, permutations=1) for one in chance.permuted(rows, axis=2)]
    assert np.isnan(found[0].corrected) != known
    assert np.isnan(found[0].corrected_among_captures) != known
    assert np.isnan(found[0].null_level()) != known
    if known:
        assert np.mean([one.corrected for one in found]) == pytest.approx(0, abs=0.15)


def test_one_odd_episode_of_many_arrangements_does_not_spoil_the_correction_unnoticed() -> None:
    chance = np.random.default_rng(3)
    many, odd = fair_singles(chance, 100, agents=10), [[1, 1, 1] + [0] * 7]
    fairness = team_fairness(np.concatenate([many, odd]))
    assert fairness.freedom < 2 * 101
    assert np.isnan(fairness.corrected)
    assert np.isfinite(team_fairness(many).corrected)


@pytest.mark.parametrize("counts", [{(0, 1): 4, (2, 3): 0}, {(0, 1): 3, (2, 3): 1}, {(0, 1): 3, (2, 3): 1, (0, 2): 1}])
def test_three_and_four_alike_of_more_arrangements_than_episodes_have_the_exact_p_value(
    counts: dict[tuple[int, int], int],
) -> None:
    captures = episodes(counts, agents=4)
    ways = {pair: np.eye(4, dtype=np.int64)[list(pair)].sum(axis=0) for pair in combinations(range(4), 2)}
    table = np.array(list(product(ways, repeat=len(captures))))  # as likely each: all but the names is equal
    occurred = sum(count * np.log2(count) for count in counts.values() if count)
    sums = [sum(c * np.log2(c) for c in Counter(map(tuple, rows)).values()) for rows in table.tolist()]
    exact = np.mean(np.array(sums) >= occurred - 1e-9)
    assert team_fairness(captures, permutations=20_000, seed=2).p_value == pytest.approx(exact, abs=0.01)


def test_the_chi_square_level_is_the_published_one() -> None:
    assert null_level(100, freedom=2) == pytest.approx(0.0432, abs=5e-5)
    assert null_level(100, freedom=4) == pytest.approx(0.068, abs=5e-4)
    assert null_level(100, freedom=0) == 0
    assert null_level(10, freedom=20) > 0 and np.isnan(null_level(10, freedom=21))
    assert team_fairness(singles(50, 30, 20)).null_level(level=0.5) == null_level(100, freedom=2, level=0.5)


@pytest.mark.parametrize("count", [100, 500])
def test_a_fair_team_is_called_unfair_as_often_as_the_level_says(count: int) -> None:
    chance = np.random.default_rng(count)
    p = [team_fairness(fair_singles(chance, count), permutations=199, seed=chance).p_value for _ in range(600)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 600))


def test_twenty_agents_are_tested_though_subsets_are_many_more_than_episodes() -> None:
    chance = np.random.default_rng(2)
    fair = chance.permuted(np.repeat([[1] * 3 + [0] * 17], 200, axis=0), axis=1)
    roles = np.concatenate([fair[:150], np.repeat([[1] * 3 + [0] * 17], 50, axis=0)])
    assert team_fairness(fair, permutations=200).p_value > 0.05
    assert team_fairness(roles, permutations=200).p_value == 1 / 201
    assert team_fairness(fair, permutations=1).freedom == 1139


def test_with_sets_of_captors_that_never_recur_only_mutual_information_shows_roles() -> None:
    chance = np.random.default_rng(6)
    captures = (chance.random((150, 24)) < np.linspace(0.4, 0.6, 24)).astype(np.int64)
    assert len(captor_sets(captures)) == 150
    assert team_fairness(captures, permutations=100).p_value == 1
    assert identity_p_value(captures, permutations=100) < 0.02


@pytest.mark.parametrize("counts", [(45, 30, 25), (40, 35, 25), (36, 33, 31)])
def test_the_p_value_of_mutual_information_is_near_cochran_s(counts: tuple[int, ...]) -> None:
    captures = np.concatenate([singles(*counts), 1 - singles(20, 25, 15)])
    # Friedman's test of 0 and 1 is Cochran's Q, the large-sample test of equal chances.
    assert identity_p_value(captures, permutations=4000) == pytest.approx(
        friedmanchisquare(*captures.T).pvalue, abs=0.03
    )


def test_a_fair_team_s_mutual_information_is_called_unfair_as_often_as_the_level_says() -> None:
    chance = np.random.default_rng(8)
    p = [identity_p_value(fair_singles(chance, 60), permutations=99, seed=chance) for _ in range(300)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 300))


def test_equal_seeds_relabel_alike_and_a_generator_goes_on() -> None:
    captures = singles(40, 33, 27)
    assert team_fairness(captures, seed=1) == team_fairness(captures, seed=1)
    assert team_fairness(captures, seed=1) != team_fairness(captures, seed=2)
    chance = np.random.default_rng(1)
    assert team_fairness(captures, seed=chance) == team_fairness(captures, seed=1)
    assert team_fairness(captures, seed=chance) != team_fairness(captures, seed=1)


def test_the_least_p_value_of_mutual_information_is_one_among_itself_and_the_relabellings() -> None:
    assert identity_p_value(singles(40, 0, 0), permutations=99) == 0.01


# Returns --------------------------------------------------------------------------------------------------------------


def test_bins_hold_equally_many_distinct_returns_and_rare_values_stay_apart() -> None:
    assert binned([[5.0, -1.0], [2.0, 9.0]]).tolist() == [[1, 0], [0, 1]]
    assert binned([[5.0, -1.0, 2.0], [2.0, 9.0, 9.0]], bins=4).tolist() == [[2, 0, 1], [1, 3, 3]]
    assert binned([[0.0, 0.0], [0.0, 0.0], [0.0, 50.0]]).tolist() == [[0, 0], [0, 0], [0, 1]]
    assert binned([[50.0, 50.0], [50.0, 0.0]]).tolist() == [[1, 1], [1, 0]]
    assert binned([[3.0, 3.0]]).tolist() == [[0, 0]]
    assert binned([[0.0, 1.0], [0.5, 2.0]], edges=[0.5, 1.5]).tolist() == [[0, 1], [1, 2]]


def test_returns_that_differ_by_rounding_alone_are_equal() -> None:
    assert team_fairness_of_returns([[0.1 + 0.2, 0.3]] * 50).deficit == 0
    assert binned([[0.1 + 0.2, 0.3, 1.0]]).tolist() == [[0, 0, 1]]
    assert binned([[1e-17, 0.0, -50.0]]).tolist() == [[1, 1, 0]]
    assert binned([[3e12 + 0.01, 3e12, 4e12], [5e-12, 5e-12, 4e12]], bins=3).tolist() == [[1, 1, 2], [0, 0, 2]]
    assert binned([[1e-20, 2e-20]]).tolist() == [[0, 1]]
    assert binned([[1.0, 1 + 1e-8]]).tolist() == [[0, 1]]


def test_the_returns_of_each_seed_have_bins_of_their_own() -> None:
    seeds = [np.array([[1.0, 2.0]] * 20), np.array([[20.0, 10.0]] * 20)]
    found = team_fairness_of_returns_per_seed(seeds, permutations=50)
    assert [one.deficit for one in found] == pytest.approx([1, 1])
    assert [one.identity for one in found] == pytest.approx([1, 1])
    assert over_seeds(found)["identity"].value == pytest.approx(1)
    assert found[0].p_value < 0.05
    by_edge = team_fairness_of_returns_per_seed(seeds, edges=[5], permutations=50)
    assert [one.deficit for one in by_edge] == [0, 0]


def test_an_agent_who_always_earns_more_makes_returns_unfair_and_shuffled_ones_are_not() -> None:
    chance = np.random.default_rng(4)
    returns = chance.normal(size=(200, 5)) + np.array([2.0, 0, 0, 0, 0])
    unfair = team_fairness_of_returns(returns, permutations=200)
    fair = team_fairness_of_returns(chance.permuted(returns, axis=1), permutations=200)
    assert unfair.p_value < 0.01 < 0.05 < fair.p_value
    assert unfair.corrected > 0.3
    assert fair.deficit < fair.null_level(level=0.999)
    assert identity_mutual_information_of_returns(returns) > 0.1


def test_equal_returns_are_fair() -> None:
    fairness = team_fairness_of_returns(np.full((6, 3), 2.5))
    assert (fairness.deficit, fairness.share, fairness.normalised, fairness.p_value) == (0, 0, 0, 1)


# Seeds and success ----------------------------------------------------------------------------------------------------


def test_seeds_with_opposite_roles_look_fair_when_pooled() -> None:
    seeds = np.stack([singles(50, 0), singles(0, 50)])
    pooled = team_fairness(seeds.reshape(100, 2))
    apart = team_fairness_per_seed(seeds)
    assert pooled.deficit == pytest.approx(0, abs=1e-12)
    assert [one.deficit for one in apart] == pytest.approx([1, 1])
    assert over_seeds(apart)["deficit"].value == pytest.approx(1)


def test_the_interval_over_seeds_is_student_s() -> None:
    seeds = [singles(50, 30, 20), singles(60, 30, 10), singles(10, 10, 10)]
    results = team_fairness_per_seed(seeds, permutations=50)
    estimates = over_seeds(results, level=0.9)
    values = [one.corrected for one in results]
    half = 2.9199856 * np.std(values, ddof=1) / np.sqrt(3)
    assert estimates["corrected"].value == pytest.approx(np.mean(values))
    assert estimates["corrected"].high == pytest.approx(np.mean(values) + half)
    assert list(estimates) == [
        "deficit",
        "corrected",
        "among_captures",
        "corrected_among_captures",
        "share",
        "normalised",
        "identity",
    ]
    identities = [identity_mutual_information(seed) for seed in seeds]
    assert estimates["identity"].value == pytest.approx(np.mean(identities))


def test_a_seed_without_captures_leaves_the_mean_among_captures_undefined_unless_omitted() -> None:
    results = team_fairness_per_seed([singles(4, 0), np.zeros((4, 2)), singles(2, 2)])
    assert np.isnan(over_seeds(results)["among_captures"].value)
    omitted = over_seeds(results, undefined="omit")["among_captures"]
    assert omitted.value == pytest.approx(0.5)
    assert omitted.n == 2


def test_seeds_are_relabelled_each_by_its_own_draws() -> None:
    first, second = team_fairness_per_seed([singles(40, 33, 27)] * 2)
    assert first.deficit == second.deficit
    assert first.p_value != second.p_value


def test_success_has_wilson_s_interval() -> None:
    estimate = success(episodes({(0,): 2, (1, 2): 1, (): 7}))
    # Wilson (1927) with z = 1.959964: centre (p + z2/2n) / (1 + z2/n).
    z2, n, p = 1.959964**2, 10, 0.3
    centre, half = (p + z2 / (2 * n)) / (1 + z2 / n), np.sqrt(p * 0.7 * z2 / n + z2**2 / (4 * n**2)) / (1 + z2 / n)
    assert (estimate.value, estimate.n) == (0.3, 10)
    assert (estimate.low, estimate.high) == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert success(np.zeros((5, 3))).high > 0.4
    narrow = success(np.zeros((5, 3)), level=0.8)
    assert (narrow.low, narrow.level) == (0, 0.8)
    assert narrow.high == pytest.approx(1.2815516**2 / (5 + 1.2815516**2))


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [team_fairness, identity_mutual_information, identity_p_value, success])
def test_bad_captures_name_what_came(measure: Any) -> None:
    with pytest.raises(ValueError, match=r"captures must have shape \(episodes, agents\), got \(3,\)"):
        measure([0, 1, 0])
    with pytest.raises(ValueError, match=r"captures must have at least 1 agent, got 0"):
        measure(np.zeros((3, 0)))
    with pytest.raises(ValueError, match=r"captures must be real numbers, got \[\['1', '0'\]\]"):
        measure([["1", "0"]])
    with pytest.raises(ValueError, match=r"captures must be real numbers, got \[\[1j, 0\]\]"):
        measure([[1j, 0]])
    with pytest.raises(ValueError, match=r"captures must be rows of equal lengths, got \[\[1, 0\], \[1\]\]"):
        measure([[1, 0], [1]])
    with pytest.raises(ValueError, match=r"captures must be 0 or 1, got 0\.9999999999$"):
        measure([[0, 0.9999999999]])
    with pytest.raises(ValueError, match=r"captures must be 0 or 1, got 2"):
        measure([[0, 2]])
    with pytest.raises(ValueError, match=r"captures must be 0 or 1, got nan"):
        measure([[0, NAN]])


@pytest.mark.parametrize("measure", [team_fairness_of_returns, identity_mutual_information_of_returns, binned])
def test_bad_returns_and_bins_name_what_came(measure: Any) -> None:
    with pytest.raises(ValueError, match=r"returns must have shape \(episodes, agents\), got \(1, 2, 3\)"):
        measure(np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match=r"returns must be finite numbers, got inf"):
        measure([[0, np.inf]])
    with pytest.raises(ValueError, match=r"returns must be real numbers, got \[\['a', 'b'\]\]"):
        measure([["a", "b"]])
    with pytest.raises(ValueError, match=r"edges must be real numbers, got 'ab'"):
        measure([[0, 1]], edges="ab")
    with pytest.raises(ValueError, match=r"bins must be at least 2, got 1"):
        measure([[0, 1]], bins=1)
    with pytest.raises(ValueError, match=r"bins must be an integer at least 2, got 2.5"):
        measure([[0, 1]], bins=2.5)
    with pytest.raises(ValueError, match=r"edges must be ascending finite numbers, got \[1, 1\]"):
        measure([[0, 1]], edges=[1, 1])
    with pytest.raises(ValueError, match=r"edges must be ascending finite numbers, got \[\]"):
        measure([[0, 1]], edges=[])


def test_bad_numbers_name_what_came() -> None:
    with pytest.raises(ValueError, match=r"permutations must be at least 1, got 0"):
        team_fairness(singles(1, 1), permutations=0)
    with pytest.raises(ValueError, match=r"permutations must be at least 1, got 0"):
        identity_p_value(singles(1, 1), permutations=0)
    with pytest.raises(ValueError, match=r"level must be between 0 and 1, got 95"):
        team_fairness(singles(1, 1)).null_level(level=95)
    with pytest.raises(ValueError, match=r"level must be between 0 and 1, got 0"):
        success(singles(1, 1), level=0)
    with pytest.raises(ValueError, match=r"episodes must be at least 1, got 0"):
        null_level(0, freedom=2)
    with pytest.raises(ValueError, match=r"freedom must be at least 0, got -1"):
        null_level(10, freedom=-1)
    for odd in (NAN, 2.5):
        with pytest.raises(ValueError, match=rf"freedom must be an integer at least 0, got {odd}"):
            null_level(10, freedom=odd)  # type: ignore[arg-type]
    for call in (team_fairness, identity_p_value, team_fairness_of_returns):
        with pytest.raises(ValueError, match=r"seed must be at least 0, got -1"):
            call(singles(1, 1), seed=-1)
    with pytest.raises(ValueError, match=r"seed must be at least 0, got -1"):
        team_fairness_per_seed([singles(1, 1)], seed=-1)


def test_a_team_of_one_has_nobody_to_be_unfair_to() -> None:
    alone = team_fairness([[1], [0], [1]])
    assert (alone.deficit, alone.corrected, alone.share, alone.identity, alone.p_value) == (0, 0, 0, 0, 1)
    assert np.isnan(alone.normalised) and np.isnan(alone.among_captures)
    assert identity_mutual_information([[1], [0]]) == 0
    assert identity_p_value([[1], [0]], permutations=9) == 1
    assert team_fairness_of_returns([[2.0], [1.0]]).deficit == 0


def test_without_episodes_every_measure_is_undefined() -> None:
    none = np.zeros((0, 3))
    for fairness in (team_fairness(none), team_fairness_of_returns(none)):
        numbers = fairness.as_dict()
        assert (numbers.pop("episodes"), numbers.pop("freedom")) == (0, 0)
        assert set(numbers.values()) == {None}
        assert np.isnan(fairness.null_level())
    for number in (
        identity_mutual_information(none),
        identity_mutual_information_of_returns(none),
        identity_p_value(none),
        success(none).value,
    ):
        assert np.isnan(number)
    assert captor_sets(none) == {} and binned(none).shape == (0, 3)


def test_captor_sets_count_episodes() -> None:
    captures = episodes({(1, 2): 2, (): 3, (2,): 1, (0,): 4})
    assert list(captor_sets(captures).items()) == [((), 3), ((0,), 4), ((2,), 1), ((1, 2), 2)]


def test_a_result_becomes_json_with_null_for_the_undefined() -> None:
    numbers = json.loads(json.dumps(team_fairness(np.zeros((3, 2))).as_dict(), allow_nan=False))
    assert numbers["among_captures"] is None
    assert (numbers["deficit"], numbers["p_value"], numbers["episodes"]) == (0, 1, 3)


def test_a_result_cannot_be_changed() -> None:
    fairness: TeamFairness = team_fairness(singles(1, 1))
    with pytest.raises(AttributeError):
        fairness.deficit = 0.0  # type: ignore[misc]
