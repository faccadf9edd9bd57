"""Grupen, Selman and Lee (2022), "Cooperative Multi-Agent Fairness and Equivariant Policies".

The paper (AAAI 2022, arXiv 2106.05727) trains pursuers that share a reward, and asks whether captures depend on the
identity of the pursuers. Its figures are only known from the descriptions in the text; it prints no numbers. The claims
are tested for success and for team fairness, corrected for the number of test episodes, per training seed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from fair_envs.baselines.team.play import TeamPlay
from fair_envs.baselines.team.training import Preset, TeamTraining, team_settings
from fair_envs.experiments import tables
from fair_envs.experiments.jobs import Job
from fair_envs.experiments.tables import listed
from fair_envs.metrics import Estimate, mean_interval, paired_difference, team_fairness
from fair_envs.registration import make_rules
from fair_envs.reproduction import figures, study
from fair_envs.reproduction.claims import Claim, all_of, below, exceeds, verdict, within
from fair_envs.reproduction.grupen2022.jobs import DEALT, ScriptedTeamCell, TeamCell, TeamResult, read_team
from fair_envs.support.aliases import Floats

Label = str
Measure = Literal["success", "corrected", "steps"]
BOTH: tuple[Measure, ...] = ("success", "corrected")

WEIGHTS = (0.1, 0.5, 1.0)  # lambda; the paper's text names 0, 0.1, 0.5, 0.9 and 1
METHODS: Mapping[Label, Mapping[str, Any]] = {
    "mutual": {"algorithm": "ddpg"},
    "individual": {"algorithm": "ddpg", "parameters": {"reward": "individual"}},
    "Fair-E": {"algorithm": "fair-e"},
    "Fair-E, sets": {"algorithm": "fair-e", "network": "sets"},
    **{f"Fair-ER {weight:g}": {"algorithm": "fair-er", "fairness_weight": weight} for weight in WEIGHTS},
}
"""The trained methods; "mutual" is the paper's "no equivariance", and equals Fair-ER with a weight of 0."""

DEALT_ROLES = "mutual, roles dealt"
PLANNED = 100  # largest number of test episodes of the planner
SHOWN: Sequence[Label] = ("mutual", "individual", "Fair-E", "Fair-E, sets", "greedy")  # in figures 2 and 3
RESULT: Mapping[Measure, str] = {
    "success": "share of episodes with a capture",
    "corrected": "deficit of team fairness, bits, corrected",
    "steps": "steps to capture",
}

# Criteria for the claims. They are ours and were fixed before the study was run; the paper gives no numbers.
EQUAL_SPEED = 1.0  # at this speed and below, greedy never captures
SKILLED = 0.8  # at this speed and above, the paper calls the fairness of Fair-ER free
FALLING = 0.9  # below this speed, the paper says that Fair-E loses success
CAPTURES = 0.5  # least success of a team that counts as capturing
MARGIN = 0.05  # largest difference, in success and in bits, that counts as none
FINE = 100  # relabellings per test: the smallest p-value times the number of tests is below 0.01


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of each method, and of sets of test episodes of scripted teams.
        steps: Agent steps of a training.
        speeds: Levels of the curriculum, at which policies are stored and tested, the fastest first.
        episodes: Number of test episodes at each speed.
        preset: The settings of the trainings, see `fair_envs.baselines.team.training.PRESETS`.
        settings: Other settings of the trainings.
        parameters: Parameters of the environment.
    """

    seeds: int
    steps: int
    speeds: Sequence[float]
    episodes: int
    preset: Preset = "recommended"
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


TENTHS = (1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
SCALES: Mapping[str, Scale] = {
    "smoke": Scale(
        seeds=2,
        steps=30_000,
        speeds=(1.2, 1.0, 0.8),
        episodes=20,
        settings={"learning_starts": 10_000, "buffer_size": 10_000, "batch_size": 32},
    ),
    "small": Scale(seeds=3, steps=3_600_000, speeds=TENTHS[:6], episodes=500),
    "full": Scale(
        seeds=5,
        steps=187_500_000,  # 125,000 episodes of up to 500 steps of three pursuers
        speeds=TENTHS,
        episodes=500,
        preset="paper",
        settings={"episodes": 0},  # the curriculum takes the whole training, as the text says
        parameters={"observation": "relative", "teammates": "cyclic", "include_speed": True},
    ),
}


# ------------------------------------------------------------------------------------------------------ the cells


def training_of(scale: Scale, given: Mapping[str, Any], seed: int) -> TeamTraining:
    """Return a training; weights of the penalty are in the paper's units, in which rewards are not scaled."""
    settings = {
        "steps": scale.steps,
        "speeds": (scale.speeds[0], scale.speeds[-1]),
        "levels": tuple(scale.speeds),
        "seed": seed,
        **scale.settings,
        **given,
    }
    settings["parameters"] = {**scale.parameters, **given.get("parameters", {})}
    training = team_settings("FairPursuit-v0", preset=scale.preset, **settings)
    return replace(training, fairness_weight=training.fairness_weight * training.reward_scale)


def cells(scale: Scale) -> dict[Label, list[Job]]:
    """Return the study's cells: each method with its seeds."""
    tested: dict[str, Any] = {"speeds": tuple(scale.speeds), "episodes": scale.episodes}
    found: dict[Label, list[Job]] = {}
    for name, given in METHODS.items():
        trainings = [training_of(scale, given, seed) for seed in range(scale.seeds)]
        found[name] = [TeamCell(training=training, dealt=name == "mutual", **tested) for training in trainings]
    world = training_of(scale, {}, 0).parameters
    for name, episodes in {"greedy": scale.episodes, "planner": min(scale.episodes, PLANNED)}.items():
        own = {**tested, "episodes": episodes, "parameters": world}
        found[name] = [ScriptedTeamCell(name=name, seed=seed, **own) for seed in range(scale.seeds)]
    return found


# ------------------------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class Arm:
    """A team's tests and trainings.

    Attributes:
        kept: For each seed, the episodes at each speed with the policy stored at that speed.
        last: The same with the last policy.
        learning: The learning curves of the trainings; empty for a scripted team.
        seconds: Durations of the trainings.
    """

    kept: Sequence[Mapping[float, TeamPlay]]
    last: Sequence[Mapping[float, TeamPlay]]
    learning: Sequence[Floats] = ()
    seconds: Sequence[float] = ()

    def per_seed(self, measure: Measure, speed: float) -> Floats:
        """Return a measure at a speed for each seed."""
        return np.array([measured(plays[speed], measure) for plays in self.kept])

    def estimate(self, measure: Measure, speed: float) -> Estimate:
        """Return its mean over seeds; steps to capture are averaged over the seeds that captured."""
        return mean_interval(self.per_seed(measure, speed), undefined="omit" if measure == "steps" else "nan")

    def mean_over(self, measure: Measure, speeds: Sequence[float]) -> Floats:
        """Return the mean of a measure over speeds, for each seed; NaN without speeds."""
        if not speeds:
            return np.full(len(self.kept), np.nan)
        return np.mean([self.per_seed(measure, speed) for speed in speeds], axis=0)  # type: ignore[no-any-return]

    def p_values(self, speeds: Sequence[float]) -> Floats:
        """Return a fair team's p-values by seed and speed, with enough permutations to correct for their number."""
        times = FINE * len(speeds) * len(self.kept)
        plays = [of_seed[speed] for speed in speeds for of_seed in self.kept]
        return np.array([team_fairness(play.captors, permutations=times).p_value for play in plays])

    def curve(self, measure: Measure, speeds: Sequence[float]) -> figures.Curve:
        """Return a measure against the speed."""
        return figures.Curve(np.array(speeds), np.stack([self.per_seed(measure, speed) for speed in speeds], axis=1))


def measured(play: TeamPlay, measure: Measure) -> float:
    """Return a measure of the played episodes."""
    if measure == "success":
        return play.success.value
    return play.fairness.corrected if measure == "corrected" else play.steps_to_capture.value


def arms_of(results: Mapping[Label, Sequence[TeamResult]]) -> dict[Label, Arm]:
    """Return the arms of the study; the team with randomly reassigned roles is a separate arm."""
    found = {}
    for name, group in results.items():
        learning = [result.learning for result in group if len(result.learning)]
        seconds = [result.seconds for result in group]
        found[name] = _arm(group, "", learning, seconds)
        if any(key.startswith(DEALT) for key in group[0].plays):
            found[DEALT_ROLES] = _arm(group, DEALT, [], [])
    return found


def _arm(group: Sequence[TeamResult], prefix: str, learning: Sequence[Floats], seconds: Sequence[float]) -> Arm:
    """Return an arm of the tests with a prefix; a scripted team has one policy, the last, for all speeds."""
    last = [result.plays[prefix + "last"] for result in group]
    kept = [result.plays.get(prefix + "of the speed", end) for result, end in zip(group, last, strict=True)]
    return Arm(kept, last, learning, seconds)


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of the study.

    Attributes:
        arms: The teams with their results.
    """

    paper = "grupen2022"
    scales = SCALES

    arms: Mapping[Label, Arm]

    def speeds(self, holds: Callable[[float], bool]) -> list[float]:
        """Return the speeds that satisfy a condition."""
        return [speed for speed in self.scale.speeds if holds(speed)]

    def write_numbers(self) -> None:
        """Write every team's numbers at every speed."""
        numbers = {
            f"{name} at {speed:g}": {title: arm.estimate(measure, speed) for measure, title in RESULT.items()}
            for name, arm in self.arms.items()
            for speed in self.scale.speeds
        }
        tables.write(self.out, numbers)

    # ------------------------------------------------------------------------------------------------- tables

    def table(self, measure: Measure) -> str:
        """Return a measure of every team at every speed."""
        rows = [
            [name, *(_shown(arm.estimate(measure, speed), measure) for speed in self.scale.speeds)]
            for name, arm in self.arms.items()
        ]
        return tables.markdown(["team", *(f"{speed:g}" for speed in self.scale.speeds)], rows)

    def roles_table(self, speed: float) -> str:
        """Return, for each training seed, the shares of captures at a speed, and the p-value of a fair team."""
        rows = [
            [name, str(seed), _shares(plays[speed]), f"{plays[speed].fairness.corrected:.3f}", _p(plays[speed])]
            for name, arm in self.arms.items()
            for seed, plays in enumerate(arm.kept)
        ]
        return tables.markdown(["team", "seed", "captures of each pursuer", "deficit, corrected", "p"], rows)

    def last_table(self) -> str:
        """Return success and fairness with the last policy at all speeds."""
        rows = []
        for name in METHODS:
            arm = Arm(self.arms[name].last, self.arms[name].last)
            for measure in BOTH:
                estimates = (arm.estimate(measure, speed) for speed in self.scale.speeds)
                rows.append([name, RESULT[measure], *(f"{e.value:.3f}" for e in estimates)])
        return tables.markdown(["team", "", *(f"{speed:g}" for speed in self.scale.speeds)], rows)

    # ------------------------------------------------------------------------------------------------- claims

    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs."""
        return [
            self._greedy_claim(),
            self._mutual_claim(),
            self._unfair_claim(),
            *(self._fair_claim(name) for name in ("Fair-E", "Fair-E, sets", DEALT_ROLES)),
            self._loss_claim(),
            self._between_claim(),
            self._free_claim(),
            self._roles_claim(),
        ]

    def against(self, name: Label, other: Label, measure: Measure, speed: float) -> Estimate:
        """Return a team's number minus another's, paired by seed."""
        mine, others = (self.arms[arm].per_seed(measure, speed) for arm in (name, other))
        return paired_difference(mine, others)

    def able(self, name: Label, speeds: Iterable[float]) -> list[float]:
        """Return the speeds at which a team captures."""
        return [v for v in speeds if self.arms[name].estimate("success", v).value >= CAPTURES]

    def mean(self, name: Label, measure: Measure, speeds: Sequence[float]) -> Estimate:
        """Return a team's mean over speeds; undefined without speeds."""
        return mean_interval(self.arms[name].mean_over(measure, speeds))

    def mean_against(self, name: Label, other: Label, measure: Measure, speeds: Sequence[float]) -> Estimate:
        """Return a team's mean over speeds minus another's, paired by seed; undefined without speeds."""
        return paired_difference(*(self.arms[arm].mean_over(measure, speeds) for arm in (name, other)))

    def _greedy_claim(self) -> Claim:
        found = {name: self.against(name, "greedy", "success", EQUAL_SPEED) for name in ("mutual", "Fair-E, sets")}
        return Claim(
            f"Pursuers trained with a mutual reward capture more often than greedy ones at speed {EQUAL_SPEED:g}.",
            verdict({name: exceeds(e, MARGIN) for name, e in found.items()}),
            "Success minus greedy's: " + listed(found),
        )

    def _mutual_claim(self) -> Claim:
        slow = self.speeds(lambda speed: speed <= EQUAL_SPEED)
        found = {f"{speed:g}": self.against("mutual", "individual", "success", speed) for speed in slow}
        return Claim(
            "Mutual reward is critical: at the evader's speed and below, individual reward captures less often.",
            verdict({f"at {speed}": exceeds(e, MARGIN) for speed, e in found.items()}),
            "Success, mutual minus individual: " + listed(found),
        )

    def _unfair_claim(self) -> Claim:
        fast = self.able("mutual", self.speeds(lambda speed: speed >= FALLING))
        slow = self.able("mutual", self.speeds(lambda speed: speed < FALLING))
        found = {
            title: self.mean("mutual", "corrected", speeds)
            for title, speeds in {"from 0.9 up": fast, "below": slow}.items()
        }
        ps = self.arms["mutual"].p_values([*fast, *slow])
        return Claim(
            "Naive mutual reward is unfair where it captures: captures depend on the pursuers' identities.",
            verdict({title: exceeds(e, 0) for title, e in found.items()}),
            f"Corrected deficit in bits, mean over speeds: {listed(found)}; {int((ps < 0.05).sum())} of {len(ps)} "
            "tests of a seed at a speed have p < 0.05",
        )

    def _fair_claim(self, name: Label) -> Claim:
        arm, able = self.arms[name], self.able(name, self.scale.speeds)
        deficit, ps = self.mean(name, "corrected", able), arm.p_values(able)
        lowest = min(1.0, float(ps.min()) * len(ps)) if able else np.nan  # Bonferroni
        unlike = None if np.isnan(deficit.low) else bool(deficit.low > 0 or lowest <= 0.05)
        found = {f"{speed:g}": arm.estimate("corrected", speed) for speed in able}
        return Claim(
            f"{name} is fair where it captures (success from {CAPTURES:g} up).",
            verdict(
                {
                    "not distinguishable from fair": None if unlike is None else not unlike,
                    f"within {MARGIN:g} bits": within(deficit, MARGIN),
                }
            ),
            f"Corrected deficit in bits, mean over speeds: {tables.show(deficit)}; by speed: {listed(found)}; lowest "
            f"p-value times the number of tests, {len(ps)}: {lowest:.3f}",
        )

    def _loss_claim(self) -> Claim:
        slow = self.speeds(lambda speed: speed < FALLING)
        names = ("Fair-E", "Fair-E, sets")
        found = {name: self.mean_against(name, "mutual", "success", slow) for name in names}
        each = {
            name: {f"{speed:g}": self.against(name, "mutual", "success", speed) for speed in slow} for name in names
        }
        return Claim(
            f"Fair-E loses utility as skill drops: below {FALLING:g} it captures less often than mutual reward alone.",
            verdict({name: below(e, -MARGIN) for name, e in found.items()}),
            f"Success minus mutual's, mean over speeds: {listed(found)}; "
            + "; ".join(f"{name} by speed: {listed(of)}" for name, of in each.items()),
        )

    def _between_claim(self) -> Claim:
        slow, names = self.speeds(lambda speed: speed < FALLING), [f"Fair-ER {weight:g}" for weight in WEIGHTS]
        utility = {name: self.mean_against(name, "Fair-E", "success", slow) for name in names}
        able = self.able("mutual", self.scale.speeds)
        fairness = {name: self.mean_against(name, "mutual", "corrected", able) for name in names}
        return Claim(
            f"Fair-ER lies between: below {FALLING:g} it captures more often than Fair-E, and it is fairer than mutual "
            "reward.",
            verdict({name: all_of([exceeds(utility[name], 0), below(fairness[name], 0)]) for name in names}),
            f"Success minus Fair-E's, mean over speeds below {FALLING:g}: {listed(utility)}; deficit minus mutual's, "
            f"mean over the speeds at which that captures: {listed(fairness)}",
        )

    def _free_claim(self) -> Claim:
        lowest = {**dict.fromkeys(("Fair-E", "Fair-E, sets"), FALLING)}
        lowest |= {f"Fair-ER {weight:g}": SKILLED for weight in WEIGHTS}
        success, fairness = {}, {}
        for name, floor in lowest.items():
            able = [v for v in self.able("mutual", self.scale.speeds) if v >= floor]
            success[name] = self.mean_against(name, "mutual", "success", able)
            fairness[name] = self.mean_against(name, "mutual", "corrected", able)
        return Claim(
            f"Fairness is free when skill is high: from {SKILLED:g} up (Fair-E: {FALLING:g}) a fairer team captures as "
            "often as mutual reward alone.",
            verdict({name: all_of([within(success[name], MARGIN), below(fairness[name], 0)]) for name in lowest}),
            f"Minus mutual's, mean over the speeds at which that captures: success {listed(success)}; deficit "
            f"{listed(fairness)}",
        )

    def _roles_claim(self) -> Claim:
        able = self.able("mutual", self.scale.speeds)
        success, fairness = (
            self.mean_against(DEALT_ROLES, "mutual", measure, able) for measure in ("success", "corrected")
        )
        return Claim(
            "Not in the paper: randomly reassigning the unfair team's roles in each episode makes it fair by this "
            "measure, at no cost.",
            verdict({"less deficit": below(fairness, 0), f"success within {MARGIN:g}": within(success, MARGIN)}),
            "Roles dealt minus mutual, mean over the speeds at which that captures: "
            + listed({"deficit": fairness, "success": success}),
        )

    # ----------------------------------------------------------------------------------------- figures and text

    def draw(self) -> None:
        """Save the figures."""
        rewards, notions = ("mutual", "individual", "greedy", "planner"), (*SHOWN, DEALT_ROLES)
        self._draw_speeds({"Fig. 2": ("success", rewards)}, "reward.png")
        self._draw_speeds({"Fig. 3b": ("corrected", notions), "Fig. 3c": ("success", notions)}, "fairness.png")
        learned = ("mutual", *(f"Fair-ER {weight:g}" for weight in WEIGHTS), "Fair-E", "Fair-E, sets")
        figures.course_plot(
            {"Fig. 4: success in training": {name: training_curve(self.arms[name]) for name in learned}},
            self.out / "training.png",
            points={},
            label="million agent steps",
            each_seed=True,
        )
        figures.exchange_plot(
            {
                f"speed {speed:g}": {
                    name: (self.arms[name].estimate("corrected", speed), self.arms[name].estimate("success", speed))
                    for name in learned
                }
                for speed in self.scale.speeds
            },
            self.out / "exchange.png",
            labels=("deficit, corrected", "success"),
        )

    def _draw_speeds(self, panels: Mapping[str, tuple[Measure, Sequence[Label]]], file: str) -> None:
        """Save measures of teams against the pursuers' speed."""
        speeds = self.scale.speeds
        drawn = {
            f"{title}: {RESULT[measure]}": {name: self.arms[name].curve(measure, speeds) for name in names}
            for title, (measure, names) in panels.items()
        }
        figures.course_plot(drawn, self.out / file, points={}, label="pursuers' speed", each_seed=True)

    def text(self, claims: Sequence[Claim]) -> str:
        """Return the report as Markdown."""
        seconds = [s for name in METHODS for s in self.arms[name].seconds]
        at, own = EQUAL_SPEED, training_of(self.scale, {}, 0)
        world = make_rules(own.env_id, **own.parameters).params
        parts = [
            f"Made by `{self.command}`: {len(seconds)} trainings ({np.mean(seconds):.0f} s each on one core) of "
            f"{self.scale.steps:,} agent steps on a torus of side {world.side:g} with {world.horizon} steps, "
            f"{self.scale.seeds} seeds (0 to {self.scale.seeds - 1}); {self.scale.episodes} test episodes of a seed at "
            f"each speed (planner: {min(self.scale.episodes, PLANNED)}), from the same starts for all teams. Brackets "
            "hold 95 % intervals over training seeds, for scripted teams over sets of test episodes (Student's t; "
            "differences are paired by seed). At each speed, the tested policy is the one trained until the curriculum "
            "was halfway to the next. Weights of Fair-ER are in units of the paper's rewards; with rewards scaled "
            f"by {own.reward_scale:g}, the learner's weights are scaled by {own.reward_scale:g} too.",
            "## The paper's claims",
            *[f"**{claim.text}** {claim.verdict}\n\n{claim.evidence}." for claim in claims],
            "## Success (Fig. 2 and 3c)",
            "In the figures thin lines are seeds, and thick lines their means.",
            self.table("success"),
            "![reward](reward.png)",
            "## Team fairness (Fig. 3b)",
            "Deficit in bits, corrected for the number of episodes; 0 is fair; a team that never captures also has 0.",
            self.table("corrected"),
            "![fairness](fairness.png)",
            f"## Who captures at speed {at:g} (Fig. 3a)",
            self.roles_table(at),
            "## Steps to capture",
            self.table("steps"),
            "## Training (Fig. 4)",
            "![training](training.png)",
            "## Utility and fairness (Fig. 5)",
            "![exchange](exchange.png)",
            "## The last policy at all speeds",
            self.last_table(),
        ]
        return "\n\n".join(parts) + "\n"


def training_curve(arm: Arm) -> figures.Curve:
    """Return the success in training over agent steps; undefined where no episode ended."""
    length = min(map(len, arm.learning))
    rows = np.stack([run[:length] for run in arm.learning])
    success = np.where(rows[..., 1] > 0, rows[..., 2], np.nan)
    return figures.Curve(rows[0, :, 0] / 1e6, success)


def _shown(estimate: Estimate, measure: Measure) -> str:
    """Return an estimate; "none" if undefined, such as steps without a capture."""
    return "none" if np.isnan(estimate.value) else tables.show(estimate, digits=0 if measure == "steps" else 3)


def _shares(play: TeamPlay) -> str:
    return ", ".join(f"{share:.2f}" for share in play.shares) if play.captors.any() else "none"


def _p(play: TeamPlay) -> str:
    return f"{play.fairness.p_value:.3f}"


main = study.Study(
    scales=SCALES,
    cells=cells,
    read=read_team,
    report=lambda name, scale, results, out: Report(name=name, scale=scale, arms=arms_of(results), out=out),
).run
