"""Who plays is found by name, and known by what it consists of."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs import TABLE, make_rules
from fair_envs.assessment.policies import is_run
from fair_envs.evaluation import LanesWorld, RandomPolicy, begun, rollout, scripted
from fair_envs.experiments.players import contents, policy_named, policy_tried
from tests.toys import LongCountdown


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the file of a module that can be imported, `own_drivers`."""
    path = tmp_path / "own_drivers.py"
    path.write_text("def ones(observation, uniforms):\n    return (uniforms < 2).astype(int)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield path
    sys.modules.pop("own_drivers", None)


def test_who_is_part_of_this_package_consists_of_nothing_else() -> None:
    assert contents("random") == contents("shortest-time") == ""


def test_contents_change_with_a_modules_source(module: Path) -> None:
    before = contents("own_drivers:ones")
    assert before and before == contents("own_drivers:twos")  # the file counts, whatever is taken from it
    module.write_text(module.read_text() + "\n# another line\n")
    importlib.invalidate_caches()
    assert contents("own_drivers:ones") not in ("", before)


def test_contents_change_with_a_runs_files(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    assert contents(str(run)) == ""
    (run / "config.json").write_text("{}")
    (run / "model.zip").write_bytes(b"one")
    before = contents(str(run))
    (run / "model.zip").write_bytes(b"two")
    assert before and contents(str(run)) not in ("", before)


def test_a_function_plays_by_its_name(module: Path) -> None:
    policy = policy_named("own_drivers:ones", LongCountdown())
    assert policy.act(np.zeros((3, 2, 2)), np.zeros((3, 2))).tolist() == [[1, 1]] * 3 and not policy.append_group


def test_chance_plays_each_agent_by_its_own_number() -> None:
    policy = policy_named("random", LongCountdown())
    luck = np.array([[0.1, 0.9], [0.6, 0.4]])
    assert policy.act(np.zeros((2, 2, 2)), luck).tolist() == [[0, 1], [1, 0]] and not policy.append_group
    pursuit = make_rules("FairPursuit-v0", action="heading")
    chosen = RandomPolicy(pursuit).act(np.zeros((2, 3, 4)), np.random.default_rng(0).random((2, 3)))
    assert chosen.shape[:2] == (2, 3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shortest-time", "policy must be 'random', a run's folder or module:function, got 'shortest-time'"),
        ("nosuch:function", "policy must be the import path of a function, got 'nosuch:function': No module named"),
        ("own_drivers:twos", "policy must be the import path of a function, got 'own_drivers:twos': .*no attribute"),
        (":ones", "policy must be the import path of a function, got ':ones'"),
    ],
)
def test_who_is_not_there_is_named(module: Path, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        policy_named(name, LongCountdown())


def test_a_function_that_chooses_no_actions_is_named(module: Path) -> None:
    module.write_text("def ones(observation, uniforms):\n    return uniforms + 7\n")
    taken: Any = r"policy must take observations .* got 'own_drivers:ones': action must hold integers, got float64"
    with pytest.raises(ValueError, match=taken):
        policy_tried("own_drivers:ones", LongCountdown())
    assert isinstance(policy_tried("random", LongCountdown()), RandomPolicy)


def test_drivers_play_fair_traffic_and_its_names_are_told() -> None:
    rules = make_rules("FairTraffic-v0")
    assert type(policy_named("shortest-path", rules)).__name__ == "ShortestPath"
    with pytest.raises(
        ValueError, match="policy must be 'random', 'random-turns', 'shortest-path', 'shortest-time', a"
    ):
        policy_named("fastest", rules)


@pytest.mark.parametrize("env_id", TABLE)
def test_scripted_policies_play_by_their_names(env_id: str) -> None:
    rules = make_rules(env_id, **({} if env_id == "FairCollege-v0" else {"horizon": 4}))
    for name in rules.policies:
        world = LanesWorld(begun(rules, np.arange(2, dtype=np.uint64)))
        played = list(rollout(world, policy_named(name, rules)))
        assert played[-1].ended.all(), name


def test_the_names_of_scripted_policies_are_listed_where_a_wrong_one_is_given() -> None:
    with pytest.raises(
        ValueError, match="policy must be one of 'greedy', 'planner', 'shuffled-roles' for pursuit, got"
    ):
        scripted(make_rules("FairPursuit-v0"), "gredy")
    with pytest.raises(ValueError, match="'observed-opportunity', a run's folder or module:function, got"):
        policy_named("sometimes", make_rules("FairLending-v0"))


def test_a_folder_with_a_colon_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "at-10:30").mkdir()
    assert is_run(str(tmp_path / "at-10:30")) and not is_run("my_rules:lend")
