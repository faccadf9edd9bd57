"""The PettingZoo interface: one lane whose agents act simultaneously, and its turn-based view."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from fair_envs.core import Lanes, Rules, Step, check_count, check_seed, variant_of
from fair_envs.core.interactions import LaneRecord
from fair_envs.faces.common import (
    RENDER_MODES,
    ActionCheck,
    NotReset,
    OfLanes,
    Picture,
    Reported,
    check_options,
    check_render_mode,
    joint_space,
)


class AgentsEnv(OfLanes, ParallelEnv[str, Any, Any]):
    """One lane as a `pettingzoo.ParallelEnv` with agents ``agent_0``, ``agent_1``, ...; subclasses set the rules.

    Args:
        render_mode: ``"human"``, ``"rgb_array"``, ``"ansi"`` or None.
        max_cycles: PettingZoo's name for the parameter ``horizon``.
        parameters: The environment's parameters, see the class of its rules.

    Raises:
        TypeError: A keyword is unknown.
        ValueError: A value is outside its range.
    """

    rules: ClassVar[type[Rules]]

    def __init__(self, *, render_mode: str | None = None, max_cycles: int | None = None, **parameters: Any) -> None:
        check_render_mode(render_mode)
        if max_cycles is not None:
            if "horizon" in parameters:
                raise TypeError("max_cycles must not be given together with horizon; they have the same meaning")
            check_count("max_cycles", max_cycles)
            parameters["horizon"] = max_cycles
        rules = variant_of(self.rules, parameters)
        self.metadata = {
            "name": f"fair_{rules.name}_v0",
            "render_modes": RENDER_MODES,
            "render_fps": rules.fps,
            "is_parallelizable": True,
        }
        self.render_mode = render_mode
        self.lanes = Lanes(rules, 1)
        self.interactions = self.lanes.blank_step().facts
        self.max_cycles = rules.params.horizon
        self.possible_agents = [f"agent_{i}" for i in range(self.lanes.agents)]
        self.agents: list[str] = []
        self._check = ActionCheck(rules)
        self._reported, self._record = Reported(rules, 1), LaneRecord(rules.spec)
        self._picture = Picture(self.lanes, render_mode)
        self._observation: NDArray[Any] | None = None
        observation_space, action_space = rules.observation_space(rules.params), rules.action_space(rules.params)
        self.observation_spaces = {name: observation_space for name in self.possible_agents}
        self.action_spaces = {name: _own(action_space) for name in self.possible_agents}
        self._of_nobody = self._check.first  # actions of agents that have left have no effect
        self.state_space = joint_space(observation_space, self.lanes.agents, drop=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metadata['name']}, agents={len(self.possible_agents)})"

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """Return the agent's observation space."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        """Return the agent's action space."""
        return self.action_spaces[agent]

    def report_action_probs(self, action_probs: dict[str, Any]) -> None:
        """Report the probabilities with which each agent's next action is chosen, shape (A,) for each agent.

        If a decision-maker decides about the same M people throughout, it reports shape (M, A).
        """
        spec = self.fair_spec
        people = () if self.lanes.rules.multi_agent or spec.one_person else (spec.individuals,)
        of_nobody = np.full((*people, spec.actions), 1 / max(1, spec.actions))
        self._reported.set(
            self._of_all("action_probs", action_probs, of_nobody),
            shape=(self.lanes.agents, *people, spec.actions),
        )

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode: the first one of a new seed, or the next one of the previous seed.

        Args:
            seed: Seed of this and the following episodes.
            options: Options for wrappers; the environment itself has none.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ValueError: The seed is out of range, or the options are not a dictionary. Nothing has changed in this case.
        """
        self.check_open("reset")
        check_options(options)
        if seed is not None:
            self.lanes.seed(check_seed(seed))
        self._reported.take()
        start = self.lanes.restart()
        self.agents = list(self.possible_agents)
        if self.render_mode == "human":
            self.render()
        return self._see(start), self._infos(start)

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:  # type: ignore[override]
        """Play one step of all agents; the results are for the agents that were active before it.

        An agent that leaves in the last step of an episode at its horizon is both terminated and truncated. Actions of
        agents that have left are ignored: some libraries act for all possible agents.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ResetNeeded: The episode has not begun or has ended.
            ValueError: An agent's action is missing or is not in its space.
        """
        self.check_open("step")
        if not self.agents:
            raise NotReset("step must follow a reset: the episode has not begun or is over")
        played = self.lanes.advance(self._stack(actions))
        terminated, truncated, left = played.terminated.item(), played.truncated.item(), self._left()
        terminations, truncations = dict.fromkeys(self.agents, terminated), dict.fromkeys(self.agents, truncated)
        for name in left:
            if name in terminations:
                terminations[name] = True  # at the horizon, it is cut off too: libraries ask whether all agents are
        rewards = self._living(played.reward[0].tolist())
        result = self._see(played), rewards, terminations, truncations, self._infos(played)
        if terminated or truncated:
            self.agents = []
        elif left:
            self.agents = [name for name in self.agents if name not in left]
        if self.render_mode == "human":
            self.render()
        return result

    def render(self) -> Any:
        """Return the picture in the render mode: pixels (height, width, 3), text, or None after showing it."""
        return self._picture.draw()

    def close(self) -> None:
        """Close the window, if there is one; the episode cannot continue."""
        self._picture.close()
        self.closed = True

    def state(self) -> NDArray[Any]:
        """Return all agents' observations, joined in order.

        Raises:
            ResetNeeded: The first episode has not begun.
        """
        if self._observation is None:
            raise NotReset("state must follow a reset")
        return np.array(self._observation).reshape(-1)

    def action_masks(self) -> dict[str, NDArray[np.int8]]:  # type: ignore[override]
        """Return which actions each agent can choose without a loss, for ``action_space(agent).sample(mask)``.

        See `OfLanes.action_masks`.
        """
        return self._living(super().action_masks().reshape(self.lanes.agents, -1))

    def set_state(self, state: NDArray[np.void]) -> dict[str, Any]:
        """Return to a state and return its observations; the episode continues from there."""
        self.lanes.restore(state)
        left = self._left()
        self.agents = [] if state["over"][0] else [name for name in self.possible_agents if name not in left]
        return self._see(self.lanes.blank_step()._replace(observation=self.lanes.observe()))

    def check_action(self, action: Any) -> None:
        """Raise ValueError if the action is not in an agent's space."""
        self._check(action, shape=self._check.shape)

    def _stack(self, actions: dict[str, Any]) -> NDArray[Any]:
        """Return the actions as an array of shape (1, agents, ...)."""
        if not isinstance(actions, dict):
            raise ValueError(f"actions must be a dictionary with one entry for each living agent, got {actions!r}")
        stacked: Sequence[Any]
        if len(actions) == len(self.agents) == len(self.possible_agents) and [*actions] == self.possible_agents:
            stacked = [*actions.values()]  # the usual case, in a third of the time
        else:
            stacked = self._of_all("actions", actions, self._of_nobody)
        try:
            return self._check(stacked, shape=(self.lanes.agents, *self._check.shape))[np.newaxis]
        except ValueError:
            for name in self.agents:
                action = actions[name]
                try:
                    self.check_action(action)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
            raise

    def _of_all(self, what: str, given: Mapping[str, Any], of_nobody: Any) -> list[Any]:
        """Return what is given for each possible agent, and `of_nobody` for those that have left.

        Raises:
            ValueError: A living agent has no entry, or an entry is for an unknown agent.
        """
        living, possible = set(self.agents), set(self.possible_agents)
        if odd := (living - given.keys()) | (given.keys() - possible):
            raise ValueError(
                f"{what} must have one entry for each living agent; missing or unknown: {sorted(odd, key=str)}"
            )
        return [given[name] if name in living else of_nobody for name in self.possible_agents]

    def _see(self, step: Step) -> dict[str, Any]:
        self._observation = step.observation[0]
        return self._living(self._observation.copy())

    def _infos(self, step: Step) -> dict[str, dict[str, Any]]:
        self.interactions, self.action_probs = step.facts, self._reported.take()
        reported = step.facts, self.action_probs
        multi_agent = self.lanes.rules.multi_agent
        return self._living(self._record.of_people(*reported) if multi_agent else [self._record(*reported)])

    def _left(self) -> Collection[str]:
        """Return the agents that have left before the others."""
        if self.lanes.rules.leaving_field is None:
            return ()
        return {name for name, stays in zip(self.possible_agents, self.lanes.active()[0], strict=True) if not stays}

    def _living(self, of_all: Sequence[Any] | NDArray[Any]) -> dict[str, Any]:
        """Return the entries of the active agents by name, in order, from the entries of all agents."""
        named = dict(zip(self.possible_agents, of_all))  # noqa: B905 - to be strict takes half as long again
        return named if len(self.agents) == len(named) else {name: named[name] for name in self.agents}


def _own(space: gym.Space[Any]) -> gym.Space[Any]:
    """Return a copy of a space with its own random generator, so that agents sample independently."""
    return deepcopy(space)


class Turns(parallel_to_aec_wrapper[str, Any, Any]):
    """The turn-based view. An action is checked immediately, not when the last agent's turn plays the step."""

    env: AgentsEnv

    def action_masks(self) -> dict[str, NDArray[np.int8]]:
        """Return which actions each agent can choose without a loss, see `AgentsEnv.action_masks`."""
        return self.env.action_masks()

    def step(self, action: Any) -> None:
        """Take the selected agent's action.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ResetNeeded: The first episode has not begun.
            ValueError: The action is not in the agent's space, or is not None for an agent that is done. You can then
                pass another action.
        """
        self.env.check_open("step")
        if not hasattr(self, "agent_selection"):
            raise NotReset("step must follow a reset")
        agent = self.agent_selection
        if not (self.terminations[agent] or self.truncations[agent]):
            self.env.check_action(action)
        elif action is not None:
            raise ValueError(f"action must be None for {agent}, which is done, got {action!r}")
        super().step(action)


def module_of(face: type[AgentsEnv]) -> tuple[Callable[..., AgentsEnv], Callable[..., Any], Callable[..., Any]]:
    """Return the functions of a PettingZoo module: ``parallel_env``, ``env`` and ``raw_env``.

    With the first, all agents act simultaneously; with the others they act in turn. ``env`` reports calls in the wrong
    order.
    """

    def parallel_env(**parameters: Any) -> AgentsEnv:
        return face(**parameters)

    def raw_env(**parameters: Any) -> AECEnv[str, Any, Any]:
        return Turns(face(**parameters))

    def env(**parameters: Any) -> AECEnv[str, Any, Any]:
        return OrderEnforcingWrapper(raw_env(**parameters))

    return parallel_env, env, raw_env
