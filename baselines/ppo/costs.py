"""Costs of unfairness in each step of a rollout."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.core.compilation import kernel
from fair_envs.metrics.disparity import DisparityTracker, cell_sums
from fair_envs.metrics.notions import OneOf
from fair_envs.support.aliases import Flags, Floats, Ints

PenaltyNotion = Annotated[str, OneOf("demographic_parity", "conditional_parity", "counterfactual_fairness")]

Credit = Literal["common", "own"]
"""Whether an agent learns from its effect on everyone's measured quantities, or only from its own part of them."""


@dataclass(frozen=True, kw_only=True)
class Disparity:
    """The disparity of a rollout of T steps in B worlds of N agents.

    A world is a lane. With the penalty "counterfactual_fairness", it is a pair of lanes, whose agents are compared.

    Attributes:
        group: Group of each agent, 0 or 1, shape (T, B, N).
        stratum: Stratum of each agent, 0 .. K - 1, shape (T, B, N).
        size: Size of the agent's group within its stratum, shape (T, B, N).
        size_of_other_group: Size of the other group in that stratum, shape (T, B, N); 0: no comparison is possible.
        increase: Increase in the absolute disparity in each step, |D_t| - |D_{t-1}|, shape (T, B, K).
        return_gap: D_t, the difference of the groups' returns after the step, group 0 minus group 1, shape (T, B, K).
        reward_gap: Difference of the groups' mean rewards in the step, shape (T, B, K).
        value_gap: Difference of the critics' mean values for the groups, shape (T, B, K).
        totals: Total reward of each group in the rollout, shape (K, 2).
        mean_values: Mean value of each group, shape (K, 2).
        ended: Whether the step ended its episode, shape (T, B).
        returns: The groups' mean returns in the episodes that continue after the rollout, shape (B, K, 2).
    """

    group: Ints
    stratum: Ints
    size: Ints
    size_of_other_group: Ints
    increase: Floats
    return_gap: Floats
    reward_gap: Floats
    value_gap: Floats
    totals: Floats
    mean_values: Floats
    ended: Flags
    returns: Floats

    @property
    def strata(self) -> int:
        """Number of strata (K)."""
        return int(self.return_gap.shape[-1])

    @property
    def final(self) -> float:
        """Mean of |D| at the end of the completed episodes, summed over strata; NaN if no episode ended."""
        return float(np.abs(self.return_gap[self.ended]).sum(-1).mean()) if self.ended.any() else np.nan

    @property
    def current(self) -> float:
        """Mean of |D| after the rollout's last step, summed over strata."""
        return float(np.abs(self.return_gap[-1]).sum(-1).mean())


def signed_gap(tracker: DisparityTracker) -> Floats:
    """Return group 0's mean return minus group 1's, shape (B, K); 0 if either group is empty."""
    return np.sign(tracker.returns[..., 0] - tracker.returns[..., 1]) * tracker.gap()


def step_gap(values: Floats, group: Ints, stratum: Ints, *, strata: int) -> tuple[Floats, Ints, Ints]:
    """Return the difference of the groups' mean values, and the sizes of each agent's own group and the other group.

    Args:
        values: Values of the agents, shape (R, N).
        group: Group of each agent, 0 or 1, shape (R, N).
        stratum: Stratum of each agent, 0 .. strata - 1, shape (R, N).
        strata: Number of strata (K).

    Returns:
        Arrays of shape (R, K), (R, N) and (R, N).
    """
    tracker = DisparityTracker(len(values), strata=strata)
    tracker.update(values, group, stratum=stratum)
    size, size_of_other_group = (tracker.size_of_own_group(g, stratum=stratum) for g in (group, 1 - group))
    return signed_gap(tracker), size, size_of_other_group


def accumulate(
    reward: Floats, group: Ints, stratum: Ints, *, first: Flags, start: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the increase of |D| in each step, D after each step, and the groups' returns after the last step.

    Args:
        reward: Rewards of the agents, shape (T, B, N).
        group: Group of each agent, 0 or 1, shape (T, B, N).
        stratum: Stratum of each agent, 0 .. K - 1, shape (T, B, N).
        first: Whether the step is the first of its episode, shape (T, B).
        start: The groups' mean returns before the rollout, shape (B, K, 2).

    Returns:
        Arrays of shape (T, B, K), (T, B, K) and (B, K, 2).
    """
    steps, (worlds, strata, _) = len(reward), start.shape
    tracker = DisparityTracker(worlds, strata=strata)
    tracker.update(np.zeros_like(reward[0]), group[0], stratum=stratum[0])  # zero rewards: registers the groups
    tracker.returns += start
    increase, return_gap = np.empty((steps, worlds, strata)), np.empty((steps, worlds, strata))
    for t in range(steps):
        increase[t] = tracker.update(reward[t], group[t], stratum=stratum[t], first=first[t])
        return_gap[t] = signed_gap(tracker)
    return increase, return_gap, tracker.returns


def rollout_disparity(
    reward: Floats,
    value: Floats,
    group: Ints,
    stratum: Ints,
    *,
    first: Flags,
    ended: Flags,
    start: Floats,
) -> Disparity:
    """Return the disparity of a rollout.

    Args:
        reward: Rewards of the agents, shape (T, B, N).
        value: The critics' values, shape (T, B, N).
        group: Group of each agent, 0 or 1, shape (T, B, N).
        stratum: Stratum of each agent, 0 .. K - 1, shape (T, B, N).
        first: Whether the step is the first of its episode, shape (T, B).
        ended: Whether the rollout's last step ended its episode, shape (B,).
        start: The groups' mean returns before the rollout, shape (B, K, 2).
    """
    agents, strata = reward.shape[-1], start.shape[1]
    groups, strata_of = group.reshape(-1, agents), stratum.reshape(-1, agents)
    rewards, values = reward.reshape(-1, agents), value.reshape(-1, agents)
    reward_gap, size, size_of_other_group = step_gap(rewards, groups, strata_of, strata=strata)
    value_gap, _, _ = step_gap(values, groups, strata_of, strata=strata)
    cell = strata_of * 2 + groups
    totals, _ = cell_sums(rewards, cell, cells=2 * strata)
    value_sums, sizes = cell_sums(values, cell, cells=2 * strata)
    increase, return_gap, returns = accumulate(reward, group, stratum, first=first, start=start)
    return Disparity(
        group=group,
        stratum=stratum,
        size=size.reshape(reward.shape),
        size_of_other_group=size_of_other_group.reshape(reward.shape),
        increase=increase,
        return_gap=return_gap,
        reward_gap=reward_gap.reshape(return_gap.shape),
        value_gap=value_gap.reshape(return_gap.shape),
        totals=totals.sum(0).reshape(strata, 2),
        mean_values=(value_sums.sum(0) / np.maximum(sizes.sum(0), 1)).reshape(strata, 2),
        ended=np.concatenate([first[1:], ended[np.newaxis]]),
        returns=returns,
    )


def common_costs(disparity: Disparity, *, gamma: float) -> tuple[Floats, Floats]:
    """Return the retrospective and the prospective cost shared by all agents of a world, shapes (T, B)."""
    return disparity.increase.sum(-1), (1 - gamma) * np.abs(disparity.value_gap).sum(-1)


def individual_cost(gap: Floats, values: Floats, disparity: Disparity) -> Floats:
    """Return how much each agent's own value changed the absolute gap, times its group's size; shape (T, B, N).

    The result is 0 where the other group is empty.

    Args:
        gap: Gap between the groups, which includes the agent's value, shape (T, B, K).
        values: The agents' values, such as rewards, shape (T, B, N).
        disparity: The agents' groups and strata.
    """
    agent_gap = np.take_along_axis(gap, disparity.stratum, axis=-1)
    sign = np.where(disparity.group == 0, 1.0, -1.0)
    cost = disparity.size * (np.abs(agent_gap) - np.abs(agent_gap - sign * values / disparity.size))
    return np.where(disparity.size_of_other_group > 0, cost, 0.0)


def cost_advantages(
    cost: Floats,
    value: Floats,
    last_value: Floats,
    first: Flags,
    ended: Flags,
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Return generalised advantage estimates of costs, shape (T, R, costs); episode ends are not bootstrapped.

    Args:
        cost: Costs of each step, shape (T, R, costs).
        value: The cost critics' values, shape (T, R, costs).
        last_value: The cost critics' values after the last step, shape (R, costs).
        first: Whether the step is the first of its episode, shape (T, R).
        ended: Whether the last step ended its episode, shape (R,).
        gamma: Discount factor.
        gae_lambda: Weight of longer returns (GAE's lambda).
    """
    advantages = np.empty(cost.shape)
    active = np.concatenate([~first[1:], ~ended[np.newaxis]])  # whether the episode continues after the step
    add_up(cost, np.asarray(value), np.asarray(last_value), active, gamma, gae_lambda, advantages)
    return advantages


@kernel
def add_up(
    cost: NDArray[Any],
    value: NDArray[Any],
    last_value: NDArray[Any],
    active: Flags,
    gamma: float,
    gae_lambda: float,
    advantages: Floats,
) -> None:
    """Write generalised advantage estimates, see `cost_advantages`."""
    steps, rows, costs = cost.shape
    for row in range(rows):
        for k in range(costs):
            following, next_value = 0.0, last_value[row, k]
            for t in range(steps - 1, -1, -1):
                goes_on = 1.0 if active[t, row] else 0.0
                delta = cost[t, row, k] + gamma * next_value * goes_on - value[t, row, k]
                following = delta + gamma * gae_lambda * goes_on * following
                advantages[t, row, k] = following
                next_value = value[t, row, k]
