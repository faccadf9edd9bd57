"""The policy of a trained team."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes
from fair_envs.evaluation import Policy
from fair_envs.evaluation.policy import choose, numbers_for
from fair_envs.faces.common import with_last
from fair_envs.support.aliases import Floats


class Learned(Policy):
    """A model that controls every agent, without noise; discrete actions of DDPG are sampled with `uniforms`.

    The last bits of a network's results can depend on the number of rows in its input.

    Args:
        model: Has ``predict(rows, deterministic=True) -> (actions, state)``, with a row for each agent of each lane;
            row b n + i is the observation of agent i of lane b. If its ``observation_space`` has one more number, it
            is i, as for `fair_envs.baselines.IndividualPolicy`.
        append_group: Whether observations end with the agent's group. The model does not receive it.
        deterministic: Whether the most probable actions are taken instead of sampled ones.
    """

    lanes: Lanes

    def __init__(self, model: Any, *, append_group: bool = False, deterministic: bool = False) -> None:
        self.model, self.append_group, self.deterministic = model, append_group, deterministic

    def start(self, world: Any) -> None:
        """Store the lanes, whose rules define the actions."""
        self.lanes = world.lanes

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the model's prediction for each row.

        Raises:
            ValueError: The model takes other observations, or returns other actions.
        """
        rows, lanes = self._rows(observation), self.lanes
        if not self.deterministic and (probabilities := self._probabilities(rows)) is not None:
            shaped = probabilities.reshape(lanes.count, lanes.agents, *probabilities.shape[1:])
            return choose(shaped, numbers_for(shaped.shape[:-1], uniforms))
        actions, _ = self.model.predict(rows, deterministic=True)
        space = lanes.rules.action_space(lanes.rules.params)
        shape = (lanes.count * lanes.agents, *(space.shape or ()))
        if np.shape(actions) != shape:
            raise ValueError(f"model must return actions of shape {shape} for these rules, got {np.shape(actions)}")
        return np.asarray(actions, space.dtype).reshape(lanes.count, lanes.agents, *shape[1:])

    def _probabilities(self, rows: NDArray[Any]) -> Floats | None:
        """Return the probabilities with which the model samples discrete actions; None if it does not say."""
        of_model: Any = getattr(self.model, "action_probabilities", lambda rows: None)
        found: Floats | None = of_model(rows)
        return found

    def _rows(self, observation: NDArray[Any]) -> NDArray[Any]:
        if self.append_group:
            observation = observation[..., :-1]
        lanes, agents, size = observation.shape
        space = getattr(self.model, "observation_space", None)
        wanted = size if space is None else space.shape[0]
        if wanted == size + 1:
            observation = with_last(observation, np.arange(agents))
        elif wanted != size:
            raise ValueError(f"model must take these rules' observations of {size} numbers, got one of {wanted}")
        return observation.reshape(lanes * agents, -1)
