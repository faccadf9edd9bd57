"""The command ``new-env``."""

from pathlib import Path
from typing import Annotated

import typer

from fair_envs.cli.app import app


@app.command("new-env")
def new_env(
    name: Annotated[str, typer.Argument(help="Name of the package, such as clinic; the id becomes Clinic-v0.")],
    out: Annotated[Path | None, typer.Option(help="A new or empty folder; default: NAME.")] = None,
) -> None:
    """Write the files of a new environment in a package of its own, with tests that pass.

    It is a small world that works: a clinic decides on one patient after another. Change its parameters, rules and
    picture into yours. docs/decision-environment.md explains each file.
    """
    from fair_envs.template import new_environment

    folder = Path(name) if out is None else out
    for path in new_environment(name, folder):
        typer.echo(f"wrote {path}")
    typer.echo(f"next: cd {folder} && pip install -e . && python -m pytest")
