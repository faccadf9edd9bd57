"""Gaps between the returns of groups of agents, step by step."""

import math

import numpy as np

from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.measures import Measure, column_names
from fair_envs.support.aliases import Columns, Flags, Floats, Ints
from fair_envs.support.parameters import checked


def cell_sums(values: Floats, cell: Ints, *, cells: int) -> tuple[Floats, Ints]:
    """Return, for each row, the sum and the number of the values in each cell.

    Args:
        values: Shape (B, N).
        cell: The cell of each value, 0 to cells - 1, shape (B, N).
        cells: The number of cells.

    Returns:
        Sums and sizes, each of shape (B, cells).
    """
    rows = len(values)
    place = (np.arange(rows)[:, np.newaxis] * cells + cell).ravel()
    sums = np.bincount(place, weights=values.ravel(), minlength=rows * cells)
    sizes = np.bincount(place, minlength=rows * cells)
    return np.asarray(sums, float).reshape(rows, cells), np.asarray(sizes, np.int64).reshape(rows, cells)


class DisparityTracker:
    r"""Tracks the disparity between the groups' returns within an episode, and each step's change of it.

    With $\bar r_{g,t}$ the mean reward of group g in step t and $R_{g,t} = \sum_{u \le t} \bar r_{g,u}$, the cost of
    step t is

    $$c_t = |D_t| - |D_{t-1}|, \quad D_t = R_{0,t} - R_{1,t}, \quad D_{-1} = 0.$$

    The costs of an episode add up to its final disparity. With more than two groups, $|D_t|$ is the largest gap between
    any two of them. If fewer than two groups have members, the gap is 0.

    Args:
        lanes: The number of lanes (B).
        groups: The number of groups (G).
        strata: The number of strata (K); the disparity is tracked in each of them separately.

    Attributes:
        returns: The groups' mean returns so far, shape (B, K, G).
        sizes: The groups' sizes in the last step, shape (B, K, G).
    """

    def __init__(self, lanes: int, *, groups: int = 2, strata: int = 1) -> None:
        self.returns: Floats = np.zeros((lanes, strata, groups))
        self.sizes: Ints = np.zeros((lanes, strata, groups), np.int64)
        self._seen = np.zeros((lanes, strata, groups), bool)

    def restart(self, lanes: Flags) -> None:
        """Begin new episodes in the masked lanes, shape (B,)."""
        self.returns[lanes] = 0
        self._seen[lanes] = False

    def update(
        self,
        reward: Floats,
        group: Ints,
        *,
        stratum: Ints | None = None,
        first: Flags | None = None,
        decided: Flags | None = None,
    ) -> Floats:
        """Return the cost of the step in each stratum, shape (B, K); takes O(B * N).

        Args:
            reward: Shape (B, N).
            group: 0 to groups - 1, shape (B, N).
            stratum: 0 to strata - 1, shape (B, N); 0 by default.
            first: Lanes whose episode begins with this step, shape (B,); none by default.
            decided: Lanes that took a step, shape (B,); all by default. All other lanes have the cost 0 and do not
                change.
        """
        if first is not None:
            self.restart(first)
        before = self.gap()
        lanes, strata, groups = self.returns.shape
        cell = group if stratum is None else stratum * groups + group
        sums, sizes = cell_sums(reward, np.maximum(cell, 0), cells=strata * groups)
        self.sizes = sizes.reshape(self.returns.shape)
        active = np.ones((lanes, 1, 1), bool) if decided is None else decided[:, np.newaxis, np.newaxis]
        present = (self.sizes > 0) & active
        self.returns += np.where(present, sums.reshape(self.returns.shape) / np.maximum(self.sizes, 1), 0)
        self._seen |= present
        cost: Floats = self.gap() - before
        return cost

    def gap(self) -> Floats:
        """Return the disparity so far, |D|, in each stratum, shape (B, K): 0 is parity."""
        highest = np.where(self._seen, self.returns, -math.inf).max(axis=-1)
        lowest = np.where(self._seen, self.returns, math.inf).min(axis=-1)
        comparable = self._seen.sum(axis=-1) > 1
        gap: Floats = np.zeros_like(highest)
        np.subtract(highest, lowest, out=gap, where=comparable)
        return gap

    def size_of_own_group(self, group: Ints, *, stratum: Ints | None = None) -> Ints:
        """Return the size, in the last step, of each agent's group within its stratum, shape (B, N)."""
        lanes = np.arange(len(group))[:, np.newaxis]
        sizes: Ints = self.sizes[lanes, 0 if stratum is None else stratum, group]
        return sizes


def strata_of(spec: FairSpec, codes: Ints) -> tuple[Ints, int]:
    """Return the stratum of each individual, shape (B, M), and the number of strata.

    A stratum is a combination of values of the legitimate factors; the index of the first factor varies slowest.
    Without a legitimate factor, there is one stratum.

    Args:
        spec: The description of the environment.
        codes: The codes of the legitimate factors, shape (B, M, factors).
    """
    sizes = [len(names) for names in spec.legitimate.values()]
    stratum = np.zeros(codes.shape[:-1], np.int64)
    for factor, size in enumerate(sizes):
        stratum = stratum * size + np.maximum(codes[..., factor], 0)
    return stratum, math.prod(sizes)


class ReturnGap(Measure):
    """The gap between the groups' mean returns since the start of the episode: 0 is parity, no upper limit.

    With more than two groups, this is the largest gap between any two of them. The measure is that of
    `DisparityTracker`, which `fair_envs.wrappers.FairnessPenalty` charges for.

    Args:
        lanes: Number of lanes (B).
        spec: The description of the environment, whose agents are themselves affected.
        conditional: Whether groups are compared within each value of the legitimate factors, and the gaps added up.

    Attributes:
        tracker: The returns of the groups.
        conditional: As given.

    Raises:
        ValueError: ``conditional`` is true and there is no legitimate factor.
    """

    blank = 0.0
    name = "gap of returns"

    def __init__(self, lanes: int, *, spec: FairSpec, conditional: bool = False) -> None:
        super().__init__(lanes)
        if checked("conditional", conditional, bool) and not spec.legitimate:
            raise ValueError("conditional must be False for an environment without legitimate factors, got True")
        self.conditional = conditional
        self._spec = spec if conditional else None
        self._names = column_names("group", *["legitimate"] * conditional)
        strata = strata_of(spec, np.zeros((1, 1, len(spec.legitimate)), np.int64))[1] if conditional else 1
        self.tracker = DisparityTracker(self.lanes, groups=len(spec.groups), strata=strata)

    def measured(self, info: Columns) -> Floats:
        """Add the rewards of a step and return the gap after it."""
        if self.reward is None:
            raise ValueError("reward must be given to a measure of returns, got none")
        group, *factors = self._reported(info)
        stratum = None if self._spec is None else strata_of(self._spec, *factors)[0]
        self.tracker.update(self.reward, group, stratum=stratum, decided=self.decided)
        gap: Floats = self.tracker.gap().sum(axis=1)
        return gap

    def forget(self, mask: Flags) -> None:
        """Clear the returns of the masked lanes."""
        self.tracker.restart(mask)


__all__ = ["DisparityTracker", "ReturnGap", "cell_sums", "strata_of"]
