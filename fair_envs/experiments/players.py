"""Policies by name: random, a scripted policy, a user's own function, or the run of a training."""

import hashlib
from pathlib import Path

import numpy as np

from fair_envs.assessment.policies import function_named, is_run, is_zip, policy_named
from fair_envs.core import Rules
from fair_envs.evaluation import LanesWorld, Policy, as_policy, begun, rollout
from fair_envs.support.imports import source_hash


def policy_tried(name: str, rules: Rules) -> Policy:
    """Return the result of `policy_named`; a user's own function is first tried on one step of one lane.

    Raises:
        ValueError: The name is unknown, or the function does not take observations and uniform numbers and return
            actions.
    """
    if ":" not in name or is_zip(name):
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
    if ":" in name and not is_zip(name):
        return source_hash(name)
    files = sorted(file for file in Path(name).iterdir() if file.is_file()) if is_run(name) else []
    files = [Path(name)] if is_zip(name) else files
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest() if files else ""


__all__ = ["contents", "is_run", "policy_named", "policy_tried"]
