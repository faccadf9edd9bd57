"""The leaderboard's figures: the scores of the methods, and performance against the gap on each task."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.assessment.plots import BLUE, INK, PALE, dot_plot, save_figure, subplots
from fair_envs.leaderboard.jobs import CONSTANT, RANDOM, REWARD_ONLY
from fair_envs.leaderboard.rows import BOUND, Row
from fair_envs.leaderboard.scores import Score, TaskBoard, TaskScore
from fair_envs.metrics import Estimate

COLUMNS = 5  # panels of a task in a row
MARKS = "Dx*^svPph<>8"  # of PPO, random and the rules
LOOK: dict[str, Any] = {"markersize": 4, "linewidth": 1.2, "elinewidth": 0.6}


def draw_scores(found: Mapping[str, Score], path: Path) -> None:
    """Save the scores of the methods as dots with intervals, best first."""
    titles = {
        "area": "area (0: PPO's mean, 1: ideal)",
        "area_of_one": "area with one strength for all tasks",
        "performance": "performance (0: random, 1: PPO)",
        "unfairness": "unfairness (0: fair, 1: PPO)",
    }
    most = max(one.tasks for one in found.values())
    labels = {
        name: name if one.tasks == most else f"{name} ({one.tasks} of {most} tasks)" for name, one in found.items()
    }
    panels = {
        title: {labels[name]: {"": getattr(one, field)} for name, one in found.items()}
        for field, title in titles.items()
    }
    dot_plot(panels, path, label="mean over tasks", lines=(0.0, 1.0), one_unit=False)


def draw_tasks(
    found: Mapping[str, Score], numbers: Callable[[TaskScore], Mapping[str, Estimate]], path: Path, **given: Any
) -> None:
    """Save numbers of the methods on each task with scores as dots with intervals; ``given`` is for `dot_plot`."""
    tasks = dict.fromkeys(env_id for one in found.values() for env_id in one.of_tasks)
    panels = {
        env_id: {name: numbers(one.of_tasks[env_id]) for name, one in found.items() if env_id in one.of_tasks}
        for env_id in tasks
    }
    dot_plot(panels, path, one_unit=False, **given)


def draw_task(board: TaskBoard, rows: Sequence[Row], path: Path) -> None:
    """Save performance against the gap, with a panel for each method; other methods are pale.

    All panels have the same axes and policies without training. On tasks with scores, the axes are the surroundings of
    the reward-only method, and a title says how many strengths are outside.
    """
    methods = board.methods or [""]
    figure, axes = subplots(len(methods), columns=COLUMNS, size=(2.7, 2.3), sharex=True, sharey=True)
    trained = [row for row in rows if row.key.name in board.methods]
    near = None if board.unscored else _near(board, rows)
    for axis, method in zip(axes.flat, methods, strict=False):
        own = [row for row in trained if row.key.name == method]
        others = _bars([row for row in trained if row not in own])
        axis.plot(others["x"], others["y"], "o", color=PALE, markersize=3)
        _draw_reference(axis, board, rows)
        path_of = _bars(own)
        axis.plot(path_of["x"], path_of["y"], color=BLUE, linewidth=1.2)
        for k, row in enumerate(own):  # from weak to strong
            axis.errorbar(**_bars([row]), fmt="o", color=BLUE, **{**LOOK, "markersize": 3 + 2 * k})
        outside = 0 if near is None else sum(not _inside(row, near) for row in own)
        axis.set_title(f"{method} ({outside} of {len(own)} outside)" if outside else method, fontsize="medium")
    if near is not None:
        axes.flat[0].set(**near)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    figure.supxlabel("gap between groups (0 is fair; grey: noise floor)")
    figure.supylabel("performance")
    save_figure(figure, path)


def _draw_reference(axis: Any, board: TaskBoard, rows: Sequence[Row]) -> None:
    """Draw the reward-only method, the policies without training and those from outside.

    Each has its mark, but all constant actions have the same one.
    """
    names = [REWARD_ONLY, RANDOM, *board.distinct_rules, *board.bounds, *(key.name for key in board.entries)]
    labels = {name: f"{name} ({BOUND})" if name in board.bounds else name for name in names}
    labels |= {name: CONSTANT.strip() for name in names if name.startswith(CONSTANT)}
    for label, mark in zip(dict.fromkeys(labels.values()), cycle(MARKS)):
        own = [row for row in rows if labels.get(row.key.name) == label]
        axis.errorbar(**_bars(own), fmt=mark, color=INK, fillstyle="none", label=label, **{**LOOK, "markersize": 6})
    floors: list[Any] = [row.cells["noise floor"] for row in rows if row.key not in board.entries]
    axis.axvspan(0, np.nanmean(floors), color="#eeeeee", zorder=0)


def _inside(row: Row, limits: Mapping[str, tuple[float, float]]) -> bool:
    """Return whether the point of a row is within the limits of a panel."""
    return all(
        low <= row.cells[title].value <= high  # type: ignore[union-attr]
        for title, (low, high) in zip(("gap", "performance"), limits.values(), strict=True)
    )


def _bars(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the gaps and performances of rows, and their intervals, as arguments of `errorbar`."""
    found: dict[str, Any] = {}
    for axis, title in (("x", "gap"), ("y", "performance")):
        of: list[Any] = [row.cells[title] for row in rows]
        found[axis] = [e.value for e in of]
        found[f"{axis}err"] = [[e.value - e.low for e in of], [e.high - e.value for e in of]]
    return found


def _near(board: TaskBoard, rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Return the limits of a panel with the rows up to the reward-only method's gap and little less performance."""
    low, high = (arm.values("performance").mean() for arm in (board.random, board.reward_only))
    (gap,) = (row.cells["gap"] for row in rows if row.key.name == REWARD_ONLY)
    assert isinstance(gap, Estimate)
    bars = _bars([row for row in rows if row.key not in board.entries])
    least, widest = high - (high - low) / 4, 1.1 * gap.high
    shown = [y for x, y in zip(bars["x"], bars["y"], strict=True) if x <= widest and y >= least]
    margin = 0.15 * (max(shown) - min(shown)) or 0.05 * (high - low)
    return {"xlim": (-0.05 * gap.high, widest), "ylim": (min(shown) - margin, max(shown) + margin)}
