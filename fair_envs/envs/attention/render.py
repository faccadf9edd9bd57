"""Pictures of FairAttention: for each location its units, what became of its incidents, its rate, and its record."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    MARGIN,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    TRACK,
    VERMILION,
    WHITE,
    Figure,
    Item,
    Legend,
    Pen,
    Rgb,
    Sheet,
    Stock,
    Title,
    number,
    percent,
    share,
    whole_blocks,
    with_panel,
)
from fair_envs.faces.window import import_pygame

# Pixels
WIDTH = 744  # of the table
TITLE, NAME, NUMBER, TEXT = 34, 23, 27, 20  # sizes of text
HEADINGS, ROWS, LOWEST, TALLEST = 52, 400, 36, 76  # heights: headings, preferred of all rows, least and most of a row
HOUSE, SIGN, TREND, LEGEND = 32, 22, 16, 26  # sizes of signs
UNITS, INCIDENTS, RATES, SO_FAR = 150, 266, 484, 650  # left edges of the columns
SIGNS = {UNITS: (UNITS + 30, 3, 2), INCIDENTS: (INCIDENTS + 80, 5, 8)}  # left edge, most in a line, letters before
CHART = 80  # width of a curve
COLUMNS = (
    (0, "each location", "is a group"),
    (UNITS, "units", "sent"),
    (INCIDENTS, "incidents in the step,", "discovered or missed"),
    (RATES, "mean incidents", "a step, over time"),
    (SO_FAR, "discovered", "so far"),
)

MOST_LISTED, MOST_SIGNS = 12, 10  # most locations that have a row each, and signs in a cell
COLOURS: tuple[Rgb, ...] = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
FOUND: Rgb = (0, 110, 90)
MISSED: Rgb = (200, 70, 20)


# ------------------------------------------------------------------------------------------------ the signs


class House(NamedTuple):
    """A house of the people of a location."""

    colour: Rgb

    def paint(self, pen: Pen) -> None:
        """Draw the house with its roof."""
        outline = ((0.5, 0.02), (1.0, 0.42), (0.88, 0.42), (0.88, 0.98), (0.12, 0.98), (0.12, 0.42), (0.0, 0.42))
        pen.polygon(outline, INK)
        pen.polygon(((0.5, 0.1), (0.9, 0.41), (0.83, 0.41), (0.83, 0.93), (0.17, 0.93), (0.17, 0.41)), self.colour)

    def letters(self) -> str:
        """Return a letter."""
        return "h "


class Unit(NamedTuple):
    """A unit of attention: a van."""

    def paint(self, pen: Pen) -> None:
        """Draw the body, the window and the wheels."""
        pen.polygon(((0.02, 0.2), (0.62, 0.2), (0.98, 0.5), (0.98, 0.76), (0.02, 0.76)), INK)
        pen.polygon(((0.62, 0.3), (0.84, 0.5), (0.62, 0.5)), WHITE)
        for x in (0.26, 0.74):
            pen.disc(x, 0.78, 0.15, PAPER)
            pen.disc(x, 0.78, 0.11, INK)

    def letters(self) -> str:
        """Return a letter."""
        return "u "


class Incident(NamedTuple):
    """An incident: a filled disc with a tick if a unit discovered it, a ring with an exclamation mark if none did."""

    found: bool

    def paint(self, pen: Pen) -> None:
        """Draw the disc and its sign."""
        pen.disc(0.5, 0.5, 0.48, FOUND if self.found else MISSED)
        if self.found:
            pen.stroke([(0.27, 0.52), (0.43, 0.69), (0.74, 0.33)], 0.11, WHITE)
            return
        pen.disc(0.5, 0.5, 0.36, PAPER)
        pen.stroke([(0.5, 0.27), (0.5, 0.53)], 0.12, MISSED)
        pen.disc(0.5, 0.71, 0.07, MISSED)

    def letters(self) -> str:
        """Return a letter."""
        return "d " if self.found else "m "


class Trend(NamedTuple):
    """Whether a rate rises or falls."""

    up: bool

    def paint(self, pen: Pen) -> None:
        """Draw a hollow triangle that points up, or a filled one that points down."""
        foot, tip = (0.82, 0.16) if self.up else (0.18, 0.84)
        pen.polygon(((0.08, foot), (0.92, foot), (0.5, tip)), INK)
        if self.up:
            pen.polygon(((0.3, 0.71), (0.7, 0.71), (0.5, 0.4)), PAPER)

    def letters(self) -> str:
        """Return an arrow."""
        return "^ " if self.up else "v "


# ------------------------------------------------------------------------------------------------ the table


class Record(NamedTuple):
    """The record of a location, or of all locations without a row."""

    name: str
    colour: Rgb | None  # None: several locations
    past_rates: Sequence[float]  # in the episode
    rate: float
    change: float  # of the rate in the last step
    units: int  # in the last step, as the next two fields
    found: int
    occurred: int
    discovered: int  # in the episode, as the next field
    missed: int


class Table(NamedTuple):
    """The locations, one in a row.

    Attributes:
        records: Their records.
        whole: Number of past rates in the whole episode.
    """

    records: Sequence[Record]
    whole: int

    @property
    def row(self) -> int:
        """Pixels from a row's top to the next one's."""
        return int(np.clip(ROWS // len(self.records), LOWEST, TALLEST))

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return HEADINGS + self.row * len(self.records) + 4

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the headings, and a row for each location."""
        for left, *words in COLUMNS:
            for k, line in enumerate(words):
                sheet.write(line, left, y + 8 + 19 * k, size=TEXT, colour=FAINT)
        highest = max([1.0, *(rate for own in self.records for rate in own.past_rates)])
        for k, own in enumerate(self.records):
            top = y + HEADINGS + self.row * k
            sheet.bar(0, top, WIDTH, 2, TRACK)
            self._paint(sheet, top + 2, top + 1 + self.row // 2, own)
            self._paint_rates(sheet, top + self.row - 4, own, highest)

    def _paint(self, sheet: Sheet, top: int, middle: int, own: Record) -> None:
        """Draw a row without the curve."""
        if own.colour is not None:
            sheet.icon(House(own.colour), 0, middle - HOUSE // 2, size=HOUSE)
        sheet.write(own.name, HOUSE + 8, middle, size=NAME)
        incidents = [Incident(k < own.found) for k in range(min(own.occurred, MOST_SIGNS))]
        units = [Unit()] * min(own.units, MOST_SIGNS)
        found = f"{own.found} of {own.occurred}" if own.occurred else "none"
        for left, words, signs, count in (
            (UNITS, str(own.units), units, own.units),
            (INCIDENTS, found, incidents, own.occurred),
        ):
            sheet.write(words, left, middle, size=NUMBER)
            if len(words) <= SIGNS[left][2]:
                self._paint_signs(sheet, top, left, signs, count)
        done = share(own.discovered, own.discovered + own.missed)
        sheet.write(percent(done), SO_FAR, middle - 7, size=NAME)
        sheet.bar(SO_FAR, middle + 4, WIDTH - SO_FAR, 9, TRACK)
        sheet.bar(SO_FAR, middle + 4, 0 if math.isnan(done) else (WIDTH - SO_FAR) * done, 9, FOUND)

    def _paint_signs(self, sheet: Sheet, top: int, column: int, signs: Sequence[Figure], count: int) -> None:
        """Draw signs in one or two lines; the last place holds the number of those that do not fit."""
        left, across, _ = SIGNS[column]
        step = SIGN + 3
        lines = 2 if self.row >= 2 * step + 6 else 1
        shown = signs if count <= across * lines else signs[: across * lines - 1]
        first = top + (self.row - step * min(lines, -(-len(signs) // across))) // 2
        places = [(left + step * (k % across), first + step * (k // across)) for k in range(across * lines)]
        for sign, (x, y) in zip(shown, places, strict=False):
            sheet.icon(sign, x, y, size=SIGN)
        if len(shown) < count:
            x, y = places[-1]
            sheet.write(f"+{count - len(shown)}", x, y + SIGN // 2, size=TEXT)

    def _paint_rates(self, sheet: Sheet, bottom: int, own: Record, highest: float) -> None:
        """Draw the rate, its last change, and its curve, whose axis covers the whole episode."""
        middle, step, tall = bottom + 5 - self.row // 2, CHART / self.whole, self.row - 10
        sheet.write(number(own.rate, digits=int(own.rate < 100)), RATES, middle, size=NUMBER)
        if own.change:
            sheet.icon(Trend(own.change > 0), RATES + 54, middle - TREND // 2, size=TREND)
        left = RATES + 76
        sheet.bar(left, bottom - 1, CHART, 1, FAINT)
        for time, rate in enumerate(own.past_rates):
            height = max(2.0, tall * rate / highest)
            sheet.bar(left + step * time, bottom - height, math.ceil(step), height, own.colour or FAINT)

    def lines(self) -> list[str]:
        """Return a line for each location."""
        heading = f"{'':<14}{'rate':>8}{'units':>7}{'discovered':>12}{'missed':>8}{'so far':>8}{'missed':>8}"
        return [heading, *map(self._line, self.records)]

    def _line(self, own: Record) -> str:
        last = f"{number(own.rate, digits=2):>8}{own.units:>7}{own.found:>12}{own.occurred - own.found:>8}"
        return f"{own.name:<14}{last}{own.discovered:>8}{own.missed:>8}"


# ------------------------------------------------------------------------------------------------ the picture


class AttentionRenderer:
    """Draws FairAttention.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params, self._names = rules.params, rules.spec.groups
        self._whole = 1 + self._params.horizon // int(rules.code["trace_every"][0])
        self._stock = Stock(plain=False)

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the locations' records, and the signs."""
        signs = (Unit(), "unit sent"), (Incident(True), "incident discovered"), (Incident(False), "incident missed")
        trends = (Trend(False), "mean falls: units there"), (Trend(True), "mean rises: no units")
        return [
            Title("FairAttention", int(lane["time"]), self._params.horizon, width=WIDTH, size=TITLE),
            Table(self.records(lane), self._whole),
            Legend([*signs, *trends], columns=3, width=WIDTH, size=LEGEND),
        ]

    def records(self, lane: Any) -> list[Record]:
        """Return the records of the first locations, and of the others together."""
        listed = [self._record(lane, slice(k, k + 1), name) for k, name in enumerate(self._names[:MOST_LISTED])]
        others = len(self._names) - MOST_LISTED
        return listed if others <= 0 else [*listed, self._record(lane, slice(MOST_LISTED, None), f"{others} more")]

    def _record(self, lane: Any, where: slice, name: str) -> Record:
        """Return the record of some locations: mean rates, and sums of numbers."""
        rates, units = lane["rates"][where], lane["units"][where]
        falls = -self._params.decrease_rate * units * (rates > 0)
        changes = np.where(units > 0, falls, lane["increases"][where]) if lane["time"] else np.zeros(1)
        counts = (int(lane[field][where].sum()) for field in ("units", "found", "occurred", "discovered", "missed"))
        return Record(
            name,
            COLOURS[where.start % len(COLOURS)] if len(rates) == 1 else None,
            lane["past_rates"][: lane["kept"], where].mean(axis=1).tolist(),
            float(rates.mean()),
            float(changes.mean()),
            *counts,
        )

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal."""
        return "\n".join(line for item in self.panel(lane) for line in item.lines())

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        items = self.panel(lane)
        edges = 2 * MARGIN + WIDTH, 2 * MARGIN + sum(item.height for item in items)
        surface = import_pygame().Surface([*map(whole_blocks, edges)], depth=32)
        surface.fill(PAPER)
        return with_panel(surface, items, MARGIN, self._stock)
