"""The contract of wrappers: a transform is a function of arrays with a memory of its own.

A transform knows no library. It sees what a batch of lanes reports after a step or a restart, one `Batch`, and returns
it changed. `fair_envs.wrappers.adapters` brings it to every face.
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
from fair_envs.support.aliases import Columns, Facts, Flags, Floats, Floats32, Ints, Records


class Batch(NamedTuple):
    """What B lanes report after a step or a restart.

    A lane either was decided on (`decided`), or shows an episode's first observation (`first`), or reports nothing but
    its observation. A transform's memory changes in the first two cases only.
    """

    observation: NDArray[Any]  # (B, agents, ...); under focal control the other agents' are 0
    reward: Floats  # (B, agents)
    facts: Records  # (B,) see `fair_envs.core.interactions.facts_dtype`; they speak of the lanes that were decided on
    decided: Flags  # (B,)
    first: Flags  # (B,)
    done: Flags  # (B,) the decision ended the episode
    vector: Floats32 | None = None  # (B, objectives), instead of the reward
    action_probs: Floats32 | None = None  # (B, M, A) what the policy reported of these decisions; None: nothing
    added: Columns = MappingProxyType({})  # columns of info, (B, ...): of a transform, or of the facts that it changed


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The environment that a transform is applied to; a user's own environment has `adapters.own.OwnLanes` as lanes."""

    lanes: Lanes | Worlds
    observation_space: Box  # of one agent
    reported: FairSpec | None = None  # the static facts as the layers below change them, if they do
    objectives: int = 0  # entries of the vector reward that the layers below make; 0: the reward is a number
    focal: int | None = None  # the agent whose reward is the face's; None: the mean of all agents is

    @property
    def rules(self) -> Rules:
        """The environment's rules."""
        return self.lanes.rules

    @property
    def spec(self) -> FairSpec:
        """The static facts."""
        return self.reported or self.rules.spec

    @property
    def shape(self) -> tuple[int, int]:
        """How many lanes and how many agents: the shape of rewards."""
        return self.lanes.count, self.lanes.agents


class Transform:
    """Changes observations or rewards, or adds columns to ``info``; subclass it.

    An adapter copies the transform, binds the copy to the lanes and calls it with every `Batch`. Arrays are given to
    read: what changes is a fresh array.

    Attributes:
        changes_reward: Whether rewards are changed.
        personal: Those of the added columns that have one entry for each agent, shape (B, agents, ...); in PettingZoo
            each agent's info has its own.
        needs_rules: Whether it looks into the rules or the lanes, which an environment of one's own does not have.
        takes_vector: Whether it needs a vector reward from below and makes a number of it.
        reports: Whether the policy's probabilities are reported before each step, see `action_probs`.
        once: Why an environment can have one such transform alone; empty: it can have several.
        wrapper: Where it can have only one, the name of the wrapper that users give it by.
        objectives: Names of the entries of the vector reward; none: the reward stays what it is.
        objectives_at_most: What each of them is at most, if that is known.
        histories: What it remembers of the decisions, if it does.
    """

    changes_reward: ClassVar[bool] = False
    personal: ClassVar[tuple[str, ...]] = ()
    needs_rules: ClassVar[bool] = False
    takes_vector: ClassVar[bool] = False
    reports: ClassVar[bool] = False
    once: ClassVar[str] = ""
    wrapper: ClassVar[str] = ""
    objectives: tuple[str, ...] = ()
    objectives_at_most: tuple[float, ...] = ()
    histories: tuple[History, ...] = ()

    def bind(self, setting: Setting) -> None:
        """Make ready for an environment; called once, before the first batch.

        Raises:
            ValueError: The environment lacks what the transform needs.
        """

    def space(self, space: Box) -> Box:
        """Return the space of one agent's observation after the transform."""
        return space

    def fair_spec(self, spec: FairSpec) -> FairSpec:
        """Return the static facts after the transform."""
        return spec

    def action_probs(self, seen: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the probabilities of the next actions, (B, M, A); ``seen()`` gives what is seen, (B, agents, ...)."""
        raise NotImplementedError

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch as the layer above sees it."""
        raise NotImplementedError


def need_agents(setting: Setting, name: str, *, instead: str = "", at_least: int = 1) -> None:
    """Raise ValueError unless the same agents earn throughout an episode, and there are enough of them.

    Args:
        setting: The environment.
        name: Of what needs them.
        instead: What to use where one decision-maker decides on others.
        at_least: How many agents.
    """
    rules = setting.rules
    if not rules.multi_agent:
        raise ValueError(
            f"{name} needs agents with rewards of their own; in {rules.name} one decision-maker decides on others, who "
            f"earn none{instead and f'. {instead}'}"
        )
    if not setting.spec.same_individuals:
        raise ValueError(f"{name} needs agents that stay the same in an episode; those of {rules.name} do not")
    if setting.lanes.agents < at_least:
        raise ValueError(f"{name} needs at least {at_least} agents, got {setting.lanes.agents}")


def agent_indices(agents: Sequence[int | str], count: int) -> tuple[int, ...]:
    """Return the indices of agents that are given by index or by PettingZoo's name.

    Raises:
        ValueError: No such agent.
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


def strata(spec: FairSpec, facts: Facts) -> tuple[Ints, int]:
    """Return the stratum of each individual, shape (B, M), and how many there are: one with no legitimate factor.

    A stratum is a combination of values of the legitimate factors, the first factor counting slowest.
    """
    codes = facts["legitimate"]  # (B, M, factors)
    sizes = [len(names) for names in spec.legitimate.values()]
    stratum = np.zeros(codes.shape[:-1], np.int64)
    for factor, size in enumerate(sizes):
        stratum = stratum * size + np.maximum(codes[..., factor], 0)
    return stratum, int(np.prod(sizes, dtype=int))
