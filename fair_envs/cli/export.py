"""The command ``export``."""

import re
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fair_envs.cli.app import app
from fair_envs.cli.evaluate import (
    Deterministic,
    Side,
    check_deterministic,
    check_policies,
    in_environment,
    known_environment,
)
from fair_envs.cli.shared import RUNS, Param, ShowProgress, new_path, refuse
from fair_envs.support.parameters import checked
from fair_envs.support.progress import progress_bar
from fair_envs.support.seeds import TEST_SEEDS

Format = Literal["csv", "parquet", "minari", "pycfrl"]


@app.command()
def export(
    what: Annotated[str, typer.Argument(metavar="RUN|ID", help="The folder of a run, or the id of an environment.")],
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Environments only: the policy that plays, as in `evaluate`. [random]"),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="csv|parquet|minari|pycfrl", help="What is written, see above.")
    ] = "csv",
    labels: Annotated[
        str,
        typer.Option(
            metavar="revealed|all",
            help="Tables only: all adds a column with the labels of everyone, which policies do not receive.",
        ),
    ] = "revealed",
    episodes: Annotated[int, typer.Option(help="Number of episodes.", min=1)] = 64,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.", min=0)] = TEST_SEEDS,
    deterministic: Deterministic = False,
    param: Param = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new file; default: RUN/export-N.csv or runs/ID-N.csv. For minari, the name of a new dataset; "
            "default: fair-envs/ID/POLICY-vN."
        ),
    ] = None,
    progress: ShowProgress = True,
) -> None:
    """Write the decisions of a policy as data for other libraries, from the episodes that `evaluate` plays.

    csv and parquet: a table with a row for each person that a step affects. Its columns are the person's attributes,
    legitimate factors, group and features, the decision and its probabilities, the label, the outcome, and the reward.

    minari: a dataset of the episodes for offline reinforcement learning, with the record in its infos, in the folder
    where Minari looks for datasets.

    pycfrl: the trajectories of people as PyCFRL reads them, where episodes are about the same people throughout.

    parquet and minari need: pip install 'fair-envs[datasets]'
    """
    from fair_envs.assessment.policies import settings_of_run

    checked("format", form, Format)
    if form in ("minari", "pycfrl"):
        refuse({"labels": "" if labels == "revealed" else labels}, of=f"the format {form}")
    run = Path(what)
    if of_run := (run / "config.json").is_file():
        refuse({"policy": policy}, of="a run")
    env_id = str(settings_of_run(run)["env_id"]) if of_run else known_environment(what)
    name = what if of_run else policy or "random"
    check_deterministic(deterministic, [name])
    check_libraries(form)
    if form == "minari":
        place: Any = new_dataset(None if out is None else out.as_posix(), env_id=env_id, policy=name)
    else:
        suffix = {"pycfrl": ".pycfrl.csv"}.get(form, f".{form}")
        check_suffix(out, form)
        place = new_path(out, stem="export" if of_run else env_id, suffix=suffix, folder=run if of_run else RUNS)
    numbers: dict[str, Any] = {"episodes": episodes, "seed": seed, "deterministic": deterministic}
    side = in_environment(env_id, [name], param, task=None, beside=False, **numbers)
    check_policies(side)
    check_data(side, form, labels)
    with progress_bar("playing", total=episodes, unit="episodes", shown=progress) as each:
        write(side, form, place, labels=labels, each=each)
    typer.echo(f"saved {place}" if form != "minari" else f"saved the dataset {place}; read it with minari.load_dataset")


def check_data(side: Side, form: str, labels: Any) -> None:
    """Raise ValueError if an environment does not have the data of a format, before it is played."""
    from fair_envs.assessment.datasets import check_trajectories
    from fair_envs.assessment.exporting import check_labels
    from fair_envs.assessment.played import exactly, system_of

    (own,) = side.own.values()
    system = system_of(exactly(side.env_id, own))
    check_labels(system, labels)
    if form == "pycfrl":
        check_trajectories(system)


def write(side: Side, form: str, place: Any, *, labels: Any, each: Any) -> None:
    """Play a policy, and write its decisions to a file or into a dataset."""
    from fair_envs.assessment import export, export_minari, export_pycfrl
    from fair_envs.assessment.exporting import save_table
    from fair_envs.assessment.played import exactly

    (name,) = side.policies
    own, likely = side.own[name], side.deterministic
    numbers: dict[str, Any] = {"episodes": side.episodes, "seed": side.seed, "deterministic": likely, "each": each}
    if form == "minari":
        export_minari(side.env_id, name, place, parameters=own, **numbers)
    elif form == "pycfrl":
        save_table(export_pycfrl(exactly(side.env_id, own), name, **numbers), place)
    else:
        save_table(export(exactly(side.env_id, own), name, **numbers, labels=labels), place, form=form)


def check_suffix(out: Path | None, form: str) -> None:
    """Raise ValueError if a file's name is of another format."""
    wrong = (".csv", ".gz") if form == "parquet" else (".parquet",)
    if out is not None and out.suffix.lower() in wrong:
        raise ValueError(f"out must not end with {out.suffix} for {form}, got {str(out)!r}")


def check_libraries(form: str) -> None:
    """Raise ImportError if a library for a format is not installed."""
    if form == "minari":
        import h5py  # noqa: F401
        import minari  # noqa: F401
    else:
        import pandas  # noqa: F401
    if form == "parquet":
        import pyarrow  # noqa: F401


def new_dataset(name: str | None, *, env_id: str, policy: str) -> str:
    """Return the name of a Minari dataset that does not exist yet: the given one, or one with the next free number.

    Raises:
        ValueError: The given one exists, or is malformed.
    """
    from minari.storage import get_dataset_path

    from fair_envs.assessment.datasets import check_dataset

    if name is not None:
        check_dataset(name)
        return name
    names = [re.sub(r"[^0-9A-Za-z]+", "-", name).strip("-") for name in (env_id, Path(policy).resolve().name)]
    stem = f"fair-envs/{names[0] or 'env'}/{names[1] or 'policy'}"
    numbered = (f"{stem}-v{k}" for k in count())
    return next(found for found in numbered if not get_dataset_path(found).exists())
