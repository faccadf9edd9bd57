"""Evaluates a trained policy of agents: every fairness notion on returns, with confidence intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fair_envs.baselines.ppo.evaluation import SENSITIVE, Counterfactual, EpisodeResults, counterfactual, play
from fair_envs.core import Rules
from fair_envs.evaluation.reports import Report
from fair_envs.metrics import Estimate, Returns, fairness_report
from fair_envs.support.aliases import OnProgress

BATCH = 16  # episodes played in parallel
COUNTERFACTUAL = "counterfactual_fairness"
WORLDS: Mapping[str, str] = {
    "own": "every agent with the attribute loses it and uses the networks of its new group",
    "same": "every agent with the attribute loses it but keeps the networks of its old group",
    "games": "a game in which all agents have the attribute is compared with a game in which none has it",
}
"""Descriptions of the worlds compared by the counterfactual notion, by the name in brackets."""


def batches(episodes: int) -> list[int]:
    """Return the sizes of the batches in which the episodes are played."""
    return [min(BATCH, episodes - done) for done in range(0, episodes, BATCH)]


def assess(
    model: Any,
    rules: Rules,
    *,
    episodes: int,
    seed: int,
    about: Mapping[str, Any] | None = None,
    level: float = 0.95,
    each: OnProgress = lambda: None,
) -> Report:
    """Play test episodes in the factual and in counterfactual worlds, and measure every notion.

    Args:
        model: See `fair_envs.baselines.ppo.evaluation.play`.
        rules: The environment.
        episodes: Number of episodes.
        seed: Seed of the first episode.
        about: Information about the test to include in the report.
        level: Confidence level of the intervals.
        each: Called after each batch, see `batches`.

    Returns:
        Estimates by the names of `fair_envs.metrics.fairness_report`. The counterfactual notion has the name of its
        worlds in brackets, see `WORLDS`. The details contain how often each group selected and executed each action.
    """
    played: list[EpisodeResults] = []
    worlds: list[Counterfactual] = []
    for done, count in zip(range(0, episodes, BATCH), batches(episodes), strict=True):
        played.append(play(model, rules, episodes=count, seed=seed + done))
        worlds.append(counterfactual(model, rules, episodes=count, seed=seed + done))
        each()
    pairs = {"own": ("factual", "own"), "same": ("factual", "same"), "games": ("everybody", "none")}
    estimates = measured(
        Returns.concat(part.returns for part in played),
        {name: (_joined(worlds, real), _joined(worlds, other)) for name, (real, other) in pairs.items()},
        legitimate=next(iter(rules.spec.legitimate), None),
        level=level,
    )
    return Report(
        labels=("number",),
        estimates={(name,): found for name, found in estimates.items()},
        about={"episodes": episodes, "seed": seed, **(about or {})},
        details={
            "worlds": dict(WORLDS),
            "groups": list(rules.spec.groups),
            "selected": np.sum([part.selected for part in played], axis=0).tolist(),
            "executed": np.sum([part.executed for part in played], axis=0).tolist(),
        },
        notes=[f"[{name}]: {meaning}" for name, meaning in WORLDS.items()],
    )


def _joined(parts: Sequence[Counterfactual], world: str) -> Returns:
    return Returns.concat(getattr(part, world) for part in parts)


def measured(
    returns: Returns, worlds: Mapping[str, tuple[Returns, Returns]], *, legitimate: str | None, level: float
) -> dict[str, Estimate]:
    """Return every notion; the counterfactual notion is measured for each pair of factual and counterfactual worlds."""
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
