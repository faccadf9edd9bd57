"""Policies by what they gave in test episodes, and simple policies tested on tiny episodes."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("torch")

from fair_envs.experiments.jobs import run_cell
from fair_envs.reproduction.cimpean2025.jobs import SCRIPTED, ScriptedCell, SingleCell, TradeOffCell, chosen
from fair_envs.reproduction.cimpean2025.published import MEASURES, Setting
from fair_envs.reproduction.cimpean2025.results import Policies, over_seeds, rank_correlation, read_found, read_policies

TINY = {"horizon": 30}


def policies(sums: object, steps: object, names: tuple[str, ...] = ("R", "SP")) -> Policies:
    return Policies(names=names, sums=np.array(sums, float), steps=np.array(steps))


TWO = policies([[[1, -2], [3, -4]], [[5, 0], [5, -6]]], [[10, 30], [20, 20]])


def test_totals_are_means_over_episodes_and_rates_are_per_step_of_all_episodes() -> None:
    np.testing.assert_allclose(TWO.total("R"), [2, 5])
    np.testing.assert_allclose(TWO.rate("SP"), [-6 / 40, -6 / 40])
    np.testing.assert_allclose(TWO.table(("SP", "R")), [[-3, 2], [-3, 5]])


def test_halves_are_the_first_and_the_later_episodes() -> None:
    assert TWO.half(0).total("R").tolist() == [1, 5] and TWO.half(1).rate("R").tolist() == [3 / 30, 5 / 20]
    four = policies([[[1, 0], [2, 0], [3, 0], [5, 0]]], [[1, 1, 1, 1]])
    assert (four.half(0).total("R").tolist(), four.half(1).total("R").tolist()) == ([1.5], [4])


def test_the_studys_fraud_week_is_as_long_as_the_published_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(dict[str, Any], SCRIPTED), "fraud", {"never checks": SCRIPTED["fraud"]["never checks"]})
    found = read_found(run_cell(ScriptedCell(world="fraud", episodes=12), tmp_path)).policies
    assert 720 < found.total("R")[0] < 800  # published: 769, of 834 to 1000 payments
    assert 930 < found.steps[0].mean() <= 1000


def test_policies_are_read_as_they_were_kept() -> None:
    read = read_policies("own", TWO.arrays("own"))
    assert read is not None and read.names == TWO.names
    np.testing.assert_array_equal(read.sums, TWO.sums)
    assert read_policies("other", TWO.arrays("own")) is None


def test_joined_policies_are_one_after_another() -> None:
    assert len(Policies.joined([TWO, TWO])) == 4


def test_rank_correlations_need_three_policies_that_differ() -> None:
    three = policies([[[1, -3]], [[2, -1]], [[3, -2]]], [[1], [1], [1]])
    assert rank_correlation(three, "R", "SP") == pytest.approx(0.5)
    assert np.isnan(rank_correlation(TWO, "R", "SP"))
    alike = policies([[[1, -3]], [[2, -3]], [[3, -3]]], [[1], [1], [1]])
    assert np.isnan(rank_correlation(alike, "R", "SP"))


def test_undefined_seeds_are_left_out_and_counted() -> None:
    estimate = over_seeds([1.0, float("nan"), 3.0])
    assert (estimate.value, estimate.n) == (2.0, 2)
    assert np.isnan(over_seeds([float("nan")]).value)


def test_a_simple_hiring_policy_has_the_gaps_that_its_rule_makes(tmp_path: Path) -> None:
    cell = ScriptedCell(world="hiring", episodes=4, parameters={"horizon": 200})
    found = read_found(run_cell(cell, tmp_path))
    of = dict(zip(SCRIPTED["hiring"], range(len(found.policies)), strict=True))
    assert found.policies.names == ("R", *MEASURES[1:], "IF eq. 8")
    assert found.policies.sums[of["always hires"]][:, 1].tolist() == [0] * 4
    assert found.policies.steps[of["always hires"]].tolist() == [100] * 4
    accuracy_gap = found.policies.rate("OAE")
    assert accuracy_gap[of["correct decision"]] == 0
    assert found.policies.rate("SP")[of["hires qualified men, no women"]] < -0.4
    assert found.misread is not None
    assert found.misread.rate("SP")[of["hires qualified men, no women"]] > -0.2
    assert found.misread.rate("OAE")[of["correct decision"]] < 0


def test_a_simple_fraud_policy_has_the_gaps_that_its_rule_makes(tmp_path: Path) -> None:
    found = read_found(run_cell(ScriptedCell(world="fraud", episodes=2, parameters={"horizon": 100}), tmp_path))
    of = dict(zip(SCRIPTED["fraud"], range(len(found.policies)), strict=True))
    assert found.misread is None
    assert found.policies.rate("SP")[of["checks North America"]] < -0.8  # until the first of them came: undefined, 0
    assert found.policies.rate("OAE")[of["correct decision"]] == 0


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_a_training_for_the_reward_alone_is_measured_like_a_simple_policy(algorithm: Any, tmp_path: Path) -> None:
    cell = SingleCell(world="hiring", algorithm=algorithm, seed=0, steps=5000, episodes=4, parameters=TINY)
    found = read_found(run_cell(cell, tmp_path))
    simple = read_found(run_cell(ScriptedCell(world="hiring", episodes=4, parameters=TINY), tmp_path)).policies
    assert found.policies.names == simple.names
    assert found.policies.sums.shape == (1, 4, len(simple.names))
    assert found.policies.rate("R")[0] > simple.rate("R")[list(SCRIPTED["hiring"]).index("random")]


@pytest.mark.parametrize("objectives", [("R", "SP", "IF"), ("SP",), ("R", "SP")])
def test_a_training_keeps_what_its_policies_did_in_all_measures(objectives: tuple[str, ...], tmp_path: Path) -> None:
    setting = Setting(world="hiring", objectives=objectives, window=100)
    learning = {"first_episodes": 4, "episodes": 4, "updates": 2}
    cell = TradeOffCell(setting=setting, seed=0, steps=400, episodes=2, training=learning, parameters=TINY)
    found = read_found(run_cell(cell, tmp_path))
    assert set(MEASURES) <= set(found.policies.names) and found.policies.names[0] == "R"
    assert found.policies.steps.max() == 30
    assert found.sizes[-1, 0] >= 400 and found.sizes[:, 1].max() <= 100
    assert found.misread is not None and len(found.misread) == len(found.policies)
    if objectives == ("R", "SP"):
        assert "CSC, Bray-Curtis" in found.policies.names
        own = [found.policies.total(name) for name in ("CSC", "CSC, HEOM")]
        np.testing.assert_allclose(own[0], own[1])


def test_equal_cells_give_equal_results(tmp_path: Path) -> None:
    learning = {"first_episodes": 4, "episodes": 4, "updates": 2}
    cell = TradeOffCell(
        setting=Setting(world="hiring", objectives=("R", "SP"), window=50),
        seed=1,
        steps=300,
        episodes=2,
        training=learning,
        parameters=TINY,
    )
    found = [read_found(run_cell(cell, tmp_path / name)) for name in ("one", "two")]
    np.testing.assert_array_equal(found[0].policies.sums, found[1].policies.sums)


def test_at_most_so_many_commands_are_tested() -> None:
    from fair_envs.baselines.pcn.pcn import Command

    line = [Command(np.array([k, -(k**1.5)]), 10.0) for k in range(40)]
    few = chosen(line)
    assert len(few) == 16
    assert few[0].desired_return[0] == 0 and few[-1].desired_return[0] == 39
