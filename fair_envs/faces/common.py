"""Code shared by all interfaces: joint spaces, action checks, reported action probabilities, rendering."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Rules, Worlds
from fair_envs.core.interactions import FairSpec
from fair_envs.core.lanes import within
from fair_envs.support.aliases import Flags, Floats32

RENDER_MODES = ["human", "rgb_array", "ansi"]
BY_ROW = ("action_masks",)  # methods of a batch whose result has one entry for each row


class OfLanes:
    """Properties that every interface offers about its lanes.

    Attributes:
        interactions: The record of the last step or reset, shape (B,); see `fair_envs.core.interactions.facts_dtype`.
            The columns of ``info`` share its memory. If a lane restarts in the step that ends an episode, its record is
            that of the decision.
        action_probs: The action probabilities reported for that step, shape (B, M, A); None if there are none.
    """

    lanes: Any  # Lanes, or Worlds
    interactions: NDArray[np.void]
    action_probs: Floats32 | None = None
    closed: bool = False
    reported_spec: FairSpec | None = None  # the spec of a wrapper that changes the record
    histories: tuple[Any, ...] = ()  # of wrappers that keep one, innermost first
    focal: Any = None  # fair_envs.faces.focal.Focal under focal control

    @property
    def fair_spec(self) -> FairSpec:
        """The static description of the environment."""
        spec: FairSpec = self.reported_spec or self.lanes.rules.spec
        return spec

    @property
    def focal_agent(self) -> int | None:
        """The index of the agent that is played under focal control; None under joint control."""
        return None if self.focal is None else self.focal.agent

    @property
    def params(self) -> Any:
        """The parameters, a NamedTuple."""
        return self.lanes.rules.params

    def get_state(self) -> NDArray[np.void]:
        """Return the complete state, one record for each lane; interfaces with `set_state` can return to it."""
        records: NDArray[np.void] = self.lanes.snapshot()
        return records

    def oracle(self) -> dict[str, NDArray[Any]]:
        """Return what decision-makers cannot observe about the people in the next decision: arrays of shape (B, ...).

        Use it only for evaluation. ``"feedback"`` is the label (correct decision), shape (B, M). If an environment
        hides nothing, the dictionary is empty.
        """
        hidden: dict[str, NDArray[Any]] = self.lanes.rules.oracle(self.lanes.records)
        return hidden

    def action_masks(self) -> NDArray[np.int8]:
        """Return which actions can be chosen without a loss, as sb3-contrib's MaskablePPO reads it.

        1: yes; 0: the action has no effect on states, observations and the environment's rewards, or the same as
        another one whose entry is 1. The record may differ: a vaccine for someone who is immune is still a vaccination.
        The options of several choices are one after another. Masked actions are allowed.

        Raises:
            ValueError: The actions are not discrete.
        """
        masks: NDArray[np.int8] = self.lanes.action_masks()  # (B, agents, n)
        return masks.reshape(len(masks), -1) if self.focal is None else masks[:, self.focal.agent]

    def check_open(self, call: str) -> None:
        """Raise ClosedEnvironmentError if the environment was closed before this call."""
        if self.closed:
            raise gym.error.ClosedEnvironmentError(f"{call} must come before close: make a new environment")


class NotReset(gym.error.ResetNeeded):
    """Raised by a step before the first reset or after the end of an episode."""


def check_options(options: Any) -> None:
    """Raise ValueError unless a reset's options are a dictionary or None; unknown names belong to wrappers."""
    if options is not None and not isinstance(options, dict):
        raise ValueError(f"options must be a dictionary or None, got {options!r}")


def joint_space(space: gym.Space[Any], agents: int, *, drop: bool) -> gym.Space[Any]:
    """Return the joint space of all agents: stacked boxes, or a MultiDiscrete; with ``drop``, one agent's own space."""
    if drop:
        return space
    if isinstance(space, gym.spaces.MultiDiscrete):
        return gym.spaces.MultiDiscrete(np.tile(space.nvec, agents), start=np.tile(space.start, agents))
    if isinstance(space, gym.spaces.Discrete):
        return gym.spaces.MultiDiscrete(np.full(agents, space.n), start=np.full(agents, space.start))
    if isinstance(space, gym.spaces.Box):
        low, high = (np.tile(bound, agents) for bound in (space.low.ravel(), space.high.ravel()))
        return gym.spaces.Box(low, high, dtype=space.dtype.type)
    raise TypeError(f"space must be a Discrete, a MultiDiscrete or a Box, got {space}")


def check_render_mode(render_mode: str | None) -> None:
    """Raise ValueError for a render mode that no interface supports."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be one of {', '.join(RENDER_MODES)} or None, got {render_mode!r}")


class ActionCheck:
    """Converts a caller's actions to an array of the right shape and type, or raises an error.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        space = rules.action_space(rules.params)
        self.shape: tuple[int, ...] = space.shape or ()  # of one agent's action
        self.discrete = isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)
        if isinstance(space, gym.spaces.Discrete):
            self._low, self._high = np.int64(space.start), np.int64(space.start + space.n - 1)
        elif isinstance(space, gym.spaces.MultiDiscrete):
            self._low, self._high = space.start, space.start + space.nvec - 1
        elif isinstance(space, gym.spaces.Box):
            self._low, self._high = space.low, space.high
        self._dtype: np.dtype[Any] = np.dtype(np.int64 if self.discrete else space.dtype)
        self._compared = (self._dtype,) if self.discrete else (self._dtype, np.dtype(np.float64))  # in compiled code
        self._ends = (int(self._low), int(self._high)) if isinstance(space, gym.spaces.Discrete) else (1, 0)
        self._bounds: dict[tuple[int, ...], tuple[NDArray[Any], NDArray[Any]]] = {}  # by shape

    @property
    def first(self) -> NDArray[Any]:
        """One agent's action with the smallest values."""
        return np.full(self.shape, self._low, self._dtype)

    def __call__(self, action: Any, *, shape: tuple[int, ...], copy: bool = True) -> NDArray[Any]:
        """Return the actions, shape (..., *self.shape), or the actions of all agents joined in order.

        Args:
            action: The actions.
            shape: Their shape.
            copy: Whether the array is always new; otherwise it may be the caller's, to be used at once.

        Raises:
            ValueError: The shape is wrong, numbers are not integers where they must be, or a value is outside the
                space.
        """
        if type(action) in (int, np.int64) and not shape and self._ends[0] <= action <= self._ends[1]:
            return np.array(action, np.int64)  # the usual single decision
        try:
            given = np.asarray(action)
        except ValueError:  # ragged list
            raise ValueError(f"action must have shape {shape}, got {action!r}") from None
        if given.shape != shape:
            raise ValueError(f"action must have shape {shape}, got {given.shape}")
        if given.dtype.kind not in ("iu" if self.discrete else "iuf"):  # NumPy's kinds for integers and real numbers
            raise ValueError(f"action must hold {'integers' if self.discrete else 'real numbers'}, got {given.dtype}")
        low, high = self._bounds_of(shape)
        new = type(action) in (list, tuple)
        if given.dtype != self._dtype and np.can_cast(given.dtype, self._dtype):
            given, new = given.astype(self._dtype), True
        usable = given.flags.carray  # contiguous and writeable, as rules need it
        numbers = given.ravel()
        compiled = usable and given.dtype in self._compared
        if not (within(numbers, low, high) if compiled else _inside(numbers, low, high).all()):
            outside = numbers[~_inside(numbers, low, high)]
            hint = "" if self.discrete else "; gymnasium.wrappers.ClipAction clips actions"
            raise ValueError(f"action must be between {low.min():g} and {high.max():g}, got {outside[0]}{hint}")
        if usable and given.dtype == self._dtype and (new or not copy):
            return given
        return given.astype(self._dtype, order="C")

    def _bounds_of(self, shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the smallest and largest numbers of actions of this shape, in one row; they are stored.

        With joint control the agents' actions are joined in order.
        """
        if shape not in self._bounds:
            several = math.prod(shape) // math.prod(self.shape)
            low, high = (np.full((several, *self.shape), bound).ravel() for bound in (self._low, self._high))
            self._bounds[shape] = low, high
        return self._bounds[shape]


def _inside(numbers: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> Flags:
    """Return which numbers are within their bounds, in the precision of both; NaN never is."""
    inside: Flags = (numbers >= low) & (numbers <= high)
    return inside


class Reported:
    """The action probabilities that a policy reports for its next decision; each report is used once.

    Args:
        rules: The environment.
        lanes: Number of lanes (B).
    """

    def __init__(self, rules: Rules, lanes: int) -> None:
        spec = rules.spec
        self._shape = (lanes, spec.individuals, spec.actions)
        self._probs: Floats32 | None = None

    def set(self, probs: Any, *, shape: tuple[int, ...]) -> None:
        """Store the probabilities for the next step.

        Raises:
            ValueError: The shape is wrong, or rows are not distributions.
        """
        try:
            given = np.asarray(probs, np.float32)
        except ValueError:  # ragged list
            raise ValueError(f"action_probs must be numbers of shape {shape}, got {probs!r}") from None
        if given.shape != shape:
            raise ValueError(f"action_probs must have shape {shape}, got {given.shape}")
        if not ((given >= 0).all() and (np.abs(given.sum(-1) - 1) <= 1e-4).all()):  # also False for NaN
            raise ValueError("action_probs must be distributions: no entry below 0 and each row summing to 1")
        self._probs = given.reshape(self._shape).copy()

    def take(self) -> Floats32 | None:
        """Return the probabilities reported since the last step, or None."""
        probs, self._probs = self._probs, None
        return probs


class Picture:
    """Draws a lane in the interface's render mode; opens the window and fonts for the first picture.

    Args:
        lanes: The batch that contains the lanes.
        mode: The render mode.
    """

    def __init__(self, lanes: Lanes | Worlds, mode: str | None) -> None:
        self._lanes, self._mode = lanes, mode
        self._renderer: Any = None
        self._window: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what cannot be copied or pickled."""
        return {**self.__dict__, "_renderer": None, "_window": None}

    def draw(self, lane: int = 0) -> NDArray[np.uint8] | str | None:
        """Return the picture of a lane: pixels, text, or None after showing it in a window."""
        if self._mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gym.make, e.g. 'rgb_array'")
            return None
        if self._renderer is None:
            self._renderer = self._lanes.rules.renderer()
        record = self._lanes.records[lane]
        if self._mode == "ansi":
            return str(self._renderer.text(record))
        frame: NDArray[np.uint8] = self._renderer.frame(record)
        if self._mode == "rgb_array":
            return frame
        if self._window is None:
            from fair_envs.faces.window import Window

            self._window = Window(title=f"fair-envs: {self._lanes.rules.name}", fps=self._lanes.rules.fps)
        self._window.show(frame)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None


def with_last(observation: NDArray[Any], last: NDArray[Any]) -> NDArray[Any]:
    """Return observations of shape (B, agents, d) with one more entry, of shape (agents,) or (B, agents)."""
    entry = np.broadcast_to(last, observation.shape[:2])[..., np.newaxis]
    return np.concatenate([observation, entry.astype(observation.dtype)], axis=-1)
