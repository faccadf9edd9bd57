"""La Malfa et al. (2025), "Fairness Aware Reinforcement Learning via Proximal Policy Optimization", arXiv 2502.03953.

The paper trains PPO and fair-PPO on the allelopathic harvest over a grid of weights (alpha, beta) for three penalties
and reports the price of fairness and one number for unfairness. The paper does not define this number. Its Table 1
is consistent with a raw difference of group totals divided by the largest one in the set of runs, not with a ratio.
Claims are therefore tested with the ratio and with the difference. The plan of the study is in
``docs/reproduction/lamalfa2025/plan.md``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fair_envs.assessment import plots
from fair_envs.baselines.training import Training
from fair_envs.envs.harvest.params import Observation
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
    on_a_part,
    somewhere_above,
)
from fair_envs.reproduction.lamalfa2025.jobs import (
    ALONE,
    GRID,
    OBSERVATIONS,
    OTHERS,
    PENALTIES,
    PPO,
    SCALES,
    UNTRAINED,
    Notion,
    Point,
    Scale,
    Weights,
    cell,
    cells,
    numbers_of,
)
from fair_envs.reproduction.lamalfa2025.published import AGENTS, EPISODES, HORIZON, TABLE_1, UPDATES
from fair_envs.reproduction.measures import GROUPS
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture, Size

FORMS = ("difference", "ratio")
GRID_POINTS = len(GRID) ** 2 - 1  # of a penalty in the paper, without PPO
METHODS = {PRINTED: "paper_literal", REPAIRED: "shaped"}  # the mode of each method that gets a verdict
HIGH, LOW = 0.5, 0.25  # both weights at least this are high, (0.5, 0.5) apart; a weight of at most this is low
MARGINS = {"price": 15.0, "low weights": 10.0, "component": 5.0, "trend": 0.05, "actions": 0.1}
"""Percentage points between prices; percent of reduction; slope of the ratio; total variation. See the plan."""


Test = Callable[[Mapping[str, Estimate]], Outcome]


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of the study; the keys of the arms are points, or names of policies."""

    paper = "lamalfa2025"
    timed = " of training"
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
        for penalty in self.scale.penalties:
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

    def _claim(self, measured: Measured, test: Test, *, every: bool | None = None, **words: str) -> Claim:
        """Return a claim whose test is made in each panel, for each method.

        Args:
            measured: The numbers.
            test: The test.
            every: Whether the claim is about every point of the paper's grid, or about some point of it; None: it names
                its points.
            words: The other fields of the claim.
        """
        claim = Claim.tested(measured, test, **words)
        if every is None or self._whole_grid:
            return claim
        partial = {
            method: {panel: on_a_part(one, every=every) for panel, one in of.items()}
            for method, of in claim.outcomes.items()
        }
        return replace(claim, outcomes=partial)

    @property
    def _whole_grid(self) -> bool:
        """Whether every point of the paper's grid was run for each penalty and method."""
        s = self.scale
        return all(len(of.get(p, ())) == GRID_POINTS for of in (s.points, s.printed) for p in PENALTIES)

    def _reductions(self, penalty: Notion, bounds: tuple[float, ...]) -> Measured:
        """Return the reductions of a penalty's numbers, with a panel for each form and observation."""
        found = {
            method: {
                f"{seen} {form}": self.reductions(seen, penalty, form, variant)
                for form in FORMS
                for seen in OBSERVATIONS
            }
            for method, variant in METHODS.items()
        }
        return Measured(label="reduction of unfairness, in percent", bounds=bounds, numbers=found, digits=0)

    def _largest_reduction(self) -> Claim:
        found = {}
        for seen in OBSERVATIONS:
            fair, classic = self.fair(seen, "dp"), self.ppo(seen, "dp")
            if strong := fair.get((1.0, 1.0)):
                found[seen] = {group: strong.price(classic, f"return[{group}]") for group in GROUPS}
        prices = "; ".join(
            f"{seen}: full speed {tables.show(of[GROUPS[0]], digits=0)} %, half speed "
            f"{tables.show(of[GROUPS[1]], digits=0)} %"
            for seen, of in found.items()
        )
        return self._claim(
            self._reductions("dp", (50,)),
            lambda found: somewhere_above(found, 50),
            every=False,
            text="Fair-PPO reduces demographic disparity by up to 50 to 60 %.",
            evidence="A reduction alone says little, because doing nothing (`stay`) reduces the disparity by 100 %. "
            f"The change of each group's reward at (1, 1), our repair: {prices}.",
            refuted="A reduction below 50 % at every point.",
            earlier="holds",
            reason="Repair: unchanged. The printed method and the second observation had no verdict.",
        )

    def _conditional(self) -> Claim:
        return self._claim(
            self._reductions("csp", (0,)),
            lambda found: everywhere_above(found, 0),
            every=True,
            text="Conditional statistical parity improves in both preference groups, everywhere on the grid.",
            refuted="A point at which the disparity within one preference grows.",
            earlier="holds at 3 points",
            reason="Four more points, the second observation, and the printed method.",
        )

    def _counterfactual(self) -> Claim:
        weights = [key.weights for key in self.arms if isinstance(key, Point) and key.penalty == "cf"]
        high = [_name(w) for w in dict.fromkeys(weights) if min(w) >= HIGH and w != (HIGH, HIGH)]
        low = [_name(w) for w in dict.fromkeys(weights) if min(w) <= LOW and w != PPO]

        def only_high(found: Mapping[str, Estimate]) -> Outcome:
            tests = (everywhere_above, high, 0.0), (everywhere_below, low, MARGINS["low weights"])
            return both(
                test({name: found[name] for name in names if name in found}, bound) for test, names, bound in tests
            )

        return self._claim(
            self._reductions("cf", (0, MARGINS["low weights"])),
            only_high,
            every=True,
            text="Counterfactual fairness improves only at high weights.",
            evidence=f"High: {', '.join(high)}, where the reduction must be above 0. Low: {', '.join(low)}, where it "
            f"must be below {MARGINS['low weights']:g} %. (0.5, 0.5) is neither and is not tested; that was decided "
            "after results of two seeds.",
            refuted=f"A low point with a reduction above {MARGINS['low weights']:g} %, or a high one with a disparity "
            "that grows.",
            earlier="does not hold",
            reason="More points, the second observation, and the printed method.",
        )

    def _trend(self) -> Claim:
        margin = MARGINS["trend"]

        def of(seen: Observation, weight: str, variant: str) -> dict[str, Estimate]:
            found = {penalty: self.slopes(seen, penalty, variant) for penalty in self.scale.penalties}
            return {penalty: slopes[weight] for penalty, slopes in found.items() if weight in slopes}

        found = {
            method: {
                f"{seen} {weight}": of(seen, weight, variant) for seen in OBSERVATIONS for weight in ("alpha", "beta")
            }
            for method, variant in METHODS.items()
        }
        return self._claim(
            Measured(label="slope of the ratio against a weight", bounds=(-margin, margin), numbers=found, digits=2),
            lambda found: everywhere_within(found, margin),
            every=True,
            text="There is no trend in alpha or in beta.",
            evidence="Linear regression over the points that were run; csp is the mean of both preferences. As "
            "printed, alpha has no effect, so that only beta's slope is computed, where at least three values of "
            "beta were run.",
            refuted=f"A slope that is shown to be outside {margin} of 0.",
            reason="There was no verdict.",
        )

    def slopes(self, observation: Observation, penalty: Notion, variant: str) -> dict[str, Estimate]:
        """Return the coefficients of the linear regression of the ratio on the weights over the penalty's points.

        The regression is over the means of the arms; a coefficient is a weighted sum of them, with Welch's interval. As
        printed, alpha has no effect and is left out.
        """
        arms = {PPO: self.ppo(observation, penalty), **self.fair(observation, penalty, variant)}
        names = ("alpha", "beta") if variant == METHODS[REPAIRED] else ("beta",)
        columns = np.array([(1.0, *weights[-len(names) :]) for weights in arms])
        if np.linalg.matrix_rank(columns) <= len(names) or len(np.unique(columns, axis=0)) < 3:
            return {}
        means = [_mean_of(arm, _unfairness(penalty, "ratio")) for arm in arms.values()]
        found = {}
        for name, row in zip(names, np.linalg.pinv(columns)[1:], strict=True):
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
                numbers={
                    method: {seen: self.price_gaps(seen, variant) for seen in OBSERVATIONS}
                    for method, variant in METHODS.items()
                },
                digits=0,
            ),
            lambda found: everywhere_within(found, margin),
            every=True,
            text="The price of fairness is similar for both groups.",
            evidence="Equal prices leave the ratio unchanged: to halve it, the group ahead must lose more. So this "
            "claim and a lower ratio exclude each other, while the paper's number for unfairness is probably a "
            "difference.",
            refuted=f"A point at which the prices differ by more than {margin:g} percentage points.",
            earlier="does not hold",
            reason="More points, the second observation, and the printed method.",
        )

    def _components(self) -> Claim:
        def alone(seen: Observation, form: str) -> dict[str, Estimate]:
            found = self.reductions(seen, "dp", form, METHODS[REPAIRED])
            return {_name(weights): found[_name(weights)] for weights in ALONE if _name(weights) in found}

        least = MARGINS["component"]
        claim = self._claim(
            Measured(
                label="reduction of unfairness by each component without the other, in percent",
                bounds=(least,),
                numbers={REPAIRED: {f"{seen} {form}": alone(seen, form) for form in FORMS for seen in OBSERVATIONS}},
                digits=0,
            ),
            lambda found: everywhere_above(found, least),
            text="Both components of the penalty contribute.",
            evidence="As printed, the component with alpha has no gradient, and so no effect.",
            refuted=f"A component whose reduction is below {least:g} %.",
            reason="There was no verdict, because beta was never run without alpha.",
        )
        return replace(claim, outcomes={**claim.outcomes, PRINTED: {"by construction": Outcome(False)}})

    def _alike(self) -> Claim:
        kinds = ("selected", "executed")

        def distances(seen: Observation, variant: str, kind: str) -> dict[str, Estimate]:
            return {
                f"{penalty} {_name(weights)}": arm.estimate(f"{kind}, total variation")
                for penalty in self.scale.penalties
                for weights, arm in self.fair(seen, penalty, variant).items()
            }

        own = "; ".join(
            f"{seen}, {kind} {tables.show(self.ppo(seen, 'dp').estimate(f'{kind}, total variation'), digits=2)}"
            for seen in OBSERVATIONS
            for kind in kinds
        )
        return self._claim(
            Measured(
                label="total variation distance between the groups' shares of actions",
                bounds=(MARGINS["actions"],),
                numbers={
                    method: {
                        f"{seen}, {kind}": distances(seen, variant, kind) for kind in kinds for seen in OBSERVATIONS
                    }
                    for method, variant in METHODS.items()
                },
                digits=2,
            ),
            lambda found: everywhere_below(found, MARGINS["actions"]),
            every=True,
            text="The groups behave alike.",
            evidence="The paper's figure counts the actions that agents select, also in turns that they do not have. "
            f"PPO, for comparison: {own}.",
            refuted=f"A point at which the distance is above {MARGINS['actions']}.",
            reason="There was no verdict.",
        )

    # ------------------------------------------------------------------------------------------- the page

    def question(self) -> str:
        """Return what the paper claims."""
        return (
            "Fair-PPO subtracts a penalty on the disparity between two groups of agents from PPO's objective. The "
            "weight alpha is that of the disparity of past rewards, beta that of the disparity of predicted values. "
            "The paper reports that demographic disparity falls by up to 50 to 60 %, that conditional disparity falls "
            "everywhere on its grid of weights, that counterfactual fairness improves only at high weights, and that "
            "both groups pay a similar price."
        )

    def runs(self) -> str:
        """Return what was run, and what the numbers mean."""
        s = self.scale
        return (
            f"Harvest with 40 agents and episodes of {s.horizon} steps. Half of the agents have the sensitive "
            "attribute: they act in every second step. N: agents at full speed; S: agents at half speed. Each group "
            "has its own networks. Two observations: `ten` (ten numbers, as in the published code) and `extended` "
            f"(also the four neighbouring cells, and the agent's own timing). The study has {self.seeds}, and "
            f"each training has {s.episodes} test episodes of its own. Brackets hold 95 % intervals over "
            "training seeds. Arms are compared with Welch's t, prices and reductions with its delta method, and "
            "nothing is paired.\n\n"
            "**Methods.** *As printed* is the mode `paper_literal`: the printed loss, differentiated automatically. "
            "This is a reading. The term with alpha then has no gradient; a score-function estimate of it would have "
            "one, and is not in this study. The gap is that of the groups' means, within each preference for `csp` "
            "(equation 7 as printed would be demographic parity), and the multiplier is 1. Beta's unit depends on "
            "the scale of the rewards. *Repaired* is our mode `shaped`: the growth of the disparity in a step is a "
            "cost, whose advantage is subtracted from PPO's. `authors` is the penalty of the published code in our "
            "PPO; in it alpha and beta cancel. No weight of the paper corresponds to ours: costs are multiplied by "
            "the group's size, so that at alpha = 1 an agent of the group ahead gains nothing from its own reward, "
            "and the jump between 0.5 and 1 is a property of this unit.\n\n"
            "**Penalties.** `dp`: demographic parity, the gap between N and S. `csp`: conditional statistical "
            "parity, the same within each preference, [red] and [blue]. `cf`: counterfactual fairness, the gap "
            "between a game in which all 40 agents have full speed and one in which all have half; in its rows, N "
            "and S are these games.\n\n"
            "**Numbers.** The difference is (N - S) per agent and step, the ratio (N - S) / (N + S) of the group "
            "totals. Unfairness is the mean absolute value over test episodes: 0 is fair, and half the turns alone "
            "give a ratio of 1/3. The ratio was added by us, after results of five seeds had been seen; the paper's "
            "number is probably a difference divided by the largest one of its runs, so compare its reductions with "
            "those of the difference. The noise floor is the same number if the attribute is dealt at random among "
            "the agents (`cf`: one game against itself in other episodes). The price is the change of a group's "
            "reward relative to PPO."
        )

    def sizes(self) -> list[Size]:
        """Return our scale beside the paper's."""
        s = self.scale
        example = cell(s, Point("ten", "dp", "shaped", *PPO), 0)
        return [
            Size("training seeds of an arm", self.most_seeds, None),
            Size("agent steps of a training", s.steps, EPISODES * HORIZON * AGENTS),
            Size("training episodes", round(s.steps / AGENTS / s.horizon), EPISODES),
            Size("steps of an episode", s.horizon, HORIZON),
            Size("test episodes of an arm", s.episodes * self.most_seeds, EPISODES),
            Size("gradient steps of a training", _updates(example.training), EPISODES * UPDATES),
            Size("points of the grid, repaired", sum(map(len, s.points.values())), len(PENALTIES) * GRID_POINTS),
            Size("points of the grid, as printed", sum(map(len, s.printed.values())), len(PENALTIES) * GRID_POINTS),
            Size("observations", len(OBSERVATIONS), 1),
        ]

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        return {
            "PPO's disparity depends on what agents observe": self.observations_table(),
            **{
                f"The paper's table beside ours, observation `{seen}`": (
                    "The paper's unfairness is on a scale of its own, and it prints no value of PPO there. So only the "
                    "prices can be compared. The 50 to 60 % of claim 1 are from its text; our reductions are behind "
                    "the claim above.\n\n" + self.paper_table(seen)
                )
                for seen in OBSERVATIONS
            },
            "Who pays": self.levelling_table(),
            "Trained arms minus a rule with the same observation": self.rules_table(),
            "Reductions in the course of the training": self.course_table(),
            "Twins: the effect of flipping the attribute of all agents that have it": (
                "Mean reward per agent and step of the flipped agents in the counterfactual minus the factual episode: "
                "what full speed is worth to them, with the networks of their new group, or with those that they were "
                "trained with.\n\n" + self.twins_table()
            ),
        }

    def limitations(self) -> str:
        """Return what the runs cannot show, and how they differ from the paper's."""
        return (
            "* The trainings are short, and some still change at their end (see the table of reductions in the "
            "course of the training). With `extended`, PPO's half-speed agents improve late, and those of fair-PPO "
            "have not done so yet. So reductions with `extended`, and prices of the half-speed agents, are "
            "statements about this length of training; [the scale `long`](long/report.md) has four times of it.\n"
            "* The rules are this package's recommended ones. In the published code no move succeeds, an obstructed "
            "agent is removed for the rest of the episode, and actions reach the wrong agents.\n"
            "* The learner is our PPO: other step sizes, networks and batches than the paper's, rewards times 0.1, "
            "turns that an agent does not have are left out of the loss.\n"
            "* The population of bushes doubles in the first 118 steps and then halves. That is 40 % of our "
            "episodes, and 4 % of the paper's.\n"
            "* Margins are ours, because the paper gives none. The margin of prices (15 points, at first 10) and the "
            "definition of high weights were changed in the paper's favour after results had been seen, because the "
            "paper's own table would otherwise refute its claims."
        )

    def observations_table(self) -> str:
        """Return PPO, the published code and policies without training, with both observations."""
        shown = {(name, "any"): self.arms[name] for name in UNTRAINED}
        shown |= {("PPO", seen): self.ppo(seen, "dp") for seen in (*OBSERVATIONS, *OTHERS)}
        shown |= {
            (point.label, point.observation): arm
            for point, arm in self.arms.items()
            if isinstance(point, Point) and point.variant not in ("shaped", "paper_literal")
        }
        ratios = {seen: self.ppo(seen, "dp") for seen in (*OBSERVATIONS, *OTHERS)}
        changes = {f"`{seen}`": arm.minus(ratios["ten"], "|dp_ratio|") for seen, arm in ratios.items() if seen != "ten"}
        part = ratios["neighbours"].minus(ratios["timing"], "|dp_ratio|")
        rule = {words: self.arms["reactive"].minus(ratios["ten"], f"return[{group}]") for group, words in WORDS.items()}
        return (
            "`extended` adds to `ten` the four neighbouring cells, and three numbers on timing: whether the agent is "
            "frozen, whether it has this turn, and how much of the episode has passed. Three more observations were "
            "run with PPO only. `neighbours` and `timing` add one of these parts. `without_reward` has the ten numbers "
            "without the agent's reward in the last step. This number shows an agent at full speed that it is beside "
            "a bush. An agent at half speed had no turn in the last step, so for it the number is always 0 when it "
            "acts. *One network*: all agents use the same network.\n\nPPO's ratio minus that with `ten` (Welch): "
            f"{listed(changes)}. With `neighbours` minus with `timing`: {tables.show(part)}. The comparison is at this "
            "length of training.\n\n"
            "`reactive` is a rule that uses only the distances to the nearest bushes among the ten numbers, and has no "
            "memory: it walks at random until a bush is beside the agent, and then recolours it or uses it. Its reward "
            f"minus that of PPO with `ten`: {listed(rule)}. `greedy` sees the whole state.\n\n" + self.levels(shown)
        )

    def levels(self, shown: Mapping[tuple[str, str], Arm]) -> str:
        """Return a table of rewards and disparities of arms, by their name and observation."""
        header = ["policy", "observation", "reward N", "reward S", "ratio", "noise floor", "difference", "n"]
        rows: list[list[tables.Cell]] = [
            [name, seen, *self._level(arm), str(arm.seeds)] for (name, seen), arm in shown.items()
        ]
        return tables.markdown(header, rows)

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
        for penalty in self.scale.penalties:
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
        gains: list[Estimate] = []
        for seen in OBSERVATIONS:
            for penalty in (own for own in self.scale.penalties if own != "cf"):
                classic = self.ppo(seen, penalty)
                for variant in METHODS.values():
                    for weights, arm in self.fair(seen, penalty, variant).items():
                        loss = classic.minus(arm, "return[without]")
                        gain = arm.minus(classic, "return[with]")
                        fall = loss.value + gain.value
                        difference = welch(classic.values("dp_difference"), arm.values("dp_difference"))
                        share = f"{100 * loss.value / fall:.0f} %" if difference.low > 0 else "no fall shown"
                        gains.append(gain)
                        rows.append([seen, penalty, variant, _name(weights), difference, loss, gain, share])
        more, less = sum(e.low > 0 for e in gains), sum(e.high < 0 for e in gains)
        return (
            f"The half-speed agents earn more than with PPO in {more} of {len(gains)} arms, and less in {less} "
            "(intervals without 0). The fall of the (signed) difference is the loss of N plus the gain of S; a share "
            f"above 100 % means that S loses as well.\n\n{tables.markdown(header, rows)}"
        )

    def rules_table(self) -> str:
        """Return the differences of the arms with the penalty on demographic parity from the scripted rules."""
        numbers = ("return[without]", "return[with]", "|dp_ratio|", "|dp_difference|")
        arms = {(seen, "PPO"): self.ppo(seen, "dp") for seen in OBSERVATIONS}
        arms |= {(seen, _name(weights)): arm for seen in OBSERVATIONS for weights, arm in self.fair(seen, "dp").items()}
        found = {
            rule: {key: [arm.minus(self.arms[rule], number) for number in numbers] for key, arm in arms.items()}
            for rule in ("reactive", "greedy")
        }
        worse = {
            rule: sum(first.high < 0 and second.high < 0 for first, second, *_ in of.values())
            for rule, of in found.items()
        }
        rows: list[list[tables.Cell]] = [[*key, *differences] for key, differences in found["reactive"].items()]
        return (
            "Rewards minus those of `reactive`, which uses no more than the ten numbers. Both groups earn less than "
            f"with it in {worse['reactive']} of {len(arms)} arms, and less than with `greedy` in {worse['greedy']}.\n\n"
            + tables.markdown(["observation", "arm", "reward N", "reward S", "ratio", "difference"], rows)
        )

    def course_table(self) -> str:
        """Return the reductions of the ratio in the rollouts, in parts of the training."""
        rows: list[list[tables.Cell]] = []
        for seen in OBSERVATIONS:
            classic = _ratio_curve(self.ppo(seen, "dp"))
            rows.append([seen, "PPO's ratio", *_parts(classic), _rise(self.ppo(seen, "dp"))])
            for weights, arm in self.fair(seen, "dp").items():
                own = _parts(_ratio_curve(arm))
                rows.append([seen, _name(weights), *own, _rise(arm)])
        return (
            "The ratio of the groups' rewards in the rollouts (not in the test episodes), mean over each quarter of "
            "the training, and its rise over the second half (slope of a straight line times half the training). "
            "Where PPO's ratio and that of an arm move apart or together at the end, the reduction depends on the "
            "length of the training. Repaired, dp.\n\n"
            + tables.markdown(["observation", "arm", "quarter 1", "2", "3", "4", "rise in the second half"], rows)
        )

    def twins_table(self) -> str:
        """Return the effect of flipping the attribute of all agents that have it, in the ordinary game."""
        header = ["observation", "penalty", "arm", "networks of the new group", "networks of the old group"]
        rows: list[list[tables.Cell]] = [
            [point.observation, point.penalty, point.label, arm.estimate("twin_own"), arm.estimate("twin_same")]
            for point, arm in self.arms.items()
            if isinstance(point, Point)
        ]
        return tables.markdown(header, rows)

    def draw(self) -> list[Picture]:
        """Save the figures."""
        drawn = []
        for group, words in WORDS.items():
            file = f"reward-{words.replace(' ', '-')}.png"

            def reward(penalty: Notion, arm: Arm, group: str = group) -> Estimate:
                return arm.estimate(f"{_kind(penalty)}[{group}]")

            plots.dot_plot(self._panels(reward), self.out / file, label=f"reward per agent and step, {words}")
            drawn.append(Picture(file, f"Reward at {words}, by penalty and weights, with both observations."))
        plots.dot_plot(
            self._panels(lambda penalty, arm: _mean_of(arm, _unfairness(penalty, "ratio"))),
            self.out / "ratio.png",
            label="unfairness: mean |ratio| (0 is fair; dotted: half the turns alone)",
            lines=[1 / 3],
        )
        drawn.append(Picture("ratio.png", "Unfairness by penalty and weights; csp is the mean of both preferences."))
        return [*drawn, self._learning_picture()]

    def _learning_picture(self) -> Picture:
        curves: dict[str, dict[str, Curve]] = {
            seen: {
                "PPO": _ratio_curve(self.ppo(seen, "dp")),
                **{_name(w): _ratio_curve(arm) for w, arm in self.fair(seen, "dp").items() if w[0] == w[1]},
            }
            for seen in OBSERVATIONS
        }
        labels = ("agent steps", "ratio in the rollouts")
        figures.course_plot(curves, self.out / "learning.png", points={}, labels=labels)
        return Picture(
            "learning.png",
            "The ratio in the rollouts of the trainings with equal weights (dp), mean over seeds with 95 % intervals. "
            "A rollout is a third of an episode, hence the waves.",
        )

    def _panels(self, number: Callable[[Notion, Arm], Estimate]) -> dict[str, ByRow]:
        """Return a panel for each penalty, with a number of each arm with both observations."""
        found: dict[str, ByRow] = {}
        for penalty in self.scale.penalties:
            of_arms: dict[str, dict[str, Estimate]] = {}
            for seen in OBSERVATIONS:
                arms = {"PPO": self.ppo(seen, penalty)}
                for variant in METHODS.values():
                    prefix = "" if variant == METHODS[REPAIRED] else f"{variant} "
                    arms |= {prefix + _name(w): arm for w, arm in self.fair(seen, penalty, variant).items()}
                of_arms[seen] = {name: number(penalty, arm) for name, arm in arms.items()}
            found[penalty] = by_row(of_arms)
        return found


class LongerReport(Report):
    """The report of longer trainings: whether small weights raise the disparity, or only delay a late gain."""

    def question(self) -> str:
        """Return what is asked."""
        return (
            "This is our question, not the paper's. In the scale `small`, small weights raise the disparity with the "
            "observation `extended`. There, PPO's half-speed agents improve late in the training, and those of "
            "fair-PPO do not. Do small weights raise the disparity, or do they only delay that improvement?"
        )

    def claims(self) -> list[Claim]:
        """Return whether small weights only delay a gain."""
        small = _name(self.scale.points["dp"][0])
        reductions = {seen: {small: self.reductions(seen, "dp", "ratio", "shaped")[small]} for seen in OBSERVATIONS}
        claim = Claim.tested(
            Measured(
                label="reduction of the ratio, in percent",
                bounds=(0,),
                numbers={REPAIRED: {"extended": reductions["extended"]}},
                digits=0,
            ),
            lambda found: everywhere_above(found, 0),
            text="With `extended`, small weights only delay a gain: after longer trainings, they lower the ratio.",
            evidence=f"With `ten`, for comparison: {listed(reductions['ten'], digits=0, unit=' %')}.",
            refuted="A ratio that is still higher than PPO's.",
            reason="There was no verdict.",
        )
        return [claim]

    def limitations(self) -> str:
        """Return what the runs cannot show."""
        return (
            f"* There are {self.seeds}, and one penalty.\n"
            "* The trainings still have fewer steps than the paper's. Whether more of them would change the answer is "
            "not known; see the rise in the second half."
        )

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        shown = {(name, "any"): self.arms[name] for name in UNTRAINED}
        for seen in OBSERVATIONS:
            fair = {_name(weights): arm for weights, arm in self.fair(seen, "dp").items()}
            shown |= {(name, seen): arm for name, arm in {"PPO": self.ppo(seen, "dp"), **fair}.items()}
        return {
            "Rewards and disparities": self.levels(shown),
            "Who pays": self.levelling_table(),
            "Trained arms minus a rule with the same observation": self.rules_table(),
            "Reductions in the course of the training": self.course_table(),
        }

    def draw(self) -> list[Picture]:
        """Save the learning curves."""
        return [self._learning_picture()]


WORDS = dict(zip(GROUPS, ("full speed", "half speed"), strict=True))


def _name(weights: Weights) -> str:
    return f"({weights[0]:g}, {weights[1]:g})"


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


def _mean_of(arm: Arm, names: list[str]) -> Estimate:
    """Return the mean of several numbers of each seed."""
    return mean_interval(np.mean([arm.values(name) for name in names], axis=0))


def _ratio_curve(arm: Arm) -> Curve:
    """Return the ratio of the groups' rewards in the rollouts."""
    curves = [arm.curve(f"learned[{group}]") for group in GROUPS]
    return Curve(curves[0].times, disparity_ratio(curves[0].seeds, curves[1].seeds, floor=0))


def _updates(training: Training) -> int:
    """Return the number of gradient steps of a training."""
    rows = training.lanes * training.n_steps * AGENTS
    return training.steps // rows * training.n_epochs * -(-rows // training.batch_size)


def _parts(curve: Curve) -> list[Estimate]:
    """Return the mean of a curve in each quarter of its points; undefined in those without one."""
    quarters = np.array_split(curve.seeds, 4, axis=1)
    return [mean_interval(part.mean(axis=1) if part.size else np.full(len(part), np.nan)) for part in quarters]


def _rise(arm: Arm) -> Estimate:
    """Return the rise of the ratio in the rollouts over the training's second half, by linear regression."""
    from scipy.stats import linregress

    steps, ratio = _ratio_curve(arm)
    late = steps > steps[-1] / 2
    if late.sum() < 2:  # no line
        return mean_interval(np.full(len(ratio), np.nan))
    return mean_interval(np.array([linregress(steps[late], seed[late]).slope for seed in ratio]) * steps[-1] / 2)


def made(name: str, scale: Scale, arms: Mapping[Point | str, Arm], out: Path) -> Report:
    """Return the report of a scale; that of longer trainings answers one question."""
    kind = Report if scale.ablated else LongerReport
    return kind(name=name, scale=scale, arms=arms, out=out)


main = study.Study(scales=SCALES, cells=cells, numbers=numbers_of, report=made).run
