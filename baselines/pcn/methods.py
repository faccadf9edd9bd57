"""The methods Pareto Conditioned Networks and Lorenz Conditioned Networks."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fair_envs.baselines.methods import Method, Strength, Test
from fair_envs.baselines.pcn import coverage
from fair_envs.baselines.pcn.actions import uncountable
from fair_envs.baselines.pcn.objectives import (
    GROUPS,
    MEASURES,
    PERFORMANCE,
    agents_earn,
    default_objectives,
    objective_name,
    unsupported_objectives,
)
from fair_envs.baselines.pcn.pcn import PCN
from fair_envs.baselines.pcn.policy import policy_of
from fair_envs.baselines.pcn.training import (
    LCNTraining,
    PCNTraining,
    load_pcn,
    preset_values,
    recommended_values,
    steps_of_iterations,
    test,
    train_pcn,
)
from fair_envs.evaluation import Policy
from fair_envs.evaluation.reports import Report
from fair_envs.support.parameters import UnitInterval, checked, value_of
from fair_envs.tasks import AnyRules, task_of


def unsupported(
    env_id: str, rules: AnyRules, given: Mapping[str, Any], *, kind: type[PCNTraining] = PCNTraining
) -> str:
    """Return why an environment is not supported with the given settings, or ""."""
    if why := uncountable(rules.action_space(rules.params)):
        return f"needs actions that can be listed; its action space {why}"
    try:
        named = [objective_name("objectives", name) for name in value_of(given.get("objectives", ""), Sequence[str])]
        share = checked("lorenz_lambda", value_of(given.get("lorenz_lambda", kind.lorenz_lambda), float), UnitInterval)
    except ValueError:
        return ""  # the settings reject the values, with a better message
    objectives = named or default_objectives(rules, comparable=share < 1)
    return unsupported_objectives(rules, objectives, task_of(env_id))


def policy(model: PCN, settings: PCNTraining, rules: AnyRules) -> Policy:
    """Return the policy that follows the trade-off of the settings."""
    return policy_of(model, rules, choice=settings.followed, deterministic=settings.test_actions == "deterministic")


def evaluate(model: Any, settings: PCNTraining, how: Test) -> Report:
    """Evaluate the coverage set in the training's environment.

    Raises:
        ValueError: Parameters were changed.
    """
    if how.changed:
        raise ValueError(
            f"param must not be given: {settings.algorithm} is tested in the training environment; measure one of its "
            "trade-offs in another one with --policy RUN"
        )
    found = test(model, settings, episodes=how.episodes, seed=how.seed, progress=how.progress)
    also = partial(coverage.save, found, reference=model.reference[model.requested])
    return coverage.report(found, about=how.about(settings), also_save=also)


FEW = 4  # iterations of whole episodes, without which the network has learned next to nothing


def least_steps(rules: Any, given: Mapping[str, Any]) -> int:
    """Return the environment steps of the random episodes and of a few iterations."""
    return steps_of_iterations(FEW, int(rules.params.horizon), given)


def trains_on(env_id: str, rules: AnyRules, given: Mapping[str, Any], *, kind: type[PCNTraining] = PCNTraining) -> str:
    """Return the objectives besides the performance; those of groups are their rates, or the returns of agents."""
    comparable = given.get("lorenz_lambda", kind.lorenz_lambda) < 1
    names = [*given.get("objectives", ())] or default_objectives(rules, comparable=comparable)
    words = {GROUPS: "returns" if agents_earn(rules) else "rate", MEASURES: "short, long"}
    return ", ".join(words.get(name, name.replace("_", " ")) for name in names if name != PERFORMANCE)


RECOMMENDED = "the task's parameters and, for a decision-maker, its steps"

METHODS = (
    Method(
        name="pcn",
        counts_agents=False,
        least=least_steps,
        trains_on=trains_on,
        summary="Pareto Conditioned Networks: one policy for any trade-off between performance and fairness notions.",
        settings=PCNTraining,
        train=train_pcn,
        load=load_pcn,
        policy=policy,
        evaluated=evaluate,
        unsupported=unsupported,
        own=True,
        presets={
            "recommended": RECOMMENDED,
            "farel": "the settings of the study FAReL",
            "farel-published": "the settings of FAReL with the errors of its published code",
        },
        preset=preset_values,
        preset_sets=frozenset({"steps"}),
    ),
    Method(
        name="lcn",
        counts_agents=False,
        least=least_steps,
        trains_on=partial(trains_on, kind=LCNTraining),
        summary="Lorenz Conditioned Networks: PCN that prefers trade-offs in which groups have equal returns.",
        settings=LCNTraining,
        train=train_pcn,
        load=partial(load_pcn, kind=LCNTraining),
        strength=Strength(("lorenz_lambda",), (0.9, 0.6, 0.3, 0.0)),
        policy=policy,
        evaluated=evaluate,
        unsupported=partial(unsupported, kind=LCNTraining),
        own=True,
        presets={"recommended": RECOMMENDED},
        preset=recommended_values,
        preset_sets=frozenset({"steps"}),
    ),
)
