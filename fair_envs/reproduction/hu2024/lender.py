"""A scripted lender that considers only the change of one step, for the study on long-term fairness."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.ppo.massaging import ROUNDING
from fair_envs.envs.lending.policies import Lender
from fair_envs.metrics.populations import wasserstein
from fair_envs.support.aliases import Flags, Floats


class ClosingLender(Lender):
    """Lends only if the loan is expected to bring the groups' true scores closer together in that step.

    It shows the limit of considering one step, as the regularisation of F-PPO does. With known distributions, the
    1-Wasserstein distance falls from 1 to about 0.7. There, no single loan helps any more, and no more loans are
    granted. Lending to all applicants ends with a smaller distance.
    """

    def acceptance(self, observation: NDArray[Any]) -> Floats:
        """Return 1 if the expected distance falls, otherwise 0, shape (B, groups, scores)."""
        shares = np.asarray(self.oracle()["distribution"])
        before = wasserstein(shares[:, 0], shares[:, 1])[:, np.newaxis, np.newaxis]
        after = [self._distance_after(shares, step) for step in (-1, 1)]
        repays = self.rules.repayment
        falls: Flags = (1 - repays) * after[0] + repays * after[1] < before - ROUNDING
        return falls.astype(np.float64)

    def _distance_after(self, shares: Floats, step: int) -> Floats:
        """Return the distance after a loan to each group and score that moves it by a step, (B, groups, scores)."""
        lanes, groups, scores = shares.shape
        moved = np.broadcast_to(shares[:, np.newaxis, np.newaxis], (lanes, groups, scores, groups, scores)).copy()
        for group, score in np.ndindex(groups, scores):
            mass = np.minimum(self.rules.params.mass_shift, shares[:, group, score])
            moved[:, group, score, group, score] -= mass
            moved[:, group, score, group, min(max(score + step, 0), scores - 1)] += mass
        return np.asarray(wasserstein(moved[..., 0, :], moved[..., 1, :]))
