"""Names of `fair_envs.baselines` come from their modules when they are asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

from fair_envs import baselines

SOURCE = Path(baselines.__file__)
ROOT = SOURCE.resolve().parents[1]


@pytest.mark.parametrize("module", ["baselines", "baselines.ppo.ppo", "baselines.team.play"])
@pytest.mark.parametrize("missing", ["torch", "stable_baselines3", "sb3_contrib"])
def test_every_module_names_the_extra_that_is_missing(module: str, missing: str) -> None:
    program = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "{missing}" else found(name, *rest)
import fair_envs.{module}
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"ImportError: fair_envs.baselines needs {missing}; install it with: pip install" in run.stderr


def test_the_table_of_modules_is_what_type_checkers_are_told() -> None:
    blocks = [node for node in ast.parse(SOURCE.read_text("utf-8")).body if isinstance(node, ast.If)]
    (block,) = (node for node in blocks if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
    told = {
        str(line.module).removeprefix("fair_envs.baselines."): tuple(sorted(alias.name for alias in line.names))
        for line in block.body
        if isinstance(line, ast.ImportFrom)
    }
    assert {module: tuple(sorted(names)) for module, names in baselines._MODULES.items()} == told
    assert sorted([*baselines._HOMES, "Measure"]) == sorted(baselines.__all__)


@pytest.mark.parametrize("name", baselines.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(baselines, name) is not None


def test_a_name_that_is_not_there_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"module 'fair_envs\.baselines' has no attribute 'Oracle'"):
        _ = baselines.Oracle
