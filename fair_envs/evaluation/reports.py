"""The result of an evaluation: estimates with labels, as a table, JSON and CSV."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

import fair_envs
from fair_envs.metrics import Estimate

Labels = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of an evaluation.

    Attributes:
        labels: Names of the labels that identify an estimate, such as ``("policy", "notion")``.
        estimates: The estimates, by the values of the labels.
        across: The label whose values are the columns of the table; None: the table has one column.
        about: Metadata of the estimates: the run or environment, ``episodes``, the seed, parameters.
        details: Further contents of the JSON file.
        notes: Sentences that explain the table.
        spelled: Function that returns the text of a label in the table.
        also_save: Function that writes further files into the report's folder.
    """

    labels: Labels
    estimates: Mapping[Labels, Estimate]
    across: str | None = None
    about: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    spelled: Callable[[str], str] = str
    also_save: Callable[[Path], object] | None = None

    def table(self) -> Table:
        """Return the estimates as ``value [low, high]``, with ``(n)`` if n is less than the number of episodes."""
        rows = [label for label in self.labels if label != self.across]
        columns = list(dict.fromkeys(map(self._column, self.estimates)))
        shown = Table(*rows, box=None, pad_edge=False)
        for column in columns:
            shown.add_column(Text(column), overflow="fold")
        cells: dict[Labels, dict[str, str]] = {}
        for labels, estimate in self.estimates.items():
            row = tuple(value for name, value in zip(self.labels, labels, strict=True) if name != self.across)
            cells.setdefault(row, {})[self._column(labels)] = short(estimate, episodes=self.about.get("episodes"))
        for row, found in cells.items():
            shown.add_row(
                *(Text(self.spelled(label)) for label in row), *(Text(found.get(column, "")) for column in columns)
            )
        return shown

    def footnotes(self) -> list[str]:
        """Return the notes, and sentences on the intervals: their level, and the number of episodes."""
        estimates = [one for one in self.estimates.values() if not np.isnan(one.value)]
        most = max((one.n for one in estimates), default=0)
        episodes = self.about.get("episodes", most)
        fewer = min((one.n for one in estimates if one.n < episodes), default=None)
        levels = {f"{100 * one.level:g} %" for one in estimates if not np.isnan(one.low)}
        counted = f"n = {episodes} episode{'s' * (episodes != 1)}"
        found = [f"{' and '.join(sorted(levels))} confidence intervals; {counted}" if levels else counted]
        if most == 1:
            found.append("an interval needs two episodes")
        if fewer is not None:
            found.append(f"({fewer}): defined in {fewer} of them")
        return [*self.notes, "; ".join(found) + "."]

    def _column(self, labels: Labels) -> str:
        return "value" if self.across is None else labels[self.labels.index(self.across)]

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each estimate, with its labels and numbers."""
        return [
            {**dict(zip(self.labels, labels, strict=True)), **estimate.as_dict()}
            for labels, estimate in self.estimates.items()
        ]

    def save(self, folder: Path) -> None:
        """Write ``report.json`` and ``report.csv`` into a new folder.

        Raises:
            FileExistsError: The folder exists.
        """
        folder.mkdir(parents=True)
        rows = self.rows()
        plain = {"fair_envs": fair_envs.__version__, **self.about, "measured": rows, **self.details}
        (folder / "report.json").write_text(json.dumps(plain, indent=2, allow_nan=False) + "\n")
        with (folder / "report.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, [*self.labels, *Estimate.__dataclass_fields__])
            writer.writeheader()
            writer.writerows(rows)
        if self.also_save is not None:
            self.also_save(folder)


def number(value: float, *, n: int) -> Estimate:
    """Return an estimate from n episodes without an interval."""
    return Estimate(value=value, low=np.nan, high=np.nan, n=n)


def short(estimate: Estimate, *, episodes: int | None = None) -> str:
    """Return a number with its interval, and the number of episodes it is based on if some were excluded."""
    if np.isnan(estimate.value):
        return "undefined"
    some = f" ({estimate.n})" if episodes is not None and estimate.n < episodes else ""
    if np.isnan(estimate.low):
        return f"{estimate.value:.4g}" + (" [undefined]" if estimate.n == 1 else "") + some
    low, high = estimate.low + 0.0, estimate.high + 0.0  # no minus before 0
    return f"{estimate.value:.4g} [{low:.4g}, {high:.4g}]" + some
