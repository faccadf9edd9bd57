"""Plays each interface and converts its return values to events of its lanes, as `gym.make` reports them.

Every interface is a view of the same lanes, so one comparison works for all: an event of lane i equals what the single
environment with the lane's seed returns for the same actions.

PYTEST_DONT_REWRITE: the messages of its errors are complete, and pytest should add nothing to them.
"""

import copy
import importlib
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.core.interactions import PERSONAL, columns
from fair_envs.faces.focal import RandomPartners
from fair_envs.metrics.history import History
from fair_envs.registration import TABLE, find, make_rules, make_sb3
from fair_envs.support.aliases import Flags, Floats, Floats32
from fair_envs.testing.cases import INTERFACES, Case
from fair_envs.wrappers import DelayedFeedback, FairnessPenalty, HideSensitive, SocialReward
from fair_envs.wrappers.adapters.own import fair_spec_of

Info = Mapping[str, Any]

WRAPPERS: Mapping[str, Callable[[Any], Any]] = {
    "DelayedFeedback": partial(DelayedFeedback, delay=3),
    "FairnessPenalty": FairnessPenalty,
    "HideSensitive": HideSensitive,
    "SocialReward": partial(SocialReward, envy=0.5, guilt=0.05, smoothing=0.5),
}
"""The wrappers that are tried, with settings; an environment may reject them."""


class Event(NamedTuple):
    """The report of some lanes: a step, or the start of an episode. The first axis of arrays is lanes; see `lanes`."""

    lanes: Flags  # (B,) lanes that the event is about
    observations: Any  # (B, ...), a list if the space is not a Box
    info: Info | None  # (B, ...); None: not reported
    reward: NDArray[Any] | None = None  # (B,)
    agent_reward: NDArray[Any] | None = None  # (B, agents)
    terminated: Flags | None = None  # (B,); None: an episode begins
    truncated: Flags | None = None  # (B,)
    living: Flags | None = None  # (agents,) agents in the info; None: all


class World:
    """The environment of a case, independent of the interface.

    Args:
        case: The case.

    Attributes:
        rules: The rules, or None for a Gymnasium environment that has none.
        spec: The environment's spec, as changed by the case's wrapper.
        space: The observation space of the single environment.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.rules: Rules | None = None if rules_of(case.env_id) is None else self.made_rules()
        env = self.single()
        self.spec = fair_spec_of(env)
        self.space, self.action_space = env.observation_space, env.action_space
        self.agents = 1 if self.rules is None else self.rules.agents(self.rules.params)
        self.multi_agent = self.rules is not None and self.rules.multi_agent
        self.leaving = self.rules is not None and self.rules.leaving_field is not None
        own = self.action_space if self.rules is None else self.rules.action_space(self.rules.params)
        self.agent_space = known_actions(own)
        env.close()

    def made_rules(self) -> Rules:
        """Return new rules."""
        return make_rules(self.case.env_id.rpartition(":")[2], **self.case.parameters)

    def single(self, **keywords: Any) -> Any:
        """Return the single environment in the case's wrapper."""
        return self.wrapped(gym.make(self.case.env_id, disable_env_checker=True, **self.case.parameters, **keywords))

    def wrapped(self, env: Any) -> Any:
        """Return an environment in the case's wrapper."""
        return env if self.case.wrapper is None else WRAPPERS[self.case.wrapper](env)


def rules_of(env_id: str) -> type[Rules] | None:
    """Return the class of an environment's rules, or None if it has none; first import its module if it names one.

    Raises:
        ValueError: There is no such environment.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    if name in TABLE:
        rules: type[Rules] = importlib.import_module(find(name).module).Env.rules
        return rules
    if name not in gym.registry:
        raise ValueError(f"id must be one of {', '.join(sorted(TABLE))} or registered by its module, got {env_id!r}")
    return None


def known_actions(space: gym.Space[Any]) -> gym.Space[Any]:
    """Return the space, or raise ValueError if its actions cannot be drawn."""
    if not isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete | gym.spaces.Box):
        raise ValueError(f"action_space must be a Discrete, a MultiDiscrete or a Box, got {space}")
    return space


class Player:
    """Plays one interface; subclasses define how.

    Attributes:
        env: The environment.
        reports: Whether a policy's probabilities can be reported.
        resets: Whether lanes can be reset by a mask.
        restores: Whether an environment can return to a state; otherwise it can be copied.
    """

    reports: ClassVar[bool] = True
    restores: ClassVar[bool] = True
    resets: ClassVar[bool] = False
    focal: int | None = None

    def __init__(self, world: World) -> None:
        self.world, self.lanes = world, world.case.lanes
        self.over = np.zeros(self.lanes, bool)  # lanes that are done
        self.everyone = np.ones(self.lanes, bool)
        self.env = self.make()

    def make(self) -> Any:
        """Return a new environment."""
        raise NotImplementedError

    def reset(self, seed: Any = None, mask: Flags | None = None) -> tuple[Any, list[Event]]:
        """Begin episodes; return the interface's return value, and its events."""
        raise NotImplementedError

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Play one step with actions of shape (B, agents, ...); return the interface's return value, and its events."""
        raise NotImplementedError

    def played(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Return the actions that all agents took in the last step, given the drawn ones."""
        return actions

    def report(self, probs: Floats32) -> None:
        """Report the probabilities of the next decisions, shape (B, M, A)."""
        probs = probs[:, 0] if self.world.spec.one_person else probs
        self.env.unwrapped.report_action_probs(probs)

    def remember(self, history: History, returned: Any) -> bool:
        """Add a return value to a history; return whether that was possible."""
        history.add(returned[-1])
        return True

    def another(self) -> "Player | None":
        """Return a player restored from a snapshot of this one; None: the environment has no state to save."""
        if self.world.rules is None:
            return None
        if self.world.case.wrapper is not None or not self.restores:
            return copy.deepcopy(self)
        other = copy.copy(self)
        other.over, other.env = self.over.copy(), other.make()
        other.env.reset()  # to satisfy wrappers that enforce the order of calls
        other.env.unwrapped.set_state(np.array(self.env.unwrapped.get_state()))
        return other


# -------------------------------------------------------------------------------------------------- Gymnasium


class Single(Player):
    """`gymnasium.make`."""

    def make(self) -> Any:
        """Return the environment."""
        return self.world.single()

    def reset(self, seed: Any = None, mask: Flags | None = None) -> tuple[Any, list[Event]]:
        """Begin an episode."""
        observation, info = returned = self.env.reset(seed=seed)
        self.over[:] = False
        return returned, [Event(self.everyone, one(observation), lifted(info))]

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Play one step."""
        space = self.env.action_space
        observation, reward, terminated, truncated, info = returned = self.env.step(
            actions[0].reshape(space.shape or ())[()]
        )
        if self.world.rules is not None:
            for name, value, kind in (("reward", reward, float), ("terminated", terminated, bool)):
                assert type(value) is kind, f"{name} must be a {kind.__name__}, got {type(value).__name__}"
        self.over[:] = terminated or truncated
        ends = np.array([terminated]), np.array([truncated])
        return returned, [Event(self.everyone, one(observation), lifted(info), np.array([reward]), None, *ends)]

    def report(self, probs: Floats32) -> None:
        """Report the probabilities of the next decision."""
        self.env.unwrapped.report_action_probs(probs[0, 0] if self.world.spec.one_person else probs[0])


class Focal(Single):
    """`gymnasium.make` with ``control="focal"``: one agent is played, the others follow a policy."""

    def make(self) -> Any:
        """Return the environment; it records the other agents' actions."""
        rules = self.world.rules
        assert rules is not None
        self.focal = self.world.case.seed % self.world.agents
        self.partners = Partners(rules)
        return self.world.single(control="focal", focal=f"agent_{self.focal}", others=self.partners)

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Play one step of the focal agent."""
        assert self.focal is not None
        return super().step(actions[:, self.focal])

    def played(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Return the other agents' actions combined with the focal agent's action."""
        assert self.focal is not None
        joint = np.array(self.partners.actions[np.newaxis])
        joint[0, self.focal] = actions[0, self.focal]
        return joint


class Partners:
    """Random policy of the other agents that stores its last actions."""

    def __init__(self, rules: Rules) -> None:
        self._random = RandomPartners(rules)
        self.actions: NDArray[Any] = np.zeros(0)

    def __call__(self, observation: NDArray[Any], uniform: Floats) -> NDArray[Any]:
        """Return one action for each agent."""
        self.actions = self._random(observation, uniform)
        return np.array(self.actions)


class Batch(Player):
    """`gymnasium.make_vec` in one of its autoreset modes."""

    mode: ClassVar[AutoresetMode] = AutoresetMode.NEXT_STEP

    def make(self) -> Any:
        """Return the environment."""
        case = self.world.case
        if self.world.rules is None:
            wanted: Any = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": self.mode}}
        else:
            wanted = {"autoreset_mode": self.mode, "threads": case.threads}
        return self.world.wrapped(gym.make_vec(case.env_id, num_envs=case.lanes, **wanted, **case.parameters))

    def reset(self, seed: Any = None, mask: Flags | None = None) -> tuple[Any, list[Event]]:
        """Begin episodes in the masked lanes, by default in all."""
        options = None if mask is None else {"reset_mask": mask.copy()}
        observations, info = returned = self.env.reset(seed=seed, options=options)
        began = self.everyone if mask is None else mask
        self.over &= ~began
        return returned, [Event(began, self._lanes(observations), info)]

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Play one step; lanes that were done begin a new episode."""
        observations, reward, terminated, truncated, info = returned = self._step(actions)
        restarted = self.over
        self.over = terminated | truncated
        shown = self._lanes(observations)
        reported = Event(~restarted, shown, info, reward.copy(), None, terminated.copy(), truncated.copy())
        return returned, [reported, Event(restarted, shown, info)]

    def _step(self, actions: NDArray[Any]) -> Any:
        returned = self.env.step(actions.reshape(self.env.action_space.shape))
        assert returned[1].dtype == np.float64, f"reward must be float64, got {returned[1].dtype}"
        return returned

    def _lanes(self, observations: Any) -> Any:
        if isinstance(self.world.space, gym.spaces.Box):
            return observations
        return list(gym.vector.utils.iterate(self.env.observation_space, observations))


class SameStep(Batch):
    """`gymnasium.make_vec` with the mode SameStep."""

    mode = AutoresetMode.SAME_STEP

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Play one step; lanes that end begin a new episode in the same step."""
        observations, reward, terminated, truncated, info = returned = self._step(actions)
        over, first = terminated | truncated, self._lanes(observations)
        last, reported = first, info
        if over.any():
            last = [info["final_obs"][b] if over[b] else first[b] for b in range(self.lanes)]
            last = np.stack(last) if isinstance(first, np.ndarray) else last
            final = info["final_info"]
            reported = {name: where(over, final[name], column) for name, column in info.items() if name in final}
        ends = terminated.copy(), truncated.copy()
        return returned, [Event(self.everyone, last, reported, reward.copy(), None, *ends), Event(over, first, info)]


class Disabled(Batch):
    """`gymnasium.make_vec` with the mode Disabled: lanes are reset by a mask."""

    mode = AutoresetMode.DISABLED
    resets = True


# ------------------------------------------------------------------------------------------------- PettingZoo


class Parallel(Player):
    """PettingZoo's parallel environment."""

    reports = False
    face = "parallel_env"

    def make(self) -> Any:
        """Return the environment."""
        module = importlib.import_module(find(self.world.case.env_id.rpartition(":")[2]).module)
        return getattr(module, self.face)(**self.world.case.parameters)

    def reset(self, seed: Any = None, mask: Flags | None = None) -> tuple[Any, list[Event]]:
        """Begin an episode."""
        observations, infos = returned = self.env.reset(seed=seed)
        self.over[:] = False
        return returned, [self._event(observations, infos)]

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Play one step of all living agents."""
        observations, rewards, terminations, truncations, infos = returned = self.env.step(self._of_living(actions))
        self.over[:] = not self.env.agents
        return returned, [self._event(observations, infos, rewards, terminations, truncations)]

    def remember(self, history: History, returned: Any) -> bool:
        """Add the agents' infos to a history, which needs the infos of all agents."""
        reported = len(returned[-1]) == self.world.agents
        if reported:
            history.add(returned[-1])
        return reported

    def _of_living(self, actions: NDArray[Any]) -> dict[str, Any]:
        named = zip(self.env.possible_agents, actions[0], strict=True)
        return {name: action for name, action in named if name in self.env.agents}

    def _event(
        self, observations: Info, infos: Info, rewards: Info | None = None, terminations: Any = None, cuts: Any = None
    ) -> Event:
        """Return the agents' reports as an event of the lane; agents that have left observe and earn 0."""
        names = self.env.possible_agents
        living = np.array([name in infos for name in names])
        self._check_spaces(observations)
        blank = np.zeros_like(next(iter(observations.values())))
        seen = np.stack([observations.get(name, blank) for name in names])
        seen = seen.reshape(1, *(self.world.space.shape or ()))
        info = self._info([infos[name] for name in names if name in infos])
        if rewards is None or terminations is None:
            return Event(self.everyone, seen, info, living=living)
        for name, reward in rewards.items():
            assert type(reward) is float, f"reward of {name} must be a float, got {type(reward).__name__}"
        earned = np.array([[rewards.get(name, 0.0) for name in names]])
        ended = bool(self.over[0])
        cut = any(cuts.values())
        ends = np.array([ended and not cut]), np.array([cut])
        return Event(self.everyone, seen, info, None, earned, *ends, living=living)

    def _check_spaces(self, observations: Info) -> None:
        for name, observation in observations.items():
            space = self.env.observation_space(name)
            what = f"observation of {name} must be"
            assert observation.dtype == space.dtype, f"{what} {space.dtype}, got {observation.dtype}"
            assert observation.shape == space.shape, f"{what} of shape {space.shape}, got {observation.shape}"

    def _info(self, infos: list[Info]) -> Info:
        if not self.world.multi_agent:
            return lifted(infos[0])
        first = infos[0]
        for info in infos[1:]:
            assert set(info) == set(first), f"info must have the same keys for all agents, got {set(info) ^ set(first)}"
        return {
            name: np.stack([info[name] for info in infos])[np.newaxis]
            if name in PERSONAL
            else np.asarray(value)[np.newaxis]
            for name, value in first.items()
        }


class Turns(Parallel):
    """PettingZoo's environment whose agents act in turn."""

    face = "env"
    restores = False  # the turn-based view does not expose whose turn it is

    def reset(self, seed: Any = None, mask: Flags | None = None) -> tuple[Any, list[Event]]:
        """Begin an episode."""
        self.env.reset(seed=seed)
        self.over[:] = False
        observations = {name: self.env.observe(name) for name in self.env.agents}
        infos = dict(self.env.infos)
        return (observations, infos), [self._event(observations, infos)]

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Let all active agents act once."""
        env = self.env
        given, names = self._of_living(actions), list(env.agents)
        for _ in names:
            env.step(given[env.agent_selection])
        reported = [{name: getattr(env, kind)[name] for name in names} for kind in ("rewards", "terminations")]
        reported += [{name: getattr(env, kind)[name] for name in names} for kind in ("truncations", "infos")]
        observations = {name: env.observe(name) for name in names}
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
        self.over[:] = not env.agents
        rewards, terminations, truncations, infos = reported
        return (observations, *reported), [self._event(observations, infos, rewards, terminations, truncations)]


# ------------------------------------------------------------------------------------------- Stable-Baselines3


class Rows(Player):
    """Stable-Baselines3's environment with a row for each lane."""

    rows: ClassVar[Any] = "lanes"
    restores = False

    def make(self) -> Any:
        """Return the environment."""
        case = self.world.case
        if "rows" in case.parameters:  # a parameter that cannot be passed under this name
            from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv

            kind = AgentsVecEnv if self.rows == "agents" else LanesVecEnv
            return kind(self.world.made_rules(), case.lanes, threads=case.threads)
        env_id = case.env_id.rpartition(":")[2]
        return make_sb3(env_id, n_envs=case.lanes, rows=self.rows, threads=case.threads, **case.parameters)

    def reset(self, seed: Any = None, mask: Flags | None = None) -> tuple[Any, list[Event]]:
        """Begin episodes in all lanes."""
        if seed is not None:
            self.env.seed(seed)
        observation = self.env.reset()
        self._done = np.zeros(self.lanes, bool)
        returned = observation, self.env.interactions, self.env.agent_reward, self.env.active
        return returned, [Event(self.everyone, self._lanes(observation), self._info())]

    def step(self, actions: NDArray[Any]) -> tuple[Any, list[Event]]:
        """Play one step; lanes that end begin a new episode in the same step."""
        env = self.env
        observation, reward, done, infos = env.step(actions.reshape(env.num_envs, *(env.action_space.shape or ())))
        assert reward.dtype == np.float32, f"reward must be float32, got {reward.dtype}"
        ended = done.reshape(self.lanes, -1)
        assert (ended == ended[:, :1]).all(), f"done must be the same in all rows of a lane, got {ended.tolist()}"
        self._done = ended[:, 0].copy()
        last = observation.copy()
        for row in np.flatnonzero(done):
            last[row] = infos[row]["terminal_observation"]
        cuts = [info.get("TimeLimit.truncated", False) for info in infos]
        cut = np.array(cuts, bool).reshape(self.lanes, -1)[:, 0]
        earned: dict[str, Any] = {"agent_reward": reward.reshape(self.lanes, -1).copy()}
        if self.rows == "lanes":
            earned = {"reward": reward.copy()}
        reported = Event(self.everyone, self._lanes(last), self._info(), **earned)
        reported = reported._replace(terminated=self._done & ~cut, truncated=cut)
        returned = observation, reward, done, infos, env.interactions, env.agent_reward, env.active
        return returned, [reported, Event(self._done, self._lanes(observation), None)]

    def remember(self, history: History, returned: Any) -> bool:
        """Add the records of the last step to a history."""
        history.add_facts(self.env.interactions, self.env.action_probs, done=self._done)
        return True

    def _lanes(self, observation: NDArray[Any]) -> NDArray[Any]:
        return observation.reshape(self.lanes, *(self.world.space.shape or ()))

    def _info(self) -> Info:
        info: dict[str, Any] = columns(self.world.spec, self.env.interactions, self.env.action_probs)
        if self.world.multi_agent:
            info["agent_reward"] = self.env.agent_reward
        return info


class AgentRows(Rows):
    """Stable-Baselines3's environment with a row for each agent."""

    rows = "agents"


KINDS = (Single, Focal, Batch, SameStep, Disabled, Parallel, Turns, Rows, AgentRows)
PLAYERS: Mapping[str, type[Player]] = dict(zip(INTERFACES, KINDS, strict=True))

OF_LANES = tuple(name for name in PLAYERS if name.startswith(("vector", "sb3")))
"""The interfaces that play several lanes."""

OF_GYMNASIUM = tuple(name for name in PLAYERS if name == "gym" or name.startswith("vector"))
"""The interfaces of a Gymnasium environment that is not made of rules."""


def interfaces(*, ruled: bool) -> list[str]:
    """Return the interfaces that work here, for an environment that is made of rules or for any other."""
    if not ruled:
        return list(OF_GYMNASIUM)
    installed = find_spec("stable_baselines3") is not None
    return [name for name in PLAYERS if installed or not name.startswith("sb3")]


def lifted(info: Info) -> dict[str, Any]:
    """Return one lane's info with an axis for lanes; values that are not NumPy types stay unchanged, to be rejected."""
    return {
        name: np.asarray(value)[np.newaxis] if isinstance(value, (np.ndarray, np.generic)) else value
        for name, value in info.items()
    }


def one(observation: Any) -> Any:
    """Return one lane's observation with an axis for lanes."""
    return observation[np.newaxis] if isinstance(observation, np.ndarray) else [observation]


def where(rows: Flags, then: NDArray[Any], otherwise: NDArray[Any]) -> NDArray[Any]:
    """Return a column with one value in some lanes and another in the rest."""
    mixed = np.array(otherwise)
    mixed[rows] = np.asarray(then)[rows]
    return mixed
