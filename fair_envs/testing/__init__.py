"""Tests of environments: promises checked on every step, of worlds and actions drawn at random.

``python -m fair_envs.testing.fuzz ID`` is the same as a command.
"""

from fair_envs.testing.cases import Case
from fair_envs.testing.fuzzing import Fuzzed, Problem, fuzz_environment

__all__ = ["Case", "Fuzzed", "Problem", "fuzz_environment"]
