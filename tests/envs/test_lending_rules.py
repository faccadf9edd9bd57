"""Each rule of FairLending on a bank set by hand, and the known values of the published code."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from fair_envs.core import Lanes
from fair_envs.envs.lending import parallel_env
from fair_envs.envs.lending.params import ADVANTAGED, DISADVANTAGED, DISTRIBUTIONS, REPAYMENTS
from fair_envs.envs.lending.rules import ACCEPT, REJECT, Lending, set_applicant
from fair_envs.support.aliases import Floats
from fair_envs.wrappers import from_probabilities, twin_decisions
from tests.helpers import assert_same, uncompiled

FIRST = np.array(DISTRIBUTIONS["delayed_impact"])
REPAY = np.array(REPAYMENTS["delayed_impact"])
SCORES = 7
OWN: dict[str, Any] = {"distributions": [[0, 0, 4], [2, 1, 1]], "repayment": (0.0, 0.5, 1.0), "advantaged_share": 0.0}
OPPORTUNITY, SHARES = SCORES + 2, SCORES + 4  # places in an observation


def bank(**parameters: Any) -> Lanes:
    """Return a bank at the start of an episode."""
    lanes = Lanes(Lending(**parameters), 1)
    lanes.seed(0)
    lanes.restart()
    return lanes


def ask(lanes: Lanes, group: int, score: int, repays: bool) -> None:
    """Put this applicant in place of the one who waits."""
    for name, value in {"group": group, "score": score, "repays": repays}.items():
        lanes.records[name] = value


def decide(lanes: Lanes, action: int, *applicant: Any) -> Any:
    """Decide on this applicant, by default on the one who waits."""
    if applicant:
        ask(lanes, *applicant)
    return lanes.advance(np.full((lanes.count, 1), action))


def cash(lanes: Lanes) -> float:
    return float(lanes.records["cash"][0])


def assert_scores(lanes: Lanes, group: int, shares: ArrayLike) -> None:
    """Fail unless the group has these shares of scores, and the other one its first ones."""
    np.testing.assert_allclose(lanes.records["score_shares"][0, group], np.array(shares, float), atol=1e-12)
    np.testing.assert_allclose(lanes.records["score_shares"][0, 1 - group], FIRST[1 - group])


# --------------------------------------------------------------------------------------------- the known values


@pytest.mark.nojit
def test_a_repaid_loan_earns_interest_and_raises_the_score() -> None:
    lanes = bank()
    played = decide(lanes, ACCEPT, ADVANTAGED, 3, True)
    assert cash(lanes) == 10_001 and played.reward[0, 0] == 1 and played.facts["outcome"][0, 0] == 1
    assert_scores(lanes, ADVANTAGED, (0, 0.1, 0.1, 0.19, 0.31, 0.3, 0))


def test_a_lost_loan_costs_its_amount_and_lowers_the_score() -> None:
    lanes = bank()
    played = decide(lanes, ACCEPT, ADVANTAGED, 3, False)
    assert cash(lanes) == 9_999 and played.reward[0, 0] == -1 and played.facts["outcome"][0, 0] == -1
    assert_scores(lanes, ADVANTAGED, (0, 0.1, 0.11, 0.19, 0.3, 0.3, 0))


def test_a_rejected_applicant_keeps_the_score_and_earns_nothing() -> None:
    lanes = bank(observation="authors")
    played = decide(lanes, REJECT, ADVANTAGED, 3, True)
    assert cash(lanes) == 10_000 and played.reward[0, 0] == 0 and played.facts["outcome"][0, 0] == 0
    assert_scores(lanes, ADVANTAGED, FIRST[ADVANTAGED])
    assert lanes.records["repaying_count"][0].tolist() == [[1, 0], [0, 0]]


def test_nobody_falls_below_the_lowest_score() -> None:
    lanes = bank()
    played = decide(lanes, ACCEPT, DISADVANTAGED, 0, False)
    assert cash(lanes) == 9_999 and played.facts["outcome"][0, 0] == 0
    assert_scores(lanes, DISADVANTAGED, FIRST[DISADVANTAGED])


def test_nobody_rises_above_the_highest_score() -> None:
    own = (0, 0.1, 0.1, 0.2, 0.3, 0.29, 0.01)
    lanes = bank(distributions=[own, FIRST[1].tolist()])
    played = decide(lanes, ACCEPT, ADVANTAGED, 6, True)
    assert cash(lanes) == 10_001 and played.facts["outcome"][0, 0] == 0
    assert_scores(lanes, ADVANTAGED, own)


def test_no_more_moves_than_is_left_at_a_score() -> None:
    lanes = bank(mass_shift=0.15)
    decide(lanes, ACCEPT, ADVANTAGED, 2, True)
    assert_scores(lanes, ADVANTAGED, (0, 0.1, 0, 0.3, 0.3, 0.3, 0))


@pytest.mark.parametrize(("repays", "expected", "changed"), [(True, 10_000.6, 5), (False, 9_998, 3)])
def test_a_loan_has_its_amount_and_interest(repays: bool, expected: float, changed: int) -> None:
    lanes = bank(loan_amount=2, interest_rate=0.3)
    decide(lanes, ACCEPT, ADVANTAGED, 4, repays)
    assert cash(lanes) == pytest.approx(expected, abs=1e-9)
    shares = FIRST[ADVANTAGED].copy()
    shares[[4, changed]] += (-0.01, 0.01)
    assert_scores(lanes, ADVANTAGED, shares)


@pytest.mark.nojit
@pytest.mark.parametrize(("label", "repays"), [(0.39, 0), (0.41, 1)])
def test_group_score_and_label_are_drawn_by_the_inverse_of_their_distributions(label: float, repays: int) -> None:
    lanes = bank()
    lane = lanes.records.view(np.recarray)[0]
    set_applicant(lane, lanes.rules.code.view(np.recarray)[0], 0.7, 0.45, label)
    assert (lane.group, lane.score, lane.repays) == (DISADVANTAGED, 3, repays)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [((0.0, 0.0), (ADVANTAGED, 1)), ((0.499, 0.0999), (ADVANTAGED, 1)), ((0.5, 0.0), (DISADVANTAGED, 0)),
     ((0.5, 0.1), (DISADVANTAGED, 1)), ((0.0, 1 - 2**-32), (ADVANTAGED, 5)), ((0.9, 1 - 2**-32), (DISADVANTAGED, 4))],
)  # fmt: skip
def test_no_draw_leads_to_a_score_that_nobody_has(levels: tuple[float, float], expected: tuple[int, int]) -> None:
    lanes = bank()
    lane = lanes.records.view(np.recarray)[0]
    set_applicant(lane, lanes.rules.code.view(np.recarray)[0], *levels, 0.5)
    assert (lane.group, lane.score) == expected


def test_the_authors_observation_begins_with_zeros_and_counts_in_shares_of_all_plus_one() -> None:
    lanes = bank(observation="authors")
    first = lanes.observe()[0, 0]
    assert first.shape == (25,) and first[:SCORES].sum() == first[SCORES:OPPORTUNITY].sum() == 1
    assert not first[OPPORTUNITY:].any()
    seen = decide(lanes, ACCEPT, ADVANTAGED, 3, True).observation[0, 0]
    assert seen[OPPORTUNITY:SHARES].tolist() == [1, 0]
    assert seen[SHARES:].tolist() == [0, 0, 0, 0.5, 0, 0, 0] + [0] * 7


@pytest.mark.parametrize("observation", ["estimated", "authors"])
def test_the_301st_decision_removes_the_first_from_the_window(observation: str) -> None:
    lanes = bank(observation=observation)
    decide(lanes, ACCEPT, ADVANTAGED, 6, True)
    for _ in range(299):
        seen = decide(lanes, REJECT, DISADVANTAGED, 2, True).observation[0, 0]
    assert seen[OPPORTUNITY] == 1 and seen[SHARES + 6] > 0
    seen = decide(lanes, REJECT, DISADVANTAGED, 2, True).observation[0, 0]
    assert seen[OPPORTUNITY] == 0 and seen[SHARES + 6] == 0
    assert seen[SHARES + SCORES + 2] == pytest.approx(1 if observation == "estimated" else 300 / 301)


# ------------------------------------------------------------------------------------------------- observations


def expected_observation(past: list[tuple[int, int, int, int]], *, authors: bool) -> list[float]:
    """Return what the window shows of these applicants: group, score, repays, accepted; as the page defines it."""
    opportunities, shares = [], []
    for group in (ADVANTAGED, DISADVANTAGED):
        own = [
            (repays if authors else REPAY[score], accepted, score) for g, score, repays, accepted in past if g == group
        ]
        wanted = sum(weight for weight, _, _ in own)
        opportunities.append(sum(weight for weight, accepted, _ in own if accepted) / wanted if wanted else 0)
        whole = len(past) + 1 if authors else max(len(own), 1)
        shares += [sum(x == score for _, _, x in own) / whole for score in range(SCORES)]
    return [*opportunities, *shares]


@pytest.mark.nojit
@pytest.mark.parametrize("observation", ["estimated", "authors"])
def test_the_window_is_what_a_count_of_its_applicants_says(observation: Any) -> None:
    lanes, chance = bank(observation=observation, window=11), np.random.default_rng(0)
    past: list[tuple[int, int, int, int]] = []
    for _ in range(60):
        lane, action = lanes.records[0], int(chance.integers(2))
        past.append((int(lane["group"]), int(lane["score"]), int(lane["repays"]), action))
        seen = decide(lanes, action).observation[0, 0]
        expected = expected_observation(past[-11:], authors=observation == "authors")
        np.testing.assert_allclose(seen[OPPORTUNITY:], expected, atol=1e-6)
        waiting = {int(lanes.records["score"][0]), SCORES + int(lanes.records["group"][0])}
        assert set(np.flatnonzero(seen[:OPPORTUNITY]).tolist()) == waiting


@pytest.mark.parametrize(
    ("observation", "leaks"), [("estimated", False), ("authors", True), ("ml-fairness-gym", False)]
)
def test_only_the_authors_observation_tells_whether_the_rejected_would_have_repaid(
    observation: str, leaks: bool
) -> None:
    seen = []
    for repays in (False, True):
        lanes = bank(observation=observation)
        decide(lanes, ACCEPT, ADVANTAGED, 3, True)
        seen.append(decide(lanes, REJECT, ADVANTAGED, 3, repays).observation)
    assert (not np.array_equal(*seen)) == leaks


def test_the_gyms_observation_is_cash_score_and_group() -> None:
    lanes = bank(profile="ml-fairness-gym")
    ask(lanes, DISADVANTAGED, 2, True)
    assert lanes.observe()[0, 0].tolist() == [1000, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    assert decide(lanes, ACCEPT).observation[0, 0, 0] == pytest.approx(1000.3)


@pytest.mark.parametrize("profile", ["paper", "authors", "ml-fairness-gym"])
def test_every_entry_of_an_observation_has_a_name(profile: str) -> None:
    rules = Lending(profile=profile)
    names = rules.observed_features(rules.params)
    assert len(names) == len(set(names)) == rules.observation_space(rules.params).shape[0]
    assert names[names.index("score_0") + 7 :][:2] == ("advantaged", "disadvantaged")


# ------------------------------------------------------------------------------------- the end, feedback and facts


def test_the_episode_terminates_when_the_cash_does_not_suffice_for_a_loan() -> None:
    lanes = bank(starting_cash=2)
    assert not decide(lanes, ACCEPT, ADVANTAGED, 3, False).terminated[0]
    played = decide(lanes, ACCEPT, ADVANTAGED, 3, False)
    assert played.terminated[0] and not played.truncated[0] and cash(lanes) == 0


@pytest.mark.parametrize(("how", "terminated"), [("truncate", False), ("terminate", True)])
def test_the_horizon_truncates_unless_it_is_to_terminate(how: str, terminated: bool) -> None:
    lanes = bank(horizon=2, at_horizon=how)
    assert not decide(lanes, REJECT).terminated[0]
    played = decide(lanes, REJECT)
    assert played.terminated[0] == terminated and played.truncated[0] != terminated


def test_the_bank_keeps_no_more_than_the_most_cash() -> None:
    lanes = bank(max_cash=10_000.5)
    assert decide(lanes, ACCEPT, ADVANTAGED, 3, True).reward[0, 0] == 1
    assert cash(lanes) == 10_000.5


@pytest.mark.parametrize(
    ("kind", "told"), [("none", [-1, -1]), ("full", [1, 0]), ("accepted", [-1, 0]), ("delayed", [-1, -1])]
)
def test_repayment_is_told_as_the_feedback_says(kind: str, told: list[int]) -> None:
    lanes = bank(feedback=kind, delay=1)
    first = decide(lanes, REJECT, ADVANTAGED, 3, True)
    second = decide(lanes, ACCEPT, DISADVANTAGED, 2, False)
    assert [int(step.facts["feedback"][0, 0]) for step in (first, second)] == told
    assert second.facts["late_count"][0] == (kind == "delayed")
    if kind == "delayed":
        assert (second.facts["late_individual"][0, 0], second.facts["late_feedback"][0, 0]) == (0, 1)


def test_the_record_says_who_was_decided_on() -> None:
    lanes = bank()
    decide(lanes, REJECT)
    facts = decide(lanes, ACCEPT, DISADVANTAGED, 2, True).facts[0]
    assert facts["individual"] == 1 and facts["action"] == ACCEPT and facts["group"] == DISADVANTAGED
    assert facts["sensitive"].tolist() == [[DISADVANTAGED]] and facts["legitimate"].tolist() == [[2]]
    np.testing.assert_allclose(facts["features"][0], [2 / 6, 1], rtol=1e-6)


def test_the_oracle_knows_who_repays_how_likely_and_the_true_scores() -> None:
    lanes = bank()
    decide(lanes, ACCEPT, ADVANTAGED, 3, True)
    ask(lanes, DISADVANTAGED, 2, True)
    known = lanes.rules.oracle(lanes.records)
    assert known["feedback"].tolist() == [[1]] and known["score"].tolist() == [[0.45]]
    np.testing.assert_array_equal(known["distribution"], lanes.records["score_shares"])
    known["distribution"][:] = 0
    assert lanes.records["score_shares"].any()


# ------------------------------------------------------------------------------------------------ whose luck


def test_decisions_change_nobodys_luck() -> None:
    """With no mass shifted the applicants are the same whatever the bank decides."""
    met: list[list[tuple[int, int, int]]] = []
    for action in (REJECT, ACCEPT):
        lanes = bank(mass_shift=0)
        met.append([])
        for _ in range(50):
            lane = lanes.records[0]
            met[-1].append((int(lane["group"]), int(lane["score"]), int(lane["repays"])))
            decide(lanes, action)
    assert met[0] == met[1] and len(set(met[0])) > 5


def blind(seen: NDArray[Any]) -> Floats:
    """Accept scores from 3 on, (B, agents, 2)."""
    accepts = seen[..., 3:SCORES].sum(axis=-1)
    return np.stack([1 - accepts, accepts], axis=-1).astype(np.float64)


def test_in_a_twin_the_groups_exchange_their_names_and_nothing_else() -> None:
    played = twin_decisions(Lending(horizon=400), from_probabilities(blind), episodes=3, lanes=3)
    np.testing.assert_array_equal(played.factual.action, played.counterfactual.action)
    np.testing.assert_array_equal(played.factual.outcome, played.counterfactual.outcome)
    np.testing.assert_array_equal(played.factual.returns, played.counterfactual.returns)
    assert played.attribute == "group"
    np.testing.assert_array_equal(played.factual.sensitive["group"], 1 - played.counterfactual.sensitive["group"])


def test_flipping_in_mid_episode_swaps_all_that_is_known_of_the_groups() -> None:
    lanes, twin = bank(observation="authors", window=11), bank(observation="authors", window=11)
    for k in range(33):
        decide(lanes, k % 2), decide(twin, k % 2)
    lanes.rules.flip(twin.records, np.ones((1, 1), bool))
    for k in range(40):
        one, other = decide(lanes, k % 3 == 0), decide(twin, k % 3 == 0)
        np.testing.assert_array_equal(one.facts["group"], 1 - other.facts["group"])
        seen, swapped = one.observation[0, 0], other.observation[0, 0]
        np.testing.assert_array_equal(seen[:SCORES], swapped[:SCORES])
        np.testing.assert_array_equal(seen[SHARES:].reshape(2, -1)[::-1].ravel(), swapped[SHARES:])
        np.testing.assert_array_equal(seen[OPPORTUNITY:SHARES][::-1], swapped[OPPORTUNITY:SHARES])
    lanes.rules.flip(twin.records, np.ones((1, 1), bool))
    assert_same(twin.records, lanes.records)


def test_a_lane_that_is_not_flipped_stays_as_it_was() -> None:
    lanes = Lanes(Lending(), 2)
    lanes.seed(0)
    lanes.restart()
    before = lanes.snapshot()
    lanes.rules.flip(lanes.records, np.array([[False], [True]]))
    assert_same(lanes.records[:1], before[:1])
    assert lanes.records["group"][1] == 1 - before["group"][1]


def test_whoever_is_assigned_the_other_group_keeps_score_and_luck() -> None:
    lanes = bank()
    ask(lanes, ADVANTAGED, 4, True)
    before = lanes.snapshot()
    lanes.rules.assign(lanes.records, "group", DISADVANTAGED)
    assert lanes.records["group"][0] == DISADVANTAGED
    lanes.records["group"] = ADVANTAGED
    assert_same(lanes.records, before)


@pytest.mark.parametrize(
    ("attribute", "code", "message"),
    [("age", 0, "attribute must be 'group', got 'age'"), ("group", 2, "code must be 0 or 1, got 2")],
)
def test_what_cannot_be_assigned_is_refused(attribute: str, code: int, message: str) -> None:
    lanes = bank()
    with pytest.raises(ValueError, match=message):
        lanes.rules.assign(lanes.records, attribute, code)


# ------------------------------------------------------------------------------------------------- own tables


@uncompiled
def test_a_world_of_ones_own_has_any_number_of_scores() -> None:
    lanes = bank(**OWN)
    assert lanes.records["score_shares"][0].tolist() == [[0, 0, 1], [0.5, 0.25, 0.25]]
    assert lanes.rules.params.distributions == "own"
    met = set()
    for _ in range(100):
        lane = lanes.records[0]
        met.add((int(lane["group"]), int(lane["score"])))
        assert lane["score"] == 1 or lane["repays"] == (lane["score"] == 2)
        assert decide(lanes, REJECT).observation.shape == (1, 1, 3 + 2 + 2 + 6)
    assert met == {(1, 0), (1, 1), (1, 2)}


def test_equal_groups_begin_alike() -> None:
    chances = bank(distributions="equal").records["score_shares"][0]
    np.testing.assert_array_equal(chances[0], chances[1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"distributions": "fico"},
            "distributions must be one of 'delayed_impact', 'equal' or a table of numbers, got",
        ),
        (
            {"distributions": [0.5, 0.5]},
            r"distributions must have shape \(2, scores\), with 2 to 1000 scores, got \(2,\)",
        ),
        ({"distributions": [[1], [1]]}, r"distributions must have shape \(2, scores\)"),
        ({"distributions": [[1, -1], [1, 0]]}, "distributions must have finite weights of at least 0, got -1"),
        ({"distributions": [[0, 0], [1, 0]]}, "distributions must have weights that sum to a positive"),
        ({"repayment": "always"}, "repayment must be one of 'delayed_impact' or a table of numbers, got 'always'"),
        ({"repayment": [0.5, 0.5]}, r"repayment must have shape \(7,\), one entry for each score, got \(2,\)"),
        ({"distributions": [[1, 1], [1, 1]]}, r"repayment must have shape \(2,\), .*, got \(7,\)"),
        ({"repayment": [0, 0, 0, 0, 0, 0, 1.5]}, "repayment must hold probabilities between 0 and 1, got 1.5"),
        ({"repayment": [0, 0, 0, 0, 0, 0, float("nan")]}, "repayment must hold probabilities between 0 and 1, got nan"),
        ({"starting_cash": 0.5}, r"starting_cash must be between loan_amount \(1\) and max_cash \(1e\+20\), got 0.5"),
        (
            {"max_cash": 1e300, "observation": "ml-fairness-gym"},
            r"max_cash must be at most 3.40282e\+38 to be observed, got 1e\+300",
        ),
        ({"max_cash": 10}, r"starting_cash must be between loan_amount \(1\) and max_cash \(10\), got 10000"),
        ({"window": 0}, "window must be between 1 and 1000000, got 0"),
        ({"profile": "gym"}, "profile must be one of 'paper', 'authors', 'ml-fairness-gym', got 'gym'"),
    ],
    ids=str,
)
def test_what_is_no_world_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Lending(**given)


def test_what_is_given_overrides_the_profile() -> None:
    params = Lending(profile="authors", observation="estimated").params
    assert (params.horizon, params.at_horizon, params.observation) == (2000, "terminate", "estimated")


def test_sums_over_the_window_do_not_drift() -> None:
    """After many windows of random decisions the sums are bit for bit those of the same window alone."""
    lanes, chance = bank(window=11), np.random.default_rng(1)
    for _ in range(1000):
        decide(lanes, int(chance.integers(2)))
    decisions = lanes.records["window"][0]
    expected = np.zeros((2, 2), np.int64)
    for decision in decisions.tolist():
        expected[decision >> 2 & 1, decision >> 1 & 1] += lanes.rules.code["repayment_units"][0, decision >> 3]
    assert lanes.records["expected_accepted"][0].tolist() == expected[:, ACCEPT].tolist()
    assert lanes.records["expected_all"][0].tolist() == expected.sum(axis=1).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make("FairLending-v0", **OWN),
        lambda: gym.make_vec("FairLending-v0", num_envs=2, **OWN),
        lambda: parallel_env(**OWN),
    ],
    ids=["single", "vector", "parallel"],
)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"]
)
@uncompiled
def test_a_world_of_ones_own_works_in_every_face(make: Callable[[], Any], duplicate: Any) -> None:
    env = make()
    env.reset(seed=0)
    for one in (env, duplicate(env)):
        rules = one.unwrapped.lanes.rules
        assert rules.repayment.tolist() == list(OWN["repayment"])
        assert rules.oracle(one.unwrapped.lanes.records)["distribution"][0].tolist() == [[0, 0, 1], [0.5, 0.25, 0.25]]
