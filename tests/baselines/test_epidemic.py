"""Agents of FairEpidemic that are written down, and the massaging of vaccinations."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import ArrayLike

from fair_envs.baselines.pcn.rollouts import Random, collect
from fair_envs.baselines.ppo.massaging import Massager, PolicyOutput
from fair_envs.baselines.tasks.epidemic import EpidemicMassager
from fair_envs.envs.epidemic import Vector
from fair_envs.envs.epidemic.policies import (
    Central,
    MostInfectedNeighbours,
    MostNeighbours,
    Nobody,
    RandomSusceptible,
    eigenvector_centrality,
)
from fair_envs.envs.epidemic.rules import Epidemic
from fair_envs.evaluation import DecisionMaker
from fair_envs.faces.sb3 import AgentsVecEnv
from fair_envs.metrics.long_term import VaccinationGap
from fair_envs.support.aliases import Floats

PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]  # a triangle with a tail: degrees 2, 2, 3, 2, 1
SMALL: dict[str, Any] = {"network": PAIRS, "communities": [0, 0, 0, 1, 1]}
S, I, R = np.eye(3).tolist()  # noqa: E741 - the letters of the field


def seen(*health: list[float]) -> Floats:
    """Return the observation of one lane in which these are everybody's health."""
    return np.array([[[*own, 0.0] for own in health]])


def chosen(agent: DecisionMaker, *health: list[float]) -> int:
    """Return whom the agent vaccinates; it must be sure."""
    (row,) = agent.decide(seen(*health))
    assert sorted(row.tolist()) == [0] * (len(row) - 1) + [1]
    return int(row.argmax())


def small_world() -> Vector:
    return Vector(1, **SMALL)


# --------------------------------------------------------------------------------------------------- the agents


def test_most_neighbours_takes_the_susceptible_of_highest_degree_the_first_among_equals() -> None:
    agent = MostNeighbours(small_world())
    assert chosen(agent, S, S, S, S, S) == 2
    assert chosen(agent, I, S, R, S, S) == 1
    assert chosen(agent, I, I, R, R, S) == 4


def test_when_nobody_is_susceptible_nobody_or_the_hub_is_vaccinated() -> None:
    assert chosen(MostNeighbours(small_world()), I, I, R, R, I) == 5
    assert chosen(MostNeighbours(small_world(), otherwise="hub"), I, I, R, R, I) == 2
    env = Vector(1)
    assert MostNeighbours(env, otherwise="hub").decide(seen(*[I] * 34))[0].argmax() == 33


def test_most_infected_neighbours_looks_at_the_infected() -> None:
    agent = MostInfectedNeighbours(small_world())
    assert chosen(agent, S, S, S, S, I) == 3
    assert chosen(agent, I, S, S, S, I) == 1
    assert chosen(agent, I, I, S, S, I) == 2
    assert chosen(agent, S, S, S, S, S) == 0


def test_centrality_is_the_first_eigenvector() -> None:
    import networkx as nx

    graph = nx.Graph(PAIRS)
    known = nx.eigenvector_centrality_numpy(graph)
    found = eigenvector_centrality(nx.to_numpy_array(graph, nodelist=range(5)).astype(np.int64))
    np.testing.assert_allclose(found, [known[k] for k in range(5)], atol=1e-9)


def test_the_central_agent_can_pass_over_the_infected_or_the_immune_alone() -> None:
    assert chosen(Central(small_world()), S, S, I, S, S) == 0
    assert chosen(Central(small_world(), susceptible_only=False), S, S, I, S, S) == 2
    assert chosen(Central(small_world(), susceptible_only=False), S, S, R, S, S) == 0


def test_random_susceptible_takes_them_equally_often() -> None:
    agent = RandomSusceptible(small_world())
    assert agent.decide(seen(S, I, S, R, S)).tolist() == [[1 / 3, 0, 1 / 3, 0, 1 / 3, 0]]
    assert agent.decide(seen(I, I, R, R, I)).tolist() == [[0, 0, 0, 0, 0, 1]]


def test_nobody_vaccinates_nobody() -> None:
    assert chosen(Nobody(small_world()), S, S, S, S, S) == 5


def test_agents_read_flat_observations_too() -> None:
    agent = MostNeighbours(small_world())
    assert agent.decide(seen(I, S, R, S, S).reshape(1, -1)).argmax() == 1


@pytest.mark.parametrize(
    ("kind", "last_reward"),
    [(MostNeighbours, 0.275), (MostInfectedNeighbours, 0.208), (Random, 0.124), (Nobody, 0.087)],
)
def test_agents_play_and_end_up_where_they_are_known_to(kind: Any, last_reward: float) -> None:
    env = Vector(200)
    episodes = collect(env, kind(env), episodes=400, rng=np.random.default_rng(0), seed=0)
    assert np.mean([episode.rewards[-1, 0] for episode in episodes]) == pytest.approx(last_reward, abs=0.03)


def test_agents_ask_for_an_epidemic_with_one_vaccine() -> None:
    wrong: Any
    for kind in (MostNeighbours, EpidemicMassager):
        for wrong in (Vector(1, vaccines=2), gym.make_vec("FairHiring-v0", num_envs=1)):
            with pytest.raises(ValueError, match="env must be FairEpidemic with one vaccine a step, got"):
                kind(wrong)
        for wrong in (gym.make("CartPole-v1"), 3):
            with pytest.raises(TypeError, match="env must be an environment of fair_envs, with any interface, got"):
                kind(wrong)
    with pytest.raises(ValueError, match="otherwise must be 'nobody' or 'hub', got 'first'"):
        MostNeighbours(small_world(), otherwise="first")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------- massaging


def gap_of(vaccinated: ArrayLike, infected: ArrayLike, *, lanes: int = 1) -> VaccinationGap:
    """Return the gap after so many vaccinations and infections in each community."""
    measure = VaccinationGap(lanes, groups=2)
    measure.counts[:] = np.stack([vaccinated, infected], axis=-1)
    return measure


KNOWN_GAP = gap_of([3, 1], [5, 6])  # c0 .5238, c1 .2143, nobody .3571
NOBODY = 34
ALL = [S] * 34


def massaged(
    action: int,
    chance: float,
    *health: list[float],
    short: VaccinationGap = KNOWN_GAP,
    favourite: int = 24,
    **options: Any,
) -> int:
    """Return what becomes of a decision of this probability; the policy's favourite is another person."""
    massager: Massager = EpidemicMassager(Epidemic(), **options)
    probabilities = np.full((1, 35), (1 - chance) / 1000)
    probabilities[0, favourite] = 1 - chance
    probabilities[0, action] = chance
    given, output = np.array([action]), PolicyOutput(probabilities=probabilities)
    found = massager(seen(*(health or ALL)), given, output, short, threshold=0.0619)
    assert given.tolist() == [action] and found.shape == (1,) and not np.shares_memory(given, found)
    return int(found[0])


def everybody(state: list[float], **others: list[float]) -> list[list[float]]:
    """Return everybody's health: this one, but for the people named like ``p5``."""
    return [others.get(f"p{k}", state) for k in range(34)]


def test_the_known_options_have_the_known_gaps() -> None:
    assert [round(float(KNOWN_GAP.if_taken(np.array([g]))[0]), 4) for g in (0, 1, -1)] == [0.5238, 0.2143, 0.3571]


def test_an_unlikely_vaccination_moves_to_the_likeliest_of_the_better_community() -> None:
    assert massaged(5, 0.02) == 24


def test_a_likely_vaccination_stays() -> None:
    assert massaged(5, 0.07) == 5
    assert massaged(5, 0.0619) == 24


def test_a_vaccination_of_the_better_community_stays() -> None:
    assert massaged(14, 0.02) == 14


def test_a_vaccine_for_nobody_can_become_one() -> None:
    assert massaged(NOBODY, 0.02) == 24


def test_the_likeliest_must_be_susceptible() -> None:
    assert massaged(5, 0.02, *everybody(S, p24=I)) == 2  # the first of equal ones
    assert massaged(5, 0.02, *everybody(I, p5=S, p20=S)) == 20


def test_nobody_is_best_where_any_vaccination_widens_the_gap() -> None:
    level = gap_of([2, 2], [4, 4])
    assert massaged(5, 0.02, short=level) == NOBODY
    assert massaged(14, 0.02, short=level) == NOBODY
    assert massaged(NOBODY, 0.02, short=level) == NOBODY


def test_a_community_without_susceptible_people_is_no_choice() -> None:
    only_first = [S if k in (0, 1, 3, 4, 5) else I for k in range(34)]
    assert massaged(5, 0.02, *only_first) == NOBODY
    assert massaged(NOBODY, 0.02, *only_first) == NOBODY
    assert massaged(5, 0.02, *only_first, ineffective=True) == 24  # the published code


def test_a_vaccine_without_effect_is_weighed_as_nobodys() -> None:
    sick = everybody(S, p14=I)
    assert massaged(14, 0.02, *sick) == 24
    assert massaged(14, 0.02, *sick, ineffective=True) == 14  # the published code: of the better community
    level = gap_of([2, 2], [4, 4])
    assert massaged(14, 0.02, *sick, short=level) == 14
    assert massaged(14, 0.02, *sick, short=level, ineffective=True) == NOBODY


def test_when_nobody_is_susceptible_decisions_stay() -> None:
    for action in (5, 14, NOBODY):
        assert massaged(action, 0.02, *[I] * 34) == action


def test_a_tie_keeps_the_decision_and_in_the_published_code_does_not() -> None:
    tie = gap_of([0, 1], [1, 3])  # c0 and nobody .25, c1 .5
    assert massaged(5, 0.02, short=tie) == 5
    assert massaged(NOBODY, 0.02, short=tie) == NOBODY
    assert massaged(14, 0.02, short=tie, favourite=3) == 3
    assert massaged(NOBODY, 0.02, short=tie, favourite=3, ties="first") == 3
    assert massaged(5, 0.02, short=tie, favourite=3, ties="first") == 5


def test_a_tie_that_floats_do_not_see_keeps_the_decision() -> None:
    """1/5 against 3/10, as it is, and 2/5 against 3/10 are the same gap, though not as floats."""
    tie = gap_of([1, 3], [4, 9])
    gaps = [tie.if_taken(np.array([group]))[0] for group in (0, -1)]
    assert gaps[0] != gaps[1] and gaps[0] == pytest.approx(gaps[1])
    assert massaged(5, 0.02, short=tie) == 5
    assert massaged(NOBODY, 0.02, short=tie) == NOBODY
    assert massaged(NOBODY, 0.02, short=tie, favourite=3, ties="first") == 3


def test_the_massager_takes_an_environment_of_any_face_or_its_rules() -> None:
    faces = (gym.make("FairEpidemic-v0"), gym.make_vec("FairEpidemic-v0", num_envs=2), AgentsVecEnv(Epidemic(), 2))
    for env in (*faces, Epidemic()):
        assert EpidemicMassager(env).people == 34


def test_lanes_are_massaged_apart() -> None:
    massager = EpidemicMassager(Epidemic())
    probabilities = np.full((3, 35), 0.001)
    probabilities[:, 24], probabilities[:, 5] = 0.9, [0.02, 0.07, 0.02]
    observation = np.repeat(seen(*ALL), 3, axis=0)
    short = gap_of([3, 1], [5, 6], lanes=3)
    short.counts[2, :, 0] = [1, 3]
    found = massager(observation, np.array([5, 5, 5]), PolicyOutput(probabilities), short, threshold=0.0619)
    assert found.tolist() == [24, 5, 5]


def test_each_lane_is_given_its_own_best() -> None:
    probabilities = np.full((2, 35), 0.001)
    probabilities[:, [3, 24]] = 0.4
    short = gap_of([3, 1], [5, 6], lanes=2)
    short.counts[1, :, 0] = [1, 3]
    observation = np.repeat(seen(*ALL), 2, axis=0)
    found = EpidemicMassager(Epidemic())(
        observation, np.array([5, 14]), PolicyOutput(probabilities), short, threshold=0.1
    )
    assert found.tolist() == [24, 3]


def test_whom_the_policy_is_sure_of_may_be_the_last_person_or_nobody() -> None:
    last = NOBODY - 1
    assert massaged(last, 0.02) == last  # of the better community
    health = [*ALL[:last], R]
    assert massaged(last, 0.02, *health) == 24  # without effect it is nobody's
    assert massaged(NOBODY, 0.02) == 24


def test_the_massager_asks_for_probabilities_and_known_options() -> None:
    massager = EpidemicMassager(Epidemic())
    for output in (PolicyOutput(), PolicyOutput(np.ones((1, 34)))):
        with pytest.raises(ValueError, match=r"policy must have probabilities of shape \(1, 35\)"):
            massager(seen(*ALL), np.array([5]), output, KNOWN_GAP, threshold=0.1)
    with pytest.raises(ValueError, match="ties must be 'keep' or 'first', got 'flip'"):
        EpidemicMassager(Epidemic(), ties="flip")  # type: ignore[arg-type]
