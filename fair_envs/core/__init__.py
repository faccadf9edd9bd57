"""The core: rules of environments, lanes that they are played on, and how both are compiled."""

from fair_envs.core.compilation import inlined, rule
from fair_envs.core.lanes import (
    LARGEST_BATCH,
    LARGEST_SEED,
    Amendment,
    Lanes,
    Step,
    Worlds,
    active_agents,
    check_batch,
    check_count,
    check_seed,
    check_seeds,
    draws,
    fresh_seeds,
    kernels,
)
from fair_envs.core.rules import (
    CLOCK,
    LARGEST_LANE,
    ObservedTeammates,
    Rules,
    TeamOutcome,
    variant_named,
    variant_of,
)

__all__ = [
    "CLOCK",
    "LARGEST_BATCH",
    "LARGEST_LANE",
    "LARGEST_SEED",
    "Amendment",
    "Lanes",
    "ObservedTeammates",
    "Rules",
    "Step",
    "TeamOutcome",
    "Worlds",
    "active_agents",
    "check_batch",
    "check_count",
    "check_seed",
    "check_seeds",
    "draws",
    "fresh_seeds",
    "inlined",
    "kernels",
    "rule",
    "variant_named",
    "variant_of",
]
