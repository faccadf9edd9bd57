"""Methods that train agents or a decision-maker: PPO, fair-PPO, Stable-Baselines3's PPO."""

from collections.abc import Iterable, Mapping
from typing import Any

from fair_envs.baselines.agents import AgentsPolicy
from fair_envs.baselines.eval_callback import with_evaluations
from fair_envs.baselines.methods import Method, Strength, Test
from fair_envs.baselines.settings import RECOMMENDED, SET_BY_RECOMMENDED, recommended_preset
from fair_envs.baselines.team.methods import evaluate_returns, evaluate_team, is_team
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.training import Training, compares_returns, load, make_model
from fair_envs.baselines.training import train as train_only
from fair_envs.core import Rules
from fair_envs.evaluation import Policy, policy_of_model
from fair_envs.evaluation.reports import Report
from fair_envs.metrics.measures import check_without_probs
from fair_envs.tasks import Task, measure_name, rules_for, task_of

FAIR_PPO_SETTINGS = frozenset({"penalty", "alpha", "beta", "weight", "mode", "credit", "tolerance", "measure"})


FEN_SETTINGS = frozenset({"bounds", "epsilon"})


def only_returns(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported by a method that compares the returns of agents, or ""."""
    return "" if rules.multi_agent else "compares the returns of agents; a decision-maker has no others to compare with"


def fair_ppo_trains_on(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
    """Return what fair-PPO learns from: the returns of two groups of agents, or a measure."""
    return str(given.get("measure") or ("returns" if compares_returns(rules) else "short"))


def missing_measure(task: Task, names: Iterable[str], rules: Any) -> str:
    """Return why one of a task's measures cannot be computed from an environment's record, or "".

    Raises:
        ValueError: A name is unknown.
    """
    names = [measure_name(name) for name in names]
    try:
        for name in names:
            check_without_probs(task.measure(name, rules, 1), "measure")
    except ValueError as error:
        return f"needs another measure: {error}"
    return ""


def without_measure(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported by a method that needs a measure, or ""."""
    return missing_measure(task_of(env_id), [given.get("measure") or "short"], rules)


def without_penalty(env_id: str, rules: Any, given: Mapping[str, Any]) -> str:
    """Return why an environment is not supported by fair-PPO, which needs returns of two groups or a measure, or ""."""
    return "" if compares_returns(rules) and not given.get("measure") else without_measure(env_id, rules, given)


def evaluate(model: Any, settings: Any, test: Test) -> Report | None:
    """Evaluate agents by every form of the notions on returns, in counterfactual twin episodes too, or a team."""
    rules = rules_for(settings.env_id, **test.parameters)
    if not isinstance(rules, Rules) or not rules.multi_agent:
        return None
    if rules.pace is not None:
        return evaluate_team(model, settings, test, made=lambda _: policy(model, settings, rules))
    return evaluate_returns(model, rules, settings, test)


def policy(model: Any, settings: Any, rules: Any) -> Policy:
    """Return the trained policy; it is deterministic if actions are directions."""
    if not rules.multi_agent:
        return policy_of_model(model, rules)
    return Learned(model) if is_team(rules) else AgentsPolicy(model, rules)


train = with_evaluations(train_only, policy)
SHARED: dict[str, Any] = {
    "settings": Training,
    "train": train,
    "load": load,
    "evaluated": evaluate,
    "policy": policy,
    "own": True,
    "presets": RECOMMENDED,
    "preset_sets": SET_BY_RECOMMENDED,
    "preset": recommended_preset(Training),
}
METHODS = (
    Method(
        name="ppo",
        summary="Proximal policy optimisation of the reward only.",
        make=make_model,
        unused=FAIR_PPO_SETTINGS | FEN_SETTINGS,
        **SHARED,
    ),
    Method(
        name="fair-ppo",
        summary="PPO with a penalty on the disparity between groups' returns, or on the increase of another measure.",
        unsupported=without_penalty,
        unused=FEN_SETTINGS,
        strength=Strength(("alpha",), (0.25, 0.5, 1.0, 2.0)),
        trains_on=fair_ppo_trains_on,
        make=make_model,
        **SHARED,
    ),
    Method(
        name="fen-reward",
        summary="PPO of FEN's fair-efficient reward, which is high if all agents earn much, and equally.",
        unused=FAIR_PPO_SETTINGS,
        unsupported=only_returns,
        trains_on=lambda env_id, rules, given: "returns",
        **SHARED,
    ),
    Method(
        name="sb3-ppo",
        summary="Stable-Baselines3's PPO, which also learns from steps in which an agent had no turn.",
        unused=FAIR_PPO_SETTINGS | FEN_SETTINGS | {"skip_idle", "equivariance"},
        equals=lambda env_id, rules: "" if rules.multi_agent else "ppo",
        **SHARED,
    ),
)
