"""The adapter for a Gymnasium environment with one lane."""

import copy
import inspect
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.history import History
from fair_envs.wrappers.adapters.bound import Bound, check_untouched, face_of, rewards_anew, transforms
from fair_envs.wrappers.adapters.own import OwnFace, stacked
from fair_envs.wrappers.transform import Batch, Transform


class SingleAdapter(gym.Wrapper[Any, Any, Any, Any]):
    """A transform on a Gymnasium environment, under joint and under focal control.

    The scalar reward is the mean of ``info["agent_reward"]``, or the focal agent's entry. Under focal control, only the
    observation of the focal agent changes, not those of its partners.

    Attributes:
        bound: The transform and the shapes.
    """

    _given: tuple[tuple[Any, ...], dict[str, Any]]  # arguments of the wrapper after the environment

    def __init__(self, env: gym.Env[Any, Any], transform: Transform) -> None:
        super().__init__(env)
        face = face_of(env)
        joint = face.focal_agent is None and face.lanes.rules.multi_agent
        self.bound = Bound(env, transform, env.observation_space, joint=joint, face=face)
        self._first: OwnFace | None = face if self.bound.own and not transforms(env) else None  # reads the user's info
        self.observation_space = self.bound.face_space()
        if (space := self.bound.reward_space) is not None:
            for owner in (self, env.unwrapped):
                vars(owner).update(reward_space=space, reward_dim=space.shape[0])

    @property
    def fair_spec(self) -> FairSpec:
        """The environment's `FairSpec`."""
        return self.bound.face.fair_spec  # type: ignore[no-any-return]

    @property
    def histories(self) -> tuple[History, ...]:
        """The wrappers' histories of decisions, the innermost first; ``env.get_wrapper_attr("histories")``."""
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
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        info = info if self._first is None else self._first.extra(info, decided=False)
        split = self._split(observation)
        out = self.bound.reset(split)
        return self._shown(out, split, observation), {**info, **_row(out)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one step."""
        if self.bound.transform.reports:
            self.bound.face.report_action_probs(self.bound.reported()[0])
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = info if self._first is None else self._first.extra(info, decided=True)
        earned = self.bound.earned(reward, info.get("agent_reward") if self.bound.multi_agent else None)
        split = self._split(observation)
        self.bound.store_observation(split)
        batch, out = self.bound.step(split, *earned, done=np.array([terminated or truncated]))
        if self.bound.multi_agent and rewards_anew(batch, out):  # with one decision-maker, it is the reward itself
            check_untouched(reward, self.bound.rewards_of(batch)[0], self.bound.transform)
        if out.reward is not batch.reward:
            reward = float(self.bound.rewards_of(out)[0])
            if self.bound.multi_agent:
                info = {**info, "agent_reward": out.reward[0]}
        if out.vector is not None:
            reward = out.vector[0]
        shown = self._shown(out, split, observation)
        return shown, reward, terminated, truncated, {**info, **_row(out)}

    def _split(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the observation as (1, agents, ...)."""
        return stacked(observation, self.bound.space) if self.bound.own else self.bound.split(observation)

    def _shown(self, out: Batch, split: NDArray[Any], observation: Any) -> Any:
        """Return the observation after the transform; an unchanged one of a user's own environment is not copied."""
        return observation if self.bound.own and out.observation is split else self.bound.join(out.observation)[0]


def _row(batch: Batch) -> dict[str, Any]:
    """Return the columns that the transform added, for the only lane."""
    return {name: column[0] for name, column in batch.added.items()}
