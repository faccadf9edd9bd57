"""The small rules of a search, each by itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("optuna")

import optuna

from fair_envs.experiments.systems import full_name, plain, system_cells
from fair_envs.metrics import Estimate
from fair_envs.search import design as module
from fair_envs.search.design import _Run, _Running, cost, design, distinct, front
from fair_envs.search.objectives import Objective
from fair_envs.search.report import Compared, compare, price, save, trials_table
from fair_envs.search.settings import Search
from fair_envs.search.trials import Trial, Trials, sampler
from tests.search.test_design import search_for

PARITY, TOTAL = "demographic_parity:human_driven", "total_return"


def trial(number: int, parity: Any, total: Any) -> Trial:
    return Trial(number, {"toll": float(number)}, {PARITY: np.array(parity), TOTAL: np.array(total)}, "")


def looking(search: Search, original: Trial) -> _Run:
    """Return what decides whether a configuration goes on, without anything to play."""
    run = object.__new__(_Run)
    run._search, run.original = search, original
    return run


def running(parity: Any, total: Any) -> _Running:
    return _Running(trial=trial(9, [], []), series={PARITY: np.array(parity), TOTAL: np.array(total)})


# Who gets how many episodes -------------------------------------------------------------------------------------------


def test_only_what_is_worse_in_every_objective_is_given_up() -> None:
    search = search_for(episodes=64, precision=0.0)
    luck = np.random.default_rng(0).normal(0, 0.1, 32)
    original = trial(-1, 1 + luck, 5 + luck)
    run = looking(search, original)
    worse, cheaper = running(3 + luck, 3 + luck), running(3 + luck, 9 + luck)
    assert (
        not run._goes_on(worse, [original])
        and worse.stopped == "significantly worse than the original after 32 episodes"
    )
    assert run._goes_on(cheaper, [original]) and cheaper.stopped == ""


def test_every_objective_must_be_precise() -> None:
    luck = np.random.default_rng(0).normal(0, 1.0, 64)
    run = looking(search_for(episodes=128, precision=0.2), trial(-1, luck, luck))
    even, odd = luck[:32], 10 * luck[:32]
    assert run._goes_on(running(even, odd), []) and run._goes_on(running(odd, even), [])
    assert not run._goes_on(running(even, even), [])


def test_the_rule_is_looser_the_fewer_looks_at_fewer_rivals() -> None:
    luck = np.random.default_rng(3).normal(0, 1.0, 32)
    rival = trial(1, np.zeros(32), np.zeros(32))
    slight = (luck - luck.mean()) / luck.std(ddof=1) / np.sqrt(32)  # standard error 1 / 32
    one = running(slight + 0.1, -(slight + 0.1))
    run = looking(search_for(episodes=64, least_episodes=32, precision=0.0), trial(-1, luck, luck))
    assert not run._goes_on(one, [rival])
    again = running(slight + 0.1, -(slight + 0.1))
    assert run._goes_on(again, [rival] * 20)


def test_rounds_double_on_seeds_that_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played, rounds = getattr(module, "run_cells"), []  # noqa: B009

    def noting(cells: Any, *args: Any, **options: Any) -> Any:
        rounds.append([(cell.seed, cell.episodes, cell.counterfactual) for cell in cells])
        return played(cells, *args, **options)

    monkeypatch.setattr(module, "run_cells", noting)
    changes: dict[str, Any] = {"episodes": 8, "least_episodes": 2, "precision": 0.0, "prune": False, "seed": 3}
    search = search_for(**changes, trials=1, batch=1, finalists=1)
    design(search, out=tmp_path / "out")
    first = search.first_seed
    begun = [(first, 8, False)], [(first, 2, False)], [(first + 2, 2, False)], [(first + 4, 4, False)]
    assert rounds[:4] == list(begun) and search.rounds == 3
    assert rounds[4] == [(first + 8, 32, False)] and rounds[-1] == [(search.first_held_out, 4, True)] * 2


def test_each_round_is_told_to_other_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps: list[int] = []
    monkeypatch.setattr(Trials, "stamp", lambda self, numbers: stamps.extend(numbers))
    changes: dict[str, Any] = {"episodes": 8, "least_episodes": 2, "precision": 0.0, "prune": False}
    design(search_for(**changes, trials=1, batch=1, finalists=1), out=tmp_path / "out")
    assert len(stamps) == 3


# Settings -------------------------------------------------------------------------------------------------------------


def test_samplers_are_what_they_are_called() -> None:
    kinds = {name: sampler(search_for(sampler=name), 0) for name in ("tpe", "nsga-ii", "random")}
    assert isinstance(kinds["tpe"], optuna.samplers.TPESampler)
    assert isinstance(kinds["random"], optuna.samplers.RandomSampler)
    assert isinstance(kinds["nsga-ii"], optuna.samplers.NSGAIISampler)
    assert kinds["nsga-ii"]._population_size == 2 * 3


def test_another_seed_is_another_search() -> None:
    def proposed(seed: int) -> Any:
        search = search_for(seed=seed, sampler="random")
        trials = Trials(search, "sqlite://", name="one", me=None)
        trials.propose(0, 2)
        return [one.parameters for one in trials.claimed(range(3), most=3)]

    assert proposed(0) == proposed(0) != proposed(1)
    one, other = search_for(), search_for(seed=1)
    assert other.first_seed - one.first_seed == other.first_held_out - one.first_held_out == 2**20


def test_twins_are_played_where_an_objective_needs_them() -> None:
    assert not search_for().counterfactual
    assert search_for(objectives=["counterfactual_fairness", "total_return"]).counterfactual


# Costs and comparisons ------------------------------------------------------------------------------------------------


def test_the_cost_is_a_share_of_what_there_was_over_the_same_episodes() -> None:
    original = trial(-1, [0, 0, 0, 0], [10.0, 10.0, 50.0, 50.0])
    assert cost(trial(1, [0, 0], [9.0, 9.0]), original) == pytest.approx(0.1)
    debts = trial(-1, [0, 0], [-10.0, -10.0])
    assert cost(trial(1, [0, 0], [-11.0, -11.0]), debts) == pytest.approx(0.1)
    assert cost(trial(1, [0, 0], [-9.0, -9.0]), debts) == pytest.approx(-0.1)
    nothing = trial(-1, [0, 0], [0.0, 0.0])
    assert cost(trial(1, [0, 0], [-1.0, 0.0]), nothing) == np.inf and cost(nothing, nothing) == 0


def test_the_price_is_told_as_a_share_of_the_size_of_what_there_was() -> None:
    def exactly(value: float) -> Estimate:
        return Estimate(value=value, low=value, high=value, n=9)

    rows = [Compared(name=TOTAL, original=exactly(-4.0), chosen=exactly(-6.0), difference=exactly(-2.0))]
    assert price(rows) == "Its price: the total return changes by -2.000 [-2.000, -2.000] (-50.0 %)."


def test_what_is_beaten_or_repeated_is_left_out() -> None:
    search = search_for(objectives=["demographic_parity", "total_return"])
    best, cheap, beaten, copy = (
        trial(0, [1.0], [1.0]),
        trial(1, [2.0], [3.0]),
        trial(2, [2.0], [1.0]),
        trial(3, [1.0], [1.0]),
    )
    undefined = trial(4, [np.nan], [9.0])
    nowhere = Trial(5, {"toll": 5.0}, {}, "no such world")
    found = front(search, [best, cheap, beaten, copy, undefined, nowhere])
    assert [one.number for one in found] == [0, 1, 3]
    assert [one.number for one in distinct(search, found)] == [0, 1]


def test_chance_decides_who_is_surely_worse() -> None:
    rival = np.zeros(20)
    values = np.linspace(-1, 2, 20)  # mean 0.5, standard error 0.21: worse with a chance of error of 0.014
    parity = Objective(name=PARITY)
    assert parity.significantly_worse(values, rival, alpha=0.02) and not parity.significantly_worse(
        values, rival, alpha=0.005
    )
    holes = np.where(np.arange(20) % 5 == 0, np.nan, 1.0 + values / 100)
    assert parity.significantly_worse(holes, rival)
    assert not parity.significantly_worse(np.full(4, np.nan), np.zeros(4))


def test_tables_and_files_mark_the_chosen_one_and_hold_its_errors(tmp_path: Path) -> None:
    import csv

    found = design(search_for(), out=tmp_path / "out")
    (first, *_) = trials_table(found).columns
    assert [str(cell) for cell in first.cells if "*" in str(cell)] == [f"{found.chosen.number}*"]
    save(found, compare(found), tmp_path / "result")
    with (tmp_path / "result" / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    values = found.trials[1].series[TOTAL]
    error = float(rows[2][f"{TOTAL} standard error"])
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)))
    assert float(rows[2]["human_dawdling"]) == found.trials[1].parameters["human_dawdling"]  # to the last digit


# Cells of systems -----------------------------------------------------------------------------------------------------


def test_cells_of_a_system_go_on_where_the_last_one_ended() -> None:
    cells = system_cells("FairTraffic-v0", {"cars": 4}, "shortest-time", episodes=100, seed=7, each=64)
    assert [(cell.seed, cell.episodes) for cell in cells] == [(7, 64), (71, 36)]
    own = system_cells("FairTraffic-v0", {}, "tests.search.test_design:wrong", episodes=1, seed=0)
    assert own[0].contents and not cells[0].contents


def test_parameters_and_runs_are_named_alike_however_they_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(plain({"b": (1, 2), "a": 3}).items()) == [("a", 3), ("b", [1, 2])]
    (tmp_path / "run").mkdir()
    (tmp_path / "random").mkdir()
    monkeypatch.chdir(tmp_path)
    assert full_name("run") == str(tmp_path / "run")
    assert [full_name(name) for name in ("random", "shortest-time", "a:b")] == ["random", "shortest-time", "a:b"]
