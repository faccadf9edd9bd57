"""The environments that are evaluated: the rules of this package, and any Gymnasium environment with a record."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.assessment.policies import is_run, parameters_of_run, policy_of
from fair_envs.core import Lanes, Rules
from fair_envs.core.interactions import PREFIX
from fair_envs.evaluation import LanesWorld, ModelMismatchError, Policy, RandomPolicy, Transition, World, begun
from fair_envs.registration import TABLE, id_of, make_rules
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import checked, shown
from fair_envs.support.seeds import policy_numbers
from fair_envs.tasks import TASKS, AnyRules, Task, default_task, environment_id, parameters_of, task_of
from fair_envs.wrappers import Annotate
from fair_envs.wrappers.adapters.bound import Bound, is_transform, layers
from fair_envs.wrappers.adapters.others import may_change_rewards
from fair_envs.wrappers.adapters.own import own_rules

PLAIN = ("OrderEnforcing", "PassiveEnvChecker")  # wrappers of `gymnasium.make` that change nothing
OF_SB3 = ("Monitor", "VecMonitor", "VecNormalize")  # the same of Stable-Baselines3; models normalise for themselves


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """An environment to evaluate policies in.

    Attributes:
        env_id: Its id; the name of its class if it has none.
        rules: Its rules, or what is known of a user's own environment.
        task: What is measured.
        parameters: Its parameters that are not defaults, for the report; for an id, also those that were given.
        env: The environment that is played; None: the lanes of the rules are played.
        given: The Gymnasium environment from which the rules are; None: they are from an id, or were given themselves.
        seen: The rules with the record that the evaluation reads: labels are the ground truth where the rules know it.
    """

    env_id: str
    rules: AnyRules
    task: Task
    parameters: Mapping[str, Any] = field(default_factory=dict)
    env: Any = None
    given: Any = None

    @property
    def hidden(self) -> bool:
        """Whether the evaluation reads labels that the environment does not report at once, from `Rules.oracle`."""
        rules, spec = self.rules, self.rules.spec
        if self.env is not None or not isinstance(rules, Rules) or rules.multi_agent:
            return False
        if spec.feedback == "full" and not spec.only_accepted:
            return False
        return "feedback" in rules.oracle(np.zeros(1, rules.dtype).view(np.recarray))

    @property
    def seen(self) -> AnyRules:
        """The rules as the evaluation reads their record: with all labels, if they are known."""
        if not self.hidden:
            return self.rules
        found = copy.copy(self.rules)
        spec = replace(self.rules.spec, feedback="full", only_accepted=False, delay=0)
        vars(found)["spec"] = spec
        return found

    @property
    def action_space(self) -> gym.Space[Any]:
        """The space of the actions in a step, as changed by wrappers; that of one agent where lanes are played."""
        return self.rules.action_space(self.rules.params) if self.env is None else self.env.action_space

    @property
    def reward_wrapper(self) -> str:
        """The name of a wrapper that may change the rewards that the evaluation reads; empty: there is none."""
        own = self.env is None or isinstance(getattr(self.env.unwrapped, "lanes", None), Lanes)
        return "" if own else innermost(self.env)[1]

    def lanes(self, wanted: int) -> int:
        """Return the number of episodes that are played in parallel."""
        return wanted if self.env is None else 1

    def world(self, seeds: NDArray[np.uint64], policy: Policy, *, success: bool, threads: int) -> "AnyWorld":
        """Return a world at the start of an episode for each seed."""
        if self.env is not None:
            return SingleWorld(self.env, int(seeds[0]), success=success)
        lanes = begun(self.rules, seeds, threads=threads)  # type: ignore[arg-type]  # without `env`, they are rules
        return SeenWorld(lanes, append_group=policy.append_group, labels=self.hidden, success=success)

    def parts(
        self, seeds: NDArray[np.uint64], policy: Policy, *, lanes: int, success: bool = False, threads: int = 1
    ) -> "Iterator[Part]":
        """Yield the worlds in which an episode for each seed is played, ``lanes`` at once; each must be played first.

        All worlds have the same number of lanes; those of the last one that are left over repeat its last seed.
        """
        count = self.lanes(lanes)
        for first in range(0, len(seeds), count):
            some = seeds[first : first + count]
            padded = np.concatenate([some, np.repeat(some[-1:], count - len(some))])
            world = self.world(padded, policy, success=success, threads=threads)
            yield Part(first, len(some), world)


class Part(NamedTuple):
    """Some of the episodes that are played."""

    first: int  # the number of the first one
    episodes: int
    world: "AnyWorld"  # its further lanes are not played


def system_of(env: Any, *, task: Task | str | None = None, parameters: Mapping[str, Any] | None = None) -> System:
    """Return what is evaluated.

    Args:
        env: An id, rules, or an environment with any interface; see `fair_envs.assessment.evaluate`.
        task: The task, or the id of an environment whose task is used; None: the environment's own.
        parameters: Parameters of the environment, if it is given by its id.

    Raises:
        ValueError: The id is unknown, the environment has no record, it has wrappers that cannot be played, or
            parameters are given for an environment that exists already.
        TypeError: It is not an environment.
    """
    chosen = task_given(task)
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f"parameters must be a dict of values by name, got {parameters!r}")
    if isinstance(env, str):
        name = environment_id(env)
        own = chosen or task_of(name)
        values = own.merged(parameters or {}) if own.env_id == name else dict(parameters or {})
        return replace(system_of(exactly(name, values), task=own), env_id=name, parameters=values)
    if parameters:
        raise ValueError(f"parameters must be left out for an environment that exists, got {shown(parameters)}")
    if isinstance(env, Rules):
        return _of_rules(env, chosen)
    env = getattr(getattr(env, "unwrapped", None), "envs", [env])[0]  # of Stable-Baselines3's own batches
    if isinstance(env, gym.Env):
        return _of_env(env, chosen)
    lanes = getattr(getattr(env, "unwrapped", None), "lanes", None)
    if lanes is None:
        raise TypeError(
            f"env must be an id, rules or an environment with a record, got {env!r}; give a Gymnasium environment of "
            "your own a fair_spec with fair_envs.wrappers.Annotate"
        )
    if wrapper := _wrapper(env):
        raise ValueError(
            f"env must be a batch without wrappers, got one with {wrapper}; wrap the environment of gymnasium.make "
            "instead, which is played with its wrappers"
        )
    return _of_rules(lanes.rules, chosen)


def prepared(
    env: Any,
    policy: Any,
    *,
    task: Task | str | None = None,
    parameters: Mapping[str, Any] | None = None,
    deterministic: bool = False,
) -> tuple[System, Policy]:
    """Return what is evaluated, and the policy that plays in it.

    An environment that is given by its id has the parameters of the training if the policy is a run. For the arguments
    and errors, see `fair_envs.assessment.evaluate`.
    """
    system = _system(env, policy, task=task, parameters=parameters)
    likely = checked("deterministic", deterministic, bool)
    if isinstance(policy, str) and policy == "random" and not system.rules.multi_agent:
        return system, RandomPolicy(system.rules, space=system.action_space)
    with naming_task_parameters(system.task, system.env_id, system.parameters if isinstance(env, str) else {}):
        return system, policy_of(policy, system.rules, deterministic=likely)


def _system(env: Any, policy: Any, *, task: Task | str | None, parameters: Mapping[str, Any] | None) -> System:
    if isinstance(env, str) and isinstance(policy, str | Path) and is_run(str(policy)):
        env_id = environment_id(env)
        trained = parameters_of_run(Path(policy), env_id)
        if trained is not None:
            values = {**trained, **(parameters or {})}
            system = system_of(exactly(env_id, values), task=task_of(env_id) if task is None else task)
            return replace(system, env_id=env_id, parameters=values)
    return system_of(env, task=task, parameters=parameters)


def task_given(task: Task | str | None) -> Task | None:
    """Return a task that was given as itself or by the id of its environment.

    Raises:
        ValueError: The id is unknown.
        TypeError: It is something else.
    """
    found = task_of(task) if isinstance(task, str) else task
    if found is not None and not isinstance(found, Task):
        raise TypeError(f"task must be a Task or the id of an environment, got {task!r}")
    return found


def exactly(env_id: str, parameters: Mapping[str, Any]) -> Any:
    """Return the rules, or a user's own Gymnasium environment, with exactly these parameters.

    Raises:
        ValueError: A parameter is unknown or has a value outside its range.
    """
    if env_id in TABLE:
        return make_rules(env_id, **parameters)
    known = parameters_of(env_id)
    for given in parameters:
        if known is not None and given not in known:
            raise ValueError(f"parameters must be among {', '.join(known) or 'none'}, got {given!r}")
    return gym.make(env_id, **parameters)


def _of_rules(rules: Rules, task: Task | None) -> System:
    name = id_of(rules)
    if task is None:
        task = TASKS[name] if name in TASKS else default_task(name, rules)
    return System(env_id=name, rules=rules, task=task, parameters=changed_parameters(rules))


def _of_env(env: gym.Env[Any, Any], task: Task | None) -> System:
    """Return a system that plays a Gymnasium environment; without wrappers, the lanes of its rules."""
    base: Any = env.unwrapped
    own = isinstance(getattr(base, "lanes", None), Lanes)
    if own and not _wrapper(env) and base.focal_agent is None:
        return replace(_of_rules(base.lanes.rules, task), given=env)
    rules: AnyRules = base.lanes.rules if own else own_rules(env)
    if own and env.get_wrapper_attr("fair_spec") != rules.spec:  # a wrapper changes the record
        rules = copy.copy(rules)
        vars(rules)["spec"] = env.get_wrapper_attr("fair_spec")
    name = id_of(rules) if own else getattr(env.spec, "id", rules.name)  # type: ignore[arg-type]
    if task is None:
        task = TASKS[name] if name in TASKS else default_task(name, rules)
    given = changed_parameters(base.lanes.rules) if own else getattr(env.spec, "kwargs", {})
    return System(env_id=name, rules=rules, task=task, parameters=given, env=env)


def changed_parameters(rules: Rules) -> dict[str, Any]:
    """Return the parameters that differ from the defaults of the rules' profile, with the names of variant and profile.

    The two names are left out if they are the default ones.
    """
    env_id = id_of(rules)
    variants = make_rules(env_id).variants if env_id in TABLE else {}
    variant = next((name for name, kind in variants.items() if kind is type(rules)), None)
    given = {"profile": rules.params.profile} if rules.presets is not None else {}
    defaults = type(rules)(**given).params._asdict()
    found: dict[str, Any] = {} if variant is None else {"variant": variant}
    if given and given["profile"] != type(rules)().params.profile:
        found |= given
    return found | {name: value for name, value in rules.params._asdict().items() if value != defaults[name]}


@contextmanager
def naming_task_parameters(task: Task, env_id: str, parameters: Mapping[str, Any]) -> Iterator[None]:
    """Let an error about a model that does not fit name the parameters that the task sets, and what to do instead."""
    try:
        yield
    except ModelMismatchError as error:
        own = set_by_task(task, env_id, parameters)
        if not own:
            raise
        defaults = make_rules(env_id).params._asdict() if env_id in TABLE else parameters_of(env_id) or {}
        usual = {name: defaults.get(name) for name in own}
        raise ModelMismatchError(
            f"{error}; the task of {env_id} sets {listed(own)}, but gymnasium.make uses {listed(usual)}: set "
            "parameters to those of the training, or give the environment of the training instead of its id"
        ) from error


def set_by_task(task: Task | None, env_id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have the values of the environment's task."""
    own = task.parameters if task is not None and task.env_id == env_id else {}
    return {name: value for name, value in own.items() if name in parameters and parameters[name] == value}


def listed(parameters: Mapping[str, Any]) -> str:
    """Return parameters as text, such as ``"horizon=100, feedback=full"``."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def _wrapper(env: Any) -> str:
    """Return the name of a wrapper that may change what is played; empty if there is none."""
    inner = getattr(env, "env", getattr(env, "venv", None))
    while inner is not None:
        if type(env).__name__ not in (*PLAIN, *OF_SB3):
            return type(env).__name__
        env, inner = inner, getattr(inner, "env", getattr(inner, "venv", None))
    return ""


# Worlds ---------------------------------------------------------------------------------------------------------------


class SeenWorld(LanesWorld):
    """Lanes whose labels are read before each step, for the evaluation alone: policies do not receive them.

    Args:
        lanes: The lanes, at the start of their episodes.
        append_group: Whether observations end with the agent's group.
        labels: Whether labels are read from `Rules.oracle`.
        success: Whether the success of a team is read at the end of episodes.

    Attributes:
        labels: The labels of the people of the last step, shape (B, M), or None.
        success: Which lanes' teams have succeeded, shape (B,).
        probabilities: The action probabilities that the policy has reported, shape (B, agents, ..., A), or None.
    """

    probabilities: Floats | None = None

    def __init__(self, lanes: Lanes, *, append_group: bool, labels: bool, success: bool) -> None:
        super().__init__(lanes, append_group=append_group)
        self._read, self._succeeds = labels, success
        self.labels: Ints | None = None
        self.success: Flags = np.zeros(lanes.count, bool)

    def report(self, probabilities: Floats) -> None:
        """Keep the action probabilities of the next step."""
        self.probabilities = np.asarray(probabilities)

    def step(self, action: Any, active: Flags, episode: Ints) -> Transition:
        """Play one step of the active lanes."""
        lanes = self.lanes
        self.labels = np.asarray(lanes.rules.oracle(lanes.records)["feedback"]) if self._read else None
        step = super().step(action, active, episode)
        if self._succeeds and step.ended.any():
            self.success |= step.ended & lanes.rules.team_outcome(lanes.records).success
        return step


def as_given(action: NDArray[Any], space: gym.Space[Any]) -> Any:
    """Return the actions of all agents, shape (agents, ...), as a Gymnasium environment takes them."""
    if isinstance(space, gym.spaces.Discrete):
        return int(action.reshape(-1)[0])
    return action.reshape(space.shape).astype(space.dtype)


def innermost(env: Any) -> "tuple[Bound | None, str]":
    """Return the innermost transform of a user's own environment that changes rewards, and what may change them below.

    Returns:
        The transform, None: there is none; and the name of a wrapper that is not of this package, empty: none.
    """
    found, below = None, ""
    for layer in layers(env):
        if is_transform(layer) and layer.bound.transform.changes_reward:
            found, below = layer.bound, ""
        elif not (is_transform(layer) or isinstance(layer, Annotate)) and layer is not env.unwrapped:
            below = below or (type(layer).__name__ if may_change_rewards(layer) else "")
    return found, below


class SingleWorld(World):
    """One episode of a Gymnasium environment that reports the record, with its wrappers.

    Its rewards are those of the environment itself. In a user's own environment, they are those below the wrappers of
    this package.

    Args:
        env: The environment.
        seed: The seed of the episode, and of the random numbers that policies sample with.
        success: Whether the success of a team is read at the end of the episode.

    Attributes:
        labels: Always None.
        success: Whether the team has succeeded, shape (1,).
        probabilities: The action probabilities that the policy has reported, shape (1, 1, ..., A), or None.
    """

    count = 1
    labels: None = None
    probabilities: Floats | None = None

    def __init__(self, env: Any, seed: int, *, success: bool) -> None:
        self.env, self._seed, self._time, self._succeeds = env, seed, 0, success
        lanes = getattr(env.unwrapped, "lanes", None)
        self.lanes = lanes if isinstance(lanes, Lanes) else None
        self._changing = innermost(env)[0] if self.lanes is None else None
        self.success: Flags = np.zeros(1, bool)
        observation, _ = env.reset(seed=seed)
        self.observation = self._shown(observation)

    def uniforms(self) -> Floats:
        """Return random numbers, shape (1, agents), as a function of the seed and the time."""
        space = self.env.action_space
        several = isinstance(space, gym.spaces.MultiDiscrete)
        agents = 1 if self.lanes is None or self.env.unwrapped.focal_agent is not None else self.lanes.agents
        shape = (1, agents, *space.shape) if several and agents == 1 else (1, agents)
        return policy_numbers(self._seed, self._time).random(shape)

    def report(self, probabilities: Floats) -> None:
        """Keep the action probabilities of the next step."""
        self.probabilities = np.asarray(probabilities)

    def step(self, action: Any, active: Flags, episode: Ints) -> Transition:
        """Play one step.

        Raises:
            ValueError: The action has another shape.
        """
        space, numbers = self.env.action_space, np.asarray(action)
        if numbers.shape[:1] != (1,) or numbers.size != np.prod(space.shape or 1):
            wanted = (1, 1, *(space.shape or ()))
            raise ValueError(f"policy must return actions of shape {wanted}, got an array of shape {numbers.shape}")
        before = self.observation
        observation, reward, terminated, truncated, info = self.env.step(as_given(numbers[0], space))
        self._time += 1
        self.observation = self._shown(observation)
        ended = active & (terminated or truncated)
        if self._succeeds and ended[0] and self.lanes is not None:
            self.success = self.lanes.rules.team_outcome(self.lanes.records).success
        own = np.array(self._earned(reward, info), np.float64).reshape(1, -1)
        columns = {key: np.asarray(value)[np.newaxis] for key, value in info.items() if key.startswith(PREFIX)}
        return Transition(
            observation=before,
            action=action,
            reward=own,
            active=active,
            ended=ended,
            episode=episode,
            tell=lambda: columns,
        )

    def _earned(self, reward: Any, info: Any) -> Any:
        """Return the agents' rewards in the last step, given what wrappers return."""
        if self.lanes is not None:
            return self.env.unwrapped.own_reward
        return info.get("agent_reward", reward) if self._changing is None else self._changing.given

    def _shown(self, observation: Any) -> Any:
        if isinstance(observation, dict):
            return {key: np.asarray(part)[np.newaxis, np.newaxis] for key, part in observation.items()}
        return np.asarray(observation)[np.newaxis, np.newaxis]


AnyWorld = SeenWorld | SingleWorld
