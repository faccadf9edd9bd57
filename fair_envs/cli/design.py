"""The command ``design``."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fair_envs.cli.app import app
from fair_envs.cli.shared import (
    ID_HELP,
    PROCESSES,
    EngineOption,
    Param,
    ShowProgress,
    assigned,
    environment_parameters,
    imported_id,
    new_path,
    resumable,
    terminal,
    trusting_program,
)
from fair_envs.support.progress import progress_bar

EnvIdOption = Annotated[str | None, typer.Argument(metavar="ID", help=f"{ID_HELP} Not needed with --resume.")]
RangeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        "-r",
        metavar="NAME=LOW:HIGH",
        help="A parameter and its search space; or NAME=LOW:HIGH:STEP, NAME=LOW:HIGH:log, NAME=OPTION|OPTION, "
        "where an empty OPTION is none; may be repeated.",
    ),
]
ObjectiveOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A number to optimise, see above; the first one decides; may be repeated.",
    ),
]
PolicyOption = Annotated[str | None, typer.Option(metavar="NAME", help="The policy, as in `evaluate`. [random]")]
SamplerOption = Annotated[
    str | None,
    typer.Option(metavar="tpe|cma-es|nsga-ii|random", help="The search algorithm. [tpe]"),
]
TrialsOption = Annotated[int | None, typer.Option(help="Number of configurations to try. [50]")]
BatchOption = Annotated[int | None, typer.Option(help="Number of configurations proposed at once. [8]")]
EpisodesOption = Annotated[int | None, typer.Option(help="Largest number of episodes per configuration. [64]")]
LeastEpisodesOption = Annotated[int | None, typer.Option(help="Smallest number of episodes. [16]")]
PrecisionOption = Annotated[
    float | None,
    typer.Option(help="Target standard error, in standard deviations of the original configuration. [0.15]"),
]
PruneOption = Annotated[
    bool | None, typer.Option(help="Prune configurations that are clearly worse than another one. [True]")
]
FinalistsOption = Annotated[
    int | None,
    typer.Option(help="Number of best configurations replayed with four times the episodes. [5]"),
]
PriceOption = Annotated[
    float | None,
    typer.Option(help="Largest loss of total return allowed, as a share of the original's total return. [any]"),
]
HeldOutOption = Annotated[
    int | None, typer.Option(help="Number of episodes for the comparison with the original configuration. [256]")
]
FlipOption = Annotated[
    str | None,
    typer.Option(metavar="protected|each", help="Which agents lose the attribute, as in `evaluate`. [protected]"),
]
SeedOption = Annotated[int | None, typer.Option(help="Random seed; equal seeds give equal results. [0]")]
ConfigOption = Annotated[Path | None, typer.Option(metavar="FILE.toml", help="A settings file; options override it.")]
StorageOption = Annotated[
    str | None, typer.Option(metavar="URL", help="A database shared by several machines; default: OUT/trials.db.")
]
NameOption = Annotated[str | None, typer.Option(help="Name of the search in the database; default: ID.")]
JobsOption = Annotated[int, typer.Option(help="Number of parallel batches of episodes.", min=1)]
OutOption = Annotated[Path | None, typer.Option(help="A new folder; default: runs/design-ID-N.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the search in the folder --out.")]
ChooseOption = Annotated[
    int | None, typer.Option(help="Number of the trial to choose instead of the best one in the first objective.")
]


# One argument for each option, which makes it longer than a screen.
@app.command()
def design(
    env_id: EnvIdOption = None,
    param: Param = None,
    range_: RangeOption = None,
    objective: ObjectiveOption = None,
    policy: PolicyOption = None,
    sampler: SamplerOption = None,
    trials: TrialsOption = None,
    batch: BatchOption = None,
    episodes: EpisodesOption = None,
    least_episodes: LeastEpisodesOption = None,
    precision: PrecisionOption = None,
    prune: PruneOption = None,
    finalists: FinalistsOption = None,
    price: PriceOption = None,
    held_out: HeldOutOption = None,
    flip: FlipOption = None,
    seed: SeedOption = None,
    config: ConfigOption = None,
    storage: StorageOption = None,
    name: NameOption = None,
    engine: EngineOption = None,
    jobs: JobsOption = 2,
    out: OutOption = None,
    resume: ResumeOption = False,
    choose: ChooseOption = None,
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
    given = {**texts, **counts, "precision": precision, "prune": prune, "price": price}
    given = {one: value for one, value in given.items() if value is not None}
    if resume:
        others = {"ID": env_id, "param": param, "range": range_, "config": config}
        search, folder = search_again(out, given | {one: v for one, v in others.items() if v is not None})
    else:
        search = search_of(env_id, param, range_, config, given)
        folder = new_path(out, stem=f"design-{search.env_id}")
    reported = {
        "--storage": storage and "URL",
        "--name": name,
        "--trials": trials,
        "--price": price,
        "--choose": choose,
    }
    reported |= {"--engine": engine, "--jobs": jobs}
    words = [str(word) for pair in reported.items() if pair[1] is not None for word in pair]
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
    from fair_envs.experiments.players import policy_tried
    from fair_envs.search.settings import Search, read_toml

    reported = read_toml(config) if config is not None else {}
    chosen = env_id or reported.get("env_id")
    if chosen is None:
        raise ValueError("ID must be given, as in: fair-envs design FairTraffic-v0 --range signal_period=4:40")
    chosen = imported_id(chosen)
    reported |= {"env_id": chosen, **given}
    reported["parameters"] = environment_parameters(chosen, param, base=reported.get("parameters"))
    reported["ranges"] = {**reported.get("ranges", {}), **assigned(ranges or (), what="range")}
    search = Search(**reported)
    policy_tried(search.policy, search.rules())
    return search


def search_again(out: Path | None, given: Mapping[str, Any]) -> tuple[Any, Path]:
    """Return the search in a folder; only the number of trials and the price may change."""
    from fair_envs.search.settings import CHANGEABLE, Search

    if out is None:
        raise ValueError("out must name the folder of the search to resume, got none")
    for name, value in given.items():
        if name not in CHANGEABLE:
            raise ValueError(f"{name} must be left out when a search is resumed, it keeps its settings; got {value!r}")
    return Search.read(out).again(**given), out
