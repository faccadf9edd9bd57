"""Who applies in FairHiring: the tables, the populations made of them, and what is drawn from them."""

import csv
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.core import Lanes
from fair_envs.envs.hiring import population as module
from fair_envs.envs.hiring.population import (
    AGE,
    BELGIAN,
    DEGREE,
    EXPERIENCE,
    EXTRA,
    FOREIGN,
    GENDER,
    MAN,
    MARRIED,
    NATIONALITY,
    TRAITS,
    WOMAN,
    People,
    checked_people,
    language_shares,
    people,
    rebuilt,
    write,
)
from fair_envs.envs.hiring.rules import Hiring
from fair_envs.support.aliases import Flags, Ints

LANES = 2000


def having(given: People, **values: int) -> Flags:
    """Return which kinds of people have these values."""
    found: Flags = np.all([given.traits[:, TRAITS.index(name)] == value for name, value in values.items()], axis=0)
    return found


def share(given: People, **values: int) -> float:
    """Return the share of the people with these values."""
    return float(given.weights[having(given, **values)].sum())


# ----------------------------------------------------------------------------------------------- the tables


def test_the_file_is_what_the_counts_make_of_it(tmp_path: Path) -> None:
    write(rebuilt(), tmp_path / "population.csv")
    assert (tmp_path / "population.csv").read_bytes() == (module.DATA / "population.csv").read_bytes()
    np.testing.assert_array_equal(people("belgian").weights, rebuilt().weights)


def test_the_counts_have_the_totals_of_the_public_tables() -> None:
    columns = {}
    for name in ("education", "marriage"):
        with open(module.DATA / f"{name}.csv", newline="") as file:
            columns[name] = list(csv.DictReader(file))
    assert (len(columns["education"]), len(columns["marriage"])) == (40, 188)
    counted = sum(count for _, count in module._education_counts())
    assert counted == 712_488


def test_the_population_has_1120_kinds_whose_shares_sum_to_one() -> None:
    known = people("belgian")
    assert known.traits.shape == (1120, len(TRAITS))
    assert known.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (known.traits[:, AGE].min(), known.traits[:, AGE].max()) == (18, 64)
    assert (known.traits[:, EXTRA] <= known.traits[:, DEGREE]).all()
    assert len(np.unique(known.traits, axis=0)) == 1120


@pytest.mark.parametrize(
    ("values", "known", "digits"),
    [
        ({"gender": MAN}, 0.499439, 6),
        ({"nationality": BELGIAN}, 0.616761, 6),
        ({"nationality": BELGIAN, "gender": MAN}, 0.304186, 6),
        ({"nationality": BELGIAN, "gender": WOMAN}, 0.312575, 6),
        ({"nationality": FOREIGN, "gender": MAN}, 0.195252, 6),
        ({"nationality": FOREIGN, "gender": WOMAN}, 0.187986, 6),
        ({"degree": 1}, 0.6653, 4),
        ({"extra_degree": 1}, 0.38403, 5),
        ({"married": 1}, 0.36079, 5),
    ],
)
def test_the_population_has_the_known_shares(values: dict[str, int], known: float, digits: int) -> None:
    assert share(people("belgian"), **values) == pytest.approx(known, abs=0.51 * 10**-digits)


def test_the_mean_age_is_known() -> None:
    known = people("belgian")
    assert known.weights @ known.traits[:, AGE] == pytest.approx(39.40, abs=0.005)


@pytest.mark.parametrize(
    ("nationality", "gender", "known"),
    [
        (BELGIAN, MAN, (0.3218, 0.3131, 0.3651)),
        (BELGIAN, WOMAN, (0.3000, 0.2973, 0.4028)),
        (FOREIGN, MAN, (0.4110, 0.2462, 0.3428)),
        (FOREIGN, WOMAN, (0.3340, 0.2396, 0.4264)),
    ],
)
def test_each_group_has_its_education(nationality: int, gender: int, known: tuple[float, float, float]) -> None:
    belgian = people("belgian")
    group: dict[str, int] = {"nationality": nationality, "gender": gender}
    kinds = [(0, 0), (1, 0), (1, 1)]
    found = [share(belgian, degree=degree, extra_degree=extra, **group) for degree, extra in kinds]
    np.testing.assert_allclose(np.array(found) / share(belgian, **group), known, atol=0.51e-4)


# ------------------------------------------------------------------------------------------- other populations


@pytest.mark.parametrize(
    ("name", "values", "factor"),
    [
        ("gender", {"gender": MAN}, 1.401574),
        ("gender", {"gender": WOMAN}, 0.599327),
        ("nationality_gender", {"nationality": BELGIAN, "gender": MAN}, 1.314984),
        ("nationality_gender", {"nationality": BELGIAN, "gender": WOMAN}, 1.279693),
        ("nationality_gender", {"nationality": FOREIGN, "gender": MAN}, 0.768236),
        ("nationality_gender", {"nationality": FOREIGN, "gender": WOMAN}, 0.265977),
    ],
)
def test_a_skewed_population_multiplies_shares(name: str, values: dict[str, int], factor: float) -> None:
    skewed, known = people(name), people("belgian")
    those = having(known, **values) & (known.weights > 0)
    np.testing.assert_allclose(skewed.weights[those] / known.weights[those], factor, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "values", "known"),
    [
        ("gender", {"gender": MAN}, 0.7),
        ("nationality_gender", {"gender": MAN}, 0.55),
        ("nationality_gender", {"nationality": BELGIAN}, 0.8),
        ("gender_married", {"gender": MAN, "married": 0}, 0.25),
        ("gender_married", {"gender": MAN, "married": 1}, 0.3),
        ("gender_married", {"gender": WOMAN, "married": 0}, 0.2),
        ("gender_married", {"gender": WOMAN, "married": 1}, 0.25),
    ],
)
def test_a_skewed_population_has_its_shares(name: str, values: dict[str, int], known: float) -> None:
    assert share(people(name), **values) == pytest.approx(known, abs=1e-12)


# -------------------------------------------------------------------------------------------------- languages


def spoken_bits() -> Ints:
    """Return which languages are in each set, shape (16, 4)."""
    return np.arange(16)[:, np.newaxis] >> np.arange(4) & 1


@pytest.mark.parametrize(
    ("education", "marginals", "numbers"),
    [
        (0, (0.49194, 0.57876, 0.18706, 0.04511), (0.76822, 0.17169, 0.04909, 0.011)),
        (1, (0.51657, 0.67085, 0.45359, 0.09711), (0.49974, 0.29941, 0.16386, 0.037)),
        (2, (0.57059, 0.76002, 0.73382, 0.17301), (0.22748, 0.39361, 0.29292, 0.086)),
    ],
)
def test_languages_have_the_known_shares(education: int, marginals: Any, numbers: Any) -> None:
    shares, bits = language_shares()[education], spoken_bits()
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(shares @ bits, marginals, atol=0.51e-5)
    np.testing.assert_allclose([shares[bits.sum(1) == n].sum() for n in (1, 2, 3, 4)], numbers, atol=0.51e-5)


def test_everybody_speaks_dutch_or_french() -> None:
    assert (language_shares()[:, [0, 4, 8, 12]] == 0).all()


# -------------------------------------------------------------------------------------------- what is drawn


def applicants(steps: int = 20, **parameters: Any) -> NDArray[np.int32]:
    """Return the features of those who come to the doors of many companies, shape (people, 11)."""
    lanes = Lanes(Hiring(**parameters), LANES)
    lanes.seed(0)
    lanes.restart()
    seen = []
    for _ in range(steps):
        seen.append(lanes.records["applicant"].copy())
        lanes.advance(np.zeros((LANES, 1), np.int64))
    return np.concatenate(seen)


def test_applicants_are_drawn_from_the_population() -> None:
    drawn, known = applicants(), people("belgian")
    for trait, values in ((AGE, range(18, 65)), (GENDER, (1,)), (NATIONALITY, (1,)), (MARRIED, (1,)), (EXTRA, (1,))):
        for value in values:
            expected = known.weights[known.traits[:, trait] == value].sum()
            found = (drawn[:, trait] == value).mean()
            assert abs(found - expected) < 4.5 * np.sqrt(expected / len(drawn)), (TRAITS[trait], value)
    married_belgian_women = having(known, gender=WOMAN, nationality=BELGIAN, married=1, extra_degree=1)
    found = (drawn[:, [GENDER, NATIONALITY, MARRIED, EXTRA]] == (WOMAN, BELGIAN, 1, 1)).all(axis=1).mean()
    assert found == pytest.approx(known.weights[married_belgian_women].sum(), abs=0.004)


def test_applicants_speak_what_their_education_lets_expect() -> None:
    drawn = applicants()
    education = drawn[:, DEGREE] + drawn[:, EXTRA]
    for level in range(3):
        spoken = drawn[education == level][:, EXPERIENCE + 1 :] @ (1 << np.arange(4))
        found = np.bincount(spoken, minlength=16) / len(spoken)
        np.testing.assert_allclose(found, language_shares()[level], atol=0.015)


def one_kind(**traits: int) -> dict[str, list[int]]:
    """Return a population of one kind of people."""
    kind = {"age": 30, "gender": 0, "degree": 0, "extra_degree": 0, "nationality": 0, "married": 0, "weight": 1}
    return {name: [value] for name, value in {**kind, **traits}.items()}


@pytest.mark.parametrize(
    ("traits", "most"),
    [
        ({"age": 25, "degree": 1, "extra_degree": 1}, 2),
        ({"age": 20, "degree": 1, "extra_degree": 1}, 0),
        ({"age": 30}, 12),
        ({"age": 30, "degree": 1}, 9),
    ],
)
def test_experience_is_drawn_in_proportion_to_one_more_year(traits: dict[str, int], most: int) -> None:
    years = applicants(3, population=one_kind(**traits))[:, EXPERIENCE]
    expected = np.arange(1, most + 2) / np.arange(1, most + 2).sum()
    found = np.bincount(years, minlength=most + 1) / len(years)
    np.testing.assert_allclose(found, expected, atol=0.025)


def test_the_populations_experience_is_known() -> None:
    years = applicants()[:, EXPERIENCE]
    assert years.mean() == pytest.approx(12.5, abs=0.3)
    assert years.std() == pytest.approx(10.2, abs=0.2)
    assert (years == 0).mean() == pytest.approx(0.07, abs=0.01)


# ------------------------------------------------------------------------------------------- a table of one's own


def two_kinds() -> dict[str, list[Any]]:
    """Return a population of Belgian women and, one time in four, foreign men."""
    return {
        "age": [40, 50],
        "gender": ["woman", "man"],
        "degree": [1, 0],
        "extra_degree": [0, 0],
        "nationality": ["Belgian", "foreign"],
        "married": [0, 1],
        "weight": [3.0, 1.0],
    }


def structured(columns: dict[str, list[Any]]) -> NDArray[np.void]:
    kinds = [(name, np.asarray(column).dtype) for name, column in columns.items()]
    return np.array(list(zip(*columns.values(), strict=True)), kinds)


def frame(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


@pytest.mark.parametrize("kind", [dict, structured, frame])
def test_a_population_can_be_a_mapping_a_structured_array_or_a_frame(kind: Any) -> None:
    found = checked_people(kind(two_kinds()))
    np.testing.assert_array_equal(found.traits, [[40, WOMAN, 1, 0, BELGIAN, 0], [50, MAN, 0, 0, FOREIGN, 1]])
    np.testing.assert_array_equal(found.weights, [0.75, 0.25])


def text_of(columns: dict[str, list[Any]]) -> str:
    """Return a population as the text of a CSV file."""
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))])


@pytest.mark.parametrize(("encoding", "end"), [("utf-8", ""), ("utf-8", "\n\n"), ("utf-8-sig", "\r\n")])
def test_a_population_can_be_a_file(encoding: str, end: str, tmp_path: Path) -> None:
    """With empty last lines and with a byte-order mark too."""
    path = tmp_path / "mine.csv"
    path.write_text(text_of(two_kinds()) + end, encoding, newline="")
    for given in (path, str(path)):
        found = checked_people(given)
        np.testing.assert_array_equal(found.weights, [0.75, 0.25])
    assert gym.make("FairHiring-v0", population=str(path)).unwrapped.params.population == "own"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.rsplit(",", 1)[0], r"must have 7 entries in each row of '.*', got 6 in row 2 below"),
        (lambda text: text + ",5", r"must have 7 entries in each row of '.*', got 8 in row 2 below the names"),
        (lambda text: text.split("\n")[0], r"must have columns of at least one entry, got shape \(0,\) for age"),
        (lambda text: "", "population must be one of .* or the path of a CSV file, got '.*mine.csv'"),
    ],
)
def test_a_bad_file_is_refused_by_name(change: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(change(text_of(two_kinds())), "utf-8")
    with pytest.raises(ValueError, match=message):
        checked_people(tmp_path / "mine.csv")


def test_applicants_come_from_a_table_of_ones_own() -> None:
    drawn = applicants(5, population=two_kinds())
    assert set(drawn[:, AGE]) == {40, 50}
    assert (drawn[:, GENDER] == WOMAN).mean() == pytest.approx(0.75, abs=0.02)


def without(name: str) -> dict[str, list[Any]]:
    return {column: values for column, values in two_kinds().items() if column != name}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (without("married"), "population must have the columns age, .*, weight; married is missing"),
        (without("weight"), "weight is missing"),
        (3, "population must be one of .* or the path of a CSV file, got 3"),
        (two_kinds() | {"weight": [1.0, -0.5]}, r"population must have finite weights of at least 0, got -0\.5"),
        (two_kinds() | {"weight": [0, 0]}, "population must have weights that sum to a positive, finite number, got 0"),
        (two_kinds() | {"weight": [1e308, 1e308]}, "weights that sum to a positive, finite number, got inf"),
        (two_kinds() | {"weight": [1.0, np.inf]}, "population must have finite weights of at least 0, got inf"),
        (two_kinds() | {"weight": [1.0, np.nan]}, "population must have numbers as weight, got nan"),
        (two_kinds() | {"weight": ["much", "little"]}, "population must have numbers as weight, got 'much'"),
        (two_kinds() | {"weight": [1.0]}, "population must have columns of one length, got .*'weight': 1"),
        (two_kinds() | {"age": [17, 50]}, "integers between 18 and 65 as age, got 17"),
        (two_kinds() | {"age": [40.5, 50]}, r"integers between 18 and 65 as age, got 40\.5"),
        (two_kinds() | {"gender": ["woman", "boy"]}, "0 and 1 or 'man' or 'woman' as gender, got 'boy'"),
        (two_kinds() | {"married": [0, 2]}, "between 0 and 1 as married, got 2"),
        (two_kinds() | {"extra_degree": [0, 1]}, "extra_degree 1 only where degree is 1"),
        ({name: [] for name in two_kinds()}, "columns of at least one entry"),
        ("belgia", "population must be one of 'belgian', 'gender', .* or the path of a CSV file, got 'belgia'"),
        ("own", "population must be one of 'belgian'"),
        (None, "population must be one of 'belgian', .*, a table, or the path of a CSV file, got None"),
        (10**400, "population must be one of 'belgian', .*, got an integer of 1329 bits"),
    ],
)
def test_a_bad_population_is_refused_by_name(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hiring(population=table)
