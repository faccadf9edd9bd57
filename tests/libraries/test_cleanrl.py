"""Every id in a PPO that is one file, as CleanRL's: its loop over a batch of `gymnasium.vector`, without a library."""

from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("tyro")  # CleanRL's scripts read their options with it; it is not in this project's environment

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal

import fair_envs  # noqa: F401 - registers the ids
from tests.libraries.ids import check_record, every_single

torch.set_num_threads(1)


@dataclass
class Args:
    """The options, with CleanRL's names."""

    env_id: str = "FairHiring-v0"
    seed: int = 1
    total_timesteps: int = 100_000
    num_envs: int = 4
    num_steps: int = 128
    learning_rate: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5


def make_env(env_id: str) -> gym.Env[Any, Any]:
    """Return an environment with CleanRL's wrappers."""
    env: gym.Env[Any, Any] = gym.wrappers.RecordEpisodeStatistics(gym.make(env_id))
    return gym.wrappers.ClipAction(env) if isinstance(env.action_space, gym.spaces.Box) else env


class Agent(nn.Module):
    """A policy for one choice, several choices or numbers, and a value function."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__()
        self.space, seen = envs.single_action_space, int(np.prod(envs.single_observation_space.shape))
        if isinstance(self.space, gym.spaces.Discrete):
            outputs = int(self.space.n)
        elif isinstance(self.space, gym.spaces.MultiDiscrete):
            outputs = int(self.space.nvec.sum())
        else:
            outputs = int(np.prod(self.space.shape))
            self.actor_logstd = nn.Parameter(torch.zeros(outputs))
        self.actor = nn.Sequential(nn.Linear(seen, 64), nn.Tanh(), nn.Linear(64, outputs))
        self.critic = nn.Sequential(nn.Linear(seen, 64), nn.Tanh(), nn.Linear(64, 1))

    def distribution(self, x: Tensor) -> torch.distributions.Distribution:
        """Return the distribution of actions."""
        out = self.actor(x)
        if isinstance(self.space, gym.spaces.Discrete):
            return Categorical(logits=out)
        if isinstance(self.space, gym.spaces.MultiDiscrete):  # each choice has as many options
            return Independent(Categorical(logits=out.unflatten(-1, (len(self.space.nvec), -1))), 1)
        return Independent(Normal(out, self.actor_logstd.exp()), 1)


def advantages_of(rewards: Tensor, values: Tensor, dones: Tensor, last_value: Tensor, args: Args) -> Tensor:
    """Return the advantages by GAE, all of shape (steps, envs); dones[t] is whether step t ended an episode."""
    advantages, last = torch.zeros_like(rewards), torch.zeros_like(last_value)
    following = torch.cat([values[1:], last_value[np.newaxis]])
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + args.gamma * following[t] * (1 - dones[t]) - values[t]
        advantages[t] = last = delta + args.gamma * args.gae_lambda * (1 - dones[t]) * last
    return advantages


def train(args: Args) -> tuple[Agent, list[dict[str, Any]]]:
    """Train with PPO; return the agent and the infos of the last batch's steps, which contain the record."""
    torch.manual_seed(args.seed)
    envs = gym.vector.SyncVectorEnv(
        [lambda: make_env(args.env_id)] * args.num_envs, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP
    )  # gym.make_vec(args.env_id, args.num_envs) is faster
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    seen = torch.as_tensor(envs.reset(seed=args.seed)[0])
    for _ in range(args.total_timesteps // (args.num_envs * args.num_steps)):
        steps, infos = [], []
        for _ in range(args.num_steps):
            with torch.no_grad():
                chosen = agent.distribution(seen)
                action = chosen.sample()
                log_prob, value = chosen.log_prob(action), agent.critic(seen).flatten()
            after, reward, terminations, truncations, info = envs.step(action.numpy())
            done = torch.as_tensor(terminations | truncations).float()
            steps.append((seen, action, log_prob, value, torch.as_tensor(reward).float(), done))
            infos.append(info)
            seen = torch.as_tensor(after)
        observations, actions, log_probs, values, rewards, dones = map(torch.stack, zip(*steps, strict=True))
        with torch.no_grad():
            advantages = advantages_of(rewards, values, dones, agent.critic(seen).flatten(), args)
        for _ in range(args.update_epochs):
            chosen = agent.distribution(observations)
            ratio = (chosen.log_prob(actions) - log_probs).exp()
            scaled = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
            policy_loss = -torch.minimum(scaled * ratio, scaled * clipped).mean()
            value_loss = 0.5 * (agent.critic(observations).squeeze(-1) - (advantages + values)).square().mean()
            loss = policy_loss + args.vf_coef * value_loss - args.ent_coef * chosen.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    envs.close()
    return agent, infos


def record_of(info: dict[str, Any], lane: int) -> dict[str, Any]:
    """Return a lane's record of a step. If the step ended an episode, ``info`` is about the start of the next one."""
    if "final_info" in info and info["_final_info"][lane]:
        info = info["final_info"]
    return {name: column[lane] for name, column in info.items() if name.startswith("fair_")}


@every_single
def test_an_id_trains_and_the_infos_have_the_record(env_id: str) -> None:
    agent, infos = train(Args(env_id=env_id, total_timesteps=128, num_envs=2, num_steps=32))
    assert all(torch.isfinite(weights).all() for weights in agent.parameters())
    rows = [record_of(info, lane=0) for info in infos]
    check_record(env_id, {name: [row[name] for row in rows] for name in rows[0]})


def test_a_final_info_has_the_record_of_the_last_decision() -> None:
    args = Args(env_id="FairEpidemic-v0", total_timesteps=50, num_envs=2, num_steps=25)  # episodes have 20 steps
    _, infos = train(args)
    (ended,) = [info for info in infos if "final_info" in info]
    assert ended["final_info"]["fair_decided"].tolist() == [1, 1]
    assert ended["fair_decided"].tolist() == [0, 0]  # of the restart
    assert "r" in ended["final_info"]["episode"]


if __name__ == "__main__":
    import tyro

    train(tyro.cli(Args))
