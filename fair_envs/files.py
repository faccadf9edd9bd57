"""Files that are there whole or not at all, that are read with clear errors, and that one process writes at a time."""

import errno
import fcntl
import json
import os
import shutil
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

LOCK = "writing.lock"
T = TypeVar("T")

# Writing and reading ----------------------------------------------------------------------------------------------


def write_json(path: Path, content: Any) -> None:
    """Write plain data, whole or not at all."""
    replace_file(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in place of another at once: whoever reads it finds the old one or the new one, whole."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def read_json(path: Path, kind: type[T]) -> T:
    """Return what a JSON file holds.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, or holds data of another kind.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is not JSON ({said(error)})") from error
    if not isinstance(found, kind):
        raise damaged(path, f"it must hold a {kind.__name__}, got a {type(found).__name__}")
    return found


def damaged(path: Path, how: str) -> ValueError:
    """Return the error that names a damaged file, how it is damaged and what to do."""
    return ValueError(f"{path} is damaged: {how}; restore it from a copy, or begin again in a new folder")


def said(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return str(error).partition("\n")[0] or type(error).__name__


@contextmanager
def appearing(folder: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield an empty folder that becomes ``folder`` in the end, whole or not at all.

    Args:
        folder: What it becomes, unless an error comes or there is one of that name, even since a moment ago.
        new: Whether it is an error if there is one.

    Raises:
        FileExistsError: There is one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f".{folder.name}-{uuid4().hex}")
    part.mkdir()  # not tempfile.mkdtemp: colleagues may read results where they may read other files
    try:
        yield part
        try:
            os.replace(part, folder)
        except OSError:
            if new:
                check_new(folder)
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_new(folder: Path) -> None:
    """Raise FileExistsError if there is something of that name already."""
    if folder.exists():
        raise FileExistsError(f"out must be a new folder, or one to resume, got {folder}, which exists")


# One writer at a time -----------------------------------------------------------------------------------------------


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only process that writes into a folder.

    The system releases the lock when the process ends, however it ends: a lock file that was left behind is taken over.

    Raises:
        ValueError: Another process is writing there.
    """
    path = folder / LOCK
    with _locked(path) as file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[Any]:
    """Yield a file that is locked and still has its name, which whoever held it before may have removed."""
    while True:
        with path.open("a+", encoding="utf-8") as file:
            _lock(file, path)
            try:
                same = os.path.samestat(path.stat(), os.fstat(file.fileno()))
            except FileNotFoundError:
                same = False
            if same:
                yield file
                return


def _lock(file: Any, path: Path) -> None:
    """Lock a file, or raise ValueError with who has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise ValueError(
            f"out must be a folder that no other process is writing, got {path.parent}, which "
            f"{file.read() or 'another process'} is writing; wait until it ends, or stop it"
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        warnings.warn(f"{path.parent} is on a file system without locks; do not write it twice at once", stacklevel=2)
