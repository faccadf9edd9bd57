"""Evaluations in the course of a training are logged, and change nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch as th

from fair_envs import baselines
from fair_envs.baselines.eval_callback import LENGTH, RETURN
from fair_envs.baselines.methods import method_for
from tests.baselines.test_team_training import config
from tests.helpers import LITTLE

AGENTS: dict[str, Any] = {"steps": 640, "lanes": 2, "n_steps": 20, "net_arch": (8,), "batch_size": 64}
TEAM = {
    name: value
    for name, value in config().as_dict().items()
    if name not in ("env_id", "algorithm", "eval_freq", "eval_episodes")
}
LONG_TERM: dict[str, Any] = {"steps": 60, "lanes": 4, "n_steps": 5, "batch_size": 10, "pi": (4,), "vf": (4,)}


@pytest.mark.parametrize(
    ("name", "env_id", "given", "every", "expected"),
    [
        ("fair-ppo", "FairHarvest-v0", {**AGENTS, "parameters": LITTLE}, 500, [640]),
        ("a-ppo", "FairLending-v0", {**LONG_TERM, "parameters": {"horizon": 7}}, 20, [20, 40, 60]),
        ("ddpg", "FairPursuit-v0", TEAM, 60, None),
    ],
)
def test_evaluations_are_logged_and_change_nothing_else(
    name: str, env_id: str, given: dict[str, Any], every: int, expected: list[int] | None, tmp_path: Path
) -> None:
    method, weights = method_for(name, env_id, given), []
    for folder, more in (("without", {}), ("with", {"eval_freq": every, "eval_episodes": 2})):
        settings = method.settings(env_id=env_id, algorithm=name, **given, **more)
        weights.append(method.train(settings, out=tmp_path / folder).policy.state_dict())
    assert all(th.equal(value, weights[1][key]) for key, value in weights[0].items())
    without, logged = (json.loads((tmp_path / kept / "metrics.json").read_text()) for kept in ("without", "with"))
    assert not any(RETURN in row for row in without)
    rows = [row for row in logged if RETURN in row]
    assert rows and all(row[LENGTH] > 0 for row in rows)
    if expected is not None:
        assert [row["time/total_timesteps"] for row in rows] == expected


def test_the_functions_of_the_package_evaluate_like_the_methods() -> None:
    assert baselines.train is method_for("fair-ppo", "FairHarvest-v0").train
    assert baselines.train_long_term is method_for("a-ppo", "FairLending-v0").train
    assert baselines.train_team is method_for("ddpg", "FairPursuit-v0").train
