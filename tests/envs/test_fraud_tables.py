"""The default tables are what their script makes, they have the published moments, and bad tables are refused."""

import copy
import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import fair_envs
from fair_envs.envs.fraud import moments
from fair_envs.envs.fraud.rules import Fraud, can_be_stolen
from fair_envs.envs.fraud.tables import CONTINENTS, FOLDER, OFFSETS_FILE, TABLES_FILE, Tables, load, offset
from tests.envs.fraud_scenes import needs_appendix, play, real_tables
from tests.helpers import uncompiled


def has_tz_database() -> bool:
    """Return whether this machine knows time zones."""
    try:
        ZoneInfo("Europe/Paris")
    except ZoneInfoNotFoundError:
        return False
    return True


needs_tz = pytest.mark.skipif(not has_tz_database(), reason="needs the tz database")


def weights(cumulated: NDArray[Any]) -> NDArray[Any]:
    """Return the weights behind cumulative ones."""
    return np.asarray(np.diff(cumulated, axis=-1, prepend=0.0))


def mean_amount(tables: Tables, kind: int) -> float:
    """Return the mean amount of the payments of a kind."""
    at_merchant = tables.country_share[kind] @ weights(tables.currency[kind]) @ weights(tables.merchant[kind])
    middles = tables.lowest[kind] + tables.width[kind] * (weights(tables.bins[kind]) @ (np.arange(20) + 0.5))
    return float(at_merchant @ middles)


# ------------------------------------------------------------------------------------------- the default tables


def test_the_tables_are_what_the_script_makes() -> None:
    assert (FOLDER / TABLES_FILE).read_text("utf-8") == moments.written(moments.make_tables())


@needs_tz
def test_the_offsets_are_what_the_script_makes() -> None:
    assert (FOLDER / OFFSETS_FILE).read_text("utf-8") == moments.written(moments.make_offsets())


def test_the_files_say_where_they_come_from() -> None:
    assert "published moments" in json.loads((FOLDER / TABLES_FILE).read_text("utf-8"))["_provenance"]


def check_moments(tables: Tables, *, exact: float) -> None:
    """Fail unless the tables have the published moments to this relative error."""
    published = {"EU": 0.834875, "NA": 0.113809, "AS": 0.023769, "OC": 0.022715, "AF": 0.003094, "SA": 0.001738}
    frauds = {"EU": 0.657782, "NA": 0.306105, "AS": 0.028375, "OC": 0.006019, "AF": 0.001720, "SA": 0.0}
    for kind, expected in enumerate((published, frauds)):
        for code, continent in enumerate(CONTINENTS):
            share = tables.country_share[kind, tables.continent == code].sum()
            assert share == pytest.approx(expected[continent], rel=exact, abs=1e-6)
    shares = dict(zip(tables.countries, tables.country_share.T.tolist(), strict=True))
    for country, genuine, fraud in (("FR", 0.401, 0.551), ("US", 0.088, 0.209), ("GB", 0.067, 0.092)):
        assert shares[country] == pytest.approx([genuine, fraud], abs=6e-4)
    assert len(tables.countries) == 125
    assert (tables.country_share[1] > 0).sum() == 19
    assert np.bincount(tables.continent).tolist() == [39, 28, 21, 18, 11, 8]
    hours = tables.profile[0, :24]
    assert hours[[21, 22, 23, 0]] == pytest.approx([0.078, 0.086, 0.107, 0.049], abs=1e-3)
    assert hours[4:7] == pytest.approx([0.006] * 3, abs=5e-4)
    assert tables.profile[1, 64:76][[0, 1, 11]].tolist() == [0, 0, 0]
    assert 298 < mean_amount(tables, 0) < 320
    assert 54 < mean_amount(tables, 1) < 77


def test_the_default_tables_have_the_published_moments() -> None:
    check_moments(load(None), exact=1e-5)


@needs_appendix
@needs_tz
def test_the_real_tables_have_the_published_moments() -> None:
    tables = load(real_tables())
    check_moments(tables, exact=1e-3)
    assert (tables.countries.index("FR"), tables.countries.index("US")) == (37, 118)


def check_fraud_by_continent(tables: Tables) -> None:
    """Fail unless a transaction that is as likely a fraud as not is one with the published probabilities."""
    shares = np.array([tables.country_share[:, tables.continent == code].sum(axis=1) for code in range(6)])
    expected = {"EU": 0.440678, "NA": 0.728970, "AS": 0.544169, "AF": 0.357219, "OC": 0.209472, "SA": 0.0}
    found = dict(zip(CONTINENTS, shares[:, 1] / shares.sum(axis=1), strict=True))
    assert found == pytest.approx(expected, abs=2e-4)


def test_how_likely_a_transaction_of_a_continent_is_a_fraud() -> None:
    check_fraud_by_continent(load(None))


@needs_appendix
def test_how_likely_a_transaction_of_a_continent_is_a_fraud_in_the_real_tables() -> None:
    check_fraud_by_continent(load(real_tables()))


LARGEST = [69, 7835.56, 2724.15, 37.37, 649.83, 5965.01, 885.71]


def test_the_largest_amounts() -> None:
    assert load(None).largest.tolist() == LARGEST


@needs_appendix
def test_the_largest_amounts_of_the_real_tables() -> None:
    assert load(real_tables()).largest.tolist() == LARGEST


def test_currencies_have_the_published_codes() -> None:
    assert load(None).currencies == ("USD", "EUR", "GBP", "NOK", "DKK")


# ------------------------------------------------------------------------------------------------------ loading


def small() -> dict[str, Any]:
    """Return tables of two countries and one merchant."""
    return {
        "hour_frac": {"genuine": [1.0] * 24, "fraud": [1.0] * 24},
        "weekday_frac": {"genuine": [1.0] * 7, "fraud": [1.0] * 7},
        "monthday_frac": {"genuine": [1.0] * 31, "fraud": [1.0] * 31},
        "month_frac": {"genuine": [1.0] * 12, "fraud": [1.0] * 12},
        "countries": {
            "_columns": "remarks begin with _",
            "FR": ["EU", "Europe/Paris", 3.0, 0.0, {"EUR": 1.0}, {}],
            "US": ["NA", "America/New_York", 1.0, 2.0, {"USD": 1.0, "EUR": 3.0}, {"USD": 1.0}],
        },
        "merchant_per_currency": {"genuine": {"USD": {"0": 1.0}, "EUR": {"0": 1.0}}, "fraud": {"USD": {"0": 1.0}}},
        "merchant_amount_hist": {
            "genuine": [{"min": 0.0, "max": 20.0, "heights": [1.0, 0.0] * 10}],
            "fraud": [{"min": 0.0, "max": 10.0, "heights": [1.0] * 20}],
        },
    }


def test_weights_are_normalised() -> None:
    tables = load(small())
    assert tables.country_share.tolist() == [[0.75, 0.25], [0.0, 1.0]]
    assert tables.country.tolist() == [[0.75, 1.0], [0.0, 1.0]]
    assert tables.currencies == ("USD", "EUR")
    assert tables.currency[0].tolist() == [[0.0, 1.0], [0.25, 1.0]]
    assert tables.largest.tolist() == [20.0]
    assert tables.profile[0, :24] == pytest.approx([1 / 24] * 24)


def test_every_maker_takes_tables_as_a_mapping_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small()), "utf-8")
    for tables in (small(), path, str(path)):
        for rules in (
            gym.make("FairFraud-v0", tables=tables).unwrapped.lanes.rules,  # type: ignore[attr-defined]
            gym.make_vec("FairFraud-v0", num_envs=2, tables=tables).lanes.rules,  # type: ignore[attr-defined]
            fair_envs.make_rules("FairFraud-v0", tables=tables),
        ):
            assert isinstance(rules, Fraud)
            assert rules.tables.countries == ("FR", "US")


@uncompiled
def test_an_episode_with_own_tables() -> None:
    env = gym.make("FairFraud-v0", tables=small())
    env.reset(seed=0)
    seen = [env.step(0) for _ in range(100)]
    assert {info["fair_group"].item() for *_, info in seen} == {0, 2}
    amounts = np.array([info["fair_features"][8] * 8000 for *_, info in seen if info["fair_feedback"] == 0])
    assert (np.floor(amounts).astype(int) % 2 == 0).all()  # only every second bin of width 1 has weight


def with_thieves_in_france(*, heights: list[float] | None) -> dict[str, Any]:
    """Return tables in which frauds with US cards come from France too, and a fraud merchant takes euros.

    Args:
        heights: Of the amounts of frauds at that merchant; None if it has no histogram of its own.
    """
    own = small()
    own["countries"]["FR"] = ["EU", "Europe/Paris", 3.0, 1.0, {"EUR": 1.0}, {"USD": 1.0}]
    if heights is not None:
        own["merchant_per_currency"]["fraud"]["EUR"] = {"1": 1.0}
        own["merchant_amount_hist"]["genuine"].append({"min": 0.0, "max": 20.0, "heights": [1.0] * 20})
        own["merchant_amount_hist"]["fraud"].append({"min": 0.0, "max": 10.0, "heights": heights})
    return own


@pytest.mark.parametrize(
    ("heights", "euros_are_stolen"), [(None, False), ([0.0] * 20, False), ([0.0] * 19 + [1.0], True)]
)
@uncompiled
def test_no_card_is_stolen_that_a_thief_could_not_pay_with(heights: Any, euros_are_stolen: bool) -> None:
    """Drawing from merchants or amounts without weights would lead behind them, an IndexError without compilation."""
    rules = Fraud(tables=with_thieves_in_france(heights=heights))
    assert can_be_stolen(rules.tables).tolist() == [[1, euros_are_stolen], [1, euros_are_stolen]]
    given: dict[str, Any] = {"first_day": 100, "steal_probability": 1.0, "profile": "authors", "horizon": 100_000}
    given["hours"] = 48
    frauds = []

    def look(records: Any, going: Any) -> None:
        for lane in records[going & (records["fraud"] == 1)]:
            frauds.append((int(lane["currency_now"]), float(lane["amount_now"])))

    play("never", lanes=1, tables=with_thieves_in_france(heights=heights), each=look, **given)
    assert len(frauds) > 1000
    assert {currency for currency, _ in frauds} == {0, *[1] * euros_are_stolen}
    assert all(0 <= amount < 10 and (currency == 0 or amount >= 9.5) for currency, amount in frauds)


NOTHING = object()  # None in the place of what is changed, where None takes it out


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("month_frac",), None, r"tables must have the columns .*; it lacks month_frac"),
        (("hour_frac", "fraud"), None, r"hour_frac must have the columns genuine, fraud; it lacks fraud"),
        (("hour_frac", "genuine"), [1.0] * 23, r"hour_frac.genuine must have 24 numbers, got 23"),
        (
            ("hour_frac", "genuine"),
            [-1.0] + [1.0] * 23,
            r"hour_frac.genuine must have finite weights of at least 0, got -1",
        ),
        (
            ("month_frac", "fraud"),
            [0.0] * 12,
            r"month_frac.fraud must have weights that sum to a positive, finite number",
        ),
        (("month_frac", "fraud"), ["x"] * 12, r"month_frac.fraud must have 12 numbers, got \['x'"),
        (
            ("month_frac", "fraud"),
            [float("nan")] * 12,
            r"month_frac.fraud must have finite weights of at least 0, got nan",
        ),
        (
            ("month_frac", "fraud"),
            [1e308] * 12,
            r"month_frac.fraud must have weights that sum to .* finite .*, got inf",
        ),
        (("countries", 3), ["EU"], r"countries must have strings as codes, got 3"),
        (("countries", "FR", 1), 5, r"countries.FR must have the name of a time zone, got 5"),
        (("countries", "FR", 1), ["Europe/Paris"], r"countries.FR must have the name of a time zone, got \['Europe"),
        (("countries", "FR", 4), ["EUR"], r"countries.FR must have currencies by name .*, got \['EUR'\]"),
        (("countries", "FR", 4), {3: 1.0}, r"countries.FR must have currencies by name .*, got {3: 1.0}"),
        (("countries", "FR", 4), NOTHING, r"countries.FR must have currencies by name .*, got None"),
        (("merchant_per_currency", "genuine"), ["USD"], r"merchant_per_currency.genuine must be a mapping, got \['USD"),
        (("merchant_per_currency", "genuine"), NOTHING, r"merchant_per_currency.genuine must be a mapping, got None"),
        (
            ("merchant_per_currency", "genuine", "SEK"),  # in which nobody pays
            {"0": -1.0},
            r"merchant_per_currency.genuine.SEK must have finite weights of at least 0, got -1",
        ),
        (("merchant_amount_hist", "genuine"), NOTHING, r"merchant_amount_hist.genuine must be a list .*, got None"),
        (("merchant_amount_hist", "genuine"), {"0": {}}, r"merchant_amount_hist.genuine must be a list .*, got {'0'"),
        (("merchant_amount_hist", "fraud", 0, "max"), float("inf"), r"fraud\[0\] must have a finite min and max"),
        (("countries",), ["FR"], r"countries must be a mapping"),
        (("countries", "FR"), ["EU", "Europe/Paris", 1.0], r"countries.FR must have 6 columns"),
        (("countries", "FR", 0), "Atlantis", r"countries.FR must be in one of EU, AS, .*, got 'Atlantis'"),
        (("countries", "FR", 2), -3.0, r"countries share of genuine must have finite weights of at least 0"),
        (
            ("countries", "US", 3),
            0.0,
            r"countries share of fraud must have weights that sum to a positive, finite number",
        ),
        (("countries", "US", 5), {}, r"countries.US must have currencies of fraud, got none"),
        (("countries", "US", 4, "EUR"), -1.0, r"countries.US must have finite weights of at least 0, got -1"),
        (("countries", "FR", 1), "Europe/Atlantis", r"countries must have time zones .* got 'Europe/Atlantis'"),
        (("merchant_per_currency", "genuine", "EUR"), None, r"merchant_per_currency.genuine.EUR must have weights"),
        (
            ("merchant_per_currency", "genuine", "EUR", "7"),
            1.0,
            r"merchant_per_currency.genuine.EUR must name 0, got '7'",
        ),
        (("merchant_amount_hist", "fraud"), [], r"merchant_amount_hist must have one histogram per merchant"),
        (("merchant_amount_hist", "fraud", 0, "min"), None, r"merchant_amount_hist.fraud\[0\] must have the columns"),
        (("merchant_amount_hist", "fraud", 0, "heights"), [1.0], r"fraud\[0\] must have 20 numbers, got 1"),
        (("merchant_amount_hist", "fraud", 0, "heights"), [0.0] * 20, r"fraud\[0\] must have heights that sum"),
        (("merchant_amount_hist", "fraud", 0, "max"), -1.0, r"fraud\[0\] must have 0 <= min < max, got 0.0 and -1.0"),
    ],
)
def test_bad_tables_are_refused_by_name(path: tuple[Any, ...], value: Any, message: str) -> None:
    tables = copy.deepcopy(small())
    inner: Any = tables
    for step in path[:-1]:
        inner = inner[step]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = None if value is NOTHING else value
    with pytest.raises(ValueError, match=message):
        Fraud(tables=tables)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tables must be a path, a mapping or None, got 3"):
        Fraud(tables=3)  # type: ignore[arg-type]
    path = tmp_path / "broken.json"
    path.write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"tables must be a file of JSON in UTF-8, got '.*broken.json'"):
        Fraud(tables=path)
    path.write_bytes(b'{"hour_frac": "\xff"}')
    with pytest.raises(ValueError, match=r"tables must be a file of JSON in UTF-8, got '.*broken.json'"):
        Fraud(tables=path)
    with pytest.raises(ValueError, match="tables must be a file of JSON in UTF-8, got "):
        Fraud(tables=tmp_path)
    with pytest.raises(FileNotFoundError):
        Fraud(tables=tmp_path / "none.json")


# ------------------------------------------------------------------------------------------------------- clocks


@pytest.mark.parametrize(
    ("zone", "minute", "expected"),
    [
        ("Europe/Paris", 0, 60),
        ("Europe/Paris", -600, 60),
        ("Europe/Paris", 86 * 24 * 60 + 59, 60),  # 27 March, 0:59 UTC
        ("Europe/Paris", 86 * 24 * 60 + 60, 120),
        ("America/New_York", 0, -300),
        ("Asia/Kolkata", 0, 330),
        ("Australia/Lord_Howe", 0, 660),
    ],
)
def test_offsets(zone: str, minute: int, expected: int) -> None:
    assert offset(zone, minute) == expected


@needs_tz
def test_zones_beside_the_table_are_looked_up() -> None:
    assert offset("Asia/Kathmandu", 0) == 345
