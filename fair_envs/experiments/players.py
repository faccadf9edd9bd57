"""Policies by name: random, a scripted policy, a user's own function, or the run of a training."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fair_envs.core import Rules
from fair_envs.evaluation import LanesWorld, Policy, RandomPolicy, as_policy, begun, rollout, scripted
from fair_envs.evaluation.policy import Act
from fair_envs.support.imports import imported, source_hash
from fair_envs.support.parameters import meant

# Policies of episodes -------------------------------------------------------------------------------------------------


def policy_named(name: str, rules: Rules) -> Policy:
    """Return the policy with a name, for these rules.

    Args:
        name: ``"random"``, a scripted policy of the environment, the folder of a run, or ``"module:function"``, a
            function from observations (B, agents, ...) and uniform random numbers (B, agents) to actions
            (B, agents, ...).
        rules: The rules of the environment.

    Raises:
        ValueError: The name is unknown, or the run belongs to another environment.
    """
    if name == "random":
        return RandomPolicy(rules)
    if ":" in name:
        return as_policy(function_named(name))
    if is_run(name):
        return loaded(Path(name)).policy(rules)
    if name not in rules.policies:
        known = ("random", *rules.policies)
        raise ValueError(
            f"policy must be {', '.join(map(repr, known))}, a run's folder or module:function, "
            f"got {name!r}{meant(name, known)}"
        )
    return scripted(rules, name)


def is_run(name: str) -> bool:
    """Return whether a policy's name is the folder of a run."""
    return name != "random" and ":" not in name and Path(name).is_dir()


def function_named(name: str) -> Act:
    """Return the function that ``"module:function"`` names, or raise ValueError."""
    try:
        found: Act = imported(name)
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(f"policy must be the import path of a function, got {name!r}: {error}") from error
    return found


def policy_tried(name: str, rules: Rules) -> Policy:
    """Return the result of `policy_named`; a user's own function is first tried on one step of one lane.

    Raises:
        ValueError: The name is unknown, or the function does not take observations and uniform numbers and return
            actions.
    """
    if ":" not in name:
        return policy_named(name, rules)
    function = function_named(name)
    try:
        policy = as_policy(function)
        next(rollout(LanesWorld(begun(rules, np.zeros(1, np.uint64))), policy))
    except Exception as error:  # the function may raise anything
        takes = "must take observations (B, agents, ...) and uniform numbers (B, agents)"
        returns = "return actions (B, agents, ...) of the environment"
        raise ValueError(f"policy {takes} and {returns}, got {name!r}: {error or type(error).__name__}") from error
    return policy


def contents(name: str) -> str:
    """Return a hash of a named policy's code or files outside this package; empty if there are none."""
    if ":" in name:
        return source_hash(name)
    files = sorted(file for file in Path(name).iterdir() if file.is_file()) if is_run(name) else []
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest() if files else ""


# Runs -----------------------------------------------------------------------------------------------------------------


class Trained(NamedTuple):
    """A run's method, model and settings."""

    method: Any
    model: Any
    settings: Any

    def policy(self, rules: Rules) -> Policy:
        """Return the trained policy for some rules.

        Raises:
            ValueError: The model needs other observations or actions than the environment has.
        """
        found: Policy = self.method.policy(self.model, self.settings, rules)
        return found


def loaded(run: Path) -> Trained:
    """Return the trained model of a run.

    Raises:
        FileNotFoundError: The folder is not a run.
        ValueError: The run is damaged, names functions to import (see `fair_envs.support.imports`), or has no policy
            that plays by itself.
    """
    from fair_envs.baselines.methods import method_of

    method = method_of(run)
    if method.policy is None:
        raise ValueError(
            f"policy must be a run whose policy plays by itself, got {str(run)!r} of {method.name}; measure it with: "
            f"fair-envs evaluate {run}"
        )
    return Trained(method, *method.load(run))
