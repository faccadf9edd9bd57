"""Vector rewards, and rewards with social preferences."""

import math
from typing import Any, Literal

import numpy as np

from fair_envs.metrics.disparity import cell_sums
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegative, checked
from fair_envs.wrappers.transform import Batch, Setting, Transform, need_agents
from fair_envs.wrappers.wrapper import Wrapper


class Objectives(Transform):
    """The transform of `VectorReward`, which describes the arguments."""

    changes_reward = True

    def __init__(self, *, per: Literal["agent", "group"] = "agent", aggregate: Literal["mean", "sum"] = "mean") -> None:
        if per not in ("agent", "group"):
            raise ValueError(f"per must be 'agent' or 'group', got {per!r}")
        if aggregate not in ("mean", "sum"):
            raise ValueError(f"aggregate must be 'mean' or 'sum', got {aggregate!r}")
        self.per, self.aggregate = per, aggregate

    def bind(self, setting: Setting) -> None:
        """Set the names of the objectives."""
        need_agents(setting, "VectorReward", instead="FairnessObjectives makes a vector from notions on decisions")
        agents = tuple(f"agent_{i}" for i in range(setting.lanes.agents))
        self.objectives = agents if self.per == "agent" else setting.spec.groups

    def __call__(self, batch: Batch) -> Batch:
        """Add the vector."""
        values = batch.reward
        if self.per == "group":
            group = np.maximum(batch.facts["group"], 0)
            values, sizes = cell_sums(values, group, cells=len(self.objectives))
            if self.aggregate == "mean":
                values = values / np.maximum(sizes, 1)
        return batch._replace(vector=values.astype(np.float32))


class VectorReward(Wrapper):
    """Turns the reward into a vector with one entry for each agent or each group.

    Gymnasium interfaces return it as the reward, shape (objectives,) or (B, objectives), float32. They have the
    attribute ``reward_space``, also on the unwrapped environment. In PettingZoo, every agent gets the same vector.
    Stable-Baselines3 only supports scalar rewards: there, the reward does not change, and ``vec_env.vector_reward``,
    shape (B, objectives), contains the vectors. ``info["agent_reward"]`` does not change. Put wrappers that change
    rewards below this one.

    Args:
        env: The environment, with any interface.
        per: ``"agent"`` or ``"group"``; the groups are those of ``fair_spec.groups``.
        aggregate: A group's entry is the ``"mean"`` or the ``"sum"`` of its members' rewards; 0 without a member.
    """

    def __init__(
        self, env: Any, *, per: Literal["agent", "group"] = "agent", aggregate: Literal["mean", "sum"] = "mean"
    ) -> None:
        super().__init__(env, Objectives(per=per, aggregate=aggregate))


class SocialUtility(Transform):
    """The transform of `SocialReward`, which describes the arguments."""

    changes_reward = True
    once = "a second SocialReward would treat utilities as rewards: set envy, guilt and angle of one wrapper"
    wrapper = "SocialReward"

    def __init__(self, *, envy: float = 0.0, guilt: float = 0.0, smoothing: float = 0.0, angle: float = 0.0) -> None:
        self.envy, self.guilt = checked("envy", envy, NonNegative), checked("guilt", guilt, NonNegative)
        self.smoothing = checked("smoothing", smoothing, float)
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}")
        self.angle = checked("angle", angle, float)

    def bind(self, setting: Setting) -> None:
        """Set the reward traces to 0."""
        need_agents(setting, "SocialReward", at_least=2)
        self._trace = np.zeros(setting.shape)

    def __call__(self, batch: Batch) -> Batch:
        """Replace rewards by utilities."""
        self._trace[batch.first] = 0
        self._trace[batch.decided] = self.smoothing * self._trace[batch.decided] + batch.reward[batch.decided]
        theta = math.radians(self.angle)
        utility = math.cos(theta) * batch.reward + math.sin(theta) * mean_of_others(batch.reward)
        less, more = inequity(self._trace)
        utility -= self.envy * less + self.guilt * more
        utility[~batch.decided] = 0
        return batch._replace(reward=utility)


class SocialReward(Wrapper):
    r"""Replaces each agent's reward by a utility that also depends on the other agents' rewards.

    $$u_i = \cos\theta\, r_i + \sin\theta\, \bar r_{-i} - \frac{\text{envy}}{n - 1} \sum_{j \ne i} \max(e_j - e_i, 0)
    - \frac{\text{guilt}}{n - 1} \sum_{j \ne i} \max(e_i - e_j, 0)$$

    with $\bar r_{-i}$ the others' mean reward and $e_{i,t} = \text{smoothing} \cdot e_{i,t-1} + r_{i,t}$, which starts
    at 0 in every episode. With the defaults, the rewards do not change.

    Args:
        env: The environment, with any interface.
        envy: Aversion to having less than others, at least 0 (alpha of Fehr and Schmidt; 5 in Hughes et al.).
        guilt: Aversion to having more than others, at least 0 (beta of Fehr and Schmidt; 0.05 in Hughes et al.).
        smoothing: At least 0 and below 1. 0 compares the rewards of one step; larger values compare traces of past
            rewards (gamma times lambda in Hughes et al., who use it because rewards arrive at different times).
        angle: Social value orientation theta in degrees: 0 is selfish, 45 prosocial, 90 altruistic, -45 competitive.

    References:
        Fehr and Schmidt, "A theory of fairness, competition, and cooperation", 1999.
        Hughes et al., "Inequity aversion improves cooperation in intertemporal social dilemmas", NeurIPS 2018.
        McKee et al., "Social diversity and social preferences in mixed-motive reinforcement learning", AAMAS 2020.
    """

    def __init__(
        self, env: Any, *, envy: float = 0.0, guilt: float = 0.0, smoothing: float = 0.0, angle: float = 0.0
    ) -> None:
        super().__init__(env, SocialUtility(envy=envy, guilt=guilt, smoothing=smoothing, angle=angle))


def mean_of_others(values: Floats) -> Floats:
    """Return, for each of n agents, the mean value of the other agents; shape (B, n)."""
    others: Floats = (values.sum(axis=1, keepdims=True) - values) / (values.shape[1] - 1)
    return others


def inequity(values: Floats) -> tuple[Floats, Floats]:
    """Return how much more, and how much less, the other agents have than each of n agents.

    Both are means over the n - 1 other agents, shape (B, n). They are computed from the sorted values in O(n log n).
    """
    n = values.shape[1]
    order = np.argsort(values, axis=1, kind="stable")
    ascending = np.take_along_axis(values, order, axis=1)
    rank = np.arange(n)
    below = np.cumsum(ascending, axis=1) - ascending  # sum of the values that are sorted before the agent's value
    above = below[:, -1:] + ascending[:, -1:] - below - ascending
    more, less = rank * ascending - below, above - (n - 1 - rank) * ascending
    pair = []
    for sums in (less, more):
        unsorted = np.empty_like(values)
        np.put_along_axis(unsorted, order, np.maximum(sums, 0) / (n - 1), axis=1)
        pair.append(unsorted)
    return pair[0], pair[1]
