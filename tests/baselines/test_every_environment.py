"""The methods of the PPO family on every environment, and on an environment that only Gymnasium knows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th

from fair_envs import TABLE, make_rules
from fair_envs.baselines.methods import method_for, method_of, named
from fair_envs.baselines.ppo.cost_ppo import MeasurePPO
from fair_envs.baselines.ppo.fair_ppo import FairPPO
from fair_envs.baselines.training import Training, make_env, make_model
from fair_envs.evaluation import LanesWorld, begun, rollout
from fair_envs.faces.sb3 import AgentsVecEnv, LanesVecEnv
from fair_envs.tasks import task_of
from tests.baselines.loans import SPEC, Loans
from tests.test_cli import Said, mistake

SMALL: dict[str, Any] = {"lanes": 2, "n_steps": 16, "batch_size": 16, "n_epochs": 1, "threads": 1}
NAMES = ("ppo", "sb3-ppo", "fair-ppo", "a-ppo", "f-ppo", "f-ppo-l", "f-ppo-s", "cpo")
OWN = "Loans-v0"


class Office(Loans):
    """Loans with a description of its record."""

    fair_spec = SPEC


def make_office(**parameters: Any) -> Office:
    """Return the environment."""
    return Office(**parameters)


def configured(name: str, env_id: str, **given: Any) -> Any:
    """Return recommended settings for one rollout in short episodes."""
    method = named(name)
    small = {**SMALL, "parameters": {} if env_id == OWN else {"horizon": 12}}
    return method.configured({"env_id": env_id, "algorithm": name, "steps": 1, **small, **given})


@pytest.mark.parametrize("env_id", TABLE)
@pytest.mark.parametrize("name", NAMES)
def test_every_method_trains_on_every_environment_that_it_supports(name: str, env_id: str) -> None:
    method, rules = named(name), make_rules(env_id, **task_of(env_id).merged({"horizon": 12}))
    if why := method.reason(env_id, rules, {}):
        assert name == "f-ppo-s" and why.startswith("needs a massager")
        return
    settings = configured(name, env_id)
    model = method.train(settings)
    assert model.num_timesteps >= 16
    assert all(th.isfinite(weights).all() for weights in model.policy.parameters())
    assert method.policy is not None
    policy = method.policy(model, settings, rules)
    world = LanesWorld(begun(rules, np.arange(2, dtype=np.uint64)), append_group=policy.append_group)
    assert len(list(rollout(world, policy))) <= 12


@pytest.fixture
def own() -> Iterator[str]:
    """Yield the id of an environment that only Gymnasium knows."""
    gym.register(OWN, make_office)
    yield OWN
    del gym.registry[OWN]


@pytest.mark.parametrize("name", ["ppo", "fair-ppo", "f-ppo", "cpo"])
def test_an_environment_that_only_gymnasium_knows_trains_and_resumes(name: str, own: str, tmp_path: Path) -> None:
    method = method_for(name, own)
    settings = configured(name, own, steps=5 * 32, eval_freq=64, eval_episodes=2)

    def stop(values: dict[str, Any], _: Any) -> bool:
        return bool(values["self"].num_timesteps < 3 * 32)

    method.train(settings, out=tmp_path / "run", callback=stop)
    model = method.train(settings, out=tmp_path / "run", resume=True)
    assert model.num_timesteps == 5 * 32
    rows = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [row["eval/mean_ep_length"] for row in rows if "eval/mean_ep_length" in row] == [5.0, 5.0]
    assert method_of(tmp_path / "run") is method
    assert method.load(tmp_path / "run")[1] == settings


@pytest.mark.parametrize(
    ("name", "env_id"), [("cpo", "FairCollege-v0"), ("fair-ppo", "FairLending-v0"), ("f-ppo", "FairHiring-v0")]
)
def test_an_interrupted_training_ends_as_if_it_had_not_been(name: str, env_id: str, tmp_path: Path) -> None:
    method, settings = named(name), configured(name, env_id, steps=4 * 32)

    def stop(values: dict[str, Any], _: Any) -> bool:
        return bool(values["self"].num_timesteps < 3 * 32 - 6)

    method.train(settings, out=tmp_path / "run", callback=stop)
    resumed, whole = method.train(settings, out=tmp_path / "run", resume=True), method.train(settings)
    for one, other in zip(resumed.policy.parameters(), whole.policy.parameters(), strict=True):
        assert (one == other).all()


def test_other_methods_refuse_an_environment_that_only_gymnasium_knows(own: str) -> None:
    with pytest.raises(ValueError, match=r"got 'ddpg', which needs an environment of fair_envs.register; try ppo"):
        method_for("ddpg", own)


def test_the_command_line_trains_an_environment_by_module_and_id(empty_folder: Path) -> None:
    Path("shop.py").write_text(
        "import gymnasium as gym\nfrom tests.baselines.loans import SPEC, Loans\n"
        "class Shop(Loans):\n    fair_spec = SPEC\n"
        "    def __init__(self, fee: float = 0.5) -> None:\n        super().__init__()\n"
        "gym.register('Shop-v0', Shop)\n"
    )
    options = ("--steps", "32", "--n-steps", "16", "--batch-size", "16", "--n-envs", "2", "--no-progress")
    said = Said("train", "ppo", "shop:Shop-v0", *options, "-p", "fee=1", "--out", "run")
    assert said.code == 0 and Path("run", "model.zip").exists(), said.text
    assert method_of(Path("run")).load(Path("run"))[1].parameters == {"fee": 1.0}
    said = Said("--import", "shop", "evaluate", "run", "--episodes", "4", "--no-progress")
    assert said.code == 0 and "selection rate" in said.text and "saved run/evaluation-1" in said.flat, said.text
    assert "param must be one of fee for Shop-v0, got 'fees'" in mistake(
        "train", "ppo", "shop:Shop-v0", *options, "-p", "fees=1"
    )
    del gym.registry["Shop-v0"]


# Rows and learners ----------------------------------------------------------------------------------------------------


def test_rows_are_agents_or_lanes_of_a_decision_maker() -> None:
    agents, decisions = make_env(configured("ppo", "FairHarvest-v0")), make_env(configured("ppo", "FairCollege-v0"))
    assert isinstance(agents, AgentsVecEnv) and agents.num_envs == 2 * 40 and agents.append == "group"
    assert type(decisions) is LanesVecEnv and decisions.num_envs == 2


def test_rewards_of_rows_of_lanes_are_scaled() -> None:
    plain, scaled = (make_env(configured("ppo", "FairLending-v0", reward_scale=scale)) for scale in (1.0, 0.25))
    for env in (plain, scaled):
        env.reset()
    for _ in range(5):
        rewards = [env.step(np.ones(2, np.int64))[1] for env in (plain, scaled)]
        np.testing.assert_allclose(rewards[1], 0.25 * rewards[0])


def test_a_decision_maker_needs_one_network() -> None:
    with pytest.raises(ValueError, match="sharing must be 'all' on FairHiring-v0, which has one decision-maker"):
        make_model(Training(env_id="FairHiring-v0"))


def test_fair_ppo_compares_returns_of_two_groups_or_a_measure() -> None:
    assert type(make_model(configured("fair-ppo", "FairHarvest-v0"))) is FairPPO
    for env_id, given in (("FairHarvest-v0", {"measure": "long"}), ("FairPursuit-v0", {}), ("FairHiring-v0", {})):
        assert type(make_model(configured("fair-ppo", env_id, **given))) is MeasurePPO


def test_settings_of_the_penalty_on_returns_are_refused_for_a_measure() -> None:
    with pytest.raises(ValueError, match="mode must be 'shaped' if a measure is penalised"):
        make_model(configured("fair-ppo", "FairHiring-v0", mode="p3o"))
    with pytest.raises(ValueError, match="measure must be one of"):
        make_model(configured("fair-ppo", "FairHiring-v0", measure="nonsense"))


@pytest.mark.parametrize("name", ["fair-ppo", "lagrangian", "cpo"])
@pytest.mark.usefixtures("empty_folder")
def test_measures_that_need_action_probabilities_are_refused_before_the_training(name: str) -> None:
    said = Said("train", name, "FairHiring-v0", "--measure", "individual_fairness", "--out", "run")
    assert said.code == 2 and "it needs the policy's action probabilities" in said.flat
    assert not Path("run").exists()


def test_penalties_on_returns_are_refused_for_a_decision_maker() -> None:
    for penalty in ("counterfactual_fairness", "conditional_parity"):
        with pytest.raises(ValueError, match="penalty must be 'demographic_parity' if a measure is penalised, as on"):
            configured("fair-ppo", "FairHiring-v0", penalty=penalty)


class Dictionary(Loans):
    """Loans whose observations are in a dictionary."""

    fair_spec = SPEC
    observation_space = gym.spaces.Dict({"score": gym.spaces.Box(0, 1, (1,))})  # type: ignore[assignment]


def test_observations_that_are_no_array_are_refused_by_every_method() -> None:
    gym.register("Dictionary-v0", entry_point=f"{__name__}:Dictionary")
    try:
        for name in ("ppo", "pcn", "f-ppo"):
            with pytest.raises(ValueError, match="in one array, and they are in a Dict: wrap it in FlattenObservation"):
                method_for(name, "Dictionary-v0")
    finally:
        del gym.registry["Dictionary-v0"]
