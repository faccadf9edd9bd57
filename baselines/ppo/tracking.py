"""Tracks fairness measures step by step while a Stable-Baselines3 learner plays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.ppo.ppo import lanes_env_of
from fair_envs.core.interactions import PREFIX, Columns
from fair_envs.faces.sb3 import VecEnvStepReturn, VecEnvWrapper
from fair_envs.metrics.measures import Measure, MeasureOf
from fair_envs.support.aliases import Flags


class TrackMeasures(VecEnvWrapper):
    """Updates measures while an environment is played.

    The record of a step is processed before the environment starts the next episode. If the step ended an episode,
    `measures` describe that episode until the next step. The environment is from this package, or its infos contain
    the record (`fair_envs.core.interactions.record`).

    Args:
        venv: The environment. Its rows are lanes, or the agents of lanes.
        measures: A factory for each measure.

    Attributes:
        measures: The measures, each with one number per lane.
        starts_next: Mask of the lanes whose next step is the first of an episode, shape (lanes,).
        infos: The rows' infos of the last step.
    """

    def __init__(self, venv: VecEnv, measures: Sequence[MeasureOf]) -> None:
        super().__init__(venv)
        self._source = lanes_env_of(venv)
        self._rows_per_lane = 1 if self._source is None else venv.num_envs // self._source.lanes.count
        lanes = venv.num_envs // self._rows_per_lane
        self.measures = tuple(measure_of(lanes) for measure_of in measures)
        self.starts_next = np.ones(lanes, bool)
        self.infos: Sequence[Mapping[str, Any]] = ()

    def reset(self) -> Any:
        """Begin episodes in all rows and return their observations."""
        self.starts_next[:] = True
        return self.venv.reset()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the rows' actions."""
        self._begin_episodes()
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Play one step of every row and update the measures."""
        played = self.venv.step_wait()
        _, reward, done, self.infos = played
        facts, own = self._facts(self.infos), reward if self._source is None else self._source.agent_reward
        self.starts_next = done[:: self._rows_per_lane].astype(bool)
        for measure in self.measures:
            measure.update(facts, own, ended=self.starts_next)
        return played

    def repeat_for_rows(self, lanes: NDArray[Any]) -> NDArray[Any]:
        """Return values of each lane repeated for each of its rows, shape (rows,)."""
        return lanes if self._rows_per_lane == 1 else np.repeat(lanes, self._rows_per_lane)

    def set_episode_starts(self, starts_next: Flags) -> None:
        """Set which rows' next step is the first of an episode, shape (rows,)."""
        self.starts_next = starts_next[:: self._rows_per_lane].astype(bool)

    def _begin_episodes(self) -> None:
        """Reset the measures of lanes whose episodes have ended."""
        if np.count_nonzero(self.starts_next):
            for measure in self.measures:
                measure.restart(self.starts_next)

    def _facts(self, infos: Sequence[Mapping[str, Any]]) -> Mapping[str, NDArray[Any]]:
        """Return the record of the last step as columns, with the lane as first axis."""
        if self._source is not None:
            return Columns(self._source.fair_spec, self._source.interactions, self._source.action_probs)
        names = [name for name in infos[0] if name.startswith(PREFIX)]
        if not names:
            raise ValueError("env must return fair_envs.core.interactions.record in its infos, got none of its columns")
        return {name: np.stack([info[name] for info in infos]) for name in names}


# -------------------------------------------------------------------------------------------------- snapshots


def snapshot(measures: Sequence[Measure]) -> list[th.Tensor]:
    """Return the state of measures as tensors, in a fixed order."""
    return [th.from_numpy(array) for measure in measures for array in measure.snapshot()]


def restore(measures: Sequence[Measure], state: Sequence[th.Tensor]) -> None:
    """Restore a snapshot in measures with the same arguments."""
    left = [tensor.numpy() for tensor in state]
    for measure in measures:
        count = len(measure.snapshot())
        measure.restore(left[:count])
        left = left[count:]
    if left:
        raise ValueError(f"state must have one array for each of the measures', got {len(left)} more")
