"""Vector rewards, and rewards with social preferences."""

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from fair_envs.metrics.disparity import cell_sums
from fair_envs.metrics.group import Groups
from fair_envs.metrics.rates import Rate, RateMeasure, rate_named
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegative, Positive, checked
from fair_envs.wrappers.following import follow
from fair_envs.wrappers.transform import Batch, Setting, Transform, need_agents
from fair_envs.wrappers.wrapper import Wrapper

Per = Literal["agent", "group"]
Aggregate = Literal["mean", "sum", "rate"]
"""How the members of a group are combined, see `VectorReward`."""


class Objectives(Transform):
    """The transform of `VectorReward`, which describes the arguments."""

    changes_reward = True

    def __init__(
        self,
        *,
        per: Per | None = None,
        aggregate: Aggregate = "mean",
        rate: str | Rate | None = None,
        groups: Groups = None,
    ) -> None:
        if per is None:
            per = "agent" if rate is None else "group"
        if per not in get_args(Per):
            raise ValueError(f"per must be 'agent' or 'group', got {per!r}")
        checked("aggregate", aggregate, Aggregate)
        if aggregate == "rate" and rate is None:
            raise ValueError("aggregate must be 'mean' or 'sum' without a rate, got 'rate'")
        if rate is not None and per != "group":
            raise ValueError(f"per must be 'group' with a rate, which is one of groups, got {per!r}")
        if rate is not None and not isinstance(rate, (str, Rate)):
            raise ValueError(f"rate must be the name of a notion or a Rate, got {rate!r}")
        if rate is None and groups is not None:
            raise ValueError(f"groups needs a rate, got groups={groups!r}")
        self.per, self.aggregate, self.rate, self.groups = per, aggregate, rate, groups

    def bind(self, setting: Setting) -> None:
        """Set the names of the objectives."""
        self._spec, self._benefits = setting.spec, None
        if self.rate is not None:
            self._benefits = self._measure(self.rate, setting)
            self.objectives = self._benefits.group_names
            self._rates = np.zeros((setting.lanes.count, len(self.objectives)))
            return
        instead = (
            "Give the benefits of groups: VectorReward(env, per='group', rate='outcome_parity'), or use "
            "FairnessObjectives, which makes a vector from notions on decisions"
        )
        need_agents(setting, "VectorReward", instead=instead)
        agents = tuple(f"agent_{i}" for i in range(setting.lanes.agents))
        self.objectives = agents if self.per == "agent" else setting.spec.groups

    def _measure(self, rate: str | Rate, setting: Setting) -> RateMeasure:
        """Return the measure that counts benefits and demands."""
        of_agents = setting.rules.multi_agent
        found = rate_named(rate, of_agents=of_agents) if isinstance(rate, str) else rate
        found.check(setting.spec, of_agents=of_agents)
        return RateMeasure(setting.lanes.count, found, spec=setting.spec, groups=self.groups)

    def __call__(self, batch: Batch) -> Batch:
        """Add the vector."""
        values: Floats = batch.reward
        if self.aggregate == "rate" and self._benefits is not None:
            values = self._increase(batch, self._benefits)
        elif self.per == "group":
            values, sizes = self._of_groups(batch)
            if self.aggregate == "mean":
                values = np.divide(values, sizes, out=np.zeros_like(values), where=sizes > 0)
        return batch._replace(vector=values.astype(np.float32))

    def _increase(self, batch: Batch, benefits: RateMeasure) -> Floats:
        """Return the increase of the groups' rates in the episode, shape (B, groups)."""
        before = np.where(batch.first[:, np.newaxis], 0.0, self._rates)
        follow([benefits], batch, self._spec)
        rates = benefits.rates
        self._rates = np.where(np.isnan(rates), before, rates)
        return self._rates - before

    def _of_groups(self, batch: Batch) -> tuple[Floats, Any]:
        """Return the groups' rewards and sizes in a step, or their benefits and demands, each of shape (B, groups)."""
        if self._benefits is None:
            group = np.maximum(batch.facts["group"], 0)
            return cell_sums(batch.reward, group, cells=len(self.objectives))
        follow([self._benefits], batch, self._spec)
        latest = np.where(batch.decided[:, np.newaxis, np.newaxis], self._benefits.latest, 0.0)
        return latest[..., 0], latest[..., 1]


class VectorReward(Wrapper):
    """Turns the reward into a vector with one entry for each agent or each group.

    With a ``rate``, the entries are the groups' benefits in the step instead of their rewards, which also exist if a
    decision-maker decides about other people: for equal opportunity, who of the qualified was selected.

    Gymnasium interfaces return it as the reward, shape (objectives,) or (B, objectives), float32. They have the
    attribute ``reward_space``, also on the unwrapped environment. In PettingZoo, every agent gets the same vector.
    Stable-Baselines3 only supports scalar rewards: there, the reward does not change, and ``vec_env.vector_reward``,
    shape (B, objectives), contains the vectors. ``info["agent_reward"]`` does not change. Put wrappers that change
    rewards below this one.

    Args:
        env: The environment, with any interface.
        per: ``"agent"`` or ``"group"``; the groups are those of ``fair_spec.groups``. None: ``"group"`` with a rate,
            otherwise ``"agent"``.
        aggregate: A group's entry is the ``"mean"`` or the ``"sum"`` of its members' rewards; 0 without a member. With
            a rate: the benefit divided by the demand of the step, or the benefit; or, with ``"rate"``, the increase of
            the group's rate in the episode. The return is then the rate of the whole episode, which does not depend on
            the size of the group; it is 0 without any demand.
        rate: Name of a notion that compares one rate, such as ``"equal_opportunity"``, or a
            `fair_envs.metrics.rates.Rate`; None: the rewards of agents.
        groups: With a rate, the groups: see `fair_envs.metrics.group.group_members`; None: those of
            ``fair_spec.groups``.

    Raises:
        ValueError: An option is invalid, or the environment does not report what the rate needs.
    """

    def __init__(
        self,
        env: Any,
        *,
        per: Per | None = None,
        aggregate: Aggregate = "mean",
        rate: str | Rate | None = None,
        groups: Groups = None,
    ) -> None:
        super().__init__(env, Objectives(per=per, aggregate=aggregate, rate=rate, groups=groups))


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


class FairEfficiency(Transform):
    """The transform of `FenReward`, which describes the arguments."""

    changes_reward = True
    once = "a second FenReward would treat the first one's rewards as those of the environment"
    wrapper = "FenReward"

    def __init__(self, *, largest: float, least: float = 0.0, epsilon: float = 0.1, clip: bool = False) -> None:
        self.largest, self.least = checked("largest", largest, float), checked("least", least, float)
        if not self.largest > self.least:
            raise ValueError(f"largest must be above least, {self.least:g}, got {largest!r}")
        self.epsilon, self.clip = checked("epsilon", epsilon, Positive), checked("clip", clip, bool)

    def bind(self, setting: Setting) -> None:
        """Set the agents' utilities to 0."""
        need_agents(setting, "FenReward", at_least=2)
        self._total = np.zeros(setting.shape)
        self._steps = np.zeros((setting.lanes.count, 1))

    def snapshot(self) -> dict[str, Any]:
        """Return the utilities so far, as arrays."""
        return {"total": self._total.copy(), "steps": self._steps.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore a snapshot of the same environment."""
        self._total, self._steps = np.array(snapshot["total"]), np.array(snapshot["steps"])

    def __call__(self, batch: Batch) -> Batch:
        """Replace rewards by the fair-efficient reward.

        Raises:
            ValueError: A reward is below the lowest one. Nothing has changed then.
        """
        gained = batch.reward - self.least
        if self.clip:
            gained = np.maximum(gained, 0.0)
        below = batch.decided & (gained < 0).any(axis=1)
        if below.any():
            lowest = float(batch.reward[below].min())
            raise ValueError(
                f"least must be at most the lowest reward of a step, got least={self.least:g} and {lowest:g}; lower "
                "least, or use clip=True"
            )
        for total in (self._total, self._steps):
            total[batch.first] = 0
        self._total[batch.decided] += gained[batch.decided]
        self._steps[batch.decided] += 1
        utility = self._total / np.maximum(self._steps, 1)
        reward = fair_efficiency(utility, largest=self.largest - self.least, epsilon=self.epsilon)
        reward[~batch.decided] = 0
        return batch._replace(reward=reward)


class FenReward(Wrapper):
    r"""Replaces each agent's reward by the fair-efficient reward, which is high if all agents earn much, and equally.

    $$r'_i = \frac{\bar u / c}{\epsilon + |u_i / \bar u - 1|}$$

    with $u_i$ the agent's mean reward per step so far in the episode, $\bar u$ its mean over the agents, and c the
    largest reward of a step; as in the published code, $\bar u / c$ is at most 1. The result is 0 if no agent has
    earned anything, and at most $1 / \epsilon$, if all have earned the largest reward in every step. An agent can raise
    it by coming closer to the mean, from below or from above, or by raising the mean.

    This is the reward of FEN's controllers. Its hierarchy of a controller and several sub-policies, and the
    consensus by which agents estimate the mean, are left out: each step has this reward, and the mean is exact.

    Utilities must not be negative. If rewards can be, subtract the lowest one with ``least``.

    Args:
        env: The environment, with any interface.
        largest: The largest reward of an agent in a step; it scales the fair-efficient reward.
        least: The lowest reward of an agent in a step, which is subtracted from rewards and from ``largest``.
        epsilon: Above 0; smaller values weigh equality more (0.1 in the published code).
        clip: Whether a reward below ``least`` counts as ``least``; otherwise it is an error.

    Raises:
        ValueError: An option is invalid, or there are fewer than two agents; in ``step``: a reward is below ``least``.

    References:
        Jiang and Lu, "Learning fairness in multi-agent systems", NeurIPS 2019.
    """

    def __init__(
        self, env: Any, *, largest: float, least: float = 0.0, epsilon: float = 0.1, clip: bool = False
    ) -> None:
        super().__init__(env, FairEfficiency(largest=largest, least=least, epsilon=epsilon, clip=clip))


def fair_efficiency(utility: Floats, *, largest: float, epsilon: float = 0.1) -> Floats:
    """Return the fair-efficient reward of each agent, see `FenReward`.

    Args:
        utility: The agents' mean rewards, at least 0, shape (B, n).
        largest: The largest reward of a step, above 0.
        epsilon: Above 0.
    """
    mean = utility.mean(axis=1, keepdims=True)
    away = np.abs(np.divide(utility, mean, out=np.ones_like(utility), where=mean > 0) - 1.0)
    found: Floats = np.minimum(mean / largest, 1.0) / (epsilon + away)
    return found


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
