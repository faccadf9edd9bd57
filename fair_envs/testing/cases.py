"""One case of the fuzzer: everything that determines what is played, as text that replays it."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

INTERFACES = (
    "gym",
    "gym-focal",
    "vector-next-step",
    "vector-same-step",
    "vector-disabled",
    "parallel",
    "aec",
    "sb3-lanes",
    "sb3-agents",
)
"""The interfaces; see `fair_envs.testing.players`."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A case to play.

    Attributes:
        env_id: The environment, as the user named it.
        interface: One of `INTERFACES`.
        parameters: The environment's parameters, including ``variant``; the others have their defaults.
        wrapper: One of `fair_envs.testing.players.WRAPPERS`, or None.
        lanes: Number of lanes played at once.
        threads: Number of threads that share them.
        seed: Everything random in the case depends on it.
        calls: Number of steps that each lane plays.
    """

    env_id: str
    interface: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    wrapper: str | None = None
    lanes: int = 1
    threads: int = 1
    seed: int = 0
    calls: int = 100

    @property
    def command(self) -> str:
        """The command that plays only this case."""
        reported = asdict(self)
        env_id = reported.pop("env_id")
        usual = {field.name: field.default for field in fields(self)}
        text = json.dumps({name: value for name, value in reported.items() if value != usual[name] and value != {}})
        return f"python -m fair_envs.testing.fuzz {shlex.quote(env_id)} --case {shlex.quote(text)}"

    @classmethod
    def of_text(cls, env_id: str, text: str) -> "Case":
        """Return the case described by a command's text.

        Raises:
            ValueError: The text does not describe a case.
        """
        names = [field.name for field in fields(cls) if field.name != "env_id"]
        try:
            reported = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"case must be an object in JSON, got {text!r}") from error
        if not isinstance(reported, dict) or "interface" not in reported or not set(reported) <= set(names):
            raise ValueError(f"case must be an object with interface and any of {', '.join(names)}, got {text!r}")
        if reported["interface"] not in INTERFACES:
            raise ValueError(f"interface must be one of {', '.join(INTERFACES)}, got {reported['interface']!r}")
        return cls(env_id=env_id, **reported)
