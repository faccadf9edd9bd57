"""Agents of FairAttention that are written down, and the moves of its massager."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import minimize_scalar

from fair_envs.baselines.pcn.rollouts import collect
from fair_envs.baselines.ppo.massaging import PolicyOutput
from fair_envs.baselines.tasks.attention import AttentionMassager, gaussian, softmax
from fair_envs.envs.attention.policies import (
    FairGreedy,
    Greedy,
    LastIncidents,
    Matching,
    NaiveMatching,
    Proportional,
    RoundRobin,
    Uniform,
    added_greedily,
    censored_poisson_rates,
    discovered_shares,
    expected_discoveries,
    fair_allocation,
)
from fair_envs.envs.attention.rules import decode
from fair_envs.evaluation import DecisionMaker
from fair_envs.metrics.long_term import ShareDeviation
from fair_envs.support.aliases import Floats, Ints
from tests.helpers import playing, uncompiled

RATES = np.array([[8.0, 6.0, 4.0, 3.0, 1.5]])


def town(lanes: int = 3, **parameters: Any) -> Any:
    return gym.make_vec("FairAttention-v0", num_envs=lanes, **parameters)


def shares(agent: DecisionMaker, observation: NDArray[Any]) -> Floats:
    """Return the expected units at each location, shape (B, K)."""
    probabilities = agent.decide(observation)
    assert probabilities.shape[1:] == (6, 5) and np.allclose(probabilities.sum(axis=2), 1)
    return np.asarray(probabilities.sum(axis=1))


# ------------------------------------------------------------------------------------------------ the agents


@uncompiled
def test_uniform_sends_units_anywhere() -> None:
    env = town()
    np.testing.assert_allclose(shares(Uniform(env), env.reset(seed=0)[0]), 6 / 5)


@uncompiled
def test_round_robin_sends_one_unit_everywhere_and_the_sixth_in_turn() -> None:
    env = town()
    observation, _ = env.reset(seed=0)
    agent = playing(RoundRobin(env), env)
    for time in range(7):
        probabilities = agent.decide(observation)
        assert set(np.unique(probabilities)) == {0, 1}
        assert probabilities.sum(axis=1)[0].tolist() == [1 + (k == time % 5) for k in range(5)]
        observation = env.step(probabilities.argmax(axis=2))[0]


def test_proportional_follows_the_true_rates() -> None:
    env = town()
    observation, _ = env.reset(seed=0)
    np.testing.assert_allclose(shares(playing(Proportional(env), env), observation)[0], 6 * RATES[0] / RATES.sum())
    env.unwrapped.lanes.records["rates"] = 0
    np.testing.assert_allclose(shares(playing(Proportional(env), env), observation), 6 / 5)


def all_allocations(units: int, locations: int) -> Ints:
    """Return every allocation of all units, shape (n, locations)."""
    counts = np.array(list(product(range(units + 1), repeat=locations)))
    return np.asarray(counts[counts.sum(axis=1) == units])


def discoveries(counts: Ints, rates: Floats) -> Floats:
    """Return the mean of what is discovered, by the definition: the mean of min(units, incidents)."""
    incidents = np.arange(200)
    law = stats.poisson(rates[:, np.newaxis]).pmf(incidents)  # (K, incidents)
    return np.asarray((np.minimum(counts[..., np.newaxis], incidents) * law).sum(axis=(-2, -1)))


def test_greed_discovers_the_most() -> None:
    env = town()
    observation, _ = env.reset(seed=0)
    chosen = shares(playing(Greedy(env), env), observation)[0].astype(int)
    counts = all_allocations(6, 5)
    values = discoveries(counts, RATES[0])
    assert discoveries(chosen[np.newaxis], RATES[0])[0] == pytest.approx(values.max())
    np.testing.assert_allclose(expected_discoveries(np.repeat(RATES, len(counts), axis=0), counts), values)


def test_greed_keeps_to_limits_and_to_what_is_there() -> None:
    counts = added_greedily(RATES, np.array([[0, 0, 0, 0, 2]]), np.array([[1, 1, 6, 6, 6]]), 6)
    assert counts.sum() == 6 and counts[0, 4] == 2 and (counts[0, :2] == 1).all()


@uncompiled
def test_naive_matching_counts_what_it_sees() -> None:
    env = town(decrease_rate=0.0, increase_rates=0.0)
    agent, total = playing(NaiveMatching(env, decay=0.0), env), np.zeros((3, 5))
    observation, _ = env.reset(seed=0)
    agent.begin(np.ones(3, bool), np.zeros(3, np.int64))
    np.testing.assert_allclose(shares(agent, observation), 6 / 5)
    for _ in range(4):
        observation, *_, info = env.step(np.tile(np.arange(6) % 5, (3, 1)))
        total += info["fair_outcome"]
        np.testing.assert_allclose(shares(agent, observation), 6 * total / total.sum(axis=1, keepdims=True))
    agent.begin(np.arange(3) == 1, np.ones(3, np.int64))
    assert not agent.beliefs[1].any() and agent.beliefs[[0, 2]].any()


def test_naive_matching_never_visits_again_what_it_left_out_without_a_prior() -> None:
    env = town()
    for prior in (0, 1):
        agent = playing(NaiveMatching(env, prior=prior), env)
        observation, _ = env.reset(seed=0)
        agent.begin(np.ones(3, bool), np.zeros(3, np.int64))
        agent.decide(observation)
        for _ in range(3):
            observation = env.step(np.zeros((3, 6), np.int64))[0]
            chosen = shares(agent, observation)
        assert (chosen[:, 1:] > 0).any() == (prior > 0)


def test_naive_matching_forgets() -> None:
    env = town()
    agent = playing(NaiveMatching(env, decay=1.0), env)
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        observation, *_, info = env.step(np.zeros((3, 6), np.int64))
        agent.decide(observation)
    assert agent.beliefs.tolist() == info["fair_outcome"].tolist()


def test_the_likeliest_rate_takes_into_account_that_units_are_few() -> None:
    """Against the likelihood, maximised by a general method."""
    chance = np.random.default_rng(0)
    sent = chance.integers(0, 4, (60, 3))
    seen = np.minimum(sent, chance.poisson([0.5, 2.0, 6.0], (60, 3)))
    found = censored_poisson_rates(seen, sent)
    for k in range(3):

        def loss(rate: float, k: int = k) -> float:
            law = stats.poisson(rate)
            exact = seen[:, k] < sent[:, k]
            terms = np.where(exact, law.logpmf(seen[:, k]), law.logsf(seen[:, k] - 1))
            return float(-terms.sum())

        best = minimize_scalar(loss, bounds=(1e-6, 50), method="bounded", options={"xatol": 1e-8}).x
        assert found[k] == pytest.approx(best, abs=1e-4)
    assert found.tolist() == pytest.approx([0.5, 2.0, 6.0], rel=0.4)


def test_where_no_unit_was_nothing_is_known_about_the_rate() -> None:
    found = censored_poisson_rates(np.array([[0, 0, 2]]), np.array([[0, 1, 2]]))
    assert math.isnan(found[0]) and found[1] == pytest.approx(0, abs=1e-6) and found[2] == pytest.approx(50)


def test_matching_learns_fixed_rates() -> None:
    env = town(8, decrease_rate=0.0, increase_rates=0.0)
    agent = playing(Matching(env, window=None, epsilon=0.0), env)
    played = collect(env, agent, episodes=8, rng=np.random.default_rng(0), seed=0)
    assert len(played) == 8 and all(len(episode) == 1000 for episode in played)
    np.testing.assert_allclose(agent.beliefs.mean(axis=0), RATES[0], rtol=0.1)


def test_matching_sends_units_anywhere_now_and_then() -> None:
    env = town(400)
    agent = playing(Matching(env, epsilon=0.25), env)
    agent.beliefs[:] = [1, 0, 0, 0, 0]
    anywhere = agent.decided()[:, 0, 0] < 1
    assert anywhere.mean() == pytest.approx(0.25, abs=0.07)


def test_the_expected_share_that_units_discover() -> None:
    found = discovered_shares(np.array([[3.0, 0.0]]), 2)[0]
    incidents = np.arange(1, 150)
    law = stats.poisson(3.0)
    for units in (1, 2):
        expected = law.pmf(0) + (law.pmf(incidents) * np.minimum(units, incidents) / incidents).sum()
        assert found[0, units] == pytest.approx(expected)
    assert found[0, 0] == 0 and found[1].tolist() == pytest.approx([0, 1, 1])


@pytest.mark.parametrize("alpha", [1.0, 0.6, 0.35, 0.2])
def test_fair_greed_is_the_best_allocation_that_meets_the_constraint(alpha: float) -> None:
    chance = np.random.default_rng(1)
    rates = chance.uniform(0.2, 5, (20, 3))
    chosen = fair_allocation(rates, 5, alpha=alpha)
    counts = all_allocations(5, 3)
    for own, plan in zip(rates, chosen, strict=True):
        share = discovered_shares(own[np.newaxis], 5)[0][np.arange(3), counts]
        gap = share.max(axis=1) - share.min(axis=1)
        allowed = alpha
        while not (gap <= allowed + 1e-12).any():
            allowed = min(1.0, allowed + 0.05)
        best = discoveries(counts[gap <= allowed + 1e-12], own).max()
        assert discoveries(plan[np.newaxis], own)[0] == pytest.approx(best)
        assert gap[(counts == plan).all(axis=1)].item() <= allowed + 1e-9


@pytest.mark.parametrize("kind", [NaiveMatching, Matching, FairGreedy])
def test_agents_read_every_observation_alike(kind: Callable[..., Any]) -> None:
    played = []
    for observation in ("structured", "authors"):
        env = town(horizon=1000, observation=observation)
        agent = playing(kind(env), env)
        seen, _ = env.reset(seed=0)
        actions = np.random.default_rng(0).integers(0, 5, (60, 3, 6))
        for action in actions:
            probabilities = agent.decide(seen)
            seen = env.step(action)[0]
        played.append(probabilities)
    np.testing.assert_allclose(*played)


@pytest.mark.parametrize("observation", ["structured", "authors"])
def test_units_follow_the_incidents_of_the_last_step(observation: str) -> None:
    env = town(observation=observation)
    agent = playing(LastIncidents(env), env)
    seen, _ = env.reset(seed=0)
    np.testing.assert_allclose(shares(agent, seen), 6 / 5)  # nothing happened yet
    for _ in range(20):
        seen, *_ = env.step(np.zeros((3, 6), int))
        occurred = env.unwrapped.lanes.records["occurred"]
        assert occurred.sum(axis=1).all()
        np.testing.assert_allclose(shares(agent, seen), 6 * occurred / occurred.sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match="env must be FairAttention with told='all', got told='discovered'"):
        LastIncidents(town(told="discovered"))


@pytest.mark.parametrize("wrong", [{"action": "logits"}, None])
def test_agents_need_units_that_choose(wrong: Any) -> None:
    env = gym.make_vec("FairHiring-v0", num_envs=2) if wrong is None else town(**wrong)
    with pytest.raises(ValueError, match="env must be FairAttention with action='units'"):
        RoundRobin(env)


# ---------------------------------------------------------------------------------------------- the massager


def shares_of(totals: ArrayLike) -> ShareDeviation:
    """Return the deviation of shares after so many units were sent to each location, shape (B, K); all 0: no step."""
    sent = np.array(totals, np.float64)
    measure = ShareDeviation(len(sent), individuals=sent.shape[1])
    measure.totals[:] = sent
    measure.value = measure.if_taken(np.zeros_like(sent))
    return measure


A7 = [[30, 6, 6, 6, 12]]
EVERYTHING = np.array([[0, 0, 1, 2, 3, 4]])
NOTHING_SEEN = np.zeros((1, 160))


def massaged(action: NDArray[Any], probabilities: Floats, totals: ArrayLike = A7, threshold: float = 0.05) -> list[int]:
    """Return the massaged choices of the first lane."""
    policy = PolicyOutput(probabilities=probabilities)
    before = action.copy()
    moved = AttentionMassager()(NOTHING_SEEN, action, policy, shares_of(totals), threshold=threshold)
    assert (action == before).all() and not np.shares_memory(moved, action)
    out: list[int] = moved[0].tolist()
    return out


EQUAL = np.full((1, 6, 5), 0.2)


def test_the_best_move_takes_a_unit_from_where_most_were_to_the_lowest_index() -> None:
    short = shares_of(A7)
    assert short.if_taken(np.array([[2, 1, 1, 1, 1]]))[0] == pytest.approx(0.2848, abs=5e-5)
    assert short.if_taken(np.array([[1, 2, 1, 1, 1]]))[0] == pytest.approx(0.2697, abs=5e-5)
    assert massaged(EVERYTHING, EQUAL) == [1, 0, 1, 2, 3, 4]


def test_no_unit_is_moved_if_that_does_not_lower_the_measure() -> None:
    totals = [[12, 6, 6, 6, 6]]  # nothing comes near to the first location's share, and it is sent nothing
    assert massaged(np.array([[1, 1, 2, 3, 4, 4]]), EQUAL, totals) == [1, 1, 2, 3, 4, 4]


def test_no_unit_is_moved_on_a_tie() -> None:
    policy, short = PolicyOutput(probabilities=np.full((1, 1, 2), 0.5)), shares_of([[3, 3]])
    massager = AttentionMassager(locations=2, units=1)
    assert massager(np.zeros((1, 2)), np.array([[1]]), policy, short, threshold=1.0).tolist() == [[1]]
    uneven = shares_of([[3, 4]])
    assert massager(np.zeros((1, 2)), np.array([[1]]), policy, uneven, threshold=1.0).tolist() == [[0]]


def test_only_choices_of_about_the_same_probability_are_exchanged() -> None:
    sure = np.tile([0.6, 0.1, 0.1, 0.1, 0.1], (1, 6, 1))
    assert massaged(EVERYTHING, sure) == EVERYTHING[0].tolist()
    assert massaged(EVERYTHING, sure, threshold=0.5) == [1, 0, 1, 2, 3, 4]
    one_unsure = sure.copy()
    one_unsure[0, 1] = [0.3, 0.1, 0.1, 0.28, 0.22]  # the second unit only, and only for the fourth location
    assert massaged(EVERYTHING, one_unsure) == [0, 3, 1, 2, 3, 4]


def test_nothing_is_moved_before_the_first_step() -> None:
    crowded = np.zeros((1, 6), np.int64)
    assert massaged(crowded, EQUAL, [[0] * 5]) == [0] * 6
    assert massaged(crowded, EQUAL, [[1] * 5]) == [1, 0, 0, 0, 0, 0]


def test_each_lane_is_massaged_for_itself() -> None:
    action = np.repeat(EVERYTHING, 3, axis=0)
    short = shares_of([A7[0], [0] * 5, [6, 6, 6, 6, 30]])
    policy = PolicyOutput(probabilities=np.repeat(EQUAL, 3, axis=0))
    moved = AttentionMassager()(np.zeros((3, 160)), action, policy, short, threshold=0.05)
    assert moved.tolist() == [[1, 0, 1, 2, 3, 4], [0, 0, 1, 2, 3, 4], [0, 0, 1, 2, 3, 0]]


def of_logits(logits: ArrayLike, mean: ArrayLike, std: ArrayLike, *, threshold: float = 0.08) -> NDArray[Any]:
    policy = PolicyOutput(mean=np.array([mean], float), std=np.array([std], float))
    massager = AttentionMassager(action="logits")
    return massager(NOTHING_SEEN, np.array([logits], np.float64), policy, shares_of(A7), threshold=threshold)


def test_logits_move_one_units_share_to_another_location() -> None:
    moved = of_logits(np.zeros(5), np.zeros(5), np.ones(5), threshold=1.0)[0]
    np.testing.assert_allclose(moved, [math.log(1 / 6), math.log(11 / 6), 0, 0, 0])
    np.testing.assert_allclose(softmax(moved), [1 / 30, 11 / 30, 0.2, 0.2, 0.2])
    out = np.zeros(5, int)
    decode(moved, 6, np.empty(5), out)
    assert out[0] < 2 and out[1] > 1


@pytest.mark.parametrize("logits", [[800.0, 0, 0, 0, 0], [-800.0] * 5])
def test_logits_far_from_0_are_moved_like_any_others(logits: list[float]) -> None:
    moved = of_logits(logits, logits, np.full(5, 1000.0), threshold=1.0)[0]
    near = softmax(np.array(logits))
    np.testing.assert_allclose(softmax(moved), near + np.array([-1, 1, 0, 0, 0]) / 6, atol=1e-9)


def test_logits_stay_if_their_densities_would_change() -> None:
    """The move lowers the density of the first logit from 0.399 to 0.080, that of the second to 0.332."""
    assert gaussian(np.array(math.log(1 / 6)), np.array(0.0), np.array(1.0)) == pytest.approx(0.0801, abs=1e-4)
    assert not of_logits(np.zeros(5), np.zeros(5), np.ones(5), threshold=0.3).any()
    assert of_logits(np.zeros(5), np.zeros(5), np.ones(5), threshold=0.32).any()


def test_the_threshold_of_logits_means_something_else_for_another_spread() -> None:
    assert of_logits(np.zeros(5), np.zeros(5), np.full(5, 4.0), threshold=0.08).any()
    assert not of_logits(np.zeros(5), np.zeros(5), np.full(5, 0.5), threshold=0.32).any()


def test_nothing_is_taken_from_a_share_that_is_too_small() -> None:
    logits = [8.0, 0, 0, 0, 0]  # all units are at the first location, whose share is almost all
    moved = of_logits(logits, logits, np.full(5, 50.0))
    assert softmax(moved)[0, 0] == pytest.approx(softmax(np.array(logits))[0] - 1 / 6)


def test_the_massager_needs_what_its_kind_of_action_has() -> None:
    with pytest.raises(ValueError, match="policy must give probabilities"):
        AttentionMassager()(NOTHING_SEEN, EVERYTHING, PolicyOutput(), shares_of(A7), threshold=0.1)
    with pytest.raises(ValueError, match="policy must give mean and std"):
        AttentionMassager(action="logits")(NOTHING_SEEN, np.zeros((1, 5)), PolicyOutput(), shares_of(A7), threshold=0.1)
    with pytest.raises(ValueError, match="action must be one of 'units', 'logits', got 'allocation'"):
        AttentionMassager(action="allocation")  # type: ignore[arg-type]
