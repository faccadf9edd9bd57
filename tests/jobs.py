"""Small jobs for the engines: they count, fail, or kill the worker that runs them."""

import os
import pickle
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fair_envs.experiments.executors import Here, run_cells
from fair_envs.experiments.jobs import Job


def run_here(cells: Sequence[Job], folder: Path, **_: Any) -> dict[str, Path]:
    """Run cells in this process, after the way on which a worker gets them; beginning one takes seconds."""
    given: list[Job] = pickle.loads(pickle.dumps(list(cells)))
    assert [cell.key for cell in given] == [cell.key for cell in cells]
    return run_cells(given, folder, engine=Here(), progress=False)


@dataclass(frozen=True, kw_only=True)
class Square(Job):
    """Writes the square of a number, and who did."""

    number: int

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write the file."""
        (part / "square.txt").write_text(str(self.number**2))
        return {"threads": os.environ.get("OMP_NUM_THREADS"), "seconds": 0.0}


@dataclass(frozen=True, kw_only=True)
class Failing(Job):
    """Fails."""

    def work(self, part: Path) -> Mapping[str, Any]:
        """Fail."""
        (part / "half.txt").write_text("half")
        raise ValueError("number must be even, got 3")


class OddError(Exception):
    """Cannot be unpickled: it is made from two arguments and keeps one."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} is not {b}")


@dataclass(frozen=True, kw_only=True)
class Raising(Job):
    """Raises what cannot be handed to another process, or asks the interpreter to end."""

    odd: bool

    def work(self, part: Path) -> Mapping[str, Any]:
        """Raise it."""
        raise OddError(1, 2) if self.odd else SystemExit(2)


@dataclass(frozen=True, kw_only=True)
class Slow(Job):
    """Notes in a folder which process has begun, and takes its time."""

    number: int
    folder: str
    seconds: float

    def work(self, part: Path) -> Mapping[str, Any]:
        """Sleep, in short parts: a signal just before a sleep does not shorten it."""
        (part / "half.txt").write_text("half")
        end = time.monotonic() + self.seconds
        (Path(self.folder) / f"{self.number}-{os.getpid()}").touch()
        while time.monotonic() < end:
            time.sleep(0.05)
        return {}


@dataclass(frozen=True, kw_only=True)
class Deadly(Job):
    """Kills its worker as often as files in a folder allow."""

    folder: str
    times: int

    def work(self, part: Path) -> Mapping[str, Any]:
        """Die, or write that it lives."""
        begun = len(list(Path(self.folder).iterdir()))
        (Path(self.folder) / str(begun)).touch()
        if begun < self.times:
            os.kill(os.getpid(), signal.SIGKILL)
        (part / "alive.txt").write_text("yes")
        return {}
