"""The environment as a policy sees it: lanes with any interface, and their steps."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fair_envs.support.aliases import Columns, Flags, Floats, Ints, Records


@dataclass(frozen=True, kw_only=True, eq=False)
class Transition:
    """One step of B lanes.

    Attributes:
        observation: The observation before the step, shape (B, agents, ...).
        action: The chosen action, shape (B, agents, ...).
        reward: The reward, shape (B, agents), or (B, 1, objectives) for vector rewards.
        active: The lanes that played, shape (B,); other entries have no meaning.
        ended: The active lanes whose episode ended with this step, shape (B,).
        episode: The number of each lane's episode, shape (B,).
        facts: The records of the affected individuals, shape (B,); None if the environment only reports `info`.
        tell: Function that returns the ``fair_*`` columns of `info`.
    """

    observation: Any
    action: Any
    reward: Floats
    active: Flags
    ended: Flags
    episode: Ints
    facts: Records = None
    tell: Callable[[], Columns] = dict

    @cached_property
    def columns(self) -> Columns:
        """The ``fair_*`` columns of `info`, lanes first."""
        return self.tell()


class World:
    """B lanes of an environment, each at the start of an episode; subclasses adapt an interface.

    Attributes:
        count: Number of lanes (B).
        lanes: The batch behind the interface, a `Lanes` or `Worlds`; None for an environment of another package.
        observation: The agents' current observations, shape (B, agents, ...).
    """

    count: int
    lanes: Any = None
    observation: Any

    def uniforms(self) -> Floats:
        """Return random numbers for the actions of this step, shape (B, agents) or (B, agents, choices)."""
        raise NotImplementedError

    def report(self, probabilities: Floats) -> None:
        """Report action probabilities to an environment that records them; others ignore them."""

    def step(self, action: Any, active: Flags, episode: Ints) -> Transition:
        """Play one step of the active lanes, and update the observation."""
        raise NotImplementedError

    def restart(self, mask: Flags) -> None:
        """Start the next episode in lanes whose episode has ended, unless the environment does it."""
