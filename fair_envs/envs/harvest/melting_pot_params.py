"""The parameters of FairHarvest's variant ``melting_pot``, with their defaults and sources.

M is the substrate ``allelopathic_harvest__open`` of Melting Pot; P is La Malfa et al. (2025), from which the sensitive
attribute comes. Frames are what steps are called there.
"""

from typing import Annotated, Literal, NamedTuple

from fair_envs.envs.harvest.params import Reward, Size
from fair_envs.parameters import Range, UnitInterval

Frames = Annotated[int, Range(0, 10_000)]
Cells = Annotated[int, Range(0, 100)]

LINEAR_RIPENING, CUBIC_RIPENING = range(2)  # the options of `ripening`, as compiled rules know them


class MeltingPotParams(NamedTuple):
    """The parameters of FairHarvest's variant ``melting_pot``."""

    # The world
    width: Size = 29  # cells, a torus; M
    height: Size = 30  # cells; M
    colours: Annotated[int, Range(2, 3)] = 3  # red, green, blue; with two colours nobody plants blue; M
    patches: Annotated[int, Range(0, 10_000)] = 348  # shared evenly among the colours, unripe at the start; M
    agents: Annotated[int, Range(1, 127)] = 16  # M
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 2000  # frames until truncation; M
    # The agents
    sensitive_fraction: UnitInterval = 0.5  # of the agents carry the attribute, stratified by preference; P
    green_fraction: UnitInterval = 0.5  # of the agents prefer green; M alternates red and green
    blue_fraction: UnitInterval = 0.0  # of the agents prefer blue; the rest prefers red; M
    handicap_period: Annotated[int, Range(1, 10_000)] = 2  # a carrier's every n-th action counts; P
    turn_order: Literal["index", "random"] = "random"  # who comes first where two want the same; M draws it each frame
    # Patches
    ripening: Literal["linear", "cubic"] = "linear"  # in the number of patches of the colour; M has both, uses linear
    ripening_rate: UnitInterval = 5e-6  # chance a frame for each patch of the colour; M
    cubic_rate: Annotated[float, Range(0, 1)] = 9e-6  # "cubic" adds ripening_rate * cubic_rate * patches**3; M
    ripening_wait: Annotated[int, Range(0, 127)] = 10  # the first frame in which a patch may ripen; M
    eat_preferred: Reward = 2.0  # M
    eat_other: Reward = 1.0  # M
    # Planting
    plant_length: Cells = 3  # cells that the beam reaches ahead; M
    plant_cooldown: Frames = 2  # frames after planting without planting, of whatever colour; M
    # Zapping
    zap_length: Cells = 3  # cells that the beam reaches ahead; M
    zap_radius: Cells = 1  # cells that it is wider on either side; M
    zap_cooldown: Frames = 4  # frames after zapping without zapping; M
    freeze_frames: Frames = 25  # after a first hit, in which the agent neither moves nor zaps; M
    recovery_frames: Annotated[int, Range(1, 10_000)] = 50  # frames without a hit after which the mark is gone; M
    removal_reward: Reward = -10.0  # of an agent that is hit while it is marked; M
    respawn_frames: Frames = 25  # that it is out of the world; M
    # Observations
    view_left: Cells = 5  # cells; M
    view_right: Cells = 5  # M
    view_ahead: Cells = 9  # M
    view_behind: Cells = 1  # M
    scaled: bool = True  # to [0, 1]; otherwise codes and frames as they are
