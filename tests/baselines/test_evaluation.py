"""Test episodes: each is a function of its seed and of the policy, also in counterfactual worlds."""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3
import torch as th
from stable_baselines3.common.vec_env import VecNormalize

from fair_envs import make_sb3
from fair_envs.baselines.agents import AgentsPolicy, counterfactual, play
from fair_envs.core import Lanes, Rules, draws, rule
from fair_envs.core.interactions import FairSpec
from fair_envs.metrics import Returns, counterfactual_fairness, fairness_report
from fair_envs.wrappers import choose
from tests.baselines.small import HARVEST, NO_IDLE_TURNS, learned, learner, small_env, small_rules
from tests.helpers import LITTLE

STAY, USE = 0, 5


@pytest.fixture(scope="module")
def model() -> Any:
    """Return a policy that has learned a little."""
    return learned(learner())


def always(**action: int) -> Any:
    """Return a policy whose networks of groups a and b always take these actions."""
    policy = learner()
    for member, name in zip(policy.policy.members, ("a", "b"), strict=True):
        th.nn.init.zeros_(member.action_net.weight)
        th.nn.init.zeros_(member.action_net.bias)
        if name in action:
            member.action_net.bias.data[action[name]] = 50.0
    return policy


def assert_equal_returns(one: Returns, other: Returns) -> None:
    assert np.array_equal(one.values, other.values)
    assert one.attributes.keys() == other.attributes.keys()
    for name in one.attributes:
        assert np.array_equal(one.attributes[name], other.attributes[name])


def test_the_results_do_not_depend_on_how_many_lanes_play_at_once(model: Any) -> None:
    whole = play(model, small_rules(), episodes=7, seed=3, lanes=7)
    for lanes in (1, 3, 64):
        parts = play(model, small_rules(), episodes=7, seed=3, lanes=lanes, threads=1)
        assert_equal_returns(whole.returns, parts.returns)
        assert np.array_equal(whole.selected, parts.selected) and np.array_equal(whole.executed, parts.executed)


def test_an_episode_is_the_first_of_its_seed(model: Any) -> None:
    several, one = (play(model, small_rules(), episodes=n, seed=s) for n, s in ((3, 5), (1, 7)))
    assert np.array_equal(several.returns.values[2:], one.returns.values)
    assert len(np.unique(several.returns.values, axis=0)) == 3


def test_the_likeliest_actions_are_those_that_the_model_predicts(model: Any) -> None:
    env = small_env(lanes=3)
    env.seed(9)
    observation, total = env.reset(), np.zeros((3, 8))
    for _ in range(LITTLE["horizon"]):
        observation, _, done, _ = env.step(model.predict(observation, deterministic=True)[0])
        total = total + env.agent_reward
    assert done.all()
    played = play(model, small_rules(), episodes=3, seed=9, deterministic=True)
    assert np.array_equal(played.returns.values, total)


def test_actions_are_sampled_with_the_lanes_own_luck(model: Any) -> None:
    rules = small_rules()
    lanes = Lanes(rules, 2)
    lanes.seed(4)
    step = lanes.restart()
    rows = np.concatenate([step.observation, step.facts["group"][..., np.newaxis]], axis=-1).reshape(16, -1)
    probabilities = model.policy.action_probabilities(th.as_tensor(rows, dtype=th.float32)).detach().numpy()
    wanted = choose(probabilities.reshape(2, 8, -1), draws(lanes))
    seen = rows.reshape(2, 8, -1)
    assert np.array_equal(AgentsPolicy(model, rules).act(seen, draws(lanes)), wanted)


def test_attributes_have_the_names_that_the_metrics_expect(model: Any) -> None:
    played = play(model, small_rules(), episodes=2)
    assert set(played.returns.attributes) == {"sensitive", "preference"}
    assert set(np.unique(played.returns.attribute("preference"))) == {"red", "blue"}
    assert played.returns.attribute("sensitive").sum(axis=1).tolist() == [4, 4]
    assert played.steps.tolist() == [12, 12]
    assert "conditional_parity_ratio[red]" in fairness_report(played.returns, legitimate="preference")


def test_selected_actions_are_counted_in_all_turns_and_executed_ones_in_those_that_were_had() -> None:
    played = play(always(a=STAY, b=USE), small_rules(freeze_turns=0), episodes=2)
    turns = 2 * LITTLE["horizon"] * 4
    assert played.selected[0, STAY] == played.selected[1, USE] == turns
    assert played.selected.sum() == 2 * turns
    assert played.executed[0].tolist() == [turns, 0, 0, 0, 0, 0, 0, 0]
    assert played.executed[1].sum() == turns // 2  # carriers have half the turns
    assert played.executed[1, [STAY, USE]].sum() == turns // 2  # to use nothing is to stay


class ShortParams(NamedTuple):
    """Parameters of `Short`."""

    horizon: int = 3


@rule
def start(lane: Any, params: Any) -> None:
    """Begin with nothing."""


@rule
def step(lane: Any, action: Any, params: Any, reward: Any, facts: Any) -> bool:
    """Pay both agents, also in a lane that is over; end after as many steps as the seed says."""
    reward[0], reward[1] = 1, 10
    return bool(lane.time + 1 == lane.seed)


@rule
def observe(lane: Any, params: Any, observation: Any) -> None:
    """Show nothing."""
    observation[:] = 0


@rule
def describe(lane: Any, params: Any, facts: Any) -> None:
    """Say that the second agent carries the attribute."""
    for agent in range(2):
        facts.individual[agent] = facts.sensitive[agent, 0] = facts.group[agent] = agent


class Short(Rules):
    """Two agents who earn 1 and 10 a step; an episode ends after ``seed`` steps, and after three at the latest."""

    name, Params, multi_agent = "short", ShortParams, True
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def lane(self, params: Any) -> list[tuple[Any, ...]]:
        return [("sensitive", np.int8, 2)]

    def agents(self, params: Any) -> int:
        return 2

    def fair_spec(self, params: Any) -> FairSpec:
        return FairSpec(
            individuals=2,
            actions=8,
            features=(),
            sensitive={"second": ("no", "yes")},
            groups=("first", "second"),
            same_individuals=True,
        )

    def observation_space(self, params: Any) -> gym.Space[Any]:
        return gym.spaces.Box(0, 1, (10,))

    def action_space(self, params: Any) -> gym.Space[Any]:
        return gym.spaces.Discrete(8)


def test_nothing_is_earned_or_counted_after_an_episodes_end_while_others_go_on() -> None:
    played = play(always(a=STAY, b=USE), Short(), episodes=4, seed=1, lanes=4)
    assert played.steps.tolist() == [1, 2, 3, 3]  # the last one is cut off
    assert played.returns.values.tolist() == [[1, 10], [2, 20], [3, 30], [3, 30]]
    assert (played.selected[0, STAY], played.selected[1, USE], played.selected.sum()) == (9, 9, 18)


def test_the_factual_world_is_the_ordinary_game(model: Any) -> None:
    found = counterfactual(model, small_rules(), episodes=5, seed=2, lanes=2)
    assert_equal_returns(found.factual, play(model, small_rules(), episodes=5, seed=2).returns)
    assert found.factual.attribute("sensitive").sum(axis=1).tolist() == [4] * 5
    for flipped in (found.own, found.same):
        assert not flipped.attribute("sensitive").any()
        assert np.array_equal(flipped.attribute("preference"), found.factual.attribute("preference"))
    assert found.everybody.attribute("sensitive").all() and not found.none.attribute("sensitive").any()
    assert np.isfinite(counterfactual_fairness(found.everybody, found.none, form="ratio")).all()
    assert np.isfinite(counterfactual_fairness(found.factual, found.own)).all()


def test_an_attribute_that_does_nothing_changes_nothing() -> None:
    found = counterfactual(always(), small_rules(**NO_IDLE_TURNS), episodes=3)
    for other in (found.own, found.same, found.none, found.everybody):
        assert np.array_equal(other.values, found.factual.values)
    assert found.factual.values.sum() > 0


def test_own_networks_change_with_the_attribute_and_the_same_ones_stay() -> None:
    rules = small_rules(**NO_IDLE_TURNS)
    found = counterfactual(always(a=STAY, b=USE), rules, episodes=3)
    assert np.array_equal(found.same.values, found.factual.values)
    assert found.factual.values.sum() > 0
    assert found.own.values.sum() == found.none.values.sum() == 0
    assert found.everybody.values.sum() > 0


def test_one_policy_for_all_agents_is_played_too() -> None:
    env = small_env()
    plain = sb3.PPO("MlpPolicy", env, n_steps=4, batch_size=32, seed=0, device="cpu")
    shared = play(plain, small_rules(), episodes=2)
    assert shared.selected.sum() == 2 * 12 * 8
    own, same = (getattr(counterfactual(plain, small_rules(), episodes=2), name).values for name in ("own", "same"))
    assert own.shape == same.shape == (2, 8)
    narrow = sb3.PPO("MlpPolicy", make_sb3(HARVEST, n_envs=1, **LITTLE), n_steps=4, batch_size=32, device="cpu")
    assert play(narrow, small_rules(), episodes=1).returns.values.shape == (1, 8)


def test_models_of_other_environments_and_bad_numbers_are_refused(model: Any) -> None:
    with pytest.raises(ValueError, match=r"model must take one agent's observation, shape \(45,\), got \(11,\)"):
        play(model, small_rules(observation="extended"), episodes=1)
    with pytest.raises(ValueError, match=r"model must choose among the environment's actions, Discrete\(9\)"):
        play(model, small_rules(separate_ripening=True), episodes=1)
    for name in ("episodes", "lanes", "threads"):
        numbers: dict[str, Any] = {"episodes": 1, name: 0}
        for function in (play, counterfactual):
            with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got 0"):
                function(model, small_rules(), **numbers)


def test_a_model_without_an_actor_is_refused() -> None:
    model = sb3.DQN("MlpPolicy", small_env(), buffer_size=10, device="cpu")
    with pytest.raises(ValueError, match="model must have an actor-critic policy, got DQNPolicy"):
        play(model, small_rules(), episodes=1)


def test_a_model_that_saw_normalised_observations_is_refused() -> None:
    model = learner(sb3.PPO, VecNormalize(small_env(), norm_obs=True, norm_reward=False))
    with pytest.raises(ValueError, match=r"model must take unnormalised observations, got one with VecNormalize"):
        play(model, small_rules(), episodes=1)
