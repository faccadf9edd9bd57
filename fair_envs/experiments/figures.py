"""Plots of arms: dots with intervals, curves over time, and two numbers against each other."""

import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.experiments.seeds import Curve
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.support.extras import need

GREY = "#888888"
INK, PALE, WITHOUT, WITH = "#222222", "#dddddd", "#0072b2", "#d55e00"  # safe for colour-blind readers
MARKERS = ("o", "s", "^", "D")


def dot_plot(
    panels: Mapping[str, Mapping[str, Mapping[str, Estimate]]],
    path: Path,
    *,
    label: str,
    lines: Sequence[float] = (),
    one_unit: bool = True,
) -> None:
    """Save one panel for each title, with a row for each arm: dots with the intervals of one or more numbers.

    Args:
        panels: Title to arms to numbers; a number has one colour in all panels.
        path: Path of the picture.
        label: Label of the horizontal axis.
        lines: Values to mark.
        one_unit: Whether all panels have the same horizontal axis.
    """
    tallest = max(len(arms) for arms in panels.values())
    fullest = min((3, 2), key=lambda columns: -len(panels) % columns)
    figure, grid = _grid(len(panels), columns=fullest, size=(4.6, 1.1 + 0.27 * tallest), sharex=one_unit)
    names = dict.fromkeys(
        name
        for arms in panels.values()
        for numbers in arms.values()
        for name, e in numbers.items()
        if not np.isnan(e.value)
    )
    colours = dict(zip(names, (WITHOUT, WITH, GREY, INK, *(f"C{k}" for k in range(10))), strict=False))
    places = dict(zip(names, np.linspace(-0.12, 0.12, len(names)) if len(names) != 1 else [0.0], strict=True))
    for axis, (title, arms) in zip(grid.flat, panels.items(), strict=False):
        for k, numbers in enumerate(arms.values()):
            for name in (own for own in names if own in numbers):
                e = numbers[name]
                error = [[e.value - e.low], [e.high - e.value]]
                axis.errorbar(
                    e.value, -k - places[name], xerr=error, fmt="o", color=colours[name], markersize=4, capsize=2
                )
        for line in lines:
            axis.axvline(line, color=INK, linewidth=0.8, linestyle=":")
        axis.set_yticks(-np.arange(len(arms)), list(arms), fontsize="small")
        axis.set_title(textwrap.fill(title, 32), fontsize="medium")
        axis.set(ylim=(0.5 - len(arms), 0.5))
        axis.grid(axis="y", color=PALE, linewidth=0.6)
    for name, colour in colours.items():
        grid[0][0].plot([], [], "o", color=colour, label=name)
    figure.supxlabel(textwrap.fill(label, round(11 * figure.get_figwidth())), fontsize="medium")
    if any(colours):
        figure.legend(loc="outside upper center", ncols=len(colours), fontsize="small")
    save_figure(figure, path)


def course_plot(
    panels: Mapping[str, Mapping[str, Curve]],
    path: Path,
    *,
    points: Mapping[str, Mapping[str, Mapping[int, float]]],
    labels: tuple[str, str] = ("step", ""),
) -> None:
    """Save one panel for each number: its curves with intervals over seeds, and crosses for other values.

    Args:
        panels: Title to agents to curves; an agent has one colour in all panels.
        path: Path of the picture.
        points: Title to agents to times and values, drawn as crosses in the agent's colour.
        labels: Labels of the axes.
    """
    figure, grid = _grid(len(panels), columns=3, size=(5, 3.8))
    colours = {
        name: f"C{k}" for k, name in enumerate(dict.fromkeys(name for agents in panels.values() for name in agents))
    }
    for axis, (title, agents) in zip(grid.flat, panels.items(), strict=False):
        means: list[float] = []
        for name, curve in agents.items():
            estimates = [mean_interval(column) for column in curve.seeds.T]
            means += [e.value for e in estimates]
            axis.plot(curve.times, [e.value for e in estimates], color=colours[name], label=name)
            low, high = [e.low for e in estimates], [e.high for e in estimates]
            axis.fill_between(curve.times, low, high, color=colours[name], alpha=0.15)
        for name, read in points.get(title, {}).items():
            own = None if name in colours else f"{name} (paper)"
            axis.plot(list(read), list(read.values()), "x", color=colours.get(name, GREY), label=own)
            means += read.values()
        axis.set(title=title, xlabel=labels[0], ylabel=labels[1], ylim=_limits(axis, means))
    grid[0][0].legend(fontsize="small")
    save_figure(figure, path)


def _limits(axis: Any, means: Sequence[float]) -> tuple[float, float]:
    """Return the vertical limits of a panel: those of its means with a margin; wide intervals may leave the panel."""
    first, last = axis.get_ylim()
    known = [mean for mean in means if np.isfinite(mean)] or [first, last]
    margin = 0.5 * (max(known) - min(known)) or 1.0
    return max(first, min(known) - margin), min(last, max(known) + margin)


def exchange_plot(
    panels: Mapping[str, Mapping[str, tuple[Estimate, Estimate]]],
    path: Path,
    *,
    labels: tuple[str, str],
    hollow: Collection[str] = (),
) -> None:
    """Save one panel for each setting: two numbers of each arm against each other, with intervals over seeds.

    Args:
        panels: Title to arms to the horizontal and the vertical number.
        path: Path of the picture.
        labels: Labels of the axes.
        hollow: Arms with hollow markers, such as policies without training.
    """
    figure, grid = _grid(len(panels), columns=4, size=(3.6, 3.4), sharey=True)
    names = dict.fromkeys(name for arms in panels.values() for name in arms)
    looks = {
        name: {
            "color": f"C{k % 10}",
            "marker": MARKERS[k // 10 % len(MARKERS)],
            "mfc": "none" if name in hollow else None,
        }
        for k, name in enumerate(names)
    }
    for axis, (title, arms) in zip(grid.flat, panels.items(), strict=False):
        for name, (across, upwards) in arms.items():
            bars = [[[abs(e.value - e.low)], [abs(e.high - e.value)]] for e in (across, upwards)]
            axis.errorbar(across.value, upwards.value, xerr=bars[0], yerr=bars[1], ls="", capsize=2, **looks[name])
        axis.set(title=title)
    for axis in grid[-1]:
        axis.set_xlabel(labels[0])
    for axis in grid[:, 0]:
        axis.set_ylabel(labels[1])
    for name, look in looks.items():
        grid[0][0].plot([], [], ls="", label=name, **look)
    figure.legend(loc="outside right upper", fontsize="small")
    save_figure(figure, path)


def _grid(panels: int, *, columns: int, size: tuple[float, float], **settings: Any) -> tuple[Any, Any]:
    """Return a figure with panels in rows, and their axes; unused places in the last row are hidden.

    Args:
        panels: Number of panels.
        columns: Largest number of panels in a row.
        size: Size of a panel in inches.
        settings: Further arguments of `matplotlib.pyplot.subplots`.
    """
    columns = min(panels, columns)
    rows = -(-panels // columns)
    width, height = size
    figure, grid = pyplot().subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained", **settings
    )
    for axis in grid.flat[panels:]:
        axis.set_visible(False)
    return figure, grid


def pyplot() -> Any:
    """Return matplotlib's pyplot with a backend that does not need a screen.

    Raises:
        ImportError: matplotlib is not installed.
    """
    need("a plot", "matplotlib", extra="baselines")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure in a folder, which is created, and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot().close(figure)
