"""Fixed policies earn what they earn in the published code, and fairness notions tell them apart where it did not.

The known numbers are means and standard deviations over 8 to 12 episodes of the published code.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core import Lanes, randomness
from fair_envs.envs.hiring.population import GENDER, MAN
from fair_envs.envs.hiring.rules import Hiring
from fair_envs.metrics import GroupNotion
from fair_envs.metrics.history import Full, History, SlidingWindow
from fair_envs.support.aliases import Flags, Floats

Policy = Callable[[NDArray[np.void]], Flags]
"""Lanes to whether each hires."""

EPISODES = 64
KNOWN_EPISODES = 8  # at least


def from_goodness(threshold: float) -> Policy:
    """Return the policy that hires from a goodness on."""
    return lambda records: np.asarray(records["goodness"] >= threshold)


def correctly(records: NDArray[np.void]) -> Flags:
    """Hire the qualified."""
    hires: Flags = records["qualified"] == 1
    return hires


def correctly_up_to_99(records: NDArray[np.void]) -> Flags:
    """Hire the qualified, but never complete the team."""
    return correctly(records) & np.asarray(records["employees"] < 99)


def nobody(records: NDArray[np.void]) -> Flags:
    return np.zeros(len(records), bool)


def everybody(records: NDArray[np.void]) -> Flags:
    return np.ones(len(records), bool)


def qualified_men(records: NDArray[np.void]) -> Flags:
    """Hire the qualified men and no woman."""
    hires: Flags = correctly(records) & (records["applicant"][:, GENDER] == MAN)
    return hires


def at_random(records: NDArray[np.void]) -> Flags:
    """Throw a coin."""
    coin = np.empty((len(records), 1))
    randomness.fill_uniform(records["key"], records["time"], randomness.POLICY, coin)
    return np.asarray(coin[:, 0] < 0.5)


class Played(NamedTuple):
    """What episodes came to, each of shape (episodes,)."""

    returns: Floats
    steps: Floats


def play(policy: Policy, **parameters: Any) -> Played:
    """Play episodes to their ends."""
    lanes = Lanes(Hiring(**parameters), EPISODES)
    lanes.seed(1000)
    lanes.restart()
    returns, steps, going = np.zeros(EPISODES), np.zeros(EPISODES), np.ones(EPISODES, bool)
    while going.any():
        step = lanes.advance(policy(lanes.records).astype(np.int64)[:, np.newaxis], mask=going)
        returns += step.reward[:, 0]
        steps += going
        going &= ~(step.terminated | step.truncated)
    return Played(returns, steps)


@pytest.mark.parametrize("parameters", [{"profile": "authors"}, {"leaving": False}], ids=str)
@pytest.mark.parametrize(
    ("policy", "mean", "deviation", "steps"),
    [
        (correctly, 33.5, 2.9, 163),
        (from_goodness(0.55), 37.8, None, 190),
        (from_goodness(0.60), 42.3, None, 225),
        (from_goodness(0.65), 44.6, None, 252),
        (from_goodness(0.70), 45.1, None, 262),
        (from_goodness(0.75), 45.1, None, 282),
        (from_goodness(0.80), 41.6, None, 359),
        (from_goodness(0.90), -41.6, 16.6, 1000),
        (nobody, 39.4, 7.2, 1000),
        (everybody, 6.7, 1.8, 100),
        (at_random, 1.5, 3.7, 200),
        (correctly_up_to_99, -36.1, 6.9, 1000),
    ],
)
def test_a_policy_earns_what_it_earns_in_the_published_code(
    policy: Policy, mean: float, deviation: float | None, steps: float, parameters: dict[str, Any]
) -> None:
    played = play(policy, **parameters)
    own, own_steps = played.returns.std(ddof=1), played.steps.std(ddof=1)
    errors = (deviation or own) / math.sqrt(KNOWN_EPISODES), own / math.sqrt(EPISODES)
    assert abs(played.returns.mean() - mean) < 3 * math.hypot(*errors)
    assert abs(played.steps.mean() - steps) < 0.5 + 3 * own_steps * math.hypot(KNOWN_EPISODES**-0.5, EPISODES**-0.5)


def test_the_papers_best_return_is_no_upper_bound() -> None:
    for policy in (from_goodness(0.7), nobody):
        assert play(policy, profile="authors").returns.max() > 46.53


def test_fewer_are_qualified_for_an_empty_company_than_for_a_growing_one() -> None:
    shares = []
    for policy in (nobody, correctly):
        lanes, qualified = Lanes(Hiring(leaving=False), EPISODES), []
        lanes.seed(0)
        lanes.restart()
        for _ in range(120):
            qualified.append(lanes.records["qualified"].mean())
            lanes.advance(policy(lanes.records).astype(np.int64)[:, np.newaxis])
        shares.append(np.mean(qualified))
    assert shares[0] == pytest.approx(0.45, abs=0.02)
    assert shares[1] == pytest.approx(0.61, abs=0.02)


# ---------------------------------------------------------------------------------------- what notions tell


def oracle_accuracy(alignment: str) -> float:
    """Return how often the record says that the correct decisions were correct."""
    env: Any = gym.make("FairHiring-v0", alignment=alignment, leaving=False)
    history = History(Full(), env.unwrapped.fair_spec)
    history.add(env.reset(seed=0)[1])
    for _ in range(400):
        action = int(env.unwrapped.oracle()["feedback"][0, 0])
        _, _, terminated, truncated, info = env.step(action)
        history.add(info)
        if terminated or truncated:
            history.add(env.reset()[1])
    told = history.columns()
    assert len(told["action"]) == 400
    return float((told["action"] == told["feedback"]).mean())


def test_oracle_policy_has_accuracy_one() -> None:
    assert oracle_accuracy("decided") == 1.0


def test_oracle_policy_has_accuracy_of_about_a_coin_in_the_published_record() -> None:
    assert oracle_accuracy("next_applicant") == pytest.approx(0.55, abs=0.08)  # published: 0.58


NOTIONS = ("SP", "EO", "OAE", "PP", "PE")


class Gaps(NamedTuple):
    """Gaps between the genders in windows of 500 decisions, one for each of `NOTIONS`."""

    mean: Floats
    spread: Floats  # of single windows


@cache
def gaps(policy: Policy, alignment: str) -> Gaps:
    """Return the gaps in the windows of many companies."""
    lanes = Lanes(Hiring(profile="authors", alignment=alignment), EPISODES)
    lanes.seed(5)
    lanes.restart()
    history = History(SlidingWindow(500), lanes.rules.spec, lanes=EPISODES)
    notions = [GroupNotion(name=name, groups="gender", undefined="paper") for name in NOTIONS]
    found = []
    for time in range(1, 1501):
        step = lanes.advance(policy(lanes.records).astype(np.int64)[:, np.newaxis])
        history.add_facts(step.facts)
        over = step.terminated | step.truncated
        if over.any():
            lanes.restart(mask=over)
        if time % 250 == 0 and time >= 750:
            found.append([notion.gap(history) for notion in notions])
    return Gaps(np.mean(found, axis=(0, 2)), np.std(found, axis=(0, 2)))


FROM_07 = from_goodness(0.7)


@pytest.mark.parametrize(
    ("policy", "mean", "known"),
    [
        (correctly, (0.054, 0, 0, 0, 0), (0.023, 0, 0, 0, 0)),
        (FROM_07, (0.058, 0.059, 0.031, 0, 0), (0.059, 0.064, 0.032, 0, 0)),
        (everybody, (0, 0, 0.054, 0.054, 0), (0, 0, 0.015, 0.015, 0)),
        (at_random, (0.038, 0.047, 0.036, 0.062, 0.062), (0.027, 0.031, 0.026, 0.047, 0.047)),
        (qualified_men, (0.604, 1.0, 0.643, 0, 0), (0.606, 1.0, 0.681, 0, 0)),
    ],
)
def test_the_notions_of_a_policy_are_known(policy: Policy, mean: tuple[float, ...], known: tuple[float, ...]) -> None:
    """The known values are of one window of the published code, so that they lie within the spread of windows.

    A gap of two estimated rates is never exactly 0, so that the mean of many windows is above 0 without any difference.
    """
    found = gaps(policy, "decided")
    for value, spread, own, expected in zip(*found, mean, known, strict=True):
        assert value == own if own in (0, 1) else value == pytest.approx(own, abs=0.01)
        assert abs(value - expected) <= 1.5 * spread


def test_a_policy_that_hires_no_woman_has_a_large_gap() -> None:
    assert gaps(qualified_men, "decided").mean[0] == pytest.approx(0.606, abs=0.01)


@pytest.mark.parametrize("policy", [correctly, FROM_07, everybody, at_random, qualified_men])
def test_in_the_published_record_no_policy_has_a_large_gap(policy: Policy) -> None:
    assert gaps(policy, "next_applicant").mean.max() < 0.09


def test_the_correct_policy_hires_groups_at_different_rates() -> None:
    """Groups differ in education: equal errors and equal shares exclude each other here."""
    lanes = Lanes(Hiring(leaving=False), EPISODES)
    lanes.seed(0)
    lanes.restart()
    history = History(Full(), lanes.rules.spec, lanes=EPISODES)
    for _ in range(100):
        history.add_facts(lanes.advance(correctly(lanes.records).astype(np.int64)[:, np.newaxis]).facts)
    counts = history.counts().sum(axis=0)  # (gender, nationality, education, decision, truth)
    rates = counts[..., 1, :].sum(axis=(2, 3)) / counts.sum(axis=(2, 3, 4))
    assert rates.max() - rates.min() > 0.03
