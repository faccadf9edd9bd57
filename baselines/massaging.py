"""Action massaging: decisions that a policy is unsure about give way to those that are fairer in the short term.

A massager looks at what the decision-maker sees, at what the policy says and at a short-term measure, and alters
decisions. It never reads what is hidden. After Hu, Lear and Zhang (2024), section 4.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    Distribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from fair_envs.aliases import Flags, Floats
from fair_envs.baselines.following import FollowMeasures, MeasureOf
from fair_envs.evaluation import choose
from fair_envs.faces.sb3 import AgentsVecEnv, VecEnvStepReturn
from fair_envs.metrics.long_term import Measure
from fair_envs.parameters import NonNegative, Positive, checked

DIGITS = 12  # in which a short-term measure has to differ
ROUNDING = 10.0**-DIGITS  # a smaller difference is none


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


# ------------------------------------------------------------------------------------------------- thresholds


Schedule = Callable[[int], float | None]
"""Says the threshold of a rollout, counted from 0; None: nothing is altered."""


@dataclass(frozen=True, kw_only=True)
class MassagingSchedule:
    """A threshold that begins after some rollouts and then shrinks, stays or grows from rollout to rollout.

    Attributes:
        first: What it would be in rollout ``after``.
        factor: What it is multiplied by from one rollout to the next.
        after: The last rollout, counted from 0, in which nothing is altered; -1: there is none.
        highest: What it is at most.

    Example:
        >>> thresholds = MassagingSchedule(first=0.5, factor=0.985, after=17)
        >>> thresholds(17), thresholds(18)
        (None, 0.4925)
    """

    first: float
    factor: float = 1.0
    after: int = -1
    highest: float = float("inf")

    def __post_init__(self) -> None:
        """Check the settings."""
        checked("first", self.first, NonNegative)
        checked("factor", self.factor, Positive)
        if not self.highest >= 0:
            raise ValueError(f"highest must be at least 0, got {self.highest!r}")

    def __call__(self, rollout: int) -> float | None:
        """Return the threshold of a rollout, or None."""
        if rollout <= self.after:
            return None
        try:
            grown = self.first * self.factor ** (rollout - max(self.after, 0))
        except OverflowError:  # late in a training, of a threshold that grows
            return float(self.highest)
        return float(min(self.highest, grown))


# Hu, Lear and Zhang (2024) print none; these are those of their code.
LENDING_SCHEDULE = MassagingSchedule(first=0.5, factor=0.985, after=17)
ATTENTION_SCHEDULE = MassagingSchedule(first=0.08, after=15)
EPIDEMIC_SCHEDULE = MassagingSchedule(first=0.01, factor=1.2, after=50, highest=0.35)


# ---------------------------------------------------------------------------------------- what a policy says


Speaker = Callable[[NDArray[Any]], "PolicyOutput | Distribution"]
"""Says which actions may follow observations, and with what probabilities."""


def policy_output(said: PolicyOutput | Distribution) -> PolicyOutput:
    """Return what a Stable-Baselines3 distribution says as arrays.

    Raises:
        ValueError: A distribution without probabilities or densities of the actions themselves.
    """
    if isinstance(said, PolicyOutput):
        return said
    inner: Any = said.distribution
    if type(said) is CategoricalDistribution:
        return PolicyOutput(probabilities=_array(inner.probs))
    if type(said) is MultiCategoricalDistribution and len(set(said.action_dims)) == 1:
        return PolicyOutput(probabilities=_array(th.stack([choice.probs for choice in inner], dim=1)))
    if type(said) is DiagGaussianDistribution:
        return PolicyOutput(mean=_array(inner.mean), std=_array(inner.stddev))
    expected = "categorical, several categorical of one size, or Gaussian"
    raise ValueError(f"policy must choose actions that are {expected}, got {type(said).__name__}")


def drawn(said: PolicyOutput, space: gym.Space[Any], chance: np.random.Generator) -> NDArray[Any]:
    """Return actions drawn from what a policy says, shape (B, ...), within their space."""
    if said.probabilities is not None:
        return choose(said.probabilities, chance.random(said.probabilities.shape[:-1]))
    if said.mean is None or said.std is None or not isinstance(space, gym.spaces.Box):
        raise ValueError(f"policy must give probabilities, or mean and std of actions in a Box, got {space}")
    numbers = said.mean + said.std * chance.standard_normal(said.mean.shape)
    return np.clip(numbers, space.low, space.high).astype(space.dtype)


def likeliest(said: PolicyOutput, space: gym.Space[Any]) -> NDArray[Any]:
    """Return the likeliest actions, shape (B, ...), within their space; of equally likely ones the first."""
    if said.probabilities is not None:
        return np.asarray(said.probabilities.argmax(axis=-1), np.int64)
    if said.mean is None or not isinstance(space, gym.spaces.Box):
        raise ValueError(f"policy must give probabilities, or the mean of actions in a Box, got {space}")
    return np.clip(said.mean, space.low, space.high).astype(space.dtype)


def _array(tensor: th.Tensor) -> Floats:
    return tensor.detach().cpu().numpy().astype(np.float64)


def speaker_of(policy: BasePolicy) -> Speaker:
    """Return what asks a Stable-Baselines3 policy.

    Raises:
        ValueError: A policy that draws from no distribution, as DQN's.
    """
    if not hasattr(policy, "get_distribution"):
        raise ValueError(f"policy must draw its actions from a distribution, got {type(policy).__name__}")

    def speak(observation: NDArray[Any]) -> Distribution:
        with th.no_grad():
            said: Distribution = policy.get_distribution(policy.obs_to_tensor(observation)[0])  # type: ignore[operator]
        return said

    return speak


# ---------------------------------------------------------------------------------------------- the shield


class ShieldActions(FollowMeasures):
    """Executes what a massager makes of the actions that it is given.

    It works around any environment of Stable-Baselines3 that `FollowMeasures` can follow, whatever learner chose the
    actions; take it away to see what the policy does by itself.

    Args:
        venv: The environment; its rows are lanes.
        massager: Alters the actions.
        policy: The policy that chooses them, or what says what it says.
        short: Makes the short-term measure that the massager asks.
        threshold: What the massager calls unsure; a number, or a schedule of which `rollout` is the place; None:
            nothing is altered.
        others: What makes further measures to be followed.
        max_importance: What `importance` is at most; None: it is not computed.

    Attributes:
        sampled: The last actions as they came, shape (B, ...).
        executed: As they were carried out, shape (B, ...).
        altered: Which rows' differ, shape (B,).
        log_prob: The logarithms of the policy's probabilities of what was executed, shape (B,); None where nothing was
            altered, or a policy says arrays only.
        importance: How much more probable the policy makes what was executed than it is executed, shape (B,):
            ``min(max_importance, pi(a'|s) / mu(a'|s))`` with mu the law of what is executed; 1: as much, or it is not
            computed.
        rollout: Counts rollouts, for a schedule.

    Raises:
        ValueError: An environment whose rows are agents.

    Example:
        shielded = ShieldActions(env, massager, model.policy, short=OpportunityGap, threshold=0.3)
        observation = shielded.reset()
        for _ in range(100):
            observation, *_ = shielded.step(model.predict(observation)[0])
    """

    def __init__(
        self,
        venv: VecEnv,
        massager: Massager,
        policy: BasePolicy | Speaker,
        *,
        short: MeasureOf,
        threshold: float | Schedule | None,
        others: Sequence[MeasureOf] = (),
        max_importance: float | None = None,
    ) -> None:
        super().__init__(venv, (short, *others))
        if isinstance(self._source, AgentsVecEnv):
            raise ValueError("venv must have rows of lanes (rows='lanes'), got rows of agents")
        self.massager = massager
        self.schedule = threshold if callable(threshold) or threshold is None else MassagingSchedule(first=threshold)
        self.rollout = 0
        self._speak = speaker_of(policy) if isinstance(policy, BasePolicy) else policy
        self._normalised = unwrap_vec_normalize(venv)
        self._seen: Any = None
        self.sampled = self.executed = np.zeros(0)
        self.altered = np.zeros(self.num_envs, bool)
        self.log_prob: th.Tensor | None = None
        self.output: PolicyOutput | None = None
        self.max_importance = max_importance
        self.importance: Floats = np.ones(self.num_envs)

    @property
    def short(self) -> Measure:
        """The short-term measure, after the last step."""
        return self.measures[0]

    @property
    def threshold(self) -> float | None:
        """What the massager now calls unsure; None: nothing is altered."""
        return None if self.schedule is None else self.schedule(self.rollout)

    @property
    def seen(self) -> NDArray[Any]:
        """What the environment shows, shape (B, ...), before it is normalised."""
        shown: NDArray[Any] = self._seen if self._normalised is None else self._normalised.get_original_obs()  # type: ignore[assignment]
        return shown

    def at(self, begins: Flags, observation: Any = None) -> None:
        """Go on from observations, shape (B, ...), in episodes of which some begin."""
        super().at(begins)
        self._seen = observation

    def reset(self) -> Any:
        """Begin episodes in all rows and return their observations."""
        self._seen = super().reset()
        return self._seen

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the rows' actions, and let the massager alter them."""
        self._begin()
        self.sampled = self.executed = actions
        self.altered = np.zeros(self.num_envs, bool)
        self.output = self.log_prob = None
        if self.max_importance is not None:
            self.importance = np.ones(self.num_envs)
        if (threshold := self.threshold) is not None:
            self._massage(actions, threshold)
        self.venv.step_async(self.executed)

    def step_wait(self) -> VecEnvStepReturn:
        """Play one step of every row and let the measures take it in."""
        played = super().step_wait()
        self._seen = played[0]
        return played

    def _massage(self, actions: NDArray[Any], threshold: float) -> None:
        said = self._speak(self._seen)
        self.output = policy_output(said)
        executed = self.massager(self.seen, actions, self.output, self.short, threshold=threshold)
        if executed.shape != actions.shape:
            raise ValueError(f"massager must return actions of shape {actions.shape}, got {executed.shape}")
        self.executed = executed
        self.altered = ~same_rows(executed, actions)
        if self.max_importance is not None:  # here, while the measure and what is seen are those of the decision
            self.importance = self._importance(self.output, threshold, highest=self.max_importance)
        if isinstance(said, Distribution) and np.count_nonzero(self.altered):
            with th.no_grad():
                self.log_prob = log_probability(said, executed)

    def _importance(self, said: PolicyOutput, threshold: float, *, highest: float) -> Floats:
        """Return how much more probable the policy makes what is executed than it is executed, shape (B,).

        The probability with which something is executed is the sum of the policy's probabilities of all actions that
        the massager turns into it.

        Raises:
            ValueError: See `candidates`.
        """
        if said.probabilities is None:
            raise ValueError("action_space must be Discrete or MultiDiscrete to know how probable executed actions are")
        total = np.zeros(self.num_envs)
        for action in candidates(self.executed, self.action_space, self.massager):
            landed = self.massager(self.seen, action, said, self.short, threshold=threshold)
            total += same_rows(landed, self.executed) * probability(said.probabilities, action)
        of_policy = probability(said.probabilities, self.executed)
        return np.minimum(highest, of_policy / np.maximum(total, np.finfo(float).tiny))


def log_probability(said: Distribution, action: NDArray[Any]) -> th.Tensor:
    """Return the logarithms of the probabilities, or densities, of actions, shape (B,), as ``said.log_prob`` does.

    Actions have shape (B,) or (B, 1), or (B, N) of several choices or numbers a row. Discrete ones are looked up
    without its checks of each argument, which take longer than the rest.
    """
    inner: Any = said.distribution
    if isinstance(said, DiagGaussianDistribution):
        return said.log_prob(th.as_tensor(action, device=inner.mean.device))
    several = isinstance(inner, list)
    logits = th.stack([choice.logits for choice in inner], dim=1) if several else inner.logits  # (B, ..., actions)
    chosen = th.as_tensor(action, device=logits.device, dtype=th.int64).reshape(*logits.shape[:-1], 1)
    found = logits.gather(-1, chosen).squeeze(-1)
    return found.sum(dim=1) if several else found


def same_rows(one: NDArray[Any], other: NDArray[Any]) -> Flags:
    """Return which rows of two arrays of one shape are equal, shape (B,)."""
    same: Flags = one == other
    return same if same.ndim == 1 else np.asarray(same.reshape(len(one), -1).all(axis=1))


def probability(probabilities: Floats, action: NDArray[Any]) -> Floats:
    """Return the probabilities of actions, shape (B,).

    Args:
        probabilities: Shape (B, A), or (B, N, A) of N choices a row, which are independent.
        action: Shape (B,), or (B, N).
    """
    of_each = np.take_along_axis(probabilities, action[..., np.newaxis].astype(np.int64), axis=-1)[..., 0]
    return of_each if of_each.ndim == 1 else of_each.prod(axis=1)


def candidates(executed: NDArray[Any], space: gym.Space[Any], massager: Any) -> Iterator[NDArray[Any]]:
    """Yield all actions, shape (B, ...), that a massager may have turned into the executed ones.

    Raises:
        ValueError: They cannot be told: the space is continuous, or has several entries of which the massager does not
            say (by an attribute ``alters_one_entry``, which is true) that it alters at most one.
    """
    if isinstance(space, gym.spaces.Discrete):
        for action in range(int(space.n)):
            yield np.full_like(executed, action)
        return
    if not isinstance(space, gym.spaces.MultiDiscrete):
        raise ValueError(f"massaging must not be 'corrected' for actions in {space}")
    if not getattr(massager, "alters_one_entry", False):
        raise ValueError("massaging must not be 'corrected' unless the massager says that alters_one_entry is true")
    yield executed.copy()
    for entry, options in enumerate(space.nvec):
        for shift in range(1, int(options)):
            action = executed.copy()
            action[:, entry] = (executed[:, entry] + shift) % options
            yield action


Massaging = Literal["as_paper", "shield", "corrected"]
"""What is learnt from a step whose action was altered, see `fair_envs.baselines.Regularised`."""
