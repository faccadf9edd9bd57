"""Every id in RLlib: a training with PPO, alone and with several agents, and the record in a callback."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("ray.rllib")

import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

import fair_envs
from tests.libraries.ids import agents_ids, check_record, every_single

kept: list[dict[str, Any]] = []


def keep_record(*, episode: Any, **others: Any) -> None:
    """Keep the record of each step, as a callback of `on_episode_step`."""
    kept.append(episode.get_infos(-1))


def configuration(env: str) -> PPOConfig:
    """Return a small PPO in this process."""
    return (
        PPOConfig()
        .environment(env)
        .env_runners(num_env_runners=0, rollout_fragment_length=32)
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32]))
        .callbacks(on_episode_step=keep_record)
    )


def of_agents(env_id: str) -> PPOConfig:
    """Return a PPO whose agents share one policy."""
    make = import_module(fair_envs.TABLE[env_id].module).parallel_env
    register_env(env_id, lambda settings: ParallelPettingZooEnv(make(**settings)))
    shared = configuration(env_id).environment(env_id, env_config={"horizon": 25})
    return shared.multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, episode, **others: "shared")


@pytest.fixture(autouse=True, scope="module")
def cluster() -> Iterator[None]:
    """Start Ray in a small size."""
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    yield
    ray.shutdown()


@every_single
def test_an_id_trains_and_a_callback_reads_the_record(env_id: str) -> None:
    kept.clear()
    algorithm = configuration(env_id).build_algo()
    result = algorithm.train()
    algorithm.stop()
    assert np.isfinite(result["learners"]["default_policy"]["total_loss"])
    check_record(env_id, {name: [info[name] for info in kept] for name in kept[0] if name.startswith("fair_")})


@agents_ids
def test_agents_share_a_policy_and_each_has_its_record(env_id: str) -> None:
    kept.clear()
    algorithm = of_agents(env_id).build_algo()
    result = algorithm.train()
    algorithm.stop()
    assert np.isfinite(result["learners"]["shared"]["total_loss"])
    rows = [info["agent_1"] for info in kept if "agent_1" in info]
    assert rows
    assert all(row["fair_decided"] == 1 for row in rows)
