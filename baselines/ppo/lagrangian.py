"""PPO with a constraint on the mean unfairness of its decisions, enforced by a learned Lagrange multiplier."""

from typing import Any, Literal

import numpy as np
import torch as th

from fair_envs.baselines.ppo.cost_ppo import CostPPO
from fair_envs.baselines.ppo.minibatch import Minibatch
from fair_envs.baselines.ppo.regularised import mean_defined
from fair_envs.support.aliases import Floats, Floats32
from fair_envs.support.parameters import NonNegative, Positive, checked

Limited = Literal["short", "long"]


class PPOLagrangian(CostPPO):
    """PPO that maximises its returns subject to a limit on the mean of a fairness measure over steps.

    The limit has a multiplier m, at least 0, which is updated with the excess after each rollout:
    ``m = max(0, m + multiplier_rate * (mean - limit))``. The policy is updated with the advantages
    ``(A - m * A_c) / (1 + m)``, where A_c are the centred advantages of the measure as a cost, estimated with a
    separate critic. The method is that of Ray, Achiam and Amodei (2019), *Benchmarking Safe Exploration in Deep
    Reinforcement Learning*. The multiplier's update is the integral part of Stooke, Achiam and Abbeel (2020),
    *Responsive Safety in Reinforcement Learning by PID Lagrangian Methods*.
    Steps for which the measure is undefined have no cost and are excluded from the mean. The multiplier is logged as
    ``train/multiplier``.

    Args:
        args: Arguments of `stable_baselines3.PPO`.
        limit: Upper limit of the mean; infinity: no limit, which is PPO.
        limited: The measure that is limited.
        multiplier: Initial multiplier, at least 0.
        multiplier_rate: Learning rate of the multiplier.
        kwargs: Keyword arguments of `CostPPO`.

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

    @property
    def multiplier(self) -> float:
        """Current price of a unit of the cost, in standard deviations of the advantages."""
        return float(self.memory.get("multiplier", self.first_multiplier))

    @property
    def limited_values(self) -> Floats32:
        """The limited measure after each step of the rollout, shape (steps, rows); NaN where it is undefined."""
        return self.rollout_measures.short if self.limited == "short" else self.rollout_measures.long

    def cost(self) -> Floats:
        """Return the limited measure, 0 where it is undefined."""
        return np.nan_to_num(self.limited_values).astype(float)

    def _after_rollout(self) -> None:
        super()._after_rollout()
        excess = mean_defined(self.limited_values) - self.limit
        if not np.isnan(excess):
            self.memory["multiplier"] = np.array(max(0.0, self.multiplier + self.multiplier_rate * excess))
        self.logger.record("train/multiplier", self.multiplier)

    def _regularised(self, batch: Minibatch, advantages: th.Tensor) -> th.Tensor:
        cost = self._costs_of_turns(batch)
        if len(cost):
            cost = cost - cost.mean()
        return (self._normalised(advantages) - self.multiplier * cost) / (1 + self.multiplier)
