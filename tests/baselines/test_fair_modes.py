"""Each mode of fair-PPO does to the policy what it says, and nothing else."""

from typing import Any

import numpy as np
import pytest
import torch as th

from fair_envs.baselines.ppo.costs import cost_advantages
from fair_envs.baselines.ppo.fair_modes import RunningRange
from fair_envs.baselines.ppo.fair_ppo import FairPPO
from tests.baselines.small import (
    ACTORS,
    CRITICS,
    SCALE,
    collect,
    fair_learner,
    gradients,
    learned,
    policy_weights,
    whole_batch,
)


def ready(**settings: Any) -> tuple[FairPPO, Any]:
    """Return a learner after a rollout, and the rollout as a minibatch."""
    model = fair_learner(**settings)
    th.manual_seed(0)
    collect(model)
    return model, whole_batch(model)


def of_samples(model: FairPPO, values: Any, batch: Any) -> th.Tensor:
    """Return what has shape (T, B, N) for those samples of a minibatch that had a turn."""
    flat = model.rollout_buffer.flat(model.to_rows(np.asarray(values, np.float32)))
    return flat[batch.flat_index][batch.had_turn]


# ------------------------------------------------------------------------------------------------------- shaped


def followed(model: FairPPO, batch: Any) -> th.Tensor:
    return model._policy_advantages(batch)


def test_doubling_alpha_doubles_the_cost_part() -> None:
    none, single, double = (followed(*ready(alpha=alpha)) for alpha in (0.0, 1.0, 2.0))
    assert (single - none).abs().max() > 0.1
    th.testing.assert_close(double - none, 2 * (single - none))


def test_both_costs_and_lambda_weigh_as_they_should() -> None:
    none, retrospective, prospective = (followed(*ready(alpha=a, beta=b)) for a, b in ((0, 0), (1, 0), (0, 1)))
    both = followed(*ready(alpha=1.0, beta=2.0, weight=0.5))
    assert (prospective - none).abs().max() > 1e-3
    th.testing.assert_close(both - none, 0.5 * (retrospective - none) + (prospective - none))


def test_the_cost_is_expressed_in_the_unit_of_the_advantages_without_it() -> None:
    model, batch = ready(alpha=1.5)
    own = batch.advantages[batch.had_turn]
    cost = model._mode.advantage[batch.flat_index, 0][batch.had_turn]  # type: ignore[attr-defined]
    total = own - 1.5 * cost
    th.testing.assert_close(followed(model, batch), (total - total.mean()) / (own.std() + 1e-8))


def test_what_widens_the_gap_costs_each_agent_as_much_as_its_group_is_large() -> None:
    model = fair_learner()
    collect(model)
    model.memory.clear()
    disparity = model.measure_disparity()
    retrospective, prospective = np.moveaxis(model.agent_costs(disparity).sum(axis=2), -1, 0)  # of both parts
    for costs, gaps in (
        (retrospective, disparity.increase),
        (prospective, (1 - model.gamma) * abs(disparity.value_gap)),
    ):
        wanted = gaps.sum(-1)[..., np.newaxis] * 4  # 8 agents, half of them carry the attribute
        np.testing.assert_allclose(model.to_worlds(costs), np.broadcast_to(wanted, disparity.group.shape), atol=1e-12)


@pytest.mark.parametrize("credit", ["own", "common"])
def test_at_alpha_one_an_agent_of_the_group_ahead_gains_nothing_from_its_own_rewards(credit: str) -> None:
    model = fair_learner(credit=credit)
    collect(model)
    buffer = model.rollout_buffer
    buffer.reward[:] = np.where(buffer.group == 0, 3.0, 1.0)  # group 0 is ahead from the first step on
    model.memory.clear()
    costs = model.agent_costs(model.measure_disparity())[..., 0, 0]
    own = buffer.reward * model.reward_scale
    np.testing.assert_allclose(costs[1:], np.where(buffer.group == 0, own, -own)[1:], atol=1e-6)


def test_the_advantage_is_that_of_the_whole_cost() -> None:
    model = fair_learner(alpha=1.0, beta=1.0)
    for weight in model.cost_critics.parameters():
        weight.data.zero_()  # nothing is expected: the parts' advantages add up to that of their sum
    collect(model)
    model.memory.clear()
    disparity = model.measure_disparity()
    whole = model.agent_costs(disparity).sum(axis=2)
    model._mode.after_rollout(disparity)
    starts, over = model.rollout_buffer.episode_starts.astype(bool), np.asarray(model._last_episode_starts, bool)
    nothing, discounts = np.zeros_like(whole), {"gamma": model.gamma, "gae_lambda": model.gae_lambda}
    wanted = cost_advantages(whole, nothing, nothing[0], starts, over, **discounts)
    found: Any = model._mode
    th.testing.assert_close(found.advantage, model.rollout_buffer.flat(wanted.astype(np.float32)), rtol=1e-4, atol=1e-5)


def test_own_credit_has_no_part_for_what_others_do() -> None:
    own, common = (fair_learner(credit=credit) for credit in ("own", "common"))
    parts = []
    for model in (own, common):
        th.manual_seed(0)
        collect(model)
        model.memory.clear()
        parts.append(model.agent_costs(model.measure_disparity()))
    assert [part.shape[2] for part in parts] == [1, 2]
    np.testing.assert_array_equal(parts[0][:, :, 0], parts[1][:, :, 0])


def test_cost_critics_learn_what_costs() -> None:
    model = fair_learner(alpha=1.0, beta=1.0)
    collect(model)
    batch, mode = whole_batch(model), model._mode
    errors = []
    for _ in range(60):
        mode.after_minibatch(batch)
        predicted = model.cost_critics(batch.observations, which=range(4))
        errors.append((predicted - mode.targets[batch.flat_index]).square().mean().item())  # type: ignore[attr-defined]
    assert errors[-1] < 0.8 * errors[0]


# ----------------------------------------------------------------------------------------------------- weighted


@pytest.mark.parametrize(
    ("ahead", "alpha", "factors"), [(0, 0.25, (0.75, 1.25)), (1, 0.25, (1.25, 0.75)), (0, 2.0, (0.0, 3.0))]
)
def test_the_group_ahead_learns_less_and_the_group_behind_more(
    ahead: int, alpha: float, factors: tuple[float, float]
) -> None:
    model = fair_learner(mode="weighted", alpha=alpha)
    collect(model)
    model.rollout_buffer.reward[:] = model.rollout_buffer.group == ahead
    model.memory.clear()
    model._after_rollout()
    batch = whole_batch(model)
    own = batch.advantages[batch.had_turn]
    factor = th.tensor(factors)[batch.observations[batch.had_turn, -1].long()]
    th.testing.assert_close(followed(model, batch), factor * (own - own.mean()) / (own.std() + 1e-8))


def test_weights_follow_the_stratum_under_conditional_parity() -> None:
    model = fair_learner(mode="weighted", alpha=0.5, penalty="csp")
    collect(model)
    buffer = model.rollout_buffer
    buffer.reward[:] = buffer.group == buffer.stratum  # group 0 is ahead in stratum 0, group 1 in stratum 1
    model.memory.clear()
    model._after_rollout()
    assert set(np.unique(buffer.stratum)) == {0, 1}
    factor = model._mode.factor  # type: ignore[attr-defined]
    ahead = buffer.flat(buffer.group == buffer.stratum)
    assert th.equal(factor, th.where(ahead, 0.5, 1.5))


def test_beta_weighs_whose_critic_expects_more() -> None:
    model = fair_learner(mode="weighted", alpha=0.0, beta=0.25)
    collect(model)
    buffer = model.rollout_buffer
    buffer.reward[:] = buffer.group == 0  # group 0 is ahead, group 1 is expected to be
    buffer.values[:] = buffer.group == 1
    model.memory.clear()
    model._after_rollout()
    factor = model._mode.factor  # type: ignore[attr-defined]
    assert th.equal(factor, th.where(buffer.flat(buffer.group == 0), 1.25, 0.75))


def test_who_is_ahead_is_remembered_over_rollouts() -> None:
    model = fair_learner(mode="weighted", alpha=0.5)
    for gap in (1.0, -1.0):
        collect(model)
        model.rollout_buffer.reward[:] = gap * (model.rollout_buffer.group == 0)
        model.memory.pop("gaps", None) if gap > 0 else None
        model._after_rollout()
    assert model.memory["gaps"][0, 0] > 0
    assert model._mode.factor.min() == 0.5  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------- p3o


def test_below_the_tolerance_it_is_ppo() -> None:
    tolerant = learned(fair_learner(mode="p3o", tolerance=1e6, autograd=True))
    assert np.array_equal(policy_weights(tolerant), policy_weights(learned(fair_learner(alpha=0.0, autograd=True))))
    strict = learned(fair_learner(mode="p3o", autograd=True))
    assert not np.array_equal(policy_weights(tolerant), policy_weights(strict))


def test_the_surrogate_is_the_mean_cost_where_the_policy_is_still_the_old_one() -> None:
    model, batch = ready(mode="p3o", alpha=0.5, weight=2.0)
    penalty = model._penalty(batch, model._evaluate(batch))
    cost = model._mode.advantage[batch.flat_index, 0][batch.had_turn].mean()  # type: ignore[attr-defined]
    excess = (1 - model.gamma) * 4 * model.disparity  # four agents in each group
    wanted = th.relu(cost + excess) / (batch.advantages[batch.had_turn].std() + 1e-8)
    assert penalty is not None and penalty > 0
    th.testing.assert_close(penalty, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("ratio", "cost", "counted"), [(1.5, 1.0, 1.5), (0.5, 1.0, 0.8), (1.5, -1.0, -1.2)])
def test_the_surrogate_is_clipped_where_the_policy_has_done_enough(ratio: float, cost: float, counted: float) -> None:
    model, batch = ready(mode="p3o")
    mode: Any = model._mode
    mode.advantage = th.full_like(mode.advantage, cost)
    mode.excess = (10.0, 0.0)
    evaluation = model._evaluate(batch)
    log_ratio = th.full_like(evaluation.log_ratio, np.log(ratio))
    penalty = model._penalty(batch, evaluation._replace(log_ratio=log_ratio))
    assert penalty is not None
    scale = batch.advantages[batch.had_turn].std() + 1e-8
    assert (penalty * scale).item() == pytest.approx(10 + counted, rel=1e-4)


def test_tolerance_is_disparity_per_agent_and_episode() -> None:
    penalties = []
    for tolerance in (0.0, 0.5):
        model, batch = ready(mode="p3o", tolerance=tolerance)
        penalty = model._penalty(batch, model._evaluate(batch))
        assert penalty is not None and penalty > 0
        penalties.append(penalty.item() * batch.advantages[batch.had_turn].std().item())
    assert penalties[0] - penalties[1] == pytest.approx((1 - model.gamma) * 4 * 0.5 * SCALE, rel=1e-3)


def test_the_gap_between_the_values_is_tolerated_nowhere() -> None:
    model = fair_learner(mode="p3o", alpha=0.0, beta=1.0, tolerance=100.0)
    collect(model)
    buffer = model.rollout_buffer
    buffer.values[:] = np.where(buffer.group == 0, 3.0, 1.0)
    model._after_rollout()
    assert model._mode.excess[1] == pytest.approx((1 - model.gamma) * 4 * 2.0)  # type: ignore[attr-defined]


def test_the_penaltys_gradient_is_its_slope() -> None:
    model, batch = ready(mode="p3o", alpha=1.0, beta=1.0)

    def penalty() -> th.Tensor:
        found = model._penalty(batch, model._evaluate(batch))
        assert found is not None
        return found

    gradient = gradients(model, penalty(), of=ACTORS)
    assert np.abs(gradient).max() > 0
    assert np.abs(gradients(model, penalty(), of=CRITICS)).max() == 0
    weights = [w for name, w in model.policy.named_parameters() if any(word in name for word in ACTORS.split())]
    start = th.nn.utils.parameters_to_vector(weights).detach()
    direction = th.as_tensor(gradient / np.linalg.norm(gradient))
    ends = []
    for step in (1e-2, -1e-2):
        th.nn.utils.vector_to_parameters(start + step * direction, weights)
        ends.append(penalty().item())
    assert (ends[0] - ends[1]) / 2e-2 == pytest.approx(np.linalg.norm(gradient), rel=0.02)


# ------------------------------------------------------------------------------------------------ paper_literal


def test_the_printed_penalty_has_no_gradient_on_the_policy_and_pulls_the_critics_together() -> None:
    model, batch = ready(mode="paper_literal", alpha=1.0, beta=1.0)
    group = batch.observations[:, -1] == 0

    def gap() -> th.Tensor:
        values = model._evaluate(batch).values
        return (values[group].mean() - values[~group].mean()).abs()

    penalty = model._penalty(batch, model._evaluate(batch))
    assert penalty is not None
    th.testing.assert_close(penalty, model.disparity + gap())
    assert np.abs(gradients(model, penalty, of=ACTORS)).max() == 0
    critics = gradients(model, penalty, of=CRITICS)
    assert np.array_equal(critics, gradients(model, gap(), of=CRITICS)) and np.abs(critics).max() > 0
    before = gap()
    for weight in model.policy.parameters():
        weight.data -= 0.0 if weight.grad is None else 0.01 * weight.grad
    assert gap() < before


def test_the_printed_penalty_adds_up_the_gaps_within_the_strata() -> None:
    model, batch = ready(mode="paper_literal", penalty="csp", alpha=0.0, beta=1.0)
    stratum = model.rollout_buffer.flat(model.rollout_buffer.stratum)[batch.flat_index]
    group = batch.observations[:, -1]
    values = model._evaluate(batch).values
    gaps = [
        (values[(stratum == k) & (group == 0)].mean() - values[(stratum == k) & (group == 1)].mean()).abs()
        for k in (0, 1)
    ]
    penalty = model._penalty(batch, model._evaluate(batch))
    assert penalty is not None and set(stratum.tolist()) == {0, 1}
    th.testing.assert_close(penalty, gaps[0] + gaps[1])


def test_its_first_term_alone_changes_nothing() -> None:
    constant = learned(fair_learner(mode="paper_literal", alpha=5.0, beta=0.0, autograd=True))
    assert np.array_equal(policy_weights(constant), policy_weights(learned(fair_learner(alpha=0.0, autograd=True))))


# ------------------------------------------------------------------------------------------------------ authors


def test_the_normaliser_of_the_published_code() -> None:
    running = RunningRange()
    assert [running(value) for value in (100, 50, 0, 200)] == [0, 0, 0, 1]
    assert (running.low, running.high) == (0, 200)
    running = RunningRange()
    places = [running(value) for value in (100, 200, 150)]
    assert places == pytest.approx([0, 1, (150 - 98.01) / (198 - 98.01)])  # both ends are forgotten by a hundredth


@pytest.mark.parametrize(("penalty", "ratio"), [(0.0, 1), (0.01, 2), (0.5, 2), (3.0, 2)])
def test_the_gradient_is_ppos_once_or_twice_whatever_the_penalty_is(penalty: float, ratio: int) -> None:
    model, batch = ready(mode="authors")
    model._mode.penalties = [penalty, penalty]  # type: ignore[attr-defined]
    some = batch.flat_index % 3 > 0  # groups of other sizes, with other shares of idle turns
    part = type(batch)._make([column[some] for column in batch])
    evaluation = model._evaluate(part)
    loss = model._total(model._losses(evaluation))
    added = model._penalty(part, evaluation)
    plain = gradients(model, loss, of="members")
    total = plain if added is None else gradients(model, loss + added, of="members")
    assert np.abs(total - ratio * plain).max() <= 2e-6 * np.abs(plain).max()


@pytest.mark.parametrize("group", [0, 1])
def test_each_groups_networks_have_a_penalty_of_their_own(group: int) -> None:
    model, batch = ready(mode="authors")
    model._mode.penalties = [float(group == 0), float(group == 1)]  # type: ignore[attr-defined]
    evaluation = model._evaluate(batch)
    loss = model._total(model._losses(evaluation))
    added = model._penalty(batch, evaluation)
    assert added is not None
    for g in (0, 1):
        plain, total = (gradients(model, part, of=f"members.{g}") for part in (loss, loss + added))
        assert np.abs(total - (1 + (g == group)) * plain).max() <= 2e-6 * np.abs(plain).max()


def test_the_group_ahead_has_the_penalty() -> None:
    model = fair_learner(mode="authors", alpha=0.5, beta=0.0)
    for scale in (1.0, 2.0):  # the range of the first rollout is empty
        collect(model)
        model.rollout_buffer.reward[:] = scale * (model.rollout_buffer.group == 0)
        model._after_rollout()
    assert model._mode.penalties == [0.5, 0.0]  # type: ignore[attr-defined]


def test_the_values_penalty_is_that_of_their_means() -> None:
    model = fair_learner(mode="authors", alpha=0.0, beta=0.5)
    for scale in (1.0, 2.0):  # group 1 expects more, though it has earned nothing
        collect(model)
        buffer = model.rollout_buffer
        buffer.reward[:] = buffer.group == 0
        buffer.values[:] = scale * (buffer.group == 1)
        model._after_rollout()
    assert model._mode.penalties == [0.0, 0.5]  # type: ignore[attr-defined]
    assert model.memory["range/value/0"].tolist() == [0.0, 2.0]  # means, not totals


def test_weights_above_zero_are_all_the_same() -> None:
    one, other = (learned(fair_learner(mode="authors", alpha=a, beta=b), times=4) for a, b in ((1, 1), (0.25, 0.75)))
    np.testing.assert_allclose(policy_weights(one), policy_weights(other), atol=2e-6)
    one, other = (learned(fair_learner(mode="shaped", alpha=a, beta=b), times=4) for a, b in ((1, 1), (0.25, 0.75)))
    assert np.abs(policy_weights(one) - policy_weights(other)).max() > 1e-3
