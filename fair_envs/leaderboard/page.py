"""The leaderboard's page: the answer first, then scores, controls, and a table and a picture for each task."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fair_envs.assessment.facts import measured
from fair_envs.experiments import tables
from fair_envs.experiments.seeds import BEGUN, TABLE, Arm, SeedRow, made_by, read_rows, write_rows
from fair_envs.leaderboard.answer import Answer, arm_text, as_code, strength_text
from fair_envs.leaderboard.board import Coverage, arms_in, coverage, part_of_scale
from fair_envs.leaderboard.controls import Control, check, controls
from fair_envs.leaderboard.figures import draw_scores, draw_task, draw_tasks
from fair_envs.leaderboard.jobs import (
    AGAIN,
    REWARD_ONLY,
    UNITS,
    ArmKey,
    Scale,
    equal_terms,
    included,
    scales,
)
from fair_envs.leaderboard.rows import COLUMNS, Row, as_json, markdown, rows_of
from fair_envs.leaderboard.scores import (
    LEARNED,
    Levelling,
    TaskBoard,
    TaskScore,
    boards_of,
    by_performance,
    points,
)
from fair_envs.leaderboard.standing import Standing
from fair_envs.leaderboard.verification import verified_entry
from fair_envs.metrics import Estimate
from fair_envs.registration import TABLE as IDS
from fair_envs.support.files import replace_file, write_json
from fair_envs.support.progress import progress_bar
from fair_envs.tasks import task_of

PAGE = "index.md"
SCORES_CAPTION = (
    "Means over tasks with 95 % intervals over training seeds, best first; methods that run on fewer tasks stand last. "
    "Dotted: 0 and 1. *ppo again* is PPO with other seeds: its distance from PPO is chance."
)
INTRODUCTION = (
    "Methods that use fairness beside PPO, which only maximises the reward, and beside scripted rules, on environments "
    "with a *task*: what counts as performance, which groups are compared, and in which rate. The *gap* is the largest "
    "difference between two groups in this rate, such as how often reliable applicants get a loan; 0 is fair. Its "
    "*noise floor* is the gap that remains if the memberships in groups are shuffled. A *strength* is the value of a "
    "method's one knob, such as the weight of a penalty. A task has *scores* if PPO reaches "
    f"{100 * LEARNED:.0f} % of the best rule's gain over random decisions, and has a gap beyond noise."
)
AREAS_CAPTION = (
    "On tasks with scores, means over seeds with 95 % intervals. In the table below, *PPO itself* is "
    "what chance gives, and the largest area of a rule is chosen on the test episodes, which methods' strengths are "
    "not."
)
CHANGES_CAPTION = (
    "How the rates of the worst-off and of the best-off group change, compared with reward-only PPO and *ppo again* "
    "together, at the strength that is best on the task, chosen on these seeds; with 95 % intervals over seeds, not "
    "corrected for their number. In the table below: worst-off / best-off, bold if the interval excludes 0. If the "
    "best-off group loses and the worst-off group does not gain, a method levels down."
)
TASK_CAPTION = (
    "Better is up (performance) and to the left (a smaller gap). Blue: a method, with a larger dot for a greater "
    "strength and 95 % intervals over seeds; pale: the other methods. Diamond: reward-only PPO. Grey: the noise "
    "floor of PPO, the gap if the memberships in groups are shuffled. On tasks with scores, the axes are zoomed in "
    "around PPO: titles count the strengths outside, and rules outside are not drawn."
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
        entries: Policies from outside by their keys. They are shown in the tables of their tasks, and have no part in
            scores, controls and the answer.
        source: The folder of the leaderboard, whose table may have further rows; None: none.
    """

    arms: Mapping[ArmKey, Arm]
    scale: str
    coverage: Mapping[str, Coverage]
    entries: Mapping[ArmKey, Arm] = field(default_factory=dict)
    source: Path | None = None

    @cached_property
    def boards(self) -> list[TaskBoard]:
        """The tasks of which all rows are stored."""
        return [
            replace(board, entries={key: arm for key, arm in self.entries.items() if key.env_id == board.env_id})
            for board in boards_of(self.arms)
            if self.coverage[board.env_id].complete
        ]

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The rows of these tasks."""
        return {board.env_id: rows_of(board) for board in self.boards}

    @cached_property
    def standing(self) -> Standing:
        """How the methods stand on these tasks."""
        return Standing(self.boards)

    @cached_property
    def answer(self) -> Answer:
        """What was found on these tasks."""
        return Answer(self.standing, all_tasks=not self.missing)

    @cached_property
    def controls(self) -> list[Control]:
        """The outcomes of the controls."""
        return controls(self.boards)

    def write(self, out: Path, *, progress: bool = False) -> Path:
        """Write the page, its figures and its data; return the page's path.

        Args:
            out: The folder. A table in it is replaced only if no row is lost.
            progress: Whether to show a bar.

        Raises:
            FailedControlError: A control failed; nothing is written.
            FileExistsError: The folder has other rows; nothing is written.
        """
        check(self.controls)
        rows = [row for arm in self.arms.values() for row in arm.rows]
        elsewhere = self.source is None or out.resolve() != self.source.resolve()
        if self.source is not None:
            rows = read_rows(self.source)  # also those that are not shown
        if elsewhere:
            self._check_folder(out, rows)
        out.mkdir(parents=True, exist_ok=True)
        if elsewhere:
            write_rows(out / TABLE, rows)
            replace_file(out / BEGUN, self.scale.encode())
        text = "\n\n".join(self.parts()) + "\n"
        self.draw(out, progress=progress)
        write_json(out / "scores.json", self.as_dict())
        path = out / PAGE
        replace_file(path, text.encode())
        return path

    def _check_folder(self, out: Path, rows: Iterable[SeedRow]) -> None:
        """Raise FileExistsError if files in a folder would be lost."""
        must = "out must be a new folder, or one with the page of the same leaderboard, got"
        begun = out / BEGUN
        if begun.is_file() and begun.read_text() != self.scale:
            raise FileExistsError(f"{must} {out} with the scale {begun.read_text()!r}")
        if (out / PAGE).exists() and not (out / TABLE).exists():
            raise FileExistsError(f"{must} {out} with another {PAGE}")
        if lost := _rows_lost(out / TABLE, rows):
            raise FileExistsError(f"{must} {out}, whose {TABLE} has {len(lost)} other rows, such as {lost[0]}")

    def draw(self, out: Path, *, progress: bool = False) -> None:
        """Write the figures."""
        with progress_bar("drawing", total=len(self.boards) + 1, unit="figures", shown=progress) as advance:
            if self.standing.contenders:
                found = self.standing.scores
                draw_scores(found, out / "scores.png")
                draw_tasks(found, lambda one: {"": one.area}, out / "areas.png", label="area", lines=(0.0, 1.0))
                label = "change of the group's rate, in the unit of the task"
                draw_tasks(found, lambda one: one.levels.named, out / "changes.png", label=label, lines=(0.0,))
            advance()
            for board in self.boards:
                draw_task(board, self.rows[board.env_id], out / f"{board.env_id}.png")
                advance()

    def as_dict(self) -> dict[str, object]:
        """Return the scores and the tables of the tasks as plain data."""
        scored = {
            name: {field: _json(value) for field, value in one._asdict().items()}
            for name, one in self.standing.scores.items()
        }
        tasks = {env_id: [row.as_dict() for row in rows] for env_id, rows in self.rows.items()}
        return {"scores": scored, "tasks": tasks}

    def parts(self, *, table: str | None = None) -> Iterator[str]:
        """Yield the parts of the page.

        Args:
            table: A table of all rows; None: each task has its own.
        """
        yield "# Leaderboard"
        yield INTRODUCTION
        yield "\n".join(f"* {line}" for line in self.lines())
        if self.standing.contenders:
            yield f"![Scores of the methods](scores.png)\n\n{SCORES_CAPTION}"
        if self.boards:
            yield "## Rules beside methods"
            yield self.answer.rules_table()
        if details := self.answer.details():
            yield "## In more detail"
            yield "\n".join(f"* {line}" for line in details)
        if self.standing.contenders:
            yield "## Task by task"
            yield self.strengths_shown()
            yield self.first_table()
            matched = [board.env_id for board in self.boards if not board.unscored and board.matched]
            rules = f" A rule matches the best policy on {', '.join(matched)}." if matched else ""
            yield f"![Area of each method on each task](areas.png)\n\n{AREAS_CAPTION}{rules}"
            yield self.areas_table()
            yield "## Who pays"
            yield f"![Changes of the groups' rates](changes.png)\n\n{CHANGES_CAPTION}"
            yield self.changes_table()
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
            behind = board.behind_rule(below=LEARNED)
            reached = f" ({behind})" if behind else ""
            why = f"**No scores: {board.unscored}{reached}.**" if board.unscored else ""
            task = task_of(board.env_id)
            yield " ".join(filter(None, [task.summary, task.caution, why]))
            yield " ".join(f"*{name.capitalize()}*: {text}." for name, text in measured(task, task.rules()))
            yield in_short(board, self.rows[board.env_id])
            yield f"![Performance against the gap]({board.env_id}.png)\n\n{TASK_CAPTION}"
            if table is None:
                yield task_table(self.rows[board.env_id])
            yield learned_from(board)
        yield "## How it was made"
        yield self.made()
        yield "## Add your policy"
        yield (
            "A folder with a file `entry.json` is an entry: `"
            + json.dumps({"task": next(iter(IDS)), "name": "my rule", "policy": "my_rules:decide", "result": "?"})
            + "`. The policy is a function, or the folder of a run inside the entry. `fair-envs --trust leaderboard "
            "verify FOLDER --out TABLE`, with the folder of this table, plays it in its test episodes, and prints the "
            "rates of the groups and the result to put in place of the question mark (`--trust` imports the function; "
            "a run needs no trust, except one of `pcn` or `lcn`, see SECURITY.md, and must have the parameters of the "
            "task). On another type of processor, the result of an entry can differ in its last bits, and so its hash. "
            "`fair-envs --trust leaderboard report TABLE --entry FOLDER --out PAGE` verifies it again, and writes a "
            "page with it."
        )

    def lines(self) -> list[str]:
        """Return what must be said before the results, and the answer."""
        return [*self.about(), *self.answer.lines()]

    def about(self) -> Iterator[str]:
        """Yield what must be said before the results: whether they are a test, and whether rows are missing."""
        if self.scale == "smoke":
            yield "**This is a test of the machinery, not a comparison of methods.**"
        shown = {board.env_id for board in self.boards}
        if hidden := [str(key) for key in self.entries if key.env_id not in shown]:
            yield f"Not shown, because rows of their tasks are missing: {', '.join(hidden)}."
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

    def score_table(self) -> str:
        """Return the scores."""
        header = ["method", "tasks", "area", "area with one strength", "area, interquartile mean", "scaled performance"]
        header += ["unfairness", "better than PPO", "less than the first", "a rule matches it", "strengths"]
        rows: list[list[tables.Cell]] = [
            [
                name,
                str(one.tasks),
                one.area,
                ", ".join(
                    f"{strength_text(strength, after=': ')}{area.value:.2f}" for strength, area in one.common.items()
                ),
                one.interquartile,
                one.performance,
                one.unfairness,
                one.improvement,
                self.standing.behind.get(name, ""),
                f"{one.matched} of {one.tasks}",
                ", ".join(f"{value:g} ({tasks})" for value, tasks in one.strengths.items()),
            ]
            for name, one in self.standing.scores.items()
        ]
        return tables.markdown(header, rows)

    def areas_table(self) -> str:
        """Return the area of each method on each task, after those of PPO itself and of the best rule."""
        boards = {board.env_id: board for board in self.boards}
        first: dict[str, Callable[[str], str]] = {
            "largest of a rule": lambda task: _largest_of_a_rule(boards[task]),
            "PPO itself": lambda task: f"{boards[task].area_of(boards[task].reward_only):.3f}",
        }
        return self._by_task(lambda one: one.area, first=first)

    def changes_table(self) -> str:
        """Return how the rates of the worst-off and the best-off group change with each method on each task."""
        return self._by_task(
            lambda one: (
                " / ".join(f"**{e.value:+.3f}**" if e.excludes(0) else f"{e.value:+.3f}" for e in one.levels)
                if not any(np.isnan(e.value) for e in one.levels)
                else ""
            )
        )

    def _by_task(
        self, cell: Callable[[TaskScore], tables.Cell], *, first: Mapping[str, Callable[[str], str]] | None = None
    ) -> str:
        """Return a table with a row for each method and a column for each task with scores, after the first rows."""
        tasks = list(dict.fromkeys(env_id for one in self.standing.scores.values() for env_id in one.of_tasks))
        rows: list[list[tables.Cell]] = [[name, *map(of, tasks)] for name, of in (first or {}).items()]
        rows += [
            [name, *(cell(one.of_tasks[task]) if task in one.of_tasks else "" for task in tasks)]
            for name, one in self.standing.scores.items()
        ]
        return tables.markdown(["method", *tasks], rows)

    def strengths_shown(self) -> str:
        """Return which strengths `first_table` has."""
        text = f"`{self.standing.ranked[0]}` has the strength that is best on each task"
        steady = f"; `{self.standing.steady}` has the one that is best for all tasks" if self.standing.steady else ""
        return f"{text}{steady}."

    def first_table(self) -> str:
        """Return what the first method does on each task at its best strength, and the steady one at its one."""
        header = ["method", "task", "strength", "performance (PPO's)", "scaled", "unfairness", "worst-off group, PPO"]
        header += ["change of the worst-off", "best-off group, PPO", "change of the best-off", "rules that match it"]
        boards = {board.env_id: board for board in self.boards}
        keys = [one.key for one in self.standing.contenders[self.standing.ranked[0]].of_tasks.values()]
        if steady := self.standing.steady:
            own = self.standing.contenders[steady]
            keys += [ArmKey(env_id, steady, own.steadiest) for env_id in own.of_tasks]
        rows: dict[ArmKey, list[tables.Cell]] = {}
        for key in keys:
            board = boards[key.env_id]
            performance, unfairness = board.placed(points(board.arms[key])).mean(axis=0)
            levels, base = board.levelling(key), board.usual
            own, usual = (arm.values("performance").mean() for arm in (board.arms[key], board.reward_only))
            told = [key.name, key.env_id, strength_text(key.strength), f"{own:.4g} ({usual:.4g})"]
            told += [f"{performance:.2f}", f"{unfairness:.2f}"]
            rates = [base.estimate("worst"), levels.worst, base.estimate("best"), levels.best]
            rows[key] = [*told, *rates, as_code(board.as_good(board.arms[key]))]
        return tables.markdown(header, list(rows.values()))

    def reading(self) -> str:
        """Return how to read the scores and the tables."""
        meanings = tables.markdown(
            ["column", "meaning"], [[title, column.meaning] for title, column in COLUMNS.items()]
        )
        return (
            "These are means over tasks and seeds. Brackets hold 95 % intervals over training seeds: Student's, with "
            "the standard error of the stratified bootstrap, which also resamples the seeds of PPO and random, by "
            "which numbers are scaled. Those of the interquartile mean and of *better than PPO* are percentiles of "
            "this bootstrap. With few seeds these are too narrow: in a simulation of an interquartile mean over 9 "
            "tasks with 5 seeds, they cover about 91 %, and less where most seeds of a task have the same area (0 or "
            "1).\n\n"
            "* *Scaled performance*: random 0, PPO 1. *Unfairness*: the gap above its noise floor, fair 0, PPO 1; "
            "above 1 is more unfair than PPO.\n"
            "* *Area*: scaled performance times (1 - unfairness), both between 0 and 1: the part of the rectangle "
            "between random and PPO, and between PPO's gap and none, that a run dominates. It is 0 for PPO's means, "
            "and for everything that performs like random or has a larger gap than PPO. PPO's own seeds have more than "
            "0, because those that are worse than its mean count as 0. A performance above PPO's counts as PPO's. Each "
            "seed has the strength that is best for the other seeds of the task, so that several strengths are no "
            "advantage by themselves; this choice can cost area. The bootstrap does not repeat it.\n"
            "* *Area with one strength*: for each strength, on all tasks, as for a user who cannot tune it. The "
            "largest of them, in the figure, is the best of a method's strengths.\n"
            "* *Interquartile mean*: over tasks and seeds, without the quarter of the runs with the lowest and that "
            "with the highest areas, as rliable defines it. It was planned as the main score. The mean took its place "
            "later, because an interquartile mean hides a task on which a method fails.\n"
            "* *Better than PPO*: probability that a run has a larger area (0.5: none is better).\n"
            "* *Less than the first*: the first method's area minus this one's, on the tasks of both, with Student's "
            "interval and Bonferroni's correction for all pairs of methods.\n"
            "* *A rule matches it*: see the marks below. *Strengths*: the best ones, with the number of tasks.\n"
            "* *The best-off and the worst-off group* are those of each seed, in the unit of the task's rate.\n\n"
            "Scripted rules do not know the truth about a person, but some know parameters of their world, which "
            "methods must learn. Some were written after results of methods had been seen, as the plan says. Trained "
            "methods have the same observations on a task. Those of the PPO family have two layers of 64 units; `pcn`, "
            "`lcn`, `ddpg`, `fair-e` and `fair-er` have other networks. What methods learn from besides the "
            "reward is said below the table of each task. The recommended settings were chosen on FairLending, "
            "FairHiring and FairHarvest, which favours trained methods slightly there.\n\n"
            "The *best trained* policy of a task, below, is the method and strength with the largest area; on tasks "
            "without scores, with the highest performance, of equal ones that with the smallest gap. "
            "It is the best of many by means over seeds, so its numbers are somewhat too good.\n\n"
            "In the tables of methods and strengths, brackets hold Student's intervals over seeds. They can leave the "
            "range of a number, and they say little where some seeds learn a task and others do not; below the name "
            f"of each task are the performances of PPO's seeds.\n\n{meanings}"
        )

    def _example(self) -> str:
        """Return a row without training, which is verified fast."""
        rows = [f"{board.env_id}/{name}/0" for board in self.boards for name in board.distinct_rules]
        return f" (`{rows[-1]}`, for example, in seconds)" if rows else ""

    def _budget(self) -> str:
        """Return the steps of a training on each task."""
        steps = [f"{board.env_id} {scales()[self.scale].steps(board.env_id):,}" for board in self.boards]
        return f"Steps of a training (of agents, where there are several): {', '.join(steps)}. " if steps else ""

    def _left_out(self) -> str:
        """Return which methods were left out of a task, and why."""
        found = left_out(scales()[self.scale])
        tasks = {board.env_id for board in self.boards}
        shown = [f"{name} ({why})" for name, why in found.items() if name.partition("/")[0] in tasks]
        return f"\n\nLeft out: {'; '.join(shown)}." if shown else ""

    def made(self) -> str:
        """Return how the leaderboard was made, and how to verify it."""
        rows = [row for arm in self.arms.values() for row in arm.rows]
        seeds = sorted({arm.seeds for arm in self.arms.values()})
        of_seeds = " to ".join(map(str, dict.fromkeys([*seeds[:1], *seeds[-1:]])))
        hours = sum(row.seconds for row in rows) / 3600
        return (
            f"`fair-envs leaderboard --scale {self.scale}`: {len(self.arms)} arms, "
            f"{len(rows)} rows, {of_seeds} seeds, {hours:.1f} CPU hours of training. {self._budget()}The rows in "
            f"`{TABLE}` were made by {made_by(rows)}; each has the hash of its exact result. `fair-envs leaderboard "
            "verify ROW --out FOLDER`, with the folder of this table, plays the policy of a row again and compares the "
            f"result to the bit, and all columns but the CPU time{self._example()}. The last bits of a few measures "
            "depend on the type of the processor; it says so where only these differ. Policies of trainings are only "
            "stored in the folder of the run; `--retrain` trains them again, which usually gives the same results only "
            "on the type of processor that made the row (for AMD processors with AVX-512, see *The same results on an "
            "AMD processor* in the guide *Evaluation*). Settings are each method's recommended ones, which "
            "differ between tasks with several agents and those with one decision-maker, with two "
            "exceptions: methods learn from the rate that is compared where they have a setting for it, and from "
            "nothing that only a part of them can observe; limits and tolerances are parts of what the method has "
            f"without them, from trainings with other seeds (`{UNITS.name}`). No method was tuned on the seeds of the "
            "results; some rules were written when results were known, as the plan says."
            f"{self._left_out()}"
        )


def _largest_of_a_rule(board: TaskBoard) -> str:
    """Return the largest area of a rule on a task, with its name if it is above 0; "" without a rule."""
    areas = {name: board.area_of(rule) for name, rule in board.distinct_rules.items()}
    name = max(areas, key=areas.__getitem__, default="")
    return f"{areas[name]:.3f}{f' (`{name}`)' if areas[name] > 0 else ''}" if name else ""


def _rows_lost(table: Path, rows: Iterable[SeedRow]) -> list[str]:
    """Return the names of the rows of a table that are not among some rows; none if there is no table."""
    if not table.is_file():
        return []
    kept = {(row.job, row.result) for row in rows}
    return [f"{row.arm}/{row.seed}" for row in read_rows(table) if (row.job, row.result) not in kept]


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
    arms = arms_in(folder, methods=methods, seeds=seeds)
    name = (folder / BEGUN).read_text()
    covered = coverage(arms, part_of_scale(name, methods=methods, seeds=seeds))
    outside: dict[ArmKey, Arm] = {}
    for own in entries:
        key, arm = verified_entry(own, scale=name)
        if key in outside:
            raise ValueError(f"entries must have different names on a task, got two of {key}")
        outside[key] = arm
    return Page(arms, name, covered, outside, source=folder)


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
    """Return the best trained arm, the best rule, entries, and what each group gets with them, in sentences."""
    told = [f"Reward-only PPO: {_of_groups(next(row for row in rows if row.key.name == REWARD_ONLY))}."]
    seeds = {
        key.name: ", ".join(f"{one:.3g}" for one in arm.values("performance"))
        for key, arm in board.arms.items()
        if key.name in (REWARD_ONLY, AGAIN)
    }
    told.append(f"Performance of each seed: {'; '.join(f'`{name}` {values}' for name, values in seeds.items())}.")
    if best := [row for row in rows if row.key == board.best_trained]:
        told.append(f"Best trained, of {len(board.trained)}: {_with_area(best[0])}.")
    if rules := [row for row in rows if row.key.name in board.distinct_rules]:
        first = max(rules, key=lambda row: (_size(row.cells["area"]), *by_performance(board.arms[row.key])))
        told.append(f"Best scripted rule that does not know the truth, of {len(rules)}: {_with_area(first)}.")
    told += [f"From outside: {_with_area(row)}." for row in rows if row.key in board.entries]
    return "\n".join(f"* {line}" for line in told)


def _with_area(row: Row) -> str:
    """Return a row's name, area and numbers of the groups."""
    area = _size(row.cells["area"])
    return f"`{arm_text(row.key)}` ({f'area {area:.3g}, ' if np.isfinite(area) else ''}{_of_groups(row)})"


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


def _json(value: object) -> object:
    """Return a field of a score for JSON."""
    if isinstance(value, ArmKey):
        return str(value)
    if isinstance(value, TaskScore | Levelling):
        return {name: _json(one) for name, one in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _json(one) for name, one in value.items()}
    return as_json(value) if isinstance(value, Estimate | float) else value
