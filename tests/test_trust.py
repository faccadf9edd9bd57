"""Somebody else's run, search or database runs no code, and what is refused is named."""

import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")


import fair_envs
from fair_envs.baselines import methods, players
from fair_envs.baselines.pcn.training import load_pcn
from fair_envs.baselines.players import loaded
from fair_envs.baselines.runs import Run, read_weights, serialized
from fair_envs.baselines.team.curriculum import level_states
from fair_envs.baselines.training import load
from fair_envs.reproduction.experiment import WEIGHTS, Cell, read_policy
from fair_envs.support.imports import Permissions, permit, trusting
from tests.baselines.test_training import config
from tests.envs.traffic_scenes import TOWN
from tests.test_cli import Said, mistake

HIRING = "FairHiring-v0"
BIAS = {"horizon": 20, "reward_bias": "friend.evil:f"}


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


@pytest.fixture(autouse=True)
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the file that appears if an attack succeeds; a module ``friend.evil`` can be imported."""
    found = tmp_path / "owned"
    package = tmp_path / "importable" / "friend"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "evil.py").write_text(
        f"open({str(found)!r}, 'w').close()\ndef f():\n    return 0.0\ndef act(seen, luck):\n    return luck < 0.5\n"
    )
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    permit(Permissions())
    yield found
    for name in ("friend", "friend.evil"):
        sys.modules.pop(name, None)


def run_of(folder: Path, **settings: Any) -> Path:
    """Return the folder of a run that names a function to import, and has no checkpoint."""
    Run.create(folder, settings)
    return folder


RUNS: dict[str, dict[str, Any]] = {
    "pcn": {"algorithm": "pcn", "env_id": HIRING, "parameters": BIAS, "groups": ["gender"]},
    "ppo": {"algorithm": "ppo", "env_id": HIRING, "parameters": BIAS},
    "worlds": {"algorithm": "ppo", "env_id": "FairHarvest-v0", "worlds": [{}, BIAS]},
}


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize(
    "command",
    [("evaluate", "RUN"), ("train", "--resume", "--out", "RUN"), ("play", HIRING, "--policy", "RUN", "--frames", "1")],
)
def test_a_function_that_a_run_names_is_refused_by_its_name(
    kind: str, command: tuple[str, ...], tmp_path: Path, marker: Path
) -> None:
    run = run_of(tmp_path / "run", **RUNS[kind])
    said = mistake(*(str(run) if word == "RUN" else word for word in command))
    assert "config.json names the function 'friend.evil:f'" in said and "--trust" in said
    assert not marker.exists()


@pytest.mark.parametrize("read", [load, load_pcn, loaded])
def test_a_function_that_a_run_names_is_refused_in_python_too(read: Any, tmp_path: Path, marker: Path) -> None:
    run = run_of(tmp_path / "run", **RUNS["pcn" if read is load_pcn else "ppo"])
    with pytest.raises(ValueError, match=r"names the function 'friend\.evil:f'"):
        read(run)
    assert not marker.exists()


def test_a_trusted_runs_function_is_imported(tmp_path: Path, marker: Path) -> None:
    run = run_of(tmp_path / "run", **RUNS["pcn"])
    with trusting(), pytest.raises(FileNotFoundError, match=r"checkpoint\.pt"):
        load_pcn(run)
    assert marker.exists()


@pytest.mark.parametrize("place", [("--trust", "evaluate"), ("evaluate", "--trust")])
def test_the_option_that_trusts_may_stand_anywhere(place: tuple[str, str], tmp_path: Path, marker: Path) -> None:
    run = run_of(tmp_path / "run", **RUNS["pcn"])
    assert "checkpoint.pt" in mistake(*place, run)
    assert marker.exists()


# --------------------------------------------------------------------------------------------------- weights


def malicious(path: Path, marker: Path) -> None:
    """Write a file of PyTorch's, with a right checksum, that runs code where it is unpickled."""
    path.write_bytes(serialized({"rows": 0, "learner": Payload(marker)}))


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path: Path, marker: Path) -> None:
    run = Run.create(tmp_path / "run", config().as_dict())
    malicious(run.folder / "checkpoint.pt", marker)
    (run.folder / "metrics.json").write_text("[]")
    for read in (load, lambda folder: Run.open(folder)):
        with pytest.raises(ValueError, match=r"checkpoint\.pt must contain only tensors and plain data, .* refused"):
            read(run.folder)
    assert not marker.exists()


def test_a_function_that_only_a_checkpoint_names_is_not_imported(tmp_path: Path, marker: Path) -> None:
    run = Run.create(tmp_path / "run", config().as_dict())
    state = {"rows": 0, "unlogged": [], "functions": {"friend.evil:f": ""}, "learner": {}}
    (run.folder / "checkpoint.pt").write_bytes(serialized(state))
    (run.folder / "metrics.json").write_text("[]")
    with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged: it does not fit"):
        load(run.folder)
    assert not marker.exists()


def test_a_function_that_was_changed_since_the_checkpoint_is_refused(tmp_path: Path, marker: Path) -> None:
    run = run_of(tmp_path / "run", **RUNS["pcn"])
    state = {"rows": 0, "unlogged": [], "functions": {"friend.evil:f": "another file"}}
    (run / "checkpoint.pt").write_bytes(serialized(state))
    (run / "metrics.json").write_text("[]")
    with (
        trusting(),
        pytest.raises(ValueError, match=r"'friend\.evil:f' must be the function with which .* was started"),
    ):
        load_pcn(run)


def test_a_plain_pickle_is_no_checkpoint(tmp_path: Path, marker: Path) -> None:
    (tmp_path / "model.pt").write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(ValueError, match=r"model\.pt is damaged: its checksum is wrong or missing"):
        read_weights(tmp_path / "model.pt")
    assert not marker.exists()


def test_policies_of_a_curriculum_and_of_the_demonstration_run_no_code(tmp_path: Path, marker: Path) -> None:
    malicious(tmp_path / "model-1.2.pt", marker)
    with pytest.raises(ValueError, match=r"model-1\.2\.pt must contain only tensors"):
        level_states(tmp_path)
    malicious(tmp_path / WEIGHTS, marker)
    with pytest.raises(ValueError, match=rf"{WEIGHTS} must contain only tensors"):
        read_policy(Cell(training=config(), episodes=2), tmp_path)
    assert not marker.exists()


def test_only_one_file_of_this_package_reads_models_of_stable_baselines3() -> None:
    """They hold pickles; `baselines/players.py` reads those that a user names as a policy."""
    root = Path(__file__).parents[1]
    files = {path for name in ("fair_envs", "baselines", "wrappers") for path in (root / name).rglob("*.py")}
    files -= {root / "fair_envs" / "core" / "compilation.py"}  # its cache is guarded in other ways, see SECURITY.md
    files -= {root / "fair_envs" / "testing" / "contract" / "rules.py"}  # it pickles an environment and reads it back
    readers = re.compile(r"load_from_zip_file|(PPO|DDPG|kind)\.load\(|pickle\.load|weights_only=False")
    assert {path.name for path in files if readers.search(path.read_text("utf-8"))} == {"players.py"}


# --------------------------------------------------------------------------------------------------- searches


def kept_search(folder: Path, **settings: Any) -> Path:
    """Write the settings of a search."""
    pytest.importorskip("optuna")
    from fair_envs.search.settings import Search

    search = Search(env_id="FairTraffic-v0", parameters=TOWN, ranges={"signal_period": "4:12"}, trials=4, batch=2)
    search.save(folder)
    kept = json.loads((folder / "search.json").read_text())
    (folder / "search.json").write_text(json.dumps({**kept, **settings}))
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "friend.evil:act"},
        {"env_id": HIRING, "parameters": BIAS, "ranges": {"noise": "0:1"}},
        {"env_id": HIRING, "parameters": {}, "ranges": {"reward_bias": "men|friend.evil:f"}},
    ],
)
def test_a_function_that_a_search_names_is_refused_by_its_name(
    settings: dict[str, Any], tmp_path: Path, marker: Path
) -> None:
    folder = kept_search(tmp_path / "search", **settings)
    said = mistake("design", "--resume", "--out", folder)
    assert "search.json names the function 'friend.evil:" in said and "--trust" in said
    assert not marker.exists()


@pytest.mark.parametrize("changed", [{"env_id": "friend.evil:FairLending-v0"}, {"task": "friend.evil:FairLending-v0"}])
def test_a_module_that_a_stored_evaluation_names_is_not_imported(
    changed: dict[str, str], tmp_path: Path, marker: Path
) -> None:
    fair_envs.evaluate("FairLending-v0", "random", episodes=2, shuffles=0).save(tmp_path)
    file = tmp_path / "evaluation.json"
    (found,) = json.loads(file.read_text())
    for name, value in changed.items():
        (found if name in found else found["about"])[name] = value
    file.write_text(json.dumps([found]))
    with pytest.raises(ValueError, match=r"evaluation.json names the function 'friend\.evil:FairLending"):
        fair_envs.compare([file])
    assert not marker.exists()


def test_a_function_that_a_file_of_settings_names_is_refused_by_its_name(tmp_path: Path, marker: Path) -> None:
    pytest.importorskip("optuna")
    (tmp_path / "search.toml").write_text('policy = "friend.evil:act"\n[ranges]\nsignal_period = "4:12"\n')
    said = mistake("design", "FairTraffic-v0", "--config", "search.toml")
    assert "search.toml names the function 'friend.evil:act'" in said
    assert not marker.exists()


def test_a_state_of_cma_es_in_a_database_is_not_unpickled(tmp_path: Path, marker: Path) -> None:
    optuna = pytest.importorskip("optuna")
    from fair_envs.search.design import begun
    from fair_envs.search.settings import Search

    ranges, goals = {"signal_period": "4:12", "human_dawdling": "0:0.6"}, ("total_return",)
    search = Search(
        env_id="FairTraffic-v0",
        parameters=TOWN,
        ranges=ranges,
        objectives=goals,
        sampler="cma-es",
        trials=4,
        batch=2,
    )
    trials = begun(search, out=tmp_path / "search")
    trials.propose(0, 1)
    for number in (0, 1):
        trials.tell(number, {"total_return": np.array([1.0, 2.0])})
    evil = json.dumps(pickle.dumps(Payload(marker)).hex())
    with sqlite3.connect(tmp_path / "search" / "trials.db") as database:
        rows = [(k, name) for k in (1, 2) for name in ("cma:optimizer:0", "cma:n0_optimizer:0")]
        assert not database.execute("select * from trial_system_attributes where key like 'cma:%opt%'").fetchall()
        for k, name in rows:
            database.execute(
                "insert into trial_system_attributes (trial_id, key, value_json) values (?, ?, ?)", (k, name, evil)
            )
    begun(search, out=tmp_path / "search").propose(2, 3)
    assert not marker.exists()
    study = optuna.load_study(study_name="FairTraffic-v0", storage=f"sqlite:///{tmp_path / 'search' / 'trials.db'}")
    study.sampler = optuna.samplers.CmaEsSampler(seed=0, warn_independent_sampling=False)
    with pytest.raises(Exception):  # noqa: B017 - the payload works: Optuna's own sampler does run it
        study.ask({name: one.distribution() for name, one in search.dimensions.items()})
    assert marker.exists()


def test_a_database_of_other_parameters_than_were_searched_is_refused(tmp_path: Path, marker: Path) -> None:
    pytest.importorskip("optuna")
    from fair_envs.search.design import begun
    from fair_envs.search.settings import Search

    search = Search(env_id=HIRING, ranges={"reward_bias": "none|men"}, trials=2, batch=2)
    begun(search, out=tmp_path / "search").propose(0, 1)
    with sqlite3.connect(tmp_path / "search" / "trials.db") as database:
        evil = json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": ["friend.evil:f", "men"]}})
        database.execute("update trial_params set distribution_json = ?, param_value = 0", (evil,))
    trials = begun(search, out=tmp_path / "search")
    with pytest.raises(
        ValueError,
        match=r"damaged \(ValueError: .* range none\|men, got 'friend\.evil:f'\)",
    ):
        trials.claimed([0, 1], most=2)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("table", "column", "junk"),
    [
        ("study_directions", "direction", "x"),
        ("study_user_attributes", "value_json", "-1"),
        ("trials", "number", 7),
        ("trials", "state", "x"),
        ("trials", "datetime_start", "x"),
        ("trial_user_attributes", "value_json", "[1, 2]"),
        ("trial_params", "param_name", "x"),
        ("trial_params", "param_value", 1e308),
        ("trial_params", "distribution_json", "{}"),
        ("trial_values", "value", None),
    ],
)
def test_a_damaged_database_is_named(table: str, column: str, junk: Any, played: Path, tmp_path: Path) -> None:
    from fair_envs.search.design import begun

    shutil.copytree(played, tmp_path / "search")
    with sqlite3.connect(tmp_path / "search" / "trials.db") as database:
        database.execute(f"update {table} set {column} = ?", (junk,))
    with pytest.raises(ValueError, match=r"storage must hold a search .*trials\.db, which is damaged \(.*begin again"):
        trials = begun(hiring_search(), out=tmp_path / "search")
        assert trials.original is not None and trials.done()


def hiring_search() -> Any:
    """Return a search of two trials."""
    from fair_envs.search.settings import Search

    return Search(env_id=HIRING, ranges={"noise": "0:1"}, objectives=("total_return",), trials=2, batch=2)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a search of which all trials are done."""
    pytest.importorskip("optuna")
    from fair_envs.search.design import begun

    folder = tmp_path_factory.mktemp("searches") / "search"
    trials, series = begun(hiring_search(), out=folder), {"total_return": np.array([1.0, 2.0])}
    trials.keep_original(series)
    trials.propose(0, 1)
    for number in (0, 1):
        trials.tell(number, series)
    return folder


# ------------------------------------------------------------------------------------------------- processes


def test_workers_may_import_what_was_typed_and_nothing_else(tmp_path: Path) -> None:
    """A function of the current folder plays in worker processes, and evaluation finds it there."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "own.py").write_text("def left(seen, luck):\n    return (luck * 0).astype(int)\n")
    program = "import sys; sys.path.pop(0); from fair_envs.cli import main; main()"
    town = [word for name, value in TOWN.items() for word in ("-p", f"{name}={value}")]
    command = ["evaluate", "FairTraffic-v0", *town, "--policy", "own:left", "--episodes", "2", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=here, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "own:left" in run.stdout


def test_a_run_of_a_method_without_a_policy_is_no_policy_of_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", algorithm="pcn", env_id=HIRING, groups=["gender"])
    without = replace(methods.named("pcn"), policy=None)
    monkeypatch.setattr(players, "method_of", lambda run: without)
    said = mistake("evaluate", HIRING, "--policy", run)
    assert "policy must be a run whose policy plays by itself" in said
    assert f"fair-envs evaluate {run}" in said
    assert Said("list").code == 0
