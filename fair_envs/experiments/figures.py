"""Plots of arms: curves over time, and two numbers against each other."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.assessment.plots import GREY, fullest_rows, name_beside, save_figure, subplots
from fair_envs.experiments.seeds import Curve
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.support.aliases import Floats

MARKERS = ("o", "s", "^", "D")
STYLES = ("-", "--", "-.")  # of more than ten curves


def course_plot(
    panels: Mapping[str, Mapping[str, Curve]],
    path: Path,
    *,
    points: Mapping[str, Mapping[str, Mapping[int, float]]],
    labels: tuple[str, str] = ("step", ""),
    lines: Mapping[str, Mapping[str, float]] | None = None,
    summary: Callable[[Floats], Estimate] = mean_interval,
) -> None:
    """Save one panel for each number: its curves with intervals over seeds, and crosses for other values.

    Args:
        panels: Title to agents to curves; an agent has one look in all panels.
        path: Path of the picture.
        points: Title to agents to times and values, drawn as crosses in the agent's colour.
        labels: Labels of the axes.
        lines: Title to names to values, drawn as grey horizontal lines with their names.
        summary: Function from the seeds' values at a time to what is drawn.
    """
    figure, grid = subplots(len(panels), columns=fullest_rows(len(panels)), size=(5, 3.8))
    names = dict.fromkeys(name for agents in panels.values() for name in agents)
    looks = {name: {"color": f"C{k % 10}", "linestyle": STYLES[k // 10 % len(STYLES)]} for k, name in enumerate(names)}
    read_by = [name for agents in points.values() for name in agents]
    for axis, (title, agents) in zip(grid.flat, panels.items(), strict=False):
        means: list[float] = []
        for name, curve in agents.items():
            estimates = [summary(column) for column in curve.seeds.T]
            means += [e.value for e in estimates]
            axis.plot(curve.times, [e.value for e in estimates], **looks[name])
            low, high = [e.low for e in estimates], [e.high for e in estimates]
            axis.fill_between(curve.times, low, high, color=looks[name]["color"], alpha=0.15, linewidth=0)
        for name, read in points.get(title, {}).items():
            colour = looks[name]["color"] if name in looks else GREY
            axis.plot(list(read), list(read.values()), "x", color=colour)
            means += read.values()
        for name, value in (lines or {}).get(title, {}).items():
            axis.axhline(value, color=GREY, linewidth=0.8, linestyle=":")
            across = axis.get_yaxis_transform()
            axis.text(0.99, value, name, ha="right", va="bottom", color=GREY, fontsize="small", transform=across)
            means.append(value)
        axis.set(title=title, xlabel=labels[0], ylabel=labels[1], ylim=_limits(axis, means))
    for name, look in looks.items():
        grid[0][0].plot([], [], label=name, **look)
    for name in dict.fromkeys(name for name in read_by if name not in looks):
        grid[0][0].plot([], [], "x", color=GREY, label=f"{name} (paper)")
    name_beside(figure)
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
    singles: Mapping[str, Mapping[str, tuple[Floats, Floats]]] | None = None,
) -> None:
    """Save one panel for each setting: two numbers of each arm against each other, with intervals over seeds.

    Args:
        panels: Title to arms to the horizontal and the vertical number.
        path: Path of the picture.
        labels: Labels of the axes.
        hollow: Arms with hollow markers, such as policies without training.
        singles: Title to arms to the same two numbers of single policies or seeds, drawn pale in the arm's colour.
    """
    figure, grid = subplots(len(panels), columns=4, size=(3.6, 3.4), sharey=True)
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
        for name, points in (singles or {}).get(title, {}).items():
            axis.plot(*points, ".", color=looks[name]["color"], alpha=0.5, markersize=5, markeredgewidth=0)
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
    name_beside(figure)
    save_figure(figure, path)
