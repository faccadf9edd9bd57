"""PCN in MO-Gymnasium, and morl-baselines' own PCN on our vector rewards; skipped where they are absent."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

pytest.importorskip("moocore")
pytest.importorskip("mo_gymnasium")

from fair_envs.baselines.pcn.coverage import cover
from fair_envs.baselines.pcn.pcn import PCN, PCNSettings
from fair_envs.benchmark.peers import CORNER, treasures
from fair_envs.envs import hiring
from fair_envs.metrics.history import SlidingWindow
from fair_envs.metrics.pareto import front, hypervolume
from fair_envs.wrappers import FairnessObjectives
from tests.ferry import Env

th.set_num_threads(1)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_deep_sea_treasure_is_found_and_played_by_command() -> None:
    env = treasures(10)
    learner = PCN(env, settings=PCNSettings(), seed=1).learn(6000)
    known = np.array(env.envs[0].unwrapped.pareto_front(1.0))
    wanted = front([command.desired_return for command in learner.commands()])
    assert hypervolume(wanted, reference=CORNER) > 0.95 * hypervolume(known, reference=CORNER)
    achieved = cover(learner, episodes=1).achieved
    assert hypervolume(achieved, reference=CORNER) > 0.9 * hypervolume(known, reference=CORNER)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [partial(Env, seats=3, horizon=10), partial(hiring.Env, team_size=5, horizon=10)])
def test_the_pcn_of_morl_baselines_trains_on_our_rewards(
    make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("morl_baselines.multi_policy.pcn.pcn")
    monkeypatch.chdir(tmp_path)  # it writes weights where it is
    worlds = [FairnessObjectives(make(), ["SP", "EO"], SlidingWindow(20)) for _ in range(2)]
    model = module.PCN(worlds[0], scaling_factor=np.array([0.1, 0.1, 0.1, 0.1]), batch_size=32, log=False, seed=0)
    model.train(
        300, worlds[1], np.array([-50.0, -50.0, -50.0]), num_er_episodes=10, num_model_updates=2, num_points_pf=5
    )
    returns, _, _ = model.evaluate(worlds[1], np.array([50.0, 0.0, 0.0], np.float32), n=5)
    assert np.isfinite(returns).all()
    assert (np.array(returns)[:, 1:] <= 0).all()
