"""The leaderboard's answer: where a rule does as well, which method, how sure that is, what it costs, and who pays."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from fair_envs.experiments import tables
from fair_envs.leaderboard.jobs import AGAIN, ArmKey
from fair_envs.leaderboard.scores import LEARNED, Dominated, Levelling, Score, TaskBoard
from fair_envs.leaderboard.standing import Standing
from fair_envs.metrics import Estimate
from fair_envs.tasks import task_of

FEW = 4  # methods that are named where several are close


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
        """Return the short answer: what rules can do, which method, how sure that is, what it costs, and who pays."""
        boards = self.standing.boards
        if not boards:
            return []
        unscored = [board for board in boards if board.unscored]
        found = [f"**Where does a simple rule do about as well?** {' '.join(self._rules())}"]
        if not self.standing.contenders:
            found.append("No task has scores." if len(unscored) == len(boards) else "No method has scores.")
        elif not self._score.area.value > 0:
            found.append("No method has an area above 0: none closes a part of PPO's gap and keeps some performance.")
        else:
            found += self._of_methods()
        if unscored:
            found.append(_unscored(unscored))
        cautions = {board.env_id: task_of(board.env_id).caution for board in boards}
        if told := [f"{env_id}: {caution}" for env_id, caution in cautions.items() if caution]:
            found.append(f"**What do good numbers not show?** {' '.join(told)}")
        return found

    def details(self) -> list[str]:
        """Return what the short answer leaves out."""
        found = [*self._other_methods()] if self.standing.contenders else []
        if ahead := [f"{board.env_id}{board.behind_rule()}" for board in self._ahead]:
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
        own = "" if again is None else f" (PPO with other seeds has {again.area.value:.2f}: worse runs count as 0)"
        which = (
            f"**Which method?** If you can try several strengths on your own problem, begin with `{name}`: its mean "
            f"area is {_short(score.area)} {tasks}. The *area* says how much of PPO's gap is closed, and how much "
            f"performance kept: it is 0 for the means of reward-only PPO{own}, and 1 for PPO's performance without a "
            "gap."
        )
        if steady := standing.steady:
            one, close = standing.contenders[steady], standing.steady_rivals
            strength = "" if one.steadiest is None else f" with the strength {one.steadiest:g}"
            pairs = f"corrected for all {standing.pairs_of_one} pairs of methods with a strength"
            others = f"; not clearly worse: {as_code(close)}, {pairs}" if close else ""
            which += f" If you must use one strength for all tasks, use `{steady}`{strength} "
            which += f"(area {one.area_of_one.value:.2f}{others})."
        yield which
        yield f"**How sure is that?** {' '.join(self._sure())}"
        yield (
            f"**What does it cost?** With `{name}`, performance is {_span(score, 'performance')} (random 0 %, PPO 100 "
            f"%). The gap above noise is {_span(score, 'unfairness')} (none 0 %, PPO's 100 %)."
        )
        changes = {env_id: one.levels for env_id, one in score.of_tasks.items()}
        yield (
            f"**Who pays?** With `{name}` instead of PPO, by 95 % intervals over seeds (not corrected for their "
            f"number), the group that is worst off {_changed(changes, 'worst')}; the group that is best off "
            f"{_changed(changes, 'best')}.{self._without_scores()}"
        )

    def _without_scores(self) -> str:
        """Return with which strengths of the first method a group gains or loses on tasks without scores."""
        found = []
        for board in self.standing.boards:
            if board.unscored and (arms := board.of(self._first)):
                changes = {key: board.levelling(arm) for key, arm in arms.items()}
                told = [
                    f"the {side}-off group {word}{_with(turned)}"
                    for side, (word, turn) in product(Levelling._fields, (("gains", 1), ("loses", -1)))
                    if (turned := [key for key, one in changes.items() if _turn(getattr(one, side)) == turn])
                ]
                found.append(f"{board.env_id}: {', '.join(told) or 'no clear change'}")
        return f" On tasks without scores: {'; '.join(found)}." if found else ""

    def _sure(self) -> Iterator[str]:
        """Yield how sure it is that the first method is the best one."""
        standing, boards = self.standing, self.standing.boards
        pairs = f"corrected for all {standing.pairs} pairs of methods"
        if standing.rivals:
            yield f"Not clearly worse than `{self._first}`: {as_code(standing.rivals)} ({pairs})."
        elif len(standing.ranked) > 1:
            yield f"All other ranked methods are clearly worse ({pairs})."
        if others := self._of_other_tasks():
            yield f"With other tasks, another method is first: {', '.join(others)}."
        alone = [board.env_id for board in boards if board.env_id in self._score.of_tasks and not board.matched]
        if 0 < len(alone) < self._score.tasks:
            largest = [f"`{name}` {area:.2f}" for name, area in [*standing.areas_on(alone).items()][:FEW]]
            yield (
                f"On the tasks with scores where no simple rule does as well ({', '.join(alone)}), the largest areas "
                f"are: {', '.join(largest)}."
            )
        several = [board for board in boards if task_of(board.env_id).rules().multi_agent]
        if several and all(board.unscored for board in several):
            yield "No task with several agents has scores, so the areas are about single decision-makers."
        seeds = " or ".join(map(str, sorted({board.reward_only.seeds for board in boards})))
        yield f"Intervals are about {seeds} training seeds; they do not say what happens on other tasks."

    def _of_other_tasks(self) -> list[str]:
        """Return which method is first without a task, or with a task that has no scores, where it is another one."""
        tasks, found = list(self._score.of_tasks), []
        changed = [("without", env_id, [one for one in tasks if one != env_id]) for env_id in tasks if len(tasks) > 2]
        more = [board.env_id for board in self.standing.boards if board.unscored and board.has_areas]
        changed += [("with", env_id, [*tasks, env_id]) for env_id in more]
        for word, env_id, of in changed:
            areas = self.standing.areas_on(of)
            first = next(iter(areas), self._first)
            if first != self._first and self._first in areas:
                found.append(
                    f"`{first}` {word} {env_id} ({areas[first]:.2f}; `{self._first}` {areas[self._first]:.2f})"
                )
        return found

    def _rules(self) -> Iterator[str]:
        """Yield where simple rules do about as well as the best trained method, or better than others."""
        boards = [board for board in self.standing.boards if board.matched]
        scored = [_with_rules(board) for board in boards if not board.unscored]
        others = [_with_rules(board) for board in boards if board.unscored]
        told = [", ".join(scored)] if scored else []
        if others:
            told.append(
                "on tasks without scores, where the trained policy with the highest performance counts as the best, "
                f"whatever its gap: {', '.join(others)}"
            )
        yield (
            f"{self._on(boards)}, a scripted rule without access to the truth about people has about the performance "
            "and the gap of the best trained method, or better ones"
            + (f" (the rule; the best): {'; '.join(told)}." if told else ".")
        )
        matched = {board.env_id for board in boards}
        most = {env_id: name for env_id, (name, found) in self._dominated.items() if found.arms == found.of}
        for board in self.standing.boards:
            best = board.arms[board.best_trained]
            if board.env_id in most and board.env_id not in matched and not np.isnan(best.values("gap").mean()):
                yield (
                    f"On {board.env_id}, `{most[board.env_id]}` performs at least as well as every trained policy and "
                    "gives every group at least as much, but with a larger gap than the best "
                    f"(`{arm_text(board.best_trained)}`), by means over seeds."
                )
        if ahead := self._ahead:
            shown = sum(board.shown_behind for board in ahead)
            yield f"{self._on(ahead)}, PPO itself performs worse than a rule (shown on {shown})."

    @cached_property
    def _dominated(self) -> dict[str, tuple[str, Dominated]]:
        """The rule that is at least as good for everyone as the most trained arms, by task that has one."""
        of_tasks = {board.env_id: board.dominating() for board in self.standing.boards}
        return {
            env_id: max(rules.items(), key=lambda item: item[1].arms) for env_id, rules in of_tasks.items() if rules
        }

    @cached_property
    def _ahead(self) -> list[TaskBoard]:
        """The tasks on which PPO performs worse than a rule, by means over seeds."""
        return [board for board in self.standing.boards if board.behind_rule()]

    # In detail --------------------------------------------------------------------------------------------------------

    def _other_methods(self) -> Iterator[str]:
        """Yield how the first method and others do on single tasks and with one strength."""
        standing, name, score = self.standing, self._first, self._score
        by_task = f"**By task.** The area of `{name}` is {_span(score, 'area')}."
        if standing.rivals:
            lowest = ", ".join(f"`{one}` ({_end(standing.contenders[one], 'area', min)})" for one in standing.rivals)
            by_task += f" Of the methods that are not clearly worse, the lowest areas are: {lowest}."
        yield by_task
        if steady := standing.steady:
            own, *others = (f"`{one}` {_one(standing.contenders[one])}" for one in (steady, *standing.steady_rivals))
            text = f"**One strength for all tasks.** {own}"
            yield f"{text}; not clearly worse: {', '.join(others)}." if others else f"{text}."
        if fewer := [other for other in standing.contenders if other not in standing.ranked]:
            better = [other for other in fewer if standing.behind[other].value < 0]
            yield f"**Not ranked**, because they run on fewer tasks: {as_code(fewer)}" + (
                f" (larger mean area than `{name}` on their tasks: {as_code(better)})." if better else "."
            )
        known = dict.fromkeys(one for board in standing.boards for one in board.methods)
        if without := [one for one in known if one not in standing.contenders]:
            yield f"**No scores**, because they only run on tasks without scores: {as_code(without)}."

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


def strength_text(strength: float | None, *, before: str = "", after: str = "") -> str:
    """Return a strength as text, between two texts; "" for a method without strengths."""
    return "" if strength is None else f"{before}{strength:g}{after}"


def _short(estimate: Estimate) -> str:
    """Return a number and its interval with two digits."""
    return tables.show(estimate, digits=2)


def _one(score: Score) -> str:
    """Return the area of a method with one strength for all tasks as text, after the strength."""
    worst = min(area.value for area in score.common.values())
    with_worst = f"; with the worst strength {worst:.2f}" if len(score.common) > 1 else ""
    return f"{strength_text(score.steadiest, after=' ')}({score.area_of_one.value:.2f}{with_worst})"


def _turn(change: Estimate) -> int:
    """Return 1 if a number is shown to rise, -1 if it is shown to fall, otherwise 0."""
    return int(change.low > 0) - int(change.high < 0)


def _changed(changes: Mapping[str, Levelling], side: str) -> str:
    """Return on how many tasks a group, a field of `Levelling`, gains, and on which it loses, by intervals."""
    turns = {task: _turn(getattr(one, side)) for task, one in changes.items()}
    gains, losses = ([task for task, turn in turns.items() if turn == sign] for sign in (1, -1))
    told = f" ({', '.join(losses)})" if losses else ""
    return f"gains on {len(gains)} of {len(changes)} tasks and loses on {len(losses) or 'none'}{told}"


def _with(keys: Iterable[ArmKey]) -> str:
    """Return the strengths of arms, as the end of a sentence."""
    found = [strength for key in keys if (strength := strength_text(key.strength))]
    return f" with {' and '.join(found)}" if found else ""


def _with_rules(board: TaskBoard) -> str:
    """Return a task, the rules that do about as well as its best trained arm, and this arm."""
    return f"{board.env_id} ({as_code(board.matched)}; `{arm_text(board.best_trained)}`)"


def arm_text(key: ArmKey) -> str:
    """Return the name of an arm with its strength."""
    return f"{key.name}{strength_text(key.strength, before=' ')}"


def _span(score: Score, name: str) -> str:
    """Return the lowest and the highest number of `TaskScore`, with the tasks on which they are."""
    return " to ".join(dict.fromkeys(_end(score, name, end) for end in (min, max)))


def _end(score: Score, name: str, end: Callable[..., Any]) -> str:
    """Return the number of `TaskScore` that is the lowest (`min`) or highest (`max`), and on which task."""
    found = {env_id: getattr(one, name) for env_id, one in score.of_tasks.items()}
    numbers = {env_id: one.value if isinstance(one, Estimate) else one for env_id, one in found.items()}
    known = {env_id: number for env_id, number in numbers.items() if not np.isnan(number)}
    if not known:
        return "undefined"
    env_id = end(known, key=known.__getitem__)
    return f"{f'{known[env_id]:.2f}' if name == 'area' else f'{100 * known[env_id]:.0f} %'} on {env_id}"
