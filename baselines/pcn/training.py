"""Trains Pareto and Lorenz Conditioned Networks, with a folder from which training can be resumed."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np

from fair_envs.baselines.learning import load_learner, train_learner
from fair_envs.baselines.pcn import coverage
from fair_envs.baselines.pcn.coverage import CoverageSet
from fair_envs.baselines.pcn.objectives import (
    GROUPS,
    KINDS,
    MEASURES,
    PERFORMANCE,
    default_objectives,
    names_of,
    objective_name,
    objectives_of,
)
from fair_envs.baselines.pcn.pcn import LORENZ_LAMBDA, PCN, PCNSettings, Seed, farel_settings
from fair_envs.baselines.pcn.policy import KNEE, trade_off
from fair_envs.baselines.pcn.rollouts import Episode
from fair_envs.baselines.settings import COMMON, GROUPS_HELP, Device, MethodSettings, compared_groups, recommended
from fair_envs.metrics.group import Groups
from fair_envs.metrics.pareto import cardinality, hypervolume, library
from fair_envs.registration import TABLE
from fair_envs.support.parameters import NonNegativeInt, PositiveInt, Range, UnitInterval, checked, setting
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import rules_for

KEPT_EVERY = 20  # iterations between checkpoints
ITERATIONS = 40  # recommended for several agents

Callback = Callable[[PCN, Sequence[Episode]], None]
"""Function called after every iteration."""


@dataclass(frozen=True, kw_only=True)
class PCNTraining(PCNSettings, MethodSettings):
    """Settings of a training of Pareto Conditioned Networks; equal settings give equal networks.

    Raises:
        ValueError: A value is outside its range, an objective is unknown, or parameters cannot be stored as JSON.
    """

    algorithm: Literal["pcn"] = "pcn"
    steps: PositiveInt = setting(
        100_000, "Environment steps to train for, rounded up to whole iterations."
    )  # F: 500,000
    objectives: Sequence[str] = setting(
        (),
        "Objectives that are requested: the performance (alias R) and fairness notions, by name or alias; or measures, "
        "the performance and the task's short-term and long-term measures; or groups, the mean return of each group of "
        "agents, or each group's rate of benefits in the episode if one decision-maker acts. Empty: groups if several "
        "agents act or lorenz_lambda is below 1, otherwise R,SP,IF without the notions that the environment does not "
        "support, or measures if it supports none.",
    )
    computed: Sequence[str] = setting((), "Fairness notions that are recorded but not requested.")
    groups: Sequence[str] = setting((), GROUPS_HELP)
    window: NonNegativeInt = setting(500, "Number of latest decisions used by the notions; 0 uses all of them.")
    keep_history: bool = setting(False, "Whether decisions of earlier episodes stay in the history.")  # F
    # The coverage set
    test_actions: Literal["sampled", "deterministic"] = setting(
        "sampled", "Whether actions are sampled or the most likely ones are taken in tests."
    )  # F: deterministic
    test_episodes: Annotated[int, Range(2)] = setting(
        coverage.EPISODES, "Test episodes for each point of the coverage set."
    )
    followed: str = setting(
        KNEE,
        "Learned trade-off that the run follows as a policy (--policy RUN): knee, the one nearest to the best value of "
        "each objective, scaled by their ranges; sum, the one with the largest sum of objectives; or the number of a "
        "point in coverage.csv.",
    )
    # The machine
    lanes: PositiveInt = setting(10, COMMON["lanes"])  # F: 1
    seed: Seed = setting(0, COMMON["seed"])
    threads: PositiveInt = setting(1, COMMON["threads"])
    device: Device = setting("cpu", COMMON["device"])

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        for name in ("objectives", "computed"):
            object.__setattr__(self, name, tuple(objective_name(name, given) for given in getattr(self, name)))
        trade_off("followed", self.followed)
        if not self.objectives:
            rules = rules_for(self.env_id, **self.parameters)
            object.__setattr__(self, "objectives", default_objectives(rules, comparable=self.lorenz_lambda < 1))
        given = [*self.objectives, *self.computed]
        for kind in KINDS:
            if kind in given and len(given) > 1:
                raise ValueError(f"objectives must not have others besides {kind}, got {given}")
        if self.groups and MEASURES in given:
            raise ValueError(f"groups must be left out with {MEASURES}, whose groups the task names, got {self.groups}")
        if len(set(given)) != len(given):
            raise ValueError(f"objectives and computed must not repeat a name, got {self.objectives}, {self.computed}")
        compared_groups(self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all objectives in the order of the vector reward, see `objectives.names_of`."""
        return names_of(self)

    @property
    def notions(self) -> tuple[str, ...]:
        """Names of the notions that are requested or only recorded."""
        return tuple(name for name in (*self.objectives, *self.computed) if name not in (PERFORMANCE, *KINDS))

    @property
    def requested(self) -> list[int]:
        """Indices of the requested objectives."""
        names = self.names
        return [names.index(name) for name in (names if set(self.objectives) & set(KINDS) else self.objectives)]

    @property
    def compared(self) -> Groups:
        """Groups that the group notions compare, as an argument of `fair_envs.metrics.GroupNotion`."""
        return compared_groups(self.groups)

    @property
    def settings(self) -> PCNSettings:
        """Settings of the learner."""
        return PCNSettings(**{entry.name: getattr(self, entry.name) for entry in fields(PCNSettings)})


@dataclass(frozen=True, kw_only=True)
class LCNTraining(PCNTraining):
    """Settings of a training of Lorenz Conditioned Networks: `PCNTraining` with Lorenz dominance by default.

    Lorenz dominance adds objectives and compares them with each other, so they must have one unit and one meaning, such
    as the returns or benefits of groups. Only those are default objectives.

    Raises:
        ValueError: As for `PCNTraining`.
    """

    algorithm: Literal["lcn"] = "lcn"  # type: ignore[assignment]
    lorenz_lambda: UnitInterval = setting(0.0, LORENZ_LAMBDA)


Preset = Literal["recommended", "farel", "farel-published"]
"""Sources of the default settings: this package, FAReL, or FAReL with the errors of its published code."""


def preset_values(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a preset for the settings given so far.

    Raises:
        ValueError: The preset is unknown.
    """
    checked("preset", preset, Preset)
    found = recommended_values("recommended", given)
    if preset == "recommended":
        return found
    parameters = found["parameters"]
    known = {name: given[name] for name in ("objectives", "groups") if given.get(name)}
    own = PCNTraining(env_id=given["env_id"], parameters=parameters, **known)
    horizon = getattr(rules_for(own.env_id, **parameters).params, "horizon", None)
    if horizon is None:
        raise ValueError(f"preset must be 'recommended' for {own.env_id}, which has no known horizon, got {preset!r}")
    objectives = [own.names[k] for k in own.requested]
    settings = farel_settings(
        objectives=len(objectives),
        horizon=horizon,
        performance=objectives.index(PERFORMANCE) if PERFORMANCE in objectives else None,
        published_code=preset == "farel-published",
    )
    if GROUPS in own.objectives:  # the study has no groups' benefits, which can be above 0
        settings = dataclasses.replace(settings, max_return=())
    return (
        dataclasses.asdict(settings)
        | {"parameters": parameters, "steps": 500_000, "lanes": 1, "keep_history": True, "window": 1000}
        | {"test_actions": "deterministic"}
    )


def recommended_values(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the environment's task, of which given ones override single ones, and its steps.

    A task's steps are steps of agents, while steps here are those of lanes. Therefore, they are used only for a
    decision-maker. If several agents act, the steps are enough for the random episodes and 40 iterations.

    Raises:
        ValueError: The preset is unknown.
    """
    checked("preset", preset, Literal["recommended"])
    found = {name: value for name, value in recommended(PCNTraining, given).items() if name in ("parameters", "steps")}
    rules = rules_for(given["env_id"], **found["parameters"])
    if rules.multi_agent:
        del found["steps"]
        horizon = getattr(rules.params, "horizon", None)
        if horizon is not None:
            found["steps"] = steps_of_iterations(ITERATIONS, horizon, given)
    return found


def steps_of_iterations(iterations: int, horizon: int, given: Mapping[str, Any]) -> int:
    """Return the environment steps of the random episodes and of some iterations, if no episode ends early.

    Args:
        iterations: Number of iterations.
        horizon: Steps of an episode.
        given: The given settings, which override the default numbers of episodes.
    """
    first, each = (int(given.get(name, getattr(PCNSettings, name))) for name in ("first_episodes", "episodes"))
    return horizon * (first + iterations * each)


# ------------------------------------------------------------------------------------------- making and training


def make_env(config: PCNTraining) -> Any:
    """Return the environment of a training, with its vector rewards.

    Raises:
        ValueError: A parameter is outside its range, or an objective is not supported by the environment.
    """
    mode: Any = "vector_entry_point" if config.env_id in TABLE else "sync"  # a user's own: one after another
    env = gym.make_vec(config.env_id, num_envs=config.lanes, vectorization_mode=mode, **config.parameters)
    return objectives_of(config, env)


def make_model(config: PCNTraining) -> PCN:
    """Return the untrained model."""
    return PCN(make_env(config), settings=config.settings, requested=config.requested, seed=config.seed)


def train_pcn(
    config: PCNTraining,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    callback: Callback | None = None,
) -> PCN:
    """Train and return the model.

    With ``out``, the training writes ``config.json``, ``versions.json``, ``metrics.csv`` and ``metrics.json`` (one row
    for each iteration), ``tensorboard/``, ``checkpoint.pt`` and, at the end, ``coverage.csv``, ``coverage.json``,
    ``pareto.png`` and ``parallel.png`` (see `fair_envs.baselines.pcn.coverage`) to the folder. An interrupted training
    leaves a checkpoint of the end of the last iteration. A resumed training gives bit-identical networks and coverage
    sets to an uninterrupted one, on the same machine and with the same versions.

    Args:
        config: Settings of the training.
        out: A new folder, or None.
        resume: Whether to resume the training in ``out``.
        progress: Whether to show a progress bar with the remaining time.
        callback: Called after every iteration with the model and the played episodes.

    Raises:
        FileExistsError: ``out`` exists and ``resume`` is False.
        FileNotFoundError: There is no run to resume.
        ValueError: The run to resume has another configuration, or a parameter is outside its range.
    """
    library()  # check for the library first
    played: list[Episode] = []

    def iterate(model: PCN) -> dict[str, float]:
        played[:] = model.iterate()
        return measured(model, played, names=config.names)

    def finish(model: PCN, folder: Path) -> None:
        coverage.save(test(model, config, progress=progress), folder, reference=model.reference[model.requested])

    model = train_learner(
        config,
        lambda: make_model(config),
        iterate,
        out=out,
        resume=resume,
        progress=progress,
        kept_every=KEPT_EVERY,
        after=lambda model: None if callback is None else callback(model, list(played)),
        finish=finish,
    )
    if not model.iterations:
        warnings.warn(
            f"the network has learned nothing: the {config.first_episodes} random episodes (first_episodes) took all "
            f"{config.steps} steps; use more steps or fewer first episodes",
            stacklevel=2,
        )
    return model


def test(
    model: PCN, config: PCNTraining, *, episodes: int | None = None, seed: int | None = None, progress: bool = False
) -> CoverageSet:
    """Return the coverage set of a trained model, evaluated with its settings."""
    commands = model.commands()
    with progress_bar("testing", total=len(commands), unit="commands", shown=progress) as advance:
        return coverage.cover(
            model,
            names=config.names,
            commands=commands,
            episodes=episodes or config.test_episodes,
            seed=TEST_SEEDS if seed is None else seed,
            deterministic=config.test_actions == "deterministic",
            each=advance,
        )


def measured(model: PCN, episodes: Sequence[Episode], *, names: Sequence[str]) -> dict[str, float]:
    """Return the logged values of an iteration: returns of its episodes and of the best episodes in the buffer."""
    returns = np.array([episode.returns for episode in episodes])
    reported = {f"rollout/{name}": float(column.mean()) for name, column in zip(names, returns.T, strict=True)}
    reported["rollout/length"] = float(np.mean([len(episode) for episode in episodes]))
    wanted = np.array([command.desired_return for command in model.commands()])
    reported["buffer/hypervolume"] = hypervolume(wanted, reference=model.reference[model.requested])
    reported["buffer/cardinality"] = cardinality(wanted)
    reported["train/loss"] = float(np.mean(model.losses)) if model.losses else float("nan")
    return {"time/total_timesteps": model.num_timesteps, "time/iterations": model.iterations, **reported}


def load_pcn(run: str | Path, kind: type[PCNTraining] = PCNTraining) -> tuple[PCN, PCNTraining]:
    """Return the model of a run's last checkpoint, for evaluation, and its settings.

    Args:
        run: The run's folder.
        kind: The settings of the training: `PCNTraining` or `LCNTraining`.

    Raises:
        FileNotFoundError: The folder contains no run.
        ValueError: The run is damaged, or has another kind of settings.
    """
    return load_learner(run, kind, make_model)
