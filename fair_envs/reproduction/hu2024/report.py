"""Hu, Lear and Zhang (2024), "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement Learning".

The paper (arXiv 2401.06318) trains PPO, A-PPO and F-PPO on lending, attention allocation and an epidemic, and compares
them with scripted agents in short-term fairness, long-term fairness and utility over an episode. The plotted long-term
fairness differs from the definition in its text. Every claim is therefore tested as plotted and as defined ("truly").
The plan of the study is in ``docs/reproduction/hu2024/plan.md``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fair_envs.experiments import figures, tables
from fair_envs.experiments.seeds import AT, Arm, Curve
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.metrics.inference import p_value
from fair_envs.reproduction import study
from fair_envs.reproduction.claims import (
    Claim,
    Estimates,
    Measured,
    Outcome,
    everywhere_below,
    somewhere_above,
)
from fair_envs.reproduction.hu2024.jobs import (
    AS_CODED,
    AS_PRINTED,
    DRAWN,
    KNOBS,
    KNOWN,
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
from fair_envs.reproduction.hu2024.numbers import ABLATED, LIKELIEST, NOISE, SHIELD, SUMMARIES, TRAINED, numbers
from fair_envs.reproduction.hu2024.processes import World
from fair_envs.reproduction.hu2024.published import PLOTTED
from fair_envs.reproduction.hu2024.tuning import TuningReport
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture, Size

FIGURES: Mapping[World, str] = {"lending": "Fig. 1", "attention": "Fig. 3", "epidemic": "Fig. 4"}
UTILITY: Mapping[World, str] = {
    "lending": "cash of the bank",
    "attention": "reward a step, smoothed",
    "epidemic": "share of people who are not infected",
}
LITTLE = 10.0  # a loss up to this percentage of the profit counts as little; our choice, the paper gives none
BELOW = 0.1  # the paper's words: short-term unfairness "below 0.1"
SHIELDED, MOST_PROBABLE = " behind its shield", ", likeliest actions"
WAYS: Mapping[str, str] = {"as plotted": ", as plotted", "truly": ""}
"""Both definitions of each measure, and how the names of their numbers end."""

LIMITED: Mapping[World, str] = {"lending": "of all", "attention": "short", "epidemic": "short"}
"""The number that is compared with the limit of each process."""

CODED = "as coded"
FORMS: Mapping[str, tuple[str, str]] = {PRINTED: (AS_PRINTED, ""), CODED: (AS_CODED, AS_CODED), REPAIRED: ("", "")}
"""The endings of the names of F-PPO and of the others: the method as printed, the published code, and our repair.

The paper's PPO and A-PPO have no printed scaling; those as coded are compared with each other.
"""

OTHERS = ("ELBERT", "return parity", "PPO-Lagrangian")


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of the study; the keys of the arms are pairs of a process and a name."""

    paper = "hu2024"
    scales = SCALES

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
                for ending, prefix in ((SHIELDED, SHIELD), (MOST_PROBABLE, LIKELIEST)):
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
            self._lower("epidemic", earlier="undecided as plotted, holds truly; as coded: the same"),
            self._lower("epidemic", column="short", others=("PPO",), earlier="holds"),
            *(self._shield(world) for world in WORLDS),
            self._variants(),
        ]

    def _claim(self, measured: Measured, test: Callable[[Estimates], Outcome], **words: str) -> Claim:
        """Return a claim whose test is made in each panel; those of the published code count as printed."""
        claim = Claim.tested(measured, test, **words)
        coded = {f"{CODED}, {panel}": outcome for panel, outcome in claim.outcomes.get(CODED, {}).items()}
        outcomes = {PRINTED: {**claim.outcomes[PRINTED], **coded}, REPAIRED: claim.outcomes[REPAIRED]}
        return replace(claim, outcomes=outcomes)

    def _ways(self, found: Callable[[str, str, str], Estimates]) -> dict[str, dict[str, Estimates]]:
        """Return the numbers of each form of F-PPO, with a panel for each definition of a measure.

        Args:
            found: Returns the numbers, from the endings of F-PPO's name, of the others' names and of the number.
        """
        return {
            form: {way: found(own, others, ending) for way, ending in WAYS.items()}
            for form, (own, others) in FORMS.items()
        }

    def _below(self) -> Claim:
        def gaps(own: str, others: str, ending: str) -> dict[str, Estimate]:
            names = {"EO": "", "A-PPO": others, "F-PPO": own}
            return {name: self.arm("lending", name + form).estimate("short" + ending) for name, form in names.items()}

        return self._claim(
            Measured(label="short-term unfairness (gap)", bounds=(BELOW,), numbers=self._ways(gaps)),
            lambda found: everywhere_below(found, BELOW),
            text=f"In lending, EO, A-PPO and F-PPO keep short-term unfairness below {BELOW:g}.",
            refuted=f"One of the three with a gap above {BELOW:g}.",
            earlier="undecided",
            reason="More seeds, and the printed method.",
        )

    def _lower(
        self, world: World, *, column: str = "long", others: Sequence[Label] = ("PPO", "A-PPO"), earlier: str
    ) -> Claim:
        def differences(own: str, other: str, ending: str) -> dict[str, Estimate]:
            fair = self.arm(world, "F-PPO" + own)
            return {f"minus {name}": fair.minus(self.arm(world, name + other), column + ending) for name in others}

        return self._claim(
            Measured(
                label=f"{column}-term unfairness of F-PPO minus that of another",
                bounds=(0,),
                numbers=self._ways(differences),
            ),
            lambda found: everywhere_below(found, 0),
            text=f"In {world}, F-PPO has less {column}-term unfairness than {' and '.join(others)}.",
            refuted=f"F-PPO with more than {' or '.join(others)}.",
            earlier=earlier,
            reason="More seeds, no pairing of seeds, tuned arms, and the printed method.",
        )

    def _price(self) -> Claim:
        lost = {
            form: {
                "cash": {"": self.arm("lending", "F-PPO" + own).reduction(self.arm("lending", "PPO" + other), "profit")}
            }
            for form, (own, other) in FORMS.items()
        }
        return self._claim(
            Measured(label="profit lost, in percent of PPO's", bounds=(LITTLE,), numbers=lost, digits=1),
            lambda found: everywhere_below(found, LITTLE),
            text=f"In lending, F-PPO's fairness costs little: at most {LITTLE:g} % of PPO's profit.",
            refuted=f"A loss of more than {LITTLE:g} %.",
            earlier="holds",
            reason="More seeds, a ratio of means in place of a mean of ratios, and the printed method.",
        )

    def _massaging(self) -> Claim:
        methods = {PRINTED: AS_PRINTED, REPAIRED: ""}

        def change(world: World, own: str) -> Estimate:
            return self.arm(world, "F-PPO" + own).minus(self.arm(world, "F-PPO-L" + own), TRAINED + "short")

        return self._claim(
            Measured(
                label="mean disparity in the second half of the training, F-PPO minus F-PPO-L",
                bounds=(0,),
                numbers={
                    method: {world: {"": change(world, own)} for world in WORLDS} for method, own in methods.items()
                },
            ),
            lambda found: everywhere_below(found, 0),
            text="Massaging lowers the short-term unfairness of the training (F-PPO against F-PPO-L).",
            refuted="A higher disparity with massaging.",
            earlier="holds",
            reason="More seeds, no pairing of seeds, and the printed method.",
        )

    def _shield(self, world: World) -> Claim:
        names = {PRINTED: {"F-PPO": AS_PRINTED}, REPAIRED: {"F-PPO": "", "F-PPO, shield": ""}}
        found = {
            method: {
                way: {n: self.shield_effect(world, n + form, "short" + ending) for n, form in several.items()}
                for way, ending in WAYS.items()
            }
            for method, several in names.items()
        }
        return self._claim(
            Measured(label="unfairness behind the shield minus without", bounds=(0,), numbers=found),
            lambda found: everywhere_below(found, 0),
            text=f"In {world}, massaging kept at evaluation lowers short-term unfairness.",
            refuted="More unfairness behind the shield.",
            earlier="undecided",
            reason="More seeds, and the printed method.",
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
        found = {
            method: {
                "truly": {
                    row: weakest([arms[other].minus(arms[name], "long") for other in ("PPO", "A-PPO")])
                    for row, name in several.items()
                    if name in arms
                }
            }
            for method, several in names.items()
        }
        return self._claim(
            Measured(
                label="distance of the scores with PPO or A-PPO, whichever is closer, minus that of a variant",
                bounds=(0,),
                numbers=found,
            ),
            lambda found: somewhere_above(found, 0),
            text="In lending, a variant of F-PPO ends with a smaller true distance of the scores than PPO and A-PPO.",
            refuted="Every variant with a larger distance than PPO or A-PPO.",
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
        settings = "; ".join(
            f"{world}: " + ", ".join(f"{name} {value:g}" for name, value in TUNED[world].items()) for world in WORLDS
        )
        return (
            f"Each arm has {self.scale.seeds} training seeds, and each training has test episodes of its own. Brackets "
            "hold 95 % intervals over training seeds. Arms are compared with Welch's t, and nothing is paired across "
            "arms.\n\n"
            '"F-PPO" is our repair: this package\'s measures, and terms divided by their running standard deviation. '
            f'"As printed" is Eq. 4 and 7 with the paper\'s lambda ({weights}; in attention it gives none, and this is '
            'that of the published code) and everything else equal. "As coded" has the published code\'s environment, '
            "signals, scaling, weights and massaging.\n\n"
            '"As plotted" is what the published figures show, and "truly" what the text defines. The noise floor '
            "(floor) of a number is its value if chance alone makes the groups differ: groups are dealt at random "
            "among those who would repay (lending) or among all people (epidemic); units are sent to places at random "
            "(attention). The floor of the distance of scores compares one group with itself in other episodes.\n\n"
            "One setting of each arm is tuned, with the same budget and on other seeds. Values: " + settings + "."
        )

    def sizes(self) -> list[Size]:
        """Return our scale beside the paper's."""
        s, paper = self.scale, SCALES["full"]
        found = [Size("training seeds of an arm", s.seeds, 1)]
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
            "published environment, signals, weights, scaling and massaging, but not its networks and step sizes.\n"
            "* Lending is trained on episodes of 2,000 steps and tested on 10,000, as published. Behaviour after "
            "2,000 steps was never trained, and long-term numbers at the end depend on it.\n"
            "* The margins, the definition of the end of an episode and the variants were chosen after results of an "
            "earlier run had been seen.\n"
            "* The paper's values are read from its figures by eye."
        )

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        return {
            **{f"{world.capitalize()} ({FIGURES[world]})": self.table(world) for world in WORLDS},
            "Other methods in lending, against F-PPO": self.others_table(),
            "What was tuned": self.knobs_table(),
        }

    def table(self, world: World) -> str:
        """Return the agents' numbers with their noise floors and the values of the paper's figures."""
        header = ["agent", *(summary.title for summary in SUMMARIES[world].values())]
        header += [f"limit {LIMITS[world]:g} of short-term unfairness", "n"]
        rows = [
            [
                name,
                *(self._cell(world, name, tested, column) for column in SUMMARIES[world]),
                met(tested.estimate(LIMITED[world]), LIMITS[world]),
                str(tested.seeds),
            ]
            for name, tested in self.of(world).items()
        ]
        return tables.markdown(header, rows)

    def _cell(self, world: World, name: Label, tested: Arm, column: str) -> str:
        digits = SUMMARIES[world][column].digits
        shown = tables.show(tested.estimate(column), digits=digits)
        floor = tested.estimate(NOISE + column).value
        if floor == floor:  # defined
            shown += f"; floor {floor:.{digits}f}"
        read = PLOTTED[world].get(name)
        field = {"short, as plotted": "short", "long, as plotted": "long", "utility": "utility"}.get(column)
        if read is None or field is None:
            return shown
        return f"{shown} (paper: {list(getattr(read, field).values())[-1]:g})"

    def others_table(self) -> str:
        """Return the differences of other methods from F-PPO in lending."""
        columns = {"short": "mean gap", "of all": "gap of all applicants", "long": "distance of scores", "profit": ""}
        fair = self.arm("lending", "F-PPO")
        header = ["method minus F-PPO", *(f"{title or name}" for name, title in columns.items())]
        rows: list[list[tables.Cell]] = [
            [name, *(self.arm("lending", name).minus(fair, column) for column in columns)] for name in OTHERS
        ]
        return (
            "These methods learn from the labels of all past applicants, also of rejected ones; F-PPO learns from the "
            "repayment probability of each score. Positive: more than F-PPO.\n\n" + tables.markdown(header, rows)
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
        return tables.markdown(["arm", "knob", "values", *WORLDS], rows)

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
            for column, title in titles.items():
                for way, ending in WAYS.items():
                    label = f"{title} unfairness, {way}"
                    panels[label] = curves(arms, column + ending)
                    if ending:
                        points[label] = {name: getattr(read, column) for name, read in PLOTTED[world].items()}
            panels[UTILITY[world]] = curves(arms, "utility")
            points[UTILITY[world]] = {name: read.utility for name, read in PLOTTED[world].items()}
            figures.course_plot(without_empty(panels), self.out / f"{world}.png", points=points)
            yield Picture(f"{world}.png", f"{world.capitalize()} over an episode; crosses are read from the paper.")

    def _dots(self, column: str, title: str) -> Iterator[Picture]:
        for world in WORLDS:
            file = f"{world}-{column}.png"
            figures.dot_plot(
                {
                    way: {
                        name: {
                            kind: tested.estimate(prefix + column + ending)
                            for kind, prefix in (("measured", ""), ("noise floor", NOISE))
                        }
                        for name, tested in self.of(world).items()
                    }
                    for way, ending in WAYS.items()
                },
                self.out / file,
                label=SUMMARIES[world][column].title if column == "long" else f"{column}-term unfairness",
            )
            yield Picture(file, f"{title} in {world}, with the noise floor of each agent.")

    def _exchange(self) -> Iterator[Picture]:
        for world in WORLDS:
            figures.exchange_plot(
                {
                    f"{world}, {column}-term": {
                        name: (self.arm(world, name).estimate(column), self.arm(world, name).estimate("utility"))
                        for name in (*DRAWN[world], "PPO-Lagrangian")
                    }
                    for column in ("short", "long")
                },
                self.out / f"{world}-price.png",
                labels=("unfairness, truly", UTILITY[world]),
            )
            yield Picture(f"{world}-price.png", f"The price of fairness in {world}: unfairness and utility.")

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
    start = name + AT
    return {
        label: arm.curve(name)
        for label, arm in arms.items()
        if any(number.startswith(start) for row in arm.rows for number in row.numbers)
    }


def without_empty(panels: Mapping[str, dict[Label, Curve]]) -> dict[str, dict[Label, Curve]]:
    """Return the panels with at least one curve."""
    return {title: each for title, each in panels.items() if each}


def met(found: Estimate, limit: float) -> str:
    """Return whether a limit is met, by the interval of a number."""
    if found.low > limit:
        return "**missed**"
    return "met" if found.high <= limit else "unclear"


def weakest(found: Sequence[Estimate]) -> Estimate:
    """Return the estimate that is least shown to be above 0: if it is, all are (an intersection-union test)."""

    def doubt(e: Estimate) -> float:
        p = p_value(e, 0, "greater")
        return 1.0 if p != p else p  # undefined

    return max(found, key=doubt)


def made(name: str, scale: Scale, arms: Mapping[Key, Arm], out: Path) -> study.Report[Scale]:
    """Return the report of a scale; that of the tuning is another one."""
    kind = TuningReport if scale.tuning else Report
    return kind(name=name, scale=scale, arms=arms, out=out)


main = study.Study(scales=SCALES, cells=cells, numbers=numbers, report=made).run
