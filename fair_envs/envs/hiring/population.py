"""The applicants of FairHiring: tables of kinds of people with weights, and the languages they speak.

``python -m fair_envs.envs.hiring.population`` makes ``data/population.csv`` from the counts beside it; see
``data/README.md`` for where those come from.
"""

import csv
import functools
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.core.compilation import rule
from fair_envs.core.weights import cumulative, shares_of
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import meant, shown

FEATURES = (
    *("age", "gender", "degree", "extra_degree", "nationality", "married", "experience"),
    *("dutch", "french", "english", "german"),
)
AGE, GENDER, DEGREE, EXTRA, NATIONALITY, MARRIED, EXPERIENCE, DUTCH, FRENCH, ENGLISH, GERMAN = range(len(FEATURES))
TRAITS = FEATURES[:EXPERIENCE]  # the columns of a population; the other features are drawn given these

GENDERS, NATIONALITIES = ("man", "woman"), ("Belgian", "foreign")
EDUCATIONS = ("none", "degree", "extra_degree")
MAN, WOMAN = range(2)
BELGIAN, FOREIGN = range(2)
NAMES: Mapping[str, tuple[str, ...]] = {"gender": GENDERS, "nationality": NATIONALITIES}

YOUNGEST, OLDEST = 18, 65  # ages; the public counts end at 64
YEARS = OLDEST - YOUNGEST  # what ages and years of experience are divided by
LANGUAGES = GERMAN - DUTCH + 1

DATA = Path(__file__).parent / "data"
OWN = "own"

Targets = Mapping[tuple[int, int], float]

SKEWED: Mapping[str, tuple[tuple[int, int], Targets]] = {
    "gender": ((GENDER, GENDER), {(MAN, MAN): 0.7, (WOMAN, WOMAN): 0.3}),
    "nationality_gender": (
        (NATIONALITY, GENDER),
        {(BELGIAN, MAN): 0.4, (BELGIAN, WOMAN): 0.4, (FOREIGN, MAN): 0.15, (FOREIGN, WOMAN): 0.05},
    ),
    "gender_married": (
        (GENDER, MARRIED),
        {(MAN, 0): 0.25, (MAN, 1): 0.3, (WOMAN, 0): 0.2, (WOMAN, 1): 0.25},
    ),
}
"""Other populations: two traits, and the new share of each combination of their values."""

POPULATIONS = ("belgian", *SKEWED)
EXPECTED = f"population must be one of {', '.join(map(repr, POPULATIONS))}, a table, or the path of a CSV file"


class People(NamedTuple):
    """A population.

    Attributes:
        traits: Each kind of people, shape (kinds, 6); the columns are `TRAITS`.
        weights: Their shares, shape (kinds,), summing to 1.
    """

    traits: NDArray[np.int32]
    weights: Floats

    def cumulative(self) -> Floats:
        """Return the share of the kinds up to and including each, shape (kinds,); the last is 1."""
        return cumulative(self.weights)


DEGREE_YEARS, EXTRA_YEARS = 3, 2  # of study


@rule
def most_experience(age: int, degree: int, extra: int) -> int:
    """Return the most years a person can have worked, given age and studies."""
    return max(0, age - YOUNGEST - DEGREE_YEARS * degree - EXTRA_YEARS * extra)


# ------------------------------------------------------------------------------------------------ the populations


@functools.cache
def people(name: str) -> People:
    """Return the population of that name: ``"belgian"``, or one of `SKEWED`."""
    if name == "belgian":
        return checked_people(DATA / "population.csv")
    traits, targets = SKEWED[name]
    return reweighted(people("belgian"), traits, targets)


def reweighted(given: People, traits: tuple[int, int], targets: Targets) -> People:
    """Return a population with new shares for the combinations of two traits' values."""
    weights = given.weights.copy()
    for values, share in targets.items():
        those = (given.traits[:, list(traits)] == values).all(axis=1)
        weights[those] *= share / weights[those].sum()
    return People(given.traits, weights / weights.sum())


def checked_people(table: Any) -> People:
    """Return a table as a population.

    Args:
        table: Columns by name, each with an entry for each kind of people: those of `TRAITS`, and ``weight``. A
            mapping, a pandas DataFrame, a structured array, or the path of a CSV file. Gender and nationality are
            codes or names ("man", "woman", "Belgian", "foreign").

    Raises:
        ValueError: A column is missing, a value is invalid for its trait, or the weights are invalid.
    """
    if not isinstance(table, (str, Path)) and not hasattr(table, "__getitem__"):
        raise ValueError(f"{EXPECTED}, got {shown(table)}")
    columns = read(table) if isinstance(table, (str, Path)) else table
    found = {name: _column(columns, name) for name in (*TRAITS, "weight")}
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"population must have columns of one length, got {lengths}")
    traits = np.stack([_codes(name, found[name]) for name in TRAITS], axis=1)
    if (traits[:, EXTRA] > traits[:, DEGREE]).any():
        raise ValueError("population must have extra_degree 1 only where degree is 1, got it where degree is 0")
    return People(traits, _weights(found["weight"]))


def read(path: str | Path) -> dict[str, list[str]]:
    """Return the columns of a CSV file with a header line; empty lines are skipped.

    Raises:
        ValueError: The file does not exist, or the length of a row differs from the header's.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
            header, *rows = [row for row in csv.reader(file) if row]
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(f"{EXPECTED}, got {str(path)!r}{meant(str(path), POPULATIONS)}") from error
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(f"population must have {len(header)} entries in each row of {str(path)!r}, "
                             f"got {len(row)} in row {number} below the names")  # fmt: skip
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}


def _column(columns: Any, name: str) -> NDArray[Any]:
    needed = ", ".join((*TRAITS, "weight"))
    try:
        column = np.asarray(columns[name])
    except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(f"population must have the columns {needed}; {name} is missing") from None
    if column.ndim != 1 or not len(column):
        raise ValueError(f"population must have columns of at least one entry, got shape {column.shape} for {name}")
    return column


def _codes(name: str, column: NDArray[Any]) -> NDArray[np.int32]:
    """Return a trait's values as integers."""
    low, high = (YOUNGEST, OLDEST) if name == "age" else (0, 1)
    names = {word: code for code, word in enumerate(NAMES.get(name, ()))}
    values = np.array([_number(names.get(str(value), value)) for value in column.tolist()])
    wrong = ~((values >= low) & (values <= high) & (values == np.round(values)))  # NaN too
    if wrong.any():
        options = f"integers between {low} and {high}" + "".join(f" or {word!r}" for word in names)
        raise ValueError(f"population must have {options} as {name}, got {column[wrong].tolist()[0]!r}")
    return values.astype(np.int32)


def _number(value: Any) -> float:
    """Return the value as a number, or NaN if it is not a number."""
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return float("nan")


def _weights(column: NDArray[Any]) -> Floats:
    """Return the weights of the kinds, summing to 1."""
    given = column.tolist()
    weights = np.array([_number(value) for value in given])
    if np.isnan(weights).any():
        raise ValueError(f"population must have numbers as weight, got {given[np.argmax(np.isnan(weights))]!r}")
    return shares_of("population", weights)


# ------------------------------------------------------------------------------------------- from the public counts


def rebuilt() -> People:
    """Return the Belgian population, computed from the counts of education and marriage."""
    share = _married_shares()
    kinds, counts = [], []
    for (nationality, age, gender, education), count in _education_counts():
        for married in (0, 1):
            kinds.append((age, gender, int(education > 0), int(education > 1), nationality, married))
            part = share[nationality, age, gender]
            counts.append(count * (part if married else 1 - part))
    return People(np.array(kinds, np.int32), np.array(counts) / np.sum(counts))


def _education_counts() -> Iterator[tuple[tuple[int, int, int, int], int]]:
    """Yield (nationality, age, gender, education) and its count: a fifth of the count of five ages."""
    for row in _rows("education.csv"):
        nationality, gender = NATIONALITIES.index(row["nationality"]), GENDERS.index(row["gender"])
        for age in range(max(YOUNGEST, int(row["youngest"])), int(row["oldest"]) + 1):
            for education, name in enumerate(EDUCATIONS):
                if count := int(row[name]) // 5:
                    yield (nationality, age, gender, education), count


def _married_shares() -> dict[tuple[int, int, int], float]:
    """Return the married share by (nationality, age, gender)."""
    shares = {}
    for row in _rows("marriage.csv"):
        nationality, gender = NATIONALITIES.index(row["nationality"]), GENDERS.index(row["gender"])
        married, unmarried = int(row["married"]), int(row["unmarried"])
        shares[nationality, int(row["age"]), gender] = married / (married + unmarried)
    return shares


def _rows(name: str) -> list[dict[str, str]]:
    with open(DATA / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(given: People, path: Path) -> None:
    """Write a population as a CSV file that `checked_people` reads."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*TRAITS, "weight"))
        for traits, weight in zip(given.traits.tolist(), given.weights.tolist(), strict=True):
            named = (NAMES[name][code] if name in NAMES else code for name, code in zip(TRAITS, traits, strict=True))
            writer.writerow((*named, repr(weight)))


# ------------------------------------------------------------------------------------------------- the languages


@functools.cache
def language_shares() -> Floats:
    """Return the probability of each set of languages by education, shape (3, 16); bit k stands for language k.

    People without a foreign language speak Dutch or French with equal probability. Others speak one to four languages.
    These are drawn by weight without replacement, and Dutch or French is added if neither is among them.
    """
    shares = np.zeros((len(EDUCATIONS), 2**LANGUAGES))
    for education, row in enumerate(_rows("languages.csv")):
        without = float(row["no_foreign_language"])
        counts = shares_of("languages", [float(row[name]) for name in ("one", "two", "three", "four")])
        weights = shares_of("languages", [float(row[name]) for name in ("dutch", "french", "english", "german")])
        shares[education, [1, 2]] += without / 2
        for count, probability in enumerate(counts, start=1):
            for drawn in permutations(range(LANGUAGES), count):
                _add_native(shares[education], drawn, (1 - without) * probability * _chance_of(drawn, weights))
    return shares


def _chance_of(drawn: Sequence[int], weights: Floats) -> float:
    """Return the probability of drawing these languages in this order without replacement."""
    probability, left = 1.0, 1.0
    for language in drawn:
        probability *= weights[language] / left
        left -= weights[language]
    return float(probability)


def _add_native(shares: Floats, drawn: Sequence[int], probability: float) -> None:
    """Add the probability to the set; if it has neither Dutch nor French, half to the set with each."""
    known = sum(1 << language for language in drawn)
    if known & 3:
        shares[known] += probability
    else:
        shares[[known | 1, known | 2]] += probability / 2


if __name__ == "__main__":
    write(rebuilt(), DATA / "population.csv")
