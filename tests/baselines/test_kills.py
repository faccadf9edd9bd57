"""Trainings that are killed after a checkpoint end, resumed, as if they had not been; all moments: see `kills`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.baselines.kills import AFTER_CHECKPOINT, differences, killed, processes, results, whole
from tests.forks import Forks


@pytest.fixture(scope="module")
def within() -> Iterator[Forks]:
    """Yield processes to be killed."""
    with processes() as begun:
        yield begun


@pytest.mark.parametrize(
    ("algorithm", "moment"),
    [
        pytest.param("ddpg", "step", marks=pytest.mark.long),
        pytest.param("fair-er", "write", marks=pytest.mark.long),
        ("pcn", "late-step"),
    ],
)
def test_a_killed_training_ends_with_the_same_bytes(algorithm: str, moment: str, tmp_path: Path, within: Forks) -> None:
    assert moment in AFTER_CHECKPOINT
    counts = whole(algorithm, tmp_path / "whole")
    killed(algorithm, moment, tmp_path / "part", counts, within=within)
    assert differences(algorithm, tmp_path / "whole", tmp_path / "part") == []
    assert "checkpoint.pt" in results(tmp_path / "part")
