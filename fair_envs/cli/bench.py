"""The command ``bench``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import ShowProgress, new_path, terminal
from fair_envs.support.progress import progress_bar


@app.command()
def bench(
    out: Annotated[Path | None, typer.Option(help="A new JSON file; default: runs/bench-N.json.")] = None,
    row: Annotated[list[str] | None, typer.Option(help="Measure only this row of the table; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure briefly, for a first impression only.")] = False,
    progress: ShowProgress = True,
) -> None:
    """Measure the package's speed and compare it with its targets."""
    from fair_envs.benchmark import rows as benchmark

    path = new_path(out, stem="bench", suffix=".json")
    rows = [benchmark.find_row(name) for name in row] if row else benchmark.ROWS
    effort = benchmark.QUICK if quick else benchmark.FULL
    with progress_bar("measuring", total=sum(r.repeats(effort) for r in rows), shown=progress) as each:
        results = [benchmark.run_row(r, effort, each=each) for r in rows]
    console = terminal()
    console.print(benchmark.table(results))
    for note in benchmark.notes(results):
        console.print(note, markup=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(benchmark.record(results, effort=effort), indent=2) + "\n")
    typer.echo(f"saved {path}")
