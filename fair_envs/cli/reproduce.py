"""The commands ``reproduce`` and ``demo``."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import PROCESSES, RUNS, EngineOption, ShowProgress, resumable
from fair_envs.support.files import read_json
from fair_envs.support.parameters import meant


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="The paper, for example lamalfa2025.")],
    scale: Annotated[
        str,
        typer.Option(
            metavar="smoke|small|full",
            help="About a minute, some hours, or the paper's protocol. hu2024 also has tuning (before small), "
            "cimpean2025 gate (a part of small that shows whether the tasks are learned), and lamalfa2025 long (some "
            "arms of small with four times the steps).",
        ),
    ] = "smoke",
    out: Annotated[Path | None, typer.Option(help="Folder of the results; default: runs/PAPER-SCALE.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int, typer.Option(help="Number of parallel experiments.", min=1)] = 2,
    seeds: Annotated[int | None, typer.Option(help="Number of training seeds; default: the scale's.", min=1)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue with the results in the folder.")] = False,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Reuse the results of another run from this folder; may be repeated."),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: write the report from the stored results.")
    ] = False,
    progress: ShowProgress = True,
) -> None:
    """Repeat a paper's experiments and compare its numbers with ours."""
    import importlib

    if paper not in papers():
        raise ValueError(f"paper must be one of {', '.join(papers())}, got {paper!r}{meant(paper, papers())}")
    folder = out or RUNS / f"{paper}-{scale}"
    again = ["fair-envs", "reproduce", paper, "--scale", scale, "--out", str(folder), "--jobs", str(jobs), "--resume"]
    again += [] if seeds is None else ["--seeds", str(seeds)]
    again += [] if engine is None else ["--engine", engine]
    again += [word for source in merge or [] for word in ("--merge", str(source))]
    again += ["--report-only"] * report_only
    with resumable(shlex.join(again), begun=folder):
        module = importlib.import_module(f"fair_envs.reproduction.{paper}.report")
        report = module.main(
            scale=scale,
            out=folder,
            jobs=jobs,
            engine=engine or PROCESSES,
            seeds=seeds,
            resume=resume,
            merge_from=merge or [],
            report_only=report_only,
            progress=progress,
        )
    show_verdicts(report)
    typer.echo(f"saved {report}")


def show_verdicts(report: Path) -> None:
    """Print the verdicts of a report: a line for each claim, and one for each method."""
    path = report.parent / "claims.json"
    for number, claim in enumerate(read_json(path, list) if path.is_file() else [], start=1):
        typer.echo(f"{number}. {claim['text']}")
        for method, verdict in claim["outcomes"].items():
            typer.echo(f"   {method}: {verdict}")


def papers() -> list[str]:
    """Return the papers that can be reproduced."""
    import pkgutil

    from fair_envs import reproduction

    return sorted(module.name for module in pkgutil.iter_modules(reproduction.__path__) if module.ispkg)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the results; finished trainings in it are not repeated.")] = (
        RUNS / "demo"
    ),
    jobs: Annotated[int, typer.Option(help="Number of worker processes.", min=1)] = 2,
    progress: ShowProgress = True,
) -> None:
    """Train PPO and fair-PPO on FairHarvest, compare them, and save plots and an animation."""
    with resumable(f"fair-envs demo --out {out}"):
        from fair_envs.reproduction import demo as demonstration

        lower = demonstration.main(out=out, jobs=jobs, progress=progress)
    raise typer.Exit(0 if lower else 1)
