"""Pictures of FairEpidemic: the network with each person's health and community, and who was vaccinated last."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLUE,
    DIM,
    FAINT,
    GREEN,
    ICON,
    INK,
    MARGIN,
    PANEL_WIDTH,
    PAPER,
    PLAIN_BELOW,
    PURPLE,
    SMALL,
    TRACK,
    UNDERLINE,
    VERMILION,
    WHITE,
    Item,
    Pen,
    Rgb,
    Sheet,
    Stock,
    Title,
    frame_size,
    mixed,
    styled,
    with_panel,
)
from fair_envs.envs.epidemic.networks import Network, arranged
from fair_envs.envs.epidemic.rules import CAUGHT_IT, INFECTED, RECOVERED, SUSCEPTIBLE
from fair_envs.faces.window import import_pygame

SIDE = 640  # pixels of the network
PERSON_SIZES = range(8, 41)  # pixels
FINER = 3  # factor by which edges are drawn larger before they are shrunk

PALE: Rgb = (240, 228, 170)
SYRINGE: Rgb = PURPLE
EDGE = mixed(INK, PAPER, 0.62)
CUT = mixed(VERMILION, PAPER, 0.45)  # an edge between communities

IMMUNISED = 3  # one more state beside susceptible, infected and recovered: immune by a vaccine
STATES = ("susceptible", "infected", "recovered", "vaccinated in time")
COLOURS: tuple[Rgb, ...] = (PALE, VERMILION, BLUE, GREEN)
LETTERS = ("o", "X", "r", "v")
CODES = ("33", "91", "94", "92")  # codes of the colours in a terminal
CORNERS = (0, 4, 3, 6)  # corners of a community's shape; 0: a disc


class Person(NamedTuple):
    """A person: the shape shows the community, colour and sign the state, a ring a vaccination in the last step."""

    community: int
    state: int
    treated: bool = False
    changed: bool = False  # infected in the last step

    def paint(self, pen: Pen) -> None:
        """Draw the shape; if not plain, with outline and sign."""
        if self.treated:
            pen.disc(0.5, 0.5, 0.5, SYRINGE)
        colour = COLOURS[self.state]
        self._shape(pen, 0.38, VERMILION if self.changed else INK)
        self._shape(pen, 0.32, colour)
        if self.changed:
            self._shape(pen, 0.27, INK)
            self._shape(pen, 0.22, colour)
        if not pen.plain:
            self._sign(pen)

    def _shape(self, pen: Pen, radius: float, colour: Rgb) -> None:
        corners = CORNERS[self.community % len(CORNERS)]
        if not corners:
            pen.disc(0.5, 0.5, radius, colour)
            return
        turns = [2 * math.pi * (k + (0.5 if corners == 4 else 0)) / corners for k in range(corners)]
        reach = 1.2 * radius
        pen.polygon([(0.5 + reach * math.sin(turn), 0.5 - reach * math.cos(turn)) for turn in turns], colour)

    def _sign(self, pen: Pen) -> None:
        if self.state == INFECTED:
            pen.stroke([(0.42, 0.42), (0.58, 0.58)], 0.07, WHITE)
            pen.stroke([(0.58, 0.42), (0.42, 0.58)], 0.07, WHITE)
        elif self.state == RECOVERED:
            pen.stroke([(0.4, 0.51), (0.47, 0.59), (0.6, 0.42)], 0.06, WHITE)
        elif self.state == IMMUNISED:
            pen.stroke([(0.39, 0.5), (0.61, 0.5)], 0.08, WHITE)
            pen.stroke([(0.5, 0.39), (0.5, 0.61)], 0.08, WHITE)

    def letters(self) -> str:
        """Return a letter for the state, underlined if vaccinated in the last step."""
        codes = (CODES[self.state], UNDERLINE) if self.treated else (CODES[self.state],)
        return styled(LETTERS[self.state], *codes) + " "


# ------------------------------------------------------------------------------------------------ the panel


class Community(NamedTuple):
    """The current state of a community."""

    code: int
    name: str
    states: tuple[int, ...]  # people in each of `STATES`
    caught: int  # number of people infected so far, with the first ones
    doses: int  # vaccines given so far

    @property
    def people(self) -> int:
        """The number of people."""
        return sum(self.states)

    @property
    def wasted(self) -> int:
        """The number of doses without effect."""
        return self.doses - self.states[IMMUNISED]

    @property
    def words(self) -> str:
        """The infections and doses in one line."""
        return f"{self.caught} caught it, {self.doses} doses, {self.wasted} without effect"


class Communities(NamedTuple):
    """The state of each community, as bars of the same length that show shares, not counts."""

    rows: Sequence[Community]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 10 + 68 * len(self.rows)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw each community's shape, states and doses."""
        for k, row in enumerate(self.rows):
            self._paint(sheet, y + 10 + 68 * k, row)

    def _paint(self, sheet: Sheet, y: int, row: Community) -> None:
        sheet.icon(Person(row.code, SUSCEPTIBLE), 0, y - 2, size=ICON)
        sheet.write(row.name, ICON + 8, y + 10)
        sheet.write(f"{row.people} people", PANEL_WIDTH, y + 10, right=True)
        sheet.bar(0, y + 24, PANEL_WIDTH, 12, TRACK)
        left = 0.0
        for count, colour in zip(row.states, COLOURS, strict=True):
            width = PANEL_WIDTH * count / row.people
            sheet.bar(left, y + 24, width, 12, colour)
            left += width
        sheet.write(row.words, 0, y + 46, size=SMALL, colour=FAINT)

    def lines(self) -> list[str]:
        """Return a line for each community."""
        return [self._line(row) for row in self.rows]

    def _line(self, row: Community) -> str:
        states = ", ".join(f"{count} {name}" for count, name in zip(row.states, STATES, strict=True))
        return f"{row.name}: {row.people} people, {states}; {row.words}"


class Legend(NamedTuple):
    """The meaning of the signs, and the number of people with each."""

    counts: tuple[int, ...]  # people in each of `STATES`
    changed: int  # people infected in the last step

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 34 + 28 * (len(STATES) + 1)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw a sign and a line for each state, and for the newly infected."""
        sheet.write("all people", 0, y + 12, colour=FAINT)
        figures = [Person(0, state) for state in range(len(STATES))]
        figures.append(Person(0, INFECTED, changed=True))
        names, counts = (*STATES, "infected in this step"), (*self.counts, self.changed)
        for k, (figure, name, count) in enumerate(zip(figures, names, counts, strict=True)):
            top = y + 26 + 28 * k
            sheet.icon(figure, 0, top, size=ICON)
            sheet.write(name, ICON + 8, top + 12)
            sheet.write(str(count), PANEL_WIDTH, top + 12, right=True)

    def lines(self) -> list[str]:
        """Return the letters' meaning."""
        named = (f"{styled(LETTERS[k], CODES[k])} {name}" for k, name in enumerate(STATES))
        return [styled("signs: ", DIM) + ", ".join(named), f"infected in this step: {self.changed}"]


class Treated(NamedTuple):
    """The people who received the last vaccines; None stands for an unused vaccine."""

    names: tuple[str | None, ...]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 44

    @property
    def words(self) -> str:
        """The people in words."""
        people = ", ".join(name for name in self.names if name is not None)
        return f"vaccinated: {people or ('nobody' if self.names else '-')}"

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the ring and the words."""
        sheet.icon(Person(0, IMMUNISED, treated=True), 0, y + 8, size=ICON)
        sheet.write(self.words, ICON + 8, y + 20)

    def lines(self) -> list[str]:
        """Return the words."""
        return [self.words]


# ------------------------------------------------------------------------------------------------ the network


class EpidemicRenderer:
    """Draws FairEpidemic.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params = rules.params
        self._network: Network = rules.network  # type: ignore[attr-defined]
        given = self._network.places
        self._places = arranged(self._network) if given is None else given
        self._size = int(np.clip(2.2 * SIDE / (7 + self._network.people), PERSON_SIZES[0], PERSON_SIZES[-1]))
        self._stock = Stock(plain=self._size < PLAIN_BELOW)
        self._empty: Any = None

    def people(self, lane: Any) -> list[Person]:
        """Return each person's figure."""
        states = np.where(lane["immunised"] == 1, IMMUNISED, lane["health"]).tolist()
        treated = set(self._treated(lane))
        changed = (lane["change"] == CAUGHT_IT).tolist()
        return [
            Person(community, states[k], k in treated, changed[k])
            for k, community in enumerate(self._network.community.tolist())
        ]

    def _treated(self, lane: Any) -> list[int]:
        """Return who received the last vaccines; the index after the last person stands for an unused vaccine."""
        return np.array(lane["treated"]).tolist() if lane["time"] > 0 else []

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the communities, the last vaccine, and the signs."""
        labels = (*map(str, self._network.labels), None)
        rows, changed = list(self.communities(lane)), int((lane["change"] == CAUGHT_IT).sum())
        return [
            Title("FairEpidemic", int(lane["time"]), self._params.horizon),
            Communities(rows),
            Treated(tuple(labels[k] for k in self._treated(lane))),
            Legend(tuple(map(sum, zip(*(row.states for row in rows), strict=True))), changed),
        ]

    def communities(self, lane: Any) -> Iterator[Community]:
        """Yield the current state of each community."""
        states = np.where(lane["immunised"] == 1, IMMUNISED, lane["health"])
        for code, name in enumerate(self._network.names):
            members = self._network.community == code
            counts = np.bincount(states[members], minlength=len(STATES)).tolist()
            doses = int(lane["doses"][:-1][members].sum())
            yield Community(code, name, tuple(counts), counts[INFECTED] + counts[RECOVERED], doses)

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal: a row of people for each community."""
        people = self.people(lane)
        rows = (
            f"{name:<14}" + "".join(person.letters() for person in people if person.community == code)
            for code, name in enumerate(self._network.names)
        )
        title, *items = self.panel(lane)
        return "\n".join([*title.lines(), *rows, *(line for item in items for line in item.lines())])

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        items = self.panel(lane)
        surface = self._ground(items).copy()
        half = self._size // 2
        surface.blits(
            [
                (self._stock.tile((person,), self._size, None), (round(x) - half, round(y) - half))
                for person, (x, y) in zip(self.people(lane), self._pixels(), strict=True)
            ],
            False,
        )
        return with_panel(surface, items, SIDE + 2 * MARGIN, self._stock)

    def _pixels(self) -> list[tuple[float, float]]:
        """Return each person's position in pixels."""
        free = SIDE - self._size
        return [tuple(row) for row in (MARGIN + self._size / 2 + free * self._places).tolist()]

    def _ground(self, items: Sequence[Item]) -> Any:
        """Return the empty frame with the edges, drawn once."""
        size = frame_size(SIDE, SIDE, items)
        if self._empty is None or self._empty.get_size() != size:
            self._empty = self._drawn_edges(size)
        return self._empty

    def _drawn_edges(self, size: tuple[int, ...]) -> Any:
        pygame = import_pygame()
        large = pygame.Surface([FINER * edge for edge in size], depth=32)
        large.fill(PAPER)
        ends = [(FINER * x, FINER * y) for x, y in self._pixels()]
        community = self._network.community
        width = FINER if self._size < PLAIN_BELOW else 2 * FINER
        for one, other in self._network.edges.tolist():
            colour = EDGE if community[one] == community[other] else CUT
            pygame.draw.line(large, colour, ends[one], ends[other], width)
        return pygame.transform.smoothscale(large, size)
