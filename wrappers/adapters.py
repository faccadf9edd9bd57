"""The class of wrappers, and one thin adapter for each face: turns what the face reports into a `Batch` and back.

The adapter for Stable-Baselines3 is in `fair_envs.wrappers.sb3`, which is imported only for its environments.
"""

import copy
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper

from fair_envs.aliases import Columns, Flags, Floats, Floats32, Records
from fair_envs.core import Lanes, Worlds
from fair_envs.faces.common import NotReset, joint_space
from fair_envs.history import History
from fair_envs.interactions import FairSpec
from fair_envs.wrappers.others import leaves_observations
from fair_envs.wrappers.own import OwnFace, stacked
from fair_envs.wrappers.transform import Batch, Setting, Transform

if TYPE_CHECKING:
    Interface: TypeAlias = Any  # a wrapper has whatever its environment has
else:
    Interface = object


class Wrapper(Interface):  # type: ignore[misc]
    """An environment of any interface with a transform applied: ``Wrapper(env, transform)``.

    Its subclasses have names and arguments of their own, such as ``FairnessPenalty(env, alpha=1.0)``. What they make is
    also a wrapper of the environment's own library, a `gymnasium.Wrapper` for example: `__new__` derives a class of the
    same name from the wrapper and the adapter of the environment's interface.

    Put wrappers on the environment itself or on each other, below those of other libraries that change observations or
    rewards. A Gymnasium environment of one's own will do if its ``info`` holds the record
    (`fair_envs.interactions.record`) and it, or one of its wrappers, has the `FairSpec` as attribute ``fair_spec``. It
    is one decision-maker in one lane; transforms that look into the rules refuse it.

    Args:
        env: An environment of this package, of any interface, wrapped or not; or one's own.
        transform: It is copied: one transform can serve many environments.

    Raises:
        TypeError: The environment has none of the interfaces, and no ``fair_spec``.
        ValueError: The environment lacks what the transform needs.
    """

    def __new__(cls, env: Any, *args: Any, **settings: Any) -> "Wrapper":
        """Return a wrapper that fits the environment's interface, not initialised yet."""
        made: Wrapper = _blank(cls, adapter_of(env))
        if isinstance(env, gym.Env):
            made._given = args, settings  # of which the spec makes the wrapper again
        return made

    def __init__(self, env: Any, transform: Transform) -> None:
        super().__init__(env, transform)  # of the adapter

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return what makes a copy; its class cannot be found by its name, but its two bases can."""
        _, _, *state = super().__reduce_ex__(protocol)
        return _blank, type(self).__bases__, *state


def _blank(wrapper: Any, adapter: Any) -> Any:
    """Return a wrapper on the interface of an adapter, not initialised yet."""
    return object.__new__(_joined(wrapper, adapter))


@functools.cache
def _joined(wrapper: Any, adapter: Any) -> Any:
    """Return the class of a wrapper on the interface of an adapter; it is called like the wrapper."""
    own = {name: getattr(wrapper, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(wrapper.__name__, (wrapper, adapter), own)


def adapter_of(env: Any) -> type[Any]:
    """Return the adapter of an environment's interface.

    Raises:
        TypeError: The environment has none of the interfaces, and no ``fair_spec``.
    """
    if isinstance(env, AECEnv):
        raise TypeError("env must be parallel: wrap the parallel environment, then convert it with parallel_to_aec")
    face_of(env)
    if isinstance(env, gym.Env):
        return SingleAdapter
    if isinstance(env, VectorEnv):
        return BatchAdapter
    if isinstance(env, ParallelEnv):
        return AgentsAdapter
    from fair_envs.wrappers.sb3 import RowsAdapter

    return RowsAdapter


def face_of(env: Any) -> Any:
    """Return the face that an environment's layers stand on, or what stands for it where it is one's own.

    Raises:
        TypeError: It is neither.
    """
    known = isinstance(env, (gym.Env, VectorEnv, ParallelEnv)) or _is_vec_env(env)
    if known and isinstance(getattr(env.unwrapped, "lanes", None), (Lanes, Worlds)):
        return env.unwrapped
    if isinstance(env, gym.Env):
        if below := transforms(env):
            return below[0].face
        if env.has_wrapper_attr("fair_spec") and isinstance(spec := env.get_wrapper_attr("fair_spec"), FairSpec):
            return OwnFace(env, spec)
    raise TypeError(
        "env must be an environment of fair_envs, of any face, or a Gymnasium environment that has its FairSpec as "
        f"fair_spec, got {env!r}"
    )


def _is_vec_env(env: Any) -> bool:
    """Return whether this is a Stable-Baselines3 environment, without importing that library."""
    module = sys.modules.get("stable_baselines3.common.vec_env")
    return module is not None and isinstance(env, module.VecEnv)


# What the adapters share ---------------------------------------------------------------------------------------------


class Bound:
    """A transform bound to an environment, and the shapes of the environment's face.

    Args:
        env: The environment below.
        transform: Is copied.
        space: The observation space below.
        joint: Whether that space is of all agents together.
        face: The environment's face, see `face_of`.

    Attributes:
        rewards: The agents' rewards after the last step, shape (B, agents).

    Raises:
        ValueError: The environment lacks what the transform needs, or its reward is a vector where a number is needed,
            or the other way round, or a history below has been told what the transform holds back, or the environment
            has such a transform already, see `Transform.once`.
    """

    def __init__(self, env: Any, transform: Transform, space: gym.Space[Any], *, joint: bool, face: Any = None) -> None:
        self.face = env.unwrapped if face is None else face
        self.own = isinstance(self.face, OwnFace)
        self.transform: Transform = copy.deepcopy(transform)
        if self.own and transform.needs_rules:
            name = type(transform).__name__
            raise ValueError(f"env must be an environment of fair_envs for {name}, got {self.face.lanes.rules.name}")
        below = transforms(env)
        if transform.once and any(other.transform.wrapper == transform.wrapper for other in below):
            raise ValueError(f"env must have no {transform.wrapper} yet, {transform.once}")
        self._maker: Bound | None = _maker(below)
        self.objectives = len(self._maker.transform.objectives) if self._maker else 0
        if self.objectives and transform.changes_reward and not transform.takes_vector:
            raise ValueError("env must have a reward that is a number: put what makes it a vector above all others")
        if transform.takes_vector and not self.objectives:
            raise ValueError("env must have a vector reward, such as FairnessObjectives makes, got a number")
        self._env = env
        self._hides = transform.reports and (self.own or other_layer(env) is not None)
        self._kept: NDArray[Any] | None = None  # what came up from below, where the lanes cannot tell it
        lanes: Lanes | Worlds = self.face.lanes
        self.lanes, self.agents, self.joint = lanes.count, lanes.agents, joint
        self.multi_agent = lanes.rules.multi_agent
        self.space = _of_one(space, lanes, type(transform).__name__) if joint else space
        self.rewards = np.zeros((self.lanes, self.agents))
        spec: FairSpec = self.face.fair_spec
        setting = Setting(
            lanes=lanes,
            observation_space=self.space,  # type: ignore[arg-type]
            told=spec,
            objectives=self.objectives,
            focal=getattr(self.face, "focal_agent", None),
        )
        self.transform.bind(setting)
        self.shown_space = self.transform.space(self.space)  # type: ignore[arg-type]
        if (told := self.transform.fair_spec(spec)) != spec:
            _check_unknown(self.face, self.transform)
            vars(self.face)["told_spec"] = told
        if self.transform.histories:
            vars(self.face)["histories"] = (*self.face.histories, *self.transform.histories)

    def saw(self, observation: NDArray[Any]) -> None:
        """Keep what came up from below, (B, agents, ...): a policy is asked about it, and the lanes cannot tell it."""
        if self._hides:
            self._kept, self._clock = observation.copy(), self._now()

    def _seen(self) -> NDArray[Any]:
        """Return what is seen below, (B, agents, ...), or raise ValueError where it is not known."""
        if not self._hides:
            return seen(self._env, self.face.lanes)
        other = type(other_layer(self._env)).__name__
        if getattr(self.face, "focal_agent", None) is not None:
            raise ValueError(f"env must be under joint control above {other}, through which the partners do not see")
        if self._kept is None:
            raise NotReset("step must follow a reset")
        if not np.array_equal(self._clock, self._now()):
            raise ValueError(f"env must not be set to another state below {other}, which may change what is seen of it")
        kept: NDArray[Any] = self._kept.copy()
        return kept

    def _now(self) -> NDArray[Any]:
        """Return where each lane is in its episodes, shape (2, B), if that can be known."""
        if self.own:
            return np.empty((2, 0))
        records = self.face.lanes.records
        return np.stack([records["key"], records["time"].astype(np.uint64)])

    def reported(self) -> NDArray[Any]:
        """Return the probabilities of the next actions by what is seen below, one row where one person is met.

        The shape is (B, M, A), or (B, A) where each step is about one person.

        Raises:
            ValueError: Another shape.
        """
        spec: FairSpec = self.face.fair_spec
        probs = np.asarray(self.transform.action_probs(self._seen))
        if probs.shape != (self.lanes, spec.individuals, spec.actions):
            shape = (self.lanes, spec.individuals, spec.actions)
            raise ValueError(f"action_probs must have shape {shape}, got {probs.shape}")
        return probs[:, 0] if spec.one_person else probs

    def earned(self, reward: Any, own: Any) -> tuple[Floats, Floats32 | None]:
        """Return the agents' rewards, shape (B, agents), and the vectors, if a layer below has made the reward one.

        Args:
            reward: What the layer below returned: numbers of the lanes or of the agents, or vectors of the lanes.
            own: The agents' rewards, if they are told.

        Raises:
            ValueError: A layer between here and what makes the vector has changed its shape, or there is no such layer
                and the reward is no number.
        """
        if self._maker is None:
            if own is None and np.size(reward) != self.rewards.size:
                raise ValueError(f"reward must be a number for each lane and agent, got shape {np.shape(reward)}")
            return np.array(reward if own is None else own, float).reshape(self.lanes, -1), None
        if np.size(reward) != self.lanes * self.objectives:
            name, given = type(self.transform).__name__, np.shape(reward)
            raise ValueError(
                f"reward must be the vector of {self.objectives} objectives made below {name}, got shape {given}; put "
                "other libraries' wrappers that change it above"
            )
        return self._maker.rewards, np.reshape(reward, (self.lanes, self.objectives))

    @property
    def reward_space(self) -> Box | None:
        """The space of the vector reward; None: the reward is a number."""
        count = len(self.transform.objectives)
        if not count:
            return None
        high = np.array(self.transform.objectives_at_most or (np.inf,) * count, np.float32)
        return Box(np.full(count, -np.inf, np.float32), high, dtype=np.float32)

    def face_space(self) -> gym.Space[Any]:
        """Return the face's observation space after the transform."""
        return joint_space(self.shown_space, self.agents, drop=not self.joint)

    def split(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return observations as (B, agents, ...)."""
        return observation.reshape(self.lanes, self.agents, *(self.space.shape or ()))

    def step(
        self,
        observation: NDArray[Any],
        reward: Floats,
        vector: Floats32 | None,
        *,
        over: Flags,
        decided: Flags | None = None,
    ) -> tuple[Batch, Batch]:
        """Return a step as it comes from below, and as the layer above sees it; `Batch` describes the arguments."""
        decided = np.ones(self.lanes, bool) if decided is None else decided
        facts, probs = self.face.interactions, self.face.action_probs
        batch = Batch(observation, reward, facts, decided, ~decided, over, vector, probs)
        out = self.transform(batch)
        self.rewards, self.face.interactions = out.reward, out.facts
        return batch, out

    def reset(self, observation: NDArray[Any], first: Flags | None = None) -> Batch:
        """Return lanes that a reset began as the layer above sees them, all by default."""
        self.saw(observation)
        out = self.start(observation, np.ones(self.lanes, bool) if first is None else first)
        self.face.interactions = out.facts
        return out

    def start(self, observation: NDArray[Any], first: Flags) -> Batch:
        """Return what the transform makes of lanes that show their first observation; observations (B, agents, ...)."""
        return self.transform(self._undecided(observation, self.face.interactions)._replace(first=first))

    def look(self, observation: NDArray[Any], facts: Records) -> Batch:
        """Return what the transform makes of observations that follow nothing; its memory stays."""
        return self.transform(self._undecided(observation, facts))

    def _undecided(self, observation: NDArray[Any], facts: Records) -> Batch:
        reward, nobody = np.zeros((self.lanes, self.agents)), np.zeros(self.lanes, bool)
        return Batch(observation, reward, facts, decided=nobody, first=nobody, over=nobody)


def transforms(env: Any) -> list[Bound]:
    """Return the transforms that an environment is wrapped in, bound to it, from outside to inside."""
    return [layer.bound for layer in layers(env) if isinstance(layer, Wrapper)]


def _maker(below: list[Bound]) -> Bound | None:
    """Return which of these, from outside to inside, makes the reward the vector that it is; None: it is a number."""
    for bound in below:
        if bound.transform.takes_vector or bound.transform.objectives:
            return bound if bound.transform.objectives else None
    return None


def _check_unknown(face: Any, transform: Transform) -> None:
    """Raise ValueError if a history below a transform that changes the facts has been told them as they were."""
    if face.histories:
        name = type(transform).__name__
        raise ValueError(
            f"env must keep no history of decisions below {name}, which changes the facts: put {name} below "
            "FairnessObjectives and FairnessPenalty"
        )


def other_layer(env: Any) -> Any | None:
    """Return the outermost wrapper of another library that may change observations; None: there is none."""
    others = (layer for layer in layers(env) if layer is not env.unwrapped)
    return next((one for one in others if not (isinstance(one, Wrapper) or leaves_observations(one))), None)


def seen(env: Any, lanes: Lanes | Worlds) -> NDArray[Any]:
    """Return what lanes show now through the transforms of an environment, shape (B, agents, ...).

    Args:
        env: An environment of any face, without wrappers of other libraries that change observations.
        lanes: Its own, or as many with the same rules.
    """
    step = lanes.show()
    observation = step.observation
    if getattr(env.unwrapped, "append_group", False):
        group = step.facts["group"][..., np.newaxis].astype(observation.dtype)
        observation = np.concatenate([observation, group], axis=-1)
    for bound in reversed(transforms(env)):
        observation = bound.look(observation, step.facts).observation
    return observation


def layers(env: Any) -> Iterator[Any]:
    """Yield the environment and those that it wraps, from outside to inside."""
    innermost = env.unwrapped
    while env is not None:
        yield env
        env = None if env is innermost else vars(env).get("env", vars(env).get("venv"))


def _of_one(space: gym.Space[Any], lanes: Lanes | Worlds, name: str) -> Box:
    """Return the space of one agent that a joint space is made of.

    Raises:
        ValueError: It is not made of so many agents' spaces, because of a wrapper below the transform of that name.
    """
    if not isinstance(space, Box) or len(space.shape) != 1 or space.shape[0] % lanes.agents:
        raise ValueError(
            f"env must show the observations of {lanes.agents} agents one after another to {name}, got {space.shape}: "
            f"put {name} below wrappers of other libraries that change their shape"
        )
    shape = lanes.rules.observation_space(lanes.rules.params).shape or ()
    size = space.low.size // lanes.agents
    shape = shape if int(np.prod(shape)) == size else (size,)
    low, high = (bound[:size].reshape(shape) for bound in (space.low, space.high))
    return Box(low, high, dtype=space.dtype.type)


def rewards_anew(batch: Batch, out: Batch) -> bool:
    """Return whether a transform has made a reward of the agents' rewards: changed them, or made a vector of them."""
    return batch.vector is None and (out.reward is not batch.reward or out.vector is not None)


def check_untouched(reward: Any, expected: Any, transform: Transform) -> None:
    """Raise ValueError if the reward is not the one that the agents' rewards make."""
    if not np.array_equal(reward, expected):
        name = type(transform).__name__
        raise ValueError(f"reward must be the mean of the agents' rewards; put {name} below what changes it")


def pick(rows: Flags, then: NDArray[Any], otherwise: NDArray[Any]) -> NDArray[Any]:
    """Return ``then`` in the masked rows and ``otherwise`` in the rest; fresh."""
    mixed: NDArray[Any] = otherwise.copy()
    mixed[rows] = then[rows]
    return mixed


def only(rows: Flags, column: NDArray[Any]) -> NDArray[Any]:
    """Return the column with zeros outside the masked rows; fresh."""
    return pick(rows, column, np.zeros_like(column))


# Gymnasium, one lane -------------------------------------------------------------------------------------------------


class SingleAdapter(gym.Wrapper[Any, Any, Any, Any]):
    """A transform on a Gymnasium environment, under joint and under focal control.

    The scalar reward is the mean of ``info["agent_reward"]``, or the focal agent's. Under focal control only the focal
    agent's observation is changed; what its partners see is not.

    Attributes:
        bound: The transform and the shapes.
    """

    _given: tuple[tuple[Any, ...], dict[str, Any]]  # arguments of the wrapper after the environment

    def __init__(self, env: gym.Env[Any, Any], transform: Transform) -> None:
        super().__init__(env)
        face = face_of(env)
        self._focal: int | None = face.focal_agent
        joint = self._focal is None and face.lanes.rules.multi_agent
        self.bound = Bound(env, transform, env.observation_space, joint=joint, face=face)
        self._first: OwnFace | None = face if self.bound.own and not transforms(env) else None  # meets one's own info
        self.observation_space = self.bound.face_space()
        if (space := self.bound.reward_space) is not None:
            for owner in (self, env.unwrapped):
                vars(owner).update(reward_space=space, reward_dim=space.shape[0])

    @property
    def fair_spec(self) -> FairSpec:
        """The static facts of the environment."""
        return self.bound.face.fair_spec  # type: ignore[no-any-return]

    @property
    def histories(self) -> tuple[History, ...]:
        """What wrappers remember of the decisions, the innermost first; ``env.get_wrapper_attr("histories")``."""
        return self.bound.face.histories  # type: ignore[no-any-return]

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """The environment's spec, with this wrapper."""
        if self._cached_spec is None and self.env.spec is not None:
            kind, (args, settings) = type(self), self._given
            _, _, *given = inspect.signature(kind.__init__).bind(self, self.env, *args, **settings).arguments.items()
            made = gym.envs.registration.WrapperSpec(kind.__name__, f"{kind.__module__}:{kind.__name__}", dict(given))
            spec = copy.deepcopy(self.env.spec)
            spec.additional_wrappers += (made,)
            self._cached_spec = spec
        return self._cached_spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        info = info if self._first is None else self._first.told(info, decided=False)
        split = self._split(observation)
        out = self.bound.reset(split)
        return self._shown(out, split, observation), {**info, **_row(out)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one step."""
        if self.bound.transform.reports:
            self.bound.face.report_action_probs(self.bound.reported()[0])
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = info if self._first is None else self._first.told(info, decided=True)
        earned = self.bound.earned(reward, info.get("agent_reward") if self.bound.multi_agent else None)
        split = self._split(observation)
        self.bound.saw(split)
        batch, out = self.bound.step(split, *earned, over=np.array([terminated or truncated]))
        if self.bound.multi_agent and rewards_anew(batch, out):  # one decision-maker's is the reward itself
            check_untouched(reward, self._number(batch), self.bound.transform)
        if out.reward is not batch.reward:
            reward = self._number(out)
            if self.bound.multi_agent:
                info = {**info, "agent_reward": out.reward[0]}
        if out.vector is not None:
            reward = out.vector[0]
        shown = self._shown(out, split, observation)
        return shown, reward, terminated, truncated, {**info, **_row(out)}

    def _number(self, batch: Batch) -> float:
        return float(batch.reward[0].mean() if self._focal is None else batch.reward[0, self._focal])

    def _split(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the observation as (1, agents, ...); 0 for all but the focal agent under focal control."""
        if self.bound.own:
            return stacked(observation, self.bound.space)
        if self._focal is None:
            return self.bound.split(observation)
        everyone = np.zeros((1, self.bound.agents, *observation.shape), observation.dtype)
        everyone[0, self._focal] = observation
        return everyone

    def _shown(self, out: Batch, split: NDArray[Any], observation: Any) -> Any:
        """Return the observation above; one's own environment's is left as it came, if the transform leaves it."""
        return observation if self.bound.own and out.observation is split else self._join(out)

    def _join(self, out: Batch) -> NDArray[Any]:
        if self._focal is None:
            return out.observation.reshape(self.observation_space.shape or ())
        own: NDArray[Any] = out.observation[0, self._focal].copy()
        return own


def _row(batch: Batch) -> dict[str, Any]:
    """Return what the transform added about the only lane."""
    return {name: column[0] for name, column in batch.added.items()}


# Gymnasium, B lanes --------------------------------------------------------------------------------------------------


class BatchAdapter(VectorWrapper[Any, Any, Any, Any, Any]):
    """A transform on a Gymnasium vector environment, in each of the three autoreset modes.

    Attributes:
        bound: The transform and the shapes.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], transform: Transform) -> None:
        super().__init__(env)
        joint = env.unwrapped.lanes.rules.multi_agent  # type: ignore[attr-defined]
        self.bound = Bound(env, transform, env.single_observation_space, joint=joint)
        self.single_observation_space = self.bound.face_space()
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        if (space := self.bound.reward_space) is not None:
            for owner in (self, env.unwrapped):
                # one lane's, as in MO-Gymnasium's batches, whose wrappers read the objectives from its shape
                vars(owner).update(single_reward_space=space, reward_space=space, reward_dim=space.shape[0])

    @property
    def fair_spec(self) -> FairSpec:
        """The static facts of the environment."""
        return self.env.unwrapped.fair_spec  # type: ignore[attr-defined, no-any-return]

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When lanes that are over begin again."""
        return self.env.unwrapped.autoreset_mode  # type: ignore[attr-defined, no-any-return]

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all lanes, or in those of ``options["reset_mask"]``."""
        observation, info = self.env.reset(seed=seed, options=options)
        first = info["_fair_decided"]
        out = self.bound.reset(self.bound.split(observation), first)
        return self._join(out), {**info, **_masked(out.added, first)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one step of every lane."""
        if self.bound.transform.reports:
            self.env.unwrapped.report_action_probs(self.bound.reported())  # type: ignore[attr-defined]
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self.bound.saw(self.bound.split(observation))
        over = terminated | truncated
        decided = info["fair_decided"] == 1
        restarted = over & ~decided  # the mode SameStep: these lanes show their next episode already
        earned = self.bound.earned(reward, self._agent_reward(info, restarted))
        batch, out = self.bound.step(
            self._ends(observation, info, restarted), *earned, over=over, decided=decided | over
        )
        if self.bound.multi_agent and rewards_anew(batch, out):  # one decision-maker's is the reward itself
            check_untouched(reward, batch.reward.mean(axis=1), self.bound.transform)
        if out.reward is not batch.reward:
            reward = out.reward.mean(axis=1)
        if out.vector is not None:
            reward = out.vector
        shown, info = self._told(out, observation, info, restarted, changed=out.reward is not batch.reward)
        return shown, reward, terminated, truncated, info

    def _ends(self, observation: Any, info: dict[str, Any], restarted: Flags) -> NDArray[Any]:
        """Return the observations that the decisions led to; those of restarted lanes are under ``final_obs``."""
        ends = self.bound.split(observation)
        if restarted.any():
            ends = ends.copy()
            for lane in np.flatnonzero(restarted):
                ends[lane] = info["final_obs"][lane].reshape(ends.shape[1:])
        return ends

    def _agent_reward(self, info: dict[str, Any], restarted: Flags) -> Floats | None:
        """Return the agents' rewards, if they are told; those of restarted lanes are under ``final_info``."""
        own: Floats | None = info.get("agent_reward")
        if own is None or not restarted.any():
            return own
        return pick(restarted, info["final_info"]["agent_reward"], own)

    def _told(
        self, out: Batch, observation: Any, info: dict[str, Any], restarted: Flags, *, changed: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Return observations and info, in which the ends of restarted lanes are under ``final_*``."""
        going = np.ones(self.num_envs, bool)
        told = dict(out.added)
        if changed and "agent_reward" in info:
            told["agent_reward"] = out.reward
        if not restarted.any():
            return self._join(out), {**info, **_masked(told, going)}
        final = {name: only(restarted, column) for name, column in told.items()}
        start = self.bound.start(self.bound.split(observation), restarted)
        begun = {"agent_reward": np.zeros_like(out.reward), **start.added}
        info = {**info, **_masked({name: pick(restarted, begun[name], told[name]) for name in told}, going)}
        info["final_info"] = {**info["final_info"], **_masked(final, restarted)}
        info["final_obs"] = np.full(self.num_envs, None, dtype=object)
        ends = self._join(out)
        for lane in np.flatnonzero(restarted):
            info["final_obs"][lane] = ends[lane].copy()
        return pick(restarted, self._join(start), ends), info

    def _join(self, out: Batch) -> NDArray[Any]:
        return out.observation.reshape(self.observation_space.shape or ())


def _masked(columns: Columns, rows: Flags) -> dict[str, NDArray[Any]]:
    """Return the columns with Gymnasium's mask beside each: which lanes have the key."""
    told = {}
    for name, column in columns.items():
        told[name], told["_" + name] = only(rows, column), rows.copy()
    return told


# PettingZoo ----------------------------------------------------------------------------------------------------------


class AgentsAdapter(BaseParallelWrapper[str, Any, Any]):
    """A transform on a PettingZoo parallel environment.

    Attributes:
        bound: The transform and the shapes.
    """

    def __init__(self, env: ParallelEnv[str, Any, Any], transform: Transform) -> None:
        super().__init__(env)
        names = env.possible_agents
        self.bound = Bound(env, transform, env.observation_space(names[0]), joint=False)
        self.observation_spaces = dict.fromkeys(names, self.bound.shown_space)
        self.state_space = joint_space(self.bound.shown_space, len(names), drop=False)
        if (space := self.bound.reward_space) is not None:
            for owner in (self, env.unwrapped):
                vars(owner).update(reward_spaces=dict.fromkeys(names, space), reward_dim=space.shape[0])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.env!r}>"

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """Return the agent's observation space."""
        return self.observation_spaces[agent]

    def reward_space(self, agent: str) -> Box:
        """Return the space of the agent's vector reward."""
        space: Box = self.reward_spaces[agent]
        return space

    def state(self) -> NDArray[Any]:
        """Return all agents' observations one after another, as the agents see them."""
        lanes: Lanes = self.env.unwrapped.lanes  # type: ignore[attr-defined]
        below = self.env.state().reshape(1, lanes.agents, *(self.bound.space.shape or ()))
        return self.bound.look(below, lanes.show().facts).observation.reshape(-1)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin an episode."""
        observations, infos = self.env.reset(seed=seed, options=options)
        out = self.bound.reset(_stack(observations))
        return _see(out, observations), self._infos(out, infos)

    def step(self, actions: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Play one step of all agents."""
        if self.bound.transform.reports:
            probs = self.bound.reported().reshape(len(self.possible_agents), -1)
            self.env.unwrapped.report_action_probs(dict(zip(self.possible_agents, probs, strict=True)))  # type: ignore[attr-defined]
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        rewarded = next(iter(rewards.values())) if self.bound.objectives else _stack(rewards)
        earned, seen = self.bound.earned(rewarded, None), _stack(observations)
        self.bound.saw(seen)
        batch, out = self.bound.step(seen, *earned, over=np.array([not self.env.agents]))
        if out.reward is not batch.reward:
            rewards = dict(zip(rewards, out.reward[0].tolist(), strict=True))
        if out.vector is not None:
            rewards = {name: out.vector[0].copy() for name in rewards}
        return _see(out, observations), rewards, terminations, truncations, self._infos(out, infos)

    def _infos(self, out: Batch, infos: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the infos with what the transform added, to each agent its own."""
        told = {}
        for i, (name, info) in enumerate(infos.items()):
            told[name] = dict(info)
            for key, column in out.added.items():
                value = column[0, i] if key in self.bound.transform.personal else column[0]
                told[name][key] = value.copy()
        return told


def _see(out: Batch, observations: dict[str, Any]) -> dict[str, Any]:
    """Return the observations by agent."""
    return dict(zip(observations, out.observation[0].copy(), strict=True))


def _stack(values: Mapping[str, Any]) -> NDArray[Any]:
    """Return the agents' values as one row, shape (1, agents, ...)."""
    return np.array(list(values.values()))[np.newaxis]
