"""Every id but one in BenchMARL: a training with IPPO or MAPPO, and the record in a callback."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarl")

import torch
from benchmarl.algorithms import IppoConfig, MappoConfig
from benchmarl.environments.pettingzoo.common import PettingZooClass
from benchmarl.experiment import Callback, Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig
from torchrl.envs import EnvBase, PettingZooWrapper

import fair_envs
from tests.libraries.ids import check_record, every_id

torch.set_num_threads(1)


class FairTask(PettingZooClass):
    """A task with the name of an id, and with the environment's parameters as its configuration."""

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        """Return what makes the environment."""
        make = import_module(fair_envs.TABLE[self.name].module).parallel_env
        mask = {"use_mask": True, "done_on_any": False}  # the cars of FairTraffic leave before the others
        return lambda: PettingZooWrapper(
            make(**self.config), categorical_actions=True, seed=seed, device=device, **mask
        )

    def supports_continuous_actions(self) -> bool:
        """Return whether actions are numbers."""
        return self.name in ("FairPursuit-v0", "FairCollege-v0")

    def supports_discrete_actions(self) -> bool:
        """Return whether an action is a choice."""
        return not self.supports_continuous_actions()

    def max_steps(self, env: EnvBase) -> int:
        """Return the number of steps of an episode of the evaluation."""
        return self.config["horizon"]


class KeepRecord(Callback):
    """Keeps the record of each agent in the steps of each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []
        self.lengths: list[int] = []

    def on_batch_collected(self, batch: Any) -> None:
        """Keep a batch's record: entries of shape (episodes, steps, agents, ...)."""
        (group,) = self.experiment.group_map
        self.records.append(batch["next", group, "info"])

    def on_evaluation_end(self, rollouts: list[Any]) -> None:
        """Keep how many steps the episodes of an evaluation had."""
        self.lengths += map(len, rollouts)


def experiment(env_id: str, folder: Path, algorithm: Any = MappoConfig) -> tuple[Experiment, KeepRecord]:
    """Return a small experiment, and the callback that keeps its record."""
    settings, model, callback = ExperimentConfig.get_from_yaml(), MlpConfig.get_from_yaml(), KeepRecord()
    settings.sampling_device = settings.train_device = settings.buffer_device = "cpu"
    settings.on_policy_collected_frames_per_batch, settings.on_policy_n_envs_per_worker = 64, 1
    settings.on_policy_minibatch_size, settings.on_policy_n_minibatch_iters = 32, 2
    settings.max_n_frames, settings.max_n_iters = None, 1
    settings.loggers, settings.create_json, settings.render = [], False, False
    settings.evaluation, settings.save_folder = False, folder
    model.num_cells = [32]
    trial = Experiment(
        task=FairTask(env_id, {"horizon": 25}),
        algorithm_config=algorithm.get_from_yaml(),
        model_config=model,
        critic_model_config=model,
        seed=0,
        config=settings,
        callbacks=[callback],
    )
    return trial, callback


@pytest.mark.parametrize("algorithm", [IppoConfig, MappoConfig])
@every_id
def test_an_id_trains_and_a_callback_reads_the_record(env_id: str, algorithm: Any, tmp_path: Path) -> None:
    if env_id == "FairAttention-v0":
        with pytest.raises(ValueError, match="second to last spec dimension should be the number of agents"):
            experiment(env_id, tmp_path, algorithm)  # it reads one discrete choice, or numbers
        return
    trial, callback = experiment(env_id, tmp_path, algorithm)
    before = [weights.clone() for weights in trial.policy.parameters()]
    trial.run()
    after = list(trial.policy.parameters())
    assert all(torch.isfinite(weights).all() for weights in after)
    assert any((old != new).any() for old, new in zip(before, after, strict=True))
    (record,) = callback.records
    first = record[0, :, 0]  # the first agent's steps
    if fair_envs.TABLE[env_id].agents:
        assert (first["fair_decided"] == 1).any()
    else:
        check_record(env_id, {name: value.numpy() for name, value in first.items()})


def test_an_evaluation_plays_to_the_horizon(tmp_path: Path) -> None:
    trial, callback = experiment("FairTraffic-v0", tmp_path)
    trial.evaluate()
    assert set(callback.lengths) == {25}
