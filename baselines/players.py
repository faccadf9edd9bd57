"""Policies of runs and of Stable-Baselines3 models that were saved."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import stable_baselines3 as sb3

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

    Args:
        path: The run's folder or the zip.
        rules: The rules of the environment.
        deterministic: Whether a model from a zip takes its most likely actions.

    Raises:
        ValueError: See `loaded` and `load_model`, or the model is for another environment.
    """
    if path.is_dir():
        return loaded(path).policy(rules)
    return policy_of_model(load_model(path), rules, deterministic=deterministic)


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
