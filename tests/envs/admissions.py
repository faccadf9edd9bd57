"""Rounds of FairCollege with scripted juries, and what they decided."""

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import check_count
from fair_envs.envs.college.policies import Jury
from fair_envs.evaluation import VectorEnv, VectorWorld, rollout
from fair_envs.metrics import burden, social_burden, stratified_accuracy
from fair_envs.support.aliases import Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Admissions:
    """What juries decided in T rounds of B lanes with M applicants each.

    Attributes:
        thresholds: Shape (T, B).
        rewards: Shape (T, B).
        groups: Shape (T, B, M), as are the others.
        admitted: 0 or 1.
        qualified: 0 or 1, of everybody.
        burdens: What each needed to pay to reach the threshold, whether they did or not.
        outcomes: Benefit to the applicants: 1 if admitted, minus what they paid.
    """

    thresholds: Floats
    rewards: Floats
    groups: Ints
    admitted: Ints
    qualified: Ints
    burdens: Floats
    outcomes: Floats

    def since(self, first: int) -> "Admissions":
        """Return the rounds from this one on, for example without a burn-in."""
        return Admissions(**{name: column[first:] for name, column in vars(self).items()})

    @property
    def accuracy(self) -> Floats:
        """The share of correct decisions about each group, shape (2,)."""
        return stratified_accuracy(self.admitted, self.qualified, self.groups, groups=2)

    @property
    def social_burden(self) -> Floats:
        """The mean burden of each group's qualified, shape (2,)."""
        return social_burden(self.burdens, self.qualified, self.groups, groups=2)


def admissions(env: VectorEnv, jury: Jury, *, rounds: int, seed: int = 0) -> Admissions:
    """Play rounds and return what was decided; the environment is reset first.

    Args:
        env: B lanes of FairCollege.
        jury: A new one, made for it.
        rounds: How many; at most the environment's ``horizon``.
        seed: Of lane 0; lane i has ``seed + i``.

    Raises:
        ValueError: More rounds than an episode has.
    """
    check_count("rounds", rounds)
    if rounds > jury.params.horizon:
        raise ValueError(f"rounds must be at most the horizon, {jury.params.horizon}, got {rounds}")
    world = VectorWorld(env, seed=seed)
    told: dict[str, list[NDArray[Any]]] = {name: [] for name in Admissions.__dataclass_fields__}
    hidden = env.unwrapped.oracle()
    for step in islice(rollout(world, jury, episodes=math.inf), rounds):
        info, thresholds = step.columns, np.array(env.unwrapped.lanes.records["threshold"])
        told["thresholds"].append(thresholds)
        told["rewards"].append(step.reward[:, 0])
        told["groups"].append(info["fair_group"])
        told["admitted"].append(info["fair_action"])
        told["qualified"].append(hidden["feedback"])
        told["burdens"].append(burden(hidden["score"], thresholds[:, np.newaxis], hidden["cost"]))
        told["outcomes"].append(info["fair_outcome"])
        hidden = env.unwrapped.oracle()
    return Admissions(**{name: np.array(columns) for name, columns in told.items()})
