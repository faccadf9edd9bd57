"""A cell without a result is never counted as done, however its future failed."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fair_envs.cells import Job
from fair_envs.engines import FailedCellsError, run_cells
from tests.jobs import Square


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
