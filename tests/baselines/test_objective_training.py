"""Trainings for functions of expected returns: on every environment, resumed to the bit, and refused where needed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from fair_envs.baselines import methods
from fair_envs.baselines.ppo.functions import OBJECTIVES, AlphaFair, Lagrangian
from fair_envs.baselines.ppo.objective_training import ObjectiveTraining, load_objective, train_objective
from fair_envs.registration import TABLE
from fair_envs.tasks import task_of
from tests.baselines.interruptions import Interrupt
from tests.baselines.small import policy_weights
from tests.baselines.test_training import assert_same_state

pytestmark = pytest.mark.usefixtures("empty_folder")

LOANS: dict[str, Any] = {"env_id": "FairLending-v0", "parameters": {"horizon": 7, "feedback": "full"}}
CARS: dict[str, Any] = {"env_id": "FairTraffic-v0", "parameters": {"horizon": 9, "cars": 6}}
TINY: dict[str, Any] = {"lanes": 2, "n_steps": 5, "batch_size": 8, "n_epochs": 2, "net_arch": (4,)}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_function_trains_on_every_environment(name: str) -> None:
    method = methods.named(name)
    reasons = [method.unsupported(env_id, task_of(env_id).rules(), {}) for env_id in TABLE]
    assert not any(reasons)


@pytest.mark.parametrize(("name", "where"), [("elbert", LOANS), ("lagrangian", LOANS), ("nash", CARS)])
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(name: Any, where: Any, tmp_path: Path) -> None:
    rows = 2 if where is LOANS else 12
    settings = ObjectiveTraining(algorithm=name, steps=6 * 5 * rows, **where, **TINY)
    whole: Any = train_objective(settings)
    with pytest.raises(KeyboardInterrupt):
        train_objective(settings, out=tmp_path / "part", callback=Interrupt(13))
    with pytest.raises(KeyboardInterrupt):
        train_objective(settings, out=tmp_path / "part", resume=True, callback=Interrupt(6))
    resumed: Any = train_objective(settings, out=tmp_path / "part", resume=True)
    assert_same_state(whole, resumed)
    for one, other in zip(whole.stream_critic.parameters(), resumed.stream_critic.parameters(), strict=True):
        assert th.equal(one, other)
    loaded, stored = load_objective(tmp_path / "part")
    assert stored == settings
    assert np.array_equal(policy_weights(loaded), policy_weights(resumed))


def test_settings_become_arguments_of_the_function() -> None:
    fair = ObjectiveTraining(algorithm="alpha-fair", weight=0.3, aversion=4.0, **LOANS)
    assert fair.objective() == AlphaFair(weight=0.3, a=4.0)
    limited = ObjectiveTraining(algorithm="lagrangian", limit=0.2, measure="short", **LOANS)
    assert limited.objective() == Lagrangian(limit=0.2, of_rates=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithm": "elbert", "sharing": "groups"}, "sharing must be 'all'"),
        ({"algorithm": "lagrangian", "measure": "fairness"}, "measure must be one of"),
        ({"algorithm": "nash", "weight": 2.0}, "weight must be"),
        ({"algorithm": "parity", "parameters": {"feedback": "accepted"}}, "labels of rejected people"),
    ],
)
def test_what_cannot_be_trained_is_refused_at_once(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ObjectiveTraining(**{**LOANS, **given})
