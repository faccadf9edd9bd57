"""Grupen, Selman and Lee (2022), "Cooperative Multi-Agent Fairness and Equivariant Policies".

The paper (AAAI 2022, arXiv 2106.05727) trains pursuers that share a reward, and asks whether captures depend on the
identity of the pursuers. Its figures are only known from the descriptions in the text; it prints no numbers. A team
learns to capture at a speed or it does not, so success is tested with the number of seeds that capture. The plan of the
study is in ``docs/reproduction/grupen2022/plan.md``.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fair_envs.assessment import plots
from fair_envs.baselines.team.training import TeamTraining
from fair_envs.experiments import figures, tables
from fair_envs.experiments.tables import listed
from fair_envs.metrics import Estimate, mean_interval, share_interval
from fair_envs.metrics.inference import MOST_SEEDS, fisher, holm, shown, welch
from fair_envs.registration import make_rules
from fair_envs.reproduction import study
from fair_envs.reproduction.claims import (
    NOT_RUN,
    Claim,
    Measured,
    Outcome,
    both,
    everywhere_above,
    everywhere_below,
    everywhere_within,
)
from fair_envs.reproduction.grupen2022.jobs import (
    BY_NUMBER,
    FIRST_SEED,
    LARGER,
    METHODS,
    PLANNED,
    PURSUERS,
    SCALES,
    SLOWER,
    TEAMS,
    TENTHS,
    WEIGHTS,
    Label,
    Scale,
    cells,
    numbers,
    training_of,
)
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture, Size
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
BITS = 0.05  # least deficit that counts as unfair
FAIR = 0.01  # largest deficit that counts as fair; a hand-made policy that shares networks by number has 0.017
SAME = 0.05  # largest difference of success between dealt and own roles that counts as none
FREE = 0.1  # largest loss of success that counts as none between trainings
HARDLY = 0.1  # if at most this share of the seeds of both arms captures, they are not compared
MORE = 0.25  # a difference of the shares of seeds that is shown to be smaller refutes "more seeds capture"
LEVEL = 0.05
FEWEST = 5  # seeds of each arm with which Fisher's exact test can decide

Pairs = Mapping[str, tuple[Flags, Flags]]
Numbers = Mapping[str, Estimate]


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of the study; the keys of the arms are their names."""

    paper = "grupen2022"
    scales = SCALES

    # --------------------------------------------------------------------------------------------- numbers

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
    def slow(self) -> tuple[float, ...]:
        """The speeds at which the paper says that Fair-E loses success."""
        return tuple(speed for speed in self.speeds if speed < FALLING)

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
        return _ratio(total, able.sum(axis=1))

    def deficit(self, name: Label, speeds: Sequence[float]) -> Floats:
        """Return the corrected deficit of `where_able` of the seeds that capture at some speed."""
        return _defined(self.where_able(name, "corrected", speeds))

    def unequal(self, name: Label, speeds: Sequence[float]) -> Floats:
        """Return the deficit of an episode with unequal pursuers, shape (seeds,); NaN without such episodes.

        It is the sum of the corrected deficits over the speeds at which a seed captures, by the sum of the shares of
        episodes in which some pursuers capture and others do not.
        """
        able, codes = self.able(name, speeds), range(2**PURSUERS)
        counts = np.array([self.values(name, f"captors {code:0{PURSUERS}b}", speeds) for code in codes])
        share = counts[1:-1].sum(axis=0) / counts.sum(axis=0)
        sums = [np.where(able, of, 0).sum(axis=1) for of in (self.values(name, "corrected", speeds), share)]
        return _ratio(*sums)

    def p_values(self, name: Label) -> Floats:
        """Return the p-values of a fair team at the speeds at which a seed captures."""
        return np.asarray(self.values(name, "p", self.speeds)[self.able(name, self.speeds)])

    # ------------------------------------------------------------------------------------------- claims

    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs, and one of our own."""
        return [
            self._greedy(),
            self._mutual(),
            self._slower(),
            self._unfair(),
            self._fair(),
            self._loss(),
            self._between(),
            self._strong(),
            self._free(),
            self._roles(),
        ]

    def _greedy(self) -> Claim:
        at = (EQUAL_SPEED,)
        names = {method: ("mutual", *of) for method, of in self.shared.items()}
        slower = Outcome(bool((self.values("greedy", "success", at) < CAPTURES).all()))
        every = dict.fromkeys(name for of in names.values() for name in of)
        return Claim(
            text="Trained pursuers capture at the evader's speed, and greedy ones do not.",
            outcomes={
                method: {name: both([most_seeds(self.capturing(name, at), arms=len(of)), slower]) for name in of}
                for method, of in names.items()
            },
            evidence=f"Seeds that capture at {EQUAL_SPEED:g}: {self._counted([*every, 'greedy', 'random'], at)}. Holds "
            "if most seeds capture, and greedy pursuers do in no set of test episodes.",
            refuted="At most half of the seeds capture, or greedy pursuers do.",
            earlier="holds (mutual); undecided (Fair-E, sets)",
            reason="More seeds, counts of seeds instead of means, and Fair-E by number and in cyclic order. Most seeds "
            "must capture, not only more than with greedy pursuers.",
        )

    def _mutual(self) -> Claim:
        slow = [speed for speed in self.speeds if speed <= EQUAL_SPEED]
        found = more_seeds({f"at {speed:g}": self._pair("mutual", "individual", [speed]) for speed in slow})
        more = {f"{v:g}": self.arms["mutual"].minus(self.arms["individual"], f"success at {v:g}") for v in slow}
        return Claim(
            text="Mutual reward is critical: at the evader's speed and below, individual reward captures less often.",
            outcomes={PRINTED: found, REPAIRED: found},
            evidence="Seeds that capture: "
            + "; ".join(f"at {v:g}: {self._counted(['mutual', 'individual'], [v])}" for v in slow)
            + f". Success, mutual minus individual: {listed(more)}.",
            refuted=f"A share of seeds that capture that is not {100 * MORE:.0f} percentage points larger.",
            earlier="undecided at 1; holds at 0.9, 0.8, 0.7",
            reason="More seeds, and counts of seeds instead of means.",
        )

    def _slower(self) -> Claim:
        name = SLOWER if SLOWER in self.arms else "mutual"
        run = SLOWEST in self.scale.speeds_of(name)
        flags = self.capturing(name, [SLOWEST]) if run else np.zeros(0, bool)
        found = {f"at {SLOWEST:g}": most_seeds(flags)}
        counted = "; ".join(f"{v:g}: {_count(self.capturing(name, [v]))}" for v in self.scale.speeds_of(name))
        return Claim(
            text=f"With a mutual reward pursuers capture down to a speed of {SLOWEST:g}.",
            outcomes={PRINTED: found, REPAIRED: found} if run else {PRINTED: {}, REPAIRED: {}},
            evidence=f"Seeds that capture, by speed: {counted}. Holds if most seeds capture.",
            refuted=f"At most half of the seeds capture at {SLOWEST:g}.",
            reason="There was no verdict, because nothing below 0.7 was run.",
        )

    def _unfair(self) -> Claim:
        skilled, slow = f"from {FALLING:g} up", f"below {FALLING:g}"
        bands = {skilled: self.from_up(FALLING), slow: self.slow}
        found = {title: mean_interval(self.deficit("mutual", speeds)) for title, speeds in bands.items()}
        falls = _defined(np.subtract(*(self.where_able("mutual", "corrected", bands[one]) for one in (slow, skilled))))
        fall = mean_interval(falls)
        outcomes = {
            f"{skilled}, above {BITS:g}": everywhere_above({"": found[skilled]}, BITS),
            f"less {slow}": everywhere_below({"": fall}, 0),
        }
        ps = self.p_values("mutual")
        return Claim(
            text=f"Naive mutual reward is unfair {skilled}, and less so {slow}: captures depend on who the pursuer is.",
            outcomes={PRINTED: outcomes, REPAIRED: outcomes},
            evidence="Corrected deficit in bits, mean over the speeds at which a seed captures: "
            f"{listed(found)}; {slow} minus {skilled}, of the {falls.size} seeds that capture in both: "
            f"{tables.show(fall)}. {int((ps <= LEVEL).sum())} of {ps.size} tests of a seed at a speed have p <= "
            f"{LEVEL:g}.",
            refuted=f"A deficit {skilled} below {BITS:g} bits, or a larger one {slow}.",
            earlier=f"undecided {skilled}; a deficit {slow} was counted for the claim, but the paper's is low there",
            reason="More seeds, and the part on slow pursuers is now the paper's. The bound was 0 bits.",
        )

    def _fair(self) -> Claim:
        found = {
            method: {name: mean_interval(self.deficit(name, self.speeds)) for name in names}
            for method, names in self.shared.items()
        }
        ps = {method: {name: self.p_values(name) for name in names} for method, names in self.shared.items()}
        return Claim(
            text="Fair-E is fair where it captures.",
            outcomes={
                method: {f"within {FAIR:g} bits": everywhere_within(of, FAIR), "each seed": no_seed_unfair(ps[method])}
                for method, of in found.items()
            },
            evidence="Corrected deficit in bits, mean over the speeds at which a seed captures: "
            + "; ".join(listed(of) for of in found.values())
            + ". Lowest p-value of a seed at a speed, times the number of tests: "
            + "; ".join(f"{name} {_lowest(own)}" for of in ps.values() for name, own in of.items())
            + ".",
            refuted=f"A mean deficit above {FAIR:g} bits, or a seed that is shown to be unfair.",
            earlier="holds",
            reason="The printed method shares the networks only; its observations by number were not run.",
        )

    def _loss(self) -> Claim:
        pairs = {m: {name: self._pair("mutual", name, self.slow) for name in names} for m, names in self.shared.items()}
        names = ("mutual", *(name for of in self.shared.values() for name in of), *[LARGER] * (LARGER in self.arms))
        return Claim(
            text=f"Fair-E loses utility as skill drops: below {FALLING:g} it captures less often than mutual reward.",
            outcomes={method: more_seeds(of) for method, of in pairs.items()},
            evidence=f"Seeds that capture below {FALLING:g}: {self._counted(names, self.slow)}. An update of Fair-E "
            f"has a third of mutual reward's transitions; that of `{LARGER}`, which has no verdict, as many.",
            refuted=f"A share of mutual reward's seeds that is not {100 * MORE:.0f} percentage points larger.",
            earlier="undecided (cyclic order); holds (sets)",
            reason="More seeds, counts of seeds instead of means, and Fair-E by number.",
        )

    def _between(self) -> Claim:
        compared = {m: [name for name in of if name != STRONG[m]] for m, of in self.penalised.items()}
        usual = self.deficit("mutual", self.slow)
        pairs = {
            m: {name: self._pair(name, SHARED[m][0], self.slow) for name in of if SHARED[m][0] in self.arms}
            for m, of in compared.items()
        }
        fairer = {m: {name: welch(self.deficit(name, self.slow), usual) for name in of} for m, of in compared.items()}
        names = dict.fromkeys(["mutual", *(n for m, of in compared.items() for n in (*self.shared[m][:1], *of))])
        return Claim(
            text=f"Fair-ER is better than both with a weight below 1: below {FALLING:g} it captures more often than "
            "Fair-E, and it is fairer than mutual reward.",
            outcomes={m: _both_by_name(more_seeds(pairs[m]), each_below(fairer[m], 0)) for m in compared},
            evidence=f"Seeds that capture below {FALLING:g}: {self._counted(names, self.slow)}.",
            refuted=f"A share of seeds that capture that is not {100 * MORE:.0f} percentage points above Fair-E's, or "
            "a larger deficit than mutual reward's.",
            earlier="undecided",
            reason="More seeds, counts of seeds, and the printed method with observations by number.",
            measured=Measured(
                label=f"deficit below {FALLING:g} of the seeds that capture there minus mutual reward's, in bits",
                bounds=(0,),
                numbers={method: {"": of} for method, of in fairer.items()},
            ),
        )

    def _strong(self) -> Claim:
        pairs = {
            method: {name: self._pair(SHARED[method][0], name, self.slow)}
            for method, name in STRONG.items()
            if {name, SHARED[method][0]} <= set(self.arms)
        }
        names = dict.fromkeys(name for method in pairs for name in (SHARED[method][0], STRONG[method]))
        return Claim(
            text=f"With a weight of 1, Fair-ER captures less often than Fair-E below {FALLING:g}.",
            outcomes={method: more_seeds(pairs.get(method, {})) for method in STRONG},
            evidence=f"Seeds that capture below {FALLING:g}: {self._counted(names, self.slow)}.",
            refuted=f"A share of Fair-E's seeds that is not {100 * MORE:.0f} percentage points larger.",
            reason="There was no verdict.",
        )

    def _free(self) -> Claim:
        success: dict[str, dict[str, Estimate]] = {PRINTED: {}, REPAIRED: {}}
        fairer: dict[str, dict[str, Estimate]] = {PRINTED: {}, REPAIRED: {}}
        for arms, lowest in ((self.shared, FALLING), (self.penalised, SKILLED)):
            speeds = self.from_up(lowest)
            for method, names in arms.items():
                for name in names:
                    success[method][name] = welch(*(self.mean(n, "success", speeds) for n in (name, "mutual")))
                    fairer[method][name] = welch(*(self.mean(n, "corrected", speeds) for n in (name, "mutual")))
        return Claim(
            text=f"Fairness is free when skill is high: from {SKILLED:g} up (Fair-E: {FALLING:g}) a fairer team "
            "captures as often as mutual reward.",
            outcomes={m: _both_by_name(each_above(success[m], -FREE), each_below(fairer[m], 0)) for m in success},
            evidence=f"Mean over the speeds, minus mutual reward's: the success must be above -{FREE:g}, and the "
            "deficit below 0. Successes of single seeds are near 0 or 1, so that 20 seeds can hardly show a "
            f"difference of less than {FREE:g}, even if there is none; the claim can rather be refuted.",
            refuted=f"A success that is lower by more than {FREE:g}, or a larger deficit.",
            earlier="undecided",
            reason=f"More seeds, and only a loss counts. The margin of success was 0.05; it is now {FREE:g}.",
            measured=Measured(
                label=f"minus mutual reward's (success: -{FREE:g} is the bound; deficit: 0)",
                bounds=(-FREE, 0),
                numbers={m: {"success": success[m], "deficit, bits": fairer[m]} for m in success},
                one_unit=False,
            ),
        )

    def _roles(self) -> Claim:
        found = {
            measure: mean_interval(
                _defined(np.subtract(*(self.where_able(name, measure, self.speeds) for name in (DEALT, "mutual"))))
            )
            for measure in ("corrected", "success")
        }
        outcomes = {
            "fair": both(
                [
                    everywhere_within({DEALT: mean_interval(self.deficit(DEALT, self.speeds))}, FAIR),
                    no_seed_unfair({DEALT: self.p_values(DEALT)}),
                ]
            ),
            "less deficit": everywhere_below({DEALT: found["corrected"]}, 0),
            f"success within {SAME:g}": everywhere_within({DEALT: found["success"]}, SAME),
        }
        return Claim(
            text="Not in the paper: randomly reassigning the unfair team's roles in each episode makes it fair by this "
            "measure, at no cost.",
            outcomes={PRINTED: outcomes, REPAIRED: outcomes},
            evidence="Roles dealt minus mutual, the same policies, mean over the speeds at which a seed captures: "
            + listed({"deficit": found["corrected"], "success": found["success"]})
            + f". Lowest p-value times the number of tests: {_lowest(self.p_values(DEALT))}.",
            refuted=f"A deficit that is not smaller or above {FAIR:g} bits, or a success that differs by more than "
            f"{SAME:g}.",
            earlier="holds",
            reason="More seeds.",
        )

    def _pair(self, one: Label, other: Label, speeds: Sequence[float]) -> tuple[Flags, Flags]:
        return self.capturing(one, speeds), self.capturing(other, speeds)

    def _counted(self, names: Iterable[Label], speeds: Sequence[float]) -> str:
        return ", ".join(f"{name} {_count(self.capturing(name, speeds))}" for name in names)

    # ------------------------------------------------------------------------------------------- the page

    def question(self) -> str:
        """Return what the paper claims."""
        return (
            "Three pursuers that share a reward learn to catch an evader by DDPG. The paper finds that captures then "
            "depend on the identity of the pursuers. Shared networks (Fair-E) make the team fair, at a loss of "
            "captures if pursuers are slow. A penalty on the differences of the networks, with the weight lambda "
            "(Fair-ER), lies between. The paper's figures are known here from the descriptions in its text, which "
            "prints no numbers."
        )

    def runs(self) -> str:
        """Return what was run, and what the numbers mean."""
        s, own = self.scale, training_of(self.scale, "mutual", 0)
        world = make_rules(own.env_id, **own.parameters).params
        return (
            f"Pursuit on a torus of side {world.side:g} with {world.horizon} steps, and {s.steps:,} agent steps of "
            f"training, in which the pursuers' speed falls from {own.speeds[0]:g} to {own.speeds[-1]:g} (the evader's "
            f"is 1){self._slower_arm()}. At each speed, the tested policy is the one trained until the curriculum was "
            f"halfway to the next. Each training has {s.episodes} test episodes of its own at each speed, the planner "
            f"{min(s.episodes, PLANNED)}. The main arms have {s.seeds} training seeds, the others "
            f"{min(s.seeds, s.fewer)}; the first one is {FIRST_SEED}.\n\n"
            "**As printed**: networks are shared without more, and team-mates are observed by number, as in the "
            "released code (`Fair-E, by number`); Fair-ER has a constant weight in the paper's units, subtracted, and "
            "compares the networks on observations by number, too. **Our repair**: team-mates are observed in cyclic "
            "order, so that a shared network, or equal networks, give an equivariant team; with `automatic`, Fair-ER's "
            "weight is also adapted to a limit on the penalty. Claims about "
            "mutual and individual reward have one verdict for both: each pursuer has its own networks, for which the "
            f"order does not matter. All arms use the training settings of the preset `{s.preset}`"
            + ("; the paper's own settings (`--scale full`) were not run" if s.preset != "paper" else "")
            + ".\n\n"
            f"A seed captures if it does in at least {100 * CAPTURES:g} % of its episodes. Counts of seeds have exact "
            "intervals (Clopper and Pearson) and are compared with Fisher's exact test; other numbers have Student's "
            "intervals over training seeds and are compared with Welch's t. Nothing is "
            "paired, except the same policy with and without roles dealt. The deficit of team fairness is in bits, "
            "corrected for the number of episodes; 0 is fair, and a team that never captures also has 0. Its noise "
            "floor is the mean absolute value if the pursuers are relabelled at random in each episode."
        )

    def _slower_arm(self) -> str:
        if SLOWER not in self.arms:
            return ""
        slower = training_of(self.scale, SLOWER, 0)
        return f"; the arm `{SLOWER}` has {slower.steps:,} and ends at {slower.speeds[-1]:g}"

    def sizes(self) -> list[Size]:
        """Return our scale beside the paper's."""
        s, own = self.scale, training_of(self.scale, "mutual", 0)
        world = make_rules(own.env_id, **own.parameters).params
        return [
            Size("training seeds of the main arms", s.seeds, 5),
            Size("training seeds of other arms", min(s.seeds, s.fewer), 5),
            Size("agent steps of a training", s.steps, SCALES["full"].steps),
            Size("updates of a pursuer", _updates(own), _updates(training_of(SCALES["full"], "mutual", 0))),
            Size("batch size", own.batch_size, 512),
            Size("side of the torus", world.side, 6),
            Size("steps of an episode, at most", world.horizon, 500),
            Size("test episodes of a seed at a speed", s.episodes, 100),
            Size("slowest speed of mutual reward", min([*s.speeds, *s.slower]), TENTHS[-1]),
            Size("slowest speed of other arms", s.speeds[-1], TENTHS[-1]),
        ]

    def limitations(self) -> str:
        """Return what the runs cannot show, and how they differ from the paper's."""
        return (
            "* In the small scales the world has half the paper's side and half its steps, and trainings have a small "
            "part of its updates, of smaller batches, with other settings (see the table of sizes).\n"
            "* The settings were chosen with pilots of mutual reward, Fair-E and Fair-ER, with two seeds that no "
            "result uses. An earlier run of the study had the seeds 0 to 4, which are not used again.\n"
            "* An update of a shared network learns from a third of the transitions of three separate ones, as in the "
            "released code. What Fair-E loses against mutual reward can be due to this; `Fair-E, larger batches` "
            "shows by how much.\n"
            "* A team that captures less often has a smaller deficit: only episodes in which some pursuers capture "
            "and others do not contribute to it. A table has the deficit of such an episode.\n"
            "* Whether a team captures at a speed is read from one policy, and success changes quickly in training. "
            "The table of the last policy, and that of other thresholds, show how much depends on it.\n"
            "* Criteria are ours, because the paper gives none, and were chosen after results of an earlier run had "
            "been seen.\n"
            "* Roles are reassigned in tests only, and only for mutual reward.\n"
            "* The paper's figures are known from the descriptions in its text."
        )

    def sections(self) -> dict[str, str]:
        """Return the tables by their titles."""
        return {
            "The paper's figures beside ours": self.paper_table(),
            "Seeds that capture (Fig. 2 and 3c)": self.table(lambda name, v: _count(self.capturing(name, [v]))),
            "Seeds that capture, with other thresholds": "Seeds whose success is at least 0.25 / 0.75.\n\n"
            + self.table(lambda name, v: self._at_thresholds(name, v, (0.25, 0.75))),
            "Success (Fig. 2 and 3c)": "Median of the seeds, and their lowest and highest quartile.\n\n"
            + self.table(lambda name, v: _quartiles(self.values(name, "success", [v]))),
            "Team fairness (Fig. 3b)": "Mean absolute corrected deficit in bits of the seeds that capture, and its "
            "noise floor after the slash.\n\n"
            + self.table(lambda name, v: self._beside_floor(name, "corrected", "floor", v)),
            "Team fairness of episodes with unequal pursuers": self.unequal_table(),
            "What the penalty does": self.penalty_table(),
            "Largest share of captures of a pursuer (Fig. 3a)": "Seeds that capture; the noise floor is after the "
            "slash.\n\n" + self.table(lambda name, v: self._beside_floor(name, "largest", "largest floor", v)),
            "Steps to capture": "Of the episodes with a capture, for all seeds that have one.\n\n"
            + self.table(lambda name, v: _shown(self.values(name, "steps", [v]), digits=0)),
            "The last policy at all speeds": "Seeds that capture; success / corrected deficit of all seeds.\n\n"
            + self.table(self._of_the_last, names=self.scale.methods),
        }

    def table(self, cell: Callable[[Label, float], str], *, names: Iterable[Label] = ()) -> str:
        """Return a table with a row for each team and a column for each speed; teams without training come first."""
        speeds = self.scale.speeds_of("greedy")
        rows = []
        for name in names or (*self.arms, DEALT):
            own = "mutual" if name == DEALT else name
            tested = self.scale.speeds_of(own)
            shown = [cell(name, speed) if speed in tested else "" for speed in speeds]
            rows.append([name, str(self.arms[own].seeds), *shown])
        return tables.markdown(["team", "seeds", *(f"{speed:g}" for speed in speeds)], rows)

    def paper_table(self) -> str:
        """Return what the paper's figures show, in its words, beside our numbers."""
        at, slow = (EQUAL_SPEED,), self.slow
        unfair = (f"from {FALLING:g} up", self.from_up(FALLING))
        rows = [
            ["Fig. 2: mutual reward", f"about 1 down to {SLOWEST:g}", self._slower().evidence],
            ["Fig. 2: individual reward", "falls at 1 and below", self._counted(["individual"], at)],
            ["Fig. 3a: mutual, at 1", "one pursuer has most captures", self._largest("mutual")],
            ["Fig. 3a: Fair-E, at 1", "1/3 each", self._largest("Fair-E")],
            [f"Fig. 3b: mutual, {unfair[0]}", "clearly unfair", _shown(self.deficit("mutual", unfair[1]))],
            ["Fig. 3b: Fair-E", "about 0 everywhere", _shown(self.deficit("Fair-E", self.speeds))],
            [f"Fig. 3c: Fair-E, below {FALLING:g}", "falls steeply", self._counted(["Fair-E", "mutual"], slow)],
            ["Fig. 4: lambda up to 0.5, and 1", "between mutual and Fair-E, and below Fair-E",
             self._counted([name for of in self.penalised.values() for name in of], slow)],
        ]  # fmt: skip
        return tables.markdown(["", "the paper, in words", "ours"], rows)

    def _largest(self, name: Label) -> str:
        return self._beside_floor(name, "largest", "largest floor", EQUAL_SPEED) + " (its noise floor)"

    def _beside_floor(self, name: Label, measure: str, floor: str, speed: float) -> str:
        """Return the mean absolute value of a measure over the seeds that capture, beside its noise floor."""
        able = self.capturing("mutual" if name == DEALT else name, [speed])
        shown, own = (self.values(name, one, [speed])[able] for one in (measure, floor))
        return f"{_shown(np.abs(shown))} / {np.nanmean(own):.3f}" if own.size else "none"

    def _at_thresholds(self, name: Label, speed: float, thresholds: Sequence[float]) -> str:
        success = self.values(name, "success", [speed])
        return " / ".join(str(int((success >= least).sum())) for least in thresholds)

    def penalty_table(self) -> str:
        """Return Fair-ER's penalty of the policy of each speed, for all separate networks."""
        names = [name for name in self.scale.methods if any("penalty" in one for one in self.arms[name].names)]
        speeds = self.scale.speeds_of("greedy")
        rows = [
            [name, *(_shown(self.arms[name].values(f"penalty at {speed:g}")) for speed in speeds)] for name in names
        ]
        return (
            "Fair-ER's penalty without its weight: 1 minus the cosine of the angle between two pursuers' actions for "
            "the same observation; 0: equal networks, 1: unrelated ones. It is that of the policy of each speed, on "
            "observations of the training before that policy was stored. `automatic` has the limit "
            f"{training_of(self.scale, 'mutual', 0).fairness_limit:g}. Mutual and individual reward have no penalty "
            f"and show what it would be. Arms `{BY_NUMBER[2:]}` have other observations, so they cannot be compared "
            "with the others.\n\n" + tables.markdown(["team", *(f"{speed:g}" for speed in speeds)], rows)
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
            + self.table(lambda name, v: _shown(_defined(self.unequal(name, [v]))))
            + f"\n\nMutual reward, below {FALLING:g} minus from {FALLING:g} up, of seeds that capture in both: "
            f"{_shown(_defined(below - above))}. Minus mutual reward's, of the seeds that capture there (no verdicts; "
            f"from {SKILLED:g} up, the claim also counts seeds that do not capture):\n\n"
            + tables.markdown(["team", f"below {FALLING:g}", f"from {SKILLED:g} (Fair-E: {FALLING:g}) up"], rows)
        )

    def _less_unequal(self, name: Label, speeds: Sequence[float]) -> str:
        own, usual = (_defined(self.unequal(one, speeds)) for one in (name, "mutual"))
        return tables.show(welch(own, usual)) if min(own.size, usual.size) > 1 else "none"

    def _of_the_last(self, name: Label, speed: float) -> str:
        success, deficit = (self.values(name, f"last {measure}", [speed]) for measure in ("success", "corrected"))
        return f"{_count(success[:, 0] >= CAPTURES)}; {success.mean():.3f} / {deficit.mean():.3f}"

    # ---------------------------------------------------------------------------------------- figures

    def draw(self) -> list[Picture]:
        """Save the figures."""
        shared = tuple(name for of in self.shared.values() for name in of)
        penalised = tuple(name for of in self.penalised.values() for name in of)
        rewards = [
            name for name in ("mutual", SLOWER, "individual", "greedy", "planner", "random") if name in self.arms
        ]
        notions = dict.fromkeys(["mutual", *shared, *penalised, DEALT, "greedy"])
        self._draw_counts(rewards, "reward.png")
        self._draw_counts(notions, "counts.png")
        panels = {
            f"speed {speed:g}": {
                name: {
                    "corrected deficit": mean_interval(self.deficit(name, [speed])),
                    "noise floor": self._at(name, "floor", speed),
                }
                for name in notions
            }
            for speed in self.speeds
        }
        plots.dot_plot(
            panels, self.out / "fairness.png", label="bits, of the seeds that capture (0 is fair)", lines=[0]
        )
        figures.course_plot(
            {
                "Fair-E": {name: self.arms[name].curve("learned") for name in ("mutual", "individual", *shared)},
                "Fig. 4: Fair-ER": {name: self.arms[name].curve("learned") for name in ("mutual", *penalised)},
            },
            self.out / "training.png",
            points={},
            labels=("agent steps", ""),
        )
        figures.exchange_plot(
            {
                f"speed {speed:g}": {
                    name: (self._at(name, "corrected", speed), self._at(name, "success", speed))
                    for name in ("mutual", *penalised, *shared)
                }
                for speed in self.speeds
            },
            self.out / "exchange.png",
            labels=("deficit in bits, corrected", "success"),
        )
        return [
            Picture(
                "reward.png", "Share of the seeds that capture at each speed, by reward (Fig. 2), exact intervals."
            ),
            Picture("counts.png", "Share of the seeds that capture at each speed (Fig. 3c), exact intervals."),
            Picture("fairness.png", "Team fairness of the seeds that capture at each speed (Fig. 3b)."),
            Picture(
                "training.png",
                "Success of the training's episodes (Fig. 4). In the first part, the scripted guide captures, too.",
            ),
            Picture("exchange.png", "Success against the deficit at each speed (Fig. 5)."),
        ]

    def _draw_counts(self, names: Iterable[Label], file: str) -> None:
        """Save the shares of the seeds that capture, with a panel for each speed."""
        panels: dict[str, dict[str, dict[str, Estimate]]] = {}
        for speed in self.scale.speeds_of("greedy"):
            tested = [name for name in names if speed in self.scale.speeds_of("mutual" if name == DEALT else name)]
            shares = {name: share_interval(self.capturing(name, [speed]), method="exact") for name in tested}
            panels[f"speed {speed:g}"] = {name: {"": share} for name, share in shares.items()}
        plots.dot_plot(panels, self.out / file, label="share of the seeds that capture", lines=[0.5])

    def _at(self, name: Label, measure: str, speed: float) -> Estimate:
        return mean_interval(self.values(name, measure, [speed])[:, 0])


# Tests of several arms, with Holm's correction over them --------------------------------------------------------------


def _defined(values: Floats) -> Floats:
    return np.asarray(values[~np.isnan(values)])


def _ratio(sums: Floats, by: Floats) -> Floats:
    return np.asarray(np.divide(sums, by, out=np.full(len(sums), np.nan), where=by > 0))


def more_seeds(pairs: Pairs) -> dict[str, Outcome]:
    """Return whether more seeds capture in the first than in the second of each pair (Fisher's exact test).

    Refuted if fewer do, or if the difference of the shares is shown to be below `MORE` (exact intervals of both shares,
    with Bonferroni's correction), unless hardly any seed captures in both (`HARDLY`).
    """
    p_values = holm([fisher(*pair) for pair in pairs.values()])
    level = 1 - LEVEL / max(1, len(pairs))
    found = {}
    for (name, (one, other)), p in zip(pairs.items(), p_values, strict=True):
        first, second = (share_interval(flags, level=level, method="exact") for flags in (one, other))
        if p <= LEVEL:
            found[name] = Outcome(first.value > second.value)
        elif max(first.value, second.value) <= HARDLY:
            found[name] = Outcome(None)
        elif first.high - second.low < MORE:
            found[name] = Outcome(False)
        else:
            found[name] = Outcome(None, _seeds_for_fisher(first.value, second.value))
    return found


def most_seeds(flags: Flags, *, arms: int = 1) -> Outcome:
    """Return whether more than half of the seeds capture (exact interval, with Bonferroni's correction for arms)."""
    share = share_interval(flags, level=1 - LEVEL / arms, method="exact")
    decided = True if share.low > 0.5 else False if share.high < 0.5 else None
    return Outcome(decided)


def no_seed_unfair(p_values: Mapping[str, Floats]) -> Outcome:
    """Return whether no test of a seed at a speed rejects a fair team, with Holm's correction.

    It is not run without arms, and undecided if no seed captures.
    """
    if not p_values:
        return NOT_RUN
    found = np.concatenate(list(p_values.values()))
    return Outcome(bool(holm(found).min() > LEVEL)) if found.size else Outcome(None)


def each_above(found: Numbers, bound: float) -> dict[str, Outcome]:
    """Return whether each number is above a bound."""
    return _each(
        found, shown(found, bound, "greater"), shown(found, bound, "less"), lambda e: everywhere_above(e, bound)
    )


def each_below(found: Numbers, bound: float) -> dict[str, Outcome]:
    """Return whether each number is below a bound."""
    return _each(
        found, shown(found, bound, "less"), shown(found, bound, "greater"), lambda e: everywhere_below(e, bound)
    )


def _each(
    found: Numbers, true: Sequence[str], false: Sequence[str], alone: Callable[[Numbers], Outcome]
) -> dict[str, Outcome]:
    """Return the outcome of each number from those that are decided; the others say how many seeds would decide."""
    outcomes = {}
    for name, e in found.items():
        decided = True if name in true else False if name in false else None
        outcomes[name] = Outcome(decided, None if decided is not None else alone({name: e}).needed)
    return outcomes


def _both_by_name(one: Mapping[str, Outcome], other: Mapping[str, Outcome]) -> dict[str, Outcome]:
    return {name: both([one[name], other[name]]) for name in one}


def _seeds_for_fisher(one: float, other: float) -> int | None:
    """Return about how many seeds of each arm would show that the first share is larger, if both were exact.

    For a power of 0.8, from the normal approximation of two shares; a little less than Fisher's exact test needs.
    """
    from scipy.stats import norm

    if not one > other:
        return None
    spread = one * (1 - one) + other * (1 - other)
    needed = math.ceil((norm.ppf(1 - LEVEL / 2) + norm.ppf(0.8)) ** 2 * spread / (one - other) ** 2)
    return max(FEWEST, needed) if needed <= MOST_SEEDS else None


# Texts ----------------------------------------------------------------------------------------------------------------


def _count(flags: Flags) -> str:
    """Return how many seeds capture, with the exact interval of the share."""
    share = share_interval(flags, method="exact")
    return f"{int(flags.sum())} of {flags.size} [{share.low:.2f}, {share.high:.2f}]"


def _shown(values: Floats, *, digits: int = 3) -> str:
    """Return a mean over seeds with its interval; "none" if it is undefined, such as steps without a capture."""
    estimate = mean_interval(np.ravel(values), undefined="omit")
    return "none" if np.isnan(estimate.value) else tables.show(estimate, digits=digits)


def _quartiles(values: Floats) -> str:
    """Return the median, and the lowest and highest quartile."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{median:.2f} ({low:.2f}, {high:.2f})"


def _updates(training: TeamTraining) -> int:
    """Return the updates of a pursuer's networks in a training."""
    rules = make_rules(training.env_id, **training.parameters)
    agent_steps = rules.agents(rules.params) * training.lanes * training.train_freq  # between updates
    return (training.steps - training.learning_starts) // agent_steps * training.gradient_steps


def _lowest(p_values: Floats) -> str:
    return f"{holm(p_values).min():.3f} ({p_values.size} tests)" if p_values.size else "none"


main = study.Study(
    scales=SCALES,
    cells=cells,
    numbers=numbers,
    report=lambda name, scale, arms, out: Report(name=name, scale=scale, arms=arms, out=out),
).run

__all__ = ["METHODS", "TEAMS", "Report", "main"]
