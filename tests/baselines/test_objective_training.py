"""Trainings for functions of expected returns: on every environment, resumed to the bit, and refused where needed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from fair_envs.baselines import methods
from fair_envs.baselines.ppo.functions import OBJECTIVES, AlphaFair, Lagrangian
from fair_envs.baselines.ppo.objective_training import (
    ObjectiveTraining,
    load_objective,
    make_objective,
    train_objective,
)
from fair_envs.baselines.training import measure_of
from fair_envs.metrics.rates import SELECTION, TRUE_POSITIVE
from fair_envs.registration import TABLE
from fair_envs.tasks import rules_for, task_of
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


@pytest.mark.parametrize("credit", ["common", "own"])
def test_credit_reaches_the_learner(credit: Any) -> None:
    model = make_objective(ObjectiveTraining(algorithm="nash", credit=credit, **CARS, **TINY))
    assert model.credit == credit and model.stream_heads == (2 if credit == "own" else 6)


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
        ({"algorithm": "alpha-fair", "aversion": 200}, "aversion must be between 0 and 20, got 200"),
        ({"algorithm": "nash", "credit": "own"}, "credit must be 'common' on FairLending-v0, which has one decision"),
        ({"algorithm": "parity", "parameters": {"feedback": "accepted"}}, "needs labels of all people"),
    ],
)
def test_what_cannot_be_trained_is_refused_at_once(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ObjectiveTraining(**{**LOANS, **given})


# The rate and the groups ----------------------------------------------------------------------------------------------

DESK: dict[str, Any] = {"env_id": "FairHiring-v0", "parameters": {"horizon": 7}}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_rate_and_groups_replace_those_of_the_task(name: Any) -> None:
    own = ObjectiveTraining(algorithm=name, rate="SP", groups=("gender",), **DESK, **TINY)
    measure: Any = measure_of(own, "rate", rules_for(own.env_id))(1)
    assert (measure.rate, measure.group_names) == (SELECTION, ("man", "woman"))


def test_groups_can_be_one_group_against_all_others() -> None:
    own = ObjectiveTraining(groups=("gender=woman", "nationality=foreign"), **DESK, **TINY)
    measure: Any = measure_of(own, "rate", rules_for(own.env_id))(1)
    assert len(measure.group_names) == 2 and measure.rate is TRUE_POSITIVE


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rate": "equal_oportunity"}, "rate must be one of .* did you mean 'equal_opportunity'"),
        ({"groups": "gendre"}, "groups must use the sensitive attributes"),
        ({"groups": "gender,nationality=foreign"}, "groups must be attributes or criteria"),
        (
            {"groups": "gender=man,gender=woman"},
            "groups must name each attribute once, got .*; to compare .*, use gender",
        ),
        ({"measure": "equal_oportunity"}, "^measure must be one of short, long, rate, .* mean 'equal_opportunity'"),
    ],
)
def test_a_misspelt_option_is_named_and_no_other_method_is_suggested(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        methods.method_for("lagrangian", "FairHiring-v0", given)
    assert "try ppo" not in str(error.value)


# Notes on finished trainings ------------------------------------------------------------------------------------------


def test_a_lagrangian_whose_limit_is_never_exceeded_is_ppo_and_says_so(tmp_path: Path) -> None:
    given: dict[str, Any] = {**DESK, **TINY, "steps": 40}
    kinds = {name: methods.named(name) for name in ("lagrangian", "ppo")}
    limited, plain = (
        kind.train(kind.configured({**given, "algorithm": name, **more}), out=tmp_path / name)
        for (name, kind), more in zip(kinds.items(), ({"limit": 1.0}, {}), strict=True)
    )
    assert np.array_equal(policy_weights(limited), policy_weights(plain))
    note = kinds["lagrangian"].note
    rows = json.loads((tmp_path / "lagrangian" / "metrics.json").read_text())
    assert "this training equals ppo" in note(rows)
    assert note([]) == note([*rows, {"train/multiplier": 0.1}]) == ""


def test_cpo_says_that_its_limit_was_never_exceeded() -> None:
    note = methods.named("cpo").note
    assert "never exceeded" in note([{"train/excess": -0.1}, {"train/excess": 0.0}, {}])
    assert note([{}]) == note([{"train/excess": -0.1}, {"train/excess": 0.1}]) == ""
