"""The registry of methods: what can be trained on which environments, and how runs are evaluated and played.

To add a method, write a module with its settings and a `Method`, and add the module to `MODULES`, or call `register`.
"""

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fair_envs.baselines.runs import Run
from fair_envs.core import Rules
from fair_envs.evaluation import Policy
from fair_envs.files import damaged
from fair_envs.imports import refuse_stored_paths
from fair_envs.parameters import meant
from fair_envs.progress import progress_bar
from fair_envs.registration import TABLE, make_rules
from fair_envs.reports import Report
from fair_envs.systems import play_system, report

MODULES = ("long_term_methods", "agent_methods", "pcn_methods", "team_methods")
"""The modules of this package that define ``METHODS``. Of two methods with one name, the first that supports an
environment trains on it."""


class Test(NamedTuple):
    """How a run is to be tested.

    Attributes:
        run: Its folder.
        episodes: How many test episodes.
        seed: Of the first one.
        parameters: Of the environment.
        changed: The names of those that differ from the training's because the user said so.
        progress: Whether to show a bar with the time left.
    """

    run: Path
    episodes: int
    seed: int
    parameters: Mapping[str, Any]
    changed: frozenset[str] = frozenset()
    progress: bool = False

    def about(self, settings: Any) -> dict[str, Any]:
        """Return what a report says about the test."""
        told = {"run": str(self.run), "episodes": self.episodes, "seed": self.seed, "parameters": self.parameters}
        return told | {"training": settings.as_dict()}


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of training.

    Attributes:
        name: Its name, which is the field ``algorithm`` of its settings.
        summary: One sentence about it.
        settings: A dataclass with the fields ``env_id``, ``parameters`` and ``algorithm``, further ones made with
            `fair_envs.parameters.setting`, and the method ``as_dict``. Creating it checks the values.
        train: ``train(settings, out=folder, resume=False, progress=False)`` trains into a run's folder and returns the
            model.
        load: ``load(folder)`` returns a run's model and settings.
        policy: ``policy(model, settings, rules)`` returns the trained policy; None: it cannot play by itself.
        evaluated: ``evaluated(model, settings, test)`` plays test episodes and returns a report; None: as
            `fair_envs.systems.report` measures any policy.
        unsupported: ``unsupported(env_id, rules, given)`` returns why an environment cannot be trained on with the
            settings that are given, or "".
        unused: Fields of the settings that mean nothing to this method.
        presets: What the presets are, by name; the first one is used where none is chosen.
        preset: ``preset(name, given)`` returns the settings of a preset for a training that is given so far.
    """

    name: str
    summary: str
    settings: type[Any]
    train: Callable[..., Any]
    load: Callable[[Path], tuple[Any, Any]]
    policy: Callable[[Any, Any, Rules], Policy] | None = None
    evaluated: Callable[[Any, Any, Test], Report] | None = None
    unsupported: Callable[[str, Rules, Mapping[str, Any]], str] = lambda env_id, rules, given: ""
    unused: frozenset[str] = frozenset()
    presets: Mapping[str, str] = field(default_factory=dict)
    preset: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] | None = None

    def fields(self) -> Iterator[dataclasses.Field[Any]]:
        """Yield the settings that have a meaning for this method, but for the environment and the method itself."""
        for one in dataclasses.fields(self.settings):
            if "help" in one.metadata and one.name not in self.unused:
                yield one

    def evaluate(self, model: Any, settings: Any, test: Test) -> Report:
        """Play test episodes of a trained model and return a report."""
        if self.evaluated is not None:
            return self.evaluated(model, settings, test)
        rules = make_rules(settings.env_id, **test.parameters)
        if self.policy is None:
            raise ValueError(f"method must have a policy or its own evaluation, got {self.name!r} with neither")
        policy, lanes = self.policy(model, settings, rules), min(64, test.episodes)
        with progress_bar("playing", total=-(-test.episodes // lanes), shown=test.progress) as each:
            found = play_system(rules, policy, episodes=test.episodes, seed=test.seed, lanes=lanes, each=each)
        return report({self.name: found}, about=test.about(settings))

    def configured(self, given: Mapping[str, Any], *, preset: str | None = None) -> Any:
        """Return the settings of a training, with those of a preset where nothing is given.

        Raises:
            ValueError: A value outside its range, or an unknown preset.
        """
        values: Mapping[str, Any] = {}
        if self.preset is not None:
            values = self.preset(preset or next(iter(self.presets)), given)
        own = {name: values[name] for name in ("parameters",) if name in values}  # it holds the given ones too
        return self.settings(**{**values, **given, **own})


_registered: list[Method] = []


def register(method: Method) -> Method:
    """Add a method to those that the command line and `method_for` find, and return it.

    Raises:
        ValueError: Another method has the name.
    """
    if method.name in names():
        raise ValueError(f"name must be new, got {method.name!r}, which is a method already")
    _registered.append(method)
    return method


def methods() -> list[Method]:
    """Return all methods."""
    modules = (importlib.import_module(f"fair_envs.baselines.{name}") for name in MODULES)
    return [method for module in modules for method in module.METHODS] + _registered


def names() -> list[str]:
    """Return the names of the methods."""
    return sorted({method.name for method in methods()})


def named(name: str) -> list[Method]:
    """Return the methods with a name: one, or one for each kind of environment.

    Raises:
        ValueError: There is none.
    """
    found = [method for method in methods() if method.name == name]
    if not found:
        known = names()
        raise ValueError(f"method must be one of {', '.join(known)}, got {name!r}{meant(name, known)}")
    return found


def method_for(name: str, env_id: str, given: Mapping[str, Any] | None = None) -> Method:
    """Return the method of a name that trains on an environment.

    Args:
        name: Of the method.
        env_id: The environment's.
        given: The settings that are given, ``parameters`` among them.

    Raises:
        ValueError: There is no such method or environment, or the method does not support the environment.
    """
    settings = given or {}
    rules = make_rules(env_id, **settings.get("parameters", {}))
    reasons = []
    for method in named(name):
        why = method.unsupported(env_id, rules, settings)
        if not why:
            return method
        reasons.append(why)
    others = sorted({one.name for one in methods() if not one.unsupported(env_id, rules, {})})
    tried = f"try {', '.join(others)}" if others else "no method supports it"
    raise ValueError(f"method must support {env_id}, got {name!r}, which {'; or '.join(reasons)}: {tried}")


def method_of(run: Path) -> Method:
    """Return the method that a run was trained with.

    Raises:
        FileNotFoundError: There is no run.
        ValueError: Its settings are damaged.
    """
    Run.check_begun(run)
    kept = Run(run).config()
    name, env_id = kept.get("algorithm"), kept.get("env_id")
    if not isinstance(name, str) or name not in names():
        raise damaged(run / "config.json", f"it names the unknown algorithm {name!r}")
    if not isinstance(env_id, str):
        raise damaged(run / "config.json", f"it names the environment {env_id!r}")
    refuse_stored_paths(kept, file=run / "config.json")  # before anything is made of them
    several = named(name)
    if len(several) > 1:
        with suppress(ValueError):
            return method_for(name, env_id, kept)
    return several[-1]


def supported() -> Iterator[tuple[Method, dict[str, str]]]:
    """Yield every method, with the reason why it does not support an environment, or "", by the environment's id."""
    rules = {env_id: make_rules(env_id) for env_id in TABLE}
    for method in methods():
        yield method, {env_id: method.unsupported(env_id, own, {}) for env_id, own in rules.items()}
