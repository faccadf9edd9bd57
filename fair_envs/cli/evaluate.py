"""The commands ``evaluate`` and ``compare``."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import (
    PROCESSES,
    EngineOption,
    Param,
    ShowProgress,
    assigned,
    environment_parameters,
    new_path,
    permit_module_of,
    refuse,
    terminal,
)
from fair_envs.support.parameters import meant
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import TEST_SEEDS

ONE_TRAINING = "The episodes are of one training; other training seeds may lie outside the intervals."

SHORT_REPORT = 20
"""Rows of the longest report of a method that is printed below the table of evaluations."""


@dataclass(frozen=True)
class Side:
    """What is evaluated side by side: policies in one environment.

    Attributes:
        env_id: The environment.
        parameters: Its parameters: those of the training of the first run among the policies, or those of the task.
        own: The parameters of each policy: a run is evaluated in those of its own training.
        task: Id of the environment whose task is used.
        policies: The policies.
        episodes: Number of test episodes.
        seed: Seed of the first one.
        deterministic: Whether models of Stable-Baselines3 take their most likely actions.
    """

    env_id: str
    parameters: Mapping[str, Any]
    own: Mapping[str, Mapping[str, Any]]
    task: str
    policies: Sequence[str]
    episodes: int
    seed: int
    deterministic: bool = False


Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic", help="Zips of models: take the most likely actions, instead of sampling as in training."
    ),
]


@app.command()
def evaluate(
    what: Annotated[str, typer.Argument(metavar="RUN|ID", help="The folder of a run, or the id of an environment.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A policy that plays, see above; may be repeated. For a run: beside it."),
    ] = None,
    beside: Annotated[
        bool, typer.Option("--beside", help="Add columns for the random policy and the task's scripted policies.")
    ] = False,
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="Use the task of another environment; default: its own.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Environments only: also the notions per episode for these attributes."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Environments only: also the notions per episode, with parities in this form; an unknown name lists "
            "all. [difference]",
        ),
    ] = None,
    flip: Annotated[
        str | None,
        typer.Option(
            metavar="protected|each",
            help="Environments only: also the notions per episode; this says which agents lose the attribute in the "
            "counterfactual world. protected: all agents that have it, at once. each: one agent at a time, as in the "
            "definition, in its own world. [protected]",
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Number of test episodes.", min=1)] = 64,
    seed: Annotated[int, typer.Option(help="Seed of the first test episode.", min=0)] = TEST_SEEDS,
    deterministic: Deterministic = False,
    param: Param = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Print every number: of several policies, and of a long report of a run's method. The files always "
            "contain them.",
        ),
    ] = False,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Also write the decisions about each person, the table of `export`, of each policy."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="A new folder; default: RUN/evaluation-N or runs/ID-N.")] = None,
    engine: EngineOption = None,
    jobs: Annotated[int | None, typer.Option(help="Number of parallel evaluations. [1]", min=1)] = None,
    progress: ShowProgress = True,
) -> None:
    """Play test episodes and measure performance and fairness, with 95 % intervals and noise floors.

    RUN evaluates a trained policy in the environment of its training. ID evaluates policies in an environment. Both
    print the same table: performance, each group's pooled rate, gaps, short-term and long-term measures, other notions,
    welfare, and counterfactual twins where an attribute can be changed. See docs/evaluation.md. With several policies,
    only the main numbers are printed.

    The report of a run's method follows if it is short: for example, f-ppo with and without its shield, and pcn's
    coverage set. The files contain everything, and --all prints everything.

    A policy is random, a run, the zip of a Stable-Baselines3 model (loading it runs the code in it: only name files
    that you trust), module:function (observations (B, agents, ...) and uniform numbers (B, agents) to actions), or a
    scripted policy of the environment; an unknown name lists them.
    """
    run, shown = Path(what), [*(policy or ())]
    notions: dict[str, Any] = {"attribute": attribute, "form": form, "flip": flip}
    options: dict[str, Any] = {"engine": engine or PROCESSES, "jobs": jobs or 1, "progress": progress}
    numbers: dict[str, Any] = {"episodes": episodes, "seed": seed}
    check_deterministic(deterministic, shown)
    check_engine_and(task, engine or PROCESSES, jobs or 1)
    if record:
        import pandas  # noqa: F401  # before anything is played
    if (run / "config.json").is_file():
        refuse(notions, of="a run")
        given: dict[str, Any] = {"task": task, "beside": beside, "every": every, "record": record, "out": out}
        of_run(run, shown, param, deterministic=deterministic, numbers=numbers, options=options, **given)
        return
    env_id = known_environment(what)
    folder = new_path(out, stem=env_id)
    side = in_environment(env_id, shown, param, task=task, beside=beside, deterministic=deterministic, **numbers)
    check_policies(side)
    if any(notions.values()):
        check_notions(side, **notions)
    found = evaluated(side, **options)
    report = of_notions(side, **notions, **options) if any(notions.values()) else None
    save_all(found, report, folder)
    if record:
        save_record(side, folder, progress=progress)
    show_evaluations(found, every=every)
    show_report_and_folder(report, folder, shown=True)


def check_deterministic(deterministic: bool, policies: Sequence[str]) -> None:
    """Raise ValueError if most likely actions are wanted and there is no model that has them."""
    if deterministic and not any(name.endswith(".zip") for name in policies):
        given = ", ".join(policies) or "none"
        raise ValueError(f"--deterministic needs the zip of a model among the policies (--policy), got {given}")


def known_environment(what: str) -> str:
    """Return the id of an environment, also of one that only Gymnasium knows; import its module if it is named.

    Raises:
        ValueError: It is neither an id nor a run.
    """
    from fair_envs.assessment.policies import is_path, is_zip, seeds_in
    from fair_envs.registration import TABLE
    from fair_envs.tasks import environment_id

    if ":" in what and not Path(what).exists():
        name = environment_id(what)
        permit_module_of(what)
        return name
    import gymnasium as gym

    if what in TABLE or what in gym.registry:
        return what
    if is_path(what):
        found = "which has none" if Path(what).is_dir() else "which is no folder"
        if seeds := seeds_in(Path(what)):
            found = f"which has runs of several seeds: use one, such as {seeds[0]}, or fair-envs compare {what}"
        found = found if Path(what).exists() else "which does not exist"
        if is_zip(what):
            found = f"which is a model's zip: use fair-envs evaluate ID --policy {what}"
        raise ValueError(f"RUN|ID must be the folder of a run, with a config.json, or an id, got {what!r}, {found}")
    raise ValueError(
        f"RUN|ID must be the folder of a run, with a config.json, or {', '.join(TABLE)}, "
        f"got {what!r}{meant(what, TABLE)}"
    )


def check_engine_and(task: str | None, engine: str, jobs: int) -> None:
    """Raise an error for an engine that is not installed, or for an unknown task."""
    from fair_envs.experiments.executors import check_engine
    from fair_envs.tasks import environment_id

    check_engine(engine, jobs)
    if task is not None:
        environment_id(task)


def in_environment(
    env_id: str,
    policies: Sequence[str],
    param: Sequence[str] | None,
    *,
    task: str | None,
    beside: bool,
    episodes: int,
    seed: int,
    deterministic: bool = False,
) -> Side:
    """Return the policies to evaluate in an environment; without any, the random one."""
    from fair_envs.assessment.policies import scripted_in
    from fair_envs.evaluation.systems import check_once
    from fair_envs.experiments.evaluations import parameters_for
    from fair_envs.tasks import rules_for, task_of

    check_once("policy", policies)
    chosen = task_of(task or env_id)
    names = [*policies] or ["random"]
    variant = {name: text for name, text in assigned(param or (), what="param").items() if name == "variant"}
    base = parameters_for(env_id, chosen, names, variant)
    parameters = environment_parameters(env_id, param, base=base)
    if beside:
        names += ["random", *scripted_in(task_of(env_id), rules_for(env_id, **parameters))]
    own = {name: environment_parameters(env_id, param, base=trained_in(name, env_id, base)) for name in names}
    return Side(env_id, parameters, own, task or env_id, list(own), episodes, seed, deterministic)


def trained_in(policy: str, env_id: str, base: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of the training if a policy is a run of an environment, otherwise those in ``base``."""
    from fair_envs.assessment.policies import is_run, parameters_of_run

    found = parameters_of_run(Path(policy), env_id) if is_run(policy) else None
    return base if found is None else found


def check_policies(side: Side) -> None:
    """Raise ValueError for a policy that is unknown or does not act in the environment, and for an impossible task."""
    from fair_envs.assessment.evaluation import check
    from fair_envs.assessment.played import exactly, naming_task_parameters
    from fair_envs.experiments.players import policy_tried
    from fair_envs.registration import TABLE
    from fair_envs.tasks import task_of

    for name in side.policies:
        env = exactly(side.env_id, side.own[name])
        task = task_of(side.task)
        check(env, task=task)
        if side.env_id in TABLE:
            with naming_task_parameters(task, side.env_id, side.own[name]):
                policy = policy_tried(name, env)
            one_step(env, policy)


def one_step(rules: Any, policy: Any) -> None:
    """Play one step, in which a model rejects observations of another shape."""
    import numpy as np

    from fair_envs.evaluation import LanesWorld, begun, rollout

    next(rollout(LanesWorld(begun(rules, np.zeros(1, np.uint64)), append_group=policy.append_group), policy))


def of_run(
    run: Path,
    policies: Sequence[str],
    param: Sequence[str] | None,
    *,
    task: str | None,
    beside: bool,
    every: bool,
    record: bool,
    deterministic: bool,
    out: Path | None,
    numbers: Mapping[str, Any],
    options: Mapping[str, Any],
) -> None:
    """Evaluate a run and other policies beside it, and show the report of its method."""
    from fair_envs.baselines.methods import method_of

    folder, method = new_path(out, stem="evaluation", folder=run), method_of(run)
    found: list[Any] = []
    if method.policy is None:
        refuse(
            {"policy": list(policies), "beside": beside, "task": task, "record": record}, of=f"a run of {method.name}"
        )
    else:
        settings = method.load(run)[1]
        names = [str(run), *policies]
        given: dict[str, Any] = {"task": task, "beside": beside, "deterministic": deterministic}
        side = in_environment(settings.env_id, names, param, **given, **numbers)
        check_policies(side)
    report = own_report(method, run, param, progress=options["progress"], **numbers)
    if method.policy is not None:
        found = evaluated(side, **options)
    save_all(found, report, folder)
    if record:
        save_record(side, folder, progress=options["progress"])
    show_evaluations(found, every=every)
    short = report is not None and report.table().row_count <= SHORT_REPORT
    show_report_and_folder(report, folder, ONE_TRAINING, shown=every or short or not found)


def save_all(found: Sequence[Any], report: Any, folder: Path) -> None:
    """Save a report and evaluations, with plots if Matplotlib is installed, into a new folder."""
    from fair_envs.assessment.result import save, save_plots

    if report is not None:
        report.save(folder)
    if found:
        save(found, folder)
        with suppress(ImportError):
            save_plots(found, folder)


def save_record(side: Side, folder: Path, *, progress: bool) -> None:
    """Write the decisions about each person in the test episodes of each policy into a folder.

    They are in ``record.parquet``, or in ``record.csv.gz`` if pyarrow is not installed: the tables of
    `fair_envs.export`, with a column for the policy, and with the labels of everyone if they are known.
    """
    import pandas

    from fair_envs.assessment.exporting import Labels, export, knows_labels, save_table
    from fair_envs.assessment.played import exactly, system_of

    tables, episodes = [], side.episodes
    with progress_bar("recording", total=episodes * len(side.policies), unit="episodes", shown=progress) as each:
        for name in side.policies:
            env = exactly(side.env_id, side.own[name])
            labels: Labels = "all" if knows_labels(system_of(env)) else "revealed"
            numbers: dict[str, Any] = {"episodes": episodes, "seed": side.seed, "deterministic": side.deterministic}
            table = export(env, name, **numbers, labels=labels, each=each)
            table.insert(0, "policy", name)
            tables.append(table)
    form, suffix = ("parquet", "parquet") if find_spec("pyarrow") else ("csv", "csv.gz")
    save_table(pandas.concat(tables, ignore_index=True), folder / f"record.{suffix}", form=form)


def show_report_and_folder(report: Any, folder: Path, *notes: str, shown: bool) -> None:
    """Print a report, or where it is if it is not shown, and then the notes and the folder."""
    if report is not None and shown:
        typer.echo("")
        terminal().print(report.table())
        notes = (*report.footnotes(), *notes)
    elif report is not None:
        count = len(report.estimates)
        typer.echo(f"The report of the run's method has {count} more numbers, in report.csv, and printed with --all.")
    for note in notes:
        typer.echo(note)
    typer.echo(f"saved {folder}")


def show_evaluations(found: Sequence[Any], *, every: bool) -> None:
    """Print the table of evaluations and how to read it; of several policies, only the main numbers."""
    if not found:
        return
    from fair_envs.assessment.result import reading
    from fair_envs.experiments.comparing import MOST_COLUMNS, table_of
    from fair_envs.experiments.entries import notes_on
    from fair_envs.experiments.findings import told_bounds

    several = len(found) > 1
    width = MOST_COLUMNS if every else len(found)  # of all numbers, a table for a few policies each
    for first in range(0, len(found), width):
        terminal().print(table_of(found[first : first + width], every=every))
    if several and not every:
        typer.echo("\nThese are the main numbers; all others are in evaluation.csv, and printed with --all.")
    for one in found:
        for line in one.summary():
            typer.echo(f"{one.policy}: {line}" if several else line)
    notes = dict.fromkeys(note for one in found for note in one.notes)  # on the environment, not on the policies
    bounds = [one.policy for one in found if one.about.get("uses_truth", False)]
    if bounds and several:
        notes[told_bounds(bounds)] = None
    different = notes_on([one.about["parameters"] for one in found])
    for line in [*notes, *different, *reading(*found, main=several and not every)]:
        typer.echo(line)


def evaluated(side: Side, *, engine: str, jobs: int, progress: bool) -> list[Any]:
    """Return the evaluation of each policy.

    Raises:
        RuntimeError: Episodes failed; the message contains each different error once.
    """
    from fair_envs.experiments.evaluations import evaluation_cell, read_evaluation

    shared: dict[str, Any] = {"task": side.task, "episodes": side.episodes, "seed": side.seed}
    shared["deterministic"] = side.deterministic  # only models use it
    cells = [evaluation_cell(side.env_id, name, side.own[name], **shared) for name in side.policies]
    found = run_all(cells, engine=engine, jobs=jobs, progress=progress, read=read_evaluation)
    return [found[cell.key] for cell in cells]


def run_all(cells: Sequence[Any], *, engine: str, jobs: int, progress: bool, read: Any) -> dict[str, Any]:
    """Return what ``read`` returns for the folder of each cell, by its key.

    Raises:
        RuntimeError: Episodes failed; the message contains each different error once.
    """
    from tempfile import TemporaryDirectory

    from fair_envs.experiments.executors import FailedCellsError, opened, run_cells

    with progress_bar("playing", total=len(cells), shown=progress) as played, TemporaryDirectory() as kept:
        try:
            with opened(engine, jobs=jobs, here=True) as workers:
                run_cells(cells, Path(kept), engine=workers, progress=False, each=lambda done: played())
        except FailedCellsError as failed:
            raise RuntimeError("; ".join(dict.fromkeys(failed.errors.values()))) from failed
        return {cell.key: read(Path(kept) / cell.key) for cell in cells}


def own_report(method: Any, run: Path, param: Sequence[str] | None, *, episodes: int, seed: int, progress: bool) -> Any:
    """Return the report of a run's method; None: the table of all policies is enough."""
    from fair_envs.baselines.methods import Test

    if method.evaluated is None:
        return None
    model, settings = method.load(run)
    parameters = environment_parameters(settings.env_id, param, base=settings.parameters)
    changed = frozenset(assigned(param or (), what="param"))
    test = Test(run, episodes=episodes, seed=seed, parameters=parameters, changed=changed, progress=progress)
    return method.evaluated(model, settings, test)


# Notions per episode --------------------------------------------------------------------------------------------------


def of_notions(
    side: Side,
    *,
    attribute: Sequence[str] | None,
    form: Any,
    flip: Any,
    engine: str,
    jobs: int,
    progress: bool,
) -> Any:
    """Return the report of every notion per episode, for each attribute and policy."""
    from fair_envs.evaluation import systems
    from fair_envs.experiments.systems import read_system, system_cells

    form, flip = form or "difference", flip or "protected"
    given: dict[str, Any] = {"episodes": side.episodes, "seed": side.seed, "flip": flip}
    each = {name: system_cells(side.env_id, side.own[name], name, **given) for name in side.policies}
    cells = [cell for own in each.values() for cell in own]
    parts = run_all(cells, engine=engine, jobs=jobs, progress=progress, read=read_system)
    found = {name: systems.Episodes.joined([parts[cell.key] for cell in own]) for name, own in each.items()}
    about = {"environment": side.env_id, "parameters": side.parameters, "seed": side.seed}
    return systems.report(found, attributes=attribute, form=form, flip=flip, about=about)


def check_notions(side: Side, *, attribute: Sequence[str] | None, form: str | None, flip: str | None) -> None:
    """Raise ValueError for options that cannot be measured, before any episode is played."""
    from fair_envs.evaluation import systems
    from fair_envs.registration import make_rules

    rules = make_rules(side.env_id, **side.parameters)
    if not rules.multi_agent:
        refuse({"form": form, "flip": flip}, of="a decision-maker")
    elif not systems.can_flip(rules):
        refuse({"flip": flip}, of=f"{rules.name}, whose agents have no attribute that can be removed")
    systems.check_measure(rules.spec, attributes=attribute, form=form or "difference", flip=flip or "protected")


# Comparing ------------------------------------------------------------------------------------------------------------


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folders of runs in one environment, or files of their evaluations (.json)."
        ),
    ],
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="Use the task of another environment; default: that of the runs.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A policy beside the runs; may be repeated. Default: those in the files, or random and the scripted "
            "ones.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The row with which methods are compared, such as elbert or 'ppo (steps=20000)'. Default: ppo, or "
            "else the trained method with the highest performance.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for tables and plots; default: runs/compare-N.")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="Number of test episodes; default: as in the stored evaluations, or 64.", min=1)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help=f"Seed of the first one; default: as in the stored evaluations, or {TEST_SEEDS}.", min=0),
    ] = None,
    param: Param = None,
    progress: ShowProgress = True,
) -> None:
    """Compare runs of any methods with each other, and with random and scripted policies.

    Runs of one method with different seeds are one row, with intervals over the seeds. Evaluations are stored in the
    folders of the runs, so an interrupted comparison resumes when it is started again.

    Files of evaluations are used without playing: evaluation.json of `fair-envs evaluate`, and evaluations.json, which
    every comparison saves and which makes the same comparison again.

    The table, a plot of performance against the gap, and a plot of the groups' rates are saved. Below the table it says
    who gains and who loses compared with reward-only PPO or another reference, and which methods beat the best scripted
    policy. Scripted policies that use the ground truth are bounds.
    """
    from fair_envs.experiments.comparing import compare as compared
    from fair_envs.experiments.entries import entries_of
    from fair_envs.tasks import environment_id

    if task is not None:
        environment_id(task)
    folder = new_path(out, stem="compare")
    first = entries_of(runs)[0]
    every = environment_parameters(first.env_id, param, base=first.parameters) if param else {}
    found = compared(
        runs,
        task=task,
        policies=policy,
        out=folder,
        episodes=episodes,
        seed=seed,
        reference=reference,
        parameters={name: every[name] for name in assigned(param or (), what="param")},
        progress=progress,
    )
    show_comparison(found)
    typer.echo(f"saved {folder}")


def show_comparison(found: Any) -> None:
    """Print the table of a comparison, and the sentences below it."""
    terminal().print(found.table())
    for line in found.footnotes():
        typer.echo(line)
