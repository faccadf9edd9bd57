"""Every id in PufferLib: its emulation, a training with its PPO, and the record in the infos of its batch."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pufferlib")

import gymnasium as gym
import torch
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.models import Default
from pufferlib.pufferl import PuffeRL
from pufferlib.vector import Serial, make

import fair_envs
from tests.libraries.ids import check_record, every_id, every_single

torch.set_num_threads(1)


def single(env_id: str) -> Callable[..., GymnasiumPufferEnv]:
    """Return what makes an id's environment for PufferLib's batches."""
    return lambda **buffers: GymnasiumPufferEnv(gym.make(env_id), **buffers)


def agents(env_id: str, **parameters: Any) -> Callable[..., PettingZooPufferEnv]:
    """Return what makes PettingZoo's interface of an id for PufferLib's batches."""
    parallel_env = import_module(fair_envs.TABLE[env_id].module).parallel_env
    return lambda **buffers: PettingZooPufferEnv(parallel_env(**parameters), **buffers)


class KeepRecord(Serial):
    """A batch in one process that keeps the infos of each step: one for each environment."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kept: list[list[dict[str, Any]]] = []

    def recv(self) -> Any:
        """Return the batch after a step."""
        self.kept.append(self.infos)
        return super().recv()


def learner(create: Callable[..., Any], folder: Path) -> PuffeRL:
    """Return a small PPO on two environments; the options are those of PufferLib's `default.ini`."""
    envs = make(create, backend=KeepRecord, num_envs=2)
    options = {
        **{"seed": 0, "torch_deterministic": True, "device": "cpu", "cpu_offload": False, "precision": "float32"},
        **{"use_rnn": False, "compile": False, "env": "fair", "data_dir": str(folder), "checkpoint_interval": 200},
        **{"total_timesteps": 10_000_000, "batch_size": "auto", "bptt_horizon": 32, "update_epochs": 1},
        **{"minibatch_size": 64, "max_minibatch_size": 32_768, "max_grad_norm": 1.5, "anneal_lr": True},
        **{"optimizer": "adam", "learning_rate": 0.001, "adam_beta1": 0.95, "adam_beta2": 0.999, "adam_eps": 1e-12},
        **{"gamma": 0.995, "gae_lambda": 0.9, "clip_coef": 0.2, "vf_coef": 2.0, "vf_clip_coef": 0.2},
        **{"ent_coef": 0.001, "vtrace_rho_clip": 1.0, "vtrace_c_clip": 1.0, "prio_alpha": 0.8, "prio_beta0": 0.2},
    }
    return PuffeRL(options, envs, Default(envs.driver_env, hidden_size=32))


def train(ppo: PuffeRL) -> None:
    """Train one iteration, save the policy, and check that it has changed and is finite."""
    before = [weights.detach().clone() for weights in ppo.policy.parameters()]
    ppo.evaluate()  # collects a batch
    ppo.train()
    ppo.close()
    after = list(ppo.policy.parameters())
    assert all(torch.isfinite(weights).all() for weights in after)
    assert any((old != new).any() for old, new in zip(before, after, strict=True))


@every_single
def test_an_id_trains_and_the_infos_have_the_record(env_id: str, tmp_path: Path) -> None:
    ppo = learner(single(env_id), tmp_path)
    train(ppo)
    rows = [infos[0] for infos in ppo.vecenv.kept if infos[0]["fair_decided"]]  # not the steps that start an episode
    check_record(env_id, {name: [row[name] for row in rows] for name in rows[0] if name.startswith("fair_")})


@every_id
def test_agents_train_and_each_has_its_record(env_id: str, tmp_path: Path) -> None:
    ppo = learner(agents(env_id, horizon=25), tmp_path)
    train(ppo)
    first = ppo.vecenv.driver_env.possible_agents[0]
    rows = [infos[0][first] for infos in ppo.vecenv.kept if first in infos[0]]
    assert any(row["fair_decided"] == 1 for row in rows)
    assert all(row["fair_decided"] in (0, 1) for row in rows)
