"""Cells run once, wherever they are run; a dead worker's cell runs again."""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import pytest

from fair_envs.experiments.executors import Engine, FailedCellsError, Here, OnRay, check_engine, opened, run_cells
from fair_envs.experiments.jobs import Job, run_cell
from tests.jobs import Deadly, Failing, Raising, Slow, Square

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
RAY = pytest.param("ray", marks=needs_ray)
SQUARES = [Square(number=k) for k in range(5)]


@pytest.fixture(scope="module", params=["here", "processes", RAY])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    name = "processes" if request.param == "here" else request.param
    jobs = 1 if request.param == "here" else 2
    with opened(name, jobs=jobs, here=True) as workers:
        assert isinstance(workers, Here) == (request.param == "here")
        yield workers


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_engine_gives_the_same_files(engine: Engine, tmp_path: Path) -> None:
    run_cells(SQUARES, tmp_path / "engine", engine=engine, progress=False)
    for cell in SQUARES:
        found = contents(tmp_path / "engine" / cell.key)
        assert found["square.txt"] == str(cell.number**2).encode()
        assert json.loads(found["cell.json"])["cell"] == {"number": cell.number}
    assert sorted(path.name for path in (tmp_path / "engine").iterdir()) == sorted(cell.key for cell in SQUARES)


def test_what_is_done_is_not_run_again_and_equal_cells_run_once(engine: Engine, tmp_path: Path) -> None:
    done = run_cell(SQUARES[0], tmp_path)
    (done / "square.txt").write_text("kept")
    counted: list[Path] = []
    folders = run_cells([*SQUARES[:2], SQUARES[1]], tmp_path, engine=engine, progress=False, each=counted.append)
    assert (done / "square.txt").read_text() == "kept"
    assert sorted(folders.values()) == sorted(counted) and len(counted) == 2


def test_cells_that_fail_are_named_after_the_others_are_done(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(FailedCellsError, match=f"1 of 6 cells(.|\n)*{Failing().key}: ValueError: number must be even"):
        run_cells([Failing(), *SQUARES], tmp_path, engine=engine, progress=False)
    assert len(list(tmp_path.iterdir())) == 5  # nothing is left of the one that failed


def test_a_dead_workers_cell_is_run_again(engine: Engine, tmp_path: Path) -> None:
    if isinstance(engine, Here):
        pytest.skip("it would be this process that dies")
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    cells: list[Job] = [Deadly(folder=str(deaths), times=1), *SQUARES]
    folders = run_cells(cells, tmp_path / "cells", engine=engine, progress=False)
    assert len(folders) == 6 and all((folder / "cell.json").exists() for folder in folders.values())
    assert len(list(deaths.iterdir())) == 2


def test_what_cannot_be_handed_over_is_named_and_harms_no_other(engine: Engine, tmp_path: Path) -> None:
    odd, leaving = Raising(odd=True), Raising(odd=False)
    with pytest.raises(FailedCellsError) as failed:
        run_cells([odd, leaving, *SQUARES], tmp_path, engine=engine, progress=False)
    said = sorted(str(failed.value).splitlines()[1:])
    assert said == sorted([f"{odd.key}: OddError: 1 is not 2", f"{leaving.key}: SystemExit: 2"])
    assert len(list(tmp_path.glob("*/cell.json"))) == 5


@pytest.mark.parametrize(("times", "begun"), [(2, 3), (5, 3)])
def test_a_cell_is_begun_three_times_at_most(times: int, begun: int, tmp_path: Path) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    cell = Deadly(folder=str(deaths), times=times)
    with nullcontext() if times < begun else pytest.raises(FailedCellsError, match=f"{cell.key}: DeadWorkerError"):
        run_cells([cell, *SQUARES], tmp_path / "cells", jobs=2, progress=False)
    assert len(list(deaths.iterdir())) == begun


def test_a_cell_that_always_kills_its_worker_is_given_up_after_the_others(engine: Engine, tmp_path: Path) -> None:
    if isinstance(engine, Here):
        pytest.skip("it would be this process that dies")
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    cell = Deadly(folder=str(deaths), times=100)
    with pytest.raises(FailedCellsError, match=f"1 of 6 cells(.|\n)*{cell.key}: DeadWorkerError: its worker died"):
        run_cells([cell, *SQUARES], tmp_path / "cells", engine=engine, progress=False)
    assert len(list((tmp_path / "cells").glob("*/cell.json"))) == 5


def slow(folder: Path, *, count: int, seconds: float) -> list[Job]:
    """Return cells that note in a folder that they have begun."""
    folder.mkdir()
    return [Slow(number=k, folder=str(folder), seconds=seconds) for k in range(count)]


def test_after_an_error_no_cell_begins_and_those_that_run_are_kept(tmp_path: Path) -> None:
    cells, done = slow(tmp_path / "begun", count=12, seconds=0.3), list[Path]()
    processes = set(multiprocessing.active_children())

    def third(folder: Path) -> None:
        done.append(folder)
        if len(done) == 3:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_cells(cells, tmp_path / "cells", jobs=2, progress=False, each=third)
    begun = len(list((tmp_path / "begun").iterdir()))
    assert 3 <= begun <= 3 + 2 + 1  # two run when the third is done, and another may be done just then
    assert len(list((tmp_path / "cells").glob("*/cell.json"))) == begun
    assert len(list((tmp_path / "cells").iterdir())) == begun
    assert set(multiprocessing.active_children()) <= processes


PARENT = """
import faulthandler
import signal
from pathlib import Path
from fair_envs.experiments.executors import run_cells
from tests.jobs import Slow

if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
    faulthandler.dump_traceback_later(50)  # says what it waits for, if it does
    folder = Path({folder!r})
    cells = [Slow(number=k, folder=str(folder / "begun"), seconds=120.0) for k in range(6)]
    run_cells(cells, folder / "cells", jobs=2, progress=False)
"""


def alive(process: int) -> bool:
    """Return whether a process runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc").is_dir()


def until(true: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until something is true; return whether it came to be."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return true()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_workers_end_with_the_process_that_began_them(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "begun").mkdir()
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(folder=str(tmp_path)))
    root = Path(__file__).parents[1]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert until(lambda: len(list((tmp_path / "begun").iterdir())) == 2, seconds=60)
        workers = [int(path.name.partition("-")[2]) for path in (tmp_path / "begun").iterdir()]
        parent.send_signal(number)  # to the parent alone
        _, said = parent.communicate(timeout=60)
        assert until(lambda: not any(alive(worker) for worker in workers), seconds=20)
        # Python ends with status 1 after a StoppedError that nobody catches; the command line tells the signal.
        assert parent.returncode == (-number if number in (signal.SIGINT, signal.SIGKILL) else 1)
        assert (b"KeyboardInterrupt" in said) == (number == signal.SIGINT)
        assert (f"StoppedError: stopped by {number.name}".encode() in said) == (number not in (2, 9))
        assert len(list((tmp_path / "begun").iterdir())) == 2
        assert list((tmp_path / "cells").iterdir()) == []  # not even what was half done
    finally:
        if parent.poll() is None:
            os.killpg(parent.pid, signal.SIGKILL)
            print(parent.communicate()[1].decode())


def test_workers_compute_on_one_thread_and_this_process_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (folder,) = run_cells(SQUARES[:1], tmp_path, jobs=1, progress=False).values()
    assert json.loads((folder / "cell.json").read_text())["threads"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"


@needs_ray
def test_a_worker_with_another_version_is_refused(tmp_path: Path) -> None:
    from fair_envs.experiments.executors import files_of

    with pytest.raises(RuntimeError, match="every worker must have the same version of fair-envs"):
        files_of(SQUARES[0], "another key")


@needs_ray
@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:{port}", "ray://127.0.0.1:{port}", "127.0.0.1:many"])
def test_an_address_where_no_cluster_answers_is_refused_soon(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # free again, and nobody listens, when the server is closed
    address = address.format(port=port)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", address)
    begun = time.monotonic()
    with (
        pytest.raises(ValueError, match=f"RAY_ADDRESS must name a Ray cluster, got '{address}'"),
        opened("ray", jobs=1),
    ):
        pass
    assert time.monotonic() - begun < 20


@needs_ray
@pytest.mark.parametrize("error", [ConnectionError("no cluster"), SystemExit(15)])
def test_what_ray_raises_where_no_cluster_is_names_the_address(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: object) -> None:
        raise error

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", init)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(ValueError, match="RAY_ADDRESS must name a Ray cluster, got 'auto'"), opened("ray", jobs=1):
        pass


def test_ray_that_has_begun_already_is_used_and_left(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not isinstance(engine, OnRay):
        pytest.skip("for Ray")
    import ray

    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    assert len(run_cells(SQUARES, tmp_path, engine="ray", jobs=1, progress=False)) == 5
    assert ray.is_initialized()


@pytest.mark.parametrize(
    ("engine", "jobs", "said"),
    [
        ("threads", 1, "engine must be one of processes, ray, got 'threads'"),
        ("processes", 0, "jobs must be at least 1"),
    ],
)
def test_what_is_no_engine_is_refused(engine: str, jobs: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        run_cells(SQUARES, tmp_path / "none", engine=engine, jobs=jobs)
    assert not (tmp_path / "none").exists()


def test_an_engine_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fair_envs.support.extras.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"pip install 'fair-envs\[ray\]'"):
        check_engine("ray", 1)
