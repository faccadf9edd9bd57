"""The finite choices of an action, and the rows of an environment whose actions one network chooses."""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Worlds
from fair_envs.evaluation import VectorEnv
from fair_envs.support.aliases import Flags, Ints

BINS = 11  # values of an action in a Box, both bounds included


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """The choices of an action: one of A values for each of its N entries.

    A `Discrete` action has one entry, and so has an action in a one-dimensional `Box`, whose values are equally spaced
    from its lower to its upper bound.

    Attributes:
        values: The values of each entry, shape (N, A); entries with fewer values repeat the last one.
        possible: Whether a value exists, shape (N, A).
        several: Whether choices have an axis for the entries, as in a `MultiDiscrete`.
        shape: Shape of an action in the environment.
    """

    values: NDArray[Any]
    possible: Flags
    several: bool
    shape: tuple[int, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of the choices of one action: (N,) for a `MultiDiscrete`, otherwise ()."""
        return (len(self.values),) if self.several else ()

    def action(self, choice: Ints) -> NDArray[Any]:
        """Return the actions, shape (..., *shape), of choices given by number, shape (..., *axes)."""
        numbers = choice if self.several else choice[..., np.newaxis]
        found: NDArray[Any] = self.values[np.arange(len(self.values)), numbers]
        return found.reshape((*choice.shape[: choice.ndim - len(self.axes)], *self.shape))

    def choice(self, action: NDArray[Any]) -> Ints:
        """Return the choices by number, shape (..., *axes), of actions that `action` returned."""
        lead = action.shape[: action.ndim - len(self.shape)]
        entries = action.reshape(*lead, len(self.values))
        found = np.stack([np.searchsorted(own, entries[..., k]) for k, own in enumerate(self.values)], axis=-1)
        return found if self.several else found[..., 0]


def choices_of(space: gym.Space[Any], *, bins: int = BINS) -> Choices:
    """Return the choices of an action space.

    Args:
        space: A `Discrete`, a `MultiDiscrete`, or a `Box` with one entry and finite bounds.
        bins: Number of values of an action in a `Box`, at least 2; a `Box` of few integers has fewer.

    Raises:
        ValueError: The space has more than that to choose from.
    """
    if why := uncountable(space):
        instead = "use a method for continuous actions instead, such as ppo or ddpg"
        raise ValueError(f"env must have actions that can be listed, got {space}, which {why}; {instead}")
    shape: tuple[int, ...] = space.shape or ()
    if isinstance(space, gym.spaces.Box):
        low, high = float(space.low.item()), float(space.high.item())
        values = np.unique(np.linspace(low, high, bins, dtype=space.dtype))[np.newaxis]  # integers repeat
        return Choices(values=values, possible=np.ones(values.shape, bool), several=False, shape=shape)
    several = isinstance(space, gym.spaces.MultiDiscrete)
    start, sizes = (np.atleast_1d(part) for part in _starts_and_sizes(space))
    number = np.arange(sizes.max())
    values = start[:, np.newaxis] + np.minimum(number, sizes[:, np.newaxis] - 1)
    return Choices(values=values, possible=number < sizes[:, np.newaxis], several=several, shape=shape)


def uncountable(space: gym.Space[Any]) -> str:
    """Return why the actions of a space cannot be listed, or ""."""
    if isinstance(space, gym.spaces.Discrete) or (isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1):
        return ""
    if not isinstance(space, gym.spaces.Box):
        return "is neither a Discrete, nor a MultiDiscrete with one axis, nor a Box with one entry"
    if space.low.size != 1:
        return f"is a Box with {space.low.size} entries instead of one"
    if not np.isfinite([space.low.item(), space.high.item()]).all():
        return "is a Box without finite bounds"
    return ""


def _starts_and_sizes(space: Any) -> tuple[Any, Any]:
    return space.start, space.n if isinstance(space, gym.spaces.Discrete) else space.nvec


# Rows -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of an environment that one network sees: the agents of all lanes, or the lanes of a decision-maker.

    Attributes:
        agents: Number of rows of a lane.
        observation_space: Space of a row's observation.
        choices: Choices of a row's action.
    """

    agents: int
    observation_space: gym.spaces.Box
    choices: Choices


def rows_of(env: VectorEnv, *, bins: int = BINS) -> Rows:
    """Return the rows of a vector environment, see `Rows`; arguments are as for `choices_of`.

    Raises:
        ValueError: The actions cannot be listed, or the observations are not arrays of numbers.
    """
    if not hasattr(env, "single_observation_space"):
        raise ValueError(f"env must be a vector environment, as gymnasium.make_vec makes it, got {env}")
    observed = env.single_observation_space
    if not isinstance(observed, gym.spaces.Box):
        raise ValueError(f"env must have observations in a Box, got {observed}")
    lanes = getattr(env.unwrapped, "lanes", None)
    if not (isinstance(lanes, (Lanes, Worlds)) and lanes.rules.multi_agent):
        return Rows(agents=1, observation_space=observed, choices=choices_of(env.single_action_space, bins=bins))
    agents, size = lanes.agents, observed.low.size
    if size % agents:
        raise ValueError(f"env must have the joined observations of {agents} agents, got {size} numbers")
    low, high = (bound.ravel()[: size // agents] for bound in (observed.low, observed.high))
    return Rows(
        agents=agents,
        observation_space=gym.spaces.Box(low, high, dtype=observed.dtype.type),
        choices=choices_of(lanes.rules.action_space(lanes.rules.params), bins=bins),
    )
