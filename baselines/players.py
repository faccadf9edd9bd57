"""Policies of runs and of Stable-Baselines3 models that were saved."""

import json
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import stable_baselines3 as sb3
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from fair_envs.baselines.methods import method_of
from fair_envs.evaluation import Policy, policy_of_model

ALGORITHMS: Mapping[str, tuple[type[Any], frozenset[str]]] = {
    "PPO": (sb3.PPO, frozenset({"clip_range", "n_epochs"})),
    "DQN": (sb3.DQN, frozenset({"exploration_initial_eps"})),
    "SAC": (sb3.SAC, frozenset({"ent_coef", "target_entropy"})),
    "TD3": (sb3.TD3, frozenset({"target_policy_noise", "policy_delay"})),
    "A2C": (sb3.A2C, frozenset({"n_steps", "gae_lambda", "vf_coef"})),
}
"""Algorithms and settings that tell their files apart, in the order in which they are compared; TD3 also loads DDPG."""


class Trained(NamedTuple):
    """A run's method, model and settings."""

    method: Any
    model: Any
    settings: Any

    def policy(self, rules: Any) -> Policy:
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
    method = method_of(run)
    if method.policy is None:
        raise ValueError(
            f"policy must be a run whose policy plays by itself, got {str(run)!r} of {method.name}; measure it "
            f"with: fair-envs evaluate {run}"
        )
    return Trained(method, *method.load(run))


def loaded_policy(path: Path, rules: Any, *, deterministic: bool = False) -> Policy:
    """Return the policy of a run, or of the zip of a Stable-Baselines3 model.

    A zip does not contain the statistics of `VecNormalize`: there is a warning if the model seems to need them.

    Args:
        path: The run's folder or the zip.
        rules: The rules of the environment.
        deterministic: Whether a model from a zip takes its most likely actions.

    Raises:
        ValueError: See `loaded` and `load_model`, or the model is for another environment.
    """
    if path.is_dir():
        return loaded(path).policy(rules)
    model = load_model(path)
    if was_normalised(model):
        warnings.warn(
            f"{path} was trained on normalised observations, but a zip does not contain their statistics, so the model "
            "plays worse than it can: load it with env=VecNormalize.load(STATISTICS, vec_env), and pass the model",
            stacklevel=2,
        )
    return policy_of_model(model, rules, deterministic=deterministic)


def was_normalised(model: Any) -> bool:
    """Return whether a model from a zip was trained on normalised observations, as far as this can be seen.

    Models under `VecNormalize` keep an original observation beside the last one, as do all off-policy models. The last
    one shows the rest: normalised observations leave a bounded space.
    """
    space, last = model.observation_space, getattr(model, "_last_obs", None)
    if last is None or getattr(model, "_last_original_obs", None) is None or not isinstance(space, gym.spaces.Box):
        return False
    inside = all(space.contains(np.asarray(row, space.dtype)) for row in last)
    return not inside or (isinstance(model, OnPolicyAlgorithm) and not space.is_bounded())


def load_model(path: Path) -> Any:
    """Return the model in a zip of Stable-Baselines3.

    Loading runs the code that the file contains: only load files that you trust.

    Raises:
        ValueError: The file is none of Stable-Baselines3's own algorithms.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            settings = json.loads(archive.read("data"))
        known = set(settings)
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"policy must be the zip of a Stable-Baselines3 model, got {str(path)!r}: {error}") from error
    for kind, settings_of in ALGORITHMS.values():
        if settings_of <= known:
            return kind.load(path, device="cpu")
    raise ValueError(
        f"policy must be the zip of one of {', '.join(ALGORITHMS)}, got {str(path)!r}; load another algorithm's model "
        "yourself and pass the model"
    )
