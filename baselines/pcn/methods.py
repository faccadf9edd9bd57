"""The method Pareto Conditioned Networks."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium as gym

from fair_envs.baselines.methods import Method, Test
from fair_envs.baselines.pcn import coverage
from fair_envs.baselines.pcn.training import PCNTraining, load_pcn, preset_values, test, train_pcn
from fair_envs.core import Rules
from fair_envs.evaluation.reports import Report


def unsupported(env_id: str, rules: Rules, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported, or ""."""
    space = rules.action_space(rules.params)
    if rules.multi_agent or not rules.spec.one_person or not isinstance(space, gym.spaces.Discrete):
        return "needs discrete decisions about one person in each step"
    return ""


def evaluate(model: Any, settings: PCNTraining, how: Test) -> Report:
    """Evaluate the coverage set in the training's environment.

    Raises:
        ValueError: Parameters were changed.
    """
    if how.changed:
        raise ValueError("param must not be given: Pareto Conditioned Networks are tested in the training environment")
    found = test(model, settings, episodes=how.episodes, seed=how.seed, progress=how.progress)
    also = partial(coverage.save, found, reference=model.reference[model.requested])
    return coverage.report(found, about=how.about(settings), also_save=also)


METHODS = (
    Method(
        name="pcn",
        summary="Pareto Conditioned Networks: one policy for any trade-off between performance and fairness notions.",
        settings=PCNTraining,
        train=train_pcn,
        load=load_pcn,
        evaluated=evaluate,
        unsupported=unsupported,
        presets={
            "recommended": "this package's settings",
            "farel": "the settings of the study FAReL",
            "farel-published": "the settings of FAReL with the errors of its published code",
        },
        preset=preset_values,
    ),
)
