"""Rollouts of several learners at once, in one environment and with stacked networks.

Small learners spend most of a rollout on Python's work for each step, which is the same for one row of the environment
as for a hundred. `Together` plays the lanes of all learners as one batch. Each learner's random numbers, episodes and
measures are its own, and it is updated by itself, so it learns what it would have learned alone, up to rounding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from fair_envs.baselines.ppo.fast import Networks, acting
from fair_envs.baselines.ppo.gradients import ACTIVATE, FUSED_ROWS, Layer
from fair_envs.baselines.ppo.ppo import PPO, check_finite
from fair_envs.baselines.ppo.tracking import cut_off
from fair_envs.faces.sb3 import LanesVecEnv, VecEnvStepReturn


class StackedNetworks:
    """The actors and critics of several policies; each has an equal share of the rows, one after the other.

    Args:
        policies: Policies with networks of the same sizes, for which `Networks.suits` is true.
        generators: A source of random numbers for each policy.
    """

    def __init__(self, policies: Sequence[Any], generators: Sequence[th.Generator]) -> None:
        self._networks, self._generators = [Networks(policy) for policy in policies], generators
        single = [networks.single.chains for networks in self._networks if networks.single is not None]
        of_kind = zip(*single, strict=True)  # shared layers, actors and critics
        self._chains = [[_stacked(layers) for layers in zip(*chains, strict=True)] for chains in of_kind]

    def forward(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the logits (n, A) and values (n, 1)."""
        count = len(self._networks)
        if not self._chains or len(observations) >= count * FUSED_ROWS:
            found = [own.forward(rows) for own, rows in zip(self._networks, observations.chunk(count), strict=True)]
            return th.cat([logits for logits, _ in found]), th.cat([values for _, values in found])
        trunk, actor, critic = self._chains
        rows = observations.float().flatten(start_dim=1)
        shared = _through(trunk, rows.view(count, -1, rows.shape[1]))
        return _through(actor, shared).flatten(0, 1), _through(critic, shared).flatten(0, 1)

    def sample(self, logits: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return random actions (n, K) and their log-probabilities (n,), given the logits of the last observations."""
        parts = zip(self._networks, logits.chunk(len(self._networks)), self._generators, strict=True)
        found = [own.sample(rows, generator) for own, rows, generator in parts]
        return th.cat([actions for actions, _ in found]), th.cat([log_prob for _, log_prob in found])


def _stacked(layers: Sequence[Layer]) -> tuple[th.Tensor, th.Tensor, Any]:
    """Return the weights (N, inputs, outputs), biases (N, 1, outputs) and activation of a layer of N networks."""
    weights = th.stack([layer.weight.t() for layer in layers])
    return weights, th.stack([layer.bias for layer in layers]).unsqueeze(1), layers[0].activation


def _through(chain: Sequence[tuple[th.Tensor, th.Tensor, Any]], rows: th.Tensor) -> th.Tensor:
    for weights, biases, activation in chain:
        rows = ACTIVATE[activation](th.baddbmm(biases, rows, weights))
    return rows


class WithoutTimeLimits(VecEnvWrapper):
    """Hides that time limits ended episodes, and keeps their last observations.

    The learner that collects has no values for them: they belong to several learners.

    Attributes:
        ends: Last observations, by step and row.
    """

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.ends: dict[tuple[int, int], NDArray[Any]] = {}
        self._step = 0

    def reset(self) -> Any:
        """Begin episodes in all rows and return their observations."""
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Play one step of every row."""
        observations, rewards, done, infos = self.venv.step_wait()
        if done.any():
            cut = cut_off(infos)
            self.ends |= {(self._step, row): seen for row, seen in cut.items()}
            infos = [{} if row in cut else info for row, info in enumerate(infos)]
        self._step += 1
        return observations, rewards, done, infos


class Together:
    """Collects rollouts for several learners of the same kind at once.

    Args:
        learners: Learners with the same number of steps so far, on equal environments of `fair_envs.make_sb3`.
        collector: A further learner of the same kind on such an environment, with the lanes of all learners. It plays,
            and is not updated.
        callback: Follows the steps that the collector plays.
    """

    def __init__(self, learners: Sequence[PPO], collector: PPO, callback: BaseCallback) -> None:
        self._learners, self._collector, self._callback = learners, collector, callback
        collector.for_others = True
        collector.set_logger(Logger(None, []))
        collector._setup_learn(1, callback)
        callback.init_callback(collector)

    def collect(self, generators: Sequence[th.Generator]) -> None:
        """Play a rollout of all learners, and give each its share.

        Args:
            generators: Sources of each learner's random numbers.
        """
        collector, learners = self._collector, self._learners
        for learner in learners:
            try:
                check_finite(learner.policy)
            except ValueError as error:
                raise ValueError(f"{error} (seed {learner.seed})") from error
        collector.join(learners)
        hidden: list[WithoutTimeLimits] = []

        def outermost(env: VecEnv) -> VecEnv:
            hidden.append(WithoutTimeLimits(env))
            return hidden[0]

        stack = StackedNetworks([learner.policy for learner in learners], generators)
        with acting(collector.policy, stack):
            collector.play(_env(collector), self._callback, outermost=outermost)
        collector.split(learners)
        self._estimate(hidden[0].ends)

    def _estimate(self, ends: dict[tuple[int, int], NDArray[Any]]) -> None:
        """Let each learner's critic value what comes after its rollout, and after time limits."""
        rows = self._learners[0].n_envs
        for (step, row), seen in ends.items():
            learner = self._learners[row // rows]
            with th.no_grad():
                value = learner.policy.predict_values(learner.policy.obs_to_tensor(seen)[0]).item()  # type: ignore[operator]
            learner.rollout_buffer.rewards[step, row % rows] += learner.gamma * value
        for learner in self._learners:
            with th.no_grad():
                last = learner.policy.predict_values(learner.policy.obs_to_tensor(learner._last_obs)[0])  # type: ignore[arg-type, operator]
            ended = np.asarray(learner._last_episode_starts)
            learner.rollout_buffer.compute_returns_and_advantage(last_values=last, dones=ended)


def _env(learner: PPO) -> VecEnv:
    assert learner.env is not None
    return learner.env


def why_alone(learner: PPO) -> str:
    """Return why a learner cannot learn together with others, or ""."""
    env = _env(learner)
    if not isinstance(learner, PPO):
        return "has a learner of another kind"
    if not isinstance(env, LanesVecEnv) or getattr(env, "worlds", 1) > 1:
        return "needs an environment of this package in one world, without wrappers"
    if not Networks.suits(learner.policy):
        return "needs perceptrons"
    if getattr(learner, "massager", None) is not None:
        return "massages actions"
    return ""
