"""Curricula of FairPursuit: how fast the pursuers are in the course of a training, and what is kept on the way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from fair_envs.baselines.ddpg import DDPG
from fair_envs.baselines.runs import batch, read_weights, serialized
from fair_envs.baselines.team_play import SetSpeed, Speed, check_team
from fair_envs.core import Lanes
from fair_envs.files import replace_file
from fair_envs.parameters import PositiveInt, checked

LEVEL = 0.1  # from one speed that policies are tested at to the next
LATE = 2**62  # an episode after the end of every curriculum


class Curriculum(Protocol):
    """How fast the pursuers are."""

    def speed(self, episode: int, share: float) -> float:
        """Return their speed in an episode, counted from 0, when so large a share of the training's steps is over."""


@dataclass(frozen=True)
class Linear:
    """A speed that falls evenly, as in the paper's code.

    Args:
        start: The speed at first; P: 1.2.
        end: In the end; P: 0.4.
        episodes: How many it takes, those of all lanes counted; the code: 15,000 of 125,000. None: all steps.
    """

    start: float = 1.2
    end: float = 0.4
    episodes: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("start", "end"):
            checked(name, getattr(self, name), Speed)
        if self.end > self.start:
            raise ValueError(f"speeds must fall, got {(self.start, self.end)}")
        if self.episodes is not None:
            checked("episodes", self.episodes, PositiveInt)

    def speed(self, episode: int, share: float) -> float:
        """Return the speed."""
        gone = share if self.episodes is None else min(1.0, episode / self.episodes)
        return self.start + gone * (self.end - self.start)


@dataclass(frozen=True)
class Stepped:
    """Speeds one after another; the last one stays.

    Args:
        speeds: At least one.
        episodes: How many each takes, those of all lanes counted; None: an equal share of all steps.
    """

    speeds: Sequence[float]
    episodes: Sequence[int] | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.speeds:
            raise ValueError("speeds must be at least one, got none")
        for value in self.speeds:
            checked("speeds", value, Speed)
        if list(self.speeds) != sorted(self.speeds, reverse=True):
            raise ValueError(f"speeds must fall, got {self.speeds}")
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
    """Return the levels that a curriculum passes or ends at, the fastest first; of steps those that it stops at."""
    first, last = curriculum.speed(0, 0.0), curriculum.speed(LATE, 1.0)
    asked = {checked("levels", level, Speed) for level in levels}
    if isinstance(curriculum, Stepped):
        asked &= set(curriculum.speeds)
    return sorted((level for level in asked if last - LEVEL / 2 <= level < first + LEVEL / 2), reverse=True)


class FollowCurriculum(BaseCallback):
    """Sets the pursuers' speed, and keeps the policy of each level when the speed has left it behind.

    A level is left when the speed has fallen halfway to the next one; what is left in the end is kept at the end. (The
    policy of when a level is reached would be untrained at the first.) Episodes that have begun before the training
    does have the environment's speed, unless `begin_at` was called.

    Args:
        curriculum: How fast the pursuers are; it must not grow.
        levels: The speeds whose policies are kept; those that it does not pass are left out.
        folder: Where they are saved, as ``model-1.2.pt``; None: nowhere.

    Attributes:
        states: The weights of the policy at each level that has been left; those that the folder has from before an
            interruption are among them.
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
        """Keep the policy for the levels from a speed on that none has been kept for."""
        for level in self.levels:
            if level > above - 1e-9 and level not in self.states:
                self.states[level] = self._kept(level)

    def _kept(self, level: float) -> dict[str, th.Tensor]:
        """Return the weights of the policy that a level was left with, and save it: now, or before an interruption."""
        if self._folder is not None and (path := level_path(self._folder, level)).is_file():
            return read_weights(path)
        if self._folder is not None:
            replace_file(path, serialized(self.model.policy.state_dict()))
        return {name: value.clone() for name, value in self.model.policy.state_dict().items()}


def begin_at(env: VecEnv, curriculum: Curriculum) -> SetSpeed:
    """Return what sets the speed where an episode of an environment begins; at first it is a curriculum's first one."""
    lanes = cast(Lanes, batch(env).lanes)
    for amendment in lanes.amendments:
        if isinstance(amendment, SetSpeed):
            return amendment
    check_team(lanes.rules)
    lanes.amendments.append(SetSpeed(curriculum.speed(0, 0.0)))
    return cast(SetSpeed, lanes.amendments[-1])


def level_path(run: Path, level: float) -> Path:
    """Return where a run keeps the policy of a level."""
    return run / f"model-{level:g}.pt"


def level_states(run: Path, *, speeds: Sequence[float] | None = None) -> dict[float, dict[str, th.Tensor]]:
    """Return the weights of the policies of the levels that a run has kept, by speed, the fastest first.

    Args:
        run: The run's folder.
        speeds: Of the levels that are wanted; None: of all.
    """
    found = {float(path.stem.removeprefix("model-")): path for path in run.glob("model-*.pt")}
    wanted = [level for level in found if speeds is None or level in speeds]
    return {level: read_weights(found[level]) for level in sorted(wanted, reverse=True)}
