"""Incidents are Poisson, and fixed policies fare as they do in the published code.

The known numbers are of ten episodes of the published environment with its own rates.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from fair_envs.core import Lanes
from fair_envs.envs.attention.policies import Greedy, Proportional, RoundRobin, Uniform
from fair_envs.envs.attention.rules import Attention
from fair_envs.evaluation import DecisionMaker, choose
from fair_envs.support.aliases import Floats, Ints
from tests.helpers import playing

EPISODES, STEPS = 64, 1000


class Course(NamedTuple):
    """What happened in all episodes, step by step."""

    reward: Floats  # (steps, episodes)
    rates: Floats  # before the step, (steps, episodes, locations)
    units: Ints  # (steps, episodes, locations)

    def earned(self, begin: int, end: int) -> float:
        """Return the mean reward of a step between two times."""
        return float(self.reward[begin:end].mean())

    def share_deviation(self) -> float:
        """Return how far a location's share of all units is from an equal one, mean over episodes."""
        sent = self.units.sum(axis=0)
        return float(np.abs(sent / sent.sum(axis=1, keepdims=True) - 1 / 5).max(axis=1).mean())

    def spread(self, begin: int) -> float:
        """Return the largest distance of a rate from the mean rate, mean over the steps from a time on."""
        rates = self.rates[begin:]
        return float(np.abs(rates - rates.mean(axis=2, keepdims=True)).max(axis=2).mean())


@cache
def course(kind: Callable[[Any], DecisionMaker], increase_rates: str = "study") -> Course:
    """Play the episodes."""
    env: Any = gym.make_vec("FairAttention-v0", num_envs=EPISODES, increase_rates=increase_rates)
    agent, luck = playing(kind(env), env), np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    agent.begin(np.ones(EPISODES, bool), np.zeros(EPISODES, np.int64))
    found: list[tuple[Any, ...]] = []
    for _ in range(STEPS):
        rates, probabilities = env.unwrapped.oracle()["rate"], agent.decide(observation)
        observation, reward, _, _, info = env.step(choose(probabilities, luck.random(probabilities.shape[:-1])))
        found.append((reward, rates, info["fair_action"]))
    return Course(*map(np.array, zip(*found, strict=True)))


def test_incidents_are_poisson_numbers_of_the_rates() -> None:
    lanes = Lanes(Attention(), 20_000)
    lanes.seed(0)
    lanes.restart()
    incidents = lanes.rules.oracle(lanes.records)["feedback"]
    for k, rate in enumerate((8, 6, 4, 3, 1.5)):
        counts = np.bincount(incidents[:, k], minlength=40)[:40]
        law = stats.poisson(rate).pmf(np.arange(40)) * len(incidents)
        often = law > 5
        observed = np.append(counts[often], counts[~often].sum())
        expected = np.append(law[often], len(incidents) - law[often].sum())
        assert stats.chisquare(observed, expected).pvalue > 1e-3
    correlations = np.corrcoef(incidents.T)[np.triu_indices(5, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(len(incidents))


def test_round_robin_is_fair_and_drives_all_rates_to_nothing() -> None:
    played = course(RoundRobin)
    assert played.earned(15, 25) == pytest.approx(1.65, abs=0.2)  # two rounds: the sixth unit's place matters
    assert played.earned(45, 55) == pytest.approx(0.86, abs=0.15)
    assert played.earned(200, STEPS) == 0 and not played.rates[-1].any()
    assert played.share_deviation() == pytest.approx(0, abs=1e-3)


def test_sending_units_anywhere_lets_a_location_run_away() -> None:
    played = course(Uniform)
    assert played.rates[-1].mean(axis=0).argmax() == 3
    assert played.rates[-1, :, 3].mean() == pytest.approx(42, abs=5)
    assert played.earned(980, STEPS) == pytest.approx(-8, abs=1.2)


def test_units_in_proportion_to_the_rates_keep_incidents_alive() -> None:
    played = course(Proportional)
    assert played.earned(95, 106) == pytest.approx(2.95, abs=0.25)
    assert played.earned(700, STEPS) == pytest.approx(1.1, abs=0.15)
    assert played.share_deviation() == pytest.approx(0.06, abs=0.01)
    assert played.spread(700) == pytest.approx(0.3, abs=0.1)


def test_greed_earns_the_most_at_first_and_little_later() -> None:
    played = course(Greedy)
    assert played.earned(15, 26) == pytest.approx(3.0, abs=0.4)
    assert played.earned(700, STEPS) == pytest.approx(0.8, abs=0.1)
    assert played.share_deviation() == pytest.approx(0.12, abs=0.015)


@pytest.mark.parametrize("kind", [RoundRobin, Uniform, Proportional, Greedy])
def test_rates_begin_apart_by_three_and_a_half(kind: Callable[[Any], DecisionMaker]) -> None:
    assert np.abs(course(kind).rates[0] - 4.5).max() == 3.5


@pytest.mark.parametrize("kind", [RoundRobin, Uniform, Proportional, Greedy])
def test_with_one_slow_increase_everybody_ends_with_almost_nothing(kind: Callable[[Any], DecisionMaker]) -> None:
    assert 0 <= course(kind, "as_decrease").earned(800, STEPS) < 0.35
