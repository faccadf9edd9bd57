"""Policies, and the loop that plays episodes with them."""

from fair_envs.evaluation.language import InWords, chat
from fair_envs.evaluation.models import FromSB3, ModelMismatchError, policy_of_model
from fair_envs.evaluation.policy import (
    ByAgent,
    DecisionMaker,
    FromFunction,
    FromProbabilities,
    MostLikely,
    Policy,
    RandomPolicy,
    Stochastic,
    as_policy,
    choose,
    scripted,
)
from fair_envs.evaluation.rollout import rollout
from fair_envs.evaluation.world import Transition, World
from fair_envs.evaluation.worlds import (
    LanesWorld,
    ParallelWorld,
    VectorEnv,
    VectorWorld,
    begun,
    lanes_of,
    rules_of,
    scenes,
)

__all__ = [
    "ByAgent",
    "DecisionMaker",
    "FromFunction",
    "FromProbabilities",
    "FromSB3",
    "InWords",
    "LanesWorld",
    "ModelMismatchError",
    "MostLikely",
    "ParallelWorld",
    "Policy",
    "RandomPolicy",
    "Stochastic",
    "Transition",
    "VectorEnv",
    "VectorWorld",
    "World",
    "as_policy",
    "begun",
    "chat",
    "choose",
    "lanes_of",
    "policy_of_model",
    "rollout",
    "rules_of",
    "scenes",
    "scripted",
]
