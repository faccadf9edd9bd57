"""Processes that start at once: one process imports modules and forks itself for each call."""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

ROOT = Path(__file__).parents[1]


class Forks:
    """Processes, one after another, that begin with what their parent has imported, and with nothing of one another.

    Unlike in fresh processes, texts have the same hashes in all of them.

    Args:
        parent: The process that serves; see `forks`.
    """

    def __init__(self, parent: "subprocess.Popen[str]") -> None:
        self._parent = parent

    def begin(self, place: str, *arguments: Any) -> int:
        """Call a function, such as ``package.module:function``, in a new process here; return its process id."""
        assert self._parent.stdin is not None
        print(json.dumps([os.getcwd(), place, *arguments]), file=self._parent.stdin, flush=True)
        return self._number()

    def wait(self) -> int:
        """Return the exit code of the process that was begun last, or minus the number of the signal that ended it."""
        return self._number()

    def run(
        self, program: str, *arguments: str, folder: Path, environment: Mapping[str, str], seconds: int = 300
    ) -> "CompletedProcess[str]":
        """Run a program's text in a folder, with an environment of its own; it is ended after so many seconds."""
        out, err = folder / ".out", folder / ".err"
        self.begin("tests.forks:play", program, arguments, str(folder), dict(environment), seconds)
        done = CompletedProcess(["python", *arguments], self.wait(), out.read_text(), err.read_text())
        for file in (out, err):
            file.unlink()
        return done

    def _number(self) -> int:
        assert self._parent.stdout is not None
        return int(self._parent.stdout.readline())


@contextmanager
def forks(*modules: str, options: tuple[str, ...] = ()) -> Iterator[Forks]:
    """Yield processes that begin with these modules imported, under these options of Python."""
    program = "import sys; from tests.forks import serve; serve(*sys.argv[1:])"
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [sys.executable, *options, "-c", program, *modules],
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
    if "numba" in sys.modules:
        sys.modules["numba"].njit(lambda: 0)()  # what it sets up before it compiles the first function
    gc.collect()
    gc.freeze()  # no child looks for garbage among what it begins with
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            called(*json.loads(line))
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def called(folder: str, place: str, *arguments: Any) -> None:
    """Call a function in a folder, away from what the parent reads and writes."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.chdir(folder)
    module, name = place.split(":")
    getattr(importlib.import_module(module), name)(*arguments)


def play(program: str, arguments: list[str], folder: str, environment: Mapping[str, str], seconds: int) -> None:
    """Run a program as the main module of a process that has just begun, but for the modules that it has."""
    signal.alarm(seconds)
    os.chdir(folder)
    for number, name in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(environment)
    if "numba" in sys.modules:
        sys.modules["numba"].config.reload_config()  # it was read from the other environment
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environment
    own = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = ["", *own, *[path for path in sys.path if path not in ("", *inherited)]]
    sys.argv[:] = ["-c", *arguments]
    for module in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[module]  # the program's own may be another copy
    importlib.invalidate_caches()
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), vars(main))
