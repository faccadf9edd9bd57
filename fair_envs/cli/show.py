"""The commands ``list`` and ``show``."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
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
    """Show an environment and its task, the fairness notions, or which method trains on which environment.

    Your own environment: fair-envs show my_module:MyId-v0. A terminal shows the page in your pager (PAGER).
    """
    parts = page_of(what, variant)
    with paged() as console:
        for part in parts:
            console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))


def page_of(what: str, variant: str | None) -> list[RenderableType]:
    """Return the parts of a page; see `show`.

    Raises:
        ValueError: The id or variant is unknown.
    """
    import gymnasium as gym

    from fair_envs.cli.pages import environment_page, own_page
    from fair_envs.metrics import notions_table
    from fair_envs.registration import TABLE

    if what == "notions":
        return [notions_table(), "", rates_table()]
    if what == "methods":
        return methods_page()
    known = [*sorted(TABLE), "notions", "methods"]
    if ":" not in what and what not in known and what not in gym.registry:
        raise ValueError(f"id must be one of {', '.join(known)}, got {what!r}{meant(what, known)}")
    env_id = imported_id(what, own=True)
    if env_id in TABLE:
        return [environment_page(env_id, variant=variant)]
    if variant is not None:
        raise ValueError(f"variant must be left out for your own environment, got {variant!r}")
    return [own_page(env_id)]


@contextmanager
def paged() -> Iterator[Console]:
    """Yield a console that shows everything in the user's pager at the end, if the output is a terminal."""
    console = terminal()
    if not sys.stdout.isatty():
        yield console
        return
    os.environ.setdefault("LESS", "FRX")  # as in git: with colours, and no longer than the text is
    with console.pager(styles=True):
        yield console


def rates_table() -> str:
    """Return the notions that only compare a rate, and what the rate is."""
    from fair_envs.metrics.notions import NOTIONS
    from fair_envs.metrics.rates import RATES

    known = {notion.name for notion in NOTIONS}
    own = {name: rate for name, rate in RATES.items() if name not in known}
    parts = (
        f"{name} (rate)\n  compares  {rate.name}: {rate.benefit}, divided by {rate.demand}"
        for name, rate in own.items()
    )
    return "\n\n".join(parts)


def methods_page() -> list[RenderableType]:
    """Return which method trains on which environment, why others do not, and what each method does.

    The first two rows are the policies without training that every comparison includes.
    """
    from rich.table import Table

    from fair_envs.baselines import methods
    from fair_envs.registration import TABLE
    from fair_envs.tasks import task_of

    env_ids = [*TABLE, *own_ids()]
    found = list(methods.supported(env_ids))
    scripted = {env_id: task_of(env_id).scripted for env_id in env_ids}
    numbers: dict[str, int] = {}
    shown = Table("method", *map(short_id, env_ids), box=None, pad_edge=False)
    shown.add_row("random", *["yes"] * len(env_ids))
    shown.add_row("scripted", *("yes" if names else "none" for names in scripted.values()))
    for method, refusals in found:
        cells = [f"[{numbers.setdefault(why, len(numbers) + 1)}]" if why else "yes" for why in refusals.values()]
        shown.add_row(method.name, *map(Text, cells))
    reasons = [f"[{number}] {why}" for why, number in numbers.items()]
    named = (f"{short_id(env_id)}: {', '.join(names)}" for env_id, names in scripted.items() if names)
    untrained = [
        "random: Random actions, without training.",
        f"scripted: Policies without training. {'; '.join(named)}.",
    ]
    return [shown, *reasons, "", *untrained, *(f"{method.name}: {method.summary}" for method, _ in found)]


def own_ids() -> list[str]:
    """Return the ids of the user's own environments that have a task or whose module was imported with --import."""
    import gymnasium as gym

    from fair_envs.registration import TABLE
    from fair_envs.support.imports import permissions
    from fair_envs.tasks import TASKS

    def module(entry: Any) -> str:
        return entry.partition(":")[0] if isinstance(entry, str) else str(getattr(entry, "__module__", ""))

    modules = permissions().modules
    own = (name for name, spec in gym.registry.items() if name in TASKS or module(spec.entry_point) in modules)
    return [name for name in own if name not in TABLE]


def short_id(env_id: str) -> str:
    """Return an id without what all ids of this package have in common."""
    return env_id.removeprefix("Fair").removesuffix("-v0")
