"""Cimpean et al. (2025), "Fairness Aware Reinforcement Learning" (FAReL), arXiv 2509.22232.

The paper trains Pareto Conditioned Networks on hiring and on fraud detection for the reward and fairness notions over a
history of decisions, and prints, for each setting, a representative subset of the policies found. Its hiring numbers
come from a history that pairs each decision with the next applicant, its individual notions from similarities that
are taken for distances, its policies from single training episodes. Here the histories are aligned, the notions sound,
and every policy is tested anew.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fair_envs.baselines.single import Algorithm
from fair_envs.metrics import Estimate
from fair_envs.reproduction import figures, tables
from fair_envs.reproduction.claims import Claim, all_of, below, exceeds, verdict
from fair_envs.reproduction.decision_cells import (
    DESIGNED,
    MOST_POLICIES,
    PUBLISHED_IF,
    DesignedCell,
    SingleCell,
    TradeOffCell,
)
from fair_envs.reproduction.decisions import (
    Found,
    Policies,
    correlated,
    over_seeds,
    rank_correlation,
    read_found,
)
from fair_envs.reproduction.farel import (
    DISTANCES,
    MEASURES,
    WINDOWS,
    Setting,
    Span,
    World,
    printed,
    printed_value,
)
from fair_envs.reproduction.farel import tables as settings_of_tables
from fair_envs.reproduction.representatives import Kind, mixed_colours, representative_subset
from fair_envs.reproduction.runner import open_study, run_cells

ScaleName = Literal["smoke", "small", "full"]
GROUP_NOTIONS = ("SP", "EO", "OAE", "PP", "PE")
KINDS: Mapping[str, Kind] = {
    "R": "performance",
    **dict.fromkeys(GROUP_NOTIONS, "group"),
    **dict.fromkeys(("IF", "CSC"), "individual"),
}
SPANS: Mapping[Span, Callable[..., Any]] = {"best": np.max, "mean": np.mean, "worst": np.min}
RADAR_RANGE: Mapping[World, float] = {"hiring": -300.0, "fraud": -510.0}
ALGORITHMS: tuple[Algorithm, ...] = ("dqn", "ppo")  # for the reward alone
LITTLE_COST = 10  # percent of the reward between a random and the best policy, and ours


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much of the study is run.

    Attributes:
        seeds: Training seeds of each setting.
        steps: Environment steps of each training.
        steps_unforgetting: The same where decisions do not fade and the whole past is compared with every newcomer.
        episodes: Test episodes of each policy.
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


LEARNING: Mapping[str, Any] = {  # reaches more in short trainings than the defaults, and than the paper's settings
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
        seeds=3, steps=150_000, steps_unforgetting=60_000, episodes=10, tables=ALL_TABLES, training=LEARNING
    ),
    "full": Scale(
        seeds=10, steps=500_000, steps_unforgetting=500_000, episodes=10, tables=ALL_TABLES, training=None
    ),  # the paper's protocol
}


def main(
    *,
    scale: ScaleName,
    out: Path,
    jobs: int = 2,
    seeds: int | None = None,
    resume: bool = False,
    merge_from: Sequence[Path] = (),
    progress: bool = True,
) -> Path:
    """Run the study's cells that are missing and write its tables, figures and report; return the report's path.

    Args:
        scale: ``"smoke"`` (a minute), ``"small"`` (under two hours on two cores) or ``"full"`` (the paper's protocol).
        out: A new folder, where the cells are kept and the report is written.
        jobs: How many worker processes.
        seeds: Training seeds of each setting, if not the scale's.
        resume: Go on in a folder that exists: its cells are not run again.
        merge_from: Folders of the same study, run on other machines, whose cells are taken over.
        progress: Whether to show a bar with the time left.

    Raises:
        ValueError: An unknown scale or one that the folder was not begun with, no seed, or a folder to take cells from
            that has none.
        FileExistsError: The folder exists, without ``resume``.
    """
    folder = open_study(out, scale=scale, scales=SCALES, seeds=seeds, resume=resume, merge_from=merge_from)
    chosen = SCALES[scale] if seeds is None else replace(SCALES[scale], seeds=seeds)
    trainings, alone, references = cells(chosen), singles(chosen), designed(chosen)
    every = [cell for groups in (trainings, alone) for group in groups.values() for cell in group]
    run_cells([*every, *references.values()], folder, jobs=jobs, progress=progress)
    return Report(
        name=scale,
        scale=chosen,
        arms={setting: [read_found(folder / cell.key) for cell in group] for setting, group in trainings.items()},
        singles={label: [read_found(folder / cell.key) for cell in group] for label, group in alone.items()},
        designed={world: read_found(folder / cell.key) for world, cell in references.items()},
        out=out,
    ).write()


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
    """Return the hiring settings that are also trained on the published code's history, to see what it did."""
    return [settings_of_tables()[5]["HEOM"]] if 5 in scale.tables else []


def designed(scale: Scale) -> dict[World, DesignedCell]:
    """Return the cells in which simple policies are tested, for reference."""
    return {
        world: DesignedCell(world=world, episodes=scale.episodes * scale.seeds, parameters=dict(scale.parameters))
        for world in worlds_of(scale)
    }


def singles(scale: Scale) -> dict[tuple[World, Algorithm], list[SingleCell]]:
    """Return the trainings for the reward alone."""
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
class Report:
    """The tables, figures and verdicts of a study.

    Attributes:
        name: Of the scale.
        scale: What was run.
        arms: The settings with the results of their seeds.
        singles: What was trained for the reward alone, by environment and algorithm.
        designed: What simple policies gave, in the order of `DESIGNED`.
        out: Where everything is written.
    """

    name: str
    scale: Scale
    arms: Mapping[Setting, Sequence[Found]]
    singles: Mapping[tuple[World, Algorithm], Sequence[Found]]
    designed: Mapping[World, Found]
    out: Path

    @property
    def command(self) -> str:
        """The command that makes the report."""
        seeds = "" if self.scale.seeds == SCALES[self.name].seeds else f" --seeds {self.scale.seeds}"
        return f"fair-envs reproduce cimpean2025 --scale {self.name}{seeds}"

    def groups(self, table: int) -> dict[str, Setting]:
        """Return the settings of a table's groups of rows."""
        return settings_of_tables()[table]

    def pooled(self, setting: Setting) -> Policies:
        """Return the policies of all seeds."""
        return Policies.joined([found.policies for found in self.arms[setting]])

    def write(self) -> Path:
        """Write everything and return the report's path."""
        self.out.mkdir(parents=True, exist_ok=True)
        claims = self.claims()
        (self.out / "claims.json").write_text(json.dumps([vars(claim) for claim in claims], indent=2) + "\n")
        (self.out / "policies.json").write_text(json.dumps(self.as_dict(), indent=1) + "\n")
        self.draw()
        path = self.out / "report.md"
        path.write_text(self.text(claims))
        return path

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
        """Return a table of the paper with ours above its rows: best / mean / worst of the representative policies."""
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
        """Return the policies of all seeds that show their range."""
        policies = self.pooled(setting)
        shown = representative_subset(policies.table(MEASURES))
        return Policies(names=policies.names, sums=policies.sums[shown], steps=policies.steps[shown])

    def rates_table(self, world: World) -> str:
        """Return the means per step of simple policies and of each setting's most rewarded and fairest policy."""
        header = ["policy", *(f"{name} a step" for name in MEASURES), "steps"]
        reference = self.designed[world].policies
        rows: list[list[tables.Cell]] = [[label, *_rates(reference, k)] for k, label in enumerate(DESIGNED[world])]
        for setting in self.arms:
            if setting.world == world and not setting.misaligned:
                policies = self.pooled(setting)
                best, fairest = int(np.argmax(policies.total("R"))), int(np.argmax(policies.rate("SP")))
                rows += [[f"{setting.label}: highest reward", *_rates(policies, best)]]
                rows += [[f"{setting.label}: fairest by SP", *_rates(policies, fairest)]]
        return tables.markdown(header, rows)

    def singles_table(self) -> str:
        """Return the means per step of the policies that were trained for the reward alone, over seeds."""
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
        """Return what training on the published code's history makes of the policies."""
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
        """Return the paper's claims with what our runs say, those whose settings were run."""
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

    def seeds_of(self, world: World, *, misread: bool = False) -> list[Policies]:
        """Return, for each training seed, the policies of all aligned settings of a world."""
        chosen = [group for setting, group in self.arms.items() if setting.world == world and not setting.misaligned]
        names = (*MEASURES, PUBLISHED_IF)
        by_seed = []
        for seed in range(self.scale.seeds):
            parts = [group[seed].misread if misread else group[seed].policies for group in chosen]
            by_seed.append(Policies.joined([_only(part, names) for part in parts if part is not None]))
        return by_seed

    def correlation(self, world: World, one: str, other: str, *, misread: bool = False) -> Estimate:
        """Return the rank correlation of two measures per step over the policies found, with interval over seeds."""
        return over_seeds([rank_correlation(p, one, other) for p in self.seeds_of(world, misread=misread)])

    def _aligned_claim(self) -> Claim:
        found = {
            f"{one}-{other}": self.correlation("hiring", one, other) for one, other in combinations(GROUP_NOTIONS, 2)
        }
        return Claim(
            "In hiring, group notions go together: a policy that is fair by one is fair by the others.",
            verdict({"rank correlations above 0 for all pairs": all_of(exceeds(e, 0) for e in found.values())}),
            "Rank correlation over policies, per step: " + _listed(found),
        )

    def _misread_claim(self) -> list[Claim]:
        pairs = list(zip(self.seeds_of("hiring"), self.seeds_of("hiring", misread=True), strict=True))
        shown = {
            name: over_seeds([correlated(right.rate(name), wrong.rate(name)) for right, wrong in pairs])
            for name in GROUP_NOTIONS
        }
        again = {
            name: over_seeds([correlated(own.half(0).rate(name), own.half(1).rate(name)) for own, _ in pairs])
            for name in GROUP_NOTIONS
        }
        men = list(DESIGNED["hiring"]).index("hires qualified men, no women")
        aligned, wrong = self.designed["hiring"].policies, self.designed["hiring"].misread
        assert wrong is not None
        evidence = (
            f"Hiring qualified men and no women has SP {aligned.rate('SP')[men]:.3f} a step, as the published history "
            f"sees it {wrong.rate('SP')[men]:.3f}. Rank correlation between a policy's gap and what that history makes "
            f"of it: {_listed(shown)}; between the gaps in one half of the test episodes and in the other, which says "
            f"how much is to be had: {_listed(again)}"
        )
        return [
            Claim(
                "What the published misalignment does: the reported gaps still tell which policies are fairer.",
                verdict({"rank correlations above 0.5": all_of(exceeds(e, 0.5) for e in shown.values())}),
                evidence,
            )
        ]

    def _conflict_claim(self, world: World) -> Claim:
        found = {
            "IF": self.correlation(world, "IF", "CSC"),
            "IF by eq. 8": self.correlation(world, PUBLISHED_IF, "CSC"),
        }
        return Claim(
            f"Individual fairness and consistency conflict ({world}).",
            verdict({name: below(e, 0) for name, e in found.items()}),
            "Rank correlation with CSC over policies, per step: " + _listed(found),
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
                "Mean per step over policies at 1000 less that at 100: "
                + _listed(ends)
                + "; "
                + "; ".join(f"{name} at {_listed({str(k): e for k, e in of.items()})}" for name, of in spread.items()),
            )
        ]

    def mean_total(self, setting: Setting, name: str) -> Estimate:
        """Return a measure's episode sum, the mean over a setting's policies, with its interval over seeds."""
        return over_seeds([float(found.policies.total(name).mean()) for found in self.arms[setting]])

    def mean_rate(self, setting: Setting, name: str) -> Estimate:
        """Return a measure per step, the mean over a setting's policies, with its interval over seeds."""
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
                "Rise of the gap per step with the bias, mean over policies: " + _listed(drops),
            )
        ]

    def _distance_claim(self, world: World) -> Claim:
        groups = self.groups(5 if world == "hiring" else 17)
        values = {name: self.mean_rate(setting, PUBLISHED_IF) for name, setting in groups.items()}
        sound = {name: self.mean_rate(setting, "IF") for name, setting in groups.items()}
        apart = [exceeds(_minus(values["Bray-Curtis"], values[name]), 0) for name in ("HEOM", "HMOM")]
        return Claim(
            f"The distance decides how fair policies look: Bray-Curtis far worse than HEOM and HMOM ({world}).",
            verdict({"by eq. 8": all_of(apart)}),
            f"Mean per step over policies, by eq. 8: {_listed(values)}; by violations: {_listed(sound)}",
        )

    def _harder_claim(self) -> Claim:
        reached: dict[World, Estimate] = {}
        for world in ("hiring", "fraud"):
            random, best = self.reward_span(world)
            values = [float((max(p.total("R")) - random) / (best - random)) for p in self.seeds_of(world)]
            reached[world] = over_seeds(values)
        evidence = f"Share reached of the reward between a random and the best simple policy: {_listed(reached)}"
        harder = exceeds(_minus(reached["fraud"], reached["hiring"]), 0)
        return Claim("Fraud detection is harder than hiring.", verdict({"reward": harder}), evidence)

    def reward_span(self, world: World) -> tuple[float, float]:
        """Return the mean reward of the random and of the best simple policy."""
        rewards = self.designed[world].policies.total("R")
        return float(rewards[list(DESIGNED[world]).index("random")]), float(rewards.max())

    def _cost_claim(self, world: World) -> Claim:
        setting = self.groups(5 if world == "hiring" else 17)["HEOM"]
        random, best = self.reward_span(world)
        known = self.designed[world].policies
        chance = float(known.rate("SP")[list(DESIGNED[world]).index("random")])  # fair, but for who happens to come
        costs, gaps, reached, found_one = [], [], [], 0
        for found in self.arms[setting]:
            reward, parity = found.policies.total("R"), found.policies.rate("SP")
            fair = parity >= chance
            found_one += int(fair.any())
            costs.append(float(100 * (reward.max() - reward[fair].max()) / (best - random)) if fair.any() else np.nan)
            gaps.append(float(-parity[np.argmax(reward)]))
            reached.append(float(100 * (reward.max() - random) / (best - random)))
        return Claim(
            f"Fair policies cost little reward ({world}).",
            verdict({f"within {LITTLE_COST} %": below(over_seeds(costs), LITTLE_COST)}),
            "Reward lost, in percent of what lies between a random and the best simple policy, by the most rewarded "
            f"policy whose gap of statistical parity is at most a random policy's, {-chance:.3f} a step: "
            f"{tables.show(over_seeds(costs), digits=1)} ({found_one} of {self.scale.seeds} seeds found one); the most "
            f"rewarded policy reaches {tables.show(over_seeds(reached), digits=1)} % of it, and its gap is "
            f"{tables.show(over_seeds(gaps))}",
        )

    # ------------------------------------------------------------------------------------- figures and text

    def draw(self) -> None:
        """Save the figures."""
        for number in self.scale.tables:
            panels = {group: self.representatives(setting) for group, setting in self.groups(number).items()}
            world = next(iter(self.groups(number).values())).world
            values = {group: policies.table(MEASURES) for group, policies in panels.items()}
            for table in values.values():
                table[:, 0] -= {"hiring": 46.53243, "fraud": 906.0}[world]  # as the paper draws it
            figures.trade_off_radar(
                values,
                {group: mixed_colours(table, [KINDS[name] for name in MEASURES]) for group, table in values.items()},
                self.out / f"radar-{number}.png",
                axes=MEASURES,
                low=RADAR_RANGE[world],
            )
        for number in {11, 12, 20, 21} & set(self.scale.tables):
            curves = {group: [f.sizes for f in self.arms[setting]] for group, setting in self.groups(number).items()}
            figures.history_sizes(curves, self.out / f"window-{number}.png")

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
            "policies of a training, which show the range of what it reached, are tested anew in "
            f"{s.episodes} episodes each, on a history of their own. Brackets hold 95 % intervals over training seeds "
            "(Student's t). R is the reward as it is, without the paper's constants: 46.53 and 906 are the returns of "
            "single episodes, not upper bounds.",
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


def _only(policies: Policies, names: Sequence[str]) -> Policies:
    places = [policies.names.index(name) for name in names]
    return Policies(names=tuple(names), sums=policies.sums[:, :, places], steps=policies.steps)


def _minus(estimate: Estimate, other: Estimate) -> Estimate:
    """Return the other estimate minus this one; the intervals are added up."""
    value, low, high = other.value - estimate.value, other.low - estimate.high, other.high - estimate.low
    return replace(estimate, value=value, low=low, high=high)


def _listed(found: Mapping[Any, Estimate]) -> str:
    return ", ".join(f"{label} {tables.show(e)}" for label, e in found.items())
