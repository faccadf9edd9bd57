"""The Stable-Baselines3 interface: B lanes as rows, or B x agents rows with shared parameters."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules, Step, Worlds, check_seeds
from fair_envs.core.interactions import LaneRecord
from fair_envs.faces.common import (
    BY_ROW,
    ActionCheck,
    NotReset,
    OfLanes,
    Picture,
    Reported,
    check_options,
    joint_space,
    with_last,
)
from fair_envs.support.aliases import Flags, Floats, Floats32, Ints
from fair_envs.support.extras import missing
from fair_envs.support.parameters import Positive, checked

try:
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn
except ModuleNotFoundError as error:
    raise missing("this interface", "Stable-Baselines3", extra="baselines") from error

Append = Literal["group", "agent"] | None
"""What is appended to an agent's observation: its group, its index among the agents, or nothing."""

Infos = Literal["ends", "episode", "record"]
"""What the rows' info dictionaries contain, see `LanesVecEnv`."""


class LanesVecEnv(OfLanes, VecEnv):
    """B lanes as a Stable-Baselines3 `VecEnv`, one row for each lane: one controller plays all agents of a lane.

    The record of the last step is in `interactions`, as arrays. That is faster than in the rows' info dictionaries,
    which have it only with ``infos="record"``.

    Args:
        rules: The environment.
        lanes: Number of lanes (B).
        threads: Number of threads that share the lanes; the results do not depend on it.
        render_mode: ``"rgb_array"`` or None.
        reward_scale: Factor by which the learner's rewards are multiplied; `agent_reward` is not changed.
        infos: What the rows' info dictionaries contain. ``"ends"``: only ``terminal_observation`` and
            ``TimeLimit.truncated``, at the ends of episodes. ``"episode"``: at the ends, also ``episode`` with the
            return ``r`` and the length ``l``, which Stable-Baselines3 logs as ``rollout/ep_rew_mean``
            and ``ep_len_mean``. The return is of the environment's rewards, before wrappers and `reward_scale` change
            them. ``"record"``: also each step's record (``fair_action`` and so on), as in ``info`` of the
            other interfaces; a row of an agent has its own entries, as in PettingZoo.

    Attributes:
        agent_reward: The agents' rewards in the last step, shape (B, agents), as changed by wrappers.
        own_reward: The same before wrappers change them.
        active: Which agents act in the next step, shape (B, agents). The others have left before the end of the
            episode: their observations and rewards are 0, and their actions have no effect.
        added: Values that wrappers added to the last step, arrays of shape (B, ...) by name.
    """

    def __init__(
        self,
        rules: Rules | Sequence[Rules],
        lanes: int,
        *,
        threads: int = 1,
        render_mode: str | None = None,
        reward_scale: float = 1.0,
        infos: Infos = "ends",
    ) -> None:
        if infos not in get_args(Infos):
            raise ValueError(f"infos must be one of {', '.join(map(repr, get_args(Infos)))}, got {infos!r}")
        self.infos = infos
        self.reward_scale = float(checked("reward_scale", reward_scale, Positive))
        if render_mode not in ("rgb_array", None):
            raise ValueError(f"render_mode must be 'rgb_array' or None, got {render_mode!r}")
        self.render_mode = render_mode
        self.lanes: Lanes | Worlds
        if isinstance(rules, Sequence):
            self.lanes = Worlds(rules, lanes, threads=threads)
            rules = self.lanes.rules
        else:
            self.lanes = Lanes(rules, lanes, threads=threads)
        self._check = ActionCheck(rules)
        self._reported = Reported(rules, self.lanes.count)
        self._picture = Picture(self.lanes, render_mode)
        self._actions: NDArray[Any] | None = None
        self._next_seed: int | None = None
        self._started = False
        self._lanes_each = lanes  # in each world
        self.interactions = self.lanes.blank_step().facts
        self.agent_reward: Floats = np.zeros((self.lanes.count, self.lanes.agents))
        self.own_reward = self.agent_reward
        self.active: Flags = np.ones((self.lanes.count, self.lanes.agents), bool)
        self.added: dict[str, NDArray[Any]] = {}
        super().__init__(self._rows(), *self._spaces(rules))
        self.metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": rules.fps}
        self._record = LaneRecord(rules.spec)
        self._returns: Floats = np.zeros(self.num_envs)  # of the running episodes
        self._lengths: Ints = np.zeros(self.num_envs, np.int64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.lanes.rules.name}, num_envs={self.num_envs})"

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed lane i of each world with ``seed + i`` at the next reset; return each row's seed."""
        if seed is not None:
            check_seeds(seed, self._lanes_each)
        self._next_seed = seed
        lanes = self._lanes_each
        rows = self.num_envs // self.lanes.count
        return [None if seed is None else seed + row // rows % lanes for row in range(self.num_envs)]

    def report_action_probs(self, action_probs: Any) -> None:
        """Report the probabilities with which the next actions are chosen: (B, A), or (B, M, A)."""
        spec = self.fair_spec
        people = () if spec.one_person else (spec.individuals,)
        self._reported.set(action_probs, shape=(self.lanes.count, *people, spec.actions))

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Store options for the next reset, one dictionary or one for each row; the environment itself has none.

        Raises:
            ValueError: The argument is anything else.
        """
        listed = options if isinstance(options, list) else [options] * self.num_envs
        if len(listed) != self.num_envs:
            raise ValueError(f"options must be one dictionary or one for each of {self.num_envs} rows, got {options!r}")
        for own in listed:
            check_options(own)
        super().set_options(options)

    def reset(self) -> VecEnvObs:
        """Begin episodes in all lanes and return the rows' observations.

        Raises:
            ClosedEnvironmentError: The environment is closed.
        """
        self.check_open("reset")
        if self._next_seed is not None:
            self.lanes.seed(self._next_seed)
            self._next_seed = None
        self._reported.take()
        start = self.lanes.restart()
        self._started, self._actions, self.action_probs = True, None, None
        self.interactions, self.agent_reward, self.active = start.facts, start.reward, self.lanes.active()
        self._returns[:], self._lengths[:] = 0, 0
        self.reset_infos = self._infos(start)
        return self._shown(start)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the rows' actions.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ResetNeeded: There was no reset.
            ValueError: The actions are not in the action space.
        """
        self.check_open("step")
        if not self._started:
            raise NotReset("step must follow a reset")
        given = self._check(actions, shape=self._action_shape())
        self._actions = given.reshape(self.lanes.count, self.lanes.agents, *self._check.shape)

    def step_wait(self) -> VecEnvStepReturn:
        """Play one step of every lane and restart the lanes whose episodes end.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            RuntimeError: No actions were stored since the last step or reset.
        """
        self.check_open("step")
        if self._actions is None:
            raise RuntimeError("step_wait must follow step_async")
        played = self.lanes.advance(self._actions)
        self._actions, self.action_probs = None, self._reported.take()
        self.interactions, self.agent_reward, self.own_reward = played.facts, played.reward, played.reward
        done = played.terminated | played.truncated
        infos = self._infos(played)
        shown, earned = self._shown(played), self.row_reward(played.reward)
        if self.infos != "ends":
            self._returns += earned
            self._lengths += 1
        if done.any():
            shown = self._restart(played, done, shown, infos)
        self.active = self.lanes.active()
        return shown, self.scaled(earned), self._of_rows(done), infos

    def _restart(self, played: Step, done: Flags, shown: NDArray[Any], infos: list[dict[str, Any]]) -> NDArray[Any]:
        """Restart the lanes that are done; return the rows' observations, and add the ends of episodes to the infos."""
        first = self._shown(self.lanes.restart(mask=done))
        ended = self._of_rows(done)
        truncated = self._of_rows(played.truncated)
        for row in np.flatnonzero(ended):
            infos[row]["terminal_observation"] = shown[row].copy()
            infos[row]["TimeLimit.truncated"] = bool(truncated[row])
        if self.infos != "ends":
            self._end(ended, infos)
        shown[ended] = first[ended]
        return shown

    def _end(self, ended: Flags, infos: list[dict[str, Any]]) -> None:
        """Add the returns and lengths of episodes to the rows' infos, as `stable_baselines3`'s `Monitor` does."""
        for row in np.flatnonzero(ended):
            infos[row]["episode"] = {"r": float(self._returns[row]), "l": int(self._lengths[row])}
        self._returns[ended], self._lengths[ended] = 0, 0

    def _infos(self, step: Step) -> list[dict[str, Any]]:
        """Return the rows' info dictionaries of a step or reset, without the ends of episodes."""
        if self.infos != "record":
            return [{} for _ in range(self.num_envs)]
        infos = self.entries(step.facts, step.reward)
        if self.lanes.rules.leaving_field is not None and self.num_envs == self.lanes.count:
            for info, active in zip(infos, self.lanes.active(), strict=True):
                info["agent_active"] = active.astype(np.int8)
        return infos

    def entries(self, facts: NDArray[np.void], reward: Floats) -> list[dict[str, Any]]:
        """Return each row's entries of a record, shape (B,), and of the agents' rewards, shape (B, agents).

        The record is that of the last step, or as a wrapper has changed it (then its spec is `fair_spec`).
        """
        record = self._record if self.reported_spec is None else LaneRecord(self.reported_spec)
        found = []
        for lane, own in enumerate(reward):
            probs = None if self.action_probs is None else self.action_probs[lane : lane + 1]
            found += self._of_lane(record, facts[lane : lane + 1], probs, own)
        return found

    def _of_lane(
        self, record: LaneRecord, facts: NDArray[np.void], probs: Floats32 | None, reward: Floats
    ) -> list[dict[str, Any]]:
        """Return the entries of each row of one lane."""
        entries = record(facts, probs)
        return [entries | {"agent_reward": reward} if self.lanes.rules.multi_agent else entries]

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions of each row can be chosen without a loss, (rows, n), see `OfLanes.action_masks`."""
        return super().action_masks().reshape(self.num_envs, -1)

    def close(self) -> None:
        """Close the drawing resources; the episodes cannot continue."""
        self._picture.close()
        self.closed = True

    def get_images(self) -> list[NDArray[np.uint8] | None]:
        """Return one picture for each lane."""
        return [self._picture.draw(lane) for lane in range(self.lanes.count)]  # type: ignore[misc]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return the attribute, once for each row."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set the attribute of the whole batch; rows cannot differ.

        Raises:
            ValueError: The indices do not include all rows.
        """
        if {*self._get_indices(indices)} != {*range(self.num_envs)}:
            raise ValueError(f"indices must be None or all {self.num_envs} rows, which cannot differ, got {indices!r}")
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method of the batch and return its result, once for each row, or each row's entry."""
        if method_name in BY_ROW:
            found = getattr(self, method_name)()
            return [found[row] for row in self._get_indices(indices)]
        return [getattr(self, method_name)(*args, **kwargs)] * len(list(self._get_indices(indices)))

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Return False for each row: lanes have no wrappers of their own."""
        return [False] * len(list(self._get_indices(indices)))

    def _rows(self) -> int:
        return self.lanes.count

    def _spaces(self, rules: Rules) -> Iterable[gym.Space[Any]]:
        drop, agents = not rules.multi_agent, self.lanes.agents
        for space in (rules.observation_space(rules.params), rules.action_space(rules.params)):
            yield joint_space(space, agents, drop=drop)

    def _action_shape(self) -> tuple[int, ...]:
        return (self.num_envs, *(self.action_space.shape or ()))

    def _shown(self, step: Step) -> NDArray[Any]:
        """Return the observations of the rows, as a new array."""
        return step.observation.reshape(self.num_envs, *(self.observation_space.shape or ()))

    def row_reward(self, reward: Floats) -> Floats:
        """Return the rewards of the rows, shape (rows,), given those of the agents, shape (B, agents)."""
        return reward.mean(axis=1)  # type: ignore[no-any-return]

    def scaled(self, earned: Floats) -> Floats32:
        """Return rewards of the rows as the learner receives them."""
        return (earned * self.reward_scale).astype(np.float32)

    def _of_rows(self, lanes: Flags) -> Flags:
        """Return the lanes' values for each of their rows, as a new array."""
        return np.repeat(lanes, self.num_envs // self.lanes.count)


class AgentsVecEnv(LanesVecEnv):
    """B lanes as a `VecEnv` with one row for each agent: row ``b * agents + i`` is agent i of lane b.

    A learner that treats the rows as separate environments shares its parameters among the agents.

    Args:
        rules: The environment, or its rules in several worlds (see `fair_envs.core.Worlds`); the rows are ordered by
            world.
        lanes: Number of lanes (B) in each world.
        threads: Number of threads that share the lanes; the results do not depend on it.
        render_mode: ``"rgb_array"`` or None.
        append: ``"group"`` appends the agent's group (``fair_group``) to its observations, ``"agent"`` its index, from
            0. `fair_envs.baselines.GroupedPolicy` and `fair_envs.baselines.IndividualPolicy` use it to choose the
            network; the networks do not receive it.
        append_group: True is ``append="group"``.
        reward_scale: See `LanesVecEnv`.
        infos: See `LanesVecEnv`.
    """

    def __init__(
        self,
        rules: Rules | Sequence[Rules],
        lanes: int,
        *,
        threads: int = 1,
        render_mode: str | None = None,
        append: Append = None,
        append_group: bool = False,
        reward_scale: float = 1.0,
        infos: Infos = "ends",
    ) -> None:
        first, self.worlds = (rules[0], len(rules)) if isinstance(rules, Sequence) else (rules, 1)
        self.append = appended(first, append, append_group)
        super().__init__(rules, lanes, threads=threads, render_mode=render_mode, reward_scale=reward_scale, infos=infos)

    @property
    def append_group(self) -> bool:
        """Whether observations end with the agent's group."""
        return self.append == "group"

    def _rows(self) -> int:
        return self.lanes.count * self.lanes.agents

    def _spaces(self, rules: Rules) -> Iterable[gym.Space[Any]]:
        space = rules.observation_space(rules.params)
        if self.append is not None:
            if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
                raise ValueError(f"append must be None for observations that are not vectors, got {space}")
            last = (len(rules.spec.groups) if self.append == "group" else self.lanes.agents) - 1
            low, high = (
                np.append(bound, end).astype(space.dtype) for bound, end in ((space.low, 0), (space.high, last))
            )
            space = gym.spaces.Box(low, high, dtype=space.dtype.type)
        yield space
        yield rules.action_space(rules.params)

    def _shown(self, step: Step) -> NDArray[Any]:
        observation = self.with_appended(step)
        return observation.reshape(self.num_envs, *observation.shape[2:])

    def with_appended(self, step: Step) -> NDArray[Any]:
        """Return the observations of a step with what is appended to them, shape (B, agents, ...)."""
        if self.append is None:
            return step.observation
        last = step.facts["group"] if self.append == "group" else np.arange(self.lanes.agents)
        return with_last(step.observation, last)

    def _of_lane(
        self, record: LaneRecord, facts: NDArray[np.void], probs: Floats32 | None, reward: Floats
    ) -> list[dict[str, Any]]:
        return record.of_people(facts, probs) if self.lanes.rules.multi_agent else [record(facts, probs)]

    def row_reward(self, reward: Floats) -> Floats:
        """Return the rewards of the agents, lane by lane."""
        return reward.reshape(-1)


def appended(rules: Rules, append: Append, append_group: bool) -> Append:
    """Return what is appended to the observations of an environment's agents.

    Raises:
        ValueError: The agents belong to no group, there is only one agent, or the arguments contradict each other.
    """
    if append not in ("group", "agent", None):
        raise ValueError(f"append must be 'group', 'agent' or None, got {append!r}")
    if append_group and append == "agent":
        raise ValueError("append_group must be False with append='agent', got True")
    if append_group or append == "group":
        if not rules.spec.same_individuals:
            raise ValueError(f"append_group must be False: the agents of {rules.name} belong to no group")
        return "group"
    if append == "agent" and not rules.multi_agent:
        raise ValueError(f"append must be None: {rules.name} has one decision-maker, got 'agent'")
    return append


__all__ = ["AgentsVecEnv", "Append", "Infos", "LanesVecEnv", "VecEnvStepReturn", "VecEnvWrapper"]
