"""Cimpean et al. (2025), "Fairness Aware Reinforcement Learning" (FAReL), arXiv 2509.22232.

The paper trains Pareto Conditioned Networks on hiring and on fraud detection, for the reward and fairness notions
over a history of decisions. For each setting, it prints a representative subset of the policies found. Its hiring
numbers come from a history that pairs each decision with the next applicant. Its individual notions use similarities
in place of distances. Its policies are measured in single training episodes. Here the histories are aligned, the
notions are sound, and every policy is tested again.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.baselines.pcn.single import Algorithm
from fair_envs.experiments import tables
from fair_envs.experiments.jobs import Job
from fair_envs.experiments.tables import listed
from fair_envs.metrics import Estimate
from fair_envs.reproduction import figures, study
from fair_envs.reproduction.cimpean2025.jobs import (
    MOST_POLICIES,
    PUBLISHED_IF,
    SCRIPTED,
    ScriptedCell,
    SingleCell,
    TradeOffCell,
)
from fair_envs.reproduction.cimpean2025.published import (
    DISTANCES,
    MEASURES,
    TAKEN_FOR_BEST,
    WINDOWS,
    Setting,
    Span,
    World,
    printed,
    printed_value,
)
from fair_envs.reproduction.cimpean2025.published import tables as settings_of_tables
from fair_envs.reproduction.cimpean2025.representatives import Kind, mixed_colours, representative_subset
from fair_envs.reproduction.cimpean2025.results import (
    Found,
    Policies,
    correlated,
    over_seeds,
    rank_correlation,
    read_found,
)
from fair_envs.reproduction.claims import Claim, all_of, below, exceeds, verdict
from fair_envs.reproduction.figures import TradeOffs

GROUP_NOTIONS = ("SP", "EO", "OAE", "PP", "PE")
KINDS: Mapping[str, Kind] = {
    "R": "performance",
    **dict.fromkeys(GROUP_NOTIONS, "group"),
    **dict.fromkeys(("IF", "CSC"), "individual"),
}
SPANS: Mapping[Span, Callable[..., Any]] = {"best": np.max, "mean": np.mean, "worst": np.min}
QUALITATIVE = (  # of Okabe and Ito, safe for colour-blind readers
    *((0, 0, 0), (230, 159, 0), (86, 180, 233), (0, 158, 115)),
    *((240, 228, 66), (0, 114, 178), (213, 94, 0), (204, 121, 167)),
)
RADAR_RANGE: Mapping[World, float] = {"hiring": -300.0, "fraud": -510.0}
ALGORITHMS: tuple[Algorithm, ...] = ("dqn", "ppo")  # trained for the reward only
SINGLES = (1, 13)  # tables whose groups of rows are trained for one objective each
LEARNED = 50  # percent of the same span that a policy must reach for its loss to be meaningful; our choice too
LITTLE_COST = 10  # percent of the reward between a random and the best policy; our choice


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of the study.

    Attributes:
        seeds: Number of training seeds of each setting.
        steps: Environment steps of each training.
        steps_unforgetting: The same for histories without forgetting, which compare each person with the whole past.
        episodes: Number of test episodes of each policy.
        tables: Numbers of the tables whose settings are run.
        training: Settings of the networks that differ from their defaults; None: the paper's own.
        parameters: Other parameters of the environments.
    """

    seeds: int
    steps: int
    steps_unforgetting: int
    episodes: int
    tables: Sequence[int]
    training: Mapping[str, Any] | None
    parameters: Mapping[str, Any] = field(default_factory=dict)


LEARNING: Mapping[str, Any] = {  # better in short trainings than the defaults and the paper's settings
    "updates": 200,
    "learning_rate": 3e-3,
    "first_episodes": 20,
    "buffer_size": 100,
    "best": 20,
}
ALL_TABLES = tuple(range(1, 22))
SCALES: dict[str, Scale] = {
    "smoke": Scale(
        seeds=2,
        steps=2_000,
        steps_unforgetting=2_000,
        episodes=2,
        tables=(5, 17),
        training=LEARNING,
        parameters={"horizon": 100},
    ),
    "small": Scale(
        seeds=3, steps=150_000, steps_unforgetting=60_000, episodes=20, tables=ALL_TABLES, training=LEARNING
    ),
    "full": Scale(
        seeds=10, steps=500_000, steps_unforgetting=500_000, episodes=10, tables=ALL_TABLES, training=None
    ),  # the paper's protocol, except for 10 test episodes per policy
}


def cells(scale: Scale) -> dict[Setting, list[TradeOffCell]]:
    """Return the study's trainings: each setting with its seeds. Settings that tables share are run once."""
    chosen = [own for number in scale.tables for own in settings_of_tables()[number].values()]
    chosen += [replace(own, misaligned=True) for own in misread_settings(scale)]
    return {
        setting: [
            TradeOffCell(
                setting=setting,
                seed=seed,
                steps=scale.steps_unforgetting if setting.unforgetting else scale.steps,
                episodes=scale.episodes,
                training=None if scale.training is None else dict(scale.training),
                parameters=dict(scale.parameters),
            )
            for seed in range(scale.seeds)
        ]
        for setting in dict.fromkeys(chosen)
    }


def misread_settings(scale: Scale) -> list[Setting]:
    """Return the hiring settings that are also trained on the published code's history, to measure its effect."""
    return [settings_of_tables()[5]["HEOM"]] if 5 in scale.tables else []


def scripted(scale: Scale) -> dict[World, ScriptedCell]:
    """Return the cells in which simple policies are tested, for reference."""
    return {
        world: ScriptedCell(world=world, episodes=scale.episodes * scale.seeds, parameters=dict(scale.parameters))
        for world in worlds_of(scale)
    }


def singles(scale: Scale) -> dict[tuple[World, Algorithm], list[SingleCell]]:
    """Return the trainings for the reward only."""
    return {
        (world, algorithm): [
            SingleCell(
                world=world,
                algorithm=algorithm,
                seed=seed,
                steps=scale.steps,
                episodes=scale.episodes,
                parameters=dict(scale.parameters),
            )
            for seed in range(scale.seeds)
        ]
        for world in worlds_of(scale)
        for algorithm in ALGORITHMS
    }


def worlds_of(scale: Scale) -> list[World]:
    """Return the environments of the tables that are run."""
    return list(dict.fromkeys(own.world for n in scale.tables for own in settings_of_tables()[n].values()))


@dataclass(frozen=True, kw_only=True)
class Report(study.Report[Scale]):
    """The tables, figures and verdicts of a study.

    Attributes:
        arms: The settings with the results of their seeds.
        singles: The results of the trainings for the reward only, by environment and algorithm.
        scripted: The results of simple policies, in the order of `SCRIPTED`.
    """

    paper = "cimpean2025"
    scales = SCALES

    arms: Mapping[Setting, Sequence[Found]]
    singles: Mapping[tuple[World, Algorithm], Sequence[Found]]
    scripted: Mapping[World, Found]

    def groups(self, table: int) -> dict[str, Setting]:
        """Return the settings of a table's groups of rows."""
        return settings_of_tables()[table]

    def pooled(self, setting: Setting) -> Policies:
        """Return the policies of all seeds."""
        return Policies.joined([found.policies for found in self.arms[setting]])

    def write_numbers(self) -> None:
        """Write every policy's results."""
        (self.out / "policies.json").write_text(json.dumps(self.as_dict(), indent=1) + "\n")

    def as_dict(self) -> list[dict[str, Any]]:
        """Return every policy's mean episode sums, for JSON."""
        return [
            {
                "setting": setting.label,
                "seed": found.cell["seed"],
                "policy": k,
                "measures": dict(zip(names, row, strict=True)),
            }
            for setting, group in self.arms.items()
            for found in group
            for names in [found.policies.names]
            for k, row in enumerate(found.policies.sums.mean(axis=1).tolist())
        ]

    # ------------------------------------------------------------------------------------------- tables

    def table(self, number: int) -> str:
        """Return a table of the paper with our rows above: best / mean / worst of the representative policies."""
        header = ["policies", "", "n", *MEASURES, "IF, violations"]
        rows: list[list[tables.Cell]] = []
        for group, setting in self.groups(number).items():
            distances = DISTANCES if number in (4, 16) else (setting.distance,)
            for distance in distances:
                suffix = f", {distance}" if len(distances) > 1 else ""
                rows += [
                    [group + suffix, "ours", *self._ours(setting, distance if suffix else None)],
                    ["", "paper", *_paper(number, group, distance)],
                ]
        return tables.markdown(header, rows)

    def _ours(self, setting: Setting, distance: str | None) -> list[str]:
        policies = self.representatives(setting)
        columns = [_under(name, distance) for name in (*MEASURES[:6], PUBLISHED_IF, "CSC", "IF")]
        shown = ["/".join(f"{of(policies.total(name)):.1f}" for of in SPANS.values()) for name in columns]
        return [str(len(policies)), *shown]

    def representatives(self, setting: Setting) -> Policies:
        """Return a representative subset of the policies of all seeds."""
        policies = self.pooled(setting)
        shown = representative_subset(policies.table(MEASURES))
        return Policies(names=policies.names, sums=policies.sums[shown], steps=policies.steps[shown])

    def rates_table(self, world: World) -> str:
        """Return the means per step of simple policies and of each setting's most rewarded and fairest policy."""
        header = ["policy", *(f"{name} a step" for name in MEASURES), "steps"]
        reference = self.scripted[world].policies
        rows: list[list[tables.Cell]] = [[label, *_rates(reference, k)] for k, label in enumerate(SCRIPTED[world])]
        for setting in self.arms:
            if setting.world == world and not setting.misaligned:
                policies = self.pooled(setting)
                best, fairest = int(np.argmax(policies.total("R"))), int(np.argmax(policies.rate("SP")))
                rows += [[f"{setting.label}: highest reward", *_rates(policies, best)]]
                rows += [[f"{setting.label}: fairest by SP", *_rates(policies, fairest)]]
        return tables.markdown(header, rows)

    def singles_table(self) -> str:
        """Return the means per step of the policies that were trained for the reward only, over seeds."""
        header = ["environment", "algorithm", *(f"{name} a step" for name in MEASURES)]
        rows: list[list[tables.Cell]] = [
            [
                world,
                algorithm.upper(),
                *(over_seeds([found.policies.rate(name)[0] for found in group]) for name in MEASURES),
            ]
            for (world, algorithm), group in self.singles.items()
        ]
        return tables.markdown(header, rows)

    def misaligned_table(self) -> str:
        """Return the effect on the policies of training on the published code's history."""
        header = ["trained on", "R", *(f"{name} a step" for name in GROUP_NOTIONS), "SP a step as misread"]
        rows: list[list[tables.Cell]] = []
        for setting in self.arms:
            if setting.misaligned:
                for words, own in (("aligned history", replace(setting, misaligned=False)), ("published", setting)):
                    rows.append([f"{words}: {own.label}", self.mean_total(own, "R")])
                    rows[-1] += [self.mean_rate(own, name) for name in GROUP_NOTIONS]
                    misread = [found.misread for found in self.arms[own]]
                    rows[-1].append(over_seeds([float(m.rate("SP").mean()) for m in misread if m is not None]))
        return tables.markdown(header, rows)

    # ------------------------------------------------------------------------------------------- claims

    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs, for the settings that were run."""
        worlds = {setting.world for setting in self.arms}
        found: list[Claim] = []
        if "hiring" in worlds:
            found += [self._aligned_claim(), *self._misread_claim()]
        found += [self._conflict_claim(world) for world in sorted(worlds)]
        found += [claim for world in sorted(worlds) for claim in self._window_claim(world)]
        found += [claim for world in sorted(worlds) for claim in self._bias_claim(world)]
        found += [self._distance_claim(world) for world in sorted(worlds)]
        if len(worlds) == 2:
            found += [self._harder_claim()]
        return found + [self._cost_claim(world) for world in sorted(worlds)]

    def aligned(self, world: World) -> list[Setting]:
        """Return the settings of a world whose history pairs decisions with the right people."""
        return [setting for setting in self.arms if setting.world == world and not setting.misaligned]

    def within_settings(self, world: World, of: Callable[[Found], float]) -> Estimate:
        """Return the mean over a world's settings of a number of each training, with its interval over seeds.

        Settings differ in window, distance, population and bias, which change all gaps together. Correlations over the
        policies of several settings would therefore be misleadingly high. Undefined settings (too few policies, or all
        equal) are excluded.
        """
        return over_seeds(
            [
                over_seeds([of(self.arms[setting][seed]) for setting in self.aligned(world)]).value
                for seed in range(self.scale.seeds)
            ]
        )

    def correlation(self, world: World, one: str, other: str) -> Estimate:
        """Return the rank correlation of two measures per step over a setting's policies, averaged over settings."""
        return self.within_settings(world, lambda found: rank_correlation(found.policies, one, other))

    def misread_correlation(self, one: str, other: str) -> Estimate:
        """Return the same for hiring, with both measures from the published history."""
        return self.within_settings("hiring", lambda found: rank_correlation(_misread(found), one, other))

    def _aligned_claim(self) -> Claim:
        pairs = list(combinations(GROUP_NOTIONS, 2))
        found = {f"{one}-{other}": self.correlation("hiring", one, other) for one, other in pairs}
        misread = {f"{one}-{other}": self.misread_correlation(one, other) for one, other in pairs}
        return Claim(
            "In hiring, group notions go together: a policy that is fair by one is fair by the others.",
            verdict({"rank correlations above 0 for all pairs": all_of(exceeds(e, 0) for e in found.values())}),
            f"Rank correlation per step over the policies of a setting, mean over settings: {listed(found)}. As the "
            f"published history has the same policies: {listed(misread)}",
        )

    def _misread_claim(self) -> list[Claim]:
        def shown(name: str) -> Estimate:
            return self.within_settings(
                "hiring", lambda found: correlated(found.policies.rate(name), _misread(found).rate(name))
            )

        def again(name: str) -> Estimate:
            return self.within_settings(
                "hiring",
                lambda found: correlated(found.policies.half(0).rate(name), found.policies.half(1).rate(name)),
            )

        read_again = {name: shown(name) for name in GROUP_NOTIONS}
        men = list(SCRIPTED["hiring"]).index("hires qualified men, no women")
        reference = self.scripted["hiring"]
        evidence = (
            f"Hiring qualified men and no women has SP {reference.policies.rate('SP')[men]:.3f} a step, as the "
            f"published history sees it {_misread(reference).rate('SP')[men]:.3f}. Rank correlation, over the policies "
            f"of a setting, between a policy's gap and what that history makes of it: {listed(read_again)}; between "
            "the gaps in the first half of the test episodes and in the second, which says how much is to be had: "
            + listed({name: again(name) for name in GROUP_NOTIONS})
        )
        return [
            Claim(
                "What the published misalignment does: the reported gaps still tell which policies are fairer.",
                verdict({"rank correlations above 0.5": all_of(exceeds(e, 0.5) for e in read_again.values())}),
                evidence,
            )
        ]

    def _conflict_claim(self, world: World) -> Claim:
        names = {"IF": "IF", "IF by eq. 8": PUBLISHED_IF}
        found = {label: self.correlation(world, name, "CSC") for label, name in names.items()}
        evidence = (
            f"Rank correlation with CSC per step over the policies of a setting, mean over settings: {listed(found)}"
        )
        if world == "hiring":
            misread = {label: self.misread_correlation(name, "CSC") for label, name in names.items()}
            evidence += f". As the published history has the same policies: {listed(misread)}"
        return Claim(
            f"Individual fairness and consistency conflict ({world}).",
            verdict({name: below(e, 0) for name, e in found.items()}),
            evidence,
        )

    def _window_claim(self, world: World) -> list[Claim]:
        number = 10 if world == "hiring" else 19
        if number not in self.scale.tables:
            return []
        groups = self.groups(number)
        spread = {
            name: {size: self.mean_rate(groups[str(size)], name) for size in WINDOWS} for name in ("SP", "IF", "CSC")
        }
        ends = {
            name: over_seeds(
                [
                    float(one.policies.rate(name).mean() - other.policies.rate(name).mean())
                    for one, other in zip(self.arms[groups["1000"]], self.arms[groups["100"]], strict=True)
                ]
            )
            for name in spread
        }
        return [
            Claim(
                f"The size of the window matters: gaps are larger over short windows ({world}).",
                verdict({name: exceeds(e, 0) for name, e in ends.items()}),
                "Mean per step over policies at 1000 minus that at 100: "
                + listed(ends)
                + "; "
                + "; ".join(f"{name} at {listed({str(k): e for k, e in of.items()})}" for name, of in spread.items()),
            )
        ]

    def mean_total(self, setting: Setting, name: str) -> Estimate:
        """Return a measure's episode sum, averaged over a setting's policies, with its interval over seeds."""
        return over_seeds([float(found.policies.total(name).mean()) for found in self.arms[setting]])

    def mean_rate(self, setting: Setting, name: str) -> Estimate:
        """Return a measure per step, averaged over a setting's policies, with its interval over seeds."""
        return over_seeds([float(found.policies.rate(name).mean()) for found in self.arms[setting]])

    def _bias_claim(self, world: World) -> list[Claim]:
        numbers = (7, 8, 9) if world == "hiring" else (18,)
        if not set(numbers) <= set(self.scale.tables):
            return []
        drops = {}
        for number in numbers:
            groups = self.groups(number)
            for name, setting in groups.items():
                if name != "none":
                    key = f"{name}, {setting.population}" if world == "hiring" else name
                    drops[key] = over_seeds(
                        [
                            float(plain.policies.rate("SP").mean() - biased.policies.rate("SP").mean())
                            for plain, biased in zip(self.arms[groups["none"]], self.arms[setting], strict=True)
                        ]
                    )
        return [
            Claim(
                f"A bias in the reward makes the policies less fair by statistical parity ({world}).",
                verdict({"all biases": all_of(exceeds(e, 0) for e in drops.values())}),
                "Rise of the gap per step with the bias, mean over policies: " + listed(drops),
            )
        ]

    def _distance_claim(self, world: World) -> Claim:
        groups = self.groups(5 if world == "hiring" else 17)
        forms = {"by eq. 8": PUBLISHED_IF, "by violations": "IF"}
        worse = {
            form: all_of(
                exceeds(self._rise(groups["Bray-Curtis"], groups[other], name), 0) for other in ("HEOM", "HMOM")
            )
            for form, name in forms.items()
        }
        reported = (
            f"{form}: {listed({own: self.mean_rate(setting, name) for own, setting in groups.items()})}"
            for form, name in forms.items()
        )
        return Claim(
            f"The distance decides how fair policies look: Bray-Curtis worse than HEOM and HMOM ({world}).",
            verdict(worse),
            "Mean per step over policies, " + "; ".join(reported),
        )

    def _rise(self, setting: Setting, other: Setting, name: str) -> Estimate:
        """Return how much higher a measure per step is in the other setting, averaged over policies, paired by seed."""
        pairs = zip(self.arms[setting], self.arms[other], strict=True)
        return over_seeds([float(b.policies.rate(name).mean() - a.policies.rate(name).mean()) for a, b in pairs])

    def _harder_claim(self) -> Claim:
        reached: dict[World, Estimate] = {}
        for world in ("hiring", "fraud"):
            random, best = self.reward_span(world)
            values = [(self._most_rewarded(world, seed) - random) / (best - random) for seed in range(self.scale.seeds)]
            reached[world] = over_seeds(values)
        evidence = (
            "Share of the reward between a random and the best simple policy that the most rewarded policy reaches, "
            "chosen in the first half of the test episodes of all settings without bias and of the default "
            f"population, in the second half: {listed(reached)}"
        )
        harder = exceeds(_minus(reached["fraud"], reached["hiring"]), 0)
        return Claim("Fraud detection is harder than hiring.", verdict({"reward": harder}), evidence)

    def _most_rewarded(self, world: World, seed: int) -> float:
        """Return the reward in the second half of the test episodes of the policy that earned most in the first."""
        plain = [s for s in self.aligned(world) if s.bias == "none" and s.population == "belgian"]
        first, second = (
            np.concatenate([self.arms[setting][seed].policies.half(which).total("R") for setting in plain])
            for which in range(2)
        )
        return float(second[np.argmax(first)])

    def reward_span(self, world: World) -> tuple[float, float]:
        """Return the mean reward of the random and of the best simple policy."""
        rewards = self.scripted[world].policies.total("R")
        return float(rewards[list(SCRIPTED[world]).index("random")]), float(rewards.max())

    def _cost_claim(self, world: World) -> Claim:
        setting = self.groups(5 if world == "hiring" else 17)["HEOM"]
        random, best = self.reward_span(world)
        known = self.scripted[world].policies
        random_gap = float(known.rate("SP")[list(SCRIPTED[world]).index("random")])  # fair, except for random arrivals
        costs, gaps, reached = [], [], []
        for found in self.arms[setting]:
            first, second = (
                found.policies.half(which) for which in range(2)
            )  # chosen in the first, measured in the second
            reward, fair = first.total("R"), first.rate("SP") >= random_gap
            top = int(np.argmax(reward))
            earned = 100 * (second.total("R") - random) / (best - random)
            costs.append(earned[top] - earned[np.argmax(np.where(fair, reward, -np.inf))] if fair.any() else np.nan)
            gaps.append(float(-second.rate("SP")[top]))
            reached.append(float(earned[top]))
        every = not np.isnan(costs).any() and exceeds(over_seeds(reached), LEARNED)
        return Claim(
            f"Fair policies cost little reward ({world}).",
            verdict({f"within {LITTLE_COST} %": below(over_seeds(costs), LITTLE_COST) if every else None}),
            "Reward lost, in percent of what lies between a random and the best simple policy, by the most rewarded "
            f"policy whose gap of statistical parity is at most a random policy's, {-random_gap:.3f} a step: "
            f"{tables.show(over_seeds(costs), digits=1)} ({np.isfinite(costs).sum()} of {self.scale.seeds} seeds found "
            f"one); the most rewarded policy reaches {tables.show(over_seeds(reached), digits=1)} %, and its gap is "
            f"{tables.show(over_seeds(gaps))}. Both are chosen in the first half of the test episodes and measured in "
            f"the second; the claim is left undecided where not every seed found one, or less than {LEARNED} % is "
            "reached",
        )

    # ------------------------------------------------------------------------------------- figures and text

    def draw(self) -> None:
        """Save the figures."""
        for number in self.scale.tables:
            world = next(iter(self.groups(number).values())).world
            shown = {group: self._trade_offs(setting) for group, setting in self.groups(number).items()}
            panels = _by_kind(shown) if number in SINGLES else shown
            figures.trade_off_radar(panels, self.out / f"radar-{number}.png", axes=MEASURES, low=RADAR_RANGE[world])
        for number in {11, 12, 20, 21} & set(self.scale.tables):
            curves = {group: [f.sizes for f in self.arms[setting]] for group, setting in self.groups(number).items()}
            figures.history_sizes(curves, self.out / f"window-{number}.png")

    def _trade_offs(self, setting: Setting) -> TradeOffs:
        """Return the plotted data of a setting: its representative policies, and the others behind them."""
        table = self.pooled(setting).table(MEASURES)
        table[:, 0] -= TAKEN_FOR_BEST[setting.world]  # as the paper draws it
        chosen = np.isin(np.arange(len(table)), representative_subset(table))
        colours = mixed_colours(table[chosen], [KINDS[name] for name in MEASURES])
        return TradeOffs(values=table[chosen], colours=colours, others=table[~chosen])

    def text(self, claims: Sequence[Claim]) -> str:
        """Return the report as Markdown."""
        s = self.scale
        results = [found for group in self.arms.values() for found in group]
        seconds = sum(found.seconds for found in results)
        worlds = list(dict.fromkeys(setting.world for setting in self.arms))
        parts = [
            f"Made by `{self.command}`: {len(results)} trainings of {len(self.arms)} settings, {s.seeds} seeds (0 to "
            f"{s.seeds - 1}) each, {s.steps:,} environment steps a training, {s.steps_unforgetting:,} where decisions "
            f"do not fade and there is no window ({seconds / len(results):.0f} s on one core). Up to {MOST_POLICIES} "
            "policies of a training, which represent its range of results, are tested again in "
            f"{s.episodes} episodes each, on their own history that continues across episodes. Brackets "
            "hold 95 % intervals over training seeds (Student's t). R is the reward as it is, without the paper's "
            "constants: 46.53 and 906 are the returns of single episodes, not upper bounds.",
            "## The paper's claims",
            *[f"**{c.text}** {c.verdict}\n\n{c.evidence}." for c in claims],
            "## Per step",
            *[part for world in worlds for part in (f"### {world.capitalize()}", self.rates_table(world))],
            "## Trained for the reward alone",
            f"DQN and PPO, {s.steps:,} environment steps; what they reach is no upper bound either.",
            self.singles_table(),
            "## Trained on the published history",
            "Means over the policies found. The published history pairs a decision with the next applicant.",
            self.misaligned_table(),
            "## The paper's tables beside ours",
            "Best / mean / worst over the representative policies of all seeds, sums over an episode. The column IF is "
            "by the paper's equation 8 on the published similarity, so that it can be compared; the last column counts "
            "violations, 0 is fair.",
            *[part for n in s.tables for part in (f"### Table {n}", self.table(n), f"![radar {n}](radar-{n}.png)")],
            "## Window sizes",
            *[f"![{path.stem}]({path.name})" for path in sorted(self.out.glob("window-*.png"))],
        ]
        return "\n\n".join(parts) + "\n"


def _by_kind(shown: Mapping[str, TradeOffs]) -> dict[str, TradeOffs]:
    """Return single-objective settings in one panel per kind, with one colour per objective."""
    palette = {name: np.array(QUALITATIVE[k]) / 255 for k, name in enumerate(shown)}
    panels: dict[str, TradeOffs] = {}
    for kind in dict.fromkeys(KINDS[name] for name in shown):
        own = {name: policies for name, policies in shown.items() if KINDS[name] == kind}
        panels[kind] = TradeOffs(
            values=np.concatenate([policies.values for policies in own.values()]),
            colours=np.concatenate(
                [np.tile(palette[name], (len(policies.values), 1)) for name, policies in own.items()]
            ),
            others=np.concatenate([policies.others for policies in own.values()]),
            names=[name for name, policies in own.items() for _ in policies.values],
        )
    return panels


def _paper(number: int, group: str, distance: Any) -> list[str]:
    shown = []
    for name in MEASURES:
        values = [printed_value(number, group, name, span, distance=distance) for span in SPANS]
        shown.append("/".join("-" if value is None else f"{value:.1f}" for value in values))
    return [str(printed()[number][group]["n"]), *shown, ""]


def _under(name: str, distance: str | None) -> str:
    """Return the measure of that name under a distance that is not the setting's own."""
    return name if distance is None or name not in ("IF", PUBLISHED_IF, "CSC") else f"{name}, {distance}"


def _rates(policies: Policies, k: int) -> list[str]:
    return [f"{policies.rate(name)[k]:.3f}" for name in MEASURES] + [f"{policies.steps[k].mean():.0f}"]


def _misread(found: Found) -> Policies:
    """Return the policies of a hiring cell, measured with the published history."""
    assert found.misread is not None
    return found.misread


def _minus(estimate: Estimate, other: Estimate) -> Estimate:
    """Return the second estimate minus the first; the widths of the intervals add up."""
    value, low, high = other.value - estimate.value, other.low - estimate.high, other.high - estimate.low
    return replace(estimate, value=value, low=low, high=high)


def everything(scale: Scale) -> dict[Hashable, Sequence[Job]]:
    """Return all cells: those of the settings, of the trainings for the reward only, and of simple policies."""
    alone = {world: [cell] for world, cell in scripted(scale).items()}
    parts: list[Mapping[Any, Sequence[Job]]] = [cells(scale), singles(scale), alone]
    return {key: group for part in parts for key, group in part.items()}


def report_of(name: str, scale: Scale, results: Mapping[Hashable, Sequence[Found]], out: Path) -> Report:
    """Return the report of all cells."""
    return Report(
        name=name,
        scale=scale,
        arms={setting: results[setting] for setting in cells(scale)},
        singles={label: results[label] for label in singles(scale)},
        scripted={world: results[world][0] for world in scripted(scale)},
        out=out,
    )


main = study.Study(scales=SCALES, cells=everything, read=read_found, report=report_of).run
