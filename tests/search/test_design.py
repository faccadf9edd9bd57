"""A search gives the same trials on any number of workers and after an interruption, and compares on other seeds."""

import csv
import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("optuna")

import optuna

from fair_envs.evaluation.systems import play_system
from fair_envs.experiments.executors import FailedCellsError
from fair_envs.experiments.players import policy_named
from fair_envs.search import design as module
from fair_envs.search.design import Found, begun, design
from fair_envs.search.report import compare, price, save, trials_table
from fair_envs.search.settings import Search, read_toml
from fair_envs.search.trials import SETTINGS, Trials
from fair_envs.support.files import writing
from fair_envs.support.seeds import (
    HELD_OUT_SEEDS,
    LONG_TERM_SEEDS,
    SEARCH_EACH,
    SEARCH_SEEDS,
    SINGLE_SEEDS,
    TEAM_SEEDS,
    TEST_SEEDS,
    TRAINING_SEEDS,
)
from tests.envs.traffic_scenes import TOWN

RANGES = {"signal_period": "4:12", "human_dawdling": "0:0.6", "human_lanes": "|all"}


def search_for(**changes: Any) -> Search:
    settings: dict[str, Any] = {
        "env_id": "FairTraffic-v0",
        "parameters": TOWN,
        "ranges": RANGES,
        "policy": "shortest-time",
        "trials": 6,
        "batch": 3,
        "episodes": 4,
        "least_episodes": 2,
        "finalists": 2,
        "held_out": 4,
    }
    return Search(**{**settings, **changes})


def told(found: Found) -> Any:
    """Return everything that a search found, as plain data."""
    trials = [found.original, *found.trials, *found.finalists]
    return [
        (trial.number, dict(trial.parameters), {n: v.tolist() for n, v in trial.series.items()}, trial.stopped)
        for trial in trials
    ] + [episodes.returns.values.tolist() for episodes in found.held_out]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return design(search_for(), out=tmp_path_factory.mktemp("search") / "out")


def test_trials_are_what_their_configurations_give_on_common_seeds(found: Found) -> None:
    assert [trial.number for trial in found.trials] == list(range(6))
    for trial in [*found.trials, found.original]:
        rules = search_for().rules(**trial.parameters)
        episodes = len(trial.series["total_return"])
        played = play_system(rules, policy_named("shortest-time", rules), episodes=episodes, seed=SEARCH_SEEDS)
        np.testing.assert_array_equal(trial.series["total_return"], played.returns.values.sum(axis=1))


def test_the_first_trial_is_the_original_where_the_ranges_allow_it(found: Found) -> None:
    assert found.trials[0].parameters["human_lanes"] == ()
    assert 16 not in range(4, 13) and found.trials[0].parameters["signal_period"] != 16
    inside = search_for(ranges={"signal_period": "4:20"}, trials=1, batch=1)
    trials = Trials(inside, "sqlite://", name="one", me=None)
    trials.propose(0, 0)
    assert trials.claimed([0], most=1)[0].parameters == {"signal_period": 16}


def test_the_comparison_is_on_seeds_that_no_trial_met(found: Found) -> None:
    for episodes, own in zip(found.held_out, ({}, found.chosen.parameters), strict=True):
        rules = search_for().rules(**own)
        played = play_system(rules, policy_named("shortest-time", rules), episodes=4, seed=HELD_OUT_SEEDS)
        np.testing.assert_array_equal(episodes.returns.values, played.returns.values)
        assert set(episodes.without) == {"human_driven"}


def test_the_chosen_one_is_best_in_the_first_objective_when_played_longer(found: Found) -> None:
    assert len(found.finalists) <= 2
    values = [abs(trial.series["demographic_parity:human_driven"].mean()) for trial in found.finalists]
    assert values == sorted(values)
    assert all(len(trial.series["total_return"]) == 16 for trial in found.finalists)
    rules = search_for().rules(**found.chosen.parameters)
    fresh = play_system(rules, policy_named("shortest-time", rules), episodes=16, seed=SEARCH_SEEDS + 4)
    np.testing.assert_array_equal(found.chosen.series["total_return"], fresh.returns.values.sum(axis=1))
    first = sorted(found.trials, key=lambda trial: search_for().losses(trial.series)[0])
    assert {trial.number for trial in found.finalists} == {trial.number for trial in first[:2]}


def test_no_trial_of_the_front_is_beaten(found: Found) -> None:
    losses = {trial.number: np.array(search_for().losses(trial.series)) for trial in found.trials}
    front = {
        number
        for number, own in losses.items()
        if not any((other <= own).all() and (other < own).any() for other in losses.values())
    }
    configurations = {json.dumps(dict(trial.parameters)) for trial in found.trials if trial.number in front}
    assert {json.dumps(dict(trial.parameters)) for trial in found.front} == configurations


def test_processes_give_what_one_gives(found: Found, tmp_path: Path) -> None:
    assert told(design(search_for(), out=tmp_path / "two", jobs=2)) == told(found)


@pytest.mark.parametrize("sampler", ["nsga-ii", "random", "cma-es"])
def test_every_sampler_goes_on_where_it_was(sampler: str, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"sampler": sampler, "objectives": ["total_return"], "trials": 6, "batch": 2}
    changes |= {"ranges": {"human_dawdling": "0:0.6", "toll": "0:0.1"}, "finalists": 1, "held_out": 2, "episodes": 2}
    whole = design(search_for(**changes), out=tmp_path / "whole")
    for trials in (2, 4, 6):
        parts = design(search_for(**{**changes, "trials": trials}), out=tmp_path / "parts")
    assert told(parts) == told(whole)
    assert len({json.dumps(dict(trial.parameters)) for trial in whole.trials}) > 4


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_ray_gives_what_one_process_gives(found: Found, tmp_path: Path) -> None:
    assert told(design(search_for(), out=tmp_path / "ray", engine="ray", jobs=2)) == told(found)


class StopError(Exception):
    """Ends a search as if it were killed."""


@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_search_that_is_killed_goes_on_to_the_same_end(
    after: int, found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: Any = getattr(module, "run_cells")  # noqa: B009
    calls: list[None] = []

    def dying(*args: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) > after:
            raise StopError
        return played(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "run_cells", dying)
        with pytest.raises(StopError):
            design(search_for(), out=tmp_path / "out")
    done = {path.name for path in (tmp_path / "out" / "cells").iterdir()}
    assert done
    assert told(design(search_for(), out=tmp_path / "out")) == told(found)
    assert done < {path.name for path in (tmp_path / "out" / "cells").iterdir()}


def test_a_search_can_be_made_longer(found: Found, tmp_path: Path) -> None:
    short = design(search_for(trials=3), out=tmp_path / "out")
    assert len(short.trials) == 3
    assert told(design(search_for(), out=tmp_path / "out")) == told(found)


def test_a_search_made_longer_in_the_middle_of_a_batch_and_shorter_again_is_the_same(
    found: Found, tmp_path: Path
) -> None:
    for trials in (2, 4):
        parts = design(search_for(trials=trials), out=tmp_path / "out")
        assert [trial.number for trial in parts.trials] == list(range(trials))
        assert {trial.number for trial in [*parts.front, *parts.finalists]} <= set(range(trials))
    assert told(design(search_for(), out=tmp_path / "out")) == told(found)
    short = design(search_for(trials=2), out=tmp_path / "out")
    assert {trial.number for trial in [*short.trials, *short.front, *short.finalists]} <= {0, 1}
    with pytest.raises(ValueError, match="choose must be a trial that has been played, got 5"):
        design(search_for(trials=2), out=tmp_path / "out", choose=5)


def test_several_machines_share_a_database(found: Found, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    first = design(search_for(), out=tmp_path / "one", storage=url)
    second = design(search_for(), out=tmp_path / "two", storage=url)
    assert told(first) == told(second) == told(found)
    assert not (tmp_path / "one" / "trials.db").exists()
    with pytest.raises(ValueError, match="storage must be that of the search in"):
        design(search_for(), out=tmp_path / "one")
    with pytest.raises(ValueError, match="name must be that of the search in"):
        design(search_for(), out=tmp_path / "one", storage=url, name="another")


def test_machines_that_begin_at_once_propose_each_batch_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    search = search_for(sampler="random", trials=6, batch=6)
    alone = Trials(search, "sqlite://", name="town", me=None)
    alone.propose(0, 5)
    wanted = [trial.parameters for trial in alone.claimed(range(6), most=6)]

    def propose(me: str) -> list[Any]:
        trials = Trials(search, url, name="town", me=me)
        trials.propose(0, 5)
        return [trial.params for trial in trials._all()]

    with ThreadPoolExecutor(4) as machines:
        found = list(machines.map(propose, "abcd"))
    assert [len(one) for one in found] == [6] * 4
    last = Trials(search, url, name="town", me="last").claimed(range(6), most=6)
    assert [trial.parameters for trial in last] == wanted


def test_a_trial_that_another_machine_plays_is_left_until_it_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    here, there = (Trials(search_for(), url, name="town", me=me) for me in ("here", "there"))
    here.propose(0, 2)
    assert [trial.number for trial in here.claimed([0, 1, 2], most=2)] == [0, 1]
    assert [trial.number for trial in there.claimed([0, 1, 2], most=2)] == [2]
    assert [trial.number for trial in here.claimed([0, 1, 2], most=3)] == [0, 1]  # its own, as after a restart
    monkeypatch.setattr("fair_envs.search.trials.STALE", -1.0)
    assert [trial.number for trial in there.claimed([0, 1, 2], most=3)] == [0, 1, 2]
    values = {goal.name: np.ones(2) for goal in search_for().goals}
    for trials in (here, there):
        trials.tell(0, values)  # the second one says the same again
    assert not here.finished([0, 1]) and [trial.number for trial in there.done()] == [0]


SPARSE: dict[str, Any] = {"objectives": ["total_return"], "trials": 1, "batch": 1, "finalists": 1, "held_out": 2}
SPARSE |= {"episodes": 16, "least_episodes": 4, "precision": 0.0, "parameters": {**TOWN, "horizon": 10}}


@pytest.mark.parametrize(
    ("changes", "episodes", "said"),
    [
        ({"ranges": {"time_cost": "9|8"}}, 4, "significantly worse than the original after 4 episodes"),
        ({"ranges": {"time_cost": "9|8"}, "prune": False}, 16, ""),
        ({"ranges": {"time_cost": "0.01|0.02"}, "precision": 10.0}, 4, "precise enough after 4 episodes"),
        ({"ranges": {"time_cost": "0.01|0.02"}}, 16, ""),
    ],
)
def test_what_is_hopeless_or_precise_gets_fewer_episodes(
    changes: dict[str, Any], episodes: int, said: str, tmp_path: Path
) -> None:
    (trial,) = design(search_for(**{**SPARSE, **changes}), out=tmp_path / "out").trials
    assert (len(trial.series["total_return"]), trial.stopped) == (episodes, said)


def test_a_configuration_without_a_world_is_told_and_passed_over(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"ranges": {"human_lanes": "A1-A2|E1-E2"}, "trials": 4, "batch": 4, "sampler": "random"}
    found = design(search_for(**changes), out=tmp_path / "out")
    nowhere = [trial for trial in found.trials if trial.parameters["human_lanes"] == ("E1-E2",)]
    assert nowhere and all(trial.stopped.startswith("no such world: ") and not trial.series for trial in nowhere)
    save(found, compare(found), tmp_path / "out" / "result")


def test_another_choice_is_compared(found: Found, tmp_path: Path) -> None:
    out = tmp_path / "out"
    design(search_for(), out=out)
    assert design(search_for(), out=out, choose=2).chosen.number == 2
    with pytest.raises(ValueError, match="choose must be a trial that has been played, got 17"):
        design(search_for(), out=out, choose=17)


def test_the_chosen_one_costs_no_more_than_the_price(tmp_path: Path) -> None:
    world: dict[str, Any] = {**TOWN, "arrival_reward": 9.0}
    settings: dict[str, Any] = {**SPARSE, "objectives": ["demographic_parity"], "parameters": world, "episodes": 4}
    settings |= {"trials": 6, "batch": 6, "sampler": "random", "ranges": {"time_cost": "0:0.2"}}
    found = design(search_for(**settings), out=tmp_path / "out")
    totals = {trial.number: trial.series["total_return"].mean() for trial in found.trials}
    before = found.original.series["total_return"].mean()
    for share in (1 - sorted(totals.values())[k] / before + 1e-9 for k in (2, 4)):
        chosen = design(search_for(**settings, price=share), out=tmp_path / "out").chosen
        assert totals[chosen.number] >= before * (1 - share)
    dear = {**settings, "ranges": {"time_cost": "0.3:0.4"}, "price": 0.0}
    with pytest.raises(ValueError, match="price must let some configuration be chosen, got 0: the cheapest costs"):
        design(search_for(**dear), out=tmp_path / "dear")


def test_the_results_are_files_for_people_and_programs(found: Found, tmp_path: Path) -> None:
    rows, folder = compare(found), tmp_path / "result"
    save(found, rows, folder)
    config = json.loads((folder / "configuration.json").read_text())
    env = gym.make("FairTraffic-v0", **config)
    params = env.unwrapped.lanes.rules.params  # type: ignore[attr-defined]
    assert params == search_for().rules(**found.chosen.parameters).params
    with (folder / "trials.csv").open() as file:
        trials = list(csv.DictReader(file))
    assert [row["trial"] for row in trials] == ["original", *map(str, range(6))]
    assert float(trials[3]["total_return"]) == pytest.approx(found.trials[2].series["total_return"].mean())
    record = json.loads((folder / "comparison.json").read_text())
    total = record["comparison"]["total_return"]
    one, other = (episodes.returns.values.sum(axis=1).mean() for episodes in found.held_out)
    assert total["difference"]["value"] == pytest.approx(other - one)
    assert [row.name for row in rows][:2] == ["demographic_parity:human_driven", "total_return"]
    text = (folder / "report.md").read_text()
    assert price(rows) in text and "gym.make('FairTraffic-v0', **config)" in text
    assert (folder / "front.png").stat().st_size > 1000 and (folder / "importances.png").stat().st_size > 1000
    for shares in found.importances.values():
        assert set(shares) == set(RANGES) and sum(shares.values()) == pytest.approx(1)
    assert trials_table(found).row_count == 7


@pytest.mark.parametrize("file", ["search.json", "place.json"])
@pytest.mark.parametrize("kept", ["{", "[]", "{}", "without"])
def test_a_damaged_search_is_told(kept: str, file: str, tmp_path: Path) -> None:
    begun(search_for(), out=tmp_path)
    told = json.loads((tmp_path / file).read_text())
    (tmp_path / file).write_text(json.dumps(dict(list(told.items())[1:])) if kept == "without" else kept)
    with pytest.raises(ValueError, match=f"{file} is damaged"):
        begun(search_for(), out=tmp_path)


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_a_cluster_that_does_not_answer_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(ValueError, match="RAY_ADDRESS must name a Ray cluster"):
        design(search_for(), out=tmp_path / "out", engine="ray")
    assert not (tmp_path / "out").exists()


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"env_id": "FairTrains-v0"}, ValueError, "id must be one of"),
        ({"ranges": {}}, ValueError, "ranges must name at least one parameter"),
        ({"ranges": {"speed": "1:2"}}, TypeError, "range must name one of .*, got 'speed'"),
        ({"ranges": {"signal_period": "12:4"}}, ValueError, "range of signal_period must have its low end first"),
        ({"ranges": {"cars": "1:4"}}, ValueError, "cars must have a value or a range, got both"),
        ({"objectives": ["happiness"]}, ValueError, "objective must be one of .*'happiness'"),
        ({"objectives": ["gini", "gini"]}, ValueError, "objectives must differ"),
        ({"policy": "best"}, ValueError, "policy must be 'random', .*'best'"),
        ({"sampler": "grid"}, ValueError, "sampler must be one of 'tpe', 'cma-es', 'nsga-ii', 'random', got 'grid'"),
        ({"sampler": "cma-es"}, ValueError, "sampler 'cma-es' needs one objective"),
        (
            {
                "sampler": "cma-es",
                "objectives": ["total_return"],
                "ranges": {"human_lanes": "|all", "signal_period": "4:6:5"},
            },
            ValueError,
            "sampler 'cma-es' needs a range of several numbers, got human_lanes, signal_period",
        ),
        ({"trials": 0}, ValueError, "trials must be at least 1, got 0"),
        ({"episodes": 1}, ValueError, "episodes must be between 2"),
        ({"precision": -1.0}, ValueError, "precision must be at least 0"),
        ({"price": 1.5}, ValueError, "price must be between 0 and 1, got 1.5"),
        ({"parameters": {**TOWN, "human_share": 1.5}}, ValueError, "human_share must be between 0 and 1, got 1.5"),
        ({"parameters": {**TOWN, "human_lanes": ["A1-C1"]}}, ValueError, "human_lanes"),
    ],
)
def test_a_search_that_cannot_be_is_refused(changes: Mapping[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        search_for(**changes)


def test_a_search_whose_settings_another_machine_is_about_to_write_is_joined(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    study = optuna.create_study(storage=url, study_name="town", directions=["minimize", "maximize"])
    with ThreadPoolExecutor(1) as machine:
        joining = machine.submit(Trials, search_for(), url, name="town", me="b")
        time.sleep(0.7)
        study.set_user_attr(SETTINGS, search_for().as_dict())
        assert joining.result().done() == []


def test_a_search_that_another_process_goes_on_with_is_refused(tmp_path: Path) -> None:
    begun(search_for(), out=tmp_path)
    before = (tmp_path / "search.json").read_bytes()
    with writing(tmp_path), pytest.raises(ValueError, match="out must be a folder that no other process is writing"):
        design(search_for(trials=7), out=tmp_path)
    assert (tmp_path / "search.json").read_bytes() == before and not (tmp_path / "cells").exists()


def test_a_database_of_another_search_is_refused_and_left_as_it_was(found: Found, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    optuna.create_study(storage=url, study_name="mine")
    Trials(search_for(), url, name="town", me="here")
    before = (tmp_path / "shared.db").read_bytes()
    with pytest.raises(ValueError, match=r"name 'town', must be that of the same search.*: batch is 3 there, 2"):
        design(search_for(batch=2), out=tmp_path / "out", storage=url, name="town")
    with pytest.raises(ValueError, match="storage, under the name 'mine', must be that of the same search"):
        design(search_for(), out=tmp_path / "out", storage=url, name="mine")
    assert (tmp_path / "shared.db").read_bytes() == before and not (tmp_path / "out").exists()


def test_a_folder_of_another_search_is_refused(tmp_path: Path) -> None:
    search_for().save(tmp_path)
    with pytest.raises(ValueError, match="must be that of the same search, got another one: seed is 0 there, 1 here"):
        design(search_for(seed=1), out=tmp_path)


@pytest.mark.parametrize("url", ["nonsense", "sqlite:////nowhere/at/all.db", "oracle-of-delphi://x"])
def test_what_is_no_database_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"storage must be the URL of a database, got '{url}'"):
        design(search_for(), out=tmp_path / "out", storage=url)
    assert not (tmp_path / "out").exists()


def test_an_engine_that_there_is_not_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="engine must be one of processes, ray, got 'threads'"):
        design(search_for(), out=tmp_path / "out", engine="threads")
    assert not (tmp_path / "out").exists()


def test_a_policy_that_fails_says_so_and_the_search_can_go_on(tmp_path: Path) -> None:
    with pytest.raises(FailedCellsError, match="action must have shape"):
        design(search_for(policy="tests.search.test_design:wrong"), out=tmp_path / "out")


def wrong(observation: Any, uniforms: Any) -> Any:
    return np.zeros(1, int)


def test_settings_are_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "search.toml"
    path.write_text('env_id = "FairTraffic-v0"\ntrials = 7\n[ranges]\nsignal_period = { low = 4, high = 8 }\n')
    settings = read_toml(path)
    assert Search(**settings).ranges == {"signal_period": "4:8"} and Search(**settings).trials == 7
    path.write_text("trails = 7\n")
    with pytest.raises(ValueError, match=r"config must set env_id, .*, got trails"):
        read_toml(path)
    path.write_text("trials = \n")
    with pytest.raises(ValueError, match="config must be a TOML file"):
        read_toml(path)
    with pytest.raises(ValueError, match="config must be a TOML file"):
        read_toml(tmp_path / "none.toml")


def test_a_kept_search_is_read_as_it_was_and_refuses_a_policy_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = search_for(objectives=["gini"])
    search.save(tmp_path)
    assert Search.read(tmp_path) == search
    monkeypatch.setattr("fair_envs.search.settings.contents", lambda _: "another")
    with pytest.raises(ValueError, match="policy must be what it was when the search began"):
        Search.read(tmp_path)
    with pytest.raises(ValueError, match="out must be the folder of a search"):
        Search.read(tmp_path / "none")


def test_seeds_of_searches_are_nobody_elses() -> None:
    begins = [TEST_SEEDS, TRAINING_SEEDS, SINGLE_SEEDS, LONG_TERM_SEEDS, TEAM_SEEDS, SEARCH_SEEDS, HELD_OUT_SEEDS]
    assert sorted(set(begins)) == begins
    last = search_for(seed=2**20 - 1)
    assert last.first_seed + 5 * SEARCH_EACH // 8 < HELD_OUT_SEEDS and last.first_held_out < 2**63
