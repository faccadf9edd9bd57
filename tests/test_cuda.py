"""The rules compile for a GPU, where numba-cuda and NVIDIA's compilers are installed; nothing runs on a device."""

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fair_envs import TABLE, make_rules
from fair_envs.core import Lanes, randomness
from fair_envs.core.compilation import COMPILED

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("needs numba-cuda, nvidia-cuda-nvcc and nvidia-cuda-nvrtc", allow_module_level=True)

numba: Any = pytest.importorskip("numba")
cuda: Any = pytest.importorskip("numba.cuda")  # numba-cuda, which replaces Numba's own

pytestmark = pytest.mark.skipif(not COMPILED, reason="rules are compiled")

CAPABILITY = (9, 0)


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that there is a device; only its code is made."""
    fake = SimpleNamespace(compute_capability=CAPABILITY)
    for name in ("api", "dispatcher"):
        monkeypatch.setattr(importlib.import_module(f"numba.cuda.{name}"), "get_current_device", lambda: fake)


@pytest.mark.parametrize("env_id", TABLE)
def test_start_and_step_compile_to_ptx(env_id: str) -> None:
    rules = make_rules(env_id)
    lanes = Lanes(rules, 4)
    report, space = lanes.blank_step(), rules.action_space(rules.params)
    start, step, observe, describe = (getattr(type(rules), name) for name in ("start", "step", "observe", "describe"))
    episode_key, code = randomness.episode_key, rules.code if isinstance(rules.code, np.ndarray) else (rules.code,)

    def begin(code: Any, lanes: Any) -> None:
        b = cuda.grid(1)
        if b < lanes.shape[0]:
            lane = lanes[b]
            lane.key = episode_key(lane.seed, lane.episode)
            start(lane, code[0])

    def advance(code: Any, blank: Any, lanes: Any, actions: Any, out: Any, reward: Any, ended: Any, facts: Any) -> None:
        b = cuda.grid(1)
        if b < lanes.shape[0]:
            facts[b] = blank[0]
            lane, fact = lanes[b], facts[b]
            describe(lane, code[0], fact)
            ended[b] = step(lane, actions[b], code[0], reward[b], fact)
            lane.time += 1
            observe(lane, code[0], out[b])

    actions = np.zeros((4, lanes.agents, *(space.shape or ())), space.dtype)
    played = report.observation, report.reward, report.terminated, report.facts
    for kernel, arrays in (
        (begin, (code, lanes.records)),
        (advance, (code, lanes._blank, lanes.records, actions, *played)),
    ):
        ptx, _ = cuda.compile_ptx(kernel, tuple(map(numba.typeof, arrays)), cc=CAPABILITY)
        assert ".entry" in ptx
