"""Trainings together are those alone, up to rounding, in folders that can be resumed alone or together."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fair_envs.baselines import load, train, train_together
from fair_envs.baselines.methods import named
from fair_envs.baselines.ppo.ppo import PPO
from fair_envs.baselines.runs import Run
from fair_envs.baselines.training import Keeper
from tests.baselines.small import policy_weights
from tests.helpers import LITTLE
from tests.test_cli import Said, mistake

HARVEST: dict[str, Any] = {"env_id": "FairHarvest-v0", "parameters": LITTLE}
SHORT: dict[str, Any] = {"lanes": 3, "n_steps": 20, "batch_size": 30, "n_epochs": 2, "learning_rate": 0.003}
TIMED = ("time/fps", "time/time_elapsed")


def settings(method: str = "ppo", *, seeds: int = 3, env_id: str = "FairLending-v0", **given: Any) -> list[Any]:
    """Return settings of short trainings, whose episodes cross rollouts and end by a time limit."""
    given = {"parameters": {"horizon": 27}, "steps": 240, **SHORT, "algorithm": method, "env_id": env_id, **given}
    return [named(method).configured({**given, "seed": seed}) for seed in range(seeds)]


def alone(config: Any, **given: Any) -> Any:
    return named(config.algorithm).train(config, **given)


def same(together: Any, separate: Any) -> None:
    np.testing.assert_allclose(policy_weights(together), policy_weights(separate), atol=2e-5)
    assert together.num_timesteps == separate.num_timesteps
    for name, state in together.get_parameters().items():
        assert state.keys() == separate.get_parameters()[name].keys()


@pytest.mark.parametrize(
    "configs",
    [
        settings(),
        settings("fair-ppo", env_id="FairHiring-v0", parameters={"horizon": 27}),
        settings("elbert"),
        settings("lagrangian", measure="short", limit=0.1),
        settings("a-ppo"),
        settings("f-ppo-l", env_id="FairEpidemic-v0", parameters={}),
        settings("ppo", env_id="FairCollege-v0", parameters={}),
        settings("maxmin", env_id="FairPursuit-v0", parameters={}, sharing="none", seeds=2),
        settings(**HARVEST, sharing="groups"),
        settings(**HARVEST, skip_idle=False, seeds=2),
        settings("fair-ppo", **HARVEST, sharing="none", mode="p3o", seeds=2),
        settings("nash", **HARVEST, sharing="all"),
    ],
    ids=lambda configs: f"{configs[0].algorithm} {configs[0].env_id}",
)
def test_trainings_together_are_those_alone(configs: Any) -> None:
    for together, config in zip(train_together(configs), configs, strict=True):
        same(together, alone(config))


def test_strengths_can_differ() -> None:
    configs = [dataclasses.replace(settings("fair-ppo", seeds=1)[0], weight=weight) for weight in (0.0, 1.0, 5.0)]
    found = train_together(configs)
    for together, config in zip(found, configs, strict=True):
        same(together, alone(config))
    assert not np.allclose(policy_weights(found[0]), policy_weights(found[2]), atol=1e-4)


def test_the_random_numbers_of_the_process_stay() -> None:
    np.random.seed(3)
    wanted = np.random.random(2)
    np.random.seed(3)
    train_together(settings(seeds=2, steps=60))
    assert np.array_equal(np.random.random(2), wanted)


def rows(folder: Path) -> list[dict[str, Any]]:
    found = json.loads((folder / "metrics.json").read_text())
    return [{k: math.nan if v is None else v for k, v in row.items() if k not in TIMED} for row in found]


def test_each_has_a_folder_like_that_of_a_training_alone(tmp_path: Path) -> None:
    configs = settings("elbert", seeds=2)
    outs = [tmp_path / str(config.seed) for config in configs]
    train_together(configs, outs=outs)
    for config, out in zip(configs, outs, strict=True):
        alone(config, out=tmp_path / f"alone-{config.seed}")
        theirs = tmp_path / f"alone-{config.seed}"
        assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in theirs.iterdir())
        assert [row.keys() for row in rows(out)] == [row.keys() for row in rows(theirs)]
        for one, other in zip(rows(out), rows(theirs), strict=True):
            assert one == pytest.approx(other, rel=1e-2, abs=1e-4, nan_ok=True)
        model, kept = named("elbert").load(out)
        assert kept == config
        assert model.num_timesteps == 240
        assert type(model).load(out / "model.zip", device="cpu").num_timesteps == 240


def interrupted(monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """Press Ctrl-C in one of all learners' rollouts or updates."""
    calls = []
    train_once = PPO.train

    def stopped(self: PPO) -> None:
        calls.append(self)
        if len(calls) == after:
            raise KeyboardInterrupt
        train_once(self)

    monkeypatch.setattr(PPO, "train", stopped)


@pytest.mark.parametrize("after", [3, 5, 6])
def test_a_stop_leaves_checkpoints_to_resume_together_or_alone(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = settings(seeds=3)
    wanted = train_together(configs)
    outs = [tmp_path / str(config.seed) for config in configs]
    with monkeypatch.context() as patch:
        interrupted(patch, after=after)
        with pytest.raises(KeyboardInterrupt):
            train_together(configs, outs=outs)
    assert not (outs[0] / "model.zip").exists()
    train(configs[1], out=outs[1], resume=True)  # alone; the others are now behind
    for found, model in zip(train_together(configs, outs=outs, resume=True), wanted, strict=True):
        same(found, model)
    assert [len(rows(out)) for out in outs] == [4, 4, 4]
    assert all((out / "model.zip").exists() for out in outs)


def test_those_that_are_behind_catch_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between two checkpoints leaves trainings at different steps."""
    configs = settings(seeds=3, steps=360)
    wanted, outs = train_together(configs), [tmp_path / str(seed) for seed in range(3)]
    write, calls = Keeper.write, []

    def killed(self: Keeper) -> None:
        calls.append(self)
        if len(calls) == 1:
            write(self)

    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "write", killed)
        interrupted(patch, after=8)
        with pytest.raises(KeyboardInterrupt):
            train_together(configs, outs=outs)
    assert {Run.open(out).logged_steps() for out in outs} != {360}
    steps = {load(out)[0].num_timesteps for out in outs}
    assert len(steps) == 2
    for found, model in zip(train_together(configs, outs=outs, resume=True), wanted, strict=True):
        same(found, model)


def test_resuming_finished_trainings_changes_nothing(tmp_path: Path) -> None:
    configs, outs = settings(seeds=2, steps=60), [tmp_path / "a", tmp_path / "b"]
    train_together(configs, outs=outs)
    before = [(out / "checkpoint.pt").read_bytes() for out in outs]
    train_together(configs, outs=outs, resume=True)
    assert [(out / "checkpoint.pt").read_bytes() for out in outs] == before


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([], r"configs must list at least one training, got \[\]"),
        (settings(seeds=1)[0], "configs must list at least one training, got Training"),
        (settings(**HARVEST, seeds=1) + settings(**HARVEST, seeds=1, skip_idle=False), "skip_idle must be the same"),
        (settings(**HARVEST, seeds=1) + settings(**HARVEST, seeds=1, sharing="none"), "sharing must be the same"),
        (settings("fair-ppo", **HARVEST, seeds=1) + settings("fair-ppo", **HARVEST, seeds=1, measure="short"), "same"),
        (settings(seeds=1) + settings(seeds=1, lanes=4), "lanes must be the same in trainings together, got 3 and 4"),
        (settings(seeds=1) + settings("nash", seeds=1), "algorithm must be the same in trainings together, got 'ppo'"),
        (
            settings(eval_freq=100),
            "eval_freq must be 0 in trainings together, got 100; train the seeds",
        ),
        (settings("cpo"), "alpha-fair, .*, ppo, .*got cpo; train the seeds one after another"),
        (settings("fair-ppo", **HARVEST, penalty="cf", lanes=4), "in one world, without wrappers; train the seeds"),
        (settings("f-ppo", env_id="FairHiring-v0", parameters={}), "got f-ppo, which massages actions; train"),
    ],
)
def test_what_cannot_share_rollouts_is_refused(configs: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        train_together(
            configs, outs=[tmp_path / str(k) for k in range(len(configs) if isinstance(configs, list) else 1)]
        )
    assert not list(tmp_path.iterdir())


def test_folders_are_checked_before_any_is_created(tmp_path: Path) -> None:
    configs, new, other = settings(seeds=2, steps=60), tmp_path / "new", tmp_path / "other"
    for outs in ([new], [new, new], [new, other, tmp_path / "third"]):
        with pytest.raises(ValueError, match="outs must be one folder for each of 2 trainings, got"):
            train_together(configs, outs=outs)
    other.mkdir()
    with pytest.raises(FileExistsError, match="other, which exists"):
        train_together(configs, outs=[new, other])
    assert not new.exists()
    with pytest.raises(ValueError, match="outs must name the runs to resume, got None"):
        train_together(configs, resume=True)


def test_the_training_that_diverges_is_named() -> None:
    configs = settings(seeds=2, steps=600)
    configs[1] = dataclasses.replace(configs[1], learning_rate=1e30)
    with pytest.raises(ValueError, match=r"policy must have finite weights, .* the training has diverged \(seed 1\)"):
        train_together(configs)


def test_lanes_of_all_trainings_must_fit(tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("one", "two")]
    with pytest.raises(ValueError, match="trainings together need 1200000 lanes, 600000 each: lanes must be at most"):
        train_together(settings(seeds=2, lanes=600_000, n_steps=1, batch_size=600_000), outs=outs)
    assert not list(tmp_path.iterdir())


QUICK = ("--param", "horizon=27", "--n-envs", 2, "--n-steps", 20, "--batch-size", 40, "--total-timesteps", 80)


def test_the_command_line_trains_several_seeds(tmp_path: Path) -> None:
    command = ("train", "ppo", "FairLending-v0", *QUICK, "--seeds", 2, "--seed", 5, "--out", tmp_path / "runs")
    said = Said(*command)
    assert said.code == 0
    assert f"saved 2 runs in {tmp_path / 'runs'}; compare them with: fair-envs compare" in said.flat
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed-5", "seed-6"]
    assert json.loads((tmp_path / "runs" / "seed-6" / "config.json").read_text())["seed"] == 6
    assert Said(*command, "--resume").code == 0
    assert "saved 2 runs" in Said("train", "--out", tmp_path / "runs", "--resume").flat
    assert "ppo (2 seeds)" in Said("compare", tmp_path / "runs", "--episodes", 2, "--policy", "random").flat
    for mistaken in (
        mistake("evaluate", tmp_path / "runs"),
        mistake("evaluate", "FairLending-v0", "--policy", tmp_path / "runs"),
    ):
        assert "which has runs of several seeds: use one, such as" in mistaken
        assert "seed-5, or fair-envs compare" in mistaken
    assert "steps must be 80 to resume" in mistake(*command[:-2], "--out", tmp_path / "runs", "--resume", "--steps", 90)
    last = ("--seeds", 3, "--seed", 2**32 - 2, "--out", tmp_path / "last")
    assert "seeds must be so few that all are valid" in mistake("train", "ppo", "FairLending-v0", *QUICK, *last)
    assert "out must be a new path" in mistake(*command)
    assert "No such option" in Said("train", "pcn", "FairLending-v0", "--seeds", 2).text
