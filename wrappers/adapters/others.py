"""What is known about wrappers of other libraries: which of them do not change observations, and which may rewards."""

from typing import Any

import gymnasium as gym

HARMLESS = frozenset(
    {
        "gymnasium.wrappers.common",
        "gymnasium.wrappers.rendering",
        "gymnasium.wrappers.stateful_action",
        "gymnasium.wrappers.stateful_reward",
        "gymnasium.wrappers.transform_action",
        "gymnasium.wrappers.transform_reward",
        "gymnasium.wrappers.vector.common",
        "gymnasium.wrappers.vector.dict_info_to_list",
        "gymnasium.wrappers.vector.rendering",
        "gymnasium.wrappers.vector.stateful_reward",
        "gymnasium.wrappers.vector.vectorize_action",
        "gymnasium.wrappers.vector.vectorize_reward",
        "mo_gymnasium.wrappers.vector.wrappers.MORecordEpisodeStatistics",
        "mo_gymnasium.wrappers.wrappers.LinearReward",
        "mo_gymnasium.wrappers.wrappers.MOClipReward",
        "mo_gymnasium.wrappers.wrappers.MONormalizeReward",
        "mo_gymnasium.wrappers.wrappers.MORecordEpisodeStatistics",
        "pettingzoo.utils.wrappers.base_parallel",
        "stable_baselines3.common.monitor",
        "stable_baselines3.common.vec_env.vec_check_nan",
        "stable_baselines3.common.vec_env.vec_monitor",
        "stable_baselines3.common.vec_env.vec_video_recorder",
    }
)
"""Modules in which no wrapper changes observations, and individual classes of other modules."""


def leaves_observations(layer: Any) -> bool:
    """Return whether this wrapper is known not to change observations; subclasses of known wrappers are not known."""
    kind = type(layer)
    return kind.__module__ in HARMLESS or f"{kind.__module__}.{kind.__qualname__}" in HARMLESS


LIBRARY = ("gymnasium.wrappers.", "stable_baselines3.")
"""Modules whose wrappers change rewards only if they are listed."""

OF_REWARDS = ("gymnasium.wrappers.stateful_reward", "gymnasium.wrappers.transform_reward")

STEPS = (gym.Wrapper.step, gym.ObservationWrapper.step, gym.ActionWrapper.step)


def may_change_rewards(layer: Any) -> bool:
    """Return whether a wrapper of Gymnasium or of a user may change rewards."""
    kind = type(layer)
    if kind.__module__.startswith(LIBRARY):
        return kind.__module__ in OF_REWARDS
    return isinstance(layer, gym.Wrapper) and kind.step not in STEPS
