"""The command line ``fair-envs``.

Each command imports the heavy libraries it needs, so ``list`` and ``show`` work after a plain installation.
"""

import inspect
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from typer.core import TyperGroup

from fair_envs.imports import Permissions, paths_in, permissions, permit, typed_in
from fair_envs.parameters import meant, value_of
from fair_envs.progress import progress_bar
from fair_envs.seeds import TEST_SEEDS
from fair_envs.stopping import StoppedError, stoppable

EXTRAS: Mapping[str, str] = {
    "imageio": "render",
    "matplotlib": "baselines",
    "cmaes": "search",
    "moocore": "baselines",
    "optuna": "search",
    "pandas": "baselines",
    "pygame": "render",
    "ray": "ray",
    "stable_baselines3": "baselines",
    "tensorboard": "baselines",
    "torch": "baselines",
}
"""The extra that installs each library missing from a plain installation."""

WRONG_INPUT = (ValueError, TypeError, ImportError, OSError)
INTERRUPTED = 130  # exit code after Ctrl-C
RUNS = Path("runs")
ANYWHERE = ("--debug", "--trust")  # general options that are also allowed after a command


# --------------------------------------------------------------------------------------------------- errors


class Commands(TyperGroup):
    """The commands; invalid input is reported in one line on standard error."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands, the most used ones first."""
        first = ("list", "show", "play", "train", "evaluate")
        return [*first, *(name for name in super().list_commands(ctx) if name not in first)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; general options may be anywhere, and import paths given here may be imported."""
        anywhere = [argument for argument in args if argument in ANYWHERE]
        with suppress(FileNotFoundError):  # the current folder has been removed
            permit(Permissions(typed=typed_in(args), folder=os.getcwd()))
        return super().parse_args(ctx, [*anywhere, *(argument for argument in args if argument not in ANYWHERE)])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with 2 on invalid input and with 1 on other failures, without a traceback."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except (*WRONG_INPUT, RuntimeError) as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"fair-envs: {spelled_out(error)}", err=True)
            raise typer.Exit(2 if isinstance(error, WRONG_INPUT) else 1) from None


def spelled_out(error: BaseException) -> str:
    """Return an error's message, or the install command if a library is missing."""
    if isinstance(error, ModuleNotFoundError) and error.name and "pip install" not in str(error):
        library = error.name.partition(".")[0]
        if library in EXTRAS:
            return f"this needs {library}; install it with: pip install 'fair-envs[{EXTRAS[library]}]'"
    return str(error) or type(error).__name__


app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command line."""
    app(prog_name="fair-envs")


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
) -> None:
    """Play, measure and train in reinforcement-learning environments for fairness research."""
    if trust:
        permit(permissions()._replace(stored=True))


# ------------------------------------------------------------------------------------------- shared arguments

EnvId = Annotated[str, typer.Argument(metavar="ID", help="The environment's id, see `fair-envs list`.")]
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
    from fair_envs.pages import rules_class

    texts = assigned(pairs or (), what="param")
    values: dict[str, Any] = {**(base or {}), **texts}
    rules = rules_class(env_id, variant=values.get("variant"))
    fields = get_type_hints(rules.Params, include_extras=True)
    values |= {name: value_of(text, fields.get(name, str)) for name, text in texts.items()}
    rules(**{name: value for name, value in values.items() if name != "variant"})  # raises an error if invalid
    return values


def new_path(path: Path | None, *, stem: str, suffix: str = "", folder: Path = RUNS) -> Path:
    """Return a path that does not exist yet: the given one, or the next free number in a folder.

    Raises:
        ValueError: The given path exists.
    """
    if path is None:
        numbered = (folder / f"{stem}-{k}{suffix}" for k in range(1, 1_000_000))
        return next(candidate for candidate in numbered if not candidate.exists())
    if path.exists():
        raise ValueError(f"out must be a new path, got {str(path)!r}, which exists")
    return path


def terminal() -> Console:
    """Return the console for tables: as wide as the terminal, or 120 characters if the output is not a terminal."""
    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=120)


# ----------------------------------------------------------------------------------------------- list, show


@app.command("list")
def list_environments() -> None:
    """List the environments."""
    from fair_envs.pages import environments_table

    terminal().print(environments_table())


@app.command()
def show(
    what: Annotated[
        str,
        typer.Argument(metavar="ID|notions|methods", help="An environment's id, or `notions` or `methods`."),
    ],
    variant: Annotated[str | None, typer.Option(help="A variant of the environment's rules.")] = None,
) -> None:
    """Show an environment, the fairness notions, or which method trains on which environment."""
    from fair_envs.metrics import notions_table
    from fair_envs.pages import environment_page

    if what == "notions":
        typer.echo(notions_table())
    elif what == "methods":
        show_methods()
    else:
        terminal().print(environment_page(what, variant=variant))


def show_methods() -> None:
    """Print every method, the environments that it supports, and why it does not support the others."""
    from rich.table import Table

    from fair_envs.baselines import methods

    shown = Table("method", "summary", "trains on", box=None, pad_edge=False)
    reasons: dict[str, dict[str, None]] = {}
    for method, found in methods.supported():
        known = [env_id.removesuffix("-v0") for env_id, why in found.items() if not why]
        shown.add_row(method.name, method.summary, ", ".join(known) or "none of this package's environments")
        for why in filter(None, found.values()):
            reasons.setdefault(why, {})[method.name] = None
    terminal().print(shown)
    for why, names in reasons.items():
        typer.echo(f"{', '.join(names)}: {why}.")


# ----------------------------------------------------------------------------------------------------- play


@app.command()
def play(
    env_id: EnvId,
    param: Param = None,
    policy: Annotated[
        str,
        typer.Option("--policy", "--run", metavar="NAME", help="The policy: random, a run, or as in `evaluate`."),
    ] = "random",
    agent: Annotated[str, typer.Option(help="The agent that you control, or none to watch only.")] = "agent_0",
    seed: Seed = 0,
    frames: Annotated[int | None, typer.Option(help="Stop after this number of steps.", min=1)] = None,
    gif: Annotated[Path | None, typer.Option(help="Save an animation here instead of opening a window.")] = None,
) -> None:
    """Play an environment in a window and control one agent, or save an animation."""
    from fair_envs import playing

    rules, player = world_and_policy(env_id, param, policy=policy)
    if gif is None:
        index = playing.agent_index(rules, agent)
        if index is not None:
            keys = ", ".join(f"{key}: {action}" for key, action in playing.described_keys(rules).items())
            typer.echo(f"{agent} is controlled by you. {keys}; escape: quit")
        playing.play_in_window(rules, player, seed=seed, agent=index, steps=frames)
        return
    path, count = new_path(gif, stem="film"), frames or 200
    with progress_bar("drawing", total=count) as drawn:
        shown = playing.pictures(rules, player, seed=seed, count=count, each=drawn)
        playing.save_film(shown, path, fps=rules.fps)
    typer.echo(f"saved {path}")


def world_and_policy(env_id: str, param: Sequence[str] | None, *, policy: str) -> tuple[Any, Any]:
    """Return rules and policy; for a run, use its parameters, overridden by the given ones."""
    from fair_envs.players import is_run, policy_tried
    from fair_envs.registration import make_rules

    if not is_run(policy):
        rules = make_rules(env_id, **environment_parameters(env_id, param))
        return rules, policy_tried(policy, rules)
    from fair_envs.players import loaded

    trained = loaded(Path(policy))
    if trained.settings.env_id != env_id:
        raise ValueError(f"id must be that of the run, {trained.settings.env_id}, got {env_id!r}")
    rules = make_rules(env_id, **environment_parameters(env_id, param, base=trained.settings.parameters))
    return rules, trained.policy(rules)


# ---------------------------------------------------------------------------------------------------- train


Folder = Annotated[Path | None, typer.Option(help="A new folder for the run; default: runs/METHOD-ID-N.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in the folder --out.")]
ShowProgress = Annotated[bool, typer.Option(help="Show the remaining time.")]

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

        return typer.main.get_command(method_app(methods.named(cmd_name)[::-1]))


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


def method_app(named: Sequence[Any]) -> typer.Typer:
    """Return the command for the methods with one name, with an option for each of their settings."""
    about = " Or, on other environments: ".join(method.summary for method in named)

    def command(
        env_id: Annotated[
            str | None, typer.Argument(metavar="ID", help="The environment's id, see `fair-envs list`.")
        ] = None,
        param: Param = None,
        out: Folder = None,
        resume: Resume = False,
        progress: ShowProgress = True,
        **given: Any,
    ) -> None:
        preset, name = given.pop("preset", None), named[0].name
        start_training(name, env_id, param, out=out, resume=resume, progress=progress, preset=preset, texts=given)

    shared = [one for one in inspect.signature(command).parameters.values() if one.name != "given"]
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in setting_options(named).items()
    ]
    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shared]
    command.__doc__, command.__annotations__ = about, {}
    command.__signature__ = inspect.Signature([*keywords, *own])  # type: ignore[attr-defined]
    single = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    single.command(named[0].name)(command)
    return single


def setting_options(named: Sequence[Any]) -> dict[str, Any]:
    """Return the annotations of the options for the methods' settings and presets."""
    meant: dict[str, list[Any]] = {}
    for method in named:
        for one in method.fields():
            if one.name not in UNASKED:
                meant.setdefault(one.name, []).append((method, one))
    options: dict[str, Any] = {}
    for name, several in meant.items():
        method, one = several[0]
        kind = get_type_hints(method.settings, include_extras=True)[name]
        defaults = dict.fromkeys(default_text(other.default) for _, other in several)
        options[name] = option(name, kind, one.metadata["help"], " or ".join(filter(None, defaults)))
    for method in named:
        if method.presets:
            first, *_ = method.presets
            told = "; ".join(f"{name}: {meaning}" for name, meaning in method.presets.items())
            help_ = f"Default settings; other options override them. {told}. [{first}]"
            metavar = "|".join(method.presets)
            options["preset"] = Annotated[str | None, typer.Option(metavar=metavar, help=help_)]
    return options


def default_text(default: Any) -> str:
    """Return a default as it is written on the command line."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ",".join(map(str, default)) if isinstance(default, (list, tuple)) else str(default)


UNASKED = ("worlds",)  # settings without a command-line option


def option(name: str, kind: Any, meaning: str, default: str) -> Any:
    """Return the annotation of an option; its text is parsed by `value_of`, so the field's type validates it."""
    from fair_envs.pages import spelled

    dashed = name.replace("_", "-")
    if kind is bool:
        return Annotated[bool | None, typer.Option(f"--{dashed}/--no-{dashed}", help=f"{meaning} [{default}]")]
    names = [FIRST_NAMES[name]] if name in FIRST_NAMES else []
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    limits = "; ".join(filter(None, (default, "" if choices else spelled(kind))))
    metavar = "|".join(choices) or "VALUE"
    return Annotated[str | None, typer.Option(*names, f"--{dashed}", help=f"{meaning} [{limits}]", metavar=metavar)]


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
) -> None:
    """Start a training, or resume one with its stored settings unless others are given.

    Raises:
        ValueError: Something is missing, invalid or does not match the run.
    """
    from fair_envs.baselines import methods
    from fair_envs.baselines.runs import Run

    stated = {"algorithm": name, "env_id": env_id}
    given: dict[str, Any] = {field: value for field, value in stated.items() if value is not None}
    texts = {field: text for field, text in texts.items() if text is not None}
    if resume:
        if out is None:
            raise ValueError("out must name the folder of the run to resume, got none")
        if preset is not None:
            raise ValueError(f"preset must be left out when a run is resumed, it keeps its settings; got {preset!r}")
        method = methods.method_of(out)
        given = Run(out).settings(method.settings).as_dict() | given
    if "env_id" not in given:
        raise ValueError(f"ID must be given, as in: fair-envs train {name} FairHarvest-v0")
    if param is not None:
        given["parameters"] = environment_parameters(given["env_id"], param)
    if not resume:
        method = methods.method_for(given["algorithm"], given["env_id"], {**texts, **given})
    given |= read_settings(method, texts)
    config = method.settings(**given) if resume else method.configured(given, preset=preset)
    folder = out if resume and out else new_path(out, stem=f"{config.algorithm}-{config.env_id}")
    program = trusting_program(config.as_dict())
    with resumable(f"{program} train --out {folder} --resume", begun=folder / "config.json"):
        method.train(config, out=folder, resume=resume, progress=progress)
    typer.echo(f"saved {folder}; measure it with: {program} evaluate {folder}")


def read_settings(method: Any, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings, converted to their types.

    Raises:
        ValueError: The method does not have a setting.
    """
    kinds, known = get_type_hints(method.settings, include_extras=True), {one.name for one in method.fields()}
    for name, text in texts.items():
        if name not in known:
            raise ValueError(f"{name} must be left out for {method.name} on this environment, got {text}")
    return {name: value_of(text, kinds[name]) for name, text in texts.items()}


def trusting_program(settings: Mapping[str, Any], *, but: Sequence[str] = ()) -> str:
    """Return the program to call if these settings are read from a file, with --trust if needed; see `paths_in`."""
    return "fair-envs --trust" if paths_in(settings, but=but) else "fair-envs"


# ------------------------------------------------------------------------------------------------- evaluate


@app.command()
def evaluate(
    what: Annotated[str, typer.Argument(metavar="RUN|ID", help="The folder of a run, or the id of an environment.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Environments only: the policy that plays, see above; may be repeated."),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Environments only: the attributes; default: the sensitive ones."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Environments only: the form of parities; an unknown name lists all. [difference]"
        ),
    ] = None,
    flip: Annotated[
        str | None,
        typer.Option(
            metavar="carriers|each",
            help="Environments only: which agents lose the attribute in the counterfactual world. carriers: all agents "
            "that have it, at once. each: one agent at a time, as in the definition, one world per agent. [carriers]",
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Number of test episodes.", min=1)] = 64,
    seed: Annotated[int, typer.Option(help="Seed of the first test episode.", min=0)] = TEST_SEEDS,
    param: Param = None,
    out: Annotated[Path | None, typer.Option(help="A new folder; default: RUN/evaluation-N or runs/ID-N.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int | None, typer.Option(help="Environments only: number of parallel batches. [1]", min=1)] = None,
    progress: ShowProgress = True,
) -> None:
    """Play test episodes and measure fairness, with 95 % intervals.

    RUN evaluates a trained policy with every notion. ID evaluates an environment, for each attribute. If agents are
    affected, it reports demographic parity, conditional statistical parity and, if the attribute can be removed,
    counterfactual fairness. If one decision-maker decides about people, it reports the group notions of the decisions.

    A policy is random, a run, module:function (observations (B, agents, ...) and uniform numbers (B, agents) to
    actions), or a scripted policy of the environment; an unknown name lists them.
    """
    from fair_envs.registration import TABLE

    told: dict[str, Any] = {"policy": policy, "attribute": attribute, "form": form, "flip": flip}
    if what in TABLE:
        options: dict[str, Any] = {"episodes": episodes, "seed": seed, "out": out, "progress": progress}
        evaluate_system(what, param, **told, engine=engine or PROCESSES, jobs=jobs or 1, **options)
        return
    run = Path(what)
    if not (run / "config.json").is_file():
        raise ValueError(
            f"RUN|ID must be the folder of a run, with a config.json, or {', '.join(TABLE)}, "
            f"got {what!r}{meant(what, TABLE)}"
        )
    refuse({**told, "engine": engine, "jobs": jobs}, of="a run")
    folder = new_path(out, stem="evaluation", folder=run)
    report = evaluate_run(run, param, episodes=episodes, seed=seed, progress=progress)
    show_report(
        report,
        folder,
        "Intervals are over test episodes of one training; other training seeds may lie outside them.",
    )


def evaluate_run(run: Path, param: Sequence[str] | None, *, episodes: int, seed: int, progress: bool) -> Any:
    """Return the evaluation report of a run's policy."""
    from fair_envs.baselines.methods import Test, method_of

    method = method_of(run)
    model, settings = method.load(run)
    parameters = environment_parameters(settings.env_id, param, base=settings.parameters)
    changed = frozenset(assigned(param or (), what="param"))
    test = Test(run, episodes=episodes, seed=seed, parameters=parameters, changed=changed, progress=progress)
    return method.evaluate(model, settings, test)


def show_report(report: Any, folder: Path, *notes: str) -> None:
    """Save a report, and print its table and notes."""
    report.save(folder)
    terminal().print(report.table())
    for note in (*report.notes, *notes):
        typer.echo(note)
    typer.echo(f"saved {folder}")


def refuse(options: Mapping[str, Any], *, of: str) -> None:
    """Raise ValueError for an option that does not apply."""
    for name, given in options.items():
        if given:
            told = ", ".join(given) if isinstance(given, list) else given
            raise ValueError(f"{name} must be left out for {of}, got {told}")


def evaluate_system(
    env_id: str,
    param: Sequence[str] | None,
    *,
    policy: Sequence[str] | None,
    attribute: Sequence[str] | None,
    form: Any,
    flip: Any,
    episodes: int,
    seed: int,
    out: Path | None,
    engine: str,
    jobs: int,
    progress: bool,
) -> None:
    """Play the same episodes of an environment with each policy, and measure fairness."""
    from fair_envs import systems
    from fair_envs.engines import check_engine
    from fair_envs.registration import make_rules

    check_engine(engine, jobs)
    folder = new_path(out, stem=env_id)
    parameters = environment_parameters(env_id, param)
    rules, policies = make_rules(env_id, **parameters), policy or ["random"]
    check_system(rules, policies, attributes=attribute, form=form, flip=flip)
    form, flip = form or "difference", flip or "carriers"
    given: dict[str, Any] = {"episodes": episodes, "seed": seed, "flip": flip}
    found = play_systems(env_id, parameters, policies, **given, engine=engine, jobs=jobs, progress=progress)
    about = {"environment": env_id, "parameters": parameters, "seed": seed}
    show_report(systems.report(found, attributes=attribute, form=form, flip=flip, about=about), folder)


def check_system(
    rules: Any, policies: Sequence[str], *, attributes: Sequence[str] | None, form: str | None, flip: str | None
) -> None:
    """Raise ValueError for options that cannot be measured, before any episode is played."""
    from fair_envs import systems
    from fair_envs.players import policy_tried

    if not rules.multi_agent:
        refuse({"form": form, "flip": flip}, of="a decision-maker")
    elif not systems.can_flip(rules):
        refuse({"flip": flip}, of=f"{rules.name}, whose agents have no attribute that can be removed")
    systems.check_measure(rules.spec, attributes=attributes, form=form or "difference", flip=flip or "carriers")
    systems.check_once("policy", policies)
    for name in policies:
        policy_tried(name, rules)


def play_systems(
    env_id: str,
    parameters: Mapping[str, Any],
    policies: Sequence[str],
    *,
    episodes: int,
    seed: int,
    flip: Any,
    engine: str,
    jobs: int,
    progress: bool,
) -> dict[str, Any]:
    """Return the episodes of each policy."""
    from tempfile import TemporaryDirectory

    from fair_envs.engines import opened, run_cells
    from fair_envs.system_cells import joined, system_cells

    given: dict[str, Any] = {"episodes": episodes, "seed": seed, "flip": flip}
    each = {name: system_cells(env_id, parameters, name, **given) for name in policies}
    cells = [cell for own in each.values() for cell in own]
    with progress_bar("playing", total=len(cells), shown=progress) as played, TemporaryDirectory() as kept:
        with opened(engine, jobs=jobs, here=True) as workers:
            run_cells(cells, Path(kept), engine=workers, progress=False, each=played)
        return {name: joined(own, Path(kept)) for name, own in each.items()}


# -------------------------------------------------------------------------------------------------- design


@app.command()
def design(
    env_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The environment's id; not needed with --resume.")
    ] = None,
    param: Param = None,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            "-r",
            metavar="NAME=LOW:HIGH",
            help="A parameter and its search space; or NAME=LOW:HIGH:STEP, NAME=LOW:HIGH:log, NAME=OPTION|OPTION, "
            "where an empty OPTION is none; may be repeated.",
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A number to optimise, see above; the first one decides; may be repeated.",
        ),
    ] = None,
    policy: Annotated[str | None, typer.Option(metavar="NAME", help="The policy, as in `evaluate`. [random]")] = None,
    sampler: Annotated[
        str | None,
        typer.Option(metavar="tpe|cma-es|nsga-ii|random", help="The search algorithm. [tpe]"),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Number of configurations to try. [50]")] = None,
    batch: Annotated[int | None, typer.Option(help="Number of configurations proposed at once. [8]")] = None,
    episodes: Annotated[int | None, typer.Option(help="Largest number of episodes per configuration. [64]")] = None,
    least_episodes: Annotated[int | None, typer.Option(help="Smallest number of episodes. [16]")] = None,
    precision: Annotated[
        float | None,
        typer.Option(help="Target standard error, in standard deviations of the original configuration. [0.15]"),
    ] = None,
    hopeless: Annotated[
        bool | None, typer.Option(help="Prune configurations that are clearly worse than another one. [True]")
    ] = None,
    finalists: Annotated[
        int | None,
        typer.Option(help="Number of best configurations replayed with four times the episodes. [5]"),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(help="Largest loss of total return allowed, as a share of the original's total return. [any]"),
    ] = None,
    held_out: Annotated[
        int | None, typer.Option(help="Number of episodes for the comparison with the original configuration. [256]")
    ] = None,
    flip: Annotated[
        str | None,
        typer.Option(metavar="carriers|each", help="Which agents lose the attribute, as in `evaluate`. [carriers]"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; equal seeds give equal results. [0]")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="A settings file; options override it.")
    ] = None,
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="A database shared by several machines; default: OUT/trials.db.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the search in the database; default: ID.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int, typer.Option(help="Number of parallel batches of episodes.", min=1)] = 2,
    out: Annotated[Path | None, typer.Option(help="A new folder; default: runs/design-ID-N.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the search in the folder --out.")] = False,
    choose: Annotated[
        int | None, typer.Option(help="Number of the trial to choose instead of the best one in the first objective.")
    ] = None,
    progress: ShowProgress = True,
) -> None:
    """Search for a fairer configuration of an environment, and report what it costs.

    Objectives are numbers that `evaluate` reports, such as demographic_parity:human_driven or, with the code of a
    value, conditional_parity:human_driven:fast=1. Others are total_return, return_with:ATTRIBUTE and
    return_without:ATTRIBUTE, and for agents utilitarian, maximin, nash_welfare, gini, jain and atkinson. An unknown
    name lists all objectives of the environment. The default objectives are parity and the total return.

    Every configuration is played with the same seeds. The chosen configuration is compared with the original one on
    other seeds.
    """
    from fair_envs.search import report
    from fair_envs.search.design import begun
    from fair_envs.search.design import design as search_for
    from fair_envs.search.settings import NEVER_IMPORTED

    texts = {"policy": policy, "sampler": sampler, "objectives": objective, "flip": flip}
    counts = {"trials": trials, "batch": batch, "episodes": episodes, "least_episodes": least_episodes, "seed": seed}
    counts |= {"finalists": finalists, "held_out": held_out}
    given = {**texts, **counts, "precision": precision, "hopeless": hopeless, "price": price}
    given = {one: value for one, value in given.items() if value is not None}
    if resume:
        others = {"ID": env_id, "param": param, "range": range_, "config": config}
        search, folder = search_again(out, given | {one: v for one, v in others.items() if v is not None})
    else:
        search = search_of(env_id, param, range_, config, given)
        folder = new_path(out, stem=f"design-{search.env_id}")
    told = {"--storage": storage and "URL", "--name": name, "--trials": trials, "--price": price, "--choose": choose}
    told |= {"--engine": engine, "--jobs": jobs}
    words = [str(word) for pair in told.items() if pair[1] is not None for word in pair]
    again = shlex.join(["design", "--out", str(folder), "--resume", *words])
    again = f"{trusting_program(search.as_dict(), but=NEVER_IMPORTED)} {again}"
    place: dict[str, Any] = {"storage": storage, "name": name, "engine": engine or PROCESSES, "jobs": jobs}
    begun(search, out=folder, **place)
    with resumable(again), progress_bar("trials", total=search.trials + 2, shown=progress) as each:
        found = search_for(search, out=folder, **place, choose=choose, each=each)
    rows, results = report.compare(found), new_path(None, stem="result", folder=folder)
    report.save(found, rows, results)
    terminal().print(report.trials_table(found))
    terminal().print(report.comparison_table(rows))
    typer.echo(f"Trial {found.chosen.number}, measured on {search.held_out} pairs of episodes that no trial used.")
    typer.echo(report.price(rows))
    typer.echo(
        f"saved {results}; gym.make({search.env_id!r}, **json.load(open({str(results / report.CONFIGURATION)!r})))"
    )


def search_of(
    env_id: str | None,
    param: Sequence[str] | None,
    ranges: Sequence[str] | None,
    config: Path | None,
    given: Mapping[str, Any],
) -> Any:
    """Return a new search; given options override the settings in a file."""
    from fair_envs.players import policy_tried
    from fair_envs.search.settings import Search, read_toml

    told = read_toml(config) if config is not None else {}
    chosen = env_id or told.get("env_id")
    if chosen is None:
        raise ValueError("ID must be given, as in: fair-envs design FairTraffic-v0 --range signal_period=4:40")
    told |= {"env_id": chosen, **given}
    told["parameters"] = environment_parameters(chosen, param, base=told.get("parameters"))
    told["ranges"] = {**told.get("ranges", {}), **assigned(ranges or (), what="range")}
    search = Search(**told)
    policy_tried(search.policy, search.rules())
    return search


def search_again(out: Path | None, given: Mapping[str, Any]) -> tuple[Any, Path]:
    """Return the search in a folder; only the number of trials and the price may change."""
    from fair_envs.search.settings import FREE, Search

    if out is None:
        raise ValueError("out must name the folder of the search to resume, got none")
    for name, value in given.items():
        if name not in FREE:
            raise ValueError(f"{name} must be left out when a search is resumed, it keeps its settings; got {value!r}")
    return Search.read(out).again(**given), out


# ----------------------------------------------------------------------------------------------- reproduce


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="The paper, for example lamalfa2025.")],
    scale: Annotated[
        str,
        typer.Option(metavar="smoke|small|full", help="About a minute, about an hour, or the paper's protocol."),
    ] = "smoke",
    out: Annotated[Path | None, typer.Option(help="Folder of the results; default: runs/PAPER-SCALE.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int, typer.Option(help="Number of parallel experiments.", min=1)] = 2,
    seeds: Annotated[int | None, typer.Option(help="Number of training seeds; default: the scale's.", min=1)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue with the results in the folder.")] = False,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Reuse the results of another run from this folder; may be repeated."),
    ] = None,
    progress: ShowProgress = True,
) -> None:
    """Repeat a paper's experiments and compare its numbers with ours."""
    import importlib

    if paper not in papers():
        raise ValueError(f"paper must be one of {', '.join(papers())}, got {paper!r}{meant(paper, papers())}")
    folder = out or RUNS / f"{paper}-{scale}"
    again = ["fair-envs", "reproduce", paper, "--scale", scale, "--out", str(folder), "--jobs", str(jobs), "--resume"]
    again += [] if seeds is None else ["--seeds", str(seeds)]
    again += [] if engine is None else ["--engine", engine]
    again += [word for source in merge or [] for word in ("--merge", str(source))]
    with resumable(shlex.join(again), begun=folder):
        module = importlib.import_module(f"fair_envs.reproduction.papers.{paper}")
        report = module.main(
            scale=scale,
            out=folder,
            jobs=jobs,
            engine=engine or PROCESSES,
            seeds=seeds,
            resume=resume,
            merge_from=merge or [],
            progress=progress,
        )
    typer.echo(f"saved {report}")


def papers() -> list[str]:
    """Return the papers that can be reproduced."""
    import pkgutil

    from fair_envs.reproduction import papers as package

    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the results; finished trainings in it are not repeated.")] = (
        RUNS / "demo"
    ),
    jobs: Annotated[int, typer.Option(help="Number of worker processes.", min=1)] = 2,
    progress: ShowProgress = True,
) -> None:
    """Train PPO and fair-PPO on FairHarvest, compare them, and save plots and an animation."""
    with resumable(f"fair-envs demo --out {out}"):
        from fair_envs.reproduction import demo as demonstration

        lower = demonstration.main(out=out, jobs=jobs, progress=progress)
    raise typer.Exit(0 if lower else 1)


# ---------------------------------------------------------------------------------------------------- bench


@app.command()
def bench(
    out: Annotated[Path | None, typer.Option(help="A new JSON file; default: runs/bench-N.json.")] = None,
    row: Annotated[list[str] | None, typer.Option(help="Measure only this row of the table; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure briefly, for a first impression only.")] = False,
    progress: ShowProgress = True,
) -> None:
    """Measure the package's speed and compare it with its targets."""
    from fair_envs import benchmark

    path = new_path(out, stem="bench", suffix=".json")
    rows = [benchmark.find_row(name) for name in row] if row else benchmark.ROWS
    effort = benchmark.QUICK if quick else benchmark.FULL
    with progress_bar("measuring", total=sum(r.repeats(effort) for r in rows), shown=progress) as each:
        results = [benchmark.run_row(r, effort, each=each) for r in rows]
    console = terminal()
    console.print(benchmark.table(results))
    for note in benchmark.notes(results):
        console.print(note, markup=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(benchmark.record(results, effort=effort), indent=2) + "\n")
    typer.echo(f"saved {path}")


if __name__ == "__main__":
    main()
