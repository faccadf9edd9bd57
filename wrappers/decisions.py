"""Counterfactual fairness of decisions: would the same person get another decision with another attribute?

`decision_gap` measures the direct effect of the attribute on each decision: it changes the attribute of the waiting
person, all else equal, and calls the policy again. `twin_decisions` also includes the effects of earlier decisions: it
plays whole episodes again, with the same random numbers, in a world where all people have the other value or one value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike, NDArray
from pettingzoo import AECEnv, ParallelEnv

from fair_envs.core import Lanes, Rules, Worlds, check_count, check_seeds
from fair_envs.core.interactions import FairSpec
from fair_envs.evaluation import LanesWorld, Policy, Transition, World, begun, choose, lanes_of, rollout, rules_of
from fair_envs.evaluation.policy import Act
from fair_envs.faces.common import NotReset
from fair_envs.metrics.group import GroupNotion
from fair_envs.metrics.history import Full, History
from fair_envs.metrics.intervals import Estimate, cluster_means, mean_interval, paired_difference
from fair_envs.support.aliases import Flags, Floats, Ints
from fair_envs.support.parameters import checked
from fair_envs.wrappers.adapters.bound import other_layer, seen
from fair_envs.wrappers.transform import Transform
from fair_envs.wrappers.twin import View

Probabilities = Callable[[NDArray[Any]], ArrayLike]
"""Observations (B, agents, ...) to the probabilities of the actions (B, agents, A)."""

Unit = Literal["episode", "person"]


# One person, another attribute ----------------------------------------------------------------------------------------


def counterfactual_observation(env: Any, attribute: str | None = None, value: str | int = 1) -> Any:
    """Return the current observation if the waiting people had another value of a sensitive attribute, all else equal.

    The environment does not change. The observation has the same form as the observations of ``env``, including the
    changes by this package's wrappers.

    Args:
        env: An environment with any interface.
        attribute: One of ``fair_spec.sensitive``, the first by default.
        value: The name or code of the value.

    Raises:
        TypeError: It is not an environment of this package, it plays several worlds, or its agents take turns (AEC).
        ValueError: The attribute or value does not exist, the rules do not define how to assign it, or there is a
            wrapper of another library that may change observations.
        ResetNeeded: The first episode has not begun.

    Example:
        >>> import fair_envs
        >>> seen = counterfactual_observation(env, "gender", "woman")  # doctest: +SKIP
    """
    if isinstance(env, AECEnv):
        raise TypeError(f"env must be parallel: an AEC environment shows one agent at a time, got {env!r}")
    lanes = _one_world(env)
    if (other := other_layer(env)) is not None:
        raise ValueError(
            "env must have no wrapper of another library that may change observations, got "
            f"{type(other).__name__}: pass the environment below it"
        )
    attribute, code = _attribute(lanes.rules.spec, attribute, value)
    records = lanes.snapshot()
    if not records["key"].all():
        raise NotReset("counterfactual_observation must follow a reset")
    lanes.rules.assign(records, attribute, code)
    other = Lanes(lanes.rules, lanes.count)
    other.restore(records)
    return _in_form_of(env, seen(env, other))


def _one_world(env: Any) -> Lanes:
    """Return the lanes of an environment with one world, or raise TypeError."""
    lanes = lanes_of(env)
    if isinstance(lanes, Worlds):
        raise TypeError(f"env must play one world, got {env!r}, which plays several")
    return lanes


def _attribute(spec: FairSpec, attribute: str | None, value: str | int = 0) -> tuple[str, int]:
    """Return the attribute, the first by default, and the code of its value.

    Raises:
        ValueError: The attribute or value does not exist.
    """
    if attribute is None:
        attribute = spec.default_attribute(chosen_with="attribute")
    if attribute not in spec.sensitive:
        raise ValueError(f"attribute must be one of {', '.join(spec.sensitive) or 'none'}, got {attribute!r}")
    values = spec.sensitive[attribute]
    code = values.index(value) if value in values else value
    if not isinstance(code, (int, np.integer)) or isinstance(code, bool) or not 0 <= code < len(values):
        raise ValueError(f"value must be one of {', '.join(map(repr, values))} or its code, got {value!r}")
    return attribute, int(code)


def _in_form_of(env: Any, observation: NDArray[Any]) -> Any:
    """Return observations (B, agents, ...) in the form of the environment's interface."""
    if isinstance(env, ParallelEnv):
        return dict(zip(env.possible_agents, observation[0].copy(), strict=True))
    shape = env.observation_space.shape
    if isinstance(env, (gym.Env, VectorEnv)):
        return observation.reshape(shape)
    return observation.reshape(env.num_envs, *shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class DecisionGaps:
    """How much a policy's decision about each person would change with another value of a sensitive attribute.

    Attributes:
        attribute: The attribute.
        values: The names of its values.
        gap: Total variation distance between the decision's distributions with the person's actual value and with
            another value, shape (n,). 0 is fair; 1 means certainly another decision. With more than two values, the
            largest distance.
        change: Change of the probability of the favourable decision with that other value, shape (n,); positive if it
            would be more likely.
        value: The code of the person's actual value, shape (n,).
        individual: The person's id, unique within the episode, shape (n,).
        episode: The episode's index, shape (n,).
    """

    attribute: str
    values: tuple[str, ...]
    gap: Floats
    change: Floats
    value: Ints
    individual: Ints
    episode: Ints

    def mean(self, *, level: float = 0.95, unit: Unit = "episode") -> Estimate:
        """Return the mean gap.

        Args:
            level: The interval's confidence level.
            unit: What counts as one independent draw. By default, the mean of each episode, because people of one
                episode meet the same state of the decision-maker. ``"person"`` treats all people as independent.
        """
        return self._estimate(self.gap, np.ones(len(self.gap), bool), level, unit)

    def by_group(self, *, level: float = 0.95, unit: Unit = "episode") -> dict[str, Estimate]:
        """Return the mean gap of the people with each value; undefined for a value that no person has."""
        return {name: self._estimate(self.gap, self.value == code, level, unit) for code, name in self._codes()}

    def change_by_group(self, *, level: float = 0.95, unit: Unit = "episode") -> dict[str, Estimate]:
        """Return how much likelier the favourable decision would be with another value, by the actual value."""
        return {name: self._estimate(self.change, self.value == code, level, unit) for code, name in self._codes()}

    def _codes(self) -> Any:
        return enumerate(self.values)

    def _estimate(self, numbers: Floats, who: Flags, level: float, unit: Unit) -> Estimate:
        return _estimate(numbers[who], self.episode[who], level=level, unit=unit)


def _estimate(numbers: Floats, episode: Ints, *, level: float, unit: Unit) -> Estimate:
    """Return the mean over units with its confidence interval."""
    if checked("unit", unit, Unit) == "episode":
        numbers = cluster_means(numbers, clusters=episode)
    return mean_interval(numbers, level=level)


def decision_gap(
    env: Any,
    policy: Probabilities,
    *,
    attribute: str | None = None,
    episodes: int = 100,
    seed: int = 0,
    lanes: int = 16,
    transforms: Sequence[Transform] = (),
) -> DecisionGaps:
    """Return how much a policy's decision about each person would change if they had another attribute value.

    Episode e is the single environment with seed ``seed + e``, played with the policy's actual decisions.

    Args:
        env: The environment's rules, or an environment with any interface; only its rules are used.
        policy: A function from observations (B, 1, ...) to probabilities (B, 1, actions).
        attribute: One of ``fair_spec.sensitive``, the first by default.
        episodes: The number of episodes.
        seed: The seed of the first episode.
        lanes: How many episodes are played in parallel; the result does not depend on it.
        transforms: Transforms of the policy's observations, applied like wrappers, the innermost first.

    Raises:
        ValueError: The environment does not decide on one person in each step, the attribute is unknown, there is no
            episode, the seed is out of range, or the probabilities are not a distribution.

    Example:
        >>> import numpy as np
        >>> from fair_envs.wrappers import decision_gap
        >>> def policy(observation):
        ...     return np.full((*observation.shape[:2], 2), 0.5)
        >>> gaps = decision_gap(env, policy, attribute="gender")  # doctest: +SKIP
        >>> print(gaps.mean(), gaps.by_group())  # doctest: +SKIP
    """
    rules = _of_people(env, "decision_gap")
    attribute, _ = _attribute(rules.spec, attribute)
    check_count("lanes", lanes)
    check_count("episodes", episodes)
    seeds = check_seeds(seed, episodes)
    found: list[dict[str, NDArray[Any]]] = []
    for first in range(0, episodes, lanes):
        asked = _Queried(rules, policy, attribute)
        batch = begun(rules, seeds[first : first + lanes])
        view = View(batch, transforms)
        for step in rollout(LanesWorld(batch, shown=view), asked):
            asked.compare(step, view)
        found.append({**asked.reported(), "episode": asked.lane + first})
    joined = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    order = np.argsort(joined["episode"], kind="stable")
    columns = {name: column[order] for name, column in joined.items()}
    return DecisionGaps(attribute=attribute, values=rules.spec.sensitive[attribute], **columns)


class _Queried(Policy):
    """A policy that is called twice about each person: with the actual attribute value and with another one."""

    def __init__(self, rules: Rules, policy: Probabilities, attribute: str) -> None:
        self._rules, self._policy, self._attribute = rules, policy, attribute
        self._place = list(rules.spec.sensitive).index(attribute)
        self._count = len(rules.spec.sensitive[attribute])
        self._columns: dict[str, list[NDArray[Any]]] = {}

    def start(self, world: World) -> None:
        """Keep the lanes."""
        self._lanes: Any = world.lanes

    def act(self, observation: NDArray[Any], uniforms: Floats) -> Ints:
        """Return the decisions."""
        self._before = self._lanes.snapshot()
        self._own = self._probabilities(observation)
        return choose(self._own, uniforms)

    def compare(self, step: Transition, view: View) -> None:
        """Call the policy again about the people just decided on and store the differences.

        Args:
            step: The step with the decisions.
            view: Converts lanes to the policy's observations.
        """
        own = step.facts["sensitive"][:, 0, self._place]
        gap, change = np.full((2, len(own)), -np.inf)
        favourable = self._rules.spec.favourable_action
        for other in range(1, self._count):
            asked = self._asked_about(self._before, (own + other) % self._count, view)
            apart = np.abs(asked - self._own)[:, 0].sum(axis=-1) / 2
            change = np.where(apart > gap, (asked - self._own)[:, 0, favourable], change)
            gap = np.maximum(gap, apart)
        reported = {"gap": gap, "change": change, "value": own, "individual": step.facts["individual"][:, 0]}
        for name, column in {**reported, "lane": np.arange(len(own))}.items():
            self._columns.setdefault(name, []).append(column[step.active])

    def reported(self) -> dict[str, NDArray[Any]]:
        """Return the columns found; the column of lanes becomes the attribute ``lane``."""
        joined = {name: np.concatenate(parts) for name, parts in self._columns.items()}
        self.lane: Ints = joined.pop("lane")
        return joined

    def _asked_about(self, records: NDArray[np.void], codes: Ints, view: View) -> Floats:
        """Return the probabilities for the people of these lanes with these values."""
        assigned = records.copy()
        _assign(self._rules, assigned, self._attribute, codes)
        lanes = Lanes(self._rules, len(assigned))
        lanes.restore(assigned)
        return self._probabilities(view.transform_observation(lanes.show()))

    def _probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the policy's probabilities, shape (B, 1, A), or raise ValueError."""
        given = np.asarray(self._policy(observation), float)
        shape = (len(observation), 1, self._rules.spec.actions)
        if given.shape != shape:
            raise ValueError(f"policy must return shape {shape}, got {given.shape}")
        if not ((given >= 0).all() and np.allclose(given.sum(-1), 1, atol=1e-4)):  # False for NaN too
            raise ValueError("policy must return distributions: no entry below 0 and each row summing to 1")
        return given


def _assign(rules: Rules, records: NDArray[np.void], attribute: str, codes: Ints) -> None:
    """Assign the waiting people of each lane the value of the lane's code, in place."""
    for code in np.unique(codes):
        part = records[codes == code]
        rules.assign(part, attribute, int(code))
        records[codes == code] = part


def _of_people(env: Any, name: str) -> Rules:
    """Return the rules of an environment that decides on one person in each step, or raise ValueError."""
    rules = rules_of(env)
    if rules.multi_agent or not rules.spec.one_person:
        raise ValueError(f"{name} needs one decision on one person per step; {rules.name} has other decisions")
    return rules


def play_decisions(
    env: Any, policy: Policy | Act, notions: Sequence[GroupNotion], *, seeds: NDArray[np.uint64]
) -> tuple[Floats, Floats]:
    """Play one episode for each seed and return the gap of each notion in each episode.

    Args:
        env: The rules of an environment with one decision-maker, or such an environment with any interface.
        policy: A function from observations (B, 1, ...) and uniform numbers (B, 1) to actions (B, 1, ...).
        notions: The notions to measure over all decisions of an episode.
        seeds: The seeds of the B episodes, which are played in parallel.

    Returns:
        The decision-maker's returns, shape (B, 1), and the gaps, shape (B, notions): 0 is fair, NaN if undefined.

    Raises:
        ValueError: The environment does not report what a notion needs, or an action lies outside its space.
    """
    lanes = begun(rules_of(env), seeds)
    history, returns = History(Full(), lanes.rules.spec, lanes=lanes.count), np.zeros((lanes.count, 1))
    for step in rollout(LanesWorld(lanes), policy):
        returns += step.reward
        if notions:  # without notions, the decisions may affect no one, and a history may not accept them
            history.add_facts(step.facts)  # blank for lanes that are done
    gaps = [notion.gap(history) for notion in notions]
    return returns, np.reshape(gaps, (len(notions), lanes.count)).T


# Whole episodes with another attribute --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class DecisionEpisodes:
    """The decisions of several episodes and the people they affected.

    In arrays with an axis of steps, entries after an episode's end are -1 (0 for outcomes).

    Attributes:
        returns: The decision-maker's returns, shape (episodes,).
        lengths: The number of steps, shape (episodes,).
        individual: The person's id, shape (episodes, steps).
        action: The decision, shape (episodes, steps).
        outcome: The person's outcome, shape (episodes, steps).
        sensitive: The codes of each attribute by name, each of shape (episodes, steps).
    """

    returns: Floats
    lengths: Ints
    individual: Ints
    action: Ints
    outcome: Floats
    sensitive: Mapping[str, Ints]


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinDecisions:
    """Pairs of episodes with the same random numbers, one of them with another sensitive attribute.

    In the counterfactual episode, all people have the other value, or all have the same value.

    Attributes:
        factual: The factual episodes; episode e is the single environment with seed ``seed + e``.
        counterfactual: Their twins.
        attribute: The attribute that differs in the counterfactual world.
        values: The names of its values.
        favourable_action: The decision that people want.
    """

    factual: DecisionEpisodes
    counterfactual: DecisionEpisodes
    attribute: str
    values: tuple[str, ...]
    favourable_action: int

    @property
    def same_person(self) -> Flags:
        """Whether the step decides on the same person in both worlds, shape (episodes, steps)."""
        one, other = self.factual, self.counterfactual
        met: Flags = (one.individual == other.individual) & (one.action >= 0) & (other.action >= 0)
        return met

    def changed(self, *, level: float = 0.95) -> Estimate:
        """Return the share of people with another decision, among those met in both worlds: 0 is fair."""
        return self._mean(self.factual.action != self.counterfactual.action, self.same_person, level)

    def favoured(self, *, level: float = 0.95) -> dict[str, Estimate]:
        """Return how much more often people get the favourable decision with the other value, by their actual value."""
        own, other = (side.action == self.favourable_action for side in (self.factual, self.counterfactual))
        return self._by_group(other.astype(float) - own, level)

    def outcomes(self, *, level: float = 0.95) -> dict[str, Estimate]:
        """Return how much better people's outcomes are with the other value, by their actual value."""
        return self._by_group(self.counterfactual.outcome - self.factual.outcome, level)

    def returns(self, *, level: float = 0.95) -> Estimate:
        """Return how much more the decision-maker earns in the counterfactual world."""
        return paired_difference(self.counterfactual.returns, self.factual.returns, level=level)

    def _by_group(self, numbers: Floats, level: float) -> dict[str, Estimate]:
        own = self.factual.sensitive[self.attribute]
        groups = enumerate(self.values)
        return {name: self._mean(numbers, self.same_person & (own == code), level) for code, name in groups}

    def _mean(self, numbers: NDArray[Any], who: Flags, level: float) -> Estimate:
        """Return the mean over these people, with episodes as the independent units."""
        episode, step = np.nonzero(who)
        return _estimate(numbers[episode, step].astype(float), episode, level=level, unit="episode")


def twin_decisions(
    env: Any,
    policy: Policy | Act,
    *,
    attribute: str | None = None,
    value: str | int | None = None,
    episodes: int = 100,
    seed: int = 0,
    lanes: int = 16,
    counterfactual_policy: Policy | Act | None = None,
    transforms: Sequence[Transform] = (),
) -> TwinDecisions:
    """Play pairs of episodes with the same random numbers: one factual, one with another sensitive attribute.

    In the counterfactual world, all people get the other of two values, or all get the same ``value``. With ``value``,
    people who have it in the factual world too do not change; differences in their outcomes come from earlier
    decisions.

    Args:
        env: The environment's rules, or an environment with any interface; only its rules are used.
        policy: Plays both worlds, see `Twins` (`from_probabilities`, `fair_envs.evaluation.policy_of_model`).
        attribute: One of ``fair_spec.sensitive``. By default, the attribute that the rules flip, or the first one.
        value: The value of all people in the counterfactual world, by name or code. By default, the other of two.
        episodes: The number of pairs.
        seed: Pair e has the seed ``seed + e``.
        lanes: How many pairs are played in parallel; the result does not depend on it.
        counterfactual_policy: Plays the counterfactual world instead of ``policy``.
        transforms: Transforms of the policies' observations, applied like wrappers, the innermost first. They do not
            affect returns.

    Raises:
        ValueError: The environment does not decide on one person in each step, its rules do not define how to assign
            another value, the attribute or value does not exist, no value is given for an attribute with more than two,
            there is no episode, the seed is out of range, or an action lies outside the action space.
    """
    rules = _of_people(env, "twin_decisions")
    assigned = _assigned(rules, attribute, value)
    check_count("lanes", lanes)
    check_count("episodes", episodes)
    seeds = check_seeds(seed, episodes)
    sides: tuple[list[_Log], list[_Log]] = [], []
    for first in range(0, episodes, lanes):
        factual = begun(rules, seeds[first : first + lanes])
        twin = begun(rules, seeds[first : first + lanes])
        if assigned is None:
            rules.flip(twin.records, np.ones((twin.count, 1), bool))
        sides[0].append(_log(factual, policy, transforms))
        sides[1].append(_log(twin, counterfactual_policy or policy, transforms, assigned=assigned))
    steps = max(len(log.action) for side in sides for log in side)
    one, other = (_episodes(side, steps, tuple(rules.spec.sensitive)) for side in sides)
    flipped = [name for name, codes in one.sensitive.items() if (codes[:, 0] != other.sensitive[name][:, 0]).any()]
    changed = flipped[0] if assigned is None else assigned.attribute
    return TwinDecisions(
        factual=one,
        counterfactual=other,
        attribute=changed,
        values=rules.spec.sensitive[changed],
        favourable_action=rules.spec.favourable_action,
    )


@dataclass(frozen=True)
class _Assigned:
    """Assigns each arriving person another value of an attribute."""

    attribute: str
    code: int | None  # of the value; None: the other of two values

    def __call__(self, lanes: Lanes) -> None:
        """Assign the value to the people who are waiting in the lanes."""
        place = list(lanes.rules.spec.sensitive).index(self.attribute)
        codes = np.full(lanes.count, self.code or 0)
        if self.code is None:
            codes = 1 - np.maximum(_waiting(lanes)[:, place], 0)
        _assign(lanes.rules, lanes.records, self.attribute, codes)


def _waiting(lanes: Lanes) -> Ints:
    """Return the sensitive codes of the waiting people, shape (B, attributes); -1 in lanes that are done."""
    trial = Lanes(lanes.rules, lanes.count)  # only the step that decides on a person reports the person's codes
    trial.restore(lanes.records)
    space: Any = lanes.rules.action_space(lanes.rules.params)
    anything = np.full((lanes.count, lanes.agents), space.start)
    codes: Ints = trial.advance(anything, mask=lanes.records["over"] == 0).facts["sensitive"][:, 0]
    return codes


def _assigned(rules: Rules, attribute: str | None, value: str | int | None) -> _Assigned | None:
    """Return the function that assigns another value to each person; None: the rules flip all people themselves.

    Raises:
        ValueError: The attribute or value does not exist, or no value is given for an attribute with more than two.
    """
    if attribute is None and value is None and type(rules).flip is not Rules.flip:
        return None
    name, code = _attribute(rules.spec, attribute, 0 if value is None else value)
    values = rules.spec.sensitive[name]
    if value is None and len(values) != 2:
        raise ValueError(f"value must be one of {', '.join(map(repr, values))}, got None: {name} has {len(values)}")
    return _Assigned(name, None if value is None else code)


class _Log(NamedTuple):
    """The decisions of a batch of episodes; -1 for lanes that were done."""

    returns: Floats  # (B,)
    individual: Ints  # (steps, B)
    action: Ints  # (steps, B)
    outcome: Floats  # (steps, B)
    sensitive: Ints  # (steps, B, attributes)


def _log(
    lanes: Lanes, policy: Policy | Act, transforms: Sequence[Transform], *, assigned: _Assigned | None = None
) -> _Log:
    """Play lanes to their ends and return the decisions; ``assigned`` changes the value of each arriving person."""
    returns, steps = np.zeros(lanes.count), []
    for step in rollout(LanesWorld(lanes, shown=View(lanes, transforms), assign=assigned), policy):
        returns += step.reward.sum(axis=1)
        steps.append(step.facts)
    facts = np.stack(steps)  # lanes that were done have blank records
    individual, action, outcome = (facts[name][..., 0] for name in ("individual", "action", "outcome"))
    return _Log(returns, individual, action, outcome, facts["sensitive"][:, :, 0])


def _episodes(logs: Sequence[_Log], steps: int, attributes: Sequence[str]) -> DecisionEpisodes:
    """Return the episodes of all batches, padded to ``steps`` steps."""

    def filled(columns: Sequence[NDArray[Any]], missing: int = -1) -> NDArray[Any]:
        whole = [np.full((steps, *column.shape[1:]), missing, column.dtype) for column in columns]
        for one, column in zip(whole, columns, strict=True):
            one[: len(column)] = column
        return np.moveaxis(np.concatenate(whole, axis=1), 0, 1)

    individual, sensitive = filled([log.individual for log in logs]), filled([log.sensitive for log in logs])
    return DecisionEpisodes(
        returns=np.concatenate([log.returns for log in logs]),
        lengths=(individual >= 0).sum(axis=1),
        individual=individual,
        action=filled([log.action for log in logs]),
        outcome=filled([log.outcome for log in logs], 0),
        sensitive={name: sensitive[..., k] for k, name in enumerate(attributes)},
    )
