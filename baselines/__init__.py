"""Baselines: Stable-Baselines3 algorithms and their fair variants.

Public names are imported from their modules on first access.
"""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fair_envs.metrics.long_term import Measure

if find_spec("stable_baselines3") is None or find_spec("torch") is None:
    raise ImportError(
        "fair_envs.baselines needs Stable-Baselines3; install it with: pip install 'fair-envs[baselines]'"
    )

if TYPE_CHECKING:
    from fair_envs.baselines.coverage import CoverageSet, cover
    from fair_envs.baselines.ddpg import DDPG, FairE, FairER
    from fair_envs.baselines.evaluation import Counterfactual, Played, Player, counterfactual, play
    from fair_envs.baselines.fair_ppo import FairPPO
    from fair_envs.baselines.lagrangian import PPOLagrangian
    from fair_envs.baselines.long_term_training import (
        LongTermTraining,
        load_long_term,
        long_term_settings,
        train_long_term,
    )
    from fair_envs.baselines.massaging import Massager, MassagingSchedule, PolicyOutput, ShieldActions
    from fair_envs.baselines.pcn import PCN, PCNSettings, farel_settings
    from fair_envs.baselines.pcn_training import PCNTraining, load_pcn, train_pcn
    from fair_envs.baselines.policies import GroupedPolicy, SharedTrunkPolicy
    from fair_envs.baselines.ppo import PPO
    from fair_envs.baselines.regularised import APPO, FPPO, Regularised
    from fair_envs.baselines.rollouts import collect
    from fair_envs.baselines.single import SingleTraining, train_single
    from fair_envs.baselines.tasks import STUDIES, Study
    from fair_envs.baselines.team_play import SetSpeed, TeamPlay, by_seed, evaluate_speeds, play_team
    from fair_envs.baselines.team_policy import Learned
    from fair_envs.baselines.team_training import TeamTraining, load_team, team_settings, train_team
    from fair_envs.baselines.training import Training, load, train

__all__ = [
    "APPO",
    "DDPG",
    "FPPO",
    "PCN",
    "PPO",
    "STUDIES",
    "Counterfactual",
    "CoverageSet",
    "FairE",
    "FairER",
    "FairPPO",
    "GroupedPolicy",
    "Learned",
    "LongTermTraining",
    "Massager",
    "MassagingSchedule",
    "Measure",
    "PCNSettings",
    "PCNTraining",
    "PPOLagrangian",
    "Played",
    "Player",
    "PolicyOutput",
    "Regularised",
    "SetSpeed",
    "SharedTrunkPolicy",
    "ShieldActions",
    "SingleTraining",
    "Study",
    "TeamPlay",
    "TeamTraining",
    "Training",
    "by_seed",
    "collect",
    "counterfactual",
    "cover",
    "evaluate_speeds",
    "farel_settings",
    "load",
    "load_long_term",
    "load_pcn",
    "load_team",
    "long_term_settings",
    "play",
    "play_team",
    "team_settings",
    "train",
    "train_long_term",
    "train_pcn",
    "train_single",
    "train_team",
]

_MODULES = {
    "coverage": ("CoverageSet", "cover"),
    "ddpg": ("DDPG", "FairE", "FairER"),
    "evaluation": ("Counterfactual", "Played", "Player", "counterfactual", "play"),
    "fair_ppo": ("FairPPO",),
    "lagrangian": ("PPOLagrangian",),
    "long_term_training": ("LongTermTraining", "load_long_term", "long_term_settings", "train_long_term"),
    "massaging": ("Massager", "MassagingSchedule", "PolicyOutput", "ShieldActions"),
    "pcn": ("PCN", "PCNSettings", "farel_settings"),
    "pcn_training": ("PCNTraining", "load_pcn", "train_pcn"),
    "policies": ("GroupedPolicy", "SharedTrunkPolicy"),
    "ppo": ("PPO",),
    "regularised": ("APPO", "FPPO", "Regularised"),
    "rollouts": ("collect",),
    "single": ("SingleTraining", "train_single"),
    "tasks": ("STUDIES", "Study"),
    "team_play": ("SetSpeed", "TeamPlay", "by_seed", "evaluate_speeds", "play_team"),
    "team_policy": ("Learned",),
    "team_training": ("TeamTraining", "load_team", "team_settings", "train_team"),
    "training": ("Training", "load", "train"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name from its module, or raise AttributeError."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
