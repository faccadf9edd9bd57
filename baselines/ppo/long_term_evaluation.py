"""Evaluates models trained for long-term fairness on whole episodes, without and with their action shield."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.ppo.long_term_training import LongTermTraining
from fair_envs.baselines.ppo.massaging import Massager, ShieldActions, massager_maker
from fair_envs.baselines.ppo.regularised import Regularised
from fair_envs.baselines.ppo.tracking import TrackMeasures
from fair_envs.baselines.tasks import task_for
from fair_envs.baselines.training import isolated_random_state
from fair_envs.evaluation import Policy, Transition, World, rollout
from fair_envs.metrics.intervals import Estimate, mean_interval
from fair_envs.registration import make_sb3
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.tasks import rules_for


@dataclass(frozen=True, kw_only=True, eq=False)
class LongTermEpisodes:
    """Results of whole episodes, arrays of shape (episodes,).

    Attributes:
        steps: Length of each episode.
        rewards: Return of each episode.
        short: Mean of the short-term measure over the steps for which it is defined; NaN if there are none.
        long: Mean of the long-term measure over the steps for which it is defined; NaN if there are none.
        last_long: The long-term measure after the last step.
        massaged: Share of steps whose action was altered.
    """

    steps: Ints
    rewards: Floats
    short: Floats
    long: Floats
    last_long: Floats
    massaged: Floats

    def estimates(self) -> dict[str, Estimate]:
        """Return the means, with 95 % intervals, over the episodes for which they are defined."""
        reported = {
            "reward": self.rewards,
            "short-term": self.short,
            "long-term": self.long,
            "long-term at the end": self.last_long,
            "massaged": self.massaged,
        }
        return {name: mean_interval(values, undefined="omit") for name, values in reported.items()}


class RowsWorld(World):
    """The rows of a Stable-Baselines3 environment, which resets its episodes automatically.

    Args:
        env: The environment, which is reset.
    """

    def __init__(self, env: VecEnv) -> None:
        self.env, self.count = env, env.num_envs
        self.observation: NDArray[Any] = env.reset()[:, np.newaxis]  # type: ignore[call-overload, index]

    def uniforms(self) -> Floats:
        """Return placeholders: Stable-Baselines3's models sample actions themselves."""
        return np.zeros((self.count, 1))

    def step(self, action: NDArray[Any], active: Flags, episode: Ints) -> Transition:
        """Play one step of all rows."""
        before = self.observation
        observation, reward, done, _ = self.env.step(action[:, 0])
        self.observation = observation[:, np.newaxis]  # type: ignore[call-overload, index]
        return Transition(
            observation=before,
            action=action,
            reward=np.asarray(reward, np.float64)[:, np.newaxis],
            active=active,
            ended=active & done.astype(bool),
            episode=episode,
        )


class Predicting(Policy):
    """Takes the actions that a Stable-Baselines3 model predicts for each row."""

    def __init__(self, model: Any, *, deterministic: bool) -> None:
        self._model, self._deterministic = model, deterministic

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the model's actions, shape (rows, 1, ...)."""
        actions: NDArray[Any] = self._model.predict(observation[:, 0], deterministic=self._deterministic)[0]
        return actions[:, np.newaxis]


def shielded(model: Regularised, env: VecEnv, *, massager: Massager | None = None) -> ShieldActions:
    """Return an environment wrapped in a model's action shield, with the threshold of its last rollout.

    Args:
        model: The trained model.
        env: The environment.
        massager: A massager made for that environment; None: the model's own.

    Raises:
        ValueError: The model has no massager.
    """
    own = massager or model.massager
    if own is None or model.short is None:
        raise ValueError("model must have a massager, got none")
    other_measures = () if model.long is None else (model.long,)
    shield = ShieldActions(
        env, own, model.policy, short=model.short, threshold=model.massaging_schedule, other_measures=other_measures
    )
    shield.rollout = max(0, model.rollouts - 1)
    return shield


def play_long_term(
    model: Regularised,
    env: VecEnv,
    *,
    shield: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    massager: Massager | None = None,
) -> LongTermEpisodes:
    """Play the first episode of every row of an environment.

    Args:
        model: The trained model, whose policy chooses the actions.
        env: An already seeded environment as in training, with a row for each episode.
        shield: Whether actions are massaged as in the last rollout of the training.
        deterministic: Whether the most probable action is taken instead of a sampled one.
        seed: Seed for sampling actions.
        massager: A massager made for that environment; None: the model's own.

    Raises:
        ValueError: ``shield`` is True and there is no massager.
    """
    makers = [maker for maker in (model.short, model.long) if maker is not None]
    tracked_env = shielded(model, env, massager=massager) if shield else TrackMeasures(env, makers)
    with isolated_random_state(th.get_num_threads()):
        th.manual_seed(seed)
        return _played(model, tracked_env, deterministic=deterministic)


def _played(model: Regularised, env: TrackMeasures, *, deterministic: bool) -> LongTermEpisodes:
    rows = env.num_envs
    steps, rewards, massaged = np.zeros(rows, np.int64), np.zeros(rows), np.zeros(rows)
    sums, counts, last = np.zeros((2, rows)), np.zeros((2, rows)), np.full((2, rows), np.nan)
    for step in rollout(RowsWorld(env), Predicting(model, deterministic=deterministic)):
        steps += step.active
        rewards += np.where(step.active, step.reward[:, 0], 0)
        if isinstance(env, ShieldActions):
            massaged += step.active & env.altered
        for k, measure in enumerate(env.measures):
            value = env.of_rows(measure.value)
            known = step.active & ~np.isnan(value)
            sums[k, known] += value[known]
            counts[k] += known
            last[k, step.active] = value[step.active]
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return LongTermEpisodes(
        steps=steps, rewards=rewards, short=means[0], long=means[1], last_long=last[1], massaged=massaged / steps
    )


def evaluate_long_term(
    model: Any, config: LongTermTraining, *, episodes: int, seed: int, parameters: Mapping[str, Any] | None = None
) -> dict[str, LongTermEpisodes]:
    """Return test episodes of a trained policy without its shield and, if it has a massager, with its shield.

    Both use the same random numbers of the environment.

    Args:
        model: The trained model.
        config: Settings of the training.
        episodes: Number of episodes.
        seed: Seed of the first episode.
        parameters: Parameters of the environment; None: those of the training.
    """
    given = config.parameters if parameters is None else parameters
    make, found = massager_maker(task_for(config.env_id, config.signals), rules_for(config.env_id, **given)), {}
    for name in ("unshielded", "shielded")[: 1 if model.massager is None else 2]:
        env: Any = make_sb3(config.env_id, n_envs=episodes, rows="lanes", seed=seed, threads=config.threads, **given)
        own = None if make is None else make(env)  # a massager may read its environment
        found[name] = play_long_term(model, env, shield=name == "shielded", seed=seed, massager=own)
    return found
