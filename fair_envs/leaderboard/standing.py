"""How the methods stand: their scores over some tasks, which is first, and how far the others are behind it."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from fair_envs.leaderboard.jobs import AGAIN
from fair_envs.leaderboard.scores import ArmChoice, Score, TaskBoard, difference, scores
from fair_envs.metrics import Estimate


@dataclass(frozen=True)
class Standing:
    """How the methods stand on some tasks.

    Attributes:
        boards: The tasks.
    """

    boards: Sequence[TaskBoard]

    @cached_property
    def scores(self) -> dict[str, Score]:
        """The scores of the methods, best first."""
        return scores(self.boards)

    @cached_property
    def contenders(self) -> dict[str, Score]:
        """The scores of the methods without the control, best first."""
        return {name: one for name, one in self.scores.items() if name != AGAIN}

    @cached_property
    def ranked(self) -> list[str]:
        """The methods that were run on the most tasks, all on the same ones, best first."""
        if not self.contenders:
            return []
        first = next(iter(self.contenders.values()))  # methods on fewer tasks come later
        return [name for name, one in self.contenders.items() if one.of_tasks.keys() == first.of_tasks.keys()]

    @cached_property
    def steady(self) -> str:
        """The ranked method with the largest area with one strength for all tasks; "": one task, or no such one."""
        if not self.ranked or self.contenders[self.ranked[0]].tasks < 2:
            return ""
        known = [name for name in self.ranked if self.contenders[name].common]
        return max(known, key=lambda name: self.contenders[name].area_of_one.value, default="")

    @property
    def pairs(self) -> int:
        """The number of pairs of methods; comparisons are corrected for it, because the first is chosen by its area."""
        return math.comb(len(self.contenders), 2)

    @property
    def pairs_of_one(self) -> int:
        """The same of the ranked methods with each strength for all tasks."""
        return math.comb(sum(len(self.contenders[name].common) for name in self.ranked), 2)

    @cached_property
    def steady_rivals(self) -> list[str]:
        """The ranked methods that are not shown to have a smaller area with one strength than `steady`, best first."""
        if not self.steady:
            return []
        first, level = ArmChoice(self.steady, self.contenders[self.steady].steadiest), corrected(self.pairs_of_one)
        known = {name: self.contenders[name] for name in self.ranked if name != self.steady}
        close = [
            name
            for name, one in known.items()
            if one.common and not difference(first, ArmChoice(name, one.steadiest), self.boards, level=level).low > 0
        ]
        return sorted(close, key=lambda name: -known[name].area_of_one.value)

    @cached_property
    def behind(self) -> dict[str, Estimate]:
        """How far the first method's area is above each other one's, on the tasks of both, see `difference`."""
        first, *others = map(ArmChoice, self.contenders)
        level = corrected(self.pairs)
        return {one.method: difference(first, one, self.boards, level=level) for one in others}

    @property
    def rivals(self) -> list[str]:
        """The other ranked methods that are not shown to have a smaller area than the first one."""
        return [name for name in self.ranked[1:] if not self.behind[name].low > 0]

    def areas_on(self, tasks: Collection[str]) -> dict[str, float]:
        """Return the mean areas of the methods that were run on all of these tasks, the largest first.

        Tasks without scores can be among them, if their areas are defined.
        """
        boards = [board for board in self.boards if board.env_id in tasks]
        known = [name for name in self.contenders if all(board.of(name) for board in boards)]
        found = {name: float(np.mean([self._areas[board.env_id][name] for board in boards])) for name in known}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @cached_property
    def firsts(self) -> Counter[str]:
        """In how many of all choices of two or more of the tasks with scores each method has the largest mean area.

        Of equally large areas, that of the method which is listed first counts.
        """
        tasks = [board.env_id for board in self.boards if not board.unscored]
        chosen = (self.areas_on(some) for size in range(2, len(tasks) + 1) for some in combinations(tasks, size))
        return Counter(next(iter(areas)) for areas in chosen if areas)

    def area_of_reward_only(self, tasks: Collection[str]) -> float:
        """Return the mean area of the reward-only method's own seeds over some tasks, which is what chance gives."""
        return float(np.mean([board.area_of(board.reward_only) for board in self.boards if board.env_id in tasks]))

    @cached_property
    def _areas(self) -> dict[str, dict[str, float]]:
        """The area of each method on each task."""
        return {
            board.env_id: {name: board.mean_area(name) for name in self.contenders if board.of(name)}
            for board in self.boards
            if board.has_areas
        }


def corrected(tests: int) -> float:
    """Return the level of an interval with Bonferroni's correction for a number of tests."""
    return 1 - 0.05 / max(tests, 1)
