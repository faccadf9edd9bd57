"""The fair-PPO study: its cells, its claims on returns made by hand, and the whole of it at a tiny scale."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

from fair_envs.metrics import Estimate
from fair_envs.reproduction import claims
from fair_envs.reproduction.experiment import Result
from fair_envs.reproduction.lamalfa2025 import report as paper
from fair_envs.reproduction.measures import Arm
from tests.helpers import LITTLE
from tests.jobs import run_here
from tests.reproduction.test_measures import HORIZON, result


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
    assert [claims.exceeds(estimate(*e), 50) for e in ((51, 60), (30, 49), (40, 60))] == [True, False, None]
    assert [claims.within(estimate(*e), 10) for e in ((-9, 9), (11, 20), (-30, -11), (5, 15))] == [
        True,
        False,
        False,
        None,
    ]
    undefined = estimate(float("nan"), float("nan"))
    assert claims.exceeds(undefined, 0) is None and claims.within(undefined, 10) is None


def test_all_of_nothing_is_open() -> None:
    assert [claims.all_of(x) for x in ([True, True], [True, None], [None, False], [])] == [True, None, False, None]


# ---------------------------------------------------------------------------- claims, on returns made by hand

PPO, LOW, FULL = (0.0, 0.0), (0.5, 1.0), (1.0, 1.0)
JUST_HIGH = (paper.HIGH, 1.0)
SPREAD = (-0.1, 0.0, 0.1)  # of three training seeds
HOLDS, FAILS, OPEN = "Holds", "Does not hold", "Undecided"


def ahead(red: float, blue: float | None = None, *, game: float = 5) -> list[Result]:
    """Return three seeds in which full speed earns so much more than 10, and half speed so much less.

    Among red, among blue, and in the two games: the ratio and the difference of two arms fall by the same share.
    """
    blue = red if blue is None else blue
    return [
        result([10 + red + s, 10 - red - s, 10 + blue + s, 10 - blue - s], games=(10 + game + s, 10 - game - s))
        for s in SPREAD
    ]


def report(results: Mapping[tuple[float, float], Sequence[Result]]) -> paper.Report:
    """Return a report with the same results for each penalty."""
    scale = paper.Scale(
        seeds=3, steps=1, horizon=HORIZON, episodes=1, points=[p for p in results if p != PPO], training={}
    )
    points: list[paper.Point] = [(penalty, "shaped", *weights) for penalty in paper.PENALTIES for weights in results]
    arms = {point: Arm(paper.label_of(point), results[point[2], point[3]], HORIZON) for point in points}
    return paper.Report(name="smoke", scale=scale, arms=arms, out=Path("nowhere"))


def outcomes(claim: claims.Claim) -> list[str]:
    """Return what the claim's verdict says in each metric."""
    return [part.split(" (")[0] for part in claim.verdict.split("; ")]


@pytest.mark.parametrize(("gap", "outcome"), [(1.5, HOLDS), (2.0, OPEN), (2.5, FAILS), (3.9, FAILS)])
def test_demographic_disparity_must_fall_by_more_than_half_at_the_best_weights(gap: float, outcome: str) -> None:
    found = report({PPO: ahead(4), FULL: ahead(gap), LOW: ahead(3.9)})  # from 4 to 1.5: by 62.5 %
    assert outcomes(found.claims()[0]) == [outcome, outcome]


@pytest.mark.parametrize(("red", "blue", "outcome"), [(3, 3, HOLDS), (3, 4, OPEN), (3, 5, FAILS), (5, 3, FAILS)])
def test_conditional_parity_must_improve_among_red_and_among_blue(red: float, blue: float, outcome: str) -> None:
    found = report({PPO: ahead(4), LOW: ahead(2), FULL: ahead(red, blue)})
    assert outcomes(found.claims()[1]) == [outcome, outcome]


@pytest.mark.parametrize(
    ("high", "low", "outcome"),
    [(3, 6, HOLDS), (3, 4, FAILS), (6, 6, FAILS), (5, 6, OPEN), (3, 5, OPEN)],
)
def test_the_two_games_must_come_closer_where_both_weights_are_high_and_nowhere_else(
    high: float, low: float, outcome: str
) -> None:
    games = {PPO: 5, JUST_HIGH: high, LOW: low}  # in the ordinary game all are alike
    found = report({weights: ahead(4, game=gap) for weights, gap in games.items()})
    assert outcomes(found.claims()[2]) == [outcome, outcome]


def paying(without: float, having: float, *, games: tuple[float, float]) -> list[Result]:
    """Return three seeds in which the groups earn so much in the ordinary game and in the two games."""
    return [result([without + s, having] * 2, games=(games[0] + s, games[1])) for s in SPREAD]


@pytest.mark.parametrize(("without", "outcome"), [(9.5, HOLDS), (9, OPEN), (8.5, FAILS), (11.5, FAILS)])
@pytest.mark.parametrize("of_games", [False, True])
def test_the_groups_prices_must_lie_within_ten_points(without: float, outcome: str, of_games: bool) -> None:
    equal, other = (10.0, 5.0), (without, 5.0)
    ordinary, games = (equal, other) if of_games else (other, equal)
    found = report({PPO: [result([10, 5, 10, 5], games=(10, 5))] * 3, FULL: paying(*ordinary, games=games)})
    assert outcomes(found.claims()[3]) == [outcome]


def test_counterfactual_prices_are_those_of_the_two_games() -> None:
    found = report({PPO: [result([10, 5, 10, 5], games=(10, 5))] * 3, FULL: paying(9, 5.5, games=(8, 6))})
    half = 4.303 * 1 / 3**0.5  # Student's t with 2 degrees of freedom; one point between the seeds
    for penalty, gap in zip(paper.PENALTIES, (-10 - 10, -10 - 10, -20 - 20), strict=True):
        (arm,) = found.fair(penalty).values()
        e = found.price_gap(penalty, arm)
        assert (e.value, e.low, e.high) == pytest.approx((gap, gap - half, gap + half), abs=0.01)
    rows = [line.split(" | ") for line in found.paper_table().splitlines()]
    prices = {row[0]: row[3:5] for row in rows if row[1] == "(1, 1)"}
    assert prices["| dp"] == ["-10.0 [-12.5, -7.5]", "10.0 [10.0, 10.0]"]
    assert prices["| cf"] == ["-20.0 [-22.5, -17.5]", "20.0 [20.0, 20.0]"]


def test_raw_differences_are_divided_by_the_largest_of_ppo_and_the_shaped_arms() -> None:
    found = report({PPO: [result([12, 10, 12, 10])] * 3, FULL: [result([10, 20, 10, 20], [11, 10, 11, 10])] * 3})
    weighted = Arm("weighted", [result([90, 0, 90, 0])] * 3, HORIZON)
    found = replace(found, arms={**found.arms, ("dp", "weighted", *FULL): weighted})
    values = [found.scaled("dp", arm, "dp_total").value for point, arm in found.arms.items() if point[0] == "dp"]
    assert values == pytest.approx([4 / 20, (20 + 2) / 2 / 20, 180 / 20])


# --------------------------------------------------------------------------------------------- from end to end


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
    (tmp_path / "scale.txt").write_text("full")
    with pytest.raises(ValueError, match=r"scale must be 'full' to resume .*, got 'smoke'"):
        paper.main(scale="smoke", out=tmp_path, resume=True)


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
        parameters={name: value for name, value in LITTLE.items() if name != "horizon"},
    )
    monkeypatch.setitem(paper.SCALES, "smoke", tiny)
    monkeypatch.setattr("fair_envs.reproduction.study.run_cells", run_here)
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
