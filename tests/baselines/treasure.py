"""A small world with a known front: walk on or dive; the treasure at place k is worth k², every step costs 1."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from fair_envs.support.aliases import Floats32

DIVE, WALK = range(2)
PLACES = 5
FRONT = [[float(k * k), -float(k + 1)] for k in range(PLACES)]


class Treasure(gym.vector.VectorEnv[Any, Any, Any]):
    """B divers; ``slip`` is the chance that a diver walks instead of diving."""

    def __init__(
        self, lanes: int, *, mode: AutoresetMode = AutoresetMode.NEXT_STEP, slip: float = 0.0, objectives: int = 2
    ) -> None:
        self.num_envs, self.slip = lanes, slip
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space = gym.spaces.Box(0, PLACES, (1,), np.float32)
        self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, lanes)
        self.action_space = batch_space(self.single_action_space, lanes)
        high = np.array([PLACES**2, -1, *[0] * (objectives - 2)], np.float32)
        self.reward_space = gym.spaces.Box(np.full(objectives, -100, np.float32), high)
        self.place, self.over = np.zeros(lanes, int), np.zeros(lanes, bool)
        self.reported: list[NDArray[Any]] = []
        self.actions: list[NDArray[Any]] = []

    def report_action_probs(self, probabilities: NDArray[Any]) -> None:
        self.reported.append(np.array(probabilities))

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.luck = [np.random.default_rng(None if seed is None else seed + b) for b in range(self.num_envs)]
        self.place[:], self.over[:] = 0, False
        return self._seen(), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        self.actions.append(np.array(actions))
        late = self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        dead = self.over & late
        slips = np.array([luck.random() for luck in self.luck]) < self.slip
        dives = ((np.asarray(actions) == DIVE) & ~slips) & ~dead
        rewards = np.zeros((self.num_envs, *self.reward_space.shape), np.float32)
        rewards[~dead, 1] = -1
        rewards[dives, 0] = self.place[dives] ** 2
        self.place = np.where(dead, 0, np.minimum(self.place + ~dives, PLACES - 1))
        self.over = dives
        seen = self._seen()
        if not late:
            self.place[self.over] = 0
            seen = self._seen()
        return seen, rewards, dives, np.zeros(self.num_envs, bool), {}

    def _seen(self) -> Floats32:
        return self.place[:, np.newaxis].astype(np.float32)
