"""`fair-envs warm` compiles what interfaces and measures use, and a long compilation is announced."""

import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from numba.core import event
from numba.core.registry import CPUDispatcher

from fair_envs.core import compilation
from tests.test_cli import Said, mistake

USE = """
import gymnasium, fair_envs
for env in (gymnasium.make("FairLending-v0"), gymnasium.make_vec("FairLending-v0", num_envs=9)):
    env.reset(seed=0)
    env.step(env.action_space.sample())
"""


@pytest.mark.long
@pytest.mark.skipif(not compilation.COMPILED, reason="nothing is compiled")
def test_what_it_compiled_is_there_for_the_next_program(tmp_path: Path) -> None:
    environment = {**os.environ, "FAIR_ENVS_CACHE": str(tmp_path)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)

    warmed = run("-m", "fair_envs.cli", "warm", "FairLending-v0", "--no-progress")
    assert "1 environment ready after" in warmed.stdout
    assert warmed.stderr == ""
    kept = sorted(tmp_path.rglob("*.kernel"))
    assert kept
    assert run("-c", USE).stderr == ""
    assert sorted(tmp_path.rglob("*.kernel")) == kept


def test_every_environment_can_be_compiled_beforehand() -> None:
    assert "9 environments ready" in Said("warm", "--no-progress").text
    assert "id must be one of" in mistake("warm", "FairFishing-v0")


@pytest.mark.skipif(not compilation.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("compiling", "loading", "told"), [(0.3, 0.0, 1), (0.07, 0.0, 1), (0.0, 0.0, 0), (0.0, 0.3, 0)]
)
def test_one_is_told_once_and_only_if_it_takes_long_to_compile(
    compiling: float, loading: float, told: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compiled(self: Any, sig: Any) -> None:
        time.sleep(loading)
        with event.trigger_event("numba:compile", data={"dispatcher": self}):
            time.sleep(compiling)

    monkeypatch.setattr(compilation, "PATIENCE", 0.1)
    monkeypatch.setattr(compilation, "_announced", [])
    monkeypatch.setattr(compilation, "_seconds", [])
    monkeypatch.setattr(CPUDispatcher, "compile", compiled)
    monkeypatch.setattr(compilation._Kernel, "_set_environments", lambda self: None)
    one = compilation._Kernel(lambda: None)
    with caplog.at_level(logging.WARNING, logger="fair_envs"):
        for _ in range(2):
            one.compile(None)
    assert len(caplog.records) == told


@pytest.mark.skipif(not compilation.COMPILED, reason="nothing is compiled")
def test_threads_compile_a_kernel_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listeners get the events of all threads, so that one thread sees the end of what another one began."""
    monkeypatch.setattr(compilation, "_seconds", [])  # so that it waits
    kernel = compilation._Kernel(lambda: None)
    one, other = compilation._Patience(kernel), compilation._Patience(kernel)
    begun, ended = (
        event.Event("numba:compile", status, data={"dispatcher": kernel})  # type: ignore[no-untyped-call]
        for status in (event.EventStatus.START, event.EventStatus.END)
    )
    one.on_start(begun)
    with ThreadPoolExecutor(1) as pool:
        for patience in (one, other):
            pool.submit(patience.on_end, ended).result()
    assert one._timer.is_alive()
    one.on_end(ended)
    assert one._timer.finished.is_set()
