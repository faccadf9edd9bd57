"""Registry of methods: their supported environments, training, evaluation and policies.

To add a method, write a module with its settings and a `Method`, and add the module to `MODULES`, or call `register`.
"""

import dataclasses
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from fair_envs.baselines.runs import Run
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.evaluation.reports import Report
from fair_envs.registration import TABLE
from fair_envs.support.files import damaged
from fair_envs.support.imports import refuse_stored_paths
from fair_envs.support.parameters import meant
from fair_envs.tasks import AnyRules, task_of

MODULES = (
    "ppo.methods",
    "ppo.objective_methods",
    "ppo.long_term_methods",
    "ppo.cpo_methods",
    "pcn.methods",
    "team.methods",
)
"""The modules of this package that define ``METHODS``."""

SUGGESTED = 6  # methods that an error suggests at most, beginning with those with the same settings


class Test(NamedTuple):
    """Settings of a test of a run.

    Attributes:
        run: The run's folder.
        episodes: Number of test episodes.
        seed: Seed of the first episode.
        parameters: Parameters of the environment.
        changed: Names of the parameters that the user changed from those of the training.
        progress: Whether to show a progress bar with the remaining time.
    """

    run: Path
    episodes: int
    seed: int
    parameters: Mapping[str, Any]
    changed: frozenset[str] = frozenset()
    progress: bool = False

    def about(self, settings: Any) -> dict[str, Any]:
        """Return the information about the test for a report."""
        reported = {"run": str(self.run), "episodes": self.episodes, "seed": self.seed, "parameters": self.parameters}
        return reported | {"training": settings.as_dict()}


class Strength(NamedTuple):
    """The knob of a method: how much it favours fairness.

    Attributes:
        settings: Names of the settings that have the value.
        values: Values from weak to strong, the same for every environment. If the setting is a `Tolerance`, they are
            parts of what the method has without it.
    """

    settings: tuple[str, ...]
    values: tuple[float, ...]

    def given(self, value: float) -> dict[str, float]:
        """Return the settings with a value."""
        return dict.fromkeys(self.settings, value)

    def spread(self, count: int) -> list[float]:
        """Return so many of the values, spread from the weakest to the strongest, the weaker ones more densely."""
        count, last = min(count, len(self.values)), len(self.values) - 1
        return [self.values[k * last // max(1, count - 1)] for k in range(count)]


SHARES = (0.75, 0.5, 0.25, 0.1)
"""Strengths of methods whose knob is a limit: parts of what the method has without it."""

UNLIMITED = 1e6  # a limit that no measure reaches
STILL = 1e-12  # a step that changes nothing


class Tolerance(NamedTuple):
    """A setting that is in the unit of a measure, which differs between environments.

    Attributes:
        setting: Name of the setting.
        column: The metric of a training with the mean of the measure in a rollout.
        method: The method whose training has this metric.
        off: Settings with which that method maximises the reward only.
        frozen: Settings with which it does not learn.
        share: The tolerance of methods with another knob, as a part of what the method has without it.
        gains: Settings that are multiplied with the measure, so that they are larger where it is smaller.
    """

    setting: str
    column: str
    method: str
    off: Mapping[str, float]
    frozen: Mapping[str, float]
    share: float = 0.5
    gains: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of training.

    Attributes:
        name: Name of the method, which is the field ``algorithm`` of its settings.
        summary: One sentence that describes the method.
        settings: A subclass of `fair_envs.baselines.settings.MethodSettings`, with further fields made with
            `fair_envs.support.parameters.setting`.
        train: ``train(settings, out=folder, resume=False, progress=False)`` trains, writes a run's folder and returns
            the model.
        load: ``load(folder)`` returns a run's model and settings.
        make: ``make(settings)`` returns the untrained learner, a `fair_envs.baselines.PPO`; None: several seeds cannot
            be trained together, see `fair_envs.baselines.train_together`.
        policy: ``policy(model, settings, rules)`` returns the trained policy; None: the model is not a policy.
        evaluated: ``evaluated(model, settings, test)`` plays test episodes and returns a report of what
            `fair_envs.evaluate` does not measure, or None; it may be left out for a method with a policy.
        unsupported: ``unsupported(env_id, rules, given)`` returns why an environment is not supported with the given
            settings, or "", see `reason`.
        own: Whether the method trains on environments that are registered only with Gymnasium.
        strength: Its knob; None: it has none.
        tolerance: Its setting in the unit of a measure; None: it has none.
        trains_on: ``trains_on(env_id, rules, given)`` returns what it learns from besides the reward, in a few words;
            "": from nothing else.
        equals: ``equals(env_id, rules)`` returns the name of another method that gives the same policy there, or "".
        least: ``least(rules, given)`` returns the number of steps with which a training has updated its policy a few
            times.
        counts_agents: Whether its steps are those of single agents; otherwise they are those of environments.
        unused: Fields of the settings that this method does not use.
        note: ``note(rows)`` returns what to know about a finished training with these rows of metrics, or "".
        presets: Descriptions of the presets by name; the first preset is the default.
        preset_sets: Settings that presets choose, so that their defaults say little.
        preset: ``preset(name, given)`` returns the settings of a preset for the settings given so far.
    """

    name: str
    summary: str
    settings: type[Any]
    train: Callable[..., Any]
    load: Callable[[Path], tuple[Any, Any]]
    make: Callable[[Any], Any] | None = None
    policy: Callable[[Any, Any, Any], Policy] | None = None
    evaluated: Callable[[Any, Any, Test], Report | None] | None = None
    unsupported: Callable[[str, Any, Mapping[str, Any]], str] = lambda env_id, rules, given: ""
    own: bool = False
    strength: Strength | None = None
    tolerance: Tolerance | None = None
    trains_on: Callable[[str, Any, Mapping[str, Any]], str] = lambda env_id, rules, given: ""
    equals: Callable[[str, Any], str] = lambda env_id, rules: ""
    least: Callable[[Any, Mapping[str, Any]], int] = lambda rules, given: 1
    counts_agents: bool = True
    unused: frozenset[str] = frozenset()
    note: Callable[[Sequence[Mapping[str, Any]]], str] = lambda rows: ""
    presets: Mapping[str, str] = field(default_factory=dict)
    preset_sets: frozenset[str] = frozenset()
    preset: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if trained models cannot be evaluated."""
        if self.policy is None and self.evaluated is None:
            raise ValueError(f"policy or evaluated must be given, got neither for the method {self.name!r}")

    def reason(self, env_id: str, rules: AnyRules, given: Mapping[str, Any]) -> str:
        """Return why an environment is not supported with the given settings, or "".

        Args:
            env_id: Id of the environment.
            rules: The rules of the environment.
            given: The given settings, including ``parameters``.
        """
        if not isinstance(rules, Rules):
            if not self.own:
                return "needs an environment of fair_envs.register"
            space = rules.observation_space(None)
            if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
                kind = type(space).__name__
                return f"needs observations in one array, and they are in a {kind}: wrap it in FlattenObservation"
            return self.unsupported(env_id, rules, given)
        return self.unsupported(env_id, rules, given)

    def plays(self, env_id: str, rules: AnyRules, given: Mapping[str, Any]) -> bool:
        """Return whether the method trains a policy on the environment with the given settings, see `reason`."""
        return self.policy is not None and not self.reason(env_id, rules, given)

    def fields(self) -> Iterator[dataclasses.Field[Any]]:
        """Yield the settings that this method uses, except the environment and the method itself."""
        for one in dataclasses.fields(self.settings):
            if "help" in one.metadata and one.name not in self.unused:
                yield one

    def configured(self, given: Mapping[str, Any], *, preset: str | None = None) -> Any:
        """Return the settings of a training, completed from a preset; without presets, the parameters are the task's.

        Args:
            given: The settings by name; ``algorithm``, the method's name, may be left out.
            preset: Name of the preset; None: the first one.

        Raises:
            TypeError: A setting is unknown, or there is no ``env_id``.
            ValueError: A value is outside its range, the preset is unknown, or the settings are another method's.
        """
        fields = [one.name for one in dataclasses.fields(self.settings)]
        for name in given:
            if name not in fields:
                hint = meant(name, fields) or f"; they are {', '.join(fields)}"
                raise TypeError(f"given must hold settings of {self.name}, got {name!r}{hint}")
        if "env_id" not in given:
            raise TypeError(f"given must hold env_id, the id of an environment, got {', '.join(given) or 'nothing'}")
        given = {"algorithm": self.name, **given}
        if given["algorithm"] != self.name:
            raise ValueError(f"algorithm must be {self.name!r} or left out, got {given['algorithm']!r}")
        values: Mapping[str, Any]
        if self.preset is not None:
            values = self.preset(preset or next(iter(self.presets)), given)
        else:
            values = {"parameters": task_of(given["env_id"]).merged(given.get("parameters", {}))}
        own = {name: values[name] for name in ("parameters",) if name in values}  # includes the given parameters
        return self.settings(**{**values, **given, **own})


_registered: list[Method] = []


def register(method: Method) -> Method:
    """Register a method for the command line and `method_for`, and return it.

    Raises:
        ValueError: Another method has the same name.
    """
    if method.name in names():
        raise ValueError(f"name must be new, got {method.name!r}, which is already a method")
    _registered.append(method)
    return method


def methods() -> list[Method]:
    """Return all methods."""
    modules = (importlib.import_module(f"fair_envs.baselines.{name}") for name in MODULES)
    return [method for module in modules for method in module.METHODS] + _registered


def names() -> list[str]:
    """Return the names of the methods."""
    return sorted({method.name for method in methods()})


def named(name: str) -> Method:
    """Return the method with a name.

    Raises:
        ValueError: There is no such method.
    """
    for method in methods():
        if method.name == name:
            return method
    known = names()
    raise ValueError(f"method must be one of {', '.join(known)}, got {name!r}{meant(name, known)}")


def method_for(name: str, env_id: str, given: Mapping[str, Any] | None = None) -> Method:
    """Return the method with a name if it supports an environment.

    Args:
        name: Name of the method.
        env_id: Id of the environment.
        given: The given settings, including ``parameters``.

    Raises:
        ValueError: There is no such method or environment, or the method does not support the environment.
    """
    settings, method = given or {}, named(name)
    rules = task_of(env_id).rules(**settings.get("parameters", {}))
    why = method.reason(env_id, rules, settings)
    if not why:
        return method
    others = [one for one in methods() if not one.reason(env_id, rules, settings)]
    related = sorted(others, key=lambda one: one.settings is not method.settings)[:SUGGESTED]
    tried = f"try {', '.join(one.name for one in related)}" if related else "no method supports it"
    tried += "; see all with: fair-envs show methods" if len(others) > SUGGESTED else ""
    raise ValueError(f"method must support {env_id}, got {name!r}, which {why}; {tried}")


def method_of(run: Path) -> Method:
    """Return the method with which a run was trained.

    Raises:
        FileNotFoundError: There is no run.
        ValueError: The run's settings are damaged.
    """
    Run.check_begun(run)
    kept = Run(run).config()
    name, env_id = kept.get("algorithm"), kept.get("env_id")
    if not isinstance(name, str) or not isinstance(env_id, str):
        raise damaged(run / "config.json", f"it names the method {name!r} and the environment {env_id!r}")
    refuse_stored_paths(kept, file=run / "config.json")  # before they are used
    if name not in names():
        raise _unregistered(run, f"with the method {name!r}")
    if env_id not in TABLE and env_id not in gym.registry:
        raise _unregistered(run, f"on {env_id!r}")
    return named(name)


def _unregistered(run: Path, how: str) -> ValueError:
    return ValueError(
        f"{run} was trained {how}, which is not registered; import the module that registers it, in Python or with: "
        "fair-envs --import MODULE"
    )


def supported(env_ids: Iterable[str] | None = None) -> Iterator[tuple[Method, dict[str, str]]]:
    """Yield every method with, for each environment's id, the reason why it is not supported, or "".

    Args:
        env_ids: The ids; None: the environments of this package.
    """
    rules = {env_id: task_of(env_id).rules() for env_id in (TABLE if env_ids is None else env_ids)}
    for method in methods():
        yield method, {env_id: method.reason(env_id, own, {}) for env_id, own in rules.items()}
