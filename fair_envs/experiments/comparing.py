"""Compares runs of any methods with each other, and with random and scripted policies."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fair_envs
from fair_envs.assessment import Evaluation
from fair_envs.assessment.measured import measured_in
from fair_envs.assessment.played import exactly
from fair_envs.assessment.policies import Kind, kind_of, policy_named, scripted_in
from fair_envs.assessment.result import PLAIN_WIDTH, Row, played_with, rounded, save_compact, told_few
from fair_envs.assessment.result import table_of as every_number
from fair_envs.core import check_count
from fair_envs.evaluation.reports import short
from fair_envs.experiments.contenders import COMPARED, Contender
from fair_envs.experiments.entries import Entry, agreed, check_parameters, differences, entries_of, labels_of
from fair_envs.experiments.evaluations import EvaluationCell, evaluation_cell, read_evaluation
from fair_envs.experiments.findings import compared_with, performance_of, told_changes, told_rules
from fair_envs.experiments.jobs import run_cell
from fair_envs.experiments.players import policy_tried
from fair_envs.experiments.tables import TableOfRows, markdown
from fair_envs.metrics import Estimate
from fair_envs.registration import TABLE
from fair_envs.support.parameters import meant
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import TASKS, environment_id, rules_for, task_of

REWARD_ONLY = "ppo"
"""The method that only maximises the reward, with which all others are compared if it is among the runs."""

CACHE = "evaluations"
"""The folder inside a run's folder in which its evaluations are stored."""

LEVEL = 0.95

MOST_COLUMNS = 4  # of policies in a table; with more, policies are rows

TITLES = {"gap": "gap of {rate}", "signed gap": "{groups}"}
"""Titles of numbers that name the rate or the groups."""

SECTIONS_USED = ("performance", "rate", "gap", "short-term", "long-term", "welfare")

KINDS = ("trained", "scripted", "random")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods and policies side by side in one environment.

    Attributes:
        env_id: The environment.
        rate: Name of the rate that defines the welfare of groups.
        contenders: The trained methods, then the scripted policies, then the random one.
        about: Episodes, seed, and other metadata.
        notes: Warnings, such as runs that were trained in different environments.
        compared_with: Name of the contender with which methods are compared; empty: see `reference`.
    """

    env_id: str
    rate: str
    contenders: Sequence[Contender]
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    compared_with: str = ""

    def __str__(self) -> str:
        """Return the table as text, and the sentences below it."""
        console = Console(width=PLAIN_WIDTH, color_system=None, force_terminal=False)
        with console.capture() as captured:
            console.print(self.table())
        return "\n".join([captured.get().rstrip(), "", *self.footnotes()])

    @cached_property
    def rows(self) -> dict[str, dict[str, Estimate]]:
        """The numbers of each contender."""
        missing = Estimate(value=np.nan, low=np.nan, high=np.nan, n=0)
        return {
            name: {number: missing if row is None else row.estimate for number, row in own.items()}
            for name, own in self._rows.items()
        }

    @cached_property
    def _rows(self) -> dict[str, dict[str, Row | None]]:
        return {one.name: one.rows() for one in self.contenders}

    def table(self, columns: int = MOST_COLUMNS) -> Table | TableOfRows:
        """Return the table for the terminal: a column for each contender, or a row if there are more than that."""
        cells = {self._heading(one): self._cells(one) for one in self.contenders}
        if len(cells) > columns:
            return TableOfRows(cells, "policy")
        shown = Table("number", box=None, pad_edge=False)
        for name in cells:
            shown.add_column(Text(name), overflow="fold")
        for title in self._titles():
            shown.add_row(Text(title), *(Text(own[title]) for own in cells.values()))
        return shown

    def _heading(self, one: Contender) -> str:
        notes = [f"{one.seeds} seeds"] * (one.seeds > 1) + ["bound"] * one.uses_truth
        return one.name + (f" ({', '.join(notes)})" if notes else "")

    def _cells(self, one: Contender) -> dict[str, str]:
        """Return the texts of a contender's numbers by their titles."""
        return dict(zip(self._titles(), map(_text, self._rows[one.name].values()), strict=True))

    def _titles(self) -> list[str]:
        """Return the titles of the numbers; measures have their names."""
        first = next(iter(self._rows.values()))
        return [
            f"{number}: {row.name}"
            if row is not None and row.section in ("short-term", "long-term")
            else TITLES[number].format(rate=self.rate, groups=" - ".join(self.contenders[0].groups))
            if number in TITLES
            else number
            for number, row in first.items()
        ]

    def sentences(self) -> list[str]:
        """Return how scripted policies relate to the methods, and who gains and loses with each method."""
        return [*told_rules(self.contenders), *told_changes(self.contenders, self.reference)]

    def footnotes(self) -> list[str]:
        """Return the sentences, the notes, and how to read the table."""
        level, episodes = 100 * self.contenders[0].performance.level, int(self.about.get("episodes", 0))
        return [
            *self.sentences(),
            *self._about_reference(),
            *self.notes,
            *self._about_trainings(),
            f"{level:g} % confidence intervals: over training seeds where there are several, for these test episodes; "
            f"otherwise over {episodes} episodes, which do not show how much another training would differ.",
            f"{self._how_compared()} About {self._compared()} intervals were looked at: {100 - level:g} % exclude 0 by "
            "chance if nothing differs.",
            "After ~: the noise floor, the mean gap after shuffling the group memberships of individuals; *: the gap "
            "is above the limit that chance exceeds in at most 5 % of cases. Over several seeds, the mean gap is "
            "compared.",
            *told_few(episodes),
        ]

    def _how_compared(self) -> str:
        """Return whether the sentences compare policies episode by episode."""
        if all(own.of_episodes for one in self.contenders for own in one.evaluations):
            return "Sentences compare policies episode by episode: differences can be clear although intervals overlap."
        return "Sentences compare evaluations that were stored without their episodes as independent ones."

    def _compared(self) -> int:
        """Return about how many intervals of differences the sentences rest on."""
        methods = sum(one.kind == "trained" for one in self.contenders)
        rules = sum(one.kind == "scripted" and not one.uses_truth for one in self.contenders)
        others = len(compared_with(self.contenders, self.reference))
        return 2 * methods * rules + others * (2 + len(COMPARED) + len(self.contenders[0].groups))

    def _about_trainings(self) -> Iterator[str]:
        """Yield how long methods were trained, and in which world all policies were tested."""
        names: dict[tuple[int, int], list[str]] = {}
        for one in self.contenders:
            steps = [own.about.get("run", {}).get("steps", 0) for own in one.evaluations]
            names.setdefault((min(steps), max(steps)), []).append(one.name)
        told = "; ".join(
            f"{low:,}{f' to {high:,}' * (high > low)} ({', '.join(own)})"
            for (low, high), own in sorted(names.items())
            if low
        )
        if told:
            yield f"Steps of each training: {told}."
        yield played_with(self.contenders[0].evaluations[0])

    @property
    def reference(self) -> Contender | None:
        """What methods are compared with: the one with the name `compared_with`.

        Without it: the reward-only method, or else the trained method, or else the policy that does not use the truth,
        with the highest performance.
        """
        if self.compared_with:
            return next(one for one in self.contenders if one.name == self.compared_with)
        return max(self._candidates(), key=performance_of, default=None)

    def _candidates(self) -> list[Contender]:
        trained = [one for one in self.contenders if one.kind == "trained"]
        others = [one for one in self.contenders if not one.uses_truth]
        return [one for one in trained if one.name.split(" ")[0] == REWARD_ONLY] or trained or others

    def _about_reference(self) -> Iterator[str]:
        """Yield which method is the reference, if several could be."""
        reference = self.reference
        if reference is not None and not self.compared_with and len(self._candidates()) > 1:
            others = "Methods" if reference.kind == "trained" else "Policies"
            yield (
                f"{others} are compared with {reference.name}, which has the highest performance of "
                f"{', '.join(one.name for one in self._candidates())}. Because it was chosen by these numbers, the "
                "others look worse than they are, and more intervals exclude 0 by chance than said below; --reference "
                "(in Python: reference=) chooses another."
            )

    def save(self, folder: Path | str) -> Path:
        """Write the table, all evaluations and, if Matplotlib is installed, plots; return the folder.

        The files are ``comparison.md``, ``.csv`` and ``.json``, and ``evaluations.json``, with which `compare` makes
        the same comparison again.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        header = ["policy", *self._titles()]
        rows = [[self._heading(one), *self._cells(one).values()] for one in self.contenders]
        lines = [f"# {self.env_id}", "", markdown(header, rows), "", *(f"* {line}" for line in self.footnotes()), ""]
        (place / "comparison.md").write_text("\n".join(lines), encoding="utf-8")
        numbers = self.as_dict()["numbers"]
        flat = [
            {"policy": name, "number": number, **one} for name, own in numbers.items() for number, one in own.items()
        ]
        with (place / "comparison.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(flat[0]))
            writer.writeheader()
            writer.writerows(flat)
        (place / "comparison.json").write_text(json.dumps(self.as_dict(), indent=2, allow_nan=False) + "\n")
        save_compact([used(own) for one in self.contenders for own in one.evaluations], place / "evaluations.json")
        self._plots(place)
        return place

    def _plots(self, folder: Path) -> None:
        try:
            from fair_envs.assessment.plots import dot_plot, plot_price

            points = [(self._heading(one), one.gap, one.performance, one.within_noise) for one in self.contenders]
            titles = {"performance": self.contenders[0].performance_name, "gap": TITLES["gap"].format(rate=self.rate)}
            plot_price(points, folder / "price.png", **titles)
            rates = {self._heading(one): one.rates for one in self.contenders}
            dot_plot({"": rates}, folder / "rates.png", label=self.rate)
        except ImportError:
            return

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data for JSON."""
        about = {"fair_envs": fair_envs.__version__, "env_id": self.env_id, "rate": self.rate, **self.about}
        rows = {
            name: {number: _plain(estimate, self._rows[name][number]) for number, estimate in own.items()}
            for name, own in self.rows.items()
        }
        kinds = {
            one.name: {"kind": one.kind, "seeds": one.seeds, "uses_truth": one.uses_truth} for one in self.contenders
        }
        return {**about, "policies": kinds, "numbers": rows, "sentences": self.footnotes()}


def _text(row: Row | None) -> str:
    """Return a number with its interval and its noise floor."""
    if row is None:
        return ""
    noise = "" if np.isnan(row.noise) else f" ~{row.noise:.2g}{'*' * row.beyond_noise}"
    return short(row.estimate) + noise


def _plain(estimate: Estimate, row: Row | None) -> dict[str, Any]:
    """Return a number with its noise floor, for JSON."""
    noise = None if row is None or np.isnan(row.noise) else row.noise
    return {**estimate.as_dict(), "noise_floor": noise, "beyond_noise": row is not None and row.beyond_noise}


def table_of(evaluations: Sequence[Evaluation], *, every: bool = False) -> Table | TableOfRows:
    """Return a table for the terminal: all numbers of one policy, or the main ones of several unless all are wanted."""
    if every or len(evaluations) == 1:
        return every_number(evaluations)
    first, contenders = evaluations[0], [Contender(one.policy, one.about["kind"], [one]) for one in evaluations]
    return Comparison(env_id=first.env_id, rate=first.rate, contenders=contenders).table(columns=3)


def used(one: Evaluation) -> Evaluation:
    """Return an evaluation without what comparisons do not use, which is most of it."""
    return replace(one, curve={}, rows=tuple(row for row in one.rows if row.section in SECTIONS_USED))


# Playing --------------------------------------------------------------------------------------------------------------


def compare(
    runs: Sequence[Path | str | Evaluation],
    *,
    task: str | None = None,
    policies: Sequence[str] | None = None,
    out: Path | str | None = None,
    episodes: int | None = None,
    seed: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    shuffles: int | None = None,
    reference: str | None = None,
    progress: bool = False,
) -> Comparison:
    """Compare runs and other policies on the same test episodes; what has no stored evaluation is evaluated.

    Runs of the same method with the same settings and different seeds are one row: the mean over the seeds, with an
    interval over the seeds. Each evaluation is stored in the folder of its run, so an interrupted comparison resumes,
    and a second one is fast. A comparison of stored evaluations does not need the runs.

    Args:
        runs: Folders of runs in one environment, of any methods whose policy plays by itself; evaluations of
            `fair_envs.evaluate`; and files of them: ``evaluation.json`` of `Evaluation.save`, or ``evaluations.json``
            of `Comparison.save`.
        task: Id of the environment whose task is used; None: that of the stored evaluations, or the environment's own.
        policies: Names of policies for comparison; those in the files are not played again. None: those in the files,
            or if there are none, random and the task's scripted ones.
        out: Folder for the table, the plots and the evaluations; None: they are not stored.
        episodes: Number of test episodes; None: as in the stored evaluations, or 64.
        seed: Seed of the first one; None: as in the stored evaluations, or `fair_envs.support.seeds.TEST_SEEDS`.
        parameters: Parameters of the environment; they override those of the trainings.
        shuffles: Number of shuffles for noise floors, see `fair_envs.evaluate`; None: as in the stored evaluations, or
            100.
        reference: Name of the row with which methods are compared; None: reward-only PPO, or without it the trained
            method with the highest performance. Without any method, all policies are compared with this row; None: the
            one with the highest performance that does not use the ground truth.
        progress: Whether to show a progress bar.

    Raises:
        ValueError: There is no run, the runs are of different environments, a training is given by two paths, a stored
            evaluation was made with another task, other episodes or other parameters than the rest, or a policy or the
            reference is unknown.
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
    others = _names(env_id, policies, base, stored=[str(one) for one in entries if one.kind != "trained"])
    labels = labels_of(entries)
    _check_reference(reference, [*labels, *others])
    runs_to_play = [None if one.evaluation is not None else _cell(one, given, shared) for one in entries]
    policies_to_play = [evaluation_cell(env_id, name, base, **shared) for name in others]
    for name in others:
        if env_id in TABLE:
            policy_tried(name, exactly(env_id, base))
        else:
            policy_named(name, rules_for(env_id, **base))
    played = [*filter(None, runs_to_play), *policies_to_play]
    _check_alike(
        [*(measured_in(one.evaluation) for one in entries if one.evaluation), *(one.measured for one in played)]
    )
    found: list[tuple[str, Kind, Evaluation]] = []  # rounded as in files, so both give the same table
    kept: Any = TemporaryDirectory() if out is None else nullcontext(str(Path(out) / CACHE))
    with progress_bar("evaluating", total=len(played), shown=progress and bool(played)) as advanced, kept as folder:
        for one, cell, label in zip(entries, runs_to_play, labels, strict=True):
            evaluation = one.evaluation
            if cell is not None:
                evaluation = read_evaluation(run_cell(cell, one.path / CACHE))
                advanced()
            assert evaluation is not None
            found.append((label, one.kind, replace(rounded(evaluation), policy=label)))
        for name, cell in zip(others, policies_to_play, strict=True):
            found.append((name, kind_of(name), rounded(read_evaluation(run_cell(cell, Path(folder))))))
            advanced()
    comparison = Comparison(
        env_id=env_id,
        rate=found[0][2].rate,
        contenders=_contenders(found),
        about={"task": task, "parameters": base, "episodes": numbers["episodes"], "seed": numbers["seed"]},
        notes=[
            *differences(entries, [own.about["parameters"] for _, _, own in found]),
            *_trade_offs(entries, labels),
            *([TASKS[task].caution] if task in TASKS and TASKS[task].caution else []),
        ],
        compared_with=reference or "",
    )
    if out is not None:
        comparison.save(out)
    return comparison


def _cell(run: Entry, parameters: Mapping[str, Any], shared: Mapping[str, Any]) -> EvaluationCell:
    """Return the cell of a run, whose result is stored in its folder."""
    name = run.training["method"]
    return evaluation_cell(run.env_id, str(run.path), {**run.parameters, **parameters}, name=name, **shared)


def _check_reference(reference: str | None, names: Sequence[str]) -> None:
    if reference is not None and reference not in names:
        known = ", ".join(map(repr, dict.fromkeys(names)))
        raise ValueError(f"reference must be one of {known}, got {reference!r}{meant(reference, names)}")


def _trade_offs(entries: Sequence[Entry], labels: Sequence[str]) -> Iterator[str]:
    """Yield which of its learned trade-offs a method plays."""
    for label, one in dict(zip(labels, entries, strict=True)).items():
        if "followed" in one.training.get("settings", {}):
            yield (
                f"{label} plays one of the trade-offs that it learned, {one.training['settings']['followed']!r} (the "
                "setting followed); fair-envs evaluate RUN shows all."
            )


def _names(
    env_id: str, policies: Sequence[str] | None, parameters: Mapping[str, Any], *, stored: Sequence[str]
) -> list[str]:
    """Return the policies that must be played."""
    if policies is None:
        return [] if stored else [*scripted_in(task_of(env_id), rules_for(env_id, **parameters)), "random"]
    if isinstance(policies, str):
        raise ValueError(
            f"policies must be a list of names, got {policies!r}{meant(policies, task_of(env_id).scripted)}"
        )
    policies = [str(name) if isinstance(name, Path) else name for name in policies]
    for name in policies:
        if not isinstance(name, str):
            raise TypeError(
                f"policies must be names, module:function or zips of models, got {type(name).__name__}; save a model "
                "and give the path of its zip"
            )
    return [name for name in dict.fromkeys(policies) if name not in stored]


def _check_alike(found: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if evaluations measure different things, as parameters or a changed task may cause."""
    for part in found[0]:
        kinds = list(dict.fromkeys(", ".join(one[part]) if part == "groups" else str(one[part]) for one in found))
        if len(kinds) > 1:
            what = {"groups": "groups", "rate": "rate"}.get(part, f"{part} measure")
            raise ValueError(
                f"runs must be measured alike, got the {what} {' and '.join(map(repr, kinds))}; compare each alone, or "
                "evaluate again with one task"
            )


def _contenders(found: Sequence[tuple[str, Kind, Evaluation]]) -> list[Contender]:
    """Return the contenders: trained methods, then scripted policies, then the random one."""
    by_name: dict[tuple[str, Kind], list[Evaluation]] = {}
    for name, kind, evaluation in found:
        by_name.setdefault((name, kind), []).append(evaluation)
    contenders = [Contender(name, kind, own) for (name, kind), own in by_name.items()]
    return sorted(contenders, key=lambda one: KINDS.index(one.kind))
