"""Pictures of FairFraud, as pixels and as text. Pygame draws the pixels on surfaces that need no display.

The left side shows the current transaction and the last ones with their outcomes. The right side shows, for each
continent, how many transactions were checked, how many payments were stopped, and how many frauds went through.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BOLD,
    FAINT,
    INK,
    PAPER,
    TRACK,
    WHITE,
    Lines,
    Rgb,
    percent,
    share,
    styled,
)
from fair_envs.envs.fraud.rules import CANCELLED, CAUGHT, CONFIRMED, MISSED, OUTCOMES, PAID, RECENT
from fair_envs.envs.fraud.tables import CONTINENTS
from fair_envs.faces.window import import_pygame

# Pixels
WIDTH, HEIGHT, MARGIN = 1008, 576, 24
LEFT, RIGHT = 480, 456  # widths of the columns
CARD = (264, 160)
TILE, GAP, TILES_A_ROW = 27, 3, 16
SMALL, NORMAL, LARGE, HUGE = 16, 19, 26, 40  # text

GOLD: Rgb = (222, 188, 98)
STOPPED_BAR: Rgb = (201, 84, 30)
CHECKED_BAR: Rgb = (96, 104, 126)

CONTINENT_NAMES = ("Europe", "Asia", "North America", "Africa", "Oceania", "South America")
CONTINENT_COLOURS: tuple[Rgb, ...] = (
    (0, 98, 158),
    (196, 128, 0),
    (122, 60, 150),
    (0, 128, 92),
    (30, 140, 196),
    (178, 82, 132),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
MONTHS += ["August", "September", "October", "November", "December"]


class Look(NamedTuple):
    """The appearance of an outcome."""

    ground: Rgb
    letters: Rgb
    symbol: str  # in text
    ansi: str  # code of the colour in a terminal


LOOKS: dict[int, Look] = {
    PAID: Look((214, 228, 205), INK, ".", "32"),
    CONFIRMED: Look((126, 178, 112), INK, "+", "92"),
    CANCELLED: Look((255, 170, 60), INK, "-", "93"),
    CAUGHT: Look((84, 90, 108), WHITE, "x", "90"),
    MISSED: Look((186, 24, 34), WHITE, "!", "91"),
}


class Row(NamedTuple):
    """The record of a continent; shares are NaN if undefined."""

    continent: int
    total: int
    checked: float  # share of all transactions
    stopped: float  # share of the genuine payments
    missed: float  # share of the frauds


class Waiting(NamedTuple):
    """The current transaction, in words."""

    continent: int
    card: str
    place: str
    amount: str
    merchant: str
    when: str

    def lines(self) -> list[str]:
        """Return the lines beside the card."""
        return [self.amount, f"at {self.merchant}", self.when]


class FraudRenderer:
    """Draws FairFraud.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params, self._tables = rules.params, rules.tables  # type: ignore[attr-defined]
        self._lines = Lines(size=NORMAL)

    # ----------------------------------------------------------------------------------------------- the record

    def waiting(self, lane: Any) -> Waiting | None:
        """Return the current transaction, None after the last one."""
        if not lane["waiting"]:
            return None
        country = self._tables.countries[lane["country_now"]]
        continent = int(lane["continent_now"])
        return Waiting(
            continent=continent,
            card=f"card {lane['card_now']:04d}",
            place=f"{country}, {CONTINENT_NAMES[continent]}",
            amount=f"{lane['amount_now']:,.2f} {self._tables.currencies[lane['currency_now']]}",
            merchant=f"merchant {lane['merchant_now']}",
            when=f"{WEEKDAYS[lane['weekday']]} {lane['day']} {MONTHS[lane['month'] - 1]}, {lane['hour_now']} h",
        )

    def rows(self, lane: Any) -> list[Row]:
        """Return the record of each continent."""
        found = []
        for continent, counts in enumerate(np.asarray(lane["outcomes"]).tolist()):
            genuine, frauds = counts[PAID] + counts[CONFIRMED] + counts[CANCELLED], counts[CAUGHT] + counts[MISSED]
            checked = counts[CONFIRMED] + counts[CANCELLED] + counts[CAUGHT]
            shares = (
                share(checked, genuine + frauds),
                share(counts[CANCELLED], genuine),
                share(counts[MISSED], frauds),
            )
            found.append(Row(continent, genuine + frauds, *shares))
        return found

    def recent(self, lane: Any) -> Iterator[tuple[int, int]]:
        """Yield continent and outcome of the last transactions, the latest last."""
        time = int(lane["time"])
        for t in range(max(0, time - RECENT), time):
            yield int(lane["recent_continent"][t % RECENT]), int(lane["recent_outcome"][t % RECENT])

    def clock(self, lane: Any) -> str:
        """Return how many hours have passed."""
        return f"hour {min(int(lane['hour']), self._params.hours)} of {self._params.hours}"

    def customers(self, lane: Any) -> str:
        """Return the number of customers, their mean satisfaction, and how many have left."""
        count = int(lane["customers"])
        satisfied = f", {100 * lane['satisfaction_sum'] / count:.0f}% satisfied" if count else ""
        return f"{count} customers{satisfied}, {lane['lost']} left"

    # ---------------------------------------------------------------------------------------------------- text

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal."""
        title = f"FairFraud, transaction {lane['time']} of {self._params.horizon}, {self.clock(lane)}"
        waiting = self.waiting(lane)
        asked = "the week is over"
        if waiting is not None:
            asked = f"{waiting.card} ({waiting.place}): {', '.join(waiting.lines())}"
        recent = "".join(styled(LOOKS[o].symbol, LOOKS[o].ansi) for _, o in self.recent(lane))
        legend = "  ".join(f"{styled(look.symbol, look.ansi)} {OUTCOMES[o]}" for o, look in LOOKS.items())
        head = f"{'':<16}{'count':>6}{'checked':>10}{'stopped':>10}{'missed':>10}"
        return "\n".join(
            [styled(title, BOLD), self.customers(lane), asked, f"[{recent}]", legend, head, *map(line, self.rows(lane))]
        )

    # -------------------------------------------------------------------------------------------------- pixels

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        pygame = import_pygame()
        surface = pygame.Surface((WIDTH, HEIGHT), depth=32)
        surface.fill(PAPER)
        self._draw_title(surface, lane)
        self._draw_waiting(surface, self.waiting(lane), MARGIN, 104)
        self._draw_recent(surface, lane, MARGIN, 312)
        self._draw_rows(surface, self.rows(lane), WIDTH - MARGIN - RIGHT, 104)
        self._draw_legend(surface, lane, WIDTH - MARGIN - RIGHT, 452)
        return np.ascontiguousarray(pygame.surfarray.array3d(surface).swapaxes(0, 1))

    def _draw_title(self, surface: Any, lane: Any) -> None:
        """Draw the name, the share of the episode that has passed, and the customers."""
        time, horizon, right = int(lane["time"]), self._params.horizon, WIDTH - MARGIN
        self._lines.write(surface, "FairFraud", MARGIN, 36, size=HUGE)
        self._lines.write(surface, self.customers(lane), right, 28, right=True)
        self._lines.write(
            surface, f"transaction {time} of {horizon}, {self.clock(lane)}", right, 52, colour=FAINT, right=True
        )
        gone = max(time / horizon, int(lane["hour"]) / self._params.hours)
        surface.fill(TRACK, (MARGIN, 70, WIDTH - 2 * MARGIN, 6))
        surface.fill(INK, (MARGIN, 70, round((WIDTH - 2 * MARGIN) * min(1.0, gone)), 6))

    def _draw_waiting(self, surface: Any, waiting: Waiting | None, x: int, y: int) -> None:
        """Draw the card of the current transaction, in the colour of its continent, and the transaction's details."""
        self._lines.write(surface, "waits for a decision", x, y, colour=FAINT)
        top = y + 18
        if waiting is None:
            self._lines.write(surface, "nothing: the week is over", x, top + 24, size=LARGE)
            return
        ground = CONTINENT_COLOURS[waiting.continent]
        pygame = import_pygame()
        pygame.draw.rect(surface, ground, (x, top, *CARD), border_radius=14)
        pygame.draw.rect(surface, GOLD, (x + 22, top + 46, 40, 30), border_radius=6)
        pygame.draw.line(surface, ground, (x + 22, top + 61), (x + 61, top + 61), 2)
        pygame.draw.line(surface, ground, (x + 42, top + 46), (x + 42, top + 75), 2)
        self._lines.write(surface, CONTINENTS[waiting.continent], x + CARD[0] - 20, top + 36, size=HUGE, colour=WHITE,
                    ground=ground, right=True)  # fmt: skip
        self._lines.write(surface, waiting.card, x + 22, top + 104, size=LARGE, colour=WHITE, ground=ground)
        self._lines.write(surface, waiting.place, x + 22, top + 134, colour=WHITE, ground=ground)
        for k, (text, size) in enumerate(zip(waiting.lines(), (LARGE, NORMAL, NORMAL), strict=True)):
            self._lines.write(surface, text, x + CARD[0] + 20, top + 56 + 28 * k, size=size)

    def _draw_recent(self, surface: Any, lane: Any, x: int, y: int) -> None:
        """Draw the last transactions: colours show the outcome, letters the continent."""
        self._lines.write(surface, f"the last {RECENT} transactions", x, y, colour=FAINT)
        places = [(x + (TILE + GAP) * (k % TILES_A_ROW), y + 18 + 40 * (k // TILES_A_ROW)) for k in range(RECENT)]
        for left, top in places:
            surface.fill(TRACK, (left, top, TILE, 36))
        for (left, top), (continent, outcome) in zip(places, self.recent(lane), strict=False):
            look = LOOKS[outcome]
            surface.fill(look.ground, (left, top, TILE, 36))
            surface.fill(CONTINENT_COLOURS[continent], (left, top + 31, TILE, 5))
            letters = self._lines.draw(CONTINENTS[continent], size=SMALL, colour=look.letters, ground=look.ground)
            surface.blit(letters, (left + (TILE - letters.get_width()) // 2, top + 16 - letters.get_height() // 2))

    def _draw_rows(self, surface: Any, rows: Sequence[Row], x: int, y: int) -> None:
        """Draw a table of the continents with three bars each."""
        columns = ((x + 206, "checked"), (x + 294, "stopped"), (x + 382, "missed"))
        for left, text in ((x + 150, "count"), *columns):
            self._lines.write(surface, text, left, y, colour=FAINT)
        self._lines.write(surface, "of all", columns[0][0], y + 20, size=SMALL, colour=FAINT)
        self._lines.write(surface, "of genuine", columns[1][0], y + 20, size=SMALL, colour=FAINT)
        self._lines.write(surface, "of frauds", columns[2][0], y + 20, size=SMALL, colour=FAINT)
        colours = (CHECKED_BAR, STOPPED_BAR, LOOKS[MISSED].ground)
        for k, row in enumerate(rows):
            top = y + 40 + 48 * k
            ground = CONTINENT_COLOURS[row.continent]
            surface.fill(ground, (x, top, 36, 36))
            code = self._lines.draw(CONTINENTS[row.continent], size=NORMAL, colour=WHITE, ground=ground)
            surface.blit(code, (x + 18 - code.get_width() // 2, top + 18 - code.get_height() // 2))
            self._lines.write(surface, CONTINENT_NAMES[row.continent], x + 44, top + 18)
            self._lines.write(surface, str(row.total), x + 186, top + 18, right=True)
            for (left, _), value, colour in zip(columns, row[2:], colours, strict=True):
                self._draw_bar(surface, value, left, top, colour)

    def _draw_bar(self, surface: Any, value: float, x: int, y: int, colour: Rgb) -> None:
        """Draw a share as a bar below its number."""
        self._lines.write(surface, percent(value), x, y + 10)
        surface.fill(TRACK, (x, y + 24, 74, 10))
        if not math.isnan(value):
            surface.fill(colour, (x, y + 24, round(74 * value), 10))

    def _draw_legend(self, surface: Any, lane: Any, x: int, y: int) -> None:
        """Draw the meaning of the colours, and the count of each outcome."""
        counts = np.asarray(lane["outcomes"]).sum(axis=0).tolist()
        for k, (outcome, look) in enumerate(LOOKS.items()):
            left, top = x + 236 * (k // 3), y + 34 * (k % 3)
            surface.fill(look.ground, (left, top, TILE, 24))
            self._lines.write(surface, f"{OUTCOMES[outcome]}: {counts[outcome]}", left + TILE + 10, top + 12)


def line(row: Row) -> str:
    """Return a continent's row as text."""
    shares = "".join(f"{percent(value):>10}" for value in row[2:])
    return f"{CONTINENT_NAMES[row.continent]:<16}{row.total:>6}{shares}"
