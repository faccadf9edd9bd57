"""Random play has the statistics that the specified rules have.

The expected numbers, mean and standard error, come from independent implementations: ``authors`` from runs of the
published code, ``recommended`` from a throw-away implementation of the recommended rules. Where no error is known, it
is our own spread over as many episodes as were run there.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from fair_envs.core import Lanes
from fair_envs.envs.harvest.rules import NO_TURN, Harvest
from fair_envs.support.aliases import Floats

Known = tuple[float, float]  # mean and standard error
EPISODES = 32


class Played(NamedTuple):
    """What happened in episodes of random play; one entry for each episode."""

    without: Floats  # reward of an agent without the attribute in a step
    having: Floats  # reward of an agent with the attribute in a step
    ratio: Floats  # of the groups' totals: difference by sum
    lost: Floats  # share of all turns that freezing cost
    frozen: Floats  # share of the agents that are frozen at the end
    red: Floats  # share of the bushes that are red at the end


@cache
def played(profile: str, steps: int, share: float = 0.5) -> Played:
    """Return the statistics of uniformly random actions, red agents first."""
    lanes = Lanes(Harvest(profile=profile, indices="red_first", sensitive_fraction=share), EPISODES)
    lanes.seed(0)
    lanes.restart()
    luck = np.random.default_rng(0)
    slow = lanes.records["sensitive"].astype(bool)
    totals, lost = np.zeros((EPISODES, 40)), np.zeros(EPISODES)
    for time in range(steps):
        step = lanes.advance(luck.integers(0, 8, (EPISODES, 40)))
        totals += step.reward
        granted = ~slow | (time % 2 == 1)
        lost += ((step.facts["action"] == NO_TURN) & granted).sum(axis=1)
    sums = [np.where(group, totals, 0).sum(axis=1) for group in (~slow, slow)]
    with np.errstate(invalid="ignore"):
        without, having = (total / group.sum(axis=1) / steps for total, group in zip(sums, (~slow, slow), strict=True))
    return Played(
        without,
        having,
        ratio=(sums[0] - sums[1]) / (sums[0] + sums[1]),
        lost=lost / (steps * (~slow).sum(axis=1) + steps // 2 * slow.sum(axis=1)),
        frozen=(lanes.records["frozen"] != 0).mean(axis=1),
        red=lanes.records["reds"] / lanes.records["bushes"],
    )


def agrees(found: Floats, known: Known) -> bool:
    """Return whether a mean lies within three standard errors of the known one, both being uncertain."""
    mean, error = known
    own = found.std(ddof=1) / math.sqrt(len(found))
    return bool(abs(found.mean() - mean) < 3 * math.hypot(error, own))


@pytest.mark.parametrize(
    ("profile", "steps", "without", "having", "ratio"),
    [
        ("authors", 3000, (0.655, 0.021), (0.301, 0.010), (0.367, 0.022)),
        ("authors", 1000, (0.732, 0.017), (0.328, 0.012), (0.381, 0.018)),
        ("recommended", 3000, (0.3365, 0.0020), (0.1699, 0.0012), (0.329, 0.004)),
        ("recommended", 1000, (0.3514, 0.0043), (0.1716, 0.0023), (0.344, 0.009)),
    ],
)
def test_the_rewards_of_random_play(profile: str, steps: int, without: Known, having: Known, ratio: Known) -> None:
    found = played(profile, steps)
    assert agrees(found.without, without)
    assert agrees(found.having, having)
    assert agrees(found.ratio, ratio)


def test_freezing_costs_3_percent_of_the_turns() -> None:
    assert agrees(played("recommended", 3000).lost, (0.0302, 0.0002))
    assert agrees(played("recommended", 1000).lost, (0.0311, 0.0005))


@pytest.mark.parametrize(("steps", "frozen"), [(3000, (0.18, 0.01)), (1000, (0.14, 0.0115))])
def test_under_the_authors_rules_obstructed_agents_are_out_of_the_game(steps: int, frozen: Known) -> None:
    assert agrees(played("authors", steps).frozen, frozen)


@pytest.mark.parametrize(
    ("profile", "nobody", "everybody", "ratio"),
    [("authors", 0.712, 0.356, (0.333, 0.010)), ("recommended", 0.348, 0.179, (0.319, 0.005))],
)
def test_games_without_and_of_carriers_only(profile: str, nobody: float, everybody: float, ratio: Known) -> None:
    none, whole = played(profile, 1000, 0.0), played(profile, 1000, 1.0)
    assert np.isnan(none.having).all() and np.isnan(whole.without).all()
    found = (none.without - whole.having) / (none.without + whole.having)
    assert agrees(found, ratio)
    for found, mean in ((none.without, nobody), (whole.having, everybody)):
        spread = found.std(ddof=1)  # of one episode; six were run
        assert agrees(found, (mean, spread / math.sqrt(6)))


@pytest.mark.parametrize("profile", ["authors", "recommended"])
def test_no_colour_wins_under_random_play(profile: str) -> None:
    assert agrees(played(profile, 3000).red, (0.5, 0.01))
