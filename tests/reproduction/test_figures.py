"""The figures are drawn from what the arms hold."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from fair_envs.reproduction import figures
from fair_envs.reproduction.measures import Arm
from tests.reproduction.test_measures import HORIZON, result


def test_every_figure_is_saved_as_a_picture(tmp_path: Path) -> None:
    arms = [Arm(name, [result([40, 10, 20, 20]), result([30, 10, 20, 20])], HORIZON) for name in ("PPO", "fair")]
    boxes = {"parity": {arm.label: arm.pooled("dp_ratio") for arm in arms}}
    figures.box_plot(boxes, tmp_path / "new" / "boxes.png", label="ratio", bold="PPO")
    figures.radar_plot(arms, tmp_path / "new" / "radar.png", actions=("stay", "go"), groups=("full", "half"))
    figures.curves({0.0: arms[0], 1.0: arms[1]}, tmp_path / "new" / "curve.png", label="alpha")
    figures.learning_plot({"parity": arms}, tmp_path / "new" / "learning.png")
    for name in ("boxes", "radar", "curve", "learning"):
        assert (tmp_path / "new" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_changes_with_the_numbers(tmp_path: Path) -> None:
    for name, value in (("a", 0.1), ("b", 0.4)):
        figures.box_plot({"p": {"PPO": np.array([0.0, value])}}, tmp_path / f"{name}.png", label="r", bold="PPO")
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()
