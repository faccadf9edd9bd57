"""Pictures of the harvest: the figures in the cells, and the entries of the panel beside the world."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BOLD,
    FAINT,
    ICON,
    INK,
    PANEL_WIDTH,
    REVERSED,
    SMALL,
    TRACK,
    UNDERLINE,
    WHITE,
    Cell,
    Figure,
    GridRenderer,
    Item,
    Pen,
    Rgb,
    Sheet,
    Title,
    mixed,
    number,
    styled,
)
from fair_envs.envs.harvest.params import MOVEMENT_ONLY, SKILL_FACTOR
from fair_envs.envs.harvest.rules import BLUE, NO_COLOUR, RED
from fair_envs.support.aliases import Flags
from fair_envs.support.parameters import encode

LEAF: Rgb = (62, 110, 66)
LEAF_EDGE: Rgb = (40, 78, 48)
FULL_BAR: Rgb = (122, 118, 110)
ICE: Rgb = (208, 244, 252)
ICE_EDGE: Rgb = (0, 168, 186)
UNRIPE: Rgb = (214, 205, 180)  # mixed into the colour of unripe berries; darker, red would not stand out from leaves
GOLD: Rgb = (250, 200, 50)

ON_ICE = "30;106"  # code for the letters of frozen agents in a terminal


class Hue(NamedTuple):
    """A colour of berries and of agents' preferences. Hues also differ in lightness, for colour-blind readers."""

    name: str
    rgb: Rgb
    ansi: str  # code of the colour in a terminal
    letter: str  # of an agent in text
    ripe: str  # symbol of a ripe bush in text
    unripe: str


RED_HUE = Hue("red", (208, 48, 24), "91", "R", "●", "○")
BLUE_HUE = Hue("blue", (58, 158, 232), "94", "B", "■", "□")
GREEN_HUE = Hue("green", (164, 204, 50), "92", "G", "▲", "△")
NO_HUE = Hue("no colour", (158, 154, 148), "37", "A", "◆", "◇")
HUES: Mapping[int, Hue] = {NO_COLOUR: NO_HUE, RED: RED_HUE, BLUE: BLUE_HUE}


# ------------------------------------------------------------------------------------------ figures in cells

LEAVES = [(0.5 + 0.3 * math.cos(k * math.pi / 4), 0.5 + 0.3 * math.sin(k * math.pi / 4)) for k in range(8)]
BERRIES = ((0.3, 0.35), (0.7, 0.38), (0.48, 0.7))


class Bush(NamedTuple):
    """A bush: big bright berries when it is ripe, small pale ones otherwise."""

    hue: Hue
    ripe: bool

    def paint(self, pen: Pen) -> None:
        """Draw a leafy square and its berries."""
        for radius, colour in ((0.2, LEAF_EDGE), (0.165, LEAF)):
            for x, y in LEAVES:
                pen.disc(x, y, radius, colour)
        pen.box(0.25, 0.25, 0.5, 0.5, LEAF)
        if pen.plain:
            self._paint_one_berry(pen)
            return
        for x, y in BERRIES:
            self._paint_berry(pen, x, y)

    def _paint_berry(self, pen: Pen, x: float, y: float) -> None:
        if not self.ripe:
            pen.disc(x, y, 0.1, self._pale())
            return
        pen.disc(x, y, 0.21, WHITE)
        pen.disc(x, y, 0.17, self.hue.rgb)
        pen.disc(x - 0.05, y - 0.06, 0.045, mixed(self.hue.rgb, WHITE, 0.75))

    def _paint_one_berry(self, pen: Pen) -> None:
        if not self.ripe:
            pen.disc(0.5, 0.5, 0.2, self._pale())
            return
        pen.disc(0.5, 0.5, 0.38, self.hue.rgb)
        pen.disc(0.5, 0.5, 0.16, WHITE)  # separates red from leaves where they look alike

    def _pale(self) -> Rgb:
        return mixed(self.hue.rgb, UNRIPE, 0.4)

    def letters(self) -> str:
        """Return a filled symbol if ripe, a hollow one otherwise; its shape also shows the colour."""
        return styled(f"{self.hue.ripe if self.ripe else self.hue.unripe} ", self.hue.ansi)


class Agent(NamedTuple):
    """An agent: a ball with eyes, or a snail if it is slow."""

    hue: Hue
    slow: bool = False
    frozen: bool = False
    skilled: bool = False
    facing: Cell | None = None  # (dx, dy) of the cell in front, in worlds where agents turn

    def paint(self, pen: Pen) -> None:
        """Draw the figure: with a nose if it has an orientation, a star if skilled, ice if frozen."""
        if self.frozen:
            paint_ice(pen)
            pen.inset = 0.13
        (paint_snail if self.slow else paint_ball)(pen, self.hue.rgb)
        if self.facing is not None:
            paint_nose(pen, self.facing)
        if self.skilled:
            paint_star(pen)
        pen.inset = 0.0
        if self.frozen and not pen.plain:
            paint_cracks(pen)

    def letters(self) -> str:
        """Return the colour's letter: upper case at full speed, lower case if slow, followed by # if frozen."""
        text = (self.hue.letter.lower() if self.slow else self.hue.letter) + ("#" if self.frozen else " ")
        if self.frozen:
            return styled(text, ON_ICE)
        return styled(text, *([UNDERLINE] if self.slow else [BOLD]), REVERSED, self.hue.ansi)


def paint_ball(pen: Pen, colour: Rgb) -> None:
    """Draw a ball with two eyes."""
    if pen.plain:
        pen.disc(0.5, 0.5, 0.48, colour)
        return
    pen.disc(0.5, 0.5, 0.44, INK)
    pen.disc(0.5, 0.5, 0.385, colour)
    for x in (0.36, 0.64):
        pen.disc(x, 0.42, 0.115, WHITE)
        pen.disc(x + 0.02, 0.43, 0.055, INK)


def paint_snail(pen: Pen, colour: Rgb) -> None:
    """Draw a snail: a foot, a head with two feelers, and a shell with a spiral; if plain, a heavy square."""
    if pen.plain:
        pen.box(0, 0, 1, 1, INK)
        pen.box(0.25, 0.25, 0.5, 0.5, colour)
        return
    pen.stroke([(0.1, 0.88), (0.8, 0.88), (0.87, 0.5)], 0.16, INK)
    pen.stroke([(0.87, 0.5), (0.95, 0.27)], 0.06, INK)
    pen.stroke([(0.87, 0.5), (0.8, 0.27)], 0.06, INK)
    pen.disc(0.42, 0.46, 0.41, INK)
    pen.disc(0.42, 0.46, 0.355, colour)
    turns = [0.25 * k for k in range(56)]  # radians
    spiral = [(0.42 + 0.018 * t * math.cos(t), 0.46 + 0.018 * t * math.sin(t)) for t in turns]
    pen.stroke(spiral, 0.065, WHITE)


def paint_nose(pen: Pen, facing: Cell) -> None:
    """Draw a wedge that points to the cell that the agent faces."""
    dx, dy = facing
    for tip, base, half, colour in ((0.5, 0.2, 0.26, INK), (0.44, 0.245, 0.17, WHITE)):
        x, y = 0.5 + base * dx, 0.5 + base * dy
        ends = [(x - half * dy, y + half * dx), (x + half * dy, y - half * dx)]
        pen.polygon([(0.5 + tip * dx, 0.5 + tip * dy), *ends], colour)


def paint_star(pen: Pen) -> None:
    """Draw a golden star in the upper left corner."""
    for size, colour in ((0.25, INK), (0.19, GOLD)):
        angles = [math.pi * (0.2 * k - 0.5) for k in range(10)]
        radii = [size if k % 2 == 0 else size * 0.5 for k in range(10)]
        points = [(0.24 + r * math.cos(a), 0.24 + r * math.sin(a)) for r, a in zip(radii, angles, strict=True)]
        pen.polygon(points, colour)


def paint_ice(pen: Pen) -> None:
    """Draw the block of ice around a frozen figure."""
    pen.box(0, 0, 1, 1, mixed(ICE_EDGE, ICE, 0.5) if pen.plain else ICE_EDGE)
    if not pen.plain:
        pen.box(0.07, 0.07, 0.86, 0.86, ICE)


def paint_cracks(pen: Pen) -> None:
    """Draw the ice in front of a frozen figure: a veil, and a cross of cracks."""
    pen.veil(ICE, 0.15)
    for width, colour in ((0.09, ICE_EDGE), (0.045, WHITE)):
        pen.stroke([(0.07, 0.07), (0.93, 0.93)], width, colour)
        pen.stroke([(0.93, 0.07), (0.07, 0.93)], width, colour)


# -------------------------------------------------------------------------------------- entries of the panel


class Group(NamedTuple):
    """A group of agents and its mean return so far; NaN if it has no members."""

    label: str
    figure: Agent
    members: int
    mean: float


class Returns(NamedTuple):
    """The groups' mean returns as bars from a common zero."""

    heading: str
    groups: Sequence[Group]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 24 + self._below(len(self.groups))

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw each group's figure, bar and mean."""
        sheet.write(self.heading, 0, y + 8, colour=FAINT)
        means = [group.mean for group in self.groups if not math.isnan(group.mean)]
        low, high = min(0.0, *means, 0.0), max(0.0, *means, 0.0)
        for k, group in enumerate(self.groups):
            self._paint_group(sheet, y + 20 + self._below(k), group, low, max(high, low + 1e-9))

    def _below(self, groups: int) -> int:
        """Return the height in pixels of this many groups; they come in pairs."""
        return (ICON + 2) * groups + 5 * (groups // 2)

    def _paint_group(self, sheet: Sheet, y: int, group: Group, low: float, high: float) -> None:
        """Draw one row; the track spans low to high."""
        first, width = 156, 76
        middle, zero = y + ICON // 2, first + width * -low / (high - low)
        sheet.icon(group.figure, 0, y)
        sheet.write(group.label, ICON + 6, middle)
        sheet.bar(first, middle - 6, width, 12, TRACK)
        if not math.isnan(group.mean):
            colour = FULL_BAR if group.figure.hue is NO_HUE else group.figure.hue.rgb
            sheet.bar(zero, middle - 6, width * group.mean / (high - low), 12, colour)
        sheet.bar(zero - 1, middle - 8, 2, 16, INK)
        sheet.write(number(group.mean), PANEL_WIDTH, middle, right=True)

    def lines(self) -> list[str]:
        """Return a line for each group."""
        return [self.heading, *(self._line(group) for group in self.groups)]

    def _line(self, group: Group) -> str:
        label = f"{group.label} ({group.members})"
        return f"  {group.figure.letters()} {label:<28}{number(group.mean):>10}"


class Balance(NamedTuple):
    """A number between -1 and 1 on a scale whose middle is parity; NaN if it is undefined."""

    heading: str
    value: float
    left: str  # who is ahead if the number is below 0
    right: str

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 62

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the scale and the number's position on it."""
        middle, half = PANEL_WIDTH // 2, PANEL_WIDTH // 2
        sheet.write(self.heading, 0, y + 8, colour=FAINT)
        sheet.write(number(self.value, digits=2, sign=True), PANEL_WIDTH, y + 8, right=True)
        sheet.bar(0, y + 20, PANEL_WIDTH, 12, TRACK)
        if not math.isnan(self.value):
            sheet.bar(middle, y + 20, half * max(-1.0, min(1.0, self.value)), 12, INK)
        sheet.bar(middle - 1, y + 17, 2, 18, INK)
        sheet.write(self.left, 0, y + 42, size=SMALL, colour=FAINT)
        sheet.write(self.right, PANEL_WIDTH, y + 42, size=SMALL, colour=FAINT, right=True)

    def lines(self) -> list[str]:
        """Return the number and the meaning of its signs."""
        return [f"{self.heading}: {number(self.value, digits=2, sign=True)}  (-1: {self.left}, +1: {self.right})"]


class Shares(NamedTuple):
    """The parts of a whole, side by side."""

    heading: str
    parts: Sequence[tuple[Hue, int]]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 46

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the parts as one bar."""
        sheet.write(self.heading, 0, y + 8, colour=FAINT)
        sheet.write(self._spelled(), PANEL_WIDTH, y + 8, right=True)
        sheet.bar(0, y + 20, PANEL_WIDTH, 12, TRACK)
        left, whole = 0.0, max(self._whole(), 1)
        for hue, part in self.parts:
            sheet.bar(left, y + 20, PANEL_WIDTH * part / whole, 12, hue.rgb)
            left += PANEL_WIDTH * part / whole

    def lines(self) -> list[str]:
        """Return the parts in percent."""
        return [f"{self.heading}: {self._spelled()}"]

    def _whole(self) -> int:
        return sum(part for _, part in self.parts)

    def _spelled(self) -> str:
        whole = self._whole()
        return ", ".join(f"{hue.name} {100 * part / whole:.0f}%" for hue, part in self.parts if part) if whole else "-"


class Legend(NamedTuple):
    """The meaning of the figures."""

    entries: Sequence[tuple[Figure, str]]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return (ICON + 4) * -(-len(self.entries) // 2)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the figures in two columns."""
        for k, (figure, meaning) in enumerate(self.entries):
            x, top = k % 2 * (PANEL_WIDTH // 2), y + (ICON + 4) * (k // 2)
            sheet.icon(figure, x, top)
            sheet.write(meaning, x + ICON + 6, top + ICON // 2)

    def lines(self) -> list[str]:
        """Return the letters and their meanings."""
        return ["   ".join(f"{figure.letters()} {meaning}" for figure, meaning in self.entries)]


# ---------------------------------------------------------------------------------------------- the harvest


class HarvestRenderer(GridRenderer):
    """Draws FairHarvest.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params, self._code, self._spec = rules.params, encode(rules.params), rules.spec
        super().__init__(width=self._params.width, height=self._params.height)

    def figures(self, lane: Any) -> Iterable[tuple[Cell, tuple[Figure, ...]]]:
        """Yield the agents and bushes."""
        agents, bushes = agents_of(lane), bushes_of(lane)
        xs, ys = np.nonzero(lane["cell"])
        for x, y, code in zip(xs.tolist(), ys.tolist(), lane["cell"][xs, ys].tolist(), strict=True):
            is_agent = code <= len(agents)
            yield (x, y), (agents[code - 1] if is_agent else bushes[code - 1 - len(agents)],)

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the groups' mean returns, their gap, the bushes' colours and the legend."""
        total, slow = lane["total"], lane["sensitive"] == 1
        full, half = mean_of(total, ~slow), mean_of(total, slow)
        counts = np.bincount(lane["colour"][: lane["bushes"]], minlength=3).tolist()
        return [
            Title("FairHarvest", int(lane["time"]), self._params.horizon),
            Returns("mean return so far", self._groups(lane)),
            gap_of(full, half),
            Shares(f"{sum(counts)} bushes", [(HUES[colour], counts[colour]) for colour in (RED, BLUE, NO_COLOUR)]),
            Legend(self._legend()),
        ]

    def _groups(self, lane: Any) -> list[Group]:
        """Return the groups by speed, then by the legitimate factor and speed."""
        total, slow = lane["total"], lane["sensitive"] == 1
        groups = speed_groups(total, slow)
        for name, figure, members in self._strata(lane):
            groups += speed_groups(total, slow, within=members, name=name, figure=figure)
        return groups

    def _strata(self, lane: Any) -> Iterable[tuple[str, Agent, Flags]]:
        """Yield each value of the legitimate factor: its name, an example agent, and its agents, shape (agents,)."""
        if self._code.legitimate == SKILL_FACTOR:
            for skilled, name in enumerate(self._spec.legitimate["skill"]):
                yield name, Agent(NO_HUE, skilled=skilled == 1), lane["skilled"] == skilled
        else:
            for colour in (RED, BLUE):
                yield HUES[colour].name, Agent(HUES[colour]), lane["preference"] == colour

    def _legend(self) -> list[tuple[Figure, str]]:
        what = "move" if self._code.handicap == MOVEMENT_ONLY else "turn"
        entries: list[tuple[Figure, str]] = [
            (Agent(RED_HUE), "prefers red"),
            (Agent(BLUE_HUE), "prefers blue"),
            (Agent(NO_HUE, slow=True), f"1 {what} in {self._params.handicap_period}"),
            (Agent(NO_HUE, frozen=True), "frozen"),
            (Bush(RED_HUE, ripe=False), "unripe"),
            (Bush(RED_HUE, ripe=True), "ripe"),
        ]
        if self._params.skilled_fraction > 0:
            entries.append((Agent(NO_HUE, skilled=True), "skilled"))
        return entries


def agents_of(lane: Any) -> list[Agent]:
    """Return the figure of each agent."""
    columns = (lane[name].tolist() for name in ("preference", "sensitive", "frozen", "skilled"))
    return [
        Agent(HUES[preference], slow=slow == 1, frozen=frozen != 0, skilled=skilled == 1)
        for preference, slow, frozen, skilled in zip(*columns, strict=True)
    ]


def bushes_of(lane: Any) -> list[Bush]:
    """Return the figure of each bush."""
    count = int(lane["bushes"])
    columns = (lane[name][:count].tolist() for name in ("colour", "ripe"))
    return [Bush(HUES[colour], ripe == 1) for colour, ripe in zip(*columns, strict=True)]


def speed_groups(
    total: NDArray[Any],
    slow: Flags,
    *,
    within: Flags | None = None,
    name: str = "",
    figure: Agent | None = None,
) -> list[Group]:
    """Return the agents at full speed and those at half speed, all or those ``within``; arrays have shape (agents,)."""
    within, figure = np.ones_like(slow) if within is None else within, figure or Agent(NO_HUE)
    groups = []
    for is_slow, speed in ((False, "full speed"), (True, "half speed")):
        members = within & (slow == is_slow)
        label = f"{name}, {speed}" if name else speed
        groups.append(Group(label, figure._replace(slow=is_slow), int(members.sum()), mean_of(total, members)))
    return groups


def mean_of(total: NDArray[Any], members: Flags) -> float:
    """Return the members' mean return; NaN without members."""
    return float(total[members].mean()) if members.any() else math.nan


def gap_of(full: float, half: float) -> Balance:
    """Return the scale of the gap between two mean returns, relative to their sum; 0 is parity."""
    value = (full - half) / max(full + half, 1.0)
    return Balance("gap (full - half) / (full + half)", value, "half speed ahead", "full speed ahead")
