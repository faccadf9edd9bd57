"""The documents' code runs, and the tutorial's environment keeps every promise."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TUTORIAL = (ROOT / "docs" / "adding-an-environment.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^File: `([^`]+)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow_the_tutorial(checkout: Path) -> None:
    """Do to a checkout what the page says: four files, a line in the table, a line in the package list."""
    for name, text in FILE.findall(TUTORIAL):
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (table_line,) = [text for kind, text in BLOCK.findall(TUTORIAL) if text.lstrip().startswith('"FairWell-v0"')]
    (package_line,) = [text for kind, text in BLOCK.findall(TUTORIAL) if kind == "toml"]
    insert(checkout / "fair_envs" / "registration.py", "TABLE: dict[str, Entry] = {\n", table_line)
    insert(checkout / "pyproject.toml", "packages = [\n", package_line)


def insert(path: Path, after: str, line: str) -> None:
    text = path.read_text()
    assert text.count(after) == 1
    path.write_text(text.replace(after, after + line))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the tutorial's environment."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("fair_envs", "wrappers", "baselines", "tests", "docs"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy / name)
    follow_the_tutorial(copy)
    return copy


def run(checkout: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=540)


def test_the_tutorials_environment_passes_the_contract_test(checkout: Path) -> None:
    done = run(
        checkout,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_contract.py",
        "-k",
        "FairWell",
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"\d\d+ passed", done.stdout), done.stdout[-500:]


def test_the_tutorials_environment_reports_who_lives_far_away(checkout: Path) -> None:
    program = """
import gymnasium, fair_envs
env = gymnasium.make("FairWell-v0")
env.reset(seed=0)
print(env.step([1] * 4)[4]["fair_action"])
"""
    done = run(checkout, sys.executable, "-c", program)
    assert done.stdout.strip() == "[1 0 1 0]", done.stdout + done.stderr


def test_the_tutorials_environment_has_twins_and_can_hide_who_lives_far_away(checkout: Path) -> None:
    program = """
import gymnasium, numpy, fair_envs
from fair_envs.wrappers import HideSensitive, Twins, from_probabilities
draw = from_probabilities(lambda seen: numpy.broadcast_to([0.0, 1.0], (*seen.shape[:2], 2)))
played = Twins(fair_envs.make_rules("FairWell-v0", capacity=200)).run(draw, episodes=1, flip="carriers")
print(played.factual.values[0].tolist(), played.counterfactual.values[0].tolist())
print(HideSensitive(gymnasium.make("FairWell-v0")).reset(seed=0)[0].tolist())
"""
    done = run(checkout, sys.executable, "-c", program)
    returns, seen = done.stdout.splitlines()
    assert returns == "[50.0, 25.0, 50.0, 25.0] [50.0, 50.0, 50.0, 50.0]", done.stderr
    assert seen == "[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]"


@pytest.mark.parametrize("page", ["README.md", "docs/choosing-a-history.md", "docs/long-term.md"])
def test_every_python_block_of_a_page_runs(page: str, tmp_path: Path) -> None:
    blocks = [text for kind, text in BLOCK.findall((ROOT / page).read_text()) if kind == "python"]
    assert blocks
    for text in blocks:
        program = tmp_path / "block.py"
        program.write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SDL_VIDEODRIVER": "dummy", "MPLBACKEND": "Agg"}
        done = subprocess.run(
            [sys.executable, "-W", "error::DeprecationWarning:__main__", str(program)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, text + done.stdout[-1000:] + done.stderr[-3000:]
