"""Policies, and the one loop in which they play episodes."""

from fair_envs.evaluation.policy import (
    DecisionMaker,
    FromFunction,
    FromProbabilities,
    FromSB3,
    MostLikely,
    Policy,
    RandomPolicy,
    Stochastic,
    as_policy,
    choose,
)
from fair_envs.evaluation.rollout import Transition, World, rollout
from fair_envs.evaluation.worlds import LanesWorld, ParallelWorld, VectorEnv, VectorWorld, begun, scenes

__all__ = [
    "DecisionMaker",
    "FromFunction",
    "FromProbabilities",
    "FromSB3",
    "LanesWorld",
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
    "choose",
    "rollout",
    "scenes",
]
