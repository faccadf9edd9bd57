"""Trainings that are killed after a checkpoint end, resumed, as if they had not been; all moments: see `kills`."""

from pathlib import Path

import pytest

from tests.baselines.kills import AFTER_CHECKPOINT, differences, killed, results, whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "moment"),
    [
        ("ddpg", "step"),
        ("fair-er", "write"),
        ("pcn", "late-step"),
    ],
)
def test_a_killed_training_ends_with_the_same_bytes(algorithm: str, moment: str, tmp_path: Path) -> None:
    assert moment in AFTER_CHECKPOINT
    counts = whole(algorithm, tmp_path / "whole")
    killed(algorithm, moment, tmp_path / "part", counts)
    assert differences(algorithm, tmp_path / "whole", tmp_path / "part") == []
    assert "checkpoint.pt" in results(tmp_path / "part")
