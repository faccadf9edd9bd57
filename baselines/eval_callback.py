"""Evaluations in the course of a training, beside its metrics."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback

from fair_envs.baselines.training import callbacks_of, isolated_random_state
from fair_envs.core import Rules, check_seeds
from fair_envs.evaluation import LanesWorld, Policy, VectorWorld, World, begun, rollout
from fair_envs.support.seeds import EVALUATION_SEEDS
from fair_envs.tasks import rules_for

RETURN, LENGTH = "eval/mean_reward", "eval/mean_ep_length"  # the names of Stable-Baselines3


class EvalCallback(BaseCallback):
    """Plays episodes now and then with the present policy, and logs their mean return and length.

    The episodes are the same each time, and others than those of trainings and tests. The training is not influenced:
    with and without evaluations it ends with the same networks.

    Args:
        settings: The training's settings, with ``eval_freq``, ``eval_episodes`` and ``threads``.
        policy: ``policy(model, settings, rules)`` returns the present policy.
    """

    def __init__(self, settings: Any, policy: Callable[[Any, Any, Any], Policy]) -> None:
        super().__init__()
        self._settings, self._policy = settings, policy
        self._rules = rules_for(settings.env_id, **settings.parameters)
        self._before = 0

    def _on_rollout_start(self) -> None:
        self._before = self.num_timesteps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        every = self._settings.eval_freq
        if self.num_timesteps // every > self._before // every:
            with isolated_random_state(self._settings.threads):
                self._evaluate()

    def _evaluate(self) -> None:
        policy = self._policy(self.model, self._settings, self._rules)
        world, agents = self._world(policy), self._rules.agents(self._rules.params)
        returns, steps = np.zeros((world.count, agents)), np.zeros(world.count)
        for step in rollout(world, policy):
            returns += np.where(step.active[:, np.newaxis], step.reward, 0)
            steps += step.active
        self.logger.record(RETURN, float(returns.mean()))
        self.logger.record(LENGTH, float(steps.mean()))

    def _world(self, policy: Policy) -> World:
        """Return the environment with new episodes, the same each time."""
        episodes, rules = self._settings.eval_episodes, self._rules
        if isinstance(rules, Rules):
            return LanesWorld(begun(rules, check_seeds(EVALUATION_SEEDS, episodes)), append_group=policy.append_group)
        envs = gym.make_vec(self._settings.env_id, num_envs=episodes, **self._settings.parameters)
        return VectorWorld(envs, seed=EVALUATION_SEEDS)


Train = TypeVar("Train", bound=Callable[..., Any])


def with_evaluations(train: Train, policy: Callable[[Any, Any, Any], Policy]) -> Train:
    """Return a function that trains and, if the settings say so, evaluates in the course of the training."""

    @functools.wraps(train)
    def trained(settings: Any, *, callback: MaybeCallback = None, **given: Any) -> Any:
        if settings.eval_freq:
            callback = [EvalCallback(settings, policy), *callbacks_of(callback)]
        return train(settings, callback=callback, **given)

    return cast(Train, trained)
