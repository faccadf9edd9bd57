"""Tests trained teams at many speeds: the policy stored for each speed, and the last policy at all speeds."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import torch as th

from fair_envs.baselines.team.ddpg import equivariance_penalty
from fair_envs.baselines.team.play import TeamPlay, play_team
from fair_envs.baselines.team.policy import Learned
from fair_envs.baselines.training import isolated_random_state
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.evaluation.reports import Report, number
from fair_envs.metrics.intervals import Estimate
from fair_envs.support.aliases import OnProgress

Kept = Literal["of the speed", "last"]
"""Policy tested at a speed: the one stored for that speed, or the last one."""

Plays = Mapping[str, Mapping[float, TeamPlay]]
"""Results of each policy of `Kept` at each speed."""


def play_levels(
    model: Any,
    states: Mapping[float, Mapping[str, th.Tensor]],
    rules: Rules,
    *,
    speeds: Sequence[float],
    episodes: int,
    seed: int,
    made: Callable[[Policy], Policy] = lambda team: team,
    kept: Collection[Kept] = ("of the speed", "last"),
    each: OnProgress = lambda: None,
) -> Plays:
    """Return the results from the same starts at each speed, with the policy of that speed and with the last policy.

    Args:
        model: The trained model; its policy is restored afterwards, also after an error.
        states: Weights of the stored policies by speed; speeds without a stored policy are skipped for these.
        rules: The environment.
        speeds: Speeds at which the policies are tested.
        episodes: Episodes at each speed.
        seed: Seed of the first episode.
        made: Creates the team that plays from the trained team; it is called for each speed and policy.
        kept: The policies that play.
        each: Called after each speed.
    """
    last = {name: value.clone() for name, value in model.policy.state_dict().items()}
    plays: dict[Kept, dict[float, TeamPlay]] = {name: {} for name in kept}
    try:
        for speed in speeds:
            tested: dict[Kept, Any] = {"of the speed": states.get(speed), "last": last}
            for name, of_speeds in plays.items():
                if (weights := tested[name]) is not None:
                    model.policy.load_state_dict(weights)
                    team = made(Learned(model))
                    of_speeds[speed] = play_team(team, rules, episodes=episodes, seed=seed, speed=speed)
            each()
    finally:
        model.policy.load_state_dict(last)
    return cast(Plays, plays)


COMPARED = 1000  # observations of each agent on which networks are compared


def penalty_of(model: Any, *, seed: int) -> float:
    """Return Fair-ER's penalty, unweighted, of a model's current policy on observations of its replay buffer.

    The global random number generators, and so the training, are left as they were.

    Args:
        model: The model, whose agents have their own networks.
        seed: Selects the observations.
    """
    with isolated_random_state(th.get_num_threads()), th.no_grad():
        np.random.seed(seed)
        batch = model.replay_buffer.team_batch(
            COMPARED, agents=model.agents, shared=False, n_steps=1, gamma=model.gamma
        )
        compared = model.policy.compared(model.policy.actor(batch.observations))
        penalty = equivariance_penalty(model.policy, batch.observations, compared, batch.had_turn)
    return float(penalty.mean())


def report_of(plays: Plays, *, about: Mapping[str, Any]) -> Report:
    """Return a report with a row for each policy and speed."""
    estimates: dict[tuple[str, ...], Estimate] = {}
    for kept, of_speeds in plays.items():
        for speed, play in of_speeds.items():
            fair, n = play.fairness, play.episodes
            numbers = {"deficit": fair.deficit, "corrected": fair.corrected, "p": fair.p_value}
            captures = dict(enumerate(play.captors.sum(axis=0).tolist()))
            found = {
                "success": play.success,
                "steps": play.steps_to_capture,
                **{name: number(value, n=n) for name, value in numbers.items()},
                **{f"captures {agent}": number(count, n=n) for agent, count in captures.items()},
            }
            estimates |= {(kept, f"{speed:g}", name): estimate for name, estimate in found.items()}
    return Report(
        labels=("policy", "speed", "number"),
        estimates=estimates,
        across="number",
        about=about,
        details={"tests": {kept: {f"{v:g}": play.as_dict() for v, play in of.items()} for kept, of in plays.items()}},
        notes=[
            "deficit: distance from team fairness in bits; 0 is fair, and so is a team that never captures. "
            "p: probability that a fair team has a deficit at least as large."
        ],
    )
