"""The command line ``fair-envs``, a module for each command.

Each command imports the heavy libraries it needs, so ``list`` and ``show`` work after a plain installation.
"""

from fair_envs.cli import (
    bench,
    design,
    doctor,
    evaluate,
    explore,
    export,
    leaderboard,
    new_env,
    play,
    reproduce,
    show,
    study,
    train,
    warm,
)
from fair_envs.cli.app import INTERRUPTED, app, main, spelled_out
from fair_envs.cli.shared import environment_parameters
from fair_envs.cli.train import UNASKED

__all__ = [
    "INTERRUPTED",
    "UNASKED",
    "app",
    "bench",
    "design",
    "doctor",
    "environment_parameters",
    "evaluate",
    "explore",
    "export",
    "leaderboard",
    "main",
    "new_env",
    "play",
    "reproduce",
    "show",
    "spelled_out",
    "study",
    "train",
    "warm",
]
