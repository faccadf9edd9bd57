"""Plots of arms: curves over time, and two numbers against each other."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.assessment.plots import GREY, save_figure, subplots
from fair_envs.experiments.seeds import Curve
from fair_envs.metrics import Estimate, mean_interval

MARKERS = ("o", "s", "^", "D")


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
    figure, grid = subplots(len(panels), columns=3, size=(5, 3.8))
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
