"""The parameters of FairPursuit: every number an experiment may change, with its default and source.

Sources: P is the text of Grupen, Selman and Lee (2022), C the authors' code. Without a mark: the recommended rules of
this package.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from fair_envs.parameters import NonNegative, Positive, Range

Speed = Annotated[float, Range(0, 100)]

# The options of each choice, in the order in which compiled rules know them.
DIRECTION, HEADING, DISCRETE = range(3)
MUTUAL, MUTUAL_SUM, INDIVIDUAL = range(3)
RELATIVE, TORUS, AUTHORS = range(3)
CYCLIC, INDEX, SORTED = range(3)
TRUNCATE, TERMINATE = range(2)
MOST = 100  # pursuers, and evaders


class PursuitParams(NamedTuple):
    """The parameters of FairPursuit."""

    profile: Literal["recommended", "authors"] = "recommended"  # other defaults, see PROFILES
    # The world
    pursuers: Annotated[int, Range(1, MOST)] = 3  # as many as you give speeds, if you do; P
    evaders: Annotated[int, Range(1, MOST)] = 1  # P
    side: Annotated[float, Range(0.1, 1e6)] = 6.0  # of the torus; C, the text is silent
    time_step: Positive = 0.1  # time units that a step takes; C
    pursuer_speed: Speed = 1.0  # lengths a time unit; P: 1.2 to 0.4
    speeds: Sequence[Speed] = ()  # a factor of that speed for each pursuer, such as (1, 0.5); none: all are equal
    evader_speed: Speed = 1.0  # P
    pursuer_radius: NonNegative = 0.075  # C
    evader_radius: NonNegative = 0.05  # C; closer than the sum of the radii is a capture
    start_distance: NonNegative = 0.5  # from every evader, that a pursuer begins at least at; C; leave it some room
    start_spread: NonNegative = 1e-4  # standard deviation of where the first evader begins around the centre; C
    legacy_physics: bool = False  # C: who overlaps is pushed apart, and captures across the seam are missed
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 500  # steps until truncation; C
    at_horizon: Literal["truncate", "terminate"] = "truncate"  # how the episode ends there; C terminates
    # Actions
    action: Literal["direction", "heading", "discrete"] = "direction"  # C: a direction; P: a heading
    headings: Annotated[int, Range(2, 360)] = 8  # to choose from with "discrete"
    # Rewards
    reward: Literal["mutual", "mutual_sum", "individual"] = "mutual"  # P: the sum of all; C: once for an evader
    capture_reward: NonNegative = 50.0  # P, C
    step_penalty: NonNegative = 0.1  # P, C
    penalty_at_capture: bool = False  # whether the capture's step costs it too; C
    # Observations
    observation: Literal["relative", "torus", "authors"] = "relative"  # C: absolute positions
    teammates: Literal["cyclic", "index", "sorted"] = "cyclic"  # the order that a pursuer sees them in; C: index
    blind: bool = False  # whether team-mates are not seen
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
