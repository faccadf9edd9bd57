"""Pictures of FairAttention: a map of the locations, the last step's incidents, and the rates so far."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLUE,
    BOLD,
    DIM,
    FAINT,
    GREEN,
    GROUND,
    INK,
    LARGEST_FRAME,
    MARGIN,
    ORANGE,
    PANEL_WIDTH,
    PLAIN_BELOW,
    PURPLE,
    SKY,
    SMALL,
    TRACK,
    VERMILION,
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
    percent,
    share,
    styled,
)
from fair_envs.support.aliases import Floats32

COLOURS: tuple[Rgb, ...] = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
FOUND: Rgb = (0, 110, 90)
MISSED: Rgb = (200, 70, 20)
HEAT: Rgb = (224, 130, 90)  # of a location with a rate of `HOT` or more
HOT = 16.0
SHADES = 8
LARGEST_CELL = 144  # pixels
ROW_OF_DOTS, MOST_DOTS = 6, 24
MOST_LISTED = 12  # most locations in the panel
CHART_HEIGHT = 110


class Location(NamedTuple):
    """A location: the redder the higher its rate; squares for units, discs for incidents, hollow if missed."""

    name: int
    colour: Rgb
    shade: int  # of the rate, 0 to `SHADES`
    units: int
    found: int
    missed: int

    def paint(self, pen: Pen) -> None:
        """Draw the ground, the units and the incidents; if plain, the ground and whether there were units."""
        ground = mixed(GROUND, HEAT, self.shade / SHADES)
        pen.box(0.03, 0.03, 0.94, 0.94, ground)
        if pen.plain:
            if self.units:
                pen.box(0.3, 0.3, 0.4, 0.4, self.colour)
            return
        pen.box(0.03, 0.03, 0.94, 0.09, self.colour)
        for k in range(min(self.units, ROW_OF_DOTS)):
            pen.box(0.09 + 0.145 * k, 0.18, 0.1, 0.1, INK)
        for k in range(min(self.found + self.missed, MOST_DOTS)):
            self._dot(pen, 0.14 + 0.145 * (k % ROW_OF_DOTS), 0.42 + 0.155 * (k // ROW_OF_DOTS), k < self.found, ground)

    def _dot(self, pen: Pen, x: float, y: float, found: bool, ground: Rgb) -> None:
        pen.disc(x, y, 0.058, FOUND if found else MISSED)
        if not found:
            pen.disc(x, y, 0.03, ground)

    def letters(self) -> str:
        """Return the number of units; a dot if there are none."""
        return styled(f"{min(self.units, 99):<2}", BOLD) if self.units else styled("· ", DIM)


# ------------------------------------------------------------------------------------------------ the panel


class Mark(NamedTuple):
    """A symbol of the legend."""

    kind: int  # 0: a unit, 1: discovered, 2: missed

    def paint(self, pen: Pen) -> None:
        """Draw a square, a disc or a ring."""
        if self.kind == 0:
            pen.box(0.2, 0.2, 0.6, 0.6, INK)
            return
        pen.disc(0.5, 0.5, 0.36, FOUND if self.kind == 1 else MISSED)
        if self.kind == 2:
            pen.disc(0.5, 0.5, 0.19, WHITE)

    def letters(self) -> str:
        """Return a letter."""
        return "udm"[self.kind] + " "


class Legend(NamedTuple):
    """The meaning of the symbols on the map."""

    height: int = 30

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the symbols side by side."""
        for kind, word in enumerate(("unit", "discovered", "missed")):
            left = (0, 70, 180)[kind]
            sheet.icon(Mark(kind), left, y, size=16)
            sheet.write(word, left + 20, y + 8, size=SMALL, colour=FAINT)

    def lines(self) -> list[str]:
        """Return nothing: the text has column names instead."""
        return []


class Record(NamedTuple):
    """The record of a location."""

    name: str
    colour: Rgb
    rate: float
    units: int  # in the last step, as the next two fields
    found: int
    occurred: int
    discovered: int  # in the episode, as the next field
    missed: int


class Records(NamedTuple):
    """The locations: rate, last step, and how many incidents of the episode were discovered."""

    records: Sequence[Record]
    others: int  # number of locations that are not listed

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 26 + 26 * len(self.records) + (20 if self.others else 0)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw a bar for all incidents of a location, with the discovered part in colour."""
        sheet.write("rate", 96, y + 8, size=SMALL, colour=FAINT, right=True)
        sheet.write("incidents so far, discovered", PANEL_WIDTH, y + 8, size=SMALL, colour=FAINT, right=True)
        most = max(1, *(own.discovered + own.missed for own in self.records))
        for k, own in enumerate(self.records):
            self._paint(sheet, y + 22 + 26 * k, own, most)
        if self.others:
            sheet.write(f"and {self.others} more", 0, y + self.height - 12, size=SMALL, colour=FAINT)

    def _paint(self, sheet: Sheet, y: int, own: Record, most: int) -> None:
        left, width = 104, PANEL_WIDTH - 104 - 42
        sheet.bar(0, y + 3, 5, 16, own.colour)
        sheet.write(own.name.removeprefix("location "), 12, y + 11)
        sheet.write(number(own.rate), 96, y + 11, right=True)
        sheet.bar(left, y + 4, width * (own.discovered + own.missed) / most, 14, TRACK)
        sheet.bar(left, y + 4, width * own.discovered / most, 14, own.colour)
        sheet.write(percent(share(own.discovered, own.discovered + own.missed)), PANEL_WIDTH, y + 11, right=True)

    def lines(self) -> list[str]:
        """Return a line for each location."""
        heading = f"{'':<14}{'rate':>8}{'units':>7}{'discovered':>12}{'missed':>8}{'so far':>8}{'missed':>8}"
        return [heading, *map(self._line, self.records), *([f"and {self.others} more"] if self.others else [])]

    def _line(self, own: Record) -> str:
        last = f"{number(own.rate, digits=2):>8}{own.units:>7}{own.found:>12}{own.occurred - own.found:>8}"
        return f"{own.name:<14}{last}{own.discovered:>8}{own.missed:>8}"


class Chart(NamedTuple):
    """The rates over the episode."""

    rates: Floats32  # (times, locations), so far
    whole: int  # number of times in the whole episode

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 34 + CHART_HEIGHT

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw a curve for each location; the axis covers the whole episode."""
        highest = float(self.rates.max(initial=1.0))
        sheet.write("rates so far", 0, y + 8, colour=FAINT)
        sheet.write(f"up to {number(highest)}", PANEL_WIDTH, y + 8, size=SMALL, colour=FAINT, right=True)
        bottom, step = y + 22 + CHART_HEIGHT, PANEL_WIDTH / self.whole
        sheet.bar(0, bottom, PANEL_WIDTH, 1, TRACK)
        for k in range(min(self.rates.shape[1], MOST_LISTED)):
            heights = [CHART_HEIGHT * rate / highest for rate in self.rates[:, k].tolist()]
            for time, (before, now) in enumerate(zip(heights[:1] + heights, heights, strict=False)):
                top, foot = max(before, now), min(before, now)
                sheet.bar(step * time, bottom - top - 2, math.ceil(step), top - foot + 2, COLOURS[k % len(COLOURS)])

    def lines(self) -> list[str]:
        """Return nothing: a terminal has no room for it."""
        return []


# ------------------------------------------------------------------------------------------------ the picture


class AttentionRenderer(GridRenderer):
    """Draws FairAttention.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params, self._names = rules.params, rules.spec.groups
        self._whole = 1 + self._params.horizon // int(rules.code["trace_every"][0])
        columns = math.ceil(math.sqrt(self._params.locations))
        super().__init__(width=columns, height=math.ceil(self._params.locations / columns))
        if self.cell >= PLAIN_BELOW:
            across = (LARGEST_FRAME[0] - 3 * MARGIN - PANEL_WIDTH) // self.width
            self.cell = min(LARGEST_CELL, across, (LARGEST_FRAME[1] - 2 * MARGIN) // self.height)

    def figures(self, lane: Any) -> Iterable[tuple[Cell, tuple[Figure, ...]]]:
        """Yield the locations, row by row."""
        rows = zip(*(lane[name].tolist() for name in ("rates", "units", "found", "occurred")), strict=True)
        for k, (rate, units, found, occurred) in enumerate(rows):
            shade = min(SHADES, round(SHADES * rate / HOT))
            figure = Location(k, COLOURS[k % len(COLOURS)], shade, units, found, occurred - found)
            yield (k % self.width, k // self.width), (figure,)

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the legend, the locations' records, and their rates."""
        return [
            Title("FairAttention", int(lane["time"]), self._params.horizon),
            Legend(),
            Records(records_of(lane, self._names), max(0, self._params.locations - MOST_LISTED)),
            Chart(lane["past_rates"][: lane["kept"]], self._whole),
        ]


def records_of(lane: Any, names: Sequence[str]) -> list[Record]:
    """Return the records of the listed locations."""
    columns = ("rates", "units", "found", "occurred", "discovered", "missed")
    rows = zip(*(lane[name].tolist() for name in columns), strict=True)
    listed = list(zip(names, rows, strict=True))[:MOST_LISTED]
    return [Record(name, COLOURS[k % len(COLOURS)], *row) for k, (name, row) in enumerate(listed)]
