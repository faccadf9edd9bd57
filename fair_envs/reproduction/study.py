"""The common parts of the studies of papers: running them, and the structure of their reports."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, cast

from fair_envs.experiments.executors import check_engine, run_cells
from fair_envs.experiments.jobs import Job, merge
from fair_envs.reproduction.claims import Claim

ScaleName = Literal["smoke", "small", "full"]


class Scaled(Protocol):
    """The scale of a study: a dataclass with, among others, the number of training seeds of each cell."""

    @property
    def seeds(self) -> int:
        """The number of training seeds of each cell."""


ScaleT = TypeVar("ScaleT", bound=Scaled)
KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, kw_only=True)
class Report(ABC, Generic[ScaleT]):
    """The tables, figures and verdicts of a study.

    Attributes:
        paper: Name of the study on the command line.
        scales: The available scales, by name.
        name: Name of the scale.
        scale: The scale that was run.
        out: Folder of all output.
    """

    paper: ClassVar[str]
    scales: ClassVar[Mapping[str, Scaled]]

    name: str
    scale: ScaleT
    out: Path

    @property
    def command(self) -> str:
        """The command that creates the report."""
        seeds = self.scale.seeds
        chosen = "" if seeds == self.scales[self.name].seeds else f" --seeds {seeds}"
        return f"fair-envs reproduce {self.paper} --scale {self.name}{chosen}"

    def write(self) -> Path:
        """Write everything and return the report's path."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.write_numbers()
        claims = self.claims()
        (self.out / "claims.json").write_text(json.dumps([vars(claim) for claim in claims], indent=2) + "\n")
        self.draw()
        path = self.out / "report.md"
        path.write_text(self.text(claims))
        return path

    @abstractmethod
    def write_numbers(self) -> None:
        """Write every arm's numbers into the report's folder, for programs."""

    @abstractmethod
    def claims(self) -> list[Claim]:
        """Return the paper's claims with the verdicts of our runs."""

    @abstractmethod
    def draw(self) -> None:
        """Save the figures."""

    @abstractmethod
    def text(self, claims: Sequence[Claim]) -> str:
        """Return the report as Markdown."""


@dataclass(frozen=True, kw_only=True)
class Study(Generic[ScaleT, KeyT, ResultT]):
    """A paper's study.

    Attributes:
        scales: The available scales, by name.
        cells: Function that returns the cells of a scale, in groups.
        read: Function that reads a cell's result from its folder.
        report: Function that creates the report from the scale's name, the scale, the groups' results and its folder.
    """

    scales: Mapping[str, ScaleT]
    cells: Callable[[ScaleT], Mapping[KeyT, Sequence[Job]]]
    read: Callable[[Path], ResultT]
    report: Callable[[str, ScaleT, Mapping[KeyT, Sequence[ResultT]], Path], Report[ScaleT]]

    def run(
        self,
        *,
        scale: ScaleName,
        out: Path,
        jobs: int = 2,
        engine: str = "processes",
        seeds: int | None = None,
        resume: bool = False,
        merge_from: Sequence[Path] = (),
        progress: bool = True,
    ) -> Path:
        """Run the missing cells and write the tables, figures and report; return the report's path.

        Args:
            scale: ``"smoke"`` (minutes), ``"small"`` (under two hours on two cores) or ``"full"`` (the paper's
                protocol).
            out: A new folder for the cells and the report.
            jobs: Number of cells that run in parallel.
            engine: The engine that runs them, see `fair_envs.experiments.executors`.
            seeds: Number of training seeds of each cell; None: the scale's.
            resume: Whether to continue in an existing folder; its finished cells are not run again.
            merge_from: Folders of the same study, run on other machines, whose cells are reused.
            progress: Whether to show a bar with the remaining time.

        Raises:
            ValueError: The scale or engine is unknown, the folder was started with another scale, ``seeds`` is less
                than 1, or a folder in ``merge_from`` has no cells.
            ImportError: The engine is not installed.
            FileExistsError: The folder exists and ``resume`` is False.
        """
        check_engine(engine, jobs)
        folder = self._open(out, scale=scale, seeds=seeds, resume=resume, merge_from=merge_from)
        chosen = self.scales[scale]
        if seeds is not None:
            chosen = replace(cast(Any, chosen), seeds=seeds)
        cells = self.cells(chosen)
        everything = [cell for group in cells.values() for cell in group]
        run_cells(everything, folder, engine=engine, jobs=jobs, progress=progress)
        results = {key: [self.read(folder / cell.key) for cell in group] for key, group in cells.items()}
        return self.report(scale, chosen, results, out).write()

    def _open(self, out: Path, *, scale: str, seeds: int | None, resume: bool, merge_from: Sequence[Path]) -> Path:
        """Return the folder of the cells, in a new folder or in one that is resumed."""
        if scale not in self.scales:
            raise ValueError(f"scale must be one of {', '.join(map(repr, self.scales))}, got {scale!r}")
        if seeds is not None and seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {seeds}")
        missing = [str(source) for source in merge_from if not (source / "cells").is_dir()]
        if missing:
            raise ValueError(
                f"merge_from (--merge) must name folders of this study, got {', '.join(missing)} without cells"
            )
        if out.exists() and not resume:
            raise FileExistsError(f"out must be a new folder, or be resumed with resume=True (--resume), got {out}")
        begun = out / "scale.txt"  # protects the report of another scale
        if begun.is_file() and begun.read_text() != scale:
            raise ValueError(f"scale must be {begun.read_text()!r} to resume {out}, got {scale!r}")
        folder = out / "cells"
        folder.mkdir(parents=True, exist_ok=True)
        begun.write_text(scale)
        merge([source / "cells" for source in merge_from], folder)
        return folder
