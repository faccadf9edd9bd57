"""Action massaging: decisions that a policy is unsure about give way to those that are fairer in the short term.

A massager looks at what the decision-maker sees, at what the policy says and at a short-term measure, and alters
decisions. It never reads what is hidden. After Hu, Lear and Zhang (2024), section 4.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics.long_term import Measure

Floats = NDArray[np.float64]


class PolicyOutput(NamedTuple):
    """What a policy says in B rows; what does not belong to its kind of actions is None.

    Attributes:
        probabilities: Of discrete actions, shape (B, actions); of several choices a step (a MultiDiscrete of N equal
            entries), shape (B, N, actions).
        mean: Of Gaussian actions, shape (B, D).
        std: Their standard deviations, shape (B, D).
    """

    probabilities: Floats | None = None
    mean: Floats | None = None
    std: Floats | None = None


class Massager(Protocol):
    """Alters decisions that the policy is unsure about so that a short-term measure falls."""

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Measure, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions, fresh, of the shape of ``action``.

        Args:
            observation: What is seen, shape (B, ...).
            action: What was sampled, shape (B, ...); it stays as it is.
            policy: What the policy says there.
            short: The measure after the step before; it is asked what it would become, and stays as it is.
            threshold: Says which decisions are unsure.
        """
