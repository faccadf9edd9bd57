"""What agents are told about the sensitive attribute, and whether they have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from fair_envs.core import Rules, Worlds
from fair_envs.wrappers.transform import Batch, Setting, Transform, agent_indices
from fair_envs.wrappers.wrapper import Wrapper


class HiddenAttribute(Transform):
    """The transform of `HideSensitive`, which describes the arguments."""

    needs_rules = True

    def __init__(self, *, features: Sequence[str] | None = None) -> None:
        self.features = features

    def bind(self, setting: Setting) -> None:
        """Find the features."""
        self._entries = entries(setting, self.features)

    def space(self, space: Box) -> Box:
        """Return the space with 0 among the hidden entries' values."""
        low, high, hidden = space.low.copy(), space.high.copy(), list(self._entries)
        low[hidden] = np.minimum(low[hidden], 0)
        high[hidden] = np.maximum(high[hidden], 0)
        return Box(low, high, dtype=space.dtype.type)

    def __call__(self, batch: Batch) -> Batch:
        """Hide the features."""
        observation = batch.observation.copy()
        observation[..., self._entries] = 0
        return batch._replace(observation=observation)


class HideSensitive(Wrapper):
    """Sets the sensitive features of every observation to 0.

    What is left may still give the attribute away (in FairHarvest's extended observation, for instance, whether the
    agent acts this step). ``info`` goes on stating the facts: a learner that reads them sees the attribute.

    Args:
        env: The environment, of any interface.
        features: Names of the features to hide; those that show the sensitive attribute by default.
    """

    def __init__(self, env: Any, *, features: Sequence[str] | None = None) -> None:
        super().__init__(env, HiddenAttribute(features=features))


class SwappedAttribute(Transform):
    """The transform of `SwapSensitive`, which describes the arguments."""

    needs_rules = True

    def __init__(
        self,
        *,
        where: Literal["observation", "world"] = "observation",
        agents: Sequence[int | str] | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        if where not in ("observation", "world"):
            raise ValueError(f"where must be 'observation' or 'world', got {where!r}")
        if where == "world" and features is not None:
            raise ValueError(f"features must be None where the world is swapped, got {features!r}")
        self.where, self.agents, self.features = where, agents, features

    def bind(self, setting: Setting) -> None:
        """Find the features, or have the lanes flip the attribute whenever they start."""
        count = setting.lanes.agents
        self._agents = agent_indices(range(count) if self.agents is None else self.agents, count)
        self._entries: tuple[int, ...] = ()
        if self.where == "world":
            flip_at_start(setting, self._agents)
            return
        self._entries = entries(setting, self.features)
        space = setting.observation_space
        self._sum = (space.low + space.high)[list(self._entries)]  # x becomes low + high - x: 0 becomes 1

    def __call__(self, batch: Batch) -> Batch:
        """Swap what the agents are shown."""
        if self.where == "world":
            return batch
        observation = batch.observation.copy()
        shown = np.ix_(range(len(observation)), self._agents, self._entries)
        observation[shown] = self._sum - observation[shown]
        return batch._replace(observation=observation)


class SwapSensitive(Wrapper):
    """Gives agents the other value of a two-valued sensitive attribute: in what they are shown, or in the world.

    ``where="observation"`` lies to the policy: the agent is told the other value and the world treats it as before. It
    shows whether the policy acts on the attribute (its direct effect on decisions), nothing else.

    ``where="world"`` sets the attribute anew at the start of every episode, before anybody sees it: the world treats
    the agent accordingly, observations and ``info`` say so, and the luck stays the same. It is the counterfactual world
    of `fair_envs.wrappers.Twins`, as an environment. It begins with the next reset, and it is in the world: wrappers
    below meet it too.

    Args:
        env: The environment, of any interface.
        where: ``"observation"`` or ``"world"``.
        agents: Who is swapped, by index or by PettingZoo's name; all by default.
        features: Names of the features to swap; those that show the sensitive attribute by default. They have two
            values, the bounds of the observation space. Only for ``"observation"``.
    """

    def __init__(
        self,
        env: Any,
        *,
        where: Literal["observation", "world"] = "observation",
        agents: Sequence[int | str] | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env, SwappedAttribute(where=where, agents=agents, features=features))


@dataclass(frozen=True)
class Flip:
    """An amendment of lanes that start: the agents get the other value of the sensitive attribute."""

    agents: tuple[int, ...]

    def __call__(self, rules: Rules, records: NDArray[np.void]) -> None:
        """Flip the attribute in place."""
        who = np.zeros((len(records), rules.agents(rules.params)), bool)
        who[:, self.agents] = True
        rules.flip(records, who)


def flip_at_start(setting: Setting, agents: tuple[int, ...]) -> None:
    """Have the lanes flip the agents' attribute whenever they start.

    Raises:
        ValueError: The agents have no attribute to flip.
    """
    flip = Flip(agents)
    flip(setting.rules, np.zeros(1, setting.rules.dtype))  # refuses now what would fail at the first reset
    lanes = setting.lanes
    for world in lanes.worlds if isinstance(lanes, Worlds) else (lanes,):
        world.amendments.append(flip)


def entries(setting: Setting, features: Sequence[str] | None) -> tuple[int, ...]:
    """Return the places of features in an agent's observation.

    Raises:
        ValueError: The observation does not show such a feature, or a wrapper below has changed its shape.
    """
    rules, shape = setting.rules, setting.observation_space.shape
    own = rules.observation_space(rules.params).shape or ()
    more = tuple(length + 1 for length in own) if len(own) == 1 else own  # a group or the time can be appended
    if shape not in (own, more):
        raise ValueError(
            f"env must show observations of shape {own}, as {rules.name} does, where features are named, got {shape}: "
            "put wrappers of other libraries that change their shape above"
        )
    vector = len(own) == 1  # the entries of a window have no names
    shown = rules.observed_features(rules.params) if vector else ()
    wanted = rules.sensitive_features if features is None else features
    if isinstance(wanted, str):
        raise ValueError(f"features must be a list of names, got {wanted!r}")
    for feature in wanted:
        if feature not in shown:
            known = ", ".join(shown) or "none"
            raise ValueError(f"features must be among those that {rules.name} shows by name ({known}), got {feature!r}")
    return tuple(shown.index(feature) for feature in wanted)
