"""A wrapper that reports masks of actions in ``info``."""

from typing import Any

import numpy as np

from fair_envs.wrappers.transform import Batch, Setting, Transform
from fair_envs.wrappers.wrapper import Wrapper

MASK = "action_mask"


class ReportedMasks(Transform):
    """The transform of `ReportActionMasks`."""

    needs_rules = True
    wrapper = "ReportActionMasks"

    def bind(self, setting: Setting) -> None:
        """Check that there are masks."""
        self._lanes, self._agent = setting.lanes, 0 if setting.lanes.agents == 1 else setting.focal
        masks, space = self._lanes.action_masks(), setting.rules.action_space(setting.rules.params)
        options = np.unique(getattr(space, "nvec", ()))
        self._shape = (*masks.shape[:2], -1, options[0]) if len(options) == 1 else masks.shape
        self.personal = () if self._agent is not None else (MASK,)

    def __call__(self, batch: Batch) -> Batch:
        """Add the masks."""
        masks = self._lanes.action_masks().reshape(self._shape)
        own = masks if self._agent is None else masks[:, self._agent]
        return batch._replace(added={**batch.added, MASK: own})


class ReportActionMasks(Wrapper):
    """Reports which actions can be chosen without a loss as ``info["action_mask"]``, where several libraries read it.

    It has an int8 entry for each action, see `Rules.action_masks`: 1: the action can be chosen; 0: it has no effect, or
    the same as another one. Its shape is (n,), or (choices, n) if a step has several choices of n options; the options
    of choices with different numbers are one after another. This is for one decision-maker, for an agent under focal
    control, and for each agent in PettingZoo; agents that are played together, and the lanes of vector environments,
    have an axis in front. The masks are those of the next step; after the last step of an episode, they may be those of
    the next episode.

    In Stable-Baselines3, infos contain it with ``infos="record"`` of `fair_envs.make_sb3`, and ``vec_env.added`` always
    has it, for each lane. MaskablePPO of sb3-contrib reads the method ``env.unwrapped.action_masks()`` instead, which
    needs no wrapper.

    Args:
        env: The environment, with any interface.

    Raises:
        ValueError: The actions are not discrete, or it is a user's own environment.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env, ReportedMasks())
