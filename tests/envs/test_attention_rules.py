"""Each rule of FairAttention on a lane set by hand, and the known values of the published one."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs  # noqa: F401 - registers the ids
from fair_envs.core import Lanes
from fair_envs.envs.attention.params import RATES
from fair_envs.envs.attention.rules import LARGEST_RATE, Attention, columns_of, counted, decode
from fair_envs.metrics.group import DEFINITIONS
from fair_envs.metrics.history import SlidingWindow
from fair_envs.wrappers import DelayedFeedback, FairnessObjectives
from tests.helpers import uncompiled

A1_UNITS = [0, 0, 1, 2, 3, 4]  # two to the first location, one to each other
A1_INCIDENTS = [7, 6, 3, 5, 1]


def town(**parameters: Any) -> Lanes:
    """Return one town at the start of an episode."""
    lanes = Lanes(Attention(**parameters), 1)
    lanes.seed(0)
    lanes.restart()
    return lanes


def let(lanes: Lanes, *, incidents: list[int], rates: list[float] | None = None) -> None:
    """Let these incidents be those of the coming step, at these rates."""
    lanes.records["incidents"] = incidents
    if rates is not None:
        lanes.records["rates"] = rates


def send(lanes: Lanes, action: Any) -> Any:
    return lanes.advance(np.array(action)[np.newaxis, np.newaxis])


def row(lanes: Lanes) -> dict[str, list[float]]:
    """Return what the last step told, by column."""
    params = lanes.rules.params
    seen = lanes.observe()[0, 0].reshape(params.history, -1, params.locations)
    return {name: seen[-1, k].tolist() for k, name in enumerate(columns_of(params))}


# --------------------------------------------------------------------------------------------- the known values


@pytest.mark.nojit
def test_units_discover_one_incident_each_and_lower_the_rates() -> None:
    lanes = town()
    let(lanes, incidents=A1_INCIDENTS)
    step = send(lanes, A1_UNITS)
    assert step.facts["outcome"][0].tolist() == [2, 1, 1, 1, 1]
    assert step.facts["action"][0].tolist() == [2, 1, 1, 1, 1]
    assert step.facts["feedback"][0].tolist() == A1_INCIDENTS
    np.testing.assert_allclose(lanes.records["rates"][0], [7.8, 5.9, 3.9, 2.9, 1.4])
    assert step.reward.item() == pytest.approx(6 - 0.25 * 16) == 2.0


def test_rates_rise_by_their_own_increase_where_no_unit_is() -> None:
    lanes = town()
    let(lanes, incidents=[4, 5, 2, 3, 0])
    step = send(lanes, [0] * 6)
    assert step.facts["outcome"][0].tolist() == [4, 0, 0, 0, 0]
    np.testing.assert_allclose(lanes.records["rates"][0], [7.4, 6.26, 4.4, 3.6, 1.8])
    assert step.reward.item() == 1.5


def test_rates_do_not_fall_below_zero() -> None:
    lanes = town()
    let(lanes, incidents=[0, 1, 0, 0, 0], rates=[0.25, 0.1, 0, 0, 0])
    step = send(lanes, [0, 0, 0, 1, 1, 1])
    assert step.facts["outcome"][0].tolist() == [0, 1, 0, 0, 0]
    np.testing.assert_allclose(lanes.records["rates"][0], [0, 0, 0.4, 0.6, 0.3], atol=1e-12)
    assert step.reward.item() == 1.0


DECODED = [
    ((0, 0, 0, 0, 0), [2, 1, 1, 1, 1]),
    ((2, 1, 0, -1, -2), [4, 1, 1, 0, 0]),
    ((3, -3, -3, -3, -3), [6, 0, 0, 0, 0]),
    ((1, 1, 0, 0, 0), [2, 2, 1, 1, 0]),
]


@pytest.mark.parametrize(("logits", "units"), DECODED)
def test_logits_are_decoded_one_unit_after_another(logits: tuple[float, ...], units: list[int]) -> None:
    out = np.zeros(5, int)
    decode(np.array(logits, float), 6, np.empty(5), out)
    assert out.tolist() == units
    lanes = town(action="logits")
    step = lanes.advance(np.array(logits, np.float32).reshape(1, 1, 5))
    assert step.facts["action"][0].tolist() == units


@pytest.mark.nojit
def test_logits_are_decoded_alike_with_and_without_compilation() -> None:
    logits = np.random.default_rng(0).normal(size=(200, 5)).round(1).astype(np.float32)
    lanes = Lanes(Attention(action="logits"), 200)
    lanes.seed(0)
    lanes.restart()
    sent = lanes.advance(logits[:, np.newaxis]).facts["action"]
    for own, one in zip(sent, logits, strict=True):
        out = np.zeros(5, int)
        decode(one, 6, np.empty(5), out)
        assert own.tolist() == out.tolist()


def test_the_authors_observation_is_160_zeros_and_then_the_step() -> None:
    lanes = town(observation="authors")
    assert lanes.observe().shape == (1, 1, 160) and not lanes.observe().any()
    let(lanes, incidents=A1_INCIDENTS)
    seen = send(lanes, A1_UNITS).observation[0, 0]
    last = [2, 1, 1, 1, 1, *A1_INCIDENTS, 2, 1, 1, 1, 1, 0.25, 0.1429, 0.25, 0.1667, 0.5]
    np.testing.assert_allclose(seen[-20:], last, atol=5e-5)
    assert not seen[:-20].any()


def test_initial_rates_differ_by_up_to_three_and_a_half_from_their_mean() -> None:
    rates = town().rules.oracle(town().records)["rate"][0]
    assert rates.tolist() == [8, 6, 4, 3, 1.5]
    assert np.abs(rates - rates.mean()).max() == 3.5


# ------------------------------------------------------------------------------------------- what is seen and told


def test_the_observation_shows_counts_against_the_number_of_units() -> None:
    lanes = town()
    assert not lanes.observe().any()
    let(lanes, incidents=A1_INCIDENTS)
    send(lanes, A1_UNITS)
    told = row(lanes)
    assert told["discovered"] == pytest.approx([2 / 8, 1 / 7, 1 / 7, 1 / 7, 1 / 7])
    assert told["occurred"] == pytest.approx([7 / 13, 6 / 12, 3 / 9, 5 / 11, 1 / 7])
    assert told["units"] == pytest.approx([2 / 6, *[1 / 6] * 4])
    assert told["ratio"] == pytest.approx([2 / 8, 1 / 7, 1 / 4, 1 / 6, 1 / 2])
    assert counted(told["occurred"], 6).tolist() == A1_INCIDENTS


@pytest.mark.nojit
def test_the_last_eight_steps_are_seen_the_oldest_first() -> None:
    lanes = town()
    names = lanes.rules.observed_features(lanes.rules.params)
    for time in range(20):
        seen = send(lanes, [time % 5] * 6).observation[0, 0]
    where = [names.index(f"units_{k}_{ago}") for ago in range(8, 0, -1) for k in range(5)]
    shown = seen[where].reshape(8, 5)
    assert shown.argmax(axis=1).tolist() == [time % 5 for time in range(12, 20)]
    assert (shown.sum(axis=1) == 1).all()
    assert len(names) == 160


@uncompiled
def test_the_ratio_covers_the_window() -> None:
    lanes = town(share_penalty=1.0, window=3)
    for incidents in (9, 4, 3, 2):
        let(lanes, incidents=[incidents, 0, 0, 0, 0])
        send(lanes, [0, 0, 1, 1, 1, 1])
    assert row(lanes)["ratio"][0] == pytest.approx(6 / (4 + 3 + 2 + 1))


@uncompiled
def test_what_is_not_discovered_can_stay_unknown() -> None:
    lanes = town(told="discovered")
    let(lanes, incidents=A1_INCIDENTS)
    facts = send(lanes, A1_UNITS).facts
    assert set(row(lanes)) == {"discovered", "units"}
    assert (facts["feedback"] == -1).all() and lanes.rules.spec.feedback == "none"
    assert facts["outcome"][0].tolist() == [2, 1, 1, 1, 1]
    one, other = town(told="discovered"), town(told="discovered")
    let(one, incidents=[9] * 5)
    let(other, incidents=[3] * 5)
    assert np.array_equal(send(one, A1_UNITS).observation, send(other, A1_UNITS).observation)


def test_units_and_incidents_are_amounts_which_group_notions_refuse() -> None:
    env, memory = gym.make("FairAttention-v0"), SlidingWindow(100)
    for name in DEFINITIONS:
        with pytest.raises(
            ValueError, match=f"{name} needs decisions where 1 .* amounts from 0 to 6. Use .*ShareDeviation"
        ):
            FairnessObjectives(env, [name], memory)
    with pytest.raises(ValueError, match="amounts must be False if feedback is only on one decision, got True"):
        DelayedFeedback(env, delay=1, only="accepted")


def test_features_are_what_the_decision_saw_of_each_location() -> None:
    lanes = town()
    assert not send(lanes, A1_UNITS).facts["features"].any()
    told = row(lanes)
    features = send(lanes, A1_UNITS).facts["features"][0]
    for column, name in enumerate(lanes.rules.spec.features):
        assert features[:, column].tolist() == told[name]


def test_noisy_features_hint_at_the_incidents() -> None:
    lanes = Lanes(Attention(noisy_features=True, told="discovered"), 2000)
    lanes.seed(0)
    lanes.restart()
    incidents = lanes.rules.oracle(lanes.records)["feedback"]
    seen = lanes.advance(np.zeros((2000, 1, 6), np.int64)).observation[:, 0].reshape(2000, 8, 4, 5)[:, -1]
    blind, telling = (hint * 6 / (1 - np.abs(hint)) for hint in (seen[:, 2], seen[:, 3]))
    assert blind.mean() == pytest.approx(1, abs=0.03) and blind.var() == pytest.approx(0.8, abs=0.03)
    assert (telling - incidents).mean() == pytest.approx(1, abs=0.03)
    assert (telling - incidents).var() == pytest.approx(0.7, abs=0.03)


def test_the_oracle_knows_the_incidents_of_the_coming_step() -> None:
    lanes = town()
    for _ in range(5):
        known = lanes.rules.oracle(lanes.records)["feedback"]
        assert send(lanes, A1_UNITS).facts["feedback"].tolist() == known.tolist()


def test_incidents_do_not_depend_on_the_action_but_through_the_rates() -> None:
    one, other = town(increase_rates=0.0, decrease_rate=0.0), town(increase_rates=0.0, decrease_rate=0.0)
    for time in range(10):
        same = send(one, [0] * 6).facts["feedback"], send(other, [time % 5] * 6).facts["feedback"]
        assert same[0].tolist() == same[1].tolist()


@uncompiled
def test_what_nobody_needs_to_discover_is_reported() -> None:
    lanes = town(reported_weight=1.0)
    lanes.records["reports"] = [3, 0, 0, 0, 6]
    send(lanes, A1_UNITS)
    assert counted(row(lanes)["reported"], 6).tolist() == [3, 0, 0, 0, 6]


# ----------------------------------------------------------------------------------------------- discovering


def play(lanes: int, incidents: int, **parameters: Any) -> Any:
    """Return the state after a step in which all six units met so many incidents at the first location."""
    batch = Lanes(Attention(**parameters), lanes)
    batch.seed(0)
    batch.restart()
    let(batch, incidents=[incidents, 0, 0, 0, 0])
    batch.advance(np.zeros((lanes, 1, 6), np.int64))
    return batch.records


def test_units_can_miss_incidents() -> None:
    found = play(4000, 1, miss_probability=0.8)["found"][:, 0]
    assert found.mean() == pytest.approx(1 - 0.8**6, abs=0.02)  # six units look at the only incident
    found = play(4000, 100, miss_probability=0.8)["found"][:, 0]
    assert found.max() == 6


def test_units_with_replacement_report_no_false_incidents() -> None:
    assert not play(50, 2, extra_probability=1.0, replacement=True)["false_alarms"].any()
    assert play(50, 2, extra_probability=1.0)["false_alarms"].any()


def test_shown_incidents_can_be_counted_up_to_ten_thousand() -> None:
    incidents = np.arange(10_001)
    assert (counted((incidents / (incidents + 6)).astype(np.float32), 6) == incidents).all()


def test_units_with_replacement_discover_any_number() -> None:
    found = play(4000, 20, miss_probability=0.8, replacement=True)["found"][:, 0]
    assert found.mean() == pytest.approx(20 * (1 - 0.8**6), abs=0.1) and found.max() > 6


def test_free_units_report_false_incidents_that_earn_nothing() -> None:
    records = play(4000, 2, extra_probability=0.25)
    false = records["false_alarms"][:, 0]
    assert (records["found"][:, 0] == 2).all()
    assert false.mean() == pytest.approx(4 * 0.25, abs=0.04) and false.max() == 4
    lanes = town(extra_probability=1.0)
    let(lanes, incidents=[2, 0, 0, 0, 0])
    step = send(lanes, [0] * 6)
    assert counted(row(lanes)["discovered"], 6).tolist() == [6, 0, 0, 0, 0]
    assert step.reward.item() == 2.0 and step.facts["outcome"][0, 0] == 2


def test_free_units_report_after_each_incident_in_ml_fairness_gym() -> None:
    assert play(1, 2, extra_probability=1.0, extras="per_incident")["false_alarms"][0, 0] == 5 + 4
    assert play(1, 0, extra_probability=1.0, extras="per_incident")["false_alarms"][0, 0] == 0


@uncompiled
def test_no_more_reports_are_shown_than_the_space_has_room_for() -> None:
    lanes = town(miss_probability=1.0, extra_probability=1.0, extras="per_incident", observation="authors")
    let(lanes, incidents=[6_000, 0, 0, 0, 0])
    step = send(lanes, [0] * 6)
    assert lanes.records["false_alarms"][0, 0] == 6 * 6_000
    space = lanes.rules.observation_space(lanes.rules.params)
    assert isinstance(space, gym.spaces.Box) and step.observation.max() == 2**15 - 1 == space.high.max()


def test_a_certain_search_is_the_short_way() -> None:
    for incidents in (0, 3, 9):
        short, long = play(50, incidents), play(50, incidents, extra_probability=1e-12)
        assert short["found"].tolist() == long["found"].tolist()


# --------------------------------------------------------------------------------------------------- rewards


def test_the_reward_weighs_discovered_and_missed_incidents() -> None:
    lanes = town(discovered_reward=2.0, missed_penalty=1.0)
    let(lanes, incidents=A1_INCIDENTS)
    assert send(lanes, A1_UNITS).reward.item() == 2 * 6 - 16


@uncompiled
def test_unequal_shares_of_the_window_can_be_penalised() -> None:
    lanes = town(share_penalty=1.0, share_tolerance=0.1, discovered_reward=0.0, missed_penalty=0.0, window=3)
    rewards = [send(lanes, units).reward.item() for units in (A1_UNITS, [0] * 6, [0, 1, 1, 2, 3, 4])]
    assert rewards == pytest.approx([0.1 - 2 / 15, 0.1 - (8 / 12 - 0.2), 0.1 - 0.3])
    expected = 0.1 - (7 / 18 - 0.2)  # the first step has left the window
    assert send(lanes, [1, 2, 2, 3, 4, 4]).reward.item() == pytest.approx(expected)


@uncompiled
def test_shares_are_not_penalised_within_the_tolerance() -> None:
    lanes = town(share_penalty=5.0, share_tolerance=0.14, discovered_reward=0.0, missed_penalty=0.0, window=3)
    assert send(lanes, A1_UNITS).reward.item() == 0


# ------------------------------------------------------------------------------------------------ parameters


@uncompiled
def test_rates_of_ones_own_say_how_many_locations_there_are() -> None:
    lanes = town(initial_rates=[1.0, 2.0], increase_rates=[9.0, 0.5], decrease_rate=0.25, units=3)
    send(lanes, [0, 0, 0])
    assert lanes.records["rates"][0].tolist() == [0.25, 2.5]
    assert lanes.rules.params.locations == 2 and lanes.rules.params.initial_rates == "own"
    assert lanes.rules.spec.groups == ("location 0", "location 1")


@pytest.mark.parametrize("locations", [2, 9])
@uncompiled
def test_any_number_of_locations_fits(locations: int) -> None:
    lanes = town(locations=locations, initial_rates="even", increase_rates="as_decrease", units=3)
    assert (lanes.records["rates"] == 4.5).all()
    send(lanes, [0, 1, 1])
    np.testing.assert_allclose(lanes.records["rates"][0], [4.4, 4.3] + [4.6] * (locations - 2))
    assert lanes.records["incidents"].sum() > 0


def test_incidents_of_any_rate_are_drawn() -> None:
    lanes = town(initial_rates=[0.0, 10.0, 100.0, 1000.0, 10_000.0])
    assert lanes.records["incidents"][0, 0] == 0
    assert np.abs(lanes.records["incidents"] - lanes.records["rates"])[0].max() < 500
    lanes = town(initial_rates=LARGEST_RATE, increase_rates=100.0)
    send(lanes, [0] * 6)
    assert lanes.records["rates"][0, 1:].tolist() == [LARGEST_RATE] * 4


@pytest.mark.parametrize("profile", ["authors", "pocar"])
def test_the_published_codes_have_logits_and_160_numbers(profile: str) -> None:
    rules = Attention(profile=profile)
    assert isinstance(rules.action_space(rules.params), gym.spaces.Box)
    assert rules.observation_space(rules.params).shape == (160,)
    increases = rules.code["increases"][0].tolist()
    assert increases == (list(RATES["increase_rates"]["study"]) if profile == "authors" else [0.1] * 5)


def test_ml_fairness_gym_hides_incidents() -> None:
    rules = Attention(profile="ml-fairness-gym", decrease_rate=0.05)
    assert columns_of(rules.params) == ("discovered", "units", "hint_0", "hint_1")
    assert rules.code["increases"][0].tolist() == [0.05] * 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"locations": 3}, "initial_rates must hold one rate for each of 3 locations, got .8"),
        ({"initial_rates": [1, 2]}, "increase_rates must hold one rate for each of 2 locations"),
        ({"initial_rates": [4.0]}, "initial_rates must be .* or one for each of at least 2 locations, got .4.0"),
        ({"initial_rates": True}, "initial_rates must be .* a number, or one for each .* got True"),
        ({"increase_rates": [True, 2]}, "increase_rates must be .* a number, or one for each .* got .True, 2"),
        ({"initial_rates": ["1", "2"]}, "initial_rates must be .* a number, or one for each .* got .'1'"),
        ({"initial_rates": [1, -2, 3]}, "initial_rates must lie between 0 and 10000, got -2"),
        ({"initial_rates": "own"}, "initial_rates must be a number, or one for each location, to be your own"),
        ({"initial_rates": "high"}, "initial_rates must be one of 'study', 'even', 'own', got 'high'"),
        ({"increase_rates": [[1.0]]}, "increase_rates must be one of 'study', a number, or one for each of"),
        ({"increase_rates": {"a": 1}}, "increase_rates must be one of 'study', a number, or one for each of"),
        ({"increase_rates": float("nan")}, "increase_rates must lie between 0 and 10000, got nan"),
        ({"observation": "authors", "told": "discovered"}, "observation must be 'structured' to show discovered"),
    ],
)
def test_rates_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Attention(**given)


def test_episodes_longer_than_the_horizon_leave_memory_alone() -> None:
    lanes = town(horizon=300)
    for _ in range(1000):
        send(lanes, A1_UNITS)
    assert lanes.records["kept"][0] == 128


# ---------------------------------------------------------------------------------------------- the faces


@uncompiled
@pytest.mark.filterwarnings("ignore:.*recommend .*using? a symmetric", "ignore:.*recommend you to use a symmetric")
@pytest.mark.parametrize(
    "given",
    [{"profile": "authors"}, {"profile": "ml-fairness-gym"}, {"reported_weight": 1.0}],
    ids=str,
)
def test_other_spaces_pass_the_libraries_checks(given: dict[str, Any]) -> None:
    from gymnasium.utils.env_checker import check_env

    env: Any = gym.make("FairAttention-v0", **given).unwrapped
    check_env(env, skip_render_check=True)
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(env, skip_render_check=True)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(30):
        assert env.observation_space.contains(env.step(env.action_space.sample())[0])


def test_logits_outside_the_box_are_refused() -> None:
    env = gym.make("FairAttention-v0", action="logits", logit_limit=2.0).unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must be between -2 and 2, got 2"):
        env.step(np.array([0, 0, 2.5, 0, 0], np.float32))
