"""What a step costs: how it moves the difference between the groups' returns."""

from typing import Any

import numpy as np
import pytest

from fair_envs.baselines.ppo.costs import Disparity, common_costs, cost_advantages, individual_cost, rollout_disparity
from fair_envs.support.aliases import Floats

GROUP = [0, 0, 1]  # uneven: two agents without the attribute, one with it


def disparity_of(
    reward: Any,
    *,
    group: Any = GROUP,
    stratum: Any = 0,
    value: Any = None,
    first: Any = None,
    ended: bool = True,
    start: Any = None,
    strata: int = 1,
) -> Disparity:
    """Return the disparity of a rollout in one world; rewards have shape (T, N)."""
    rewards = np.array(reward, float)[:, np.newaxis]
    steps = len(rewards)
    shape = rewards.shape
    begins = np.arange(steps) == 0 if first is None else np.array(first, bool)
    return rollout_disparity(
        rewards,
        np.zeros(shape) if value is None else np.broadcast_to(np.array(value, float), shape),
        np.broadcast_to(np.array(group), shape),
        np.broadcast_to(np.array(stratum), shape),
        first=begins[:, np.newaxis],
        ended=np.array([ended]),
        start=np.zeros((1, strata, 2)) if start is None else np.array(start, float),
    )


def test_the_shaped_cost_of_the_worked_example() -> None:
    found = disparity_of([[2, 1], [0, 2], [1, 1]], group=[0, 1])
    assert found.return_gap.ravel().tolist() == [1, -1, -1]
    assert found.increase.ravel().tolist() == [1, 0, 0]
    assert found.increase.sum() == abs(found.return_gap[-1, 0, 0]) == found.final == 1


def test_an_episodes_costs_add_up_to_the_disparity_that_it_ends_with() -> None:
    reward = np.random.default_rng(0).normal(size=(20, 3))
    found = disparity_of(reward)
    gap = reward[:, :2].mean(1).sum() - reward[:, 2].sum()
    assert found.increase.sum() == pytest.approx(abs(gap))
    assert found.return_gap[-1].item() == pytest.approx(gap)
    assert found.final == found.current == pytest.approx(abs(gap))


def test_the_difference_runs_on_into_the_next_rollout() -> None:
    reward = np.random.default_rng(1).normal(size=(6, 3))
    whole = disparity_of(reward)
    one = disparity_of(reward[:4], ended=False)
    two = disparity_of(reward[4:], first=[0, 0], start=one.returns)
    np.testing.assert_allclose(np.concatenate([one.increase, two.increase]), whole.increase)
    np.testing.assert_allclose(two.return_gap, whole.return_gap[4:])
    assert np.isnan(one.final)
    assert two.final == pytest.approx(whole.final)


def test_the_difference_begins_anew_with_each_episode() -> None:
    found = disparity_of([[2, 2, 0], [2, 2, 0], [0, 0, 3], [0, 0, 1]], first=[1, 0, 1, 0])
    assert found.return_gap.ravel().tolist() == [2, 4, -3, -4]
    assert found.increase.ravel().tolist() == [2, 2, 3, 1]
    assert found.ended.ravel().tolist() == [False, True, False, True]
    assert found.final == 4


def test_strata_are_compared_one_by_one() -> None:
    reward = [[3, 1, 0, 5]]  # agents 0 and 1 are of stratum 0, agents 2 and 3 of stratum 1
    found = disparity_of(reward, group=[0, 1, 0, 1], stratum=[0, 0, 1, 1], strata=2)
    assert found.return_gap.ravel().tolist() == [2, -5]
    assert common_costs(found, gamma=0.9)[0].item() == 7
    together = disparity_of(reward, group=[0, 1, 0, 1], stratum=[0, 0, 0, 0])
    assert together.return_gap.item() == -1.5
    assert found.size.ravel().tolist() == [1, 1, 1, 1] and together.size.ravel().tolist() == [2, 2, 2, 2]


def test_with_nobody_to_compare_with_nothing_costs() -> None:
    found = disparity_of([[3, 1, 2]], group=[0, 0, 0], value=[1, 2, 3])
    assert (found.increase.item(), found.value_gap.item()) == (0, 0)
    assert individual_cost(found.return_gap, np.array([[[3.0, 1.0, 2.0]]]), found).tolist() == [[[0, 0, 0]]]


def test_the_prospective_cost_is_the_gap_of_values_per_step() -> None:
    found = disparity_of([[0, 0, 0]], value=[1, 3, 5])
    assert found.value_gap.item() == -3
    assert common_costs(found, gamma=0.9)[1].item() == pytest.approx(0.3)
    assert found.mean_values.tolist() == [[2, 5]]


def test_group_totals_are_sums_over_steps_and_agents() -> None:
    assert disparity_of([[1, 2, 3], [4, 5, 6]]).totals.tolist() == [[12, 9]]


def test_an_agent_of_the_group_ahead_pays_its_own_reward_and_one_behind_is_paid_it() -> None:
    reward = np.array([[9.0, 9.0, 0.0], [2.0, 4.0, 1.0]])
    found = disparity_of(reward)  # D is 9, then 11
    share = individual_cost(found.return_gap, reward[:, np.newaxis], found)
    np.testing.assert_allclose(share[1, 0], [2, 4, -1])


def test_an_agent_that_closes_the_gap_and_more_pays_for_the_rest() -> None:
    reward = np.array([[0.0, 0.0, 3.0], [0.0, 8.0, 0.0]])  # D is -3, then 1
    found = disparity_of(reward)
    share = individual_cost(found.return_gap, reward[:, np.newaxis], found)
    np.testing.assert_allclose(share[1, 0], [0, 2 * (1 - 3), 0])  # its group of two: |1| - |1 - 8 / 2|


def advantages_by_hand(cost: Floats, value: Floats, last: float, first: list[bool], ended: bool) -> list[float]:
    """Return the sums over the episode's rest of (gamma lambda)^k delta_{t+k}."""
    gamma, rate, steps = 0.9, 0.9 * 0.8, len(cost)
    ends = [*first[1:], ended]
    after = [*value[1:], last]
    deltas = [cost[t] + (0 if ends[t] else gamma * after[t]) - value[t] for t in range(steps)]
    found = []
    for t in range(steps):
        total, factor = 0.0, 1.0
        for k in range(t, steps):
            total += factor * deltas[k]
            if ends[k]:
                break
            factor *= rate
        found.append(total)
    return found


@pytest.mark.parametrize("ended", [True, False])
def test_cost_advantages_stop_at_the_ends_of_episodes(ended: bool) -> None:
    draw = np.random.default_rng(2)
    cost, value, last = draw.normal(size=5), draw.normal(size=5), 0.7
    first = [False, False, True, False, False]
    found = cost_advantages(
        cost[:, None, None],
        value[:, None, None],
        np.array([[last]]),
        np.array(first)[:, None],
        np.array([ended]),
        gamma=0.9,
        gae_lambda=0.8,
    )
    np.testing.assert_allclose(found.ravel(), advantages_by_hand(cost, value, last, first, ended))
