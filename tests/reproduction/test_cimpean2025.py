"""The FAReL study: its cells, its claims on results made by hand, and the whole of it at a tiny scale."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from fair_envs.reproduction.cimpean2025 import report as paper
from fair_envs.reproduction.cimpean2025.jobs import PUBLISHED_IF, SCRIPTED
from fair_envs.reproduction.cimpean2025.published import MEASURES, Setting, World, tables
from fair_envs.reproduction.cimpean2025.results import Found, Policies
from fair_envs.reproduction.figures import TradeOffs, trade_off_radar
from tests.jobs import run_here

NAMES = (*MEASURES, PUBLISHED_IF)
SCALE = paper.Scale(
    seeds=3, steps=1, steps_unforgetting=1, episodes=1, tables=(5, 7, 8, 9, 10, 17, 18, 19), training={}
)
GROUPS = paper.GROUP_NOTIONS


def test_the_small_scale_runs_every_setting_of_the_paper_with_three_seeds() -> None:
    small = paper.cells(paper.SCALES["small"])
    assert {s for s in small if not s.misaligned} == {s for groups in tables().values() for s in groups.values()}
    assert all(len(group) == 3 for group in small.values())
    keys = [cell.key for group in small.values() for cell in group]
    assert len(set(keys)) == len(keys)


def test_the_full_scale_is_the_papers_protocol() -> None:
    full = paper.SCALES["full"]
    assert (full.seeds, full.steps, full.training) == (10, 500_000, None)
    cell = next(iter(paper.cells(full).values()))[0]
    assert cell.settings().updates == 20 and cell.settings().keep == "heap"


# ---------------------------------------------------------------------------- claims, on results made by hand


def found(rows: Sequence[Mapping[str, float]], *, misread: Sequence[Mapping[str, float]] | None = None) -> Found:
    """Return a cell's result: policies of two episodes of one step; measures that are not given are 0."""

    def of(given: Sequence[Mapping[str, float]]) -> Policies:
        sums = np.array([[[row.get(name, 0.0) for name in NAMES]] * 2 for row in given])
        return Policies(names=NAMES, sums=sums, steps=np.ones((len(given), 2), np.int64))

    own = None if misread is None else of(misread)
    return Found(cell={"seed": 0}, policies=of(rows), misread=own, sizes=np.zeros((0, 2)), seconds=1.0)


def report(
    rows: Mapping[Setting, Sequence[Sequence[Mapping[str, float]]]] | None = None,
    *,
    other: Sequence[Mapping[str, float]] = ({"R": 1.0}, {"R": 2.0}, {"R": 3.0}),
    misread: Sequence[Mapping[str, float]] | None = None,
) -> paper.Report:
    """Return a report in which all settings gave the same but those named, each with the rows of three seeds."""
    arms = {}
    for setting in paper.cells(SCALE):
        seeds = (rows or {}).get(setting, [other] * 3)
        arms[setting] = [found(own, misread=misread or own) for own in seeds]
    scripted: dict[World, Found] = {
        world: found([{"R": float(k)} for k in range(len(SCRIPTED[world]))]) for world in ("hiring", "fraud")
    }
    for world, own in scripted.items():
        scripted[world] = replace(own, misread=own.policies)
    alone = {label: [found([{"R": float(seed)}]) for seed in range(3)] for label in paper.singles(SCALE)}
    return paper.Report(name="small", scale=SCALE, arms=arms, singles=alone, scripted=scripted, out=Path())


def verdict_of(made: paper.Report, words: str) -> str:
    (claim,) = [claim for claim in made.claims() if words in claim.text]
    return claim.verdict.split(" (")[0]


def noisy(rows: Sequence[Mapping[str, float]]) -> Sequence[Mapping[str, float]]:
    """Return the rows with a reward that tells them apart."""
    return [{"R": float(k), **row} for k, row in enumerate(rows)]


def test_group_notions_go_together_if_all_rank_policies_alike() -> None:
    alike = noisy([dict.fromkeys(GROUPS, -0.1 * k) for k in range(4)])
    assert verdict_of(report(other=alike), "go together") == "Holds"
    apart = noisy([{**dict.fromkeys(GROUPS, -0.1 * k), "PE": 0.1 * k} for k in range(4)])
    assert verdict_of(report(other=apart), "go together") == "Does not hold"


def test_settings_that_all_gaps_depend_on_do_not_make_notions_go_together() -> None:
    windows = [setting for setting in paper.cells(SCALE) if setting.world == "hiring"]
    rows = {
        setting: [noisy([{**dict.fromkeys(GROUPS, -k - 0.1 * j), "PE": -k + 0.1 * j} for j in range(4)])] * 3
        for k, setting in enumerate(windows)
    }
    assert verdict_of(report(rows), "go together") == "Does not hold"


def test_a_misreading_that_turns_the_order_of_policies_is_found() -> None:
    right = noisy([dict.fromkeys(GROUPS, -0.1 * k) for k in range(4)])
    assert verdict_of(report(other=right, misread=right), "misalignment") == "Holds"
    assert verdict_of(report(other=right, misread=right[::-1]), "misalignment") == "Does not hold"


@pytest.mark.parametrize("world", ["hiring", "fraud"])
def test_individual_notions_conflict_if_their_ranks_are_opposite(world: World) -> None:
    opposite = [{"R": k, "IF": -0.1 * k, PUBLISHED_IF: -0.1 * k, "CSC": 0.1 * k} for k in range(4)]
    assert verdict_of(report(other=opposite), f"conflict ({world})") == "Holds"
    same = [{"R": k, "IF": 0.1 * k, PUBLISHED_IF: 0.1 * k, "CSC": 0.1 * k} for k in range(4)]
    assert verdict_of(report(other=same), f"conflict ({world})") == "Does not hold"


@pytest.mark.parametrize(("world", "number"), [("hiring", 10), ("fraud", 19)])
def test_the_window_matters_if_gaps_are_smaller_over_the_largest(world: World, number: int) -> None:
    groups = tables()[number]
    short = dict.fromkeys(("SP", "IF", "CSC"), -0.3)
    long = dict.fromkeys(("SP", "IF", "CSC"), -0.1)
    given = {groups["100"]: [[short]] * 3, groups["1000"]: [[long]] * 3}
    assert verdict_of(report(given), f"short windows ({world})") == "Holds"
    turned = {groups["100"]: [[long]] * 3, groups["1000"]: [[short]] * 3}
    assert verdict_of(report(turned), f"short windows ({world})") == "Does not hold"


def test_biases_make_less_fair_if_all_widen_the_gap() -> None:
    biased = [setting for setting in paper.cells(SCALE) if setting.bias != "none" and setting.world == "hiring"]
    wider = {setting: [[{"SP": -0.2}]] * 3 for setting in biased}
    assert verdict_of(report(wider), "statistical parity (hiring)") == "Holds"
    narrower = {setting: [[{"SP": 0.2}]] * 3 for setting in biased}
    assert verdict_of(report(narrower), "statistical parity (hiring)") == "Does not hold"


def test_bray_curtis_is_worse_if_its_column_is() -> None:
    groups = tables()[17]
    worse = report({groups["Bray-Curtis"]: [[{PUBLISHED_IF: -0.6, "IF": 0.6}]] * 3})
    better = report({groups["Bray-Curtis"]: [[{PUBLISHED_IF: 0.6, "IF": -0.6}]] * 3})
    (one,), (other,) = (
        [claim.verdict for claim in made.claims() if "HEOM and HMOM (fraud)" in claim.text] for made in (worse, better)
    )
    assert one == "Holds (by eq. 8); Does not hold (by violations)."
    assert other == "Does not hold (by eq. 8); Holds (by violations)."


def test_fraud_is_harder_if_less_of_its_reward_is_reached() -> None:
    of = paper.cells(SCALE)
    hiring = {setting: [[{"R": 4.9}]] * 3 for setting in of if setting.world == "hiring"}
    fraud = {setting: [[{"R": 2.1}]] * 3 for setting in of if setting.world == "fraud"}
    assert verdict_of(report({**hiring, **fraud}), "harder") == "Holds"
    turned = {setting: [[{"R": 2.1 if setting.world == "hiring" else 3.9}]] * 3 for setting in of}
    assert verdict_of(report(turned), "harder") == "Does not hold"


def test_what_a_bias_adds_to_the_reward_is_not_taken_for_learning() -> None:
    of = paper.cells(SCALE)
    rows = {setting: [[{"R": 4.9 if setting.world == "hiring" else 2.1}]] * 3 for setting in of}
    rows |= {setting: [[{"R": 50.0}]] * 3 for setting in of if setting.bias != "none" or setting.population == "gender"}
    assert verdict_of(report(rows), "harder") == "Holds"


def test_policies_are_not_judged_by_the_luck_that_they_are_chosen_by() -> None:
    (setting,) = {tables()[5]["HEOM"]}
    made = report({setting: [[{"R": 1.0}, {"R": 3.0}]] * 3})
    for own in made.arms[setting]:
        own.policies.sums[0, 0, 0] = 10.0  # lucky in the first half alone
    assert made._most_rewarded("hiring", 0) == 1.0


def test_fairness_costs_little_if_a_fair_policy_earns_nearly_as_much() -> None:
    setting = tables()[5]["HEOM"]
    cheap = [[{"R": 4.0, "SP": -0.5}, {"R": 3.9, "SP": 0.0}]] * 3
    assert verdict_of(report({setting: cheap}), "little reward (hiring)") == "Holds"
    dear = [[{"R": 4.0, "SP": -0.5}, {"R": 2.0, "SP": 0.0}]] * 3
    made = report({setting: dear})
    assert verdict_of(made, "little reward (hiring)") == "Does not hold"
    assert "66.7 [66.7, 66.7]" in next(c.evidence for c in made.claims() if "little reward (hiring)" in c.text)


def test_a_cost_is_left_open_where_nothing_was_learnt_or_a_seed_found_no_fair_policy() -> None:
    setting = tables()[5]["HEOM"]
    unlearnt = [[{"R": 2.1, "SP": -0.5}, {"R": 2.1, "SP": 0.0}]] * 3
    assert verdict_of(report({setting: unlearnt}), "little reward (hiring)") == "Undecided"
    cheap, unfair = [{"R": 4.0, "SP": -0.5}, {"R": 3.9, "SP": 0.0}], [{"R": 4.0, "SP": -0.5}]
    assert verdict_of(report({setting: [cheap, cheap, unfair]}), "little reward (hiring)") == "Undecided"


def test_policies_for_one_objective_each_share_a_panel_by_kind_and_have_its_colour(tmp_path: Path) -> None:
    axes = len(MEASURES)
    shown = {
        name: TradeOffs(values=np.full((2, axes), -1.0), colours=np.zeros((2, 3)), others=np.full((3, axes), -2.0))
        for name in tables()[1]
    }
    panels = paper._by_kind(shown)
    assert {kind: sorted(set(own.names)) for kind, own in panels.items()} == {
        "performance": ["R"],
        "group": ["EO", "OAE", "PE", "PP", "SP"],
        "individual": ["CSC", "IF"],
    }
    assert len(panels["individual"].others) == 6
    assert len({tuple(colour) for own in panels.values() for colour in own.colours.tolist()}) == 8
    trade_off_radar(panels, tmp_path / "radar.png", axes=MEASURES, low=-5)
    assert (tmp_path / "radar.png").stat().st_size > 0


# ------------------------------------------------------------------------------------------------ the whole


def test_the_whole_study_runs_at_a_tiny_scale_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learning = {"first_episodes": 3, "episodes": 3, "updates": 1}
    tiny = paper.Scale(
        seeds=1,
        steps=200,
        steps_unforgetting=200,
        episodes=2,
        tables=(5, 11, 17),
        training=learning,
        parameters={"horizon": 20},
    )
    monkeypatch.setitem(paper.SCALES, "smoke", tiny)
    monkeypatch.setattr("fair_envs.reproduction.study.run_cells", run_here)
    path = paper.main(scale="smoke", out=tmp_path / "study", jobs=1, progress=False)
    text = path.read_text()
    for words in ("not upper bounds", "### Table 5", "### Table 11", "| HEOM | ours |", "always hires"):
        assert words in text
    for name in ("radar-5.png", "radar-17.png", "window-11.png", "claims.json", "policies.json"):
        assert (tmp_path / "study" / name).stat().st_size > 0
    with pytest.raises(FileExistsError):
        paper.main(scale="smoke", out=tmp_path / "study", progress=False)
    before = path.read_text()
    assert paper.main(scale="smoke", out=tmp_path / "study", resume=True, progress=False).read_text() == before


def test_what_was_trained_for_the_reward_alone_is_told_for_each_environment_and_algorithm() -> None:
    shown = report().singles_table().splitlines()[2:]
    assert [row.split(" | ")[:3] for row in shown] == [
        [f"| {world}", algorithm, "1.000 [-1.484, 3.484]"]
        for world in ("hiring", "fraud")
        for algorithm in ("DQN", "PPO")
    ]
