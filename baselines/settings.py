"""Settings shared by several methods, and the checks of all settings."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_type_hints

from fair_envs.metrics.group import Groups
from fair_envs.support.parameters import (
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    Range,
    UnitInterval,
    checked,
    setting,
)
from fair_envs.support.seeds import LANES_EACH
from fair_envs.tasks import environment_id, task_of


def cpu_only(name: str, device: Any) -> str:
    """Return the only supported device.

    Raises:
        ValueError: It is another device.
    """
    if device != "cpu":
        raise ValueError(f"{name} must be 'cpu', got {device!r}; networks of these sizes train faster on a CPU")
    return "cpu"


Activation = Literal["tanh", "relu"]

Device = Annotated[Literal["cpu"], cpu_only]
"""Device of the networks: networks of these sizes train faster on a CPU, where training is also reproducible."""

COMMON: Mapping[str, str] = {
    "lanes": "Environments that are played in parallel.",
    "sharing": "Which agents share an actor and a critic: no agents (none), each group (groups) or all agents (all).",
    "skip_idle": "Whether steps in which an agent had no turn are excluded from the policy loss.",
    "reward_scale": "Factor by which rewards are multiplied in training.",
    "n_steps": "Steps of each lane in a rollout.",
    "batch_size": "Size of a minibatch.",
    "n_epochs": "Passes over each rollout.",
    "learning_rate": "Learning rate of Adam.",
    "gamma": "Discount factor.",
    "gae_lambda": "Lambda of generalised advantage estimation.",
    "clip_range": "Clipping range of PPO's probability ratio around 1.",
    "ent_coef": "Weight of the entropy bonus.",
    "vf_coef": "Weight of the value loss.",
    "activation": "Activation function after each layer of the networks.",
    "max_grad_norm": "Norm at which gradients are clipped.",
    "seed": "Seed of the networks, the environment and all random draws.",
    "threads": "Number of threads for PyTorch and the environment.",
    "eval_freq": "Steps between two evaluations, in the unit of --total-timesteps; they are logged beside the metrics. "
    "0 disables them.",
    "eval_episodes": "Number of episodes of each of these evaluations.",
    "device": "Device of the networks; only the CPU is supported, on which networks of this size train fastest.",
}
"""Help texts of settings that have the same meaning in several methods, by name."""


GROUPS_HELP = "Groups that are compared: sensitive attributes, or one group against all others, as in continent=NA."


def compared_groups(groups: Sequence[str]) -> Groups:
    """Return groups of a setting, as `fair_envs.metrics.group.group_members` takes them; None: there are none.

    Args:
        groups: Names of sensitive attributes, or criteria such as ``"gender=woman"``.

    Raises:
        ValueError: There are both, or two criteria for one attribute.
    """
    if len({"=" in entry for entry in groups}) > 1:
        raise ValueError(f"groups must be attributes or criteria such as gender=woman, not both, got {groups}")
    if groups and "=" in groups[0]:
        criteria = [entry.split("=", 1) for entry in groups]
        attributes = [attribute for attribute, _ in criteria]
        if twice := [name for name in attributes if attributes.count(name) > 1]:
            raise ValueError(
                f"groups must name each attribute once, got {', '.join(groups)}; to compare all values, use {twice[0]}"
            )
        return dict(criteria)
    return tuple(groups) or None


def plain_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as plain data that survives a round trip through JSON."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ValueError(f"{name} must map names to values, got {given!r}")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain only numbers, strings and booleans, got {given!r}") from error
    return plain


def known_environment(name: str, env_id: Any) -> str:
    """Return the id of an environment; ``"module:Id-v0"`` imports the module that registers it.

    Raises:
        ValueError: Neither this package nor Gymnasium knows the id.
    """
    return environment_id(checked(name, env_id, str))


Parameters = Annotated[Mapping[str, Any], plain_parameters]
"""Parameters of an environment, which can be stored as JSON."""


def check_fields(settings: Any) -> None:
    """Check the fields of a dataclass by their annotated types, and store them as those types' own values.

    Call it in the ``__post_init__`` of a class of settings.

    Raises:
        ValueError: A value has the wrong kind, is outside its range, or cannot be stored as JSON, or the environment
            is unknown.
    """
    for name, kind in get_type_hints(type(settings), include_extras=True).items():
        object.__setattr__(settings, name, checked(name, getattr(settings, name), kind))


def plain_settings(config: Any) -> dict[str, Any]:
    """Return settings as plain data that survives a round trip through JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    return plain


def plain_defaults(config: Any) -> dict[str, Any]:
    """Return the defaults of settings as plain data; runs that are older than a setting were trained with its default.

    Args:
        config: The settings.
    """
    defaults = {one.name: one.default for one in dataclasses.fields(config) if one.default is not dataclasses.MISSING}
    plain: dict[str, Any] = json.loads(json.dumps(defaults))
    return plain


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """Settings that every method has. Subclasses are frozen dataclasses that add fields made with `setting`.

    Attributes:
        env_id: Id of the environment, registered with this package or only with Gymnasium.
        parameters: Parameters of the environment.
        algorithm: Name of the method.

    Raises:
        ValueError: A value does not have the annotated type, see `check_fields`.
    """

    env_id: Annotated[str, known_environment]
    parameters: Parameters = field(default_factory=dict)
    algorithm: str = ""

    def __post_init__(self) -> None:
        """Check the settings."""
        check_fields(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain data that survives a round trip through JSON."""
        return plain_settings(self)


@dataclass(frozen=True, kw_only=True)
class OnPolicySettings(MethodSettings):
    """Settings of rollouts and of PPO's updates, whatever the networks; the defaults are for decision-makers.

    Raises:
        ValueError: A value is outside its range.
    """

    steps: PositiveInt = setting(200_000, "Steps of the learner's rows to train for, rounded up to whole rollouts.")
    # The rollouts
    lanes: PositiveInt = setting(8, COMMON["lanes"])
    n_steps: PositiveInt = setting(256, COMMON["n_steps"])
    reward_scale: Positive = setting(1.0, COMMON["reward_scale"])
    # PPO
    batch_size: Annotated[int, Range(2)] = setting(256, COMMON["batch_size"])
    n_epochs: PositiveInt = setting(10, COMMON["n_epochs"])
    learning_rate: Positive = setting(3e-4, COMMON["learning_rate"])
    gamma: UnitInterval = setting(0.99, COMMON["gamma"])
    gae_lambda: UnitInterval = setting(0.95, COMMON["gae_lambda"])
    clip_range: Positive = setting(0.2, COMMON["clip_range"])
    ent_coef: NonNegative = setting(0.0, COMMON["ent_coef"])
    vf_coef: NonNegative = setting(0.5, COMMON["vf_coef"])
    max_grad_norm: Positive = setting(0.5, COMMON["max_grad_norm"])
    activation: Activation = setting("tanh", COMMON["activation"])
    # The machine
    seed: Annotated[int, Range(0, 2**20 - 1)] = setting(0, COMMON["seed"])
    threads: PositiveInt = setting(1, COMMON["threads"])
    device: Device = setting("cpu", COMMON["device"])
    # Evaluations in the course of the training
    eval_freq: NonNegativeInt = setting(0, COMMON["eval_freq"])
    eval_episodes: PositiveInt = setting(10, COMMON["eval_episodes"])

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if self.lanes > LANES_EACH:
            raise ValueError(f"lanes must be at most {LANES_EACH}, got {self.lanes}")

    def of_learner(self) -> dict[str, Any]:
        """Return the arguments of a Stable-Baselines3 PPO that are the same in every method."""
        names = "n_steps batch_size n_epochs learning_rate gamma gae_lambda clip_range ent_coef vf_coef max_grad_norm"
        return {**{name: getattr(self, name) for name in f"{names} seed".split()}, "device": "cpu"}


@dataclass(frozen=True, kw_only=True)
class PPOSettings(OnPolicySettings):
    """Settings of a PPO whose actor and critic have layers of the same sizes."""

    net_arch: Sequence[PositiveInt] = setting((64, 64), "Sizes of the layers of each actor and critic.")


FOR_AGENTS: Mapping[str, Any] = {
    "activation": "tanh",
    "n_steps": 100,
    "reward_scale": 0.1,
    "batch_size": 4096,
    "n_epochs": 5,
    "learning_rate": 1e-3,
    "ent_coef": 0.01,
    "sharing": "groups",
    "critic_epochs": 1,  # rollouts are larger, so one pass has the updates of two passes for a decision-maker
}
"""Recommended settings where the agents are the affected people, and rows are agents."""

FOR_DECISIONS: Mapping[str, Any] = {
    "activation": "tanh",
    "lanes": 32,
    "n_steps": 128,
    "reward_scale": 1.0,
    "batch_size": 512,
    "n_epochs": 6,
    "learning_rate": 1e-3,
    "ent_coef": 0.003,
    "sharing": "all",
}
"""Recommended settings for a decision-maker, where rows are lanes."""

RECOMMENDED: Mapping[str, str] = {
    "recommended": "the task's parameters and steps; for a decision-maker also "
    + ", ".join(f"{name} {value}" for name, value in FOR_DECISIONS.items())
}
"""The presets of a method whose only preset is `recommended`."""

SET_BY_RECOMMENDED = frozenset({*FOR_AGENTS, *FOR_DECISIONS, "steps"})
"""The settings that `recommended` chooses."""


def recommended(settings: type[MethodSettings], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recommended settings of a training, for the settings given so far.

    They are the parameters of the environment's task, of which given ones override single ones, its training budget,
    and `FOR_AGENTS` or `FOR_DECISIONS`.

    Args:
        settings: The method's class of settings; only its fields are returned.
        given: The given settings, with ``env_id``.

    Raises:
        ValueError: The environment is unknown, or a parameter is outside its range.
    """
    task = task_of(given["env_id"])
    parameters = task.merged(given.get("parameters", {}))
    own = FOR_AGENTS if task.rules(**parameters).multi_agent else FOR_DECISIONS
    known = {one.name for one in dataclasses.fields(settings)}
    return {name: value for name, value in {**own, "steps": task.steps}.items() if name in known} | {
        "parameters": parameters
    }


def recommended_preset(
    settings: type[MethodSettings], **own: Any
) -> Callable[[str, Mapping[str, Any]], dict[str, Any]]:
    """Return the function ``preset`` of a method whose only preset is `recommended`; own values override it."""

    def preset(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        checked("preset", name, Literal["recommended"])
        return {**recommended(settings, given), **own}

    return preset
