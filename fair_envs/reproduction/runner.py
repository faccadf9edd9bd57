"""Runs cells in parallel processes, each once; what is done stays done."""

import multiprocessing
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from fair_envs.reproduction.experiment import Job, run_cell

THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class FailedCellsError(RuntimeError):
    """Raised when every other cell is done and some have failed."""


def run_cells(cells: Sequence[Job], folder: Path, *, jobs: int = 1, progress: bool = True) -> dict[str, Path]:
    """Run the cells that have no result yet and return each cell's folder by its key.

    Each worker process computes on one thread: with as many workers as cores that is faster than sharing them.

    Args:
        cells: Equal ones run once.
        folder: Where the results are kept, one folder a cell, named by its key.
        jobs: How many worker processes.
        progress: Whether to show a bar with the time left.

    Raises:
        ValueError: ``jobs`` is below 1.
        FailedCellsError: Some cells failed; the results of the others are kept, and a second call runs only those that
            are missing.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    by_key = {cell.key: cell for cell in cells}
    waiting = [cell for cell in by_key.values() if not (folder / cell.key / "cell.json").exists()]
    failures: list[str] = []
    with tqdm(total=len(by_key), initial=len(by_key) - len(waiting), unit="cell", disable=not progress) as bar:
        if waiting:
            with _pool(jobs) as pool:
                running = {pool.submit(run_cell, cell, folder): cell for cell in waiting}
                for future in _finished(running, pool):
                    error = future.exception()
                    if error is not None:
                        failures.append(f"{running[future].key}: {type(error).__name__}: {error}")
                    bar.update()
    if failures:
        raise FailedCellsError(
            f"{len(failures)} of {len(by_key)} cells failed; run again for these:\n" + "\n".join(failures)
        )
    return {key: folder / key for key in by_key}


def open_study(
    out: Path,
    *,
    scale: str,
    scales: Collection[str],
    seeds: int | None = None,
    resume: bool = False,
    merge_from: Sequence[Path] = (),
) -> Path:
    """Return the folder of a study's cells, in a new folder or in one that is gone on with.

    Args:
        out: The study's folder.
        scale: How much of the study is run; a folder belongs to one scale.
        scales: The scales that there are.
        seeds: Training seeds of each cell, if not the scale's.
        resume: Go on in a folder that exists.
        merge_from: Folders of the same study, run on other machines, whose cells are taken over.

    Raises:
        ValueError: An unknown scale or one that the folder was not begun with, no seed, or a folder to take cells from
            that has none.
        FileExistsError: The folder exists, without ``resume``.
    """
    if scale not in scales:
        raise ValueError(f"scale must be one of {', '.join(map(repr, scales))}, got {scale!r}")
    if seeds is not None and seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    missing = [str(source) for source in merge_from if not (source / "cells").is_dir()]
    if missing:
        raise ValueError(
            f"merge_from (--merge) must name folders of this study, got {', '.join(missing)} without cells"
        )
    if out.exists() and not resume:
        raise FileExistsError(f"out must be a new folder, or be resumed with resume=True (--resume), got {out}")
    begun = out / "scale.txt"  # a report of another scale would be written over
    if begun.is_file() and begun.read_text() != scale:
        raise ValueError(f"scale must be {begun.read_text()!r} to resume {out}, got {scale!r}")
    folder = out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    begun.write_text(scale)
    merge([source / "cells" for source in merge_from], folder)
    return folder


def command_of(paper: str, *, scale: str, seeds: int, usual: int) -> str:
    """Return the command that runs a study, of so many training seeds where the scale's usual number is another."""
    chosen = "" if seeds == usual else f" --seeds {seeds}"
    return f"fair-envs reproduce {paper} --scale {scale}{chosen}"


def merge(sources: Sequence[Path], folder: Path) -> int:
    """Bring together the cells that several machines ran; return how many are new.

    Args:
        sources: Folders of results; a cell that is being run there, in a folder whose name begins with a dot, is left.
        folder: Where they are brought; what is there already stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    new = 0
    for found in sorted(path.parent for source in sources for path in source.glob("[!.]*/cell.json")):
        if not (folder / found.name).exists():
            shutil.copytree(found, folder / f".{found.name}.part", dirs_exist_ok=True)
            os.replace(folder / f".{found.name}.part", folder / found.name)
            new += 1
    return new


def _finished(running: dict["Future[Path]", Job], pool: ProcessPoolExecutor) -> Iterator["Future[Path]"]:
    """Yield the futures as they finish; on an interruption drop those that have not begun."""
    try:
        yield from as_completed(running)
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield worker processes that compute on one thread each."""
    kept = {name: os.environ.get(name) for name in THREAD_COUNTS}
    os.environ.update(dict.fromkeys(THREAD_COUNTS, "1"))
    try:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield pool
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
