"""The numbers of a seed in the study on long-term fairness: summaries of its tests and of its training, and curves."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fair_envs.experiments.seeds import curve_numbers
from fair_envs.reproduction.hu2024.jobs import AS_PRINTED, DRAWN, Key, ProcessResult, read_process
from fair_envs.reproduction.hu2024.processes import BENEFITS, Series, World, noise_floors, series

SHIELD, LIKELIEST, NOISE, EXCESS = "shield: ", "likeliest: ", "noise ", "excess "
TRAINED, BENEFIT = "trained ", "benefit: "
"""Prefixes of numbers: of the test with the shield or with the most likely actions; of the values under chance, and of
what is above them; of trainings; of what each group gets."""

STARTING_CASH = 10_000.0
POINTS = 40  # the largest number of points of a curve
ABLATED = ("PPO", "F-PPO", "F-PPO-L", "F-PPO" + AS_PRINTED, "F-PPO-L" + AS_PRINTED)
"""The agents whose trainings are compared."""

CURVES = ("short, as plotted", "short", "long, as plotted", "long", "utility")
"""The series whose curves are kept."""


class Summary(NamedTuple):
    """A summary of a series: its mean from a time on, or its last value."""

    title: str
    series: str
    since: int | None  # None: the last step
    digits: int = 3


SUMMARIES: Mapping[World, Mapping[str, Summary]] = {
    "lending": {
        "short, as plotted": Summary("gap of mean rates, t >= 300", "short, as plotted", 300),
        "short": Summary("mean gap in a window of 300, t >= 300", "short", 300),
        "of all": Summary("gap of the rates of all applicants", "of all", None),
        "long, as plotted": Summary("transport between episodes, at the end", "long, as plotted", None),
        "long": Summary("1-Wasserstein distance of scores, at the end", "long", None),
        "utility": Summary("cash at the end", "utility", None, 0),
        "advantaged": Summary("mean score of the advantaged, at the end", "mean score, advantaged", None, 2),
        "disadvantaged": Summary("mean score of the disadvantaged, at the end", "mean score, disadvantaged", None, 2),
    },
    "attention": {
        "short, as plotted": Summary("largest deviation of shares of units, whole episode", "short, as plotted", None),
        "short": Summary("the same in the last 300 steps, mean over t >= 300", "short", 300),
        "long, as plotted": Summary("largest deviation of rates, t >= 150", "long, as plotted", 150, 2),
        "long": Summary("total variation of rates from equal shares, t >= 150", "long", 150),
        "utility": Summary("reward a step, t >= 200", "utility", 200, 2),
        "rate": Summary("mean rate, t >= 200", "mean rate", 200, 2),
        "alive": Summary("episodes with incidents left, at the end", "incidents left", None, 2),
    },
    "epidemic": {
        "short, as plotted": Summary("gap of vaccinations per infection, t = 19", "short, as plotted", None, 2),
        "short": Summary("gap of effective vaccinations per infection, t = 19", "short", None, 2),
        "long, as plotted": Summary("transport between episodes, t = 19", "long, as plotted", None, 2),
        "long": Summary("total variation of health, t = 19", "long", None),
        "utility": Summary("share not infected, t = 19", "utility", None),
        "mean utility": Summary("share not infected, mean", "utility", 0),
    },
}
"""The columns of the tables."""


def numbers(key: Key, folder: Path) -> dict[str, float]:
    """Return the numbers of a finished cell."""
    result = read_process(folder)
    tests = {"": result.open, SHIELD: result.shielded, LIKELIEST: result.most_probable}
    found: dict[str, float] = {}
    for prefix, arrays in tests.items():
        if arrays:
            found |= {prefix + name: value for name, value in tested(key.world, arrays).items()}
    if key.label in DRAWN[key.world]:
        courses = series(key.world, result.open)
        for name in CURVES:
            found |= thinned(name, courses[name].times, courses[name].values)
    return found | trained(key, result)


def tested(world: World, arrays: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Return the summaries of a test, what they are under chance, and what each group gets."""
    found, courses, floors = {}, series(world, arrays), noise_floors(world, arrays)
    for name, summary in SUMMARIES[world].items():
        found[name] = summarised(courses[summary.series], summary.since)
        if summary.series in floors:
            found[NOISE + name] = summarised(floors[summary.series], summary.since)
            found[EXCESS + name] = found[name] - found[NOISE + name]
    if world == "lending":
        found["profit"] = found["utility"] - STARTING_CASH
    return found | {BENEFIT + name: value for name, value in BENEFITS[world](arrays).items()}


def trained(key: Key, result: ProcessResult) -> dict[str, float]:
    """Return the mean short-term disparity and share of altered actions in the second half of the training."""
    if not result.training:
        return {}
    found = {
        TRAINED + name: float(_mean_defined(result.training[name][len(result.training[name]) // 2 :]))
        for name in ("short", "altered")
    }
    if key.label in ABLATED:
        for name in ("short", "deviation"):
            found |= thinned(TRAINED + name, result.training["steps"], result.training[name])
    return found


def summarised(course: Series, since: int | None) -> float:
    """Return the last value of a series, or the mean of its defined values from a time on."""
    if since is None:
        return float(course.values[-1])
    return _mean_defined(course.values[course.times >= min(since, course.times[-1])])


def thinned(name: str, places: NDArray[Any], values: NDArray[Any]) -> dict[str, float]:
    """Return a curve with at most `POINTS` points, with the first and the last one."""
    chosen = np.unique(np.linspace(0, len(places) - 1, min(POINTS, len(places))).round().astype(np.int64))
    return curve_numbers(name, places[chosen], values[chosen])


def _mean_defined(values: NDArray[Any]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan
