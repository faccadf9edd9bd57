"""Fairness notions over a history of decisions, in the reward: as objectives of their own."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Columns, Floats
from fair_envs.history import History, Memory, check_memory
from fair_envs.metrics.gaps import DecisionNotion, Gaps, name_of
from fair_envs.parameters import NonNegative, checked
from fair_envs.wrappers.adapters import wrapper
from fair_envs.wrappers.transform import Batch, Setting, Transform

Undefined = Literal["last", "fair", "unfair"]


class GapTracker:
    """Remembers the decisions of lanes, and has a number for the gap of every notion after each of them.

    Args:
        setting: The environment.
        notions: N names or notions.
        history: How long decisions count, and how much.
        keep: Whether decisions are kept when an episode ends.
        undefined: What a gap that a notion leaves undefined counts as, see `GapObjectives`.

    Attributes:
        history: The decisions, of each lane.
        gaps: The notions.

    Raises:
        ValueError: An option or a notion that does not fit the environment.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        notions: Sequence[str | DecisionNotion],
        history: Memory,
        keep: bool,
        undefined: Undefined,
    ) -> None:
        self.gaps = Gaps(notions, setting.spec)
        self.gaps.check_memory(history)
        self.history = History(history, setting.spec, lanes=setting.lanes.count, keep=keep)
        for name, worst in zip(self.gaps.names, self.gaps.worst, strict=True):
            if not np.isfinite(worst):
                raise ValueError(f"notions must have a largest gap, which a reward can hold; {name} has none")
        self._asking = [n for n in self.gaps.notions if getattr(n, "needs_action_probs", False)]
        self._start = self.gaps.worst if undefined == "unfair" else np.zeros(len(self.gaps.notions))
        self._keeps_last = undefined == "last"
        self._last = np.full((setting.lanes.count, len(self.gaps.notions)), np.nan)

    def snapshot(self) -> dict[str, Any]:
        """Return the decisions and gaps that the next gaps depend on, as arrays."""
        return {**self.history.snapshot(), "last": self._last.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot."""
        self.history.restore(snapshot)
        self._last = np.array(snapshot["last"])

    def update(self, batch: Batch) -> tuple[Floats, NDArray[np.int8]]:
        """Take in what was decided; return the gaps and whether they are defined, shape (B, N), 0 where undecided.

        Raises:
            ValueError: A notion needs the policy's probabilities and none were reported; nothing has changed then.
        """
        for notion in self._asking:
            _check_reported(batch, notion)
        self.history.add_columns(batch.facts, decided=batch.decided, first=batch.first)
        if not self.history.keep:
            self._last[batch.first] = np.nan
        if not np.count_nonzero(batch.decided):
            return np.zeros(self._last.shape), np.zeros(self._last.shape, np.int8)
        found = self.gaps(self.history, last=self._last)
        decided = batch.decided[:, np.newaxis]
        defined = ~np.isnan(found) & decided
        self._last = np.where(defined, found, self._last)
        counted = self._last if self._keeps_last else found
        counted = np.where(np.isnan(counted), self._start, counted)
        return np.where(decided, counted, 0.0), defined.astype(np.int8)


def _check_reported(batch: Batch, notion: DecisionNotion) -> None:
    """Raise ValueError if decisions were taken without telling with which probabilities."""
    taken = np.asarray(batch.facts["fair_action"]).T >= 0  # (B,), or (M, B)
    silent = ~np.asarray(batch.facts["fair_action_probs"]).any(axis=-1)
    if (taken & silent.T & batch.decided).any():
        raise ValueError(
            f"action_probs must be reported before each step for {name_of(notion)} (by "
            "env.unwrapped.report_action_probs or the wrapper ReportActionProbs), got none"
        )


class GapObjectives(Transform):
    """Makes the reward a vector: the performance, then minus the gap of each notion over a history of decisions.

    The performance is the environment's reward (the agents' mean; under focal control the focal agent's). The gap is
    that of all decisions in the history, the present one included; every entry is better when larger, and 0 is fair. As
    an evaluation goes on a copy of the environment (``copy.deepcopy``), it leaves the history alone.
    ``env.unwrapped.histories[-1]`` is the history; of an environment of one's own it is
    ``env.get_wrapper_attr("histories")[-1]``. ``History(scores=True)``, for the published evaluation on
    log-probabilities, is for histories that one feeds with arrays or ``info``: wrappers take distributions alone.

    Gymnasium faces return the vector as the reward, float32, shape (1 + notions,) or (B, 1 + notions), and state its
    ``reward_space`` and ``reward_dim``, on the unwrapped environment too; PettingZoo gives every agent the same vector.
    Stable-Baselines3 knows numbers only: there the reward stays what it is and ``vec_env.vector_reward`` has the
    vectors. Wrappers that change rewards stand below this one, `Scalarise` above it.

    | added to `info`     | dtype, shape       | meaning                                                    |
    |---------------------|--------------------|------------------------------------------------------------|
    | `fair_gaps`         | float64 (notions,) | each gap, as the reward counts it; 0 at a reset            |
    | `fair_gaps_defined` | int8 (notions,)    | 0: the notion leaves the gap undefined (or it is a reset)  |

    Args:
        notions: Names (``"SP"``, ``"statistical_parity"``, ...) or notions, such as `fair_envs.metrics.GroupNotion`.
        history: How long decisions count: `fair_envs.history.SlidingWindow`, ``Discounted`` or ``Full``.
        keep: Whether decisions are kept when an episode ends; else each episode begins with none.
        undefined: What a gap counts as where a notion gives NaN (nobody to compare, a denominator of 0). ``"last"``:
            the one before, and 0 as long as there has been none; ``"fair"``: 0; ``"unfair"``: the largest there can be.
            A reward needs a number; ``info["fair_gaps_defined"]`` tells behind which of them there is nothing. A notion
            made with an ``undefined`` of its own decides for itself.

    Raises:
        ValueError: An option, or a notion that does not fit the environment.
    """

    changes_reward = True

    def __init__(
        self,
        notions: Sequence[str | DecisionNotion],
        history: Memory,
        *,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        self.settings = tracker_settings(notions, history, keep=keep, undefined=undefined)

    def bind(self, setting: Setting) -> None:
        """Begin with an empty history."""
        self._tracker = GapTracker(setting, **self.settings)
        self._focal = setting.focal
        self.histories = (self._tracker.history,)
        self.objectives = ("performance", *self._tracker.gaps.names)
        self.objectives_at_most = (np.inf, *(0.0 - self._tracker.gaps.least).tolist())

    def snapshot(self) -> dict[str, Any]:
        """Return what it remembers, as arrays."""
        return self._tracker.snapshot()

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot of the same environment."""
        self._tracker.restore(snapshot)

    def __call__(self, batch: Batch) -> Batch:
        """Add the vector."""
        gaps, defined = self._tracker.update(batch)
        vector = np.empty((len(gaps), len(self.objectives)), np.float32)
        vector[:, 0] = batch.reward.mean(axis=1) if self._focal is None else batch.reward[:, self._focal]
        np.subtract(0.0, gaps, out=vector[:, 1:], casting="same_kind")
        added: Columns = {"fair_gaps": gaps, "fair_gaps_defined": defined}
        return batch._replace(vector=vector, added=added)


FairnessObjectives = wrapper(GapObjectives, name="FairnessObjectives")


class GapPenalty(Transform):
    """Takes from every agent's reward the gaps of notions over a history of decisions, each times its weight.

    ``info`` gains `fair_gaps` and `fair_gaps_defined`, see `GapObjectives`.

    Args:
        notions: Names or notions.
        history: How long decisions count: `fair_envs.history.SlidingWindow`, ``Discounted`` or ``Full``.
        alpha: Weight of the gaps, at least 0, or one for each notion.
        keep: Whether decisions are kept when an episode ends.
        undefined: What a gap counts as that a notion leaves undefined, see `GapObjectives`.

    Raises:
        ValueError: An option, or a notion that does not fit the environment.
    """

    changes_reward = True
    once = "give one FairnessPenalty all notions, with an alpha for each"
    wrapper = "FairnessPenalty"

    def __init__(
        self,
        notions: Sequence[str | DecisionNotion],
        history: Memory,
        *,
        alpha: float | Sequence[float] = 1.0,
        keep: bool = True,
        undefined: Undefined = "last",
    ) -> None:
        self.settings = tracker_settings(notions, history, keep=keep, undefined=undefined)
        given: Any = [alpha] * len(notions) if np.ndim(alpha) == 0 else list(alpha)  # type: ignore[arg-type]
        if len(given) != len(notions):
            raise ValueError(f"alpha must be one number or one for each of {len(notions)} notions, got {alpha!r}")
        self.alpha = np.array([checked("alpha", weight, NonNegative) for weight in given])

    def bind(self, setting: Setting) -> None:
        """Begin with an empty history."""
        self._tracker = GapTracker(setting, **self.settings)
        self.histories = (self._tracker.history,)

    def __call__(self, batch: Batch) -> Batch:
        """Take the gaps from the rewards."""
        gaps, defined = self._tracker.update(batch)
        taken = (gaps * self.alpha).sum(axis=1, keepdims=True)
        return batch._replace(reward=batch.reward - taken, added={"fair_gaps": gaps, "fair_gaps_defined": defined})


def tracker_settings(
    notions: Sequence[str | DecisionNotion], history: Memory, *, keep: bool, undefined: Undefined
) -> Mapping[str, Any]:
    """Return what makes a `GapTracker` of an environment.

    Raises:
        ValueError: An unknown option.
    """
    checked("undefined", undefined, Undefined)
    check_memory("history", history)
    return {"notions": notions, "history": history, "keep": checked("keep", keep, bool), "undefined": undefined}


class ReportedProbs(Transform):
    """Reports with which probabilities a policy chooses each next action, before every step.

    Notions that compare how alike people are treated (individual fairness) need them: ``info["fair_action_probs"]``.
    The policy is asked about what is seen where the wrapper stands, through every wrapper below it, of other libraries
    too; it does not choose the actions. What wrappers above change it does not see: put this one above them.

    Args:
        policy: A function of observations, shape (B, agents, ...), to probabilities, shape (B, individuals, actions),
            whose last axis sums to 1; or ``"uniform"``. The faces with one lane have B = 1.

    Raises:
        ValueError: Neither a function nor ``"uniform"``; the environment's actions are continuous. At a step: above
            another library's wrapper that may change observations, the state was set from outside, or control is focal.
    """

    reports = True
    once = "one policy's probabilities can be reported"
    wrapper = "ReportActionProbs"

    def __init__(self, policy: Any) -> None:
        if not callable(policy) and not (isinstance(policy, str) and policy == "uniform"):
            raise ValueError(f"policy must be 'uniform' or a function of observations, got {policy!r}")
        self.policy = policy

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReportedProbs":
        """Return a copy with the same policy: one that learns is asked as it is, not as it was when it was given."""
        return copy.copy(self)

    def bind(self, setting: Setting) -> None:
        """Make ready the probabilities of all actions alike."""
        spec = setting.spec
        if spec.actions < 1:
            raise ValueError(f"env must have discrete actions, those of {setting.rules.name} are continuous")
        if setting.observation_space.shape is None and callable(self.policy):
            raise ValueError(f"policy must be 'uniform' where observations are no arrays, got {self.policy!r}")
        self._uniform = np.full((setting.lanes.count, spec.individuals, spec.actions), 1 / spec.actions)

    def action_probs(self, seen: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the policy's probabilities."""
        return self._uniform if isinstance(self.policy, str) else np.asarray(self.policy(seen()))

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch as it is."""
        return batch


ReportActionProbs = wrapper(ReportedProbs, name="ReportActionProbs")
