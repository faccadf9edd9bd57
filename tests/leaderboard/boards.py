"""Boards of the leaderboard with numbers made by hand."""

from collections.abc import Mapping
from typing import Any

from fair_envs.experiments.seeds import Arm, SeedRow
from fair_envs.leaderboard.board import Coverage
from fair_envs.leaderboard.jobs import AGAIN, PARTIAL, PLANTED, ArmKey
from fair_envs.leaderboard.page import Page
from fair_envs.leaderboard.scores import TaskBoard

TASK = "FairLending-v0"
NOISE = (-0.01, 0.0, 0.01)  # of three seeds


def arm(
    key: ArmKey, performance: float, gap: float, *, rates: tuple[float, float] | None = None, noise: float = 0.01
) -> Arm:
    """Return three seeds around these numbers; ``rates`` are those of the advantaged and the disadvantaged."""
    ahead, behind = rates or (0.8, 0.8 - gap)
    rows = [
        SeedRow(
            arm=str(key),
            seed=seed,
            job=f"{key}/{seed}",
            code="abcdefgh",
            seconds=1.0,
            numbers={
                "performance": performance + 0.1 * shift,
                "gap": gap + 0.1 * shift * (gap > 0),
                "noise": noise,
                "rate of advantaged": ahead,
                "rate of disadvantaged": behind + 0.1 * shift,
                "worst": min(ahead, behind),
                "best": max(ahead, behind),
                "short-term": gap,
                "long-term": 0.0,
            },
        )
        for seed, shift in enumerate(NOISE)
    ]
    return Arm(str(key), rows)


def board(methods: Mapping[Any, tuple[float, float]] | None = None, *, task: str = TASK, **changed: Any) -> TaskBoard:
    """Return a task: random at (0, 0), PPO at (1, 0.4), a rule at (0.9, 0.1), and the methods at their points."""
    found = {
        "random": (0.0, 0.01),
        "max-reward": (0.9, 0.1),
        PLANTED: (0.5, 0.7),
        PARTIAL: (0.8, 0.3),
        "ppo": (1.0, 0.4),
        AGAIN: (1.0001, 0.4001),
        **(methods or {}),
        **changed,
    }
    keys = {ArmKey(task, *(name if isinstance(name, tuple) else (name,))): point for name, point in found.items()}
    arms = {key: arm(key, *point) for key, point in keys.items()}
    return TaskBoard(task, arms, ("random", "max-reward", PLANTED, PARTIAL))


def page(*boards: TaskBoard, **covered: Coverage) -> Page:
    """Return the page of tasks, of which all rows are stored unless ``covered`` says otherwise."""
    whole = {one.env_id: Coverage(len(one.arms), len(one.arms)) for one in boards}
    named = {f"{name}-v0": coverage for name, coverage in covered.items()}
    return Page({key: own for one in boards for key, own in one.arms.items()}, "small", {**whole, **named})
