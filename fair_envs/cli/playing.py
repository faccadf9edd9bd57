"""Shows an environment in a window, with one agent controlled by the keyboard, or saves an animation."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.evaluation import Policy, World, scenes
from fair_envs.faces.window import Window, import_pygame
from fair_envs.support.aliases import Flags, Floats, Ints, OnProgress
from fair_envs.support.extras import need


def keys_of(rules: Rules) -> dict[str, int]:
    """Return the action of each key.

    Raises:
        ValueError: The actions are not discrete.
    """
    space = rules.action_space(rules.params)
    if not isinstance(space, gym.spaces.Discrete):
        raise ValueError(f"agent must be none for an environment without discrete actions, got {space}")
    digits = {str(k): k for k in range(min(int(space.n), 10))}
    return {key: action for key, action in (rules.keys or digits).items() if action < space.n}


def can_be_controlled(rules: Rules) -> bool:
    """Return whether there is a key for each action of an agent."""
    space = rules.action_space(rules.params)
    return isinstance(space, gym.spaces.Discrete) and len(keys_of(rules)) == space.n


def described_keys(rules: Rules) -> dict[str, str]:
    """Return what each key does, with the names of the actions if the environment has names."""
    names = rules.action_names
    return {key: names[action] if names else f"action {action}" for key, action in keys_of(rules).items()}


class PlayerLeftError(Exception):
    """The player has closed the window or pressed escape while a decision was awaited."""


PAUSE = 20  # milliseconds between two looks at the keyboard


class Keyboard:
    """Turns keys into the actions of one agent: the key pressed last since the previous step, or a key held down.

    Args:
        rules: The environment; None: no agent uses the keyboard, and only closing the window is noticed.
    """

    def __init__(self, rules: Rules | None) -> None:
        self._pygame = import_pygame()
        keys = {} if rules is None else keys_of(rules)
        self._actions = {self._pygame.key.key_code(name): action for name, action in keys.items()}
        self.left = False  # whether the player has closed the window or pressed escape

    def action(self) -> int:
        """Return the action; 0 if no key with an action is pressed."""
        pressed = [key for key, down in self._events() if down and key in self._actions]
        if pressed:
            return self._actions[pressed[-1]]
        held = self._pygame.key.get_pressed()
        return next((action for key, action in self._actions.items() if held[key]), 0)

    def wait(self) -> int:
        """Return the action of the next key that has one.

        Raises:
            PlayerLeftError: The window was closed, or escape was pressed.
        """
        while True:
            pressed = [key for key, down in self._events() if down and key in self._actions]
            if self.left:
                raise PlayerLeftError
            if pressed:
                return self._actions[pressed[-1]]
            self._pygame.time.wait(PAUSE)

    def _events(self) -> Iterator[tuple[int, bool]]:
        """Yield the keys pressed or released since the last call; record whether the player has left."""
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
        known = f"one of agent_0 to {names[-1]}" if len(names) > 1 else names[0]
        raise ValueError(f"agent must be none or {known}, got {agent!r}")
    return names.index(agent)


class OnKeyboard(Policy):
    """A policy with one agent controlled by the keyboard.

    Args:
        policy: The policy of the other agents.
        keyboard: The source of the agent's actions; it is read in every step.
        agent: Index of the agent; None: the policy controls all agents.
        waits: Whether each step waits for a key, as decisions about people do; otherwise time goes on without one.
    """

    def __init__(self, policy: Policy, keyboard: Keyboard, agent: int | None, *, waits: bool = False) -> None:
        self._policy, self._keyboard, self._agent, self._waits = policy, keyboard, agent, waits
        self.append_group = policy.append_group

    def start(self, world: World) -> None:
        """Prepare the policy."""
        self._policy.start(world)

    def begin(self, mask: Flags, episodes: Ints) -> None:
        """Prepare the policy for new episodes."""
        self._policy.begin(mask, episodes)

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the policy's actions, with that of the agent on the keyboard replaced."""
        actions = np.array(self._policy.act(observation, uniforms))
        own = self._keyboard.wait() if self._waits and self._agent is not None else self._keyboard.action()
        if self._agent is not None:
            actions[0, self._agent] = own
        return actions


def play_in_window(
    rules: Rules, policy: Policy, *, seed: int, agent: int | None = None, steps: int | None = None
) -> None:
    """Show episodes in a window until it is closed.

    Args:
        rules: The environment.
        policy: The policy of the agents.
        seed: Seed of the first episode.
        agent: Index of the agent controlled by the keyboard, or None.
        steps: Number of steps after which the window closes, or None.
    """
    window = Window(title=f"fair-envs: {rules.name}", fps=rules.fps)
    keyboard = Keyboard(None if agent is None else rules)
    renderer, player = rules.renderer(), OnKeyboard(policy, keyboard, agent, waits=not rules.multi_agent)
    try:
        for lane in islice(scenes(rules, player, seed=seed), steps):
            if keyboard.left:
                break
            frame = renderer.frame(lane)
            if agent is not None and rules.multi_agent and hasattr(renderer, "mark"):
                renderer.mark(frame, lane, agent)
            window.show(frame)
    except PlayerLeftError:
        pass
    finally:
        window.close()


def pictures(
    rules: Rules, policy: Policy, *, seed: int, count: int, each: OnProgress = lambda: None
) -> Iterator[NDArray[np.uint8]]:
    """Yield a picture of each of ``count`` steps, shape (height, width, 3); call ``each`` after every picture."""
    renderer = rules.renderer()
    for lane in islice(scenes(rules, policy, seed=seed), count):
        yield renderer.frame(lane)
        each()


def save_film(frames: Iterator[NDArray[np.uint8]], path: Path, *, fps: int) -> None:
    """Save pictures as an animation; the file name's suffix selects the format.

    Raises:
        ImportError: imageio is missing; the message says how to install it.
    """
    need("a film", "imageio", extra="render")
    import imageio.v3 as imageio

    path.parent.mkdir(parents=True, exist_ok=True)
    imageio.imwrite(path, list(frames), duration=1000 / fps, loop=0)
