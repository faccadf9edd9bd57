"""The cells of the study on team fairness: trainings of teams with their tests, and tests of scripted teams."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.runs import serialized
from fair_envs.baselines.team.curriculum import Curriculum, FollowCurriculum
from fair_envs.baselines.team.ddpg import DDPG
from fair_envs.baselines.team.evaluation import Plays, penalty_of, play_levels
from fair_envs.baselines.team.play import TeamPlay, evaluate_speeds
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.team.training import Preset, TeamRows, TeamTraining, team_settings, train_team
from fair_envs.baselines.training import isolated_random_state
from fair_envs.core import Rules
from fair_envs.envs.pursuit.policies import Greedy, Planner, ShuffledRoles, actions_of
from fair_envs.evaluation import Policy, RandomPolicy, as_policy
from fair_envs.experiments.jobs import Job, read_cell, write_arrays
from fair_envs.experiments.seeds import curve_numbers
from fair_envs.metrics import team_fairness
from fair_envs.metrics.inference import noise_floor
from fair_envs.registration import make_rules
from fair_envs.reproduction.grupen2022.roles import Watched, equivariance_gap, role_numbers
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.seeds import first_test_seed

Label = str

DEALT = "dealt: "  # prefix of tests in which roles are randomly reassigned in each episode
MIDDLE = "middle of the level"  # policies that were stored when the speed reached a level
DISTANCES = "distances"
COLUMNS = ("captured", "captors", "returns", "steps")  # stored fields of the played episodes
PLANNED = 50  # largest number of test episodes of the planner at a speed
PERMUTATIONS = 20_000  # relabellings of a test: the smallest p-value times 200 tests is 0.01
PURSUERS = 3
POINTS = 40  # largest number of points of a learning curve
FIRST_SEED = 40  # of the trainings; earlier runs of the study used 0 to 4 and 20 to 22, and their pilots 100 and 101

# Arms -----------------------------------------------------------------------------------------------------------------

WEIGHTS = (0.1, 0.5, 0.9, 1.0)  # lambda; the paper's text names these and 0
SLOWER = "mutual, to slower speeds"
BY_NUMBER = ", by number"  # ending of the names of arms that observe team-mates by number
LARGER = "Fair-E, larger batches"  # an update learns from the same number of transitions as one of separate networks
INDEXED: Mapping[str, Any] = {"parameters": {"teammates": "index"}}
METHODS: Mapping[Label, Mapping[str, Any]] = {
    "mutual": {"algorithm": "ddpg"},
    "individual": {"algorithm": "ddpg", "parameters": {"reward": "individual"}},
    "Fair-E": {"algorithm": "fair-e"},
    "Fair-E, sets": {"algorithm": "fair-e", "network": "sets"},
    "Fair-E" + BY_NUMBER: {"algorithm": "fair-e", **INDEXED},
    LARGER: {"algorithm": "fair-e"},
    **{f"Fair-ER {weight:g}": {"algorithm": "fair-er", "fairness_weight": weight} for weight in WEIGHTS},
    **{
        f"Fair-ER {weight:g}{BY_NUMBER}": {"algorithm": "fair-er", "fairness_weight": weight, **INDEXED}
        for weight in WEIGHTS
    },
    "Fair-ER normalised": {"algorithm": "fair-er", "form": "normalised"},
    "Fair-ER automatic": {"algorithm": "fair-er", "form": "automatic"},
    SLOWER: {"algorithm": "ddpg"},
}
"""The trained methods; "mutual" is the paper's "no equivariance", and equals Fair-ER with a weight of 0.

Fair-E observes team-mates in cyclic order, as a set, or by number. Fair-ER compares the networks of the pursuers on the
same observation, so the order matters there, too. For mutual and individual reward it does not: each pursuer has its
own first layer.
"""

MAIN = ("mutual", "Fair-E")
"""The methods with the most seeds, which most claims compare."""

TEAMS: Mapping[Label, Callable[[Rules, int], Policy]] = {
    "random": lambda rules, seed: RandomPolicy(rules),
    "straight": lambda rules, seed: straight(rules),
    "greedy": lambda rules, seed: Greedy(),
    "planner": lambda rules, seed: Planner(seed=seed),
}
"""The teams without training, by their names in the study."""

TENTHS = (1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)


def straight(rules: Rules) -> Policy:
    """Return a constant team: all pursuers always move in the same direction."""
    return as_policy(lambda _, uniforms: actions_of(rules, np.broadcast_to([1.0, 0.0], (*uniforms.shape, 2))))


# Scales ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of the methods in `MAIN`.
        fewer: Number of training seeds of all other methods, and of sets of test episodes of teams without training; at
            most ``seeds``.
        steps: Agent steps of a training.
        speeds: Levels of the curriculum, at which policies are stored and tested, the fastest first.
        methods: The methods that are trained.
        slower: The levels of the arm `SLOWER`, if it is among the methods.
        slower_steps: Agent steps of its trainings.
        episodes: Number of test episodes at each speed.
        preset: The settings of the trainings, see `fair_envs.baselines.team.training.PRESETS`.
        settings: Other settings of the trainings.
        parameters: Parameters of the environment.
    """

    seeds: int
    fewer: int
    steps: int
    speeds: Sequence[float]
    methods: Sequence[Label] = tuple(METHODS)
    slower: Sequence[float] = ()
    slower_steps: int = 0
    episodes: int
    preset: Preset = "small"
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def seeds_of(self, name: Label) -> int:
        """Return the number of seeds of an arm."""
        return self.seeds if name in MAIN else min(self.seeds, self.fewer)

    def speeds_of(self, name: Label) -> tuple[float, ...]:
        """Return the speeds at which a team is tested; teams without training are tested at all."""
        if name in TEAMS:
            slower = self.slower if SLOWER in self.methods else ()
            return tuple(sorted({*self.speeds, *slower}, reverse=True))
        return tuple(self.slower if name == SLOWER else self.speeds)


SCALES: dict[str, Scale] = {
    "smoke": Scale(
        seeds=2,
        fewer=2,
        steps=12_000,
        speeds=(1.2, 1.0, 0.8),
        slower=(1.2, 0.5),
        slower_steps=12_000,
        episodes=20,
        settings={"learning_starts": 6_000, "buffer_size": 6_000, "batch_size": 32},
    ),
    "small": Scale(
        seeds=20,
        fewer=10,
        steps=3_600_000,
        speeds=TENTHS[:6],
        methods=(
            *MAIN,
            "individual",
            "Fair-E" + BY_NUMBER,
            LARGER,
            "Fair-ER 0.1",
            "Fair-ER 0.5",
            "Fair-ER 0.5" + BY_NUMBER,
            "Fair-ER 1",
            "Fair-ER automatic",
            SLOWER,
        ),
        slower=TENTHS[:8],
        slower_steps=5_040_000,
        episodes=500,
    ),
    "full": Scale(
        seeds=5,
        fewer=5,
        steps=187_500_000,  # 125,000 episodes of up to 500 steps of three pursuers
        speeds=TENTHS,
        methods=tuple(name for name in METHODS if name != SLOWER),  # all go to slow speeds
        episodes=500,
        preset="paper",
        settings={"episodes": 0},  # the curriculum takes the whole training, as the text says
        parameters={"observation": "relative", "teammates": "cyclic", "include_speed": True},
    ),
}


def training_of(scale: Scale, name: Label, seed: int) -> TeamTraining:
    """Return a training; weights of the penalty are in the paper's units, in which rewards are not scaled.

    The weights of normalised values do not depend on the scale of rewards and stay as they are.
    """
    given, speeds = METHODS.get(name, {}), scale.speeds_of(name)
    settings = {
        "steps": scale.slower_steps if name == SLOWER else scale.steps,
        "speeds": (speeds[0], speeds[-1]),
        "levels": speeds,
        "seed": seed,
        **scale.settings,
        **given,
    }
    settings["parameters"] = {**scale.parameters, **given.get("parameters", {})}
    training = team_settings("FairPursuit-v0", preset=scale.preset, **settings)
    if name == LARGER:
        training = replace(training, batch_size=training.batch_size * PURSUERS)
    if training.form != "plain":
        return training
    return replace(training, fairness_weight=training.fairness_weight * training.reward_scale)


def cells(scale: Scale) -> dict[Label, list[Job]]:
    """Return the study's cells: each arm with its seeds."""
    found: dict[Label, list[Job]] = {}
    world = training_of(scale, "mutual", 0).parameters

    def seeds(name: Label) -> range:
        return range(FIRST_SEED, FIRST_SEED + scale.seeds_of(name))

    for name in TEAMS:
        episodes = min(scale.episodes, PLANNED) if name == "planner" else scale.episodes
        own: dict[str, Any] = {"speeds": scale.speeds_of(name), "episodes": episodes, "parameters": world}
        found[name] = [ScriptedTeamCell(name=name, seed=seed, **own) for seed in seeds(name)]
    for name in scale.methods:
        trainings = [training_of(scale, name, seed) for seed in seeds(name)]
        own = {"speeds": scale.speeds_of(name), "episodes": scale.episodes, "dealt": name == "mutual"}
        found[name] = [TeamCell(training=training, **own) for training in trainings]
    return found


# Cells ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ScriptedTeamCell(Job):
    """A test of a team without training.

    Attributes:
        name: One of `TEAMS`.
        seed: Selects the test episodes; a training with this seed uses the same ones.
        speeds: Speeds of the pursuers.
        episodes: Number of episodes at each speed.
        parameters: Parameters of the environment.
    """

    name: str
    seed: int
    speeds: Sequence[float]
    episodes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the played episodes."""
        started = time.process_time()
        rules = make_rules("FairPursuit-v0", **self.parameters)
        first = first_test_seed(self.seed)
        team = Watched(TEAMS[self.name](rules, self.seed))
        found = evaluate_speeds(team, rules, speeds=self.speeds, episodes=self.episodes, seed=first)
        arrays: dict[str, Any] = arrays_of({"last": found})
        distances = np.split(team.distances, len(self.speeds), axis=1)
        arrays |= {_way("last", speed): own for speed, own in zip(self.speeds, distances, strict=True)}
        write_arrays(part, arrays)
        return {"seconds": time.process_time() - started, "seed": first}


@dataclass(frozen=True, kw_only=True)
class TeamCell(Job):
    """A training and its tests: at each speed the policy stored at that speed, and the last policy.

    Attributes:
        training: The settings of the training.
        speeds: Speeds of the pursuers in the tests.
        episodes: Number of episodes at each speed.
        dealt: Whether it is also tested with roles that are randomly reassigned in each episode.
    """

    training: TeamTraining
    speeds: Sequence[float]
    episodes: int
    dealt: bool = False

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return self.training.seed

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the policies, the played episodes and the learning curve, and return how long the training took."""
        started, rows = time.process_time(), PenaltyRows(every=self.training.row)
        rules = make_rules(self.training.env_id, **self.training.parameters)
        course = cast(Curriculum, self.training.course())
        follow = ComparedLevels(course, levels=self.training.levels, rules=rules)
        with warnings.catch_warnings():  # Fair-E without symmetry is an arm
            warnings.filterwarnings("ignore", message="Fair-E's team has no symmetry")
            model = train_team(self.training, follow=follow, rows=rows)
        seconds = time.process_time() - started
        (part / "levels.pt").write_bytes(serialized(follow.states))
        first = first_test_seed(self.training.seed)
        settings: dict[str, Any] = {"speeds": self.speeds, "episodes": self.episodes, "seed": first}
        with isolated_random_state(1):
            watched: list[Watched] = []

            def made(team: Policy) -> Policy:
                watched.append(Watched(team))
                return watched[-1]

            plays = dict(play_levels(model, follow.states, rules, **settings, made=made, kept=["of the speed"]))
            plays |= play_levels(model, follow.states, rules, **settings, kept=["last"])
            plays[MIDDLE] = play_levels(model, follow.middles, rules, **settings, kept=["of the speed"])["of the speed"]
            if self.dealt:
                dealt = play_levels(model, follow.states, rules, **settings, made=ShuffledRoles)
                plays |= {DEALT + kept: of for kept, of in dealt.items()}
        arrays = {
            **arrays_of(plays),
            "learning": np.array(rows.rows),
            "penalised": np.array(rows.penalised).reshape(-1, 1 + len(PULLS)),
        }
        arrays["penalties"] = np.array(list(follow.penalties.items())).reshape(-1, 2)
        arrays["gaps"] = np.array(list(follow.gaps.items())).reshape(-1, 2)
        speeds = plays["of the speed"]
        arrays |= {_way("of the speed", speed): own.distances for speed, own in zip(speeds, watched, strict=True)}
        write_arrays(part, arrays)
        return {"seconds": seconds, "seed": first}


class ComparedLevels(FollowCurriculum):
    """Also compares the pursuers whenever it stores the policy of a level, and stores policies at the levels.

    Attributes:
        penalties: Fair-ER's penalty, unweighted, of each level's policy on the latest observations; none if the
            networks are shared.
        gaps: The `equivariance_gap` of each level's policy.
        middles: The weights of the policy when the speed reached each level, half of the level's training before those
            of `states`.
    """

    def __init__(self, curriculum: Curriculum, *, levels: Sequence[float], rules: Rules) -> None:
        super().__init__(curriculum, levels=levels)
        self.rules = rules
        self.penalties: dict[float, float] = {}
        self.gaps: dict[float, float] = {}
        self.middles: dict[float, dict[str, Any]] = {}

    def _on_rollout_start(self) -> None:
        super()._on_rollout_start()
        for level in self.levels:
            if level not in self.middles and cast(float, self._set.value) <= level + 1e-9:
                self.middles[level] = {name: value.clone() for name, value in self.model.policy.state_dict().items()}

    def _kept(self, level: float) -> dict[str, Any]:
        model = cast(DDPG, self.model)
        if not model.shared:
            self.penalties[level] = penalty_of(model, seed=0)
        with isolated_random_state(1):
            self.gaps[level] = equivariance_gap(Learned(model), self.rules, speed=level)
        return super()._kept(level)


class PenaltyRows(TeamRows):
    """Also records what Fair-ER's penalty does.

    Args:
        every: Length of the interval in agent steps.

    Attributes:
        penalised: Agent steps, and the means of `PULLS` in the updates since the last row; NaN without a penalty.
    """

    def __init__(self, *, every: int) -> None:
        super().__init__(every=every)
        self.penalised: list[list[float]] = []

    def _on_rollout_end(self) -> None:
        if self.num_timesteps >= self._next:
            logged = self.logger.name_to_value
            self.penalised.append([float(self.num_timesteps), *(float(logged.get(name, np.nan)) for name in PULLS)])
        super()._on_rollout_end()


PULLS: Mapping[str, str] = {
    "train/penalty": "penalty",
    "train/fairness_weight": "weight",
    "train/value_gradient": "gradient of values",
    "train/penalty_gradient": "gradient of penalty",
}
"""The logged numbers of Fair-ER, by the names of their curves."""


def _way(kept: str, speed: float) -> str:
    """Return the name of the array of distances at one speed."""
    return f"{kept}/{speed:g}/{DISTANCES}"


def arrays_of(plays: Plays) -> dict[str, NDArray[Any]]:
    """Return the played episodes as arrays with flat names."""
    return {
        f"{kept}/{speed:g}/{column}": getattr(play, column)
        for kept, of_speeds in plays.items()
        for speed, play in of_speeds.items()
        for column in COLUMNS
    }


class TeamResult(NamedTuple):
    """The result of a cell."""

    plays: Plays
    learning: Floats  # see `TeamRows.rows`; (0, 0) without a training
    seconds: float
    penalised: Floats = np.zeros((0, 0))  # see `PenaltyRows.penalised`
    penalties: Mapping[float, float] = {}  # see `ComparedLevels`
    gaps: Mapping[float, float] = {}  # see `ComparedLevels`
    distances: Mapping[float, Floats] = {}  # of the policy of each speed, see `Watched`


def read_team(folder: Path) -> TeamResult:
    """Return the result in a cell's folder."""
    record, arrays = read_cell(folder)
    learning, penalised = (arrays.pop(name, np.zeros((0, 0))) for name in ("learning", "penalised"))
    penalties, gaps = (dict(arrays.pop(name, np.zeros((0, 2))).tolist()) for name in ("penalties", "gaps"))
    distances: dict[float, Floats] = {}
    plays: dict[str, dict[float, TeamPlay]] = {}
    for name in arrays:
        kept, speed, column = name.split("/")
        if column == DISTANCES:
            distances[float(speed)] = arrays[name]
        if column == COLUMNS[0]:
            columns = {c: arrays[f"{kept}/{speed}/{c}"] for c in COLUMNS}
            plays.setdefault(kept, {})[float(speed)] = TeamPlay(**columns, seed=record["seed"])
    return TeamResult(plays, learning, record["seconds"], penalised, penalties, gaps, distances)


# Numbers of a seed ----------------------------------------------------------------------------------------------------


def numbers(_: Label, folder: Path) -> dict[str, float]:
    """Return the numbers of a seed, see `numbers_of`."""
    return numbers_of(read_team(folder))


def numbers_of(result: TeamResult) -> dict[str, float]:
    """Return the numbers of one seed.

    Each has a name such as ``success at 1.1``, see `measures`. It is of the policy that was stored at the speed, and
    for a team without training of its only policy. The prefix ``dealt`` marks the same policy with roles that are dealt
    at random in each episode, ``last`` the last policy at all speeds, ``middle`` the policy that was stored when the
    speed was reached, half of the level's training before. `role_numbers` and ``equivariance gap at 1.1``, see
    `equivariance_gap`, are of the policy of the speed. ``penalty at 1.1`` is Fair-ER's penalty, unweighted, of this
    policy on its latest observations, for all methods with separate networks. ``learned`` is the curve of the success
    of the episodes in the training over agent steps, ``captures of 0`` that of a pursuer's captures per episode;
    Fair-ER also has the curves of `PULLS`.
    """
    kept = "of the speed" if "of the speed" in result.plays else "last"
    found = _prefixed("", result.plays[kept])
    found |= _prefixed("dealt ", result.plays.get(DEALT + kept, {}))
    if kept != "last":
        found |= _prefixed("last ", result.plays["last"])
        found |= _prefixed("dealt last ", result.plays.get(f"{DEALT}last", {}))
    found |= _prefixed("middle ", result.plays.get(MIDDLE, {}))
    for speed, distances in result.distances.items():
        roles = role_numbers(result.plays[kept][speed].captors, distances)
        found |= {f"{name} at {speed:g}": value for name, value in roles.items()}
    found |= {f"penalty at {speed:g}": value for speed, value in result.penalties.items()}
    found |= {f"equivariance gap at {speed:g}": value for speed, value in result.gaps.items()}
    if len(result.learning):
        steps, curves = learning_curves(result.learning)
        for name, values in curves.items():
            found |= curve_numbers(name, steps, values)
    for name, values in zip(PULLS.values(), result.penalised[:, 1:].T, strict=False):
        learning = np.flatnonzero(~np.isnan(values))  # not the first steps, in which nothing is learned
        parts = [part for part in np.array_split(learning, POINTS) if part.size]
        ends = [float(result.penalised[part[-1], 0]) for part in parts]
        found |= curve_numbers(name, ends, [float(values[part].mean()) for part in parts])
    return found


def measures(play: TeamPlay) -> dict[str, float]:
    """Return the measures of the episodes at one speed.

    ``success`` is the share of episodes with a capture, ``steps`` the mean steps to it. ``corrected`` is the deficit of
    team fairness in bits, corrected for the number of episodes, and ``floor`` its mean absolute value if the pursuers
    are relabelled at random in each episode. ``p`` is the p-value of a fair team. ``largest`` is the largest share of
    captures of a pursuer, and ``largest floor`` its mean if they are relabelled. ``largest`` and ``steps`` are
    undefined without a capture. ``corrected, unequal`` is the corrected deficit of an episode in which some pursuers
    captured and others did not: no other episode can contribute to it. ``captors 011`` is the number of episodes that
    exactly the second and the third pursuer captured in, and so on; all other numbers but the steps follow from these
    eight.
    """
    fairness = team_fairness(play.captors, permutations=PERMUTATIONS)
    found = {
        "success": play.success.value,
        "corrected": fairness.corrected,
        "floor": noise_floor(_corrected, play.captors),
        "p": fairness.p_value,
        "steps": play.steps_to_capture.value,
        "corrected, unequal": fairness.corrected_among_captures,
    }
    if play.captors.any():
        found |= {"largest": _largest(play.captors)[0], "largest floor": noise_floor(_largest, play.captors)}
        steps = play.steps[play.captors.any(axis=1)]
        found |= {f"steps, quartile {k}": np.quantile(steps, k / 4) for k in (1, 2, 3)}
    agents = play.captors.shape[1]
    codes = play.captors @ 2 ** np.arange(agents)[::-1]
    counts = np.bincount(codes, minlength=2**agents)
    found |= {f"captors {code:0{agents}b}": count for code, count in enumerate(counts)}
    return {name: float(value) for name, value in found.items() if not np.isnan(value)}


def learning_curves(rows: Floats) -> tuple[Floats, dict[str, Floats]]:
    """Return agent steps, and the success and each pursuer's captures of the episodes until then, thinned.

    Args:
        rows: The rows of `TeamRows`.
    """
    parts = np.array_split(rows, min(POINTS, len(rows)))
    names = ["learned", *(f"captures of {agent}" for agent in range(rows.shape[1] - 3))]
    ended = np.array([part[:, 1].sum() for part in parts])
    totals = np.array([part[:, 1] @ part[:, 2:] for part in parts])  # (P, names)
    shares = np.divide(totals, ended[:, np.newaxis], out=np.full(totals.shape, np.nan), where=ended[:, np.newaxis] > 0)
    return np.array([part[-1, 0] for part in parts]), dict(zip(names, shares.T, strict=True))


def _prefixed(prefix: str, plays: Mapping[float, TeamPlay]) -> dict[str, float]:
    return {
        f"{prefix}{name} at {speed:g}": value for speed, play in plays.items() for name, value in measures(play).items()
    }


def _corrected(captors: Flags) -> Floats:
    return np.array([team_fairness(captors, permutations=1).corrected])


def _largest(captors: Flags) -> Floats:
    return np.array([captors.sum(axis=0).max() / captors.sum()])
