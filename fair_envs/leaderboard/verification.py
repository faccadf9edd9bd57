"""Plays the policies of rows, and of entries from outside, again, and compares the results to the bit."""

import functools
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from fair_envs.assessment import Evaluation
from fair_envs.assessment.played import changed_parameters
from fair_envs.assessment.policies import function_named, parameters_of_run, settings_of_run
from fair_envs.evaluation.policy import Act, Policy, as_policy
from fair_envs.experiments.seeds import BEGUN, CELLS, DIGITS, Arm, SeedRow, version_here, version_text
from fair_envs.leaderboard.board import part_of_scale, placed_rows, rows_in, stored_scale
from fair_envs.leaderboard.jobs import (
    RATE_OF,
    RUN,
    ArmKey,
    PolicyCell,
    cells,
    evaluated,
    fingerprint,
    learning,
    numbers_of,
)
from fair_envs.registration import TABLE as IDS
from fair_envs.registration import make_rules
from fair_envs.support.files import read_json
from fair_envs.support.imports import PATH, refuse_stored_paths
from fair_envs.support.parameters import meant
from fair_envs.support.progress import progress_bar
from fair_envs.tasks import task_of

ENTRY = "entry.json"  # of a folder from outside
UNKNOWN = "?"  # the result of an entry that was not verified yet


class Verified(NamedTuple):
    """The outcome of a verification.

    Attributes:
        row: Name of the row.
        stored: The hash of the result in the table.
        found: The hash of the result when the policy was played again.
        numbers: The columns of the leaderboard when the policy was played again.
        trained: Whether the policy was trained again first.
        versions: Which version of the code made the stored row, and which one runs here; "": not from this package.
        scale: The scale in whose test episodes an entry was played; "": it is a row.
        changed: The stored columns that differ from those of the result.
    """

    row: str
    stored: str
    found: str
    numbers: Mapping[str, float]
    trained: bool = False
    versions: str = ""
    scale: str = ""
    changed: Mapping[str, float] = {}

    @property
    def same(self) -> bool:
        """Whether the exact result has the stored hash, and all numbers of the row but the CPU time are its."""
        return self.stored == self.found and not self.changed

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
        retrain: Whether to train the policy again instead of playing the stored one. Weights, and usually results,
            are only the same with the same versions of the libraries, on a processor for which PyTorch and its
            library MKL select the same routines. They differ between Intel and AMD, and with and without AVX-512. See
            "The same results on an AMD processor" in `docs/evaluation.md`.

    Raises:
        ValueError: There is no such row, or its policy is not stored here.
        FileNotFoundError: The folder has no table.
    """
    name = row.rpartition("/")[0]
    if "/" not in name:
        raise ValueError(f"row must be TASK/METHOD[/STRENGTH]/SEED, or an existing folder of an entry, got {row!r}")
    rows = rows_in(out)
    groups = cells(stored_scale(out, rows))
    placed = {f"{key}/{seed}": (groups[key][seed], own) for (key, seed), own in placed_rows(rows, groups).items()}
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
        else:
            _check_world(place, cell.env_id, cell.given["parameters"])
        played = again if retrain else place
        return _compared(stored, row, cell.evaluation(played), trained=played)._replace(trained=retrain)


def _compared(stored: SeedRow, row: str, found: Evaluation, *, trained: Path | None = None) -> Verified:
    """Return whether a result, and the numbers of a training in its folder, are the stored ones."""
    numbers = {**numbers_of(found), **({} if trained is None else learning(trained))}
    hashed = fingerprint(found)
    rounded = {name: float(f"{value:.{DIGITS}g}") for name, value in numbers.items() if not np.isnan(value)}
    names = dict.fromkeys([*stored.numbers, *rounded])
    changed = {name: own for name in names if (own := stored.numbers.get(name, np.nan)) != rounded.get(name)}
    return Verified(row, stored.result, hashed, numbers, versions=_versions(stored), changed=changed)


def _versions(stored: SeedRow) -> str:
    """Return which version of the code made a row, and which one runs here."""
    return f"made by {version_text(stored.code, stored.commit)}; here {version_here()}"


# Entries from outside -------------------------------------------------------------------------------------------------


def entry(folder: Path) -> tuple[dict[str, str], str | Policy | Act]:
    """Return an entry from outside: what its ``entry.json`` says, and its policy for `evaluate`.

    ``entry.json`` has the fields ``task``, ``name``, ``policy`` and ``result``. ``policy`` is the name of a run's
    folder inside the entry, whose weights are read without running code and which was trained with the parameters of
    the task, or ``module:function``, which is only imported if the user trusts the entry, see
    `fair_envs.support.imports.trusting`. A run of Pareto Conditioned Networks also restores state that is not checked:
    see SECURITY.md.

    Raises:
        ValueError: A field is missing or wrong.
        TypeError: It names something else than a policy, or a function of observations and uniform numbers.
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
    if not re.fullmatch(rf"[0-9a-f]{{16}}|{re.escape(UNKNOWN)}", found["result"]):
        raise ValueError(f"result must be 16 hexadecimal digits, or {UNKNOWN!r}, got {found['result']!r}")
    if found["task"] not in IDS:  # another name could import a module
        raise ValueError(f"task must be one of {', '.join(IDS)}, got {found['task']!r}{meant(found['task'], IDS)}")
    policy = found["policy"]
    if PATH.fullmatch(policy):
        refuse_stored_paths({"policy": policy}, file=folder / ENTRY)
        named: Any = function_named(policy)
        checked = as_policy(named)
        return found, checked if checked is named else _naming_errors(policy, named)
    place = (folder / policy).resolve()
    if not place.is_relative_to(folder.resolve()) or not place.is_dir():
        raise ValueError(f"policy must be a folder inside the entry or module:function, got {policy!r}")
    _check_world(place, found["task"], {})
    return found, str(place)


def _naming_errors(name: str, function: Act) -> Act:
    """Return the function of an entry, whose errors name it."""

    @functools.wraps(function)
    def named(observation: Any, uniforms: Any) -> Any:
        try:
            return function(observation, uniforms)
        except Exception as error:  # the entry's code raises any
            raise RuntimeError(f"policy {name} raised {type(error).__name__}: {error} (--debug shows where)") from error

    return named


def _check_world(run: Path, env_id: str, parameters: Mapping[str, Any]) -> None:
    """Raise ValueError if a run, which is played with the parameters of its training, would play in another world.

    Args:
        run: The run's folder.
        env_id: The environment of the task.
        parameters: The parameters with which it must have been trained, beside those of the task.
    """
    trained, fixed = parameters_of_run(run, env_id), task_of(env_id).merged(parameters)
    if trained is None:
        where = settings_of_run(run).get("env_id")
        if where == env_id:
            raise ValueError(f"{run} must be a folder that `fair-envs train` wrote, got one without parameters")
        raise ValueError(f"policy must be a run of the entry's task, {env_id}, got one that was trained in {where!r}")
    own, usual = (changed_parameters(make_rules(env_id, **{**given, **fixed})) for given in (trained, parameters))
    if others := sorted(name for name in own.keys() | usual.keys() if own.get(name) != usual.get(name)):
        raise ValueError(
            f"policy must be a run with the parameters of the task of {env_id}, got one with other values of "
            f"{', '.join(others)}; leave these parameters out when you train it"
        )


def play_entry(folder: Path, *, scale: str, progress: bool = False) -> tuple[ArmKey, Arm, str]:
    """Play the policy of an entry from outside in the test episodes of a scale.

    Reading weights runs no code. A function is only imported if the user trusts the entry: read its module first. See
    `entry` for an exception.

    Args:
        folder: The entry's folder, see `entry`.
        scale: The scale whose test episodes are played.
        progress: Whether to show a bar with the remaining time.

    Returns:
        Its key, its results, and the result that it claims.
    """
    given, policy = entry(folder)
    key = ArmKey(given["task"], f"{given['name']} (entry)")
    chosen = part_of_scale(scale, tasks=[key.env_id])
    rows, episodes = [], chosen.episodes(key.env_id)
    with progress_bar("playing", total=chosen.seeds, unit="sets of test episodes", shown=progress) as advance:
        for seed in range(chosen.seeds):
            found = evaluated(key.env_id, policy, seed=seed, episodes=episodes, parameters=chosen.parameters)
            numbers, result = numbers_of(found), fingerprint(found)
            rows.append(SeedRow(arm=str(key), seed=seed, job="", code="", seconds=0, numbers=numbers, result=result))
            advance()
    return key, Arm(str(key), rows), given["result"]


def verify_entry(folder: Path, out: Path | None = None, *, progress: bool = False) -> Verified:
    """Play the policy of an entry from outside, see `play_entry`, and compare the result to the bit.

    The result is the hash of the results of all seeds' test episodes, and the numbers are their means.

    Args:
        folder: The entry's folder.
        out: The folder of a leaderboard, in whose test episodes it is played; None: in those of the scale small.
        progress: Whether to show a bar with the remaining time.

    Raises:
        FileNotFoundError: The folder is not that of a leaderboard, or there is no entry.
        ValueError: The entry is wrong, see `entry`.
        RuntimeError: The policy raised an error.
    """
    if out is not None and not (out / BEGUN).is_file():
        raise FileNotFoundError(f"out must be the folder of a leaderboard, with {BEGUN}, got {out}")
    scale = "small" if out is None else (out / BEGUN).read_text()
    key, arm, stored = play_entry(folder, scale=scale, progress=progress)
    hashed = _hash_of(arm)
    numbers = {name: float(arm.values(name).mean()) for name in arm.names}
    return Verified(key.name, stored, hashed, numbers, scale=scale)


def verified_entry(folder: Path, *, scale: str) -> tuple[ArmKey, Arm]:
    """Return an entry from outside as an arm of its task, after playing its policy, see `play_entry`.

    Raises:
        ValueError: The result is not the one that it claims, or the entry is wrong, see `entry`.
        FileNotFoundError: There is no entry.
        RuntimeError: The policy raised an error.
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
