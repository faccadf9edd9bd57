"""Pictures of FairHarvest's variant ``melting_pot``."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    INK,
    WHITE,
    Cell,
    Figure,
    GridRenderer,
    Item,
    Pen,
    Title,
)
from fair_envs.envs.harvest.melting_pot import BLUE, COLOUR_NAMES, DIRECTIONS, GREEN, GREY, NORTH, RED, RIPE
from fair_envs.envs.harvest.render import (
    BLUE_HUE,
    GREEN_HUE,
    NO_HUE,
    RED_HUE,
    Agent,
    Balance,
    Bush,
    Group,
    Hue,
    Legend,
    Returns,
    Shares,
    mean_of,
    speed_groups,
)

HUES: Mapping[int, Hue] = {GREY: NO_HUE, RED: RED_HUE, GREEN: GREEN_HUE, BLUE: BLUE_HUE}


class Player(NamedTuple):
    """An agent in its preferred colour, with a badge in its current colour, crossed out if it is marked."""

    agent: Agent
    worn: Hue
    marked: bool = False

    def paint(self, pen: Pen) -> None:
        """Draw the agent and its badge."""
        self.agent.paint(pen)
        pen.disc(0.78, 0.78, 0.2, INK)
        pen.disc(0.78, 0.78, 0.15, self.worn.rgb)
        if self.marked:
            for points in ([(0.62, 0.62), (0.94, 0.94)], [(0.62, 0.94), (0.94, 0.62)]):
                pen.stroke(points, 0.1, INK)
                pen.stroke(points, 0.05, WHITE)

    def letters(self) -> str:
        """Return the agent's letters; ! follows the initial if it is marked and no longer frozen."""
        letters = self.agent.letters()
        return letters if self.agent.frozen or not self.marked else letters.replace(" ", "!")


class MeltingPotRenderer(GridRenderer):
    """Draws FairHarvest's variant ``melting_pot``.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params = rules.params
        super().__init__(width=self._params.width, height=self._params.height)

    def figures(self, lane: Any) -> Iterable[tuple[Cell, tuple[Figure, ...]]]:
        """Yield the patches, and the agents on top of them."""
        players = players_of(lane)
        xs, ys = np.nonzero(lane["patch"] | lane["occupant"])
        codes = lane["patch"][xs, ys].tolist(), lane["occupant"][xs, ys].tolist()
        for x, y, code, occupant in zip(xs.tolist(), ys.tolist(), *codes, strict=True):
            patch = (patch_of(code),) if code else ()
            yield (x, y), ((*patch, players[occupant - 1]) if occupant else patch)

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the groups' mean returns, their gap, the patches' colours and the legend."""
        total, slow = lane["total"], lane["sensitive"] == 1
        counts, ripe = lane["count"].tolist(), int((lane["patch"] > RIPE).sum())
        return [
            Title("FairHarvest", int(lane["time"]), self._params.horizon),
            Returns("mean return so far", self._groups(lane)),
            gap_of(mean_of(total, ~slow), mean_of(total, slow)),
            Shares(f"{ripe} of {sum(counts)} ripe", [(HUES[RED + k], count) for k, count in enumerate(counts)]),
            Legend(self._legend(sorted(set(lane["preference"].tolist())))),
        ]

    def _groups(self, lane: Any) -> list[Group]:
        """Return the groups by speed, then by preference and speed."""
        slow = lane["sensitive"] == 1
        groups = speed_groups(lane["total"], slow)
        for colour in sorted(set(lane["preference"].tolist())):
            figure, members = Agent(HUES[colour]), lane["preference"] == colour
            groups += speed_groups(lane["total"], slow, within=members, name=COLOUR_NAMES[colour - RED], figure=figure)
        return groups

    def _legend(self, preferences: list[int]) -> list[tuple[Figure, str]]:
        north = DIRECTIONS[NORTH]
        return [
            *((Agent(HUES[colour]), f"prefers {COLOUR_NAMES[colour - RED]}") for colour in preferences),
            (Agent(NO_HUE, slow=True), f"1 turn in {self._params.handicap_period}"),
            (Agent(NO_HUE, facing=north), "looks north"),
            (Agent(NO_HUE, frozen=True), "frozen"),
            (Player(Agent(NO_HUE), NO_HUE, marked=True), "marked"),
            (Player(Agent(NO_HUE), RED_HUE), "planted red"),
            (Bush(RED_HUE, ripe=False), "unripe"),
            (Bush(RED_HUE, ripe=True), "ripe"),
        ]


def gap_of(full: float, half: float) -> Balance:
    """Return the scale of the gap between two mean returns of any sign, relative to their sizes; 0 is parity."""
    value = (full - half) / max(abs(full) + abs(half), 1.0)
    return Balance("gap (full - half) / (|full| + |half|)", value, "half speed ahead", "full speed ahead")


def players_of(lane: Any) -> list[Player]:
    """Return the figure of each agent."""
    names = ("preference", "sensitive", "frozen", "direction", "colour", "marked")
    return [
        Player(
            Agent(HUES[preference], slow=slow == 1, frozen=frozen > 0, facing=DIRECTIONS[direction]),
            HUES[worn],
            marked=marked == 1,
        )
        for preference, slow, frozen, direction, worn, marked in zip(*(lane[n].tolist() for n in names), strict=True)
    ]


def patch_of(code: int) -> Bush:
    """Return the figure of a patch."""
    return Bush(HUES[code - RIPE], ripe=True) if code > RIPE else Bush(HUES[code], ripe=False)
