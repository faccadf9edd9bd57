"""The adapter for a Gymnasium vector environment."""

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.history import History
from fair_envs.support.aliases import Columns, Flags, Floats
from fair_envs.wrappers.adapters.bound import (
    Bound,
    check_untouched,
    face_of,
    only,
    rewards_anew,
    select_rows,
    transforms,
)
from fair_envs.wrappers.adapters.own import OwnFace
from fair_envs.wrappers.transform import Batch, Transform

if TYPE_CHECKING:
    Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    Wrapper = VectorWrapper  # which older releases of Gymnasium do not parametrise


class VectorAdapter(Wrapper):
    """A transform on a Gymnasium vector environment, in each of the three autoreset modes.

    Attributes:
        bound: The transform and the shapes.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], transform: Transform) -> None:
        super().__init__(env)
        face = face_of(env)
        joint = face.focal_agent is None and face.lanes.rules.multi_agent
        self.bound = Bound(env, transform, env.single_observation_space, joint=joint, face=face)
        self._first: OwnFace | None = face if self.bound.own and not transforms(env) else None  # reads the user's info
        self._arrays = self.bound.space.shape is not None
        self.single_observation_space = self.bound.face_space()
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        if (space := self.bound.reward_space) is not None:
            for owner in (self, env.unwrapped):
                # the space of one lane, as in MO-Gymnasium, whose wrappers read the number of objectives from it
                vars(owner).update(single_reward_space=space, reward_space=space, reward_dim=space.shape[0])

    @property
    def fair_spec(self) -> FairSpec:
        """The environment's `FairSpec`."""
        return self.bound.face.fair_spec  # type: ignore[no-any-return]

    @property
    def histories(self) -> tuple[History, ...]:
        """The wrappers' histories of decisions, the innermost first."""
        return self.bound.face.histories  # type: ignore[no-any-return]

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """The autoreset mode of the environment."""
        return self.env.unwrapped.autoreset_mode  # type: ignore[attr-defined, no-any-return]

    def report_action_probs(self, action_probs: Any) -> None:
        """Report the probabilities with which the next actions are chosen: (B, A), or (B, M, A)."""
        self.bound.face.report_action_probs(action_probs)

    def hold(self, mask: Flags) -> None:
        """Make no decision in the masked lanes, shape (B,), in the next step."""
        self.bound.face.hold(mask)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes in all lanes, or in those of ``options["reset_mask"]``."""
        observation, info = self.env.reset(seed=seed, options=options)
        info = info if self._first is None else self._first.extra_of_lanes(info)
        first = info["_fair_decided"]
        out = self.bound.reset(self._split(observation), first)
        return self._shown(out, observation), {**info, **_masked(out.added, first)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one step of every lane."""
        if self.bound.transform.reports:
            self.report_action_probs(self.bound.reported())
        observation, reward, terminated, truncated, info = self.env.step(actions)
        info = info if self._first is None else self._first.extra_of_lanes(info)
        self.bound.store_observation(self._split(observation))
        done = terminated | truncated
        decided = info["fair_decided"] == 1
        nothing = np.zeros(self.num_envs, bool)
        restarted = info.get(
            "_final_info", nothing
        )  # in the mode SameStep, these lanes already show their next episode
        earned = self.bound.earned(reward, self._agent_reward(info, restarted))
        batch, out = self.bound.step(
            self._ends(observation, info, restarted), *earned, done=done, decided=decided | done
        )
        if self.bound.multi_agent and rewards_anew(batch, out):  # with one decision-maker, it is the reward itself
            check_untouched(reward, self.bound.rewards_of(batch), self.bound.transform)
        if out.reward is not batch.reward:
            reward = self.bound.rewards_of(out)
        if out.vector is not None:
            reward = out.vector
        shown, info = self._with_extra(out, observation, info, restarted, changed=out.reward is not batch.reward)
        return shown, reward, terminated, truncated, info

    def _ends(self, observation: Any, info: dict[str, Any], restarted: Flags) -> NDArray[Any]:
        """Return the observations after the decisions; those of restarted lanes are in ``final_obs``."""
        if restarted.any() and self._arrays:
            observation = observation.copy()
            observation[restarted] = np.stack(info["final_obs"][restarted])
        return self._split(observation)

    def _agent_reward(self, info: dict[str, Any], restarted: Flags) -> Floats | None:
        """Return the agents' rewards, if reported; those of restarted lanes are in ``final_info``."""
        own: Floats | None = info.get("agent_reward")
        if own is None or not restarted.any():
            return own
        return select_rows(restarted, info["final_info"]["agent_reward"], own)

    def _with_extra(
        self, out: Batch, observation: Any, info: dict[str, Any], restarted: Flags, *, changed: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Return observations and info, with the final entries of restarted lanes under ``final_*``."""
        active = np.ones(self.num_envs, bool)
        extra = dict(out.added)
        if changed and "agent_reward" in info:
            extra["agent_reward"] = out.reward
        if not restarted.any():
            return self._shown(out, observation), {**info, **_masked(extra, active)}
        final = {name: only(restarted, column) for name, column in extra.items()}
        start = self.bound.start(self._split(observation), restarted)
        begun = {"agent_reward": np.zeros_like(out.reward), **start.added}
        info = {**info, **_masked({name: select_rows(restarted, begun[name], extra[name]) for name in extra}, active)}
        info["final_info"] = {**info["final_info"], **_masked(final, restarted)}
        if not self._arrays:
            return observation, info
        info["final_obs"] = np.full(self.num_envs, None, dtype=object)
        ends = self._join(out)
        for lane in np.flatnonzero(restarted):
            info["final_obs"][lane] = ends[lane].copy()
        return select_rows(restarted, self._join(start), ends), info

    def _split(self, observation: Any) -> NDArray[Any]:
        """Return observations as (B, agents, ...); 0 if they are not arrays."""
        return self.bound.split(observation) if self._arrays else np.zeros((self.num_envs, 1))

    def _shown(self, out: Batch, observation: Any) -> Any:
        """Return the observations after the transform."""
        return self._join(out) if self._arrays else observation

    def _join(self, out: Batch) -> NDArray[Any]:
        return self.bound.join(out.observation)


def _masked(columns: Columns, rows: Flags) -> dict[str, NDArray[Any]]:
    """Return the columns, each with Gymnasium's mask of the lanes that have the key."""
    extra = {}
    for name, column in columns.items():
        extra[name], extra["_" + name] = only(rows, column), rows.copy()
    return extra
