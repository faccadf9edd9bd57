"""Pictures of FairCollege, as pixels and as text. Pygame draws the pixels on surfaces that need no display.

The left side shows the applicants of the last round: each one's original score, presented score and cost, beside the
threshold. The right side shows the record of each group so far.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.college.rules import ADMIT, ADVANTAGED, DISADVANTAGED, GROUPS
from fair_envs.envs.drawing import (
    BLUE,
    BOLD,
    FAINT,
    GRID_LINE,
    INK,
    PAPER,
    TRACK,
    WHITE,
    Lines,
    Rgb,
    mixed,
    number,
    percent,
    share,
    styled,
)
from fair_envs.faces.window import import_pygame

# Pixels
WIDTH, HEIGHT, MARGIN = 1008, 576, 24
AXIS = (MARGIN + 12, 604)  # positions of the scores 0 and 1
TOP, BOTTOM = 126, 532  # of the applicants
PANEL = 712  # its left edge
BAR = WIDTH - MARGIN - PANEL
SMALL, NORMAL, LARGE, HUGE = 16, 19, 26, 40  # text
RADIUS = 8.0  # largest radius of a mark
SMOOTH = 2  # factor by which figures are drawn larger before they are shrunk

MOST_SHOWN = 40  # most applicants shown
LINE: Rgb = (176, 32, 48)  # the threshold
COLOURS: dict[int, Rgb] = {ADVANTAGED: BLUE, DISADVANTAGED: (214, 132, 0)}
CODES = {ADVANTAGED: "94", DISADVANTAGED: "33"}  # codes of the colours in a terminal
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Person(NamedTuple):
    """An applicant of the last round."""

    group: int
    qualified: bool
    score: float
    presented: float
    paid: float
    admitted: bool


class Row(NamedTuple):
    """The record of a group so far; NaN if the group had no such applicants."""

    group: int
    applied: int
    qualified: int
    admitted_qualified: float  # share of the qualified who were admitted
    admitted_others: float  # share of the others
    burden: float  # mean cost for the qualified to reach the threshold
    paid: float  # mean cost paid by all


class CollegeRenderer:
    """Draws FairCollege.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params = rules.params
        self._lines = Lines(size=NORMAL)

    # ----------------------------------------------------------------------------------------------- the record

    def people(self, lane: Any) -> list[Person]:
        """Return the first applicants of the last round by group and score; none before the first round."""
        if not lane["time"]:
            return []
        names = ("past_group", "past_qualified", "past_score", "presented", "paid", "admitted")
        columns = zip(*(lane[name][:MOST_SHOWN].tolist() for name in names), strict=True)
        people = [Person(g, bool(q), score, shown, paid, a == ADMIT) for g, q, score, shown, paid, a in columns]
        return sorted(people, key=lambda person: (person.group, person.score))

    def rows(self, lane: Any) -> list[Row]:
        """Return the record of each group so far."""
        found = []
        for group, tally in enumerate(np.asarray(lane["tally"])):
            others, qualified = (int(own.sum()) for own in tally)
            shares = share(int(tally[1, ADMIT]), qualified), share(int(tally[0, ADMIT]), others)
            burden = share(float(lane["burden_sum"][group]), qualified)
            paid = share(float(lane["paid_sum"][group]), others + qualified)
            found.append(Row(group, others + qualified, qualified, *shares, burden, paid))
        return found

    def published(self, lane: Any) -> str:
        """Return what the jury published."""
        if not lane["time"]:
            return "nothing published yet"
        lottery = f", {percent(float(lane['epsilon']))} of the others admitted" if lane["epsilon"] else ""
        return f"threshold {lane['threshold']:.2f}{lottery}"

    # ---------------------------------------------------------------------------------------------------- text

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal."""
        title = styled(f"FairCollege, round {lane['time']} of {self._params.horizon}", BOLD)
        head = f"  {'':<15}{'applied':>9}{'qualified':>11}{'admitted':>10}{'others':>8}{'burden':>8}{'paid':>6}"
        people, rows = map(described, self.people(lane)), map(line, self.rows(lane))
        return "\n".join([f"{title}, {self.published(lane)}", *people, head, *rows])

    # -------------------------------------------------------------------------------------------------- pixels

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        pygame = import_pygame()
        people, rows = self.people(lane), self.rows(lane)
        figures = Figures()
        self._draw_axis(figures, lane)
        self._draw_people(figures, people)
        for group in range(len(GROUPS)):
            figures.mark(PANEL + RADIUS, panel_top(group) + 10, Person(group, False, 0, 0, 0, True), RADIUS)
        surface = figures.shrunk()
        self._write_title(surface, lane)
        self._write_plot(surface, lane, people)
        for k, row in enumerate(rows):
            self._write_row(surface, row, panel_top(k))
        return np.ascontiguousarray(pygame.surfarray.array3d(surface).swapaxes(0, 1))

    def _draw_axis(self, figures: "Figures", lane: Any) -> None:
        """Draw the score's grid, the threshold, and the share of the episode that has passed."""
        figures.box(MARGIN, 70, WIDTH - 2 * MARGIN, 6, TRACK)
        figures.box(MARGIN, 70, (WIDTH - 2 * MARGIN) * int(lane["time"]) / self._params.horizon, 6, INK)
        for tick in TICKS:
            figures.box(place(tick) - 0.5, TOP - 6, 1, BOTTOM - TOP + 12, GRID_LINE)
        if lane["time"]:
            figures.box(place(float(lane["threshold"])) - 1.5, TOP - 6, 3, BOTTOM - TOP + 12, LINE)

    def _draw_people(self, figures: "Figures", people: Sequence[Person]) -> None:
        """Draw a line for each applicant, from the original score to the presented one."""
        radius = radius_of(people)
        for k, person in enumerate(people):
            y, colour = height(k, people), COLOURS[person.group]
            if person.presented != person.score:
                left, right = sorted((place(person.score), place(person.presented)))
                figures.box(left, y - radius / 4, right - left, radius / 2, mixed(colour, PAPER, 0.5))
                figures.mark(place(person.score), y, person._replace(admitted=False, qualified=False), radius * 0.6)
            figures.mark(place(person.presented), y, person, radius)

    def _write_title(self, surface: Any, lane: Any) -> None:
        self._lines.write(surface, "FairCollege", MARGIN, 36, size=HUGE)
        right = WIDTH - MARGIN
        self._lines.write(surface, f"round {lane['time']} of {self._params.horizon}", right, 28, right=True)
        self._lines.write(surface, self.published(lane), right, 52, colour=LINE, right=True)

    def _write_plot(self, surface: Any, lane: Any, people: Sequence[Person]) -> None:
        """Write the scores of the axis, what each applicant paid, and the meaning of the marks."""
        count = f"{len(people)} of {self._params.applicants}" if people else "no"
        heading = f"{count} applicants: from the score they had to the one presented"
        self._lines.write(surface, heading, MARGIN, 96, colour=FAINT)
        self._lines.write(surface, "paid", PANEL - 40, 96, colour=FAINT, right=True)
        for tick in TICKS:
            self._lines.write(surface, f"{tick:g}", round(place(tick)) - 6, BOTTOM + 18, size=SMALL, colour=FAINT)
        legend = "filled: admitted    dot: qualified"
        self._lines.write(surface, legend, PANEL, BOTTOM + 18, size=SMALL, colour=FAINT)
        for k, person in enumerate(people):
            if person.paid:
                y = round(height(k, people))
                self._lines.write(surface, f"{person.paid:.2f}", PANEL - 40, y, size=SMALL, right=True)

    def _write_row(self, surface: Any, row: Row, top: int) -> None:
        """Write a group's numbers, each above its bar."""
        self._lines.write(surface, GROUPS[row.group], PANEL + 26, top + 10, size=LARGE)
        numbers = f"{row.applied} applied, {row.qualified} qualified"
        self._lines.write(surface, numbers, PANEL, top + 38, colour=FAINT)
        bars = (
            ("of the qualified admitted", percent(row.admitted_qualified), row.admitted_qualified),
            ("of the others admitted", percent(row.admitted_others), row.admitted_others),
            ("cost of reaching it, the qualified", number(row.burden, digits=2), row.burden),
        )
        for k, (label, text, value) in enumerate(bars):
            y = top + 62 + 44 * k
            self._lines.write(surface, label, PANEL, y, size=SMALL)
            self._lines.write(surface, text, WIDTH - MARGIN, y, right=True)
            surface.fill(TRACK, (PANEL, y + 13, BAR, 10))
            if not math.isnan(value):
                surface.fill(COLOURS[row.group], (PANEL, y + 13, round(BAR * min(1.0, value)), 10))


class Figures:
    """Draws discs, diamonds and boxes on a larger picture, which is then shrunk smoothly."""

    def __init__(self) -> None:
        self._pygame = import_pygame()
        self._surface = self._pygame.Surface((SMOOTH * WIDTH, SMOOTH * HEIGHT), depth=32)
        self._surface.fill(PAPER)

    def box(self, left: float, top: float, width: float, height: float, colour: Rgb) -> None:
        """Fill a rectangle."""
        self._surface.fill(colour, tuple(round(SMOOTH * side) for side in (left, top, width, height)))

    def mark(self, x: float, y: float, person: Person, radius: float) -> None:
        """Draw a disc, or a diamond for the disadvantaged: filled if admitted, with a dot if qualified."""
        colour = COLOURS[person.group]
        self._shape(x, y, radius, person.group, colour)
        if not person.admitted:
            self._shape(x, y, radius * 0.72, person.group, WHITE)
        if person.qualified:
            self._shape(x, y, radius * 0.36, ADVANTAGED, WHITE if person.admitted else INK)

    def _shape(self, x: float, y: float, radius: float, group: int, colour: Rgb) -> None:
        x, y, radius = SMOOTH * x, SMOOTH * y, SMOOTH * radius
        if group == ADVANTAGED:
            self._pygame.draw.circle(self._surface, colour, (x, y), radius)
            return
        wide = 1.2 * radius  # about the area of the disc
        self._pygame.draw.polygon(self._surface, colour, [(x - wide, y), (x, y - wide), (x + wide, y), (x, y + wide)])

    def shrunk(self) -> Any:
        """Return the picture in its final size."""
        return self._pygame.transform.smoothscale(self._surface, (WIDTH, HEIGHT))


def place(score: float) -> float:
    """Return the position of a score on the axis, in pixels."""
    return AXIS[0] + score * (AXIS[1] - AXIS[0])


def height(k: int, people: Sequence[Person]) -> float:
    """Return the height of an applicant's line, in pixels."""
    return TOP + (k + 0.5) * (BOTTOM - TOP) / len(people)


def radius_of(people: Sequence[Person]) -> float:
    """Return the radius of the marks: smaller if there are many."""
    return min(RADIUS, 0.42 * (BOTTOM - TOP) / max(len(people), 1))


def panel_top(k: int) -> int:
    """Return the top of a group's part of the panel, in pixels."""
    return 100 + 212 * k


def letter(group: int) -> str:
    """Return a group's first letter in its colour."""
    return styled(GROUPS[group][0].upper(), BOLD, CODES[group])


def described(person: Person) -> str:
    """Return an applicant as text."""
    decision = "admitted" if person.admitted else "rejected"
    scores = f"{person.score:.2f} -> {person.presented:.2f}" if person.paid else f"{person.presented:.2f}        "
    paid = f"paid {person.paid:.2f}" if person.paid else " " * 9
    return f"{letter(person.group)} {scores}  {paid}  {decision}  {'qualified' if person.qualified else ''}".rstrip()


def line(row: Row) -> str:
    """Return a group's row as text."""
    shares = f"{percent(row.admitted_qualified):>10}{percent(row.admitted_others):>8}"
    costs = f"{number(row.burden, digits=2):>8}{number(row.paid, digits=2):>6}"
    return f"{letter(row.group)} {GROUPS[row.group]:<15}{row.applied:>9}{row.qualified:>11}{shares}{costs}"
