"""Methods for functions of expected returns: parity, ELBERT, a PID-Lagrangian, and welfare functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fair_envs.baselines.eval_callback import with_evaluations
from fair_envs.baselines.methods import SHARES, STILL, UNLIMITED, Method, Strength, Tolerance
from fair_envs.baselines.ppo.functions import OBJECTIVES
from fair_envs.baselines.ppo.methods import evaluate, missing_measure, policy
from fair_envs.baselines.ppo.objective_training import (
    ObjectiveTraining,
    load_objective,
    make_objective,
    train_objective,
)
from fair_envs.baselines.settings import RECOMMENDED, SET_BY_RECOMMENDED, recommended_preset
from fair_envs.baselines.training import chosen_task
from fair_envs.metrics.group import group_members
from fair_envs.tasks import rules_for

OWN: Mapping[str, tuple[frozenset[str], str]] = {
    "parity": (frozenset({"alpha", "smoothing"}), "PPO of the reward minus the largest gap between the groups' rates."),
    "elbert": (
        frozenset({"alpha", "beta", "profile"}),
        "PPO of the reward minus the squared gap between the groups' long-term benefit rates (Xu et al. 2024).",
    ),
    "lagrangian": (
        frozenset({"measure", "limit", "proportional", "integral", "derivative"}),
        "PPO of the reward under a limit on a measure, with a multiplier set by a PID controller.",
    ),
    "ggf": (frozenset({"weight", "ratio"}), "PPO of the reward and the generalised Gini welfare of the groups."),
    "nash": (frozenset({"weight"}), "PPO of the reward and the Nash welfare of the groups."),
    "alpha-fair": (frozenset({"weight", "aversion"}), "PPO of the reward and the alpha-fair welfare of the groups."),
    "maxmin": (frozenset({"weight", "beta"}), "PPO of the reward and the rate of the worst-off group."),
}
"""The specific settings of each method, and its summary."""

STRENGTHS: Mapping[str, Mapping[str, Any]] = {
    "parity": {"alpha": 0.5},
    "elbert": {"alpha": 5.0},
}
"""Recommended settings of single methods."""


KNOBS: Mapping[str, Strength] = {
    "parity": Strength(("alpha",), (0.25, 0.5, 1.0, 2.0)),
    "elbert": Strength(("alpha",), (1.0, 5.0, 20.0, 80.0)),
    "lagrangian": Strength(("limit",), SHARES),
    **dict.fromkeys(("ggf", "nash", "alpha-fair", "maxmin"), Strength(("weight",), (0.25, 0.5, 0.75, 0.9))),
}


TOLERANCES = {
    "lagrangian": Tolerance(
        "limit",
        "train/measured",
        method="lagrangian",
        off={"limit": UNLIMITED},
        frozen={"learning_rate": STILL},
        gains=("proportional", "integral", "derivative"),
    )
}


def preset_of(name: str) -> Callable[[str, Mapping[str, Any]], Mapping[str, Any]]:
    """Return the presets of a method: those of the PPO family, with its strength and, for agents, own credit.

    What many other agents earn hides the effect of an agent's own action. A limited measure has no own part.
    """
    shared = recommended_preset(ObjectiveTraining, **STRENGTHS.get(name, {}))

    def preset(chosen: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        values = shared(chosen, given)
        agents = rules_for(given["env_id"], **values["parameters"]).multi_agent
        of_rates = given.get("measure") in (None, "rate")
        return {**values, "credit": "own" if agents and of_rates else "common"}

    return preset


def without_rate(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported, or "".

    Raises:
        ValueError: The given rate, groups or measure are unknown.
    """
    task = chosen_task(env_id, given)
    if given.get("groups"):
        group_members(rules.spec, task.groups)
    why = missing_measure(task, ("rate",), rules)
    if why:
        return f"{why}; or choose another rate with --rate (in Python: rate=)"
    return missing_measure(task, (given.get("measure") or "rate",), rules)


def never_limited(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a note if the multiplier was 0 throughout a training, or ""."""
    found = [row["train/multiplier"] for row in rows if "train/multiplier" in row]
    if not found or any(found):
        return ""
    return "the limit was never exceeded and the multiplier was always 0: this training equals ppo; set a lower --limit"


SPECIFIC = frozenset().union(*(own for own, _ in OWN.values()))

METHODS = tuple(
    Method(
        name=name,
        summary=OWN[name][1],
        settings=ObjectiveTraining,
        train=with_evaluations(train_objective, policy),
        load=load_objective,
        make=make_objective,
        evaluated=evaluate,
        policy=policy,
        unsupported=without_rate,
        unused=SPECIFIC - OWN[name][0],
        own=True,
        strength=KNOBS[name],
        tolerance=TOLERANCES.get(name),
        trains_on=lambda env_id, rules, given: given.get("measure", "rate"),
        note=never_limited,
        presets=RECOMMENDED,
        preset_sets=SET_BY_RECOMMENDED | {"credit", *STRENGTHS.get(name, {})},
        preset=preset_of(name),
    )
    for name in OBJECTIVES
)
