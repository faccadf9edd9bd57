"""Gaps as part of the reward, of notions on a history of decisions or of measures: as objectives or as a penalty."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics.gaps import Gaps, Notions, decision_notions, default_notion, name_of
from fair_envs.metrics.group import Groups
from fair_envs.metrics.history import History, Memory, check_memory
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.parameters import NonNegative, checked
from fair_envs.wrappers.following import Followed, Measured, check_finite, check_reported
from fair_envs.wrappers.transform import Batch, Setting, Transform
from fair_envs.wrappers.wrapper import Wrapper

Undefined = Literal["last", "fair", "unfair"]
Charge = Literal["change", "value"]


class Decisions:
    """Notions on one history of decisions; their gaps are what rewards use.

    Args:
        notions: N names or notions; None: one that applies to the environment, see `default_notion`.
        history: How long decisions count, and with which weight.
        groups: The groups that notions given by name compare.
        keep: Whether decisions are kept when an episode ends.

    Attributes:
        names: Display names of the notions, known after `bind`.
        least: The smallest gap of each notion, shape (N,).
        worst: The largest gap of each notion, shape (N,).
        keeps: Whether gaps continue across episodes, shape (N,).
        count: Number of notions (N).
        histories: The history.

    Raises:
        ValueError: An option is unknown.
    """

    def __init__(self, notions: Notions | None, history: Memory, *, groups: Groups = None, keep: bool = True) -> None:
        check_memory("history", history)
        self.notions = None if notions is None else decision_notions(notions, groups=groups)
        self.memory, self.groups = history, groups
        self.keep = checked("keep", keep, bool)
        self.count = 1 if self.notions is None else len(self.notions)
        self.histories: tuple[History, ...] = ()

    def bind(self, setting: Setting) -> None:
        """Start with an empty history.

        Raises:
            ValueError: A notion cannot be used with the environment or the history.
        """
        chosen = default_notion(setting.spec)
        if self.notions is None and self.groups is not None and chosen == "consistency":
            raise ValueError(
                f"groups must be left out without notions: {chosen} is measured here, which compares individuals, got "
                f"{self.groups!r}"
            )
        self._gaps = Gaps(self.notions or decision_notions(chosen, groups=self.groups), setting.spec)
        self._gaps.check_memory(self.memory)
        self.names, self.least, self.worst = self._gaps.names, self._gaps.least, self._gaps.worst
        for name, worst in zip(self.names, self.worst, strict=True):
            check_finite(name, worst)
        self.keeps = np.full(len(self.names), self.keep)
        self.histories = (History(self.memory, setting.spec, lanes=setting.lanes.count, keep=self.keep),)
        self._needing_probs = [n for n in self._gaps.notions if getattr(n, "needs_action_probs", False)]

    def __call__(self, batch: Batch, last: Floats) -> Floats:
        """Store the decisions of a batch and return the gaps after it, shape (B, N).

        Args:
            batch: The batch.
            last: The previous gaps, shape (B, N), NaN where there is none.

        Raises:
            ValueError: A notion needs the policy's probabilities and none were reported. Nothing has changed then.
        """
        for notion in self._needing_probs:
            check_reported(batch, name_of(notion))
        (history,) = self.histories
        history.add_batch(batch.facts, batch.action_probs, decided=batch.decided, first=batch.first)
        return self._gaps(history, last=last) if np.count_nonzero(batch.decided) else last

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the stored decisions."""
        return dict(self.histories[0].snapshot())

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> None:
        """Restore a snapshot of the same environment."""
        self.histories[0].restore(snapshot)


class GapTransform(Transform):
    """Computes gaps after each decision: those of notions on a history of decisions, or the values of measures.

    Args:
        notions: Names or notions; None: there are ``measures``, or one notion that applies to the environment.
        history: How long decisions count, and with which weight; None: there are ``measures``.
        measures: N names of notions, or functions that create a measure for a number of lanes.
        groups: The groups that notions given by name compare.
        keep: Whether decisions are kept when an episode ends; a measure defines this itself.
        undefined: The value of an undefined gap, see `FairnessObjectives`.

    Raises:
        ValueError: An option is unknown, or neither a history nor measures are given, or both.
    """

    changes_reward = True

    def __init__(
        self,
        notions: Notions | None = None,
        history: Memory | None = None,
        *,
        measures: Measured | Sequence[Measured] | None = None,
        groups: Groups = None,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        self.undefined = checked("undefined", undefined, Undefined)
        self.source: Decisions | Followed
        if measures is None:
            if history is None:
                raise ValueError(
                    "notions need a history, such as SlidingWindow(500), unless measures are given; got notions="
                    f"{notions!r}, history=None"
                )
            self.source = Decisions(notions, history, groups=groups, keep=keep)
            return
        without = {"notions": (notions, None), "history": (history, None), "keep": (keep, True)}
        for name, (given, default) in without.items():
            if given != default:
                raise ValueError(f"{name} must be left out with measures, got {given!r}")
        self.source = Followed(measures, groups=groups)

    @property
    def histories(self) -> tuple[History, ...]:  # type: ignore[override]
        """The histories of decisions that it keeps."""
        return self.source.histories

    def bind(self, setting: Setting) -> None:
        """Start without any decision.

        Raises:
            ValueError: A notion cannot be used with the environment or the history, or an undefined gap should count as
                the largest one, which a measure does not have.
        """
        self.source.bind(setting)
        if self.undefined == "unfair":
            for name, worst in zip(self.source.names, self.source.worst, strict=True):
                if not np.isfinite(worst):
                    raise ValueError(f"undefined must be 'last' or 'fair' for {name}, which has no largest value")
        lanes, count = setting.lanes.count, len(self.source.names)
        self._start = self.source.worst if self.undefined == "unfair" else np.zeros(count)
        self._last = np.full((lanes, count), np.nan)

    def snapshot(self) -> dict[str, Any]:
        """Return the decisions and gaps that the next gaps depend on, as arrays."""
        return {**self.source.snapshot(), "last": self._last.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore a snapshot of the same environment."""
        self.source.restore(snapshot)
        self._last = np.array(snapshot["last"])

    def __call__(self, batch: Batch) -> Batch:
        """Compute the gaps after a step, and change the rewards by them.

        Raises:
            ValueError: A notion needs the policy's probabilities and none were reported. Nothing has changed then.
        """
        found = self.source(batch, self._last)
        if np.count_nonzero(batch.first):
            self._last[np.logical_and.outer(batch.first, ~self.source.keeps)] = np.nan
        if np.count_nonzero(batch.decided):
            gaps, defined = self._counted(found, batch.decided[:, np.newaxis])
        else:
            gaps, defined = np.zeros(self._last.shape), np.zeros(self._last.shape, np.int8)
        out = self.rewarded(batch, gaps)
        return out._replace(added={**out.added, "fair_gaps": gaps, "fair_gaps_defined": defined})

    def _counted(self, found: Floats, decided: Flags) -> tuple[Floats, NDArray[np.int8]]:
        """Return the gaps as they enter rewards, and whether they are defined; both are 0 without a decision."""
        defined = ~np.isnan(found) & decided
        if np.count_nonzero(defined) == defined.size:  # as usual
            self._last = found.copy()
            return found.copy(), defined.view(np.int8)
        self._last = np.where(defined, found, self._last)
        counted = self._last if self.undefined == "last" else found
        counted = np.where(np.isnan(counted), self._start, counted)
        return np.where(decided, counted, 0.0), defined.astype(np.int8)

    def rewarded(self, batch: Batch, gaps: Floats) -> Batch:
        """Return the batch with rewards changed by the gaps, shape (B, N)."""
        raise NotImplementedError


class GapObjectives(GapTransform):
    """The transform of `FairnessObjectives`, which describes the arguments."""

    def bind(self, setting: Setting) -> None:
        """Start with an empty history."""
        super().bind(setting)
        self._focal = setting.focal
        self.objectives = ("performance", *self.source.names)
        self.objectives_at_most = (np.inf, *(0.0 - self.source.least).tolist())

    def rewarded(self, batch: Batch, gaps: Floats) -> Batch:
        """Add the vector."""
        vector = np.empty((len(gaps), len(self.objectives)), np.float32)
        own = 0 if batch.reward.shape[1] == 1 else self._focal
        vector[:, 0] = batch.reward.mean(axis=1) if own is None else batch.reward[:, own]
        np.subtract(0.0, gaps, out=vector[:, 1:], casting="same_kind")
        return batch._replace(vector=vector)


class FairnessObjectives(Wrapper):
    """Turns the reward into a vector: the performance, then the negative gap of each notion, or value of each measure.

    The performance is the environment's reward (the agents' mean; under focal control, the focal agent's reward). The
    gap covers all decisions in the history, including the current one. For every entry, larger is better; a fairness
    entry of 0 is fair.

    With ``measures`` instead of ``notions`` and ``history``, each entry is minus the value of a
    `fair_envs.metrics.Measure` after the step. It can be any measure: of agents' returns, of scores, of a task.

    Evaluate on a copy of the environment (``copy.deepcopy``), so that the evaluation does not change the history. The
    history is ``env.unwrapped.histories[-1]``; for a user's own environment, it is ``env.histories[-1]``, or
    ``env.get_wrapper_attr("histories")[-1]`` above other wrappers. ``History(scores=True)``, for the published
    evaluation on log-probabilities, only works for histories that you fill from arrays or ``info``: wrappers accept
    only probability distributions.

    Gymnasium interfaces return the vector as the reward, float32, shape (1 + notions,) or (B, 1 + notions). They have
    the attributes ``reward_space`` and ``reward_dim``, also on the unwrapped environment. In PettingZoo, every agent
    gets the same vector. Stable-Baselines3 only supports scalar rewards: there, the reward does not change, and
    ``vec_env.vector_reward`` contains the vectors. Put wrappers that change rewards below this one, and `Scalarise`
    above it.

    | added to `info`     | dtype, shape       | meaning                                                 |
    |---------------------|--------------------|---------------------------------------------------------|
    | `fair_gaps`         | float64 (notions,) | each gap, as it enters the reward; 0 at a reset         |
    | `fair_gaps_defined` | int8 (notions,)    | 0: the notion's gap is undefined, or this is a reset    |

    Args:
        env: The environment, with any interface.
        notions: Names (``"demographic_parity"``, ``"SP"``, ...) or notions, such as `fair_envs.metrics.GroupNotion`.
        history: How long decisions count: `fair_envs.metrics.SlidingWindow`, ``Discounted`` or ``Full``.
        measures: Instead of notions and a history: one or several measures, see ``measure`` of `FairnessPenalty`.
        groups: The groups that rates, and notions given by name, compare: an attribute, several attributes for all
            combinations, or a mapping (see `fair_envs.metrics.group.group_members`). By default the first attribute,
            with a warning if the environment has several; with ``measures``, the groups of ``fair_group``, or for the
            measures of the task those of the task.
        keep: Whether decisions are kept when an episode ends; otherwise, each episode begins with an empty history.
        undefined: The value of a gap that is NaN (a group is empty, or a denominator is 0), because a reward needs a
            number. ``"last"``: the previous gap, or 0 if there is none yet; ``"fair"``: 0; ``"unfair"``: the largest
            possible gap, which most measures do not have. ``info["fair_gaps_defined"]`` is 0 for such values. A notion
            object with its own ``undefined`` option uses that option.

    Raises:
        ValueError: An option is invalid, or a notion or measure cannot be used with the environment.
    """

    def __init__(
        self,
        env: Any,
        notions: Notions | None = None,
        history: Memory | None = None,
        *,
        measures: Measured | Sequence[Measured] | None = None,
        groups: Groups = None,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        transform = GapObjectives(notions, history, measures=measures, groups=groups, keep=keep, undefined=undefined)
        super().__init__(env, transform)


class GapPenalty(GapTransform):
    """Subtracts weighted gaps, or their changes in the step, from every agent's reward.

    It adds `fair_gaps` and `fair_gaps_defined` to ``info``, see `FairnessObjectives`; with ``charge="change"`` also
    `fair_penalty_cost`, float64 (notions,): the change of each gap in the step, before it is weighted.

    Args:
        notions: Names or notions; None: there are ``measures``.
        history: How long decisions count: `fair_envs.metrics.SlidingWindow`, ``Discounted`` or ``Full``.
        measures: One or several measures, see ``measure`` of `FairnessPenalty`.
        charge: The cost of a step: the gap's ``"value"``, or its ``"change"`` in the step. The changes in an episode
            add up to the final gap, or to its increase in the episode if it continues across episodes.
        groups: The groups that notions given by name compare, see `FairnessObjectives`.
        alpha: Weight of the costs, at least 0, or one weight for each notion.
        keep: Whether decisions are kept when an episode ends.
        undefined: The value of an undefined gap, see `FairnessObjectives`.

    Raises:
        ValueError: An option is invalid, or a notion cannot be used with the environment.
    """

    once = "pass all notions to one FairnessPenalty, with an alpha for each"
    wrapper = "FairnessPenalty"

    def __init__(
        self,
        notions: Notions | None = None,
        history: Memory | None = None,
        *,
        measures: Measured | Sequence[Measured] | None = None,
        charge: Charge = "value",
        groups: Groups = None,
        alpha: float | Sequence[float] = 1.0,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        super().__init__(notions, history, measures=measures, groups=groups, keep=keep, undefined=undefined)
        self.charge = checked("charge", charge, Charge)
        count = self.source.count
        given: Any = [alpha] * count if np.ndim(alpha) == 0 else list(alpha)  # type: ignore[arg-type]
        if len(given) != count:
            raise ValueError(f"alpha must be one number or one for each of {count} notions, got {alpha!r}")
        self.alpha = np.array([checked("alpha", weight, NonNegative) for weight in given])

    def bind(self, setting: Setting) -> None:
        """Start without any decision."""
        super().bind(setting)
        self._charged = np.zeros(self._last.shape)

    def snapshot(self) -> dict[str, Any]:
        """Return the decisions and gaps that the next gaps and costs depend on, as arrays."""
        return {**super().snapshot(), "charged": self._charged.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore a snapshot of the same environment."""
        super().restore(snapshot)
        self._charged = np.array(snapshot["charged"])

    def rewarded(self, batch: Batch, gaps: Floats) -> Batch:
        """Subtract the costs from the rewards."""
        changes = self.charge == "change"
        cost = self._changes(batch, gaps) if changes else gaps
        taken = (cost * self.alpha).sum(axis=1, keepdims=True)
        return batch._replace(reward=batch.reward - taken, added={"fair_penalty_cost": cost} if changes else {})

    def _changes(self, batch: Batch, gaps: Floats) -> Floats:
        """Return how much the gaps have changed, 0 in lanes without a decision."""
        self._charged[np.logical_and.outer(batch.first, ~self.source.keeps)] = 0.0
        decided = batch.decided[:, np.newaxis]
        changes: Floats = np.where(decided, gaps - self._charged, 0.0)
        self._charged = np.where(decided, gaps, self._charged)
        return changes


class ReportedProbs(Transform):
    """The transform of `ReportActionProbs`, which describes the arguments."""

    reports = True
    once = "only one policy's probabilities can be reported"
    wrapper = "ReportActionProbs"

    def __init__(self, policy: Any) -> None:
        if not callable(policy) and not (isinstance(policy, str) and policy == "uniform"):
            raise ValueError(f"policy must be 'uniform' or a function of observations, got {policy!r}")
        self.policy = policy

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReportedProbs":
        """Return a copy that shares the policy object: a policy that still learns is used in its current state."""
        return copy.copy(self)

    def bind(self, setting: Setting) -> None:
        """Prepare the uniform probabilities."""
        spec = setting.spec
        if spec.actions < 1:
            raise ValueError(f"env must have discrete actions, those of {setting.rules.name} are continuous")
        if setting.observation_space.shape is None and callable(self.policy):
            raise ValueError(f"policy must be 'uniform' if observations are not arrays, got {self.policy!r}")
        self._uniform = np.full((setting.lanes.count, spec.individuals, spec.actions), 1 / spec.actions)

    def action_probs(self, seen: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the policy's probabilities."""
        return self._uniform if isinstance(self.policy, str) else np.asarray(self.policy(seen()))

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch unchanged."""
        return batch


class ReportActionProbs(Wrapper):
    """Reports a policy's action probabilities to the environment before every step.

    Notions that compare how similarly people are treated (individual fairness) need them as
    ``info["fair_action_probs"]``. The wrapper only reports: it does not choose the actions. The policy is called with
    the observation at the wrapper's position, so with the changes of all wrappers below it, including those of other
    libraries, but not of those above it. Therefore put this wrapper above all others that change observations.

    Args:
        env: The environment, with any interface.
        policy: A function from observations, shape (B, agents, ...), to probabilities, shape (B, individuals, actions),
            whose last axis sums to 1; or ``"uniform"``. Interfaces with one lane have B = 1.

    Raises:
        ValueError: The policy is neither a function nor ``"uniform"``, or the environment's actions are continuous. In
            ``step``, if there is a wrapper of another library below that may change observations: the state was set
            from outside, or control is focal.
    """

    def __init__(self, env: Any, policy: Any) -> None:
        super().__init__(env, ReportedProbs(policy))
