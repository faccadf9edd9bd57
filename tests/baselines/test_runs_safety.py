"""A run's files: each is replaced whole, in an order that can be read at any moment, and loading them runs no code."""

import csv
import hashlib
import json
import math
import os
import pickle
import resource
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.logger import Logger

from fair_envs.baselines.runs import Run, serialized
from fair_envs.support.files import replace_file, write_json


def state(**entries: Any) -> bytes:
    """Return a learner's state as `Run.write` takes it."""
    return serialized({"rows": 0, "unlogged": [], **entries})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run with one row of metrics, and a checkpoint that counts it."""
    made = Run.create(tmp_path / "run", {"seed": 0})
    made.rows.append({"loss": 1.0})
    made.write(state(rows=1, mark="first"))
    return made


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# ------------------------------------------------------------------------------------------- replaced, not written over


def test_a_file_that_is_being_read_stays_what_it_was_when_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(path, b"the old content")
    with path.open("rb") as reader:
        begun = reader.read(3)
        replace_file(path, b"new")
        assert begun + reader.read() == b"the old content"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_cannot_be_written_whole_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(path, b"the old content")
    with files_of_at_most(100), pytest.raises(OSError, match="File too large"):
        replace_file(path, bytes(1000))
    assert path.read_bytes() == b"the old content"


def test_a_checkpoint_replaces_the_one_before_and_its_metrics(run: Run) -> None:
    kept = {name: (run.folder / name).open("rb") for name in ("metrics.json", "checkpoint.pt")}
    before = {name: (run.folder / name).read_bytes() for name in kept}
    run.rows.append({"loss": 0.5})
    run.write(state(rows=2))
    assert {name: file.read() for name, file in kept.items()} == before
    for name, file in kept.items():
        file.close()
        assert (run.folder / name).read_bytes() != before[name]


# ------------------------------------------------------------------------------------------------ metrics come first


def test_metrics_that_cannot_be_written_leave_the_checkpoint_that_they_belong_to(run: Run) -> None:
    """A checkpoint counts on as many rows as it says, so that it must not be there before them."""
    run.rows.append({"loss": float("nan")})  # which JSON has no word for
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.write(state(rows=2, mark="second"))
    assert run.checkpoint()["mark"] == "first"


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before_with_its_rows(run: Run) -> None:
    run.rows.append({"loss": 0.5})
    with files_of_at_most(5_000), pytest.raises(OSError, match="File too large"):
        run.write(state(rows=2, mark="second", weights=th.zeros(100_000)))
    opened = Run.open(run.folder)
    assert opened.checkpoint()["mark"] == "first"
    assert opened.rows == [{"loss": 1.0}]


# -------------------------------------------------------------------------------------------------- no code is run


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("kind", ["torch", "pickle"])
@pytest.mark.parametrize("loaded", [Run.checkpoint, lambda run: Run.open(run.folder)], ids=["checkpoint", "open"])
def test_code_in_a_checkpoint_is_refused_and_does_not_run(
    kind: str, loaded: Callable[[Run], Any], run: Run, tmp_path: Path
) -> None:
    evil = Evil(tmp_path / "owned")
    run.write(state(evil=evil) if kind == "torch" else pickle.dumps({"rows": 0, "evil": evil}, 2))
    with pytest.raises((ValueError, RuntimeError, pickle.UnpicklingError)):
        loaded(run)
    assert not evil.folder.exists()


# ------------------------------------------------------------------------------------------------------ what is logged


class Learner:
    """Logs, and does nothing else."""

    def __init__(self, steps: int = 0) -> None:
        self.num_timesteps = steps
        self.logger = Logger(None, [])

    def set_logger(self, logger: Logger) -> None:
        self.logger = logger


def table(run: Run) -> list[dict[str, str]]:
    """Return a run's metrics.csv."""
    with (run.folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_of_metrics_has_every_name_and_leaves_out_what_is_no_number(run: Run) -> None:
    learner = Learner()
    with run.log(learner):
        for step, values in enumerate(({"loss": 0.5}, {"loss": np.float32(0.25), "gap": math.inf, "curve": [1, 2]}), 2):
            for name, value in values.items():
                learner.logger.record(name, value)
            learner.logger.dump(step)
    assert run.rows == [{"loss": 1.0}, {"loss": 0.5}, {"loss": 0.25, "gap": None}]
    assert table(run) == [{"loss": "1.0", "gap": ""}, {"loss": "0.5", "gap": ""}, {"loss": "0.25", "gap": ""}]
    learner.logger.record("loss", 9.0)
    learner.logger.dump(9)
    assert len(run.rows) == 3  # the learner logs to the run no more


def test_a_resumed_run_goes_on_from_the_rows_and_values_of_its_checkpoint(run: Run) -> None:
    run.write(state(rows=1, unlogged=[("loss", 0.5), ("gap", None)]))
    with run.log(Learner()) as logger:
        logger.dump(2)  # a row that no checkpoint counts
    assert len(table(run)) == 2
    opened = Run.open(run.folder)
    with opened.log(Learner()) as logger:
        assert table(opened) == [{"loss": "1.0"}]
        assert logger.name_to_value["loss"] == 0.5 and math.isnan(logger.name_to_value["gap"])


def test_a_run_is_made_once(run: Run) -> None:
    before = run.config()
    with pytest.raises(FileExistsError, match=r"out must be a new folder, or one to resume, got .*run, which exists"):
        Run.create(run.folder, {"seed": 1})
    assert run.config() == before and [path.name for path in run.folder.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("rows", [[], [1.0]], ids=["too few", "no rows"])
def test_metrics_that_are_not_those_of_the_checkpoint_are_damaged(rows: list[Any], run: Run) -> None:
    (run.folder / "metrics.json").write_text(json.dumps(rows))
    with pytest.raises(ValueError, match=r"metrics\.json is damaged: it must contain the 1 rows that checkpoint\.pt"):
        Run.open(run.folder)


def test_settings_that_a_record_does_not_take_are_named(run: Run) -> None:
    @dataclass
    class Settings:
        seed: int
        steps: int

        def __post_init__(self) -> None:
            if self.steps < 1:
                raise ValueError(f"steps must be at least 1, got {self.steps}")

    for given, how in (({"seed": 0}, "'steps'"), ({"seed": 0, "steps": 0}, "steps must be at least 1, got 0")):
        write_json(run.folder / "config.json", given)
        with pytest.raises(ValueError, match=rf"config\.json is damaged: .*{how}"):
            run.settings(Settings)


def test_the_checksum_is_the_archives_comment(run: Run) -> None:
    path = run.folder / "checkpoint.pt"
    with zipfile.ZipFile(path) as archive:
        comment = archive.comment
    unsealed = path.read_bytes().removesuffix(comment)[:-2] + bytes(2)
    assert comment == b"sha256:" + hashlib.sha256(unsealed).hexdigest().encode()
    assert th.load(path, weights_only=True)["mark"] == "first"  # PyTorch reads it as any other


def test_a_checkpoint_without_what_every_checkpoint_says_is_damaged(run: Run) -> None:
    for lacking in ({"rows": None}, {"unlogged": None}, {"unlogged": [1]}):
        run.write(state(**lacking))
        with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged: the .* missing or invalid"):
            Run.open(run.folder)


def test_tensorboard_forgets_what_came_after_the_step_from_which_a_run_goes_on(run: Run) -> None:
    events: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for begun, values in ((0, {10: 1.0, 11: 2.0}), (10, {11: 3.0})):
        time.sleep(1 - time.time() % 1)  # a resumed run begins in a later second, and TensorBoard sorts its files by it
        with run.log(Learner(begun)) as logger:
            for step, value in values.items():
                logger.record("loss", value)
                logger.dump(step)
    found = events.EventAccumulator(str(run.folder / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [(10, 1.0), (11, 3.0)]
