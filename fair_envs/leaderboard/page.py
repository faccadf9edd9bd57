"""The leaderboard's page: the answer first, then scores, controls, and a table and a picture for each task."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.assessment.plots import INK, dot_plot, save_figure, subplots
from fair_envs.experiments import tables
from fair_envs.experiments.seeds import BEGUN, TABLE, Arm, write_rows
from fair_envs.leaderboard.board import Coverage, arms_in, coverage, scaled, verified_entry
from fair_envs.leaderboard.controls import Control, check, controls
from fair_envs.leaderboard.jobs import (
    AGAIN,
    RANDOM,
    REWARD_ONLY,
    UNITS,
    ArmKey,
    Scale,
    equal_terms,
    included,
    scales,
)
from fair_envs.leaderboard.rows import BOUND, COLUMNS, Row, as_json, markdown, rows_of
from fair_envs.leaderboard.scores import Score, TaskBoard, TaskScore, boards_of, scores
from fair_envs.metrics import Estimate
from fair_envs.registration import TABLE as IDS
from fair_envs.support.files import write_json
from fair_envs.support.progress import progress_bar
from fair_envs.tasks import task_of

PAGE = "index.md"
TOP = 5  # methods named in the answer
PASSED = {True: "yes", False: "**no**", None: "not applicable"}


@dataclass(frozen=True)
class Page:
    """The page of a leaderboard.

    It shows, compares and controls only tasks of which all rows are stored. Otherwise results would be chosen while
    they come in, and controls would fail for want of seeds.

    Attributes:
        arms: The arms by their keys.
        scale: Name of the scale.
        coverage: How many rows are stored, by task.
    """

    arms: Mapping[ArmKey, Arm]
    scale: str
    coverage: Mapping[str, Coverage]

    @cached_property
    def boards(self) -> list[TaskBoard]:
        """The tasks of which all rows are stored."""
        return [board for board in boards_of(self.arms) if self.coverage[board.env_id].complete]

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The rows of these tasks."""
        return {board.env_id: rows_of(board) for board in self.boards}

    @cached_property
    def scores(self) -> dict[str, Score]:
        """The scores of the methods, best first."""
        return scores(self.boards)

    @cached_property
    def controls(self) -> list[Control]:
        """The outcomes of the controls."""
        return controls(self.boards)

    def write(self, out: Path, *, progress: bool = False) -> Path:
        """Write the page, its figures and its data; return the page's path.

        Raises:
            FailedControlError: A control failed; nothing is written.
        """
        check(self.controls)
        out.mkdir(parents=True, exist_ok=True)
        write_rows(out / TABLE, [row for arm in self.arms.values() for row in arm.rows])
        (out / BEGUN).write_text(self.scale)
        write_json(out / "scores.json", self.as_dict())
        self.draw(out, progress=progress)
        path = out / PAGE
        path.write_text("\n\n".join(self.parts()) + "\n")
        return path

    def draw(self, out: Path, *, progress: bool = False) -> None:
        """Write the figures."""
        with progress_bar("drawing", total=len(self.boards) + 1, unit="figures", shown=progress) as advance:
            if self.scores:
                draw_scores(self.scores, out / "scores.png")
            advance()
            for board in self.boards:
                draw_task(board, self.rows[board.env_id], out / f"{board.env_id}.png")
                advance()

    def as_dict(self) -> dict[str, object]:
        """Return the scores and the tables of the tasks as plain data."""
        scored = {
            name: {field: _json(value) for field, value in one._asdict().items()} for name, one in self.scores.items()
        }
        tasks = {env_id: [row.as_dict() for row in rows] for env_id, rows in self.rows.items()}
        return {"scores": scored, "tasks": tasks}

    def parts(self, *, table: str | None = None) -> Iterator[str]:
        """Yield the parts of the page.

        Args:
            table: A table of all rows; None: each task has its own.
        """
        yield "# Leaderboard"
        yield "\n".join(f"* {line}" for line in self.answer())
        if self.scores:
            yield "![Scores of the methods](scores.png)"
            yield "## Scores over tasks"
            yield self.score_table()
        if table is not None:
            yield "## All methods and strengths"
            yield table
        yield self.reading()
        yield "## Controls"
        yield tables.markdown(
            ["control", "passed", "evidence"],
            [[one.name, PASSED[one.passed], one.evidence] for one in self.controls],
        )
        for board in self.boards:
            yield f"## {board.env_id}"
            yield task_of(board.env_id).summary + (f" **No scores: {board.unscored}.**" if board.unscored else "")
            yield in_short(board, self.rows[board.env_id])
            yield f"![Performance against unfairness]({board.env_id}.png)"
            if table is None:
                yield task_table(self.rows[board.env_id])
            yield learned_from(board)
        yield "## How it was made"
        yield self.made()

    def answer(self) -> list[str]:
        """Return the answer: which method, at what cost, who pays, and where a simple rule does as well."""
        return [*self.about(), *self.found()]

    def about(self) -> Iterator[str]:
        """Yield what must be said before the results: whether they are a test, and whether rows are missing."""
        if self.scale == "smoke":
            yield "**This is a test of the machinery, not a comparison of methods.**"
        if self.missing:
            yield f"**Preliminary: rows are missing.** {self.missing} What follows is about the complete tasks only."

    @property
    def missing(self) -> str:
        """How many rows of how many are stored, and which tasks are complete; "": all are."""
        stored, planned = (sum(own) for own in zip(*self.coverage.values(), strict=True))
        if stored == planned:
            return ""
        complete = [env_id for env_id, own in self.coverage.items() if own.complete]
        others = [
            f"{env_id} ({own.stored:,} of {own.planned:,})" for env_id, own in self.coverage.items() if not own.complete
        ]
        return (
            f"{stored:,} of {planned:,} rows are stored. Complete: {', '.join(complete) or 'no task'} ({len(complete)} "
            f"of {len(self.coverage)}). Not complete, and so not shown, ranked or controlled: {', '.join(others)}."
        )

    def found(self) -> list[str]:
        """Return what was found on the tasks that are complete."""
        if not self.boards:
            return []
        trained = {name: one for name, one in self.scores.items() if name != AGAIN}
        lines = self._best(trained) if trained else ["No task has scores."]
        if scored := [board for board in self.boards if not board.unscored]:
            matched = {board.env_id: board.matched() for board in scored}
            found = [f"{env_id} ({as_code(names)})" for env_id, names in matched.items() if names]
            lines.append(
                f"**Where does a simple rule do about as well?** On {len(found)} of {len(scored)} tasks with scores, a "
                "scripted rule that does not know the truth about the people it decides on does about as well as the "
                "best trained method, or better" + (f": {'; '.join(found)}." if found else ".")
            )
        lines.append(self._dominating())
        unscored = [f"{board.env_id}: {board.unscored}" for board in self.boards if board.unscored]
        if unscored:
            lines.append(f"**Without scores**: {'; '.join(unscored)}.")
        return lines

    @property
    def _tasks(self) -> str:
        return f"{len(self.boards)} {'complete ' if self.missing else ''}tasks"

    def _dominating(self) -> str:
        """Return where a simple rule is better for everyone than trained arms."""
        found = []
        for board in self.boards:
            trained = sum(len(board.of(name)) for name in [*board.methods, REWARD_ONLY])
            rules = board.dominating()
            if rules:
                best = max(rules, key=lambda name: rules[name])
                found.append(f"{board.env_id} (`{best}`: {rules[best]} of {trained} trained arms)")
        return (
            f"**Where is a simple rule at least as good for everyone?** On {len(found)} of {self._tasks}, a scripted "
            "rule performs at least as well as some trained arms (methods and strengths) and gives every group at "
            "least as much, by means over seeds" + (f": {'; '.join(found)}." if found else ".")
        )

    def _best(self, trained: Mapping[str, Score]) -> list[str]:
        """Return which method is best, what it costs, and who pays."""
        best, score = next(iter(trained.items()))
        rivals = [
            name
            for name, one in trained.items()
            if name != best and one.tasks == score.tasks and one.area.high >= score.area.low
        ]
        worst = ", ".join(f"`{name}` ({_end(trained[name], 'area', min)})" for name in rivals[:TOP])
        others = f"Not clearly worse on average, with the lowest area on a task: {worst}."
        fewer = [name for name, one in trained.items() if one.tasks < score.tasks]
        unranked = f" Not ranked, because they run on fewer tasks: {as_code(fewer)}." if fewer else ""
        return [
            f"**Which method?** On average over tasks, `{best}` dominates the largest part of the room between unfair "
            f"and fair: an area of {tables.show(score.area, digits=2)} (0: reward-only PPO, 1: its performance without "
            f"a gap; interquartile mean over scored tasks, n = {score.tasks}; on single tasks {_span(score, 'area')}). "
            f"{others if rivals else 'No other interval reaches it.'}{unranked}",
            f"**What does it cost?** `{best}` reaches {_percent(score.performance)} of PPO's performance above random, "
            f"and has {_percent(score.unfairness)} of PPO's gap.",
            f"**Who pays?** On average over tasks, `{best}` changes the rate of the group that was best off by "
            f"{_change(score.mean('ahead'))} of PPO's gap ({_span(score, 'ahead')}), and of the group that was worst "
            f"off by {_change(score.mean('behind'))} ({_span(score, 'behind')}). Negative changes are losses.",
        ]

    def score_table(self) -> str:
        """Return the scores."""
        header = ["method", "tasks", "area", "performance", "unfairness", "better than PPO"]
        header += ["change of the group ahead", "of the group behind", "a rule does about as well", "strengths"]
        rows: list[list[tables.Cell]] = [
            [
                name,
                str(one.tasks),
                one.area,
                one.performance,
                one.unfairness,
                one.improvement,
                _change(one.mean("ahead")),
                _change(one.mean("behind")),
                f"{one.matched} of {one.tasks}",
                ", ".join(f"{value:g} ({tasks})" for value, tasks in one.strengths.items()),
            ]
            for name, one in self.scores.items()
        ]
        return tables.markdown(header, rows)

    def reading(self) -> str:
        """Return how to read the scores and the tables."""
        meanings = tables.markdown(
            ["column", "meaning"], [[title, column.meaning] for title, column in COLUMNS.items()]
        )
        return (
            "Brackets hold 95 % intervals of the stratified bootstrap over training seeds, also of those of PPO and "
            "random, by which numbers are scaled. *Performance*: random 0, PPO 1. *Unfairness*: the gap above its "
            "noise floor, fair 0, PPO 1. *Area*: the part of the rectangle between random and PPO, and between PPO's "
            "gap and none, that a run dominates. All three are interquartile means over tasks and seeds. Each seed has "
            "the strength that is best for the other seeds, so that several strengths are no advantage by themselves. "
            "*Better than PPO*: probability that a run has a larger area (0.5: none is better). *Change of the group "
            "ahead* and *behind*: the change of the rates of the best-off and the worst-off group of each seed, in "
            "parts of PPO's gap, mean over tasks; a negative change of both is levelling down. *A rule does about as "
            "well*: see the marks below. "
            "*Strengths*: the best strength over all seeds, with the number of tasks on which it is.\n\n"
            "The arm with the highest area of a task, below, is the highest of many by means over seeds, so its "
            "numbers are somewhat too high.\n\n"
            f"In the tables of methods and strengths, brackets hold Student's intervals over seeds.\n\n{meanings}"
        )

    def _left_out(self) -> str:
        """Return which methods were left out of a task, and why."""
        found = left_out(scales()[self.scale]) if self.scale in scales() else {}
        tasks = {board.env_id for board in self.boards}
        shown = [f"{name} ({why})" for name, why in found.items() if name.partition("/")[0] in tasks]
        return f"\n\nLeft out: {'; '.join(shown)}." if shown else ""

    def made(self) -> str:
        """Return how the leaderboard was made, and how to verify it."""
        rows = [row for arm in self.arms.values() for row in arm.rows]
        codes = sorted({row.code[:8] for row in rows})
        seeds = max((arm.seeds for arm in self.arms.values()), default=0)
        return (
            f"`fair-envs leaderboard --scale {self.scale}`: {len(self.arms)} arms, "
            f"{len(rows)} rows, up to {seeds} seeds, {sum(row.seconds for row in rows) / 3600:.1f} CPU hours of "
            f"training. The rows in `{TABLE}` were made by the code {', '.join(codes)}; each has the hash of its exact "
            "result. `fair-envs leaderboard verify ROW --out FOLDER` plays the policy of a row again and compares the "
            "result to the bit; with `--retrain` it trains it first. Settings are each method's recommended ones, "
            "which differ between tasks with several agents and those with one decision-maker, with two exceptions: "
            "methods learn from the rate that is compared where they have a setting for it, and from nothing that only "
            "a part of them can observe; limits and tolerances are parts of what the method has without them, from "
            f"trainings with other seeds (`{UNITS.name}`). Nothing was tuned on the seeds of the results."
            f"{self._left_out()}"
        )


def page_of(
    folder: Path, *, methods: Sequence[str] = (), seeds: int | None = None, entries: Sequence[Path] = ()
) -> Page:
    """Return the page of a leaderboard's folder.

    Args:
        folder: The folder.
        methods: Methods to show, besides the controls; empty: all of the scale.
        seeds: Number of seeds to show; None: all.
        entries: Folders of entries from outside, which are verified.

    Raises:
        FileNotFoundError: The folder has no table.
        ValueError: An argument is unknown or outside its range, or an entry's result is not the one that it claims.
    """
    name = (folder / BEGUN).read_text()
    arms = arms_in(folder, methods=methods, seeds=seeds)
    covered = coverage(arms, scaled(name, methods=methods, seeds=seeds))
    return Page(arms | dict(verified_entry(own, scale=name) for own in entries), name, covered)


def left_out(scale: Scale) -> dict[str, str]:
    """Return the reasons why methods that train on a task have no arm there, by task and method."""
    return {
        f"{env_id}/{name}": why for env_id in scale.tasks or IDS for name, why in included(scale, env_id).items() if why
    }


def learned_from(board: TaskBoard) -> str:
    """Return what the methods of a task learn from besides the reward."""
    from fair_envs.baselines.methods import named, names

    rules, known = task_of(board.env_id).rules(), names()
    found: dict[str, list[str]] = {}
    for name in board.methods:
        if name in known:
            method = named(name)
            about = method.trains_on(board.env_id, rules, equal_terms(method, board.env_id, rules))
            found.setdefault(about or "nothing", []).append(name)
    listed = "; ".join(f"{about}: {as_code(names)}" for about, names in found.items())
    return f"What methods learn from besides the reward: {listed}."


def in_short(board: TaskBoard, rows: Sequence[Row]) -> str:
    """Return the best trained arm, the best rule, and what each group gets with them, in sentences."""
    column = "performance" if board.unscored else "area"
    trained = [row for row in rows if row.key.name in board.methods]
    rules = [row for row in rows if row.key.name in board.rules]
    told = [f"Reward-only PPO: {_of_groups(next(row for row in rows if row.key.name == REWARD_ONLY))}."]
    for what, found in (("Trained", trained), ("Scripted rule that does not know the truth", rules)):
        if found:
            best = max(found, key=lambda row: _size(row.cells[column]))
            strength = best.text("strength")
            name = f"`{best.key.name}{f' {strength}' if strength else ''}`"
            shown = f"{column} {_size(best.cells[column]):.3g}, " if column == "area" else ""
            told.append(f"{what} with the highest {column}, of {len(found)}: {name} ({shown}{_of_groups(best)}).")
    return "\n".join(f"* {line}" for line in told)


def _of_groups(row: Row) -> str:
    names = ("performance", "gap", "worst-off group", "best-off group")
    return ", ".join(f"{name} {row.text(name)}" for name in names)


def _size(cell: Any) -> float:
    """Return a cell's number; minus infinity if it is undefined."""
    value = cell.value if isinstance(cell, Estimate) else float(cell)
    return -np.inf if np.isnan(value) else value


def task_table(rows: Sequence[Row]) -> str:
    """Return the table of a task: random and scripted policies first, then the reward-only method."""
    return markdown(rows, [title for title in COLUMNS if title != "task"])


def as_code(names: Iterable[str]) -> str:
    """Return names of policies, as code."""
    return ", ".join(f"`{name}`" for name in names)


def _json(value: Estimate | float | TaskScore | Mapping[Any, Any]) -> object:
    """Return a field of a score for JSON."""
    if isinstance(value, TaskScore):
        return {name: as_json(number) for name, number in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else f"{key:g}": _json(one) for key, one in value.items()}
    return as_json(value)


def _change(part: float) -> str:
    """Return a change as text."""
    return "an unknown part" if np.isnan(part) else f"{round(100 * part):+d} %"


def _percent(estimate: Estimate) -> str:
    """Return a part and its interval as text."""
    value, low, high = (100 * number for number in (estimate.value, estimate.low, estimate.high))
    text, _, interval = tables.show(replace(estimate, value=value, low=low, high=high), digits=0).partition(" ")
    return f"{text} % {interval}".strip()


def _span(score: Score, name: str) -> str:
    """Return the lowest and the highest number of `TaskScore`, with the tasks on which they are."""
    return " to ".join(dict.fromkeys(_end(score, name, end) for end in (min, max)))


def _end(score: Score, name: str, end: Callable[..., Any]) -> str:
    """Return the number of `TaskScore` that is the lowest (`min`) or highest (`max`), and on which task."""
    numbers = {env_id: getattr(one, name) for env_id, one in score.of_tasks.items()}
    env_id = end(numbers, key=numbers.__getitem__)
    return f"{f'{numbers[env_id]:.2f}' if name == 'area' else _change(numbers[env_id])} on {env_id}"


# Figures --------------------------------------------------------------------------------------------------------------


def draw_scores(found: Mapping[str, Score], path: Path) -> None:
    """Save the scores of the methods as dots with intervals, best first."""
    titles = {"area": "area (1 is ideal)", "performance": "performance (PPO 1)", "unfairness": "unfairness (PPO 1)"}
    panels = {
        title: {name: {"": getattr(one, field)} for name, one in found.items()} for field, title in titles.items()
    }
    dot_plot(panels, path, label="interquartile mean over tasks and seeds", one_unit=False)


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


LINES = ("o-", "s--", "^:")


def _draw_rows(axis: Any, board: TaskBoard, rows: Sequence[Row]) -> None:
    """Draw the rows of a task with their intervals."""
    look: dict[str, Any] = {"markersize": 4, "linewidth": 1.2, "elinewidth": 0.6}
    styles = {method: {"fmt": LINES[k // 10 % 3], "color": f"C{k % 10}"} for k, method in enumerate(board.methods)}
    for method, style in {**styles, REWARD_ONLY: {"fmt": "D", "color": INK}}.items():
        own = [row for row in rows if row.key.name == method]
        axis.errorbar(**_bars(own), label=method, **look, **style)
    others = [row for row in rows if row.key.name in (RANDOM, *board.rules, *board.bounds)]
    for k, row in enumerate(others):
        name, bars = row.key.name, _bars([row])
        axis.errorbar(**bars, fmt="x" if name == RANDOM else "*", color=INK, **{**look, "markersize": 8})
        text = name + (f" ({BOUND})" if name in board.bounds else "")
        below = 4 if k % 2 else -11  # so that neighbouring names do not overlap
        place = bars["x"][0], bars["y"][0]
        axis.annotate(text, place, xytext=(5, below), textcoords="offset points", fontsize=8)
    axis.axvspan(0, np.nanmean([row.cells["noise floor"] for row in rows]), color="#eeeeee", zorder=0)


def _bars(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the gaps and performances of rows, and their intervals, as arguments of `errorbar`."""
    found: dict[str, Any] = {}
    for axis, title in (("x", "gap"), ("y", "performance")):
        of: list[Any] = [row.cells[title] for row in rows]
        found[axis] = [e.value for e in of]
        found[f"{axis}err"] = [[e.value - e.low for e in of], [e.high - e.value for e in of]]
    return found


def _near(board: TaskBoard, rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Return the limits of a panel with gaps and performances up to, and a quarter below, the reward-only method's."""
    low, high = (arm.values("performance").mean() for arm in (board.random, board.reward_only))
    (gap,) = (row.cells["gap"] for row in rows if row.key.name == REWARD_ONLY)
    assert isinstance(gap, Estimate)
    best = np.nanmax(_bars(rows)["y"])
    return {"xlim": (-0.05 * gap.high, 1.1 * gap.high), "ylim": (high - (high - low) / 4, best + 0.1 * (best - low))}
