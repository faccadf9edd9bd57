"""The table of seeds is stored and read without loss, and an arm's intervals are over its seeds."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")

from fair_envs.experiments.seeds import TABLE, Arm, SeedRow, curve_numbers, made_by, merged, read_rows, write_rows


def row(seed: int, arm: str = "PPO", **numbers: float) -> SeedRow:
    return SeedRow(arm=arm, seed=seed, job=f"{arm}{seed}", code="abc", seconds=1.5, numbers=numbers)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [row(0, reward=0.1234567), row(1, reward=-2.0, other=3.0), row(0, "fair, (1, 1)", other=1e-9)]
    write_rows(tmp_path / TABLE, rows)
    assert read_rows(tmp_path / TABLE) == rows
    assert read_rows(tmp_path) == rows  # of a folder


def test_a_table_without_commits_is_read(tmp_path: Path) -> None:
    import pandas as pd

    write_rows(tmp_path / "new.csv.gz", [replace(row(0, reward=1.0), commit="c" * 40)])
    pd.read_csv(tmp_path / "new.csv.gz").drop(columns="commit").to_csv(tmp_path / TABLE, index=False)
    assert read_rows(tmp_path) == [row(0, reward=1.0)]


def test_rows_name_their_commits_or_the_hash_of_their_code() -> None:
    first, second = (replace(row(0), commit=letter * 40) for letter in "ab")
    assert made_by([second, first, first]) == "2 versions of the code (commit aaaaaaaa; commit bbbbbbbb)"
    assert made_by([row(0)]) == "one version of the code (code abc, in no known commit)"
    of_others = replace(row(0), code="")  # an entry from outside
    assert made_by([of_others, first]) == "one version of the code (commit aaaaaaaa)"


def test_tables_without_commits_take_them_from_others(tmp_path: Path) -> None:
    known, other = replace(row(0), commit="c" * 40), replace(row(2), code="xyz")
    write_rows(tmp_path / "known.csv.gz", [known])
    write_rows(tmp_path / "old.csv.gz", [row(0, reward=2.0), row(1), other])
    found = merged(read_rows(tmp_path / name) for name in ("known.csv.gz", "old.csv.gz"))
    assert found == [replace(known, numbers={"reward": 2.0}), replace(row(1), commit="c" * 40), other]


def test_names_that_look_like_nothing_are_kept(tmp_path: Path) -> None:
    write_rows(tmp_path / TABLE, [row(0, "None", reward=1.0), row(0, "NA", reward=2.0)])
    assert [found.arm for found in read_rows(tmp_path)] == ["None", "NA"]


def test_a_number_cannot_replace_a_column(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"numbers must have other names than the columns .* got \['seconds'\]"):
        write_rows(tmp_path / TABLE, [replace(row(0), numbers={"seconds": 7.0})])


def test_an_empty_table_can_be_read(tmp_path: Path) -> None:
    write_rows(tmp_path / TABLE, [])
    assert read_rows(tmp_path) == []


def test_close_places_of_a_curve_stay_apart() -> None:
    assert len(curve_numbers("a", (1_234_567, 1_234_568), (1, 2))) == 2


def test_equal_rows_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_rows(tmp_path / name, [row(0, reward=1.0)])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_stored_numbers_are_stable_when_they_are_stored_again(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.gz", [row(0, reward=math.pi * 1e5)])
    once = read_rows(tmp_path / "a.gz")
    write_rows(tmp_path / "b.gz", once)
    assert read_rows(tmp_path / "b.gz") == once


def test_an_undefined_number_is_undefined_when_read(tmp_path: Path) -> None:
    write_rows(tmp_path / TABLE, [row(0, gap=math.nan, reward=1.0), row(1, gap=2.0, reward=1.0)])
    arm = Arm("PPO", read_rows(tmp_path))
    assert np.isnan(arm.values("gap")[0]) and arm.estimate("gap").n == 1


def test_a_table_of_nothing_and_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_rows(tmp_path / TABLE)
    (tmp_path / TABLE).write_bytes(b"no table")
    with pytest.raises(ValueError, match="is damaged: it is not a table of seeds"):
        read_rows(tmp_path / TABLE)


def test_prices_reductions_and_differences_are_not_paired() -> None:
    classic = Arm("PPO", [row(k, gap=gap) for k, gap in enumerate((9.0, 10.0, 11.0))])
    fair = Arm("fair", [row(k, gap=gap) for k, gap in enumerate((6.0, 5.0, 4.0))])
    back = Arm("fair", [row(k, gap=gap) for k, gap in enumerate((4.0, 5.0, 6.0))])
    assert fair.minus(classic, "gap") == back.minus(classic, "gap")
    assert fair.minus(classic, "gap").value == -5
    reduction, price = fair.reduction(classic, "gap"), fair.price(classic, "gap")
    assert (reduction.value, reduction.low, reduction.high) == (-price.value, -price.high, -price.low)
    assert reduction.value == pytest.approx(50) and reduction.low < 50 < reduction.high


def test_a_curve_is_ordered_by_its_places() -> None:
    places = (20, 3, 100_000)
    curves = [{**curve_numbers("learned", places, (2, 1, 3 + k)), "end": 0.0} for k in range(2)]
    arm = Arm("PPO", [replace(row(k), numbers=numbers) for k, numbers in enumerate(curves)])
    assert arm.curve("learned").times.tolist() == [3, 20, 100_000]
    assert arm.curve("learned").seeds.tolist() == [[1, 2, 3], [1, 2, 4]]
    assert arm.names == ["end"]
