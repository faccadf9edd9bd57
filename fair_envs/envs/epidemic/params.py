"""The parameters of FairEpidemic: every number an experiment may change, with its default and source.

Sources: P is Hu, Lear and Zhang (2024), whose text gives no numbers for this environment; C is the code published with
it, whose numbers produced P's figures; G is ml-fairness-gym's experiments. Values without a mark are this package's.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.support.parameters import NonNegativeInt, PositiveInt, Range, UnitInterval

# The options of each choice, in the order in which compiled rules number them.
PATIENT_ZERO, RANDOM, GIVEN = range(3)
HEALTH, AUTHORS = range(2)


class EpidemicParams(NamedTuple):
    """The parameters of FairEpidemic."""

    profile: Literal["paper", "authors", "ml-fairness-gym"] = "paper"  # selects other defaults, see PROFILES
    # The network
    network: Literal["karate", "chain", "own"] = "karate"  # or your own: a networkx graph, a matrix, pairs; P, C
    chain_people: Annotated[int, Range(2, 100_000)] = 12  # people in the chain; G
    communities: Literal["girvan_newman", "own"] = "girvan_newman"  # or your own: each person's community; P, C
    # The disease
    infection: UnitInterval = 0.5  # probability that an infected neighbour infects a person in a step; C; G: 0.25
    recovery: UnitInterval = 0.005  # probability that an infected person recovers in a step; C; G: 0.01
    # The start
    initial: Literal["patient_zero", "random", "given"] = (
        "patient_zero"  # people infected first, or a list of them; C, and P's figures; P's text and G: random
    )
    patient_zero: NonNegativeInt = 0  # the person infected by "patient_zero"; C
    initial_number: PositiveInt = 1  # number of people infected by "random"; G
    initial_chance: UnitInterval = 0.0  # above 0: "random" infects each person with this probability; G also 0.1
    burn_in: Annotated[int, Range(0, 100_000)] = 1  # steps without vaccines before the first decision; C; G: 3
    # The decisions
    vaccines: Annotated[int, Range(1, 1000)] = 1  # vaccines per step; P, C, G
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 20  # steps until truncation; P, C; G: 100
    observation: Literal["health", "authors"] = "health"  # content of the last column; C: authors
    table: bool = False  # observations of shape (people, 4) instead of all rows in one; C: True


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "authors": {"observation": "authors", "table": True},
    "ml-fairness-gym": {
        "network": "chain",
        "infection": 0.25,
        "recovery": 0.01,
        "initial": "random",
        "burn_in": 3,
        "horizon": 100,
    },
}
