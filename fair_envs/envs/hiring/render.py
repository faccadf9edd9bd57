"""Pictures of FairHiring: the applicant, the team, and how many of each group were hired so far."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLUE,
    BOLD,
    DIM,
    FAINT,
    ICON,
    INK,
    ORANGE,
    PANEL_WIDTH,
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
    percent,
    share,
    styled,
)
from fair_envs.envs.hiring.population import (
    AGE,
    BELGIAN,
    DEGREE,
    DUTCH,
    EXPERIENCE,
    EXTRA,
    FEATURES,
    FOREIGN,
    GENDER,
    GENDERS,
    GERMAN,
    MAN,
    MARRIED,
    NATIONALITIES,
    NATIONALITY,
    WOMAN,
)
from fair_envs.envs.hiring.rules import GROUPS, HIRE, REJECT

COLOURS = {BELGIAN: BLUE, FOREIGN: ORANGE}
SEAT: Rgb = (224, 215, 197)
WOOD: Rgb = (150, 118, 84)
OPENING: Rgb = (255, 250, 232)
CODES = {BELGIAN: "94", FOREIGN: "33"}  # codes of the colours in a terminal
PORTRAIT = 96  # pixels
EDUCATION_WORDS = ("no degree", "a degree", "a degree and an extra one")
MAN_BODY = ((0.2, 0.97), (0.2, 0.58), (0.3, 0.47), (0.7, 0.47), (0.8, 0.58), (0.8, 0.97))
WOMAN_BODY = ((0.1, 0.97), (0.4, 0.47), (0.6, 0.47), (0.9, 0.97))
BODIES = {MAN: MAN_BODY, WOMAN: WOMAN_BODY}
OUTLINE = 0.05


class Person(NamedTuple):
    """A person: square shoulders for a man, a wide hem for a woman; blue if Belgian, orange with a sash if foreign."""

    gender: int
    nationality: int

    def paint(self, pen: Pen) -> None:
        """Draw head and body; if plain, the body fills the cell."""
        colour = COLOURS[self.nationality]
        if pen.plain:
            pen.polygon(((0, 1), (0, 0), (1, 0), (1, 1)) if self.gender == MAN else ((0, 1), (0.5, 0), (1, 1)), colour)
            return
        body = BODIES[self.gender]
        pen.polygon(body, colour)
        if self.nationality == FOREIGN:
            pen.stroke([(0.34, 0.56), (0.66, 0.9)], 0.11, WHITE)
        pen.stroke([*body, body[0]], OUTLINE, INK)
        pen.disc(0.5, 0.25, 0.205, INK)
        pen.disc(0.5, 0.25, 0.16, mixed(colour, WHITE, 0.55))

    def letters(self) -> str:
        """Return M or W, in lower case and underlined for foreign people."""
        letter = "MW"[self.gender]
        if self.nationality == FOREIGN:
            return styled(letter.lower() + " ", UNDERLINE, CODES[FOREIGN])
        return styled(letter + " ", BOLD, CODES[BELGIAN])


class Seat(NamedTuple):
    """An empty place in the team."""

    def paint(self, pen: Pen) -> None:
        """Draw a chair."""
        if pen.plain:
            pen.box(0.25, 0.25, 0.5, 0.5, SEAT)
            return
        pen.box(0.3, 0.35, 0.4, 0.3, SEAT)
        pen.box(0.24, 0.62, 0.52, 0.1, SEAT)
        for x in (0.27, 0.66):
            pen.box(x, 0.7, 0.07, 0.2, SEAT)

    def letters(self) -> str:
        """Return a small circle."""
        return styled("o ", DIM)


class Door(NamedTuple):
    """The open door with the applicant."""

    person: Person

    def paint(self, pen: Pen) -> None:
        """Draw the frame and the person."""
        pen.box(0.08, 0.0, 0.84, 1.0, WOOD)
        pen.box(0.14, 0.06, 0.72, 0.94, OPENING)
        pen.inset = 0.16
        self.person.paint(pen)
        pen.inset = 0.0

    def letters(self) -> str:
        """Return the person's letter."""
        return self.person.letters()


# ------------------------------------------------------------------------------------------------ the panel


class Applicant(NamedTuple):
    """The applicant at the door."""

    person: Person
    words: Sequence[str]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 24 + max(PORTRAIT, 16 * len(self.words)) + 12

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw the door, the features that the company observes, and then the label that it does not observe."""
        sheet.write("at the door", 0, y + 8, colour=FAINT)
        sheet.icon(Door(self.person), 0, y + 22, size=PORTRAIT)
        for k, line in enumerate(self.words):
            sheet.write(line, PORTRAIT + 6, y + 30 + 16 * k, size=SMALL)

    def lines(self) -> list[str]:
        """Return the applicant in words."""
        return ["at the door: " + self.person.letters() + ", ".join(self.words)]


class Record(NamedTuple):
    """The record of a group so far."""

    label: str
    person: Person
    applied: int
    qualified: int
    hired: int
    passed_over: int  # qualified and rejected


class Records(NamedTuple):
    """The record of each group so far, as bars on one scale."""

    records: Sequence[Record]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 40 + 50 * len(self.records)

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw each group's figure, numbers and bars: all applicants, qualified applicants, hired applicants."""
        sheet.write("applicants so far", 0, y + 8, colour=FAINT)
        left = 0
        for colour, meaning in ((TRACK, "applied"), (mixed(INK, WHITE, 0.55), "qualified"), (INK, "hired")):
            sheet.bar(left, y + 20, 10, 10, colour)
            sheet.write(meaning, left + 14, y + 26, size=SMALL, colour=FAINT)
            left += 88
        most = max(1, *(record.applied for record in self.records))
        for k, record in enumerate(self.records):
            self._paint(sheet, y + 38 + 50 * k, record, most)

    def _paint(self, sheet: Sheet, y: int, record: Record, most: int) -> None:
        colour, first = COLOURS[record.person.nationality], ICON + 8
        width = (PANEL_WIDTH - first) / most
        sheet.icon(record.person, 0, y + 4, size=ICON)
        sheet.write(record.label, first, y + 8)
        sheet.write(f"{percent(share(record.hired, record.applied))} hired", PANEL_WIDTH, y + 8, right=True)
        sheet.bar(first, y + 17, width * record.applied, 12, TRACK)
        sheet.bar(first, y + 17, width * record.qualified, 6, mixed(colour, WHITE, 0.55))
        sheet.bar(first, y + 23, width * record.hired, 6, colour)
        sheet.write(f"{record.passed_over} qualified rejected", first, y + 37, size=SMALL, colour=FAINT)
        sheet.write(f"{record.hired} of {record.applied}", PANEL_WIDTH, y + 37, size=SMALL, colour=FAINT, right=True)

    def lines(self) -> list[str]:
        """Return a line for each group."""
        heading = f"  {'':<18}{'applied':>9}{'qualified':>11}{'hired':>7}{'qualified rejected':>20}"
        return [heading, *(self._line(record) for record in self.records)]

    def _line(self, record: Record) -> str:
        numbers = f"{record.applied:>9}{record.qualified:>11}{record.hired:>7}{record.passed_over:>20}"
        return f"{record.person.letters()}{record.label:<18}{numbers}"


class Team(NamedTuple):
    """The number of employees."""

    size: int
    places: int
    departures: int

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 26

    def paint(self, sheet: Sheet, y: int) -> None:
        """Write the numbers."""
        sheet.write(f"team: {self.size} of {self.places}", 0, y + 8)
        sheet.write(f"{self.departures} have left", PANEL_WIDTH, y + 8, right=True, colour=FAINT)

    def lines(self) -> list[str]:
        """Return the numbers."""
        return [f"team: {self.size} of {self.places}, {self.departures} have left"]


# ----------------------------------------------------------------------------------------------- the company


class HiringRenderer(GridRenderer):
    """Draws FairHiring.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params = rules.params
        columns = math.ceil(math.sqrt(self._params.team_size))
        super().__init__(width=columns, height=math.ceil(self._params.team_size / columns))

    def figures(self, lane: Any) -> Iterable[tuple[Cell, tuple[Figure, ...]]]:
        """Yield the employees and the empty seats."""
        team = [person_of(employee) for employee in lane["team"][: lane["employees"]].tolist()]
        for place in range(self._params.team_size):
            figure: Figure = team[place] if place < len(team) else Seat()
            yield (place % self.width, place // self.width), (figure,)

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the applicant, the groups' records, and the team."""
        return [
            Title("FairHiring", int(lane["time"]), self._params.horizon),
            Applicant(person_of(lane["applicant"].tolist()), words_of(lane)),
            Records(records_of(lane)),
            Team(int(lane["employees"]), self._params.team_size, int(lane["departures"])),
        ]


PEOPLE = tuple(
    Person(gender, nationality) for gender in range(len(GENDERS)) for nationality in range(len(NATIONALITIES))
)


def person_of(features: Sequence[int]) -> Person:
    """Return the figure of a person with these features."""
    return Person(features[GENDER], features[NATIONALITY])


def words_of(lane: Any) -> list[str]:
    """Return the applicant's features, and whether hiring is correct, which the company does not observe."""
    own = lane["applicant"].tolist()
    spoken = [FEATURES[k].capitalize() for k in range(DUTCH, GERMAN + 1) if own[k]]
    return [
        f"{NATIONALITIES[own[NATIONALITY]]} {GENDERS[own[GENDER]]}, {own[AGE]}",
        "married" if own[MARRIED] else "not married",
        EDUCATION_WORDS[own[DEGREE] + own[EXTRA]],
        f"{own[EXPERIENCE]} years of experience",
        ", ".join(spoken),
        f"{'qualified' if lane['qualified'] else 'not qualified'} ({lane['goodness']:.2f})",
    ]


def records_of(lane: Any) -> list[Record]:
    """Return the record of each group so far."""
    return [
        Record(group, person, int(own.sum()), int(own[1].sum()), int(own[:, HIRE].sum()), int(own[1, REJECT]))
        for group, person, own in zip(GROUPS, PEOPLE, lane["tally"], strict=True)
    ]
