"""Methods for several agents with one action space: DDPG, Fair-E and Fair-ER."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym

from fair_envs.baselines.agents import assess, batches
from fair_envs.baselines.eval_callback import with_evaluations
from fair_envs.baselines.methods import Method, Strength, Test
from fair_envs.baselines.team import training
from fair_envs.baselines.team.curriculum import level_states
from fair_envs.baselines.team.evaluation import play_levels, report_of
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.team.training import PRESETS, TeamTraining, load_team, team_preset
from fair_envs.baselines.team.training import train_team as train_only
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.evaluation.reports import Report
from fair_envs.registration import make_rules
from fair_envs.support.progress import progress_bar


def is_team(rules: Rules) -> bool:
    """Return whether the agents are a team that acts by directions or angles."""
    return rules.pace is not None and not isinstance(rules.action_space(rules.params), gym.spaces.Discrete)


def unsupported(env_id: str, rules: Rules, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported, or ""."""
    return training.unsupported(env_id, rules)


def evaluate(model: Any, settings: Any, test: Test) -> Report | None:
    """Evaluate a team at the speeds of its curriculum, and other agents by their returns, also in twin episodes."""
    rules = make_rules(settings.env_id, **test.parameters)
    if rules.pace is not None:
        return evaluate_team(model, settings, test)
    if not isinstance(rules.action_space(rules.params), gym.spaces.Discrete):
        return None
    return evaluate_returns(Learned(model, append_group=True), rules, settings, test)


def evaluate_returns(model: Any, rules: Rules, settings: Any, test: Test) -> Report:
    """Evaluate agents with discrete actions by their returns, in counterfactual twin episodes too.

    Args:
        model: See `fair_envs.baselines.agents.play`.
        rules: The environment.
        settings: Settings of the training.
        test: Settings of the test.
    """
    with progress_bar("playing", total=len(batches(test.episodes)), shown=test.progress) as each:
        return assess(model, rules, episodes=test.episodes, seed=test.seed, about=test.about(settings), each=each)


def evaluate_team(
    model: Any, settings: Any, test: Test, *, made: Callable[[Policy], Policy] = lambda team: team
) -> Report:
    """Evaluate a team at the speeds of its curriculum, or at a given speed.

    Args:
        model: The trained model.
        settings: Settings of the training.
        test: Settings of the test.
        made: Creates the team that plays from the model's present policy, see `play_levels`.
    """
    rules = make_rules(settings.env_id, **test.parameters)
    pace = str(rules.pace)
    levels = () if pace in test.changed else getattr(settings, "kept_levels", ())
    speeds = levels or [getattr(rules.params, pace)]
    with progress_bar("playing", total=len(speeds), shown=test.progress) as each:
        found = play_levels(
            model,
            level_states(test.run, speeds=speeds),
            rules,
            speeds=speeds,
            episodes=test.episodes,
            seed=test.seed,
            made=made,
            each=each,
        )
    return report_of(found, about=test.about(settings))


def policy(model: Any, settings: TeamTraining, rules: Rules) -> Policy:
    """Return the trained team, without noise."""
    return Learned(model)


OF_FAIR_ER = frozenset({"fairness_weight", "form", "fairness_limit", "weight_learning_rate"})
SUMMARIES = {
    "ddpg": "Deep deterministic policy gradient for several agents, with separate networks for each agent.",
    "fair-e": "DDPG with one network for all agents, which makes them exchangeable.",
    "fair-er": "DDPG whose actors are pulled towards equivariance by a penalty.",
}
train_team = with_evaluations(train_only, policy)
METHODS = tuple(
    Method(
        name=name,
        summary=summary,
        settings=TeamTraining,
        train=train_team,
        load=load_team,
        evaluated=evaluate,
        policy=policy,
        unsupported=unsupported,
        unused=frozenset() if name == "fair-er" else OF_FAIR_ER,
        strength=Strength(("fairness_weight",), (0.1, 0.5, 1.0, 2.0)) if name == "fair-er" else None,
        trains_on=(lambda env_id, rules, given: "policies") if name == "fair-er" else (lambda env_id, rules, given: ""),
        presets={
            "recommended": "the task's parameters and steps, without a curriculum",
            "small": "for pursuers that get slower, in a small world",
            "large": "for pursuers that get slower, in the paper's world",
            "paper": "the settings of the paper",
        },
        preset=team_preset,
    )
    for name, summary in SUMMARIES.items()
)
assert set(METHODS[0].presets) == set(PRESETS)
