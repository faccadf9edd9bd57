"""Juries of FairCollege: what they publish, and the published finding that robustness is paid for by the qualified."""

from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.envs.college.policies import Jury, NaiveJury, RobustJury, Worth, best_threshold
from fair_envs.evaluation import VectorWorld, rollout
from tests.envs.admissions import Admissions, admissions

LANES, ROUNDS, BURN_IN = 8, 40, 10


def college(**parameters: Any) -> Any:
    """Return lanes of the published experiment."""
    return gym.make_vec("FairCollege-v0", num_envs=LANES, **{"profile": "fat2020", **parameters})


@cache
def played(kind: str, **parameters: Any) -> Admissions:
    """Return the rounds of a jury."""
    env = college(**parameters)
    juries: dict[str, Callable[[], Jury]] = {
        "fixed": lambda: Jury(env, 0.7),
        "naive": lambda: NaiveJury(env),
        "continuous": lambda: NaiveJury(env, retrain=True),
        "robust": lambda: RobustJury(env),
    }
    return admissions(env, juries[kind](), rounds=ROUNDS)


# ------------------------------------------------------------------------------------------- thresholds


@pytest.mark.parametrize(
    ("scores", "qualified", "expected"),
    [
        ([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1], 0.4),  # 0.8 is as good; the lowest is taken
        ([0.8, 0.2, 0.6, 0.4], [1, 0, 0, 1], 0.4),
        ([0.2, 0.4, 0.6, 0.8], [0, 0, 0, 1], 0.8),
        ([0.2, 0.4], [1, 1], 0.2),
        ([0.2, 0.4], [0, 0], 1.0),
        ([0.5, 0.5, 0.5, 0.7], [1, 1, 0, 1], 0.5),  # equal scores are admitted together
        ([0.5, 0.5, 0.5, 0.7], [0, 0, 1, 1], 0.7),
    ],
)
def test_the_best_threshold_makes_the_fewest_errors(scores: list[float], qualified: list[int], expected: float) -> None:
    assert best_threshold(scores, qualified) == expected


def test_what_decisions_are_worth_moves_the_best_threshold() -> None:
    scores, qualified = [0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]
    assert best_threshold(scores, qualified, worth=Worth(false_admission=-5.0)) == 0.8
    assert best_threshold(scores, qualified, worth=Worth(true_rejection=-1.0)) == 0.2


def test_the_best_threshold_is_that_of_a_search() -> None:
    luck = np.random.default_rng(0)
    worth = Worth(1.0, 0.5, -2.0, -0.25)
    for _ in range(50):
        scores, qualified = luck.integers(0, 8, 12) / 10, luck.integers(0, 2, 12)

        def earned(threshold: float, scores: Any = scores, qualified: Any = qualified) -> float:
            values = np.array(
                [[worth.true_rejection, worth.false_admission], [worth.false_rejection, worth.true_admission]]
            )
            return float(values[qualified, (scores >= threshold).astype(int)].sum())

        most = max(map(earned, np.linspace(0, 1, 101)))
        assert earned(best_threshold(scores, qualified, worth=worth)) == pytest.approx(most)


# ------------------------------------------------------------------------------------------- juries


def test_in_the_burn_in_everybody_is_admitted_and_nobody_pays() -> None:
    for kind in ("naive", "robust"):
        first = played(kind)
        assert not first.thresholds[:BURN_IN].any() and first.thresholds[BURN_IN:].all()
        assert first.admitted[:BURN_IN].all() and (first.outcomes[:BURN_IN] == 1).all()


def test_a_naive_jury_publishes_the_bar_and_a_robust_one_more_than_either_group_can_reach() -> None:
    """The bar is 0.55; the disadvantaged can add 0.1, the advantaged 0.2."""
    np.testing.assert_allclose(played("naive").thresholds[-1], 0.55, atol=0.02)
    robust = played("robust").thresholds[-1]
    assert (robust > 0.63).all() and (robust < 0.8).all()


def test_a_naive_jury_stays_with_what_it_has_learnt_and_a_continuous_one_goes_up() -> None:
    naive, continuous = played("naive").thresholds, played("continuous").thresholds
    assert (naive[BURN_IN:] == naive[BURN_IN]).all()
    assert (continuous[-1] > naive[-1] + 0.01).all()
    assert (continuous[BURN_IN] == naive[BURN_IN]).all()


def test_robustness_makes_fewer_errors_and_the_qualified_pay_for_it_the_disadvantaged_most() -> None:
    naive, robust = (played(kind).since(BURN_IN) for kind in ("naive", "robust"))
    assert robust.rewards.mean() > naive.rewards.mean() + 0.2
    assert (robust.social_burden > naive.social_burden + 0.3).all()
    assert np.diff(robust.social_burden) > 0.3
    assert (naive.accuracy[0], naive.accuracy[1]) == pytest.approx((0.37, 0.62), abs=0.06)


def test_without_manipulation_a_robust_jury_is_a_naive_one() -> None:
    naive, robust = (played(kind, manipulation=False).thresholds for kind in ("naive", "robust"))
    assert (naive == robust).all()


def test_a_subsidy_is_known_to_a_robust_jury() -> None:
    env = college(subsidy=True, subsidy_beta=0.5)
    info = {"fair_features": np.full((1, 2, 1), 0.4), "fair_group": np.array([[0, 1]])}
    np.testing.assert_allclose(RobustJury(env).expected(info), [[0.6, 0.6]])
    np.testing.assert_allclose(RobustJury(college()).expected(info), [[0.6, 0.5]])
    limited = college(largest_change=0.05)
    np.testing.assert_allclose(RobustJury(limited).expected(info), [[0.45, 0.45]])
    free = college(advantaged_cost=0.0)
    np.testing.assert_allclose(RobustJury(free).expected(info), [[1.0, 0.5]])


def test_a_lottery_decays_and_is_published() -> None:
    env = college(action="threshold_epsilon")
    jury = Jury(env, 0.25, epsilon=0.8, decay=0.5)
    steps = list(islice(rollout(VectorWorld(env, seed=0), jury), 3))
    for step, epsilon in zip(steps, (0.8, 0.4, 0.2), strict=True):
        np.testing.assert_allclose(step.action, [[[0.25, epsilon]]] * LANES, rtol=1e-6)


def test_thresholds_are_rounded_to_levels() -> None:
    env = college(action="levels", levels=11)
    step = next(rollout(VectorWorld(env, seed=0), Jury(env, 0.68)))
    assert step.action.tolist() == [[7]] * LANES


def test_fixed_thresholds_are_published_as_they_are() -> None:
    np.testing.assert_allclose(played("fixed").thresholds, 0.7, rtol=1e-6)


def test_a_jury_that_is_told_nothing_goes_on_admitting() -> None:
    assert not played("naive", feedback="none").thresholds.any()


def test_rounds_without_those_of_the_burn_in() -> None:
    rest = played("naive").since(BURN_IN)
    assert len(rest.thresholds) == len(rest.admitted) == ROUNDS - BURN_IN


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Jury(gym.make_vec("FairHiring-v0", num_envs=1)), "env must be FairCollege"),
        (lambda: Jury(college(), 1.5), "threshold must be between 0 and 1, got 1.5"),
        (lambda: Jury(college(), epsilon=0.1), "epsilon must be 0 where it is not part of the action, got 0.1"),
        (lambda: NaiveJury(college(), burn_in=0), "burn_in must be an integer of at least 1, got 0"),
        (
            lambda: admissions(college(), Jury(college()), rounds=751),
            "rounds must be at most the horizon, 750, got 751",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
