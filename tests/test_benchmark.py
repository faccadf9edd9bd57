"""What the table of speeds says, from measurements given or made in small; no test asserts a time."""

import itertools
import json
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fair_envs import TABLE, make_rules
from fair_envs.benchmark import loads
from fair_envs.benchmark import rows as benchmark
from fair_envs.benchmark.loads import Load
from fair_envs.benchmark.rows import QUICK, ROWS, Result, Row, Sample, find_row
from fair_envs.core import Lanes
from tests.helpers import LITTLE


def sample(value: float, *, others: float = 0.0) -> Sample:
    """Return a repeat of that value."""
    return Sample(value, by_cpu=math.nan, wall=1.0, cpu=1.0, others=others)


def result(*values: float, target: float | None = 10.0, at_least: bool = True, peer: str = "", **given: Any) -> Result:
    """Return a row with those repeats; with a peer, they are the ratios to it."""
    row = Row("made", "what", "unit", lambda seconds: lambda: sample(0), peer, target, at_least=at_least)
    samples = [sample(0)._replace(ratio=value) if peer else sample(value) for value in values]
    return Result(row=row, samples=samples, **given)


def test_the_median_decides_whether_a_target_is_met() -> None:
    assert result(9, 10, 11).met
    assert not result(9, 9.9, 1000).met


def test_the_target_of_a_comparison_is_a_ratio() -> None:
    assert result(9, 10, 11, peer="another").met
    assert not result(9, 9.9, 1000, peer="another").met


def test_an_upper_limit_must_stay_above_the_median() -> None:
    assert result(1, 9.9, 1000, at_least=False).met
    assert not result(10, at_least=False).met


def test_without_a_target_or_a_measurement_nothing_is_met_or_missed() -> None:
    assert result(1, target=None).met is None
    assert result(missing="no library").met is None


def test_the_spread_is_from_the_least_to_the_largest_repeat() -> None:
    assert result(3, 1, 2).spread() == (1, 3)
    assert result(3, 1, 2, peer="another").spread("ratio") == (1, 3)


def test_the_record_is_json_without_what_json_does_not_know() -> None:
    record = benchmark.record([result(1, 2, 3), result(missing="no library")], effort=QUICK)
    first, second = json.loads(json.dumps(record, allow_nan=False))["rows"]
    assert (first["value"], first["low"], first["high"], len(first["repeats"])) == (2, 1, 3, 3)
    assert (second["value"], second["missing"], second["repeats"]) == (None, "no library", [])


def test_the_record_names_the_machine_and_the_versions() -> None:
    record = benchmark.record([], effort=QUICK)
    assert record["machine"]["cores"] >= 1
    assert {"python", "numba", "numpy"} <= set(record["versions"])


def test_a_busy_machine_and_a_missing_library_are_told() -> None:
    busy = Result(row=result().row, samples=[sample(1, others=1.5)])
    (about_others,) = benchmark.notes([busy, result(5)])
    assert "1.5 of" in about_others
    (about_library,) = benchmark.notes([result(missing="needs torch"), result(5)])
    assert "made" in about_library
    assert "not measured; needs torch" in about_library
    (about_repeats,) = benchmark.notes([result(5, 6, missing="no cores")])
    assert "2 repeats only; no cores" in about_repeats


@pytest.mark.parametrize(
    ("number", "text"), [(412_345.6, "412,346"), (1.5049, "1.5"), (0.0893, "0.0893"), (math.nan, "-")]
)
def test_numbers_are_shown_with_about_three_digits(number: float, text: str) -> None:
    assert benchmark.figure(number) == text


def test_the_table_has_a_line_for_each_row() -> None:
    shown = benchmark.table([result(1), result(missing="no library")])
    assert shown.row_count == 2


def test_no_target_depends_on_the_speed_of_the_machine() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    for row in ROWS:
        if row.target is not None and not row.peer:
            assert row.unit in ("seeds", "trainings")


def test_every_promise_has_a_row_of_its_own() -> None:
    promised = {row.name: row.target for row in ROWS if row.target is not None}
    for env_id in TABLE:
        assert promised.pop(f"{env_id.removesuffix('-v0')} ppo") == 1.3
    assert promised == {
        "lending vector": 1.5,
        "lending single": 0.6,
        "harvest single": 0.35,
        "harvest parallel": 0.45,
        "training": 1.7,
        "lending seeds, sb3-ppo": 3.5,
        "threads": 1.5,
        "pcn race": 2.5,
        "pcn front": 0,
        "lending f-ppo, 8": 0.8,
        "lending f-ppo, 1": 0.8,
        "attention f-ppo, 8": 0.8,
        "attention f-ppo, 1": 0.8,
        "epidemic f-ppo, 8": 0.8,
        "epidemic f-ppo, 1": 0.8,
        "pursuit arrays": 2.7,
        "team update": 1,
    }
    assert [row.name for row in ROWS if not row.at_least] == [
        "lending seeds, ppo",
        "lending seeds, sb3-ppo",
        "harvest seeds, ppo",
    ]


def test_every_environment_is_compared_with_cartpole() -> None:
    for name in benchmark.NAMES.values():
        for kind in ("rules", "vector", "single"):
            assert "CartPole" in find_row(f"{name} {kind}").peer


def test_fronts_that_only_the_other_found_are_not_hidden_by_a_median() -> None:
    samples = [Sample(value, 0.0, 1.0, 1.0, 0.0) for value in (-1, -1, 0, 0, 0)]
    assert Result(row=find_row("pcn front"), samples=samples).met is False
    assert Result(row=find_row("pcn front"), samples=[*samples, *(s._replace(value=1) for s in samples[:2])]).met


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'speed'"):
        find_row("speed")


# ------------------------------------------------------------------------------------------------- measuring


def counting(steps: int) -> tuple[Load, list[int]]:
    """Return a load that notes how often it was asked to run."""
    asked: list[int] = []
    return Load(asked.append, steps), asked


def test_a_rate_is_steps_over_seconds() -> None:
    load, asked = counting(steps=10)
    measured = benchmark.rate(1e-6, load=lambda: load)()
    assert measured.value * measured.wall == pytest.approx(10 * asked[-1])
    assert measured.by_cpu * measured.cpu == pytest.approx(10 * asked[-1])


def test_a_repeat_runs_as_often_as_fills_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def run(times: int) -> None:
        nonlocal now
        now += 0.01 * times

    monkeypatch.setattr(benchmark, "time", SimpleNamespace(perf_counter=lambda: now))
    assert benchmark.repeats_lasting(Load(run, 1), 2.0) == 200


def test_a_stopwatch_counts_the_work_of_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, own, all_processes = iter([0.0, 2.0]), iter([1.0, 2.0]), iter([100.0, 104.0])
    monkeypatch.setattr(benchmark, "time", SimpleNamespace(perf_counter=partial(next, clock)))
    monkeypatch.setattr(benchmark, "cpu_seconds", partial(next, own))
    monkeypatch.setattr(benchmark, "busy_seconds", partial(next, all_processes))
    measured = benchmark.Stopwatch().sample(steps=10)
    assert measured == Sample(value=5.0, by_cpu=10.0, wall=2.0, cpu=1.0, others=1.5)


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (partial(benchmark.batch_load, 4), 4),
    ],
)
def test_a_load_runs_past_the_end_of_episodes(
    make: Callable[[], Load], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "WORLD", LITTLE)
    load = make()
    load.run(2 * LITTLE["horizon"] + 1)
    assert load.steps == steps


def test_learning_loads_count_the_steps_of_all_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(benchmark, "WORLD", LITTLE)
    monkeypatch.setattr(benchmark, "BATCH", 2)
    monkeypatch.setattr(benchmark, "MINIBATCH", 256)
    for make in (benchmark.rollout_load, benchmark.training_load):
        load = make()
        load.run(1)
        assert load.steps == 64 * 2 * 8


@pytest.mark.parametrize("env_id", benchmark.PROCESSES.values())
def test_loads_of_processes_run(env_id: str) -> None:
    pytest.importorskip("stable_baselines3")
    played = (loads.batch(env_id), loads.vector(env_id), loads.single(env_id), loads.measures(env_id, lanes=1))
    for load, steps in zip(played, (64, 64, 1, 1), strict=True):
        load.run(3)
        assert load.steps == steps


def test_loads_of_peers_run() -> None:
    for load, steps in ((loads.cartpole(), 1), (loads.cartpoles(), 64), (loads.dictionaries("FairPursuit-v0"), 1)):
        load.run(600)
        assert load.steps == steps
    one = loads.one_with_objectives()
    one.run(3)
    assert one.steps == 1


def test_seeds_at_once_are_compared_with_one() -> None:
    pytest.importorskip("stable_baselines3")
    found = benchmark.seeds_together(0.01, env_id="FairLending-v0", alone_by="sb3-ppo")()
    assert found.value > 0
    assert math.isnan(found.ratio)


def test_a_load_of_pettingzoo_runs_past_the_end_of_episodes() -> None:
    load = loads.parallel("FairPursuit-v0")
    load.run(501)
    assert load.steps == 1


def test_the_world_of_whole_arrays_is_the_rules() -> None:
    rules = make_rules("FairPursuit-v0")
    lanes, arrays = Lanes(rules, 5), loads.WholeArrays(rules.params, 5)
    lanes.seed(0)
    lanes.restart()
    lanes.records["position"] = arrays.position
    lanes.records["position"][0, 0] = arrays.position[0, 0] = arrays.position[0, 3] + 0.01  # after it
    chance = np.random.default_rng(1)
    for k in range(20):
        going = np.flatnonzero(lanes.records["over"] == 0)
        actions = chance.uniform(-1, 1, (5, 3, 2))
        actions[0, 0] = -1
        step = lanes.advance(actions, mask=lanes.records["over"] == 0)
        seen, reward, caught = arrays.step(actions)
        np.testing.assert_allclose(seen[going], step.observation[going], atol=1e-5)
        np.testing.assert_array_equal(reward[going], step.reward[going])
        np.testing.assert_array_equal(caught[going], step.facts["action"][going] == 1)
        assert bool(step.terminated[0]) == (k == 0)


def test_thresholds_are_found_for_many_worlds_at_a_time() -> None:
    pytest.importorskip("stable_baselines3")
    load = loads.equal_opportunity()
    load.run(1)
    assert load.steps == 1000


def test_the_first_of_two_loads_is_compared_with_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "repeats_lasting", lambda load, seconds: 1)
    seconds = {"one": benchmark.Taken(wall=4.0, cpu=3.0), "other": benchmark.Taken(wall=2.0, cpu=3.0)}
    monkeypatch.setattr(benchmark, "clocked", lambda load, times: seconds[load.run(times)])
    both = Load(lambda times: "one", 1), Load(lambda times: "other", 1)
    found = benchmark.against(1.0, loads=lambda: both)()
    assert (found.value, found.by_cpu) == (1 / 4, 1 / 3)
    assert (found.ratio, found.ratio_by_cpu) == (0.5, 1.0)


def test_f_ppo_and_ppo_learn_from_as_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(loads, "SAMPLES", 64)
    one, other = loads.learners("FairLending-v0", lanes=4)
    assert one.steps == other.steps == 64


def test_a_team_and_separate_learners_update_all_agents() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from fair_envs.benchmark.peers import together_and_separate

    together, separate = together_and_separate(lanes=2, batch_size=4)
    assert len(separate) == together.agents == 3
    assert all(isinstance(model, sb3.DDPG) for model in separate)
    shapes = {tuple(part.shape) for part in separate[0].critic.parameters()}
    assert {(size[1], size[0]) for size in together.policy.critic.sizes} <= shapes
    one, other = loads.team_updates()
    for load in (one, other):
        load.run(1)
        assert load.steps == 1


def test_a_training_of_a_team_counts_the_steps_of_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    from fair_envs.baselines.team.ddpg import DDPG

    updates: list[int] = []
    monkeypatch.setattr(DDPG, "update", lambda self, batch: updates.append(len(batch.rewards)))
    load = loads.team_training()
    load.run(2)
    assert load.steps == 80
    assert updates == [3, 3]


def test_two_threads_are_compared_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "WORLD", LITTLE)
    assert benchmark.gain(1e-3, lanes=4)().ratio > 0
    assert benchmark.machine_gain(1e-3)().ratio > 0


def test_looks_count_only_while_the_machine_has_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    given = itertools.cycle([1.9, 1.9, 1.0, 1.9, 1.9, 1.0])  # before and after each look
    seconds = itertools.cycle([2.0, 1.0, 9.0, 1.0, 9.0, 1.0])  # of one thread and of two in each look
    monkeypatch.setattr(benchmark, "WORLD", LITTLE)
    monkeypatch.setattr(benchmark, "gain_of_arithmetic", lambda _: partial(next, given))
    repeat = benchmark.gain(1.0, lanes=4, own_cores=True)
    monkeypatch.setattr(benchmark, "clocked", lambda load, times: benchmark.Taken(next(seconds), 1.0))
    assert repeat().ratio == 2.0


def test_a_machine_without_two_cores_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "WORLD", LITTLE)
    monkeypatch.setattr(benchmark, "gain_of_arithmetic", lambda _: lambda: 1.0)
    with pytest.raises(TimeoutError, match="two cores"):
        benchmark.gain(1e-3, lanes=4, own_cores=True)()


# ----------------------------------------------------------------------------------------- in a fresh process


def test_a_row_is_measured_in_a_fresh_process_and_each_repeat_is_told() -> None:
    told: list[int] = []
    measured = benchmark.run_row(find_row("harvest memory"), QUICK, each=lambda: told.append(1))
    assert measured.median() == make_rules(benchmark.ENV_ID).dtype.itemsize
    assert len(told) == len(measured.samples) == QUICK.repeats


def test_a_row_that_fails_shows_its_error() -> None:
    with pytest.raises(RuntimeError, match="row must be one of"):
        benchmark.run_row(result().row, QUICK)


def test_a_missing_library_is_reported_not_raised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepare(seconds: float) -> Callable[[], Sample]:
        raise ImportError("needs torch")

    monkeypatch.setattr(benchmark, "ROWS", (Row("learner", "what", "unit", prepare),))
    benchmark.report("learner", "5", "0.1")
    assert json.loads(capsys.readouterr().out) == {"missing": "needs torch"}


def test_a_child_process_imports_this_very_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    child = benchmark.child_environment(OMP_NUM_THREADS="2")
    root = str(Path(benchmark.__file__).parents[2])
    assert child["PYTHONPATH"].split(os.pathsep) == [root, "elsewhere"]
    assert child["OMP_NUM_THREADS"] == "2"
