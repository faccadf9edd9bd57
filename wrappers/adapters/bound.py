"""A transform bound to an environment, shared by the adapters of all interfaces."""

import copy
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from fair_envs.core import Lanes, Worlds
from fair_envs.core.interactions import FairSpec
from fair_envs.faces.common import NotReset, joint_space
from fair_envs.support.aliases import Flags, Floats, Floats32, Records
from fair_envs.wrappers.adapters.others import leaves_observations
from fair_envs.wrappers.adapters.own import OwnFace
from fair_envs.wrappers.transform import Batch, Setting, Transform


def face_of(env: Any) -> Any:
    """Return the interface object below all wrappers; for a user's own environment, its replacement (`OwnFace`).

    Raises:
        TypeError: It is neither an environment of this package nor a user's own with a spec.
    """
    known = isinstance(env, (gym.Env, VectorEnv, ParallelEnv)) or _is_vec_env(env)
    if known and isinstance(getattr(env.unwrapped, "lanes", None), (Lanes, Worlds)):
        return env.unwrapped
    if isinstance(env, (gym.Env, VectorEnv)):
        if below := transforms(env):
            return below[0].face
        if (spec := _own_spec(env)) is not None:
            return OwnFace(env, spec, lanes=env.num_envs if isinstance(env, VectorEnv) else None)
    raise TypeError(
        "env must be an environment of fair_envs, with any interface, or a Gymnasium environment with its FairSpec as "
        f"fair_spec, which the wrapper Annotate adds, got {env!r}"
    )


def _own_spec(env: Any) -> FairSpec | None:
    """Return the spec of a user's own environment, or of all environments of a vector environment.

    Raises:
        ValueError: The environments of a vector environment have different ones.
    """
    if isinstance(env, gym.Env):
        found = [env.get_wrapper_attr("fair_spec")] if env.has_wrapper_attr("fair_spec") else []
    else:
        try:
            found = list(env.unwrapped.get_attr("fair_spec"))
        except AttributeError:  # of an environment, or of a vector environment without get_attr
            return None
    if any(spec != found[0] for spec in found):
        raise ValueError("env must have the same FairSpec in all its environments, got different ones")
    return found[0] if found and isinstance(found[0], FairSpec) else None


def _is_vec_env(env: Any) -> bool:
    """Return whether this is a Stable-Baselines3 environment, without importing that library."""
    module = sys.modules.get("stable_baselines3.common.vec_env")
    return module is not None and isinstance(env, module.VecEnv)


class Bound:
    """A transform bound to an environment, with the shapes of the environment's interface.

    Args:
        env: The environment below.
        transform: The transform; it is copied.
        space: The observation space below.
        joint: Whether that space contains the observations of all agents.
        face: The environment's interface object, see `face_of`.

    Attributes:
        rewards: The agents' rewards after the last step, shape (B, agents).
        given: The agents' rewards from below in the last step, shape (B, agents).

    Raises:
        ValueError: The environment lacks what the transform needs; its reward is a vector where a number is needed, or
            a number where a vector is needed; a history below stores what the transform changes; or the environment
            already has such a transform, see `Transform.once`.
    """

    def __init__(self, env: Any, transform: Transform, space: gym.Space[Any], *, joint: bool, face: Any = None) -> None:
        self.face = env.unwrapped if face is None else face
        self.own = isinstance(self.face, OwnFace)
        self.transform: Transform = copy.deepcopy(transform)
        if self.own and transform.needs_rules:
            name = transform.wrapper or type(transform).__name__
            raise ValueError(f"env must be an environment of fair_envs for {name}, got {self.face.lanes.rules.name}")
        below = transforms(env)
        if transform.once and any(other.transform.wrapper == transform.wrapper for other in below):
            raise ValueError(f"env must have no {transform.wrapper} yet, {transform.once}")
        self._vector_source: Bound | None = _vector_source(below)
        self.objectives = len(self._vector_source.transform.objectives) if self._vector_source else 0
        if self.objectives and transform.changes_reward and not transform.takes_vector:
            raise ValueError("env must have a reward that is a number: put the wrapper that makes a vector above this")
        if transform.takes_vector and not self.objectives:
            raise ValueError("env must have a vector reward, such as that of FairnessObjectives, got a number")
        self._env = env
        self._hides = transform.reports and (self.own or other_layer(env) is not None)
        self._kept: NDArray[Any] | None = None  # the observation from below, if the lanes cannot reproduce it
        lanes: Lanes | Worlds = self.face.lanes
        self.lanes, self.agents, self.joint = lanes.count, lanes.agents, joint
        self.multi_agent, self.focal = lanes.rules.multi_agent, getattr(self.face, "focal_agent", None)
        self.space = _of_one(space, lanes, type(transform).__name__) if joint else space
        self.rewards = self.given = np.zeros((self.lanes, self.agents))
        spec: FairSpec = self.face.fair_spec
        setting = Setting(
            lanes=lanes,
            observation_space=self.space,  # type: ignore[arg-type]
            reported=spec,
            objectives=self.objectives,
            focal=self.focal,
        )
        self.transform.bind(setting)
        self.shown_space = self.transform.space(self.space)  # type: ignore[arg-type]
        self._joined_shape = self.face_space().shape or ()
        if (changed := self.transform.fair_spec(spec)) != spec:
            _check_unknown(self.face, self.transform)
            vars(self.face)["reported_spec"] = changed
        if self.transform.histories:
            vars(self.face)["histories"] = (*self.face.histories, *self.transform.histories)

    def store_observation(self, observation: NDArray[Any]) -> None:
        """Store the observation from below, (B, agents, ...), for the policy, if the lanes cannot reproduce it."""
        if self._hides:
            self._kept, self._clock = observation.copy(), self._now()

    def _seen(self) -> NDArray[Any]:
        """Return the observation below, (B, agents, ...), or raise ValueError if it is not known."""
        if not self._hides:
            return seen(self._env, self.face.lanes)
        other = type(other_layer(self._env)).__name__
        if self.focal is not None:
            raise ValueError(f"env must be under joint control above {other}, which does not apply to the partners")
        if self._kept is None:
            raise NotReset("step must follow a reset")
        if not np.array_equal(self._clock, self._now()):
            raise ValueError(f"env must not be set to another state below {other}, which may change observations")
        kept: NDArray[Any] = self._kept.copy()
        return kept

    def _now(self) -> NDArray[Any]:
        """Return the position of each lane in its episodes, shape (2, B); empty for a user's own environment."""
        if self.own:
            return np.empty((2, 0))
        records = self.face.lanes.records
        return np.stack([records["key"], records["time"].astype(np.uint64)])

    def reported(self) -> NDArray[Any]:
        """Return the probabilities of the next actions, given the observation below.

        The shape is (B, M, A), or (B, A) if each step affects one person.

        Raises:
            ValueError: The transform's probabilities have another shape.
        """
        spec: FairSpec = self.face.fair_spec
        probs = np.asarray(self.transform.action_probs(self._seen))
        if probs.shape != (self.lanes, spec.individuals, spec.actions):
            shape = (self.lanes, spec.individuals, spec.actions)
            raise ValueError(f"action_probs must have shape {shape}, got {probs.shape}")
        return probs[:, 0] if spec.one_person else probs

    def earned(self, reward: Any, own: Any) -> tuple[Floats, Floats32 | None]:
        """Return the agents' rewards, shape (B, agents), and the vector rewards, if a wrapper below makes them.

        Args:
            reward: The reward from below: a number for each lane or agent, or a vector for each lane.
            own: The agents' rewards, if they are reported.

        Raises:
            ValueError: A wrapper between this one and the one that makes the vector has changed its shape; or there is
                no such wrapper and the reward is not a number.
        """
        if self._vector_source is None:
            rewards = np.array(reward if own is None else own, float)
            if own is None and rewards.size != self.rewards.size:
                raise ValueError(f"reward must have one number for each lane and agent, got shape {rewards.shape}")
            return rewards.reshape(self.lanes, -1), None
        if np.size(reward) != self.lanes * self.objectives:
            name, given = type(self.transform).__name__, np.shape(reward)
            raise ValueError(
                f"reward must be the vector of {self.objectives} objectives made below {name}, got shape {given}: put "
                "wrappers of other libraries that change it above"
            )
        return self._vector_source.rewards, np.reshape(reward, (self.lanes, self.objectives))

    @property
    def reward_space(self) -> Box | None:
        """The space of the vector reward; None: the reward is a number."""
        count = len(self.transform.objectives)
        if not count:
            return None
        high = np.array(self.transform.objectives_at_most or (np.inf,) * count, np.float32)
        return Box(np.full(count, -np.inf, np.float32), high, dtype=np.float32)

    def face_space(self) -> gym.Space[Any]:
        """Return the interface's observation space after the transform."""
        return joint_space(self.shown_space, self.agents, drop=not self.joint)

    def split(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return observations as (B, agents, ...); 0 for all but the focal agents under focal control."""
        if self.focal is None:
            return observation.reshape(self.lanes, self.agents, *(self.space.shape or ()))
        everyone = np.zeros((self.lanes, self.agents, *(self.space.shape or ())), observation.dtype)
        everyone[:, self.focal] = observation
        return everyone

    def join(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return observations of shape (B, agents, ...) as the interface shows them, shape (B, ...)."""
        if self.focal is not None:
            return np.array(observation[:, self.focal])
        return observation.reshape(self.lanes, *self._joined_shape)

    def rewards_of(self, batch: Batch) -> Floats:
        """Return the rewards of the lanes, shape (B,): the agents' means, or under focal control the focal agents'."""
        return batch.reward.mean(axis=1) if self.focal is None else batch.reward[:, self.focal]

    def step(
        self,
        observation: NDArray[Any],
        reward: Floats,
        vector: Floats32 | None,
        *,
        done: Flags,
        decided: Flags | None = None,
    ) -> tuple[Batch, Batch]:
        """Return a step before and after the transform; `Batch` describes the arguments."""
        decided = np.ones(self.lanes, bool) if decided is None else decided
        facts, probs = self.face.interactions, self.face.action_probs
        batch = Batch(observation, reward, facts, decided, ~decided, done, vector, probs)
        out = self.transform(batch)
        self.given, self.rewards, self.face.interactions = batch.reward, out.reward, out.facts
        return batch, out

    def reset(self, observation: NDArray[Any], first: Flags | None = None) -> Batch:
        """Return lanes after a reset (all by default) and the transform."""
        self.store_observation(observation)
        out = self.start(observation, np.ones(self.lanes, bool) if first is None else first)
        self.face.interactions = out.facts
        return out

    def start(self, observation: NDArray[Any], first: Flags) -> Batch:
        """Return lanes with their first observation, (B, agents, ...), after the transform."""
        return self.transform(self._undecided(observation, self.face.interactions)._replace(first=first))

    def transform_observation(self, observation: NDArray[Any], facts: Records) -> Batch:
        """Return observations outside any step, after the transform; the transform's state does not change."""
        return self.transform(self._undecided(observation, facts))

    def _undecided(self, observation: NDArray[Any], facts: Records) -> Batch:
        reward, nobody = np.zeros((self.lanes, self.agents)), np.zeros(self.lanes, bool)
        return Batch(observation, reward, facts, decided=nobody, first=nobody, done=nobody)


def is_transform(layer: Any) -> bool:
    """Return whether a layer (the environment or one of its wrappers) is a wrapper of this package."""
    return isinstance(vars(layer).get("bound"), Bound)


def transforms(env: Any) -> list[Bound]:
    """Return the bound transforms of an environment's wrappers, from the outermost to the innermost."""
    return [layer.bound for layer in layers(env) if is_transform(layer)]


def _vector_source(below: list[Bound]) -> Bound | None:
    """Return the bound transform that makes the reward a vector; None: the reward is a number.

    Args:
        below: The bound transforms, from the outermost to the innermost.
    """
    for bound in below:
        if bound.transform.takes_vector or bound.transform.objectives:
            return bound if bound.transform.objectives else None
    return None


def _check_unknown(face: Any, transform: Transform) -> None:
    """Raise ValueError if there is a history below a transform that changes the record."""
    if face.histories:
        name = transform.wrapper or type(transform).__name__
        raise ValueError(
            f"env must keep no history of decisions below {name}, which changes the record: put {name} below "
            "FairnessObjectives and FairnessPenalty"
        )


def other_layer(env: Any) -> Any | None:
    """Return the outermost wrapper of another library that may change observations, or None."""
    others = (layer for layer in layers(env) if layer is not env.unwrapped)
    return next((one for one in others if not (is_transform(one) or leaves_observations(one))), None)


def seen(env: Any, lanes: Lanes | Worlds) -> NDArray[Any]:
    """Return the current observations of lanes after the transforms of an environment, shape (B, agents, ...).

    Args:
        env: An environment with any interface, without wrappers of other libraries that change observations.
        lanes: The environment's lanes, or the same number of lanes with the same rules.
    """
    step = lanes.show()
    observation = step.observation
    if hasattr(env.unwrapped, "with_appended"):
        observation = env.unwrapped.with_appended(step)
    for bound in reversed(transforms(env)):
        observation = bound.transform_observation(observation, step.facts).observation
    return observation


def layers(env: Any) -> Iterator[Any]:
    """Yield the environment and all environments below it, from the outermost to the innermost."""
    innermost = env.unwrapped
    while env is not None:
        yield env
        env = None if env is innermost else vars(env).get("env", vars(env).get("venv"))


def _of_one(space: gym.Space[Any], lanes: Lanes | Worlds, name: str) -> Box:
    """Return the observation space of one agent from the joint space of all agents.

    Raises:
        ValueError: A wrapper below the named transform has changed the shape of the joint space.
    """
    if not isinstance(space, Box) or len(space.shape) != 1 or space.shape[0] % lanes.agents:
        raise ValueError(
            f"env must have the joined observations of {lanes.agents} agents below {name}, got shape {space.shape}: "
            f"put {name} below wrappers of other libraries that change the shape"
        )
    shape = lanes.rules.observation_space(lanes.rules.params).shape or ()
    size = space.low.size // lanes.agents
    shape = shape if int(np.prod(shape)) == size else (size,)
    low, high = (bound[:size].reshape(shape) for bound in (space.low, space.high))
    return Box(low, high, dtype=space.dtype.type)


def rewards_anew(batch: Batch, out: Batch) -> bool:
    """Return whether a transform has made a new reward: changed the agents' rewards, or made a vector of them."""
    return batch.vector is None and (out.reward is not batch.reward or out.vector is not None)


def check_untouched(reward: Any, expected: Any, transform: Transform) -> None:
    """Raise ValueError if the reward does not equal the reward computed from the agents' rewards."""
    if not np.array_equal(reward, expected):
        name = transform.wrapper or type(transform).__name__
        raise ValueError(
            f"reward must be the mean of the agents' rewards: put {name} below wrappers that change the reward"
        )


def select_rows(rows: Flags, then: NDArray[Any], otherwise: NDArray[Any]) -> NDArray[Any]:
    """Return a new array with ``then`` in the masked rows and ``otherwise`` in all others."""
    mixed: NDArray[Any] = otherwise.copy()
    mixed[rows] = then[rows]
    return mixed


def only(rows: Flags, column: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of the column with zeros outside the masked rows."""
    return select_rows(rows, column, np.zeros_like(column))
