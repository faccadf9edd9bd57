"""What is installed is the tree, and it works in a bare environment beside a user's own files."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PLUGIN = "pytest_fair_envs.py"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SETUPTOOLS: dict[str, Any] = PROJECT["tool"]["setuptools"]

# These stand on Stable-Baselines3; without it they say which command installs it.
NEED_AN_EXTRA = (
    "fair_envs.baselines",
    "fair_envs.benchmark.peers",
    "fair_envs.faces.sb3",
    "fair_envs.reproduction",
    "fair_envs.search",
    "fair_envs.wrappers.adapters.sb3",
)

NEED_PYTEST = "fair_envs.testing.contract."  # pytest imports them

IMPORT_EACH = """
import importlib, json, sys
refusals = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        refusals[name] = str(error)
print(json.dumps(refusals))
"""


def package_files() -> set[str]:
    """Return every file of the package as its path in the wheel, those behind the links included."""
    return {
        os.path.relpath(os.path.join(folder, name), ROOT)
        for folder, _, names in os.walk(ROOT / "fair_envs", followlinks=True)
        for name in names
        if Path(folder).name != "__pycache__"
    }


def modules() -> list[str]:
    """Return the name of every module of the package."""
    paths = (Path(name).with_suffix("") for name in package_files() if name.endswith(".py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def test_the_package_list_equals_the_tree() -> None:
    folders = {str(Path(name).parent) for name in package_files() if Path(name).name == "__init__.py"}
    assert sorted(SETUPTOOLS["packages"]) == sorted(folder.replace(os.sep, ".") for folder in folders)


def test_every_folder_with_code_is_a_package() -> None:
    folders = {str(Path(name).parent) for name in package_files() if name.endswith(".py")}
    assert sorted(folder for folder in folders if not (ROOT / folder / "__init__.py").exists()) == []


@pytest.mark.parametrize("folder", ["baselines", "wrappers"])
def test_the_link_leads_where_the_package_is_installed_from(folder: str) -> None:
    link = ROOT / "fair_envs" / folder
    assert link.is_symlink()
    assert os.readlink(link) == f"../{folder}"
    assert SETUPTOOLS["package-dir"][f"fair_envs.{folder}"] == folder


def test_every_requirement_is_pinned() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    requirements = [*PROJECT["project"]["dependencies"], *(line for lines in extras.values() for line in lines)]
    names = {re.split(r"[^A-Za-z0-9._-]", line)[0] for line in requirements} - {PROJECT["project"]["name"]}
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert (
        sorted(line for line in lines if not re.match(r'[a-z0-9-]+==[0-9.]+(; python_version (<|>=) "3\.11")?$', line))
        == []
    )
    assert sorted(names - {line.split("==")[0] for line in lines}) == []


def test_mutation_testing_names_files_that_are_there() -> None:
    configured = [tomllib.loads(path.read_text("utf-8"))["cosmic-ray"] for path in ROOT.glob("tests/mutation/*.toml")]
    sessions = [told for told in configured if "module-path" in told]
    assert len(sessions) >= 5
    for told in sessions:
        tests = re.findall(r"tests/\S+\.py", told["test-command"])
        assert tests and [name for name in (told["module-path"], *tests) if not (ROOT / name).is_file()] == []


def test_every_file_names_the_same_version() -> None:
    version = PROJECT["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert version in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, made from the source distribution, made from a copy: no earlier build can leak in."""
    source = tmp_path_factory.mktemp("source")
    for folder in ("baselines", "fair_envs", "wrappers"):
        shutil.copytree(ROOT / folder, source / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "README.md", "pyproject.toml", PLUGIN):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist"]
    subprocess.run(build, cwd=source, check=True, capture_output=True, timeout=300)
    (made,) = (source / "dist").glob("*.whl")
    return made


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert sorted(names) == sorted({*package_files(), PLUGIN})


@pytest.fixture(scope="module")
def bare_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment in which nothing but the wheel was asked for."""
    folder = tmp_path_factory.mktemp("bare")
    python = folder / "bin" / "python"
    lent = find_spec("pip") is not None and tuple(map(int, version("pip").split(".")[:2])) >= (22, 3)
    venv.create(folder, with_pip=not lent)  # which takes longer than all else but NumPy, SciPy and Numba
    pip = [sys.executable, "-m", "pip", "--python", str(python)] if lent else [str(python), "-m", "pip"]
    pinned = str(ROOT / "constraints.txt")
    install = [*pip, "install", "--no-compile", "--constraint", pinned, str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=600)
    return python


@pytest.fixture
def users_folder(tmp_path: Path) -> Path:
    """Return a working directory with the user's own wrappers.py and baselines.py, which no one should import."""
    for name in ("baselines.py", "wrappers.py"):
        (tmp_path / name).write_text('raise AssertionError("the user\'s own file was imported")\n', "utf-8")
    return tmp_path


def run_in(folder: Path, *command: str | Path) -> str:
    """Return what a command prints in a folder, without this run's paths; a failure shows both of its streams."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    run = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


class TestABareEnvironment:
    """The wheel alone, with the required dependencies only, beside a user's own wrappers.py and baselines.py."""

    def test_every_module_imports_or_names_the_extra_it_needs(self, bare_python: Path, users_folder: Path) -> None:
        refusals = json.loads(run_in(users_folder, bare_python, "-c", IMPORT_EACH, *modules()))
        tests = {name: refusals.pop(name) for name in list(refusals) if name.startswith(NEED_PYTEST)}
        assert set(tests.values()) == {"No module named 'pytest'"}
        assert [name for name in refusals if not name.startswith(NEED_AN_EXTRA)] == [], refusals
        search = {name: text for name, text in refusals.items() if name.startswith("fair_envs.search")}
        assert [
            text for name, text in refusals.items() if "fair-envs[baselines]" not in text and name not in search
        ] == []
        assert [text for text in search.values() if "fair-envs[search]" not in text] == []

    def test_gymnasium_makes_the_harvest(self, bare_python: Path, users_folder: Path) -> None:
        program = "import fair_envs, gymnasium; gymnasium.make('FairHarvest-v0').reset(seed=0)"
        run_in(users_folder, bare_python, "-c", program)

    def test_the_command_line_lists_the_harvest(self, bare_python: Path, users_folder: Path) -> None:
        assert "FairHarvest-v0" in run_in(users_folder, bare_python.with_name("fair-envs"), "list")

    def test_pytest_finds_the_plugin(self, bare_python: Path, users_folder: Path) -> None:
        program = "from importlib.metadata import entry_points; print(*entry_points(group='pytest11'))"
        found = run_in(users_folder, bare_python, "-c", program)
        assert "name='pytest_fair_envs', value='pytest_fair_envs', group='pytest11'" in found

    def test_type_checkers_find_the_marker(self, bare_python: Path, users_folder: Path) -> None:
        program = "import fair_envs, pathlib; print(pathlib.Path(fair_envs.__file__).with_name('py.typed').exists())"
        assert run_in(users_folder, bare_python, "-c", program).strip() == "True"
