"""The settings behind the tables of Cimpean et al. (2025), "FAReL", arXiv 2509.22232, and the tables' own numbers."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal

from fair_envs.metrics.history import Discounted, Memory, SlidingWindow

World = Literal["hiring", "fraud"]
Distance = Literal["Bray-Curtis", "HEOM", "HMOM"]
Span = Literal["best", "mean", "worst"]

ENV_IDS: Mapping[World, str] = {"hiring": "FairHiring-v0", "fraud": "FairFraud-v0"}
MEASURES = ("R", "SP", "EO", "OAE", "PP", "PE", "IF", "CSC")
DISTANCES: tuple[Distance, ...] = ("Bray-Curtis", "HEOM", "HMOM")
SINGLE = ("R", "SP", "IF", "EO", "PE", "PP", "OAE", "CSC")
COMBINED = ("R:SP:IF", "R:SP:CSC", "R:EO:IF", "R:EO:CSC")
WINDOWS = (100, 200, 500, 1000)
FACTORS = (0.9, 0.95, 1.0)
THRESHOLDS = (0.001, 0.0001, 0.00001)
POPULATIONS = {"Belgian": "belgian", "gender": "gender", "nationality and gender": "nationality_gender"}
HIRING_BIASES = {"none": "none", "men": "men", "Belgian men": "belgian_men"}
FRAUD_BIASES = {"none": "none", "EU": "europe", "EU and merchant 0": "europe_merchant_0"}
PAPER_SEEDS, PAPER_STEPS = 10, 500_000
TAKEN_FOR_BEST: Mapping[World, float] = {"hiring": 46.53243, "fraud": 906.0}  # returns of single episodes, not bounds
PRINTED_LESS: Mapping[int, float] = {  # the constant that each table subtracts from R
    **dict.fromkeys(range(1, 13), TAKEN_FOR_BEST["hiring"]),
    13: 1000.0,
    **dict.fromkeys(range(14, 22), TAKEN_FOR_BEST["fraud"]),
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The setting of a training.

    Attributes:
        world: The environment.
        objectives: The objectives of the policies, from `MEASURES`.
        window: Size of the sliding window; None: the history is discounted.
        factor: Discount factor of the discounted history.
        threshold: Threshold of the discounted history.
        distance: Distance between people.
        population: Population of applicants.
        bias: Bias of the reward.
        printed: Whether the method is the one as printed: the published protocol, the history of the published code,
            which in hiring pairs decisions with the next applicant, and similarities in the place of distances.
    """

    world: World
    objectives: tuple[str, ...]
    window: int | None = 500
    factor: float = 1.0
    threshold: float = 1e-4
    distance: Distance = "HEOM"
    population: str = "belgian"
    bias: str = "none"
    printed: bool = False

    @property
    def as_printed(self) -> "Setting":
        """The same setting with the method as printed."""
        return replace(self, printed=True)

    @property
    def memory(self) -> Memory:
        """The memory of the history of decisions."""
        if self.window is not None:
            return SlidingWindow(self.window)
        return Discounted(self.factor, threshold=self.threshold, minimum=100)

    @property
    def parameters(self) -> dict[str, Any]:
        """The environment's parameters that differ from their defaults."""
        given: dict[str, Any] = {"reward_bias": self.bias}
        if self.world == "hiring":
            given |= {"population": self.population}
        return given

    def __str__(self) -> str:
        """Return its name in the table of seeds, and in lists."""
        memory = f"window {self.window}" if self.window else f"factor {self.factor:g}, threshold {self.threshold:g}"
        words = [self.world, ":".join(self.objectives), memory, self.distance]
        words += [self.population] if self.population != "belgian" else []
        words += [f"bias {self.bias}"] if self.bias != "none" else []
        return ", ".join(words + (["as printed"] if self.printed else []))


def tables() -> dict[int, dict[str, Setting]]:
    """Return the settings of each table's groups of rows, by the table's number."""
    return {
        **_of_world("hiring", first=1),
        **{
            6: {name: _three("hiring", population=own) for name, own in POPULATIONS.items()},
            **{
                7 + k: {name: _three("hiring", population=own, bias=bias) for name, bias in HIRING_BIASES.items()}
                for k, own in enumerate(POPULATIONS.values())
            },
        },
        **_histories("hiring", first=10),
        **_of_world("fraud", first=13),
        18: {name: _three("fraud", bias=bias) for name, bias in FRAUD_BIASES.items()},
        **_histories("fraud", first=19),
    }


def discounted_tables() -> list[int]:
    """Return the numbers of the tables whose histories are discounted."""
    return [number for number, groups in tables().items() if all(own.window is None for own in groups.values())]


def _three(world: World, **differing: Any) -> Setting:
    """Return the setting that the paper varies: reward, statistical parity and individual fairness."""
    return Setting(world=world, objectives=("R", "SP", "IF"), **differing)


def _of_world(world: World, *, first: int) -> dict[int, dict[str, Setting]]:
    """Return the tables on objectives and distances."""
    combined = {name: tuple(name.split(":")) for name in COMBINED}
    return {
        first: {name: Setting(world=world, objectives=(name,), window=1000) for name in SINGLE},
        first + 1: {name: Setting(world=world, objectives=own, window=1000) for name, own in combined.items()},
        first + 2: {name: Setting(world=world, objectives=own, window=500) for name, own in combined.items()},
        first + 3: {"R:SP": Setting(world=world, objectives=("R", "SP"))},
        first + 4: {name: _three(world, distance=name) for name in ("Bray-Curtis", "HMOM", "HEOM")},
    }


def _histories(world: World, *, first: int) -> dict[int, dict[str, Setting]]:
    """Return the tables on windows, discount factors and thresholds."""
    return {
        first: {str(size): _three(world, window=size) for size in WINDOWS},
        first + 1: {f"gamma {factor}": _three(world, window=None, factor=factor) for factor in FACTORS},
        first + 2: {
            f"theta {_plain(threshold)}": _three(world, window=None, threshold=threshold) for threshold in THRESHOLDS
        },
    }


def _plain(number: float) -> str:
    return f"{number:.5f}".rstrip("0")


@functools.cache
def printed() -> Mapping[int, Mapping[str, Mapping[str, Any]]]:
    """Return the paper's numbers by table and group of rows: ``n``, ``best``, ``mean`` (not in all) and ``worst``."""
    text = files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    return {int(number): groups for number, groups in json.loads(text)["tables"].items()}


def printed_value(table: int, group: str, measure: str, span: Span, *, distance: Distance = "HEOM") -> float | None:
    """Return one of the paper's numbers, or None if not printed; the constant subtracted from R is added back.

    Args:
        table: Number of the table.
        group: Name of the group of rows.
        measure: One of `MEASURES`.
        span: The value of the column to return.
        distance: The column to use in tables with one column per distance.
    """
    values = printed()[table][group].get(span)
    if values is None:
        return None
    place = MEASURES.index(measure)
    if len(values) > len(MEASURES) and measure in ("IF", "CSC"):
        place = 6 + 3 * (measure == "CSC") + DISTANCES.index(distance)
    return float(values[place]) + (PRINTED_LESS[table] if measure == "R" else 0.0)
