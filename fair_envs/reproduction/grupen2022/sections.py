"""The numbers of the teams, and the tables and figures of the study."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from fair_envs.assessment import plots
from fair_envs.baselines.team.training import TeamTraining
from fair_envs.experiments import figures, tables
from fair_envs.experiments.seeds import Curve
from fair_envs.metrics import Estimate, mean_interval, share_interval
from fair_envs.metrics.inference import welch
from fair_envs.registration import make_rules
from fair_envs.reproduction import study
from fair_envs.reproduction.grupen2022.jobs import (
    BY_NUMBER,
    LARGER,
    PULLS,
    PURSUERS,
    SCALES,
    SLOWER,
    TEAMS,
    WEIGHTS,
    Label,
    Scale,
    training_of,
)
from fair_envs.reproduction.grupen2022.roles import RELABELLINGS, STARTS
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture
from fair_envs.support.aliases import Flags, Floats

SHARED = {PRINTED: ("Fair-E" + BY_NUMBER,), REPAIRED: ("Fair-E", "Fair-E, sets")}
PENALISED = {
    PRINTED: tuple(f"Fair-ER {weight:g}{BY_NUMBER}" for weight in WEIGHTS),
    REPAIRED: (*(f"Fair-ER {weight:g}" for weight in WEIGHTS), "Fair-ER normalised", "Fair-ER automatic"),
}
"""The arms of the two methods, which share networks or penalise their differences, by what gets a verdict."""
STRONG = {PRINTED: f"Fair-ER 1{BY_NUMBER}", REPAIRED: "Fair-ER 1"}
"""The arms that the paper places below Fair-E."""

DEALT = "mutual, roles dealt"

# Criteria of the claims. They are ours, the paper gives none; see the plan.
EQUAL_SPEED = 1.0  # at this speed and below, greedy never captures
SKILLED = 0.8  # at this speed and above, the paper calls the fairness of Fair-ER free
FALLING = 0.9  # below this speed, the paper says that Fair-E loses success
SLOWEST = 0.5  # down to this speed, the paper says that teams with a mutual reward capture
CAPTURES = 0.5  # least success of a team that counts as capturing

FEW = 5  # fewer seeds have no Student's interval, and decide nothing by one
FEWER = f"fewer than {FEW} seeds"
FEW_LISTED = f"of {FEWER}, each value"


@dataclass(frozen=True, kw_only=True)
class Sections(study.Report[Scale]):
    """The numbers of the teams, tables and figures; the keys of the arms are their names."""

    paper = "grupen2022"
    timed = ", without the tests of trained teams"
    scales = SCALES

    @property
    def speeds(self) -> tuple[float, ...]:
        """The speeds at which all teams are tested."""
        return tuple(self.scale.speeds)

    @property
    def shared(self) -> dict[str, list[Label]]:
        """The arms with shared networks that were run, by method."""
        return self._run(SHARED)

    @property
    def penalised(self) -> dict[str, list[Label]]:
        """The arms with a penalty that were run, by method."""
        return self._run(PENALISED)

    def _run(self, arms: Mapping[str, Sequence[Label]]) -> dict[str, list[Label]]:
        return {method: [name for name in names if name in self.arms] for method, names in arms.items()}

    @property
    def rewarded(self) -> list[Label]:
        """The arms without a fair method that were run."""
        return [name for name in ("mutual", SLOWER, "individual") if name in self.arms]

    @property
    def fair_arms(self) -> list[Label]:
        """The arms with a fair method that were run."""
        shared, penalised = ([name for of in one.values() for name in of] for one in (self.shared, self.penalised))
        return [*shared, *[LARGER] * (LARGER in self.arms), *penalised]

    @property
    def slow(self) -> tuple[float, ...]:
        """The speeds at which the paper says that Fair-E loses success."""
        return tuple(speed for speed in self.speeds if speed < FALLING)

    @property
    def below(self) -> str:
        """These speeds, in words."""
        return f"below {FALLING:g} (mean of {' and '.join(f'{speed:g}' for speed in self.slow)})"

    def from_up(self, lowest: float) -> tuple[float, ...]:
        """Return the speeds from one up."""
        return tuple(speed for speed in self.speeds if speed >= lowest)

    def values(self, name: Label, measure: str, speeds: Iterable[float]) -> Floats:
        """Return a measure of each seed at each speed, shape (seeds, speeds)."""
        arm, prefix = (self.arms["mutual"], "dealt ") if name == DEALT else (self.arms[name], "")
        found: Floats = np.array([arm.values(f"{prefix}{measure} at {speed:g}") for speed in speeds]).T
        return found

    def mean(self, name: Label, measure: str, speeds: Sequence[float]) -> Floats:
        """Return the mean of a measure over speeds for each seed; NaN without speeds."""
        if not speeds:
            return np.full(self.arms[name].seeds, np.nan)
        return np.asarray(self.values(name, measure, speeds).mean(axis=1))

    def capturing(self, name: Label, speeds: Sequence[float]) -> Flags:
        """Return whether each seed captures at the speeds, on average."""
        flags: Flags = self.mean(name, "success", speeds) >= CAPTURES
        return flags

    def able(self, name: Label, speeds: Sequence[float]) -> Flags:
        """Return at which speeds each seed captures, shape (seeds, speeds)."""
        flags: Flags = self.values("mutual" if name == DEALT else name, "success", speeds) >= CAPTURES
        return flags

    def where_able(self, name: Label, measure: str, speeds: Sequence[float]) -> Floats:
        """Return the mean of a measure over the speeds at which a seed captures, shape (seeds,); NaN without any."""
        able = self.able(name, speeds)
        total = np.where(able, self.values(name, measure, speeds), 0).sum(axis=1)
        return ratio(total, able.sum(axis=1))

    def deficit(self, name: Label, speeds: Sequence[float]) -> Floats:
        """Return the corrected deficit of `where_able` of the seeds that capture at some speed."""
        return defined(self.where_able(name, "corrected", speeds))

    def unequal(self, name: Label, speeds: Sequence[float]) -> Floats:
        """Return the deficit of an episode with unequal pursuers, shape (seeds,); NaN without such episodes.

        It is the sum of the corrected deficits over the speeds at which a seed captures, by the sum of the shares of
        episodes in which some pursuers capture and others do not.
        """
        able, counts = self.able(name, speeds), self._counts(name, speeds)
        share = counts[..., 1:-1].sum(axis=-1) / counts.sum(axis=-1)
        sums = [np.where(able, of, 0).sum(axis=1) for of in (self.values(name, "corrected", speeds), share)]
        return ratio(*sums)

    def p_values(self, name: Label) -> Floats:
        """Return the p-values of a fair team at the speeds at which a seed captures."""
        return np.asarray(self.values(name, "p", self.speeds)[self.able(name, self.speeds)])

    # ------------------------------------------------------------------------------------------- tables

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        return {
            "In short": self.short_table(),
            "The paper's figures beside ours": self.paper_table(),
            "Seeds that capture (Fig. 2 and 3c)": "Teams without training have no interval: their seeds are sets of "
            "test episodes.\n\n" + self.table(lambda name, v: self.counted(name, [v])),
            "Seeds that capture, with other thresholds": "Seeds whose success is at least 0.25 / 0.75.\n\n"
            + self.table(lambda name, v: self._at_thresholds(name, v, (0.25, 0.75))),
            "Seeds that capture with other policies": self.other_policies_table(),
            "Success (Fig. 2 and 3c)": f"Median of the seeds, and their lower and upper quartile; {FEW_LISTED}.\n\n"
            + self.table(lambda name, v: _quartiles(self.values(name, "success", [v]))),
            "Team fairness (Fig. 3b)": "Mean absolute corrected deficit in bits of the seeds that capture (n); "
            f"{FEW_LISTED}. The noise floor is after the slash.\n\n"
            + self.table(lambda name, v: self._beside_floor(name, "corrected", "floor", v)),
            "Team fairness of episodes with unequal pursuers": self.unequal_table(),
            "Who captures": self.captors_table(),
            "How far teams are from equivariance": self.gap_table(),
            "What the penalty does": self.penalty_table(),
            "Largest share of captures of a pursuer (Fig. 3a)": "Mean of the seeds that capture (n); "
            f"{FEW_LISTED}. The noise floor is after the slash.\n\n"
            + self.table(lambda name, v: self._beside_floor(name, "largest", "largest floor", v)),
            "Steps to capture": "Of the episodes with a capture, of the seeds that capture (n). After the slash: the "
            f"mean over all episodes, in which an episode without a capture counts {self.world.horizon} steps.\n\n"
            + self.table(self._steps),
        }

    @cached_property
    def usual(self) -> TeamTraining:
        """The settings of a training with mutual reward."""
        return training_of(self.scale, "mutual", 0)

    @cached_property
    def world(self) -> Any:
        """The parameters of its environment."""
        return make_rules(self.usual.env_id, **self.usual.parameters).params

    def counted(self, name: Label, speeds: Sequence[float], *, level: float = 0.95) -> str:
        """Return how many seeds of a team capture at the speeds, on average."""
        return count(self.capturing(name, speeds), exact=name not in TEAMS, level=level)

    def table(self, cell: Callable[[Label, float], str], *, names: Iterable[Label] | None = None) -> str:
        """Return a table with a row for each team and a column for each speed; teams without training come first."""
        speeds = self.scale.speeds_of("greedy")
        rows = []
        for name in (*self.arms, DEALT) if names is None else names:
            own = "mutual" if name == DEALT else name
            tested = self.scale.speeds_of(own)
            shown = [cell(name, speed) if speed in tested else "" for speed in speeds]
            rows.append([name, str(self.arms[own].seeds), *shown])
        return tables.markdown(["team", "seeds", *(f"{speed:g}" for speed in speeds)], rows)

    def short_table(self) -> str:
        """Return how many seeds of each team capture, and their deficit at each speed."""
        names = [*TEAMS, *self.rewarded, *self.fair_arms]
        rows = [
            [
                name,
                str(self.arms[name].seeds),
                *(self._count_and_deficit(name, speed) for speed in self.speeds),
                str(int(self.capturing(name, self.slow).sum())),
                *(f"{self.mean(name, 'success', speeds).mean():.2f}" for speeds in ((EQUAL_SPEED,), self.slow)),
            ]
            for name in names
        ]
        slow = f"below {FALLING:g}"
        success = [f"mean success at {EQUAL_SPEED:g}", f"mean success {slow}"]
        header = ["team", "seeds", *(f"{speed:g}" for speed in self.speeds), slow, *success]
        return (
            "Seeds that capture at each speed, and the mean absolute corrected deficit of these in bits; "
            f"{self.below}, only the seeds. The success is that of all seeds. Intervals are in the tables that "
            "follow.\n\n" + tables.markdown(header, rows)
        )

    def _count_and_deficit(self, name: Label, speed: float) -> str:
        able = self.capturing(name, [speed])
        deficit = np.abs(self.values(name, "corrected", [speed])[able])
        return f"{able.sum()}; {deficit.mean():.3f}" if able.any() else "0"

    def paper_table(self) -> str:
        """Return what the paper's figures show, in its words, beside our numbers and those under chance."""
        slowest = SLOWER if SLOWER in self.arms else "mutual"
        rows: list[list[str]] = []

        def counted(figure: str, words: str, names: Iterable[Label], speeds: Iterable[float]) -> None:
            rows.extend(
                [figure, name, f"{v:g}", words, "seeds", self.counted(name, [v]), ""]
                for name in names
                for v in speeds
                if name in self.arms
            )

        def beside(figure: str, words: str, name: Label, measure: str, floor: str, speeds: Iterable[float]) -> None:
            for speed in speeds:
                found = self._with_floor(name, measure, floor, speed) or ("none captures", "")
                rows.append([figure, name, f"{speed:g}", words, MEASURED[measure], *found])

        at, by_place = (EQUAL_SPEED,), [SHARED[REPAIRED][0], *SHARED[PRINTED]]
        counted("2", f"captures down to {SLOWEST:g}", [slowest], self.scale.speeds_of(slowest))
        slow = [speed for speed in self.speeds if speed <= EQUAL_SPEED]
        counted("2", "falls at 1 and below", ["individual"], slow)
        beside("3a", "one pursuer has most captures", "mutual", "largest", "largest floor", at)
        for name in by_place:
            if name in self.arms:
                beside("3a", "1/3 each", name, "largest", "largest floor", at)
        beside("3b", "clearly unfair", "mutual", "corrected", "floor", self.from_up(FALLING))
        beside("3b", "less unfair", "mutual", "corrected", "floor", self.slow)
        for name in by_place:
            if name in self.arms:
                beside("3b", "about 0 everywhere", name, "corrected", "floor", self.speeds)
        counted("3c", "falls steeply", by_place, self.slow)
        counted("3c", "does not fall", ["mutual"], self.slow)
        places = {"lambda up to 0.5: between mutual and Fair-E": (0, 0.5), "lambda 1: below Fair-E": (1, 1)}
        for words, (low, high) in places.items():  # the paper says nothing of other weights and forms
            weights = [weight for weight in WEIGHTS if low <= weight <= high]
            counted("4", words, [f"Fair-ER {w:g}{end}" for end in (BY_NUMBER, "") for w in weights], self.slow)
        header = ["figure", "team", "speed", "the paper, in words", "measured", "ours", "noise floor"]
        return (
            "*Seeds*: those that capture, of the tests at the speed. *Largest share*: of the captures of a pursuer. "
            "*Bits*: absolute corrected deficit. The last two are of the seeds that capture. Figure 5 has success "
            "against the deficit: claims 7 and 9. Quartiles of the steps to capture, the numbers of episodes by the "
            "set of captors, and each pursuer's captures in training are in the table of all seeds.\n\n"
            + tables.markdown(header, rows)
        )

    def other_policies_table(self) -> str:
        """Return how many seeds capture with policies of other times, and their success and deficit."""
        middle = self.table(lambda name, v: self._by_other("middle ", name, v), names=self.scale.methods)
        names = [*TEAMS, *self.scale.methods, DEALT]
        last = self.table(lambda name, v: self._by_other("last ", name, v), names=names)
        return (
            "The policy that was trained when the curriculum reached the speed, half a level before the one of the "
            "other tables (at the fastest speed, it is untrained): seeds that capture; success / corrected deficit of "
            f"all seeds. The slowest speed has no such policy, because the training ends there.\n\n{middle}\n\n"
            f"The last policy at all speeds; teams without training have only one.\n\n{last}"
        )

    def _by_other(self, prefix: str, name: Label, speed: float) -> str:
        own = "" if name in TEAMS else prefix
        success, deficit = (self.values(name, f"{own}{measure}", [speed])[:, 0] for measure in ("success", "corrected"))
        if np.isnan(success).all():
            return ""
        captures = count(success >= CAPTURES, exact=name not in TEAMS)
        return f"{captures}; {np.nanmean(success):.3f} / {np.nanmean(deficit):.3f}"

    def _beside_floor(self, name: Label, measure: str, floor: str, speed: float) -> str:
        return " / ".join(self._with_floor(name, measure, floor, speed) or ["none"])

    def _with_floor(self, name: Label, measure: str, floor: str, speed: float) -> tuple[str, str] | None:
        """Return the mean absolute value of a measure over the seeds that capture, with its floor; None of no seed."""
        able = self.able(name, [speed])
        shown, own = (self.values(name, one, [speed])[able] for one in (measure, floor))
        return (with_count(np.abs(shown)), f"{np.nanmean(own):.3f}") if own.size else None

    def _at_thresholds(self, name: Label, speed: float, thresholds: Sequence[float]) -> str:
        success = self.values(name, "success", [speed])
        return " / ".join(str(int((success >= least).sum())) for least in thresholds)

    def _steps(self, name: Label, speed: float) -> str:
        able = self.able(name, [speed])
        steps, success = (self.values(name, one, [speed]) for one in ("steps", "success"))
        every = np.where(success > 0, success * np.nan_to_num(steps), 0) + (1 - success) * self.world.horizon
        found = with_count(steps[able], digits=0) if able.any() else "none"
        return f"{found} / {every.mean():.0f}"

    def captors_table(self) -> str:
        """Return which pursuers capture, and where they are."""
        rows = []
        for name in self.arms:
            able = self.able(name, self.speeds)
            if not able.any():
                rows.append([name, "0", *["none captures"] * 4])
                continue
            captures = self._captures(name)[able]
            nearness = self._each(name, "captures of nearest {}")[able]
            places = self._each(name, "end distance of {}")[able]
            relabelled = self.values(name, "end distance, relabelled", self.speeds)[able]
            sorted_places = self._each(name, "end distance, nearest {}")[able]
            shown = [
                f"{_listed(np.sort(captures, axis=1)[:, ::-1])} ({_listed(self._relabelled(name)[able])})",
                _listed(nearness / nearness.sum(axis=1, keepdims=True)),
                f"{np.nanmean(np.ptp(places, axis=1)):.2f} ({np.nanmean(relabelled):.2f})",
                _listed(sorted_places),
            ]
            rows.append([name, str(int(able.any(axis=1).sum())), *shown])
        header = ["team", "seeds", "captures per episode: most, middle, least (relabelled)",
                  "share of captures by nearness at the start",
                  "difference of end distances between pursuers (relabelled)",
                  "end distance: nearest, middle, farthest"]  # fmt: skip
        return (
            "Means over the seeds and speeds at which a seed captures, of the test episodes; these speeds differ "
            "between teams (greedy pursuers capture at the fastest ones only). *Seeds*: those that capture at some "
            "speed. *Nearness*: the shares of the pursuers that are nearest, second and farthest at the start. With "
            "mutual reward and "
            "all methods built on it, a capture pays all pursuers the same, so who captures costs no pursuer any "
            "reward; with individual reward, it does. *Relabelled*: the same if pursuers are relabelled at random in "
            "each episode; the first and the last number are extremes, also then. *End distance*: the distance to the "
            "evader at the end of episodes with a capture, in units of length. Its difference is that "
            "between the largest and the smallest mean of a pursuer: how far roles depend on identity. The last "
            "column has it for the nearest, middle and farthest pursuer of each episode, whatever its "
            f"number.\n\n{tables.markdown(header, rows)}"
        )

    def _each(self, name: Label, measure: str) -> Floats:
        """Return a measure of each pursuer, shape (seeds, speeds, pursuers)."""
        found = [self.values(name, measure.format(k), self.speeds) for k in range(PURSUERS)]
        return np.stack(found, axis=-1)

    def _counts(self, name: Label, speeds: Sequence[float]) -> Floats:
        """Return the numbers of episodes by the set of captors, shape (seeds, speeds, sets)."""
        codes = [f"captors {code:0{PURSUERS}b}" for code in range(2**PURSUERS)]
        return np.stack([self.values(name, code, speeds) for code in codes], axis=-1)

    def _captures(self, name: Label) -> Floats:
        """Return the captures per episode of each pursuer, shape (seeds, speeds, pursuers)."""
        counts = self._counts(name, self.speeds)
        return np.asarray(counts @ MEMBERS / counts.sum(axis=-1, keepdims=True))

    def _relabelled(self, name: Label) -> Floats:
        """Return the same, sorted, if the pursuers are relabelled at random in each episode."""
        rng, counts = np.random.default_rng(0), np.nan_to_num(self._counts(name, self.speeds))
        sizes = np.stack([counts[..., MEMBERS.sum(axis=1) == k].sum(axis=-1) for k in range(PURSUERS + 1)], axis=-1)
        equal = np.full(PURSUERS, 1 / PURSUERS)
        shape = (RELABELLINGS, *sizes.shape[:-1])
        one, two = (rng.multinomial(sizes[..., k].astype(int), equal, size=shape) for k in (1, PURSUERS - 1))
        found = one + (sizes[..., [PURSUERS - 1]] - two) + sizes[..., [PURSUERS]]
        return np.asarray(np.sort(found, axis=-1)[..., ::-1].mean(axis=0) / counts.sum(axis=-1, keepdims=True))

    def gap_table(self) -> str:
        """Return how far the policy of each speed is from equivariance."""
        names = [name for name in self.scale.methods if any("equivariance" in one for one in self.arms[name].names)]
        return (
            "1 minus the cosine between the direction in which a pursuer at a place begins to move, and that of the "
            "pursuer that has this place after all three exchanged their places in a cycle; on "
            f"{STARTS:,} starts that are the same for all teams, of all seeds. 0: the same, so that the team is "
            "equivariant under these exchanges, which makes it fair; 1: independent directions; 2: opposite ones. "
            "Greedy pursuers have 0, random ones 1.\n\n"
            + self.table(lambda name, v: with_count(self.values(name, "equivariance gap", [v])), names=names)
        )

    def penalty_table(self) -> str:
        """Return Fair-ER's penalty of the policy of each speed, for all separate networks."""
        names = [name for name in self.scale.methods if any("penalty" in one for one in self.arms[name].names)]
        return (
            "Fair-ER's penalty without its weight: 1 minus the cosine of the angle between two pursuers' actions for "
            "the same observation; 0: equal networks, 1: unrelated ones. It is that of the policy of each speed, on "
            "observations of the training before that policy was stored. `automatic` has the limit "
            f"{self.usual.fairness_limit:g}. Mutual and individual reward have no penalty "
            f"and show what it would be. Arms `{BY_NUMBER[2:]}` have other observations, so they cannot be compared "
            "with the others.\n\n"
            + self.table(lambda name, v: with_count(self.values(name, "penalty", [v])), names=names)
        )

    def unequal_table(self) -> str:
        """Return the deficit of episodes with unequal pursuers, and how it differs where claims compare deficits."""
        skilled = self.from_up(FALLING)
        below, above = (self.unequal("mutual", speeds) for speeds in (self.slow, skilled))
        arms = [(name, FALLING) for of in self.shared.values() for name in of]
        arms += [(name, SKILLED) for of in self.penalised.values() for name in of]
        rows = [
            [name, *(self._less_unequal(name, speeds) for speeds in (self.slow, self.from_up(lowest)))]
            for name, lowest in arms
        ]
        return (
            "The corrected deficit divided by the share of episodes in which some pursuers capture and others do not. "
            "All other episodes add nothing to a deficit, so a team that captures less often has a smaller one. By "
            "speed, of the seeds that capture:\n\n"
            + self.table(lambda name, v: with_count(defined(self.unequal(name, [v]))))
            + f"\n\nMutual reward, below {FALLING:g} minus from {FALLING:g} up, of seeds that capture in both: "
            f"{with_count(defined(below - above))}. Minus mutual reward's, of the seeds that capture there (no "
            f"verdicts; from {SKILLED:g} up, the claim also counts seeds that do not capture):\n\n"
            + tables.markdown(["team", f"below {FALLING:g}", f"from {SKILLED:g} (Fair-E: {FALLING:g}) up"], rows)
        )

    def _less_unequal(self, name: Label, speeds: Sequence[float]) -> str:
        own, usual = (defined(self.unequal(one, speeds)) for one in (name, "mutual"))
        return tables.show(welch(own, usual)) if min(own.size, usual.size) >= FEW else FEWER

    # ---------------------------------------------------------------------------------------- figures

    def draw(self) -> list[Picture]:
        """Save the figures."""
        shared = tuple(name for of in self.shared.values() for name in of)
        penalised = tuple(name for of in self.penalised.values() for name in of)
        larger, own = (LARGER,) * (LARGER in self.arms), self.usual
        notions = ["mutual", *self.fair_arms, DEALT, *TEAMS]
        self._draw_counts([*self.rewarded, *TEAMS], "reward.png", self.scale.speeds_of("greedy"))
        self._draw_counts(notions, "counts.png", self.speeds)
        curves = {
            "Fig. 4: Fair-E": ("mutual", "individual", *shared, *larger),
            "Fig. 4: Fair-ER": ("mutual", *penalised),
        }
        figures.course_plot(
            {title: {name: self.arms[name].curve("learned") for name in names} for title, names in curves.items()},
            self.out / "training.png",
            points={},
            labels=(
                f"agent steps (the speed falls from {own.speeds[0]:g} to {own.speeds[-1]:g})",
                "success",
            ),
            summary=quartiles,
        )
        return [
            Picture(
                "reward.png", "Share of the seeds that capture at each speed, by reward (Fig. 2), exact intervals."
            ),
            Picture("counts.png", "Share of the seeds that capture at each speed (Fig. 3c), exact intervals."),
            *self._fairness(notions),
            Picture(
                "training.png",
                "Success of the training's episodes (Fig. 4): median of the seeds, and the quartiles of at least "
                f"{FEW}. In the first {100 * own.exploration_fraction:g} % of the training, pursuers often act like "
                "the greedy ones, which capture if they are faster than the evader.",
            ),
            *self._exchange(dict.fromkeys(name for names in curves.values() for name in names)),
            *self._pulls(penalised),
        ]

    def _fairness(self, names: Sequence[Label]) -> list[Picture]:
        """Save the deficits of arms of which enough seeds capture, if there are any."""
        file = "fairness.png"
        of_speeds = {f"speed {speed:g}": self._fairness_at(names, speed) for speed in self.speeds}
        panels = {title: arms for title, arms in of_speeds.items() if any(arms.values())}
        if not panels:
            return []
        label = "absolute corrected deficit in bits, of the seeds that capture (0 is fair)"
        plots.dot_plot(panels, self.out / file, label=label, lines=[0])
        text = f"Team fairness of the seeds that capture at each speed (Fig. 3b), of at least {FEW} seeds."
        return [Picture(file, text)]

    def _fairness_at(self, names: Iterable[Label], speed: float) -> dict[str, dict[str, Estimate]]:
        found = {}
        for name in names:
            able = self.able(name, [speed])
            own = {title: np.abs(self.values(name, of, [speed])[able]) for title, of in DEFICITS.items()}
            found[name] = {title: mean_interval(values) for title, values in own.items() if values.size >= FEW}
        return found

    def _exchange(self, names: Iterable[Label]) -> list[Picture]:
        """Save success against the deficit: a dot for each seed, and the means of the seeds that capture."""
        file, panels, points = "exchange.png", {}, {}
        for name in names:
            deficit, success = (self.values(name, of, self.speeds).T for of in ("corrected", "success"))
            points[name] = list(zip(deficit, success, strict=True))
        for k, speed in enumerate(self.speeds):
            panels[f"speed {speed:g}"] = {name: self._means(*own[k]) for name, own in points.items()}
        figures.exchange_plot(
            panels,
            self.out / file,
            labels=("deficit in bits, corrected", "success"),
            singles={f"speed {v:g}": {name: own[k] for name, own in points.items()} for k, v in enumerate(self.speeds)},
        )
        return [
            Picture(
                file,
                "Success against the deficit at each speed (Fig. 5). Pale: single seeds. Large: means of the seeds "
                f"that capture, with intervals of the deficit of at least {FEW} seeds; a team that never captures has "
                "a deficit of 0. The horizontal axes differ.",
            )
        ]

    @staticmethod
    def _means(deficit: Floats, success: Floats) -> tuple[Estimate, Estimate]:
        """Return the means of the seeds that capture: of the deficit with its interval, of the success without one."""
        able = success >= CAPTURES
        return mean_of_enough(deficit[able]), replace(mean_interval(success[able]), low=np.nan, high=np.nan)

    def _pulls(self, names: Sequence[Label]) -> list[Picture]:
        """Save what the penalty does in the trainings."""
        panels: dict[str, dict[str, Curve]] = {}
        trainings = {name: training_of(self.scale, name, 0) for name in names}
        plain_first = sorted(names, key=lambda name: trainings[name].form != "plain")
        for name, title in product(plain_first, PULLS.values()):
            own, curve = trainings[name], self.arms[name].curve(title)
            if curve.times.size:
                plain = own.form == "plain"  # otherwise values have another unit
                scale = own.reward_scale if plain and title == PULLS["train/fairness_weight"] else 1.0
                panel = panels.setdefault(title if plain else f"{title}, {own.form}", {})
                panel[name] = curve._replace(seeds=curve.seeds / scale)
        if not panels:
            return []
        figures.course_plot(
            panels, self.out / "penalty.png", points={}, labels=("agent steps", ""), summary=mean_of_enough
        )
        return [
            Picture(
                "penalty.png",
                f"In training, means of the seeds, and 95 % intervals of at least {FEW}: Fair-ER's penalty without its "
                "weight, the weight lambda (in the paper's units), and the norms of the gradients of the values and of "
                f"the weighted penalty (rewards are scaled by {self.usual.reward_scale:g}). *Automatic* divides values "
                "by their mean size, so its weight and gradients have other units.",
            )
        ]

    def _draw_counts(self, names: Iterable[Label], file: str, speeds: Iterable[float]) -> None:
        """Save the shares of the seeds that capture, with a panel for each speed."""
        panels: dict[str, dict[str, dict[str, Estimate]]] = {}
        for speed in speeds:
            tested = [name for name in names if speed in self.scale.speeds_of("mutual" if name == DEALT else name)]
            shares = {name: self._share(name, speed) for name in tested}
            panels[f"speed {speed:g}"] = {name: {"": share} for name, share in shares.items()}
        plots.dot_plot(panels, self.out / file, label="share of the seeds that capture", lines=[0.5])

    def _share(self, name: Label, speed: float) -> Estimate:
        """Return the share of the seeds that capture; teams without training have no interval."""
        found = share_interval(self.capturing(name, [speed]), method="exact")
        return replace(found, low=np.nan, high=np.nan) if name in TEAMS else found


DEFICITS: Mapping[str, str] = {"corrected deficit": "corrected", "noise floor": "floor"}
MEASURED: Mapping[str, str] = {"largest": "largest share", "corrected": "bits"}
MEMBERS = np.array([[int(digit) for digit in f"{code:0{PURSUERS}b}"] for code in range(2**PURSUERS)])
"""Whether each pursuer is in each set of captors, shape (sets, pursuers)."""


def defined(values: Floats) -> Floats:
    """Return the values that are not NaN."""
    return np.asarray(values[~np.isnan(values)])


def ratio(sums: Floats, by: Floats) -> Floats:
    """Return a quotient; NaN where it is not defined."""
    return np.asarray(np.divide(sums, by, out=np.full(len(sums), np.nan), where=by > 0))


def count(flags: Flags, *, exact: bool = True, level: float = 0.95) -> str:
    """Return how many seeds capture, with the exact interval of the share, if they are independent trainings."""
    if not exact:
        return f"{int(flags.sum())} of {flags.size}"
    share = share_interval(flags, level=level, method="exact")
    return f"{int(flags.sum())} of {flags.size} [{share.low:.2f}, {share.high:.2f}]"


def with_count(values: Floats, *, digits: int = 3) -> str:
    """Return a mean over seeds with its interval and their number; of fewer than `FEW` the values; "none" of none."""
    found = defined(np.ravel(values))
    if found.size < FEW:
        return ", ".join(f"{value + 0.0:.{digits}f}" for value in found) or "none"
    return f"{tables.show(mean_interval(found), digits=digits)} ({found.size})"


def mean_of_enough(values: Floats) -> Estimate:
    """Return the mean over seeds, with its interval if there are at least `FEW`."""
    found = mean_interval(values)
    return found if found.n >= FEW else replace(found, low=np.nan, high=np.nan)


def quartiles(values: Floats) -> Estimate:
    """Return the median over seeds, with the lower and upper quartile for an interval if there are at least `FEW`."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    if len(values) < FEW:
        low = high = np.nan
    return Estimate(value=float(median), low=float(low), high=float(high), n=len(values), level=0.5)


def _listed(values: Any) -> str:
    """Return the mean of each column."""
    return ", ".join(f"{value:.2f}" for value in np.nanmean(values, axis=0))


def _quartiles(values: Floats) -> str:
    """Return the median, and the lower and upper quartile; of fewer than `FEW` values each of them."""
    if values.size < FEW:
        return with_count(values, digits=2)
    found = quartiles(np.ravel(values))
    return f"{found.value:.2f} ({found.low:.2f}, {found.high:.2f})"
