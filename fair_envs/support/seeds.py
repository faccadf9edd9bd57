"""First seeds of trainings, searches and tests, in separate ranges: policies are tested on episodes not trained on."""

TEST_SEEDS = 1_000_000
TEST_EACH = 10_000
"""Number of seeds reserved for the test episodes of each training's policy."""

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
