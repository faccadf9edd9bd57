"""Progress bars on standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

EVERY = 0.1  # seconds between two updates: one takes as long as a step of a small environment


class Advance(Protocol):
    """Moves a bar on by so many parts."""

    def __call__(self, parts: int = 1) -> object:
        """Move it on."""


@contextmanager
def progress_bar(what: str, *, total: int, done: int = 0, unit: str = "", shown: bool = True) -> Iterator[Advance]:
    """Show how much is done and the time left, in a file only the last state, and yield what moves the bar on.

    Args:
        what: Is being done.
        total: How many parts there are.
        done: How many were done before.
        unit: Of the parts, in the plural.
        shown: Whether there is a bar at all.
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
