"""Pictures of FairPursuit: a map of the torus with trails, and beside it how many evaders each pursuer captured."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLOCK,
    BLUE,
    BOLD,
    DIM,
    FAINT,
    GREEN,
    GRID_LINE,
    GROUND,
    INK,
    MARGIN,
    ORANGE,
    PANEL_WIDTH,
    PAPER,
    PURPLE,
    REVERSED,
    SKY,
    SMALL,
    TRACK,
    VERMILION,
    WHITE,
    Blank,
    Figure,
    Item,
    Pen,
    Point,
    Rgb,
    Sheet,
    Stock,
    Title,
    mixed,
    number,
    styled,
)
from fair_envs.envs.pursuit.params import PursuitParams
from fair_envs.envs.pursuit.rules import TRAIL, apart, nearest_squared
from fair_envs.faces.window import import_pygame
from fair_envs.support.aliases import Flags, Floats

MAP = 640  # pixels of a side
SQUARES = 6  # squares in a row of the map
FINER = 2  # factor by which lines are drawn larger before they are shrunk
DASH = 10  # pixels
AGENT_SIZES = range(24, 37)  # pixels
TURNS = 48  # number of directions of figures
SHARES = 8  # number of speed levels of figures
MOST_BARS = 2  # most bars behind a slow pursuer
MOST_LISTED = 12  # most pursuers in the panel
ROW = 26  # pixels
COLUMNS = 20  # columns of the map in a terminal, and rows

COLOURS: tuple[Rgb, ...] = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
CODES = ("94", "33", "92", "95", "96", "91")  # codes of the colours in a terminal
HALO: Rgb = (250, 218, 94)
REACH = mixed(INK, GROUND, 0.35)


class Pursuer(NamedTuple):
    """A pursuer: a disc with a nose, longer if it is faster; bars behind it if others are faster."""

    colour: int
    turn: int  # heading, counter-clockwise, in parts of `TURNS`
    share: int  # of the largest speed, in parts of `SHARES`
    bars: int  # number of larger speeds, up to `MOST_BARS`
    captor: bool = False  # whether it captured in the last step

    def paint(self, pen: Pen) -> None:
        """Draw the halo of a captor, the nose, the bars and the disc."""
        if self.captor:
            pen.disc(0.5, 0.5, 0.5, INK)  # a rim, for people who do not see yellow
            pen.disc(0.5, 0.5, 0.47, HALO)
        tip = 0.37 + 0.13 * self.share / SHARES
        pen.polygon([ahead(self.turn, tip, 0), ahead(self.turn, 0.1, 0.27), ahead(self.turn, 0.1, -0.27)], INK)
        for k in range(self.bars):
            back = -0.37 - 0.09 * k
            pen.stroke([ahead(self.turn, back, 0.15), ahead(self.turn, back, -0.15)], 0.055, INK)
        pen.disc(0.5, 0.5, 0.3, INK)
        pen.disc(0.5, 0.5, 0.265, COLOURS[self.colour])

    def letters(self) -> str:
        """Return a letter."""
        return "P "


class Evader(NamedTuple):
    """An evader: a kite that points in its heading, hollow once it is captured."""

    turn: int
    free: bool = True

    def paint(self, pen: Pen) -> None:
        """Draw the kite, hollow if captured."""
        self._kite(pen, 1.0, INK)
        if not self.free:
            self._kite(pen, 0.66, WHITE)

    def _kite(self, pen: Pen, size: float, colour: Rgb) -> None:
        corners = ((0.46, 0.0), (0.0, 0.25), (-0.3, 0.0), (0.0, -0.25))
        pen.polygon([ahead(self.turn, size * far, size * aside) for far, aside in corners], colour)

    def letters(self) -> str:
        """Return a capital letter for a free one."""
        return styled("E ", BOLD) if self.free else styled("e ", DIM)


class Reach(NamedTuple):
    """The circle within which an evader is captured."""

    def paint(self, pen: Pen) -> None:
        """Draw the circle."""
        pen.disc(0.5, 0.5, 0.42, REACH)
        pen.disc(0.5, 0.5, 0.36, PAPER)

    def letters(self) -> str:
        """Return nothing: a terminal has no room for it."""
        return "  "


def ahead(turn: int, far: float, aside: float) -> Point:
    """Return the point of the unit square at this distance from its middle, ahead and to the left of the heading."""
    angle = 2 * math.pi * turn / TURNS
    return (
        0.5 + far * math.cos(angle) - aside * math.sin(angle),
        0.5 - far * math.sin(angle) - aside * math.cos(angle),
    )


def readable(colour: Rgb) -> Rgb:
    """Return white or ink, whichever is more readable on a colour."""
    red, green, blue = colour
    return WHITE if 0.3 * red + 0.59 * green + 0.11 * blue < 125 else INK


# ------------------------------------------------------------------------------------------------ the panel


class Record(NamedTuple):
    """The record of a pursuer."""

    number: int
    figure: Pursuer
    speed: float
    distance: float  # to the nearest free evader; NaN if there is none
    captures: int  # in the episode
    caught: int  # in the last step


class Records(NamedTuple):
    """The pursuers: speed, distance, and a bar for the captures, which is full at all evaders."""

    records: Sequence[Record]
    others: int  # number of pursuers that are not listed
    evaders: int

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 30 + ROW * len(self.records) + (20 if self.others else 0)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw a row for each pursuer."""
        for text, right in (("speed", 86), ("to evader", 154), ("captures", PANEL_WIDTH)):
            sheet.write(text, right, y + 10, size=SMALL, colour=FAINT, right=True)
        for k, own in enumerate(self.records):
            self._paint(sheet, y + 22 + ROW * k, own)
        if self.others:
            sheet.write(f"and {self.others} more", 0, y + self.height - 16, size=SMALL, colour=FAINT)

    def _paint(self, sheet: Sheet, y: int, own: Record) -> None:
        sheet.icon(own.figure, 0, y)
        sheet.write(str(own.number), 28, y + 12)
        sheet.write(f"{own.speed:.3g}", 86, y + 12, right=True)
        sheet.write(number(own.distance, digits=2), 154, y + 12, right=True)
        left, width = 166, PANEL_WIDTH - 166 - 26
        sheet.bar(left, y + 6, width, 13, TRACK)
        sheet.bar(left, y + 6, width * own.captures / self.evaders, 13, COLOURS[own.figure.colour])
        sheet.write(str(own.captures), PANEL_WIDTH, y + 12, right=True)

    def lines(self) -> list[str]:
        """Return a line for each pursuer."""
        heading = f"{'':<12}{'speed':>8}{'to evader':>11}{'captures':>10}{'in this step':>14}"
        return [heading, *map(self._line, self.records), *([f"and {self.others} more"] if self.others else [])]

    def _line(self, own: Record) -> str:
        name, code = f"pursuer {own.number:<4}", CODES[own.figure.colour]
        numbers = f"{own.speed:>8.3g}{number(own.distance, digits=2):>11}{own.captures:>10}{own.caught:>14}"
        return styled(name, code) + numbers


class Status(NamedTuple):
    """The number of free evaders, and the captors of the last step."""

    free: int
    evaders: int
    captors: tuple[int, ...]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 46

    @property
    def words(self) -> tuple[str, str]:
        """Both in words."""
        shown = ", ".join(map(str, self.captors[:MOST_LISTED])) + ", ..." * (len(self.captors) > MOST_LISTED)
        return f"free evaders: {self.free} of {self.evaders}", f"captors in this step: {shown or 'none'}"

    def paint(self, sheet: Sheet, y: int) -> None:
        """Write two lines."""
        for k, words in enumerate(self.words):
            sheet.write(words, 0, y + 8 + 20 * k)

    def lines(self) -> list[str]:
        """Return the words."""
        return list(self.words)


class Legend(NamedTuple):
    """The meaning of the signs on the map.

    Attributes:
        square: Length of a square's side.
        across: Whether evaders are captured across the edges.
    """

    square: float
    across: bool

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 148

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the signs in two columns, and write the meaning of the edges."""
        signs: tuple[tuple[Figure, str], ...] = (
            (Pursuer(0, 0, SHARES, 0), "pursuer"),
            (Evader(0), "evader"),
            (Pursuer(0, 0, SHARES // 2, 1), "slower pursuer"),
            (Evader(0, free=False), "captured evader"),
            (Pursuer(0, 0, SHARES, 0, captor=True), "captor just now"),
            (Reach(), "capture radius"),
        )
        for k, (figure, word) in enumerate(signs):
            left, top = PANEL_WIDTH // 2 * (k % 2), y + 8 + ROW * (k // 2)
            sheet.icon(figure, left, top)
            sheet.write(word, left + 29, top + 12, size=SMALL, colour=FAINT)
        for k, words in enumerate((f"a square is {self.square:.3g} wide", f"dashed edges are joined{self._except}")):
            sheet.write(words, 0, y + 100 + 18 * k, size=SMALL, colour=FAINT)

    @property
    def _except(self) -> str:
        return "" if self.across else ", but not for captures"

    def lines(self) -> list[str]:
        """Return the letters' meaning."""
        return [styled("signs: ", DIM) + "numbers are pursuers, E free evaders, e captured ones"]


# ------------------------------------------------------------------------------------------------ the torus


def past(lane: Any) -> Floats:
    """Return the past positions of all agents, the oldest first, shape (times, agents, 2)."""
    kept = min(int(lane["time"]) + 1, TRAIL)
    places = (int(lane["newest"]) - kept + np.arange(kept)) % TRAIL
    return np.asarray(lane["trail"][places], np.float64)


def pieces(start: Point, end: Point, side: float) -> Iterator[tuple[Point, Point]]:
    """Yield the lines of a way on the map, which cuts off the parts outside; the way begins in [0, side)."""
    back = [sorted({0.0, -side * math.floor(coordinate / side)}) for coordinate in end]
    for x, y in itertools.product(*back):
        yield (start[0] + x, start[1] + y), (end[0] + x, end[1] + y)


def images(place: Point, reach: float, side: float) -> Iterator[Point]:
    """Yield the positions at which an agent of this radius is drawn: on the map, and beyond edges that it crosses."""
    moved = [[c, *(c + k for k in (-side, side) if -reach < c + k < side + reach)] for c in place]
    yield from ((x, y) for x, y in itertools.product(*moved))


def nearest_free(lane: Any, params: PursuitParams, pursuer: int) -> float:
    """Return a pursuer's distance to the nearest free evader; NaN if there is none."""
    if not np.any(lane["free"]):
        return math.nan
    return math.sqrt(nearest_squared(np.asarray(lane)[None].view(np.recarray)[0], params, pursuer))


# ------------------------------------------------------------------------------------------------ the picture


def numbered(pursuer: int, figure: Pursuer) -> str:
    """Return two columns with a pursuer's number, reversed if it captured in the last step."""
    codes = (CODES[figure.colour], REVERSED) if figure.captor else (CODES[figure.colour],)
    return styled(f"{pursuer:<2}", *codes)


def is_captor(figure: Pursuer | Evader) -> TypeGuard[Pursuer]:
    """Return whether a figure is a pursuer that captured in the last step."""
    return isinstance(figure, Pursuer) and figure.captor


def layer(figure: Pursuer | Evader) -> int:
    """Return the layer of a figure in a cell of text; a larger layer hides a smaller one."""
    return 2 if isinstance(figure, Pursuer) else int(figure.free)


class PursuitRenderer:
    """Draws FairPursuit; the first axis leads to the right, the second one upwards.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params = rules.params
        agents = self._params.pursuers + self._params.evaders
        self._size = int(np.clip(4000 / (100 + agents), AGENT_SIZES[0], AGENT_SIZES[-1]))
        self._stock = Stock(plain=False)
        self._empty: Any = None
        self._map: Any = None

    def figures(self, lane: Any) -> list[Pursuer | Evader]:
        """Return the figures of all agents: the pursuers, then the evaders."""
        turns = np.round(TURNS * np.arctan2(lane["facing"][:, 1], lane["facing"][:, 0]) / (2 * np.pi)) % TURNS
        turn = turns.astype(int).tolist()
        speeds, rank = np.unique(-lane["speed"], return_inverse=True)
        shares = np.round(SHARES * lane["speed"] / max(-speeds[0], 1e-12)).astype(int).tolist()
        rows = zip(turn, shares, rank.tolist(), lane["caught"].tolist(), strict=False)
        pursuers = [
            Pursuer(k % len(COLOURS), turn, share, min(MOST_BARS, bars), caught > 0)
            for k, (turn, share, bars, caught) in enumerate(rows)
        ]
        evaders = zip(turn[len(pursuers) :], lane["free"].tolist(), strict=True)
        return [*pursuers, *(Evader(turn, free > 0) for turn, free in evaders)]

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the pursuers' records, the number of free evaders, and the signs."""
        params = self._params
        captors = tuple(np.flatnonzero(lane["caught"]).tolist())
        return [
            Title("FairPursuit", int(lane["time"]), params.horizon),
            Status(int(np.sum(lane["free"])), params.evaders, captors),
            Records(self._records(lane), max(0, params.pursuers - MOST_LISTED), params.evaders),
            Legend(params.side / SQUARES, not params.legacy_physics),
        ]

    def _records(self, lane: Any) -> list[Record]:
        """Return the records of the listed pursuers, with figures that head to the right."""
        columns = (lane["speed"], lane["captures"], lane["caught"])
        rows = zip(self.figures(lane), *(column.tolist() for column in columns), strict=False)
        return [
            Record(k, figure._replace(turn=0), speed, nearest_free(lane, self._params, k), captures, caught)
            for k, (figure, speed, captures, caught) in zip(range(MOST_LISTED), rows, strict=False)
        ]

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal: a coarse map, then the panel."""
        title, *items = self.panel(lane)
        facts = (line for item in items for line in item.lines())
        edge = "+" + "- " * COLUMNS + "+"
        return "\n".join([*title.lines(), edge, *(f"|{row}|" for row in self._rows(lane)), edge, *facts])

    def _rows(self, lane: Any) -> list[str]:
        """Return the rows of the coarse map, the top first; free evaders hide captured ones, pursuers hide all."""
        cells = np.clip(np.floor(COLUMNS * lane["position"] / self._params.side), 0, COLUMNS - 1).astype(int).tolist()
        shown: dict[tuple[int, int], str] = {}
        agents = enumerate(zip(cells, self.figures(lane), strict=True))
        for k, ((x, y), figure) in sorted(agents, key=lambda agent: layer(agent[1][1])):
            shown[x, y] = numbered(k, figure) if isinstance(figure, Pursuer) else figure.letters()
        blank = Blank().letters()
        return ["".join(shown.get((x, y), blank) for x in range(COLUMNS)) for y in reversed(range(COLUMNS))]

    # ----------------------------------------------------------------------------------------------- pixels

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        items = self.panel(lane)
        surface = self._paper(items).copy()
        surface.blit(self._lines(lane), (MARGIN, MARGIN))
        surface.set_clip((MARGIN, MARGIN, MAP, MAP))
        self._draw_agents(surface, lane)
        surface.set_clip(None)
        sheet, top = Sheet(surface, MAP + 2 * MARGIN, MARGIN, self._stock), 0
        for item in items:
            item.paint(sheet, top)
            top += item.height
        return np.ascontiguousarray(import_pygame().surfarray.array3d(surface).swapaxes(0, 1))

    def _pixel(self, place: Point, whole: float = MAP) -> Point:
        """Return a position in pixels from the upper left corner, on a map of this width in pixels."""
        side = self._params.side
        return whole * place[0] / side, whole * (1 - place[1] / side)

    def _draw_agents(self, surface: Any, lane: Any) -> None:
        """Draw all agents, the first pursuer on top; an agent at an edge is also drawn at the opposite edge."""
        figures = [*enumerate(self.figures(lane))][::-1]
        without = [(k, figure._replace(captor=False) if is_captor(figure) else figure) for k, figure in figures]
        halos = [(k, figure) for k, figure in figures if is_captor(figure)]  # below all, to hide no evaders
        places, reach = lane["position"].tolist(), self._params.side * self._size / 2 / MAP
        for k, figure in (*halos, *without):
            for place in images(places[k], reach, self._params.side):
                self._draw(surface, k, figure, self._pixel(place))

    def _draw(self, surface: Any, agent: int, figure: Pursuer | Evader, at: Point) -> None:
        """Draw an agent centred at a point, and a pursuer's number."""
        x, y = MARGIN + round(at[0]), MARGIN + round(at[1])
        surface.blit(self._stock.tile((figure,), self._size, None), (x - self._size // 2, y - self._size // 2))
        if isinstance(figure, Pursuer):
            colour = COLOURS[figure.colour]
            text = self._stock.lines.draw(str(agent), size=self._size // 2, colour=readable(colour), ground=colour)
            surface.blit(text, (x - text.get_width() // 2, y - text.get_height() // 2))

    def _lines(self, lane: Any) -> Any:
        """Return the map with trails and circles, but without agents."""
        fine = self._ground().copy()
        self._draw_trails(fine, lane)
        self._draw_reaches(fine, lane)
        return import_pygame().transform.smoothscale(fine, (MAP, MAP))

    def _draw_trails(self, fine: Any, lane: Any) -> None:
        """Draw the past positions of all agents, fainter with age."""
        draw, side = import_pygame().draw, float(FINER * MAP)
        points = side * past(lane) / self._params.side * (1, -1) + (0, side)  # the second axis leads upwards
        ways = apart(side, points[:-1], points[1:])
        moved = np.any(ways != 0, axis=2) & self._followed(lane)
        lines = np.stack([points[:-1], points[:-1] + ways], axis=2)  # (times, agents, ends, 2)
        for time, agent in np.argwhere(moved).tolist():
            colour = self._trail_colour(agent, (len(ways) - time) / TRAIL)
            start, end = lines[time, agent].tolist()
            for piece in pieces(start, end, side):
                draw.line(fine, colour, *piece, width=2 * FINER)

    def _trail_colour(self, agent: int, age: float) -> Rgb:
        """Return the colour of an agent's trail; at age 1 it is invisible."""
        fresh = COLOURS[agent % len(COLOURS)] if agent < self._params.pursuers else INK
        return mixed(fresh, GROUND, 0.3 + 0.7 * age)

    def _followed(self, lane: Any) -> Flags:
        """Return which agents' steps are too short to be ambiguous on the torus, shape (agents,)."""
        params = self._params
        speeds = np.append(lane["speed"], np.full(params.evaders, params.evader_speed))
        return np.asarray(params.time_step * speeds < params.side / 2)

    def _draw_reaches(self, fine: Any, lane: Any) -> None:
        """Draw the circles around free evaders; the published physics does not capture across the edges."""
        params = self._params
        reach = min(params.pursuer_radius + params.evader_radius, params.side)
        evaders = lane["position"][params.pursuers :][lane["free"] > 0]
        for place in evaders.tolist():
            seen = [place] if params.legacy_physics else images(place, reach, params.side)
            for at in seen:
                radius = FINER * MAP * reach / params.side
                import_pygame().draw.circle(fine, REACH, self._pixel(at, FINER * MAP), radius, width=FINER)

    def _ground(self) -> Any:
        """Return the empty map in fine pixels, drawn once: squares, and dashes along the edges."""
        if self._map is None:
            self._map = import_pygame().Surface((FINER * MAP, FINER * MAP), depth=32)
            self._map.fill(GROUND)
            for k in range(1, SQUARES):
                line = FINER * MAP * k // SQUARES
                self._map.fill(GRID_LINE, (line, 0, FINER, FINER * MAP))
                self._map.fill(GRID_LINE, (0, line, FINER * MAP, FINER))
        return self._map

    def _paper(self, items: Sequence[Item]) -> Any:
        """Return the empty frame with the dashed edges of the map: a multiple of `BLOCK` that holds map and panel."""
        edges = (3 * MARGIN + MAP + PANEL_WIDTH, 2 * MARGIN + max(MAP, sum(item.height for item in items)))
        size = tuple(-(-edge // BLOCK) * BLOCK for edge in edges)
        if self._empty is None or self._empty.get_size() != size:
            self._empty = import_pygame().Surface(size, depth=32)
            self._empty.fill(PAPER)
            for start, edge in itertools.product(range(0, MAP, 2 * DASH), (MARGIN - 2, MARGIN + MAP)):
                self._empty.fill(FAINT, (MARGIN + DASH // 2 + start, edge, DASH, 2))
                self._empty.fill(FAINT, (edge, MARGIN + DASH // 2 + start, 2, DASH))
        return self._empty
