"""The cost of disparity as it arises, step by step, and the penalty that takes it from the rewards."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fair_envs.metrics.gaps import Notions
from fair_envs.metrics.group import Groups
from fair_envs.metrics.history import Memory
from fair_envs.metrics.notions import canonical_name
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import NonNegative, checked
from fair_envs.wrappers.gaps import GapPenalty, Undefined
from fair_envs.wrappers.transform import Batch, Setting, Transform, need_agents, strata
from fair_envs.wrappers.wrapper import Wrapper


def cell_sums(values: Floats, cell: Ints, *, cells: int) -> tuple[Floats, Ints]:
    """Return the sum of the values in each cell and how many there are, row by row.

    Args:
        values: Shape (B, N).
        cell: 0 .. cells - 1, shape (B, N).
        cells: How many cells.

    Returns:
        Sums and sizes, each of shape (B, cells).
    """
    rows = len(values)
    place = (np.arange(rows)[:, np.newaxis] * cells + cell).ravel()
    sums = np.bincount(place, weights=values.ravel(), minlength=rows * cells)
    sizes = np.bincount(place, minlength=rows * cells)
    return np.asarray(sums, float).reshape(rows, cells), np.asarray(sizes, np.int64).reshape(rows, cells)


class DisparityTracker:
    r"""Follows how far the groups' returns drift apart within an episode, and what each step adds to it.

    With $\bar r_{g,t}$ the mean reward of group g in step t and $R_{g,t} = \sum_{u \le t} \bar r_{g,u}$,

    $$c_t = |D_t| - |D_{t-1}|, \quad D_t = R_{0,t} - R_{1,t}, \quad D_{-1} = 0,$$

    so that the costs of an episode add up to the disparity that it ends with. With more than two groups $|D_t|$ is the
    largest gap between any two. Where fewer than two groups have members there is nobody to compare: the gap is 0.

    Args:
        lanes: How many lanes (B).
        groups: How many groups (G).
        strata: How many strata the disparity is followed in, one by one (K).

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
        """Return what the step costs in each stratum, shape (B, K); O(B * N).

        Args:
            reward: Shape (B, N).
            group: 0 .. groups - 1, shape (B, N).
            stratum: 0 .. strata - 1, shape (B, N); 0 by default.
            first: Lanes whose episode begins with this step, shape (B,); none by default.
            decided: Lanes that took a step, shape (B,); all by default. The others cost 0 and are left as they are.
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


class Penalty(Transform):
    """Takes from every agent's reward what the step adds to the disparity, times ``alpha`` and its group's size.

    The cost of a step is the growth of the absolute difference between the groups' mean returns so far (see
    `DisparityTracker`): positive when it widens the gap, negative when it narrows it. An episode's costs add up to the
    disparity it ends with. ``info["fair_penalty_cost"]``, float64, is the step's cost before ``alpha`` and group sizes.

    Args:
        notions: ``"demographic_parity"`` compares whole groups; ``"conditional_parity"`` compares them within each value
            of the legitimate factors and adds up the costs.
        alpha: Weight of the cost, at least 0: 0 leaves the rewards as they are.
        times_group_size: Whether an agent's cost is multiplied by the size of its group (within its stratum). Its own
            reward moves its group's mean by 1/size of itself; with the factor, alpha means what it means in
            `fair_envs.baselines.FairPPO`: at 1 an agent of the group ahead, of two,
            gains nothing from its own rewards.
    """

    changes_reward = True
    once = "a second FairnessPenalty would count the first one's as disparity: choose alpha instead"
    wrapper = "FairnessPenalty"

    def __init__(
        self, *, notions: str = "demographic_parity", alpha: float = 1.0, times_group_size: bool = True
    ) -> None:
        name = canonical_name("notions (without a history)", notions, ("demographic_parity", "conditional_parity"))
        self.conditional, self.alpha = name == "conditional_parity", checked("alpha", alpha, NonNegative)
        self.times_group_size = checked("times_group_size", times_group_size, bool)

    def bind(self, setting: Setting) -> None:
        """Follow the groups of these agents."""
        notions = "consistency" if setting.spec.amounts else "demographic_parity"
        instead = (
            f"Give it a history of decisions: FairnessPenalty(env, notions={notions!r}, history=SlidingWindow(500))"
        )
        need_agents(setting, "FairnessPenalty", instead=instead)
        self._spec = setting.spec
        strata = [len(codes) for codes in self._spec.legitimate.values()] if self.conditional else []
        self._tracker = DisparityTracker(setting.lanes.count, groups=len(self._spec.groups), strata=math.prod(strata))

    def __call__(self, batch: Batch) -> Batch:
        """Take the step's cost from the rewards."""
        group = batch.facts["group"]
        stratum = strata(self._spec, batch.facts)[0] if self.conditional else None
        costs = self._tracker.update(batch.reward, group, stratum=stratum, first=batch.first, decided=batch.decided)
        cost = costs.sum(axis=1)
        taken = self.alpha * cost[:, np.newaxis]
        if self.times_group_size:
            taken = taken * self._tracker.size_of_own_group(group, stratum=stratum)
        added: Mapping[str, Floats] = {"fair_penalty_cost": cost}
        return batch._replace(reward=batch.reward - taken, added=added)


class FairnessPenalty(Wrapper):
    """Takes what is unfair from the rewards: disparity of what agents earn or, with a ``history``, of decisions.

    Without a history see `Penalty`, with one `GapPenalty`.

    Args:
        env: The environment, of any interface.
        notions: ``"demographic_parity"`` or ``"conditional_parity"``, see `Penalty`. With a history: one notion on
            decisions, or several, by name, by alias or as objects.
        groups: With a history, the groups that notions given by name compare, see `FairnessObjectives`.
        alpha: Weight of the cost, at least 0; of each notion, if there are several.
        times_group_size: See `Penalty`; without effect if there is a history.
        history: How long decisions count: `fair_envs.metrics.SlidingWindow`, ``Discounted`` or ``Full``.
        keep: Whether the history keeps decisions when an episode ends.
        undefined: What a gap counts as that a notion leaves undefined, see `FairnessObjectives`.

    Raises:
        ValueError: An option, or a notion that does not fit the environment.
    """

    def __init__(
        self,
        env: Any,
        *,
        notions: Notions = "demographic_parity",
        groups: Groups = None,
        alpha: float | Sequence[float] = 1.0,
        times_group_size: bool = True,
        history: Memory | None = None,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        transform: Transform
        if history is None:
            if groups is not None:
                raise ValueError(f"groups needs a history; without one, fair_spec.groups are compared, got {groups!r}")
            transform = Penalty(notions=notions, alpha=alpha, times_group_size=times_group_size)  # type: ignore[arg-type]
        else:
            transform = GapPenalty(notions, history, groups=groups, alpha=alpha, keep=keep, undefined=undefined)
        super().__init__(env, transform)
