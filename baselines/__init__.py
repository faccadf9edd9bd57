"""Baselines: Stable-Baselines3 algorithms and their fair variants."""

try:
    from fair_envs.baselines.coverage import CoverageSet, cover
    from fair_envs.baselines.evaluation import Counterfactual, Played, Player, counterfactual, play
    from fair_envs.baselines.fair_ppo import FairPPO
    from fair_envs.baselines.pcn import PCN, PCNSettings, farel_settings
    from fair_envs.baselines.pcn_training import PCNTraining, load_pcn, train_pcn
    from fair_envs.baselines.policies import GroupedPolicy
    from fair_envs.baselines.ppo import PPO
    from fair_envs.baselines.rollouts import Agent, collect
    from fair_envs.baselines.single import SingleTraining, train_single
    from fair_envs.baselines.training import Training, load, train
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("stable_baselines3", "torch"):
        raise
    needed = "fair_envs.baselines needs Stable-Baselines3; install it with: pip install 'fair-envs[baselines]'"
    raise ImportError(needed) from error

__all__ = [
    "PCN",
    "PPO",
    "Agent",
    "Counterfactual",
    "CoverageSet",
    "FairPPO",
    "GroupedPolicy",
    "PCNSettings",
    "PCNTraining",
    "Played",
    "Player",
    "SingleTraining",
    "Training",
    "collect",
    "counterfactual",
    "cover",
    "farel_settings",
    "load",
    "load_pcn",
    "play",
    "train",
    "train_pcn",
    "train_single",
]
