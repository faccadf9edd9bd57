"""The application, its general options, and how errors are reported."""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fair_envs.support.imports import Permissions, permissions, permit, typed_in

EXTRAS: Mapping[str, str] = {
    "imageio": "render",
    "matplotlib": "baselines",
    "cmaes": "search",
    "h5py": "datasets",
    "minari": "datasets",
    "moocore": "baselines",
    "optuna": "search",
    "pandas": "datasets",
    "pyarrow": "datasets",
    "pygame": "render",
    "ray": "ray",
    "stable_baselines3": "baselines",
    "tensorboard": "baselines",
    "torch": "baselines",
}
"""The extra that installs each library missing from a plain installation."""

WRONG_INPUT = (ValueError, TypeError, ImportError, OSError)
INTERRUPTED = 130  # exit code after Ctrl-C
ANYWHERE = ("--debug", "--trust")  # general options that are also allowed after a command, as --import is


NoSuchOption: type[Exception] = sys.modules[typer.BadParameter.__module__].NoSuchOption  # of click or of typer

ELSEWHERE: Mapping[str, str] = {
    "--lr": "--learning-rate",
    "--num-envs": "--n-envs",
    "--num-steps": "--n-steps",
    "--update-epochs": "--n-epochs",
    "--clip-coef": "--clip-range",
    "-n": "--total-timesteps",
    "--n-timesteps": "--total-timesteps",
    "--net-arch": "--trunk --pi --vf --actor --critic",
    "--verbose": "--progress --no-progress",
    "--tensorboard-log": "--out",
}
"""Options with the same meaning by their names in CleanRL, RL Zoo and Stable-Baselines3."""

ARGUMENTS: Mapping[str, str] = {"--algo": "METHOD", "--env": "ID", "--env-id": "ID"}
"""Arguments by the options that they replace."""


class Commands(TyperGroup):
    """The commands; invalid input is reported in one line on standard error."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands, the most used ones first."""
        first = ("list", "show", "play", "train", "evaluate")
        return [*first, *(name for name in super().list_commands(ctx) if name not in first)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; general options may be anywhere, and import paths given here may be imported."""
        general, others = general_options(args)
        with suppress(FileNotFoundError):  # the current folder has been removed
            permit(Permissions(typed=typed_in(args), folder=os.getcwd()))
        return super().parse_args(ctx, [*general, *others])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with 2 on invalid input and with 1 on other failures, without a traceback."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):  # the reader of a pipe, such as head, has closed it
            raise
        except NoSuchOption as error:
            suggest_option(error)
            raise
        except (*WRONG_INPUT, RuntimeError) as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"fair-envs: {spelled_out(error)}", err=True)
            raise typer.Exit(2 if isinstance(error, WRONG_INPUT) else 1) from None


def suggest_option(error: Any) -> None:
    """Let an error about an option of another library name the option or argument with the same meaning."""
    name = error.option_name
    if name in ARGUMENTS:
        example = "fair-envs train ppo FairHarvest-v0"
        error.message += f"; {ARGUMENTS[name]} is an argument, as in: {example}"
    if name in ARGUMENTS or name in ELSEWHERE:
        known = {option for one in error.ctx.command.params for option in (*one.opts, *one.secondary_opts)}
        error.possibilities = [option for option in ELSEWHERE.get(name, "").split() if option in known]


def general_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the general options among the arguments, and the other arguments."""
    general: list[str] = []
    others: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--import":
            general += [argument, *islice(left, 1)]
        else:
            (general if argument in ANYWHERE or argument.startswith("--import=") else others).append(argument)
    return general, others


def spelled_out(error: BaseException) -> str:
    """Return an error's message, or the install command if a library is missing."""
    if isinstance(error, ModuleNotFoundError) and error.name and "pip install" not in str(error):
        library = error.name.partition(".")[0]
        if library in EXTRAS:
            return f"this needs {library}; install it with: pip install 'fair-envs[{EXTRAS[library]}]'"
    return str(error) or type(error).__name__


app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command line; a warning is one line, without its place in the code."""
    warnings.formatwarning = lambda message, *_, **__: f"fair-envs: {message}\n"
    app(prog_name="fair-envs")


def print_version(wanted: bool) -> None:
    """Print the version and exit, if that is wanted."""
    if wanted:
        from fair_envs import __version__

        typer.echo(f"fair-envs {__version__}")
        raise typer.Exit


@app.callback()
def everything(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Import the functions (module:function) named in the settings of a stored run or search. This runs "
            "their code: use it only for files whose author you trust.",
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=print_version)
    ] = False,
    module: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module that registers your own environments or methods; may be repeated.",
        ),
    ] = None,
) -> None:
    """Play, measure and train in reinforcement-learning environments for fairness research."""
    permit(permissions()._replace(stored=trust, modules=tuple(module or ())))
