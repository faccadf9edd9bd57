"""The common parts of the studies of papers: running them, and the structure of their pages."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

from fair_envs.assessment import plots
from fair_envs.experiments import tables
from fair_envs.experiments.executors import FailedCellsError, check_engine
from fair_envs.experiments.jobs import Job
from fair_envs.experiments.seeds import (
    BEGUN,
    TABLE,
    Arm,
    Filled,
    SeedRow,
    begin,
    fill,
    kept,
    made_by,
    places_of,
    stored_rows,
    write_rows,
)
from fair_envs.reproduction.claims import Claim
from fair_envs.support.files import keep_json, read_json, replace_file, writing

PRINTED, REPAIRED = "as printed", "repaired"
"""The two methods that get a verdict: that of the paper, and our repaired version."""


RULES = (
    "*Holds* and *does not hold* are shown with two-sided intervals at 95 % (one-sided tests at 2.5 %). A claim "
    "about several points holds if each of them is shown to support it, and it is refuted if one is shown to "
    "contradict it, with Holm's correction over the points; a claim about some point, the other way round. So a "
    "single interval beyond the bound may not decide. There is no correction over claims. *Not refuted where it was "
    "run*: the claim is about all points, and some were not run. *Does not hold where it was run*: the same of a claim "
    "about some point. *Undecided* names about how many seeds would decide "
    "with a probability of 0.8, if the observed effect were exact, which is optimistic, or another reason."
)
"""How verdicts are made."""


class Scaled(Protocol):
    """The scale of a study: a dataclass with, among others, the number of training seeds of each cell."""

    @property
    def seeds(self) -> int:
        """The number of training seeds of each cell."""


ScaleT = TypeVar("ScaleT", bound=Scaled)
KeyT = TypeVar("KeyT", bound=Hashable)


class Size(NamedTuple):
    """One line of the comparison of our scale with the paper's.

    Attributes:
        name: What is counted.
        ours: Our number.
        paper: The paper's; None: the paper does not say.
    """

    name: str
    ours: float
    paper: float | None


class Picture(NamedTuple):
    """A figure of the page: the name of its file, and what it shows."""

    file: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Report(ABC, Generic[ScaleT]):
    """The tables, figures and verdicts of a study.

    Attributes:
        paper: Name of the study on the command line.
        scales: The available scales, by name.
        name: Name of the scale.
        scale: The scale that was run.
        out: Folder of all output.
        arms: The arms with their numbers, by their keys.
        failed: The errors of the cells that failed, by arm and seed.
    """

    paper: ClassVar[str]
    scales: ClassVar[Mapping[str, Scaled]]
    methods: ClassVar[Mapping[str, str]] = {PRINTED: "the method as printed", REPAIRED: "our repair"}
    """The methods that get a verdict, with the titles of their columns."""
    timed: ClassVar[str] = ""
    """Which part of the cells' time is counted, such as " of training"; "": all of it."""
    left_out: ClassVar[tuple[str, ...]] = ()
    """Beginnings of the names of numbers that the table of means leaves out, because their mean has no meaning."""

    name: str
    scale: ScaleT
    out: Path
    arms: Mapping[Any, Arm]
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command that creates the report."""
        seeds = self.scale.seeds
        chosen = "" if seeds == self.scales[self.name].seeds else f" --seeds {seeds}"
        return f"fair-envs reproduce {self.paper} --scale {self.name}{chosen}"

    def write(self) -> Path:
        """Write everything and return the report's path; nothing but figures is written before all of it is made."""
        self.out.mkdir(parents=True, exist_ok=True)
        claims = self.claims()
        text = "\n\n".join(self.parts(claims)) + "\n"
        estimates = {
            arm.label: {name: arm.estimate(name) for name in arm.names if not name.startswith(self.left_out)}
            for arm in self.arms.values()
        }
        tables.write_csv(self.out / "table.csv", estimates)
        plain = json.dumps([claim.as_dict() for claim in claims], indent=2) + "\n"
        replace_file(self.out / "claims.json", plain.encode())
        path = self.out / "report.md"
        replace_file(path, text.encode())
        return path

    def parts(self, every: Sequence[Claim]) -> Iterator[str]:
        """Yield the parts of the page, which have the same order in every study."""
        claims = [claim for claim in every if claim.was_run]
        yield "## What the paper claims"
        yield self.question()
        yield "## What we ran"
        yield self.runs()
        yield tables.markdown(["", "ours", "the paper's", "factor"], [_size(line) for line in self.sizes()])
        if claims:
            yield "## Verdicts"
            yield f"{RULES} The verdicts are from {self.seeds}."
            yield self._verdicts(claims)
        if not_run := [claim.text.removesuffix(".") for claim in every if not claim.was_run]:
            yield f"Not run, so without a verdict: {'; '.join(not_run)}."
        for k, claim in enumerate(claims, start=1):
            yield from self._evidence(k, claim)
        for title, text in self.sections().items():
            yield f"## {title}"
            yield text
        pictures = self.draw()
        if pictures:
            yield "## Pictures"
        for picture in pictures:
            yield f"![{picture.caption}]({picture.file})"
            yield picture.caption
        yield "## Limitations"
        yield self.limitations()
        if claims:
            yield "## What would change our mind"
            yield (
                "The list has, for each claim, the result that would refute it, if the claim's own test shows it. "
                "Where a verdict is *does not hold*, this has been shown. Such a verdict would change if more "
                "seeds, points that were not run, or trainings as long as the paper's no longer showed it. "
                "Where a verdict is *undecided*, the table of verdicts has the number of seeds that would decide, or "
                "another reason; it has no number if none is known or it is above a thousand."
            )
            yield "\n".join(f"{k}. {claim.refuted}" for k, claim in enumerate(claims, start=1))
        yield "## The command"
        yield self._made()

    def _evidence(self, k: int, claim: Claim) -> Iterator[str]:
        """Yield the numbers behind claim k, with a figure of the tested ones."""
        title, measured = f"**{k}. {claim.text}**", claim.measured
        if measured is None:
            yield f"{title} {claim.evidence}"
            return
        shown = any(rows for panels in measured.numbers.values() for rows in panels.values())
        label = f"{measured.label[0].upper()}{measured.label[1:]}, tested against {measured.against}." if shown else ""
        yield " ".join(filter(None, (title, claim.evidence, label)))
        if shown:
            yield measured.table()
        if drawn := measured.panels():
            file = f"claim-{k}.png"
            plots.dot_plot(
                drawn, self.out / file, label=measured.label, lines=measured.bounds, one_unit=measured.one_unit
            )
            yield f"![Claim {k}: {measured.label}; the dotted line is the bound.]({file})"

    def _verdicts(self, claims: Sequence[Claim]) -> str:
        return tables.markdown(
            ["", "claim", *self.methods.values(), "earlier verdict", "why it changed"],
            [
                [str(k), c.text, *map(c.verdict, self.methods), c.earlier or "none", c.reason]
                for k, c in enumerate(claims, start=1)
            ],
        )

    @property
    def most_seeds(self) -> int:
        """The largest number of seeds of an arm."""
        return max(arm.seeds for arm in self.arms.values())

    @property
    def seeds(self) -> str:
        """The number of seeds of each arm in words."""
        return seeds_of(self.arms.values())

    def _made(self) -> str:
        """Return how the numbers were made."""
        jobs = {row.job: row for arm in self.arms.values() for row in arm.rows}
        seconds = sum(row.seconds for row in jobs.values())
        missing = f"\n\nMissing cells:\n\n{_missing(self.failed)}" if self.failed else ""
        return (
            f"`{self.command}`\n\n{len(jobs)} cells, {self.seeds}, {seconds / 3600:.1f} CPU hours{self.timed}. The "
            f"numbers of every seed are in `{TABLE}`, made by {made_by(jobs.values())}. With the options `--merge` and "
            f"`--report-only`, the command writes the report again from this table, without training.{missing}"
        )

    @abstractmethod
    def question(self) -> str:
        """Return what the paper claims."""

    @abstractmethod
    def runs(self) -> str:
        """Return what was run, and what the numbers mean."""

    @abstractmethod
    def sizes(self) -> list[Size]:
        """Return our scale beside the paper's."""

    @abstractmethod
    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs."""

    @abstractmethod
    def sections(self) -> dict[str, str]:
        """Return the tables by their titles, among them our numbers beside the paper's."""

    @abstractmethod
    def limitations(self) -> str:
        """Return what the runs cannot show, and how they differ from the paper's."""

    @abstractmethod
    def draw(self) -> list[Picture]:
        """Save the figures."""


def seeds_of(arms: Iterable[Arm]) -> str:
    """Return the number of seeds of each arm in words; with missing rows, it is not that of the scale."""
    counts = [arm.seeds for arm in arms]
    fewest, most = min(counts), max(counts)
    if fewest < most:
        return f"{fewest} to {most} seeds an arm"
    return f"{most} seed{'s' if most != 1 else ''} an arm"


FAILURES = "failures.json"  # why cells have no row, beside the table


def _failures(paths: Iterable[Path]) -> dict[str, str]:
    """Return why cells failed in earlier runs, by arm and seed, beside tables or in the folders of tables."""
    found: dict[str, str] = {}
    for file in ((path if path.is_dir() else path.parent) / FAILURES for path in paths):
        found |= read_json(file, dict) if file.is_file() else {}
    return found


def _size(line: Size) -> list[str]:
    ours = f"{line.ours:,.10g}"  # the default precision turns a million into 1e+06
    if line.paper is None:
        return [line.name, ours, "not given", ""]
    return [line.name, ours, f"{line.paper:,.10g}", f"{line.ours / line.paper:.3g}"]


def _missing(failed: Mapping[str, str]) -> str:
    """Return a list of the missing seeds of each arm, with the reason."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for name, why in failed.items():
        arm, _, seed = name.rpartition(" ")
        seeds.setdefault((arm, why), []).append(seed)
    return "\n".join(f"* {arm}, seed {', '.join(which)}: {why}" for (arm, why), which in seeds.items())


@dataclass(frozen=True, kw_only=True)
class Study(Generic[ScaleT, KeyT]):
    """A paper's study.

    Attributes:
        scales: The available scales, by name.
        cells: Function that returns the cells of a scale, in groups: one cell for each seed of an arm.
        numbers: Function that returns the numbers of a cell from the group's key and the cell's folder.
        report: Function that creates the report from the scale's name, the scale, the arms and its folder.
    """

    scales: Mapping[str, ScaleT]
    cells: Callable[[ScaleT], Mapping[KeyT, Sequence[Job]]]
    numbers: Callable[[KeyT, Path], Mapping[str, float]]
    report: Callable[[str, ScaleT, Mapping[KeyT, Arm], Path], Report[ScaleT]]

    def run(
        self,
        *,
        scale: str,
        out: Path,
        jobs: int = 2,
        engine: str = "processes",
        seeds: int | None = None,
        resume: bool = False,
        merge_from: Sequence[Path] = (),
        report_only: bool = False,
        progress: bool = True,
    ) -> Path:
        """Run the missing cells and write the tables, figures and report; return the report's path.

        The first seeds of all arms run before the second ones. The numbers of a cell are added to the table
        ``seeds.csv.gz`` when it is done. A cell in the table is not run again, even if the code has changed since; the
        table says which code made it.

        Args:
            scale: ``"smoke"`` (minutes), ``"small"`` (hours on two cores), ``"full"`` (the paper's protocol), or
                another of the study's scales.
            out: A new folder for the cells, the table and the report.
            jobs: Number of cells that run in parallel.
            engine: The engine that runs them, see `fair_envs.experiments.executors`.
            seeds: Number of training seeds of each cell; None: the scale's.
            resume: Whether to continue in an existing folder.
            merge_from: Tables of the same study, or folders that contain one, whose cells are reused.
            report_only: Whether to run nothing, and write the report from the rows that exist.
            progress: Whether to show a bar with the remaining time.

        Raises:
            ValueError: The scale or engine is unknown, the folder was started with another scale, ``seeds`` is less
                than 1, an arm has no rows for ``report_only``, or a path in ``merge_from`` has no table, or one of
                another study.
            ImportError: The engine is not installed.
            FileExistsError: The folder exists and ``resume`` is False.
            FailedCellsError: Some cells failed; the report is written without them, unless an arm has no others.
        """
        check_engine(engine, jobs)
        if seeds is not None and seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {seeds}")
        if scale not in self.scales:
            raise ValueError(f"scale must be one of {', '.join(map(repr, self.scales))}, got {scale!r}")
        chosen = self.scales[scale]
        if seeds is not None:
            chosen = replace(cast(Any, chosen), seeds=seeds)
        groups = self.cells(chosen)
        resume |= report_only and (out / BEGUN).is_file()
        hint = partial(self._hint, scale=scale)
        rows = stored_rows(out, scale=scale, resume=resume, merge_from=merge_from, groups=groups, hint=hint)
        known = {row.job for row in rows}
        empty = [str(key) for key, group in groups.items() if not any(cell.identity in known for cell in group)]
        if report_only and empty:
            raise ValueError(
                f"tables must have rows of every arm for a report only, got none of {len(empty)} of {len(groups)} "
                f"arms, such as {empty[0]!r}; "
                + (hint(rows).removeprefix("; ") or "name a table with merge_from (--merge)")
            )
        begin(out, scale=scale)
        if report_only:
            with writing(out):
                rows = kept(out, rows)
                write_rows(out / TABLE, rows)
            reasons = _failures([*merge_from, out])
            missing = [(str(key), seed) for job, (key, seed) in places_of(groups).items() if job not in known]
            told = {(arm, seed): reasons.get(f"{arm} {seed}", "it is not in the table") for arm, seed in missing}
            filled = Filled(rows, told)
        else:
            filled = fill(rows, groups, self.numbers, out, engine=engine, jobs=jobs, progress=progress)
        by_cell = {row.job: row for row in filled.rows}
        arms = {
            key: Arm(str(key), [by_cell[cell.identity] for cell in group if cell.identity in by_cell])
            for key, group in groups.items()
        }
        failed, total = {f"{arm} {seed}": why for (arm, seed), why in filled.failed.items()}, len(filled.rows)
        keep_json(out / FAILURES, failed)
        if not all(arm.seeds for arm in arms.values()):
            raise FailedCellsError(failed, total + len(failed))
        path = replace(self.report(scale, chosen, arms, out), failed=failed).write()
        if failed and not report_only:
            raise FailedCellsError(failed, total + len(failed))
        return path

    def _hint(self, rows: Sequence[SeedRow], scale: str) -> str:
        """Return which other scale most rows are of, if any; of equal ones, that with the fewest cells."""
        jobs = {row.job for row in rows}
        places = {name: places_of(self.cells(own)).keys() for name, own in self.scales.items()}
        most = max(places, key=lambda name: (len(jobs & places[name]), -len(places[name])))
        if most == scale or not jobs & places[most]:
            return ""
        return f"; most rows are of the scale {most!r} (--scale {most})"
