"""The command ``evaluate``."""

from collections.abc import Mapping, Sequence
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
    imported_id,
    new_path,
    refuse,
    show_report,
)
from fair_envs.support.parameters import meant
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import TEST_SEEDS


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
            metavar="protected|each",
            help="Environments only: which agents lose the attribute in the counterfactual world. protected: all "
            "agents that have it, at once. each: one agent at a time, as in the definition, in its own world. "
            "[protected]",
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

    RUN evaluates a trained policy by the measures of its method: for example, ppo of agents by every notion on their
    returns, f-ppo by its short-term and long-term measures, and pcn and lcn by their coverage sets.

    ID evaluates an environment, for each attribute. If agents are affected, it reports demographic parity, conditional
    statistical parity and, if the attribute can be removed, counterfactual fairness. If one decision-maker decides
    about people, it reports the group notions of the decisions.

    A policy is random, a run, module:function (observations (B, agents, ...) and uniform numbers (B, agents) to
    actions), or a scripted policy of the environment; an unknown name lists them.
    """
    from fair_envs.registration import TABLE

    if ":" in what and not Path(what).exists():
        what = imported_id(what)
    reported: dict[str, Any] = {"policy": policy, "attribute": attribute, "form": form, "flip": flip}
    if what in TABLE:
        options: dict[str, Any] = {"episodes": episodes, "seed": seed, "out": out, "progress": progress}
        evaluate_system(what, param, **reported, engine=engine or PROCESSES, jobs=jobs or 1, **options)
        return
    run = Path(what)
    if not (run / "config.json").is_file():
        raise ValueError(
            f"RUN|ID must be the folder of a run, with a config.json, or {', '.join(TABLE)}, "
            f"got {what!r}{meant(what, TABLE)}"
        )
    refuse({**reported, "engine": engine, "jobs": jobs}, of="a run")
    folder = new_path(out, stem="evaluation", folder=run)
    report = evaluate_run(run, param, episodes=episodes, seed=seed, progress=progress)
    show_report(
        report,
        folder,
        "The episodes are of one training; other training seeds may lie outside the intervals.",
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
    from fair_envs.evaluation import systems
    from fair_envs.experiments.executors import check_engine
    from fair_envs.registration import make_rules

    check_engine(engine, jobs)
    folder = new_path(out, stem=env_id)
    parameters = environment_parameters(env_id, param)
    rules, policies = make_rules(env_id, **parameters), policy or ["random"]
    check_system(rules, policies, attributes=attribute, form=form, flip=flip)
    form, flip = form or "difference", flip or "protected"
    given: dict[str, Any] = {"episodes": episodes, "seed": seed, "flip": flip}
    found = play_systems(env_id, parameters, policies, **given, engine=engine, jobs=jobs, progress=progress)
    about = {"environment": env_id, "parameters": parameters, "seed": seed}
    show_report(systems.report(found, attributes=attribute, form=form, flip=flip, about=about), folder)


def check_system(
    rules: Any, policies: Sequence[str], *, attributes: Sequence[str] | None, form: str | None, flip: str | None
) -> None:
    """Raise ValueError for options that cannot be measured, before any episode is played."""
    from fair_envs.evaluation import systems
    from fair_envs.experiments.players import policy_tried

    if not rules.multi_agent:
        refuse({"form": form, "flip": flip}, of="a decision-maker")
    elif not systems.can_flip(rules):
        refuse({"flip": flip}, of=f"{rules.name}, whose agents have no attribute that can be removed")
    systems.check_measure(rules.spec, attributes=attributes, form=form or "difference", flip=flip or "protected")
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
    """Return the episodes of each policy.

    Raises:
        RuntimeError: Episodes failed; the message contains each different error once.
    """
    from tempfile import TemporaryDirectory

    from fair_envs.experiments.executors import FailedCellsError, opened, run_cells
    from fair_envs.experiments.systems import joined, system_cells

    given: dict[str, Any] = {"episodes": episodes, "seed": seed, "flip": flip}
    each = {name: system_cells(env_id, parameters, name, **given) for name in policies}
    cells = [cell for own in each.values() for cell in own]
    with progress_bar("playing", total=len(cells), shown=progress) as played, TemporaryDirectory() as kept:
        try:
            with opened(engine, jobs=jobs, here=True) as workers:
                run_cells(cells, Path(kept), engine=workers, progress=False, each=played)
        except FailedCellsError as failed:
            raise RuntimeError("; ".join(dict.fromkeys(failed.errors.values()))) from failed
        return {name: joined(own, Path(kept)) for name, own in each.items()}
