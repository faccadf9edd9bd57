"""The parameters of FairHarvest: every number an experiment may change, with its default and source.

Sources: P is La Malfa et al. (2025), "Fairness Aware Reinforcement Learning via Proximal Policy Optimization"; C is the
code published with it; C2 is its authors' later code. Values without a mark are this package's recommendations.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.support.parameters import Range, UnitInterval

Count = Annotated[int, Range(0, 10_000)]
Size = Annotated[int, Range(1, 1_000)]
Reward = Annotated[float, Range(-1e6, 1e6)]

# The options of each choice, in the order in which compiled rules number them.
PREFERENCE_FACTOR, SKILL_FACTOR = range(2)
INTERLEAVED, RED_FIRST = range(2)
STRATIFIED, SHUFFLED = range(2)
INDEX_ORDER, RANDOM_ORDER = range(2)
WHOLE_TURN, MOVEMENT_ONLY = range(2)
FIRST_BUSH, UNTIL_EATEN = range(2)
NO_OPERATION, RESAMPLE = range(2)
LINEAR, CUBIC = range(2)
BY_AGENTS, BY_TIMER, BY_SHARE = range(3)
TEN, EXTENDED, WITH_NEIGHBOURS, WITH_TIMING, WITHOUT_REWARD = range(5)
TRUNCATE, TERMINATE = range(2)

Observation = Literal["ten", "extended", "neighbours", "timing", "without_reward"]


class HarvestParams(NamedTuple):
    """The parameters of FairHarvest."""

    profile: Literal["recommended", "authors", "eating_only"] = "recommended"  # selects other defaults, see PROFILES
    # The world
    width: Size = 25  # cells; C
    height: Size = 15  # cells; C
    agents: Annotated[int, Range(1, 10_000)] = 40  # C
    red_bushes: Count = 30  # at the start, unripe; C
    blue_bushes: Count = 30  # C
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 3000  # steps until truncation; P, C
    at_horizon: Literal["truncate", "terminate"] = "truncate"  # how the episode ends there; C terminates
    # The agents
    sensitive_fraction: UnitInterval = 0.5  # share of the agents with the attribute; P, C
    blue_fraction: UnitInterval = 0.5  # share of the agents that prefer blue; P, C
    legitimate: Literal["preference", "skill"] = "preference"  # the factor that may explain a difference
    skilled_fraction: UnitInterval = 0.0  # share of skilled agents within each preference
    skill_reward: Reward = 1.0  # factor of a skilled agent's rewards
    indices: Literal["interleaved", "red_first"] = "interleaved"  # C puts the reds first
    assignment: Literal["stratified", "shuffled"] = "stratified"  # P: half of each preference; C: any half
    # The effect of the sensitive attribute
    handicap: Literal["turn", "movement"] = "turn"  # what is lost on turns not granted; C: the whole turn
    handicap_period: Annotated[int, Range(1, 10_000)] = 2  # every n-th turn is granted; P, C
    # Turns
    turn_order: Literal["index", "random"] = "index"  # C
    freeze_turns: Annotated[int, Range(-1, 10_000)] = 1  # turns an obstructed agent loses; -1: all later ones, as in C
    moves_succeed: bool = True  # whether moves are possible; in C they always fail
    touch: Literal["first", "until_eaten"] = "first"  # C ripens bush after bush until it eats one
    separate_ripening: bool = False  # action 5 only eats, a ninth action ripens; C2
    invalid_action: Literal["noop", "resample"] = "noop"  # C draws another action, up to three times
    # Rewards
    ripen_preferred: Reward = 3.0  # C
    ripen_other: Reward = 1.0  # C
    eat_preferred: Reward = 5.0  # C
    eat_other: Reward = 1.0  # C
    recolour: Reward = 5.0  # C
    obstruct_opposed: Reward = 3.0  # C
    obstruct_same: Reward = 0.0  # C
    pay_frozen: bool = True  # whether obstructing a frozen agent pays again; C
    # Bushes
    lifespan: Count = 120  # steps; 0: immortal; C
    growth_interval: Count = 2  # steps between spontaneous bushes; 0: none; C
    growth_at_zero: bool = True  # the first step grows one; C, not C2
    growth_attempts: Count = 100  # cells tried for a spontaneous bush; C
    growth_colour: Literal["linear", "cubic"] = "linear"  # law of the new bush's colour; C has both, uses linear
    ripening: Literal["agents", "timer", "share"] = "agents"  # what ripens bushes besides agents; C: nothing else
    ripening_wait: Count = 3  # unripe steps until "timer" ripens, or "share" may; C's intent; Melting Pot: 10
    ripening_rate: UnitInterval = 5e-6  # probability per step and bush of the same colour, under "share"; Melting Pot
    # Observations
    observation: Observation = "ten"  # C's ten numbers, or others; see the page
    scaled: bool = True  # to about [0, 1]; C: raw


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "recommended": {},
    "authors": {
        "at_horizon": "terminate",
        "indices": "red_first",
        "assignment": "shuffled",
        "freeze_turns": -1,
        "moves_succeed": False,
        "touch": "until_eaten",
        "invalid_action": "resample",
        "scaled": False,
    },
    "eating_only": {  # the rewards of Melting Pot on the rules of this grid
        "ripen_preferred": 0.0,
        "ripen_other": 0.0,
        "eat_preferred": 2.0,
        "recolour": 0.0,
        "obstruct_opposed": 0.0,
    },
}


def largest_population(params: HarvestParams) -> int:
    """Return the most bushes that can exist at once: the initial ones, and those that grow before the first die."""
    free = params.width * params.height - params.agents
    start = params.red_bushes + params.blue_bushes
    if params.growth_interval == 0:
        return max(start, 1)
    if params.lifespan == 0:
        return max(free, 1)
    before_deaths = -(-(params.lifespan - 1) // params.growth_interval)
    steady = -(-params.lifespan // params.growth_interval)
    return max(min(free, max(start + before_deaths, steady)), 1)
