"""Massager of allocations for FairAttention."""

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.ppo.massaging import DIGITS, MassagingSchedule, PolicyOutput
from fair_envs.core import check_count
from fair_envs.envs.attention.rules import decode
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.metrics.measures import Measure
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import checked

SMALLEST_SHARE = 0.005  # smallest softmax share left to a location; the published code's


# The massager ---------------------------------------------------------------------------------------------------------


class AttentionMassager:
    """Moves one unit to another location if this reduces the short-term measure and the policy is uncertain.

    See `Massager` for the interface. The measure is a `ShareDeviation`, or any other measure that predicts its value
    for each of n allocations (``if_taken``, of shape (B, n, K)). No unit is moved where the measure is undefined, as
    before the first step. The best move is made; ties go to the lowest indices, and a move that does not change the
    measure is not made.

    ``action="units"``: a unit's choice of location r is replaced by k if their probabilities differ by at most the
    threshold, as in the paper's text. ``action="logits"``: as in the published code, a share of the softmax, at most
    one unit's, is moved from r to k; both logits must have about the same density as before under the policy's
    Gaussians. This has three drawbacks. The density depends on the policy's standard deviation, so the meaning of a
    threshold changes during training. The measure is predicted for the allocation with the unit moved, but decoding the
    new logits sometimes gives another allocation (4 to 7 % of pairs). The new logits can lie outside the action space.

    Args:
        locations: Number of locations (K).
        units: Number of units (N).
        action: The environment's parameter.

    Attributes:
        alters_one_entry: Whether at most one entry of an action is altered, so that the probability of an executed
            action can be computed.
    """

    def __init__(self, *, locations: int = 5, units: int = 6, action: Literal["units", "logits"] = "units") -> None:
        check_count("locations", locations)
        check_count("units", units)
        self.locations, self.units = locations, units
        self.action = checked("action", action, Literal["units", "logits"])
        self.alters_one_entry = action == "units"

    schedule = MassagingSchedule(initial=0.08, start_after=15, rollouts=977)
    """Thresholds by rollout of the published training."""

    def __call__(
        self, observation: NDArray[Any], action: NDArray[Any], policy: PolicyOutput, short: Measure, *, threshold: float
    ) -> NDArray[Any]:
        """Return the altered actions, a new array with the shape of ``action``."""
        if self.action == "units":
            return self._of_units(action, policy, short, threshold)
        return self._of_logits(action, policy, short, threshold)

    def _of_units(self, action: NDArray[Any], policy: PolicyOutput, short: Measure, threshold: float) -> NDArray[Any]:
        if policy.probabilities is None:
            raise ValueError("policy must give probabilities for action='units', got none")
        own = np.take_along_axis(policy.probabilities, action[..., np.newaxis], axis=2)
        close = np.abs(own - policy.probabilities) <= threshold  # (B, N, K)
        here = action[..., np.newaxis] == np.arange(self.locations)  # (B, N, K)
        may = (here[..., np.newaxis] & close[:, :, np.newaxis]).any(axis=1)  # (B, from, to)
        moved = np.array(action)
        for lane, origin, target in moves(here.sum(axis=1), may, short):
            unit = np.flatnonzero(here[lane, :, origin] & close[lane, :, target])[0]
            moved[lane, unit] = target
        return moved

    def _of_logits(self, action: NDArray[Any], policy: PolicyOutput, short: Measure, threshold: float) -> NDArray[Any]:
        if policy.mean is None or policy.std is None:
            raise ValueError("policy must give mean and std for action='logits', got none")
        logits = action.astype(np.float64)
        counts = np.zeros((len(logits), self.locations), np.int64)
        for row, out in zip(logits, counts, strict=True):
            decode(row, self.units, np.empty(self.locations), out)
        shares = softmax(logits)
        other = np.array([self._shifted(logits, shares, pair) for pair in self._pairs()])  # (pairs, B, K)
        density = (gaussian(z, policy.mean, policy.std) for z in (logits, other))
        similar = np.abs(np.subtract(*density)) <= threshold  # (pairs, B, K)
        may = np.zeros((len(logits), self.locations, self.locations), bool)
        for pair, (origin, target) in enumerate(self._pairs()):
            enough = shares[:, origin] > SMALLEST_SHARE
            may[:, origin, target] = enough & similar[pair, :, origin] & similar[pair, :, target]
        moved, places = np.array(action), {pair: k for k, pair in enumerate(self._pairs())}
        for lane, origin, target in moves(counts, may, short):
            moved[lane] = other[places[origin, target], lane]
        return moved

    def _pairs(self) -> Iterator[tuple[int, int]]:
        return permutations(range(self.locations), 2)

    def _shifted(self, logits: Floats, shares: Floats, pair: tuple[int, int]) -> Floats:
        """Return logits after moving up to one unit's share of the softmax between two locations, shape (B, K)."""
        origin, target = pair
        mass = shares[:, origin] - np.maximum(SMALLEST_SHARE, shares[:, origin] - 1 / self.units)
        largest = logits.max(axis=1)
        whole = largest + np.log(np.exp(logits - largest[:, np.newaxis]).sum(axis=1))
        out: Floats = logits.copy()
        with np.errstate(divide="ignore", invalid="ignore"):  # where the share is too small to move
            out[:, origin] = whole + np.log(shares[:, origin] - mass)
            out[:, target] = whole + np.log(shares[:, target] + mass)
        return out


def attention_massager(env: LanesVecEnv) -> AttentionMassager:
    """Return the massager for the environment's locations, units and actions."""
    params = env.params
    return AttentionMassager(locations=params.locations, units=params.units, action=params.action)


def moves(counts: Ints, may: Flags, short: Measure) -> Iterator[tuple[int, int, int]]:
    """Yield lane, origin and target of the moves of one unit that reduce a short-term measure the most.

    Args:
        counts: Units at each location, shape (B, K).
        may: Whether a unit can be moved, shape (B, from, to).
        short: The measure.
    """
    lanes, locations = counts.shape
    here = np.eye(locations, dtype=counts.dtype)
    moved = counts[:, np.newaxis, np.newaxis] - here[:, np.newaxis] + here  # (B, from, to, K)
    asked = np.concatenate([counts[:, np.newaxis], moved.reshape(lanes, -1, locations)], axis=1)
    values = cast(Any, short).if_taken(asked).round(DIGITS)
    able = may & (counts[:, :, np.newaxis] > 0) & (here == 0)
    now, values = values[:, 0], np.where(able.reshape(lanes, -1), values[:, 1:], np.inf)
    best = values.argmin(axis=1)
    better = (values[np.arange(lanes), best] < now) & ~np.isnan(short.value)
    for lane in np.flatnonzero(better).tolist():
        origin, target = divmod(int(best[lane]), locations)
        yield lane, origin, target


def softmax(logits: Floats) -> Floats:
    """Return the softmax of logits along the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def gaussian(value: Floats, mean: Floats, std: Floats) -> Floats:
    """Return the density of a normal distribution."""
    return np.asarray(np.exp(-0.5 * ((value - mean) / std) ** 2) / (std * math.sqrt(2 * math.pi)))
