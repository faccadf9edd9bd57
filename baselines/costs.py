"""What unfairness costs, step by step, in a rollout."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Notion = Literal["dp", "csp", "cf"]
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Disparity:
    """What was measured in a rollout of T steps in B worlds of N agents; under ``cf`` a world is a pair of lanes."""

    group: NDArray[np.int64]  # (T, B, N), 0 or 1
    stratum: NDArray[np.int64]  # (T, B, N), 0 .. strata - 1
    size: Floats  # (T, B, N), of the agent's group within its stratum
    reward_gap: Floats  # (T, B, strata), mean reward of group 0 minus group 1 in the step
    before: Floats  # (T, B, strata), D_{t-1}
    after: Floats  # (T, B, strata), D_t
    value_gap: Floats  # (T, B, strata), of the critics' values
    totals: Floats  # (strata, 2), each group's rewards in the rollout
    mean_values: Floats  # (strata, 2), each group's mean value

    @property
    def strata(self) -> int:
        """How many strata there are."""
        return self.after.shape[-1]

    @property
    def episode(self) -> float:
        """The mean over worlds of the absolute disparity that the rollout's last step leaves, summed over strata."""
        return float(np.abs(self.after[-1]).sum(-1).mean())


def group_sums(values: Floats, group: NDArray[np.int64], stratum: NDArray[np.int64], strata: int) -> tuple[Floats, Floats]:
    """Return the sum of the values and the size of each stratum and group in each row.

    Args:
        values: Shape (R, N).
        group: 0 or 1, shape (R, N).
        stratum: 0 .. strata - 1, shape (R, N).
        strata: How many strata (K).

    Returns:
        Sums and sizes, shapes (R, K, 2).
    """
    rows = np.arange(len(values))[:, None]
    place = (rows * strata + stratum) * 2 + group
    cells = len(values) * strata * 2
    sizes = np.bincount(place.ravel(), minlength=cells).astype(float)
    sums = np.bincount(place.ravel(), weights=values.ravel(), minlength=cells)
    shape = len(values), strata, 2
    return sums.reshape(shape), sizes.reshape(shape)


def gaps(sums: Floats, sizes: Floats) -> Floats:
    """Return group 0's mean minus group 1's, shape (R, K); 0 where either group is empty: nobody to compare."""
    means = sums / np.maximum(sizes, 1)
    return np.where((sizes > 0).all(-1), means[..., 0] - means[..., 1], 0.0)


def accumulate(increments: Floats, first: NDArray[np.bool_], start: Floats) -> tuple[Floats, Floats]:
    """Return the running sums before and after each step, which begin anew with each episode.

    Args:
        increments: Shape (T, B, K).
        first: Whether the step is its episode's first, shape (T, B).
        start: The sums before the rollout, shape (B, K).

    Returns:
        Two arrays of shape (T, B, K).
    """
    before, after = np.empty_like(increments), np.empty_like(increments)
    running = start
    for t, increment in enumerate(increments):
        before[t] = np.where(first[t, :, None], 0.0, running)
        running = after[t] = before[t] + increment
    return before, after


def measure(
    reward: Floats,
    value: Floats,
    group: NDArray[np.int64],
    stratum: NDArray[np.int64],
    *,
    first: NDArray[np.bool_],
    start: Floats,
) -> Disparity:
    """Return the disparity of a rollout.

    Args:
        reward: Shape (T, B, N).
        value: The critics' values, shape (T, B, N).
        group: 0 or 1, shape (T, B, N).
        stratum: 0 .. K - 1, shape (T, B, N).
        first: Whether the step is its episode's first, shape (T, B).
        start: The sums D before the rollout, shape (B, K).
    """
    steps, worlds, agents = reward.shape
    strata = start.shape[-1]
    flat = (steps * worlds, agents)
    groups, strata_of = group.reshape(flat), stratum.reshape(flat)
    reward_sums, sizes = group_sums(reward.reshape(flat), groups, strata_of, strata)
    value_sums, _ = group_sums(value.reshape(flat), groups, strata_of, strata)
    reward_gap = gaps(reward_sums, sizes).reshape(steps, worlds, strata)
    before, after = accumulate(reward_gap, first, start)
    size = sizes[np.arange(flat[0])[:, None], strata_of, groups]
    return Disparity(
        group=group,
        stratum=stratum,
        size=size.reshape(reward.shape),
        reward_gap=reward_gap,
        before=before,
        after=after,
        value_gap=gaps(value_sums, sizes).reshape(steps, worlds, strata),
        totals=reward_sums.sum(0),
        mean_values=value_sums.sum(0) / np.maximum(sizes.sum(0), 1),
    )


def common_costs(disparity: Disparity, *, gamma: float) -> tuple[Floats, Floats]:
    """Return the retrospective and the prospective cost that all agents of a world share, shapes (T, B)."""
    retrospective = np.abs(disparity.after) - np.abs(disparity.before)
    prospective = (1 - gamma) * np.abs(disparity.value_gap)
    return retrospective.sum(-1), prospective.sum(-1)


def own_share(gap: Floats, own: Floats, disparity: Disparity) -> Floats:
    """Return by how much an agent's own number changed the absolute gap, times its group's size; shape (T, B, N).

    Args:
        gap: Shape (T, B, K), with the agent's number in it.
        own: The agents' numbers, shape (T, B, N).
        disparity: Who is in which group.
    """
    here = np.take_along_axis(gap, disparity.stratum, axis=-1)
    sign = np.where(disparity.group == 0, 1.0, -1.0)
    return disparity.size * (np.abs(here) - np.abs(here - sign * own / disparity.size))


def cost_advantages(
    cost: Floats,
    value: Floats,
    last_value: Floats,
    first: NDArray[np.bool_],
    ended: NDArray[np.bool_],
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Return generalised advantage estimates of a cost, shape (T, R); what comes after an episode's end is no matter.

    Args:
        cost: Shape (T, R).
        value: The cost critic's, shape (T, R).
        last_value: After the last step, shape (R,).
        first: Whether the step is its episode's first, shape (T, R).
        ended: Whether the last step ended its episode, shape (R,).
        gamma: Discount.
        gae_lambda: Weight of longer returns.
    """
    advantages = np.empty_like(cost)
    following, next_value, going = np.zeros_like(last_value), last_value, ~ended
    for t in reversed(range(len(cost))):
        delta = cost[t] + gamma * next_value * going - value[t]
        following = advantages[t] = delta + gamma * gae_lambda * going * following
        next_value, going = value[t], ~first[t]
    return advantages
