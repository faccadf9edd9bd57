"""Plays an environment for people: in a window, with one agent on the keyboard, or into a film."""

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.aliases import Flags, Floats, Ints, OnProgress
from fair_envs.core import Rules
from fair_envs.envs.harvest import melting_pot
from fair_envs.envs.harvest import rules as harvest
from fair_envs.evaluation import Policy, World, scenes
from fair_envs.faces.window import Window, import_pygame

KEYS: Mapping[str, Mapping[str, int]] = {
    "harvest": {
        "up": harvest.UP,
        "down": harvest.DOWN,
        "left": harvest.LEFT,
        "right": harvest.RIGHT,
        "space": harvest.USE,
        "r": harvest.RECOLOUR,
        "o": harvest.OBSTRUCT,
        "e": harvest.RIPEN,
    },
    "harvest_melting_pot": {
        "up": melting_pot.FORWARD,
        "down": melting_pot.BACKWARD,
        "a": melting_pot.STEP_LEFT,
        "d": melting_pot.STEP_RIGHT,
        "left": melting_pot.TURN_LEFT,
        "right": melting_pot.TURN_RIGHT,
        "space": melting_pot.ZAP,
        "1": melting_pot.PLANT_RED,
        "2": melting_pot.PLANT_GREEN,
        "3": melting_pot.PLANT_BLUE,
    },
}
"""Which key takes which action, by the rules' name; other environments have the digits."""

MARK = (230, 0, 180)  # colour of the box around the agent on the keyboard
MARK_WIDTH = 3  # pixels


def keys_of(rules: Rules) -> dict[str, int]:
    """Return which key takes which action.

    Raises:
        ValueError: The actions are not discrete.
    """
    space = rules.action_space(rules.params)
    if not isinstance(space, gym.spaces.Discrete):
        raise ValueError(f"agent must be none for an environment without discrete actions, got {space}")
    digits = {str(k): k for k in range(min(int(space.n), 10))}
    return {key: action for key, action in KEYS.get(rules.name, digits).items() if action < space.n}


def described_keys(rules: Rules) -> dict[str, str]:
    """Return what each key does, in words where the environment names its actions."""
    names = getattr(sys.modules[type(rules).__module__], "ACTION_NAMES", None)
    return {key: names[action] if names else f"action {action}" for key, action in keys_of(rules).items()}


class Keyboard:
    """Turns keys into the actions of one agent: the key pressed last since the step before, or one held down.

    Args:
        rules: The environment; None: nobody is on the keyboard, and only leaving is noticed.
    """

    def __init__(self, rules: Rules | None) -> None:
        self._pygame = import_pygame()
        keys = {} if rules is None else keys_of(rules)
        self._actions = {self._pygame.key.key_code(name): action for name, action in keys.items()}
        self.left = False  # whether the player has closed the window or pressed escape

    def action(self) -> int:
        """Return the action; 0 without a key that means one."""
        pressed = [key for key, down in self._events() if down and key in self._actions]
        if pressed:
            return self._actions[pressed[-1]]
        held = self._pygame.key.get_pressed()
        return next((action for key, action in self._actions.items() if held[key]), 0)

    def _events(self) -> Iterator[tuple[int, bool]]:
        """Yield the keys pressed or let go since the last call; note whether the player has left."""
        pygame = self._pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                self.left = True
            elif event.type in (pygame.KEYDOWN, pygame.KEYUP):
                yield event.key, event.type == pygame.KEYDOWN


def agent_index(rules: Rules, agent: str) -> int | None:
    """Return the index of an agent as PettingZoo names it; None for ``"none"``.

    Raises:
        ValueError: There is no such agent.
    """
    names = [f"agent_{i}" for i in range(rules.agents(rules.params))]
    if agent == "none":
        return None
    if agent not in names:
        raise ValueError(f"agent must be none or one of agent_0 to {names[-1]}, got {agent!r}")
    return names.index(agent)


class OnKeyboard(Policy):
    """A policy with one agent on the keyboard.

    Args:
        policy: How the others play.
        keyboard: Where the agent's actions come from; it is read in every step.
        agent: Its index; None: the policy plays all agents.
    """

    def __init__(self, policy: Policy, keyboard: Keyboard, agent: int | None) -> None:
        self._policy, self._keyboard, self._agent = policy, keyboard, agent
        self.append_group = policy.append_group

    def start(self, world: World) -> None:
        """Prepare the policy."""
        self._policy.start(world)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Prepare the policy for new episodes."""
        self._policy.begin(mask, episodes)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the policy's actions and the agent's own."""
        actions = np.array(self._policy.act(observation, uniforms))
        own = self._keyboard.action()
        if self._agent is not None:
            actions[0, self._agent] = own
        return actions


def play_in_window(
    rules: Rules, policy: Policy, *, seed: int, agent: int | None = None, steps: int | None = None
) -> None:
    """Show episodes in a window until it is closed.

    Args:
        rules: The environment.
        policy: How the agents play.
        seed: Of the first episode.
        agent: Index of the agent on the keyboard, or None.
        steps: Steps after which it ends by itself, or None.
    """
    window = Window(title=f"fair-envs: {rules.name}", fps=rules.fps)
    keyboard = Keyboard(None if agent is None else rules)
    renderer = rules.renderer()
    try:
        for lane in islice(scenes(rules, OnKeyboard(policy, keyboard, agent), seed=seed), steps):
            if keyboard.left:
                break
            window.show(marked(renderer.frame(lane), renderer, lane, agent))
    finally:
        window.close()


def pictures(
    rules: Rules, policy: Policy, *, seed: int, count: int, each: OnProgress = lambda: None
) -> Iterator[NDArray[np.uint8]]:
    """Yield a picture of each of so many steps, shape (height, width, 3); call ``each`` after it."""
    renderer = rules.renderer()
    for lane in islice(scenes(rules, policy, seed=seed), count):
        yield renderer.frame(lane)
        each()


def save_film(frames: Iterator[NDArray[np.uint8]], path: Path, *, fps: int) -> None:
    """Save pictures as a film; the name's ending chooses the format.

    Raises:
        ImportError: imageio is missing; the message says how to install it.
    """
    try:
        import imageio.v3 as imageio
    except ImportError as error:
        raise ImportError("films need imageio; install it with: pip install 'fair-envs[render]'") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    imageio.imwrite(path, list(frames), duration=1000 / fps, loop=0)


def marked(frame: NDArray[np.uint8], renderer: Any, lane: Any, agent: int | None) -> NDArray[np.uint8]:
    """Return the picture of a world of cells with a box around the agent; other pictures as they are."""
    from fair_envs.envs.drawing import MARGIN, GridRenderer

    if agent is None or not isinstance(renderer, GridRenderer) or lane["x"][agent] < 0:
        return frame
    left, top = (MARGIN + int(lane[axis][agent]) * renderer.cell for axis in ("x", "y"))
    cell = frame[top : top + renderer.cell, left : left + renderer.cell]
    for edge in (slice(None, MARK_WIDTH), slice(-MARK_WIDTH, None)):
        cell[edge] = cell[:, edge] = MARK
    return frame
