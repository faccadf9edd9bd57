"""The vectorised Gymnasium interface: B lanes, in each of Gymnasium's three autoreset modes."""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from fair_envs.core import Lanes, Rules, Step, check_batch, check_count, check_seeds, fresh_seeds, variant_of
from fair_envs.core.interactions import columns
from fair_envs.faces.common import (
    BY_ROW,
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
from fair_envs.faces.focal import Control, Others, focal_control
from fair_envs.support.aliases import Flags, Floats, Floats32


class BatchEnv(OfLanes, gym.vector.VectorEnv[Any, Any, Any]):
    """B lanes as a `gymnasium.vector.VectorEnv`; subclasses set the rules.

    It is bit-identical to `gymnasium.vector.SyncVectorEnv` of the single interface in every autoreset mode: lane i of a
    batch seeded s is the single environment seeded s + i.

    Args:
        num_envs: Number of lanes (B).
        render_mode: ``"rgb_array"``, ``"ansi"`` or None; `render` returns one picture for each lane.
        autoreset_mode: An `AutoresetMode` or its value (``"NextStep"``, ``"SameStep"``, ``"Disabled"``).
        threads: Number of threads that share the lanes; the results do not depend on it.
        control: ``"joint"`` or ``"focal"``; with the latter, the controller plays one agent of each lane, as in
            `fair_envs.faces.single.SingleEnv`.
        focal: The PettingZoo name of the agent that is played under focal control.
        others: Policy of the other agents under focal control; it is called once for each lane.
        parameters: The environment's parameters, see the class of its rules.

    Raises:
        TypeError: A keyword is unknown.
        ValueError: A value is outside its range.
    """

    rules: ClassVar[type[Rules]]

    def __init__(
        self,
        num_envs: int = 1,
        *,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        control: Control = "joint",
        focal: str = "agent_0",
        others: str | Others = "random",
        **parameters: Any,
    ) -> None:
        check_render_mode(render_mode)
        if render_mode == "human":
            raise ValueError("render_mode must be 'rgb_array', 'ansi' or None for a batch, got 'human'")
        self.autoreset_mode = _mode(autoreset_mode)
        check_count("num_envs", num_envs)
        rules = variant_of(self.rules, parameters)
        check_batch("num_envs", num_envs, rules)
        self.metadata = {
            "render_modes": RENDER_MODES[1:],
            "render_fps": rules.fps,
            "autoreset_mode": self.autoreset_mode,
        }
        self.render_mode = render_mode
        self.lanes = Lanes(rules, num_envs, threads=threads)
        self.num_envs = self.lanes.count
        self.interactions = self.lanes.blank_step().facts
        self._check = ActionCheck(rules)
        self._reported = Reported(rules, num_envs)
        self._picture = Picture(self.lanes, render_mode)
        self._over = np.zeros(num_envs, bool)  # (B,) lanes that are done
        self._held = np.zeros(num_envs, bool)  # (B,) lanes that pause in the next step
        self._started = False
        self.focal = focal_control(self.lanes, self._check, control, focal, others)
        drop, agents = self.focal is not None or not rules.multi_agent, self.lanes.agents
        self.single_observation_space = joint_space(rules.observation_space(rules.params), agents, drop=drop)
        self.single_action_space = joint_space(rules.action_space(rules.params), agents, drop=drop)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seen_shape, self._one = self.observation_space.shape or (), self.focal_agent or 0 if drop else None

    def report_action_probs(self, action_probs: Any) -> None:
        """Report the probabilities with which the next actions are chosen: (B, A), or (B, M, A)."""
        spec = self.fair_spec
        people = () if spec.one_person else (spec.individuals,)
        self._reported.set(action_probs, shape=(self.num_envs, *people, spec.actions))

    def hold(self, mask: Flags) -> None:
        """Pause the masked lanes in the next step: their observations stay the same, and no decision is made.

        A lane that is done stays done. To play a fixed number of episodes, hold the lanes that have played theirs.

        Args:
            mask: Shape (B,), bool.

        Raises:
            ValueError: The shape or type is wrong.
        """
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"mask must be a bool array of shape ({self.num_envs},), got {mask!r}")
        self._held = mask.copy()

    def reset(
        self, *, seed: int | ArrayLike | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes in all lanes, or in the lanes of ``options["reset_mask"]``.

        Args:
            seed: One integer s (lane i is then seeded s + i), or one for each lane; a lane with None continues with its
                own seed.
            options: May contain ``reset_mask``, bool of shape (B,): the lanes in which an episode begins; the others
                keep their observations. The mode Disabled needs it. As in Gymnasium's vector environments, it works in
                every mode. Other names are for wrappers.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ValueError: A mask has the wrong shape or type, or a seed is out of range. Nothing has changed in this case.
        """
        self.check_open("reset")
        check_options(options)
        mask = self._mask(options)
        if seed is not None:
            self._seed(seed, mask)
        self._reported.take()
        start = self.lanes.restart(mask=mask)
        if not mask.all():
            start.observation[~mask] = self.lanes.observe()[~mask]
        self._over &= ~mask
        self._held[:] = False
        self._started = True
        return self._see(start.observation), self._info(start, mask)

    def step(self, actions: Any) -> tuple[Any, Floats, Flags, Flags, dict[str, Any]]:
        """Play one step of every lane.

        Raises:
            ClosedEnvironmentError: The environment is closed.
            ResetNeeded: There was no reset, or an episode has ended in the mode Disabled.
            ValueError: The actions are not in the action space.
        """
        self.check_open("step")
        if not self._started:
            raise NotReset("step must follow a reset")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._over.any():
            ended = np.flatnonzero(self._over).tolist()
            raise NotReset(f"step must follow a reset of the lanes that are done; lanes {ended} are")
        given = self._check(actions, shape=self.action_space.shape or (), copy=False)
        if self.focal is None:
            given = given.reshape(self.num_envs, self.lanes.agents, *self._check.shape)
        else:
            given = self.focal.actions(given)
        held, some = self._held, np.count_nonzero(self._held) > 0
        if some:
            self._held = np.zeros(self.num_envs, bool)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            return self._step_and_restart(given, held)
        if some or np.count_nonzero(self._over):
            return self._step_or_restart(given, held)
        played = self.lanes.advance(given)
        if self.focal is not None:
            self.focal.end(played)
        self._over = played.terminated | played.truncated
        return self._reported_step(played, self._reported.take())

    def _reported_step(self, played: Step, probs: Floats32 | None) -> tuple[Any, Floats, Flags, Flags, dict[str, Any]]:
        """Return the results of a step in which no lane has restarted after its end."""
        info = _masked(self._kept(played, probs))
        return self._see(played.observation), self._reward(played), played.terminated, played.truncated, info

    def _advance(self, actions: NDArray[Any], stepping: Flags, held: Flags) -> Step:
        """Step the active lanes; the held ones keep their observations."""
        played: Step = self.lanes.advance(actions, mask=None if stepping.all() else stepping)
        if self.focal is not None:
            self.focal.end(played, stepping)
        if held.any():
            played.observation[held] = self.lanes.observe()[held]
        return played

    def _step_or_restart(self, actions: NDArray[Any], held: Flags) -> tuple[Any, ...]:
        """Restart the lanes that were done (mode NextStep), step the others."""
        stepping, restarting = ~(self._over | held), self._over & ~held
        played = self._advance(actions, stepping, held)
        if restarting.any():
            self.lanes.restart(mask=restarting, out=played)
        self._over = played.terminated | played.truncated | (self._over & held)
        probs = self._reported.take()
        if probs is not None:
            probs[~stepping] = 0  # a restart is not a decision
        return self._reported_step(played, probs)

    def _step_and_restart(self, actions: NDArray[Any], held: Flags) -> tuple[Any, ...]:
        """Step all lanes and restart those that end (mode SameStep); final_obs and final_info are of the ended ones."""
        played = self._advance(actions, ~held, held)
        done = played.terminated | played.truncated
        if not np.count_nonzero(done):
            return self._reported_step(played, self._reported.take())
        final = self._kept(played, self._reported.take())
        start = self.lanes.restart(mask=done)
        shown = np.where(done.reshape(-1, *(1,) * (played.observation.ndim - 1)), start.observation, played.observation)
        first = self._columns(start._replace(reward=np.zeros_like(start.reward)), None)
        info = _masked({name: _where(done, first[name], column) for name, column in final.items()})
        info["final_obs"] = _objects(self._shown(played.observation), done)
        info["_final_obs"] = done.copy()
        info["final_info"] = _masked({name: _zeroed(column, ~done) for name, column in final.items()}, done)
        info["_final_info"] = done.copy()
        return self._see(shown), self._reward(played), played.terminated, played.truncated, info

    def render(self) -> tuple[Any, ...] | None:
        """Return one picture for each lane."""
        if self.render_mode is None:
            return None
        return tuple(self._picture.draw(lane) for lane in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the drawing resources."""
        if hasattr(self, "_picture"):  # older releases of Gymnasium also close what refused its arguments
            self._picture.close()

    def set_state(self, state: NDArray[np.void]) -> Any:
        """Return to a state and return its observation; the episodes continue from there."""
        self.lanes.restore(state)
        self._over = state["over"].astype(bool)
        if self.focal is not None:
            self._over |= self.focal.left()
        self._started = True
        return self._see(self.lanes.observe())

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return the attribute, once for each lane."""
        return (getattr(self, name),) * self.num_envs

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of the batch, or read an attribute, and return the result once for each lane."""
        found = getattr(self, name)
        if name in BY_ROW:
            return tuple(found())
        return (found(*args, **kwargs) if callable(found) else found,) * self.num_envs

    def _seed(self, seed: Any, mask: Flags) -> None:
        own = ~mask  # lanes that continue with their own seeds
        if isinstance(seed, (list, tuple)):
            seeds = check_seeds([0 if entry is None else entry for entry in seed], self.num_envs)
            own |= np.array([entry is None for entry in seed])
        else:
            seeds = check_seeds(seed, self.num_envs)
        if not self.lanes.seeded:
            self.lanes.seed(fresh_seeds(self.num_envs))
        kept = self.lanes.records[["seed", "episode"]].copy()
        self.lanes.seed(seeds)
        for field in ("seed", "episode"):
            self.lanes.records[field][own] = kept[field][own]

    def _mask(self, options: dict[str, Any] | None) -> Flags:
        if options is None or "reset_mask" not in options:
            return np.ones(self.num_envs, bool)
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask must be a bool array of shape ({self.num_envs},), got {mask!r}")
        if not mask.any():
            raise ValueError(f"reset_mask must be True for at least one lane, got {mask}")
        if not self._started and not mask.all():
            raise ValueError("reset_mask must be all True at the first reset")
        return np.array(mask)

    def _see(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the current observations, and store what all agents observe if a policy plays the others."""
        if self.focal is not None:
            self.focal.seen = observation
        return self._shown(observation)

    def _shown(self, observation: NDArray[Any]) -> NDArray[Any]:
        return observation.reshape(self._seen_shape) if self.focal is None else self.focal.observed(observation)

    def _reward(self, step: Step) -> Floats:
        return step.reward.mean(axis=1) if self._one is None else step.reward[:, self._one]

    def _kept(self, step: Step, probs: Floats32 | None) -> dict[str, NDArray[Any]]:
        """Keep a step's facts, and return them as columns."""
        self.interactions, self.action_probs = step.facts, probs
        return self._columns(step, probs)

    def _columns(self, step: Step, probs: Floats32 | None) -> dict[str, NDArray[Any]]:
        info = columns(self.fair_spec, step.facts, probs)
        if self.lanes.rules.multi_agent:
            info["agent_reward"] = step.reward
        if self.lanes.rules.leaving_field is not None:
            info["agent_active"] = self.lanes.active().astype(np.int8)
        return info

    def _info(self, step: Step, mask: Flags) -> dict[str, Any]:
        info = self._kept(step, self._reported.take())
        if not mask.all():
            info = {name: _zeroed(column, ~mask) for name, column in info.items()}
        return _masked(info, mask)


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        options = ", ".join(repr(m.value) for m in AutoresetMode)
        raise ValueError(f"autoreset_mode must be one of {options}, got {mode!r}") from None


def _masked(info: dict[str, Any], mask: Flags | None = None) -> dict[str, Any]:
    """Return the columns, and Gymnasium's masks that show which lanes have each key; None: all have it."""
    masks = np.empty((len(info), len(next(iter(info.values())))), bool)  # one array, because that is much faster
    masks[:] = True if mask is None else mask
    found = dict(info)
    found.update(zip(map(_mask_name, info), masks, strict=True))
    return found


@functools.cache
def _mask_name(name: str) -> str:
    return f"_{name}"


def _zeroed(column: NDArray[Any], rows: Flags) -> NDArray[Any]:
    """Return the column with zeros in rows without an entry, as Gymnasium fills them."""
    column = column.copy()
    column[rows] = 0
    return column


def _where(rows: Flags, then: NDArray[Any], otherwise: NDArray[Any]) -> NDArray[Any]:
    mixed: NDArray[Any] = otherwise.copy()
    mixed[rows] = then[rows]
    return mixed


def _objects(rows: NDArray[Any], mask: Flags) -> NDArray[np.object_]:
    """Return an object array with the masked rows, None elsewhere."""
    out = np.full(len(rows), None, dtype=object)
    for i in np.flatnonzero(mask):
        out[i] = rows[i].copy()
    return out
