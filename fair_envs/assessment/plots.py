"""Plots of estimates: dots with intervals, the gap over time, and performance against the gap."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.metrics import Estimate
from fair_envs.support.extras import need

SIZE = (6.4, 4.0)  # inches
MARKERS = "osD^v<>Pp*h"
LONGEST = 36  # characters of a label
GREY = "#888888"
INK, PALE, BLUE, ORANGE = "#222222", "#dddddd", "#0072b2", "#d55e00"  # safe for colour-blind readers
COLOURS = (BLUE, ORANGE, GREY, INK, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c564b")


def dot_plot(
    panels: Mapping[str, Mapping[str, Mapping[str, Estimate]]],
    path: Path,
    *,
    label: str,
    lines: Sequence[float] | Mapping[str, Sequence[float]] = (),
    one_unit: bool = True,
) -> None:
    """Save one panel for each title, with a row for each arm: dots with the intervals of one or more numbers.

    Args:
        panels: Title to arms to numbers; a number has one colour in all panels.
        path: Path of the picture.
        label: Label of the horizontal axis.
        lines: Values to mark in all panels, or in each one.
        one_unit: Whether all panels have the same horizontal axis.
    """
    tallest = max(len(arms) for arms in panels.values())
    columns = fullest_rows(len(panels))
    figure, grid = subplots(len(panels), columns=columns, size=(4.6, 1.1 + 0.27 * tallest), sharex=one_unit)
    names = dict.fromkeys(
        name
        for arms in panels.values()
        for numbers in arms.values()
        for name, e in numbers.items()
        if not np.isnan(e.value)
    )
    colours = dict(zip(names, cycle(COLOURS), strict=False))
    places = dict(zip(names, np.linspace(-0.12, 0.12, len(names)) if len(names) != 1 else [0.0], strict=True))
    for axis, (title, arms) in zip(grid.flat, panels.items(), strict=False):
        for name in names:
            shown = {k: numbers[name] for k, numbers in enumerate(arms.values()) if name in numbers}
            if not shown:
                continue
            errors = [(e.value - e.low, e.high - e.value) for e in shown.values()]
            axis.errorbar(
                [e.value for e in shown.values()],
                [-k - places[name] for k in shown],
                xerr=np.maximum(np.transpose(errors), 0),  # ends may be off by rounding
                fmt="o",
                color=colours[name],
                markersize=4,
                capsize=2,
            )
        for line in lines.get(title, ()) if isinstance(lines, Mapping) else lines:
            axis.axvline(line, color=INK, linewidth=0.8, linestyle=":")
        axis.set_yticks(-np.arange(len(arms)), list(map(_label, arms)), fontsize="small")
        axis.set_title(textwrap.fill(title, 32), fontsize="medium")
        axis.set(ylim=(0.5 - len(arms), 0.5))
        axis.grid(axis="y", color=PALE, linewidth=0.6)
    for name, colour in colours.items():
        grid[0][0].plot([], [], "o", color=colour, label=name)
    figure.supxlabel(textwrap.fill(label, round(11 * figure.get_figwidth())), fontsize="medium")
    if any(colours):
        columns = max(1, min(len(colours), int(figure.get_figwidth() / _widest(colours))))
        figure.set_figheight(figure.get_figheight() + 0.2 * (-(-len(colours) // columns) - 1))
        figure.legend(loc="outside upper center", ncols=columns, fontsize="small")
    save_figure(figure, path)


def plot_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], path: Path, *, title: str) -> None:
    """Save gaps since the start of the episode, with their intervals, over steps.

    Args:
        curves: ``step``, ``gap``, ``low`` and ``high``, by policy.
        path: The file.
        title: What is the gap, for the axis.
    """
    figure, ((axes,),) = subplots(1, columns=1, size=SIZE)
    for name, curve in curves.items():
        (line,) = axes.plot(curve["step"], curve["gap"], label=_label(name))
        axes.fill_between(curve["step"], curve["low"], curve["high"], alpha=0.2, color=line.get_color(), linewidth=0)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel("steps since the start of the episode")
    axes.set_ylabel(title)
    if len(curves) > 1:
        axes.legend(frameon=False)
    save_figure(figure, path)


def plot_price(
    points: Sequence[tuple[str, Estimate, Estimate, bool]], path: Path, *, performance: str, gap: str
) -> None:
    """Save the price of fairness: performance against the absolute gap, with intervals.

    Markers are hollow if the gap is within noise. Shapes and colours differ, and filled markers are translucent, so
    that points in the same place are visible.

    Args:
        points: Name, absolute gap, performance, and whether the gap is not larger than noise would give.
        path: The file.
        performance: What is performance, for the axis.
        gap: What is the gap, for the axis.
    """
    figure, ((axes,),) = subplots(1, columns=1, size=SIZE)
    for (name, across, up, within), marker in zip(points, cycle(MARKERS), strict=False):
        (dot,) = axes.plot(across.value, up.value, marker, label=_label(name), markeredgewidth=1.5)
        dot.set_markerfacecolor("none" if within else (dot.get_color(), 0.4))
        for value, ends, other in ((across, "x", up), (up, "y", across)):
            if not np.isnan(value.low):
                crosses = ends == "x" and value.low < 0  # then the absolute gap may be 0
                span = [0.0, max(value.high, -value.low)] if crosses else [value.low, value.high]
                line = (span, [other.value] * 2) if ends == "x" else ([other.value] * 2, span)
                axes.plot(*line, color=dot.get_color(), linewidth=1, alpha=0.6)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel(f"absolute {gap}")
    axes.set_ylabel(performance)
    name_beside(figure, title="hollow: gap within noise")
    save_figure(figure, path)


def _label(name: str) -> str:
    """Return a name, or the end of a long one, such as a path: long labels would leave no room for the plot."""
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def _widest(names: Iterable[str]) -> float:
    """Return the width of a legend's entry for the longest name in inches."""
    return 0.5 + 0.09 * max(map(len, names))


def name_beside(figure: Any, *, title: str = "") -> None:
    """Add a legend of all named lines on the right side of a figure, which grows with it.

    Args:
        figure: The figure.
        title: Title of the legend.
    """
    names = [name for axis in figure.axes for name in axis.get_legend_handles_labels()[1]]
    figure.set_figwidth(figure.get_figwidth() + _widest([*names, title]))
    figure.set_figheight(max(figure.get_figheight(), 0.2 * (len(names) + bool(title)) + 0.5))
    figure.legend(loc="outside right upper", fontsize="small", title=title or None)


def fullest_rows(panels: int) -> int:
    """Return the number of columns, 3 or 2, that leaves fewer places of the last row empty."""
    return min((3, 2), key=lambda columns: -panels % columns)


def subplots(panels: int, *, columns: int, size: tuple[float, float], **settings: Any) -> tuple[Any, Any]:
    """Return a figure with panels in rows, and their axes; unused places in the last row are hidden.

    Args:
        panels: Number of panels.
        columns: Largest number of panels in a row.
        size: Size of a panel in inches.
        settings: Further arguments of `matplotlib.figure.Figure.subplots`.

    Raises:
        ImportError: matplotlib is not installed.
    """
    need("a plot", "matplotlib", extra="baselines")
    from matplotlib.figure import Figure

    columns = min(panels, columns)
    rows = -(-panels // columns)
    width, height = size
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **settings)
    for axis in grid.flat[panels:]:
        axis.set_visible(False)
    return figure, grid


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure in a folder, which is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
