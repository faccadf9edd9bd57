"""How unfair is FairTraffic's city to human drivers, what causes it, and what is the effect of lanes and lights?

    python examples/traffic_study.py --episodes 1000 --out docs/designing-systems

All cities use the same seeds. Drivers take the quickest route according to their information (`ShortestTime`).
"""

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from fair_envs.evaluation.systems import Episodes, gaps, outcomes
from fair_envs.experiments.executors import opened, run_cells
from fair_envs.experiments.systems import joined, system_cells
from fair_envs.experiments.tables import markdown
from fair_envs.metrics import Estimate, mean_interval, paired_difference

ID = "FairTraffic-v0"
SEED = 2_000_000
POLICY = "shortest-time"
ALIKE: dict[str, Any] = {"human_information": "all", "human_reaction": 0, "human_dawdling": 0.1}
STEPS: dict[str, Any] = {"arrival_reward": 0.0, "distance_cost": 0.0, "time_cost": 1.0}  # returns are minus the steps
BUSY: dict[str, Any] = {"cars": 90}


def without(*names: str) -> dict[str, Any]:
    """Return the parameters of a city in which human drivers only differ in the named parameters."""
    return {name: value for name, value in ALIKE.items() if name not in names}


CAUSES: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "without (a): people are told everything": {"human_information": "all"},
    "without (b): they react at once": {"human_reaction": 0},
    "without (c): they dawdle as little": {"human_dawdling": 0.1},
    "(a) alone": without("human_information"),
    "(b) alone": without("human_reaction"),
    "(c) alone": without("human_dawdling"),
    "none of them": ALIKE,
}
REMEDIES: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "lanes for people in all streets": {"human_lanes": ["all"]},
    "live travel times for people": {"human_information": "times"},
    "lights every 8 steps": {"signal_period": 8},
    "lights every 32 steps": {"signal_period": 32},
    "lights every 64 steps": {"signal_period": 64},
    "a green wave from west to east": {"offset_east_west": 5},
    "right of way in place of lights": {"crossroads": "right_of_way"},
}
SECTIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "causes": CAUSES,
    "remedies": REMEDIES,
    "remedies-busy": {name: {**BUSY, **own} for name, own in REMEDIES.items()},
}
PARITY, TWINS, ALONE = "demographic parity", "counterfactual fairness, all at once", "counterfactual fairness"
NUMBERS = {
    PARITY: "demographic_parity:human_driven",
    TWINS: "counterfactual_fairness:human_driven",
    "within fast cars": "conditional_parity:human_driven:fast=1",
    "within slow cars": "conditional_parity:human_driven:fast=0",
}
PEOPLE, MACHINES, CHANGE = "steps, people", "steps, AI", "steps of all, change"
TWIN_SHARE = 8  # one of this many episodes is played again with a separate world for each car


class City(NamedTuple):
    """Episodes of a city.

    Attributes:
        rewards: Episodes with the city's rewards, each played again without human drivers.
        alone: Fewer episodes, each played again for each human driver, in a world where only that car has no human one.
        steps: The same episodes as ``rewards``; the return is the negative number of steps on the road.
    """

    rewards: Any
    alone: Any
    steps: Any


def city_cells(parameters: Mapping[str, Any], *, episodes: int) -> City:
    """Return the cells of a city's episodes."""
    few = max(2, episodes // TWIN_SHARE)
    steps = {**parameters, **STEPS}
    return City(
        rewards=system_cells(ID, parameters, POLICY, episodes=episodes, seed=SEED),
        alone=system_cells(ID, parameters, POLICY, episodes=few, seed=SEED, each=8, flip="each"),
        steps=system_cells(ID, steps, POLICY, episodes=episodes, seed=SEED, counterfactual=False),
    )


def row_of(city: City, first: Episodes) -> dict[str, Estimate]:
    """Return a city's numbers; ``first`` has the steps of the city with which travel times are compared."""
    found = {one.name: one.values for one in gaps(city.rewards)}
    row = {title: mean_interval(found[name], undefined="omit") for title, name in NUMBERS.items()}
    (own,) = [one.values for one in gaps(city.alone) if one.name == NUMBERS[TWINS]]
    row[ALONE] = mean_interval(own, undefined="omit")
    for side, title in {"return_without": MACHINES, "return_with": PEOPLE}.items():
        row[title] = mean_interval(side_of(city.steps, side), undefined="omit")
    everybody, before = (-episodes.returns.values.mean(axis=1) for episodes in (city.steps, first))
    row[CHANGE] = paired_difference(everybody, before)
    return row


def side_of(steps: Episodes, side: str) -> Any:
    """Return the mean steps of cars with human drivers, or of all other cars, in each episode."""
    (values,) = [-one.values for one in outcomes(steps) if one.notion == side and one.attribute == "human_driven"]
    return np.asarray(values)


def study(*, episodes: int, jobs: int, sections: Sequence[str]) -> Iterator[tuple[str, dict[str, dict[str, Estimate]]]]:
    """Yield each section with its rows."""
    for section in sections:
        cells = {name: city_cells(parameters, episodes=episodes) for name, parameters in SECTIONS[section].items()}
        with TemporaryDirectory() as folder, opened("processes", jobs=jobs, here=True) as workers:
            run_cells([c for city in cells.values() for own in city for c in own], Path(folder), engine=workers)
            played = {name: City(*(joined(own, Path(folder)) for own in city)) for name, city in cells.items()}
        first = next(iter(played.values())).steps
        yield section, {name: row_of(city, first) for name, city in played.items()}


def draw(rows: Mapping[str, Mapping[str, Estimate]], path: Path) -> None:
    """Save a plot of each city's gaps and travel times, with their confidence intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.2 + 0.42 * len(rows)), layout="constrained")
    gap_axis, step_axis = figure.subplots(1, 2, sharey=True)
    panels = {
        gap_axis: {PARITY: "#222222", ALONE: "#009e73"},
        step_axis: {PEOPLE: "#d55e00", MACHINES: "#0072b2"},
    }
    for axis, numbers in panels.items():
        for k, (number, colour) in enumerate(numbers.items()):
            each = [row[number] for row in rows.values()]
            values = np.array([one.value for one in each])
            errors = [values - [one.low for one in each], np.array([one.high for one in each]) - values]
            places = np.arange(len(rows)) + 0.16 * (k - 0.5)
            axis.errorbar(values, places, xerr=errors, fmt="o", markersize=4, color=colour, label=number)
        axis.legend(fontsize="small")
    gap_axis.axvline(0, color="#888888", linewidth=0.8)
    gap_axis.set_yticks(np.arange(len(rows)), list(rows))
    gap_axis.invert_yaxis()
    gap_axis.set_xlabel("people worse off, in return")
    step_axis.set_xlabel("steps on the road")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Write a table and a plot of each section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--section", action="append", choices=SECTIONS)
    parser.add_argument("--out", type=Path, required=True)
    reported = parser.parse_args()
    reported.out.mkdir(parents=True, exist_ok=True)
    for section, rows in study(
        episodes=reported.episodes, jobs=reported.jobs, sections=reported.section or list(SECTIONS)
    ):
        header = ["city", *next(iter(rows.values()))]
        text = markdown(header, [[name, *row.values()] for name, row in rows.items()])
        (reported.out / f"{section}.md").write_text(text + "\n")
        with (reported.out / f"{section}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["city", "number", *Estimate.__dataclass_fields__])
            for name, row in rows.items():
                writer.writerows([name, number, *vars(one).values()] for number, one in row.items())
        draw(rows, reported.out / f"{section}.png")
        print(f"{section}\n{text}\n")


if __name__ == "__main__":
    main()
