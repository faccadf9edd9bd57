"""Tests of environments: promises that are checked on every step, with randomly drawn parameters and actions.

The command ``python -m fair_envs.testing.fuzz ID`` does the same. ``pytest --fair-env ID`` runs the whole contract,
`fair_envs.testing.contract`, which includes it.
"""

from fair_envs.testing.cases import Case
from fair_envs.testing.fuzzing import Fuzzed, Problem, fuzz_environment

__all__ = ["Case", "Fuzzed", "Problem", "fuzz_environment"]
