"""Progress bars on standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

EVERY = 0.1  # seconds between two updates; an update takes as long as a step of a small environment


class Advance(Protocol):
    """A function that advances a progress bar."""

    def __call__(self, parts: int = 1) -> object:
        """Advance the bar by a number of parts."""


@contextmanager
def progress_bar(what: str, *, total: int, done: int = 0, unit: str = "", shown: bool = True) -> Iterator[Advance]:
    """Show a progress bar with the remaining time, and yield the function that advances it.

    If standard error is a file, only the final state is written.

    Args:
        what: Description of the work.
        total: Number of parts.
        done: Number of parts that are already done.
        unit: Name of the parts, in the plural.
        shown: Whether to show a bar.
    """
    if not shown:
        yield lambda parts=1: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    count = TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.fields[unit]}")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total, completed=done, unit=unit)
        waiting, shown_at = 0, 0.0

        def advance(parts: int = 1) -> None:
            nonlocal waiting, shown_at
            waiting += parts
            if time.monotonic() - shown_at >= EVERY:
                bar.advance(task, waiting)
                waiting, shown_at = 0, time.monotonic()

        try:
            yield advance
        finally:
            bar.advance(task, waiting)
