"""What the contract is tested on: an environment, or a variant of it, in short episodes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.core import Rules
from fair_envs.faces.window import Window
from fair_envs.registration import find, make_rules
from fair_envs.testing.cases import Case
from fair_envs.testing.checks import Schema, schema
from fair_envs.testing.players import World, rules_of
from fair_envs.wrappers.adapters.own import fair_spec_of

HORIZON = 7
"""Steps of an episode, for environments made of rules."""

HAS_PYGAME = find_spec("pygame") is not None


@pytest.fixture(autouse=True)
def no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw windows nowhere and without waiting between frames, unless the user has chosen where."""
    if "SDL_VIDEODRIVER" not in os.environ:
        monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(Window, "wait", lambda window: None)


@dataclass(frozen=True)
class Kind:
    """One environment to test.

    Attributes:
        env_id: An id; ``"module:Id"`` for one that a module registers.
        parameters: Its parameters, including ``variant``; the others have their defaults.
    """

    env_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the name of a test's case."""
        return ":".join([self.env_id, *filter(None, [self.parameters.get("variant")])])

    @property
    def name(self) -> str:
        """The id without a module."""
        return self.env_id.rpartition(":")[2]

    @property
    def ruled(self) -> bool:
        """Whether the environment is made of rules."""
        return rules_of(self.env_id) is not None

    @property
    def module(self) -> Any:
        """The package with the interfaces of an environment made of rules."""
        return import_module(find(self.env_id).module)

    def rules(self) -> Rules:
        """Return new rules."""
        return make_rules(self.env_id, **self.parameters)

    def short(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of an interface: short episodes, the parameters, and the keywords."""
        return {**({"horizon": HORIZON} if self.ruled else {}), **self.parameters, **keywords}


def kinds_of(env_id: str) -> list[Kind]:
    """Return an environment and its variants, after checking that the contract can be tested on them.

    Raises:
        ValueError: There is no such environment, it has no record, or it does not have such short episodes.
        ImportError: Its module does not exist.
    """
    rules = rules_of(env_id)
    found = [Kind(env_id)] if rules is None else with_variants(env_id, rules)
    for kind in found:
        try:
            World(Case(env_id=env_id, interface="gym", parameters=kind.short({})))
        except ValueError as error:
            if rules is not None and "horizon" in str(error):
                raise ValueError(f"{kind} must accept horizon={HORIZON}, with which it is tested; {error}") from error
            raise
    return found


def with_variants(env_id: str, rules: type[Rules]) -> list[Kind]:
    """Return an environment made of rules, and its variants."""
    return [Kind(env_id), *(Kind(env_id, {"variant": variant}) for variant in rules.variants)]


def draws(kind: Kind) -> bool:
    """Return whether pictures of the environment can be drawn."""
    if not (HAS_PYGAME and kind.ruled):
        return False
    rules = kind.rules()
    return bool(rules.drawn_by) or type(rules).renderer is not Rules.renderer


def single(kind: Kind, **keywords: Any) -> Any:
    """Return the interface of `gymnasium.make`."""
    return gym.make(kind.env_id, **kind.short(keywords))


def play_single(env: gym.Env[Any, Any], *, seed: int, steps: int) -> list[Any]:
    """Return all that an episode returns, with the actions that this seed samples; it goes on after an end."""
    env.action_space.seed(seed)
    played: list[Any] = [env.reset(seed=seed)]
    for _ in range(steps):
        played.append(env.step(env.action_space.sample()))
        if played[-1][2] or played[-1][3]:
            played.append(env.reset())
    return played


def expected_info(env: Any) -> Schema:
    """Return dtype and shape of each key that the ``info`` of an environment has."""
    expected: dict[str, Any] = schema(fair_spec_of(env))
    lanes = getattr(env.unwrapped, "lanes", None)
    rules = getattr(lanes, "rules", None)
    if isinstance(rules, Rules):
        agents = (rules.agents(rules.params),)
        expected |= {"agent_reward": (np.float64, agents)} if rules.multi_agent else {}
        expected |= {"agent_active": (np.int8, agents)} if rules.leaving_field is not None else {}
    return expected
