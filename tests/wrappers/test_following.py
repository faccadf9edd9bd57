"""Wrappers that follow measures: worked examples, what an undefined value counts as, memory, and errors."""

import copy
import functools
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from fair_envs import TABLE
from fair_envs.core import Lanes
from fair_envs.core.interactions import columns
from fair_envs.envs.harvest import Env as Harvest
from fair_envs.envs.harvest import Vector as Harvests
from fair_envs.metrics.followed import NotionMeasure, ReturnGap, TeamMeasure, measure_named
from fair_envs.metrics.history import SlidingWindow
from fair_envs.metrics.measures import FunctionMeasure, Measure
from fair_envs.metrics.rates import SELECTION, RateMeasure
from fair_envs.tasks import TASKS
from fair_envs.wrappers import (
    DelayedFeedback,
    FairEfficiency,
    FairnessObjectives,
    FairnessPenalty,
    FenReward,
    GapPenalty,
    Objectives,
    RecordFairness,
    ReportActionProbs,
    VectorReward,
)
from tests.ferry import BOARD, REFUSE, Env, Ferry, Parallel, Vector
from tests.helpers import LITTLE, uncompiled
from tests.wrappers.test_transforms import bound, harvest, played

SEED, LANES = 11, 3
SPEC = Ferry().spec


class Script(Measure):
    """A measure with given values, one for each step of the episode."""

    name = "script"

    def __init__(self, lanes: int, values: Any = (), keeps: bool = False) -> None:
        super().__init__(lanes)
        self.keeps, self._values, self._at = keeps, values, np.zeros(lanes, np.int64)

    def measured(self, info: Any) -> Any:
        value = np.array([self._values[k % len(self._values)] for k in self._at], float)
        self._at[self.decided] += 1
        return np.where(self.decided, value, self.value)

    def forget(self, mask: Any) -> None:
        if not self.keeps:
            self._at[mask] = 0


def script(*values: float, keeps: bool = False) -> Any:
    return functools.partial(Script, values=values, keeps=keeps)


NAN = float("nan")


def rewards(env: Any, *, steps: int, seed: int = 4) -> list[float]:
    """Return the rewards of refusing everybody, which earns nothing."""
    env.reset(seed=seed)
    found = []
    for _ in range(steps):
        _, reward, terminated, truncated, _ = env.step(REFUSE)
        found.append(reward)
        if terminated or truncated:
            env.reset()
    return found


# Penalties -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("charge", "undefined", "costs"),
    [
        ("change", "last", [0.0, 0.4, 0.2, 0.0, -0.5]),
        ("value", "last", [0.0, 0.4, 0.6, 0.6, 0.1]),
        ("change", "fair", [0.0, 0.4, 0.2, -0.6, 0.1]),
        ("value", "fair", [0.0, 0.4, 0.6, 0.0, 0.1]),
    ],
)
def test_a_penalty_charges_the_change_or_the_value_of_a_measure(
    charge: Any, undefined: Any, costs: list[float]
) -> None:
    measure = script(NAN, 0.4, 0.6, NAN, 0.1)
    env = FairnessPenalty(Env(seats=9), measure=measure, charge=charge, alpha=2.0, undefined=undefined)
    assert rewards(env, steps=5) == pytest.approx([-2 * cost for cost in costs])


def test_a_penalty_charges_the_change_by_default() -> None:
    assert rewards(FairnessPenalty(Env(seats=9), measure=script(0.5, 0.7)), steps=2) == pytest.approx([-0.5, -0.2])


@pytest.mark.parametrize(("keeps", "again"), [(False, 0.5), (True, -0.2)])
def test_the_changes_of_an_episode_add_up_to_the_final_value(keeps: bool, again: float) -> None:
    env = FairnessPenalty(Env(seats=9, horizon=3), measure=script(0.5, 0.6, 0.7, keeps=keeps))
    found = rewards(env, steps=6)
    assert sum(found[:3]) == pytest.approx(-0.7)
    assert found[3] == pytest.approx(-again)  # a measure that continues has changed from 0.7 to 0.5
    assert sum(found[3:]) == pytest.approx(0.0 if keeps else -0.7)


def test_what_a_penalty_charges_is_reported() -> None:
    env = FairnessPenalty(Env(seats=9), measure=script(NAN, 0.4))
    _, info = env.reset(seed=0)
    assert info["fair_penalty_cost"].tolist() == info["fair_gaps"].tolist() == [0.0]
    reported = [env.step(REFUSE)[-1] for _ in range(2)]
    assert [info["fair_penalty_cost"].tolist() for info in reported] == [[0.0], [0.4]]
    assert [info["fair_gaps_defined"].tolist() for info in reported] == [[0], [1]]


def test_a_history_can_be_charged_for_by_the_change_too() -> None:
    by_value, by_change = (
        FairnessPenalty(Env(seats=9), notions="SP", history=SlidingWindow(5), charge=charge)
        for charge in (None, "change")
    )
    values, changes = (np.cumsum(rewards(env, steps=9)) for env in (by_value, by_change))
    assert np.diff(values, prepend=0) == pytest.approx(changes)


def test_a_penalty_on_returns_costs_what_the_penalty_on_disparity_does() -> None:
    gap = functools.partial(ReturnGap, spec=Harvest.rules(**LITTLE).spec)
    pair = [
        FairnessPenalty(Harvest(**LITTLE), times_group_size=False, alpha=0.5),
        FairnessPenalty(Harvest(**LITTLE), measure=gap, alpha=0.5),
    ]
    for env in pair:
        env.reset(seed=SEED)
    total, actions = 0.0, np.random.default_rng(0).integers(0, 8, (12, 8))
    for action in actions:
        (_, one, _, _, info), (_, other, _, over, told) = (env.step(action) for env in pair)
        assert one == other and info["agent_reward"].tolist() == told["agent_reward"].tolist()
        assert info["fair_penalty_cost"] == told["fair_penalty_cost"][0]
        total += told["fair_penalty_cost"][0]
    assert over and total == pytest.approx(told["fair_gaps"][0])


# Objectives ----------------------------------------------------------------------------------------------------------


def test_objectives_are_the_performance_and_minus_each_measure() -> None:
    env: Any = FairnessObjectives(Env(seats=9), measures=[script(NAN, 0.25), "SP", script(1.0)])
    assert env.bound.transform.objectives == ("performance", "script 1", "demographic_parity", "script 2")
    env.reset(seed=4)
    found = [env.step(BOARD)[1].tolist() for _ in range(2)]
    assert [vector[1] for vector in found] == [0.0, -0.25] and [vector[3] for vector in found] == [-1.0, -1.0]
    assert env.reward_space.high.tolist() == [np.inf, 0.0, 0.0, 0.0]
    assert FairnessObjectives(
        Env(), measures=functools.partial(FunctionMeasure, function=lambda info: [-1.0])
    ).reward_space.high.tolist() == [np.inf, np.inf]


def by_hand(make: Any, actions: NDArray[Any], *, lane: int, size: dict[str, Any]) -> list[float]:
    """Play a lane by itself and return the values of a measure after each decision, the last one if undefined."""
    lanes = Lanes(Ferry(**size), 1)
    lanes.seed(SEED + lane)
    lanes.restart()
    measure, last, found = make(1), 0.0, []
    for action in actions:
        step = lanes.advance(np.array([[action]]))
        ended = step.terminated | step.truncated
        value = float(measure.update(columns(SPEC, step.facts, None), step.reward, ended=ended)[0])
        last = last if np.isnan(value) else value
        found.append(last)
        if ended[0]:
            lanes.restart()
            measure.restart(ended)
            last = last if measure.keeps else 0.0
    return found


MAKERS: dict[str, Any] = {
    "rate": lambda lanes: RateMeasure(lanes, SELECTION, spec=SPEC),
    "rate in a window": lambda lanes: RateMeasure(lanes, SELECTION, spec=SPEC, window=4, keeps=True),
    "notion": lambda lanes: NotionMeasure(lanes, "EO", spec=SPEC, history=SlidingWindow(6)),
    "notion of an episode": lambda lanes: NotionMeasure(lanes, "SP", spec=SPEC, keeps=False),
}


@uncompiled
@pytest.mark.parametrize("mode", AutoresetMode)
def test_measures_follow_lanes_that_restart_while_others_decide(mode: AutoresetMode) -> None:
    size: dict[str, Any] = {"seats": 3, "horizon": 7}
    actions = np.random.default_rng(3).integers(0, 2, (40, LANES))
    expected = [
        [by_hand(make, actions[:, lane], lane=lane, size=size) for make in MAKERS.values()] for lane in range(LANES)
    ]
    env: Any = FairnessObjectives(Vector(LANES, autoreset_mode=mode, **size), measures=list(MAKERS.values()))
    env.reset(seed=SEED)
    log: list[list[list[float]]] = [[] for _ in range(LANES)]
    over = np.zeros(LANES, bool)
    while min(map(len, log)) < 40:
        dead = over & (mode is AutoresetMode.NEXT_STEP)
        taken = [min(len(events), 39) for events in log]
        _, vector, terminated, truncated, _ = env.step(actions[taken, np.arange(LANES)])
        over = terminated | truncated
        for playing in np.flatnonzero(~dead):
            log[playing].append(vector[playing, 1:].tolist())
        assert not vector[dead].any()
        if mode is AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over})
            over = np.zeros(LANES, bool)
    for lane in range(LANES):
        found = np.array(log[lane][:40]).T
        assert -found == pytest.approx(np.array(expected[lane]), abs=1e-6)


@pytest.mark.parametrize("env_id", TABLE)
def test_the_measures_of_a_task_are_objectives_of_every_environment(env_id: str) -> None:
    task = TASKS[env_id]
    rules: Any = task.rules()
    measures = [task.factory(name, rules) for name in ("short", "long", "rate")]
    envs = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point", **task.parameters)
    env: Any = FairnessObjectives(envs, measures=measures)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(3):
        reward = env.step(env.action_space.sample())[1]
        assert reward.shape == (2, 4) and np.isfinite(reward).all()


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasiums_check_passes_with_measures() -> None:
    env = RecordFairness(FairnessPenalty(Env(seats=3), measure="SP"), measures=["SP", "EO"])
    check_env(env, skip_render_check=True)


# Benefits of groups --------------------------------------------------------------------------------------------------


def test_the_benefits_of_groups_are_those_of_the_person_decided_on() -> None:
    env: Any = VectorReward(Env(seats=100), per="group", rate="equal_opportunity")
    assert env.bound.transform.objectives == ("local", "foreign") and env.reward_space.shape == (2,)
    env.reset(seed=4)
    seen = set()
    for action in (BOARD, REFUSE) * 12:
        _, vector, _, _, info = env.step(action)
        person, ticket = int(info["fair_sensitive"][0]), int(info["fair_legitimate"][0])
        expected = [0.0, 0.0]
        expected[person] = float(action == BOARD and ticket)
        assert vector.tolist() == expected
        seen.add((person, ticket, action))
    assert len(seen) == 8


@pytest.mark.parametrize(("aggregate", "expected"), [("sum", [4.0, 1.0]), ("mean", [2.0, 0.5])])
def test_benefits_of_agents_are_added_up_or_divided_by_the_demand(aggregate: Any, expected: list[float]) -> None:
    facts = {"action": np.ones((1, 4), int), "outcome": np.array([[3.0, 1.0, 1.0, 0.0]])}
    rules = harvest().rules
    record = Lanes(rules, 1).blank_step().facts
    record["group"], record["action"], record["outcome"] = [[0, 1, 0, 1]], facts["action"], facts["outcome"]
    objectives = Objectives(per="group", rate="outcome_parity", aggregate=aggregate)
    objectives.bind(harvest())
    assert objectives(played([0, 0, 0, 0])._replace(facts=record)).vector.tolist() == [expected]  # type: ignore[union-attr]


def test_a_vector_of_rates_is_one_of_groups() -> None:
    assert VectorReward(Env(), rate="equal_opportunity").reward_space.shape == (2,)


def test_the_return_of_a_group_can_be_its_rate_in_the_episode() -> None:
    env: Any = VectorReward(Env(seats=100, horizon=12), per="group", rate="equal_opportunity", aggregate="rate")
    for seed in (4, 5):
        env.reset(seed=seed)
        total, parts = np.zeros(2), np.zeros((2, 2))
        for action in (BOARD, BOARD, REFUSE) * 4:
            _, vector, _, _, info = env.step(action)
            total += vector
            person, ticket = int(info["fair_sensitive"][0]), int(info["fair_legitimate"][0])
            parts[person] += float(action == BOARD and ticket), ticket
        defined = parts[:, 1] > 0
        assert total[defined] == pytest.approx(parts[defined, 0] / parts[defined, 1], abs=1e-6)
        assert not total[~defined].any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"per": "agent", "rate": "EO"}, "per must be 'group' with a rate, which is one of groups, got 'agent'"),
        ({"per": "group", "rate": 3}, "rate must be the name of a notion or a Rate, got 3"),
        ({"per": "group", "rate": "treatment_equality"}, "rate must be one of"),
        ({"per": "group", "groups": "dialect"}, "groups needs a rate, got groups='dialect'"),
        ({"aggregate": "rate"}, "aggregate must be 'mean' or 'sum' without a rate, got 'rate'"),
        ({"aggregate": "median"}, "aggregate must be one of 'mean', 'sum', 'rate', got 'median'"),
        ({"per": "group"}, "VectorReward needs agents that earn rewards; .*rate='outcome_parity'"),
    ],
)
def test_what_does_not_fit_the_benefits_of_groups_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VectorReward(Env(), **settings)


# Records -------------------------------------------------------------------------------------------------------------


def test_the_final_and_the_mean_value_of_each_measure_are_recorded() -> None:
    measures = [script(NAN, 0.2, 0.4), script(0.1, 0.3, NAN), script(NAN)]
    env: Any = RecordFairness(Env(seats=9, horizon=3), measures=measures)
    env.reset(seed=4)
    for episode in range(2):
        for step in range(3):
            info = env.step(REFUSE)[-1]
            over = step == 2
            assert info["fair_episode_over"] == over
            assert over or not info["fair_episode_measure_final"].any()
        assert info["fair_episode_measure_final"].tolist() == [0.4, 0.0, 0.0]
        assert info["fair_episode_measure_final_defined"].tolist() == [1, 0, 0]
        assert info["fair_episode_measure_mean"] == pytest.approx([0.3, 0.2, 0.0])
        assert info["fair_episode_measure_mean_defined"].tolist() == [1, 1, 0]
        assert info["fair_episode_length"] == 3 and info["fair_episode_return"].tolist() == [0.0]
        assert not any("dp" in name or "csp" in name for name in info)
        env.reset(seed=episode)
    assert env.bound.transform.measures == ("script 1", "script 2", "script 3")


def test_a_record_of_agents_has_their_returns_and_measures() -> None:
    gap = functools.partial(ReturnGap, spec=Harvest.rules(**LITTLE).spec)
    env: Any = RecordFairness(Harvest(**LITTLE), measures=[gap])
    env.reset(seed=SEED)
    for action in np.random.default_rng(0).integers(0, 8, (12, 8)):
        info = env.step(action)[-1]
    assert info["fair_episode_measure_final"] == pytest.approx([abs(info["fair_episode_dp_difference"])])


def test_a_decision_maker_is_recorded_on_every_interface() -> None:
    for env in (Parallel(seats=2), Vector(2, seats=2)):
        wrapped: Any = RecordFairness(env, measures="SP")
        _, info = wrapped.reset(seed=1)
        told = info["agent_0"] if isinstance(env, Parallel) else info
        assert not np.any(told["fair_episode_over"])
        assert told["fair_episode_measure_mean"].shape[-1] == 1


def test_people_are_recorded_by_their_outcomes_if_no_measure_is_given() -> None:
    ends = []
    for own in (RecordFairness(Env(seats=3)), RecordFairness(Env(seats=3), measures="outcome_parity")):
        own.reset(seed=3)
        over = False
        while not over:
            _, _, terminated, truncated, info = own.step(1)
            over = terminated or truncated
        ends.append(info["fair_episode_measure_final"].tolist())
    assert ends[0] == ends[1] and len(ends[0]) == 1


def test_what_does_not_fit_a_record_is_named() -> None:
    with pytest.raises(ValueError, match="groups needs measures, got groups='half_speed'"):
        RecordFairness(gym.make("FairHarvest-v0"), groups="half_speed")
    with pytest.raises(ValueError, match="sensitive must be left out if no agents earn rewards, got 'dialect'"):
        RecordFairness(Env(), measures="SP", sensitive="dialect")


# Memory --------------------------------------------------------------------------------------------------------------


def wrapped_batch() -> Any:
    made = [functools.partial(NotionMeasure, notion="EO", spec=SPEC, history=SlidingWindow(6))]
    env = FairnessPenalty(Vector(2, seats=3, horizon=7), measure=made[0], alpha=0.5)
    return FairnessObjectives(env, measures=["SP", *made])


@uncompiled
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_goes_on_like_its_original(duplicate: Any) -> None:
    env = wrapped_batch()
    env.reset(seed=3)
    actions = np.random.default_rng(0).integers(0, 2, (30, 2))
    for action in actions[:11]:
        env.step(action)
    twin = duplicate(env)
    expected = [env.step(action)[1].tolist() for action in actions[11:]]
    if duplicate is not copy.copy:
        assert [twin.step(action)[1].tolist() for action in actions[11:]] == expected


@uncompiled
def test_a_restored_transform_goes_on_to_the_bit() -> None:
    env, other = wrapped_batch(), wrapped_batch()
    actions = np.random.default_rng(0).integers(0, 2, (30, 2))
    for one in (env, other):
        one.reset(seed=3)
        for action in actions[:11]:
            one.step(action if one is env else 1 - action)
    for own, theirs in ((env, other), (env.env, other.env)):
        theirs.bound.transform.restore(own.bound.transform.snapshot())
    other.unwrapped.set_state(env.unwrapped.get_state())
    for action in actions[11:]:
        assert env.step(action)[1].tolist() == other.step(action)[1].tolist()


def test_the_histories_of_measures_are_those_of_the_environment() -> None:
    env: Any = FairnessPenalty(Env(), measure=functools.partial(NotionMeasure, notion="SP", spec=SPEC))
    env.reset(seed=0)
    env.step(BOARD)
    assert [len(history) for history in env.unwrapped.histories] == [1]
    with pytest.raises(ValueError, match="env must keep no history of decisions below LateFeedback"):
        DelayedFeedback(env, delay=2)


# Errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"measure": "fairness"}, "measure must be one of"),
        ({"measure": "SP", "notions": "EO"}, "notions must be left out with a measure, got 'EO'"),
        ({"measure": "SP", "history": SlidingWindow(5)}, "history must be left out with measures"),
        ({"measure": "SP", "keep": False}, "keep must be left out with measures, got False"),
        ({"measure": "SP", "times_group_size": False}, "times_group_size must be left out with a history or measure"),
        ({"measure": "SP", "charge": "growth"}, "charge must be"),
        ({"measure": "SP", "undefined": "unfair"}, "undefined must be 'last' or 'fair' for demographic_parity"),
        ({"measure": "treatment_equality_raw"}, "must have a finite largest gap.*; treatment_equality_raw has none"),
        (
            {"measure": Script(1)},
            "measures must be short, long, rate, names of notions, rates, or functions",
        ),
        ({"measure": Script, "groups": "dialect"}, "groups applies to rates and measures given by name"),
        ({"measure": lambda lanes: 0.0}, "measures must be functions that create a Measure of 1 lanes, got 0.0"),
        ({"measure": lambda lanes: Script(2)}, "measures must be functions that create a Measure of 1 lanes"),
        ({"measure": "SP", "alpha": [1.0, 2.0]}, "alpha must be one number or one for each of 1 notions"),
        ({"charge": "value"}, "charge needs a history, such as history=SlidingWindow"),
    ],
)
def test_a_bad_option_of_the_penalty_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairnessPenalty(Env(), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"notions need a history, such as SlidingWindow\(500\), unless measures are given; got notions=None"),
        ({"notions": "SP"}, "notions need a history"),
        ({"measures": []}, r"measures must be at least one, got \[\]"),
        ({"measures": "SP", "notions": "EO"}, "notions must be left out with measures, got 'EO'"),
        ({"measures": "return_parity"}, "needs agents who earn rewards"),
    ],
)
def test_a_bad_option_of_the_objectives_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FairnessObjectives(Env(), **settings)


def test_a_second_penalty_is_refused() -> None:
    with pytest.raises(ValueError, match="env must have no FairnessPenalty yet"):
        FairnessPenalty(FairnessPenalty(Env(), measure="SP"), measure="EO")


def test_an_individual_notion_needs_the_policys_probabilities() -> None:
    env: Any = FairnessPenalty(Env(), measure="individual_fairness")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action_probs must be reported before each step for individual_fairness"):
        env.step(BOARD)
    reporting: Any = FairnessPenalty(ReportActionProbs(Env(), "uniform"), measure="individual_fairness")
    reporting.reset(seed=0)
    assert np.isfinite([reporting.step(BOARD)[1] for _ in range(3)]).all()


def test_groups_choose_who_is_compared_by_a_name() -> None:
    env: Any = FairnessPenalty(gym.make("FairHiring-v0"), measure="SP", groups="gender")
    (measure,) = env.bound.transform.source.measures
    assert isinstance(measure, RateMeasure) and measure.group_names == ("man", "woman")
    assert isinstance(env.bound.transform, GapPenalty)


def test_a_team_is_measured_at_the_ends_of_its_episodes() -> None:
    rules = Harvest.rules(**LITTLE)
    team = functools.partial(TeamMeasure, agents=8)
    env: Any = FairnessObjectives(Harvests(2, **LITTLE), measures=[team])
    env.reset(seed=0)
    for _ in range(13):
        _, vector, _, truncated, info = env.step(np.ones((2, rules.params.agents), int))
        if truncated.all():
            assert info["fair_gaps_defined"].tolist() == [[1], [1]]
    assert vector.shape == (2, 2)


def test_the_measure_by_name_is_that_of_the_metrics() -> None:
    env: Any = FairnessPenalty(Env(), measure="EO")
    known = measure_named("EO", 1, spec=SPEC, of_agents=False)
    assert env.bound.transform.source.measures[0].snapshot()[0].shape == known.snapshot()[0].shape


# The fair-efficient reward -------------------------------------------------------------------------------------------


def test_the_fair_efficient_reward_by_hand() -> None:
    transform = bound(FairEfficiency(largest=4.0, epsilon=0.5))
    shown = transform(played([2, 0, 4, 2]))  # mean 2; utilities 1, 0, 2, 1 of the mean
    assert shown.reward.tolist() == [[0.5 / 0.5, 0.5 / 1.5, 0.5 / 1.5, 0.5 / 0.5]]
    shown = transform(played([0, 4, 0, 0]))  # mean rewards 1, 2, 2, 1: mean 1.5
    expected = [1.5 / 4 / (0.5 + 1 / 3)] * 4
    assert shown.reward[0] == pytest.approx(expected)


def test_the_fair_efficient_reward_is_largest_if_all_earn_the_most() -> None:
    transform = bound(FairEfficiency(largest=3.0))
    assert transform(played([3, 3, 3, 3])).reward[0] == pytest.approx([10.0] * 4)
    assert bound(FairEfficiency(largest=3.0))(played([0, 0, 0, 0])).reward.tolist() == [[0.0] * 4]


def test_the_lowest_reward_is_subtracted_from_negative_rewards() -> None:
    one = bound(FairEfficiency(largest=1.0, least=-1.0))(played([0, -1, 1, -1]))
    other = bound(FairEfficiency(largest=2.0))(played([1, 0, 2, 0]))
    assert one.reward.tolist() == other.reward.tolist()


def test_each_episode_has_utilities_of_its_own() -> None:
    transform = bound(FairEfficiency(largest=4.0))
    first = transform(played([2, 0, 4, 2])).reward
    transform(played([0, 0, 0, 0])._replace(decided=np.array([False]), first=np.array([True])))
    assert transform(played([2, 0, 4, 2])).reward.tolist() == first.tolist()


def test_a_lane_without_a_decision_earns_nothing() -> None:
    transform = bound(FairEfficiency(largest=4.0))
    transform(played([2, 2, 2, 2]))
    pause = played([0, 0, 0, 0])._replace(decided=np.array([False]))
    assert transform(pause).reward.tolist() == [[0.0] * 4]
    assert transform(played([2, 2, 2, 2])).reward[0] == pytest.approx([5.0] * 4)


def test_negative_utilities_are_refused() -> None:
    transform = bound(FairEfficiency(largest=4.0))
    with pytest.raises(ValueError, match="least must be at most the lowest reward of a step, got least=0 and -1"):
        transform(played([2, -1, 4, 2]))
    clipped = bound(FairEfficiency(largest=4.0, clip=True))
    assert clipped(played([2, -1, 4, 2])).reward.tolist() == transform(played([2, 0, 4, 2])).reward.tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"largest": 0.0}, "largest must be above least, 0, got 0"),
        ({"largest": 1.0, "least": 2.0}, "largest must be above least, 2, got 1"),
        ({"largest": 1.0, "epsilon": 0.0}, "epsilon must be"),
        ({"largest": "1"}, "largest must be"),
    ],
)
def test_a_bad_option_of_the_fair_efficient_reward_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FenReward(Harvest(**LITTLE), **settings)


def test_the_fair_efficient_reward_is_one_of_agents() -> None:
    with pytest.raises(ValueError, match="FenReward needs agents that earn rewards; in ferry one decision-maker"):
        FenReward(Env(), largest=1.0)
    with pytest.raises(ValueError, match="env must have no FenReward yet"):
        FenReward(FenReward(Harvest(**LITTLE), largest=5.0), largest=5.0)
