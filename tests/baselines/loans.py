"""What the tests of long-term fairness share: a small environment of one's own, measures, and massagers."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv

from fair_envs import make_sb3
from fair_envs.baselines.ppo.massaging import PolicyOutput
from fair_envs.core.interactions import FairSpec, record
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.metrics.long_term import Measure
from fair_envs.support.aliases import Flags, Floats, Floats32

WHO = ("woman", "man")
SPEC = FairSpec(individuals=1, actions=2, features=("income",), sensitive={"gender": WHO}, groups=WHO)
HIRING = "FairHiring-v0"


class Loans(gym.Env[Floats32, Any]):
    """Five people in turn ask for a loan; who gets one earns the lender their income less a half."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)

    def __init__(self, actions: gym.spaces.Space[Any] | None = None, *, tells: bool = True) -> None:
        self.action_space = gym.spaces.Discrete(2) if actions is None else actions
        self.tells = tells

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Floats32, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self.time = 0
        return self._next(), record(SPEC) if self.tells else {}

    def step(self, action: Any) -> tuple[Floats32, float, bool, bool, dict[str, Any]]:
        """Decide on a person."""
        group, income = int(self.seen[0]), float(self.seen[1])
        granted = int(np.ravel(action)[0] > 0)
        told = record(
            SPEC, individual=self.time, features=[income], sensitive=[group], group=group, action=granted, feedback=1
        )
        self.time += 1
        over = self.time == 5
        return self._next(), granted * (income - 0.5), over, False, told if self.tells else {}

    def _next(self) -> Floats32:
        self.seen = np.array([self.np_random.integers(2), self.np_random.random()], np.float32)
        return self.seen


def own_env(rows: int = 3, **settings: Any) -> DummyVecEnv:
    """Return so many of the lenders."""
    return DummyVecEnv([lambda: Loans(**settings) for _ in range(rows)])


def hiring(lanes: int = 4, **parameters: Any) -> LanesVecEnv:
    """Return job interviews, one row for each lane, with episodes of 7 decisions."""
    env = make_sb3(HIRING, n_envs=lanes, rows="lanes", seed=5, **{"horizon": 7, **parameters})
    assert isinstance(env, LanesVecEnv)
    return env


class Granted(Measure):
    """How many were decided for in the episode; undefined before the second decision."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.count, self.time = np.zeros(lanes), np.zeros(lanes, int)

    def measured(self, info: Any) -> Floats:
        """Return the count after a step."""
        self.count += info["fair_action"] == 1
        self.time += 1
        return np.where(self.time < 2, np.nan, self.count)

    def forget(self, mask: Flags) -> None:
        """Begin to count anew."""
        self.count[mask] = self.time[mask] = 0


class Age(Measure):
    """How many decisions the episode has had."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.value = np.zeros(lanes)

    def measured(self, info: Any) -> Floats:
        """Return one more than before."""
        age: Floats = np.nan_to_num(self.value) + 1
        return age


class Accept:
    """Grants whatever the policy would grant with at least the threshold's probability."""

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Measure, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions."""
        assert policy.probabilities is not None
        altered: NDArray[Any] = np.where(policy.probabilities[:, 1] >= threshold, 1, action)
        return altered


class FirstEntry(Accept):
    """Makes the first of several choices 1."""

    alters_one_entry = True

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Measure, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions."""
        out: NDArray[Any] = action.copy()
        out[:, 0] = 1
        return out


def settings(**changes: Any) -> dict[str, Any]:
    """Return the settings of a small learner; rollouts of 10 steps, so that episodes cross them."""
    default = {"n_steps": 10, "batch_size": 10, "n_epochs": 2, "learning_rate": 0.01, "seed": 1, "device": "cpu"}
    return {**default, "policy_kwargs": {"net_arch": [16]}, **changes}
