"""The parameters of FairTraffic: every number an experiment may change, with its default.

There is no published code, and the paper that names the example gives no numbers: the defaults are this package's. NS
marks what Nagel and Schreckenberg (1992) use.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from fair_envs.parameters import NonNegative, Range, UnitInterval

MOST_SPEED = 9  # cells a step
MOST_REACTION = 8  # steps
MOST_LANES = 4  # a direction

# The options of each choice, in the order in which compiled rules know them.
SIGNALS, RIGHT_OF_WAY = range(2)
STATIC, TIMES, ALL = range(3)
HOSPITAL, OWN = range(2)
EVERYBODY, AI_DRIVEN = range(2)


class TrafficParams(NamedTuple):
    """The parameters of FairTraffic."""

    # The city
    columns: Annotated[int, Range(2, 26)] = 5  # of crossroads, A to E from west to east
    rows: Annotated[int, Range(2, 26)] = 4  # of crossroads, 1 to 4 from north to south
    street_length: Annotated[int, Range(2, 100)] = 10  # cells between two crossroads
    lanes: Annotated[int, Range(1, MOST_LANES)] = 2  # of a street in each direction
    crossroads: Literal["signals", "right_of_way"] = "signals"  # who may cross
    signal_period: Annotated[int, Range(2, 1000)] = 16  # steps in which both axes have their green light once
    east_west_share: Annotated[float, Range(0.05, 0.95)] = 0.5  # of the period in which that axis is green
    offset_east_west: Annotated[int, Range(0, 999)] = 0  # steps that each column's lights are later than the last's
    offset_north_south: Annotated[int, Range(0, 999)] = 0  # the same for each row
    human_lanes: Sequence[str] = ()  # streets whose last lane is for human drivers alone; see the page
    roadworks_share: UnitInterval = 0.32  # of the streets, others in each episode; of 31 streets 10, the nearest number
    roadworks_speed: Annotated[int, Range(1, MOST_SPEED)] = 1  # cells a step there, at most
    # The cars
    cars: Annotated[int, Range(1, 10_000)] = 30
    human_share: UnitInterval = 0.5  # of the cars that are human-driven
    fast_share: UnitInterval = 0.5
    safety_share: UnitInterval = 0.5
    fast_speed: Annotated[int, Range(1, MOST_SPEED)] = 5  # cells a step, at most; NS
    slow_speed: Annotated[int, Range(1, MOST_SPEED)] = 2
    dawdling: UnitInterval = 0.1  # chance to drive a cell less than one could
    destination: Literal["hospital", "own"] = "hospital"  # where a car goes: all to one place, or each to its own
    hospital: str = "C2"  # a crossroads
    # What being human-driven does
    human_information: Literal["static", "times", "all"] = "static"  # what it knows: see the page
    human_reaction: Annotated[int, Range(0, MOST_REACTION)] = 1  # steps after which it acts on what it sees
    human_dawdling: UnitInterval = 0.3
    # What a car earns
    arrival_reward: NonNegative = 1.0
    time_cost: NonNegative = 0.01  # of each step on the road
    distance_cost: NonNegative = 0.001  # of each cell
    toll: NonNegative = 0.0  # of entering one of these streets
    toll_streets: Sequence[str] = ()
    toll_for: Literal["everybody", "ai_driven"] = "everybody"
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 300  # steps until truncation
