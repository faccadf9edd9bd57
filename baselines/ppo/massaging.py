"""Action massaging: replace decisions that a policy is uncertain about by decisions that are fairer in the short term.

A massager alters decisions based on the decision-maker's observation, the policy's output and a short-term measure. It
never uses hidden information. The method follows Hu, Lear and Zhang (2024), section 4.
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

from fair_envs.baselines.ppo.tracking import TrackMeasures
from fair_envs.core import Rules
from fair_envs.evaluation import choose
from fair_envs.faces.sb3 import AgentsVecEnv, VecEnvStepReturn
from fair_envs.metrics.measures import Measure, MeasureOf
from fair_envs.metrics.rates import RateMeasure
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.imports import imported
from fair_envs.support.parameters import NonNegative, Positive, PositiveInt, checked
from fair_envs.tasks import MassagerMaker, Task

DIGITS = 12  # decimal digits to which short-term measures are compared
ROUNDING = 10.0**-DIGITS  # smaller differences are ignored


class PolicyOutput(NamedTuple):
    """A policy's output for B rows; fields that do not apply to its kind of actions are None.

    Attributes:
        probabilities: Probabilities of discrete actions, shape (B, actions), or (B, N, actions) for several choices per
            step (a MultiDiscrete of N equal entries).
        mean: Means of Gaussian actions, shape (B, D).
        std: Standard deviations of Gaussian actions, shape (B, D).
    """

    probabilities: Floats | None = None
    mean: Floats | None = None
    std: Floats | None = None


class Massager(Protocol):
    """Alters decisions that the policy is uncertain about to reduce a short-term measure."""

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Measure, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions, a new array with the shape of ``action``.

        Args:
            observation: The observations, shape (B, ...).
            action: The sampled actions, shape (B, ...); not modified.
            policy: The policy's output for the observations.
            short: The measure after the previous step, which predicts its next value; not modified.
            threshold: Determines which decisions are uncertain.
        """


# ------------------------------------------------------------------------------------------------- thresholds


Schedule = Callable[[int], float | None]
"""Returns the threshold of a rollout, counted from 0; None: no action is altered."""


@dataclass(frozen=True, kw_only=True)
class MassagingSchedule:
    """A threshold that starts after some rollouts and is multiplied by a factor in each further rollout.

    Attributes:
        initial: Threshold before the first multiplication.
        factor: Factor from one rollout to the next.
        start_after: Massaging starts in rollout ``start_after + 1``, counted from 0; -1: from the start.
        highest: Upper bound of the threshold.
        rollouts: Number of rollouts of the published training; a training with fewer passes through it faster.

    Example:
        >>> thresholds = MassagingSchedule(initial=0.5, factor=0.985, start_after=17)
        >>> thresholds(17), thresholds(18)
        (None, 0.4925)
    """

    initial: float
    factor: float = 1.0
    start_after: int = -1
    highest: float = float("inf")
    rollouts: int = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        checked("initial", self.initial, NonNegative)
        checked("factor", self.factor, Positive)
        checked("rollouts", self.rollouts, PositiveInt)
        if not self.highest >= 0:
            raise ValueError(f"highest must be at least 0, got {self.highest!r}")

    def __call__(self, rollout: int) -> float | None:
        """Return the threshold of a rollout, or None."""
        if rollout <= self.start_after:
            return None
        try:
            grown = self.initial * self.factor ** (rollout - max(self.start_after, 0))
        except OverflowError:  # late in a training, if the threshold grows
            return float(self.highest)
        return float(min(self.highest, grown))


# ------------------------------------------------------------------------------- decisions about one person


class DecisionMassager:
    """Reverses uncertain decisions, 0 or 1, about one person if this reduces the short-term measure.

    A decision with probability p is uncertain if threshold <= p <= 1 - threshold. It is reversed if `gain` is above
    rounding. Subclasses define `gain`.
    """

    ties: bool = False
    """Whether an uncertain decision is also reversed if both decisions give the same value."""

    # the only published thresholds for such decisions, those for loans in the code of Hu, Lear and Zhang (2024)
    schedule = MassagingSchedule(initial=0.5, factor=0.985, start_after=17, rollouts=350)
    """Thresholds by rollout of the published training."""

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Any, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions, a new array of shape (B,); see `Massager`."""
        if policy.probabilities is None:
            raise ValueError("policy must give probabilities of discrete actions, got none")
        probability = policy.probabilities[np.arange(len(action)), action]
        unsure = (threshold <= probability) & (probability <= 1 - threshold)
        if not np.count_nonzero(unsure):
            return np.array(action)
        gain = self.gain(observation, action, short)
        fairer = gain >= -ROUNDING if self.ties else gain > ROUNDING
        return np.where(unsure & fairer, 1 - action, action)

    def gain(self, observation: NDArray[Any], action: NDArray[Any], short: Any) -> Floats:
        """Return how much smaller the measure would be after the other decision, shape (B,); NaN: unknown."""
        raise NotImplementedError


class RateMassager(DecisionMassager):
    """A `DecisionMassager` for a rate measure, in environments whose observations show the person's groups.

    The measure is predicted for both decisions with `fair_envs.metrics.rates.RateMeasure.if_taken`. The person's label
    is not known before the decision; both labels count equally. This decides correctly for rates of people with one
    label, such as true positive rates: for people with the other label, the decisions make no difference.

    Args:
        env: The environment, with any interface, or its rules.

    Raises:
        ValueError: See `without_groups`.
    """

    def __init__(self, env: Any) -> None:
        rules = getattr(getattr(env, "lanes", None), "rules", env)
        if why := without_groups(rules):
            raise ValueError(f"env must have two decisions about one person whose groups it shows, got one that {why}")
        space, names = rules.observation_space(rules.params), rules.observed_features(rules.params)
        self._one_hot = not set(rules.spec.sensitive) <= set(names)
        self._columns = [names.index(name) for name in (rules.spec.groups if self._one_hot else rules.spec.sensitive)]
        self._low, self._range = space.low[self._columns], (space.high - space.low)[self._columns]
        self._sizes = np.array([len(codes) for codes in rules.spec.sensitive.values()])

    def gain(self, observation: NDArray[Any], action: NDArray[Any], short: Any) -> Floats:
        """Return how much smaller the measure would be after the other decision, shape (B,)."""
        group, sensitive = self.people(observation)
        value, other = (short.if_taken(group, sensitive, decision) for decision in (action, 1 - action))
        return np.asarray(value - other)

    def people(self, observation: NDArray[Any]) -> tuple[Ints, Ints]:
        """Return the groups, shape (B,), and the sensitive codes, shape (B, attributes), that observations show."""
        if self._one_hot:
            group = observation[:, self._columns].argmax(axis=1)
            return group, np.stack(np.unravel_index(group, tuple(self._sizes)), axis=-1)
        shares = (observation[:, self._columns] - self._low) / self._range
        sensitive = np.rint(shares * (self._sizes - 1)).astype(np.int64)
        return np.ravel_multi_index(tuple(sensitive.T), tuple(self._sizes)), sensitive


def without_groups(rules: Any) -> str:
    """Return why `RateMassager` does not work with rules, or "".

    It needs two decisions about one person in each step, and observations in which entries named like the sensitive
    attributes show their codes, evenly spaced between the bounds of the space, or entries named like the groups are 1
    for the person's group and 0 for the others.
    """
    space = rules.action_space(rules.params)
    if rules.multi_agent or not rules.spec.one_person or not (isinstance(space, gym.spaces.Discrete) and space.n == 2):
        return "has other decisions"
    names = rules.observed_features(rules.params) if isinstance(rules, Rules) else ()
    if set(rules.spec.groups) <= set(names):
        return ""
    hidden = [name for name in rules.spec.sensitive if name not in names]
    return f"does not show {', '.join(hidden)} in its observations" if hidden else ""


def massager_maker(task: Task, rules: Any) -> MassagerMaker | None:
    """Return the function that creates a task's massager from an environment; None: there is none.

    The general one, `RateMassager`, also needs a short-term measure whose next value can be predicted.
    """
    if task.massager is not None:
        return imported(task.massager) if isinstance(task.massager, str) else task.massager
    if without_groups(rules):
        return None
    measure = task.measure("short", rules, 1)
    return RateMassager if isinstance(measure, RateMeasure) and measure.predictable else None


# ---------------------------------------------------------------------------------------- policy outputs


PolicyFunction = Callable[[NDArray[Any]], "PolicyOutput | Distribution"]
"""Returns the distribution of actions for observations."""


def policy_output(output: PolicyOutput | Distribution) -> PolicyOutput:
    """Return a Stable-Baselines3 distribution as arrays.

    Raises:
        ValueError: The distribution has no probabilities or densities of the actions themselves.
    """
    if isinstance(output, PolicyOutput):
        return output
    inner: Any = output.distribution
    if type(output) is CategoricalDistribution:
        return PolicyOutput(probabilities=_array(inner.probs))
    if type(output) is MultiCategoricalDistribution and len(set(output.action_dims)) == 1:
        return PolicyOutput(probabilities=_array(th.stack([choice.probs for choice in inner], dim=1)))
    if type(output) is DiagGaussianDistribution:
        return PolicyOutput(mean=_array(inner.mean), std=_array(inner.stddev))
    expected = "categorical, several categorical of one size, or Gaussian"
    raise ValueError(f"policy must choose actions that are {expected}, got {type(output).__name__}")


def sample_actions(output: PolicyOutput, space: gym.Space[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return actions sampled from a policy's output, shape (B, ...), within their space."""
    if output.probabilities is not None:
        return choose(output.probabilities, rng.random(output.probabilities.shape[:-1]))
    if output.mean is None or output.std is None or not isinstance(space, gym.spaces.Box):
        raise ValueError(f"policy must give probabilities, or mean and std of actions in a Box, got {space}")
    numbers = output.mean + output.std * rng.standard_normal(output.mean.shape)
    return np.clip(numbers, space.low, space.high).astype(space.dtype)


def most_probable(output: PolicyOutput, space: gym.Space[Any]) -> NDArray[Any]:
    """Return the most probable actions, shape (B, ...), within their space; the first one in case of ties."""
    if output.probabilities is not None:
        return np.asarray(output.probabilities.argmax(axis=-1), np.int64)
    if output.mean is None or not isinstance(space, gym.spaces.Box):
        raise ValueError(f"policy must give probabilities, or the mean of actions in a Box, got {space}")
    return np.clip(output.mean, space.low, space.high).astype(space.dtype)


def _array(tensor: th.Tensor) -> Floats:
    return tensor.detach().cpu().numpy().astype(np.float64)


def policy_function(policy: BasePolicy) -> PolicyFunction:
    """Return a function that gives a Stable-Baselines3 policy's distribution for observations.

    Raises:
        ValueError: The policy has no distribution of actions, such as DQN's.
    """
    if not hasattr(policy, "get_distribution"):
        raise ValueError(f"policy must draw its actions from a distribution, got {type(policy).__name__}")

    def distribution_of(observation: NDArray[Any]) -> Distribution:
        with th.no_grad():
            output: Distribution = policy.get_distribution(policy.obs_to_tensor(observation)[0])  # type: ignore[operator]
        return output

    return distribution_of


# ---------------------------------------------------------------------------------------------- the shield


class ShieldActions(TrackMeasures):
    """Wrapper that executes the actions of a massager in place of the given actions.

    It wraps any Stable-Baselines3 environment that `TrackMeasures` supports, with any learner. Remove it to evaluate
    the policy without massaging.

    Args:
        venv: The environment; its rows are lanes.
        massager: Alters the actions.
        policy: The policy that chooses the actions, or a function that returns its output.
        short: Creates the short-term measure for the massager.
        threshold: Determines which decisions are uncertain. A number, or a schedule evaluated at `rollout`; None: no
            action is altered.
        other_measures: Factories of further measures to update.
        max_importance: Upper bound of `importance`; None: it is not computed.

    Attributes:
        sampled: The last given actions, shape (B, ...).
        executed: The last executed actions, shape (B, ...).
        altered: Mask of the rows whose action was altered, shape (B,).
        log_prob: Logarithms of the policy's probabilities of the executed actions, shape (B,); None if no action was
            altered, or if the policy returns only arrays.
        importance: Importance weights of the executed actions, ``min(max_importance, pi(a'|s) / mu(a'|s))``, shape
            (B,), where mu is the distribution of the executed actions. 1: the probabilities are equal, or the weights
            are not computed.
        rollout: Number of the rollout, for a schedule.

    Raises:
        ValueError: The rows of the environment are agents.

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
        policy: BasePolicy | PolicyFunction,
        *,
        short: MeasureOf,
        threshold: float | Schedule | None,
        other_measures: Sequence[MeasureOf] = (),
        max_importance: float | None = None,
    ) -> None:
        super().__init__(venv, (short, *other_measures))
        if isinstance(self._source, AgentsVecEnv):
            raise ValueError("venv must have rows of lanes (rows='lanes'), got rows of agents")
        self.massager = massager
        self.schedule = threshold if callable(threshold) or threshold is None else MassagingSchedule(initial=threshold)
        self.rollout = 0
        self._distribution_of = policy_function(policy) if isinstance(policy, BasePolicy) else policy
        self._normalised = unwrap_vec_normalize(venv)
        self._observation: Any = None
        self.sampled = self.executed = np.zeros(0)
        self.altered = np.zeros(self.num_envs, bool)
        self.log_prob: th.Tensor | None = None
        self.output: PolicyOutput | None = None
        self.max_importance = max_importance
        self.importance: Floats = np.ones(self.num_envs)

    @property
    def short(self) -> Measure:
        """Short-term measure after the last step."""
        return self.measures[0]

    @property
    def threshold(self) -> float | None:
        """Current threshold of the massager; None: no action is altered."""
        return None if self.schedule is None else self.schedule(self.rollout)

    @property
    def raw_observation(self) -> NDArray[Any]:
        """Observations of the environment before normalisation, shape (B, ...)."""
        normalised = self._normalised
        observation: Any = self._observation if normalised is None else normalised.get_original_obs()
        return observation  # type: ignore[no-any-return]

    def set_episode_starts(self, starts_next: Flags, observation: Any = None) -> None:
        """Continue from the given state.

        Args:
            starts_next: Which rows' next step is the first of an episode, shape (B,).
            observation: The current observations, shape (B, ...).
        """
        super().set_episode_starts(starts_next)
        self._observation = observation

    def reset(self) -> Any:
        """Begin episodes in all rows and return their observations."""
        self._observation = super().reset()
        return self._observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the rows' actions, and let the massager alter them."""
        self._begin_episodes()
        self.sampled = self.executed = actions
        self.altered = np.zeros(self.num_envs, bool)
        self.output = self.log_prob = None
        if self.max_importance is not None:
            self.importance = np.ones(self.num_envs)
        if (threshold := self.threshold) is not None:
            self._massage(actions, threshold)
        self.venv.step_async(self.executed)

    def step_wait(self) -> VecEnvStepReturn:
        """Play one step of every row and update the measures."""
        played = super().step_wait()
        self._observation = played[0]
        return played

    def _massage(self, actions: NDArray[Any], threshold: float) -> None:
        distribution = self._distribution_of(self._observation)
        self.output = policy_output(distribution)
        executed = self.massager(self.raw_observation, actions, self.output, self.short, threshold=threshold)
        if executed.shape != actions.shape:
            raise ValueError(f"massager must return actions of shape {actions.shape}, got {executed.shape}")
        self.executed = executed
        self.altered = ~same_rows(executed, actions)
        if self.max_importance is not None:  # now, before the measure and the observations change
            self.importance = self._importance(self.output, threshold, highest=self.max_importance)
        if isinstance(distribution, Distribution) and np.count_nonzero(self.altered):
            with th.no_grad():
                self.log_prob = log_probability(distribution, executed)

    def _importance(self, output: PolicyOutput, threshold: float, *, highest: float) -> Floats:
        """Return the policy's probability of each executed action over the probability of executing it, shape (B,).

        The probability of executing an action is the sum of the policy's probabilities of all actions that the massager
        turns into it.

        Raises:
            ValueError: See `candidates`.
        """
        if output.probabilities is None:
            raise ValueError("action_space must be Discrete or MultiDiscrete for probabilities of executed actions")
        total = np.zeros(self.num_envs)
        for action in candidates(self.executed, self.action_space, self.massager):
            massaged = self.massager(self.raw_observation, action, output, self.short, threshold=threshold)
            total += same_rows(massaged, self.executed) * probability(output.probabilities, action)
        policy_probability = probability(output.probabilities, self.executed)
        return np.minimum(highest, policy_probability / np.maximum(total, np.finfo(float).tiny))


def log_probability(distribution: Distribution, action: NDArray[Any]) -> th.Tensor:
    """Return the logarithms of the probabilities, or densities, of actions, shape (B,).

    The result is that of ``distribution.log_prob``.

    Actions have shape (B,) or (B, 1), or (B, N) for several choices or numbers per row. Discrete actions are looked up
    without torch's argument checks, which take longer than the lookup.
    """
    inner: Any = distribution.distribution
    if isinstance(distribution, DiagGaussianDistribution):
        return distribution.log_prob(th.as_tensor(action, device=inner.mean.device))
    several = isinstance(inner, list)
    logits = th.stack([choice.logits for choice in inner], dim=1) if several else inner.logits  # (B, ..., actions)
    chosen = th.as_tensor(action, device=logits.device, dtype=th.int64).reshape(*logits.shape[:-1], 1)
    found = logits.gather(-1, chosen).squeeze(-1)
    return found.sum(dim=1) if several else found


def same_rows(one: NDArray[Any], other: NDArray[Any]) -> Flags:
    """Return a mask of the equal rows of two arrays of the same shape, shape (B,)."""
    same: Flags = one == other
    return same if same.ndim == 1 else np.asarray(same.reshape(len(one), -1).all(axis=1))


def probability(probabilities: Floats, action: NDArray[Any]) -> Floats:
    """Return the probabilities of actions, shape (B,).

    Args:
        probabilities: Probabilities, shape (B, A), or (B, N, A) for N independent choices per row.
        action: Actions, shape (B,) or (B, N).
    """
    of_each = np.take_along_axis(probabilities, action[..., np.newaxis].astype(np.int64), axis=-1)[..., 0]
    return of_each if of_each.ndim == 1 else of_each.prod(axis=1)


def candidates(executed: NDArray[Any], space: gym.Space[Any], massager: Any) -> Iterator[NDArray[Any]]:
    """Yield all actions, shape (B, ...), that a massager may have turned into the executed ones.

    Raises:
        ValueError: They cannot be determined: the space is continuous, or it has several entries and the massager does
            not declare, by a true attribute ``alters_one_entry``, that it alters at most one entry.
    """
    if isinstance(space, gym.spaces.Discrete):
        for action in range(int(space.n)):
            yield np.full_like(executed, action)
        return
    if not isinstance(space, gym.spaces.MultiDiscrete):
        raise ValueError(f"massaging must not be 'corrected' for actions in {space}")
    if not getattr(massager, "alters_one_entry", False):
        raise ValueError("massaging must not be 'corrected' unless the massager has alters_one_entry set to true")
    yield executed.copy()
    for entry, options in enumerate(space.nvec):
        for shift in range(1, int(options)):
            action = executed.copy()
            action[:, entry] = (executed[:, entry] + shift) % options
            yield action


Massaging = Literal["as_paper", "shield", "corrected"]
"""How the learner uses a step whose action was altered, see `fair_envs.baselines.Regularised`."""
