"""Writes the files of a new environment."""

import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path

from fair_envs.support.parameters import checked

FILES = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "readme.md.txt",
    "NAME/__init__.py": "init.py.txt",
    "NAME/params.py": "params.py.txt",
    "NAME/rules.py": "rules.py.txt",
    "NAME/render.py": "render.py.txt",
    "NAME/policies.py": "policies.py.txt",
    "tests/test_NAME.py": "test.py.txt",
}
"""The written files, and the templates that they are made from."""

TAKEN = ("box", "decider", "discrete", "env", "parallel", "rules", "severe", "task", "vector")
"""Names of packages whose class would have a name that the templates use."""


def new_environment(name: str, folder: Path | str) -> list[Path]:
    """Write a package with a small environment that works, to be changed into another one; return its files.

    Args:
        name: Name of the package, such as ``"clinic"``: small letters, digits and underscores. The id is made from it,
            such as ``"Clinic-v0"``.
        folder: A new folder, or an empty one.

    Raises:
        ValueError: The name is not one of a package.
        FileExistsError: The folder has files.
    """
    checked("name", name, str)
    if not re.fullmatch("[a-z]([a-z0-9_]*[a-z0-9])?", name) or keyword.iskeyword(name):
        raise ValueError(f"name must be small letters, digits and underscores, such as 'clinic', got {name!r}")
    if name in sys.stdlib_module_names or name in TAKEN:
        raise ValueError(f"name must not be that of another module or class, such as 'clinic', got {name!r}")
    out = Path(folder)
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"folder must be new or empty, got {out}")
    title = "".join(part.capitalize() for part in name.split("_"))
    written = []
    for path, template in FILES.items():
        text = (files("fair_envs.template") / "data" / template).read_text()
        place = out / path.replace("NAME", name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.replace("@name@", name).replace("@Title@", title))
        written.append(place)
    return written
