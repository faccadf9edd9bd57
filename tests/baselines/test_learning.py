"""Learners whose state a checkpoint cannot hold are refused when it is written, with the name of the entry."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from fair_envs.baselines.learning import check_plain, train_learner
from fair_envs.baselines.settings import OnPolicySettings

pytestmark = pytest.mark.usefixtures("empty_folder")


class Counter:
    """A learner that counts, and whose best value may have the type of an array's entry."""

    def __init__(self, best: Any, later: Any) -> None:
        self.num_timesteps, self.best, self.later = 0, best, later

    def snapshot(self) -> "Counter":
        return self

    def state(self) -> dict[str, Any]:
        return {"steps": self.num_timesteps, "best": self.best}

    def restore(self, state: Any) -> None:
        self.best = state["best"]

    def iterate(self) -> dict[str, float]:
        self.num_timesteps, self.best = self.num_timesteps + 1, self.later
        return {}


def count(best: Any, later: Any, out: Path) -> None:
    settings = OnPolicySettings(env_id="FairHiring-v0", algorithm="counter", steps=2)
    learner = Counter(best, later)
    train_learner(settings, lambda: learner, Counter.iterate, out=out)


@pytest.mark.parametrize(("best", "later"), [(np.float64(1), 1.0), (1.0, np.float64(1))])
def test_an_entry_that_a_checkpoint_cannot_hold_is_named(best: Any, later: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^state\(\)\['best'\] must be a tensor.* got numpy.float64; use .*float\(\)"):
        count(best, later, tmp_path / "run")


def test_tensors_and_plain_data_are_accepted(tmp_path: Path) -> None:
    count(1.0, 2.0, tmp_path / "run")
    check_plain({"a": [th.zeros(2), (None, True, b"", "x")], "b": OrderedDict(c={1, 2})}, "state()")
    with pytest.raises(ValueError, match=r"state\(\)\['a'\]\[1\] must be .*numpy.ndarray; use torch.as_tensor\(\)"):
        check_plain({"a": [0, np.zeros(2)]}, "state()")
