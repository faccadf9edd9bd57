"""Every id in TorchRL: specs, rollouts, a training with PPO, and the record in the tensordict."""

from importlib import import_module
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("torchrl")

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import ActionMask, GymEnv, GymWrapper, PettingZooWrapper, TransformedEnv, check_env_specs
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import fair_envs
from fair_envs.wrappers import ReportActionMasks
from tests.libraries.ids import agents_ids, check_record, every_id, every_objectives, every_single

torch.set_num_threads(1)


def environment(env_id: str) -> Any:
    """Return an id with the record of each step as entries of the tensordict."""
    return GymEnv(env_id, categorical_action_encoding=True).auto_register_info_dict()


def masked_environment(env_id: str, **parameters: Any) -> Any:
    """Return an id whose random actions, and policies with a masked distribution, leave out actions without effect."""
    env = ReportActionMasks(gym.make(env_id, **parameters))
    return TransformedEnv(GymWrapper(env, categorical_action_encoding=True).auto_register_info_dict(), ActionMask())


def several_choices(logits: torch.Tensor) -> torch.distributions.Distribution:
    """Return the distribution of a MultiDiscrete action, from logits of shape (..., choices, options)."""
    return torch.distributions.Independent(torch.distributions.Categorical(logits=logits), 1)


def actor(env: Any) -> ProbabilisticActor:
    """Return a policy for one choice, several choices or numbers."""
    space, seen = env.action_space, env.observation_space.shape[0]
    if hasattr(space, "n"):
        network = nn.Sequential(nn.Linear(seen, 32), nn.Tanh(), nn.Linear(32, int(space.n)))
        keys, how = ["logits"], {"distribution_class": torch.distributions.Categorical}
    elif hasattr(space, "nvec"):
        options = int(space.nvec[0])  # the same in every choice
        outputs = nn.Linear(32, len(space.nvec) * options), nn.Unflatten(-1, (len(space.nvec), options))
        network = nn.Sequential(nn.Linear(seen, 32), nn.Tanh(), *outputs)
        keys, how = ["logits"], {"distribution_class": several_choices}
    else:
        outputs = nn.Linear(32, 2 * space.shape[0]), NormalParamExtractor()
        network = nn.Sequential(nn.Linear(seen, 32), nn.Tanh(), *outputs)
        bounds = {"low": torch.as_tensor(space.low), "high": torch.as_tensor(space.high)}
        keys, how = ["loc", "scale"], {"distribution_class": TanhNormal, "distribution_kwargs": bounds}
    module = TensorDictModule(network, in_keys=["observation"], out_keys=keys)
    return ProbabilisticActor(module, in_keys=keys, spec=env.action_spec, return_log_prob=True, **how)


def train(env_id: str, frames: int = 128) -> tuple[ProbabilisticActor, Any]:
    """Train with PPO; return the policy and the last batch, which contains the record."""
    env = environment(env_id)
    policy = actor(env)
    value = ValueOperator(nn.Sequential(nn.Linear(env.observation_space.shape[0], 32), nn.Tanh(), nn.Linear(32, 1)))
    loss, advantage = ClipPPOLoss(policy, value), GAE(gamma=0.99, lmbda=0.95, value_network=value)
    optimizer = torch.optim.Adam(loss.parameters(), 1e-3)
    for batch in Collector(env, policy, frames_per_batch=64, total_frames=frames, auto_register_policy_transforms=True):
        for _ in range(4):
            advantage(batch)
            losses = loss(batch)
            total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
    return policy, batch


@pytest.mark.parametrize("one_hot", [True, False])
@every_single
def test_an_id_keeps_its_specs(env_id: str, one_hot: bool) -> None:
    check_env_specs(GymEnv(env_id, categorical_action_encoding=not one_hot))


@every_objectives
def test_an_id_with_objectives_has_a_vector_of_rewards(env_id: str) -> None:
    env = environment(env_id)
    check_env_specs(env)
    assert env.rollout(5)["next", "reward"].shape == (5, 3)


@every_single
def test_an_id_trains_and_the_batch_has_the_record(env_id: str) -> None:
    policy, batch = train(env_id)
    assert all(torch.isfinite(weights).all() for weights in policy.parameters())
    check_record(env_id, {name: value.numpy() for name, value in batch["next"].items() if name.startswith("fair_")})


def agents_environment(env_id: str, **parameters: Any) -> Any:
    """Return PettingZoo's interface of an id: agents that have left stay in the tensordict, with a mask."""
    make = import_module(fair_envs.TABLE[env_id].module).parallel_env
    return PettingZooWrapper(make(**parameters), use_mask=True, done_on_any=False)


@every_id
def test_every_agent_of_pettingzoos_interface_has_its_record(env_id: str) -> None:
    env = agents_environment(env_id)
    check_env_specs(env)
    (group,) = env.group_map
    played = env.rollout(20)["next", group]
    first = played["info"][:, 0]  # the first agent's
    assert (first["fair_decided"] == 1).all()
    assert played["reward"].shape[1] == len(env.possible_agents)


@agents_ids
def test_a_rollout_of_agents_continues_until_all_have_left(env_id: str) -> None:
    assert len(agents_environment(env_id, horizon=25).rollout(30)) == 25


@pytest.mark.parametrize("vaccines", [1, 2])
def test_masked_actions_are_not_sampled(vaccines: int) -> None:
    env = masked_environment("FairEpidemic-v0", vaccines=vaccines)
    env.set_seed(0)
    batch = env.rollout(12)
    masks, actions = batch["action_mask"].bool(), batch["action"].reshape(12, *[vaccines] * (vaccines > 1))
    assert masks.gather(-1, actions[..., None]).all() and not masks.all()
