"""The fair-PPO study: its cells, its claims on returns made by hand, and the whole of it at a tiny scale."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from fair_envs.experiments.jobs import run_cell
from fair_envs.experiments.seeds import TABLE, Arm, SeedRow, read_rows
from fair_envs.reproduction.claims import Claim
from fair_envs.reproduction.experiment import Result, read_result
from fair_envs.reproduction.lamalfa2025 import jobs
from fair_envs.reproduction.lamalfa2025 import report as paper
from fair_envs.reproduction.lamalfa2025.jobs import Point, Weights
from fair_envs.reproduction.lamalfa2025.published import TABLE_1
from fair_envs.reproduction.study import PRINTED, REPAIRED
from fair_envs.support.files import read_json
from tests.helpers import LITTLE
from tests.jobs import run_here
from tests.reproduction.test_measures import HORIZON, arm_of, result


@cache
def cells_of(scale: str) -> Mapping[Point | str, Sequence[Any]]:
    """Return the cells of a scale, which are the same each time."""
    return jobs.cells(jobs.SCALES[scale])


def test_the_small_scale_has_the_arms_of_the_plan() -> None:
    scale, study = jobs.SCALES["small"], cells_of("small")
    assert scale.seeds >= 10 and all(len(group) == scale.seeds for group in study.values())
    for seen in ("ten", "extended"):
        for penalty in jobs.PENALTIES:
            assert Point(seen, penalty, "shaped", 0.0, 0.0) in study
            for weights in {*jobs.DIAGONAL, *TABLE_1[penalty]}:  # the diagonal, and all of the paper's best points
                assert Point(seen, penalty, "shaped", *weights) in study
        for weights in jobs.ALONE:
            assert Point(seen, "dp", "shaped", *weights) in study
        assert Point(seen, "dp", "paper_literal", 1.0, 1.0) in study
    assert {"random", "stay", "reactive", "greedy"} <= set(study)


def test_the_full_scale_is_the_papers_grid() -> None:
    scale, study = jobs.SCALES["full"], cells_of("full")
    for variant in ("shaped", "paper_literal"):
        found = {
            (p.penalty, p.weights) for p in study if isinstance(p, Point) and p.variant == variant and p.alpha <= 1
        }
        grid = {(penalty, (a, b)) for penalty in jobs.PENALTIES for a in jobs.GRID for b in jobs.GRID}
        assert found | {(penalty, jobs.PPO) for penalty in jobs.PENALTIES} == grid
    assert scale.steps == 1000 * 3000 * 40


def test_ppo_without_a_penalty_is_trained_once_for_both_parities() -> None:
    study = cells_of("small")
    dp, csp, cf = (study[Point("ten", penalty, "shaped", 0.0, 0.0)][0].identity for penalty in jobs.PENALTIES)
    assert dp == csp != cf


def test_the_seeds_of_an_arm_differ_in_nothing_else() -> None:
    first, second = cells_of("small")[Point("ten", "dp", "shaped", 1.0, 1.0)][:2]
    one, two = (cell.as_dict()["training"] for cell in (first, second))
    assert {key for key in one if two[key] != one[key]} == {"seed"}


def test_arms_have_different_names() -> None:
    names = [str(key) for key in cells_of("full")]
    assert len(set(names)) == len(names)


def test_policies_without_training_play_the_episodes_of_their_seed(tmp_path: Path) -> None:
    parameters = {**LITTLE, "horizon": 12}
    found = []
    for name, seed in (("random", 0), ("random", 1), ("stay", 0), ("reactive", 0), ("greedy", 0)):
        cell = jobs.UntrainedCell(name=name, seed=seed, episodes=3, parameters=parameters)
        found.append(read_result(run_cell(cell, tmp_path)).ordinary)
    first, other, stay, reactive, greedy = found
    assert (first.values != other.values).any()
    assert not stay.values.any()
    assert greedy.values.sum() > reactive.values.sum() > first.values.sum()


# ---------------------------------------------------------------------------- claims, on returns made by hand

PPO, LOW, FULL = (0.0, 0.0), (0.5, 1.0), (1.0, 1.0)
SPREAD = (-0.1, 0.0, 0.1)  # of three training seeds
HOLDS, FAILS, OPEN = "Holds", "Does not hold", "Undecided"
PART = "Not refuted where it was run"  # of a claim about every point of the grid
NOT_THERE = "Does not hold where it was run"  # of a claim about some point of it


def ahead(red: float, blue: float | None = None, *, game: float = 5) -> list[Result]:
    """Return three seeds in which full speed earns so much more than 10, and half speed so much less.

    Among red, among blue, and in the two games: the ratio and the difference of two arms fall by the same share.
    """
    blue = red if blue is None else blue
    return [
        result([10 + red + s, 10 - red - s, 10 + blue + s, 10 - blue - s], games=(10 + game + s, 10 - game - s))
        for s in SPREAD
    ]


def report(results: Mapping[Weights, Sequence[Result]], variant: jobs.Variant = "shaped") -> paper.Report:
    """Return a report with the same results for each observation and penalty."""
    scale = jobs.Scale(seeds=3, steps=1, horizon=HORIZON, episodes=1, points={}, printed={}, training={})
    arms = {weights: arm_of(str(weights), own) for weights, own in results.items()}
    points = {
        Point(seen, penalty, "shaped" if weights == PPO else variant, *weights): arm
        for seen in jobs.OBSERVATIONS
        for penalty in jobs.PENALTIES
        for weights, arm in arms.items()
    }
    return paper.Report(name="smoke", scale=scale, arms=points, out=Path("nowhere"))


def outcome(claim: Claim, method: str = REPAIRED) -> str:
    """Return the verdict without the number of seeds that would decide."""
    return claim.verdict(method).split(" (")[0]


@pytest.mark.parametrize(("gap", "expected"), [(1.5, HOLDS), (2.0, OPEN), (2.5, NOT_THERE), (3.9, NOT_THERE)])
@pytest.mark.parametrize(("variant", "method"), [("shaped", REPAIRED), ("paper_literal", PRINTED)])
def test_demographic_disparity_must_fall_by_more_than_half_at_the_best_weights(
    gap: float, expected: str, variant: jobs.Variant, method: str
) -> None:
    found = report({PPO: ahead(4), FULL: ahead(gap), LOW: ahead(3.9)}, variant)  # from 4 to 1.5: by 62.5 %
    claim = found.claims()[0]
    assert outcome(claim, method) == expected
    assert outcome(claim, REPAIRED if method == PRINTED else PRINTED) == "Not run"


@pytest.mark.parametrize(("red", "blue", "expected"), [(3, 3, PART), (3, 4, OPEN), (3, 5, FAILS), (5, 3, FAILS)])
def test_conditional_parity_must_improve_among_red_and_among_blue(red: float, blue: float, expected: str) -> None:
    found = report({PPO: ahead(4), LOW: ahead(2), FULL: ahead(red, blue)})
    assert outcome(found.claims()[1]) == expected


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [(3, 6, PART), (3, 5, PART), (3, 4, FAILS), (6, 6, FAILS), (5, 6, OPEN), (3, 4.5, OPEN)],
)
def test_the_two_games_must_come_closer_where_both_weights_are_high_and_nowhere_else(
    high: float, low: float, expected: str
) -> None:
    games = {PPO: 5.0, (0.75, 1.0): high, (1.0, 0.25): low, (0.5, 0.5): 1.0}  # the last one is neither
    found = report({weights: ahead(4, game=gap) for weights, gap in games.items()})
    assert outcome(found.claims()[2]) == expected


def test_a_trend_is_the_slope_over_the_points() -> None:
    points = {PPO: 4.0, (1.0, 0.0): 3.0, (0.0, 1.0): 4.0, (1.0, 1.0): 3.0}  # a ratio of 0.4, and 0.1 less with alpha
    found = report({weights: ahead(gap) for weights, gap in points.items()})
    slopes = found.slopes("ten", "dp", "shaped")
    assert [slopes[name].value for name in ("alpha", "beta")] == pytest.approx([-0.1, 0.0], abs=1e-9)
    assert outcome(found.claims()[3]) == FAILS
    flat = report({weights: ahead(4.0) for weights in points})
    assert outcome(flat.claims()[3]) == PART
    assert report({PPO: ahead(4), FULL: ahead(3)}).slopes("ten", "dp", "shaped") == {}  # a line is no plane


def test_as_printed_only_beta_has_a_slope() -> None:
    points = {PPO: 4.0, (1.0, 0.5): 3.0, FULL: 2.0}  # a ratio of 0.4, and 0.2 less with beta
    slopes = report({weights: ahead(gap) for weights, gap in points.items()}, "paper_literal").slopes(
        "ten", "dp", "paper_literal"
    )
    assert list(slopes) == ["beta"] and slopes["beta"].value == pytest.approx(-0.2, abs=1e-9)


def paying(without: float, having: float, *, games: tuple[float, float]) -> list[Result]:
    """Return three seeds in which the groups earn so much in the ordinary game and in the two games."""
    return [result([without + s, having] * 2, games=(games[0] + s, games[1])) for s in SPREAD]


@pytest.mark.parametrize(("without", "expected"), [(9, PART), (8.5, OPEN), (8, FAILS), (12, FAILS)])
@pytest.mark.parametrize("of_games", [False, True])
def test_the_groups_prices_must_lie_within_fifteen_points(without: float, expected: str, of_games: bool) -> None:
    equal, other = (10.0, 5.0), (without, 5.0)
    ordinary, games = (equal, other) if of_games else (other, equal)
    found = report({PPO: [result([10, 5, 10, 5], games=(10, 5))] * 3, FULL: paying(*ordinary, games=games)})
    assert outcome(found.claims()[4]) == expected


def test_counterfactual_prices_are_those_of_the_two_games() -> None:
    found = report({PPO: [result([10, 5, 10, 5], games=(10, 5))] * 3, FULL: paying(9, 5.5, games=(8, 6))})
    half = 4.303 * 1 / 3**0.5  # Student's t with 2 degrees of freedom; one point between the seeds
    gaps = found.price_gaps("ten", "shaped")
    for penalty, gap in zip(jobs.PENALTIES, (-10 - 10, -10 - 10, -20 - 20), strict=True):
        e = gaps[f"{penalty} (1, 1)"]
        assert (e.value, e.low, e.high) == pytest.approx((gap, gap - half, gap + half), abs=0.01)
    rows = [line.split(" | ") for line in found.paper_table("ten").splitlines()]
    prices = {row[0]: row[4:6] for row in rows if row[2] == "(1, 1)"}
    assert prices["| dp"] == ["-10.0 [-12.5, -7.5]", "10.0 [10.0, 10.0]"]
    assert prices["| cf"] == ["-20.0 [-22.5, -17.5]", "20.0 [20.0, 20.0]"]


def test_the_interval_of_a_price_gap_covers_it() -> None:
    """In 95 % of simulated studies, up to the error of 400 of them."""
    rng, covered = np.random.default_rng(0), 0

    def arm(without: float, having: float) -> Arm:
        common = rng.normal(size=(10, 1))  # the groups of a seed are correlated
        values = np.array([without, having]) + 0.3 * common + 0.2 * rng.normal(size=(10, 2))
        numbers = [{"return[without]": a, "return[with]": b} for a, b in values]
        return Arm("", [SeedRow(arm="", seed=0, job="", code="", seconds=0, numbers=own) for own in numbers])

    for _ in range(400):
        classic, fair = arm(3, 2), arm(2, 1.5)
        prices = [fair.price(classic, f"return[{group}]") for group in ("without", "with")]
        e = paper._price_gap(fair, classic, "return", prices)
        covered += e.low <= 100 * (2 / 3 - 1.5 / 2) <= e.high
    assert 0.92 < covered / 400 < 0.98


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"), [(3, 3, HOLDS), (3, 4.6, FAILS), (5, 3, FAILS), (3, 3.9, OPEN), (3, 3.3, HOLDS)]
)
def test_each_component_must_reduce_the_disparity_without_the_other(alpha: float, beta: float, expected: str) -> None:
    found = report({PPO: ahead(4), (1.0, 0.0): ahead(alpha), (0.0, 1.0): ahead(beta)})
    assert outcome(found.claims()[5]) == expected


def test_the_groups_actions_are_compared_by_their_shares() -> None:
    found = report({PPO: ahead(4), FULL: ahead(3)})  # 3 of 4 stay among full speed, and 1 of 2 among half speed
    assert outcome(found.claims()[6]) == FAILS


def test_as_printed_a_component_has_no_effect_by_construction() -> None:
    assert report({PPO: ahead(4), FULL: ahead(3)}).claims()[5].verdict(PRINTED) == FAILS


# --------------------------------------------------------------------------------------------- from end to end


def test_an_unknown_scale_and_an_existing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="scale must be one of 'smoke', 'small', 'long', 'full', got 'huge'"):
        paper.main(scale="huge", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        paper.main(scale="smoke", out=tmp_path / "new", seeds=0)
    with pytest.raises(ValueError, match=r"merge_from \(--merge\) must name tables of this study or folders with one"):
        paper.main(scale="smoke", out=tmp_path / "new", merge_from=[tmp_path / "nowhere"])
    assert not (tmp_path / "new").exists()
    with pytest.raises(FileExistsError, match="out must be a new folder"):
        paper.main(scale="smoke", out=tmp_path)
    (tmp_path / "scale.txt").write_text("full")
    with pytest.raises(ValueError, match=r"scale must be 'full' to resume .*, got 'smoke'"):
        paper.main(scale="smoke", out=tmp_path, resume=True)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = jobs.Scale(
        seeds=2,
        steps=384,
        horizon=12,
        episodes=3,
        points={"dp": [(1.0, 1.0), *jobs.ALONE], "cf": [(1.0, 1.0)]},
        printed={"dp": [(1.0, 1.0)]},
        variants=("own credit",),
        curve=(2.0,),
        training={"lanes": 2, "n_steps": 12, "batch_size": 96, "n_epochs": 1},
        parameters={name: value for name, value in LITTLE.items() if name != "horizon"},
    )
    monkeypatch.setitem(jobs.SCALES, "smoke", scale)
    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", run_here)


@pytest.mark.usefixtures("tiny")
@pytest.mark.long
def test_the_study_runs_end_to_end_and_its_table_gives_the_same_report_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = paper.main(scale="smoke", out=tmp_path / "out", jobs=1, progress=False)
    text = report.read_text()
    assert "| cf | shaped | (1, 1) | -38 % / -42 %, 0.25 |" in text
    assert "fair-envs reproduce lamalfa2025 --scale smoke" in text
    for name in ("reward-half-speed.png", "ratio.png", "learning.png", "table.csv", "claims.json", TABLE):
        assert (tmp_path / "out" / name).exists()
    paper.main(scale="smoke", out=tmp_path / "out", jobs=1, resume=True, progress=False)
    assert report.read_text() == text

    def nothing_to_run(cells: Sequence[Any], *_: Any, **__: Any) -> None:
        assert not cells

    monkeypatch.setattr("fair_envs.experiments.seeds.run_cells", nothing_to_run)
    again = paper.main(scale="smoke", out=tmp_path / "again", merge_from=[tmp_path / "out"], progress=False)
    assert again.read_text() == text


@pytest.mark.usefixtures("tiny")
def test_longer_trainings_have_a_report_of_one_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = jobs.SCALES["long"].points
    scale = replace(
        jobs.SCALES["smoke"], points=points, printed={}, variants=(), curve=(), penalties=("dp",), ablated=False
    )
    trained = [key for key in jobs.cells(scale) if isinstance(key, Point)]
    assert len(trained) == len(jobs.OBSERVATIONS) * (1 + len(points["dp"]))
    monkeypatch.setitem(jobs.SCALES, "long", scale)
    text = paper.main(scale="long", out=tmp_path / "out", jobs=1, progress=False).read_text()
    assert "| 1 | With `extended`, small weights only delay a gain" in text
    assert len(read_json(tmp_path / "out" / "claims.json", list)) == 1
    assert (tmp_path / "out" / "learning.png").exists() and "| extended | PPO's ratio |" in text


@pytest.mark.parametrize(("gap", "expected"), [(3, HOLDS), (4, OPEN), (5, FAILS)])
def test_small_weights_only_delay_a_gain_if_they_lower_the_ratio_in_the_end(gap: float, expected: str) -> None:
    small = (0.25, 0.25)
    found = report({PPO: ahead(4), small: ahead(gap)})
    scale = replace(found.scale, points={"dp": [small]}, penalties=("dp",), ablated=False)
    longer = paper.made("long", scale, found.arms, Path("nowhere"))
    (claim,) = longer.claims()
    assert outcome(claim) == expected and claim.verdict(PRINTED) == "Not run"


@pytest.mark.usefixtures("tiny")
def test_the_first_seeds_of_all_arms_come_first_and_are_kept_if_the_study_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(cells: Sequence[Any], folder: Path, *, each: Any, **_: Any) -> None:
        groups = len({cell.identity for cell in cells}) // 2
        for cell in cells[:groups]:
            run_cell(cell, folder)
            each(folder / cell.key)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fair_envs.experiments.seeds.run_cells", interrupted)
        with pytest.raises(KeyboardInterrupt):
            paper.main(scale="smoke", out=tmp_path / "out", jobs=1, progress=False)
    rows = read_rows(tmp_path / "out")
    assert {row.seed for row in rows} == {0}
    assert len(rows) == len(cells_of("smoke")) - 2  # PPO is shared by two penalties
