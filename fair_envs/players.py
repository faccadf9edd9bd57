"""Who plays, by name: chance, a designed driver, a function of one's own, or a run of a training."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from fair_envs.imports import imported, source_hash
from fair_envs.parameters import meant
from fair_envs.wrappers.twin import Policy

TrainingKind = Literal["agents", "conditioned", "long-term", "team"]


# Policies of episodes -------------------------------------------------------------------------------------------------


def player_named(name: str, rules: Any) -> tuple[Policy, bool]:
    """Return a policy for `fair_envs.systems.play_system`, and whether it is shown groups.

    Args:
        name: ``"random"``, a driver of FairTraffic, the folder of a run, or ``"module:function"``: observations (B,
            agents, ...) and uniform numbers (B, agents) to actions (B, agents, ...).
        rules: What is played.

    Raises:
        ValueError: Nobody is called that, or it is the run of another environment.
    """
    if name == "random":
        return playing_at_random(rules), False
    if ":" in name:
        return function_named(name), False
    if is_run(name):
        from fair_envs.baselines.evaluation import Player

        model, config, player = loaded_player(Path(name))
        found = player(model, rules)
        if not isinstance(found, Player):
            raise ValueError(f"policy must be a run of agents with discrete actions, got one of {config.algorithm}")
        return found.act, True
    drivers = drivers_of(rules)
    if name not in drivers:
        known = ", ".join(repr(known) for known in ("random", *drivers))
        raise ValueError(
            f"policy must be {known}, a run's folder or module:function, "
            f"got {name!r}{meant(name, ('random', *drivers))}"
        )
    return drivers[name](rules), False


def is_run(name: str) -> bool:
    """Return whether a policy's name is the folder of a run."""
    return name != "random" and ":" not in name and Path(name).is_dir()


def drivers_of(rules: Any) -> Mapping[str, Callable[[Any], Policy]]:
    """Return the designed agents that play an environment, by name: FairTraffic's drivers."""
    from fair_envs.envs.traffic.drivers import DRIVERS
    from fair_envs.envs.traffic.rules import Traffic

    return DRIVERS if isinstance(rules, Traffic) else {}


def function_named(name: str) -> Policy:
    """Return the function that ``"module:function"`` names, or raise ValueError."""
    try:
        found: Policy = imported(name)
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(f"policy must be the import path of a function, got {name!r}: {error}") from error
    return found


def player_tried(name: str, rules: Any) -> tuple[Policy, bool]:
    """Return what `player_named` does, a function of one's own after it has chosen the first actions of one lane.

    Raises:
        ValueError: Nobody is called that, or the function does not take observations and uniform numbers and return
            actions.
    """
    policy, append_group = player_named(name, rules)
    try:
        if ":" in name:
            try_out(policy, rules)
    except Exception as error:  # whatever it does not understand
        takes = "must take observations (B, agents, ...) and uniform numbers (B, agents)"
        returns = "return actions (B, agents, ...) of the environment"
        raise ValueError(f"policy {takes} and {returns}, got {name!r}: {error or type(error).__name__}") from error
    return policy, append_group


def try_out(policy: Policy, rules: Any) -> None:
    """Let a policy choose the first actions of one lane; raise what it or the environment raises."""
    from fair_envs.core import Lanes, draws
    from fair_envs.faces.common import ActionCheck

    lanes, check = Lanes(rules, 1), ActionCheck(rules)
    lanes.seed(0)
    start = lanes.restart()
    check(policy(start.observation, draws(lanes)), shape=(1, lanes.agents, *check.shape))


def playing_at_random(rules: Any) -> Policy:
    """Return the policy that chooses every action with the same chance."""
    from fair_envs.faces.single import RandomPartners

    choose = RandomPartners(rules)

    def act(observation: Any, uniforms: Any) -> Any:
        chosen = choose(observation, uniforms.ravel())
        return np.reshape(chosen, (*uniforms.shape, *chosen.shape[1:]))

    return act


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


def loaded_player(run: Path) -> tuple[Any, Any, Callable[[Any, Any], Any]]:
    """Return a run's model and settings, and what makes a player of the model.

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
        from fair_envs.baselines.team_evaluation import TeamPlayer
        from fair_envs.baselines.team_training import load_team

        return *load_team(run), TeamPlayer
    if kind == "long-term":
        from fair_envs.baselines.long_term_evaluation import LongTermPlayer
        from fair_envs.baselines.long_term_training import load_long_term

        return *load_long_term(run), LongTermPlayer
    from fair_envs.baselines.training import load

    return *load(run), player_of_agents


def player_of_agents(model: Any, rules: Any) -> Any:
    """Return what plays agents; actions that are directions are taken without noise."""
    from fair_envs.baselines.evaluation import Player
    from fair_envs.baselines.team_evaluation import TeamPlayer

    return TeamPlayer(model, rules) if heads(rules) else Player(model, rules)


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
