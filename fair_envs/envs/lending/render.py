"""Pictures of FairLending, as pixels and as text. Pygame draws the pixels on surfaces that need no display.

The left column shows each group's current scores, with an outline of the initial scores, and the applicant above the
applicant's score. The right column shows what the bank observes of the applicant, each group's record, and the cash.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLUE,
    BOLD,
    DIM,
    FAINT,
    INK,
    ORANGE,
    PAPER,
    TRACK,
    WHITE,
    Lines,
    Pen,
    Rgb,
    Stock,
    mixed,
    number,
    percent,
    share,
    styled,
)
from fair_envs.envs.lending.params import ADVANTAGED, DISADVANTAGED, GROUPS
from fair_envs.envs.lending.rules import ACCEPT, PLOT_POINTS
from fair_envs.faces.window import import_pygame
from fair_envs.support.aliases import Floats

# Pixels
WIDTH, HEIGHT, MARGIN = 896, 512, 24
LEFT, RIGHT = 528, 280  # widths of the columns
PORTRAIT, STANDING = 72, 30
BARS_HEIGHT = 104
SMALL, NORMAL, LARGE, HUGE = 15, 18, 24, 36  # text
MOST_LABELS = 12  # most scores whose numbers fit under the bars

GREEN: Rgb = (0, 128, 92)
COLOURS = {ADVANTAGED: BLUE, DISADVANTAGED: ORANGE}
CODES = {ADVANTAGED: "94", DISADVANTAGED: "33"}  # codes of the colours in a terminal
BLOCKS = " ▁▂▃▄▅▆▇█"


class Person(NamedTuple):
    """A person of one group; people of the disadvantaged group wear a sash."""

    group: int

    def paint(self, pen: Pen) -> None:
        """Draw head and body."""
        body = ((0.18, 0.98), (0.2, 0.6), (0.32, 0.48), (0.68, 0.48), (0.8, 0.6), (0.82, 0.98))
        pen.polygon(body, COLOURS[self.group])
        if self.group == DISADVANTAGED:
            pen.stroke([(0.34, 0.58), (0.68, 0.92)], 0.12, WHITE)
        pen.stroke([*body, body[0]], 0.05, INK)
        pen.disc(0.5, 0.25, 0.205, INK)
        pen.disc(0.5, 0.25, 0.16, mixed(COLOURS[self.group], WHITE, 0.55))

    def letters(self) -> str:
        """Return the first letter of the group."""
        return styled(GROUPS[self.group][0].upper() + " ", BOLD, CODES[self.group])


class Group(NamedTuple):
    """The current state of a group."""

    group: int
    now: list[float]  # share of each score
    first: list[float]  # share of each score when the episode began
    asked: int  # applicants so far
    accepted: int
    would_repay: int  # applicants in the window who would repay
    served: int  # accepted among these

    @property
    def opportunity(self) -> float:
        """The acceptance rate in the window among applicants who would repay; NaN if there are none."""
        return share(self.served, self.would_repay)

    @property
    def means(self) -> tuple[float, float]:
        """The mean score at the start of the episode, and now."""
        scores = range(len(self.now))
        return float(np.dot(scores, self.first)), float(np.dot(scores, self.now))


class LendingRenderer:
    """Draws FairLending.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params = rules.params
        self._first: Floats = rules.distributions  # type: ignore[attr-defined]
        self._repayment: Floats = rules.repayment  # type: ignore[attr-defined]
        self._stock = Stock(plain=False)
        self._lines = Lines(size=NORMAL)

    # ----------------------------------------------------------------------------------------------- the record

    def groups(self, lane: Any) -> list[Group]:
        """Return the current state of both groups."""
        decisions = np.asarray(lane["window"])[: min(int(lane["time"]), self._params.window)]
        first = self._first[::-1] if lane["flipped"][0] else self._first
        found = []
        for group in range(len(GROUPS)):
            repaying = decisions[(decisions >> 2 & 1 == group) & (decisions & 1 == 1)]
            tally = np.asarray(lane["tally"][group])
            found.append(
                Group(
                    group=group,
                    now=np.asarray(lane["score_shares"][group]).tolist(),
                    first=first[group].tolist(),
                    asked=int(tally.sum()),
                    accepted=int(tally[:, ACCEPT].sum()),
                    would_repay=len(repaying),
                    served=int((repaying >> 1 & 1).sum()),
                )
            )
        return found

    def applicant(self, lane: Any) -> list[str]:
        """Return the applicant's features, and whether the applicant will repay, which the bank does not observe."""
        probability = percent(self._repayment[lane["score"]])
        would = "will repay" if lane["repays"] else "will not repay"
        return [GROUPS[lane["group"]], f"score {lane['score']}", f"repays with probability {probability}", f"({would})"]

    def gaps(self, groups: Sequence[Group]) -> list[str]:
        """Return the current gaps between the groups."""
        one, other = groups
        scores = abs(np.cumsum(one.now) - np.cumsum(other.now)).sum()  # `wasserstein`: environments import no metric
        return [
            f"gap in loans to those who would repay: {number(abs(one.opportunity - other.opportunity), digits=2)}",
            f"distance between the groups' scores: {number(float(scores), digits=2)}",
        ]

    def curve(self, lane: Any) -> list[tuple[float, float]]:
        """Return the cash so far, as points (share of the episode that has passed, cash)."""
        time, horizon = int(lane["time"]), self._params.horizon
        stride = -(-horizon // PLOT_POINTS)
        kept = np.asarray(lane["plot_cash"])[: lane["plot_length"]].tolist()
        points = [((k * stride + 1) / horizon, cash) for k, cash in enumerate(kept)]
        return [(0.0, self._params.starting_cash), *points, (time / horizon, float(lane["cash"]))]

    # ---------------------------------------------------------------------------------------------------- text

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal."""
        groups = self.groups(lane)
        lines = [
            styled(f"FairLending, step {lane['time']} of {self._params.horizon}", BOLD),
            f"cash: {lane['cash']:,.1f}",
            "asks for a loan: " + Person(int(lane["group"])).letters() + ", ".join(self.applicant(lane)),
        ]
        most = max(max(own.now) for own in groups)
        for own in groups:
            bars = "".join(BLOCKS[math.ceil(8 * value / most)] for value in own.now)
            first, now = own.means
            lines += [
                f"{Person(own.group).letters()}{GROUPS[own.group]:<14}[{styled(bars, CODES[own.group])}] "
                f"mean score {now:.2f}, first {first:.2f}",
                f"  {own.accepted} of {own.asked} accepted, {percent(own.opportunity)} of those who would repay",
            ]
        return "\n".join([*lines, *(styled(gap, DIM) for gap in self.gaps(groups))])

    # -------------------------------------------------------------------------------------------------- pixels

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        pygame = import_pygame()
        surface = pygame.Surface((WIDTH, HEIGHT), depth=32)
        surface.fill(PAPER)
        groups, right = self.groups(lane), WIDTH - MARGIN - RIGHT
        self._draw_title(surface, lane)
        for own in groups:
            self._draw_scores(surface, lane, groups, own, MARGIN, 92 + 212 * own.group)
        self._draw_applicant(surface, lane, right, 92)
        self._draw_fares(surface, groups, right, 214)
        self._draw_cash(surface, lane, right, 366)
        return np.ascontiguousarray(pygame.surfarray.array3d(surface).swapaxes(0, 1))

    def _draw_title(self, surface: Any, lane: Any) -> None:
        """Draw the name and the share of the episode that has passed."""
        time, horizon, width = int(lane["time"]), self._params.horizon, WIDTH - 2 * MARGIN
        self._lines.write(surface, "FairLending", MARGIN, 34, size=HUGE)
        self._lines.write(surface, f"step {time:,} of {horizon:,}", WIDTH - MARGIN, 38, right=True)
        surface.fill(TRACK, (MARGIN, 58, width, 5))
        surface.fill(INK, (MARGIN, 58, round(width * min(1.0, time / horizon)), 5))

    def _draw_scores(self, surface: Any, lane: Any, groups: Sequence[Group], own: Group, x: int, y: int) -> None:
        """Draw a group's shares of scores as bars, the initial ones as outlines, and the applicant if in this group."""
        pygame, colour, count = import_pygame(), COLOURS[own.group], len(own.now)
        first, now = own.means
        self._lines.write(surface, f"the {GROUPS[own.group]} group", x, y, size=LARGE)
        self._lines.write(
            surface,
            f"mean score {now:.2f}, at the start {first:.2f} (outlines)",
            x + LEFT,
            y,
            colour=FAINT,
            right=True,
        )
        bottom, most = y + 32 + STANDING + BARS_HEIGHT, max(max(each.now + each.first) for each in groups)
        surface.fill(FAINT, (x, bottom, LEFT, 1))
        for score in range(count):
            left, width = x + LEFT * score / count, max(1, round(0.8 * LEFT / count))
            tall, was = (round(BARS_HEIGHT * value / most) for value in (own.now[score], own.first[score]))
            surface.fill(mixed(colour, WHITE, 0.25), (round(left), bottom - tall, width, tall))
            if width > 8 and was:
                pygame.draw.rect(surface, INK, (round(left), bottom - was, width, was + 1), 2)
            if count <= MOST_LABELS:
                self._lines.write(surface, str(score), round(left), bottom + 12, size=SMALL)
                self._lines.write(
                    surface, percent(own.now[score]), round(left) + width, bottom + 12, size=SMALL, colour=FAINT,
                    right=True,
                )  # fmt: skip
            if lane["group"] == own.group and lane["score"] == score:
                stands = round(left + width / 2 - STANDING / 2), bottom - max(tall, was) - STANDING - 2
                surface.blit(self._stock.tile((Person(own.group),), STANDING, PAPER), stands)

    def _draw_applicant(self, surface: Any, lane: Any, x: int, y: int) -> None:
        """Draw the applicant and the applicant's features."""
        self._lines.write(surface, "asks for a loan", x, y, colour=FAINT)
        surface.blit(self._stock.tile((Person(int(lane["group"])),), PORTRAIT, PAPER), (x, y + 14))
        for k, words in enumerate(self.applicant(lane)):
            self._lines.write(surface, words, x + PORTRAIT + 12, y + 24 + 19 * k, colour=FAINT if k == 3 else INK)

    def _draw_fares(self, surface: Any, groups: Sequence[Group], x: int, y: int) -> None:
        """Draw each group's acceptance rate among those who would repay, and the gaps."""
        self._lines.write(
            surface, f"accepted of those who would repay, last {self._params.window:,}", x, y, size=SMALL, colour=FAINT
        )
        for own in groups:
            top, value = y + 16 + 40 * own.group, own.opportunity
            surface.blit(self._stock.tile((Person(own.group),), 28, PAPER), (x, top))
            self._lines.write(surface, f"{own.served} of {own.would_repay}", x + 36, top + 8, size=SMALL)
            self._lines.write(surface, percent(value), x + RIGHT, top + 8, right=True)
            surface.fill(TRACK, (x + 36, top + 18, RIGHT - 36, 10))
            if not math.isnan(value):
                surface.fill(COLOURS[own.group], (x + 36, top + 18, round((RIGHT - 36) * value), 10))
        for k, gap in enumerate(self.gaps(groups)):
            self._lines.write(surface, gap, x, y + 104 + 18 * k, size=SMALL)

    def _draw_cash(self, surface: Any, lane: Any, x: int, y: int) -> None:
        """Draw the cash as a curve relative to the starting cash."""
        pygame, height = import_pygame(), 96
        self._lines.write(surface, "cash", x, y, colour=FAINT)
        self._lines.write(surface, f"{lane['cash']:,.1f}", x + RIGHT, y, size=LARGE, right=True)
        points, began = self.curve(lane), self._params.starting_cash
        reach = max(10 * self._params.loan_amount, *(abs(cash - began) for _, cash in points))
        middle = y + 18 + height // 2
        surface.fill(mixed(TRACK, PAPER, 0.5), (x, y + 18, RIGHT, height))
        surface.fill(FAINT, (x, middle, RIGHT, 1))
        drawn = [(x + RIGHT * gone, middle - 0.92 * (cash - began) / reach * height / 2) for gone, cash in points]
        pygame.draw.lines(surface, GREEN, False, drawn, 3)
        self._lines.write(
            surface, f"{began + reach:,.0f}", x + 4, y + 26, size=SMALL, colour=FAINT, ground=mixed(TRACK, PAPER, 0.5)
        )
