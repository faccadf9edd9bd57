"""The numbers of every training seed of a study, in one compressed table that another machine can continue."""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fair_envs.experiments.executors import FailedCellsError, run_cells
from fair_envs.experiments.jobs import Job, commit, has_record, read_record, sources
from fair_envs.metrics import Estimate, mean_interval, price_interval
from fair_envs.metrics.inference import welch
from fair_envs.support.aliases import Floats
from fair_envs.support.files import damaged, first_line, replace_file, writing

KeyT = TypeVar("KeyT", bound=Hashable)

TABLE = "seeds.csv.gz"
BEGUN = "scale.txt"  # the name of the scale of a folder
CELLS = "cells"
AT = "@"  # between the name of a curve and the place of a point
DIGITS = 7  # significant digits of stored numbers
WRITE_EVERY = 30.0  # seconds between two writes of a table
SHOWN = 8  # characters of a hash in texts


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """The result of one seed of an arm.

    Attributes:
        arm: Name of the arm.
        seed: The seed.
        job: Identity of the cell that made it, see `fair_envs.experiments.jobs.Job.identity`.
        code: Hash of the code that did it.
        seconds: CPU time of the training, in some studies with its tests.
        numbers: Its numbers by name; a point of a curve is named ``NAME@PLACE``.
        result: Hash of the exact result, of which the table has rounded numbers; "": none.
        commit: The Git commit of that code, see `fair_envs.experiments.jobs.commit`; "": none, or not known.
    """

    arm: str
    seed: int
    job: str
    code: str
    seconds: float
    numbers: Mapping[str, float]
    result: str = ""
    commit: str = ""


TEXTS = ("arm", "job", "code", "result", "commit")
OPTIONAL = ("commit",)  # columns that older tables do not have


def write_rows(path: Path, rows: Iterable[SeedRow]) -> None:
    """Write rows as a compressed CSV, atomically: a column for each number, empty where it is undefined."""
    import pandas as pd

    given = list(rows)
    columns = [field.name for field in fields(SeedRow) if field.name != "numbers"]
    for row in given:
        if wrong := set(columns) & set(row.numbers):
            raise ValueError(f"numbers must have other names than the columns of the table, got {sorted(wrong)}")
    plain = [{**{name: getattr(row, name) for name in columns}, **row.numbers} for row in given]
    frame = pd.DataFrame.from_records(plain, columns=None if plain else columns)
    buffer = BytesIO()
    compression: Any = {"method": "gzip", "mtime": 0}  # equal rows give equal files
    frame.to_csv(buffer, index=False, float_format=f"%.{DIGITS}g", compression=compression)
    replace_file(path, buffer.getvalue())


def read_rows(path: Path) -> list[SeedRow]:
    """Return the rows of a table.

    Args:
        path: The table, or a folder that contains it.

    Raises:
        FileNotFoundError: There is no table.
        ValueError: The table is damaged.
    """
    import pandas as pd

    file = path / TABLE if path.is_dir() else path
    try:
        texts_only = dict.fromkeys(TEXTS, str)
        frame = pd.read_csv(file, dtype=texts_only, keep_default_na=False, na_values=[""])
        columns = [name for name in TEXTS if name in frame or name not in OPTIONAL]
        texts = frame[columns].fillna("").to_dict("records")
        numbers = frame.drop(columns=columns).astype(float).to_dict("records")
        found = []
        for text, own in zip(texts, numbers, strict=True):
            seed, seconds = int(own.pop("seed")), own.pop("seconds")
            defined = {str(name): value for name, value in own.items() if not np.isnan(value)}
            found.append(SeedRow(**text, seed=seed, seconds=seconds, numbers=defined))
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged archives and tables raise many kinds of errors
        raise damaged(file, f"it is not a table of seeds ({type(error).__name__}: {first_line(error)})") from error
    return found


def merged(given: Iterable[Sequence[SeedRow]]) -> list[SeedRow]:
    """Return the rows of several tables; of cells in more than one, those of the last.

    The commit of a version of the code is taken from any table.
    """
    by_cell, commits = dict[str, list[SeedRow]](), dict[str, str]()
    for rows in given:
        own: dict[str, list[SeedRow]] = {}
        for row in rows:
            own.setdefault(row.job, []).append(row)
            if row.commit:
                commits[row.code] = row.commit
        by_cell |= own
    found = (row for rows in by_cell.values() for row in rows)
    return [row if row.commit else replace(row, commit=commits.get(row.code, "")) for row in found]


def version_text(code: str, of_commit: str) -> str:
    """Return a version of the code by its commit, or without one by its hash; "" without both."""
    if of_commit:
        return f"commit {of_commit[:SHOWN]}"
    return f"code {code[:SHOWN]}, in no known commit" if code else ""


def version_here() -> str:
    """Return the version of the code that runs."""
    return version_text(sources(), commit())


def made_by(rows: Iterable[SeedRow]) -> str:
    """Return which versions of the code made some rows."""
    versions = sorted(filter(None, {version_text(row.code, row.commit) for row in rows}))
    count = "one version" if len(versions) == 1 else f"{len(versions)} versions"
    return f"{count} of the code" + (f" ({'; '.join(versions)})" if versions else "")


def begin(out: Path, *, scale: str) -> None:
    """Make the folder of a study, which keeps the name of the scale: it protects the results of another one."""
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / BEGUN, scale.encode())
    (out / CELLS).mkdir(exist_ok=True)


def stored_rows(
    out: Path,
    *,
    scale: str,
    resume: bool,
    merge_from: Sequence[Path],
    groups: Mapping[Any, Sequence[Job]],
    hint: Callable[[Sequence[SeedRow]], str] = lambda rows: "",
) -> list[SeedRow]:
    """Return the rows of a study that exist, before its folder is begun or continued; write nothing.

    Args:
        out: A new folder, or that of the same study.
        scale: Name of the scale.
        resume: Whether to continue in an existing folder.
        merge_from: Tables, or folders that contain one, whose rows are used too.
        groups: The cells, of which each table in ``merge_from`` must have a row.
        hint: Returns what to do about rows that are of none of the cells, for the error.

    Raises:
        ValueError: The scale is not that of the folder, the folder has other content, or a path in
            ``merge_from`` has no table, or one of another study.
        FileExistsError: The folder exists and ``resume`` is False.
    """
    missing = [str(path) for path in merge_from if not (path / TABLE if path.is_dir() else path).is_file()]
    if missing:
        raise ValueError(
            f"merge_from (--merge) must name tables of this study or folders with one, got {', '.join(missing)} "
            f"without {TABLE}"
        )
    if out.exists() and not resume:
        raise FileExistsError(f"out must be a new folder, or be resumed with resume=True (--resume), got {out}")
    begun = out / BEGUN
    if begun.is_file() and begun.read_text() != scale:
        raise ValueError(f"scale must be {begun.read_text()!r} to resume {out}, got {scale!r}")
    if not begun.is_file() and out.exists() and any(out.iterdir()):
        raise ValueError(f"out must be a new folder, or one that was begun (it has a file {BEGUN}), got {out}")
    given = [read_rows(path) for path in merge_from]
    identities, arms = places_of(groups) if given else {}, set(map(str, groups))
    for path, rows in zip(merge_from, given, strict=True):
        if rows and not any(row.job in identities for row in rows):
            why = (
                "they are of other seeds, another scale or an earlier version"
                if any(row.arm in arms for row in rows)
                else f"its first row is of {rows[0].arm!r}"
            )
            raise ValueError(
                f"merge_from (--merge) must name tables of this study, got {path}, none of whose {len(rows)} rows is "
                f"of a cell of the scale {scale!r}: {why}{hint(rows)}"
            )
    return kept(out, *given)


def kept(out: Path, *given: Sequence[SeedRow]) -> list[SeedRow]:
    """Return the rows of a folder's table, if it has one, and further ones, see `merged`."""
    return merged([*given, *([read_rows(out)] if (out / TABLE).is_file() else [])])


def places_of(groups: Mapping[KeyT, Sequence[Job]]) -> dict[str, tuple[KeyT, int]]:
    """Return the arm's key and the seed of each cell, by the cell's identity; see `fill`.

    Arms may share cells, which have the place of the first one.
    """
    found: dict[str, tuple[KeyT, int]] = {}
    for key, group in groups.items():
        for place, cell in enumerate(group):
            found.setdefault(cell.identity, (key, getattr(cell, "seed", place)))
    return found


class Filled(NamedTuple):
    """The outcome of `fill`.

    Attributes:
        rows: All rows of the table, as stored, so that a report from the table is the same.
        failed: The errors of the cells that failed, by their arm and seed.
    """

    rows: list[SeedRow]
    failed: dict[tuple[str, int], str]


def fill(
    rows: Sequence[SeedRow],
    groups: Mapping[KeyT, Sequence[Job]],
    numbers: Callable[[KeyT, Path], Mapping[str, float]],
    out: Path,
    *,
    batch: Callable[[KeyT], Hashable] = lambda key: None,
    engine: str,
    jobs: int,
    progress: bool,
) -> Filled:
    """Run the cells without rows, add their rows to the table, and return all rows.

    The first seeds of all arms of a batch run before the second ones. A cell's row is added when it is done. A cell
    with a row is not run again, even if the code has changed since; the row says which code made it. The table is
    written every half minute, at the end, and when the work is interrupted.

    Args:
        rows: The rows that exist, besides those of the folder's table.
        groups: The arms by their keys: one cell for each seed, whose number is the cell's ``seed``, or else its place.
            Arms may share cells.
        numbers: Returns the numbers of a cell from the arm's key and the cell's folder.
        out: The folder of the table; the cells' own folders are in its `CELLS`.
        batch: Returns the batch of an arm; the batches run one after the other.
        engine: The engine that runs the cells, see `fair_envs.experiments.executors`.
        jobs: Number of cells that run in parallel.
        progress: Whether to show a bar with the remaining time.

    Raises:
        ValueError: Another process is writing into the folder, or the record of a cell is damaged.
    """
    with writing(out):
        return _filled(kept(out, rows), groups, numbers, out, batch=batch, engine=engine, jobs=jobs, progress=progress)


def _filled(
    found: list[SeedRow],
    groups: Mapping[KeyT, Sequence[Job]],
    numbers: Callable[[KeyT, Path], Mapping[str, float]],
    out: Path,
    *,
    batch: Callable[[KeyT], Hashable],
    **running: Any,
) -> Filled:
    """Do what `fill` does while no other process writes into the folder."""
    folder, places = out / CELLS, places_of(groups)
    done = {row.job for row in found}
    batches: dict[Hashable, list[Sequence[Job]]] = {}
    for key, group in groups.items():
        batches.setdefault(batch(key), []).append(group)
    in_rounds = (cell for several in batches.values() for cells in zip_longest(*several) for cell in cells)
    missing = {cell.identity: cell for cell in in_rounds if cell is not None and cell.identity not in done}
    open_ = {folder / cell.key: identity for identity, cell in missing.items()}
    for place in filter(has_record, open_):
        read_record(place)  # a damaged one is refused before anything runs
    written, failed = time.monotonic(), dict[tuple[str, int], str]()

    def keep(place: Path) -> None:
        nonlocal written
        if not has_record(place):  # it was stored under the name of another version
            return
        record, identity = read_record(place), open_.pop(place)
        about = {name: record.get(name, "") for name in ("result", "commit")}
        about |= {"code": record["sources"], "seconds": record["seconds"]}
        key, seed = places[identity]
        found.append(SeedRow(arm=str(key), seed=seed, job=identity, numbers=numbers(key, place), **about))
        if time.monotonic() > written + WRITE_EVERY:
            write_rows(out / TABLE, found)
            written = time.monotonic()

    try:
        run_cells(list(missing.values()), folder, each=keep, **running)
    except FailedCellsError as error:
        for identity, cell in missing.items():
            if cell.key in error.errors:
                key, seed = places[identity]
                failed[str(key), seed] = error.errors[cell.key]
    finally:
        for place in list(filter(has_record, open_)):  # done just before an interruption
            keep(place)
        order = {identity: place for place, identity in enumerate(missing)}
        found.sort(key=lambda row: order.get(row.job, -1))  # as if the cells had run one after the other
        write_rows(out / TABLE, found)
    for identity in open_.values():
        key, seed = places[identity]
        failed.setdefault((str(key), seed), "it has no result; was the package changed while it ran?")
    return Filled(read_rows(out / TABLE), failed)


class Curve(NamedTuple):
    """A number over the time of an episode or over settings, with one row per seed."""

    times: NDArray[Any]  # (P,)
    seeds: Floats  # (seeds, P)


@dataclass(frozen=True)
class Arm:
    """A method with the numbers of its training seeds, which are the units of all intervals.

    Attributes:
        label: The name in tables and plots.
        rows: One row for each seed.
    """

    label: str
    rows: Sequence[SeedRow]

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        """The names of the numbers that are not points of curves."""
        return list(dict.fromkeys(name for row in self.rows for name in row.numbers if AT not in name))

    def values(self, name: str) -> Floats:
        """Return a number of each seed, shape (seeds,); NaN where it is undefined."""
        return np.array([row.numbers.get(name, np.nan) for row in self.rows])

    def estimate(self, name: str) -> Estimate:
        """Return a number's mean over the seeds with its interval; undefined seeds are left out."""
        return mean_interval(self.values(name), undefined="omit")

    def minus(self, other: "Arm", name: str) -> Estimate:
        """Return this arm's number minus the other's; seeds are not paired, since trainings diverge at once."""
        one, two = (values[~np.isnan(values)] for values in (self.values(name), other.values(name)))
        return welch(one, two)

    def price(self, other: "Arm", name: str) -> Estimate:
        """Return how much the number is above the other arm's, in percent of it."""
        return price_interval(self.values(name), other.values(name), method="t")

    def reduction(self, other: "Arm", name: str) -> Estimate:
        """Return how much the number is below the other arm's, in percent of it."""
        return -self.price(other, name)

    def part(self, prefix: str) -> "Arm":
        """Return the arm with only the numbers whose names begin with a prefix, which is removed."""
        rows = [
            replace(row, numbers={n.removeprefix(prefix): v for n, v in row.numbers.items() if n.startswith(prefix)})
            for row in self.rows
        ]
        return Arm(self.label, rows)

    def curve(self, name: str) -> Curve:
        """Return a curve: its places, shape (P,), and each seed's values, shape (seeds, P); P is 0 without a curve."""
        start = name + AT
        columns = dict.fromkeys(column for row in self.rows for column in row.numbers if column.startswith(start))
        places = np.array([float(column[len(start) :]) for column in columns])
        values = np.array([self.values(column) for column in columns]).reshape(len(columns), self.seeds).T
        order = np.argsort(places)
        return Curve(places[order], values[:, order])


def curve_numbers(name: str, places: Iterable[float], values: Iterable[float]) -> dict[str, float]:
    """Return a curve as numbers of a row."""
    return {f"{name}{AT}{place:.15g}": float(value) for place, value in zip(places, values, strict=True)}
