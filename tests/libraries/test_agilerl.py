"""Every id in AgileRL: a training with PPO and one with IPPO, and the record in a wrapper."""

from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("agilerl")

import gymnasium as gym
import numpy as np
import torch
from agilerl.algorithms import DDPG, DQN, IPPO, PPO, TD3
from agilerl.components.replay_buffer import ReplayBuffer
from agilerl.rollouts import collect_rollouts
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from agilerl.training.train_off_policy import train_off_policy
from pettingzoo.utils import BaseParallelWrapper

import fair_envs
from fair_envs.wrappers import ReportActionMasks
from tests.libraries.ids import check_record, every_id, every_single

torch.set_num_threads(1)
SMALL = {"encoder_config": {"hidden_size": [32]}}


class KeepRecord(gym.vector.VectorWrapper):
    """Keeps the info of each step, whose entries have an axis for the environments."""

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self.infos: list[dict[str, Any]] = []

    def step(self, actions: Any) -> Any:
        """Step the environments."""
        returned = self.env.step(actions)
        self.infos.append(returned[-1])
        return returned


def train(env_id: str, updates: int = 2) -> tuple[PPO, KeepRecord]:
    """Train with PPO; return the learner, and the environments with the record."""
    envs = KeepRecord(gym.make_vec(env_id, num_envs=2))
    spaces = envs.single_observation_space, envs.single_action_space
    ppo = PPO(*spaces, num_envs=2, learn_step=32, batch_size=16, net_config=SMALL)
    for _ in range(updates):
        collect_rollouts(ppo, envs)
        ppo.learn()
    return ppo, envs


class KeepActions(KeepRecord):
    """Keeps the actions, too."""

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self.actions: list[Any] = []

    def step(self, actions: Any) -> Any:
        """Step the environments."""
        self.actions.append(actions)
        return super().step(actions)


def weights_of(network: torch.nn.Module) -> list[torch.Tensor]:
    """Return a copy of a network's weights."""
    return [weights.detach().clone() for weights in network.parameters()]


def changed(before: list[torch.Tensor], after: list[torch.Tensor]) -> bool:
    """Return whether weights differ, after checking that they are finite."""
    assert all(torch.isfinite(weights).all() for weights in after)
    return any((old != new).any() for old, new in zip(before, after, strict=True))


@every_single
def test_an_id_trains_and_a_wrapper_reads_the_record(env_id: str) -> None:
    ppo, envs = train(env_id, updates=1)
    before = weights_of(ppo.actor)
    collect_rollouts(ppo, envs)
    ppo.learn()
    assert changed(before, weights_of(ppo.actor))
    rows = [info for info in envs.infos if info["fair_decided"][0]]  # not the steps that start an episode
    check_record(env_id, {name: [row[name][0] for row in rows] for name in rows[0] if name.startswith("fair_")})


def test_masked_actions_are_not_taken() -> None:
    envs = KeepActions(ReportActionMasks(gym.make_vec("FairEpidemic-v0", num_envs=2)))
    spaces = envs.single_observation_space, envs.single_action_space
    collect_rollouts(PPO(*spaces, num_envs=2, learn_step=64, batch_size=16, net_config=SMALL), envs)
    masks = [info["action_mask"] for info in envs.infos[:-1]]  # of the next step
    taken = [mask[[0, 1], action] for mask, action in zip(masks, envs.actions[1:], strict=True)]
    assert np.all(taken) and not np.all(masks)


class KeepAgentsRecord(BaseParallelWrapper):
    """Keeps the infos of each step, by the agents' names."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.infos: list[dict[str, Any]] = []

    def step(self, actions: Any) -> Any:
        """Step the environment."""
        returned = self.env.step(actions)
        self.infos.append(returned[-1])
        return returned


def of_agents(env_id: str, **parameters: Any) -> tuple[IPPO, KeepAgentsRecord]:
    """Return IPPO, whose agents share a policy, and the environment with the record."""
    env = KeepAgentsRecord(import_module(fair_envs.TABLE[env_id].module).parallel_env(**parameters))
    agents = env.possible_agents
    spaces = [env.observation_space(agent) for agent in agents], [env.action_space(agent) for agent in agents]
    return IPPO(*spaces, agent_ids=agents, learn_step=16, batch_size=16, net_config=SMALL), env


def train_agents(ippo: IPPO, env: KeepAgentsRecord, env_id: str, steps: int = 16) -> None:
    """Train with IPPO."""
    settings = {"max_steps": steps, "evo_steps": steps, "eval_steps": 1}
    train_multi_agent_on_policy(env, env_id, "IPPO", [ippo], sum_scores=True, verbose=False, **settings)


@every_id
def test_agents_train_and_each_has_its_record(env_id: str) -> None:
    ippo, env = of_agents(env_id, horizon=100)
    if env_id == "FairTraffic-v0":
        with pytest.raises(RuntimeError, match="nan"):  # the reward of a car that has left, which it learns from
            train_agents(ippo, env, env_id, steps=100)
        return
    before = weights_of(torch.nn.ModuleList(ippo.actors.values()))
    train_agents(ippo, env, env_id)
    assert changed(before, weights_of(torch.nn.ModuleList(ippo.actors.values())))
    rows = [info[env.possible_agents[0]] for info in env.infos]
    assert rows
    assert all(row["fair_decided"] == 1 for row in rows)


@pytest.mark.parametrize(
    ("env_id", "learner"), [("FairHiring-v0", DQN), ("FairPursuit-v0", DDPG), ("FairCollege-v0", TD3)]
)
def test_an_id_trains_off_policy(env_id: str, learner: Any) -> None:
    envs = gym.make_vec(env_id, num_envs=2)
    spaces = envs.single_observation_space, envs.single_action_space
    agent = learner(*spaces, batch_size=16, learn_step=2, net_config=SMALL)
    before = weights_of(agent.actor)
    settings = {"max_steps": 64, "evo_steps": 64, "eval_steps": 1, "verbose": False}
    train_off_policy(envs, env_id, learner.__name__, [agent], ReplayBuffer(max_size=200), **settings)
    assert changed(before, weights_of(agent.actor))
