"""Environments with vector rewards that are registered as ``mo-ID``, because some libraries only take ids."""

import importlib
from collections.abc import Sequence
from typing import Any

from fair_envs.wrappers.following import Measured
from fair_envs.wrappers.gaps import FairnessObjectives

BOTH: tuple[Measured, ...] = ("short", "long")


def objectives_env(*, module: str, measures: Sequence[Measured] = BOTH, **parameters: Any) -> Any:
    """Return an environment whose reward is the vector of `FairnessObjectives`.

    If the environment has the parameter ``feedback``, it is ``"full"`` by default: most measures need the labels of all
    people, and a reward can only be made of what the record reports.

    Args:
        module: Import path of the package with the environment's interfaces; its registration gives it.
        measures: The fairness entries, each minus the value of a measure; by default the short-term and the long-term
            measure of the environment's task. See ``measures`` of `FairnessObjectives`.
        parameters: The environment's keywords.
    """
    return _with_objectives(module, "Env", measures, parameters)


def objectives_vector(*, module: str, measures: Sequence[Measured] = BOTH, **parameters: Any) -> Any:
    """Return a batch whose rewards are vectors, shape (B, 1 + measures), see `objectives_env`."""
    return _with_objectives(module, "Vector", measures, parameters)


def _with_objectives(module: str, interface: str, measures: Sequence[Measured], parameters: dict[str, Any]) -> Any:
    face = getattr(importlib.import_module(module), interface)
    if "feedback" in face.rules.Params._fields:
        parameters = {"feedback": "full", **parameters}
    return FairnessObjectives(face(**parameters), measures=[*measures])  # a list, as in a spec read from JSON
