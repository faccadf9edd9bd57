"""Plots of evaluations: rates of groups, the gap over time, and performance against the gap."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.metrics import Estimate
from fair_envs.support.extras import need

SIZE = (6.4, 4.0)  # inches
MARKERS = "osD^v<>Pp*h"
LONGEST = 36  # characters of a label


def plot_estimates(rows: Mapping[str, Mapping[str, Estimate]], path: Path, *, title: str) -> Path:
    """Write a dot plot with intervals, one row for each policy and one colour for each group; return its path.

    Args:
        rows: The estimates of each group, by policy.
        path: The file.
        title: What is estimated, for the axis.
    """
    figure, axes = _figure(len(rows))
    groups = list(next(iter(rows.values())))
    for place, group in enumerate(groups):
        shift = (place - (len(groups) - 1) / 2) * 0.5 / len(groups)
        found = [own[group] for own in rows.values()]
        _dots(axes, found, np.arange(len(found)) + shift, label=group)
    axes.set_yticks(np.arange(len(rows)), list(map(_label, rows)))
    axes.invert_yaxis()
    axes.set_xlabel(title)
    axes.legend(frameon=False)
    return _written(figure, path)


def plot_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], path: Path, *, title: str) -> Path:
    """Write gaps since the start of the episode, with their intervals, over steps; return the path.

    Args:
        curves: ``step``, ``gap``, ``low`` and ``high``, by policy.
        path: The file.
        title: What is the gap, for the axis.
    """
    figure, axes = _figure(1)
    for name, curve in curves.items():
        (line,) = axes.plot(curve["step"], curve["gap"], label=_label(name))
        axes.fill_between(curve["step"], curve["low"], curve["high"], alpha=0.2, color=line.get_color(), linewidth=0)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("steps since the start of the episode")
    axes.set_ylabel(title)
    if len(curves) > 1:
        axes.legend(frameon=False)
    return _written(figure, path)


def plot_price(
    points: Sequence[tuple[str, Estimate, Estimate, bool]], path: Path, *, performance: str, gap: str
) -> Path:
    """Write the price of fairness: performance against the absolute gap, with intervals; return the path.

    Markers are hollow if the gap is within noise. Shapes and colours differ, and filled markers are translucent, so
    that points in the same place are visible.

    Args:
        points: Name, absolute gap, performance, and whether the gap is not larger than noise would give.
        path: The file.
        performance: What is performance, for the axis.
        gap: What is the gap, for the axis.
    """
    figure, axes = _figure(1)
    figure.set_size_inches(SIZE[0] + 2.4, max(SIZE[1] + 0.8, 0.27 * (len(points) + 2)))  # for the names beside the plot
    for (name, across, up, within), marker in zip(points, cycle(MARKERS), strict=False):
        (dot,) = axes.plot(across.value, up.value, marker, label=_label(name), markeredgewidth=1.5)
        dot.set_markerfacecolor("none" if within else (dot.get_color(), 0.4))
        for value, ends, other in ((across, "x", up), (up, "y", across)):
            if not np.isnan(value.low):
                crosses = ends == "x" and value.low < 0  # then the absolute gap may be 0
                span = [0.0, max(value.high, -value.low)] if crosses else [value.low, value.high]
                line = (span, [other.value] * 2) if ends == "x" else ([other.value] * 2, span)
                axes.plot(*line, color=dot.get_color(), linewidth=1, alpha=0.6)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel(f"absolute {gap}")
    axes.set_ylabel(performance)
    figure.legend(frameon=False, loc="outside right upper", title="hollow: gap within noise")
    return _written(figure, path)


def _label(name: str) -> str:
    """Return a name, or the end of a long one, such as a path: long labels would leave no room for the plot."""
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def _dots(axes: Any, found: Sequence[Estimate], places: Any, *, label: str) -> None:
    values = np.array([one.value for one in found])
    ends = np.array([[one.low, one.high] for one in found])
    errors = np.nan_to_num(np.abs(ends.T - values))
    axes.errorbar(values, places, xerr=errors, fmt="o", label=label, capsize=2)


def _figure(rows: int) -> tuple[Any, Any]:
    need("a plot", "matplotlib", extra="baselines")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], max(SIZE[1], 1.5 + 0.5 * rows)), layout="constrained")
    return figure, figure.add_subplot()


def _written(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
