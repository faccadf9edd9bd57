"""Modes of fair-PPO: how a disparity changes the policy, with the hooks of `fair_envs.baselines.ppo.ppo.PPO`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch.nn import functional

from fair_envs.baselines.ppo.costs import Disparity, cost_advantages
from fair_envs.baselines.ppo.minibatch import Minibatch, MinibatchOutput
from fair_envs.baselines.ppo.ppo import PPO, Losses, mean
from fair_envs.support.aliases import Floats, Floats32

GAP_DECAY = 0.9  # weight of the past in the running mean of the gaps, mode "weighted"
HIDDEN_UNITS = 64  # units in each of the two layers of a cost critic


class LearnerState(dict[str, NDArray[Any]]):
    """State that a fair learner keeps between rollouts, saved and loaded with its networks."""

    def state_dict(self) -> dict[str, th.Tensor]:
        """Return a copy of the state that torch can save."""
        return {name: th.from_numpy(np.array(value)) for name, value in self.items()}

    def load_state_dict(self, state: dict[str, th.Tensor], strict: bool = True) -> None:
        """Replace the state."""
        self.clear()
        self.update({name: tensor.cpu().numpy().copy() for name, tensor in state.items()})


class PenaltyLearner(PPO):
    """Interface of a fair learner for the modes, which `fair_envs.baselines.ppo.fair_ppo.FairPPO` implements."""

    tolerance: float
    cost_critics: "CostCritics"
    memory: LearnerState

    @property
    def cost_weights(self) -> tuple[float, float]:
        """Weights of the retrospective and the prospective cost."""
        raise NotImplementedError

    @property
    def disparity(self) -> float:
        """Latest |D| at the end of episodes, in scaled rewards."""
        raise NotImplementedError

    @property
    def reward_scale(self) -> float:
        """Scale of the rewards."""
        raise NotImplementedError

    def to_rows(self, worlds: NDArray[Any]) -> NDArray[Any]:
        """Return values for each world and agent rearranged to values for each row."""
        raise NotImplementedError

    def agent_costs(self, disparity: Disparity) -> Floats:
        """Return each agent's costs in each step."""
        raise NotImplementedError


class Mode:
    """A mode that changes nothing; subclasses define the effect of the disparity."""

    def __init__(self, learner: PenaltyLearner) -> None:
        self.learner = learner

    def after_rollout(self, disparity: Disparity) -> None:
        """Process the measured disparity before the updates."""

    def advantages(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        """Return the advantages for the policy loss.

        Args:
            batch: The minibatch.
            advantages: PPO's advantages of the samples with a turn.
        """
        return self.learner._normalised(advantages)

    def penalty(self, batch: Minibatch, output: MinibatchOutput) -> th.Tensor | None:
        """Return the term added to the loss, or None."""
        return None

    def after_minibatch(self, batch: Minibatch) -> None:
        """Run after each gradient step."""


class CostCritics(th.nn.Module):
    """Critics that predict expected discounted costs, one network for each cost.

    They have their own optimiser and do not use PPO's random numbers. The networks share no layers, because the other
    agents' effect on the disparity is many times noisier than the agent's own, and would dominate a shared network.
    """

    def __init__(self, inputs: int, costs: int, *, learning_rate: float, seed: int) -> None:
        with th.random.fork_rng(devices=[]):
            th.manual_seed(seed)
            super().__init__()
            self.networks = th.nn.ModuleList(
                th.nn.Sequential(
                    th.nn.Linear(inputs, HIDDEN_UNITS),
                    th.nn.ReLU(),
                    th.nn.Linear(HIDDEN_UNITS, HIDDEN_UNITS),
                    th.nn.ReLU(),
                    th.nn.Linear(HIDDEN_UNITS, 1),
                )
                for _ in range(costs)
            )
        self.optimizer = th.optim.Adam(self.parameters(), lr=learning_rate)

    def forward(self, observations: th.Tensor, *, which: Sequence[int]) -> th.Tensor:
        """Return the expected costs of the selected networks, shape (..., which)."""
        return th.cat([self.networks[k](observations) for k in which], dim=-1)

    def predict(self, observations: Floats32, *, which: Sequence[int]) -> Floats:
        """Return the expected costs, shape (steps, rows, which), computed step by step to fit in the CPU cache."""
        device = next(self.parameters()).device
        with th.no_grad():
            costs = [self(th.as_tensor(seen, device=device), which=which).cpu().numpy() for seen in observations]
        return np.stack(costs).astype(float)

    def update(
        self, observations: th.Tensor, targets: th.Tensor, *, which: Sequence[int], max_grad_norm: float
    ) -> None:
        """Take one gradient step of the selected networks towards their targets, shape (n, which)."""
        loss = (self(observations, which=which) - targets).square().mean(dim=0).sum()
        self.optimizer.zero_grad()
        loss.backward()
        for k in which:
            th.nn.utils.clip_grad_norm_(self.networks[k].parameters(), max_grad_norm)
        self.optimizer.step()


class CostMode(Mode):
    """A mode that uses the advantages of the costs, estimated with separate critics.

    Each part of a cost (the agent's own contribution and the other agents') has its own critic, and the parts'
    advantages are summed. A single critic would mainly learn the noise of the other agents. Agents would then not be
    charged for the disparity of their own state, and the disparity would return during training.

    Attributes:
        costs: Indices of the costs with a nonzero weight: 0 the retrospective, 1 the prospective one.
        advantage: Advantages of each sample's costs before weighting, shape (samples, 2).
        targets: Targets of the cost critics, shape (samples, critics in use).
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Estimate the advantages of the costs."""
        learner, buffer = self.learner, self.learner.rollout_buffer
        self.costs = [cost for cost, weight in enumerate(learner.cost_weights) if weight > 0]
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
                batch.observations,
                self.targets[batch.flat_index],
                which=self._which,
                max_grad_norm=learner.max_grad_norm,
            )

    def of_turns(self, batch: Minibatch, cost: int) -> th.Tensor:
        """Return the advantages of one cost for the samples with a turn."""
        return self.learner._of_turns(batch, self.advantage[batch.flat_index, cost])


class Shaped(CostMode):
    """Subtracts cost advantages from the advantages, in units of the standard deviation of the latter."""

    def advantages(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        """Return the advantages minus the weighted cost advantages."""
        total = advantages
        for cost in self.costs:
            total = total - self.learner.cost_weights[cost] * self.of_turns(batch, cost)
        return self.learner._normalised(total, scale_of=advantages)


class P3O(CostMode):
    """Adds a clipped surrogate of each cost to the loss where the cost exceeds its tolerance (Zhang et al., 2022).

    The tolerance of the disparity is ``tolerance``, that of the gap between the values is 0.
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Compute how much the costs exceed their tolerance per step: the excess times 1 - gamma."""
        super().after_rollout(disparity)
        learner, size = self.learner, float(disparity.size.mean())
        retrospective = learner.disparity - learner.tolerance * learner.reward_scale
        prospective = float(np.abs(disparity.value_gap).sum(-1).mean())
        self.excess = tuple((1 - learner.gamma) * size * excess for excess in (retrospective, prospective))

    def penalty(self, batch: Minibatch, output: MinibatchOutput) -> th.Tensor | None:
        """Return the weighted surrogates above the tolerance, in the unit of the advantages."""
        learner = self.learner
        if not self.costs:
            return None
        scale = learner._scale(learner._of_turns(batch, batch.advantages))
        clip = learner.clip_range(learner._current_progress_remaining)  # type: ignore[operator]
        ratio = th.exp(output.log_ratio)
        total = th.zeros((), device=ratio.device)
        for cost in self.costs:
            advantage = self.of_turns(batch, cost)
            surrogate = mean(th.max(ratio * advantage, th.clamp(ratio, 1 - clip, 1 + clip) * advantage))
            total = total + learner.cost_weights[cost] * functional.relu(surrogate + self.excess[cost])
        return total / scale


class Weighted(Mode):
    """Scales down the advantages of the better-off group and scales up those of the other group.

    This is the exact gradient of ``J_0 + J_1 - weight * alpha * |J_0 - J_1|`` if no group's policy affects the other's
    returns.
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Determine which group is better off, and each sample's factor."""
        learner = self.learner
        gaps = np.stack([disparity.reward_gap.mean((0, 1)), disparity.value_gap.mean((0, 1))])  # (2, strata)
        before = learner.memory.get("gaps", gaps)
        learner.memory["gaps"] = GAP_DECAY * before + (1 - GAP_DECAY) * gaps
        shift = np.asarray(learner.cost_weights) @ np.sign(learner.memory["gaps"])  # (strata,)
        of_agent = shift[disparity.stratum]
        factor = np.maximum(0, np.where(disparity.group == 0, 1 - of_agent, 1 + of_agent))
        self.factor = learner.rollout_buffer.flat(learner.to_rows(factor).astype(np.float32))

    def advantages(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        """Return the normalised advantages times their factors."""
        return self.learner._normalised(advantages) * self.learner._of_turns(batch, self.factor[batch.flat_index])


class PaperLiteral(Mode):
    """The penalty as printed: its first term has no gradient, its second term pulls the critics' means together."""

    def after_rollout(self, disparity: Disparity) -> None:
        """Store the groups and strata of the samples."""
        buffer = self.learner.rollout_buffer
        self.group = buffer.flat(self.learner.to_rows(disparity.group))
        self.stratum = buffer.flat(self.learner.to_rows(disparity.stratum))
        self.strata = disparity.strata

    def penalty(self, batch: Minibatch, output: MinibatchOutput) -> th.Tensor | None:
        """Return the paper's penalty on this minibatch."""
        retrospective, prospective = self.learner.cost_weights
        if not any(self.learner.cost_weights):
            return None
        group, stratum = self.group[batch.flat_index], self.stratum[batch.flat_index]
        gap = th.zeros((), device=output.values.device)
        for k in range(self.strata):
            sides = [output.values[(stratum == k) & (group == g)] for g in (0, 1)]
            if all(len(side) for side in sides):
                gap = gap + (sides[0].mean() - sides[1].mean()).abs()
        return retrospective * self.learner.disparity + prospective * gap


class RunningRange:
    """Min-max normalisation by a slowly decaying range, as in the published code."""

    def __init__(self, low: float = np.inf, high: float = -np.inf) -> None:
        self.low, self.high = float(low), float(high)

    def __call__(self, value: float) -> float:
        """Return the value's position in the range, 0 while the range is empty."""
        first = not np.isfinite(self.high)
        self.high = value if first else max(value, 0.99 * self.high)
        self.low = value if first else min(value, 0.99 * self.low)
        width = self.high - self.low
        return 0.0 if width == 0 else (value - self.low) / width


class Authors(Mode):
    """The penalty of the published code: the loss divided by P, times P, where P is the disparity, used as a constant.

    Each group has its own P. The penalty's gradient is therefore that of the losses of the groups with P > 0, usually
    only the better-off group, however large alpha and beta are; zero if no group has P > 0.
    """

    def after_rollout(self, disparity: Disparity) -> None:
        """Compute the penalty of group 0 and of group 1."""
        learner = self.learner
        self.group = learner.rollout_buffer.flat(learner.to_rows(disparity.group))
        self.penalties = [
            sum(
                weight * self._normalised(f"range/{name}/{k}", max(values[k, g] - values[k, 1 - g], 0.0))
                for k in range(disparity.strata)
                for name, values, weight in (
                    ("reward", disparity.totals, learner.cost_weights[0]),
                    ("value", disparity.mean_values, learner.cost_weights[1]),
                )
            )
            for g in (0, 1)
        ]

    def penalty(self, batch: Minibatch, output: MinibatchOutput) -> th.Tensor | None:
        """Return the sum of the groups' losses divided by P, times P."""
        group = self.group[batch.flat_index]
        terms = [
            self._loss_of(group == g, batch, output) / (penalty + 1e-8) * penalty
            for g, penalty in enumerate(self.penalties)
            if penalty > 0
        ]
        return th.stack(terms).sum() if terms else None

    def _loss_of(self, members: th.Tensor, batch: Minibatch, output: MinibatchOutput) -> th.Tensor:
        """Return the contribution of the selected samples to the minibatch loss; ``members`` has shape (n,)."""
        learner = self.learner
        if not members.any():
            return th.zeros((), device=members.device)
        turns = learner._of_turns(batch, members)
        losses = learner._losses(part_of(output, turns=turns, members=members))
        share = mean(turns.float())
        return learner._total(
            Losses(losses.policy * share, losses.negative_entropy * share, losses.values * members.float().mean())
        )

    def _normalised(self, name: str, value: float) -> float:
        memory = self.learner.memory
        running = RunningRange(*memory.get(name, ()))
        position = running(float(value))
        memory[name] = np.array([running.low, running.high])
        return position


def part_of(output: MinibatchOutput, *, turns: th.Tensor, members: th.Tensor) -> MinibatchOutput:
    """Return the output for some samples, given their mask among the samples with a turn and among all samples."""
    return MinibatchOutput(
        advantages=output.advantages[turns],
        log_prob=output.log_prob[turns],
        log_ratio=output.log_ratio[turns],
        entropy=None if output.entropy is None else output.entropy[turns],
        values=output.values[members],
        value_targets=output.value_targets[members],
    )


MODES: dict[str, type[Mode]] = {
    "shaped": Shaped,
    "weighted": Weighted,
    "p3o": P3O,
    "paper_literal": PaperLiteral,
    "authors": Authors,
}
