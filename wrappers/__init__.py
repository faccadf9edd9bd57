"""Wrappers that transform observations, rewards and records of an environment with any interface.

``FairnessPenalty(env, alpha=1.0)`` wraps an environment. ``Penalty(alpha=1.0)`` is only its transform;
``Wrapper(env, Penalty(alpha=1.0))`` applies a transform.
"""

from fair_envs.evaluation import choose
from fair_envs.metrics.disparity import DisparityTracker
from fair_envs.wrappers.annotate import Annotate
from fair_envs.wrappers.decisions import (
    DecisionEpisodes,
    DecisionGaps,
    TwinDecisions,
    counterfactual_observation,
    decision_gap,
    twin_decisions,
)
from fair_envs.wrappers.delayed import DelayedFeedback, LateFeedback
from fair_envs.wrappers.gaps import FairnessObjectives, GapObjectives, GapPenalty, ReportActionProbs, ReportedProbs
from fair_envs.wrappers.masks import ReportActionMasks, ReportedMasks
from fair_envs.wrappers.objectives import (
    FairEfficiency,
    FenReward,
    Objectives,
    SocialReward,
    SocialUtility,
    VectorReward,
)
from fair_envs.wrappers.penalty import FairnessPenalty, Penalty
from fair_envs.wrappers.recording import Recorder, RecordFairness
from fair_envs.wrappers.scalarise import Scalarisation, Scalarise
from fair_envs.wrappers.sensitive import HiddenAttribute, HideSensitive, SwappedAttribute, SwapSensitive
from fair_envs.wrappers.sources import after, before
from fair_envs.wrappers.transform import Batch, Setting, Transform
from fair_envs.wrappers.twin import TwinEpisodes, Twins, counterfactual, from_probabilities
from fair_envs.wrappers.wrapper import Wrapper

__all__ = [
    "Annotate",
    "Batch",
    "DecisionEpisodes",
    "DecisionGaps",
    "DelayedFeedback",
    "DisparityTracker",
    "FairEfficiency",
    "FairnessObjectives",
    "FairnessPenalty",
    "FenReward",
    "GapObjectives",
    "GapPenalty",
    "HiddenAttribute",
    "HideSensitive",
    "LateFeedback",
    "Objectives",
    "Penalty",
    "RecordFairness",
    "Recorder",
    "ReportActionMasks",
    "ReportActionProbs",
    "ReportedMasks",
    "ReportedProbs",
    "Scalarisation",
    "Scalarise",
    "Setting",
    "SocialReward",
    "SocialUtility",
    "SwapSensitive",
    "SwappedAttribute",
    "Transform",
    "TwinDecisions",
    "TwinEpisodes",
    "Twins",
    "VectorReward",
    "Wrapper",
    "after",
    "before",
    "choose",
    "counterfactual",
    "counterfactual_observation",
    "decision_gap",
    "from_probabilities",
    "twin_decisions",
]
