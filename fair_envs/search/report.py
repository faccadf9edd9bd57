"""The report of a search: trials, the front, importances, and the comparison with the original configuration."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fair_envs
from fair_envs.evaluation.systems import TOTAL
from fair_envs.experiments.tables import markdown, show
from fair_envs.metrics import Estimate
from fair_envs.search.design import Found, defined, distinct
from fair_envs.search.objectives import Objective, numbers
from fair_envs.search.ranges import label
from fair_envs.search.trials import Trial
from fair_envs.support.files import appearing

CONFIGURATION = "configuration.json"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One number in both configurations, over episodes with the same seeds, which no trial used.

    Attributes:
        name: Name of the number.
        original: Its mean in the original configuration.
        chosen: Its mean in the selected one.
        difference: How much larger it is in the selected one; for parities, how much larger its absolute value is.
    """

    name: str
    original: Estimate
    chosen: Estimate
    difference: Estimate


def compare(found: Found) -> list[Compared]:
    """Return every number that both configurations have, with the objectives first."""
    one, other = map(numbers, found.held_out)
    first = [goal.name for goal in found.search.goals]
    names = [*first, *(name for name in one if name not in first)]
    rows = []
    for name in names:
        if name in one and name in other:
            goal = Objective(name=name)
            difference = goal.difference(other[name], one[name])
            rows.append(
                Compared(
                    name=name,
                    original=goal.estimate(one[name]),
                    chosen=goal.estimate(other[name]),
                    difference=difference,
                )
            )
    return rows


def trials_table(found: Found, *, most: int = 12) -> Any:
    """Return a table of the trials: the front, then the best in the first objective."""
    from rich.table import Table
    from rich.text import Text

    names = list(found.search.dimensions)
    shown = Table("trial", box=None, pad_edge=False)
    for name in (*names, *(goal.name for goal in found.search.goals), "episodes"):
        shown.add_column(Text(name), overflow="fold")
    front = [trial.number for trial in found.front]
    ranked = sorted(_played(found), key=lambda trial: (trial.number not in front, *found.search.losses(trial.series)))
    ranked = distinct(found.search, ranked)
    for trial in [found.original, *ranked[:most]]:
        mark = "*" if trial.number == found.chosen.number else ""
        name = "original" if trial.number < 0 else f"{trial.number}{mark}"
        values = _values(found, trial)
        row = [
            name,
            *(label_of(values[one]) for one in names),
            *(_value(trial, goal) for goal in found.search.goals),
        ]
        shown.add_row(*map(Text, row), str(len(next(iter(trial.series.values())))))
    return shown


def comparison_table(rows: Sequence[Compared]) -> Any:
    """Return a table of the comparison."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False)
    for name in ("number", "original", "chosen", "difference"):
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(row.name, *(Text(_short(one)) for one in (row.original, row.chosen, row.difference)))
    return shown


def save(found: Found, rows: Sequence[Compared], folder: Path) -> None:
    """Write the configuration, numbers, pictures and report into a new folder, which is created atomically."""
    with appearing(folder) as part:
        _save(found, rows, part)


def _save(found: Found, rows: Sequence[Compared], folder: Path) -> None:
    (folder / CONFIGURATION).write_text(json.dumps(found.configuration, indent=2) + "\n")
    _write_trials(found, folder / "trials.csv")
    reported = {
        row.name: {name: getattr(row, name).as_dict() for name in ("original", "chosen", "difference")} for row in rows
    }
    about = {"fair_envs": fair_envs.__version__, "search": found.search.as_dict(), "trial": found.chosen.number}
    record = {**about, "comparison": reported, "importances": found.importances}
    (folder / "comparison.json").write_text(json.dumps(record, indent=2) + "\n")
    draw_front(found, folder / "front.png")
    if found.importances:
        draw_importances(found.importances, folder / "importances.png")
    (folder / "report.md").write_text(report(found, rows))


# The report -----------------------------------------------------------------------------------------------------------


def report(found: Found, rows: Sequence[Compared]) -> str:
    """Return everything as Markdown."""
    search, own, last = found.search, _values(found, found.original), found.chosen.parameters
    ranges = search.dimensions.items()
    changed = [[name, code(one), label_of(own[name]), label_of(last[name])] for name, one in ranges]
    compared: list[list[str | Estimate]] = [[row.name, row.original, row.chosen, row.difference] for row in rows]
    fixed = ", ".join(f"{name}={label_of(value)}" for name, value in search.parameters.items()) or "defaults"
    goals = ", ".join(f"{goal.direction} {goal.name}" for goal in search.goals)
    parts = [
        f"# A configuration of {search.env_id}",
        f"Objectives: {goals}. Played by `{search.policy}`; parameters: {fixed}. {len(found.trials)} configurations by "
        f"{search.sampler}, {search.least_episodes} to {search.episodes} episodes each, with the same seeds (seed "
        f"{search.seed}).",
        "## The configuration",
        f"Trial {found.chosen.number}; `gym.make({search.env_id!r}, **config)` takes `{CONFIGURATION}`.",
        markdown(["parameter", "range", "original", "chosen"], changed),
        "## Compared with the original",
        f"Over {search.held_out} pairs of episodes with seeds that no trial used, with 95 % intervals over pairs. The "
        "difference of a parity is the difference of absolute values: below 0, the gap is smaller. Other differences "
        "have their sign. There is no correction for multiple comparisons; the objectives come first.",
        markdown(["number", "original", "chosen", "difference"], compared),
        price(rows),
        "## Trials",
        "![Every configuration](front.png)",
        _finalists(found),
    ]
    if found.importances:
        what = "By functional ANOVA: the share of the variation among trials that a parameter explains by itself."
        parts += ["## Which parameters mattered", what, "![Importances](importances.png)"]
    return "\n\n".join(parts) + "\n"


def price(rows: Sequence[Compared]) -> str:
    """Return the cost of the selected configuration, as a sentence."""
    (total,) = [row for row in rows if row.name == TOTAL]
    share = total.difference.value / abs(total.original.value) if total.original.value else float("nan")
    sides = [row for row in rows if row.name.startswith("return_with")]
    each = "; ".join(f"{row.name} by {show(row.difference)}" for row in sides)
    reported = f"Its price: the total return changes by {show(total.difference)} ({100 * share:+.1f} %)"
    return f"{reported}; {each}." if each else f"{reported}."


def _finalists(found: Found) -> str:
    """Return the results of the best configurations when they were played longer."""
    goals = found.search.goals
    rows: list[list[str | Estimate]] = [
        [str(trial.number), *(goal.estimate(trial.series[goal.name]) for goal in goals)] for trial in found.finalists
    ]
    header = ["trial", *(goal.name for goal in goals)]
    count = len(next(iter(found.chosen.series.values())))
    return f"The best ones, over {count} episodes not used to select them:\n\n{markdown(header, rows)}"


def _write_trials(found: Found, path: Path) -> None:
    search = found.search
    goals = [column for goal in search.goals for column in (goal.name, f"{goal.name} standard error")]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["trial", *search.dimensions, *goals, "episodes", "stopped"])
        for trial in [found.original, *found.trials]:
            own = _values(found, trial)
            reported: list[Any] = []
            for goal in search.goals:
                values = trial.series.get(goal.name)
                reported += ["", ""] if values is None else [goal.value(values), goal.error(values)]
            count = len(next(iter(trial.series.values()), ()))
            name = "original" if trial.number < 0 else trial.number
            writer.writerow([name, *(label(own[one]) for one in search.dimensions), *reported, count, trial.stopped])


# Pictures -------------------------------------------------------------------------------------------------------------


def draw_front(found: Found, path: Path) -> None:
    """Save a plot of all configurations: the first objective against the second, or against the order of trials."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axis, goals = figure.subplots(), found.search.goals
    two = len(goals) > 1

    def at(trial: Trial) -> tuple[float, float]:
        return goals[0].value(trial.series[goals[0].name]), of_second(Objective.value, trial, trial.number)

    def of_second(what: Callable[[Objective, Any], float], trial: Trial, alone: float) -> float:
        return what(goals[1], trial.series[goals[1].name]) if two else alone

    def draw(trials: Sequence[Trial], **style: Any) -> None:
        places = np.array([at(trial) for trial in trials]).reshape(-1, 2)
        errors = [(goals[0].error(t.series[goals[0].name]), of_second(Objective.error, t, 0.0)) for t in trials]
        own = np.array(errors).reshape(-1, 2)
        x, y = places.T
        axis.errorbar(x, y, xerr=own[:, 0], yerr=own[:, 1], linestyle="none", elinewidth=0.6, **style)

    played, front = _played(found), {trial.number for trial in found.front}
    best = sorted((trial for trial in played if trial.number in front), key=at)
    chosen = [trial for trial in played if trial.number == found.chosen.number]
    draw([t for t in played if t.number not in front], marker="o", color="#999999", markersize=4, label="trials")
    draw(best, marker="o", color="#0072b2", label="none better in all objectives")
    if two:
        axis.plot(*np.array([at(trial) for trial in best]).T, color="#0072b2", linewidth=0.8)
    draw([found.original], marker="s", color="#222222", markersize=8, label="original")
    draw(chosen, marker="*", color="#d55e00", markersize=14, label="chosen")
    axis.set(xlabel=_axis(goals[0]), ylabel=_axis(goals[1]) if two else "trial")
    axis.set_title("bars: standard errors", fontsize="small")
    axis.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def draw_importances(importances: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Save a plot of each parameter's share in the variation among trials, by objective."""
    from matplotlib.figure import Figure

    names = sorted(next(iter(importances.values())))
    figure = Figure(figsize=(7, 1.2 + 0.35 * len(names) * len(importances)), layout="constrained")
    axis = figure.subplots()
    height = 0.8 / len(importances)
    for k, (goal, shares) in enumerate(importances.items()):
        axis.barh(np.arange(len(names)) + k * height, [shares.get(name, 0.0) for name in names], height, label=goal)
    axis.set_yticks(np.arange(len(names)) + 0.4 - height / 2, names)
    axis.set(xlabel="importance (shares of 1)", xlim=(0, 1))
    axis.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def _axis(goal: Objective) -> str:
    size = "absolute mean, " if goal.of_parity else ""
    return f"{goal.name} ({size}{'less' if goal.direction == 'minimize' else 'more'} is better)"


# Texts ----------------------------------------------------------------------------------------------------------------


def code(text: Any) -> str:
    """Return a text formatted as code in a cell of a Markdown table."""
    return f"`{text}`".replace("|", "\\|")


def label_of(value: Any) -> str:
    """Return a parameter's value as a text."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return label(value) or "none"


def _values(found: Found, trial: Trial) -> Mapping[str, Any]:
    """Return a trial's searched parameters; for the original configuration, the environment's own values."""
    if trial.number >= 0:
        return trial.parameters
    params = found.search.rules().params
    return {name: getattr(params, name) for name in found.search.dimensions}


def _played(found: Found) -> list[Trial]:
    """Return the trials whose objectives are all defined."""
    return [trial for trial in found.trials if defined(found.search, trial)]


def _value(trial: Trial, goal: Objective) -> str:
    values = trial.series[goal.name]
    return f"{goal.value(values):.4g} ({goal.error(values):.2g})"


def _short(estimate: Estimate) -> str:
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"
