"""Trainings are cells: they run once, in parallel processes, and give the same everywhere."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from fair_envs.baselines.training import Training
from fair_envs.experiments.executors import FailedCellsError, run_cells
from fair_envs.experiments.jobs import run_cell
from fair_envs.reproduction.experiment import Cell, read_result
from tests.helpers import LITTLE
from tests.jobs import run_here


def tiny_cell(seed: int = 0, **changes: object) -> Cell:
    training = Training(
        env_id="FairHarvest-v0",
        parameters=LITTLE,
        algorithm="fair-ppo",
        steps=384,
        lanes=2,
        n_steps=12,
        batch_size=96,
        n_epochs=1,
        seed=seed,
    )
    return Cell(training=replace(training, **changes), episodes=3)  # type: ignore[arg-type]


def test_a_cells_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = run_cell(tiny_cell(), tmp_path)
    result = read_result(folder)
    assert folder == tmp_path / tiny_cell().key
    assert result.ordinary.values.shape == (3, 8)
    assert result.cell["training"]["seed"] == 0
    assert result.none is not None and result.everybody is not None
    assert np.all(result.none.attributes["sensitive"] == 0)
    assert np.all(result.everybody.attributes["sensitive"] == 1)
    assert set(result.twins) == {"own", "same"}
    assert result.selected.sum() == 3 * 8 * 12
    assert result.learning[:, 0].tolist() == [192, 384]  # two rollouts of 12 steps of 2 lanes of 8 agents
    assert result.learning.shape == (2, 3) and (result.learning[:, 1:] >= 0).all()
    assert result.executed.sum() < result.selected.sum()  # half of the agents have half the turns


def test_the_same_cell_gives_the_same_result_in_another_process(tmp_path: Path) -> None:
    """After another cell has run there."""
    here = read_result(run_cell(tiny_cell(), tmp_path / "here"))
    cells = [tiny_cell(1), tiny_cell()]
    there = run_cells(cells, tmp_path / "there", progress=False)
    assert np.array_equal(here.ordinary.values, read_result(there[cells[1].key]).ordinary.values)


def test_a_cell_that_is_done_does_not_run_again(tmp_path: Path) -> None:
    folder = run_cell(tiny_cell(), tmp_path)
    before = (folder / "arrays.npz").stat().st_mtime_ns
    run_cells([tiny_cell()], tmp_path, progress=False)
    assert (folder / "arrays.npz").stat().st_mtime_ns == before


def test_a_broken_off_cell_leaves_nothing_behind_and_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fair_envs.reproduction.experiment.played_arrays", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_cell(tiny_cell(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert (run_cell(tiny_cell(), tmp_path) / "cell.json").exists()


def test_cells_that_fail_are_named_after_the_others_are_done(tmp_path: Path) -> None:
    bad = tiny_cell()
    tight = {**LITTLE, "agents": 8, "width": 2, "height": 2}  # noticed when PPO's training begins
    bad = replace(bad, training=replace(bad.training, algorithm="ppo", parameters=tight))
    with pytest.raises(FailedCellsError, match=f"{bad.key}: ValueError: agents must be at most the 4 cells"):
        run_here([bad, tiny_cell()], tmp_path)
    assert (tmp_path / tiny_cell().key / "cell.json").exists()
