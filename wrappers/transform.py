"""The contract of wrappers: a transform is a function of arrays that may keep its own state.

A transform does not depend on any library. It gets what a batch of lanes reports after a step or a restart, as one
`Batch`, and returns a changed `Batch`. `fair_envs.wrappers.adapters` applies it to every interface.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules, Worlds
from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.history import History
from fair_envs.support.aliases import Columns, Flags, Floats, Floats32, Records


class Batch(NamedTuple):
    """What B lanes report after a step or a restart.

    There are three kinds of lanes: a decision was made (`decided`), an episode shows its first observation (`first`),
    or the lane reports only its observation. A transform's state changes only in the first two cases.
    """

    observation: NDArray[Any]  # (B, agents, ...); under focal control, 0 for all other agents
    reward: Floats  # (B, agents)
    facts: Records  # (B,) see `fair_envs.core.interactions.facts_dtype`; valid where a decision was made
    decided: Flags  # (B,)
    first: Flags  # (B,)
    done: Flags  # (B,) the decision ended the episode
    vector: Floats32 | None = None  # (B, objectives), instead of the reward
    action_probs: Floats32 | None = None  # (B, M, A) as reported by the policy for these decisions; None: not reported
    added: Columns = MappingProxyType({})  # columns for info, (B, ...): new ones, or columns of the record it changed


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The environment that a transform is applied to; a user's own environment has `adapters.own.OwnLanes` as lanes."""

    lanes: Lanes | Worlds
    observation_space: Box  # of one agent
    reported: FairSpec | None = None  # the spec as changed by the wrappers below; None: unchanged
    objectives: int = 0  # number of entries of the vector reward made below; 0: the reward is a number
    focal: int | None = None  # the agent whose reward the interface returns; None: it returns the mean of all agents

    @property
    def rules(self) -> Rules:
        """The environment's rules."""
        return self.lanes.rules

    @property
    def spec(self) -> FairSpec:
        """The environment's `FairSpec`, as changed by the wrappers below."""
        return self.reported or self.rules.spec

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of lanes and agents, which are the shape of rewards."""
        return self.lanes.count, self.lanes.agents


class Transform:
    """The base class of transforms: subclass it to change observations or rewards, or to add columns to ``info``.

    An adapter copies the transform, binds the copy to the lanes and calls it with every `Batch`. Do not write to the
    arrays of a batch: return changes as new arrays.

    Attributes:
        changes_reward: Whether it changes rewards.
        personal: The added columns with one entry for each agent, shape (B, agents, ...). In PettingZoo, each agent's
            info contains its own entry.
        needs_rules: Whether it needs the rules or the lanes, which a user's own environment does not have.
        takes_vector: Whether it converts a vector reward from below into a number.
        reports: Whether it reports the policy's probabilities before each step, see `action_probs`.
        once: Why an environment can have only one such transform; empty: it can have several.
        wrapper: Name of the wrapper with this transform, for messages.
        objectives: Names of the entries of the vector reward; empty: the transform does not make a vector.
        objectives_at_most: An upper bound of each entry; empty: unknown.
        histories: The histories of decisions that it keeps, if any.
    """

    changes_reward: ClassVar[bool] = False
    needs_rules: ClassVar[bool] = False
    takes_vector: ClassVar[bool] = False
    reports: ClassVar[bool] = False
    once: ClassVar[str] = ""
    wrapper: ClassVar[str] = ""
    personal: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    objectives_at_most: tuple[float, ...] = ()
    histories: tuple[History, ...] = ()

    def bind(self, setting: Setting) -> None:
        """Prepare for an environment; called once, before the first batch.

        Raises:
            ValueError: The environment lacks what the transform needs.
        """

    def space(self, space: Box) -> Box:
        """Return the space of one agent's observation after the transform."""
        return space

    def fair_spec(self, spec: FairSpec) -> FairSpec:
        """Return the spec after the transform."""
        return spec

    def action_probs(self, seen: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the probabilities of the next actions, (B, M, A); ``seen()`` is the observation, (B, agents, ...)."""
        raise NotImplementedError

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch after the transform, for the wrapper above."""
        raise NotImplementedError


def need_agents(setting: Setting, name: str, *, instead: str = "", at_least: int = 1) -> None:
    """Raise ValueError unless the same agents earn rewards throughout an episode, and there are enough of them.

    Args:
        setting: The environment.
        name: The name of what needs the agents, for the message.
        instead: What to use if one decision-maker decides about other people, for the message.
        at_least: The smallest allowed number of agents.
    """
    rules = setting.rules
    if not rules.multi_agent:
        raise ValueError(
            f"{name} needs agents that earn rewards; in {rules.name} one decision-maker decides about other people, "
            f"who earn none{instead and f'. {instead}'}"
        )
    if not setting.spec.same_individuals:
        raise ValueError(f"{name} needs the same agents throughout an episode; those of {rules.name} change")
    if setting.lanes.agents < at_least:
        raise ValueError(f"{name} needs at least {at_least} agents, got {setting.lanes.agents}")


def agent_indices(agents: Sequence[int | str], count: int) -> tuple[int, ...]:
    """Return the indices of agents given by index or by PettingZoo name.

    Raises:
        ValueError: An agent does not exist.
    """
    if isinstance(agents, str) or not isinstance(agents, Iterable):
        raise ValueError(f"agents must be a list of indices or names, got {agents!r}")
    names = {f"agent_{i}": i for i in range(count)}
    listed = []
    for agent in agents:
        index = names.get(agent, -1) if isinstance(agent, str) else agent
        if not isinstance(index, (int, np.integer)) or isinstance(index, bool) or not 0 <= index < count:
            raise ValueError(f"agents must be among 0 to {count - 1} or agent_0 to agent_{count - 1}, got {agent!r}")
        listed.append(int(index))
    return tuple(listed)
