"""Methods for long-term fairness of decision-makers: PPO, A-PPO, F-PPO and its ablations, PPO-Lagrangian."""

from collections.abc import Mapping
from typing import Any

from fair_envs.baselines.evaluating import evaluating
from fair_envs.baselines.methods import Method, Test
from fair_envs.baselines.ppo.long_term_evaluation import LongTermPolicy, evaluate_long_term
from fair_envs.baselines.ppo.long_term_training import (
    LongTermTraining,
    load_long_term,
    long_term_preset,
)
from fair_envs.baselines.ppo.long_term_training import (
    train_long_term as train_only,
)
from fair_envs.baselines.tasks import STUDIES
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.evaluation.reports import Report

REGULARISATION_SETTINGS = frozenset({"delta", "scaling"})
A_PPO_SETTINGS = frozenset({"value_weight", "decrease_weight"})
F_PPO_SETTINGS = frozenset({"weight", "bonus_weight", "gated"})
MASSAGING_SETTINGS = frozenset({"massaging", "massaging_pace"})
LAGRANGIAN_SETTINGS = frozenset({"limit", "multiplier_rate"})
SETTINGS_BY_METHOD: Mapping[str, tuple[frozenset[str], str]] = {
    "ppo": (frozenset(), "PPO of the reward only, which records the measures of short- and long-term fairness."),
    "a-ppo": (
        REGULARISATION_SETTINGS | A_PPO_SETTINGS,
        "PPO whose advantages are reduced while short-term disparity is too large.",
    ),
    "f-ppo": (
        REGULARISATION_SETTINGS | F_PPO_SETTINGS | MASSAGING_SETTINGS,
        "PPO regularised by short- and long-term fairness, with massaged actions.",
    ),
    "f-ppo-l": (REGULARISATION_SETTINGS | F_PPO_SETTINGS, "F-PPO without massaging: only the regularisation."),
    "f-ppo-s": (REGULARISATION_SETTINGS | MASSAGING_SETTINGS, "F-PPO without regularisation: only massaging."),
    "ppo-lagrangian": (
        LAGRANGIAN_SETTINGS,
        "PPO with a limit on short-term disparity, enforced by a Lagrange multiplier.",
    ),
}
"""The specific settings of each method, and its summary."""


def unsupported(env_id: str, rules: Rules, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported, or ""."""
    return (
        "" if env_id in STUDIES else f"needs an environment with measures of long-term fairness: {', '.join(STUDIES)}"
    )


def without_massager(env_id: str, rules: Rules, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported by a method that needs a massager, or ""."""
    why = unsupported(env_id, rules, given)
    return why if why or STUDIES[env_id].massager is not None else "needs a massager, which the environment lacks"


PLAYED = {"unshielded": "without massaging", "shielded": "with massaging"}
"""What a report calls the two kinds of episodes."""


def evaluate(model: Any, settings: LongTermTraining, test: Test) -> Report:
    """Evaluate the trained policy without its shield and, if it has a massager, with its shield."""
    found = evaluate_long_term(model, settings, episodes=test.episodes, seed=test.seed, parameters=test.parameters)
    return Report(
        labels=("number", "played"),
        estimates={
            (name, PLAYED[played]): estimate
            for played, episodes in found.items()
            for name, estimate in episodes.estimates().items()
        },
        across="played",
        about=test.about(settings),
    )


def policy(model: Any, settings: LongTermTraining, rules: Rules) -> Policy:
    """Return the trained policy, without its shield."""
    return LongTermPolicy(model, rules)


train_long_term = evaluating(train_only, policy)
METHODS = tuple(
    Method(
        name=name,
        summary=summary,
        settings=LongTermTraining,
        train=train_long_term,
        load=load_long_term,
        evaluated=evaluate,
        policy=policy,
        unsupported=without_massager if name == "f-ppo-s" else unsupported,
        unused=frozenset().union(*(settings for settings, _ in SETTINGS_BY_METHOD.values())) - own_settings,
        presets={
            "recommended": "this package's settings for the environment",
            "published": "the settings of the code published with F-PPO",
        },
        preset=long_term_preset,
    )
    for name, (own_settings, summary) in SETTINGS_BY_METHOD.items()
)
