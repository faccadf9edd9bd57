"""Where cells run: in processes on this machine, or on a Ray cluster. The results are bit-identical.

A cell whose worker dies is run again. With Ray the results are sent to the calling machine, so no shared folder is
needed; ``RAY_ADDRESS`` selects a cluster, and without it a local one is started.
"""

import logging
import multiprocessing
import os
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from fair_envs.experiments.jobs import Job, is_done, run_cell
from fair_envs.support.extras import need
from fair_envs.support.files import appearing
from fair_envs.support.imports import Permissions, permissions, permit
from fair_envs.support.progress import progress_bar
from fair_envs.support.stopping import SIGNALS, ignore_signal, raise_pending, stoppable

EngineName = Literal["processes", "ray"]

THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
DEATHS = 3  # worker deaths after which a cell counts as failed
DIED = f"DeadWorkerError: its worker died {DEATHS} times; is there enough memory?"
CLEANING = 2.0  # seconds for an interrupted worker to remove unfinished work
ANSWER = 10.0  # seconds for a cluster's address to answer


class FailedCellsError(RuntimeError):
    """Raised after all other cells are done, if some have failed.

    Args:
        errors: The error of each failed cell, by the cell's key.
        total: Number of cells.
    """

    def __init__(self, errors: Mapping[str, str], total: int) -> None:
        self.errors = errors
        failures = "\n".join(f"{key}: {error}" for key, error in errors.items())
        super().__init__(f"{len(errors)} of {total} cells failed; run again for these:\n{failures}")


class InterruptedCellError(SystemExit):
    """Raised in a worker that has to stop; unfinished work is removed on the way."""


class Done(NamedTuple):
    """A cell that has been run, and its error as type and message, since not every error can be pickled."""

    cell: Job
    error: str | None


class Engine(ABC):
    """Workers that run cells until they are closed."""

    @abstractmethod
    def run(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Run cells without results, and yield each one when its result exists."""

    @abstractmethod
    def close(self) -> None:
        """Release the workers; cells that have not started are dropped."""

    def interrupt(self) -> None:
        """Release the workers without waiting for running cells."""
        self.close()


class Here(Engine):
    """This process, which runs one cell after another."""

    def run(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Run cells without results, and yield each one when its result exists."""
        for cell in cells:
            yield Done(cell, attempt(cell, folder))

    def close(self) -> None:
        """Do nothing."""


class Processes(Engine):
    """Processes on this machine, which compute on one thread each.

    Args:
        jobs: Number of processes.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def run(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Run cells without results, and yield each one when its result exists."""
        left, deaths = {cell.key: cell for cell in cells}, Counter[str]()
        with environment_of_workers():
            while left:
                # A worker's death also ends the others. From then on, each cell that may be the cause runs separately.
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
        """Release the workers after the running cells are done."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                pool.shutdown(wait=True)
            except KeyboardInterrupt:
                end(pool)
                raise

    def interrupt(self) -> None:
        """Stop the workers and the running cells."""
        pool, self._pool = self._pool, None
        if pool is not None:
            end(pool)

    def _finished(self, cells: Sequence[Job], folder: Path) -> Iterator[Done]:
        """Yield cells as they finish, until all are done or a worker dies."""
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
                    yield Done(cell, reported(error))

    def _begin(self, waiting: list[Job], running: dict[Future[str | None], Job], folder: Path) -> None:
        """Submit one cell for each worker, since a pool runs every cell that was submitted."""
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._jobs, mp_context=spawn, initializer=begin_worker, initargs=(permissions(),)
            )
        try:
            while waiting and len(running) < self._jobs:
                running[self._pool.submit(attempt, waiting[-1], folder)] = waiting[-1]
                waiting.pop()
        except BrokenProcessPool:  # because of a cell that was already running
            pass
        except OSError:  # the same, while the pool is closing its pipes
            if not self._pool._broken:
                raise


class OnRay(Engine):
    """A Ray cluster: the one at ``RAY_ADDRESS``, the one already connected, or a new local one.

    Args:
        jobs: Number of cells to run at once.

    Raises:
        ImportError: Ray is not installed.
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
        """Run cells without results, and yield each one when its result exists."""
        task = self._ray.remote(num_cpus=1, max_retries=DEATHS - 1)(files_or_error)
        waiting, running = list(reversed(cells)), dict[Any, Job]()
        while waiting or running:
            while waiting and len(running) < self._jobs:
                cell = waiting.pop()
                running[task.remote(cell, cell.key, permissions())] = cell
            (ready, *_), _ = self._ray.wait(list(running))
            yield self._kept(running.pop(ready), ready, folder)

    def close(self) -> None:
        """Disconnect from the cluster if this object connected to it."""
        if self._begun:
            self._ray.shutdown()

    def _kept(self, cell: Job, result: Any, folder: Path) -> Done:
        """Write a cell's files, if it returned any."""
        try:
            files = self._ray.get(result)
        except self._ray.exceptions.WorkerCrashedError:
            return Done(cell, DIED)
        except self._ray.exceptions.RayTaskError as error:  # the cell cannot be unpickled there
            return Done(cell, reported(error.cause))
        except self._ray.exceptions.RayError as error:
            return Done(cell, reported(error))
        if isinstance(files, str):
            return Done(cell, files)
        with appearing(folder / cell.key) as part:
            for name, content in files.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                (part / name).write_bytes(content)
        return Done(cell, None)


def reported(error: BaseException) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}"


def attempt(cell: Job, folder: Path) -> str | None:
    """Run a cell; return the error, if there is one."""
    try:
        run_cell(cell, folder)
    except InterruptedCellError:
        os._exit(1)  # otherwise the worker would start another cell
    except (Exception, SystemExit) as error:
        return reported(error)
    return None


def begin_worker(allowed: Permissions) -> None:
    """Give this worker its parent's import permissions; it stops when interrupted or when its parent has ended."""
    permit(allowed)
    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # by nohup
    for number in (signal.SIGINT, *heeded):
        signal.signal(number, interrupted)
    Thread(target=end_with_parent, daemon=True).start()


def interrupted(*_: object) -> None:
    """Leave the running cell; later signals must not interrupt its cleanup.

    Raises:
        InterruptedCellError: Always.
    """
    for number in (signal.SIGINT, *SIGNALS):
        signal.signal(number, ignore_signal)
    raise InterruptedCellError(1)


def end_with_parent() -> None:
    """Wait until the parent process ends, then stop."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(CLEANING)
        os._exit(1)


def end(pool: ProcessPoolExecutor) -> None:
    """Stop a pool's workers; those that do not stop when interrupted are killed."""
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
    """Connect to the cluster at ``RAY_ADDRESS``, or start a local one.

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
    except (ValueError, OSError, SystemExit) as error:  # Ray exits the interpreter if its server does not answer
        raise _no_cluster(address) from error


def answering_address() -> str:
    """Return ``RAY_ADDRESS``, checked for an answer if it is a host and a port; empty if it is not set.

    Raises:
        ValueError: Nothing answers there.
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
    """Raise an error if nothing answers at a host and port; Ray itself would wait for more than a minute.

    Raises:
        ValueError: The address does not have the form HOST:PORT.
        OSError: Nothing answers.
    """
    place = urlsplit(address if "://" in address else f"//{address}")
    if address in {"auto", "local"} or place.scheme not in {"", "ray"}:
        return  # Ray resolves these
    if place.hostname is None or place.port is None:
        raise ValueError(f"address must be HOST:PORT, got {address!r}")
    socket.create_connection((place.hostname, place.port), timeout=ANSWER).close()


def files_or_error(cell: Job, key: str, allowed: Permissions) -> dict[str, bytes] | str:
    """Run a cell on another machine; return its files by name, or the error."""
    permit(allowed)
    try:
        return files_of(cell, key)
    except (Exception, SystemExit) as error:
        return reported(error)


def files_of(cell: Job, key: str) -> dict[str, bytes]:
    """Run a cell on another machine and return its files by name.

    Raises:
        RuntimeError: This machine has another version of the package than the caller.
    """
    if cell.key != key:
        raise RuntimeError(f"every worker must have the same version of fair-envs, got cell {cell.key} for {key}")
    with TemporaryDirectory() as folder:
        done = run_cell(cell, Path(folder))
        return {path.relative_to(done).as_posix(): path.read_bytes() for path in done.rglob("*") if path.is_file()}


def check_engine(engine: str, jobs: int) -> None:
    """Raise an error if an engine cannot run cells, before any work starts.

    Raises:
        ValueError: The engine is unknown, there are fewer jobs than 1, or nothing answers at ``RAY_ADDRESS``.
        ImportError: The engine is not installed.
    """
    if engine not in get_args(EngineName):
        raise ValueError(f"engine must be one of {', '.join(get_args(EngineName))}, got {engine!r}")
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if engine == "ray":
        need("engine 'ray'", "ray", extra="ray")
        import ray

        if not ray.is_initialized():
            answering_address()


@contextmanager
def opened(engine: str, *, jobs: int, here: bool = False) -> Iterator[Engine]:
    """Yield an engine's workers.

    Args:
        engine: ``"processes"`` or ``"ray"``.
        jobs: Number of cells to run at once.
        here: Whether a single job runs in this process, for cells that are faster than starting another process.

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
    each: Callable[[Path], object] = lambda done: None,
) -> dict[str, Path]:
    """Run the cells that have no result yet and return each cell's folder by its key.

    Args:
        cells: Equal cells run once.
        folder: Folder of the results, with one folder for each cell, named by its key.
        engine: Existing workers, or the name of an engine.
        jobs: Number of cells to run at once, if the engine is given by name.
        progress: Whether to show a bar with the remaining time.
        each: Called with the folder of each cell that is done, also of those that were done before.

    Raises:
        ValueError: The engine is unknown, or ``jobs`` is below 1.
        ImportError: The engine is not installed.
        FailedCellsError: Some cells failed. The results of the others are stored, and a second call only runs the
            missing ones.
    """
    if isinstance(engine, str):
        with opened(engine, jobs=jobs) as workers:
            return run_cells(cells, folder, engine=workers, progress=progress, each=each)
    by_key = {cell.key: cell for cell in cells}
    waiting = {key: cell for key, cell in by_key.items() if not is_done(cell, folder)}
    errors: dict[str, str] = {}
    with progress_bar("running", total=len(by_key), unit="cells", shown=progress) as advanced:
        for key in by_key:
            if key not in waiting:
                advanced()
                each(folder / key)
        for cell, error in engine.run(list(waiting.values()), folder):
            advanced()
            if error is not None:
                errors[cell.key] = error
            else:
                each(folder / cell.key)
            raise_pending()
    if errors:
        raise FailedCellsError(errors, len(by_key))
    return {key: folder / key for key in by_key}


@contextmanager
def environment_of_workers() -> Iterator[None]:
    """Let processes started in this block compute on one thread, and import nothing from the current folder.

    One process per core with one thread each is faster than processes that share the cores. A worker starts as
    ``python -c``, for which Python searches the current folder first, unless ``PYTHONSAFEPATH`` is set (from Python
    3.11 on).
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
