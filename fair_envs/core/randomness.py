"""Random numbers as a pure function of their place: the same place always gives the same number.

A draw is identified by four numbers: the ``key`` of the episode, the ``time`` step, the ``site`` (a constant that names
the use, such as ``BUSH_COLOUR``) and an ``index`` (which bush, which attempt). There is no generator state, so no draw
depends on how many draws came before it. Therefore a lane of a batch has the same random draws as the same lane on its
own, and a counterfactual twin has the same random draws as its factual lane, however differently it behaves.

The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
Its published known-answer vectors are among the tests.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fair_envs.core.compilation import kernel, rule
from fair_envs.support.aliases import Floats, Ints

SITES_OF_ENVIRONMENTS = 1 << 16  # environments use the sites 0 .. SITES_OF_ENVIRONMENTS - 1
KEYS = SITES_OF_ENVIRONMENTS  # for the keys of episodes
POLICY = SITES_OF_ENVIRONMENTS + 1  # for sampled actions

_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10
_53_BITS = np.uint64(11)
_UNIT = 1.0 / 9007199254740992.0  # 2 ** -53
_UNIT_OF_WORD = 1.0 / 4294967296.0  # 2 ** -32
_MEAN_AT_ONCE = 256.0  # largest mean for one uniform number: exp(-256) is far from underflow
_TRIALS_AT_ONCE = 512  # most trials for one uniform number: 2 ** -512 is far from underflow too
_NO_MORE = 1e-18  # a probability that no longer changes a sum near 1
_NEXT_PART = 1 << 16  # distance between the indices of the parts of a large number


@rule
def philox(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> tuple[int, int, int, int]:
    """Return the four 32-bit words of Philox4x32-10 for a counter and key of 32-bit words (all stored in uint64)."""
    for _ in range(_ROUNDS):
        product_0 = _MULTIPLIER_0 * c0
        product_1 = _MULTIPLIER_1 * c2
        c0 = (product_1 >> _HALF) ^ c1 ^ k0
        c1 = product_1 & _WORD
        c2 = (product_0 >> _HALF) ^ c3 ^ k1
        c3 = product_0 & _WORD
        k0 = (k0 + _WEYL_0) & _WORD
        k1 = (k1 + _WEYL_1) & _WORD
    return c0, c1, c2, c3


@rule
def random_words(key: int, time: int, site: int, index: int) -> tuple[int, int, int, int]:
    """Return the four random 32-bit words for this place; `bits` uses the first two."""
    key = np.uint64(key)
    return philox(np.uint64(time), np.uint64(site), np.uint64(index), np.uint64(0), key & _WORD, key >> _HALF)


@rule
def bits(key: int, time: int, site: int, index: int) -> int:
    """Return the 64 random bits for this place."""
    word_0, word_1, _, _ = random_words(key, time, site, index)
    return (word_0 << _HALF) | word_1


@rule
def to_unit_interval(word: int) -> float:
    """Return a 32-bit word as a number in [0, 1): coarser than `uniform`, but a place has four of them."""
    return word * _UNIT_OF_WORD


@rule
def normal_of(word: int) -> float:
    """Return a 32-bit word as a standard normal number, between -6.4 and 6.4; larger words give larger numbers.

    It uses the inverse of the normal distribution by Wichura (1988), "Algorithm AS 241", variant PPND7, which is
    accurate to about seven digits.
    """
    centred = (word + 0.5) * _UNIT_OF_WORD - 0.5
    if abs(centred) <= 0.425:
        r = 0.180625 - centred * centred
        above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179
        return centred * above / (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0)
    r = math.sqrt(-math.log(0.5 - abs(centred)))
    if r <= 5.0:
        r -= 1.6
        above = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777
        size = above / ((0.12021132975 * r + 0.73700164250) * r + 1.0)
    else:
        r -= 5.0
        above = ((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150
        size = above / ((0.012258202635 * r + 0.24197894225) * r + 1.0)
    return math.copysign(size, centred)


@rule
def uniform(key: int, time: int, site: int, index: int) -> float:
    """Return the number in [0, 1) for this place."""
    return (bits(key, time, site, index) >> _53_BITS) * _UNIT


@rule
def integer(key: int, time: int, site: int, index: int, below: int) -> int:
    """Return the integer in 0 .. below - 1 for this place."""
    return int(uniform(key, time, site, index) * below)


@rule
def normal(key: int, time: int, site: int, index: int) -> float:
    """Return the standard normal number for this place (Box and Muller); its absolute value is at most 8.6."""
    word_0, word_1, word_2, word_3 = random_words(key, time, site, index)
    length = 1.0 - (((word_0 << _HALF) | word_1) >> _53_BITS) * _UNIT  # above 0
    turn = (((word_2 << _HALF) | word_3) >> _53_BITS) * _UNIT
    return math.sqrt(-2.0 * math.log(length)) * math.cos(2.0 * math.pi * turn)


@rule
def bernoulli(key: int, time: int, site: int, index: int, probability: float) -> bool:
    """Return whether an event with that probability happens at this place."""
    return uniform(key, time, site, index) < probability


@rule
def poisson_at(share: float, mean: float) -> int:
    """Return the Poisson number at a quantile: `share` in [0, 1) is the value of the cumulative distribution.

    It uses inversion, with one step for each unit; the mean is at most 256. A larger share never gives a smaller
    number, so twins with different means can use common random numbers.
    """
    number, chance = 0, math.exp(-mean)
    reached = chance
    while share >= reached and (number < mean or chance > _NO_MORE):
        number += 1
        chance *= mean / number
        reached += chance
    return number


@rule
def poisson(key: int, time: int, site: int, index: int, mean: float) -> int:
    """Return the Poisson number with that mean for this place; the time is proportional to the mean.

    If the mean is above 256, the result is the sum of several numbers, at the places ``index + k * 2 ** 16`` for k = 0,
    1, ...
    """
    number = 0
    while mean > _MEAN_AT_ONCE:
        number += poisson_at(uniform(key, time, site, index), _MEAN_AT_ONCE)
        mean -= _MEAN_AT_ONCE
        index += _NEXT_PART
    return number + poisson_at(uniform(key, time, site, index), mean)


@rule
def binomial_at(share: float, trials: int, probability: float) -> int:
    """Return the binomial number at a quantile, `share` in [0, 1); at most 512 trials.

    It uses inversion, with one step for each success, or for each failure if those are rarer.
    """
    if probability > 0.5:
        return trials - binomial_at_most_half(1.0 - share - _UNIT, trials, 1.0 - probability)
    return binomial_at_most_half(share, trials, probability)


@rule
def binomial_at_most_half(share: float, trials: int, probability: float) -> int:
    """Return the binomial number as in `binomial_at`, for probabilities of at most one half."""
    odds = probability / (1.0 - probability)
    number, chance = 0, (1.0 - probability) ** trials
    reached = chance
    while share >= reached and number < trials:
        number += 1
        chance *= odds * (trials - number + 1) / number
        reached += chance
    return number


@rule
def binomial(key: int, time: int, site: int, index: int, trials: int, probability: float) -> int:
    """Return the number of successful trials at this place; the time is proportional to the number of trials.

    More than 512 trials are the sum of several numbers, at the places ``index + k * 2 ** 16`` for k = 0, 1, ...
    """
    number = 0
    while trials > _TRIALS_AT_ONCE:
        number += binomial_at(uniform(key, time, site, index), _TRIALS_AT_ONCE, probability)
        trials -= _TRIALS_AT_ONCE
        index += _NEXT_PART
    return number + binomial_at(uniform(key, time, site, index), trials, probability)


@rule
def shuffle(items: Ints, key: int, time: int, site: int) -> None:
    """Shuffle a one-dimensional array into the random order for this place, in place (Fisher and Yates)."""
    for last in range(items.shape[0] - 1, 0, -1):
        other = integer(key, time, site, last, last + 1)
        kept = items[last]
        items[last] = items[other]
        items[other] = kept


@rule
def episode_key(seed: int, episode: int) -> int:
    """Return the key of a lane's episode, a function of the lane's seed and the number of episodes before."""
    return bits(seed, np.uint64(episode) & _WORD, KEYS, np.uint64(episode) >> _HALF)


@kernel
def fill_uniform(keys: NDArray[np.uint64], times: NDArray[np.int32], site: int, out: Floats) -> None:
    """Write ``uniform(keys[b], times[b], site, i)`` to ``out[b, i]``; shapes (B,), (B,) and (B, I)."""
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[b, i] = uniform(keys[b], times[b], site, i)
