"""Who plays, by name: chance, a designed driver, a function of one's own, or a run of a training."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from fair_envs.core import Rules
from fair_envs.evaluation import LanesWorld, Policy, RandomPolicy, as_policy, begun, rollout
from fair_envs.evaluation.policy import Act
from fair_envs.imports import imported, source_hash
from fair_envs.parameters import meant

TrainingKind = Literal["agents", "conditioned", "long-term", "team"]


# Policies of episodes -------------------------------------------------------------------------------------------------


def policy_named(name: str, rules: Rules) -> Policy:
    """Return a policy for rules.

    Args:
        name: ``"random"``, a scripted policy of the environment, the folder of a run, or ``"module:function"``:
            observations (B, agents, ...) and uniform numbers (B, agents) to actions (B, agents, ...).
        rules: What is played.

    Raises:
        ValueError: Nobody is called that, or it is the run of another environment.
    """
    if name == "random":
        return RandomPolicy(rules)
    if ":" in name:
        return as_policy(function_named(name))
    if is_run(name):
        return policy_of(*loaded(Path(name)), rules)
    drivers = drivers_of(rules)
    if name not in drivers:
        known = ", ".join(repr(known) for known in ("random", *drivers))
        raise ValueError(
            f"policy must be {known}, a run's folder or module:function, "
            f"got {name!r}{meant(name, ('random', *drivers))}"
        )
    return drivers[name](rules)


def is_run(name: str) -> bool:
    """Return whether a policy's name is the folder of a run."""
    return name != "random" and ":" not in name and Path(name).is_dir()


def drivers_of(rules: Any) -> Mapping[str, Callable[[Any], Policy]]:
    """Return the designed agents that play an environment, by name: FairTraffic's drivers."""
    from fair_envs.envs.traffic.drivers import DRIVERS
    from fair_envs.envs.traffic.rules import Traffic

    return DRIVERS if isinstance(rules, Traffic) else {}


def function_named(name: str) -> Act:
    """Return the function that ``"module:function"`` names, or raise ValueError."""
    try:
        found: Act = imported(name)
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(f"policy must be the import path of a function, got {name!r}: {error}") from error
    return found


def policy_tried(name: str, rules: Rules) -> Policy:
    """Return what `policy_named` does, a function of one's own after it has chosen the first actions of one lane.

    Raises:
        ValueError: Nobody is called that, or the function does not take observations and uniform numbers and return
            actions.
    """
    if ":" not in name:
        return policy_named(name, rules)
    function = function_named(name)
    try:
        policy = as_policy(function)
        next(rollout(LanesWorld(begun(rules, np.zeros(1, np.uint64))), policy))
    except Exception as error:  # whatever it does not understand
        takes = "must take observations (B, agents, ...) and uniform numbers (B, agents)"
        returns = "return actions (B, agents, ...) of the environment"
        raise ValueError(f"policy {takes} and {returns}, got {name!r}: {error or type(error).__name__}") from error
    return policy


def contents(name: str) -> str:
    """Return a hash of what a named policy consists of besides this package; empty where that is nothing."""
    if ":" in name:
        return source_hash(name)
    files = sorted(file for file in Path(name).iterdir() if file.is_file()) if is_run(name) else []
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest() if files else ""


# Runs -----------------------------------------------------------------------------------------------------------------


def policy_of(model: Any, config: Any, rules: Rules) -> Policy:
    """Return the policy of a run's model and settings, see `loaded`.

    Raises:
        ValueError: The model takes other observations or actions than the environment has.
    """
    if kind_of([config.algorithm, config.env_id]) == "long-term":
        from fair_envs.baselines.long_term_evaluation import LongTermPlayer

        return LongTermPlayer(model, rules)
    if heads(rules):  # actions that are directions are taken without noise
        from fair_envs.baselines.pursuit import Learned

        return Learned(model)
    from fair_envs.baselines.evaluation import Player

    return Player(model, rules)


def loaded(run: Path) -> tuple[Any, Any]:
    """Return a run's model and settings.

    Raises:
        FileNotFoundError: There is no run.
        ValueError: It is damaged, names something to import (see `fair_envs.imports`), or cannot play by itself.
    """
    kind = kind_of(words_of_run(run))
    if kind == "conditioned":
        raise ValueError(
            f"policy must be a run whose policy needs no desired return, got {str(run)!r} of Pareto Conditioned "
            f"Networks; measure it with: fair-envs evaluate {run}"
        )
    if kind == "team":
        from fair_envs.baselines.team_training import load_team

        return load_team(run)
    if kind == "long-term":
        from fair_envs.baselines.long_term_training import load_long_term

        return load_long_term(run)
    from fair_envs.baselines.training import load

    return load(run)


def heads(rules: Any) -> bool:
    """Return whether rules are FairPursuit's with directions or angles as actions."""
    return bool(rules.name == "pursuit" and rules.params.action != "discrete")


def words_of_run(run: Path) -> list[str]:
    """Return what says of which kind a run is: its algorithm and its environment."""
    from fair_envs.baselines.runs import Run

    kept = Run(run).config()
    return [str(kept.get(name)) for name in ("algorithm", "env_id")]


def kind_of(words: Collection[str]) -> TrainingKind:
    """Return what kind of training words name."""
    if "pcn" in words:
        return "conditioned"
    if is_of_team(words):
        return "team"
    return "long-term" if is_long_term(words) else "agents"


def is_of_team(words: Collection[str]) -> bool:
    """Return whether words name an algorithm for teams."""
    from fair_envs.baselines.team_training import TeamAlgorithm

    return bool(set(get_args(TeamAlgorithm)) & set(words))


def is_long_term(words: Collection[str]) -> bool:
    """Return whether words name an algorithm for long-term fairness, or PPO on an environment that has its study."""
    from fair_envs.baselines.long_term_training import LongTermAlgorithm
    from fair_envs.baselines.studies import STUDIES

    named = set(get_args(LongTermAlgorithm)) & set(words)
    return bool(named - {"ppo"} or (named and set(STUDIES) & set(words)))
