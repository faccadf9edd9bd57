"""The rules of FairEpidemic on one lane, in the order in which they are applied."""

import math
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, rule
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import random_words, uniform
from fair_envs.envs.epidemic.networks import GIRVAN_NEWMAN, NETWORKS, Network, make_network
from fair_envs.envs.epidemic.params import AUTHORS, GIVEN, PATIENT_ZERO, PROFILES, EpidemicParams
from fair_envs.support.aliases import Facts, Floats, Floats32, Ints, Lane
from fair_envs.support.parameters import encode

SUSCEPTIBLE, INFECTED, RECOVERED = range(3)
HEALTH_NAMES = ("susceptible", "infected", "recovered")
LEFT_ALONE, VACCINATED = range(2)  # the possible decisions about a person
CAUGHT_IT, GOT_WELL = -1, 1  # changes of health

# Random streams
FIRST_INFECTED, BURN_IN, PROGRESS = range(3)

FEATURES = (*HEALTH_NAMES, "degree")
LAST = len(HEALTH_NAMES)  # the column of an observation that shows vaccinations
COLUMNS = LAST + 1
WORDS = 4  # random words per draw
ALWAYS = 2**32  # larger than every word

KNOWN: Mapping[str, tuple[str, ...]] = {
    "network": NETWORKS,
    "communities": (GIRVAN_NEWMAN,),
    "initial": ("patient_zero", "random"),
}
OWN = {"network": "own", "communities": "own", "initial": "given"}


# ------------------------------------------------------------------------------------------------ the start


@rule
def start(lane: Lane, params: Any) -> None:
    """Infect the first people, then let the disease progress without vaccines."""
    if params.initial == PATIENT_ZERO:
        infect(lane, params, params.patient_zero)
    elif params.initial == GIVEN:
        for place in range(params.given_from, params.given_to):
            infect(lane, params, params.tables[place])
    elif params.initial_chance > 0:
        infect_by_chance(lane, params)
    else:
        infect_a_number(lane, params)
    for k in range(params.burn_in):
        progress(lane, params, BURN_IN, k)


@rule
def infect_by_chance(lane: Lane, params: Any) -> None:
    """Infect each person with the same probability."""
    for person in range(params.people):
        if uniform(lane.key, 0, FIRST_INFECTED, person) < params.initial_chance:
            infect(lane, params, person)


@rule
def infect_a_number(lane: Lane, params: Any) -> None:
    """Infect `initial_number` people; all sets of this size are equally likely."""
    needed = params.initial_number
    for person in range(params.people):
        if uniform(lane.key, 0, FIRST_INFECTED, person) * (params.people - person) < needed:
            infect(lane, params, person)
            needed -= 1


# ------------------------------------------------------------------------------------------------ the disease


@rule
def infect(lane: Lane, params: Any, person: int) -> None:
    """Make a person infected."""
    lane.health[person] = INFECTED
    lane.infected += 1
    expose(lane, params, person, 1)


@rule
def expose(lane: Lane, params: Any, person: int, sign: int) -> None:
    """Add 1, or -1, to the number of infected neighbours of each of the person's neighbours."""
    first = params.tables[params.starts_from + person]
    last = params.tables[params.starts_from + person + 1]
    for place in range(params.neighbours_from + first, params.neighbours_from + last):
        lane.exposure[params.tables[place]] += sign


@rule
def progress(lane: Lane, params: Any, site: int, time: int) -> None:
    """Let the disease progress by one step: all changes depend on the health before it."""
    for first in range(0, params.people, WORDS):
        random = random_words(lane.key, time, site, first // WORDS)
        for person in range(first, min(first + WORDS, params.people)):
            lane.change[person] = change_of(lane, params, person, random[person - first])
    for person in range(params.people):
        if lane.change[person] == CAUGHT_IT:
            infect(lane, params, person)
        elif lane.change[person] == GOT_WELL:
            recover(lane, params, person)


@rule
def change_of(lane: Lane, params: Any, person: int, word: int) -> int:
    """Return the change of a person's health from a random word: one distribution over the ordered health states."""
    health = lane.health[person]
    place = lane.exposure[person] if health == SUSCEPTIBLE else params.most_neighbours + health
    return (word >= params.tables[place]) * (GOT_WELL if health == INFECTED else CAUGHT_IT)


@rule
def recover(lane: Lane, params: Any, person: int) -> None:
    """Make an infected person immune."""
    lane.health[person] = RECOVERED
    lane.infected -= 1
    expose(lane, params, person, -1)


# ------------------------------------------------------------------------------------------------ a step


@rule
def step(lane: Lane, action: Ints, params: Any, reward: Floats, facts: Facts) -> Any:
    """Give the vaccines, then let the disease progress; the episode never terminates."""
    for person in range(params.people):
        facts.action[person] = LEFT_ALONE
        facts.feedback[person] = lane.health[person] == SUSCEPTIBLE
    for dose in range(params.vaccines):
        person = person_of(action, dose)
        vaccinate(lane, params, person, facts)
        lane.treated[dose] = person
    progress(lane, params, PROGRESS, lane.time)
    for person in range(params.people):
        facts.outcome[person] = lane.change[person]
    reward[0] = 1.0 - lane.infected / params.people
    return False


@rule
def person_of(action: Ints, dose: int) -> Any:
    """Return who gets a dose; with one dose, the action is one number."""
    if action.ndim == 1:
        return action[dose]
    return action[0, dose]


@rule
def vaccinate(lane: Lane, params: Any, person: int, facts: Facts) -> None:
    """Vaccinate a person, who becomes immune if susceptible; the index after the last person leaves it unused."""
    lane.doses[person] += 1
    if person < params.people:
        facts.action[person] = VACCINATED
        if lane.health[person] == SUSCEPTIBLE:
            lane.health[person] = RECOVERED
            lane.immunised[person] = 1


@rule
def observe(lane: Lane, params: Any, observation: Floats32) -> None:
    """Write each person's health, and whether a vaccination made them immune, or what the code C shows instead."""
    seen = observation.reshape((params.people, COLUMNS))
    for person in range(params.people):
        for health in range(LAST):
            seen[person, health] = lane.health[person] == health
        seen[person, LAST] = lane.immunised[person]
    if params.observation == AUTHORS:
        observe_doses(lane, params, seen)


@rule
def observe_doses(lane: Lane, params: Any, seen: Floats32) -> None:
    """Write vaccinations as the code C counts them: a row early; person 0's and unused ones in the last row."""
    for row in range(params.people):
        seen[row, LAST] = lane.doses[row + 1]
    seen[params.people - 1, LAST] += lane.doses[0]


@rule
def describe(lane: Lane, params: Any, facts: Facts) -> None:
    """Write the people's records, with their health before the step."""
    for person in range(params.people):
        facts.individual[person] = person
        community = params.tables[params.community_from + person]
        facts.sensitive[person, 0] = community
        facts.group[person] = community
        for health in range(LAST):
            facts.features[person, health] = lane.health[person] == health
        first = params.tables[params.starts_from + person]
        last = params.tables[params.starts_from + person + 1]
        facts.features[person, LAST] = (last - first) / params.most_neighbours


# ------------------------------------------------------------------------------------------ the environment

TABLES = (
    *("people", "most_neighbours"),
    *("tables", "starts_from", "neighbours_from", "community_from", "given_from", "given_to"),
)

Code = namedtuple("Code", (*EpidemicParams._fields, *TABLES))  # type: ignore[misc]
"""What compiled rules receive: the parameters as numbers, and all tables in one array.

The tables are in one array because each array among the parameters costs every lane a tenth of a microsecond per step.

Attributes:
    people: Number of people.
    most_neighbours: Most neighbours of one person.
    tables: Shape (n,), integers. From index 0 the smallest random words that change a person's health: for the
        susceptible with 0, 1, ... infected neighbours, for the infected, for the recovered. From ``starts_from`` the
        start of each person's neighbours, relative to ``neighbours_from``, where these are stored. From
        ``community_from`` each person's community; from ``given_from`` to ``given_to`` the people in ``initial``.
"""


def code_of(params: EpidemicParams, network: Network, given: list[int]) -> Any:
    """Return what compiled rules receive.

    Args:
        params: The parameters.
        network: The network.
        given: The people in ``initial``.
    """
    starts, neighbours = network.neighbours()
    most = int(network.degrees().max())
    stays = [limit((1 - params.infection) ** infected) for infected in range(most + 1)]
    stays += [limit(1 - params.recovery), ALWAYS]
    parts = [np.array(part, np.int64) for part in (stays, starts, neighbours, network.community, given)]
    _, *places = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    own = (network.people, most, np.concatenate(parts), *places)
    return Code._make((*encode(params), *own))


def limit(probability: float) -> int:
    """Return how many of the 2**32 random words, from 0 on, belong to an event of this probability."""
    return math.ceil(probability * ALWAYS)


def is_known(name: str, value: Any) -> bool:
    """Return whether the value of the parameter is a name in this package."""
    return isinstance(value, str) and value in KNOWN[name]


class Epidemic(Rules):
    """A disease spreads through a social network while an agency gives vaccines, after Hu, Lear and Zhang (2024).

    **Description.** People meet their neighbours in a network, Zachary's karate club. A disease spreads among them. In
    each step each infected neighbour infects a susceptible person with the probability ``infection``, and infected
    people recover with the probability ``recovery``. Recovered people stay immune. In each step a health agency
    vaccinates one person, who becomes immune if still susceptible.

    **Who decides and who is affected.** The agency decides (one agent); the people of the network are affected, the
    same ones throughout an episode. The harm is catching the disease. You can measure whether a community gets fewer
    vaccines relative to its infections (the vaccination gap), and whether the disease leaves communities in different
    states (their shares of the susceptible, infected and recovered). Neither measure shows how many people fall ill:
    without vaccines the gap is 0, and almost all people are infected in both communities. Read the measures together
    with the reward.

    **Sensitive attribute and legitimate factors.** ``community``: the two parts of the network after the first split by
    Girvan and Newman's method; in the karate club 15 people around person 0 and 19 around person 33. If your own
    network has several components, it is not split: the components are the communities. No legitimate factors.

    **Network.** ``"karate"``: 34 people, 78 pairs who meet; ``"chain"``: ``chain_people`` in a row; or your own: a
    networkx graph (weights are ignored), an array (people, people) with 1 where two people meet, or pairs of people
    numbered from 0. ``communities``: ``"girvan_newman"`` (needs networkx for your own network), a code or a name for
    each person, or the people of each community. ``initial``: ``"patient_zero"``, ``"random"``, or the people who are
    infected first.

    **Action space.** ``Discrete(people + 1)``: the person to vaccinate; the last action leaves the vaccine unused. With
    several ``vaccines`` per step a ``MultiDiscrete`` with one entry for each. A vaccine for an infected or immune
    person is used up without effect.

    **Observation space.** ``Box`` of shape (people * 4,): four numbers for one person after another: susceptible,
    infected, recovered (one of them 1), and whether a vaccination made the person immune. With ``table=True`` the shape
    is (people, 4). The communities never change; ``fair_group`` contains them.

    **Rewards.** The share of people who are not infected after the step; recovered people count as healthy.

    **Interactions.** One individual per person, the same in each step. ``fair_features``: health before the step
    (susceptible, infected, recovered) and the number of neighbours, divided by the largest such number.
    ``fair_action``: 1 vaccinated in this step, with effect or not. ``fair_feedback``: 1 if a vaccination has an effect,
    that is, if the person was susceptible; it is revealed for all. ``fair_outcome``: -1 infected in this step, 1
    recovered from the disease, 0 otherwise. The oracle also returns each person's health (``"health"``: 0, 1, 2), which
    is not hidden.

    **Starting state.** Person 0 is infected, and the disease has progressed for one step (``burn_in``).

    **Episode end.** Truncation after ``horizon`` steps.

    **Order of a step.** First the vaccinations. Then the health of all people changes at once, given their states after
    the vaccinations. Vaccination protects in the same step; people infected in a step infect others from the next step
    on.

    **Arguments.** The fields of `EpidemicParams`, each with its default and source. ``profile="authors"`` selects the
    published code's observation, ``profile="ml-fairness-gym"`` the settings of that library's experiments.

    **Differences from the paper and its code**, with the switches that restore their behaviour:

    * Person 0 is infected first, as in the published code and in the paper's figures. In the paper's text a random
      set of people is infected first: ``initial="random"``.
    * The last column of the observation shows immunity by vaccination. The published code counts all vaccinations of
      the episode, with effect or not, in the row before the person's. Those of person 0 and unused vaccines are in the
      last row: ``observation="authors"``, part of ``profile="authors"``.
    * Vaccinations without effect can be distinguished (``fair_action`` 1 where ``fair_feedback`` is 0). The paper's
      short-term unfairness also counts them, so it rises linearly once no susceptible people are left: that is an
      option of the measure.
    * States of communities should be compared by shares. The published code compares counts, of 15 and of 19 people:
      the difference is 4 if all people are infected. That is also an option of the measure.
    * Reaching the horizon is truncation; in the code it is termination.
    * Each person's random number is a function of person and step. ml-fairness-gym draws them one after another; the
      distributions are the same.
    * ml-fairness-gym's other disease models (SI, SEIR) are left out; ``recovery=0`` gives SI.

    **References.** Y. Hu, J. Lear, L. Zhang, "Striking a balance in fairness for dynamic systems through reinforcement
    learning", arXiv 2401.06318, 2024. J. Atwood, H. Srinivasan, Y. Halpern, D. Sculley, "Fair treatment allocations in
    social networks", arXiv 1911.05489, 2019. W. W. Zachary, "An information flow model for conflict and fission in
    small groups", Journal of Anthropological Research 33, 1977. M. Girvan, M. E. J. Newman, "Community structure in
    social and biological networks", PNAS 99, 2002.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "epidemic"
    drawn_by: ClassVar[str] = "fair_envs.envs.epidemic.render:EpidemicRenderer"
    policies: ClassVar[Mapping[str, str]] = {
        "most-neighbours": "fair_envs.envs.epidemic.policies:MostNeighbours",
        "most-infected-neighbours": "fair_envs.envs.epidemic.policies:MostInfectedNeighbours",
        "central": "fair_envs.envs.epidemic.policies:Central",
        "random-susceptible": "fair_envs.envs.epidemic.policies:RandomSusceptible",
        "nobody": "fair_envs.envs.epidemic.policies:Nobody",
    }
    Params: ClassVar[type] = EpidemicParams
    presets = PROFILES
    fps: ClassVar[int] = 2
    sensitive_field: ClassVar[str] = "community"  # not a field of a lane: it belongs to the network and has no flip
    sensitive_features: ClassVar[tuple[str, ...]] = ()
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))
    network: Network  # the people, their neighbours and their communities

    def __init__(self, **given: Any) -> None:
        self._own = {name: given[name] for name in KNOWN.keys() & given.keys() if not is_known(name, given[name])}
        super().__init__(**{**given, **{name: OWN[name] for name in self._own}})
        del self._own

    def check(self, params: EpidemicParams) -> None:
        """Set the network, its communities and the first infected people; raise ValueError if these are invalid."""
        network, communities = (self._own.get(name, getattr(params, name)) for name in ("network", "communities"))
        self.network = make_network(network, communities, chain_people=params.chain_people)
        people = self.network.people
        if params.initial == "patient_zero" and params.patient_zero >= people:
            raise ValueError(f"patient_zero must be between 0 and {people - 1}, got {params.patient_zero}")
        if params.initial_number > people:
            raise ValueError(f"initial_number must be between 1 and {people}, got {params.initial_number}")

    def encoded(self, params: EpidemicParams) -> Any:
        """Return what compiled rules receive."""
        return code_of(params, self.network, self._infected_at_first())

    def _infected_at_first(self) -> list[int]:
        """Return the indices of the people in ``initial``."""
        given = self._own.get("initial", ())
        if isinstance(given, str):
            raise ValueError(f"initial must be {', '.join(map(repr, KNOWN['initial']))} or people, got {given!r}")
        return sorted(set(self.network.find("initial", given)))

    def lane(self, params: EpidemicParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        people = self.network.people
        return [
            ("health", np.int8, people),
            ("exposure", np.int32, people),  # infected neighbours
            ("change", np.int8, people),  # of health in the last step
            ("immunised", np.int8, people),  # 1: a vaccination made them immune
            ("doses", np.int32, people + 1),  # vaccines given so far, by person, with unused ones last
            ("treated", np.int32, params.vaccines),  # people vaccinated in the last step
            ("infected", np.int32),  # number of infected people
        ]

    def fair_spec(self, params: EpidemicParams) -> FairSpec:
        """Return who is affected: the people of the network."""
        return FairSpec(
            individuals=self.network.people,
            actions=2,
            features=FEATURES,
            sensitive={"community": self.network.names},
            groups=self.network.names,
            favourable_action=VACCINATED,
            same_individuals=True,
            feedback="full",
        )

    def observation_space(self, params: EpidemicParams) -> gym.spaces.Box:
        """Return the bounds of the people's rows."""
        high = np.ones((self.network.people, COLUMNS), np.float32)
        if params.observation == "authors":
            high[:, LAST] = params.horizon * params.vaccines
        shown = high if params.table else high.ravel()
        return gym.spaces.Box(np.zeros_like(shown), shown, dtype=np.float32)

    def action_space(self, params: EpidemicParams) -> gym.Space[Any]:
        """Return one option for each person, and last for no one; repeated for each vaccine."""
        choices = self.network.people + 1
        if params.vaccines > 1:
            return gym.spaces.MultiDiscrete([choices] * params.vaccines)
        return gym.spaces.Discrete(choices)

    def action_masks(self, records: NDArray[np.void]) -> NDArray[np.int8]:
        """Return which people can be vaccinated with effect, and that a vaccine can be left unused.

        A vaccine without effect is still a vaccination in the record. The observations of the published code also count
        it, so that nothing is masked there.
        """
        masks = super().action_masks(records)
        if self.params.observation == "authors":
            return masks
        choices = masks.reshape(len(records), self.params.vaccines, -1)
        choices[..., :-1] = (records["health"] == SUSCEPTIBLE)[:, np.newaxis]
        return masks

    def oracle(self, records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Return who would become immune by a vaccination as ``"feedback"``, and the ``"health"`` (0, 1 or 2)."""
        health = np.array(records["health"], np.int64)
        return {"feedback": (health == SUSCEPTIBLE).astype(np.int64), "health": health}
