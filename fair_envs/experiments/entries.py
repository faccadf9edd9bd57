"""What a comparison is given: folders of runs, and files with stored evaluations of runs and other policies."""

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fair_envs.assessment import Evaluation
from fair_envs.assessment.policies import Kind, seeds_in, training_of_run
from fair_envs.assessment.result import read
from fair_envs.registration import TABLE
from fair_envs.support.imports import refuse_stored_paths
from fair_envs.tasks import parameters_of, rules_for

STORED = ("task", "kind", "episodes", "seed", "shuffles", "level", "parameters")
"""What `fair_envs.evaluate` says about each evaluation."""

OF_RUNS = ("checkpoint.pt", "config.json", "metrics.csv", "metrics.json", "task.json", "versions.json")
OF_COMPARISONS = ("comparison.csv", "comparison.json", "comparison.md")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A run to evaluate, or a stored evaluation.

    Attributes:
        path: The folder of the run, or the file of the evaluation.
        env_id: The environment.
        parameters: Its parameters: those of the training; for a stored evaluation, those in which it was made.
        kind: Whether the policy was trained.
        training: The ``method``, the ``seed`` and the other ``settings`` of a run; empty for other policies.
        evaluation: The stored evaluation; None: the run must be evaluated.
    """

    path: Path
    env_id: str
    parameters: Mapping[str, Any]
    kind: Kind
    training: Mapping[str, Any]
    evaluation: Evaluation | None = None

    def __str__(self) -> str:
        """Return whose entry it is, for messages."""
        if not self.training:
            return self.evaluation.policy if self.evaluation is not None else str(self.path)
        return f"{self.training['method']} with seed {self.training['seed']}"


def entries_of(given: Sequence[Path | str | Evaluation]) -> list[Entry]:
    """Return the runs and the evaluations in some folders and files; a policy that was not trained is returned once.

    Raises:
        FileNotFoundError: A path is neither the folder of a run nor a file.
        ValueError: There is none, one is damaged, or they are of different environments.
        TypeError: Something is neither a path nor an evaluation.
    """
    if isinstance(given, str | Path | Evaluation):
        raise ValueError(f"runs must be a list of folders, files of evaluations or evaluations, got {str(given)!r}")
    given = list(given)
    for one in given:
        if not isinstance(one, str | Path | Evaluation):
            raise TypeError(
                "runs must be folders of runs, evaluations, or files of them, such as the evaluation.json of "
                f"Evaluation.save, got {type(one).__name__}; save a model and give its zip in policies=['model.zip']"
            )
    if not given:
        raise ValueError("runs must have at least one folder, file of evaluations or evaluation, got none")
    found: list[Entry] = []
    for one in given:
        if isinstance(one, Evaluation):
            found.append(_stored(one, Path(one.policy)))
    for path in dict.fromkeys(Path(one) for one in given if isinstance(one, str | Path)):
        found += _of_file(path) if path.is_file() else [_of_folder(own) for own in seeds_in(path) or [path]]
    names = list(dict.fromkeys(one.env_id for one in found))
    if len(names) > 1:
        raise ValueError(f"runs must be of one environment, got {', '.join(names)}; compare each environment alone")
    return list(_once(found))


def _once(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield entries without repeated scripted and random policies, which are often stored beside each run."""
    known = set()
    for one in entries:
        if one.kind == "trained" or str(one) not in known:
            known.add(str(one))
            yield one


def _of_folder(folder: Path) -> Entry:
    if not (folder / "config.json").is_file():
        stored = [folder / name for name in ("evaluation.json", "evaluations.json") if (folder / name).is_file()]
        why = "which does not exist" if not folder.exists() else f"use {stored[0]}" if stored else "which has none"
        raise FileNotFoundError(
            "RUN must be the folder of a run, with a config.json, or a file of evaluations, such as evaluation.json, "
            f"got {str(folder)!r}{';' if stored else ','} {why}"
        )
    training = training_of_run(folder)
    settings = training["settings"]
    env_id, parameters = str(settings.get("env_id")), settings.get("parameters", {})
    return Entry(path=folder, env_id=env_id, parameters=parameters, kind="trained", training=training)


def _of_file(file: Path) -> list[Entry]:
    if file.name in OF_RUNS and (file.parent / "config.json").is_file():
        raise ValueError(
            f"RUN must be the folder of a run or a file of evaluations, got {str(file)!r}, a file of a run; use its "
            f"folder, {file.parent}"
        )
    if file.suffix == ".zip":
        raise ValueError(
            f"RUN must be the folder of a run or a file of evaluations, got {str(file)!r}, a model; evaluate it first, "
            f"and compare what is saved: fair-envs evaluate ID --policy {file} --out FOLDER"
        )
    if file.name in OF_COMPARISONS:
        raise ValueError(
            f"RUN must be the folder of a run or a file of evaluations, got {str(file)!r}, a table; use "
            f"{file.parent / 'evaluations.json'}"
        )
    return [_stored(one, file) for one in read(file)]


def _stored(one: Evaluation, file: Path) -> Entry:
    about, training = one.about, one.about.get("run", {})
    missing = [name for name in STORED if name not in about]
    if missing or not isinstance(training, Mapping):
        raise ValueError(
            f"{file} must say what was evaluated, got one of {one.policy!r} without "
            f"{missing[0] if missing else 'the settings of its run'}, from an older version; evaluate it again with: "
            "fair-envs evaluate"
        )
    refuse_stored_paths({"env_id": one.env_id, **{name: about[name] for name in ("task", "parameters")}}, file=file)
    return Entry(
        path=file,
        env_id=one.env_id,
        parameters=about["parameters"],
        kind=about["kind"],
        training=training,
        evaluation=one,
    )


def agreed(entries: Sequence[Entry], name: str, given: Any, default: Any) -> Any:
    """Return a number or a task with which all evaluations are made: the given one, or that of the stored evaluations.

    Args:
        entries: Runs and stored evaluations.
        name: What ``about`` calls it.
        given: What the user wants; None: that of the stored evaluations.
        default: What is used if there are none.

    Raises:
        ValueError: A stored evaluation was made with another one.
    """
    wanted = given
    for one in entries:
        if one.evaluation is None:
            continue
        own = one.evaluation.about[name]
        wanted = own if wanted is None else wanted
        if own != wanted:
            others = "as asked for" if given is not None else "as the other evaluations"
            raise ValueError(
                f"{one.path} must be made with {name}={wanted!r}, {others}, got {name}={own!r} of {one}; evaluate it "
                "again, or leave it out"
            )
    return default if wanted is None else wanted


def check_parameters(entries: Sequence[Entry], parameters: Mapping[str, Any]) -> None:
    """Raise ValueError if a stored evaluation was made with other parameters than the given ones."""
    for one in entries:
        for name, value in parameters.items() if one.evaluation is not None else ():
            own = one.parameters.get(name, default_of(one.env_id, name))
            if _plain(own) != _plain(value):
                raise ValueError(
                    f"{one.path} must be made with {name}={value}, got {own} of {one}; evaluate it again, or leave "
                    "the parameter out"
                )


def _plain(value: Any) -> Any:
    """Return a value as a file of JSON keeps it, if it can."""
    return json.loads(json.dumps(value, default=str))


def default_of(env_id: str, name: str) -> Any:
    """Return the default of a parameter, or words for it if it is unknown."""
    if env_id in TABLE:
        return getattr(rules_for(env_id).params, name, "its default")
    return (parameters_of(env_id) or {}).get(name, "its default")


def labels_of(entries: Sequence[Entry]) -> list[str]:
    """Return the name of each entry: a run's method, with the settings that it uses and in which its runs differ.

    Raises:
        ValueError: There is a training twice.
    """
    labels = []
    for one in entries:
        if not one.training:
            labels.append(str(one))
            continue
        method = one.training["method"]
        same = [other.training["settings"] for other in entries if other.training.get("method") == method]
        names = {name for own in same for name in own}
        newer = {name for own in same for name in names - own.keys()}  # settings that did not exist for some run
        defaults = _defaults_of(method, newer) if newer else {}
        same = [{**defaults, **own} for own in same]
        settings = {**defaults, **one.training["settings"]}
        differ = sorted(name for name in names if any(own.get(name) != same[0].get(name) for own in same))
        differ = [name for name in differ if name not in _unused_by(method)] if differ else []
        told = ", ".join(f"{name}={'default' if (own := settings.get(name)) == '' else own}" for name in differ)
        labels.append(f"{method} ({told})" if told else method)
    _check_once(entries, labels)
    return labels


def _defaults_of(method: str, names: Collection[str]) -> dict[str, Any]:
    """Return the defaults of some of a method's settings, which older runs had; empty for an unknown method."""
    from fair_envs.baselines import methods

    if method not in methods.names():
        return {}
    fields = (one for one in dataclasses.fields(methods.named(method).settings) if one.name in names)
    found = {one.name: one.default for one in fields if one.default is not dataclasses.MISSING}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}  # as in JSON


def _unused_by(method: str) -> Collection[str]:
    """Return the settings that a method has but does not use; none of an unknown method."""
    from fair_envs.baselines import methods

    return methods.named(method).unused if method in methods.names() else ()


def _check_once(entries: Sequence[Entry], labels: Sequence[str]) -> None:
    paths: dict[tuple[str, Any], list[str]] = {}
    for label, one in zip(labels, entries, strict=True):
        if one.training:
            paths.setdefault((label, one.training["seed"]), []).append(str(one.path))
    for (label, seed), twice in paths.items():
        if len(twice) > 1:
            raise ValueError(
                f"runs must have {label} with seed {seed} once, got it {len(twice)} times; leave all but one of these "
                f"out: {', '.join(twice)}"
            )


def differences(entries: Sequence[Entry], evaluated: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note for each parameter of the environment in which trainings or evaluations differ.

    Args:
        entries: Runs and stored evaluations.
        evaluated: The parameters in which each of them is evaluated.
    """
    yield from notes_on(evaluated)
    in_tests = dict(_different(evaluated))
    for name, values in _different([one.training["settings"].get("parameters", {}) for one in entries if one.training]):
        if name not in in_tests:
            yield f"The runs were trained with different values of the environment's {name} ({values})."


def notes_on(evaluated: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note for each parameter of the environment in which evaluations differ."""
    for name, values in _different(evaluated):
        yield (
            f"The evaluations differ in the environment's {name} ({values}): runs are evaluated as they were trained, "
            "so differences may be due to that."
        )


def _different(parameters: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for name in sorted({name for own in parameters for name in own}):
        values = list(dict.fromkeys(str(own.get(name, "default")) for own in parameters))
        if len(values) > 1:
            yield name, ", ".join(values)
