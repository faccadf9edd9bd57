"""PPO with a second critic for a cost made from fairness measures, and PPO with a penalty on such a cost."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch as th

from fair_envs.baselines.ppo.costs import cost_advantages
from fair_envs.baselines.ppo.fair_modes import CostCritics
from fair_envs.baselines.ppo.minibatch import Minibatch
from fair_envs.baselines.ppo.regularised import Regularised
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegative, checked


class CostPPO(Regularised):
    """PPO that also estimates the advantages of a cost, with a separate critic; subclasses define the cost and its use.

    Where a time limit truncates an episode, the critic estimates the remaining cost.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        kwargs: Keyword arguments of `Regularised`.

    Raises:
        ValueError: An argument is outside its range, or the environment's observations are not arrays.
    """

    def _setup_model(self) -> None:
        super()._setup_model()
        if not isinstance(self.observation_space, gym.spaces.Box):
            raise ValueError(f"env must have arrays as observations, got {self.observation_space}")
        self.cost_critics = CostCritics(
            int(np.prod(self.observation_space.shape)),
            costs=1,
            learning_rate=self.lr_schedule(1),
            seed=0 if self.seed is None else self.seed,
        ).to(self.device)

    def cost(self) -> Floats:
        """Return the cost of each step of the rollout, shape (steps, rows)."""
        raise NotImplementedError

    @property
    def _bootstraps(self) -> bool:
        return True

    def _after_rollout(self) -> None:
        super()._after_rollout()
        cost = self.cost()
        if self._cut_off:
            seen = np.array(list(self._cut_off.values()), np.float32).reshape(1, len(self._cut_off), -1)
            after = self.cost_critics.predict(seen, which=[0])[0, :, 0]
            cost[tuple(np.transpose(list(self._cut_off)))] += self.gamma * after
        self._estimate(cost)

    def _estimate(self, cost: Floats) -> None:
        """Estimate the advantages of a cost, shape (steps, rows)."""
        buffer, (steps, rows) = self.rollout_buffer, cost.shape
        values = self.cost_critics.predict(buffer.observations.reshape(steps, rows, -1), which=[0])
        last = np.asarray(self._last_obs, np.float32).reshape(1, rows, -1)
        advantages = cost_advantages(
            cost[..., np.newaxis],
            values,
            self.cost_critics.predict(last, which=[0])[0],
            buffer.episode_starts.astype(bool),
            np.asarray(self._last_episode_starts, bool),
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
        )
        self._cost_advantages = buffer.flat(advantages[..., 0].astype(np.float32))
        self._cost_targets = buffer.flat((advantages + values).astype(np.float32))

    def _costs_of_turns(self, batch: Minibatch) -> th.Tensor:
        """Return the cost advantages of the samples with a turn."""
        return self._of_turns(batch, self._cost_advantages[batch.flat_index])

    def _after_minibatch(self, batch: Minibatch) -> None:
        self.cost_critics.update(
            batch.observations.flatten(1).float(),
            self._cost_targets[batch.flat_index],
            which=[0],
            max_grad_norm=self.max_grad_norm,
        )

    def _optimizers(self) -> list[th.optim.Optimizer]:
        return [*super()._optimizers(), self.cost_critics.optimizer]

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_cost_advantages", "_cost_targets"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        states, tensors = super()._get_torch_save_params()
        return [*states, "cost_critics", "cost_critics.optimizer"], tensors


class MeasurePPO(CostPPO):
    """Fair-PPO for any measure: the advantages of the measure's changes are subtracted from the advantages.

    The cost of a step is the change of the measure in it, ``d_t - d_{t-1}``, as the retrospective cost of `FairPPO` is
    the change of the disparity of returns. A change from or to an undefined value costs nothing: the first rates of
    two groups in a window differ by chance, whatever the policy does. The costs of an episode therefore add up to the
    measure at its end minus its first defined value, if it stays defined. (`FairnessPenalty` charges the first value
    too.) The policy is updated with ``A - weight * alpha * A_c``, where the cost
    advantages A_c are estimated with a separate critic. Both are in units of their standard deviation, A_c in that over
    all rollouts so far: a measure has no unit that could be compared with that of rewards.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        alpha: Weight of the cost, at least 0: with 1, a typical change of the measure weighs as much as a typical
            advantage.
        weight: Another factor, the paper's lambda, at least 0.
        kwargs: Keyword arguments of `CostPPO`.
    """

    def __init__(self, *args: Any, alpha: float = 1.0, weight: float = 1.0, **kwargs: Any) -> None:
        self.alpha = float(checked("alpha", alpha, NonNegative))
        self.weight = float(checked("weight", weight, NonNegative))
        super().__init__(*args, **kwargs)

    def cost(self) -> Floats:
        """Return the change of the measure in each step, 0 where it is undefined."""
        return np.nan_to_num(self.rollout_measures.short_change).astype(float)

    def _after_rollout(self) -> None:
        super()._after_rollout()
        values = self._cost_advantages.double().cpu().numpy()[:, np.newaxis]
        self._cost_advantages = self._cost_advantages / float(self._running_deviation(values)[0])

    def _regularised(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        cost = self._costs_of_turns(batch)
        if len(cost):
            cost = cost - cost.mean()
        return self._normalised(advantages) - self.weight * self.alpha * cost
