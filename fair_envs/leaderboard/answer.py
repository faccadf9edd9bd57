"""The leaderboard's answer: which method, how sure that is, what it costs, who pays, and where a rule does as well."""

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fair_envs.experiments import tables
from fair_envs.leaderboard.jobs import AGAIN
from fair_envs.leaderboard.scores import LEARNED, Dominated, Score, TaskBoard
from fair_envs.leaderboard.standing import Standing
from fair_envs.metrics import Estimate
from fair_envs.tasks import task_of


@dataclass(frozen=True)
class Answer:
    """What a leaderboard found, in sentences.

    Attributes:
        standing: How the methods stand.
        all_tasks: Whether the standing is on all tasks of the leaderboard, or only on complete ones.
    """

    standing: Standing
    all_tasks: bool = True

    def lines(self) -> list[str]:
        """Return the short answer: which method, how sure that is, what it costs, who pays, and what rules can do."""
        boards = self.standing.boards
        if not boards:
            return []
        unscored = [board for board in boards if board.unscored]
        if self.standing.contenders:
            found = [*self._of_methods()]
        else:
            found = ["No task has scores." if len(unscored) == len(boards) else "No method has scores."]
        found.append(self._rules())
        if unscored:
            found.append(_unscored(unscored))
        cautions = {board.env_id: task_of(board.env_id).caution for board in boards}
        if told := [f"{env_id}: {caution}" for env_id, caution in cautions.items() if caution]:
            found.append(f"**What do good numbers not show?** {' '.join(told)}")
        return found

    def details(self) -> list[str]:
        """Return what the short answer leaves out."""
        found = [*self._other_methods()] if self.standing.contenders else []
        if ahead := self._ahead:
            found.append(f"**PPO against rules.** Above random, PPO reaches less than a rule on {', '.join(ahead)}.")
        return [*found, self._dominating()] if self.standing.boards else []

    # In short ---------------------------------------------------------------------------------------------------------

    @property
    def _first(self) -> str:
        return self.standing.ranked[0]

    @property
    def _score(self) -> Score:
        return self.standing.contenders[self._first]

    def _on(self, tasks: Sized) -> str:
        """Return on how many of the tasks something is so, as the beginning of a sentence."""
        return f"On {len(tasks)} of {len(self.standing.boards)} {'' if self.all_tasks else 'complete '}tasks"

    def _of_methods(self) -> Iterator[str]:
        """Yield which method is first, how sure that is, what it costs, and who pays."""
        name, score, standing = self._first, self._score, self.standing
        tasks = f"over {score.tasks} tasks" if score.tasks > 1 else "on one task"
        again = standing.scores.get(AGAIN)
        chance = "" if again is None else f" (PPO with other seeds has {again.area.value:.2f}, by chance)"
        which = (
            f"**Which method?** If you can try several strengths on your own problem, use `{name}`: its mean area is "
            f"{_short(score.area)} {tasks}. The *area* says how much of PPO's gap is closed, and how much performance "
            f"kept: it is 0 for the means of reward-only PPO{chance}, and 1 for PPO's performance without a gap."
        )
        if steady := standing.steady:
            own, close = standing.contenders[steady], standing.steady_rivals
            strength = "" if own.steadiest is None else f" with the strength {own.steadiest:g}"
            which += f" If you must use one strength for all tasks, use `{steady}`{strength} "
            which += f"(area {own.area_of_one.value:.2f}" + (
                f"; not clearly worse: {as_code(close)})." if close else ")."
            )
        yield which
        yield self._sure()
        yield (
            f"**What does it cost?** With `{name}`, performance is {_span(score, 'performance')} (random 0 %, PPO 100 "
            f"%). The gap above noise is {_span(score, 'unfairness')} (none 0 %, PPO's 100 %)."
        )
        yield (
            f"**Who pays?** With `{name}` instead of PPO, by 95 % intervals over seeds, the group that is worst off "
            f"{_changed(score, 'gain', 1)}; the group that is best off {_changed(score, 'loss', -1)}."
            + self._without_scores()
        )

    def _without_scores(self) -> str:
        """Return with how many strengths of the first method the worst-off group gains or loses on unscored tasks."""
        found = []
        for board in self.standing.boards:
            if board.unscored and (arms := board.of(self._first)):
                changes = [board.levelling(arm).gain for arm in arms.values()]
                gains, losses = sum(one.low > 0 for one in changes), sum(one.high < 0 for one in changes)
                found.append(f"{board.env_id} {gains} and {losses} of {len(changes)}")
        if not found:
            return ""
        return (
            " On tasks without scores, the number of its strengths with which the group that is worst off gains, and "
            f"with which it loses: {', '.join(found)}."
        )

    def _sure(self) -> str:
        """Return how sure it is that the first method is the best one."""
        standing, boards = self.standing, self.standing.boards
        text = "**How sure is that?** "
        if standing.rivals:
            text += f"Not clearly worse than `{self._first}`: {as_code(standing.rivals)} (corrected for all pairs). "
        elif len(standing.ranked) > 1:
            text += "All other ranked methods are clearly worse (corrected for all pairs). "
        alone = [board.env_id for board in boards if board.env_id in self._score.of_tasks and not board.matched()]
        if 0 < len(alone) < self._score.tasks:
            text += f"Where no simple rule does as well ({', '.join(alone)}), `{standing.first_on(alone)}` has the "
            text += "largest area. "
        seeds = " or ".join(map(str, sorted({board.reward_only.seeds for board in boards})))
        return f"{text}Intervals are about {seeds} training seeds; they do not say what happens on other tasks."

    def _rules(self) -> str:
        """Return where simple rules do about as well as the best trained method, or better than others."""
        matched = {board.env_id: board.matched() for board in self.standing.boards}
        found = [f"{env_id} ({as_code(names)})" for env_id, names in matched.items() if names]
        text = (
            f"**Where does a simple rule do about as well?** {self._on(found)}, a scripted rule without "
            "access to the truth about people does about as well as the best trained method, or better"
        )
        text += f": {'; '.join(found)}." if found else "."
        if ahead := self._ahead:
            text += f" On {len(ahead)}, PPO itself performs worse than a rule."
        if most := self._dominated:
            text += f" On {len(most)}, a rule performs at least as well as some trained policies and gives every group "
            text += "at least as much"
            every = [env_id for env_id, (_, found) in most.items() if found.arms == found.of]
            text += f" (on {', '.join(every)}: as every trained policy)." if every else "."
        return text

    @cached_property
    def _dominated(self) -> dict[str, tuple[str, Dominated]]:
        """The rule that is at least as good for everyone as the most trained arms, by task that has one."""
        of_tasks = {board.env_id: board.dominating() for board in self.standing.boards}
        return {
            env_id: max(rules.items(), key=lambda item: item[1].arms) for env_id, rules in of_tasks.items() if rules
        }

    @cached_property
    def _ahead(self) -> list[str]:
        """The tasks on which PPO performs worse than a rule, and how much of it PPO reaches."""
        return [f"{board.env_id}{behind}" for board in self.standing.boards if (behind := board.behind_rule())]

    # In detail --------------------------------------------------------------------------------------------------------

    def _other_methods(self) -> Iterator[str]:
        """Yield how the first method and others do on single tasks and with one strength."""
        standing, name, score = self.standing, self._first, self._score
        by_task = f"**By task.** The area of `{name}` is {_span(score, 'area')}."
        if standing.rivals:
            lowest = ", ".join(f"`{one}` ({_end(standing.contenders[one], 'area', min)})" for one in standing.rivals)
            by_task += (
                " Of the methods that are not clearly worse (Bonferroni's correction for all pairs), the lowest areas "
                f"are: {lowest}."
            )
        yield by_task
        tasks = list(score.of_tasks)
        if len(tasks) > 2:
            without = {task: standing.first_on([one for one in tasks if one != task]) for task in tasks}
            others = [f"`{first}` (without {task})" for task, first in without.items() if first != name]
            told = ", ".join(others) or f"`{name}` all the same"
            yield f"**Without a task.** If one is left out, the first is {told}."
        if steady := standing.steady:
            own, *others = (f"`{one}` {_one(standing.contenders[one])}" for one in (steady, *standing.steady_rivals))
            text = f"**One strength for all tasks.** {own}"
            yield f"{text}; not clearly worse: {', '.join(others)}." if others else f"{text}."
        if fewer := [other for other in standing.contenders if other not in standing.ranked]:
            better = [other for other in fewer if standing.behind[other].value < 0]
            yield f"**Not ranked**, because they run on fewer tasks: {as_code(fewer)}" + (
                f" (larger mean area than `{name}` on their tasks: {as_code(better)})." if better else "."
            )

    def _dominating(self) -> str:
        """Return where a simple rule is better for everyone than trained arms."""
        found = [
            f"{env_id} (`{name}`: {most.arms} of {most.of}, {most.shown} shown)"
            for env_id, (name, most) in self._dominated.items()
        ]
        return (
            f"**Where is a simple rule at least as good for everyone?** {self._on(found)}, a scripted "
            "rule performs at least as well as some trained policies (methods and strengths) and gives every group at "
            "least as much, by means over seeds; *shown*: by intervals, it performs better"
            + (f": {'; '.join(found)}." if found else ".")
        )


def _unscored(boards: Iterable[TaskBoard]) -> str:
    """Return which tasks have no scores, by the reason."""
    reasons: dict[str, list[str]] = {}
    for board in boards:
        reasons.setdefault(board.unscored, []).append(f"{board.env_id}{board.behind_rule(below=LEARNED)}")
    told = (f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return f"**Which tasks have no scores?** {'; '.join(told)}."


def as_code(names: Iterable[str]) -> str:
    """Return names of policies, as code."""
    return ", ".join(f"`{name}`" for name in names)


def strength_text(strength: float | None, *, after: str = "") -> str:
    """Return a strength as text, followed by a text; "" for a method without strengths."""
    return "" if strength is None else f"{strength:g}{after}"


def _short(estimate: Estimate) -> str:
    """Return a number and its interval with two digits."""
    return tables.show(estimate, digits=2)


def _one(score: Score) -> str:
    """Return the area of a method with one strength for all tasks as text, after the strength."""
    worst = min(area.value for area in score.common.values())
    with_worst = f"; with the worst strength {worst:.2f}" if len(score.common) > 1 else ""
    return f"{strength_text(score.steadiest, after=' ')}({score.area_of_one.value:.2f}{with_worst})"


def _changed(score: Score, name: str, better: int) -> str:
    """Return on how many tasks a group gains, and on which it loses, by intervals.

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
    return f"gains on {len(found[1])} of {score.tasks} tasks and loses on {len(less) or 'none'}{told}"


def _span(score: Score, name: str) -> str:
    """Return the lowest and the highest number of `TaskScore`, with the tasks on which they are."""
    return " to ".join(dict.fromkeys(_end(score, name, end) for end in (min, max)))


def _end(score: Score, name: str, end: Callable[..., Any]) -> str:
    """Return the number of `TaskScore` that is the lowest (`min`) or highest (`max`), and on which task."""
    numbers = {env_id: getattr(one, name) for env_id, one in score.of_tasks.items()}
    known = {env_id: number for env_id, number in numbers.items() if not np.isnan(number)}
    if not known:
        return "undefined"
    env_id = end(known, key=known.__getitem__)
    return f"{f'{known[env_id]:.2f}' if name == 'area' else f'{100 * known[env_id]:.0f} %'} on {env_id}"
