"""fair-envs: environments for fairness in reinforcement learning.

Importing this package registers its environments with Gymnasium and, from PettingZoo 1.27 on, with PettingZoo:

    import gymnasium as gym, fair_envs
    env = gym.make("FairHarvest-v0")

`evaluate` measures any policy, `export` returns its decisions as a table, and `compare` compares runs; they are
imported on first access.
"""

import importlib
from typing import Any

from fair_envs.registration import TABLE, make_rules, make_sb3, register, register_all

__version__ = "0.1.0"
__all__ = [
    "TABLE",
    "Comparison",
    "Evaluation",
    "Measure",
    "Task",
    "__version__",
    "add_task",
    "compare",
    "evaluate",
    "export",
    "make_rules",
    "make_sb3",
    "register",
    "task_of",
]

_HOMES = {
    "Comparison": "fair_envs.experiments.comparing",
    "Evaluation": "fair_envs.assessment",
    "Measure": "fair_envs.metrics",
    "Task": "fair_envs.tasks",
    "add_task": "fair_envs.tasks",
    "compare": "fair_envs.experiments.comparing",
    "evaluate": "fair_envs.assessment",
    "export": "fair_envs.assessment",
    "task_of": "fair_envs.tasks",
}
"""The modules of names that are imported on first access, because they import Numba."""


def __getattr__(name: str) -> Any:
    """Return a public name from its module, or raise AttributeError."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the names of the package, also those that are not imported yet."""
    return sorted({*globals(), *__all__})


register_all()
