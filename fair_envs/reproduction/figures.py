"""Plots of arms: box plots of test episodes, radar plots of actions, curves against a weight."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.metrics import Estimate, mean_interval
from fair_envs.reproduction.measures import Arm
from fair_envs.support.aliases import Floats

GREY = "#888888"
INK, PALE, WITHOUT, WITH = "#222222", "#dddddd", "#0072b2", "#d55e00"  # safe for colour-blind readers


def box_plot(panels: Mapping[str, Mapping[str, Floats]], path: Path, *, label: str, bold: str) -> None:
    """Save one panel of boxes for each notion; a box shows the test episodes of all training seeds.

    Args:
        panels: Title to arms to values.
        path: Path of the picture.
        label: Label of the vertical axis.
        bold: The arm that the others are compared with.
    """
    plt = _pyplot()
    widest = max(len(arms) for arms in panels.values())
    figure, axes = plt.subplots(
        1, len(panels), figsize=(1.2 + len(panels) * (1.2 + 0.45 * widest), 4.2), squeeze=False, layout="constrained"
    )
    for axis, (title, arms) in zip(axes[0], panels.items(), strict=True):
        boxes = axis.boxplot(
            list(arms.values()), tick_labels=list(arms), patch_artist=True, flierprops={"markersize": 2}
        )
        for name, patch, median in zip(arms, boxes["boxes"], boxes["medians"], strict=True):
            patch.set(facecolor=PALE if name == bold else "white", linewidth=2 if name == bold else 1)
            median.set(color=WITH, linewidth=2)
        axis.axhline(0, color=INK, linewidth=0.8, linestyle=":")
        axis.set_title(title)
        axis.tick_params(axis="x", rotation=60)
    axes[0][0].set_ylabel(label)
    _save(figure, path)


def radar_plot(arms: Sequence[Arm], path: Path, *, actions: Sequence[str], groups: Sequence[str]) -> None:
    """Save radar plots of the shares of actions: selected and executed (columns) by group (rows)."""
    plt = _pyplot()
    kinds = ("selected", "executed")
    figure, axes = plt.subplots(
        len(groups), 2, figsize=(10, 4.6 * len(groups)), subplot_kw={"projection": "polar"}, layout="constrained"
    )
    angles = np.linspace(0, 2 * np.pi, len(actions), endpoint=False)
    for column, kind in enumerate(kinds):
        for row, group in enumerate(groups):
            axis = axes[row][column]
            for arm in arms:
                shares = arm.actions(kind)[row]
                axis.plot(np.append(angles, angles[0]), np.append(shares, shares[0]), label=arm.label)
            axis.set_xticks(angles, actions)
            axis.set_title(f"{group}: {kind}")
    axes[0][0].legend(loc="upper left", bbox_to_anchor=(-0.35, 1.15), fontsize="small")
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


def curves(arms: Mapping[float, Arm], path: Path, *, label: str) -> None:
    """Save the disparity and both groups' returns against a weight, with intervals over training seeds."""
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    _curve(left, arms, "dp_ratio", INK, "absolute ratio", absolute=True)
    _half_the_turns(left)
    left.set(xlabel=label, ylabel="demographic parity (0 is fair)", ylim=(0, None))
    _curve(right, arms, "return[without]", WITHOUT, "without the attribute")
    _curve(right, arms, "return[with]", WITH, "with the attribute")
    right.set(xlabel=label, ylabel="reward per agent and step", ylim=(0, None))
    right.legend()
    _save(figure, path)


def learning_plot(panels: Mapping[str, Sequence[Arm]], path: Path) -> None:
    """Save the ratio in the rollouts of the trainings against agent steps, with intervals over training seeds.

    Args:
        panels: Title to arms.
        path: Path of the picture.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(
        1, len(panels), figsize=(5 * len(panels), 4), squeeze=False, sharey=True, layout="constrained"
    )
    for axis, (title, arms) in zip(axes[0], panels.items(), strict=True):
        for arm in arms:
            steps, ratios = arm.learning()
            estimates = [mean_interval(column) for column in ratios.T]
            (line,) = axis.plot(steps / 1e6, [e.value for e in estimates], label=arm.label)
            low, high = [e.low for e in estimates], [e.high for e in estimates]
            axis.fill_between(steps / 1e6, low, high, color=line.get_color(), alpha=0.15)
        axis.axhline(0, color=INK, linewidth=0.8)
        _half_the_turns(axis)
        axis.set(title=title, xlabel="million agent steps")
    axes[0][0].set_ylabel("ratio (N - S) / (N + S) in the rollout")
    axes[0][0].legend(fontsize="small")
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


def _half_the_turns(axis: Any) -> None:
    """Draw the ratio that half the turns alone give."""
    axis.axhline(1 / 3, color=INK, linewidth=0.8, linestyle=":")
    axis.annotate(
        "half the turns alone: 1/3", (0.99, 1 / 3), xycoords=("axes fraction", "data"), ha="right", va="bottom", size=8
    )


def _curve(axis: Any, arms: Mapping[float, Arm], name: str, colour: str, text: str, *, absolute: bool = False) -> None:
    estimates = [arm.estimate(name, absolute=absolute) for arm in arms.values()]
    weights = list(arms)
    axis.plot(weights, [e.value for e in estimates], "o-", color=colour, label=text)
    axis.fill_between(weights, [e.low for e in estimates], [e.high for e in estimates], color=colour, alpha=0.2)


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
