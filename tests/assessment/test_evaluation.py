"""One evaluation for every environment and policy, and what it rejects before anything is played."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import fair_envs
from fair_envs.assessment import Evaluation, evaluate
from fair_envs.assessment.evaluation import Plan
from fair_envs.assessment.played import changed_parameters, system_of
from fair_envs.assessment.policies import policy_of
from fair_envs.assessment.result import read
from fair_envs.core import check_seeds
from fair_envs.core.interactions import record
from fair_envs.evaluation import LanesWorld, RandomPolicy, begun, rollout, scripted
from fair_envs.metrics import FunctionMeasure
from fair_envs.support.seeds import TEST_SEEDS
from fair_envs.tasks import TASKS, Task
from fair_envs.wrappers import DelayedFeedback, FairnessPenalty, SocialReward
from tests.assessment.office import SPEC, Office, coin, correct, to_the_north
from tests.helpers import LITTLE
from tests.test_cli import Said

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


def test_the_performance_of_a_team_is_the_share_of_episodes_with_a_capture() -> None:
    rules = fair_envs.make_rules("FairPursuit-v0", horizon=40)
    caught = np.zeros((6, 3), bool)
    lengths = np.zeros(6, int)
    for step in rollout(LanesWorld(begun(rules, check_seeds(TEST_SEEDS, 6))), scripted(rules, "planner")):
        caught |= step.active[:, np.newaxis] & (step.facts["action"] == 1)
        lengths += step.active
    assert len(set(lengths)) > 1  # episodes that ended wait for the others
    found = evaluate(rules, "planner", episodes=6, **QUICK)
    assert 0 < found.performance.value == caught.any(axis=1).mean() < 1
    assert [rate.value for rate in found.rates.values()] == pytest.approx(caught.mean(axis=0))


def test_policies_do_not_share_the_random_numbers_of_an_own_environment() -> None:
    """With the same numbers, a coin would accept exactly those whom the environment draws from one group."""

    class Drawn(Office):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self._clients = ((int(self.np_random.random() < 0.5), 1, 0), (0, 1, 0), (1, 1, 0))
            return self._shown(), dict(record(SPEC))

    found = evaluate(Drawn(), "random", episodes=1000, seed=0, shuffles=100)
    assert not found.gap.beyond_noise
    assert abs(found.row("gap", of="north - south").value) < 0.05  # 1/3 with the same numbers


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


def test_the_measure_with_shuffled_group_memberships_is_beside_the_measure() -> None:
    clients = [(place % 2, 1, 0) for place in range(60)]
    fair = evaluate(Office(clients), coin, episodes=64, seed=0).row("short-term", of="last value")
    assert fair.noise == pytest.approx(fair.estimate.value, abs=0.06)
    unfair = evaluate(Office(clients), to_the_north, episodes=8, seed=0).row("short-term", of="last value")
    assert unfair.estimate.value == 1 and unfair.beyond_noise


def test_a_measure_that_depends_on_no_group_has_no_noise_floor() -> None:
    def accepted(rules: Any, lanes: int) -> FunctionMeasure:
        return FunctionMeasure(lanes, lambda info: info["fair_action"].reshape(lanes))

    clients = [(place % 2, 1, 0) for place in range(20)]
    task = Task(env_id="Office-v0", short=accepted, rate="equal_opportunity")
    found = evaluate(Office(clients), coin, episodes=3, seed=0, task=task, **QUICK)
    row = found.row("short-term", of="mean over steps")
    assert row.value > 0 and np.isnan(row.noise) and not row.beyond_noise
    assert found.gap.noise > 0


def test_intervals_stay_in_the_range_of_their_number() -> None:
    clients = [(place % 2, 1, 0) for place in range(8)]
    largest = evaluate(Office(clients), coin, episodes=2, seed=0, **QUICK).row("short-term", of="last value")
    assert (largest.low, largest.high) == (0, 1)  # Student's interval of two numbers is far wider
    agents = evaluate("FairHarvest-v0", "random", episodes=2, parameters=LITTLE, twins=False, **QUICK)
    for name in ("gini", "jain", "atkinson"):
        row = agents.row("welfare", f"{name} of returns")
        assert np.isnan(row.low) or 0 <= row.low <= row.value <= row.high <= 1
    twins = evaluate("FairHiring-v0", "alternate", episodes=2, parameters={"horizon": 20}, **QUICK)
    for row in twins.rows:
        if row.section == "twin":
            assert -1 <= row.low <= row.high <= 1


def test_the_gap_is_used_like_the_performance() -> None:
    clients = [(place % 2, 1, 0) for place in range(8)]
    found = evaluate(Office(clients), coin, episodes=4, seed=0, **QUICK)
    for row in (found.gap, found.performance):
        assert row.low <= row.value <= row.high and row.n == 4 and row.level == 0.95
        assert row.standard_error >= 0 and row.excludes(2.0)
    assert str(found.gap) == str(found.gap.estimate) and f"{found.gap:.1f}" == f"{found.gap.estimate:.1f}"


@pytest.mark.long
def test_few_gaps_of_a_coin_are_beyond_noise_if_groups_differ_in_size_labels_and_strata() -> None:
    rng, stars = np.random.default_rng(0), []
    for k in range(30):
        group = (rng.random(60) < 0.2).astype(int)
        label, age = (rng.random(60) < np.array([0.9, 0.1])[group] for _ in range(2))
        clients = [(int(g), int(y), int(a)) for g, y, a in zip(group, label, age, strict=True)]
        found = evaluate(Office(clients), coin, episodes=4, seed=100 * k, twins=False, shuffles=50)
        rows = [found.gap, *(row for row in found.rows if row.name == "conditional_parity")]
        stars.append([row.beyond_noise for row in rows])
    assert np.shape(stars) == (30, 3) and np.mean(stars) < 0.1


def test_a_measure_is_shuffled_among_those_who_count_in_it(office: str) -> None:
    system = system_of(office)
    for notion, strata in (("equal_opportunity", 2), ("demographic_parity", 1), ("conditional_parity", 2)):
        plan = Plan(
            replace(system, task=Task(env_id=office, short=notion, rate="equal_opportunity")),
            lanes=1,
            shuffles=1,
            level=0.95,
            seed=0,
        )
        people = plan.play(policy_of(coin, system.rules), episodes=2, threads=1, each=lambda: None).people
        own = {"equal_opportunity": people.sums[:, 0, 1], "conditional_parity": people.legitimate[:, 0]}
        found = plan._strata(plan.measures["short"], people)
        assert len(np.unique(found)) == strata
        assert (found == own.get(notion, 0 * found)).all()


def test_returns_within_a_factor_are_shuffled_within_it() -> None:
    system = system_of("FairTraffic-v0", parameters={"horizon": 20})
    plan = Plan(system, lanes=2, shuffles=1, level=0.95, seed=0)
    policy = policy_of("random", system.rules)
    people = plan.play(policy, episodes=2, threads=1, each=lambda: None).people
    assert len(np.unique(people.legitimate)) > 1
    found = plan._strata(plan.measures["long"], people)
    assert (np.unique(people.legitimate, axis=0, return_inverse=True)[1].reshape(-1) == found).all()


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


def test_what_good_numbers_do_not_show_is_said() -> None:
    given: dict[str, Any] = {"episodes": 2, "parameters": {"horizon": 10}, "twins": False, "shuffles": 0}
    assert evaluate("FairAttention-v0", "round-robin", **given).notes == (TASKS["FairAttention-v0"].caution,)
    assert not TASKS["FairHarvest-v0"].caution and not evaluate("FairHarvest-v0", "random", **given).notes


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


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: FairnessPenalty(env, alpha=50.0),
        lambda env: SocialReward(gym.wrappers.TransformReward(env, lambda reward: reward), envy=3.0),
        lambda env: gym.wrappers.TransformReward(FairnessPenalty(env, alpha=50.0), lambda reward: 100 * float(reward)),
        lambda env: gym.wrappers.NormalizeReward(env),
    ],
)
def test_people_get_what_the_environment_gives_them_under_any_wrapper(wrap: Any) -> None:
    given: dict[str, Any] = {"episodes": 2, "twins": False, "shuffles": 0}
    same, found = (
        evaluate(wrapper(gym.make("FairHarvest-v0", **LITTLE)), "random", **given)
        for wrapper in (gym.wrappers.RecordEpisodeStatistics, wrap)
    )
    assert [row.estimate.value for row in found.rows] == [row.estimate.value for row in same.rows]
    assert not found.notes


def test_the_random_policy_plays_several_choices_under_a_wrapper() -> None:
    env: Any = gym.wrappers.RecordEpisodeStatistics(gym.make("FairAttention-v0", horizon=10))
    system = system_of(env)
    world = system.world(np.array([3], np.uint64), policy_of("random", system.rules), success=False, threads=1)
    actions = np.concatenate([step.action[0] for step in rollout(world, policy_of("random", system.rules))])
    assert actions.shape == (10, *env.action_space.shape) and len(np.unique(actions)) == 5


def test_a_variant_has_its_own_parameters() -> None:
    given = {"variant": "melting_pot", "horizon": 5}
    assert system_of("FairHarvest-v0", parameters=given).parameters == given


def test_an_own_environment_with_a_variant_keeps_the_parameters_of_its_task(office: str) -> None:
    task = Task(env_id=office, parameters={"bonus": 5.0}, short="demographic_parity", scripted=())
    assert task.merged({"variant": "large"}) == {"bonus": 5.0, "variant": "large"}


def test_a_wrapper_that_may_change_the_rewards_of_an_own_environment_is_named() -> None:
    given: dict[str, Any] = {"episodes": 2, "seed": 0, "twins": False, "shuffles": 0}
    plain = evaluate(Office(), to_the_north, **given)
    penalised = evaluate(FairnessPenalty(Office(), measure="demographic_parity", alpha=9.0), to_the_north, **given)
    assert penalised.performance.value == plain.performance.value and not penalised.notes
    twice = evaluate(gym.wrappers.TransformReward(Office(), lambda reward: 2 * float(reward)), to_the_north, **given)
    assert twice.performance.value == 2 * plain.performance.value
    assert twice.notes == ("Rewards are read above the wrapper TransformReward, which may change them.",)


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


def test_a_missing_row_is_told_with_those_that_there_are(office: str) -> None:
    found = evaluate(office, coin, episodes=2, seed=0, **QUICK)
    with pytest.raises(KeyError, match=r"no row with section 'demographic_parity'; it has .*notion/demographic_parity"):
        found.row("demographic_parity")


# Policies -------------------------------------------------------------------------------------------------------------


def test_functions_names_and_policies_are_policies() -> None:
    rules = fair_envs.make_rules("FairLending-v0", **LOANS)
    everyone = evaluate(rules, lambda observation, uniforms: np.ones(uniforms.shape, int), episodes=2, **QUICK)
    assert everyone.rates["advantaged"].value == 1
    assert evaluate(rules, "always", episodes=2, **QUICK).rates == everyone.rates
    one, other = (evaluate(rules, policy, episodes=2, **QUICK) for policy in ("random", RandomPolicy(rules)))
    assert one.rates == other.rates
    assert (one.policy, other.policy) == ("random", "RandomPolicy")


def test_each_agent_can_have_a_function() -> None:
    def eager(observation: Any, uniforms: Any) -> Any:
        assert observation.shape[0] == len(uniforms) and uniforms.ndim == 1
        return np.full(len(uniforms), 5)

    def still(observation: Any, uniforms: Any) -> Any:
        return np.zeros(len(uniforms), int)

    agents = LITTLE["agents"]
    policies = {f"agent_{k}": eager if k % 2 else still for k in range(agents)}
    own: dict[str, Any] = {"parameters": LITTLE, "episodes": 2}
    same = evaluate("FairHarvest-v0", lambda o, u: np.tile([0, 5], (len(u), agents // 2)), **own, **QUICK)
    assert evaluate("FairHarvest-v0", policies, **own, **QUICK).rates == same.rates
    for wrong, message in (
        ({**policies, "agent_99": still}, "policy must be of the agents agent_0 to agent_., got 'agent_99'"),
        ({"agent_0": still}, "policy must be of all . agents, got none for agent_1"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate("FairHarvest-v0", wrong, **own)
    with pytest.raises(TypeError, match="got 3 for agent_1"):
        evaluate("FairHarvest-v0", {**policies, "agent_1": 3}, **own)


# Twins ----------------------------------------------------------------------------------------------------------------


def test_intervals_of_twins_have_the_given_level() -> None:
    found = evaluate("FairHarvest-v0", "greedy", episodes=4, level=0.5, shuffles=0, parameters=LITTLE)
    assert {row.estimate.level for row in found.rows if row.section == "twin"} == {0.5}


def test_agents_with_half_the_speed_would_earn_more_without_it() -> None:
    found = evaluate("FairHarvest-v0", "random", episodes=6, parameters={**LITTLE, "horizon": 200}, **QUICK)
    change = found.row("twin")
    assert change.name == "change of return without half_speed" and change.estimate.low > 0


def test_a_policy_that_ignores_the_attribute_has_twins_without_a_change() -> None:
    found = evaluate("FairHiring-v0", "random", episodes=3, parameters={"horizon": 20}, **QUICK)
    changes = values(found, "twin")
    assert set(changes) == {("change of favourable decisions if all swap gender", who) for who in ("man", "woman")}
    assert set(changes.values()) == {0.0}
    assert "Counterfactual twins change only gender; the rules do not define how to change nationality." in found.notes


def test_outcomes_that_are_the_decisions_are_not_listed_twice() -> None:
    found = evaluate("FairHiring-v0", "random", episodes=2, parameters={"horizon": 20}, twins=False, **QUICK)
    names = {name for name, _ in values(found, "notion")}
    assert "demographic_parity" in names and "outcome_parity" not in names


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
    assert "Worst off: south, whose true positive rate is 0; the largest gap is 1, more than noise" in text
    same = str(evaluate(office, correct, episodes=2, seed=0))
    assert "No two groups differ in their true positive rate." in same
    assert "95 % confidence intervals over n = 2 episodes" in same
    warning = "Warning: with fewer than 8 episodes, the intervals of rates and gaps are too narrow."
    assert warning in same and warning not in text
    told = "What notions compare between groups (see docs/fairness.md): demographic_parity: selection rate; "
    assert told in same and "; equalized_odds: false positive rate and true positive rate; " in same


def test_a_result_says_with_which_parameters_it_was_played(office: str) -> None:
    by_id = str(evaluate("FairLending-v0", "always", episodes=1, parameters=LOANS, **QUICK))
    said = "Parameters of FairLending-v0: horizon=100, feedback=full; all others have their defaults."
    assert f"{said} The task sets feedback." in by_id
    made = str(evaluate(gym.make("FairLending-v0", **LOANS), "always", episodes=1, **QUICK))
    assert "Parameters of FairLending-v0: horizon=100; all others have their defaults." in made
    assert "All parameters of Office-v0 have their defaults." in str(evaluate(office, coin, episodes=1, **QUICK))


def test_the_parameters_of_a_variant_are_named() -> None:
    rules = fair_envs.make_rules("FairHarvest-v0", variant="melting_pot", horizon=7)
    assert changed_parameters(rules) == {"variant": "melting_pot", "horizon": 7}


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
        ({"shuffles": -1}, "shuffles must be at least 0, got -1"),
        ({"shuffles": True}, "shuffles must be an integer"),
        ({"shuffles": 2.5}, "shuffles must be an integer"),
        ({"shuffles": "x"}, "shuffles must be an integer"),
        ({"threads": 0}, "threads must be"),
        ({"level": "0.9"}, "level must be between 0 and 1"),
        ({"twins": "yes"}, "twins must be True, False or 'auto', got 'yes'"),
        ({"twins": 2}, "twins must be True, False or 'auto', got 2"),
        ({"deterministic": "no"}, "deterministic must be"),
        ({"name": 5}, "name must be"),
        ({"parameters": [1]}, r"parameters must be a dict of values by name, got \[1\]"),
        ({"task": 5}, "task must be a Task or the id of an environment, got 5"),
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


def test_measures_that_need_action_probabilities_are_refused() -> None:
    task = Task(env_id="FairHiring-v0", short="individual_fairness", rate="demographic_parity")
    with pytest.raises(ValueError, match="short of the task must not be individual_fairness here"):
        evaluate("FairHiring-v0", "random", episodes=1, task=task)


@pytest.mark.usefixtures("empty_folder")
def test_the_scripted_policies_beside_another_task_are_those_of_the_environment() -> None:
    world = ("-p", "horizon=20", "--episodes", "2", "--no-progress")
    said = Said("evaluate", "FairLending-v0", "--beside", "--task", "FairHiring-v0", *world)
    assert said.code == 0 and "max-reward" in said.text, said.text
