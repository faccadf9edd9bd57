"""The libraries that fair-envs needs and those that its extras install, as the metadata of the package lists them."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec

from packaging.requirements import Requirement

PACKAGE = "fair-envs"

PURPOSES: Mapping[str, str] = {
    "render": "pictures, windows and films",
    "baselines": "training, evaluation of trained runs, comparisons and plots",
    "datasets": "decisions as Parquet files and Minari datasets (fair-envs export)",
    "networks": "epidemics: communities in user-defined networks",
    "search": "the search for fairer parameters (fair-envs design)",
    "ray": "several machines (--engine ray)",
}
"""What each extra is for, except those for developers of fair-envs, and ``all``."""

MODULES: Mapping[str, str] = {"pillow": "PIL", "pygame-ce": "pygame", "scikit-learn": "sklearn"}
"""Modules that have another name than the library."""


@cache
def libraries(extra: str = "") -> tuple[Requirement, ...]:
    """Return the libraries that an extra installs; without an extra, those that are always installed.

    Raises:
        PackageNotFoundError: fair-envs is not installed, so it has no metadata.
    """
    found = [Requirement(line) for line in requires(PACKAGE) or ()]
    if extra:
        return tuple(one for one in found if one.marker and one.marker.evaluate({"extra": extra}))
    return tuple(one for one in found if one.marker is None or one.marker.evaluate({"extra": ""}))


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{PACKAGE}[{extra}]'"


def need(what: str, *modules: str, extra: str) -> None:
    """Raise ImportError if a library is missing, such as ``need("films", "imageio", "pygame", extra="render")``."""
    for module in modules:
        if find_spec(module) is None:
            raise missing(what, module, extra=extra)


def missing(what: str, library: str, *, extra: str) -> ImportError:
    """Return the error that something needs a library, with the command that installs it."""
    return ImportError(f"{what} needs {library}; install it with: {install_command(extra)}")


def extra_of(module: str) -> str | None:
    """Return the first extra that installs a module; None: no extra does, or fair-envs has no metadata."""
    try:
        return next((extra for extra in PURPOSES if module in map(module_of, names(extra))), None)
    except PackageNotFoundError:
        return None


def names(extra: str = "") -> list[str]:
    """Return the names of the libraries; see `libraries`."""
    return [one.name for one in libraries(extra)]


def module_of(library: str) -> str:
    """Return the module that a library installs."""
    return MODULES.get(library, library.replace("-", "_"))


def installed_version(library: str) -> str | None:
    """Return the version of an installed library, or of another one that installs the same module; None: missing."""
    if find_spec(module_of(library)) is None:
        return None
    try:
        return version(library)
    except PackageNotFoundError:
        return version(packages_distributions()[module_of(library)][0])
