"""Pictures of FairTraffic: the map with lights, road works and cars, and beside it the groups' arrivals and times."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.envs.drawing import (
    BLUE,
    BOLD,
    FAINT,
    GREEN,
    GROUND,
    ICON,
    INK,
    LARGEST_FRAME,
    MARGIN,
    ORANGE,
    PANEL_WIDTH,
    PAPER,
    PURPLE,
    REVERSED,
    SMALL,
    TRACK,
    VERMILION,
    WHITE,
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
    share,
    styled,
    with_panel,
)
from fair_envs.envs.traffic.city import EAST, SOUTH, STEPS, City
from fair_envs.envs.traffic.params import TrafficParams
from fair_envs.envs.traffic.rules import MOMENTS
from fair_envs.faces.window import import_pygame

Box = tuple[int, int, int, int]  # left, top, width, height

# Pixels
LARGEST_MAP = LARGEST_FRAME[0] - 3 * MARGIN - PANEL_WIDTH, LARGEST_FRAME[1] - 2 * MARGIN
MOST_CELL = 32
WHOLE_FROM = 4  # lengths from here on are rounded to whole pixels, to look sharp
NAMED = 26  # size of a crossroads with ample room for its name
NAMED_FROM, LIT_FROM = 22, 8  # smallest sizes of crossroads with a name, and with lights
LINED_FROM = 6  # smallest size of cells and lanes with lines between them
DETAILED_FROM = 8  # smallest size of cars with detail
LEAST_CAR = 5
LEAST_SIGN = 9
LEAST_LIGHT, MOST_LIGHT = 2, 5  # thickness
HATCH = 12  # side of a tile of road works
ARRIVED = 196  # right edge of that column of the panel
ROW, GROUP_ROW = 26, 44

DIAMONDS = 3  # number on a lane for human drivers

ROAD: Rgb = (206, 205, 201)
KERB: Rgb = (150, 147, 140)
CELL_LINE, LANE_LINE = mixed(ROAD, INK, 0.07), mixed(ROAD, WHITE, 0.8)
STRIPES = mixed(ROAD, INK, 0.5)  # of road works
RESERVED = mixed(ROAD, ORANGE, 0.45)  # a lane for human drivers
COLOURS: tuple[Rgb, ...] = (BLUE, ORANGE)  # AI-driven, human-driven
CODES = ("94", "33")  # codes of the colours in a terminal
DRIVERS, SPEEDS = ("AI-driven", "human-driven"), ("slow", "fast")

# The right half of a car, as points ahead and aside of its middle
MACHINE = ((0.5, 0.0), (-0.42, 0.45))
HUMAN = ((0.47, 0.26), (0.36, 0.38), (-0.42, 0.38))


def ahead(heading: int, far: float, aside: float) -> Point:
    """Return the point of the unit square at this distance from its middle, ahead and to the right of the heading."""
    x, y = STEPS[heading]
    return 0.5 + far * x - aside * y, 0.5 + far * y + aside * x


# ------------------------------------------------------------------------------------------------ the figures


class Car(NamedTuple):
    """A car: a wedge if AI-driven, a box with a windscreen if human-driven."""

    human: bool
    fast: bool = False  # a stripe
    safety: bool = False  # a bumper behind
    heading: int = EAST

    def paint(self, pen: Pen) -> None:
        """Draw the body and, if not plain, the windscreen, stripe and bumper."""
        outline = HUMAN if self.human else MACHINE
        self._shape(pen, outline, INK)
        self._shape(pen, [(0.78 * far, 0.78 * aside) for far, aside in outline], COLOURS[self.human])
        if pen.plain:
            return
        if self.human:
            self._bar(pen, 0.06, 0.22, 0.25, INK)
        if self.fast:
            self._bar(pen, -0.3, 0.06 if self.human else 0.16, 0.09, WHITE)
        if self.safety:
            self._bar(pen, -0.5, -0.4, 0.4, INK)

    def _bar(self, pen: Pen, back: float, front: float, half: float, colour: Rgb) -> None:
        self._shape(pen, [(back, half), (front, half)], colour)

    def _shape(self, pen: Pen, half: Sequence[Point], colour: Rgb) -> None:
        """Fill a symmetric shape, given its right half."""
        corners = (*half, *((far, -aside) for far, aside in reversed(half)))
        pen.polygon([ahead(self.heading, far, aside) for far, aside in corners], colour)

    def letters(self) -> str:
        """Return a letter for the driver."""
        return styled("H " if self.human else "A ", CODES[self.human])


class Light(NamedTuple):
    """The light for one direction, in a quarter of a crossroads: a red bar, or a green one with a gap."""

    green: bool
    heading: int = EAST
    thick: float = 0.2

    def paint(self, pen: Pen) -> None:
        """Draw the bar at the edge where cars enter."""
        for left, right in ((-0.5, -0.15), (0.15, 0.5)) if self.green else ((-0.5, 0.5),):
            corners = ((-0.5, left), (-0.5, right), (self.thick - 0.5, right), (self.thick - 0.5, left))
            points = [ahead(self.heading, far, aside) for far, aside in corners]
            pen.polygon(points, GREEN if self.green else VERMILION)

    def letters(self) -> str:
        """Return a letter for the colour."""
        return "g " if self.green else "r "


class Hospital(NamedTuple):
    """A cross."""

    def paint(self, pen: Pen) -> None:
        """Draw the cross on white."""
        pen.box(0.04, 0.04, 0.92, 0.92, VERMILION)
        pen.box(0.12, 0.12, 0.76, 0.76, WHITE)
        pen.box(0.4, 0.2, 0.2, 0.6, VERMILION)
        pen.box(0.2, 0.4, 0.6, 0.2, VERMILION)

    def letters(self) -> str:
        """Return a cross."""
        return "+ "


class Goal(NamedTuple):
    """A frame around a crossroads that is the goal of a car."""

    def paint(self, pen: Pen) -> None:
        """Draw the frame."""
        for edge in (0.0, 0.95):
            pen.box(edge, 0, 0.05, 1, FAINT)
            pen.box(0, edge, 1, 0.05, FAINT)

    def letters(self) -> str:
        """Return a frame."""
        return "[]"


class Works(NamedTuple):
    """Stripes that cover road works, tile by tile."""

    def paint(self, pen: Pen) -> None:
        """Draw one broad stripe, and the corners of its neighbours."""
        for left in (-1.0, 0.0, 1.0):
            pen.polygon([(left, 1), (left + 0.3, 1), (left + 1.3, 0), (left + 1, 0)], STRIPES)

    def letters(self) -> str:
        """Return a wave."""
        return "~ "


class ForPeople(NamedTuple):
    """A diamond on a lane for human drivers, as on reserved lanes of real roads."""

    shade: bool = False

    def paint(self, pen: Pen) -> None:
        """Draw the diamond."""
        if self.shade:
            pen.box(0, 0.1, 1, 0.8, RESERVED)
        for size, colour in ((0.4, INK), (0.25, RESERVED)):
            pen.polygon([(0.5, 0.5 - size), (0.5 + size, 0.5), (0.5, 0.5 + size), (0.5 - size, 0.5)], colour)

    def letters(self) -> str:
        """Return a letter."""
        return "h "


class Toll(NamedTuple):
    """A coin."""

    def paint(self, pen: Pen) -> None:
        """Draw the coin."""
        pen.disc(0.5, 0.5, 0.46, INK)
        pen.disc(0.5, 0.5, 0.38, PURPLE)
        pen.box(0.42, 0.25, 0.16, 0.5, WHITE)

    def letters(self) -> str:
        """Return a sign."""
        return "$ "


# ------------------------------------------------------------------------------------------------ the panel


class Group(NamedTuple):
    """The record of all cars with one kind of driver, or of the fast or slow ones among them."""

    human: bool
    fast: bool | None  # None: both
    cars: int
    arrived: int
    steps: float  # mean steps on the road so far; NaN without cars

    @property
    def name(self) -> str:
        """The name of the group."""
        return DRIVERS[self.human] if self.fast is None else SPEEDS[self.fast]

    @property
    def words(self) -> tuple[str, str]:
        """Return how many have arrived, and the mean steps."""
        return f"{self.arrived} of {self.cars}", number(self.steps)


class Groups(NamedTuple):
    """The record of each group: a bar for the share that has arrived, and then its fast and its slow cars."""

    rows: Sequence[Group]

    @property
    def height(self) -> int:
        """Pixels from its top to the next entry's."""
        return 36 + sum(map(self._row_height, self.rows))

    def _row_height(self, row: Group) -> int:
        return GROUP_ROW if row.fast is None else ROW

    def paint(self, sheet: Sheet, y: int) -> None:
        """Draw a row for each group."""
        for text, right in (("arrived", ARRIVED), ("mean steps", PANEL_WIDTH)):
            sheet.write(text, right, y + 10, size=SMALL, colour=FAINT, right=True)
        y += 18
        for row in self.rows:
            self._paint(sheet, y, row)
            y += self._row_height(row)

    def _paint(self, sheet: Sheet, y: int, row: Group) -> None:
        if row.fast is None:
            sheet.write(row.name, 0, y + 18)
            sheet.bar(0, y + 30, PANEL_WIDTH, 9, TRACK)
            sheet.bar(0, y + 30, PANEL_WIDTH * row.arrived / max(1, row.cars), 9, COLOURS[row.human])
        else:
            sheet.icon(Car(row.human, row.fast), 0, y + 1)
            sheet.write(row.name, ICON + 6, y + 14)
        middle = y + (18 if row.fast is None else 14)
        for text, right in zip(row.words, (ARRIVED, PANEL_WIDTH), strict=True):
            sheet.write(text, right, middle, right=True)

    def lines(self) -> list[str]:
        """Return a line for each group."""
        return [f"{'':<14}{'arrived':>14}{'mean steps':>12}", *map(self._line, self.rows)]

    def _line(self, row: Group) -> str:
        name = f"{row.name:<14}" if row.fast is None else f"  {row.name:<12}"
        arrived, steps = row.words
        return styled(name, CODES[row.human]) + f"{arrived:>14}{steps:>12}"


# ------------------------------------------------------------------------------------------------ the plan


class Plan(NamedTuple):
    """The positions on the map, in pixels from its upper left corner.

    Attributes:
        city: The crossroads.
        length: Cells of a street.
        lanes: Lanes of a street in each direction.
        cell: Length of a cell.
        wide: Width of a lane.
    """

    city: City
    length: int
    lanes: int
    cell: float
    wide: float

    @property
    def crossroads(self) -> float:
        """The side of a crossroads."""
        return 2 * self.lanes * self.wide

    @property
    def pitch(self) -> float:
        """The distance from one crossroads to the next."""
        return self.crossroads + self.length * self.cell

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of the map."""
        across, down = (k * self.pitch + self.crossroads for k in (self.city.columns - 1, self.city.rows - 1))
        return math.ceil(across - 1e-6), math.ceil(down - 1e-6)

    def middle(self, crossroads: int) -> Point:
        """Return the middle of a crossroads."""
        row, column = divmod(crossroads, self.city.columns)
        return self.crossroads / 2 + column * self.pitch, self.crossroads / 2 + row * self.pitch

    def square(self, crossroads: int) -> Box:
        """Return the area of a crossroads."""
        (x, y), half = self.middle(crossroads), self.crossroads / 2
        return box((x - half, y - half), (x + half, y + half))

    def place(self, street: int, along: float, aside: float) -> Point:
        """Return a point, given in cells from the start of a direction and in lanes to the right of the middle."""
        (x, y), (right, down) = self.middle(street // 4), STEPS[street % 4]
        far, off = self.crossroads / 2 + along * self.cell, aside * self.wide
        return x + far * right - off * down, y + far * down + off * right

    def band(self, street: int, inner: int, outer: int) -> Box:
        """Return the area of the lanes of a direction from `inner` to before `outer`."""
        return box(self.place(street, 0, inner), self.place(street, self.length, outer))

    def quarter(self, street: int) -> Box:
        """Return the quarter of a crossroads into which cars enter from a street."""
        end = self.length + self.lanes * self.wide / self.cell
        return box(self.place(street, self.length, 0), self.place(street, end, self.lanes))


def box(one: Point, other: Point) -> Box:
    """Return the rectangle between two opposite corners, at least a pixel wide."""
    (left, right), (top, bottom) = (sorted(map(round, ends)) for ends in zip(one, other, strict=True))
    return left, top, max(1, right - left), max(1, bottom - top)


def grown(area: Box, by: int) -> Box:
    """Return a rectangle with a margin around it."""
    left, top, width, height = area
    return left - by, top - by, width + 2 * by, height + 2 * by


def plan_of(params: TrafficParams) -> Plan:
    """Return the largest map that fits: with square cells, if the crossroads then have room for their names."""
    counts, across = (params.columns, params.rows), 2 * params.lanes
    ends = [*zip(LARGEST_MAP, counts, strict=True)]
    square = min(room / (count * across + (count - 1) * params.street_length) for room, count in ends)
    square = min(square, MOST_CELL)
    crossroads = max(across * square, min(NAMED, *(room / (2 * count) for room, count in ends)))
    cell = min((room - count * crossroads) / ((count - 1) * params.street_length) for room, count in ends)
    cell, wide = whole(min(cell, square)), whole(crossroads / across)
    return Plan(City(*counts), params.street_length, params.lanes, cell, wide)


def whole(pixels: float) -> float:
    """Return a whole number of pixels, unless rounding would shrink it too much."""
    return math.floor(pixels + 1e-9) if pixels >= WHOLE_FROM else pixels


# ------------------------------------------------------------------------------------------------ the roads


class Roads:
    """Draws the fixed parts: streets and crossroads.

    Args:
        params: The environment's parameters.
        plan: The positions.
        stock: Figures and lines.
    """

    def __init__(self, params: TrafficParams, plan: Plan, stock: Stock) -> None:
        self._params, self._plan, self._stock = params, plan, stock
        self.reserved = self._chosen("human_lanes")
        self.tolled = self._chosen("toll_streets") if params.toll else set()
        self.hospital = plan.city.find(params.hospital, argument="hospital") if params.destination == "hospital" else -1

    def _chosen(self, argument: str) -> set[int]:
        """Return the directions of the streets that a parameter names."""
        names = getattr(self._params, argument)
        return set(np.flatnonzero(self._plan.city.chosen(names, argument=argument)).tolist())

    def draw(self, surface: Any) -> None:
        """Draw the map."""
        plan = self._plan
        surface.fill(GROUND)
        ways = [way for street in plan.city.streets for way in plan.city.both(street)]
        kerb = 2 if plan.wide >= LINED_FROM else 1
        for way in ways:
            surface.fill(PURPLE if way in self.tolled else KERB, grown(plan.band(way, 0, plan.lanes), kerb))
        for crossroads in range(plan.city.crossroads):
            surface.fill(KERB, grown(plan.square(crossroads), 1))
        for way in ways:
            self._draw_way(surface, way)
        for street in plan.city.streets:
            self._draw_middle(surface, street)
        for crossroads in range(plan.city.crossroads):
            self._draw_crossroads(surface, crossroads)

    def _draw_way(self, surface: Any, way: int) -> None:
        """Draw the lanes of a direction, with lines between lanes and between cells if there is room."""
        plan = self._plan
        surface.fill(ROAD, plan.band(way, 0, plan.lanes))
        if plan.cell >= LINED_FROM:
            for at in range(1, plan.length):
                surface.fill(CELL_LINE, box(plan.place(way, at, 0), plan.place(way, at, plan.lanes)))
        if way in self.reserved:
            self._reserve(surface, way)
        if plan.wide >= LINED_FROM:
            for side in range(1, plan.lanes):
                surface.fill(LANE_LINE, box(plan.place(way, 0, side), plan.place(way, plan.length, side)))

    def _reserve(self, surface: Any, way: int) -> None:
        """Draw the lane for human drivers, with diamonds."""
        plan = self._plan
        tile = self._stock.tile((ForPeople(),), max(1, round(plan.wide)), None)
        surface.fill(RESERVED, plan.band(way, plan.lanes - 1, plan.lanes))
        for k in range(1, DIAMONDS + 1):
            centred(surface, tile, plan.place(way, k * plan.length / (DIAMONDS + 1), plan.lanes - 0.5))

    def _draw_middle(self, surface: Any, street: int) -> None:
        """Draw the line between the directions of a street, and a coin on it if it has a toll."""
        plan = self._plan
        surface.fill(KERB, box(plan.place(street, 0, 0), plan.place(street, plan.length, 0)))
        if street in self.tolled:
            size = max(LEAST_SIGN, round(1.2 * plan.wide))
            centred(surface, self._stock.tile((Toll(),), size, None), plan.place(street, plan.length / 2, 0))

    def _draw_crossroads(self, surface: Any, crossroads: int) -> None:
        """Draw a crossroads with the hospital, or else with its name."""
        plan = self._plan
        surface.fill(ROAD, plan.square(crossroads))
        if crossroads == self.hospital:
            size = max(LEAST_SIGN, round(0.7 * plan.crossroads))
            centred(surface, self._stock.tile((Hospital(),), size, None), plan.middle(crossroads))
        elif plan.crossroads >= NAMED_FROM:
            size = min(SMALL + 3, round(0.55 * plan.crossroads))
            name = self._stock.lines.draw(plan.city.name(crossroads), size=size, colour=FAINT, ground=ROAD)
            centred(surface, name, plan.middle(crossroads))


def eastward(street: tuple[int, bool] | None) -> str:
    """Return a street to the east as text, from its cars and whether it has road works; empty if there is none."""
    if street is None:
        return ""
    cars, dug = street
    return f"{cars or '':{'~' if dug else '-'}^5}"


def southward(street: tuple[int, bool] | None) -> str:
    """Return a street to the south as text."""
    if street is None:
        return ""
    cars, dug = street
    return f"{'~' if dug else '|'}{cars or '':<7}"


# ------------------------------------------------------------------------------------------------ the picture


class TrafficRenderer:
    """Draws FairTraffic.

    Args:
        rules: The environment.
    """

    def __init__(self, rules: Rules) -> None:
        self._params: TrafficParams = rules.params
        self._diggings = int(rules.code["diggings"][0])
        self.plan = plan_of(self._params)
        self._city = self.plan.city
        self._streets = [self._city.both(street) for street in self._city.streets]
        self._ends: list[int] = self._city.ahead.tolist()
        self._stock = Stock(plain=False)
        self._roads = Roads(self._params, self.plan, self._stock)
        self._lit = self._params.crossroads == "signals" and self.plan.crossroads >= LIT_FROM
        self._car = max(LEAST_CAR, round(self.plan.cell))
        self._small = Stock(plain=self._car < DETAILED_FROM)
        self._empty: Any = None

    # ----------------------------------------------------------------------------------------------- the record

    def panel(self, lane: Any) -> list[Item]:
        """Return the time, the groups' records, and the signs."""
        return [
            Title("FairTraffic", int(lane["time"]), self._params.horizon),
            Groups([*self.groups(lane)]),
            Legend([*self._signs()], self._words()),
        ]

    def groups(self, lane: Any) -> Iterator[Group]:
        """Yield the records of AI-driven and of human-driven cars: all, the fast and the slow."""
        for human in (False, True):
            for fast in (None, True, False):
                own = (lane["human"] == human) & (True if fast is None else lane["fast"] == fast)
                cars, arrived = int(own.sum()), int(lane["arrived"][own].sum())
                yield Group(human, fast, cars, arrived, share(float(lane["steps"][own].sum()), cars))

    def _signs(self) -> Iterator[tuple[Figure, str]]:
        params = self._params
        yield (Hospital(), "hospital") if params.destination == "hospital" else (Goal(), "a car's goal")
        if params.safety_share:
            yield Car(human=True, safety=True), "drives safely"
        if self._lit:
            yield Light(green=True), "green light"
            yield Light(green=False), "red light"
        if self._diggings:
            yield Works(), "road works"
        if self._roads.reserved:
            yield ForPeople(shade=True), "people only"
        if self._roads.tolled:
            yield Toll(), "toll"

    def _words(self) -> str:
        hospital = f"; the hospital is in {self._params.hospital}" if self._params.destination == "hospital" else ""
        return f"numbers: cars on a street; ~: road works{hospital}"

    def _dug(self, lane: Any) -> list[tuple[int, int]]:
        """Return the streets with road works, both directions of each."""
        dug = lane["dug"].tolist()
        return [street for street in self._streets if dug[street[0]]]

    def _cars(self, lane: Any) -> Iterator[tuple[Car, Point]]:
        """Yield the cars on the road, and their positions on the map."""
        driving = np.flatnonzero(lane["arrived"] == 0)
        names = ("human", "fast", "safety", "street", "at", "side")
        columns = (lane[name][driving].tolist() for name in names)
        for human, fast, safety, street, at, side in zip(*columns, strict=True):
            car = Car(bool(human), bool(fast), bool(safety), street % 4)
            yield car, self.plan.place(street, at + 0.5, side + 0.5)

    def _goals(self, lane: Any) -> list[int]:
        """Return the crossroads that are goals of cars, if each car has its own."""
        if self._params.destination == "hospital":
            return []
        return sorted(set(lane["goal"][lane["arrived"] == 0].tolist()))

    # ---------------------------------------------------------------------------------------------------- text

    def text(self, lane: Any) -> str:
        """Return the lane as text with escape codes for a terminal: a map with the cars on each street, the groups."""
        title, *items = self.panel(lane)
        facts = (line for item in items for line in item.lines())
        return "\n".join([*title.lines(), *self._rows(lane), *facts])

    def _rows(self, lane: Any) -> Iterator[str]:
        """Yield the rows of the map: crossroads with the streets to the east, and the streets to the south of them."""
        cars = np.bincount(lane["street"][lane["arrived"] == 0], minlength=4 * self._city.crossroads).tolist()
        dug = lane["dug"].tolist()
        reported = {one: (cars[one] + cars[other], bool(dug[one])) for one, other in self._streets}
        for row in range(self._city.rows):
            line = range(row * self._city.columns, (row + 1) * self._city.columns)
            yield "".join(self._named(n) + eastward(reported.get(4 * n + EAST)) for n in line).rstrip()
            if row + 1 < self._city.rows:
                yield "".join(southward(reported.get(4 * n + SOUTH)) for n in line).rstrip()

    def _named(self, crossroads: int) -> str:
        """Return three columns with the name of a crossroads, reversed for the hospital."""
        name = self._city.name(crossroads)
        hospital = self._params.destination == "hospital" and name == self._params.hospital
        return styled(name, REVERSED if hospital else BOLD) + " " * (3 - len(name))

    # -------------------------------------------------------------------------------------------------- pixels

    def frame(self, lane: Any) -> NDArray[np.uint8]:
        """Return the picture of a lane, shape (height, width, 3), in fresh memory."""
        items = self.panel(lane)
        surface = self._paper(items).copy()
        self._draw_city(surface.subsurface((MARGIN, MARGIN, *self.plan.size)), lane)
        return with_panel(surface, items, self.plan.size[0] + 2 * MARGIN, self._stock)

    def _draw_city(self, surface: Any, lane: Any) -> None:
        """Draw the parts of the map that differ between steps and episodes."""
        for way in itertools.chain(*self._dug(lane)):
            self._hatch(surface, self.plan.band(way, 0, self.plan.lanes))
        for crossroads in self._goals(lane):
            size = max(1, round(0.6 * self.plan.crossroads))
            centred(surface, self._stock.tile((Goal(),), size, None), self.plan.middle(crossroads))
        if self._lit:
            self._draw_lights(surface, lane)
        for car, place in self._cars(lane):
            centred(surface, self._small.tile((car,), self._car, None), place)

    def _draw_lights(self, surface: Any, lane: Any) -> None:
        """Draw the light at the end of each direction, thick enough to see."""
        thick = min(max(LEAST_LIGHT, self.plan.wide / 3), MOST_LIGHT) / (self.plan.crossroads / 2)
        lights = lane["lights"][int(lane["time"]) % MOMENTS].tolist()
        for street in itertools.chain(*self._streets):
            heading, end = street % 4, self._ends[street]
            light = Light(lights[end] >> heading % 2 & 1 == 1, heading, min(1.0, thick))
            left, top, width, _ = self.plan.quarter(street)
            surface.blit(self._stock.tile((light,), width, None), (left, top))

    def _hatch(self, surface: Any, area: Box) -> None:
        """Cover a rectangle with the tiles of road works."""
        tile = self._stock.tile((Works(),), HATCH, None)
        left, top, width, height = area
        surface.set_clip(area)
        across, down = range(left - left % HATCH, left + width, HATCH), range(top - top % HATCH, top + height, HATCH)
        surface.blits([(tile, corner) for corner in itertools.product(across, down)], False)
        surface.set_clip(None)

    def _paper(self, items: Sequence[Item]) -> Any:
        """Return the frame without the parts that change between steps, drawn once."""
        if self._empty is None:
            self._empty = import_pygame().Surface(frame_size(*self.plan.size, items), depth=32)
            self._empty.fill(PAPER)
            self._roads.draw(self._empty.subsurface((MARGIN, MARGIN, *self.plan.size)))
        return self._empty
