"""The parameters of FairTraffic: every number an experiment may change, with its default.

There is no published code, and the paper with this example gives no numbers: the defaults are this package's. NS marks
values of Nagel and Schreckenberg (1992).
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from fair_envs.support.parameters import NonNegative, Range, UnitInterval

MOST_SPEED = 9  # cells per step
MOST_REACTION = 8  # steps
MOST_LANES = 4  # per direction

# The options of each choice, in the order in which compiled rules number them.
SIGNALS, RIGHT_OF_WAY = range(2)
STATIC, TIMES, ALL = range(3)
HOSPITAL, OWN = range(2)
EVERYBODY, AI_DRIVEN = range(2)


class TrafficParams(NamedTuple):
    """The parameters of FairTraffic."""

    # The city
    columns: Annotated[int, Range(2, 26)] = 5  # columns of crossroads, A to E from west to east
    rows: Annotated[int, Range(2, 26)] = 4  # rows of crossroads, 1 to 4 from north to south
    street_length: Annotated[int, Range(2, 100)] = 10  # cells between two crossroads
    lanes: Annotated[int, Range(1, MOST_LANES)] = 2  # lanes of a street in each direction
    crossroads: Literal["signals", "right_of_way"] = "signals"  # what controls who may cross
    signal_period: Annotated[int, Range(2, 1000)] = 16  # steps of a cycle, in which both axes are green once
    east_west_share: Annotated[float, Range(0.05, 0.95)] = 0.5  # share of the period in which that axis is green
    offset_east_west: Annotated[int, Range(0, 999)] = 0  # steps that each column's lights lag behind the last one's
    offset_north_south: Annotated[int, Range(0, 999)] = 0  # the same for each row
    human_lanes: Sequence[str] = ()  # streets whose last lane is only for human drivers; see the page
    roadworks_share: UnitInterval = 0.32  # share of the streets, redrawn each episode; 10 of 31, rounded
    roadworks_speed: Annotated[int, Range(1, MOST_SPEED)] = 1  # largest speed at road works, cells per step
    # The cars
    cars: Annotated[int, Range(1, 10_000)] = 30
    human_share: UnitInterval = 0.5  # share of human-driven cars
    fast_share: UnitInterval = 0.5
    safety_share: UnitInterval = 0.5
    fast_speed: Annotated[int, Range(1, MOST_SPEED)] = 5  # largest speed, cells per step; NS
    slow_speed: Annotated[int, Range(1, MOST_SPEED)] = 2
    dawdling: UnitInterval = 0.1  # probability to drive one cell less than possible
    destination: Literal["hospital", "own"] = "hospital"  # one goal for all cars, or one for each
    hospital: str = "C2"  # a crossroads
    # Effects of being human-driven
    human_information: Literal["static", "times", "all"] = "static"  # which information people have: see the page
    human_reaction: Annotated[int, Range(0, MOST_REACTION)] = 1  # steps of delay between seeing and acting
    human_dawdling: UnitInterval = 0.3
    # Rewards
    arrival_reward: NonNegative = 1.0
    time_cost: NonNegative = 0.01  # for each step on the road
    distance_cost: NonNegative = 0.001  # for each cell
    toll: NonNegative = 0.0  # for entering one of these streets
    toll_streets: Sequence[str] = ()
    toll_for: Literal["everybody", "ai_driven"] = "everybody"
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 300  # steps until truncation
