"""The leaderboard's page: the answer first, then scores, controls, and a table and a picture for each task."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fair_envs.assessment.bounds import SHARE, SHARES, within
from fair_envs.experiments import tables
from fair_envs.experiments.figures import dot_plot, pyplot, save_figure
from fair_envs.experiments.seeds import BEGUN, TABLE, Arm, write_rows
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
    limits,
    scales,
    units,
)
from fair_envs.leaderboard.scores import LITTLE, Score, TaskBoard, boards_of, scores
from fair_envs.metrics import Estimate, mean_interval
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

    Attributes:
        arms: The arms by their keys.
        scale: Name of the scale.
    """

    arms: Mapping[ArmKey, Arm]
    scale: str

    @cached_property
    def boards(self) -> list[TaskBoard]:
        """The tasks."""
        return boards_of(self.arms)

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
        with progress_bar("drawing", total=len(self.boards) + 1, unit="figures", shown=progress) as advance:
            if self.scores:
                draw_scores(self.scores, out / "scores.png")
            advance()
            for board in self.boards:
                draw_task(board, out / f"{board.env_id}.png")
                advance()
        path = out / PAGE
        path.write_text("\n\n".join(self.parts()) + "\n")
        return path

    def as_dict(self) -> dict[str, object]:
        """Return the scores and the tables of the tasks as plain data."""
        scored = {
            name: {field: _json(value) for field, value in one._asdict().items()} for name, one in self.scores.items()
        }
        tasks = {
            board.env_id: [{"arm": str(key), "n": arm.seeds} | _plain(board, arm) for key, arm in board.arms.items()]
            for board in self.boards
        }
        return {"scores": scored, "tasks": tasks}

    def parts(self) -> Iterator[str]:
        """Yield the parts of the page."""
        yield "# Leaderboard"
        yield "\n".join(f"* {line}" for line in self.answer())
        if self.scores:
            yield "![Scores of the methods](scores.png)"
            yield "## Scores over tasks"
            yield self.score_table()
        yield self.reading()
        yield "## Controls"
        yield tables.markdown(
            ["control", "passed", "evidence"],
            [[one.name, PASSED[one.passed], one.evidence] for one in self.controls],
        )
        for board in self.boards:
            yield f"## {board.env_id}"
            yield task_of(board.env_id).summary + (f" **No scores: {board.unscored}.**" if board.unscored else "")
            yield f"![Performance against unfairness]({board.env_id}.png)"
            yield task_table(board)
            yield learned_from(board)
        yield "## How it was made"
        yield self.made()

    def answer(self) -> list[str]:
        """Return the answer: which method, at what cost, who pays, and where a simple rule does as well."""
        trained = {name: one for name, one in self.scores.items() if name != AGAIN}
        lines = self._best(trained) if trained else ["No task has scores."]
        if self.scale == "smoke":
            lines.insert(0, "**This is a test of the machinery, not a comparison of methods.**")
        matched = {board.env_id: board.matched() for board in self.boards}
        found = [f"{env_id} ({', '.join(names)})" for env_id, names in matched.items() if names]
        lines.append(
            f"**Where does a simple rule do about as well?** On {len(found)} of {len(self.boards)} tasks, a scripted "
            "rule that does not know the truth about the people it decides on does about as well as the best trained "
            "method, or better" + (f": {'; '.join(found)}." if found else ".")
        )
        lines.append(self._dominating())
        unscored = [f"{board.env_id}: {board.unscored}" for board in self.boards if board.unscored]
        if unscored:
            lines.append(f"**Without scores**: {'; '.join(unscored)}.")
        return lines

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
            f"**Where is a simple rule better for everyone?** On {len(found)} of {len(self.boards)} tasks, a scripted "
            "rule performs at least as well as some trained arms and gives every group at least as much, by means over "
            "seeds" + (f": {'; '.join(found)}." if found else ".")
        )

    def _best(self, trained: Mapping[str, Score]) -> list[str]:
        """Return which method is best, what it costs, and who pays."""
        best, score = next(iter(trained.items()))
        rivals = [
            name
            for name, one in trained.items()
            if name != best and one.tasks == score.tasks and one.area.high >= score.area.low
        ]
        others = f"Not clearly worse: {', '.join(f'`{name}`' for name in rivals[:TOP])}."
        fewer = [f"`{name}`" for name, one in trained.items() if one.tasks < score.tasks]
        unranked = f" Not ranked, because they run on fewer tasks: {', '.join(fewer)}." if fewer else ""
        return [
            f"**Which method?** `{best}` dominates the largest part of the room between unfair and fair: "
            f"{_share(score.area)} (0: reward-only PPO, 1: its performance without a gap; interquartile mean over "
            f"{score.tasks} scored tasks). {others if rivals else 'No other interval reaches it.'}{unranked}",
            f"**What does it cost?** `{best}` keeps {_share(score.performance)} of PPO's performance above random, and "
            f"{_share(score.unfairness)} of PPO's gap.",
            f"**Who pays?** In parts of PPO's gap, and on average over tasks, `{best}` changes the rate of the group "
            f"that was best off by {_change(-score.loss)}, and of the group that was worst off by "
            f"{_change(score.gain)}.",
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
                _change(-one.loss),
                _change(one.gain),
                f"{one.matched} of {one.tasks}",
                ", ".join(f"{value:g} ({tasks})" for value, tasks in one.strengths.items()),
            ]
            for name, one in self.scores.items()
        ]
        return tables.markdown(header, rows)

    def reading(self) -> str:
        """Return how to read the scores."""
        return (
            "Brackets hold 95 % intervals of the stratified bootstrap over training seeds, also of those of PPO and "
            "random, by which numbers are scaled. *Performance*: random 0, PPO 1. *Unfairness*: the gap above its "
            "noise floor, fair 0, PPO 1. *Area*: the part of the rectangle between random and PPO, and between PPO's "
            "gap and none, that a run dominates. All three are interquartile means over tasks and seeds. Each seed has "
            "the strength that is best for the other seeds, so that several strengths are no advantage by themselves. "
            "*Better than PPO*: probability that a run has a larger area (0.5: none is better). *Change of the group "
            "ahead* and *behind*: the change of the rates of the best-off and the worst-off group of each seed, in "
            "parts of PPO's gap, mean over tasks; a negative change of both is levelling down. *A rule does about as "
            f"well*: performance at most {LITTLE:g} lower on the scale from random to PPO, and a gap at most its noise "
            "floor larger. "
            "*Strengths*: the best strength over all seeds, with the number of tasks on which it is; of methods with a "
            "limit, it is the limit in parts of what the method has without one. In the tables of "
            "the tasks, *short* and *long* are the task's short-term and long-term measures, *price* is the change of "
            "performance relative to PPO's, *limit missed* says that the limited measure is shown to be above the "
            "limit in the last quarter of the trainings, and brackets hold Student's intervals over seeds."
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
        seeds = max(arm.seeds for arm in self.arms.values())
        return (
            f"`fair-envs leaderboard --scale {self.scale}`: {len(self.boards)} tasks, {len(self.arms)} arms, "
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
            found.setdefault(about or "nothing", []).append(f"`{name}`")
    listed = "; ".join(f"{about}: {', '.join(names)}" for about, names in found.items())
    return f"What methods learn from besides the reward: {listed}."


def missed(key: ArmKey, arm: Arm) -> bool:
    """Return whether the measure that an arm limits is shown to be above its limit at the end of the trainings."""
    from fair_envs.baselines.methods import named, names

    if key.strength is None or key.name not in names():
        return False
    tolerance = named(key.name).tolerance
    if tolerance is None or not limits(named(key.name)):
        return False
    return arm.estimate(tolerance.column).low > units()[key.env_id][tolerance.method].part(key.strength)


def task_table(board: TaskBoard) -> str:
    """Return the table of a task: random and scripted policies first, then the reward-only method."""
    header = ["arm", "performance", "gap", "noise floor", "short", "long", "worst-off group", "best-off group",
              "price %", "CPU s", "n"]  # fmt: skip
    share = task_of(board.env_id).rate_of(task_of(board.env_id).rules()) in SHARES
    of_rate, of_gap = (SHARE, SHARE) if share else (None, (0.0, np.inf))
    rows: list[list[tables.Cell]] = []
    for key, arm in board.arms.items():
        name = str(key).partition("/")[2] + (" (bound)" if key.name in board.bounds else "")
        name += " (limit missed)" if missed(key, arm) else ""
        price = "" if key.name == REWARD_ONLY else tables.show(arm.price(board.reward_only, "performance"), digits=1)
        seconds = np.mean([row.seconds for row in arm.rows])
        rows.append(
            [
                name,
                arm.estimate("performance"),
                within(arm.estimate("gap"), of_gap),
                f"{arm.values('noise').mean():.3f}",
                arm.estimate("short-term"),
                arm.estimate("long-term"),
                within(arm.estimate("worst"), of_rate),
                within(arm.estimate("best"), of_rate),
                price,
                f"{seconds:.0f}" if seconds else "",
                str(arm.seeds),
            ]
        )
    return tables.markdown(header, rows)


def _plain(board: TaskBoard, arm: Arm) -> dict[str, object]:
    names = ("performance", "gap", "noise", "worst", "best", "short-term", "long-term")
    numbers: dict[str, object] = {name: arm.estimate(name).as_dict() for name in names}
    seconds = float(np.mean([row.seconds for row in arm.rows]))
    return {**numbers, "price": arm.price(board.reward_only, "performance").as_dict(), "seconds": seconds}


def _json(value: Estimate | float | Mapping[float, int]) -> object:
    """Return a field of a score for JSON, which has no NaN."""
    if isinstance(value, Estimate):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {f"{name:g}": number for name, number in value.items()}
    return None if np.isnan(value) else value


def _change(part: float) -> str:
    """Return a change as text."""
    return "an unknown part" if np.isnan(part) else f"{round(100 * part):+d} %"


def _share(estimate: Estimate) -> str:
    low, high = (f"{100 * end:.0f}" for end in (estimate.low, estimate.high))
    return f"{100 * estimate.value:.0f} % [{low}, {high}]"


# Figures --------------------------------------------------------------------------------------------------------------


def draw_scores(found: Mapping[str, Score], path: Path) -> None:
    """Save the scores of the methods as dots with intervals, best first."""
    titles = {"area": "area (1 is ideal)", "performance": "performance (PPO 1)", "unfairness": "unfairness (PPO 1)"}
    panels = {
        title: {name: {"score": getattr(one, field)} for name, one in found.items()} for field, title in titles.items()
    }
    dot_plot(panels, path, label="interquartile mean over tasks and seeds")


def draw_task(board: TaskBoard, path: Path) -> None:
    """Save performance against the gap: a line for each method through its strengths, and dots for other policies."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(8.5, 5.2), layout="constrained")
    styles = ("o-", "s--", "^:")
    for k, method in enumerate([*board.methods, REWARD_ONLY]):
        performance, gap = np.array([_placed(arm) for arm in board.of(method).values()]).T
        axis.plot(gap, performance, styles[k // 10 % 3], color=f"C{k % 10}", markersize=4, label=method)
    shown = [name for name in board.untrained if name == RANDOM or name in board.rules or name in board.bounds]
    for k, name in enumerate(shown):
        y, x = _placed(board.arms[ArmKey(board.env_id, name)])
        axis.plot(x, y, "k*" if name != RANDOM else "kx", markersize=8)
        text = name + (" (bound)" if name in board.bounds else "")
        below = 4 if k % 2 else -11  # so that neighbouring names do not overlap
        axis.annotate(text, (x, y), xytext=(5, below), textcoords="offset points", fontsize=8)
    noise = mean_interval(np.concatenate([arm.values("noise") for arm in board.arms.values()]), undefined="omit")
    axis.axvspan(0, noise.value, color="#eeeeee", zorder=0)
    axis.set(xlabel="gap between groups (0 is fair; grey: noise floor)", ylabel="performance", title=board.env_id)
    figure.legend(loc="outside right upper", fontsize="small")
    save_figure(figure, path)


def _placed(arm: Arm) -> list[float]:
    """Return an arm's mean performance and gap."""
    return [float(arm.values(name).mean()) for name in ("performance", "gap")]
