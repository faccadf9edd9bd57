"""The commands ``list`` and ``show``."""

from typing import Annotated

import typer
from rich.text import Text

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
    """Print which method trains on which environment, why others do not, and what each method does."""
    from rich.table import Table

    from fair_envs.baselines import methods
    from fair_envs.registration import TABLE

    found = list(methods.supported())
    numbers: dict[str, int] = {}
    shown = Table("method", *map(short_id, TABLE), box=None, pad_edge=False)
    for method, reasons in found:
        cells = [f"[{numbers.setdefault(why, len(numbers) + 1)}]" if why else "yes" for why in reasons.values()]
        shown.add_row(method.name, *map(Text, cells))
    terminal().print(shown)
    for why, number in numbers.items():
        typer.echo(f"[{number}] {why}")
    typer.echo("")
    for method, _ in found:
        typer.echo(f"{method.name}: {method.summary}")


def short_id(env_id: str) -> str:
    """Return an id without what all ids of this package have in common."""
    return env_id.removeprefix("Fair").removesuffix("-v0")
