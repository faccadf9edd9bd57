"""The study on long-term fairness: its cells, and what its report says of numbers that are made here."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs.baselines.ppo.long_term_training import LongTermTraining
from fair_envs.experiments.jobs import run_cell
from fair_envs.reproduction.hu2024 import report as hu2024
from fair_envs.reproduction.hu2024.jobs import AGENTS, LearnedCell, ScriptedCell, read_process
from fair_envs.reproduction.hu2024.processes import ENV_IDS, Series, World, series
from fair_envs.reproduction.hu2024.published import PLOTTED
from fair_envs.reproduction.hu2024.report import SCALES, SHIELDED, SUMMARIES, WORLDS, Arm, Report, cells, summarised

SMOKE = SCALES["smoke"]


# ------------------------------------------------------------------------------------------------------- cells


def test_every_agent_of_the_figures_is_in_the_study() -> None:
    study = cells(SMOKE)
    for world in WORLDS:
        names = {name for place, name in study if place == world}
        assert set(PLOTTED[world]) - {"CPO"} <= names and set(hu2024.DRAWN[world]) <= names


def test_each_agent_has_a_cell_for_each_seed_and_equal_scales_have_equal_keys() -> None:
    one, again, other = cells(SMOKE), cells(SMOKE), cells(replace(SMOKE, seeds=1))
    assert {len(group) for group in one.values()} == {SMOKE.seeds}
    keys = [cell.key for group in one.values() for cell in group]
    assert len(set(keys)) == len(keys) and keys == [cell.key for group in again.values() for cell in group]
    assert all(other[arm][0].key == group[0].key for arm, group in one.items())


def training(name: str, world: World = "lending", scale: str = "small") -> LongTermTraining:
    """Return an agent's first training."""
    cell: Any = cells(SCALES[scale])[world, name][0]
    settings: LongTermTraining = cell.training
    return settings


def test_what_is_tried_differs_from_f_ppo_in_what_its_name_says() -> None:
    usual = training("F-PPO")
    assert (usual.signals, usual.weight, usual.massaging, usual.delta) == ("sound", 1.0, "as_paper", 0.05)
    assert training("F-PPO-S") == replace(usual, algorithm="f-ppo-s")
    assert training("F-PPO, corrected") == replace(usual, massaging="corrected")
    assert training("F-PPO, weight 20") == replace(usual, weight=20.0, bonus_weight=20.0)
    assert training("F-PPO, known, ungated") == replace(usual, signals="known", gated=False)
    longer = training("F-PPO, 3 times the steps")
    assert longer == replace(usual, steps=3 * usual.steps)


@pytest.mark.parametrize("scale", SCALES)
def test_agents_follow_this_packages_measures_but_for_those_as_coded(scale: str) -> None:
    for (world, name), group in cells(SCALES[scale]).items():
        for cell in group:
            if not isinstance(cell, LearnedCell):
                continue
            settings, coded = cell.training, name.endswith(", as coded")
            assert (settings.signals == "as_coded", settings.scaling == "as_coded") == (coded, coded)
            assert ("profile" in settings.parameters) == coded
            assert settings.delta == 0.05 or world == "attention" or coded
            if coded and world == "lending":
                assert settings.parameters["feedback"] == "full"


def test_agents_as_coded_have_the_published_weights_and_tolerances() -> None:
    fair, regularised = (training(name, "attention") for name in ("F-PPO, as coded", "A-PPO, as coded"))
    assert (fair.weight, fair.bonus_weight, fair.delta) == (0.15, 0.15, 0.1)
    assert (regularised.value_weight, regularised.decrease_weight, regularised.delta) == (0.15, 0.15, 0.05)


def test_the_full_scale_has_the_published_networks_and_step_sizes() -> None:
    settings = training("F-PPO", "lending", "full")
    assert (settings.lanes, settings.n_steps, settings.learning_rate, settings.steps) == (1, 2000, 1e-5, 700_000)
    assert (settings.trunk, settings.batch_size, settings.delta) == ((256, 256), 64, 0.05)


@pytest.mark.parametrize("world", WORLDS)
def test_cells_run_and_are_read(world: World, tmp_path: Path) -> None:
    small = LongTermTraining(
        env_id=ENV_IDS[world], parameters={"horizon": 40}, steps=128, lanes=4, n_steps=16, batch_size=32
    )
    shared: dict[str, Any] = {"world": world, "episodes": 3, "steps": 40}  # one layout with the other tests
    name = next(iter(AGENTS[world]))
    learned = LearnedCell(training=small, most_probable=True, **shared)
    scripted = ScriptedCell(name=name, seed=1, **shared)
    trained, told = (read_process(run_cell(cell, tmp_path)) for cell in (learned, scripted))
    assert trained.seconds > 0 and trained.training["steps"].tolist() == [64, 128]
    assert trained.training["altered"].shape == (2,)
    assert not told.shielded and not told.training and told.seconds == 0
    names = set(series(world, told.open))
    for test in (trained.open, trained.shielded, trained.most_probable):
        assert set(series(world, test)) == names


# ------------------------------------------------------------------------------------------------------ report


def arm(world: World, **levels: float) -> Arm:
    """Return an arm whose numbers are constant in time: 1, or what is given by name, and vary a little by seed."""
    seeds, noise = 3, np.linspace(-0.01, 0.01, 3)
    times = np.array([0, 200, 400])
    names = {summary.series for summary in SUMMARIES[world].values()}
    tests = [
        {name: Series(times, np.full(3, levels.get(name.partition(",")[0], 1.0) + noise[k])) for name in names}
        for k in range(seeds)
    ]
    run = {
        "steps": np.array([10.0, 20.0]),
        "short": np.full(2, levels.get("training", 1.0)),
        "deviation": np.ones(2),
        "altered": np.zeros(2),
    }
    return Arm(tests, [{**run, "short": run["short"] + 0.001 * k} for k in range(seeds)], [1.0] * seeds)


def report(out: Path, **levels: dict[str, float]) -> Report:
    """Return a report in which every agent is alike but for those whose levels are given by name."""
    study = cells(SMOKE)
    arms = {(world, name): arm(world, **levels.get(name, {})) for world, name in study}
    for world, name in study:
        if name in ("F-PPO", "F-PPO-S", "F-PPO, shield"):
            arms[world, name + SHIELDED] = arm(world, **levels.get(name + SHIELDED, {}))
    return Report(name="smoke", scale=SMOKE, arms=arms, out=out)


def verdicts(found: Report) -> dict[str, str]:
    """Return the verdict of each claim by its text."""
    return {claim.text: claim.verdict for claim in found.claims()}


def test_a_lower_number_is_said_to_be_lower(tmp_path: Path) -> None:
    said = verdicts(report(tmp_path, **{"F-PPO": {"long": 0.5}}))
    lower = [verdict for text, verdict in said.items() if "long-term unfairness than PPO" in text]
    assert len(lower) == 6 and set(lower[:3]) == {"Holds (as plotted); Holds (truly)."}
    assert set(lower[3:]) == {"Undecided (as plotted); Undecided (truly)."}  # those as coded
    said = verdicts(report(tmp_path, **{"A-PPO": {"long": 0.5}}))
    assert said["In lending, F-PPO has less long-term unfairness than PPO and A-PPO."].startswith("Does not hold")


def test_equal_numbers_decide_nothing(tmp_path: Path) -> None:
    said = verdicts(report(tmp_path))
    text = "In epidemic, F-PPO has less short-term unfairness than PPO."
    assert said[text] == "Undecided (as plotted); Undecided (truly)."


def test_profit_counts_from_the_starting_cash(tmp_path: Path) -> None:
    text = "In lending, F-PPO's fairness costs little: at most 10 % of PPO's profit."
    cheap = {"PPO": {"utility": 11_000.0}, "F-PPO": {"utility": 10_950.0}}  # 5 % of the profit
    dear = {"PPO": {"utility": 11_000.0}, "F-PPO": {"utility": 10_800.0}}  # 20 %
    assert verdicts(report(tmp_path, **cheap))[text] == "Holds (cash)."
    assert verdicts(report(tmp_path, **dear))[text] == "Does not hold (cash)."


def test_the_ablation_compares_the_trainings_and_the_shield_the_tests(tmp_path: Path) -> None:
    said = verdicts(report(tmp_path, **{"F-PPO": {"training": 0.5}, "F-PPO behind its shield": {"short": 0.2}}))
    text = "Massaging lowers the short-term unfairness of the training (F-PPO against F-PPO-L)."
    assert said[text] == "Holds (lending); Holds (attention); Holds (epidemic)."
    assert said["In lending, massaging kept at evaluation lowers short-term unfairness."].count("Holds") == 0
    names = ("F-PPO", "F-PPO-S", "F-PPO, shield")
    said = verdicts(report(tmp_path, **{name + SHIELDED: {"short": 0.2} for name in names}))
    assert said["In lending, massaging kept at evaluation lowers short-term unfairness."].count("Holds") == 2


def test_what_was_tried_is_compared_with_learners_of_as_many_steps(tmp_path: Path) -> None:
    text = "In lending, a variant of F-PPO ends with a smaller true distance of the scores than PPO and A-PPO."
    longer = "F-PPO, 3 times the steps"
    said = verdicts(report(tmp_path, **{longer: {"long": 0.5}}))[text]
    assert f"Holds ({longer})" in said and said.count("Holds") == 1
    said = verdicts(report(tmp_path, **{longer: {"long": 0.5}, "PPO, 3 times the steps": {"long": 0.4}}))[text]
    assert f"Does not hold ({longer})" in said
    found = report(tmp_path)
    for name, level in ((longer + SHIELDED, 0.5), ("PPO, 3 times the steps", 0.4)):
        found.arms["lending", name] = arm("lending", long=level)  # type: ignore[index]
    assert f"Does not hold ({longer + SHIELDED})" in verdicts(found)[text]  # with that of as many steps


def test_a_summary_is_the_last_number_or_the_mean_from_a_time_on() -> None:
    course = Series(np.array([0, 100, 300, 400]), np.array([9.0, 9.0, 2.0, 4.0]))
    assert summarised(course, None) == 4
    assert summarised(course, 300) == 3
    assert summarised(course, 1000) == 4  # an episode that is shorter has its last look
    assert np.isnan(summarised(course._replace(values=np.full(4, np.nan)), 300))


def test_the_report_is_written_with_tables_figures_and_claims(tmp_path: Path) -> None:
    found = report(tmp_path / "study")
    path = found.write()
    text = path.read_text()
    assert "Made by `fair-envs reproduce hu2024 --scale smoke`" in text
    assert "(paper: 11660)" in text and "(paper: 2.55)" in text
    for picture in ("lending.png", "attention.png", "epidemic.png", "ablation.png"):
        assert (path.parent / picture).stat().st_size > 10_000 and f"({picture})" in text
    assert len(json.loads((path.parent / "claims.json").read_text())) == len(found.claims())
    assert "lending F-PPO" in json.loads((path.parent / "table.json").read_text())
