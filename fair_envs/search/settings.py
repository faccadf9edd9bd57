"""The settings of a search: the environment, the search space, the objectives, and the effort."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from fair_envs.core import Rules
from fair_envs.evaluation.systems import Flip
from fair_envs.experiments.jobs import sources
from fair_envs.experiments.players import contents, policy_named
from fair_envs.experiments.systems import full_name, plain
from fair_envs.registration import find, make_rules
from fair_envs.search.objectives import Objective, default_objectives, objective_named
from fair_envs.search.ranges import Between, Dimension, check_drawable, range_of
from fair_envs.support.files import damaged, read_json, write_json
from fair_envs.support.imports import refuse_stored_paths
from fair_envs.support.parameters import NonNegative, PositiveInt, Range, UnitInterval, checked, meant
from fair_envs.support.seeds import HELD_OUT_SEEDS, SEARCH_EACH, SEARCH_SEEDS

SamplerName = Literal["tpe", "cma-es", "nsga-ii", "random"]

KEPT = "search.json"
NEVER_IMPORTED = ("objectives",)  # settings that look like import paths, such as "demographic_parity:human_driven"
CHANGEABLE = ("trials", "price")  # settings that may change when a search is continued
CHECKED = (
    "sampler",
    "trials",
    "batch",
    "episodes",
    "least_episodes",
    "precision",
    "prune",
    "finalists",
    "held_out",
    "flip",
    "seed",
)


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for a configuration.

    Raises:
        ValueError: The environment, policy, objective or sampler is unknown, a range is invalid, or a value is outside
            its range.
        TypeError: A parameter is unknown.
    """

    env_id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)  # fixed parameters of the environment
    ranges: Mapping[str, Any]  # search space of its parameters, see `fair_envs.search.ranges.range_of`
    objectives: Sequence[str] = ()  # the first one decides; empty: parity and the total return
    policy: str = "random"  # see `fair_envs.experiments.players.policy_named`
    sampler: SamplerName = "tpe"  # what proposes configurations
    trials: PositiveInt = 50  # configurations
    batch: PositiveInt = 8  # configurations that are proposed at once
    episodes: Annotated[int, Range(2, SEARCH_EACH // 8)] = 64  # maximum for a configuration
    least_episodes: Annotated[int, Range(2, SEARCH_EACH // 8)] = 16  # minimum for a configuration
    precision: NonNegative = 0.15  # sufficient standard errors, in standard deviations of the original configuration
    prune: bool = True  # whether to stop configurations that are significantly worse than another one
    finalists: PositiveInt = 5  # best ones in the first objective, played four times as long at the end
    price: UnitInterval | None = None  # largest share of the original's total return that may be lost; None: any
    held_out: Annotated[int, Range(2, SEARCH_EACH)] = 256  # episodes of the comparison with the original configuration
    flip: Flip = "protected"  # which agents are flipped in counterfactual worlds, see `systems.play_system`
    seed: Annotated[int, Range(0, 2**20 - 1)] = 0

    def __post_init__(self) -> None:
        """Check all settings before anything is played."""
        _check_kinds(vars(self))
        kinds = get_type_hints(type(self), include_extras=True)
        for name in CHECKED:
            object.__setattr__(self, name, checked(name, getattr(self, name), kinds[name]))
        if self.price is not None:
            object.__setattr__(self, "price", checked("price", self.price, UnitInterval))
        find(self.env_id)
        rules = self.rules()
        if not self.ranges:
            raise ValueError("ranges must name at least one parameter, got none")
        ranges = {name: str(range_of(name, one, self._kind(name, rules))) for name, one in sorted(self.ranges.items())}
        names = [objective_named(text, rules).name for text in self.objectives] or default_objectives(rules)
        if len(set(names)) < len(names):
            raise ValueError(f"objectives must differ, got {', '.join(names)}")
        if self.sampler == "cma-es" and len(names) > 1:
            raise ValueError(f"sampler 'cma-es' needs one objective, got {', '.join(names)}")
        if self.policy.endswith(".zip"):  # whoever reads the stored search would run the code in the file
            raise ValueError(f"policy must be a scripted policy, a function or a run, got {self.policy!r}")
        policy_named(self.policy, rules)
        plainly = {"parameters": plain(self.parameters), "policy": full_name(self.policy)}
        for name, value in {**plainly, "ranges": ranges, "objectives": tuple(names)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "least_episodes", min(self.least_episodes, self.episodes))
        for name, dimension in self.dimensions.items():
            check_drawable(name, dimension)
        several = [one for one in self.dimensions.values() if isinstance(one, Between) and one.low < one.high]
        if self.sampler == "cma-es" and not several:
            raise ValueError(f"sampler 'cma-es' needs a range of several numbers, got {', '.join(ranges)}")

    @cached_property
    def dimensions(self) -> dict[str, Dimension]:
        """The ranges."""
        rules = self.rules()
        return {name: range_of(name, text, self._kind(name, rules)) for name, text in self.ranges.items()}

    @cached_property
    def goals(self) -> tuple[Objective, ...]:
        """The objectives; the first one decides."""
        return tuple(Objective(name=name) for name in self.objectives)

    def losses(self, series: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the objectives' values from the numbers of some episodes, with signs such that smaller is better."""
        signs = [1.0 if goal.direction == "minimize" else -1.0 for goal in self.goals]
        return tuple(sign * goal.value(series[goal.name]) for sign, goal in zip(signs, self.goals, strict=True))

    @property
    def counterfactual(self) -> bool:
        """Whether an objective needs episodes without the attribute."""
        return any(goal.notion == "counterfactual_fairness" for goal in self.goals)

    @property
    def rounds(self) -> int:
        """Largest number of rounds in which a configuration is evaluated."""
        looks, until = 1, self.least_episodes
        while until < self.episodes:
            looks, until = looks + 1, 2 * until
        return looks

    @property
    def first_seed(self) -> int:
        """First seed of the episodes that every configuration plays."""
        return SEARCH_SEEDS + self.seed * SEARCH_EACH

    @property
    def first_held_out(self) -> int:
        """First seed of the episodes of the comparison."""
        return HELD_OUT_SEEDS + self.seed * SEARCH_EACH

    def rules(self, **changes: Any) -> Rules:
        """Return the rules of a configuration.

        Raises:
            ValueError: The configuration is invalid.
        """
        return make_rules(self.env_id, **{**self.parameters, **changes})

    def as_dict(self) -> dict[str, Any]:
        """Return all settings as plain data for JSON."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return own | {"objectives": list(self.objectives), "contents": contents(self.policy), "sources": sources()}

    def save(self, folder: Path) -> None:
        """Write all settings into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / KEPT, self.as_dict())

    @classmethod
    def read(cls, folder: Path) -> "Search":
        """Return the search of a folder.

        Raises:
            ValueError: The folder has no search, or the policy has changed since.
        """
        reported = cls.kept(folder)
        before, by = reported.pop("contents"), reported.pop("sources")
        if by != sources():
            raise ValueError(f"out must be the folder of a search by this version of fair-envs, got {folder}")
        refuse_stored_paths(reported, file=folder / KEPT, but=NEVER_IMPORTED)
        search = cls(**reported)
        if contents(search.policy) != before:
            raise ValueError(f"policy must be what it was when the search began, {search.policy!r} has changed")
        return search

    @classmethod
    def kept(cls, folder: Path) -> dict[str, Any]:
        """Return the unchanged content of the file that `save` has written into a folder.

        Raises:
            ValueError: The file does not exist, or is damaged.
        """
        path = folder / KEPT
        if not path.is_file():
            raise ValueError(f"out must be the folder of a search, got {folder} without {KEPT}")
        return read_record(path, names=(*(each.name for each in fields(cls)), "contents", "sources"))

    def again(self, **changes: Any) -> "Search":
        """Return the same search with another number of trials, or another price."""
        return replace(self, **changes)

    def _kind(self, name: str, rules: Rules) -> Any:
        """Return the type of a parameter."""
        kinds = get_type_hints(rules.Params, include_extras=True)
        if name not in kinds:
            raise TypeError(f"range must name one of {', '.join(sorted(kinds))}, got {name!r}{meant(name, kinds)}")
        if name in self.parameters:
            raise ValueError(f"{name} must have a value or a range, got both")
        return kinds[name]


def check_same(kept: Mapping[str, Any], search: Search, *, where: str) -> None:
    """Raise ValueError unless stored settings are those of the search that continues there."""
    now = json.loads(json.dumps(search.as_dict()))
    same = dict(kept)
    if now["contents"] and same.get("contents") == now["contents"]:
        same["policy"] = now["policy"]  # another machine has it in another folder
    for name, value in now.items():
        if name not in CHANGEABLE and same.get(name) != value:
            raise ValueError(
                f"{where} must be that of the same search, got another one: {name} is {kept.get(name)!r} there, "
                f"{value!r} here"
            )


def read_record(path: Path, *, names: Sequence[str]) -> dict[str, Any]:
    """Return the content of a JSON file with these names.

    Raises:
        ValueError: The file is damaged, or has other names.
    """
    reported = read_json(path, dict)
    if others := set(reported) ^ set(names):
        raise damaged(path, f"it must hold {', '.join(names)}; {', '.join(sorted(others))} is missing or unknown")
    return reported


def read_toml(path: Path) -> dict[str, Any]:
    """Return a search's settings from a TOML file, under the names of `Search`.

    Raises:
        ValueError: The file does not exist or is not TOML, or a setting is unknown or has the wrong type.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        reported: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"config must be a TOML file, got {path}: {error}") from error
    known = [each.name for each in fields(Search)]
    for name in reported:
        if name not in known:
            raise ValueError(f"config must set {', '.join(known)}, got {name}")
    _check_kinds(reported, where="config: ")
    refuse_stored_paths(reported, file=path, but=NEVER_IMPORTED)
    return reported


def _check_kinds(reported: Mapping[str, Any], *, where: str = "") -> None:
    """Raise ValueError if a setting that must be a text, a table or a list of texts is not."""
    for name in ("env_id", "policy"):
        if name in reported:
            checked(f"{where}{name}", reported[name], str)
    for name in ("parameters", "ranges"):
        if not isinstance(reported.get(name, {}), Mapping):
            raise ValueError(f"{where}{name} must be a table, got {reported[name]!r}")
    objectives = reported.get("objectives", ())
    if isinstance(objectives, str) or not isinstance(objectives, Sequence):
        raise ValueError(f"{where}objectives must be a list of texts, got {objectives!r}")
    checked(f"{where}objectives", objectives, Sequence[str])
