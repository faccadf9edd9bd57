"""One number from a vector reward."""

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from fair_envs.envs.harvest import Env as Harvest
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.metrics.history import Full, SlidingWindow
from fair_envs.wrappers import FairnessObjectives, FairnessPenalty, RecordFairness, Scalarise, VectorReward
from fair_envs.wrappers.scalarise import chebyshev, generalised_gini, linear, smallest
from tests import toys
from tests.ferry import BOARD, Env, Ferry, Parallel, Vector
from tests.helpers import LITTLE

SIZE: dict[str, Any] = {"seats": 3, "horizon": 7}
LANES, SEED = 3, 11
NOTIONS = ("SP", "EO")
ACTIONS = np.random.default_rng(5).integers(0, 2, (30, LANES))
VECTORS = np.array([[1.0, -0.5, 0.0], [-1.0, -0.25, -1.0]])


def objectives(env: Any) -> Any:
    return FairnessObjectives(env, NOTIONS, SlidingWindow(9))


def test_the_forms_by_hand() -> None:
    ones = np.ones(3)
    assert linear(VECTORS, np.array([2.0, 4, 8])).tolist() == [0.0, -11.0]
    assert chebyshev(VECTORS, ones, np.array([1.0, 0, 0])).tolist() == [-0.5, -2.0]
    assert chebyshev(VECTORS, np.array([0.1, 4, 1]), np.array([1.0, 0, 0])).tolist() == [-2.0, -1.0]
    assert chebyshev(np.array([1.0, 0, 0]), ones, np.array([1.0, 0, 0])) == 0
    assert generalised_gini(VECTORS, np.array([1, 0.5, 0.25])).tolist() == [-0.25, -1.5625]
    assert smallest(VECTORS).tolist() == [-0.5, -1.0]


SETTINGS: list[tuple[dict[str, Any], Any]] = [
    ({}, lambda v: v.sum()),
    ({"weights": [1, 0, 3]}, lambda v: v @ [1.0, 0, 3]),
    ({"form": "chebyshev", "reference": [1, 0, 0]}, lambda v: -(np.array([1, 0, 0]) - v).max()),
    ({"form": "gini"}, lambda v: np.sort(v) @ [1, 0.5, 0.25]),
    ({"form": "gini", "weights": [3, 1, 1]}, lambda v: np.sort(v) @ [3.0, 1, 1]),
    ({"form": "maximin"}, lambda v: v.min()),
]


@pytest.mark.parametrize(("settings", "number"), SETTINGS, ids=lambda value: str(value) if type(value) is dict else "")
def test_the_number_is_made_of_the_vector_on_every_face(settings: dict[str, Any], number: Any) -> None:
    plain, env = (wrap(Env(**SIZE)) for wrap in (objectives, lambda e: Scalarise(objectives(e), **settings)))
    batch = Scalarise(objectives(Vector(LANES, **SIZE)), **settings)
    rows: Any = Scalarise(objectives(LanesVecEnv(Ferry(**SIZE), LANES)), **settings)
    agents = Scalarise(objectives(Parallel(**SIZE)), **settings)
    rows.seed(SEED)
    for face in (plain, env, batch, agents):
        face.reset(seed=SEED)
    rows.reset()
    for actions in ACTIONS[:3]:
        _, vector, _, _, _ = plain.step(actions[0])
        expected = number(vector.astype(float))
        _, reward, _, _, info = env.step(actions[0])
        assert type(reward) is float and reward == pytest.approx(expected)
        assert np.array_equal(info["fair_objectives"], vector) and info["fair_objectives"].dtype == np.float32
        _, several, _, _, infos = batch.step(actions)
        assert several.dtype == np.float64 and several[0] == reward
        assert np.array_equal(infos["fair_objectives"][0], vector)
        assert agents.step({"agent_0": actions[0]})[1]["agent_0"] == reward
        assert rows.step(actions)[1][0] == np.float32(reward)
        assert np.array_equal(rows.added["fair_objectives"][0], vector)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_batch_equals_a_batch_of_single_environments(mode: AutoresetMode) -> None:
    def wrap(env: Any) -> Any:
        return Scalarise(objectives(env), "chebyshev", reference=[2, 1, 1])  # a reset's number would not be 0

    native: Any = wrap(Vector(LANES, autoreset_mode=mode, **SIZE))
    sync = SyncVectorEnv([lambda: wrap(Env(**SIZE))] * LANES, autoreset_mode=mode)
    for env in (native, sync):
        env.reset(seed=SEED)
    ended = 0
    for actions in ACTIONS:
        one, other = native.step(actions), sync.step(actions)
        for own, theirs in zip(one[:4], other[:4], strict=True):
            assert own.dtype == theirs.dtype and np.array_equal(own, theirs)
        assert np.array_equal(one[4]["fair_objectives"], other[4]["fair_objectives"])
        over = one[2] | one[3]
        ended += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            for env in (native, sync):
                env.reset(options={"reset_mask": over.copy()})
    assert ended > LANES


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasiums_check_passes() -> None:
    check_env(Scalarise(objectives(Env(**SIZE))), skip_render_check=True)


def test_agents_rewards_become_one_number_for_all() -> None:
    env: Any = RecordFairness(Scalarise(VectorReward(Harvest(**{**LITTLE, "horizon": 5})), "maximin"))
    env.reset(seed=1)
    total = 0.0
    for _ in range(5):
        _, reward, _, _, info = env.step(list(range(8)))
        assert info["agent_reward"].tolist() == [reward] * 8
        total += reward
    assert info["fair_episode_return"].tolist() == [total] * 8


def test_a_penalty_can_stand_above_the_number() -> None:
    env: Any = FairnessPenalty(Scalarise(objectives(Env(**SIZE))), notions="SP", history=Full(), alpha=0.0)
    below: Any = Scalarise(objectives(Env(**SIZE)))
    env.reset(seed=1), below.reset(seed=1)
    assert env.step(BOARD)[1] == below.step(BOARD)[1]


def test_stable_baselines3_learns_from_the_number() -> None:
    env = VecMonitor(Scalarise(objectives(LanesVecEnv(Ferry(**SIZE), 4)), weights=[1, 2, 0]))
    PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, seed=0, device="cpu").learn(64)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "sum"}, "form must be one of 'linear', 'chebyshev', 'gini', 'maximin', got 'sum'"),
        ({"weights": [1, 2]}, "weights must have one entry for each of 3 objectives, got 2"),
        ({"weights": [1, -1, 0]}, r"weights must be at least 0, and at least one above 0, got \[1.0, -1.0, 0.0\]"),
        ({"weights": [0, 0, 0]}, r"weights must be at least 0, and at least one above 0, got \[0.0, 0.0, 0.0\]"),
        ({"weights": [1, np.nan, 0]}, r"weights must be a flat list of finite numbers, got \[1, nan, 0\]"),
        ({"weights": "much"}, "weights must be numbers, got 'much'"),
        ({"weights": 3}, "weights must be a flat list of finite numbers, got 3"),
        ({"form": "gini", "weights": [1, 2, 0]}, "weights must not increase for form='gini'"),
        ({"form": "maximin", "weights": [1, 1, 1]}, r"weights must be None for form='maximin', got \[1, 1, 1\]"),
        ({"form": "chebyshev"}, "reference must be given for form='chebyshev', got None"),
        ({"reference": [1, 1, 1]}, r"reference must be None for form='linear', got \[1, 1, 1\]"),
        ({"form": "chebyshev", "reference": [1]}, "reference must have one entry for each of 3 objectives, got 1"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scalarise(objectives(Env()), **settings)


def test_a_reward_that_is_a_number_is_refused() -> None:
    for env in (Env(), Scalarise(objectives(Env())), toys.Parallel()):
        with pytest.raises(ValueError, match="env must have a vector reward, such as that of FairnessObjectives"):
            Scalarise(env)
