"""How the methods stand: their scores over some tasks, which is first, and how far the others are behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fair_envs.leaderboard.jobs import AGAIN
from fair_envs.leaderboard.scores import Score, TaskBoard, difference, scores
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
    def steady_rivals(self) -> list[str]:
        """The ranked methods whose area with one strength is not clearly less than that of `steady`, best first."""
        if not self.steady:
            return []
        least = self.contenders[self.steady].area_of_one.low
        areas = {name: self.contenders[name].area_of_one for name in self.ranked if self.contenders[name].common}
        close = [name for name, area in areas.items() if name != self.steady and not area.high < least]
        return sorted(close, key=lambda name: -areas[name].value)

    @cached_property
    def behind(self) -> dict[str, Estimate]:
        """How far the first method's area is above each other one's, on the tasks of both, see `difference`.

        All pairs are counted in Bonferroni's correction, because the first method is chosen by its area.
        """
        first, *others = self.contenders
        level = 1 - 0.05 / max(math.comb(len(self.contenders), 2), 1)
        return {name: difference(first, name, self.boards, level=level) for name in others}

    @property
    def rivals(self) -> list[str]:
        """The other ranked methods that are not shown to have a smaller area than the first one."""
        return [name for name in self.ranked[1:] if not self.behind[name].low > 0]

    def first_on(self, tasks: Sequence[str]) -> str:
        """Return the ranked method with the largest mean area on some of the tasks."""
        return max(self.ranked, key=lambda name: self.contenders[name].mean(tasks))
