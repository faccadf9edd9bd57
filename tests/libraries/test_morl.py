"""Every ``mo-ID`` with the wrappers of MO-Gymnasium and the learners of morl-baselines."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("morl_baselines")

import gymnasium as gym
import mo_gymnasium
import numpy as np
import torch
from mo_gymnasium.wrappers import LinearReward, MORecordEpisodeStatistics
from morl_baselines.multi_policy.capql.capql import CAPQL
from morl_baselines.multi_policy.envelope.envelope import Envelope
from morl_baselines.multi_policy.pcn.pcn import PCN

import fair_envs
from tests.libraries.ids import check_record, every_id, every_objectives

torch.set_num_threads(1)
WORST = np.full(3, -1000.0)


def environment(env_id: str, **parameters: Any) -> gym.Env[Any, Any]:
    """Return an id with a vector reward; of several agents, the controller plays one."""
    if fair_envs.TABLE[env_id].agents:
        parameters["control"] = "focal"
    return mo_gymnasium.make(f"mo-{env_id}", **parameters)


def train_pcn(env_id: str, *, total_timesteps: int, **parameters: Any) -> PCN:
    """Train pareto-conditioned networks: one policy for all trade-offs."""
    env, eval_env = environment(env_id, **parameters), environment(env_id, **parameters)
    if isinstance(env.action_space, gym.spaces.Box):  # PCN adds noise to the action
        env, eval_env = gym.wrappers.ClipAction(env), gym.wrappers.ClipAction(eval_env)
    scaling = np.ones(4)  # of the three rewards and the rest of the horizon
    model = PCN(env, scaling_factor=scaling, batch_size=16, hidden_dim=16, log=False, seed=0, device="cpu")
    model.train(total_timesteps, eval_env, ref_point=WORST, num_er_episodes=3, num_step_episodes=2, num_model_updates=3)
    return model


@every_objectives
def test_the_wrappers_of_mo_gymnasium_read_the_vector_and_keep_the_record(env_id: str) -> None:
    env = MORecordEpisodeStatistics(mo_gymnasium.make(env_id, horizon=10))
    env.reset(seed=0)
    rows, rewards, done = [], [], False
    while not done:
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        done = terminated or truncated
        rows.append(info)
        rewards.append(reward)
    np.testing.assert_allclose(info["episode"]["r"], np.sum(rewards, axis=0), rtol=1e-4, atol=1e-5)
    check_record(env_id, {name: [row[name] for row in rows] for name in rows[0] if name.startswith("fair_")})


@every_objectives
def test_a_sum_of_the_objectives_is_a_number(env_id: str) -> None:
    env = LinearReward(mo_gymnasium.make(env_id), np.array([0.5, 0.3, 0.2]))
    env.reset(seed=0)
    _, reward, _, _, info = env.step(env.action_space.sample())
    assert reward == pytest.approx(info["vector_reward"] @ [0.5, 0.3, 0.2])


@every_id
def test_an_id_trains_pareto_conditioned_networks(env_id: str, empty_folder: Path) -> None:
    if env_id == "FairAttention-v0":
        with pytest.raises(RuntimeError, match="must match the size"):  # it reads one discrete choice, or numbers
            train_pcn(env_id, total_timesteps=60, horizon=10)
        return
    model = train_pcn(env_id, total_timesteps=60, horizon=10)
    assert all(torch.isfinite(weights).all() for weights in model.model.parameters())
    assert len(model.experience_replay[0][2][0].reward) == 3


@every_id
def test_an_id_trains_the_envelope_or_capql(env_id: str) -> None:
    env, eval_env = environment(env_id, horizon=10), environment(env_id, horizon=10)
    if isinstance(env.action_space, gym.spaces.MultiDiscrete):
        pytest.skip("morl-baselines has no learner of several discrete choices")
    learner = CAPQL if isinstance(env.action_space, gym.spaces.Box) else Envelope
    model = learner(env, log=False, seed=0, device="cpu", net_arch=[8], batch_size=8, learning_starts=10)
    model.train(40, eval_env=eval_env, ref_point=WORST)
    assert model.global_step >= 40
