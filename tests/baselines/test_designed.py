"""Agents that are written down, and learners of the performance alone, on the ferry."""

from typing import Any

import numpy as np
import pytest
import torch as th

from fair_envs import make_rules
from fair_envs.baselines.pcn.rollouts import Random, collect
from fair_envs.baselines.pcn.single import LearnedPolicy, SingleTraining, farel_dqn, make_single, train_single
from fair_envs.evaluation import Stochastic
from fair_envs.evaluation.deciders import Always, Correct, Never, Threshold
from fair_envs.metrics.history import SlidingWindow
from fair_envs.wrappers import FairnessObjectives
from tests.baselines.treasure import Treasure
from tests.ferry import BOARD, REFUSE, Vector
from tests.helpers import uncompiled

pytestmark = pytest.mark.usefixtures("ferry")

th.set_num_threads(1)
FERRY = "TestFerry-v0"
FOREIGN, TICKET = 1, 2  # entries of an observation


def world(**parameters: Any) -> Vector:
    return Vector(4, **{"seats": 5, "horizon": 20, **parameters})


def played(env: Any, agent: Stochastic, *, episodes: int = 12) -> list[Any]:
    return collect(env, agent, episodes=episodes, rng=np.random.default_rng(0), seed=3)


@pytest.mark.parametrize(("kind", "action", "steps"), [(Always, BOARD, 5), (Never, REFUSE, 20)])
def test_always_fills_the_ferry_and_never_waits_for_the_horizon(kind: Any, action: int, steps: int) -> None:
    env = world()
    for episode in played(env, kind(env)):
        assert episode.actions.tolist() == [action] * steps


def test_the_correct_decision_boards_those_with_a_ticket() -> None:
    env = world()
    for episode in played(env, Correct(env)):
        assert (episode.actions == (episode.observations[:, TICKET] == 1)).all()
        assert episode.returns[0] == (episode.actions == BOARD).sum()


def test_a_threshold_looks_at_the_hidden_score() -> None:
    env = world()
    one, other = played(env, Threshold(env, 0.5, score="feedback")), played(env, Correct(env))
    assert [e.actions.tolist() for e in one] == [e.actions.tolist() for e in other]
    assert all((e.actions == BOARD).all() for e in played(env, Threshold(env, 0, score="feedback")))


@uncompiled
def test_designed_agents_play_for_vector_rewards_too() -> None:
    env = FairnessObjectives(world(), ["SP", "TE"], SlidingWindow(20), keep=False)
    assert played(env, Correct(env))[0].rewards.shape[1] == 3
    assert played(env, Random(env))[0].rewards.shape[1] == 3


def test_what_agents_need_is_named() -> None:
    with pytest.raises(ValueError, match="env must decide on one person in each step"):
        Always(make_rules("FairEpidemic-v0"))
    with pytest.raises(TypeError, match="env must be an environment of fair_envs"):
        Always(Treasure(2))
    with pytest.raises(ValueError, match="env must have 'score' in its oracle, which has feedback"):
        Threshold(world(), 0.5)


# --------------------------------------------------------------------------------------------- the performance alone


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_learners_of_the_performance_board_those_with_a_ticket(algorithm: Any) -> None:
    own = SingleTraining(
        env_id=FERRY,
        parameters={"seats": 3, "horizon": 10},
        algorithm=algorithm,
        steps=6000,
        n_steps=64,
        learning_starts=200,
        target_interval=200,
    )
    agent = LearnedPolicy(train_single(own))
    env = world(seats=3, horizon=10)
    learned = np.mean([e.returns[0] for e in played(env, agent, episodes=40)])
    best = np.mean([e.returns[0] for e in played(env, Correct(env), episodes=40)])
    assert learned > 0.8 * best


def test_equal_trainings_give_equal_networks() -> None:
    own = SingleTraining(env_id=FERRY, steps=300, learning_starts=100, lanes=2)
    one, other = (train_single(own).policy.state_dict() for _ in range(2))
    assert all(th.equal(one[name], other[name]) for name in one)


def test_farels_dqn_has_a_target_network_unless_it_is_taken_away() -> None:
    own, without = farel_dqn(FERRY, horizon=20), farel_dqn(FERRY, horizon=20, target_network=False)
    assert (own.target_interval, without.target_interval) == (1000, 1)
    model: Any = make_single(without)
    assert (model.exploration_initial_eps, model.exploration_final_eps) == (0.1, 0.1)
    assert (model.buffer_size, model.learning_starts, model.gradient_steps) == (2000, 1000, 20)
    assert model.train_freq == (10, "episode") or model.train_freq.frequency == 10
    assert [part.out_features for part in model.q_net.q_net if isinstance(part, th.nn.Linear)] == [64, 2]
    with pytest.raises(ValueError, match="lanes must be 1 to update after episodes, got 2"):
        farel_dqn(FERRY, horizon=20, lanes=2)
