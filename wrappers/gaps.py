"""Fairness notions over a history of decisions, in the reward: as objectives of their own."""

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
    """Remembers the decisions of lanes, and has a number for the gap of every notion after each of them.

    Args:
        notions: N names or notions.
        history: How long decisions count, and how much.
        groups: The groups that notions given by name compare.
        keep: Whether decisions are kept when an episode ends.
        undefined: What a gap that a notion leaves undefined counts as, see `FairnessObjectives`.

    Raises:
        ValueError: An unknown option.
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
        """Begin with an empty history.

        Raises:
            ValueError: A notion that does not fit the environment or the history.
        """
        self.gaps = Gaps(self.notions, setting.spec)
        self.gaps.check_memory(self.memory)
        for name, worst in zip(self.gaps.names, self.gaps.worst, strict=True):
            if not np.isfinite(worst):
                raise ValueError(f"notions must have a largest gap, which a reward can hold; {name} has none")
        self.histories = (History(self.memory, setting.spec, lanes=setting.lanes.count, keep=self.keep),)
        self._asking = [n for n in self.gaps.notions if getattr(n, "needs_action_probs", False)]
        self._start = self.gaps.worst if self.undefined == "unfair" else np.zeros(len(self.gaps.notions))
        self._last = np.full((setting.lanes.count, len(self.gaps.notions)), np.nan)

    def snapshot(self) -> dict[str, Any]:
        """Return the decisions and gaps that the next gaps depend on, as arrays."""
        return {**self.histories[0].snapshot(), "last": self._last.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot of the same environment."""
        self.histories[0].restore(snapshot)
        self._last = np.array(snapshot["last"])

    def __call__(self, batch: Batch) -> Batch:
        """Take in what was decided, and reward by the gaps.

        Raises:
            ValueError: A notion needs the policy's probabilities and none were reported; nothing has changed then.
        """
        for notion in self._asking:
            _check_reported(batch, notion)
        (history,) = self.histories
        history.add_batch(batch.facts, batch.action_probs, decided=batch.decided, first=batch.first)
        if not self.keep:
            self._last[batch.first] = np.nan
        gaps, defined = np.zeros(self._last.shape), np.zeros(self._last.shape, np.int8)  # where nothing was decided
        if np.count_nonzero(batch.decided):
            found = self.gaps(history, last=self._last)
            gaps, defined = self._counted(found, batch.decided[:, np.newaxis])
        return self.rewarded(batch, gaps)._replace(added={"fair_gaps": gaps, "fair_gaps_defined": defined})

    def _counted(self, found: Floats, decided: Flags) -> tuple[Floats, NDArray[np.int8]]:
        """Return the gaps as rewards count them, and whether they are defined, 0 where nothing was decided."""
        defined = ~np.isnan(found) & decided
        self._last = np.where(defined, found, self._last)
        counted = self._last if self.undefined == "last" else found
        counted = np.where(np.isnan(counted), self._start, counted)
        return np.where(decided, counted, 0.0), defined.astype(np.int8)

    def rewarded(self, batch: Batch, gaps: Floats) -> Batch:
        """Return the batch with what the gaps, shape (B, N), make of its rewards."""
        raise NotImplementedError


def _check_reported(batch: Batch, notion: DecisionNotion) -> None:
    """Raise ValueError if decisions were taken without telling with which probabilities."""
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
        """Begin with an empty history."""
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
        env: The environment, of any interface.
        notions: Names (``"demographic_parity"``, ``"SP"``, ...) or notions, such as `fair_envs.metrics.GroupNotion`.
        history: How long decisions count: `fair_envs.metrics.SlidingWindow`, ``Discounted`` or ``Full``.
        groups: The groups that notions given by name compare: an attribute, several attributes for all combinations, or
            a mapping (see `fair_envs.metrics.group_members`). By default the first attribute, with a warning if the
            environment has several.
        keep: Whether decisions are kept when an episode ends; else each episode begins with none.
        undefined: What a gap counts as where a notion gives NaN (nobody to compare, a denominator of 0). ``"last"``:
            the one before, and 0 as long as there has been none; ``"fair"``: 0; ``"unfair"``: the largest there can be.
            A reward needs a number; ``info["fair_gaps_defined"]`` tells behind which of them there is nothing. A notion
            made with an ``undefined`` of its own decides for itself.

    Raises:
        ValueError: An option, or a notion that does not fit the environment.
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
    """Takes from every agent's reward the gaps of notions over a history of decisions, each times its weight.

    ``info`` gains `fair_gaps` and `fair_gaps_defined`, see `FairnessObjectives`.

    Args:
        notions: Names or notions.
        history: How long decisions count: `fair_envs.metrics.SlidingWindow`, ``Discounted`` or ``Full``.
        groups: The groups that notions given by name compare, see `FairnessObjectives`.
        alpha: Weight of the gaps, at least 0, or one for each notion.
        keep: Whether decisions are kept when an episode ends.
        undefined: What a gap counts as that a notion leaves undefined, see `FairnessObjectives`.

    Raises:
        ValueError: An option, or a notion that does not fit the environment.
    """

    once = "give one FairnessPenalty all notions, with an alpha for each"
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
        """Take the gaps from the rewards."""
        return batch._replace(reward=batch.reward - (gaps * self.alpha).sum(axis=1, keepdims=True))


class ReportedProbs(Transform):
    """The transform of `ReportActionProbs`, which describes the arguments."""

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


class ReportActionProbs(Wrapper):
    """Reports with which probabilities a policy chooses each next action, before every step.

    Notions that compare how alike people are treated (individual fairness) need them: ``info["fair_action_probs"]``.
    The policy is asked about what is seen where the wrapper stands, through every wrapper below it, of other libraries
    too; it does not choose the actions. What wrappers above change it does not see: put this one above them.

    Args:
        env: The environment, of any interface.
        policy: A function of observations, shape (B, agents, ...), to probabilities, shape (B, individuals, actions),
            whose last axis sums to 1; or ``"uniform"``. The faces with one lane have B = 1.

    Raises:
        ValueError: Neither a function nor ``"uniform"``; the environment's actions are continuous. At a step: above
            another library's wrapper that may change observations, the state was set from outside, or control is focal.
    """

    def __init__(self, env: Any, policy: Any) -> None:
        super().__init__(env, ReportedProbs(policy))
