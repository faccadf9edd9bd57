"""Every environment has a task, its measures work there, and errors name what is missing."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs import TABLE, make_rules
from fair_envs.core.interactions import FairSpec, record
from fair_envs.evaluation import LanesWorld, RandomPolicy, Transition, begun, rollout, scripted
from fair_envs.metrics.long_term import ShareDistance
from fair_envs.metrics.measures import Measure
from fair_envs.metrics.rates import RETURN, SELECTION, TRUE_POSITIVE, Rate, RateMeasure
from fair_envs.tasks import (
    TASKS,
    MeasureFor,
    Task,
    add_task,
    default_task,
    environment_id,
    rules_for,
    task_of,
)
from fair_envs.wrappers import FairnessObjectives, FairnessPenalty, RecordFairness
from fair_envs.wrappers.adapters.bound import transforms
from tests.helpers import uncompiled

LANES = 3
NAMES = ("short", "long", "rate")
SHORT: dict[str, dict[str, Any]] = {
    "FairHarvest-v0": {"horizon": 40},
    "FairPursuit-v0": {"horizon": 20},
    "FairTraffic-v0": {"horizon": 60},
}
"""Parameters with which episodes are short enough to see some of them end."""

WHO = ("man", "woman")
EACH_TASK = pytest.mark.parametrize("env_id", TASKS)


def played(env_id: str, *, steps: int = 120) -> Iterator[tuple[Any, Transition]]:
    """Yield the rules and the steps of random episodes in the world of a task."""
    rules: Any = TASKS[env_id].rules(**SHORT.get(env_id, {}))
    world = LanesWorld(begun(rules, np.arange(LANES, dtype=np.uint64)))
    for _, step in zip(range(steps), rollout(world, RandomPolicy(rules), episodes=10_000), strict=False):
        yield rules, step


def taken(measure: Measure, step: Transition) -> Any:
    """Add a step to a measure, clear lanes whose episode ended, and return the value after the step."""
    value = measure.update(step.columns, step.reward, ended=step.ended)
    measure.restart(step.ended)
    return value


# All tasks -----------------------------------------------------------------------------------------------------------


def test_every_environment_has_a_task() -> None:
    assert TASKS.keys() >= TABLE.keys()


@EACH_TASK
def test_every_measure_and_scripted_policy_of_a_task_exists(env_id: str) -> None:
    task = TASKS[env_id]
    task.check()
    assert task.summary and task.scripted
    rules: Any = task.rules()
    for name, value in task.parameters.items():
        assert getattr(rules.params, name) == value
    assert [scripted(rules, name) for name in task.scripted]


@EACH_TASK
def test_the_measures_of_a_task_become_defined_and_stay_in_their_bounds(env_id: str) -> None:
    task, measures, last = TASKS[env_id], {}, {}  # type: Task, dict[str, Measure], dict[str, Any]
    for rules, step in played(env_id):
        measures = measures or {name: task.measure(name, rules, LANES) for name in NAMES}
        for name, measure in measures.items():
            value = taken(measure, step)
            assert value.shape == (LANES,)
            last[name] = np.where(np.isnan(value), last.get(name, np.nan), value)
    for name, value in last.items():
        assert not np.isnan(value).any(), name
        assert (measures[name].least <= value).all() and (value <= measures[name].worst).all(), name


@EACH_TASK
@pytest.mark.parametrize("name", NAMES)
def test_the_measures_of_a_task_can_be_copied_stored_and_restored(env_id: str, name: str) -> None:
    steps = list(played(env_id, steps=50))
    rules, task = steps[0][0], TASKS[env_id]
    measure, other = (task.factory(name, rules)(LANES) for _ in range(2))
    for _, step in steps[:25]:
        taken(measure, step)
    for _, step in steps[:7]:
        taken(other, step)
    other.restore(measure.snapshot())
    copies = copy.deepcopy(measure), pickle.loads(pickle.dumps(measure)), other
    expected = [taken(measure, step).tolist() for _, step in steps[25:]]
    for one in copies:
        assert np.array_equal([taken(one, step) for _, step in steps[25:]], expected, equal_nan=True)


@EACH_TASK
@pytest.mark.parametrize("blanked", [True, False], ids=["nothing reported", "a decision reported"])
def test_a_lane_that_pauses_has_the_values_of_one_that_does_not(env_id: str, blanked: bool) -> None:
    """The other lanes go on: a measure must not notice steps without a decision, whatever else they report."""
    task, paused = TASKS[env_id], []
    measures: dict[str, tuple[Measure, Measure]] = {}
    for count, (rules, step) in enumerate(played(env_id, steps=40), 1):
        names = [name for name in NAMES if name != "long" or env_id != "FairPursuit-v0"]  # one value for all lanes
        measures = measures or {name: (task.measure(name, rules, 2), task.measure(name, rules, 1)) for name in names}
        own = {key: column[:1] for key, column in step.columns.items()}
        for name, (both, alone) in measures.items():
            if count % 3:  # the second lane, which repeats the first one, plays
                joined = {key: np.concatenate([column, column]) for key, column in own.items()}
                arguments = np.repeat(step.reward[:1], 2, axis=0), np.repeat(step.ended[:1], 2)
                value = both.update(joined, arguments[0], ended=arguments[1])
                expected = alone.update(own, step.reward[:1], ended=step.ended[:1])
                assert value[1] == pytest.approx(expected[0], nan_ok=True), name
            else:
                idle = {
                    key: np.concatenate([column, blank(column) if blanked or key == "fair_decided" else column])
                    for key, column in own.items()
                }
                before = both.value[1]
                reward = np.concatenate([step.reward[:1], np.zeros_like(step.reward[:1])])
                value = both.update(idle, reward, ended=np.array([step.ended[0], False]))
                assert value[1] == pytest.approx(before, nan_ok=True), name
                paused.append(name)
    assert paused


def blank(column: Any) -> Any:
    """Return what a lane without a decision reports in a column."""
    return np.zeros_like(column) if column.dtype.kind == "f" or column.dtype == np.int8 else np.full_like(column, -1)


# Single tasks --------------------------------------------------------------------------------------------------------


def test_the_share_distance_compares_those_selected_with_those_qualified() -> None:
    measure = ShareDistance(2, groups=3)
    for group, action, label in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1), (2, 1, 1)):
        info = {"fair_group": np.array([group, 0]), "fair_action": np.array([action, 0])}
        value = measure.update({**info, "fair_feedback": np.array([label, 1])})
    # selected 1/3, 1/3, 1/3; qualified 1/3, 1/3, 1/3
    assert value.tolist() == pytest.approx([0.0, np.nan], nan_ok=True)
    info = {"fair_group": np.array([0, 0]), "fair_action": np.array([1, 1]), "fair_feedback": np.array([0, 1])}
    assert measure.update(info).tolist() == pytest.approx([1 / 6, 0.0])  # selected 1/2, 1/4, 1/4
    measure.restart(np.array([True, False]))
    assert measure.counts.sum(axis=(1, 2)).tolist() == [0, 7]


def test_the_rate_of_a_task_has_the_benefits_and_demands_of_groups() -> None:
    task = task_of("FairLending-v0")
    measure = task.rate_measure(task.rules(), 2, window=10, keeps=True)
    assert measure.rate is TRUE_POSITIVE and measure.keeps and measure.group_names == ("advantaged", "disadvantaged")
    assert measure.totals.shape == (2, 2, 2)


def test_the_short_term_measure_of_hiring_is_undefined_until_two_groups_have_ten_decisions() -> None:
    task = task_of("FairHiring-v0")
    measure = task.measure("short", task.rules(), 1)
    for number in range(20):
        step = {"fair_group": np.array([number % 2]), "fair_action": np.array([number % 2])}
        value = measure.update({**step, "fair_sensitive": np.zeros((1, 2), int)})
        assert np.isnan(value[0]) == (number < 19)
    assert value.tolist() == [1.0] and measure.name == "demographic_parity"


def test_given_parameters_override_those_of_the_task() -> None:
    rules: Any = task_of("FairLending-v0").rules(horizon=7)
    assert (rules.params.horizon, rules.params.feedback) == (7, "full")


def test_a_task_measures_any_notion_by_its_name() -> None:
    task = Task(env_id="FairHiring-v0", groups="gender")
    measure = task.measure("SP", task.rules(), 2)
    assert isinstance(measure, RateMeasure) and measure.group_names == WHO
    assert task.measure("long", task.rules(), 1).name == "gap of selection rate"  # of the rate, if none is given


OUTCOMES = Rate(
    name="outcomes above 0",
    benefit="people with an outcome above 0",
    demand="people decided on",
    parts=lambda step: (step.outcome > 0, step.action >= 0),
    columns=("action", "outcome"),
)


def test_a_rate_is_a_measure_wherever_a_name_is_one() -> None:
    task = Task(env_id="FairHiring-v0", short=OUTCOMES, groups="gender")
    for measure in (task.measure("short", task.rules(), 2), task.measure(OUTCOMES, task.rules(), 2)):
        assert isinstance(measure, RateMeasure) and measure.rate is OUTCOMES and measure.group_names == WHO
    envs = gym.make_vec("FairHiring-v0", num_envs=2, horizon=9)
    for env in (
        FairnessPenalty(gym.make("FairHiring-v0", horizon=9), measure=OUTCOMES),
        FairnessObjectives(envs, measures=[OUTCOMES, "short"]),
        RecordFairness(gym.make("FairHiring-v0", horizon=9), measures=OUTCOMES, groups="gender"),
    ):
        (transform,) = [bound.transform for bound in transforms(env)]
        assert measures_of(transform)[0].name == "gap of outcomes above 0"


def measures_of(transform: Any) -> Any:
    return (transform.source if hasattr(transform, "source") else transform._followed).measures


@pytest.mark.parametrize("name", NAMES)
def test_wrappers_measure_what_the_task_measures(name: Any) -> None:
    env: Any = FairnessPenalty(gym.make("FairHiring-v0", horizon=9), measure=name)
    (followed,) = measures_of(next(iter(transforms(env))).transform)
    task = task_of("FairHiring-v0")
    assert followed.name == task.measure(name, task.rules(), 1).name


def test_wrappers_measure_the_task_of_a_users_environment() -> None:
    own = Task(env_id="TestDesk-v0", short="equal_opportunity", rate="equal_opportunity")
    TASKS["TestDesk-v0"] = own
    try:
        env: Any = FairnessPenalty(gym.make("TestDesk-v0", labels=True), measure="short")
        assert measures_of(next(iter(transforms(env))).transform)[0].name == "equal_opportunity"
        vector: Any = FairnessObjectives(gym.make_vec("TestDesk-v0", num_envs=2, labels=True), measures="short")
        assert measures_of(next(iter(transforms(vector))).transform)[0].name == "equal_opportunity"
    finally:
        del TASKS["TestDesk-v0"]


def test_given_groups_replace_those_of_the_task() -> None:
    env: Any = FairnessPenalty(gym.make("FairHiring-v0", horizon=9), measure="rate", groups="gender")
    assert measures_of(next(iter(transforms(env))).transform)[0].group_names == WHO


def test_a_factory_can_be_pickled_and_given_to_a_wrapper() -> None:
    task = task_of("FairHiring-v0")
    factory: MeasureFor = pickle.loads(pickle.dumps(task.factory("long", task.rules())))
    assert isinstance(factory(4), ShareDistance)
    env: Any = FairnessPenalty(gym.make("FairHiring-v0", horizon=9), measure=factory)
    env.reset(seed=0)
    assert env.step(1)[-1]["fair_penalty_cost"].shape == (1,)
    with pytest.raises(ValueError, match="measure must be one of"):
        task.factory("shrt", task.rules())


# Other environments --------------------------------------------------------------------------------------------------


class Desk(gym.Env[Any, Any]):
    """Decides on people by a coin; it reports their gender, and their label if asked."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, labels: bool = False, actions: int = 2, amounts: bool = False) -> None:
        self.fair_spec = FairSpec(
            individuals=1,
            actions=actions,
            features=(),
            sensitive={"gender": WHO},
            groups=WHO,
            feedback="full" if labels else "none",
            amounts=amounts,
        )

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), record(self.fair_spec)

    def step(self, action: Any) -> Any:
        gender = int(self.np_random.integers(2))
        info = record(self.fair_spec, individual=0, sensitive=[gender], group=gender, action=int(action), feedback=1)
        return np.zeros(1, np.float32), 1.0, False, False, info


gym.register("TestDesk-v0", entry_point="tests.test_tasks:Desk")


@pytest.mark.parametrize(
    ("parameters", "notion"),
    [
        ({}, "demographic_parity"),
        ({"labels": True}, "equal_opportunity"),
        ({"actions": 3}, "outcome_parity"),
        ({"actions": 3, "amounts": True}, "outcome_parity"),
        ({"actions": 3, "amounts": True, "labels": True}, "needs_met"),
    ],
)
def test_a_task_is_derived_from_the_record_of_a_users_environment(parameters: dict[str, Any], notion: str) -> None:
    task = default_task("TestDesk-v0", rules_for("TestDesk-v0", **parameters))
    assert (task.short, task.rate) == (notion, notion)
    task.check(rules_for("TestDesk-v0", **parameters))


@uncompiled
def test_agents_are_compared_by_their_returns_unless_a_task_says_otherwise() -> None:
    import tests.toys as toys

    task = default_task("FairCountdown-v0", toys.Countdown())
    assert task.rate_of(toys.Countdown()) is RETURN


def test_a_task_with_an_unknown_policy_is_not_added() -> None:
    with pytest.raises(ValueError, match=r"scripted must be among always, .*, got 'corect'; did you mean 'correct'"):
        add_task(Task(env_id="FairHiring-v0", scripted=("corect",)))
    with pytest.raises(ValueError, match="scripted must be among functions 'module:function', got 'nonsense'"):
        add_task(Task(env_id="TestDesk-v0", scripted=("nonsense",)))
    assert "TestDesk-v0" not in TASKS and TASKS["FairHiring-v0"].summary


def toss(observation: Any, uniforms: Any) -> Any:
    """Decide by a coin."""
    return np.asarray(uniforms) < 0.5


def test_functions_of_a_module_can_be_policies_of_a_task() -> None:
    Task(env_id="TestDesk-v0", scripted=("tests.test_tasks:toss",)).check()
    for path in ("tests.test_tasks:absent", "no_such_module:toss"):
        with pytest.raises(ValueError, match="scripted must be among functions that can be imported, got"):
            Task(env_id="TestDesk-v0", scripted=(path,)).check()
    with pytest.raises(ValueError, match="scripted must be among functions, got"):
        Task(env_id="TestDesk-v0", scripted=("tests.test_tasks:WHO",)).check()


def test_an_own_task_replaces_the_derived_one() -> None:
    assert task_of("TestDesk-v0").rate == "demographic_parity"
    own = Task(env_id="TestDesk-v0", rate=SELECTION, summary="Both genders get the same.", scripted=())
    try:
        assert add_task(own) is own is task_of("TestDesk-v0") is task_of("tests.test_tasks:TestDesk-v0")
    finally:
        del TASKS["TestDesk-v0"]


# Errors --------------------------------------------------------------------------------------------------------------


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(ValueError, match=r"id must be one of .* got 'FairHirin-v0'; did you mean 'FairHiring-v0'"):
        task_of("FairHirin-v0")
    with pytest.raises(ImportError):
        environment_id("no_such_module:Id-v0")


def test_a_users_environment_without_a_record_has_no_task() -> None:
    with pytest.raises(ValueError, match="env must have a FairSpec as fair_spec"):
        task_of("CartPole-v1")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"short": "fooo"}, "short must be one of demographic_parity, .*, got 'fooo'"),
        ({"long": "fooo"}, "long must be one of demographic_parity, .*, got 'fooo'"),
        ({"rate": "treatment_equality"}, "rate must be one of demographic_parity, .*, got 'treatment_equality'"),
        ({"performance": "profit"}, "performance must be"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"scripted": "greedy"}, "scripted must be a list of names, got 'greedy'"),
        ({"scripted": [3]}, "scripted must be a list of names, got 3 among them"),
        ({"long": 3}, "long must be the name of a notion, a Rate, or a function that returns a measure, got 3"),
        ({"rate": 3}, "rate must be the name of a notion, a Rate, or a function that returns a rate, got 3"),
        ({"massager": 3}, "massager must be a function"),
        ({"parameters": 3}, "parameters must be a dictionary, got 3"),
    ],
)
def test_a_bad_field_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Task(env_id="FairHiring-v0", **settings)


@pytest.mark.parametrize(
    ("env_id", "parameters", "settings", "message"),
    [
        (
            "FairHiring-v0",
            {"feedback": "none"},
            {"rate": "EO"},
            "equal_opportunity .* needs labels",
        ),
        (
            "FairHiring-v0",
            {},
            {"rate": RETURN},
            "needs agents who earn rewards; .* one decision-maker",
        ),
        ("FairHiring-v0", {}, {"short": "shrot"}, "short must be one of"),
        ("FairHiring-v0", {}, {"rate": lambda rules: 1}, "rate must be a function that returns a Rate, got one that"),
        (
            "FairTraffic-v0",
            {},
            {"long": "conditional_parity", "groups": "human_driven"},
            "groups must be None for cond",
        ),
        ("FairHiring-v0", {}, {"scripted": ("corect",)}, "scripted must be among .* did you mean 'correct'"),
        (
            "FairHarvest-v0",
            {},
            {"short": "EO"},
            "needs two kinds of decisions, 0 and 1; .* has 8 kinds",
        ),
    ],
)
def test_what_an_environment_lacks_for_a_task_is_named(
    env_id: str, parameters: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Task(env_id=env_id, **settings).check(make_rules(env_id, **parameters))


def test_a_folder_around_a_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_clinic" / "some_clinic").mkdir(parents=True)
    (tmp_path / "some_clinic" / "some_clinic" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="some_clinic was imported, which is no package: run the command in this fol"):
        environment_id("some_clinic:SomeClinic-v0")
