"""Hu, Lear and Zhang (2024), "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning".

The paper (arXiv 2401.06318) trains PPO, A-PPO and F-PPO on lending, attention allocation and an epidemic, and compares
them with scripted agents in short-term fairness, long-term fairness and utility over an episode. The plotted long-term
fairness differs from the definition in its text. Every claim is therefore tested as plotted and as defined ("truly").
The plan of the study is in ``docs/reproduction/hu2024/plan.md``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from fair_envs.assessment import plots
from fair_envs.experiments import figures, tables
from fair_envs.experiments.seeds import Arm, Curve
from fair_envs.experiments.tables import listed
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.metrics.inference import fisher, holm, p_value, shown
from fair_envs.metrics.intervals import share_interval
from fair_envs.reproduction import study
from fair_envs.reproduction.claims import (
    Claim,
    Estimates,
    Measured,
    Outcome,
    everywhere_below,
)
from fair_envs.reproduction.hu2024.jobs import (
    AGENTS,
    AS_CODED,
    AS_PRINTED,
    DRAWN,
    KNOBS,
    KNOWN,
    LEARNED,
    LIMITS,
    PAPER_WEIGHTS,
    SCALES,
    TUNED,
    WORLDS,
    Key,
    Label,
    Scale,
    cells,
)
from fair_envs.reproduction.hu2024.numbers import (
    ABLATED,
    BENEFIT,
    EXCESS,
    LIKELIEST,
    NOISE,
    SHIELD,
    SUMMARIES,
    TRAINED,
    numbers,
)
from fair_envs.reproduction.hu2024.processes import World
from fair_envs.reproduction.hu2024.published import PLOTTED
from fair_envs.reproduction.hu2024.tuning import UTILITIES, TuningReport
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture, Size

FIGURES: Mapping[World, str] = {"lending": "Fig. 1", "attention": "Fig. 3", "epidemic": "Fig. 4"}
UTILITY: Mapping[World, str] = {
    "lending": "cash of the bank",
    "attention": "reward a step, smoothed",
    "epidemic": "share of people who are not infected",
}
LITTLE = 10.0  # a loss up to this percentage of the utility counts as little; our choice, the paper gives none
BELOW = 0.1  # the paper's words: short-term unfairness "below 0.1"
SHIELDED, UNDRAWN = " behind its shield", ", likeliest actions"
WAYS: Mapping[str, str] = {
    "as plotted": "{}, as plotted",
    "sound": "{}",
    "sound, above chance": EXCESS + "{}",
}
"""The definitions of each measure, and the names of their numbers."""

LIMITED: Mapping[World, tuple[str, str]] = {
    "lending": ("of all", "gap of all applicants"),
    "attention": ("short", "deviation of the last 300 steps"),
    "epidemic": ("short", "gap of effective vaccinations"),
}
"""The number that is compared with the limit of each process, and its name."""

CODED = "as coded"
FORMS: Mapping[str, tuple[str, str]] = {PRINTED: (AS_PRINTED, ""), CODED: (AS_CODED, AS_CODED), REPAIRED: ("", "")}
"""The endings of the names of F-PPO and of the others: the method as printed, the published code, and our repair.

The paper's PPO and A-PPO have no printed scaling; those as coded are compared with each other.
"""
ENDINGS = {method: FORMS[method][0] for method in (PRINTED, REPAIRED)}

LOST: Mapping[World, str] = {"lending": "Profit", "attention": "Reward", "epidemic": "People who are not infected,"}
CLOSE = 0.1  # relative difference from a value read from a figure that counts as the same
RUNAWAY = 5.0  # incidents a step and place above which rates have run away; fixed when three of the seeds had been run

FIELDS: Mapping[str, str] = {"short, as plotted": "short", "long, as plotted": "long", "utility": "utility"}
"""The numbers of the paper's figures, and their fields in `PLOTTED`."""

MEASURES: Sequence[Sequence[str]] = (
    ("lending", "short", "gap of the true positive rates in a window", "gap of mean rates", "mean of the gaps"),
    ("lending", "long", "1-Wasserstein distance of the scores", "transport between clouds of test episodes",
     "1-Wasserstein distance, in each episode"),
    ("attention", "short", "deviation of the shares of units from 1/K (Eq. 9 divides by N times the window)",
     "the same over the whole episode", "the same over the last 300 steps, divided by the units sent"),
    ("attention", "long", "1-Wasserstein distance of the rates", "largest deviation of a rate from the mean",
     "total variation of the shares of the rates from 1/K"),
    ("epidemic", "short", "gap of vaccinations per new infection", "the same, with vaccinations without effect",
     "only vaccinations of susceptible people"),
    ("epidemic", "long", "1-Wasserstein distance of the communities' health",
     "transport between clouds of test episodes, head counts", "total variation of the shares, in each episode"),
)  # fmt: skip

ACCESS: Sequence[Sequence[str]] = (
    ("PPO, CPO and PPO-Lagrangian in attention and the epidemic", "observation and short-term measure", "observation"),
    ("A-PPO, F-PPO and F-PPO-L, ours and as printed", "observation; in lending also the repayment probability of each "
     "score", "observation; behind the shield, the same as in training"),
    ("F-PPO, known", "also the true distribution of both groups' scores", "observation"),
    ("PPO-Lagrangian, ELBERT, return parity in lending", "observation; labels of all past applicants, also of rejected "
     "ones", "observation"),
    ("as coded, lending", "observation with rates computed from all labels; massaging reads the applicant's label",
     "the same observation; behind the shield, the applicant's label"),
    ("EO", "-", "the repayment probability of each score and the true distribution of both groups' scores"),
    ("max-reward, closing step by step", "-", "the repayment probability of each score; closing also the true "
     "distributions"),
)  # fmt: skip

NOTES: Mapping[World, str] = {
    "lending": "The mean gap of a window is above 0 even if both groups are treated alike, so the limit is on the gap "
    "of all applicants, in which gaps of opposite signs cancel.",
    "attention": "The limit is above PPO's own value. A rate is the expected number of new incidents a step at a "
    "place. Without incidents, the spread of the rates is undefined: round-robin and constant remove all of them.",
    "epidemic": "Vaccinating no one has a gap of 0.",
}

OTHERS = ("ELBERT", "return parity", "PPO-Lagrangian")


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of the study; the keys of the arms are pairs of a process and a name."""

    paper = "hu2024"
    scales = SCALES
    methods: ClassVar[Mapping[str, str]] = {
        PRINTED: "the method as printed",
        CODED: "the method as coded",
        REPAIRED: "our repair",
    }

    # ------------------------------------------------------------------------------------------------- arms

    def arm(self, world: World, name: Label) -> Arm:
        """Return an arm."""
        return self.arms[Key(world, name)]

    def of(self, world: World) -> dict[Label, Arm]:
        """Return the tests on a process; those with a shield or with the most likely actions are separate ones."""
        found = {}
        for key, arm in self.arms.items():
            if key.world == world:
                found[key.label] = arm
                for ending, prefix in ((SHIELDED, SHIELD), (UNDRAWN, LIKELIEST)):
                    if prefix + "short" in arm.names:
                        found[key.label + ending] = arm.part(prefix)
        return found

    # ------------------------------------------------------------------------------------------------- claims

    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs."""
        return [
            self._below(),
            self._lower("lending", earlier="undecided; as coded: undecided"),
            self._price(),
            self._massaging(),
            self._lower("attention", earlier="does not hold; as coded: undecided"),
            self._lower("epidemic", earlier="undecided (as plotted), holds (sound); as coded: the same"),
            self._lower("epidemic", column="short", others=("PPO",), earlier="holds"),
            *(self._shield(world) for world in WORLDS),
            self._variants(),
        ]

    def _ways(
        self, world: World, column: str, found: Callable[[str, str, str], Estimates]
    ) -> dict[str, dict[str, Estimates]]:
        """Return the numbers of each form of F-PPO, with a panel for each definition of a measure.

        Args:
            world: The process.
            column: The measure.
            found: Returns the numbers, from the endings of the names of F-PPO and of the others, and the number's name.
        """
        known = self.arm(world, "F-PPO").names
        ways = {way: pattern.format(column) for way, pattern in WAYS.items()}
        return {
            form: {way: found(own, others, number) for way, number in ways.items() if number in known}
            for form, (own, others) in FORMS.items()
        }

    def _below(self) -> Claim:
        def gaps(own: str, others: str, number: str) -> dict[str, Estimate]:
            names = {"EO": "", "A-PPO": others, "F-PPO": own}
            return {name: self.arm("lending", name + form).estimate(number) for name, form in names.items()}

        return Claim.tested(
            Measured(
                label="short-term unfairness (gap)", bounds=(BELOW,), numbers=self._ways("lending", "short", gaps)
            ),
            lambda found: everywhere_below(found, BELOW),
            text=f"In lending, EO, A-PPO and F-PPO keep short-term unfairness below {BELOW:g}.",
            evidence="A small window has a gap even if both groups are treated alike: a true gap of 0.1 is about 0.11 "
            "with the sound measure.",
            refuted=f"One of the three with a gap above {BELOW:g}.",
            earlier="undecided",
            reason="More seeds, and the printed method.",
        )

    def _lower(
        self, world: World, *, column: str = "long", others: Sequence[Label] = ("PPO", "A-PPO"), earlier: str
    ) -> Claim:
        def differences(own: str, other: str, number: str) -> dict[str, Estimate]:
            fair = self.arm(world, "F-PPO" + own)
            return {f"minus {name}": fair.minus(self.arm(world, name + other), number) for name in others}

        measured = Measured(
            label=f"{column}-term unfairness of F-PPO minus that of another",
            bounds=(0,),
            numbers=self._ways(world, column, differences),
            one_unit=False,
        )
        outcomes = measured.outcomes(partial(everywhere_below, bound=0))
        less = [form for form, of in outcomes.items() if any(one.holds for one in of.values())]
        dear = [form for form in less if self.lost(world, *FORMS[form]).low > LITTLE]
        return Claim(
            outcomes=outcomes,
            measured=measured,
            remarks=dict.fromkeys(dear, f"F-PPO loses more than {LITTLE:g} % of PPO's utility here"),
            text=f"In {world}, F-PPO has less {column}-term unfairness than {' and '.join(others)}.",
            evidence=self._price_and_rules(world, column),
            refuted=f"F-PPO with more than {' or '.join(others)}.",
            earlier=earlier,
            reason="More seeds, no pairing of seeds, tuned arms, and the printed method.",
        )

    def _price_and_rules(self, world: World, column: str) -> str:
        """Return what F-PPO's fairness costs, and which policies without training are as fair."""
        lost = {form: self.lost(world, *endings) for form, endings in FORMS.items()}
        fair = self.arm(world, "F-PPO").estimate(column).value
        values = {name: self.arm(world, name).estimate(column).value for name in AGENTS[world]}
        rules = [name for name, value in values.items() if value <= fair]
        undefined = [name for name, value in values.items() if np.isnan(value)]
        also = f" Undefined, because nothing is left to compare: {', '.join(undefined)}." if undefined else ""
        return (
            f"{LOST[world]} lost against PPO: {listed(lost, digits=0, unit=' %')}. Policies without training that are "
            "at least as fair as our F-PPO by the sound measure, whatever they earn: "
            f"{', '.join(rules) or 'none'}.{also}"
        )

    def lost(self, world: World, own: str, others: str) -> Estimate:
        """Return by how many percent F-PPO's utility is below PPO's; the names of both end as given."""
        return self.arm(world, "F-PPO" + own).reduction(self.arm(world, "PPO" + others), UTILITIES[world])

    def _price(self) -> Claim:
        lost: dict[str, dict[str, Estimates]] = {
            form: {str(world): {"": self.lost(world, *endings)} for world in WORLDS} for form, endings in FORMS.items()
        }
        return Claim.tested(
            Measured(
                label="utility lost, in percent of PPO's", bounds=(LITTLE,), numbers=lost, digits=1, one_unit=False
            ),
            lambda found: everywhere_below(found, LITTLE),
            text=f"F-PPO's fairness costs little: at most {LITTLE:g} % of PPO's utility.",
            evidence="Utility: profit in lending, reward in attention, people who are not infected at the end in the "
            "epidemic. The plan tested lending only; the other two processes were added when three of the seeds had "
            "been run. By the paper's own figures, the loss is 7 % of the profit in lending, 1 % in attention and 14 % "
            "in the epidemic.",
            refuted=f"A loss of more than {LITTLE:g} %.",
            earlier="holds in lending",
            reason="More seeds, a ratio of means in place of a mean of ratios, the printed method, and two more "
            "processes.",
        )

    def _massaging(self) -> Claim:
        def change(world: World, own: str) -> Estimate:
            return self.arm(world, "F-PPO" + own).minus(self.arm(world, "F-PPO-L" + own), TRAINED + "short")

        return Claim.tested(
            Measured(
                label="mean disparity in the second half of the training, F-PPO minus F-PPO-L",
                bounds=(0,),
                numbers={
                    method: {str(world): {"": change(world, own)} for world in WORLDS}
                    for method, own in ENDINGS.items()
                },
                one_unit=False,
            ),
            lambda found: everywhere_below(found, 0),
            text="Massaging lowers the short-term unfairness of the training (F-PPO against F-PPO-L).",
            evidence="F-PPO-L as coded was not run.",
            refuted="A higher disparity with massaging.",
            earlier="holds",
            reason="More seeds, no pairing of seeds, and the printed method.",
        )

    def _shield(self, world: World) -> Claim:
        def effects(own: str, others: str, number: str) -> dict[str, Estimate]:
            return {"F-PPO": self.shield_effect(world, "F-PPO" + own, number)}

        return Claim.tested(
            Measured(
                label="unfairness behind the shield minus without",
                bounds=(0,),
                numbers=self._ways(world, "short", effects),
                one_unit=False,
            ),
            lambda found: everywhere_below(found, 0),
            text=f"In {world}, massaging kept at evaluation lowers short-term unfairness.",
            evidence='What else it changes is in the table "The shield". The paper says that massaging guarantees '
            "short-term fairness; whether it meets the limit is in the table of the process.",
            refuted="More unfairness behind the shield.",
            earlier="undecided",
            reason="More seeds, the printed and the coded method; F-PPO, shield is no longer part of the claim.",
        )

    def shield_effect(self, world: World, name: Label, number: str) -> Estimate:
        """Return a number behind the shield minus without; both are tests of one training, so this is a seed's own."""
        arm = self.arm(world, name)
        return mean_interval(arm.values(SHIELD + number) - arm.values(number), undefined="omit")

    def _variants(self) -> Claim:
        arms = self.of("lending")
        names = {
            PRINTED: {"F-PPO" + SHIELDED: "F-PPO" + AS_PRINTED + SHIELDED, "F-PPO-L": "F-PPO-L" + AS_PRINTED},
            REPAIRED: {
                name: name
                for name in ("F-PPO" + SHIELDED, "F-PPO-L", "F-PPO, shield", "F-PPO, shield" + SHIELDED, KNOWN,
                             KNOWN + SHIELDED)
            },
        }  # fmt: skip
        rivals = ("PPO", "A-PPO")
        found = {
            method: {
                "sound": {
                    f"{row} minus {rival}": arms[name].minus(arms[rival], "long")
                    for row, name in several.items()
                    for rival in rivals
                }
            }
            for method, several in names.items()
        }
        return Claim.tested(
            Measured(
                label="distance of the scores with a variant minus that with PPO or A-PPO", bounds=(0,), numbers=found
            ),
            lambda found: some_below_both(found, rivals),
            text="In lending, a variant of F-PPO ends with a smaller distance of the scores than PPO and A-PPO.",
            evidence="A variant counts only if both differences are shown. What its profit is, is in the table of the "
            'process: "accept all" has a small distance too, at a loss.',
            refuted="Every variant shown to have a larger distance than PPO or than A-PPO.",
            earlier="undecided",
            reason="More seeds, fewer variants, and Holm's correction within the claim in place of Bonferroni's. This "
            "is our question, not the paper's.",
        )

    # ------------------------------------------------------------------------------------------------- the page

    def question(self) -> str:
        """Return what the paper claims."""
        return (
            "F-PPO regularises the advantages of PPO by the change of long-term fairness, and alters uncertain actions "
            "(massaging) for short-term fairness. The paper claims that it is fairer in the long term than PPO and "
            "A-PPO in three processes, keeps short-term unfairness low, and costs little."
        )

    def runs(self) -> str:
        """Return what was run, and what the numbers mean."""
        weights = ", ".join(f"{world} {weight:g}" for world, weight in PAPER_WEIGHTS.items())
        return (
            f"The study has {self.seeds}. Each training has test episodes of its own, which arms "
            "with the same seed share. Brackets hold 95 % intervals over training seeds; for policies without "
            "training, over sets of test episodes. Arms are compared with Welch's t. It ignores the shared episodes, "
            "and is rather too wide for that reason.\n\n"
            '**Methods.** "F-PPO" without an addition is our repair: this package\'s measures, and terms divided by '
            f"their running standard deviation. *As printed*: Eq. 4 and 7 with the paper's lambda ({weights}; in "
            "attention it gives none, and this is that of the published code), on our measures and massagers, with the "
            "thresholds of the published code. *As coded*: environment, signals, scaling, weights and massaging of the "
            "published code, on our PPO, whose step size is 30 times larger. *Behind its shield*: massaging is kept "
            "at evaluation.\n\n"
            "**Measures.** *As plotted* is what the published figures show. *Sound* is ours:\n\n"
            + tables.markdown(["process", "", "the paper's text", "its figures (as plotted)", "ours (sound)"], MEASURES)
            + "\n\n**Chance.** The value under chance stands beside each number. It is the number if groups are dealt "
            "at random among those who would repay (lending) or among all people (epidemic), or units are sent to "
            "places at random (attention). For the distance of scores, a group is compared with itself in other "
            "episodes; as plotted, half of the episodes with the other half, which is somewhat too high. It is not a "
            "lower bound: a policy that balances groups on purpose is below it. *Sound, above chance* is the number "
            "minus this value.\n\n"
            "**Information.** Who has access to what:\n\n" + tables.markdown(["", "in training", "in tests"], ACCESS)
        )

    def sizes(self) -> list[Size]:
        """Return our scale beside the paper's."""
        s, paper = self.scale, SCALES["full"]
        found = [Size("training seeds of an arm", self.most_seeds, 1)]
        for world in WORLDS:
            found += [
                Size(f"{world}: steps of a training", s.steps[world], paper.steps[world]),
                Size(f"{world}: test episodes of a seed", s.tests[world][0], paper.tests[world][0]),
                Size(f"{world}: steps of a test episode", s.tests[world][1], paper.tests[world][1]),
            ]
        return found

    def limitations(self) -> str:
        """Return what the runs cannot show, and how they differ from the paper's."""
        return (
            "* Trainings are shorter than the paper's, with larger steps and smaller networks. *As coded* means the "
            "published environment, signals, weights, scaling and massaging, but not its networks and step sizes. The "
            'table "Does the method as coded give the paper\'s figures?" shows where it does not.\n'
            "* Massaging follows a schedule of the published code over 350 (lending), 977 (attention) and 245 "
            "(epidemic) rollouts, which is compressed into 49. At its end, nearly certain decisions count as "
            "uncertain, too; the share of altered actions is in the table of parts.\n"
            "* In attention, the limit of 0.1 is above PPO's own short-term unfairness. There, PPO-Lagrangian, CPO and "
            "A-PPO have little to do, so that the differences from PPO and from A-PPO are not independent "
            "evidence.\n"
            "* The tuning has two seeds a value, most chosen values are at the end of their grid, and its rule (keep "
            "90 % of PPO's utility) could not be met by F-PPO in attention and in the epidemic. So F-PPO is compared "
            "there with others at a lower utility. See [the tuning](tuning.md).\n"
            "* Lending is trained on episodes of 2,000 steps and tested on 10,000, as published. Behaviour after "
            "2,000 steps was never trained, and long-term numbers at the end depend on it.\n"
            "* Each claim is judged at one definition of the end of an episode. The margins, that definition and the "
            "variants were chosen after results of an earlier run had been seen.\n"
            "* Outcomes in attention have heavy tails: in some trainings, incidents run away. Means and intervals are "
            "then decided by a few seeds; see the table of such runs.\n"
            "* The gap of all applicants in lending pools windows and episodes, in which gaps of opposite signs "
            "cancel.\n"
            "* The paper's values are read from its figures by eye."
        )

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        return {
            **{f"{world.capitalize()} ({FIGURES[world]})": self.table(world) for world in WORLDS},
            "Differences from PPO and from F-PPO": self.differences_table(),
            "What each part of F-PPO does": self.parts_table(),
            "Who pays": "\n\n".join(f"### {world.capitalize()}\n\n{self.benefits_table(world)}" for world in WORLDS),
            "The shield": self.shield_table(),
            "Attention: runs whose incidents run away": self.runaway_table(),
            "Does the method as coded give the paper's figures?": self.coded_table(),
            "Other methods in lending, against F-PPO": self.others_table(),
            "What was tuned": self.knobs_table(),
        }

    def differences_table(self) -> str:
        """Return how all agents differ from PPO, and those without training from F-PPO."""
        rows = []
        for world in WORLDS:
            arms, digits = self.of(world), {"short": 3, "long": 3, UTILITIES[world]: 0 if world == "lending" else 3}
            for name, arm in arms.items():
                usual = "PPO" + (AS_CODED if AS_CODED in name else "")
                for other in (usual, "F-PPO") if name in AGENTS[world] else (usual,):
                    if other != name:
                        changes = [tables.show(arm.minus(arms[other], of), digits=n) for of, n in digits.items()]
                        rows.append([world, f"{name} minus {other}", *changes])
        return (
            "Sound measures, without subtracting chance. Utility is the profit in lending. Agents as coded are "
            "compared with PPO as coded. The intervals are not corrected for their number.\n\n"
            + tables.markdown(["process", "difference", "short-term", "long-term", "utility"], rows)
        )

    def parts_table(self) -> str:
        """Return what the regulariser and massaging change, and how many actions massaging alters."""
        header = ["process", "method", "comparison", "short-term", "long-term", "utility", "actions altered"]
        rows: list[list[tables.Cell]] = []
        for world in WORLDS:
            columns = ("short", "long", UTILITIES[world])
            for method, own in ENDINGS.items():
                whole, regulariser = self.arm(world, "F-PPO" + own), self.arm(world, "F-PPO-L" + own)
                altered = tables.show(whole.estimate(TRAINED + "altered"), digits=2)
                for words, one, other, share in (
                    ("regulariser: F-PPO-L minus PPO", regulariser, self.arm(world, "PPO"), ""),
                    ("massaging: F-PPO minus F-PPO-L", whole, regulariser, altered),
                ):
                    rows.append([world, method, words, *(one.minus(other, column) for column in columns), share])
        return (
            "Sound measures, in tests without a shield. Utility is the profit in lending. Actions altered: share of "
            "the actions that massaging altered in the second half of the training.\n\n" + tables.markdown(header, rows)
        )

    def benefits_table(self, world: World) -> str:
        """Return what each group gets: PPO's level, and the difference from it for all others."""
        classic = self.arm(world, "PPO")
        names = [name for name in classic.names if name.startswith(BENEFIT)]
        rows: list[list[tables.Cell]] = [["PPO", *map(classic.estimate, names)]]
        rows += [
            [f"{name} minus PPO", *(arm.minus(classic, one) for one in names)]
            for name, arm in self.of(world).items()
            if name != "PPO"
        ]
        text = tables.markdown(["", *(name.removeprefix(BENEFIT) for name in names)], rows)
        if world == "attention":
            text = f"The best and the worst place are those of each episode, so chance alone sets them apart.\n\n{text}"
        return text

    def shield_table(self) -> str:
        """Return what the shield changes in tests."""
        header = ["process", "agent", "short-term", "long-term", "utility"]
        rows: list[list[tables.Cell]] = []
        for key, arm in self.arms.items():
            if SHIELD + "short" in arm.names:
                columns = ("short", "long", UTILITIES[key.world])
                changes = (self.shield_effect(key.world, key.label, column) for column in columns)
                rows.append([key.world, key.label, *changes])
        return "Behind the shield minus without, sound measures.\n\n" + tables.markdown(header, rows)

    def runaway_table(self) -> str:
        """Return in how many seeds incidents run away."""
        arms = self.of("attention")
        away = {name: arm.values("rate") > RUNAWAY for name, arm in arms.items()}
        others = [name for name in arms if name != "PPO"]
        p_values = dict(zip(others, holm([fisher(away[name], away["PPO"]) for name in others]), strict=True))
        rows: list[list[tables.Cell]] = [
            [
                name,
                f"{int(flags.sum())} of {len(flags)}",
                tables.show(share_interval(flags, method="exact"), digits=2),
                f"{p_values[name]:.3f}" if name in p_values else "",
            ]
            for name, flags in away.items()
        ]
        return (
            f"Seeds with more than {RUNAWAY:g} incidents a step and place (t >= 200, mean over places and episodes). "
            "The bound was chosen when three of the seeds had been run. P-values have Holm's correction.\n\n"
            + tables.markdown(["agent", "seeds", "share", "p-value against PPO (Fisher)"], rows)
        )

    def coded_table(self) -> str:
        """Return the numbers of the paper's figures beside those of its learners as coded."""
        header = ["process", "agent", "number", "as coded", "the paper's figure", f"within {100 * CLOSE:.0f} %"]
        rows: list[list[tables.Cell]] = []
        for world in WORLDS:
            for name in LEARNED:
                arm, read = self.arm(world, name + AS_CODED), PLOTTED[world][name]
                for column, field in FIELDS.items():
                    found, paper = arm.estimate(column), list(getattr(read, field).values())[-1]
                    room = CLOSE * abs(paper)
                    outside = found.low > paper + room or found.high < paper - room
                    inside = paper - room <= found.low and found.high <= paper + room
                    told = "yes" if inside else "no" if outside else "unclear"
                    digits = SUMMARIES[world][column].digits
                    rows.append([world, name, column, tables.show(found, digits=digits), f"{paper:g}", told])
        return (
            "The last value of each of the paper's curves, read by eye, beside our summary of the same curve. It is "
            f"within {100 * CLOSE:.0f} % if the whole interval is.\n\n" + tables.markdown(header, rows)
        )

    def table(self, world: World) -> str:
        """Return the agents' numbers with their values under chance and those of the paper's figures."""
        header = ["agent", *(summary.title for summary in SUMMARIES[world].values())]
        number, title = LIMITED[world]
        header += [f"limit {LIMITS[world]:g} on the {title}", "n"]
        rows = [
            [
                name,
                *(self._cell(world, name, tested, column) for column in SUMMARIES[world]),
                met(tested.estimate(number), LIMITS[world]),
                str(tested.seeds),
            ]
            for name, tested in self.of(world).items()
        ]
        return f"{NOTES[world]}\n\n{tables.markdown(header, rows)}"

    def _cell(self, world: World, name: Label, tested: Arm, column: str) -> str:
        digits = SUMMARIES[world][column].digits
        shown = tables.show(tested.estimate(column), digits=digits)
        floor = tested.estimate(NOISE + column).value
        if floor == floor:  # defined
            shown += f"; chance {floor:.{digits}f}"
        read, field = PLOTTED[world].get(name.removesuffix(AS_CODED)), FIELDS.get(column)
        if read is None or field is None:
            return shown
        return f"{shown} (paper: {list(getattr(read, field).values())[-1]:g})"

    def others_table(self) -> str:
        """Return the differences of other methods from F-PPO in lending."""
        columns = {
            "short": "mean gap",
            "of all": "gap of all applicants",
            "long": "distance of scores",
            "profit": "profit",
        }
        fair = self.arm("lending", "F-PPO")
        header = ["method minus F-PPO", *columns.values()]
        rows = [
            [
                name,
                *(
                    tables.show(self.arm("lending", name).minus(fair, column), digits=0 if column == "profit" else 3)
                    for column in columns
                ),
            ]
            for name in ("PPO", "A-PPO", "F-PPO" + AS_PRINTED, *OTHERS)
        ]
        return (
            f"{', '.join(OTHERS)} learn from the labels of all past applicants, also of rejected ones; F-PPO learns "
            f"from the repayment probability of each score. Positive: more than F-PPO. The {4 * len(rows)} intervals "
            "are not corrected for their number.\n\n" + tables.markdown(header, rows)
        )

    def knobs_table(self) -> str:
        """Return what was tuned, the tried values, and the chosen ones."""
        rows = [
            [
                name,
                knob.measured,
                ", ".join(f"{value:g}" for value in knob.values),
                *(f"{TUNED[world][name]:g}" if name in TUNED[world] else "not run" for world in WORLDS),
            ]
            for name, knob in KNOBS.items()
        ]
        return (
            "Each arm with a knob had four values and two seeds. F-PPO-L and F-PPO, shield, have F-PPO's value. PPO, "
            "the arms as printed and as coded, and F-PPO, known, were not tuned.\n\n"
            + tables.markdown(["arm", "knob", "values", *WORLDS], rows)
        )

    # ------------------------------------------------------------------------------------------------- figures

    def draw(self) -> list[Picture]:
        """Save the figures."""
        return [
            *self._courses(),
            *self._dots("short", "Short-term unfairness"),
            *self._dots("long", "Long-term unfairness"),
            *self._exchange(),
            self._ablation(),
        ]

    def _courses(self) -> Iterator[Picture]:
        titles = {"short": "short-term", "long": "long-term"}
        for world in WORLDS:
            arms = {name: self.arm(world, name) for name in DRAWN[world]}
            panels, points = {}, {}

            def coded(name: Label, drawn: Sequence[Label] = DRAWN[world]) -> Label:
                """Return the arm that has the colour of the paper's crosses: the one as coded, if it is drawn."""
                return name + AS_CODED if name + AS_CODED in drawn else name

            for column, title in titles.items():
                for way in ("as plotted", "sound"):
                    label = f"{title} unfairness, {way}"
                    panels[label] = curves(arms, WAYS[way].format(column))
                    if way == "as plotted":
                        points[label] = {coded(name): getattr(read, column) for name, read in PLOTTED[world].items()}
            panels[UTILITY[world]] = curves(arms, "utility")
            points[UTILITY[world]] = {coded(name): read.utility for name, read in PLOTTED[world].items()}
            figures.course_plot(without_empty(panels), self.out / f"{world}.png", points=points)
            yield Picture(
                f"{world}.png",
                f"{world.capitalize()} over an episode, mean with 95 % intervals; crosses are read from the paper. "
                "Wide intervals leave the panels.",
            )

    def _dots(self, column: str, title: str) -> Iterator[Picture]:
        for world in WORLDS:
            file = f"{world}-{column}.png"
            panels = {}
            for way in ("as plotted", "sound"):
                number = WAYS[way].format(column)
                panels[f"{way}: {SUMMARIES[world][number].title}"] = {
                    name: {
                        kind: tested.estimate(prefix + number)
                        for kind, prefix in (("measured", ""), ("under chance", NOISE))
                    }
                    for name, tested in self.of(world).items()
                }
            plots.dot_plot(panels, self.out / file, label=f"{column}-term unfairness (0 is fair)", one_unit=False)
            yield Picture(file, f"{title} in {world}, with the value under chance of each agent.")

    def _exchange(self) -> Iterator[Picture]:
        for world in WORLDS:
            arms = {name: arm for name, arm in self.of(world).items() if not name.endswith(UNDRAWN)}
            arms = {name: arm for name, arm in arms.items() if not name.startswith("F-PPO" + AS_CODED)}
            figures.exchange_plot(
                {
                    f"{world}, {column}-term": {
                        name: (arm.estimate(column), arm.estimate("utility")) for name, arm in arms.items()
                    }
                    for column in ("short", "long")
                },
                self.out / f"{world}-price.png",
                labels=("unfairness, sound", SUMMARIES[world]["utility"].title),
                hollow=AGENTS[world],
            )
            yield Picture(
                f"{world}-price.png",
                f"The price of fairness in {world}: unfairness and utility. Hollow: policies without training. F-PPO "
                "as coded is left out, because its values would set the axes.",
            )

    def _ablation(self) -> Picture:
        panels = {
            f"{world}: {title}": curves({name: self.arm(world, name) for name in ABLATED}, TRAINED + column)
            for world in WORLDS
            for column, title in (("short", "mean disparity in a rollout"), ("deviation", "its deviation"))
        }
        file = self.out / "ablation.png"
        figures.course_plot(without_empty(panels), file, points={}, labels=("environment steps", ""))
        return Picture("ablation.png", "The ablation (Fig. 2): short-term disparity in the rollouts of the trainings.")


def curves(arms: Mapping[Label, Arm], name: str) -> dict[Label, Curve]:
    """Return the curves of the arms for which they are defined somewhere; in very short tests they may not be."""
    found = {label: arm.curve(name) for label, arm in arms.items()}
    return {label: curve for label, curve in found.items() if curve.times.size}


def without_empty(panels: Mapping[str, dict[Label, Curve]]) -> dict[str, dict[Label, Curve]]:
    """Return the panels with at least one curve."""
    return {title: each for title, each in panels.items() if each}


def met(found: Estimate, limit: float) -> str:
    """Return whether a limit is met, by the interval of a number."""
    if found.low > limit:
        return "**missed**"
    return "met" if found.high <= limit else "unclear"


def some_below_both(found: Estimates, rivals: Sequence[str]) -> Outcome:
    """Return whether some variant is below all rivals, with Holm's correction over the variants.

    It is refuted if each variant is shown to be above a rival, with Holm's correction over its rivals.

    Args:
        found: The differences, named ``VARIANT minus RIVAL``.
        rivals: The names of the rivals.
    """
    variants = list(dict.fromkeys(name.rpartition(" minus ")[0] for name in found))
    of = {variant: {rival: found[f"{variant} minus {rival}"] for rival in rivals} for variant in variants}
    weakest = {  # a variant is below all rivals if the least certain difference is: an intersection-union test
        variant: max(several.values(), key=lambda e: np.nan_to_num(p_value(e, 0, "less"), nan=1.0))
        for variant, several in of.items()
    }
    if shown(weakest, 0, "less"):
        return Outcome(True)
    return Outcome(False if all(shown(several, 0, "greater") for several in of.values()) else None)


def made(name: str, scale: Scale, arms: Mapping[Key, Arm], out: Path) -> study.Report[Scale]:
    """Return the report of a scale; that of the tuning is another one."""
    kind = TuningReport if scale.tuning else Report
    return kind(name=name, scale=scale, arms=arms, out=out)


main = study.Study(scales=SCALES, cells=cells, numbers=numbers, report=made).run
