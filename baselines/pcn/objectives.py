"""The objectives of conditioned networks: the performance with fairness notions or measures, or groups' benefits.

To add a kind of objectives, extend `KINDS`, `objectives_of`, `names_of` and `unsupported_objectives`; any wrapper of
this package that makes a vector reward can be used.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Lanes, Worlds
from fair_envs.evaluation import Transition, World
from fair_envs.metrics.gaps import BY_NAME
from fair_envs.metrics.group import GroupNotion, Groups
from fair_envs.metrics.history import Full, SlidingWindow
from fair_envs.metrics.notions import canonical_name
from fair_envs.metrics.rates import group_codes
from fair_envs.support.aliases import Flags, Floats, Floats32, Records
from fair_envs.tasks import AnyRules, Task, rules_for, task_of
from fair_envs.wrappers import Batch, FairnessObjectives, Setting, Transform, VectorReward
from fair_envs.wrappers.adapters.bound import transforms
from fair_envs.wrappers.adapters.own import OwnFace, OwnRules

PERFORMANCE = "performance"
GROUPS = "groups"  # each group's mean return, or its rate in the episode, by the task's rate
MEASURES = "measures"  # the performance, and minus the task's measures
KINDS = (GROUPS, MEASURES)  # sets of objectives that are named alone
FOLLOWED = ("short", "long")  # the task's measures
NOTIONS = ("demographic_parity", "individual_fairness")  # requested by default besides the performance


def objective_name(argument: str, name: str) -> str:
    """Return the canonical name of an objective.

    Raises:
        ValueError: It is unknown.
    """
    if name.lower() in ("r", "reward"):
        return PERFORMANCE
    return canonical_name(argument, name, (PERFORMANCE, *KINDS, *BY_NAME))


def default_objectives(rules: AnyRules, *, comparable: bool = False) -> tuple[str, ...]:
    """Return the objectives for an environment if none are named.

    They are groups' returns if agents earn rewards throughout an episode, and groups' benefits if objectives must be
    comparable. Otherwise, they are the performance and the notions of `NOTIONS` that the environment supports, or the
    task's measures if it supports none of them.

    Args:
        rules: The environment.
        comparable: Whether the objectives must be comparable, as Lorenz dominance needs.
    """
    if comparable or agents_earn(rules):
        return (GROUPS,)
    notions = [name for name in NOTIONS if not _unsupported_notion(rules, name)]
    return (PERFORMANCE, *notions) if notions else (MEASURES,)


def agents_earn(rules: AnyRules) -> bool:
    """Return whether the same agents earn rewards throughout an episode, so that groups have returns."""
    return rules.multi_agent and rules.spec.same_individuals


def unsupported_objectives(rules: AnyRules, objectives: Sequence[str], task: Task) -> str:
    """Return why an environment does not have some objectives, given by canonical names, or ""."""
    try:
        if GROUPS in objectives and not agents_earn(rules):
            task.rate_of(rules)
        if MEASURES in objectives:
            for name in FOLLOWED:
                task.measure(name, rules, 1)
    except ValueError as error:
        return f"cannot measure the objectives {', '.join(objectives)}: {error}"
    if set(objectives) & set(KINDS):
        return ""
    for name in objectives:
        if name != PERFORMANCE and (why := _unsupported_notion(rules, name)):
            return why
    return ""


def _unsupported_notion(rules: AnyRules, name: str) -> str:
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
    """Settings of a training that `objectives_of` and `names_of` read."""

    @property
    def env_id(self) -> str:
        """Id of the environment."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the environment."""

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
        return VectorReward(env, per="group", **_benefits(settings))
    if MEASURES in settings.objectives:
        task, rules = task_of(settings.env_id), rules_for(settings.env_id, **settings.parameters)
        return FairnessObjectives(env, measures=[task.factory(name, rules) for name in FOLLOWED])
    if not settings.notions:
        raise ValueError(f"objectives must name a notion besides {PERFORMANCE}, got {settings.objectives}")
    memory = SlidingWindow(settings.window) if settings.window else Full()
    return FairnessObjectives(env, settings.notions, memory, groups=settings.compared, keep=settings.keep_history)


def names_of(settings: Requested) -> tuple[str, ...]:
    """Return the names of all objectives in the order of the vector reward.

    Raises:
        ValueError: The environment does not support the objectives.
    """
    if MEASURES in settings.objectives:
        return (PERFORMANCE, *FOLLOWED)
    if GROUPS not in settings.objectives:
        return (PERFORMANCE, *settings.notions)
    spec, of_rate = rules_for(settings.env_id, **settings.parameters).spec, _benefits(settings)
    return group_codes(spec, of_rate["groups"])[0] if of_rate else tuple(spec.groups)


def _benefits(settings: Requested) -> dict[str, Any]:
    """Return the options of `VectorReward` for benefits of groups; none if groups have returns."""
    task, rules = task_of(settings.env_id), rules_for(settings.env_id, **settings.parameters)
    if agents_earn(rules):
        return {}
    return {"rate": task.rate_of(rules), "groups": settings.compared or task.groups, "aggregate": "rate"}


def trained_rules(env: Any) -> AnyRules:
    """Return the rules of a training's vector environment, or what is known of a user's own environment."""
    lanes = getattr(env.unwrapped, "lanes", None)
    if isinstance(lanes, (Lanes, Worlds)):
        return lanes.rules
    return OwnRules("env", env.fair_spec, spaces=(env.single_observation_space, env.single_action_space))


class RewardVectors:
    """Computes the vector rewards of a world without wrappers, as an environment's wrappers would.

    Args:
        env: The environment.
    """

    def __init__(self, env: Any) -> None:
        self._models: list[Transform] = [bound.transform for bound in reversed(transforms(env))]
        self.rules, self._env = trained_rules(env), env.unwrapped

    def start(self, world: World) -> None:
        """Prepare for new lanes.

        Raises:
            ValueError: The world has neither lanes of this package nor one episode of a user's own environment, or it
                does not have the objectives.
        """
        self._world, self._own = world, None
        lanes = world.lanes
        if lanes is None:
            if not isinstance(self.rules, OwnRules) or world.count != 1:
                raise ValueError("world must have lanes of fair_envs, from whose record the objectives are computed")
            self._own = OwnFace(self._env, self.rules.spec)
            lanes = self._own.lanes
        self._lanes = lanes
        rules = self.rules if lanes is not world.lanes else lanes.rules
        space: Any = rules.observation_space(rules.params)
        self._transforms = copy.deepcopy(self._models)
        for transform in self._transforms:
            transform.bind(Setting(lanes=lanes, observation_space=space))
            space = transform.space(space)
        names = [transform.objectives for transform in self._models if transform.objectives]
        own = [transform.objectives for transform in self._transforms if transform.objectives]
        if own != names:
            raise ValueError(f"world must have the objectives {names} of the training, got {own}")

    def begin(self, mask: Flags) -> None:
        """Start new episodes in the masked lanes."""
        nobody, nothing = np.zeros(len(mask), bool), np.zeros((len(mask), self._lanes.agents))
        if self._own is None:
            shown = self._lanes.show()
            observation, facts = shown.observation, shown.facts
        else:
            observation, facts = self._world.observation, self._own.interactions
        self._apply(Batch(observation, nothing, facts, decided=nobody, first=mask, done=nobody))

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
            self._facts(step, action_probs),
            decided=step.active,
            first=first,
            done=step.ended,
            action_probs=action_probs,
        )
        vector: NDArray[Any] | None = self._apply(batch).vector
        assert vector is not None  # the wrappers of a training make it
        return np.asarray(vector, np.float64)

    def _facts(self, step: Transition, action_probs: Floats32 | None) -> Records:
        """Return the records of a step; those of a user's own environment are in ``info``."""
        if self._own is None:
            return step.facts
        self._own.extra({name: column[0] for name, column in step.columns.items()}, decided=True)
        return self._own.interactions

    def _apply(self, batch: Batch) -> Batch:
        for transform in self._transforms:
            batch = transform(batch)
        return batch
