"""Everything that can be given as a policy: a policy, a function, a name, a run, or a Stable-Baselines3 model."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from fair_envs.evaluation import (
    ByAgent,
    ModelMismatchError,
    Policy,
    RandomPolicy,
    as_policy,
    policy_of_model,
    scripted,
)
from fair_envs.evaluation.policy import Act
from fair_envs.support.files import read_json
from fair_envs.support.imports import imported, refuse_stored_paths
from fair_envs.support.parameters import meant
from fair_envs.tasks import Task

Kind = Literal["trained", "scripted", "random"]
"""Whether a policy was trained; functions and policies that are given as objects count as scripted."""

LOADER = "fair_envs.baselines.players:loaded_policy"
"""The function that loads runs and models. It is imported when it is needed, because it needs PyTorch."""


def policy_of(given: Any, rules: Any, *, deterministic: bool = False) -> Policy:
    """Return the policy that was given.

    Args:
        given: A `Policy`; a function from observations (B, agents, ...) and uniform random numbers (B, agents) to
            actions (B, agents, ...); a dictionary with a function for each agent, see `ByAgent`; a Stable-Baselines3
            model; or the name of a policy, see `policy_named`.
        rules: The rules of the environment.
        deterministic: Whether models take their most likely actions. Runs and other policies do not use it.

    Raises:
        TypeError: It is none of these.
        ValueError: The name is unknown, or the model needs other observations or actions.
    """
    if isinstance(given, str | Path):
        return policy_named(str(given), rules, deterministic=deterministic)
    if is_model(given):
        return policy_of_model(given, rules, deterministic=deterministic)
    if isinstance(given, Mapping):
        return ByAgent(given, agents=[f"agent_{i}" for i in range(rules.agents(rules.params))])
    return as_policy(given)


def policy_named(name: str, rules: Any, *, deterministic: bool = False) -> Policy:
    """Return the policy with a name, for these rules.

    Args:
        name: ``"random"``, a scripted policy of the environment, the folder of a run, the path of a model's zip, or
            ``"module:function"``, a function from observations (B, agents, ...) and uniform random numbers (B, agents)
            to actions (B, agents, ...). Loading a zip runs the code that it contains: only name files that you trust.
        rules: The rules of the environment.
        deterministic: Whether a model takes its most likely actions.

    Raises:
        ValueError: The name is unknown, or the run or model is for another environment.
    """
    if name == "random":
        return RandomPolicy(rules)
    if is_zip(name) or is_run(name):
        load: Callable[..., Policy] = imported(LOADER)
        try:
            return load(Path(name), rules, deterministic=deterministic)
        except ModelMismatchError as error:
            if is_zip(name):
                raise
            trained = settings_of_run(Path(name)).get("env_id")
            raise ModelMismatchError(f"{error}; {name} was trained in {trained}") from error
    if ":" in name:
        return as_policy(function_named(name))
    if name not in rules.policies and is_path(name):
        what = "which is neither" if Path(name).exists() else "which does not exist"
        raise ValueError(f"policy must be the folder of a run or a model's zip, got {name!r}, {what}")
    if name not in rules.policies:
        known = ("random", *rules.policies)
        raise ValueError(
            f"policy must be {', '.join(map(repr, known))}, a run's folder or module:function, "
            f"got {name!r}{meant(name, known)}"
        )
    return scripted(rules, name)


def scripted_in(task: Task, rules: Any) -> list[str]:
    """Return the task's scripted policies that can play with these rules.

    A variant may have none of them, and a policy may need something that other parameters do not let it observe.
    """
    return [name for name in task.scripted if ":" in name or can_play(name, rules)]


def can_play(name: str, rules: Any) -> bool:
    """Return whether a scripted policy can play with these rules."""
    try:
        scripted(rules, name)
    except ValueError:
        return False
    return True


def function_named(name: str) -> Act:
    """Return the function that ``"module:function"`` names, or raise ValueError."""
    try:
        found: Act = imported(name)
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(f"policy must be the import path of a function, got {name!r}: {error}") from error
    return found


def is_run(name: str) -> bool:
    """Return whether a policy's name is the folder of a run."""
    return name != "random" and Path(name).is_dir()


def seeds_in(folder: Path) -> list[Path]:
    """Return the runs of several seeds in a folder, in the order of the seeds; none in a run's own folder."""
    if (folder / "config.json").exists():
        return []
    found = {path.name.removeprefix("seed-"): path for path in folder.glob("seed-*")}
    return [found[seed] for seed in sorted(filter(str.isdecimal, found), key=int)]


def is_path(name: str) -> bool:
    """Return whether a name looks like a path, which scripted policies and environments do not."""
    return "/" in name or os.sep in name or name.endswith(".zip")


def settings_of_run(folder: Path) -> dict[str, Any]:
    """Return the settings of a run.

    Raises:
        FileNotFoundError: The folder is not a run.
        ValueError: The run is damaged, or names functions to import that are not trusted.
    """
    if not (folder / "config.json").is_file():
        stored = folder / "evaluations.json"
        told = f"; its evaluations are compared with: fair-envs compare {stored}" if stored.is_file() else ""
        if seeds := seeds_in(folder):
            told = f", which has runs of several seeds: use one, such as {seeds[0]}, or fair-envs compare {folder}"
        raise FileNotFoundError(f"policy must be the folder of a run, with a config.json, got {str(folder)!r}{told}")
    kept = read_json(folder / "config.json", dict)
    refuse_stored_paths(kept, file=folder / "config.json")
    return kept


def parameters_of_run(folder: Path, env_id: str) -> dict[str, Any] | None:
    """Return the parameters with which a run was trained in an environment; None: it was trained in another one.

    See `settings_of_run` for errors.
    """
    kept = settings_of_run(folder)
    found = kept.get("parameters")
    return dict(found) if isinstance(found, Mapping) and kept.get("env_id") == env_id else None


def training_of_run(folder: Path) -> dict[str, Any]:
    """Return what identifies the training of a run, wherever its folder is: ``method``, ``seed`` and ``settings``.

    ``steps`` is the number of steps that it has taken, see `logged_steps`. See `settings_of_run` for errors.
    """
    kept = settings_of_run(folder)
    method, seed = kept.pop("algorithm", None), kept.pop("seed", None)
    kept.pop("threads", None)  # it does not change the result
    return {"method": str(method), "seed": seed, "settings": kept, "steps": logged_steps(folder)}


def logged_steps(folder: Path) -> int:
    """Return the number of steps of a run after which the last row of metrics was stored; 0 if there is none.

    Learners whose rows are agents count the steps of agents.
    """
    path = folder / "metrics.json"
    rows = read_json(path, list) if path.is_file() else []
    last = rows[-1] if rows else {}
    return int(last.get("time/total_timesteps") or 0) if isinstance(last, dict) else 0


def is_zip(name: str) -> bool:
    """Return whether a policy's name is the path of a model's zip."""
    return name.endswith(".zip") and Path(name).is_file()


def acts_likely(given: Any) -> bool:
    """Return whether a policy can take its most likely actions: a model of Stable-Baselines3, or its zip."""
    return is_model(given) or (isinstance(given, str | Path) and is_zip(str(given)))


def is_model(given: Any) -> bool:
    """Return whether this is a Stable-Baselines3 model, or has its methods."""
    return callable(getattr(given, "predict", None)) and hasattr(given, "action_space")


def name_of(given: Any) -> str:
    """Return the name of a policy for tables."""
    if isinstance(given, str | Path):
        return str(given)
    return getattr(given, "__name__", type(given).__name__)


def kind_of(given: Any) -> Kind:
    """Return whether a policy was trained."""
    name = str(given) if isinstance(given, str | Path) else ""
    if name == "random":
        return "random"
    return "trained" if acts_likely(given) or (name and is_run(name)) else "scripted"
