"""What `fair-envs evaluate` tells of a trained policy: every notion on returns with its interval."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

import fair_envs
from fair_envs.aliases import Ints, OnProgress
from fair_envs.baselines.evaluation import SENSITIVE, Counterfactual, Played, counterfactual, play
from fair_envs.core import Rules
from fair_envs.metrics import Estimate, Returns, fairness_report

BATCH = 16  # episodes that are played at once
COUNTERFACTUAL = "counterfactual_fairness"
WORLDS: Mapping[str, str] = {
    "own": "every carrier as a non-carrier, played by the networks of its new group",
    "same": "the same, played by the networks of its old group",
    "games": "the game in which everybody carries the attribute against the game in which nobody does",
}
"""The worlds that the counterfactual notion compares, by the name in brackets."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment:
    """What was found.

    Attributes:
        estimates: By the names of `fair_envs.metrics.fairness_report`; the counterfactual notion has the name of its
            worlds in brackets, see `WORLDS`.
        selected: How often each group chose each action, shape (groups, actions).
        executed: How often each group took each action, shape (groups, actions).
        groups: Names of the groups.
    """

    estimates: Mapping[str, Estimate]
    selected: Ints
    executed: Ints
    groups: Sequence[str]


def batches(episodes: int) -> list[int]:
    """Return how many episodes are played at once, time after time."""
    return [min(BATCH, episodes - done) for done in range(0, episodes, BATCH)]


def assess(
    model: Any, rules: Rules, *, episodes: int, seed: int, level: float = 0.95, each: OnProgress = lambda: None
) -> Assessment:
    """Play test episodes, once as they are and again in counterfactual worlds, and measure every notion.

    Args:
        model: See `fair_envs.baselines.evaluation.Player`.
        rules: The environment.
        episodes: How many.
        seed: Of the first.
        level: Share of such intervals that cover.
        each: Called after each of `batches`.
    """
    played: list[Played] = []
    worlds: list[Counterfactual] = []
    for done, count in zip(range(0, episodes, BATCH), batches(episodes), strict=True):
        played.append(play(model, rules, episodes=count, seed=seed + done))
        worlds.append(counterfactual(model, rules, episodes=count, seed=seed + done))
        each()
    pairs = {"own": ("factual", "own"), "same": ("factual", "same"), "games": ("everybody", "none")}
    return Assessment(
        estimates=measured(
            Returns.concat(part.returns for part in played),
            {name: (_joined(worlds, real), _joined(worlds, other)) for name, (real, other) in pairs.items()},
            legitimate=next(iter(rules.spec.legitimate), None),
            level=level,
        ),
        selected=np.sum([part.selected for part in played], axis=0),
        executed=np.sum([part.executed for part in played], axis=0),
        groups=rules.spec.groups,
    )


def _joined(parts: Sequence[Counterfactual], world: str) -> Returns:
    return Returns.concat(getattr(part, world) for part in parts)


def measured(
    returns: Returns, worlds: Mapping[str, tuple[Returns, Returns]], *, legitimate: str | None, level: float
) -> dict[str, Estimate]:
    """Return every notion, the counterfactual one for each pair of factual and counterfactual worlds."""
    estimates: dict[str, Estimate] = {}
    for name, (factual, other) in worlds.items():
        report = fairness_report(
            returns,
            sensitive=SENSITIVE,
            legitimate=legitimate,
            counterfactual=other,
            factual=factual,
            level=level,
            resamples=2000,
        )
        for key, estimate in report.items():
            estimates[f"{key}[{name}]" if key.startswith(COUNTERFACTUAL) else key] = estimate
    return estimates


def save(assessment: Assessment, folder: Path, *, about: Mapping[str, Any]) -> None:
    """Write ``report.json`` and ``report.csv`` into a new folder.

    Args:
        assessment: What was found.
        folder: It must not exist.
        about: What the numbers belong to, for the JSON.
    """
    folder.mkdir(parents=True)
    plain = {
        "fair_envs": fair_envs.__version__,
        **about,
        "worlds": dict(WORLDS),
        "estimates": {name: estimate.as_dict() for name, estimate in assessment.estimates.items()},
        "groups": list(assessment.groups),
        "selected": assessment.selected.tolist(),
        "executed": assessment.executed.tolist(),
    }
    (folder / "report.json").write_text(json.dumps(plain, indent=2) + "\n")
    with (folder / "report.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("number", "value", "low", "high", "n", "level", "standard_error"))
        writer.writerows(_lines(assessment.estimates))


def _lines(estimates: Mapping[str, Estimate]) -> Iterator[tuple[Any, ...]]:
    for name, found in estimates.items():
        yield name, found.value, found.low, found.high, found.n, found.level, found.standard_error


def table(assessment: Assessment) -> Table:
    """Return the numbers for people."""
    shown = Table("number", box=None, pad_edge=False)
    for column in ("value", "low", "high", "n"):
        shown.add_column(column, justify="right")
    for name, found in assessment.estimates.items():
        numbers = (f"{number:.4g}" for number in (found.value, found.low, found.high))
        shown.add_row(Text(name), *numbers, str(found.n))
    return shown
