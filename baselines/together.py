"""Trains several seeds or strengths of a method in one process, which takes less time than one after the other.

Each training is the same as alone, up to rounding, and has a run folder of its own, which can be resumed, evaluated and
compared like any other.
"""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.callbacks import CallbackList

from fair_envs.baselines.methods import methods, named
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.baselines.ppo.together import Together, why_alone
from fair_envs.baselines.runs import Run
from fair_envs.baselines.settings import MethodSettings
from fair_envs.baselines.training import (
    Keeper,
    Progress,
    RandomState,
    RolloutLog,
    begun_run,
    isolated_random_state,
    rollout_logs,
    steps_in_whole_rollouts,
)
from fair_envs.support.files import check_new
from fair_envs.support.progress import Advance, progress_bar
from fair_envs.support.stopping import stoppable

ALIKE = frozenset({"steps", "lanes", "n_steps", "threads", "reward_scale", "eval_freq"})
"""Numbers in which trainings must agree to be trained together; other numbers may differ, other settings may not."""

ALONE = "train the seeds one after another"


class Member:
    """One of several learners that learn together.

    Args:
        config: Its settings.
        model: The learner, in its current state.
        run: Its run, or None.
    """

    def __init__(self, config: Any, model: PPO, run: Run | None) -> None:
        self.config, self.model = config, model
        self.keeper = None if run is None else Keeper(run)
        self._random = RandomState.current()
        self.generator = th.Generator()

    @property
    def total(self) -> int:
        """Steps of the whole training."""
        return steps_in_whole_rollouts(self.model, self.config.steps)

    @property
    def unfinished(self) -> bool:
        """Whether there are steps left."""
        return self.model.num_timesteps < int(self.config.steps)

    def begin(self) -> None:
        """Begin the training, or continue it."""
        model = self.model
        self._random.set()
        fresh, left = model._last_obs is None, self.config.steps - model.num_timesteps
        callbacks = CallbackList([] if self.keeper is None else [self.keeper])
        self._total, self._callback = model._setup_learn(left, callbacks, reset_num_timesteps=fresh)
        self._callback.on_training_start({}, {})
        self._iteration = 0
        self._random = RandomState.current()

    def prepare(self) -> None:
        """Prepare a rollout."""
        self._random.set()
        self._callback.on_rollout_start()
        self._random = RandomState.current()
        self.generator.set_state(self._random.torch)

    def learn(self, numbers: dict[str, float]) -> None:
        """Learn from a rollout, and log its numbers."""
        model = self.model
        self._random._replace(torch=self.generator.get_state()).set()
        self._callback.on_rollout_end()
        for name, number in numbers.items():
            model.logger.record(name, number)
        model._after_rollout()
        self._iteration += 1
        model._update_current_progress_remaining(model.num_timesteps, self._total)
        model.dump_logs(self._iteration)
        model.train()
        self._random = RandomState.current()

    def end(self) -> None:
        """End the training."""
        self._random.set()
        self._callback.on_training_end()


def train_together(
    configs: Sequence[Any],
    *,
    outs: Sequence[str | Path] | None = None,
    resume: bool = False,
    progress: bool = False,
) -> list[PPO]:
    """Train a method with several seeds or strengths, and return the models.

    Other settings may differ too, but not those of the environment, of the size of networks and rollouts, and of the
    number of steps.

    Example:
        >>> from fair_envs.baselines import train_together
        >>> from fair_envs.baselines.methods import named
        >>> settings = [
        ...     named("fair-ppo").configured({"env_id": "FairLending-v0", "weight": w})
        ...     for w in (0.5, 1, 2)
        ... ]
        >>> models = train_together(settings)  # doctest: +SKIP

    Args:
        configs: Settings of each training.
        outs: A new folder for each training, see `fair_envs.baselines.train`; None: nothing is written.
        resume: Whether to resume the trainings in ``outs``; trainings that do not exist yet begin.
        progress: Whether to show a progress bar for all trainings.

    Raises:
        FileExistsError: A folder exists and ``resume`` is False.
        TypeError: Something is given instead of settings.
        ValueError: The method has a training loop of its own, the trainings differ in the environment or the size of
            rollouts, or they cannot share rollouts: networks are not perceptrons, the environment is wrapped, actions
            are massaged, or there are evaluations in the course of the training.
    """
    check_alike(configs)
    if outs is not None:
        check_folders([Path(out) for out in outs], len(configs), resume=resume)
    elif resume:
        raise ValueError("outs must name the runs to resume, got None")
    make = maker(configs[0].algorithm)
    folders = [None] * len(configs) if outs is None else [Path(out) for out in outs]
    with stoppable(), isolated_random_state(configs[0].threads), ExitStack() as stack:
        members = [
            _member(stack, config, make, folder, resume) for config, folder in zip(configs, folders, strict=True)
        ]
        total = sum(member.total for member in members)
        done = sum(member.model.num_timesteps for member in members)
        try:
            with progress_bar(
                f"{configs[0].algorithm} x {len(members)}", total=total, done=done, unit="steps", shown=progress
            ) as advance:
                _learn(members, make, advance)
        finally:
            for member in members:
                if member.keeper is not None:
                    member.keeper.write()
        for member, folder in zip(members, folders, strict=True):
            if folder is not None and not member.unfinished:
                member.model.save(folder / "model.zip")
        return [member.model for member in members]


def maker(method: str) -> Callable[[Any], PPO]:
    """Return the function that creates the learners of a method, which raises ValueError for those that learn alone.

    Raises:
        ValueError: The method has a training loop of its own.
    """
    make = named(method).make
    if make is None:
        known = sorted(one.name for one in methods() if one.make is not None)
        raise ValueError(f"configs must be of one of the methods {', '.join(known)}, got {method}; {ALONE}")

    def made(config: Any) -> PPO:
        model: PPO = make(config)
        if why := why_alone(model):
            raise ValueError(f"the training must share rollouts, got {method}, which {why}; {ALONE}")
        return model

    return made


def check_alike(configs: Sequence[Any]) -> None:
    """Raise ValueError if trainings cannot share rollouts because of their settings, TypeError if there are none."""
    if not isinstance(configs, Sequence) or not configs:
        raise ValueError(f"configs must list at least one training, got {configs!r}")
    for config in configs:
        if not isinstance(config, MethodSettings):
            raise TypeError(f"configs must be settings, such as named('ppo').configured(...), got {config!r}")
    first = configs[0].as_dict()
    for config in configs:
        own = config.as_dict()
        for name in dict.fromkeys(("algorithm", "env_id", *first, *own)):
            one, other = first.get(name), own.get(name)
            number = type(one) in (int, float) and type(other) in (int, float)
            if one != other and not (number and name not in ALIKE):
                raise ValueError(f"{name} must be the same in trainings together, got {one!r} and {other!r}")
        if own.get("eval_freq"):
            raise ValueError(f"eval_freq must be 0 in trainings together, got {own['eval_freq']}; {ALONE}")
    with_all_lanes(configs)


def with_all_lanes(configs: Sequence[Any]) -> Any:
    """Return the first training's settings with the lanes of all; raise ValueError if these are too many."""
    lanes = configs[0].lanes * len(configs)
    try:
        return dataclasses.replace(configs[0], lanes=lanes)
    except ValueError as error:
        raise ValueError(f"trainings together need {lanes} lanes, {configs[0].lanes} each: {error}") from error


def check_folders(folders: Sequence[Path], trainings: int, *, resume: bool) -> None:
    """Raise an error if the folders of runs cannot be used, before any is created.

    Raises:
        FileExistsError: A folder exists and ``resume`` is False.
        ValueError: The number of folders differs from that of trainings, or a folder is given twice.
    """
    if len({folder.absolute() for folder in folders}) != trainings or len(folders) != trainings:
        raise ValueError(f"outs must be one folder for each of {trainings} trainings, got {list(map(str, folders))}")
    for folder in folders if not resume else ():
        check_new(folder)


def _member(stack: ExitStack, config: Any, make: Callable[[Any], PPO], folder: Path | None, resume: bool) -> Member:
    """Return a new or resumed member; its folder is locked until the stack is closed."""
    if folder is None:
        return Member(config, make(config), None)
    run, model = stack.enter_context(begun_run(config, make, folder, resume=resume and folder.exists()))
    stack.enter_context(run.log(model, iterations=len(run.rows)))
    return Member(config, model, run)


def _learn(members: Sequence[Member], make: Callable[[Any], PPO], advance: Advance) -> None:
    """Train all members; those that are behind, because a stop has hit them earlier, catch up first."""
    learning = [member for member in members if member.unfinished]
    for member in learning:
        member.begin()
    groups: dict[tuple[int, ...], tuple[Together, list[RolloutLog]]] = {}
    while any(member.unfinished for member in learning):
        least = min(member.model.num_timesteps for member in learning)
        own = [member for member in learning if member.model.num_timesteps == least]
        key = tuple(map(id, own))
        if key not in groups:
            groups[key] = _together(own, make, advance)
        together, logs = groups[key]
        for member in own:
            member.prepare()
        together.collect([member.generator for member in own])
        for part, member in enumerate(own):
            member.learn({name: number for log in logs for name, number in log.named(part).items()})
    for member in learning:
        member.end()


def _together(
    members: Sequence[Member], make: Callable[[Any], PPO], advance: Advance
) -> tuple[Together, list[RolloutLog]]:
    """Return what collects rollouts of members, and what logs numbers of them."""
    kept = RandomState.current()
    collector = make(with_all_lanes([member.config for member in members]))
    kept.set()
    logs = rollout_logs(collector, parts=len(members))
    left = sum(member.total - member.model.num_timesteps for member in members)
    callback = CallbackList([*logs, Progress(advance, left=left)])
    return Together([member.model for member in members], collector, callback), logs
