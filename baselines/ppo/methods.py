"""Methods that train agents, or a decision-maker with shared networks: PPO, fair-PPO, Stable-Baselines3's PPO."""

from collections.abc import Mapping
from typing import Any

from fair_envs.baselines import assessment
from fair_envs.baselines.evaluating import evaluating
from fair_envs.baselines.methods import Method, Test, evaluate_policy
from fair_envs.baselines.ppo.evaluation import AgentsPolicy
from fair_envs.baselines.ppo.long_term_evaluation import LongTermPolicy
from fair_envs.baselines.team.methods import evaluate_team, is_team
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.training import Training, load
from fair_envs.baselines.training import train as train_only
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.evaluation.reports import Report
from fair_envs.registration import make_rules
from fair_envs.support.progress import progress_bar

FAIR_PPO_SETTINGS = frozenset({"penalty", "alpha", "beta", "weight", "mode", "credit", "tolerance"})


def unsupported(env_id: str, rules: Rules, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported, or ""; a decision-maker belongs to no group that has own networks."""
    if rules.multi_agent or given.get("shared") or given.get("sharing") == "all":
        return ""
    return "needs agents that are themselves affected, or --sharing all"


def only_agents(env_id: str, rules: Rules, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported by a method that compares agents' returns, or ""."""
    return "" if rules.multi_agent else "needs agents that are themselves affected"


def evaluate(model: Any, settings: Training, test: Test) -> Report:
    """Evaluate agents, in counterfactual twin episodes too, a team, or a decision-maker by its decisions."""
    rules = make_rules(settings.env_id, **test.parameters)
    if not rules.multi_agent:
        return evaluate_policy(policy(model, settings, rules), rules, settings, test)
    if is_team(rules):
        return evaluate_team(model, settings, test)
    with progress_bar("playing", total=len(assessment.batches(test.episodes)), shown=test.progress) as each:
        return assessment.assess(
            model, rules, episodes=test.episodes, seed=test.seed, about=test.about(settings), each=each
        )


def policy(model: Any, settings: Training, rules: Rules) -> Policy:
    """Return the trained policy; it is deterministic if actions are directions."""
    if not rules.multi_agent:
        return LongTermPolicy(model, rules)
    return Learned(model) if is_team(rules) else AgentsPolicy(model, rules)


train = evaluating(train_only, policy)
SHARED: dict[str, Any] = {
    "settings": Training,
    "train": train,
    "load": load,
    "evaluated": evaluate,
    "policy": policy,
}
METHODS = (
    Method(
        name="ppo",
        summary="Proximal policy optimisation of the reward only, with separate networks for each group.",
        unused=FAIR_PPO_SETTINGS,
        unsupported=unsupported,
        **SHARED,
    ),
    Method(
        name="fair-ppo",
        summary="PPO with a penalty on the disparity between groups' returns.",
        unsupported=only_agents,
        **SHARED,
    ),
    Method(
        name="sb3-ppo",
        summary="Stable-Baselines3's PPO, which also learns from steps in which an agent had no turn.",
        unused=FAIR_PPO_SETTINGS | {"skip_idle", "equivariance"},
        unsupported=unsupported,
        **SHARED,
    ),
)
