"""Curricula of FairPursuit: schedules of the pursuers' speed in training, and the policies kept at each level."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.runs import batch, read_weights, serialized
from fair_envs.baselines.team.ddpg import DDPG
from fair_envs.baselines.team.play import SetSpeed, Speed, check_team
from fair_envs.core import Lanes
from fair_envs.support.files import replace_file
from fair_envs.support.parameters import PositiveInt, checked

LEVEL = 0.1  # difference between successive speeds at which policies are tested
LATE = 2**62  # an episode after the end of every curriculum


class Curriculum(Protocol):
    """Schedule of the pursuers' speed."""

    def speed(self, episode: int, share: float) -> float:
        """Return the speed in an episode (counted from 0) when a given share of the training steps is done."""


@dataclass(frozen=True)
class Linear:
    """A speed that decreases linearly, as in the paper's code.

    Args:
        start: Initial speed; the paper uses 1.2.
        end: Final speed; the paper uses 0.4.
        episodes: Number of episodes of the decrease, counted over all lanes; the paper's code uses 15,000 of 125,000.
            None: all steps.
    """

    start: float = 1.2
    end: float = 0.4
    episodes: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("start", "end"):
            checked(name, getattr(self, name), Speed)
        if self.end > self.start:
            raise ValueError(f"speeds must decrease, got {(self.start, self.end)}")
        if self.episodes is not None:
            checked("episodes", self.episodes, PositiveInt)

    def speed(self, episode: int, share: float) -> float:
        """Return the speed."""
        gone = share if self.episodes is None else min(1.0, episode / self.episodes)
        return self.start + gone * (self.end - self.start)


@dataclass(frozen=True)
class Stepped:
    """A sequence of speeds, of which the last one is kept until the end.

    Args:
        speeds: At least one speed.
        episodes: Number of episodes at each speed, counted over all lanes; None: an equal share of all steps.
    """

    speeds: Sequence[float]
    episodes: Sequence[int] | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.speeds:
            raise ValueError("speeds must contain at least one speed, got none")
        for value in self.speeds:
            checked("speeds", value, Speed)
        if list(self.speeds) != sorted(self.speeds, reverse=True):
            raise ValueError(f"speeds must decrease, got {self.speeds}")
        if self.episodes is not None:
            if len(self.episodes) != len(self.speeds):
                raise ValueError(
                    f"episodes must be one number for each of {len(self.speeds)} speeds, got {self.episodes}"
                )
            for count in self.episodes:
                checked("episodes", count, PositiveInt)

    def speed(self, episode: int, share: float) -> float:
        """Return the speed."""
        if self.episodes is None:
            return self.speeds[min(int(share * len(self.speeds)), len(self.speeds) - 1)]
        for value, count in zip(self.speeds, self.episodes, strict=True):
            if episode < count:
                return value
            episode -= count
        return self.speeds[-1]


def passed(curriculum: Curriculum, levels: Iterable[float]) -> list[float]:
    """Return the levels that a curriculum passes or ends at, fastest first; for `Stepped` only those it stops at."""
    first, last = curriculum.speed(0, 0.0), curriculum.speed(LATE, 1.0)
    asked = {checked("levels", level, Speed) for level in levels}
    if isinstance(curriculum, Stepped):
        asked &= set(curriculum.speeds)
    return sorted((level for level in asked if last - LEVEL / 2 <= level < first + LEVEL / 2), reverse=True)


class FollowCurriculum(BaseCallback):
    """Sets the pursuers' speed, and stores the policy of each level when the speed leaves that level.

    The speed leaves a level when it has decreased halfway to the next level; the remaining levels are stored at the
    end of training. (A policy stored on reaching the first level would be untrained.) Episodes that began before
    training have the environment's own speed, unless `begin_at` was called.

    Args:
        curriculum: The schedule of the pursuers' speed, which must not increase.
        levels: The speeds whose policies are stored; levels that the curriculum does not pass are ignored.
        folder: Folder for the policies, saved as ``model-1.2.pt``; None: they are not saved.

    Attributes:
        states: The weights of the policy at each level that the speed has left, including those that the folder
            contains from before an interruption.
    """

    def __init__(self, curriculum: Curriculum, *, levels: Iterable[float] = (), folder: Path | None = None) -> None:
        super().__init__()
        self.curriculum, self._folder = curriculum, folder
        self.levels = passed(curriculum, levels)
        self.states: dict[float, dict[str, th.Tensor]] = {}

    def _on_training_start(self) -> None:
        self._set = begin_at(self.training_env, self.curriculum)

    def _on_rollout_start(self) -> None:
        model = cast(DDPG, self.model)
        share = min(1.0, model.num_timesteps / model._total_timesteps)
        speed = self.curriculum.speed(model._episode_num // model.agents, share)
        self._set.value = speed
        self.logger.record("curriculum/speed", speed)
        self._keep(speed + LEVEL / 2)

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if self.model.num_timesteps >= self.model._total_timesteps:
            self._keep(cast(float, self._set.value) - LEVEL / 2)

    def _keep(self, above: float) -> None:
        """Store the policy for each level above a speed that has no stored policy yet."""
        for level in self.levels:
            if level > above - 1e-9 and level not in self.states:
                self.states[level] = self._kept(level)

    def _kept(self, level: float) -> dict[str, th.Tensor]:
        """Return a level's policy weights: those saved before an interruption, or the current ones, after saving."""
        if self._folder is not None and (path := level_path(self._folder, level)).is_file():
            return read_weights(path)
        if self._folder is not None:
            replace_file(path, serialized(self.model.policy.state_dict()))
        return {name: value.clone() for name, value in self.model.policy.state_dict().items()}


def begin_at(env: VecEnv, curriculum: Curriculum) -> SetSpeed:
    """Return an object that sets the speed when an episode begins, and set the curriculum's first speed."""
    lanes = cast(Lanes, batch(env).lanes)
    for amendment in lanes.amendments:
        if isinstance(amendment, SetSpeed):
            return amendment
    check_team(lanes.rules)
    lanes.amendments.append(SetSpeed(curriculum.speed(0, 0.0)))
    return cast(SetSpeed, lanes.amendments[-1])


def level_path(run: Path, level: float) -> Path:
    """Return the path of the policy that a run stores for a level."""
    return run / f"model-{level:g}.pt"


def level_states(run: Path, *, speeds: Sequence[float] | None = None) -> dict[float, dict[str, th.Tensor]]:
    """Return the weights of the policies that a run has stored for its levels, by speed, fastest first.

    Args:
        run: The run's folder.
        speeds: Speeds of the requested levels; None: all.
    """
    found = {float(path.stem.removeprefix("model-")): path for path in run.glob("model-*.pt")}
    wanted = [level for level in found if speeds is None or level in speeds]
    return {level: read_weights(found[level]) for level in sorted(wanted, reverse=True)}
