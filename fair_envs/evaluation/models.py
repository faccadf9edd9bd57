"""Policies of Stable-Baselines3 models: any algorithm, any action space, on rows of agents or of lanes."""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.evaluation.policy import MostLikely, Policy, Stochastic, numbers_for
from fair_envs.faces.common import with_last
from fair_envs.support.aliases import Flags, Floats, Ints


class ModelMismatchError(ValueError):
    """A model takes other observations or actions than the environment has."""


def policy_of_model(model: Any, rules: Any = None, *, deterministic: bool = False) -> Policy:
    """Return the policy of a Stable-Baselines3 model.

    Actions are sampled with the random numbers of the lanes if the model has a distribution of actions (PPO, A2C). All
    other models (DQN, SAC, TD3, recurrent ones) take the action that ``model.predict`` returns.

    Args:
        model: The model, trained on rows of agents or of lanes, with or without the agent's group or index at the end
            of its observations. The statistics of its `VecNormalize` are applied if the model has one.
        rules: The environment, whose observations and actions are compared with those of the model; None: they are
            compared when the policy acts.
        deterministic: Whether the most likely action is taken instead of a sampled one.

    Raises:
        ModelMismatchError: The model takes other observations or actions than the environment has.
    """
    grouped = False if rules is None else _check(model, rules)
    discrete = isinstance(model.action_space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)
    if not _has_distribution(model):
        found: Policy = Predicted(model)
    elif discrete:
        found = MostLikely(FromSB3(model)) if deterministic else FromSB3(model)
    else:
        found = Predicted(model) if deterministic else FromNormal(model)
    found.append_group = grouped
    return found


def _has_distribution(model: Any) -> bool:
    """Return whether actions can be sampled from a distribution that does not depend on earlier steps."""
    policy = getattr(model, "policy", None)
    if not hasattr(policy, "get_distribution") or hasattr(policy, "lstm_actor"):
        return False
    boxed = isinstance(model.action_space, gym.spaces.Box)
    plain = not (getattr(policy, "squash_output", False) or getattr(policy, "use_sde", False))
    return plain if boxed else isinstance(model.action_space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)


def _check(model: Any, rules: Any) -> bool:
    """Return whether the model's observations end with the agent's group; raise an error if they do not fit."""
    observed, actions = rules.observation_space(rules.params), rules.action_space(rules.params)
    if isinstance(observed, gym.spaces.Dict):
        if model.observation_space != observed or model.action_space != actions:
            raise ModelMismatchError(
                f"model must take observations {observed} and choose among {actions}, "
                f"got {model.observation_space} and {model.action_space}"
            )
        return False
    agents, wanted = rules.agents(rules.params), model.observation_space.shape
    size, width = tuple(observed.shape or ()), int(np.prod(observed.shape or ()))
    alone = [size, (width + 1,)] if rules.multi_agent and len(size) == 1 else [size]
    joint = wanted not in alone and wanted == (agents * width,)
    if not joint and wanted not in alone:
        raise ModelMismatchError(
            f"model must take observations of shape {size} of {rules.name}, or those of all agents at once, shape "
            f"({agents * width},), got {wanted}"
        )
    chosen = int(np.prod(actions.shape or (1,))) * (agents if joint else 1)
    own = int(np.prod(model.action_space.shape or (1,)))
    kinds = [isinstance(space, gym.spaces.Box) for space in (actions, model.action_space)]
    if chosen != own or kinds[0] != kinds[1] or (not joint and _choices(actions) != _choices(model.action_space)):
        raise ModelMismatchError(
            f"model must choose among the actions of {rules.name}, {actions}, got {model.action_space}"
        )
    if joint or wanted != (width + 1,):
        return False
    last = _last_entry(model, agents, len(rules.spec.groups))
    if last is None:
        groups = len(rules.spec.groups)
        raise ModelMismatchError(
            f"model must take observations that end with the agent's group (0 to {groups - 1}) or index (0 to "
            f"{agents - 1}), got the upper limit {model.observation_space.high[-1]:g} of the last entry"
        )
    return last == "group"


def _last_entry(model: Any, agents: int, groups: int) -> str | None:
    """Return what a model's observations end with, "group" or "agent"; None if it is neither.

    Raises:
        ModelMismatchError: It could be both, because the numbers of agents and groups are equal.
    """
    named: str | None = getattr(getattr(model, "policy", None), "member_of", None)
    if named is not None:
        return named
    top = float(model.observation_space.high[-1])
    if top == groups - 1 == agents - 1 > 0:
        raise ModelMismatchError(
            f"model must tell whether its observations end with the agent's group or index, got the limit {top:g} of "
            "both; use a function of observations that calls model.predict instead"
        )
    if groups > 1 and top == groups - 1:
        return "group"
    return "agent" if top == agents - 1 else None


def _choices(space: Any) -> Any:
    """Return the number of choices of discrete actions; None for a box."""
    return getattr(space, "n", None) if isinstance(space, gym.spaces.Discrete) else _numbers(space)


def _numbers(space: Any) -> Any:
    return tuple(np.ravel(space.nvec)) if isinstance(space, gym.spaces.MultiDiscrete) else None


class Rows(NamedTuple):
    """A model's observations.

    Attributes:
        given: The observations, an array or a dictionary of arrays, one row for each agent or for each lane.
        size: The number of rows.
        lanes: The number of lanes (B).
        agents: The number of agents of a lane.
    """

    given: Any
    size: int
    lanes: int
    agents: int

    @property
    def by_agent(self) -> bool:
        """Whether there is a row for each agent."""
        return self.size == self.lanes * self.agents


class _Reader:
    """Converts observations (B, agents, ...) to a model's rows, and rows to actions.

    Args:
        model: The model.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        normalised = getattr(model, "get_vec_normalize_env", lambda: None)()
        self._normalise = normalised.normalize_obs if normalised is not None and normalised.norm_obs else None

    def rows(self, observation: Any) -> Rows:
        """Return the model's observations.

        Raises:
            ValueError: The model takes other observations.
        """
        if isinstance(observation, dict):
            found: Any = {key: part.reshape(-1, *part.shape[2:]) for key, part in observation.items()}
            lanes, agents = next(iter(observation.values())).shape[:2]
            return Rows(self._normalised(found), lanes * agents, lanes, agents)
        lanes, agents = observation.shape[:2]
        wanted = self.model.observation_space.shape
        longer = observation.ndim == 3 and wanted == (observation.shape[2] + 1,)
        if longer and _last_entry(self.model, agents, 0) == "agent":
            observation = with_last(observation, np.arange(agents))
        by_agent = observation.shape[2:] == wanted
        if not by_agent and (int(np.prod(observation.shape[1:])),) != wanted:
            shape = observation.shape[2:]
            raise ValueError(
                f"model must take observations of shape {shape}, or those of all agents at once, got {wanted}"
            )
        found = observation.reshape(lanes * agents if by_agent else lanes, *wanted)
        return Rows(self._normalised(found), len(found), lanes, agents)

    def _normalised(self, found: Any) -> Any:
        return found if self._normalise is None else self._normalise(found)

    def distribution(self, rows: Rows) -> Any:
        """Return the distribution of actions, a distribution of PyTorch or a list of them."""
        network = self.model.policy
        if network.training:
            network.set_training_mode(False)
        return network.get_distribution(network.obs_to_tensor(rows.given)[0]).distribution


class FromSB3(Stochastic):
    """Samples from a Stable-Baselines3 model with discrete actions, trained on rows of agents or of lanes.

    Args:
        model: The model, for example a PPO.
    """

    def __init__(self, model: Any) -> None:
        self._reader = _Reader(model)

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the model's action probabilities, shape (B, agents, A), or (B, agents, N, A) for N choices.

        Choices with fewer than A actions have probability 0 for the others.

        Raises:
            ValueError: The model needs other observations.
        """
        rows = self._reader.rows(observation)
        distribution = self._reader.distribution(rows)
        parts = distribution if isinstance(distribution, list | tuple) else [distribution]
        given = [part.probs.detach().cpu().numpy() for part in parts]
        found = np.zeros((rows.size, len(given), max(part.shape[1] for part in given)), given[0].dtype)
        for place, part in enumerate(given):
            found[:, place, : part.shape[1]] = part
        several = rows.size * len(given) // (rows.lanes * rows.agents)  # choices of one agent
        shape = (rows.lanes, rows.agents, several, -1) if several > 1 else (rows.lanes, rows.agents, -1)
        return np.asarray(found.reshape(shape))


class FromNormal(Policy):
    """Samples from a model with normally distributed actions; they are clipped to the action space as in training.

    Args:
        model: The model, for example a PPO with a box of actions.
    """

    def __init__(self, model: Any) -> None:
        self._reader = _Reader(model)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return sampled actions, shape (B, agents, ...)."""
        from scipy.special import ndtri

        rows, space = self._reader.rows(observation), self._reader.model.action_space
        normal = self._reader.distribution(rows)
        mean, spread = (part.detach().cpu().numpy() for part in (normal.mean, normal.stddev))
        lanes, agents = rows.lanes, rows.agents
        shape = (lanes, agents, mean.size // (lanes * agents))
        numbers = np.clip(
            numbers_for(shape, uniforms[..., np.newaxis] if shape[2] == 1 else uniforms), 1e-12, 1 - 1e-12
        )
        chosen = mean.reshape(shape) + spread.reshape(shape) * ndtri(numbers)
        clipped = np.clip(chosen.reshape(rows.size, *space.shape), space.low, space.high)
        own = space.shape if rows.by_agent else (shape[2],)
        return np.asarray(clipped.reshape(lanes, agents, *own), space.dtype)


class Predicted(Policy):
    """Takes the actions that a model predicts, without exploring; recurrent models keep their state.

    Args:
        model: Has ``predict(observations, deterministic=True) -> (actions, state)`` and ``observation_space``.
    """

    def __init__(self, model: Any) -> None:
        self._reader, self._state = _Reader(model), None
        self._begun: Flags = np.zeros(0, bool)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Forget the state of lanes whose episodes start."""
        self._state = None if mask.all() else self._state
        self._begun = mask.copy()

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the model's actions, shape (B, agents, ...)."""
        rows = self._reader.rows(observation)
        lanes, agents = rows.lanes, rows.agents
        more: dict[str, Any] = {}
        if self._state is not None:
            more = {"state": self._state, "episode_start": np.repeat(self._begun, rows.size // lanes)}
        actions, self._state = self._reader.model.predict(rows.given, deterministic=True, **more)
        self._begun = np.zeros(lanes, bool)
        own = actions.shape[1:] if rows.by_agent else (actions.size // (lanes * agents),)
        shape = own if rows.by_agent or own != (1,) else ()
        return np.asarray(actions).reshape(lanes, agents, *shape)


__all__ = ["FromNormal", "FromSB3", "ModelMismatchError", "Predicted", "policy_of_model"]
