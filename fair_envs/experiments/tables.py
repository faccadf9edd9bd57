"""Tables of estimates as Markdown and CSV."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fair_envs.metrics import Estimate

Cell = str | Estimate


def show(cell: Cell, *, digits: int = 3) -> str:
    """Return an estimate as ``value [low, high]``; a text is returned unchanged."""
    if isinstance(cell, str):
        return cell
    return f"{cell.value:.{digits}f} [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"


def listed(found: Mapping[Any, Estimate], *, digits: int = 3, unit: str = "") -> str:
    """Return estimates in one line, each after its name."""
    return ", ".join(f"{name} {show(e, digits=digits)}{unit}" for name, e in found.items())


def markdown(header: Sequence[str], rows: Sequence[Sequence[Cell]], *, digits: int = 3) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *[[show(cell, digits=digits) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(folder: Path, rows: Mapping[str, Mapping[str, Estimate]]) -> None:
    """Write the rows into a folder as ``table.csv`` and ``table.json``."""
    write_csv(folder / "table.csv", rows)
    write_json(folder / "table.json", rows)


def write_csv(path: Path, rows: Mapping[str, Mapping[str, Estimate]]) -> None:
    """Write one line for each row and number: value, interval, number of units, level."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "number", "value", "low", "high", "n", "level"])
        for row, numbers in rows.items():
            for name, e in numbers.items():
                writer.writerow([row, name, e.value, e.low, e.high, e.n, e.level])


def write_json(path: Path, rows: Mapping[str, Mapping[str, Estimate]]) -> None:
    """Write the rows as JSON; an undefined number is null."""
    plain = {row: {name: e.as_dict() for name, e in numbers.items()} for row, numbers in rows.items()}
    path.write_text(json.dumps(plain, indent=2) + "\n")
