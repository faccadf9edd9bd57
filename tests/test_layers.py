"""Imports point one way, heavy libraries stay at the edge, and `import fair_envs` stays light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest

from fair_envs import TABLE

ROOT = Path(__file__).parents[1]
PACKAGE = "fair_envs"

# What each layer stands on directly; it may import those, what they stand on in turn, and itself.
STANDS_ON: dict[str, tuple[str, ...]] = {
    "support": (),
    "core.compilation": ("support",),
    "core.weights": ("support",),
    "core.interactions": ("support",),
    "core.randomness": ("core.compilation",),
    "core.feedback": ("core.compilation",),
    "core": ("core.randomness", "core.feedback", "core.interactions", "core.weights"),
    "faces": ("core",),
    "evaluation": ("faces",),
    "envs": ("evaluation",),
    "registration": ("envs",),
    "fair_envs": ("registration",),  # the package's own __init__.py
    "metrics": ("core.compilation", "core.interactions", "core.weights"),
    "wrappers": ("evaluation", "metrics"),
    "evaluation.reports": ("fair_envs", "metrics"),
    "evaluation.systems": ("evaluation.reports", "wrappers"),
    "tasks": ("evaluation.systems",),
    "testing": ("fair_envs", "wrappers"),
    "assessment": ("tasks",),
    "explorer": ("assessment",),
    "template": ("support",),
    "baselines": ("assessment",),
    "experiments": ("baselines",),
    "search": ("experiments",),
    "reproduction": ("experiments",),
    "leaderboard": ("experiments",),
    "benchmark": ("search",),
    "cli": ("benchmark", "explorer", "leaderboard", "reproduction", "search", "template"),
}

# The only places that name these libraries; everything else reaches them through those.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "torch": ("fair_envs.baselines", "fair_envs.benchmark.peers"),
    "stable_baselines3": (
        "fair_envs.baselines",
        "fair_envs.benchmark.peers",
        "fair_envs.faces.sb3",
        "fair_envs.testing.contract",  # its checker of environments
    ),
}

HEAVY = ("matplotlib", "numba", "pygame", "scipy", "stable_baselines3", "torch")


@cache
def module_files() -> dict[str, Path]:
    """Return the file of every module of the package, those behind the links included."""
    files = {}
    for folder in (ROOT / PACKAGE, ROOT / PACKAGE / "baselines", ROOT / PACKAGE / "wrappers"):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


class Import(NamedTuple):
    """One imported name, spelled in full."""

    name: str
    for_types: bool  # under `if TYPE_CHECKING`: nothing is loaded


def imports(module: str, source: str, *, is_package: bool = False) -> Iterator[Import]:
    """Yield everything that a module imports anywhere in its source."""
    tree = ast.parse(source)
    blocks = [block for block in ast.walk(tree) if is_for_types(block)]
    for_types = {node for block in blocks for line in block.body for node in ast.walk(line)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node in for_types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: None if is_package else -1]
            base = base[: len(base) + 1 - node.level] if node.level else []
            origin = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from (Import(f"{origin}.{alias.name}", node in for_types) for alias in node.names)


def is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    """Return whether a node is an ``if TYPE_CHECKING`` block."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def layer(name: str) -> str:
    """Return the layer of a module or of a name in it; a name of the package itself is of layer ``fair_envs``."""
    parts = name.split(".")
    inside = [".".join(parts[1:end]) for end in range(len(parts), 1, -1)]
    return next((part for part in inside if part in STANDS_ON), PACKAGE)


def below(name: str) -> set[str]:
    """Return the layers that a layer may import."""
    return {name}.union(*(below(lower) for lower in STANDS_ON[name]))


def is_in(name: str, places: tuple[str, ...]) -> bool:
    """Return whether a name is one of the places or inside one."""
    return any(name == place or name.startswith(place + ".") for place in places)


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return the imports that a module should not have: of a layer above it, for types too, or of a library."""
    found = []
    for name, for_types in imports(module, source, is_package=is_package):
        places = MAY_IMPORT.get(name.split(".")[0])
        if is_in(name, (PACKAGE,)) and layer(name) not in below(layer(module)):
            found.append(f"{module} imports {name}, which stands above it")
        elif places and not for_types and not is_in(module, places):
            found.append(f"{module} imports {name}; only {', '.join(places)} may")
    return found


def test_every_module_belongs_to_a_layer() -> None:
    top = {name.split(".")[1] for name in module_files() if name != PACKAGE}
    assert sorted(top - set(STANDS_ON)) == [], "put the module into STANDS_ON, and into docs/architecture.md"


@pytest.mark.parametrize("module", sorted(module_files()))
def test_imports_point_down(module: str) -> None:
    path = module_files()[module]
    assert violations(module, path.read_text("utf-8"), is_package=path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("fair_envs.envs.harvest.rules", "from fair_envs.metrics.returns import gini"),
        ("fair_envs.envs.harvest.rules", "from fair_envs import metrics"),
        ("fair_envs.envs.harvest.rules", "from ...metrics import returns"),
        ("fair_envs.envs.harvest.rules", "import fair_envs"),
        ("fair_envs.metrics.returns", "import fair_envs.envs.harvest"),
        ("fair_envs.metrics.returns", "from fair_envs.core import Lanes"),
        ("fair_envs.core", "from . import faces"),
        ("fair_envs.core.randomness", "def draw():\n    from fair_envs.core import Lanes"),
        ("fair_envs.wrappers.penalty", "from fair_envs.baselines.ppo.ppo import PPO"),
        ("fair_envs.wrappers.twin", "from fair_envs.envs.harvest import rules"),
        ("fair_envs.baselines.ppo.ppo", "from fair_envs import cli"),
        ("fair_envs.reproduction.study", "import torch"),
        ("fair_envs.wrappers.adapters.bound", "from stable_baselines3.common.vec_env import VecEnvWrapper"),
        ("fair_envs.faces.sb3", "import torch.nn"),
        ("fair_envs.cli", "if TYPE_CHECKING:\n    import torch\nelse:\n    import torch"),
        ("fair_envs.core", "if TYPE_CHECKING:\n    from fair_envs.faces.vector import FairVectorEnv"),
    ],
)
def test_an_arrow_that_points_up_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("fair_envs.envs.harvest.rules", "from fair_envs.core.randomness import uniform\nimport numpy"),
        ("fair_envs.envs.harvest.rules", "from .params import Params"),
        (
            "fair_envs.metrics.returns",
            "from fair_envs.metrics import welfare\nfrom fair_envs.metrics.history import History",
        ),
        ("fair_envs.baselines.ppo.fair_ppo", "import torch\nfrom fair_envs.wrappers import penalty\nimport fair_envs"),
        ("fair_envs.faces.sb3", "from stable_baselines3.common.vec_env import VecEnv"),
        ("fair_envs.cli", "from fair_envs.reproduction import study"),
        ("fair_envs.registration", "if TYPE_CHECKING:\n    from stable_baselines3.common.vec_env import VecEnv"),
    ],
)
def test_an_arrow_that_points_down_is_let_through(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = f"import sys, fair_envs; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_no_modules_import_each_other() -> None:
    """Inside packages too, and for types; rules name their renderer and policies by a string."""
    import networkx as nx

    files, graph = module_files(), nx.DiGraph()
    for module, path in files.items():
        for name, _ in imports(module, path.read_text("utf-8"), is_package=path.name == "__init__.py"):
            while name and name not in files:
                name = name.rpartition(".")[0]
            if name not in ("", PACKAGE, module):
                graph.add_edge(module, name)
    assert [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1] == []


# The only places that may name an environment: its own folder, the table of ids, tasks, studies and benchmarks.
MAY_NAME = tuple(
    f"{PACKAGE}.{place}" for place in ("envs", "registration", "tasks", "baselines.tasks", "reproduction", "benchmark")
)
OF_ENVIRONMENTS = tuple(entry.module for entry in TABLE.values())


def named_environments(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return the environments that a module imports, or names in a string other than a docstring or an example."""
    tree, names = ast.parse(source), {entry.module.rpartition(".")[2] for entry in TABLE.values()}
    found = [name for name, _ in imports(module, source, is_package=is_package) if is_in(name, OF_ENVIRONMENTS)]
    described = (node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)))
    docstrings = {ast.get_docstring(node, clean=False) for node in described}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for text in texts - docstrings:
        examples = is_in(module, (f"{PACKAGE}.cli",))  # in help texts and errors
        if text in names or text in TABLE or (not examples and any(env_id in text for env_id in TABLE)):
            found.append(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.FunctionDef, ast.ClassDef)):
            name = (node.id if isinstance(node, ast.Name) else node.name).lower()
            found += [name for part in name.split("_") if part in names]
    return found


@pytest.mark.parametrize("module", sorted(module_files()))
def test_only_some_places_name_environments(module: str) -> None:
    path = module_files()[module]
    if not is_in(module, MAY_NAME):
        assert named_environments(module, path.read_text("utf-8"), is_package=path.name == "__init__.py") == []


@pytest.mark.parametrize(
    "source",
    [
        "from fair_envs.envs.pursuit.rules import Pursuit",
        "def f():\n    import fair_envs.envs.traffic",
        "known = 'FairHarvest-v0'",
        "if rules.name == 'lending':\n    pass",
        "raise ValueError('only FairHarvest-v0 can do this')",
        "LENDING_LIMIT = 3",
        "def of_pursuit():\n    pass",
    ],
)
def test_a_named_environment_is_found(source: str) -> None:
    assert len(named_environments("fair_envs.baselines.runs", source)) == 1
