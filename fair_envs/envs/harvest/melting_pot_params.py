"""The parameters of FairHarvest's variant ``melting_pot``, with their defaults and sources.

M is the substrate ``allelopathic_harvest__open`` of Melting Pot; P is La Malfa et al. (2025), the source of the
sensitive attribute. Melting Pot calls steps frames.
"""

from typing import Annotated, Literal, NamedTuple

from fair_envs.envs.harvest.params import Reward, Size
from fair_envs.support.parameters import Range, UnitInterval

Frames = Annotated[int, Range(0, 10_000)]
Cells = Annotated[int, Range(0, 100)]

LINEAR_RIPENING, CUBIC_RIPENING = range(2)  # the options of `ripening`, as compiled rules number them


class MeltingPotParams(NamedTuple):
    """The parameters of FairHarvest's variant ``melting_pot``."""

    # The world
    width: Size = 29  # cells, a torus; M
    height: Size = 30  # cells; M
    colours: Annotated[int, Range(2, 3)] = 3  # red, green, blue; with two colours there is no blue; M
    patches: Annotated[int, Range(0, 10_000)] = 348  # in equal numbers of each colour, unripe at the start; M
    agents: Annotated[int, Range(1, 127)] = 16  # M
    horizon: Annotated[int, Range(1, 2**31 - 2)] = 2000  # frames until truncation; M
    # The agents
    sensitive_fraction: UnitInterval = 0.5  # share of the agents with the attribute, stratified by preference; P
    green_fraction: UnitInterval = 0.5  # share of the agents that prefer green; M alternates red and green
    blue_fraction: UnitInterval = 0.0  # share of the agents that prefer blue; the rest prefers red; M
    handicap_period: Annotated[int, Range(1, 10_000)] = 2  # with the attribute, every n-th action counts; P
    turn_order: Literal["index", "random"] = "random"  # order in which agents act; M draws it each frame
    # Patches
    ripening: Literal["linear", "cubic"] = "linear"  # in the number of patches of the colour; M has both, uses linear
    ripening_rate: UnitInterval = 5e-6  # probability per frame for each patch of the colour; M
    cubic_rate: Annotated[float, Range(0, 1)] = 9e-6  # "cubic" adds ripening_rate * cubic_rate * patches**3; M
    ripening_wait: Annotated[int, Range(0, 127)] = 10  # first frame in which a patch can ripen; M
    eat_preferred: Reward = 2.0  # M
    eat_other: Reward = 1.0  # M
    # Planting
    plant_length: Cells = 3  # cells ahead that the beam reaches; M
    plant_cooldown: Frames = 2  # frames without planting after planting, in any colour; M
    # Zapping
    zap_length: Cells = 3  # cells ahead that the beam reaches; M
    zap_radius: Cells = 1  # columns on either side of the beam; M
    zap_cooldown: Frames = 4  # frames without zapping after zapping; M
    freeze_frames: Frames = 25  # frames after a first hit in which the agent neither moves nor zaps; M
    recovery_frames: Annotated[int, Range(1, 10_000)] = 50  # frames without a hit until the mark is removed; M
    removal_reward: Reward = -10.0  # reward of a marked agent that is hit; M
    respawn_frames: Frames = 25  # frames out of the world; M
    # Observations
    view_left: Cells = 5  # cells; M
    view_right: Cells = 5  # M
    view_ahead: Cells = 9  # M
    view_behind: Cells = 1  # M
    scaled: bool = True  # to [0, 1]; otherwise codes and frames are unscaled
