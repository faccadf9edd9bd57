"""The documents' code runs, and the tutorial's environment keeps every promise."""

import math
import os
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from fair_envs.metrics.gaps import BY_NAME
from tests.forks import Forks, forks

ROOT = Path(__file__).parent.parent
TUTORIAL = (ROOT / "docs" / "adding-an-environment.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The last of them is what PyTorch imports for the first optimizer, which takes as long as all the rest.
LIBRARIES = ["gymnasium", "moocore", "numba", "pettingzoo.test", "pygame", "scipy.stats", "stable_baselines3"]
LIBRARIES += ["torch._dynamo"]
PAGES = [
    "README.md",
    "docs/choosing-a-history.md",
    "docs/cookbook/datasets.md",
    "docs/cookbook/fairlearn.md",
    "docs/cookbook/gymnasium.md",
    "docs/cookbook/language-models.md",
    "docs/cookbook/pettingzoo.md",
    "docs/cookbook/stable-baselines3.md",
    "docs/evaluation.md",
    "docs/learners.md",
    "docs/long-term.md",
    "docs/own-environment.md",
    "docs/explorer.md",
    "docs/index.md",
    "docs/quickstart.md",
    "docs/wrappers.md",
]
OPTIONAL = re.compile(r"^(?:import|from) (aif360|fairlearn|minari|pandas)\b", re.MULTILINE)
FILE = re.compile(r"^File: `([^`]+)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow_the_tutorial(checkout: Path) -> None:
    """Do to a checkout what the page says: its files, a line in the table, a line in the package list."""
    for name, text in FILE.findall(TUTORIAL):
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (table_line,) = [text for kind, text in BLOCK.findall(TUTORIAL) if text.lstrip().startswith('"FairWell-v0"')]
    (package_line,) = [text for _, text in BLOCK.findall(TUTORIAL) if text == '    "fair_envs.envs.well",\n']
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
        skipped = shutil.ignore_patterns("__pycache__", "_build", "api", "environments")  # a build may be under way
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy / name)
    follow_the_tutorial(copy)
    return copy


@pytest.fixture(scope="module", name="forks")
def ready() -> Iterator[Forks]:
    """Yield processes that have imported what the documents' programs need, but nothing of the package."""
    libraries = [name for name in LIBRARIES if find_spec(name.partition(".")[0])]
    with forks(*libraries, options=("-W", "error::DeprecationWarning:__main__")) as found:
        yield found


def run(forks: Forks, program: str, *, folder: Path, package: Path) -> CompletedProcess[str]:
    """Return what a program does in a folder, in a process of its own that imports the package from another."""
    drawing = {"SDL_VIDEODRIVER": "dummy", "MPLBACKEND": "Agg"}
    return forks.run(program, folder=folder, environment={**os.environ, **drawing, "PYTHONPATH": str(package)})


def test_the_tutorials_environment_passes_the_contract_test(checkout: Path, forks: Forks) -> None:
    program = """
import sys, pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests/test_contract.py", "-k", "FairWell"]))
"""
    done = run(forks, program, folder=checkout, package=checkout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"\d\d+ passed", done.stdout), done.stdout[-500:]


def test_the_tutorials_environment_reports_who_lives_far_away(checkout: Path, forks: Forks) -> None:
    program = """
import gymnasium, fair_envs
env = gymnasium.make("FairWell-v0")
env.reset(seed=0)
print(env.step([1] * 4)[4]["fair_action"])
"""
    done = run(forks, program, folder=checkout, package=checkout)
    assert done.stdout.strip() == "[1 0 1 0]", done.stdout + done.stderr


def test_the_tutorials_environment_has_twins_and_can_hide_who_lives_far_away(checkout: Path, forks: Forks) -> None:
    program = """
import gymnasium, numpy, fair_envs
from fair_envs.wrappers import HideSensitive, Twins, from_probabilities
draw = from_probabilities(lambda seen: numpy.broadcast_to([0.0, 1.0], (*seen.shape[:2], 2)))
played = Twins(fair_envs.make_rules("FairWell-v0", capacity=200)).run(draw, episodes=1, flip="protected")
print(played.factual.values[0].tolist(), played.counterfactual.values[0].tolist())
print(HideSensitive(gymnasium.make("FairWell-v0")).reset(seed=0)[0].tolist())
"""
    done = run(forks, program, folder=checkout, package=checkout)
    returns, seen = done.stdout.splitlines()
    assert returns == "[50.0, 25.0, 50.0, 25.0] [50.0, 50.0, 50.0, 50.0]", done.stderr
    assert seen == "[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]"


def test_the_tutorials_environment_can_be_in_ones_own_package(checkout: Path, forks: Forks) -> None:
    well = checkout / "my_package" / "well"
    well.mkdir()
    for file in (checkout / "fair_envs" / "envs" / "well").glob("*.py"):
        (well / file.name).write_text(file.read_text().replace("fair_envs.envs.well", "my_package.well"))
    program = """
import gymnasium
env = gymnasium.make("my_package:MyWell-v0")
print(type(env.unwrapped).__module__, type(env.unwrapped.lanes.rules.renderer()).__module__)
"""
    done = run(forks, program, folder=checkout, package=checkout)
    assert done.stdout.split() == ["my_package.well", "my_package.well.render"], done.stdout + done.stderr


def test_the_page_of_wrappers_lists_the_notions_that_can_be_objectives() -> None:
    page = (ROOT / "docs" / "wrappers.md").read_text()
    accepted = {name for name, make in BY_NAME.items() if math.isfinite(getattr(make(), "worst", 1.0))}
    assert {name for name in accepted if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_python_block_of_a_page_runs(page: str, forks: Forks, tmp_path: Path) -> None:
    blocks = [text for kind, text in BLOCK.findall((ROOT / page).read_text()) if kind == "python"]
    assert blocks
    for library in OPTIONAL.findall("".join(blocks)):
        pytest.importorskip(library)
    for text in blocks:
        done = run(forks, text, folder=tmp_path, package=ROOT)
        assert done.returncode == 0, text + done.stdout[-1000:] + done.stderr[-3000:]


def test_the_readme_shows_what_its_first_program_prints(forks: Forks, tmp_path: Path) -> None:
    (_, program), (kind, shown), *_ = BLOCK.findall((ROOT / "README.md").read_text())
    done = run(forks, program, folder=tmp_path, package=ROOT)
    assert (kind, shown) == ("text", done.stdout), done.stderr


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "reproduction").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_a_study_has_the_verdicts_and_the_short_table_of_its_report(page: Path) -> None:
    report = page.with_suffix("") / "report.md"
    text = report.read_text() if report.exists() else ""
    if "## Verdicts" not in text:
        pytest.skip("its report is of an earlier version")
    for section in ("Verdicts", "In short"):
        of = text.partition(f"## {section}\n")[2].partition("\n## ")[0].partition("**1. ")[0]
        rows = [line for line in of.splitlines() if line.startswith("| ")]
        assert len(rows) > 2 or section not in text
        for row in rows:
            assert row in page.read_text()
