"""A study runs its cells on any engine, and refuses one that there is not before anything is kept."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("stable_baselines3")

from fair_envs.experiments.jobs import Job
from fair_envs.reproduction.study import Study
from tests.jobs import Square


class Scale(NamedTuple):
    seeds: int = 3


class Sum:
    """The report of what squares add up to."""

    def __init__(self, name: str, scale: Scale, results: Any, out: Path) -> None:
        self.results, self.out = results, out

    def write(self) -> Path:
        path = self.out / "report.md"
        path.write_text(str({name: sum(numbers) for name, numbers in self.results.items()}))
        return path


def squares(scale: Scale) -> dict[str, Sequence[Job]]:
    return {"squares": [Square(number=k) for k in range(scale.seeds)]}


def read(folder: Path) -> int:
    return int((folder / "square.txt").read_text())


STUDY: Any = Study(scales={"smoke": Scale()}, cells=squares, read=read, report=Sum)  # type: ignore[arg-type]
RAY = pytest.param("ray", marks=[pytest.mark.slow, pytest.mark.skipif(find_spec("ray") is None, reason="no Ray")])


@pytest.mark.parametrize("engine", ["processes", RAY])
def test_a_study_reports_the_same_wherever_its_cells_run(engine: str, tmp_path: Path) -> None:
    path = STUDY.run(scale="smoke", out=tmp_path / "out", engine=engine, progress=False)
    assert path.read_text() == "{'squares': 5}"
    assert {folder.name for folder in (tmp_path / "out" / "cells").iterdir()} == {
        c.key for c in squares(Scale())["squares"]
    }


@pytest.mark.parametrize(
    ("changes", "said"), [({"engine": "mpi"}, "engine must be one of"), ({"jobs": 0}, "jobs must be")]
)
def test_what_is_no_engine_is_refused_before_anything_is_kept(changes: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        STUDY.run(scale="smoke", out=tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()
