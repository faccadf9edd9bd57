"""Baselines: Stable-Baselines3 algorithms and their fair variants.

Public names are imported from their modules on first access.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fair_envs.metrics.measures import Measure
from fair_envs.support.extras import need

need("fair_envs.baselines", "stable_baselines3", "sb3_contrib", "torch", extra="baselines")

if TYPE_CHECKING:
    from fair_envs.baselines.agents import AgentsPolicy, Counterfactual, EpisodeResults, counterfactual, play
    from fair_envs.baselines.callback import FairnessCallback
    from fair_envs.baselines.pcn.coverage import CoverageSet, cover
    from fair_envs.baselines.pcn.pcn import PCN, PCNSettings, farel_settings
    from fair_envs.baselines.pcn.rollouts import collect
    from fair_envs.baselines.pcn.single import SingleTraining, train_single
    from fair_envs.baselines.pcn.training import LCNTraining, PCNTraining, load_pcn, train_pcn
    from fair_envs.baselines.ppo.cost_ppo import MeasurePPO
    from fair_envs.baselines.ppo.cpo import CPO
    from fair_envs.baselines.ppo.fair_ppo import FairPPO
    from fair_envs.baselines.ppo.lagrangian import PPOLagrangian
    from fair_envs.baselines.ppo.long_term_methods import train_long_term
    from fair_envs.baselines.ppo.long_term_training import LongTermTraining, load_long_term, long_term_settings
    from fair_envs.baselines.ppo.massaging import Massager, MassagingSchedule, PolicyOutput, ShieldActions
    from fair_envs.baselines.ppo.methods import train
    from fair_envs.baselines.ppo.objectives import ObjectivePPO
    from fair_envs.baselines.ppo.policies import GroupedPolicy, IndividualPolicy, SharedTrunkPolicy
    from fair_envs.baselines.ppo.ppo import PPO
    from fair_envs.baselines.ppo.regularised import APPO, FPPO, Regularised
    from fair_envs.baselines.team.ddpg import DDPG, FairE, FairER
    from fair_envs.baselines.team.methods import train_team
    from fair_envs.baselines.team.play import SetSpeed, TeamPlay, by_seed, evaluate_speeds, play_team
    from fair_envs.baselines.team.policy import Learned
    from fair_envs.baselines.team.training import TeamTraining, load_team, team_settings
    from fair_envs.baselines.together import train_together
    from fair_envs.baselines.training import Training, load

__all__ = [
    "APPO",
    "CPO",
    "DDPG",
    "FPPO",
    "PCN",
    "PPO",
    "AgentsPolicy",
    "Counterfactual",
    "CoverageSet",
    "EpisodeResults",
    "FairE",
    "FairER",
    "FairPPO",
    "FairnessCallback",
    "GroupedPolicy",
    "IndividualPolicy",
    "LCNTraining",
    "Learned",
    "LongTermTraining",
    "Massager",
    "MassagingSchedule",
    "Measure",
    "MeasurePPO",
    "ObjectivePPO",
    "PCNSettings",
    "PCNTraining",
    "PPOLagrangian",
    "PolicyOutput",
    "Regularised",
    "SetSpeed",
    "SharedTrunkPolicy",
    "ShieldActions",
    "SingleTraining",
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
    "train_together",
]

_MODULES = {
    "callback": ("FairnessCallback",),
    "pcn.coverage": ("CoverageSet", "cover"),
    "team.ddpg": ("DDPG", "FairE", "FairER"),
    "ppo.cost_ppo": ("MeasurePPO",),
    "ppo.cpo": ("CPO",),
    "agents": ("AgentsPolicy", "Counterfactual", "EpisodeResults", "counterfactual", "play"),
    "ppo.fair_ppo": ("FairPPO",),
    "ppo.lagrangian": ("PPOLagrangian",),
    "ppo.long_term_training": ("LongTermTraining", "load_long_term", "long_term_settings"),
    "ppo.long_term_methods": ("train_long_term",),
    "ppo.methods": ("train",),
    "team.methods": ("train_team",),
    "ppo.massaging": ("Massager", "MassagingSchedule", "PolicyOutput", "ShieldActions"),
    "pcn.pcn": ("PCN", "PCNSettings", "farel_settings"),
    "pcn.training": ("LCNTraining", "PCNTraining", "load_pcn", "train_pcn"),
    "ppo.objectives": ("ObjectivePPO",),
    "ppo.policies": ("GroupedPolicy", "IndividualPolicy", "SharedTrunkPolicy"),
    "ppo.ppo": ("PPO",),
    "ppo.regularised": ("APPO", "FPPO", "Regularised"),
    "pcn.rollouts": ("collect",),
    "pcn.single": ("SingleTraining", "train_single"),
    "team.play": ("SetSpeed", "TeamPlay", "by_seed", "evaluate_speeds", "play_team"),
    "team.policy": ("Learned",),
    "team.training": ("TeamTraining", "load_team", "team_settings"),
    "together": ("train_together",),
    "training": ("Training", "load"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public name from its module, or raise AttributeError."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
