"""The tables and figures of the study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fair_envs.assessment import plots
from fair_envs.experiments import figures, tables
from fair_envs.experiments.seeds import Arm, Curve, SeedRow
from fair_envs.experiments.tables import listed, show
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.reproduction.cimpean2025 import singles
from fair_envs.reproduction.cimpean2025.arms import FIRST, PCN, Arms, paired
from fair_envs.reproduction.cimpean2025.jobs import (
    IDENTICAL,
    INDIVIDUAL,
    PUBLISHED_CSC,
    PUBLISHED_IF,
    UNPLANNED,
)
from fair_envs.reproduction.cimpean2025.plays import GROUP_NOTIONS, acted
from fair_envs.reproduction.cimpean2025.published import (
    DISTANCES,
    MEASURES,
    Span,
    World,
    discounted_tables,
    printed,
    printed_value,
)
from fair_envs.reproduction.cimpean2025.published import tables as settings_of_tables
from fair_envs.reproduction.cimpean2025.results import SPANS as OVER
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture

SPANS: Mapping[Span, str] = {"best": "best", "mean": "total", "worst": "worst"}
PAIRS = [f"{one}~{other}" for one, other in combinations(GROUP_NOTIONS, 2)]
TRADE_OFFS = (1, 2, 5, 13, 14, 17)  # tables whose trade-offs are drawn
ACTED: Mapping[World, str] = {"hiring": "hired", "fraud": "checked"}  # what decision 1 does
PEOPLE: Mapping[World, Mapping[str, str]] = {  # the people of a rate, by the names of `singles.RATES`
    "hiring": {"all": "hired", "labelled": "of the qualified (EO)", "others": "of the unqualified (PE)"},
    "fraud": {"all": "checked", "labelled": "of the frauds (EO)", "others": "of the genuine payments (PE)"},
}
LABELLED: Mapping[World, str] = {"hiring": "qualified", "fraud": "frauds"}
SIDES: Mapping[World, tuple[str, str]] = {"hiring": ("women", "men"), "fraud": ("North America", "others")}
PLANTED: Mapping[World, str] = {"hiring": "hires qualified men, no women", "fraud": "checks North America"}
"""The policies that treat one group in another way by design."""
HARMS: Mapping[World, str] = {
    "hiring": "A rejected qualified person loses a job (EO). Hiring people who are not qualified is a cost to the "
    "company, and an advantage to the group that gets it more often (PE).",
    "fraud": "A customer whose genuine payment is checked must authenticate it, and may give it up (PE). A fraud that "
    "is not checked is a loss for the holder of the card or its issuer (EO).",
}
PUBLISHED_MEASURES = (*MEASURES[:6], PUBLISHED_IF, PUBLISHED_CSC)  # the columns of the paper's tables


@dataclass(frozen=True, kw_only=True)
class Sections(Arms):
    """The tables and figures, from the numbers of the arms."""

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        beside = (
            "Episode sums: best / mean / worst over the tested policies of a training, means over seeds. *In "
            "training*: returns of single training episodes, as the paper's rows are: largest of all seeds / mean / "
            "smallest of all seeds. The paper's n rows are a choice from ten seeds that shows extremes, so means are "
            "not comparable. R has the constants that the paper subtracts (46.53, 906 or 1000) added back. IF is by "
            "the paper's equation 8 and, as CSC, by the published similarities. Gaps are summed over the steps of an "
            "episode, so short episodes look fairer: tables with gaps per step follow. Sixteen identical policies "
            "differ only by chance. Policies without training are measured over a window of 500 with HEOM."
        )
        own = [f"### Table {number} ({self._world_of(number)})\n\n{self.table(number)}" for number in self.scale.tables]
        found = {"The paper's tables beside ours": "\n\n".join([beside, *own])}
        found["Who learns the tasks"] = "\n\n".join([_OF_TASKS, *self._by_world(self.tasks_table)])
        found["Who is affected"] = "\n\n".join([_OF_GROUPS, *self._by_world(self.affected_table)])
        found["What the policies of PCN do"] = "\n\n".join([_OF_FRONTS, *self._by_world(self.fronts_table)])
        if "hiring" in self.worlds:
            found["What the published history shows"] = f"{_OF_HISTORIES}\n\n{self.misread_table()}"
        found["Gaps per step"] = "\n\n".join([_OF_RATES, *self._by_world(self.rates_table)])
        if any(self.groups(FIRST[world] + 3) for world in self.worlds):
            found["Group notions, in different halves of many decisions"] = "\n\n".join(
                self._by_world(lambda world: self.pairs_table(world) if self.groups(FIRST[world] + 3) else "")
            )
        return found

    def _by_world(self, table: Callable[[World], str]) -> list[str]:
        found = {world: table(world) for world in self.worlds}
        return [f"### {world.capitalize()}\n\n{own}" for world, own in found.items() if own]

    def _world_of(self, number: int) -> World:
        return next(iter(settings_of_tables()[number].values())).world

    def table(self, number: int) -> str:
        """Return a table of the paper: our rows above the paper's, then policies without training."""
        header = ["policies", "", "n", "steps", *MEASURES]
        rows: list[list[tables.Cell]] = []
        for group, setting in settings_of_tables()[number].items():
            distances = DISTANCES if number in (4, 16) else (setting.distance,)
            for distance in distances:
                several = len(distances) > 1
                name = f"{group}, {distance}" if several else group
                for method in (REPAIRED, PRINTED):
                    arms = self.groups(number, method)
                    if arms:
                        rows.append([name, f"ours, {method}", *_spans(arms[group], distance if several else None)])
                    if arms and method == PRINTED and distance == setting.distance:
                        rows.append([name, f"ours, {method}, in training", *_trained(arms[group])])
                rows.append([name, "paper", *_paper(number, group, distance)])
        world = self._world_of(number)
        shown = {method: arm for method, arm in self.identical(world).items() if self.groups(number, method)}
        rows += [[IDENTICAL, f"no training, {method}", *_spans(arm, None)] for method, arm in shown.items()]
        rows += [[name, "no training", *_spans(arm, None)] for name, arm in self.references(world).items()]
        return tables.markdown(header, rows)

    def tasks_table(self, world: World) -> str:
        """Return what methods earn, beside policies without training."""
        header = ["policy", "steps", ACTED[world], "R a step", "R an episode", "share of the span"]
        header += ["seeds that reach it", "minus the best constant policy", "same seeds", "gap SP", "noise floor"]
        header += ["shown to learn"]
        learned = self.learned(world)
        rows: list[list[tables.Cell]] = []
        for name, (arm, method) in self.without(world).items():
            constant = self.best_constant(world, method)
            beats = ["", ""] if arm is constant else [f(arm, constant, "total R") for f in (Arm.minus, paired)]
            rows.append(
                [
                    name,
                    f"{arm.estimate('steps').value:.0f}",
                    *(arm.estimate(own) for own in ("acted", "R", "total R")),
                    mean_interval(self.shares(world, arm.values("total R"), method)),
                    "",
                    *beats,
                    *_gap_and_floor(arm),
                    "",
                ]
            )
        for name, (arm, method) in self.candidates(world).items():
            constant, reached = self.best_constant(world, method), self.reached(world, [arm], method)
            several = name in PCN.values()
            rows.append(
                [
                    name,
                    f"{np.mean([_of_top(row, 'steps') for row in arm.rows]):.0f}",
                    *(arm.estimate(f"top {own}") for own in ("acted", "R", "total R")),
                    mean_interval(self.shares(world, arm.values("top total R"), method)),
                    f"{reached.sum()} of {len(reached)}",
                    arm.minus(constant, "top total R"),
                    "" if several else paired(arm, constant, "top total R"),
                    *_gap_and_floor(arm, top=True),
                    "yes" if name in learned else "no",
                ]
            )
        return tables.markdown(header, rows)

    def affected_table(self, world: World) -> str:
        """Return the decisions about both groups, where they are paired with their persons."""
        one, other = SIDES[world]
        header = ["policy", *PEOPLE[world].values(), LABELLED[world]]
        trained = {name: arm for name, (arm, _) in self.candidates(world).items()}
        rows: list[list[tables.Cell]] = []
        for name, arm in {**self.references(world), **trained}.items():
            if singles.histories(arm)[0]:  # the stored decisions are not paired with their persons
                continue
            counts = [singles.decisions(row) for row in arm.rows]
            of_groups = [np.array([singles.group_rates(own, people) for own in counts]) for people in PEOPLE[world]]
            bases = np.array([singles.base_rates(own) for own in counts])
            rows.append([name, *map(_both_groups, [*of_groups, bases])])
        return f"{one[0].upper()}{one[1:]} / {other}: difference. {HARMS[world]}\n\n{tables.markdown(header, rows)}"

    def fronts_table(self, world: World) -> str:
        """Return what the policies of PCN were asked for and do, and how many of them have a gap beyond chance."""
        correct = "SP beyond chance"
        header = ["setting", "policies", "desired R", "R an episode", f"{ACTED[world]}: least / mean / most", correct]
        header += [f"{correct}, published history"] * (world == "hiring")
        settings = [item for method in (REPAIRED, PRINTED) for item in self.settings(world, method).items()]
        arms = {str(key): arm for key, arm in settings}
        arms |= {f"{IDENTICAL}, {method}": arm for method, arm in self.identical(world).items()}
        rewarded = {str(key) for key, _ in settings if "R" in key.objectives}
        rows: list[list[tables.Cell]] = []
        for name, arm in arms.items():
            desired = mean_interval([np.mean(singles.desired(row)) for row in arm.rows]) if name in rewarded else ""
            shares = [acted(singles.kinds_of(row)) for row in arm.rows]
            least, mean, most = (np.mean([of(own) for own in shares]) for of in (np.min, np.mean, np.max))
            rows.append(
                [
                    name,
                    f"{arm.estimate('policies').value:g}",
                    desired,
                    arm.estimate("total R"),
                    f"{least:.2f} / {mean:.2f} / {most:.2f}",
                    *(_beyond(arm, history) for history in singles.histories(arm)),
                ]
            )
        return tables.markdown(header, rows)

    def rates_table(self, world: World) -> str:
        """Return the means per step of policies without training, learners and settings."""
        header = ["policy", ACTED[world], "R", *(f"gap {name}" for name in GROUP_NOTIONS), "IF", "CSC"]
        arms = {name: arm for name, (arm, _) in {**self.without(world), **self.learners(world)}.items()}
        arms |= {f"{IDENTICAL}, {method}": arm for method, arm in self.identical(world).items()}
        arms |= {str(key): arm for method in (REPAIRED, PRINTED) for key, arm in self.settings(world, method).items()}
        rows: list[list[tables.Cell]] = []
        for name, arm in arms.items():
            unrelated = np.mean([singles.unrelated_consistency(singles.kinds_of(row)).mean() for row in arm.rows])
            rows.append(
                [
                    name,
                    f"{arm.estimate('acted').value:.2f}",
                    arm.estimate("R"),
                    *(
                        f"{show(-arm.estimate(own))} ({arm.estimate(f'noise {own}').value:.3f})"
                        for own in GROUP_NOTIONS
                    ),
                    arm.estimate("IF"),
                    f"{show(arm.estimate('CSC'))} ({_plain(unrelated, 3)})",
                ]
            )
        return tables.markdown(header, rows)

    def pairs_table(self, world: World) -> str:
        """Return the correlations of group notions, beside those of identical random policies."""
        header = ["notions", "policies, different halves", "identical, different halves", "policies, same half",
                  "identical, same half"]  # fmt: skip
        (arm,) = self.groups(FIRST[world] + 3).values()
        null = self.identical(world)[REPAIRED]
        pairs = {**dict.fromkeys(PAIRS, True), **{f"{name}~{name}": False for name in GROUP_NOTIONS}}
        rows: list[list[tables.Cell]] = []
        for pair, same in pairs.items():
            suffixes = ("", " same half") if same else ("",)
            shown = [own.estimate(f"{pair}{suffix}") for suffix in suffixes for own in (arm, null)]
            rows.append([pair, *shown, *[""] * (4 - len(shown))])
        pooled = {name: arm.estimate(f"pooled {name}") for name in GROUP_NOTIONS}
        floors = {name: null.estimate(f"pooled {name}") for name in GROUP_NOTIONS}
        return (
            f"Gaps over {2 * self.scale.decisions:,} decisions of a policy: {listed(pooled)}; of identical random "
            f"policies: {listed(floors)}.\n\n{tables.markdown(header, rows)}"
        )

    def misread_table(self) -> str:
        """Return the gaps of policies as they are, and in the published history."""
        header = ["policy", "R an episode", *GROUP_NOTIONS]
        arms = {**self.references("hiring"), IDENTICAL: self.identical("hiring").get(REPAIRED)}
        arms |= {name: self.default("hiring", method) for method, name in PCN.items()}
        rows: list[list[tables.Cell]] = [
            [name, arm.estimate("total R"), *(_in_both_histories(arm, own) for own in GROUP_NOTIONS)]
            for name, arm in arms.items()
            if arm is not None
        ]
        return tables.markdown(header, rows)

    # ------------------------------------------------------------------------------------------- figures

    def draw(self) -> list[Picture]:
        """Save the figures."""
        return [
            *(self._gaps_picture(number) for number in self.scale.tables),
            *(self._trade_off_picture(number) for number in self.scale.tables if number in TRADE_OFFS),
            *(self._history_picture(number) for number in self.scale.tables if number in discounted_tables()),
            *self._learning_picture(),
        ]

    def _shown(self, world: World) -> dict[str, Arm]:
        """Return the policies without training that are in the figures: all but the one that discriminates."""
        return {name: arm for name, arm in self.references(world).items() if name != PLANTED[world]}

    def _trained(self, number: int) -> dict[str, Arm]:
        """Return the settings of a table and the learners of its world."""
        return {
            **{f"{PCN[REPAIRED]}, {name}": arm for name, arm in self.groups(number).items()},
            **{f"{PCN[PRINTED]}, {name}": arm for name, arm in self.groups(number, PRINTED).items()},
            **{name: arm for name, (arm, _) in self.learners(self._world_of(number)).items()},
        }

    def _gaps_picture(self, number: int) -> Picture:
        world, file = self._world_of(number), f"gaps-{number}.png"
        arms = {**self._trained(number), **self._shown(world)}
        plots.dot_plot(
            {
                notion: {
                    name: dict(zip(("gap", "noise floor"), _gap_and_floor(arm, notion), strict=True))
                    for name, arm in arms.items()
                }
                for notion in GROUP_NOTIONS
            },
            self.out / file,
            label="gap per step (0 is fair)",
            lines=[0],
        )
        return Picture(
            file,
            f"Gaps of the group notions in the correct history, means over policies, and their noise floors: PCN in "
            f"the settings of table {number}, learners of the reward only, and policies without training (not the one "
            f"that {PLANTED[world]}).",
        )

    def _trade_off_picture(self, number: int) -> Picture:
        world, file = self._world_of(number), f"trade-offs-{number}.png"
        references = self._shown(world)
        arms = {**self._trained(number), **references}
        figures.exchange_plot(
            {
                f"table {number}": {
                    name: (arm.estimate("total R"), _gap_and_floor(arm)[0]) for name, arm in arms.items()
                }
            },
            self.out / file,
            labels=("reward of an episode", "gap SP per step"),
            hollow=references,
            singles={
                f"table {number}": {name: _points(arm) for name, arm in arms.items() if name.startswith(PCN[REPAIRED])}
            },
        )
        return Picture(
            file,
            f"Reward against unfairness in the correct history: PCN in the settings of table {number} (pale: single "
            "policies of all seeds; with intervals: means over policies), and learners of the reward only. Hollow: "
            f"policies without training (not the one that {PLANTED[world]}).",
        )

    def _history_picture(self, number: int) -> Picture:
        file = f"history-{number}.png"
        figures.course_plot(
            {"decisions remembered": {name: arm.curve("remembered") for name, arm in self.groups(number).items()}},
            self.out / file,
            points={},
            labels=("environment steps", ""),
        )
        return Picture(file, f"Decisions that the history of a lane holds in the trainings of table {number}.")

    def _learning_picture(self) -> list[Picture]:
        file = "learning.png"
        panels: dict[str, dict[str, Curve]] = {}
        lines: dict[str, dict[str, float]] = {}
        for world in self.worlds:
            arms = {PCN[method]: self.default(world, method) for method in (REPAIRED, PRINTED)}
            known = {name: arm for name, arm in arms.items() if arm is not None}
            panels[f"{world}, R an episode"] = {name: arm.curve("learned total R") for name, arm in known.items()}
            known |= {name: arm for name, (arm, _) in self.learners(world).items()}
            panels[f"{world}, R a step"] = {name: arm.curve("learned R") for name, arm in known.items()}
            for title, number in (("R an episode", "total R"), ("R a step", "R")):
                shown = self._shown(world)
                lines[f"{world}, {title}"] = {name: arm.estimate(number).value for name, arm in shown.items()}
        panels = {world: curves for world, curves in panels.items() if curves}
        if not panels:
            return []
        figures.course_plot(panels, self.out / file, points={}, labels=("environment steps", ""), lines=lines)
        caption = (
            "Reward in the trainings: of PCN for R, SP and IF, and of learners of the reward only, of which the reward "
            "of an episode is not stored. Dotted: policies without training."
        )
        if "hiring" in self.worlds:
            caption += (
                " An episode of hiring ends when 100 people are employed. A policy that hires seldom therefore has "
                "longer episodes: it earns more in an episode, and less per step."
            )
        return [Picture(file, caption)]


_OF_TASKS = (
    "Policies that are trained: the most rewarded one of the first test, in the second test; others: both tests. PCN: "
    "with HEOM (the claim that fraud is harder takes the most rewarded policy of all three distances). "
    "*Seeds that reach it*: half of the span, more than the best constant policy in the tests of the same seed, and "
    "both decisions in at least 1 % of the cases. *Minus the best constant policy*: Welch's interval, with which "
    "learning is tested. *Same seeds*: the mean difference over seeds, whose tests draw from the same random numbers. "
    "In fraud detection, the test episodes are the same; in hiring, most of them are, because a history is filled by "
    "a number of decisions, and episodes differ in length. This comparison was not planned. Gaps are in the correct "
    f"history. Added when results were known, and without effect on the span: {', '.join(UNPLANNED)}."
)
_OF_GROUPS = (
    "Signed differences between the groups, from the decisions of both tests (PCN: of the most rewarded policy, in "
    "the second test). The last column is the share of people with the label among those who were decided on; in "
    "hiring, it depends on who was hired before. In hiring, decisions as printed are stored with the next person, so "
    "that no direction is known."
)
_OF_FRONTS = (
    "*Desired R*: the mean reward that the policies are asked for, which a training episode achieved; *R an episode*: "
    "what they achieve; empty: R is not among the objectives. *Beyond chance*: how many policies of all seeds have a "
    "gap in both tests above 95 % of the gaps of 20 deals; of policies that ignore the groups, about one in 120."
)
_OF_HISTORIES = (
    "Gaps per step, each with its noise floor: in the correct history / in the published history. Of PCN as printed, "
    "the correct history is recovered from the same decisions."
)
_OF_RATES = (
    "Gap (noise floor) of each group notion, mean over policies. As printed in hiring: in the published history. A "
    "noise floor is the gap if memberships are dealt at random among the same decisions, with their labels. Only for "
    "SP, this is also the gap of a policy that ignores groups: the labels of the groups differ. For the other "
    "notions, compare with the rows of random and constant policies. CSC in brackets: decisions without relation to "
    "people, at the same rate."
)


def _gap_and_floor(arm: Arm, notion: str = "SP", *, top: bool = False) -> tuple[Estimate, Estimate]:
    """Return a gap in the correct history and its noise floor.

    Args:
        arm: The arm.
        notion: The group notion.
        top: Whether they are those of the most rewarded policy in the second test; otherwise means over policies.
    """
    history = singles.histories(arm)[0]
    floor = singles.named("noise", notion, history=history)
    if not top:
        return -arm.estimate(singles.named("", notion, history=history)), arm.estimate(floor)
    gap = [singles.gap_of(row, notion, test=1, history=history)[singles.most_rewarded(row)] for row in arm.rows]
    return mean_interval(gap), mean_interval([_of_top(row, floor) for row in arm.rows])


def _of_top(row: SeedRow, name: str) -> float:
    """Return a number of the most rewarded policy in the second test."""
    return float(singles.of_policies(row, name, test=1)[singles.most_rewarded(row)])


def _plain(value: Any, digits: int = 1) -> str:
    """Return a number in words, without a negative zero."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def _beyond(arm: Arm, history: str) -> str:
    found = np.concatenate([singles.beyond_chance(row, "SP", history) for row in arm.rows])
    return f"{found.sum()} of {len(found)}"


def _both_groups(rates: Any) -> str:
    """Return the means over seeds of a rate of both groups, shape (seeds, 2), and their difference."""
    if np.isnan(rates).any():
        return "undefined"
    one, other = rates.mean(axis=0)
    return f"{one:.3f} / {other:.3f}: {show(mean_interval(rates[:, 0] - rates[:, 1]))}"


def _points(arm: Arm) -> tuple[Any, Any]:
    """Return the reward of an episode and the gap SP in the correct history of all policies in the second test."""
    rewards = [singles.of_policies(row, "total R", test=1) for row in arm.rows]
    gaps = [singles.gap_of(row, "SP", test=1, history=singles.histories(arm)[0]) for row in arm.rows]
    return np.concatenate(rewards), np.concatenate(gaps)


def _in_both_histories(arm: Arm, name: str) -> str:
    """Return a gap in the correct and in the published history, each with its noise floor."""
    shown = []
    for history in singles.histories(arm):
        gap, floor = (arm.estimate(singles.named(kind, name, history=history)).value for kind in ("", "noise"))
        shown.append(f"{_plain(-gap, 3)} ({floor:.3f})")
    return " / ".join(shown)


def _spans(arm: Arm, distance: str | None) -> list[tables.Cell]:
    """Return the number of policies, and the best, mean and worst episode sum of each measure; one of one policy."""
    single = arm.estimate("policies").value == 1
    spans = ("total",) if single else tuple(SPANS.values())
    columns = [_under(name, distance) for name in PUBLISHED_MEASURES]
    shown = ["/".join(_plain(arm.estimate(f"{own} {name}").value) for own in spans) for name in columns]
    return [f"{arm.estimate('policies').value:g}", f"{arm.estimate('steps').value:.0f}", *shown]


def _trained(arm: Arm) -> list[tables.Cell]:
    """Return the same of the training episodes of the policies that were found; extremes are those of all seeds."""
    spans = [
        [over_seeds(arm.values(f"trained {own} {name}")) for own, over_seeds in OVER.items()]
        for name in PUBLISHED_MEASURES
    ]
    return [f"{arm.estimate('found').value:g}", "", *("/".join(map(_plain, own)) for own in spans)]


def _paper(number: int, group: str, distance: Any) -> list[str]:
    shown = []
    for name in MEASURES:
        values = [printed_value(number, group, name, span, distance=distance) for span in SPANS]
        shown.append("/".join("-" if value is None else f"{value:.1f}" for value in values))
    return [str(printed()[number][group]["n"]), "", *shown]


def _under(name: str, distance: str | None) -> str:
    """Return the measure of that name under a distance that is not the setting's own."""
    return name if distance is None or name not in INDIVIDUAL else f"{name}, {distance}"
