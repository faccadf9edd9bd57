"""A wrapper that reports masks of actions in ``info``."""

from typing import Any

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
        self._lanes.action_masks()
        self.personal = () if self._agent is not None else (MASK,)

    def __call__(self, batch: Batch) -> Batch:
        """Add the masks."""
        masks = self._lanes.action_masks()
        own = masks if self._agent is None else masks[:, self._agent]
        return batch._replace(added={**batch.added, MASK: own})


class ReportActionMasks(Wrapper):
    """Reports which actions can be chosen without a loss as ``info["action_mask"]``, where several libraries read it.

    It has an int8 entry for each action, see `Rules.action_masks`: 1: the action can be chosen; 0: it has no effect, or
    the same as another one. The options of several choices are one after another. Its shape is (n,) for one
    decision-maker, for an agent under focal control, and for each agent in PettingZoo, and (agents, n) for agents that
    are played together. Vector environments have an axis of lanes in front. The masks are those of the next step; after
    the last step of an episode, they may be those of the next episode.

    The method ``action_masks()``, which MaskablePPO of sb3-contrib reads, needs no wrapper.

    Args:
        env: The environment, with any interface.

    Raises:
        ValueError: The actions are not discrete, or it is a user's own environment.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env, ReportedMasks())
