"""An environment of a user's own: a clerk decides on one client after another, as a list says."""

from typing import Any

import gymnasium as gym
import numpy as np

from fair_envs.core.interactions import FairSpec, record

GROUPS = ("north", "south")
SPEC = FairSpec(
    individuals=1,
    actions=2,
    features=("need",),
    sensitive={"home": GROUPS},
    legitimate={"age": ("young", "old")},
    groups=GROUPS,
    feedback="full",
)
# group, label, age: four clients in each even episode, two in each odd one
EVEN = ((0, 1, 0), (0, 1, 1), (1, 1, 0), (1, 0, 1))
ODD = ((0, 0, 0), (1, 1, 1))


class Office(gym.Env[Any, int]):
    """The clerk sees the client's group and label; the reward is 1 for a correct decision."""

    observation_space: Any = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space: Any = gym.spaces.Discrete(2)
    fair_spec = SPEC

    def __init__(self, clients: Any = None, bonus: float = 0.0) -> None:
        self._given, self._bonus = clients, bonus

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Open the office; the seed decides who comes."""
        super().reset(seed=seed)
        self._clients, self._place = self._given or (ODD if (seed or 0) % 2 else EVEN), 0
        return self._shown(), plain(record(SPEC))

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decide on a client."""
        group, label, age = self._clients[self._place]
        told = record(
            SPEC,
            individual=self._place,
            features=[0.5],
            sensitive=[group],
            legitimate=[age],
            group=group,
            action=int(action),
            feedback=label,
        )
        self._place += 1
        done = self._place == len(self._clients)
        return self._shown(), float(action == label) + self._bonus, done, False, plain(told)

    def _shown(self) -> Any:
        group, label, _ = self._clients[min(self._place, len(self._clients) - 1)]
        return np.array([group, label], np.float32)


def plain(told: dict[str, Any]) -> dict[str, Any]:
    """Return a record as Gymnasium environments report it."""
    return dict(told)


def to_the_north(observation: Any, uniforms: Any) -> Any:
    """Accept everyone from the north, and nobody else."""
    return (observation[..., 0] == 0).astype(int)


def correct(observation: Any, uniforms: Any) -> Any:
    """Decide as the label says."""
    return observation[..., 1].astype(int)


def coin(observation: Any, uniforms: Any) -> Any:
    """Accept half of the clients at random."""
    return (uniforms < 0.5).astype(int)
