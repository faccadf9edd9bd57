"""The leaderboard's answer: where a rule does as well, which method, how sure that is, what it costs, and who pays."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from fair_envs.experiments import tables
from fair_envs.leaderboard.jobs import ArmKey
from fair_envs.leaderboard.scores import LEARNED, Dominated, Levelling, Score, TaskBoard
from fair_envs.leaderboard.standing import Standing
from fair_envs.metrics import Estimate
from fair_envs.metrics.inference import shown
from fair_envs.tasks import task_of

FEW = 4  # methods that are named where several are close
TURNS = {1: "gains", -1: "loses"}


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
        found = [f"**Where does a simple rule do about as well?** {self._rules()}"]
        if not self.standing.contenders:
            found.append("No task has scores." if len(unscored) == len(boards) else "No method has scores.")
        elif not self._score.area.value > 0:
            found.append("No method has an area above 0: none closes a part of PPO's gap and keeps some performance.")
        else:
            found += self._of_methods()
        if unscored:
            found.append(_unscored(unscored))
        if cautioned := [board.env_id for board in boards if task_of(board.env_id).caution]:
            found.append(
                f"**What do good numbers not show?** They can mislead on {', '.join(cautioned)}. The section of each "
                "task on the leaderboard says why."
            )
        return found

    def details(self) -> list[str]:
        """Return what the short answer leaves out."""
        found = [*self._of_all_methods()] if self.standing.contenders else []
        return [*found, *self._unequal_rules()]

    def rules_table(self) -> str:
        """Return how simple rules do beside trained policies on each task."""
        header = ["task", "scores", "best trained policy", "rules that match it"]
        header += ["PPO's gain as a share of the best rule's", "rule that dominates trained policies"]
        rows: list[list[tables.Cell]] = []
        for board in self.standing.boards:
            name, found = self._dominated.get(board.env_id, ("", None))
            rows.append(
                [
                    board.env_id,
                    "no" if board.unscored else "yes",
                    f"`{arm_text(board.best_trained)}`",
                    as_code(board.matched),
                    _behind(board),
                    f"`{name}`: {found.arms} of {found.of} ({found.shown})" if found else "",
                ]
            )
        return (
            f"{tables.markdown(header, rows)}\n\n"
            "By means over seeds. No rule here knows the truth about people. *Best trained policy*: the one with the "
            "largest area, on tasks without scores that with the highest performance, whatever its gap. *Match*: "
            "about its performance and gap, or better ones, and does not clearly give the worst-off group less. "
            "*Gain*: performance above random, and whether the best rule's is shown to be larger. *Dominates*: the "
            "number of trained policies (methods and strengths) that the rule equals or beats in performance and in "
            "the rate of every group; in brackets, those for which it is shown to perform better. The best rule and "
            "the best trained policy of a task are chosen on the test episodes in which they are compared, so their "
            "numbers are a little too good, and other trained policies are often about as good."
        )

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
        ranked = len(standing.ranked)
        them = "all of them" if score.tasks > 1 else "it"
        most = f", the largest of the {ranked} methods that run on {them}" if ranked > 1 else ""
        which = f"`{name}`, if you can try several strengths: its mean area is {_short(score.area)} {tasks}{most}. "
        if steady := standing.steady:
            which += f"With one strength for all tasks, {self._steady(steady)}. "
        yield (
            f"**Which method?** {which}The *area* is the share of PPO's gain over random that a policy keeps, times "
            "the share of PPO's gap that it closes, each between 0 and 1: 1 is PPO's performance without a gap. By "
            f"chance, PPO's own runs have {standing.area_of_reward_only(score.of_tasks):.2f}: a run with a "
            "smaller gap than their mean has an area above 0, and none has one below 0."
        )
        yield f"**How sure is that?** {' '.join(self._sure())}"
        tuned = ", with the strength that is best on each task," if score.strengths else ""
        yield (
            f"**What does it cost?** Of PPO's gain over random, `{name}`{tuned} keeps {_span(score, 'performance')}. "
            f"Of PPO's gap above noise, it leaves {_span(score, 'unfairness')}.{self._dearer()}"
        )
        changes = {env_id: one.levels for env_id, one in score.of_tasks.items()}
        lost = {
            side: [env_id for env_id, turns in self._without_scores.items() if turns[side, -1]]
            for side in Levelling._fields
        }
        told = [f"the {side}-off group loses on {', '.join(tasks)}" for side, tasks in lost.items() if tasks]
        yield (
            f"**Who pays?** With `{name}` instead of PPO, the worst-off group {_changed(changes, 'worst')}; the "
            f"best-off group {_changed(changes, 'best')} (95 % intervals over seeds, not corrected, of the rate that "
            "the task compares; wrong acceptances, for example, may not be in it)."
            + (
                f" On tasks without scores, with at least one strength, {'; '.join(told)} (with Holm's correction over "
                "the strengths and groups of a task)."
                if told
                else ""
            )
        )

    def _dearer(self) -> str:
        """Return where the first method performs worse than the reward-only one, so that the decision-maker pays."""
        boards = {board.env_id: board for board in self.standing.boards}
        found = {}
        for env_id, one in self._score.of_tasks.items():
            board = boards[env_id]
            arms = (board.arms[one.key], board.reward_only)
            if arms[0].minus(arms[1], "performance").high < 0:
                own, usual = (arm.values("performance").mean() for arm in arms)
                found[env_id] = f"{own:.3g} instead of {usual:.3g} on {env_id}"
        others = len(self._score.of_tasks) - len(found)
        if not found:
            return " It is not shown to perform worse than PPO on any of these tasks."
        return (
            " The decision-maker pays where its performance is shown to be below PPO's (95 % intervals, not "
            f"corrected): {', '.join(found.values())}{f'; not on the other {others}' * (others > 0)}."
        )

    def _steady(self, name: str) -> str:
        """Return the method with the largest area with one strength for all tasks, with the strength and the area."""
        own = self.standing.contenders[name]
        return (
            f"`{name}`{strength_text(own.steadiest, before=' with the strength ')} (area {own.area_of_one.value:.2f})"
        )

    @cached_property
    def _without_scores(self) -> dict[str, dict[tuple[str, int], list[ArmKey]]]:
        """The strengths of the first method with which a side, a field of `Levelling`, gains (1) or loses (-1).

        By task without scores, with Holm's correction over the strengths and sides of a task.
        """
        found = {}
        for board in self.standing.boards:
            if board.unscored and (keys := board.of(self._first)):
                changes = {(key, side): e for key in keys for side, e in board.levelling(key)._asdict().items()}
                turned = {turn: shown(changes, 0, "greater" if turn > 0 else "less") for turn in TURNS}
                found[board.env_id] = {
                    (side, turn): [key for key in keys if (key, side) in turned[turn]]
                    for side, turn in product(Levelling._fields, TURNS)
                }
        return found

    def _sure(self) -> Iterator[str]:
        """Yield how sure it is that the first method is the best one."""
        standing, boards = self.standing, self.standing.boards
        if standing.rivals:
            seeds = self._seeds(board for board in boards if board.env_id in self._score.of_tasks)
            yield f"{seeds} seeds do not separate `{self._first}` from {as_code(standing.rivals)}."
        elif len(standing.ranked) > 1:
            yield f"All other ranked methods are shown to be worse than `{self._first}`."
        if close := len(standing.steady_rivals):
            noun = "method is" if close == 1 else "methods are"
            yield f"With one strength, {close} other {noun} not shown to be worse than `{standing.steady}`."
        if len(firsts := standing.firsts) > 1:
            told = [f"`{name}` in {times}" for name, times in firsts.most_common(FEW)]
            others = firsts.total() - sum(times for _, times in firsts.most_common(FEW))
            yield (
                f"In {firsts.total()} choices of two or more of the tasks with scores, the largest area is that of "
                f"{', '.join(told)}{f' and another method in {others}' if others else ''}."
            )
        several = [board for board in boards if task_of(board.env_id).rules().multi_agent]
        if several and all(board.unscored for board in several):
            yield "No task with several agents has scores, so the areas are about single decision-makers."
        yield f"Intervals are about {self._seeds(boards)} training seeds, not about other tasks."

    @staticmethod
    def _seeds(boards: Iterable[TaskBoard]) -> str:
        return " or ".join(map(str, sorted({board.reward_only.seeds for board in boards})))

    def _of_other_tasks(self) -> list[str]:
        """Return which method is first, and where: without a task, or with one that has no scores."""
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

    def _rules(self) -> str:
        """Return on how many tasks simple rules do about as well as the best trained policy, or better than PPO."""
        text = (
            f"{self._on([board for board in self.standing.boards if board.matched])}, a scripted rule or a constant "
            "action, which does not know the truth about people, matches the best trained policy in performance and "
            "gap, or is better, and does not clearly give the worst-off group less."
        )
        unscored = sum(bool(board.matched and board.unscored) for board in self.standing.boards)
        if unscored:
            text += f" (On {unscored} of them, the best is the policy with the highest performance, whatever its gap.)"
        if ahead := [board for board in self.standing.boards if board.behind_rule()]:
            shown = sum(board.shown_behind for board in ahead)
            text += f" {self._on(ahead)}, a rule performs better than PPO (shown on {shown})."
        return text

    def _unequal_rules(self) -> Iterator[str]:
        """Yield which rules are at least as good for everyone as every trained policy, but with a larger gap."""
        for board in self.standing.boards:
            name, found = self._dominated.get(board.env_id, ("", None))
            if not found or found.arms < found.of or board.matched:
                continue
            if not np.isnan(board.arms[board.best_trained].values("gap").mean()):
                yield (
                    f"**A rule with a larger gap.** On {board.env_id}, `{name}` performs at least as well as every "
                    "trained policy and gives every group at least as much, but with a larger gap than the best "
                    f"(`{arm_text(board.best_trained)}`), by means over seeds."
                )

    @cached_property
    def _dominated(self) -> dict[str, tuple[str, Dominated]]:
        """The rule that is at least as good for everyone as the most trained arms, by task that has one."""
        of_tasks = {board.env_id: board.dominating() for board in self.standing.boards}
        return {
            env_id: max(rules.items(), key=lambda item: item[1].arms) for env_id, rules in of_tasks.items() if rules
        }

    # In detail --------------------------------------------------------------------------------------------------------

    def _of_all_methods(self) -> Iterator[str]:
        """Yield how methods do on single tasks, with one strength, and with other tasks, and which have no scores."""
        standing, name, score = self.standing, self._first, self._score
        by_task = f"**By task.** The area of `{name}` is {_span(score, 'area')}."
        if standing.rivals:
            lowest = ", ".join(f"`{one}` ({_end(standing.contenders[one], 'area', min)})" for one in standing.rivals)
            by_task += f" Of the methods that are not shown to be worse, the lowest areas are: {lowest}."
        yield f"{by_task} Comparisons are corrected for all {standing.pairs} pairs of methods."
        if steady := standing.steady:
            own, *others = (f"`{one}` {_one(standing.contenders[one])}" for one in (steady, *standing.steady_rivals))
            close = (
                f"; not shown to be worse, corrected for all {standing.pairs_of_one} pairs of methods with a strength: "
                f"{', '.join(others)}"
            )
            yield f"**One strength for all tasks.** {own}{close if others else ''}."
        if changed := ", ".join(self._of_other_tasks()):
            yield f"**With other tasks**, another method is first: {changed}."
        alone = [board.env_id for board in standing.boards if board.env_id in score.of_tasks and not board.matched]
        if 0 < len(alone) < score.tasks:
            largest = [f"`{one}` {area:.2f}" for one, area in [*standing.areas_on(alone).items()][:FEW]]
            yield (
                f"**Where no simple rule does as well** ({', '.join(alone)}, of the tasks with scores), the largest "
                f"areas are: {', '.join(largest)}."
            )
        if changes := "; ".join(f"{env_id}: {_turns(turns)}" for env_id, turns in self._without_scores.items()):
            yield f"**Who pays on tasks without scores**, with `{name}` instead of PPO: {changes}."
        if fewer := [other for other in standing.contenders if other not in standing.ranked]:
            better = [other for other in fewer if standing.behind[other].value < 0]
            yield f"**Not ranked**, because they run on fewer tasks: {as_code(fewer)}" + (
                f" (larger mean area than `{name}` on their tasks: {as_code(better)})." if better else "."
            )
        known = dict.fromkeys(one for board in standing.boards for one in board.methods)
        if without := [one for one in known if one not in standing.contenders]:
            yield f"**No scores**, because they only run on tasks without scores: {as_code(without)}."


def _unscored(boards: Iterable[TaskBoard]) -> str:
    """Return which tasks have no scores, with what the reward-only method reaches, by the reason."""
    reasons: dict[str, list[str]] = {}
    for board in boards:
        behind = board.behind_rule(below=LEARNED)
        reasons.setdefault(board.unscored, []).append(f"{board.env_id} ({behind})" if behind else board.env_id)
    told = (f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return f"**Which tasks have no scores?** {'; '.join(told)}."


def _behind(board: TaskBoard) -> str:
    """Return how much of the best rule the reward-only method reaches, and whether the rule is shown to be better."""
    if behind := board.behind_rule():
        return f"{behind} ({'shown' if board.shown_behind else 'not shown'})"
    return "no rule performs better" if board.best_rule else "no rule"


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


def _turns(turns: Mapping[tuple[str, int], Sequence[ArmKey]]) -> str:
    """Return which group gains and which loses, with which strengths."""
    told = [f"the {side}-off group {TURNS[turn]}{_with(keys)}" for (side, turn), keys in turns.items() if keys]
    return ", ".join(told) or "no clear change"


def _with(keys: Iterable[ArmKey]) -> str:
    """Return the strengths of arms, as the end of a sentence."""
    found = [strength for key in keys if (strength := strength_text(key.strength))]
    return f" with {' and '.join(found)}" if found else ""


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
        return "an undefined share"
    env_id = end(known, key=known.__getitem__)
    if name == "area":
        return f"{known[env_id]:.2f} on {env_id}"
    share = f"{100 * known[env_id]:.0f} %" if known[env_id] > 0 or name != "unfairness" else "nothing"
    return f"{share} on {env_id}"
