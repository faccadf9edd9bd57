"""Baselines: Stable-Baselines3 algorithms and their fair variants."""

try:
    from fair_envs.baselines.evaluation import Counterfactual, Played, Player, counterfactual, play
    from fair_envs.baselines.fair_ppo import FairPPO
    from fair_envs.baselines.policies import GroupedPolicy
    from fair_envs.baselines.ppo import PPO
    from fair_envs.baselines.training import Training, load, train
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("stable_baselines3", "torch"):
        raise
    needed = "fair_envs.baselines needs Stable-Baselines3; install it with: pip install 'fair-envs[baselines]'"
    raise ImportError(needed) from error

__all__ = [
    "PPO",
    "Counterfactual",
    "FairPPO",
    "GroupedPolicy",
    "Played",
    "Player",
    "Training",
    "counterfactual",
    "load",
    "play",
    "train",
]
