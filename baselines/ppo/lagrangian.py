"""PPO with a constraint on the mean unfairness of its decisions, enforced by a learned Lagrange multiplier."""

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.ppo.costs import cost_advantages
from fair_envs.baselines.ppo.fair_modes import CostCritics
from fair_envs.baselines.ppo.ppo import Minibatch
from fair_envs.baselines.ppo.regularised import Regularised
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegative, Positive, checked

Limited = Literal["short", "long"]


class PPOLagrangian(Regularised):
    """PPO that maximises its returns subject to a limit on the mean of a fairness measure over steps.

    The limit has a multiplier m, at least 0, which is updated with the excess after each rollout:
    ``m = max(0, m + multiplier_rate * (mean - limit))``. The policy is updated with the advantages
    ``(A - m * A_c) / (1 + m)``, where A_c are the centred advantages of the measure as a cost, estimated with a
    separate critic. The method is that of Ray, Achiam and Amodei (2019), *Benchmarking Safe Exploration in Deep
    Reinforcement Learning*. The multiplier's update is the integral part of Stooke, Achiam and Abbeel (2020),
    *Responsive Safety in Reinforcement Learning by PID Lagrangian Methods*.
    Steps for which the measure is undefined have no cost and are excluded from the mean. Where a time limit truncates
    an episode, the critic estimates the remaining cost. The multiplier is logged as ``train/multiplier``.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        limit: Upper limit of the mean; infinity: no limit, which is PPO.
        limited: The measure that is limited.
        multiplier: Initial multiplier, at least 0.
        multiplier_rate: Learning rate of the multiplier.
        kwargs: Keyword arguments of `Regularised`.

    Raises:
        ValueError: An argument is outside its range, or the environment's observations are not arrays.
    """

    def __init__(
        self,
        *args: Any,
        limit: float = 0.05,
        limited: Limited = "short",
        multiplier: float = 0.0,
        multiplier_rate: float = 0.05,
        **kwargs: Any,
    ) -> None:
        if not limit >= 0:
            raise ValueError(f"limit must be at least 0, got {limit!r}")
        self.limit, self.limited = float(limit), checked("limited", limited, Limited)
        self.first_multiplier = float(checked("multiplier", multiplier, NonNegative))
        self.multiplier_rate = float(checked("multiplier_rate", multiplier_rate, Positive))
        loading = not kwargs.get("_init_setup_model", True)
        if limited == "long" and kwargs.get("long") is None and not loading:
            raise ValueError("long must be given if it is limited, got None")
        super().__init__(*args, **kwargs)

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

    @property
    def multiplier(self) -> float:
        """Current price of a unit of the cost, in standard deviations of the advantages."""
        return float(self.memory.get("multiplier", self.first_multiplier))

    def _wrapped_env(self, env: VecEnv) -> VecEnv:
        self._cut_off = np.zeros((self.n_steps, self.n_envs))  # estimated costs after truncation
        return super()._wrapped_env(env)

    def _actions_to_learn(self, step: int, action: NDArray[Any], log_prob: th.Tensor) -> tuple[NDArray[Any], th.Tensor]:
        tracker = self._tracker
        assert tracker is not None
        if tracker.starts_next.any():
            cut = [row for row, info in enumerate(tracker.infos) if info.get("TimeLimit.truncated")]
            if cut:
                seen = np.array([tracker.infos[row]["terminal_observation"] for row in cut], np.float32)
                self._cut_off[step, cut] = self.cost_critics.predict(seen.reshape(1, len(cut), -1), which=[0])[0, :, 0]
        return super()._actions_to_learn(step, action, log_prob)

    def _after_rollout(self) -> None:
        super()._after_rollout()
        measured = self.rollout_measures.short if self.limited == "short" else self.rollout_measures.long
        known = measured[~np.isnan(measured)]
        if len(known):
            excess = float(known.mean(dtype=np.float64)) - self.limit
            self.memory["multiplier"] = np.array(max(0.0, self.multiplier + self.multiplier_rate * excess))
        self.logger.record("train/multiplier", self.multiplier)
        self._estimate(np.nan_to_num(measured).astype(float) + self.gamma * self._cut_off)

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

    def _regularised(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        cost = self._of_turns(batch, self._cost_advantages[batch.flat_index])
        if len(cost):
            cost = cost - cost.mean()
        return (self._normalised(advantages) - self.multiplier * cost) / (1 + self.multiplier)

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
        return [*super()._excluded_save_params(), "_cost_advantages", "_cost_targets", "_cut_off"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        states, tensors = super()._get_torch_save_params()
        return [*states, "cost_critics", "cost_critics.optimizer"], tensors
