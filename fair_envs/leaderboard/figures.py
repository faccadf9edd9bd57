"""The leaderboard's figures: the scores of the methods, and performance against the gap on each task."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from fair_envs.assessment.plots import BLUE, INK, PALE, dot_plot, save_figure, subplots
from fair_envs.leaderboard.jobs import CONSTANT, RANDOM, REWARD_ONLY
from fair_envs.leaderboard.rows import BOUND, Row
from fair_envs.leaderboard.scores import Score, TaskBoard, TaskScore
from fair_envs.metrics import Estimate

PANELS = 5  # panels of a task in a row
PANEL = 2.7, 2.3  # size of one in inches
MARKS = "Dx*^svPph<>8"  # of PPO, random and the rules
Limits = Mapping[str, tuple[float, float]]  # "xlim" and "ylim"
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
    the reward-only method, see `near`.
    """
    methods = board.methods or [""]
    limits = None if board.unscored else near(board, rows)
    figure, axes = subplots(len(methods), columns=PANELS, size=PANEL, sharex=True, sharey=True)
    figure.set_figwidth(max(figure.get_figwidth(), 2 * PANEL[0]))  # one panel alone has no room for the legend
    for axis, method in zip(axes.flat, methods, strict=False):
        own = [row for row in rows if row.key.name == method]
        others = [row for row in rows if row.key.name in board.methods and row.key.name != method]
        axis.plot(*_points(others), "o", color=PALE, markersize=3)
        _draw_reference(axis, board, rows, limits)
        axis.plot(*_points(own), color=BLUE, linewidth=1.2)
        for k, row in enumerate(own):  # from weak to strong
            axis.errorbar(**_bars([row]), fmt="o", color=BLUE, **{**LOOK, "markersize": 3 + 2 * k})
        axis.set_title(titled(method, own, limits), fontsize="medium")
    if limits is not None:
        axes.flat[0].set(**limits)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    figure.supxlabel("gap between groups (0 is fair; grey: noise floor of PPO)")
    figure.supylabel("performance")
    save_figure(figure, path)


def _draw_reference(axis: Any, board: TaskBoard, rows: Sequence[Row], limits: Limits | None) -> None:
    """Draw the reward-only method, the policies without training and those from outside that are within limits.

    Each has its mark, but all constant actions have the same one.
    """
    names = [REWARD_ONLY, RANDOM, *board.distinct_rules, *sorted(board.bounds), *(key.name for key in board.entries)]
    labels = {name: f"{name} ({BOUND})" if name in board.bounds else name for name in names}
    labels |= {name: CONSTANT.strip() for name in names if name.startswith(CONSTANT)}
    for label, mark in zip(dict.fromkeys(labels.values()), cycle(MARKS)):
        own = [row for row in rows if labels.get(row.key.name) == label and inside(row, limits)]
        if own:
            look = {**LOOK, "markersize": 6, "markerfacecolor": "white", "label": label}
            axis.errorbar(**_bars(own), fmt=mark, color=INK, **look)
    axis.axvspan(0, board.reward_only.values("noise").mean(), color="#eeeeee", zorder=0)


def titled(method: str, rows: Sequence[Row], limits: Limits | None) -> str:
    """Return the title of a method's panel, which says how many of its strengths are outside the limits."""
    outside = sum(not inside(row, limits) for row in rows)
    return f"{method} ({outside} of {len(rows)} outside)" if outside else method


def inside(row: Row, limits: Limits | None) -> bool:
    """Return whether the point of a row is within the limits of a panel; True without limits."""
    (x,), (y,) = _points([row])
    if limits is None:
        return True
    (left, right), (low, high) = limits["xlim"], limits["ylim"]
    return bool(left <= x <= right and low <= y <= high)


def _points(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return the gaps and the performances of rows."""
    bars = _bars(rows)
    return bars["x"], bars["y"]


def _bars(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the gaps and performances of rows, and their intervals, as arguments of `errorbar`."""
    found: dict[str, Any] = {}
    for axis, title in (("x", "gap"), ("y", "performance")):
        of: list[Any] = [row.cells[title] for row in rows]
        found[axis] = [e.value for e in of]
        found[f"{axis}err"] = [[e.value - e.low for e in of], [e.high - e.value for e in of]]
    return found


def near(board: TaskBoard, rows: Sequence[Row]) -> Limits:
    """Return the limits of a panel with the rows up to the reward-only method's gap and little less performance.

    Policies that use the ground truth and those from outside may be beyond them.
    """
    low, high = (arm.values("performance").mean() for arm in (board.random, board.reward_only))
    (gap,) = (row.cells["gap"] for row in rows if row.key.name == REWARD_ONLY)
    assert isinstance(gap, Estimate)
    bars = _bars([row for row in rows if row.key not in board.entries and row.key.name not in board.bounds])
    least, widest = high - (high - low) / 4, 1.1 * gap.high
    shown = [y for x, y in zip(bars["x"], bars["y"], strict=True) if x <= widest and y >= least]
    margin = 0.15 * (max(shown) - min(shown)) or 0.05 * (high - low)
    return {"xlim": (-0.05 * gap.high, widest), "ylim": (min(shown) - margin, max(shown) + margin)}
