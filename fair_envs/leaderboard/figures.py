"""The leaderboard's figures: the scores of the methods, and performance against the gap on each task."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.assessment.plots import INK, dot_plot, save_figure, subplots
from fair_envs.leaderboard.jobs import RANDOM, REWARD_ONLY
from fair_envs.leaderboard.rows import BOUND, Row
from fair_envs.leaderboard.scores import Score, TaskBoard, TaskScore
from fair_envs.metrics import Estimate

LINES = ("o-", "s--", "^:")  # markers and lines of methods; the colours repeat after ten


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
    """Save performance against the gap: a line for each method through its strengths, and dots for other policies.

    Where the task has scores, a second panel enlarges the surroundings of the reward-only method.
    """
    panels = 1 if board.unscored else 2
    figure, axes = subplots(panels, columns=panels, size=(3 / panels + 4.5, 4.8))
    for axis in axes.flat:
        _draw_rows(axis, board, rows)
        axis.set(xlabel="gap between groups (0 is fair; grey: noise floor)", ylabel="performance", title=board.env_id)
    if panels == 2:
        axes.flat[-1].set(**_near(board, rows), title="around the reward-only method")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize="small")
    save_figure(figure, path)


def _draw_rows(axis: Any, board: TaskBoard, rows: Sequence[Row]) -> None:
    """Draw the rows of a task with their intervals."""
    look: dict[str, Any] = {"markersize": 4, "linewidth": 1.2, "elinewidth": 0.6}
    styles = {method: {"fmt": LINES[k // 10 % 3], "color": f"C{k % 10}"} for k, method in enumerate(board.methods)}
    for method, style in {**styles, REWARD_ONLY: {"fmt": "D", "color": INK}}.items():
        own = [row for row in rows if row.key.name == method]
        axis.errorbar(**_bars(own), label=method, **look, **style)
    entries = {key.name for key in board.entries}
    others = [row for row in rows if row.key.name in (RANDOM, *board.distinct_rules, *board.bounds, *entries)]
    for k, row in enumerate(others):
        name, bars = row.key.name, _bars([row])
        axis.errorbar(**bars, fmt="x" if name == RANDOM else "*", color=INK, **{**look, "markersize": 8})
        text = name + (f" ({BOUND})" if name in board.bounds else "")
        below = 4 if k % 2 else -11  # so that neighbouring names do not overlap
        place = bars["x"][0], bars["y"][0]
        axis.annotate(text, place, xytext=(5, below), textcoords="offset points", fontsize=8)
    floors: list[Any] = [row.cells["noise floor"] for row in rows if row.key not in board.entries]
    axis.axvspan(0, np.nanmean(floors), color="#eeeeee", zorder=0)


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
