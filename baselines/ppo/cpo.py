"""Constrained policy optimisation (Achiam et al., ICML 2017): trust-region steps under a limit on a measure."""

import copy
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch as th
from sb3_contrib.common.utils import conjugate_gradient_solver, flat_grad
from stable_baselines3.common.distributions import Distribution, kl_divergence
from torch.nn import functional

from fair_envs.baselines.ppo.cost_ppo import CostPPO
from fair_envs.baselines.ppo.minibatch import Minibatch
from fair_envs.baselines.ppo.ppo import mean
from fair_envs.baselines.ppo.regularised import mean_defined
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegative, NonNegativeInt, Positive, PositiveInt, UnitInterval, checked

Case = Literal["unconstrained", "constrained", "recovery"]

ROUNDING = 1e-6  # relative error of numbers that conjugate gradients find in single precision


# The quadratic problem ------------------------------------------------------------------------------------------------


class Quadratic(NamedTuple):
    """The numbers that define a step of constrained policy optimisation.

    With g and b the gradients of the objective and of the constraint, and H the matrix of the trust region:

    Attributes:
        objective: ``g^T H^-1 g`` (q in the paper).
        both: ``g^T H^-1 b`` (r).
        constraint: ``b^T H^-1 b`` (s).
        excess: How far the constrained value is above its limit (c); negative: below it.
        size: Radius of the trust region (delta).
    """

    objective: float
    both: float
    constraint: float
    excess: float
    size: float


class Step(NamedTuple):
    """A step ``along * H^-1 g + across * H^-1 b``.

    Attributes:
        along: Coefficient of the objective's natural gradient.
        across: Coefficient of the constraint's natural gradient.
        case: ``"unconstrained"``: the constraint changes nothing; ``"constrained"``: the step ends at the limit;
            ``"recovery"``: no step in the trust region reaches the limit, and the one with the smallest constrained
            value is taken.
    """

    along: float
    across: float
    case: Case


def best_step(problem: Quadratic) -> Step:
    """Return the step x that maximises ``g^T x`` with ``c + b^T x <= 0`` and ``x^T H x / 2 <= delta``.

    This is the solution of Eq. 11 and 12 of the paper, without its dual problem. If the largest step along the
    objective's natural gradient meets the constraint, it is the solution. Otherwise the constraint is an equality: the
    step has the part ``-(c / s) H^-1 b``, and the rest of the trust region, ``2 delta - c^2 / s``, is used along the
    objective's natural gradient without its part along ``H^-1 b``. If no step in the trust region meets the
    constraint, the result is the recovery step, Eq. 14.
    """
    q, r, s, c, delta = problem
    along = np.sqrt(2 * delta / q) if q > 0 else 0.0
    if s <= 0 or c + along * r <= 0:
        return Step(float(along), 0.0, "unconstrained")
    left = 2 * delta - c**2 / s
    if left < 0 and c > 0:
        return Step(0.0, float(-np.sqrt(2 * delta / s)), "recovery")
    rest = q - r**2 / s  # at least 0 but for rounding
    along = np.sqrt(max(left, 0.0) / rest) if rest > ROUNDING * q else 0.0
    return Step(float(along), float(-c / s - along * r / s), "constrained")


# The learner ----------------------------------------------------------------------------------------------------------


class CPO(CostPPO):
    """Constrained policy optimisation: the best trust-region step that keeps the mean of a measure below a limit.

    The policy's step solves a linear problem in a trust region, see `best_step`, with conjugate gradients, and a line
    search shortens it until the divergence of the policies is at most ``max_kl`` and the predicted measure is not above
    its limit, or above what it was. If the limit is met, the predicted objective must also improve. Where the
    constraint changes nothing, the step is that of TRPO in sb3-contrib. Rollouts and the critic are those of PPO; the
    critic takes ``n_epochs`` passes over each rollout, as TRPO's does.

    The constrained value is the mean of the measure over the rollout's steps, where it is defined. Its gradient comes
    from the advantages of the measure as a cost, see `CostPPO`. All agents of a lane share its cost, so their parts of
    the gradient add up. Logged are ``train/kl``, ``train/measured`` (the mean of the measure), ``train/excess`` (that
    minus the limit), ``train/step`` (the share of the step after the line search, 0: none) and ``train/recovery`` (1 if
    no step reached the limit).

    Args:
        args: Arguments of `stable_baselines3.PPO`. Separate networks of groups take one step together.
        limit: Upper limit of the mean; infinity: no limit.
        max_kl: Size of the trust region: the largest mean divergence from the policy before.
        cg_steps: Steps of conjugate gradients.
        cg_damping: What is added to the diagonal of the trust region's matrix.
        line_search_steps: Largest number of steps that are tried.
        line_search_factor: Factor by which the next one is shorter.
        kwargs: Keyword arguments of `CostPPO`. PPO's own settings of the policy loss, such as ``clip_range`` and
            ``ent_coef``, are not used.

    Raises:
        ValueError: An argument is outside its range, or the environment's observations are not arrays.
    """

    def __init__(
        self,
        *args: Any,
        limit: float = 0.05,
        max_kl: float = 0.01,
        cg_steps: int = 15,
        cg_damping: float = 0.1,
        line_search_steps: int = 10,
        line_search_factor: float = 0.8,
        **kwargs: Any,
    ) -> None:
        if not limit >= 0:
            raise ValueError(f"limit must be at least 0, got {limit!r}")
        self.limit = float(limit)
        self.max_kl = float(checked("max_kl", max_kl, Positive))
        self.cg_steps = checked("cg_steps", cg_steps, PositiveInt)
        self.cg_damping = float(checked("cg_damping", cg_damping, NonNegative))
        self.line_search_steps = checked("line_search_steps", line_search_steps, NonNegativeInt)
        self.line_search_factor = float(checked("line_search_factor", line_search_factor, UnitInterval))
        super().__init__(*args, **kwargs)

    def cost(self) -> Floats:
        """Return the measure after each step, 0 where it is undefined."""
        return np.nan_to_num(self.rollout_measures.short).astype(float)

    @property
    def excess(self) -> float:
        """The mean of the measure in the rollout minus the limit; minus infinity if it is nowhere defined."""
        found = mean_defined(self.rollout_measures.short)
        return -np.inf if np.isnan(found) else found - self.limit

    def train(self) -> None:
        """Take one step of the policy, and update the critics on the rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self._optimizers())
        (batch,) = self.rollout_buffer.get(None)
        turns = self._turns_of(batch)
        actor = self._update_policy(turns) if len(turns.old_log_prob) else []
        losses = [self._update_critics(part, actor) for _ in range(self.n_epochs) for part in self._batches()]
        self._n_updates += 1
        self.logger.record("train/value_loss", float(np.mean(losses)))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _batches(self) -> Any:
        return self.rollout_buffer.get(self.batch_size)

    # ------------------------------------------------------------------------------------------------ the policy

    def _turns_of(self, batch: Minibatch) -> "Turns":
        """Return the samples with a turn, of the whole rollout."""
        actions = self._of_turns(batch, batch.actions)
        advantages, cost = self._of_turns(batch, batch.advantages), self._costs_of_turns(batch)
        return Turns(
            observations=self._of_turns(batch, batch.observations),
            actions=actions.long().flatten() if isinstance(self.action_space, gym.spaces.Discrete) else actions,
            old_log_prob=self._of_turns(batch, batch.old_log_prob),
            advantages=self._normalised(advantages),
            # each step of a lane has one cost, on which all its rows have an effect
            costs=(cost - mean(cost)) * (len(cost) / (self.n_steps * self._lanes)),
        )

    @property
    def _lanes(self) -> int:
        return len(self.recorder.starts_next)

    def _update_policy(self, turns: "Turns") -> list[th.nn.Parameter]:
        """Take the policy's step, and return the parameters that it depends on."""
        with th.no_grad():
            before = copy.copy(self._distribution(turns.observations))
        now = self._distribution(turns.observations)
        objective, cost = turns.surrogates(now)
        actor, slope = actor_parameters(self.policy, kl_divergence(now, before).mean())

        def product(vector: th.Tensor, retain_graph: bool = True) -> th.Tensor:
            return flat_grad((slope * vector).sum(), actor, retain_graph=retain_graph) + self.cg_damping * vector

        ascent, toll = flat_grad(objective, actor, retain_graph=True), flat_grad(cost, actor, retain_graph=True)
        step = self._step(ascent, toll, product)
        share = self._line_search(actor, step, turns, before, (objective, cost))
        self.logger.record("train/measured", self.excess + self.limit)
        self.logger.record("train/excess", self.excess)
        self.logger.record("train/step", share)
        return actor

    def _step(self, ascent: th.Tensor, toll: th.Tensor, product: Callable[[th.Tensor], th.Tensor]) -> th.Tensor:
        """Return the best step of the parameters, given the gradients of the objective and of the cost."""
        natural = conjugate_gradient_solver(product, ascent, max_iter=self.cg_steps)
        limited = np.isfinite(self.excess) and bool(toll.any())
        price = conjugate_gradient_solver(product, toll, max_iter=self.cg_steps) if limited else th.zeros_like(toll)
        problem = Quadratic(
            objective=float(natural @ product(natural)),
            both=float(ascent @ price),
            constraint=float(price @ product(price)) if limited else 0.0,
            excess=self.excess,
            size=self.max_kl,
        )
        found = best_step(problem)
        self.logger.record("train/recovery", float(found.case == "recovery"))
        return found.along * natural + found.across * price

    def _line_search(
        self,
        actor: list[th.nn.Parameter],
        step: th.Tensor,
        turns: "Turns",
        before: Distribution,
        surrogates: tuple[th.Tensor, th.Tensor],
    ) -> float:
        """Set the parameters after the longest allowed part of a step, and return that part; 0: none was allowed."""
        origin = [parameter.detach().clone() for parameter in actor]
        parts = [
            part.view_as(own) for part, own in zip(th.split(step, [own.numel() for own in origin]), origin, strict=True)
        ]
        allowed, share = max(-self.excess, 0.0), 1.0
        with th.no_grad():
            for _ in range(self.line_search_steps):
                for parameter, own, part in zip(actor, origin, parts, strict=True):
                    parameter.copy_(own + share * part)
                now = self._distribution(turns.observations)
                divergence = kl_divergence(now, before).mean()
                objective, cost = turns.surrogates(now)
                improves = self.excess > 0 or objective > surrogates[0]
                if divergence <= self.max_kl and improves and cost - surrogates[1] <= allowed:
                    self.logger.record("train/kl", float(divergence))
                    self.logger.record("train/policy_objective", float(objective))
                    return share
                share *= self.line_search_factor
            for parameter, own in zip(actor, origin, strict=True):
                parameter.copy_(own)
        return 0.0

    def _distribution(self, observations: th.Tensor) -> Distribution:
        return self.policy.get_distribution(observations)  # type: ignore[no-any-return, operator]

    # ----------------------------------------------------------------------------------------------- the critics

    def _update_critics(self, batch: Minibatch, actor: list[th.nn.Parameter]) -> float:
        """Take one gradient step of the critics; parameters that they share with the policy do not change."""
        values = self.policy.predict_values(batch.observations).flatten()  # type: ignore[operator]
        loss = functional.mse_loss(batch.returns, values)
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for parameter in actor:
            parameter.grad = None
        self.policy.optimizer.step()
        self._after_minibatch(batch)
        return float(loss.item())


class Turns(NamedTuple):
    """The samples of a rollout that the policy learns from, tensors of shape (n, ...).

    Attributes:
        observations: The observations.
        actions: The actions.
        old_log_prob: Logarithms of the actions' probabilities.
        advantages: Normalised advantages.
        costs: Centred advantages of the cost; their mean is the predicted change of the constrained value.
    """

    observations: th.Tensor
    actions: th.Tensor
    old_log_prob: th.Tensor
    advantages: th.Tensor
    costs: th.Tensor

    def surrogates(self, distribution: Distribution) -> tuple[th.Tensor, th.Tensor]:
        """Return the predicted improvement and the predicted change of the cost under a policy's distribution."""
        ratio = th.exp(distribution.log_prob(self.actions) - self.old_log_prob)
        return (self.advantages * ratio).mean(), (self.costs * ratio).mean()


def actor_parameters(policy: Any, divergence: th.Tensor) -> tuple[list[th.nn.Parameter], th.Tensor]:
    """Return the parameters that a policy's distribution depends on, and the divergence's gradient, as one vector."""
    named = [parameter for name, parameter in policy.named_parameters() if "value" not in name]
    slopes = th.autograd.grad(divergence, named, create_graph=True, allow_unused=True)
    found = [(own, slope.reshape(-1)) for own, slope in zip(named, slopes, strict=True) if slope is not None]
    return [own for own, _ in found], th.cat([slope for _, slope in found])


__all__ = ["CPO", "Quadratic", "Step", "best_step"]
