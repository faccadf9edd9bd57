"""Chance is a pure function of key, time, site and index, and looks like randomness."""

import functools
import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numba import njit

from fair_envs.core import randomness
from fair_envs.support.aliases import Floats, Ints

MASK = 0xFFFFFFFF


def compiled(function: Callable[..., Any]) -> Any:
    """Return the function as compiled code calls it."""
    return njit(lambda *given: function(*given))


philox, bits, uniform = compiled(randomness.philox), compiled(randomness.bits), compiled(randomness.uniform)
integer, shuffle, episode_key = (
    compiled(randomness.integer),
    compiled(randomness.shuffle),
    compiled(randomness.episode_key),
)
bernoulli, poisson, binomial = map(compiled, (randomness.bernoulli, randomness.poisson, randomness.binomial))
random_words, normal_of = compiled(randomness.random_words), compiled(randomness.normal_of)
to_unit_interval = compiled(randomness.to_unit_interval)

# Random123's file of known answers for philox4x32 with 10 rounds: counter, key, result.
PUBLISHED = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK,) * 4, (MASK,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def words(numbers: tuple[int, ...]) -> list[np.uint64]:
    return [np.uint64(number) for number in numbers]


def philox_by_hand(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Return Philox4x32-10 in Python's own integers, as the paper writes it."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for r in range(10):
        r0, r1 = (k0 + r * 0x9E3779B9) & MASK, (k1 + r * 0xBB67AE85) & MASK
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ r0, p1 & MASK, (p0 >> 32) ^ c3 ^ r1, p0 & MASK
    return c0, c1, c2, c3


@pytest.mark.nojit
@pytest.mark.parametrize(("counter", "key", "result"), PUBLISHED)
def test_philox_gives_its_published_answers(
    counter: tuple[int, ...], key: tuple[int, ...], result: tuple[int, ...]
) -> None:
    assert tuple(int(word) for word in philox(*words(counter), *words(key))) == result
    assert philox_by_hand(counter, key) == result


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("key", "time", "site", "index"),
    [(0, 0, 0, 0), (1, 2, 3, 4), (2**64 - 1, 2**31 - 2, randomness.POLICY, 2**32 - 1), (2**63 + 7, 2999, 6, 41)],
)
def test_a_place_is_the_counter_time_site_index_under_the_key_low_word_first(
    key: int, time: int, site: int, index: int
) -> None:
    high, low, *_ = philox_by_hand((time, site, index, 0), (key & MASK, key >> 32))
    assert int(bits(np.uint64(key), time, site, index)) == high << 32 | low


@pytest.mark.nojit
@pytest.mark.parametrize("way", [compiled, lambda function: function], ids=["compiled", "from Python"])
def test_the_numbers_are_these_with_and_without_compilation(way: Callable[[Any], Any]) -> None:
    assert int(way(randomness.bits)(np.uint64(7), 5, 3, 1)) == 9696648432332594742
    assert way(randomness.uniform)(np.uint64(7), 5, 3, 1) == 0.5256563648081579
    assert way(randomness.integer)(np.uint64(7), 5, 3, 1, 1000) == 525
    assert int(way(randomness.episode_key)(np.uint64(3), np.uint64(0))) == 13942332713591219457
    items = np.arange(8)
    way(randomness.shuffle)(items, np.uint64(7), 5, 3)
    assert items.tolist() == [7, 2, 6, 0, 1, 3, 4, 5]


def test_a_uniform_number_is_the_first_53_bits_and_below_1() -> None:
    for index in range(1000):
        drawn = int(bits(np.uint64(1), 0, 0, index))
        assert uniform(np.uint64(1), 0, 0, index) == (drawn >> 11) / 2**53
    assert float(2**53 - 1) / 2**53 < 1  # so all bits set is below 1 too


@pytest.mark.parametrize("below", [1, 2, 7, 375])
def test_an_integer_is_at_least_0_and_below_its_bound(below: int) -> None:
    drawn = {integer(np.uint64(5), 0, 0, index, below) for index in range(20 * below)}
    assert drawn == set(range(below))


def along(axis: str, count: int) -> Floats:
    """Return uniform numbers at places that differ in one coordinate alone."""
    k = np.arange(count)
    if axis == "index":
        out = np.empty((1, count))
        randomness.fill_uniform(np.array([9], np.uint64), np.array([4], np.int32), 2, out)
        return np.array(out[0])
    out = np.empty((count, 1))
    if axis == "site":
        return np.array([uniform(np.uint64(9), 4, site, 0) for site in k])
    if axis == "time":
        randomness.fill_uniform(np.full(count, 9, np.uint64), k.astype(np.int32), 2, out)
    elif axis == "key":
        randomness.fill_uniform(k.astype(np.uint64), np.full(count, 4, np.int32), 2, out)
    elif axis == "high half of the key":
        randomness.fill_uniform(k.astype(np.uint64) << np.uint64(32), np.full(count, 4, np.int32), 2, out)
    return out[:, 0]


@pytest.mark.parametrize("axis", ["index", "time", "site", "key", "high half of the key"])
def test_neighbouring_places_look_independent_and_uniform(axis: str) -> None:
    numbers = along(axis, 40_000)
    assert 0 <= numbers.min() < numbers.max() < 1
    cells = np.bincount((numbers * 100).astype(int), minlength=100)
    assert 50 < ((cells - 400) ** 2 / 400).sum() < 160  # chi-square with 99 degrees of freedom: 99 +- 14
    for lag in (1, 2, 40):
        pairs = np.histogram2d(numbers[:-lag], numbers[lag:], bins=10, range=[[0, 1], [0, 1]])[0]
        expected = (len(numbers) - lag) / 100
        assert 50 < ((pairs - expected) ** 2 / expected).sum() < 160
    assert len(set(numbers.tolist())) == len(numbers)


def test_places_that_differ_in_two_coordinates_are_not_the_same_place() -> None:
    drawn = {int(bits(np.uint64(k), t, s, i)) for k in range(6) for t in range(6) for s in range(6) for i in range(6)}
    assert len(drawn) == 6**4


@pytest.mark.parametrize("count", [0, 1, 2, 375])
def test_a_shuffle_is_a_permutation(count: int) -> None:
    items = np.arange(count)
    shuffle(items, np.uint64(11), 0, 1)
    assert sorted(items.tolist()) == list(range(count))


def test_every_order_is_as_likely() -> None:
    orders: Counter[tuple[int, ...]] = Counter()
    for key in range(12_000):
        items = np.arange(4)
        shuffle(items, np.uint64(key), 0, 0)
        orders[tuple(items.tolist())] += 1
    assert set(orders) == set(permutations(range(4)))
    assert sum((count - 500) ** 2 / 500 for count in orders.values()) < 50  # 23 degrees of freedom: 23 +- 7


def test_the_key_of_an_episode_belongs_to_seed_and_episode() -> None:
    keys = [
        int(episode_key(np.uint64(seed), np.uint64(episode)))
        for seed in (0, 1, 2, 2**32, 2**63 - 1)
        for episode in (0, 1, 2, 2**32, 2**32 + 1)
    ]
    assert len(set(keys)) == len(keys)
    assert all(a != b + 1 and b != a + 1 for a, b in pairwise(keys))
    assert int(episode_key(np.uint64(0), np.uint64(0))) == keys[0]


def test_fill_uniform_writes_the_number_of_each_place() -> None:
    keys, times, out = np.array([3, 2**63 + 5, 3], np.uint64), np.array([0, 7, 9], np.int32), np.empty((3, 4))
    randomness.fill_uniform(keys, times, randomness.POLICY, out)
    assert out.tolist() == [
        [uniform(key, time, randomness.POLICY, i) for i in range(4)] for key, time in zip(keys, times, strict=True)
    ]


@pytest.mark.nojit
@pytest.mark.parametrize("way", [compiled, lambda function: function], ids=["compiled", "from Python"])
def test_a_normal_number_is_box_and_mullers_of_the_places_four_words(way: Callable[[Any], Any]) -> None:
    for index in range(5):
        words_of_place = philox_by_hand((5, 3, index, 0), (7, 0))
        length, turn = (((high << 32 | low) >> 11) / 2**53 for high, low in (words_of_place[:2], words_of_place[2:]))
        expected = math.sqrt(-2 * math.log(1 - length)) * math.cos(2 * math.pi * turn)
        assert way(randomness.normal)(np.uint64(7), 5, 3, index) == pytest.approx(expected, rel=1e-12)


def test_normal_numbers_are_normal() -> None:
    drawn = [randomness.normal(np.uint64(1), 0, 0, index) for index in range(5000)]
    assert scipy.stats.kstest(drawn, "norm").pvalue > 0.01


def test_the_words_of_a_place_begin_with_its_bits() -> None:
    place = (0x123456789ABCDEF, 7, 3, 11)
    word_0, word_1, word_2, word_3 = (int(word) for word in random_words(*place))
    assert int(bits(*place)) == (word_0 << 32) | word_1
    assert len({word_0, word_1, word_2, word_3}) == 4


def test_a_word_as_a_share_lies_below_1() -> None:
    assert (to_unit_interval(np.uint64(0)), to_unit_interval(np.uint64(2**31))) == (0.0, 0.5)
    assert 1 - 1e-9 < to_unit_interval(np.uint64(2**32 - 1)) < 1


def test_normal_numbers_are_the_inverse_of_the_normal_distribution() -> None:
    luck = np.random.default_rng(0).integers(0, 2**32, 2000)
    placed = np.unique(np.concatenate([luck, [0, 1, 2, 1000, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]]))
    found = np.array([normal_of(word) for word in placed.tolist()])
    assert found == pytest.approx(scipy.stats.norm.ppf((placed + 0.5) / 2**32), rel=3e-7, abs=1e-9)
    assert (np.diff(found) > 0).all()
    assert found[0] == -found[-1] and found[-1] < 6.4


# ------------------------------------------------------------------------------------------ distributions of counts

DRAWS = 1_000_000


def drawn(function: Callable[..., Any], *parameters: float, site: int = 3) -> Ints:
    """Return a million draws at different indices below 2 ** 16, times and keys."""
    numbers = np.empty(DRAWS, np.int64)
    filling(function)(numbers, site, parameters)
    return numbers


@functools.cache
def filling(function: Callable[..., Any]) -> Any:
    """Return the loop over the places, compiled once for all parameters."""

    def fill(out: Ints, site: int, parameters: tuple[float, ...]) -> None:
        for i in range(out.shape[0]):
            out[i] = function(np.uint64(11 + i // 50_000), i % 1000, site, i % 50_000, *parameters)

    return njit(fill)


def chi_square_p(numbers: Ints, distribution: Any) -> float:
    """Return the p-value of Pearson's test against a distribution, with the tails put together to 10 expected each."""
    low, high = int(distribution.ppf(1e-5)), int(distribution.ppf(1 - 1e-5))
    middle = np.arange(low + 1, high)
    expected = [distribution.cdf(low), *distribution.pmf(middle), distribution.sf(high - 1)]
    counted = [(numbers <= low).sum(), *((numbers == k).sum() for k in middle), (numbers >= high).sum()]
    kept = [i for i, share in enumerate(expected) if share * len(numbers) >= 5]
    rest = [i for i in range(len(expected)) if i not in kept]
    expected = [expected[i] for i in kept] + ([sum(expected[i] for i in rest)] if rest else [])
    counted = [counted[i] for i in kept] + ([sum(counted[i] for i in rest)] if rest else [])
    return float(scipy.stats.chisquare(counted, np.array(expected) * len(numbers) / np.sum(expected)).pvalue)


@pytest.mark.parametrize("probability", [0.005, 0.3, 0.5, 0.93])
def test_a_million_bernoulli_draws_pass_a_chi_square_test(probability: float) -> None:
    numbers = drawn(bernoulli, probability)
    expected = np.array([1 - probability, probability]) * DRAWS
    assert scipy.stats.chisquare(np.bincount(numbers, minlength=2), expected).pvalue > 1e-4


@pytest.mark.parametrize("mean", [0.05, 1.5, 8.0, 42.0, 250.0, 700.5])
def test_a_million_poisson_draws_pass_a_chi_square_test(mean: float) -> None:
    assert chi_square_p(drawn(poisson, mean), scipy.stats.poisson(mean)) > 1e-4


@pytest.mark.parametrize(
    ("trials", "probability"), [(1, 0.4), (6, 0.25), (20, 0.5), (20, 0.9), (300, 0.02), (1500, 0.6)]
)
def test_a_million_binomial_draws_pass_a_chi_square_test(trials: int, probability: float) -> None:
    assert chi_square_p(drawn(binomial, trials, probability), scipy.stats.binom(trials, probability)) > 1e-4


@pytest.mark.nojit
def test_counts_at_the_ends_of_their_parameters() -> None:
    place = np.uint64(7), 5, 3, 1
    assert not randomness.bernoulli(*place, 0.0) and randomness.bernoulli(*place, 1.0)
    assert randomness.poisson(*place, 0.0) == 0
    assert [
        randomness.binomial(*place, 0, 0.5),
        randomness.binomial(*place, 9, 0.0),
        randomness.binomial(*place, 9, 1.0),
    ] == [
        0,
        0,
        9,
    ]
    largest = 1 - 2.0**-53
    assert randomness.poisson_at(largest, 8.0) < 60 and randomness.binomial_at(largest, 6, 0.3) == 6


@pytest.mark.nojit
def test_a_larger_mean_gives_no_smaller_number_with_the_same_luck() -> None:
    for share_of in np.linspace(0, 0.999, 50):
        counts = [randomness.poisson_at(share_of, mean) for mean in (0.1, 1.0, 4.0, 9.5)]
        trials = [randomness.binomial_at(share_of, 7, p) for p in (0.1, 0.4, 0.6, 0.95)]
        assert counts == sorted(counts) and trials == sorted(trials)
