"""What several tests need: every environment there is, comparison of whatever a face returns, scenes set by hand."""

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from fair_envs import TABLE
from fair_envs.core import Lanes, Rules, draws
from fair_envs.core.compilation import COMPILED
from fair_envs.envs.harvest.rules import BLUE, RED, Harvest
from fair_envs.evaluation import Policy, Transition, World
from fair_envs.support.aliases import Floats, Pixels
from fair_envs.testing.checks import arrays_in, assert_same
from fair_envs.testing.contract.kinds import Kind, play_single, with_variants


def uncompiled(test: Any) -> Any:
    """Let a test run with NUMBA_DISABLE_JIT=1 alone: it has lanes of its own layout, which take seconds to compile."""
    skipped = pytest.mark.skipif(COMPILED, reason="a layout of its own; it runs with NUMBA_DISABLE_JIT=1")
    return pytest.mark.nojit(skipped(test))


TOYS = {
    "FairChoices-v0": "tests.choices",
    "FairCountdown-v0": "tests.toys",
    "FairFerry-v0": "tests.ferry",
    "FairLeavers-v0": "tests.leavers",
}
"""Small environments of other kinds: actions of several entries, early ends of all or of some, a decision-maker."""

CHANGED: Mapping[str, Mapping[str, Any]] = {"FairAttention-v0": {"window": 4}}
"""Parameters with which the short episodes of tests are longer than a window, which then forgets its oldest step."""


def kinds() -> list[Kind]:
    """Return every registered id and each of its variants, and the toys."""
    found = []
    for env_id, home in ({env_id: entry.module for env_id, entry in TABLE.items()} | TOYS).items():
        for kind in with_variants(env_id, importlib.import_module(home).Env.rules):
            found.append(replace(kind, parameters={**kind.parameters, **CHANGED.get(env_id, {})}))
    return found


def digest(*arrays: Any) -> str:
    """Return a short hash of the arrays' values."""
    found = sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def begun(rules: Rules, *, seed: int) -> Lanes:
    """Return a lane at the start of the first episode of a seed."""
    lanes = Lanes(rules, 1)
    lanes.seed(seed)
    lanes.restart()
    return lanes


def plain(text: str) -> str:
    """Return text without a terminal's escape codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def grey(picture: Pixels) -> Floats:
    """Return the lightness of each pixel, 0 to 255."""
    return np.asarray(picture @ np.array([0.299, 0.587, 0.114]))


CLOCK = ("time/fps", "time/time_elapsed")
"""Metrics of trainings that depend on the time of day."""


# ------------------------------------------------------------------------------------------- scenes of the harvest

STILL = {"red_bushes": 3, "blue_bushes": 0, "growth_interval": 0, "lifespan": 0}
"""No bush grows or dies, and there is room for three."""

NARROW: Mapping[str, Any] = {"width": 4, "height": 3, "red_bushes": 10}
"""With two agents, the layout of tests/test_core.py: scenes of many lanes are compiled, and share it."""

LITTLE: dict[str, Any] = {
    "agents": 8,
    "width": 7,
    "height": 5,
    "red_bushes": 4,
    "blue_bushes": 4,
    "lifespan": 20,
    "horizon": 12,
}
"""A small harvest in which agents meet; most tests that play the harvest share its layout."""


class Agent(NamedTuple):
    """An agent of a scene."""

    x: int
    y: int
    preference: int = RED
    sensitive: int = 0
    skilled: int = 0


class Bush(NamedTuple):
    """A bush of a scene."""

    x: int
    y: int
    colour: int = RED
    ripe: int = 0


def scene(agents: Sequence[Agent], bushes: Sequence[Bush] = (), *, lanes: int = 1, **parameters: Any) -> Lanes:
    """Return lanes that hold these agents and bushes and nothing else, at time 0 of the episode of seed 0, 1, ..."""
    batch = Lanes(Harvest(**{**STILL, "agents": len(agents), **parameters}), lanes)
    batch.seed(0)
    batch.restart()
    arrange(batch, agents, bushes)
    return batch


def arrange(batch: Lanes, agents: Sequence[Agent], bushes: Sequence[Bush]) -> None:
    """Put these agents and bushes in place of all that stands in the lanes."""
    records = batch.records
    records["cell"] = 0
    for i, agent in enumerate(agents):
        for name, value in agent._asdict().items():
            records[name][:, i] = value
        records["cell"][:, agent.x, agent.y] = 1 + i
    for k, bush in enumerate(bushes):
        for name, value in (("bush_x", bush.x), ("bush_y", bush.y), ("colour", bush.colour), ("ripe", bush.ripe)):
            records[name][:, k] = value
        records["age"][:, k] = records["unripe_for"][:, k] = 0
        records["cell"][:, bush.x, bush.y] = 1 + len(agents) + k
    records["bushes"] = len(bushes)
    batch.observe()


def act(batch: Lanes, *actions: int) -> list[float]:
    """Play one step in which every lane's agents take these actions; return the rewards in the first lane."""
    reward: list[float] = batch.advance(np.tile(np.array(actions), (batch.count, 1))).reward[0].tolist()
    return reward


def bush_state(batch: Lanes, field: str) -> list[int]:
    """Return a field of the bushes that stand in the first lane."""
    values: list[int] = batch.records[field][0, : batch.records["bushes"][0]].tolist()
    return values


def place(batch: Lanes, agent: int = 0) -> tuple[int, int]:
    """Return where an agent of the first lane stands, (x, y)."""
    return int(batch.records["x"][0, agent]), int(batch.records["y"][0, agent])


__all__ = ["BLUE", "CLOCK", "LITTLE", "NARROW", "RED", "STILL", "Agent", "Bush", "Kind", "act", "arrange", "arrays_in"]
__all__ += ["assert_same", "begun", "bush_state", "digest", "grey", "kinds", "place", "plain", "play_single", "scene"]


P = TypeVar("P", bound=Policy)


def playing(policy: P, env: Any) -> P:
    """Return a policy that has been started in an environment, or with its lanes."""
    world = World()
    world.lanes = env if isinstance(env, Lanes) else env.unwrapped.lanes
    world.count = world.lanes.count
    policy.start(world)
    return policy


def actions(policy: Policy, lanes: Lanes) -> NDArray[Any]:
    """Return what a policy does in lanes, shape (B, agents, ...)."""
    return playing(policy, lanes).act(lanes.observe(), draws(lanes))


def earned(rewards: ArrayLike, active: ArrayLike) -> Transition:
    """Return a step of a decision-maker with these rewards, shape (B, objectives), in which these lanes played."""
    given, played = np.asarray(rewards, float), np.asarray(active, bool)
    return Transition(
        observation=None,
        action=None,
        reward=given[:, np.newaxis],
        active=played,
        ended=np.zeros_like(played),
        episode=np.arange(len(played)),
    )


def markdown_rows(table: str) -> list[list[str]]:
    """Return the cells of a table in Markdown: its header, and its rows."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in (lines[0], *lines[2:])]
