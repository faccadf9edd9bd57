"""Runs the leaderboard, writes its page, and verifies its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from fair_envs.experiments.executors import check_engine
from fair_envs.experiments.seeds import TABLE, Arm, SeedRow, check_tables, fill, read_rows, read_tables
from fair_envs.leaderboard.jobs import (
    RUN,
    ArmKey,
    Cell,
    PolicyCell,
    Scale,
    cells,
    evaluated,
    fingerprint,
    row_of,
    scales,
)
from fair_envs.registration import TABLE as IDS
from fair_envs.support.files import read_json, write_json
from fair_envs.support.parameters import PositiveInt, checked, meant
from fair_envs.tasks import task_of

BEGUN = "leaderboard.json"  # what a folder holds
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
) -> dict[ArmKey, Arm]:
    """Run the missing cells of a leaderboard, and return its arms.

    The first seeds of all arms run before the second ones, task by task. Cells in the table ``seeds.csv.gz`` of the
    folder, or of a folder in ``merge_from``, are not run again.

    Args:
        scale: ``"smoke"`` (minutes), ``"small"`` (about ten CPU hours) or ``"full"`` (for a cluster).
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
    chosen = scaled(scale, tasks=tasks, methods=methods, seeds=seeds)
    rows = _open(out, scale=scale, resume=resume, merge_from=merge_from)
    groups = cells(chosen)
    places = {cell.identity: (key, seed) for key, group in groups.items() for seed, cell in enumerate(group)}

    def rows_of(cell: Any, folder: Path) -> list[SeedRow]:
        return [row_of(*places[cell.identity], cell, folder)]

    fill(rows, _in_order(groups), rows_of, out, engine=engine, jobs=jobs, progress=progress)
    return arms_in(out)


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
            raise ValueError(f"task must be one of {', '.join(included)}, got {task!r}{meant(task, included)}")
    if methods:
        from fair_envs.baselines.methods import named

        found = replace(found, methods=[named(name).name for name in methods])
    if seeds is not None:
        found = replace(found, seeds=checked("seeds", seeds, PositiveInt))
    return replace(found, tasks=[task for task in included if task in (tasks or included)])


def _in_order(groups: Mapping[ArmKey, Sequence[Cell]]) -> list[Cell]:
    """Return the cells task by task, the first seeds of a task's arms before the second ones."""
    ordered: list[Cell] = []
    for env_id in dict.fromkeys(key.env_id for key in groups):
        of_task = [group for key, group in groups.items() if key.env_id == env_id]
        ordered += [cell for several in zip_longest(*of_task) for cell in several if cell is not None]
    return ordered


def _open(out: Path, *, scale: str, resume: bool, merge_from: Sequence[Path]) -> list[SeedRow]:
    """Return the rows that exist, in a new folder or in one that is continued."""
    check_tables(merge_from)
    if out.exists() and not resume:
        raise FileExistsError(f"out must be a new folder, or be continued with resume=True (--resume), got {out}")
    begun = out / BEGUN
    if begun.is_file() and read_json(begun, dict).get("scale") != scale:
        raise ValueError(f"scale must be {read_json(begun, dict).get('scale')!r} to continue {out}, got {scale!r}")
    rows = read_tables([*merge_from, *([out] if (out / TABLE).is_file() else [])])
    (out / "cells").mkdir(parents=True, exist_ok=True)
    write_json(begun, {"scale": scale})
    return rows


def arms_in(out: Path) -> dict[ArmKey, Arm]:
    """Return the arms in a leaderboard's folder, in the order of its table.

    Raises:
        FileNotFoundError: The folder has no table.
    """
    found: dict[ArmKey, list[SeedRow]] = {}
    for row in read_rows(out):
        found.setdefault(ArmKey.parsed(row.arm), []).append(row)
    return {key: Arm(str(key), sorted(rows, key=lambda row: row.seed)) for key, rows in found.items()}


# Verification ---------------------------------------------------------------------------------------------------------


class Verified(NamedTuple):
    """The outcome of a verification.

    Attributes:
        row: Name of the row.
        stored: The hash of the result in the table.
        found: The hash of the result when the policy was played again.
        trained: Whether the policy was trained again first.
    """

    row: str
    stored: str
    found: str
    trained: bool

    @property
    def same(self) -> bool:
        """Whether every bit is the same."""
        return self.stored == self.found


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
    stored = next((own for own in read_rows(out) if own.arm == name and str(own.seed) == seed), None)
    if stored is None:
        known = [f"{own.arm}/{own.seed}" for own in read_rows(out)]
        raise ValueError(f"row must be one of the table, such as {known[0]}, got {row!r}{meant(row, known)}")
    cell = _cell_of(stored, out)
    if isinstance(cell, PolicyCell):
        return Verified(row, stored.result, fingerprint(cell.evaluation()), trained=False)
    place = out / "cells" / cell.key / RUN
    if not retrain:
        if not place.is_dir():
            raise ValueError(
                f"the policy of {row} must be stored in {place}, which does not exist: it was trained elsewhere or by "
                f"other code ({stored.code[:8]}); train it again with retrain=True (--retrain)"
            )
        return Verified(row, stored.result, fingerprint(cell.evaluation(place)), trained=False)
    with TemporaryDirectory() as temporary:
        again = Path(temporary) / RUN
        cell.train(again)
        return Verified(row, stored.result, fingerprint(cell.evaluation(again)), trained=True)


def _cell_of(row: SeedRow, out: Path) -> Cell:
    """Return the cell that made a row."""
    scale = scales()[read_json(out / BEGUN, dict)["scale"]]
    key = ArmKey.parsed(row.arm)
    groups = cells(replace(scale, tasks=[key.env_id], seeds=max(scale.seeds, row.seed + 1)))
    cell = groups.get(key, [None] * (row.seed + 1))[row.seed]
    if cell is None or cell.identity != row.job:
        raise ValueError(f"row must be made by a cell of this version, got {row.arm}/{row.seed} of the cell {row.job}")
    return cell


def entry(folder: Path) -> tuple[dict[str, Any], str]:
    """Return an entry from outside: what its ``entry.json`` says, and the name of its policy for `evaluate`.

    ``entry.json`` has the fields ``task``, ``name``, ``policy``, ``seed``, ``episodes`` and ``result``. ``policy`` is
    the name of a run's folder inside the entry, whose weights are read without running code, or ``module:function``.

    Raises:
        ValueError: A field is missing or wrong.
        FileNotFoundError: There is no such file.
    """
    found = read_json(folder / ENTRY, dict)
    kinds = {"task": str, "name": str, "policy": str, "seed": int, "episodes": int, "result": str}
    for name, kind in kinds.items():
        if not isinstance(found.get(name), kind):
            raise ValueError(f"{folder / ENTRY} must have {name!r}, a {kind.__name__}, got {found.get(name)!r}")
    task_of(found["task"])
    policy = found["policy"]
    if ":" in policy:
        return found, policy
    place = (folder / policy).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_dir():
        raise ValueError(f"policy must be a folder inside the entry or module:function, got {policy!r}")
    return found, str(place)


def verify_entry(folder: Path) -> Verified:
    """Play the policy of an entry from outside, and compare the result with the claimed one to the bit.

    Reading weights runs no code. A function is imported, which runs its module: read it first.
    """
    found, policy = entry(folder)
    result = evaluated(found["task"], policy, seed=found["seed"], episodes=found["episodes"], parameters={})
    return Verified(found["name"], found["result"], fingerprint(result), trained=False)
