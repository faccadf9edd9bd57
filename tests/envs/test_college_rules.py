"""Each rule of FairCollege on applicants set by hand."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from fair_envs.core import Lanes
from fair_envs.envs.college.rules import ADVANTAGED, DISADVANTAGED, OBSERVED, College, noise_of, quantile
from tests.helpers import assert_same, uncompiled

A, D = ADVANTAGED, DISADVANTAGED


class Applicant(NamedTuple):
    """Somebody who applies; qualified by default from 0.88 (advantaged) and 0.66 on."""

    group: int
    score: float
    merit: float | None = None  # the score
    aim: float = 0.0


SIX = [Applicant(*who) for who in ((A, 0.1), (D, 0.3), (D, 0.6), (D, 0.7), (A, 0.7), (A, 0.9))]
"""The scores and groups of a published test."""
BEST = Applicant(A, 1.0)


def college(people: Sequence[Applicant] = SIX, *, count: int = 1, **parameters: Any) -> Lanes:
    """Return a college to which these applicants come first, and others up to six who have the best score already."""
    people = [*people, *[BEST] * (len(SIX) - len(people))]
    lanes = Lanes(College(**{"applicants": len(SIX), **parameters}), count)
    lanes.seed(0)
    lanes.restart()
    params, records = lanes.rules.params, lanes.records
    bars = 1.1 * params.advantaged_mean, 1.1 * params.disadvantaged_mean
    for i, who in enumerate(people):
        merit = who.score if who.merit is None else who.merit
        values = {"group": who.group, "score": who.score, "merit": merit, "aim": who.aim}
        for name, value in {**values, "qualified": merit >= bars[who.group]}.items():
            records[name][:, i] = value
    return lanes


def publish(lanes: Lanes, *numbers: float) -> Any:
    """Publish these numbers; return what the round reports."""
    space = lanes.rules.action_space(lanes.rules.params)
    action = np.array(numbers, space.dtype).reshape(1, 1, *(space.shape or ()))
    return lanes.advance(np.repeat(action, lanes.count, axis=0))


def of_others(lanes: Lanes, column: Any) -> list[Any]:
    """Return what a column says of those who did not have the best score already, rounded to millionths."""
    values: list[Any] = np.round(column[0][lanes.records["past_score"][0] < 1.0].astype(float), 6).tolist()
    return values


def presented(lanes: Lanes) -> list[float]:
    """Return the scores that were presented in the last round."""
    return of_others(lanes, lanes.records["presented"])


def paid(lanes: Lanes) -> list[float]:
    """Return what was paid in the last round."""
    return of_others(lanes, lanes.records["paid"])


def admitted(lanes: Lanes) -> list[float]:
    """Return who was admitted in the last round."""
    return of_others(lanes, lanes.records["admitted"])


# ------------------------------------------------------------------------------------------- who manipulates


@uncompiled
def test_whoever_falls_short_raises_the_score_to_the_threshold_if_it_is_worth_it() -> None:
    """With costs of 3 and 4 a gain of 1 is worth 0.33 and 0.25 points, as in the published test."""
    lanes = college(advantaged_cost=3.0, disadvantaged_cost=4.0)
    played = publish(lanes, 0.8)
    assert presented(lanes) == [0.1, 0.3, 0.8, 0.8, 0.8, 0.9]
    assert paid(lanes) == [0, 0, 0.8, 0.4, 0.3, 0]
    assert played.facts["action"].tolist() == [[0, 0, 1, 1, 1, 1]]
    np.testing.assert_allclose(played.facts["outcome"], [[0, 0, 0.2, 0.6, 0.7, 1]], atol=1e-6)
    np.testing.assert_allclose(played.facts["features"][0, :, 0], [0.1, 0.3, 0.8, 0.8, 0.8, 0.9], rtol=1e-6)


@uncompiled
def test_nobody_raises_the_score_further_than_allowed() -> None:
    lanes = college(advantaged_cost=3.0, disadvantaged_cost=4.0, largest_change=0.1)
    publish(lanes, 0.8)
    assert presented(lanes) == [0.1, 0.3, 0.6, 0.8, 0.8, 0.9]


def test_without_manipulation_scores_stay_and_cost_nothing() -> None:
    lanes = college(manipulation=False)
    played = publish(lanes, 0.8)
    assert presented(lanes) == [0.1, 0.3, 0.6, 0.7, 0.7, 0.9]
    assert played.facts["action"].tolist() == [[0, 0, 0, 0, 0, 1]]
    assert played.facts["outcome"].tolist() == [[0, 0, 0, 0, 0, 1]]
    assert lanes.records["burden_sum"].tolist() == [[0, 0]]


def test_the_same_points_cost_the_disadvantaged_more() -> None:
    lanes = college([Applicant(A, 0.5), Applicant(D, 0.5)])
    publish(lanes, 1.0)
    assert paid(lanes) == [0.4, 0.6]


def test_a_subsidy_lowers_the_cost_of_the_disadvantaged_alone() -> None:
    lanes = college([Applicant(A, 0.5), Applicant(D, 0.5)], subsidy=True, subsidy_beta=0.6)
    publish(lanes, 1.0)
    assert paid(lanes) == [0.4, 0.36]
    assert set(lanes.rules.oracle(lanes.records)["cost"][0].tolist()) <= {0.8, 0.6 * 1.2}


def test_a_subsidy_lets_somebody_manipulate_who_could_not() -> None:
    for subsidy, shown in ((False, 0.1), (True, 1.0)):
        lanes = college([Applicant(D, 0.1)], subsidy=subsidy, subsidy_beta=0.9)
        publish(lanes, 1.0)
        assert presented(lanes) == [shown]


def test_whoever_gains_exactly_what_it_costs_manipulates() -> None:
    lanes = college([Applicant(A, 0.5), Applicant(D, 0.5)], advantaged_cost=2.0, disadvantaged_cost=2.0001)
    publish(lanes, 1.0)
    assert presented(lanes) == [1.0, 0.5]


def test_a_lottery_makes_the_threshold_worth_less() -> None:
    """A gain of 0.2 pays for 0.25 points, and for 0.1667 of the disadvantaged."""
    people = [Applicant(A, 0.76), Applicant(A, 0.74), Applicant(D, 0.84), Applicant(D, 0.83)]
    lanes = college(people, action="threshold_epsilon")
    publish(lanes, 1.0, 0.8)
    assert presented(lanes) == [1.0, 0.74, 1.0, 0.83]


def test_a_lottery_admits_some_of_those_who_fall_short() -> None:
    lanes = college([Applicant(A, 0.0)] * 6, count=400, epsilon=0.3, manipulation=False)
    assert publish(lanes, 0.5).facts["action"].mean() == pytest.approx(0.3, abs=0.04)
    lanes = college([Applicant(A, 0.0)] * 6, count=10, epsilon=1.0)
    assert publish(lanes, 0.5).facts["action"].all()


# ------------------------------------------------------------------------------------------- noise


def test_applicants_believe_in_the_threshold_that_they_see() -> None:
    people = [Applicant(A, 0.5, aim=0.1), Applicant(A, 0.5, aim=-0.1), Applicant(A, 0.65, aim=0.1)]
    lanes = college([*people, Applicant(A, 0.55, aim=-0.1)], noise="thresholds")
    publish(lanes, 0.6)
    assert presented(lanes) == [0.7, 0.5, 0.7, 0.55]
    assert paid(lanes) == [0.16, 0, 0.04, 0]
    assert admitted(lanes) == [1, 0, 1, 0]


def test_applicants_who_see_a_threshold_that_is_too_low_pay_in_vain() -> None:
    lanes = college([Applicant(A, 0.3, aim=-0.1)], noise="thresholds")
    played = publish(lanes, 0.6)
    assert (presented(lanes), paid(lanes)) == ([0.5], [0.16])
    assert of_others(lanes, played.facts["outcome"]) == [-0.16]


def test_published_applicants_know_the_threshold_and_are_paid_to_present_less() -> None:
    people = [Applicant(A, 0.3, aim=-0.1), Applicant(A, 0.65, aim=0.1), Applicant(A, 0.5, aim=0.1)]
    lanes = college([*people, Applicant(A, 0.55, aim=-0.1)], noise="thresholds", noise_response="published")
    publish(lanes, 0.6)
    assert presented(lanes) == [0.3, 0.65, 0.7, 0.5]
    assert paid(lanes) == [0, 0, 0.16, -0.04]


def test_both_responses_are_the_same_without_noise() -> None:
    rounds = []
    for response in ("seen", "published"):
        lanes = Lanes(College(noise_response=response, epsilon=0.2, profile="fat2020"), 8)
        lanes.seed(3)
        lanes.restart()
        rounds.append(lanes.advance(np.full((8, 1, 1), 0.6, np.float32)).facts)
    assert_same(rounds[0], rounds[1])


def test_a_threshold_is_never_seen_outside_the_scores() -> None:
    lanes = college([Applicant(A, 0.95, aim=0.3)], noise="thresholds")
    publish(lanes, 0.9)
    assert presented(lanes) == [1.0]


def test_a_larger_word_gives_larger_beta_noise() -> None:
    params = College(noise="scores", noise_distribution="beta").code
    noise = [noise_of(params, np.uint32(share * (2**32 - 1))) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert noise == sorted(noise)
    assert noise == pytest.approx([-1.0, -params.quantiles[512], 0.0, params.quantiles[512], 1.0], abs=1e-4)


def test_a_quantile_lies_between_those_of_the_table() -> None:
    table = np.array([0.0, 0.2, 1.0])
    assert [quantile(table, level) for level in (0.0, 0.25, 0.5, 0.75, 1.0)] == pytest.approx([0, 0.1, 0.2, 0.6, 1])


# ------------------------------------------------------------------------------------------- the jury


def test_whoever_reaches_the_threshold_exactly_is_admitted() -> None:
    lanes = college([Applicant(A, 0.5), Applicant(A, 0.4999)], manipulation=False)
    publish(lanes, 0.5)
    assert admitted(lanes) == [1, 0]


def test_the_reward_is_the_share_of_correct_decisions() -> None:
    """The last three are qualified of six, but for one of group 0 below 0.88; all but the first two are admitted."""
    lanes = college(advantaged_cost=3.0, disadvantaged_cost=4.0)
    assert lanes.rules.oracle(lanes.records)["feedback"].tolist() == [[0, 0, 0, 1, 0, 1]]
    assert publish(lanes, 0.8).reward[0, 0] == pytest.approx(4 / 6)


def test_each_kind_of_decision_has_its_own_worth() -> None:
    worths: dict[str, Any] = {
        "true_admission": 1.0,
        "true_rejection": 10.0,
        "false_admission": 100.0,
        "false_rejection": 1000.0,
    }
    people = [Applicant(A, 0.9), Applicant(A, 0.9), Applicant(A, 0.1), Applicant(A, 0.6), Applicant(D, 0.0, merit=1.0)]
    lanes = college(people, manipulation=False, **worths)
    assert publish(lanes, 0.5).reward[0, 0] == pytest.approx((3 * 1 + 10 + 100 + 1000) / 6)


def test_the_published_juries_lose_as_much_by_an_error_as_they_gain_otherwise() -> None:
    lanes = college(profile="ml-fairness-gym", manipulation=False)
    assert publish(lanes, 0.65, 0.0).reward[0, 0] == pytest.approx((5 - 1) / 6)


@uncompiled
def test_levels_are_evenly_spaced_thresholds() -> None:
    for level, threshold in ((0, 0.0), (3, 0.75), (4, 1.0)):
        lanes = college(action="levels", levels=5)
        publish(lanes, level)
        assert lanes.records["threshold"] == threshold
    assert lanes.rules.action_space(lanes.rules.params) == gym.spaces.Discrete(5)


@pytest.mark.parametrize("action", ["threshold", "threshold_epsilon", "levels"])
def test_every_kind_of_action_makes_an_environment_that_gymnasium_accepts(action: str) -> None:
    check_env(gym.make("FairCollege-v0", action=action).unwrapped, skip_render_check=True)


@pytest.mark.parametrize(
    ("feedback", "known"),
    [("accepted", [-1, -1, 0, 1, 0, 1]), ("full", [0, 0, 0, 1, 0, 1]), ("none", [-1] * 6)],
)
def test_the_jury_learns_who_was_qualified(feedback: str, known: list[int]) -> None:
    lanes = college(advantaged_cost=3.0, disadvantaged_cost=4.0, feedback=feedback)
    assert publish(lanes, 0.8).facts["feedback"].tolist() == [known]
    assert lanes.rules.spec.feedback == feedback


def test_the_observation_tells_what_was_published_and_what_came_of_it() -> None:
    lanes = college(advantaged_cost=3.0, disadvantaged_cost=4.0, action="threshold_epsilon")
    assert not lanes.observe().any()
    publish(lanes, 0.75, 0.0)
    seen = dict(zip(OBSERVED, lanes.observe()[0, 0].tolist(), strict=True))
    known = {"threshold": 0.75, "epsilon": 0, "share_advantaged": 0.5, "score_advantaged": 1.75 / 3}
    known |= {"admitted_advantaged": 2 / 3, "known_advantaged": 2 / 3, "qualified_advantaged": 0.5}
    known |= {"share_disadvantaged": 0.5, "score_disadvantaged": 1.8 / 3, "admitted_disadvantaged": 2 / 3}
    known |= {"known_disadvantaged": 2 / 3, "qualified_disadvantaged": 0.5, "share_all": 1, "score_all": 3.55 / 6}
    known |= {"admitted_all": 2 / 3, "known_all": 2 / 3, "qualified_all": 0.5}
    assert seen == pytest.approx(known, abs=1e-6)


def test_of_a_group_of_whom_nobody_came_the_observation_is_zero() -> None:
    lanes = college([])
    publish(lanes, 0.5)
    seen = dict(zip(OBSERVED, lanes.observe()[0, 0].tolist(), strict=True))
    assert [seen[f"{name}_disadvantaged"] for name in ("share", "score", "admitted", "known", "qualified")] == [0] * 5


# ------------------------------------------------------------------------------------------- people and episodes


def test_applicants_of_each_round_have_numbers_of_their_own() -> None:
    env = gym.make("FairCollege-v0")
    env.reset(seed=0)
    numbers = [env.step(np.array([0.5], np.float32))[4]["fair_individual"].tolist() for _ in range(3)]
    assert numbers == [list(range(first, first + 20)) for first in (0, 20, 40)]


def test_other_people_apply_in_each_round() -> None:
    lanes = Lanes(College(), 1)
    lanes.seed(0)
    lanes.restart()
    merits = []
    for _ in range(4):
        merits.append(lanes.records["merit"][0].tolist())
        lanes.advance(np.full((1, 1, 1), 0.5, np.float32))
    assert len({tuple(sorted(own)) for own in merits}) == 4


def test_the_oracle_tells_of_the_coming_round_what_the_record_tells_afterwards() -> None:
    env: Any = gym.make("FairCollege-v0", feedback="full", noise="both", noise_distribution="beta")
    env.reset(seed=4)
    for _ in range(5):
        hidden = env.unwrapped.oracle()
        info = env.step(np.array([0.9], np.float32))[4]
        assert hidden["feedback"][0].tolist() == info["fair_feedback"].tolist()
        assert np.where(info["fair_group"] == 1, 1.2, 0.8).tolist() == hidden["cost"][0].tolist()
        assert not np.allclose(hidden["merit"], hidden["score"])


def test_the_counts_of_an_episode_add_up() -> None:
    lanes = college(advantaged_cost=3.0, disadvantaged_cost=4.0)
    publish(lanes, 0.8)
    assert lanes.records["tally"][0].tolist() == [[[1, 1], [0, 1]], [[1, 1], [0, 1]]]
    np.testing.assert_allclose(lanes.records["paid_sum"][0], [0.3, 1.2], atol=1e-6)
    np.testing.assert_allclose(lanes.records["burden_sum"][0], [0, 0.4], atol=1e-6)


def test_a_flipped_applicant_has_the_same_luck_in_the_other_group() -> None:
    lanes = Lanes(College(advantaged_mean=0.5, disadvantaged_mean=0.5, advantaged_spread=0.1), 4)
    lanes.seed(1)
    lanes.restart()
    before = lanes.snapshot()
    lanes.rules.flip(lanes.records, np.array([[True], [False], [True], [True]]))
    assert_same(lanes.records[1], before[1])
    for b in (0, 2, 3):
        assert (lanes.records["group"][b] == 1 - before["group"][b]).all()
        inside = (before["merit"][b] > 0) & (before["merit"][b] < 1)
        inside &= (lanes.records["merit"][b] > 0) & (lanes.records["merit"][b] < 1)
        luck = [(one["merit"][b] - 0.5) / np.where(one["group"][b] == 1, 0.3, 0.1) for one in (before, lanes.records)]
        np.testing.assert_allclose(luck[0][inside], luck[1][inside])
        assert (before["merit"][b] != lanes.records["merit"][b]).any()


def test_a_lane_that_is_not_flipped_stays_as_it_was() -> None:
    lanes = Lanes(College(), 2)
    lanes.seed(0)
    lanes.restart()
    lanes.rules.assign(lanes.records, "group", D)
    before = lanes.snapshot()
    lanes.rules.flip(lanes.records, np.array([[False], [True]]))
    assert_same(lanes.records[:1], before[:1])
    assert (lanes.records["merit"][1] != before["merit"][1]).any()


def test_flipping_twice_changes_nothing_and_flipping_lasts() -> None:
    lanes, other = (Lanes(College(noise="both"), 3) for _ in range(2))
    for own in (lanes, other):
        own.seed(2)
        own.restart()
    everybody, before = np.ones((3, 1), bool), lanes.snapshot()
    lanes.rules.flip(lanes.records, everybody)
    lanes.rules.flip(lanes.records, everybody)
    assert_same(lanes.records, before)
    lanes.rules.flip(lanes.records, everybody)
    for own in (lanes, other):
        own.advance(np.full((3, 1, 1), 0.5, np.float32))
    assert (lanes.records["group"] == 1 - other.records["group"]).all()


def test_assigning_a_group_changes_who_is_qualified_and_the_cost_but_no_score() -> None:
    lanes = college([Applicant(A, 0.7), Applicant(D, 0.7), Applicant(A, 0.9)])
    lanes.rules.assign(lanes.records, "group", D)
    hidden = lanes.rules.oracle(lanes.records)
    assert hidden["feedback"].tolist() == [[1] * 6] and hidden["merit"].tolist() == [[0.7, 0.7, 0.9, 1, 1, 1]]
    lanes.rules.assign(lanes.records, "group", A)
    hidden = lanes.rules.oracle(lanes.records)
    assert hidden["feedback"].tolist() == [[0, 0, 1, 1, 1, 1]] and hidden["cost"].tolist() == [[0.8] * 6]


@pytest.mark.parametrize(
    ("attribute", "code", "message"),
    [("gender", 0, "attribute must be 'group', got 'gender'"), ("group", 2, "code must be 0 or 1, got 2")],
)
def test_assigning_something_else_is_refused(attribute: str, code: int, message: str) -> None:
    lanes = college()
    with pytest.raises(ValueError, match=message):
        lanes.rules.assign(lanes.records, attribute, code)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise_low": 0.4}, r"noise_low must be at most noise_high \(0.35\), got 0.4"),
        ({"action": "threshold_epsilon", "epsilon": 0.1}, "epsilon must be 0 where it is part of the action, got 0.1"),
        ({"feedback": "delayed"}, "feedback must be one of 'none', 'full', 'accepted', got 'delayed'"),
        ({"levels": 1}, "levels must be between 2 and 10001, got 1"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        College(**parameters)
