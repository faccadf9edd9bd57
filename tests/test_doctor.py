"""`fair-envs doctor` says what is installed, what is missing for what, and whether it works."""

import re
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fair_envs.cli import doctor
from fair_envs.cli.pages import rules_class
from fair_envs.core import compilation
from fair_envs.faces import window
from fair_envs.support import extras
from tests.test_cli import Said
from tests.test_packaging import PROJECT

FOR_DEVELOPERS = {"all", "dev", "docs", "mutation"}


def without(*libraries: str) -> Callable[[str], str | None]:
    """Return `installed_version` where these libraries are missing."""
    return lambda name: None if name in libraries else version(name)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import nothing and play nothing."""
    monkeypatch.setattr(doctor, "import_error", lambda module: "")
    monkeypatch.setattr(doctor, "problems_of_playing", lambda found: [])


def test_what_is_installed_here_works_and_the_report_fits_a_terminal() -> None:
    said = Said("doctor", "--no-progress")
    assert said.code == 0, said.text
    assert max(map(len, said.text.splitlines())) <= 80
    for told in ("Python 3.", "numba", str(compilation.cache_folder())[:60], "for this process, of"):
        assert told in said.text
    assert said.text.endswith("Everything that is installed works.\n")


@pytest.mark.usefixtures("quick")
def test_a_missing_extra_says_what_it_is_for_and_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "installed_version", without("ray", "cmaes"))
    said = Said("doctor", "--no-progress")
    assert said.code == 0
    assert "ray missing several machines (--engine ray) pip install 'fair-envs[ray]'" in said.flat
    assert "search missing the search for fairer parameters (fair-envs design) without cmaes pip install" in said.flat


@pytest.mark.usefixtures("quick")
def test_a_library_that_is_too_old_or_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"numba": None, "scipy": "1.2", "torch": "1.0"}
    monkeypatch.setattr(extras, "installed_version", lambda name: versions.get(name, "99"))
    said = Said("doctor", "--no-progress")
    assert said.code == 1
    assert "PROBLEM: numba is missing; install it with:\n  pip install --upgrade 'numba>=0.61'\n" in said.text
    assert "PROBLEM: scipy must be >=1.15, got 1.2; install it with:\n  pip install --upgrade 'sc" in said.text
    assert "PROBLEM: torch must be >=2.8, got 1.0; install it with:\n" in said.text
    assert "PROBLEM: gymnasium must be <2,>=1.1, got 99" in said.text
    assert "Everything" not in said.text


def test_a_library_that_cannot_be_imported_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("raise OSError('libbroken.so: cannot open shared object file')")
    (tmp_path / "broken-1.5.dist-info").mkdir()
    (tmp_path / "broken-1.5.dist-info" / "METADATA").write_text("Name: broken\nVersion: 1.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = doctor.tried(Requirement("broken>=1"))
    assert not found.works and found.version == "1.5"
    assert found.problem == (
        "broken 1.5 cannot be imported: libbroken.so: cannot open shared object file; install it with:\n"
        "  pip install --force-reinstall 'broken>=1'"
    )


def test_another_library_with_the_same_module_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "twin_module.py").write_text("")
    (tmp_path / "other-2.0.dist-info").mkdir()
    (tmp_path / "other-2.0.dist-info" / "METADATA").write_text("Name: other\nVersion: 2.0\n")
    (tmp_path / "other-2.0.dist-info" / "top_level.txt").write_text("twin_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert extras.installed_version("twin-module") == "2.0"
    assert extras.installed_version("no-such-module") is None


def test_each_extra_for_users_has_a_purpose() -> None:
    assert set(extras.PURPOSES) == set(PROJECT["project"]["optional-dependencies"]) - FOR_DEVELOPERS


@pytest.mark.parametrize(("module", "extra"), [("sklearn", "search"), ("matplotlib", "baselines"), ("numba", None)])
def test_a_module_is_installed_by_the_first_extra_that_has_it(module: str, extra: str | None) -> None:
    assert extras.extra_of(module) == extra


def test_a_checkout_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(extra: str = "") -> None:
        raise PackageNotFoundError("fair-envs")

    monkeypatch.setattr(extras, "libraries", missing)
    said = Said("doctor")
    assert said.code == 1 and said.text.startswith("fair-envs: fair-envs is not installed; in its folder, run: pip ")
    assert extras.extra_of("torch") is None


@pytest.mark.skipif(not compilation.COMPILED, reason="nothing is compiled")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FAIR_ENVS_CACHE", str(tmp_path / "file" / "cache"))
    rows = dict(doctor.rows_of_rules())
    assert re.fullmatch(r"nothing: .*/file/cache cannot be written to: .*", rows["stored"]) and "compiled" not in rows


@pytest.mark.skipif(not compilation.COMPILED, reason="nothing is compiled")
def test_a_folder_that_others_can_write_to_stores_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("FAIR_ENVS_CACHE", str(folder))
    assert dict(doctor.rows_of_rules())["stored"] == f"nothing: {folder} can be written to by all users"


@pytest.mark.skipif(not compilation.COMPILED, reason="nothing is compiled")
def test_environments_are_compiled_once_their_rules_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIR_ENVS_CACHE", str(tmp_path / "cache"))
    rows = dict(doctor.rows_of_rules())
    assert rows["compiled"] == "none" and rows["stored"] == "0 MiB in 0 files" and rows["not yet"].startswith("FairHar")
    rules = rules_class("FairLending-v0")
    source = compilation.source_hash(rules)
    assert source is not None
    kernel = tmp_path / "cache" / source / f"{rules.__module__}.{rules.__qualname__}.advance-0123.kernel"
    kernel.parent.mkdir()
    kernel.write_bytes(b"code")
    rows = dict(doctor.rows_of_rules())
    assert rows["compiled"] == "FairLending-v0" and "FairLending-v0" not in rows["not yet"]


@pytest.mark.skipif("pygame" not in sys.modules and extras.installed_version("pygame-ce") is None, reason="no pygame")
def test_a_window_needs_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = window.import_pygame()
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    assert "there is no screen" in doctor.window_text()
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "x11")
    assert doctor.window_text() == "yes (SDL's driver is x11)"
