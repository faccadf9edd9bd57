"""La Malfa et al. (2025), "Fairness Aware Reinforcement Learning via Proximal Policy Optimization", arXiv 2502.03953.

The paper trains PPO and fair-PPO on the allelopathic harvest over a grid of weights (alpha, beta) for three penalties
and reports the price of fairness and one number for unfairness. The paper does not define this number. Its Table 1
is consistent with a raw difference of group totals divided by the largest one in the set of runs, not with a ratio.
Every claim is therefore tested with three metrics.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from fair_envs.baselines.ppo.fair_ppo import ModeName
from fair_envs.baselines.training import Training
from fair_envs.experiments import tables
from fair_envs.experiments.tables import listed
from fair_envs.metrics import Estimate, mean_interval, paired_difference, price_of_fairness
from fair_envs.reproduction import figures, study
from fair_envs.reproduction.claims import Claim, all_of, exceeds, verdict, within
from fair_envs.reproduction.experiment import Cell, Result, read_result
from fair_envs.reproduction.measures import Arm, largest_absolute

Notion = Literal["dp", "csp", "cf"]  # the notions that are penalised, by their short names
Variant = ModeName | Literal["own credit"]  # a mode, or "shaped" with own credit
Point = tuple[Notion, Variant, float, float]  # penalty, variant, alpha, beta
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
PENALTIES: tuple[Notion, ...] = ("dp", "csp", "cf")
DIAGONAL = ((0.25, 0.25), (0.5, 0.5), (1.0, 1.0))
VARIANTS: tuple[Variant, ...] = ("own credit", "weighted", "p3o", "paper_literal", "authors")
ACTIONS = ("stay", "up", "down", "left", "right", "ripen/eat", "recolour", "obstruct")
GROUPS = ("full speed", "half speed")
FORMS = ("ratio", "difference")
HIGH = 0.75  # weights of at least this count as high
MARGIN = 10  # percentage points within which prices count as similar; our choice, the paper gives none

PAPER_TABLE_1: dict[Notion, dict[tuple[float, float], tuple[float, float, tuple[float, ...]]]] = {
    # penalty: (alpha, beta): price in % for non-sensitive, for sensitive, unfairness (two values: the two preferences)
    "dp": {
        (0.0, 0.25): (-56, -53, (0.23,)),
        (0.5, 0.5): (-52, -50, (0.26,)),
        (1.0, 1.0): (-47, -47, (0.29,)),
        (0.25, 0.25): (-45, -44, (0.29,)),
    },
    "csp": {
        (0.75, 0.25): (-57, -54, (0.15, 0.14)),
        (1.0, 0.0): (-57, -55, (0.15, 0.15)),
        (0.5, 1.0): (-56, -54, (0.15, 0.14)),
        (1.0, 1.0): (-47, -46, (0.17, 0.19)),
    },
    "cf": {
        (1.0, 1.0): (-38, -42, (0.25,)),
        (0.75, 0.5): (-33, -39, (0.28,)),
        (0.0, 0.75): (5, 18, (0.41,)),
        (0.25, 0.75): (1, 5, (0.44,)),
    },
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of each cell.
        steps: Agent steps of each training.
        horizon: Steps of an episode, in training and test.
        episodes: Number of test episodes of each cell.
        points: Weights (alpha, beta) of each penalty in the mode ``shaped``.
        variants: Other modes, run at (1, 1) with the penalty on demographic parity.
        curve: Weights alpha at which the penalty on demographic parity is run with beta = 0.
        training: Other settings of the training.
        parameters: Other parameters of the environment.
    """

    seeds: int
    steps: int
    horizon: int
    episodes: int
    points: Sequence[tuple[float, float]]
    variants: Sequence[Variant] = ()
    curve: Sequence[float] = ()
    training: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)


SMALL: Mapping[str, Any] = {"lanes": 8, "n_steps": 100, "batch_size": 4096}
SCALES: dict[str, Scale] = {
    "smoke": Scale(
        seeds=2, steps=96_000, horizon=100, episodes=4, points=((1.0, 1.0),), curve=(0.0, 1.0), training=SMALL
    ),
    "small": Scale(
        seeds=5,
        steps=1_280_000,  # 107 episodes of 40 agents: about 35 minutes on two cores
        horizon=300,
        episodes=50,
        points=DIAGONAL,
        variants=VARIANTS,
        curve=(0.0, 0.25, 0.5, 1.0, 2.0, 4.0),
        training=SMALL,
    ),
    "full": Scale(
        seeds=5,
        steps=120_000_000,  # 1000 episodes of 3000 steps of 40 agents, as in the paper
        horizon=3000,
        episodes=1000,
        points=tuple(product(GRID, GRID)),
        variants=VARIANTS,
        curve=(0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0),
        training={"lanes": 8, "n_steps": 250, "batch_size": 16_384},
    ),
}


def cells(scale: Scale) -> dict[Point, list[Cell]]:
    """Return the study's cells: each penalty, mode and pair of weights with its training seeds."""
    weights = ((0.0, 0.0), *scale.points)
    points: list[Point] = [(penalty, "shaped", alpha, beta) for penalty in PENALTIES for alpha, beta in weights]
    points += [("dp", variant, 1.0, 1.0) for variant in scale.variants]
    points += [("dp", "shaped", alpha, 0.0) for alpha in scale.curve]
    return {point: [cell(scale, point, seed) for seed in range(scale.seeds)] for point in dict.fromkeys(points)}


def cell(scale: Scale, point: Point, seed: int) -> Cell:
    """Return one cell; with weights of 0, fair-PPO equals PPO bit for bit, and the penalty only selects the worlds."""
    penalty, variant, alpha, beta = point
    if (alpha, beta) == (0.0, 0.0) and penalty == "csp":
        penalty = "dp"  # the same training
    training = Training(
        env_id="FairHarvest-v0",
        parameters={**scale.parameters, "horizon": scale.horizon},
        algorithm="fair-ppo",
        steps=scale.steps,
        penalty=penalty,
        mode="shaped" if variant == "own credit" else variant,
        credit="own" if variant == "own credit" else "common",
        alpha=alpha,
        beta=beta,
        seed=seed,
        **scale.training,
    )
    return Cell(training=training, episodes=scale.episodes)


def label_of(point: Point) -> str:
    """Return the name of an arm in tables and plots."""
    _, variant, alpha, beta = point
    if (alpha, beta) == (0.0, 0.0):
        return "PPO"
    return f"({alpha:g}, {beta:g})" if variant == "shaped" else f"{variant} ({alpha:g}, {beta:g})"


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of a study.

    Attributes:
        arms: The methods with their results.
    """

    paper = "lamalfa2025"
    scales = SCALES

    arms: Mapping[Point, Arm]

    def classic(self, penalty: Notion) -> Arm:
        """Return PPO in the worlds of a penalty."""
        return self.arms[(penalty, "shaped", 0.0, 0.0)]

    def fair(self, penalty: Notion) -> dict[Point, Arm]:
        """Return the fair arms of a penalty in the mode ``shaped``, at the points of the scale."""
        return {
            (penalty, "shaped", point[0], point[1]): self.arms[(penalty, "shaped", point[0], point[1])]
            for point in self.scale.points
            if point != (0.0, 0.0)
        }

    def drawn(self, penalty: Notion) -> list[Arm]:
        """Return the arms of a penalty for one plot: PPO and those with equal weights."""
        return [self.classic(penalty), *(arm for point, arm in self.fair(penalty).items() if point[2] == point[3])]

    def unfairness(self, penalty: Notion, form: str) -> list[str]:
        """Return the names of a penalty's numbers: one, or one for each preference."""
        return [f"csp_{form}[red]", f"csp_{form}[blue]"] if penalty == "csp" else [f"{penalty}_{form}"]

    def write_numbers(self) -> None:
        """Write every arm's numbers."""
        tables.write(
            self.out, {f"{point[0]} {arm.label}": self.numbers(point, arm) for point, arm in self.arms.items()}
        )

    def numbers(self, point: Point, arm: Arm) -> dict[str, Estimate]:
        """Return an arm's numbers: means, absolute means, price of fairness and difference from PPO."""
        classic = self.classic(point[0])
        found = {name: arm.estimate(name) for name in arm.names()}
        for name in [name for name in arm.names() if "ratio" in name or "difference" in name]:
            found[f"|{name}|"] = arm.estimate(name, absolute=True)
            found[f"|{name}| minus PPO's"] = arm.against(classic, name, absolute=True)
        for name in ("return[without]", "return[with]", "game[without]", "game[with]"):
            found[f"price of {name} %"] = arm.price(classic, name)
        return found

    # ------------------------------------------------------------------------------------------- tables

    def paper_table(self) -> str:
        """Return Table 1 of the paper beside our numbers."""
        header = ["penalty", "(alpha, beta)", "paper: price N / S, unfairness", "price N %", "price S %"]
        header += ["ratio", "difference per agent and step", "max-abs scaled"]
        rows = []
        for penalty in PENALTIES:
            arms = {(0.0, 0.0): self.classic(penalty)} | {p[2:]: arm for p, arm in self.fair(penalty).items()}
            for point in dict.fromkeys([*arms, *PAPER_TABLE_1[penalty]]):
                rows.append(
                    [penalty, f"({point[0]:g}, {point[1]:g})" if any(point) else "PPO", self._paper(penalty, point)]
                )
                rows[-1] += self._ours(penalty, arms[point]) if point in arms else ["not run"] * 5
        return tables.markdown(header, rows)

    def _paper(self, penalty: Notion, point: tuple[float, ...]) -> str:
        entry = PAPER_TABLE_1[penalty].get((point[0], point[1]))
        if entry is None:
            return ""
        without, having, unfairness = entry
        return f"{without:+g} % / {having:+g} %, {', '.join(f'{u:.2f}' for u in unfairness)}"

    def _ours(self, penalty: Notion, arm: Arm) -> list[str]:
        classic = self.classic(penalty)
        game = "game" if penalty == "cf" else "return"
        row = [
            "0" if arm is classic else tables.show(arm.price(classic, f"{game}[{group}]"), digits=1)
            for group in ("without", "with")
        ]
        for form in ("ratio", "difference"):
            row.append("; ".join(tables.show(arm.estimate(n, absolute=True)) for n in self.unfairness(penalty, form)))
        row.append("; ".join(tables.show(self.scaled(penalty, arm, n)) for n in self.unfairness(penalty, "total")))
        return row

    def scaled(self, penalty: Notion, arm: Arm, name: str) -> Estimate:
        """Return the mean absolute raw difference over the largest one of the penalty's arms (`shaped` and PPO)."""
        reference = [self.classic(penalty), *self.fair(penalty).values()]
        largest = largest_absolute(reference, self.unfairness(penalty, "total"))
        return mean_interval(arm.per_seed(name, absolute=True) / largest)

    def modes_table(self) -> str:
        """Return the results of the modes at (1, 1) with the penalty on demographic parity."""
        header = ["mode", "return N", "return S", "ratio", "ratio minus PPO's", "price N %", "price S %"]
        classic = self.classic("dp")
        chosen = {"PPO": classic, "shaped (1, 1)": self.arms[("dp", "shaped", 1.0, 1.0)]}
        chosen |= {self.arms[p].label: self.arms[p] for p in self.arms if p[1] != "shaped"}
        rows: list[list[tables.Cell]] = [
            [
                label,
                arm.estimate("return[without]"),
                arm.estimate("return[with]"),
                arm.estimate("dp_ratio", absolute=True),
                "" if arm is classic else arm.against(classic, "dp_ratio", absolute=True),
                "" if arm is classic else tables.show(arm.price(classic, "return[without]"), digits=1),
                "" if arm is classic else tables.show(arm.price(classic, "return[with]"), digits=1),
            ]
            for label, arm in chosen.items()
        ]
        return tables.markdown(header, rows)

    def twins_table(self) -> str:
        """Return the effect of flipping the attribute of all agents that have it, in the ordinary game."""
        header = [
            "penalty",
            "(alpha, beta)",
            "networks of the new group",
            "networks of the old group (attribute alone)",
        ]
        rows: list[list[tables.Cell]] = [
            [penalty, arm.label, arm.estimate("twin_own"), arm.estimate("twin_same")]
            for (penalty, *_), arm in self.arms.items()
        ]
        return tables.markdown(header, rows)

    def trend_table(self) -> str:
        """Return whether the disparity still rose at the end of the trainings."""
        header = ["penalty", "(alpha, beta)", "rise in the second half"]
        return tables.markdown(header, [[penalty, arm.label, arm.trend()] for (penalty, *_), arm in self.arms.items()])

    # ------------------------------------------------------------------------------------------- claims

    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs."""
        return [
            self._reduction_claim(),
            self._conditional_claim(),
            self._counterfactual_claim(),
            self._price_claim(),
        ]

    def _reductions(self, penalty: Notion, form: str) -> dict[str, Estimate]:
        """Return the percentage by which each point reduces the absolute number, for each of the penalty's numbers."""
        classic = self.classic(penalty)
        return {
            f"{arm.label}{name[name.find('[') :] if '[' in name else ''}": arm.reduction(classic, name)
            for arm in self.fair(penalty).values()
            for name in self.unfairness(penalty, form)
        }

    def _reduction_claim(self) -> Claim:
        found = {form: self._reductions("dp", form) for form in FORMS}
        best = {form: max(values.values(), key=lambda e: e.value) for form, values in found.items()}
        return Claim(
            "Fair-PPO reduces demographic disparity by up to 50 to 60 %.",
            verdict({form: exceeds(e, 50) for form, e in best.items()}),
            _evidence(found),
        )

    def _conditional_claim(self) -> Claim:
        found = {form: self._reductions("csp", form) for form in FORMS}
        return Claim(
            "Conditional statistical parity improves in both preference groups, everywhere on the grid.",
            verdict(
                {
                    f"{form}, at the {len(self.fair('csp'))} points run": all_of(exceeds(e, 0) for e in values.values())
                    for form, values in found.items()
                }
            ),
            _evidence(found),
        )

    def _counterfactual_claim(self) -> Claim:
        found = {form: self._reductions("cf", form) for form in FORMS}
        holds = {}
        for form, values in found.items():
            improves = {p[2:]: exceeds(values[label_of(p)], 0) for p in self.fair("cf")}
            high = [ok for weights, ok in improves.items() if min(weights) >= HIGH]
            low = [ok for weights, ok in improves.items() if min(weights) < HIGH]
            both_sides = bool(high and low) or None
            holds[form] = all_of([both_sides, *high, *(None if ok is None else not ok for ok in low)])
        return Claim("Counterfactual fairness improves only at high weights.", verdict(holds), _evidence(found))

    def _price_claim(self) -> Claim:
        gaps = {
            f"{penalty} {arm.label}": self.price_gap(penalty, arm)
            for penalty in PENALTIES
            for arm in self.fair(penalty).values()
        }
        metric = f"within {MARGIN} percentage points"
        return Claim(
            "The price of fairness is similar for both groups.",
            verdict({metric: all_of(within(gap, MARGIN) for gap in gaps.values())}),
            "Price for N minus price for S, in percentage points: " + listed(gaps, digits=0),
        )

    def price_gap(self, penalty: Notion, arm: Arm) -> Estimate:
        """Return the price for the group without the attribute minus that for the other, paired by training seed."""
        kind = "game" if penalty == "cf" else "return"
        prices = (
            price_of_fairness(arm.per_seed(f"{kind}[{g}]"), self.classic(penalty).per_seed(f"{kind}[{g}]"))
            for g in ("without", "with")
        )
        return paired_difference(*prices)

    # ------------------------------------------------------------------------------------- figures and text

    def draw(self) -> None:
        """Save the figures."""
        panels: dict[str, tuple[Notion, str]] = {
            "demographic parity": ("dp", "dp_{}"),
            "parity among red": ("csp", "csp_{}[red]"),
            "parity among blue": ("csp", "csp_{}[blue]"),
            "counterfactual": ("cf", "cf_{}"),
        }
        for form, label in (("ratio", "ratio (N - S) / (N + S)"), ("difference", "difference per agent and step")):
            boxes = {
                title: {
                    arm.label: arm.pooled(name.format(form))
                    for arm in (self.classic(penalty), *self.fair(penalty).values())
                }
                for title, (penalty, name) in panels.items()
            }
            figures.box_plot(boxes, self.out / f"boxes-{form}.png", label=label, bold="PPO")
        for penalty in PENALTIES:
            figures.radar_plot(self.drawn(penalty), self.out / f"radar-{penalty}.png", actions=ACTIONS, groups=GROUPS)
        titles = {"dp": "demographic parity", "csp": "conditional parity (all agents)", "cf": "the two games"}
        figures.learning_plot({titles[p]: self.drawn(p) for p in PENALTIES}, self.out / "learning.png")
        if self.scale.curve:
            curve = {alpha: self.arms[("dp", "shaped", alpha, 0.0)] for alpha in self.scale.curve}
            figures.curves(curve, self.out / "alpha.png", label="alpha (beta = 0)")

    def text(self, claims: Sequence[Claim]) -> str:
        """Return the report as Markdown."""
        s = self.scale
        results = [result for arm in self.arms.values() for result in arm.results]
        distinct = {json.dumps(result.cell, sort_keys=True): result.seconds for result in results}
        trainings, seconds = len(distinct), sum(distinct.values())
        parts = [
            f"Made by `{self.command}`: {trainings} trainings, {s.seeds} seeds (0 to {s.seeds - 1}) a cell, "
            f"{s.steps:,} agent steps each ({seconds / trainings:.0f} s on one core), episodes of {s.horizon} steps, "
            f"{s.episodes} test episodes a cell. Brackets hold 95 % intervals over training seeds (Student's t; "
            "differences and prices are paired by seed). N: agents at full speed; S: agents with the sensitive "
            "attribute, at half speed. Unfairness is the mean over test episodes of the absolute value. Max-abs "
            "scaling divides by the largest absolute raw difference of group totals in any test episode of PPO and of "
            "the `shaped` arms of the same penalty; all arms are divided by one number, so that it falls by the same "
            "percentage as the raw difference.",
            "## The paper's table beside ours",
            self.paper_table(),
            "## The paper's claims",
            *[f"**{c.text}** {c.verdict}\n\n{c.evidence}." for c in claims],
            "## Other modes at (1, 1), demographic parity",
            self.modes_table(),
            "## Twins: the effect of flipping the attribute of all agents that have it",
            "Mean reward per agent and step of the flipped agents in the counterfactual minus the factual episode.",
            self.twins_table(),
            "## Whether the trainings had converged",
            "Rise of the ratio of the groups' rewards in the rollouts over the second half of the training (slope of a "
            "straight line times half the training).",
            self.trend_table(),
            "## Figures",
            "Boxes show test episodes of all training seeds; radar plots the shares of selected and of executed "
            "actions; learning curves the ratio in the rollouts of the training. Radar plots and learning curves show "
            "PPO and the arms with equal weights.",
            *[f"![{path.stem}]({path.name})" for path in sorted(self.out.glob("*.png"))],
        ]
        return "\n\n".join(parts) + "\n"


def _evidence(found: Mapping[str, Mapping[str, Estimate]]) -> str:
    return "Reduction of the " + "; of the ".join(
        f"{form}: {listed(values, digits=0, unit=' %')}" for form, values in found.items()
    )


def arms_of(scale: Scale, results: Mapping[Point, Sequence[Result]]) -> dict[Point, Arm]:
    """Return the arms of the study."""
    return {point: Arm(label_of(point), group, scale.horizon) for point, group in results.items()}


main = study.Study(
    scales=SCALES,
    cells=cells,
    read=read_result,
    report=lambda name, scale, results, out: Report(name=name, scale=scale, arms=arms_of(scale, results), out=out),
).run
