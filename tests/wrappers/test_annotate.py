"""The record of a user's own environment: whom it is about, where each column comes from, and what is refused."""

import copy
import doctest
import pickle
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from fair_envs.metrics import GroupNotion
from fair_envs.metrics.history import Full, History, SlidingWindow
from fair_envs.testing.checks import check_facts, schema
from fair_envs.wrappers import (
    Annotate,
    DelayedFeedback,
    FairnessObjectives,
    FairnessPenalty,
    ReportActionProbs,
    Scalarise,
    after,
    annotate,
    before,
)
from tests.ferry import Env as Ferry

QUEUE = ((0.9, 0), (0.2, 1), (0.7, 1), (0.4, 0), (0.5, 1))  # each person's score and group


class Desk(gym.Env[Any, Any]):
    """Decides about one person after another; ``info`` is about the waiting one, ``passed_before`` about the last."""

    observation_space: Any = Box(0, 1, (2,), np.float32)
    action_space: Any = Discrete(2)

    def __init__(self, *, in_place: bool = False) -> None:
        self.in_place, self.shown = in_place, np.zeros(2, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0
        return self.show(), self.waiting()

    def show(self) -> Any:
        self.shown[:] = QUEUE[self.place]
        return self.shown if self.in_place else self.shown.copy()

    def waiting(self) -> dict[str, Any]:
        return {"group": "AB"[QUEUE[self.place][1]], "number": 10 + self.place}

    def step(self, action: Any) -> Any:
        able = QUEUE[self.place][0] > 0.5
        done = {"able": able, "wage": 2.5 * able, "person": self.place, "executed": 1}
        self.place += 1
        return self.show(), float(able), False, self.place == len(QUEUE) - 1, self.waiting() | done


class Given(gym.Env[Any, Any]):
    """Shows always the same."""

    def __init__(self, space: Any, seen: Any, *, actions: Any = None, start: Any = None, told: Any = None) -> None:
        self.observation_space, self.action_space = space, actions or Discrete(2)
        self.seen, self.start, self.told = seen, start or {}, {} if told is None else told

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.seen, self.start

    def step(self, action: Any) -> Any:
        return self.seen, 0.0, False, False, self.told


GROUP: Any = {"group": ("A", "B")}
BOX = Box(0, 9, (3,), np.float64)


def desk(**given: Any) -> Any:
    return Annotate(Desk(), **{"sensitive": GROUP, "label": "able", **given})


def played(env: Any, actions: Any) -> list[dict[str, Any]]:
    env.reset(seed=0)
    return [env.step(action)[-1] for action in actions]


def only(env: Any, action: Any = 1) -> dict[str, Any]:
    (info,) = played(env, [action])
    return info


@pytest.mark.parametrize("source", ["group", 1, -1, lambda observation, action, info: observation[1] > 0.5])
def test_the_record_is_about_the_person_of_the_last_observation(source: Any) -> None:
    infos = played(desk(sources={"group": source}, individual="number", outcome="wage"), [1, 1, 0, 0])
    assert [info["fair_sensitive"].tolist() for info in infos] == [[group] for _, group in QUEUE[:4]]
    assert [int(info["fair_group"]) for info in infos] == [group for _, group in QUEUE[:4]]
    assert np.allclose([info["fair_features"] for info in infos], QUEUE[:4])
    assert [int(info["fair_individual"]) for info in infos] == [10, 11, 12, 13]
    assert [int(info["fair_action"]) for info in infos] == [1, 1, 0, 0]
    assert [int(info["fair_feedback"]) for info in infos] == [1, 0, 1, 0]
    assert [float(info["fair_outcome"]) for info in infos] == [2.5, 0, 2.5, 0]
    assert infos[0]["wage"] == 2.5  # what the environment reports stays


@pytest.mark.parametrize("source", [1, lambda observation, action, info: observation[1]])
def test_observations_that_change_in_place_are_remembered_as_they_were(source: Any) -> None:
    env = Annotate(Desk(in_place=True), sensitive=GROUP, sources={"group": source})
    infos = played(env, [1, 1, 1])
    assert [info["fair_sensitive"].tolist() for info in infos] == [[0], [1], [1]]
    assert np.allclose([info["fair_features"] for info in infos], QUEUE[:3])


def test_a_reset_reports_no_decision_and_people_are_counted_anew() -> None:
    env = desk()
    for _ in range(2):
        info = env.reset()[1]
        assert info["group"] == "A" and info["fair_decided"] == 0 and info["fair_individual"] == -1
        assert [int(env.step(0)[-1]["fair_individual"]) for _ in range(3)] == [0, 1, 2]


def test_after_and_before_choose_the_info() -> None:
    env = desk(individual=after("person"), label=before(lambda observation, action, info: info["number"] == 11))
    assert [int(info["fair_individual"]) for info in played(env, [0, 0])] == [0, 1]
    assert [int(info["fair_feedback"]) for info in played(env, [0, 0])] == [0, 1]


def test_a_function_sees_the_observation_before_the_decision_and_the_action() -> None:
    seen = []

    def outcome(observation: Any, action: Any, info: Any) -> float:
        seen.append((observation.tolist(), action, info["able"]))
        return float(action)

    assert [float(info["fair_outcome"]) for info in played(desk(outcome=outcome), [1, 0])] == [1, 0]
    assert [(np.float32(0.9), 1, True), (np.float32(0.2), 0, False)] == [(o[0], a, able) for o, a, able in seen]


def test_every_record_fits_the_spec_and_fills_a_history() -> None:
    env = desk(legitimate={"band": ("low", "high")}, sources={"band": lambda seen, action, info: seen[0] > 0.5})
    history = History(Full(), env.fair_spec)
    _, info = env.reset()
    for decided in (False, True, True, True, True):
        info = env.step(1)[-1] if decided else info
        check_facts(
            env.fair_spec, {name: np.asarray(info[name])[np.newaxis] for name in schema(env.fair_spec)}, decided=decided
        )
        history.add(info)
    assert len(history) == 4
    assert GroupNotion(name="PP").gap(history).tolist() == [0.0]
    assert GroupNotion(name="CSP").gap(history).tolist() == [0.0]


# ---------------------------------------------------------------------------------------------- kinds of observations


@pytest.mark.parametrize(
    ("space", "seen", "source", "code"),
    [
        (BOX, np.array([0.5, 1.0, 0.0]), 1, 1),
        (BOX, np.array([7.0, 1.0, 0.0]), slice(1, 3), 0),  # one-hot
        (Box(0, 1, (2, 2)), np.array([[0, 0], [0, 1]], np.float32), 3, 1),
        (Discrete(2), 1, 0, 1),
        (Discrete(2, start=5), np.int64(6), 0, 1),
        (MultiDiscrete([4, 2]), np.array([3, 1]), 1, 1),
        (MultiBinary(2), np.array([0, 1], np.int8), slice(None), 1),
        (Dict({"age": Box(0, 99), "group": Discrete(2)}), {"age": np.array([30.0]), "group": 1}, "group", 1),
        (Dict({"age": Box(0, 99), "group": Box(0, 1, (2,))}), {"age": [30.0], "group": [1.0, 0.0]}, "group", 0),
        (Dict({"group": Text(1), "age": Box(0, 99)}), {"group": "B", "age": [30.0]}, "group", 1),
        (Tuple((Box(0, 9), Discrete(2))), (np.array([5.0]), 1), 1, 1),
        (Text(5), "anyone", lambda observation, action, info: observation == "anyone", 1),
    ],
)
def test_codes_are_read_from_observations_of_all_kinds(space: Any, seen: Any, source: Any, code: int) -> None:
    env = Annotate(Given(space, seen), sensitive=GROUP, sources={"group": source})
    assert only(env)["fair_sensitive"].tolist() == [code]


@pytest.mark.parametrize(
    ("value", "code"),
    [("B", 1), (True, 1), (np.True_, 1), (1.0, 1), (np.float32(0), 0), (np.array([1]), 1), (np.str_("B"), 1), (0, 0)],
)
def test_codes_can_be_names_booleans_and_whole_numbers(value: Any, code: int) -> None:
    env = Annotate(Given(BOX, np.zeros(3), start={"group": value}), sensitive=GROUP)
    assert only(env)["fair_sensitive"].tolist() == [code]


@pytest.mark.parametrize(
    "value", [0.5, 2, -1, "C", None, float("nan"), np.array([0, 0]), np.array([1, 1]), np.array([0.5, 0.5]), [1]]
)
def test_other_codes_are_refused_by_source_and_value(value: Any) -> None:
    env = Annotate(Given(BOX, np.zeros(3), start={"group": value}), sensitive=GROUP)
    message = r"sensitive 'group' must be one of 'A', 'B' or a code from 0 to 1, got .* from the info .*, key 'group'"
    with pytest.raises(ValueError, match=message):
        only(env)


def test_features_are_all_numbers_named_ones_or_sources() -> None:
    space = Dict({"age": Box(0, 99), "name": Text(9), "marks": Box(0, 9, (2,)), "group": Discrete(2)})
    seen = {"age": np.array([30.0]), "name": "Ann", "marks": np.array([1.0, 2.0]), "group": 1}
    given = Given(space, seen, start={"rank": 7})
    env = Annotate(given, sensitive=GROUP)
    assert env.fair_spec.features == ("age", "group", "marks 0", "marks 1")  # the order of the space
    assert only(env)["fair_features"].tolist() == [30, 1, 1, 2]
    assert env.fair_spec.sensitive_features == ("group",)
    env = Annotate(given, sensitive=GROUP, features={"years": "age", "mark": slice(2, 4), "rank": "rank"})
    assert env.fair_spec.features == ("years", "mark 0", "mark 1", "rank")
    assert only(env)["fair_features"].tolist() == [30, 1, 2, 7] and env.fair_spec.sensitive_features == ()
    env = desk(features=("score", "group"), sources={"group": 1}, sensitive_features=["score"])
    assert env.fair_spec.sensitive_features == ("group", "score")
    env = desk(features=())
    assert only(env)["fair_features"].shape == (0,) and "features" in env.missing
    assert desk().fair_spec.features == ("observation 0", "observation 1")


def test_several_attributes_make_intersectional_groups() -> None:
    sensitive = {"group": ("A", "B"), "age": ("young", "middle", "old")}
    env = Annotate(Given(BOX, np.array([1, 2, 0.0])), sensitive=sensitive, sources={"group": 0, "age": 1})
    assert env.fair_spec.groups == ("A, young", "A, middle", "A, old", "B, young", "B, middle", "B, old")
    assert int(only(env)["fair_group"]) == 5


# ------------------------------------------------------------------------------------------------ kinds of decisions


@pytest.mark.parametrize(
    ("space", "action", "given", "decided", "count"),
    [
        (Discrete(3), 2, {}, 2, 3),
        (Discrete(3, start=1), np.int64(2), {}, 1, 3),
        (MultiDiscrete([4]), np.array([3]), {}, 3, 4),
        (MultiDiscrete([5, 2]), np.array([4, 1]), {"decision": 1}, 1, 2),
        (MultiBinary(3), np.array([0, 0, 1]), {"decision": slice(0, 3)}, 2, 3),
        (Dict({"grant": Discrete(2), "sum": Box(0, 9)}), {"grant": 1, "sum": [3.0]}, {"decision": "grant"}, 1, 2),
        (Discrete(2), 0, {"decision": "executed", "actions": 2}, 1, 2),
        (Box(0, 1), [0.7], {"decision": lambda seen, action, info: action[0] > 0.5, "actions": 2}, 1, 2),
    ],
)
def test_the_decision_is_the_action_or_a_part_of_it(
    space: Any, action: Any, given: Any, decided: int, count: int
) -> None:
    told = {"executed": 1}
    own = Given(BOX, np.zeros(3), actions=space, told=told)
    env = Annotate(own, sensitive=GROUP, sources={"group": 0}, **given)
    assert int(only(env, action)["fair_action"]) == decided and env.fair_spec.actions == count


def test_labels_of_the_accepted_alone_are_not_read_for_others() -> None:
    told: dict[str, Any] = {}
    env = Annotate(
        Given(BOX, np.zeros(3), told=told), sensitive=GROUP, sources={"group": 0}, label="able", feedback="accepted"
    )
    assert env.fair_spec.only_accepted and int(only(env, 0)["fair_feedback"]) == -1
    with pytest.raises(ValueError, match="label must be in the info of the step under 'able'"):
        only(env, 1)
    told["able"] = None  # not known
    assert int(only(env, 1)["fair_feedback"]) == -1


# -------------------------------------------------------------------------------------------- what could not be found


def test_the_report_shows_sources_what_is_missing_and_what_can_be_measured() -> None:
    env = desk(feedback="accepted", sources={"group": 1})
    report = env.found()
    assert "sensitive 'group' <- observation[1]\n" in report
    assert "label <- the info of the step, key 'able', for people with decision 1\n" in report
    assert "outcome <- missing, no outcome=... was given\n" in report
    assert "can be measured: demographic_parity, overall_accuracy_equality, predictive_parity, consistency" in report
    assert "cannot be measured: equal_opportunity needs feedback on all decisions" in report
    assert env.missing == ("legitimate", "outcome")
    assert "outcome_parity" not in report
    assert "can be measured by the outcome: outcome_parity" in desk(outcome=after("able")).found()
    unlabelled = desk(label=None)
    assert "label" in unlabelled.missing
    assert "cannot be measured: equal_opportunity needs feedback" in unlabelled.found()
    with pytest.raises(ValueError, match="equal_opportunity needs feedback"):
        FairnessObjectives(unlabelled, ["equal_opportunity"], Full())


def test_a_key_that_the_observation_lacks_is_named_at_the_reset() -> None:
    env = Annotate(Given(BOX, np.zeros(3), start={"years": 3}), sensitive=GROUP)
    message = (
        "sensitive 'group' must be in the info that came with the observation under 'group', got the keys 'years'; "
    )
    advice = "say where it comes from with sources={'group': ...}; if the info of the step has it, use after('group')"
    with pytest.raises(ValueError, match=re.escape(message + advice)):
        env.reset()


def test_an_observation_that_does_not_fit_its_space_is_refused() -> None:
    env = Annotate(Given(BOX, np.zeros(4)), sensitive=GROUP, sources={"group": 0})
    with pytest.raises(ValueError, match="observation must have 3 numbers, as its space says, got 4"):
        env.reset()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label": "group"}, r"observation has it: use before\('group'\)"),
        ({"label": "nothing"}, "got the keys 'able'; if it is only known for some people, use feedback='accepted'"),
        ({"individual": after("able"), "outcome": after("text")}, "got the keys 'able'"),
        ({"outcome": before("word")}, "outcome must be a finite number, got 'x' from the info that came with"),
        ({"outcome": before("endless")}, "outcome must be a finite number, got inf"),
        ({"individual": "word"}, "individual must be a whole number of at least 0, got 'x'"),
        ({"individual": "minus"}, "individual must be a whole number of at least 0, got -1"),
        ({"label": lambda seen, action, info: 2}, "label must be a code from 0 to 1, got 2 from the function <lambda>"),
        ({"features": {"f": "word"}}, "feature 'f' must be a finite number, got 'x'"),
    ],
)
def test_what_is_missing_or_odd_in_a_step_is_named(given: Any, message: str) -> None:
    start = {"group": "A", "word": "x", "minus": -1, "endless": np.inf}
    env = Annotate(Given(BOX, np.zeros(3), start=start, told={"able": True}), sensitive=GROUP, **given)
    with pytest.raises(ValueError, match=message):
        only(env)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label": None, "feedback": "accepted"}, "feedback must be left out without a label, got 'accepted'"),
        ({"sensitive": {}}, r"sensitive must map attributes to the names of their values, .*, got \{\}"),
        ({"sensitive": ["group"]}, r"sensitive must map attributes to the names of their values, .*, got \['group'\]"),
        ({"sensitive": {"group": "AB"}}, r"sensitive\['group'\] must be at least two different names, got 'AB'"),
        ({"sensitive": {"group": (1, 2)}}, r"sensitive\['group'\] must be at least two different names, got \(1, 2\)"),
        ({"nominal_features": "score"}, "nominal_features must be a list of names, got 'score'"),
        ({"sensitive": {"group": ("A", "A")}}, r"sensitive\['group'\] must be at least two different names"),
        ({"sensitive": {"group": ("A",)}}, r"sensitive\['group'\] must be at least two different names"),
        ({"sources": {"grop": 1}}, r"sources must be for .* \(group\), got 'grop'; did you mean 'group'\?"),
        ({"sources": {"group": 2}}, "must come from an entry of the observation, which has 2, got the index 2"),
        ({"sources": {"group": slice(5, 9)}}, "must come from entries of the observation, which has 2, got slice"),
        ({"sources": {"group": True}}, "must come from an index or a slice of the observation, .*, got True"),
        (
            {"sensitive": {"group": tuple("ABC")}, "sources": {"group": slice(0, 2)}},
            "or from 3 of which one is 1, got 2",
        ),
        ({"outcome": slice(0, 2)}, r"outcome must come from one entry, got 2 of observation\[0:2\]"),
        ({"features": ("score",)}, "features must be .* name all 2 numbers of the observation"),
        ({"features": "score"}, "features must be .* got 'score'"),
        ({"sensitive_features": "score"}, "sensitive_features must be a list of names, got 'score'"),
        ({"sensitive_features": ["score"]}, "sensitive_features must be among observation 0, observation 1"),
        ({"decision": 1}, "decision must come from an entry of the action, which has 1, got the index 1"),
        ({"decision": "executed"}, "actions, the number of decisions, must be given for decisions from the info of"),
        ({"actions": 3}, r"actions must be 2, as many as action\[0\] has, got 3"),
        ({"feedback": "late"}, "feedback must be one of 'full', 'accepted'"),
        ({"favourable_action": 2}, "favourable_action must be between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused_at_once(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        desk(**given)


def test_what_cannot_be_annotated_is_refused() -> None:
    with pytest.raises(ValueError, match=r"decision must say which part .* if an action has 2 numbers"):
        Annotate(Given(BOX, np.zeros(3), actions=MultiDiscrete([2, 2])), sensitive=GROUP)
    with pytest.raises(ValueError, match="features must be given if an observation has 3072 numbers"):
        Annotate(Given(Box(0, 1, (32, 32, 3)), np.zeros((32, 32, 3))), sensitive=GROUP)
    for known in (desk(), Ferry()):
        with pytest.raises(ValueError, match="env must not report the record yet"):
            Annotate(known, sensitive=GROUP)
    with pytest.raises(TypeError, match=r"env must be one environment, got .*make_vec"):
        Annotate(gym.make_vec("CartPole-v1", num_envs=1), sensitive=GROUP)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"env must be a gymnasium.Env, got 3"):
        Annotate(3, sensitive=GROUP)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="before must get a key of info or a function, got 1"):
        before(1)  # type: ignore[arg-type]
    with pytest.raises(gym.error.ResetNeeded, match="step must follow a reset"):
        desk().step(1)


# ----------------------------------------------------------------------------------------- together with other things


def likely(observation: Any) -> Any:
    return np.full((1, 1, 2), 0.5)


STACKS: dict[str, Callable[[Any], Any]] = {
    "objectives": lambda env: FairnessObjectives(env, ["SP", "EO"], SlidingWindow(9)),
    "penalty": lambda env: FairnessPenalty(env, notions="SP", history=Full(), alpha=0.5),
    "number": lambda env: Scalarise(FairnessObjectives(env, ["SP", "EO"], SlidingWindow(9)), "gini"),
    "late": lambda env: FairnessObjectives(DelayedFeedback(env, delay=2), ["EO"], Full()),
    "individual": lambda env: FairnessObjectives(ReportActionProbs(env, likely), ["IF", "CSC"], Full()),
}


@pytest.mark.parametrize("wrap", STACKS.values(), ids=STACKS.keys())
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_wrappers_take_it_and_copies_continue_alike(wrap: Callable[[Any], Any], duplicate: Any) -> None:
    env = wrap(desk())
    env.reset(seed=1)
    env.step(1)
    own, other = ([one.step(action)[1] for action in (1, 0, 0)] for one in (env, duplicate(env)))
    assert np.array_equal(own, other)


def test_a_penalty_is_the_gap_between_the_groups() -> None:
    env = FairnessPenalty(desk(), notions="SP", history=Full(), alpha=0.5)
    env.reset()
    assert [env.step(action)[1] for action in (1, 0, 0, 1)] == [1, -0.5, 0.5, -0.5]


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*not having a spec")
def test_gymnasiums_check_passes() -> None:
    check_env(desk(), skip_render_check=True)


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    gym.register("tests/Desk-v0", entry_point=lambda **given: Desk(**given), max_episode_steps=3)


def test_the_spec_makes_the_same_environment_again() -> None:
    env = FairnessPenalty(
        Annotate(gym.make("tests/Desk-v0"), sensitive=GROUP, sources={"group": 1}, label="able"),
        notions="SP",
        history=Full(),
    )
    again = gym.make(env.spec)
    assert again.get_wrapper_attr("fair_spec") == env.fair_spec
    for one in (env, again):
        one.reset(seed=0)
    for action in (1, 0, 1):
        (_, reward, _, ended, info), (_, same, _, also, other) = env.step(action), again.step(action)
        assert (reward, ended) == (same, also) and info["fair_group"] == other["fair_group"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_annotate_each_of_their_environments(mode: Any) -> None:
    wrapper: Any = partial(Annotate, sensitive=GROUP, label="able")
    envs: Any = gym.make_vec("tests/Desk-v0", num_envs=2, vectorization_mode=mode, wrappers=[wrapper])
    history = History(Full(), envs.get_attr("fair_spec")[0], lanes=2)
    history.add(envs.reset(seed=0)[1])
    for _ in range(5):  # the episodes end after three steps and restart
        history.add(envs.step(np.array([1, 0]))[-1])
    envs.close()
    assert len(history) == 8


def test_stable_baselines3_steps_it() -> None:
    envs = make_vec_env(lambda: FairnessPenalty(desk(), notions="SP", history=Full(), alpha=1.0), n_envs=2)
    envs.reset()
    assert [envs.step(np.array([1, 0]))[1].tolist() for _ in range(2)] == [[1, 1], [0, 0]]


def test_the_docstrings_example_runs() -> None:
    assert doctest.testmod(annotate).failed == 0
