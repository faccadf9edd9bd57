"""The commands ``list`` and ``show``."""

from typing import Annotated

import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import imported_id, terminal
from fair_envs.support.parameters import meant


@app.command("list")
def list_environments() -> None:
    """List the environments."""
    from fair_envs.cli.pages import environments_table

    terminal().print(environments_table())


@app.command()
def show(
    what: Annotated[
        str,
        typer.Argument(metavar="ID|notions|methods", help="An environment's id, or `notions` or `methods`."),
    ],
    variant: Annotated[str | None, typer.Option(help="A variant of the environment's rules.")] = None,
) -> None:
    """Show an environment, the fairness notions, or which method trains on which environment."""
    from fair_envs.cli.pages import environment_page
    from fair_envs.metrics import notions_table
    from fair_envs.registration import TABLE

    if what == "notions":
        typer.echo(notions_table())
    elif what == "methods":
        show_methods()
    else:
        known = [*sorted(TABLE), "notions", "methods"]
        if ":" not in what and what not in known:
            raise ValueError(f"id must be one of {', '.join(known)}, got {what!r}{meant(what, known)}")
        terminal().print(environment_page(imported_id(what), variant=variant))


def show_methods() -> None:
    """Print every method, the environments that it supports, and why it does not support the others."""
    from rich.table import Table

    from fair_envs.baselines import methods

    shown = Table("method", "summary", "trains on", box=None, pad_edge=False)
    reasons: dict[str, dict[str, None]] = {}
    for method, found in methods.supported():
        known = [env_id.removesuffix("-v0") for env_id, why in found.items() if not why]
        shown.add_row(method.name, method.summary, ", ".join(known) or "none of this package's environments")
        for why in filter(None, found.values()):
            reasons.setdefault(why, {})[method.name] = None
    terminal().print(shown)
    for why, names in reasons.items():
        typer.echo(f"{', '.join(names)}: {why}.")
