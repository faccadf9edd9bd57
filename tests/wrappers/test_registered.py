"""The ids of environments with vector rewards."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.registration import TABLE
from fair_envs.wrappers import FairnessObjectives


@pytest.mark.parametrize("env_id", TABLE)
def test_every_environment_has_an_id_with_vector_rewards(env_id: str) -> None:
    env: Any = gym.make(f"mo-{env_id}")
    assert env.unwrapped.reward_space.shape == (3,)
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[1].shape == (3,)
    again: Any = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.spec.id == f"mo-{env_id}"


def test_the_entries_are_the_reward_and_the_measures_of_the_task() -> None:
    env: Any = gym.make("mo-FairHiring-v0", horizon=40)
    own: Any = FairnessObjectives(gym.make("FairHiring-v0", horizon=40), measures=["short", "long"])
    env.reset(seed=3), own.reset(seed=3)
    rewards = [(env.step(int(t % 3 == 0))[1], own.step(int(t % 3 == 0))[1]) for t in range(40)]
    assert np.array_equal(*np.swapaxes(rewards, 0, 1))
    assert np.any(rewards, axis=(0, 1)).all()


@pytest.mark.parametrize("env_id", ["FairLending-v0", "FairHarvest-v0"])
def test_a_batch_is_the_single_environments(env_id: str) -> None:
    batch: Any = gym.make_vec(f"mo-{env_id}", num_envs=2, horizon=20)
    batch.reset(seed=0)
    batch.action_space.seed(0)
    one: Any = gym.make(f"mo-{env_id}", horizon=20)
    one.reset(seed=1)
    for _ in range(20):
        actions = batch.action_space.sample()
        assert np.array_equal(batch.step(actions)[1][1], one.step(actions[1])[1])


def test_other_measures_and_parameters_can_be_given() -> None:
    env: Any = gym.make("mo-FairLending-v0", measures=["demographic_parity"], feedback="accepted", horizon=5)
    assert env.unwrapped.reward_space.shape == (2,)
    assert env.unwrapped.params.horizon == 5 and env.unwrapped.fair_spec.feedback == "accepted"
    with pytest.raises(ValueError, match="needs labels of all people"):
        gym.make("mo-FairLending-v0", feedback="accepted")
