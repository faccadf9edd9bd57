"""Compiles the loop over the lanes, once for all environments, and keeps what was compiled on disk.

Numba's own disk cache does not notice a change in a function imported from another file, and cannot keep a function
that closes over other compiled functions. Here a kernel's place on disk is named by a hash of everything it was made
from: this package's sources and the file of the environment's rules. An edit anywhere compiles anew; nothing stale is
ever loaded.

``FAIR_ENVS_CACHE`` names another folder than the user's cache folder.
"""

import functools
import hashlib
import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

COMPILED = not numba.config.DISABLE_JIT
"""False under ``NUMBA_DISABLE_JIT=1``: everything runs as plain Python, for debugging and coverage."""

Kernel = Callable[..., None]


def compile_kernel(function: Callable[..., Any], *, name: str, source: str) -> Kernel:
    """Return the function compiled, or loaded from disk if it was compiled before.

    Args:
        function: The loop over the lanes; it may close over compiled rules.
        name: What the function is called on disk, unique among the kernels of one ``source``.
        source: Hash of what the function was made from.
    """
    kernel = numba.njit(nogil=True)(function)
    if COMPILED:
        try:
            kernel._cache = _KernelCache(function, name=name, source=source)
        except (RuntimeError, OSError):  # no folder can be written: compile in every process
            pass
    return kernel  # type: ignore[no-any-return]


def source_hash(rules: type) -> str:
    """Return the hash of all that compiled rules depend on: this package, the rules' packages, Python and Numba."""
    packages = {Path(__file__).parent}
    for ancestor in rules.__mro__[:-1]:
        packages.add(Path(inspect.getfile(ancestor)))
    digest = hashlib.sha256(f"{sys.version} {numba.__version__}".encode())
    for path in sorted(packages):
        digest.update(_hash_of(path).encode())
    return digest.hexdigest()[:16]


@functools.cache
def _hash_of(path: Path) -> str:
    """Return the hash of a Python file, or of all those directly in a folder and in its ``envs``."""
    files = [path] if path.is_file() else sorted([*path.glob("*.py"), *path.glob("envs/**/*.py")])
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder of compiled kernels."""
    named = os.environ.get("FAIR_ENVS_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return Path(named)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fair_envs"


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache with our folder and our key in place of its own."""

    def __init__(self, function: Callable[..., Any], *, name: str, source: str) -> None:
        super().__init__(function)
        folder = cache_folder() / source
        folder.mkdir(parents=True, exist_ok=True)
        self._cache_path = str(folder)
        self._source = source
        self._cache_file = IndexDataCacheFile(
            cache_path=str(folder), filename_base=re.sub(r"\W", "_", name), source_stamp=source
        )

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return sig, codegen.magic_tuple(), self._source
