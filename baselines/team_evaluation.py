"""Tests trained teams at many speeds: the policy that the curriculum left at each, and the last one at all of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import torch as th
from rich.table import Table
from rich.text import Text

from fair_envs.aliases import OnProgress
from fair_envs.baselines.pursuit import Learned
from fair_envs.baselines.pursuit_evaluation import TeamPlay, play_team
from fair_envs.core import Rules
from fair_envs.evaluation import Policy

Kept = Literal["of the speed", "last"]
"""Which policy is tested at a speed: the one that was kept there, or the last one."""

Plays = Mapping[str, Mapping[float, TeamPlay]]
"""What came of each policy of `Kept` at each speed."""


def play_levels(
    model: Any,
    states: Mapping[float, Mapping[str, th.Tensor]],
    rules: Rules,
    *,
    speeds: Sequence[float],
    episodes: int,
    seed: int,
    made: Callable[[Policy], Policy] = lambda team: team,
    each: OnProgress = lambda: None,
) -> Plays:
    """Return what comes of the same starts at each speed, with the policy kept there and with the last one.

    Args:
        model: The trained model; its policy is as it was afterwards, also if an episode fails.
        states: The weights of the policies that were kept, by speed; speeds without one are left out for them.
        rules: The environment.
        speeds: At which the policies are tested.
        episodes: At each speed.
        seed: Of the first episode.
        made: Makes the team that plays of the one that was trained.
        each: Called after each speed.
    """
    last = {name: value.clone() for name, value in model.policy.state_dict().items()}
    plays: dict[Kept, dict[float, TeamPlay]] = {"of the speed": {}, "last": {}}
    try:
        for speed in speeds:
            tested: dict[Kept, Any] = {"of the speed": states.get(speed), "last": last}
            for kept, weights in tested.items():
                if weights is not None:
                    model.policy.load_state_dict(weights)
                    team = made(Learned(model))
                    plays[kept][speed] = play_team(team, rules, episodes=episodes, seed=seed, speed=speed)
            each()
    finally:
        model.policy.load_state_dict(last)
    return cast(Plays, plays)


def table(plays: Plays) -> Table:
    """Return a table with a row for each policy and speed."""
    shown = Table(
        "policy", "speed", "success", "steps", "deficit", "corrected", "p", "captures", box=None, pad_edge=False
    )
    for kept, of_speeds in plays.items():
        for speed, play in of_speeds.items():
            fair = play.fairness
            captures = " ".join(map(str, play.captors.sum(axis=0)))
            steps = f"{play.steps_to_capture.value:.0f}"
            numbers = (f"{number:.3f}" for number in (fair.deficit, fair.corrected, fair.p_value))
            shown.add_row(kept, f"{speed:g}", *map(Text, (f"{play.success:.3f}", steps, *numbers, captures)))
    return shown


def save(plays: Plays, folder: Path, *, about: Mapping[str, Any]) -> None:
    """Write ``report.json`` to a new folder."""
    told = {kept: {f"{v:g}": play.as_dict() for v, play in of.items()} for kept, of in plays.items()}
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps({**about, "tests": told}, indent=2, allow_nan=False) + "\n")
