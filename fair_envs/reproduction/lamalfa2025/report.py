"""La Malfa et al. (2025), "Fairness Aware Reinforcement Learning via Proximal Policy Optimization", arXiv 2502.03953.

The paper trains PPO and fair-PPO on the allelopathic harvest over a grid of weights (alpha, beta) for three penalties
and reports the price of fairness and one number for unfairness. The paper does not define this number. Its Table 1
is consistent with a raw difference of group totals divided by the largest one in the set of runs, not with a ratio.
Claims are therefore tested with the ratio and with the difference. The plan of the study is in
``docs/reproduction/lamalfa2025/plan.md``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fair_envs.experiments import figures, tables
from fair_envs.experiments.seeds import Arm, Curve
from fair_envs.experiments.tables import listed
from fair_envs.metrics import Estimate, disparity_ratio, mean_interval
from fair_envs.metrics.inference import welch
from fair_envs.metrics.intervals import summed_interval
from fair_envs.reproduction import study
from fair_envs.reproduction.claims import (
    ByRow,
    Claim,
    Measured,
    Outcome,
    both,
    by_row,
    everywhere_above,
    everywhere_below,
    everywhere_within,
    somewhere_above,
)
from fair_envs.reproduction.lamalfa2025.jobs import (
    ALONE,
    OBSERVATIONS,
    PARTS,
    PENALTIES,
    PPO,
    SCALES,
    UNTRAINED,
    Notion,
    Observation,
    Point,
    Scale,
    Weights,
    cells,
    numbers_of,
)
from fair_envs.reproduction.lamalfa2025.published import AGENTS, EPISODES, HORIZON, TABLE_1
from fair_envs.reproduction.measures import GROUPS
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture, Size

FORMS = ("ratio", "difference")
METHODS = {PRINTED: "paper_literal", REPAIRED: "shaped"}  # the mode of each method that gets a verdict
HIGH, LOW = 0.5, 0.25  # both weights at least this are high, (0.5, 0.5) apart; a weight of at most this is low
MARGINS = {"price": 10.0, "low weights": 10.0, "component": 5.0, "trend": 0.05, "actions": 0.1}
"""Percentage points between prices; percent of reduction; slope of the ratio; total variation. See the plan."""


Test = Callable[[Mapping[str, Estimate]], Outcome]


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of the study; the keys of the arms are points, or names of policies."""

    paper = "lamalfa2025"
    scales = SCALES

    # --------------------------------------------------------------------------------------------- arms

    def ppo(self, observation: Observation, penalty: Notion) -> Arm:
        """Return PPO in the worlds of a penalty."""
        return self.arms[Point(observation, penalty, "shaped", *PPO)]

    def fair(self, observation: Observation, penalty: Notion, variant: str = "shaped") -> dict[Weights, Arm]:
        """Return the arms of a penalty in a mode by their weights, without PPO."""
        return {
            key.weights: arm
            for key, arm in self.arms.items()
            if isinstance(key, Point)
            and (key.observation, key.penalty, key.variant) == (observation, penalty, variant)
            and key.weights != PPO
            and key.alpha <= 1
        }

    def reductions(self, observation: Observation, penalty: Notion, form: str, variant: str) -> dict[str, Estimate]:
        """Return by how many percent each point reduces unfairness, for each of the penalty's numbers."""
        classic = self.ppo(observation, penalty)
        return {
            _name(weights) + name[name.find("[") :].rstrip("|") * ("[" in name): arm.reduction(classic, name)
            for weights, arm in self.fair(observation, penalty, variant).items()
            for name in _unfairness(penalty, form)
        }

    def price_gaps(self, observation: Observation, variant: str) -> dict[str, Estimate]:
        """Return the price for full speed minus that for half speed at each point, in percentage points."""
        found = {}
        for penalty in PENALTIES:
            classic, kind = self.ppo(observation, penalty), _kind(penalty)
            for weights, arm in self.fair(observation, penalty, variant).items():
                prices = [arm.price(classic, f"{kind}[{group}]") for group in GROUPS]
                found[f"{penalty} {_name(weights)}"] = _price_gap(arm, classic, kind, prices)
        return found

    # ------------------------------------------------------------------------------------------- claims

    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs."""
        return [
            self._largest_reduction(),
            self._conditional(),
            self._counterfactual(),
            self._trend(),
            self._price(),
            self._components(),
            self._alike(),
        ]

    def _claim(self, measured: Measured, test: Test, **words: str) -> Claim:
        """Return a claim whose test is made in each panel, for each method."""
        judged = measured.outcomes(test)
        return Claim(outcomes={method: judged.get(method, {}) for method in METHODS}, measured=measured, **words)

    def _by_method(self, numbers: Callable[[Observation, str], Mapping[str, Estimate]]) -> dict[str, ByRow]:
        """Return a panel for each observation, with the numbers of both methods.

        Args:
            numbers: Function from an observation and a mode to the numbers by row.
        """
        return {
            seen: by_row({method: numbers(seen, variant) for method, variant in METHODS.items()})
            for seen in OBSERVATIONS
        }

    def _reductions(self, penalty: Notion, bounds: tuple[float, ...]) -> Measured:
        """Return the reductions of a penalty's numbers, with a panel for each form and observation."""

        def of(form: str) -> dict[str, ByRow]:
            return self._by_method(lambda seen, variant: self.reductions(seen, penalty, form, variant))

        panels = {f"{seen} {form}": rows for form in FORMS for seen, rows in of(form).items()}
        return Measured(label="reduction of unfairness, in percent", bounds=bounds, panels=panels, digits=0)

    def _largest_reduction(self) -> Claim:
        return self._claim(
            self._reductions("dp", (50,)),
            lambda found: somewhere_above(found, 50),
            text="Fair-PPO reduces demographic disparity by up to 50 to 60 %.",
            refuted="A reduction below 50 % at every point.",
            earlier="holds",
            reason="The earlier verdict was about the repaired method only, with one observation.",
        )

    def _conditional(self) -> Claim:
        return self._claim(
            self._reductions("csp", (0,)),
            lambda found: everywhere_above(found, 0),
            text="Conditional statistical parity improves in both preference groups, everywhere on the grid.",
            refuted="A point at which the disparity within one preference grows.",
            earlier="holds at 3 points",
            reason="Four more points, the second observation, and the printed method.",
        )

    def _counterfactual(self) -> Claim:
        def only_high(found: Mapping[str, Estimate]) -> Outcome:
            high = {name: e for name, e in found.items() if _lowest(name) >= HIGH and name != _name((HIGH, HIGH))}
            low = {name: e for name, e in found.items() if _lowest(name) <= LOW}
            return both([everywhere_above(high, 0), everywhere_below(low, MARGINS["low weights"])])

        return self._claim(
            self._reductions("cf", (0, MARGINS["low weights"])),
            only_high,
            text="Counterfactual fairness improves only at high weights.",
            refuted=f"A point with a weight of at most {LOW} that reduces the disparity by more than "
            f"{MARGINS['low weights']:g} %, or no reduction at a point whose weights are higher.",
            earlier="does not hold",
            reason="More points, the second observation, and the printed method.",
        )

    def _trend(self) -> Claim:
        def slopes(seen: Observation) -> dict[str, Estimate]:
            return {
                f"{penalty} {weight}": slope
                for penalty in PENALTIES
                for weight, slope in self.slopes(seen, penalty).items()
            }

        margin = MARGINS["trend"]
        return self._claim(
            Measured(
                label="slope of the ratio against each weight",
                bounds=(-margin, margin),
                panels={seen: by_row({REPAIRED: slopes(seen)}) for seen in OBSERVATIONS},
                digits=2,
            ),
            lambda found: everywhere_within(found, margin),
            text="There is no trend in alpha or in beta.",
            refuted=f"A slope that is shown to be outside {margin} of 0.",
            reason="There was no verdict. The printed method was run at too few points for slopes.",
        )

    def slopes(self, observation: Observation, penalty: Notion) -> dict[str, Estimate]:
        """Return the coefficients of the linear regression of the ratio on alpha and beta over the penalty's points.

        The regression is over the means of the arms; a coefficient is a weighted sum of them, with Welch's interval.
        """
        arms = {PPO: self.ppo(observation, penalty), **self.fair(observation, penalty)}
        columns = np.array([(1.0, *weights) for weights in arms])
        if np.linalg.matrix_rank(columns) < 3:
            return {}
        means = [_mean_of(arm, _unfairness(penalty, "ratio")) for arm in arms.values()]
        found = {}
        for name, row in zip(("alpha", "beta"), np.linalg.pinv(columns)[1:], strict=True):
            parts = [(float(w * e.standard_error) ** 2, e.n - 1.0) for w, e in zip(row, means, strict=True)]
            value = float(sum(w * e.value for w, e in zip(row, means, strict=True)))
            found[name] = summed_interval(value, parts, n=min(e.n for e in means))
        return found

    def _price(self) -> Claim:
        margin = MARGINS["price"]
        return self._claim(
            Measured(
                label="price for full speed minus price for half speed, in percentage points",
                bounds=(-margin, margin),
                panels=self._by_method(self.price_gaps),
                digits=0,
            ),
            lambda found: everywhere_within(found, margin),
            text="The price of fairness is similar for both groups.",
            refuted=f"A point at which the prices differ by more than {margin:g} percentage points.",
            earlier="does not hold",
            reason="More points, the second observation, and the printed method.",
        )

    def _components(self) -> Claim:
        def alone(seen: Observation) -> dict[str, Estimate]:
            arms, classic = self.fair(seen, "dp"), self.ppo(seen, "dp")
            return {_name(w): arms[w].reduction(classic, "|dp_ratio|") for w in ALONE if w in arms}

        return self._claim(
            Measured(
                label="reduction of the ratio by each component without the other, in percent",
                bounds=(0, MARGINS["component"]),
                panels={seen: by_row({REPAIRED: alone(seen)}) for seen in OBSERVATIONS},
                digits=0,
            ),
            _contribute,
            text="Both components of the penalty contribute.",
            evidence="As printed, the component with alpha has no gradient.",
            refuted=f"A component whose reduction is within {MARGINS['component']:g} % of 0, or below it.",
            reason="There was no verdict, because beta was never run without alpha.",
        )

    def _alike(self) -> Claim:
        def distances(seen: Observation, variant: str) -> dict[str, Estimate]:
            return {
                f"{penalty} {_name(weights)}": arm.estimate("selected, total variation")
                for penalty in PENALTIES
                for weights, arm in self.fair(seen, penalty, variant).items()
            }

        return self._claim(
            Measured(
                label="total variation distance between the groups' shares of selected actions",
                bounds=(MARGINS["actions"],),
                panels=self._by_method(distances),
                digits=2,
            ),
            lambda found: everywhere_below(found, MARGINS["actions"]),
            text="The groups behave alike.",
            refuted=f"A point at which the distance is above {MARGINS['actions']}.",
            reason="There was no verdict.",
        )

    # ------------------------------------------------------------------------------------------- the page

    def question(self) -> str:
        """Return what the paper claims."""
        return (
            "Fair-PPO subtracts a penalty on the disparity between two groups of agents from PPO's objective. The "
            "weight alpha is that of the disparity of past rewards, beta that of the disparity of predicted values. "
            "The paper reports, for three notions of fairness, that it halves the disparity at a similar price for "
            "both groups."
        )

    def runs(self) -> str:
        """Return what was run, and what the numbers mean."""
        s = self.scale
        return (
            f"Harvest with episodes of {s.horizon} steps and two observations: `ten` (ten numbers, as in the published "
            "code) and `extended` (also the four neighbouring cells). The method as printed is the mode "
            f"`paper_literal`; our repair is the mode `shaped`. Each arm has {s.seeds} training seeds, and each "
            f"training has {s.episodes} test episodes of its own. Brackets hold 95 % intervals over training seeds. "
            "Arms are compared with Welch's t, prices and reductions with its delta method, and nothing is paired. N: "
            "agents at full speed; S: agents with the sensitive attribute, at half speed. The ratio is (N - S) / (N + "
            "S) of the group totals, the difference is per agent and step. Unfairness is the mean absolute value over "
            "test episodes: 0 is fair, and half the turns alone give a ratio of 1/3. The noise floor is that number if "
            "the attribute is dealt at random.\n\n"
            "No weight of the paper corresponds to ours. As printed, the term with alpha has no gradient; in the "
            "published code alpha and beta cancel. In our repair, costs are multiplied by the group's size, so that at "
            "alpha = 1 an agent of the group ahead gains nothing from its own reward: the jump between 0.5 and 1 is a "
            "property of this unit."
        )

    def sizes(self) -> list[Size]:
        """Return our scale beside the paper's."""
        s = self.scale
        return [
            Size("training seeds of an arm", s.seeds, 1),
            Size("agent steps of a training", s.steps, EPISODES * HORIZON * AGENTS),
            Size("training episodes", round(s.steps / AGENTS / s.horizon), EPISODES),
            Size("steps of an episode", s.horizon, HORIZON),
            Size("test episodes of an arm", s.episodes * s.seeds, EPISODES),
            Size("points of the grid, all penalties", sum(map(len, s.points.values())) + len(PENALTIES), 75),
            Size("observations", len(OBSERVATIONS), 1),
        ]

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        return {
            "The observation decides the conclusion": self.observations_table(),
            **{f"The paper's table beside ours, observation `{seen}`": self.paper_table(seen) for seen in OBSERVATIONS},
            "Who pays": (
                "The fall of the difference is the loss of N plus the gain of S. A share above 100 % means that S "
                "loses as well.\n\n" + self.levelling_table()
            ),
            "Trained arms minus the greedy rule": (
                "The rule sees the whole state. A positive difference of rewards, and a negative one of the ratio, is "
                "in favour of the trained arm.\n\n" + self.greedy_table()
            ),
            "Twins: the effect of flipping the attribute of all agents that have it": (
                "Mean reward per agent and step of the flipped agents in the counterfactual minus the factual "
                "episode.\n\n" + self.twins_table()
            ),
            "Whether the trainings had converged": (
                "Rise of the ratio in the rollouts over the second half of the training (slope of a straight line "
                "times half the training).\n\n" + self.trend_table()
            ),
        }

    def observations_table(self) -> str:
        """Return PPO, the published code and policies without training, with both observations."""
        header = ["policy", "observation", "reward N", "reward S", "ratio", "noise floor", "difference", "n"]
        rows: list[list[tables.Cell]] = []
        shown = {(name, "any"): self.arms[name] for name in UNTRAINED}
        shown |= {("PPO", seen): self.ppo(seen, "dp") for seen in (*OBSERVATIONS, *PARTS)}
        shown |= {
            (point.label, point.observation): arm
            for point, arm in self.arms.items()
            if isinstance(point, Point) and point.variant not in ("shaped", "paper_literal")
        }
        for (name, seen), arm in shown.items():
            rows.append([name, seen, *self._level(arm), str(arm.seeds)])
        text = tables.markdown(header, rows)
        changes = {
            f"`{seen}`": self.ppo(seen, "dp").minus(self.ppo("ten", "dp"), "|dp_ratio|")
            for seen in ("extended", *PARTS)
        }
        return (
            "`extended` adds the four neighbouring cells to `ten`, and three numbers on timing: whether the agent is "
            "frozen, whether it has this turn, and how much of the episode has passed. `neighbours` and `timing` add "
            "one of these parts; only PPO was run with them. PPO's ratio minus that with `ten` (Welch): "
            f"{listed(changes)}.\n\n{text}"
        )

    def _level(self, arm: Arm) -> list[tables.Cell]:
        return [
            arm.estimate("return[without]"),
            arm.estimate("return[with]"),
            arm.estimate("|dp_ratio|"),
            f"{arm.estimate('noise |dp_ratio|').value:.3f}",
            arm.estimate("|dp_difference|"),
        ]

    def paper_table(self, observation: Observation) -> str:
        """Return Table 1 of the paper beside our numbers."""
        header = ["penalty", "mode", "(alpha, beta)", "paper: price N / S, unfairness", "price N %", "price S %"]
        header += ["ratio", "noise floor", "difference"]
        rows = []
        for penalty in PENALTIES:
            classic = self.ppo(observation, penalty)
            rows.append([penalty, "", "PPO", "", "0", "0", *_unfair(classic, penalty)])
            for variant in METHODS.values():
                for weights, arm in self.fair(observation, penalty, variant).items():
                    paper = str(TABLE_1[penalty].get(weights, ""))
                    prices = [
                        tables.show(arm.price(classic, f"{_kind(penalty)}[{group}]"), digits=1) for group in GROUPS
                    ]
                    rows.append([penalty, variant, _name(weights), paper, *prices, *_unfair(arm, penalty)])
        return tables.markdown(header, rows)

    def levelling_table(self) -> str:
        """Return how the difference fell: by the loss of the group ahead, or by the gain of the other."""
        header = ["observation", "penalty", "mode", "(alpha, beta)", "fall of the difference", "loss of N", "gain of S",
                  "share of the fall that is N's loss"]  # fmt: skip
        rows: list[list[tables.Cell]] = []
        for seen in OBSERVATIONS:
            for penalty in ("dp", "csp"):
                classic = self.ppo(seen, penalty)
                for variant in METHODS.values():
                    for weights, arm in self.fair(seen, penalty, variant).items():
                        loss = classic.minus(arm, "return[without]")
                        gain = arm.minus(classic, "return[with]")
                        fall = loss.value + gain.value
                        share = f"{100 * loss.value / fall:.0f} %" if fall > 0 else "the difference grew"
                        difference = welch(classic.values("dp_difference"), arm.values("dp_difference"))
                        rows.append([seen, penalty, variant, _name(weights), difference, loss, gain, share])
        return tables.markdown(header, rows)

    def greedy_table(self) -> str:
        """Return the differences of the arms with the penalty on demographic parity from the greedy rule."""
        greedy = self.arms["greedy"]
        rows: list[list[tables.Cell]] = [
            [seen, name, *(arm.minus(greedy, number) for number in ("return[without]", "return[with]", "|dp_ratio|"))]
            for seen in OBSERVATIONS
            for name, arm in {
                "PPO": self.ppo(seen, "dp"),
                **{_name(weights): arm for weights, arm in self.fair(seen, "dp").items()},
            }.items()
        ]
        return tables.markdown(["observation", "arm", "reward N", "reward S", "ratio"], rows)

    def twins_table(self) -> str:
        """Return the effect of flipping the attribute of all agents that have it, in the ordinary game."""
        header = ["observation", "penalty", "arm", "networks of the new group", "networks of the old group"]
        rows: list[list[tables.Cell]] = [
            [point.observation, point.penalty, point.label, arm.estimate("twin_own"), arm.estimate("twin_same")]
            for point, arm in self.arms.items()
            if isinstance(point, Point)
        ]
        return tables.markdown(header, rows)

    def trend_table(self) -> str:
        """Return whether the disparity still rose at the end of the trainings."""
        rows: list[list[tables.Cell]] = [
            [point.observation, point.penalty, point.label, _rise(arm)]
            for point, arm in self.arms.items()
            if isinstance(point, Point)
        ]
        return tables.markdown(["observation", "penalty", "arm", "rise in the second half"], rows)

    def draw(self) -> list[Picture]:
        """Save the figures."""
        drawn = []
        for seen in OBSERVATIONS:
            panels = {
                penalty: {
                    "PPO": self.ppo(seen, penalty),
                    **{
                        f"{variant} {_name(weights)}".removeprefix("shaped "): arm
                        for variant in METHODS.values()
                        for weights, arm in self.fair(seen, penalty, variant).items()
                    },
                }
                for penalty in PENALTIES
            }
            file = f"rewards-{seen}.png"
            figures.dot_plot(
                {
                    penalty: {
                        name: {words: arm.estimate(f"{_kind(penalty)}[{group}]") for group, words in WORDS.items()}
                        for name, arm in arms.items()
                    }
                    for penalty, arms in panels.items()
                },
                self.out / file,
                label="reward per agent and step",
            )
            drawn.append(Picture(file, f"Rewards of both groups by penalty and weights, observation `{seen}`."))
            file = f"ratio-{seen}.png"
            figures.dot_plot(
                {
                    penalty: {
                        name: {
                            "ratio": _mean_of(arm, _unfairness(penalty, "ratio")),
                            "noise floor": _mean_of(arm, [f"noise {n}" for n in _unfairness(penalty, "ratio")]),
                        }
                        for name, arm in arms.items()
                    }
                    for penalty, arms in panels.items()
                },
                self.out / file,
                label="unfairness: mean |ratio| (0 is fair, 1/3: half the turns alone)",
                lines=[1 / 3],
            )
            drawn.append(Picture(file, f"Unfairness by penalty and weights, observation `{seen}`."))
        figures.course_plot(
            {
                seen: {
                    "PPO": _ratio_curve(self.ppo(seen, "dp")),
                    **{_name(w): _ratio_curve(arm) for w, arm in self.fair(seen, "dp").items() if w[0] == w[1]},
                }
                for seen in OBSERVATIONS
            },
            self.out / "learning.png",
            points={},
            label="agent steps",
        )
        drawn.append(Picture("learning.png", "The ratio in the rollouts of the trainings (dp), with equal weights."))
        return drawn


WORDS = dict(zip(GROUPS, ("full speed", "half speed"), strict=True))


def _name(weights: Weights) -> str:
    return f"({weights[0]:g}, {weights[1]:g})"


def _lowest(name: str) -> float:
    """Return the lower of the weights in a name of `_name`."""
    return min(float(part) for part in name[1 : name.index(")")].split(","))


def _kind(penalty: Notion) -> str:
    """Return the name of the groups' rewards in the worlds of a penalty."""
    return "game" if penalty == "cf" else "return"


def _unfairness(penalty: Notion, form: str) -> list[str]:
    """Return the names of a penalty's numbers: one, or one for each preference."""
    return [f"|csp_{form}[{value}]|" for value in ("red", "blue")] if penalty == "csp" else [f"|{penalty}_{form}|"]


def _unfair(arm: Arm, penalty: Notion) -> list[str]:
    """Return an arm's ratio, its noise floor and its difference as texts."""
    ratio, difference = _unfairness(penalty, "ratio"), _unfairness(penalty, "difference")
    floors = [f"{arm.estimate(f'noise {name}').value:.3f}" for name in ratio]
    return [
        "; ".join(tables.show(arm.estimate(name)) for name in ratio),
        "; ".join(floors),
        "; ".join(tables.show(arm.estimate(name)) for name in difference),
    ]


def _price_gap(arm: Arm, classic: Arm, kind: str, prices: list[Estimate]) -> Estimate:
    """Return the difference of the prices of both groups, which come from the same trainings, by the delta method."""
    fair, own = np.zeros(arm.seeds), np.zeros(classic.seeds)  # each seed's part in the difference
    for group, price, sign in zip(GROUPS, prices, (1, -1), strict=True):
        mean = classic.values(f"{kind}[{group}]").mean()
        fair += sign * 100 * arm.values(f"{kind}[{group}]") / mean
        own += sign * (100 + price.value) * classic.values(f"{kind}[{group}]") / mean
    around = welch(fair, own)  # its value is 0
    value = prices[0].value - prices[1].value
    return replace(around, value=value, low=around.low + value, high=around.high + value)


def _contribute(each: Mapping[str, Estimate]) -> Outcome:
    """Return whether every component alone reduces the disparity; one that changes nothing refutes that."""
    shown = everywhere_above(each, 0)
    nothing = [everywhere_below({name: e}, MARGINS["component"]) for name, e in each.items()]
    return Outcome(False) if any(one.holds for one in nothing) else shown


def _mean_of(arm: Arm, names: list[str]) -> Estimate:
    """Return the mean of several numbers of each seed."""
    return mean_interval(np.mean([arm.values(name) for name in names], axis=0))


def _ratio_curve(arm: Arm) -> Curve:
    """Return the ratio of the groups' rewards in the rollouts."""
    curves = [arm.curve(f"learned[{group}]") for group in GROUPS]
    return Curve(curves[0].times, disparity_ratio(curves[0].seeds, curves[1].seeds, floor=0))


def _rise(arm: Arm) -> Estimate:
    """Return the rise of the ratio in the rollouts over the training's second half, by linear regression."""
    from scipy.stats import linregress

    steps, ratio = _ratio_curve(arm)
    late = steps > steps[-1] / 2
    if late.sum() < 2:  # no line
        return mean_interval(np.full(len(ratio), np.nan))
    return mean_interval(np.array([linregress(steps[late], seed[late]).slope for seed in ratio]) * steps[-1] / 2)


main = study.Study(
    scales=SCALES,
    cells=cells,
    numbers=numbers_of,
    report=lambda name, scale, arms, out: Report(name=name, scale=scale, arms=arms, out=out),
).run
