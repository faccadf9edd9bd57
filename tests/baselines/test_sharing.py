"""PPO with networks of each agent, of each group or of all, and the penalty that pulls networks towards each other."""

import json
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    Distribution,
    MultiCategoricalDistribution,
)

from fair_envs import make_sb3
from fair_envs.baselines import equivariance
from fair_envs.baselines.agents import AgentsPolicy, counterfactual, play
from fair_envs.baselines.methods import named
from fair_envs.baselines.ppo.fair_ppo import FairPPO
from fair_envs.baselines.ppo.policies import GroupedPolicy, IndividualPolicy
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.baselines.runs import read_weights, serialized
from fair_envs.baselines.training import Training, make_model, train
from fair_envs.tasks import rules_for
from tests.baselines.interruptions import Interrupt
from tests.baselines.small import HARVEST, learner, policy_weights, small_env, small_rules
from tests.helpers import LITTLE

AGENTS = small_rules().agents(small_rules().params)
SMALL: dict[str, Any] = {
    "env_id": HARVEST,
    "parameters": LITTLE,
    "lanes": 4,
    "n_steps": 10,
    "batch_size": 80,
    "n_epochs": 2,
    "net_arch": (8,),
    "steps": 3 * 10 * 4 * AGENTS,
}


def config(**changes: Any) -> Training:
    """Return a small training."""
    return Training(**{**SMALL, **changes})


# ------------------------------------------------------------------------------------------------------- sharing


@pytest.mark.parametrize("algorithm", ["ppo", "fair-ppo", "sb3-ppo"])
def test_each_agent_has_networks_of_its_own_without_sharing(algorithm: str) -> None:
    model: Any = make_model(config(algorithm=algorithm, sharing="none"))
    assert isinstance(model.policy, IndividualPolicy) and len(model.policy.members) == AGENTS
    observation = model.env.reset()
    assert observation[:, -1].tolist() == [*range(AGENTS)] * 4
    before = model.policy.members[3].state_dict()["action_net.weight"].clone()
    model.learn(SMALL["steps"])
    assert not th.equal(before, model.policy.members[3].state_dict()["action_net.weight"])


def test_an_agents_networks_get_gradients_from_its_own_rows_only() -> None:
    model: Any = make_model(config(sharing="none"))
    rows = th.as_tensor(model.env.reset())
    values, log_prob, _ = model.policy.evaluate_actions(rows, th.zeros(len(rows), dtype=th.long))
    own = th.arange(len(rows)) % AGENTS == 3
    (values[own].sum() + log_prob[own].sum()).backward()
    changed = [
        any(weights.grad is not None and weights.grad.any() for weights in member.parameters())
        for member in model.policy.members
    ]
    assert changed == [agent == 3 for agent in range(AGENTS)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"sharing": "all"}, {"shared": True}),
        ({"sharing": "groups"}, {}),
        ({"sharing": "all", "shared": True}, {"shared": True}),
    ],
)
def test_settings_of_equal_meaning_give_equal_networks(one: dict[str, Any], other: dict[str, Any]) -> None:
    found, wanted = (policy_weights(train(config(**given))) for given in (one, other))
    assert np.array_equal(found, wanted)


def test_stored_settings_without_sharing_mean_what_they_meant() -> None:
    kept = json.loads(json.dumps(config().as_dict()))
    for name in ("sharing", "equivariance"):
        del kept[name]
    assert Training(**kept) == config() and config().shared_by == "groups"
    assert Training(**{**kept, "shared": True}).shared_by == "all"


def test_a_run_from_before_there_was_sharing_is_resumed_with_the_defaults_only(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(config(), out=run, callback=Interrupt(15))
    kept, state = json.loads((run / "config.json").read_text()), read_weights(run / "checkpoint.pt")
    for settings in (kept, state["settings"]):
        del settings["sharing"], settings["equivariance"]
    (run / "config.json").write_text(json.dumps(kept))
    (run / "checkpoint.pt").write_bytes(serialized(state))
    with pytest.raises(ValueError, match=r"sharing must be 'groups' to resume .*, got 'none'"):
        train(config(sharing="none"), out=run, resume=True)
    resumed = train(config(), out=run, resume=True)
    assert np.array_equal(policy_weights(resumed), policy_weights(train(config())))


def test_agents_are_tested_with_their_own_networks_whatever_their_group() -> None:
    model: Any = make_model(config(sharing="none"))
    for member in model.policy.members:
        member.action_net.weight.data.zero_()
        member.action_net.bias.data.zero_()
    for agent in (0, 5):
        model.policy.members[agent].action_net.bias.data[agent] = 50.0  # always takes the action of its own number
    policy = AgentsPolicy(model, small_rules())
    width = model.observation_space.shape[0]
    for group in (0, 1):
        probabilities = policy.probabilities(np.full((2, AGENTS, width), group, np.float32))
        assert (probabilities[:, 0, 0] > 0.99).all() and (probabilities[:, 5, 5] > 0.99).all()
        assert np.allclose(probabilities[:, 1], 1 / 8)
    assert play(model, small_rules(), episodes=3, seed=5).returns.values.shape == (3, AGENTS)
    worlds = counterfactual(model, small_rules(), episodes=3, seed=5)
    assert np.array_equal(worlds.own.values, worlds.same.values)  # no network depends on the group


def test_the_agents_index_is_appended_only_where_it_is_asked_for_and_there_are_several() -> None:
    env: Any = make_sb3(HARVEST, n_envs=2, append="agent", **LITTLE)
    observation = env.reset()
    assert env.observation_space.high[-1] == AGENTS - 1
    assert observation[:, -1].tolist() == [*range(AGENTS)] * 2
    grouped: list[Any] = [make_sb3(HARVEST, n_envs=2, seed=3, **given, **LITTLE).reset() for given in ASKED]
    assert np.array_equal(*grouped)
    with pytest.raises(ValueError, match="append must be None: lending has one decision-maker, got 'agent'"):
        make_sb3("FairLending-v0", append="agent")
    with pytest.raises(ValueError, match="append must be 'group', 'agent' or None, got 'index'"):
        make_sb3(HARVEST, append="index")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="append_group must be False with append='agent', got True"):
        make_sb3(HARVEST, append="agent", append_group=True)
    with pytest.raises(
        ValueError, match="env must be made with append='agent' for IndividualPolicy, got append='group'"
    ):
        FairPPO(IndividualPolicy, small_env())


ASKED: tuple[dict[str, Any], ...] = ({"append": "group"}, {"append_group": True})


# -------------------------------------------------------------------------------------------- distances of policies


def categorical(*probabilities: float) -> Distribution:
    return CategoricalDistribution(len(probabilities)).proba_distribution(th.tensor([probabilities]).log())


def normal(*means: float, std: float = 1.0) -> Distribution:
    log_std = th.full((1, len(means)), math.log(std))
    return DiagGaussianDistribution(len(means)).proba_distribution(th.tensor([means]), log_std)


def several(*probabilities: tuple[float, ...]) -> Distribution:
    logits = th.cat([th.tensor([one]).log() for one in probabilities], -1)
    return MultiCategoricalDistribution([len(one) for one in probabilities]).proba_distribution(logits)


NEVER = 1e-30


@pytest.mark.parametrize(
    ("one", "other", "options", "expected"),
    [
        (categorical(0.5, 0.5), categorical(0.5, 0.5), (2,), 0.0),
        (categorical(1 - NEVER, NEVER), categorical(NEVER, 1 - NEVER), (2,), 1.0),
        (categorical(0.64, 0.36), categorical(0.36, 0.64), (2,), 1 - 2 * 0.48),
        (several((0.64, 0.36), (0.5, 0.25, 0.25)), several((0.36, 0.64), (0.5, 0.25, 0.25)), (2, 3), 0.04),
        (several((0.64, 0.36), (0.64, 0.36)), several((0.36, 0.64), (0.36, 0.64)), (2, 2), 1 - 0.96**2),
        (normal(0.3, -1.0), normal(0.3, -1.0), (), 0.0),
        (normal(0.0), normal(2.0), (), 1 - math.exp(-0.5)),
        (normal(0.0, std=1.0), normal(0.0, std=2.0), (), 1 - math.sqrt(0.8)),
        (normal(0.0, 0.0), normal(2.0, 2.0), (), 1 - math.exp(-1.0)),
    ],
)
def test_the_distance_is_that_of_the_worked_examples(
    one: Distribution, other: Distribution, options: tuple[int, ...], expected: float
) -> None:
    parts = [equivariance.parameters_of(given) for given in (one, other)]
    for pair in (parts, parts[::-1]):
        assert equivariance.distance(pair[0], pair[1], options).item() == pytest.approx(expected, abs=1e-6)


def test_choices_are_counted_in_discrete_spaces_that_count_from_0() -> None:
    assert equivariance.options_of(gym.spaces.Discrete(4)) == (4,)
    assert equivariance.options_of(gym.spaces.MultiDiscrete([2, 3])) == (2, 3)
    assert equivariance.options_of(gym.spaces.Box(-1, 1, (2,))) == ()
    for strange in (gym.spaces.Discrete(4, start=1), gym.spaces.MultiBinary(3)):
        with pytest.raises(ValueError, match="action_space must be a Discrete or MultiDiscrete that counts from 0"):
            equivariance.options_of(strange)


# ------------------------------------------------------------------------------------------------------ the penalty


ACTIONS = (gym.spaces.Discrete(4), gym.spaces.MultiDiscrete([2, 3]), gym.spaces.Box(-1, 1, (2,)))


@pytest.mark.parametrize("actions", ACTIONS, ids=str)
def test_the_penalty_compares_each_network_with_all_others_on_its_own_observations(actions: gym.Space[Any]) -> None:
    th.manual_seed(0)
    space = gym.spaces.Box(np.zeros(4), np.array([1.0, 1, 1, 2]), dtype=np.float64)
    policy: Any = GroupedPolicy(space, actions, lambda _: 1e-3, net_arch=[8])
    for weights in policy.parameters():
        weights.data.normal_(0, 1)
    rows = th.cat([th.rand(5, 3), th.tensor([[0.0], [2], [1], [2], [2]])], 1)
    found = policy.equivariance_penalty(rows)
    options = equivariance.options_of(actions)
    for row, penalty in zip(rows, found, strict=True):
        parts = [equivariance.parameters_of(member.get_distribution(row[None, :-1])) for member in policy.members]
        own = parts[int(row[-1])]
        wanted = sum(equivariance.distance(own, part, options) for part in parts) / 2
        th.testing.assert_close(penalty[None], wanted)
    assert found.min() > 0 and found.max() < 1
    policy.zero_grad()
    found[0].backward()
    changed = [bool(member.action_net.weight.grad.any()) for member in policy.members]
    assert changed == [True, False, False]


def test_equal_networks_have_no_penalty() -> None:
    policy = learner().policy
    policy.members[1].load_state_dict(policy.members[0].state_dict())
    rows = th.as_tensor(small_env().reset())
    assert policy.equivariance_penalty(rows).abs().max() < 1e-6


@pytest.mark.parametrize("algorithm", ["ppo", "fair-ppo"])
@pytest.mark.parametrize("sharing", ["none", "groups"])
def test_the_penalty_pulls_policies_towards_each_other(sharing: str, algorithm: str) -> None:
    settings: dict[str, Any] = {"sharing": sharing, "algorithm": algorithm, "learning_rate": 0.01}
    apart = {}
    for weight in (0.0, 10.0):
        model: Any = make_model(config(equivariance=weight, **settings))
        for member in model.policy.members:
            member.action_net.weight.data.normal_(0, 1)  # policies that differ much
        model.learn(SMALL["steps"])
        with th.no_grad():
            apart[weight] = model.policy.equivariance_penalty(th.as_tensor(model._last_obs)).mean().item()
    assert apart[10.0] < 0.5 * apart[0.0]


def test_no_weight_leaves_the_training_as_it_is_and_a_weight_is_logged(tmp_path: Path) -> None:
    plain, zero = (policy_weights(train(config(**given))) for given in ({}, {"equivariance": 0.0}))
    assert np.array_equal(plain, zero)
    train(config(equivariance=0.5), out=tmp_path / "run")
    rows = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert all(0 <= row["train/equivariance_penalty"] <= 1 for row in rows[1:])


def test_a_penalty_on_one_network_is_refused() -> None:
    for given in ({"sharing": "all"}, {"shared": True}):
        with pytest.raises(ValueError, match="equivariance must be 0 if all agents share one network"):
            config(equivariance=0.5, **given)
    with pytest.raises(ValueError, match=r"equivariance must be 0 for a policy of one network, got 0\.5"):
        PPO("MlpPolicy", small_env(), equivariance=0.5)
    with pytest.raises(ValueError, match="equivariance must be at least 0, got -1"):
        config(equivariance=-1)
    with pytest.raises(ValueError, match="shared must be False with sharing 'none', got True"):
        config(sharing="none", shared=True)
    with pytest.raises(ValueError, match="sharing must be one of 'none', 'groups', 'all', got 'some'"):
        config(sharing="some")


@pytest.mark.parametrize("env_id", ["FairHarvest-v0", "FairPursuit-v0"])
@pytest.mark.parametrize("algorithm", ["a-ppo", "f-ppo", "cpo"])
def test_methods_with_measures_have_networks_for_each_group_too(algorithm: str, env_id: str) -> None:
    small = {"lanes": 2, "n_steps": 16, "batch_size": 16, "n_epochs": 1, "threads": 1, "parameters": {"horizon": 12}}
    settings = named(algorithm).configured({"env_id": env_id, "algorithm": algorithm, "steps": 1, **small})
    assert settings.sharing == "groups"
    model = named(algorithm).train(settings)
    assert isinstance(model.policy, GroupedPolicy) and model.policy.groups == len(rules_for(env_id).spec.groups)


@pytest.mark.parametrize("algorithm", ["a-ppo", "cpo", "parity"])
def test_a_decision_maker_has_one_network(algorithm: str) -> None:
    with pytest.raises(ValueError, match="sharing must be 'all' on FairLending-v0, which has one decision-maker"):
        named(algorithm).configured({"env_id": "FairLending-v0", "algorithm": algorithm, "sharing": "groups"})
