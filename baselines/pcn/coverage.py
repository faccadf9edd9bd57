"""Evaluates a return-conditioned policy on each of its best returns, with confidence intervals."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fair_envs.baselines.pcn.pcn import PCN, Command, Commanded
from fair_envs.baselines.pcn.rollouts import copied
from fair_envs.core import check_count
from fair_envs.evaluation import VectorEnv
from fair_envs.evaluation.reports import Report
from fair_envs.evaluation.reports import number as plain_number
from fair_envs.metrics.intervals import Estimate, mean_interval
from fair_envs.metrics.pareto import (
    cardinality,
    epsilon,
    expected_utility,
    hypervolume,
    non_dominated,
    sparsity,
)
from fair_envs.support.aliases import Flags, Floats
from fair_envs.support.seeds import TEST_SEEDS, policy_numbers

EPISODES = 10  # per command; fewer give intervals of little use


@dataclass(frozen=True, kw_only=True, eq=False)
class CoverageSet:
    """Commands given to a conditioned policy and the returns that it achieved.

    Attributes:
        names: Names of the objectives.
        requested: Indices of the objectives that commands ask for.
        commands: The n commands.
        returns: Achieved returns, shape (n, episodes, objectives).
        lengths: Lengths of the episodes, shape (n, episodes).
    """

    names: tuple[str, ...]
    requested: tuple[int, ...]
    commands: tuple[Command, ...]
    returns: Floats
    lengths: Floats

    @property
    def means(self) -> Floats:
        """Mean returns, shape (n, objectives)."""
        mean: Floats = self.returns.mean(axis=1)
        return mean

    @property
    def achieved(self) -> Floats:
        """Mean returns in the requested objectives, shape (n, requested)."""
        return self.means[:, self.requested]

    @property
    def desired(self) -> Floats:
        """Desired returns, shape (n, requested)."""
        return np.array([command.desired_return for command in self.commands])

    @property
    def on_front(self) -> Flags:
        """Mask of the points that are non-dominated in the requested objectives, shape (n,); means are noisy."""
        return non_dominated(self.achieved)

    def estimate(self, point: int, objective: int, *, level: float = 0.95) -> Estimate:
        """Return a point's mean return in an objective with its confidence interval over episodes."""
        return mean_interval(self.returns[point, :, objective], level=level)

    def measures(self, *, reference: ArrayLike) -> dict[str, Any]:
        """Return the measures of the whole set.

        Args:
            reference: Reference point of the hypervolume, shape (requested,).
        """
        front = self.achieved[self.on_front]
        missed = epsilon(front, desired=self.desired)
        return {
            "reference": np.asarray(reference, float).tolist(),
            "hypervolume": hypervolume(front, reference=reference),
            "hypervolume_desired": hypervolume(self.desired, reference=reference),
            "expected_utility": expected_utility(front),
            "sparsity": sparsity(front),
            "cardinality": cardinality(front),
            "epsilon_worst": missed.worst,
            "epsilon_mean": missed.mean,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data for each point."""
        return [self._row(k) for k in range(len(self.commands))]

    def _row(self, point: int) -> dict[str, Any]:
        command = self.commands[point]
        row: dict[str, Any] = {"point": point, "on_front": bool(self.on_front[point])}
        for number, wanted in zip(self.requested, command.desired_return, strict=True):
            row[f"desired_{self.names[number]}"] = float(wanted)
        row |= {"desired_horizon": command.horizon, "length": float(self.lengths[point].mean())}
        row["episodes"] = self.returns.shape[1]
        for number, name in enumerate(self.names):
            found = self.estimate(point, number)
            row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        return row


def cover(
    model: PCN,
    *,
    names: Sequence[str] | None = None,
    commands: Sequence[Command] | None = None,
    episodes: int = EPISODES,
    seed: int = TEST_SEEDS,
    deterministic: bool = True,
    env: VectorEnv | None = None,
    each: Callable[[], object] = lambda: None,
) -> CoverageSet:
    """Play test episodes with each command and return the achieved returns.

    Every command is evaluated on the same episodes and starts from the environment in its given state. No state is
    carried over from one command to the next, or from the training.

    Args:
        model: The trained model.
        names: Names of the objectives; None: their numbers.
        commands: Commands to evaluate; None: the model's best returns.
        episodes: Episodes for each command; fewer than 10 give intervals of little use.
        seed: Seed of the first test episode.
        deterministic: Whether the most probable actions are taken instead of sampled ones.
        env: Environment to play in; None: a copy of the model's, whose wrappers start with an empty history.
        each: Called after each command.

    Raises:
        ValueError: A number is below 1, or there is no command.
    """
    check_count("episodes", episodes)
    asked = tuple(model.commands() if commands is None else commands)
    if not asked:
        raise ValueError("commands must hold at least one, got none; train the model first")
    start = model.blank_env if env is None else env
    played = []
    for command in asked:
        own = copied(start)
        agent = Commanded(model, [command], lanes=own.num_envs)
        rng = policy_numbers(seed)
        played.append(model.play(own, agent, episodes=episodes, rng=rng, seed=seed, deterministic=deterministic))
        each()
    return CoverageSet(
        names=tuple(map(str, names or range(model.objectives))),
        requested=tuple(model.requested),
        commands=asked,
        returns=np.array([[episode.returns for episode in row] for row in played]),
        lengths=np.array([[float(len(episode)) for episode in row] for row in played]),
    )


# Files ----------------------------------------------------------------------------------------------------------------


def save(found: CoverageSet, folder: Path, *, reference: ArrayLike) -> None:
    """Write ``coverage.csv``, ``coverage.json``, ``pareto.png`` and ``parallel.png`` to a folder, creating it."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = found.rows()
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    (folder / "coverage.csv").write_text(stream.getvalue(), "utf-8")
    reported: dict[str, Any] = {"objectives": found.names, "requested": [found.names[k] for k in found.requested]}
    reported |= {"measures": found.measures(reference=reference), "points": rows}
    (folder / "coverage.json").write_text(json.dumps(_finite(reported), indent=1) + "\n", "utf-8")
    for name, draw in (("pareto", pareto_plot), ("parallel", parallel_plot)):
        draw(found).savefig(folder / f"{name}.png", dpi=150, bbox_inches="tight")


def _finite(value: Any) -> Any:
    """Return plain data for JSON, with None in place of numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def report(
    found: CoverageSet, *, about: Mapping[str, Any], also_save: Callable[[Path], object] | None = None
) -> Report:
    """Return a report of the points on the front, with desired and achieved returns."""
    estimates: dict[tuple[str, ...], Estimate] = {}
    for k in np.flatnonzero(found.on_front).tolist():
        for objective, wanted in zip(found.requested, found.desired[k], strict=True):
            estimates[str(k), f"desired {found.names[objective]}"] = plain_number(
                float(wanted), n=found.returns.shape[1]
            )
        for objective, name in enumerate(found.names):
            estimates[str(k), name] = found.estimate(k, objective)
    return Report(labels=("point", "number"), estimates=estimates, across="number", about=about, also_save=also_save)


# Plots ----------------------------------------------------------------------------------------------------------------

FRONT, DOMINATED, DESIRED = "#1f5a94", "#b5b5b5", "#d1495b"


def pareto_plot(found: CoverageSet) -> Any:
    """Return a figure of achieved (with intervals) and desired returns for each pair of requested objectives."""
    from matplotlib.figure import Figure

    pairs = [(a, b) for k, a in enumerate(found.requested) for b in found.requested[k + 1 :]]
    pairs = pairs or [(found.requested[0], found.requested[0])]
    figure = Figure(figsize=(4.2 * len(pairs), 3.8), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(pairs)))
    for axis, (a, b) in zip(axes, pairs, strict=True):
        _panel(axis, found, a, b)
    axes[0].legend(fontsize="small")
    return figure


def _panel(axis: Any, found: CoverageSet, a: int, b: int) -> None:
    where = [found.requested.index(number) for number in (a, b)]
    axis.scatter(*found.desired[:, where].T, marker="x", s=18, color=DESIRED, label="desired", linewidths=0.8)
    for chosen, colour, label in ((~found.on_front, DOMINATED, "dominated"), (found.on_front, FRONT, "non-dominated")):
        if chosen.any():
            x, y = found.means[chosen, a], found.means[chosen, b]
            spread = [_half_widths(found, chosen, number) for number in (a, b)]
            style = {"color": colour, "label": label, "markersize": 4, "elinewidth": 0.7}
            axis.errorbar(x, y, xerr=spread[0], yerr=spread[1], fmt="o", **style)
    axis.set(xlabel=found.names[a], ylabel=found.names[b])


def _half_widths(found: CoverageSet, chosen: Flags, objective: int) -> Floats:
    """Return half the width of each chosen point's interval, 0 where the interval does not exist."""
    intervals = [found.estimate(int(k), objective) for k in np.flatnonzero(chosen)]
    return np.nan_to_num([(interval.high - interval.low) / 2 for interval in intervals])


def parallel_plot(found: CoverageSet) -> Any:
    """Return a plot with one vertical scale for each objective and one line for each point; up is better.

    Each scale holds 0 and all intervals, so that small differences look small. The grey bar beside it is as high as a
    typical interval: points that are closer to each other may differ only by chance. Lines of the front are coloured
    by the first requested objective.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    halves = np.array([_half_widths(found, np.ones_like(found.on_front), k) for k in range(len(found.names))]).T
    low = np.minimum(0, (found.means - halves).min(axis=0))
    high = np.maximum(0, (found.means + halves).max(axis=0))
    span = np.where(high > low, high - low, 1.0)
    heights = (found.means - low) / span
    figure = Figure(figsize=(1 + 1.5 * len(found.names), 4.4), layout="constrained")
    axis = figure.add_subplot(frame_on=False, ylim=(-0.09, 1.09), yticks=[])
    for k in np.argsort(found.on_front, kind="stable").tolist():  # the front on top
        shade = colormaps["viridis"](0.9 * heights[k, found.requested[0]])
        look = {"color": shade} if found.on_front[k] else {"color": DOMINATED, "linestyle": "--"}
        axis.plot(heights[k], marker="o", markersize=3, linewidth=1.2, **look)
    for k, noise in enumerate(np.median(2 * halves, axis=0) / span):
        _scale(axis, k, (low[k], low[k] + span[k]), noise=noise)
    names = [f"{name}\n(requested)" if k in found.requested else name for k, name in enumerate(found.names)]
    axis.set_xticks(range(len(names)), [name.replace("_", "\n") for name in names], fontsize="small")
    axis.tick_params(length=0)
    axis.set_title("up is better; dash: 0; dashed line: dominated; grey bar: a typical interval", fontsize="small")
    return figure


def _scale(axis: Any, place: int, ends: tuple[float, float], *, noise: float) -> None:
    """Draw the scale of an objective with its ends, 0, and a bar for the noise as a share of the scale."""
    low, high = ends
    axis.vlines(place, 0, 1, color="black", linewidth=0.8)
    axis.hlines(-low / (high - low), place - 0.06, place + 0.06, color="black")
    axis.bar(place + 0.12, noise, width=0.07, bottom=(1 - noise) / 2, color=DOMINATED)
    axis.text(place, -0.02, f"{low:.3g}", ha="center", va="top", fontsize="small")
    axis.text(place, 1.02, f"{high:.3g}", ha="center", va="bottom", fontsize="small")
