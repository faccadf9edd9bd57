"""The cells of studies on decisions: multi-objective trainings, single-objective trainings and simple policies."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import fair_envs  # noqa: F401 - registers the ids
from fair_envs.baselines.pcn.pcn import PCN, Command, Commanded, PCNSettings, farel_settings
from fair_envs.baselines.pcn.rollouts import Random, collect
from fair_envs.baselines.pcn.single import Algorithm, LearnedPolicy, SingleTraining, train_single
from fair_envs.core import Rules
from fair_envs.evaluation import Stochastic
from fair_envs.evaluation.deciders import Always, Correct, Decider, Never, Threshold
from fair_envs.experiments.jobs import Job
from fair_envs.metrics import GroupNotion
from fair_envs.metrics.history import Memory, SlidingWindow
from fair_envs.metrics.individual import HEOM, HMOM, BrayCurtis, Consistency, IndividualFairness
from fair_envs.reproduction.cimpean2025.published import DISTANCES, ENV_IDS, MEASURES, Distance, Setting, World
from fair_envs.reproduction.cimpean2025.representatives import representative_subset
from fair_envs.reproduction.cimpean2025.results import REWARD, Policies
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.wrappers import FairnessObjectives

PUBLISHED_IF = "IF eq. 8"
LANES = 10  # parallel episodes of an iteration
MOST_POLICIES = 16  # policies of a training that are tested; they represent the range of results
LONGEST = 1000  # steps of an episode, in both environments
WITHOUT_DYNAMICS: Mapping[World, Mapping[str, Any]] = {  # no one leaves or loses patience, as in the paper's runs
    "hiring": {"leaving": False},
    "fraud": {"post_transaction_update": False, "initial_satisfaction": 1.0},
}
GROUPS: Mapping[World, Mapping[str, str]] = {"hiring": {"gender": "woman"}, "fraud": {"continent": "NA"}}
SOUND: Mapping[Distance, Any] = {"Bray-Curtis": BrayCurtis(), "HEOM": HEOM(), "HMOM": HMOM()}
PUBLISHED: Mapping[Distance, Any] = {
    "Bray-Curtis": BrayCurtis(),
    "HEOM": HEOM(variant="code", scaling="similarity"),
    "HMOM": HMOM(scaling="similarity"),
}


def notion(name: str, world: World, distance: Distance) -> Any:
    """Return the notion of a measure; the wrapper handles undefined gaps."""
    if name == "IF":
        return IndividualFairness(distance=SOUND[distance])
    if name == PUBLISHED_IF:
        return IndividualFairness(distance=PUBLISHED[distance], form="paper")
    if name == "CSC":
        return Consistency(distance=SOUND[distance])
    return GroupNotion(name=name, groups=GROUPS[world])


def make(world: World, notions: Sequence[Any], memory: Memory, *, lanes: int, parameters: Mapping[str, Any]) -> Any:
    """Return the environment with a vector reward: the reward, and the negative gap of each notion."""
    env = gym.make_vec(ENV_IDS[world], num_envs=lanes, **{**WITHOUT_DYNAMICS[world], **parameters})
    return FairnessObjectives(env, notions, memory)


def tested(
    agent: Callable[[Any], Stochastic],
    *,
    policies: int,
    episodes: int,
    world: World,
    measures: Mapping[str, Any],
    memory: Memory,
    parameters: Mapping[str, Any],
    deterministic: bool = False,
) -> Policies:
    """Play test episodes; every policy has its own lane, and so its own history.

    The history starts empty and continues across episodes, as in the trainings, so consecutive episodes share past
    decisions.

    Args:
        agent: Function from the environment to a policy that decides in lane k like policy k.
        policies: Number of policies.
        episodes: Number of episodes per policy.
        world: The environment.
        measures: Notions by name.
        memory: The decisions that the history keeps.
        parameters: Parameters of the environment.
        deterministic: Whether the most likely actions are taken instead of sampled ones.
    """
    env = make(world, list(measures.values()), memory, lanes=policies, parameters=parameters)
    played = collect(
        env,
        agent(env),
        episodes=policies * episodes,
        rng=np.random.default_rng(TEST_SEEDS),
        seed=TEST_SEEDS,
        deterministic=deterministic,
    )
    env.close()
    sums = np.array([episode.returns for episode in played]).reshape(episodes, policies, -1).swapaxes(0, 1)
    steps = np.array([len(episode) for episode in played]).reshape(episodes, policies).T
    return Policies(names=(REWARD, *measures), sums=sums, steps=steps)


@dataclass(frozen=True, kw_only=True)
class TradeOffCell(Job):
    """A training of Pareto Conditioned Networks, and a test of the policies in its coverage set.

    Attributes:
        setting: The objectives and the environment.
        seed: Seed of the training.
        steps: Environment steps of the training.
        episodes: Test episodes of each policy.
        training: `PCNSettings` that differ from their defaults; None: the paper's own protocol, which trains on one
            lane and tests the most likely actions.
        parameters: Further parameters of the environment, in addition to the setting's.
    """

    setting: Setting
    seed: int
    steps: int
    episodes: int
    training: Mapping[str, Any] | None = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the tests' arrays and return how long the training took."""
        started = time.process_time()
        model, sizes = self.train()
        seconds = time.process_time() - started
        arrays = {"sizes": sizes, **self.test(model, misaligned=False).arrays("policies")}
        if self.setting.world == "hiring":
            arrays |= self.test(model, misaligned=True).arrays("misread")
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        return {"seconds": seconds}

    @property
    def asked(self) -> tuple[str, ...]:
        """The notions among the objectives."""
        return tuple(name for name in self.setting.objectives if name != REWARD)

    @property
    def requested(self) -> list[int]:
        """The indices of the objectives in the vector reward, which holds the reward and the requested notions."""
        return list(range(REWARD not in self.setting.objectives, len(self.asked) + 1))

    def settings(self) -> PCNSettings:
        """Return the settings of the training."""
        if self.training is None:
            performance = 0 if REWARD in self.setting.objectives else None
            return farel_settings(objectives=len(self.requested), horizon=LONGEST, performance=performance)
        return PCNSettings(**self.training)

    def train(self) -> tuple[PCN, Floats]:
        """Return the trained networks, and rows of environment steps and mean size of the lanes' histories."""
        setting = self.setting
        notions = [notion(name, setting.world, setting.distance) for name in self.asked or ("SP",)]
        parameters = {**setting.parameters, **self.parameters}
        env = make(
            setting.world, notions, setting.memory, lanes=1 if self.training is None else LANES, parameters=parameters
        )
        model = PCN(env, settings=self.settings(), requested=self.requested, seed=self.seed)
        (history,) = env.unwrapped.histories
        sizes = []
        while model.num_timesteps < self.steps:
            model.iterate()
            sizes.append([model.num_timesteps, history.sizes.mean()])
        env.close()
        return model, np.array(sizes, float)

    def test(self, model: PCN, *, misaligned: bool) -> Policies:
        """Return the results of the policies in the coverage set, each with its achieved return as desired return."""
        setting = replace(self.setting, misaligned=misaligned)
        names = list(dict.fromkeys([*(self.asked or ("SP",)), *MEASURES[1:], PUBLISHED_IF]))
        measures = {name: notion(name, setting.world, setting.distance) for name in names}
        if setting.objectives == ("R", "SP"):
            own = [(name, distance) for distance in DISTANCES for name in ("IF", PUBLISHED_IF, "CSC")]
            measures |= {f"{name}, {distance}": notion(name, setting.world, distance) for name, distance in own}
        commands = chosen(model.commands())
        return tested(
            lambda env: Commanded(model, commands, lanes=len(commands)),
            policies=len(commands),
            episodes=self.episodes,
            world=setting.world,
            measures=measures,
            memory=setting.memory,
            parameters={**setting.parameters, **self.parameters},
            deterministic=self.training is None,
        )


def chosen(commands: Sequence[Command]) -> list[Command]:
    """Return commands that represent the range of all, in units of each objective's span."""
    wanted = np.array([command.desired_return for command in commands])
    span = np.ptp(wanted, axis=0)
    return [commands[k] for k in representative_subset(wanted / np.where(span > 0, span, 1), size=MOST_POLICIES)]


# Simple policies ------------------------------------------------------------------------------------------------------


def column_of(rules: Rules, name: str | None) -> int:
    """Return the index of a named entry in an observation; None: of the entry that contains the group.

    Raises:
        ValueError: There is no such entry.
    """
    names = rules.observed_features(rules.params)
    wanted = [*rules.spec.sensitive, *rules.spec.sensitive_features] if name is None else [name]
    for candidate in wanted:
        if candidate in names:
            return int(names.index(candidate))
    raise ValueError(
        f"group must be an entry of the observation ({', '.join(names) or 'none has a name'}), got {name!r}"
    )


class QualifiedMen(Correct):
    """Hires every qualified man and no woman."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._gender = column_of(self.rules, "gender")

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return the lanes with a qualified man."""
        found: Flags = super().chosen(observation) & (observation[:, self._gender] == 0)
        return found


class AllButNorthAmerica(Decider):
    """Accepts every payment except those from North America."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._continent = column_of(self.rules, "continent")
        self._code = self.spec.sensitive["continent"].index("NA") / (len(self.spec.sensitive["continent"]) - 1)

    def chosen(self, observation: NDArray[Any]) -> Flags:
        """Return the lanes with a payment from elsewhere."""
        found: Flags = ~np.isclose(observation[:, self._continent], self._code)
        return found


SCRIPTED: Mapping[World, Mapping[str, Callable[[Any], Stochastic]]] = {
    "hiring": {
        "always hires": Always,
        "never hires": Never,
        "random": Random,
        "correct decision": Correct,
        "hires from a goodness of 0.7": partial(Threshold, threshold=0.7),
        "hires qualified men, no women": QualifiedMen,
    },
    "fraud": {
        "always checks": Never,
        "never checks": Always,
        "random": Random,
        "correct decision": Correct,
        "checks North America": AllButNorthAmerica,
    },
}
"""Policies that need no training; some of them use hidden information."""


@dataclass(frozen=True, kw_only=True)
class ScriptedCell(Job):
    """A test of simple policies; in hiring, a second test uses the history of the published code.

    Attributes:
        world: The environment.
        episodes: Number of episodes per policy.
        parameters: Parameters of the environment.
    """

    world: World
    episodes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the test's arrays."""
        started = time.process_time()
        arrays = self.test(misaligned=False).arrays("policies") | {"sizes": np.zeros((0, 2))}
        if self.world == "hiring":
            arrays |= self.test(misaligned=True).arrays("misread")
        np.savez_compressed(part / "arrays.npz", **arrays)  # type: ignore[arg-type]
        return {"seconds": time.process_time() - started}

    def test(self, *, misaligned: bool) -> Policies:
        """Return the results of the simple policies."""
        agents = list(SCRIPTED[self.world].values())
        return measured(agents, self.world, episodes=self.episodes, parameters=self.parameters, misaligned=misaligned)


@dataclass(frozen=True, kw_only=True)
class SingleCell(Job):
    """A training for the reward only, by DQN or PPO, and a test of the policy.

    Attributes:
        world: The environment.
        algorithm: ``"dqn"`` or ``"ppo"``, with the defaults of `SingleTraining`.
        seed: Seed of the training.
        steps: Environment steps of the training.
        episodes: Number of test episodes.
        parameters: Parameters of the environment.
    """

    world: World
    algorithm: Algorithm
    seed: int
    steps: int
    episodes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the test's arrays and return how long the training took."""
        started = time.process_time()
        learned = LearnedPolicy(
            train_single(
                SingleTraining(
                    env_id=ENV_IDS[self.world],
                    parameters={**WITHOUT_DYNAMICS[self.world], **self.parameters},
                    algorithm=self.algorithm,
                    steps=self.steps,
                    seed=self.seed,
                )
            )
        )
        seconds = time.process_time() - started
        policies = measured([lambda env: learned], self.world, episodes=self.episodes, parameters=self.parameters)
        np.savez_compressed(part / "arrays.npz", **policies.arrays("policies"), sizes=np.zeros((0, 2)))  # type: ignore[arg-type]
        return {"seconds": seconds}


def measured(
    agents: Sequence[Callable[[Any], Stochastic]],
    world: World,
    *,
    episodes: int,
    parameters: Mapping[str, Any],
    misaligned: bool = False,
) -> Policies:
    """Return each agent's results in test episodes, by all measures over a window of 500."""
    setting = Setting(world=world, objectives=MEASURES, misaligned=misaligned)
    return Policies.joined(
        [
            tested(
                agent,
                policies=1,
                episodes=episodes,
                world=world,
                measures={name: notion(name, world, "HEOM") for name in (*MEASURES[1:], PUBLISHED_IF)},
                memory=SlidingWindow(500),
                parameters={**setting.parameters, **parameters},
            )
            for agent in agents
        ]
    )
