"""What tests share: no window, one thread, Ctrl-C, repeatable examples, frames that follow at once, a browser."""

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

TESTS = Path(__file__).parent

for variable, value in {"SDL_VIDEODRIVER": "dummy", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}.items():
    os.environ.setdefault(variable, value)

# A shell's background jobs ignore it, and what they start inherits that. Tests of Ctrl-C would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The contract is a part of the package, and its asserts show values like those of the tests here.
pytest.register_assert_rewrite("fair_envs.testing.contract")

# No deadline: the first example of a compiled rule pays for the compilation.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")

# Modules and tests stay until the end: looking for garbage among them took a tenth of the time.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the file that takes longest, for which the other processes would wait at the end.

    It compiles every environment. Beside it runs what does not, so that no two processes compile the same.
    """
    first = ["assessment/test_evaluation.py", "test_compilation.py", "test_packaging.py", "test_layers.py"]
    places = {TESTS / name: place for place, name in enumerate(first)}
    items.sort(key=lambda item: places.get(item.path, len(first)))


def pytest_collection_finish() -> None:
    """Collect the garbage of tests, but not of what there was before them."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def real_wait() -> Iterator[Callable[[Any], None]]:
    """Let windows show frames as fast as they are drawn; yield what they wait with otherwise."""
    from fair_envs.faces.window import Window

    wait = Window.wait
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Window, "wait", lambda window: None)
        yield wait


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty directory, in a terminal of a known width."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture(scope="module")
def ferry() -> Iterator[str]:
    """Make the ferry known to the package; yield its id."""
    import gymnasium
    import pettingzoo

    from fair_envs import TABLE, register

    register("TestFerry-v0", "tests.ferry", "A toy.")
    yield "TestFerry-v0"
    del TABLE["TestFerry-v0"], gymnasium.registry["TestFerry-v0"]
    for interface in ("aec", "parallel"):
        getattr(pettingzoo, f"{interface}_registry", {}).pop("TestFerry-v0", None)  # PettingZoo 1.27 and later


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Yield a browser; a test that needs it is skipped where no browser is installed."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
