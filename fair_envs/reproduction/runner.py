"""Runs cells in parallel processes, each once; what is done stays done."""

import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
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
