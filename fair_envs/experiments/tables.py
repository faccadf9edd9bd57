"""Tables of estimates for the terminal, as Markdown and as CSV."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from fair_envs.metrics import Estimate
from fair_envs.support.files import replacing

Cell = str | Estimate

WIDEST_NAME = 40
SPACE = 2  # between columns


@dataclass(frozen=True)
class TableOfRows:
    """A table for the terminal in which columns that do not fit follow in further tables, with the names repeated.

    Attributes:
        rows: The cells of each row, by the title of their column; all rows have the same columns.
        title: The title of the column of names.
    """

    rows: Mapping[str, Mapping[str, str]]
    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield as many tables as the width needs."""
        for place, titles in enumerate(self.parts(options.max_width)):
            if place:
                yield ""
            yield self._table(titles)

    def parts(self, width: int) -> Iterator[list[str]]:
        """Yield the titles of the columns in each table, at least one."""
        part: list[str] = []
        room = left = width - self._width_of_names
        for title in next(iter(self.rows.values())):
            needed = SPACE + self._width(title)
            if part and needed > left:
                yield part
                part, left = [], room
            part.append(title)
            left -= needed
        yield part

    @property
    def _width_of_names(self) -> int:
        return min(WIDEST_NAME, max(map(cell_len, [self.title, *self.rows])))

    def _width(self, title: str) -> int:
        """Return the width of a column, in which the title takes several lines."""
        return max(map(cell_len, [*title.split(), *(row[title] for row in self.rows.values())]))

    def _table(self, titles: Sequence[str]) -> Table:
        shown = Table(box=None, pad_edge=False, padding=(0, SPACE, 0, 0))
        shown.add_column(Text(self.title), overflow="fold", width=self._width_of_names)
        for title in titles:
            shown.add_column(Text(title), overflow="fold", width=self._width(title))
        for name, cells in self.rows.items():
            shown.add_row(Text(name), *(Text(cells[title]) for title in titles))
        return shown


def show(cell: Cell, *, digits: int = 3) -> str:
    """Return an estimate as ``value [low, high]``, or "undefined"; a text is returned unchanged."""
    if isinstance(cell, str):
        return cell
    if math.isnan(cell.value):
        return "undefined"
    value, low, high = (
        f"{round(number, digits) + 0.0:.{digits}f}" for number in (cell.value, cell.low, cell.high)
    )  # no -0
    return f"{value} [undefined]" if math.isnan(cell.low) else f"{value} [{low}, {high}]"


def listed(found: Mapping[Any, Estimate], *, digits: int = 3, unit: str = "") -> str:
    """Return estimates in one line, each after its name."""
    return ", ".join(f"{name} {show(e, digits=digits)}{unit}" for name, e in found.items())


def markdown(header: Sequence[str], rows: Sequence[Sequence[Cell]], *, digits: int = 3) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *[[show(cell, digits=digits) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_csv(path: Path, rows: Mapping[str, Mapping[str, Estimate]]) -> None:
    """Write one line for each row and number, atomically: value, interval, number of units, level."""
    with replacing(path) as part, part.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "number", "value", "low", "high", "n", "level"])
        for row, numbers in rows.items():
            for name, e in numbers.items():
                writer.writerow([row, name, e.value, e.low, e.high, e.n, e.level])
