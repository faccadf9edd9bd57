"""Policies: what chooses the actions, whether it was learned, scripted or passed by a user as a function."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.aliases import Flags, Floats, Ints
from fair_envs.core import Rules
from fair_envs.evaluation.world import Transition, World
from fair_envs.faces.single import RandomPartners
from fair_envs.parameters import meant

Act = Callable[[NDArray[Any], Floats], NDArray[Any]]
"""Observations (B, agents, ...) and uniform numbers (B, agents) to actions (B, agents, ...)."""


class Policy:
    """Chooses the actions of B lanes at once; subclass it and override `act`.

    A decision-maker counts as one agent. `rollout` calls ``start`` once, then ``begin`` for every episode, and in each
    step ``act`` and ``observe_step``.

    Attributes:
        append_group: Whether observations must end with the agent's group.
    """

    append_group: bool = False

    def start(self, world: World) -> None:
        """Prepare for a world. Override it to read `World.lanes`, or to allocate memory for its lanes."""

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Prepare for new episodes.

        Args:
            mask: The lanes in which an episode begins, shape (B,).
            episodes: The number of each lane's episode, shape (B,).
        """

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the actions, shape (B, agents, ...).

        Args:
            observation: What the agents see, shape (B, agents, ...).
            uniforms: Random numbers in [0, 1), shape (B, agents), or (B, agents, N) where a step has N choices. A
                policy that samples with them and nothing else meets common random numbers in counterfactual worlds.
        """
        raise NotImplementedError

    def observe_step(self, step: Transition) -> None:
        """Learn from the step that the actions led to."""


class Stochastic(Policy):
    """Samples discrete actions from probabilities; subclass it and override `probabilities`."""

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the action probabilities, shape (B, agents, A), or (B, agents, N, A) for N choices a step."""
        raise NotImplementedError

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return actions sampled from the probabilities."""
        return self.sample(self.probabilities(observation), uniforms)

    @staticmethod
    def sample(probabilities: ArrayLike, uniforms: Floats) -> Ints:
        """Return the actions that the uniform numbers choose from probabilities."""
        given = np.asarray(probabilities, np.float64)
        return choose(given, numbers_for(given.shape[:-1], uniforms))


def choose(probabilities: ArrayLike, uniforms: Floats) -> Ints:
    """Return the actions that uniform numbers choose, by inversion of the cumulative distribution.

    Args:
        probabilities: Shape (..., actions), rows summing to 1.
        uniforms: In [0, 1), shape (...).

    Example:
        >>> print(choose([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], np.array([0.19, 0.2])))
        [0 1]
    """
    cumulative = np.cumsum(np.asarray(probabilities, np.float64), axis=-1)
    reached = uniforms[..., np.newaxis] * cumulative[..., -1:]  # so that rounding never chooses what has no chance
    return np.asarray((reached >= cumulative[..., :-1]).sum(axis=-1), np.int64)


def numbers_for(shape: tuple[int, ...], uniforms: Floats) -> Floats:
    """Return uniform numbers of a shape: the given ones, or several made from each of them."""
    if uniforms.shape == shape or uniforms.ndim >= len(shape):
        return uniforms
    several = shape[uniforms.ndim :]
    numbers = [np.random.default_rng(int(number * 2**53)).random(several) for number in uniforms.ravel()]
    return np.reshape(numbers, (*uniforms.shape, *several))


class FromFunction(Policy):
    """Calls a function of observations and uniform numbers, with the shapes of `Policy.act`."""

    def __init__(self, function: Act) -> None:
        self._function = function

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return what the function returns."""
        return self._function(np.array(observation), uniforms)  # it may write into what it is given


class FromProbabilities(Stochastic):
    """Samples from a function's probabilities: observations (B, agents, ...) to (B, agents, A)."""

    def __init__(self, function: Callable[[NDArray[Any]], ArrayLike]) -> None:
        self._function = function

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return what the function returns."""
        return np.asarray(self._function(observation), np.float64)


class FromSB3(Stochastic):
    """Samples from a Stable-Baselines3 model with discrete actions, trained on rows of agents or of lanes.

    Args:
        model: For example a PPO.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the model's action probabilities.

        Raises:
            ValueError: The model takes other observations.
        """
        lanes, agents = observation.shape[:2]
        wanted = self.model.observation_space.shape
        by_agent = observation.shape[2:] == wanted
        if not by_agent and (int(np.prod(observation.shape[1:])),) != wanted:
            shape = observation.shape[2:]
            raise ValueError(
                f"model must take observations of shape {shape}, or those of all agents at once, got {wanted}"
            )
        rows = observation.reshape(lanes * agents if by_agent else lanes, *wanted)
        network = self.model.policy
        network.set_training_mode(False)
        distribution = network.get_distribution(network.obs_to_tensor(rows)[0]).distribution
        parts = distribution if isinstance(distribution, (list, tuple)) else [distribution]
        found = np.stack([part.probs.detach().cpu().numpy() for part in parts], axis=1)  # (rows, 1 or agents, A)
        return np.asarray(found.reshape(lanes, agents, -1))


class MostLikely(Stochastic):
    """Takes the action that another policy considers most probable."""

    def __init__(self, policy: Stochastic) -> None:
        self.policy = policy
        self.append_group = policy.append_group

    def start(self, world: World) -> None:
        """Prepare the policy."""
        self.policy.start(world)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Prepare the policy for new episodes."""
        self.policy.begin(mask, episodes)

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return probabilities 0 and 1."""
        own = self.policy.probabilities(observation)
        certain: Floats = np.eye(own.shape[-1])[own.argmax(axis=-1)]
        return certain

    def observe_step(self, step: Transition) -> None:
        """Let the policy learn from the step."""
        self.policy.observe_step(step)


class RandomPolicy(Policy):
    """Takes every action with the same probability; of a bounded box, every point.

    Args:
        rules: The environment's.
    """

    def __init__(self, rules: Rules) -> None:
        self._choose = RandomPartners(rules)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return an action for each uniform number."""
        chosen = self._choose(observation, uniforms.ravel())
        return chosen.reshape(*uniforms.shape, *chosen.shape[1:])


class DecisionMaker(Stochastic):
    """A policy for the one agent of a decision-maker's environment; override `decide`.

    Attributes:
        lanes: What is played, from `start` on.
    """

    lanes: Any = None

    def start(self, world: World) -> None:
        """Keep the lanes."""
        self.lanes = world.lanes

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the action probabilities, shape (B, A) or (B, N, A), for observations of shape (B, ...)."""
        raise NotImplementedError

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the action probabilities, shape (B, 1, A) or (B, 1, N, A)."""
        return self.decide(observation[:, 0])[:, np.newaxis]

    def oracle(self) -> dict[str, NDArray[Any]]:
        """Return what is hidden about those to be decided on now; a policy that uses it is a bound, and not usable."""
        hidden: dict[str, NDArray[Any]] = self.lanes.rules.oracle(self.lanes.records)
        return hidden


def as_policy(given: Policy | Act) -> Policy:
    """Return a policy as it is, or make one of a function with the signature of `Policy.act`.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(given, Policy):
        return given
    kind: Any = given
    if isinstance(kind, type) and issubclass(kind, Policy):
        raise TypeError(f"policy must be a Policy, got the class {kind.__name__}: pass an instance")
    if not callable(given):
        raise TypeError(
            "policy must be a Policy or callable, a function of observations and uniform numbers that returns actions, "
            f"got {given!r}"
        )
    return FromFunction(given)


def scripted(rules: Rules, name: str) -> Policy:
    """Return a scripted policy of an environment, see `fair_envs.core.Rules.policies`.

    Raises:
        ValueError: There is none of that name.
    """
    if name not in rules.policies:
        known = ", ".join(map(repr, rules.policies)) or "none"
        raise ValueError(f"policy must be one of {known} for {rules.name}, got {name!r}{meant(name, rules.policies)}")
    module, _, attribute = rules.policies[name].partition(":")
    found: Policy = getattr(importlib.import_module(module), attribute)(rules)
    return found
