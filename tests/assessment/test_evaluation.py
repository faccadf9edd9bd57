"""One evaluation for every environment and policy, and what it rejects before anything is played."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.assessment import Evaluation, evaluate
from fair_envs.assessment.result import read
from fair_envs.evaluation import RandomPolicy
from fair_envs.tasks import Task
from fair_envs.wrappers import DelayedFeedback
from tests.assessment.office import Office, coin, correct, to_the_north

LITTLE: dict[str, Any] = {"agents": 6, "horizon": 40}
LOANS: dict[str, Any] = {"horizon": 100}
QUICK: dict[str, Any] = {"shuffles": 10}


@pytest.fixture(scope="module")
def office() -> Iterator[str]:
    """Register the office with Gymnasium alone."""
    gym.register("Office-v0", entry_point="tests.assessment.office:Office")
    yield "Office-v0"
    del gym.registry["Office-v0"]


def values(found: Evaluation, section: str) -> dict[tuple[str, str], float]:
    """Return the numbers of a section by name and owner."""
    return {(row.name, row.of): row.estimate.value for row in found.rows if row.section == section}


# Numbers --------------------------------------------------------------------------------------------------------------


def test_rates_are_pooled_and_gaps_signed(office: str) -> None:
    found = evaluate(office, to_the_north, episodes=4, seed=0, **QUICK)
    # qualified: 2 from the north in even episodes; 1 from the south in even and 1 in odd ones
    assert {name: rate.value for name, rate in found.rates.items()} == {"north": 1, "south": 0}
    assert found.rate == "true positive rate"
    assert found.worst_off == "south"
    assert found.row("gap", of="north - south").estimate.value == 1
    assert found.gap.estimate.value == 1
    parity = "home: north - south"
    notions = values(found, "notion")
    assert notions["demographic_parity", parity] == 1
    assert notions["predictive_equality", parity] == 1  # one unqualified client in each group
    assert notions["overall_accuracy_equality", parity] == pytest.approx(4 / 6 - 2 / 6)
    assert notions["equalized_odds", "home: largest"] == 1
    assert notions["treatment_equality", parity] == -1  # all errors accept the north or reject the south
    assert np.isnan(notions["conditional_use_accuracy_equality", "home: largest"])  # one decision for each group
    assert notions["conditional_parity", "home, age young: north - south"] == 1
    assert values(found, "welfare")["true positive rate", "worst-off group"] == 0


def test_a_pooled_rate_weighs_each_person_and_not_each_episode(office: str) -> None:
    found = evaluate(office, correct, episodes=2, seed=0, **QUICK)
    assert values(found, "notion")["demographic_parity", "home: north - south"] == pytest.approx(2 / 3 - 2 / 3)
    north = evaluate(office, to_the_north, episodes=2, seed=0, **QUICK)
    assert values(north, "notion")["predictive_parity", "home: north - south"] is not None
    assert np.isnan(values(north, "notion")["predictive_parity", "home: north - south"])  # nobody from the south


def test_performance_is_the_reward_per_step_and_each_episode_counts_once(office: str) -> None:
    found = evaluate(office, to_the_north, episodes=2, seed=0, **QUICK)
    # even: 3 of 4 decisions are correct; odd: 0 of 2
    assert found.performance.value == pytest.approx((3 / 4 + 0) / 2)
    assert found.performance.n == 2


def test_the_gap_of_a_coin_is_about_the_noise_floor_and_that_of_a_biased_clerk_is_not() -> None:
    clients = [(int(group), 1, 0) for group in np.random.default_rng(0).integers(2, size=100)]
    fair = evaluate(Office(clients), coin, episodes=10, seed=0)
    assert abs(fair.gap.estimate.value) < fair.gap.limit < 0.12
    assert not fair.gap.beyond_noise
    biased = evaluate(Office(clients), to_the_north, episodes=10, seed=0)
    assert biased.gap.beyond_noise and biased.gap.noise < 0.1
    # averaged over episodes, the absolute gap of the coin is far above 0
    assert fair.row("short-term", of="last value").estimate.value > 1.5 * fair.gap.estimate.value


def test_a_coin_flip_in_hiring_has_a_pooled_gap_of_noise_alone() -> None:
    found = evaluate("FairHiring-v0", "random", episodes=32, twins=False)
    for attribute in ("gender: man - woman", "nationality: Belgian - foreign"):
        row = found.row("notion", "demographic_parity", attribute)
        assert abs(row.estimate.value) < row.limit < 0.04 and row.estimate.low < 0 < row.estimate.high
    each = found.row("short-term", of="last value").estimate  # the mean of absolute gaps of episodes
    assert each.low > 0.1


def test_the_measures_of_shuffled_labels_are_beside_the_measure() -> None:
    clients = [(place % 2, 1, 0) for place in range(60)]
    fair = evaluate(Office(clients), coin, episodes=8, seed=0).row("short-term", of="last value")
    assert fair.noise == pytest.approx(fair.estimate.value, abs=0.06)
    unfair = evaluate(Office(clients), to_the_north, episodes=8, seed=0).row("short-term", of="last value")
    assert unfair.estimate.value == 1 and unfair.beyond_noise


def test_a_task_can_be_given(office: str) -> None:
    task = Task(env_id=office, short="demographic_parity", rate="overall_accuracy_equality", groups="home")
    found = evaluate(office, to_the_north, episodes=2, seed=0, task=task, **QUICK)
    assert found.rate == "accuracy"
    assert {name: rate.value for name, rate in found.rates.items()} == {"north": 2 / 3, "south": 1 / 3}


# Environments ---------------------------------------------------------------------------------------------------------


def test_an_id_rules_and_every_interface_give_the_same_numbers() -> None:
    names: list[Any] = [
        fair_envs.make_rules("FairLending-v0", **LOANS),
        gym.make("FairLending-v0", **LOANS),
        gym.make_vec("FairLending-v0", num_envs=2, **LOANS),
    ]
    first, *others = [evaluate(env, "max-reward", episodes=3, **QUICK).rows for env in names]
    # rows hold NaN, which differs from itself: compare their texts
    assert all(str(rows) == str(first) for rows in others)


def test_the_numbers_do_not_depend_on_how_many_episodes_are_played_at_once() -> None:
    rules = fair_envs.make_rules("FairHarvest-v0", **LITTLE)
    first, second = (evaluate(rules, "random", episodes=5, lanes=lanes, shuffles=0) for lanes in (2, 5))
    for one, other in zip(first.rows, second.rows, strict=True):
        assert one.key == other.key
        assert one.estimate.value == pytest.approx(other.estimate.value, nan_ok=True)


def test_labels_that_the_environment_hides_are_read_for_the_evaluation() -> None:
    hidden = fair_envs.make_rules("FairLending-v0", **LOANS)
    shown = fair_envs.make_rules("FairLending-v0", feedback="full", **LOANS)
    assert hidden.spec.only_accepted and not shown.spec.only_accepted
    one, other = (evaluate(rules, "random", episodes=3, **QUICK) for rules in (hidden, shown))
    assert one.rates == other.rates
    assert any("ground truth" in note for note in one.notes) and not other.notes


def test_a_wrapped_environment_is_played_with_its_wrapper() -> None:
    late = DelayedFeedback(gym.make("FairHiring-v0", horizon=20), delay=3)
    with pytest.raises(ValueError, match="labels arrive later"):
        evaluate(late, "random", episodes=2)
    task = Task(env_id="FairHiring-v0", short="demographic_parity", rate="demographic_parity")
    assert evaluate(late, "random", episodes=2, task=task, **QUICK).rate == "selection rate"


def test_a_batch_with_a_wrapper_is_rejected() -> None:
    batch = gym.wrappers.vector.RecordEpisodeStatistics(gym.make_vec("FairHiring-v0", num_envs=2))
    with pytest.raises(ValueError, match="batch without wrappers, got one with RecordEpisodeStatistics"):
        evaluate(batch, "random", episodes=1)


@pytest.mark.parametrize("env_id", sorted(fair_envs.TABLE))
def test_every_environment_can_be_evaluated(env_id: str) -> None:
    given = {"horizon": 10}
    found = evaluate(env_id, "random", episodes=2, shuffles=2, parameters=given, twins=False)
    assert found.env_id == env_id and len(found.rates) == len(found.groups) > 1
    assert {row.section for row in found.rows} >= {"performance", "rate", "gap", "short-term", "long-term", "welfare"}


# Policies -------------------------------------------------------------------------------------------------------------


def test_functions_names_and_policies_are_policies() -> None:
    rules = fair_envs.make_rules("FairLending-v0", **LOANS)
    everyone = evaluate(rules, lambda observation, uniforms: np.ones(uniforms.shape, int), episodes=2, **QUICK)
    assert everyone.rates["advantaged"].value == 1
    assert evaluate(rules, "always", episodes=2, **QUICK).rates == everyone.rates
    one, other = (evaluate(rules, policy, episodes=2, **QUICK) for policy in ("random", RandomPolicy(rules)))
    assert one.rates == other.rates
    assert (one.policy, other.policy) == ("random", "RandomPolicy")


# Twins ----------------------------------------------------------------------------------------------------------------


def test_agents_with_half_the_speed_would_earn_more_without_it() -> None:
    found = evaluate("FairHarvest-v0", "random", episodes=6, parameters={"agents": 10, "horizon": 200}, **QUICK)
    change = found.row("twin")
    assert change.name == "change of return without half_speed" and change.estimate.low > 0


def test_a_policy_that_ignores_the_attribute_has_twins_without_a_change() -> None:
    found = evaluate("FairHiring-v0", "random", episodes=3, parameters={"horizon": 20}, **QUICK)
    changes = values(found, "twin")
    assert set(changes) == {("change of favourable decisions with other gender", who) for who in ("man", "woman")}
    assert set(changes.values()) == {0.0}


@pytest.mark.parametrize(
    ("env", "reason"),
    [("FairPursuit-v0", "have no attribute that can be removed"), ("FairAttention-v0", "several people in each step")],
)
def test_twins_that_are_impossible_are_left_out_unless_they_are_required(env: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"twins must be False or 'auto' here, got True: .*{reason}.*compare its"):
        evaluate(env, "random", episodes=1, twins=True, parameters={"horizon": 5})
    found = evaluate(env, "random", episodes=1, parameters={"horizon": 5}, **QUICK)
    assert not values(found, "twin")


# Results --------------------------------------------------------------------------------------------------------------


def test_a_result_is_saved_and_read_again(tmp_path: Path, office: str) -> None:
    found = evaluate(office, coin, episodes=3, seed=0, **QUICK)
    found.save(tmp_path)
    (again,) = read(tmp_path / "evaluation.json")
    assert str(again) == str(found) and again.as_dict() == found.as_dict()
    (plain,) = json.loads((tmp_path / "evaluation.json").read_text())
    assert plain["worst_off"] == found.worst_off
    assert (tmp_path / "evaluation.csv").read_text().startswith("policy,section,name,of,value,low,high,n")
    (tmp_path / "evaluation.json").write_text("[{}]")
    with pytest.raises(ValueError, match="it is not an evaluation"):
        read(tmp_path / "evaluation.json")


def test_a_result_says_who_is_worse_off_and_whether_it_may_be_noise(office: str) -> None:
    text = str(evaluate(office, to_the_north, episodes=20, seed=0))
    assert "Worst off: south, with a true positive rate of 0; the largest gap is 1, more than noise" in text
    same = str(evaluate(office, correct, episodes=2, seed=0))
    assert "No two groups differ in their true positive rate." in same
    assert "95 % confidence intervals over n = 2 episodes" in same


def test_plots_are_written(tmp_path: Path, office: str) -> None:
    pytest.importorskip("matplotlib")
    found = evaluate(office, coin, episodes=4, seed=0, **QUICK)
    assert found.curve["step"][-1] == 4 and len(found.curve["gap"]) == len(found.curve["low"])
    assert [path.name for path in found.plots(tmp_path)] == ["rates.png", "gap.png"]
    assert all(path.stat().st_size > 1000 for path in tmp_path.glob("*.png"))


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"episodes": 0}, "episodes must be"),
        ({"level": 1.5}, "level must be between 0 and 1"),
        ({"lanes": 0}, "lanes must be"),
        ({"policy": "greddy"}, "policy must be 'random'"),
        ({"env": "FairLendin-v0"}, "did you mean 'FairLending-v0'"),
        ({"parameters": {"horizont": 3}}, "horizon"),
        ({"task": Task(env_id="FairLending-v0", rate="return_parity")}, "needs agents who earn rewards"),
        ({"task": Task(env_id="FairLending-v0", performance="success")}, "performance must be 'reward' for"),
    ],
)
def test_what_cannot_be_evaluated_is_rejected_before_it_is_played(given: dict[str, Any], error: str) -> None:
    arguments = {"env": "FairLending-v0", "policy": "random", "episodes": 1, "parameters": {"horizon": 5}, **given}
    env, policy = arguments.pop("env"), arguments.pop("policy")
    with pytest.raises((ValueError, TypeError), match=error):
        evaluate(env, policy, **arguments)


def test_equal_opportunity_needs_labels() -> None:
    env = DelayedFeedback(gym.make("FairLending-v0", horizon=10, feedback="full"), delay=2)
    with pytest.raises(ValueError, match=r"equal_opportunity .* labels arrive later"):
        evaluate(env, "random", episodes=1)


def test_an_environment_without_a_record_is_rejected() -> None:
    with pytest.raises(ValueError, match="env must have a FairSpec as fair_spec"):
        evaluate(gym.make("CartPole-v1"), "random", episodes=1)
    with pytest.raises(TypeError, match="env must be an id, rules or an environment with a record, got 3"):
        evaluate(3, "random", episodes=1)
    with pytest.raises(ValueError, match="parameters must be left out for an environment that exists"):
        evaluate(Office(), "random", episodes=1, parameters={"bonus": 1})


def test_parameters_of_an_own_environment_are_checked(office: str) -> None:
    assert evaluate(office, correct, episodes=1, parameters={"bonus": 1.0}, **QUICK).performance.value == 2
    with pytest.raises(ValueError, match="parameters must be among clients, bonus, got 'bonuss'"):
        evaluate(office, correct, episodes=1, parameters={"bonuss": 1.0})
