"""The record of a step becomes `info` columns whose schema never changes."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from fair_envs.core.interactions import (
    PERSONAL,
    FairSpec,
    LaneRecord,
    blank_facts,
    columns,
    facts_dtype,
    record,
)

AGENTS = FairSpec(
    individuals=3,
    actions=2,
    features=("x", "y"),
    sensitive={"slow": ("no", "yes"), "old": ("no", "yes")},
    legitimate={"skill": ("low", "high")},
    groups=("neither", "slow", "old", "both"),
    same_individuals=True,
    late_rows=4,
)
APPLICANT = FairSpec(individuals=1, actions=2, features=("score",), sensitive={"group": ("a", "b")}, groups=("a", "b"))

SCHEMA = {
    "fair_decided": (np.int8, (), 0),
    "fair_individual": (np.int64, (3,), -1),
    "fair_features": (np.float32, (3, 2), 0),
    "fair_sensitive": (np.int64, (3, 2), -1),
    "fair_legitimate": (np.int64, (3, 1), -1),
    "fair_group": (np.int64, (3,), -1),
    "fair_action": (np.int64, (3,), -1),
    "fair_action_probs": (np.float32, (3, 2), 0),
    "fair_feedback": (np.int64, (3,), -1),
    "fair_late_individual": (np.int64, (4,), -1),
    "fair_late_feedback": (np.int64, (4,), -1),
    "fair_late_count": (np.int64, (), 0),
    "fair_late_dropped": (np.int64, (), 0),
    "fair_outcome": (np.float32, (3,), 0),
}


def test_a_blank_record_has_every_key_and_says_missing() -> None:
    info = columns(AGENTS, np.repeat(blank_facts(AGENTS), 2), None)
    assert set(info) == set(SCHEMA)
    for name, (dtype, shape, missing) in SCHEMA.items():
        assert (info[name].dtype, info[name].shape) == (np.dtype(dtype), (2, *shape)), name
        assert (info[name] == missing).all(), name


def test_one_person_at_a_time_has_no_axis_for_people() -> None:
    info = columns(APPLICANT, blank_facts(APPLICANT), None)
    assert APPLICANT.one_person and not AGENTS.one_person
    assert {name: column.shape for name, column in info.items()} == {
        "fair_decided": (1,),
        "fair_individual": (1,),
        "fair_features": (1, 1),
        "fair_sensitive": (1, 1),
        "fair_legitimate": (1, 0),
        "fair_group": (1,),
        "fair_action": (1,),
        "fair_action_probs": (1, 2),
        "fair_feedback": (1,),
        "fair_late_individual": (1, 1),
        "fair_late_feedback": (1, 1),
        "fair_late_count": (1,),
        "fair_late_dropped": (1,),
        "fair_outcome": (1,),
    }


def test_one_agent_alone_keeps_the_axis_for_people() -> None:
    alone = FairSpec(individuals=1, actions=2, features=(), sensitive={}, groups=(), same_individuals=True)
    assert columns(alone, blank_facts(alone), None)["fair_group"].shape == (1, 1)


def test_reported_probabilities_are_passed_on() -> None:
    probs = np.full((1, 3, 2), 0.5, np.float32)
    assert columns(AGENTS, blank_facts(AGENTS), probs)["fair_action_probs"].tolist() == [[[0.5, 0.5]] * 3]


def test_each_individual_gets_its_own_row_and_a_copy_of_what_is_shared() -> None:
    facts = blank_facts(AGENTS)
    facts["individual"], facts["late_count"], facts["decided"] = [[5, 6, 7]], 2, 1
    facts["late_individual"] = [[8, 9, -1, -1]]
    people = LaneRecord(AGENTS).of_people(facts, None)
    assert [int(person["fair_individual"]) for person in people] == [5, 6, 7]
    assert [person["fair_late_individual"].tolist() for person in people] == [[8, 9, -1, -1]] * 3
    assert [int(person["fair_decided"]) for person in people] == [1, 1, 1]
    people[0]["fair_late_individual"][:] = 0
    assert people[1]["fair_late_individual"].tolist() == [8, 9, -1, -1]
    assert {name: (np.dtype(v.dtype), v.shape) for name, v in people[0].items()} == {
        name: (np.dtype(dtype), shape[1:] if shape[:1] == (3,) else shape) for name, (dtype, shape, _) in SCHEMA.items()
    }


def test_each_key_of_a_persons_row_tells_the_fact_of_its_name() -> None:
    facts = blank_facts(AGENTS)
    for k, name in enumerate(facts.dtype.names or ()):
        facts[name] = 10 * k + np.arange(facts[name].size).reshape(facts[name].shape)
    probs = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    whole = columns(AGENTS, facts, probs)
    for person, row in enumerate(LaneRecord(AGENTS).of_people(facts, probs)):
        assert set(row) == set(whole)
        for name, column in whole.items():
            own = column[0][person] if name in PERSONAL else column[0]
            np.testing.assert_array_equal(row[name], own, err_msg=name)


def test_no_row_holds_a_python_scalar_or_a_bool() -> None:
    row = LaneRecord(AGENTS)(blank_facts(AGENTS), None)
    assert all(isinstance(value, (np.ndarray, np.integer)) for value in row.values())


SPECS = [
    AGENTS,
    APPLICANT,
    replace(APPLICANT, features=(), sensitive={"a": ("x", "y"), "b": ("x", "y")}, groups=("p", "q", "r", "s")),
    replace(APPLICANT, legitimate={"age": ("young", "old")}, actions=0, late_rows=3),
    replace(APPLICANT, individuals=2, features=()),
    replace(AGENTS, individuals=1),
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("reported", [False, True])
def test_the_record_of_one_lane_is_that_of_a_batch(spec: FairSpec, reported: bool) -> None:
    rng, facts = np.random.default_rng(0), blank_facts(spec)
    for name in facts.dtype.names or ():
        facts[name] = rng.integers(0, 100, facts[name].shape)
    shape = (1, spec.individuals, spec.actions)
    probs = rng.random(shape).astype(np.float32) if reported else None
    row, whole = LaneRecord(spec)(facts, probs), columns(spec, facts, probs)
    assert list(row) == list(whole)
    for name, column in whole.items():
        own, wanted = row[name], column[0]
        assert (type(own), own.dtype, own.shape) == (type(wanted), wanted.dtype, wanted.shape), name
        np.testing.assert_array_equal(own, wanted, err_msg=name)
    if row["fair_features"].size:
        row["fair_features"].flat[0] = -5.0  # in the record's memory, as in the columns
        assert facts["features"].flat[0] == -5.0
    assert (len(LaneRecord(spec).of_people(facts, probs))) == (1 if spec.one_person else spec.individuals)


def test_the_facts_of_a_lane_are_the_info_without_prefix() -> None:
    assert {"fair_" + name for name in facts_dtype(AGENTS).names or ()} == set(SCHEMA) - {"fair_action_probs"}


def test_static_facts_cannot_be_changed_nor_given_by_position() -> None:
    with pytest.raises(FrozenInstanceError):
        AGENTS.delay = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        FairSpec(3, 2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"favourable_action": 9}, "favourable_action must be between 0 and 1, got 9"),
        ({"amounts": 1}, "amounts must be True or False, got 1"),
        ({"amounts": True, "feedback": "accepted"}, "amounts must be False if feedback is only on one decision"),
        ({"favourable_action": -1}, "favourable_action must be between 0 and 1, got -1"),
        ({"individuals": 0}, "individuals must be at least 1, got 0"),
        ({"individuals": 1.5}, "individuals must be an integer at least 1, got 1.5"),
        ({"actions": -1}, "actions must be at least 0, got -1"),
        ({"delay": -1}, "delay must be at least 0, got -1"),
        ({"late_rows": 0}, "late_rows must be at least 1, got 0"),
        ({"features": "score"}, "features must be a list of names, got 'score'"),
        ({"features": ("score", "x", "score")}, r"features must have different names, got \('score', 'x', 'score'\)"),
        ({"nominal_features": "score"}, "nominal_features must be a list of names, got 'score'"),
        ({"sensitive_features": "s"}, "sensitive_features must be a list of names, got 's'"),
        ({"groups": "ab"}, "groups must be a list of names, got 'ab'"),
        ({"sensitive": {"group": "ab"}}, r"sensitive\['group'\] must be a list of names, got 'ab'"),
        ({"legitimate": {"skill": "lh"}}, r"legitimate\['skill'\] must be a list of names, got 'lh'"),
        ({"feedback": "huh"}, "feedback must be one of 'none', 'full', 'accepted', 'delayed', got 'huh'"),
    ],
)
def test_static_facts_that_cannot_be_are_named(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(APPLICANT, **facts)


def test_a_record_has_the_keys_shapes_and_types_of_an_environments_info() -> None:
    told = record(APPLICANT, individual=3, features=[0.5], sensitive=[1], action=1, action_probs=[0.2, 0.8])
    ours = {name: column[0] for name, column in columns(APPLICANT, blank_facts(APPLICANT), None).items()}
    assert told.keys() == ours.keys()
    assert all(told[name].shape == ours[name].shape and told[name].dtype == ours[name].dtype for name in told)
    assert [int(told[f"fair_{name}"]) for name in ("decided", "individual", "feedback")] == [1, 3, -1]
    np.testing.assert_allclose(told["fair_action_probs"], [0.2, 0.8])


def test_a_record_without_facts_is_that_of_a_reset() -> None:
    told = record(APPLICANT)
    assert told["fair_decided"] == 0
    assert told["fair_individual"] == told["fair_action"] == -1


@pytest.mark.parametrize(
    ("facts", "error", "words"),
    [
        ({"sensitive": 1}, ValueError, r"sensitive must have shape \(1,\), got \(\)"),
        ({"features": [np.nan]}, ValueError, r"features must hold finite numbers, got \[nan\]"),
        ({"action": 1}, ValueError, "features must be given, the spec has .*; got none"),
        ({"action": 0.5}, ValueError, "action must hold int64 values, got float64"),
        ({"gender": 1}, TypeError, "gender must be one of .*sensitive"),
        ({"decided": 1}, TypeError, "decided must be one of"),
    ],
)
def test_a_record_refuses_what_is_no_column(facts: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        record(APPLICANT, **facts)
