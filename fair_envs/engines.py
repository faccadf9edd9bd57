"""Where cells run: in processes on this machine, or on a Ray cluster. What they give is the same, bit for bit.

A cell whose worker dies is run again. With Ray the results come to the machine that asked, so that no folder has to be
shared; ``RAY_ADDRESS`` names a cluster, without it one begins on this machine.
"""

import logging
import multiprocessing
import os
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from fair_envs.aliases import OnProgress
from fair_envs.cells import Job, is_done, run_cell
from fair_envs.files import appearing
from fair_envs.imports import Permissions, permissions, permit
from fair_envs.progress import progress_bar
from fair_envs.stopping import SIGNALS, disregard, raise_pending, stoppable

EngineName = Literal["processes", "ray"]

THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
DEATHS = 3  # of its workers before a cell is given up
DIED = f"DeadWorkerError: its worker died {DEATHS} times; is there enough memory?"
CLEANING = 2.0  # seconds in which an interrupted worker may remove what is half done
ANSWER = 10.0  # seconds in which a cluster's address has to answer


class FailedCellsError(RuntimeError):
    """Raised when every other cell is done and some have failed."""


class InterruptedCellError(SystemExit):
    """Raised in a worker that is to end: what is half done is removed on the way."""


class Done(NamedTuple):
    """A cell that has been run, and what was raised: its type and message, since not every error can be pickled."""

    cell: Job
    error: str | None


class Engine(ABC):
    """Workers that run cells until they are closed."""

    @abstractmethod
    def run(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Run cells whose results are not there, and yield each when its result is."""

    @abstractmethod
    def close(self) -> None:
        """Let the workers go; cells that have not begun are dropped."""

    def interrupt(self) -> None:
        """Let the workers go without waiting for the cells that run."""
        self.close()


class Here(Engine):
    """This process: one cell after another."""

    def run(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Run cells whose results are not there, and yield each when its result is."""
        for cell in cells:
            yield Done(cell, attempt(cell, folder))

    def close(self) -> None:
        """Do nothing."""


class Processes(Engine):
    """Processes on this machine, which compute on one thread each.

    Args:
        jobs: How many.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def run(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Run cells whose results are not there, and yield each when its result is."""
        left, deaths = {cell.key: cell for cell in cells}, Counter[str]()
        with environment_of_workers():
            while left:
                # A worker's death ends the others' work too. Who may have been its cause runs alone from then on.
                fresh = [cell for key, cell in left.items() if not deaths[key]]
                begun = fresh or list(left.values())[:1]
                for done in self._finished(begun, folder):
                    del left[done.cell.key]
                    yield done
                broken = [cell for cell in begun if cell.key in left]
                if broken:
                    self.close()
                    deaths.update(cell.key for cell in broken[: self._jobs])
                for cell in [cell for key, cell in left.items() if deaths[key] == DEATHS]:
                    del left[cell.key]
                    yield Done(cell, DIED)

    def close(self) -> None:
        """Let the workers go when the cells that run are done."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                pool.shutdown(wait=True)
            except KeyboardInterrupt:
                end(pool)
                raise

    def interrupt(self) -> None:
        """End the workers and the cells that run."""
        pool, self._pool = self._pool, None
        if pool is not None:
            end(pool)

    def _finished(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Yield cells as they finish, until all have or a worker dies."""
        waiting, running = list(reversed(cells)), dict[Future[str | None], Job]()
        self._begin(waiting, running, folder)
        while running:
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            finished = [(running.pop(future), future) for future in ready]
            self._begin(waiting, running, folder)
            for cell, future in finished:
                error = future.exception()
                if error is None:
                    yield Done(cell, future.result())
                elif not isinstance(error, BrokenProcessPool):  # the cell itself cannot be pickled
                    yield Done(cell, told(error))

    def _begin(self, waiting: list[Job], running: dict[Future[str | None], Job], folder: Path) -> None:
        """Hand over as many cells as there are workers: those that a pool has been given, it does run."""
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._jobs, mp_context=spawn, initializer=begin_worker, initargs=(permissions(),)
            )
        try:
            while waiting and len(running) < self._jobs:
                running[self._pool.submit(attempt, waiting[-1], folder)] = waiting[-1]
                waiting.pop()
        except BrokenProcessPool:  # by a cell that was already running
            pass
        except OSError:  # the same, where the pool is just closing its pipes
            if not self._pool._broken:
                raise


class OnRay(Engine):
    """A Ray cluster: that of ``RAY_ADDRESS``, the one that is connected already, or one that begins here.

    Args:
        jobs: How many cells at once.

    Raises:
        ImportError: Ray is missing.
        ValueError: No cluster answers at ``RAY_ADDRESS``.
    """

    def __init__(self, jobs: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray, self._jobs = ray, jobs
        self._begun = not ray.is_initialized()
        if self._begun:
            begin_ray(jobs)

    def run(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Run cells whose results are not there, and yield each when its result is."""
        task = self._ray.remote(num_cpus=1, max_retries=DEATHS - 1)(files_or_error)
        waiting, running = list(reversed(cells)), dict[Any, Job]()
        while waiting or running:
            while waiting and len(running) < self._jobs:
                cell = waiting.pop()
                running[task.remote(cell, cell.key, permissions())] = cell
            (ready, *_), _ = self._ray.wait(list(running))
            yield self._kept(running.pop(ready), ready, folder)

    def close(self) -> None:
        """Leave the cluster, if it was joined here."""
        if self._begun:
            self._ray.shutdown()

    def _kept(self, cell: Job, result: Any, folder: Path) -> Done:
        """Write a cell's files, if it gave some."""
        try:
            files = self._ray.get(result)
        except self._ray.exceptions.WorkerCrashedError:
            return Done(cell, DIED)
        except self._ray.exceptions.RayTaskError as error:  # the cell cannot be unpickled there
            return Done(cell, told(error.cause))
        except self._ray.exceptions.RayError as error:
            return Done(cell, told(error))
        if isinstance(files, str):
            return Done(cell, files)
        with appearing(folder / cell.key) as part:
            for name, content in files.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                (part / name).write_bytes(content)
        return Done(cell, None)


def told(error: BaseException) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}"


def attempt(cell: Job, folder: Path) -> str | None:
    """Run a cell; return what was raised, if something was."""
    try:
        run_cell(cell, folder)
    except InterruptedCellError:
        os._exit(1)  # or the worker would begin with another cell
    except (Exception, SystemExit) as error:
        return told(error)
    return None


def begin_worker(allowed: Permissions) -> None:
    """Let this worker import what its parent may, and end when it is interrupted or its parent is no more."""
    permit(allowed)
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # by nohup
    for number in (signal.SIGINT, *heeded):
        signal.signal(number, interrupted)
    Thread(target=end_with_parent, daemon=True).start()


def interrupted(*_: object) -> None:
    """Leave the cell that runs. What follows must not break off its cleaning.

    Raises:
        InterruptedCellError: Always.
    """
    for number in (signal.SIGINT, *SIGNALS):
        signal.signal(number, disregard)
    raise InterruptedCellError(1)


def end_with_parent() -> None:
    """Wait until the process that began this one ends, and follow it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(CLEANING)
        os._exit(1)


def end(pool: ProcessPoolExecutor) -> None:
    """End a pool's workers: those that do not end when they are interrupted are killed."""
    workers = list((pool._processes or {}).values())  # from Python 3.14 on, pool.kill_workers
    pool.shutdown(wait=False)
    for worker in workers:
        if worker.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGINT)
    deadline = time.monotonic() + CLEANING
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        worker.kill()


def begin_ray(jobs: int) -> None:
    """Join the cluster of ``RAY_ADDRESS``, or begin one here.

    Raises:
        ValueError: No cluster answers at that address.
    """
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = answering_address()
    if not address:
        ray.init(address="local", num_cpus=jobs, **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except (ValueError, OSError, SystemExit) as error:  # Ray leaves the interpreter if its server is silent
        raise _no_cluster(address) from error


def answering_address() -> str:
    """Return ``RAY_ADDRESS``, where somebody answers if it is a host and a port; empty: it is not set.

    Raises:
        ValueError: Nobody answers there.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    try:
        if address:
            check_answer(address)
    except (ValueError, OSError) as error:
        raise _no_cluster(address) from error
    return address


def _no_cluster(address: str) -> ValueError:
    return ValueError(f"RAY_ADDRESS must name a Ray cluster, got {address!r}")


def check_answer(address: str) -> None:
    """Refuse a host and port where nobody answers; Ray itself waits for more than a minute.

    Raises:
        ValueError: It is not of the form HOST:PORT.
        OSError: Nobody answers.
    """
    place = urlsplit(address if "://" in address else f"//{address}")
    if address in {"auto", "local"} or place.scheme not in {"", "ray"}:
        return  # Ray finds these
    if place.hostname is None or place.port is None:
        raise ValueError(f"address must be HOST:PORT, got {address!r}")
    socket.create_connection((place.hostname, place.port), timeout=ANSWER).close()


def files_or_error(cell: Job, key: str, allowed: Permissions) -> dict[str, bytes] | str:
    """Run a cell on another machine; return its files by their names, or what was raised."""
    permit(allowed)
    try:
        return files_of(cell, key)
    except (Exception, SystemExit) as error:
        return told(error)


def files_of(cell: Job, key: str) -> dict[str, bytes]:
    """Run a cell on another machine and return its files by their names.

    Raises:
        RuntimeError: This machine's package is not that of the one that asks.
    """
    if cell.key != key:
        raise RuntimeError(f"every worker must have the same version of fair-envs, got cell {cell.key} for {key}")
    with TemporaryDirectory() as folder:
        done = run_cell(cell, Path(folder))
        return {path.relative_to(done).as_posix(): path.read_bytes() for path in done.rglob("*") if path.is_file()}


def check_engine(engine: str, jobs: int) -> None:
    """Refuse what cannot run cells, before anything is begun.

    Raises:
        ValueError: An unknown engine, fewer jobs than 1, or nobody who answers at ``RAY_ADDRESS``.
        ImportError: The engine is not installed.
    """
    if engine not in get_args(EngineName):
        raise ValueError(f"engine must be one of {', '.join(get_args(EngineName))}, got {engine!r}")
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if engine == "ray":
        if find_spec("ray") is None:
            raise ImportError("engine 'ray' needs ray; install it with: pip install 'fair-envs[ray]'")
        import ray

        if not ray.is_initialized():
            answering_address()


@contextmanager
def opened(engine: str, *, jobs: int, here: bool = False) -> Iterator[Engine]:
    """Yield an engine's workers.

    Args:
        engine: ``"processes"`` or ``"ray"``.
        jobs: How many cells at once.
        here: Whether one job runs in this process, where beginning another takes longer than the cells.

    Raises:
        ValueError: See `check_engine`.
        ImportError: See `check_engine`.
    """
    check_engine(engine, jobs)
    workers: Engine = OnRay(jobs) if engine == "ray" else Here() if here and jobs == 1 else Processes(jobs)
    with stoppable():
        try:
            yield workers
        except KeyboardInterrupt:
            workers.interrupt()
            raise
        finally:
            workers.close()


def run_cells(
    cells: Sequence[Job],
    folder: Path,
    *,
    engine: Engine | str = "processes",
    jobs: int = 1,
    progress: bool = True,
    each: OnProgress = lambda: None,
) -> dict[str, Path]:
    """Run the cells that have no result yet and return each cell's folder by its key.

    Args:
        cells: Equal ones run once.
        folder: Where the results are kept, one folder a cell, named by its key.
        engine: What runs them: workers that are there, or the name of an engine.
        jobs: How many at once, of a named engine.
        progress: Whether to show a bar with the time left.
        each: Called after each cell that is done, and for those that were.

    Raises:
        ValueError: An unknown engine, or ``jobs`` below 1.
        ImportError: The engine is not installed.
        FailedCellsError: Some cells failed; the results of the others are kept, and a second call runs only those that
            are missing.
    """
    if isinstance(engine, str):
        with opened(engine, jobs=jobs) as workers:
            return run_cells(cells, folder, engine=workers, progress=progress, each=each)
    by_key = {cell.key: cell for cell in cells}
    waiting = [cell for cell in by_key.values() if not is_done(cell, folder)]
    failures: list[str] = []
    with progress_bar("running", total=len(by_key), unit="cells", shown=progress) as advanced:
        for _ in range(len(by_key) - len(waiting)):
            advanced()
            each()
        for cell, error in engine.run(waiting, folder):
            if error is not None:
                failures.append(f"{cell.key}: {error}")
            advanced()
            each()
            raise_pending()
    if failures:
        raise FailedCellsError(
            f"{len(failures)} of {len(by_key)} cells failed; run again for these:\n" + "\n".join(failures)
        )
    return {key: folder / key for key in by_key}


@contextmanager
def environment_of_workers() -> Iterator[None]:
    """Let processes that begin meanwhile compute on one thread, and import nothing from the current folder.

    As many threads as cores are faster than sharing the cores. A worker begins as ``python -c``, for which Python
    searches the current folder first unless it is told not to (from 3.11 on).
    """
    own = {**dict.fromkeys(THREAD_COUNTS, "1"), "PYTHONSAFEPATH": "1"}
    kept = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
