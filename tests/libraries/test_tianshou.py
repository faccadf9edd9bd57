"""Every id in Tianshou: a training with PPO, and the record in the buffer."""

from typing import Any

import pytest

pytest.importorskip("tianshou")

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from torch.distributions import Categorical, Distribution, Independent, Normal

import fair_envs  # noqa: F401 - registers the ids
from tests.libraries.ids import check_record, every_single

torch.set_num_threads(1)


def policy_and_critic(env: gym.Env[Any, Any]) -> tuple[ProbabilisticActorPolicy, Any]:
    """Return a policy for one choice, several choices or numbers, and a value function."""

    def network() -> Net:
        return Net(state_shape=env.observation_space.shape, hidden_sizes=[32])

    space = env.action_space
    if isinstance(space, gym.spaces.Box):
        actor = ContinuousActorProbabilistic(preprocess_net=network(), action_shape=space.shape)
        policy = ProbabilisticActorPolicy(actor=actor, dist_fn=numbers, action_space=space)
        return policy, ContinuousCritic(preprocess_net=network())
    if isinstance(space, gym.spaces.Discrete):
        shape, distribution = int(space.n), one_choice
    else:
        shape, distribution = space.nvec.sum(), Choices(len(space.nvec))
    actor = DiscreteActor(preprocess_net=network(), action_shape=shape, softmax_output=False)
    policy = ProbabilisticActorPolicy(
        actor=actor, dist_fn=distribution, action_space=space, action_scaling=False, action_bound_method=None
    )
    return policy, DiscreteCritic(preprocess_net=network())


def one_choice(logits: torch.Tensor) -> Distribution:
    """Return the distribution of a Discrete action."""
    return Categorical(logits=logits)


def numbers(mean_and_deviation: tuple[torch.Tensor, torch.Tensor]) -> Distribution:
    """Return the distribution of a Box action."""
    return Independent(Normal(*mean_and_deviation), 1)


class Choices:
    """The distribution of a MultiDiscrete action, whose choices have the same number of options."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, logits: torch.Tensor) -> Distribution:
        """Return the distribution."""
        return Independent(Categorical(logits=logits.unflatten(-1, (self.count, -1))), 1)


def train(env_id: str, steps: int = 64) -> tuple[ProbabilisticActorPolicy, VectorReplayBuffer]:
    """Train with PPO; return the policy and the buffer, which contains the record of each step."""
    policy, critic = policy_and_critic(gym.make(env_id))
    algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=1e-3))
    envs = DummyVectorEnv([lambda: gym.make(env_id) for _ in range(2)])
    buffer = VectorReplayBuffer(total_size=4 * steps, buffer_num=2)
    kept = VectorReplayBuffer(total_size=4 * steps, buffer_num=2)
    collector = Collector(algorithm, envs, buffer)
    collector.reset()
    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=2 * steps,
            collection_step_num_env_steps=steps,
            update_step_num_repetitions=2,
            batch_size=32,
            test_in_training=False,
        )
    )
    Collector(algorithm, envs, kept).collect(n_step=steps, reset_before_collect=True)
    return policy, kept


@every_single
def test_an_id_trains_and_the_buffer_has_the_record(env_id: str) -> None:
    policy, buffer = train(env_id)
    assert all(torch.isfinite(weights).all() for weights in policy.parameters())
    info = buffer[:].info
    check_record(env_id, {name: np.asarray(info[name]) for name in info.get_keys() if name.startswith("fair_")})
