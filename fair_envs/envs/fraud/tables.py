"""The tables that the simulator draws from: read, checked, and stored as arrays for compiled rules.

Every table has two rows, 0 for genuine payments and 1 for frauds. The default tables are in ``data/tables.json``, which
`fair_envs.envs.fraud.moments` makes.
"""

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from fair_envs.core.weights import cumulative, shares_of
from fair_envs.support.aliases import Floats, Ints
from fair_envs.support.parameters import shown

Source = str | os.PathLike[str] | Mapping[str, Any] | None
"""A path to a JSON file, its content, or None for the default tables."""

FOLDER = Path(__file__).parent / "data"
TABLES_FILE, OFFSETS_FILE = "tables.json", "utc_offsets.json"

YEAR = 2016
BANK_ZONE = "America/Los_Angeles"  # time zone of the midnight at which an episode begins
DAYS_OF_YEAR = 366
KINDS = ("genuine", "fraud")
CONTINENTS = ("EU", "AS", "NA", "AF", "OC", "SA")
CURRENCIES = ("USD", "EUR", "GBP", "NOK", "DKK")  # by code; others follow in the order of the tables
BINS = 20  # of a merchant's histogram of amounts

# The entries of a profile, in blocks of 4 hours, weekdays, ...; see `profile`
HOURS, WEEKDAYS, MONTHDAYS, MONTHS, ENTRIES = 0, 24, 32, 64, 76
BLOCK = 4
SPREADS = ((HOURS, 24, 240), (WEEKDAYS, 7, 70), (MONTHDAYS, 31, 305), (MONTHS, 12, 1200))
"""First entry, number of entries, and the divisor of the noise level in the variance of personal profiles."""


class Tables(NamedTuple):
    """The tables as arrays; C countries, K currencies, M merchants. Each cumulative row ends with 1."""

    countries: tuple[str, ...]
    zones: tuple[str, ...]  # (C,)
    currencies: tuple[str, ...]
    continent: Ints  # (C,) codes in CONTINENTS
    country_share: Floats  # (2, C)
    country: Floats  # (2, C) cumulative
    currency: Floats  # (2, C, K) cumulative; all 0 for a country without payments
    merchant: Floats  # (2, K, M) cumulative; all 0 for a currency without payments
    bins: Floats  # (2, M, BINS) cumulative; all 0 for a merchant without customers
    lowest: Floats  # (2, M) lower edge of the first bin
    width: Floats  # (2, M) width of a bin
    largest: Floats  # (M,) largest amount over both kinds
    profile: Floats  # (2, ENTRIES) shares by hour, weekday, day of the month, month


def load(source: Source) -> Tables:
    """Return the tables of a source.

    Raises:
        ValueError: A column is missing, a row has the wrong length, weights are negative or do not sum to a positive,
            finite number, or a continent or time zone is unknown.
    """
    if source is None:
        return _default()
    if isinstance(source, (str, os.PathLike)):
        source = _read(Path(source))
    if not isinstance(source, Mapping):
        raise ValueError(f"tables must be a path, a mapping or None, got {source!r}")
    return _tables(source)


@functools.cache
def _default() -> Tables:
    return _tables(_read(FOLDER / TABLES_FILE))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (IsADirectoryError, PermissionError, ValueError) as error:  # invalid JSON or UTF-8
        raise ValueError(f"tables must be a file of JSON in UTF-8, got {str(path)!r}: {error}") from None


def _tables(source: Mapping[str, Any]) -> Tables:
    """Return the tables of a mapping."""
    _need("tables", source, (*_PROFILES, "countries", "merchant_per_currency", "merchant_amount_hist"))
    rows = _country_rows(source["countries"])
    names = _currency_names(rows.values())
    largest, lowest, width, heights = _histograms(source["merchant_amount_hist"])
    share = np.array([_weights(f"countries share of {kind}", [r[2 + k] for r in rows.values()], len(rows))
                      for k, kind in enumerate(KINDS)])  # fmt: skip
    merchant = _merchants(source["merchant_per_currency"], names, merchants=len(largest))
    currency = np.array([[_by_name(row[4 + kind], names, f"countries.{code}") for code, row in rows.items()]
                         for kind in range(2)])  # fmt: skip
    _check_that_all_can_pay(share, currency, merchant, heights, countries=list(rows), currencies=names)
    return Tables(
        countries=tuple(rows),
        zones=tuple(row[1] for row in rows.values()),
        currencies=names,
        continent=np.array([CONTINENTS.index(row[0]) for row in rows.values()]),
        country_share=share,
        country=cumulative(share),
        currency=cumulative(currency),
        merchant=cumulative(merchant),
        bins=cumulative(heights),
        lowest=lowest,
        width=width,
        largest=largest,
        profile=_profiles(source),
    )


_PROFILES = {"hour_frac": (HOURS, 24), "weekday_frac": (WEEKDAYS, 7), "monthday_frac": (MONTHDAYS, 31)}
_PROFILES |= {"month_frac": (MONTHS, 12)}


def _profiles(source: Mapping[str, Any]) -> Floats:
    profile = np.zeros((2, ENTRIES))
    for name, (first, count) in _PROFILES.items():
        _need(name, source[name], KINDS)
        for kind, row in enumerate(KINDS):
            profile[kind, first : first + count] = _weights(f"{name}.{row}", source[name][row], count)
    return profile


def _country_rows(countries: Any) -> dict[str, list[Any]]:
    """Return the rows by code; names that begin with _ are comments and ignored."""
    if not isinstance(countries, Mapping):
        raise ValueError(f"countries must be a mapping, got {countries!r}")
    for code in countries:
        if not isinstance(code, str):
            raise ValueError(f"countries must have strings as codes, got {code!r}")
    rows = {code: row for code, row in countries.items() if not code.startswith("_")}
    for code, row in rows.items():
        _check_country(f"countries.{code}", row)
    return rows


def _check_country(name: str, row: Any) -> None:
    """Raise ValueError unless a row has the columns of a country."""
    if not isinstance(row, Sequence) or len(row) != 6:
        columns = "continent, time zone, share of genuine and of fraud, currencies of genuine and of fraud"
        raise ValueError(f"{name} must have 6 columns ({columns}), got {row!r}")
    if row[0] not in CONTINENTS:
        raise ValueError(f"{name} must be in one of {', '.join(CONTINENTS)}, got {row[0]!r}")
    if not isinstance(row[1], str):
        raise ValueError(f"{name} must have the name of a time zone, got {row[1]!r}")
    for currencies in row[4:]:
        if not isinstance(currencies, Mapping) or not all(isinstance(currency, str) for currency in currencies):
            raise ValueError(f"{name} must have currencies by name with their weights, got {currencies!r}")


def _currency_names(rows: Iterable[Sequence[Any]]) -> tuple[str, ...]:
    """Return the currencies by code: the predefined ones that are in use, then the others."""
    paid_in = list(dict.fromkeys(name for row in rows for kind in (4, 5) for name in row[kind]))
    return (*(n for n in CURRENCIES if n in paid_in), *(n for n in paid_in if n not in CURRENCIES))


def _merchants(table: Any, names: Sequence[str], *, merchants: int) -> Floats:
    """Return the weights of the merchants, shape (2, K, M); unused currencies are also checked."""
    _need("merchant_per_currency", table, KINDS)
    numbers, weights = [str(merchant) for merchant in range(merchants)], np.zeros((2, len(names), merchants))
    for kind, row in enumerate(KINDS):
        _need(f"merchant_per_currency.{row}", table[row], ())
        for currency, given in table[row].items():
            found = _by_name(given, numbers, f"merchant_per_currency.{row}.{currency}")
            if currency in names:
                weights[kind, names.index(currency)] = found
    return weights


def _histograms(table: Any) -> tuple[Floats, ...]:
    """Return the largest amounts (M,), the lowest amounts and widths of a bin (2, M), and heights (2, M, BINS)."""
    _need("merchant_amount_hist", table, KINDS)
    for name in KINDS:
        if not isinstance(table[name], Sequence):
            raise ValueError(f"merchant_amount_hist.{name} must be a list of histograms, got {table[name]!r}")
    counts = {name: len(table[name]) for name in KINDS}
    if len(set(counts.values())) > 1 or counts["genuine"] == 0:
        raise ValueError(f"merchant_amount_hist must have one histogram per merchant in both kinds, got {counts}")
    edges, heights = np.zeros((2, counts["genuine"], 2)), np.zeros((2, counts["genuine"], BINS))
    for kind, rows in enumerate(KINDS):
        for merchant, row in enumerate(table[rows]):
            name = f"merchant_amount_hist.{rows}[{merchant}]"
            _need(name, row, ("min", "max", "heights"))
            heights[kind, merchant] = _weights(name, row["heights"], BINS, may_be_zero=True)
            edges[kind, merchant] = _numbers(name, [row["min"], row["max"]], 2)
            if not np.isfinite(edges[kind, merchant]).all():
                raise ValueError(f"{name} must have a finite min and max, got {row['min']} and {row['max']}")
            if heights[kind, merchant].any() and not 0 <= edges[kind, merchant, 0] < edges[kind, merchant, 1]:
                raise ValueError(f"{name} must have 0 <= min < max, got {row['min']} and {row['max']}")
    lowest, highest = edges[..., 0], edges[..., 1]
    return highest.max(axis=0), lowest, (highest - lowest) / BINS, heights


def _check_that_all_can_pay(
    share: NDArray[Any],
    currency: NDArray[Any],
    merchant: NDArray[Any],
    heights: NDArray[Any],
    *,
    countries: Sequence[str],
    currencies: Sequence[str],
) -> None:
    """Raise ValueError if a country has no currency, a currency no merchant, or a merchant no amounts."""
    for kind, name in enumerate(KINDS):
        used = np.zeros(len(currencies), bool)
        for code in np.flatnonzero(share[kind] > 0).tolist():
            if not currency[kind, code].any():
                raise ValueError(f"countries.{countries[code]} must have currencies of {name}, got none")
            used |= currency[kind, code] > 0
        for code in np.flatnonzero(used).tolist():
            where = f"merchant_per_currency.{name}.{currencies[code]}"
            if not merchant[kind, code].any():
                raise ValueError(f"{where} must have weights that sum to a positive number, got none")
            empty = (merchant[kind, code] > 0) & ~heights[kind].any(axis=-1)
            if empty.any():
                raise ValueError(
                    f"merchant_amount_hist.{name}[{np.flatnonzero(empty)[0]}] must have heights that sum to a positive "
                    "number, got 0"
                )


def _need(name: str, table: Any, columns: Iterable[str]) -> None:
    if not isinstance(table, Mapping):
        raise ValueError(f"{name} must be a mapping, got {table!r}")
    lacking = [column for column in columns if column not in table]
    if lacking:
        raise ValueError(f"{name} must have the columns {', '.join(columns)}; it lacks {', '.join(lacking)}")


def _by_name(weights: Any, names: Sequence[str], where: str) -> Floats:
    """Return named weights in the order of the names, summing to 1; all 0 if there are none."""
    if not isinstance(weights, Mapping):
        raise ValueError(f"{where} must be a mapping of weights, got {weights!r}")
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise ValueError(f"{where} must name {', '.join(names)}, got {unknown[0]!r}")
    listed = [weights.get(name, 0.0) for name in names]
    return _weights(where, listed, len(names), may_be_zero=not weights)


def _weights(name: str, weights: Any, count: int, *, may_be_zero: bool = False) -> Floats:
    """Return `count` weights that sum to 1; the sum may be 0 with `may_be_zero`."""
    return shares_of(name, _numbers(name, weights, count), may_be_zero=may_be_zero)


def _numbers(name: str, numbers: Any, count: int) -> Floats:
    try:
        given = np.asarray(numbers, np.float64)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"{name} must have {count} numbers, got {shown(numbers)}") from None
    if given.shape != (count,):
        raise ValueError(f"{name} must have {count} numbers, got {given.size}")
    return given


# ----------------------------------------------------------------------------------------------------- clocks


def offset(zone: str, minute: int) -> int:
    """Return the offset of a time zone from UTC in minutes, at a UTC minute that may lie outside the year.

    The zones of the default tables are in ``data/utc_offsets.json``; others need the machine's tz database.

    Raises:
        ValueError: The time zone is unknown.
    """
    known = _offsets().get(zone)
    if known is None:
        return _looked_up(zone, minute)
    return int(next(ahead for since, ahead in reversed(known) if since <= max(minute, 0)))


@functools.cache
def _offsets() -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = _read(FOLDER / OFFSETS_FILE)
    return found


@functools.cache
def _looked_up(zone: str, minute: int) -> int:
    moment = datetime(YEAR, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=minute)
    try:
        ahead = moment.astimezone(ZoneInfo(zone)).utcoffset()
    except (KeyError, OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(f"countries must have time zones of the tz database, got {zone!r}") from None
    return 0 if ahead is None else round(ahead.total_seconds() / 60)


def calendar(first_day: int, days: int) -> Ints:
    """Return month (January 0), day of the month (the first 0) and weekday (Monday 0) of dates, shape (days, 3).

    Args:
        first_day: Day of the year, from 1, after the first of the dates.
        days: Number of dates.
    """
    dates = (date(YEAR, 1, 1) + timedelta(days=first_day - 2 + k) for k in range(days))
    return np.array([(day.month - 1, day.day - 1, day.weekday()) for day in dates])
