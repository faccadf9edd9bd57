"""Methods for short-term and long-term fairness: A-PPO, F-PPO and its ablations."""

from collections.abc import Callable, Mapping
from typing import Any

from fair_envs.baselines.eval_callback import with_evaluations
from fair_envs.baselines.methods import SHARES, STILL, Method, Strength, Test, Tolerance
from fair_envs.baselines.ppo.long_term_evaluation import evaluate_long_term
from fair_envs.baselines.ppo.long_term_training import (
    LongTermTraining,
    load_long_term,
    long_term_preset,
    make_long_term,
)
from fair_envs.baselines.ppo.long_term_training import (
    train_long_term as train_only,
)
from fair_envs.baselines.ppo.massaging import massager_maker
from fair_envs.baselines.ppo.methods import evaluate as evaluate_learner
from fair_envs.baselines.ppo.methods import missing_measure, policy
from fair_envs.baselines.settings import RECOMMENDED, SET_BY_RECOMMENDED
from fair_envs.baselines.tasks import task_for
from fair_envs.core import Rules
from fair_envs.evaluation.reports import Report
from fair_envs.tasks import rules_for

REGULARISATION_SETTINGS = frozenset({"delta", "scaling"})
A_PPO_SETTINGS = frozenset({"value_weight", "decrease_weight"})
F_PPO_SETTINGS = frozenset({"weight", "bonus_weight", "gated"})
MASSAGING_SETTINGS = frozenset({"massaging", "massaging_pace"})
LAGRANGIAN_SETTINGS = frozenset({"limit", "multiplier_rate"})
SETTINGS_BY_METHOD: Mapping[str, tuple[frozenset[str], str]] = {
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
}
"""The specific settings of each method, and its summary; PPO and PPO-Lagrangian are in the reproduction."""

KNOBS: Mapping[str, Strength] = {
    "a-ppo": Strength(("value_weight", "decrease_weight"), (0.25, 1.0, 4.0, 16.0)),
    "f-ppo": Strength(("weight", "bonus_weight"), (0.25, 1.0, 4.0, 16.0)),
    "f-ppo-l": Strength(("weight", "bonus_weight"), (0.25, 1.0, 4.0, 16.0)),
}
"""F-PPO-S has none: massaging follows a schedule, and nothing else reads the tolerance."""


TRAINS_ON: Mapping[str, str] = {"a-ppo": "short", "f-ppo": "short, long", "f-ppo-l": "short, long", "f-ppo-s": "short"}
TOLERANCE = Tolerance(
    "delta",
    "train/short_term",
    method="f-ppo-l",
    off={"weight": 0.0, "bonus_weight": 0.0},
    frozen={"learning_rate": STILL},
)
TOLERANCES = {"a-ppo": TOLERANCE._replace(share=min(SHARES)), "f-ppo": TOLERANCE, "f-ppo-l": TOLERANCE}
"""A-PPO has no reason to go below its tolerance; F-PPO's decides which of two terms applies; F-PPO-S reads none."""


def trains_on(name: str) -> Callable[[str, Any, Mapping[str, Any]], str]:
    """Return the function that says what a method learns from."""

    def of(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
        signals = given.get("signals", LongTermTraining.signals)
        informed = task_for(env_id, signals) != task_for(env_id, "record")
        return TRAINS_ON[name] + (" (with more information than others)" if informed else "")

    return of


def unsupported(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported, or ""."""
    return missing_measure(task_for(env_id), ("short", "long"), rules)


NEEDS_MASSAGER = "needs a massager, such as the one for two decisions about one person whose groups are observed"


def without_own_massager(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported by a method that needs a massager, or ""."""
    if why := unsupported(env_id, rules, given):
        return why
    return NEEDS_MASSAGER if massager_maker(task_for(env_id), rules) is None else ""


def without_massaging(env_id: str, rules: Any) -> str:
    """Return the method that F-PPO equals where there is no massager, or ""."""
    return "f-ppo-l" if without_own_massager(env_id, rules, {}) == NEEDS_MASSAGER else ""


PLAYED = {"unshielded": "without massaging", "shielded": "with massaging"}
"""What a report calls the two kinds of episodes."""


def evaluate(model: Any, settings: LongTermTraining, test: Test) -> Report | None:
    """Evaluate the trained policy without its shield and, if it has a massager, with its shield; or agents."""
    rules = rules_for(settings.env_id, **test.parameters)
    if rules.multi_agent or not isinstance(rules, Rules):
        return evaluate_learner(model, settings, test)
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


train_long_term = with_evaluations(train_only, policy)
METHODS = tuple(
    Method(
        name=name,
        summary=summary,
        settings=LongTermTraining,
        train=train_long_term,
        load=load_long_term,
        make=make_long_term,
        evaluated=evaluate,
        policy=policy,
        unsupported=without_own_massager if name == "f-ppo-s" else unsupported,
        own=True,
        strength=KNOBS.get(name),
        tolerance=TOLERANCES.get(name),
        trains_on=trains_on(name),
        equals=without_massaging if name == "f-ppo" else lambda env_id, rules: "",
        unused=LAGRANGIAN_SETTINGS.union(*(settings for settings, _ in SETTINGS_BY_METHOD.values())) - own_settings,
        presets={
            **RECOMMENDED,
            "published": "the settings of the code published with F-PPO",
        },
        preset=long_term_preset,
        preset_sets=SET_BY_RECOMMENDED,
    )
    for name, (own_settings, summary) in SETTINGS_BY_METHOD.items()
)
