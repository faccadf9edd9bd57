"""Programs in processes of their own, forked from one that has large libraries ready."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

SERVER = """
import importlib, json, os, signal, sys, traceback, types

for library in sys.argv[1:]:
    importlib.import_module(library)
if "numba" in sys.modules:
    sys.modules["numba"].njit(lambda: 0)()  # what it sets up before it compiles the first function


def begin(order):
    \"\"\"Make this process one that has just begun, but for the libraries.\"\"\"
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.alarm(order["seconds"])
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    if "numba" in sys.modules:
        sys.modules["numba"].config.reload_config()  # it was read from the other environment
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = ["", *filter(None, own), *[path for path in sys.path if path not in start]]
    sys.argv[:] = ["-c", *order["arguments"]]
    importlib.invalidate_caches()


def run(order):
    \"\"\"Run the program as the main module and end as Python does.\"\"\"
    status = 1
    try:
        begin(order)
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(order["program"], "<string>", "exec"), vars(main))
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else end.code is not None
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)


start = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Forks:
    """A process that has imported libraries and runs each program in a fork of itself, with an environment of its own.

    A program meets nothing of an earlier one. Unlike in a fresh process, texts have the same hashes in all of them.
    """

    def __init__(self, *libraries: str, options: tuple[str, ...] = ()) -> None:
        command = [sys.executable, *options, "-c", SERVER, *libraries]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(
        self, program: str, *arguments: str, folder: Path, environment: Mapping[str, str], seconds: int = 300
    ) -> CompletedProcess[str]:
        """Return what a program prints that is run in a folder, and its status; it is ended after so many seconds."""
        assert self._server.stdin is not None and self._server.stdout is not None
        out, err = folder / ".out", folder / ".err"
        order = {"program": program, "arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        self._server.stdin.write(json.dumps({**order, "out": str(out), "err": str(err), "seconds": seconds}) + "\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        done = CompletedProcess(["python", *arguments], status, out.read_text(), err.read_text())
        for file in (out, err):
            file.unlink()
        return done

    def close(self) -> None:
        """End the process."""
        self._server.communicate(timeout=60)
