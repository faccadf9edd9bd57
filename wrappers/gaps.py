"""Fairness notions on a history of decisions as part of the reward: as objectives or as a penalty."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics.gaps import DecisionNotion, Gaps, Notions, decision_notions, name_of
from fair_envs.metrics.group import Groups
from fair_envs.metrics.history import History, Memory, check_memory
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.parameters import NonNegative, checked
from fair_envs.wrappers.transform import Batch, Setting, Transform
from fair_envs.wrappers.wrapper import Wrapper

Undefined = Literal["last", "fair", "unfair"]


class GapTransform(Transform):
    """Stores the decisions of the lanes and computes the gap of every notion after each decision.

    Args:
        notions: N names or notions.
        history: How long decisions count, and with which weight.
        groups: The groups that notions given by name compare.
        keep: Whether decisions are kept when an episode ends.
        undefined: The value of an undefined gap, see `FairnessObjectives`.

    Raises:
        ValueError: An option is unknown.
    """

    changes_reward = True

    def __init__(
        self,
        notions: Notions,
        history: Memory,
        *,
        groups: Groups = None,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        self.undefined = checked("undefined", undefined, Undefined)
        check_memory("history", history)
        self.notions, self.memory = decision_notions(notions, groups=groups), history
        self.keep = checked("keep", keep, bool)

    def bind(self, setting: Setting) -> None:
        """Start with an empty history.

        Raises:
            ValueError: A notion cannot be used with the environment or the history.
        """
        self.gaps = Gaps(self.notions, setting.spec)
        self.gaps.check_memory(self.memory)
        for name, worst in zip(self.gaps.names, self.gaps.worst, strict=True):
            if not np.isfinite(worst):
                raise ValueError(f"notions must have a finite largest gap to be used in a reward; {name} has none")
        self.histories = (History(self.memory, setting.spec, lanes=setting.lanes.count, keep=self.keep),)
        self._needing_probs = [n for n in self.gaps.notions if getattr(n, "needs_action_probs", False)]
        self._start = self.gaps.worst if self.undefined == "unfair" else np.zeros(len(self.gaps.notions))
        self._last = np.full((setting.lanes.count, len(self.gaps.notions)), np.nan)

    def snapshot(self) -> dict[str, Any]:
        """Return the decisions and gaps that the next gaps depend on, as arrays."""
        return {**self.histories[0].snapshot(), "last": self._last.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore a snapshot of the same environment."""
        self.histories[0].restore(snapshot)
        self._last = np.array(snapshot["last"])

    def __call__(self, batch: Batch) -> Batch:
        """Store the decisions, and change the rewards by the gaps.

        Raises:
            ValueError: A notion needs the policy's probabilities and none were reported. Nothing has changed then.
        """
        for notion in self._needing_probs:
            _check_reported(batch, notion)
        (history,) = self.histories
        history.add_batch(batch.facts, batch.action_probs, decided=batch.decided, first=batch.first)
        if not self.keep:
            self._last[batch.first] = np.nan
        gaps, defined = np.zeros(self._last.shape), np.zeros(self._last.shape, np.int8)  # 0 without a decision
        if np.count_nonzero(batch.decided):
            found = self.gaps(history, last=self._last)
            gaps, defined = self._counted(found, batch.decided[:, np.newaxis])
        return self.rewarded(batch, gaps)._replace(added={"fair_gaps": gaps, "fair_gaps_defined": defined})

    def _counted(self, found: Floats, decided: Flags) -> tuple[Floats, NDArray[np.int8]]:
        """Return the gaps as they enter rewards, and whether they are defined; both are 0 without a decision."""
        defined = ~np.isnan(found) & decided
        self._last = np.where(defined, found, self._last)
        counted = self._last if self.undefined == "last" else found
        counted = np.where(np.isnan(counted), self._start, counted)
        return np.where(decided, counted, 0.0), defined.astype(np.int8)

    def rewarded(self, batch: Batch, gaps: Floats) -> Batch:
        """Return the batch with rewards changed by the gaps, shape (B, N)."""
        raise NotImplementedError


def _check_reported(batch: Batch, notion: DecisionNotion) -> None:
    """Raise ValueError if decisions were made without reporting their probabilities."""
    taken = (batch.facts["action"] >= 0) & batch.decided[:, np.newaxis]  # (B, M)
    if batch.action_probs is not None:
        taken &= ~batch.action_probs.any(axis=-1)
    if taken.any():
        raise ValueError(
            f"action_probs must be reported before each step for {name_of(notion)} (by "
            "env.unwrapped.report_action_probs or the wrapper ReportActionProbs), got none"
        )


class GapObjectives(GapTransform):
    """The transform of `FairnessObjectives`, which describes the arguments."""

    def bind(self, setting: Setting) -> None:
        """Start with an empty history."""
        super().bind(setting)
        self._focal = setting.focal
        self.objectives = ("performance", *self.gaps.names)
        self.objectives_at_most = (np.inf, *(0.0 - self.gaps.least).tolist())

    def rewarded(self, batch: Batch, gaps: Floats) -> Batch:
        """Add the vector."""
        vector = np.empty((len(gaps), len(self.objectives)), np.float32)
        vector[:, 0] = batch.reward.mean(axis=1) if self._focal is None else batch.reward[:, self._focal]
        np.subtract(0.0, gaps, out=vector[:, 1:], casting="same_kind")
        return batch._replace(vector=vector)


class FairnessObjectives(Wrapper):
    """Turns the reward into a vector: the performance, then the negative gap of each notion on decisions.

    The performance is the environment's reward (the agents' mean; under focal control, the focal agent's reward). The
    gap covers all decisions in the history, including the current one. For every entry, larger is better; a fairness
    entry of 0 is fair.

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
        groups: The groups that notions given by name compare: an attribute, several attributes for all combinations, or
            a mapping (see `fair_envs.metrics.group.group_members`). By default the first attribute, with a warning if
            the environment has several.
        keep: Whether decisions are kept when an episode ends; otherwise, each episode begins with an empty history.
        undefined: The value of a gap that is NaN (a group is empty, or a denominator is 0), because a reward needs a
            number. ``"last"``: the previous gap, or 0 if there is none yet; ``"fair"``: 0; ``"unfair"``: the largest
            possible gap. ``info["fair_gaps_defined"]`` is 0 for such values. A notion object with its own ``undefined``
            option uses that option.

    Raises:
        ValueError: An option is invalid, or a notion cannot be used with the environment.
    """

    def __init__(
        self,
        env: Any,
        notions: Notions,
        history: Memory,
        *,
        groups: Groups = None,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        super().__init__(env, GapObjectives(notions, history, groups=groups, keep=keep, undefined=undefined))


class GapPenalty(GapTransform):
    """Subtracts the weighted gaps of notions on a history of decisions from every agent's reward.

    It adds `fair_gaps` and `fair_gaps_defined` to ``info``, see `FairnessObjectives`.

    Args:
        notions: Names or notions.
        history: How long decisions count: `fair_envs.metrics.SlidingWindow`, ``Discounted`` or ``Full``.
        groups: The groups that notions given by name compare, see `FairnessObjectives`.
        alpha: Weight of the gaps, at least 0, or one weight for each notion.
        keep: Whether decisions are kept when an episode ends.
        undefined: The value of an undefined gap, see `FairnessObjectives`.

    Raises:
        ValueError: An option is invalid, or a notion cannot be used with the environment.
    """

    once = "pass all notions to one FairnessPenalty, with an alpha for each"
    wrapper = "FairnessPenalty"

    def __init__(
        self,
        notions: Notions,
        history: Memory,
        *,
        groups: Groups = None,
        alpha: float | Sequence[float] = 1.0,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        super().__init__(notions, history, groups=groups, keep=keep, undefined=undefined)
        count = len(self.notions)
        given: Any = [alpha] * count if np.ndim(alpha) == 0 else list(alpha)  # type: ignore[arg-type]
        if len(given) != count:
            raise ValueError(f"alpha must be one number or one for each of {count} notions, got {alpha!r}")
        self.alpha = np.array([checked("alpha", weight, NonNegative) for weight in given])

    def rewarded(self, batch: Batch, gaps: Floats) -> Batch:
        """Subtract the gaps from the rewards."""
        return batch._replace(reward=batch.reward - (gaps * self.alpha).sum(axis=1, keepdims=True))


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
