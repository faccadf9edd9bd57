"""The general massager of two decisions about one person, and the prediction of rate measures."""

from typing import Any

import numpy as np
import pytest

from fair_envs import make_rules, make_sb3
from fair_envs.baselines.ppo.massaging import PolicyOutput, RateMassager, massager_maker, without_groups
from fair_envs.core.interactions import FairSpec
from fair_envs.metrics.rates import RATES, RateMeasure
from fair_envs.tasks import task_of

WHO = ("woman", "man")
SPEC = FairSpec(individuals=1, actions=2, features=(), sensitive={"gender": WHO}, groups=WHO, feedback="full")


def decided(group: Any, action: Any, label: Any) -> dict[str, np.ndarray]:
    """Return the record of a step about one person in each lane."""
    columns = {"fair_group": group, "fair_action": action, "fair_feedback": label}
    found = {name: np.array(column, np.int64) for name, column in columns.items()}
    found["fair_sensitive"] = found["fair_group"][:, np.newaxis]
    return found


@pytest.mark.parametrize("groups", [None, "gender"])
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("notion", ["demographic_parity", "equal_opportunity", "predictive_equality"])
def test_a_prediction_is_the_value_after_the_decision(notion: str, window: int | None, groups: Any) -> None:
    rng, lanes = np.random.default_rng(4), 6
    measure = RateMeasure(lanes, RATES[notion], spec=SPEC, window=window, groups=groups)
    for _ in range(12):
        group, action, label = rng.integers(2, size=(3, lanes))
        found = measure.if_taken(group, group[:, np.newaxis], action, qualified=label)
        np.testing.assert_allclose(found, measure.update(decided(group, action, label)), atol=1e-12)


def test_unknown_labels_count_equally() -> None:
    measure = RateMeasure(1, RATES["equal_opportunity"], spec=SPEC)
    for person in ((0, 1, 1), (1, 1, 1), (1, 0, 1)):
        measure.update(decided(*([number] for number in person)))  # rates 1 and 1/2
    one, both = (np.array([1]), np.array([[1]])), [1 / 2, 1 - 2 / 3]
    assert measure.if_taken(*one, [1]).item() == pytest.approx(np.mean(both))


def test_a_rate_of_outcomes_cannot_be_predicted() -> None:
    measure = RateMeasure(1, RATES["outcome_parity"], spec=SPEC)
    assert not measure.predictable
    with pytest.raises(ValueError, match="rate must read only decisions and labels to be predicted, got mean outcome"):
        measure.if_taken(np.array([0]), np.array([[0]]), [1])


# The massager ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["FairHiring-v0", "FairFraud-v0", "FairLending-v0"])
def test_the_groups_that_observations_show_are_those_of_the_record(env_id: str) -> None:
    env: Any = make_sb3(env_id, n_envs=8, rows="lanes", seed=3)
    massager, seen = RateMassager(env), set()
    observation = env.reset()
    for step in range(30):
        group, sensitive = massager.people(observation)
        observation, *_ = env.step(np.full(8, step % 2))
        np.testing.assert_array_equal(group, env.interactions["group"][:, 0])
        np.testing.assert_array_equal(sensitive, env.interactions["sensitive"][:, 0])
        seen |= set(group.tolist())
    assert len(seen) >= min(3, len(env.fair_spec.groups))


def test_uncertain_decisions_are_reversed_if_that_lowers_the_measure() -> None:
    env: Any = make_sb3("FairHiring-v0", n_envs=2, rows="lanes", seed=3)
    massager, observation = RateMassager(env), env.reset()
    (group, _), spec = massager.people(observation), env.fair_spec
    measure = RateMeasure(2, RATES["demographic_parity"], spec=spec)
    other = (group + 1) % len(spec.groups)
    for who, action in ((group, 0), (other, 1)):  # the waiting people's groups are behind
        record = decided(who, np.full(2, action), np.ones(2))
        measure.update(record)
    sure, unsure = np.array([[0.95, 0.05]] * 2), np.array([[0.6, 0.4]] * 2)
    rejected = np.zeros(2, np.int64)
    for probabilities, expected in ((sure, [0, 0]), (unsure, [1, 1])):
        policy = PolicyOutput(probabilities=probabilities)
        assert massager(observation, rejected, policy, measure, threshold=0.3).tolist() == expected
    accepted = massager(observation, 1 - rejected, PolicyOutput(probabilities=unsure), measure, threshold=0.3)
    assert accepted.tolist() == [1, 1]  # already the fairer decision


@pytest.mark.parametrize(
    ("env_id", "why"),
    [
        ("FairHarvest-v0", "has other decisions"),
        ("FairCollege-v0", "has other decisions"),
        ("FairHiring-v0", "does not show gender, nationality in its observations"),
        ("FairLending-v0", ""),  # one entry for each group
    ],
)
def test_it_needs_two_decisions_about_one_person_whose_groups_are_seen(
    env_id: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = make_rules(env_id)
    if env_id == "FairHiring-v0":
        monkeypatch.setattr(type(rules), "observed_features", lambda self, params: ("degree",))
    assert without_groups(rules) == why
    if why:
        with pytest.raises(ValueError, match=f"whose groups it shows, got one that {why}"):
            RateMassager(rules)


def test_a_task_has_the_general_massager_where_it_works() -> None:
    for env_id, massager in (("FairHiring-v0", RateMassager), ("FairTraffic-v0", None), ("FairCollege-v0", None)):
        task = task_of(env_id)
        assert massager_maker(task, task.rules()) is massager
