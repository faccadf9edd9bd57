"""Any multi-agent system is measured by the same definitions, attribute by attribute."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs import make_rules
from fair_envs.metrics.returns import Returns, counterfactual_fairness, demographic_parity
from fair_envs.systems import (
    Episodes,
    can_flip,
    check_measure,
    measure,
    play_parallel,
    play_system,
    save,
    table,
    total_return,
)
from fair_envs.wrappers.twin import Twins, choose
from tests.leavers import Leavers
from tests.leavers import parallel_env as leavers
from tests.toys import LongCountdown

ATTRIBUTES = {"agent_0": {"old": 1, "red": 0}, "agent_1": {"old": 0, "red": 0}, "agent_2": {"old": 0, "red": 1}}


def random_moves(observation: Any, uniforms: Any) -> Any:
    return choose(np.full((*uniforms.shape, 8), 1 / 8), uniforms)


def harvest() -> Any:
    return make_rules("FairHarvest-v0", agents=4, horizon=30)


def found(episodes: Episodes, **options: Any) -> dict[tuple[str, str, str], float]:
    return {one[:3]: one.gap.value for one in measure(episodes, **options)}


def test_a_system_of_this_package_is_measured_by_the_definitions() -> None:
    rules = harvest()
    played = play_system(rules, random_moves, episodes=7, seed=3, lanes=3)
    pairs = Twins(rules).run(random_moves, episodes=7, seed=3, flip="carriers")
    name = next(iter(rules.spec.sensitive))
    np.testing.assert_array_equal(played.returns.values, pairs.factual.values)
    gaps = found(played)
    parity = demographic_parity(pairs.factual, sensitive=name, form="difference")
    twins = counterfactual_fairness(pairs.factual, pairs.counterfactual, sensitive=name, form="difference")
    assert gaps["demographic_parity", name, ""] == pytest.approx(parity.mean())
    assert gaps["counterfactual_fairness", name, ""] == pytest.approx(twins.mean())
    assert {key[2] for key in gaps if key[0] == "conditional_parity"} == {"preference=0", "preference=1"}
    assert total_return(played).value == pytest.approx(pairs.factual.values.sum(axis=1).mean())


def test_how_many_play_at_once_and_whether_twins_do_makes_no_difference() -> None:
    all_at_once, one_by_one = (play_system(harvest(), random_moves, episodes=5, lanes=k) for k in (64, 1))
    np.testing.assert_array_equal(all_at_once.returns.values, one_by_one.returns.values)
    alone = play_system(harvest(), random_moves, episodes=5, counterfactual=False)
    np.testing.assert_array_equal(alone.returns.values, one_by_one.returns.values)
    assert not alone.without and ("counterfactual_fairness" not in {key[0] for key in found(alone)})


def test_each_batch_is_told() -> None:
    told: list[int] = []
    play_system(harvest(), random_moves, episodes=5, lanes=2, each=lambda: told.append(1))
    assert len(told) == 3


def test_environments_without_an_attribute_to_take_away_have_no_twins() -> None:
    assert can_flip(harvest()) and can_flip(LongCountdown())
    assert not can_flip(make_rules("FairPursuit-v0"))


def test_a_decision_maker_is_no_system_of_agents() -> None:
    with pytest.raises(ValueError, match="needs agents"):
        play_system(make_rules("FairHiring-v0"), random_moves, episodes=1)


def test_every_attribute_can_be_the_attribute_and_several_values_are_told_apart() -> None:
    values = [[3.0, 1.0, 2.0, 5.0], [4.0, 1.0, 1.0, 5.0]]
    returns = Returns(values, attributes={"kind": [0, 1, 2, 2], "fast": [0, 0, 1, 1]})
    played = Episodes(returns=returns, sensitive=("kind",), legitimate=("fast",))
    gaps = found(played)
    assert [key[1] for key in gaps if key[0] == "demographic_parity"] == ["kind=0", "kind=1", "kind=2"]
    assert gaps["demographic_parity", "kind=0", ""] == pytest.approx(np.mean([8 / 3 - 3, 7 / 3 - 4]))
    assert found(played, attributes=["fast"])["demographic_parity", "fast", ""] == pytest.approx(np.mean([-1.5, -0.5]))
    assert not any("fast" in key[2] for key in found(played, attributes=["fast"]))


def test_agents_of_ones_own_earn_until_they_leave() -> None:
    played = play_parallel(leavers(horizon=5), ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=2)
    assert played.returns.values.tolist() == [[2, 4, 10], [4, 6, 10]]  # seeds 0 and 1; 2 a step
    assert played.legitimate == ("red",)
    gaps = found(played)
    assert gaps["demographic_parity", "old", ""] == pytest.approx(np.mean([7 - 2, 8 - 4]))
    assert gaps["conditional_parity", "old", "red=0"] == pytest.approx(np.mean([4 - 2, 6 - 4]))


def test_what_would_be_without_an_attribute_is_played_with_the_same_luck() -> None:
    lucks: list[float] = []

    def policy(agent: str, observation: Any, uniform: float) -> int:
        lucks.append(uniform)
        return 1

    shorter, longer = leavers(horizon=2), leavers(horizon=4)
    played = play_parallel(shorter, ATTRIBUTES, policy, sensitive=["old"], episodes=3, without={"old": longer})
    gap = found(played)["counterfactual_fairness", "old", ""]
    assert gap == pytest.approx(np.mean([2 - 2, 4 - 4, 2 - 2]))  # agent_0 has left by then
    again = lucks.copy()
    lucks.clear()
    play_parallel(longer, ATTRIBUTES, policy, sensitive=["old"], episodes=1)
    assert lucks[:3] == again[:3]
    assert all(0 <= luck < 1 for luck in again) and len(set(again)) > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attributes": {"agent_0": {"old": 1}}}, "attributes must have one entry for each possible agent; .*agent_1"),
        (
            {"attributes": {**ATTRIBUTES, "agent_1": {"old": 0}}},
            r"attributes must have the same names for all, \['old', 'red'\], got \['old'\] of agent_1",
        ),
        ({"sensitive": "old"}, "sensitive must list names of attributes, got 'old'"),
        ({"sensitive": []}, r"sensitive must list names of attributes, got \[\]"),
        ({"sensitive": ["young"]}, "sensitive must be among old, red, got 'young'"),
        ({"without": {"red": None}}, "without must name sensitive attributes, old, got 'red'"),
        ({"episodes": 0}, "episodes must be an integer of at least 1, got 0"),
        ({"attributes": {**ATTRIBUTES, "agent_1": {"old": -1, "red": 0}}}, "must hold codes of at least 0"),
    ],
)
def test_wrong_systems_of_ones_own_are_named(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"attributes": ATTRIBUTES, "sensitive": ["old"], "episodes": 1, **change}
    with pytest.raises(ValueError, match=message):
        play_parallel(leavers(), given.pop("attributes"), lambda *_: 1, **given)


def test_what_is_no_environment_is_refused() -> None:
    with pytest.raises(TypeError, match=r"env must be a pettingzoo\.ParallelEnv"):
        play_parallel("city", ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=1)


def test_wrong_names_are_refused_before_anything_is_played() -> None:
    spec = Leavers().spec
    check_measure(spec, attributes=["marked"], form="sum")
    with pytest.raises(ValueError, match="attribute must be one of marked, got 'old'"):
        check_measure(spec, attributes=["old"], form="sum")
    with pytest.raises(ValueError, match=r"form must be one of sum, .*, got 'both'"):
        check_measure(spec, attributes=None, form="both")


def test_reports_hold_every_number(tmp_path: Path) -> None:
    played = play_parallel(leavers(horizon=5), ATTRIBUTES, lambda *_: 1, sensitive=["old"], episodes=2)
    measured = {"one": measure(played), "two": measure(played)}
    totals = {name: total_return(played) for name in measured}
    save(measured, totals, tmp_path / "new", about={"seed": 0})
    told = json.loads((tmp_path / "new" / "report.json").read_text())
    assert told["seed"] == 0 and len(told["measured"]) == 2 * (len(measured["one"]) + 1)
    first = told["measured"][0]
    assert (first["policy"], first["notion"], first["attribute"]) == ("one", "demographic_parity", "old")
    assert first["value"] == measured["one"][0].gap.value
    assert len((tmp_path / "new" / "report.csv").read_text().splitlines()) == len(told["measured"]) + 1
    shown = table(measured, totals)
    assert [str(column.header) for column in shown.columns] == ["attribute", "notion", "within", "one", "two"]
    assert shown.row_count == len(measured["one"]) + 1
