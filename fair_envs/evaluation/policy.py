"""Policies choose actions; they can be learned, scripted or your own functions."""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fair_envs.core import Rules
from fair_envs.evaluation.world import Transition, World
from fair_envs.faces.focal import RandomPartners
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import meant

Act = Callable[[NDArray[Any], Floats], NDArray[Any]]
"""A function from observations (B, agents, ...) and uniform numbers (B, agents) to actions (B, agents, ...)."""


class Policy:
    """Chooses the actions of B lanes at once; subclass it and override `act`.

    A decision-maker counts as one agent. `rollout` calls ``start`` once, then ``begin`` for every episode, and in each
    step ``act`` and ``observe_step``.

    Attributes:
        append_group: Whether observations must end with the agent's group.
        uses_truth: Whether the policy reads what methods do not observe, such as labels or hidden states. Comparisons
            show it as a bound. A function can have this attribute too.
    """

    append_group: bool = False
    uses_truth: bool = False

    def start(self, world: World) -> None:
        """Prepare for a world. Override this to read `World.lanes`, or to allocate memory for the lanes."""

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Prepare for new episodes.

        Args:
            mask: The lanes in which an episode starts, shape (B,).
            episodes: The number of each lane's episode, shape (B,).
        """

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the actions, shape (B, agents, ...).

        Args:
            observation: The agents' observations, shape (B, agents, ...).
            uniforms: Random numbers in [0, 1), shape (B, agents), or (B, agents, N) if a step has N choices. A policy
                that samples only with them uses common random numbers in counterfactual episodes.
        """
        raise NotImplementedError

    def observe_step(self, step: Transition) -> None:
        """Receive the step that resulted from the actions."""


class Stochastic(Policy):
    """Samples discrete actions from probabilities; subclass it and override `probabilities`."""

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the action probabilities, shape (B, agents, A), or (B, agents, N, A) for N choices per step."""
        raise NotImplementedError

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return actions sampled from the probabilities."""
        return self.sample(self.probabilities(observation), uniforms)

    def sample(self, probabilities: ArrayLike, uniforms: Floats) -> NDArray[Any]:
        """Return the actions that the uniform numbers select from the probabilities.

        Override this if actions are not the numbers 0 to A - 1.
        """
        given = np.asarray(probabilities, np.float64)
        return choose(given, numbers_for(given.shape[:-1], uniforms))


def choose(probabilities: ArrayLike, uniforms: Floats) -> Ints:
    """Return the actions that uniform numbers select, by inversion of the cumulative distribution.

    Args:
        probabilities: Shape (..., actions), rows summing to 1.
        uniforms: In [0, 1), shape (...).

    Example:
        >>> print(choose([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], np.array([0.19, 0.2])))
        [0 1]
    """
    cumulative = np.cumsum(np.asarray(probabilities, np.float64), axis=-1)
    reached = uniforms[..., np.newaxis] * cumulative[..., -1:]  # rounding then never selects actions of probability 0
    return np.asarray((reached >= cumulative[..., :-1]).sum(axis=-1), np.int64)


def numbers_for(shape: tuple[int, ...], uniforms: Floats) -> Floats:
    """Return uniform numbers of a shape: the given ones, or several derived from each of them."""
    if uniforms.shape == shape or uniforms.ndim >= len(shape):
        return uniforms
    several = shape[uniforms.ndim :]
    numbers = [np.random.default_rng(int(number * 2**53)).random(several) for number in uniforms.ravel()]
    return np.reshape(numbers, (*uniforms.shape, *several))


class FromFunction(Policy):
    """Calls a function of observations and uniform numbers, with the shapes of `Policy.act`."""

    def __init__(self, function: Act) -> None:
        self._function = function
        self.uses_truth = bool(getattr(function, "uses_truth", False))

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return what the function returns."""
        own: Any = observation  # of environments of another package, also a dictionary
        copied: Any = {key: np.array(part) for key, part in own.items()} if isinstance(own, dict) else np.array(own)
        return self._function(copied, uniforms)  # a copy, because the function may write into it


class FromProbabilities(Stochastic):
    """Samples actions from a function that maps observations (B, agents, ...) to probabilities (B, agents, A)."""

    def __init__(self, function: Callable[[NDArray[Any]], ArrayLike]) -> None:
        self._function = function

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return what the function returns."""
        probs = np.asarray(self._function(observation), np.float64)
        if probs.ndim < 3 or probs.shape[:2] != observation.shape[:2]:
            lanes, agents = observation.shape[:2]
            raise ValueError(
                f"function must return probabilities of shape ({lanes}, {agents}, actions), got {probs.shape}"
            )
        return probs


class MostLikely(Stochastic):
    """Takes the most probable action of another policy."""

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

    def sample(self, probabilities: ArrayLike, uniforms: Floats) -> NDArray[Any]:
        """Return the policy's actions."""
        return self.policy.sample(probabilities, uniforms)

    def observe_step(self, step: Transition) -> None:
        """Pass the step to the policy."""
        self.policy.observe_step(step)


class ByAgent(Policy):
    """Plays each agent with a function of its own.

    Args:
        functions: By PettingZoo's name of the agent, such as ``"agent_0"``: a function from its observations (B, ...)
            and uniform random numbers (B,) to its actions (B, ...). With the numbers, and without any other randomness,
            counterfactual episodes use common random numbers.
        agents: The names of all agents, in their order.

    Raises:
        ValueError: An agent is missing, or a name is unknown.
        TypeError: A value is no function of two arguments.
    """

    def __init__(self, functions: Mapping[str, Act], *, agents: Sequence[str]) -> None:
        for name, function in functions.items():
            if name not in agents:
                raise ValueError(f"policy must be of the agents {agents[0]} to {agents[-1]}, got {name!r}")
            if not callable(function) or not _takes_two(function):
                raise TypeError(
                    "policy of an agent must be a function (observations, uniforms) -> actions, with its observations "
                    f"(B, ...), uniform random numbers (B,) and actions (B, ...), got {function!r} for {name}"
                )
        if missing := [name for name in agents if name not in functions]:
            raise ValueError(f"policy must be of all {len(agents)} agents, got none for {missing[0]}")
        self._functions = [functions[name] for name in agents]

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return what the functions return, shape (B, agents, ...)."""
        own = enumerate(self._functions)
        return np.stack([function(observation[:, i].copy(), uniforms[:, i]) for i, function in own], axis=1)


class RandomPolicy(Policy):
    """Samples actions uniformly; in a bounded box, points.

    Args:
        rules: The rules of the environment.
        space: The action space of an agent; None: that of the rules.
    """

    def __init__(self, rules: Any, *, space: gym.Space[Any] | None = None) -> None:
        self._choose = RandomPartners(rules, space=space)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return an action for each agent: several choices follow from its first uniform number."""
        numbers = uniforms.reshape(*uniforms.shape[:2], -1)[..., 0]
        chosen = self._choose(observation, numbers.ravel())
        return chosen.reshape(*numbers.shape, *chosen.shape[1:])


class DecisionMaker(Stochastic):
    """A policy for the one agent of a decision-maker's environment; override `decide`.

    Attributes:
        lanes: The played lanes; available after `start`.
    """

    lanes: Any = None

    def start(self, world: World) -> None:
        """Store the lanes."""
        self.lanes = world.lanes

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the action probabilities, shape (B, A) or (B, N, A), for observations of shape (B, ...)."""
        raise NotImplementedError

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the action probabilities, shape (B, 1, A) or (B, 1, N, A)."""
        return self.decide(observation[:, 0])[:, np.newaxis]

    def oracle(self) -> dict[str, NDArray[Any]]:
        """Return hidden information about the people of the next decision; policies that use it are only bounds."""
        hidden: dict[str, NDArray[Any]] = self.lanes.rules.oracle(self.lanes.records)
        return hidden


def as_policy(given: Policy | Act) -> Policy:
    """Return a policy unchanged, or convert a function with the signature of `Policy.act`.

    Raises:
        TypeError: The argument is neither.
    """
    if isinstance(given, Policy):
        return given
    kind: Any = given
    if isinstance(kind, type) and issubclass(kind, Policy):
        raise TypeError(f"policy must be a Policy, got the class {kind.__name__}: pass an instance")
    if not callable(given) or not _takes_two(given):
        raise TypeError(
            "policy must be a Policy or a function (observations, uniforms) -> actions, with observations of shape "
            f"(B, agents, ...), uniform random numbers (B, agents) and actions (B, agents, ...), got {given!r}"
        )
    return FromFunction(given)


def _takes_two(function: Any) -> bool:
    """Return whether a function accepts two arguments; true if its signature is unknown."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # of functions in C
        pass
    return True


def scripted(rules: Rules, name: str) -> Policy:
    """Return a scripted policy of an environment, see `fair_envs.core.Rules.policies`.

    Raises:
        ValueError: The name is unknown.
    """
    if name not in rules.policies:
        known = ", ".join(map(repr, rules.policies)) or "none"
        raise ValueError(f"policy must be one of {known} for {rules.name}, got {name!r}{meant(name, rules.policies)}")
    module, _, attribute = rules.policies[name].partition(":")
    found: Policy = getattr(importlib.import_module(module), attribute)(rules)
    return found
