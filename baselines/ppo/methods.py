"""Methods that train agents with discrete actions: PPO, fair-PPO and Stable-Baselines3's PPO."""

from collections.abc import Mapping
from typing import Any

from fair_envs.baselines import assessment
from fair_envs.baselines.evaluating import evaluating
from fair_envs.baselines.methods import Method, Test
from fair_envs.baselines.ppo.evaluation import AgentsPolicy
from fair_envs.baselines.team.methods import evaluate_team, is_team
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.training import Training, load, train
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.evaluation.reports import Report
from fair_envs.registration import make_rules
from fair_envs.support.progress import progress_bar

FAIR_PPO_SETTINGS = frozenset({"penalty", "alpha", "beta", "weight", "mode", "credit", "tolerance"})


def unsupported(env_id: str, rules: Rules, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported, or ""; one network for all agents needs no groups."""
    if rules.multi_agent or given.get("shared"):
        return ""
    return "needs agents that are themselves affected"


def evaluate(model: Any, settings: Training, test: Test) -> Report:
    """Evaluate agents, in counterfactual twin episodes too, or a team."""
    rules = make_rules(settings.env_id, **test.parameters)
    if is_team(rules):
        return evaluate_team(model, settings, test)
    with progress_bar("playing", total=len(assessment.batches(test.episodes)), shown=test.progress) as each:
        return assessment.assess(
            model, rules, episodes=test.episodes, seed=test.seed, about=test.about(settings), each=each
        )


def policy(model: Any, settings: Training, rules: Rules) -> Policy:
    """Return the trained policy; it is deterministic if actions are directions."""
    return Learned(model) if is_team(rules) else AgentsPolicy(model, rules)


SHARED: dict[str, Any] = {
    "settings": Training,
    "train": evaluating(train, policy),
    "load": load,
    "evaluated": evaluate,
    "policy": policy,
    "unsupported": unsupported,
}
METHODS = (
    Method(
        name="ppo",
        summary="Proximal policy optimisation of the reward only, with separate networks for each group.",
        unused=FAIR_PPO_SETTINGS,
        **SHARED,
    ),
    Method(name="fair-ppo", summary="PPO with a penalty on the disparity between groups' returns.", **SHARED),
    Method(
        name="sb3-ppo",
        summary="Stable-Baselines3's PPO, which also learns from steps in which an agent had no turn.",
        unused=FAIR_PPO_SETTINGS | {"skip_idle"},
        **SHARED,
    ),
)
