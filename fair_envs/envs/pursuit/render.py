"""Pictures of FairPursuit: a map of the torus with trails and with who is first where, and who captured."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLUE,
    BOLD,
    DIM,
    FAINT,
    GREEN,
    GROUND,
    INK,
    MARGIN,
    ORANGE,
    PANEL_WIDTH,
    PAPER,
    PURPLE,
    REVERSED,
    SKY,
    TRACK,
    VERMILION,
    WHITE,
    Blank,
    Figure,
    Item,
    Legend,
    Pen,
    Point,
    Rgb,
    Sheet,
    Stock,
    Title,
    centred,
    frame_size,
    mixed,
    number,
    readable,
    styled,
    with_panel,
)
from fair_envs.envs.pursuit.params import PursuitParams
from fair_envs.envs.pursuit.rules import TRAIL, apart, nearest_squared
from fair_envs.faces.window import import_pygame
from fair_envs.support.aliases import Flags, Floats, Ints

# Pixels
MAP = 528  # of a side
FINER = 2  # factor by which lines are drawn larger before they are shrunk
DASH, EDGE = 12, 3  # length and thickness of the dashes along the edges
AGENT_SIZES = range(24, 43)
CELL = 3  # side of the cells that show who is first where
TRAIL_WIDTHS = 1.5, 5.0  # of the oldest piece, and of the newest
TITLE, NAME, TEXT = 30, 24, 20  # sizes of text
ROWS, LOWEST, TALLEST = 144, 26, 42  # heights: preferred of all rows, least and most of a row
TURNS = 48  # number of directions of figures
SHARES = 8  # number of speed levels of figures
MOST_BARS = 2  # most bars behind a slow pursuer
MOST_LISTED = 12  # most pursuers in the panel
DOTTED = 5  # steps between the dots of a trail
COLUMNS = 20  # columns of the map in a terminal, and rows

COLOURS: tuple[Rgb, ...] = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
CODES = ("94", "33", "92", "95", "96", "91")  # codes of the colours in a terminal
HALO: Rgb = (250, 218, 94)
REACH = mixed(INK, GROUND, 0.35)
BORDER = mixed(INK, PAPER, 0.6)
PALE = 0.68  # how much of the ground a colour has where a pursuer is first


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
        self._kite(pen, 0.8, INK)
        if not self.free:
            self._kite(pen, 0.5, WHITE)

    def _kite(self, pen: Pen, size: float, colour: Rgb) -> None:
        corners = ((0.46, 0.0), (0.0, 0.25), (-0.3, 0.0), (0.0, -0.25))
        pen.polygon([ahead(self.turn, size * far, size * aside) for far, aside in corners], colour)

    def letters(self) -> str:
        """Return a capital letter for a free one."""
        return styled("E ", BOLD) if self.free else styled("e ", DIM)


class Dots(NamedTuple):
    """A piece of a trail."""

    def paint(self, pen: Pen) -> None:
        """Draw a line with dots that becomes wider."""
        pen.polygon([(0.0, 0.47), (1.0, 0.4), (1.0, 0.6), (0.0, 0.53)], INK)
        for x in (0.2, 0.8):
            pen.disc(x, 0.5, 0.14, INK)

    def letters(self) -> str:
        """Return nothing: a terminal has no room for it."""
        return "  "


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
    def row(self) -> int:
        """Pixels from a row's top to the next one's."""
        return int(np.clip(ROWS // len(self.records), LOWEST, TALLEST))

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 30 + self.row * len(self.records) + (20 if self.others else 0)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw a row for each pursuer."""
        for text, right in (("speed", 112), ("to evader", 202), ("captures", PANEL_WIDTH)):
            sheet.write(text, right, y + 10, size=TEXT, colour=FAINT, right=True)
        for k, own in enumerate(self.records):
            self._paint(sheet, y + 24 + self.row * k, own)
        if self.others:
            sheet.write(f"and {self.others} more", 0, y + self.height - 12, size=TEXT, colour=FAINT)

    def _paint(self, sheet: Sheet, y: int, own: Record) -> None:
        size = min(self.row - 6, 36)
        middle = y + size // 2
        sheet.write(str(own.number), 0, middle, size=NAME)
        sheet.icon(own.figure, 42 - size // 2, y, size=size)
        sheet.write(f"{own.speed:.3g}", 112, middle, size=NAME, right=True)
        sheet.write(number(own.distance, digits=2), 196, middle, size=NAME, right=True)
        sheet.write(str(own.captures), PANEL_WIDTH, middle, size=NAME, right=True)
        sheet.bar(210, middle - 6, 52, 12, TRACK)
        sheet.bar(210, middle - 6, 52 * own.captures / self.evaders, 12, COLOURS[own.figure.colour])

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
        return 54

    @property
    def words(self) -> tuple[str, str]:
        """Both in words."""
        shown = ", ".join(map(str, self.captors[:MOST_LISTED])) + ", ..." * (len(self.captors) > MOST_LISTED)
        captors = f"capture by pursuer{'s' * (len(self.captors) > 1)} {shown}" if shown else "no capture in this step"
        return f"free evaders: {self.free} of {self.evaders}", captors

    def paint(self, sheet: Sheet, y: int) -> None:
        """Write two lines, the captors on a halo."""
        if self.captors:
            sheet.bar(-6, y + 25, PANEL_WIDTH + 12, 26, HALO)
        for k, words in enumerate(self.words):
            sheet.write(words, 0, y + 10 + 28 * k, size=NAME, ground=HALO if k and self.captors else PAPER)

    def lines(self) -> list[str]:
        """Return the words."""
        return list(self.words)


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


def speeds_differ(lane: Any) -> bool:
    """Return whether the pursuers have different speeds."""
    return len(np.unique(lane["speed"])) > 1


def all_speeds(lane: Any, params: PursuitParams) -> Floats:
    """Return the speeds of all agents, 0 for captured evaders, shape (agents,)."""
    return np.append(lane["speed"], params.evader_speed * lane["free"])


def first_there(lane: Any, params: PursuitParams, cells: int) -> Ints:
    """Return who could be first in each cell of the torus; a pursuer wins ties.

    Args:
        lane: The lane.
        params: The parameters.
        cells: Number of cells in a row (C).

    Returns:
        Indices of agents, shape (C, C), the first axis to the right and the second upwards.
    """
    middles = params.side * (np.arange(cells) + 0.5) / cells
    ways = apart(params.side, lane["position"][:, :, np.newaxis], middles)  # (agents, 2, C)
    slowness = np.maximum(all_speeds(lane, params), 1e-12)[:, np.newaxis] ** -2.0
    soonest, who = np.full((cells, cells), np.inf), np.zeros((cells, cells), np.int64)
    for agent, (across, up) in enumerate(slowness[:, np.newaxis] * ways**2):  # squares of times
        time = across[:, np.newaxis] + up
        who[time < soonest] = agent
        soonest = np.minimum(soonest, time)
    return who


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
        self._size = int(np.clip(4500 / (100 + agents), AGENT_SIZES[0], AGENT_SIZES[-1]))
        self._stock = Stock(plain=False)
        self._empty: Any = None

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
        few = params.pursuers <= ROWS // LOWEST
        return [
            Title("FairPursuit", int(lane["time"]), params.horizon, size=TITLE),
            Status(int(np.sum(lane["free"])), params.evaders, captors),
            Records(self._records(lane), max(0, params.pursuers - MOST_LISTED), params.evaders),
            Legend(
                self._signs(lane),
                words=styled("signs: ", DIM) + "numbers are pursuers, E free evaders, e captured ones",
                notes=("tinted: a pursuer can be there first", "white: an evader can be there first", self._edges()),
                columns=1 if few else 2,
                size=23 if few else 20,
            ),
        ]

    def _signs(self, lane: Any) -> list[tuple[Figure, str]]:
        """Return the signs on the map and their meaning."""
        fastest = Pursuer(0, 0, SHARES, 0)
        pursuers: list[tuple[Figure, str]] = [(fastest, "pursuer")]
        if speeds_differ(lane):
            pursuers = [(fastest, "fast pursuer"), (Pursuer(0, 0, SHARES // 2, 1), "slow pursuer")]
        return [
            *pursuers,
            (Evader(0), "evader"),
            (Evader(0, free=False), "captured evader"),
            (Reach(), "capture radius"),
            (Dots(), f"trail, a dot every {DOTTED} steps"),
        ]

    def _edges(self) -> str:
        """Return the meaning of the dashed edges."""
        return "dashed edges are joined" + ", but not for captures" * self._params.legacy_physics

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
        return with_panel(surface, items, MAP + 2 * MARGIN, self._stock)

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
        for k, figure in figures:
            if isinstance(figure, Pursuer):
                self._label(surface, figure, self._pixel(places[k]), speed=speeds_differ(lane))

    def _draw(self, surface: Any, agent: int, figure: Pursuer | Evader, at: Point) -> None:
        """Draw an agent centred at a point, and a pursuer's number."""
        x, y = MARGIN + round(at[0]), MARGIN + round(at[1])
        surface.blit(self._stock.tile((figure,), self._size, None), (x - self._size // 2, y - self._size // 2))
        if isinstance(figure, Pursuer):
            colour = COLOURS[figure.colour]
            text = self._stock.lines.draw(str(agent), size=self._size // 2, colour=readable(colour), ground=colour)
            surface.blit(text, (x - text.get_width() // 2, y - text.get_height() // 2))

    def _label(self, surface: Any, figure: Pursuer, at: Point, *, speed: bool) -> None:
        """Write behind a pursuer that it captured now, or whether others are faster; no speeds in a crowd."""
        shown = speed and self._params.pursuers <= MOST_LISTED
        if text := "captured!" if figure.captor else ("slow" if figure.bars else "fast") * shown:
            drawn = self._stock.lines.draw(text, size=TEXT, colour=INK, ground=HALO if figure.captor else PAPER)
            behind = self._size / 2 + 8 if 2 * figure.turn <= TURNS else -self._size / 2 - 8
            centred(surface, drawn, (MARGIN + at[0], MARGIN + at[1] + behind))

    def _lines(self, lane: Any) -> Any:
        """Return the map with trails and circles, but without agents."""
        pygame = import_pygame()
        fine = pygame.transform.smoothscale(self._territories(lane), (FINER * MAP, FINER * MAP))
        self._draw_trails(fine, lane)
        self._draw_reaches(fine, lane)
        return pygame.transform.smoothscale(fine, (MAP, MAP))

    def _territories(self, lane: Any) -> Any:
        """Return a small map in the colours of those who could be first in each cell, with lines between them."""
        who = first_there(lane, self._params, MAP // CELL)
        pursuers = [mixed(COLOURS[k % len(COLOURS)], PAPER, PALE) for k in range(self._params.pursuers)]
        colours = np.array([*pursuers, *[WHITE] * self._params.evaders], np.uint8)[who]
        border = (who != np.roll(who, 1, axis=0)) | (who != np.roll(who, 1, axis=1))
        colours[border] = BORDER
        return import_pygame().surfarray.make_surface(colours[:, ::-1])

    def _draw_trails(self, fine: Any, lane: Any) -> None:
        """Draw the past positions of all agents as lines, wider for later steps, with dots at equal times."""
        draw, side = import_pygame().draw, float(FINER * MAP)
        points = side * past(lane) / self._params.side * (1, -1) + (0, side)  # the second axis leads upwards
        ways = apart(side, points[:-1], points[1:])
        moved = np.any(ways != 0, axis=2) & self._followed(lane)
        lines = np.stack([points[:-1], points[:-1] + ways], axis=2)  # (times, agents, ends, 2)
        first = int(lane["time"]) - len(ways)
        for time, agent in np.argwhere(moved).tolist():
            colour, width = self._trail(agent, (len(ways) - time) / TRAIL)
            start, end = lines[time, agent].tolist()
            for piece in pieces(start, end, side):
                draw.line(fine, colour, *piece, width=round(FINER * width))
                dot = (first + time) % DOTTED == 0
                draw.circle(fine, colour, piece[0], FINER * (width / 2 + 2 * dot))

    def _trail(self, agent: int, age: float) -> tuple[Rgb, float]:
        """Return the colour and the width of a piece of an agent's trail; at age 1 it is thinnest."""
        colour = mixed(COLOURS[agent % len(COLOURS)], INK, 0.2) if agent < self._params.pursuers else INK
        thin, wide = TRAIL_WIDTHS
        return colour, wide + age * (thin - wide)

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

    def _paper(self, items: Sequence[Item]) -> Any:
        """Return the empty frame with the dashed edges of the map, drawn once."""
        size = frame_size(MAP, MAP, items)
        if self._empty is None or self._empty.get_size() != size:
            self._empty = import_pygame().Surface(size, depth=32)
            self._empty.fill(PAPER)
            for start, edge in itertools.product(range(0, MAP, 2 * DASH), (MARGIN - EDGE, MARGIN + MAP)):
                self._empty.fill(INK, (MARGIN + DASH // 2 + start, edge, DASH, EDGE))
                self._empty.fill(INK, (edge, MARGIN + DASH // 2 + start, EDGE, DASH))
        return self._empty
