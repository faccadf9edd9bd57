"""The commands ``leaderboard``, ``leaderboard units``, ``leaderboard report`` and ``leaderboard verify``."""

import json
import math
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import PROCESSES, RUNS, EngineOption, ShowProgress, resumable

group = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(group, name="leaderboard")

OUTCOMES = {True: "passed", False: "FAILED", None: "not applicable"}


@group.callback(invoke_without_command=True)
def leaderboard(
    context: typer.Context,
    scale: Annotated[
        str,
        typer.Option(metavar="smoke|small|full", help="About ten CPU minutes, about 24 CPU hours, or for a cluster."),
    ] = "smoke",
    out: Annotated[Path | None, typer.Option(help="Folder of the results; default: runs/leaderboard-SCALE.")] = None,
    task: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Run only this environment; may be repeated.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Run only this method; may be repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of training seeds; default: the scale's.", min=1)] = None,
    engine: EngineOption = None,
    jobs: Annotated[int, typer.Option(help="Number of parallel trainings.", min=1)] = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Continue with the results in the folder.")] = False,
    merge: Annotated[
        list[Path] | None, typer.Option(help="Reuse the rows of this table or folder; may be repeated.")
    ] = None,
    progress: ShowProgress = True,
) -> None:
    """Run methods at several strengths on every task, score them, and write the page."""
    if context.invoked_subcommand:
        return
    from fair_envs.leaderboard.board import run

    folder = out or RUNS / f"leaderboard-{scale}"
    again = ["fair-envs", "leaderboard", "--scale", scale, "--out", str(folder), "--jobs", str(jobs), "--resume"]
    for name, values in (("--task", task), ("--method", method), ("--merge", merge)):
        again += [word for value in values or [] for word in (name, str(value))]
    again += [] if seeds is None else ["--seeds", str(seeds)]
    again += [] if engine is None else ["--engine", engine]
    with resumable(shlex.join(again), begun=folder):
        failed = run(
            scale=scale,
            out=folder,
            jobs=jobs,
            engine=engine or PROCESSES,
            tasks=task or (),
            methods=method or (),
            seeds=seeds,
            resume=resume,
            merge_from=merge or (),
            progress=progress,
        )
    write_page(folder, folder / "page", methods=method or (), seeds=seeds, progress=progress)
    for row, error in failed.items():
        typer.echo(f"failed: {row}: {error}", err=True)
    if failed:
        raise typer.Exit(1)


@group.command()
def units(
    out: Annotated[Path, typer.Option(help="Folder of the finished trainings; an existing one is continued.")],
    scale: Annotated[str, typer.Option(metavar="smoke|small|full", help="The scale whose budgets are used.")] = "small",
    jobs: Annotated[int, typer.Option(help="Number of parallel trainings.", min=1)] = 2,
    progress: ShowProgress = True,
) -> None:
    """Measure what methods have without their limit or tolerance, which is its unit, and print it as JSON."""
    from fair_envs.leaderboard.board import measure_units

    typer.echo(json.dumps(measure_units(out, scale=scale, jobs=jobs, progress=progress), indent=1))


@group.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a leaderboard, or of its table.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the page; default: FOLDER.")] = None,
    entry: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Verify this entry from outside and include it; may be repeated."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Show only this method and the controls; may be repeated.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds to show; default: all.", min=1)] = None,
    progress: ShowProgress = True,
) -> None:
    """Write the page of a leaderboard: the answer, scores, controls, tables, figures and data."""
    write_page(folder, out or folder, methods=method or (), seeds=seeds, entries=entry or (), progress=progress)


def write_page(
    folder: Path,
    out: Path,
    *,
    methods: Sequence[str] = (),
    seeds: int | None = None,
    entries: Sequence[Path] = (),
    progress: bool,
) -> None:
    """Write the page, and print whether rows are missing, its controls, and its answer."""
    from fair_envs.leaderboard.page import page_of

    page = page_of(folder, methods=methods, seeds=seeds, entries=entries)
    say(page.about())
    for control in page.controls:
        typer.echo(f"{OUTCOMES[control.passed]}: {control.name}: {control.evidence}")
    path = page.write(out, progress=progress)
    say(page.answer.lines())
    typer.echo(f"saved {path}")


def say(lines: Iterable[str]) -> None:
    """Print lines without their markup."""
    for line in lines:
        typer.echo(line.replace("**", "").replace("`", ""))


@group.command()
def verify(
    row: Annotated[
        str, typer.Argument(metavar="ROW", help="TASK/METHOD[/STRENGTH]/SEED, or the folder of an entry from outside.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the leaderboard; default: runs/leaderboard-smoke, for an entry the scale small."),
    ] = None,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train the policy again instead of playing the stored one.")
    ] = False,
    progress: ShowProgress = True,
) -> None:
    """Play the policy of a row again, and compare its result with the stored one to the bit.

    It fails if a number of the table differs. On another type of processor, the last bits of results may differ, and
    --retrain usually gives different results; for AMD processors with AVX-512, docs/evaluation.md has a remedy.

    An entry is played in the test episodes of the leaderboard in --out, without it in those of the scale small.
    """
    from fair_envs.leaderboard.verification import ENTRY, UNKNOWN, verify, verify_entry

    entry = Path(row).is_dir()
    folder = out or RUNS / "leaderboard-smoke"
    found = verify_entry(Path(row), out, progress=progress) if entry else verify(row, folder, retrain=retrain)
    played = "trained and played again" if found.trained else "played again"
    if found.scale:
        typer.echo(f"played in the test episodes of the scale {found.scale}")
    for name, number in found.shown.items():
        typer.echo(f"{name}: {number:.7g}")
    if found.stored == UNKNOWN:
        typer.echo(f'{found.row}: no result is stored yet; put "{found.found}" into {ENTRY}')
        return
    if found.same:
        typer.echo(f"{found.row}: {played}, the same to the bit ({found.found})")
        return
    versions = f" ({found.versions})" if found.versions else ""
    told = ", ".join(
        f"{name} {stored:.7g} (now {found.numbers.get(name, math.nan):.7g})" for name, stored in found.changed.items()
    )
    if found.stored == found.found:
        typer.echo(f"{found.row}: {played}, the result is the same, but the table has other numbers: {told}", err=True)
        raise typer.Exit(1)
    if found.versions and not found.changed:
        typer.echo(
            f"{found.row}: {played}, the same in all digits of the table, but not to the bit ({found.stored} is "
            f"stored, now {found.found}): the last bits can depend on the type of the processor, or on the version of "
            f"the code{versions}"
        )
        return
    typer.echo(f"{found.row}: {played}, it differs: {found.stored} is stored, now {found.found}{versions}", err=True)
    if told:
        typer.echo(f"stored: {told}", err=True)
    if found.trained:
        typer.echo(
            "Trainings usually give the same results only with the same versions of the libraries and on the type of "
            'processor that made the row. For AMD processors with AVX-512, see "The same results on an AMD processor" '
            "in docs/evaluation.md.",
            err=True,
        )
    raise typer.Exit(1)
