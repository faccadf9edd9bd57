"""Processes of their own that need no time to begin: one process imports modules, and forks itself for each call."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Forks:
    """Processes, one after another, that begin with what their parent has imported.

    Args:
        parent: The process that serves; see `forks`.
    """

    def __init__(self, parent: "subprocess.Popen[str]") -> None:
        self._parent = parent

    def begin(self, place: str, *arguments: str | int) -> int:
        """Call a function, such as ``package.module:function``, in a new process here; return its process id."""
        assert self._parent.stdin is not None
        print(json.dumps([os.getcwd(), place, *arguments]), file=self._parent.stdin, flush=True)
        return self._number()

    def wait(self) -> int:
        """Return the exit code of the process that was begun last, or minus the number of the signal that ended it."""
        return self._number()

    def _number(self) -> int:
        assert self._parent.stdout is not None
        return int(self._parent.stdout.readline())


@contextmanager
def forks(*modules: str) -> Iterator[Forks]:
    """Yield processes that begin with these modules imported."""
    program = "import sys; from tests.forks import serve; serve(*sys.argv[1:])"
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [sys.executable, "-c", program, *modules],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        yield Forks(parent)


def serve(*modules: str) -> None:
    """Import modules; then fork for each line of standard input, and print the child's id and how it ended."""
    for module in modules:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            called(*json.loads(line))
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def called(folder: str, place: str, *arguments: str | int) -> None:
    """Call a function in a folder, away from what the parent reads and writes."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.chdir(folder)
    module, name = place.split(":")
    getattr(importlib.import_module(module), name)(*arguments)
