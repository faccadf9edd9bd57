"""Transforms alone, on arrays: worked examples without an environment's faces."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.core import Lanes
from fair_envs.core.interactions import FairSpec
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.metrics.disparity import strata_of
from fair_envs.support.aliases import Ints
from fair_envs.wrappers import (
    Batch,
    DisparityTracker,
    HiddenAttribute,
    HideSensitive,
    Objectives,
    Penalty,
    Recorder,
    Setting,
    SocialUtility,
    SwappedAttribute,
    SwapSensitive,
    Transform,
)
from fair_envs.wrappers.objectives import inequity
from tests.helpers import uncompiled

# Four agents, one of each group in each stratum.
GROUP, STRATUM = np.array([[0, 1, 0, 1]]), np.array([[0, 0, 1, 1]])


def harvest(*, agents: int = 4, **parameters: Any) -> Setting:
    rules = Harvest(
        agents=agents, width=7, height=5, red_bushes=4, blue_bushes=4, lifespan=20, horizon=12, **parameters
    )
    lanes = Lanes(rules, 1)
    return Setting(lanes=lanes, observation_space=rules.observation_space(rules.params))


def played(rewards: Sequence[float], *, done: bool = False, **facts: Any) -> Batch:
    columns = {
        "group": GROUP,
        "sensitive": GROUP[..., np.newaxis],
        "legitimate": STRATUM[..., np.newaxis],
        **facts,
    }
    yes, no = np.array([True]), np.array([False])
    return Batch(
        np.zeros((1, 4, 10)), np.array([rewards], float), columns, decided=yes, first=no, done=np.array([done])
    )


def start() -> Batch:
    return played([0, 0, 0, 0])._replace(decided=np.array([False]), first=np.array([True]))


def bound(transform: Transform, setting: Setting | None = None) -> Transform:
    transform.bind(harvest() if setting is None else setting)
    transform(start())
    return transform


# The cost of disparity -----------------------------------------------------------------------------------------------


def costs_of(tracker: DisparityTracker, steps: Sequence[Sequence[float]], group: Ints) -> list[float]:
    return [float(tracker.update(np.array([step], float), group).sum()) for step in steps]


def test_the_shaped_cost_of_oracle_case_23() -> None:
    tracker = DisparityTracker(1)
    costs = costs_of(tracker, [[2, 1], [0, 2], [1, 1]], np.array([[0, 1]]))
    assert costs == [1.0, 0.0, 0.0]
    assert sum(costs) == tracker.gap()[0, 0] == 1.0


def test_the_gap_is_between_means_per_agent_not_between_totals() -> None:
    tracker = DisparityTracker(1)
    assert costs_of(tracker, [[2, 4, 6, 4]], np.array([[0, 0, 0, 1]])) == [0.0]


def test_the_costs_of_an_episode_add_up_to_its_final_gap() -> None:
    chance = np.random.default_rng(0)
    tracker = DisparityTracker(5, strata=2)
    group, stratum = chance.integers(0, 2, (5, 8)), chance.integers(0, 2, (5, 8))
    total = np.zeros((5, 2))
    for _ in range(30):
        total += tracker.update(chance.normal(size=(5, 8)), group, stratum=stratum)
    assert np.allclose(total, tracker.gap(), atol=1e-12)


def test_a_new_episode_begins_at_no_gap_in_its_own_lane_only() -> None:
    tracker = DisparityTracker(2)
    two_lanes = np.array([[0, 1], [0, 1]])
    tracker.update(np.array([[3.0, 0.0], [3.0, 0.0]]), two_lanes)
    cost = tracker.update(np.array([[0.0, 1.0], [0.0, 1.0]]), two_lanes, first=np.array([True, False]))
    assert cost[:, 0].tolist() == [1.0, -1.0]


def test_a_group_is_compared_from_its_first_step_in_the_episode_on() -> None:
    tracker = DisparityTracker(1)
    tracker.update(np.array([[3.0, 0.0]]), np.array([[0, 1]]))
    alone = tracker.update(np.array([[5.0, 5.0]]), np.array([[1, 1]]), first=np.array([True]))
    assert alone.tolist() == [[0.0]]  # of the other group nobody has come in this episode
    assert tracker.returns.tolist() == [[[0.0, 5.0]]]
    together = tracker.update(np.array([[1.0, 0.0]]), np.array([[0, 1]]))
    assert together.tolist() == [[4.0]]


def test_a_group_of_whom_nobody_comes_in_a_step_keeps_its_returns() -> None:
    tracker = DisparityTracker(1)
    assert costs_of(tracker, [[3, 0]], np.array([[0, 1]])) == [3.0]
    assert costs_of(tracker, [[2, 4]], np.array([[1, 1]])) == [-3.0]
    assert tracker.returns.tolist() == [[[3.0, 3.0]]]


def test_a_group_that_has_not_come_yet_is_compared_with_nobody() -> None:
    tracker = DisparityTracker(1, groups=3)
    assert costs_of(tracker, [[-5, -1]], np.array([[0, 1]])) == [4.0]
    assert costs_of(tracker, [[5, 1]], np.array([[1, 2]])) == [5.0]  # -5 and 4 now, and 1


def test_agents_without_a_group_in_a_lane_that_did_not_step_count_nowhere() -> None:
    tracker = DisparityTracker(2)
    nobody, two = [-1, -1], [0, 1]
    cost = tracker.update(np.ones((2, 2)), np.array([nobody, two]), decided=np.array([False, True]))
    assert cost.tolist() == [[0.0], [0.0]]
    assert tracker.returns.tolist() == [[[0.0, 0.0]], [[1.0, 1.0]]]
    tracker.update(np.ones((2, 2)), np.array([two, nobody]), decided=np.array([True, False]))
    assert tracker.returns.tolist() == [[[1.0, 1.0]], [[1.0, 1.0]]]


def test_a_lane_that_did_not_step_costs_nothing_and_stays_as_it_is() -> None:
    tracker = DisparityTracker(2)
    two_lanes = np.array([[0, 1], [0, 1]])
    cost = tracker.update(np.array([[3.0, 0.0], [3.0, 0.0]]), two_lanes, decided=np.array([True, False]))
    assert cost[:, 0].tolist() == [3.0, 0.0]
    assert tracker.gap()[:, 0].tolist() == [3.0, 0.0]


def test_there_is_no_gap_with_one_group() -> None:
    assert costs_of(DisparityTracker(1), [[5, 1]], np.array([[1, 1]])) == [0.0]


def test_with_three_groups_the_largest_gap_counts() -> None:
    tracker = DisparityTracker(1, groups=3)
    assert costs_of(tracker, [[1, 5, 2], [4, 0, 0]], np.array([[0, 1, 2]])) == [4.0, -1.0]


def test_penalty_takes_alpha_times_the_cost_from_everybody() -> None:
    penalty = bound(Penalty(alpha=0.5, times_group_size=False))
    shown = penalty(played([2, 0, 4, 2]))  # group means 3 and 1
    assert shown.added["fair_penalty_cost"].tolist() == [2.0]
    assert shown.reward.tolist() == [[1.0, -1.0, 3.0, 1.0]]


def test_a_step_that_narrows_the_gap_is_rewarded() -> None:
    penalty = bound(Penalty(times_group_size=False))
    penalty(played([2, 0, 2, 0]))
    assert penalty(played([0, 1, 0, 1])).reward.tolist() == [[1.0, 2.0, 1.0, 2.0]]


def test_conditional_penalty_adds_up_the_strata_where_they_would_cancel() -> None:
    rewards = [4, 0, 0, 4]  # group 0 ahead in stratum 0, group 1 in stratum 1
    assert bound(Penalty(notions="dp"))(played(rewards)).added["fair_penalty_cost"].tolist() == [0.0]
    assert bound(Penalty(notions="csp"))(played(rewards)).added["fair_penalty_cost"].tolist() == [8.0]


def test_the_cost_times_the_groups_size_weighs_like_an_agents_own_reward() -> None:
    penalty = bound(Penalty())
    group = np.array([[0, 1, 0, 0]])
    shown = penalty(played([3, 0, 0, 0], group=group))  # agent 0 alone moves the gap from 0 to 1
    assert shown.reward.tolist() == [[0.0, -1.0, -3.0, -3.0]]


def test_the_conditional_penalty_counts_an_agents_group_in_its_own_stratum() -> None:
    stratum = np.array([[0, 0, 0, 1, 1, 1, 1]])
    group = np.array([[0, 1, 1, 0, 0, 0, 1]])  # 1 and 2 agents in stratum 0, 3 and 1 in stratum 1
    batch = played([2, 0, 2, 0, 0, 0, 4], group=group, legitimate=stratum[..., np.newaxis])
    shown = bound(Penalty(notions="csp", alpha=0.1))(batch)
    assert shown.added["fair_penalty_cost"].tolist() == [5.0]  # |2 - 1| and |0 - 4|
    assert shown.reward == pytest.approx(np.array([[2 - 0.5, 0 - 1, 2 - 1, -1.5, -1.5, -1.5, 4 - 0.5]]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": -1.0}, "alpha must be at least 0, got -1.0"),
        ({"alpha": "1"}, "alpha must be a finite number at least 0, got '1'"),
        ({"alpha": float("nan")}, "alpha must be"),
        ({"notions": "eo"}, "must be one of demographic_parity, conditional_parity, got 'eo'"),
    ],
)
def test_a_bad_setting_of_the_penalty_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Penalty(**settings)


# Vector rewards and social rewards -----------------------------------------------------------------------------------


def test_the_vector_reward_has_an_entry_for_each_agent_or_group() -> None:
    batch = played([1, 2, 3, 5])
    for settings, expected in (
        ({"per": "agent"}, [1, 2, 3, 5]),
        ({"per": "group"}, [2, 3.5]),
        ({"per": "group", "aggregate": "sum"}, [4, 7]),
    ):
        shown = bound(Objectives(**settings))(batch)  # type: ignore[arg-type]
        assert shown.vector is not None and shown.vector.tolist() == [expected]
        assert shown.reward.tolist() == [[1, 2, 3, 5]]


def test_a_group_without_members_earns_0_in_the_vector_reward() -> None:
    shown = bound(Objectives(per="group"))(played([1, 2, 3, 5], group=np.zeros((1, 4), np.int64)))
    assert shown.vector is not None and shown.vector.tolist() == [[2.75, 0]]


def test_a_social_reward_without_preferences_is_the_own_reward() -> None:
    assert bound(SocialUtility())(played([1, 2, 3, 5])).reward.tolist() == [[1, 2, 3, 5]]


def test_envy_counts_what_others_have_more_and_guilt_what_they_have_less() -> None:
    envious = bound(SocialUtility(envy=3.0))(played([0, 0, 0, 1]))
    assert envious.reward.tolist() == [[-1, -1, -1, 1]]
    guilty = bound(SocialUtility(guilt=3.0))(played([0, 0, 0, 1]))
    assert guilty.reward.tolist() == [[0, 0, 0, -2]]


def test_the_angle_weighs_the_own_reward_against_the_mean_of_the_others() -> None:
    altruist = bound(SocialUtility(angle=90.0))(played([0, 3, 3, 6]))
    assert np.allclose(altruist.reward, [[4, 3, 3, 2]])
    competitor = bound(SocialUtility(angle=-45.0))(played([0, 3, 3, 6]))
    assert np.allclose(competitor.reward, np.sqrt(0.5) * np.array([[-4, 0, 0, 4]]))


def test_smoothing_compares_traces_that_begin_anew_with_the_episode() -> None:
    social = bound(SocialUtility(envy=3.0, smoothing=0.5))
    social(played([0, 0, 0, 4]))
    assert social(played([0, 0, 0, 0])).reward.tolist() == [[-2, -2, -2, 0]]
    social(start())
    assert social(played([0, 0, 0, 0])).reward.tolist() == [[0, 0, 0, 0]]


def test_inequity_from_sorted_values_is_the_sum_over_pairs() -> None:
    values = np.random.default_rng(1).integers(-3, 4, (20, 7)).astype(float)
    less, more = inequity(values)
    difference = values[:, np.newaxis, :] - values[:, :, np.newaxis]  # (lane, own, other)
    assert np.allclose(less, np.maximum(difference, 0).sum(-1) / 6)
    assert np.allclose(more, np.maximum(-difference, 0).sum(-1) / 6)


@pytest.mark.parametrize(
    "settings", [{"envy": -1.0}, {"guilt": float("inf")}, {"smoothing": 1.0}, {"angle": float("nan")}]
)
def test_a_bad_setting_of_the_social_reward_is_named(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
        SocialUtility(**settings)


def test_a_social_reward_needs_somebody_else() -> None:
    with pytest.raises(ValueError, match="SocialReward needs at least 2 agents, got 1"):
        SocialUtility().bind(harvest(agents=1))


# Strata --------------------------------------------------------------------------------------------------------------


SKILL, PLACE = {"skill": ("none", "some", "much")}, {"place": ("here", "there")}


@pytest.mark.parametrize(
    ("factors", "codes"),
    [
        (SKILL | PLACE, [[[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]]),
        (PLACE | SKILL, [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]]),
    ],
)
def test_strata_are_combinations_of_factors_with_the_first_counting_slowest(
    factors: dict[str, tuple[str, ...]], codes: list[Any]
) -> None:
    spec = FairSpec(individuals=6, actions=2, features=(), sensitive={}, legitimate=factors, groups=())
    stratum, count = strata_of(spec, np.array(codes))
    assert (stratum.tolist(), count) == ([[0, 1, 2, 3, 4, 5]], 6)


# The sensitive attribute ---------------------------------------------------------------------------------------------


def test_only_the_sensitive_feature_is_hidden() -> None:
    seen = np.arange(1.0, 41.0).reshape(1, 4, 10)
    hidden = bound(HiddenAttribute())(played([0, 0, 0, 0])._replace(observation=seen)).observation
    assert np.argwhere(hidden != seen)[:, 2].tolist() == [2, 2, 2, 2]
    assert hidden[..., 2].tolist() == [[0, 0, 0, 0]]


def test_a_hidden_feature_that_cannot_be_0_widens_the_space() -> None:
    setting = harvest()
    preference = HiddenAttribute(features=["preference"])
    preference.bind(setting)
    low = setting.observation_space.low.copy()
    low[4] = 1  # as if 0 were impossible
    narrow = gym.spaces.Box(low, setting.observation_space.high)
    assert preference.space(narrow).low[4] == 0


def test_several_features_are_hidden_or_none() -> None:
    setting, seen = harvest(), np.ones((1, 4, 10))
    for features, hidden in ((["sensitive", "preference"], [2, 4]), ([], [])):
        transform = bound(HiddenAttribute(features=features), setting)
        space = transform.space(setting.observation_space)
        shown = transform(played([0, 0, 0, 0])._replace(observation=seen)).observation[0, 0]
        assert np.flatnonzero(shown == 0).tolist() == hidden
        changed = (space.low != setting.observation_space.low) | (space.high != setting.observation_space.high)
        assert set(np.flatnonzero(changed)) <= set(hidden)


def test_a_swapped_observation_shows_the_chosen_agents_the_other_value() -> None:
    seen = np.zeros((1, 4, 10))
    seen[0, :, 2] = GROUP
    swapped = bound(SwappedAttribute(agents=[0, "agent_3"]))(played([0, 0, 0, 0])._replace(observation=seen))
    assert swapped.observation[0, :, 2].tolist() == [1, 1, 0, 0]


@uncompiled
def test_a_swapped_world_starts_every_episode_with_the_other_value_and_the_same_luck() -> None:
    plain, setting = harvest().lanes, harvest()
    SwappedAttribute(where="world", agents=[1]).bind(setting)
    for lanes in (plain, setting.lanes):
        lanes.seed(3)
    for _ in range(2):
        before, after = plain.restart(), setting.lanes.restart()
        assert before.facts["group"].tolist() == [[0, 0, 1, 1]]
        assert (before.facts["group"] != after.facts["group"]).tolist() == [[False, True, False, False]]
        assert np.argwhere(before.observation != after.observation).tolist() == [[0, 1, 2]]
        assert plain.records["key"] == setting.lanes.records["key"]


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (HiddenAttribute(features=["age"]), "features must be named features of harvest .*, got 'age'"),
        (SwappedAttribute(agents=[4]), "agents must be among 0 to 3 or agent_0 to agent_3, got 4"),
        (SwappedAttribute(agents="agent_1"), "agents must be a list of indices or names, got 'agent_1'"),
        (HiddenAttribute(features="sensitive"), "features must be a list of names, got 'sensitive'"),
        (SwappedAttribute(agents=["agent_9"]), "got 'agent_9'"),
        (Recorder(sensitive="age"), "sensitive must be among half_speed, got 'age'"),
    ],
)
def test_what_the_environment_lacks_is_named(transform: Transform, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        transform.bind(harvest())


def test_features_of_the_observation_have_no_place_in_a_swapped_world() -> None:
    with pytest.raises(ValueError, match="features must be None with where='world'"):
        SwappedAttribute(where="world", features=["x"])
    with pytest.raises(ValueError, match="where must be 'observation' or 'world', got 'info'"):
        SwappedAttribute(where="info")  # type: ignore[arg-type]


# The record ----------------------------------------------------------------------------------------------------------


def test_the_record_tells_the_returns_and_gaps_at_the_end_and_0_before() -> None:
    recorder = bound(Recorder())
    before = recorder(played([4, 1, 0, 0])).added
    assert all(not column.any() for column in before.values())
    after = recorder(played([2, 0, 2, 1], done=True)).added
    assert after["fair_episode_over"].tolist() == [1]
    assert after["fair_episode_length"].tolist() == [2]
    assert after["fair_episode_return"].tolist() == [[6, 1, 2, 1]]
    assert after["fair_episode_dp_difference"].tolist() == [3.0]  # means 4 and 1
    assert after["fair_episode_dp_ratio"].tolist() == [0.6]  # totals 8 and 2
    assert after["fair_episode_csp_difference"].tolist() == [[5.0, 1.0]]
    assert np.allclose(after["fair_episode_csp_ratio"], [[5 / 7, 1 / 3]])
    assert {name: (c.dtype, c.shape) for name, c in before.items()} == {
        name: (c.dtype, c.shape) for name, c in after.items()
    }


def test_the_record_begins_anew_with_the_next_episode() -> None:
    recorder = bound(Recorder())
    recorder(played([4, 1, 0, 0], done=True))
    recorder(start())
    after = recorder(played([1, 0, 0, 0], done=True)).added
    assert after["fair_episode_return"].tolist() == [[1, 0, 0, 0]]
    assert after["fair_episode_length"].tolist() == [1]


def test_an_undefined_gap_is_masked_never_nan() -> None:
    nobody = np.zeros((1, 4, 1), np.int64)
    after = bound(Recorder())(played([4, 1, 0, 0], done=True, sensitive=nobody)).added
    assert after["fair_episode_dp_defined"].tolist() == [0]
    assert after["fair_episode_csp_defined"].tolist() == [[0, 0]]
    assert all(np.isfinite(column).all() for column in after.values())


def test_the_episode_that_ends_in_one_lane_is_told_in_that_lane() -> None:
    rules = harvest().rules
    lanes = Lanes(rules, 3)
    recorder = Recorder()
    recorder.bind(Setting(lanes=lanes, observation_space=harvest().observation_space))
    one = played([1, 0, 0, 0])
    facts = {name: np.repeat(column, 3, axis=0) for name, column in one.facts.items()}
    batch = Batch(
        np.zeros((3, 4, 10)),
        np.array([[1.0, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]]),
        facts,
        decided=np.array([True, True, False]),
        first=np.array([False, False, True]),
        done=np.array([False, True, False]),
    )
    added = recorder(batch).added
    assert added["fair_episode_over"].tolist() == [0, 1, 0]
    assert added["fair_episode_return"][:, 0].tolist() == [0, 2, 0]
    nobody, everybody = np.zeros(3, bool), np.ones(3, bool)
    after = recorder(batch._replace(decided=everybody, first=nobody, done=everybody)).added
    assert after["fair_episode_return"][:, 0].tolist() == [2, 4, 3]  # 3 was shown twice and decided once
    assert after["fair_episode_length"].tolist() == [2, 2, 1]


@pytest.mark.parametrize("wrapper", [HideSensitive, SwapSensitive])
def test_observations_without_the_attribute_are_refused_in_one_sentence(wrapper: Any) -> None:
    with pytest.raises(ValueError, match=r"show the sensitive attribute .* attention do not") as error:
        wrapper(gym.make("FairAttention-v0"))
    assert len(str(error.value)) < 200
    with pytest.raises(ValueError, match=r"\.\.\. \(\d+ features\)\), got 'discovered_0_9'; did you mean"):
        wrapper(gym.make("FairAttention-v0"), features=["discovered_0_9"])
