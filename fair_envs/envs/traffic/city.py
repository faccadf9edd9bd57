"""The map of FairTraffic: crossroads in columns and rows, named A1, B1, ..., and the streets that join them.

A street has two directions; ``4 * crossroads + heading`` is the one that leaves a crossroads with that heading. At the
edge some of these numbers do not belong to a street.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fair_envs.support.aliases import Flags, Ints

EAST, SOUTH, WEST, NORTH = range(4)  # clockwise: the next one is to the right
LEFT, STRAIGHT, RIGHT = range(3)
TURNS = ("left", "straight", "right")
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # columns and rows to the next crossroads, by heading


class City(NamedTuple):
    """A grid of crossroads.

    Attributes:
        columns: Number from west to east, named A, B, ...
        rows: Number from north to south, named 1, 2, ...
    """

    columns: int
    rows: int

    @property
    def crossroads(self) -> int:
        """The number of crossroads; their numbers are ``row * columns + column``."""
        return self.columns * self.rows

    def name(self, crossroads: int) -> str:
        """Return the name of a crossroads, such as C2."""
        row, column = divmod(crossroads, self.columns)
        return f"{chr(ord('A') + column)}{row + 1}"

    def find(self, name: str, *, argument: str, hint: str = "") -> int:
        """Return the number of the crossroads of that name.

        Args:
            name: Such as C2.
            argument: Name of the argument in the error message.
            hint: Text that follows the expectation in the error message.

        Raises:
            ValueError: There is no such crossroads; the message names the argument.
        """
        found = re.fullmatch(r"([A-Z])([1-9][0-9]?)", name)
        if found:
            column, row = ord(found[1]) - ord("A"), int(found[2]) - 1
            if column < self.columns and row < self.rows:
                return row * self.columns + column
        last = self.name(self.crossroads - 1)
        raise ValueError(f"{argument} must be a crossroads from A1 to {last}{hint}, got {name!r}")

    def beyond(self, crossroads: int, heading: int) -> int:
        """Return the next crossroads with that heading, -1 at the edge."""
        row, column = divmod(crossroads, self.columns)
        column, row = column + STEPS[heading][0], row + STEPS[heading][1]
        return row * self.columns + column if 0 <= column < self.columns and 0 <= row < self.rows else -1

    @property
    def ahead(self) -> Ints:
        """The crossroads at the end of each direction of a street, shape (4 * crossroads,); -1: no street."""
        return np.array([self.beyond(n, heading) for n in range(self.crossroads) for heading in range(4)])

    @property
    def after(self) -> Ints:
        """The street that each turn at the end of a street leads into, shape (4 * crossroads, 3); -1: none.

        Cars cannot turn back.
        """
        ahead, street = self.ahead[:, np.newaxis], np.arange(4 * self.crossroads)[:, np.newaxis]
        into = 4 * ahead + (street + np.arange(3) + 3) % 4
        return np.where((ahead >= 0) & (self.ahead[into] >= 0), into, -1)

    @property
    def taken_turn(self) -> Ints:
        """The turn taken for each wanted turn, shape (4 * crossroads, 3): else straight on, else right, else left."""
        exists = self.after >= 0
        first = np.array([STRAIGHT, RIGHT, LEFT])[exists[:, [STRAIGHT, RIGHT, LEFT]].argmax(axis=1)]
        return np.where(exists, np.arange(3), first[:, np.newaxis])

    @property
    def coming(self) -> Ints:
        """The street that leads to each crossroads with each heading, shape (crossroads, 4); -1: none."""
        back = self.ahead.reshape(-1, 4)[:, [WEST, NORTH, EAST, SOUTH]]
        return np.where(back >= 0, 4 * back + np.arange(4), -1)

    @property
    def far(self) -> Ints:
        """The number of streets to each crossroads by driving into a street, which counts too, without turning back.

        Shape (4 * crossroads, crossroads); 0 if there is no street.
        """
        after, exists = self.after, self.ahead >= 0
        reached = np.zeros((len(after) + 1, self.crossroads), np.bool_)  # the last one for turns without a street
        reached[:-1] = self.ahead[:, np.newaxis] == np.arange(self.crossroads)
        far = np.zeros((len(after), self.crossroads), np.int64)
        far[exists] = 1
        while not reached[:-1][exists].all():
            far[exists] += ~reached[:-1][exists]
            reached[:-1] |= reached[after[:, LEFT]] | reached[after[:, STRAIGHT]] | reached[after[:, RIGHT]]
        return far

    @property
    def streets(self) -> list[int]:
        """One direction of each street: eastward or southward."""
        return [street for street, end in enumerate(self.ahead) if end >= 0 and street % 4 in (EAST, SOUTH)]

    def street_name(self, street: int) -> str:
        """Return the name of a street, such as B2-C2; both directions have the same name."""
        ends = sorted((street // 4, self.beyond(*divmod(street, 4))))
        return "-".join(self.name(end) for end in ends)

    def both(self, street: int) -> tuple[int, int]:
        """Return both directions of a street."""
        return street, 4 * self.beyond(*divmod(street, 4)) + (street + 2) % 4

    def chosen(self, names: Sequence[str], *, argument: str) -> Flags:
        """Return which directions belong to the named streets, shape (4 * crossroads,).

        A name is that of a street (``B2-C2``, in either order), of a column (``C``) or row (``2``) of streets, or
        ``all``.

        Raises:
            ValueError: There is no such street; the message names the argument.
        """
        found = np.zeros(4 * self.crossroads, np.bool_)
        for name in names:
            own = [street for street in self.streets if self._is_called(street, name)]
            if not own:
                raise ValueError(
                    f"{argument} must be streets such as {self.street_name(self.streets[0])}, a column such as A, a "
                    f"row such as 1, or all; there is no {name!r}"
                )
            for street in own:
                found[list(self.both(street))] = True
        return found

    def _is_called(self, street: int, name: str) -> bool:
        ends = self.street_name(street).split("-")
        if name == "all" or "-".join(sorted(name.split("-"))) == "-".join(sorted(ends)):
            return True
        lines = {end[1:] for end in ends} if street % 4 == EAST else {end[0] for end in ends}
        return name in lines


def crossing() -> Ints:
    """Return the movements that each movement crosses, as bits, shape (12,); a movement is ``3 * heading + turn``.

    Cars keep to the right. Clockwise around a crossroads, each side has a place of entry and a place of exit. Two ways
    cross if each separates the ends of the other.
    """
    ways = [(2 * ((heading + 2) % 4), 2 * ((heading + turn + 3) % 4) + 1) for heading in range(4) for turn in range(3)]
    return np.array([sum(1 << k for k, other in enumerate(ways) if _cross(way, other)) for way in ways])


def _cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    low, high = sorted(one)
    return not set(one) & set(other) and sum(low < end < high for end in other) == 1
