"""Results of policies in a decision environment: episode sums of the reward and of each notion's negative gap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from fair_envs.experiments.jobs import read_cell
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.support.aliases import Floats, Ints

REWARD = "R"


@dataclass(frozen=True, kw_only=True)
class Policies:
    """Policies with their results in test episodes.

    Attributes:
        names: Names of the measures: the reward, and the negative gap of each notion.
        sums: Sums over each episode, shape (policies, episodes, measures).
        steps: Lengths of the episodes, shape (policies, episodes).
    """

    names: tuple[str, ...]
    sums: Floats
    steps: Ints

    def __len__(self) -> int:
        """Return the number of policies."""
        return len(self.sums)

    def total(self, name: str) -> Floats:
        """Return each policy's mean episode sum, shape (policies,)."""
        return np.asarray(self.sums[:, :, self.names.index(name)].mean(axis=1))

    def rate(self, name: str) -> Floats:
        """Return each policy's mean per step, shape (policies,)."""
        return np.asarray(self.sums[:, :, self.names.index(name)].sum(axis=1) / self.steps.sum(axis=1))

    def half(self, which: int) -> "Policies":
        """Return the policies with the first (0) or the second (1) half of the test episodes.

        Consecutive episodes share past decisions; episodes of different halves hardly do.
        """
        middle = self.sums.shape[1] // 2
        chosen = slice(middle) if which == 0 else slice(middle, None)
        return Policies(names=self.names, sums=self.sums[:, chosen], steps=self.steps[:, chosen])

    def table(self, names: Sequence[str]) -> Floats:
        """Return the mean episode sums, shape (policies, names)."""
        return np.stack([self.total(name) for name in names], axis=1)

    @classmethod
    def joined(cls, parts: Sequence["Policies"]) -> "Policies":
        """Return the policies of all parts, which have the same measures and number of episodes."""
        return cls(
            names=parts[0].names,
            sums=np.concatenate([part.sums for part in parts]),
            steps=np.concatenate([part.steps for part in parts]),
        )

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays for `read_policies`, under names with this prefix."""
        return {f"{prefix}/names": np.array(self.names), f"{prefix}/sums": self.sums, f"{prefix}/steps": self.steps}


def read_policies(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Policies | None:
    """Return policies from the arrays of `Policies.arrays`; None if there are none with this prefix."""
    if f"{prefix}/names" not in arrays:
        return None
    names = tuple(str(name) for name in arrays[f"{prefix}/names"])
    return Policies(names=names, sums=arrays[f"{prefix}/sums"], steps=arrays[f"{prefix}/steps"])


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a cell.

    Attributes:
        cell: The cell, as plain data.
        policies: The policies of the cell that are not dominated by another one, tested again.
        misread: The same policies, measured with a history that pairs each decision with the next person; None if this
            was not tested.
        sizes: Number of remembered decisions during the training: rows of environment steps and mean size.
        seconds: CPU time of the training.
    """

    cell: Mapping[str, Any]
    policies: Policies
    misread: Policies | None
    sizes: Floats
    seconds: float


def read_found(folder: Path) -> Found:
    """Return the result in a cell's folder."""
    record, arrays = read_cell(folder, "arrays.npz")
    policies, misread, sizes = read_policies("policies", arrays), read_policies("misread", arrays), arrays["sizes"]
    if policies is None:
        raise FileNotFoundError(f"folder must hold the policies of a cell, got {folder}")
    return Found(cell=record["cell"], policies=policies, misread=misread, sizes=sizes, seconds=float(record["seconds"]))


def rank_correlation(policies: Policies, one: str, other: str) -> float:
    """Return Spearman's correlation, over policies, of two measures per step; NaN if one of them does not vary."""
    return correlated(policies.rate(one), policies.rate(other))


def correlated(one: Floats, other: Floats) -> float:
    """Return Spearman's correlation; NaN for fewer than three pairs or values that do not vary."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(spearmanr(one, other).statistic)


def over_seeds(values: Sequence[float]) -> Estimate:
    """Return the mean over training seeds with its interval; undefined seeds are excluded."""
    return mean_interval(values, undefined="omit")
