"""Fairness penalties: subtract each step's increase in group disparity from the rewards."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fair_envs.metrics.disparity import DisparityTracker, strata_of
from fair_envs.metrics.gaps import Notions
from fair_envs.metrics.group import Groups
from fair_envs.metrics.history import Memory
from fair_envs.metrics.notions import canonical_name
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegative, checked
from fair_envs.wrappers.following import Measured
from fair_envs.wrappers.gaps import Charge, GapPenalty, Undefined
from fair_envs.wrappers.transform import Batch, Setting, Transform, need_agents
from fair_envs.wrappers.wrapper import Wrapper


class Penalty(Transform):
    """Subtracts the increase in group disparity, scaled by ``alpha`` and the group size, from each agent's reward.

    The cost of a step is the change of the absolute difference between the groups' mean returns so far (see
    `DisparityTracker`): positive if the gap grows, negative if it shrinks. The costs of an episode add up to its final
    disparity. ``info["fair_penalty_cost"]``, float64, is the step's cost before it is scaled by ``alpha`` and group
    sizes.

    Args:
        notions: ``"demographic_parity"`` (None) compares whole groups; ``"conditional_parity"`` compares groups within
            each value of the legitimate factors and adds up the costs.
        alpha: Weight of the cost, at least 0; at 0, the rewards do not change.
        times_group_size: Whether an agent's cost is multiplied by the size of its group (within its stratum). An
            agent's reward changes the mean of its group by only 1/size of the reward. With the factor, ``alpha`` has
            the same meaning as in `fair_envs.baselines.FairPPO`: with two groups and ``alpha=1``, an agent of the
            better-off group gains nothing from its own rewards.
    """

    changes_reward = True
    once = "a second FairnessPenalty would count the first penalty as disparity: set alpha instead"
    wrapper = "FairnessPenalty"

    def __init__(
        self, *, notions: str | Sequence[str] | None = None, alpha: float = 1.0, times_group_size: bool = True
    ) -> None:
        notions = "demographic_parity" if notions is None else notions
        named = notions[0] if isinstance(notions, (list, tuple)) and len(notions) == 1 else notions
        name = canonical_name("notions (without a history)", named, ("demographic_parity", "conditional_parity"))
        self.conditional, self.alpha = name == "conditional_parity", checked("alpha", alpha, NonNegative)
        self.times_group_size = checked("times_group_size", times_group_size, bool)

    def bind(self, setting: Setting) -> None:
        """Start to track the groups of these agents."""
        instead = "Pass a history of decisions: FairnessPenalty(env, history=SlidingWindow(500))"
        need_agents(setting, "FairnessPenalty", instead=instead)
        self._spec = setting.spec
        strata = [len(codes) for codes in self._spec.legitimate.values()] if self.conditional else []
        self._tracker = DisparityTracker(setting.lanes.count, groups=len(self._spec.groups), strata=math.prod(strata))

    def __call__(self, batch: Batch) -> Batch:
        """Subtract the step's cost from the rewards."""
        group = batch.facts["group"]
        stratum = strata_of(self._spec, batch.facts["legitimate"])[0] if self.conditional else None
        costs = self._tracker.update(batch.reward, group, stratum=stratum, first=batch.first, decided=batch.decided)
        cost = costs.sum(axis=1)
        taken = self.alpha * cost[:, np.newaxis]
        if self.times_group_size:
            taken = taken * self._tracker.size_of_own_group(group, stratum=stratum)
        added: Mapping[str, Floats] = {"fair_penalty_cost": cost}
        return batch._replace(reward=batch.reward - taken, added=added)


class FairnessPenalty(Wrapper):
    """Subtracts a fairness penalty from the rewards.

    By default, the penalty is the increase in disparity between the groups' returns (`Penalty`). With a ``history``, it
    is the gap of notions on decisions, and with a ``measure`` the change of any measure (`GapPenalty`).

    Args:
        env: The environment, with any interface.
        notions: ``"demographic_parity"`` (None) or ``"conditional_parity"``, see `Penalty`. With a history: one or
            several notions on decisions, as names, aliases or objects; None: ``"demographic_parity"``, or
            ``"consistency"`` where no decision is the positive one.
        measure: Instead of notions: ``"short"``, ``"long"`` or ``"rate"``, the measures of the environment's task; the
            name of a notion, which is then followed in a form that fits (see
            `fair_envs.metrics.followed.measure_named`); a `fair_envs.metrics.rates.Rate`, whose largest difference
            between groups is then the measure; or a function that creates a measure for a number of lanes, such as
            `fair_envs.tasks.Task.factory` returns.
        charge: With a history or a measure, the cost of a step: the gap's ``"value"``, or its ``"change"`` in the step,
            so that the costs of an episode add up to the final gap (if it starts anew in each episode). None: the value
            with a history, the change with a measure.
        groups: With a history or a measure, the groups that rates, and notions given by name, compare, see
            `FairnessObjectives`.
        alpha: Weight of the cost, at least 0; with several notions, one weight for all or one for each.
        times_group_size: See `Penalty`; no effect with a history or a measure.
        history: How long decisions count: `fair_envs.metrics.SlidingWindow`, ``Discounted`` or ``Full``.
        keep: Whether the history keeps decisions when an episode ends.
        undefined: With a history or a measure, the value of an undefined gap, see `FairnessObjectives`.

    Raises:
        ValueError: An option is invalid, or a notion or measure cannot be used with the environment.
    """

    def __init__(
        self,
        env: Any,
        *,
        notions: Notions | None = None,
        measure: Measured | None = None,
        charge: Charge | None = None,
        groups: Groups = None,
        alpha: float | Sequence[float] = 1.0,
        times_group_size: bool = True,
        history: Memory | None = None,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        transform: Transform
        if measure is None and history is None:
            of_gaps = {"groups": (groups, None), "keep": (keep, True), "undefined": (undefined, "last")}
            for name, (given, default) in {**of_gaps, "charge": (charge, None)}.items():
                if given != default:
                    raise ValueError(f"{name} needs a history, such as history=SlidingWindow(500), got {given!r}")
            transform = Penalty(notions=notions, alpha=alpha, times_group_size=times_group_size)  # type: ignore[arg-type]
        elif not times_group_size:
            raise ValueError(f"times_group_size must be left out with a history or measure, got {times_group_size!r}")
        elif measure is None:
            charge = charge or "value"
            transform = GapPenalty(
                notions, history, charge=charge, groups=groups, alpha=alpha, keep=keep, undefined=undefined
            )
        elif notions is not None:
            raise ValueError(f"notions must be left out with a measure, got {notions!r}")
        else:
            charge, measures = charge or "change", [measure]
            transform = GapPenalty(
                None,
                history,
                measures=measures,
                charge=charge,
                groups=groups,
                alpha=alpha,
                keep=keep,
                undefined=undefined,
            )
        super().__init__(env, transform)
