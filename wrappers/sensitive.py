"""Wrappers that hide or swap the sensitive attribute, in observations or in the world."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from fair_envs.core import Rules, Worlds
from fair_envs.support.parameters import meant
from fair_envs.wrappers.transform import Batch, Setting, Transform, agent_indices
from fair_envs.wrappers.wrapper import Wrapper

NAMED = 20  # features that an error names at most


class HiddenAttribute(Transform):
    """The transform of `HideSensitive`, which describes the arguments."""

    needs_rules = True
    wrapper = "HideSensitive"

    def __init__(self, *, features: Sequence[str] | None = None) -> None:
        self.features = features

    def bind(self, setting: Setting) -> None:
        """Find the features."""
        self._entries = entries(setting, self.features)

    def space(self, space: Box) -> Box:
        """Return the space, extended so that the hidden entries may be 0."""
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

    The remaining features may still reveal the attribute; for example, FairHarvest's extended observation shows whether
    the agent acts in this step. ``info`` does not change: a learner that reads it still sees the attribute.

    Args:
        env: The environment, with any interface.
        features: Names of the features to hide. By default, the features that show the sensitive attribute.
    """

    def __init__(self, env: Any, *, features: Sequence[str] | None = None) -> None:
        super().__init__(env, HiddenAttribute(features=features))


class SwappedAttribute(Transform):
    """The transform of `SwapSensitive`, which describes the arguments."""

    needs_rules = True
    wrapper = "SwapSensitive"

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
            raise ValueError(f"features must be None with where='world', got {features!r}")
        self.where, self.agents, self.features = where, agents, features

    def bind(self, setting: Setting) -> None:
        """Find the features, or set the lanes to flip the attribute at each start."""
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
        """Swap the features in the agents' observations."""
        if self.where == "world":
            return batch
        observation = batch.observation.copy()
        shown = np.ix_(range(len(observation)), self._agents, self._entries)
        observation[shown] = self._sum - observation[shown]
        return batch._replace(observation=observation)


class SwapSensitive(Wrapper):
    """Gives agents the other value of a two-valued sensitive attribute, in their observations or in the world.

    ``where="observation"`` changes only the observation: it shows the other value, but the environment treats the agent
    as before. This isolates the direct effect of the attribute on the policy's decisions.

    ``where="world"`` flips the attribute at the start of every episode: the environment treats the agent accordingly,
    observations and ``info`` report the new value, and the random numbers stay the same. This is the counterfactual
    world of `fair_envs.wrappers.Twins` as an environment. It takes effect at the next reset. Since it changes the
    environment itself, wrappers below this one see the change too.

    Args:
        env: The environment, with any interface.
        where: ``"observation"`` or ``"world"``.
        agents: The agents to swap, by index or by PettingZoo name; all by default.
        features: Names of the features to swap. By default, the features that show the sensitive attribute. They have
            two values, the bounds of the observation space. Only for ``"observation"``.
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
    """A change of lanes at their start: some agents get the other value of the sensitive attribute."""

    agents: tuple[int, ...]

    def __call__(self, rules: Rules, records: NDArray[np.void]) -> None:
        """Flip the attribute in place."""
        who = np.zeros((len(records), rules.agents(rules.params)), bool)
        who[:, self.agents] = True
        rules.flip(records, who)


def flip_at_start(setting: Setting, agents: tuple[int, ...]) -> None:
    """Set the lanes to flip the agents' attribute at each start.

    Raises:
        ValueError: The agents have no attribute that can be flipped.
    """
    flip = Flip(agents)
    flip(setting.rules, np.zeros(1, setting.rules.dtype))  # raises an error early, not at the first reset
    lanes = setting.lanes
    for world in lanes.worlds if isinstance(lanes, Worlds) else (lanes,):
        world.amendments.append(flip)


def entries(setting: Setting, features: Sequence[str] | None) -> tuple[int, ...]:
    """Return the indices of features in an agent's observation.

    Raises:
        ValueError: The observation does not show the feature, or a wrapper below has changed the observation's shape.
    """
    rules, shape = setting.rules, setting.observation_space.shape
    own = rules.observation_space(rules.params).shape or ()
    more = tuple(length + 1 for length in own) if len(own) == 1 else own  # the group or the time may be appended
    if shape not in (own, more):
        raise ValueError(
            f"env must have the observation shape {own} of {rules.name} to find features by name, got {shape}: put "
            "wrappers of other libraries that change the shape above"
        )
    vector = len(own) == 1  # the entries of a window have no names
    shown = rules.observed_features(rules.params) if vector else ()
    wanted = rules.sensitive_features if features is None else features
    if isinstance(wanted, str):
        raise ValueError(f"features must be a list of names, got {wanted!r}")
    if features is None and not set(wanted) <= set(shown):
        raise ValueError(
            f"observations must show the sensitive attribute to hide or swap it, those of {rules.name} do not; name "
            "the features that reveal it with features=[...]"
        )
    for feature in wanted:
        if feature not in shown:
            rest = f", ... ({len(shown)} features)" if len(shown) > NAMED else ""
            names = (", ".join(shown[:NAMED]) or "none") + rest
            raise ValueError(
                f"features must be named features of {rules.name} ({names}), got {feature!r}{meant(feature, shown)}"
            )
    return tuple(shown.index(feature) for feature in wanted)
