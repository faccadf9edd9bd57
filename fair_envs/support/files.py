"""Files that are written atomically, read with clear errors, and locked while a process writes them."""

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
    """Write plain data atomically."""
    replace_file(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def keep_json(path: Path, content: Any) -> None:
    """Write plain data atomically, or remove the file if the data are empty."""
    if content:
        write_json(path, content)
    else:
        path.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically: readers find either the complete old file or the complete new one."""
    with replacing(path) as part, part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield where to write a file's new content, which replaces the file at the end and is removed on an error."""
    part = path.with_name(f".{path.name}-{uuid4().hex}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_json(path: Path, kind: type[T]) -> T:
    """Return the content of a JSON file.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is damaged, or contains data of another kind.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is not JSON ({first_line(error)})") from error
    if not isinstance(found, kind):
        raise damaged(path, f"it must hold a {kind.__name__}, got a {type(found).__name__}")
    return found


def damaged(path: Path, how: str) -> ValueError:
    """Return an error that names a damaged file, the damage and what to do."""
    return ValueError(f"{path} is damaged: {how}; restore it from a copy, or begin again in a new folder")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0] or type(error).__name__


@contextmanager
def appearing(folder: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield an empty folder that becomes ``folder`` at the end, completely or not at all.

    Args:
        folder: The final name, unless an error occurs or that name exists, even if only since a moment ago.
        new: Whether an existing folder is an error.

    Raises:
        FileExistsError: The folder exists.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f".{folder.name}-{uuid4().hex}")
    part.mkdir()  # not tempfile.mkdtemp: so that results get the usual permissions and colleagues can read them
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
    """Raise FileExistsError if that name exists."""
    if folder.exists():
        raise FileExistsError(f"out must be a new folder, or one to resume, got {folder}, which exists")


# One writer at a time -----------------------------------------------------------------------------------------------


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the lock that makes this the only process writing into a folder.

    The system releases the lock when the process ends, for any reason. A lock file that was left behind is reused.

    Raises:
        ValueError: Another process is writing into the folder.
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
    """Yield a locked file that still has its name, which the previous holder may have removed."""
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
    """Lock a file, or raise ValueError that names the process holding the lock."""
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
        warnings.warn(f"{path.parent} is on a file system without locks; use only one process there", stacklevel=2)
