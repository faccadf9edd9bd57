"""Learners that optimise only the performance on decision environments, as a comparison for fairness objectives.

The learners are Stable-Baselines3's. Their performance is a lower bound of the best possible performance, even where a
study calls it the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import stable_baselines3 as sb3
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import MaybeCallback
from torch import nn

from fair_envs.baselines.settings import MethodSettings
from fair_envs.baselines.training import Progress, callbacks_of, isolated_random_state
from fair_envs.evaluation import DecisionMaker
from fair_envs.registration import make_sb3
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import NonNegativeInt, Positive, PositiveInt, Range, UnitInterval
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import LANES_EACH, SINGLE_SEEDS

Algorithm = Literal["dqn", "ppo"]


@dataclass(frozen=True, kw_only=True)
class SingleTraining(MethodSettings):
    """Settings of a training on the performance. F in the comments marks FAReL's DQN, see `farel_dqn`.

    Raises:
        ValueError: A value is outside its range.
    """

    algorithm: Algorithm = "dqn"
    steps: PositiveInt = 100_000  # environment steps of all lanes
    lanes: PositiveInt = 8
    learning_rate: Positive = 1e-3  # F
    gamma: UnitInterval = 0.99  # F
    batch_size: Annotated[int, Range(2)] = 256  # F
    net_arch: Sequence[PositiveInt] = (64, 64)  # F: 64
    # DQN
    buffer_size: PositiveInt = 100_000  # F: 100 times the horizon
    learning_starts: NonNegativeInt = 1000  # random steps; F: 50 episodes
    train_freq: PositiveInt = 4  # steps of each lane between updates, or episodes; F: 10 episodes
    train_unit: Literal["step", "episode"] = "step"  # episodes need one lane; F
    gradient_steps: PositiveInt = 8  # each time; F: 20
    target_interval: PositiveInt = 1000  # steps between copies to the target network; F has none, which is 1
    epsilon: UnitInterval = 0.05  # final probability of a random action; F
    epsilon_start: UnitInterval = 1.0  # initial probability of a random action; F: 0.1
    bootstrap_truncated: bool = True  # whether to bootstrap when the horizon truncates an episode; F does not
    # PPO
    n_steps: PositiveInt = 256  # of each lane in a rollout
    # The machine
    seed: Annotated[int, Range(0, 2**20 - 1)] = 0
    threads: PositiveInt = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if self.train_unit == "episode" and self.lanes != 1:
            raise ValueError(f"lanes must be 1 to update after episodes, got {self.lanes}")


def farel_dqn(env_id: str, *, horizon: int, target_network: bool = True, **given: Any) -> SingleTraining:
    """Return FAReL's DQN (Cimpean et al. 2025): one layer, a constant epsilon, 20 updates after every 10 episodes.

    Stable-Baselines3 uses the Huber loss, FAReL squared errors; they agree on errors below 1.

    Args:
        env_id: Id of the environment.
        horizon: Length of its episodes; sizes are multiples of it.
        target_network: Whether to use a target network; FAReL has none.
        given: Other fields of `SingleTraining`.
    """
    settings: dict[str, Any] = {
        "lanes": 1,
        "net_arch": (64,),
        "buffer_size": 100 * horizon,
        "learning_starts": 50 * horizon,
        "train_freq": 10,
        "train_unit": "episode",
        "gradient_steps": 20,
        "target_interval": SingleTraining.target_interval if target_network else 1,
        "epsilon": 0.1,
        "epsilon_start": 0.1,
        "bootstrap_truncated": False,
        "steps": 500_000,
    }
    return SingleTraining(env_id=env_id, **{**settings, **given})


def make_single(config: SingleTraining) -> BaseAlgorithm:
    """Return the untrained model, a `stable_baselines3.DQN` or ``PPO`` with one row for each lane."""
    first = SINGLE_SEEDS + LANES_EACH * config.seed
    env = make_sb3(
        config.env_id,
        n_envs=config.lanes,
        rows="lanes",
        seed=first,
        threads=config.threads,
        infos="ends",
        **config.parameters,
    )
    shared: dict[str, Any] = {
        "learning_rate": config.learning_rate,
        "gamma": config.gamma,
        "batch_size": config.batch_size,
        "policy_kwargs": {"net_arch": list(config.net_arch), "activation_fn": nn.ReLU},
        "seed": config.seed,
        "device": "cpu",
    }
    model: BaseAlgorithm
    if config.algorithm == "ppo":
        model = sb3.PPO("MlpPolicy", env, n_steps=config.n_steps, **shared)
    else:
        model = sb3.DQN(
            "MlpPolicy",
            env,
            buffer_size=config.buffer_size,
            learning_starts=config.learning_starts,
            train_freq=(config.train_freq, config.train_unit),
            gradient_steps=config.gradient_steps,
            target_update_interval=config.target_interval,
            exploration_initial_eps=config.epsilon_start,
            exploration_final_eps=config.epsilon,
            replay_buffer_kwargs={"handle_timeout_termination": config.bootstrap_truncated},
            **shared,
        )
    env.seed(first)  # replaces the seed set by the model
    return model


def train_single(config: SingleTraining, *, progress: bool = False, callback: MaybeCallback = None) -> BaseAlgorithm:
    """Train and return the model; equal settings give equal networks on one machine."""
    with isolated_random_state(config.threads):
        model = make_single(config)
        with progress_bar(config.algorithm, total=config.steps, unit="steps", shown=progress) as advance:
            model.learn(config.steps, callback=[Progress(advance, left=config.steps), *callbacks_of(callback)])
    return model


class LearnedPolicy(DecisionMaker):
    """The policy of a Stable-Baselines3 model: DQN's best action, or an actor's probabilities.

    Args:
        model: A model with discrete actions on rows of lanes.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def decide(self, observation: NDArray[Any]) -> Floats:
        """Return the probabilities of the actions, shape (B, actions)."""
        policy = self.model.policy
        if isinstance(policy, ActorCriticPolicy):
            with th.no_grad():
                found: Any = policy.get_distribution(policy.obs_to_tensor(observation)[0]).distribution
            probabilities: Floats = found.probs.double().numpy()
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            return probabilities
        action, _ = self.model.predict(observation, deterministic=True)
        certain: Floats = np.eye(int(self.model.action_space.n))[action]
        return certain
