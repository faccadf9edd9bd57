"""Scripted policies: what they do in scenes set by hand, and what they achieve."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs import make_rules
from fair_envs.core import Lanes
from fair_envs.core.interactions import MISSING
from fair_envs.envs.fraud.policies import AboveAmount
from fair_envs.envs.harvest.policies import GreedyHarvester, ReactiveHarvester
from fair_envs.envs.harvest.rules import DOWN, LEFT, RECOLOUR, RIGHT, RIPEN, STAY, UP, USE
from fair_envs.envs.hiring.policies import Alternating, Graduates
from fair_envs.envs.pursuit.policies import Planner, ShuffledPlanner
from fair_envs.evaluation import LanesWorld, Policy, Transition, begun, rollout, scripted
from fair_envs.evaluation.deciders import Correct, RandomRate
from fair_envs.support.aliases import Floats
from tests.ferry import BOARD, Ferry
from tests.helpers import BLUE, NARROW, RED, Agent, Bush, actions, scene, uncompiled

FAR = Agent(3, 2)  # another agent, in the way of nobody


def played(policy: Policy, rules: Any, *, lanes: int = 8) -> Iterator[Transition]:
    return rollout(LanesWorld(begun(rules, np.arange(lanes, dtype=np.uint64))), policy)


# The harvest ---------------------------------------------------------------------------------------------------------


def greedy(agents: list[Agent], bushes: list[Bush], **parameters: Any) -> list[int]:
    lanes: Lanes = scene(agents, bushes, **{**NARROW, **parameters})
    chosen: list[int] = actions(GreedyHarvester(lanes.rules), lanes)[0].tolist()
    return chosen


def test_the_greedy_harvester_walks_the_shortest_free_path_to_a_bush() -> None:
    assert greedy([Agent(0, 0), FAR], [Bush(3, 0)])[0] == RIGHT
    assert greedy([Agent(1, 0), Agent(2, 0)], [Bush(3, 0)])[0] == DOWN  # around the other agent


def test_the_greedy_harvester_stays_without_a_bush_to_reach() -> None:
    assert greedy([Agent(0, 0), FAR], []) == [STAY, STAY]


@pytest.mark.parametrize("ripe", [0, 1])
def test_the_greedy_harvester_ripens_and_eats_its_own_colour(ripe: int) -> None:
    assert greedy([Agent(0, 0), FAR], [Bush(0, 1, RED, ripe)])[0] == USE


def test_the_greedy_harvester_recolours_what_pays_less() -> None:
    bush = Bush(0, 1, BLUE, 1)
    assert greedy([Agent(0, 0), FAR], [bush])[0] == RECOLOUR  # 5 against 1 for eating
    assert greedy([Agent(0, 0), FAR], [bush], recolour=0.0)[0] == USE
    assert greedy([Agent(0, 0), FAR], [bush, Bush(1, 0, RED)], recolour=0.0)[0] == USE  # only the first bush counts
    assert greedy([Agent(0, 0), FAR], [Bush(0, 1, RED), Bush(1, 0, BLUE)])[0] == RECOLOUR  # 5 against 3 for ripening
    assert greedy([Agent(0, 0), FAR], [Bush(0, 1, RED, 1), Bush(1, 0, BLUE)])[0] == USE  # 5 in both cases


def test_the_greedy_harvester_ripens_by_the_action_for_it() -> None:
    assert greedy([Agent(0, 0), FAR], [Bush(0, 1)], separate_ripening=True)[0] == RIPEN
    assert greedy([Agent(0, 0), FAR], [Bush(0, 1, RED, 1)], separate_ripening=True)[0] == USE


def test_the_greedy_harvester_does_nothing_that_costs() -> None:
    costly = {"ripen_preferred": -1.0, "recolour": -1.0}
    assert greedy([Agent(0, 0), FAR], [Bush(0, 1)], **costly)[0] == STAY


def reacting(agents: list[Agent], bushes: list[Bush], *, draw: float = 0.0, **parameters: Any) -> list[int]:
    lanes: Lanes = scene(agents, bushes, **{**NARROW, **parameters})
    chosen: list[int] = ReactiveHarvester(lanes.rules).act(lanes.observe(), np.full((1, len(agents)), draw))[0].tolist()
    return chosen


@pytest.mark.parametrize("seen", [{}, {"scaled": False}, {"observation": "extended"}])
def test_the_reactive_harvester_walks_at_random_until_a_bush_is_beside_it(seen: dict[str, Any]) -> None:
    apart = [Bush(2, 0, RED), Bush(1, 1, BLUE)]  # at a distance of 2
    walks = [reacting([Agent(0, 0), FAR], apart, draw=draw, **seen)[0] for draw in (0.0, 0.3, 0.6, 0.99)]
    assert walks == [UP, DOWN, LEFT, RIGHT]
    assert reacting([Agent(0, 0), FAR], [], **seen) == [UP, UP]
    assert reacting([Agent(0, 0), FAR], [Bush(0, 1)], **seen)[0] == USE
    assert reacting([Agent(0, 0), FAR], [Bush(0, 1, BLUE)], **seen)[0] == RECOLOUR
    assert reacting([Agent(0, 0, BLUE), FAR], [Bush(0, 1, BLUE)], **seen)[0] == USE
    assert reacting([Agent(0, 0, BLUE), FAR], [Bush(0, 1, RED)], recolour=0.0, **seen)[0] == USE
    assert reacting([Agent(0, 0), FAR], [Bush(0, 1), Bush(1, 0, BLUE)], **seen)[0] == RECOLOUR


def test_the_reactive_harvester_draws_between_ripening_and_eating() -> None:
    drawn = [reacting([Agent(0, 0), FAR], [Bush(0, 1)], draw=draw, separate_ripening=True)[0] for draw in (0.4, 0.6)]
    assert drawn == [RIPEN, USE]


@pytest.mark.parametrize("policy", [GreedyHarvester, ReactiveHarvester])
def test_the_scripted_harvesters_are_of_their_own_environment(policy: Any) -> None:
    with pytest.raises(ValueError, match="rules must be those of FairHarvest, got those of hiring"):
        policy(make_rules("FairHiring-v0"))


# Decision-makers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("env_id", "favourable"), [("FairHiring-v0", 1), ("FairFraud-v0", 0)])
def test_the_random_rate_is_the_share_of_correct_favourable_decisions(env_id: str, favourable: int) -> None:
    rules = make_rules(env_id)
    given, deserved = [], []
    for step in played(RandomRate(rules), rules):
        people = step.facts[step.active]
        given.extend(people["action"][:, 0] == favourable)
        deserved.extend(people["feedback"][:, 0] == favourable)
    received, right = np.array(given), np.array(deserved)
    assert received.mean() == pytest.approx(right.mean(), abs=0.04)
    assert received[right].mean() == pytest.approx(received[~right].mean(), abs=0.12)  # whoever they are


class Noting(RandomRate):
    """Notes the probabilities of its decisions."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.noted: list[list[float]] = []

    def decide(self, observation: NDArray[Any]) -> Floats:
        found = super().decide(observation)
        self.noted.append(found[0].tolist())
        return found


@uncompiled
def test_the_random_rate_begins_at_one_half_and_in_each_episode_anew() -> None:
    rules = Ferry(seats=3, horizon=4)
    policy = Noting(rules)
    tickets: list[bool] = []
    expected: list[float] = []
    for step in rollout(LanesWorld(begun(rules, np.arange(1, dtype=np.uint64))), policy, episodes=3):
        expected.append(float(np.mean(tickets)) if tickets else 0.5)
        tickets = [] if step.ended[0] else [*tickets, step.facts["feedback"][0, 0] == BOARD]
    assert policy.noted == [pytest.approx([1 - share, share]) for share in expected]


def selection_rates(policy: Policy, rules: Any) -> Floats:
    """Return the groups' selection rates in 8 episodes, shape (8, groups)."""
    counts = np.zeros((8, len(rules.spec.groups), 2))
    for step in played(policy, rules):
        group, action = step.facts["group"][:, 0], step.facts["action"][:, 0]
        for lane in np.flatnonzero(step.active & (action != MISSING)):
            counts[lane, group[lane]] += action[lane], 1
    rates: Floats = counts[..., 0] / counts[..., 1]
    return rates


def test_alternating_keeps_the_groups_selection_rates_equal() -> None:
    rules = make_rules("FairHiring-v0")
    fair, correct = selection_rates(Alternating(rules), rules), selection_rates(Correct(rules), rules)
    assert np.ptp(fair, axis=1).mean() < 0.06 < np.ptp(correct, axis=1).mean()
    assert fair.mean() < correct.mean()  # by levelling down


def test_alternating_without_a_limit_hires_all_who_are_qualified() -> None:
    rules = make_rules("FairHiring-v0", horizon=50)
    patient, correct = (
        [step.action[step.active].tolist() for step in played(policy, rules)]
        for policy in (Alternating(rules, tolerance=1.0), Correct(rules))
    )
    assert patient == correct


def test_alternating_hires_nobody_who_is_not_qualified() -> None:
    rules = make_rules("FairHiring-v0", horizon=50)
    for step in played(Alternating(rules), rules):
        hired = step.facts[step.active & (step.facts["action"][:, 0] == 1)]
        assert (hired["feedback"] == 1).all()


def test_graduates_are_hired_and_are_all_who_are_qualified_and_some_who_are_not() -> None:
    rules = make_rules("FairHiring-v0", horizon=60)
    degree = rules.spec.features.index("degree")
    labels: list[int] = []
    for step in played(Graduates(rules), rules):
        facts = step.facts[step.active]
        assert ((facts["action"][:, 0] == 1) == (facts["features"][:, 0, degree] > 0)).all()
        labels += facts["feedback"][facts["action"] == 1].tolist()
        assert (facts["feedback"][facts["action"] == 0] == 0).all()
    assert 0.5 < np.mean(labels) < 1


def test_graduates_with_an_extra_degree_are_all_qualified() -> None:
    rules = make_rules("FairHiring-v0", horizon=60)
    extra = rules.spec.features.index("extra_degree")
    hired: list[bool] = []
    for step in played(Graduates(rules, extra=True), rules):
        facts = step.facts[step.active]
        chosen = facts["action"][:, 0] == 1
        assert (chosen == (facts["features"][:, 0, extra] > 0)).all()
        assert (facts["feedback"][chosen] == 1).all()
        hired += chosen.tolist()
    assert 0.3 < np.mean(hired) < 0.5


@pytest.mark.parametrize("amount", [0.0, 100.0])
def test_payments_above_the_amount_are_checked(amount: float) -> None:
    rules = make_rules("FairFraud-v0", horizon=40)
    for step in played(AboveAmount(rules, amount), rules):
        paid = step.facts["features"][:, 0, 8] * 8000
        assert (step.action[step.active, 0] == (paid > amount)[step.active]).all()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Alternating, "env must be FairHiring"),
        (Graduates, "env must be FairHiring"),
        (AboveAmount, "env must be FairFraud"),
    ],
)
def test_policies_of_other_environments_are_rejected(kind: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(make_rules("FairLending-v0"))


def test_bad_settings_of_scripted_policies_are_named() -> None:
    with pytest.raises(ValueError, match="tolerance must be"):
        Alternating(make_rules("FairHiring-v0"), tolerance=-0.1)
    with pytest.raises(ValueError, match="amount must be"):
        AboveAmount(make_rules("FairFraud-v0"), -1.0)


# Pursuit -------------------------------------------------------------------------------------------------------------


def test_the_planner_can_play_with_shuffled_roles_by_its_name() -> None:
    policy = scripted(make_rules("FairPursuit-v0"), "shuffled-roles")
    assert isinstance(policy, ShuffledPlanner) and isinstance(policy.team, Planner)
