"""PPO of FEN's fair-efficient reward: resumed within episodes, with bounds of rewards, and only for agents."""

from pathlib import Path
from typing import Any

import pytest

from fair_envs.baselines import methods
from fair_envs.baselines.training import Training, bounds_of, train
from fair_envs.registration import make_rules
from tests.baselines.interruptions import Interrupt
from tests.baselines.test_training import assert_same_state

pytestmark = pytest.mark.usefixtures("empty_folder")

CARS: dict[str, Any] = {"env_id": "FairTraffic-v0", "parameters": {"horizon": 9, "cars": 6}}
TINY: dict[str, Any] = {"lanes": 2, "n_steps": 5, "batch_size": 8, "n_epochs": 2, "net_arch": (4,)}


def test_the_utilities_of_unfinished_episodes_are_resumed(tmp_path: Path) -> None:
    settings = Training(algorithm="fen-reward", steps=6 * 5 * 12, bounds=(-1.0, 1.0), **CARS, **TINY)
    whole = train(settings)
    with pytest.raises(KeyboardInterrupt):
        train(settings, out=tmp_path / "part", callback=Interrupt(13))
    resumed = train(settings, out=tmp_path / "part", resume=True)
    assert_same_state(whole, resumed)


def test_the_bounds_are_the_rewards_in_play_and_0_if_none_is_negative() -> None:
    rules = make_rules("FairTraffic-v0", **CARS["parameters"])
    least, largest = bounds_of(rules)
    assert -0.1 < least < 0 < largest - least  # the cost of a step and not the range of all rewards
    assert bounds_of(make_rules("FairHarvest-v0", horizon=30))[0] == 0


def test_scripted_policies_show_rewards_that_random_agents_never_get() -> None:
    rules = make_rules("FairPursuit-v0")
    assert bounds_of(rules, ["planner"])[1] == 50
    with pytest.raises(ValueError, match=r"bounds must be given for rewards .*; all were -0.1"):
        bounds_of(rules)


def test_a_decision_maker_has_no_other_agents_to_compare_with() -> None:
    with pytest.raises(ValueError, match="a decision-maker has no others to compare with; try"):
        methods.method_for("fen-reward", "FairHiring-v0")
    with pytest.raises(ValueError, match="bounds must be the least and the largest reward"):
        Training(algorithm="fen-reward", bounds=(1.0,), **CARS)
