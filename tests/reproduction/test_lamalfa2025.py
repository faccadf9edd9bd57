"""The fair-PPO study: its cells, and the whole of it at a tiny scale."""

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

from fair_envs.metrics import Estimate
from fair_envs.reproduction.papers import lamalfa2025 as paper
from tests.reproduction.test_runner import TINY


def test_the_small_scale_has_the_cells_that_it_promises() -> None:
    scale = paper.SCALES["small"]
    study = paper.cells(scale)
    assert scale.seeds >= 5
    for penalty in ("dp", "csp", "cf"):
        for point in ((0.0, 0.0), (0.25, 0.25), (0.5, 0.5), (1.0, 1.0)):
            assert len(study[(penalty, "shaped", point[0], point[1])]) == scale.seeds
    assert min(scale.curve) == 0 and max(scale.curve) == 4


def test_the_full_scale_is_the_papers_grid() -> None:
    scale = paper.SCALES["full"]
    study = paper.cells(scale)
    shaped = [point for point in study if point[1] == "shaped" and max(point[2:]) <= 1]
    assert {point[0] for point in shaped} == {"dp", "csp", "cf"}
    assert all(
        (penalty, "shaped", a, b) in study for penalty in ("dp", "csp", "cf") for a in paper.GRID for b in paper.GRID
    )
    assert scale.steps == 1000 * 3000 * 40


def test_ppo_without_a_penalty_is_trained_once_for_both_parities() -> None:
    study = paper.cells(paper.SCALES["small"])
    dp, csp, cf = (study[(penalty, "shaped", 0.0, 0.0)][0].key for penalty in ("dp", "csp", "cf"))
    assert dp == csp != cf


def test_the_seeds_of_a_cell_differ_in_nothing_else() -> None:
    first, second = paper.cells(paper.SCALES["small"])[("dp", "shaped", 1.0, 1.0)][:2]
    differing = {
        key for key, value in first.as_dict()["training"].items() if second.as_dict()["training"][key] != value
    }
    assert differing == {"seed"}


def test_the_papers_table_is_kept_in_full() -> None:
    assert {penalty: len(rows) for penalty, rows in paper.PAPER_TABLE_1.items()} == {"dp": 4, "csp": 4, "cf": 4}
    assert paper.PAPER_TABLE_1["cf"][(0.0, 0.75)] == (5, 18, (0.41,))


def estimate(low: float, high: float) -> Estimate:
    return Estimate(value=(low + high) / 2, low=low, high=high, n=5)


def test_a_claim_holds_only_if_the_whole_interval_says_so() -> None:
    assert [paper.exceeds(estimate(*e), 50) for e in ((51, 60), (30, 49), (40, 60))] == [True, False, None]
    assert [paper.within(estimate(*e), 10) for e in ((-9, 9), (11, 20), (-30, -11), (5, 15))] == [
        True,
        False,
        False,
        None,
    ]
    undefined = estimate(float("nan"), float("nan"))
    assert paper.exceeds(undefined, 0) is None and paper.within(undefined, 10) is None


def test_all_of_nothing_is_open() -> None:
    assert [paper.all_of(x) for x in ([True, True], [True, None], [None, False], [])] == [True, None, False, None]


def test_an_unknown_scale_and_an_existing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="scale must be one of 'smoke', 'small', 'full', got 'huge'"):
        paper.main(scale="huge", out=tmp_path / "new")  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        paper.main(scale="smoke", out=tmp_path / "new", seeds=0)
    with pytest.raises(ValueError, match=r"merge_from \(--merge\) must name folders of this study"):
        paper.main(scale="smoke", out=tmp_path / "new", merge_from=[tmp_path / "nowhere"])
    assert not (tmp_path / "new").exists()
    with pytest.raises(FileExistsError, match="out must be a new folder"):
        paper.main(scale="smoke", out=tmp_path)


def test_the_study_runs_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = paper.Scale(
        seeds=2,
        steps=384,
        horizon=12,
        episodes=3,
        points=((1.0, 1.0),),
        variants=("own credit", "weighted"),
        curve=(0.0, 1.0),
        training={"lanes": 2, "n_steps": 12, "batch_size": 96, "n_epochs": 1},
        parameters={name: value for name, value in TINY.items() if name != "horizon"},
    )
    monkeypatch.setitem(paper.SCALES, "smoke", tiny)
    report = paper.main(scale="smoke", out=tmp_path / "out", jobs=1, progress=False)
    text = report.read_text()
    assert "| cf | (1, 1) | -38 % / -42 %, 0.25 |" in text
    assert "fair-envs reproduce lamalfa2025 --scale smoke" in text
    assert text.count("**The price of fairness is similar for both groups.**") == 1
    for name in ("boxes-ratio.png", "boxes-difference.png", "radar-dp.png", "alpha.png", "table.csv", "claims.json"):
        assert (tmp_path / "out" / name).exists()
    before = text
    paper.main(scale="smoke", out=tmp_path / "out", jobs=1, resume=True, progress=False)
    assert report.read_text() == before
