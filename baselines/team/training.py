"""Trains all agents of an environment: DDPG, Fair-E and Fair-ER, with one settings class."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback

from fair_envs.baselines.runs import Run, freeze, source
from fair_envs.baselines.settings import COMMON, Device, MethodSettings
from fair_envs.baselines.team.curriculum import Curriculum, FollowCurriculum, Linear, Stepped, begin_at, passed
from fair_envs.baselines.team.ddpg import ACTOR, CRITIC, DDPG, FairE, FairER, Form, TeamReplay, unsupported_spaces
from fair_envs.baselines.team.play import Speed
from fair_envs.baselines.training import GroupRewards, Keeper, callbacks_of, load_as, train_as
from fair_envs.core import Rules
from fair_envs.evaluation import scripted
from fair_envs.registration import make_rules, make_sb3
from fair_envs.support.parameters import (
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    Range,
    UnitInterval,
    checked,
    setting,
)
from fair_envs.support.seeds import LANES_EACH, TEAM_SEEDS
from fair_envs.tasks import task_of

TeamAlgorithm = Literal["ddpg", "fair-e", "fair-er"]
Network = Literal["mlp", "sets"]
Course = Literal["automatic", "fixed", "linear", "stepped"]

GUIDE = "greedy"  # the scripted policy that demonstrates actions
KEPT_EVERY, KEPT_SHARE = 10.0, 0.05  # least seconds between checkpoints, and largest share of the time to write them
ROWS = 200  # rows of metrics in a training


@dataclass(frozen=True, kw_only=True)
class TeamTraining(MethodSettings):
    """Settings of a training of all agents; equal settings give equal networks.

    In the comments, P marks values of appendix C of Grupen, Selman and Lee (2022), C values of their code; see the
    preset ``paper``.

    Raises:
        ValueError: A value is outside its range, or the environment is not supported: it has one decision-maker, or its
            actions are neither discrete nor vectors from -1 to 1.
    """

    algorithm: TeamAlgorithm = "ddpg"
    network: Network = setting("mlp", "Kind of network; sets treats the team-mates as a set, in any order.")
    steps: PositiveInt = setting(4_500_000, "Agent steps to train for.")  # P: 125,000 episodes
    # The course
    curriculum: Course = setting(
        "automatic",
        "How the pursuers' speed changes during the training; fixed keeps the environment's. automatic is linear if "
        "there is a speed, and fixed otherwise.",
    )  # P: linear
    speeds: Sequence[Speed] = setting(
        (1.2, 0.6), "Speeds of the curriculum: the first and the last of linear, each of stepped."
    )  # P: 1.2 and 0.4
    episodes: NonNegativeInt = setting(
        0, "Episodes of the curriculum, or of each speed of stepped; 0 is the whole training."
    )  # C: 15,000
    levels: Sequence[Speed] = setting(
        (1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4), "Speeds at which the policy is stored for evaluation."
    )  # P
    # The rollouts
    lanes: PositiveInt = setting(16, COMMON["lanes"])  # C: 1
    train_freq: PositiveInt = setting(1, "Steps of all lanes between updates.")  # C: 5
    gradient_steps: PositiveInt = setting(1, "Gradient steps of each update.")  # C
    learning_starts: NonNegativeInt = setting(60_000, "Agent steps before the first update.")  # C: 1,000 episodes
    reward_scale: Positive = setting(0.1, COMMON["reward_scale"])  # P: 1
    # DDPG
    batch_size: PositiveInt = setting(256, COMMON["batch_size"])  # P: 512
    buffer_size: PositiveInt = setting(
        300_000, "Capacity of the replay buffer in transitions per agent."
    )  # P: 500,000, for all agents together with Fair-E
    learning_rate: Positive = setting(1e-3, "Learning rate of the actors.")  # P: 1e-4
    critic_learning_rate: Positive = setting(1e-3, "Learning rate of the critics.")  # P
    tau: UnitInterval = setting(
        0.01, "Step size of the target networks towards the networks in each update."
    )  # C; P: 0.001
    gamma: UnitInterval = setting(0.98, COMMON["gamma"])  # P: 0.99
    n_steps: PositiveInt = setting(10, "Steps of the returns that critics learn.")  # P: 1
    max_grad_norm: Positive = setting(0.5, COMMON["max_grad_norm"])  # P
    actor: Sequence[PositiveInt] = setting((64, 64), "Sizes of the actor's layers.")  # P: 128, 128
    critic: Sequence[PositiveInt] = setting((64, 64, 64), "Sizes of the critic's layers.")  # P: 128, 128, 128
    twin_critics: bool = setting(
        False, "Whether to learn from the smaller estimate of two critics, as in TD3."
    )  # TD3: True, with the next two
    policy_delay: PositiveInt = setting(1, "Critic updates for each actor update.")  # TD3: 2
    target_policy_noise: NonNegative = setting(
        0.0, "Standard deviation of the noise on target actions, as in TD3."
    )  # TD3: 0.2
    target_noise_clip: NonNegative = setting(0.5, "Largest absolute value of the noise on target actions.")  # TD3
    logit_weight: NonNegative = setting(
        0.01, "Weight of the mean squared logit in the actors' loss, which keeps actors of discrete actions random."
    )  # MADDPG: 0.001, not per unit of the values
    # Exploration
    guided: bool = setting(
        True,
        "Whether agents sometimes act like the scripted greedy controller during exploration, if the environment has "
        "one.",
    )  # C
    exploration_fraction: UnitInterval = setting(0.12, "Share of the training in which exploration decreases.")  # C
    exploration_initial_eps: UnitInterval = setting(
        0.95,
        "Initial probability that an agent acts like the greedy controller; without one, that it takes a random "
        "discrete action.",
    )  # C
    exploration_final_eps: UnitInterval = setting(0.05, "Final value of this probability.")  # C
    noise_initial_sigma: NonNegative = setting(
        0.3, "Initial scale of the action noise; discrete actions are sampled instead."
    )  # C
    noise_final_sigma: NonNegative = setting(0.05, "Final scale of the action noise.")  # C: 0.02
    noise_theta: UnitInterval = setting(0.15, "Share of the action noise that decays in a step.")  # C
    # Fair-ER
    fairness_weight: NonNegative = setting(0.5, "Weight of Fair-ER's equivariance penalty, lambda.")
    form: Form = setting(
        "plain", "Form of Fair-ER's penalty: plain, with normalised values, or with a weight adapted to the limit."
    )
    fairness_limit: Annotated[float, Range(0, 2)] = setting(0.05, "Limit on the penalty, for form automatic.")
    weight_learning_rate: NonNegative = setting(0.01, "Learning rate of the weight, for form automatic.")
    # The machine
    seed: Annotated[int, Range(0, 2**20 - 1)] = setting(0, COMMON["seed"])
    threads: PositiveInt = setting(1, COMMON["threads"])
    device: Device = setting("cpu", COMMON["device"])
    # Evaluations in the course of the training
    eval_freq: NonNegativeInt = setting(0, COMMON["eval_freq"])
    eval_episodes: PositiveInt = setting(10, COMMON["eval_episodes"])

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        rules = make_rules(self.env_id, **self.parameters)
        if why := unsupported(self.env_id, rules):
            raise ValueError(f"env_id must be supported with the parameters, got {self.env_id!r}, which {why}")
        if self.curriculum == "automatic":
            object.__setattr__(self, "curriculum", "fixed" if rules.pace is None else "linear")
        if self.curriculum != "fixed" and rules.pace is None:
            raise ValueError(
                f"curriculum must be 'fixed' for {self.env_id}, which has no speed to change, got {self.curriculum!r}"
            )
        self.course()
        if self.steps <= self.learning_starts:
            raise ValueError(
                f"steps must be more than learning_starts, {self.learning_starts}, to learn anything, got {self.steps}"
            )
        if self.lanes > LANES_EACH:
            raise ValueError(f"lanes must be at most {LANES_EACH}, got {self.lanes}")

    def course(self) -> Curriculum | None:
        """Return the curriculum, or None.

        Raises:
            ValueError: The speeds do not match the curriculum, or increase.
        """
        if self.curriculum == "fixed":
            return None
        if self.curriculum == "linear":
            if len(self.speeds) != 2:
                raise ValueError(f"speeds must be the first and the last for curriculum 'linear', got {self.speeds}")
            first, last = self.speeds
            return Linear(first, last, episodes=self.episodes or None)
        return Stepped(self.speeds, (self.episodes,) * len(self.speeds) if self.episodes else None)

    @property
    def kept_levels(self) -> tuple[float, ...]:
        """Levels that the curriculum passes, whose policies are stored; none without a curriculum."""
        course = self.course()
        return () if course is None else tuple(passed(course, self.levels))

    @property
    def row(self) -> int:
        """Number of agent steps per row of the metrics."""
        return -(-self.steps // ROWS)


def unsupported(env_id: str, rules: Rules) -> str:
    """Return why the agents of an environment cannot be trained, or ""."""
    if not rules.multi_agent:
        return "needs several agents with one action space, and there is one decision-maker"
    needed = unsupported_spaces(rules.observation_space(rules.params), rules.action_space(rules.params))
    return f"needs {needed}" if needed else ""


Preset = Literal["recommended", "small", "large", "paper"]
"""Sources of the default settings: for the task, or for pursuers whose speed falls in a small world, in the paper's
world, or with the paper's own values.

In the small world teams learn, with some seeds to capture far below the evader's speed. The paper's world is four times
as large. There ``"large"`` takes about as long and learns much less (see docs/reproduction/grupen2022.md); use it as a
starting point with a larger budget.
"""

FULL_SIZE: Mapping[str, Any] = {  # P and C
    "speeds": (1.2, 0.4),
    "train_freq": 5,
    "batch_size": 512,
    "actor": ACTOR,
    "critic": CRITIC,
}
PRESETS: Mapping[Preset, Mapping[str, Any]] = {
    "recommended": {  # beside the task's parameters and steps
        "curriculum": "fixed",
        "lanes": 8,
        "learning_starts": 20_000,
        "n_steps": 3,
        "buffer_size": 20_000,
        "guided": False,
    },
    "small": {"parameters": {"include_speed": True, "side": 3.0, "horizon": 250}},
    "large": {"parameters": {"include_speed": True}, "steps": 9_000_000, **FULL_SIZE},
    "paper": {
        **FULL_SIZE,
        "parameters": {"observation": "authors", "teammates": "index"},
        "lanes": 1,
        "episodes": 15_000,
        "reward_scale": 1.0,
        "buffer_size": 500_000,
        "learning_rate": 1e-4,
        "tau": 0.001,
        "gamma": 0.99,
        "n_steps": 1,
        "noise_final_sigma": 0.02,
        "learning_starts": 165_000,  # 1,000 episodes of greedy pursuers at speed 1.2
        "steps": 187_500_000,  # 125,000 episodes of up to 500 steps of three pursuers
    },
}


def team_preset(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a preset for the settings given so far, which include the environment.

    Raises:
        ValueError: The preset is unknown, or only for environments whose agents have a speed that a curriculum changes.
    """
    values = dict(PRESETS[checked("preset", preset, Preset)])
    parameters = given.get("parameters", {})
    if preset == "recommended":
        task = task_of(given["env_id"])
        return {**values, "steps": task.steps, "parameters": task.merged(parameters)}
    if make_rules(given["env_id"], **parameters).pace is None:
        raise ValueError(f"preset must be 'recommended' for {given['env_id']}, got {preset!r}")
    return {**values, "parameters": {**values["parameters"], **parameters}}


def team_settings(env_id: str, *, preset: Preset = "recommended", **given: Any) -> TeamTraining:
    """Return the settings of a training, completed from a preset."""
    given = {**given, "env_id": env_id}
    values = team_preset(preset, given)
    return TeamTraining(**{**values, **given, "parameters": values["parameters"]})


# ------------------------------------------------------------------------------------------- making and training

LEARNERS: Mapping[TeamAlgorithm, type[DDPG]] = {"ddpg": DDPG, "fair-e": FairE, "fair-er": FairER}
POLICIES: Mapping[Network, str] = {"mlp": "MlpPolicy", "sets": "DeepSetsPolicy"}
SETTINGS = (
    "train_freq gradient_steps learning_starts batch_size buffer_size learning_rate critic_learning_rate tau gamma "
    "n_steps max_grad_norm twin_critics policy_delay target_policy_noise target_noise_clip logit_weight "
    "exploration_fraction exploration_initial_eps exploration_final_eps noise_initial_sigma noise_final_sigma "
    "noise_theta seed"
)


def make_team(config: TeamTraining) -> DDPG:
    """Return the untrained model."""
    first = TEAM_SEEDS + LANES_EACH * config.seed
    env = make_sb3(
        config.env_id,
        n_envs=config.lanes,
        seed=first,
        threads=config.threads,
        reward_scale=config.reward_scale,
        infos="ends",
        **config.parameters,
    )
    settings: dict[str, Any] = {name: getattr(config, name) for name in SETTINGS.split()}
    settings["policy_kwargs"] = {"net_arch": {"pi": config.actor, "qf": config.critic}}
    if config.algorithm == "fair-er":
        own = ("fairness_weight", "form", "fairness_limit", "weight_learning_rate")
        settings |= {name: getattr(config, name) for name in own}
    rules = make_rules(config.env_id, **config.parameters)
    guide = scripted(rules, GUIDE) if config.guided and GUIDE in rules.policies else None
    model = LEARNERS[config.algorithm](POLICIES[config.network], env, guide=guide, device="cpu", **settings)
    env.seed(first)  # replaces the seed set by the model
    if (course := config.course()) is not None:
        begin_at(env, course)
    return model


def train_team(
    config: TeamTraining,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    callback: MaybeCallback = None,
    follow: FollowCurriculum | None = None,
    rows: BaseCallback | None = None,
) -> DDPG:
    """Train and return the model; arguments and errors are those of `fair_envs.baselines.train`.

    With ``out``, the training writes the files of `train` and the policies of the levels, such as ``model-1.2.pt``. A
    checkpoint is written about every 10 seconds, less often if writing takes long, and contains the replay buffer until
    the training ends. After an interruption only what followed it is repeated, bit-identically except for the row of
    metrics of the interruption. Optional callbacks are ``follow``, which applies the curriculum and stores the levels'
    policies (`following` of these settings), and ``rows``, which logs the progress of the training: `TeamRows`, or
    `RewardRows` if the agents are no team.
    """
    if rows is None:
        rows = RewardRows(every=config.row) if make_rules(config.env_id).pace is None else TeamRows(every=config.row)
    follow = follow or following(config, folder=None if out is None else Path(out))
    follows = [] if follow is None else [follow]
    model = train_as(
        config,
        make_team,
        out=out,
        resume=resume,
        progress=progress,
        callback=[*follows, *callbacks_of(callback), rows],
        log_interval=None,
        keeper=RareKeeper,
    )
    return cast(DDPG, model)


def following(config: TeamTraining, *, folder: Path | None = None) -> FollowCurriculum | None:
    """Return a callback that applies a training's curriculum and stores the policies of its levels, or None."""
    course = config.course()
    return None if course is None else FollowCurriculum(course, levels=config.levels, folder=folder)


def load_team(run: str | Path) -> tuple[DDPG, TeamTraining]:
    """Return the model of a run's last checkpoint, for evaluation, and its settings.

    Raises:
        FileNotFoundError: The folder contains no run.
    """
    model, config = load_as(run, TeamTraining, make_team)
    return cast(DDPG, model), config


class RareKeeper(Keeper):
    """Writes the state periodically at the beginning of a rollout, with the replay buffer only during training."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._next = -np.inf

    def _on_rollout_start(self) -> None:
        self._collected = self._finished = False
        begun = time.monotonic()
        if begun > self._next:
            self.run.write(freeze(self.model, self.run))
            now = time.monotonic()
            self._next = now + max(KEPT_EVERY, (now - begun) / KEPT_SHARE)

    def _on_training_end(self) -> None:
        super()._on_training_end()
        if self._finished:
            cast(TeamReplay, cast(DDPG, self.model).replay_buffer).reset()  # not needed after the training


class RewardRows(GroupRewards):
    """Logs the mean reward per agent and step of each group within each interval of agent steps.

    Args:
        every: Length of the interval in agent steps.
    """

    def __init__(self, *, every: int) -> None:
        super().__init__()
        self._every = every

    def _on_training_start(self) -> None:
        self._begin()

    def _begin(self) -> None:
        super()._on_rollout_start()
        self._next = (self.num_timesteps // self._every + 1) * self._every

    def _on_rollout_start(self) -> None:
        """Continue the interval."""

    def _on_rollout_end(self) -> None:
        if self.num_timesteps >= self._next:
            super()._on_rollout_end()
            self.logger.record("time/total_timesteps", self.num_timesteps)
            self.logger.dump(self.num_timesteps)
            self._begin()


class TeamRows(BaseCallback):
    """Records and logs the results of the episodes that ended within each interval of agent steps.

    ``rollout/success`` is the share of episodes in which all evaders were captured (if the time limit terminates
    episodes: in which one was captured in the last step). ``rollout/captures`` is the share in which a pursuer captured
    at least one evader. If no episode ended, neither is logged.

    Args:
        every: Length of the interval in agent steps.

    Attributes:
        rows: Agent steps at the end, episodes, the share of successes, and each agent's captures per episode.
    """

    def __init__(self, *, every: int) -> None:
        super().__init__()
        self._every = every
        self.rows: list[list[float]] = []

    def _on_training_start(self) -> None:
        lanes = source(self.training_env).lanes
        self._captors = np.zeros((lanes.count, lanes.agents), bool)  # in the unfinished episodes
        self._clear()

    def _clear(self) -> None:
        self._episodes = self._captured = 0
        self._captures = np.zeros(self._captors.shape[1])
        self._next = (self.num_timesteps // self._every + 1) * self._every

    def _on_step(self) -> bool:
        agents = self._captors.shape[1]
        now = source(self.training_env).interactions["outcome"] > 0
        self._captors |= now
        done = np.flatnonzero(self.locals["dones"][::agents])
        if len(done):
            cut = [self.locals["infos"][agents * lane]["TimeLimit.truncated"] for lane in done]
            self._episodes += len(done)
            self._captured += int((now[done].any(axis=1) & ~np.array(cut)).sum())
            self._captures += self._captors[done].sum(axis=0)
            self._captors[done] = False
        return True

    def _on_rollout_end(self) -> None:
        if self.num_timesteps >= self._next:
            shares = np.array([self._captured, *self._captures]) / max(1, self._episodes)
            self._log(*map(float, shares))
            self.rows.append([float(self.num_timesteps), float(self._episodes), *map(float, shares)])
            self._clear()

    def _log(self, success: float, *captures: float) -> None:
        if self._episodes:
            self.logger.record("rollout/success", success)
            for agent, share in enumerate(captures):
                self.logger.record(f"rollout/captures[pursuer {agent}]", share)
        self.logger.record("time/total_timesteps", self.num_timesteps)
        self.logger.dump(self.num_timesteps)
