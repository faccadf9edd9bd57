"""Building blocks of pictures: colours, text, figures in cells, a panel, and the frame that holds both.

Pygame draws pixels on surfaces that need no display; text uses escape codes for a terminal.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fair_envs.faces.window import import_pygame

Rgb = tuple[int, int, int]
Cell = tuple[int, int]  # (x, y)
Point = tuple[float, float]  # (x, y)

# Pixels
LARGEST_FRAME = 1008, 704
CELL_SIZES = range(4, 73)  # pixels; the smallest size takes precedence over the largest frame
PLAIN_BELOW = 16  # cells smaller than this have no room for detail
MARGIN = 12
PANEL_WIDTH = 288
ICON = 24  # size of a figure in the panel
BLOCK = 16  # video codecs require sizes that are multiples of this
SMALL, NORMAL, LARGE = 15, 17, 24  # text
MOST_LINES = 2000  # most lines of text that are kept

PAPER: Rgb = (250, 248, 243)
GROUND: Rgb = (238, 231, 216)
GRID_LINE: Rgb = (224, 215, 197)
TRACK: Rgb = (228, 223, 212)  # the empty part of a bar
INK: Rgb = (38, 38, 46)
FAINT: Rgb = (112, 108, 100)
WHITE: Rgb = (255, 255, 255)

# Okabe and Ito's palette: colour-blind people can distinguish its colours
BLUE: Rgb = (0, 114, 178)
ORANGE: Rgb = (230, 159, 0)
GREEN: Rgb = (0, 158, 115)
PURPLE: Rgb = (204, 121, 167)
SKY: Rgb = (86, 180, 233)
VERMILION: Rgb = (213, 94, 0)

RESET, DIM, BOLD, UNDERLINE, REVERSED = "0", "2", "1", "4", "7"


def styled(text: str, *codes: str) -> str:
    """Return text between the terminal's escape codes."""
    return f"\x1b[{';'.join(codes)}m{text}\x1b[{RESET}m"


def readable(colour: Rgb) -> Rgb:
    """Return white or ink, whichever is more readable on a colour."""
    red, green, blue = colour
    return WHITE if 0.3 * red + 0.59 * green + 0.11 * blue < 125 else INK


def mixed(one: Rgb, other: Rgb, share: float) -> Rgb:
    """Return a colour between two: ``one`` at share 0, ``other`` at 1."""
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(one, other, strict=True))
    return red, green, blue


def number(value: float, *, digits: int = 1, sign: bool = False) -> str:
    """Return a number as text; - if it is undefined."""
    if math.isnan(value):
        return "-"
    return f"{value:{'+' if sign else ''}{f'.{digits}f' if abs(value) < 1e5 else '.2e'}}"


def share(part: float, whole: float) -> float:
    """Return a share, NaN if the whole is 0."""
    return part / whole if whole else math.nan


def percent(value: float) -> str:
    """Return a share as a percentage; - if it is undefined."""
    return "-" if math.isnan(value) else f"{100 * value:.0f}%"


# ------------------------------------------------------------------------------------------------- lines of text


class Lines:
    """Writes lines of text, and keeps each line once it has been drawn.

    Args:
        size: Default size of lines.
    """

    def __init__(self, *, size: int = NORMAL) -> None:
        self._size = size
        self._drawn: dict[tuple[str, int, Rgb, Rgb], Any] = {}

    def __len__(self) -> int:
        """Return the number of lines kept."""
        return len(self._drawn)

    def draw(self, text: str, *, size: int, colour: Rgb, ground: Rgb = PAPER) -> Any:
        """Return the surface with a line of text."""
        key = text, size, colour, ground
        if key not in self._drawn:
            if len(self._drawn) >= MOST_LINES:
                self._drawn.clear()
            self._drawn[key] = draw_line(*key)
        return self._drawn[key]

    def write(
        self,
        surface: Any,
        text: str,
        x: int,
        y: int,
        *,
        size: int | None = None,
        colour: Rgb = INK,
        ground: Rgb = PAPER,
        right: bool = False,
    ) -> None:
        """Write a line with its middle at height y; it begins at x, or ends there if ``right``."""
        drawn = self.draw(text, size=self._size if size is None else size, colour=colour, ground=ground)
        surface.blit(drawn, (x - drawn.get_width() if right else x, y - drawn.get_height() // 2))


def draw_line(text: str, size: int, colour: Rgb, ground: Rgb) -> Any:
    """Return a line of text; drawn large and shrunk, since hinting would space small letters unevenly."""
    pygame = import_pygame()
    pygame.font.init()  # again: a user may have called pygame.quit()
    large = pygame.font.Font(None, 4 * size).render(text, True, colour)
    paper = pygame.Surface(large.get_size(), depth=32)
    paper.fill(ground)
    paper.blit(large, (0, 0))
    return pygame.transform.smoothscale(paper, (large.get_width() // 4, large.get_height() // 4))


# ----------------------------------------------------------------------------------------- what stands in a cell


class Pen:
    """Draws on the unit square, x to the right and y downwards, on a larger scale that `tile` shrinks smoothly.

    Args:
        size: Side of the tile in pixels.
        ground: Colour of the empty square; None: transparent.
        plain: Whether figures should leave detail out, because cells are small.

    Attributes:
        inset: Share of the tile that is left free on each side.
    """

    def __init__(self, size: int, ground: Rgb | None, *, plain: bool = False) -> None:
        self.plain, self.inset = plain, 0.0
        self._pygame = import_pygame()
        self._size = size
        self._scale = size * max(4, math.ceil(96 / size))
        self._surface = self._empty_square(ground)

    def _empty_square(self, ground: Rgb | None) -> Any:
        if ground is None:
            surface = self._pygame.Surface((self._scale, self._scale), self._pygame.SRCALPHA, 32)
            surface.fill((*INK, 0))  # transparent, and at edges as dark as an outline
            return surface
        surface = self._pygame.Surface((self._scale, self._scale), depth=32)
        surface.fill(ground)
        return surface

    def disc(self, x: float, y: float, radius: float, colour: Rgb) -> None:
        """Fill a circle."""
        self._pygame.draw.circle(self._surface, colour, self._at(x, y), radius * self._side())

    def box(self, left: float, top: float, width: float, height: float, colour: Rgb) -> None:
        """Fill a rectangle."""
        (x, y), (to_x, to_y) = self._at(left, top), self._at(left + width, top + height)
        self._surface.fill(colour, (x, y, to_x - x, to_y - y))

    def polygon(self, points: Sequence[tuple[float, float]], colour: Rgb) -> None:
        """Fill a polygon."""
        self._pygame.draw.polygon(self._surface, colour, [self._at(x, y) for x, y in points])

    def stroke(self, points: Sequence[tuple[float, float]], width: float, colour: Rgb) -> None:
        """Draw a line through points with round joints and ends."""
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            dots = max(2, math.ceil(4 * math.dist((x, y), (to_x, to_y)) / width))
            for k in range(dots + 1):
                self.disc(x + (to_x - x) * k / dots, y + (to_y - y) * k / dots, width / 2, colour)

    def veil(self, colour: Rgb, strength: float) -> None:
        """Cover everything with a translucent colour; strength 1 hides what is below."""
        veil = self._pygame.Surface(self._surface.get_size(), depth=32)
        veil.fill(colour)
        veil.set_alpha(round(255 * strength))
        self._surface.blit(veil, (0, 0))

    def tile(self) -> Any:
        """Return the drawing in its final size."""
        return self._pygame.transform.smoothscale(self._surface, (self._size, self._size))

    def _at(self, x: float, y: float) -> tuple[int, int]:
        start, side = self.inset * self._scale, self._side()
        return round(start + x * side), round(start + y * side)

    def _side(self) -> float:
        """Return the side of the unit square in pixels."""
        return (1 - 2 * self.inset) * self._scale


class Figure(Protocol):
    """What can stand in a cell; hashable, because each figure is drawn once and kept."""

    def paint(self, pen: Pen) -> None:
        """Draw it."""

    def letters(self) -> str:
        """Return two columns of text."""


class Blank(NamedTuple):
    """An empty cell."""

    def paint(self, pen: Pen) -> None:
        """Draw the lines between the cells."""
        pen.box(0, 0, 1, 0.035, GRID_LINE)
        pen.box(0, 0, 0.035, 1, GRID_LINE)

    def letters(self) -> str:
        """Return a faint dot."""
        return styled("· ", DIM)


class Stock:
    """Keeps figures and lines of text once they are drawn. It needs neither a display nor live fonts.

    Args:
        plain: Whether figures leave detail out.

    Attributes:
        lines: The lines of text.
    """

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._tiles: dict[tuple[Any, ...], Any] = {}
        self.lines = Lines()

    def tile(self, figures: tuple[Figure, ...], size: int, ground: Rgb | None) -> Any:
        """Return the surface with the figures, the first one at the bottom."""
        key = figures, tuple(map(type, figures)), size, ground  # NamedTuples of equal fields are equal
        if key not in self._tiles:
            pen = Pen(size, ground, plain=self._plain)
            for figure in figures:
                figure.paint(pen)
            self._tiles[key] = pen.tile()
        return self._tiles[key]


# ----------------------------------------------------------------------------------------------------- the panel


class Sheet:
    """Writes and draws on the panel, in pixels from its upper left corner.

    Args:
        surface: The whole frame.
        left: Left edge of the panel in the frame.
        top: Upper edge of the panel in the frame.
        stock: The figures and lines.
    """

    def __init__(self, surface: Any, left: int, top: int, stock: Stock) -> None:
        self._surface, self._left, self._top, self._stock = surface, left, top, stock

    def write(
        self,
        text: str,
        x: int,
        y: int,
        *,
        size: int = NORMAL,
        colour: Rgb = INK,
        ground: Rgb = PAPER,
        right: bool = False,
    ) -> None:
        """Write a line with its middle at height y; it begins at x, or ends there if ``right``."""
        x, y = self._left + x, self._top + y
        self._stock.lines.write(self._surface, text, x, y, size=size, colour=colour, ground=ground, right=right)

    def bar(self, x: float, y: float, width: float, height: float, colour: Rgb) -> None:
        """Fill a rectangle; a negative width extends to the left."""
        left, right = sorted((round(x), round(x + width)))
        self._surface.fill(colour, (self._left + left, round(self._top + y), right - left, round(height)))

    def icon(self, figure: Figure, x: int, y: int, *, size: int = ICON) -> None:
        """Draw a figure with its upper left corner at (x, y)."""
        self._surface.blit(self._stock.tile((figure,), size, PAPER), (self._left + x, self._top + y))


class Item(Protocol):
    """An entry of the panel."""

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw it with its top at y."""

    def lines(self) -> list[str]:
        """Return it as text."""


class Title(NamedTuple):
    """The name of the world and the share of the episode that has passed."""

    name: str
    time: int
    horizon: int
    width: int = PANEL_WIDTH
    size: int = LARGE  # of the name

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return self._scaled(44)

    def _scaled(self, pixels: int) -> int:
        return round(pixels * self.size / LARGE)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the name, the step and a bar of the time that has passed."""
        sheet.write(self.name, 0, y + self._scaled(10), size=self.size)
        step = f"step {self.time} of {self.horizon}"
        sheet.write(step, self.width, y + self._scaled(11), size=self._scaled(NORMAL), right=True)
        sheet.bar(0, y + self._scaled(24), self.width, 5, TRACK)
        sheet.bar(0, y + self._scaled(24), self.width * self.time / self.horizon, 5, INK)

    def lines(self) -> list[str]:
        """Return the name and the step."""
        return [f"{styled(self.name, BOLD)}, step {self.time} of {self.horizon}"]


class Legend(NamedTuple):
    """The meaning of signs, in rows.

    Attributes:
        signs: The signs and their meaning.
        words: The legend of the text.
        notes: Lines below the signs.
        columns: Number of signs in a row.
        width: Pixels.
        size: Size of a sign in pixels.
    """

    signs: Sequence[tuple[Figure, str]]
    words: str = ""
    notes: Sequence[str] = ()
    columns: int = 2
    width: int = PANEL_WIDTH
    size: int = 20

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 8 + (self.size + 6) * -(-len(self.signs) // self.columns) + self.size * len(self.notes)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the signs, and write the notes."""
        text = 3 * self.size // 4
        for k, (figure, word) in enumerate(self.signs):
            left = self.width // self.columns * (k % self.columns)
            top = y + 8 + (self.size + 6) * (k // self.columns)
            sheet.icon(figure, left, top, size=self.size)
            sheet.write(word, left + self.size + 8, top + self.size // 2, size=text, colour=FAINT)
        for k, note in enumerate(reversed(self.notes)):
            sheet.write(note, 0, y + self.height - self.size // 2 - self.size * k, size=text, colour=FAINT)

    def lines(self) -> list[str]:
        """Return the words."""
        return [self.words] if self.words else []


# ----------------------------------------------------------------------------------------------------- the frame


def whole_blocks(edge: int) -> int:
    """Return the smallest multiple of `BLOCK` that is at least as long as an edge."""
    return -(-edge // BLOCK) * BLOCK


def frame_size(width: int, height: int, items: Iterable[Item]) -> tuple[int, int]:
    """Return the size of a frame in whole blocks that holds a map of this size and, on its right, a panel."""
    tallest = max(height, sum(item.height for item in items))
    return whole_blocks(3 * MARGIN + width + PANEL_WIDTH), whole_blocks(2 * MARGIN + tallest)


def centred(surface: Any, drawn: Any, place: Point) -> None:
    """Draw a finished drawing with its middle at a point."""
    surface.blit(drawn, (round(place[0] - drawn.get_width() / 2), round(place[1] - drawn.get_height() / 2)))


def with_panel(surface: Any, items: Iterable[Item], left: int, stock: Stock) -> NDArray[np.uint8]:
    """Draw a panel with these entries from this edge on, and return the picture, shape (height, width, 3)."""
    sheet, top = Sheet(surface, left, MARGIN, stock), 0
    for item in items:
        item.paint(sheet, top)
        top += item.height
    return np.ascontiguousarray(import_pygame().surfarray.array3d(surface).swapaxes(0, 1))


MARK = (230, 0, 180)  # colour of the box around an agent
MARK_WIDTH = 3  # pixels


class GridRenderer:
    """Draws lanes of a world of cells: the grid, and beside it a panel.

    A subclass overrides `figures` and `panel`. Drawing does not change the lane.

    Args:
        width: Number of columns.
        height: Number of rows.
    """

    def __init__(self, *, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.cell = cell_size(width, height)  # pixels
        self._stock = Stock(plain=self.cell < PLAIN_BELOW)
        self._empty: Any = None

    def figures(self, lane: Any) -> Iterable[tuple[Cell, tuple[Figure, ...]]]:
        """Yield the non-empty cells and the figures in each, the lowest first."""
        raise NotImplementedError

    def panel(self, lane: Any) -> list[Item]:
        """Return the entries of the panel from top to bottom."""
        raise NotImplementedError

    def mark(self, frame: NDArray[np.uint8], lane: Any, agent: int) -> None:
        """Draw a box around an agent into a picture of its lane, unless the agent is not on the map."""
        if lane["x"][agent] < 0:
            return
        left, top = (MARGIN + int(lane[axis][agent]) * self.cell for axis in ("x", "y"))
        cell = frame[top : top + self.cell, left : left + self.cell]
        for edge in (slice(None, MARK_WIDTH), slice(-MARK_WIDTH, None)):
            cell[edge] = cell[:, edge] = MARK

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        items = self.panel(lane)
        size = frame_size(self.width * self.cell, self.height * self.cell, items)
        if self._empty is None or self._empty.get_size() != size:
            self._empty = self._empty_frame(size)
        surface = self._empty.copy()
        tiles = ((self._tile(figures), self._corner(x, y)) for (x, y), figures in self.figures(lane))
        surface.blits(tiles, False)
        return with_panel(surface, items, self._corner(self.width, 0)[0] + MARGIN, self._stock)

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal; a cell is two columns wide."""
        cells = {cell: figures[-1].letters() for cell, figures in self.figures(lane)}
        blank, edge = Blank().letters(), f"+{'-' * 2 * self.width}+"
        rows = ("".join(cells.get((x, y), blank) for x in range(self.width)) for y in range(self.height))
        facts = (line for item in self.panel(lane) for line in item.lines())
        return "\n".join([edge, *(f"|{row}|" for row in rows), edge, *facts])

    def _tile(self, figures: tuple[Figure, ...]) -> Any:
        return self._stock.tile((Blank(), *figures), self.cell, GROUND)

    def _corner(self, x: int, y: int) -> tuple[int, int]:
        """Return the pixel at the upper left corner of a cell."""
        return MARGIN + x * self.cell, MARGIN + y * self.cell

    def _empty_frame(self, size: tuple[int, int]) -> Any:
        surface = import_pygame().Surface(size, depth=32)
        surface.fill(PAPER)
        for x in range(self.width):
            surface.blits([(self._tile(()), self._corner(x, y)) for y in range(self.height)], False)
        return surface


def cell_size(width: int, height: int) -> int:
    """Return the side of a cell in pixels: the largest that fits into the largest frame, within `CELL_SIZES`."""
    across = (LARGEST_FRAME[0] - 3 * MARGIN - PANEL_WIDTH) // width
    down = (LARGEST_FRAME[1] - 2 * MARGIN) // height
    return max(CELL_SIZES[0], min(CELL_SIZES[-1], across, down))
