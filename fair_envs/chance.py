"""Chance as a pure function of where it is used.

A draw is named by four numbers: the ``key`` of the episode, the ``time`` step, the ``site`` (a constant that names the
use, such as ``BUSH_COLOUR``) and an ``index`` (which bush, which attempt). Nothing is advanced, so no draw depends on
how many draws were made before it: a lane of a batch meets the luck of the same lane alone, and a counterfactual twin
meets the luck of its factual lane however differently it behaves.

The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
Its published known-answer vectors are among the tests.
"""

import math

import numba
import numpy as np

from fair_envs.compilation import rule

SITES_OF_ENVIRONMENTS = 1 << 16  # an environment names its sites 0 .. SITES_OF_ENVIRONMENTS - 1
KEYS = SITES_OF_ENVIRONMENTS  # where the keys of episodes come from
POLICY = SITES_OF_ENVIRONMENTS + 1  # where sampled actions come from

_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10
_53_BITS = np.uint64(11)
_UNIT = 1.0 / 9007199254740992.0  # 2 ** -53


@rule
def philox(c0, c1, c2, c3, k0, k1):
    """Return the four 32-bit words of Philox4x32-10 at a counter and key of 32-bit words (all held in uint64)."""
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
def bits(key, time, site, index):
    """Return the 64 random bits that belong to this place."""
    key = np.uint64(key)
    word_0, word_1, _, _ = philox(
        np.uint64(time), np.uint64(site), np.uint64(index), np.uint64(0), key & _WORD, key >> _HALF
    )
    return (word_0 << _HALF) | word_1


@rule
def uniform(key, time, site, index):
    """Return the one number in [0, 1) that belongs to this place."""
    return (bits(key, time, site, index) >> _53_BITS) * _UNIT


@rule
def integer(key, time, site, index, below):
    """Return the one integer in 0 .. below - 1 that belongs to this place."""
    return int(uniform(key, time, site, index) * below)


@rule
def normal(key, time, site, index):
    """Return the one standard normal number that belongs to this place (Box and Muller); at most 8.6 in size."""
    key = np.uint64(key)
    word_0, word_1, word_2, word_3 = philox(
        np.uint64(time), np.uint64(site), np.uint64(index), np.uint64(0), key & _WORD, key >> _HALF
    )
    length = 1.0 - (((word_0 << _HALF) | word_1) >> _53_BITS) * _UNIT  # above 0
    turn = (((word_2 << _HALF) | word_3) >> _53_BITS) * _UNIT
    return math.sqrt(-2.0 * math.log(length)) * math.cos(2.0 * math.pi * turn)


@rule
def shuffle(items, key, time, site):
    """Put a one-dimensional array into the random order that belongs to this place, in place (Fisher and Yates)."""
    for last in range(items.shape[0] - 1, 0, -1):
        other = integer(key, time, site, last, last + 1)
        kept = items[last]
        items[last] = items[other]
        items[other] = kept


@rule
def episode_key(seed, episode):
    """Return the key of a lane's episode, a function of the lane's seed and of how many episodes came before."""
    return bits(seed, np.uint64(episode) & _WORD, KEYS, np.uint64(episode) >> _HALF)


@numba.njit
def fill_uniform(keys, times, site, out):
    """Write ``uniform(keys[b], times[b], site, i)`` to ``out[b, i]``; shapes (B,), (B,) and (B, I)."""
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[b, i] = uniform(keys[b], times[b], site, i)
