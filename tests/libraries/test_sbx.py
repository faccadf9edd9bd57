"""Every id in SBX, Stable-Baselines3's learners in JAX."""

from typing import Any

import pytest

pytest.importorskip("sbx")

import jax
import numpy as np
from sbx import DQN, PPO, TQC

import fair_envs
from tests.libraries.callbacks import KeepRecord
from tests.libraries.ids import check_record, every_single


@every_single
def test_an_id_trains_and_a_callback_reads_the_record(env_id: str) -> None:
    callback = KeepRecord()
    model = PPO("MlpPolicy", env_id, n_steps=32, batch_size=32, n_epochs=1, seed=0, policy_kwargs={"net_arch": [16]})
    model.learn(64, callback=callback)
    weights = jax.tree_util.tree_leaves(model.policy.actor_state.params)
    assert all(np.isfinite(np.asarray(array)).all() for array in weights)
    rows = callback.infos
    check_record(env_id, {name: [row[name] for row in rows] for name in rows[0] if name.startswith("fair_")})


@pytest.mark.parametrize(("env_id", "learner"), [("FairHiring-v0", DQN), ("FairCollege-v0", TQC)])
def test_an_id_trains_off_policy(env_id: str, learner: Any) -> None:
    small = {"policy_kwargs": {"net_arch": [16]}, "learning_starts": 20, "batch_size": 16, "buffer_size": 100}
    learner("MlpPolicy", env_id, seed=0, **small).learn(40)


def test_agents_are_rows_of_one_policy() -> None:
    env = fair_envs.make_sb3("FairPursuit-v0", n_envs=2, horizon=20)
    PPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=0).learn(96)
