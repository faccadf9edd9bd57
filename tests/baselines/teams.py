"""What the tests of learning teams share: a small pursuit, small learners, and what they are compared by."""

from typing import Any, cast

import numpy as np
import torch as th
from numpy.typing import NDArray

from fair_envs import make_sb3
from fair_envs.baselines.team.ddpg import DDPG, TeamReplay
from fair_envs.envs.pursuit.policies import Greedy, Team
from fair_envs.faces.sb3 import AgentsVecEnv
from fair_envs.support.aliases import Floats

PURSUIT = "FairPursuit-v0"
WORLD: dict[str, Any] = {"side": 2.0, "horizon": 12, "pursuer_speed": 1.2}
SETTINGS: dict[str, Any] = {
    "batch_size": 8,
    "buffer_size": 200,
    "learning_starts": 30,
    "train_freq": 2,
    "policy_kwargs": {"net_arch": (8, 8)},
    "device": "cpu",
    "seed": 1,
}

th.set_num_threads(1)


def team_env(*, lanes: int = 2, **parameters: Any) -> AgentsVecEnv:
    """Return a small pursuit with its pursuers as rows."""
    return cast(AgentsVecEnv, make_sb3(PURSUIT, n_envs=lanes, seed=0, **{**WORLD, **parameters}))


def team(kind: type[DDPG] = DDPG, env: Any = None, *, policy: str = "MlpPolicy", **settings: Any) -> Any:
    """Return a small learner."""
    return kind(policy, team_env() if env is None else env, **{**SETTINGS, **settings})


def numbers(model: Any) -> dict[str, th.Tensor]:
    """Return copies of all weights of a learner."""
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


def same_numbers(one: Any, other: Any) -> bool:
    """Return whether two learners have the same weights to the bit."""
    found, wanted = numbers(one), numbers(other)
    return found.keys() == wanted.keys() and all(th.equal(found[name], wanted[name]) for name in found)


def replayed(model: Any, name: str) -> NDArray[Any]:
    """Return what a learner's replay holds of each step, shape (steps, rows, ...), the oldest first."""
    replay = cast(TeamReplay, model.replay_buffer)
    assert not replay.full
    return np.array(getattr(replay, name)[: replay.pos])


class Shown(Greedy):
    """A guide that remembers what it has shown."""

    def __init__(self) -> None:
        self.all: list[NDArray[Any]] = []

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the greedy actions."""
        self.all.append(super().act(observation, uniforms))
        return self.all[-1]


class Fixed(Team):
    """Every pursuer goes along the second axis."""

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return that direction."""
        return np.broadcast_to(np.array([0, 1], np.float32), (*observation.shape[:2], 2))
