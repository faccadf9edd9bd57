"""The signals and settings of the study of F-PPO, where they differ from the environments' tasks.

F-PPO learns from the measures and the massager of an environment's `fair_envs.tasks.Task`. The published code computed
them differently, and a bank may have access to more than the record of its decisions.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from fair_envs.baselines.tasks.epidemic import EpidemicMassager
from fair_envs.baselines.tasks.lending import LendingMassager, ScoreDistance
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.metrics.long_term import (
    IncidentDistance,
    OpportunityGap,
    StateDistance,
    VaccinationGap,
    WindowDistance,
)
from fair_envs.tasks import Task, task_of

Signals = Literal["sound", "record", "as_coded", "known"]
"""Signals of a learner.

They are this package's measures; only what the record of decisions shows, as other methods have it; those of the
published code; or those with additional information.
"""


def task_for(env_id: str, signals: Signals = "sound") -> Task:
    """Return an environment's task with the measures and the massager of a learner's signals.

    Raises:
        ValueError: There are no signals with that name, the id is unknown, or the environment has no record.
    """
    task = task_of(env_id)
    fields = {"sound": {}, "record": {}, **SIGNALS.get(task.env_id, {})}
    if signals not in fields:
        raise ValueError(f"signals must be one of {', '.join(fields)}, got {signals!r}")
    return replace(task, **fields[signals])


# ---------------------------------------------------------------------------------------------------------- lending


FEWEST = 10  # expected number of people who would repay, from which on a group's rate is defined


def expected_opportunity(rules: Any, lanes: int) -> OpportunityGap:
    """Return the gap of expected true positive rates, for a bank that has the repayment probability of each score."""
    return OpportunityGap(lanes, window=rules.params.window, qualified=rules.repayment, minimum=FEWEST)


def known_opportunity(rules: Any, lanes: int) -> OpportunityGap:
    """Return the published code's gap: with hidden labels and one more applicant, 0 where a rate is undefined.

    Raises:
        ValueError: Labels are not reported for every applicant.
    """
    if rules.params.feedback != "full":
        raise ValueError(f"feedback must be 'full' for the published code's signals, got {rules.params.feedback!r}")
    return OpportunityGap(lanes, window=rules.params.window, one_more=True, undefined="zero")


def counts_in_window(rules: Any, lanes: int) -> WindowDistance:
    """Return the published code's distance: of the counts, which ignores the scores."""
    levels = len(rules.repayment)
    return WindowDistance(lanes, groups=2, levels=levels, window=rules.params.window, distance="as_coded")


def published_lending_massager(env: LanesVecEnv) -> LendingMassager:
    """Return the massager of the published code, which uses hidden repayment labels and acts on ties."""
    return LendingMassager(env, label="as_coded", known=lambda: env.oracle()["feedback"][:, 0])


# ------------------------------------------------------------------------------------------- attention and epidemic


def incidents_as_coded(rules: Any, lanes: int) -> IncidentDistance:
    """Return the published code's number: the largest deviation of a count from the mean, over the largest count."""
    params = rules.params
    return IncidentDistance(lanes, individuals=params.locations, window=params.window, distance="as_coded")


def all_vaccinations(rules: Any, lanes: int) -> VaccinationGap:
    """Return the published code's gap, which also counts vaccinations without effect."""
    return VaccinationGap(lanes, groups=len(rules.spec.groups), effective=False)


def heads(rules: Any, lanes: int) -> StateDistance:
    """Return the published code's distance, of raw counts."""
    return StateDistance(lanes, groups=len(rules.spec.groups), distance="as_coded")


def published_epidemic_massager(env: LanesVecEnv) -> EpidemicMassager:
    """Return the massager of the published code, which also gives vaccines without effect and acts on ties."""
    return EpidemicMassager(env, ties="first", ineffective=True)


# ----------------------------------------------------------------------------------------------------------- tables


EXPECTED: Mapping[str, Any] = {"short": expected_opportunity, "massager": LendingMassager}

SIGNALS: dict[str, dict[str, Mapping[str, Any]]] = {
    "FairLending-v0": {
        "sound": EXPECTED,
        "known": {**EXPECTED, "long": ScoreDistance},
        "as_coded": {
            "short": known_opportunity,
            "long": counts_in_window,
            "massager": published_lending_massager,
        },
    },
    "FairAttention-v0": {"as_coded": {"long": incidents_as_coded}},
    "FairEpidemic-v0": {
        "as_coded": {"short": all_vaccinations, "long": heads, "massager": published_epidemic_massager}
    },
}
"""The fields of an environment's task that a learner's signals replace."""

RECOMMENDED: dict[str, dict[str, Any]] = {"FairAttention-v0": {"delta": 0.1}}
"""Recommended settings of F-PPO that differ from its defaults, by environment."""

PUBLISHED: dict[str, dict[str, dict[str, Any]]] = {
    "FairLending-v0": {
        "": {
            "parameters": {"profile": "authors", "feedback": "full"},
            "signals": "as_coded",
            "n_steps": 2000,
            "steps": 700_000,
            "trunk": (256, 256),
            "pi": (256, 128),
            "vf": (256, 128),
            "delta": 0.005,
            "value_weight": 0.25,
            "decrease_weight": 0.25,
            "weight": 1.12,
            "bonus_weight": 1.0,
        }
    },
    "FairAttention-v0": {
        "": {
            "parameters": {"profile": "authors"},
            "signals": "as_coded",
            "steps": 2_000_000,
            "trunk": (128, 128),
            "pi": (128, 64),
            "vf": (128, 64),
            "delta": 0.1,
            "value_weight": 0.15,
            "decrease_weight": 0.15,
            "weight": 0.15,
            "bonus_weight": 0.15,
        },
        "a-ppo": {"delta": 0.05},
    },
    "FairEpidemic-v0": {
        "": {
            "parameters": {"profile": "authors"},
            "signals": "as_coded",
            "steps": 500_000,
            "trunk": (512, 512),
            "pi": (512, 256),
            "vf": (512, 256),
            "value_weight": 0.1,
            "decrease_weight": 0.1,
            "weight": 0.25,
            "bonus_weight": 0.25,
        }
    },
}
"""Settings of the published code, by environment and algorithm; the algorithm ``""`` stands for all."""
