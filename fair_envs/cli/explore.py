"""The command ``explore``."""

from pathlib import Path
from typing import Annotated

import typer

from fair_envs.cli.app import app
from fair_envs.cli.evaluate import known_environment
from fair_envs.cli.shared import Param, ShowProgress, environment_parameters, new_path
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import TEST_SEEDS


@app.command()
def explore(
    what: Annotated[
        list[str],
        typer.Argument(metavar="RUN...|ID", help="Folders of runs in one environment, or the id of an environment."),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further policy that can be watched, such as a rule; may be repeated."),
    ] = None,
    beside: Annotated[
        bool, typer.Option("--beside/--alone", help="Whether random and the task's scripted policies are shown too.")
    ] = True,
    episodes: Annotated[int, typer.Option(help="Number of test episodes.", min=1)] = 64,
    seed: Annotated[int, typer.Option(help="Seed of the first test episode, which is watched.", min=0)] = TEST_SEEDS,
    steps: Annotated[int, typer.Option(help="Number of its steps that are recorded.", min=1)] = 100,
    frames: Annotated[int, typer.Option(help="Number of its steps that are drawn.", min=0)] = 50,
    param: Param = None,
    out: Annotated[Path | None, typer.Option(help="A new file; default: runs/explore-N.html.")] = None,
    progress: ShowProgress = True,
) -> None:
    """Write one HTML file for people who decide and do not program: what each policy does, and to whom.

    The file opens in any browser, from a disk, and loads nothing from elsewhere. Its six views are: the trade-off
    between performance and fairness, what each group gets, the course over time, an episode step by step, the same
    episode with one change, and why a gap moved.
    """
    from fair_envs.assessment.policies import is_run, scripted_in, settings_of_run
    from fair_envs.explorer import explore as explored
    from fair_envs.tasks import task_of

    runs = [name for name in what if is_run(name)]
    others = [name for name in what if name not in runs]
    if runs and others:
        raise ValueError(
            f"RUN...|ID must be runs, or one id, got {', '.join(others)} beside runs; use --policy for rules"
        )
    if len(others) > 1:
        raise ValueError(f"RUN...|ID must be one id, got {', '.join(others)}")
    ids = dict.fromkeys(str(settings_of_run(Path(run))["env_id"]) for run in runs) or {
        known_environment(others[0]): None
    }
    if len(ids) > 1:
        raise ValueError(f"runs must be in one environment, got {', '.join(ids)}")
    (env_id,) = ids
    parameters = environment_parameters(env_id, param) if param else {}
    task = task_of(env_id)
    known = scripted_in(task, task.rules(**parameters))
    watched = [*runs, *(policy or ())] or known[:2] or ["random"]
    path = new_path(out, stem="explore", suffix=".html")
    shown = {*watched, *(["random", *known] if beside else [])}
    with progress_bar("playing", total=len(shown), unit="policies", shown=progress) as each:
        explored(
            env_id,
            watched,
            out=path,
            beside=beside,
            episodes=episodes,
            seed=seed,
            steps=steps,
            frames=frames,
            parameters=parameters,
            each=each,
        )
    typer.echo(f"saved {path} ({path.stat().st_size / 1e6:.1f} MB); open it in a browser")
