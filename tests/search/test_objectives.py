"""Objectives are numbers of systems: absolute means of parities, means of everything else."""

import numpy as np
import pytest

pytest.importorskip("optuna")

from fair_envs import make_rules
from fair_envs.evaluation.systems import play_system
from fair_envs.search.objectives import Objective, default_objectives, known_names, numbers, objective_named
from tests.helpers import uncompiled
from tests.test_systems import random_moves

PARITY, TOTAL = Objective(name="demographic_parity:half_speed"), Objective(name="total_return")


def test_a_parity_is_best_at_zero_and_worse_on_either_side() -> None:
    assert PARITY.direction == "minimize" and TOTAL.direction == "maximize"
    values = np.array([-3.0, 1.0, np.nan])
    assert PARITY.value(values) == 1.0 and TOTAL.value(values) == -1.0
    np.testing.assert_array_equal(PARITY.losses(values), [3.0, -1.0, np.nan])
    np.testing.assert_array_equal(PARITY.losses(-values), [3.0, -1.0, np.nan])
    np.testing.assert_array_equal(TOTAL.losses(values), [3.0, -1.0, np.nan])


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("gini", "minimize"),
        ("atkinson", "minimize"),
        ("jain", "maximize"),
        ("maximin", "maximize"),
        ("equal_opportunity:gender", "minimize"),
        ("return_with:half_speed", "maximize"),
        ("counterfactual_fairness:half_speed", "minimize"),
    ],
)
def test_each_number_has_its_direction(name: str, direction: str) -> None:
    assert Objective(name=name).direction == direction


def test_the_standard_error_is_that_of_the_defined_episodes() -> None:
    assert PARITY.error(np.array([1.0, 3.0, np.nan])) == pytest.approx(1.0)
    assert PARITY.error(np.array([1.0, np.nan])) == np.inf
    assert np.isnan(PARITY.value(np.array([np.nan])))


def test_the_difference_of_parities_is_that_of_their_sizes() -> None:
    chance = np.random.default_rng(0)
    original = chance.normal(2.0, 1.0, 400)
    other = -original + 1.5  # the other group is ahead now, by less
    found = PARITY.difference(other, original)
    assert found.value == pytest.approx(abs(other.mean()) - abs(original.mean()))
    assert found.high < 0
    same = PARITY.difference(-original, original)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_total_is_compared_pair_by_pair() -> None:
    chance = np.random.default_rng(0)
    original = chance.normal(0.0, 100.0, 50)
    found = TOTAL.difference(original + chance.normal(1.0, 0.1, 50), original)
    assert 0.9 < found.low < 1 < found.high < 1.1
    assert TOTAL.difference(np.array([1.0, np.nan, 3.0]), np.array([0.0, 5.0, 1.0])).value == 1.5


def test_surely_worse_is_worse_beyond_chance_in_pairs() -> None:
    chance = np.random.default_rng(1)
    rival = chance.normal(0.2, 1.0, 64)
    assert PARITY.significantly_worse(rival + 0.5, rival)
    assert not PARITY.significantly_worse(rival, rival)
    assert not PARITY.significantly_worse(rival + chance.normal(0.0, 1.0, 64), rival)
    assert TOTAL.significantly_worse(rival - 0.5, rival) and not TOTAL.significantly_worse(rival + 0.5, rival)


@uncompiled
def test_every_known_name_is_a_number_of_the_environment() -> None:
    rules = make_rules("FairHarvest-v0", agents=4, horizon=30)
    played = play_system(rules, random_moves, episodes=3)
    assert set(known_names(rules)) == set(numbers(played))
    assert default_objectives(rules) == ["demographic_parity:half_speed", "total_return"]


def test_a_name_without_attribute_is_that_of_the_first_one() -> None:
    rules = make_rules("FairTraffic-v0")
    assert objective_named("demographic_parity", rules).name == "demographic_parity:human_driven"
    assert objective_named("conditional_parity:human_driven:fast=1", rules).notion == "conditional_parity"
    for wrong in ("parity", "demographic_parity:fast", "conditional_parity", "conditional_parity:human_driven:fast=2"):
        with pytest.raises(ValueError, match=f"objective must be one of demographic_parity:human_driven.*'{wrong}'"):
            objective_named(wrong, rules)


def test_a_warning_names_the_attribute_of_an_objective_without_one() -> None:
    with pytest.warns(UserWarning, match="groups are compared by 'gender', not by 'nationality'; choose with"):
        assert objective_named("dp", make_rules("FairHiring-v0")).name == "demographic_parity:gender"
