"""The adapter for Stable-Baselines3; a separate module, because importing it imports Stable-Baselines3."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv, VecEnvStepReturn, VecEnvWrapper
from fair_envs.support.aliases import Flags, Floats, Floats32
from fair_envs.wrappers.adapters.bound import Bound, check_untouched, layers, rewards_anew, select_rows
from fair_envs.wrappers.transform import Batch, Transform


class SB3Adapter(VecEnvWrapper):
    """A transform on a Stable-Baselines3 environment whose rows are agents or lanes.

    ``vec_env.agent_reward``, shape (B, agents), contains the agents' rewards after the transforms, and
    ``vec_env.added`` the columns that the transforms added in the last step, arrays of shape (B, ...). At the end of an
    episode, the rows' infos have these columns too. A vector reward is in ``vec_env.vector_reward``, shape (B,
    objectives).

    Attributes:
        bound: The transform and the shapes.
    """

    def __init__(self, venv: Any, transform: Transform) -> None:
        self._face: LanesVecEnv = venv.unwrapped
        self._by_agent = isinstance(self._face, AgentsVecEnv)
        joint = not self._by_agent and self._face.lanes.rules.multi_agent
        self.bound = Bound(venv, transform, venv.observation_space, joint=joint)
        super().__init__(venv, observation_space=self.bound.face_space())
        if (space := self.bound.reward_space) is not None:
            self.vector_reward: Floats32 = np.zeros((self.bound.lanes, *space.shape), np.float32)
            vars(self._face).update(reward_space=space, reward_dim=space.shape[0])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.venv!r}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the class attributes, which cannot be pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "class_attributes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state, and collect the class attributes again."""
        self.__dict__.update(state, class_attributes={name: getattr(type(self), name) for name in dir(type(self))})

    def reset(self) -> Any:
        """Start episodes in all lanes and return the rows' observations."""
        out = self.bound.reset(self.bound.split(self.venv.reset()))  # type: ignore[arg-type]
        self._tell(out)
        return self._join(out)

    def step_wait(self) -> VecEnvStepReturn:
        """Play one step of every lane and restart those that end."""
        if self.bound.transform.reports:
            self._face.report_action_probs(self.bound.reported())
        observation, reward, done_rows, infos = self.venv.step_wait()
        self.bound.store_observation(self.bound.split(observation))  # type: ignore[arg-type]
        done = done_rows.reshape(self.bound.lanes, -1)[:, 0]
        vector = self._vector_below() if self.bound.objectives else None
        batch, out = self.bound.step(self._ends(observation, done, infos), self._face.agent_reward, vector, done=done)  # type: ignore[arg-type]
        if rewards_anew(batch, out):
            check_untouched(reward, self._rows(batch.reward), self.bound.transform)
        if out.reward is not batch.reward:
            reward = self._rows(out.reward)
            self._face.agent_reward = out.reward
        self._tell(out)
        if self._face.infos == "record":
            self._record(out, infos)
        shown = self._join(out)
        if done.any():
            self._end(out, shown, done_rows, infos)
            start = self.bound.start(self.bound.split(observation), done)  # type: ignore[arg-type]
            shown = select_rows(done_rows, self._join(start), shown)
        return shown, reward, done_rows, infos

    def _ends(self, observation: NDArray[Any], done: Flags, infos: list[dict[str, Any]]) -> NDArray[Any]:
        """Return the observations after the decisions; final observations of episodes come from the infos."""
        if done.any():
            observation = observation.copy()
            for row, info in enumerate(infos):
                if "terminal_observation" in info:
                    observation[row] = info["terminal_observation"]
        return self.bound.split(observation)

    def _vector_below(self) -> Floats32:
        """Return the vector reward made by a wrapper below."""
        made = (vars(layer)["vector_reward"] for layer in layers(self.venv) if "vector_reward" in vars(layer))
        return next(made)

    def _end(self, out: Batch, shown: NDArray[Any], done_rows: Flags, infos: list[dict[str, Any]]) -> None:
        """Write the final observations and added columns of ended episodes to the rows' infos."""
        for row in np.flatnonzero(done_rows):
            infos[row]["terminal_observation"] = shown[row].copy()
            infos[row].update(self._added(out, int(row)))

    def _record(self, out: Batch, infos: list[dict[str, Any]]) -> None:
        """Write the record after the transform, and the columns that it added, to the rows' infos."""
        changed = self._face.entries(out.facts, out.reward)
        for row, (info, entries) in enumerate(zip(infos, changed, strict=True)):
            info.update(entries | self._added(out, row))

    def _added(self, out: Batch, row: int) -> dict[str, NDArray[Any]]:
        """Return a row's entries of the columns that the transform added."""
        lane, agent = divmod(row, self.num_envs // self.bound.lanes)
        personal = self.bound.transform.personal if self._by_agent else ()
        return {
            name: (column[lane, agent] if name in personal else column[lane]).copy()
            for name, column in out.added.items()
        }

    def _tell(self, out: Batch) -> None:
        self._face.added = {**self._face.added, **out.added}
        if out.vector is not None and self.bound.transform.objectives:
            self.vector_reward = out.vector

    def _rows(self, reward: Floats) -> Floats32:
        """Return the rewards of the rows for the learner."""
        return self._face.scaled(self._face.row_reward(reward))

    def _join(self, out: Batch) -> NDArray[Any]:
        return out.observation.reshape(self.num_envs, *(self.observation_space.shape or ()))
