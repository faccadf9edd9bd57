"""Scalarisation: convert a vector reward into one number."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import checked
from fair_envs.wrappers.transform import Batch, Setting, Transform
from fair_envs.wrappers.wrapper import Wrapper

Form = Literal["linear", "chebyshev", "gini", "maximin"]


def linear(vector: Floats, weights: Floats) -> Floats:
    """Return the weighted sum, shape (...); the vectors have shape (..., objectives)."""
    total: Floats = vector @ weights
    return total


def chebyshev(vector: Floats, weights: Floats, reference: Floats) -> Floats:
    """Return the negative largest weighted distance below the reference point; 0 at the reference point."""
    furthest: Floats = (weights * (reference - vector)).max(axis=-1)
    return 0.0 - furthest


def smallest(vector: Floats) -> Floats:
    """Return the smallest entry."""
    least: Floats = vector.min(axis=-1)
    return least


def generalised_gini(vector: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of the entries, sorted from the smallest to the largest; weights must not increase."""
    return linear(np.sort(vector, axis=-1), weights)


class Scalarisation(Transform):
    """The transform of `Scalarise`, which describes the arguments."""

    changes_reward = True
    takes_vector = True

    def __init__(
        self, form: Form = "linear", *, weights: ArrayLike | None = None, reference: ArrayLike | None = None
    ) -> None:
        self.form = checked("form", form, Form)
        if form == "maximin" and weights is not None:
            raise ValueError(f"weights must be None for form='maximin', got {weights!r}")
        if (form == "chebyshev") != (reference is not None):
            needed = "given" if form == "chebyshev" else "None"
            raise ValueError(f"reference must be {needed} for form={form!r}, got {reference!r}")
        self.weights = None if weights is None else _weights(weights, decreasing=form == "gini")
        self.reference = None if reference is None else _finite("reference", reference)

    def bind(self, setting: Setting) -> None:
        """Check that there is a weight for each objective."""
        count = setting.objectives
        for name, given in (("weights", self.weights), ("reference", self.reference)):
            if given is not None and given.shape != (count,):
                raise ValueError(f"{name} must have one entry for each of {count} objectives, got {given.size}")
        self._number = self._function(count)
        self._blank = np.zeros((setting.lanes.count, count), np.float32)

    def _function(self, count: int) -> Callable[[Floats], Floats]:
        """Return the form's function of vectors."""
        default: Floats = np.ones(count)
        if self.form == "gini":
            default = np.array([0.5**k for k in range(count)])
        weights = default if self.weights is None else self.weights
        if self.reference is not None:
            return functools.partial(chebyshev, weights=weights, reference=self.reference)
        functions: Mapping[str, Callable[..., Floats]] = {"linear": linear, "gini": generalised_gini}
        return functools.partial(functions[self.form], weights=weights) if self.form in functions else smallest

    def __call__(self, batch: Batch) -> Batch:
        """Replace the vector by a number."""
        if batch.vector is None:  # a reset
            return batch._replace(added={"fair_objectives": self._blank.copy()})
        number = np.where(batch.decided, self._number(batch.vector.astype(float)), 0.0)
        reward = np.repeat(number[:, np.newaxis], batch.reward.shape[1], axis=1)
        return batch._replace(reward=reward, vector=None, added={"fair_objectives": batch.vector.copy()})


class Scalarise(Wrapper):
    r"""Converts the vector reward of each step into one number.

    Put it above the wrapper that makes the vector. With entries $r_k$, weights $w_k$ and the sorted entries
    $r_{(1)} \le r_{(2)} \le \dots$, the number is:

    * ``"linear"``: $\sum_k w_k r_k$;
    * ``"chebyshev"``: $-\max_k w_k (z_k - r_k)$, with the reference point z, which no reward should exceed;
    * ``"gini"``: $\sum_k w_k r_{(k)}$ with $w_1 \ge w_2 \ge \dots$ (generalised Gini welfare): the worst counts most;
    * ``"maximin"``: $r_{(1)}$.

    Only the linear form is additive. With the others, the sum of an episode's numbers differs from the number of the
    summed vectors. ``info["fair_objectives"]``, float32 (objectives,), contains the vector (0 at a reset).

    Args:
        env: The environment, with any interface.
        form: The form of the number, see above.
        weights: One for each objective, at least 0, and at least one of them above 0. By default 1 for each, and for
            ``"gini"`` 1, 1/2, 1/4 and so on. Must be None for ``"maximin"``.
        reference: The reference point of ``"chebyshev"``, one number for each objective.

    Raises:
        ValueError: The weights or the reference point do not fit the form, or do not have one entry per objective.

    References:
        Van Moffaert et al., "Scalarized multi-objective reinforcement learning: novel design techniques", 2013.
        Siddique et al., "Learning fair policies in multi-objective (deep) reinforcement learning", ICML 2020.
    """

    def __init__(
        self, env: Any, form: Form = "linear", *, weights: ArrayLike | None = None, reference: ArrayLike | None = None
    ) -> None:
        super().__init__(env, Scalarisation(form, weights=weights, reference=reference))


def _weights(weights: ArrayLike, *, decreasing: bool) -> Floats:
    """Return the weights if they are at least 0, not all 0 and, if required, do not increase; else raise ValueError."""
    given = _finite("weights", weights)
    if (given < 0).any() or not (given > 0).any():
        raise ValueError(f"weights must be at least 0, and at least one above 0, got {given.tolist()}")
    if decreasing and (np.diff(given) > 0).any():
        raise ValueError(
            f"weights must not increase for form='gini': the worst entry counts most, got {given.tolist()}"
        )
    return given


def _finite(name: str, values: ArrayLike) -> Floats:
    """Return the argument's values as a flat array of finite numbers, or raise ValueError."""
    try:
        given = np.array(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {values!r}") from None
    if given.ndim != 1 or not np.isfinite(given).all():
        raise ValueError(f"{name} must be a flat list of finite numbers, got {values!r}")
    return given
