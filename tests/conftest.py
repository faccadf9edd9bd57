"""What every test run needs: no window, one thread a process, repeatable examples, and frames that follow at once."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest

for variable, value in {"SDL_VIDEODRIVER": "dummy", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}.items():
    os.environ.setdefault(variable, value)

# No deadline: the first example of a compiled rule pays for the compilation.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def real_wait() -> Iterator[Callable[[Any], None]]:
    """Let windows show frames as fast as they are drawn; yield what they wait with otherwise."""
    from fair_envs.faces.window import Window

    wait = Window.wait
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Window, "wait", lambda window: None)
        yield wait
