"""Compiles the loops over lanes, once for all environments, and stores the compiled code on disk.

Numba's own disk cache does not notice a change in a function imported from another file, and cannot store a function
that closes over other compiled functions. Here the folder of a kernel is named by a hash of everything the kernel is
made from: this package's sources, every Python file beside those of the environment's rules and of the compiled
functions that these call, and the constants that they read. An edit in any of them leads to a new compilation. Rules
without a file (a notebook's) or made by a function are not stored, because their source is not on disk.

``FAIR_ENVS_CACHE`` selects another folder than the user's cache folder. Loading a kernel runs code, so a folder that
other users could change is not used. A damaged file is compiled again and replaced.
"""

import contextlib
import functools
import gc
import hashlib
import inspect
import logging
import os
import pickle
import re
import secrets
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Timer, get_ident
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""False under ``NUMBA_DISABLE_JIT=1``: everything runs as plain Python, for debugging and coverage."""

PACKAGE = Path(__file__).parents[1]
HASHED = ("core", "envs", "metrics", "support")
"""This package's folders whose sources are part of the name of every cache, with their subfolders."""

PATIENCE = 1.0
"""Seconds of compilation, of one kernel after another, after which it is announced."""

Kernel = Callable[..., Any]


def rule(function: Callable[..., Any]) -> Any:
    """Decorate a function so that compiled code calls it compiled, and Python calls it as plain Python.

    ``numba.njit`` would also work for rules, but takes almost twice as long: it also compiles the code that lets Python
    call each function, and compiles a function again for every constant that it is called with.
    """
    return _rule(function, inline=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Decorate a rule that is compiled into each rule that calls it, which saves the call.

    Use it for short rules that run in each step. Long rules, or rules called in many places, take several times as long
    to compile.
    """
    return _rule(function, inline=True)


def _rule(function: Callable[..., Any], *, inline: bool) -> Any:
    if not COMPILED:
        return function
    wanted = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": inline}
    return _Rule(function, targetoptions=wanted, pipeline_class=_PartCompiler)


class _Part(JITCodeLibrary):
    """The code of a rule, which is compiled to machine code as a part of the kernels that call it.

    Numba would also compile each rule to machine code on its own, which took a tenth of the time.
    """

    @property
    def codegen(self) -> Any:
        """Return the code generator, without setting environments: a part has no addresses for them."""
        return _NoAddresses(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class _NoAddresses:
    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, env: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class _PartCompiler(Compiler):
    """Compiles rules to parts of kernels."""

    def compile_extra(self, func: Any) -> Any:
        """Return the compiled function."""
        self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class _Rule(CPUDispatcher):
    """Numba's dispatcher without the code that Python needs to call it."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.py_func(*arguments, **keywords)

    def fold_argument_types(self, arguments: Any, keywords: Any) -> Any:
        """Return the types in the order of the signature; a constant has the type of any such value."""
        return super().fold_argument_types(*_without_constants(arguments, keywords))

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        """Return the function for these types."""
        return super().get_call_template(*_without_constants(arguments, keywords))


class _Kernel(CPUDispatcher):
    """Numba's dispatcher; it compiles without garbage collection, since Numba creates a million lasting objects."""

    def compile(self, sig: Any) -> Any:
        """Return the machine code for a signature."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            with event.install_listener("numba:compile", _Patience(self)):
                compiled = super().compile(sig)
        finally:
            if collecting:
                gc.enable()
        self._set_environments()
        return compiled

    def _set_environments(self) -> None:
        """Set the environments that rules in the machine code print and raise with; parts have no address for them."""
        overloads: Any = self.overloads
        for result in overloads.values():
            for environment in result._find_referenced_environments():
                result.library.codegen.set_env(environment.env_name, environment)


class _Patience(event.Listener):
    """Announces the compilation of a kernel if it, with earlier ones, takes long; loading from disk does not count.

    A listener gets the events of all threads, and of the rules that are compiled into the kernel.
    """

    def __init__(self, kernel: _Kernel) -> None:
        self._kernel, self._thread = kernel, get_ident()

    def _is_own(self, of: Any) -> bool:
        return of.data["dispatcher"] is self._kernel and get_ident() == self._thread

    def on_start(self, of: Any) -> None:
        """Begin to wait."""
        if self._is_own(of):
            self._began, self._timer = time.monotonic(), Timer(max(PATIENCE - sum(_seconds), 0), announce)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, of: Any) -> None:
        """Stop waiting."""
        if self._is_own(of):
            self._timer.cancel()
            _seconds.append(time.monotonic() - self._began)


def announce() -> None:
    """Log once in a process why it waits; Python shows it on standard error if nothing else is configured."""
    if not _announced:
        do_not_announce()
        logging.getLogger("fair_envs").warning(
            "fair_envs compiles code that is used for the first time on this machine, which takes some seconds, and "
            "stores it in %s if it can; `fair-envs warm` does this in advance",
            cache_folder(),
        )


def do_not_announce() -> None:
    """Log nothing about compilation from now on."""
    _announced.append(True)


_announced: list[bool] = []
_seconds: list[float] = []  # that each compilation took, but not loading from disk


def _without_constants(arguments: Any, keywords: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the types of positional and keyword arguments, with constants typed like any such value."""
    plain: Callable[[Any], Any] = types.unliteral
    return tuple(map(plain, arguments)), {name: plain(kind) for name, kind in keywords.items()}


@rule
def copyto(out: Any, values: NDArray[Any]) -> None:
    """Write values into an array of the same shape, (n,).

    ``out[:] = values`` takes three seconds longer to compile, because it includes the texts of its errors.
    """
    for k in range(out.shape[0]):
        out[k] = values[k]


@intrinsic
def _unowned(typing: Any, array: Any) -> Any:
    """Return the array without reference counting."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(array)(context, builder, arguments[0])
        for owner in ("meminfo", "parent"):
            setattr(view, owner, getattr(view, owner).type(None))  # null pointer
        return view._getvalue()

    return array(array), build


unowned: Any = _unowned if COMPILED else lambda array: array
"""Returns the same array for a compiled loop that passes parts of it to rules; passing parts is then free.

Numba counts an array's references, at every slice and every call of a rule, with an atomic operation that takes as long
as twenty others. The caller of a loop keeps its arrays until the loop returns, so counting is not needed.
"""


def kernel(loop: Callable[..., Any]) -> Kernel:
    """Decorate a module's loop, which is compiled at its first call with arguments of new types, or loaded from disk.

    It may call rules. Unlike a `rule`, it can be called from Python, and it releases the interpreter's lock.
    """
    return _kernel(loop, name=f"{loop.__module__}.{loop.__qualname__}", owner=loop)


def kernels_of(owner: type, *loops: Callable[..., Any]) -> dict[str, Kernel]:
    """Return loops made by a function, by name, compiled like `kernel`.

    Args:
        owner: The class whose rules they call; its name also identifies them on disk.
        loops: They may close over compiled rules.
    """
    for loop in loops:  # Numba makes symbols from these names, which must differ
        loop.__qualname__ = f"{owner.__module__}.{owner.__qualname__}.{loop.__name__}"
    return {loop.__name__: _kernel(loop, name=loop.__qualname__, owner=owner) for loop in loops}


def _kernel(function: Callable[..., Any], *, name: str, owner: Any) -> Kernel:
    """Return the compiled function; the name distinguishes it on disk from other functions of the same owner."""
    if not COMPILED:
        return function
    found: Any = _Kernel(function, targetoptions={"nopython": True, "nogil": True})
    found._cache = _KernelCache(owner, name=name)
    return found  # type: ignore[no-any-return]


def known_call(kernel: Kernel, *arguments: Any) -> Kernel:
    """Return the function that a compiled kernel runs for arguments of these types, after the kernel has run with them.

    It is called like the kernel but skips the type check, which takes as long as a lane's step. If you call it with
    other types, it reads and writes invalid memory. Without compilation, it is the kernel.
    """
    if not COMPILED:
        return kernel
    known: Kernel = kernel.get_overload(tuple(map(numba.typeof, arguments)))  # type: ignore[attr-defined]
    return known


def readable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array so that its records, if any, can be read like objects without compilation too."""
    return array if COMPILED or not array.dtype.names else array.view(np.recarray)


def record_of(columns: Mapping[str, ArrayLike]) -> NDArray[Any]:
    """Return numbers and arrays by name as the fields of one record, shape (1,).

    Compiled loops take an argument of one array in a tenth of a microsecond. For a tuple, they take as long for each
    number or array in it.

    Raises:
        ValueError: A name is already an attribute of NumPy's records, or compiled code does not support a value as
            numbers.
    """
    for name in columns:
        if hasattr(np.record, name):
            raise ValueError(f"fields must not have the name of an attribute of NumPy's records, got {name!r}")
    values = {name: _column(name, value) for name, value in columns.items()}
    fields = [(name, value.dtype, value.shape) for name, value in values.items()]
    record = np.zeros(1, one_layout(np.dtype(fields, align=True)))
    for name, value in values.items():
        record[name][0] = value
    return readable(record)


def _column(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return numbers as an array of a type that compiled code supports; all Python integers get the same type."""
    try:
        column = np.asarray(value, np.int64 if type(value) is int else None)
    except OverflowError as error:
        raise ValueError(f"{name} must be a 64-bit integer, got {value!r}") from error
    if column.dtype.kind not in "biufV":
        raise ValueError(f"{name} must be a number or an array of numbers, got {value!r}")
    return column


@functools.cache
def one_layout(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the first layout equal to this one: Numba finds the code of the same object a microsecond faster."""
    return dtype


def source_hash(owner: Any) -> str | None:
    """Return the hash of all sources that compiled code depends on, or None if they are not in files.

    It covers this package's folders with compiled code, the files in the folders of the owner, its base classes and
    every compiled function that it calls, the constants that these functions read, Python and Numba.

    Args:
        owner: A function, or a class with the rules that are called.
    """
    if "<locals>" in owner.__qualname__:
        return None
    digest = hashlib.sha256(f"{sys.version} {numba.__version__}".encode())
    folders = {folder for name in HASHED for folder in (PACKAGE / name, *(PACKAGE / name).glob("**/"))}
    try:
        if isinstance(owner, type):
            folders |= {Path(inspect.getfile(ancestor)).parent for ancestor in owner.__mro__[:-1]}
        for function in _called(owner):
            folders.add(Path(inspect.getfile(function)).parent)
            digest.update(repr(_constants(function)).encode())
    except (OSError, TypeError):  # in a notebook
        return None
    for folder in sorted(folders):
        digest.update(_hash_of(folder).encode())
    return digest.hexdigest()[:16]


def _called(owner: Any) -> list[Any]:
    """Return the plain functions behind a function or a class's rules, and behind all compiled functions they call."""
    waiting = [owner]
    if isinstance(owner, type):
        waiting = [value for name in dir(owner) if hasattr(value := getattr(owner, name), "py_func")]
    found: dict[int, Any] = {}
    while waiting:
        function = waiting.pop()
        function = getattr(function, "py_func", function)
        if id(function) not in found:
            found[id(function)] = function
            waiting += [value for _, value in _read(function) if hasattr(value, "py_func")]
    return list(found.values())


def _constants(function: Any) -> list[tuple[str, Any]]:
    """Return the numbers, texts and tuples that a function reads from its module."""
    return [(name, value) for name, value in _read(function) if isinstance(value, (int, float, str, tuple, np.generic))]


def _read(function: Any) -> list[tuple[str, Any]]:
    """Return what a function reads by name: from its module, from modules it names, and from enclosing functions."""
    names = function.__code__.co_names
    found = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    found += zip(
        function.__code__.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True
    )
    modules = [value for _, value in found if inspect.ismodule(value)]
    return found + [(name, vars(module)[name]) for module in modules for name in names if name in vars(module)]


@functools.cache
def _hash_of(folder: Path) -> str:
    """Return the hash of the Python files directly in a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder of compiled kernels."""
    named = os.environ.get("FAIR_ENVS_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return Path(named)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fair_envs"


def _name_of_layout(record: types.Record) -> tuple[str, tuple[str]]:
    """Return the name of a record type in the symbols of machine code: a hash of its layout.

    Numba uses the number that the type has in the process. Machine code from disk would then bring symbols that another
    layout may have in this process, and one function would run instead of the other.
    """
    return "Record", (hashlib.sha256(record.name.encode()).hexdigest()[:16],)


types.Record.mangling_args = property(_name_of_layout)  # type: ignore[assignment, method-assign]

# Numba accepts one record in place of another that begins with the same fields, with a warning at every call of a rule.
# Here each layout is compiled separately.
types.Record.can_convert_to = lambda self, context, other: None  # type: ignore[method-assign, assignment]


class _KernelCache:
    """The files of one kernel, one for each signature, instead of Numba's cache: a SHA-256, then the content.

    In Numba's own cache the signatures of a function share an index. Two processes that compile for different layouts
    at once can each use the same number for their machine code, and a third process then runs the wrong one. Numba also
    unpickles any file that it finds. Here the checksum is verified first, and damaged files are compiled and stored
    again.
    """

    def __init__(self, owner: Any, *, name: str) -> None:
        self._owner, self._name = owner, name

    @functools.cached_property
    def folder(self) -> Path | None:
        """Folder of the files; None if the kernel's sources are not on disk, or no folder is safe."""
        source = source_hash(self._owner)
        with contextlib.suppress(RuntimeError, OSError):  # no writable folder: compile in every process
            return None if source is None else _folder_of(source)
        return None

    @property
    def cache_path(self) -> str:
        """The folder as text: Numba shows it in a kernel's ``stats``."""
        return str(self.folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, or None if no valid file of ours contains it."""
        target_context.refresh()
        if self.folder is None:
            return None
        file = self._file_of(self.folder, sig, target_context.codegen())
        try:
            kept, result = pickle.loads(_payload(file))
            return CompileResult._rebuild(target_context, *result) if kept == sig else None  # type: ignore[no-untyped-call]
        except Exception:  # for any problem with a file, the kernel can be compiled
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the compiled code for a signature, unless it contains addresses of this process."""
        movable = not data.library.has_dynamic_globals and all(part.can_cache for part in data.lifted)
        if self.folder is None or not movable:
            return
        with contextlib.suppress(OSError):  # a full disk or a read-only folder: compile in every process
            _keep(self._file_of(self.folder, sig, data.codegen), dumps((sig, data._reduce())))  # type: ignore[no-untyped-call]

    def flush(self) -> None:
        """Called by Numba before it compiles a kernel again; every file is replaced then."""

    def _file_of(self, folder: Path, sig: Any, codegen: Any) -> Path:
        """Return the file of one signature, named by types, processor and Numba's settings."""
        settings = [repr(getattr(numba.config, name)) for name in SETTINGS]
        made_from = repr((self._name, str(sig), codegen.magic_tuple(), settings))
        digest = hashlib.sha256(made_from.encode()).hexdigest()[:16]
        return folder / f"{_in_files(self._name)}-{digest}{SUFFIX}"


SUFFIX = ".kernel"  # of the names of files

SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
"""Settings of Numba (``NUMBA_OPT`` and so on) that change the machine code of the same source."""


def _in_files(name: str) -> str:
    """Return a kernel's name as it is in the names of files."""
    return re.sub(r"[^.0-9A-Za-z]", "_", name)


def is_stored(owner: type) -> bool:
    """Return whether the folder has loops of a class's rules as they are now, for any layout of lanes."""
    source = source_hash(owner)
    name = _in_files(f"{owner.__module__}.{owner.__qualname__}.")
    return source is not None and any((cache_folder() / source).glob(f"{name}*{SUFFIX}"))


def stored_sizes() -> list[int]:
    """Return the size of each stored kernel in bytes, also of those that earlier sources made."""
    return [file.stat().st_size for file in cache_folder().rglob(f"*{SUFFIX}")]


def why_not_stored() -> str:
    """Return why the folder stores no kernels, or an empty text if it does; create it if it does not exist."""
    base = cache_folder().absolute()
    try:
        _make(base)
        with tempfile.TemporaryFile(dir=base):
            pass
    except OSError as error:
        return f"{base} cannot be written to: {error.strerror}"
    unsafe = _unsafe(base)
    return f"{unsafe[0]} {unsafe[1]}" if unsafe else ""


def _keep(file: Path, payload: bytes) -> None:
    """Write a file atomically: the checksum of the payload, then the payload."""
    fresh = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        with open(fresh, "xb", opener=lambda path, flags: os.open(path, flags, 0o644)) as opened:
            opened.write(hashlib.sha256(payload).digest() + payload)
        os.replace(fresh, file)
    finally:
        fresh.unlink(missing_ok=True)


def _payload(file: Path) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: The file does not exist.
        ValueError: The file is damaged, or other users could have written it.
    """
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode) or _doubt(status, own=True):
        raise ValueError(f"{file} must be a file that no other user can write to")
    content = file.read_bytes()
    digest, payload = content[:32], content[32:]
    if hashlib.sha256(payload).digest() != digest:
        raise ValueError(f"{file} must match its checksum")
    return payload


def _folder_of(source: str) -> Path | None:
    """Return the folder of the kernels made from this source, or None if other users could change them.

    Machine code and pickles from there are executed, so every parent folder has to be safe too.
    """
    base = cache_folder().absolute()
    folder = base / source
    _make(folder)
    unsafe = _unsafe(base, folder)
    if unsafe:
        _warn(base, *unsafe)
        return None
    return folder


def _make(folder: Path) -> None:
    """Create a folder, and those that it is in, for this user only."""
    for part in (*reversed(folder.parents), folder):
        part.mkdir(mode=0o700, exist_ok=True)


def _unsafe(*folders: Path) -> tuple[Path, str] | None:
    """Return what other users could change on the way to the last of our folders, and how; None: nothing."""
    own = [folder.stat() for folder in folders]
    for part in _on_the_way(folders[-1]):
        status = part.lstat()
        doubt = _doubt(status, own=any(os.path.samestat(status, other) for other in own))
        if doubt:
            return part, doubt
    return None


def _on_the_way(path: Path) -> Iterator[Path]:
    """Yield all folders and links on the path."""
    for part in (*reversed(path.parents), path):
        yield part
        if part.is_symlink():
            yield from _on_the_way(part.parent / os.readlink(part))


def _doubt(status: os.stat_result, *, own: bool) -> str | None:
    """Return how users other than this one and root could change a file or folder, or None if they cannot.

    Args:
        status: Its ``lstat``.
        own: Whether everything in it has to belong to this user. Otherwise these are accepted too: a sticky folder like
            ``/tmp``, where others can add files but cannot touch ours, and a folder of the owner of ``/`` (not root in
            some containers).
    """
    if not hasattr(os, "geteuid"):  # Windows
        return None
    trusted = {0, os.geteuid()} if own else {0, os.geteuid(), os.stat("/").st_uid}
    if status.st_uid not in trusted:
        return f"belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode) or (status.st_mode & stat.S_ISVTX and not own):
        return None
    if status.st_mode & stat.S_IWOTH:
        return "can be written to by all users"
    if status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid):
        return f"can be written to by group {status.st_gid}"
    return None


def _is_private(group: int) -> bool:
    """Return whether a group is root's or has no other members; many systems give each user such a group."""
    import grp  # not on Windows
    import pwd

    try:
        user, found = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return group == 0
    return group == 0 or (found.gr_name == user and set(found.gr_mem) <= {user})


def _warn(base: Path, part: Path, doubt: str) -> None:
    """Warn once per process that this folder is not used to store or load kernels."""
    if base in _warned:
        return
    _warned.add(base)
    advice = f", or run `chmod go-w {part}` if you trust everything in it" if "written" in doubt else ""
    warnings.warn(
        f"kernels are compiled in every process, because {part} {doubt}, so others could add code to the cache {base}: "
        f"set FAIR_ENVS_CACHE to a folder that only you can write to{advice}",
        RuntimeWarning,
        stacklevel=2,
    )


_warned: set[Path] = set()
