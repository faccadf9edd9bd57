"""A Gymnasium environment that is not made of this package's rules and reports the record by hand."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from fair_envs.core.interactions import FairSpec, record

GENDER = ("man", "woman")
SPEC = FairSpec(
    individuals=1, actions=2, features=("income",), sensitive={"gender": GENDER}, groups=GENDER, feedback="full"
)


class Desk(gym.Env[Any, Any]):
    """A lending desk: income and gender come in, 1 lends."""

    fair_spec: ClassVar[FairSpec] = SPEC
    observation_space, action_space = Box(0, 1, (2,), np.float32), Discrete(2)

    def _next(self) -> Any:
        return np.array([self.np_random.random(), self.np_random.random() < 0.4], np.float32)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.person, self.served = self._next(), 0
        return self.person, record(SPEC)

    def step(self, action: Any) -> Any:
        income, gender = float(self.person[0]), int(self.person[1])
        who = {"individual": self.served, "features": [income], "sensitive": [gender], "group": gender}
        info = record(SPEC, **who, action=int(action), feedback=int(income > 0.5), outcome=float(action))
        self.person, self.served = self._next(), self.served + 1
        return self.person, float(action) * (income - 0.5), False, self.served == 20, info | {"pays_back": 1}


class CarelessDesk(Desk):
    """The desk that counts in Python's integers."""

    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        return (*rest, {**info, "fair_individual": self.served})


class BareDesk(Desk):
    """The desk that says nothing of a FairSpec."""

    fair_spec = None  # type: ignore[assignment]


for desk in (Desk, CarelessDesk, BareDesk):
    gym.register(f"{desk.__name__}-v0", entry_point=f"{__name__}:{desk.__name__}")
