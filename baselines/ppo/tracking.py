"""Follows fairness measures while a Stable-Baselines3 learner plays: step by step, or a whole rollout afterwards."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.ppo.ppo import lanes_env_of
from fair_envs.core.interactions import PREFIX, Columns
from fair_envs.faces.sb3 import VecEnvStepReturn, VecEnvWrapper
from fair_envs.metrics.measures import Measure, MeasureOf, Replay, check_without_probs
from fair_envs.support.aliases import Flags


def cut_off(infos: Sequence[Mapping[str, Any]]) -> dict[int, NDArray[Any]]:
    """Return the last observation of each row whose episode ended because of a time limit, from the rows' infos."""
    return {row: info["terminal_observation"] for row, info in enumerate(infos) if info.get("TimeLimit.truncated")}


class Following(VecEnvWrapper):
    """Wrapper with measures that follow an environment; subclasses define when they are updated.

    The environment is from this package, or its infos contain the record (`fair_envs.core.interactions.record`).

    Args:
        venv: The environment. Its rows are lanes, or the agents of lanes.
        measures: A factory for each measure.

    Attributes:
        measures: The measures, each with one number per lane.
        agents: Number of rows of each lane.
        starts_next: Mask of the lanes whose next step is the first of an episode, shape (lanes,).
        infos: The rows' infos of the last step.
    """

    def __init__(self, venv: VecEnv, measures: Sequence[MeasureOf]) -> None:
        super().__init__(venv)
        self._source = lanes_env_of(venv)
        self.agents = 1 if self._source is None else venv.num_envs // self._source.lanes.count
        lanes = venv.num_envs // self.agents
        self.measures = tuple(measure_of(lanes) for measure_of in measures)
        for measure in self.measures:
            check_without_probs(measure, "measure")
        self.starts_next = np.ones(lanes, bool)
        self.infos: Sequence[Mapping[str, Any]] = ()

    def reset(self) -> Any:
        """Begin episodes in all rows and return their observations."""
        self.set_episode_starts(np.ones(self.num_envs, bool))
        return self.venv.reset()

    def set_episode_starts(self, starts_next: Flags) -> None:
        """Set which rows' next step is the first of an episode, shape (rows,)."""
        self.starts_next = starts_next[:: self.agents].astype(bool)

    def step_wait(self) -> VecEnvStepReturn:
        """Play one step of every row and follow it."""
        played = self.venv.step_wait()
        _, reward, done, self.infos = played
        self.starts_next = done[:: self.agents].astype(bool)
        earned = reward.copy()  # learners add to the rewards in place
        own = earned if self._source is None else self._source.agent_reward
        self._follow(own.reshape(len(self.starts_next), -1), earned)
        return played

    def of_rows(self, lanes: NDArray[Any]) -> NDArray[Any]:
        """Return values of lanes, shape (..., lanes), for each of their rows, shape (..., rows)."""
        return lanes if self.agents == 1 else np.repeat(lanes, self.agents, axis=-1)

    def cut_off(self) -> dict[int, NDArray[Any]]:
        """Return the last observation of each row whose episode ended with the last step because of a time limit."""
        return cut_off(self.infos) if self.starts_next.any() else {}

    def _follow(self, reward: NDArray[Any], of_rows: NDArray[Any]) -> None:
        """Take a step, given the agents' own rewards, shape (lanes, agents), and those of the rows, shape (rows,)."""
        raise NotImplementedError

    def _reported(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the record in the infos, with the lane as first axis."""
        names = [name for name in self.infos[0] if name.startswith(PREFIX)]
        if not names:
            raise ValueError("env must return fair_envs.core.interactions.record in its infos, got none of its columns")
        return {name: np.stack([info[name] for info in self.infos]) for name in names}


class TrackMeasures(Following):
    """Updates measures while an environment is played.

    The record of a step is processed before the environment starts the next episode. If the step ended an episode,
    `measures` describe that episode until the next step. See `Following` for the arguments.
    """

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the rows' actions."""
        self._begin_episodes()
        self.venv.step_async(actions)

    def _begin_episodes(self) -> None:
        """Reset the measures of lanes whose episodes have ended."""
        if np.count_nonzero(self.starts_next):
            for measure in self.measures:
                measure.restart(self.starts_next)

    def _follow(self, reward: NDArray[Any], of_rows: NDArray[Any]) -> None:
        source = self._source
        info: Mapping[str, NDArray[Any]] = (
            self._reported() if source is None else Columns(source.fair_spec, source.interactions, source.action_probs)
        )
        for measure in self.measures:
            measure.update(info, reward, ended=self.starts_next)


class RecordSteps(Following):
    """Records the steps of a rollout, which measures follow together afterwards.

    The values are those of `TrackMeasures`. They cost less time, but are known only after the rollout. Steps are copied
    into memory that is used again: new arrays for each step would slow down everything else, which then finds less of
    its own memory in the processor's cache. See `Following` for the arguments.

    Attributes:
        rewards: The rows' rewards in the steps of the last replay, shape (T, rows).
    """

    rewards: NDArray[Any]

    def __init__(self, venv: VecEnv, measures: Sequence[MeasureOf]) -> None:
        super().__init__(venv, measures)
        self._kept: dict[str, NDArray[Any]] = {}
        self._room = 0  # steps that fit
        self._steps = 0
        self._forget()

    def set_episode_starts(self, starts_next: Flags) -> None:
        """Forget the recorded steps, and set which rows' next step is the first of an episode, shape (rows,)."""
        super().set_episode_starts(starts_next)
        self._forget()

    def replay(self) -> list[Replay]:
        """Let each measure follow the recorded steps; return what it says about them, and forget the steps.

        The results may be views of the recorded steps, so they are valid until the next step.
        """
        kept, steps = self._kept, self._steps
        first = np.concatenate([self._start[np.newaxis], kept["ended"][: steps - 1]])
        ended, reward, info = kept["ended"][:steps], kept["reward"][:steps], self._columns()
        found = [measure.replay(info, reward, first=first, ended=ended) for measure in self.measures]
        self.rewards = kept["of_rows"][:steps].copy()
        self._forget()
        return found

    def take(self, joint: "RecordSteps", rows: slice) -> None:
        """Take the steps that another recorder has recorded of some of its rows, without action probabilities."""
        lanes = slice(rows.start // self.agents, rows.stop // self.agents)
        self.set_episode_starts(np.repeat(joint._start[lanes], self.agents))
        assert joint._source is not None
        size = joint._source.interactions.dtype.itemsize
        parts = {"record": slice(lanes.start * size, lanes.stop * size), "of_rows": rows}
        steps = joint._steps
        self._kept = {name: kept[:steps, parts.get(name, lanes)] for name, kept in joint._kept.items()}
        self._kept["record"] = np.ascontiguousarray(self._kept["record"])
        self._steps = self._room = steps
        self.starts_next = joint.starts_next[lanes].copy()

    def _forget(self) -> None:
        self._start, self._steps = self.starts_next, 0
        self._reports: list[dict[str, NDArray[Any]]] = []  # columns in infos
        self._probs: dict[int, NDArray[Any]] = {}  # by step

    def _follow(self, reward: NDArray[Any], of_rows: NDArray[Any]) -> None:
        source, values = self._source, {"ended": self.starts_next, "reward": reward, "of_rows": of_rows}
        if source is None:
            self._reports.append(self._reported())
        else:
            values["record"] = source.interactions.view(np.uint8)  # bytes are copied faster than records
            if source.action_probs is not None:
                self._probs[self._steps] = source.action_probs
        if self._steps >= self._room:
            self._grow(values)
        for name, own in values.items():
            self._kept[name][self._steps] = own
        self._steps += 1

    def _grow(self, like: Mapping[str, NDArray[Any]]) -> None:
        """Make room for more steps with these arrays; all steps of an environment have the same shapes."""
        self._room = 2 * self._steps + 64
        for name, values in like.items():
            larger = np.zeros((self._room, *values.shape), values.dtype)
            larger[: self._steps] = self._kept.get(name, larger)[: self._steps]
            self._kept[name] = larger

    def _columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns of all recorded steps, shape (T, lanes, ...)."""
        source, steps = self._source, self._steps
        if source is None:
            return {name: np.stack([step[name] for step in self._reports]) for name in self._reports[0]}
        probs, given = None, list(self._probs.values())
        if given:
            probs = np.zeros((steps, *given[0].shape), given[0].dtype)
            probs[list(self._probs)] = given
        facts = source.interactions
        return Columns(source.fair_spec, self._kept["record"][:steps].view(facts.dtype).reshape(steps, -1), probs)


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
