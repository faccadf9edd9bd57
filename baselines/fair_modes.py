"""How a disparity reaches the policy: the modes of fair-PPO, each with the hooks of `fair_envs.baselines.ppo.PPO`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional

from fair_envs.aliases import Floats, Floats32
from fair_envs.baselines.costs import Disparity, cost_advantages
from fair_envs.baselines.ppo import PPO, Evaluation, Losses, Minibatch, mean

FORGETTING = 0.9  # of the running disparity of "weighted", per rollout
HIDDEN = 64  # units in each of the two layers of a cost critic


class Memory(dict[str, NDArray[Any]]):
    """What a fair learner carries from rollout to rollout; saved and loaded with its networks."""

    def state_dict(self) -> dict[str, th.Tensor]:
        """Return a copy that torch can save."""
        return {name: th.from_numpy(np.array(value)) for name, value in self.items()}

    def load_state_dict(self, state: dict[str, th.Tensor], strict: bool = True) -> None:
        """Remember this and nothing else."""
        self.clear()
        self.update({name: tensor.cpu().numpy().copy() for name, tensor in state.items()})


class Penalised(PPO):
    """What modes read of a fair learner, which `fair_envs.baselines.fair_ppo.FairPPO` implements."""

    tolerance: float
    cost_critics: "CostCritics"
    memory: Memory

    @property
    def weights(self) -> tuple[float, float]:
        """What the retrospective and the prospective cost are multiplied by."""
        raise NotImplementedError

    @property
    def disparity(self) -> float:
        """|D| at the end of the episodes that ended last, in scaled rewards."""
        raise NotImplementedError

    @property
    def reward_scale(self) -> float:
        """Factor on the rewards."""
        raise NotImplementedError

    def to_rows(self, worlds: NDArray[Any]) -> NDArray[Any]:
        """Return what holds for each world and agent as what holds for each row."""
        raise NotImplementedError

    def agent_costs(self, disparity: Disparity) -> Floats:
        """Return each agent's costs in each step."""
        raise NotImplementedError


class Mode:
    """A mode that changes nothing; subclasses say what the disparity does."""

    def __init__(self, learner: Penalised) -> None:
        self.learner = learner

    def after_rollout(self, disparity: Disparity) -> None:
        """Take in what was measured, before the updates."""

    def advantages(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        """Return the advantages that the policy follows; ``own`` are those of the samples that had a turn."""
        return self.learner._normalised(own)

    def penalty(self, batch: Minibatch, evaluation: Evaluation) -> th.Tensor | None:
        """Return what is added to the loss, or None."""
        return None

    def after_minibatch(self, batch: Minibatch) -> None:
        """Do what is due after each gradient step."""


class CostCritics(th.nn.Module):
    """Expected discounted costs, a network for each; they have an optimiser of their own and leave PPO's luck alone.

    The networks share nothing: what others do to the disparity is many times as noisy as what an agent does itself, and
    in a shared network the one would drown the other.
    """

    def __init__(self, inputs: int, costs: int, *, learning_rate: float, seed: int) -> None:
        with th.random.fork_rng(devices=[]):
            th.manual_seed(seed)
            super().__init__()
            self.networks = th.nn.ModuleList(
                th.nn.Sequential(
                    th.nn.Linear(inputs, HIDDEN),
                    th.nn.ReLU(),
                    th.nn.Linear(HIDDEN, HIDDEN),
                    th.nn.ReLU(),
                    th.nn.Linear(HIDDEN, 1),
                )
                for _ in range(costs)
            )
        self.optimizer = th.optim.Adam(self.parameters(), lr=learning_rate)

    def forward(self, observations: th.Tensor, *, which: Sequence[int]) -> th.Tensor:
        """Return the costs expected of those networks, shape (..., which)."""
        return th.cat([self.networks[k](observations) for k in which], dim=-1)

    def predict(self, observations: Floats32, *, which: Sequence[int]) -> Floats:
        """Return the costs expected in each step, shape (steps, rows, which); step by step it stays in the cache."""
        device = next(self.parameters()).device
        with th.no_grad():
            costs = [self(th.as_tensor(seen, device=device), which=which).cpu().numpy() for seen in observations]
        return np.stack(costs).astype(float)

    def update(
        self, observations: th.Tensor, targets: th.Tensor, *, which: Sequence[int], max_grad_norm: float
    ) -> None:
        """Take one gradient step of those networks towards their targets, shape (n, which)."""
        loss = (self(observations, which=which) - targets).square().mean(dim=0).sum()
        self.optimizer.zero_grad()
        loss.backward()
        for k in which:
            th.nn.utils.clip_grad_norm_(self.networks[k].parameters(), max_grad_norm)
        self.optimizer.step()


class CostMode(Mode):
    """A mode that follows the advantages of the costs, estimated with critics of their own.

    What an agent itself adds to a cost and what the others add have critics of their own, and their advantages are
    summed. From one critic for the sum the others' noise hides what the agent's own state costs; an agent is then
    rewarded for states that it is not charged for, and the disparity comes back as training goes on.

    Attributes:
        costs: Those of the two costs that have a weight: 0 the retrospective, 1 the prospective one.
        advantage: Of each sample's costs, before the weights, shape (samples, 2).
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Estimate the advantages of the costs."""
        learner, buffer = self.learner, self.learner.rollout_buffer
        self.costs = [cost for cost, weight in enumerate(learner.weights) if weight > 0]
        if not self.costs:
            return
        charged = learner.agent_costs(disparity)  # (steps, rows, parts, 2)
        steps, rows, parts, _ = charged.shape
        self._which = [2 * part + cost for part in range(parts) for cost in self.costs]
        values = learner.cost_critics.predict(buffer.observations, which=self._which)
        last = learner.cost_critics.predict(np.asarray(learner._last_obs)[np.newaxis], which=self._which)[0]
        advantages = cost_advantages(
            charged.reshape(steps, rows, -1)[..., self._which],
            values,
            last,
            buffer.episode_starts.astype(bool),
            np.asarray(learner._last_episode_starts, bool),
            gamma=learner.gamma,
            gae_lambda=learner.gae_lambda,
        )
        summed = np.zeros((steps, rows, 2), np.float32)
        summed[..., self.costs] = advantages.reshape(steps, rows, parts, -1).sum(axis=2)
        self.advantage = buffer.flat(summed)
        self.targets = buffer.flat((advantages + values).astype(np.float32))

    def after_minibatch(self, batch: Minibatch) -> None:
        """Train the cost critics."""
        if self.costs:
            learner = self.learner
            learner.cost_critics.update(
                batch.observations, self.targets[batch.place], which=self._which, max_grad_norm=learner.max_grad_norm
            )

    def of_turns(self, batch: Minibatch, cost: int) -> th.Tensor:
        """Return the advantages of one cost, of the samples that had a turn."""
        return self.learner._of_turns(batch, self.advantage[batch.place, cost])


class Shaped(CostMode):
    """Cost advantages are taken off the advantages, in units of the latter's standard deviation."""

    def advantages(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        """Return the advantages less their cost."""
        total = own
        for cost in self.costs:
            total = total - self.learner.weights[cost] * self.of_turns(batch, cost)
        return self.learner._normalised(total, scale_of=own)


class P3O(CostMode):
    """A clipped surrogate of each cost counts where the cost exceeds what is tolerated (Zhang et al., 2022).

    The disparity may be ``tolerance``, the gap between the values nothing.
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Measure by how much the costs exceed what is tolerated, times 1 - gamma: per step."""
        super().after_rollout(disparity)
        learner, size = self.learner, float(disparity.size.mean())
        retrospective = learner.disparity - learner.tolerance * learner.reward_scale
        prospective = float(np.abs(disparity.value_gap).sum(-1).mean())
        self.excess = tuple((1 - learner.gamma) * size * excess for excess in (retrospective, prospective))

    def penalty(self, batch: Minibatch, evaluation: Evaluation) -> th.Tensor | None:
        """Return the weighted surrogates above what is tolerated, in the unit of the advantages."""
        learner = self.learner
        if not self.costs:
            return None
        scale = learner._scale(learner._of_turns(batch, batch.advantages))
        clip = learner.clip_range(learner._current_progress_remaining)  # type: ignore[operator]
        ratio = th.exp(evaluation.log_ratio)
        total = th.zeros((), device=ratio.device)
        for cost in self.costs:
            advantage = self.of_turns(batch, cost)
            surrogate = mean(th.max(ratio * advantage, th.clamp(ratio, 1 - clip, 1 + clip) * advantage))
            total = total + learner.weights[cost] * functional.relu(surrogate + self.excess[cost])
        return total / scale


class Weighted(Mode):
    """The group ahead learns less from its advantages, the group behind more.

    The exact gradient of ``J_0 + J_1 - weight * alpha * |J_0 - J_1|`` if no group's policy affects the other's returns.
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Note who is ahead, and each sample's factor."""
        learner = self.learner
        now = np.stack([disparity.reward_gap.mean((0, 1)), disparity.value_gap.mean((0, 1))])  # (2, strata)
        before = learner.memory.get("gaps", now)
        learner.memory["gaps"] = FORGETTING * before + (1 - FORGETTING) * now
        shift = np.asarray(learner.weights) @ np.sign(learner.memory["gaps"])  # (strata,)
        of_agent = shift[disparity.stratum]
        factor = np.maximum(0, np.where(disparity.group == 0, 1 - of_agent, 1 + of_agent))
        self.factor = learner.rollout_buffer.flat(learner.to_rows(factor).astype(np.float32))

    def advantages(self, batch: Minibatch, own: th.Tensor) -> th.Tensor:
        """Return the normalised advantages times their factors."""
        return self.learner._normalised(own) * self.learner._of_turns(batch, self.factor[batch.place])


class PaperLiteral(Mode):
    """The penalty as printed: its first term has no gradient; the second pulls the critics' means together."""

    def after_rollout(self, disparity: Disparity) -> None:
        """Note who is in which group and stratum."""
        buffer = self.learner.rollout_buffer
        self.group = buffer.flat(self.learner.to_rows(disparity.group))
        self.stratum = buffer.flat(self.learner.to_rows(disparity.stratum))
        self.strata = disparity.strata

    def penalty(self, batch: Minibatch, evaluation: Evaluation) -> th.Tensor | None:
        """Return the paper's penalty on this minibatch."""
        retrospective, prospective = self.learner.weights
        if not any(self.learner.weights):
            return None
        group, stratum = self.group[batch.place], self.stratum[batch.place]
        gap = th.zeros((), device=evaluation.values.device)
        for k in range(self.strata):
            sides = [evaluation.values[(stratum == k) & (group == g)] for g in (0, 1)]
            if all(len(side) for side in sides):
                gap = gap + (sides[0].mean() - sides[1].mean()).abs()
        return retrospective * self.learner.disparity + prospective * gap


class RunningRange:
    """Min-max normalisation by a range that is slowly forgotten, as in the published code."""

    def __init__(self, low: float = np.inf, high: float = -np.inf) -> None:
        self.low, self.high = float(low), float(high)

    def __call__(self, value: float) -> float:
        """Return the value's place in the range, 0 while the range is empty."""
        first = not np.isfinite(self.high)
        self.high = value if first else max(value, 0.99 * self.high)
        self.low = value if first else min(value, 0.99 * self.low)
        width = self.high - self.low
        return 0.0 if width == 0 else (value - self.low) / width


class Authors(Mode):
    """The penalty of the published code: a constant P whose weight is the loss over that constant.

    Its gradient is that of the loss times ``P / (P + 1e-8)``: none, or the loss once more, whatever alpha and beta are.
    Each group's networks have a P of their own.
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Compute each group's penalty, group 0's first."""
        learner = self.learner
        self.group = learner.rollout_buffer.flat(learner.to_rows(disparity.group))
        self.penalties = [
            sum(
                weight * self._normalised(f"range/{name}/{k}", max(of[k, g] - of[k, 1 - g], 0.0))
                for k in range(disparity.strata)
                for name, of, weight in (
                    ("reward", disparity.totals, learner.weights[0]),
                    ("value", disparity.mean_values, learner.weights[1]),
                )
            )
            for g in (0, 1)
        ]

    def penalty(self, batch: Minibatch, evaluation: Evaluation) -> th.Tensor | None:
        """Return lambda times P for the samples of each group, lambda being the loss over P."""
        group = self.group[batch.place]
        terms = [
            self._loss_of(group == g, batch, evaluation) / (penalty + 1e-8) * penalty
            for g, penalty in enumerate(self.penalties)
            if penalty > 0
        ]
        return th.stack(terms).sum() if terms else None

    def _loss_of(self, members: th.Tensor, batch: Minibatch, evaluation: Evaluation) -> th.Tensor:
        """Return what some of the samples contribute to the loss of the minibatch; ``members`` has shape (n,)."""
        learner = self.learner
        if not members.any():
            return th.zeros((), device=members.device)
        turns = learner._of_turns(batch, members)
        losses = learner._losses(part_of(evaluation, turns=turns, members=members))
        share = mean(turns.float())
        return learner._total(
            Losses(losses.policy * share, losses.entropy * share, losses.values * members.float().mean())
        )

    def _normalised(self, name: str, value: float) -> float:
        memory = self.learner.memory
        running = RunningRange(*memory.get(name, ()))
        place = running(float(value))
        memory[name] = np.array([running.low, running.high])
        return place


def part_of(evaluation: Evaluation, *, turns: th.Tensor, members: th.Tensor) -> Evaluation:
    """Return the evaluation of some of the samples: which of those that had a turn, and which of all."""
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
