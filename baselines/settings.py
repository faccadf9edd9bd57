"""Settings shared by several methods, and the checks of all settings."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_type_hints

from fair_envs.registration import known_id
from fair_envs.support.parameters import checked


def cpu_only(name: str, device: Any) -> str:
    """Return the only supported device.

    Raises:
        ValueError: It is another device.
    """
    if device != "cpu":
        raise ValueError(f"{name} must be 'cpu', got {device!r}; networks of these sizes train faster on a CPU")
    return "cpu"


Device = Annotated[Literal["cpu"], cpu_only]
"""Device of the networks: networks of these sizes train faster on a CPU, where training is also reproducible."""

COMMON: Mapping[str, str] = {
    "n_steps": "Steps of each lane in a rollout.",
    "batch_size": "Size of a minibatch.",
    "n_epochs": "Passes over each rollout.",
    "learning_rate": "Learning rate of Adam.",
    "gamma": "Discount factor.",
    "gae_lambda": "Lambda of generalised advantage estimation.",
    "clip_range": "Clipping range of PPO's probability ratio around 1.",
    "ent_coef": "Weight of the entropy bonus.",
    "vf_coef": "Weight of the value loss.",
    "max_grad_norm": "Norm at which gradients are clipped.",
    "seed": "Seed of the networks, the environment and all random draws.",
    "threads": "Number of threads for PyTorch and the environment.",
    "eval_freq": "Steps between two evaluations, in the unit of --total-timesteps; they are logged beside the metrics. "
    "0 disables them.",
    "eval_episodes": "Number of episodes of each of these evaluations.",
    "device": "Device of the networks; only the CPU is supported, on which networks of this size train fastest.",
}
"""Help texts of settings that have the same meaning in several methods, by name."""


def plain_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as plain data that survives a round trip through JSON."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ValueError(f"{name} must map names to values, got {given!r}")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain only numbers, strings and booleans, got {given!r}") from error
    return plain


def registered_id(name: str, env_id: Any) -> str:
    """Return a registered id; ``"module:Id-v0"`` imports the module that registers it.

    Raises:
        ValueError: It is not the id of an environment.
    """
    return known_id(checked(name, env_id, str))


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


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """Settings that every method has. Subclasses are frozen dataclasses that add fields made with `setting`.

    Attributes:
        env_id: Id of the environment.
        parameters: Parameters of the environment.
        algorithm: Name of the method.

    Raises:
        ValueError: A value does not have the annotated type, see `check_fields`.
    """

    env_id: Annotated[str, registered_id]
    parameters: Parameters = field(default_factory=dict)
    algorithm: str = ""

    def __post_init__(self) -> None:
        """Check the settings."""
        check_fields(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain data that survives a round trip through JSON."""
        return plain_settings(self)
