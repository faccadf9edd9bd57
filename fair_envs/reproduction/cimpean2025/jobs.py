"""The cells of studies on decisions: multi-objective trainings, trainings for the reward only, and simple policies."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import fair_envs  # noqa: F401 - registers the ids
from fair_envs.baselines.pcn.pcn import PCN, Command, Commanded, PCNSettings, farel_settings
from fair_envs.baselines.pcn.rollouts import Random
from fair_envs.baselines.pcn.single import LearnedPolicy, SingleTraining, farel_dqn, train_single
from fair_envs.baselines.training import RewardCurve, Training, train
from fair_envs.envs.fraud import params as fraud
from fair_envs.envs.fraud.policies import AboveAmount
from fair_envs.envs.hiring import params as hiring
from fair_envs.envs.hiring.policies import Graduates
from fair_envs.evaluation import Stochastic
from fair_envs.evaluation.deciders import Always, Correct, Decider, Never, Threshold, column_of
from fair_envs.experiments.jobs import Job, write_arrays
from fair_envs.metrics import GroupNotion
from fair_envs.metrics.history import Discounted, Memory, SlidingWindow
from fair_envs.metrics.individual import HEOM, HMOM, BrayCurtis, Consistency, IndividualFairness
from fair_envs.reproduction.cimpean2025.plays import (
    CELLS,
    GROUP_NOTIONS,
    Followed,
    by_yardsticks,
    counted,
    filled_after,
    followed,
    played,
    realigned,
    sums_of_tests,
)
from fair_envs.reproduction.cimpean2025.published import DISTANCES, ENV_IDS, MEASURES, Distance, Setting, World, tables
from fair_envs.reproduction.cimpean2025.representatives import representative_subset
from fair_envs.reproduction.cimpean2025.results import REWARD
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.seeds import TEST_EACH, first_test_seed
from fair_envs.wrappers import FairnessObjectives

PUBLISHED_IF, PUBLISHED_CSC = "IF eq. 8", "CSC published"
INDIVIDUAL = ("IF", PUBLISHED_IF, "CSC", PUBLISHED_CSC)  # measures that depend on the distance
LANES = 10  # parallel episodes of an iteration
MOST_POLICIES = 16  # policies of a training that are tested; they represent the range of results
LONGEST = 1000  # steps of an episode, in both environments
POINTS = 20  # of a curve
LONG_LANES = 64  # parallel episodes of the tests with many decisions
LONG_SEEDS = TEST_EACH // 2  # their seeds are this much further than those of the test episodes
DEAL_SEED = 0  # of the memberships that are dealt for noise floors
FIRST_SEED = 10  # of the trainings; earlier runs and trials, by which settings and margins were chosen, had 0 to 2
WITHOUT_DYNAMICS: Mapping[World, Mapping[str, Any]] = {  # no one leaves or loses patience, as in the paper's runs
    "hiring": {"leaving": False},
    "fraud": {"post_transaction_update": False, "initial_satisfaction": 1.0},
}
MISREAD: Mapping[str, Any] = {"alignment": "next_applicant"}  # pairs decisions with the next applicant
AS_PUBLISHED: Mapping[World, Mapping[str, Any]] = {
    "hiring": hiring.PROFILES["authors"],
    "fraud": fraud.PROFILES["authors"],
}
"""The published code's environments."""
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
    if name == PUBLISHED_CSC:
        return Consistency(distance=PUBLISHED[distance])
    return GroupNotion(name=name, groups=GROUPS[world])


def published(arm: "Key") -> Mapping[str, Any]:
    """Return the parameters of the published environment if an arm is as printed; otherwise none."""
    return AS_PUBLISHED[arm.world] if arm.printed else {}


def make(world: World, notions: Sequence[Any], memory: Memory, *, lanes: int, parameters: Mapping[str, Any]) -> Any:
    """Return the environment with a vector reward: the reward, and the negative gap of each notion."""
    env = gym.make_vec(ENV_IDS[world], num_envs=lanes, **{**WITHOUT_DYNAMICS[world], **parameters})
    return FairnessObjectives(env, notions, memory)


Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class PolicyTests:
    """Tests of policies: in episodes with a history that continues across them, and over many decisions.

    Attributes:
        agent: Function from an environment and the number of its lanes to a policy, which decides in lane k like policy
            k modulo the number of policies.
        policies: Number of policies.
        world: The environment.
        asked: The notions that the policies follow, which come first in the vector reward.
        measures: Notions by name, those that are asked first.
        memory: The decisions that the history keeps.
        parameters: Parameters of the environment.
        seed: Training seed: each has test episodes of its own.
        deterministic: Whether the most likely actions are taken instead of sampled ones.
    """

    agent: Callable[[Any, int], Stochastic]
    policies: int
    world: World
    asked: Sequence[str]
    measures: Mapping[str, Any]
    memory: Memory
    parameters: Mapping[str, Any]
    seed: int
    deterministic: bool = False

    def arrays(self, *, episodes: int, decisions: int) -> Arrays:
        """Return all results of two tests, whose episodes and histories have nothing in common.

        Args:
            episodes: Number of test episodes of each policy in both tests together, by all measures.
            decisions: Number of decisions of each policy in each half of the test over many decisions; 0: none.
        """
        tests = [self._episodes(max(1, episodes // 2), further) for further in (0, TEST_EACH // 4)]
        found: Arrays = {name: np.stack([test[name] for test in tests], axis=1) for name in tests[0]}
        found |= {"names": np.array([REWARD, *self.measures]), "later": np.array(self._later)}
        if decisions:
            found["counts"], found["other_counts"] = self._many(decisions)
        return found

    @property
    def _later(self) -> bool:
        """Whether the environment pairs each decision with the next person."""
        return bool(self.parameters.get("alignment") == MISREAD["alignment"])

    def _episodes(self, episodes: int, further: int) -> Arrays:
        """Return the sums over test episodes, and the gaps of group notions with what they are under chance."""
        env = make(
            self.world, list(self.measures.values()), self.memory, lanes=self.policies, parameters=self.parameters
        )
        full = filled_after(self.memory)
        play = played(env, self.agent(env, self.policies), episodes=episodes, fill=full, **self._how(further))
        env.close()
        sums, steps = sums_of_tests(play)
        rng = np.random.default_rng(DEAL_SEED)
        lanes = play.lanes()
        gaps = [followed(*lane, self.memory, rng) for lane in lanes]
        found: Arrays = {"sums": sums, "steps": steps, "episodes": np.full(self.policies, episodes)}
        found |= {name: np.stack([getattr(own, name) for own in gaps]) for name in ("noise", "limit")}
        found["yardsticks"] = np.stack([by_yardsticks(*lane, rng) for lane in lanes])
        found["kinds"] = np.stack([np.bincount(cell[tested], minlength=CELLS) for cell, tested in lanes])
        if self.world == "hiring":
            moved = [(realigned(cell, later=self._later), tested[1:]) for cell, tested in lanes]
            others = [followed(*lane, self.memory, rng) for lane in moved]
            found |= {f"other_{name}": np.stack([getattr(own, name) for own in others]) for name in Followed._fields}
        return found

    def _many(self, decisions: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the numbers of decisions of each kind, and in the other alignment, shape (policies, 2, kinds)."""
        lanes = self.policies * max(1, LONG_LANES // self.policies)
        notions = [self.measures[name] for name in self.asked] or [notion("SP", self.world, "HEOM")]
        env = make(self.world, notions, self.memory, lanes=lanes, parameters=self.parameters)
        how = {"policies": self.policies, "decisions": decisions, "later": self._later, **self._how(LONG_SEEDS)}
        found = counted(env, self.agent(env, lanes), **how)
        env.close()
        return found

    def _how(self, further: int) -> dict[str, Any]:
        seed = first_test_seed(self.seed) + further
        return {"groups": GROUPS[self.world], "seed": seed, "deterministic": self.deterministic}


# Trainings for trade-offs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TradeOffCell(Job):
    """A training of Pareto Conditioned Networks, and a test of the policies in its coverage set.

    Attributes:
        setting: The objectives and the environment; if it is as printed, the paper's own protocol trains on one lane
            and tests the most likely actions.
        seed: Seed of the training.
        steps: Environment steps of the training.
        episodes: Test episodes of each policy.
        training: `PCNSettings` that differ from their defaults, if the setting is not as printed.
        parameters: Further parameters of the environment, in addition to the setting's.
        decisions: Decisions of each policy in each half of the tests over many decisions; 0: none.
    """

    setting: Setting
    seed: int
    steps: int
    episodes: int
    training: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    decisions: int = 0

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the tests' arrays and return how long the training and the tests took."""
        started = time.process_time()
        model, learning = self.train()
        every = model.commands()
        commands = chosen(every)
        arrays = self.tests(model, commands).arrays(episodes=self.episodes, decisions=self.decisions)
        achieved = np.array([episode.returns for episode in model.coverage_set()])
        arrays |= {"wanted": wanted_of(commands), "achieved": achieved, "learning": learning}
        arrays["objectives"] = np.array([REWARD, *self.computed])
        write_arrays(part, arrays)
        return {"seconds": time.process_time() - started}

    @property
    def asked(self) -> tuple[str, ...]:
        """The notions among the objectives."""
        printed = {"IF": PUBLISHED_IF, "CSC": PUBLISHED_CSC} if self.setting.printed else {}
        return tuple(printed.get(name, name) for name in self.setting.objectives if name != REWARD)

    @property
    def computed(self) -> tuple[str, ...]:
        """The notions of the vector reward: those that are asked for first, and as printed all others, too."""
        others = (*GROUP_NOTIONS, PUBLISHED_IF, PUBLISHED_CSC) if self.setting.printed else ()
        return tuple(dict.fromkeys([*(self.asked or ("SP",)), *others]))

    @property
    def world(self) -> dict[str, Any]:
        """The parameters of the environment, in training and tests."""
        return {**published(self.setting), **self.setting.parameters, **self.parameters}

    @property
    def requested(self) -> list[int]:
        """The indices of the objectives in the vector reward."""
        return list(range(REWARD not in self.setting.objectives, len(self.asked) + 1))

    def settings(self) -> PCNSettings:
        """Return the settings of the training."""
        if self.setting.printed:
            performance = 0 if REWARD in self.setting.objectives else None
            return farel_settings(
                objectives=len(self.requested), horizon=LONGEST, performance=performance, published_code=True
            )
        return PCNSettings(**self.training)

    def train(self) -> tuple[PCN, Floats]:
        """Return the trained networks, and the learning curve.

        See `thinned` for its rows.
        """
        setting = self.setting
        notions = [notion(name, setting.world, setting.distance) for name in self.computed]
        lanes = 1 if setting.printed else LANES
        env = make(setting.world, notions, setting.memory, lanes=lanes, parameters=self.world)
        model = PCN(env, settings=self.settings(), requested=self.requested, seed=self.seed)
        (history,) = env.unwrapped.histories
        rows = []
        while model.num_timesteps < self.steps:
            episodes = model.iterate()
            reward, steps = sum(e.returns[0] for e in episodes), sum(map(len, episodes))
            rows.append([model.num_timesteps, reward, steps, history.sizes.mean(), len(episodes)])
        env.close()
        return model, thinned(np.array(rows, float), steps=self.steps)

    def tests(self, model: PCN, commands: Sequence[Command]) -> PolicyTests:
        """Return the tests of the policies, each with its achieved return as desired return."""
        setting = self.setting
        names = list(dict.fromkeys([*self.computed, *MEASURES[1:], PUBLISHED_IF, PUBLISHED_CSC]))
        measures = {name: notion(name, setting.world, setting.distance) for name in names}
        if setting.objectives == ("R", "SP"):
            own = [(name, distance) for distance in DISTANCES for name in INDIVIDUAL]
            measures |= {f"{name}, {distance}": notion(name, setting.world, distance) for name, distance in own}
        return PolicyTests(
            agent=lambda env, lanes: Commanded(model, commands, lanes=lanes),
            policies=len(commands),
            world=setting.world,
            asked=self.asked,
            measures=measures,
            memory=setting.memory,
            parameters=self.world,
            seed=self.seed,
            deterministic=setting.printed,
        )


def thinned(rows: Floats, *, steps: int) -> Floats:
    """Return a learning curve at `POINTS` equally spaced numbers of steps, the same for all seeds.

    Args:
        rows: For each iteration: environment steps so far, sum of the rewards, steps, mean size of the histories, and
            number of episodes.
        steps: The planned number of steps.

    Returns:
        Rows of environment steps, the reward per step, the size of the history and the reward per episode in that part
        of the training.
    """
    ends, rewards, lengths, sizes, episodes = rows.T
    part = np.ceil(POINTS * ends / ends[-1]).astype(int) - 1
    parts = [part == k for k in np.unique(part)]
    places = steps * np.arange(1, POINTS + 1) / POINTS
    columns = (
        [rewards[own].sum() / lengths[own].sum() for own in parts],
        [sizes[own].mean() for own in parts],
        [rewards[own].sum() / episodes[own].sum() for own in parts],
    )
    middles = [ends[own].mean() for own in parts]
    return np.stack([places, *(np.interp(places, middles, column) for column in columns)], axis=1)


def wanted_of(commands: Sequence[Command]) -> Floats:
    """Return the desired returns of commands, which training episodes have achieved, shape (commands, objectives)."""
    return np.array([command.desired_return for command in commands])


def chosen(commands: Sequence[Command]) -> list[Command]:
    """Return commands that represent the range of all, in units of each objective's span."""
    wanted = wanted_of(commands)
    span = np.ptp(wanted, axis=0)
    return [commands[k] for k in representative_subset(wanted / np.where(span > 0, span, 1), size=MOST_POLICIES)]


# Other policies -------------------------------------------------------------------------------------------------------


def other_tests(
    agent: Callable[[Any], Stochastic], world: World, *, seed: int, policies: int = 1, **given: Any
) -> PolicyTests:
    """Return the tests of policies that follow no notion, by all measures over a window of 500."""
    return PolicyTests(
        agent=lambda env, lanes: agent(env),
        policies=policies,
        world=world,
        asked=(),
        measures={name: notion(name, world, "HEOM") for name in (*MEASURES[1:], PUBLISHED_IF, PUBLISHED_CSC)},
        memory=SlidingWindow(500),
        parameters={**Setting(world=world, objectives=MEASURES).parameters, **given},
        seed=seed,
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


RANDOM, IDENTICAL = "random", "identical random policies"
SCRIPTED: Mapping[World, Mapping[str, Callable[[Any], Stochastic]]] = {
    "hiring": {
        "always hires": Always,
        "never hires": Never,
        RANDOM: Random,
        "correct decision": Correct,
        "hires from a goodness of 0.7": partial(Threshold, threshold=0.7),
        "hires with a degree": Graduates,
        "hires with an extra degree": partial(Graduates, extra=True),
        "hires qualified men, no women": QualifiedMen,
    },
    "fraud": {
        "always checks": Never,
        "never checks": Always,
        RANDOM: Random,
        "correct decision": Correct,
        "checks above an amount of 1000": partial(AboveAmount, amount=1000.0),
        "checks North America": AllButNorthAmerica,
    },
}
"""Policies that need no training; some of them use hidden information."""

UNPLANNED = ("hires with a degree", "hires with an extra degree")
"""Those that were added when results were known. They do not count for the span."""

CONSTANT: Mapping[World, tuple[str, ...]] = {
    "hiring": ("always hires", "never hires"),
    "fraud": ("always checks", "never checks"),
}
"""The policies that always decide in the same way."""


class Simple(NamedTuple):
    """The arm of a policy without training, in our environment or in the published one."""

    world: World
    name: str
    printed: bool = False

    def __str__(self) -> str:
        """Return its name in the table of seeds."""
        return f"{self.world}, {self.name}{', as printed' * self.printed}"


@dataclass(frozen=True, kw_only=True)
class SimpleCell(Job):
    """A test of a policy that needs no training, or of several identical random policies.

    Attributes:
        arm: The policy: one of `SCRIPTED`, or `IDENTICAL`.
        seed: Selects the test episodes.
        episodes: Number of test episodes of each policy.
        parameters: Parameters of the environment.
        decisions: Decisions of each policy in each half of the tests over many decisions; 0: none.
    """

    arm: Simple
    seed: int
    episodes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    decisions: int = 0

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the tests' arrays."""
        started = time.process_time()
        several, world = self.arm.name == IDENTICAL, self.arm.world
        agent = Random if several else SCRIPTED[world][self.arm.name]
        given = {**published(self.arm), **self.parameters}
        tests = other_tests(agent, world, seed=self.seed, policies=MOST_POLICIES if several else 1, **given)
        arrays = tests.arrays(episodes=self.episodes, decisions=self.decisions)
        write_arrays(part, arrays)
        return {"seconds": time.process_time() - started}


class Learner(NamedTuple):
    """The arm of a training for the reward only."""

    world: World
    name: str

    @property
    def printed(self) -> bool:
        """Whether it learns and is tested in the published environment."""
        return self.name == AS_PRINTED

    def __str__(self) -> str:
        """Return its name in the table of seeds."""
        return f"{self.world}, {self.name}"


PPO: Mapping[str, Any] = {
    "algorithm": "ppo",
    "sharing": "all",
    "lanes": 32,
    "n_steps": 256,
    "batch_size": 4096,
    "n_epochs": 8,
    "learning_rate": 3e-3,
    "net_arch": (64, 64),
    "reward_scale": 1.0,
    "ent_coef": 0.01,
}
PER_STEP: Mapping[str, Any] = {"gamma": 0.0, "gae_lambda": 0.0, "ent_coef": 0.1}  # without credit for later rewards
PER_EPISODE: Mapping[str, Any] = {"gamma": 0.999, "gae_lambda": 0.98}  # closer to the sum over an episode
AS_PRINTED = "DQN, as printed"
LEARNERS: Mapping[str, Callable[..., SingleTraining | Training]] = {
    AS_PRINTED: partial(farel_dqn, horizon=LONGEST, target_network=False),
    "DQN": partial(SingleTraining, algorithm="dqn"),
    "SB3 PPO": partial(SingleTraining, algorithm="ppo"),
    "PPO": partial(Training, **PPO),
    "PPO, credit per step": partial(Training, **{**PPO, **PER_STEP}),
    "PPO, credit per episode": partial(Training, **{**PPO, **PER_EPISODE}),
}
"""Settings of the trainings for the reward only, from their other fields; the last ones are this package's."""

LONGER = ("PPO", "PPO, credit per step", "PPO, credit per episode")
"""Those with the longer budget."""


@dataclass(frozen=True, kw_only=True)
class LearnerCell(Job):
    """A training for the reward only, and a test of the policy's most likely actions.

    Attributes:
        arm: The environment, and the name of one of `LEARNERS`.
        seed: Seed of the training.
        steps: Environment steps of the training.
        episodes: Number of test episodes.
        parameters: Parameters of the environment.
    """

    arm: Learner
    seed: int
    steps: int
    episodes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the test's arrays and return how long the training and the test took."""
        started = time.process_time()
        world, curve = self.arm.world, RewardCurve(self.steps, parts=POINTS)
        given = {**published(self.arm), **self.parameters}
        own = {"parameters": {**WITHOUT_DYNAMICS[world], **given}, "steps": self.steps, "seed": self.seed}
        settings = LEARNERS[self.arm.name](env_id=ENV_IDS[world], **own)
        if isinstance(settings, SingleTraining):
            learned = LearnedPolicy(train_single(settings, callback=curve))
        else:
            learned = LearnedPolicy(train(settings, callback=curve))
        tests = replace(other_tests(lambda env: learned, world, seed=self.seed, **given), deterministic=True)
        places, unknown = self.steps * np.arange(1, POINTS + 1) / POINTS, np.full(POINTS, np.nan)
        learning = np.stack([places, curve.rewards, unknown, unknown], axis=1)  # see `thinned`
        arrays = {**tests.arrays(episodes=self.episodes, decisions=0), "learning": learning}
        write_arrays(part, arrays)
        return {"seconds": time.process_time() - started}


# The study ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of each arm.
        steps: Environment steps of each training.
        steps_discounted: The same for discounted histories, some of which compare each person with the whole past.
        steps_printed: The same for the methods as printed.
        learner_steps: The same for the learners with the longer budget.
        episodes: Number of test episodes of each policy of a setting, and of identical random policies.
        reference_episodes: The same for learners of the reward and other policies without training.
        decisions: Decisions of each policy in each half of the tests over many decisions, which are made where no
            individual notion is asked for.
        tables: Numbers of the tables whose settings are run with our repair.
        printed: Numbers of the tables whose settings are run with the method as printed.
        training: Settings of the networks that differ from their defaults, for our repair.
        parameters: Other parameters of the environments.
    """

    seeds: int
    steps: int
    steps_discounted: int
    steps_printed: int
    learner_steps: int
    episodes: int
    reference_episodes: int
    decisions: int
    tables: Sequence[int]
    printed: Sequence[int]
    training: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)


LEARNING: Mapping[str, Any] = {  # better in short trainings than the defaults and the paper's settings
    "updates": 200,
    "learning_rate": 3e-3,
    "first_episodes": 20,
    "buffer_size": 100,
    "best": 20,
}
ALL_TABLES = tuple(range(1, 22))
GATE = (5, 17)
"""The tables of the same settings in both environments, which show whether the environments are learned."""
FIRST_STAGE = (*range(1, 13), 17)
"""All tables of hiring, and the one of fraud detection that shows whether it is learned; see the plan of the study."""
SCALES: dict[str, Scale] = {
    "smoke": Scale(
        seeds=2,
        steps=2_000,
        steps_discounted=2_000,
        steps_printed=2_000,
        learner_steps=8_192,
        episodes=2,
        reference_episodes=4,
        decisions=500,
        tables=(4, 5, 17),
        printed=(),
        training=LEARNING,
        parameters={"horizon": 100},
    ),
    "small": Scale(
        seeds=5,
        steps=200_000,
        steps_discounted=60_000,
        steps_printed=500_000,
        learner_steps=1_000_000,
        episodes=20,
        reference_episodes=100,
        decisions=100_000,
        tables=FIRST_STAGE,
        printed=(4, 5, 17),
        training=LEARNING,
    ),
    "full": Scale(
        seeds=10,
        steps=500_000,
        steps_discounted=500_000,
        steps_printed=500_000,
        learner_steps=2_000_000,
        episodes=20,
        reference_episodes=100,
        decisions=100_000,
        tables=ALL_TABLES,
        printed=ALL_TABLES,
        training=LEARNING,
    ),
}

SCALES["gate"] = replace(SCALES["small"], tables=GATE, printed=GATE)
Key = Setting | Learner | Simple


def settings_of(scale: Scale) -> list[Setting]:
    """Return the settings of the trade-offs, each once: those of our repair first."""
    repaired = [own for number in scale.tables for own in tables()[number].values()]
    printed = [own.as_printed for number in scale.printed for own in tables()[number].values()]
    return list(dict.fromkeys([*repaired, *printed]))


def worlds_of(scale: Scale) -> dict[World, bool]:
    """Return the environments of the tables that are run, and whether some are run as printed."""
    settings = settings_of(scale)
    return {own.world: any(s.printed for s in settings if s.world == own.world) for own in settings}


def cells(scale: Scale) -> dict[Key, list[Job]]:
    """Return the study's cells: policies without training, learners of the reward, and settings of trade-offs."""
    found: dict[Key, list[Job]] = {}
    seeds = range(FIRST_SEED, FIRST_SEED + scale.seeds)
    own: dict[str, Any] = {"parameters": dict(scale.parameters)}
    for world, printed in worlds_of(scale).items():
        for name, as_printed in product((*SCRIPTED[world], IDENTICAL), (False, True) if printed else (False,)):
            simple = Simple(world, name, as_printed)
            size: dict[str, Any] = {"episodes": scale.reference_episodes}
            if name == IDENTICAL:
                size = {"episodes": scale.episodes, "decisions": scale.decisions}
            found[simple] = [SimpleCell(arm=simple, seed=seed, **size, **own) for seed in seeds]
        for name in LEARNERS if printed else [name for name in LEARNERS if name != AS_PRINTED]:
            steps = scale.learner_steps if name in LONGER else scale.steps
            steps = scale.steps_printed if name == AS_PRINTED else steps
            learner = Learner(world, name)
            size = {"steps": steps, "episodes": scale.reference_episodes}
            found[learner] = [LearnerCell(arm=learner, seed=seed, **size, **own) for seed in seeds]
    for setting in settings_of(scale):
        found[setting] = [trade_off(scale, setting, seed) for seed in seeds]
    return found


def trade_off(scale: Scale, setting: Setting, seed: int) -> TradeOffCell:
    """Return the training of a setting with a seed."""
    return TradeOffCell(
        setting=setting,
        seed=seed,
        steps=steps_of(scale, setting),
        episodes=scale.episodes,
        training={} if setting.printed else dict(scale.training),
        parameters=dict(scale.parameters),
        decisions=scale.decisions if is_long(setting) else 0,
    )


def steps_of(scale: Scale, setting: Setting) -> int:
    """Return the environment steps of a setting's training."""
    if setting.printed:
        return scale.steps_printed
    return scale.steps_discounted if isinstance(setting.memory, Discounted) else scale.steps


def is_long(setting: Setting) -> bool:
    """Return whether the policies are also tested over many decisions: with several objectives, none individual."""
    return len(setting.objectives) > 1 and not {"IF", "CSC"} & {*setting.objectives}
