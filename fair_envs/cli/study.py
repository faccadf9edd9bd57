"""The command ``study``."""

from pathlib import Path
from typing import Annotated

import typer

from fair_envs.cli.app import app
from fair_envs.cli.evaluate import show_comparison
from fair_envs.cli.shared import ID_HELP, Param, ShowProgress, environment_parameters, imported_id, new_path, resumable


@app.command()
def study(
    env_id: Annotated[str, typer.Argument(metavar="ID", help=ID_HELP)],
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A method; may be repeated. Default: all that train on the environment."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of trainings of each method.", min=1)] = 5,
    steps: Annotated[
        int | None, typer.Option(help="Steps of each training; default: as each method recommends.", min=1)
    ] = None,
    episodes: Annotated[int, typer.Option(help="Test episodes of each trained policy.", min=1)] = 32,
    jobs: Annotated[int, typer.Option(help="Trainings at a time; each uses one core.", min=1)] = 1,
    param: Param = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A new folder, or that of the same study, which is continued; default: runs/study-N."),
    ] = None,
    runs: Annotated[Path | None, typer.Option(help="Folder of the runs; default: `runs` in the folder.")] = None,
    progress: ShowProgress = True,
) -> None:
    """Train methods with several seeds, and say which works, at what cost, and who gains and loses.

    Each trained policy is evaluated and compared with the others, with random and with scripted policies, as in
    `fair-envs compare`. An interrupted study continues if it is started again with the same --out.

    A first look: fair-envs study FairLending-v0 --method ppo --method elbert --seeds 3 --steps 100000
    """
    from fair_envs.experiments.study import Study, failures, run_study
    from fair_envs.support.imports import permissions

    chosen = Study(
        env_id=env_id,
        parameters=environment_parameters(imported_id(env_id, own=True), param),
        steps=steps,
        episodes=episodes,
        imports=sorted(permissions().modules),
    )
    folder = new_path(None, stem="study") if out is None else out
    with resumable(f"the same command and --out {folder}", begun=folder / "study.json"):
        found = run_study(chosen, folder, methods=method or (), seeds=seeds, jobs=jobs, runs=runs, progress=progress)
    show_comparison(found)
    typer.echo(f"saved {folder}")
    failed = failures(folder)
    for line in failed:
        typer.echo(f"failed: {line}", err=True)
    if failed:
        raise typer.Exit(1)
