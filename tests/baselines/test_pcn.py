"""Pareto Conditioned Networks: the buffer, the commands, the network, and the front of a small world."""

import copy
import heapq
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium.vector import AutoresetMode

pytest.importorskip("moocore")

from fair_envs.baselines.pcn.buffer import Buffer, Ranking, copies, priorities
from fair_envs.baselines.pcn.pcn import PCN, Command, Commanded, Network, PCNSettings, farel_settings, memories
from fair_envs.baselines.pcn.rollouts import Episode, Random, collect
from fair_envs.evaluation import DecisionMaker
from fair_envs.metrics.history import SlidingWindow
from fair_envs.metrics.pareto import front
from fair_envs.wrappers import FairnessObjectives
from tests.baselines.treasure import DIVE, FRONT, PLACES, WALK, Treasure
from tests.ferry import Vector
from tests.helpers import earned

th.set_num_threads(1)

QUICK = {"first_episodes": 20, "updates": 10, "batch_size": 64, "buffer_size": 40, "learning_rate": 0.01}


def model(env: Any = None, *, seed: int = 0, requested: Any = None, **settings: Any) -> PCN:
    """Return a small learner."""
    env = Treasure(10) if env is None else env
    return PCN(env, settings=PCNSettings(**{**QUICK, **settings}), seed=seed, requested=requested)


def episode(*returns: float, steps: int = 1) -> Episode:
    """Return an episode with these returns, all of them earned in the last step."""
    rewards = np.zeros((steps, len(returns)))
    rewards[-1] = returns
    return Episode(observations=np.zeros((steps, 1), np.float32), actions=np.zeros(steps, np.int64), rewards=rewards)


def weights(learner: PCN) -> np.ndarray:
    """Return all weights in one row."""
    return th.nn.utils.parameters_to_vector(learner.network.parameters()).detach().numpy()


# --------------------------------------------------------------------------------------------------- rollouts


class Always(DecisionMaker):
    """Walks a fixed number of steps, then dives."""

    def __init__(self, walks: int) -> None:
        self.walks = walks

    def decide(self, observation: Any) -> Any:
        return np.eye(2)[np.where(observation[:, 0] >= self.walks, DIVE, WALK)]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(("lanes", "episodes"), [(1, 3), (2, 5), (4, 3)])
def test_episodes_are_whole_in_every_autoreset_mode(mode: AutoresetMode, lanes: int, episodes: int) -> None:
    env = Treasure(lanes, mode=mode)
    played = collect(env, Always(2), episodes=episodes, rng=np.random.default_rng(0), seed=1)
    assert [one.actions.tolist() for one in played] == [[WALK, WALK, DIVE]] * episodes
    assert [one.observations[:, 0].tolist() for one in played] == [[0, 1, 2]] * episodes
    assert [one.returns.tolist() for one in played] == [[4, -3]] * episodes
    assert played[0].returns_to_go.tolist() == [[4, -3], [4, -2], [4, -1]]


def test_probabilities_are_reported_before_each_step() -> None:
    env = Treasure(2)
    collect(env, Random(env), episodes=2, rng=np.random.default_rng(0))
    assert len(env.reported) == len(env.actions)
    assert np.array(env.reported).min() == np.array(env.reported).max() == 0.5


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_only_what_belongs_to_an_episode_that_was_asked_for_is_remembered(mode: AutoresetMode) -> None:
    """Lanes whose episodes are shorter would else play on, and their decisions enter the history."""
    env: Any = FairnessObjectives(Vector(num_envs=3, seats=2, autoreset_mode=mode), ["SP"], SlidingWindow(1000))
    played = collect(env, Random(env), episodes=5, rng=np.random.default_rng(0), seed=0)
    (history,) = env.unwrapped.histories
    assert len({len(episode) for episode in played}) > 1
    assert history.sizes.tolist() == [sum(map(len, played[lane::3])) for lane in range(3)]


def test_a_deterministic_agent_reports_what_it_does() -> None:
    env = Treasure(3)
    agent = Commanded(model(env), [Command(np.array([4.0, -3.0]), 3.0)], lanes=3)
    collect(env, agent, episodes=3, rng=np.random.default_rng(0), deterministic=True)
    for reported, actions in zip(env.reported, env.actions, strict=True):
        assert reported.tolist() == np.eye(2)[actions].tolist()


def test_environments_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match="env must restart ended episodes"):
        model(Treasure(2, mode=AutoresetMode.DISABLED)).iterate()
    with pytest.raises(ValueError, match="env must have vector rewards and define reward_space, got None"):
        model(Vector(2))


# ----------------------------------------------------------------------------------------------------- buffer


def test_priority_is_minus_the_distance_to_the_front() -> None:
    returns = [(0, 3), (3, 0), (1, 0), (0, 3)]
    found = priorities(returns, Ranking(threshold=0))
    assert found == pytest.approx([0, 0, -2 - 1e-5, -1e-5])


def test_what_is_crowded_counts_double_or_loses_one() -> None:
    returns = [(0.0, 10.0), (4.0, 4.0), (4.1, 4.1), (10.0, 0.0)]
    apart = np.hypot(0.1, 0.1)
    assert priorities(returns, Ranking(threshold=0.9))[1] == pytest.approx(2 * (-apart - 1e-5))
    assert priorities(returns, Ranking(threshold=0.9, penalty="one"))[1] == pytest.approx(-apart - 1e-5 - 1)
    assert priorities(returns, Ranking(threshold=0.1))[1] == pytest.approx(-apart - 1e-5)


def test_crowding_within_ranks_looks_at_equals_alone() -> None:
    returns = [(0.0, 10.0), (5.0, 5.0), (10.0, 0.0), (4.9, 4.9)]
    assert priorities(returns, Ranking(threshold=0.6, penalty="one"))[3] < -1
    assert priorities(returns, Ranking(crowding="ranks", threshold=0.6, penalty="one"))[3] > -1


def buffer(size: int, *, keep: Any = "top") -> Buffer:
    return Buffer(size, Ranking(threshold=0), keep=keep, objectives=[0, 1], scale=np.ones(2))


def test_the_best_are_kept() -> None:
    kept = buffer(3)
    kept.add([episode(0, 0), episode(4, 0), episode(0, 4), episode(3, 0), episode(1, 0)])
    assert len(kept) == 5
    ranked = kept.rank()
    assert sorted(entry.episode.returns.tolist() for entry in ranked) == [[0, 4], [3, 0], [4, 0]]


def test_copies_of_returns_are_kept_in_balance() -> None:
    kept = buffer(9)
    kept.add([episode(0, 4)] * 4 + [episode(4, 0)] * 4 + [episode(2, 2)] * 9)
    kept.rank()
    assert sorted(e.returns.tolist() for e in kept.episodes) == [[0, 4]] * 3 + [[2, 2]] * 3 + [[4, 0]] * 3
    assert copies(np.array([[1.0], [2.0], [1.0], [1.0]]), np.arange(4)).tolist() == [2, 0, 1, 0]


def test_lorenz_dominance_keeps_fewer_episodes_than_pareto_dominance() -> None:
    """Distances are scaled, dominance is not: in scaled returns, (4, 2) and (2, 4) would not be equal."""
    returns = [(0, 6), (4, 2), (2, 4), (6, 0), (3, 2)]
    scale = np.array([1, 0.1])
    pareto, lorenz = (
        priorities(returns, Ranking(threshold=0, lorenz_lambda=share), scale=scale) for share in (1.0, 0.0)
    )
    assert pareto[:4] == pytest.approx([0, 0, 0, 0])
    assert lorenz == pytest.approx([-np.hypot(2, 0.2) - 1e-5, 0, 0, -np.hypot(2, 0.2) - 1e-5, -1 - 1e-5])
    kept = {}
    for share in (1.0, 0.0):
        own = Buffer(4, Ranking(threshold=0, lorenz_lambda=share), keep="top", objectives=[0, 1], scale=np.ones(2))
        own.add([episode(*point) for point in returns])
        kept[share] = [entry.episode.returns.tolist() for entry in own.rank() if entry.priority == 0]
    assert sorted(kept[1.0]) == [[0, 6], [2, 4], [4, 2], [6, 0]]
    assert sorted(kept[0.0]) == [[2, 4], [4, 2]]


def test_a_heap_drops_what_was_worst_when_last_ranked() -> None:
    kept = buffer(3, keep="heap")
    kept.add([episode(4, 0), episode(0, 4), episode(0, 0)])
    kept.rank()
    kept.add([episode(-9, -9)])
    assert sorted(e.returns.tolist() for e in kept.episodes) == [[-9, -9], [0, 4], [4, 0]]
    assert kept.entries[0] == min(kept.entries)
    assert max(kept.entries).priority == 1


def test_leaves_are_the_second_half_of_the_heap_and_not_the_best() -> None:
    kept = buffer(9, keep="heap")
    kept.add([episode(k, 0) for k in (8, 7, 6, 5, 4, 3, 2, 1, 9)])
    kept.rank()
    heap = [entry.priority for entry in kept.entries]
    assert heap == sorted(heap) or heap != heapq.nsmallest(9, heap)
    assert [e.returns[0] for e in kept.leaves()] == [entry.episode.returns[0] for entry in kept.entries[4:]]


def test_samples_are_steps_with_what_came_after_them() -> None:
    kept = buffer(5)
    kept.add([episode(4, 0, steps=3), episode(0, 7, steps=1)])
    drawn = kept.batches(20, 50, np.random.default_rng(0))
    rows, counts = np.unique(drawn.commands.reshape(-1, 3).numpy(), axis=0, return_counts=True)
    assert rows.tolist() == [[0, 7, 1], [4, 0, 1], [4, 0, 2], [4, 0, 3]]
    assert counts / 1000 == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6], abs=0.05)


# ---------------------------------------------------------------------------------------------------- commands


def test_a_command_is_one_of_the_best_returns_with_one_objective_better() -> None:
    learner = model(command="episode")
    learner.iterate()
    wanted = front([e.returns for e in learner.buffer.episodes])
    for desired, horizon in learner._choose_commands():
        better = desired - wanted
        (k,) = np.flatnonzero((better >= 0).all(axis=1) & ((better > 0).sum(axis=1) <= 1))[:1]
        assert better[k].max() <= wanted.std(axis=0).max()
        assert horizon == -wanted[k, 1] - 2


def test_what_was_earned_is_subtracted_and_clipped() -> None:
    learner = model()
    agent = Commanded(learner, [Command(np.array([9.0, -4.0]), 2.0)], lanes=2)
    agent.begin(np.array([True, True]), np.array([0, 1]))
    agent.observe_step(earned([[4.0, -1.0], [4.0, -1.0]], [True, False]))
    assert agent._returns.tolist() == [[5, -3], [9, -4]]
    agent.observe_step(earned([[0.0, -9.0], [0.0, 0.0]], [True, False]))
    assert agent._returns[0].tolist() == [5, -1]  # a step costs 1: less than one step is no return
    assert agent._horizons.tolist() == [1, 2]


def test_only_requested_objectives_are_asked_for_and_ranked() -> None:
    learner = model(Treasure(4, objectives=3), requested=[1])
    learner.learn(200)
    assert learner.network.command[0].in_features == 2
    assert learner.buffer.returns().shape[1] == 3
    assert [command.desired_return.tolist() for command in learner.commands()] == [[-1]]


# ------------------------------------------------------------------------------------------------ the settings


def test_farels_settings_scale_the_horizon_by_a_tenth_and_its_code_does_not() -> None:
    for published, expected in ((False, [1, 1, 1, 0.1]), (True, [1, 1, 1, 1])):
        settings = farel_settings(objectives=3, horizon=100, published_code=published)
        learner = PCN(Treasure(1, objectives=8), settings=settings, requested=[0, 1, 2])
        learner.iterate()
        assert learner.scale == pytest.approx(expected)


def test_farels_mistakes_are_made_on_request_alone() -> None:
    intended, published = (farel_settings(objectives=2, horizon=50, published_code=p) for p in (False, True))
    changed = {k for k in vars(intended) if getattr(intended, k) != getattr(published, k)}
    assert changed == {"horizon_unit", "crowding_threshold", "non_domination", "coverage"}
    assert intended.max_return == (50, 0)
    assert (intended.updates, intended.loss, intended.keep, intended.buffer_size) == (20, "sum", "heap", 100)


def test_farels_settings_learn() -> None:
    settings = farel_settings(objectives=2, horizon=PLACES)
    learner = PCN(Treasure(1), settings=settings).learn(300)
    assert learner.iterations > 0
    assert len(learner.buffer) == 100


def test_commands_are_in_units_of_what_random_play_varies_by() -> None:
    learner = model()
    learner.iterate()
    to_go = np.concatenate([e.returns_to_go for e in learner.buffer.episodes])
    left = np.concatenate([np.arange(len(e), 0, -1) for e in learner.buffer.episodes])
    assert learner.scale == pytest.approx([*1 / to_go.std(axis=0), 1 / left.std()])


def test_an_objective_that_random_play_never_misses_has_the_unit_of_the_horizon() -> None:
    learner = model(Treasure(4, objectives=3))
    learner.iterate()
    assert learner.scale[2] == learner.scale[3]
    assert learner.reference[2] == -max(map(len, learner.buffer.episodes))


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="first_episodes must be at least 2, got 1"):
        PCNSettings(first_episodes=1)
    with pytest.raises(ValueError, match="keep must be one of 'top', 'heap', got 'best'"):
        PCNSettings(keep="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_return must have 2 entries, one for each requested objective, got 3"):
        model(max_return=(1, 2, 3))
    with pytest.raises(ValueError, match="requested must list objectives from 0 to 1, each once, got"):
        model(requested=[0, 0])
    with pytest.raises(ValueError, match="return_unit must be several values, got 3"):
        PCNSettings(return_unit=3)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- the network


@pytest.mark.parametrize(("layers", "count"), [("one", 1), ("two", 2), ("relu", 2)])
def test_state_and_command_are_multiplied(layers: Any, count: int) -> None:
    network = Network(3, 2, 4, state_layers=layers)
    assert sum(isinstance(part, th.nn.Linear) for part in network.state) == count
    state, command = th.rand(5, 3), th.rand(5, 3)
    expected = network.head(network.state(state) * network.command(command))
    assert th.equal(network(state, command), expected)


@pytest.mark.parametrize("layers", ["one", "two", "relu"])
@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_gradients_are_those_of_autograd(layers: Any, loss: Any) -> None:
    learner = model(state_layers=layers, loss=loss)
    state, command, actions = th.rand(7, 1), th.rand(7, 3), th.randint(0, 2, (7,))
    with th.no_grad():
        told = learner._backward(state, command, actions)
    parameters = list(learner.network.parameters())
    expected = th.nn.functional.cross_entropy(learner.network(state, command), actions, reduction=loss)
    for parameter, gradient in zip(parameters, th.autograd.grad(expected, parameters), strict=True):
        assert th.allclose(parameter.grad, gradient, atol=1e-6)  # type: ignore[arg-type]
    mean = th.nn.functional.cross_entropy(learner.network(state, command), actions)
    assert told.item() == pytest.approx(mean.item())


def test_one_observation_and_many_get_the_same_actions() -> None:
    learner = model()
    learner.learn(100)
    rows = np.array([[0.0], [2.0], [4.0]], np.float32)
    many = learner.action_probabilities(rows, (4, -3), 3)
    assert many.shape == (3, 2)
    assert many.sum(axis=1) == pytest.approx(1)
    for row, expected in zip(rows, many, strict=True):
        assert learner.action_probabilities(row, (4, -3), 3) == pytest.approx(expected)
    assert learner.predict(rows[0], (4, -3), 3).shape == ()
    own = learner.predict(rows, [(4, -3), (0, -1), (1, -2)], [3, 1, 2], deterministic=False)
    assert own.shape == (3,)


def test_a_desired_return_of_the_wrong_length_is_named() -> None:
    learner = model()
    with pytest.raises(ValueError, match=r"desired_return must have shape \(2,\) or \(1, 2\), got \(3,\)"):
        learner.predict(np.zeros(1, np.float32), (1, 2, 3), 4)
    with pytest.raises(ValueError, match=r"desired_horizon must have shape \(\) or \(2,\), got \(3,\)"):
        learner.predict(np.zeros((2, 1), np.float32), (1, 2), (4, 4, 4))
    with pytest.raises(ValueError, match="desired_return must be finite"):
        learner.predict(np.zeros(1, np.float32), (1, np.nan), 4)
    with pytest.raises(ValueError, match=r"observation must have shape \('n', 1\) or \(1,\), got \(2,\)"):
        learner.predict(np.zeros(2, np.float32), (1, 2), 4)


# ------------------------------------------------------------------------------------------------- what is learnt


@pytest.mark.parametrize("lanes", [1, 10])
def test_the_whole_front_is_found_and_kept_to(lanes: int) -> None:
    learner = model(Treasure(lanes), updates=20).learn(2000)
    assert front([c.desired_return for c in learner.commands()]).tolist() == FRONT
    agent = Commanded(learner, learner.commands(), lanes=lanes)
    played = collect(learner.env, agent, episodes=PLACES, rng=np.random.default_rng(0), deterministic=True)
    assert [one.returns.tolist() for one in played] == FRONT


def test_lorenz_dominance_learns_fewer_trade_offs_than_pareto_dominance() -> None:
    learner = model(updates=20, lorenz_lambda=0.0).learn(2000)
    found = [command.desired_return.tolist() for command in learner.commands()]
    assert found == [point for point in FRONT if point != [1, -2]]  # (0, -1) has a larger minimum and an equal sum


def test_equal_seeds_give_equal_networks_and_others_others() -> None:
    assert np.array_equal(weights(model().learn(300)), weights(model().learn(300)))
    assert not np.array_equal(weights(model().learn(300)), weights(model(seed=1).learn(300)))


def test_the_global_generators_are_left_alone() -> None:
    before = th.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index]
    model().learn(200)
    assert th.equal(before[0], th.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # type: ignore[index]


@pytest.mark.parametrize("keep", ["top", "heap"])
def test_a_restored_learner_goes_on_to_the_bit(keep: Any) -> None:
    whole = model(Treasure(5, slip=0.2), keep=keep).learn(900)
    part = model(Treasure(5, slip=0.2), keep=keep).learn(400)
    kept = part.snapshot()
    part.learn(700)  # what comes after a snapshot does not change it
    other = model(Treasure(5, slip=0.2), keep=keep)
    other.restore(kept.state())
    other.learn(900)
    assert np.array_equal(weights(whole), weights(other))
    assert other.buffer.returns().tolist() == whole.buffer.returns().tolist()


def test_a_saved_learner_goes_on_to_the_bit(tmp_path: Path) -> None:
    part = model(Treasure(5, slip=0.2)).learn(400)
    part.save(tmp_path / "model.pt")
    other = PCN.load(tmp_path / "model.pt", Treasure(5, slip=0.2))
    assert other.settings == part.settings
    assert np.array_equal(weights(part.learn(700)), weights(other.learn(700)))


def ferry(*, keep: bool, lanes: int = 3) -> Any:
    """Return ferries whose captain is to treat people alike."""
    return FairnessObjectives(Vector(lanes, seats=3, horizon=12), ["SP", "IF"], SlidingWindow(20), keep=keep)


@pytest.mark.parametrize("keep", [False, True])
def test_kept_decisions_are_restored_too(keep: bool) -> None:
    whole = model(ferry(keep=keep)).learn(600)
    part = model(ferry(keep=keep)).learn(300)
    other = model(ferry(keep=keep))
    other.restore(part.snapshot().state())
    other.learn(600)
    assert np.array_equal(weights(whole), weights(other))
    (memory,), (same,) = memories(whole.env), memories(other.env)
    for name, expected in memory.snapshot().items():
        np.testing.assert_array_equal(same.snapshot()[name], expected)


def test_sums_over_decisions_are_made_anew_in_each_iteration_so_that_a_resumed_one_rounds_alike() -> None:
    learner = model(ferry(keep=True)).learn(300)
    (history,) = (memory.histories[0] for memory in memories(learner.env))
    before = dict(history._followers)
    learner.iterate()
    assert before
    assert all(history._followers[key] is not follower for key, follower in before.items())


def test_test_episodes_remember_nothing_of_the_training() -> None:
    learner = model(ferry(keep=True)).learn(300)
    (memory,) = memories(learner.blank_env)
    (trained,) = memories(learner.env)
    assert len(memory.histories[0]) == 0
    assert len(trained.histories[0]) > 0


def test_environments_of_older_releases_of_gymnasium_are_copied() -> None:
    env = ferry(keep=True)
    env.unwrapped.env_fns = (number for number in range(2))  # as Gymnasium 1.1 keeps them
    learner = model(env).learn(300)
    own, other = learner.blank_env, copy.deepcopy(learner).env
    assert own.unwrapped is not env.unwrapped and other.unwrapped is not env.unwrapped
    assert own.unwrapped.env_fns is env.unwrapped.env_fns


def test_a_gap_is_never_asked_to_be_better_than_fair() -> None:
    assert model(ferry(keep=False)).max_return.tolist() == [np.inf, 0, 0]


def test_copies_share_nothing() -> None:
    learner = model().learn(200)
    other = copy.deepcopy(learner)
    other.learn(400)
    assert learner.num_timesteps < other.num_timesteps
    assert not np.array_equal(weights(learner), weights(other))


def test_the_coverage_set_is_best_by_the_requested_objectives() -> None:
    learner = model(Treasure(1, objectives=3), requested=[0, 1])
    given = [episode(4, -3, 0, steps=3), episode(1, -2, -9, steps=2), episode(0, -4, 9, steps=4)]
    entries: Any = [SimpleNamespace(episode=one) for one in given]
    learner.buffer.entries = entries
    assert [found.returns.tolist() for found in learner.coverage_set()] == [[1, -2, -9], [4, -3, 0]]
    assert [(c.desired_return.tolist(), c.horizon) for c in learner.commands()] == [([1, -2], 2), ([4, -3], 3)]
