"""F-PPO on a user-defined environment: a nurse for two villages.

Three parts are needed. The environment reports in ``info`` how each step affects people
(`fair_envs.core.interactions.record`). A short-term measure and a long-term distance are updated from this record. A
massager selects the uncertain decisions to change. Run it with ``python examples/own_environment_with_f_ppo.py``; it
takes a few seconds.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.env_util import make_vec_env

from fair_envs.baselines import FPPO, MassagingSchedule, Measure, PolicyOutput
from fair_envs.baselines.ppo.long_term_evaluation import play_long_term
from fair_envs.core.interactions import FairSpec, record
from fair_envs.support.aliases import Flags, Floats

NAMES = ("upper", "lower")
SPEC = FairSpec(
    individuals=2,
    actions=2,
    features=("sick",),
    sensitive={"village": NAMES},
    groups=NAMES,
    same_individuals=True,
)
INFECTION = 0.08  # share of the healthy people who become sick in a day
TRAVEL = 0.1  # cost of a visit to the lower village
REMEMBERED = 20  # number of recent visits in the short-term measure


class Villages(gym.Env[NDArray[np.float32], int]):
    """A nurse visits one of two villages each day and heals half of its sick people.

    The way to the lower village is longer, so a visit there has a cost.
    """

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space: Any = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start a season of 50 days."""
        super().reset(seed=seed)
        self.day, self.sick = 0, self.np_random.uniform(0.1, 0.5, 2).astype(np.float32)
        return self.sick.copy(), record(SPEC)

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Visit a village."""
        visited = np.arange(2) == action
        healed = np.where(visited, self.sick / 2, 0).astype(np.float32)
        self.sick = self.sick - healed
        self.sick = (self.sick + INFECTION * (1 - self.sick)).astype(np.float32)
        self.day += 1
        reported = record(
            SPEC,
            individual=[0, 1],
            features=self.sick[:, np.newaxis],
            sensitive=[[0], [1]],
            group=[0, 1],
            action=visited.astype(int),
            outcome=healed,
        )
        return self.sick.copy(), float(healed.sum()) - TRAVEL * action, False, self.day == 50, reported


class VisitGap(Measure):
    """The difference between the villages' shares of the last visits: 0 is fair, 1 if all went to one village."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.visits = np.zeros((lanes, 0))  # the visited village, the oldest visit first

    def measured(self, info: Any) -> Floats:
        """Add a day's visit and return the gap."""
        lower = info["fair_action"][:, 1:] == 1
        self.visits = np.concatenate([self.visits, lower], axis=1)[:, -REMEMBERED:]
        return self.gap(self.visits)

    def if_taken(self, action: NDArray[Any]) -> Floats:
        """Return the gap after one more visit, shape (lanes,)."""
        return self.gap(np.concatenate([self.visits, action[:, np.newaxis]], axis=1)[:, -REMEMBERED:])

    def forget(self, mask: Flags) -> None:
        """Remove the visits of seasons that have ended."""
        self.visits[mask] = np.nan

    @staticmethod
    def gap(visits: Floats) -> Floats:
        """Return the gap in visits; visits of an earlier season are NaN."""
        counts = np.stack([(visits == village).sum(axis=1) for village in (0, 1)])
        return np.asarray(np.abs(counts[0] - counts[1]) / np.maximum(1, counts.sum(axis=0)), np.float64)


class SicknessGap(Measure):
    """The distance between the villages' shares of sick people: 0 is fair."""

    def measured(self, info: Any) -> Floats:
        """Return the gap after a day."""
        sick = info["fair_features"][:, :, 0].astype(float)
        return np.asarray(np.abs(sick[:, 0] - sick[:, 1]))


def visit_the_other(
    observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Any, *, threshold: float
) -> NDArray[Any]:
    """Return the visits, changed to the other village if the policy is uncertain and the change reduces the gap."""
    assert policy.probabilities is not None
    unsure = policy.probabilities.min(axis=1) >= threshold
    fairer = short.if_taken(1 - action) < short.if_taken(action)  # no change in a tie
    return np.where(unsure & fairer, 1 - action, action)


def learner(*, fair: bool, steps: int) -> FPPO:
    """Return F-PPO trained for a number of days; without weight and massager, it is PPO."""
    own: dict[str, Any] = {"weight": 0.0}
    if fair:
        own = {
            "weight": 1.0,
            "massager": visit_the_other,
            "massaging_schedule": MassagingSchedule(initial=0.3, start_after=2),
        }
    env = make_vec_env(Villages, n_envs=4, seed=0)
    model = FPPO(
        "MlpPolicy",
        env,
        short=VisitGap,
        long=SicknessGap,
        delta=0.2,
        n_steps=128,
        batch_size=128,
        gamma=0.9,
        learning_rate=1e-3,
        seed=0,
        device="cpu",
        **own,
    )
    model.learn(steps)
    return model


def main(steps: int = 6000) -> dict[str, dict[str, float]]:
    """Train PPO and F-PPO, print their results on test seasons, and return them."""
    found = {}
    ppo, f_ppo = (learner(fair=fair, steps=steps) for fair in (False, True))
    for name, model, shield in (("PPO", ppo, False), ("F-PPO", f_ppo, False), ("F-PPO, shielded", f_ppo, True)):
        played = play_long_term(model, make_vec_env(Villages, n_envs=32, seed=1000), shield=shield)
        found[name] = {key: estimate.value for key, estimate in played.estimates().items()}
        print(f"{name:16}", "  ".join(f"{key} {value:.3f}" for key, value in found[name].items()))
    return found


if __name__ == "__main__":
    main()
