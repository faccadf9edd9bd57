"""Functions that users name as ``module:function``: which of them may be imported, and from where.

Importing a module runs its code. Paths that the caller passes in Python or types on the command line are imported.
Paths in stored files, such as the settings of a run, are rejected: the file may come from another person.
"""

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
PATH = re.compile(rf"(?<![\w.]){_NAME}:{_NAME}(?![\w.])")
_SEPARATOR = re.compile(f"[/{re.escape(os.sep)}]")


class Permissions(NamedTuple):
    """What may be imported; also passed on to worker processes.

    Attributes:
        typed: Paths that the user typed in this call.
        folder: Folder that is searched last for the modules of those paths; empty: no additional folder.
        stored: Whether paths from stored files may also be imported.
        modules: Modules that the user named, which register environments or methods.
    """

    typed: frozenset[str] = frozenset()
    folder: str = ""
    stored: bool = False
    modules: tuple[str, ...] = ()


_permissions = Permissions()


def permissions() -> Permissions:
    """Return this process's import permissions."""
    return _permissions


def permit(new: Permissions) -> None:
    """Set this process's import permissions, and import the modules among them."""
    global _permissions
    _permissions = new
    for module in new.modules:
        with _searching(also=True), _named(module, searched=True):
            importlib.import_module(module)


def typed_in(arguments: Iterable[str]) -> frozenset[str]:
    """Return the import paths in a user's command line.

    Parts of the names of files and folders do not count: another person may have chosen these names.
    """
    found = (match for one in arguments for match in PATH.finditer(one))
    return frozenset(match.group() for match in found if not _in_name(match))


def _in_name(found: re.Match[str]) -> bool:
    """Return whether an import path is in the name of a file or folder: of one in a folder, or of an existing one."""
    before = found.string[: found.start()]
    if _SEPARATOR.search(before):
        return True
    first = _SEPARATOR.split(found.string, maxsplit=1)[0]  # it may be behind the name of an option
    return any(os.path.lexists(first[start:]) for start in range(len(before) + 1))


@contextmanager
def trusting() -> Iterator[None]:
    """Allow imports that stored files name.

    For example ``with trusting(): model, config = load("runs/mine")``. Only use it for files whose author you trust:
    loading them runs their author's code.
    """
    before = permissions()
    permit(before._replace(stored=True))
    try:
        yield
    finally:
        permit(before)


def imported(path: str) -> Any:
    """Return the object that ``"module:function"`` names.

    Raises:
        ValueError: The text is not such a path.
        ImportError: The module does not exist.
        AttributeError: The module has no such function.
    """
    module = module_of(path)
    return attrgetter(path.partition(":")[2])(module)


def module_of(path: str) -> ModuleType:
    """Return the module of ``"module:function"``; see `imported`."""
    if not isinstance(path, str) or not PATH.fullmatch(path):
        raise ValueError(f"import path must be module:function, got {path!r}")
    module = path.partition(":")[0]
    also = _permissions.stored or path in _permissions.typed
    with _searching(also=also), _named(module, searched=also):
        return importlib.import_module(module)


@contextmanager
def _named(module: str, *, searched: bool) -> Iterator[None]:
    """Say on the command line why a module is not found; ``searched``: whether the folder was searched too."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not _permissions.folder or error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it exists, and needs another module
        why = (
            "it is neither installed nor in the current folder"
            if searched
            else f"to find it in the current folder, name it on the command line: fair-envs --import {module} ..."
        )
        raise ModuleNotFoundError(f"No module named {error.name!r}; {why}", name=error.name) from error


@contextmanager
def _searching(*, also: bool) -> Iterator[None]:
    """Also search the folder while something that the user typed or trusts is imported."""
    if not (also and _permissions.folder) or _permissions.folder in sys.path:
        yield
        return
    sys.path.append(_permissions.folder)
    try:
        yield
    finally:
        sys.path.remove(_permissions.folder)


def refuse_stored_paths(settings: Mapping[str, Any], *, file: object, but: Iterable[str] = ()) -> None:
    """Raise ValueError if a stored file's settings name an import path that the user neither typed nor trusts.

    Args:
        settings: The content of the file.
        file: The file, for the message.
        but: Names of settings whose texts are never imported, whatever they contain.
    """
    if _permissions.stored:
        return
    for path in sorted(paths_in(settings, but=but) - _permissions.typed):
        raise ValueError(
            f"{file} names the function {path!r}. It is not imported, because that runs the code of the module "
            f"{path.partition(':')[0]} that is found on this machine; if you know that module and trust the file, pass "
            "--trust (in Python: with fair_envs.support.imports.trusting())"
        )


def paths_in(settings: Mapping[str, Any], *, but: Iterable[str] = ()) -> frozenset[str]:
    """Return the import paths in plain data; ``but`` lists entries whose texts are never imported."""
    chosen = {name: settings[name] for name in settings.keys() - set(but)}
    return frozenset(path for text in _texts(chosen) for path in PATH.findall(text))


def source_hash(path: str) -> str:
    """Return a hash of the source file of a path's module, which is imported; empty if it has none."""
    try:
        file = inspect.getsourcefile(module_of(path))
    except (ImportError, TypeError):
        return ""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""


def code_hash(*objects: Any) -> str:
    """Return a hash of the source files that define classes and functions, or the classes of other objects.

    Objects of compiled or interactive code, and of this package, add nothing.
    """
    files = {file for one in objects if (file := _file_of(one)) is not None}
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest() if files else ""


def _file_of(one: Any) -> str | None:
    named = one if inspect.isclass(one) or inspect.isroutine(one) else type(one)
    if (getattr(named, "__module__", None) or "").split(".")[0] in (__name__.split(".")[0], "builtins", "gymnasium"):
        return None
    try:
        file = inspect.getsourcefile(named)
    except TypeError:
        return None
    return file if file is not None and Path(file).is_file() else None


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in plain data, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts(key)
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
