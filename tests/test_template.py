"""The template of an environment works as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fair_envs.cli import app
from fair_envs.template import new_environment

ROOT = Path(__file__).parents[1]

PROGRAM = """
import gymnasium, fair_envs
from fair_envs.testing import fuzz_environment

fuzz_environment("night_clinic:NightClinic-v0", steps=2000, layouts=1).check()  # as one of its tests does for longer
found = fair_envs.evaluate("night_clinic:NightClinic-v0", "random", episodes=8, shuffles=0)
print(found.rate, found.groups, gymnasium.make("NightClinic-v0", render_mode="ansi").unwrapped.fair_spec.actions)
"""


def test_a_new_environment_keeps_its_promises_and_passes_its_own_tests(tmp_path: Path) -> None:
    written = new_environment("night_clinic", tmp_path / "new")
    assert not any("@" in path.read_text().replace("@rule", "") for path in written if path.suffix == ".py")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'new'}{os.pathsep}{ROOT}"}
    ready = {"cwd": tmp_path / "new", "env": environment, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([sys.executable, "-c", PROGRAM], **ready)  # type: ignore[call-overload]
    assert done.stdout.strip() == "true positive rate ('near', 'far') 2", done.stdout + done.stderr
    options = ["-p", "pytest_fair_envs", "-p", "no:cacheprovider", "-rs", "-k", "not random"]
    done = subprocess.run([sys.executable, "-m", "pytest", *options], **ready)  # type: ignore[call-overload]
    assert done.returncode == 0 and "tests/test_night_clinic.py ..." in done.stdout, done.stdout + done.stderr
    passed = re.search(r" (\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) > 50, done.stdout


@pytest.mark.parametrize("name", ["Clinic", "my clinic", "class", "_clinic", "2nd", "clinic_", "école"])
def test_a_name_must_be_one_of_a_package(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name must be small letters, digits and underscores, such as 'clinic', got"):
        new_environment(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["env", "task", "random"])
def test_a_name_must_be_free(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name must not be that of another module or class, such as 'clinic', got"):
        new_environment(name, tmp_path / "new")


def test_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="folder must be new or empty, got"):
        new_environment("clinic", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_command_says_what_it_wrote_and_what_is_next(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["new-env", "clinic", "--out", str(tmp_path / "new")])
    assert done.exit_code == 0 and "clinic/rules.py" in done.output and "python -m pytest" in done.output


def test_the_code_of_the_guide_is_that_of_the_template() -> None:
    page = (ROOT / "docs" / "decision-environment.md").read_text()
    folder = ROOT / "fair_envs" / "template" / "data"
    texts = [plain(path.read_text().replace("@Title@", "Clinic")) for path in folder.iterdir()]
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    assert [block for block in blocks if not any(plain(block) in text for text in texts)] == []


def plain(code: str) -> str:
    """Return code without indentation and empty lines."""
    return "\n".join(line.strip() for line in code.splitlines() if line.strip())
