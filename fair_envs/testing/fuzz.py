"""The command ``python -m fair_envs.testing.fuzz``: plays environments at random and checks every step."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from fair_envs.registration import TABLE
from fair_envs.testing.cases import Case
from fair_envs.testing.fuzzing import Fuzzed, fuzz_environment, play

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def fuzz(
    env_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The environment to play: an id, module:ID to import its module first, or all."
        ),
    ],
    steps: Annotated[
        int, typer.Option(help="Play at least this many environment steps (lanes times steps).", min=1)
    ] = (100_000),
    seed: Annotated[int, typer.Option(help="Draw other parameters and actions with another number.", min=0)] = 0,
    layouts: Annotated[
        int, typer.Option(help="Play this many layouts of lanes, each of which takes seconds to compile.", min=1)
    ] = 4,
    problems: Annotated[int, typer.Option(help="Stop playing an environment after this many problems.", min=1)] = 3,
    case: Annotated[
        str | None, typer.Option(metavar="JSON", help="Play the one case that a problem was reported with.")
    ] = None,
) -> None:
    """Play environments at random through every interface and check all return values.

    The exit status is 1 if a promise is broken; each problem is printed with the command that replays it.
    """
    try:
        if case is not None:
            found = [replayed(Case.of_text(env_id, case))]
        else:
            ids = list(TABLE) if env_id == "all" else [env_id]
            found = [fuzzed(one, steps=steps, seed=seed, layouts=layouts, problems=problems) for one in ids]
    except (ImportError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    Console(width=None if Console().is_terminal else 120).print(summary(found))
    if any(one.problems for one in found):
        raise typer.Exit(1)


def fuzzed(env_id: str, *, steps: int, seed: int, layouts: int, problems: int) -> Fuzzed:
    """Return the results for an environment; print the problems at the end."""
    with progress(env_id, total=steps) as advance:
        result = fuzz_environment(env_id, steps=steps, seed=seed, layouts=layouts, most_problems=problems, each=advance)
    for problem in result.problems:
        typer.echo(f"PROBLEM {problem}")
    return result


def replayed(case: Case) -> Fuzzed:
    """Return the results for one case; print its problem."""
    result = Fuzzed(case.env_id, cases=1, layouts=1)
    run, problem = play(case)
    if run is not None:
        result.interfaces[case.interface] += run.steps
    if problem is not None:
        result.problems.append(problem)
        typer.echo(f"PROBLEM {problem}")
    return result


@contextlib.contextmanager
def progress(what: str, *, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress and remaining time on a terminal; yield a function that adds steps."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


def summary(found: list[Fuzzed]) -> Table:
    """Return a table of the results."""
    table = Table("id", "cases", "layouts", "interfaces", "steps", "problems", "seconds")
    for one in found:
        cases = f"{one.cases}" + (f" ({one.cut} cut short)" if one.cut else "")
        numbers = (f"{one.layouts}", f"{len(one.interfaces)}", f"{one.steps:,}", f"{len(one.problems)}")
        table.add_row(one.env_id, cases, *numbers, f"{one.seconds:.1f}")
    return table


if __name__ == "__main__":
    app()
