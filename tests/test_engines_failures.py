"""A cell without a result is never counted as done, however it failed; what machines far away answer, without Ray."""

import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fair_envs.experiments.executors import (
    THREAD_COUNTS,
    FailedCellsError,
    answering_address,
    check_answer,
    environment_of_workers,
    files_of,
    files_or_error,
    run_cells,
)
from fair_envs.experiments.jobs import Job
from fair_envs.support.imports import Permissions
from tests.jobs import Failing, Square


@dataclass(frozen=True, kw_only=True)
class Unsendable(Job):
    """Cannot be pickled, so that no other process can be given it."""

    lock: Any

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, so that it has a key."""
        return {"lock": "a lock"}

    def work(self, part: Path) -> Mapping[str, Any]:
        """Write nothing."""
        return {}


def test_a_cell_that_no_process_can_be_given_fails_by_name_and_the_others_are_done(tmp_path: Path) -> None:
    odd, squares = Unsendable(lock=threading.Lock()), [Square(number=k) for k in range(2)]
    with pytest.raises(FailedCellsError, match=f"1 of 3 cells failed(.|\n)*{odd.key}: .*cannot pickle.*lock"):
        run_cells([odd, *squares], tmp_path, jobs=1, progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(cell.key for cell in squares)


def test_the_bar_counts_the_cells_that_failed_and_those_that_were_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    squares = [Square(number=k) for k in range(2)]
    run_cells(squares[:1], tmp_path, jobs=1, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(FailedCellsError, match="1 of 3 cells failed"):
        run_cells([*squares, Failing()], tmp_path, jobs=1)
    assert "3/3" in capsys.readouterr().err


def test_the_threads_of_this_process_are_as_before_whether_they_were_set_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(THREAD_COUNTS[0], "7")
    monkeypatch.delenv(THREAD_COUNTS[1], raising=False)
    with environment_of_workers():
        assert [os.environ[name] for name in THREAD_COUNTS] == ["1"] * len(THREAD_COUNTS)
    assert os.environ[THREAD_COUNTS[0]] == "7"
    assert THREAD_COUNTS[1] not in os.environ


# ------------------------------------------------------------------------------------------------ other machines


def test_a_machine_answers_with_the_files_of_a_cell_or_with_what_was_raised() -> None:
    cell = Square(number=3)
    files = files_or_error(cell, cell.key, Permissions())
    assert isinstance(files, dict) and files.keys() == {"cell.json", "square.txt"}
    assert files["square.txt"] == b"9"
    assert files_or_error(Failing(), Failing().key, Permissions()) == "ValueError: number must be even, got 3"
    with pytest.raises(RuntimeError, match=f"the same version of fair-envs, got cell {cell.key} for other"):
        files_of(cell, "other")


def test_an_address_is_asked_for_an_answer_if_it_is_a_host_and_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for prefix in ("", "ray://"):
            check_answer(f"{prefix}127.0.0.1:{port}")
    for prefix in ("", "ray://"):
        with pytest.raises(OSError):
            check_answer(f"{prefix}127.0.0.1:{port}")
    for address in ("auto", "local", f"https://127.0.0.1:{port}"):
        check_answer(address)  # these are for Ray to find
    for address in ("nonsense", ":6379"):
        with pytest.raises(ValueError, match=f"address must be HOST:PORT, got '{address}'"):
            check_answer(address)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert answering_address() == ""
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    assert answering_address() == "auto"
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    with pytest.raises(ValueError, match=f"RAY_ADDRESS must name a Ray cluster, got '127.0.0.1:{port}'"):
        answering_address()
