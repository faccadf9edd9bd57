"""Runs the leaderboard and reads its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fair_envs.experiments.executors import FailedCellsError, check_engine
from fair_envs.experiments.seeds import (
    BEGUN,
    TABLE,
    Arm,
    SeedRow,
    begin,
    fill,
    places_of,
    read_rows,
    stored_rows,
)
from fair_envs.leaderboard.jobs import (
    FLOOR,
    ArmKey,
    Cell,
    Scale,
    cells,
    scales,
    stored_numbers,
    unit_cells,
)
from fair_envs.registration import TABLE as IDS
from fair_envs.support.parameters import PositiveInt, checked, meant


def run(
    *,
    scale: str,
    out: Path,
    jobs: int = 2,
    engine: str = "processes",
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: int | None = None,
    resume: bool = False,
    merge_from: Sequence[Path] = (),
    progress: bool = True,
) -> dict[str, str]:
    """Run the missing cells of a leaderboard, and return the errors of those that failed, by their rows.

    The first seeds of all arms run before the second ones, task by task. Cells in the table ``seeds.csv.gz`` of the
    folder, or of a folder in ``merge_from``, are not run again.

    Args:
        scale: ``"smoke"`` (minutes), ``"small"`` (about 24 CPU hours) or ``"full"`` (for a cluster).
        out: A new folder, or that of the same leaderboard.
        jobs: Number of cells that run in parallel.
        engine: The engine that runs them, see `fair_envs.experiments.executors`.
        tasks: Environments to run this time; empty: all of the scale.
        methods: Methods to run this time, besides the controls; empty: all of the scale.
        seeds: Number of seeds; None: the scale's.
        resume: Whether to continue in an existing folder.
        merge_from: Tables, or folders that contain one, whose cells are reused.
        progress: Whether to show a bar with the remaining time.

    Raises:
        ValueError: An argument is unknown or outside its range, or the folder was begun with another scale.
        ImportError: The engine is not installed.
        FileExistsError: The folder exists and ``resume`` is False.
    """
    check_engine(engine, jobs)
    groups = cells(part_of_scale(scale, tasks=tasks, methods=methods, seeds=seeds))
    known = (
        {**cells(part_of_scale(scale, seeds=seeds)), **groups} if merge_from else {}
    )  # also of tasks that are not run now
    rows = stored_rows(out, scale=scale, resume=resume, merge_from=merge_from, groups=known)
    begin(out, scale=scale)
    batch = attrgetter("env_id")
    filled = fill(rows, groups, stored_numbers, out, batch=batch, engine=engine, jobs=jobs, progress=progress)
    return {f"{arm}/{seed}": error for (arm, seed), error in filled.failed.items()}


def measure_units(
    out: Path, *, scale: str, jobs: int = 2, engine: str = "processes", progress: bool = True
) -> dict[str, dict[str, dict[str, float]]]:
    """Train methods without their limit or tolerance, and return what they have in its measure, see `jobs.units`.

    Args:
        out: A folder, in which finished cells are kept.
        scale: The scale whose budgets are used.
        jobs: Number of cells that run in parallel.
        engine: The engine that runs them, see `fair_envs.experiments.executors`.
        progress: Whether to show a bar with the remaining time.

    Raises:
        FailedCellsError: A training failed.
        ValueError: A training was too short to measure anything.
    """
    groups = unit_cells(part_of_scale(scale))
    rows = stored_rows(out, scale=scale, resume=True, merge_from=(), groups=groups)
    begin(out, scale=scale)
    filled = fill(rows, groups, stored_numbers, out, engine=engine, jobs=jobs, progress=progress)
    if filled.failed:
        raise FailedCellsError(
            {key: error for (key, _), error in filled.failed.items()}, sum(map(len, groups.values()))
        )
    if undefined := [f"{row.arm}/{row.seed}" for row in filled.rows if "measured" not in row.numbers]:
        raise ValueError(f"steps must be enough for a few rollouts, got trainings without the measure: {undefined}")
    by_cell = {row.job: row.numbers["measured"] for row in filled.rows}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (env_id, name, field), group in groups.items():
        unit = found.setdefault(env_id, {}).setdefault(name, {"value": 0.0, FLOOR: 0.0})
        unit[field] = float(f"{np.mean([by_cell[cell.identity] for cell in group]):.3g}")
    return found


def part_of_scale(
    scale: str, *, tasks: Sequence[str] = (), methods: Sequence[str] = (), seeds: int | None = None
) -> Scale:
    """Return a scale with some of its tasks, methods and seeds.

    Raises:
        ValueError: One of them is unknown.
    """
    known = scales()
    if scale not in known:
        raise ValueError(f"scale must be one of {', '.join(map(repr, known))}, got {scale!r}")
    found = known[scale]
    included = found.tasks or list(IDS)
    for task in tasks:
        if task not in included:
            other = f"; scale {scale!r} does not have it, others do" if task in IDS else meant(task, included)
            raise ValueError(f"task must be one of {', '.join(included)}, got {task!r}{other}")
    if methods:
        from fair_envs.baselines.methods import named

        found = replace(found, methods=[named(name).name for name in methods])
    if seeds is not None:
        found = replace(found, seeds=checked("seeds", seeds, PositiveInt))
    return replace(found, tasks=[task for task in included if task in (tasks or included)])


def arms_in(out: Path, *, methods: Sequence[str] = (), seeds: int | None = None) -> dict[ArmKey, Arm]:
    """Return the arms in a leaderboard's folder, in the order of its scale; rows of other cells are left out.

    Args:
        out: The folder.
        methods: Methods to return, besides the controls; empty: all of the scale.
        seeds: Number of seeds to return; None: all.

    Raises:
        FileNotFoundError: The folder has no table.
        ValueError: Two rows are of the same seed of an arm, or an argument is unknown or outside its range.
    """
    rows = rows_in(out)
    covering = stored_scale(out, rows)
    chosen = part_of_scale((out / BEGUN).read_text(), methods=methods, seeds=covering.seeds if seeds is None else seeds)
    groups = cells(chosen)
    found: dict[ArmKey, dict[int, SeedRow]] = {key: {} for key in groups}
    for (key, seed), row in placed_rows(rows, groups).items():
        found[key][seed] = row
    return {key: Arm(str(key), [own[seed] for seed in sorted(own)]) for key, own in found.items() if own}


def placed_rows(rows: Sequence[SeedRow], groups: Mapping[ArmKey, Sequence[Cell]]) -> dict[tuple[ArmKey, int], SeedRow]:
    """Return the rows of some cells by their arm and seed; rows of other cells are left out.

    Raises:
        ValueError: A row is not named like its cell, or two rows are of the same seed of an arm.
    """
    places, found = places_of(groups), dict[tuple[ArmKey, int], SeedRow]()
    for row in rows:
        if row.job not in places:
            continue
        key, seed = places[row.job]
        if (str(key), seed) != (row.arm, row.seed):
            raise ValueError(
                f"the table must name the row of the cell {row.job} {key}/{seed}, got {row.arm}/{row.seed}"
            )
        if (key, seed) in found:
            raise ValueError(f"the table must have one row for each seed of an arm, got two of {row.arm}/{row.seed}")
        found[key, seed] = row
    return found


def rows_in(out: Path) -> list[SeedRow]:
    """Return the rows of a leaderboard's folder."""
    if not (out / TABLE).is_file() or not (out / BEGUN).is_file():
        raise FileNotFoundError(
            f"folder must be that of a leaderboard, with {TABLE} and {BEGUN}, got {out}; fair-envs leaderboard --out "
            "makes one"
        )
    return read_rows(out)


class Coverage(NamedTuple):
    """How many rows of a task are stored.

    Attributes:
        stored: Number of rows that are stored.
        planned: Number of rows that the scale has.
    """

    stored: int
    planned: int

    @property
    def complete(self) -> bool:
        """Whether all rows are stored."""
        return self.stored == self.planned


def coverage(arms: Mapping[ArmKey, Arm], scale: Scale) -> dict[str, Coverage]:
    """Return how many rows of each task of a scale are stored; further arms and seeds do not count."""
    found: dict[str, Coverage] = {}
    for key, group in cells(scale).items():
        stored = sum(row.seed < scale.seeds for row in arms[key].rows) if key in arms else 0
        before = found.get(key.env_id, Coverage(0, 0))
        found[key.env_id] = Coverage(before.stored + stored, before.planned + len(group))
    return found


def stored_scale(out: Path, rows: Sequence[SeedRow]) -> Scale:
    """Return the scale of a folder with as many seeds as its table has."""
    known, name = scales(), (out / BEGUN).read_text()
    if name not in known:
        raise ValueError(f"{out / BEGUN} must name a scale ({', '.join(known)}), got {name!r}")
    return replace(known[name], seeds=1 + max((row.seed for row in rows), default=0))
