"""First seeds of trainings, searches and tests, in separate ranges: policies are tested on episodes not trained on."""

import numpy as np

TEST_SEEDS = 1_000_000
TEST_EACH = 10_000
"""Number of seeds reserved for the test episodes of each training's policy."""


def first_test_seed(seed: int) -> int:
    """Return the seed of the first test episode of a training's seed, whose test episodes no other seed has."""
    return TEST_SEEDS + TEST_EACH * seed


TRAINING_SEEDS = 2**40
SINGLE_SEEDS = 2**41
LONG_TERM_SEEDS = 2**42
TEAM_SEEDS = 2**43
LANES_EACH = 2**20
"""Number of seeds reserved for each training, so that no two trainings share an episode."""

EPISODES_EACH = 2**22
"""The same for trainings in which each episode has a separate seed."""

SEARCH_SEEDS = 2**44
HELD_OUT_SEEDS = 2**45
"""First seed of the comparison of a search's result with the original configuration."""

SEARCH_EACH = 2**20
"""Number of seeds reserved for each search."""

EVALUATION_SEEDS = 2**46
"""First seed of evaluations during a training."""


POLICY_STREAM = 2_026
"""Key of the random numbers of policies among all that belong to a seed."""


def policy_numbers(seed: int, *time: int) -> np.random.Generator:
    """Return a generator of a policy's random numbers, which are independent of an environment's after `reset(seed)`.

    Gymnasium gives an environment ``np.random.default_rng(seed)``. A policy with the same numbers would follow what the
    environment draws, such as a person's group.

    Args:
        seed: Seed of the episode.
        time: The step of the episode, for numbers that are a function of seed and time.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(POLICY_STREAM, *time)))
