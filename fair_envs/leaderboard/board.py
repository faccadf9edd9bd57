"""Runs the leaderboard, writes its page, and verifies its rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from fair_envs.assessment import Evaluation
from fair_envs.assessment.played import changed_parameters
from fair_envs.assessment.policies import parameters_of_run
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
    RATE_OF,
    RUN,
    ArmKey,
    Cell,
    PolicyCell,
    Scale,
    cells,
    evaluated,
    fingerprint,
    learning,
    numbers_of,
    scales,
    stored_numbers,
    unit_cells,
)
from fair_envs.registration import TABLE as IDS
from fair_envs.registration import make_rules
from fair_envs.support.files import read_json
from fair_envs.support.imports import PATH, refuse_stored_paths
from fair_envs.support.parameters import PositiveInt, checked, meant
from fair_envs.tasks import task_of

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
    rows = _rows_in(out)
    covering = _covering(out, rows)
    chosen = part_of_scale((out / BEGUN).read_text(), methods=methods, seeds=covering.seeds if seeds is None else seeds)
    groups = cells(chosen)
    found: dict[ArmKey, dict[int, SeedRow]] = {key: {} for key in groups}
    for (key, seed), row in _placed(rows, groups).items():
        found[key][seed] = row
    return {key: Arm(str(key), [own[seed] for seed in sorted(own)]) for key, own in found.items() if own}


def _placed(rows: Sequence[SeedRow], groups: Mapping[ArmKey, Sequence[Cell]]) -> dict[tuple[ArmKey, int], SeedRow]:
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
        same: Whether the exact result has the stored hash, and all numbers of the row are those of the result. The CPU
            time is not compared.
        stored: The hash of the result in the table.
        found: The hash of the result when the policy was played again.
        numbers: The columns of the leaderboard when the policy was played again.
        trained: Whether the policy was trained again first.
        versions: Which version of the code made the stored row, and which one runs here; "": not from this package.
        scale: The scale in whose test episodes an entry was played; "": it is a row.
    """

    row: str
    same: bool
    stored: str
    found: str
    numbers: Mapping[str, float]
    trained: bool = False
    versions: str = ""
    scale: str = ""

    @property
    def shown(self) -> dict[str, float]:
        """The performance, the gap with its noise floor, and the rate of each group."""
        names = ("performance", "gap", "noise", *(name for name in self.numbers if name.startswith(RATE_OF)))
        return {name: self.numbers[name] for name in names}


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
    name = row.rpartition("/")[0]
    if "/" not in name:
        raise ValueError(f"row must be TASK/METHOD[/STRENGTH]/SEED, or an existing folder of an entry, got {row!r}")
    rows = _rows_in(out)
    groups = cells(_covering(out, rows))
    placed = {f"{key}/{seed}": (groups[key][seed], own) for (key, seed), own in _placed(rows, groups).items()}
    if row not in placed:
        if others := [own for own in rows if f"{own.arm}/{own.seed}" == row]:
            raise ValueError(f"row must be made by a cell of this version, got {row} of the cell {others[0].job}")
        alike = [one for one in placed if one.startswith(f"{name}/")]
        near = f"; there are {alike[0]} to {alike[-1]}" if alike else meant(row, placed)
        example = f", such as {next(iter(placed))}" if placed else ""
        raise ValueError(f"row must be one of the table{example}, got {row!r}{near}")
    cell, stored = placed[row]
    if isinstance(cell, PolicyCell):
        return _compared(stored, row, cell.evaluation())
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
        played = again if retrain else place
        return _compared(stored, row, cell.evaluation(played), trained=played)._replace(trained=retrain)


def _compared(stored: SeedRow, row: str, found: Evaluation, *, trained: Path | None = None) -> Verified:
    """Return whether a result, and the numbers of a training in its folder, are the stored ones."""
    numbers = {**numbers_of(found), **({} if trained is None else learning(trained))}
    hashed = fingerprint(found)
    rounded = {name: float(f"{value:.{DIGITS}g}") for name, value in numbers.items() if not np.isnan(value)}
    same = stored.result == hashed and stored.numbers == rounded
    return Verified(row, same, stored.result, hashed, numbers, versions=_versions(stored))


def _versions(stored: SeedRow) -> str:
    """Return which version of the code made a row, and which one runs here."""
    return f"made by {version_text(stored.code, stored.commit)}; here {version_here()}"


def entry(folder: Path) -> tuple[dict[str, str], str]:
    """Return an entry from outside: what its ``entry.json`` says, and the name of its policy for `evaluate`.

    ``entry.json`` has the fields ``task``, ``name``, ``policy`` and ``result``. ``policy`` is the name of a run's
    folder inside the entry, whose weights are read without running code and which was trained with the parameters of
    the task, or ``module:function``, which is only imported if the user trusts the entry, see
    `fair_envs.support.imports.trusting`.

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
    if not re.fullmatch(r"[^|`/<>&]{1,60}", found["name"]) or not found["name"].isprintable():
        raise ValueError(f"name must have 1 to 60 printable characters and none of | ` / < > &, got {found['name']!r}")
    if found["task"] not in IDS:  # another name could import a module
        raise ValueError(f"task must be one of {', '.join(IDS)}, got {found['task']!r}{meant(found['task'], IDS)}")
    policy = found["policy"]
    if PATH.fullmatch(policy):
        refuse_stored_paths({"policy": policy}, file=folder / ENTRY)
        return found, policy
    place = (folder / policy).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_dir():
        raise ValueError(f"policy must be a folder inside the entry or module:function, got {policy!r}")
    _check_world(place, found["task"])
    return found, str(place)


def _check_world(run: Path, env_id: str) -> None:
    """Raise ValueError if a run, which is played with the parameters of its training, would play in another world."""
    fixed = task_of(env_id).merged({})
    own, usual = (
        changed_parameters(make_rules(env_id, **{**trained, **fixed}))
        for trained in (parameters_of_run(run, env_id) or {}, {})
    )
    if others := sorted(name for name in own.keys() | usual.keys() if own.get(name) != usual.get(name)):
        raise ValueError(
            f"policy must be a run with the parameters of the task of {env_id}, got one with other values of "
            f"{', '.join(others)}; leave these parameters out when you train it"
        )


def play_entry(folder: Path, *, scale: str) -> tuple[ArmKey, Arm, str]:
    """Play the policy of an entry from outside in the test episodes of a scale.

    Reading weights runs no code. A function is only imported if the user trusts the entry: read its module first.

    Args:
        folder: The entry's folder, see `entry`.
        scale: The scale whose test episodes are played.

    Returns:
        Its key, its results, and the result that it claims.
    """
    given, policy = entry(folder)
    key = ArmKey(given["task"], f"{given['name']} (entry)")
    chosen = part_of_scale(scale, tasks=[key.env_id])
    rows = []
    for seed in range(chosen.seeds):
        found = evaluated(key.env_id, policy, seed=seed, episodes=chosen.episodes(key.env_id), parameters={})
        numbers, result = numbers_of(found), fingerprint(found)
        rows.append(SeedRow(arm=str(key), seed=seed, job="", code="", seconds=0, numbers=numbers, result=result))
    return key, Arm(str(key), rows), given["result"]


def verify_entry(folder: Path, out: Path | None = None) -> Verified:
    """Play the policy of an entry from outside, see `play_entry`, and compare the result to the bit.

    The result is the hash of the results of all seeds' test episodes, and the numbers are their means.

    Args:
        folder: The entry's folder.
        out: The folder of a leaderboard, in whose test episodes it is played; None: in those of the scale small.

    Raises:
        FileNotFoundError: The folder is not that of a leaderboard.
    """
    if out is not None and not (out / BEGUN).is_file():
        raise FileNotFoundError(f"out must be the folder of a leaderboard, with {BEGUN}, got {out}")
    scale = "small" if out is None else (out / BEGUN).read_text()
    key, arm, stored = play_entry(folder, scale=scale)
    hashed = _hash_of(arm)
    numbers = {name: float(arm.values(name).mean()) for name in arm.names}
    return Verified(key.name, stored == hashed, stored, hashed, numbers, scale=scale)


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
