"""Says on a terminal which library a command loads, if that takes long: nothing else is printed until then."""

import sys
from importlib.abc import MetaPathFinder
from threading import Timer
from typing import Any

import typer

LARGE = {"matplotlib": "Matplotlib", "numba": "Numba", "ray": "Ray", "scipy": "SciPy", "torch": "PyTorch"}

PATIENCE = 1.0
"""Seconds of loading after which it is announced."""


class Announcer(MetaPathFinder):
    """Is asked first for each module; it finds none, and announces the large ones if they are not there in time."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Return None, so that the usual finders are asked."""
        if fullname in LARGE:
            waiting = Timer(PATIENCE, announce, [fullname])
            waiting.daemon = True
            waiting.start()


def announce_loading() -> None:
    """Announce large libraries from now on, if standard error is a terminal."""
    if sys.stderr.isatty():
        sys.meta_path.insert(0, Announcer())


def announce(module: str) -> None:
    """Print once that a library is loading, if it is."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    loading = getattr(spec, "_initializing", False)  # set by Python's import system while the module's code runs
    if loading and module not in _announced:  # a module that is looked for and then imported is found twice
        _announced.add(module)
        typer.echo(f"fair-envs: loading {LARGE[module]} ...", err=True)


_announced: set[str] = set()
