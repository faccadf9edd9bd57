"""Trainings for long-term fairness: from a task, into a folder, resumed to the bit, and from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch as th

from fair_envs.baselines import tasks
from fair_envs.baselines.ppo.lagrangian import PPOLagrangian
from fair_envs.baselines.ppo.long_term_evaluation import evaluate_long_term, play_long_term
from fair_envs.baselines.ppo.long_term_training import (
    LongTermAlgorithm,
    LongTermTraining,
    load_long_term,
    long_term_settings,
    make_long_term,
    train_long_term,
)
from fair_envs.baselines.ppo.massaging import MassagingSchedule
from fair_envs.baselines.ppo.regularised import APPO, FPPO, Regularised
from fair_envs.core import Rules
from fair_envs.tasks import TASKS, Task
from tests.baselines.interruptions import Interrupt
from tests.baselines.loans import HIRING, Accept, Age, Granted, hiring
from tests.baselines.small import policy_weights
from tests.baselines.test_training import assert_same_state, rows_without_clock
from tests.test_cli import Said, missing_options, mistake

pytestmark = pytest.mark.usefixtures("empty_folder")

ROLLOUT = 5 * 4  # steps: 5 of each of 4 lanes; episodes have 7 steps
ALGORITHMS = get_args(LongTermAlgorithm)


def short(rules: Rules, lanes: int) -> Granted:
    """Return a measure; the rules could say of how many groups."""
    assert rules.name == "hiring"
    return Granted(lanes)


def long(rules: Rules, lanes: int) -> Age:
    """Return a measure."""
    return Age(lanes)


class Scheduled(Accept):
    """Alters actions by a published schedule."""

    schedule = MassagingSchedule(initial=0.2, start_after=1, rollouts=2)


def massager(env: Any) -> Scheduled:
    """Return what alters actions."""
    return Scheduled()


TASK = Task(env_id=HIRING, short=short, long=long, massager=massager)
PUBLISHED = {"": {"trunk": (16,), "pi": (8,), "vf": (8,)}, "f-ppo": {"weight": 1.12}}


@pytest.fixture(autouse=True)
def task(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let job interviews have a task with a massager, and published settings."""
    monkeypatch.setitem(TASKS, HIRING, TASK)
    monkeypatch.setitem(tasks.PUBLISHED, HIRING, PUBLISHED)
    monkeypatch.setitem(tasks.RECOMMENDED, HIRING, {"n_epochs": 3})
    yield


def config(**changes: Any) -> LongTermTraining:
    """Return a small training of six rollouts."""
    default: dict[str, Any] = {
        "env_id": HIRING,
        "parameters": {"horizon": 7},
        "steps": 6 * ROLLOUT,
        "lanes": 4,
        "n_steps": 5,
        "batch_size": 10,
        "n_epochs": 2,
        "learning_rate": 0.01,
        "trunk": (8,),
        "pi": (4,),
        "vf": (4,),
    }
    return LongTermTraining(**{**default, **changes})


# ---------------------------------------------------------------------------------------------------- learners


@pytest.mark.parametrize(
    ("algorithm", "kind", "massaged", "weights"),
    [
        ("ppo", Regularised, False, None),
        ("a-ppo", APPO, False, (0.25, 0.25)),
        ("f-ppo", FPPO, True, (1.0, 1.0)),
        ("f-ppo-l", FPPO, False, (1.0, 1.0)),
        ("f-ppo-s", FPPO, True, (0.0, 0.0)),
        ("ppo-lagrangian", PPOLagrangian, False, None),
    ],
)
def test_each_algorithm_is_its_learner(algorithm: Any, kind: Any, massaged: bool, weights: Any) -> None:
    model: Any = make_long_term(config(algorithm=algorithm))
    assert type(model) is kind
    assert (model.massager is not None) is massaged
    assert getattr(model, "weights", None) == weights


def test_the_measures_know_the_environments_parameters() -> None:
    model: Any = make_long_term(config(parameters={"horizon": 3}))
    assert model.short.rules.params.horizon == 3


def test_the_published_settings_are_those_of_the_table() -> None:
    published = long_term_settings(HIRING, preset="published")
    assert (published.trunk, published.weight, published.bonus_weight) == ((16,), 1.12, 1.0)
    assert (published.scaling, published.lanes, published.learning_rate) == ("as_coded", 1, 1e-5)
    assert long_term_settings(HIRING, preset="published", algorithm="a-ppo", seed=3).weight == 1.0
    assert long_term_settings(HIRING).n_epochs == 3


def test_two_rollouts_of_the_schedule_may_pass_in_one() -> None:
    schedule = make_long_term(config(massaging_pace=2.0)).massaging_schedule
    assert callable(schedule)
    assert [schedule(k) for k in range(3)] == [None, 0.2, 0.2]


# ------------------------------------------------------------------------------------------------- trainings


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(algorithm: Any, tmp_path: Path) -> None:
    settings = config(algorithm=algorithm)
    whole: Any = train_long_term(settings, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_long_term(settings, out=tmp_path / "part", callback=Interrupt(18))  # within an episode
    with pytest.raises(KeyboardInterrupt):
        train_long_term(settings, out=tmp_path / "part", resume=True, callback=Interrupt(6))
    resumed: Any = train_long_term(settings, out=tmp_path / "part", resume=True)
    assert_same_state(whole, resumed)
    assert rows_without_clock(tmp_path / "part") == rows_without_clock(tmp_path / "whole")
    for one, other in zip(whole.get_extra_state(), resumed.get_extra_state(), strict=True):
        assert th.equal(one.nan_to_num(-1), other.nan_to_num(-1))
    row = rows_without_clock(tmp_path / "whole")[-1]
    assert {"rollout/reward", "train/short_term", "train/long_term"} <= set(row)


@pytest.mark.parametrize("env_id", ["FairLending-v0", "FairAttention-v0", "FairEpidemic-v0"])
def test_a_studys_own_measures_are_resumed_within_episodes(env_id: str, tmp_path: Path) -> None:
    own = {"FairLending-v0": {"horizon": 130, "window": 60}, "FairAttention-v0": {"horizon": 20, "window": 7}}
    n_steps = 48 if env_id == "FairLending-v0" else 8  # a bank tells rates of ten people at least
    rollout = {"n_steps": n_steps, "batch_size": 16, "steps": n_steps * 32, "massaging_pace": 200}
    parameters = own.get(env_id, {"horizon": 20})  # no multiple of a rollout's steps
    settings = config(env_id=env_id, algorithm="f-ppo", parameters=parameters, **rollout)
    whole: Any = train_long_term(settings, out=tmp_path / "whole")
    for again, within in enumerate((3.5, 2.6)):
        with pytest.raises(KeyboardInterrupt):
            callback = Interrupt(int(within * n_steps))
            train_long_term(settings, out=tmp_path / "part", resume=bool(again), callback=callback)
    resumed: Any = train_long_term(settings, out=tmp_path / "part", resume=True)
    assert rows_without_clock(tmp_path / "part") == rows_without_clock(tmp_path / "whole")
    assert_same_state(whole, resumed)
    for one, other in zip(whole.get_extra_state(), resumed.get_extra_state(), strict=True):
        assert np.array_equal(one.numpy(), other.numpy(), equal_nan=True)
    assert max(row.get("train/massaged", 0) for row in rows_without_clock(tmp_path / "whole")) > 0


def test_equal_trainings_are_equal_and_seeds_differ() -> None:
    one, two, other = (policy_weights(train_long_term(config(seed=seed))) for seed in (1, 1, 2))
    assert np.array_equal(one, two) and not np.array_equal(one, other)


def test_a_run_is_loaded_with_its_settings(tmp_path: Path) -> None:
    model = train_long_term(config(), out=tmp_path / "run")
    loaded, settings = load_long_term(tmp_path / "run")
    assert settings == config()
    assert np.array_equal(policy_weights(model), policy_weights(loaded))
    again = FPPO.load(tmp_path / "run" / "model.zip", device="cpu")
    assert np.array_equal(policy_weights(model), policy_weights(again))


# ------------------------------------------------------------------------------------------------ evaluation


def test_test_episodes_are_whole_and_both_shielded_and_not() -> None:
    model: Any = train_long_term(config())
    found = evaluate_long_term(model, config(), episodes=6, seed=3)
    assert list(found) == ["unshielded", "shielded"]
    for played in found.values():
        assert played.steps.tolist() == [7] * 6
        assert played.long.tolist() == [4.0] * 6 and played.last_long.tolist() == [7.0] * 6
    assert (found["unshielded"].massaged == 0).all() and found["shielded"].massaged.max() > 0
    assert found["shielded"].short.mean() > found["unshielded"].short.mean()  # more is granted
    again = evaluate_long_term(model, config(), episodes=6, seed=3)
    assert again["shielded"].rewards.tolist() == found["shielded"].rewards.tolist()


def test_without_a_massager_there_is_no_shield() -> None:
    model: Any = make_long_term(config(algorithm="f-ppo-l"))
    assert list(evaluate_long_term(model, config(), episodes=2, seed=3)) == ["unshielded"]
    with pytest.raises(ValueError, match="model must have a massager, got none"):
        play_long_term(model, hiring(), shield=True)


# -------------------------------------------------------------------------------------------- command line

OPTIONS = ("--no-progress", "--steps", 40, "--lanes", 4, "--n-steps", 5, "--batch-size", 10, "--param", "horizon=7")


@pytest.mark.parametrize("algorithm", ["a-ppo", "f-ppo"])
def test_a_run_is_trained_resumed_and_evaluated(algorithm: str, tmp_path: Path) -> None:
    said = Said("train", algorithm, HIRING, *OPTIONS, "--pi", "4", "--out", "run")
    assert said.code == 0, said.text
    kept = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (kept["algorithm"], kept["pi"], kept["n_epochs"]) == (algorithm, [4], 3)  # 3: as its study says
    said = Said("train", "--out", "run", "--resume", "--no-progress")
    assert said.code == 0, said.text
    said = Said("evaluate", "run", "--episodes", 3)
    assert said.code == 0, said.text
    report = json.loads((tmp_path / "run" / "evaluation-1" / "report.json").read_text())
    played = list(dict.fromkeys(row["played"] for row in report["measured"]))
    assert played == ["without massaging", "with massaging"][: 2 if algorithm == "f-ppo" else 1]
    assert "long-term at the end" in said.text and "7 [7, 7]" in said.flat


def test_the_published_settings_may_be_asked_for(tmp_path: Path) -> None:
    said = Said("train", "f-ppo", HIRING, *OPTIONS, "--preset", "published", "--out", "run", "--delta", "0.005")
    assert said.code == 0, said.text
    kept = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (kept["weight"], kept["delta"], kept["lanes"]) == (1.12, 0.005, 4)


def test_every_setting_is_an_option_with_its_meaning() -> None:
    said = Said("train", "f-ppo", "--help")
    assert said.code == 0
    assert missing_options("f-ppo", said.text) == [] and "--preset" in said.text and "--limit" not in said.text
    assert "Short-term disparity up to which no penalty applies. [0.05; a number at least 0]" in said.flat


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env_id": "FairWheat-v0"}, "got 'FairWheat-v0'"),
        ({"algorithm": "sac"}, "algorithm must be one of 'ppo', 'a-ppo'"),
        ({"pi": 3}, "pi must be several values, got 3"),
        ({"vf": (0,)}, r"vf\[0\] must be at least 1, got 0"),
        ({"weight": -1}, "weight must be at least 0, got -1"),
    ],
)
def test_bad_settings_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**changes)


def test_massaging_alone_needs_a_massager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, HIRING, Task(env_id=HIRING, short=short, long=long))
    with pytest.raises(ValueError, match=f"algorithm must not be 'f-ppo-s' on {HIRING}, which has no massager"):
        config(algorithm="f-ppo-s")


def test_wrong_options_are_told_in_a_line() -> None:
    assert "preset must be one of 'recommended', 'published'" in mistake("train", "f-ppo", HIRING, "--preset", "best")
    assert "ID must be given" in mistake("train", "f-ppo")
