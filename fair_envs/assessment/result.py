"""The result of an evaluation: one table for every policy, environment and method."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fair_envs
from fair_envs.assessment.played import listed, set_by_task
from fair_envs.evaluation.reports import short
from fair_envs.metrics import Estimate
from fair_envs.metrics.rates import COMPARED
from fair_envs.support.aliases import Floats
from fair_envs.support.files import damaged, read_json, replace_file
from fair_envs.tasks import TASKS

SECTIONS: Mapping[str, str] = {
    "performance": "performance",
    "rate": "group rates",
    "selection": "how often groups are selected",
    "gap": "gaps of the rate",
    "short-term": "short-term measure",
    "long-term": "long-term measure",
    "notion": "other notions",
    "welfare": "welfare",
    "twin": "counterfactual twins",
}
"""The sections of the table, in their order, and their titles."""

PLAIN_WIDTH = 120

FEW_EPISODES = 8
"""With fewer episodes, intervals of pooled numbers are too narrow."""


class Row(NamedTuple):
    """One number of an evaluation, which can be used like its estimate: ``row.value`` is ``row.estimate.value``.

    Attributes:
        section: See `SECTIONS`.
        name: What is measured, such as ``"true positive rate"``.
        of: Whose number it is, such as the name of a group, or ``"A - B"`` for a signed difference.
        estimate: The number with its interval.
        noise: The mean of its absolute value with shuffled group memberships, the noise floor; NaN if there is none.
        limit: A high quantile of the same values: absolute gaps above it are unlikely to be noise.
    """

    section: str
    name: str
    of: str
    estimate: Estimate
    noise: float = float("nan")
    limit: float = float("nan")

    def __str__(self) -> str:
        return str(self.estimate)

    def __format__(self, spec: str) -> str:
        return format(self.estimate, spec)

    @property
    def value(self) -> float:
        """The number; NaN if it is undefined."""
        return self.estimate.value

    @property
    def low(self) -> float:
        """The lower end of its interval; NaN if it is undefined."""
        return self.estimate.low

    @property
    def high(self) -> float:
        """The upper end of its interval; NaN if it is undefined."""
        return self.estimate.high

    @property
    def n(self) -> int:
        """The number of episodes it is based on."""
        return self.estimate.n

    @property
    def level(self) -> float:
        """The coverage of its interval."""
        return self.estimate.level

    @property
    def standard_error(self) -> float:
        """Its standard error; NaN if it is undefined."""
        return self.estimate.standard_error

    def excludes(self, value: float) -> bool:
        """Return whether a value lies outside the interval; an undefined interval excludes nothing."""
        return self.estimate.excludes(value)

    @property
    def beyond_noise(self) -> bool:
        """Whether the absolute value is above the limit; false if there is none."""
        return bool(abs(self.estimate.value) > self.limit)

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the row in an evaluation."""
        return self.section, self.name, self.of

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data for JSON."""
        found = {"section": self.section, "name": self.name, "of": self.of, **self.estimate.as_dict()}
        noise, limit = (None if np.isnan(number) else number for number in (self.noise, self.limit))
        return {**found, "noise_floor": noise, "noise_limit": limit, "beyond_noise": self.beyond_noise}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a policy does in an environment: its performance, and what each group gets.

    Attributes:
        policy: Name of the policy.
        env_id: Id of the environment.
        rate: Name of the task's rate, which defines the welfare of groups.
        groups: Names of the compared groups.
        rows: The numbers.
        about: Episodes, seed, parameters, and other metadata: ``kind`` says whether the policy was trained, and
            ``run``, if it is a run, its ``method``, its ``seed`` and its other ``settings``.
        curve: The gap of the rate over time, with the keys ``step``, ``gap``, ``low`` and ``high``.
        notes: Sentences on what was left out, and why.
        of_episodes: What comparisons need to compare policies episode by episode, arrays: ``performance`` and, unless
            they continue across episodes, measures (``short-term: mean over steps``) of each episode, shape (E,);
            ``totals``, the groups' benefits and demands, shape (E, G, 2); ``shuffled gaps``, the largest gap with
            shuffled group memberships, shape (shuffles,); ``strata: FACTOR``, the groups' benefits and demands in all
            episodes by the value of a legitimate factor, shape (G, values, 2); and ``course``, the same since the start
            of the episodes, shape (T, G, 2), after the steps in ``times of the course``, shape (T,). Empty in
            evaluations that were stored without it.
    """

    policy: str
    env_id: str
    rate: str
    groups: tuple[str, ...]
    rows: tuple[Row, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    curve: Mapping[str, Sequence[float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    of_episodes: Mapping[str, Floats] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the table as text, and the sentences below it."""
        console = Console(width=PLAIN_WIDTH, color_system=None, force_terminal=False)
        with console.capture() as captured:
            console.print(self.table())
        return "\n".join([captured.get().rstrip(), "", *self.footnotes()])

    def row(self, section: str, name: str | None = None, of: str | None = None) -> Row:
        """Return the first row of a section, with a name and an owner if they are given.

        Raises:
            KeyError: There is none.
        """
        for row in self.rows:
            if row.section == section and name in (None, row.name) and of in (None, row.of):
                return row
        wanted = {"section": section, "name": name, "of": of}
        told = ", ".join(f"{key} {value!r}" for key, value in wanted.items() if value is not None)
        sections = ", ".join(dict.fromkeys(f"{row.section}/{row.name}" for row in self.rows))
        raise KeyError(f"the evaluation has no row with {told}; it has (section/name): {sections}")

    @property
    def performance(self) -> Estimate:
        """The task's performance."""
        return self.row("performance").estimate

    @property
    def rates(self) -> dict[str, Estimate]:
        """The pooled rate of each group."""
        return {row.of: row.estimate for row in self.rows if row.section == "rate"}

    @property
    def gap(self) -> Row:
        """The largest difference between the pooled rates of two groups."""
        return self.row("gap", of="largest")

    @property
    def worst_off(self) -> str:
        """The group with the lowest rate; empty if no two groups have different rates."""
        known = {name: rate.value for name, rate in self.rates.items() if not np.isnan(rate.value)}
        if len(set(known.values())) < 2:
            return ""
        return min(known, key=lambda name: known[name])

    def table(self) -> Table:
        """Return the numbers with intervals and noise floors, as a table of rich."""
        return table_of([self])

    def footnotes(self) -> list[str]:
        """Return what the table shows in words, and how to read it."""
        return [*self.summary(), *self.notes, *reading(self)]

    def summary(self) -> list[str]:
        """Return who is worse off, and whether it could be noise."""
        gap, worst = self.gap, self.worst_off
        if not worst:
            return [f"No two groups differ in their {self.rate}."]
        rate = self.rates[worst].value
        found = f"Worst off: {worst}, whose {self.rate} is {rate:.4g}; the largest gap is {gap.estimate.value:.4g}"
        if np.isnan(gap.limit):
            return [f"{found}."]
        verdict = "more than" if gap.beyond_noise else "not more than"
        return [f"{found}, {verdict} noise would give ({gap.noise:.4g} on average, {gap.limit:.4g} at most in 95 %)."]

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain data for JSON."""
        found = {name: getattr(self, name) for name in ("policy", "env_id", "rate", "about", "curve")}
        lists = {"groups": list(self.groups), "notes": list(self.notes), "rows": [row.as_dict() for row in self.rows]}
        lists["of_episodes"] = {name: _plain(values.tolist()) for name, values in self.of_episodes.items()}
        return {"fair_envs": fair_envs.__version__, **found, "worst_off": self.worst_off, **lists}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Evaluation":
        """Return an evaluation from what `as_dict` returned."""
        rows = []
        for row in found["rows"]:
            numbers = {name: _number(row[name]) for name in ("value", "low", "high", "standard_error")}
            estimate = Estimate(n=row["n"], level=row["level"], **numbers)
            noise, limit = _number(row["noise_floor"]), _number(row["noise_limit"])
            rows.append(Row(row["section"], row["name"], row["of"], estimate, noise, limit))
        kept = {name: found[name] for name in ("policy", "env_id", "rate", "about", "curve")}
        kept["of_episodes"] = {
            name: np.array(values, np.float64) for name, values in found.get("of_episodes", {}).items()
        }
        return cls(rows=tuple(rows), groups=tuple(found["groups"]), notes=tuple(found["notes"]), **kept)

    def save(self, folder: Path | str) -> Path:
        """Write ``evaluation.json`` and ``evaluation.csv`` into a folder, and return the folder."""
        save([self], Path(folder))
        return Path(folder)

    def plots(self, folder: Path | str) -> list[Path]:
        """Write plots of the groups' rates and of the gap over time into a folder; return their paths.

        Raises:
            ImportError: Matplotlib is not installed.
        """
        return save_plots([self], Path(folder))


def table_of(evaluations: Sequence[Evaluation]) -> Table:
    """Return a table with a column for each policy; the noise floor of a gap follows its interval."""
    several = len(evaluations) > 1
    shown = Table(box=None, pad_edge=False)
    for title in ("number",) if several else ("number", "group or statistic"):
        shown.add_column(title, overflow="fold")
    for one in evaluations:
        shown.add_column(Text(one.policy), overflow="fold")
    if not several:
        shown.add_column("noise floor")
    cells = [{row.key: row for row in one.rows} for one in evaluations]
    keys = dict.fromkeys(key for own in cells for key in own)
    for section, title in SECTIONS.items():
        inside = [key for key in keys if key[0] == section]
        if inside:
            shown.add_row(Text(title, style="bold"))
        for key in inside:
            _, name, of = key
            rows = [own.get(key) for own in cells]
            texts = [_cell(row, one, noise=several) for row, one in zip(rows, evaluations, strict=True)]
            if several:
                shown.add_row(Text(f"  {name}: {of}"), *map(Text, texts))
            else:
                shown.add_row(Text(f"  {name}"), Text(of), Text(texts[0]), Text(_noise(rows[0])))
    return shown


def _cell(row: Row | None, of: Evaluation, *, noise: bool) -> str:
    if row is None:
        return ""
    text = short(row.estimate, episodes=of.about.get("episodes"))
    floor = _noise(row)
    return f"{text} ~{floor}" if noise and floor else text


def _noise(row: Row | None) -> str:
    if row is None or np.isnan(row.noise):
        return ""
    return f"{row.noise:.2g}{'*' * row.beyond_noise}"


def reading(one: Evaluation, *others: Evaluation, main: bool = False) -> list[str]:
    """Return how to read the table of evaluations; ``main``: it contains only the main numbers of several policies."""
    level, episodes = one.about.get("level", 0.95), one.about.get("episodes", 0)
    floor = "the mean absolute gap after shuffling the group memberships among individuals"
    where = "Noise floor, in a table of several policies after ~"
    found = [
        f"{100 * level:g} % confidence intervals over n = {episodes} episode{'s' * (episodes != 1)}. Rates are pooled: "
        "sums of benefits divided by sums of demands.",
        f"After ~: the noise floor, {floor}."
        if main
        else f"{where}: {floor}; *: the gap is above the limit that chance exceeds in at most 5 % of cases.",
    ]
    notions = () if main else compared([one, *others])
    return [*found, *notions, *acting([one, *others]), played_with(one), *told_few(episodes)]


def compared(found: Sequence[Evaluation]) -> Iterator[str]:
    """Yield which rates the notions in the table compare: their units differ."""
    names = dict.fromkeys(row.name for one in found for row in one.rows if row.section == "notion")
    told = [f"{name}: {' and '.join(rate.name for rate in COMPARED[name])}" for name in names if name in COMPARED]
    if told:
        yield f"What notions compare between groups (see docs/fairness.md): {'; '.join(told)}."


def acting(found: Sequence[Evaluation]) -> Iterator[str]:
    """Yield which of the trained policies sample their actions, and which take the most likely ones."""
    likely = [one.policy for one in found if one.about.get("deterministic")]
    if likely:
        yield f"Most likely actions are taken (deterministic) by: {', '.join(likely)}."
    if sampled := [one.policy for one in found if one.about.get("kind") == "trained" and one.policy not in likely]:
        yield (
            "Actions are sampled, as in training, from the probabilities of policies that have them: "
            f"{', '.join(sampled)}. With the most likely actions of a model (deterministic), gaps can be much larger."
        )


def told_few(episodes: int) -> Iterator[str]:
    """Yield a warning about few episodes."""
    if episodes < FEW_EPISODES:
        few = f"Warning: with fewer than {FEW_EPISODES} episodes, the intervals of rates and gaps are too narrow."
        yield f"{few} Play more episodes."


def played_with(one: Evaluation) -> str:
    """Return with which parameters the environment was played, and which of them the task has set."""
    given = one.about.get("parameters", {})
    if not given:
        return f"All parameters of {one.env_id} have their defaults."
    own = set_by_task(TASKS.get(one.about.get("task", "")), one.env_id, given)
    told = f"Parameters of {one.env_id}: {listed(given)}"
    return f"{told}; all others have their defaults." + (f" The task sets {', '.join(own)}." if own else "")


def save(evaluations: Sequence[Evaluation], folder: Path) -> None:
    """Write ``evaluation.json`` and ``evaluation.csv`` with one or several evaluations into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "evaluation.json").write_text(
        json.dumps([one.as_dict() for one in evaluations], indent=2, allow_nan=False, default=str) + "\n",
        encoding="utf-8",
    )
    rows = [{"policy": one.policy, **row.as_dict()} for one in evaluations for row in one.rows]
    with (folder / "evaluation.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def save_compact(evaluations: Sequence[Evaluation], file: Path) -> None:
    """Write `rounded` evaluations into a small file, with one line for each; see `read`."""
    plain = (rounded(one).as_dict() for one in evaluations)
    lines = [json.dumps(one, allow_nan=False, default=str, separators=(",", ":")) for one in plain]
    replace_file(file, ("[\n" + ",\n".join(lines) + "\n]\n").encode())


def rounded(one: Evaluation) -> Evaluation:
    """Return an evaluation with six significant digits of each number; rounding it again changes nothing."""
    plain = one.as_dict()
    return Evaluation.from_dict(plain | {name: _rounded(plain[name]) for name in ("rows", "curve", "of_episodes")})


def _rounded(found: Any) -> Any:
    """Return plain data with all floats rounded to six significant digits."""
    if isinstance(found, float):
        return float(f"{found:.6g}")
    if isinstance(found, Mapping):
        return {name: _rounded(value) for name, value in found.items()}
    return [_rounded(value) for value in found] if isinstance(found, list | tuple) else found


def save_plots(evaluations: Sequence[Evaluation], folder: Path) -> list[Path]:
    """Write ``rates.png``, the groups' rates, and ``gap.png``, the gap over time, into a folder; return their paths.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    from fair_envs.assessment.plots import dot_plot, plot_curves

    rate, groups = evaluations[0].rate, evaluations[0].groups
    signed = f"{groups[0]} - {groups[1]}" if len(groups) == 2 else "largest difference"
    rates, curves = {one.policy: one.rates for one in evaluations}, {one.policy: one.curve for one in evaluations}
    paths = [folder / "rates.png", folder / "gap.png"]
    dot_plot({"": rates}, paths[0], label=rate)
    plot_curves(curves, paths[1], title=f"{rate}: {signed}")
    return paths


def read(path: Path) -> list[Evaluation]:
    """Return the evaluations in a file that `save` or `save_compact` has written.

    Raises:
        ValueError: The file is damaged.
    """
    found = read_json(path, list)
    try:
        return [Evaluation.from_dict(one) for one in found]
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"it is not an evaluation ({type(error).__name__}: {error})") from error


def _plain(found: Any) -> Any:
    """Return nested lists with None instead of NaN, for JSON."""
    if isinstance(found, list):
        return [_plain(value) for value in found]
    return None if np.isnan(found) else found


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
