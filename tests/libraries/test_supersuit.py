"""Agents through SuperSuit into Stable-Baselines3, and every id in the learners of sb3-contrib."""

from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("supersuit")

import gymnasium as gym
import numpy as np
import supersuit
import torch
from sb3_contrib import TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import fair_envs
from tests.libraries.callbacks import KeepRecord
from tests.libraries.ids import check_record, every_id, every_single

torch.set_num_threads(1)


def rows_of_agents(env_id: str, **parameters: Any) -> Any:
    """Return a `VecEnv` with a row for each agent."""
    make = import_module(fair_envs.TABLE[env_id].module).parallel_env
    env = supersuit.pettingzoo_env_to_vec_env_v1(make(**parameters))
    return supersuit.concat_vec_envs_v1(env, 1, num_cpus=1, base_class="stable_baselines3")


@pytest.mark.parametrize("env_id", ["FairHarvest-v0", "FairPursuit-v0"])
def test_agents_learn_one_policy_through_supersuit_and_each_has_its_record(env_id: str) -> None:
    env, callback = rows_of_agents(env_id, horizon=100), KeepRecord()
    PPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, device="cpu").learn(64, callback=callback)
    assert callback.infos
    assert all(info["fair_decided"] == 1 and info["fair_group"].shape == () for info in callback.infos)


def test_supersuit_misses_the_end_of_an_episode_that_cars_have_left_before() -> None:
    env = supersuit.black_death_v3(import_module("fair_envs.envs.traffic").parallel_env(horizon=5))
    env.reset(seed=0)
    for _ in range(5):
        *_, truncations, _ = env.step({agent: 0 for agent in env.possible_agents})
    assert not any(truncations.values())  # it waits for agents that are both terminated and truncated


@pytest.mark.parametrize("learner", [RecurrentPPO, TRPO])
@every_single
def test_an_id_trains_and_a_callback_reads_the_record(env_id: str, learner: Any) -> None:
    callback = KeepRecord()
    policy = "MlpLstmPolicy" if learner is RecurrentPPO else "MlpPolicy"
    model = learner(policy, make_vec_env(env_id, 2), n_steps=32, batch_size=32, device="cpu", seed=0)
    model.learn(64, callback=callback)
    assert all(torch.isfinite(weights).all() for weights in model.policy.parameters())
    rows = callback.infos
    check_record(env_id, {name: [row[name] for row in rows] for name in rows[0] if name.startswith("fair_")})


@every_id
def test_masks_of_an_id_hold_back_actions_without_effect(env_id: str) -> None:
    env = make_vec_env(env_id, 2)
    if isinstance(env.action_space, gym.spaces.Box):
        pytest.skip("numbers have no masks")
    model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=32, device="cpu", seed=0).learn(64)
    masks = np.stack(env.env_method("action_masks"))
    actions, _ = model.predict(env.reset(), action_masks=masks)
    assert actions.shape[0] == 2
