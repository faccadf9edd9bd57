"""The registry of methods: a method of one's own in a few lines, and what an environment without a method is told."""

import dataclasses
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from fair_envs import TABLE
from fair_envs.baselines import methods
from fair_envs.baselines.methods import Method, method_for, register
from fair_envs.cli import UNASKED
from fair_envs.support.parameters import checked
from fair_envs.tasks import rules_for, task_of
from tests.test_cli import Said, mistake
from tests.test_docs import FILE, ROOT

PAGE = (ROOT / "docs" / "adding-a-method.md").read_text()


@pytest.fixture
def example(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the module of the page's example; its import registers the method."""
    ((name, text),) = FILE.findall(PAGE)
    file = empty_folder / "packages" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    monkeypatch.syspath_prepend(empty_folder / "packages")
    monkeypatch.setattr(methods, "_registered", [])
    module = name.removesuffix(".py").replace("/", ".")
    yield importlib.import_module(module)
    for imported in (module, module.partition(".")[0]):
        del sys.modules[imported]


def test_a_method_of_ones_own_trains_resumes_and_evaluates(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (method,) = methods._registered
    world = ("-p", "horizon=12", "--total-timesteps", "60", "--seed", "3", "--no-progress")
    assert Said("train", "best-constant", "FairHiring-v0", *world, "--out", "whole").code == 0
    with monkeypatch.context() as patch:
        iterate, calls = example.BestConstant.iterate, []

        def interrupted(learner: Any) -> Any:
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return iterate(learner)

        patch.setattr(example.BestConstant, "iterate", interrupted)
        said = Said("train", "best-constant", "FairHiring-v0", *world, "--out", "part")
        assert said.code == 130 and "continue with: fair-envs train --out part --resume" in said.flat
    assert Said("train", "--out", "part", "--resume", "--no-progress").code == 0
    for name in ("metrics.csv", "config.json"):
        assert Path("part", name).read_text() == Path("whole", name).read_text()
    whole, part = (method.load(Path(name))[0] for name in ("whole", "part"))
    assert whole.earned.tolist() == part.earned.tolist() and whole.num_timesteps == 60
    said = Said("evaluate", "part", "--episodes", "3", "--no-progress")
    assert said.code == 0, said.text
    assert "reward per step" in said.text and "demographic_parity" in said.text
    (found,) = json.loads(Path("part", "evaluation-1", "evaluation.json").read_text())
    assert (found["about"]["episodes"], found["about"]["run"]["method"]) == (3, "best-constant")
    played = Said(
        "evaluate", "FairHiring-v0", "-p", "horizon=12", "--policy", "part", "--episodes", "3", "--no-progress"
    )
    assert played.code == 0, played.text


def test_a_method_of_ones_own_is_listed_with_its_options(example: Any) -> None:
    shown = Said("show", "methods").flat
    assert "best-constant: Takes the action" in shown
    number = re.search(r"\[(\d+)\] needs discrete actions", shown)
    assert number is not None and re.search(rf"best-constant( yes)+ \[{number[1]}\]", shown)
    assert "Random steps to learn from. [100; an integer at least 1]" in Said("train", "best-constant", "--help").flat
    expected = "method must support FairPursuit-v0, got 'best-constant', which needs discrete actions; try ppo, "
    assert expected in mistake("train", "best-constant", "FairPursuit-v0")
    with pytest.raises(ValueError, match="name must be new, got 'best-constant', which is already a method"):
        register(*methods._registered)


def test_the_types_of_the_fields_define_the_allowed_values(example: Any) -> None:
    for options, line in {
        ("--steps", "-1"): "--total-timesteps or --steps must be at least 1, got -1",
        ("--seed", "abc"): "--seed must be an integer, got 'abc'",
    }.items():
        assert mistake("train", "best-constant", "FairHiring-v0", *options) == line
    with pytest.raises(ValueError, match="steps must be at least 1, got -1"):
        example.Settings(env_id="FairHiring-v0", steps=-1)
    with pytest.raises(ValueError, match="parameters must contain only numbers, strings and booleans"):
        example.Settings(env_id="FairHiring-v0", parameters={"horizon": object()})


def test_the_default_of_every_setting_is_one_of_its_allowed_values() -> None:
    for method in methods.methods():
        kinds = get_type_hints(method.settings, include_extras=True)
        for one in method.fields():
            if one.name not in UNASKED:
                assert checked(one.name, one.default, kinds[one.name]) == one.default, (method.name, one.name)


def test_a_method_of_ones_own_module_is_imported_by_name(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, text),) = FILE.findall(PAGE)
    Path("own_method.py").write_text(text)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(methods, "_registered", [])
    named, small = ("--import", "own_method"), ("-p", "horizon=12", "--steps", "10", "--no-progress")
    said = Said(*named, "train", "best-constant", "FairHiring-v0", *small, "--out", "run")
    assert said.code == 0 and "measure it with: fair-envs --import own_method evaluate run" in said.flat, said.text
    assert "best-constant" in Said("show", "methods", *named).text
    methods._registered.clear()
    sys.modules.pop("own_method")
    expected = "run was trained with the method 'best-constant', which is not registered; import the module"
    for command in (("evaluate", "run"), ("train", "--resume", "--out", "run")):
        assert expected in mistake(*command)
        assert Said(*command, *named, "--no-progress").code == 0
        methods._registered.clear()
        sys.modules.pop("own_method")


def test_every_method_says_which_environments_it_supports() -> None:
    for method, reasons in methods.supported():
        assert set(reasons) == set(TABLE)
        assert not all(reasons.values()) or method.name == "none", method.name
        for env_id, why in reasons.items():
            if not why:
                assert method_for(method.name, env_id).name == method.name


def test_every_setting_of_every_method_has_a_sentence() -> None:
    for method in methods.methods():
        told = {one.name: one.metadata["help"] for one in method.fields()}
        assert all(text[0].isupper() and text.endswith(".") for text in told.values()), method.name
        assert {"steps", "seed"} <= set(told) and method.unused <= {f.name for f in fields_of(method)}


def fields_of(method: Method) -> Any:
    """Return all fields of a method's settings."""
    return dataclasses.fields(method.settings)


def test_settings_of_a_method_need_not_repeat_its_name() -> None:
    method = methods.named("fair-ppo")
    config = method.configured({"env_id": "FairLending-v0", "weight": 2.0})
    assert (config.algorithm, config.weight) == ("fair-ppo", 2.0)
    with pytest.raises(ValueError, match="algorithm must be 'fair-ppo' or left out, got 'ppo'"):
        method.configured({"env_id": "FairLending-v0", "algorithm": "ppo"})
    with pytest.raises(TypeError, match="given must hold settings of fair-ppo, got 'wieght'; did you mean 'weight'"):
        method.configured({"env_id": "FairLending-v0", "wieght": 2.0})
    with pytest.raises(TypeError, match="given must hold env_id, the id of an environment, got weight"):
        method.configured({"weight": 2.0})


def test_a_method_without_presets_trains_in_the_world_of_the_task() -> None:
    plain = dataclasses.replace(methods.named("ppo"), presets={}, preset=None)
    given = {"env_id": "FairPursuit-v0", "parameters": {"horizon": 20}}
    parameters = plain.configured(given).parameters
    assert parameters == task_of("FairPursuit-v0").merged({"horizon": 20}) != {"horizon": 20}


@pytest.mark.parametrize("method", methods.names())
def test_the_settings_of_every_method_name_it(method: str) -> None:
    env_id = next(name for name in TABLE if not methods.named(method).reason(name, rules_for(name), {}))
    assert methods.named(method).configured({"env_id": env_id}).algorithm == method


@pytest.mark.parametrize("env_id", ["FairHarvest-v0", "FairLending-v0"])
def test_recommended_settings_give_all_methods_the_same_networks(env_id: str) -> None:
    """Otherwise a comparison of methods would also be one of networks."""
    found = {}
    for method in methods.methods():
        trains = not method.reason(env_id, task_of(env_id).rules(), {})
        if trains and any(one.name == "activation" for one in method.fields()):
            settings = method.configured({"env_id": env_id})
            sizes = settings.net_arch if hasattr(settings, "net_arch") else (*settings.trunk, *settings.pi)
            found[method.name] = (settings.activation, tuple(sizes))
    assert {"ppo", "sb3-ppo", "fair-ppo", "lagrangian", "f-ppo", "cpo"} <= set(found)
    assert set(found.values()) == {("tanh", (64, 64))}


def test_the_published_code_of_f_ppo_has_relu() -> None:
    settings = methods.named("f-ppo").configured({"env_id": "FairLending-v0"}, preset="published")
    assert settings.activation == "relu"
