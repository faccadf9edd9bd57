r"""Functions F of expected returns that a policy maximises: parity, equal benefit rates, welfare, a Lagrangian.

The arguments of F are J_r, the mean reward of a step, and for each group g the means J_bg and J_dg of its benefit and
its demand in a step. B_g = J_bg / J_dg is the group's rate, see `fair_envs.metrics.rates`. Since the gradient of F is

$$\nabla F = \sum_k \frac{\partial F}{\partial J_k} \nabla J_k,$$

a policy-gradient method maximises F with the advantage $\sum_k \partial F / \partial J_k \, A_k$, where A_k is the
advantage of stream k.

Rates are in units of `unit` if they are returns. The fair part of F is multiplied by `unit`, the mean absolute reward
of a step, which is treated as a constant. Weights and limits therefore have no unit: a weight of 1 means that a gap of
1 costs as much as one typical reward per step.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch as th

from fair_envs.support.parameters import NonNegative, Positive, Range, UnitInterval, checked

BETA = 20.0
"""Sharpness of soft maxima and minima; the value of Xu et al. (2024)."""

TINY = 0.01
"""Rates below this are continued linearly in logarithms and powers, so that their gradient stays finite."""

Sharpness = Annotated[float, Range(1e-6)]

Aversion = Annotated[float, Range(0.0, 20.0)]
"""Above 20, the utility of a small rate exceeds every other number, and `Maxmin` says the same."""


class Streams:
    """The expected values J of the streams, a vector with gradient.

    Args:
        means: J_r, then J_b of each group, J_d of each group, and the mean cost of a step, shape (2 + 2 G,).
        groups: Number of groups (G).
        unit: The mean absolute reward of a step; must be positive.
        sizes: Shares of the groups in all demands, shape (G,), which weight groups in sums of utilities.
        of_returns: Whether rates are returns, in units of rewards.
    """

    def __init__(self, means: th.Tensor, *, groups: int, unit: float, sizes: th.Tensor, of_returns: bool) -> None:
        self.reward, self.cost = means[0], means[-1]
        benefit, demand = means[1 : 1 + groups], means[1 + groups : 1 + 2 * groups]
        self.known = demand > 0
        self.rates = benefit[self.known] / demand[self.known] / (unit if of_returns else 1.0)
        self.sizes = sizes[self.known] / sizes[self.known].sum()
        self.unit = unit


@dataclass(frozen=True)
class Objective:
    """A function F of expected returns; subclasses define it."""

    def value(self, of: Streams) -> th.Tensor:
        """Return F, a scalar."""
        raise NotImplementedError

    def gradient(self, means: th.Tensor, **about: Any) -> tuple[float, th.Tensor]:
        """Return F and dF/dJ of each stream, see `Streams` for the arguments; 0 for groups without demand."""
        point = means.detach().double().clone().requires_grad_()
        found = self.value(Streams(point, **about))
        (slope,) = th.autograd.grad(found, point, allow_unused=True)
        return float(found.detach()), th.zeros_like(point) if slope is None else slope


@dataclass(frozen=True)
class Reward(Objective):
    """F = J_r: the reward only."""

    def value(self, of: Streams) -> th.Tensor:
        """Return the reward."""
        return of.reward


def spread(rates: th.Tensor) -> th.Tensor:
    """Return the largest difference between two rates, 0 for fewer than two."""
    return rates.max() - rates.min() if len(rates) > 1 else rates.sum() * 0


@dataclass(frozen=True)
class Parity(Objective):
    """F = J_r - alpha * unit * spread(B), where the spread is the largest difference between two groups' rates.

    Near parity the absolute value is rounded off: ``sqrt(spread^2 + smoothing^2) - smoothing``. Otherwise its gradient
    would not vanish at parity, and a large alpha would make the policy jump from one side to the other.

    Attributes:
        alpha: Weight of the spread.
        smoothing: Spread below which the penalty is about quadratic.
    """

    alpha: float = 0.5
    smoothing: float = 0.02

    def __post_init__(self) -> None:
        """Check the settings."""
        checked("alpha", self.alpha, NonNegative)
        checked("smoothing", self.smoothing, NonNegative)

    def value(self, of: Streams) -> th.Tensor:
        """Return the reward minus the weighted spread."""
        gap = spread(of.rates)
        rounded = th.sqrt(gap**2 + self.smoothing**2) - self.smoothing if self.smoothing else gap
        return of.reward - self.alpha * of.unit * rounded


@dataclass(frozen=True)
class BenefitRate(Objective):
    """F = J_r - alpha * unit * (softmax(B) - softmin(B))^2: ELBERT of Xu et al. (ICML 2024).

    softmax(B) is ``log(sum(exp(beta B))) / beta`` and softmin its counterpart. With two groups, the difference is
    exact: (B_1 - B_2)^2.

    Attributes:
        alpha: Weight of the squared difference.
        beta: Sharpness of the soft maximum.
    """

    alpha: float = 2.0
    beta: float = BETA

    def __post_init__(self) -> None:
        """Check the settings."""
        checked("alpha", self.alpha, NonNegative)
        checked("beta", self.beta, Sharpness)

    def bias(self, rates: th.Tensor) -> th.Tensor:
        """Return the difference between the soft maximum and the soft minimum of the rates."""
        if len(rates) < 3:
            return spread(rates)
        return (th.logsumexp(self.beta * rates, 0) + th.logsumexp(-self.beta * rates, 0)) / self.beta

    def value(self, of: Streams) -> th.Tensor:
        """Return the reward minus the weighted squared difference."""
        return of.reward - self.alpha * of.unit * self.bias(of.rates) ** 2


@dataclass(frozen=True)
class Lagrangian(Objective):
    """F = (J_r - m * unit * (measure - limit)) / (1 + m) for a multiplier m that a controller sets.

    Attributes:
        limit: The upper limit of the measure.
        multiplier: m, at least 0.
        of_rates: Whether the measure is the spread of the rates; otherwise it is the mean of the cost stream.
    """

    limit: float = 0.05
    multiplier: float = 0.0
    of_rates: bool = True

    def __post_init__(self) -> None:
        """Check the settings."""
        checked("limit", self.limit, NonNegative)
        checked("multiplier", self.multiplier, NonNegative)

    def value(self, of: Streams) -> th.Tensor:
        """Return the Lagrangian."""
        measured = spread(of.rates) if self.of_rates else of.cost
        return (of.reward - self.multiplier * of.unit * (measured - self.limit)) / (1 + self.multiplier)


@dataclass(frozen=True)
class Welfare(Objective):
    """F = (1 - weight) * J_r + weight * unit * W(B), with a welfare W of the groups' rates.

    Attributes:
        weight: Weight of the welfare, from 0 (reward only) to 1 (welfare only).
    """

    weight: float = 0.5

    def __post_init__(self) -> None:
        """Check the settings."""
        checked("weight", self.weight, UnitInterval)

    def welfare(self, rates: th.Tensor, sizes: th.Tensor) -> th.Tensor:
        """Return W.

        Args:
            rates: Rates of the groups, shape (G,).
            sizes: Shares of the groups, which sum to 1, shape (G,).
        """
        raise NotImplementedError

    def value(self, of: Streams) -> th.Tensor:
        """Return the mixture of reward and welfare."""
        fair = self.welfare(of.rates, of.sizes) if len(of.rates) else of.reward * 0
        return (1 - self.weight) * of.reward + self.weight * of.unit * fair


@dataclass(frozen=True)
class Gini(Welfare):
    """Generalised Gini welfare (Siddique, Weng and Zimmer, ICML 2020): sum_i w_i B_(i), with B sorted ascending.

    The weights decrease, w_i proportional to ratio^i, and sum to 1: a gain of the worst-off group counts most.

    Attributes:
        ratio: Weight of a group divided by that of the next worse-off group, below 1.
    """

    ratio: float = 0.5

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checked("ratio", self.ratio, UnitInterval)

    def welfare(self, rates: th.Tensor, sizes: th.Tensor) -> th.Tensor:
        """Return the generalised Gini welfare."""
        weights = th.tensor([self.ratio**k for k in range(len(rates))], dtype=rates.dtype)
        return (weights / weights.sum() * rates.sort().values).sum()


@dataclass(frozen=True)
class Nash(Welfare):
    """Nash welfare, or proportional fairness: sum_g n_g log(B_g), with n_g the group's share."""

    def welfare(self, rates: th.Tensor, sizes: th.Tensor) -> th.Tensor:
        """Return the mean logarithm of the rates."""
        return (sizes * continued(th.log, rates, slope=1 / TINY)).sum()


@dataclass(frozen=True)
class AlphaFair(Welfare):
    """Alpha-fairness: sum_g n_g B_g^(1 - a) / (1 - a). a = 0 is the sum, 1 is Nash welfare, large a is maxmin.

    Attributes:
        a: Aversion to inequality, between 0 and 20; for more, use `Maxmin`.
    """

    a: float = 2.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checked("a", self.a, Aversion)

    def welfare(self, rates: th.Tensor, sizes: th.Tensor) -> th.Tensor:
        """Return the mean utility of the rates."""
        if self.a == 1:
            return Nash().welfare(rates, sizes)
        power = 1 - self.a
        return (sizes * continued(lambda x: x**power / power, rates, slope=TINY**-self.a)).sum()


@dataclass(frozen=True)
class Maxmin(Welfare):
    """The smallest rate (Rawls), as the soft minimum ``-log(mean(exp(-beta B))) / beta``.

    Attributes:
        beta: Sharpness of the soft minimum.
    """

    beta: float = BETA

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checked("beta", self.beta, Positive)

    def welfare(self, rates: th.Tensor, sizes: th.Tensor) -> th.Tensor:
        """Return the soft minimum of the rates."""
        return (math.log(len(rates)) - th.logsumexp(-self.beta * rates, 0)) / self.beta


def continued(function: Callable[[th.Tensor], th.Tensor], rates: th.Tensor, *, slope: float) -> th.Tensor:
    """Return a function of the rates, continued below `TINY` by the line with that slope."""
    least = th.full_like(rates, TINY)
    return function(th.maximum(rates, least)) + slope * th.minimum(rates - least, th.zeros_like(rates))


Name = Literal["parity", "elbert", "lagrangian", "ggf", "nash", "alpha-fair", "maxmin"]

OBJECTIVES: Mapping[str, type[Objective]] = {
    "parity": Parity,
    "elbert": BenefitRate,
    "lagrangian": Lagrangian,
    "ggf": Gini,
    "nash": Nash,
    "alpha-fair": AlphaFair,
    "maxmin": Maxmin,
}
"""The functions by the name of their method."""


# The multiplier -------------------------------------------------------------------------------------------------------


@dataclass
class Controller:
    """A PID controller of a Lagrange multiplier (Stooke, Achiam and Abbeel, 2020).

    The multiplier is max(0, proportional * e + integral * I + derivative * d). Here, e is the excess of the measure
    over its limit, I the sum of all e so far, at least 0, and d the increase of the measure since the last rollout, at
    least 0.

    Attributes:
        proportional: K_P.
        integral: K_I.
        derivative: K_D.
        state: I and the last measured value.
    """

    proportional: float = 5.0
    integral: float = 0.1
    derivative: float = 0.0
    state: list[float] = field(default_factory=lambda: [0.0, math.nan])

    def __post_init__(self) -> None:
        """Check the gains."""
        for name in ("proportional", "integral", "derivative"):
            checked(name, getattr(self, name), NonNegative)

    def __call__(self, measured: float, limit: float) -> float:
        """Return the multiplier after a rollout in which the measure had a value."""
        total, before = self.state
        excess = measured - limit
        total = max(0.0, total + excess)
        rise = 0.0 if math.isnan(before) else max(0.0, measured - before)
        self.state = [total, measured]
        return max(0.0, self.proportional * excess + self.integral * total + self.derivative * rise)
