"""Grupen, Selman and Lee (2022), "Cooperative Multi-Agent Fairness and Equivariant Policies".

The paper (AAAI 2022, arXiv 2106.05727) trains pursuers that share a reward, and asks whether captures depend on the
identity of the pursuers. Its figures are only known from the descriptions in the text; it prints no numbers. A team
learns to capture at a speed or it does not, so success is tested with the number of seeds that capture. The plan of the
study is in ``docs/reproduction/grupen2022/plan.md``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fair_envs.baselines.team.training import TeamTraining
from fair_envs.experiments import tables
from fair_envs.metrics import Estimate, mean_interval, share_interval
from fair_envs.metrics.inference import holm, shown, units_needed, welch
from fair_envs.registration import make_rules
from fair_envs.reproduction import study
from fair_envs.reproduction.claims import (
    HARDLY,
    LEVEL,
    NOT_RUN,
    Claim,
    Measured,
    Outcome,
    both,
    comparisons,
    everywhere_above,
    everywhere_below,
    everywhere_within,
    more_seeds,
    show_p,
)
from fair_envs.reproduction.grupen2022.jobs import (
    FIRST_SEED,
    LARGER,
    MAIN,
    METHODS,
    PLANNED,
    SCALES,
    SLOWER,
    TEAMS,
    TENTHS,
    Label,
    cells,
    numbers,
    training_of,
)
from fair_envs.reproduction.grupen2022.sections import (
    CAPTURES,
    DEALT,
    EQUAL_SPEED,
    FALLING,
    FEW,
    SHARED,
    SKILLED,
    SLOWEST,
    STRONG,
    Sections,
    defined,
)
from fair_envs.reproduction.study import PRINTED, REPAIRED, Size
from fair_envs.support.aliases import Flags, Floats

TERMS: Mapping[str, str] = {
    "captures": f"a seed captures at a speed if the team does in at least {100 * CAPTURES:g} % of its test episodes; "
    "counts over several speeds use the mean, deficits those speeds at which the seed captures",
    "mutual, individual": "reward for a capture: for all pursuers, or for those that capture",
    "Fair-E": "one network for all pursuers; repaired: a pursuer observes the team-mates in cyclic order, so that the "
    "team is equivariant; as printed (`by number`): by number, as in the code that was released in April 2021. Other "
    "versions of that code have cyclic order; which one made the paper's figures is not known",
    f"`{LARGER}`": "Fair-E, repaired; an update learns from three times the transitions, the number that the "
    "three separate networks have together",
    "Fair-ER": "separate networks with a penalty on the differences of their actions for the same observation, "
    "subtracted with the weight lambda (in the paper's units); repaired: cyclic order; as printed (`by number`): by "
    "number; `automatic`: values are divided by their mean size, and the weight adapts to a limit of the penalty",
    "deficit": "of team fairness, in bits: by how much the distribution of the sets of captors differs from one that "
    "is the same for all pursuers; 0 is fair, and so is a team that never captures; at most 1.585; *corrected* for the "
    "number of episodes, so that it can be negative",
    "noise floor": "the mean absolute value if pursuers are relabelled at random in each episode",
    "roles dealt": "the same team with pursuers that exchange their roles at random in each episode",
    "random, straight": "teams that move at random, or always in the same direction",
    "greedy, planner": "pursuers that head for the evader; a team that plans with the rules of the environment",
    "agent step": "a step of one pursuer; a step of the environment has three",
}
"""The terms of the page."""

# Criteria of the claims, in addition to those of the tables. They are ours, the paper gives none; see the plan.
BITS = 0.05  # least deficit that counts as unfair
FAIR = 0.01  # largest deficit that counts as fair; a hand-made policy that shares networks by number has 0.017
SAME = 0.05  # largest difference of success between dealt and own roles that counts as none
FREE = 0.1  # largest loss of success that counts as none between trainings
MORE = 0.25  # a difference of the shares of seeds that is shown to be smaller refutes "more seeds capture"
REFERENCES = ("random", "greedy", "planner")  # teams without training beside all counts
BUILT = "This follows from the construction, so the test checks the code"
FAIR_BUILT = "That it is fair follows from the construction, so this part checks the code"

Numbers = Mapping[str, Estimate]

HARDLY_ANY = "hardly any seed captures"
more_capture = partial(more_seeds, why_not=HARDLY_ANY, margin=MORE)
"""Whether more seeds capture in the first than in the second of each pair."""


@dataclass(frozen=True, kw_only=True)
class Report(Sections):
    """The claims with their verdicts, and the texts of the page."""

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
        level = 1 - LEVEL / max(map(len, names.values()))
        return Claim(
            text="Trained pursuers capture at the evader's speed, and greedy ones do not.",
            outcomes={
                method: {name: both([most_seeds(self.capturing(name, at), arms=len(of)), slower]) for name in of}
                for method, of in names.items()
            },
            evidence=f"Seeds that capture at {EQUAL_SPEED:g}: {self._counted(every, at, level=level)}. Holds if most "
            f"seeds are shown to capture (exact intervals at {100 * level:.4g} %, because there are several arms), and "
            "greedy pursuers capture in no set of test episodes.",
            refuted="At most half of the seeds capture, or greedy pursuers do.",
            earlier="holds (mutual); undecided (Fair-E, sets)",
            reason="More seeds, counts of seeds instead of means, and Fair-E by number and in cyclic order. Most seeds "
            "must capture, not only more than with greedy pursuers.",
        )

    def _mutual(self) -> Claim:
        slow = [speed for speed in self.speeds if speed <= EQUAL_SPEED]
        pairs = {f"at {speed:g}": self._pair("mutual", "individual", [speed]) for speed in slow}
        found = more_capture(pairs)
        return Claim(
            text="Mutual reward is critical: at the evader's speed and below (to "
            f"{min(self.speeds):g}), individual reward captures less often.",
            outcomes={PRINTED: found, REPAIRED: found},
            conjunction=True,
            evidence="Seeds that capture: "
            + "; ".join(f"at {v:g}: {self._counted(['mutual', 'individual'], [v])}" for v in slow)
            + f". {comparisons({REPAIRED: pairs}, margin=MORE)}",
            refuted=f"A share of seeds that capture that is not {100 * MORE:.0f} percentage points larger.",
            earlier="undecided at 1; holds at 0.9, 0.8, 0.7",
            reason="More seeds, and counts of seeds instead of means.",
        )

    def _slower(self) -> Claim:
        name = SLOWER if SLOWER in self.arms else "mutual"
        run = SLOWEST in self.scale.speeds_of(name)
        flags = self.capturing(name, [SLOWEST]) if run else np.zeros(0, bool)
        found = {f"at {SLOWEST:g}": most_seeds(flags)}
        counted = "; ".join(f"{v:g}: {self.counted(name, [v])}" for v in self.scale.speeds_of(name))
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
        falls = defined(np.subtract(*(self.where_able("mutual", "corrected", bands[one]) for one in (slow, skilled))))
        fall = mean_interval(falls)
        outcomes = {
            f"{skilled}, above {BITS:g}": everywhere_above({"": found[skilled]}, BITS),
            f"less {slow}": everywhere_below({"": fall}, 0),
        }
        ps = self.p_values("mutual")
        return Claim(
            text=f"Naive mutual reward is unfair {skilled}, and less so {slow}: captures depend on who the pursuer is.",
            outcomes={PRINTED: outcomes, REPAIRED: outcomes},
            conjunction=True,
            evidence="Corrected deficit in bits, mean over the speeds at which a seed captures: "
            f"{', '.join(f'{title} {_with_n(e)}' for title, e in found.items())}; {slow} minus {skilled}, of the "
            f"{falls.size} seeds that capture in both: "
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
        outcomes = {
            method: {f"within {FAIR:g} bits": everywhere_within(of, FAIR), "each seed": no_seed_unfair(ps[method])}
            for method, of in found.items()
        }
        return Claim(
            text="Fair-E is fair where it captures.",
            outcomes=outcomes,
            conjunction=True,
            evidence="Corrected deficit in bits, mean over the speeds at which a seed captures: "
            + "; ".join(f"{name} {_with_n(e)}" for of in found.values() for name, e in of.items())
            + ". *Each seed* holds if no seed at a speed is shown to be unfair, which 5 % of fair methods fail. Lowest "
            "p-value of a seed at a speed, times the number of tests: "
            + "; ".join(f"{name} {_lowest(own)}" for of in ps.values() for name, own in of.items())
            + ".",
            refuted=f"A mean deficit above {FAIR:g} bits, or a seed that is shown to be unfair.",
            earlier="holds",
            reason="The earlier verdict was on our repair; the printed method, with observations by number, had not "
            "been run.",
            remarks={REPAIRED: BUILT} if both(outcomes[REPAIRED].values()).holds else {},
        )

    def _loss(self) -> Claim:
        pairs = {m: {name: self._pair("mutual", name, self.slow) for name in names} for m, names in self.shared.items()}
        names = ("mutual", *(name for of in self.shared.values() for name in of), *[LARGER] * (LARGER in self.arms))
        return Claim(
            text=f"Fair-E loses utility as skill drops: {self._below} it captures less often than mutual reward.",
            outcomes={method: more_capture(of) for method, of in pairs.items()},
            evidence=f"Seeds that capture below {FALLING:g}: {self._counted(names, self.slow)}. "
            f"{comparisons(pairs, margin=MORE)} An update of Fair-E has a third of mutual reward's "
            f"transitions{self._larger_arm()}.",
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
            text=f"Fair-ER is better than both with a weight below 1, or one that adapts: {self._below} it captures "
            "more often than Fair-E, and it is fairer than mutual reward.",
            outcomes={m: _both_by_name(more_capture(pairs[m]), each_below(fairer[m], 0)) for m in compared},
            evidence=f"Seeds that capture below {FALLING:g}: {self._counted(names, self.slow)}. "
            f"{comparisons(pairs, margin=MORE)} Deficits are of the seeds that capture at one of these speeds: "
            + ", ".join(f"{name} {self.deficit(name, self.slow).size}" for name in names)
            + ".",
            refuted=f"A share of seeds that capture that is not {100 * MORE:.0f} percentage points above Fair-E's, or "
            "a larger deficit than mutual reward's.",
            earlier="undecided",
            reason="More seeds, counts of seeds, and the printed method with observations by number.",
            measured=Measured(
                label=f"deficit below {FALLING:g} minus mutual reward's, in bits",
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
            text=f"With a weight of 1, Fair-ER captures less often than Fair-E {self._below}.",
            outcomes={method: more_capture(pairs.get(method, {})) for method in STRONG},
            evidence=f"Seeds that capture below {FALLING:g}: {self._counted(names, self.slow)}. "
            f"{comparisons(pairs, margin=MORE)}",
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
        usual = mean_interval(self.mean("mutual", "success", self.from_up(FALLING)))
        spread = usual.standard_error * np.sqrt(usual.n)
        return Claim(
            text=f"Fairness is free when skill is high: from {SKILLED:g} up (Fair-E: {FALLING:g}) a fairer team "
            "captures as often as mutual reward.",
            outcomes={m: _both_by_name(each_above(success[m], -FREE), each_below(fairer[m], 0)) for m in success},
            evidence=f"Mean over the speeds, minus mutual reward's, of all seeds: the success must be above -{FREE:g}, "
            "and the deficit below 0. A team that captures less often has a smaller deficit; the table of episodes "
            "with unequal pursuers has one that does not depend on it. Mutual reward's success from "
            f"{FALLING:g} up has a standard deviation of {spread:.2f} over seeds. With 0.15 to 0.2, 20 seeds of each "
            f"arm show with a probability of about 0.4 that a method without any loss loses less than {FREE:g}; so "
            "the claim can rather be refuted than shown.",
            refuted=f"A success that is lower by more than {FREE:g}, or a larger deficit.",
            earlier="undecided",
            reason=f"More seeds, and only a loss counts. The margin of success was 0.05; it is now {FREE:g}.",
            measured=Measured(
                label="difference from mutual reward",
                bounds={"success": (-FREE,), "deficit, bits": (0.0,)},
                numbers={m: {"success": success[m], "deficit, bits": fairer[m]} for m in success},
                one_unit=False,
            ),
        )

    def _roles(self) -> Claim:
        found = {
            measure: mean_interval(
                defined(np.subtract(*(self.where_able(name, measure, self.speeds) for name in (DEALT, "mutual"))))
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
            conjunction=True,
            evidence="Roles dealt minus mutual, the same policies, mean over the speeds at which a seed captures: "
            f"deficit {_with_n(found['corrected'])}, success {_with_n(found['success'])}. "
            f"Lowest p-value times the number of tests: {_lowest(self.p_values(DEALT))}.",
            refuted=f"A deficit that is not smaller or above {FAIR:g} bits, or a success that differs by more than "
            f"{SAME:g}.",
            earlier="holds",
            reason="More seeds.",
            remarks=dict.fromkeys((PRINTED, REPAIRED), FAIR_BUILT) if outcomes["fair"].holds else {},
        )

    def _pair(self, one: Label, other: Label, speeds: Sequence[float]) -> tuple[Flags, Flags]:
        return self.capturing(one, speeds), self.capturing(other, speeds)

    def _counted(self, names: Iterable[Label], speeds: Sequence[float], *, level: float = 1 - LEVEL) -> str:
        """Return how many seeds of the teams capture, and those of teams without training."""
        every = dict.fromkeys([*names, *REFERENCES])
        return ", ".join(f"{name} {self.counted(name, speeds, level=level)}" for name in every)

    @property
    def _below(self) -> str:
        """The slow speeds, in words."""
        return f"below {FALLING:g} (mean of {' and '.join(f'{speed:g}' for speed in self.slow)})"

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
        s, own, world = self.scale, self.usual, self.world
        main, others = ([arm for name, arm in self.arms.items() if (name in MAIN) is own] for own in (True, False))
        unlike_paper = "; the paper's own settings (`--scale full`) were not run" if s.preset != "paper" else ""
        return (
            f"Pursuit on a torus of side {world.side:g} with {world.horizon} steps, and {s.steps:,} agent steps of "
            f"training, in which the pursuers' speed falls from {own.speeds[0]:g} to {own.speeds[-1]:g} (the evader's "
            f"is 1){self._slower_arm()}. At each speed, the tested policy is the one trained until the curriculum was "
            "halfway to the next, at the slowest one the last policy. Each training has "
            f"{s.episodes} test episodes at each speed, whose starts are the same at all speeds and for all arms with "
            f"the same seed; the planner has {min(s.episodes, PLANNED)}. The "
            f"main arms ({', '.join(MAIN)}) have {study.seeds_of(main)}, the others {study.seeds_of(others)}; the "
            f"first training seed is {FIRST_SEED}. Seeds of teams without training are sets of test "
            f"episodes. All arms use the training settings of the preset `{s.preset}`{unlike_paper}. "
            f"{self._left_out()}[The plan](plan.md) was written before these runs, and has the criteria "
            "of each claim and, at its end, all changes with their reasons.\n\n"
            f"{tables.markdown(['term', 'meaning'], list(map(list, TERMS.items())))}\n\n"
            "Counts of seeds have exact intervals (Clopper and Pearson) and are compared with Fisher's exact test; "
            "other numbers have Student's intervals over training seeds and are compared with Welch's t; the number of "
            f"seeds stands after the interval, and of fewer than {FEW} seeds the values are listed. Nothing is paired, "
            "except the same policy with and without roles dealt. That *more seeds capture* is refuted if fewer do, or "
            f"if the upper bound of one share minus the lower bound of the other is below {MORE:g} (exact intervals, "
            f"Bonferroni's correction). Shares that are both at most {HARDLY:g} are not compared: *{HARDLY_ANY}*. The "
            "number of seeds that would decide is that of each compared arm; where a claim is about deficits, that of "
            "seeds that capture. Parts of a claim that are about different numbers are not corrected for their number. "
            "Mutual and individual reward are the same as printed and repaired, so claims about them alone have one "
            "test for both columns."
        )

    def _left_out(self) -> str:
        """Return which arms the code has that were not run."""
        others = [f"`{name}`" for name in METHODS if name not in self.arms]
        return f"Other arms that the code has were not run: {', '.join(others)}. " if others else ""

    def _larger_arm(self) -> str:
        return f"; `{LARGER}` has the same number of transitions, but no test" if LARGER in self.arms else ""

    def _slower_arm(self) -> str:
        if SLOWER not in self.arms:
            return ""
        slower = training_of(self.scale, SLOWER, 0)
        return f"; the arm `{SLOWER}` has {slower.steps:,} and ends at {slower.speeds[-1]:g}"

    def sizes(self) -> list[Size]:
        """Return our scale beside the paper's."""
        s, own, world = self.scale, self.usual, self.world
        return [
            Size("training seeds of a main arm", self.most_seeds, 5),
            Size("agent steps of a training", s.steps, SCALES["full"].steps),
            Size("updates of a pursuer", _updates(own), _updates(training_of(SCALES["full"], "mutual", 0))),
            Size("batch size", own.batch_size, 512),
            Size("units of a layer", own.actor[0], 128),
            Size("learning rate of actors", own.learning_rate, 0.0001),
            Size("rate of the target networks", own.tau, 0.001),
            Size("discount", own.gamma, 0.99),
            Size("steps of the returns that critics learn", own.n_steps, 1),
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
            "part of its updates, with other settings (see the table of sizes), also the arms *as printed*.\n"
            "* The speed falls during the training. So a low success at a slow speed can be due to the speed or to the "
            "time of the training at which it comes. The table of the last policies shows how much is forgotten.\n"
            "* The settings were chosen with pilots of mutual reward, Fair-E and Fair-ER, with two seeds that no "
            "result uses. An earlier run of the study had the seeds 0 to 4, which are not used again.\n"
            "* An update of a shared network learns from a third of the transitions of three separate ones, as in the "
            f"released code. What Fair-E loses against mutual reward can be due to this{self._larger_arm()}.\n"
            "* A team that captures less often has a smaller deficit: only episodes in which some pursuers capture "
            "and others do not contribute to it. A table has the deficit of such an episode.\n"
            "* Whether a team captures at a speed is read from one policy, and success changes quickly in training. "
            "The table of the last policy, and that of other thresholds, show how much depends on it.\n"
            "* Criteria are ours, because the paper gives none, and were chosen after results of an earlier run had "
            "been seen.\n"
            "* Roles are reassigned in tests only, and only for mutual reward.\n"
            "* The paper's figures are known from the descriptions in its text."
        )


# Tests of several arms, with Holm's correction over them --------------------------------------------------------------


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
    return _each(found, bound, shown(found, bound, "greater"), shown(found, bound, "less"))


def each_below(found: Numbers, bound: float) -> dict[str, Outcome]:
    """Return whether each number is below a bound."""
    return _each(found, bound, shown(found, bound, "less"), shown(found, bound, "greater"))


def _each(found: Numbers, bound: float, true: Sequence[str], false: Sequence[str]) -> dict[str, Outcome]:
    """Return the outcome of each number from those that are decided; the others say how many seeds would decide."""
    outcomes = {}
    for name, e in found.items():
        decided = True if name in true else False if name in false else None
        needed = None if decided is not None else units_needed(e, bound, tests=len(found))
        outcomes[name] = Outcome(decided, needed)
    return outcomes


def _both_by_name(one: Mapping[str, Outcome], other: Mapping[str, Outcome]) -> dict[str, Outcome]:
    return {name: both([one[name], other[name]]) for name in one}


# Texts ----------------------------------------------------------------------------------------------------------------


def _updates(training: TeamTraining) -> int:
    """Return the updates of a pursuer's networks in a training."""
    rules = make_rules(training.env_id, **training.parameters)
    agent_steps = rules.agents(rules.params) * training.lanes * training.train_freq  # between updates
    return (training.steps - training.learning_starts) // agent_steps * training.gradient_steps


def _lowest(p_values: Floats) -> str:
    if not p_values.size:
        return "none"
    return f"{show_p(holm(p_values).min()).removeprefix('= ')} ({p_values.size} tests)"


def _with_n(estimate: Estimate) -> str:
    """Return a mean with its interval and the number of seeds."""
    return f"{tables.show(estimate)} ({estimate.n})"


main = study.Study(
    scales=SCALES,
    cells=cells,
    numbers=numbers,
    report=lambda name, scale, arms, out: Report(name=name, scale=scale, arms=arms, out=out),
).run

__all__ = ["METHODS", "TEAMS", "Report", "main"]
