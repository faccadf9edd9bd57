"""Hu, Lear and Zhang (2024), "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning".

The paper (arXiv 2401.06318) trains PPO, A-PPO and F-PPO on lending, attention allocation and an epidemic, and compares
them with scripted agents in short-term fairness, long-term fairness and utility over an episode. The plotted long-term
fairness differs from the definition in its text. Every claim is therefore tested as plotted and as defined ("truly").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines.ppo.long_term_training import LongTermTraining, long_term_settings
from fair_envs.experiments import tables
from fair_envs.experiments.jobs import Job
from fair_envs.metrics import Estimate, mean_interval, paired_difference
from fair_envs.reproduction import figures, study
from fair_envs.reproduction.claims import Claim, all_of, below, verdict
from fair_envs.reproduction.hu2024.jobs import AGENTS, LearnedCell, ProcessResult, ScriptedCell, read_process
from fair_envs.reproduction.hu2024.processes import ENV_IDS, Series, World, series
from fair_envs.reproduction.hu2024.published import PLOTTED
from fair_envs.support.aliases import Floats

Label = str

WORLDS: tuple[World, ...] = ("lending", "attention", "epidemic")
FIGURES: Mapping[World, str] = {"lending": "Fig. 1", "attention": "Fig. 3", "epidemic": "Fig. 4"}
UTILITY: Mapping[World, str] = {
    "lending": "cash of the bank",
    "attention": "reward a step, smoothed",
    "epidemic": "share of people who are not infected",
}
TEST: Mapping[World, tuple[int, int]] = {"lending": (10, 10_000), "attention": (10, 1000), "epidemic": (200, 20)}
"""Number of test episodes of each cell, and of steps in each."""

LEARNERS: Mapping[Label, Mapping[str, Any]] = {
    "PPO": {"algorithm": "ppo"},
    "A-PPO": {"algorithm": "a-ppo"},
    "F-PPO": {"algorithm": "f-ppo"},
    "F-PPO-L": {"algorithm": "f-ppo-l"},
    "F-PPO-S": {"algorithm": "f-ppo-s"},
    "F-PPO, shield": {"algorithm": "f-ppo", "massaging": "shield"},
    "PPO-Lagrangian": {"algorithm": "ppo-lagrangian"},
}
"""The learners on all processes, as this package recommends; "F-PPO" learns from altered actions, as in the paper."""

KNOWN: Mapping[str, Any] = {"algorithm": "f-ppo", "signals": "known"}
TRIED: Mapping[Label, Mapping[str, Any]] = {
    "F-PPO, corrected": {"algorithm": "f-ppo", "massaging": "corrected"},
    "F-PPO, weight 20": {"algorithm": "f-ppo", "weight": 20.0, "bonus_weight": 20.0},
    "F-PPO, known": KNOWN,
    "F-PPO, known, weight 5": {**KNOWN, "weight": 5.0, "bonus_weight": 5.0},
    "F-PPO, known, weight 20": {**KNOWN, "weight": 20.0, "bonus_weight": 20.0},
    "F-PPO, known, ungated": {**KNOWN, "gated": False},
    "F-PPO, known, ungated, whole episodes": {
        **KNOWN,
        "gated": False,
        "weight": 5.0,
        "bonus_weight": 5.0,
        "parameters": {"horizon": TEST["lending"][1]},
    },
}
"""Further variants in lending: larger weights, and the distance of the distributions in the bank's records."""

CODED = ("parameters", "signals", "scaling", "delta", "value_weight", "decrease_weight", "weight", "bonus_weight")
"""The published code's settings for agents "as coded"; its networks and step sizes are only in the full scale."""

BACKBONE = ("lanes", "n_steps", "batch_size", "learning_rate", "trunk", "pi", "vf")
"""The published code's settings for all agents at the full scale."""

TOLERANCES: Mapping[World, Mapping[str, Any]] = {
    "lending": {"delta": 0.05, "limit": 0.05},
    "attention": {"delta": 0.1, "limit": 0.1},
    "epidemic": {"delta": 0.05, "limit": 0.05},
}
"""Tolerances of the paper, or of the published code if the paper gives none."""

AS_CODED = ", as coded"
LEARNED: Sequence[Label] = ("PPO", "A-PPO", "F-PPO")
"""The paper's learners, which are also tested with their most likely actions."""

STARTING_CASH = 10_000.0
LITTLE = 10.0  # a loss up to this percentage of the profit counts as little; our choice, the paper gives none
DRAWN: Mapping[World, Sequence[Label]] = {
    "lending": ("EO", "PPO", "A-PPO", "F-PPO", "F-PPO, as coded"),
    "attention": ("PPO-Lagrangian", "A-PPO", "PPO", "F-PPO", "F-PPO, as coded"),
    "epidemic": ("Max", "PPO", "A-PPO", "F-PPO", "F-PPO, as coded"),
}
"""The agents in the figures: those of the paper, with constrained PPO in place of CPO."""

TRAINING_HORIZON: Mapping[World, int] = {"lending": 2000, "attention": 1000, "epidemic": 20}


class Summary(NamedTuple):
    """A summary of a series: its mean from a time on, or its last value."""

    title: str
    series: str
    since: int | None  # None: the last step
    digits: int = 3


SUMMARIES: Mapping[World, Mapping[str, Summary]] = {
    "lending": {
        "short, as plotted": Summary("gap of mean rates, t >= 300", "short, as plotted", 300),
        "short": Summary("mean gap, t >= 300", "short", 300),
        "long, as plotted": Summary("transport between episodes, at the end", "long, as plotted", None),
        "long": Summary("1-Wasserstein distance of scores, at the end", "long", None),
        "utility": Summary("cash at the end", "utility", None, 0),
        "advantaged": Summary("mean score of the advantaged, at the end", "mean score, advantaged", None, 2),
        "disadvantaged": Summary("of the disadvantaged", "mean score, disadvantaged", None, 2),
    },
    "attention": {
        "short, as plotted": Summary("largest deviation of shares of units, whole episode", "short, as plotted", None),
        "short": Summary("of the last 300 steps, mean over t >= 300", "short", 300),
        "long, as plotted": Summary("largest deviation of rates, t >= 150", "long, as plotted", 150, 2),
        "long": Summary("total variation of rates from equal shares, t >= 150", "long", 150),
        "utility": Summary("reward a step, t >= 200", "utility", 200, 2),
        "rate": Summary("mean rate, t >= 200", "mean rate", 200, 2),
        "alive": Summary("episodes with incidents left, at the end", "incidents left", None, 2),
    },
    "epidemic": {
        "short, as plotted": Summary("gap of vaccinations per infection, t = 19", "short, as plotted", None, 2),
        "short": Summary("of effective vaccinations", "short", None, 2),
        "long, as plotted": Summary("transport between episodes, t = 19", "long, as plotted", None, 2),
        "long": Summary("total variation of health, t = 19", "long", None),
        "utility": Summary("share not infected, t = 19", "utility", None),
        "mean utility": Summary("share not infected, mean", "utility", 0),
    },
}
"""The columns of the tables."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of each cell, and of sets of test episodes of scripted agents.
        steps: Environment steps of a training, by process.
        tests: Number of test episodes of a cell, and of steps in each, by process.
        training: Other settings of the trainings; None: the published code's networks, rollouts and step sizes.
        more: Factor by which the longest trainings in lending have more steps.
    """

    seeds: int
    steps: Mapping[World, int]
    tests: Mapping[World, tuple[int, int]]
    training: Mapping[str, Any] | None = field(default_factory=dict)
    more: int = 3


SCALES: Mapping[str, Scale] = {
    "smoke": Scale(
        seeds=2,
        steps=dict.fromkeys(WORLDS, 4096),
        tests={"lending": (4, 400), "attention": (4, 100), "epidemic": (20, 20)},
    ),
    "small": Scale(seeds=5, steps=dict.fromkeys(WORLDS, 100_000), tests=TEST),
    "full": Scale(
        seeds=5,
        steps={"lending": 700_000, "attention": 2_000_000, "epidemic": 500_000},
        tests=TEST,
        training=None,
    ),
}


# ------------------------------------------------------------------------------------------------------ the cells


def learners(scale: Scale, world: World) -> dict[Label, dict[str, Any]]:
    """Return the learners of a process by name, as settings of `LongTermTraining`."""
    found = {name: {**TOLERANCES[world], **given} for name, given in LEARNERS.items()}
    for name, algorithm in (("PPO", "ppo"), ("A-PPO", "a-ppo"), ("F-PPO", "f-ppo")):
        coded = long_term_settings(ENV_IDS[world], preset="published", algorithm=algorithm)
        found[name + AS_CODED] = {"algorithm": algorithm, **{field: getattr(coded, field) for field in CODED}}
    if world == "lending":
        found |= {name: {**TOLERANCES[world], **given} for name, given in TRIED.items()}
        for name in ("PPO", "A-PPO", "F-PPO"):
            found[f"{name}, {scale.more} times the steps"] = {**found[name], "steps": scale.more * scale.steps[world]}
    return found


def training_of(scale: Scale, world: World, given: Mapping[str, Any], seed: int) -> LongTermTraining:
    """Return a training of a process."""
    settings = {
        "steps": scale.steps[world],
        "seed": seed,
        **(published_backbone(world) if scale.training is None else scale.training),
        **given,
        "parameters": {"horizon": TRAINING_HORIZON[world], **given.get("parameters", {})},
    }
    return LongTermTraining(env_id=ENV_IDS[world], **settings)


def published_backbone(world: World) -> dict[str, Any]:
    """Return the networks, rollouts and step sizes of the published code."""
    published = long_term_settings(ENV_IDS[world], preset="published")
    return {field: getattr(published, field) for field in BACKBONE}


def cells(scale: Scale) -> dict[tuple[World, Label], list[Job]]:
    """Return the study's cells: each agent on each process, with its seeds."""
    found: dict[tuple[World, Label], list[Job]] = {}
    for world in WORLDS:
        episodes, steps = scale.tests[world]
        shared: dict[str, Any] = {"world": world, "episodes": episodes, "steps": steps}
        for name in AGENTS[world]:
            found[world, name] = [ScriptedCell(name=name, seed=seed, **shared) for seed in range(scale.seeds)]
        for name, given in learners(scale, world).items():
            trainings = [training_of(scale, world, given, seed) for seed in range(scale.seeds)]
            most_probable = name in LEARNED
            found[world, name] = [LearnedCell(training=own, most_probable=most_probable, **shared) for own in trainings]
    return found


# ------------------------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class Arm:
    """An agent on a process.

    Attributes:
        tests: The series of its tests, one mapping per seed.
        training: The records of its trainings; empty for a scripted agent.
        seconds: Durations of the trainings.
    """

    tests: Sequence[Mapping[str, Series]]
    training: Sequence[Mapping[str, NDArray[Any]]] = ()
    seconds: Sequence[float] = ()

    def per_seed(self, summary: Summary) -> Floats:
        """Return a summary's number for each seed; NaN if undefined."""
        return np.array([summarised(test[summary.series], summary.since) for test in self.tests])

    def estimate(self, summary: Summary) -> Estimate:
        """Return a summary's mean over seeds."""
        return mean_interval(self.per_seed(summary))

    def against(self, other: "Arm", summary: Summary, *, level: float = 0.95) -> Estimate:
        """Return this arm's number minus the other's, paired by seed."""
        return paired_difference(self.per_seed(summary), other.per_seed(summary), level=level)

    def curve(self, series: str) -> figures.Curve:
        """Return a series as a curve, one row per seed."""
        return figures.Curve(self.tests[0][series].times, np.stack([test[series].values for test in self.tests]))


def summarised(course: Series, since: int | None) -> float:
    """Return the last value of a series, or the mean of its defined values from a time on."""
    if since is None:
        return float(course.values[-1])
    chosen = course.values[course.times >= min(since, course.times[-1])]
    known = chosen[np.isfinite(chosen)]
    return float(known.mean()) if len(known) else np.nan


ABLATED = ("PPO", "F-PPO", "F-PPO-L", "F-PPO-S")
SHIELDED = " behind its shield"
MOST_PROBABLE = ", likeliest actions"


def arms_of(results: Mapping[tuple[World, Label], Sequence[ProcessResult]]) -> dict[tuple[World, Label], Arm]:
    """Return the arms of the study; an agent with its shield, or with its most likely actions, is a separate arm."""
    found: dict[tuple[World, Label], Arm] = {}
    for (world, name), group in results.items():
        seconds = [result.seconds for result in group]
        training = [result.training for result in group if result.training]
        found[world, name] = Arm([series(world, result.open) for result in group], training, seconds)
        for suffix, tests in (
            (SHIELDED, [result.shielded for result in group]),
            (MOST_PROBABLE, [result.most_probable for result in group]),
        ):
            if all(tests):
                found[world, name + suffix] = Arm([series(world, test) for test in tests])
    return found


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of the study.

    Attributes:
        arms: The agents with their results.
    """

    paper = "hu2024"
    scales = SCALES

    arms: Mapping[tuple[World, Label], Arm]

    def of(self, world: World) -> dict[Label, Arm]:
        """Return the arms on a process."""
        return {name: arm for (place, name), arm in self.arms.items() if place == world}

    def write_numbers(self) -> None:
        """Write every agent's numbers."""
        numbers = {
            f"{world} {name}": {title: arm.estimate(summary) for title, summary in SUMMARIES[world].items()}
            for (world, name), arm in self.arms.items()
        }
        tables.write(self.out, numbers)

    # ------------------------------------------------------------------------------------------------- tables

    def table(self, world: World) -> str:
        """Return the agents' numbers, followed by the values of the paper's figures in brackets."""
        summaries = SUMMARIES[world]
        header = ["agent", *(f"{summary.title}" for summary in summaries.values())]
        rows = [
            [name, *(self._cell(world, name, arm, column) for column in summaries)]
            for name, arm in self.of(world).items()
        ]
        return tables.markdown(header, rows)

    def _cell(self, world: World, name: Label, arm: Arm, column: str) -> str:
        summary = SUMMARIES[world][column]
        shown = tables.show(arm.estimate(summary), digits=summary.digits)
        read = PLOTTED[world].get(name)
        field = {"short, as plotted": "short", "long, as plotted": "long", "utility": "utility"}.get(column)
        if read is None or field is None:
            return shown
        return f"{shown} (paper: {list(getattr(read, field).values())[-1]:g})"

    # ------------------------------------------------------------------------------------------------- claims

    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs."""
        return [
            self._short_claim(),
            self._lower_claim("lending", "long"),
            self._price_claim(),
            self._ablation_claim(),
            self._lower_claim("attention", "long"),
            self._lower_claim("epidemic", "long"),
            self._lower_claim("epidemic", "short", others=("PPO",)),
            *(self._lower_claim(world, "long", suffix=AS_CODED) for world in WORLDS),
            *(self._shield_claim(world) for world in WORLDS),
            self._tried_claim(),
        ]

    def _pairs(self, world: World, column: str) -> dict[str, Summary]:
        """Return a summary as plotted and as defined."""
        return {"as plotted": SUMMARIES[world][f"{column}, as plotted"], "truly": SUMMARIES[world][column]}

    def _short_claim(self) -> Claim:
        found = {
            way: {name: self.of("lending")[name].estimate(summary) for name in ("EO", "A-PPO", "F-PPO")}
            for way, summary in self._pairs("lending", "short").items()
        }
        return Claim(
            "In lending, EO, A-PPO and F-PPO keep short-term unfairness below 0.1.",
            verdict({way: all_of(below(e, 0.1) for e in values.values()) for way, values in found.items()}),
            _evidence("Gap", found),
        )

    def _lower_claim(
        self, world: World, column: str, *, others: Sequence[Label] = ("PPO", "A-PPO"), suffix: str = ""
    ) -> Claim:
        arms = self.of(world)
        found = {
            way: {
                f"F-PPO minus {other}": arms["F-PPO" + suffix].against(arms[other + suffix], summary)
                for other in others
            }
            for way, summary in self._pairs(world, column).items()
        }
        which = f" (all{suffix.removeprefix(',')})" if suffix else ""
        return Claim(
            f"In {world}, F-PPO has less {column}-term unfairness than {' and '.join(others)}{which}.",
            verdict({way: all_of(below(e, 0) for e in values.values()) for way, values in found.items()}),
            _evidence("Difference", found),
        )

    def _price_claim(self) -> Claim:
        arms, summary = self.of("lending"), SUMMARIES["lending"]["utility"]
        profits = {name: arms[name].per_seed(summary) - STARTING_CASH for name in ("PPO", "F-PPO")}
        lost = mean_interval(100 * (profits["PPO"] - profits["F-PPO"]) / np.abs(profits["PPO"]))
        return Claim(
            f"In lending, F-PPO's fairness costs little: at most {LITTLE:g} % of PPO's profit.",
            verdict({"cash": below(lost, LITTLE)}),
            f"Profit lost: {tables.show(lost, digits=1)} %",
        )

    def _ablation_claim(self) -> Claim:
        found = {world: self._ablation(world) for world in WORLDS}
        return Claim(
            "Massaging lowers the short-term unfairness of the training (F-PPO against F-PPO-L).",
            verdict({world: below(e, 0) for world, e in found.items()}),
            "Mean disparity in the second half of the training, F-PPO minus F-PPO-L: "
            + ", ".join(f"{world} {tables.show(e)}" for world, e in found.items()),
        )

    def _ablation(self, world: World) -> Estimate:
        arms = self.of(world)
        massaged, not_massaged = (second_half(arms[name], "short") for name in ("F-PPO", "F-PPO-L"))
        return paired_difference(massaged, not_massaged)

    def _shield_claim(self, world: World) -> Claim:
        arms = self.of(world)
        names = ("F-PPO", "F-PPO-S", "F-PPO, shield")
        found = {
            way: {name: arms[name + SHIELDED].against(arms[name], summary) for name in names}
            for way, summary in self._pairs(world, "short").items()
        }
        return Claim(
            f"In {world}, massaging kept at evaluation lowers short-term unfairness.",
            verdict({way: all_of(below(e, 0) for e in values.values()) for way, values in found.items()}),
            _evidence("Behind the shield minus without", found),
        )

    def _tried_claim(self) -> Claim:
        arms, summary = self.of("lending"), SUMMARIES["lending"]["long"]
        names = [name for name in arms if name.startswith("F-PPO") and AS_CODED not in name and name != "F-PPO"]
        level = 1 - 0.05 / (2 * len(names))  # Bonferroni: 95 % confidence for all intervals together
        found = {
            name: {
                other: arms[name].against(arms[other + _longer(name)], summary, level=level) for other in LEARNED[:2]
            }
            for name in names
        }
        return Claim(
            "In lending, a variant of F-PPO ends with a smaller true distance of the scores than PPO and A-PPO.",
            verdict({name: all_of(below(e, 0) for e in values.values()) for name, values in found.items()}),
            f"Intervals of {100 * level:.2f} %, for {2 * len(names)} comparisons. "
            + _evidence("Difference from", found),
        )

    # ----------------------------------------------------------------------------------------- figures and text

    def draw(self) -> None:
        """Save the figures."""
        columns = {"short": "short-term", "long": "long-term"}
        for world in WORLDS:
            arms = {name: arm for name, arm in self.of(world).items() if name in DRAWN[world]}
            panels, points = {}, {}
            for column, title in columns.items():
                for way in (f"{column}, as plotted", column):
                    label = f"{title} unfairness, {'as plotted' if way != column else 'truly'}"
                    panels[label] = {name: arm.curve(way) for name, arm in arms.items()}
                    if way != column:
                        points[label] = {name: getattr(read, column) for name, read in PLOTTED[world].items()}
            panels[UTILITY[world]] = {name: arm.curve("utility") for name, arm in arms.items()}
            points[UTILITY[world]] = {name: read.utility for name, read in PLOTTED[world].items()}
            figures.course_plot(panels, self.out / f"{world}.png", points=points)
        figures.course_plot(
            {
                f"{world}: {title}": {name: training_curve(self.of(world)[name], column) for name in ABLATED}
                for world in WORLDS
                for column, title in (("short", "mean disparity in a rollout"), ("deviation", "its deviation"))
            },
            self.out / "ablation.png",
            points={},
        )

    def text(self, claims: Sequence[Claim]) -> str:
        """Return the report as Markdown."""
        trained = [arm for arm in self.arms.values() if arm.training]
        trainings, seconds = sum(len(arm.seconds) for arm in trained), sum(sum(arm.seconds) for arm in trained)
        steps = ", ".join(f"{world} {count:,}" for world, count in self.scale.steps.items())
        tests = ", ".join(f"{world} {count} of {length:,} steps" for world, (count, length) in self.scale.tests.items())
        parts = [
            f"Made by `{self.command}`: {trainings} trainings ({seconds / max(trainings, 1):.0f} s each on one core), "
            f"{self.scale.seeds} seeds (0 to {self.scale.seeds - 1}), environment steps: {steps}. Test episodes of a "
            f"seed: {tests}. Brackets hold 95 % intervals over seeds (Student's t; differences are paired by seed). "
            'Values of the paper are read from its figures by eye, to about 2 % of an axis. "As plotted" is what the '
            "published figures show; the columns beside it are what the text says.",
            "## The paper's claims",
            *[f"**{claim.text}** {claim.verdict}\n\n{claim.evidence}." for claim in claims],
        ]
        for world in WORLDS:
            parts += [f"## {world.capitalize()} ({FIGURES[world]})", self.table(world), f"![{world}]({world}.png)"]
        parts += [
            "## The ablation (Fig. 2)",
            "Short-term disparity in the rollouts of the trainings, and its standard deviation within a rollout.",
            "![ablation](ablation.png)",
        ]
        return "\n\n".join(parts) + "\n"


def second_half(arm: Arm, column: str) -> Floats:
    """Return the mean of a recorded number over the second half of each training."""
    return np.array([np.nanmean(run[column][len(run[column]) // 2 :]) for run in arm.training])


def training_curve(arm: Arm, column: str) -> figures.Curve:
    """Return a recorded number over the environment steps of the trainings."""
    return figures.Curve(arm.training[0]["steps"].astype(np.int64), np.stack([run[column] for run in arm.training]))


def _longer(name: Label) -> Label:
    """Return the suffix of arms with the same number of steps."""
    trained = name.removesuffix(SHIELDED)
    return trained[trained.index(", ") :] if trained.endswith("times the steps") else ""


def _evidence(what: str, found: Mapping[str, Mapping[str, Estimate]]) -> str:
    """Return estimates as text."""
    return "; ".join(
        f"{what}, {way}: " + ", ".join(f"{name} {tables.show(e)}" for name, e in values.items())
        for way, values in found.items()
    )


main = study.Study(
    scales=SCALES,
    cells=cells,
    read=read_process,
    report=lambda name, scale, results, out: Report(name=name, scale=scale, arms=arms_of(results), out=out),
).run
