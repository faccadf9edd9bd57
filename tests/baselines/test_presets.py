"""The recommended settings: the task's parameters and budget, and settings for the kind of rows."""

import pytest

from fair_envs.baselines.methods import method_for
from fair_envs.baselines.ppo.objective_training import ObjectiveTraining
from fair_envs.baselines.settings import FOR_AGENTS, FOR_DECISIONS, OnPolicySettings, recommended, recommended_preset
from fair_envs.baselines.training import Training

OF_AGENTS = {name: value for name, value in FOR_AGENTS.items() if name != "critic_epochs"}  # of PPO


def test_recommended_settings_are_those_of_the_task_and_of_the_kind_of_rows() -> None:
    agents = recommended(Training, {"env_id": "FairHarvest-v0"})
    assert agents["parameters"] == {"observation": "extended"} and agents["steps"] == 1_280_000
    assert OF_AGENTS.items() <= agents.items()
    decisions = recommended(Training, {"env_id": "FairLending-v0"})
    assert decisions["parameters"] == {"horizon": 2000, "feedback": "full"} and decisions["steps"] == 480_000
    assert {name: decisions[name] for name in FOR_DECISIONS} == FOR_DECISIONS


def test_a_critic_of_streams_makes_one_pass_over_the_large_rollouts_of_agents() -> None:
    given = {name: recommended(ObjectiveTraining, {"env_id": name}) for name in ("FairHarvest-v0", "FairLending-v0")}
    assert given["FairHarvest-v0"]["critic_epochs"] == 1 and "critic_epochs" not in given["FairLending-v0"]


def test_a_given_parameter_replaces_only_itself() -> None:
    found = recommended(Training, {"env_id": "FairLending-v0", "parameters": {"horizon": 50}})
    assert found["parameters"] == {"horizon": 50, "feedback": "full"}


def test_a_variant_gets_only_the_parameters_that_it_has() -> None:
    given = {"env_id": "FairHarvest-v0", "parameters": {"variant": "melting_pot"}}
    assert recommended(Training, given)["parameters"] == {"variant": "melting_pot"}


def test_only_fields_of_the_settings_are_recommended() -> None:
    assert "sharing" not in recommended(OnPolicySettings, {"env_id": "FairHiring-v0"})


def test_the_defaults_of_a_training_of_agents_are_the_recommended_ones() -> None:
    for name, value in OF_AGENTS.items():
        assert getattr(Training(env_id="FairHarvest-v0"), name) == value


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(ValueError, match="preset must be one of 'recommended', got 'paper'"):
        recommended_preset(Training)("paper", {"env_id": "FairHiring-v0"})


@pytest.mark.parametrize(("env_id", "credit"), [("FairHarvest-v0", "own"), ("FairLending-v0", "common")])
def test_agents_learn_from_their_own_part_of_expected_returns(env_id: str, credit: str) -> None:
    assert method_for("nash", env_id).configured({"env_id": env_id, "algorithm": "nash"}).credit == credit
    if credit == "own":
        assert method_for("fair-ppo", env_id).configured({"env_id": env_id, "algorithm": "fair-ppo"}).credit == "common"


def test_a_limit_on_a_measure_has_no_own_part() -> None:
    given = {"env_id": "FairHarvest-v0", "algorithm": "lagrangian"}
    method = method_for("lagrangian", "FairHarvest-v0")
    assert [method.configured({**given, "measure": name}).credit for name in ("rate", "short")] == ["own", "common"]
    with pytest.raises(ValueError, match="credit must be 'common' to limit short, which agents cause together"):
        method.configured({**given, "measure": "short", "credit": "own"})
