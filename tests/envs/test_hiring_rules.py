"""Each rule of FairHiring on a company set by hand, and the known values of the published one."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import fair_envs
from fair_envs.core import Lanes
from fair_envs.core.compilation import readable
from fair_envs.envs.hiring import parallel_env
from fair_envs.envs.hiring.bias import tabulated
from fair_envs.envs.hiring.population import AGE, FEATURES, GENDER, NATIONALITY
from fair_envs.envs.hiring.rules import COMPANY, GROUPS, HIRE, NEVER, REJECT, Hiring, judge_all
from fair_envs.support.aliases import Floats
from tests.helpers import assert_same, uncompiled

BASE = {name: 0 for name in FEATURES} | {"age": 40}
J1 = {"degree": 1, "extra_degree": 1, "experience": 10, "dutch": 1, "french": 1}
LITTLE = {"experience": 5, "dutch": 1}
POLYGLOT = {"dutch": 1, "french": 1, "english": 1, "german": 1}


def company(**parameters: Any) -> Lanes:
    """Return a company at the start of an episode, without noise."""
    lanes = Lanes(Hiring(**{"noise": 0.0, **parameters}), 1)
    lanes.seed(0)
    lanes.restart()
    return lanes


def let_in(lanes: Lanes, **features: int) -> None:
    """Put this applicant in place of the one at the door."""
    for name, value in {**BASE, **features}.items():
        lanes.records["applicant"][:, FEATURES.index(name)] = value
    judge_all(lanes.rules.code, readable(lanes.records))


def goodness(lanes: Lanes, **features: int) -> float:
    """Return the goodness of this applicant."""
    let_in(lanes, **features)
    return float(lanes.rules.oracle(lanes.records)["score"][0, 0])


def reward(lanes: Lanes, action: int, **features: int) -> float:
    """Return what deciding on this applicant earns; the company stays as it was."""
    before = lanes.snapshot()
    let_in(lanes, **features)
    earned = float(act(lanes, action).reward[0, 0])
    lanes.restore(before)
    return earned


def act(lanes: Lanes, action: int) -> Any:
    return lanes.advance(np.full((lanes.count, 1), action))


def hire(lanes: Lanes, **features: int) -> None:
    """Hire this applicant."""
    let_in(lanes, **features)
    act(lanes, HIRE)


# --------------------------------------------------------------------------------------------- the known values


@pytest.mark.nojit
def test_a_skilled_applicant_in_an_empty_company() -> None:
    lanes = company()
    assert goodness(lanes, **J1) == pytest.approx(0.7425531914893617, abs=1e-9)
    assert lanes.rules.oracle(lanes.records)["feedback"].tolist() == [[HIRE]]
    assert reward(lanes, HIRE, **J1) == pytest.approx(0.242553, abs=1e-6)
    assert reward(lanes, REJECT, **J1) == pytest.approx(-0.242553, abs=1e-6)


def test_applicants_with_few_skills_in_an_empty_company() -> None:
    lanes = company()
    assert goodness(lanes, **LITTLE) == pytest.approx((1 / 3 + 5 / 47) / 5)
    assert goodness(lanes, **LITTLE) == pytest.approx(0.0879433, abs=1e-7)
    assert goodness(lanes, **POLYGLOT) == pytest.approx(0.2)
    assert lanes.rules.oracle(lanes.records)["feedback"].tolist() == [[REJECT]]


def test_a_bias_favours_men_in_the_reward_alone() -> None:
    lanes = company(reward_bias="men")
    assert reward(lanes, HIRE, **J1) == pytest.approx(0.342553, abs=1e-6)
    assert reward(lanes, REJECT, **J1) == pytest.approx(-0.342553, abs=1e-6)
    assert reward(lanes, HIRE, **J1, gender=1) == pytest.approx(0.242553, abs=1e-6)
    assert goodness(lanes, **J1) == goodness(lanes, **J1, gender=1)


def test_a_bias_favours_belgian_men() -> None:
    lanes = company(reward_bias="belgian_men", reward_bias_size=0.2)
    assert reward(lanes, HIRE, **J1) == pytest.approx(0.442553, abs=1e-6)
    for others in ({"gender": 1}, {"nationality": 1}, {"gender": 1, "nationality": 1}):
        assert reward(lanes, HIRE, **J1, **others) == pytest.approx(0.242553, abs=1e-6)


def test_rewards_are_clipped() -> None:
    lanes = company(reward_bias="men", reward_bias_size=-2.0)
    assert reward(lanes, HIRE, **J1) == -1.0
    assert reward(lanes, REJECT, **J1) == 1.0


def test_the_observation_shows_the_company_and_the_applicant() -> None:
    lanes = company()
    hire(lanes, **J1)
    let_in(lanes, age=41, gender=1, degree=1, nationality=1, married=1, experience=20, dutch=1, french=1)
    known = [0.01, 0.01, 0.01, 0.002128, 0.5, 0.5, 0, 0, 1, 0, 1, 0]
    known += [0.489362, 1, 1, 0, 1, 1, 0.425532, 1, 1, 0, 0]
    np.testing.assert_allclose(lanes.observe()[0, 0], known, atol=1e-6)


def test_an_empty_company_is_all_zeros() -> None:
    assert not company(noise=0.01).observe()[0, 0, : len(COMPANY)].any()


def test_diversity_alone_is_worth_nothing_in_an_empty_company() -> None:
    assert goodness(company(diversity_weight=1.0), **J1) == pytest.approx(0, abs=1e-8)


def test_diversity_is_the_mean_entropy_of_gender_and_nationality() -> None:
    lanes = company(diversity_weight=1.0)
    hire(lanes, **J1)
    assert goodness(lanes, **J1) == pytest.approx(0)
    assert goodness(lanes, **J1, gender=1) == pytest.approx(0.5)
    assert goodness(lanes, **J1, gender=1, nationality=1) == pytest.approx(1)
    mixed = company(diversity_weight=0.25)
    hire(mixed, **J1)
    assert goodness(mixed, **J1, gender=1) == pytest.approx(0.75 * 0.7425531914893617 + 0.25 * 0.5)


@pytest.mark.parametrize(("action", "steps"), [(HIRE, 100), (REJECT, 1000)])
def test_hiring_everybody_takes_100_steps_and_nobody_1000(action: int, steps: int) -> None:
    lanes, played = company(leaving=False), 0
    ended = False
    while not ended:
        step = act(lanes, action)
        played += 1
        ended = bool(step.terminated[0] or step.truncated[0])
    assert played == steps
    assert bool(step.terminated[0]) == (action == HIRE)


# ---------------------------------------------------------------------------------------------- the goodness


def entropy(*counts: float) -> float:
    """Return the entropy in base 4."""
    shares = np.array([count for count in counts if count]) / sum(counts)
    return float(-(shares * np.log(shares)).sum() / math.log(4))


def test_the_languages_of_the_team_count_with_the_candidates() -> None:
    lanes = company()
    hire(lanes, **LITTLE)
    hire(lanes, french=1, english=1)
    assert goodness(lanes, french=1) == pytest.approx(entropy(1, 2, 1) / 5)
    lanes = company(company_counts="double")
    hire(lanes, **LITTLE)
    hire(lanes, french=1, english=1)
    assert goodness(lanes, french=1) == pytest.approx(entropy(2, 3, 2) / 5)


@pytest.mark.parametrize("counts", ["single", "double"])
def test_the_language_term_can_be_the_increase(counts: str) -> None:
    lanes = company(language_term="difference", company_counts=counts)
    assert goodness(lanes, **POLYGLOT) == pytest.approx(0.2)
    hire(lanes, **POLYGLOT)
    weight = 1 if counts == "single" else 2
    assert goodness(lanes, dutch=1) == pytest.approx((entropy(weight + 1, weight, weight, weight) - 1) / 5)


def test_employees_count_twice_in_diversity_too() -> None:
    lanes = company(diversity_weight=1.0, company_counts="double")
    hire(lanes, dutch=1)
    third = -(1 / 3 * math.log2(1 / 3) + 2 / 3 * math.log2(2 / 3))
    assert goodness(lanes, dutch=1, gender=1) == pytest.approx(third / 2)


def test_the_threshold_says_which_decision_is_correct() -> None:
    for threshold, correct in ((0.74, HIRE), (0.75, REJECT)):
        lanes = company(threshold=threshold)
        let_in(lanes, **J1)
        assert lanes.rules.oracle(lanes.records)["feedback"][0, 0] == correct


def test_noise_is_on_the_reward_and_on_the_potential() -> None:
    lanes = Lanes(Hiring(noise=0.05), 4000)
    lanes.seed(0)
    lanes.restart()
    let_in(lanes, **J1)
    scores = lanes.rules.oracle(lanes.records)["score"][:, 0] - 0.7425531914893617
    assert scores.std() == pytest.approx(0.05 / 5, rel=0.05)
    step = act(lanes, HIRE)
    of_reward = step.reward[:, 0] - 0.242553 - scores
    assert of_reward.std() == pytest.approx(0.05, rel=0.05)
    assert abs(np.corrcoef(of_reward, scores)[0, 1]) < 0.06
    let_in(lanes, **J1)
    scores = lanes.rules.oracle(lanes.records)["score"][:, 0]  # the team's potential has noise of its own now
    assert scores.std() == pytest.approx(0.05 * math.sqrt(2) / 5, rel=0.05)
    shown = step.observation[:, 0, 0]
    assert shown.mean() == pytest.approx(0.01, abs=1e-4) and shown.std() == pytest.approx(0.05 / 100, rel=0.05)


# ------------------------------------------------------------------------------------------------- the record


@pytest.mark.nojit
def test_the_record_describes_the_applicant_decided_on() -> None:
    lanes = company()
    let_in(lanes, **J1, gender=1)
    shown = lanes.observe()[0, 0, len(COMPANY) :]
    facts = act(lanes, HIRE).facts[0]
    np.testing.assert_array_equal(facts["features"][0], shown)
    assert facts["sensitive"][0].tolist() == [1, 0]
    assert facts["legitimate"][0].tolist() == [2]
    assert GROUPS[facts["group"][0]] == "Belgian woman"
    assert (facts["individual"][0], facts["action"][0], facts["feedback"][0]) == (0, HIRE, HIRE)
    assert facts["outcome"][0] == 1
    facts = act(lanes, REJECT).facts[0]
    assert (facts["individual"][0], facts["action"][0], facts["outcome"][0]) == (1, REJECT, 0)


def test_the_published_record_describes_the_next_applicant() -> None:
    lanes, truth = company(alignment="next_applicant"), []
    for time in range(30):
        step = act(lanes, time % 2)
        facts, truth = step.facts[0], lanes.rules.oracle(lanes.records)["feedback"][0, 0]
        np.testing.assert_array_equal(facts["features"][0], step.observation[0, 0, len(COMPANY) :])
        assert (facts["individual"][0], facts["action"][0], facts["feedback"][0]) == (time, time % 2, truth)
        assert facts["sensitive"][0].tolist() == lanes.records["applicant"][0, [GENDER, NATIONALITY]].tolist()


@uncompiled
@pytest.mark.parametrize("alignment", ["decided", "next_applicant"])
def test_late_feedback_says_what_immediate_feedback_would_have(alignment: str) -> None:
    now = company(alignment=alignment)
    late = company(alignment=alignment, feedback="delayed", delay=4)
    told = [(act(now, k % 2).facts[0], act(late, k % 2).facts[0]) for k in range(20)]
    assert [facts["feedback"][0] for _, facts in told] == [-1] * 20
    for k in range(4, 20):
        assert told[k][1]["late_individual"][0] == k - 4
        assert told[k][1]["late_feedback"][0] == told[k - 4][0]["feedback"][0]


def test_feedback_on_the_hired_alone() -> None:
    lanes = company(feedback="accepted")
    for action, correct in ((HIRE, HIRE), (REJECT, -1)):
        let_in(lanes, **J1)
        assert act(lanes, action).facts["feedback"][0, 0] == correct


def test_the_tally_counts_groups_by_truth_and_decision() -> None:
    lanes = company()
    let_in(lanes, **J1)
    act(lanes, HIRE)
    let_in(lanes, **LITTLE, gender=1, nationality=1)
    act(lanes, REJECT)
    tally = lanes.records["tally"][0]
    assert tally.sum() == 2 and tally[0, 1, HIRE] == 1 and tally[3, 0, REJECT] == 1


@pytest.mark.nojit
def test_the_first_applicants_of_a_seed_are_these_with_and_without_compilation() -> None:
    """What changes them raises the environment's version."""
    lanes, seen = company(noise=0.01, steps_per_year=1.0), []
    for time in range(12):
        seen.append(lanes.records["applicant"][0].tolist())
        step = act(lanes, int(time % 3 > 0))
    assert seen[0] == [47, 1, 0, 0, 1, 0, 22, 1, 0, 1, 0]
    assert seen[-1] == [36, 0, 1, 1, 1, 0, 13, 1, 1, 1, 0]
    assert lanes.records["departures"][0] == 2
    assert float(step.reward[0, 0]) == pytest.approx(0.31435559484250597, abs=1e-12)
    assert float(step.observation[0].sum()) == pytest.approx(8.301115036010742, abs=1e-5)


# ------------------------------------------------------------------------------------------------- leaving


def survivors(age: int, lanes: int = 4000, steps: int = 30, **parameters: Any) -> Floats:
    """Return the share of employees hired in step 0 who are there after each later step."""
    batch = Lanes(Hiring(noise=0.0, **parameters), lanes)
    batch.seed(0)
    batch.restart()
    let_in(batch, **J1, age=age)
    act(batch, HIRE)
    there = []
    for _ in range(steps):
        there.append(batch.records["employees"].mean())
        act(batch, REJECT)
    return np.array(there)


@pytest.mark.parametrize(
    ("age", "yearly"),
    [(24, 0.257), (25, 0.134), (34, 0.134), (35, 0.074), (44, 0.074), (45, 0.047), (54, 0.047), (55, 0.021)],
)
def test_employees_stay_for_a_geometric_number_of_steps(age: int, yearly: float) -> None:
    expected = (1 - yearly) ** np.arange(30)
    found = survivors(age, steps_per_year=1.0)
    assert found[0] == 1  # nobody leaves in the step of the hiring
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_the_chances_to_leave_are_parameters() -> None:
    np.testing.assert_array_equal(survivors(30, lanes=10, leave_25_34=1.0, steps_per_year=1.0), [1] + 29 * [0])
    np.testing.assert_array_equal(survivors(30, lanes=10, leave_25_34=0.0, steps_per_year=1.0), np.ones(30))
    np.testing.assert_array_equal(survivors(30, lanes=50, leave_25_34=1.0, leaving=False), np.ones(30))


def test_employees_leave_independently_of_each_other() -> None:
    """The number that leaves within a time is binomial, not all or none."""
    lanes = Lanes(Hiring(noise=0.0, steps_per_year=5.0), 2000)
    lanes.seed(0)
    lanes.restart()
    for _ in range(10):
        let_in(lanes, **J1, age=20)
        act(lanes, HIRE)
    stay = 1 - 0.257 / 5
    expected = stay ** np.arange(10)
    assert lanes.records["employees"].mean() == pytest.approx(expected.sum(), abs=0.12)
    assert lanes.records["employees"].var() == pytest.approx((expected * (1 - expected)).sum(), rel=0.12)


def recounted(records: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sums over the teams and how many employees have experience."""
    there = np.arange(records["team"].shape[1]) < records["employees"][:, np.newaxis]
    team = records["team"].astype(np.int64) * there[..., np.newaxis]
    return team.sum(axis=1), (team[..., FEATURES.index("experience")] > 0).sum(axis=1)


def test_the_sums_are_those_of_the_team_whoever_came_and_went() -> None:
    lanes = Lanes(Hiring(steps_per_year=3.0, horizon=200), 50)
    lanes.seed(0)
    lanes.restart()
    luck = np.random.default_rng(0)
    for _ in range(150):
        lanes.advance(luck.integers(0, 2, (50, 1)))
        sums, experienced = recounted(lanes.records)
        np.testing.assert_array_equal(lanes.records["sums"], sums)
        np.testing.assert_array_equal(lanes.records["experienced"], experienced)
        hired = lanes.records["tally"][..., HIRE].sum(axis=(1, 2))
        np.testing.assert_array_equal(hired - lanes.records["departures"], lanes.records["employees"])
        for lane in lanes.records:
            leaves = lane["leaves_at"][: lane["employees"]]
            assert lane["next_departure"] == min(leaves.tolist(), default=NEVER)
            assert (leaves >= lane["time"]).all()
    assert (lanes.records["departures"] > 20).all()


def after_departures(*ages: int) -> tuple[Lanes, NDArray[Any], NDArray[Any]]:
    """Hire people of these ages, of whom those between 35 and 44 leave at the end of the step after.

    Returns:
        The companies, the noise of the teams' potential before and after.
    """
    lanes = Lanes(Hiring(noise=0.05, steps_per_year=1.0, leave_35_44=1.0, leave_45_54=0.0), 2000)
    lanes.seed(0)
    lanes.restart()
    for age in ages:
        hire(lanes, **J1, age=age)
    before = lanes.records["team_noise"].copy()
    act(lanes, REJECT)
    return lanes, before, lanes.records["team_noise"].copy()


def test_a_noisy_team_that_everybody_has_left_is_all_zeros() -> None:
    lanes, before, after = after_departures(40)
    assert before.std() == pytest.approx(0.05, rel=0.05) and not after.any()
    assert (lanes.records["departures"] == 1).all()
    assert not lanes.observe()[:, 0, : len(COMPANY)].any()


def test_the_noise_of_a_team_is_drawn_anew_when_somebody_leaves() -> None:
    lanes, before, after = after_departures(50, 40)
    assert (lanes.records["employees"] == 1).all()
    assert after.std() == pytest.approx(0.05, rel=0.05)
    assert abs(np.corrcoef(before, after)[0, 1]) < 0.07
    _, before, after = after_departures(50)
    np.testing.assert_array_equal(before, after)


@uncompiled
def test_a_complete_team_ends_the_episode_before_anybody_leaves() -> None:
    lanes = company(team_size=2, steps_per_year=1.0, leave_35_44=1.0)
    hire(lanes, age=40)
    let_in(lanes, age=40)
    assert act(lanes, HIRE).terminated[0]
    assert (lanes.records["employees"][0], lanes.records["departures"][0]) == (2, 0)


def test_always_hiring_takes_little_longer_when_employees_leave() -> None:
    lanes = Lanes(Hiring(), 64)
    lanes.seed(0)
    lanes.restart()
    going, steps = np.ones(64, bool), np.zeros(64)
    while going.any():
        step = lanes.advance(np.ones((64, 1), np.int64), mask=going)
        steps += going
        going &= ~(step.terminated | step.truncated)
    assert steps.min() >= 100 and 101 < steps.mean() < 104


# ------------------------------------------------------------------------------------ counterfactual people


def test_assigning_a_gender_changes_that_and_what_depends_on_it() -> None:
    lanes = company(diversity_weight=0.5, reward_bias="men")
    hire(lanes, **J1)
    let_in(lanes, **J1)
    before = lanes.snapshot()
    lanes.rules.assign(lanes.records, "gender", 1)
    expected = company(diversity_weight=0.5, reward_bias="men")
    hire(expected, **J1)
    assert float(lanes.records["goodness"][0]) == goodness(expected, **J1, gender=1)
    assert float(lanes.records["hire_reward"][0]) == pytest.approx(reward(expected, HIRE, **J1, gender=1))
    assert lanes.observe()[0, 0, len(COMPANY) + GENDER] == 1
    changed = [name for name in before.dtype.names or () if (before[name] != lanes.records[name]).any()]
    assert set(changed) <= {"applicant", "goodness", "hire_reward", "qualified"}
    lanes.rules.assign(lanes.records, "gender", 0)
    assert_same(lanes.snapshot(), before)


def test_assigning_a_nationality() -> None:
    lanes = company()
    let_in(lanes, **J1)
    lanes.rules.assign(lanes.records, "nationality", 1)
    assert act(lanes, HIRE).facts["sensitive"][0, 0].tolist() == [0, 1]


def test_assigning_something_else_is_refused() -> None:
    lanes = company()
    with pytest.raises(ValueError, match="attribute must be one of 'gender', 'nationality', got 'age'"):
        lanes.rules.assign(lanes.records, "age", 1)
    with pytest.raises(ValueError, match="code must be 0 or 1, got 2"):
        lanes.rules.assign(lanes.records, "gender", 2)


@pytest.mark.parametrize("bias", ["none", "men"])
def test_in_a_flipped_episode_every_applicant_has_the_other_gender_and_the_same_luck(bias: str) -> None:
    worlds = []
    for flipped in (False, True):
        lanes = Lanes(Hiring(reward_bias=bias), 8)
        lanes.seed(3)
        lanes.restart()
        lanes.rules.flip(lanes.records, np.full((8, 1), flipped))
        seen = []
        for time in range(120):
            applicant, scores = lanes.records["applicant"].copy(), lanes.records["goodness"].copy()
            seen.append((applicant, scores, lanes.advance(np.full((8, 1), int(time % 3 == 0))).reward))
        worlds.append([np.array(column) for column in zip(*seen, strict=True)])
    (people, scores, rewards), (others, other_scores, other_rewards) = worlds
    np.testing.assert_array_equal(others[..., GENDER], 1 - people[..., GENDER])
    rest = [k for k in range(len(FEATURES)) if k != GENDER]
    np.testing.assert_array_equal(others[..., rest], people[..., rest])
    np.testing.assert_array_equal(other_scores, scores)
    if bias == "none":
        np.testing.assert_array_equal(other_rewards, rewards)
    else:
        differs = other_rewards[..., 0] - rewards[..., 0]
        hired = np.arange(120) % 3 == 0
        expected = np.where(people[..., GENDER] == 1, 0.1, -0.1) * np.where(hired, 1, -1)[:, np.newaxis]
        np.testing.assert_allclose(differs, expected, atol=1e-12)


# ------------------------------------------------------------------------------------------- biases of one's own


def seniors(age: int, married: int) -> float:
    """Favour the married by how old they are."""
    return (age - 18) / 10 if married else 0.0


@pytest.mark.parametrize("bias", [seniors, "tests.envs.test_hiring_rules:seniors"])
def test_a_bias_can_be_any_function_of_features(bias: Any) -> None:
    lanes = company(reward_bias=bias, reward_bias_size=0.05)
    assert lanes.rules.params.reward_bias == "own"
    assert reward(lanes, HIRE, **J1, age=58, married=1) == pytest.approx(0.242553 + 0.2, abs=1e-6)
    assert reward(lanes, HIRE, **J1, age=18, married=1) == pytest.approx(0.242553, abs=1e-6)
    assert reward(lanes, HIRE, **J1, age=58) == pytest.approx(0.242553, abs=1e-6)


def test_a_table_of_a_bias_has_the_functions_values() -> None:
    def own(experience: int, german: int, age: int) -> float:
        return experience - 3 * german + age / 7

    table = tabulated(own)
    luck = np.random.default_rng(0)
    for _ in range(50):
        features = luck.integers(0, 2, len(FEATURES))
        features[AGE] = luck.integers(18, 66)
        features[FEATURES.index("experience")] = luck.integers(0, features[AGE] - 17)
        expected = own(features[FEATURES.index("experience")], features[FEATURES.index("german")], features[AGE])
        assert table.values[table.first + (table.steps * features).sum()] == pytest.approx(expected)


def test_a_bias_is_asked_only_about_people_who_can_exist() -> None:
    asked = []

    def own(age: int, degree: int, extra_degree: int, experience: int) -> float:
        asked.append((age, degree, extra_degree, experience))
        return 1.0 / (age - 17 - 3 * degree - 2 * extra_degree if experience else 1)

    table = tabulated(own)
    most = {(age, d, e): max(0, age - 18 - 3 * d - 2 * e) for age in range(18, 66) for d, e in ((0, 0), (1, 0), (1, 1))}
    assert set(asked) == {(*who, years) for who, limit in most.items() for years in range(limit + 1)}
    assert table.values.size == 48 * 2 * 2 * 48
    assert (table.values > 0).sum() == len(asked)


def test_an_argument_with_a_default_that_is_no_feature_keeps_it() -> None:
    table = tabulated(lambda age, cut=50: float(age > cut))
    assert table.values.tolist() == [0.0] * 33 + [1.0] * 15
    assert tabulated(lambda gender=0: float(gender)).values.tolist() == [0.0, 1.0]  # a feature all the same


def by_position(age: int, /) -> float:
    return float(age)


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        ("math:pi", "reward_bias must be one of .* got 'math:pi', which is 3.14"),
        (max, "reward_bias must be a function whose arguments can be read, got <built-in function max>"),
        ("builtins:max", "reward_bias must be a function whose arguments can be read, got <built-in function max>"),
        (by_position, r"reward_bias must take features by name .*, got 'age' \(positional-only\)"),
        (lambda **features: 1.0, r"reward_bias must take features by name .*, got 'features' \(variadic keyword\)"),
        (lambda age: "0.5", "reward_bias must return a finite number, got '0.5' for {'age': 18}"),
        (lambda height: 1.0, "reward_bias must take features by name .*, got 'height'"),
        (lambda age: None, "reward_bias must return a finite number, got None for {'age': 18}"),
        (lambda age: math.inf, "reward_bias must return a finite number, got inf"),
        ("women", "reward_bias must be one of 'none', 'men', 'belgian_men', a function or .*, got 'women'"),
        ("no_such_module:f", "reward_bias must be one of .* got 'no_such_module:f'"),
        (0.3, "reward_bias must be one of .* got 0.3"),
        (b"1", "reward_bias must be one of .* got b'1'"),
    ],
)
def test_a_bad_bias_is_refused(bias: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hiring(reward_bias=bias)


# ------------------------------------------------------------------------------------------------ the faces

OWN: dict[str, Any] = {
    "population": {
        "age": [30, 60],
        "gender": [0, 1],
        "degree": [1, 1],
        "extra_degree": [0, 1],
        "nationality": [0, 1],
        "married": [0, 1],
        "weight": [1, 1],
    },
    "reward_bias": seniors,
}


def rows() -> Any:
    pytest.importorskip("stable_baselines3")
    return fair_envs.make_sb3("FairHiring-v0", n_envs=2, rows="lanes", seed=0, **OWN)


@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make("FairHiring-v0", **OWN),
        lambda: gym.make_vec("FairHiring-v0", num_envs=2, **OWN),
        lambda: parallel_env(**OWN),
        rows,
    ],
    ids=["single", "vector", "parallel", "rows"],
)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"]
)
def test_a_population_and_a_bias_of_ones_own_work_in_every_face(make: Callable[[], Any], duplicate: Any) -> None:
    env = make()
    env.reset()
    again = duplicate(env)
    for one in (env, again):
        lanes = getattr(one, "unwrapped", one).lanes
        assert set(lanes.records["applicant"][:, AGE].tolist()) <= {30, 60}
        assert lanes.rules.code.tables.size - lanes.rules.code.languages_from - 48 == 48 * 2


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"team_size": 0}, "team_size must be between 1 and 10000, got 0"),
        ({"noise": -0.1}, "noise must be between 0 and 10, got -0.1"),
        ({"diversity_weight": 1.5}, "diversity_weight must be between 0 and 1, got 1.5"),
        ({"threshold": "high"}, "threshold must be .* got 'high'"),
        ({"steps_per_year": 0.5}, "steps_per_year must be at least 1, got 0.5"),
        ({"feedback": "late"}, "feedback must be one of 'none', 'full', 'accepted', 'delayed', got 'late'"),
        ({"alignment": "previous"}, "alignment must be one of 'decided', 'next_applicant', got 'previous'"),
        ({"profile": "paper"}, "profile must be one of 'recommended', 'authors', got 'paper'"),
    ],
)
def test_bad_parameters_are_refused_by_name(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hiring(**keywords)


def test_the_authors_profile_is_the_published_code() -> None:
    params = Hiring(profile="authors").params
    assert (params.at_horizon, params.company_counts, params.leaving) == ("terminate", "double", False)
    assert params.alignment == "next_applicant"
    lanes = company(profile="authors", horizon=3)
    ends = [(bool(step.terminated[0]), bool(step.truncated[0])) for step in (act(lanes, REJECT) for _ in range(3))]
    assert ends == [(False, False), (False, False), (True, False)]
    assert Hiring(profile="authors", leaving=True).params.leaving
