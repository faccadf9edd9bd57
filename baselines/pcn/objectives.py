"""The objectives of conditioned networks: an environment's reward and fairness notions, or its groups' returns.

To add a kind of objectives, extend `objectives_of`, `default_objectives` and `unsupported_objectives`; any wrapper of
this package that makes a vector reward can be used.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.evaluation import Transition, World
from fair_envs.metrics.gaps import BY_NAME
from fair_envs.metrics.group import GroupNotion, Groups
from fair_envs.metrics.history import Full, SlidingWindow
from fair_envs.metrics.notions import canonical_name
from fair_envs.support.aliases import Flags, Floats, Floats32
from fair_envs.wrappers import Batch, FairnessObjectives, Setting, Transform, VectorReward
from fair_envs.wrappers.adapters.bound import transforms

PERFORMANCE = "performance"
GROUPS = "groups"  # each group's mean return
NOTIONS = ("demographic_parity", "individual_fairness")  # requested by default besides the performance


def objective_name(argument: str, name: str) -> str:
    """Return the canonical name of an objective.

    Raises:
        ValueError: It is unknown.
    """
    lower = name.lower()
    if lower in ("r", "reward", PERFORMANCE):
        return PERFORMANCE
    return GROUPS if lower == GROUPS else canonical_name(argument, name, BY_NAME)


def default_objectives(rules: Rules, *, comparable: bool = False) -> tuple[str, ...]:
    """Return the objectives for an environment if none are named; empty if there are none.

    Args:
        rules: The environment.
        comparable: Whether the objectives must be comparable, as Lorenz dominance needs.
    """
    if rules.multi_agent and rules.spec.same_individuals:
        return (GROUPS,)
    notions = [name for name in NOTIONS if not unsupported_objectives(rules, (name,))]
    return (PERFORMANCE, *notions) if notions and not comparable else ()


def unsupported_objectives(rules: Rules, objectives: Sequence[str]) -> str:
    """Return why an environment does not have some objectives, given by canonical names, or ""."""
    if GROUPS in objectives:
        if rules.multi_agent and rules.spec.same_individuals:
            return ""
        return f"needs agents that earn rewards throughout an episode for the objective {GROUPS}"
    for name in objectives:
        if name != PERFORMANCE and (why := _unsupported_notion(rules, name)):
            return why
    return ""


def _unsupported_notion(rules: Rules, name: str) -> str:
    notion = BY_NAME[name]()
    if isinstance(notion, GroupNotion):
        notion = replace(notion, groups=tuple(rules.spec.sensitive))  # of any attributes
    try:
        notion.check(rules.spec)
    except ValueError as error:
        return f"cannot measure the objective {name}: {error}"
    simple = rules.spec.one_person and isinstance(rules.action_space(rules.params), gym.spaces.Discrete)
    if getattr(notion, "needs_action_probs", False) and not simple:
        return f"cannot measure the objective {name}, which needs one discrete decision about one person in each step"
    return ""


class Requested(Protocol):
    """Settings of a training that `objectives_of` reads."""

    @property
    def objectives(self) -> Sequence[str]:
        """Canonical names of the requested objectives."""

    @property
    def notions(self) -> Sequence[str]:
        """Names of the notions that are requested or only recorded."""

    @property
    def compared(self) -> Groups:
        """The groups that notions compare."""

    @property
    def window(self) -> int:
        """Number of decisions that notions use; 0: all."""

    @property
    def keep_history(self) -> bool:
        """Whether decisions of earlier episodes stay in the history."""


def objectives_of(settings: Requested, env: Any) -> Any:
    """Return an environment with the vector rewards of a training's objectives.

    Raises:
        ValueError: There is only the performance, or the environment does not support an objective.
    """
    if GROUPS in settings.objectives:
        return VectorReward(env, per="group")
    if not settings.notions:
        raise ValueError(f"objectives must name a notion besides {PERFORMANCE}, got {settings.objectives}")
    memory = SlidingWindow(settings.window) if settings.window else Full()
    return FairnessObjectives(env, settings.notions, memory, groups=settings.compared, keep=settings.keep_history)


class RewardVectors:
    """Computes the vector rewards of lanes without wrappers, as an environment's wrappers would.

    Args:
        env: The environment.
    """

    def __init__(self, env: Any) -> None:
        self._models: list[Transform] = [bound.transform for bound in reversed(transforms(env))]

    def start(self, world: World) -> None:
        """Prepare for new lanes.

        Raises:
            ValueError: The world has no lanes of this package, or they do not have the objectives.
        """
        if world.lanes is None:
            raise ValueError("world must have lanes of fair_envs, from whose record the objectives are computed")
        self._lanes = world.lanes
        rules = self._lanes.rules
        space: Any = rules.observation_space(rules.params)
        self._transforms = copy.deepcopy(self._models)
        for transform in self._transforms:
            transform.bind(Setting(lanes=self._lanes, observation_space=space))
            space = transform.space(space)
        names = [transform.objectives for transform in self._models if transform.objectives]
        own = [transform.objectives for transform in self._transforms if transform.objectives]
        if own != names:
            raise ValueError(f"world must have the objectives {names} of the training, got {own}")

    def begin(self, mask: Flags) -> None:
        """Start new episodes in the masked lanes."""
        shown, nobody = self._lanes.show(), np.zeros(len(mask), bool)
        self._apply(
            Batch(shown.observation, np.zeros_like(shown.reward), shown.facts, decided=nobody, first=mask, done=nobody)
        )

    def __call__(self, step: Transition, action_probs: Floats32 | None = None) -> Floats:
        """Return the vector rewards of a step, shape (B, objectives).

        Args:
            step: The step.
            action_probs: The probabilities of the decisions, shape (B, M, A), for notions that need them.
        """
        first = np.zeros(len(step.active), bool)
        batch = Batch(
            step.observation,
            step.reward,
            step.facts,
            decided=step.active,
            first=first,
            done=step.ended,
            action_probs=action_probs,
        )
        vector: NDArray[Any] | None = self._apply(batch).vector
        assert vector is not None  # the wrappers of a training make it
        return np.asarray(vector, np.float64)

    def _apply(self, batch: Batch) -> Batch:
        for transform in self._transforms:
            batch = transform(batch)
        return batch
