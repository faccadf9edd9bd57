"""Where the seeds of trainings, searches and tests begin: apart, so that what is learnt is tested on other episodes."""

TEST_SEEDS = 1_000_000
TEST_EACH = 10_000
"""Seeds from the test episodes of one training's policy to those of the next."""

TRAINING_SEEDS = 2**40
SINGLE_SEEDS = 2**41
LONG_TERM_SEEDS = 2**42
TEAM_SEEDS = 2**43
LANES_EACH = 2**20
"""Seeds of one training: no two trainings share an episode."""

EPISODES_EACH = 2**22
"""The same where each episode has a seed of its own."""

SEARCH_SEEDS = 2**44
HELD_OUT_SEEDS = 2**45
"""Of the comparison of a search's result with the original configuration."""

SEARCH_EACH = 2**20
"""Seeds of one search."""

EVALUATION_SEEDS = 2**46
"""Of evaluations in the course of a training."""
