"""The command line ``fair-envs``.

Heavy libraries are imported by the commands that need them: ``list`` and ``show`` work after a plain installation.
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
"""The extra that brings each library that a plain installation lacks."""

WRONG_INPUT = (ValueError, TypeError, ImportError, OSError)
INTERRUPTED = 130  # the exit code of what Ctrl-C ends
RUNS = Path("runs")
ANYWHERE = ("--debug", "--trust")  # general options that may stand behind a command too


# --------------------------------------------------------------------------------------------------- errors


class Commands(TyperGroup):
    """The commands; what a caller did wrong is told in a line on standard error."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order in which they are used."""
        first = ("list", "show", "play", "train", "evaluate")
        return [*first, *(name for name in super().list_commands(ctx) if name not in first)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments: general options may stand anywhere, and import paths that were typed may be imported."""
        anywhere = [argument for argument in args if argument in ANYWHERE]
        with suppress(FileNotFoundError):  # the current folder has been removed
            permit(Permissions(typed=typed_in(args), folder=os.getcwd()))
        return super().parse_args(ctx, [*anywhere, *(argument for argument in args if argument not in ANYWHERE)])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with 2 after wrong input and with 1 after a failure, without a traceback."""
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
    """Return what an error says, with the install command if a library is missing."""
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
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Import the functions (module:function) that the settings of a stored run or search name. This runs "
            "their code: use it only for files whose author you trust.",
        ),
    ] = False,
) -> None:
    """Environments for the study of fairness in reinforcement learning, and what measures and trains in them."""
    if trust:
        permit(permissions()._replace(stored=True))


# ------------------------------------------------------------------------------------------- shared arguments

EnvId = Annotated[str, typer.Argument(metavar="ID", help="An environment, see `fair-envs list`.")]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the environment; may be repeated."),
]
Seed = Annotated[int, typer.Option(help="What follows is a function of it.", min=0)]
PROCESSES = "processes"
EngineOption = Annotated[
    str | None,
    typer.Option(metavar="processes|ray", help="Where the work is done: on this machine, or on a Ray cluster."),
]


def assigned(pairs: Sequence[str], *, what: str) -> dict[str, str]:
    """Return names and values.

    Raises:
        ValueError: A text that is no ``name=value``, or a name given twice.
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
    """Return the environment's parameters as values of their fields' types.

    Args:
        env_id: The environment.
        pairs: Texts ``name=value``.
        base: Parameters that hold where no text says otherwise.

    Raises:
        ValueError: An unknown id or variant, or a value outside its range.
        TypeError: An unknown parameter.
    """
    from fair_envs.pages import rules_class

    texts = assigned(pairs or (), what="param")
    values: dict[str, Any] = {**(base or {}), **texts}
    rules = rules_class(env_id, variant=values.get("variant"))
    fields = get_type_hints(rules.Params, include_extras=True)
    values |= {name: value_of(text, fields.get(name, str)) for name, text in texts.items()}
    rules(**{name: value for name, value in values.items() if name != "variant"})  # refuses what does not fit
    return values


def new_path(path: Path | None, *, stem: str, suffix: str = "", folder: Path = RUNS) -> Path:
    """Return a path that does not exist yet: the given one, or the next free number in a folder.

    Raises:
        ValueError: The given one exists.
    """
    if path is None:
        numbered = (folder / f"{stem}-{k}{suffix}" for k in range(1, 1_000_000))
        return next(candidate for candidate in numbered if not candidate.exists())
    if path.exists():
        raise ValueError(f"out must be a new path, got {str(path)!r}, which exists")
    return path


def terminal() -> Console:
    """Return where tables are printed: as wide as the terminal, and wide where there is none."""
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
        typer.Argument(
            metavar="ID|notions|methods", help="An environment, the notions of fairness, or the methods of training."
        ),
    ],
    variant: Annotated[str | None, typer.Option(help="Which of the environment's other rules.")] = None,
) -> None:
    """Show an environment's page, the notions that are measured, or which method trains on which environment."""
    from fair_envs.metrics import notions_table
    from fair_envs.pages import environment_page

    if what == "notions":
        typer.echo(notions_table())
    elif what == "methods":
        show_methods()
    else:
        terminal().print(environment_page(what, variant=variant))


def show_methods() -> None:
    """Print every method with the environments that it trains on, and why it does not train on the others."""
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
        typer.Option("--policy", "--run", metavar="NAME", help="Who plays: random, a run, or as in `evaluate`."),
    ] = "random",
    agent: Annotated[str, typer.Option(help="The agent on the keyboard, or none: only watch.")] = "agent_0",
    seed: Seed = 0,
    frames: Annotated[int | None, typer.Option(help="Stop after so many steps.", min=1)] = None,
    gif: Annotated[Path | None, typer.Option(help="Save a film here instead of opening a window.")] = None,
) -> None:
    """Play an environment in a window, with one agent on the keyboard, or save a film of it."""
    from fair_envs import playing

    rules, player = world_and_policy(env_id, param, policy=policy)
    if gif is None:
        index = playing.agent_index(rules, agent)
        if index is not None:
            keys = ", ".join(f"{key}: {action}" for key, action in playing.described_keys(rules).items())
            typer.echo(f"{agent} is yours. {keys}; escape: leave")
        playing.play_in_window(rules, player, seed=seed, agent=index, steps=frames)
        return
    path, count = new_path(gif, stem="film"), frames or 200
    with progress_bar("drawing", total=count) as drawn:
        shown = playing.pictures(rules, player, seed=seed, count=count, each=drawn)
        playing.save_film(shown, path, fps=rules.fps)
    typer.echo(f"saved {path}")


def world_and_policy(env_id: str, param: Sequence[str] | None, *, policy: str) -> tuple[Any, Any]:
    """Return the rules and who plays: somebody by name, or a run in its own world but for the given parameters."""
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


Folder = Annotated[Path | None, typer.Option(help="Folder of the run: a new one; runs/METHOD-ID-N if left out.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder --out.")]
ShowProgress = Annotated[bool, typer.Option(help="Whether to show the time left.")]

FIRST_NAMES = {"steps": "--total-timesteps", "lanes": "--n-envs"}
"""The names of options that users of other libraries try first, by the setting; its own name works too."""


class Methods(TyperGroup):
    """The methods as commands, each with an option for each of its settings; they are read when they are needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the methods' names."""
        from fair_envs.baselines import methods

        return methods.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command that trains a method.

        Raises:
            ValueError: There is no such method.
        """
        from fair_envs.baselines import methods

        return typer.main.get_command(method_app(methods.named(cmd_name)[::-1]))


training = typer.Typer(cls=Methods, rich_markup_mode=None, no_args_is_help=False)
app.add_typer(training, name="train")


@training.callback(invoke_without_command=True)
def train(ctx: typer.Context, out: Folder = None, resume: Resume = False, progress: ShowProgress = True) -> None:
    """Train a method: fair-envs train METHOD ID. Each method has its own options: fair-envs train METHOD --help.

    An interrupted training goes on with: fair-envs train --out RUN --resume
    """
    if ctx.invoked_subcommand is not None:
        if resume or out is not None:
            raise ValueError("out and resume must stand behind the method, as in: fair-envs train ppo ID --out RUN")
        return
    if not resume:
        raise ValueError("METHOD and ID must be given, as in: fair-envs train ppo FairHarvest-v0")
    start_training(None, None, None, out=out, resume=True, progress=progress, preset=None, texts={})


def method_app(named: Sequence[Any]) -> typer.Typer:
    """Return the command that trains the methods of a name, with an option for each of their settings."""
    about = " Or, on other environments: ".join(method.summary for method in named)

    def command(
        env_id: Annotated[
            str | None, typer.Argument(metavar="ID", help="An environment, see `fair-envs list`.")
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
    """Return the annotation of the option for each setting of some methods, and for their presets."""
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
            help_ = f"What holds where nothing else is given. {told}. [{first}]"
            metavar = "|".join(method.presets)
            options["preset"] = Annotated[str | None, typer.Option(metavar=metavar, help=help_)]
    return options


def default_text(default: Any) -> str:
    """Return a default as it would be typed."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ",".join(map(str, default)) if isinstance(default, (list, tuple)) else str(default)


UNASKED = ("worlds",)  # settings that the command line has no option for


def option(name: str, kind: Any, meaning: str, default: str) -> Any:
    """Return the annotation of an option; its text is read by `value_of`, so that the field refuses a wrong one."""
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
    """Begin a training or go on with one; what is not given for the latter is as it was.

    Raises:
        ValueError: Something is missing, wrong or does not fit the run.
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
            raise ValueError(f"preset must be left out where a run is resumed, it keeps its settings; got {preset!r}")
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
    """Return the settings that were given, as values of their types.

    Raises:
        ValueError: One that means nothing to the method.
    """
    kinds, known = get_type_hints(method.settings, include_extras=True), {one.name for one in method.fields()}
    for name, text in texts.items():
        if name not in known:
            raise ValueError(f"{name} must be left out for {method.name} on this environment, got {text}")
    return {name: value_of(text, kinds[name]) for name, text in texts.items()}


def trusting_program(settings: Mapping[str, Any], *, but: Sequence[str] = ()) -> str:
    """Return how the command line is called where these settings are read from a file again; see `paths_in`."""
    return "fair-envs --trust" if paths_in(settings, but=but) else "fair-envs"


# ------------------------------------------------------------------------------------------------- evaluate


@app.command()
def evaluate(
    what: Annotated[str, typer.Argument(metavar="RUN|ID", help="The folder of a training, or an environment.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of an environment: who plays, see below; may be repeated."),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of an environment: which attributes; the sensitive ones if left out."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Of an environment: how parities are told; a wrong name lists them. [difference]"
        ),
    ] = None,
    flip: Annotated[
        str | None,
        typer.Option(
            metavar="carriers|each",
            help="Of an environment: who loses the attribute in the counterfactual world: all who have it at once, or "
            "each alone, as the definition has it, in as many worlds as there are agents. [carriers]",
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Test episodes.", min=1)] = 64,
    seed: Annotated[int, typer.Option(help="Of the first test episode.", min=0)] = TEST_SEEDS,
    param: Param = None,
    out: Annotated[Path | None, typer.Option(help="A new folder; RUN/evaluation-N or ID-N if left out.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int | None, typer.Option(help="Of an environment: how many batches at once; 1.", min=1)] = None,
    progress: ShowProgress = True,
) -> None:
    """Play test episodes and measure notions of fairness, with 95 % intervals.

    RUN: those of a trained policy, with every notion. ID: those of an environment, attribute by attribute: of agents,
    demographic parity, conditional statistical parity and, where the attribute can be taken away, counterfactual
    fairness; of a decision-maker, the group notions on what is decided about people. Who plays is random, a run,
    module:function (observations (B, agents, ...) and uniform numbers (B, agents) to actions), or a driver of
    FairTraffic; a wrong name lists them.
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
        report, folder, "Intervals are over test episodes of one training: another training seed may lie outside them."
    )


def evaluate_run(run: Path, param: Sequence[str] | None, *, episodes: int, seed: int, progress: bool) -> Any:
    """Return the report on a run's policy."""
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
    """Raise ValueError for an option that is given where it means nothing."""
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
    """Let each policy play the same episodes of an environment, and measure."""
    from fair_envs import systems
    from fair_envs.experiments.executors import check_engine
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
    """Raise ValueError for what cannot be measured of a system, before anything is played."""
    from fair_envs import systems
    from fair_envs.players import policy_tried

    if not rules.multi_agent:
        refuse({"form": form, "flip": flip}, of="a decision-maker")
    elif not systems.can_flip(rules):
        refuse({"flip": flip}, of=f"{rules.name}, whose agents have no attribute that can be taken away")
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

    from fair_envs.experiments.executors import opened, run_cells
    from fair_envs.experiments.systems import joined, system_cells

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
        str | None, typer.Argument(metavar="ID", help="An environment; a search to resume knows it.")
    ] = None,
    param: Param = None,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            "-r",
            metavar="NAME=LOW:HIGH",
            help="A parameter to search; or NAME=LOW:HIGH:STEP, NAME=LOW:HIGH:log, NAME=OPTION|OPTION, where an "
            "empty OPTION is none; repeat it.",
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What should go down or up, see above; the first one decides; repeat it."),
    ] = None,
    policy: Annotated[str | None, typer.Option(metavar="NAME", help="Who plays, as in `evaluate`. [random]")] = None,
    sampler: Annotated[
        str | None, typer.Option(metavar="tpe|cma-es|nsga-ii|random", help="What proposes configurations. [tpe]")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Configurations. [50]")] = None,
    batch: Annotated[int | None, typer.Option(help="Configurations that are proposed at once. [8]")] = None,
    episodes: Annotated[int | None, typer.Option(help="Of a configuration, at most. [64]")] = None,
    least_episodes: Annotated[int | None, typer.Option(help="And at least. [16]")] = None,
    precision: Annotated[
        float | None,
        typer.Option(help="Standard errors that suffice, in the original's standard deviations. [0.15]"),
    ] = None,
    hopeless: Annotated[
        bool | None, typer.Option(help="Whether to stop what another configuration is surely better than. [True]")
    ] = None,
    finalists: Annotated[
        int | None, typer.Option(help="Best ones in the first objective, played four times as long in the end. [5]")
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(help="The share of the original's total return that the chosen one may cost at most. [any]"),
    ] = None,
    held_out: Annotated[
        int | None, typer.Option(help="Episodes of the comparison with the original configuration. [256]")
    ] = None,
    flip: Annotated[
        str | None,
        typer.Option(metavar="carriers|each", help="Who loses the attribute in counterfactual worlds. [carriers]"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What follows is a function of it. [0]")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="Settings that are not given here.")] = None,
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="A database for several machines; OUT/trials.db if left out.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the search in that database; ID if left out.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int, typer.Option(help="Batches of episodes at once.", min=1)] = 2,
    out: Annotated[Path | None, typer.Option(help="A new folder; runs/design-ID-N if left out.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the search in the folder --out.")] = False,
    choose: Annotated[
        int | None, typer.Option(help="The trial to choose, in place of the best one in the first objective.")
    ] = None,
    progress: ShowProgress = True,
) -> None:
    """Search for a configuration in which people fare more alike, and say what it costs.

    Objectives are the numbers that `evaluate` reports, such as demographic_parity:human_driven or, by the code of a
    value, conditional_parity:human_driven:fast=1; total_return, return_with:ATTRIBUTE, return_without:ATTRIBUTE; of
    agents, utilitarian, maximin, nash_welfare, gini, jain, atkinson; a wrong name lists an environment's. Without one,
    parity and the total return are searched. Every configuration meets the same seeds. The chosen one is compared with
    the original on other seeds.
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
    typer.echo(f"Trial {found.chosen.number}, over {search.held_out} pairs of episodes that no trial met.")
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
    """Return a new search: what is given, then what a file says."""
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
    """Return the search in a folder; only the number of trials and the price may be others now."""
    from fair_envs.search.settings import FREE, Search

    if out is None:
        raise ValueError("out must name the folder of the search to resume, got none")
    for name, value in given.items():
        if name not in FREE:
            raise ValueError(f"{name} must be left out where a search is resumed, it keeps its settings; got {value!r}")
    return Search.read(out).again(**given), out


# ----------------------------------------------------------------------------------------------- reproduce


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="For example lamalfa2025.")],
    scale: Annotated[
        str, typer.Option(metavar="smoke|small|full", help="A minute, an hour or so, or the paper's protocol.")
    ] = "smoke",
    out: Annotated[Path | None, typer.Option(help="Where results are kept; runs/PAPER-SCALE if left out.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int, typer.Option(help="Cells that are run at once.", min=1)] = 2,
    seeds: Annotated[int | None, typer.Option(help="Training seeds of each cell, if not the scale's.", min=1)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")] = False,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Take over this folder's cells, run elsewhere; may be repeated."),
    ] = None,
    progress: ShowProgress = True,
) -> None:
    """Run a paper's experiments again and set its numbers beside ours."""
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
    """Say how to go on if Ctrl-C, SIGTERM or SIGHUP ends what is done, unless nothing has been kept: no ``begun``."""
    try:
        with stoppable():
            yield
    except KeyboardInterrupt as stopped:
        kept = begun is None or begun.exists()
        typer.echo(f"\nstopped; go on with: {command}" if kept else "\nstopped before anything was kept", err=True)
        raise typer.Exit(128 + stopped.number if isinstance(stopped, StoppedError) else INTERRUPTED) from None


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where results are kept; trainings that are there are not run again.")] = (
        RUNS / "demo"
    ),
    jobs: Annotated[int, typer.Option(help="Worker processes.", min=1)] = 2,
    progress: ShowProgress = True,
) -> None:
    """Train PPO and fair-PPO on FairHarvest, compare them, and save plots and a film."""
    with resumable(f"fair-envs demo --out {out}"):
        from fair_envs.reproduction import demo as demonstration

        lower = demonstration.main(out=out, jobs=jobs, progress=progress)
    raise typer.Exit(0 if lower else 1)


# ---------------------------------------------------------------------------------------------------- bench


@app.command()
def bench(
    out: Annotated[Path | None, typer.Option(help="A new JSON file; runs/bench-N.json if left out.")] = None,
    row: Annotated[list[str] | None, typer.Option(help="Only this row of the table; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure briefly: a look, no result.")] = False,
    progress: ShowProgress = True,
) -> None:
    """Measure how fast the package is, beside the speeds it promises."""
    from fair_envs.benchmark import rows as benchmark

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
