"""Each rule of FairEpidemic on people set by hand, and the known values of the published code."""

import builtins
import copy
import pickle
from typing import Any, NamedTuple

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core import Lanes, Step
from fair_envs.envs.epidemic import rules as epidemic
from fair_envs.envs.epidemic.networks import NEEDS_NETWORKX, make_network
from fair_envs.envs.epidemic.rules import INFECTED, RECOVERED, SUSCEPTIBLE, Epidemic
from tests.helpers import assert_same, uncompiled

NOBODY = 34
NEIGHBOURS_OF_0 = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31]
COMMUNITY_0 = [0, 1, 3, 4, 5, 6, 7, 10, 11, 12, 13, 16, 17, 19, 21]
PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]  # a triangle with a tail
CHAIN: dict[str, Any] = {"network": "chain", "chain_people": 5}  # of as many people: they share a layout


def world(lanes: int = 1, **parameters: Any) -> Lanes:
    """Return lanes at the start of an episode, by default without burn-in."""
    batch = Lanes(Epidemic(**{"burn_in": 0, **parameters}), lanes)
    batch.seed(0)
    batch.restart()
    return batch


def small(**parameters: Any) -> Lanes:
    """Return five people of whom person 0 is infected."""
    return world(**{"network": PAIRS, "communities": [0, 0, 0, 1, 1], "recovery": 0.0, **parameters})


def act(batch: Lanes, *people: int) -> Step:
    """Vaccinate these people in every lane."""
    action = np.array(people if len(people) > 1 else people[0])
    return batch.advance(np.broadcast_to(action, (batch.count, 1, *action.shape)).copy())


def health(batch: Lanes) -> list[int]:
    found: list[int] = batch.records["health"][0].tolist()
    return found


def who(batch: Lanes, state: int) -> list[int]:
    return [person for person, own in enumerate(health(batch)) if own == state]


def as_written(batch: Lanes, person: int) -> Step:
    """Play a step of the only lane without compilation."""
    step, params = batch.blank_step(), batch.rules.code
    lane, facts = (array.view(np.recarray)[0] for array in (batch.records, step.facts))
    epidemic.describe(lane, params, facts)
    epidemic.step(lane, np.array([person]), params, step.reward[0], facts)
    epidemic.observe(lane, params, step.observation[0])
    lane.time += 1
    return step


def with_luck(batch: Lanes, share: float, person: int, *, monkeypatch: pytest.MonkeyPatch) -> Step:
    """Play a step in which everybody's draw is this share."""
    word = np.uint64(share * 2**32)
    monkeypatch.setattr(epidemic, "random_words", lambda *place: (word,) * 4)
    return as_written(batch, person)


# --------------------------------------------------------------------------------------------- the known values


def test_a_low_draw_infects_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = world()
    step = with_luck(batch, 0.49, 33, monkeypatch=monkeypatch)
    assert who(batch, RECOVERED) == [33] and who(batch, INFECTED) == [0]
    assert step.reward[0, 0] == pytest.approx(33 / 34)
    assert step.facts["outcome"][0].tolist() == [0] * 34


def test_a_high_draw_infects_all_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = world()
    step = with_luck(batch, 0.51, 33, monkeypatch=monkeypatch)
    assert who(batch, INFECTED) == [0, *NEIGHBOURS_OF_0]
    assert who(batch, RECOVERED) == [33]
    assert step.reward[0, 0] == 0.5
    assert np.flatnonzero(step.facts["outcome"][0] == -1).tolist() == NEIGHBOURS_OF_0


def test_a_vaccine_does_nothing_for_the_infected(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = world()
    step = with_luck(batch, 0.49, 0, monkeypatch=monkeypatch)
    assert who(batch, INFECTED) == [0] and not who(batch, RECOVERED)
    assert step.facts["action"][0, 0] == 1 and step.facts["feedback"][0, 0] == 0
    assert not batch.records["immunised"].any()


def test_the_infected_recover_at_the_top_of_their_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = world()
    step = with_luck(batch, 0.996, NOBODY, monkeypatch=monkeypatch)
    assert who(batch, RECOVERED) == [0]
    assert who(batch, INFECTED) == NEIGHBOURS_OF_0
    assert len(who(batch, SUSCEPTIBLE)) == 17
    assert step.facts["outcome"][0, 0] == 1
    assert not batch.records["immunised"].any()


def test_the_infected_stay_so_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = world()
    with_luck(batch, 0.994, NOBODY, monkeypatch=monkeypatch)
    assert 0 in who(batch, INFECTED)


def test_after_the_burn_in_nine_people_are_infected_on_average() -> None:
    batch = world(20_000, burn_in=1)
    infected = (batch.records["health"] == INFECTED).sum(axis=1)
    assert infected.mean() == pytest.approx(8.995, abs=0.06)  # four standard errors
    assert (batch.records["health"] == SUSCEPTIBLE).sum(axis=1).mean() == pytest.approx(25, abs=0.06)
    assert 1 - infected.mean() / 34 == pytest.approx(0.7354, abs=0.002)
    assert not batch.records["doses"].any()


def test_the_karate_club_is_zacharys() -> None:
    network = make_network("karate", "girvan_newman", chain_people=12)
    known = nx.karate_club_graph()
    assert sorted(map(tuple, network.edges.tolist())) == sorted(known.edges)
    assert len(network.edges) == 78
    assert network.degrees()[[33, 0, 32, 2, 1, 3, 31]].tolist() == [17, 16, 12, 10, 9, 6, 6]


def test_its_communities_are_girvan_and_newmans_first_split() -> None:
    network = make_network("karate", "girvan_newman", chain_people=12)
    assert np.flatnonzero(network.community == 0).tolist() == COMMUNITY_0
    assert network.names == ("community 0", "community 1")
    graph = nx.Graph(nx.karate_club_graph().edges)
    assert sorted(map(sorted, next(nx.community.girvan_newman(graph)))) == [
        COMMUNITY_0,
        sorted(set(range(34)) - set(COMMUNITY_0)),
    ]
    one, other = network.community[network.edges].T
    cut = network.edges[one != other].tolist()
    assert cut == [[0, 2], [0, 8], [0, 31], [1, 2], [1, 30], [2, 3], [2, 7], [2, 13], [13, 33], [19, 33]]


@uncompiled
@pytest.mark.parametrize(("action", "row"), [(5, 4), (0, 33), (NOBODY, 33), (33, 32)])
def test_the_authors_show_a_vaccination_in_the_row_before(action: int, row: int) -> None:
    batch = world(observation="authors", table=True)
    seen = act(batch, action).observation[0, 0]
    assert seen[row, 3] == 1 and seen[:, 3].sum() == 1
    assert act(batch, action).observation[0, 0, row, 3] == 2


def test_observations_are_the_rows_of_the_table_one_after_another() -> None:
    batch, table = world(), world(table=True)
    for action in (5, 7, NOBODY, 0, 33):
        seen, rows = act(batch, action).observation, act(table, action).observation
        assert seen.shape == (1, 1, 136) and rows.shape == (1, 1, 34, 4)
        assert np.array_equal(seen[0, 0], rows[0, 0].ravel())
    assert batch.rules.observation_space(batch.rules.params).shape == (136,)


def test_by_default_the_row_is_the_persons_and_only_an_effect_shows() -> None:
    batch = world(table=True)
    seen = act(batch, 5).observation[0, 0]
    assert seen[5, 3] == 1 and seen[:, 3].sum() == 1
    for without_effect in (5, 0, NOBODY):
        seen = act(batch, without_effect).observation[0, 0]
        assert seen[5, 3] == 1 and seen[:, 3].sum() == 1


# ------------------------------------------------------------------------------------------------- the disease


def reference(adjacency: NDArray[Any], before: NDArray[Any], uniform: NDArray[Any], *, tau: float, rho: float) -> Any:
    """Return everybody's health after a step, by inverting each person's distribution; shapes (B, people)."""
    stay = (1 - tau) ** ((before == INFECTED) @ adjacency)
    chances = np.zeros((*before.shape, 3))
    for state, own in enumerate(((stay, 1 - stay, 0), (0, 1 - rho, rho), (0, 0, 1))):
        for following, chance in enumerate(own):
            chances[..., following] += (before == state) * chance
    return (uniform[..., np.newaxis] >= chances.cumsum(axis=-1)[..., :2]).sum(axis=-1)


def test_everybodys_health_follows_from_a_draw_of_their_own() -> None:
    """Another reading of the rules, given the same draws, agrees on every person."""
    from fair_envs.core.randomness import random_words, to_unit_interval

    batch = world(40, recovery=0.2, infection=0.3)
    adjacency, chance = batch.rules.network.adjacency(), np.random.default_rng(0)  # type: ignore[attr-defined]
    for time in range(12):
        before, actions = batch.records["health"].copy(), chance.integers(0, 35, 40)
        treated = before.copy()
        inside = np.flatnonzero(actions < 34)
        treated[inside, actions[inside]] = np.where(
            before[inside, actions[inside]] == SUSCEPTIBLE, RECOVERED, before[inside, actions[inside]]
        )
        keys = batch.records["key"].tolist()
        drawn = np.array(
            [
                [to_unit_interval(random_words(key, time, epidemic.PROGRESS, p // 4)[p % 4]) for p in range(34)]
                for key in keys
            ]
        )
        batch.advance(actions[:, np.newaxis])
        assert np.array_equal(batch.records["health"], reference(adjacency, treated, drawn, tau=0.3, rho=0.2))


def test_draws_of_one_place_differ_between_people_and_steps() -> None:
    batch = world(4000, **CHAIN, patient_zero=1, recovery=0.5)
    health = act(batch, 5).facts["outcome"]
    both = np.corrcoef(health[:, 0], health[:, 2])[0, 1]
    later = act(batch, 5).facts["outcome"]
    assert abs(both) < 0.06
    assert (health[:, 1] == 1).mean() == pytest.approx(0.5, abs=0.03)
    assert (later[:, 1] == 1).mean() == pytest.approx(0.25, abs=0.03)


def test_the_count_of_infected_neighbours_is_kept() -> None:
    batch = world(16, recovery=0.3, infection=0.4)
    adjacency = batch.rules.network.adjacency()  # type: ignore[attr-defined]
    for time in range(20):
        act(batch, time % 35)
        infected = batch.records["health"] == INFECTED
        assert np.array_equal(batch.records["exposure"], infected @ adjacency)
        assert np.array_equal(batch.records["infected"], infected.sum(axis=1))


def test_a_vaccine_protects_in_the_same_step() -> None:
    batch = small(infection=1.0)
    act(batch, 1)
    assert health(batch) == [INFECTED, RECOVERED, INFECTED, SUSCEPTIBLE, SUSCEPTIBLE]
    assert batch.records["immunised"][0].tolist() == [0, 1, 0, 0, 0]


def test_whoever_is_infected_in_a_step_infects_nobody_before_the_next() -> None:
    batch = small(infection=1.0)
    for reached in ([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
        act(batch, 5)
        assert who(batch, INFECTED) == reached


def test_without_infection_and_recovery_nothing_changes() -> None:
    batch = small(infection=0.0)
    for _ in range(5):
        assert act(batch, 5).reward[0, 0] == 0.8
    assert health(batch) == [INFECTED, 0, 0, 0, 0]


def test_the_infected_can_recover_at_once_and_infect_before() -> None:
    batch = small(infection=1.0, recovery=1.0)
    act(batch, 5)
    assert health(batch) == [RECOVERED, INFECTED, INFECTED, SUSCEPTIBLE, SUSCEPTIBLE]


def test_the_step_tells_what_it_did_to_whom() -> None:
    batch = small(infection=1.0, recovery=1.0)
    facts = act(batch, 1).facts[0]
    assert facts["individual"].tolist() == [0, 1, 2, 3, 4]
    assert facts["sensitive"][:, 0].tolist() == facts["group"].tolist() == [0, 0, 0, 1, 1]
    assert facts["features"][:, :3].tolist() == [[0, 1, 0]] + [[1, 0, 0]] * 4
    np.testing.assert_allclose(facts["features"][:, 3], np.array([2, 2, 3, 2, 1]) / 3)
    assert facts["action"].tolist() == [0, 1, 0, 0, 0]
    assert facts["feedback"].tolist() == [0, 1, 1, 1, 1]
    assert facts["outcome"].tolist() == [1, 0, -1, 0, 0]
    later = act(batch, 0).facts[0]
    assert later["features"][:, :3].tolist() == [[0, 0, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert later["action"].tolist() == [1, 0, 0, 0, 0]
    assert later["feedback"].tolist() == [0, 0, 0, 1, 1]


def test_the_oracle_tells_health_and_whom_a_vaccine_helps() -> None:
    batch = small(infection=1.0)
    act(batch, 1)
    assert batch.rules.oracle(batch.records)["health"].tolist() == [[1, 2, 1, 0, 0]]
    assert batch.rules.oracle(batch.records)["feedback"].tolist() == [[0, 0, 0, 1, 1]]


def test_the_reward_is_the_share_that_is_not_infected() -> None:
    batch = small(infection=1.0, recovery=1.0)
    assert act(batch, 1).reward[0, 0] == pytest.approx(0.8)  # 2 is infected; 0 has recovered
    assert act(batch, 5).reward[0, 0] == pytest.approx(0.8)  # 3 is infected


@pytest.mark.nojit
def test_an_episode_is_truncated_at_the_horizon() -> None:
    batch = small(horizon=3)
    ends = [(bool(step.terminated[0]), bool(step.truncated[0])) for step in (act(batch, 5) for _ in range(3))]
    assert ends == [(False, False), (False, False), (False, True)]


def test_luck_does_not_depend_on_the_vaccines() -> None:
    """Person 1 is infected in the same lanes whether or not person 2, who is no neighbour, is vaccinated."""
    one, other = world(64, **CHAIN), world(64, **CHAIN)
    assert np.array_equal(act(one, 2).facts["outcome"][:, 1], act(other, 5).facts["outcome"][:, 1])


# ---------------------------------------------------------------------------------------------------- the start


def test_the_patient_zero_can_be_anybody() -> None:
    assert who(world(patient_zero=7), INFECTED) == [7]


def test_the_first_patient_can_be_random() -> None:
    batch = world(4000, initial="random")
    infected = batch.records["health"] == INFECTED
    assert (infected.sum(axis=1) == 1).all()
    assert np.abs(infected.mean(axis=0) - 1 / 34).max() < 0.012


def test_a_number_of_random_people_can_be_infected_first() -> None:
    batch = world(3000, initial="random", initial_number=2, **CHAIN)
    infected = batch.records["health"] == INFECTED
    assert (infected.sum(axis=1) == 2).all()
    assert np.abs(infected.mean(axis=0) - 2 / 5).max() < 0.04
    assert len(who(world(initial="random", initial_number=34), INFECTED)) == 34


def test_each_person_can_be_infected_first_by_chance() -> None:
    batch = world(3000, initial="random", initial_chance=0.1)
    infected = batch.records["health"] == INFECTED
    assert infected.mean() == pytest.approx(0.1, abs=0.005)
    assert infected.sum(axis=1).std() == pytest.approx((34 * 0.1 * 0.9) ** 0.5, rel=0.1)


@uncompiled
def test_those_infected_first_can_be_given() -> None:
    assert who(world(initial=[4, 2, 4]), INFECTED) == [2, 4]
    assert who(world(initial=[]), INFECTED) == []
    assert world(initial=["b"], network=nx.path_graph(["a", "b", "c"])).records["health"].tolist() == [[0, 1, 0]]


def test_burn_in_steps_are_untreated_and_uncounted() -> None:
    batch = small(infection=1.0, burn_in=2)
    assert who(batch, INFECTED) == [0, 1, 2, 3]
    assert batch.records["time"][0] == 0


def test_a_first_step_has_other_luck_than_the_burn_in() -> None:
    batch = world(2000, **CHAIN, burn_in=1, patient_zero=1, recovery=0.0)
    before = batch.records["health"].copy()
    after = act(batch, 5).facts["outcome"]
    spared = before[:, 0] == SUSCEPTIBLE
    assert (after[spared, 0] == -1).mean() == pytest.approx(0.5, abs=0.06)


# -------------------------------------------------------------------------------------------- several vaccines


@uncompiled
def test_several_vaccines_are_given_in_one_step() -> None:
    batch = small(infection=1.0, vaccines=2)
    facts = act(batch, 1, 2).facts[0]
    assert health(batch) == [INFECTED, RECOVERED, RECOVERED, SUSCEPTIBLE, SUSCEPTIBLE]
    assert facts["action"].tolist() == [0, 1, 1, 0, 0]


@uncompiled
def test_the_same_person_twice_is_one_vaccination_with_effect() -> None:
    batch = small(infection=0.0, vaccines=2)
    act(batch, 3, 3)
    assert batch.records["doses"][0].tolist() == [0, 0, 0, 2, 0, 0]
    assert batch.records["immunised"][0].tolist() == [0, 0, 0, 1, 0]


@uncompiled
def test_several_vaccines_are_several_choices() -> None:
    env = gym.make("FairEpidemic-v0", vaccines=3)
    assert env.action_space == gym.spaces.MultiDiscrete([35] * 3)
    env.reset(seed=0)
    assert env.step(np.array([33, 32, 34]))[4]["fair_action"][[32, 33]].tolist() == [1, 1]


# ------------------------------------------------------------------------------------------------- the networks


def triangle_and_tail() -> list[Any]:
    """Return the same network in every form in which one can be given."""
    graph = nx.Graph(PAIRS)
    nx.set_edge_attributes(graph, 7.5, "weight")
    matrix = nx.to_numpy_array(nx.Graph(PAIRS), nodelist=range(5))
    both_ways = [*PAIRS, *((other, one) for one, other in PAIRS)]
    return [PAIRS, both_ways, graph, matrix, matrix.astype(bool), nx.to_scipy_sparse_array(nx.Graph(PAIRS))]


@pytest.mark.parametrize("form", range(6))
def test_a_network_can_be_given_in_many_forms(form: int) -> None:
    network = Epidemic(network=triangle_and_tail()[form], communities=[0, 0, 0, 1, 1]).network
    assert network.edges.tolist() == sorted(map(list, PAIRS))
    assert network.labels == (0, 1, 2, 3, 4)


def test_the_people_of_a_graph_keep_its_order_and_names() -> None:
    graph = nx.Graph([("d", "c"), ("c", "a")])
    rules = Epidemic(network=graph, communities=[{"a"}, {"c", "d"}], initial=["d"])
    assert rules.network.labels == ("d", "c", "a")
    assert rules.network.community.tolist() == [1, 1, 0]


def test_communities_of_a_network_of_ones_own_are_girvan_and_newmans() -> None:
    network = Epidemic(network=nx.barbell_graph(4, 0)).network
    assert network.community.tolist() == [0] * 4 + [1] * 4


def test_the_chain_is_cut_in_the_middle() -> None:
    network = Epidemic(profile="ml-fairness-gym").network
    assert network.edges.tolist() == [[k, k + 1] for k in range(11)]
    assert network.community.tolist() == [0] * 6 + [1] * 6


@pytest.mark.parametrize(
    ("given", "codes", "names"),
    [
        (["x", "y", "y", "x", "z"], [0, 1, 1, 0, 2], ("x", "y", "z")),
        (np.array([1, 0, 0, 1, 1]), [1, 0, 0, 1, 1], ("community 0", "community 1")),
        ([[0, 4], [1, 2, 3]], [0, 1, 1, 1, 0], ("community 0", "community 1")),
        ({4: "b", 0: "a", 1: "a", 2: "a", 3: "b"}, [0, 0, 0, 1, 1], ("a", "b")),
    ],
)
def test_communities_can_be_given(given: Any, codes: list[int], names: tuple[str, ...]) -> None:
    rules = Epidemic(network=PAIRS, communities=given)
    assert rules.network.community.tolist() == codes
    assert rules.spec.groups == rules.spec.sensitive["community"] == names


def test_components_of_a_network_of_ones_own_are_its_communities() -> None:
    apart = Epidemic(network=[(0, 2), (2, 4), (1, 3)]).network
    assert apart.community.tolist() == [0, 1, 0, 1, 0] and apart.names == ("community 0", "community 1")
    assert Epidemic(network=nx.Graph([(0, 1), (2, 3), (4, 5)])).network.community.tolist() == [0, 0, 1, 1, 2, 2]


def test_labels_of_several_kinds_name_people() -> None:
    rules = Epidemic(network=nx.Graph([("a", 1), (1, (2, 3))]), initial=[(2, 3)])
    assert rules.network.find("initial", ["a", 1, (2, 3)]) == [0, 1, 2]


class OwnGraph(NamedTuple):
    """What looks like a graph and is none of networkx's."""

    nodes: list[Any]
    edges: list[Any]

    def is_directed(self) -> bool:
        return False


def test_given_communities_need_no_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.__import__

    def without(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.startswith("networkx"):
            raise ImportError(name)
        return known(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    Epidemic(), Epidemic(network="chain"), Epidemic(network=PAIRS, communities=[0, 0, 0, 1, 1])
    with pytest.raises(ImportError, match=r"pip install 'fair-envs\[networks\]'"):
        Epidemic(network=PAIRS)
    assert "communities" in NEEDS_NETWORKX


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"network": "karte"}, "network must be one of 'karate', 'chain', a networkx graph"),
        ({"network": 7}, "network must be one of 'karate'"),
        ({"network": []}, "network must have pairs of people numbered from 0"),
        ({"network": [(0, -1)]}, "network must have pairs of people numbered from 0"),
        ({"network": [("a", "b")]}, "network must have pairs of people numbered from 0"),
        ({"network": [(0, 1), (2, 2)]}, "network must have pairs of two people, got 2 with itself"),
        ({"network": np.eye(3)}, "got 0 with itself"),
        ({"network": np.zeros((3, 3))}, "network must have at least 2 people and one pair"),
        ({"network": np.zeros((3, 2))}, "network must be a symmetric matrix of 0 and 1"),
        ({"network": np.triu(np.ones((3, 3)), 1)}, "network must be a symmetric matrix"),
        ({"network": 2 * np.ones((3, 3))}, "network must be a symmetric matrix"),
        ({"network": nx.DiGraph([(0, 1)])}, "network must be undirected"),
        ({"network": OwnGraph([None, 0], [(None, 0)])}, "network must have nodes that differ .* and from None"),
        ({"network": OwnGraph([1, 0, 1], [(1, 0)])}, "network must have nodes that differ from each other"),
        ({"network": OwnGraph([[0], 1], [(0, 1)])}, "network must have edges between its nodes, which are hashable"),
        ({"network": OwnGraph([0, 1], [(0, 5)])}, "network must have edges between its nodes"),
        ({"initial": [True]}, "initial must name people of the network, got .True"),
        ({"communities": "louvain"}, "communities must be 'girvan_newman'"),
        ({"communities": [0, 1]}, "communities must be given for 34 people, got 2"),
        ({"communities": [0] * 34}, "communities must be at least 2, got 1"),
        ({"communities": [0, 2] * 17}, "communities must have the codes 0, 1, ..., or names"),
        ({"communities": [[0], [1]]}, "communities must contain each person, got none with 2"),
        ({"communities": [range(34), [0]]}, "communities must"),
        ({"communities": [list(range(34)), [0]]}, "communities must have people that are in no other community"),
        ({"communities": [list(range(35))]}, "communities must name people of the network"),
        ({"initial": "nobody"}, "initial must be 'patient_zero', 'random' or people, got 'nobody'"),
        ({"initial": [34]}, "initial must name people of the network"),
        ({"initial": 3}, "initial must name people of the network"),
        ({"patient_zero": 34}, "patient_zero must be between 0 and 33, got 34"),
        ({"initial": "random", "initial_number": 35}, "initial_number must be between 1 and 34, got 35"),
        ({"infection": 1.1}, "infection must be between 0 and 1"),
        ({"vaccines": 0}, "vaccines must be between 1 and 1000"),
    ],
)
def test_what_cannot_be_is_refused_by_name(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Epidemic(**parameters)


def test_presets_are_the_papers_the_authors_and_the_gyms() -> None:
    assert Epidemic().params == Epidemic(profile="paper").params
    authors = Epidemic(profile="authors").params
    assert authors._replace(profile="paper", observation="health", table=False) == Epidemic().params
    gyms = Epidemic(profile="ml-fairness-gym").params
    assert (gyms.infection, gyms.recovery, gyms.burn_in, gyms.horizon, gyms.chain_people) == (0.25, 0.01, 3, 100, 12)


@uncompiled
def test_a_large_network_works() -> None:
    graph = nx.barabasi_albert_graph(300, 3, seed=0)
    batch = Lanes(Epidemic(network=graph, communities=[k % 3 for k in range(300)], vaccines=5), 4)
    batch.seed(0)
    batch.restart()
    for _ in range(5):
        batch.advance(np.zeros((4, 1, 5), np.int64))
    infected = batch.records["health"] == INFECTED
    assert np.array_equal(batch.records["exposure"], infected @ batch.rules.network.adjacency())  # type: ignore[attr-defined]


# ----------------------------------------------------------------------------------------------------- the faces


@uncompiled
def test_environments_of_ones_own_network_are_copied_and_pickled() -> None:
    env = gym.make("FairEpidemic-v0", network=nx.cycle_graph(6), communities=[0, 0, 0, 1, 1, 1]).unwrapped
    env.reset(seed=0)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert_same(other.step(6), copy.deepcopy(env).step(6))


@pytest.mark.parametrize(
    "parameters", [{}, {"observation": "authors", "recovery": 0.2}, {"profile": "ml-fairness-gym", **CHAIN}]
)
def test_the_compiled_step_is_the_written_one(parameters: dict[str, Any]) -> None:
    batch, other = world(**parameters), world(**parameters)
    for person in range(min(8, batch.rules.spec.individuals + 1)):
        played, step = act(batch, person), as_written(other, person)
        step.facts["decided"] = 1
        assert_same(played.facts, step.facts)
        assert_same(played.observation, step.observation)
        assert_same(played.reward, step.reward)


def test_the_reset_tells_who_belongs_to_which_community() -> None:
    _, info = gym.make("FairEpidemic-v0").reset(seed=0)
    assert np.flatnonzero(info["fair_group"] == 0).tolist() == COMMUNITY_0
