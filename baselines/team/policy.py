"""The policy of a trained team."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes
from fair_envs.evaluation import Policy
from fair_envs.support.aliases import Floats


class Learned(Policy):
    """A model that controls every pursuer, without noise.

    The last bits of a network's results can depend on the number of rows in its input.

    Args:
        model: Has ``predict(rows, deterministic=True) -> (actions, state)``, with a row for each pursuer of each lane;
            row b n + i is the observation of pursuer i of lane b. If its ``observation_space`` has one more number, it
            is i, as for `fair_envs.baselines.GroupedPolicy`.
    """

    lanes: Lanes

    def __init__(self, model: Any) -> None:
        self.model = model

    def start(self, world: Any) -> None:
        """Store the lanes, whose rules define the actions."""
        self.lanes = world.lanes

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the model's prediction for each row.

        Raises:
            ValueError: The model takes other observations, or returns other actions.
        """
        rows, lanes = self._rows(observation), self.lanes
        actions, _ = self.model.predict(rows, deterministic=True)
        space = lanes.rules.action_space(lanes.rules.params)
        shape = (lanes.count * lanes.agents, *(space.shape or ()))
        if np.shape(actions) != shape:
            raise ValueError(f"model must return actions of shape {shape} for these rules, got {np.shape(actions)}")
        return np.asarray(actions, space.dtype).reshape(lanes.count, lanes.agents, *shape[1:])

    def _rows(self, observation: NDArray[Any]) -> NDArray[Any]:
        lanes, agents, size = observation.shape
        space = getattr(self.model, "observation_space", None)
        wanted = size if space is None else space.shape[0]
        if wanted == size + 1:
            number = np.broadcast_to(np.arange(agents, dtype=observation.dtype)[:, np.newaxis], (lanes, agents, 1))
            observation = np.concatenate([observation, number], axis=-1)
        elif wanted != size:
            raise ValueError(f"model must take these rules' observations of {size} numbers, got one of {wanted}")
        return observation.reshape(lanes * agents, -1)
