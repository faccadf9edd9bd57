"""Trains PPO and fair-PPO with one settings class, with a folder from which interrupted training can be resumed."""

import dataclasses
import operator
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar

import gymnasium as gym
import numpy as np
import stable_baselines3 as sb3
import torch as th
from gymnasium.wrappers import TransformReward
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from fair_envs.baselines.callback import GroupRates, Watched, source_of
from fair_envs.baselines.ppo.cost_ppo import MeasurePPO
from fair_envs.baselines.ppo.costs import Credit, PenaltyNotion
from fair_envs.baselines.ppo.fair_ppo import FairPPO, ModeName
from fair_envs.baselines.ppo.policies import GroupedPolicy, IndividualPolicy
from fair_envs.baselines.ppo.ppo import PPO, agents_env_of
from fair_envs.baselines.runs import Run, freeze, restore, restore_learner, source
from fair_envs.baselines.settings import (
    COMMON,
    FOR_AGENTS,
    OnPolicySettings,
    PPOSettings,
    compared_groups,
    plain_defaults,
    plain_parameters,
)
from fair_envs.core import Rules, check_seeds
from fair_envs.evaluation import LanesWorld, RandomPolicy, begun, rollout, scripted
from fair_envs.faces.sb3 import Append
from fair_envs.metrics.measures import check_without_probs
from fair_envs.registration import TABLE, make_rules, make_sb3
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import (
    NonNegative,
    Positive,
    PositiveInt,
    Range,
    setting,
    value_of,
)
from fair_envs.support.progress import Advance, progress_bar
from fair_envs.support.seeds import LANES_EACH, TRAINING_SEEDS
from fair_envs.support.stopping import stoppable
from fair_envs.tasks import AnyRules, MeasureFor, Task, rules_for, task_of
from fair_envs.wrappers.objectives import FenReward

Algorithm = Literal["ppo", "fair-ppo", "sb3-ppo", "fen-reward"]
Sharing = Literal["none", "groups", "all"]
L = TypeVar("L", bound=BaseAlgorithm)

POLICIES: Mapping[Sharing, tuple[Any, Append]] = {
    "none": (IndividualPolicy, "agent"),
    "groups": (GroupedPolicy, "group"),
    "all": ("MlpPolicy", None),
}
"""The policy for each kind of sharing, and what it needs at the end of observations."""

GAMES: tuple[Mapping[str, Any], ...] = ({"sensitive_fraction": 0.0}, {"sensitive_fraction": 1.0})
"""The two games of the counterfactual penalty: no agent has the attribute, and all agents have it."""


def two_games(name: str, worlds: Any) -> tuple[dict[str, Any], ...]:
    """Return the parameters of two games as plain data.

    Raises:
        ValueError: They are not two mappings, or cannot be stored as JSON.
    """
    if not isinstance(worlds, Sequence) or len(worlds) != 2:
        raise ValueError(f"{name} must be two mappings of parameters, got {worlds!r}")
    return tuple(plain_parameters(name, world) for world in worlds)


@dataclass(frozen=True, kw_only=True)
class Training(PPOSettings):
    """Settings of a training; equal settings give equal networks.

    Marks in the comments: C is the code published with fair-PPO, SB3 the default of Stable-Baselines3. Defaults without
    a mark, or that differ from the marked value, were found to learn the harvest quickly.

    Raises:
        ValueError: A value is outside its range, or parameters cannot be stored as JSON.
    """

    algorithm: Algorithm = "ppo"  # "sb3-ppo" is Stable-Baselines3's own, which also learns from steps without a turn
    steps: PositiveInt = setting(1_280_000, "Steps of the agents, or decisions, to train for, in whole rollouts.")
    # The rollouts
    n_steps: PositiveInt = setting(FOR_AGENTS["n_steps"], COMMON["n_steps"])  # C: whole episodes of 3000
    reward_scale: Positive = setting(FOR_AGENTS["reward_scale"], COMMON["reward_scale"])  # C: 1
    skip_idle: bool = setting(True, COMMON["skip_idle"])  # C learns from them
    # PPO: gamma, gae_lambda and clip_range are as in C and SB3; C has vf_coef 1 and does not clip gradients
    batch_size: Annotated[int, Range(2)] = setting(FOR_AGENTS["batch_size"], COMMON["batch_size"])  # C: 256
    n_epochs: PositiveInt = setting(FOR_AGENTS["n_epochs"], COMMON["n_epochs"])  # C
    learning_rate: Positive = setting(FOR_AGENTS["learning_rate"], COMMON["learning_rate"])  # C: 5e-4
    ent_coef: NonNegative = setting(FOR_AGENTS["ent_coef"], COMMON["ent_coef"])  # C
    net_arch: Sequence[PositiveInt] = setting(
        (64, 64), "Sizes of the layers of each group's actor and critic."
    )  # SB3; C: 256, 128, 64
    sharing: Sharing = setting("groups", COMMON["sharing"])
    shared: bool = setting(False, "Whether all agents share one actor and critic, the same as --sharing all.")
    equivariance: NonNegative = setting(
        0.0, "Weight of Fair-ER's penalty, which pulls the policies of agents or groups towards each other."
    )
    # Fair-PPO
    penalty: PenaltyNotion = setting("demographic_parity", "Notion of fairness whose violation is penalised.")
    alpha: NonNegative = setting(1.0, "Weight of the retrospective cost of fair-PPO.")
    beta: NonNegative = setting(0.0, "Weight of the prospective cost of fair-PPO.")
    weight: NonNegative = setting(1.0, "Common weight of both costs of fair-PPO, the paper's lambda.")
    mode: ModeName = setting("shaped", "How fair-PPO's cost changes the policy.")
    credit: Credit = setting(
        "common", "Whether agents pay for the whole change of the disparity (common) or only for their own part (own)."
    )
    tolerance: NonNegative = setting(0.0, "Disparity per agent and episode that is not penalised, for mode p3o.")
    worlds: Annotated[Sequence[Mapping[str, Any]], two_games] = setting(
        GAMES, "Parameters that differ between the two games of the counterfactual penalty."
    )
    measure: str = setting(
        "",
        "Measure whose increase fair-ppo penalises: short, long, rate or a notion; by default the disparity of returns "
        "of two groups of agents, or else short.",
    )
    # FEN's reward
    bounds: Sequence[float] = setting(
        (),
        "Least and largest reward of an agent in a step, for fen-reward; by default, estimated by play.",
    )
    epsilon: Positive = setting(0.1, "Smaller values weigh equality more, for fen-reward.")
    # The machine
    seed: Annotated[int, Range(0, 2**32 - 1)] = setting(0, COMMON["seed"])

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if self.paired and self.lanes % 2:
            raise ValueError(
                f"lanes must be even for penalty {self.penalty!r}, with half of them for each game, got {self.lanes}"
            )
        if self.algorithm == "fair-ppo":
            self._check_penalty()
        if len(self.bounds) not in (0, 2):
            raise ValueError(f"bounds must be the least and the largest reward, got {self.bounds!r}")
        if self.shared and self.sharing == "none":
            raise ValueError("shared must be False with sharing 'none', got True")
        if self.equivariance and self.shared_by == "all":
            raise ValueError(
                "equivariance must be 0 if all agents share one network, which has no other to be pulled towards, got "
                f"{self.equivariance:g}; use sharing 'none' or 'groups'"
            )

    def _check_penalty(self) -> None:
        """Raise ValueError for a setting of the penalty on returns where a measure is penalised."""
        if compares_returns(rules_for(self.env_id, **self.parameters)) and not self.measure:
            return
        for one in dataclasses.fields(self):
            if one.name in OF_RETURNS and getattr(self, one.name) != one.default:
                what = f"{one.name} must be {one.default!r} if a measure is penalised"
                why = "as with measure=..." if self.measure else f"as on {self.env_id}, without agents of two groups"
                raise ValueError(f"{what}, {why}, got {getattr(self, one.name)!r}")

    @property
    def shared_by(self) -> Sharing:
        """Which agents share an actor and a critic: ``sharing``, or all with ``shared``."""
        return "all" if self.shared else self.sharing

    @property
    def paired(self) -> bool:
        """Whether two games are played in parallel."""
        return self.algorithm == "fair-ppo" and self.penalty == "counterfactual_fairness"


# ------------------------------------------------------------------------------------------- making and training


def training_env(
    config: OnPolicySettings,
    *,
    seed: int,
    append: Append = None,
    worlds: Sequence[Mapping[str, Any]] | None = None,
) -> VecEnv:
    """Return the environment of a training: one row for each agent, or for each lane of a decision-maker.

    Environments that are registered only with Gymnasium have no lanes: several copies are played one after another.

    Args:
        config: Settings of the training.
        seed: Seed of the first lane.
        append: What is appended to the observations of agents, see `fair_envs.faces.sb3.AgentsVecEnv`.
        worlds: Parameters of several worlds of agents that share the lanes.

    Raises:
        ValueError: A parameter of the environment is outside its range.
        TypeError: A parameter of the environment is unknown.
    """
    if config.env_id not in TABLE:
        own = DummyVecEnv([partial(make_own, config)] * config.lanes)
        own.seed(seed)
        return own
    return make_sb3(
        config.env_id,
        n_envs=config.lanes if worlds is None else config.lanes // len(worlds),
        rows="agents" if make_rules(config.env_id, **config.parameters).multi_agent else "lanes",
        seed=seed,
        threads=config.threads,
        append=append,
        reward_scale=config.reward_scale,
        infos="ends",  # the model would contain returns of episodes that began before an interruption
        worlds=worlds,
        **config.parameters,
    )


def make_own(config: OnPolicySettings) -> gym.Env[Any, Any]:
    """Return an environment that is registered only with Gymnasium, with scaled rewards."""
    env = gym.make(config.env_id, **config.parameters)
    return TransformReward(env, partial(operator.mul, config.reward_scale)) if config.reward_scale != 1 else env


def make_env(config: Training) -> VecEnv:
    """Return the environment of a training, with seeds that no other training uses.

    Raises:
        ValueError: A decision-maker would have several networks, or see `training_env`.
    """
    check_sharing(config.shared_by, config)
    env = training_env(
        config,
        seed=first_seed(config),
        append=POLICIES[config.shared_by][1],
        worlds=config.worlds if config.paired else None,
    )
    if config.algorithm != "fen-reward":
        return env
    least, largest = config.bounds or bounds_of(
        make_rules(config.env_id, **config.parameters), task_of(config.env_id).scripted
    )
    fair: VecEnv = FenReward(env, least=least, largest=largest, epsilon=config.epsilon, clip=not config.bounds)
    return fair


def check_sharing(sharing: Sharing, config: OnPolicySettings) -> None:
    """Raise ValueError if a decision-maker would have several networks."""
    if sharing != "all" and not rules_for(config.env_id, **config.parameters).multi_agent:
        raise ValueError(f"sharing must be 'all' on {config.env_id}, which has one decision-maker, got {sharing!r}")


def bounds_of(rules: Rules, policies: Iterable[str] = ()) -> tuple[float, float]:
    """Return the least reward of an agent in a step, at most 0, and the largest one, as seen in play.

    Another policy may earn less. Such rewards should count as the least one: with a lower bound far below the rewards
    of most steps, the utilities of all agents would be about equal whatever they do.

    Args:
        rules: The rules.
        policies: Names of scripted policies that play besides random agents; they may get rewards that these miss.

    Raises:
        ValueError: All rewards were equal, so the largest one is unknown.
    """
    players = [RandomPolicy(rules), *(scripted(rules, name) for name in policies)]
    rewards = [
        step.reward for player in players for step in rollout(LanesWorld(begun(rules, check_seeds(0, 4))), player)
    ]
    least, largest = min(map(np.min, rewards)), max(map(np.max, rewards))
    if not largest > least:
        raise ValueError(
            f"bounds must be given for rewards that random and scripted policies seldom get; all were {least:g}"
        )
    return min(0.0, float(least)), float(largest)


def make_model(config: Training) -> BaseAlgorithm:
    """Return the untrained model.

    Raises:
        ValueError: A parameter of the environment is outside its range.
        TypeError: A parameter of the environment is unknown.
    """
    env = make_env(config)
    kind, own = learner_of(config)
    settings = {**own, "policy_kwargs": {"net_arch": list(config.net_arch)}}
    return new_model(kind, config, POLICIES[config.shared_by][0], env, first=first_seed(config), **settings)


def first_seed(config: OnPolicySettings) -> int:
    """Return the seed of the first lane of a training; no other training with another seed uses the lanes' seeds."""
    return TRAINING_SEEDS + LANES_EACH * config.seed


ACTIVATIONS: Mapping[str, type[th.nn.Module]] = {"tanh": th.nn.Tanh, "relu": th.nn.ReLU}


def new_model(kind: type[L], config: OnPolicySettings, policy: Any, env: VecEnv, *, first: int, **own: Any) -> L:
    """Return an untrained model.

    Args:
        kind: Class of the learner.
        config: Settings of the training.
        policy: The policy, or its name.
        env: The environment.
        first: Seed of the first lane, which replaces the one that the model sets.
        own: Arguments of this kind of learner, among them ``policy_kwargs``.
    """
    networks = {**own.pop("policy_kwargs"), "activation_fn": ACTIVATIONS[config.activation]}
    with warnings.catch_warnings():  # that the last minibatch is smaller, which is harmless
        warnings.filterwarnings("ignore", message="You have specified a mini-batch size", category=UserWarning)
        model = kind(policy, env, policy_kwargs=networks, **own, **config.of_learner())
    env.seed(first)
    return model


def learner_of(config: Training) -> tuple[type[OnPolicyAlgorithm], dict[str, Any]]:
    """Return the learner class of an algorithm and its specific settings.

    Raises:
        ValueError: The measure does not exist in the environment.
    """
    if config.algorithm == "sb3-ppo":
        return sb3.PPO, {}
    names = ["skip_idle", "equivariance"]
    if config.algorithm in ("ppo", "fen-reward"):
        return PPO, {name: getattr(config, name) for name in names}
    rules = rules_for(config.env_id, **config.parameters)
    if compares_returns(rules) and not config.measure:
        names += [*OF_RETURNS, "alpha", "weight"]
        return FairPPO, {name: getattr(config, name) for name in names}
    short = measure_of(config, config.measure or "short", rules)
    return MeasurePPO, {"short": short, **{name: getattr(config, name) for name in (*names, "alpha", "weight")}}


OF_RETURNS = ("penalty", "beta", "mode", "credit", "tolerance")
"""Settings of fair-PPO that only the penalty on the returns of two groups of agents has."""


def compares_returns(rules: AnyRules) -> bool:
    """Return whether fair-PPO can compare the returns of two groups of agents."""
    return rules.multi_agent and len(rules.spec.groups) == 2


def measure_of(config: OnPolicySettings, name: str, rules: AnyRules) -> MeasureFor:
    """Return the factory of a measure of the training's task, see `fair_envs.tasks.Task.factory`."""
    found = chosen_task(config.env_id, vars(config)).factory(name, rules)
    check_without_probs(found(1), "measure")
    return found


def chosen_task(env_id: str, given: Mapping[str, Any]) -> Task:
    """Return the task of an environment, with the rate and groups of a training's settings, if they are given.

    Args:
        env_id: Id of the environment.
        given: Settings, of which ``rate`` and ``groups`` are read.

    Raises:
        ValueError: The rate is unknown, or the groups are invalid.
    """
    groups = compared_groups(value_of(given.get("groups") or (), Sequence[str]))
    changes: dict[str, Any] = {"rate": given.get("rate"), "groups": groups}
    return dataclasses.replace(task_of(env_id), **{name: value for name, value in changes.items() if value})


def train(
    config: Training,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    callback: MaybeCallback = None,
) -> BaseAlgorithm:
    """Train and return the model.

    With ``out``, the training writes ``config.json``, ``versions.json``, ``metrics.csv`` and ``metrics.json`` (one row
    for each rollout), ``tensorboard/``, ``checkpoint.pt`` and, at the end, ``model.zip`` to the folder. An interrupted
    training leaves a checkpoint of the beginning of the current rollout. A resumed training gives bit-identical
    networks to an uninterrupted one, on the same machine and with the same versions. The state of the global random
    number generators is restored afterwards.

    Args:
        config: Settings of the training.
        out: A new folder, or None.
        resume: Whether to resume the training in ``out``.
        progress: Whether to show a progress bar with the remaining time.
        callback: Stable-Baselines3 callbacks, which must save their own state.

    Raises:
        FileExistsError: ``out`` exists and ``resume`` is False.
        FileNotFoundError: There is no run to resume.
        ValueError: The run to resume has another configuration, or a parameter is outside its range.
    """
    return train_as(config, make_model, out=out, resume=resume, progress=progress, callback=callback)


class Settings(Protocol):
    """Interface of a training's settings."""

    @property
    def algorithm(self) -> str:
        """Name of the method."""

    @property
    def steps(self) -> int:
        """Number of steps of the training."""

    @property
    def threads(self) -> int:
        """Number of threads."""

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, as JSON reads them back."""


S = TypeVar("S", bound=Settings)
M = TypeVar("M")


def train_as(
    config: S,
    make: Callable[[S], BaseAlgorithm],
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    callback: MaybeCallback = None,
    log_interval: int | None = 1,
    keeper: "Callable[[Run], Keeper] | None" = None,
) -> BaseAlgorithm:
    """Train and return the model that a function creates from settings.

    Args:
        config: Settings of the training.
        make: Creates the untrained model.
        out: See `train`.
        resume: See `train`.
        progress: See `train`.
        callback: See `train`.
        log_interval: Rollouts between rows of metrics; None: a callback writes the rows.
        keeper: Callback that stores the state; None: `Keeper`, at the beginning of each rollout.
    """
    settings: dict[str, Any] = {"progress": progress, "callback": callback, "log_interval": log_interval}
    if out is None:
        if resume:
            raise ValueError("out must name the run to resume, got None")
        with isolated_random_state(config.threads):
            model = make(config)
            return _learn(model, config, [], **settings)
    with (
        stoppable(),
        isolated_random_state(config.threads),
        begun_run(config, make, Path(out), resume=resume) as (run, model),
    ):
        keeping = (keeper or Keeper)(run)
        with run.log(model, iterations=len(run.rows)):
            try:
                _learn(model, config, [keeping], **settings)
            finally:
                keeping.write()
        if model.num_timesteps >= config.steps:
            model.save(run.folder / "model.zip")
        return model


def begun_run(
    config: S, make: Callable[[S], L], folder: Path, *, resume: bool
) -> AbstractContextManager[tuple[Run, L]]:
    """Return a new or resumed run and its model as a context, see `Run.begun`."""
    defaults = plain_defaults(config)
    return Run.begun(folder, config.as_dict(), lambda: make(config), resume=resume, restore=restore, defaults=defaults)


def steps_in_whole_rollouts(model: BaseAlgorithm, steps: int) -> int:
    """Return the steps of a training, rounded up to whole rollouts."""
    rollout = model.n_steps * model.n_envs if isinstance(model, OnPolicyAlgorithm) else 1
    return -(-steps // rollout) * rollout


def rollout_logs(model: BaseAlgorithm, *, parts: int = 1) -> "list[RolloutLog]":
    """Return what logs a learner's mean rewards, of groups of agents or of all rows, and the rates of groups."""
    of_agents = model.env is not None and agents_env_of(model.env) is not None
    rewards = GroupRewards(parts=parts) if of_agents else MeanReward(parts=parts)
    try:
        source_of(model.env)
    except ValueError:  # the environment has no record
        return [rewards]
    return [rewards, RolloutRates(parts=parts)]


def _learn(
    model: BaseAlgorithm,
    config: Settings,
    callbacks: list[BaseCallback],
    *,
    progress: bool,
    callback: MaybeCallback,
    log_interval: int | None,
) -> BaseAlgorithm:
    of_agents = model.env is not None and agents_env_of(model.env) is not None
    if log_interval is not None:
        callbacks = [*callbacks, *rollout_logs(model)]
    done, left = model.num_timesteps, config.steps - model.num_timesteps
    total = steps_in_whole_rollouts(model, config.steps)
    unit = "agent steps" if of_agents else "steps"
    if left > 0:
        fresh = model._last_obs is None  # otherwise its first episodes have begun and must continue
        with progress_bar(config.algorithm, total=total, done=done, unit=unit, shown=progress) as advance:
            model.learn(
                left,
                callback=CallbackList([*callbacks, Progress(advance, left=total - done), *callbacks_of(callback)]),
                log_interval=log_interval,  # type: ignore[arg-type]  # it accepts None
                reset_num_timesteps=fresh,
            )
    return model


def callbacks_of(callback: MaybeCallback) -> list[BaseCallback]:
    """Return a learner's callbacks as a list."""
    if callback is None:
        return []
    if isinstance(callback, list):
        return [*callback]
    return [callback if isinstance(callback, BaseCallback) else ConvertCallback(callback)]


def load(run: str | Path) -> tuple[BaseAlgorithm, Training]:
    """Return the model of a run's last checkpoint, for evaluation, and its settings.

    Raises:
        FileNotFoundError: The folder contains no run.
    """
    return load_as(run, Training, make_model)


def load_run(
    run: str | Path,
    kind: type[S],
    make: Callable[[S], M],
    restore: Callable[[M, Mapping[str, Any]], object],
) -> tuple[M, S]:
    """Return the model of a run's last checkpoint, for evaluation, and its settings.

    Args:
        run: The run's folder.
        kind: Class of the settings.
        make: Creates the untrained model.
        restore: Restores the state of a checkpoint in the model.

    Raises:
        FileNotFoundError: The folder contains no run.
        ValueError: The run is damaged, or has another kind of settings.
    """
    kept = Run.open(Path(run))
    config = kept.settings(kind)
    with isolated_random_state(config.threads):
        model = make(config)
        kept.take_up(lambda state: restore(model, state))
    return model, config


def load_as(run: str | Path, kind: type[S], make: Callable[[S], BaseAlgorithm]) -> tuple[BaseAlgorithm, S]:
    """Return the model of a run of Stable-Baselines3 and its settings, see `load_run`."""
    return load_run(run, kind, make, restore_learner)


class RandomState(NamedTuple):
    """The state of the global random number generators."""

    torch: th.Tensor
    numpy: Any
    python: Any

    @classmethod
    def current(cls) -> "RandomState":
        """Return the current state."""
        return cls(th.get_rng_state(), np.random.get_state(), random.getstate())

    def set(self) -> None:
        """Make this the current state."""
        th.set_rng_state(self.torch)
        np.random.set_state(self.numpy)
        random.setstate(self.python)


@contextmanager
def isolated_random_state(threads: int) -> Iterator[None]:
    """Set torch's number of threads, and restore it and the global random number generators at the end."""
    before, kept = th.get_num_threads(), RandomState.current()
    th.set_num_threads(threads)
    try:
        yield
    finally:
        th.set_num_threads(before)
        kept.set()


# ----------------------------------------------------------------------------------------------------- callbacks


class Keeper(BaseCallback):
    """Keeps the state at the beginning of the rollout, and writes it periodically.

    Args:
        run: The run to which it is written.
        every: Number of rollouts between checkpoints.
    """

    def __init__(self, run: Run, *, every: int = 10) -> None:
        super().__init__()
        self.run, self.every = run, every
        self._state: bytes | None = None
        self._rollouts = 0
        self._collected = self._finished = False

    def _on_rollout_start(self) -> None:
        self._collected = self._finished = False
        self._state = freeze(self.model, self.run)
        if self._rollouts % self.every == 0:
            self.run.write(self._state)
        self._rollouts += 1

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._collected = True

    def _on_training_end(self) -> None:
        self._finished = self._collected  # otherwise a callback has stopped the training within a rollout

    def write(self) -> None:
        """Write a checkpoint from which the training can be resumed."""
        if self._finished:
            self._state = freeze(self.model, self.run)
        if self._state is not None:
            self.run.write(self._state)


REWARD = "rollout/reward"  # log name of the groups' mean rewards


class RolloutLog(BaseCallback):
    """Logs numbers of each rollout, which do not depend on earlier ones, so that interruptions do not change them.

    Args:
        parts: Number of equal parts of the rows, one after the other. With several, nothing is logged by itself.
    """

    def __init__(self, *, parts: int = 1) -> None:
        super().__init__()
        self.parts = parts

    def named(self, part: int = 0) -> dict[str, float]:
        """Return the numbers of a part in the last rollout, by name."""
        raise NotImplementedError

    def _on_rollout_end(self) -> None:
        if self.parts == 1:
            for name, number in self.named().items():
                self.logger.record(name, number)


class GroupRewards(RolloutLog):
    """Logs the mean reward per agent and step of each group in each rollout."""

    def _on_rollout_start(self) -> None:
        self._groups = source(self.training_env).fair_spec.groups
        self._sums, self._counts = np.zeros((2, self.parts, len(self._groups)))

    def _on_step(self) -> bool:
        env, size = source(self.training_env), self._sums.size
        of_part = np.arange(0, size, len(self._groups))[:, np.newaxis]
        cell = (env.interactions["group"].reshape(self.parts, -1) + of_part).ravel()
        self._sums += np.bincount(cell, env.agent_reward.ravel(), minlength=size).reshape(self._sums.shape)
        self._counts += np.bincount(cell, minlength=size).reshape(self._sums.shape)
        return True

    def named(self, part: int = 0) -> dict[str, float]:
        """Return the mean reward of each group in a part."""
        found = zip(self._groups, self._sums[part], self._counts[part], strict=True)
        return {f"{REWARD}[{name}]": total / count if count else np.nan for name, total, count in found}


class MeanReward(RolloutLog):
    """Logs the mean reward per row and step in each rollout."""

    def _on_rollout_start(self) -> None:
        self._sums, self._steps = np.zeros(self.parts), 0

    def _on_step(self) -> bool:
        self._sums += self.locals["rewards"].reshape(self.parts, -1).mean(axis=1, dtype=np.float64)
        self._steps += 1
        return True

    def named(self, part: int = 0) -> dict[str, float]:
        """Return the mean reward of a part."""
        return {REWARD: float(self._sums[part] / self._steps)}


class RolloutRates(RolloutLog):
    """Logs the rate of each group in the task, and their largest difference, in each rollout."""

    def _on_rollout_start(self) -> None:
        self._watched = Watched(source_of(self.training_env))
        self._rates = GroupRates(self._watched, parts=self.parts)

    def _on_step(self) -> bool:
        self._rates.add(self._watched.step(self.locals))
        return True

    def named(self, part: int = 0) -> dict[str, float]:
        """Return the rates and the difference in a part."""
        return self._rates.named(part)


class LearningCurve(BaseCallback):
    """Records the logged mean rewards of each group in each rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        logged = self.logger.name_to_value
        rewards = [value for name, value in logged.items() if name.startswith(f"{REWARD}[")]
        self.rows.append([self.num_timesteps, *rewards])


class RewardCurve(BaseCallback):
    """Records the mean reward of a step in equal parts of a training.

    Args:
        steps: Steps of the training.
        parts: Number of parts.
    """

    def __init__(self, steps: int, *, parts: int) -> None:
        super().__init__()
        self._steps, self._sums, self._counts = steps, np.zeros(parts), np.zeros(parts)

    def _on_step(self) -> bool:
        parts = len(self._sums)
        part = min((self.num_timesteps - 1) * parts // self._steps, parts - 1)
        self._sums[part] += self.locals["rewards"].mean(dtype=np.float64)
        self._counts[part] += 1
        return True

    @property
    def rewards(self) -> Floats:
        """The mean rewards, shape (parts,); NaN for a part without a step."""
        unknown: Floats = np.full(len(self._sums), np.nan)
        return np.divide(self._sums, self._counts, out=unknown, where=self._counts > 0)


class Progress(BaseCallback):
    """Advances a progress bar by the steps of all rows.

    Args:
        advance: Function that advances the bar.
        left: Remaining steps until the bar is full.
    """

    def __init__(self, advance: Advance, *, left: int) -> None:
        super().__init__()
        self._advance, self._left = advance, left

    def _on_step(self) -> bool:
        parts = min(self.training_env.num_envs, self._left)
        self._left -= parts
        self._advance(parts)
        return True
