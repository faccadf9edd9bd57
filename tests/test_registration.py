"""Ids lead to environments, and none is taken over by accident."""

import json
import sys
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import gymnasium as gym
import pytest

import fair_envs
from fair_envs.registration import TABLE, known_id, make_rules
from fair_envs.support.imports import Permissions, permissions, permit
from tests.test_cli import Said, mistake

OWN = """
import fair_envs
from fair_envs.envs.hiring import Env, Parallel, Vector, env, parallel_env
fair_envs.register("NAME", __name__, "My own.")
open("imported", "w").close()
"""
NUMBERS = count()  # of the ids, because PettingZoo's registry forgets nothing


@pytest.fixture
def own_id(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the id that a module ``own_hiring`` in the current folder registers; the module notes its import."""
    name = f"OwnHiring{next(NUMBERS)}-v0"
    Path("own_hiring.py").write_text(OWN.replace("NAME", name))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = permissions()
    yield name
    permit(before)
    sys.modules.pop("own_hiring", None)
    for table in (TABLE, gym.registry):
        table.pop(name, None)


def test_an_id_is_not_given_to_another_package() -> None:
    before = dict(TABLE)
    with pytest.raises(ValueError, match="id must be new, got 'FairHarvest-v0'"):
        fair_envs.register("FairHarvest-v0", "mine.harvest")
    assert before == TABLE


@pytest.mark.parametrize("module", ["nowhere", "nowhere.well", "fair_envs.envs.wel", "json.decoder.well"])
def test_a_module_that_does_not_exist_is_named_at_registration(module: str) -> None:
    before = dict(TABLE)
    with pytest.raises(ValueError, match=f"module must be the import path .* got '{module}', which does not exist"):
        fair_envs.register("OwnWell-v0", module)
    assert before == TABLE


def test_an_id_may_be_registered_again() -> None:
    entry = TABLE["FairHarvest-v0"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fair_envs.register("FairHarvest-v0", *entry)
    assert TABLE["FairHarvest-v0"] == entry


def test_an_id_may_name_the_module_that_registers_it(own_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModuleNotFoundError):
        make_rules(f"own_hiring:{own_id}")
    monkeypatch.syspath_prepend(Path.cwd())
    assert make_rules(f"own_hiring:{own_id}", horizon=7).params.horizon == 7
    assert known_id(f"own_hiring:{own_id}") == own_id
    with pytest.raises(ValueError, match=f"got 'own_hiring:{own_id[1:]}'; did you mean '{own_id}'"):
        known_id(f"own_hiring:{own_id[1:]}")
    pytest.importorskip("stable_baselines3")
    assert fair_envs.make_sb3(f"own_hiring:{own_id}", n_envs=2).num_envs == 2


def test_the_commands_import_the_module_of_an_id(own_id: str) -> None:
    pytest.importorskip("stable_baselines3")
    assert own_id in Said("show", f"own_hiring:{own_id}").text
    assert (
        Said(
            "evaluate", f"own_hiring:{own_id}", "-p", "horizon=9", "--episodes", "70", "--jobs", "2", "--no-progress"
        ).code
        == 0
    )
    small = ("-p", "horizon=9", "--shared", "--steps", "20", "--n-steps", "5", "--lanes", "2", "--no-progress")
    said = Said("train", "ppo", f"own_hiring:{own_id}", *small, "--out", "run")
    assert said.code == 0 and "measure it with: fair-envs --import own_hiring evaluate run" in said.flat, said.text
    assert json.loads(Path("run", "config.json").read_text())["env_id"] == own_id
    for command in (
        ("evaluate", "run", "--episodes", "1"),
        ("evaluate", own_id, "-p", "horizon=9", "--policy", "run", "--episodes", "1"),
        ("train", "--out", "run", "--resume"),
    ):
        assert Said(*command, "--import", "own_hiring", "--no-progress").code == 0
    assert "No module named 'own_hirin'" in mistake("--import=own_hirin", "list")


def test_a_run_does_not_cause_an_import(own_id: str) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.baselines.runs import Run
    from fair_envs.baselines.training import load

    permit(Permissions(folder=str(Path.cwd())))
    plain = Run.create(Path("plain"), {"algorithm": "ppo", "env_id": own_id}).folder
    assert f"was trained on '{own_id}', which is not registered; import the module" in mistake("evaluate", plain)
    named = Run.create(Path("named"), {"algorithm": "ppo", "env_id": f"own_hiring:{own_id}"}).folder
    for command in (("evaluate", named), ("train", "--resume", "--out", named)):
        assert "names the function 'own_hiring:OwnHiring" in mistake(*command)
    with pytest.raises(ValueError, match="names the function 'own_hiring:OwnHiring"):
        load(named)
    assert not Path("imported").exists()


@pytest.mark.parametrize("env_id", [env_id for env_id, entry in TABLE.items() if entry.agents])
def test_an_agent_among_others_has_an_id(env_id: str) -> None:
    env = gym.make(f"focal-{env_id}")
    assert env.unwrapped.focal_agent == 0  # type: ignore[attr-defined]
    batch = gym.make_vec(f"focal-{env_id}", num_envs=2, focal="agent_1")
    assert batch.single_action_space == env.action_space and batch.unwrapped.focal_agent == 1  # type: ignore[attr-defined]


def test_exactly_the_environments_with_several_agents_have_focal_ids() -> None:
    assert {env_id for env_id, entry in TABLE.items() if entry.agents} == {
        env_id for env_id in TABLE if make_rules(env_id).multi_agent
    }
    assert "focal-FairLending-v0" not in gym.registry


def test_an_id_that_is_registered_again_with_several_agents_gets_its_focal_id() -> None:
    module = "fair_envs.envs.harvest"
    try:
        fair_envs.register("Again-v0", module)
        assert "focal-Again-v0" not in gym.registry
        fair_envs.register("Again-v0", module, agents=True)
        assert "focal-Again-v0" in gym.registry
    finally:
        TABLE.pop("Again-v0")
        for name in ("Again-v0", "mo-Again-v0", "focal-Again-v0"):
            gym.registry.pop(name, None)
