"""Plots of arms: dots with intervals, curves over time, and two numbers against each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics import Estimate, mean_interval
from fair_envs.support.aliases import Floats

GREY = "#888888"
INK, PALE, WITHOUT, WITH = "#222222", "#dddddd", "#0072b2", "#d55e00"  # safe for colour-blind readers


def dot_plot(
    panels: Mapping[str, Mapping[str, Mapping[str, Estimate]]],
    path: Path,
    *,
    label: str,
    line: float | None = None,
) -> None:
    """Save one panel for each title, with a row for each arm: dots with the intervals of one or more numbers.

    Args:
        panels: Title to arms to numbers; a number has one colour in all panels.
        path: Path of the picture.
        label: Label of the horizontal axis.
        line: A value to mark; None: none.
    """
    tallest = max(len(arms) for arms in panels.values())
    figure, grid = _grid(len(panels), columns=3, size=(4.6, 1.1 + 0.27 * tallest), sharex=True)
    names = dict.fromkeys(name for arms in panels.values() for numbers in arms.values() for name in numbers)
    colours = dict(zip(names, (WITHOUT, WITH, GREY, INK, *(f"C{k}" for k in range(10))), strict=False))
    for axis, (title, arms) in zip(grid.flat, panels.items(), strict=False):
        for k, numbers in enumerate(arms.values()):
            for name, e in numbers.items():
                error = [[e.value - e.low], [e.high - e.value]]
                axis.errorbar(e.value, -k, xerr=error, fmt="o", color=colours[name], markersize=4, capsize=2)
        if line is not None:
            axis.axvline(line, color=INK, linewidth=0.8, linestyle=":")
        axis.set_yticks(-np.arange(len(arms)), list(arms), fontsize="small")
        axis.set(title=title, xlabel=label, ylim=(0.5 - len(arms), 0.5))
        axis.grid(axis="y", color=PALE, linewidth=0.6)
    for name, colour in colours.items():
        grid[0][0].plot([], [], "o", color=colour, label=name)
    if len(colours) > 1:
        figure.legend(loc="outside lower center", ncols=len(colours), fontsize="small")
    _save(figure, path)


class TradeOffs(NamedTuple):
    """The data of a radar plot of policies, with a line for each."""

    values: Floats  # (policies, axes), at most 0
    colours: Floats  # (policies, 3)
    others: Floats  # (others, axes): policies that are drawn in grey behind them
    names: Sequence[str] = ()  # names of the policies; each is in the legend once


def trade_off_radar(panels: Mapping[str, TradeOffs], path: Path, *, axes: Sequence[str], low: float) -> None:
    """Save a radar plot for each panel, with a line for each policy; further out is better.

    Args:
        panels: Policies by title.
        path: Path of the picture.
        axes: Names of the values.
        low: The value at the centre; values below are clipped.
    """
    figure, grid = _grid(len(panels), columns=4, size=(4, 4.2), subplot_kw={"projection": "polar"})
    angles = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    around = np.append(angles, angles[0])
    for axis, (title, shown) in zip(grid.flat, panels.items(), strict=False):
        faint = 0.7 * len(shown.values) / max(1, len(shown.values) + len(shown.others))
        for row in np.maximum(shown.others, low):
            axis.plot(around, np.append(row, row[0]), color=GREY, linewidth=1.75, alpha=faint)
        reported: set[str] = set()
        for k, (row, colour) in enumerate(zip(np.maximum(shown.values, low), shown.colours, strict=True)):
            name = shown.names[k] if shown.names else ""
            label = name if name not in reported else ""
            axis.plot(around, np.append(row, row[0]), color=colour, linewidth=2, label=label or None)
            reported.add(name)
        if shown.names:
            axis.legend(loc="upper left", bbox_to_anchor=(-0.25, 1.1), fontsize="small")
        axis.set_xticks(angles, axes)
        axis.set_ylim(low, 0)
        axis.set_title(title)
    _save(figure, path)


def history_sizes(panels: Mapping[str, Sequence[Floats]], path: Path) -> None:
    """Save the number of remembered decisions during trainings, with one line per training seed.

    Args:
        panels: Title to the seeds' rows of environment steps and size.
        path: Path of the picture.
    """
    plt = _pyplot()
    figure, grid = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 3.6), squeeze=False, layout="constrained")
    for axis, (title, seeds) in zip(grid[0], panels.items(), strict=True):
        for rows in seeds:
            axis.plot(rows[:, 0] / 1000, rows[:, 1], color=WITHOUT, linewidth=1)
        axis.set(title=title, xlabel="thousand environment steps", ylim=(0, None))
    grid[0][0].set_ylabel("decisions remembered, mean over lanes")
    _save(figure, path)


class Curve(NamedTuple):
    """A number over the time of an episode or over settings, with one row per seed."""

    times: NDArray[Any]  # (P,)
    seeds: Floats  # (seeds, P)


def course_plot(
    panels: Mapping[str, Mapping[str, Curve]],
    path: Path,
    *,
    points: Mapping[str, Mapping[str, Mapping[int, float]]],
    label: str = "step",
    each_seed: bool = False,
) -> None:
    """Save one panel for each number: its curves with intervals over seeds, and crosses for other values.

    Args:
        panels: Title to agents to curves; an agent has one colour in all panels.
        path: Path of the picture.
        points: Title to agents to times and values, drawn as crosses in the agent's colour.
        label: Label of the horizontal axis.
        each_seed: Whether to draw a thin line per seed instead of intervals, which mean little for three seeds.
    """
    figure, grid = _grid(len(panels), columns=3, size=(5, 3.8))
    colours = {
        name: f"C{k}" for k, name in enumerate(dict.fromkeys(name for agents in panels.values() for name in agents))
    }
    for axis, (title, agents) in zip(grid.flat, panels.items(), strict=False):
        for name, curve in agents.items():
            estimates = [mean_interval(column) for column in curve.seeds.T]
            axis.plot(curve.times, [e.value for e in estimates], color=colours[name], label=name)
            if each_seed:
                axis.plot(curve.times, curve.seeds.T, color=colours[name], linewidth=0.6, alpha=0.6)
                continue
            low, high = [e.low for e in estimates], [e.high for e in estimates]
            axis.fill_between(curve.times, low, high, color=colours[name], alpha=0.15)
        for name, read in points.get(title, {}).items():
            own = None if name in colours else f"{name} (paper)"
            axis.plot(list(read), list(read.values()), "x", color=colours.get(name, GREY), label=own)
        axis.set(title=title, xlabel=label)
    grid[0][0].legend(fontsize="small")
    _save(figure, path)


def exchange_plot(
    panels: Mapping[str, Mapping[str, tuple[Estimate, Estimate]]], path: Path, *, labels: tuple[str, str]
) -> None:
    """Save one panel for each setting: two numbers of each arm against each other, with intervals over seeds.

    Args:
        panels: Title to arms to the horizontal and the vertical number.
        path: Path of the picture.
        labels: Labels of the axes.
    """
    figure, grid = _grid(len(panels), columns=4, size=(3.6, 3.4), sharex=True, sharey=True)
    for axis, (title, arms) in zip(grid.flat, panels.items(), strict=False):
        for k, (name, (across, upwards)) in enumerate(arms.items()):
            bars = [[[abs(e.value - e.low)], [abs(e.high - e.value)]] for e in (across, upwards)]
            axis.errorbar(
                across.value, upwards.value, xerr=bars[0], yerr=bars[1], fmt="o", color=f"C{k}", capsize=2, label=name
            )
        axis.set(title=title)
    for axis in grid[-1]:
        axis.set_xlabel(labels[0])
    for axis in grid[:, 0]:
        axis.set_ylabel(labels[1])
    grid[0][0].legend(fontsize="small")
    _save(figure, path)


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
    figure, grid = _pyplot().subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained", **settings
    )
    for axis in grid.flat[panels:]:
        axis.set_visible(False)
    return figure, grid


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    _pyplot().close(figure)


def _pyplot() -> Any:
    """Return matplotlib's pyplot with a backend that does not need a screen."""
    try:
        import matplotlib
    except ImportError as error:
        needed = "plots need matplotlib; install it with: pip install 'fair-envs[baselines]'"
        raise ImportError(needed) from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
