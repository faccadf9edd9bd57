"""A study runs its cells on any engine, and refuses one that there is not before anything is kept."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3")

from fair_envs.experiments.executors import FailedCellsError
from fair_envs.experiments.jobs import Job, run_cell
from fair_envs.experiments.seeds import CELLS, TABLE, Arm, SeedRow, fill, read_rows, write_rows
from fair_envs.reproduction.claims import NOT_RUN, Claim, Outcome
from fair_envs.reproduction.study import PRINTED, REPAIRED, Picture, Report, Size, Study
from fair_envs.support.files import read_json, writing
from tests.jobs import Square


@dataclass(frozen=True)
class Scale:
    seeds: int = 3


@dataclass(frozen=True)
class Sum:
    """The report of what squares add up to."""

    name: str
    scale: Scale
    arms: Mapping[str, Arm]
    out: Path
    failed: Mapping[str, str] = field(default_factory=dict)

    def write(self) -> Path:
        path = self.out / "report.md"
        (self.out / "failed.txt").write_text(str(dict(self.failed)))
        path.write_text(str({name: float(arm.values("square").sum()) for name, arm in self.arms.items()}))
        return path


class Page(Report[Scale]):
    """A page without tables and figures."""

    paper = "squares"
    scales = {"smoke": Scale()}  # noqa: RUF012

    def question(self) -> str:
        return "Squares are large."

    def runs(self) -> str:
        return "Three squares."

    def sizes(self) -> list[Size]:
        return [Size("numbers", 3, 2_000_000), Size("digits", 1_280_000, None)]

    def claims(self) -> list[Claim]:
        return [
            Claim(
                text="Squares grow.",
                outcomes={REPAIRED: {"all": Outcome(True)}},
                remarks={REPAIRED: "By construction"},
                refuted="One that does not.",
            ),
            Claim(text="Cubes grow.", outcomes={PRINTED: {"all": NOT_RUN}, REPAIRED: {}}, refuted="No cube."),
        ]

    def sections(self) -> dict[str, str]:
        return {}

    def limitations(self) -> str:
        return "No cubes."

    def draw(self) -> list[Picture]:
        return []


def squares(scale: Scale) -> dict[str, Sequence[Job]]:
    return {"squares": [Square(number=k) for k in range(scale.seeds)]}


def numbers(key: str, folder: Path) -> dict[str, float]:
    return {"square": float((folder / "square.txt").read_text())}


@dataclass(frozen=True, kw_only=True)
class Seeded(Square):
    """A square with a seed of its own."""

    seed: int


STUDY: Any = Study(scales={"smoke": Scale()}, cells=squares, numbers=numbers, report=Sum)  # type: ignore[arg-type]
RAY = pytest.param("ray", marks=pytest.mark.skipif(find_spec("ray") is None, reason="no Ray"))


@pytest.mark.parametrize("engine", ["processes", RAY])
def test_a_study_reports_the_same_wherever_its_cells_run(engine: str, tmp_path: Path) -> None:
    path = STUDY.run(scale="smoke", out=tmp_path / "out", engine=engine, progress=False)
    assert path.read_text() == "{'squares': 5.0}"
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


def test_a_study_continues_from_the_table_of_another_machine(tmp_path: Path) -> None:
    STUDY.run(scale="smoke", out=tmp_path / "one", seeds=2, progress=False)
    first, *_ = read_rows(tmp_path / "one")
    write_rows(tmp_path / "part.csv.gz", [replace(first, numbers={"square": 100.0})])  # it differs, to be recognised
    path = STUDY.run(scale="smoke", out=tmp_path / "two", merge_from=[tmp_path / "part.csv.gz"], progress=False)
    assert path.read_text() == "{'squares': 105.0}"
    assert {row.code for row in read_rows(tmp_path / "two")} == {first.code}
    assert len(list((tmp_path / "two" / "cells").iterdir())) == 2
    assert len(read_rows(tmp_path / "two")) == 3


def test_only_a_table_of_the_same_study_is_merged(tmp_path: Path) -> None:
    STUDY.run(scale="smoke", out=tmp_path / "one", seeds=1, progress=False)
    (row,) = read_rows(tmp_path / "one")
    write_rows(tmp_path / "other.csv.gz", [replace(row, arm="circles", job="another")])
    tables = [tmp_path / "one", tmp_path / "other.csv.gz"]
    with pytest.raises(
        ValueError, match=r"got .*other.csv.gz, none of whose 1 rows is of .* its first row is of 'circles'"
    ):
        STUDY.run(scale="smoke", out=tmp_path / "two", merge_from=tables, progress=False)
    write_rows(tmp_path / "other.csv.gz", [replace(row, job="another")])
    with pytest.raises(ValueError, match="they are of other seeds, another scale or an earlier version"):
        STUDY.run(scale="smoke", out=tmp_path / "two", merge_from=tables, progress=False)
    larger = replace(STUDY, scales={"smoke": Scale(), "large": Scale(9)})
    larger.run(scale="large", out=tmp_path / "large", progress=False)
    write_rows(tmp_path / "other.csv.gz", read_rows(tmp_path / "large")[5:])
    with pytest.raises(ValueError, match=r"an earlier version; most rows are of the scale 'large' \(--scale large\)"):
        larger.run(scale="smoke", out=tmp_path / "two", merge_from=tables[1:], progress=False)
    assert not (tmp_path / "two").exists()
    nested = replace(STUDY, scales={"large": Scale(9), "smoke": Scale(), "gate": Scale(2)})
    write_rows(tmp_path / "gate.csv.gz", read_rows(tmp_path / "large")[:2])
    rows = read_rows(tmp_path / "gate.csv.gz")
    assert nested._hint(rows, "large") == "; most rows are of the scale 'gate' (--scale gate)"
    assert nested._hint(rows, "gate") == nested._hint([], "gate") == ""


def test_only_the_folder_of_a_study_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="out must be a new folder, or one that was begun"):
        STUDY.run(scale="smoke", out=tmp_path, resume=True, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    assert STUDY.run(scale="smoke", out=tmp_path / "empty", resume=True, progress=False).exists()


def test_a_report_can_be_written_without_running_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    STUDY.run(scale="smoke", out=tmp_path / "whole", progress=False)
    _, *others = read_rows(tmp_path / "whole")
    write_rows(tmp_path / "part.csv.gz", others)
    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", lambda *_, **__: pytest.fail("it ran"))
    given: dict[str, Any] = {"scale": "smoke", "report_only": True, "progress": False}
    path = STUDY.run(out=tmp_path / "out", merge_from=[tmp_path / "part.csv.gz"], **given)
    assert path.read_text() == "{'squares': 5.0}"
    assert (tmp_path / "out" / "failed.txt").read_text() == "{'squares 0': 'it is not in the table'}"
    assert read_rows(tmp_path / "out") == others
    assert STUDY.run(out=tmp_path / "out", **given) == path  # a folder that was begun is continued
    with pytest.raises(ValueError, match="must have rows of every arm for a report only, got none of 1 of 1 arms"):
        STUDY.run(out=tmp_path / "new", **given)
    assert not (tmp_path / "new").exists()


def test_a_page_has_whole_numbers_in_full_and_names_the_missing_seeds_of_an_arm_together(tmp_path: Path) -> None:
    STUDY.run(scale="smoke", out=tmp_path, seeds=1, resume=True, progress=False)
    failed = {"cubes 1": "ValueError: no", "cubes 2": "ValueError: no", "cubes 3": "it is not in the table"}
    arms = {"squares": Arm("squares", read_rows(tmp_path))}
    text = Page(name="smoke", scale=Scale(), out=tmp_path, arms=arms, failed=failed).write().read_text()
    assert "| numbers | 3 | 2,000,000 | 1.5e-06 |" in text
    assert "| digits | 1,280,000 | not given |  |" in text
    assert "Missing cells:\n\n* cubes, seed 1, 2: ValueError: no\n* cubes, seed 3: it is not in the table\n" in text
    whole = Page(name="smoke", scale=Scale(), out=tmp_path, arms=arms).write().read_text()
    assert "Missing" not in whole


def test_a_page_has_remarks_beside_verdicts_and_only_names_claims_that_nothing_was_run_for(tmp_path: Path) -> None:
    STUDY.run(scale="smoke", out=tmp_path, seeds=1, resume=True, progress=False)
    arms = {"squares": Arm("squares", read_rows(tmp_path))}
    text = Page(name="smoke", scale=Scale(), out=tmp_path, arms=arms).write().read_text()
    assert "| 1 | Squares grow. | Not run | Holds. By construction | none |" in text
    assert "Not run, so without a verdict: Cubes grow.\n" in text
    assert "No cube." not in text and "**2." not in text
    assert len(read_json(tmp_path / "claims.json", list)) == 2


def test_the_table_says_which_code_made_each_number(tmp_path: Path) -> None:
    STUDY.run(scale="smoke", out=tmp_path / "out", progress=False)
    rows = read_rows(tmp_path / "out" / TABLE)
    assert [(row.arm, row.seed) for row in rows] == [("squares", 0), ("squares", 1), ("squares", 2)]
    assert all(len(row.code) == 64 and row.seconds >= 0 for row in rows)


def test_a_failed_cell_is_missing_in_the_report_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    STUDY.run(scale="smoke", out=tmp_path / "whole", progress=False)
    _, *others = read_rows(tmp_path / "whole")
    write_rows(tmp_path / "part.csv.gz", others)

    def failing(cells: Any, *_: Any, **__: Any) -> None:
        raise FailedCellsError({cells[0].key: "ValueError: no"}, len(cells))

    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", failing)
    out = tmp_path / "out"
    with pytest.raises(FailedCellsError, match="squares 0: ValueError: no"):
        STUDY.run(scale="smoke", out=out, merge_from=[tmp_path / "part.csv.gz"], progress=False)
    assert (out / "report.md").read_text() == "{'squares': 5.0}"  # without the square of 0
    STUDY.run(scale="smoke", out=tmp_path / "again", merge_from=[out], report_only=True, progress=False)
    assert (tmp_path / "again" / "failed.txt").read_text() == "{'squares 0': 'ValueError: no'}"  # the reason is kept
    STUDY.run(scale="smoke", out=tmp_path / "file", merge_from=[out / TABLE], report_only=True, progress=False)
    assert (tmp_path / "file" / "failed.txt").read_text() == "{'squares 0': 'ValueError: no'}"  # beside a table, too
    monkeypatch.undo()
    STUDY.run(scale="smoke", out=out, resume=True, progress=False)
    assert not (out / "failures.json").exists() and (out / "failed.txt").read_text() == "{}"


def test_a_page_that_cannot_be_drawn_leaves_the_earlier_one_as_it_was(tmp_path: Path) -> None:
    STUDY.run(scale="smoke", out=tmp_path, resume=True, progress=False)
    arms = {"squares": Arm("squares", read_rows(tmp_path))}
    Page(name="smoke", scale=Scale(), out=tmp_path, arms=arms).write()
    written = {name: (tmp_path / name).read_bytes() for name in ("report.md", "claims.json", "table.csv")}

    class Undrawn(Page):
        def claims(self) -> list[Claim]:
            return super().claims()[:1]

        def draw(self) -> list[Picture]:
            raise OSError("the disk is full")

    fewer = {"squares": Arm("squares", arms["squares"].rows[:2])}
    with pytest.raises(OSError, match="the disk is full"):
        Undrawn(name="smoke", scale=Scale(), out=tmp_path, arms=fewer).write()
    assert {name: (tmp_path / name).read_bytes() for name in written} == written


def test_a_page_has_the_seeds_of_its_table_and_not_those_of_its_scale(tmp_path: Path) -> None:
    STUDY.run(scale="smoke", out=tmp_path, resume=True, progress=False)
    rows = read_rows(tmp_path)
    page = Page(name="smoke", scale=Scale(9), out=tmp_path, arms={"a": Arm("a", rows), "b": Arm("b", rows[:1])})
    assert (page.seeds, page.most_seeds) == ("1 to 3 seeds an arm", 3)
    assert replace(page, arms={"b": Arm("b", rows[:1])}).seeds == "1 seed an arm"
    assert replace(page, arms={"b": Arm("b", rows[:2])}).seeds == "2 seeds an arm"
    assert "The verdicts are from 1 to 3 seeds an arm." in page.write().read_text()


def test_an_arm_without_a_curve_has_an_empty_one() -> None:
    rows = [SeedRow(arm="a", seed=k, job=str(k), code="", seconds=0, numbers={"x@2": k, "x@1": 5.0}) for k in range(3)]
    times, values = Arm("a", rows).curve("x")
    assert times.tolist() == [1, 2] and values.tolist() == [[5, 0], [5, 1], [5, 2]]
    times, values = Arm("a", rows).curve("y")
    assert times.shape == (0,) and values.shape == (3, 0)


def test_a_cell_that_ends_without_a_result_is_reported_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(cells: Sequence[Job], folder: Path, *, each: Any, **_: Any) -> None:
        each(folder / cells[0].key)  # by a worker that runs other code, under another name
        for cell in cells[1:]:
            each(run_cell(cell, folder))

    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", losing)
    with pytest.raises(FailedCellsError, match="squares 0: it has no result"):
        STUDY.run(scale="smoke", out=tmp_path / "out", progress=False)
    assert (tmp_path / "out" / "report.md").read_text() == "{'squares': 5.0}"


def test_two_processes_do_not_write_into_one_study(tmp_path: Path) -> None:
    out = tmp_path / "out"
    STUDY.run(scale="smoke", out=out, progress=False)
    before = (out / TABLE).read_bytes()
    with writing(out):
        for report_only in (False, True):
            with pytest.raises(ValueError, match="out must be a folder that no other process is writing"):
                STUDY.run(scale="smoke", out=out, seeds=9, resume=True, report_only=report_only, progress=False)
    assert (out / TABLE).read_bytes() == before


def test_rows_that_another_process_added_are_kept(tmp_path: Path) -> None:
    cells = squares(Scale())["squares"]
    (tmp_path / CELLS).mkdir()
    first = fill([], {"squares": cells[:1]}, numbers, tmp_path, engine="processes", jobs=1, progress=False)
    other = replace(first.rows[0], arm="others", job="another")
    write_rows(tmp_path / TABLE, [*first.rows, other])
    found = fill([], {"squares": cells}, numbers, tmp_path, engine="processes", jobs=1, progress=False)
    kept = [*first.rows, other]
    assert found.rows[: len(kept)] == kept and len(found.rows) == len(cells) + 1


def test_a_damaged_cell_is_named_before_others_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    STUDY.run(scale="smoke", out=out, progress=False)
    (out / TABLE).unlink()
    damaged = next((out / CELLS).glob("*/cell.json"))
    damaged.write_text("")
    told = f"cell.json is damaged: .*; or remove the folder {damaged.parent}, so that only this cell runs again"
    with pytest.raises(ValueError, match=told):
        STUDY.run(scale="smoke", out=out, seeds=9, resume=True, progress=False)
    assert len(list((out / CELLS).iterdir())) == Scale().seeds
    shutil.rmtree(damaged.parent)
    STUDY.run(scale="smoke", out=out, resume=True, progress=False)
    assert len(read_rows(out)) == Scale().seeds


def test_the_table_has_the_cells_own_seeds(tmp_path: Path) -> None:
    def seeded(scale: Scale) -> dict[str, Sequence[Job]]:
        return {"squares": [Seeded(number=k, seed=20 + k) for k in range(2)], "others": [Square(number=5)]}

    replace(STUDY, cells=seeded).run(scale="smoke", out=tmp_path / "out", progress=False)
    assert {(row.arm, row.seed) for row in read_rows(tmp_path / "out")} == {
        ("squares", 20),
        ("squares", 21),
        ("others", 0),
    }
