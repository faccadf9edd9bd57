"""The leaderboard's page: the answer first, then scores, controls, and a table and a picture for each task."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.assessment.plots import INK, dot_plot, save_figure, subplots
from fair_envs.experiments import tables
from fair_envs.experiments.seeds import BEGUN, TABLE, Arm, made_by, write_rows
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
from fair_envs.leaderboard.scores import (
    Levelling,
    Score,
    TaskBoard,
    TaskScore,
    boards_of,
    difference,
    scores,
    task_score,
)
from fair_envs.metrics import Estimate
from fair_envs.registration import TABLE as IDS
from fair_envs.support.files import write_json
from fair_envs.support.progress import progress_bar
from fair_envs.tasks import task_of

PAGE = "index.md"
SCORES_CAPTION = (
    "Means over tasks with 95 % intervals over training seeds, best first; methods that run on fewer tasks stand last. "
    "Dotted: 0 and 1. *ppo again* is PPO with other seeds: its distance from PPO is chance."
)
TASK_CAPTION = (
    "Better is up (performance) and to the left (a smaller gap). A line joins the strengths of a method, from weak to "
    "strong as in the table; bars are 95 % intervals over seeds. Diamond: reward-only PPO. Stars: scripted rules. "
    "Cross: random decisions. Grey: gaps that chance gives."
)
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
    def contenders(self) -> dict[str, Score]:
        """The scores of the methods without the control, best first."""
        return {name: one for name, one in self.scores.items() if name != AGAIN}

    @cached_property
    def behind(self) -> dict[str, Estimate]:
        """How far the first method's area is above each other one's, on the tasks of both, see `difference`.

        All pairs are counted in Bonferroni's correction, because the first method is chosen by its area.
        """
        first, *others = self.contenders
        level = 1 - 0.05 / max(math.comb(len(self.contenders), 2), 1)
        return {name: difference(first, name, self.boards, level=level) for name in others}

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
            if self.contenders:
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
        if self.contenders:
            yield f"![Scores of the methods](scores.png)\n\n{SCORES_CAPTION}"
            yield "## Task by task"
            yield self.who_pays()
            yield "## Scores over tasks"
            yield self.score_table()
        if table is not None:
            yield "## All methods and strengths"
            yield table
        yield self.reading()
        yield "## Controls"
        yield tables.markdown(
            ["control", "passed", "evidence", "what it detects"],
            [[one.name, PASSED[one.passed], one.evidence, one.detects] for one in self.controls],
        )
        for board in self.boards:
            yield f"## {board.env_id}"
            yield task_of(board.env_id).summary + (f" **No scores: {board.unscored}.**" if board.unscored else "")
            yield in_short(board, self.rows[board.env_id])
            yield f"![Performance against the gap]({board.env_id}.png)\n\n{TASK_CAPTION}"
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
        lines = self._best() if self.contenders else ["No task has scores."]
        lines += [self._matched(), self._dominating()]
        unscored = [f"{board.env_id}: {board.unscored}" for board in self.boards if board.unscored]
        if unscored:
            lines.append(f"**Without scores**: {'; '.join(unscored)}.")
        cautions = {board.env_id: task_of(board.env_id).caution for board in self.boards}
        told = [f"{env_id}: {caution}" for env_id, caution in cautions.items() if caution]
        if told:
            lines.append(f"**What good numbers do not show.** {' '.join(told)}")
        return lines

    @property
    def _tasks(self) -> str:
        return f"{len(self.boards)} {'complete ' if self.missing else ''}tasks"

    def _matched(self) -> str:
        """Return where a simple rule does about as well as the best trained method."""
        matched = {board.env_id: board.matched() for board in self.boards}
        found = [f"{env_id} ({as_code(names)})" for env_id, names in matched.items() if names]
        ahead = [
            f"{board.env_id} ({round(100 * board.learned)} % of `{board.best_rule}`)"
            for board in self.boards
            if board.learned < 1
        ]
        return (
            f"**Where does a simple rule do about as well?** On {len(found)} of {self._tasks}, a scripted rule that "
            "does not know the truth about the people it decides on does about as well as the best trained method, or "
            "better"
            + (f": {'; '.join(found)}." if found else ".")
            + (f" Above random, PPO itself reaches less than a rule on {', '.join(ahead)}." if ahead else "")
        )

    def _dominating(self) -> str:
        """Return where a simple rule is better for everyone than trained arms."""
        found = []
        for board in self.boards:
            rules = board.dominating()
            if rules:
                name, most = max(rules.items(), key=lambda item: item[1].arms)
                found.append(f"{board.env_id} (`{name}`: {most.arms} of {most.of}, {most.shown} shown)")
        return (
            f"**Where is a simple rule at least as good for everyone?** On {len(found)} of {self._tasks}, a scripted "
            "rule performs at least as well as some trained policies (methods and strengths) and gives every group at "
            "least as much, by means over seeds; *shown*: by intervals, it performs better"
            + (f": {'; '.join(found)}." if found else ".")
        )

    def _best(self) -> list[str]:
        """Return which method is best, how sure that is, what it costs, and who pays."""
        name = self.ranked[0]
        score = self.contenders[name]
        chance = f" ({self.scores[AGAIN].area.value:.2f} for PPO with other seeds)" if AGAIN in self.scores else ""
        which = (
            f"**Which method?** If you can try several strengths on your own problem: `{name}`. Its area is "
            f"{_short(score.area)} on average over {score.tasks} tasks, and {_span(score, 'area')}. The area is 0 for "
            f"the means of reward-only PPO{chance}, and 1 for PPO's performance without a gap."
        )
        if steady := self.steady:
            own = self.contenders[steady]
            known = [other for other in self.ranked if other != steady and self.contenders[other].common]
            close = [other for other in known if not self.contenders[other].area_of_one.high < own.area_of_one.low]
            close.sort(key=lambda other: -self.contenders[other].area_of_one.value)
            told = [f"`{other}` {_one(self.contenders[other])}" for other in close]
            which += f" With one strength for all tasks: `{steady}` {_one(own)}"
            which += f"; not clearly less: {', '.join(told)}." if close else "."
        return [
            which,
            self._sure(name, score),
            f"**What does it cost?** `{name}` has {_span(score, 'performance')} of PPO's performance above random, and "
            f"a gap above noise of {_span(score, 'unfairness')} of PPO's.",
            f"**Who pays?** With `{name}`, the group that was worst off {_changed(score, 'gain', 1)}; the group that "
            f"was best off {_changed(score, 'loss', -1)}, by 95 % intervals over seeds.",
        ]

    @cached_property
    def ranked(self) -> list[str]:
        """The methods that were run on the most tasks, best first."""
        most = max(one.tasks for one in self.contenders.values())
        return [name for name, one in self.contenders.items() if one.tasks == most]

    @property
    def steady(self) -> str:
        """The ranked method with the largest area with one strength for all tasks; "": there is one task."""
        if self.contenders[self.ranked[0]].tasks < 2:
            return ""
        known = [name for name in self.ranked if self.contenders[name].common]
        return max(known, key=lambda name: self.contenders[name].area_of_one.value, default="")

    def _sure(self, name: str, score: Score) -> str:
        """Return how sure it is that a method is the best one."""
        rivals = [other for other in self.ranked[1:] if not self.behind[other].low > 0]
        lowest = ", ".join(f"`{other}` ({_end(self.contenders[other], 'area', min)})" for other in rivals)
        text = "**How sure is that?** "
        if rivals:
            text += f"Not shown to have a smaller area (all pairs, Bonferroni), with the lowest on a task: {lowest}. "
        elif len(self.ranked) > 1:
            text += "All other ranked methods are shown to have a smaller area. "
        tasks = list(score.of_tasks)
        if len(tasks) > 2:
            without = {task: self._first([one for one in tasks if one != task]) for task in tasks}
            others = [f"`{first}` (without {task})" for task, first in without.items() if first != name]
            text += f"If a task is left out, the first is {', '.join(others) or f'`{name}` all the same'}. "
        alone = [board.env_id for board in self.boards if board.env_id in score.of_tasks and not board.matched()]
        if 0 < len(alone) < len(tasks):
            text += f"On the tasks on which no simple rule does as well ({', '.join(alone)}), it is "
            text += f"`{self._first(alone)}`. "
        seeds = " or ".join(map(str, sorted({board.reward_only.seeds for board in self.boards})))
        text += f"Intervals are about training seeds ({seeds} each), not about other tasks."
        if fewer := [other for other in self.contenders if other not in self.ranked]:
            better = [other for other in fewer if self.behind[other].value < 0]
            text += f" Not ranked, because they run on fewer tasks: {as_code(fewer)}" + (
                f" (larger mean area than `{name}` on their tasks: {as_code(better)})." if better else "."
            )
        return text

    def _first(self, tasks: Sequence[str]) -> str:
        """Return the ranked method with the largest mean area on some of the tasks."""
        return max(self.ranked, key=lambda name: self.contenders[name].mean(tasks))

    def score_table(self) -> str:
        """Return the scores."""
        header = ["method", "tasks", "area", "area with one strength", "area, interquartile mean", "performance"]
        header += ["unfairness", "better than PPO", "less than the first", "a rule does about as well", "strengths"]
        rows: list[list[tables.Cell]] = [
            [
                name,
                str(one.tasks),
                one.area,
                ", ".join(f"{_strength(strength)}{area.value:.2f}" for strength, area in one.common.items()),
                one.interquartile,
                one.performance,
                one.unfairness,
                one.improvement,
                self.behind.get(name, ""),
                f"{one.matched} of {one.tasks}",
                ", ".join(f"{value:g} ({tasks})" for value, tasks in one.strengths.items()),
            ]
            for name, one in self.scores.items()
        ]
        return tables.markdown(header, rows)

    def who_pays(self) -> str:
        """Return what the first method does on each task at its best strength, and the steady one at its one."""
        header = ["method", "task", "strength", "performance", "unfairness", "rate of the group ahead, PPO", "change"]
        header += ["rate of the group behind, PPO", "change", "a rule does about as well"]
        boards = {board.env_id: board for board in self.boards}
        found = list(self.contenders[self.ranked[0]].of_tasks.values())
        if steady := self.steady:
            own = self.contenders[steady]
            found += [task_score(boards[env_id], ArmKey(env_id, steady, own.steadiest)) for env_id in own.of_tasks]
        rows: dict[ArmKey, list[tables.Cell]] = {}
        for one in found:
            key, base = one.key, boards[one.key.env_id].reward_only
            told = [key.name, key.env_id, _strength(key.strength, after="")]
            told += [f"{one.performance:.2f}", f"{one.unfairness:.2f}"]
            rates = [base.estimate("best"), -one.levels.loss, base.estimate("worst"), one.levels.gain]
            rows[key] = [*told, *rates, as_code(one.as_good)]
        return tables.markdown(header, list(rows.values()))

    def reading(self) -> str:
        """Return how to read the scores and the tables."""
        meanings = tables.markdown(
            ["column", "meaning"], [[title, column.meaning] for title, column in COLUMNS.items()]
        )
        return (
            "Brackets hold 95 % intervals of the stratified bootstrap over training seeds, also of those of PPO and "
            "random, by which numbers are scaled; with 5 seeds they are somewhat too narrow. *Performance*: random "
            "0, PPO 1. *Unfairness*: the gap above its noise floor, fair 0, PPO 1; above 1 is more unfair than PPO. "
            "*Area*: the part of the rectangle between random and PPO, and between PPO's gap and none, that a run "
            "dominates; it is 0 for PPO's means, and for everything that performs like random or has a larger gap "
            "than PPO. These are means over tasks and seeds. Each seed has the strength that is best for the other "
            "seeds of the task, so that several strengths are no advantage by themselves; this choice can cost "
            "area. *Area with one strength*: for each strength, on all tasks, as for a user who cannot tune it; the "
            "largest of them, in the figure, is the best of up to three. *Interquartile mean*: over tasks and "
            "seeds, without the quarter of the runs with the lowest and that with the highest areas, as rliable "
            "defines it; it hides a task on which a method fails. *Better than PPO*: probability that a run has a "
            "larger area (0.5: none is better). *Less than the first*: the first method's area minus this one's, on "
            "the tasks of both; the intervals have Bonferroni's correction for all pairs of methods. *A rule does "
            "about as well*: see the marks below. *Strengths*: the best ones, with the number of tasks.\n\n"
            "*The group ahead* and *behind* are the best-off and the worst-off group of each seed, in the unit of the "
            "task's rate; if both lose, a method levels down.\n\n"
            "Scripted rules do not know the truth about a person, but some know parameters of their world, which "
            "methods must learn. Some were written after results of methods had been seen, as the plan says.\n\n"
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
        seeds = max((arm.seeds for arm in self.arms.values()), default=0)
        return (
            f"`fair-envs leaderboard --scale {self.scale}`: {len(self.arms)} arms, "
            f"{len(rows)} rows, up to {seeds} seeds, {sum(row.seconds for row in rows) / 3600:.1f} CPU hours of "
            f"training. The rows in `{TABLE}` were made by {made_by(rows)}; each has the hash of its exact "
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


def _json(value: object) -> object:
    """Return a field of a score for JSON."""
    if isinstance(value, ArmKey):
        return str(value)
    if isinstance(value, TaskScore | Levelling):
        return {name: _json(one) for name, one in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _json(one) for name, one in value.items()}
    return as_json(value) if isinstance(value, Estimate | float) else value


def _short(estimate: Estimate) -> str:
    """Return a number and its interval with two digits."""
    return tables.show(estimate, digits=2)


def _strength(strength: float | None, *, after: str = ": ") -> str:
    """Return a strength as text, followed by a text; "" for a method without strengths."""
    return "" if strength is None else f"{strength:g}{after}"


def _one(score: Score) -> str:
    """Return the area of a method with one strength for all tasks as text, after the strength."""
    worst = min(area.value for area in score.common.values())
    with_worst = f"; with its worst {worst:.2f}" if len(score.common) > 1 else ""
    return f"{_strength(score.steadiest, after=' ')}({score.area_of_one.value:.2f}{with_worst})"


def _changed(score: Score, name: str, better: int) -> str:
    """Return on how many tasks a group has more, and on which it has less, by intervals.

    Args:
        score: The scores of the method.
        name: The field of `Levelling`.
        better: 1 if larger numbers are better for the group, -1 if they are worse.
    """
    found: dict[int, list[str]] = {1: [], -1: []}
    for env_id, one in score.of_tasks.items():
        change: Estimate = getattr(one.levels, name)
        for sign, shown in ((1, change.low > 0), (-1, change.high < 0)):
            if shown:
                found[sign * better].append(env_id)
    less = found[-1]
    told = f" ({', '.join(less)})" if less else ""
    return f"has more on {len(found[1])} of {score.tasks} tasks, and less on {len(less) or 'none'}{told}"


def _span(score: Score, name: str) -> str:
    """Return the lowest and the highest number of `TaskScore`, with the tasks on which they are."""
    return " to ".join(dict.fromkeys(_end(score, name, end) for end in (min, max)))


def _end(score: Score, name: str, end: Callable[..., Any]) -> str:
    """Return the number of `TaskScore` that is the lowest (`min`) or highest (`max`), and on which task."""
    numbers = {env_id: getattr(one, name) for env_id, one in score.of_tasks.items()}
    known = {env_id: number for env_id, number in numbers.items() if not np.isnan(number)}
    if not known:
        return "an undefined part"
    env_id = end(known, key=known.__getitem__)
    return f"{f'{known[env_id]:.2f}' if name == 'area' else f'{100 * known[env_id]:.0f} %'} on {env_id}"


# Figures --------------------------------------------------------------------------------------------------------------


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
    others = [row for row in rows if row.key.name in (RANDOM, *board.distinct_rules, *board.bounds)]
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
    """Return the limits of a panel with the rows up to the reward-only method's gap and little less performance."""
    low, high = (arm.values("performance").mean() for arm in (board.random, board.reward_only))
    (gap,) = (row.cells["gap"] for row in rows if row.key.name == REWARD_ONLY)
    assert isinstance(gap, Estimate)
    bars = _bars(rows)
    least, widest = high - (high - low) / 4, 1.1 * gap.high
    shown = [y for x, y in zip(bars["x"], bars["y"], strict=True) if x <= widest and y >= least]
    margin = 0.15 * (max(shown) - min(shown)) or 0.05 * (high - low)
    return {"xlim": (-0.05 * gap.high, widest), "ylim": (min(shown) - margin, max(shown) + margin)}
