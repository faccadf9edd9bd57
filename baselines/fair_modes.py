"""How a disparity reaches the policy: the modes of fair-PPO, each with the hooks of `fair_envs.baselines.ppo.PPO`."""

from typing import TYPE_CHECKING

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional

from fair_envs.baselines.costs import Disparity, cost_advantages
from fair_envs.baselines.ppo import Evaluation, Minibatch

if TYPE_CHECKING:
    from fair_envs.baselines.fair_ppo import FairPPO

FORGETTING = 0.9  # of the running disparity of "weighted", per rollout
HIDDEN = 64  # units in each of the two layers of the cost critics


class Mode:
    """A mode that changes nothing; subclasses say what the disparity does."""

    def __init__(self, learner: "FairPPO") -> None:
        self.learner = learner

    def after_rollout(self, disparity: Disparity) -> None:
        """Take in what was measured, before the updates."""

    def advantages(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        """Return the advantages that the policy follows; ``own`` are those of the samples that had a turn."""
        return self.learner._normalised(own)

    def penalty(self, batch: Minibatch, evaluation: Evaluation, loss: th.Tensor) -> th.Tensor | None:
        """Return what is added to the loss, or None."""
        return None

    def after_minibatch(self, batch: Minibatch) -> None:
        """Do what is due after each gradient step."""


class CostCritic(th.nn.Module):
    """Expected discounted cost, one head for each cost; it has an optimiser of its own and leaves PPO's luck alone."""

    def __init__(self, inputs: int, heads: int, *, learning_rate: float, seed: int) -> None:
        with th.random.fork_rng(devices=[]):
            th.manual_seed(seed)
            super().__init__()
            self.net = th.nn.Sequential(
                th.nn.Linear(inputs, HIDDEN),
                th.nn.Tanh(),
                th.nn.Linear(HIDDEN, HIDDEN),
                th.nn.Tanh(),
                th.nn.Linear(HIDDEN, heads),
            )
        self.optimizer = th.optim.Adam(self.parameters(), lr=learning_rate)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Return the costs expected, shape (n, heads)."""
        return self.net(observations)  # type: ignore[no-any-return]

    def update(self, observations: th.Tensor, targets: th.Tensor, *, max_grad_norm: float) -> None:
        """Take one gradient step towards the targets, shape (n, heads)."""
        loss = functional.mse_loss(self(observations), targets)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        th.nn.utils.clip_grad_norm_(self.parameters(), max_grad_norm)
        self.optimizer.step()


class CostMode(Mode):
    """A mode that follows cost advantages, estimated with critics of their own."""

    def after_rollout(self, disparity: Disparity) -> None:
        """Estimate the advantage of each sample's weighted cost."""
        learner, buffer = self.learner, self.learner.rollout_buffer
        weights = learner.weights
        steps, rows = buffer.rewards.shape
        values = self._values(buffer.observations.reshape(steps * rows, -1)).reshape(steps, rows, -1)
        last_values = self._values(np.asarray(learner._last_obs).reshape(rows, -1))
        costs = learner.agent_costs(disparity)
        first = buffer.episode_starts.astype(bool)
        ended = np.asarray(learner._last_episode_starts, bool)
        total, targets = np.zeros((steps, rows)), np.zeros_like(values)
        for head, (cost, weight) in enumerate(zip(costs, weights, strict=True)):
            if weight > 0:
                advantage = cost_advantages(
                    cost,
                    values[..., head],
                    last_values[..., head],
                    first,
                    ended,
                    gamma=learner.gamma,
                    gae_lambda=learner.gae_lambda,
                )
                total += weight * advantage
                targets[..., head] = advantage + values[..., head]
        self.cost = buffer.flat(total.astype(np.float32))
        self.targets = th.stack([buffer.flat(targets[..., h].astype(np.float32)) for h in range(len(weights))], 1)

    def after_minibatch(self, batch: Minibatch) -> None:
        """Train the cost critics."""
        if any(self.learner.weights):
            self.learner.cost_critic.update(
                batch.observations, self.targets[batch.index], max_grad_norm=self.learner.max_grad_norm
            )

    def _values(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        with th.no_grad():
            values: NDArray[np.float32] = self.learner.cost_critic(th.as_tensor(observations)).numpy()
        return values


class Shaped(CostMode):
    """Cost advantages are taken off the advantages, in units of the latter's standard deviation."""

    def advantages(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        """Return the advantages less their cost."""
        total = own - self.learner._of_turns(batch, self.cost[batch.index])
        return self.learner._normalised(total, scale_of=own)


class P3O(CostMode):
    """A clipped surrogate of the cost counts where it exceeds the tolerance (Zhang et al., 2022)."""

    def after_rollout(self, disparity: Disparity) -> None:
        """Measure by how much the disparity exceeds the tolerance."""
        super().after_rollout(disparity)
        learner = self.learner
        excess = disparity.episode - learner.tolerance * learner.reward_scale
        self.excess = (1 - learner.gamma) * learner.weights[0] * disparity.size.mean() * excess

    def penalty(self, batch: Minibatch, evaluation: Evaluation, loss: th.Tensor) -> th.Tensor | None:
        """Return the surrogate cost above the tolerance, in units of the advantages' standard deviation."""
        learner = self.learner
        if not any(learner.weights):
            return None
        scale = learner._of_turns(batch, batch.advantages).std() + 1e-8
        cost = learner._of_turns(batch, self.cost[batch.index])
        clip = learner.clip_range(learner._current_progress_remaining)  # type: ignore[operator]
        ratio = th.exp(evaluation.log_ratio)
        surrogate = th.max(ratio * cost, th.clamp(ratio, 1 - clip, 1 + clip) * cost).mean()
        return functional.relu((surrogate + self.excess) / scale)


class Weighted(Mode):
    """The group ahead learns less from its advantages, the group behind more.

    The exact gradient of ``J_0 + J_1 - weight * alpha * |J_0 - J_1|`` if no group's policy affects the other's returns.
    """

    running: NDArray[np.floating] | None = None  # (2, strata), mean gap of rewards and of values

    def after_rollout(self, disparity: Disparity) -> None:
        """Note who is ahead, and each sample's factor."""
        now = np.stack([disparity.reward_gap.mean((0, 1)), disparity.value_gap.mean((0, 1))])
        self.running = now if self.running is None else FORGETTING * self.running + (1 - FORGETTING) * now
        shift = np.asarray(self.learner.weights) @ np.sign(self.running)  # (strata,)
        of_agent = shift[disparity.stratum]
        factor = np.where(disparity.group == 0, np.maximum(0, 1 - of_agent), np.maximum(0, 1 + of_agent))
        self.factor = self.learner.rollout_buffer.flat(self.learner.to_rows(factor).astype(np.float32))

    def advantages(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        """Return the normalised advantages times their factors."""
        normalised = self.learner._normalised(own)
        return normalised * self.learner._of_turns(batch, self.factor[batch.index])


class PaperLiteral(Mode):
    """The penalty as printed: its first term has no gradient; the second pulls the critics' means together."""

    def after_rollout(self, disparity: Disparity) -> None:
        """Keep the constant term and who is in which group."""
        learner = self.learner
        self.constant = float(disparity.episode)
        buffer = learner.rollout_buffer
        self.group = buffer.flat(learner.to_rows(disparity.group))
        self.stratum = buffer.flat(learner.to_rows(disparity.stratum))
        self.strata = disparity.strata

    def penalty(self, batch: Minibatch, evaluation: Evaluation, loss: th.Tensor) -> th.Tensor | None:
        """Return the paper's penalty on this minibatch."""
        retrospective, prospective = self.learner.weights
        if not any(self.learner.weights):
            return None
        group, stratum = self.group[batch.index], self.stratum[batch.index]
        gap = th.zeros(())
        for k in range(self.strata):
            sides = [evaluation.values[(stratum == k) & (group == g)] for g in (0, 1)]
            if all(len(side) for side in sides):
                gap = gap + (sides[0].mean() - sides[1].mean()).abs()
        return retrospective * self.constant + prospective * gap


class RunningRange:
    """Min-max normalisation by a range that is slowly forgotten, as in the published code."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    def __call__(self, value: float) -> float:
        """Return the value's place in the range, 0 while the range is empty."""
        first = not np.isfinite(self.high)
        self.high = value if first else max(value, 0.99 * self.high)
        self.low = value if first else min(value, 0.99 * self.low)
        width = self.high - self.low
        return 0.0 if width == 0 else (value - self.low) / width


class Authors(Mode):
    """The penalty of the published code: a constant whose weight is the loss over that constant.

    Its gradient is that of the loss times ``P / (P + 1e-8)``: none, or the loss once more, whatever alpha and beta are.
    """

    def __init__(self, learner: "FairPPO") -> None:
        super().__init__(learner)
        self.ranges: dict[tuple[str, int], RunningRange] = {}

    def after_rollout(self, disparity: Disparity) -> None:
        """Compute each group's penalty, group 0's first."""
        learner = self.learner
        self.group = learner.rollout_buffer.flat(learner.to_rows(disparity.group))
        totals, values = disparity.totals, disparity.mean_values  # (strata, 2)
        self.penalties = [
            sum(
                weight * self._normalised(name, k, max(of[k, g] - of[k, 1 - g], 0.0))
                for k in range(disparity.strata)
                for name, of, weight in (
                    ("reward", totals, learner.weights[0]),
                    ("value", values, learner.weights[1]),
                )
            )
            for g in (0, 1)
        ]

    def penalty(self, batch: Minibatch, evaluation: Evaluation, loss: th.Tensor) -> th.Tensor | None:
        """Return lambda times P for the samples of each group, lambda being the loss over P."""
        group = self.group[batch.index]
        total = None
        for g, penalty in enumerate(self.penalties):
            members = group == g
            if not members.any():
                continue
            own_loss = self.learner._ppo_loss(part_of(evaluation, batch, members), record=False)
            term = members.float().mean() * own_loss / (penalty + 1e-8) * penalty
            total = term if total is None else total + term
        return total

    def _normalised(self, name: str, stratum: int, value: float) -> float:
        return self.ranges.setdefault((name, stratum), RunningRange())(value)


def part_of(evaluation: Evaluation, batch: Minibatch, members: th.Tensor) -> Evaluation:
    """Return the evaluation of some of the samples; ``members`` has shape (n,)."""
    turns = members if batch.turn is None else members[batch.turn]
    return Evaluation(
        advantages=evaluation.advantages[turns],
        log_prob=evaluation.log_prob[turns],
        log_ratio=evaluation.log_ratio[turns],
        entropy=None if evaluation.entropy is None else evaluation.entropy[turns],
        values=evaluation.values[members],
        value_targets=evaluation.value_targets[members],
    )


MODES: dict[str, type[Mode]] = {
    "shaped": Shaped,
    "weighted": Weighted,
    "p3o": P3O,
    "paper_literal": PaperLiteral,
    "authors": Authors,
}
