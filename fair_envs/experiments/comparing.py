"""Compares runs of any methods with each other, and with random and scripted policies."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fair_envs
from fair_envs.assessment import Evaluation
from fair_envs.assessment.policies import Kind, kind_of
from fair_envs.assessment.result import PLAIN_WIDTH, rounded, save_compact
from fair_envs.assessment.result import table_of as every_number
from fair_envs.core import check_count
from fair_envs.evaluation.reports import short
from fair_envs.experiments.entries import Entry, agreed, check_parameters, differences, entries_of, labels_of
from fair_envs.experiments.evaluations import evaluation_cell, read_evaluation
from fair_envs.experiments.jobs import run_cell
from fair_envs.experiments.tables import TableOfRows, markdown
from fair_envs.metrics import Estimate, mean_interval
from fair_envs.support.parameters import meant
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import environment_id, task_of

REWARD_ONLY = "ppo"
"""The method that only maximises the reward, with which all others are compared if it is among the runs."""

CACHE = "evaluations"
"""The folder inside a run's folder in which its evaluations are stored."""

LEVEL = 0.95

MOST_COLUMNS = 4  # of policies in a table; with more, policies are rows

SECTIONS_USED = ("performance", "rate", "gap", "short-term", "long-term", "welfare")

KINDS = ("trained", "scripted", "random")


class Contender(NamedTuple):
    """A method or policy that is compared.

    Attributes:
        name: Its name.
        kind: Whether it was trained.
        evaluations: One for each training seed; one if it was not trained.
    """

    name: str
    kind: Kind
    evaluations: Sequence[Evaluation]

    def number(self, section: str, name: str | None = None, of: str | None = None) -> Estimate:
        """Return a number: over training seeds if there are several, otherwise over episodes; NaN if it is missing."""
        found = []
        for one in self.evaluations:
            try:
                found.append(one.row(section, name, of).estimate)
            except KeyError:
                return Estimate(value=np.nan, low=np.nan, high=np.nan, n=0)
        if len(found) == 1:
            return found[0]
        return mean_interval([one.value for one in found], level=found[0].level)

    @property
    def performance(self) -> Estimate:
        """The task's performance."""
        return self.number("performance")

    @property
    def groups(self) -> tuple[str, ...]:
        """The compared groups."""
        return self.evaluations[0].groups

    @property
    def gap(self) -> Estimate:
        """The gap of the pooled rate: signed for two groups, otherwise the largest difference."""
        names = self.groups
        return self.number("gap", of=f"{names[0]} - {names[1]}" if len(names) == 2 else "largest")

    @property
    def noise(self) -> float:
        """The mean noise floor of the gap."""
        return float(np.mean([one.gap.noise for one in self.evaluations]))

    @property
    def rates(self) -> dict[str, Estimate]:
        """The pooled rate of each group."""
        return {name: self.number("rate", of=name) for name in self.groups}

    @property
    def worst_off(self) -> Estimate:
        """The pooled rate of the worst-off group, whichever it is in each evaluation."""
        return self.number("welfare", of="worst-off group")

    def numbers(self) -> dict[str, Estimate]:
        """Return the numbers of its row in the table."""
        found = {"performance": self.performance, "gap": self.gap, "worst-off group": self.worst_off}
        found |= {"short-term": self.number("short-term", of="mean over steps")}
        found |= {"long-term": self._long_term()}
        return found | {f"rate of {name}": rate for name, rate in self.rates.items()}

    def _long_term(self) -> Estimate:
        last = self.number("long-term", of="last value")
        return self.number("long-term", of="at the end") if last.n == 0 else last


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods and policies side by side in one environment.

    Attributes:
        env_id: The environment.
        rate: Name of the rate that defines the welfare of groups.
        contenders: The trained methods, then the scripted policies, then the random one.
        about: Episodes, seed, and other metadata.
        notes: Warnings, such as runs that were trained in different environments.
    """

    env_id: str
    rate: str
    contenders: Sequence[Contender]
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        """Return the table as text, and the sentences below it."""
        console = Console(width=PLAIN_WIDTH, color_system=None, force_terminal=False)
        with console.capture() as captured:
            console.print(self.table())
        return "\n".join([captured.get().rstrip(), "", *self.footnotes()])

    @cached_property
    def rows(self) -> dict[str, dict[str, Estimate]]:
        """The numbers of each contender."""
        return {one.name: one.numbers() for one in self.contenders}

    def table(self, columns: int = MOST_COLUMNS) -> Table | TableOfRows:
        """Return the table for the terminal: a column for each contender, or a row if there are more than that."""
        cells = {self._heading(one): self._cells(one) for one in self.contenders}
        if len(cells) > columns:
            return TableOfRows(cells, "policy")
        shown = Table("number", box=None, pad_edge=False)
        for name in cells:
            shown.add_column(Text(name), overflow="fold")
        for title in self._cells(self.contenders[0]):
            shown.add_row(Text(title), *(Text(own[title]) for own in cells.values()))
        return shown

    def _heading(self, one: Contender) -> str:
        seeds = len(one.evaluations)
        return one.name + (f" ({seeds} seeds)" if seeds > 1 else "")

    def _cells(self, one: Contender) -> dict[str, str]:
        """Return the texts of a contender's numbers by their titles."""
        own = {number: short(estimate) for number, estimate in self.rows[one.name].items()}
        own["gap"] += f" ~{one.noise:.2g}"
        return {self._title(number): own.get(number, "") for number in next(iter(self.rows.values()))}

    def _title(self, number: str) -> str:
        groups = self.contenders[0].groups
        if number == "gap":
            return f"gap of {self.rate}: {f'{groups[0]} - {groups[1]}' if len(groups) == 2 else 'largest'}"
        return number

    def sentences(self) -> list[str]:
        """Return who gained and lost relative to the reward-only method, and what beats the best scripted policy."""
        return [*self._changes(), *self._beaten()]

    def footnotes(self) -> list[str]:
        """Return the sentences, the notes, and how to read the table."""
        level = 100 * self.contenders[0].performance.level
        return [
            *self.sentences(),
            *self.notes,
            f"{level:g} % confidence intervals: over training seeds where there are several, otherwise over "
            f"{self.about.get('episodes')} episodes, which do not show how much another training would differ.",
            "After ~: the noise floor, the mean gap after shuffling the labels of groups among individuals.",
        ]

    @property
    def reference(self) -> Contender | None:
        """The reward-only method; without it, the trained method with the highest performance."""
        trained = [one for one in self.contenders if one.kind == "trained"]
        named = [one for one in trained if one.name.split(" ")[0] == REWARD_ONLY]
        return named[0] if named else max(trained, key=_performance, default=None)

    def _changes(self) -> Iterator[str]:
        base = self.reference
        for one in self.contenders:
            if base is not None and one.kind == "trained" and one is not base:
                yield change(one, base)

    def _beaten(self) -> Iterator[str]:
        """Yield which methods beat the best scripted policy."""
        best = max((one for one in self.contenders if one.kind == "scripted"), key=_performance, default=None)
        if best is None:
            return
        own = f"{_short(best.performance)} with a gap of {abs(best.gap.value):.3g}"
        beating = False
        for one in self.contenders:
            if one.kind != "trained":
                continue
            more = one.performance.value > best.performance.value
            fairer = abs(one.gap.value) < abs(best.gap.value)
            if more or fairer:
                beating = True
                what = "performance and gap" if more and fairer else "performance only" if more else "gap only"
                yield f"{one.name} beats the best scripted policy, {best.name} ({own}), in {what}."
        if not beating:
            yield f"No method beats the best scripted policy, {best.name} ({own}), in performance or gap."

    def save(self, folder: Path | str) -> Path:
        """Write the table, all evaluations and, if Matplotlib is installed, plots; return the folder.

        The files are ``comparison.md``, ``.csv`` and ``.json``, and ``evaluations.json``, with which `compare` makes
        the same comparison again.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        header = ["policy", *(self._title(number) for number in next(iter(self.rows.values())))]
        rows = [[name, *map(short, own.values())] for name, own in self.rows.items()]
        lines = [f"# {self.env_id}", "", markdown(header, rows), "", *(f"* {line}" for line in self.footnotes()), ""]
        (place / "comparison.md").write_text("\n".join(lines), encoding="utf-8")
        flat = [
            {"policy": name, "number": number, **estimate.as_dict()}
            for name, own in self.rows.items()
            for number, estimate in own.items()
        ]
        with (place / "comparison.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(flat[0]))
            writer.writeheader()
            writer.writerows(flat)
        (place / "comparison.json").write_text(json.dumps(self.as_dict(), indent=2, allow_nan=False) + "\n")
        save_compact([_used(own) for one in self.contenders for own in one.evaluations], place / "evaluations.json")
        self._plots(place)
        return place

    def _plots(self, folder: Path) -> None:
        try:
            from fair_envs.assessment.plots import plot_estimates, plot_price

            points = [(one.name, one.gap, one.performance) for one in self.contenders]
            plot_price(points, folder / "price.png", performance=self._performance_name(), gap=self._title("gap"))
            plot_estimates({one.name: one.rates for one in self.contenders}, folder / "rates.png", title=self.rate)
        except ImportError:
            return

    def _performance_name(self) -> str:
        return self.contenders[0].evaluations[0].row("performance").name

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data for JSON."""
        about = {"fair_envs": fair_envs.__version__, "env_id": self.env_id, "rate": self.rate, **self.about}
        rows = {name: {number: one.as_dict() for number, one in own.items()} for name, own in self.rows.items()}
        kinds = {one.name: {"kind": one.kind, "seeds": len(one.evaluations)} for one in self.contenders}
        return {**about, "policies": kinds, "numbers": rows, "sentences": self.footnotes()}


def table_of(evaluations: Sequence[Evaluation], *, every: bool = False) -> Table | TableOfRows:
    """Return a table for the terminal: all numbers of one policy, or the main ones of several unless all are wanted."""
    if every or len(evaluations) == 1:
        return every_number(evaluations)
    first, contenders = evaluations[0], [Contender(one.policy, one.about["kind"], [one]) for one in evaluations]
    return Comparison(env_id=first.env_id, rate=first.rate, contenders=contenders).table(columns=3)


def _used(one: Evaluation) -> Evaluation:
    """Return an evaluation without what comparisons do not use, which is most of it."""
    return replace(one, curve={}, rows=tuple(row for row in one.rows if row.section in SECTIONS_USED))


def change(one: Contender, base: Contender) -> str:
    """Return who gains and who loses with one method instead of another, in one sentence.

    A group gains or loses if the change of its rate is larger than its uncertainty (two standard errors).
    """
    rates, before = one.rates, base.rates
    known = {name: rate.value for name, rate in before.items() if not np.isnan(rate.value)}
    start = f"{one.name} instead of {base.name}: performance {_short(base.performance)} to {_short(one.performance)}"
    if len(known) < 2:
        return f"{start}."
    worse, better = min(known, key=lambda name: known[name]), max(known, key=lambda name: known[name])
    gaps = abs(base.gap.value), abs(one.gap.value)
    moves = {name: _move(rates[name], before[name]) for name in before}
    told = ", ".join(
        f"{name} {_word(move)} ({rates[name].value - known.get(name, np.nan):+.3g})" for name, move in moves.items()
    )
    return f"{start}, gap {gaps[0]:.3g} to {gaps[1]:.3g}; {told}{_verdict(gaps, moves[worse], moves[better])}."


def _verdict(gaps: tuple[float, float], worse: int, better: int) -> str:
    """Return whether a method levels up or down; empty if the gap does not close."""
    if not gaps[1] < gaps[0]:
        return ": the gap does not close"
    if worse > 0:
        return ": it levels up"
    if better < 0:
        return ": it levels down"
    return ""


def _move(now: Estimate, before: Estimate) -> int:
    """Return 1 if a rate is higher than before, -1 if it is lower, 0 if the difference may be noise."""
    errors = np.nan_to_num([now.standard_error, before.standard_error])
    difference = now.value - before.value
    if np.isnan(difference) or abs(difference) <= 2 * float(np.hypot(*errors)):
        return 0
    return 1 if difference > 0 else -1


def _word(move: int) -> str:
    return {1: "gains", -1: "loses", 0: "is about the same"}[move]


def _performance(one: Contender) -> float:
    return float(np.nan_to_num(one.performance.value, nan=-np.inf))


def _short(estimate: Estimate) -> str:
    return f"{estimate.value:.4g}"


# Playing --------------------------------------------------------------------------------------------------------------


def compare(
    runs: Sequence[Path | str],
    *,
    task: str | None = None,
    policies: Sequence[str] | None = None,
    out: Path | str | None = None,
    episodes: int | None = None,
    seed: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    shuffles: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Compare runs and other policies on the same test episodes; what has no stored evaluation is evaluated.

    Runs of the same method with the same settings and different seeds are one row: the mean over the seeds, with an
    interval over the seeds. Each evaluation is stored in the folder of its run, so an interrupted comparison resumes,
    and a second one is fast. A comparison of stored evaluations does not need the runs.

    Args:
        runs: Folders of runs in one environment, of any methods whose policy plays by itself; and files of evaluations:
            ``evaluation.json`` of `Evaluation.save`, or ``evaluations.json`` of `Comparison.save`.
        task: Id of the environment whose task is used; None: that of the stored evaluations, or the environment's own.
        policies: Names of policies for comparison; those in the files are not played again. None: those in the files,
            or if there are none, random and the task's scripted ones.
        out: Folder for the table, the plots and the evaluations; None: they are not stored.
        episodes: Number of test episodes; None: as in the stored evaluations, or 64.
        seed: Seed of the first one; None: as in the stored evaluations, or `fair_envs.support.seeds.TEST_SEEDS`.
        parameters: Parameters of the environment; they override those of the trainings.
        shuffles: Number of shuffles for noise floors, see `fair_envs.evaluate`; None: as in the stored evaluations, or
            100.
        progress: Whether to show a progress bar.

    Raises:
        ValueError: There is no run, the runs are of different environments, a training is given twice, or a stored
            evaluation was made with another task, other episodes or other parameters than the rest.
        FileNotFoundError: A path is neither the folder of a run nor a file.
    """
    if episodes is not None:
        check_count("episodes", episodes)
    entries, given = entries_of(runs), dict(parameters or {})
    check_parameters(entries, given)
    env_id, base = entries[0].env_id, {**entries[0].parameters, **given}
    task = agreed(entries, "task", None if task is None else environment_id(task), env_id)
    wanted = {"episodes": (episodes, 64), "seed": (seed, TEST_SEEDS), "shuffles": (shuffles, 100)}
    numbers = {name: agreed(entries, name, *own) for name, own in wanted.items()}
    shared: dict[str, Any] = {"task": task, **numbers, "level": agreed(entries, "level", None, LEVEL)}
    others = _names(task, policies, stored=[str(one) for one in entries if one.kind != "trained"])
    found: list[tuple[str, Kind, Evaluation]] = []  # rounded as in files, so both give the same table
    missing = len(others) + sum(one.evaluation is None for one in entries)
    kept: Any = TemporaryDirectory() if out is None else nullcontext(str(Path(out) / CACHE))
    with progress_bar("evaluating", total=missing, shown=progress and missing > 0) as advanced, kept as folder:
        for one, label in zip(entries, labels_of(entries), strict=True):
            evaluation = one.evaluation
            if evaluation is None:
                evaluation = _evaluated(one, given, shared)
                advanced()
            found.append((label, one.kind, replace(rounded(evaluation), policy=label)))
        for name in others:
            cell = evaluation_cell(env_id, name, base, **shared)
            found.append((name, kind_of(name), rounded(read_evaluation(run_cell(cell, Path(folder))))))
            advanced()
    _check_alike([own for _, _, own in found])
    comparison = Comparison(
        env_id=env_id,
        rate=found[0][2].rate,
        contenders=_contenders(found),
        about={"task": task, "parameters": base, "episodes": numbers["episodes"], "seed": numbers["seed"]},
        notes=list(differences(entries, [own.about["parameters"] for _, _, own in found])),
    )
    if out is not None:
        comparison.save(out)
    return comparison


def _evaluated(run: Entry, parameters: Mapping[str, Any], shared: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation of a run, which is stored in its folder."""
    name = run.training["method"]
    cell = evaluation_cell(run.env_id, str(run.path), {**run.parameters, **parameters}, name=name, **shared)
    return read_evaluation(run_cell(cell, run.path / CACHE))


def _names(task: str, policies: Sequence[str] | None, *, stored: Sequence[str]) -> list[str]:
    """Return the policies that must be played."""
    if policies is None:
        return [] if stored else [*task_of(task).scripted, "random"]
    if isinstance(policies, str):
        raise ValueError(f"policies must be a list of names, got {policies!r}{meant(policies, task_of(task).scripted)}")
    return [name for name in dict.fromkeys(policies) if name not in stored]


def _check_alike(found: Sequence[Evaluation]) -> None:
    """Raise ValueError if evaluations have different rates or groups, as parameters of the environment may cause."""
    kinds = list(dict.fromkeys((one.rate, one.groups) for one in found))
    if len(kinds) > 1:
        told = " and ".join(f"the {rate} of {', '.join(groups)}" for rate, groups in kinds)
        raise ValueError(f"runs must be measured by the same rate of the same groups, got {told}; compare each alone")


def _contenders(found: Sequence[tuple[str, Kind, Evaluation]]) -> list[Contender]:
    """Return the contenders: trained methods, then scripted policies, then the random one."""
    by_name: dict[tuple[str, Kind], list[Evaluation]] = {}
    for name, kind, evaluation in found:
        by_name.setdefault((name, kind), []).append(evaluation)
    contenders = [Contender(name, kind, own) for (name, kind), own in by_name.items()]
    return sorted(contenders, key=lambda one: KINDS.index(one.kind))
