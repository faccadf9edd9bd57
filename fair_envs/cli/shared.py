"""What several commands share: arguments, parameters, paths, reports and interruptions."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from fair_envs.cli.app import INTERRUPTED
from fair_envs.support.imports import paths_in, permissions, permit
from fair_envs.support.parameters import meant, value_of
from fair_envs.support.stopping import StoppedError, stoppable

RUNS = Path("runs")


ID_HELP = "The environment's id, see `fair-envs list`; module:ID for your own environment."


EnvId = Annotated[str, typer.Argument(metavar="ID", help=ID_HELP)]


Param = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the environment; may be repeated."),
]


Seed = Annotated[int, typer.Option(help="Random seed; equal seeds give equal results.", min=0)]


PROCESSES = "processes"


EngineOption = Annotated[
    str | None,
    typer.Option(metavar="processes|ray", help="Run in processes on this machine, or on a Ray cluster."),
]


def assigned(pairs: Sequence[str], *, what: str) -> dict[str, str]:
    """Return a dictionary from texts ``name=value``.

    Raises:
        ValueError: A text has another form, or a name is given twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"{what} must be name=value, got {pair!r}")
        if name in found:
            raise ValueError(f"{what} must name {name} once, got it twice")
        found[name] = value
    return found


def environment_parameters(
    env_id: str, pairs: Sequence[str] | None, *, base: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the environment's parameters, converted to the types of their fields.

    Args:
        env_id: The environment.
        pairs: Texts ``name=value``.
        base: Default parameters; `pairs` override them.

    Raises:
        ValueError: The id or variant is unknown, or a value is outside its range.
        TypeError: A parameter is unknown.
    """
    from fair_envs.cli.pages import rules_class
    from fair_envs.registration import TABLE

    texts = assigned(pairs or (), what="param")
    values: dict[str, Any] = {**(base or {}), **texts}
    if env_id not in TABLE:
        return own_parameters(env_id, values)
    rules = rules_class(env_id, variant=values.get("variant"))
    fields = get_type_hints(rules.Params, include_extras=True)
    values |= {name: value_of(text, fields.get(name, str)) for name, text in texts.items()}
    rules(**{name: value for name, value in values.items() if name != "variant"})  # raises an error if invalid
    return values


def own_parameters(env_id: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an environment that is registered only with Gymnasium.

    A text is converted to the type of the parameter's default, or if it has none, read as a number or a boolean.

    Raises:
        TypeError: A parameter is unknown.
        ValueError: The environment does not accept a value.
    """
    from fair_envs.tasks import parameters_of, rules_for

    known = parameters_of(env_id)
    for name in values:
        if known is not None and name not in known:
            wanted = f"one of {', '.join(known)}" if known else "left out"
            raise TypeError(f"param must be {wanted} for {env_id}, got {name!r}{meant(name, known)}")
    found = {name: own_value(value, (known or {}).get(name)) for name, value in values.items()}
    rules_for(env_id, **found)  # raises an error if invalid
    return found


def own_value(value: Any, default: Any) -> Any:
    """Return a text as a value of the default's type, or as a number or a boolean; other values are unchanged."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    if isinstance(default, (bool, int, float)):
        return value_of(value, type(default))
    return next((found for kind in (bool, int, float) if (found := value_of(value, kind)) != value), value)


def new_path(path: Path | None, *, stem: str, suffix: str = "", folder: Path = RUNS) -> Path:
    """Return a path that does not exist yet: the given one, or the next free number in a folder.

    Raises:
        ValueError: The given path exists, or is in something that is not a folder.
    """
    if path is None:
        numbered = (folder / f"{stem}-{k}{suffix}" for k in range(1, 1_000_000))
        return next(candidate for candidate in numbered if not candidate.exists())
    if path.exists() or path.is_symlink():
        raise ValueError(f"out must be a new path, got {str(path)!r}, which exists")
    if blocked := next((place for place in path.parents if place.exists() and not place.is_dir()), None):
        raise ValueError(f"out must be in a folder, got {str(path)!r}, where {str(blocked)!r} is a file")
    return path


def terminal() -> Console:
    """Return the console for tables: as wide as the terminal, or 120 characters if the output is not a terminal."""
    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=120)


Folder = Annotated[Path | None, typer.Option(help="A new folder for the run; default: runs/METHOD-ID-N.")]


Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in the folder --out.")]


ShowProgress = Annotated[bool, typer.Option(help="Show the remaining time.")]


def trusting_program(settings: Mapping[str, Any], *, but: Sequence[str] = ()) -> str:
    """Return the program to call if these settings are read from a file, with --trust and --import if needed."""
    trust = ["--trust"] if paths_in(settings, but=but) else []
    return " ".join(["fair-envs", *trust, *(f"--import {module}" for module in permissions().modules)])


def imported_id(env_id: str, *, own: bool = False) -> str:
    """Return an environment's id without its module, which this process and its workers import.

    Args:
        env_id: The id, which may begin with a module: ``"module:ID"``.
        own: Whether environments that are registered only with Gymnasium are accepted too.

    Raises:
        ValueError: The id is unknown.
        ImportError: The module does not exist.
    """
    from fair_envs.registration import known_id
    from fair_envs.tasks import environment_id

    name = environment_id(env_id) if own else known_id(env_id)
    permit_module_of(env_id)
    return name


def permit_module_of(env_id: str) -> None:
    """Let worker processes import the module in ``module:ID`` too."""
    module = env_id.rpartition(":")[0]
    if module and module not in permissions().modules:
        permit(permissions()._replace(modules=(*permissions().modules, module)))


def refuse(options: Mapping[str, Any], *, of: str) -> None:
    """Raise ValueError for an option that does not apply."""
    for name, given in options.items():
        if given:
            reported = ", ".join(given) if isinstance(given, list) else given
            raise ValueError(f"{name} must be left out for {of}, got {reported}")


@contextmanager
def resumable(command: str, *, begun: Path | None = None) -> Iterator[None]:
    """Print how to continue after Ctrl-C, SIGTERM or SIGHUP, unless nothing was saved (``begun`` does not exist)."""
    try:
        with stoppable():
            yield
    except KeyboardInterrupt as stopped:
        kept = begun is None or begun.exists()
        typer.echo(f"\nstopped; continue with: {command}" if kept else "\nstopped before anything was saved", err=True)
        raise typer.Exit(128 + stopped.number if isinstance(stopped, StoppedError) else INTERRUPTED) from None
