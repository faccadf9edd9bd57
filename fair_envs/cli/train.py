"""The command ``train``: a subcommand for each method, with an option for each of its settings."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from fair_envs.cli.app import app
from fair_envs.cli.shared import (
    ID_HELP,
    Folder,
    Param,
    Resume,
    ShowProgress,
    environment_parameters,
    imported_id,
    new_path,
    resumable,
    trusting_program,
)
from fair_envs.support.files import read_json
from fair_envs.support.parameters import checked, value_of

Seeds = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Train N seeds at once, beginning with --seed, in the folders seed-K of --out: faster than one after "
        "another, with the same results. Each takes --steps.",
    ),
]
"""Number of trainings that share their rollouts."""

FIRST_NAMES = {"steps": "--total-timesteps", "lanes": "--n-envs"}
"""Alternative option names, known from other libraries, by setting; the setting's own name works too."""


class Methods(TyperGroup):
    """The methods as commands, with one option per setting; they are loaded when needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the methods' names."""
        from fair_envs.baselines import methods

        return methods.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command that trains a method.

        Raises:
            ValueError: The method is unknown.
        """
        from fair_envs.baselines import methods

        return typer.main.get_command(method_app(methods.named(cmd_name)))


training = typer.Typer(cls=Methods, rich_markup_mode=None, no_args_is_help=False)


app.add_typer(training, name="train")


@training.callback(invoke_without_command=True)
def train(ctx: typer.Context, out: Folder = None, resume: Resume = False, progress: ShowProgress = True) -> None:
    """Train a method: fair-envs train METHOD ID. Each method has its own options: fair-envs train METHOD --help.

    Continue an interrupted training: fair-envs train --out RUN --resume
    """
    if ctx.invoked_subcommand is not None:
        if resume or out is not None:
            raise ValueError("out and resume must be given after the method, as in: fair-envs train ppo ID --out RUN")
        return
    if not resume:
        raise ValueError("METHOD and ID must be given, as in: fair-envs train ppo FairHarvest-v0")
    start_training(None, None, None, out=out, resume=True, progress=progress, preset=None, texts={})


def method_app(method: Any) -> typer.Typer:
    """Return the command of a method, with an option for each of its settings."""

    def command(
        env_id: Annotated[str | None, typer.Argument(metavar="ID", help=ID_HELP)] = None,
        param: Param = None,
        out: Folder = None,
        resume: Resume = False,
        progress: ShowProgress = True,
        seeds: Seeds = 1,
        **given: Any,
    ) -> None:
        preset = given.pop("preset", None)
        start_training(
            method.name,
            env_id,
            param,
            out=out,
            resume=resume,
            progress=progress,
            seeds=seeds,
            preset=preset,
            texts=given,
        )

    left_out = {"given"} if method.make else {"given", "seeds"}
    shared = [one for one in inspect.signature(command).parameters.values() if one.name not in left_out]
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in setting_options(method).items()
    ]
    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shared]
    command.__doc__, command.__annotations__ = method.summary, {}
    command.__signature__ = inspect.Signature([*keywords, *own])  # type: ignore[attr-defined]
    single = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    single.command(method.name)(command)
    return single


def setting_options(method: Any) -> dict[str, Any]:
    """Return the annotations of the options for a method's settings and presets."""
    kinds = get_type_hints(method.settings, include_extras=True)
    options: dict[str, Any] = {
        one.name: option(
            one.name,
            kinds[one.name],
            one.metadata["help"],
            "the preset decides" if one.name in method.preset_sets else default_text(one.default),
        )
        for one in method.fields()
        if one.name not in UNASKED
    }
    if method.presets:
        first, *_ = method.presets
        reported = "; ".join(f"{name}: {meaning}" for name, meaning in method.presets.items())
        help_ = f"Default settings; other options override them. {reported}. [{first}]"
        options["preset"] = Annotated[str | None, typer.Option(metavar="|".join(method.presets), help=help_)]
    return options


def default_text(default: Any) -> str:
    """Return a default as it is written on the command line."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ",".join(map(str, default)) if isinstance(default, (list, tuple)) else str(default)


UNASKED = ("worlds",)  # settings without a command-line option


def option_names(name: str) -> list[str]:
    """Return the names of a setting's option, the usual one first."""
    return [*([FIRST_NAMES[name]] if name in FIRST_NAMES else []), f"--{name.replace('_', '-')}"]


def option(name: str, kind: Any, meaning: str, default: str) -> Any:
    """Return the annotation of an option; its text is parsed by `value_of`, so the field's type validates it."""
    from fair_envs.cli.pages import choices_of, spelled

    names = option_names(name)
    if kind is bool:
        return Annotated[bool | None, typer.Option(f"{names[0]}/--no{names[0][1:]}", help=f"{meaning} [{default}]")]
    choices = choices_of(kind)
    limits = "; ".join(filter(None, (default, "" if choices else spelled(kind))))
    metavar = "|".join(choices) or "VALUE"
    return Annotated[str | None, typer.Option(*names, help=f"{meaning} [{limits}]", metavar=metavar)]


def start_training(
    name: str | None,
    env_id: str | None,
    param: Sequence[str] | None,
    *,
    out: Path | None,
    resume: bool,
    progress: bool,
    preset: str | None,
    texts: Mapping[str, Any],
    seeds: int = 1,
) -> None:
    """Start a training, or resume one with its stored settings unless others are given; or several at once.

    Raises:
        ValueError: Something is missing, invalid or does not match the run.
    """
    from fair_envs.assessment.policies import seeds_in
    from fair_envs.baselines import methods
    from fair_envs.baselines.runs import Run

    stated = {"algorithm": name, "env_id": env_id and imported_id(env_id, own=True)}
    given: dict[str, Any] = {field: value for field, value in stated.items() if value is not None}
    texts = {field: text for field, text in texts.items() if text is not None}
    seeded = [] if not resume or out is None else seeds_in(out)
    stored = resume and not (seeded and name is not None and seeds > 1)  # otherwise the command has been repeated
    if resume and out is None:
        raise ValueError("out must name the folder of the run to resume, got none")
    if stored and out is not None:
        first = seeded[0] if seeded else out
        if preset is not None:
            raise ValueError(f"preset must be left out when a run is resumed, it keeps its settings; got {preset!r}")
        method = methods.method_of(first)
        given = Run(first).settings(method.settings).as_dict() | given
    if "env_id" not in given:
        raise ValueError(f"ID must be given, as in: fair-envs train {name} FairHarvest-v0")
    if param is not None:
        given["parameters"] = environment_parameters(given["env_id"], param)
    if not stored:
        method = methods.method_for(given["algorithm"], given["env_id"], {**texts, **given})
    if preset is not None and not method.presets:
        raise ValueError(f"--preset must be left out for {method.name} on {given['env_id']}, got {preset}")
    with naming_options(method):
        given |= read_settings(method, given["env_id"], texts)
        config = method.settings(**given) if stored else method.configured(given, preset=preset)
        if seeds > 1 or seeded:
            start_together(method, config, max(seeds, len(seeded)), out=out, resume=resume, progress=progress)
            return
        folder = out if resume and out else new_path(out, stem=f"{config.algorithm}-{config.env_id}")
        program = trusting_program(config.as_dict())
        complete = resume and Run(folder).logged_steps() >= config.steps
        with resumable(f"{program} train --out {folder} --resume", begun=folder / "config.json"):
            method.train(config, out=folder, resume=resume, progress=progress)
    for note in notes_on(method, config, folder):
        typer.echo(note)
    done = f"{folder} is already complete" if complete else f"saved {folder}"
    typer.echo(f"{done}; measure it with: {program} evaluate {folder}")


def start_together(method: Any, config: Any, seeds: int, *, out: Path | None, resume: bool, progress: bool) -> None:
    """Train several seeds at once, in the folders ``seed-K`` of a folder; `config` has the first seed.

    Raises:
        ValueError: The folder exists and ``resume`` is False, or the trainings cannot be trained together.
    """
    from fair_envs.baselines.together import train_together

    folder = out if resume and out else new_path(out, stem=f"{config.algorithm}-{config.env_id}")
    try:
        configs = [dataclasses.replace(config, seed=config.seed + k) for k in range(seeds)]
    except ValueError as error:
        raise ValueError(
            f"seeds must be so few that all are valid, got {seeds} from {config.seed} on: {error}"
        ) from error
    folders = [folder / f"seed-{own.seed}" for own in configs]
    program = trusting_program(config.as_dict())
    with resumable(f"{program} train --out {folder} --resume", begun=folders[-1] / "config.json"):
        train_together(configs, outs=folders, resume=resume, progress=progress)
    found = [note for own, path in zip(configs, folders, strict=True) for note in notes_on(method, own, path)]
    for note in dict.fromkeys(found):
        typer.echo(note)
    typer.echo(f"saved {seeds} runs in {folder}; compare them with: {program} compare {folder}")


def notes_on(method: Any, config: Any, folder: Path) -> Iterator[str]:
    """Yield what to know about a finished training."""
    from fair_envs.baselines.runs import Run

    taken = Run(folder).logged_steps()
    if taken >= 2 * config.steps:
        yield (
            f"note: {taken:,} steps were taken instead of {config.steps:,}: a training has whole iterations, and one "
            f"of {method.name} is longer with these settings (episodes, lanes, steps of a rollout)"
        )
    metrics = folder / "metrics.json"
    if metrics.is_file() and (note := method.note(read_json(metrics, list))):
        yield f"note: {note}"


@contextmanager
def naming_options(method: Any) -> Iterator[None]:
    """Name the option instead of the setting at the beginning of an error, because that is what was typed."""
    try:
        yield
    except ValueError as error:
        name, must, rest = str(error).partition(" must ")
        if not must or name not in {one.name for one in method.fields()}:
            raise
        raise ValueError(f"{' or '.join(option_names(name))} must {rest}") from error


def read_settings(method: Any, env_id: str, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings, converted to their types and checked.

    Raises:
        ValueError: The method does not have a setting, or its field's type does not allow the value.
    """
    kinds, known = get_type_hints(method.settings, include_extras=True), {one.name: one for one in method.fields()}
    for name, text in texts.items():
        if name not in known:
            left_out = f"{option_names(name)[0]} must be left out for {method.name} on {env_id}"
            raise ValueError(f"{left_out}, got {default_text(text)}")
    return {name: read_setting(known[name], kinds[name], text) for name, text in texts.items()}


def read_setting(one: Any, kind: Any, text: Any) -> Any:
    """Return the value of a setting; see `read_settings`."""
    from fair_envs.cli.pages import spelled

    try:
        return checked(one.name, value_of(text, kind), kind)
    except ValueError:
        if get_origin(kind) is not Sequence:
            raise
        example = f", such as {default_text(one.default)}" if one.default else ""
        raise ValueError(f"{one.name} must be {spelled(kind)}{example}, got {text!r}") from None
