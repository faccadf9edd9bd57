"""Tests trained policies of agents: episodes with common random numbers, in counterfactual worlds too, and a report.

The report has every fairness notion on returns, with confidence intervals.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy

from fair_envs.baselines.ppo.policies import GroupedPolicy, IndividualPolicy
from fair_envs.core import Rules, check_count, check_seeds
from fair_envs.core.interactions import FairSpec
from fair_envs.evaluation import LanesWorld, Policy, Stochastic, begun, rollout
from fair_envs.evaluation.reports import Report
from fair_envs.metrics import Estimate, Returns, fairness_report
from fair_envs.support.aliases import Floats, Ints, OnProgress
from fair_envs.wrappers.twin import Twins

SENSITIVE = "sensitive"  # name of the sensitive attribute among the attributes of returns
BATCH = 16  # episodes played in parallel
COUNTERFACTUAL = "counterfactual_fairness"
WORLDS: Mapping[str, str] = {
    "own": "every agent with the attribute loses it and uses the networks of its new group",
    "same": "every agent with the attribute loses it but keeps the networks of its old group",
    "games": "a game in which all agents have the attribute is compared with a game in which none has it",
}
"""Descriptions of the worlds compared by the counterfactual notion, by the name in brackets."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeResults:
    """Results of test episodes.

    Attributes:
        returns: Returns of all agents, with the attributes ``"sensitive"`` (codes 0 and 1) and each legitimate factor
            under its name (strings).
        selected: How often the agents of each group chose each action, including steps without a turn, shape
            (groups, actions).
        executed: How often they executed each action, shape (groups, actions).
        steps: Lengths of the episodes, shape (episodes,).
    """

    returns: Returns
    selected: Ints
    executed: Ints
    steps: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Counterfactual:
    """Episodes with common random numbers in worlds that differ in the sensitive attribute.

    Row e of all returns has the same random numbers. Pass ``(everybody, none)`` to
    `fair_envs.metrics.counterfactual_fairness` to compare the paper's two games, or ``(factual, own)`` or
    ``(factual, same)`` for the definition of counterfactual fairness.

    Attributes:
        none: The game in which no agent has the attribute.
        everybody: The game in which every agent has the attribute.
        factual: The original game.
        own: The original game in which every agent with the attribute loses it and uses the networks of its new group.
        same: As ``own``, but each agent keeps the networks that it uses in the original game.
    """

    none: Returns
    everybody: Returns
    factual: Returns
    own: Returns
    same: Returns


class AgentsPolicy(Stochastic):
    """A trained policy of agents with discrete actions, for observations that end with the agent's group.

    Probabilities are computed in double precision. In single precision their last bits depend on the number of lanes
    played in parallel.

    Args:
        model: A Stable-Baselines3 model with an actor-critic policy of discrete actions on rows of agents, or with a
            `GroupedPolicy` or `IndividualPolicy`.
        rules: The environment.
        deterministic: Whether the most probable action is taken instead of a sampled one.

    Raises:
        ValueError: The model takes other observations or actions than the environment has, or it has an environment
            that normalises observations. Normalisation cannot be detected in a model loaded without an environment.
    """

    def __init__(self, model: Any, rules: Rules, *, deterministic: bool = False) -> None:
        observed, actions = rules.observation_space(rules.params), rules.action_space(rules.params)
        if not isinstance(actions, gym.spaces.Discrete) or model.action_space != actions:
            raise ValueError(f"model must choose among the environment's actions, {actions}, got {model.action_space}")
        normalised = model.get_vec_normalize_env()
        if normalised is not None and normalised.norm_obs:
            raise ValueError("model must take unnormalised observations, got one with VecNormalize(norm_obs=True)")
        grouped = isinstance(model.policy, GroupedPolicy)
        policies = list(model.policy.members) if grouped else [model.policy]
        if not all(isinstance(policy, ActorCriticPolicy) for policy in policies):
            raise ValueError(f"model must have an actor-critic policy, got {type(policies[0]).__name__}")
        width, shape = int(np.prod(observed.shape or ())), model.observation_space.shape
        if shape not in ([(width + 1,)] if grouped else [(width,), (width + 1,)]):  # with or without the group
            raise ValueError(f"model must take one agent's observation, shape {observed.shape}, got {shape}")
        self.deterministic, self.actions = deterministic, int(actions.n)
        self._entries = shape[0] - grouped  # entries of an observation that are inputs of the networks
        self._by_agent = isinstance(model.policy, IndividualPolicy)
        self._networks = [_double(policy) for policy in policies]

    append_group = True

    def probabilities(self, observation: NDArray[Any]) -> Floats:
        """Return the action probabilities, shape (B, agents, A), for observations that end with the group."""
        rows, owner = observation.reshape(-1, observation.shape[-1]), self._owner(observation).ravel()
        probabilities = np.full((len(rows), self.actions), 1 / self.actions)  # inactive lanes get any actions
        for g, network in enumerate(self._networks):
            members = owner == g
            probabilities[members] = network(th.as_tensor(rows[members, : self._entries]))
        shaped = probabilities.reshape(*observation.shape[:2], self.actions)
        return np.eye(self.actions)[shaped.argmax(axis=-1)] if self.deterministic else shaped

    def _owner(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the index of the network of each agent, shape (B, agents): of itself, of its group or of all."""
        lanes, agents = observation.shape[:2]
        if self._by_agent:
            return np.tile(np.arange(agents), (lanes, 1))
        return observation[..., -1] if len(self._networks) > 1 else np.zeros((lanes, agents))


def _double(policy: ActorCriticPolicy) -> Callable[[th.Tensor], Floats]:
    """Return a function that returns a policy's action probabilities, shape (n, actions), in double precision."""
    first: Any = copy.deepcopy(policy.pi_features_extractor).eval().to("cpu")
    hidden: Any = copy.deepcopy(policy.mlp_extractor).eval().to("cpu").double()
    last: Any = copy.deepcopy(policy.action_net).eval().to("cpu").double()

    def probabilities(observations: th.Tensor) -> Floats:
        with th.no_grad():
            features = BasePolicy.extract_features(policy, observations, first)
            logits = last(hidden.forward_actor(features.double()))
            return th.softmax(logits, dim=-1).numpy()

    return probabilities


def policy_of(model: Any, rules: Rules, *, deterministic: bool) -> Policy:
    """Return the policy of a model, see `AgentsPolicy`, or a policy as it is.

    Raises:
        ValueError: The policy does not take observations that end with the agent's group.
    """
    if not isinstance(model, Policy):
        return AgentsPolicy(model, rules, deterministic=deterministic)
    if not model.append_group:
        raise ValueError("model must be a model, or a policy with append_group=True, got a policy without")
    return model


def play(
    model: Any,
    rules: Rules,
    *,
    episodes: int,
    seed: int = 0,
    lanes: int = 64,
    threads: int = 1,
    deterministic: bool = False,
) -> EpisodeResults:
    """Play test episodes; episode e is the first one of the environment seeded ``seed + e``.

    Args:
        model: See `AgentsPolicy`; or a policy whose observations end with the agent's group.
        rules: The environment, with discrete actions.
        episodes: Number of episodes, at least 1.
        seed: Seed of the first episode.
        lanes: Number of episodes played in parallel; the results do not depend on it.
        threads: Number of threads that share the lanes.
        deterministic: Whether the most probable actions of a model are taken instead of sampled ones.

    Raises:
        ValueError: A number is below 1, or the model is for another environment.
    """
    _check_counts(episodes=episodes, lanes=lanes, threads=threads)
    policy = policy_of(model, rules, deterministic=deterministic)
    parts = np.array_split(check_seeds(seed, episodes), -(-episodes // lanes))
    played = [_play(policy, rules, seeds, threads=threads) for seeds in parts]
    return _joined(played)


def _joined(parts: Sequence[EpisodeResults]) -> EpisodeResults:
    """Return the results of all parts."""
    return EpisodeResults(
        returns=Returns.concat(part.returns for part in parts),
        selected=np.sum([part.selected for part in parts], axis=0),
        executed=np.sum([part.executed for part in parts], axis=0),
        steps=np.concatenate([part.steps for part in parts]),
    )


def _play(policy: Policy, rules: Rules, seeds: NDArray[np.uint64], *, threads: int) -> EpisodeResults:
    """Play one episode for each seed, in parallel."""
    lanes = begun(rules, seeds, threads=threads)
    start = lanes.show().facts
    attributes = _named(rules.spec, start["sensitive"], start["legitimate"])
    returns, steps = np.zeros((lanes.count, lanes.agents)), np.zeros(lanes.count, np.int64)
    actions: Any = rules.action_space(rules.params)
    counts = np.zeros((2, len(rules.spec.groups), int(actions.n)), np.int64)  # selected, executed
    for step in rollout(LanesWorld(lanes, append_group=True), policy):
        returns += step.reward
        steps += step.active
        group, taken = (step.facts[name][step.active] for name in ("group", "action"))
        for count, chosen in zip(counts, (step.action[step.active], taken), strict=True):
            count += _counted(group, chosen, shape=count.shape)
    return EpisodeResults(
        returns=Returns(returns, attributes=attributes), selected=counts[0], executed=counts[1], steps=steps
    )


def _counted(group: Ints, actions: Ints, *, shape: tuple[int, ...]) -> Ints:
    """Return how often each group takes each action, shape (groups, actions); an action of -1 means no action."""
    taken = actions >= 0
    cell = group[taken] * shape[1] + actions[taken]
    return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)


def counterfactual(
    model: Any,
    rules: Rules,
    *,
    episodes: int,
    seed: int = 0,
    lanes: int = 64,
    threads: int = 1,
    deterministic: bool = False,
) -> Counterfactual:
    """Play the episodes of `play` in counterfactual worlds: with common random numbers and the attribute flipped.

    Args:
        model: See `play`.
        rules: The environment, with discrete actions.
        episodes: Number of episodes, at least 1.
        seed: Seed of the first episode.
        lanes: Number of episodes played in parallel; the results do not depend on it.
        threads: Number of threads that share the lanes.
        deterministic: Whether the most probable actions are taken instead of sampled ones.

    Raises:
        ValueError: A number is below 1, the model is for another environment, or agents have no attribute to flip.
    """
    _check_counts(episodes=episodes, lanes=lanes, threads=threads)
    policy = policy_of(model, rules, deterministic=deterministic)
    twins = Twins(rules, lanes=lanes, append_group=True, threads=threads)
    run = partial(twins.run, policy, episodes=episodes, seed=seed)
    games, own, same = run(flip="all_none"), run(flip="protected"), run(flip="protected", keep_group=True)
    return Counterfactual(
        none=_renamed(games.counterfactual, rules.spec),
        everybody=_renamed(games.factual, rules.spec),
        factual=_renamed(own.factual, rules.spec),
        own=_renamed(own.counterfactual, rules.spec),
        same=_renamed(same.counterfactual, rules.spec),
    )


def _named(spec: FairSpec, sensitive: Ints, legitimate: Ints) -> dict[str, NDArray[Any]]:
    """Return the attributes of returns from codes of shapes (B, agents, attributes) and (B, agents, factors)."""
    factors = {name: np.array(texts)[legitimate[..., k]] for k, (name, texts) in enumerate(spec.legitimate.items())}
    return {SENSITIVE: sensitive[..., 0], **factors}


def _renamed(returns: Returns, spec: FairSpec) -> Returns:
    """Return the twins' returns with attributes named as in `EpisodeResults`."""
    sensitive, legitimate = (_stacked(returns, names) for names in (spec.sensitive, spec.legitimate))
    return Returns(returns.values, attributes=_named(spec, sensitive, legitimate))


def _stacked(returns: Returns, names: Mapping[str, Any]) -> Ints:
    columns = [returns.attribute(name) for name in names]
    return np.stack(columns, axis=-1) if columns else np.zeros((*returns.values.shape, 0), np.int64)


def _check_counts(**numbers: int) -> None:
    for name, number in numbers.items():
        check_count(name, number)


# The report ---------------------------------------------------------------------------------------------------------


def batches(episodes: int) -> list[int]:
    """Return the sizes of the batches in which the episodes are played."""
    return [min(BATCH, episodes - done) for done in range(0, episodes, BATCH)]


def assess(
    model: Any,
    rules: Rules,
    *,
    episodes: int,
    seed: int,
    about: Mapping[str, Any] | None = None,
    level: float = 0.95,
    each: OnProgress = lambda: None,
) -> Report:
    """Play test episodes in the factual and in counterfactual worlds, and measure every notion.

    Args:
        model: See `play`.
        rules: The environment.
        episodes: Number of episodes.
        seed: Seed of the first episode.
        about: Information about the test to include in the report.
        level: Confidence level of the intervals.
        each: Called after each batch, see `batches`.

    Returns:
        Estimates by the names of `fair_envs.metrics.fairness_report`. The counterfactual notion has the name of its
        worlds in brackets, see `WORLDS`. The details contain how often each group selected and executed each action.
    """
    played: list[EpisodeResults] = []
    worlds: list[Counterfactual] = []
    for done, count in zip(range(0, episodes, BATCH), batches(episodes), strict=True):
        played.append(play(model, rules, episodes=count, seed=seed + done))
        worlds.append(counterfactual(model, rules, episodes=count, seed=seed + done))
        each()
    results = _joined(played)
    pairs = {"own": ("factual", "own"), "same": ("factual", "same"), "games": ("everybody", "none")}
    estimates = measured(
        results.returns,
        {name: (_of_world(worlds, real), _of_world(worlds, other)) for name, (real, other) in pairs.items()},
        legitimate=next(iter(rules.spec.legitimate), None),
        level=level,
    )
    return Report(
        labels=("number",),
        estimates={(name,): found for name, found in estimates.items()},
        about={"episodes": episodes, "seed": seed, **(about or {})},
        details={
            "worlds": dict(WORLDS),
            "groups": list(rules.spec.groups),
            "selected": results.selected.tolist(),
            "executed": results.executed.tolist(),
        },
        notes=[f"[{name}]: {meaning}" for name, meaning in WORLDS.items()],
    )


def _of_world(parts: Sequence[Counterfactual], world: str) -> Returns:
    return Returns.concat(getattr(part, world) for part in parts)


def measured(
    returns: Returns, worlds: Mapping[str, tuple[Returns, Returns]], *, legitimate: str | None, level: float
) -> dict[str, Estimate]:
    """Return every notion; the counterfactual notion is measured for each pair of factual and counterfactual worlds."""
    estimates: dict[str, Estimate] = {}
    for name, (factual, other) in worlds.items():
        report = fairness_report(
            returns,
            sensitive=SENSITIVE,
            legitimate=legitimate,
            counterfactual=other,
            factual=factual,
            level=level,
            resamples=2000,
        )
        for key, estimate in report.items():
            estimates[f"{key}[{name}]" if key.startswith(COUNTERFACTUAL) else key] = estimate
    return estimates
