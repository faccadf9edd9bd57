"""Runs the leaderboard, writes its page, and verifies its rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from fair_envs.assessment import Evaluation
from fair_envs.experiments.executors import FailedCellsError, check_engine
from fair_envs.experiments.seeds import (
    BEGUN,
    CELLS,
    DIGITS,
    TABLE,
    Arm,
    SeedRow,
    begin,
    fill,
    places_of,
    read_rows,
    stored_rows,
    version_here,
    version_text,
)
from fair_envs.leaderboard.jobs import (
    FLOOR,
    RUN,
    ArmKey,
    PolicyCell,
    Scale,
    cells,
    evaluated,
    fingerprint,
    numbers_of,
    scales,
    stored_numbers,
    unit_cells,
)
from fair_envs.registration import TABLE as IDS
from fair_envs.support.files import read_json
from fair_envs.support.parameters import PositiveInt, checked, meant

ENTRY = "entry.json"  # of a folder from outside


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
    groups = cells(scaled(scale, tasks=tasks, methods=methods, seeds=seeds))
    known = {**cells(scaled(scale, seeds=seeds)), **groups} if merge_from else {}  # also of tasks that are not run now
    rows = stored_rows(out, scale=scale, resume=resume, merge_from=merge_from, groups=known)
    begin(out, scale=scale)
    filled = fill(
        rows,
        groups,
        stored_numbers,
        out,
        batch=lambda key: key.env_id,
        engine=engine,
        jobs=jobs,
        progress=progress,
    )
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
    groups = unit_cells(scaled(scale))
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


def scaled(scale: str, *, tasks: Sequence[str] = (), methods: Sequence[str] = (), seeds: int | None = None) -> Scale:
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
    rows = _rows_in(out)
    covering = _covering(out, rows)
    chosen = scaled((out / BEGUN).read_text(), methods=methods, seeds=covering.seeds if seeds is None else seeds)
    groups = cells(chosen)
    identities = places_of(groups)
    found: dict[ArmKey, dict[int, SeedRow]] = {key: {} for key in groups}
    for row in rows:
        if row.job in identities:
            own = found[ArmKey.parsed(row.arm)]
            if row.seed in own:
                raise ValueError(
                    f"the table must have one row for each seed of an arm, got two of {row.arm}/{row.seed}"
                )
            own[row.seed] = row
    return {key: Arm(str(key), [own[seed] for seed in sorted(own)]) for key, own in found.items() if own}


def _rows_in(out: Path) -> list[SeedRow]:
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


def _covering(out: Path, rows: Sequence[SeedRow]) -> Scale:
    """Return the scale of a folder with as many seeds as its table has."""
    known, name = scales(), (out / BEGUN).read_text()
    if name not in known:
        raise ValueError(f"{out / BEGUN} must name a scale ({', '.join(known)}), got {name!r}")
    return replace(known[name], seeds=1 + max((row.seed for row in rows), default=0))


# Verification ---------------------------------------------------------------------------------------------------------


class Verified(NamedTuple):
    """The outcome of a verification.

    Attributes:
        row: Name of the row.
        same: Whether the exact result has the stored hash, and the numbers of the table are those of the result.
        stored: The hash of the result in the table.
        found: The hash of the result when the policy was played again.
        numbers: The columns of the leaderboard when the policy was played again.
        command: The command that makes the same; "": there is none.
        trained: Whether the policy was trained again first.
        versions: Which version of the code made the stored row, and which one runs here; "": not from this package.
    """

    row: str
    same: bool
    stored: str
    found: str
    numbers: Mapping[str, float]
    command: str = ""
    trained: bool = False
    versions: str = ""


def verify(row: str, out: Path, *, retrain: bool = False) -> Verified:
    """Play the policy of a row again, and compare the result with the stored one to the bit.

    Args:
        row: ``TASK/METHOD/SEED``, or ``TASK/METHOD/STRENGTH/SEED``.
        out: The leaderboard's folder.
        retrain: Whether to train the policy again instead of playing the stored one. Weights, and so results, are only
            the same on a processor of the same kind with the same versions of the libraries.

    Raises:
        ValueError: There is no such row, or its policy is not stored here.
        FileNotFoundError: The folder has no table.
    """
    name, _, seed = row.rpartition("/")
    if "/" not in name:
        raise ValueError(f"row must be TASK/METHOD[/STRENGTH]/SEED, or an existing folder of an entry, got {row!r}")
    rows = _rows_in(out)
    known = {f"{own.arm}/{own.seed}": own for own in rows}
    if row not in known:
        alike = [one for one in known if one.startswith(f"{name}/")]
        near = f"; there are {alike[0]} to {alike[-1]}" if alike else meant(row, known)
        raise ValueError(f"row must be one of the table, such as {next(iter(known))}, got {row!r}{near}")
    stored = known[row]
    group = cells(_covering(out, rows)).get(ArmKey.parsed(name), [])
    cell = group[int(seed)] if int(seed) < len(group) else None
    if cell is None or cell.identity != stored.job:
        raise ValueError(f"row must be made by a cell of this version, got {row} of the cell {stored.job}")
    if isinstance(cell, PolicyCell):
        return _compared(stored, row, cell.evaluation(), command=cell.command)
    place = out / CELLS / cell.key / RUN
    if not retrain and not place.is_dir():
        raise ValueError(
            f"the policy of {row} must be stored in {place}, which does not exist: it was trained in another folder or "
            f"by other code ({_versions(stored)}); train it again with retrain=True (--retrain)"
        )
    with TemporaryDirectory() as temporary:
        again = Path(temporary) / RUN
        if retrain:
            cell.train(again)
        found = cell.evaluation(again if retrain else place)
    return _compared(stored, row, found, command=cell.command)._replace(trained=retrain)


def _compared(stored: SeedRow, row: str, found: Evaluation, *, command: str) -> Verified:
    """Return whether a result is the stored one."""
    numbers, hashed = numbers_of(found), fingerprint(found)
    rounded = {name: float(f"{value:.{DIGITS}g}") for name, value in numbers.items() if not np.isnan(value)}
    same = stored.result == hashed and {name: stored.numbers.get(name) for name in rounded} == rounded
    return Verified(row, same, stored.result, hashed, numbers, command, versions=_versions(stored))


def _versions(stored: SeedRow) -> str:
    """Return which version of the code made a row, and which one runs here."""
    return f"made by {version_text(stored.code, stored.commit)}; here {version_here()}"


def entry(folder: Path) -> tuple[dict[str, str], str]:
    """Return an entry from outside: what its ``entry.json`` says, and the name of its policy for `evaluate`.

    ``entry.json`` has the fields ``task``, ``name``, ``policy`` and ``result``. ``policy`` is the name of a run's
    folder inside the entry, whose weights are read without running code, or ``module:function``.

    Raises:
        ValueError: A field is missing or wrong.
        FileNotFoundError: There is no such file.
    """
    if not (folder / ENTRY).is_file():
        raise FileNotFoundError(f"entry must be a folder with a file {ENTRY}, got {folder}")
    found = read_json(folder / ENTRY, dict)
    for name in ("task", "name", "policy", "result"):
        if not isinstance(found.get(name), str):
            raise ValueError(f"{folder / ENTRY} must have {name!r}, a text, got {found.get(name)!r}")
    if not re.fullmatch(r"[^|`/\n\r]{1,60}", found["name"]):
        raise ValueError(f"name must have 1 to 60 characters and none of | ` / or a line break, got {found['name']!r}")
    if found["task"] not in IDS:  # another name could import a module
        raise ValueError(f"task must be one of {', '.join(IDS)}, got {found['task']!r}{meant(found['task'], IDS)}")
    policy = found["policy"]
    if ":" in policy:
        return found, policy
    place = (folder / policy).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_dir():
        raise ValueError(f"policy must be a folder inside the entry or module:function, got {policy!r}")
    return found, str(place)


def play_entry(folder: Path, *, scale: str) -> tuple[ArmKey, Arm, str]:
    """Play the policy of an entry from outside in the test episodes of a scale.

    Reading weights runs no code. A function is imported, which runs its module: read it first.

    Args:
        folder: The entry's folder, see `entry`.
        scale: The scale whose test episodes are played.

    Returns:
        Its key, its results, and the result that it claims.
    """
    given, policy = entry(folder)
    key = ArmKey(given["task"], f"{given['name']} (entry)")
    chosen = scaled(scale, tasks=[key.env_id])
    rows = []
    for seed in range(chosen.seeds):
        found = evaluated(key.env_id, policy, seed=seed, episodes=chosen.episodes(key.env_id), parameters={})
        numbers, result = numbers_of(found), fingerprint(found)
        rows.append(SeedRow(arm=str(key), seed=seed, job="", code="", seconds=0, numbers=numbers, result=result))
    return key, Arm(str(key), rows), given["result"]


def verify_entry(folder: Path, *, scale: str = "small") -> Verified:
    """Play the policy of an entry from outside, see `play_entry`, and compare the result to the bit.

    The result is the hash of the results of all seeds' test episodes, and the numbers are their means.
    """
    key, arm, stored = play_entry(folder, scale=scale)
    hashed = _hash_of(arm)
    numbers = {name: float(arm.values(name).mean()) for name in arm.names}
    return Verified(key.name, stored == hashed, stored, hashed, numbers)


def verified_entry(folder: Path, *, scale: str) -> tuple[ArmKey, Arm]:
    """Return an entry from outside as an arm of its task, after playing its policy, see `play_entry`.

    Raises:
        ValueError: The result is not the one that it claims.
    """
    key, arm, stored = play_entry(folder, scale=scale)
    if stored != (hashed := _hash_of(arm)):
        raise ValueError(
            f"the result of {folder} must be {hashed}, which its policy has in the test episodes of the scale {scale}, "
            f"got {stored}"
        )
    return key, arm


def _hash_of(arm: Arm) -> str:
    return sha256("".join(row.result for row in arm.rows).encode()).hexdigest()[:16]
