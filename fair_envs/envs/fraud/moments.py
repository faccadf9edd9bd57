"""Makes the default tables of FairFraud from published moments: ``python -m fair_envs.envs.fraud.moments``.

The simulator's real input, aggregates of a private data set of card payments, is not part of this package. This module
reproduces the moments that its users can see: how payments and frauds spread over continents and the largest
countries, how payments spread over the hours of a day, the range of each merchant's amounts, the mean amounts, and the
numbers of payments and frauds in a week in January. All other numbers are chosen here and marked as such. You can give
tables of the same layout, with other numbers, to the environment's keyword ``tables``.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from fair_envs.envs.fraud.tables import BANK_ZONE, BINS, FOLDER, OFFSETS_FILE, TABLES_FILE, YEAR

PROVENANCE = (
    "Made by fair_envs.envs.fraud.moments from published moments of the MultiMAuS input (Zintgraf et al., 2017) as "
    "FAReL (Cimpean et al., 2025) uses it; not that input itself."
)

# The countries of each continent, each with the first time zone that the tz database lists for it: the simulator has
# one zone per country. Published: the number of countries of each continent. Chosen: which countries these are, and
# their order, by which they share the unpublished remainder.
COUNTRIES: Mapping[str, str] = {
    "EU": (
        "ES Europe/Madrid, FI Europe/Helsinki, IE Europe/Dublin, PL Europe/Warsaw, CZ Europe/Prague, PT "
        "Europe/Lisbon, GR Europe/Athens, RU Europe/Kaliningrad, HU Europe/Budapest, LU Europe/Luxembourg, RO "
        "Europe/Bucharest, AD Europe/Andorra, AL Europe/Tirane, AT Europe/Vienna, BA Europe/Sarajevo, BE "
        "Europe/Brussels, BG Europe/Sofia, CH Europe/Zurich, DE Europe/Berlin, DK Europe/Copenhagen, EE "
        "Europe/Tallinn, FR Europe/Paris, GB Europe/London, GI Europe/Gibraltar, HR Europe/Zagreb, IS "
        "Atlantic/Reykjavik, IT Europe/Rome, LI Europe/Vaduz, LT Europe/Vilnius, LV Europe/Riga, MC "
        "Europe/Monaco, MT Europe/Malta, NL Europe/Amsterdam, NO Europe/Oslo, RS Europe/Belgrade, SE "
        "Europe/Stockholm, SI Europe/Ljubljana, SK Europe/Bratislava, UA Europe/Simferopol"
    ),
    "AS": (
        "CN Asia/Shanghai, HK Asia/Hong_Kong, SG Asia/Singapore, JP Asia/Tokyo, IN Asia/Kolkata, IL "
        "Asia/Jerusalem, AE Asia/Dubai, KR Asia/Seoul, AZ Asia/Baku, BH Asia/Bahrain, CY Asia/Nicosia, GE "
        "Asia/Tbilisi, ID Asia/Jakarta, KW Asia/Kuwait, KZ Asia/Almaty, LB Asia/Beirut, LK Asia/Colombo, MV "
        "Indian/Maldives, MY Asia/Kuala_Lumpur, OM Asia/Muscat, PH Asia/Manila, PK Asia/Karachi, QA Asia/Qatar, "
        "SA Asia/Riyadh, TH Asia/Bangkok, TR Europe/Istanbul, TW Asia/Taipei, VN Asia/Ho_Chi_Minh"
    ),
    "NA": (
        "MX America/Mexico_City, PR America/Puerto_Rico, BM Atlantic/Bermuda, AG America/Antigua, AW "
        "America/Aruba, BB America/Barbados, BS America/Nassau, CA America/St_Johns, CR America/Costa_Rica, CW "
        "America/Curacao, DO America/Santo_Domingo, GP America/Guadeloupe, GT America/Guatemala, HN "
        "America/Tegucigalpa, JM America/Jamaica, KY America/Cayman, LC America/St_Lucia, MQ America/Martinique, "
        "PA America/Panama, TT America/Port_of_Spain, US America/New_York"
    ),
    "AF": (
        "ZA Africa/Johannesburg, EG Africa/Cairo, MA Africa/Casablanca, AO Africa/Luanda, CI Africa/Abidjan, CM "
        "Africa/Douala, CV Atlantic/Cape_Verde, KE Africa/Nairobi, MG Indian/Antananarivo, MU Indian/Mauritius, "
        "MZ Africa/Maputo, NG Africa/Lagos, RE Indian/Reunion, SC Indian/Mahe, SN Africa/Dakar, TN Africa/Tunis, "
        "TZ Africa/Dar_es_Salaam, UG Africa/Kampala"
    ),
    "OC": (
        "NZ Pacific/Auckland, AU Australia/Lord_Howe, CK Pacific/Rarotonga, FJ Pacific/Fiji, GU Pacific/Guam, NC "
        "Pacific/Noumea, PF Pacific/Tahiti, PW Pacific/Palau, TV Pacific/Funafuti, VU Pacific/Efate, WS "
        "Pacific/Apia"
    ),
    "SA": (
        "BR America/Noronha, AR America/Argentina/Buenos_Aires, CO America/Bogota, CL America/Santiago, BO "
        "America/La_Paz, EC America/Guayaquil, PE America/Lima, UY America/Montevideo"
    ),
}

# Published: shares of payments and of frauds.
CONTINENT_SHARES = {
    "genuine": {"EU": 0.834875, "NA": 0.113809, "AS": 0.023769, "OC": 0.022715, "AF": 0.003094, "SA": 0.001738},
    "fraud": {"EU": 0.657782, "NA": 0.306105, "AS": 0.028375, "OC": 0.006019, "AF": 0.001720, "SA": 0.0},
}
COUNTRY_SHARES = {
    "genuine": {
        **{"FR": 0.401, "NO": 0.094, "US": 0.088, "DE": 0.078, "GB": 0.067, "DK": 0.057, "IT": 0.033, "CA": 0.024},
        **{"AU": 0.021, "SE": 0.020, "CH": 0.018, "AT": 0.013, "TR": 0.012, "BE": 0.011, "NL": 0.010},
    },
    "fraud": {
        **{"FR": 0.551, "US": 0.209, "CA": 0.096, "GB": 0.092, "KR": 0.020, "JP": 0.005, "DK": 0.005, "DE": 0.004},
        **{"AU": 0.003, "TW": 0.003},
    },
}
# Published: frauds come from 19 countries. Chosen: which ones, in addition to the ten above.
SMALLER_FRAUD_COUNTRIES = ("IT", "BE", "NL", "MX", "TR", "NZ", "ZA", "MA", "SE")

# Published: the plateaus (4 to 6 h, 11 to 20 h, 21, 22, 23 and 0 h). Chosen: the slopes between them, and the same
# hours for frauds.
HOURS = (
    *(0.049, 0.025, 0.012, 0.009, 0.006, 0.006, 0.006, 0.012, 0.022, 0.034, 0.044),
    *(0.05,) * 10,
    *(0.078, 0.086, 0.107),
)
# Published: no fraud in January, February and December, and a week in January with 956 payments, 10 % of them frauds.
# Chosen: this share for January, which gives 976 (single weeks differ by 50), and equal shares for the other months.
JANUARY = 0.062
FRAUD_MONTHS = range(2, 11)  # March to November

# Published: each merchant's range of amounts, the mean amount of all payments (about 300 to 318) and of all frauds (54
# to 76), frauds at 6 of the 7 merchants in 3 of the 5 currencies, and that 12 pairs of currency and merchant occur
# among the payments, 8 among the frauds. Chosen: the cheapest merchants have the most customers, the k-th cheapest 1/k
# times as many as the first; all sell in euros, few in others; the mean is at the same fraction of each range.
RANGES = ((0.5, 69.0), (0.75, 7835.56), (1.0, 2724.15), (0.44, 37.37), (1.2, 649.83), (0.9, 5965.01), (0.9, 885.71))
MEAN_AMOUNTS = {"genuine": 309.0, "fraud": 65.0}
CHEAPEST_FIRST = sorted(range(len(RANGES)), key=lambda merchant: RANGES[merchant][1])
SELLERS = {
    "genuine": {"EUR": CHEAPEST_FIRST, "GBP": CHEAPEST_FIRST[2:4]}
    | {code: [merchant] for code, merchant in zip(("USD", "NOK", "DKK"), CHEAPEST_FIRST[1::2], strict=True)},
    "fraud": {"EUR": CHEAPEST_FIRST[:6], "GBP": CHEAPEST_FIRST[2:3], "USD": CHEAPEST_FIRST[1:2]},
}
EURO_COUNTRIES = ["AD", "AT", "BE", "CY", "DE", "EE", "ES", "FI", "FR", "GP", "GR", "IE"]
EURO_COUNTRIES += ["IT", "LT", "LU", "LV", "MC", "MQ", "MT", "NL", "PT", "RE", "SI", "SK"]
OWN_CURRENCY = {"GB": "GBP", "GI": "GBP", "NO": "NOK", "DK": "DKK", **dict.fromkeys(EURO_COUNTRIES, "EUR")}


def make_tables() -> dict[str, Any]:
    """Return the tables: the layout that `fair_envs.envs.fraud.tables.load` reads."""
    countries = make_countries()
    merchants = {kind: make_merchants(kind) for kind in SELLERS}
    return {
        "_provenance": PROVENANCE,
        "hour_frac": dict.fromkeys(("genuine", "fraud"), shares(HOURS)),
        "month_frac": {
            "genuine": shares([JANUARY, *[(1 - JANUARY) / 11] * 11]),
            "fraud": shares([float(month in FRAUD_MONTHS) for month in range(12)]),
        },
        "monthday_frac": dict.fromkeys(("genuine", "fraud"), shares([1.0] * 31)),
        "weekday_frac": dict.fromkeys(("genuine", "fraud"), shares([1.0] * 7)),
        "countries": countries,
        "merchant_per_currency": merchants,
        "merchant_amount_hist": {kind: histograms(kind, countries, own) for kind, own in merchants.items()},
    }


def make_countries() -> dict[str, list[Any]]:
    """Return each country's continent, time zone, share of the payments and of the frauds, and currencies of both."""
    members = {continent: dict(row.split(" ") for row in text.split(", ")) for continent, text in COUNTRIES.items()}
    rows: dict[str, list[Any]] = {}
    for continent, zones in members.items():
        genuine = split(continent, "genuine", [*zones])
        fraud = split(continent, "fraud", [code for code in SMALLER_FRAUD_COUNTRIES if code in zones])
        for code, zone in zones.items():
            share = fraud.get(code, 0.0)
            rows[code] = [continent, zone, genuine[code], share, currencies(code, "genuine"), {}]
            if share > 0:
                rows[code][5] = currencies(code, "fraud")
    return dict(sorted(rows.items()))


def split(continent: str, kind: str, others: Sequence[str]) -> dict[str, float]:
    """Return the shares of a continent's countries: the published ones, and the remainder as 1, 1/2, 1/3, ..."""
    members = COUNTRIES[continent].split(", ")
    published = {
        code: share for code, share in COUNTRY_SHARES[kind].items() if any(m.startswith(code) for m in members)
    }
    others = [code for code in others if code not in published]
    left = CONTINENT_SHARES[kind][continent] - sum(published.values())
    return published | {code: round(left * share, 8) for code, share in zip(others, harmonic(len(others)), strict=True)}


def currencies(code: str, kind: str) -> dict[str, float]:
    """Return a country's currencies: its own if there are merchants for it, else euros; for others dollars."""
    own = OWN_CURRENCY.get(code, "USD")
    return {own if own in SELLERS[kind] else "EUR": 1.0}


def make_merchants(kind: str) -> dict[str, dict[str, float]]:
    """Return the shares of the merchants for each currency."""
    return {
        code: dict(zip(map(str, sellers), harmonic(len(sellers)), strict=True))
        for code, sellers in SELLERS[kind].items()
    }


def histograms(
    kind: str, countries: Mapping[str, Sequence[Any]], merchants: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Return each merchant's histogram of amounts; all heights are 0 without customers."""
    column = {"genuine": (2, 4), "fraud": (3, 5)}[kind]  # columns of a country's share and its currencies' shares
    weights = [0.0] * len(RANGES)
    for country in countries.values():
        share, currencies_there = (country[place] for place in column)
        for code, part in currencies_there.items():
            for merchant, weight in merchants[code].items():
                weights[int(merchant)] += share * part * weight
    lowest, span = (
        sum(weight * amount for weight, amount in zip(weights, amounts, strict=True)) / sum(weights)
        for amounts in ([low for low, _ in RANGES], [high - low for low, high in RANGES])
    )
    part = (MEAN_AMOUNTS[kind] - lowest) / span  # relative position of the mean within each range
    return [
        {"min": low, "max": high, "heights": falling(low, high, low + part * (high - low)) if weight else [0.0] * BINS}
        for weight, (low, high) in zip(weights, RANGES, strict=True)
    ]


def falling(low: float, high: float, mean: float) -> list[float]:
    """Return the heights of an exponential-like histogram with this mean: its logarithm is a straight line."""
    middles = [low + (high - low) * (k + 0.5) / BINS for k in range(BINS)]
    slopes = [-50.0, 50.0]  # slopes per bin
    for _ in range(80):
        slope = sum(slopes) / 2
        heights = shares([math.exp(min(slope * k, slope * (k - BINS + 1))) for k in range(BINS)])
        too_high = sum(map(float.__mul__, heights, middles)) > mean
        slopes[too_high] = slope
    return heights


def harmonic(count: int) -> list[float]:
    """Return shares that fall as 1, 1/2, 1/3, ..."""
    return shares([1 / (k + 1) for k in range(count)]) if count else []


def shares(weights: Sequence[float]) -> list[float]:
    """Return weights that sum to 1, to eight digits."""
    whole = sum(weights)
    return [round(weight / whole, 8) for weight in weights]


def make_offsets() -> dict[str, list[list[int]]]:
    """Return the UTC offsets in minutes of each time zone, each with the UTC minute of the year when it begins."""
    zones = {row.split(" ")[1] for text in COUNTRIES.values() for row in text.split(", ")}
    return {zone: offsets_of(zone) for zone in sorted(zones | {BANK_ZONE})}


def offsets_of(zone: str) -> list[list[int]]:
    """Return ``[minute of the year, offset]`` for the start of the year and each change within it."""
    clock = ZoneInfo(zone)
    begin = datetime(YEAR, 1, 1, tzinfo=timezone.utc)

    def offset(minute: int) -> int:
        there = (begin + timedelta(minutes=minute)).astimezone(clock).utcoffset()
        return round(there.total_seconds() / 60) if there is not None else 0

    found, end = [[0, offset(0)]], (datetime(YEAR + 1, 1, 1, tzinfo=timezone.utc) - begin) // timedelta(minutes=1)
    for day in range(0, end, 24 * 60):
        before, after = day, day + 24 * 60
        if offset(after) != found[-1][1]:
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (middle, after) if offset(middle) == found[-1][1] else (before, middle)
            found.append([after, offset(after)])
    return found


def written(table: Mapping[str, Any]) -> str:
    """Return a table as text for its file: one line for each entry of the top two levels."""
    parts = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items())
            parts.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def files() -> dict[Path, str]:
    """Return the paths of the data files and their content."""
    return {FOLDER / TABLES_FILE: written(make_tables()), FOLDER / OFFSETS_FILE: written(make_offsets())}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, "utf-8")
        print(f"{path}: {len(text)} characters")
