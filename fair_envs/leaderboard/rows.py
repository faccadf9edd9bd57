"""The rows of the leaderboard's tables: one for each method and strength on a task."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fair_envs.assessment.bounds import SHARE, SHARES, within
from fair_envs.experiments import tables
from fair_envs.experiments.seeds import Arm
from fair_envs.leaderboard.jobs import AGAIN, RATE_OF, REJECTED, REWARD_ONLY, ArmKey, limits, units
from fair_envs.leaderboard.scores import LITTLE, TaskBoard, points
from fair_envs.metrics import Estimate
from fair_envs.tasks import task_of

Cell = str | float | Estimate
"""The content of a cell; an undefined number is NaN."""


class Column(NamedTuple):
    """A column of the tables.

    Attributes:
        meaning: What it shows.
        digits: Number of digits after the point; None: as few as needed.
    """

    meaning: str
    digits: int | None = 3

    def text(self, cell: Cell) -> str:
        """Return a cell as text; "" if a number without an interval is undefined."""
        if isinstance(cell, str | Estimate):
            return tables.show(cell, digits=3 if self.digits is None else self.digits)
        if np.isnan(cell):
            return ""
        return f"{cell:g}" if self.digits is None else f"{cell:.{self.digits}f}"


LIMIT_MISSED, BOUND, CONTROL, AS_GOOD = "limit missed", "bound", "control", "a rule is as good"
OUTSIDE = "entry"
SAME = "same results"

COLUMNS: Mapping[str, Column] = {
    "task": Column("the environment"),
    "method": Column("the method, or the policy without training"),
    "strength": Column(
        "value of the method's one knob; of methods with a limit, it is the limit in parts of what the method has "
        "without one",
        digits=None,
    ),
    "seeds": Column("number of training seeds", digits=None),
    "performance": Column("that of the task", digits=4),
    "gap": Column("largest difference between two groups in the task's rate; 0 is fair"),
    "noise floor": Column("the gap if the memberships in groups are shuffled"),
    "worst off": Column("the group that has the lowest rate in most seeds, and in how many; few may be chance"),
    "area": Column(
        "part of the rectangle between random and PPO, and between PPO's gap and none, that a run dominates; 1 is best"
    ),
    "marks": Column(
        f"*{LIMIT_MISSED}*: the limited measure is shown to be above the limit in the last quarter of the trainings; "
        f"*{BOUND}*: the policy uses the ground truth; *{CONTROL}*: not a contender; *{OUTSIDE}*: a policy from "
        "outside, which has no part in scores and comparisons; its seeds are sets of test episodes; "
        f"*{AS_GOOD}*: this scripted rule has a performance at most "
        f"{LITTLE:g} lower on the scale from random to PPO (not lower where a task has no scores) and a gap at "
        "most the noise floor larger, and is not shown to give the worst-off group less by more than that; "
        f"*{SAME}*: this earlier row has the same numbers in all test episodes"
    ),
    "price %": Column(
        "change of the performance relative to PPO's; none where random decisions have a performance below 0, because "
        "parts of PPO's mean nothing there",
        digits=1,
    ),
    "worst-off group": Column("rate of the group that is worst off in a seed"),
    "best-off group": Column("rate of the group that is best off in a seed"),
    "scaled performance": Column("0 is random's, 1 is PPO's"),
    "unfairness": Column("the gap above its noise floor; 0 is fair, 1 is PPO's"),
    "short": Column("the task's short-term measure"),
    "long": Column("the task's long-term measure"),
    "CPU s": Column("CPU time of a training", digits=0),
}


class Row(NamedTuple):
    """A row of the tables.

    Attributes:
        key: The arm.
        cells: Its cells by the titles of `COLUMNS`.
    """

    key: ArmKey
    cells: Mapping[str, Cell]

    def text(self, title: str) -> str:
        """Return a cell as text."""
        return COLUMNS[title].text(self.cells[title])

    def as_dict(self) -> dict[str, object]:
        """Return the cells for JSON, which has no NaN."""
        return {title: as_json(cell) for title, cell in self.cells.items()}


def rows_of(board: TaskBoard) -> list[Row]:
    """Return the rows of a task: random and scripted policies first, then the reward-only method; last the entries."""
    rules = task_of(board.env_id).rules()
    share = task_of(board.env_id).rate_of(rules) in SHARES
    of_rate, of_gap = (SHARE, SHARE) if share else (None, (0.0, np.inf))
    priced = board.random.values("performance").mean() >= 0
    found = []
    for key, arm in [*board.arms.items(), *board.entries.items()]:
        seconds = float(np.mean([row.seconds for row in arm.rows]))
        placed = np.full((1, 2), np.nan) if board.unscored else board.placed(points(arm))
        cells: dict[str, Cell] = {
            "task": key.env_id,
            "method": key.name,
            "strength": np.nan if key.strength is None else key.strength,
            "seeds": arm.seeds,
            "performance": arm.estimate("performance"),
            "gap": within(arm.estimate("gap"), of_gap),
            "noise floor": float(arm.values("noise").mean()),
            "worst off": worst_off(arm),
            "area": np.nan if board.unscored else board.area_of(arm),
            "marks": "; ".join(marks(board, key, arm)),
            "price %": arm.price(board.reward_only, "performance") if priced and key.name != REWARD_ONLY else "",
            "worst-off group": within(arm.estimate("worst"), of_rate),
            "best-off group": within(arm.estimate("best"), of_rate),
            "scaled performance": float(placed[:, 0].mean()),
            "unfairness": float(placed[:, 1].mean()),
            "short": arm.estimate("short-term"),
            "long": arm.estimate("long-term"),
            "CPU s": seconds or np.nan,
        }
        found.append(Row(key, {title: cells[title] for title in COLUMNS}))
    return found


def worst_off(arm: Arm) -> str:
    """Return the group that has the lowest rate in most seeds, and in how many; "": all groups have the same rates."""
    names = [name for name in arm.names if name.startswith(RATE_OF)]
    rates = np.array([arm.values(name) for name in names])  # (groups, seeds)
    lowest = [
        names[int(np.nanargmin(of_seed))]
        for of_seed in rates.T
        if len(names) and np.nanmin(of_seed) < np.nanmax(of_seed)
    ]
    if not lowest:
        return ""
    name, seeds = Counter(lowest).most_common(1)[0]
    return f"{name.removeprefix(RATE_OF)} ({seeds} of {arm.seeds})"


def marks(board: TaskBoard, key: ArmKey, arm: Arm) -> list[str]:
    """Return what must be said about an arm or an entry."""
    if key.name in board.bounds:
        return [BOUND]
    if key.name in (*REJECTED, AGAIN):
        return [CONTROL]
    found = [OUTSIDE] if key in board.entries else [LIMIT_MISSED] if missed(key, arm) else []
    if rules := [] if key.name in board.untrained else board.as_good(arm):
        found.append(f"{AS_GOOD}: {', '.join(rules)}")
    if earlier := same_as(board, key, arm):
        found.append(f"{SAME}: {earlier}")
    return found


def same_as(board: TaskBoard, key: ArmKey, arm: Arm) -> str:
    """Return the first other row that has the same exact results in all seeds; "": no earlier row has them."""
    own = [row.result for row in arm.rows]
    alike = (one for one, other in board.arms.items() if [row.result for row in other.rows] == own)
    first = next(alike, key)
    return "" if first == key or not all(own) else str(first).partition("/")[2].replace("/", " ")


def missed(key: ArmKey, arm: Arm) -> bool:
    """Return whether the measure that an arm limits is shown to be above its limit at the end of the trainings."""
    from fair_envs.baselines.methods import named, names

    if key.strength is None or key.name not in names():
        return False
    tolerance = named(key.name).tolerance
    if tolerance is None or not limits(named(key.name)):
        return False
    return arm.estimate(tolerance.column).low > units()[key.env_id][tolerance.method].part(key.strength)


def filled(rows: Sequence[Row], columns: Collection[str] = COLUMNS.keys()) -> list[str]:
    """Return the titles of the columns in which a row has something."""
    return [title for title in columns if any(row.text(title) for row in rows)]


def markdown(rows: Sequence[Row], columns: Collection[str]) -> str:
    """Return some columns of rows as a Markdown table, without those that are empty."""
    titles = filled(rows, columns)
    return tables.markdown(titles, [[row.text(title) for title in titles] for row in rows])


def as_json(cell: Cell) -> object:
    """Return a cell for JSON, which has no NaN."""
    if isinstance(cell, Estimate):
        return cell.as_dict()
    return cell if isinstance(cell, str) or not np.isnan(cell) else None
