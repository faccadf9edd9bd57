"""Trainings from one record of settings: their folder, their interruption, and their going on to the bit."""

import csv
import dataclasses
import json
import pickle
import random
import threading
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch as th

from fair_envs import TABLE
from fair_envs.baselines.ppo.policies import GroupedPolicy
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.baselines.runs import Run
from fair_envs.baselines.training import Training, load, make_env, make_model, train
from tests.baselines.interruptions import Interrupt, Stop
from tests.baselines.small import HARVEST, policy_weights, weights
from tests.helpers import CLOCK, LITTLE, plain

ROLLOUT = 5 * 4 * 8  # agent steps: 5 steps of 4 lanes of 8 agents; episodes have 12 steps


def config(**changes: Any) -> Training:
    """Return a small training of six rollouts."""
    default: dict[str, Any] = {
        "env_id": HARVEST,
        "parameters": LITTLE,
        "steps": 6 * ROLLOUT,
        "lanes": 4,
        "n_steps": 5,
        "batch_size": 64,
        "n_epochs": 2,
        "learning_rate": 0.01,
        "net_arch": (16,),
    }
    return Training(**{**default, **changes})


@pytest.fixture(scope="module")
def trained() -> Any:
    """Return the model of the small training that nothing disturbs."""
    return train(config())


KINDS: dict[str, dict[str, Any]] = {
    "ppo": {"algorithm": "ppo"},
    "sb3-ppo": {"algorithm": "sb3-ppo"},
    "shaped": {"algorithm": "fair-ppo", "beta": 0.5},
    "weighted": {"algorithm": "fair-ppo", "mode": "weighted"},
    "p3o": {"algorithm": "fair-ppo", "mode": "p3o"},
    "authors": {"algorithm": "fair-ppo", "mode": "authors", "beta": 1.0},
    "csp": {"algorithm": "fair-ppo", "penalty": "csp"},
    "cf": {"algorithm": "fair-ppo", "penalty": "cf"},
}


def rows_without_clock(folder: Path) -> list[dict[str, Any]]:
    """Return a run's metrics but for what time it was."""
    rows = json.loads((folder / "metrics.json").read_text())
    return [{name: value for name, value in row.items() if name not in CLOCK} for row in rows]


def state(model: Any) -> list[Any]:
    """Return all that a training leaves in its model."""
    critic = getattr(model, "cost_critics", None)
    memory = getattr(model, "memory", {})
    return [
        weights(model),
        *([] if critic is None else [part for s in critic.optimizer.state.values() for part in s.values()]),
        *(memory[name] for name in sorted(memory)),
        model._last_obs,
        model._last_episode_starts,
        *(model.env.lanes.records[name] for name in model.env.lanes.records.dtype.names),
        [model.num_timesteps, model._n_updates],
    ]


def assert_same_state(one: Any, other: Any) -> None:
    for a, b in zip(state(one), state(other), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_and_resumed_it_ends_as_if_it_had_not_been(kind: str, tmp_path: Path) -> None:
    settings = config(**KINDS[kind])
    whole = train(settings, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(settings, out=tmp_path / "part", callback=Interrupt(18))  # in the fourth rollout and the second episode
    with pytest.raises(KeyboardInterrupt):  # and again
        train(settings, out=tmp_path / "part", resume=True, callback=Interrupt(6))
    resumed = train(settings, out=tmp_path / "part", resume=True)
    assert_same_state(whole, resumed)
    assert rows_without_clock(tmp_path / "part") == rows_without_clock(tmp_path / "whole")


def test_an_interruption_while_learning_loses_that_rollout_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(config(), out=tmp_path / "whole")
    calls = []

    def pressed(self: PPO) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        original(self)

    original = PPO.train
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(PPO, "train", pressed)
        train(config(), out=tmp_path / "part")
    assert len(rows_without_clock(tmp_path / "part")) == 3
    assert load(tmp_path / "part")[0].num_timesteps == 2 * ROLLOUT
    assert_same_state(whole, train(config(), out=tmp_path / "part", resume=True))
    assert rows_without_clock(tmp_path / "part") == rows_without_clock(tmp_path / "whole")


@pytest.mark.parametrize("step", [3, 7, 10, 11])
def test_a_callback_that_ends_the_training_leaves_it_resumable(step: int, trained: Any, tmp_path: Path) -> None:
    stopped = train(config(), out=tmp_path / "part", callback=Stop(step))
    assert stopped.num_timesteps == step * 32
    assert not (tmp_path / "part" / "model.zip").exists()
    assert_same_state(trained, train(config(), out=tmp_path / "part", resume=True))


def test_a_run_that_was_stopped_while_it_was_set_up_begins_anew(trained: Any, tmp_path: Path) -> None:
    Run.create(tmp_path / "run", config().as_dict())
    assert_same_state(trained, train(config(), out=tmp_path / "run", resume=True))


def test_a_finished_run_resumes_to_what_it_was(tmp_path: Path) -> None:
    first = train(config(), out=tmp_path / "run")
    again = train(config(), out=tmp_path / "run", resume=True)
    assert np.array_equal(weights(first), weights(again))
    assert len(rows_without_clock(tmp_path / "run")) == 6


def test_equal_trainings_are_equal_and_seeds_differ() -> None:
    one, same, other = (policy_weights(train(config(seed=seed))) for seed in (0, 0, 1))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_training_does_not_depend_on_what_was_drawn_before() -> None:
    th.manual_seed(7)
    np.random.seed(7)
    first = policy_weights(train(config()))
    th.rand(5)
    np.random.rand(3)
    assert np.array_equal(first, policy_weights(train(config())))


def test_it_leaves_chance_and_threads_as_they_were(tmp_path: Path) -> None:
    def mine() -> tuple[Any, ...]:
        return th.get_rng_state().tolist(), str(np.random.get_state()), random.getstate(), th.get_num_threads()

    before = mine()
    train(config(threads=2, steps=ROLLOUT, n_epochs=1), out=tmp_path / "run")
    load(tmp_path / "run")
    assert mine() == before


# ------------------------------------------------------------------------------------------------- the folder


def test_a_run_writes_what_it_is_and_what_it_did(tmp_path: Path) -> None:
    settings = config(algorithm="fair-ppo")
    train(settings, out=tmp_path / "new" / "run")
    folder = tmp_path / "new" / "run"
    assert Training(**json.loads((folder / "config.json").read_text())) == settings
    assert {"torch", "numpy", "fair-envs", "python"} <= json.loads((folder / "versions.json").read_text()).keys()
    rows = json.loads((folder / "metrics.json").read_text())
    assert [row["time/total_timesteps"] for row in rows] == [ROLLOUT * k for k in range(1, 7)]
    assert {"rollout/reward[full_speed]", "rollout/reward[half_speed]", "fairness/disparity"} <= rows[0].keys()
    assert "train/value_loss" in rows[1]
    with (folder / "metrics.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["fairness/disparity"]) for row in table] == [row["fairness/disparity"] for row in rows]
    assert b"rollout/reward[half_speed]" in next((folder / "tensorboard").iterdir()).read_bytes()
    assert not list(folder.glob(".*"))


def test_the_rewards_that_are_told_are_means_per_agent_and_step(tmp_path: Path) -> None:
    settings = config(steps=ROLLOUT)
    model = cast(PPO, train(settings, out=tmp_path / "run"))
    buffer = model.rollout_buffer
    (row,) = rows_without_clock(tmp_path / "run")
    for group, name in enumerate(("full_speed", "half_speed")):
        wanted = buffer.reward[buffer.group == group].mean()
        assert row[f"rollout/reward[{name}]"] == pytest.approx(wanted)


def test_a_runs_model_is_loaded_for_evaluation(tmp_path: Path) -> None:
    settings = config(algorithm="fair-ppo", penalty="cf")
    model = train(settings, out=tmp_path / "run")
    loaded, kept = load(tmp_path / "run")
    assert kept == settings
    assert np.array_equal(policy_weights(model), policy_weights(loaded))
    with pytest.raises(FileNotFoundError, match="run must be a folder created by a training"):
        load(tmp_path)


def test_a_checkpoint_holds_no_code(tmp_path: Path) -> None:
    train(config(algorithm="fair-ppo", steps=ROLLOUT), out=tmp_path / "run")
    found = th.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert {"learner", "lanes", "randomness", "last_obs"} <= found.keys()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_overwritten_and_another_configuration_is_refused(tmp_path: Path) -> None:
    train(config(steps=ROLLOUT), out=tmp_path / "run")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"out must be a new folder, or one to resume, got .*run, which exists"):
        train(config(steps=ROLLOUT), out=tmp_path / "run")
    with pytest.raises(ValueError, match=r"gamma must be 0.99 to resume .*run, got 0.5"):
        train(config(steps=ROLLOUT, gamma=0.5), out=tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match=r"parameters must be .*'agents': 8.* to resume .*run, got"):
        train(config(steps=ROLLOUT, parameters={**LITTLE, "recolour": 4.0}), out=tmp_path / "run", resume=True)
    with pytest.raises(FileNotFoundError, match="run must be a folder created by a training"):
        train(config(), out=tmp_path / "nothing", resume=True)
    with pytest.raises(ValueError, match="out must name the run to resume, got None"):
        train(config(), resume=True)
    assert contents(tmp_path) == before


def test_a_missing_library_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fair_envs.support.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs tensorboard; install it with: pip install 'fair-envs\[baselines\]'"):
        train(config(), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_bad_parameters_of_the_environment_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        train(config(parameters={"speed": 1}), out=tmp_path / "run")
    with pytest.raises(ValueError, match="horizon must be between 1"):
        train(config(parameters={"horizon": 0}), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_bar_tells_agent_steps_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    monkeypatch.setenv("COLUMNS", "100")
    train(config(), progress=True)
    shown = plain(capsys.readouterr().err)
    assert "ppo" in shown and "960/960 agent steps" in shown and "0:00:0" in shown


def test_no_bar_stays_behind_where_a_training_is_stopped() -> None:
    def stop(*_: Any) -> bool:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        train(config(), progress=True, callback=stop)
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:  # Rich's thread ends shortly afterwards
        time.sleep(0.01)
    assert threading.active_count() == before, threading.enumerate()


# ------------------------------------------------------------------------------------------------ the settings


def test_the_two_games_share_the_lanes() -> None:
    envs: Any = [make_env(config(algorithm="fair-ppo", penalty=penalty)) for penalty in ("dp", "cf")]
    one, two = envs
    assert one.num_envs == two.num_envs
    assert (one.worlds, two.worlds) == (1, 2)
    games = [world.rules.params.sensitive_fraction for world in two.lanes.worlds]
    assert games == [0.0, 1.0]


def test_trainings_share_no_episodes_with_each_other_or_with_tests() -> None:
    seeds = []
    for seed in (0, 1, 2**32 - 1):
        model = make_model(config(seed=seed))
        model.env.reset()  # type: ignore[union-attr]
        seeds.append(model.env.lanes.records["seed"].tolist())  # type: ignore[union-attr]
    assert len({number for lane in seeds for number in lane}) == 12
    assert min(min(lane) for lane in seeds) >= 2**40


def test_settings_reach_the_learner() -> None:
    model: Any = make_model(
        config(algorithm="fair-ppo", alpha=0.3, mode="p3o", tolerance=2, gamma=0.9, skip_idle=False)
    )
    assert (model.alpha, model.mode, model.tolerance, model.gamma, model.skip_idle) == (0.3, "p3o", 2.0, 0.9, False)
    assert isinstance(model.policy, GroupedPolicy)
    assert model.env.reward_scale == 0.1
    assert type(make_model(config(algorithm="sb3-ppo"))).__module__ == "stable_baselines3.ppo.ppo"


def test_settings_travel_to_other_processes_and_through_json() -> None:
    settings = config(algorithm="fair-ppo")
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert Training(**json.loads(json.dumps(settings.as_dict()))) == settings
    assert Training(**dataclasses.asdict(settings)) == settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"env_id": "Nowhere-v0"},
            f"id must be one of {', '.join(sorted(TABLE))}, or registered with Gymnasium, got 'Nowhere-v0'",
        ),
        ({"algorithm": "dqn"}, "algorithm must be one of 'ppo', 'fair-ppo', 'sb3-ppo', 'fen-reward', got 'dqn'"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"lanes": 2.5}, "lanes must be an integer at least 1, got 2.5"),
        ({"batch_size": 1}, "batch_size must be at least 2, got 1"),
        ({"learning_rate": 0}, "learning_rate must be at least 1e-12, got 0"),
        ({"gamma": 1.5}, "gamma must be between 0 and 1, got 1.5"),
        ({"alpha": -1}, "alpha must be at least 0, got -1"),
        ({"ent_coef": float("nan")}, "ent_coef must be a finite number at least 0, got nan"),
        ({"skip_idle": 1}, "skip_idle must be True or False, got 1"),
        ({"net_arch": (0,)}, r"net_arch\[0\] must be at least 1, got 0"),
        ({"net_arch": 64}, "net_arch must be several values, got 64"),
        ({"worlds": 5}, "worlds must be two mappings of parameters, got 5"),
        ({"seed": -1}, "seed must be between 0 and 4294967295, got -1"),
        (
            {"penalty": "cf", "algorithm": "fair-ppo", "lanes": 3},
            "lanes must be even for penalty 'counterfactual_fairness'",
        ),
        ({"worlds": ({},)}, "worlds must be two mappings of parameters"),
        ({"parameters": {"horizon": th.zeros(1)}}, "parameters must contain only numbers, strings and booleans"),
        ({"parameters": [1]}, "parameters must map names to values"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**changes)
