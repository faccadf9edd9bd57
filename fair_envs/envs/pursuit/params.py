"""The parameters of FairPursuit: every number an experiment may change, with its default and source.

Sources: P is the text of Grupen, Selman and Lee (2022), C the authors' code. Values without a mark are this package's
recommendations.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.support.parameters import NonNegative, Positive, Range

Speed = Annotated[float, Range(0, 100)]

# The options of each choice, in the order in which compiled rules number them.
DIRECTION, HEADING, DISCRETE = range(3)
MUTUAL, MUTUAL_SUM, INDIVIDUAL = range(3)
RELATIVE, TORUS, AUTHORS = range(3)
CYCLIC, INDEX, SORTED = range(3)
TRUNCATE, TERMINATE = range(2)
MOST = 100  # largest number of pursuers, and of evaders


class PursuitParams(NamedTuple):
    """The parameters of FairPursuit."""

    profile: Literal["recommended", "authors"] = "recommended"  # selects other defaults, see PROFILES
    # The world
    pursuers: Annotated[int, Range(1, MOST)] = 3  # the number of user-defined speeds, if given; P
    evaders: Annotated[int, Range(1, MOST)] = 1  # P
    side: Annotated[float, Range(0.1, 1e6)] = 6.0  # side of the torus; C, not given in P
    time_step: Positive = 0.1  # time units per step; C
    pursuer_speed: Speed = 1.0  # lengths per time unit; P: 1.2 to 0.4
    speeds: Sequence[Speed] = ()  # each pursuer's factor of that speed, such as (1, 0.5); none: all 1
    evader_speed: Speed = 1.0  # P
    pursuer_radius: NonNegative = 0.075  # C
    evader_radius: NonNegative = 0.05  # C; an evader closer than the sum of the radii is captured
    start_distance: NonNegative = 0.5  # least initial distance of a pursuer from every evader; C; must leave room
    start_spread: NonNegative = 1e-4  # standard deviation of the first evader's start around the centre; C
    legacy_physics: bool = False  # C: overlapping agents are pushed apart, captures across the seam are missed
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 500  # steps until truncation; C
    at_horizon: Literal["truncate", "terminate"] = "truncate"  # how the episode ends there; C terminates
    # Actions
    action: Literal["direction", "heading", "discrete"] = "direction"  # C: a direction; P: a heading
    headings: Annotated[int, Range(2, 360)] = 8  # number of headings with "discrete"
    # Rewards
    reward: Literal["mutual", "mutual_sum", "individual"] = "mutual"  # P: the sum over captors; C: once per evader
    capture_reward: NonNegative = 50.0  # P, C
    step_penalty: NonNegative = 0.1  # P, C
    penalty_at_capture: bool = False  # whether captors pay the penalty in the step of the capture; C
    # Observations
    observation: Literal["relative", "torus", "authors"] = "relative"  # C: absolute positions
    teammates: Literal["cyclic", "index", "sorted"] = "cyclic"  # order of team-mates in an observation; C: index
    blind: bool = False  # whether observations leave team-mates out
    include_headings: bool = False
    include_speed: bool = False  # own speed


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "recommended": {},
    "authors": {
        "legacy_physics": True,
        "at_horizon": "terminate",
        "penalty_at_capture": True,
        "observation": "authors",
        "teammates": "index",
    },
}
